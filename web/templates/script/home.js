// Home: numbers, the queue, the latest screenshots and new notes.

import { api, picture } from "./api.js";
import { hiddenPhotos, photoCard } from "./detail.js";
import { add, fill, h, icon, listen } from "./dom.js";
import { formatNumber, timeAgo } from "./format.js";
import { debounced, emptyState, load, navBadge, pageHead, poll, skeleton } from "./shell.js";
import { t, term, words } from "./texts.js";
import { acceptFiles, photoEvents, uploadButton } from "./upload.js";

words({
  home: {
    title: "Home|首页",
    total: "Screenshots|截图",
    done: "Analysed|已分析",
    waiting: "In the queue|排队中",
    errors: "Failed|失败",
    unread: "Unread notes|未读笔记",
    now: "Analysing now|正在分析",
    progress: "{done} of {total}|{done}/{total}",
    left: "about {time} left|大约还需 {time}",
    latest: "Latest screenshots|最新截图",
    all: "Show all|查看全部",
    categories: "By type|按类型",
    intents: "By purpose|按用途",
    notes: "New notes|新笔记",
    noNotes: "No unread notes. New ones are written as you add screenshots.|没有未读笔记。添加截图后会生成新的笔记。",
    noChart: "Available after the first analysis.|分析完第一张截图后显示。",
    welcome: "Welcome to Snaplore|欢迎使用 Snaplore",
    start: "Start with a few screenshots. This server reads their text; a language model also understands what they mean.|先添加几张截图。本服务器会识别其中的文字；配置语言模型后，还能理解其含义。",
    model: "Set up a language model|配置语言模型",
    minutes: "{count} min|{count} 分钟",
    hours: "{count} h|{count} 小时",
  },
});

const LATEST = 6;
const UNREAD_SHOWN = 4;

/**
 * @typedef {object} HomeData
 * @property {Statistics} stats
 * @property {PhotoItem[]} latest
 * @property {PhotoItem[]} current being analysed now
 * @property {number} unread
 * @property {DynamicItem[]} notes
 */

// The progress of the queue since it was last empty. Kept here, so that it survives a visit to another view.
/** @type {{ begun: number | null, doneBefore: number }} */
const queue = { begun: null, doneBefore: 0 };

/** @type {import("./shell.js").View} */
export const home = {
  title: "home.title",
  icon: "home",
  show(container) {
    const body = h("div.stack.home");
    add(container, pageHead(t("home.title"), uploadButton()), body);
    let seen = "";
    const draw = (/** @type {HomeData} */ data) => {
      seen = JSON.stringify(data);
      return homeParts(data);
    };
    const stopLoading = load(body, fetchHome, draw, skeleton(3, "block"));
    const refresh = async () => {
      if (!seen) return;
      const data = await fetchHome();
      // While something in the view has the focus, only the queue is redrawn.
      if (!body.contains(document.activeElement)) JSON.stringify(data) !== seen && fill(body, draw(data));
      else fill(body.querySelector(".queue-place") ?? h("i"), queueCard(data.stats, data.current));
    };
    const soon = debounced(() => refresh().catch(() => {}), 500);
    const changes = listen(photoEvents, { added: soon, deleted: soon, hidden: soon, restored: soon });
    return [stopLoading, poll(refresh, 4), acceptFiles(container), soon.cancel, changes];
  },
};

/**
 * @param {AbortSignal} [signal]
 * @returns {Promise<HomeData>}
 */
async function fetchHome(signal) {
  const options = { signal };
  const [stats, latest, current, unread, notes] = await Promise.all([
    api.get("/api/stats", null, options), api.get("/api/photos", { page_size: LATEST }, options),
    api.get("/api/photos", { status: "processing", page_size: 3 }, options),
    api.get("/api/dynamics/stats", null, options), api.get("/api/dynamics", { limit: 30 }, options),
  ]);
  navBadge("notes", unread.total_unread);
  return { stats, latest: latest.items, current: current.items, unread: unread.total_unread, notes: notes.items.filter((/** @type {DynamicItem} */ note) => !note.is_read).slice(0, UNREAD_SHOWN) };
}

