// The timeline: a virtual grid of all screenshots under the headings of their months and days. It has the height of all of them, but
// only the rows near the screen exist.
//
// A month begins on a new row (unless most months have only a few screenshots), and its days follow each other in the rows, so that
// the place of every tile follows from the months' counts. Only one thing is not known before a row is loaded: whether a day begins in
// it, which needs a line for its heading. That is estimated. When a row turns out higher or lower, the page is scrolled by the
// difference: what is on the screen stays where it is.

import { h, listen } from "../base/dom.js";
import { formatDay, formatMonth } from "../base/format.js";
import { dayOf } from "./photo-list.js";

const MONTH_LINE = 50; // px; the first month of the list has less space above it
const FIRST_LINE = 38;
const DAY_LINE = 32;
const LEAST_TILE = 138; // px; on a phone there are three columns, whatever their width
const PORTRAIT = 1.28; // height of a tile by its width
const ROWS_BEYOND = 2; // rows above and below the screen
const SETTLE = 90; // ms: a drag of the scroll bar does not request every page on its way
const SPARSE = 0.7; // rows of a month, on average
const DAYS_OF_MONTH = 22; // with screenshots in them: the estimate for months that are not loaded

/** @typedef {{ place: number, end: number, top: number, line: number }} Row `top` is that of its tiles, below the `line` of its headings */

/**
 * @param {import("./photo-list.js").PhotoList} list
 * @param {(photo: PhotoItem, props: Props) => HTMLElement} draw makes a tile
 * @param {() => number} covered px at the top of the window that the header covers
 * @param {(photo: PhotoItem) => Child} [tools] makes what is over a tile
 */
