// The chat: the list of conversations, the open conversation, and pending turns.
//
// An answer may take minutes. So a turn belongs to the tab and not to the view: it goes on while another view is shown. The page
// chooses the conversation's id, and fetches the stored messages after the last one that it knows. So a reload, a second tab and a
// broken connection all end up with the same messages.

import { erase, glyphButton, moreButton } from "../base/actions.js";
import { api } from "../base/api.js";
import { composer, draft } from "./composer.js";
import { consentPanel } from "./consent.js";
import { closeDialogs, dialog, sentence, toast } from "../base/dialogs.js";
import { add, button, fill, h, icon } from "../base/dom.js";
import { parseTime, timeAgo } from "../base/format.js";
import { plainText } from "../base/markdown.js";
import { bubble, MessageLog, sentPicture } from "./chat-log.js";
import { emptyState, go, load, poll, replaceAddress } from "../base/shell.js";
import { t } from "../base/texts.js";
import { reasonFor } from "../viewer/veil.js";

const CONVERSATIONS_SHOWN = 50;
const PULL_SECONDS = 3; // while an answer is expected
const IDLE_PULLS = 5; // when none is expected, only every fifth time
const SLOW_SECONDS = 20;
const GIVEN_UP_SECONDS = 180; // after this a retry is offered; a later answer is still shown

/**
 * A message that waits for its answer, or whose request failed.
 *
 * @typedef {object} Turn
 * @property {string} id of the conversation
 * @property {import("./composer.js").Written} said
 * @property {number} since the last message that was known before
 * @property {any} [error]
 * @property {number} [startedAt]
 * @property {number} [again] when the service may be asked again
 * @property {boolean} [done]
 * @property {{ id: string, allow: boolean, for_conversation: boolean }} [consent] what the person says of a call that waits
 */

/** @type {Map<string, Turn>} */
export const turns = new Map(); // by conversation id: sent by this tab and not answered yet
/** @type {Map<number, Blob>} */
export const sentPictures = new Map(); // by message id: sent by this tab, so they need not be fetched
/** @type {ChatView | null} */
let openChat = null; // the view on the screen

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const chat = {
  show(container, { id }) {
    const view = new ChatView(container, id);
    openChat = view;
    return () => {
      if (openChat === view) openChat = null;
      view.close();
    };
  },
};

/**
 * Send a message, or send it again.
 *
 * @param {Turn} turn
 */
async function runTurn(turn) {
  const { id, said } = turn;
  Object.assign(turn, { error: null, startedAt: Date.now(), again: 0 });
  turns.set(id, turn);
  openChat?.changed(id);
  try {
    if (turn.consent) await sendConsent(id, turn.consent);
    else await sendMessage(id, said);
    turn.done = true;
  } catch (error) {
    // Whether the call ran or not: the same message, sent again, goes on where the turn was interrupted.
    const isAnswered = turn.consent && error.status === 409; // by another tab
    if (isAnswered) turn.done = true;
    else turn.error = error;
    delete turn.consent;
    turn.again = error.retryAfter ? Date.now() + error.retryAfter * 1000 : 0;
  }
  if (openChat?.id === id) return openChat.ended(turn);
  if (turn.done) turns.delete(id);
  const action = { label: t("chat.open"), run: () => go(`#/chat/${id}`) };
  if (turn.done) toast(t("chat.arrived"), { kind: "good", action });
  else if (turn.error.status !== 401) toast(t("chat.arrivedNot"), { kind: "bad", action });
}

/**
 * @param {string} id
 * @param {{ id: string, allow: boolean, for_conversation: boolean }} consent
 */
function sendConsent(id, { id: call, ...said }) {
  return api.post(`/api/chat/conversations/${encodeURIComponent(id)}/calls/${encodeURIComponent(call)}`, said);
}

/**
 * @param {string} id
 * @param {import("./composer.js").Written} said
 */
