// The trash: what was thrown away in the last 30 days, the latest first, to be restored or deleted for good.

import { erase, praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { confirmDialog, fail } from "../base/dialogs.js";
import { add, button, h } from "../base/dom.js";
import { formatAgo, formatDate, formatNumber } from "../base/format.js";
import { photoGrid } from "./photo-grid.js";
import { LIST_PAGE, PhotoList } from "./photo-list.js";
import { emptyState, pageHead } from "../base/shell.js";
import { t } from "../base/texts.js";
import { photoTitle } from "./tile.js";
import { tell } from "../base/upload.js";
import { isVeiled, reasonOf } from "../viewer/veil.js";

/** @type {((id: number) => Promise<void>) | null} */
let openInTrash = null;

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const trash = {
  show(container) {
    let number = 0;
    const clear = button(t("trash.empty"), { glyph: "trash", kind: "danger", hidden: true, click: async () => {
      const question = {
        title: t("trash.empty"),
        text: t("trash.emptyText", { count: formatNumber(number) }),
        action: t("trash.empty"),
        danger: true,
      };
      if (!(await confirmDialog(question))) return;
      settle(clear, () => api.post("/api/photos/trash/empty"), ({ deleted }) => {
        praise(t("trash.emptied", { count: formatNumber(deleted) }));
        tell("many", 0);
      });
    } });
    /** @type {PhotoList} */
    let list;
    let loaded = () => {};
    const isLoaded = new Promise((resolve) => (loaded = () => resolve(null)));
    const grid = photoGrid((told) => (list = new PhotoList({ trash: "true" }, told)), {
      trash: true,
      actions: ["restore", "delete"],
      empty: () =>
        emptyState({
          glyph: "trash",
          title: t("trash.none"),
          text: t("trash.noneText"),
          action: h("a.button", { href: "#/library", text: t("trash.back") }),
        }),
      counted: (count) => {
        loaded();
        number = count;
        clear.hidden = !count;
        lead.hidden = !count;
      },
    });
    const lead = h("p.muted", t("trash.lead"));
    add(container, pageHead(t("trash.title"), clear), lead, grid.body);
    openInTrash = async (id) => {
      await isLoaded;
      for (let place = 0; list.placeOf(id) < 0 && place < number; place += LIST_PAGE) await list.idAt(place);
      if (location.hash !== `#/trashed/${id}`) return; // left meanwhile
      if (list.placeOf(id) >= 0) grid.open(id);
      else location.replace(`#/photo/${id}`); // it was restored
    };
    return () => {
      openInTrash = null;
      grid.stop();
    };
  },
};

/**
 * Show a photo of the trash, whose view is under it.
 *
 * @param {Address} address
 */
export function openTrashed({ id }) {
  if (/^\d{1,15}$/.test(id ?? "")) openInTrash?.(Number(id))?.catch(fail);
}

/**
 * The panel beside a photo of the trash.
 *
 * @param {PhotoItem} photo
 * @param {{ restored: () => unknown, erased: () => unknown }} then
 */
export function trashedDetails(photo, { restored, erased }) {
  const title = photoTitle(photo);
  const path = `/api/photos/${photo.id}`;
  const restore = button(t("trash.restore"), {
    glyph: "restore",
    kind: "primary",
    click: () =>
      settle(
        restore,
        () => api.post(`${path}/restore`),
        () => {
          praise(t("trash.restored"));
          restored();
        },
      ),
  });
  const gone = button(t("trash.delete"), { glyph: "trash", click: () =>
    erase(gone, { title: t("trash.delete"), text: t("trash.deleteText", { title }), action: t("trash.delete"), path }, erased) });
  return [
    h("h3.details-title", title),
    isVeiled(photo)
      ? h("p.details-veil", reasonOf(photo))
      : photo.summary && photo.summary !== title && h("p.details-summary", photo.summary),
    h("p.muted", [t("trash.deleted", { when: formatAgo(photo.deleted_at) }), formatDate(photo.original_timestamp)].join(" · ")),
    h("div.row", restore, gone),
  ];
}
