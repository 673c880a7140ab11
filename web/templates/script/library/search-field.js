// The search field of the library. "/" focuses it from anywhere; Escape clears it. Ctrl+K opens the command field, ? the list of keys.

import { button, h, icon, listen } from "../base/dom.js";
import { later, withLater } from "../base/parts.js";
import { debounced, go } from "../base/shell.js";
import { t } from "../base/texts.js";

const SEARCH_DELAY = 220; // ms after the last key
// An operator without its value
const UNFINISHED_OPERATOR = /(?<!\S)[-－]?(?:app|tag|device|category|intent|type|seller|amount|is|has|on|before|after)[:：]["“]?$/i;

/**
 * @param {string} value
 * @param {(value: string) => unknown} changed called when typing pauses
 */
export function searchField(value, changed) {
  let last = value;
  const input = h("input", {
    type: "search",
    id: "search",
    value,
    placeholder: t("search.hint"),
    label: t("search.label"),
    maxlength: "400",
    enterkeyhint: "search",
    autocomplete: "off",
    spellcheck: "false",
    "aria-keyshortcuts": "/",
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
  });
  const now = () => {
    search.cancel();
    const text = input.value.replace(UNFINISHED_OPERATOR, "").trim();
    if (text !== last) changed((last = text));
  };
  const search = debounced(now, SEARCH_DELAY);
  listen(input, {
    input: (event) => event.isComposing || (input.value ? search() : now()),
    compositionend: search,
    keydown: (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter") now();
      if (event.key !== "Escape") return;
      event.preventDefault(); // browsers differ in what they do
      if (!input.value) input.blur();
      input.value = "";
      now();
    },
  });
  const empty = () => {
    input.value = "";
    now();
    input.focus();
  };
  // Not in the tab order: Escape does the same.
  const clear = button("", { glyph: "close", kind: "quiet search-clear", label: t("search.clear"), tabindex: "-1", click: empty });
  const node = h("div.search-field", icon("search"), input, h("kbd", { "aria-hidden": "true", text: "/" }), clear);
  let isCompleted = false;
  const complete = () => later().then(({ completeSearch }) => {
    if (!isCompleted) completeSearch(input, node);
    isCompleted = true;
  }, () => {}); // without completion, one types
  listen(input, { focus: complete });
  return {
    node,
    /** @param {string} text */
    write(text) {
      input.value = text;
      now();
    },
    /**
     * Show a text that is searched for already.
     *
     * @param {string} text
     */
    show(text) {
      search.cancel();
      input.value = last = text;
    },
    stop: search.cancel,
  };
}

listen(document, {
  keydown: (event) => {
    const isShortcut = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const isSign = ["/", "?"].includes(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target);
    if (event.defaultPrevented || !(isShortcut || isSign)) return;
    if (document.querySelector("dialog[open]") || !document.querySelector("#main")) return;
    event.preventDefault();
    if (isShortcut) return withLater(({ openCommands }) => openCommands());
    if (event.key === "?") return withLater(({ showKeys }) => showKeys());
    const there = () => /** @type {HTMLInputElement | null} */ (document.getElementById("search"));
    if (there()) return there()?.select();
    go("#/library");
    // The view follows the change of the address, and then takes the focus itself.
    addEventListener("hashchange", () => there()?.focus(), { once: true });
  },
});

/** @param {Element} target */
function isTyping(target) {
  return target.matches("input, textarea, select, [contenteditable]");
}
