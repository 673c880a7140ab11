// Uploads: files that are chosen, dropped or pasted, three at a time, with progress, and with retries after network failures.

import { api, wasAborted } from "./api.js";
import { sentence, toast } from "./dialogs.js";
import { button, fill, h, listen } from "./dom.js";
import { formatPercent } from "./format.js";
import { canWait, keepForLater } from "./outbox.js";
import { ACCEPTED, isPicture } from "./picture-file.js";
import { forget, recalled, remember } from "./preferences.js";
import { t } from "./texts.js";

const LARGEST_UPLOAD = 50 * 1024 * 1024;
const UPLOADS_AT_ONCE = 3;
const ROWS_LISTED = 50; // rows
const REFUSED = [400, 413, 415, 422]; // what a picture is refused with that will never be accepted
const UPLOAD_RETRIES = 3;
const FIRST_DELAY = 1; // seconds; doubled each time
const STORED_SECONDS = 6; // that the list stays after everything is stored
const NOTED_EVERY = 20; // uploads after which is noted how far a folder is
const UPLOAD_DEVICE = "dashboard"; // the same for all browsers, so that a file uploaded from two of them is stored once

/**
 * @typedef {object} Upload
 * @property {File} file
 * @property {string} name
 * @property {"waiting" | "sending" | "done" | "dedup" | "again" | "failed" | "queued" | "stopped"} phase
 * @property {number} fraction sent so far, 0 to 1
 * @property {number} tries
 * @property {string} note shown instead of the phase
 * @property {boolean} [final] whether a retry would fail too
 * @property {FormData} [form]
 * @property {AbortController} [stop]
 * @property {HTMLElement | null} [row]
 */

/** Events for views that show photos: "added", "changed", "hidden", "restored", "deleted". The detail is the id. */
export const photoEvents = new EventTarget();
/**
 * @param {"added" | "changed" | "hidden" | "restored" | "deleted" | "many"} type "many": several photos have changed, or gone
 * @param {number} detail
 */
export function tell(type, detail) {
  photoEvents.dispatchEvent(new CustomEvent(type, { detail }));
}

/** @type {Upload[]} */
const uploads = [];
/** @type {UploadPanel | null} */
let uploadPanel = null;
/**
 * What to do with folders, which the later part of the page knows. The entry of the page sets it.
 *
 * @type {{ take: (entries: FileSystemEntry[]) => unknown, pick: () => unknown }}
 */
export const folders = { take: () => {}, pick: () => {} };
let folderName = ""; // of the folder that is being uploaded

export const uploadButton = () => button(t("upload.add"), { glyph: "upload", kind: "primary", click: pickFiles });

export function pickFiles() {
  const input = h("input", { type: "file", accept: ACCEPTED, multiple: true });
  input.addEventListener("change", () => uploadFiles(input.files ?? []));
  input.click();
}

/**
 * Upload files that are dropped on the page or pasted, and highlight `target` meanwhile. Returns a function that ends this.
 *
 * @param {HTMLElement} target
 */
export function acceptFiles(target) {
  const carries = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0; // dragenter and dragleave fire for every child too
  const mark = (/** @type {number} */ step) => target.classList.toggle("dropping", (depth = Math.max(0, depth + step)) > 0);
  /** @type {Listeners} */
  const listeners = {
    dragenter: (event) => carries(event) && mark(1),
    dragleave: (event) => carries(event) && mark(-1),
    dragover: (event) => carries(event) && event.preventDefault(),
    drop: (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      mark(-depth);
      // Asked for at once: after the event they are gone.
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      if (entries.some((entry) => entry.isDirectory)) folders.take(entries);
      else uploadFiles(event.dataTransfer.files);
    },
    paste: (event) => event.clipboardData?.files.length && uploadFiles(event.clipboardData.files),
  };
  target.dataset.drop = t("upload.drop");
  return listen(document, listeners);
}

/**
 * @param {Iterable<File>} files
 * @param {string} [folder] the name of the folder that they are all of
 */
export function uploadFiles(files, folder = "") {
  const chosen = [...files];
  folderName = chosen.length ? folder || folderName : folderName;
  for (const file of chosen) {
    /** @type {Upload} */
    const upload = { file, name: file.name || "screenshot.png", phase: "waiting", fraction: 0, tries: 0, note: "" };
    const problem = !isPicture(file) ? "type" : file.size > LARGEST_UPLOAD ? "large" : file.size === 0 ? "empty" : null;
    if (problem) Object.assign(upload, { phase: "failed", note: t(`upload.${problem}`), final: true });
    uploads.push(upload);
    showUpload(upload);
  }
  if (!chosen.length) toast(t("upload.none"));
  startUploads();
}

/**
 * Note how far a folder is, so that after a reload the page can say how to go on. The browser gives the files to one page only.
 *
 * @param {number} done
 */
