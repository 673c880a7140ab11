// What screenshots say as tables: the receipts, bills, parcels and trips of a period, with their sums. A row opens its screenshot, where
// its lines are marked, and its pencil the values of the screenshot below it, which are corrected there as beside the picture. A phone has
// cards instead of rows.

import { api, picture } from "../base/api.js";
import { fail } from "../base/dialogs.js";
import { add, button, choice, fill, h, icon, listen } from "../base/dom.js";
import { formatAmount, formatNumber } from "../base/format.js";
import { openMenu } from "../base/menu.js";
import { saveFile } from "../base/picture-file.js";
import { busy, copyText, emptyState, load, pageHead, replaceAddress, skeleton } from "../base/shell.js";
import { t } from "../base/texts.js";
import { photoEvents, tell } from "../base/upload.js";
import { NARROW } from "../viewer/frame.js";
import { recordCards } from "../viewer/records.js";
import { isVeiled, reasonOf, veilable } from "../viewer/veil.js";
import { openPhoto } from "../viewer/viewer.js";
import { groupName, orderOf, RECORD_GROUPS } from "./record-groups.js";

const PAGE = 100; // records of a request, and rows that are drawn at once
const MOST_LISTED = 1000;
const TIMES = ["month", "lastMonth", "year", "lastYear", "range"];

/**
 * @typedef {import("./record-groups.js").RecordGroup} RecordGroup
 * @typedef {import("./record-groups.js").Cell} Cell
 * @typedef {{ time: string, from: string, to: string }} Period
 * @typedef {{ total: number, records: ListedRecord[], sums: RecordSum[], groups: Map<string, number>, sort: string }} Fetched
 * @typedef {{ record: ListedRecord, cells: Cell[] }} Row
 */

/** @param {ListedRecord} record */
const photoOf = ({ photo_id: id, sensitive }) => ({ id, sensitive });

// -------------------------------------------------------------------------------------------------------------------- what is asked

/**
 * How many records there are of each group that has some.
 *
 * @param {AbortSignal} [signal]
 */
async function countGroups(signal) {
  /** @type {{ types: { type: string, count: number }[] }} */
  const { types } = await api.get("/api/records/types", null, { signal });
  const counts = RECORD_GROUPS.map(({ name, types: own }) =>
    /** @type {[string, number]} */ ([name, types.filter(({ type }) => own.includes(type)).reduce((sum, { count }) => sum + count, 0)]));
  return new Map(counts.filter(([, count]) => count));
}

/**
 * The days of a period, both included; "" is no end.
 *
 * @param {Period} period
 * @param {Date} now
 */
function daysOf({ time, from, to }, now) {
  const [year, month] = [now.getFullYear(), now.getMonth()];
  const local = (/** @type {Date} */ moment) => new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  const between = (/** @type {Date} */ first, /** @type {Date} */ last) => ({ since: local(first), until: local(last) });
  if (time === "month") return between(new Date(year, month, 1), new Date(year, month + 1, 0));
  if (time === "lastMonth") return between(new Date(year, month - 1, 1), new Date(year, month, 0));
  if (time === "year") return { since: `${year}-01-01`, until: `${year}-12-31` };
  if (time === "lastYear") return { since: `${year - 1}-01-01`, until: `${year - 1}-12-31` };
  return time === "range" ? { since: from, until: to } : { since: "", until: "" };
}

/**
 * @param {RecordGroup} group
 * @param {Period} period
 * @param {string} [sort]
 */
function queryOf({ types }, period, sort = "latest") {
  const { since, until } = daysOf(period, new Date());
  return new URLSearchParams([...types.map((type) => ["type", type]), ["since", since], ["until", until], ["sort", sort]]);
}

/**
 * @param {RecordGroup} group
 * @param {Period} period
 * @param {string} sort
 * @param {AbortSignal} signal
 * @returns {Promise<Fetched>}
 */
