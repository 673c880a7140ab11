// The results of a search. Each shows itself: the part of the picture where the words are, with a mark on them, and the text around
// them.

import { picture } from "../base/api.js";
import { add, fill, h } from "../base/dom.js";
import { formatAgo, formatDate, formatNumber, parseTime } from "../base/format.js";
import { appMark, marked, photoTitle, statusGlyph } from "./tile.js";
import { t } from "../base/texts.js";
import { isVeiled, uncover, veil, veilable } from "../viewer/veil.js";

export const MOST_FOUND = 100; // the API's limit for a search
const FRAME = 1.6; // width of a result's picture by its height
const CLOSEST = 1.8; // how far a picture is enlarged: beyond, it shows too little around the words
const CLOSER = 0.62; // the share of the frame's width that the match then takes

/**
 * @param {PhotoHit[]} hits
 * @param {{ q: string, open: (id: number) => unknown }} options
 */
export function resultList(hits, { q, open }) {
  const list = h("ul.list.results", hits.map((hit, index) => h("li", resultCard(hit, { q, open, tabindex: index ? "-1" : "0" }))));
  const cards = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll(".result")]);
  const move = (/** @type {HTMLElement} */ card) => {
    for (const one of cards()) one.tabIndex = one === card ? 0 : -1;
  };
  list.addEventListener("focusin", (event) => move(/** @type {HTMLElement} */ (event.target)));
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const all = cards();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const columns = getComputedStyle(list).gridTemplateColumns.split(" ").length;
    /** @type {Record<string, number>} */
    const targets = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - columns, ArrowDown: at + columns, Home: 0, End: all.length - 1 };
    if (at < 0 || !(event.key in targets)) return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, targets[event.key]))].focus();
  });
  return list;
}

/** @param {PhotoHit[]} hits the best first */
export function byDate(hits) {
  return [...hits].sort(
    (one, other) => parseTime(other.original_timestamp).getTime() - parseTime(one.original_timestamp).getTime() || other.id - one.id,
  );
}

/**
 * @param {PhotoHit} hit
 * @param {{ q: string, open: (id: number) => unknown, [attribute: string]: any }} options
 */
