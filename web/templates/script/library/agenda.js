// The agenda: what happens on days that screenshots name. The nearest is said above the library, all of it has a view of its own, and
// what is on a picture stands beside it in the viewer, from where what was dismissed comes back.
//
// Its times are local ones, as the screenshots show them. They are compared as texts: "2026-11-22" or "2026-11-22T14:30".

import { settle } from "../base/actions.js";
import { api, picture } from "../base/api.js";
import { fail, toast } from "../base/dialogs.js";
import { add, button, fill, h, icon, listen } from "../base/dom.js";
import { formatClock, formatDay, formatMonth, formatMonthShort, formatNumber } from "../base/format.js";
import { emptyState, load, pageHead, poll, skeleton } from "../base/shell.js";
import { makeFeed, showAddress } from "../base/subscribe.js";
import { t, term } from "../base/texts.js";
import { photoEvents } from "../base/upload.js";
import { isVeiled, reasonOf, veilable } from "../viewer/veil.js";
import { openPhoto } from "../viewer/viewer.js";

const NEAREST = 4; // above the library
const NEAR_DAYS = 30;
const AGENDA_SHOWN = 100;
const LOOKS_EVERY = 60; // seconds
const STRIP_DAYS = 28;
const BESIDE = "(min-width: 1200px)"; // the picture is beside the list

/** @typedef {"today" | "tomorrow" | "week" | "later"} Section */

/** @param {Date} moment */
function localDay(moment) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
}

/** @param {Date} moment */
const minuteOf = (moment) => `${localDay(moment)}T${moment.toTimeString().slice(0, 5)}`;

/**
 * @param {Date} moment
 * @param {number} days
 */
const daysAfter = (moment, days) => localDay(new Date(moment.getFullYear(), moment.getMonth(), moment.getDate() + days));

/**
 * @param {object} query
 * @param {AbortSignal} [signal]
 * @returns {Promise<Agenda>}
 */
const fetchAgenda = (query, signal) => api.get("/api/agenda", { limit: AGENDA_SHOWN, ...query }, { signal });

// ---------------------------------------------------------------------------------------------------------------- how it is said

/** @typedef {ListedAgendaFields & { others: AgendaFields[] }} Entry an item, with those of its thread on the same day */

/**
 * The items as rows: one for a trip, a parcel or a booking and day, with all its times.
 *
 * @param {ListedAgendaFields[]} items
 */
function agendaEntries(items) {
  /** @type {Map<string, Entry>} */
  const found = new Map();
  for (const item of items) {
    const key = item.thread ? `${item.thread.thread_id} ${item.starts_at.slice(0, 10)}` : `item ${item.id}`;
    const first = found.get(key);
    if (first) {
      first.others.push(item);
      first.photo_ids = [...new Set([...first.photo_ids, ...item.photo_ids])];
      first.sensitive = [...new Set([...first.sensitive, ...item.sensitive])];
    } else found.set(key, { ...item, others: [] });
  }
  for (const entry of found.values()) if (isJoined(entry)) entry.title = entry.thread?.title ?? entry.title;
  return [...found.values()];
}

/** @param {Entry} entry */
const isJoined = ({ thread, others }) => thread !== null && (others.length > 0 || thread.times.length > 1);

/**
 * A time of a thread: "06:30 Boarding".
 *
 * @param {ThreadMoment} moment
 */
const timeText = ({ name, at }) => [at.includes("T") && formatClock(at.slice(11)), term("recordFields", name)].filter(Boolean).join(" ");

/**
 * What kind of item it is; "event" says nothing.
 *
 * @param {AgendaFields} item
 */
const kindOf = ({ kind }) => (kind === "event" ? "" : term("occasion", kind));

/** @param {AgendaFields} item */
const veilableOf = ({ photo_id: id, sensitive }) => ({ id, sensitive });

/** @param {AgendaFields} item */
const titleOf = (item) => (isVeiled(veilableOf(item)) ? t("veil.title") : item.title);

/**
 * The time of an item on its day, and its end where that is another day.
 *
 * @param {AgendaFields} item
 * @param {Date} now
 */
