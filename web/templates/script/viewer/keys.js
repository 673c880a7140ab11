// The keys of the viewer.

import { uncover } from "./veil.js";
import { ZOOM_STEP } from "./zoom.js";

/** @typedef {import("./viewer.js").Viewer} Viewer */

const PAN_STEP = 90; // px, of an arrow key

/** @param {Viewer} viewer */
export function listenToKeys(viewer) {
  const { node, content } = viewer.frame;
  const keys = keysOf(viewer);
  node.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (event.key === "Tab") viewer.frame.setBare(false);
    if (target.matches("input, textarea")) return; // own words are typed
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
      event.preventDefault();
      return selectText(viewer);
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && viewer.veil.isCovered() && !target.closest("button, a")) {
      event.preventDefault();
      return uncover(viewer.id);
    }
    const isScrolled = /Arrow[UD]|Page/.test(event.key) && content.contains(target);
    const run = isScrolled ? undefined : keys[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
  const isScrolling = (/** @type {Event} */ event) => content.contains(/** @type {Node} */ (event.target));
  node.addEventListener("wheel", (event) => isScrolling(event) || event.preventDefault(), { passive: false });
  node.addEventListener("cancel", (event) => {
    event.preventDefault();
    viewer.leave();
  });
}

/**
 * @param {Viewer} viewer
 * @returns {Record<string, () => unknown>}
 */
function keysOf({ slides, neighbours, frame, actions, isTrash }) {
  const { stage } = frame;
  const move = (/** @type {number} */ dx, /** @type {number} */ dy) => slides.glide((zoom) => zoom.move(dx, dy));
  return {
    "ArrowLeft": () => neighbours.turn(-1),
    "ArrowRight": () => neighbours.turn(1),
    "Shift+ArrowLeft": () => move(PAN_STEP, 0),
    "Shift+ArrowRight": () => move(-PAN_STEP, 0),
    "ArrowUp": () => move(0, PAN_STEP),
    "ArrowDown": () => move(0, -PAN_STEP),
    "PageUp": () => move(0, stage.clientHeight * 0.85),
    "PageDown": () => move(0, stage.clientHeight * -0.85),
    "+": () => slides.zoomBy(ZOOM_STEP),
    "=": () => slides.zoomBy(ZOOM_STEP),
    "-": () => slides.zoomBy(1 / ZOOM_STEP),
    "0": () => slides.glide((zoom) => zoom.fit()),
    "1": () => slides.actualSize(),
    "i": () => frame.toggleDetails(),
    "s": () => isTrash || actions.toggleKept(),
    "Delete": () => isTrash || actions.remove(),
  };
}

/**
 * Select all text: that on the picture, or else that in the details.
 *
 * @param {Viewer} viewer
 */
function selectText({ slides, frame }) {
  const text = slides.current().text();
  if (text?.rows.length) return text.selectAll();
  const told = frame.content.querySelector(".details-text");
  if (told) getSelection()?.selectAllChildren(told);
}
