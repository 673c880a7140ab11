// The details of the photo in the viewer: fetched, shown in the panel with its stack below the picture, and kept up to date.

import { api, wasAborted } from "../base/api.js";
import { fill, h, icon } from "../base/dom.js";
import { withLater } from "../base/parts.js";
import { failedState, skeleton } from "../base/shell.js";
import { t } from "../base/texts.js";
import { tell } from "../base/upload.js";
import { detailsOf, UNFINISHED } from "./details.js";
import { NARROW } from "./frame.js";
import { reasonOf } from "./veil.js";

export class DetailPanel {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
  }

  /** Another photo is shown: the details of the one before stay, paler, until its own are there. */
  await() {
    const { content, fact } = this.viewer.frame;
    content.classList.add("stale");
    fact.inert = true; // its button is of the photo before
    if (!content.hasChildNodes()) fill(content, skeleton(6));
  }

  /** @param {AbortSignal} signal */
  fetch(signal) {
    return api.get(`/api/photos/${this.viewer.id}`, null, { signal });
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { isTrash, frame: { content } } = this.viewer;
    if (isTrash) return this.showTrashed();
    try {
      const detail = await this.fetch(signal);
      if (signal.aborted) return;
      this.show(detail);
      api.post(`/api/photos/${detail.id}/opened`).catch(() => {}); // it stays unread
    } catch (error) {
      if (signal.aborted || wasAborted(error)) return;
      content.classList.remove("stale");
      this.viewer.frame.setFact(null);
      if (error.status === 404) fill(content, h("p.muted", t("viewer.gone")));
      else fill(content, failedState(error, () => this.load(signal)));
    }
  }

  /** @param {PhotoDetail} detail */
  show(detail) {
    const { viewer } = this;
    const { marks, veil, actions, frame: { content, sheet } } = viewer;
    viewer.photo = detail;
    veil.looked.set(detail.id, detail.sensitive);
    content.classList.remove("stale");
    viewer.showHead();
    const isHidden = veil.isCovered();
    const reason = isHidden && h("p.details-veil", icon("hidden"), h("span", reasonOf(detail)));
    const reprocess = (/** @type {HTMLButtonElement} */ pressed) => actions.reprocess(pressed);
    fill(content, detailsOf(detail, { title: viewer.title(), reprocess, veil: reason }).filter(Boolean));
    this.showStrip(detail);
    veil.changed(); // if the list was older than the detail
    withLater(({ factCard }) => viewer.photo === detail && viewer.frame.setFact(factCard(detail, { covered: isHidden })));
    if (!isHidden) {
      const { signal } = viewer.give;
      withLater(({ ownWords, photoAgenda, recordCards }) => {
        if (viewer.photo !== detail) return;
        ownWords(content, detail, (saved, focus) => this.showSaved(saved, focus));
        recordCards(content, detail, { find: (lines) => marks.point(lines), saved: (saved, focus) => this.showSaved(saved, focus) });
        const mark = (/** @type {AgendaFields[]} */ items) => marks.showDates(items);
        photoAgenda(content, detail.id, { signal, mark, find: (item) => marks.reveal(item) });
      });
    }
    if (NARROW.matches) sheet.refit();
    else content.scrollTop = 0;
    marks.showSpots();
  }

  /**
   * The same screen several times, else the screenshots of the same order, trip or bill.
   *
   * @param {PhotoDetail} detail
   */
  showStrip(detail) {
    const { viewer } = this;
    const { frame, give: { signal } } = viewer;
    const { stack, thread_id: thread } = detail;
    const open = (/** @type {number} */ id) => viewer.show(id);
    withLater(async ({ stackStrip, threadStrip }) => {
      if (viewer.photo !== detail || (!stack && !thread && !frame.strip)) return;
      const strip = stack
        ? stackStrip(stack, viewer.id, { viewer: frame.node, open })
        : thread && (await threadStrip(thread, viewer.id, { signal, open, changed: () => this.refresh() }));
      if (viewer.photo === detail) frame.setStrip(strip || null);
    });
  }

  /**
   * Own words were saved.
   *
   * @param {PhotoDetail} detail
   * @param {string} focus
   */
  showSaved(detail, focus) {
    tell("changed", detail.id);
    if (detail.id !== this.viewer.id || this.viewer.isLeaving) return;
    this.showInPlace(detail);
    /** @type {HTMLElement | null} */ (this.viewer.frame.content.querySelector(focus))?.focus();
  }

  /**
   * Show it without scrolling.
   *
   * @param {PhotoDetail} detail
   */
  showInPlace(detail) {
    const { content } = this.viewer.frame;
    const at = content.scrollTop;
    this.show(detail);
    content.scrollTop = at;
  }

  /** A tap on the title: it is edited in the details, on a phone above the keyboard. */
  editTitle() {
    const { panel, sheet, content } = this.viewer.frame;
    const pencil = /** @type {HTMLElement | null} */ (content.querySelector("[data-own='title']"));
    if (!pencil || !getSelection()?.isCollapsed) return;
    if (NARROW.matches) sheet.set("full");
    else if (panel.hidden) this.viewer.frame.toggleDetails();
    pencil.click();
  }

  /** Photos were thrown away or brought back: its stack may be another one. */
  async refresh() {
    const { isTrash, isLeaving, give: { signal }, frame: { content } } = this.viewer;
    if (isTrash || isLeaving) return;
    const detail = await this.fetch(signal).catch(() => null); // gone: the next one is shown
    if (!detail || signal.aborted || content.contains(document.activeElement)) return; // not while somebody writes
    this.showInPlace(detail);
  }

  /** What the list of the trash knows about it; no other answer of the service has it. */
  showTrashed() {
    const { frame: { content }, actions } = this.viewer;
    this.viewer.frame.setFact(null);
    content.classList.remove("stale");
    const item = this.viewer.summary();
    if (!item) return fill(content, h("p.muted", t("viewer.gone")));
    const did = { restored: () => actions.leaveTrash("restored"), erased: () => actions.leaveTrash("deleted") };
    withLater(({ trashedDetails }) => fill(content, trashedDetails(item, did)));
  }

  /** While it is analysed: redraw only when the status has changed, so that nothing moves while somebody reads. */
  async look() {
    const { viewer } = this;
    if (!viewer.photo || !UNFINISHED.includes(viewer.photo.analysis.status)) return;
    const { signal } = viewer.give;
    const detail = await this.fetch(signal);
    if (signal.aborted || !viewer.photo || detail.analysis.status === viewer.photo.analysis.status) return;
    if (!UNFINISHED.includes(detail.analysis.status)) viewer.marks.load(signal);
    this.show(detail);
    tell("changed", viewer.id);
  }
}
