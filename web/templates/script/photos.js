// Screenshots: a grid of all of them, with search as you type, filters, and uploads by drag and drop.

import { api } from "./api.js";
import { openPhoto, photoCard } from "./detail.js";
import { fail } from "./dialogs.js";
import { add, button, choice, fill, h, icon, listen } from "./dom.js";
import { formatNumber } from "./format.js";
import { GRID_PAGE, photoGrid } from "./grid.js";
import { debounced, emptyState, failedState, pageHead, poll, replaceAddress, showView, skeleton } from "./shell.js";
import { t, words } from "./texts.js";
import { acceptFiles, photoEvents, uploadButton } from "./upload.js";

words({
  photos: {
    title: "Screenshots|截图",
    search: "Search text, summaries and apps…|搜索文字、摘要和应用…",
    searchLabel: "Search screenshots|搜索截图",
    filters: "Filters|筛选",
    status: "Status|状态",
    device: "Device|设备",
    category: "Type|类型",
    intent: "Purpose|用途",
    time: "Time|时间",
    anyStatus: "Any status|全部状态",
    anyDevice: "Any device|全部设备",
    anyCategory: "Any type|全部类型",
    anyIntent: "Any purpose|全部用途",
    anyTime: "Any time|全部时间",
    day: "Last 24 hours|最近 24 小时",
    week: "Last 7 days|最近 7 天",
    month: "Last 30 days|最近 30 天",
    range: "Between dates…|自定义日期…",
    from: "From|从",
    to: "Until|到",
    count: "{count} screenshots|{count} 张截图",
    one: "1 screenshot|1 张截图",
    found: "{count} found|找到 {count} 张",
    best: "Best {count} matches|最相关的 {count} 张",
    reset: "Clear filters|清除筛选",
    empty: "No screenshots yet|还没有截图",
    emptyText: "Drop screenshots here, paste one, or choose files. Their text becomes searchable.|把截图拖到这里、粘贴，或选择文件，其中的文字即可搜索。",
    none: "No matches|没有匹配的截图",
    noneText: "Try other words or fewer filters.|换个词，或减少筛选条件。",
  },
});

const SEARCH_DELAY = 220; // ms after the last key
const MOST_FOUND = 100; // the API's limit for a search
const CATEGORIES = ["chat", "webpage", "finance", "notification", "social_media", "other"];
const INTENTS = ["reference", "reminder", "research", "note", "ignore"];
const STATUSES = ["pending", "processing", "done", "error"];
/** @type {Record<string, number>} */
const PERIODS = { day: 1, week: 7, month: 30 };
/**
 * The words to search for as `q`, and each filter by name. "" is none.
 *
 * @typedef {Record<string, string>} Chosen
 */

const FILTERS = ["status", "device", "category", "intent", "time", "from", "to"];

/** @type {import("./shell.js").View} */
export const photos = {
  title: "photos.title",
  icon: "image",
  show(container, { id, query }) {
    /** @type {Chosen} */
    const chosen = Object.fromEntries(["q", ...FILTERS].map((name) => [name, query.get(name) ?? ""]));
    const count = h("p.muted.small", { role: "status" });
    const results = h("div.photo-results");
    /** @type {ReturnType<typeof photoGrid> | null} */
    let grid = null;

    const show = async () => {
      grid?.stop();
      const current = photoGrid({
        fetchPage: (number, signal) => fetchPhotos(chosen, number, signal),
        draw: (photo, props) => photoCard(photo, { ...props, words: searchWords(chosen.q), open: openHere }),
        counted: (total) => grid === current && showTotal(total),
        failed: (error) => (current.total() === null ? fill(results, failedState(error, show)) : fail(error)),
      });
      grid = current;
      results.classList.add("stale"); // the old results stay until the new ones arrive
      await current.refresh();
      if (grid !== current) return;
      results.classList.remove("stale");
      current.soon();
    };

    const showTotal = (/** @type {number} */ total) => {
      const key = !chosen.q ? (total === 1 ? "one" : "count") : total < MOST_FOUND ? "found" : "best";
      count.textContent = t(`photos.${key}`, { count: formatNumber(total) });
      if (!total) fill(results, nothing(narrowed() || chosen.q, narrowed() && clear()));
      else if (grid && !grid.node.isConnected) fill(results, grid.node);
    };

    const narrowed = () => FILTERS.some((name) => chosen[name]);
    const clear = () => button(t("photos.reset"), { kind: "quiet", click: reset });
    const keepAddress = (/** @type {number | null} */ photo = null) => {
      const kept = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
      replaceAddress(`#/photos${photo ? `/${photo}` : ""}${kept.size ? `?${kept}` : ""}`);
    };
    const openHere = (/** @type {number} */ photo) => {
      keepAddress(photo);
      openPhoto(photo, {
        step: (from, delta) => grid?.neighbour(from, delta) ?? null,
        closed: (last) => {
          if (!container.isConnected || !location.hash.startsWith("#/photos")) return;
          keepAddress();
          grid?.focus(last); // by id: its tile may have been redrawn
        },
      });
    };
    const choose = (/** @type {string} */ name, /** @type {string} */ value) => {
      chosen[name] = value;
      keepAddress();
      remove.hidden = !narrowed();
      show();
    };
    const reset = () => {
      for (const name of FILTERS) chosen[name] = "";
      keepAddress();
      showView();
    };
    const remove = clear();
    remove.hidden = !narrowed();
    const filters = filterRow(chosen, choose, remove);
    filters.classList.toggle("open", narrowed());
    const more = button(t("photos.filters"), { glyph: "settings", kind: "photo-more", "aria-expanded": narrowed(), "aria-controls": filters.id });
    more.addEventListener("click", () => more.setAttribute("aria-expanded", String(filters.classList.toggle("open"))));

    add(container, pageHead(t("photos.title"), uploadButton()),
      h("search.photo-tools", searchField(chosen.q, (words) => choose("q", words)), more, filters), count, results);
    fill(results, skeleton(8, "tile"));
    show();
    if (id && /^\d+$/.test(id)) openHere(Number(id));

    const added = debounced(() => grid?.refresh(), 400);
    let quiet = 0;
    const stopPolling = poll(async () => {
      // Poll each time while something is being analysed, otherwise every sixth time, for uploads of other devices.
      if (!grid) return;
      quiet = grid.unfinished() ? 0 : (quiet + 1) % 6;
      if (!chosen.q && quiet === 0 && grid.total() !== null && container.isConnected) await grid.refresh();
    }, 2.5);
    return [() => grid?.stop(), stopPolling, acceptFiles(container), added.cancel, listen(photoEvents, { added, changed: added })];
  },
};

