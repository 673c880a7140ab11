// A field for a tag, with the tags that exist, each one tap away.

import { api } from "./api.js";
import { fill, h } from "./dom.js";
import { formatNumber } from "./format.js";
import { t } from "./texts.js";

export const LONGEST_TAG = 50; // characters, as in the API
const SUGGESTED = 12;

/**
 * A field, and the tags that begin with or contain what is typed; `choose` is called with the one that is tapped.
 *
 * @param {(tag: string) => unknown} choose
 * @param {() => string[]} [taken] tags that are not suggested
 */
export function tagInput(choose, taken = () => []) {
  const input = h("input", {
    type: "text",
    maxlength: LONGEST_TAG,
    autocomplete: "off",
    autocapitalize: "none",
    placeholder: t("tags.placeholder"),
    "aria-label": t("tags.label"),
  });
  const suggestions = h("div.chips.tag-suggestions", { role: "group", label: t("tags.existing"), hidden: true });
  /** @type {TagCount[]} */
  let known = [];
  const draw = () => {
    const typed = input.value.trim().toLowerCase();
    const used = taken().map((tag) => tag.toLowerCase());
    const fitting = known.filter(({ tag }) => tag.toLowerCase().includes(typed) && !used.includes(tag.toLowerCase())).slice(0, SUGGESTED);
    suggestions.hidden = !fitting.length;
    fill(suggestions, fitting.map(({ tag, photos }) =>
      h("button.filter", { type: "button", on: { click: () => choose(tag) } }, h("span", tag), h("span.muted", formatNumber(photos)))));
  };
  input.addEventListener("input", draw);
  api.get("/api/photos/tags").then(({ tags }) => {
    known = tags;
    draw();
  }, () => {}); // without them, a tag can still be typed
  return { input, suggestions, draw };
}
