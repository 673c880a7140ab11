// One picture on the stage of the viewer: loads it, first as its thumbnail, and owns its place and its text.

import { api, wasAborted } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { markLayer, spotLayer, textLayer } from "./overlay.js";
import { emptyState, failedState } from "../base/shell.js";
import { zoomable } from "./zoom.js";

const GLIDE_MS = 200;
const CONVERTED = ["image/heic", "image/avif"]; // where a browser cannot show these, the service makes a JPEG

/** The files of a picture, and the addresses at which the page shows them. */
class PictureFiles {
  /**
   * @param {number} id
   * @param {boolean} isTrashed
   */
  constructor(id, isTrashed) {
    this.give = new AbortController();
    this.id = id;
    this.isTrashed = isTrashed;
    /** @type {string[]} */
    this.urls = [];
    /** @type {Promise<Blob> | null} */
    this.original = null;
    /** @type {Blob | null} a JPEG, where the original cannot be shown */
    this.visible = null;
  }

  /**
   * @param {string} file
   * @param {Record<string, string>} [form]
   */
  async fetch(file, form = {}) {
    const query = new URLSearchParams({ ...(this.isTrashed && { trash: "true" }), ...form }).toString();
    const response = await api.open(`/api/photos/${this.id}/${file}${query && `?${query}`}`, this.give.signal);
    return response.blob();
  }

  /** The file. Fetched again where it failed. */
  blob() {
    return (this.original ??= this.fetch("image"));
  }

  /** @param {Blob} blob */
  addressOf(blob) {
    const url = URL.createObjectURL(blob);
    this.urls.push(url);
    return url;
  }

  /** @param {Blob} blob */
  async decoded(blob) {
    const full = new Image();
    full.src = this.addressOf(blob);
    await full.decode();
    return full;
  }

  /**
   * The picture, decoded: of the file, or of a JPEG of it where this browser cannot show the file.
   *
   * @param {Blob} blob the file
   */
  async full(blob) {
    try {
      return await this.decoded(blob);
    } catch (error) {
      if (!CONVERTED.includes(blob.type)) throw error;
      this.visible = await this.fetch("image", { format: "jpeg" });
      return this.decoded(this.visible);
    }
  }

  /** Give back its memory, and what is still under way. */
  release() {
    this.give.abort();
    for (const url of this.urls) URL.revokeObjectURL(url);
  }
}

/**
 * @param {number} id
 * @param {() => import("./zoom.js").Area} area
 * @param {PhotoItem | undefined} summary
 * @param {() => unknown} changed its place or scale has
 * @param {boolean} isTrashed
 */
export function pictureSlide(id, area, summary, changed, isTrashed) {
  const files = new PictureFiles(id, isTrashed);
  const { signal } = files.give;
  const image = h("img.viewer-image", { alt: "", draggable: "false", decoding: "async" });
  const canvas = h("div.viewer-canvas", { hidden: true }, image);
  const problem = h("div.viewer-problem", { hidden: true });
  const veil = h("div.viewer-veil", { hidden: true });
  const node = h("div.viewer-slide", { dataset: { slide: id } }, canvas, problem, veil);
  /** @type {import("./overlay.js").TextLayer | null} */
  let text = null;
  let marks = h("i", { hidden: true });
  let dates = h("i", { hidden: true });
  let spots = h("i", { hidden: true });
  const zoom = zoomable(area, () => {
    canvas.style.transform = `translate(${zoom.x}px, ${zoom.y}px) scale(${zoom.scale})`;
    canvas.classList.toggle("larger", zoom.isLarger());
    canvas.style.setProperty("--pixel", `${1 / zoom.scale}px`); // a CSS px, whatever the scale
    changed();
  });

  /** @param {import("./zoom.js").Size} size */
  function resize(size) {
    canvas.hidden = false;
    Object.assign(canvas.style, { width: `${size.width}px`, height: `${size.height}px` });
    zoom.resize(size);
  }

  async function showThumbnail() {
    if (canvas.hidden) return; // its size is not known yet, and the thumbnail's says nothing
    const blob = await files.fetch("thumbnail");
    if (!image.src && !signal.aborted) image.src = files.addressOf(blob);
  }

  async function show() {
    problem.hidden = true;
    try {
      const cover = await veiled();
      if (signal.aborted) return;
      isVeiled = Boolean(cover);
      if (cover) return showVeil(cover);
      showThumbnail().catch(() => {}); // the picture itself follows
      const blob = await files.blob();
      if (signal.aborted) return;
      const full = await files.full(blob);
      if (signal.aborted) return;
      resize({ width: full.naturalWidth, height: full.naturalHeight });
      image.src = full.src;
      node.dataset.state = "ready";
    } catch (error) {
      if (wasAborted(error) || signal.aborted) return;
      files.original = null;
      node.dataset.state = "broken";
      canvas.hidden = true;
      if (error?.status === 404) fill(problem, emptyState({ title: told.gone }));
      else {
        fill(
          problem,
          failedState(error?.name === "EncodingError" ? new Error(told.broken) : error, () => ((canvas.hidden = !zoom.size.width), show())),
        );
      }
      problem.hidden = false;
    }
  }
  let told = { broken: "", gone: "" };
  /** @type {() => Promise<Child>} */
  let veiled = async () => null;
  /** @type {boolean | undefined} */
  let isVeiled;

  /** @param {Child} content */
  function showVeil(content) {
    node.dataset.state = "veiled";
    image.hidden = true;
    veil.hidden = false;
    fill(veil, content);
  }

  if (summary?.width && summary.height) resize({ width: summary.width, height: summary.height });
  /** @type {Promise<void> | null} */
  let shown = null;

  return {
    id, node, canvas, image, zoom,
    /**
     * Load it, once. Resolves when it is shown, or has failed.
     *
     * @param {{ broken: string, gone: string }} sentences for a picture that cannot be decoded, and one that is not there
     * @param {() => Promise<Child>} covered what is shown in place of the picture, which then is not fetched; null for the picture
     */
    load(sentences, covered) {
      told = sentences;
      veiled = covered;
      return (shown ??= show());
    },
    /** Whether it has a veil; undefined until that is decided. */
    isCovered: () => isVeiled,
    /** The file. */
    blob: () => files.blob(),
    /** What is shown: the file, or a JPEG of it where this browser cannot show the file. */
    async picture() {
      return files.visible ?? files.blob();
    },
    text: () => text,
    /** @param {PhotoLines} found */
    setLines(found) {
      text?.node.remove();
      if (!zoom.size.width) resize({ width: found.width, height: found.height });
      text = textLayer(found.lines, zoom.size);
      image.after(text.node);
    },
    /** @param {import("./overlay.js").Target[]} targets */
    setSpots(targets) {
      spots.remove();
      spots = spotLayer(text?.places(targets) ?? []);
      canvas.append(spots);
    },
    /** @param {Box[]} boxes */
    setMarks(boxes) {
      marks.remove();
      marks = markLayer(boxes);
      image.after(marks);
    },
    /** @param {Box[]} boxes */
    setDates(boxes) {
      dates.remove();
      dates = markLayer(boxes);
      dates.classList.add("dates");
      image.after(dates);
    },
    /** Move to the next place with a movement, not a jump. */
    glide() {
      canvas.classList.add("gliding");
      setTimeout(() => canvas.classList.remove("gliding"), GLIDE_MS);
    },
    /** Give back its memory, and what is still under way. */
    release() {
      files.release();
      image.removeAttribute("src");
      node.remove();
    },
  };
}

/** @typedef {ReturnType<typeof pictureSlide>} Slide */
