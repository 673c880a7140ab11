// The viewer: one photo over the view that is shown, with its own address and history entry.
//
// This file owns which photo that is. The parts of the open viewer are in files of their own: its frame, its slides, what is veiled, the
// neighbours, what is marked on the picture, the details, and what buttons, keys and gestures do. Each part knows the viewer.

import { modal } from "../base/dialogs.js";
import { fill, h, listen } from "../base/dom.js";
import { formatDate, formatNumber, formatPercent } from "../base/format.js";
import { closeMenu } from "../base/menu.js";
import { addressBeneath, poll, replaceAddress } from "../base/shell.js";
import { t } from "../base/texts.js";
import { photoEvents } from "../base/upload.js";
import { DetailPanel } from "./detail-panel.js";
import { textOf } from "./details.js";
import { flyBack, flyIn } from "./flight.js";
import { NARROW, ViewerFrame } from "./frame.js";
import { listenToKeys } from "./keys.js";
import { ViewerMarks } from "./marks.js";
import { ViewerNeighbours } from "./neighbours.js";
import { PhotoActions } from "./photo-actions.js";
import { ViewerSlides } from "./slides.js";
import { listenToGestures } from "./touch.js";
import { veilEvents } from "./veil.js";
import { ViewerVeil } from "./viewer-veil.js";

/**
 * @typedef {object} ViewerOptions
 * @property {Sequence} [sequence] the list that it is in
 * @property {(id: number) => unknown} [closed]
 * @property {(id: number) => Found | undefined} [found] what a search has found on it
 * @property {boolean} [trash] its photos are in the trash
 */

/** @type {Viewer | null} */
let opened = null;

/**
 * Open a photo over the view. Without a `sequence` it has no neighbours; `closed` is called with the photo that was shown last.
 *
 * @param {number} id
 * @param {ViewerOptions} options
 */
export function openPhoto(id, options = {}) {
  if (opened?.frame.node.open) return opened.show(id);
  opened = new Viewer(id, options);
  opened.open();
}

export class Viewer {
  /**
   * @param {number} first
   * @param {ViewerOptions} options
   */
  constructor(first, { sequence, closed, found, trash = false }) {
    this.id = first;
    this.sequence = sequence;
    this.found = found;
    this.isTrash = trash;
    /** @type {PhotoDetail | null} */
    this.photo = null;
    this.give = new AbortController(); // requests for the current photo
    /** @type {Promise<unknown>} */
    this.detailArrives = Promise.resolve();
    this.isLeaving = false;
    this.closed = closed;
    /** @type {(() => unknown) | null} */
    this.afterwards = null; // called when it is closed
    this.root = trash ? "#/trashed/" : "#/photo/";
    this.query = (sequence && addressBeneath().split("?")[1]) || "";
    this.titleBefore = document.title;
    this.placeText = "";
    this.slides = new ViewerSlides(this);
    this.veil = new ViewerVeil(this);
    this.neighbours = new ViewerNeighbours(this);
    this.marks = new ViewerMarks(this);
    this.details = new DetailPanel(this);
    this.actions = new PhotoActions(this);
    this.frame = new ViewerFrame(this);
  }

  open() {
    const beneath = addressBeneath();
    if (!this.isAddressed()) history.pushState({ over: beneath }, "", this.addressOf(this.id));
    const { frame, details } = this;
    const gestures = listenToGestures(this);
    listenToKeys(this);
    const unlisten = this.listenBeyond();
    const sized = new ResizeObserver(() => {
      frame.sheet.refit();
      frame.showMiddle();
      this.slides.refit();
    });
    modal(frame.node, {
      focus: frame.heading,
      closed: () => {
        sized.disconnect();
        gestures.end();
        stopLooking();
        for (const end of unlisten) end();
        this.end();
      },
    });
    frame.fold();
    sized.observe(frame.stage);
    this.show(this.id);
    flyIn(this);
    const stopLooking = poll(() => details.look(), 1.5);
  }

  /** What happens outside of it while it is open. */
  listenBeyond() {
    const refresh = () => this.details.refresh();
    return [
      // An address that is no photo's: Back was pressed, or a link. Another photo's is reported by the shell.
      listen(window, { hashchange: () => this.isAddressed() || this.frame.node.close() }),
      listen(NARROW, { change: () => this.frame.fold() }),
      listen(photoEvents, { many: refresh, restored: refresh, deleted: refresh }),
      listen(veilEvents, { changed: (event) => this.veil.changedAt(event.detail) }),
      listen(document, {
        copy: (/** @type {ClipboardEvent} */ event) => {
          const chosen = this.slides.current().text()?.selected();
          if (!chosen || !event.clipboardData) return;
          event.clipboardData.setData("text/plain", chosen);
          event.preventDefault();
        },
      }),
    ];
  }

