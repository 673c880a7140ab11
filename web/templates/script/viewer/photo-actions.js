// What can be done with the photo in the viewer: download, share, copy, keep, analyse again, throw away.

import { settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { trashPhoto } from "../base/deletion.js";
import { fail, toast } from "../base/dialogs.js";
import { openMenu } from "../base/menu.js";
import { copyToClipboard, saveFile } from "../base/picture-file.js";
import { withLater } from "../base/parts.js";
import { busy, copyText } from "../base/shell.js";
import { t } from "../base/texts.js";
import { tell } from "../base/upload.js";
import { textOf } from "./details.js";
import { kindsOf } from "./veil.js";

export class PhotoActions {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
  }

  async file() {
    const { id, photo, slides } = this.viewer;
    const blob = await slides.current().blob();
    return new File([blob], photo?.filename || `${id}`, { type: blob.type });
  }

  /** @param {HTMLButtonElement} pressed */
  download(pressed) {
    settle(pressed, () => this.file(), saveFile);
  }

  /** @param {HTMLButtonElement} pressed */
  share(pressed) {
    const { id, slides, veil } = this.viewer;
    const covered = veil.isCovered();
    withLater(({ openSharing }) => busy(pressed, openSharing(id, { covered, picture: () => slides.current().picture() })).catch(fail));
  }

  /** @param {HTMLButtonElement} pressed */
  copyPicture(pressed) {
    busy(pressed, copyToClipboard(this.viewer.slides.current().picture()));
  }

  copyText() {
    const { marks, photo } = this.viewer;
    const rows = marks.rows();
    const all = rows.length ? rows.map(({ text }) => text).join("\n") : (photo ? textOf(photo) : "");
    if (all) copyText(all);
    else toast(t("viewer.noText"));
  }

  openMore() {
    const { id, isTrash, slides, veil, frame: { node, more } } = this.viewer;
    const isSensitive = kindsOf(veil.known(id) ?? { id, sensitive: [] }).length > 0;
    /** @type {import("../base/menu.js").MenuItem[]} */
    const items = [{ label: t("viewer.actual"), glyph: "search", run: () => slides.actualSize() }];
    if (!isTrash && isSensitive) items.push({ label: t("viewer.notSensitive"), glyph: "check", run: () => veil.clear() });
    if (!isTrash) items.push({ label: t("viewer.reprocess"), glyph: "refresh", run: () => this.reprocess(more) });
    openMenu(node, more, { label: t("viewer.more"), back: more, items });
  }

  /** @param {HTMLButtonElement} pressed */
  async reprocess(pressed) {
    const { viewer } = this;
    const { id } = viewer;
    try {
      await busy(pressed, api.post(`/api/analysis/${id}/reprocess`));
      toast(t("viewer.queued"), { kind: "good" });
      tell("changed", id);
      const { photo } = viewer;
      if (photo && id === viewer.id) viewer.details.show({ ...photo, analysis: { ...photo.analysis, status: "pending" } });
    } catch (error) {
      fail(error);
    }
  }

  async toggleKept() {
    await this.viewer.detailArrives;
    const { photo } = this.viewer;
    if (!photo) return;
    photo.kept = !photo.kept;
    this.showKept();
    try {
      await api.patch(`/api/photos/${photo.id}`, { kept: photo.kept });
      tell("changed", photo.id);
    } catch (error) {
      photo.kept = !photo.kept;
      this.showKept();
      fail(error);
    }
  }

  showKept() {
    const { photo, frame: { star } } = this.viewer;
    star.setAttribute("aria-pressed", String(photo?.kept ?? this.viewer.summary()?.kept ?? false));
  }

  /** Throw it away and show the next one, so that many can be gone through. */
  async remove() {
    const { viewer } = this;
    const gone = viewer.id;
    const next = await viewer.neighbours.next();
    if (!this.isStill(gone)) return;
    trashPhoto(gone);
    this.goOn(next);
  }

  /**
   * It has left the trash: show the next one.
   *
   * @param {"restored" | "deleted"} how
   */
  async leaveTrash(how) {
    const { viewer } = this;
    const gone = viewer.id;
    const next = await viewer.neighbours.next();
    tell("deleted", gone);
    if (how === "restored") tell("many", 0);
    if (this.isStill(gone)) this.goOn(next);
  }

  /** @param {number} id */
  isStill(id) {
    return this.viewer.id === id && !this.viewer.isLeaving;
  }

  /** @param {number | null} next */
  goOn(next) {
    if (next === null) this.viewer.leave();
    else this.viewer.show(next);
  }
}