function hours({ starts_at: start, ends_at: end }, now) {
  const [day, from] = start.split("T");
  const [lastDay, to] = (end ?? "").split("T");
  const clock = from ? formatClock(from) : t("agenda.allDay");
  if (!lastDay || (lastDay === day && !to)) return clock;
  if (lastDay === day) return `${clock}–${formatClock(to)}`;
  return `${from ? `${clock} ` : ""}${t("agenda.until", { day: [formatDay(lastDay, now, "date", true), to && formatClock(to)].filter(Boolean).join(" ") })}`;
}

/**
 * @param {AgendaFields} item
 * @param {Date} now
 */
function whenOf(item, now) {
  const day = formatDay(item.starts_at.slice(0, 10), now, "short");
  return item.all_day && !item.ends_at ? day : `${day}, ${hours(item, now)}`;
}

/**
 * The day as a leaf of a calendar. Screen readers hear it from the text beside it.
 *
 * @param {string} start
 */
function leaf(start) {
  const day = start.slice(0, 10);
  return h("span.agenda-leaf", { "aria-hidden": "true" }, h("span", formatMonthShort(day)), h("b", Number(day.slice(8))));
}

// --------------------------------------------------------------------------------------------------------------- above the library

/**
 * Say above the library what is nearest; nothing where there is nothing. Returns a function that looks again.
 *
 * @param {HTMLElement} place
 */
export function comingUp(place) {
  let seen = "";
  const refresh = async () => {
    const now = new Date();
    const soon = { since: minuteOf(now), until: daysAfter(now, NEAR_DAYS), limit: 4 * NEAREST };
    const near = await fetchAgenda(soon).catch(() => null); // the next look asks again
    if (!near) return;
    const state = localDay(now) + JSON.stringify(near);
    if (state === seen || place.contains(document.activeElement)) return;
    seen = state;
    fill(
      place,
      near.total > 0 &&
        h(
          "section.coming",
          { "aria-labelledby": "coming" },
          h("div.coming-head", h("h2.visually-hidden", { id: "coming", text: t("agenda.coming") }),
            h("span.row", h("a", { href: "#/threads", text: t("threads.title") }), h("a", { href: "#/agenda", text: t("agenda.all") }))),
          h(
            "ul.list.coming-list",
            agendaEntries(near.items).slice(0, NEAREST).map((item) => h("li", nearCard(item, now))),
          ),
        ),
    );
  };
  refresh();
  return refresh;
}

/**
 * @param {Entry} item
 * @param {Date} now
 */
function nearCard(item, now) {
  const next = isJoined(item) && item.thread?.times.find(({ at }) => at >= item.starts_at);
  const day = formatDay(item.starts_at.slice(0, 10), now, "short");
  const when = next ? `${day}, ${timeText(next)}` : [whenOf(item, now), kindOf(item)].filter(Boolean).join(" · ");
  const node = h("a.strip-item.coming-card", { href: `#/photo/${item.photo_id}` });
  veilable(node, veilableOf(item), () => fill(node, h("strong", titleOf(item)), h("span.muted", when)));
  return node;
}

