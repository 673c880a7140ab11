// The selection of tiles: by the mark on a tile, with Ctrl and Shift, by dragging over tiles, by a long press and a drag on a touch
// screen, and by keys (X, Shift and arrows, Ctrl+A, Escape). A bar at the top has what can be done with all of them.
//
// What is selected is a set of ids, not of elements, because most tiles of a long list do not exist. A range may cover places that are
// not loaded yet: its photos are fetched when it is complete.

import { settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { changeMany, downloadMany } from "../base/batch.js";
import { confirmDialog, dialog, fail } from "../base/dialogs.js";
import { button, h, icon, listen } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { tagInput } from "../base/tags.js";
import { t, words } from "../base/texts.js";
import { trashPhoto } from "../base/deletion.js";

words({
  selection: {
    label: "Selection|选择",
    count: "{count} selected|已选 {count} 张",
    none: "Select screenshots|选择截图",
    end: "End the selection (Esc)|结束选择（Esc）",
    all: "Select all|全选",
    loading: "Selecting {count} of {total}…|正在选择 {count}/{total}…",
    progress: "{done} of {total}…|{done}/{total}…",
    keep: "Keep|保留",
    unkeep: "No longer keep|取消保留",
    tag: "Tag|标签",
    download: "Download|下载",
    reprocess: "Analyse|分析",
    trash: "Delete|删除",
    restore: "Restore|恢复",
    delete: "Delete for good|永久删除",
    deleteText: "{count} screenshots will be deleted now and cannot be brought back.|将立即删除 {count} 张截图，无法恢复。",
    tagTitle: "Tag {count} screenshots|为 {count} 张截图添加标签",
    add: "Add the tag|添加标签",
  },
});

const DRAGGED = 7; // px from which on a press with the mouse is a drag
const LONG_PRESS = 420; // ms
const STILL = 10; // px that a finger may move meanwhile
const SCROLL_EDGE = 70; // px from the edge of the window in which a drag scrolls
const SCROLL_MOST = 22; // px in a frame

/** @typedef {"keep" | "tag" | "download" | "reprocess" | "trash" | "restore" | "delete"} Choice */
/** @typedef {ReturnType<typeof selectable>} Selection */

/** @type {Record<Choice, import("../base/dom.js").Glyph>} */
const GLYPHS = { keep: "star", tag: "tag", download: "download", reprocess: "refresh", trash: "trash", restore: "restore", delete: "trash" };

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
export function selectable(tiles) {
  const { node } = tiles;
  /** @type {Map<number, PhotoItem>} */
  let picked = new Map();
  let isOn = false;
  let anchor = 0; // the place from which Shift extends
  let isBusy = false;
  let stopped = false;

  // ------------------------------------------------------------------------------------------------------------------ bar

  const count = h("strong.selection-count", { role: "status" });
  const all = button(t("selection.all"), { kind: "quiet selection-all", click: () => selectAll() });
  /** @type {HTMLButtonElement[]} */
  const buttons = tiles.actions.map((name) => {
    const pressed = button(t(`selection.${name}`), { glyph: GLYPHS[name], kind: `quiet selection-${name}`, title: t(`selection.${name}`), click: () => perform(name, pressed) });
    return pressed;
  });
  const bar = h("div.selection", { role: "region", label: t("selection.label") },
    h("div.selection-head", button("", { glyph: "close", kind: "quiet", label: t("selection.end"), click: () => end() }), count, all),
    h("div.selection-actions", buttons));

  function draw() {
    const number = [...picked.values()].reduce((sum, photo) => sum + idsOf(photo).length, 0);
    count.textContent = number ? t("selection.count", { count: formatNumber(number) }) : t("selection.none");
    for (const each of buttons) each.disabled = isBusy || !number;
    all.hidden = picked.size >= tiles.count();
    const areKept = number > 0 && [...picked.values()].every((photo) => photo.kept);
    const keep = buttons[tiles.actions.indexOf("keep")];
    keep?.querySelector("span")?.replaceChildren(t(areKept ? "selection.unkeep" : "selection.keep"));
    if (keep) keep.title = t(areKept ? "selection.unkeep" : "selection.keep");
    for (const tile of node.querySelectorAll("[data-photo]")) dress(tile);
  }

  /** @param {Element} tile */
  function dress(tile) {
    const isPicked = picked.has(idOf(tile));
    tile.closest("li")?.classList.toggle("picked", isPicked);
    if (isOn) tile.setAttribute("aria-pressed", String(isPicked));
    else tile.removeAttribute("aria-pressed");
    tile.closest("li")?.querySelector(".tile-tool.select")?.setAttribute("aria-pressed", String(isPicked));
  }

  function begin() {
    if (isOn) return;
    isOn = true;
    document.body.append(bar);
    document.body.classList.add("selecting");
    draw();
  }

  function end() {
    if (!isOn) return;
    const hadFocus = bar.contains(document.activeElement);
    isOn = false;
    picked = new Map();
    bar.remove();
    document.body.classList.remove("selecting");
    draw();
    if (hadFocus) tiles.focusPlace(anchor);
  }

  // -------------------------------------------------------------------------------------------------------------- picking

  /** @param {number} place */
  function toggle(place) {
    const photo = tiles.at(place);
    if (!photo) return;
    begin();
    anchor = place;
    if (!picked.delete(photo.id)) picked.set(photo.id, photo);
    draw();
  }

  /**
   * Select a range beside what `before` has; what is not loaded follows in `complete`.
   *
   * @param {Map<number, PhotoItem>} before
   * @param {number} from
   * @param {number} to
   * @param {boolean} [isOff] deselect it
   */
  function range(before, from, to, isOff = false) {
    begin();
    picked = new Map(before);
    for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) {
      const photo = tiles.at(place);
      if (!photo) continue;
      if (isOff) picked.delete(photo.id);
      else picked.set(photo.id, photo);
    }
    draw();
  }

  /**
   * @param {number} from
   * @param {number} to
   * @param {boolean} [isOff]
   */
  async function complete(from, to, isOff = false) {
    const [first, last] = [Math.min(from, to), Math.max(from, to)];
    let isWhole = true;
    for (let place = first; place <= last; place += 1) isWhole &&= tiles.at(place) !== undefined;
    if (isWhole) return;
    const told = (/** @type {number} */ done) => {
      count.textContent = t("selection.loading", { count: formatNumber(done), total: formatNumber(last - first + 1) });
    };
    isBusy = true;
    draw();
    told(0);
    try {
      const found = await tiles.between(first, last + 1, told);
      if (!isOn || stopped) return;
      for (const photo of found) {
        if (isOff) picked.delete(photo.id);
        else picked.set(photo.id, photo);
      }
    } catch (error) {
      fail(error);
    } finally {
      isBusy = false;
      if (isOn) draw();
    }
  }

  /** @param {number} to */
  function extend(to) {
    range(picked, anchor, to);
    complete(anchor, to);
  }

  function selectAll() {
    if (!tiles.count()) return;
    range(picked, 0, tiles.count() - 1);
    complete(0, tiles.count() - 1);
  }

  // -------------------------------------------------------------------------------------------------------------- actions

  const ids = () => [...new Set([...picked.values()].flatMap(idsOf))];

  /** @param {Choice} name */
  async function perform(name, pressed = buttons[tiles.actions.indexOf(name)]) {
    const chosen = ids();
    if (!chosen.length || isBusy) return;
    const photos = [...picked.values()];
    const told = (/** @type {number} */ done, /** @type {number} */ total) => {
      if (total > 500) count.textContent = t("selection.progress", { done: formatNumber(done), total: formatNumber(total) });
    };
    const run = async (/** @type {() => Promise<unknown>} */ work) => {
      isBusy = true;
      draw();
      await settle(pressed, work, (isDone) => isDone !== false && end());
      isBusy = false;
      if (isOn) draw();
    };
    const number = formatNumber(chosen.length);
    if (name === "delete") {
      const question = { title: t("selection.delete"), text: t("selection.deleteText", { count: number }), action: t("selection.delete"), danger: true };
      if (await confirmDialog(question)) await run(() => changeMany(chosen, "delete", { told }));
    } else if (name === "download") await run(() => downloadMany(chosen, told));
    else if (name === "tag") askTag(number, (tag) => run(() => changeMany(chosen, "tag", { tag, changing: without(photos, (photo) => photo.tags.includes(tag)), told })));
    else if (name === "keep") {
      const areKept = photos.every((photo) => photo.kept);
      await run(() => changeMany(chosen, areKept ? "unkeep" : "keep", { changing: without(photos, (photo) => photo.kept !== areKept), told }));
    } else await run(() => changeMany(chosen, name, { told }));
  }

  /** @param {number} place */
  async function toggleKept(place) {
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

  const tileAt = (/** @type {unknown} */ target) => /** @type {HTMLElement | null} */ (/** @type {Element | null} */ (target)?.closest?.("li")?.querySelector("[data-photo]") ?? null);
  const placeOf = (/** @type {Element | null} */ tile) => (tile && node.contains(tile) ? tiles.placeOf(idOf(tile)) : -1);
  let isDragged = false; // the click at the end of a drag is none

  /** @param {MouseEvent} event */
  function onClick(event) {
    const taken = () => (event.preventDefault(), event.stopPropagation());
    if (isDragged) {
      isDragged = false;
      return taken();
    }
    const tool = /** @type {Element} */ (event.target).closest(".tile-tool");
    const place = placeOf(tileAt(event.target));
    if (place < 0) return;
    if (tool?.classList.contains("keep")) toggleKept(place);
    else if (event.shiftKey && (isOn || tool)) extend(place);
    else if (event.shiftKey) {
      anchor = Math.max(0, placeOf(tileAt(document.activeElement)));
      extend(place);
    } else if (tool || isOn || event.ctrlKey || event.metaKey) toggle(place);
    else return;
    taken();
  }

  /** @param {KeyboardEvent} event */
  function onTileKey(event) {
    const place = placeOf(tileAt(document.activeElement));
    if (place < 0 || event.altKey) return;
    const isArrow = event.key.startsWith("Arrow") || ["Home", "End", "PageUp", "PageDown"].includes(event.key);
    if (event.shiftKey && isArrow) return extend(place); // the list has moved the focus before this is called
    if (isArrow && !isOn) anchor = place;
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "x") toggle(place);
    else if (event.key === "s" && !isOn) toggleKept(place);
    else if (event.key === "Delete" && !isOn && tiles.actions.includes("trash")) trashPhoto(/** @type {PhotoItem} */ (tiles.at(place)).id);
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const isTyping = /** @type {Element} */ (event.target).matches?.("input, textarea, select, [contenteditable]");
    if (isTyping || document.querySelector("dialog[open], .menu")) return;
    const isAll = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a";
    if (isAll && tiles.count()) selectAll();
    else if (isOn && event.key === "Escape") end();
    else if (isOn && event.key === "Delete") perform(tiles.actions.includes("trash") ? "trash" : "delete");
    else if (isOn && event.key === "s" && !event.ctrlKey && !event.metaKey && tiles.actions.includes("keep")) perform("keep");
    else return;
    event.preventDefault();
  }

  // ------------------------------------------------------------------------------------------------------------- dragging

  /** @type {{ from: number, to: number, before: Map<number, PhotoItem>, isOff: boolean, x: number, y: number, frame: number } | null} */
  let drag = null;

  /**
   * @param {number} from
   * @param {{ clientX: number, clientY: number }} at
   */
  function startDrag(from, { clientX: x, clientY: y }) {
    const photo = tiles.at(from);
    drag = { from, to: from, before: new Map(picked), isOff: isOn && photo !== undefined && picked.has(photo.id), x, y, frame: 0 };
    anchor = from;
    range(drag.before, from, from, drag.isOff);
    document.body.classList.add("dragging");
    scrollAtEdge();
  }

  function dragOver() {
    if (!drag) return;
    const to = placeOf(tileAt(document.elementFromPoint(drag.x, drag.y)));
    if (to < 0 || to === drag.to) return;
    drag.to = to;
    range(drag.before, drag.from, to, drag.isOff);
  }

  function scrollAtEdge() {
    if (!drag) return;
    const top = SCROLL_EDGE + (document.querySelector(".selection-head")?.getBoundingClientRect().bottom ?? 0) - drag.y;
    const bottom = drag.y - (innerHeight - SCROLL_EDGE);
    const by = Math.max(top, bottom) > 0 ? Math.ceil((Math.min(Math.max(top, bottom), SCROLL_EDGE) / SCROLL_EDGE) * SCROLL_MOST) : 0;
    if (by) {
      scrollBy({ top: top > 0 ? -by : by, behavior: "instant" });
      dragOver();
    }
    drag.frame = requestAnimationFrame(scrollAtEdge);
  }

  function endDrag() {
    if (!drag) return;
    const { from, to, isOff, frame } = drag;
    cancelAnimationFrame(frame);
    drag = null;
    document.body.classList.remove("dragging");
    complete(from, to, isOff);
  }

  /** @type {{ x: number, y: number, place: number } | null} */
  let press = null;

  /** @param {PointerEvent} event */
  function onPointerDown(event) {
    isDragged = false;
    if (event.pointerType !== "mouse" || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const place = placeOf(tileAt(event.target));
    press = place < 0 ? null : { x: event.clientX, y: event.clientY, place };
  }

  /** @param {PointerEvent} event */
  function onPointerMove(event) {
    if (event.pointerType !== "mouse") return;
    if (drag) {
      [drag.x, drag.y] = [event.clientX, event.clientY];
      dragOver();
    } else if (press && Math.hypot(event.clientX - press.x, event.clientY - press.y) > DRAGGED) {
      startDrag(press.place, event);
      isDragged = true;
      press = null;
      getSelection()?.removeAllRanges();
    }
  }

  /** @param {PointerEvent} event */
  function onPointerUp(event) {
    if (event.pointerType !== "mouse") return;
    press = null;
    endDrag();
    if (isDragged) setTimeout(() => (isDragged = false)); // a drag that ends elsewhere is followed by no click on a tile
  }

  // A finger: held still it begins to select, and drags from there; moved it scrolls, as everywhere.
  let holding = 0;
  let held = { x: 0, y: 0 };
  const letGo = () => clearTimeout(holding);

  /** @param {TouchEvent} event */
  function onTouchStart(event) {
    letGo();
    const [touch] = event.touches;
    const place = placeOf(tileAt(event.target));
    if (event.touches.length > 1 || place < 0) return endDrag();
    held = { x: touch.clientX, y: touch.clientY };
    holding = setTimeout(() => {
      navigator.vibrate?.(10);
      isDragged = true;
      startDrag(place, touch);
    }, LONG_PRESS);
  }

  /** @param {TouchEvent} event */
  function onTouchMove(event) {
    const [touch] = event.touches;
    if (!drag) return Math.hypot(touch.clientX - held.x, touch.clientY - held.y) > STILL && letGo();
    event.preventDefault(); // it selects, and does not scroll
    [drag.x, drag.y] = [touch.clientX, touch.clientY];
    dragOver();
  }

  function onTouchEnd() {
    letGo();
    endDrag();
    setTimeout(() => (isDragged = false), 400); // where no click follows
  }

  // Tiles that come later, because the list was scrolled or fetched again, get their marks before they are painted.
  const watcher = new MutationObserver((changes) => {
    if (!isOn) return;
    for (const { addedNodes } of changes) {
      for (const added of addedNodes) if (added instanceof Element) for (const tile of added.querySelectorAll("[data-photo]")) dress(tile);
    }
  });
  watcher.observe(node, { childList: true, subtree: true });
  node.addEventListener("click", onClick, true); // before the tile opens its picture
  node.addEventListener("touchmove", onTouchMove, { passive: false });
  const unlisten = [
    listen(node, {
      keydown: onTileKey, pointerdown: onPointerDown, touchstart: onTouchStart, touchend: onTouchEnd, touchcancel: onTouchEnd,
      contextmenu: (event) => (drag || isDragged) && event.preventDefault(), // a long press opens no menu of the browser
    }),
    listen(window, { pointermove: onPointerMove, pointerup: onPointerUp }),
    listen(document, { keydown: onKey }),
  ];

  return {
    begin,
    stop() {
      stopped = true;
      end();
      letGo();
      if (drag) cancelAnimationFrame(drag.frame);
      drag = null;
      document.body.classList.remove("dragging");
      watcher.disconnect();
      node.removeEventListener("click", onClick, true);
      node.removeEventListener("touchmove", onTouchMove);
      for (const stop of unlisten) stop();
    },
  };
}

const idOf = (/** @type {Element} */ tile) => Number(tile.getAttribute("data-photo"));

/** The photos that a tile stands for: all of its stack. */
const idsOf = (/** @type {PhotoItem} */ photo) => photo.stack?.photo_ids ?? [photo.id];

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
  const form = h("form.stack", { on: { submit: send } }, input, suggestions, h("div.row.end", button(t("shell.cancel"), { click: () => handle.close() }), add));
  input.autofocus = true;
  const handle = dialog({ title: t("selection.tagTitle", { count: number }), body: form });
}
