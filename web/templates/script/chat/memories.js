// Memories: what the assistant knows about the person. Filters with counts, the list, and a button to forget each.

import { erase, glyphButton, moreButton } from "../base/actions.js";
import { api } from "../base/api.js";
import { add, choice, field, fill, h } from "../base/dom.js";
import { formatAgo, formatDate, formatNumber, timeAgo } from "../base/format.js";
import { notesHead } from "./notes.js";
import { emptyState, load, skeleton } from "../base/shell.js";
import { t, term } from "../base/texts.js";
import { coveredText, reasonFor } from "../viewer/veil.js";

const MEMORY_KINDS = ["long_term", "short_term"];
const MEMORY_CATEGORIES = ["fact", "people", "project", "finance", "schedule", "preference", "interest", "habit"];
const MEMORIES_SHOWN = 50;

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const memories = {
  show: (container) => new MemoryList(container).leave,
};

/**
 * The options of a filter, beginning with "All". The counts are added later.
 *
 * @param {string[]} names
 * @param {(name: string) => string} labelOf
 */
function named(names, labelOf) {
  return [["", t("list.all")], ...names.map((name) => [name, labelOf(name)])];
}

class MemoryList {
  #kind = choice(named(MEMORY_KINDS, (name) => t(`memories.${name}`)), "", { on: { change: () => this.#load() } });
  #category = choice(named(MEMORY_CATEGORIES, (name) => term("memory", name)), "", { on: { change: () => this.#load() } });
  #body = h("div.stack");
  #list = h("ul.list.stack");
  #count = h("p.hint", { role: "status" });
  #more = moreButton(() => this.#next());
  #total = 0;
  #stop = () => {};

  #filters = h("div.memories-filters", { hidden: true }, field(t("memories.kind"), this.#kind),
    field(t("memories.category"), this.#category));

  /** @param {HTMLElement} container */
  constructor(container) {
    this.leave = () => this.#stop();
    add(container, notesHead("memories"), h("p.muted", t("memories.lead")),
      this.#filters, this.#body);
    this.#load();
    this.#countUp();
  }

  #load() {
    this.#stop();
    this.#stop = load(this.#body, (signal) => this.#page(1, signal), ({ total, items }) => this.#show(total, items), skeleton(4, "block"));
  }

  /**
   * @param {number} page
   * @param {AbortSignal} [signal]
   */
  #page(page, signal) {
    const filters = { memory_type: this.#kind.value, category: this.#category.value };
    return api.get("/api/memories", { page, page_size: MEMORIES_SHOWN, ...filters }, { signal });
  }

  /**
   * @param {number} total
   * @param {MemoryFields[]} items
   */
  #show(total, items) {
    this.#total = total;
    fill(this.#list, items.map((memory) => this.#item(memory)));
    this.#counted();
    const isFiltered = Boolean(this.#kind.value || this.#category.value);
    this.#filters.hidden = !items.length && !isFiltered;
    if (items.length) return [this.#count, this.#list, h("div.row", this.#more)];
    if (isFiltered) return emptyState({ glyph: "memory", title: t("memories.emptyFilter") });
    return emptyState({ glyph: "memory", title: t("memories.emptyTitle"), text: t("memories.empty"),
      action: h("a.button.primary", { href: "#/chat", text: t("chat.title") }) });
  }

  // The next page. Deletions shift the list, so the page that is only partly shown is fetched again.
  async #next() {
    const shown = this.#list.children.length;
    const first = Math.floor(shown / MEMORIES_SHOWN) + 1;
    for (const page of shown % MEMORIES_SHOWN ? [first, first + 1] : [first]) {
      const { total, items } = await this.#page(page);
      const known = new Set([...this.#list.children].map((item) => item.getAttribute("data-id")));
      this.#total = total;
      add(
        this.#list,
        items
          .filter((/** @type {MemoryFields} */ { id }) => !known.has(String(id)))
          .map((/** @type {MemoryFields} */ memory) => this.#item(memory)),
      );
    }
    this.#counted();
  }

  #counted() {
    const shown = this.#list.children.length;
    this.#count.textContent = t("memories.count", { shown: formatNumber(shown), total: formatNumber(this.#total) });
    this.#more.hidden = shown >= this.#total;
  }

  async #countUp() {
    const { total, categories, ...kinds } = await api.get("/api/memories/stats").catch(() => ({}));
    if (total === undefined) return; // the list reports the failure
    for (const [select, counts] of [[this.#kind, kinds], [this.#category, categories]]) {
      for (const option of select.options) {
        option.text = `${option.label.replace(/ \(.*/, "")} (${formatNumber(option.value ? counts[option.value] ?? 0 : total)})`;
      }
    }
  }

  /** @param {MemoryFields} memory */
  #item(memory) {
    const importance = Math.round(100 * memory.importance);
    const weight = `${t("memories.importance")} ${importance} %`;
    const ends = memory.expires_at;
    const name = memory.sensitive?.length ? reasonFor(memory.sensitive) : memory.content;
    const remove = glyphButton("trash", `${t("memories.delete")}: ${name}`, () =>
      erase(remove, {
        title: t("memories.delete"), text: t("memories.deleteText", { content: name }), action: t("memories.delete"),
        path: `/api/memories/${memory.id}`, done: t("memories.deleted"),
      }, () => this.#gone(item)));
    const item = h("li.card.row.memories-item", { dataset: { id: String(memory.id) } },
      h("div.grow.stack.tight",
        coveredText(memory.sensitive, () => h("p", memory.content)),
        h("div.row.small.muted",
          h("span.badge", term("memory", memory.category)),
          h("span", term("source", memory.source_type)), timeAgo(memory.created_at),
          memory.access_count > 0 && h("span", t("memories.used", { count: formatNumber(memory.access_count) })),
          ends && h("span", { title: formatDate(ends), text: t("memories.expires", { when: formatAgo(ends) }) }))),
      h("div.meter.memories-meter", { role: "img", "aria-label": weight, title: weight },
        h("i", { style: { width: `${importance}%` } })), remove);
    return item;
  }

  /** @param {Element} item */
  #gone(item) {
    const next = item.nextElementSibling ?? item.previousElementSibling;
    item.remove();
    this.#total -= 1;
    this.#counted();
    if (next) next.querySelector("button")?.focus();
    else this.#load();
    this.#countUp();
  }
}
