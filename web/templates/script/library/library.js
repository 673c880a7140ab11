// The library: search first, a row of chips, a strip with what is new, and then the pictures: all of them on a timeline, or the results of
// a search. The first picture begins within 200 px.

import { api, ApiError, wasAborted } from "../base/api.js";
import { hiddenPhotos } from "../base/deletion.js";
import { UNFINISHED } from "../viewer/details.js";
import { fail } from "../base/dialogs.js";
import { add, button, fill, h, listen } from "../base/dom.js";
import { asQuery, browseChips, drawFilters, fetchOffers, filterQuery, FILTERS, isNarrowed } from "./filters.js";
import { formatNumber } from "../base/format.js";
import { fetchNews, newsStrip } from "./news.js";
import { openMenu } from "../base/menu.js";
import { laterContent, withLater } from "../base/parts.js";
import { PhotoList } from "./photo-list.js";
import { byDate, MOST_FOUND, nothingFound, resultHead, resultList } from "./results.js";
import { scrubber } from "./scrubber.js";
import { searchField } from "./search-field.js";
import { debounced, emptyState, failedState, go, poll, replaceAddress, skeleton } from "../base/shell.js";
import { t } from "../base/texts.js";
import { chooseCaptions, hasCaptions, photoCard, tileTools } from "./tile.js";
import { timeline } from "./timeline.js";
import { NARROW } from "../viewer/frame.js";
import { acceptFiles, photoEvents, uploadButton } from "../base/upload.js";
import { openPhoto } from "../viewer/viewer.js";

/**
 * What the body of the library shows: the timeline, or the results of a search.
 *
 * @typedef {object} Shown
 * @property {Sequence} sequence
 * @property {(id: number) => { matched: string[], boxes: Box[] } | undefined} [found]
 * @property {(id: number) => unknown} focus
 * @property {() => unknown} refresh
 * @property {() => boolean} unfinished whether something on the screen waits for its analysis
 * @property {() => unknown} [select] begin to select
 * @property {() => unknown} [measure] draw anew, with or without captions
 * @property {() => unknown} stop
 */

/** @type {import("./selection.js").Choice[]} */
const LIBRARY_ACTIONS = ["keep", "tag", "download", "reprocess", "trash"];

/** @type {LibraryView | null} */
let openLibrary = null; // the view on the screen

/** @type {import("../base/shell.js").View} */
export const library = {
  title: "library.title",
  icon: "image",
  show(container, { query }) {
    const view = new LibraryView(container, query);
    openLibrary = view;
    return () => {
      if (openLibrary === view) openLibrary = null;
      view.close();
    };
  },
};

/** @type {import("../base/shell.js").Cover} */
export const photoCover = {
  beneath: "library",
  show({ id }) {
    if (!/^\d{1,15}$/.test(id ?? "")) return;
    if (openLibrary) openLibrary.open(Number(id));
    else openPhoto(Number(id), {});
  },
};

