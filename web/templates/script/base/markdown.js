// Renders the Markdown of models as elements. Libraries produce HTML text that then needs sanitising; this renderer produces text
// nodes, so there is nothing to sanitise, and raw HTML is shown as text. Supported: headings, paragraphs, lists (nested, numbered,
// tasks), quotes, code, tables, rules, emphasis, strikethrough, links and bare URLs.

import { h } from "./dom.js";

const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
const MOST_NESTED = 12; // deeper quotes and lists are shown as text, so that a hostile text cannot exhaust the stack

const BLOCK_STARTS = /^(\s{0,3}(#{1,6}\s|>|```|~~~|([-*_])(\s*\3){2,}\s*$)|\s*([-*+]|\d{1,9}[.)])\s+\S)/;
const LIST_ITEM = /^(\s*)([-*+]|(\d{1,9})[.)])(\s+)(.*)$/s; // with s, "." also matches U+2028: no backtracking
const MOST_COLUMNS = 64; // short rows are filled up to this, so that a table stays a bounded multiple of its text

/**
 * `link(text, href)` may return an element for a link; otherwise this renderer makes one.
 *
 * @typedef {{ link?: (text: string, href: string) => Node | void }} MarkdownOptions
 * @param {string | null} text
 * @param {MarkdownOptions} options
 */
export function markdown(text, { link } = {}) {
  const fragment = document.createDocumentFragment();
  blocks(fragment, String(text ?? "").replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), { link }, 0);
  return fragment;
}

/**
 * The words of a Markdown text without its marks, in one line, for lists.
 *
 * @param {string | null} text
 */
export function plainText(text) {
  const said = [...markdown(text).children].map(
    (block) => [...block.querySelectorAll("li, td, th")].map((part) => part.textContent).join(" ") || block.textContent,
  );
  return said.join(" ").replace(/\s+/g, " ").trim();
}

/**
 * @param {Element | DocumentFragment} parent
 * @param {string[]} lines
 * @param {MarkdownOptions} options
 * @param {number} depth
 */
