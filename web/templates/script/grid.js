// A virtual grid: it has the height of all photos, but only the rows near the screen exist. Pages of data are fetched when their
// place comes into view, and requests for places that are scrolled past are aborted.

import { wasAborted } from "./api.js";
import { hiddenPhotos, UNFINISHED } from "./detail.js";
import { h, listen } from "./dom.js";
import { photoEvents } from "./upload.js";

export const GRID_PAGE = 60; // photos in one request
const ROWS_BEYOND = 2; // rows above and below the screen
const SETTLE = 90; // ms: a drag of the scroll bar does not request every page on its way

/**
 * @param {object} options
 * @param {(number: number, signal: AbortSignal) => Promise<{ total: number, items: PhotoItem[] }>} options.fetchPage
 * @param {(photo: PhotoItem, props: Props) => HTMLElement} options.draw makes a tile
 * @param {(total: number) => void} options.counted is told how many there are
 * @param {(error: unknown) => void} options.failed
 */
export function photoGrid({ fetchPage, draw, counted, failed }) {
  const node = h("ul.list.photo-grid");
  /** @type {Map<number, { element: HTMLElement, content: HTMLElement, photo: PhotoItem | undefined }>} */
  const tiles = new Map(); // by place
  /** @type {Map<number, AbortController>} */
  const loading = new Map(); // by page number
  /** @type {PhotoItem[]} */
  let known = []; // in the server's order; sparse
  /** @type {number | null} */
  let total = null;
  let shape = { columns: 1, width: 0, height: 0, gap: 0 };
  let active = 0; // the only tile in the tab order; arrow keys move it (roving tabindex)
  /** @type {number | null} */
  let told = null;
  /** @type {number | null} */
  let settling = null;
  /** @type {number | null} */
  let frame = null;
  let stopped = false;

  // Photos that wait for their deletion are hidden: the grid does not count them, the server does.
  const hiddenPlaces = () => (hiddenPhotos.size ? known : []).flatMap((photo, place) => (hiddenPhotos.has(photo.id) ? [place] : []));
  const shownTotal = () => Math.max(0, (total ?? 0) - hiddenPlaces().length);
  /** @type {(place: number, hidden: number[]) => number} */
  const serverPlace = (place, hidden) => hidden.reduce((at, skipped) => (skipped <= at ? at + 1 : at), place);

  function measure() {
    const gap = parseFloat(getComputedStyle(node).columnGap) || 14;
    const width = node.clientWidth;
    const columns = Math.max(2, Math.floor((width + gap) / (190 + gap)));
    const tile = Math.floor((width - gap * (columns - 1)) / columns);
    shape = { columns, width: tile, height: Math.round(tile * 1.06) + 98, gap };
  }

  function inView() {
    const row = shape.height + shape.gap;
    const top = -node.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / row) - ROWS_BEYOND);
    const last = Math.ceil((top + innerHeight) / row) + ROWS_BEYOND;
    return [Math.min(first * shape.columns, shownTotal()), Math.min(last * shape.columns, shownTotal())];
  }

  function render() {
    frame = null;
    if (stopped || !node.isConnected || total === null) return;
    const count = shownTotal();
    const row = shape.height + shape.gap;
    node.style.height = `${Math.max(0, Math.ceil(count / shape.columns) * row - shape.gap)}px`;
    const [first, end] = inView();
    active = Math.min(active, Math.max(0, count - 1));
    const hidden = hiddenPlaces();
    const focused = node.contains(document.activeElement);
    const wanted = new Set(Array.from({ length: end - first }, (_, at) => first + at));
    if (focused && count) wanted.add(active); // the focused tile must not be removed
    for (const [place, tile] of tiles) {
      if (wanted.has(place)) continue;
      tile.element.remove();
      tiles.delete(place);
    }
    let missing = false;
    /** @type {HTMLElement | null} */
    let before = null;
    for (const place of [...wanted].sort((a, b) => a - b)) {
      const photo = known[serverPlace(place, hidden)];
      let tile = tiles.get(place);
      if (!tile || tile.photo !== photo) {
        const hadFocus = tile?.element.contains(document.activeElement);
        tile?.element.remove();
        const content = photo ? draw(photo, { tabindex: "-1" }) : h("div.skeleton.photo-waiting", { tabindex: "-1" });
        tile = { photo, content, element: h("li.photo-place", content) };
        tiles.set(place, tile);
        if (before) before.after(tile.element); // keep the DOM in the order of the grid
        else node.prepend(tile.element);
        if (hadFocus) content.focus({ preventScroll: true });
      }
      before = tile.element;
      missing ||= !photo;
      const { style } = tile.element;
      style.width = `${shape.width}px`;
      style.height = `${shape.height}px`;
      style.transform = `translate(${(place % shape.columns) * (shape.width + shape.gap)}px, ${Math.floor(place / shape.columns) * row}px)`;
      tile.element.setAttribute("aria-setsize", String(count));
      tile.element.setAttribute("aria-posinset", String(place + 1));
      if (photo) tile.content.tabIndex = place === active || (!wanted.has(active) && place === first) ? 0 : -1;
    }
    if (missing) settling ??= setTimeout(fetchMissing, SETTLE);
  }

  function recount() {
    if (total !== null && told !== shownTotal()) counted((told = shownTotal()));
    soon();
  }

  function soon() {
    frame ??= requestAnimationFrame(render);
  }

  function fetchMissing() {
    settling = null;
    if (stopped) return;
    const [first, end] = inView();
    const hidden = hiddenPlaces();
    const pages = new Set();
    for (let place = first; place < end; place += 1) {
      const at = serverPlace(place, hidden);
      if (!known[at] && at < (total ?? 0)) pages.add(Math.floor(at / GRID_PAGE) + 1);
    }
    for (const [number, request] of loading) if (!pages.has(number)) request.abort();
    for (const number of pages) if (!loading.has(number)) fetchOne(number);
  }

  /** @param {number} number */
  async function fetchOne(number) {
    const request = new AbortController();
    loading.set(number, request);
    try {
      const found = await fetchPage(number, request.signal);
      if (request.signal.aborted || stopped) return;
      found.items.forEach((photo, at) => keep((number - 1) * GRID_PAGE + at, photo));
      total = found.total;
      known.length = Math.min(known.length, total);
      recount();
    } catch (error) {
      if (!wasAborted(error) && !stopped) failed(error);
    } finally {
      if (loading.get(number) === request) loading.delete(number);
    }
  }

  /**
   * Keep the old object where the data has not changed, so that its tile is not redrawn.
   *
   * @param {number} place
   * @param {PhotoItem} photo
   */
  function keep(place, photo) {
    if (JSON.stringify(known[place]) !== JSON.stringify(photo)) known[place] = photo;
  }

  /** Fetch the pages in view again while the old ones stay on the screen. Pages out of view are dropped. */
  async function refresh() {
    const [first, end] = total === null ? [0, 1] : inView();
    const from = Math.floor(first / GRID_PAGE) + 1;
    const to = Math.max(from, Math.floor(Math.max(0, end - 1) / GRID_PAGE) + 1);
    for (const request of loading.values()) request.abort();
    loading.clear();
    /** @type {PhotoItem[]} */
    const fresh = [];
    known.slice((from - 1) * GRID_PAGE, to * GRID_PAGE).forEach((photo, at) => (fresh[(from - 1) * GRID_PAGE + at] = photo));
    known = fresh;
    await Promise.all(Array.from({ length: to - from + 1 }, (_, at) => fetchOne(from + at)));
  }

  /** @param {number} id */
  function find(id) {
    return known.findIndex((photo) => photo?.id === id);
  }

  /**
   * The id of the next (1) or previous (-1) photo that is loaded and not hidden, or null.
   *
   * @param {number} id
   * @param {number} step
   */
  function neighbour(id, step) {
    let place = find(id);
    if (place < 0) return null;
    do place += step;
    while (known[place] && hiddenPhotos.has(known[place].id));
    return known[place]?.id ?? null;
  }

  /** @param {CustomEvent<number>} event */
  function onDeleted({ detail: id }) {
    const place = find(id);
    if (place < 0 || total === null) return;
    known.splice(place, 1);
    total -= 1;
    recount();
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const page = Math.max(1, Math.floor(innerHeight / (shape.height + shape.gap))) * shape.columns;
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -shape.columns, ArrowDown: shape.columns, PageUp: -page, PageDown: page, Home: -active, End: shownTotal() - 1 - active };
    if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    focusPlace(Math.max(0, active + steps[event.key]));
  }

  /** @param {number} place */
  function focusPlace(place) {
    active = Math.min(place, shownTotal() - 1);
    if (active < 0) return;
    reveal(active);
    render();
    tiles.get(active)?.content.focus({ preventScroll: true });
  }

  /**
   * Focus this photo, or the one that took its place when it is hidden.
   *
   * @param {number} id
   */
  function focus(id) {
    const at = find(id);
    if (at >= 0) focusPlace(at - hiddenPlaces().filter((place) => place < at).length);
  }

  /** @param {number} place */
  function reveal(place) {
    const top = node.getBoundingClientRect().top + Math.floor(place / shape.columns) * (shape.height + shape.gap);
    if (top < 90) scrollBy(0, top - 90);
    else if (top + shape.height > innerHeight - 90) scrollBy(0, top + shape.height - innerHeight + 90);
  }

  const sized = new ResizeObserver(() => {
    measure();
    soon();
  });
  sized.observe(node);
  node.addEventListener("keydown", onKey);
  node.addEventListener("focusin", (event) => {
    for (const [place, tile] of tiles) if (tile.element.contains(/** @type {Node} */ (event.target))) active = place;
  });
  const unlisten = [listen(window, { scroll: soon, resize: soon }), listen(photoEvents, { hidden: recount, restored: recount, deleted: onDeleted })];

  return {
    node, refresh, neighbour, focus, soon,
    unfinished: () => [...tiles.values()].some(({ photo }) => UNFINISHED.includes(photo?.analysis_status)),
    total: () => total,
    stop() {
      stopped = true;
      clearTimeout(settling ?? 0);
      cancelAnimationFrame(frame ?? 0);
      sized.disconnect();
      for (const end of unlisten) end();
      for (const request of loading.values()) request.abort();
    },
  };
}
