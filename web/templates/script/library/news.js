// The progress of reading, in the strip above the pictures, and the number of unread notes in the navigation.

import { api } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { navBadge } from "../base/shell.js";
import { t } from "../base/texts.js";

// The progress of the queue since it was last empty. Kept here, so that it survives a visit to another view.
/** @type {{ begun: number | null, doneBefore: number }} */
const queue = { begun: null, doneBefore: 0 };

/** @returns {Promise<Statistics>} */
export async function fetchNews() {
  /** @type {[Statistics, DynamicStatistics]} */
  const [stats, { total_unread: unread }] = await Promise.all([api.get("/api/stats"), api.get("/api/dynamics/stats")]);
  navBadge("notes", unread);
  return stats;
}

/** What is being read, which `draw(stats)` fills. */
export function newsStrip() {
  const node = h("section.news", { label: t("news.label"), hidden: true });
  return {
    node,
    /** @param {Statistics} stats */
    draw(stats) {
      const progress = queueProgress(stats);
      fill(node, progress);
      node.hidden = !progress;
    },
  };
}

/** @param {Statistics} stats */
function queueProgress(stats) {
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
  const total = finished + waiting;
  const seconds = done ? ((performance.now() - queue.begun) / 1000 / done) * waiting : 0;
  const meter = h(
    "div.meter",
    { role: "progressbar", label: t("news.reading"), "aria-valuenow": finished, "aria-valuemin": 0, "aria-valuemax": total },
    h("i", { style: { width: `${(finished / total) * 100}%` } }),
  );
  const left = seconds > 60 && h("span.muted", roughly(seconds));
  return h("div.strip-item.reading", h("span", t("news.progress", { done: formatNumber(finished), total: formatNumber(total) })), left, meter);
}

/** @param {number} seconds */
function roughly(seconds) {
  return seconds < 5400 ? t("news.minutes", { count: Math.ceil(seconds / 60) }) : t("news.hours", { count: Math.round(seconds / 3600) });
}
