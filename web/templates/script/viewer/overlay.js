// What lies over a picture on its stage: the recognised lines as transparent text that can be selected, spots for what can be opened
// or copied, and the matches of a search. All of it is placed in pixels of the picture, so one transform moves it with the picture.
//
// The mouse selects by the lines' boxes and not by the browser's own hit test: between two absolutely placed lines that one falls
// back to the first or last line of all, and the selection flickers.

import { h } from "../base/dom.js";

const FONT = "sans-serif";
const MEASURED = 100; // px: the size at which a text is measured; its width grows in proportion
const LONGEST_MEASURED = 2000; // characters
const CODE_LINE = 14; // as in engines/codes.py: the line of a code is at its lower edge, and this part of its width high

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/** @param {string} text */
function widthOf(text) {
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text.length * MEASURED;
  ruler.font = `${MEASURED}px ${FONT}`;
  return ruler.measureText(text.slice(0, LONGEST_MEASURED)).width;
}

/** @typedef {{ type: string, value: string, href: string | null }} Target something in the text that can be opened or copied */

/**
 * @param {LineFields[]} lines in reading order
 * @param {{ width: number, height: number }} size of the picture, in its pixels
 */
export function textLayer(lines, size) {
  const node = h("div.viewer-lines", { "aria-hidden": "true" }); // the panel has the text for screen readers
  const rows = lines.filter(({ text }) => text).map((line) => {
    const box = {
      left: line.left * size.width,
      top: line.top * size.height,
      width: line.width * size.width,
      height: line.height * size.height,
    };
    const element = h("span.viewer-line", { text: line.text });
    const natural = (widthOf(line.text) / MEASURED) * box.height;
    Object.assign(element.style, {
      left: `${box.left}px`, top: `${box.top}px`, fontSize: `${box.height}px`, lineHeight: `${box.height}px`,
      transform: `scaleX(${natural > 0 ? box.width / natural : 1})`,
    });
    node.append(element);
    return { line, box, element, text: /** @type {Text} */ (element.firstChild) };
  });
  /** @type {{ row: number, at: number } | null} */
  let anchor = null;

  /**
   * The row nearest to a point of the picture, and the place in its text.
   *
   * @param {{ x: number, y: number }} point
   */
  function caret({ x, y }) {
    const beyond = (/** @type {number} */ at, /** @type {number} */ from, /** @type {number} */ length) =>
      Math.max(from - at, 0, at - from - length);
    let row = 0;
    let least = Infinity;
    rows.forEach(({ box }, number) => {
      // Lines above and below are nearer than a column at the side.
      const far = beyond(x, box.left, box.width) + 2 * beyond(y, box.top, box.height);
      if (far < least) [row, least] = [number, far];
    });
    return { row, at: placeIn(rows[row].line.text, (x - rows[row].box.left) / rows[row].box.width) };
  }

  /**
   * @param {{ row: number, at: number }} from
   * @param {{ row: number, at: number }} to
   */
  function choose(from, to) {
    getSelection()?.setBaseAndExtent(rows[from.row].text, from.at, rows[to.row].text, to.at);
  }

  return {
    node,
    rows,
    /** @param {{ x: number, y: number }} point of the picture */
    isText: ({ x, y }) => rows.some(({ box }) => x >= box.left && x <= box.left + box.width && y >= box.top && y <= box.top + box.height),
    /**
     * A press of the mouse begins here: the first marks a place, the second a word, the third the line.
     *
     * @param {{ x: number, y: number }} point
     * @param {number} clicks
     * @param {boolean} extends_ with Shift, the selection grows to here
     */
    begin(point, clicks, extends_) {
      const place = caret(point);
      const { text } = rows[place.row].line;
      if (extends_ && anchor && anchor.row < rows.length) choose(anchor, place);
      else if (clicks > 2) choose(anchor = { row: place.row, at: 0 }, { row: place.row, at: text.length });
      else if (clicks === 2) {
        const [from, to] = wordAt(text, place.at);
        choose(anchor = { row: place.row, at: from }, { row: place.row, at: to });
      } else choose(anchor = place, place);
    },
    /** @param {{ x: number, y: number }} point */
    extend(point) {
      if (anchor) choose(anchor, caret(point));
    },
    selectAll() {
      if (rows.length) choose({ row: 0, at: 0 }, { row: rows.length - 1, at: rows[rows.length - 1].line.text.length });
    },
    /** The selected part of the lines as they were read, one a row; "" when nothing of them is selected. */
    selected() {
      const selection = getSelection();
      if (!selection || selection.isCollapsed || !selection.rangeCount) return "";
      const range = selection.getRangeAt(0);
      return rows.filter(({ text }) => range.intersectsNode(text)).map(({ line, text }) =>
        line.text.slice(range.startContainer === text ? range.startOffset : 0, range.endContainer === text ? range.endOffset : undefined))
        .filter(Boolean).join("\n");
    },
    /**
     * The places of `targets` in the lines: the first line that holds each, or its parts where it continues in the next line.
     *
     * @param {Target[]} targets
     */
    places: (targets) => targets.flatMap((target) => placesOf(target, rows)),
  };
}