class LibraryView {
  #chips = h("div.chips.library-filters", { role: "group", "aria-label": t("filter.label") });
  #news = newsStrip();
  #browse = h("div.library-browse");
  #keeping = h("div.keeping-place");
  #searches = h("div.chips.saved-searches", { hidden: true });
  /** @type {ReturnType<import("./searches.js").savedSearches> | null} */
  #saved = null;
  #expiring = h("div.keeping-place");
  #held = h("div.held-place");
  #coming = h("div.keeping-place");
  #shelves = h("div.library-shelves");
  /** @type {(stats: Statistics) => void} */
  #lookAhead = () => {}; // at what is coming up, at the tables, and at what is held back
  // On a phone, what can be opened comes before what can be chosen.
  #row = h("div.library-row", NARROW.matches ? [this.#shelves, this.#chips, this.#searches] : [this.#chips, this.#searches, this.#shelves], this.#browse);
  #strip = h("div.library-strip", this.#keeping, this.#expiring, this.#news.node, this.#coming);
  #more = button("", {
    glyph: "more",
    kind: "quiet library-more",
    label: t("library.more"),
    "aria-haspopup": "menu",
    click: () => this.#openMore(),
  });
  #count = h("p.muted.library-count", { role: "status" });
  #body = h("div.library-body");
  /** @type {import("./filters.js").Offer[]} */
  #offers = [];
  /** @type {Shown | null} */
  #shown = null;
  /** @type {Promise<unknown>} */
  #ready = Promise.resolve();
  #attempt = 0;
  /** @type {Ending[]} */
  #leave = [];
  #stats = "";
  /** @type {Statistics | null} */
  #seen = null;

  /**
   * @param {HTMLElement} container
   * @param {URLSearchParams} query
   */
  constructor(container, query) {
    this.container = container;
    /** @type {import("./filters.js").Chosen} */
    this.chosen = Object.fromEntries(["q", ...FILTERS, "order"].map((name) => [name, query.get(name) ?? ""]));
    this.field = searchField(this.chosen.q, (q) => this.#choose({ q, order: "" }));
    const upload = uploadButton();
    upload.ariaLabel = upload.textContent; // on a phone only its icon is shown
    this.head = h(
      "header.library-head",
      h("h1.visually-hidden", t("library.title")),
      h("search.library-search", this.field.node, upload, this.#more),
      h("div.library-bar", this.#row, this.#held, this.#count),
    );
    add(container, this.head, this.#strip, this.#body);
    fill(this.#body, skeleton(24, "tile"));
    this.#ready = this.#show();
    withLater(({ keepingQuestion, expiringNotice, heldBackNotice, comingUp, recordShelves, savedSearches }) => {
      keepingQuestion(this.#keeping); // without it, the settings have the same choice
      expiringNotice(this.#expiring);
      const looks = [comingUp(this.#coming), recordShelves(this.#shelves)];
      this.#lookAhead = (stats) => {
        heldBackNotice(this.#held, stats);
        for (const look of looks) look();
      };
      if (this.#seen) this.#lookAhead(this.#seen);
      this.#saved = savedSearches(this.#searches, (q) => this.#openSearch(q));
      this.#drawChips();
    });
    const added = debounced(() => this.#shown?.refresh(), 400);
    let quiet = -1;
    // Poll each time while something is analysed, otherwise every sixth time, for uploads of other devices.
    const look = async () => {
      const busy = this.#shown?.unfinished();
      quiet = busy ? 0 : (quiet + 1) % 6;
      await this.#lookAround(quiet === 0);
      if (quiet === 0 && this.#shown && this.container.isConnected) await this.#shown.refresh();
    };
    this.#leave.push(
      this.field.stop,
      poll(look, 2.5),
      acceptFiles(container),
      added.cancel,
      listen(photoEvents, { added, changed: added }),
      () => this.#shown?.stop(),
    );
  }

  close() {
    this.#attempt += 1;
    for (const end of this.#leave) end();
  }

  /**
   * Open a picture, with the pictures of this list beside it.
   *
   * @param {number} id
   */
  open(id) {
    // A link to a picture opens it before the list is there.
    const shown = async () => (await this.#ready, this.#shown);
    openPhoto(id, {
      sequence: {
        neighbour: async (from, delta) => (await shown())?.sequence.neighbour(from, delta) ?? null,
        place: async (of) => (await shown())?.sequence.place(of) ?? null,
        summary: (of) => this.#shown?.sequence.summary(of),
      },
      found: (of) => this.#shown?.found?.(of),
      closed: async (last) => {
        if (this.container.isConnected) (await shown())?.focus(last);
      },
    });
  }

  #openMore() {
    const select = this.#shown?.select;
    openMenu(this.container, this.#more, {
      label: t("library.more"),
      back: this.#more,
      items: [
        ...(select ? [{ label: t("library.select"), glyph: /** @type {const} */ ("check"), run: select }] : []),
        { label: t("agenda.title"), glyph: "calendar", run: () => go("#/agenda") },
        { label: t("threads.title"), glyph: "folder", run: () => go("#/threads") },
        { label: t(hasCaptions() ? "library.captionsOff" : "library.captions"), glyph: "text", run: () => this.#turnCaptions() },
        { label: t("duplicates.title"), glyph: "stack", run: () => go("#/duplicates") },
        { label: t("library.kept"), glyph: "star", run: () => this.#choose({ kept: "true" }) },
        { label: t("library.trash"), glyph: "trash", run: () => go("#/trash") },
      ],
    });
  }

  #turnCaptions() {
    chooseCaptions(!hasCaptions());
    this.#shown?.measure?.();
  }

  /** @param {import("./filters.js").Chosen} changes */
  #choose(changes) {
    const isNew = "q" in changes;
    Object.assign(this.chosen, changes);
    const kept = new URLSearchParams(Object.entries(this.chosen).filter(([, value]) => value));
    replaceAddress(`#/library${kept.size ? `?${kept}` : ""}`);
    const focused = this.#chips.contains(document.activeElement);
    this.#drawChips();
    if (focused) /** @type {HTMLElement | null} */ (this.#chips.querySelector("button, select"))?.focus();
    if (!isNew) window.scrollTo(0, 0);
    this.#ready = this.#show();
  }

  /** @param {string} q */
  #openSearch(q) {
    Object.assign(this.chosen, Object.fromEntries(FILTERS.map((name) => [name, ""])));
    this.field.show(q);
    this.#choose({ q, order: "" });
  }

  #drawChips() {
    const offers = this.chosen.q ? this.#offers.filter(({ name }) => name !== "status") : this.#offers;
    drawFilters(this.#chips, this.chosen, offers, (changes) => this.#choose(changes));
    this.#chips.hidden = !this.#chips.childElementCount;
    const isPlain = !this.chosen.q && !isNarrowed(this.chosen);
    this.#saved?.draw(asQuery(this.chosen));
    this.container.classList.toggle("narrowed", !isPlain);
  }

  /** What is new, and what can be filtered by. */
  async #lookAround(everything = true) {
    if (!everything && !this.#stats) return;
    const news = await fetchNews();
    this.#news.draw(news);
    this.#seen = news;
    const stats = JSON.stringify(news);
    if (stats === this.#stats) return;
    this.#stats = stats;
    this.#saved?.refresh();
    this.#lookAhead(news);
    this.#offers = await fetchOffers(news);
    if (this.#chips.contains(document.activeElement) || this.#browse.contains(document.activeElement)) {
      this.#stats = " "; // drawn at the next look
      return;
    }
    this.#drawChips();
    fill(
      this.#browse,
      browseChips(this.#offers, (changes) => this.#choose(changes)),
    );
  }

  async #show() {
    const attempt = (this.#attempt += 1);
    const isCurrent = () => attempt === this.#attempt;
    this.#body.setAttribute("aria-busy", "true");
    this.#body.classList.add("stale"); // the old pictures stay until the new ones arrive
    this.#drawChips();
    try {
      const shown = this.chosen.q ? await this.#search(isCurrent) : await this.#timeline(isCurrent);
      if (shown && isCurrent()) this.#shown = shown;
    } catch (error) {
      if (isCurrent() && !wasAborted(error)) {
        for (const earlier of this.#body.querySelectorAll(":scope > .unreachable")) earlier.remove();
        const failed = failedState(error, () => (this.#ready = this.#show()));
        // While the server is away, what was shown before stays below.
        if (this.#shown && error instanceof ApiError && error.status === 0) this.#body.prepend(failed);
        else fill(this.#body, failed);
      }
    }
    if (!isCurrent()) return;
    this.#body.classList.remove("stale");
    this.#body.removeAttribute("aria-busy");
  }

  /** @param {() => boolean} isCurrent */
  async #timeline(isCurrent) {
    const covered = () => this.head.getBoundingClientRect().bottom;
    /** @type {unknown} */
    let problem = null;
    const drawn = () => {
      if (!isCurrent() || list.count === null) return;
      if (list.count && !grid.node.isConnected) fill(this.#body, grid.node, bar.node);
      this.#counted(list.count);
      grid.changed();
      bar.update();
    };
    const failed = (/** @type {unknown} */ error) => {
      if (list.count === null) problem = error;
      else fail(error);
    };
    /** @type {PhotoList} */
    const list = new PhotoList({ ...filterQuery(this.chosen), stacks: "true" }, { changed: drawn, failed });
    const grid = timeline(list, (photo, props) => photoCard(photo, { ...props, open: (id) => this.open(id) }), covered, tileTools);
    /** @type {import("./selection.js").TileSelection | null} */
    let selection = null;
    withLater(({ selectable }) => {
      if (!isCurrent()) return;
      selection = selectable({
        node: grid.node,
        count: () => list.count ?? 0,
        placeOf: (id) => list.placeOf(id),
        at: (place) => list.at(place),
        between: (from, to, told) => list.between(from, to, told),
        focusPlace: grid.focusPlace,
        amend: (id, fields) => list.amend(id, fields),
        actions: LIBRARY_ACTIONS,
      });
    });
    const bar = scrubber(grid.months, grid.node, covered);
    const hide = () => list.hide();
    const again = () => list.refresh(...grid.inView());
    const unlisten = listen(photoEvents, {
      hidden: hide,
      restored: again,
      deleted: (event) => (list.remove(event.detail), again()),
      many: again,
    });
    const stop = () => {
      list.stop();
      grid.stop();
      bar.stop();
      selection?.stop();
      unlisten();
    };
    this.#replaceShown(stop);
    await list.refresh(0, 1);
    if (problem) throw problem;
    return {
      sequence: sequenceOf(list),
      focus: grid.focus,
      measure: grid.measure,
      stop,
      refresh: again,
      select: () => selection?.begin(),
      unfinished: () => grid.shown().some((photo) => UNFINISHED.includes(photo.analysis_status)),
    };
  }

  /** @param {number} count */
  #counted(count) {
    const isPlain = !isNarrowed(this.chosen);
    this.#count.textContent = count || !isPlain ? t(count === 1 ? "library.one" : "library.count", { count: formatNumber(count) }) : "";
    this.container.classList.toggle("bare", !count && isPlain);
    if (this.#keeping.parentElement !== this.#strip && count) this.#strip.prepend(this.#keeping);
    if (count) return;
    if (!isPlain) {
      return fill(
        this.#body,
        emptyState({ glyph: "search", title: t("library.none"), text: t("library.noneText"), action: this.#clear() }),
      );
    }
    if (!this.#body.querySelector(".later")) {
      fill(
        this.#body,
        laterContent(({ firstSteps }) => firstSteps(this.#keeping)),
      );
    }
  }

  #clear() {
    return button(t("filter.clear"), { click: () => this.#choose(Object.fromEntries(FILTERS.map((name) => [name, ""]))) });
  }

  /** @param {() => boolean} isCurrent */
  async #search(isCurrent) {
    const { q } = this.chosen;
    const request = new AbortController();
    this.#replaceShown(() => request.abort());
    const fetched = async () => {
      /** @type {PhotoHits} */
      const answer = await api.get(
        "/api/search",
        { ...filterQuery({ ...this.chosen, status: "" }), q, limit: MOST_FOUND },
        { signal: request.signal },
      );
      return { ...answer, items: answer.items.filter((hit) => !hiddenPhotos.has(hit.id)) };
    };
    let found = await fetched();
    if (!isCurrent()) return null;
    /** @type {PhotoHit[]} */
    let hits = [];
    const near = h("section.related");
    if (!found.items.length && !isNarrowed(this.chosen)) {
      const known = found.items.map((hit) => hit.id);
      withLater(({ related }) => related(near, { q, known, open: (id) => this.open(id), signal: request.signal }));
    }
    const answers = h("ul.list.answers");
    withLater(({ searchAnswers }) => searchAnswers(answers, found.items, { q, open: (id) => this.open(id), signal: request.signal }));
    const draw = () => {
      hits = this.chosen.order === "taken" ? byDate(found.items) : found.items;
      const order = (/** @type {string} */ value) => {
        this.#choose({ order: value });
      };
      const head = resultHead(found, { order: this.chosen.order, choose: order });
      const narrowed = isNarrowed(this.chosen);
      this.#count.textContent = "";
      this.container.classList.remove("bare");
      if (hits.length) fill(this.#body, head, answers, resultList(hits, { q, open: (id) => this.open(id) }), near);
      else {
        const search = (/** @type {string} */ word) => this.field.write(word);
        fill(this.#body, nothingFound(found, { q, narrowed, action: narrowed && this.#clear(), search }), near);
      }
    };
    draw();
    const cardAt = (/** @type {number} */ place) => /** @type {HTMLElement | undefined} */ (this.#body.querySelectorAll(".result")[place]);
    /** @type {import("./selection.js").TileSelection | null} */
    let selection = null;
    withLater(({ selectable }) => {
      if (!isCurrent()) return;
      selection = selectable({
        node: this.#body,
        count: () => hits.length,
        placeOf: (id) => hits.findIndex((hit) => hit.id === id),
        at: (place) => hits[place],
        between: async (from, to) => hits.slice(from, to),
        focusPlace: (place) => cardAt(place)?.focus(),
        actions: LIBRARY_ACTIONS,
        amend: (id, fields) => {
          found = { ...found, items: found.items.map((hit) => (hit.id === id ? { ...hit, ...fields } : hit)) };
          draw();
          focus(id);
        },
      });
    });
    const hide = () => {
      const focused = document.activeElement?.getAttribute("data-photo");
      found = { ...found, items: found.items.filter((hit) => !hiddenPhotos.has(hit.id)) };
      draw();
      if (focused) focus(Number(focused));
    };
    const again = async () => {
      found = await fetched();
      if (isCurrent()) draw();
    };
    const focus = (/** @type {number} */ id) =>
      /** @type {HTMLElement | null} */ (this.#body.querySelector(`[data-photo="${id}"]`) ?? this.#body.querySelector(".result"))?.focus();
    const unlisten = listen(photoEvents, { hidden: hide, restored: () => again().catch(fail), many: () => again().catch(fail) });
    const placeOf = (/** @type {number} */ id) => hits.findIndex((hit) => hit.id === id);
    const hitOf = (/** @type {number} */ id) => hits.find((hit) => hit.id === id);
    return {
      sequence: {
        neighbour: async (/** @type {number} */ id, /** @type {number} */ delta) =>
          placeOf(id) < 0 ? null : (hits[placeOf(id) + delta]?.id ?? null),
        place: async (/** @type {number} */ id) => (placeOf(id) < 0 ? null : { at: placeOf(id) + 1, total: hits.length }),
        summary: hitOf,
      },
      found: (/** @type {number} */ id) => {
        const hit = hitOf(id);
        return hit && { matched: hit.matched ?? [], boxes: hit.boxes ?? [] };
      },
      focus,
      refresh: () => {},
      unfinished: () => false,
      select: () => selection?.begin(),
      stop: () => (request.abort(), selection?.stop(), unlisten()),
    };
  }

  /**
   * End what is shown now; `stop` ends what comes, if it is replaced before it arrives.
   *
   * @param {() => unknown} stop
   */
  #replaceShown(stop) {
    this.#shown?.stop();
    this.#shown = {
      sequence: { neighbour: async () => null, place: async () => null, summary: () => undefined },
      focus: () => {},
      refresh: () => {},
      unfinished: () => false,
      stop,
    };
  }
}

/**
 * The photos of a list as the viewer pages through them, also beyond what is loaded.
 *
 * @param {PhotoList} list
 * @returns {Sequence}
 */
export function sequenceOf(list) {
  return {
    async neighbour(id, delta) {
      const place = await list.locate(id);
      if (place < 0) return null;
      // The place of a photo that waits for its deletion is that of the next one.
      return list.idAt(hiddenPhotos.has(id) && delta > 0 ? place : place + delta);
    },
    async place(id) {
      const place = await list.locate(id);
      return place < 0 || list.count === null ? null : { at: place + 1, total: list.count };
    },
    summary: (id) => list.at(list.placeOf(id)),
  };
}