// ------------------------------------------------------------------------------------------------------------------------ the view

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const agenda = {
  show(container, { query }) {
    const isPast = query.get("past") === "1";
    const tab = (/** @type {string} */ name, /** @type {string} */ href, /** @type {boolean} */ isHere) =>
      h("a.tab", { href, text: t(`agenda.${name}`), "aria-current": isHere ? "page" : undefined });
    const body = h("div.stack.agenda-body", { tabindex: "-1" });
    let seen = "";
    let stop = () => {};
    /** @param {AbortSignal} signal */
    const fetched = async (signal) => {
      const now = new Date();
      const query = isPast ? { until: minuteOf(now), order: "latest" } : { since: minuteOf(now) };
      const answer = await fetchAgenda(query, signal);
      // What has begun and lasts is not over.
      const items = agendaEntries(isPast ? answer.items.filter((item) => isOver(item, minuteOf(now))) : answer.items);
      return { now, items, total: answer.total };
    };
    /** @param {Awaited<ReturnType<typeof fetched>>} found */
    const drawn = ({ now, items, total }) => {
      seen = localDay(now) + JSON.stringify(items);
      if (!items.length) {
        return emptyState({ glyph: "calendar", title: t(isPast ? "agenda.nonePast" : "agenda.none"), text: t("agenda.noneText") });
      }
      const rows = items.map((item) => agendaRow(item, now, { open: () => open(item, items), dismiss: () => remove(item) }));
      const side = h("aside.agenda-side", { label: t("agenda.picture") });
      const show = (/** @type {number} */ at) => beside(side, rows, at, items[at], () => open(items[at], items));
      rows.forEach((row, at) => listen(row, { pointerenter: () => show(at), focusin: () => show(at) }));
      show(0);
      return [
        !isPast && dayStrip(items, rows, now),
        h("div.agenda-columns", h("div.stack", isPast ? byMonth(items, rows) : bySection(items, rows, now)), side),
        total > AGENDA_SHOWN && h("p.muted", t("agenda.first", { count: formatNumber(AGENDA_SHOWN) })),
      ];
    };
    const again = () => {
      stop();
      stop = load(body, fetched, drawn, skeleton(4, "block"));
    };
    /** Look whether something has changed, and draw only then: the day may be another one. */
    const look = async () => {
      const found = await fetched(new AbortController().signal).catch(() => null);
      if (!found || seen === localDay(found.now) + JSON.stringify(found.items) || body.contains(document.activeElement)) return;
      fill(body, drawn(found));
    };
    const rowOf = (/** @type {number} */ photoId) => /** @type {HTMLElement | null} */ (body.querySelector(`[data-of="${photoId}"] a`));
    /** @type {(item: Entry, items: Entry[]) => void} */
    const open = (item, items) => {
      const ids = [...new Set(items.map(({ photo_id: id }) => id))];
      openPhoto(item.photo_id, {
        closed: (last) => rowOf(last)?.focus(),
        sequence: {
          neighbour: async (id, delta) => ids[ids.indexOf(id) + delta] ?? null,
          place: async (id) => ({ at: ids.indexOf(id) + 1, total: ids.length }),
          summary: () => undefined,
        },
      });
    };
    /** @param {Entry} item */
    const remove = async (item) => {
      if (!(await setAllDismissed(item, true))) return;
      const row = body.querySelector(`[data-item="${item.id}"]`);
      const next = /** @type {HTMLElement | null} */ ((row?.nextElementSibling ?? row?.previousElementSibling)?.querySelector("a") ?? null);
      row?.remove();
      for (const section of body.querySelectorAll("section:not(:has(li))")) section.remove();
      seen = "";
      const other = next ?? /** @type {HTMLElement | null} */ (body.querySelector(".agenda-row a"));
      if (other) other.focus();
      else again();
      toast(t("agenda.dismissed"), { seconds: 8, action: { label: t("shell.undo"), run: async () => {
        if (await setAllDismissed(item, false)) again();
      } } });
    };
    const phone = button(t("agenda.phone"), { glyph: "device", click: () => settle(phone, () => makeFeed("agenda"), showAddress) });
    add(container, pageHead(t("agenda.title"), phone), h("nav.tabs", { "aria-label": t("agenda.title") },
      tab("coming", "#/agenda", !isPast), tab("past", "#/agenda?past=1", isPast)), body);
    again();
    const changed = () => void look();
    return [
      () => stop(),
      poll(() => seen && look(), LOOKS_EVERY),
      listen(photoEvents, { many: again, restored: again, deleted: changed, changed }),
    ];
  },
};

/**
 * Show the picture of a row beside the list, where the screen is wide enough.
 *
 * @param {HTMLElement} side
 * @param {HTMLElement[]} rows
 * @param {number} at
 * @param {Entry} item
 * @param {() => unknown} open
 */
function beside(side, rows, at, item, open) {
  if (rows[at].classList.contains("beside") || !matchMedia(BESIDE).matches) return;
  rows.forEach((row, place) => row.classList.toggle("beside", place === at));
  const shown = h("button", { type: "button", tabindex: "-1", label: t("agenda.find", { title: titleOf(item) }), on: { click: open } });
  veilable(shown, veilableOf(item), (veiled) => fill(shown, veiled ? icon("hidden") : picture(`/api/photos/${item.photo_id}/image`, "")));
  fill(side, shown);
}

