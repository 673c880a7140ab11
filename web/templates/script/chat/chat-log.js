// The messages of a conversation: questions, answers in Markdown, tool calls, and the screenshots that an answer cites.
//
// Messages are only appended and never redrawn, so that what a reader has expanded or selected stays. The output of tools and models
// is data: it is shown as text, and becomes a link only where it is a web address, or the id of a screenshot that a tool of the same
// conversation returned.

import { picture } from "../base/api.js";
import { add, fill, h, icon } from "../base/dom.js";
import { markdown, unnamedHost } from "../base/markdown.js";
import { dropBroken } from "../base/picture-file.js";
import { t } from "../base/texts.js";
import { lookUp, reasonOf, veilable } from "../viewer/veil.js";
import { openPhoto } from "../viewer/viewer.js";
import { cutouts } from "./cutouts.js";

const BUILT_IN_TOOLS = ["search_knowledge_base", "get_screenshot", "agenda", "list_records", "web_search", "save_memory"];
const SEARCHES = ["search_knowledge_base", "agenda", "list_records", "web_search"];
const SCREENSHOT_TOOLS = ["search_knowledge_base", "get_screenshot", "agenda", "list_records"];
const LONGEST_VALUE = 120; // characters that are shown large
const CITATION = /#(\d{1,15})(?!\d)/g;

// The stored messages of one conversation.
export class MessageLog {
  lastId = 0;
  /** @type {MessageFields | null} */
  asked = null; // the last message of the user
  answered = true; // whether the assistant has answered it
  /** @type {Map<number, string>} */
  #titles = new Map(); // by id, of the screenshots that tools returned
  /** @type {ToolCall[]} */
  #calls = []; // that have no result yet
  /** @type {Steps | null} */
  #steps = null; // of the present turn
  /** @type {string[]} */
  #urls = [];
  #pictureOf;
  #attachmentOf;

  /**
   * @param {(message: MessageFields) => Blob | undefined} pictureOf returns the picture of a message that this tab sent
   * @param {(message: MessageFields) => string} attachmentOf returns the path of a message's picture
   */
  constructor(pictureOf, attachmentOf) {
    this.#pictureOf = pictureOf;
    this.#attachmentOf = attachmentOf;
    this.element = h("ol.list.stack");
  }

  /**
   * Append the new messages. Returns whether there were any.
   *
   * @param {MessageFields[]} messages
   */
  append(messages) {
    const fresh = messages.filter((message) => message.id > this.lastId);
    for (const message of fresh) {
      this.lastId = message.id;
      if (message.role === "tool") this.#settle(message);
      else if (message.role === "user") this.#say(message);
      else this.#answer(message);
    }
    return fresh.length > 0;
  }

  close() {
    this.#urls.forEach((url) => URL.revokeObjectURL(url));
  }

  /** @param {MessageFields} message */
  #say(message) {
    this.asked = message;
    this.answered = false;
    this.#steps = null;
    const sent = this.#pictureOf(message);
    const url = sent ? URL.createObjectURL(sent) : "";
    if (url) this.#urls.push(url);
    const attached = message.has_attachment && picture(this.#attachmentOf(message), t("message.attached"), { class: "chat-sent-picture" });
    this.element.append(h("li", bubble(message.content, url ? sentPicture(url) : attached)));
  }

