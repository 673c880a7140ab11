// The neighbours of the photo in the viewer: the arrows to them, their pictures in advance, and which one follows a photo that is gone.

import { fail } from "../base/dialogs.js";

export class ViewerNeighbours {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Map<number, Promise<number | null>>} */
    this.ids = new Map(); // by -1 and 1
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { id, sequence, frame: { arrows, heading }, marks } = this.viewer;
    this.ids = new Map([-1, 1].map((delta) => [delta, sequence ? sequence.neighbour(id, delta) : Promise.resolve(null)]));
    for (const each of arrows) each.hidden = !sequence;
    sequence?.place(id).then((at) => {
      if (signal.aborted) return;
      this.viewer.showPlace(at);
      marks.showLateFound(); // by now the list may know what it has found
    }, () => {});
    for (const [at, delta] of [-1, 1].entries()) {
      const set = (/** @type {boolean} */ isLast) => {
        if (signal.aborted) return;
        if (isLast && document.activeElement === arrows[at]) heading.focus(); // a disabled button loses the focus to nowhere
        arrows[at].disabled = isLast;
      };
      this.ids.get(delta)?.then((other) => set(other === null), (error) => set(error?.status === 404)); // pressing it tells what is wrong
    }
  }

  /** @param {AbortSignal} signal */
  async preload(signal) {
    const { slides, veil, id } = this.viewer;
    const around = await Promise.all([-1, 1].map((delta) => this.ids.get(delta)?.catch(() => null) ?? null));
    if (signal.aborted) return;
    for (const other of around) if (other !== null) veil.load(slides.of(other));
    slides.place([around[0], id, around[1]]);
  }

  /** @param {number} delta */
  async turn(delta) {
    const { viewer } = this;
    const from = viewer.id;
    try {
      const next = await (this.ids.get(delta) ?? null);
      if (next !== null && viewer.id === from && viewer.frame.node.open && !viewer.isLeaving) viewer.show(next);
    } catch (error) {
      fail(error);
      if (viewer.id === from && viewer.sequence) this.ids.set(delta, viewer.sequence.neighbour(from, delta));
    }
  }

  /** The photo that is shown when the current one is gone; null where there is none. */
  async next() {
    const { photo, id } = this.viewer;
    const member = photo?.stack?.photo_ids.find((other) => other !== id);
    if (member) return member;
    for (const delta of [1, -1]) {
      const next = await this.ids.get(delta)?.catch(() => null);
      if (next !== null && next !== undefined) return next;
    }
    return null;
  }
}