/**
 * One page of the list, or of the results of a search, which the API returns as a whole.
 *
 * @param {Chosen} chosen
 * @param {number} number
 * @param {AbortSignal} signal
 * @returns {Promise<{ total: number, items: PhotoItem[] }>}
 */
async function fetchPhotos(chosen, number, signal) {
  const shared = { device_id: chosen.device, category: chosen.category, intent: chosen.intent, ...period(chosen) };
  if (!chosen.q) return api.get("/api/photos", { ...shared, status: chosen.status, page: number, page_size: GRID_PAGE }, { signal });
  const found = await api.get("/api/search", { ...shared, q: chosen.q, limit: MOST_FOUND }, { signal });
  return { total: found.items.length, items: found.items.slice((number - 1) * GRID_PAGE, number * GRID_PAGE) };
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

/** @param {string} q */
function searchWords(q) {
  return q.split(/[\s"'“”,,。;;]+/).filter(Boolean);
}

/**
 * @param {string} value
 * @param {(value: string) => unknown} changed
 */
function searchField(value, changed) {
  const input = h("input", { type: "search", value, placeholder: t("photos.search"), label: t("photos.searchLabel"), maxlength: "400", enterkeyhint: "search", autocomplete: "off" });
  const later = debounced(() => changed(input.value.trim()), SEARCH_DELAY);
  listen(input, { input: (event) => event.isComposing || later(), compositionend: later });
  return h("div.photo-search", icon("search"), input);
}

/**
 * The row of filters, with `clear`, the button that removes them, at its end.
 *
 * @param {Chosen} chosen
 * @param {(name: string, value: string) => unknown} choose
 * @param {HTMLElement} clear
 */
function filterRow(chosen, choose, clear) {
  /** @type {Record<string, string>} */
  const any = { status: "anyStatus", device: "anyDevice", category: "anyCategory", intent: "anyIntent", time: "anyTime" };
  const list = (/** @type {string} */ name, /** @type {string[][]} */ options) => choice([["", t(`photos.${any[name]}`)], ...options], chosen[name],
    { label: t(`photos.${name}`), on: { change: (event) => choose(name, event.target.value) } });
  const terms = (/** @type {string} */ name, /** @type {string[]} */ values, group = name) => list(name, values.map((value) => [value, t(`${group}.${value}`)]));
  const date = (/** @type {string} */ name) => h("label.row.photo-date.small.muted", t(`photos.${name}`),
    h("input", { type: "date", value: chosen[name], on: { change: (event) => choose(name, event.target.value) } }));
  const dates = h("div.row", { hidden: chosen.time !== "range" }, date("from"), date("to"));
  const time = terms("time", [...Object.keys(PERIODS), "range"], "photos");
  time.addEventListener("change", () => (dates.hidden = time.value !== "range"));
  let devices = list("device", chosen.device ? [[chosen.device, chosen.device]] : []);
  // When this fails, the filter offers no devices.
  api.get("/api/photos/devices").then((found) => {
    const named = list("device", found.devices.map((/** @type {SyncedDevice} */ device) => [device.device_id, device.device_name || device.device_id]));
    devices.replaceWith(named);
    devices = named;
  }, () => {});
  return h("div.row.photo-filters", { id: "photo-filters" },
    terms("status", STATUSES), devices, terms("category", CATEGORIES), terms("intent", INTENTS), time, dates, clear);
}

/**
 * The message in an empty grid: no results, or no screenshots yet.
 *
 * @param {unknown} searched whether words or filters are set
 * @param {Child} action
 */
function nothing(searched, action) {
  if (searched) return emptyState({ glyph: "search", title: t("photos.none"), text: t("photos.noneText"), action });
  return emptyState({ title: t("photos.empty"), text: t("photos.emptyText"), action: uploadButton() });
}