function noteFolder(done) {
  if (!folderName) return;
  if (!uploads.some(underWay)) {
    folderName = "";
    forget("folder");
  } else if (done % NOTED_EVERY === 0) remember("folder", { name: folderName, done, total: uploads.length });
}

/** Say after a reload that a folder was not uploaded to its end, and offer to go on. */
export function tellInterrupted() {
  const left = recalled("folder", null);
  if (!left || uploads.length) return;
  forget("folder");
  toast(t("upload.interrupted", left), { seconds: 60, action: { label: t("upload.folder"), run: () => folders.pick() } });
}

function startUploads() {
  while (uploads.filter((upload) => upload.phase === "sending").length < UPLOADS_AT_ONCE) {
    const next = uploads.find((upload) => upload.phase === "waiting");
    if (!next) break;
    send(next);
  }
}

/** @param {Upload} upload */
async function send(upload) {
  change(upload, "sending", { fraction: 0 });
  try {
    upload.form ??= await uploadForm(upload);
    upload.stop = new AbortController();
    const onProgress = (/** @type {number} */ fraction) => change(upload, "sending", { fraction });
    const stored = await api.form("/api/photos/upload", upload.form, { onProgress, signal: upload.stop.signal });
    change(upload, stored.dedup ? "dedup" : "done", { fraction: 1 });
    if (!stored.dedup) tell("added", stored.id);
  } catch (error) {
    if (wasAborted(error)) return;
    const passing = error.status === 0 || error.status === 429 || [500, 502, 503, 504].includes(error.status);
    if (passing && upload.tries < UPLOAD_RETRIES) {
      const seconds = error.retryAfter ?? FIRST_DELAY * 2 ** upload.tries;
      upload.tries += 1;
      change(upload, "again", { note: t("upload.again", { seconds }) });
      setTimeout(() => {
        if (upload.phase !== "again") return;
        change(upload, "waiting");
        startUploads();
      }, seconds * 1000);
    } else if (error.status === 0 && canWait()) {
      await keepForLater(upload.file, upload.name, await fingerprint(upload.file)).then(
        () => change(upload, "queued", { note: t("outbox.queued") }),
        () => change(upload, "failed", { note: sentence(error) }));
    } else change(upload, "failed", { note: sentence(error).replace(/^file: /, ""), final: REFUSED.includes(error.status) });
  }
  startUploads();
}

/** @param {Upload} upload */
async function uploadForm({ file, name }) {
  const form = new FormData();
  const described = { device_id: UPLOAD_DEVICE, device_name: "Dashboard", mime_type: file.type, file_timestamp: file.lastModified };
  for (const [key, value] of Object.entries({ ...described, local_media_store_id: await fingerprint(file) })) {
    form.append(key, String(value));
  }
  form.append("file", file, name);
  return form;
}

/**
 * The key of de-duplication: a hash of the bytes, or size, date and name where the browser cannot hash (plain http).
 *
 * @param {File} file
 */
