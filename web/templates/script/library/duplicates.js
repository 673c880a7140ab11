// All duplicates on one page: the same screen several times, with the sizes, and one press that deletes all but one of each.

import { settle } from "../base/actions.js";
import { api, picture } from "../base/api.js";
import { changeMany } from "../base/batch.js";
import { add, button, fill, h, icon, listen } from "../base/dom.js";
import { formatBytes, formatDate, formatNumber } from "../base/format.js";
import { emptyState, load, pageHead, poll, skeleton } from "../base/shell.js";
import { t } from "../base/texts.js";
import { photoEvents } from "../base/upload.js";
import { veilable } from "../viewer/veil.js";
import { photoTitle } from "./tile.js";

const LOOKS_AGAIN = 4; // seconds

/** @typedef {PhotoItem & { file_size: number }} Sized */
/** @typedef {{ best: number, photos: Sized[] }} DuplicateStack */

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const duplicates = {
  show(container) {
    const body = h("div.stack");
    const all = button(t("duplicates.title"), { kind: "primary", hidden: true });
    /** @type {Map<DuplicateStack, number>} */
    let chosen = new Map();
    /** @param {DuplicateStack[]} stacks */
    const others = (stacks) => stacks.flatMap((stack) => stack.photos.filter(({ id, kept }) => id !== chosen.get(stack) && !kept));
    const count = () => {
      const found = others([...chosen.keys()]);
      const size = formatBytes(found.reduce((sum, { file_size: bytes }) => sum + bytes, 0));
      all.hidden = !found.length;
      fill(all, icon("trash"), h("span", t("duplicates.all", { count: formatNumber(found.length), size })));
    };
    /** @param {DuplicateStack} stack */
    const card = (stack) => {
      const tidy = button(t("duplicates.title"), { click: () => remove(tidy, [stack]) });
      const label = () => fill(tidy, h("span", t("duplicates.one", { count: formatNumber(others([stack]).length) })));
      const choose = (/** @type {number} */ id) => {
        chosen.set(stack, id);
        label();
        count();
      };
      label();
      return h("section.card.stack.duplicate", { label: photoTitle(stack.photos[0]) },
        h("div.duplicate-pictures", { role: "radiogroup", label: photoTitle(stack.photos[0]) },
          stack.photos.map((photo) => duplicateChoice(photo, stack, choose))), h("div.row", tidy));
    };
    /**
     * @param {HTMLButtonElement} pressed
     * @param {DuplicateStack[]} stacks
     */
    const remove = (pressed, stacks) => settle(pressed, () => changeMany(others(stacks).map(({ id }) => id), "trash"), () => {});
    all.addEventListener("click", () => remove(all, [...chosen.keys()]));
    let stop = () => {};
    const again = () => {
      stop();
      stop = load(body, (signal) => api.get("/api/photos/duplicates", null, { signal }), drawn, skeleton(4, "block"));
    };
    let seen = "";
    /** Look whether there are others: a picture that comes back is compared first. */
    const look = async () => {
      const found = await api.get("/api/photos/duplicates");
      if (seen && JSON.stringify(found) !== seen && !body.contains(document.activeElement)) fill(body, drawn(found));
    };
    /** @param {{ total: number, stacks: DuplicateStack[] }} found */
    const drawn = ({ total, stacks }) => {
      seen = JSON.stringify({ total, stacks });
      chosen = new Map(stacks.map((stack) => [stack, stack.best]));
      count();
      if (!stacks.length) return emptyState({ glyph: "stack", title: t("duplicates.none"), text: t("duplicates.noneText") });
      const words = { count: formatNumber(stacks.length), total: formatNumber(total) };
      return [h("p.muted", t("duplicates.lead"), " ", stacks.length < total && t("duplicates.more", words)),
        h("div.duplicates", stacks.map(card))];
    };
    add(container, pageHead(t("duplicates.title"), all), body);
    again();
    return [() => stop(), poll(look, LOOKS_AGAIN), listen(photoEvents, { many: again, restored: again })];
  },
};

/**
 * A picture of a stack, as the choice to keep it.
 *
 * @param {Sized} photo
 * @param {DuplicateStack} stack
 * @param {(id: number) => unknown} choose
 */
function duplicateChoice(photo, stack, choose) {
  const { id, file_size: bytes, width, height, original_timestamp: taken, kept } = photo;
  const size = formatBytes(bytes);
  const radio = h("input", { type: "radio", name: `stack-${stack.best}`, checked: id === stack.best,
    label: t("duplicates.keep", { size, width, height }), on: { change: () => choose(id) } });
  const frame = h("span");
  veilable(frame, photo, (veiled) => fill(frame, veiled ? icon("hidden") : picture(`/api/photos/${id}/thumbnail`, "")));
  return h("label.duplicate-one", radio, frame, h("strong", size), h("span.muted", `${width} × ${height}`),
    h("span.muted", formatDate(taken)), kept && h("span.badge", icon("star"), t("tile.kept")));
}
