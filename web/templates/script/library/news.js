// The progress of reading, in the strip above the pictures, and the number of unread notes in the navigation.

import { api } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { navBadge } from "../base/shell.js";
import { t } from "../base/texts.js";

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
  if (!stats.pending && !stats.processing) return null;
  const { searchable: done, total_photos: total, seconds_left: seconds } = stats;
  const meter = h(
    "div.meter",
    { role: "progressbar", label: t("news.reading"), "aria-valuenow": done, "aria-valuemin": 0, "aria-valuemax": total },
    h("i", { style: { width: `${(done / total) * 100}%` } }),
  );
  const left = seconds !== null && seconds > 60 && h("span.muted", roughly(seconds));
  return h("div.strip-item.reading", h("span", t("news.progress", { done: formatNumber(done), total: formatNumber(total) })), left, meter);
}

/** @param {number} seconds */
function roughly(seconds) {
  return seconds < 5400 ? t("news.minutes", { count: Math.ceil(seconds / 60) }) : t("news.hours", { count: Math.round(seconds / 3600) });
}
