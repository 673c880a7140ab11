// The part of a screenshot that says what an answer says: cut out of the original, at the pixels of the screen, with the lines marked.

import { api } from "../base/api.js";
import { fill, h, icon } from "../base/dom.js";
import { t } from "../base/texts.js";
import { lookUp, reasonOf, veilable } from "../viewer/veil.js";
import { openPhoto } from "../viewer/viewer.js";

const MOST_CUTOUTS = 4; // screenshots of an answer
const LINES_AROUND = 0.8; // heights of a line that are shown above and below
const TALLEST_CUTOUT = 0.9; // of the width; lines that are farther apart are not shown together
const NARROWEST_CUTOUT = 0.55; // part of the width that a cut-out of a wide picture has
const WIDE_CUTOUT = 1.2; // times as wide as high: a picture of which a part of the width is shown

/**
 * The cut-outs of the screenshots that an answer cites, each with its title; null where it cites none.
 *
 * @param {Citation[]} citations
 * @param {Map<number, string>} titles
 */
export function cutouts(citations, titles) {
  const ids = [...new Set(citations.map(({ photo_id: id }) => id))].slice(0, MOST_CUTOUTS);
  if (!ids.length) return null;
  const looked = lookUp(ids);
  return h("ul.list.cutouts", { "aria-label": t("cited.title") }, ids.map((id) => {
    const boxes = citations.filter((one) => one.photo_id === id).flatMap((one) => one.boxes);
    return h("li", cutout(id, titles.get(id) ?? "", boxes, looked));
  }));
}

/**
 * @param {number} id
 * @param {string} title
 * @param {Box[]} boxes
 * @param {Promise<Map<number, import("../viewer/veil.js").Veilable>>} looked
 */
function cutout(id, title, boxes, looked) {
  const frame = h("span.cutout-frame");
  const name = h("span.cutout-title", title || t("cited.untitled"));
  const node = h("button.cutout",
    { type: "button", "aria-label": `${title}: ${t("cited.open", { id })}`, on: { click: () => openPhoto(id, { found: () => ({ matched: [], boxes }) }) } },
    frame, name);
  looked.then((found) => {
    const photo = found.get(id) ?? { id, sensitive: [] };
    veilable(node, photo, (veiled) => {
      name.textContent = veiled ? reasonOf(photo) : title || t("cited.untitled");
      fill(frame, veiled ? h("span.veil", icon("hidden")) : null);
      if (!veiled) whenCutoutSeen(node, () => drawCutout(frame, id, boxes));
    });
  }, () => {}); // without it no picture is shown
  return node;
}

/**
 * Draw the part of the picture that has the boxes, and mark them. A picture that cannot be shown leaves only its title.
 *
 * @param {HTMLElement} frame
 * @param {number} id
 * @param {Box[]} boxes
 */
async function drawCutout(frame, id, boxes) {
  try {
    const picture = await originalOf(id);
    const part = partWith(boxes, picture.width, picture.height);
    const shown = frame.clientWidth || 320;
    const scale = Math.min(1, (shown * devicePixelRatio) / part.width);
    const canvas = h("canvas.cutout-picture", { "aria-hidden": "true" });
    if (!(canvas instanceof HTMLCanvasElement)) return;
    canvas.width = Math.max(1, Math.round(part.width * scale));
    canvas.height = Math.max(1, Math.round(part.height * scale));
    const pen = canvas.getContext("2d");
    if (pen) pen.imageSmoothingQuality = "high";
    pen?.drawImage(picture, part.left, part.top, part.width, part.height, 0, 0, canvas.width, canvas.height);
    picture.close();
    const marks = part.boxes.map((box) => h("span.cutout-mark", { style: {
      left: `${(100 * (box.left - part.left)) / part.width}%`,
      top: `${(100 * (box.top - part.top)) / part.height}%`,
      width: `${(100 * box.width) / part.width}%`,
      height: `${(100 * box.height) / part.height}%`,
    } }));
    fill(frame, canvas, marks);
  } catch { /* deleted, or a format that this browser cannot show */ }
}

/**
 * The original, upright; where the browser cannot show its format, as a JPEG.
 *
 * @param {number} id
 */
async function originalOf(id) {
  const original = await (await api.open(`/api/photos/${id}/image`)).blob();
  try {
    return await createImageBitmap(original);
  } catch {
    return createImageBitmap(await (await api.open(`/api/photos/${id}/image?format=jpeg`)).blob());
  }
}

/**
 * The part of a picture around the first box and those near to it, in pixels, with these boxes.
 *
 * @param {Box[]} given in parts of the picture
 * @param {number} width
 * @param {number} height
 */
export function partWith(given, width, height) {
  const boxes = given.map((box) => (
    { left: box.left * width, top: box.top * height, width: box.width * width, height: box.height * height }
  ));
  const [first] = boxes;
  const isWide = width > WIDE_CUTOUT * height;
  const shownWidth = isWide ? Math.max(NARROWEST_CUTOUT * width, first.width * 1.1) : width;
  const near = boxes.filter((box) => Math.abs(box.top - first.top) + box.height < TALLEST_CUTOUT * shownWidth * 0.5);
  const around = LINES_AROUND * Math.min(...near.map((box) => box.height));
  const top = Math.max(0, Math.min(...near.map((box) => box.top)) - around);
  const bottom = Math.min(height, Math.max(...near.map((box) => box.top + box.height)) + around);
  const middle = first.left + first.width / 2;
  const left = Math.min(Math.max(0, middle - shownWidth / 2), width - shownWidth);
  return { left, top, width: Math.min(width, shownWidth), height: Math.max(1, bottom - top), boxes: near };
}

/**
 * @param {HTMLElement} node
 * @param {() => unknown} then
 */
function whenCutoutSeen(node, then) {
  const watcher = new IntersectionObserver(([entry]) => {
    if (!entry?.isIntersecting) return;
    watcher.disconnect();
    then();
  }, { rootMargin: "200px" });
  watcher.observe(node);
}
