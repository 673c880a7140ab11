// Where the rows of the timeline are.
//
// A month begins on a new row (unless most months have only a few screenshots), and its days follow each other in the rows, so that
// the place of every tile follows from the months' counts. Only one thing is not known before a row is loaded: whether a day begins in
// it, which needs a line for its heading. That is estimated.

import { dayOf } from "./photo-list.js";

const MONTH_LINE = 50; // px; the first month of the list has less space above it
const FIRST_LINE = 38;
export const DAY_LINE = 32;
const LEAST_TILE = 138; // px; on a phone there are three columns, whatever their width
const PORTRAIT = 1.28; // height of a tile by its width
const SPARSE = 0.7; // rows of a month, on average
const DAYS_OF_MONTH = 22; // with screenshots in them: the estimate for months that are not loaded

/** @typedef {{ place: number, end: number, top: number, line: number }} Row `top` is that of its tiles, below the `line` of its headings */

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
    this.shape = { columns: 3, width: 0, height: 0, gap: 0, whole: 0 };
  }

  /** @param {HTMLElement} node */
  measure(node) {
    const gap = parseFloat(getComputedStyle(node).columnGap) || 4;
    const whole = node.clientWidth;
    const columns = Math.max(3, Math.floor((whole + gap) / (LEAST_TILE + gap)));
    const width = (whole - gap * (columns - 1)) / columns;
    this.shape = { columns, width, height: Math.round(width * PORTRAIT), gap, whole };
  }

  arrange() {
    const { list, shape } = this;
    this.rows = [];
    this.months = [];
    let top = 0;
    const sections = list.sections();
    // Few screenshots in many months would be mostly empty rows: then the days, whose headings name their month, follow each other.
    this.isSparse = (list.count ?? 0) < sections.length * shape.columns * SPARSE;
    for (const section of this.isSparse ? [{ month: "", start: 0, count: list.count ?? 0 }] : sections) {
      const { start, count } = section;
      if (!this.isSparse) this.months.push({ ...section, top });
      if (section.month) top += this.months.length === 1 ? FIRST_LINE : MONTH_LINE;
      const lines = Math.ceil(count / shape.columns);
      const guess = DAY_LINE * Math.min(1, DAYS_OF_MONTH / lines);
      for (let place = start; place < start + count; place += shape.columns) {
        const end = Math.min(place + shape.columns, start + count);
        const begins = place === start || (list.at(place) === undefined ? undefined : this.#dayBegins(place, end));
        const line = begins === undefined ? guess : begins ? DAY_LINE : 0;
        this.rows.push({ place, end, top: top + line, line });
        top += line + shape.height + shape.gap;
      }
    }
    this.height = Math.max(0, top - shape.gap);
    if (this.isSparse) this.months = sections.map((section) => ({ ...section, top: this.rows[this.rowOf(section.start)].top - DAY_LINE }));
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
    const { rows, shape } = this;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (rows[middle].top + shape.height < y) low = middle + 1;
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
   * The left edge of a tile, in px.
   *
   * @param {number} place
   * @param {Row} row
   */
  left(place, row) {
    return (place - row.place) * (this.shape.width + this.shape.gap);
  }
}
