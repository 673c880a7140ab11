// The filters of the library, as chips. Offered is only what can narrow the list: an app if there are several, the status only where
// something failed or waits. A filter that is applied is a chip that removes it.

import { api } from "../base/api.js";
import { button, choice, fill, h, icon } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { deviceLabel, t, term } from "../base/texts.js";
import { appMark } from "./tile.js";

/**
 * The words to search for as `q`, each filter by name, and `order` of a search. "" is none.
 *
 * @typedef {Record<string, string>} Chosen
 * @typedef {{ name: string, value: string, label: string, count?: number }} Offer
 */

export const FILTERS = ["app", "category", "intent", "tag", "device", "time", "kept", "status", "from", "to"];
const CHIPS = ["app", "category", "intent", "tag", "device", "time", "kept", "status"];
/** @type {Record<string, number>} */
const PERIODS = { day: 1, week: 7, month: 30 };
const BROWSED = 14; // chips below the search
const COMMON = ["other", "ignore"]; // these values say nothing about a screenshot

/** @param {Chosen} chosen */
export const isNarrowed = (chosen) => FILTERS.some((name) => chosen[name]);

/**
 * The parameters of the API for these filters.
 *
 * @param {Chosen} chosen
 * @returns {import("../base/api.js").Query}
 */
export function filterQuery(chosen) {
  return {
    app: chosen.app,
    device_id: chosen.device,
    category: chosen.category,
    intent: chosen.intent,
    tag: chosen.tag,
    kept: chosen.kept,
    status: chosen.status,
    ...period(chosen),
  };
}

/**
 * `since` and `until` of the chosen time, in UTC without a zone. The last day is included.
 *
 * @param {Chosen} chosen
 */
function period({ time, from, to }) {
  const utc = (/** @type {Date} */ moment) => moment.toISOString().slice(0, 19);
  if (time in PERIODS) {
    const since = new Date(Date.now() - PERIODS[time] * 86_400_000);
    since.setSeconds(0, 0); // the same parameters for a whole minute
    return { since: utc(since) };
  }
  if (time !== "range") return {};
  const day = (/** @type {string} */ text, /** @type {number} */ plus) => {
    const [year, month, date] = text.split("-").map(Number);
    return utc(new Date(year, month - 1, date + plus));
  };
  return { since: from && day(from, 0), until: to && day(to, 1) };
}

/**
 * What is chosen as one query with operators, to be saved. A time like the last 7 days has none, and is left out.
 *
 * @param {Chosen} chosen
 */
export function asQuery({ q, app, category, intent, device, time, from, to }) {
  const operator = (/** @type {string} */ name, /** @type {string} */ value) =>
    value && `${name}:${/\s/.test(value) ? `"${value}"` : value}`;
  const range = time === "range" ? [operator("-before", from), operator("-after", to)] : [];
  return [q.trim(), operator("app", app), operator("type", category), operator("intent", intent), operator("device", device), ...range]
    .filter(Boolean)
    .join(" ");
}

/**
 * What can be chosen: every value that some screenshots have and others have not.
 *
 * @param {Statistics} stats
 * @returns {Promise<Offer[]>}
 */
export async function fetchOffers(stats) {
  /** @type {[{ apps: AppCount[] }, { devices: SyncedDevice[] }, { tags: TagCount[] }]} */
  const [{ apps }, { devices }, { tags }] = await Promise.all([
    api.get("/api/photos/apps"),
    api.get("/api/photos/devices"),
    api.get("/api/photos/tags"),
  ]);
  const total = stats.total_photos;
  if (!total) return [];
  const narrows = (/** @type {number} */ count) => count > 0 && count < total;
  const counted = (/** @type {string} */ name, /** @type {Record<string, number>} */ counts) => Object.entries(counts)
    .filter(([value, count]) => value && narrows(count)).sort(([, one], [, other]) => other - one)
    .map(([value, count]) => ({ name, value, label: term(name, value), count }));
  return [
    ...apps
      .filter(({ app_name: app, photos }) => app && narrows(photos))
      .map(({ app_name: app, photos }) => ({ name: "app", value: app, label: app, count: photos })),
    ...counted("category", stats.category_distribution),
    ...counted("intent", stats.intent_distribution),
    ...tags.map(({ tag, photos }) => ({ name: "tag", value: tag, label: tag, count: photos })),
    ...(devices.length > 1
      ? devices.map(({ device_id: id, device_name: name }) => ({ name: "device", value: id, label: deviceLabel(id, name) }))
      : []),
    ...(total > 1 ? [...Object.keys(PERIODS), "range"].map((value) => ({ name: "time", value, label: t(`filter.${value}`) })) : []),
    ...counted(
      "status",
      stats.errors || stats.pending + stats.processing
        ? { error: stats.errors, pending: stats.pending, processing: stats.processing, done: stats.done }
        : {},
    ),
  ];
}

