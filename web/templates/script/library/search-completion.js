// Completion in the search field: the names of operators, such as app: and has:, and then the values that exist. The list belongs to
// the field as an ARIA combobox does: the focus stays in the field, arrow keys choose, Enter and a tap take, Escape closes.

import { api } from "../base/api.js";
import { fill, h, listen } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { deviceLabel, t, term } from "../base/texts.js";

const MOST_VALUES = 8;
const NAMES = ["app", "tag", "device", "type", "intent", "seller", "amount", "is", "has", "on", "before", "after"];
const RECORD_TYPES = [
  "Receipt", "Invoice", "MoneyTransfer", "Subscription", "ParcelDelivery", "FlightReservation", "TrainReservation", "BusReservation",
  "LodgingReservation", "EventReservation", "FoodEstablishmentReservation", "Appointment", "OneTimeCode", "WifiNetwork", "Contact",
  "Recipe", "Product", "Article", "SocialMediaPosting", "VideoObject", "Conversation", "MessageList", "MailList", "Balance",
  "WeatherForecast", "TaskList", "CalendarView", "SettingsPage", "ErrorMessage", "Map",
];
const DATES = ["on", "before", "after"];
const QUOTES = /["“”„«»「」＂]/;

/**
 * What can be taken: `text` replaces what is typed. A name is followed by its values.
 *
 * @typedef {{ text: string, label: string, hint?: string, isName?: boolean }} Suggestion
 */

/**
 * Offer completions in the search field.
 *
 * @param {HTMLInputElement} input
 * @param {HTMLElement} place around the field; the list is laid out below it
 */
export function completeSearch(input, place) {
  const list = h("ul.completions", { id: "completions", role: "listbox", label: t("operators.label"), hidden: true });
  /** @type {{ suggestion: Suggestion, node: HTMLElement }[]} */
  let options = [];
  let active = -1;
  let latest = 0;
  const isOpen = () => !list.hidden;
  const close = () => {
    latest += 1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const activate = (/** @type {number} */ index) => {
    options[active]?.node.setAttribute("aria-selected", "false");
    active = index;
    const node = options[active]?.node;
    node?.setAttribute("aria-selected", "true");
    node?.scrollIntoView({ block: "nearest" });
    if (node) input.setAttribute("aria-activedescendant", node.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const take = (/** @type {Suggestion} */ { text, isName }) => {
    const { start, end } = typed(input);
    const rest = input.value.slice(end).replace(/^\s+/, "");
    const before = input.value.slice(0, start) + text + (isName ? "" : " ");
    input.value = before + rest;
    input.setSelectionRange(before.length, before.length);
    input.focus();
    close();
    input.dispatchEvent(new InputEvent("input", { bubbles: true }));
  };
  const open = async (isAsked = false) => {
    const turn = (latest += 1);
    const { token } = typed(input);
    const found = token || isAsked ? await suggestions(token).catch(() => []) : [];
    if (turn !== latest) return;
    if (!found.length || document.activeElement !== input) return close();
    options = found.map((suggestion, index) => ({
      suggestion,
      node: h(
        "li.completion",
        { id: `completion-${index}`, role: "option", "aria-selected": "false", on: { click: () => take(suggestion) } },
        h("span.completion-label", suggestion.label),
        suggestion.hint && h("span.muted", suggestion.hint),
      ),
    }));
    fill(list, options.map(({ node }) => node));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    activate(-1);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !isOpen()) {
      if (step < 0) return;
      open(true);
    } else if (step) {
      // One place more than options: the field itself.
      activate(((active + 1 + step + options.length + 1) % (options.length + 1)) - 1);
    } else if (event.key === "Enter" && isOpen() && options[active]) take(options[active].suggestion);
    else if (event.key === "Escape" && isOpen()) close();
    else {
      if (event.key === "Enter") close();
      return;
    }
    event.preventDefault();
    event.stopPropagation(); // the field would search, or empty itself
  };
  // Before the listeners of the field itself.
  place.addEventListener("keydown", onKey, true);
  listen(input, {
    input: (event) => !event.isComposing && open(),
    compositionend: () => open(),
    blur: close,
    click: () => !isOpen() && open(!input.value),
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  input.setAttribute("aria-controls", list.id);
  place.append(list);
  if (document.activeElement === input) open();
}

/**
 * The word at the caret, up to the caret, and where it is. A space in quotes does not end it.
 *
 * @param {HTMLInputElement} input
 */
function typed(input) {
  const end = input.selectionStart ?? input.value.length;
  let start = end;
  let isQuoted = false;
  for (let at = 0, begun = 0; at < end; at += 1) {
    if (QUOTES.test(input.value[at])) isQuoted = !isQuoted;
    else if (/\s/.test(input.value[at]) && !isQuoted) begun = at + 1;
    start = begun;
  }
  return { start: end ? start : 0, end, token: input.value.slice(start, end) };
}

/**
 * @param {string} token
 * @returns {Promise<Suggestion[]>}
 */
async function suggestions(token) {
  const minus = /^[-－]/.test(token) ? "-" : "";
  const word = token.slice(minus.length);
  const [, name, value] = /^([a-z]+)[:：](.*)$/i.exec(word) ?? [];
  if (name && NAMES.includes(name.toLowerCase())) return valuesOf(name.toLowerCase(), minus, value);
  if (/[:：]/.test(word) || QUOTES.test(word)) return [];
  const names = NAMES.filter((known) => known.startsWith(word.toLowerCase()));
  const either = !minus && "or".startsWith(word.toLowerCase()) ? [{ text: "OR", label: t("operators.or"), hint: "OR" }] : [];
  return [...names.map((known) => ({
    text: `${minus}${known}:`,
    label: minus ? t("operators.without", { what: t(`operators.${known}`) }) : t(`operators.${known}`),
    hint: `${minus}${known}:`,
    isName: true,
  })), ...either];
}

/**
 * @param {string} name
 * @param {string} minus
 * @param {string} value what is typed of it
 * @returns {Promise<Suggestion[]>}
 */
async function valuesOf(name, minus, value) {
  const sought = value.replace(QUOTES, "").toLowerCase();
  const fits = (/** @type {Value} */ { value: own, label }) => [own, label].some((text) => text.toLowerCase().includes(sought));
  const begins = (/** @type {Value} */ { value: own, label }) => Number([own, label].some((text) => text.toLowerCase().startsWith(sought)));
  const known = (await existing(name)).filter((one) => !QUOTES.test(one.value) && fits(one));
  if (known.length === 1 && known[0].value.toLowerCase() === value.toLowerCase()) return []; // it is typed already
  return known.sort((one, other) => begins(other) - begins(one)).slice(0, MOST_VALUES).map(({ value: own, label, hint }) => ({
    text: `${minus}${name}:${/\s/.test(own) ? `"${own}"` : own}`, label, hint,
  }));
}

/** @typedef {{ value: string, label: string, hint?: string }} Value */

/**
 * The values that exist, the most frequent first.
 *
 * @param {string} name
 * @returns {Promise<Value[]>}
 */
async function existing(name) {
  const counted = (/** @type {string} */ value, /** @type {number} */ photos) => ({ value, label: value, hint: formatNumber(photos) });
  const named = (/** @type {string[]} */ values) =>
    values.map((value) => ({ value, label: t(`operators.${value}`), hint: `${name}:${value}` }));
  if (name === "is") return named(["kept", "sensitive", "unread"]);
  if (name === "has") {
    return [...named(["code", "link", "date"]), { value: "amount", label: t("operators.amounts"), hint: "has:amount" }];
  }
  if (name === "amount") {
    return [">20", "<10", "10..50"].map((value, at) => ({ value, label: t(`operators.amount${at}`), hint: `amount:${value}` }));
  }
  if (name === "seller") return [];
  if (name === "type") {
    const records = RECORD_TYPES.map((value) => {
      const type = value.toLowerCase();
      return { value: type, label: t(`records.${value}`), hint: `type:${type}` };
    });
    return [...(await existing("category")), ...records];
  }
  if (DATES.includes(name)) return dates();
  if (name === "app") {
    return (await api.get("/api/photos/apps")).apps
      .filter((/** @type {AppCount} */ app) => app.app_name)
      .map((/** @type {AppCount} */ app) => counted(app.app_name, app.photos));
  }
  if (name === "tag") {
    return (await api.get("/api/photos/tags")).tags.map((/** @type {{ tag: string, photos: number }} */ one) =>
      counted(one.tag, one.photos),
    );
  }
  if (name === "device") {
    return (await api.get("/api/photos/devices")).devices.map((/** @type {SyncedDevice} */ one) => ({
      value: one.device_name || one.device_id,
      label: deviceLabel(one.device_id, one.device_name),
    }));
  }
  /** @type {Statistics} */
  const stats = await api.get("/api/stats");
  const counts = name === "category" ? stats.category_distribution : stats.intent_distribution;
  return Object.entries(counts).filter(([value, photos]) => value && photos).sort(([, one], [, other]) => other - one)
    .map(([value, photos]) => ({ value, label: term(name, value), hint: formatNumber(photos) }));
}

/** Days, months and years that are likely. The field takes any. */
function dates() {
  const now = new Date();
  const year = now.getFullYear();
  const month = (/** @type {number} */ back) => {
    const first = new Date(year, now.getMonth() - back, 1);
    return `${first.getFullYear()}-${String(first.getMonth() + 1).padStart(2, "0")}`;
  };
  const plain = [month(0), month(1), String(year), String(year - 1)].map((value) => ({ value, label: value }));
  return [...["today", "yesterday"].map((value) => ({ value, label: t(`operators.${value}`), hint: value })), ...plain];
}
