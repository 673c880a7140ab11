// Sharing the photo in the viewer: a preview with what was found sensitive covered, further places covered by hand, and then a copy, a
// file, the phone's own share sheet, or a link that ends. What leaves is painted by the service, into the pixels.

import { settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { codeRow, reachable } from "../base/connect.js";
import { dialog, sentence, toast } from "../base/dialogs.js";
import { button, choice, fill, h } from "../base/dom.js";
import { formatList, formatDate } from "../base/format.js";
import { canShareFiles, copyToClipboard, saveFile } from "../base/picture-file.js";
import { busy } from "../base/shell.js";
import { t } from "../base/texts.js";

const KEY_STEP = 0.02; // of the picture: how far a key moves an edge
const LEAST_DRAWN = 0.01; // a smaller one was a click
const ADDED_COVER = { left: 0.3, top: 0.45, width: 0.4, height: 0.06 }; // where a place begins that is added by the button
const DAY_SECONDS = 86_400;

/** @typedef {Box & { kind?: string }} Cover */

/**
 * @param {number} id
 * @param {{ covered: boolean, picture: () => Promise<Blob> }} shown a `covered` picture is shown only where what is sensitive on it is
 *   known, and painted over from the start
 */
export async function openSharing(id, { covered, picture }) {
  let problem = "";
  /** @type {Cover[]} */
  let found = [];
  try {
    ({ boxes: found } = await api.get(`/api/photos/${id}/redaction`));
  } catch (error) {
    problem = sentence(error); // it was not read yet: nothing is known, and the person covers what is private
  }
  if (covered && !found.length) return toast(t("sharing.showFirst"), { kind: "bad" });
  const sharing = new Sharing(id, found, problem);
  sharing.open(await picture());
}

class Sharing {
  /**
   * @param {number} id
   * @param {Cover[]} found
   * @param {string} problem
   */
  constructor(id, found, problem) {
    this.id = id;
    this.problem = problem;
    this.covers = [...found];
    this.image = h("img", { alt: t("sharing.preview"), draggable: "false" });
    this.over = h("div.share-covers");
    this.stage = h("div.share-stage", this.image, this.over);
    this.said = h("p", { role: "status" });
    this.link = h("div");
    this.draw();
  }

  /** @param {Blob} blob */
  open(blob) {
    const url = URL.createObjectURL(blob);
    this.image.src = url;
    const cover = button(t("sharing.cover"), { glyph: "plus", click: () => this.add({ ...ADDED_COVER }, true) });
    const days = choice([1, 7, 30].map((count) => [`${count * DAY_SECONDS}`, t(`sharing.days${count}`)]), `${7 * DAY_SECONDS}`, { label: t("sharing.lasts") });
    /** @type {HTMLButtonElement} */
    const make = button(t("sharing.link"), { glyph: "link", click: () => settle(make, () => this.makeLink(days.value), (made) => this.showLink(made)) });
    /** @type {HTMLButtonElement} */
    const copy = button(t("sharing.copy"), { glyph: "pictures", kind: canShareFiles() ? "" : "primary", click: () => busy(copy, copyToClipboard(this.painted())) });
    /** @type {HTMLButtonElement} */
    const save = button(t("sharing.download"), { glyph: "download", click: () => settle(save, () => this.file(), saveFile) });
    const pass = () => settle(send, async () => navigator.share({ files: [await this.file()] }), () => {});
    /** @type {HTMLButtonElement} */
    const send = button(t("sharing.send"), { glyph: "share", kind: "primary", click: pass, hidden: !canShareFiles() });
    dialog({
      title: t("sharing.title"),
      body: h("div.share", this.stage, h("div.stack", this.said, h("p.hint", t("sharing.hint")), h("div.row", cover),
        h("div.row", send, copy, save), h("div.row", make, days), this.link)),
      wide: true,
      closed: () => URL.revokeObjectURL(url),
    });
    this.show();
  }

  /** Places are drawn with the mouse, a pen or a finger. */
  draw() {
    const { stage } = this;
    stage.addEventListener("pointerdown", (event) => {
      if (event.button || /** @type {Element} */ (event.target).closest(".share-cover")) return;
      event.preventDefault();
      stage.setPointerCapture(event.pointerId);
      const from = this.at(event);
      const shape = h("span.share-cover");
      this.over.append(shape);
      /** @type {Cover | null} */
      let drawn = null;
      const moved = (/** @type {PointerEvent} */ now) => {
        drawn = coverBetween(from, this.at(now));
        placeCover(shape, drawn);
      };
      const ended = (/** @type {PointerEvent} */ now) => {
        stage.removeEventListener("pointermove", moved);
        shape.remove();
        if (now.type === "pointerup" && drawn && drawn.width > LEAST_DRAWN && drawn.height > LEAST_DRAWN / 2) this.add(drawn);
      };
      stage.addEventListener("pointermove", moved);
      stage.addEventListener("pointerup", ended, { once: true });
      stage.addEventListener("pointercancel", ended, { once: true });
    });
  }

  /** @param {PointerEvent} event */
  at({ clientX, clientY }) {
    const { left, top, width, height } = this.image.getBoundingClientRect();
    const within = (/** @type {number} */ part) => Math.min(1, Math.max(0, part));
    return { x: within((clientX - left) / width), y: within((clientY - top) / height) };
  }

  /**
   * @param {Cover} cover
   * @param {boolean} [isFocused]
   */
  add(cover, isFocused = false) {
    this.covers.push(cover);
    this.show();
    if (isFocused) /** @type {HTMLElement} */ (this.over.lastElementChild).focus();
  }

  /** @param {Cover} cover */
  remove(cover) {
    this.covers = this.covers.filter((one) => one !== cover);
    this.show();
    this.said.tabIndex = -1;
    this.said.focus();
  }

  show() {
    fill(this.over, this.covers.map((cover) => this.button(cover)));
    const kinds = [...new Set(this.covers.flatMap(({ kind }) => (kind ? [t(`sensitive.${kind}`)] : [])))];
    this.said.textContent = this.problem && !this.covers.length ? this.problem
      : !this.covers.length ? t("sharing.nothing")
        : kinds.length ? t("sharing.covered", { count: this.covers.length, kinds: formatList(kinds) })
          : t("sharing.own", { count: this.covers.length });
    fill(this.link); // a link shows what was covered when it was made
  }

  /** @param {Cover} cover */
  button(cover) {
    const name = cover.kind ? t("sharing.uncoverKind", { kind: t(`sensitive.${cover.kind}`) }) : t("sharing.uncover");
    const node = h("button.share-cover", { type: "button", label: name, title: name, on: {
      click: () => this.remove(cover),
      keydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Delete" || event.key === "Backspace") return this.remove(cover);
        const change = coverAfter(cover, event);
        if (!change) return;
        event.preventDefault();
        Object.assign(cover, change, { kind: undefined });
        placeCover(node, cover);
      },
    } });
    placeCover(node, cover);
    return node;
  }

  boxes() {
    return this.covers.map(({ left, top, width, height }) => ({ left, top, width, height }));
  }

  async painted() {
    const answer = await api.openPosted(`/api/photos/${this.id}/redacted`, { redact: this.boxes() });
    return answer.blob();
  }

  async file() {
    return new File([await this.painted()], "screenshot.jpg", { type: "image/jpeg" });
  }

  /** @param {string} seconds */
  async makeLink(seconds) {
    const address = await reachable();
    return api.post(`/api/photos/${this.id}/shares`, { redact: this.boxes(), expires_in: Number(seconds), address });
  }

  /** @param {{ url: string, expires_at: string }} made */
  showLink({ url, expires_at: ends }) {
    fill(this.link, h("div.stack.tight", codeRow(url, t("sharing.address")),
      h("p.hint", t("sharing.made", { when: formatDate(ends) }))));
    this.link.scrollIntoView({ block: "nearest" });
  }
}

