// The timeline: a virtual grid of all screenshots under the headings of their months and days. It has the height of all of them, but
// only the rows near the screen exist.
//
// Where its rows are is in part an estimate (timeline-layout.js). When a row turns out higher or lower, the page is scrolled by the
// difference: what is on the screen stays where it is.

import { h, listen } from "../base/dom.js";
import { TimelineHeadings } from "./timeline-headings.js";
import { hasCaptions, tileCaption } from "./tile.js";
import { TimelineLayout } from "./timeline-layout.js";

const ROWS_BEYOND = 2; // rows above and below the screen
const SETTLE = 90; // ms: a drag of the scroll bar does not request every page on its way

/**
 * @typedef {import("./photo-list.js").PhotoList} PhotoList
 * @typedef {import("./timeline-layout.js").Row} Row
 * @typedef {(photo: PhotoItem, props: Props) => HTMLElement} Draw makes a tile
 * @typedef {(photo: PhotoItem) => Child} Tools makes what is over a tile
 */

/** The tiles that exist. */
class TimelineTiles {
  /**
   * @param {TimelineLayout} layout
   * @param {Draw} draw
   * @param {Tools} [tools]
   */
  constructor(layout, draw, tools) {
    this.layout = layout;
    this.draw = draw;
    this.tools = tools;
    this.node = h("ul.list");
    /** @type {Map<number, { element: HTMLElement, content: HTMLElement, photo: PhotoItem | undefined }>} */
    this.byPlace = new Map();
  }

  /**
   * Draw the tiles of these places, and remove all others. Returns whether some of their photos are not loaded.
   *
   * @param {Map<number, Row>} wanted the row of each place
   * @param {Set<number>} reached places whose tiles are in the tab order
   */
  render(wanted, reached) {
    for (const [place, tile] of this.byPlace) {
      if (wanted.has(place)) continue;
      tile.element.remove();
      this.byPlace.delete(place);
    }
    const { list, shape } = this.layout;
    let isMissing = false;
    /** @type {HTMLElement | null} */
    let before = null;
    for (const [place, row] of [...wanted].sort(([one], [other]) => one - other)) {
      const { element, content, photo } = this.#tileAt(place, before);
      before = element;
      isMissing ||= !photo;
      const { left, right } = this.layout.edges(place, row);
      element.style.width = `${right - left}px`;
      element.style.height = `${Math.round(row.height) + shape.caption}px`;
      element.style.transform = `translate(${left}px, ${Math.round(row.top)}px)`;
      element.setAttribute("aria-setsize", String(list.count ?? 0));
      element.setAttribute("aria-posinset", String(place + 1));
      if (photo) content.tabIndex = reached.has(place) ? 0 : -1;
    }
    return isMissing;
  }

  clear() {
    this.byPlace.clear();
    this.node.replaceChildren();
  }

  /**
   * The tile of a place, made anew where its photo is another one.
   *
   * @param {number} place
   * @param {HTMLElement | null} before the tile before it
   */
  #tileAt(place, before) {
    const photo = this.layout.list.at(place);
    const known = this.byPlace.get(place);
    if (known && known.photo === photo) return known;
    const hadFocus = known?.element.contains(document.activeElement);
    known?.element.remove();
    const content = photo ? this.draw(photo, { tabindex: "-1" }) : h("div.skeleton.photo-waiting", { tabindex: "-1" });
    const caption = photo && this.layout.shape.caption > 0 && tileCaption(photo);
    const tile = { photo, content, element: h("li.photo-place", content, photo && this.tools?.(photo), caption) };
    this.byPlace.set(place, tile);
    if (before) before.after(tile.element); // keep the DOM in the order of the grid
    else this.node.prepend(tile.element);
    if (hadFocus) content.focus({ preventScroll: true });
    return tile;
  }

  /**
   * The first row from `index` on, and above `bottom`, that shows screenshots: those must not move, while a row that still waits
   * for its own may. Where all wait, it is the row at `index`.
   *
   * @param {number} index
   * @param {number} bottom
   */
  firstDrawn(index, bottom) {
    const { rows } = this.layout;
    for (let at = index; at < rows.length && rows[at].top < bottom; at += 1) if (this.byPlace.get(rows[at].place)?.photo) return rows[at];
    return rows[index];
  }
}

/**
 * @param {PhotoList} list
 * @param {Draw} draw
 * @param {() => number} covered px at the top of the window that the header covers
 * @param {Tools} [tools]
 */