function resultCard(hit, { q, open, ...props }) {
  const matched = hit.matched?.length ? hit.matched : q.split(/[\s"'“”,，。;；]+/);
  const snippet = hit.snippet || hit.summary;
  const press = () => (isVeiled(hit) ? uncover(hit.id) : open(hit.id));
  const node = h("button.result", { type: "button", dataset: { photo: hit.id }, on: { click: press }, ...props });
  veilable(node, hit, (veiled) => {
    const title = photoTitle(hit);
    fill(
      node,
      veiled ? h("span.result-frame", veil(hit)) : matchFrame(hit),
      h(
        "span.result-words",
        h("strong.result-title", veiled ? title : marked(title, matched)),
        !veiled && snippet && snippet !== title && h("span.result-snippet", marked(snippet, matched)),
        h(
          "span.result-facts.muted",
          { title: formatDate(hit.original_timestamp) },
          appMark(hit.app_name),
          h("span", [hit.app_name, formatAgo(hit.original_timestamp)].filter(Boolean).join(" · ")),
        ),
      ),
    );
  });
  return node;
}

/**
 * The part of the picture with the match, with a mark on each word; without boxes its upper part.
 *
 * @param {PhotoHit} hit
 */
function matchFrame(hit) {
  const image = picture(`/api/photos/${hit.id}/thumbnail`, "");
  const boxes = hit.boxes ?? [];
  const { zoom, x, y } = shownPart(boxes, hit.height / hit.width);
  const pane = h(
    "span.result-pane",
    {
      style: { width: `${zoom * 100}%`, left: `${-x * 100}%`, top: `${-y * FRAME * 100}%`, "aspect-ratio": `${hit.width} / ${hit.height}` },
    },
    image,
  );
  sharpen(image, hit);
  const percent = (/** @type {number} */ share) => `${share * 100}%`;
  add(
    pane,
    boxes.map((box) =>
      h("i.result-mark", {
        style: { left: percent(box.left), top: percent(box.top), width: percent(box.width), height: percent(box.height) },
      }),
    ),
  );
  return h("span.result-frame", pane, statusGlyph(hit.analysis_status));
}

/**
 * Lay the original over its thumbnail, which is too small for this size. It is fetched when the thumbnail is there, and not where the
 * person saves data.
 *
 * @param {HTMLElement} image
 * @param {PhotoHit} hit
 */
function sharpen(image, hit) {
  const { connection } = /** @type {{ connection?: { saveData: boolean } }} */ (navigator);
  if (connection?.saveData) return;
  image.addEventListener("load", () => image.after(picture(`/api/photos/${hit.id}/image`, "", { class: "sharp" })), { once: true });
}

/**
 * How far to enlarge a picture, and which point of it is at the top left of the frame, in widths of the frame.
 *
 * @param {Box[]} boxes
 * @param {number} tall height of the picture by its width
 */
function shownPart(boxes, tall) {
  const least = Math.max(1, 1 / FRAME / tall); // covers the frame
  if (!boxes.length) return { zoom: least, x: (least - 1) / 2, y: 0 };
  // All of them if they fit, else the first, which is the best.
  const all = union(boxes);
  const fits = all.height * tall * least <= 0.9 / FRAME;
  const part = fits ? all : boxes[0];
  const closer = Math.min(CLOSEST, CLOSER / Math.max(part.width, 0.01), 0.6 / FRAME / Math.max(part.height * tall, 0.001));
  const zoom = Math.max(least, closer);
  const within = (/** @type {number} */ at, /** @type {number} */ most) => Math.min(Math.max(0, at), Math.max(0, most));
  return {
    zoom, x: within((part.left + part.width / 2) * zoom - 0.5, zoom - 1),
    y: within((part.top + part.height / 2) * tall * zoom - 0.5 / FRAME, tall * zoom - 1 / FRAME),
  };
}

/** @param {Box[]} boxes */
function union(boxes) {
  const left = Math.min(...boxes.map((box) => box.left));
  const top = Math.min(...boxes.map((box) => box.top));
  return {
    left,
    top,
    width: Math.max(...boxes.map((box) => box.left + box.width)) - left,
    height: Math.max(...boxes.map((box) => box.top + box.height)) - top,
  };
}

/**
 * What is said above the results: how many, which words were taken for others, and the order.
 *
 * @param {PhotoHits} found
 * @param {{ order: string, choose: (order: string) => unknown }} options
 */
export function resultHead(found, { order, choose }) {
  const count = found.items.length;
  const isRanked = found.items.some((hit) => hit.score > 0); // without words, they are in the order of time
  const [shown, total] = [formatNumber(count), formatNumber(found.total)];
  const amount = isRanked ? t(count < MOST_FOUND ? "results.found" : "results.best", { count: shown })
    : t(found.total > count ? "results.latest" : "results.found", { count: shown, total });
  const option = (/** @type {string} */ value, /** @type {string} */ word) =>
    h("button.filter", {
      type: "button",
      "aria-pressed": String(order === value),
      on: { click: () => choose(value) },
      text: t(`results.${word}`),
    });
  return h(
    "div.results-head",
    h(
      "p.muted",
      { role: "status" },
      amount,
      (found.corrected ?? []).map(({ word, matched }) =>
        h("span.results-corrected", ` · ${t("results.corrected", { word, matched: matched.join(", ") })}`),
      ),
    ),
    count > 1 &&
      isRanked &&
      h("div.row.results-order", { role: "group", "aria-label": t("results.order") }, option("", "relevance"), option("taken", "taken")),
  );
}

/**
 * Nothing was found: the nearest words that exist, each one tap away.
 *
 * @param {PhotoHits} found
 * @param {{ q: string, search: (q: string) => unknown, action: Child, narrowed: boolean }} options `action` removes the filters, if any
 *   are set
 */
export function nothingFound(found, { q, search, action, narrowed }) {
  const nearest = found.nearest ?? [];
  return h(
    "div.empty",
    h("div", { role: "status" }, h("h2", t("results.none", { q }))),
    h("p", t(narrowed ? "results.noneNarrowed" : "results.noneText")),
    action,
    nearest.length > 0 && [
      h("p", { id: "nearest", text: t("results.nearest") }),
      h(
        "div.row.nearest",
        { role: "group", "aria-labelledby": "nearest" },
        nearest.map(({ word, photos }) =>
          h(
            "button.filter",
            {
              type: "button",
              "aria-label": t("results.nearestLabel", { word, count: formatNumber(photos) }),
              on: { click: () => search(word) },
            },
            h("span", word),
            h("span.muted", formatNumber(photos)),
          ),
        ),
      ),
    ],
  );
}