/**
 * @param {{ x: number, y: number }} one
 * @param {{ x: number, y: number }} other
 */
function coverBetween(one, other) {
  const [left, top] = [Math.min(one.x, other.x), Math.min(one.y, other.y)];
  return { left, top, width: Math.max(one.x, other.x) - left, height: Math.max(one.y, other.y) - top };
}

/**
 * @param {HTMLElement} node
 * @param {Box} box
 */
function placeCover(node, { left, top, width, height }) {
  const percent = (/** @type {number} */ part) => `${part * 100}%`;
  Object.assign(node.style, { left: percent(left), top: percent(top), width: percent(width), height: percent(height) });
}

/**
 * What a key makes of a place: an arrow moves it, with Shift its lower right corner.
 *
 * @param {Box} box
 * @param {KeyboardEvent} event
 * @returns {Partial<Box> | null}
 */
function coverAfter({ left, top, width, height }, { key, shiftKey }) {
  const step = { ArrowLeft: [-KEY_STEP, 0], ArrowRight: [KEY_STEP, 0], ArrowUp: [0, -KEY_STEP], ArrowDown: [0, KEY_STEP] }[key];
  if (!step) return null;
  const [x, y] = step;
  /** @type {(value: number, least: number, most: number) => number} */
  const within = (value, least, most) => Math.min(most, Math.max(least, value));
  if (shiftKey) return { width: within(width + x, KEY_STEP, 1 - left), height: within(height + y, KEY_STEP, 1 - top) };
  return { left: within(left + x, 0, 1 - width), top: within(top + y, 0, 1 - height) };
}
