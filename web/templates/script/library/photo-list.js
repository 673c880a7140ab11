// The screenshots of one list, in the order in which they were taken. Pages are fetched when their place is needed; places that were
// never needed are holes. Photos that wait for their deletion are left out: this list does not count them, the server does.

import { api, wasAborted } from "../base/api.js";
import { hiddenPhotos } from "../base/deletion.js";
import { parseTime } from "../base/format.js";

export const LIST_PAGE = 60; // photos in one request
const PAGES_AHEAD = 3; // requests at once where all photos are wanted

/** @typedef {{ month: string, start: number, count: number }} Section a month, "2026-11", or "" where the months are not known */

/** @type {WeakMap<PhotoItem, string>} */
const days = new WeakMap();

/**
 * The local day on which a photo was taken, "2026-11-17"; in the trash, on which it was thrown away.
 *
 * @param {PhotoItem} photo
 */
export function dayOf(photo) {
  let day = days.get(photo);
  if (!day) {
    const taken = parseTime(photo.deleted_at ?? photo.original_timestamp);
    day = `${taken.getFullYear()}-${String(taken.getMonth() + 1).padStart(2, "0")}-${String(taken.getDate()).padStart(2, "0")}`;
    days.set(photo, day);
  }
  return day;
}

const monthOf = (/** @type {PhotoItem} */ photo) => dayOf(photo).slice(0, 7);

export class PhotoList {
  /** @type {PhotoItem[]} */
  #known = []; // in the server's order; sparse
  /** @type {number | null} */
  #total = null;
  /** @type {MonthCount[]} */
  #months = [];
  /** @type {number[]} */
  #hidden = []; // places of photos that wait for their deletion
  /** @type {Map<number, { request: AbortController, kept: boolean, arrives: Promise<void> }>} */
  #loading = new Map(); // by page number
  #stopped = false;

  /**
   * @param {import("../base/api.js").Query} filters of the API's list
   * @param {{ changed: () => unknown, failed: (error: unknown) => unknown }} told
   * @param {() => Promise<{ total: number, items: PhotoItem[] }>} [source] fetches all of it, where it is another list
   */
  constructor(filters, { changed, failed }, source) {
    this.filters = filters;
    this.source = source;
    this.changed = changed;
    this.failed = failed;
  }

  /** How many there are; null before the first answer. */
  get count() {
    return this.#total === null ? null : Math.max(0, this.#total - this.#hidden.length);
  }

  /**
   * The photo at a place, if it is loaded.
   *
   * @param {number} place
   * @returns {PhotoItem | undefined}
   */
  at(place) {
    return this.#known[this.#hidden.length ? this.#serverPlace(place) : place];
  }

  /** @param {number} id */
  placeOf(id) {
    const at = this.#known.findIndex((photo) => photo?.id === id);
    return at < 0 ? -1 : at - this.#hidden.filter((place) => place < at).length;
  }

  /**
   * The months, the newest first. The server counts in UTC; where the photos at a month's edge are loaded, the edge is moved to the
   * local month's.
   *
   * @returns {Section[]}
   */
  sections() {
    const count = this.count ?? 0;
    /** @type {Section[]} */
    const found = [];
    let start = 0;
    for (const { month, photos } of this.#months) {
      found.push({ month, start, count: 0 });
      start += photos;
    }
    if (!found.length) return count ? [{ month: "", start: 0, count }] : [];
    const shown = (/** @type {number} */ place) => place - this.#hidden.filter((hidden) => hidden < place).length;
    for (const section of found) section.start = Math.min(count, shown(section.start));
    const first = this.at(0);
    if (first && monthOf(first) > found[0].month) found.unshift({ month: monthOf(first), start: 0, count: 0 });
    for (let index = 1; index < found.length; index += 1) this.#moveEdge(found[index], found[index - 1].start);
    const last = this.at(count - 1);
    if (last && monthOf(last) < found[found.length - 1].month) {
      const section = { month: monthOf(last), start: count, count: 0 };
      this.#moveEdge(section, 0);
      found.push(section);
    }
    found.forEach((section, index) => (section.count = (found[index + 1]?.start ?? count) - section.start));
    return found.filter((section) => section.count > 0);
  }

