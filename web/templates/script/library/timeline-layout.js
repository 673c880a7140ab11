// Where the rows of the timeline are.
//
// The tiles of a row have one height, and their true widths between 1:1.4 and 2:1; what is taller or wider is cropped. A month begins on a
// new row (unless most months have only a few screenshots), and its days follow each other in the rows. The rows are cut from pieces of
// about a page of the list, each by itself: when one is loaded, the rows of the others stay as they are. Where a piece is not loaded, its
// rows, and the lines for the headings of its days, are estimated.

import { dayOf, LIST_PAGE } from "./photo-list.js";

const MONTH_LINE = 50; // px; the first month of the list has none: its days name it
export const DAY_LINE = 32;
const CAPTION_LINE = 44; // below a tile: its title, and its app and time
const NARROWEST = 1 / 1.4; // width of a tile by its height
const WIDEST = 2;
const ASSUMED = 0.74; // of a screenshot that is not loaded
const PHONE = 600; // px
const LEAST = 0.45; // of the usual height
const TALLEST = 1.5;
const SPARSE = 0.7; // rows of a month, on average
const DAYS_OF_MONTH = 22; // with screenshots in them: the estimate for months that are not loaded

/**
 * A row of the piece between the places `from` and `to`; `top` is that of its tiles, below the `line` of its headings.
 *
 * @typedef {{ place: number, end: number, from: number, to: number, top: number, line: number, height: number }} Row
 */

export class TimelineLayout {
  /** @param {import("./photo-list.js").PhotoList} list */
  constructor(list) {
    this.list = list;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {(import("./photo-list.js").Section & { top: number })[]} */
    this.months = [];
    this.height = 0;
    this.isSparse = false;
    this.shape = { height: 0, gap: 4, whole: 0, caption: 0 }; // `height` is what rows should have about
  }

  /**
   * @param {HTMLElement} node
   * @param {boolean} hasCaptions
   */
  measure(node, hasCaptions) {
    const gap = parseFloat(getComputedStyle(node).columnGap) || 4;
    const whole = node.clientWidth;
    // A phone has two columns with captions, and three without.
    const columns = hasCaptions ? 2 : 3;
    const height = whole < PHONE ? (whole / columns - gap) / NARROWEST : Math.min(280, 160 + whole / 21);
    this.shape = { height: Math.round(height), gap, whole, caption: hasCaptions ? CAPTION_LINE : 0 };
  }

  arrange() {
    const { list, shape } = this;
    this.rows = [];
    this.months = [];
    const count = list.count ?? 0;
    const sections = list.sections();
    // Few screenshots in many months would be mostly empty rows: then the days, whose headings name their month, follow each other.
    const columns = shape.whole / (shape.height * ASSUMED + shape.gap);
    this.isSparse = count < sections.length * columns * SPARSE;
    let top = 0;
    for (const section of this.isSparse ? [{ month: "", start: 0, count }] : sections) {
      if (!this.isSparse) this.months.push({ ...section, top });
      if (section.month && this.months.length > 1) top += MONTH_LINE;
      top = this.#arrangeSection(section.start, section.start + section.count, top);
    }
    this.height = Math.max(0, top - shape.gap);
    if (this.isSparse) this.months = sections.map((section) => ({ ...section, top: this.rows[this.rowOf(section.start)].top - DAY_LINE }));
  }

  /**
   * @param {number} start
   * @param {number} end
   * @param {number} top
   */
  #arrangeSection(start, end, top) {
    const { list, shape } = this;
    const first = this.rows.length;
    for (let from = start; from < end;) {
      const to = this.#pieceEnd(from, end);
      this.#cut(from, to, to === end);
      from = to;
    }
    const rows = this.rows.slice(first);
    const guess = DAY_LINE * Math.min(1, DAYS_OF_MONTH / rows.length);
    for (const row of rows) {
      const begins = row.place === start || (list.at(row.place) === undefined ? undefined : this.#dayBegins(row.place, row.end));
      row.line = begins === undefined ? guess : begins ? DAY_LINE : 0;
      row.top = Math.round(top + row.line); // whole px, so that the page can be scrolled by a difference
      top = row.top + Math.round(row.height) + shape.caption + shape.gap;
    }
    return top;
  }

