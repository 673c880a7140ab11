// The calm strip above the pictures: what is being read now, with progress and the time left, and the notes that are not read yet.

import { api, picture } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { formatNumber, timeAgo } from "../base/format.js";
import { navBadge } from "../base/shell.js";
import { photoTitle } from "./tile.js";
import { t } from "../base/texts.js";
import { isVeiled, noteName } from "../viewer/veil.js";

const UNREAD_SHOWN = 4;

/**
 * @typedef {object} News
 * @property {Statistics} stats
 * @property {PhotoItem[]} current being analysed now
 * @property {DynamicItem[]} notes
 */

// The progress of the queue since it was last empty. Kept here, so that it survives a visit to another view.
/** @type {{ begun: number | null, doneBefore: number }} */
const queue = { begun: null, doneBefore: 0 };

/** @returns {Promise<News>} */
export async function fetchNews() {
  /** @type {[Statistics, DynamicStatistics]} */
  const [stats, { total_unread: unread }] = await Promise.all([api.get("/api/stats"), api.get("/api/dynamics/stats")]);
  navBadge("notes", unread);
  const [current, notes] = await Promise.all([
    stats.processing ? api.get("/api/photos", { status: "processing", page_size: 1 }) : { items: [] },
    unread ? api.get("/api/dynamics", { limit: 30 }) : { items: [] },
  ]);
  return {
    stats,
    current: current.items,
    notes: notes.items.filter((/** @type {DynamicItem} */ note) => !note.is_read).slice(0, UNREAD_SHOWN),
  };
}

/**
 * A strip that `draw(news)` fills. What has not changed is not redrawn, and nothing is while it has the focus, but the queue.
 */
export function newsStrip() {
  const place = h("div.news-queue");
  const notesPlace = h("ul.list.news-notes");
  const node = h("section.news", { label: t("news.label"), hidden: true }, place, notesPlace);
  let seen = "";
  return {
    node,
    /** @param {News} news */
    draw({ stats, current, notes }) {
      const card = queueCard(stats, current[0]);
      fill(place, card);
      const key = JSON.stringify(notes);
      if (key !== seen && !notesPlace.contains(document.activeElement)) {
        seen = key;
        fill(
          notesPlace,
          notes.map((note) =>
            h(
              "li",
              h(
                "a.news-card",
                { href: `#/notes/${note.id}` },
                h("span.visually-hidden", `${t("news.note")}: `),
                h("strong", noteName(note)),
                h("span.muted", (!note.sensitive?.length && note.summary) || timeAgo(note.created_at)),
              ),
            ),
          ),
        );
      }
      place.hidden = !card;
      node.hidden = !card && !notes.length;
    },
  };
}

/**
 * @param {Statistics} stats
 * @param {PhotoItem | undefined} current
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
  const meter = h(
    "div.meter",
    { role: "progressbar", label: t("news.reading"), "aria-valuenow": done, "aria-valuemin": 0, "aria-valuemax": total },
    h("i", { style: { width: `${(done / total) * 100}%` } }),
  );
  const progress = [
    t("news.progress", { done: formatNumber(done), total: formatNumber(total) }),
    seconds > 60 && t("news.left", { time: roughly(seconds) }),
  ];
  return h("div.news-card.reading",
    current && !isVeiled(current) && picture(`/api/photos/${current.id}/thumbnail`, photoTitle(current), { class: "news-picture" }),
    h("div.grow", h("strong", t("news.reading")), h("span.muted", progress.filter(Boolean).join(" · ")), meter));
}

/** @param {number} seconds */
function roughly(seconds) {
  return seconds < 5400 ? t("news.minutes", { count: Math.ceil(seconds / 60) }) : t("news.hours", { count: Math.round(seconds / 3600) });
}
