// A stack in the viewer: the same screen several times, as a strip of its pictures, and the way to keep one of them.

import { picture } from "../base/api.js";
import { changeMany } from "../base/batch.js";
import { button, fill, h, icon } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { openMenu } from "../base/menu.js";
import { t } from "../base/texts.js";
import { lookUp, veilable } from "./veil.js";

/**
 * @param {Stack} stack
 * @param {number} current
 * @param {{ viewer: HTMLElement, open: (id: number) => unknown }} options
 */
export function stackStrip({ photo_ids: ids, best, count }, current, { viewer, open }) {
  /** @param {number} kept */
  const keep = async (kept) => {
    if (await changeMany(ids.filter((id) => id !== kept), "trash")) open(kept);
  };
  const others = formatNumber(count - 1);
  const tidy = button(t("stack.tidy"), {
    glyph: "stack",
    kind: "quiet stack-tidy",
    "aria-haspopup": "menu",
    click: () =>
      openMenu(viewer, tidy, {
        label: t("stack.tidy"),
        back: tidy,
        items: [
          { label: t("stack.keepBest", { count: others }), glyph: "check", run: () => keep(best) },
          ...(current === best
            ? []
            : [{ label: t("stack.keepThis", { count: others }), glyph: /** @type {const} */ ("image"), run: () => keep(current) }]),
        ],
      }),
  });
  return h(
    "div.viewer-stack",
    { role: "group", label: t("stack.label", { count: formatNumber(count) }) },
    h("div.stack-members", stripMembers(ids, current, {
      open,
      nameOf: (id, at) => [t("stack.member", { at: at + 1, count }), id === best && t("stack.best")].filter(Boolean).join(", "),
      signOf: (id) => id === best && t("stack.best"),
    })),
    tidy,
  );
}

/**
 * The pictures of a strip, as buttons that open them. What is veiled has no picture.
 *
 * @param {number[]} ids
 * @param {number} current
 * @param {{ open: (id: number) => unknown, nameOf: (id: number, at: number) => string, signOf: (id: number) => string | false }} options
 */
export function stripMembers(ids, current, { open, nameOf, signOf }) {
  const looked = lookUp(ids);
  return ids.map((id, at) => {
    const name = nameOf(id, at);
    const said = signOf(id);
    const sign = said && h("span.stack-best", { "aria-hidden": "true" }, said);
    const member = h(
      "button.stack-member",
      { type: "button", title: name, "aria-current": id === current ? "true" : undefined, on: { click: () => id !== current && open(id) } },
      sign,
    );
    looked.then(
      (found) =>
        veilable(member, found.get(id) ?? { id, sensitive: [] }, (veiled) =>
          fill(member, veiled ? [icon("hidden"), h("span.visually-hidden", name)] : picture(`/api/photos/${id}/thumbnail`, name), sign),
        ),
      () => {},
    );
    return member;
  });
}