function blocks(parent, lines, options, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s{0,3}(```+|~~~+)\s*(\S*)/.exec(line);
    const heading = /^\s{0,3}(#{1,6})\s/.exec(line);
    if (!line.trim()) at += 1;
    else if (fence) at = codeBlock(parent, lines, at, fence[1]);
    else if (heading) {
      parent.append(inline(h(`h${Math.min(6, heading[1].length + 1)}`), headingText(line.slice(heading[0].length)), options));
      at += 1;
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      parent.append(h("hr"));
      at += 1;
    } else if (/^\s{0,3}>/.test(line) && depth < MOST_NESTED) {
      const quoted = [];
      while (at < lines.length && /^\s{0,3}>/.test(lines[at])) quoted.push(lines[at++].replace(/^\s{0,3}> ?/, ""));
      const quote = h("blockquote");
      blocks(quote, quoted, options, depth + 1);
      parent.append(quote);
    } else if (LIST_ITEM.test(line) && depth < MOST_NESTED) at = list(parent, lines, at, options, depth);
    else if (line.includes("|") && isTableRule(lines[at + 1] ?? "") && cells(line).length <= MOST_COLUMNS) {
      at = table(parent, lines, at, options);
    }
    else {
      const words = [line.trim()];
      at += 1;
      while (at < lines.length && lines[at].trim() && !BLOCK_STARTS.test(lines[at])) words.push(lines[at++].trim());
      parent.append(inline(h("p"), words.join("\n"), options));
    }
  }
}

/**
 * Like `list` and `table`: append the block that begins at line `start`, and return the number of the line after it.
 *
 * @param {Element | DocumentFragment} parent
 * @param {string[]} lines
 * @param {number} start
 * @param {string} fence
 */
function codeBlock(parent, lines, start, fence) {
  let at = start + 1;
  const code = [];
  while (at < lines.length && !lines[at].trim().startsWith(fence)) code.push(lines[at++]);
  parent.append(h("pre", { tabindex: "0" }, h("code", code.join("\n"))));
  return at + 1;
}

/**
 * @param {Element | DocumentFragment} parent
 * @param {string[]} lines
 * @param {number} start
 * @param {MarkdownOptions} options
 * @param {number} depth
 */
function list(parent, lines, start, options, depth) {
  const [, margin = "", , number] = LIST_ITEM.exec(lines[start]) ?? [];
  const node = number ? h("ol", { start: number === "1" ? undefined : number }) : h("ul");
  let at = start;
  while (at < lines.length) {
    const item = LIST_ITEM.exec(lines[at]);
    if (!item || item[1].length > margin.length + 1 || item[1].length < margin.length || Boolean(item[3]) !== Boolean(number)) break;
    const indent = item[1].length + item[2].length + Math.min(item[4].length, 4);
    const inner = [item[5]];
    at += 1;
    while (at < lines.length) {
      const blank = !lines[at].trim();
      const deep = lines[at].search(/\S/) >= Math.min(indent, margin.length + 2);
      const lazy = !blank && lines[at - 1].trim() && !BLOCK_STARTS.test(lines[at]);
      const goesOn = blank && (lines[at + 1] ?? "").search(/\S/) >= Math.min(indent, margin.length + 2);
      if (!(blank ? goesOn : deep || lazy)) break;
      inner.push(lines[at].slice(0, indent).trim() ? lines[at].trimStart() : lines[at].slice(indent));
      at += 1;
    }
    const task = /^\[([ xX])\]\s+/.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length);
    const entry = h("li", { class: task ? "task" : undefined });
    blocks(entry, inner, options, depth + 1);
    unwrapFirst(entry);
    if (task) {
      entry.prepend(
        h("input", { type: "checkbox", checked: task[1] !== " ", disabled: true, "aria-label": entry.textContent.slice(0, 80) }),
        " ",
      );
    }
    node.append(entry);
    if (!lines[at]?.trim() && LIST_ITEM.test(lines[at + 1] ?? "")) at += 1; // a loose list
  }
  parent.append(node);
  return Math.max(at, start + 1);
}

/**
 * Unwrap the first paragraph of a list item, so that a tight list has no paragraph margins.
 *
 * @param {Element} entry
 */
function unwrapFirst(entry) {
  const first = entry.firstElementChild;
  if (!first || first !== entry.firstChild || first.tagName !== "P") return;
  while (first.firstChild) first.before(first.firstChild); // one by one: the number of arguments of a call is limited
  first.remove();
}

/** @param {string} line */
function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {string} line */
function isTableRule(line) {
  return line.includes("-") && cells(line).every((cell) => /^:?-+:?$/.test(cell));
}

/**
 * @param {Element | DocumentFragment} parent
 * @param {string[]} lines
 * @param {number} start
 * @param {MarkdownOptions} options
 */
function table(parent, lines, start, options) {
  const head = cells(lines[start]);
  const body = h("tbody");
  let at = start + 2;
  while (at < lines.length && lines[at].includes("|")) {
    const row = cells(lines[at++]);
    body.append(h("tr", head.map((_, column) => inline(h("td"), row[column] ?? "", options))));
  }
  const titles = h("thead", h("tr", head.map((title) => inline(h("th", { scope: "col" }), title, options))));
  parent.append(h("table", { tabindex: "0" }, titles, body));
  return at;
}

const INLINE = new RegExp([
  String.raw`(?<escape>\\[\\${"`"}*_{}[\]()#+.!|~>-])`,
  String.raw`(?<tick>${"`"}{1,3})(?!${"`"})(?<code>[^\n]{0,2000}?[^${"`"}\n])\k<tick>(?!${"`"})`,
  String.raw`!?\[(?<label>[^\[\]\n]{0,500})\]\((?<href>(?:[^\s()]|\([^\s()]{0,200}\)){1,2000})(?:\s+"[^"\n]{0,200}")?\)`,
  String.raw`(?<strong>\*\*|__)(?=\S)(?<bold>[^\n]{1,2000}?)\k<strong>(?!\*)`,
  String.raw`~~(?=\S)(?<struck>[^~\n]{1,2000}?)~~`,
  String.raw`(?<!\w)_(?=\S)(?<under>[^_\n]{1,2000}?)_(?!\w)`,
  String.raw`\*(?=[^\s*])(?<star>[^*\n]{1,2000}?)\*`,
  String.raw`<?(?<bare>https?:\/\/[^\s<>"'\u3000-\u303f\uff00-\uffef]{1,2000})>?`,
].join("|"), "gu");

/**
 * @param {Element} parent
 * @param {string} text
 * @param {MarkdownOptions} options
 * @param {number} depth
 */
function inline(parent, text, options, depth = 0) {
  let end = 0;
  for (const found of depth < 4 ? text.matchAll(INLINE) : []) {
    const piece = found.groups ?? {};
    if (found.index > end) parent.append(lines(text.slice(end, found.index)));
    end = found.index + found[0].length;
    if (piece.escape) parent.append(piece.escape[1]);
    else if (piece.code !== undefined) parent.append(h("code", piece.code.trim() || piece.code));
    else if (piece.href !== undefined) parent.append(anchor(piece.label || piece.href, piece.href, found[0], options));
    else if (piece.bold !== undefined) parent.append(inline(h("strong"), piece.bold, options, depth + 1));
    else if (piece.struck !== undefined) parent.append(inline(h("s"), piece.struck, options, depth + 1));
    else if (piece.bare) {
      const address = piece.bare.replace(/[.,;:!?)\]}*_~]+$/, "");
      parent.append(anchor(address, address, address, options), piece.bare.slice(address.length));
    } else parent.append(inline(h("em"), piece.under ?? piece.star, options, depth + 1));
  }
  if (end < text.length) parent.append(lines(text.slice(end)));
  return parent;
}

/**
 * A link, or the text as written where the scheme is not allowed.
 *
 * @param {string} label
 * @param {string} href
 * @param {string} written
 * @param {MarkdownOptions} options
 */
function anchor(label, href, written, { link }) {
  const own = link?.(label, href);
  if (own) return own;
  if (!SAFE_LINK.test(href)) return document.createTextNode(written);
  return h("a", { href, rel: "noopener noreferrer", target: "_blank", text: label, "data-host": unnamedHost(label, href) });
}

/**
 * The host of a link whose text does not begin with it, because a text may lie; it is shown beside the link. Undefined where it need
 * not be.
 *
 * @param {string} label
 * @param {string} href
 */
export function unnamedHost(label, href) {
  const url = URL.canParse(href) ? new URL(href) : null;
  if (!url) return undefined;
  const host = url.host || url.pathname; // an address of mail has no host
  const shown = label.trim().toLowerCase().replace(/^https?:\/\//, "");
  const isNamed = shown.startsWith(host.toLowerCase()) && ["", "/", "?", "#"].includes(shown.charAt(host.length));
  return isNamed ? undefined : host;
}

/**
 * The text of a heading without the number signs that may close it. In code, because a regular expression for it would backtrack.
 *
 * @param {string} rest
 */
function headingText(rest) {
  const text = rest.trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trimEnd();
}

/** @param {string} text */
function lines(text) {
  const fragment = document.createDocumentFragment();
  text.split("\n").forEach((line, number) => fragment.append(...(number ? [h("br"), line] : [line])));
  return fragment;
}
