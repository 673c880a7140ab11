// Gestures in the viewer: what a press, a swipe or a pull does, and the menus at places of the picture.

import { closeMenu, openMenu } from "../base/menu.js";
import { copyText } from "../base/shell.js";
import { t } from "../base/texts.js";
import { CALM } from "./flight.js";
import { NARROW } from "./frame.js";
import { Gestures } from "./gestures.js";
import { spotAt } from "./overlay.js";
import { uncover } from "./veil.js";

/**
 * @typedef {import("./viewer.js").Viewer} Viewer
 * @typedef {import("../base/menu.js").MenuItem} MenuItem
 */

const SLIDE_GAP = 24; // px between two slides
const TURN_PART = 0.3; // of the width: a swipe that is longer turns to the neighbour
const PULL_CLOSES = 110; // px
const GLIDES = { duration: 220, easing: "cubic-bezier(.2, .8, .3, 1)" };

/** @param {Viewer} viewer */
export function listenToGestures(viewer) {
  const { slides, frame } = viewer;
  const { stage, track } = frame;

  /** @param {PointerEvent} event */
  function onPicture(event) {
    const { left, top } = stage.getBoundingClientRect();
    const { x, y, scale } = slides.current().zoom;
    return { x: (event.clientX - left - x) / scale, y: (event.clientY - top - y) / scale };
  }

  const shift = (/** @type {number} */ dx, /** @type {number} */ dy = 0) => {
    track.style.transform = dx || dy ? `translate(${dx}px, ${dy}px)` : "";
  };

  /**
   * @param {number} dx
   * @param {number} dy
   */
  async function settleTrack(dx, dy) {
    if (!CALM.matches) await track.animate({ transform: `translate(${dx}px, ${dy}px)` }, GLIDES).finished;
    shift(0);
  }

  return new Gestures(stage, {
    picture: () => slides.current().zoom,
    isText: (event) => slides.current().text()?.isText(onPicture(event)) ?? false,
    select(phase, event, clicks) {
      const text = slides.current().text();
      if (phase === "start") text?.begin(onPicture(event), clicks, event.shiftKey);
      else if (phase === "move") text?.extend(onPicture(event));
      else if (event.pointerType !== "mouse") offerCopy(viewer);
    },
    press(event) {
      if (closeMenu()) return true;
      const at = spotAt(event.clientX, event.clientY);
      if (at) openSpot(viewer, at.target, /** @type {HTMLElement} */ (at.spot));
      return at !== null;
    },
    tap(event) {
      if (viewer.veil.isCovered()) return uncover(viewer.id);
      const selection = getSelection();
      if (selection && !selection.isCollapsed) selection.removeAllRanges();
      else if (event.pointerType !== "mouse") frame.setBare(!frame.isBare);
    },
    swipe: (dx) => shift(slides.beside(-Math.sign(dx)) ? dx : dx / 4),
    async swiped(dx, isFlick) {
      const delta = -Math.sign(dx);
      const next = slides.beside(delta);
      const isFar = isFlick || Math.abs(dx) > stage.clientWidth * TURN_PART;
      if (!next || !isFar) return settleTrack(0, 0);
      const from = viewer.id;
      await settleTrack(-delta * (stage.clientWidth + SLIDE_GAP), 0);
      if (viewer.id === from && frame.node.open) viewer.show(next.id);
    },
    pull(dy) {
      shift(0, dy > 0 ? dy : dy / 4);
      frame.node.style.setProperty("--gone", String(Math.min(1, Math.max(0, dy / 400))));
    },
    pulled(dy, isFlick) {
      frame.node.style.removeProperty("--gone");
      if (dy > PULL_CLOSES || (dy > 0 && isFlick)) return viewer.leave();
      settleTrack(0, 0);
      if (dy < -PULL_CLOSES / 2 && NARROW.matches && frame.sheet.level() === "peek") frame.sheet.set("half");
    },
  });
}

/**
 * What can be done with a link, an address, a number or a code on the picture.
 *
 * @param {Viewer} viewer
 * @param {import("./overlay.js").Target} target
 * @param {HTMLElement} spot
 */
function openSpot({ frame }, { value, href }, spot) {
  /** @type {MenuItem[]} */
  const items = [{ label: t("viewer.copyValue"), glyph: "copy", run: () => copyText(value) }];
  if (href?.startsWith("mailto:")) items.unshift({ label: t("viewer.write"), glyph: "mail", href });
  else if (href?.startsWith("tel:")) items.unshift({ label: t("viewer.call"), glyph: "phone", href });
  else if (href) items.unshift({ label: t("viewer.openLink", { host: hostOf(href) }), glyph: "open", href });
  openMenu(frame.node, spot, { label: t("viewer.target"), head: value, items, back: frame.heading });
}

/**
 * What the browser offers itself where it has made the selection.
 *
 * @param {Viewer} viewer
 */
function offerCopy(viewer) {
  const { slides, frame } = viewer;
  const text = slides.current().text();
  const chosen = text?.selected();
  const line = getSelection()?.focusNode?.parentElement;
  if (!text || !chosen || !line) return;
  openMenu(frame.node, line, {
    label: t("viewer.target"), head: chosen, back: frame.heading, items: [
      { label: t("viewer.copyValue"), glyph: "copy", run: () => copyText(chosen) },
      { label: t("viewer.selectAll"), glyph: "text", run: () => (text.selectAll(), offerCopy(viewer)) },
    ],
  });
}

/** @param {string} href */
function hostOf(href) {
  try {
    return new URL(href).host;
  } catch {
    return href.slice(0, 60);
  }
}