  /**
   * @param {Section} section
   * @param {number} least
   */
  #moveEdge(section, least) {
    for (let photo = this.at(section.start); photo && monthOf(photo) > section.month; photo = this.at(section.start)) section.start += 1;
    for (
      let photo = this.at(section.start - 1);
      photo && section.start > least && monthOf(photo) <= section.month;
      photo = this.at(section.start - 1)
    ) {
      section.start -= 1;
    }
  }

  /** @param {number} place */
  #serverPlace(place) {
    return this.#hidden.reduce((at, skipped) => (skipped <= at ? at + 1 : at), place);
  }

  /** Photos were hidden or shown again. */
  hide() {
    this.#hidden = hiddenPhotos.size ? this.#known.flatMap((photo, place) => (hiddenPhotos.has(photo.id) ? [place] : [])) : [];
    this.changed();
  }

  /** @param {number} id */
  remove(id) {
    const place = this.#known.findIndex((photo) => photo?.id === id);
    if (place < 0 || this.#total === null) return;
    this.#known.splice(place, 1);
    this.#total -= 1;
    let end = 0;
    for (const month of this.#months) {
      end += month.photos;
      if (place < end) {
        month.photos -= 1;
        break;
      }
    }
    this.hide();
  }

  /**
   * Fetch what is missing between two places. Requests for other places are aborted: they were scrolled past.
   *
   * @param {number} first
   * @param {number} end
   */
  want(first, end) {
    const pages = new Set();
    for (let place = first; place < end; place += 1) {
      const at = this.#serverPlace(place);
      if (!this.#known[at] && at < (this.#total ?? 0)) pages.add(pageOf(at));
    }
    for (const [number, { request, kept }] of this.#loading) if (!kept && !pages.has(number)) request.abort();
    for (const number of pages) this.#fetch(number).catch(() => {});
  }

  /**
   * Fetch the pages between two places again, while the old ones stay on the screen. Pages elsewhere are dropped.
   *
   * @param {number} first
   * @param {number} end
   */
  async refresh(first, end) {
    /** @type {number[]} */
    const numbers = [];
    for (let number = pageOf(first); number <= Math.max(pageOf(first), pageOf(end - 1)); number += 1) numbers.push(number);
    for (const { request, kept } of this.#loading.values()) if (!kept) request.abort();
    try {
      const [counted, ...pages] = await Promise.all([this.#fetchMonths(), ...numbers.map((number) => this.#page(number))]);
      if (this.#stopped) return;
      const old = this.#known;
      this.#known = [];
      pages.forEach((page, index) => this.#keep(numbers[index], page, old));
      this.#months = counted;
      this.hide();
    } catch (error) {
      if (!wasAborted(error) && !this.#stopped) this.failed(error);
    }
  }

  /** @returns {Promise<MonthCount[]>} */
  async #fetchMonths() {
    const { since, until, ...filters } = this.filters;
    if (since || until || filters.trash || this.source) return []; // the tallies know whole months only, and not the trash
    return (await api.get("/api/photos/timeline", filters)).months;
  }

  /**
   * @param {number} number
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ total: number, items: PhotoItem[] }>}
   */
  #page(number, signal) {
    if (this.source) return this.source();
    return api.get("/api/photos", { ...this.filters, order: "taken", page: number, page_size: LIST_PAGE }, { signal });
  }

  /**
   * Keep the old object where the data has not changed, so that its tile is not redrawn.
   *
   * @param {number} number
   * @param {{ total: number, items: PhotoItem[] }} page
   * @param {PhotoItem[]} old
   */
  #keep(number, { total, items }, old) {
    const first = (number - 1) * LIST_PAGE;
    items.forEach((photo, at) => {
      const before = old[first + at];
      this.#known[first + at] = before && JSON.stringify(before) === JSON.stringify(photo) ? before : photo;
    });
    this.#total = total;
    this.#known.length = Math.min(this.#known.length, total);
  }

  /**
   * Fetch a page, unless it is under way. `kept`: not aborted when it is scrolled past.
   *
   * @param {number} number
   */
  #fetch(number, kept = false) {
    const under = this.#loading.get(number);
    if (under && !under.request.signal.aborted) {
      under.kept ||= kept;
      return under.arrives;
    }
    const request = new AbortController();
    const arrives = (async () => {
      try {
        const page = await this.#page(number, request.signal);
        if (request.signal.aborted || this.#stopped) return;
        if (this.#total !== null && page.total !== this.#total) this.#months = await this.#fetchMonths();
        this.#keep(number, page, this.#known);
        this.hide();
      } catch (error) {
        if (!wasAborted(error) && !this.#stopped) this.failed(error);
        throw error;
      } finally {
        if (this.#loading.get(number)?.request === request) this.#loading.delete(number);
      }
    })();
    this.#loading.set(number, { request, kept, arrives });
    return arrives;
  }

  /**
   * The place of a photo, loaded or not; -1 where it is not in this list.
   *
   * @param {number} id
   * @returns {Promise<number>}
   */
  async locate(id) {
    const known = this.placeOf(id);
    if (known >= 0 || this.filters.trash || this.source) return known;
    /** @type {PhotoDetail} */
    const { original_timestamp: taken, stack } = await api.get(`/api/photos/${id}`);
    const shown = stack && this.filters.stacks ? stack.photo_ids[0] : id; // the one that is in the list for its stack
    if (shown !== id) return this.locate(shown);
    const since = new Date(parseTime(taken).getTime() + 1).toISOString(); // those taken later come before it
    const { until } = this.filters;
    const before = await api.get("/api/photos", { ...this.filters, since, until, order: "taken", page_size: 1 });
    // Photos of the same moment follow each other: the page of its place, or the one after it.
    for (const page of [pageOf(before.total), pageOf(before.total) + 1]) {
      await this.#fetch(page, true);
      const place = this.placeOf(id);
      if (place >= 0) return place;
    }
    return -1;
  }

  /**
   * The id at a place, fetched if need be; null outside of the list.
   *
   * @param {number} place
   */
  async idAt(place) {
    if (place < 0 || place >= (this.count ?? 0)) return null;
    if (!this.at(place)) await this.#fetch(pageOf(this.#serverPlace(place)), true);
    return this.at(place)?.id ?? null;
  }

  /**
   * All photos between two places, fetched where need be. `told` is called with how many are there.
   *
   * @param {number} first
   * @param {number} end
   * @param {(count: number) => unknown} told
   */
  async between(first, end, told) {
    /** @type {PhotoItem[]} */
    const found = [];
    const pages = new Map(); // so that the next pages are under way meanwhile
    for (let place = first; place < Math.min(end, this.count ?? 0); place += 1) {
      for (let ahead = 0; ahead < PAGES_AHEAD; ahead += 1) {
        const number = pageOf(this.#serverPlace(place + ahead * LIST_PAGE));
        if (
          pages.has(number) ||
          this.at(place + ahead * LIST_PAGE) ||
          place + ahead * LIST_PAGE >= end ||
          number > pageOf((this.#total ?? 1) - 1)
        ) {
          continue;
        }
        const arrives = this.#fetch(number, true);
        arrives.catch(() => {}); // told where it is awaited
        pages.set(number, arrives);
      }
      if (!this.at(place)) await pages.get(pageOf(this.#serverPlace(place)));
      if (!this.at(place)) await this.#fetch(pageOf(this.#serverPlace(place)), true); // dropped meanwhile, by `refresh`
      const photo = this.at(place);
      if (photo) found.push(photo);
      if (found.length % LIST_PAGE === 0) told(found.length);
    }
    return found;
  }

  /**
   * Show other values of a photo, until they are fetched again.
   *
   * @param {number} id
   * @param {Partial<PhotoItem>} fields
   */
  amend(id, fields) {
    const place = this.#known.findIndex((photo) => photo?.id === id);
    if (place < 0) return;
    this.#known[place] = { ...this.#known[place], ...fields };
    this.changed();
  }

  stop() {
    this.#stopped = true;
    for (const { request } of this.#loading.values()) request.abort();
  }
}

const pageOf = (/** @type {number} */ place) => Math.floor(Math.max(0, place) / LIST_PAGE) + 1;
