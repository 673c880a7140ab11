// The veil over what is sensitive, such as a payment card: it covers a screenshot wherever it would be shown, and says why, until somebody
// uncovers it. A covered picture is not even fetched, so nothing shows through. After five minutes it is covered again, and so it is when
// the page is loaded.

import { api } from "../base/api.js";
import { h, icon, listen } from "../base/dom.js";
import { formatList } from "../base/format.js";
import { t, term } from "../base/texts.js";

const UNCOVERED = 5 * 60_000; // ms

/** @typedef {{ id: number, sensitive: string[] }} Veilable */

/**
 * When a photo is covered again, in ms, by id.
 *
 * @type {Map<number, number>}
 */
const uncovered = new Map();

/**
 * What a person has said since the lists were fetched, by id.
 *
 * @type {Map<number, string[]>}
 */
const learned = new Map();

/** @type {WeakMap<Element, () => unknown>} */
const draws = new WeakMap();

/** "changed": a photo, whose id is its detail, was covered, uncovered, or is known to be sensitive or not. */
export const veilEvents = new EventTarget();

/** @param {Veilable} photo */
export const kindsOf = ({ id, sensitive }) => learned.get(id) ?? sensitive;

/** @param {Veilable} photo */
export const isVeiled = (photo) => kindsOf(photo).length > 0 && !((uncovered.get(photo.id) ?? 0) > Date.now());

/** @param {number} id */
export function uncover(id) {
  uncovered.set(id, Date.now() + UNCOVERED);
  setTimeout(coverAgain, UNCOVERED);
  changed(id);
}

/**
 * What is sensitive on a photo is known to be this.
 *
 * @param {number} id
 * @param {string[]} kinds
 */
export function learn(id, kinds) {
  learned.set(id, kinds);
  changed(id);
}

/**
 * Draw `node` by whether the photo is veiled, now and whenever that changes.
 *
 * @param {HTMLElement} node
 * @param {Veilable} photo
 * @param {(veiled: boolean) => unknown} draw
 */
export function veilable(node, photo, draw) {
  node.dataset.veil = String(photo.id);
  draws.set(node, () => draw(isVeiled(photo)));
  draw(isVeiled(photo));
}

/**
 * Why a photo is veiled, as a sentence.
 *
 * @param {Veilable} photo
 */
export const reasonOf = (photo) => reasonFor(kindsOf(photo));

/** @param {string[]} kinds */
export const reasonFor = (kinds) => t("veil.looks", { kinds: formatList(kinds.map((kind) => term("sensitive", kind))) });

/**
 * The title of a note; of one about something sensitive only that.
 *
 * @param {DynamicItem} note
 */
export const noteName = ({ title, sensitive: kinds }) => (kinds?.length ? t("veil.note") : title);

/**
 * A text, or, while something of these kinds is in it, a button in its place that shows it.
 *
 * @param {string[] | undefined} kinds
 * @param {() => HTMLElement} shown
 */
export function coveredText(kinds, shown) {
  if (!kinds?.length) return shown();
  /** @type {HTMLElement} */
  const tap = h("button.text-veil", { type: "button", on: { click: () => tap.replaceWith(shown()) } },
    icon("hidden"), h("span", reasonFor(kinds)), h("span.visually-hidden", `. ${t("veil.tap")}`));
  return tap;
}

/**
 * The veil over a small picture.
 *
 * @param {Veilable} photo
 */
export const veil = (photo) => h("span.veil", icon("hidden"), h("span", reasonOf(photo)), h("span.visually-hidden", `. ${t("veil.tap")}`));

/**
 * Photos of which only the id is known, with what is sensitive on them.
 *
 * @param {number[]} ids
 * @returns {Promise<Map<number, Veilable>>}
 */
export async function lookUp(ids) {
  const found = new Map(ids.map((id) => [id, { id, sensitive: /** @type {string[]} */ ([]) }]));
  for (let at = 0; at < ids.length; at += 100) {
    const { items } = await api.get("/api/photos/sensitive", { ids: ids.slice(at, at + 100).join(",") });
    for (const item of /** @type {Veilable[]} */ (items)) found.set(item.id, item);
  }
  return found;
}

/** @param {number} id */
function changed(id) {
  for (const node of document.querySelectorAll(`[data-veil="${id}"]`)) draws.get(node)?.();
  veilEvents.dispatchEvent(new CustomEvent("changed", { detail: id }));
}

function coverAgain() {
  for (const [id, until] of uncovered) {
    if (until > Date.now()) continue;
    uncovered.delete(id);
    changed(id);
  }
}

listen(document, { visibilitychange: coverAgain }); // no timer runs while the machine sleeps
