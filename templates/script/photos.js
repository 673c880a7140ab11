// Screenshots: all of them in a grid, searched as one types, narrowed by filters, with uploads dropped anywhere on it.

words({
  photos: {
    title: ["Screenshots", "截图"],
    search: ["Search in texts, summaries, apps…", "搜索文字、摘要、应用…"],
    searchLabel: ["Search screenshots", "搜索截图"],
    clear: ["Clear the search", "清除搜索"],
    filters: ["Filters", "筛选"],
    status: ["Status", "状态"],
    device: ["Device", "设备"],
    category: ["Category", "类别"],
    intent: ["Intent", "意图"],
    time: ["Time", "时间"],
    anyStatus: ["Any status", "全部状态"],
    anyDevice: ["Any device", "全部设备"],
    anyCategory: ["Any category", "全部类别"],
    anyIntent: ["Any intent", "全部意图"],
    anyTime: ["Any time", "全部时间"],
    day: ["Last 24 hours", "最近 24 小时"],
    week: ["Last 7 days", "最近 7 天"],
    month: ["Last 30 days", "最近 30 天"],
    range: ["Between dates…", "选择日期…"],
    from: ["From", "从"],
    to: ["Until", "到"],
    count: ["{count} screenshots", "{count} 张截图"],
    one: ["1 screenshot", "1 张截图"],
    found: ["{count} found", "找到 {count} 张"],
    best: ["The best {shown} of {count} found", "找到 {count} 张，显示最相关的 {shown} 张"],
    reset: ["Remove filters", "清除筛选"],
    empty: ["No screenshots yet", "还没有截图"],
    emptyText: ["Drop pictures here, paste one, or pick them. What is in them becomes searchable.", "把图片拖到这里、粘贴，或点击选择。其中的内容即可搜索。"],
    none: ["Nothing matches", "没有匹配的截图"],
    noneText: ["Try other words, or remove a filter.", "换个词试试，或去掉一个筛选条件。"],
  },
});

const SEARCH_DELAY = 220; // ms after the last key
const MOST_FOUND = 100; // the API's limit for a search
const CATEGORIES = ["chat", "webpage", "finance", "notification", "social_media", "other"];
const INTENTS = ["reference", "reminder", "research", "note", "ignore"];
const STATUSES = ["pending", "processing", "done", "error"];
const PERIODS = { day: 1, week: 7, month: 30 };
const FILTERS = ["status", "device", "category", "intent", "time", "from", "to"];

route("photos", {
  title: "photos.title",
  icon: "image",
  show(container, { id, query }) {
    const chosen = Object.fromEntries(["q", ...FILTERS].map((name) => [name, query.get(name) ?? ""]));
    const count = h("p", { class: "muted small", role: "status" });
    const results = h("div", { class: "photo-results" });
    let grid = null;

    const show = () => {
      grid?.stop();
      const current = photoGrid({
        fetchPage: (number, signal) => fetchPhotos(chosen, number, signal),
        draw: (photo, props) => photoCard(photo, { ...props, words: searchWords(chosen.q), open: openHere }),
        counted: (total) => grid === current && showTotal(total),
        failed: (error) => (current.total() === null ? fill(results, failedState(error, show)) : fail(error)),
      });
      grid = current;
      results.classList.add("stale"); // the old answer stays until the new one is there
      const begun = grid.refresh();
      begun.then(() => {
        if (grid !== current || current.total() === null) return;
        results.classList.remove("stale");
        if (current.total() === 0) fill(results, nothing(chosen, reset));
        else if (!current.node.isConnected) fill(results, current.node);
        current.soon();
      });
    };

    const showTotal = (total) => {
      const params = { count: formatNumber(total), shown: MOST_FOUND };
      count.textContent = chosen.q ? t(total > MOST_FOUND ? "photos.best" : "photos.found", params) : t(total === 1 ? "photos.one" : "photos.count", params);
      if (total === 0 || !results.contains(grid.node)) fill(results, total === 0 ? nothing(chosen, reset) : grid.node);
    };

    const keepAddress = (photo = null) => {
      const kept = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
      replaceAddress(`#/photos${photo ? `/${photo}` : ""}${kept.size ? `?${kept}` : ""}`);
    };
    const openHere = (photo) => {
      keepAddress(photo);
      openPhoto(photo, {
        step: (from, delta) => grid.neighbour(from, delta),
        closed: () => container.isConnected && location.hash.startsWith("#/photos") && keepAddress(),
      });
    };
    const choose = (name, value) => {
      chosen[name] = value;
      keepAddress();
      show();
    };
    const reset = () => {
      for (const name of FILTERS) chosen[name] = "";
      keepAddress();
      showView();
    };

    add(container,
      pageHead(t("photos.title"), button(t("upload.add"), { glyph: "upload", kind: "primary", click: pickFiles })),
      h("search", { class: "photo-tools" }, searchField(chosen.q, (words) => choose("q", words)), filterRow(chosen, choose, reset)), count, results);
    fill(results, skeleton(8, "tile"));
    show();
    if (id && /^\d+$/.test(id)) openHere(Number(id));

    const refresh = () => grid.refresh();
    const added = debounced(refresh, 400);
    photoEvents.addEventListener("added", added);
    photoEvents.addEventListener("changed", added);
    let quiet = 0;
    const stopPolling = poll(async () => {
      // What is being analysed changes by itself; otherwise it is enough to look now and then whether a phone has sent something.
      quiet = grid.unfinished() ? 0 : (quiet + 1) % 6;
      if (!chosen.q && quiet === 0 && grid.total() !== null && container.isConnected) await refresh();
    }, 2.5);
    const stopFiles = acceptFiles(container);
    return () => {
      grid.stop();
      stopPolling();
      stopFiles();
      added.cancel();
      photoEvents.removeEventListener("added", added);
      photoEvents.removeEventListener("changed", added);
    };
  },
});

