// The details on a phone: a sheet at the lower edge with three heights, moved by its handle, by a finger, or by the keyboard.
// The picture above it stays usable.

import { h } from "../base/dom.js";
import { t } from "../base/texts.js";

/** @typedef {"peek" | "half" | "full"} SheetLevel */

/** @type {SheetLevel[]} */
const LEVELS = ["peek", "half", "full"];
const HALF = 0.46; // of the height
const FULL_GAP = 56; // px that a full sheet leaves free, for the bar
const SHEET_FLICK = 0.4; // px in a ms

/**
 * Make `node` a sheet with `head` always visible and `content` below it.
 *
 * @param {HTMLElement} node
 * @param {HTMLElement} head
 * @param {HTMLElement} content
 * @param {(level: SheetLevel) => unknown} changed
 */
export function bottomSheet(node, head, content, changed) {
  /** @type {SheetLevel} */
  let level = "peek";
  let isOn = false;
  /** @type {{ y: number, height: number, time: number, moved: boolean } | null} */
  let drag = null;
  const handle = h("button.sheet-handle", { type: "button", label: t("sheet.handle"), "aria-expanded": "false" });
  head.prepend(handle);

  const room = () => node.parentElement?.clientHeight ?? innerHeight;
  /** @param {SheetLevel} at */
  const heightAt = (at) => ({ peek: head.offsetHeight, half: Math.round(room() * HALF), full: room() - FULL_GAP })[at];

  /** @param {SheetLevel} next */
  function set(next) {
    level = next;
    if (isOn) node.style.height = `${heightAt(level)}px`;
    else node.style.removeProperty("height");
    node.classList.toggle("peek", isOn && level === "peek");
    content.inert = isOn && level === "peek"; // what is below the edge of the screen takes no focus
    handle.setAttribute("aria-expanded", String(level !== "peek"));
    changed(level);
  }

  /** @param {number} steps */
  function step(steps) {
    set(LEVELS[Math.max(0, Math.min(LEVELS.length - 1, LEVELS.indexOf(level) + steps))]);
  }

  handle.addEventListener("click", () => set(level === "peek" ? "half" : level === "half" ? "full" : "peek"));
  handle.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    event.preventDefault();
    event.stopPropagation();
    step(event.key === "ArrowUp" ? 1 : -1);
  });
  head.addEventListener("pointerdown", (event) => {
    if (isOn && event.isPrimary) drag = { y: event.clientY, height: node.offsetHeight, time: event.timeStamp, moved: false };
  });
  head.addEventListener("pointermove", (event) => {
    if (!drag || !event.isPrimary) return;
    const gone = drag.y - event.clientY;
    if (!drag.moved && Math.abs(gone) < 6) return;
    if (!drag.moved) head.setPointerCapture(event.pointerId); // from here on it is no press of a button
    drag.moved = true;
    node.classList.add("dragged");
    node.style.height = `${Math.max(heightAt("peek"), Math.min(heightAt("full"), drag.height + gone))}px`;
  });
  const release = (/** @type {PointerEvent} */ event) => {
    if (!drag || !event.isPrimary) return;
    const { moved, y, time } = drag;
    drag = null;
    if (!moved) return;
    node.classList.remove("dragged");
    const speed = (y - event.clientY) / Math.max(1, event.timeStamp - time);
    const height = node.offsetHeight;
    if (speed > SHEET_FLICK) return set(LEVELS.find((at) => heightAt(at) >= height) ?? "full");
    if (speed < -SHEET_FLICK) return set(LEVELS.findLast((at) => heightAt(at) <= height) ?? "peek");
    set(LEVELS.reduce((best, at) => (Math.abs(heightAt(at) - height) < Math.abs(heightAt(best) - height) ? at : best)));
  };
  head.addEventListener("pointerup", release);
  head.addEventListener("pointercancel", release);

  return {
    set,
    level: () => level,
    /** The part of the screen that it covers, in px; a full sheet leaves the picture as it is under a half one. */
    covers: () => (isOn ? heightAt(level === "full" ? "half" : level) : 0),
    /** @param {boolean} wanted whether it is a sheet, and not a panel at the side */
    turn(wanted) {
      isOn = wanted;
      handle.hidden = !wanted;
      set("peek");
    },
    /** The size of the screen has changed. */
    refit: () => isOn && set(level),
  };
}
