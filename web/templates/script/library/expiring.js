// What will be deleted within a week, because it is older than things are kept: said once above the library, and shown in a view of its
// own.

import { praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { add, button, fill, h } from "../base/dom.js";
import { formatDay, formatNumber } from "../base/format.js";
import { photoGrid } from "./photo-grid.js";
import { PhotoList } from "./photo-list.js";
import { recalled, remember } from "../base/preferences.js";
import { emptyState, pageHead } from "../base/shell.js";
import { t } from "../base/texts.js";
import { tell } from "../base/upload.js";

const SILENT = 6 * 86_400_000; // ms after "Not now"; the next ones are said a day before they go, or earlier

/** @returns {Promise<ExpiringPhotos>} */
const fetchExpiring = (/** @type {AbortSignal | undefined} */ signal = undefined) => api.get("/api/photos/expiring", null, { signal });

/** @param {ExpiringPhotos} due */
function headline({ total, until }) {
  const day = until ? formatDay(until.slice(0, 10), new Date(), "short", true) : "";
  return t(total === 1 ? "expiring.one" : "expiring.many", { count: formatNumber(total), day });
}

/**
 * Say above the library what will be deleted, unless that was answered lately.
 *
 * @param {HTMLElement} place
 */
export async function expiringNotice(place) {
  if (Date.now() - recalled("expiring.answered", 0) < SILENT) return;
  const due = await fetchExpiring().catch(() => null); // the next visit asks again
  if (!due?.total) return;
  const answered = () => {
    remember("expiring.answered", Date.now());
    place.replaceChildren();
  };
  const all = button(t("expiring.keepAll"), { glyph: "star", kind: "primary", click: () => keepAll(all, answered) });
  fill(
    place,
    h(
      "section.card.keeping",
      { "aria-labelledby": "expiring-title" },
      h("div.grow", h("h2", { id: "expiring-title", text: headline(due) }), h("p.hint", t("expiring.why"))),
      h(
        "div.row",
        all,
        h("a.button", { href: "#/expiring", text: t("expiring.show") }),
        button(t("expiring.later"), { kind: "quiet", click: answered }),
      ),
    ),
  );
}

/**
 * @param {HTMLButtonElement} pressed
 * @param {() => unknown} then
 */
function keepAll(pressed, then) {
  settle(pressed, () => api.post("/api/photos/expiring/keep"), ({ kept }) => {
    praise(t("expiring.kept", { count: formatNumber(kept) }));
    then();
    tell("many", 0);
  });
}

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const expiring = {
  show(container) {
    const lead = h("p.muted");
    const all = button(t("expiring.keepAll"), { glyph: "star", kind: "primary", hidden: true, click: () => keepAll(all, () => {}) });
    const source = async () => {
      const due = await fetchExpiring();
      const rest = due.total > due.items.length && t("expiring.first", { count: formatNumber(due.items.length) });
      fill(lead, due.total > 0 && [headline(due), t("expiring.why"), rest].filter(Boolean).join(" · "));
      return { total: due.items.length, items: due.items };
    };
    const grid = photoGrid((told) => new PhotoList({}, told, source), {
      actions: ["keep", "tag", "download", "trash"],
      counted: (count) => (all.hidden = !count),
      empty: () =>
        emptyState({ glyph: "check", title: t("expiring.none"), action: h("a.button", { href: "#/library", text: t("library.title") }) }),
    });
    add(container, pageHead(t("expiring.title"), all), lead, grid.body);
    return () => grid.stop();
  },
};
