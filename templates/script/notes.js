// The notes that the reasoner has written ("dynamics" in the API): the list, pinned ones first, and the article with its sources.
//
// Opening an article marks it as read. What is done to a note is shown in its place, so that a reader does not lose theirs; only a pin,
// which changes the order, begins the list anew.

words({
  list: {
    more: ["Show more", "显示更多"],
    delete: ["Delete", "删除"],
    save: ["Save", "保存"],
    all: ["All", "全部"],
  },
  notes: {
    title: ["Notes", "笔记"],
    unread: ["{count} unread", "{count} 篇未读"],
    trigger: ["Look for notes now", "立即生成笔记"],
    triggered: ["New notes: {count}", "新笔记：{count} 篇"],
    nothing: ["There is nothing new to write about yet.", "暂时没有新内容可写。"],
    readAll: ["Mark all as read", "全部标为已读"],
    allRead: ["Marked as read: {count}", "已标为已读：{count} 篇"],
    pin: ["Pin to the top", "置顶"],
    unpin: ["Unpin", "取消置顶"],
    pinned: ["Pinned", "已置顶"],
    new: ["Unread", "未读"],
    delete: ["Delete this note", "删除这篇笔记"],
    deleteText: ["“{title}” will be deleted. The screenshots it comes from stay.", "“{title}”将被删除，来源截图会保留。"],
    deleted: ["Note deleted", "笔记已删除"],
    categories: ["Categories", "分类"],
    emptyTitle: ["No notes yet", "还没有笔记"],
    empty: ["Notes are written from your new screenshots and chats, every hour and after every third analysis. You can also ask for them now.", "笔记由新的截图和对话生成：每小时一次，每完成三次分析也会生成。你也可以立即生成。"],
    emptyCategory: ["There are no notes of this category.", "这个分类下没有笔记。"],
    back: ["All notes", "全部笔记"],
    photos: ["From these screenshots", "来源截图"],
    conversations: ["From these conversations", "来源对话"],
    conversation: ["Conversation {id}", "对话 {id}"],
    confidence: ["confidence {percent}", "可信度 {percent}"],
  },
  dynamic: {
    insight: ["Insight", "洞察"],
    reminder: ["Reminder", "提醒"],
    report: ["Report", "报告"],
    note: ["Note", "笔记"],
  },
});

const NOTE_CATEGORIES = ["insight", "reminder", "report", "note"];
const NOTES_SHOWN = 30;
const SOURCES_SHOWN = 12; // screenshots of an article before "more" is pressed; a report may have a hundred

route("notes", {
  title: "notes.title",
  icon: "note",
  show: (container, { id, query }) => (id ? showNote(container, id) : new NoteList(container, query.get("category") ?? "").leave),
});

class NoteList {
  #chips = h("div", { class: "row", role: "group", "aria-label": t("notes.categories") });
  #count = h("span", { class: "badge", hidden: true });
  #body = h("div", { class: "stack" });
  #list = h("ul", { class: "list notes-list" });
  #cursor = 0;
  #more = button(t("list.more"), { click: () => busy(this.#more, this.#next()).catch(fail) });
  #stop = () => {};

