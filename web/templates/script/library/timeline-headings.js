// The headings of the timeline: its months and days. Only those near the screen exist.

import { h } from "../base/dom.js";
import { formatDay, formatMonth } from "../base/format.js";
import { dayOf } from "./photo-list.js";
import { DAY_LINE } from "./timeline-layout.js";

/** @typedef {Map<string, () => HTMLElement>} Wanted makes each heading, by what it says and where */

export class TimelineHeadings {
  /** @param {import("./timeline-layout.js").TimelineLayout} layout */
  constructor(layout) {
    this.layout = layout;
    this.node = h("div.timeline-heads");
    /** @type {Map<string, HTMLElement>} */
    this.shown = new Map();
  }

  /**
   * @param {number} from the first row in view
   * @param {number} to
   */
  render(from, to) {
    /** @type {Wanted} */
    const wanted = new Map();
    const now = new Date();
    this.#wantMonths(wanted, from, to, now);
    for (const row of this.layout.rows.slice(from, to)) if (row.line) this.#wantDays(wanted, row, now);
    for (const [key, heading] of this.shown) {
      if (wanted.has(key)) continue;
      heading.remove();
      this.shown.delete(key);
    }
    for (const [key, make] of wanted) {
      if (this.shown.has(key)) continue;
      const heading = make();
      this.shown.set(key, heading);
      this.node.append(heading);
    }
  }

  /**
   * @param {Wanted} wanted
   * @param {number} from
   * @param {number} to
   * @param {Date} now
   */
  #wantMonths(wanted, from, to, now) {
    const { months, rows, isSparse } = this.layout;
    for (const { month, start, count, top } of months) {
      if (!month || isSparse || !rows.length || start + count <= rows[from].place || start >= rows[to - 1].end) continue;
      const kind = start ? "timeline-month" : "timeline-month visually-hidden"; // its days name the first one
      wanted.set(`${month} ${top}`, () => placed(h("h2", { class: kind }, formatMonth(month, now)), 0, top));
    }
  }

  /**
   * @param {Wanted} wanted
   * @param {import("./timeline-layout.js").Row} row
   * @param {Date} now
   */
  #wantDays(wanted, row, now) {
    const { list, months, isSparse } = this.layout;
    const level = isSparse || !months[0]?.month ? "h2" : "h3"; // below that of its month, where months have headings
    for (let at = row.place; at < row.end;) {
      const photo = list.at(at);
      const day = photo && dayOf(photo);
      let end = at + 1;
      for (let next = list.at(end); end < row.end && next && dayOf(next) === day; next = list.at(end)) end += 1;
      const before = list.at(at - 1);
      if (day && (!before || dayOf(before) !== day || months.some(({ start }) => start === at))) {
        const x = this.layout.edges(at, row).left;
        const width = this.layout.edges(end - 1, row).right - x - 4;
        const y = Math.round(row.top) - DAY_LINE;
        wanted.set(`${day} ${x} ${y} ${width}`, () => placed(dayHeading(level, day, now, width, x === 0), x, y));
      }
      at = end;
    }
  }
}

/**
 * @param {HTMLElement} heading
 * @param {number} x
 * @param {number} y
 */
function placed(heading, x, y) {
  heading.style.transform = `translate(${x}px, ${y}px)`;
  return heading;
}

/**
 * @param {"h2" | "h3"} level
 * @param {string} day
 * @param {Date} now
 * @param {number} width px that it has
 * @param {boolean} isFirst in its row
 */
function dayHeading(level, day, now, width, isFirst) {
  const texts = [formatDay(day, now, "long"), formatDay(day, now, "short"), formatDay(day, now, "date")];
  const text = texts.find((each) => breadth(each) <= width) ?? texts[2];
  return h(level, { class: `timeline-day ${isFirst ? "first" : ""}`, title: texts[0], style: { width: `${width}px` }, text });
}

/**
 * About how wide a heading is, in px: measured, each would make the browser lay the page out.
 *
 * @param {string} text
 */
function breadth(text) {
  return [...text].reduce((width, character) => width + (character > "\u2e80" ? 14 : 8.3), 0);
}
