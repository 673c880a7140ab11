// The selection of tiles: by the mark on a tile, with Ctrl and Shift, by dragging over tiles, by a long press and a drag on a touch
// screen, and by keys (X, Shift and arrows, Ctrl+A, Escape). A bar at the top has what can be done with all of them.
//
// What is selected is a set of ids, not of elements, because most tiles of a long list do not exist. A range may cover places that are
// not loaded yet: its photos are fetched when it is complete.

import { api } from "../base/api.js";
import { trashPhoto } from "../base/deletion.js";
import { fail } from "../base/dialogs.js";
import { button, h, listen } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { t } from "../base/texts.js";
import { idsOf, performOn } from "./selection-actions.js";
import { TileDrag, tileAt } from "./tile-drag.js";

/** @typedef {"keep" | "tag" | "download" | "reprocess" | "trash" | "restore" | "delete"} Choice */

/** @type {Record<Choice, import("../base/dom.js").Glyph>} */
const GLYPHS = {
  keep: "star",
  tag: "tag",
  download: "download",
  reprocess: "refresh",
  trash: "trash",
  restore: "restore",
  delete: "trash",
};

/**
 * @typedef {object} Tiles a list whose tiles can be selected
 * @property {HTMLElement} node holds the tiles, which are elements with `data-photo` in an <li>
 * @property {() => number} count
 * @property {(id: number) => number} placeOf -1 where it is not loaded
 * @property {(place: number) => PhotoItem | undefined} at
 * @property {(first: number, end: number, told: (count: number) => unknown) => Promise<PhotoItem[]>} between
 * @property {(place: number) => unknown} focusPlace
 * @property {(id: number, fields: Partial<PhotoItem>) => unknown} amend
 * @property {Choice[]} actions
 */

/** @param {Tiles} tiles */
export const selectable = (tiles) => new TileSelection(tiles);

export class TileSelection {
  /** @type {Map<number, PhotoItem>} */
  picked = new Map();
  isOn = false;
  anchor = 0; // the place from which Shift extends
  isBusy = false;
  #isStopped = false;