/**
 * The days of the next weeks. One that has something leads to its first row.
 *
 * @param {Entry[]} items
 * @param {HTMLElement[]} rows
 * @param {Date} now
 */
function dayStrip(items, rows, now) {
  const weekday = new Intl.DateTimeFormat(document.documentElement.lang, { weekday: "short" });
  const days = Array.from({ length: STRIP_DAYS }, (_, after) => daysAfter(now, after));
  return h("ol.agenda-strip", { label: t("agenda.days") }, days.map((day, after) => {
    const own = items.flatMap(({ starts_at: start }, at) => (start.startsWith(day) ? [at] : []));
    const begins = after === 0 || day.endsWith("-01");
    const name = begins ? formatMonthShort(day) : weekday.format(new Date(`${day}T12:00`));
    const content = [h("span", name), h("b", Number(day.slice(8))), h("i")];
    const kind = after === 0 ? "agenda-day today" : "agenda-day";
    if (!own.length) return h("li", h("span", { class: kind }, content));
    const label = t("agenda.onDay", { day: formatDay(day, now, "long"), count: formatNumber(own.length) });
    const press = () => /** @type {HTMLElement} */ (rows[own[0]].querySelector("a")).focus();
    return h("li", h("button", { type: "button", class: kind, label, on: { click: press } }, content));
  }));
}

/**
 * @param {Entry} entry
 * @param {boolean} wanted
 */
async function setAllDismissed(entry, wanted) {
  for (const item of [entry, ...entry.others]) if (!(await setDismissed(item, wanted))) return false;
  return true;
}

/**
 * @param {AgendaFields} item
 * @param {boolean} wanted
 */