async function fetchRecords(group, period, sort, signal) {
  const query = queryOf(group, period, sort);
  /** @type {(page: number) => Promise<RecordPage>} */
  const page = (number) => api.get(`/api/records?${query}&page_size=${PAGE}&page=${number}`, null, { signal });
  const [first, groups] = await Promise.all([page(1), countGroups(signal)]);
  const more = Math.ceil(Math.min(first.total, MOST_LISTED) / PAGE) - 1;
  const others = await Promise.all(Array.from({ length: Math.max(0, more) }, (_, at) => page(at + 2)));
  return { total: first.total, records: [first, ...others].flatMap(({ records }) => records), sums: first.sums, groups, sort };
}

// ------------------------------------------------------------------------------------------------------------------ above the library

/**
 * Links above the library to the tables that have something in them; nothing where none has. Returns a function that looks again.
 *
 * @param {HTMLElement} place
 */
export function recordShelves(place) {
  let seen = "";
  const refresh = async () => {
    const counts = await countGroups().catch(() => null); // the next look asks again
    const state = counts && JSON.stringify([...counts]);
    if (!counts || state === seen || place.contains(document.activeElement)) return;
    seen = state ?? "";
    const links = RECORD_GROUPS.filter(({ name }) => counts.has(name)).map((group) =>
      h("li", h("a.shelf", { href: `#/records/${group.name}` }, icon(group.glyph), h("span", groupName(group)),
        h("span.muted", formatNumber(counts.get(group.name) ?? 0)))));
    fill(place, links.length > 0 && h("nav", { "aria-label": t("tables.title") }, h("ul.list.shelves", links)));
  };
  refresh();
  return refresh;
}

// ---------------------------------------------------------------------------------------------------------------------------- the view

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const recordTables = {
  show(container, { id, query }) {
    const table = new RecordTable(container, RECORD_GROUPS.find(({ name }) => name === id) ?? null, query);
    return table.stop;
  },
};

class RecordTable {
  #head = h("div.records-top");
  #body = h("div.stack.records-body", { tabindex: "-1" });
  /** @type {Fetched | null} */
  #found = null;
  #sorted = { column: -1, down: true }; // -1: as the service lists them
  #shown = PAGE;
  /** @type {{ record: ListedRecord, panel: HTMLElement } | null} */
  #editing = null; // whose values are shown below it
  /** @type {Ending[]} */
  #leave = [];
  #stop = () => {};

  /**
   * @param {HTMLElement} container
   * @param {RecordGroup | null} group null: the first that has something in it
   * @param {URLSearchParams} query
   */
  constructor(container, group, query) {
    this.container = container;
    this.group = group ?? RECORD_GROUPS[0];
    this.isOpen = group === null;
    this.#sortByTime();
    const time = query.get("time") ?? "";
    this.period = { time: TIMES.includes(time) ? time : "", from: query.get("from") ?? "", to: query.get("to") ?? "" };
    add(container, this.#head, this.#body);
    this.#drawHead(new Map());
    this.#fetch();
    const again = () => (this.#editing ? this.#refresh() : this.#fetch());
    const redraw = () => this.#found && this.#draw();
    this.#leave = [
      listen(photoEvents, { many: again, restored: again, deleted: again, changed: again }),
      listen(NARROW, { change: redraw }),
    ];
  }

  stop = () => {
    this.#stop();
    for (const end of this.#leave) end();
  };

  #fetch() {
    this.#stop();
    const fetched = async (/** @type {AbortSignal} */ signal) => {
      if (this.isOpen) {
        const groups = await countGroups(signal);
        this.group = RECORD_GROUPS.find(({ name }) => groups.has(name)) ?? this.group;
        this.isOpen = false;
        this.#sortByTime();
      }
      return fetchRecords(this.group, this.period, this.#order(), signal);
    };
    const waiting = this.#found ? h("div.stale", ...this.#body.childNodes) : skeleton(6, "block");
    this.#stop = load(this.#body, fetched, (found) => {
      this.#found = found;
      this.#drawHead(found.groups);
      return this.#content(found);
    }, waiting);
  }

