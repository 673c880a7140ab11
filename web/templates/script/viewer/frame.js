// The frame of the viewer: the bar with its buttons, the stage, and the details in a panel beside it, or on a phone in a sheet below it.

import { button, fill, h } from "../base/dom.js";
import { recalled, remember } from "../base/preferences.js";
import { t } from "../base/texts.js";
import { bottomSheet } from "./sheet.js";
import { ZOOM_STEP } from "./zoom.js";

export const NARROW = matchMedia("(max-width: 760px)");
const GUTTER = 72; // px at each side of the picture, for the arrows
const MARGIN = 16; // px above and below the picture
const STRIP = 88; // px of a stack below the picture

/**
 * A button of the viewer.
 *
 * @param {string} name
 * @param {import("../base/dom.js").Glyph} glyph
 * @param {(pressed: HTMLButtonElement) => unknown} run
 */
function tool(name, glyph, run, props = {}) {
  /** @type {HTMLButtonElement} */
  const made = button("", { glyph, kind: "quiet", label: t(`viewer.${name}`), click: () => run(made), ...props });
  return made;
}

export class ViewerFrame {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    const { actions, slides, isTrash } = viewer;
    this.viewer = viewer;
    this.isBare = false; // everything but the picture is hidden
    /** @type {HTMLElement | null} */
    this.strip = null; // of the stack that the photo belongs to

    this.heading = h("h2.viewer-title", { tabindex: "-1", on: { click: () => viewer.details.editTitle() } });
    this.under = h("p.viewer-under");
    this.announced = h("p.visually-hidden", { role: "status" });
    this.share = tool("share", "share", (pressed) => actions.share(pressed), { hidden: isTrash });
    this.marking = tool("marks", "marker", () => viewer.marks.toggle(), { "aria-pressed": "true", hidden: true });
    this.star = tool("keep", "star", () => actions.toggleKept(), { kind: "quiet keep", "aria-pressed": "false", hidden: isTrash });
    this.info = tool("details", "info", () => this.toggleDetails(), { "aria-expanded": "false" });
    this.more = tool("more", "more", () => actions.openMore(), { "aria-haspopup": "menu" });
    const download = tool("download", "download", (pressed) => actions.download(pressed));
    const copyPicture = tool("copyPicture", "pictures", (pressed) => actions.copyPicture(pressed));
    const copyText = tool("copyText", "text", () => actions.copyText(), { hidden: isTrash });
    this.showing = [download, copyPicture, copyText]; // what shows the picture to somebody else
    this.tools = h("div.viewer-tools", { role: "group", label: t("viewer.actions") }, this.marking, this.star, download, this.share,
      copyPicture, copyText, tool("delete", "trash", () => actions.remove(), { hidden: isTrash }), this.info);
    const shut = button("", { glyph: "close", kind: "quiet", label: t("shell.close"), click: () => viewer.leave() });
    this.bar = h("div.viewer-bar", shut, h("div.viewer-name", this.heading, this.under), this.more);

    const fit = () => slides.glide((zoom) => zoom.fit());
    const whole = () => slides.actualSize();
    this.percent = h("button.viewer-percent", { type: "button", title: t("viewer.fit"), on: { click: fit } });
    const actual = h("button.viewer-actual", {
      type: "button", title: t("viewer.actual"), label: t("viewer.actual"), text: "1:1", on: { click: whole },
    });
    const zooms = h("div.viewer-zooms", { role: "group" },
      tool("zoomOut", "minus", () => slides.zoomBy(1 / ZOOM_STEP)), this.percent, tool("zoomIn", "plus", () => slides.zoomBy(ZOOM_STEP)),
      actual);
    this.track = h("div.viewer-track");
    this.stage = h("div.viewer-stage", this.track);
    this.arrows = /** @type {const} */ ([[-1, "back"], [1, "next"]]).map(([delta, glyph]) =>
      tool(glyph, glyph, () => viewer.neighbours.turn(delta), { kind: `quiet viewer-arrow ${glyph}`, disabled: true }));

    this.content = h("div.viewer-details");
    this.fact = h("div.viewer-fact");
    this.head = h("div.sheet-head");
    this.panel = h("section.viewer-panel", { label: t("viewer.details") }, this.head, this.content);
    const place = h("div.viewer-place", { role: "group", label: t("viewer.stage") }, this.arrows[0], this.stage, this.arrows[1], zooms);
    this.node = h("dialog.viewer", this.bar, place, this.panel, this.announced);
    this.sheet = bottomSheet(this.panel, this.head, this.content, () => this.arranged());
  }

  /** What of the stage is free for a picture. */
  area() {
    const { clientWidth: width, clientHeight: height } = this.stage;
    const lower = this.strip ? STRIP : 0;
    if (!NARROW.matches) {
      const side = Math.min(GUTTER, width / 6);
      return { left: side, top: MARGIN / 2, right: width - side, bottom: height - MARGIN - lower };
    }
    if (this.isBare) return { left: 0, top: 0, right: width, bottom: height };
    return { left: 0, top: this.bar.offsetHeight, right: width, bottom: height - this.sheet.covers() - MARGIN / 2 - lower };
  }

  /** Place all slides again, after what covers the stage has changed. */
  arranged() {
    const isOpen = NARROW.matches ? this.sheet.level() !== "peek" : !this.panel.hidden;
    this.info.setAttribute("aria-expanded", String(isOpen));
    this.showMiddle();
    this.viewer.slides.refit({ isGliding: true });
  }

  /** The arrows are at the middle of what is free. */
  showMiddle() {
    const { top, bottom } = this.area();
    this.node.style.setProperty("--middle", `${(top + bottom) / 2}px`);
    this.node.style.setProperty("--below", `${bottom}px`);
  }

  /** On a phone the actions are in the sheet, above the details, where the thumb is. */
  fold() {
    if (NARROW.matches) this.head.append(this.fact, this.tools);
    else {
      this.panel.insertBefore(this.fact, this.content);
      this.bar.insertBefore(this.tools, this.more);
    }
    this.panel.hidden = !NARROW.matches && !recalled("viewer.panel", true);
    this.sheet.turn(NARROW.matches);
  }

  toggleDetails() {
    if (NARROW.matches) return this.sheet.set(this.sheet.level() === "peek" ? "half" : "peek");
    this.panel.hidden = !this.panel.hidden;
    remember("viewer.panel", !this.panel.hidden);
    this.arranged();
  }

  /** @param {boolean} wanted */
  setBare(wanted) {
    if (this.isBare === wanted) return;
    this.isBare = wanted;
    this.node.classList.toggle("bare", wanted);
    this.arranged();
  }

  /**
   * Show the fact of the photo above its details; on a phone it is in sight while they are folded.
   *
   * @param {HTMLElement | null} card
   */
  setFact(card) {
    this.fact.inert = false;
    fill(this.fact, card);
    this.sheet.refit();
  }

  /** @param {HTMLElement | null} strip */
  setStrip(strip) {
    const hadFocus = this.strip?.contains(document.activeElement);
    this.strip?.remove();
    this.strip = strip;
    if (strip) this.stage.after(strip);
    if (hadFocus) /** @type {HTMLElement} */ (strip?.querySelector("[aria-current]") ?? this.heading).focus();
    this.arranged();
  }
}
