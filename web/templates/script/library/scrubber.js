// The scrubber at the right edge of the timeline: years and months at the heights where they begin. Dragging it, by mouse or touch,
// shows the month in a bubble and scrolls there. For the keyboard it is a slider whose steps are months.

import { fill, h, listen } from "../base/dom.js";
import { formatMonth } from "../base/format.js";
import { t } from "../base/texts.js";

const LABEL_SPACE = 22; // px between two years, so that they can be read
const DOT_SPACE = 7;
const LINGER = 1400; // ms for which it stays after a scroll, on a touch screen

/**
 * @typedef {import("./photo-list.js").Section & { top: number }} Month
 * @param {() => { months: Month[], height: number }} measured
 * @param {HTMLElement} timeline
 * @param {() => number} covered px at the top of the window that the header covers
 */
export function scrubber(measured, timeline, covered) {
  const bubble = h("span.scrubber-bubble", { "aria-hidden": "true" });
  const thumb = h("span.scrubber-thumb");
  const marks = h("span.scrubber-marks", { "aria-hidden": "true" });
  const node = h(
    "div.scrubber",
    {
      role: "slider",
      tabindex: "0",
      hidden: true,
      "aria-orientation": "vertical",
      "aria-label": t("scrubber.label"),
      "aria-valuemin": "0",
    },
    thumb,
    marks,
    bubble,
  );
  /** @type {Month[]} */
  let months = [];
  let height = 0;
  let frame = 0;
  let lingering = 0;
  let drawn = "";
  let dragged = false;

  // Measured once for each frame and each event: to measure after a change makes the browser lay the page out again.
  let span = { start: 0, length: 1, track: 1 };

  /** Where the scrollable part begins and how long it is: from the first month until the last row is at the end of the window. */
  function measure() {
    const start = timeline.getBoundingClientRect().top + scrollY - covered();
    span = { start, length: Math.max(1, document.documentElement.scrollHeight - innerHeight - start), track: node.clientHeight };
  }
  const share = () => Math.min(1, Math.max(0, (scrollY - span.start) / span.length));
  /** The share of the way at which a month begins. */
  const shareOf = (/** @type {Month} */ month) => Math.min(1, month.top / span.length);
  const monthAt = (/** @type {number} */ at) => {
    const y = at * span.length;
    let found = 0;
    for (let index = 0; index < months.length; index += 1) if (months[index].top <= y + 24) found = index;
    return found;
  };

  function update() {
    frame = 0;
    if (!node.isConnected) return;
    ({ months, height } = measured());
    const isUseful = months.length > 1 && height > innerHeight;
    if (node.hidden === isUseful) node.hidden = !isUseful;
    if (!isUseful) return;
    const top = `${Math.round(Math.max(covered(), timeline.getBoundingClientRect().top)) + 12}px`; // not beside the strip
    if (node.style.top !== top) node.style.top = top;
    measure();
    const at = share();
    const current = monthAt(at);
    node.setAttribute("aria-valuemax", String(months.length - 1));
    node.setAttribute("aria-valuenow", String(current));
    node.setAttribute("aria-valuetext", formatMonth(months[current].month, null));
    thumb.style.transform = `translateY(${at * span.track}px)`;
    if (!node.matches(":hover") || dragged) showBubble(at);
    drawMarks();
  }

  function showBubble(/** @type {number} */ at) {
    bubble.textContent = formatMonth(months[monthAt(at)].month, null);
    bubble.style.transform = `translateY(${Math.min(span.track - 16, Math.max(16, at * span.track))}px)`;
  }

  function drawMarks() {
    const key = `${span.track} ${Math.round(span.length / 50)} ${months.length}`;
    if (key === drawn) return;
    drawn = key;
    let lastYear = "";
    let lastLabel = -LABEL_SPACE;
    let lastDot = -DOT_SPACE;
    fill(marks, months.map((month) => {
      const y = shareOf(month) * span.track;
      const year = month.month.slice(0, 4);
      const isNew = year !== lastYear && y - lastLabel >= LABEL_SPACE;
      if (isNew) [lastYear, lastLabel, lastDot] = [year, y, y];
      else if (y - lastDot < DOT_SPACE || y - lastLabel < LABEL_SPACE / 1.6) return null;
      else lastDot = y;
      return h("i", { class: isNew ? "year" : "", style: { transform: `translateY(${y}px)` }, text: isNew ? year : "" });
    }));
  }

  const soon = () => {
    frame ||= requestAnimationFrame(update);
  };
  const scrolled = () => {
    soon();
    node.classList.add("moving");
    clearTimeout(lingering);
    lingering = setTimeout(() => node.classList.remove("moving"), LINGER);
  };
  const jump = (/** @type {number} */ at) => {
    measure();
    showBubble(at);
    scrollTo({ top: span.start + at * span.length, behavior: "instant" });
  };
  const pointed = (/** @type {PointerEvent} */ event) =>
    Math.min(1, Math.max(0, (event.clientY - node.getBoundingClientRect().top) / span.track));
  const toMonth = (/** @type {number} */ index) => jump(shareOf(months[Math.max(0, Math.min(months.length - 1, index))]));

  const release = () => {
    dragged = false;
    node.classList.remove("dragged");
    scrolled();
  };
  listen(node, {
    pointerdown: (event) => {
      if (event.button) return;
      event.preventDefault();
      node.setPointerCapture(event.pointerId);
      dragged = true;
      node.classList.add("dragged");
      jump(pointed(event));
    },
    pointermove: (event) => (dragged ? jump(pointed(event)) : event.pointerType === "mouse" && showBubble(pointed(event))),
    pointerup: release,
    pointercancel: release,
    keydown: (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const current = monthAt(share());
      const year = (/** @type {number} */ by) => {
        const wanted = Number(months[current].month.slice(0, 4)) + by;
        const index = months.findIndex(({ month }) => Number(month.slice(0, 4)) <= wanted);
        return index < 0 ? months.length - 1 : index;
      };
      /** @type {Record<string, () => number>} */
      const targets = {
        ArrowUp: () => current - 1, ArrowLeft: () => current - 1, ArrowDown: () => current + 1, ArrowRight: () => current + 1,
        PageUp: () => year(1), PageDown: () => year(-1), Home: () => 0, End: () => months.length - 1,
      };
      if (!(event.key in targets)) return;
      event.preventDefault();
      toMonth(targets[event.key]());
    },
  });
  const unlisten = listen(window, { scroll: scrolled, resize: soon });
  return {
    node, update: soon,
    stop() {
      cancelAnimationFrame(frame);
      clearTimeout(lingering);
      unlisten();
    },
  };
}
