// The slides of the viewer: the photo that is shown, and its neighbours beside it.

import { pictureSlide } from "./slide.js";

/** @typedef {import("./slide.js").Slide} Slide */

export class ViewerSlides {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Map<number, Slide>} */
    this.byPhoto = new Map();
  }

  /** @param {number} photoId */
  get(photoId) {
    return this.byPhoto.get(photoId);
  }

  current() {
    return /** @type {Slide} */ (this.byPhoto.get(this.viewer.id));
  }

  /**
   * The slide of a photo, which is made at the first call.
   *
   * @param {number} photoId
   */
  of(photoId) {
    let slide = this.byPhoto.get(photoId);
    if (!slide) {
      const { viewer } = this;
      const changed = () => photoId === viewer.id && viewer.showZoom();
      slide = pictureSlide(photoId, () => viewer.frame.area(), viewer.sequence?.summary(photoId), changed, viewer.isTrash);
      this.byPhoto.set(photoId, slide);
      viewer.frame.track.append(slide.node);
    }
    return slide;
  }

  /**
   * Keep the slides of these photos, before, at and after the middle, and release all others.
   *
   * @param {(number | null)[]} wanted
   */
  place(wanted) {
    for (const [photoId, slide] of this.byPhoto) {
      const at = photoId === wanted[1] ? 1 : wanted.indexOf(photoId); // while a list closes up, a photo may be its own neighbour
      if (at < 0) this.drop(photoId);
      else {
        slide.node.style.setProperty("--at", String(at - 1));
        slide.node.inert = at !== 1;
      }
    }
  }

  /** @param {number} delta */
  beside(delta) {
    return [...this.byPhoto.values()].find((slide) => slide.node.style.getPropertyValue("--at") === String(delta));
  }

  /** @param {number} photoId */
  drop(photoId) {
    this.byPhoto.get(photoId)?.release();
    this.byPhoto.delete(photoId);
  }

  release() {
    for (const slide of this.byPhoto.values()) slide.release();
  }

  /** The stage has another size, or another part of it is free. */
  refit({ isGliding = false } = {}) {
    for (const slide of this.byPhoto.values()) {
      if (isGliding) slide.glide();
      slide.zoom.refit();
    }
  }

  /**
   * Zoom or move the current picture with a movement, not a jump.
   *
   * @param {(zoom: import("./zoom.js").Zoomable) => unknown} change
   */
  glide(change) {
    this.current().glide();
    change(this.current().zoom);
  }

  /** @param {number} factor */
  zoomBy(factor) {
    this.glide((zoom) => zoom.zoomTo(zoom.scale * factor));
  }

  actualSize() {
    this.glide((zoom) => zoom.zoomTo(zoom.actual()));
  }
}