function sendMessage(id, { text, file, skill }) {
  const fields = { message: text, conversation_id: id, confirm: true, ...(skill && { skill_id: skill }) };
  if (!file) return api.post("/api/chat/send", fields);
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
  form.append("file", file);
  return api.form("/api/chat/send-with-file", form);
}

/**
 * Whether the service may have stored more of a turn than is shown: not while its request is pending, nor when it was refused.
 *
 * @param {Turn} turn
 */
function mayBeStored({ done, error }) {
  return done || (error && (error.status === 0 || error.status >= 500));
}

function newConversationId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

class ChatView {
  #title = h("h1.chat-title");
  #remove = glyphButton("trash", t("chat.delete"), () => this.#delete());
  #scroller = h("div.chat-scroll", { tabindex: 0, role: "log", "aria-label": t("chat.log") });
  #tail = h("div.stack.chat-tail");
  /** @type {Ending[]} */
  #leave = [];
  #pulls = 0;
  /** @type {string | null} */
  #shownTail = null;
  #stopClock = () => {};
  #stopLooking = () => {};
  /** @type {PendingCall[]} */
  #pending = []; // that wait for the person

  /**
   * @param {HTMLElement} container
   * @param {string | null} id
   */
  constructor(container, id) {
    this.id = id ?? ""; // empty until the first message
    this.log = new MessageLog((message) => sentPictures.get(message.id), (message) => `${this.#path}/messages/${message.id}/attachment`);
    this.composer = composer((said) => this.#send(said));
    this.list = new ConversationList(() => this.id);
    const drawer = () => dialog({ title: t("chat.conversations"), body: new ConversationList(() => this.id).element });
    add(container,
      h("section.chat-side", { "aria-label": t("chat.conversations") },
        h("a.button", { href: "#/chat" }, icon("plus"), h("span", t("chat.new"))), this.list.element),
      h("section.chat-thread", { on: { dragover: dragged, dragleave: dragged, drop: (event) => this.#drop(event) } },
        h("header.chat-head",
          glyphButton("menu", t("chat.conversations"), drawer, { kind: "quiet chat-narrow" }), this.#title,
          glyphButton("plus", t("chat.new"), () => go("#/chat"), { kind: "quiet chat-narrow" }),
          this.#remove),
        this.#scroller, this.composer.element));
    this.#leave.push(() => this.log.close(), () => this.composer.close());
    if (id) this.#load();
    else this.#welcome();
    this.composer.grow();
    if (!id && matchMedia("(hover: hover)").matches) setTimeout(() => this.composer.focus());
  }

  close() {
    this.#stopClock();
    this.#stopLooking();
    this.#leave.forEach((leaving) => leaving());
  }

  /**
   * The turn of conversation `id` has changed.
   *
   * @param {string} id
   */
  changed(id) {
    if (id === this.id) this.#drawTail();
  }

  /**
   * The turn has ended, with or without an answer.
   *
   * @param {Turn} turn
   */
  async ended(turn) {
    try {
      if (mayBeStored(turn)) await this.#pull();
      if (turn.done) turns.delete(turn.id);
    } catch {
      // The next pull fetches what is stored.
    }
    this.#drawTail();
  }

  #welcome() {
    this.#head("");
    const idea = (/** @type {string} */ text) =>
      button(text, { kind: "chat-idea", click: () => (this.composer.write(text, draft.file), this.composer.focus()) });
    fill(this.#scroller,
      h("div.empty.chat-welcome", icon("chat"), h("h2", t("chat.welcome")), h("p", t("chat.welcomeText")),
        h("div.row", [1, 2, 3].map((number) => idea(t(`chat.idea${number}`))))));
  }

  /** @param {string} title */
  #head(title) {
    this.#title.textContent = title || t("chat.new");
    this.#title.title = title;
    this.#remove.hidden = !this.id || !title;
  }

  #load() {
    const fetched = async (/** @type {AbortSignal} */ signal) => {
      try {
        return await api.get(this.#path, {}, { signal });
      } catch (error) {
        if (error.status === 404) return null;
        throw error;
      }
    };
    this.#leave.push(load(this.#scroller, fetched, (conversation) => {
      if (conversation) return this.#begin(conversation);
      const turn = turns.get(this.id);
      return turn ? this.#begin({ title: turn.said.text, messages: [] }) : this.#gone();
    }));
  }

  #gone() {
    this.#stopLooking();
    this.#head("");
    this.composer.element.hidden = true;
    return emptyState({ glyph: "chat", title: t("chat.gone"), text: t("chat.goneText"),
      action: h("a.button.primary", { href: "#/chat", text: t("chat.new") }) });
  }