  /** Fetch what is listed while a value is corrected: the table stays, and so does the focus. */
  async #refresh() {
    this.#stop();
    const fetching = new AbortController();
    this.#stop = () => fetching.abort();
    try {
      this.#found = await fetchRecords(this.group, this.period, this.#order(), fetching.signal);
      this.#draw();
    } catch (error) {
      if (!fetching.signal.aborted) fail(error);
    }
  }

  /** @param {Partial<Period>} changes */
  #choose(changes) {
    this.#editing = null;
    Object.assign(this.period, changes);
    const isRange = this.period.time === "range";
    const kept = new URLSearchParams(Object.entries(this.period).filter(([name, value]) => value && (name === "time" || isRange)));
    replaceAddress(`#/records/${this.group.name}${kept.size ? `?${kept}` : ""}`);
    this.#shown = PAGE;
    this.#drawHead(this.#found?.groups ?? new Map());
    this.#fetch();
  }

  // ------------------------------------------------------------------------------------------------------------------ above the table

  /** @param {Map<string, number>} groups */
  #drawHead(groups) {
    const focused = document.activeElement instanceof HTMLElement && this.#head.contains(document.activeElement) ? document.activeElement.id : "";
    const exporting = button(t("tables.export"), { glyph: "download", id: "records-export", "aria-haspopup": "menu", click: () =>
      this.#openExport(exporting) });
    const links = RECORD_GROUPS.filter(({ name }) => groups.has(name) || name === this.group.name).map((group) =>
      h("a.tab", { href: `#/records/${group.name}`, "aria-current": group === this.group ? "page" : undefined }, groupName(group)));
    fill(this.#head, pageHead(groupName(this.group), exporting), h("nav.tabs.records-tabs", { "aria-label": t("tables.title") }, links),
      this.#controls());
    if (focused) document.getElementById(focused)?.focus();
    const here = /** @type {HTMLElement | null} */ (this.#head.querySelector(".tab[aria-current]"));
    if (here?.parentElement) here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.offsetLeft - 40;
  }

  #controls() {
    const { time } = this.period;
    const times = [["", t("tables.allTime")], ...TIMES.map((name) => [name, t(`tables.${name}`)])];
    const end = (/** @type {"from" | "to"} */ name) => h("label.filter.date", t(`filter.${name}`), h("input", { type: "date",
      id: `records-${name}`, value: this.period[name], on: { change: (event) => this.#choose({ [name]: event.target.value }) } }));
    const period = h("span.filter.open", choice(times, time, { id: "records-time", label: t("tables.period"),
      on: { change: (event) => this.#choose({ time: event.target.value }) } }), icon("down"));
    const columns = this.group.columns.map(({ name }, at) => [String(at), t(`tables.${name}`)]);
    const order = h("span.filter.open.records-order", choice([["-1", t("tables.order")], ...columns], String(this.#sorted.column), {
      id: "records-order", label: t("tables.order"), on: { change: (event) => this.#sortBy(Number(event.target.value)) } }), icon("down"));
    return h("div.chips.records-controls", period, time === "range" && [end("from"), end("to")], order);
  }

  /** @param {HTMLElement} anchor */
  #openExport(anchor) {
    openMenu(/** @type {HTMLElement} */ (anchor.closest("main")), anchor, {
      label: t("tables.export"),
      back: anchor,
      items: [
        { label: t("tables.copy"), glyph: "copy", run: () => this.#copy() },
        { label: t("tables.csv"), glyph: "download", run: () => this.#save("csv", anchor) },
        { label: t("tables.jsonld"), glyph: "download", run: () => this.#save("jsonld", anchor) },
      ],
    });
  }

  /** Copy what is listed, for a spreadsheet: what is covered stays out. */
  #copy() {
    const { columns } = this.group;
    const rows = this.#rows().filter(({ record }) => !isVeiled(photoOf(record)));
    const clean = (/** @type {string} */ text) => (/^[=+\-@]/.test(text) ? `'${text}` : text).replace(/\s+/g, " ");
    const lines = rows.map(({ cells }) => cells.map(({ text, under, number }) => (number ? text : clean([text, under].filter(Boolean).join(" ")))));
    void copyText([columns.map(({ name }) => t(`tables.${name}`)), ...lines].map((line) => line.join("\t")).join("\n"));
  }

  /**
   * @param {string} ending
   * @param {HTMLElement} anchor
   */
  async #save(ending, anchor) {
    try {
      const table = api.open(`/api/records.${ending}?${queryOf(this.group, this.period, this.#order())}`);
      const answer = await busy(/** @type {HTMLButtonElement} */ (anchor), table);
      saveFile(new File([await answer.blob()], `${this.group.name}.${ending}`, { type: answer.headers.get("Content-Type") ?? "" }));
    } catch (error) {
      fail(error);
    }
  }

  // ------------------------------------------------------------------------------------------------------------------------ the table

  /** @returns {Row[]} */
  #rows() {
    const now = new Date();
    const rows = (this.#found?.records ?? []).map((record) => ({ record, cells: this.group.columns.map(({ read }) => read(record, now)) }));
    const { column, down } = this.#sorted;
    if (column < 0) return rows;
    const compared = (/** @type {Cell} */ one, /** @type {Cell} */ other) =>
      typeof one.by === "number" ? one.by - Number(other.by) : one.by.localeCompare(String(other.by), undefined, { numeric: true });
    // What has no value is last in both directions.
    const isEmpty = (/** @type {Row} */ { cells }) => Number(!cells[column].text);
    return rows.sort((one, other) => isEmpty(one) - isEmpty(other) || (down ? -1 : 1) * compared(one.cells[column], other.cells[column]));
  }

  #sortByTime() {
    this.#sorted = { column: this.group.columns.findIndex(({ isTime }) => isTime), down: true };
  }

  #order() {
    return orderOf(this.group.columns[this.#sorted.column], this.#sorted.down);
  }

  /** @param {number} column */
  async #sortBy(column) {
    const { by } = this.#rows()[0]?.cells[column] ?? {};
    const isSame = column === this.#sorted.column;
    const isHighestFirst = typeof by === "number" || this.group.columns[column]?.isTime === true;
    this.#sorted = { column, down: isSame ? !this.#sorted.down : isHighestFirst };
    // Others than those that are listed may come first.
    if (this.#found && this.#found.total > this.#found.records.length && this.#found.sort !== this.#order()) await this.#refresh();
    else this.#draw();
    /** @type {HTMLElement | null} */ (this.#body.querySelector(`[data-column="${column}"]`))?.focus();
  }

  #draw() {
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    if (this.#found) fill(this.#body, this.#content(this.#found));
    if (this.#editing?.panel.contains(focused)) focused?.focus(); // the panel has moved into the new table
  }

  // ------------------------------------------------------------------------------------------------------------------- what is corrected

  /** @param {ListedRecord} record */
  async #edit(record) {
    const close = () => {
      this.#editing = null;
      this.#draw();
      this.#pencilOf(record)?.focus();
    };
    if (this.#editing?.record.id === record.id) return close();
    try {
      /** @type {PhotoDetail} */
      const photo = await api.get(`/api/photos/${record.photo_id}`);
      const panel = h("div.records-panel", { on: { keydown: (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close() } },
        h("div.details-records"));
      const show = (/** @type {PhotoDetail} */ detail, focus = ".own-pencil") => {
        recordCards(panel, detail, { heading: "h2", find: () => this.#open(record), saved: (saved, next) => {
          show(saved, next);
          tell("changed", saved.id);
        } });
        /** @type {HTMLElement | null} */ (panel.querySelector(focus))?.focus();
      };
      this.#editing = { record, panel };
      this.#draw();
      show(photo);
    } catch (error) {
      fail(error);
    }
  }

  /** @param {ListedRecord} record */
  #pencilOf(record) {
    return /** @type {HTMLElement | null} */ (this.#body.querySelector(`[data-record="${record.id}"] .records-edit`));
  }

  /**
   * @param {ListedRecord} record
   * @param {string} name
   */
  #pencil(record, name) {
    const isOpen = this.#editing?.record.id === record.id;
    return button("", { glyph: "edit", kind: "quiet records-edit", label: t("own.edit", { name }), "aria-expanded": String(isOpen), click: () =>
      void this.#edit(record) });
  }

  /** @param {ListedRecord} record */
  #panelOf(record) {
    return this.#editing?.record.id === record.id && this.#editing.panel;
  }

  /** @param {Fetched} found */
  #content(found) {
    const { total, sums, records } = found;
    if (!total) {
      const all = this.period.time && button(t("tables.showAll"), { click: () => this.#choose({ time: "" }) });
      const text = t(all ? "tables.noneThen" : "tables.noneText");
      return emptyState({ glyph: this.group.glyph, title: t("tables.none"), text, action: all });
    }
    const rows = this.#rows();
    const drawn = rows.slice(0, this.#shown);
    const more = rows.length > drawn.length && button(t("tables.more"), { kind: "records-more", click: () => {
      this.#shown += PAGE;
      this.#draw();
    } });
    return [
      h("ul.list.records-sums", { "aria-label": t("tables.sums") }, sums.map(({ currency, value, count }) =>
        h("li", h("strong", formatAmount({ value, currency })), h("span.muted", t(count === 1 ? "tables.ofOne" : "tables.of", { count: formatNumber(count) })))),
        !sums.length && h("li", h("span.muted", t(total === 1 ? "tables.ofOne" : "tables.of", { count: formatNumber(total) })))),
      NARROW.matches ? h("ul.list.records-cards", drawn.map((row) => this.#card(row))) : this.#table(drawn),
      more,
      total > records.length && h("p.muted", t(found.sort === "latest" ? "tables.first" : "tables.firstSorted", { count: formatNumber(records.length) })),
    ];
  }

  /** @param {Row[]} rows */
  #table(rows) {
    const { columns } = this.group;
    const heads = columns.map(({ name, number }, at) => {
      const isSorted = at === this.#sorted.column;
      const direction = this.#sorted.down ? "descending" : "ascending";
      return h("th", { scope: "col", class: number ? "number" : "", "aria-sort": isSorted ? direction : undefined },
        h("button.records-sort", { type: "button", dataset: { column: at }, on: { click: () => this.#sortBy(at) } },
          h("span", t(`tables.${name}`)), icon("down")));
    });
    const keys = (/** @type {KeyboardEvent} */ event) => {
      const delta = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const links = /** @type {HTMLElement[]} */ ([...this.#body.querySelectorAll(".records-open")]);
      const at = links.indexOf(/** @type {HTMLElement} */ (event.target));
      if (!delta || at < 0) return;
      event.preventDefault();
      links[at + delta]?.focus();
    };
    return h("div.card.records-frame", h("table.records", { "aria-label": groupName(this.group) },
      h("thead", h("tr", h("th.records-thumb", h("span.visually-hidden", t("tables.picture"))), heads,
        h("th.records-pencil", h("span.visually-hidden", t("tables.edit"))))),
      h("tbody", { on: { keydown: keys } }, rows.flatMap((row) => {
        const panel = this.#panelOf(row.record);
        return [this.#row(row), panel && h("tr.records-editing", h("td", { colspan: columns.length + 2 }, panel))];
      }))));
  }

  /** @param {Row} row */
  #row({ record, cells }) {
    const node = h("tr", { dataset: { record: record.id } });
    veilable(node, photoOf(record), (veiled) => {
      const thumb = h("td.records-thumb", thumbnail(record, veiled));
      if (veiled) return fill(node, thumb, h("td", { colspan: cells.length + 1 }, this.#link(record, t("veil.title")), h("span.muted.records-under", reasonOf(photoOf(record)))));
      const name = cells[this.group.columns.findIndex(({ main }) => main)].text || t("tables.unnamed");
      return fill(node, thumb, this.group.columns.map(({ main, number }, at) => {
        const { text, under } = cells[at];
        const shown = main ? this.#link(record, text || t("tables.unnamed")) : h("span.records-text", { title: text.length > 30 ? text : undefined }, text);
        return h("td", { class: number ? "number" : "" }, number && record.doubtful && doubt(), shown, under && h("span.muted.records-under", under));
      }), h("td.records-pencil", this.#pencil(record, name)));
    });
    return node;
  }

  /** @param {Row} row */
  #card({ record, cells }) {
    const node = h("li.records-card", { dataset: { record: record.id } });
    veilable(node, photoOf(record), (veiled) => {
      if (veiled) return fill(node, thumbnail(record, true), h("div.grow", this.#link(record, t("veil.title")), h("p.muted.records-facts", reasonOf(photoOf(record)))));
      const { columns } = this.group;
      const main = columns.findIndex((column) => column.main);
      const value = columns.findIndex(({ number }) => number);
      const facts = cells.filter((_, at) => at !== main && at !== value).flatMap(({ text, under }) => [[text, under].filter(Boolean).join(", ")]).filter(Boolean);
      const name = cells[main].text || t("tables.unnamed");
      return fill(node, thumbnail(record, false),
        h("div.grow", h("p.records-card-head", this.#link(record, name), value >= 0 && h("strong.number", cells[value].text)),
          h("p.muted.records-facts", facts.join(" · ")), record.doubtful && doubt()), this.#pencil(record, name), this.#panelOf(record));
    });
    return node;
  }

  /**
   * @param {ListedRecord} record
   * @param {string} text
   */
  #link(record, text) {
    const press = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in a tab of its own
      event.preventDefault();
      this.#open(record);
    };
    return h("a.records-open", { href: `#/photo/${record.photo_id}`, text, on: { click: press } });
  }

  /** @param {ListedRecord} record */
  #open(record) {
    const rows = this.#rows();
    const ids = [...new Set(rows.map((row) => row.record.photo_id))];
    const recordOf = (/** @type {number} */ photo) =>
      photo === record.photo_id ? record : rows.find((row) => row.record.photo_id === photo)?.record;
    const linesOf = (/** @type {number} */ photo) =>
      (recordOf(photo)?.fields ?? []).filter(({ value }) => !Array.isArray(value)).flatMap(({ lines }) => lines);
    openPhoto(record.photo_id, {
      closed: (last) => {
        const of = recordOf(last);
        /** @type {HTMLElement | null} */ (of ? this.#body.querySelector(`[data-record="${of.id}"] .records-open`) : null)?.focus();
      },
      found: (photo) => ({ matched: [], boxes: [], lines: [...new Set(linesOf(photo))] }),
      sequence: {
        neighbour: async (photo, delta) => ids[ids.indexOf(photo) + delta] ?? null,
        place: async (photo) => ({ at: ids.indexOf(photo) + 1, total: ids.length }),
        summary: () => undefined,
      },
    });
  }
}

/**
 * @param {ListedRecord} record
 * @param {boolean} veiled
 */
const thumbnail = (record, veiled) =>
  veiled ? h("span.records-picture", icon("hidden")) : picture(`/api/photos/${record.photo_id}/thumbnail`, "", { class: "records-picture" });

const doubt = () => h("span.badge.warn.records-doubt", { title: t("tables.doubtText") }, icon("warn"), h("span", t("tables.doubt")));
