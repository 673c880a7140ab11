// Whole folders: those that are dropped on the page, and those that are picked.

import { h } from "./dom.js";
import { isPicture } from "./picture-file.js";
import { uploadFiles } from "./upload.js";

/** Let the person pick a folder, and upload its pictures. */
export function pickFolder() {
  const input = h("input", { type: "file", webkitdirectory: true });
  input.addEventListener("change", () => {
    const files = [...(input.files ?? [])];
    uploadFolder(files, files[0]?.webkitRelativePath.split("/")[0] ?? "");
  });
  input.click();
}

/**
 * Upload what was dropped: files, and the pictures of folders and of the folders in them.
 *
 * @param {FileSystemEntry[]} entries
 */
export async function uploadEntries(entries) {
  /** @type {File[]} */
  const files = [];
  for (const entry of entries) await collect(entry, files);
  uploadFolder(files, entries.find((entry) => entry.isDirectory)?.name ?? "");
}

/**
 * Upload the pictures among these files, the newest first, because those are looked for first.
 *
 * @param {File[]} files
 * @param {string} folder
 */
function uploadFolder(files, folder) {
  const pictures = files.filter((file) => isPicture(file) && !isHidden(file));
  uploadFiles(pictures.sort((one, other) => other.lastModified - one.lastModified), folder);
}

/** @param {File} file */
const isHidden = (file) => `/${file.webkitRelativePath || file.name}`.includes("/."); // thumbnails of other programs, trash

/**
 * @param {FileSystemEntry} entry
 * @param {File[]} found
 */
async function collect(entry, found) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    const file = await new Promise((/** @type {(file: File | null) => void} */ resolve) =>
      /** @type {FileSystemFileEntry} */ (entry).file(resolve, () => resolve(null))); // removed meanwhile
    if (file) found.push(file);
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) return;
    for (const one of some) await collect(one, found); // a reader gives up to a hundred at once
  }
}
