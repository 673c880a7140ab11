// A picture as a file that leaves the page: saved, shared, or copied to the clipboard.

import { fail, toast } from "./dialogs.js";
import { h } from "./dom.js";
import { t } from "./texts.js";

const TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif", "image/heic", "image/avif"];
/** What file choosers offer. Windows and Linux give HEIC files no type, so it is named by its endings too. */
export const ACCEPTED = [...TYPES, ".heic", ".heif", ".avif"].join();

const SAVED_MS = 60_000; // until then the browser has begun to save it

/**
 * Whether a file may be a picture that the service takes.
 *
 * @param {File} file
 */
export function isPicture({ type, name }) {
  return type ? TYPES.includes(type) || type === "image/heif" : /\.(heic|heif|avif)$/i.test(name);
}

/**
 * Remove an image of a file that this browser cannot show: few show HEIC.
 *
 * @param {Event} event
 */
export function dropBroken({ target }) {
  if (target instanceof Element) target.remove();
}

/** @param {File} file */
export function saveFile(file) {
  const url = URL.createObjectURL(file);
  h("a", { href: url, download: file.name }).click();
  setTimeout(() => URL.revokeObjectURL(url), SAVED_MS);
}

/** Whether this browser shares files with other apps, and from this address. */
export function canShareFiles() {
  return Boolean(navigator.canShare?.({ files: [new File([""], "a.png", { type: "image/png" })] }));
}

/** @param {Promise<Blob>} picture */
export async function copyToClipboard(picture) {
  if (!navigator.clipboard?.write || typeof ClipboardItem === "undefined") return toast(t("file.noCopy"));
  try {
    // The promise and not the blob: Safari wants the call within the click.
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture.then(asPng) })]);
    toast(t("file.copied"), { kind: "good", seconds: 2 });
  } catch (error) {
    if (error?.name === "NotAllowedError") toast(t("file.noCopy"));
    else fail(error);
  }
}

/**
 * A picture as PNG, the only type that every clipboard takes.
 *
 * @param {Blob} blob
 * @returns {Promise<Blob>}
 */
async function asPng(blob) {
  if (blob.type === "image/png") return blob;
  const bitmap = await createImageBitmap(blob);
  const canvas = h("canvas", { width: bitmap.width, height: bitmap.height });
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
  bitmap.close();
  return new Promise((resolve, reject) =>
    canvas.toBlob((made) => (made ? resolve(made) : reject(new Error(t("file.broken")))), "image/png"),
  );
}