  /** @param {number} photo */
  addressOf(photo) {
    return `${this.root}${photo}${this.query && `?${this.query}`}`;
  }

  /** Whether the address is that of a photo in this viewer. */
  isAddressed() {
    return location.hash.startsWith(this.root);
  }

  // ----------------------------------------------------------------------------------------------------------- the photo

  /** @param {number} next */
  show(next) {
    if (next === this.id && this.slides.get(next)) return;
    this.id = next;
    this.give.abort();
    this.give = new AbortController();
    this.photo = null;
    this.marks.forget();
    closeMenu();
    getSelection()?.removeAllRanges();
    if (location.hash !== this.addressOf(next)) replaceAddress(this.addressOf(next));
    const slide = this.slides.of(next);
    this.slides.place([null, next, null]);
    slide.zoom.home();
    this.marks.showFound();
    this.showHead();
    this.details.await();
    const { signal } = this.give;
    const isPlaced = slide.zoom.size.width > 0;
    this.veil.load(slide).then(() => {
      if (signal.aborted) return;
      if (!isPlaced) this.marks.showFound();
      this.neighbours.preload(signal);
    });
    this.detailArrives = this.details.load(signal);
    this.marks.load(signal);
    this.neighbours.load(signal);
  }

  /** What the list knows about it. */
  summary() {
    return this.sequence?.summary(this.id);
  }

  title() {
    if (this.veil.isCovered()) return t("veil.title");
    const given = this.photo?.title || this.summary()?.title;
    if (given) return given;
    const line = this.marks.rows().find(({ text }) => text.trim())?.text ?? (this.photo && textOf(this.photo).split("\n", 1)[0]);
    return line?.trim() || this.taken() || t("viewer.untitled");
  }

  taken() {
    return formatDate(this.photo?.original_timestamp ?? this.summary()?.original_timestamp ?? null);
  }

  showHead() {
    const { heading, node, showing, content } = this.frame;
    const name = this.title();
    this.actions.showKept();
    for (const each of showing) each.disabled = this.veil.isCovered();
    heading.textContent = name;
    node.ariaLabel = name;
    document.title = `${name} · Snaplore`;
    this.slides.current().image.alt = t("viewer.picture", { title: name });
    const shown = content.querySelector(".details-title");
    if (shown && this.photo) shown.textContent = name;
    this.showUnder();
  }

  showUnder() {
    const date = this.taken();
    const parts = [date !== this.frame.heading.textContent && date, this.placeText].filter(Boolean);
    fill(this.frame.under, parts.map((part, at) => [at > 0 && " · ", h("span", part)]));
  }

  /** @param {{ at: number, total: number } | null} at */
  showPlace(at) {
    this.placeText = at ? t("viewer.place", { at: formatNumber(at.at), total: formatNumber(at.total) }) : "";
    this.showUnder();
    this.frame.announced.textContent = [this.frame.heading.textContent, this.placeText].filter(Boolean).join(", ");
  }

  showZoom() {
    const slide = this.slides.get(this.id);
    if (!slide) return; // it is being made
    const { scale, actual } = slide.zoom;
    this.frame.percent.textContent = formatPercent(scale / actual());
  }

  // ------------------------------------------------------------------------------------------------------------- leaving

  /**
   * Close it as the Back button would, where the page has made the history entry, so that none is left behind.
   *
   * @param {() => unknown} [then]
   */
  async leave(then) {
    this.afterwards ??= then ?? null;
    if (this.isLeaving) return;
    this.isLeaving = true;
    const flight = flyBack(this);
    if (flight) await flight;
    if (this.isAddressed() && history.state?.over === addressBeneath()) return history.back();
    if (this.isAddressed()) replaceAddress(addressBeneath());
    this.frame.node.close();
  }

  /** It is closed. */
  end() {
    this.give.abort();
    closeMenu();
    this.slides.release();
    document.title = this.titleBefore;
    if (opened !== this) return; // the view was drawn again, with a viewer over it
    opened = null;
    // Closed by the browser, for example by a second Escape: the address must not be left behind.
    if (this.isAddressed() && !this.isLeaving) history.state?.over === addressBeneath() ? history.back() : replaceAddress(addressBeneath());
    this.closed?.(this.id);
    this.afterwards?.();
  }
}
