// The tile of a screenshot: the picture itself, without a box of text, because the words are on it. Used wherever a list of
// screenshots is shown.

import { picture } from "../base/api.js";
import { UNFINISHED } from "../viewer/details.js";
import { button, fill, h, icon } from "../base/dom.js";
import { formatAgo, formatDate, parseTime } from "../base/format.js";
import { recalled, remember } from "../base/preferences.js";
import { t } from "../base/texts.js";
import { isVeiled, uncover, veil, veilable } from "../viewer/veil.js";

const CAPTION = 72; // characters of a title over its tile
const FEW_COLUMNS = matchMedia("(max-width: 600px)");
const TRASH_DAYS = 30; // as in curation/trash.py

/**
 * The name of a screenshot: the title that its analysis gave it, else the beginning of its summary, else its date. A veiled one has none.
 *
 * @param {PhotoItem} photo
 */
export function photoTitle(photo) {
  if (isVeiled(photo)) return t("veil.title");
  const [line] = (photo.title || photo.summary || "").trim().split("\n");
  return line.slice(0, 120) || t("tile.unnamed", { when: formatDate(photo.original_timestamp) });
}

/**
 * The tile of a photo; a click calls `open`, or uncovers it. Pointing at it or focusing it shows its title and time.
 *
 * @param {PhotoItem} photo
 * @param {{ open: (id: number) => unknown, [attribute: string]: any }} options
 */
export function photoCard(photo, { open, ...props }) {
  const when = formatDate(photo.original_timestamp);
  const press = () => (isVeiled(photo) ? uncover(photo.id) : open(photo.id));
  const node = h("button.photo-card", {
    type: "button",
    dataset: { photo: photo.id },
    on: { click: press },
    ...props,
    "aria-description": when,
  });
  veilable(node, photo, (veiled) => {
    const title = photoTitle(photo);
    const short = title.length > CAPTION ? `${title.slice(0, CAPTION).trimEnd()}…` : title;
    node.dataset.caption = veiled ? when : `${short}\n${when}`;
    fill(node, veiled ? veil(photo) : picture(thumbnailOf(photo), title), signsOf(photo));
  });
  return node;
}

/** Whether tiles have captions below them: as chosen, else on a phone only. */
export const hasCaptions = () => recalled("captions", FEW_COLUMNS.matches);

/** @param {boolean} wanted */
export const chooseCaptions = (wanted) => remember("captions", wanted);

/**
 * The title below a tile, with the app and the time. For the eye only: the tile itself says both.
 *
 * @param {PhotoItem} photo
 */
export function tileCaption(photo) {
  const node = h("span.photo-caption", { "aria-hidden": "true" });
  const about = [photo.app_name, formatAgo(photo.original_timestamp)].filter(Boolean).join(" · ");
  veilable(node, photo, () => fill(node, h("strong", photoTitle(photo)), h("span.muted", appMark(photo.app_name), h("span", about))));
  return node;
}

/**
 * The initial of an app on its own colour; nothing where no app is known.
 *
 * @param {string} app
 */
export function appMark(app) {
  const [initial] = app.trim();
  if (!initial) return null;
  const hue = [...app].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
  return h("span.app-mark", { "aria-hidden": "true", style: { "--hue": String(hue) }, "data-initial": initial.toUpperCase() });
}

/** @param {PhotoItem} photo */
function signsOf(photo) {
  return [
    !hasCaptions() && !isVeiled(photo) && appMark(photo.app_name),
    photo.deleted_at ? daysLeft(photo.deleted_at) : statusGlyph(photo.analysis_status),
    photo.stack &&
      h(
        "span.photo-stack",
        { title: t("tile.stack", { count: photo.stack.count }) },
        h("span.visually-hidden", t("tile.stack", { count: photo.stack.count })),
        h("span", { "aria-hidden": "true" }, String(photo.stack.count)),
        icon("stack"),
      ),
    photo.kept && h("span.photo-sign.kept", { title: t("tile.kept") }, icon("star"), h("span.visually-hidden", t("tile.kept"))),
  ];
}

/** @param {PhotoItem} photo */
export const thumbnailOf = (photo) => `/api/photos/${photo.id}/thumbnail${photo.deleted_at ? "?trash=true" : ""}`;

/**
 * What is over a tile for the mouse: to select it, and to keep it. Both have keys, so they are not in the tab order.
 *
 * @typedef {import("../base/dom.js").Glyph} Glyph
 * @param {PhotoItem} photo
 */
export function tileTools(photo) {
  const tool = (/** @type {Glyph} */ glyph, /** @type {string} */ name, pressed = false) =>
    button("", { glyph, kind: `tile-tool ${name}`, label: t(`tile.${name}`), tabindex: "-1", "aria-pressed": String(pressed) });
  return [tool("check", "select"), !photo.deleted_at && tool("star", "keep", photo.kept)];
}

/** @param {string} deleted */
function daysLeft(deleted) {
  const days = Math.ceil(TRASH_DAYS - (Date.now() - parseTime(deleted).getTime()) / 86_400_000);
  return h("span.photo-days", days > 1 ? t("tile.daysLeft", { count: days }) : t("tile.dayLeft"));
}

/**
 * A small sign in the corner of what has failed or is not analysed yet.
 *
 * @param {Status} status
 */
export function statusGlyph(status) {
  if (status !== "error" && !UNFINISHED.includes(status)) return null;
  const word = t(status === "error" ? "tile.failed" : "tile.waiting");
  return h(
    "span",
    { class: `photo-sign ${status}`, title: word },
    icon(status === "error" ? "warn" : "clock"),
    h("span.visually-hidden", word),
  );
}

/**
 * `text` with `pieces` of it highlighted, whatever their case.
 *
 * @param {string} text
 * @param {string[]} pieces
 */
export function marked(text, pieces) {
  const wanted = [...new Set(pieces.filter(Boolean))].sort((one, other) => other.length - one.length);
  if (!wanted.length) return text;
  const escaped = wanted.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // The pattern is one group, so every second part is a match.
  return text.split(new RegExp(`(${escaped.join("|")})`, "iu")).map((part, at) => (at % 2 ? h("mark", part) : part));
}