  /**
   * Start showing the conversation. Returns the elements of its messages.
   *
   * @param {{ title: string, messages: MessageFields[], pending_calls?: PendingCall[] }} conversation
   */
  #begin({ title, messages, pending_calls: pending = [] }) {
    this.#head(title);
    this.#pending = pending;
    this.log.append(messages);
    requestAnimationFrame(() => {
      if (openChat !== this) return;
      this.#drawTail();
      this.#toEnd();
      this.#stopLooking = poll(() => this.#look(), PULL_SECONDS);
    });
    return [this.log.element, this.#tail];
  }

  /** @param {import("./composer.js").Written} said */
  #send(said) {
    if (!this.id) {
      this.id = newConversationId();
      replaceAddress(`#/chat/${this.id}`);
      fill(this.#scroller, this.#begin({ title: said.text.trim() || (said.file?.name ?? ""), messages: [] }));
    }
    runTurn({ id: this.id, said, since: this.log.lastId });
    this.#toEnd();
  }

  // Runs every PULL_SECONDS; asks the service each time only while an answer is expected.
  #look() {
    this.#pulls += 1;
    this.#drawTail();
    const turn = turns.get(this.id);
    const isDue = turn ? mayBeStored(turn) : !this.log.answered || this.#pulls % IDLE_PULLS === 0;
    if (isDue) return this.#pull();
  }

  async #pull() {
    /** @type {MessageFields[]} */
    let messages;
    /** @type {PendingCall[]} */
    let pending;
    try {
      ({ messages, pending_calls: pending = [] } = await api.get(`${this.#path}/messages`, { after_id: this.log.lastId }));
    } catch (error) {
      if (error.status === 404 && !turns.has(this.id) && this.log.lastId) return fill(this.#scroller, this.#gone());
      if (error.status === 404) return; // the service stored nothing of the turn
      throw error;
    }
    const turn = turns.get(this.id);
    const stored = turn && messages.find((message) => message.role === "user" && message.id > turn.since);
    if (stored && turn.said.file) sentPictures.set(stored.id, turn.said.file);
    const atEnd = this.#atEnd();
    const asks = pending.some(({ id }) => !this.#pending.some((known) => known.id === id));
    this.#pending = pending;
    if (this.log.append(messages)) this.list.refresh();
    else this.#drawTail();
    if (asks && atEnd) requestAnimationFrame(() => this.#toEnd());
    if (!messages.length) return;
    if (turn && this.log.answered && this.#isStored(turn)) turns.delete(this.id); // whichever tab sent it
    this.#drawTail();
    if (atEnd) this.#toEnd();
  }

  // The part after the stored messages: a message that is not stored yet, and the state of its answer.
  #drawTail() {
    const turn = turns.get(this.id);
    const stored = turn && this.#isStored(turn);
    this.composer.lock(Boolean(turn && !(turn.error && stored))); // the next message must not replace one that is not stored
    let shown = "";
    const asks = this.#pending.length > 0 && !(turn && (turn.error || !turn.done)); // not while an answer is on its way
    if (asks) shown = this.#pending.map(({ id }) => id).join();
    else if (turn) shown = `${turn.startedAt} ${Boolean(turn.error)} ${stored}`;
    else if (this.log.asked && !this.log.answered) shown = String(this.log.asked.id);
    if (shown === this.#shownTail) return;
    this.#shownTail = shown;
    this.#stopClock();
    this.#stopClock = () => {};
    const atEnd = this.#atEnd();
    if (asks) {
      fill(
        this.#tail,
        consentPanel(this.#pending, (call, consent) => this.#consent(call, consent)),
      );
    }
    else if (turn) {
      fill(this.#tail, !stored && this.#unstored(turn.said), turn.error ? this.#problem(turn) : this.#thinking(turn.startedAt ?? 0));
    }
    else if (this.log.asked && !this.log.answered) this.#waiting(this.log.asked);
    else fill(this.#tail);
    if (atEnd) this.#toEnd();
  }

  /**
   * @param {PendingCall} call
   * @param {import("./consent.js").Consent} consent
   */
  async #consent(call, consent) {
    if (consent === "always" && call.server_id) await api.put(`/api/mcp-servers/${encodeURIComponent(call.server_id)}`, { trusted: true });
    const asked = this.log.asked;
    if (!asked) return;
    const said = { text: asked.content ?? "", file: /** @type {File | null} */ (sentPictures.get(asked.id) ?? null), skill: "" };
    runTurn({
      id: this.id,
      said,
      since: asked.id - 1,
      consent: { id: call.id, allow: consent !== "refuse", for_conversation: consent === "conversation" },
    });
  }

  /**
   * Whether the message of this turn is stored.
   *
   * @param {Turn} turn
   */
  #isStored(turn) {
    return this.log.asked !== null && this.log.asked.id > turn.since;
  }

  /** @param {import("./composer.js").Written} said */
  #unstored(said) {
    const url = said.file ? URL.createObjectURL(said.file) : "";
    if (url) this.#leave.push(() => URL.revokeObjectURL(url));
    return bubble(said.text, url && sentPicture(url));
  }

  /**
   * A stored message without an answer, sent by another tab or one that was closed. The answer may still come.
   *
   * @param {MessageFields} asked
   */
  #waiting({ id, content, created_at: createdAt }) {
    const startedAt = parseTime(createdAt).getTime();
    if (Date.now() - startedAt < GIVEN_UP_SECONDS * 1000) fill(this.#tail, this.#thinking(startedAt));
    else {
      const turn = { id: this.id, said: { text: content ?? "", file: null, skill: "" }, since: id - 1, again: 0 };
      fill(this.#tail, this.#offer(t("chat.unanswered"), turn));
    }
  }

  /** @param {number} startedAt */
  #thinking(startedAt) {
    const seconds = h("span.chat-seconds", { "aria-hidden": "true" });
    const slow = h("p.hint", { hidden: true, text: t("chat.slow") });
    const tick = () => {
      const passed = Math.max(0, Math.round((Date.now() - startedAt) / 1000));
      seconds.textContent = passed > 2 ? t("chat.seconds", { seconds: passed }) : "";
      slow.hidden = passed < SLOW_SECONDS;
      if (passed > GIVEN_UP_SECONDS && !turns.has(this.id)) this.#shownTail = null;
    };
    this.#clock(tick);
    return h("div.muted.stack.tight", { role: "status" },
      h("p.row", h("span.chat-dots", { "aria-hidden": "true" }, h("i"), h("i"), h("i")), t("chat.thinking"), " ", seconds), slow);
  }

  /** @param {Turn} turn */
  #problem(turn) {
    return this.#offer(`${t("chat.failed")} ${turn.error.detail ?? sentence(turn.error)}`, turn);
  }

  /**
   * Offer to send a message again, as soon as the service allows it, or to edit it.
   *
   * @param {string} text
   * @param {Turn} turn
   */
  #offer(text, turn) {
    const label = h("span");
    const again = h("button.button", { type: "button", on: { click: () => runTurn(turn) } }, icon("refresh"), label);
    const edit = () => {
      turns.delete(this.id);
      this.composer.write(turn.said.text, turn.said.file);
      this.#drawTail();
      this.composer.focus();
    };
    const tick = () => {
      const left = Math.ceil(((turn.again ?? 0) - Date.now()) / 1000);
      again.disabled = left > 0;
      label.textContent = left > 0 ? t("chat.againIn", { seconds: left }) : t("chat.again");
    };
    this.#clock(tick);
    return h("div.stack.tight.chat-problem", { role: "alert" }, h("p", { text }),
      h("div.row", turn.error?.status !== 403 && again, turn.error && button(t("chat.edit"), { kind: "quiet", click: edit })));
  }

  /** @param {() => void} tick */
  #clock(tick) {
    const timer = setInterval(tick, 1000);
    this.#stopClock = () => clearInterval(timer);
    tick();
  }

  #atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < 120;
  }

  #toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  /** @param {DragEvent} event */
  #drop(event) {
    /** @type {HTMLElement} */ (event.currentTarget).classList.remove("dropping");
    this.composer.take(event, event.dataTransfer);
  }

  #delete() {
    const words = {
      title: t("chat.delete"),
      text: t("chat.deleteText", { title: this.#title.textContent ?? "" }),
      done: t("chat.deleted"),
    };
    erase(this.#remove, { ...words, path: this.#path }, () => {
      turns.delete(this.id);
      go("#/chat");
    });
  }

  get #path() {
    return `/api/chat/conversations/${encodeURIComponent(this.id)}`;
  }
}

