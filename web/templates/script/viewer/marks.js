// What is marked on the picture in the viewer: its recognised lines, what can be opened, its dates, and what a search has found.

import { api } from "../base/api.js";
import { entitiesOf } from "./details.js";

export class ViewerMarks {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.isFoundShown = true;
    /** @type {PhotoLines | null} */
    this.lines = null;
    /** @type {AgendaFields[]} */
    this.planned = []; // what happens on days that it names
  }

  /** Another photo is shown. */
  forget() {
    [this.lines, this.planned] = [null, []];
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { viewer } = this;
    if (viewer.isTrash) return;
    try {
      if (await viewer.veil.isCoveredAt(viewer.id) || signal.aborted) return;
      const read = await api.get(`/api/photos/${viewer.id}/lines`, null, { signal });
      if (signal.aborted) return;
      this.lines = read;
      viewer.slides.current().setLines(read);
      viewer.showHead();
      if (viewer.found?.(viewer.id)?.lines) this.showFound();
      this.showSpots();
      this.showDates();
    } catch { /* without lines the picture is a picture; a failure of the service shows at the detail */ }
  }

  /** The lines of the picture without the status bar's. */
  rows() {
    return (this.lines?.lines ?? []).filter(({ status_bar: isBar }) => !isBar);
  }

  showSpots() {
    const { photo, slides } = this.viewer;
    if (photo && this.lines) slides.current().setSpots(entitiesOf(photo).filter(({ type, href }) => href || type === "code"));
  }

  /**
   * The line that an item of the agenda is on.
   *
   * @param {AgendaFields} item
   */
  boxOf({ line }) {
    return this.lines?.lines.slice(line, line + 1) ?? [];
  }

  showDates(items = this.planned) {
    this.planned = items;
    const { slides, veil } = this.viewer;
    if (this.lines) slides.current().setDates(veil.isCovered() ? [] : items.flatMap((item) => this.boxOf(item)));
  }

  /** @param {AgendaFields} item */
  reveal(item) {
    for (const box of this.boxOf(item)) this.viewer.slides.glide((zoom) => zoom.reveal(box));
  }

  /**
   * Mark these lines on the picture, in place of what a search has found.
   *
   * @param {number[]} lines
   */
  point(lines) {
    const boxes = lines.flatMap((line) => this.lines?.lines[line] ?? []);
    if (!boxes.length) return;
    this.viewer.slides.current().setMarks(boxes);
    this.viewer.slides.glide((zoom) => zoom.reveal(boxes[0]));
  }

  showFound() {
    const { id, found, frame, slides, veil } = this.viewer;
    const { boxes: given = [], lines = [] } = found?.(id) ?? {};
    const boxes = veil.isCovered() ? [] : [...given, ...lines.flatMap((line) => this.lines?.lines[line] ?? [])];
    frame.marking.hidden = !boxes.length;
    slides.current().setMarks(this.isFoundShown ? boxes : []);
    if (boxes.length && slides.current().zoom.size.width) slides.current().zoom.reveal(boxes[0]);
  }

  showLateFound() {
    if (this.viewer.frame.marking.hidden) this.showFound();
  }

  toggle() {
    this.isFoundShown = !this.isFoundShown;
    this.viewer.frame.marking.setAttribute("aria-pressed", String(this.isFoundShown));
    this.showFound();
  }
}