/** One page of the list, or of what a search has found, which comes as a whole. */
async function fetchPhotos(chosen, number, signal) {
  const shared = { device_id: chosen.device, category: chosen.category, intent: chosen.intent, ...period(chosen) };
  if (!chosen.q) return api.get("/api/photos", { ...shared, status: chosen.status, page: number, page_size: GRID_PAGE }, { signal });
  const found = await api.get("/api/search", { ...shared, q: chosen.q, limit: MOST_FOUND }, { signal });
  const items = found.items.slice((number - 1) * GRID_PAGE, number * GRID_PAGE);
  return { total: Math.min(found.total, found.items.length) && (found.total > MOST_FOUND ? found.items.length : found.total), items };
}

/** `since` and `until` of the chosen time, as the API has them: UTC without a zone. The last day counts in full. */
function period({ time, from, to }) {
  const utc = (moment) => moment.toISOString().slice(0, 19);
  if (time in PERIODS) {
    const since = new Date(Date.now() - PERIODS[time] * 86_400_000);
    since.setSeconds(0, 0); // the same minute is the same question
    return { since: utc(since) };
  }
  if (time !== "range") return {};
  const day = (text, plus) => {
    const [year, month, date] = text.split("-").map(Number);
    return utc(new Date(year, month - 1, date + plus));
  };
  return { since: from && day(from, 0), until: to && day(to, 1) };
}

function searchWords(q) {
  return q.split(/[\s"'“”,,。;;]+/).filter(Boolean);
}

function searchField(value, changed) {
  const input = h("input", { type: "search", value, placeholder: t("photos.search"), "aria-label": t("photos.searchLabel"), maxlength: "400", enterkeyhint: "search", autocomplete: "off" });
  const later = debounced(() => changed(input.value.trim()), SEARCH_DELAY);
  input.addEventListener("input", (event) => event.isComposing || later());
  input.addEventListener("compositionend", later);
  input.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && later.now());
  return h("div", { class: "photo-search" }, icon("search"), input);
}

function filterRow(chosen, choose, reset) {
  const pick = (name, value) => {
    choose(name, value);
    clear.hidden = !FILTERS.some((filter) => chosen[filter]);
  };
  const devices = choice([["", t("photos.anyDevice")]], "", { "aria-label": t("photos.device") });
  const fillDevices = (found) => {
    const named = found.map((device) => [device.device_id, device.device_name || device.device_id]);
    if (chosen.device && !named.some(([id]) => id === chosen.device)) named.push([chosen.device, chosen.device]);
    fill(devices, [["", t("photos.anyDevice")], ...named].map(([value, text]) => h("option", { value, text })));
    devices.value = chosen.device;
  };
  fillDevices([]);
  devices.addEventListener("change", () => pick("device", devices.value));
  api.get("/api/photos/devices").then((found) => fillDevices(found.devices), () => {}); // without them the filter offers no device
  const list = (name, group, values) =>
    choice([["", t(`photos.any${name[0].toUpperCase()}${name.slice(1)}`)], ...values.map((value) => [value, t(`${group}.${value}`)])], chosen[name],
      { "aria-label": t(`photos.${name}`), on: { change: (event) => pick(name, event.target.value) } });
  const date = (name, label) => h("label", { class: "row photo-date" }, h("span", { class: "small muted", text: t(label) }),
    h("input", { type: "date", value: chosen[name], on: { change: (event) => pick(name, event.target.value) } }));
  const dates = h("div", { class: "row", hidden: chosen.time !== "range" }, date("from", "photos.from"), date("to", "photos.to"));
  const time = list("time", "photos", [...Object.keys(PERIODS), "range"]);
  time.addEventListener("change", () => (dates.hidden = time.value !== "range"));
  const clear = button(t("photos.reset"), { kind: "quiet", hidden: !FILTERS.some((name) => chosen[name]), click: reset });
  const row = h("div", { class: "row photo-filters", id: "photo-filters" },
    list("status", "status", STATUSES), devices, list("category", "category", CATEGORIES), list("intent", "intent", INTENTS), time, dates,
    clear);
  const open = FILTERS.some((name) => chosen[name]);
  row.classList.toggle("open", open);
  const more = button(t("photos.filters"), { glyph: "settings", kind: "photo-more", "aria-expanded": open, "aria-controls": row.id });
  more.addEventListener("click", () => more.setAttribute("aria-expanded", row.classList.toggle("open")));
  return [more, row];
}

function nothing(chosen, reset) {
  if (Object.values(chosen).some(Boolean)) {
    return emptyState({ glyph: "search", title: t("photos.none"), text: t("photos.noneText"), action: FILTERS.some((name) => chosen[name]) && button(t("photos.reset"), { click: reset }) });
  }
  return emptyState({ glyph: "image", title: t("photos.empty"), text: t("photos.emptyText"), action: button(t("upload.add"), { glyph: "upload", kind: "primary", click: pickFiles }) });
}

/** `fn` once, `wait` ms after the last call. `.now()` does not wait, `.cancel()` gives it up. */
function debounced(fn, wait) {
  let timer = null;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(fn, wait);
  };
  later.cancel = () => clearTimeout(timer);
  later.now = () => {
    later.cancel();
    fn();
  };
  return later;
}