export function timeline(list, draw, covered, tools) {
  const layout = new TimelineLayout(list);
  const headings = new TimelineHeadings(layout);
  const tiles = new TimelineTiles(layout, draw, tools);
  const node = h("div.timeline", headings.node, tiles.node);
  let active = 0; // the only tile in the tab order; arrow keys move it (roving tabindex)
  let settling = 0;
  let frame = 0;
  let stopped = false;

  /** The width, or what is below the tiles, has changed. */
  function measure() {
    const { caption } = layout.shape;
    layout.measure(node, hasCaptions());
    if (caption !== layout.shape.caption) tiles.clear();
    changed();
  }

  /** The data, or the width, has changed: arrange the rows anew, and keep what is on the screen where it is. */
  function changed() {
    if (stopped || !node.isConnected) return;
    const above = node.getBoundingClientRect().top;
    const edge = covered() - above;
    const row = tiles.firstDrawn(layout.rowAt(edge), innerHeight - above);
    const anchor = row && edge > 0 ? { id: list.at(row.place)?.id, place: row.place, top: row.top } : null;
    layout.arrange();
    const { rows, height } = layout;
    node.style.height = `${height}px`;
    if (anchor && rows.length) {
      const moved = anchor.id === undefined ? -1 : list.placeOf(anchor.id);
      const place = moved < 0 ? Math.min(anchor.place, rows[rows.length - 1].end - 1) : moved;
      const by = rows[layout.rowOf(place)].top - anchor.top;
      if (Math.abs(by) >= 1) scrollBy({ top: by, behavior: "instant" });
    }
    render();
  }

  function rowsInView() {
    const top = -node.getBoundingClientRect().top;
    return [Math.max(0, layout.rowAt(top) - ROWS_BEYOND), Math.min(layout.rows.length, layout.rowAt(top + innerHeight) + 1 + ROWS_BEYOND)];
  }

  /**
   * The places of the rows in view, and of the next ones, with the rest of their pieces.
   *
   * @returns {[number, number]}
   */
  function inView() {
    const { rows } = layout;
    if (!rows.length) return [0, 1];
    const [from, to] = rowsInView();
    return [rows[from].from, rows[to - 1].to];
  }

  function render() {
    frame = 0;
    if (stopped || !node.isConnected) return;
    const { rows } = layout;
    active = Math.min(active, Math.max(0, (list.count ?? 0) - 1));
    const [from, to] = rows.length ? rowsInView() : [0, 0];
    /** @type {Map<number, Row>} */
    const wanted = new Map(); // by place
    for (const row of rows.slice(from, to)) for (let place = row.place; place < row.end; place += 1) wanted.set(place, row);
    const reached = new Set(wanted.has(active) ? [active] : [active, rows[from]?.place]);
    // The focused tile must not be removed.
    if (tiles.node.contains(document.activeElement) && rows.length) wanted.set(active, rows[layout.rowOf(active)]);
    const isMissing = tiles.render(wanted, reached);
    headings.render(from, to);
    if (isMissing) settling ||= setTimeout(fetchMissing, SETTLE);
  }

  function soon() {
    frame ||= requestAnimationFrame(render);
  }

  function fetchMissing() {
    settling = 0;
    if (!stopped && layout.rows.length) list.want(...inView());
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !layout.rows.length) return;
    const target = layout.target(event.key, active, innerHeight - covered());
    if (target === undefined) return;
    event.preventDefault();
    focusPlace(target);
  }

  /** @param {number} place */
  function focusPlace(place) {
    active = Math.max(0, Math.min(place, (list.count ?? 0) - 1));
    if (!layout.rows.length) return;
    reveal(active);
    render();
    tiles.byPlace.get(active)?.content.focus({ preventScroll: true });
  }

  /** Scroll so that a place is on the screen. */
  function reveal(/** @type {number} */ place) {
    const row = layout.rows[layout.rowOf(place)];
    const height = row.height + layout.shape.caption;
    const top = node.getBoundingClientRect().top + row.top - row.line;
    const edge = covered() + 8;
    const below = innerHeight - 72; // the bar at the bottom of a phone
    if (top < edge) scrollBy({ top: top - edge, behavior: "instant" });
    else if (top + row.line + height > below) scrollBy({ top: Math.min(top - edge, top + row.line + height - below), behavior: "instant" });
  }

  /**
   * Focus this photo, or the one that took its place when it is hidden. It is scrolled to, however far away it is.
   *
   * @param {number} id
   */
  async function focus(id) {
    const place = await list.locate(id).catch(() => -1);
    if (place >= 0 && !stopped) focusPlace(place);
  }

  const sized = new ResizeObserver(() => {
    if (node.clientWidth !== layout.shape.whole) measure();
  });
  sized.observe(node);
  node.addEventListener("keydown", onKey);
  node.addEventListener("focusin", (event) => {
    for (const [place, tile] of tiles.byPlace) if (tile.element.contains(/** @type {Node} */ (event.target))) active = place;
  });
  const unlisten = listen(window, { scroll: soon, resize: soon });

  return {
    node, changed, focus, focusPlace, inView, measure,
    /** The months with their tops, and the height of all, in px. */
    months: () => ({ months: layout.months, height: layout.height }),
    /** Whether something on the screen waits for its analysis. */
    shown: () => [...tiles.byPlace.values()].flatMap(({ photo }) => photo ?? []),
    stop() {
      stopped = true;
      clearTimeout(settling);
      cancelAnimationFrame(frame);
      sized.disconnect();
      unlisten();
    },
  };
}