  /** @param {MessageFields} message */
  #answer(message) {
    const calls = readJson(message.tool_calls) ?? [];
    if (Array.isArray(calls) && calls.length) {
      this.#calls = calls.map((call) => new ToolCall(call.function ?? {}));
      this.#steps ??= new Steps();
      this.#steps.add(this.#calls);
      if (!this.#steps.element.isConnected) this.element.append(this.#steps.element);
    }
    if (message.content) {
      this.answered = true;
      const body = h("div.chat-answer.prose", h("span.visually-hidden", t("message.assistant")), markdown(message.content));
      const citations = message.citations ?? [];
      const shown = new Set(citations.map(({ photo_id: id }) => id));
      const isValue = liftValue(body);
      if (isValue && shown.size === 1) leaveSourceTo(body);
      const ids = linkCitations(body, this.#titles).filter((id) => !shown.has(id));
      this.element.append(h("li", body, cutouts(citations, this.#titles), citedPhotos(ids, this.#titles)));
      if (this.#steps) this.element.append(this.#steps.element); // the steps come after what they have led to
    }
  }

  /** @param {MessageFields} message */
  #settle(message) {
    const said = readJson(message.content) ?? {};
    /** @type {ToolResult[]} */
    const results = Array.isArray(said.results) ? said.results : [];
    if (SCREENSHOT_TOOLS.includes(message.tool_name ?? "")) {
      for (const { id, title } of results.map((result) => result ?? {})) {
        if (Number.isInteger(id)) this.#titles.set(Number(id), String(title ?? ""));
      }
    }
    this.#calls.shift()?.settle(message.tool_name ?? "", said, results);
    this.#steps?.count(message.tool_name ?? "", Boolean(said.error));
  }
}

/**
 * A message of the user, stored or not.
 *
 * @param {string | null} content
 * @param {Child} attached the picture, if there is one
 */
export function bubble(content, attached) {
  return h("div.chat-said",
    h("span.visually-hidden", t("message.you")),
    attached,
    content && h("p", content),
  );
}

/** @param {string} url of a picture that this tab has sent */
export function sentPicture(url) {
  return h("img.chat-sent-picture", { src: url, alt: t("message.attached"), on: { error: dropBroken } });
}

/**
 * One result of a tool. MCP tools may return anything, so no field is certain.
 *
 * @typedef {{ id?: unknown, title?: unknown, url?: unknown, summary?: unknown, snippet?: unknown } | null} ToolResult
 */

// The tool calls of a turn, folded into one line: "Searched, read 3".
class Steps {
  /** @type {Map<string, number>} */
  #counts = new Map();
  #failed = 0;

  constructor() {
    this.summary = h("span", t("steps.running"));
    this.calls = h("div.stack.tight.chat-steps-calls");
    this.element = h("li", h("details.chat-steps", h("summary", icon("tool"), this.summary), this.calls));
  }

  /** @param {ToolCall[]} calls */
  add(calls) {
    add(this.calls, calls.map((call) => call.element));
  }

  /**
   * @param {string} tool
   * @param {boolean} failed
   */
  count(tool, failed) {
    const name = BUILT_IN_TOOLS.includes(tool) ? tool : "other";
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    this.#failed += Number(failed);
    const parts = [...this.#counts].map(([step, count]) => t(`steps.${step}`, { count }));
    if (this.#failed) parts.push(t("steps.failed", { count: this.#failed }));
    const line = parts.join(t("steps.comma"));
    this.summary.textContent = line.slice(0, 1).toUpperCase() + line.slice(1);
  }
}

/**
 * Show a value large that is the whole first paragraph of an answer. Returns whether there is one.
 *
 * @param {HTMLElement} body
 */
function liftValue(body) {
  const first = body.querySelector(":scope > p");
  const isValue = first !== null && first.previousElementSibling?.matches(".visually-hidden") === true
    && first.childNodes.length === 1 && first.firstElementChild?.tagName === "STRONG" && (first.textContent ?? "").length <= LONGEST_VALUE;
  first?.classList.toggle("chat-value", isValue);
  return isValue;
}

/**
 * Remove what an answer says of its only source, if it says nothing else: the cut-out shows that.
 *
 * @param {HTMLElement} body
 */
function leaveSourceTo(body) {
  const rest = [...body.children].slice(2);
  const [source, quote] = rest;
  if (rest.length && rest.length <= 2 && /^#\d+ /.test(source.textContent ?? "") && (!quote || quote.tagName === "BLOCKQUOTE")) {
    rest.forEach((element) => element.remove());
  }
}

// One tool call: the summary says what happened; expanded, it shows the arguments and the results.
class ToolCall {
  /** @param {{ name?: unknown, arguments?: unknown }} called */
  constructor(called) {
    const [name, given] = [called.name, called.arguments].map((text) => String(text ?? ""));
    const known = BUILT_IN_TOOLS.includes(name);
    const asked = readJson(given);
    this.state = h("span.chat-tool-state", t("tool.running"));
    this.results = h("div");
    this.element = h("details.chat-tool",
      h("summary",
        icon("tool"),
        h("span.chat-tool-name", known ? t(`tool.${name}`) : t("tool.other", { name })),
        asked?.query && h("q.chat-tool-query", String(asked.query)),
        this.state,
      ),
      h("div.chat-tool-body",
        h("h4", `${t("tool.arguments")} `, h("code", name)),
        h("pre", { tabindex: 0, text: asked ? JSON.stringify(asked, null, 1) : given }),
        this.results,
      ),
    );
  }

  /**
   * @param {string} name
   * @param {any} said
   * @param {ToolResult[]} results
   */
  settle(name, said, results) {
    this.element.classList.toggle("failed", Boolean(said.error));
    const outcome = SEARCHES.includes(name) ? "tool.found" : "tool.done";
    this.state.textContent = t(said.error ? "tool.failed" : outcome, { count: said.total ?? said.count ?? results.length });
    add(
      this.results,
      h("h4", t("tool.results")),
      said.error && h("p.chat-tool-error", String(said.error)),
      !said.error && !results.length && h("p.muted", t("tool.none")),
      h("ul.list.stack.tight.chat-results", results.map((result) => toolResult(name, result ?? {}))),
    );
  }
}

/**
 * @param {string} tool
 * @param {NonNullable<ToolResult>} result
 */
function toolResult(tool, result) {
  const title = String(result.title ?? "");
  const url = webAddress(result.url);
  const isPhoto = SCREENSHOT_TOOLS.includes(tool) && Number.isInteger(result.id);
  /** @type {HTMLElement} */
  let heading = h("strong", title);
  if (isPhoto) return photoResult(Number(result.id), title, String(result.summary || result.snippet || ""));
  if (url) {
    heading = h("a", {
      href: url,
      target: "_blank",
      rel: "noopener noreferrer",
      text: title || url,
      "data-host": unnamedHost(title || url, url),
    });
  }
  return h("li", heading, h("p", String(result.summary || result.snippet || "")));
}

/**
 * What a tool found of a screenshot; of a veiled one only its number, and why it is veiled.
 *
 * @param {number} id
 * @param {string} title
 * @param {string} text
 */
function photoResult(id, title, text) {
  const node = h("li", citation(id, `#${id}`));
  lookUp([id]).then((found) => {
    const photo = found.get(id) ?? { id, sensitive: [] };
    veilable(node, photo, (veiled) =>
      fill(node, citation(id, veiled ? `#${id}` : `#${id} ${title}`), h("p", veiled ? reasonOf(photo) : text)));
  }, () => {}); // without it only the number is shown
  return node;
}

/**
 * @param {number} id
 * @param {string} label
 */
function citation(id, label) {
  const name = `${label}: ${t("cited.open", { id })}`;
  return h("button.chat-citation", { type: "button", text: label, "aria-label": name, on: { click: () => openPhoto(id) } });
}

/**
 * Turn each `#12` in a text into a button, where `known` has that id. Returns the ids in order.
 *
 * @param {Element} root
 * @param {Map<number, string>} known
 */
function linkCitations(root, known) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const nodes = [];
  while (walker.nextNode()) nodes.push(/** @type {Text} */ (walker.currentNode));
  /** @type {Set<number>} */
  const ids = new Set();
  for (const node of nodes) {
    if (node.parentElement?.closest("a, code, pre")) continue;
    const pieces = [];
    let end = 0;
    for (const match of node.data.matchAll(CITATION)) {
      const id = Number(match[1]);
      if (!known.has(id)) continue;
      ids.add(id);
      const before = node.data.slice(end, match.index);
      end = match.index + match[0].length;
      const title = node.data.slice(end).trim() ? null : node.nextElementSibling;
      const isTitled = title?.tagName === "STRONG" && node.nextSibling === title;
      pieces.push(before, citation(id, isTitled ? title.textContent ?? match[0] : match[0]));
      if (isTitled) {
        title.remove();
        end = node.data.length;
      }
    }
    if (pieces.length) node.replaceWith(...pieces, node.data.slice(end));
  }
  return [...ids];
}

/**
 * A row of thumbnails that open their screenshots, or null without ids. A deleted screenshot shows its number only.
 *
 * @param {number[]} ids
 * @param {Map<number, string>} titles
 */
export function citedPhotos(ids, titles = new Map()) {
  if (!ids.length) return null;
  const looked = lookUp(ids);
  const cited = (/** @type {number} */ id) => {
    const number = h("span.cited-number", `#${id}`);
    const node = h(
      "button.cited-photo",
      { type: "button", "aria-label": t("cited.open", { id }), on: { click: () => openPhoto(id) } },
      number,
    );
    looked.then((found) => {
      const photo = found.get(id) ?? { id, sensitive: [] };
      veilable(node, photo, (veiled) => {
        node.title = veiled ? reasonOf(photo) : titles.get(id) ?? "";
        fill(node, veiled ? h("span.veil", icon("hidden")) : picture(`/api/photos/${id}/thumbnail`, ""), number);
      });
    }, () => {}); // without it no picture is shown
    return node;
  };
  return h("ul.list.row.cited", { "aria-label": t("cited.title") }, ids.map((id) => h("li", cited(id))));
}

/** @param {unknown} value */
function webAddress(value) {
  const url = URL.canParse(String(value)) ? new URL(String(value)) : null;
  return url && ["http:", "https:"].includes(url.protocol) ? url.href : "";
}

/**
 * @param {string | null} text
 * @returns {any} null where it is none
 */
export function readJson(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