async function fingerprint(file) {
  if (!crypto.subtle) return `${file.size}-${file.lastModified}-${file.name}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return `sha256-${[...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * @param {Upload} upload
 * @param {Upload["phase"]} phase
 * @param {Partial<Upload>} more
 */
function change(upload, phase, more = {}) {
  Object.assign(upload, { note: "" }, more, { phase });
  showUpload(upload);
}

const underWay = (/** @type {Upload} */ upload) => ["waiting", "sending", "again"].includes(upload.phase);

// The browser asks for confirmation before the page is left during an upload.
listen(window, { beforeunload: (event) => uploads.some(underWay) && event.preventDefault() });

/** Abort all uploads, at sign-out. */
export function stopUploads() {
  for (const upload of uploads.splice(0)) {
    upload.phase = "stopped";
    upload.stop?.abort();
  }
  hideUploads();
}

function hideUploads() {
  uploads.splice(0, uploads.length, ...uploads.filter(underWay));
  for (const upload of uploads) upload.row = null;
  uploadPanel?.close();
  uploadPanel = null;
}

// The panel of uploads: one line, which unfolds into the list. Failures stand first in it, and what is stored leaves it. It goes away by
// itself when everything is stored.
class UploadPanel {
  #status = h("p.grow", { role: "status" });
  #toggle = button("", {
    glyph: "down",
    kind: "quiet",
    label: t("upload.unfold"),
    "aria-expanded": "false",
    click: () => this.#fold(!this.#list.hidden),
  });
  #again = button(t("upload.retryAll"), { kind: "quiet", hidden: true, click: () => uploads.filter(mayRetry).forEach(tryAgain) });
  #bar = h("i");
  #list = h("ul.list.uploads-list", { hidden: true });
  #timer = 0;

  constructor() {
    const close = button("", { glyph: "close", kind: "quiet", label: t("upload.hide"), click: hideUploads });
    this.element = h(
      "section.uploads.card",
      { label: t("upload.title") },
      h("div.row.uploads-line", this.#status, this.#again, this.#toggle, close),
      h("div.meter", { "aria-hidden": "true" }, this.#bar),
      this.#list,
    );
    listen(this.element, { pointerleave: () => this.count(), focusout: () => this.count() });
    document.body.append(this.element);
  }

  close() {
    clearTimeout(this.#timer);
    this.element.remove();
  }

  /** @param {boolean} isFolded */
  #fold(isFolded) {
    this.#list.hidden = isFolded;
    this.#toggle.setAttribute("aria-expanded", String(!isFolded));
    this.#toggle.ariaLabel = this.#toggle.title = t(isFolded ? "upload.unfold" : "upload.fold");
  }

  /** @param {Upload} upload */
  show(upload) {
    if (upload.phase === "waiting" && this.#list.children.length >= ROWS_LISTED) return; // of a folder, there may be thousands
    if (["done", "dedup"].includes(upload.phase)) {
      upload.row?.remove();
      upload.row = null;
      return;
    }
    const isNew = !upload.row;
    const row = (upload.row ??= uploadRow(upload));
    const hasFailed = upload.phase === "failed";
    if (hasFailed && row.dataset.phase !== "failed") {
      const firstOther = [...this.#list.children].find((other) => other.getAttribute("data-phase") !== "failed") ?? null;
      if (firstOther !== row) this.#list.insertBefore(row, firstOther);
    } else if (isNew) this.#list.append(row);
    fillRow(upload, row);
  }

  /** Say how far the uploads are, and go away soon after the last one if none has failed. */
  count() {
    clearTimeout(this.#timer);
    const done = uploads.filter((one) => ["done", "dedup"].includes(one.phase)).length;
    const failed = uploads.filter((one) => one.phase === "failed").length;
    const queued = uploads.filter((one) => one.phase === "queued").length;
    const known = uploads.filter((one) => one.phase === "dedup").length;
    const isOver = !uploads.some(underWay);
    noteFolder(done + failed);
    const kind = failed ? "failures" : queued ? "queued" : !isOver ? "summary" : known === done ? "known" : known ? "mixed" : "stored";
    const text = t(`upload.${kind}`, { done, failed, queued, known, fresh: done - known, total: uploads.length });
    if (this.#status.textContent !== text) this.#status.textContent = text;
    const fraction = uploads.reduce((sum, one) => sum + (underWay(one) ? one.fraction : 1), 0) / Math.max(1, uploads.length);
    this.#bar.style.width = `${Math.round(100 * fraction)}%`;
    this.element.classList.toggle("failed", failed > 0);
    this.#again.hidden = !isOver || uploads.filter(mayRetry).length < 2;
    this.#toggle.hidden = !this.#list.children.length;
    if (!isOver) return;
    if (failed) this.#fold(false);
    else this.#timer = setTimeout(() => !this.element.matches(":hover, :focus-within") && hideUploads(), STORED_SECONDS * 1000);
  }
}

/** @param {Upload} upload */
function showUpload(upload) {
  uploadPanel ??= new UploadPanel();
  uploadPanel.show(upload);
  uploadPanel.count();
}

/** @param {Upload} upload */
const mayRetry = (upload) => upload.phase === "failed" && !upload.final;

/** @param {Upload} upload */
function tryAgain(upload) {
  change(upload, "waiting", { tries: 0 });
  startUploads();
}

/** @param {Upload} upload */
function uploadRow({ name }) {
  const meter = h(
    "div.meter",
    { role: "progressbar", label: t("upload.progress", { name }), "aria-valuemin": 0, "aria-valuemax": 100 },
    h("i"),
  );
  return h("li.upload", h("span.upload-name", name), h("span.upload-state.small"), meter);
}

/**
 * @param {Upload} upload
 * @param {HTMLElement} row
 */
function fillRow(upload, row) {
  const percent = Math.round(upload.fraction * 100);
  const [, state, meter] = /** @type {Iterable<HTMLElement>} */ (row.children);
  row.dataset.phase = upload.phase;
  meter.setAttribute("aria-valuenow", String(percent));
  /** @type {HTMLElement} */ (meter.firstChild).style.width = `${percent}%`;
  const word = upload.phase === "sending" && percent === 100 ? "storing" : upload.phase;
  fill(state, upload.note || (word === "sending" ? formatPercent(upload.fraction) : t(`upload.${word}`)));
  if (mayRetry(upload)) {
    state.append(
      button("", { glyph: "refresh", kind: "quiet", label: t("upload.retry", { name: upload.name }), click: () => tryAgain(upload) }),
    );
  }
}
