// Selecting by dragging over tiles: with the mouse, and with a finger after a long press. Near the edge of the window it scrolls.

import { listen } from "../base/dom.js";

const DRAGGED = 7; // px from which on a press with the mouse is a drag
const LONG_PRESS = 420; // ms
const STILL = 10; // px that a finger may move meanwhile
const SCROLL_EDGE = 70; // px from the edge of the window in which a drag scrolls
const SCROLL_MOST = 22; // px in a frame

/**
 * The tile that an element belongs to.
 *
 * @param {unknown} target
 */
export function tileAt(target) {
  const place = /** @type {Element | null} */ (target)?.closest?.("li");
  return /** @type {HTMLElement | null} */ (place?.querySelector("[data-photo]") ?? null);
}

export class TileDrag {
  /** @type {{ from: number, to: number, before: Map<number, PhotoItem>, isOff: boolean, x: number, y: number, frame: number } | null} */
  #drag = null;
  #isDragged = false; // the click at the end of a drag is none
  /** @type {{ x: number, y: number, place: number } | null} */
  #press = null; // of the mouse
  #holding = 0; // the timer of a finger that is held still
  #held = { x: 0, y: 0 };

  /** @param {import("./selection.js").TileSelection} selection */
  constructor(selection) {
    this.selection = selection;
    const { node } = selection.tiles;
    const onTouchMove = (/** @type {TouchEvent} */ event) => this.#onTouchMove(event);
    const onTouchEnd = () => this.#onTouchEnd();
    node.addEventListener("touchmove", onTouchMove, { passive: false });
    this.unlisten = [
      () => node.removeEventListener("touchmove", onTouchMove),
      listen(node, {
        pointerdown: (event) => this.#onPointerDown(event),
        touchstart: (event) => this.#onTouchStart(event), touchend: onTouchEnd, touchcancel: onTouchEnd,
        contextmenu: (event) => (this.#drag || this.#isDragged) && event.preventDefault(), // a long press opens no menu of the browser
      }),
      listen(window, { pointermove: (event) => this.#onPointerMove(event), pointerup: (event) => this.#onPointerUp(event) }),
    ];
  }

  stop() {
    this.#letGo();
    if (this.#drag) cancelAnimationFrame(this.#drag.frame);
    this.#drag = null;
    document.body.classList.remove("dragging");
    for (const stop of this.unlisten) stop();
  }

  /** Whether this click is the end of a drag. */
  endsByClick() {
    const wasDragged = this.#isDragged;
    this.#isDragged = false;
    return wasDragged;
  }

  /**
   * @param {number} from
   * @param {{ clientX: number, clientY: number }} at
   */
  #start(from, { clientX: x, clientY: y }) {
    const { selection } = this;
    const photo = selection.tiles.at(from);
    const isOff = selection.isOn && photo !== undefined && selection.picked.has(photo.id);
    this.#drag = { from, to: from, before: new Map(selection.picked), isOff, x, y, frame: 0 };
    selection.anchor = from;
    selection.range(this.#drag.before, from, from, isOff);
    document.body.classList.add("dragging");
    this.#scrollAtEdge();
  }

  #over() {
    const drag = this.#drag;
    if (!drag) return;
    const to = this.selection.placeOf(tileAt(document.elementFromPoint(drag.x, drag.y)));
    if (to < 0 || to === drag.to) return;
    drag.to = to;
    this.selection.range(drag.before, drag.from, to, drag.isOff);
  }

  #scrollAtEdge() {
    const drag = this.#drag;
    if (!drag) return;
    const top = SCROLL_EDGE + (document.querySelector(".selection-head")?.getBoundingClientRect().bottom ?? 0) - drag.y;
    const bottom = drag.y - (innerHeight - SCROLL_EDGE);
    const by = Math.max(top, bottom) > 0 ? Math.ceil((Math.min(Math.max(top, bottom), SCROLL_EDGE) / SCROLL_EDGE) * SCROLL_MOST) : 0;
    if (by) {
      scrollBy({ top: top > 0 ? -by : by, behavior: "instant" });
      this.#over();
    }
    drag.frame = requestAnimationFrame(() => this.#scrollAtEdge());
  }

  #end() {
    if (!this.#drag) return;
    const { from, to, isOff, frame } = this.#drag;
    cancelAnimationFrame(frame);
    this.#drag = null;
    document.body.classList.remove("dragging");
    this.selection.complete(from, to, isOff);
  }

  // ------------------------------------------------------------------------------------------------------------ the mouse

  /** @param {PointerEvent} event */
  #onPointerDown(event) {
    this.#isDragged = false;
    if (event.pointerType !== "mouse" || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const place = this.selection.placeOf(tileAt(event.target));
    this.#press = place < 0 ? null : { x: event.clientX, y: event.clientY, place };
  }

  /** @param {PointerEvent} event */
  #onPointerMove(event) {
    if (event.pointerType !== "mouse") return;
    const press = this.#press;
    if (this.#drag) {
      [this.#drag.x, this.#drag.y] = [event.clientX, event.clientY];
      this.#over();
    } else if (press && Math.hypot(event.clientX - press.x, event.clientY - press.y) > DRAGGED) {
      this.#start(press.place, event);
      this.#isDragged = true;
      this.#press = null;
      getSelection()?.removeAllRanges();
    }
  }

  /** @param {PointerEvent} event */
  #onPointerUp(event) {
    if (event.pointerType !== "mouse") return;
    this.#press = null;
    this.#end();
    if (this.#isDragged) setTimeout(() => (this.#isDragged = false)); // a drag that ends elsewhere is followed by no click on a tile
  }

  // ------------------------------------------ a finger: held still it begins to select; moved it scrolls, as everywhere

  #letGo() {
    clearTimeout(this.#holding);
  }

  /** @param {TouchEvent} event */
  #onTouchStart(event) {
    this.#letGo();
    const [touch] = event.touches;
    const place = this.selection.placeOf(tileAt(event.target));
    if (event.touches.length > 1 || place < 0) return this.#end();
    this.#held = { x: touch.clientX, y: touch.clientY };
    this.#holding = setTimeout(() => {
      navigator.vibrate?.(10);
      this.#isDragged = true;
      this.#start(place, touch);
    }, LONG_PRESS);
  }

  /** @param {TouchEvent} event */
  #onTouchMove(event) {
    const [touch] = event.touches;
    if (!this.#drag) return Math.hypot(touch.clientX - this.#held.x, touch.clientY - this.#held.y) > STILL && this.#letGo();
    event.preventDefault(); // it selects, and does not scroll
    [this.#drag.x, this.#drag.y] = [touch.clientX, touch.clientY];
    this.#over();
  }

  #onTouchEnd() {
    this.#letGo();
    this.#end();
    setTimeout(() => (this.#isDragged = false), 400); // where no click follows
  }
}
