// Threads: one order, parcel, trip, booking or bill over all screenshots of it. What is open stands in a view of its own, and a
// photo's thread as a strip below it in the viewer (viewer/threads.js).

import { api, picture } from "../base/api.js";
import { add, button, fill, h, icon, listen } from "../base/dom.js";
import { formatClock, formatDay, formatNumber, timeAgo } from "../base/format.js";
import { emptyState, load, pageHead, skeleton } from "../base/shell.js";
import { t, term } from "../base/texts.js";
import { photoEvents } from "../base/upload.js";
import { stateBadge } from "../viewer/threads.js";
import { reasonOf, veilable } from "../viewer/veil.js";
import { openPhoto } from "../viewer/viewer.js";

const THREADS_SHOWN = 40;

// All but pages, of which nothing is open.
const THINGS = ["order", "parcel", "trip", "booking", "bill"].map((type) => `type=${type}`).join("&");

/**
 * @param {string} state "open", or "" for all
 * @param {number} page
 * @param {AbortSignal} [signal]
 * @returns {Promise<ThreadPage>}
 */
const fetchThreads = (state, page, signal) =>
  api.get(`/api/threads?${THINGS}&state=${state}&page=${page}&page_size=${THREADS_SHOWN}`, null, { signal });

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const threads = {
  show(container, { query }) {
    const isAll = query.get("all") === "1";
    const tab = (/** @type {string} */ name, /** @type {string} */ href, /** @type {boolean} */ isHere) =>
      h("a.tab", { href, text: t(`threads.${name}`), "aria-current": isHere ? "page" : undefined });
    const body = h("div.stack.threads-body", { tabindex: "-1" });
    const state = isAll ? "" : "open";
    let stop = () => {};
    const again = () => {
      stop();
      stop = load(body, (signal) => fetchThreads(state, 1, signal), drawn, skeleton(4, "block"));
    };
    /** @param {ThreadPage} found */
    const drawn = (found) => {
      if (!found.threads.length) {
        return emptyState({ glyph: "folder", title: t(isAll ? "threads.none" : "threads.noneOpen"), text: t("threads.noneText") });
      }
      const list = h("ul.list.threads", found.threads.map(threadCard));
      const more = button(t("list.more"), { click: async () => {
        found = await fetchThreads(state, found.page + 1);
        const rows = found.threads.map(threadCard);
        list.append(...rows);
        /** @type {HTMLElement | null} */ (rows[0]?.querySelector("a"))?.focus();
        if (found.page * found.page_size >= found.total) more.remove();
      } });
      return [list, found.total > found.threads.length && more];
    };
    add(container, pageHead(t("threads.title")), h("nav.tabs", { "aria-label": t("threads.title") },
      tab("open", "#/threads", !isAll), tab("all", "#/threads?all=1", isAll)), body);
    again();
    const changed = () => body.contains(document.activeElement) || again();
    return [() => stop(), listen(photoEvents, { many: again, restored: again, deleted: changed, changed })];
  },
};

/** @param {ThreadFields} thread */
function threadCard(thread) {
  const { id, photo_ids: ids, said_on: shown } = thread;
  const photo = { id: shown, sensitive: thread.sensitive };
  const node = h("li.thread-card", { dataset: { thread: id } });
  const open = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in a tab of its own
    event.preventDefault();
    openPhoto(shown, { sequence: threadSequence(ids), closed: () => /** @type {HTMLElement | null} */ (node.querySelector("a"))?.focus() });
  };
  veilable(node, photo, (veiled) =>
    fill(
      node,
      veiled ? h("span.agenda-picture", icon("hidden")) : picture(`/api/photos/${shown}/thumbnail`, "", { class: "agenda-picture" }),
      h(
        "div.grow",
        h("a.thread-title", { href: `#/photo/${shown}`, text: veiled ? t("veil.title") : thread.title, on: { click: open } }),
        h("p.thread-state", stateBadge(thread), thread.next && !veiled && h("span", momentText(thread.next))),
        h("p.muted", veiled ? reasonOf(photo) : [thread.count > 1 && h("span", t("agenda.several", { count: formatNumber(thread.count) })),
          h("span", timeAgo(thread.last_at))]),
      ),
    ));
  return node;
}

/**
 * The photos of a thread as a list to go through, in the order of their time.
 *
 * @param {number[]} ids the newest first
 * @returns {Sequence}
 */
function threadSequence(ids) {
  const inTime = [...ids].reverse();
  return {
    neighbour: async (id, delta) => inTime[inTime.indexOf(id) + delta] ?? null,
    place: async (id) => ({ at: inTime.indexOf(id) + 1, total: inTime.length }),
    summary: () => undefined,
  };
}

/**
 * A time to come: "Departs Fri 4 Dec, 07:10".
 *
 * @param {ThreadMoment} moment
 */
function momentText({ name, at }) {
  const [day, clock] = at.split("T");
  return [term("recordFields", name), formatDay(day, new Date(), "short", true), clock && formatClock(clock)].filter(Boolean).join(" ");
}