/** @param {HomeData} data */
function homeParts({ stats, latest, current, unread, notes }) {
  const shown = latest.filter((photo) => !hiddenPhotos.has(photo.id));
  if (!stats.total_photos) return [welcome(), notes.length > 0 && newNotes(notes)];
  return [
    h("div.tiles",
      tile("home.total", stats.total_photos, "#/photos", "image"), tile("home.done", stats.done, "#/photos?status=done", "check"),
      tile("home.waiting", stats.pending + stats.processing, "#/photos?status=pending", "refresh"),
      stats.errors > 0 && tile("home.errors", stats.errors, "#/photos?status=error", "warn"), tile("home.unread", unread, "#/notes", "note")),
    h("div.queue-place", queueCard(stats, current)),
    h("section.stack.tight", sectionHead("home.latest", "#/photos"),
      h("ul.list.photo-strip", shown.map((photo) => h("li", photoCard(photo))))),
    h("div.columns",
      chart("home.categories", "category", stats.category_distribution), chart("home.intents", "intent", stats.intent_distribution), newNotes(notes)),
  ];
}

function welcome() {
  const actions = h("div.row", uploadButton(), h("a.button", { href: "#/settings", text: t("home.model") }));
  return h("div.card", emptyState({ glyph: "image", title: t("home.welcome"), text: t("home.start"), action: actions }));
}

/**
 * @param {string} key
 * @param {number} number
 * @param {string} href
 * @param {import("./dom.js").Glyph} glyph
 */
function tile(key, number, href, glyph) {
  return h("a.tile.card", { href }, icon(glyph), h("span.tile-number", formatNumber(number)), h("span.muted.small", t(key)));
}

/**
 * @param {string} key
 * @param {string} href
 */
function sectionHead(key, href) {
  return h("div.row.apart", h("h2", t(key)), h("a", { href, class: "small" }, t("home.all"), h("span.visually-hidden", `: ${t(key)}`)));
}

/**
 * @param {Statistics} stats
 * @param {PhotoItem[]} current
 */
function queueCard(stats, current) {
  const waiting = stats.pending + stats.processing;
  const finished = stats.done + stats.errors;
  if (!waiting) {
    queue.begun = null;
    return null;
  }
  if (queue.begun === null || finished < queue.doneBefore) {
    queue.begun = performance.now();
    queue.doneBefore = finished;
  }
  const done = finished - queue.doneBefore;
  const total = done + waiting;
  const seconds = done ? ((performance.now() - queue.begun) / 1000 / done) * waiting : 0;
  const meter = h("div.meter", { role: "progressbar", label: t("home.now"), "aria-valuenow": done, "aria-valuemin": 0, "aria-valuemax": total },
    h("i", { style: { width: `${(done / total) * 100}%` } }));
  return h("section.card.stack.tight.queue",
    h("div.row.apart", h("h2", t("home.now")),
      h("span.muted.small", [t("home.progress", { done: formatNumber(done), total: formatNumber(total) }), seconds > 60 && t("home.left", { time: roughly(seconds) })].filter(Boolean).join(" · "))),
    meter, current.length > 0 && h("ul.list.row.queue-now", current.map((photo) =>
      h("li.row", picture(`/api/photos/${photo.id}/thumbnail`, "", { class: "queue-picture" }), h("span.small.queue-name", photo.filename)))));
}

/** @param {number} seconds */
function roughly(seconds) {
  return seconds < 5400 ? t("home.minutes", { count: Math.ceil(seconds / 60) }) : t("home.hours", { count: Math.round(seconds / 3600) });
}

/**
 * A distribution as bars: a list of links, each with its number as text, because length and colour alone are not accessible.
 *
 * @param {string} title
 * @param {string} group
 * @param {Record<string, number>} counts
 */
function chart(title, group, counts) {
  const rows = Object.entries(counts).sort(([, one], [, other]) => other - one);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  const bars = rows.map(([value, count]) =>
    h("li", h("a.bar", { href: `#/photos?${group}=${encodeURIComponent(value)}` }, h("span.bar-name", term(group, value)),
      h("span.bar-track", { "aria-hidden": "true" }, h("i", { style: { width: `${(count / most) * 100}%` } })), h("span.bar-count", formatNumber(count)))));
  return h("section.card.stack.tight", h("h2", t(title)), rows.length ? h("ul.list", bars) : h("p.muted.small", t("home.noChart")));
}

/** @param {DynamicItem[]} notes */
function newNotes(notes) {
  const rows = notes.map((note) =>
    h("li", h("a.new-note", { href: `#/notes/${note.id}` }, h("strong", note.title), h("span.muted.small", note.summary), h("span.muted.small", timeAgo(note.created_at)))));
  return h("section.card.stack.tight", sectionHead("home.notes", "#/notes"), rows.length ? h("ul.list", rows) : h("p.muted.small", t("home.noNotes")));
}