async function setDismissed({ id }, wanted) {
  try {
    const path = `/api/agenda/${id}/dismiss`;
    await (wanted ? api.post(path) : api.delete(path));
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

/**
 * @param {AgendaFields} item
 * @param {string} now
 */
function isOver({ starts_at: start, ends_at: end }, now) {
  const last = end ?? start;
  return last.includes("T") ? last < now : last < now.slice(0, 10);
}

/**
 * @param {Entry} item
 * @param {Date} now
 * @param {{ open: () => unknown, dismiss: () => unknown }} actions
 */
function agendaRow(item, now, { open, dismiss }) {
  const press = (/** @type {MouseEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in a tab of its own
    event.preventDefault();
    open();
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Delete") return;
    event.preventDefault();
    dismiss();
  };
  const node = h("li.agenda-row", { dataset: { item: item.id, of: item.photo_id }, on: { keydown: keys } });
  const isNear = [localDay(now), daysAfter(now, 1)].includes(item.starts_at.slice(0, 10)); // its section names the day
  const several = item.photo_ids.length > 1 && t("agenda.several", { count: formatNumber(item.photo_ids.length) });
  veilable(node, veilableOf(item), (veiled) => {
    const title = titleOf(item);
    const quote = veiled ? reasonOf(veilableOf(item)) : !isJoined(item) && item.quote !== item.title && item.quote;
    const times = isJoined(item) && !veiled && item.thread?.times;
    const day = formatDay(item.starts_at.slice(0, 10), now, "short");
    const when = isNear ? hours(item, now) : whenOf(item, now);
    fill(
      node,
      leaf(item.starts_at),
      h(
        "div.grow",
        h("a.agenda-title", { href: `#/photo/${item.photo_id}`, text: title, on: { click: press } }),
        h(
          "p.agenda-when",
          (!times || !isNear) && h("time", { datetime: item.starts_at, text: times ? day : when }),
          kindOf(item) && h("span.badge", { dataset: { kind: item.kind }, text: kindOf(item) }),
          several && h("span.muted", several),
        ),
        times && h("ul.list.agenda-times", times.map((moment) => h("li", h("time", { datetime: moment.at, text: timeText(moment) })))),
        quote && h("p.muted.agenda-quote", quote),
      ),
      veiled
        ? h("span.agenda-picture", icon("hidden"))
        : picture(`/api/photos/${item.photo_id}/thumbnail`, "", { class: "agenda-picture" }),
      button("", { glyph: "close", kind: "quiet", label: t("agenda.dismiss", { title }), click: dismiss }),
    );
  });
  return node;
}

/**
 * @param {AgendaFields[]} items
 * @param {HTMLElement[]} rows
 * @param {Date} now
 */
function bySection(items, rows, now) {
  const [today, tomorrow] = [localDay(now), daysAfter(now, 1)];
  const sunday = daysAfter(now, (7 - now.getDay()) % 7);
  /** @type {(start: string) => Section} */
  const sectionOf = (start) =>
    start <= `${today}T24` ? "today" : start <= `${tomorrow}T24` ? "tomorrow" : start <= `${sunday}T24` ? "week" : "later";
  return sections(items, rows, sectionOf, (name) => t(`agenda.${name}`));
}

/**
 * @param {AgendaFields[]} items
 * @param {HTMLElement[]} rows
 */
function byMonth(items, rows) {
  return sections(items, rows, (start) => start.slice(0, 7), (month) => formatMonth(month, null));
}

/**
 * @param {AgendaFields[]} items
 * @param {HTMLElement[]} rows
 * @param {(start: string) => string} nameOf
 * @param {(name: string) => string} heading
 */
function sections(items, rows, nameOf, heading) {
  /** @type {Map<string, HTMLElement[]>} */
  const found = new Map();
  items.forEach(({ starts_at: start }, at) => found.set(nameOf(start), [...(found.get(nameOf(start)) ?? []), rows[at]]));
  return [...found].map(([name, own]) => h("section.agenda-section", { "aria-labelledby": `agenda-${name}` },
    h("h2", { id: `agenda-${name}`, text: heading(name) }), h("ul.list.card.agenda-list", own)));
}

// ------------------------------------------------------------------------------------------------------------- beside a picture

/**
 * What is on a photo, in the panel beside it. `mark` is called with what is to be marked on the picture, `find` with what to look at.
 *
 * @param {HTMLElement} content with what `detailsOf` makes
 * @param {number} photoId
 * @param {{ signal: AbortSignal, mark: (items: AgendaFields[]) => unknown, find: (item: AgendaFields) => unknown }} options
 */
export async function photoAgenda(content, photoId, { signal, mark, find }) {
  const place = content.querySelector(".details-agenda");
  const found = await fetchAgenda({ photo_id: photoId, dismissed: "true" }, signal).catch(() => null); // the panel is whole without it
  if (!found || !place || signal.aborted) return;
  let { items } = found;
  const draw = () => {
    const now = new Date();
    const isFocused = place.contains(document.activeElement);
    fill(
      place,
      items.length > 0 &&
        h(
          "section",
          h("h4", t("agenda.title")),
          h(
            "ul.list.entities",
            items.map((item) =>
              h(
                "li",
                { class: item.dismissed ? "dismissed" : "" },
                h("span.entity-type", term("occasion", item.kind)),
                h(
                  "button.grow.agenda-entry",
                  {
                    type: "button",
                    label: t("agenda.find", { title: `${item.title}, ${whenOf(item, now)}` }),
                    on: { click: () => find(item) },
                  },
                  h("strong", whenOf(item, now)),
                  h("span", item.title),
                  item.dismissed && h("span.muted", t("agenda.dismissed")),
                ),
                button("", {
                  glyph: item.dismissed ? "restore" : "close",
                  kind: "quiet",
                  label: t(item.dismissed ? "agenda.back" : "agenda.dismiss", { title: item.title }),
                  click: () => turn(item),
                }),
              ),
            ),
          ),
        ),
    );
    if (isFocused) /** @type {HTMLElement | null} */ (place.querySelector(".button"))?.focus();
    mark(items.filter(({ dismissed }) => !dismissed));
  };
  /** @param {AgendaFields} item */
  const turn = async (item) => {
    if (!(await setDismissed(item, !item.dismissed)) || signal.aborted) return;
    items = items.map((other) => (other.id === item.id ? { ...other, dismissed: !item.dismissed } : other));
    draw();
  };
  draw();
}