export function timeline(list, draw, covered, tools) {
  const heads = h("div.timeline-heads");
  const tilesNode = h("ul.list");
  const node = h("div.timeline", heads, tilesNode);
  /** @type {Map<number, { element: HTMLElement, content: HTMLElement, photo: PhotoItem | undefined }>} */
  const tiles = new Map(); // by place
  /** @type {Map<string, HTMLElement>} */
  const headings = new Map();
  /** @type {Row[]} */
  let rows = [];
  /** @type {(import("./photo-list.js").Section & { top: number })[]} */
  let months = [];
  let height = 0;
  let isSparse = false;
  let shape = { columns: 3, width: 0, height: 0, gap: 0, whole: 0 };
  let active = 0; // the only tile in the tab order; arrow keys move it (roving tabindex)
  let settling = 0;
  let frame = 0;
  let stopped = false;

  function measure() {
    const gap = parseFloat(getComputedStyle(node).columnGap) || 4;
    const whole = node.clientWidth;
    const columns = Math.max(3, Math.floor((whole + gap) / (LEAST_TILE + gap)));
    const width = (whole - gap * (columns - 1)) / columns;
    shape = { columns, width, height: Math.round(width * PORTRAIT), gap, whole };
  }

  /** Whether a day begins in this row; undefined where that is not known yet. */
  function dayBegins(/** @type {number} */ place, /** @type {number} */ end) {
    let before = list.at(place - 1);
    for (let at = place; at < end; at += 1) {
      const photo = list.at(at);
      if (!photo || !before) return undefined;
      if (dayOf(photo) !== dayOf(before)) return true;
      before = photo;
    }
    return false;
  }

  function arrange() {
    rows = [];
    months = [];
    let top = 0;
    const sections = list.sections();
    // Few screenshots in many months would be mostly empty rows: then the days, whose headings name their month, follow each other.
    isSparse = (list.count ?? 0) < sections.length * shape.columns * SPARSE;
    for (const section of isSparse ? [{ month: "", start: 0, count: list.count ?? 0 }] : sections) {
      const { start, count } = section;
      if (!isSparse) months.push({ ...section, top });
      if (section.month) top += months.length === 1 ? FIRST_LINE : MONTH_LINE;
      const lines = Math.ceil(count / shape.columns);
      const guess = DAY_LINE * Math.min(1, DAYS_OF_MONTH / lines);
      for (let place = start; place < start + count; place += shape.columns) {
        const end = Math.min(place + shape.columns, start + count);
        const begins = place === start || (list.at(place) === undefined ? undefined : dayBegins(place, end));
        const line = begins === undefined ? guess : begins ? DAY_LINE : 0;
        rows.push({ place, end, top: top + line, line });
        top += line + shape.height + shape.gap;
      }
    }
    height = Math.max(0, top - shape.gap);
    if (isSparse) months = sections.map((section) => ({ ...section, top: rows[rowOf(section.start)].top - DAY_LINE }));
  }

  /** The index of the first row that ends below `y`. */
  function rowAt(/** @type {number} */ y) {
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].top + shape.height < y) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, rows.length - 1));
  }

  /** The index of the row of a place. */
  function rowOf(/** @type {number} */ place) {
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (rows[middle].place <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * The first row from `index` on, and above `bottom`, that shows screenshots: those must not move, while a row that still waits
   * for its own may. Where all wait, it is the row at `index`.
   */
  function rowDrawn(/** @type {number} */ index, /** @type {number} */ bottom) {
    for (let at = index; at < rows.length && rows[at].top < bottom; at += 1) if (tiles.get(rows[at].place)?.photo) return rows[at];
    return rows[index];
  }

  /** The data, or the width, has changed: arrange the rows anew, and keep what is on the screen where it is. */
  function changed() {
    if (stopped || !node.isConnected) return;
    const above = node.getBoundingClientRect().top;
    const edge = covered() - above;
    const row = rowDrawn(rowAt(edge), innerHeight - above);
    const anchor = row && edge > 0 ? { id: list.at(row.place)?.id, place: row.place, top: row.top } : null;
    arrange();
    node.style.height = `${height}px`;
    if (anchor && rows.length) {
      const moved = anchor.id === undefined ? -1 : list.placeOf(anchor.id);
      const place = moved < 0 ? Math.min(anchor.place, rows[rows.length - 1].end - 1) : moved;
      const by = rows[rowOf(place)].top - anchor.top;
      if (Math.abs(by) >= 1) scrollBy({ top: by, behavior: "instant" });
    }
    render();
  }

  function rowsInView() {
    const top = -node.getBoundingClientRect().top;
    return [Math.max(0, rowAt(top) - ROWS_BEYOND), Math.min(rows.length, rowAt(top + innerHeight) + 1 + ROWS_BEYOND)];
  }

  /**
   * The places of the rows in view, and of the next ones.
   *
   * @returns {[number, number]}
   */
  function inView() {
    if (!rows.length) return [0, 1];
    const [from, to] = rowsInView();
    return [rows[from].place, rows[to - 1].end];
  }

  function render() {
    frame = 0;
    if (stopped || !node.isConnected) return;
    const count = list.count ?? 0;
    active = Math.min(active, Math.max(0, count - 1));
    const [from, to] = rows.length ? rowsInView() : [0, 0];
    /** @type {Map<number, Row>} */
    const wanted = new Map(); // by place
    const want = (/** @type {Row} */ row) => {
      for (let place = row.place; place < row.end; place += 1) wanted.set(place, row);
    };
    for (const row of rows.slice(from, to)) want(row);
    const first = rows[from]?.place ?? 0;
    const isActiveShown = wanted.has(active);
    if (tilesNode.contains(document.activeElement) && rows.length) wanted.set(active, rows[rowOf(active)]); // the focused tile must not be removed
    for (const [place, tile] of tiles) {
      if (wanted.has(place)) continue;
      tile.element.remove();
      tiles.delete(place);
    }
    let missing = false;
    /** @type {HTMLElement | null} */
    let before = null;
    for (const [place, row] of [...wanted].sort(([one], [other]) => one - other)) {
      const photo = list.at(place);
      let tile = tiles.get(place);
      if (!tile || tile.photo !== photo) {
        const hadFocus = tile?.element.contains(document.activeElement);
        tile?.element.remove();
        const content = photo ? draw(photo, { tabindex: "-1" }) : h("div.skeleton.photo-waiting", { tabindex: "-1" });
        tile = { photo, content, element: h("li.photo-place", content, photo && tools?.(photo)) };
        tiles.set(place, tile);
        if (before) before.after(tile.element); // keep the DOM in the order of the grid
        else tilesNode.prepend(tile.element);
        if (hadFocus) content.focus({ preventScroll: true });
      }
      before = tile.element;
      missing ||= !photo;
      const { style } = tile.element;
      style.width = `${shape.width}px`;
      style.height = `${shape.height}px`;
      style.transform = `translate(${left(place, row)}px, ${row.top}px)`;
      tile.element.setAttribute("aria-setsize", String(count));
      tile.element.setAttribute("aria-posinset", String(place + 1));
      if (photo) tile.content.tabIndex = place === active || (!isActiveShown && place === first) ? 0 : -1;
    }
    renderHeadings(from, to);
    if (missing) settling ||= setTimeout(fetchMissing, SETTLE);
  }

  const left = (/** @type {number} */ place, /** @type {Row} */ row) => (place - row.place) * (shape.width + shape.gap);

  /**
   * @param {number} from the first row in view
   * @param {number} to
   */
  function renderHeadings(from, to) {
    /** @type {Map<string, () => HTMLElement>} */
    const wanted = new Map();
    const now = new Date();
    const place = (/** @type {HTMLElement} */ heading, /** @type {number} */ x, /** @type {number} */ y) => (heading.style.transform = `translate(${x}px, ${y}px)`, heading);
    for (const { month, start, count, top } of months) {
      if (!month || isSparse || !rows.length || start + count <= rows[from].place || start >= rows[to - 1].end) continue;
      wanted.set(`${month} ${top}`, () => place(h("h2.timeline-month", formatMonth(month, now)), 0, top));
    }
    for (const row of rows.slice(from, to)) {
      if (!row.line) continue;
      for (let at = row.place; at < row.end;) {
        const photo = list.at(at);
        const day = photo && dayOf(photo);
        let end = at + 1;
        for (let next = list.at(end); end < row.end && next && dayOf(next) === day; next = list.at(end)) end += 1;
        const before = list.at(at - 1);
        if (day && (!before || dayOf(before) !== day || months.some(({ start }) => start === at))) {
          const width = (end - at) * (shape.width + shape.gap) - 8;
          const x = left(at, row);
          const y = row.top - DAY_LINE;
          wanted.set(`${day} ${x} ${y} ${width}`, () => {
            const texts = [formatDay(day, now, "long"), formatDay(day, now, "short"), formatDay(day, now, "date")];
            const shown = texts.find((text) => breadth(text) <= width) ?? texts[2];
            return place(h("h3", { class: `timeline-day ${x ? "" : "first"}`, title: texts[0], style: { width: `${width}px` }, text: shown }), x, y);
          });
        }
        at = end;
      }
    }
    for (const [key, heading] of headings) {
      if (wanted.has(key)) continue;
      heading.remove();
      headings.delete(key);
    }
    for (const [key, make] of wanted) {
      if (headings.has(key)) continue;
      const heading = make();
      headings.set(key, heading);
      heads.append(heading);
    }
  }

  function soon() {
    frame ||= requestAnimationFrame(render);
  }

  function fetchMissing() {
    settling = 0;
    if (!stopped && rows.length) list.want(...inView());
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !rows.length) return;
    const row = rowOf(active);
    const column = active - rows[row].place;
    const screenful = Math.max(1, Math.floor((innerHeight - covered()) / (shape.height + DAY_LINE)));
    const down = (/** @type {number} */ by) => {
      const target = rows[Math.min(rows.length - 1, Math.max(0, row + by))];
      return Math.min(target.place + column, target.end - 1);
    };
    /** @type {Record<string, () => number>} */
    const targets = {
      ArrowLeft: () => active - 1, ArrowRight: () => active + 1, ArrowUp: () => (row ? down(-1) : active), ArrowDown: () => down(1),
      PageUp: () => down(-screenful), PageDown: () => down(screenful), Home: () => 0, End: () => (list.count ?? 1) - 1,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    focusPlace(targets[event.key]());
  }

  /** @param {number} place */
  function focusPlace(place) {
    active = Math.max(0, Math.min(place, (list.count ?? 0) - 1));
    if (!rows.length) return;
    reveal(active);
    render();
    tiles.get(active)?.content.focus({ preventScroll: true });
  }

  /** Scroll so that a place is on the screen. */
  function reveal(/** @type {number} */ place) {
    const row = rows[rowOf(place)];
    const top = node.getBoundingClientRect().top + row.top - row.line;
    const edge = covered() + 8;
    const below = innerHeight - 72; // the bar at the bottom of a phone
    if (top < edge) scrollBy({ top: top - edge, behavior: "instant" });
    else if (top + row.line + shape.height > below) scrollBy({ top: Math.min(top - edge, top + row.line + shape.height - below), behavior: "instant" });
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
    if (node.clientWidth === shape.whole) return;
    measure();
    changed();
  });
  sized.observe(node);
  node.addEventListener("keydown", onKey);
  node.addEventListener("focusin", (event) => {
    for (const [place, tile] of tiles) if (tile.element.contains(/** @type {Node} */ (event.target))) active = place;
  });
  const unlisten = listen(window, { scroll: soon, resize: soon });

  return {
    node, changed, focus, focusPlace, inView,
    /** The months with their tops, and the height of all, in px. */
    months: () => ({ months, height }),
    /** Whether something on the screen waits for its analysis. */
    shown: () => [...tiles.values()].flatMap(({ photo }) => photo ?? []),
    stop() {
      stopped = true;
      clearTimeout(settling);
      cancelAnimationFrame(frame);
      sized.disconnect();
      unlisten();
    },
  };
}

/**
 * About how wide a heading is, in px: measured, each would make the browser lay the page out.
 *
 * @param {string} text
 */
function breadth(text) {
  return [...text].reduce((width, character) => width + (character > "\u2e80" ? 14 : 8.3), 0);
}