  /**
   * Where the piece that begins at `from` ends: at the end of a page of the list, and not too soon after its beginning or before the end.
   *
   * @param {number} from
   * @param {number} end
   */
  #pieceEnd(from, end) {
    const size = LIST_PAGE * Math.max(1, Math.round(this.shape.whole / 1400));
    let to = (Math.floor(from / size) + 1) * size;
    if (to - from < size / 2) to += size;
    return end - to < size / 2 ? end : to;
  }

  /**
   * Cut the tiles of a piece into rows that fill the width, with the heights that differ least from the usual one. Only the last row of a
   * month may be shorter.
   *
   * @param {number} from
   * @param {number} to
   * @param {boolean} isLast
   */
  #cut(from, to, isLast) {
    const isLoaded = this.list.at(from) !== undefined && this.list.at(to - 1) !== undefined;
    const ends = isLoaded ? this.#bestEnds(from, to, isLast) : this.#assumedEnds(from, to);
    let place = from;
    for (const end of ends) {
      const filling = this.#filling(place, end);
      const most = isLoaded && !(isLast && end === to) ? TALLEST : 1;
      const height = Math.min(filling, most * this.shape.height);
      this.rows.push({ place, end, from, to, top: 0, line: 0, height });
      place = end;
    }
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  #assumedEnds(from, to) {
    const { height, gap, whole } = this.shape;
    const inRow = Math.max(1, Math.round((whole + gap) / (ASSUMED * height + gap)));
    const count = Math.ceil((to - from) / inRow);
    return Array.from({ length: count }, (_, number) => Math.min(to, from + (number + 1) * inRow));
  }

  /**
   * The least sum of squared differences, found from the first place to the last: the best rows up to a place are one more row after the
   * best rows up to an earlier one.
   *
   * @param {number} from
   * @param {number} to
   * @param {boolean} isLast
   */
  #bestEnds(from, to, isLast) {
    const { height, gap, whole } = this.shape;
    const best = [{ cost: 0, before: from }];
    for (let end = from + 1; end <= to; end += 1) {
      let found = { cost: Infinity, before: from };
      let ratios = 0;
      for (let place = end - 1; place >= from; place -= 1) {
        ratios += this.ratio(place);
        const filling = (whole - gap * (end - place - 1)) / ratios;
        if (filling < LEAST * height && place < end - 1) break;
        const isShort = isLast && end === to && filling > height;
        const cost = best[place - from].cost + (isShort ? 0 : Math.log(filling / height) ** 2);
        if (cost < found.cost) found = { cost, before: place };
      }
      best.push(found);
    }
    const ends = [];
    for (let end = to; end > from; end = best[end - from].before) ends.push(end);
    return ends.reverse();
  }

  /**
   * The height at which these tiles fill the width.
   *
   * @param {number} from
   * @param {number} to
   */
  #filling(from, to) {
    const { gap, whole } = this.shape;
    let ratios = 0;
    for (let place = from; place < to; place += 1) ratios += this.ratio(place);
    return (whole - gap * (to - from - 1)) / ratios;
  }

  /**
   * The width of a tile by its height.
   *
   * @param {number} place
   */
  ratio(place) {
    const photo = this.list.at(place);
    return photo ? Math.min(WIDEST, Math.max(NARROWEST, photo.width / photo.height || ASSUMED)) : ASSUMED;
  }

  /**
   * Whether a day begins in this row; undefined where that is not known yet.
   *
   * @param {number} place
   * @param {number} end
   */
  #dayBegins(place, end) {
    let before = this.list.at(place - 1);
    for (let at = place; at < end; at += 1) {
      const photo = this.list.at(at);
      if (!photo || !before) return undefined;
      if (dayOf(photo) !== dayOf(before)) return true;
      before = photo;
    }
    return false;
  }

  /**
   * The index of the first row that ends below `y`.
   *
   * @param {number} y
   */
  rowAt(y) {
    const { rows } = this;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].top + rows[middle].height < y) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, Math.max(0, rows.length - 1));
  }

  /**
   * The index of the row of a place.
   *
   * @param {number} place
   */
  rowOf(place) {
    const { rows } = this;
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
   * The left and right edge of a tile, in whole px.
   *
   * @param {number} place
   * @param {Row} row
   */
  edges(place, row) {
    const { gap } = this.shape;
    let left = 0;
    for (let before = row.place; before < place; before += 1) left += this.ratio(before) * row.height + gap;
    return { left: Math.round(left), right: Math.round(left + this.ratio(place) * row.height) };
  }

  /**
   * The place in a row that is nearest to `x`.
   *
   * @param {Row} row
   * @param {number} x
   */
  placeNear(row, x) {
    let found = row.place;
    for (let place = row.place; place < row.end; place += 1) if (this.edges(place, row).left <= x) found = place;
    return found;
  }

  /**
   * The place to which a key leads; undefined for other keys.
   *
   * @param {string} key
   * @param {number} place
   * @param {number} screen its height
   */
  target(key, place, screen) {
    const { rows } = this;
    const row = this.rowOf(place);
    const { left, right } = this.edges(place, rows[row]);
    const to = (/** @type {number} */ index) =>
      index < 0 || index >= rows.length ? place : this.placeNear(rows[index], (left + right) / 2);
    /** @type {Record<string, () => number>} */
    const targets = {
      ArrowLeft: () => place - 1, ArrowRight: () => place + 1, ArrowUp: () => to(row - 1), ArrowDown: () => to(row + 1),
      PageUp: () => to(Math.max(0, Math.min(row - 1, this.rowAt(rows[row].top - screen) + 1))),
      PageDown: () => to(Math.min(rows.length - 1, Math.max(row + 1, this.rowAt(rows[row].top + screen) - 1))),
      Home: () => 0, End: () => (this.list.count ?? 1) - 1,
    };
    return targets[key]?.();
  }
}