/** @typedef {ReturnType<typeof textLayer>} TextLayer */

/**
 * The offset in `text` at this fraction of its width.
 *
 * @param {string} text
 * @param {number} fraction
 */
function placeIn(text, fraction) {
  if (fraction <= 0) return 0;
  if (fraction >= 1) return text.length;
  const wanted = fraction * widthOf(text);
  let [low, high] = [0, text.length];
  while (low < high) {
    const half = (low + high) >> 1;
    if (widthOf(text.slice(0, half + 1)) < wanted) low = half + 1;
    else high = half;
  }
  const before = widthOf(text.slice(0, low));
  const after = widthOf(text.slice(0, low + 1));
  const at = wanted - before > after - wanted ? low + 1 : low;
  return /[\uDC00-\uDFFF]/.test(text[at] ?? "") ? at + 1 : at; // not within a character of two units
}

/**
 * The word around `at`. Chinese words are found too.
 *
 * @param {string} text
 * @param {number} at
 * @returns {[number, number]}
 */
function wordAt(text, at) {
  const found = new Intl.Segmenter(undefined, { granularity: "word" }).segment(text).containing(Math.min(at, text.length - 1));
  return found ? [found.index, found.index + found.segment.length] : [0, text.length];
}

/** @param {Box} box in pixels of the picture */
const isOfCode = ({ width, height }) => Math.abs(height - Math.max(8, Math.floor(width / CODE_LINE))) < 0.5;

/**
 * The whole code, of which only the line at its lower edge is known: a square, or the bars of a number.
 *
 * @param {string} content
 * @param {Box} box of its line
 */
function codeAbove(content, { left, top, width, height }) {
  const tall = Math.min(top + height, /^\d+$/.test(content) ? width / 2 : width);
  return { left, top: top + height - tall, width, height: tall };
}

/**
 * @param {Target} target
 * @param {TextLayer["rows"]} rows
 */
function placesOf(target, rows) {
  const wanted = target.value.toLowerCase();
  const coded = rows.slice(rows.findLastIndex(({ box }) => !isOfCode(box)) + 1); // the codes follow what was read
  for (const { line, box } of rows) {
    if (line.text === target.value && coded.some((row) => row.line === line)) return [{ target, ...codeAbove(line.text, box) }];
    const text = line.text.toLowerCase();
    const at = text.length === line.text.length ? text.indexOf(wanted) : line.text.indexOf(target.value);
    if (at < 0) continue;
    const whole = widthOf(line.text) || 1;
    const from = widthOf(line.text.slice(0, at)) / whole;
    const to = widthOf(line.text.slice(0, at + wanted.length)) / whole;
    return [{ target, left: box.left + from * box.width, top: box.top, width: (to - from) * box.width, height: box.height }];
  }
  return [];
}

/**
 * The spots of what can be opened or copied. They are for the mouse and the finger: the panel lists the same for the keyboard and
 * for screen readers.
 *
 * @param {ReturnType<TextLayer["places"]>} places
 */
export function spotLayer(places) {
  return h("div.viewer-spots", { "aria-hidden": "true" }, places.map(({ target, left, top, width, height }) => {
    const room = Math.min(height * 0.2, 12);
    const spot = h("span.viewer-spot", {
      dataset: { kind: target.type },
      style: { left: `${left - room}px`, top: `${top - room}px`, width: `${width + 2 * room}px`, height: `${height + 2 * room}px` },
    });
    spotTargets.set(spot, target);
    return spot;
  }));
}

/** @type {WeakMap<Element, Target>} */
const spotTargets = new WeakMap();

/**
 * The spot at this place of the screen, and what it stands for.
 *
 * @param {number} x
 * @param {number} y
 */
export function spotAt(x, y) {
  const spot = /** @type {HTMLElement | null} */ (document.elementFromPoint(x, y)?.closest(".viewer-spot"));
  const target = spot && spotTargets.get(spot);
  return target ? { spot, target } : null;
}

/**
 * The matches of a search.
 *
 * @param {Box[]} boxes in fractions of the picture
 */
export function markLayer(boxes) {
  const percent = (/** @type {number} */ part) => `${part * 100}%`;
  return h("div.viewer-marks", { "aria-hidden": "true" }, boxes.map(({ left, top, width, height }) =>
    h("span.viewer-mark", { style: { left: percent(left), top: percent(top), width: percent(width), height: percent(height) } })));
}