  constructor(container, category) {
    this.category = NOTE_CATEGORIES.includes(category) ? category : "";
    this.leave = () => this.#stop();
    const trigger = button(t("notes.trigger"), { glyph: "refresh", kind: "primary", click: () => this.#trigger(trigger) });
    const readAll = button(t("notes.readAll"), { glyph: "check", click: () => this.#readAll(readAll) });
    const head = pageHead(t("notes.title"), readAll, trigger);
    head.firstChild.append(" ", this.#count);
    add(container, head, this.#chips, this.#body);
    this.#load();
  }

  #load() {
    this.#stop();
    this.#stop = load(this.#body, (signal) => this.#page(0, signal), (page) => this.#show(page), skeleton(4, "block"));
    this.#countUp();
  }

  #page(cursor, signal) {
    return api.get("/api/dynamics", { cursor, limit: NOTES_SHOWN, category: this.category }, { signal });
  }

  #show({ items, next_cursor: next }) {
    this.#cursor = next;
    this.#more.hidden = !next;
    if (items.length) return [fill(this.#list, items.map((note) => this.#card(note))), h("div", { class: "row" }, this.#more)];
    if (this.category) return emptyState({ glyph: "note", title: t("notes.emptyCategory") });
    return emptyState({ glyph: "note", title: t("notes.emptyTitle"), text: t("notes.empty") });
  }

  async #next() {
    const { items, next_cursor: next } = await this.#page(this.#cursor);
    this.#cursor = next;
    this.#more.hidden = !next;
    const cards = items.map((note) => this.#card(note));
    add(this.#list, cards);
    cards[0]?.querySelector("a").focus();
  }

  /** The counts; a failure leaves them away, the list itself tells it. */
  async #countUp() {
    const { total_unread: unread, by_category: counts } = await api.get("/api/dynamics/stats").catch(() => ({ total_unread: 0, by_category: {} }));
    navBadge("notes", unread);
    this.#count.hidden = !unread;
    this.#count.textContent = t("notes.unread", { count: formatNumber(unread) });
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const chip = (category, label, count) =>
      h("a", { class: "chip pick", href: `#/notes${category && `?category=${category}`}`, "aria-current": category === this.category ? "true" : undefined },
        label, h("span", { class: "muted", text: formatNumber(count) }));
    fill(this.#chips, chip("", t("list.all"), total), NOTE_CATEGORIES.map((name) => chip(name, t(`dynamic.${name}`), counts[name] ?? 0)));
  }

  #card(note) {
    const card = h("li", { class: `card notes-card ${note.is_read ? "" : "unread"}` },
      h("div", { class: "row small" },
        h("span", { class: "badge", text: t(`dynamic.${note.category}`) }), !note.is_read && h("span", { class: "notes-new", text: t("notes.new") }),
        note.is_pinned && h("span", { class: "muted" }, t("notes.pinned")), h("span", { class: "muted" }, timeAgo(note.created_at))),
      h("h2", null, h("a", { href: `#/notes/${note.id}`, text: note.title })),
      h("p", { class: "muted", text: note.summary }),
      noteActions(note, { pinned: () => this.#load(), deleted: () => this.#gone(card) }));
    return card;
  }

  #gone(card) {
    const next = card.nextElementSibling ?? card.previousElementSibling;
    card.remove();
    if (next) next.querySelector("a").focus();
    else this.#load();
    this.#countUp();
  }

  async #trigger(pressed) {
    try {
      const { generated } = await busy(pressed, api.post("/api/dynamics/trigger"));
      toast(generated ? t("notes.triggered", { count: generated }) : t("notes.nothing"), { kind: generated ? "good" : "info" });
      this.#load(); // what is no new note may have continued one
    } catch (error) {
      fail(error);
    }
  }

  async #readAll(pressed) {
    try {
      const { updated } = await busy(pressed, api.put("/api/dynamics/read-all"));
      toast(t("notes.allRead", { count: updated }), { kind: "good" });
      this.#load();
    } catch (error) {
      fail(error);
    }
  }
}

/** Pin and delete. */
function noteActions(note, { pinned, deleted }) {
  const label = t(note.is_pinned ? "notes.unpin" : "notes.pin");
  const pin = button("", { glyph: "pin", kind: "quiet", label: `${label}: ${note.title}`, click: flip, "aria-pressed": String(note.is_pinned) });
  const remove = button("", { glyph: "trash", kind: "quiet", label: `${t("notes.delete")}: ${note.title}`, click: erase });

  async function flip() {
    try {
      const answer = await busy(pin, api.put(`/api/dynamics/${note.id}/pin`));
      pinned(answer.is_pinned);
    } catch (error) {
      fail(error);
    }
  }

  async function erase() {
    const text = t("notes.deleteText", { title: note.title });
    if (!(await confirmDialog({ title: t("notes.delete"), text, action: t("list.delete"), danger: true }))) return;
    try {
      await busy(remove, api.delete(`/api/dynamics/${note.id}`));
    } catch (error) {
      if (error.status !== 404) return fail(error);
    }
    toast(t("notes.deleted"), { kind: "good" });
    deleted();
  }

  return h("div", { class: "row notes-actions" }, pin, remove);
}

function showNote(container, id) {
  const body = h("div");
  add(container, h("a", { class: "row notes-back", href: "#/notes" }, icon("back"), t("notes.back")), body);
  return load(body, (signal) => api.get(`/api/dynamics/${encodeURIComponent(id)}`, {}, { signal }), (note) => {
    if (!note.is_read) markRead(note.id);
    return article(note);
  }, skeleton(6));
}

async function markRead(id) {
  try {
    await api.put(`/api/dynamics/${id}/read`);
    navBadge("notes", (await api.get("/api/dynamics/stats")).total_unread);
  } catch {
    // It stays unread, and will be marked when it is opened again.
  }
}

function article(note) {
  const photos = readJson(note.source_photo_ids) ?? [];
  const conversations = readJson(note.source_conversation_ids) ?? [];
  const actions = h("div");
  const act = (isPinned) =>
    fill(actions, noteActions({ ...note, is_pinned: isPinned }, { pinned: act, deleted: () => go("#/notes") }));
  act(note.is_pinned);
  return h("article", { class: "card notes-article" },
    h("header", { class: "row apart" },
      h("div", { class: "row small muted" }, h("span", { class: "badge", text: t(`dynamic.${note.category}`) }), timeAgo(note.created_at),
        h("span", { text: t("notes.confidence", { percent: formatPercent(note.confidence) }) })), actions),
    h("h1", { text: note.title }),
    h("div", { class: "prose" }, markdown(note.content)),
    photos.length > 0 && h("section", { class: "stack tight" }, h("h2", { text: t("notes.photos") }), sourcePhotos(photos)),
    conversations.length > 0 && h("section", { class: "stack tight" }, h("h2", { text: t("notes.conversations") }), sourceConversations(conversations)));
}

function sourcePhotos(ids) {
  const more = button(`${t("list.more")} (${ids.length - SOURCES_SHOWN})`, { click: () => more.replaceWith(citedPhotos(ids.slice(SOURCES_SHOWN))) });
  return h("div", { class: "stack tight" }, citedPhotos(ids.slice(0, SOURCES_SHOWN)), ids.length > SOURCES_SHOWN && h("div", null, more));
}

/** Links, by number at first; the titles of those that are among the latest follow. */
function sourceConversations(ids) {
  const links = new Map(ids.map((id) => [id, h("a", { href: `#/chat/${id}`, text: t("notes.conversation", { id: id.slice(0, 6) }) })]));
  api.get("/api/chat/conversations", { page_size: 100 }).then(({ conversations }) => {
    for (const { id, title } of conversations) if (title && links.has(id)) links.get(id).textContent = title;
  }, () => {});
  return h("ul", { class: "list stack tight" }, [...links.values()].map((link) => h("li", { class: "row" }, icon("chat"), link)));
}

function formatPercent(share) {
  return new Intl.NumberFormat(locale(), { style: "percent" }).format(share ?? 0);
}
