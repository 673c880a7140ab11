// What can be done with all selected screenshots.

import { settle } from "../base/actions.js";
import { changeMany, downloadMany } from "../base/batch.js";
import { confirmDialog, dialog } from "../base/dialogs.js";
import { button, h, icon } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { tagInput } from "../base/tags.js";
import { t } from "../base/texts.js";

/** The photos that a tile stands for: all of its stack. */
export const idsOf = (/** @type {PhotoItem} */ photo) => photo.stack?.photo_ids ?? [photo.id];

/**
 * @param {import("./selection.js").TileSelection} selection
 * @param {import("./selection.js").Choice} name
 * @param {HTMLButtonElement} pressed
 */
export async function performOn(selection, name, pressed) {
  const photos = [...selection.picked.values()];
  const chosen = [...new Set(photos.flatMap(idsOf))];
  const told = (/** @type {number} */ done, /** @type {number} */ total) => {
    if (total > 500) selection.count.textContent = t("selection.progress", { done: formatNumber(done), total: formatNumber(total) });
  };
  const run = async (/** @type {() => Promise<unknown>} */ work) => {
    selection.isBusy = true;
    selection.draw();
    await settle(pressed, work, (isDone) => isDone !== false && selection.end());
    selection.isBusy = false;
    if (selection.isOn) selection.draw();
  };
  const number = formatNumber(chosen.length);
  if (name === "delete") {
    const text = t("selection.deleteText", { count: number });
    const question = { title: t("selection.delete"), text, action: t("selection.delete"), danger: true };
    if (await confirmDialog(question)) await run(() => changeMany(chosen, "delete", { told }));
  } else if (name === "download") await run(() => downloadMany(chosen, told));
  else if (name === "tag") {
    askTag(number, (tag) => {
      const changing = without(photos, (photo) => photo.tags.includes(tag));
      run(() => changeMany(chosen, "tag", { tag, changing, told }));
    });
  } else if (name === "keep") {
    const areKept = photos.every((photo) => photo.kept);
    const changing = without(photos, (photo) => photo.kept !== areKept);
    await run(() => changeMany(chosen, areKept ? "unkeep" : "keep", { changing, told }));
  } else await run(() => changeMany(chosen, name, { told }));
}

/**
 * The ids of those for which `isSo` does not hold.
 *
 * @param {PhotoItem[]} photos
 * @param {(photo: PhotoItem) => boolean} isSo
 */
const without = (photos, isSo) => photos.filter((photo) => !isSo(photo)).flatMap(idsOf);

/**
 * @param {string} number
 * @param {(tag: string) => unknown} then
 */
function askTag(number, then) {
  const { input, suggestions } = tagInput((tag) => {
    handle.close();
    then(tag);
  });
  const add = h("button.button.primary", { type: "submit" }, icon("tag"), h("span", t("selection.add")));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    const tag = input.value.trim();
    if (!tag) return input.focus();
    handle.close();
    then(tag);
  };
  const form = h(
    "form.stack",
    { on: { submit: send } },
    input,
    suggestions,
    h("div.row.end", button(t("shell.cancel"), { click: () => handle.close() }), add),
  );
  input.autofocus = true;
  const handle = dialog({ title: t("selection.tagTitle", { count: number }), body: form });
}