/**
 * The row of chips: first what is applied, then what may be. `choose(name, value)` is called for each change; "" removes.
 *
 * @param {HTMLElement} row
 * @param {Chosen} chosen
 * @param {Offer[]} offers
 * @param {(changes: Chosen) => unknown} choose
 */
export function drawFilters(row, chosen, offers, choose) {
  const labelOf = (/** @type {string} */ name, /** @type {string} */ value) =>
    offers.find((offer) => offer.name === name && offer.value === value)?.label ??
    (name === "time" ? t(`filter.${value}`) : name === "kept" ? t("filter.kept") : name === "tag" ? value : term(name, value));
  const applied = CHIPS.filter((name) => chosen[name]).map((name) => {
    const label = labelOf(name, chosen[name]);
    const changes = name === "time" ? { time: "", from: "", to: "" } : { [name]: "" };
    const chip = h(
      "button.filter.applied",
      { type: "button", title: t("filter.remove", { name: t(`filter.${name}`), value: label }), on: { click: () => choose(changes) } },
      name === "app" && appMark(label),
      h("span", label),
      icon("close"),
    );
    chip.ariaLabel = chip.title;
    return [chip, name === "time" && chosen.time === "range" && ["from", "to"].map((end) => date(end, chosen, choose))];
  });
  const open = CHIPS.filter((name) => !chosen[name]).map((name) => {
    const values = offers.filter((offer) => offer.name === name);
    if (!values.length) return null;
    const options = values.map(({ value, label, count }) => [value, count === undefined ? label : `${label} (${formatNumber(count)})`]);
    return h(
      "span.filter.open",
      choice([["", t(`filter.${name}`)], ...options], "", {
        label: t(`filter.${name}`),
        on: { change: (event) => choose({ [name]: event.target.value }) },
      }),
      icon("down"),
    );
  });
  const clear =
    applied.length > 1 &&
    button(t("filter.clear"), { kind: "quiet filter-clear", click: () => choose(Object.fromEntries(FILTERS.map((name) => [name, ""]))) });
  fill(row, applied, clear, open);
}

/**
 * @param {string} name
 * @param {Chosen} chosen
 * @param {(changes: Chosen) => unknown} choose
 */
function date(name, chosen, choose) {
  return h(
    "label.filter.date",
    t(`filter.${name}`),
    h("input", { type: "date", value: chosen[name], on: { change: (event) => choose({ [name]: event.target.value }) } }),
  );
}

/**
 * The apps and kinds with the most screenshots, as chips that show only theirs.
 *
 * @param {Offer[]} offers
 * @param {(changes: Chosen) => unknown} choose
 */
export function browseChips(offers, choose) {
  const kinds = offers.filter(({ name, value }) => (name === "app" || name === "category") && !COMMON.includes(value))
    .sort((one, other) => (other.count ?? 0) - (one.count ?? 0)).slice(0, BROWSED);
  if (kinds.length < 2) return null;
  return h(
    "div.chips",
    { role: "group", "aria-label": t("filter.browse") },
    kinds.map(({ name, value, label, count = 0 }) =>
      h(
        "button.filter",
        {
          type: "button",
          "aria-label": t("filter.only", { name: label, count: formatNumber(count) }),
          on: { click: () => choose({ [name]: value }) },
        },
        name === "app" && appMark(value),
        h("span", label),
        h("span.muted", formatNumber(count)),
      ),
    ),
  );
}
