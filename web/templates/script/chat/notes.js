// Notes ("dynamics" in the API), which the reasoner writes: the list, pinned notes first, and one note with its sources.
//
// Opening a note marks it as read. Deleting one removes only its card, so that the reader keeps their place; only pinning, which
// changes the order, reloads the list.

import { erase, glyphButton, moreButton, praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { toast } from "../base/dialogs.js";
import { add, button, fill, h, icon } from "../base/dom.js";
import { formatNumber, timeAgo } from "../base/format.js";
import { markdown, plainText } from "../base/markdown.js";
import { citedPhotos, readJson } from "./chat-log.js";
import { emptyState, go, load, navBadge, pageHead, skeleton } from "../base/shell.js";
import { t } from "../base/texts.js";
import { coveredText, noteName, reasonFor } from "../viewer/veil.js";

const NOTE_CATEGORIES = ["insight", "reminder", "report", "note"];
const NOTES_SHOWN = 30;
const SOURCES_SHOWN = 12; // screenshots of a note before "Show more"; a report may have a hundred

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const notes = {
  show: (container, { id, query }) => (id ? showNote(container, id) : new NoteList(container, query.get("category") ?? "").leave),
};

/**
 * The head of the view, whose tabs are what the assistant wrote and what it remembers.
 *
 * @param {"notes" | "memories"} current
 * @param {Child[]} actions
 */
export function notesHead(current, ...actions) {
  const tab = (/** @type {string} */ name, /** @type {string} */ href) =>
    h("a.tab", { href, text: t(`notes.${name}Tab`), "aria-current": name === current ? "page" : undefined });
  return [pageHead(t("notes.title"), actions),
    h("nav.tabs", { "aria-label": t("notes.title") }, tab("notes", "#/notes"), tab("memories", "#/notes/memories"))];
}

class NoteList {
  #chips = h("div.row", { role: "group", "aria-label": t("notes.categories") });
  #count = h("span.badge", { hidden: true });
  #readAll = button(t("notes.readAll"), { glyph: "check", hidden: true });
  #body = h("div.stack");
  #list = h("ul.list.stack");
  #cursor = 0;
  #more = moreButton(() => this.#next());
  #stop = () => {};

  /**
   * @param {HTMLElement} container
   * @param {string} category
   */
  constructor(container, category) {
    this.category = NOTE_CATEGORIES.includes(category) ? category : "";
    this.leave = () => this.#stop();
    const triggered = (/** @type {{ generated: number }} */ { generated }) => {
      toast(generated ? t("notes.triggered", { count: generated }) : t("notes.nothing"), { kind: generated ? "good" : "info" });
      this.#load(); // without a new note, an older one may have been updated
    };
    const allRead = (/** @type {{ updated: number }} */ { updated }) => {
      praise(t("notes.allRead", { count: updated }));
      this.#load();
    };
    const run = () => settle(trigger, () => api.post("/api/dynamics/trigger"), triggered);
    const read = () => settle(readAll, () => api.put("/api/dynamics/read-all"), allRead);
    const trigger = button(t("notes.trigger"), { glyph: "refresh", click: run });
    const readAll = this.#readAll;
    readAll.addEventListener("click", read);
    const head = notesHead("notes", readAll, trigger);
    head[0].querySelector("h1")?.append(" ", this.#count);
    add(container, head, this.#chips, this.#body);
    this.#load();
  }

  #load() {
    this.#stop();
    this.#stop = load(this.#body, (signal) => this.#page(0, signal), (page) => this.#show(page), skeleton(4, "block"));
    this.#countUp();
  }

  /**
   * @param {number} cursor
   * @param {AbortSignal} [signal]
   * @returns {Promise<{ items: DynamicItem[], next_cursor: number }>}
   */
  #page(cursor, signal) {
    return api.get("/api/dynamics", { cursor, limit: NOTES_SHOWN, category: this.category }, { signal });
  }

  /** @param {{ items: DynamicItem[], next_cursor: number }} page */
  #show({ items, next_cursor: next }) {
    this.#cursor = next;
    this.#more.hidden = !next;
    if (items.length) return [fill(this.#list, items.map((note) => this.#card(note))), h("div.row", this.#more)];
    if (this.category) return emptyState({ glyph: "note", title: t("notes.emptyCategory") });
    return emptyState({ glyph: "note", title: t("notes.emptyTitle"), text: t("notes.empty") });
  }

  async #next() {
    const { items, next_cursor: next } = await this.#page(this.#cursor);
    this.#cursor = next;
    this.#more.hidden = !next;
    const cards = items.map((note) => this.#card(note));
    add(this.#list, cards);
    cards[0]?.querySelector("a")?.focus();
  }

  // Fetch the counts. Without them the list is shown all the same, and reports what is wrong.
  async #countUp() {
    const none = { total_unread: 0, by_category: {} };
    /** @type {DynamicStatistics} */
    const { total_unread: unread, by_category: counts } = await api.get("/api/dynamics/stats").catch(() => none);
    navBadge("notes", unread);
    this.#count.hidden = this.#readAll.hidden = !unread;
    this.#count.textContent = t("notes.unread", { count: formatNumber(unread) });
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const chip = (/** @type {string} */ category, /** @type {string} */ label, /** @type {number} */ count) => {
      const current = category === this.category ? "true" : undefined;
      return h("a.chip.pick", { href: `#/notes${category && `?category=${category}`}`, "aria-current": current },
        label, h("span.muted", formatNumber(count)));
    };
    fill(
      this.#chips,
      chip("", t("list.all"), total),
      NOTE_CATEGORIES.filter((name) => counts[name] || name === this.category).map((name) =>
        chip(name, t(`dynamic.${name}`), counts[name] ?? 0),
      ),
    );
    this.#chips.hidden = this.#chips.childElementCount < 3 && !this.category; // one category is all of them
  }

  /** @param {DynamicItem} note */
  #card(note) {
    /** @type {HTMLLIElement} */
    const card = h("li", { class: `card stack notes-card ${note.is_read ? "" : "unread"}` },
      h("div.row.small",
        h("span.badge", t(`dynamic.${note.category}`)), !note.is_read && h("span.notes-new", t("notes.new")),
        note.is_pinned && h("span.muted", t("notes.pinned")), h("span.muted", timeAgo(note.created_at))),
      h("h2", h("a", { href: `#/notes/${note.id}`, text: noteName(note) })),
      h("p.muted", note.sensitive?.length ? reasonFor(note.sensitive) : plainText(note.summary)),
      noteActions(note, { pinned: () => this.#load(), deleted: () => this.#gone(card) }));
    return card;
  }

  /** @param {Element} card */
  #gone(card) {
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.remove();
    if (next) next.querySelector("a")?.focus();
    else this.#load();
    this.#countUp();
  }
}

/**
 * The buttons to pin and to delete a note.
 *
 * @param {DynamicItem} note
 * @param {{ pinned: (isPinned: boolean) => unknown, deleted: () => unknown }} done
 * @returns {HTMLElement}
 */
function noteActions(note, { pinned, deleted }) {
  const path = `/api/dynamics/${note.id}`;
  const label = t(note.is_pinned ? "notes.unpin" : "notes.pin");
  const flip = () => settle(pin, () => api.put(`${path}/pin`), (answer) => pinned(answer.is_pinned));
  const pin = glyphButton("pin", `${label}: ${noteName(note)}`, flip, { "aria-pressed": String(note.is_pinned) });
  const title = t("notes.delete");
  const remove = glyphButton("trash", `${title}: ${noteName(note)}`, () =>
    erase(remove, { title, text: t("notes.deleteText", { title: noteName(note) }), path, done: t("notes.deleted") }, deleted));
  return h("div.row.notes-actions", pin, remove);
}

/**
 * @param {HTMLElement} container
 * @param {string} id
 */
function showNote(container, id) {
  const body = h("div");
  add(container, h("a.row.notes-back", { href: "#/notes" }, icon("back"), t("notes.back")), body);
  return load(body, (signal) => api.get(`/api/dynamics/${encodeURIComponent(id)}`, {}, { signal }), (/** @type {DynamicDetail} */ note) => {
    if (!note.is_read) markRead(note.id);
    return article(note);
  }, skeleton(6));
}

/** @param {number} id */
async function markRead(id) {
  try {
    await api.put(`/api/dynamics/${id}/read`);
    navBadge("notes", (await api.get("/api/dynamics/stats")).total_unread);
  } catch {
    // The note stays unread until it is opened again.
  }
}

/** @param {DynamicDetail} note */
function article(note) {
  const photos = readJson(note.source_photo_ids) ?? [];
  const conversations = readJson(note.source_conversation_ids) ?? [];
  const actions = h("div");
  /** @type {(isPinned: boolean) => unknown} */
  const act = (isPinned) =>
    fill(actions, noteActions({ ...note, is_pinned: isPinned }, { pinned: act, deleted: () => go("#/notes") }));
  act(note.is_pinned);
  const isCovered = note.sensitive.length > 0;
  return h("article.card.stack.notes-article",
    h("header.row.apart",
      h("div.row.small.muted", h("span.badge", t(`dynamic.${note.category}`)), timeAgo(note.created_at)), actions),
    isCovered && h("h1.visually-hidden", t("notes.notesTab")),
    coveredText(note.sensitive, () => h("div.stack", h(isCovered ? "h2" : "h1", note.title), h("div.prose", markdown(note.content)))),
    photos.length > 0 && h("section.stack.tight", h("h2", t("notes.photos")), sourcePhotos(photos)),
    conversations.length > 0 && h("section.stack.tight", h("h2", t("notes.conversations")), sourceConversations(conversations)));
}

/** @param {number[]} ids */
function sourcePhotos(ids) {
  const rest = ids.slice(SOURCES_SHOWN);
  const more = button(`${t("list.more")} (${rest.length})`);
  more.addEventListener("click", () => more.replaceWith(citedPhotos(rest) ?? ""));
  return h("div.stack.tight", citedPhotos(ids.slice(0, SOURCES_SHOWN)), rest.length > 0 && h("div", more));
}

/**
 * Links to conversations: named by id at first, and by title once the latest conversations are loaded.
 *
 * @param {string[]} ids
 */
function sourceConversations(ids) {
  const links = new Map(ids.map((id) => [id, h("a", { href: `#/chat/${id}`, text: t("notes.conversation", { id: id.slice(0, 6) }) })]));
  api.get("/api/chat/conversations", { page_size: 100 }).then(({ conversations }) => {
    for (const { id, title, sensitive } of /** @type {ConversationItem[]} */ (conversations)) {
      const link = links.get(id);
      if (link && title && !sensitive?.length) link.textContent = title;
    }
  }, () => {});
  return h("ul.list.stack.tight", [...links.values()].map((link) => h("li.row", icon("chat"), link)));
}
