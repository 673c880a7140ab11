// What is sensitive in the viewer: whether a photo is veiled, before anything of it is fetched, and the veil in place of its picture.

import { button, fill, h, icon } from "../base/dom.js";
import { withLater } from "../base/parts.js";
import { t } from "../base/texts.js";
import { isVeiled, lookUp, reasonOf, uncover } from "./veil.js";

/** @typedef {import("./veil.js").Veilable} Veilable */

export class ViewerVeil {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Map<number, string[]>} */
    this.looked = new Map(); // what is sensitive on photos, by answers that are newer than a list
  }

  /**
   * What is sensitive on a photo, as far as it is known.
   *
   * @param {number} photoId
   */
  known(photoId) {
    const sensitive = this.looked.get(photoId) ?? this.viewer.sequence?.summary(photoId)?.sensitive;
    return sensitive && { id: photoId, sensitive };
  }

  /** Whether the current photo is veiled. */
  isCovered() {
    const known = this.known(this.viewer.id);
    return known !== undefined && isVeiled(known);
  }

  /**
   * Look whether a photo is sensitive before anything of it is fetched, where no list has told.
   *
   * @param {number} photoId
   */
  async isCoveredAt(photoId) {
    if (!this.known(photoId)) this.looked.set(photoId, (await lookUp([photoId])).get(photoId)?.sensitive ?? []);
    return isVeiled(/** @type {Veilable} */ (this.known(photoId)));
  }

  /**
   * Load the picture of a slide, or its veil.
   *
   * @param {import("./slide.js").Slide} slide
   */
  load(slide) {
    return slide.load({ broken: t("viewer.broken"), gone: t("viewer.gone") }, async () => {
      const isHidden = await this.isCoveredAt(slide.id);
      const known = this.known(slide.id);
      return isHidden && known ? this.card(known) : null;
    });
  }

  /** @param {Veilable} known */
  card(known) {
    const holdsPress = { pointerdown: (/** @type {Event} */ event) => event.stopPropagation() }; // it is no tap on the picture
    const show = button(t("viewer.uncover"), { kind: "primary", click: () => uncover(known.id) });
    const clear = !this.viewer.isTrash && button(t("viewer.notSensitive"), { click: () => this.clear() });
    return [icon("hidden"), h("p", reasonOf(known)), h("div.row", { on: holdsPress }, show, clear)];
  }

  /** The person says that the current photo is not sensitive. */
  clear() {
    const known = this.known(this.viewer.id);
    withLater(({ notSensitive }) => known && notSensitive(known));
  }

  /** The current photo was covered or uncovered: show it anew. */
  changed() {
    const { viewer } = this;
    const { node, heading, content } = viewer.frame;
    const wasCovered = viewer.slides.get(viewer.id)?.isCovered();
    if (wasCovered === undefined || viewer.isLeaving || this.isCovered() === wasCovered) return;
    const focused = document.activeElement;
    const isFocusLost = focused === document.body || (node.contains(focused) && focused !== heading);
    viewer.slides.drop(viewer.id);
    fill(content);
    viewer.show(viewer.id);
    if (isFocusLost) heading.focus();
  }

  /** @param {number} photoId */
  changedAt(photoId) {
    const { viewer } = this;
    if (photoId === viewer.id) return this.changed();
    if (!viewer.slides.get(photoId)) return;
    viewer.slides.drop(photoId);
    viewer.neighbours.preload(viewer.give.signal);
  }
}