/** @param {DragEvent} event */
function dragged(event) {
  if (!event.dataTransfer?.types.includes("Files")) return;
  event.preventDefault();
  /** @type {HTMLElement} */ (event.currentTarget).classList.toggle("dropping", event.type === "dragover");
}

// The list of conversations, latest first.
class ConversationList {
  #page = 1;
  #list = h("ul.list");
  #more = moreButton(() => this.#older());

  /** @param {() => string} current the id of the one that is open */
  constructor(current) {
    this.current = current;
    this.element = h("div.stack.tight");
    load(this.element, () => this.#fetch(1), (conversations) => [this.#show(conversations), this.#more]);
  }

  async refresh() {
    try {
      const conversations = await this.#fetch(1);
      this.#page = 1;
      fill(this.element, this.#show(conversations), this.#more);
    } catch {
      // The list stays as it was until the next turn.
    }
  }

  /**
   * @param {number} page
   * @returns {Promise<ConversationItem[]>}
   */
  async #fetch(page) {
    const { conversations } = await api.get("/api/chat/conversations", { page, page_size: CONVERSATIONS_SHOWN });
    this.#more.hidden = conversations.length < CONVERSATIONS_SHOWN;
    return conversations;
  }

  async #older() {
    const conversations = await this.#fetch(this.#page + 1);
    this.#page += 1;
    add(this.#list, conversations.map((one) => this.#item(one)));
  }

  /** @param {ConversationItem[]} conversations */
  #show(conversations) {
    if (!conversations.length) return h("p.hint.chat-none", t("chat.none"));
    return fill(this.#list, conversations.map((one) => this.#item(one)));
  }

  /** @param {ConversationItem} conversation */
  #item({ id, title, last_message: last, sensitive: kinds, updated_at: updated }) {
    const current = id === this.current() ? "page" : undefined;
    if (kinds?.length) [title, last] = [t("veil.chat"), reasonFor(kinds)];
    return h("li",
      h("a.chat-item", { href: `#/chat/${id}`, "aria-current": current, on: { click: closeDialogs } },
        h("span.chat-item-title", title || t("chat.new")), timeAgo(updated),
        h("span.chat-item-last", plainText(last))));
  }
}