  /** @param {Tiles} tiles */
  constructor(tiles) {
    this.tiles = tiles;
    this.count = h("strong.selection-count", { role: "status" });
    this.all = button(t("selection.all"), { kind: "quiet selection-all", click: () => this.selectAll() });
    this.buttons = tiles.actions.map((name) => {
      const label = t(`selection.${name}`);
      return button(label, { glyph: GLYPHS[name], kind: `quiet selection-${name}`, title: label, click: () => this.perform(name) });
    });
    const shut = button("", { glyph: "close", kind: "quiet", label: t("selection.end"), click: () => this.end() });
    this.bar = h("div.selection", { role: "region", label: t("selection.label") },
      h("div.selection-head", shut, this.count, this.all), h("div.selection-actions", this.buttons));
    this.drag = new TileDrag(this);

    const { node } = tiles;
    const onClick = (/** @type {MouseEvent} */ event) => this.#onClick(event);
    node.addEventListener("click", onClick, true); // before the tile opens its picture
    // Tiles that come later, because the list was scrolled or fetched again, get their marks before they are painted.
    const watcher = new MutationObserver((changes) => {
      if (!this.isOn) return;
      for (const { addedNodes } of changes) {
        for (const added of addedNodes) {
          if (added instanceof Element) for (const tile of added.querySelectorAll("[data-photo]")) this.#dress(tile);
        }
      }
    });
    watcher.observe(node, { childList: true, subtree: true });
    this.unlisten = [
      () => watcher.disconnect(),
      () => node.removeEventListener("click", onClick, true),
      listen(node, { keydown: (event) => this.#onTileKey(event) }),
      listen(document, { keydown: (event) => this.#onKey(event) }),
    ];
  }

  stop() {
    this.#isStopped = true;
    this.end();
    this.drag.stop();
    for (const stop of this.unlisten) stop();
  }

  // ------------------------------------------------------------------------------------------------------------------ bar

  draw() {
    const { tiles, count, all, buttons, picked } = this;
    const number = [...picked.values()].reduce((sum, photo) => sum + idsOf(photo).length, 0);
    count.textContent = number ? t("selection.count", { count: formatNumber(number) }) : t("selection.none");
    for (const each of buttons) each.disabled = this.isBusy || !number;
    all.hidden = picked.size >= tiles.count();
    const areKept = number > 0 && [...picked.values()].every((photo) => photo.kept);
    const keep = buttons[tiles.actions.indexOf("keep")];
    keep?.querySelector("span")?.replaceChildren(t(areKept ? "selection.unkeep" : "selection.keep"));
    if (keep) keep.title = t(areKept ? "selection.unkeep" : "selection.keep");
    for (const tile of tiles.node.querySelectorAll("[data-photo]")) this.#dress(tile);
  }

  /** @param {Element} tile */
  #dress(tile) {
    const isPicked = this.picked.has(idOf(tile));
    tile.closest("li")?.classList.toggle("picked", isPicked);
    if (this.isOn) tile.setAttribute("aria-pressed", String(isPicked));
    else tile.removeAttribute("aria-pressed");
    tile.closest("li")?.querySelector(".tile-tool.select")?.setAttribute("aria-pressed", String(isPicked));
  }

  begin() {
    if (this.isOn) return;
    this.isOn = true;
    document.body.append(this.bar);
    document.body.classList.add("selecting");
    this.draw();
  }

  end() {
    if (!this.isOn) return;
    const hadFocus = this.bar.contains(document.activeElement);
    this.isOn = false;
    this.picked = new Map();
    this.bar.remove();
    document.body.classList.remove("selecting");
    this.draw();
    if (hadFocus) this.tiles.focusPlace(this.anchor);
  }

  // -------------------------------------------------------------------------------------------------------------- picking

  /**
   * The place of a tile; -1 where it is none of these tiles.
   *
   * @param {Element | null} tile
   */
  placeOf(tile) {
    return tile && this.tiles.node.contains(tile) ? this.tiles.placeOf(idOf(tile)) : -1;
  }

  /** @param {number} place */
  #toggle(place) {
    const photo = this.tiles.at(place);
    if (!photo) return;
    this.begin();
    this.anchor = place;
    if (!this.picked.delete(photo.id)) this.picked.set(photo.id, photo);
    this.draw();
  }

  /**
   * Select a range beside what `before` has; what is not loaded follows in `complete`.
   *
   * @param {Map<number, PhotoItem>} before
   * @param {number} from
   * @param {number} to
   * @param {boolean} [isOff] deselect it
   */
  range(before, from, to, isOff = false) {
    this.begin();
    this.picked = new Map(before);
    for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) {
      const photo = this.tiles.at(place);
      if (!photo) continue;
      if (isOff) this.picked.delete(photo.id);
      else this.picked.set(photo.id, photo);
    }
    this.draw();
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {boolean} [isOff]
   */
  async complete(from, to, isOff = false) {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    let isWhole = true;
    for (let place = first; place <= last; place += 1) isWhole &&= this.tiles.at(place) !== undefined;
    if (isWhole) return;
    const told = (/** @type {number} */ done) => {
      this.count.textContent = t("selection.loading", { count: formatNumber(done), total: formatNumber(last - first + 1) });
    };
    this.isBusy = true;
    this.draw();
    told(0);
    try {
      const found = await this.tiles.between(first, last + 1, told);
      if (!this.isOn || this.#isStopped) return;
      for (const photo of found) {
        if (isOff) this.picked.delete(photo.id);
        else this.picked.set(photo.id, photo);
      }
    } catch (error) {
      fail(error);
    } finally {
      this.isBusy = false;
      if (this.isOn) this.draw();
    }
  }

  /** @param {number} to */
  #extend(to) {
    this.range(this.picked, this.anchor, to);
    this.complete(this.anchor, to);
  }

  selectAll() {
    const count = this.tiles.count();
    if (!count) return;
    this.range(this.picked, 0, count - 1);
    this.complete(0, count - 1);
  }

  // -------------------------------------------------------------------------------------------------------------- actions

  /** @param {Choice} name */
  perform(name) {
    if (this.picked.size && !this.isBusy) performOn(this, name, this.buttons[this.tiles.actions.indexOf(name)]);
  }

  /** @param {number} place */
  async #toggleKept(place) {
    const { tiles } = this;
    const photo = tiles.at(place);
    if (!photo || photo.deleted_at) return;
    const kept = !photo.kept;
    tiles.amend(photo.id, { kept });
    try {
      await api.patch(`/api/photos/${photo.id}`, { kept });
    } catch (error) {
      tiles.amend(photo.id, { kept: !kept });
      fail(error);
    }
  }

  // ------------------------------------------------------------------------------------------------------- mouse and keys

  /** @param {MouseEvent} event */
  #onClick(event) {
    const taken = () => (event.preventDefault(), event.stopPropagation());
    if (this.drag.endsByClick()) return taken();
    const tool = /** @type {Element} */ (event.target).closest(".tile-tool");
    const place = this.placeOf(tileAt(event.target));
    if (place < 0) return;
    if (tool?.classList.contains("keep")) this.#toggleKept(place);
    else if (event.shiftKey && (this.isOn || tool)) this.#extend(place);
    else if (event.shiftKey) {
      this.anchor = Math.max(0, this.placeOf(tileAt(document.activeElement)));
      this.#extend(place);
    } else if (tool || this.isOn || event.ctrlKey || event.metaKey) this.#toggle(place);
    else return;
    taken();
  }

  /** @param {KeyboardEvent} event */
  #onTileKey(event) {
    const { tiles, isOn } = this;
    const place = this.placeOf(tileAt(document.activeElement));
    if (place < 0 || event.altKey) return;
    const isArrow = event.key.startsWith("Arrow") || ["Home", "End", "PageUp", "PageDown"].includes(event.key);
    if (event.shiftKey && isArrow) return this.#extend(place); // the list has moved the focus before this is called
    if (isArrow && !isOn) this.anchor = place;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "x") this.#toggle(place);
    else if (event.key === "s" && !isOn) this.#toggleKept(place);
    else if (event.key === "Delete" && !isOn && tiles.actions.includes("trash")) trashPhoto(/** @type {PhotoItem} */ (tiles.at(place)).id);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const { tiles, isOn } = this;
    const isTyping = /** @type {Element} */ (event.target).matches?.("input, textarea, select, [contenteditable]");
    if (isTyping || document.querySelector("dialog[open], .menu")) return;
    const isAll = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a";
    if (isAll && tiles.count()) this.selectAll();
    else if (isOn && event.key === "Escape") this.end();
    else if (isOn && event.key === "Delete") this.perform(tiles.actions.includes("trash") ? "trash" : "delete");
    else if (isOn && event.key === "s" && !event.ctrlKey && !event.metaKey && tiles.actions.includes("keep")) this.perform("keep");
    else return;
    event.preventDefault();
  }
}

const idOf = (/** @type {Element} */ tile) => Number(tile.getAttribute("data-photo"));
