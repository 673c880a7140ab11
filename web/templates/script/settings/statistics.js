// A section of the settings: how many screenshots there are, and what they show.

import { api } from "../base/api.js";
import { h } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { facts, settingsCard } from "./panels.js";
import { load } from "../base/shell.js";
import { kindRows, SENSITIVE } from "../library/held-back.js";
import { t, term } from "../base/texts.js";

/** @param {HTMLElement} container */
export function showStatistics(container) {
  const body = h("div.stack");
  container.append(body);
  return load(body, (signal) => api.get("/api/stats", null, { signal }), (/** @type {Statistics} */ stats) => {
    const waiting = stats.pending + stats.processing;
    /** @type {[string, string][]} */
    const rows = [[t("statistics.total"), formatNumber(stats.total_photos)], [t("statistics.done"), formatNumber(stats.done)]];
    if (waiting) rows.push([t("statistics.waiting"), formatNumber(waiting)]);
    if (stats.errors) rows.push([t("statistics.failed"), formatNumber(stats.errors)]);
    const held =
      stats.sensitive_photos > 0 &&
      settingsCard(
        t("held.title"),
        facts(kindRows(stats)),
        h("p.hint", t("held.why"), " ", h("a", { href: SENSITIVE, text: t("held.show") })),
      );
    return [
      settingsCard(t("settings.statistics"), facts(rows)),
      held,
      chart("statistics.categories", "category", stats.category_distribution),
      chart("statistics.intents", "intent", stats.intent_distribution),
    ];
  });
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} text
 */
function link(name, value, text) {
  return h("a", { href: `#/library?${name}=${encodeURIComponent(value)}`, text });
}

/**
 * A distribution as bars, each with its number as text, because length and colour alone are not accessible.
 *
 * @param {string} title
 * @param {string} group
 * @param {Record<string, number>} counts
 */
function chart(title, group, counts) {
  const rows = Object.entries(counts).filter(([, count]) => count).sort(([, one], [, other]) => other - one);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  return settingsCard(
    t(title),
    rows.length
      ? h(
          "ul.list",
          rows.map(([value, count]) =>
            h(
              "li.bar",
              link(group, value, term(group, value)),
              h("span.bar-track", { "aria-hidden": "true" }, h("i", { style: { width: `${(count / most) * 100}%` } })),
              h("span.bar-count", formatNumber(count)),
            ),
          ),
        )
      : h("p.muted.small", t("statistics.none")),
  );
}
