// What is known about a photo: the panel beside the picture in the viewer.

import { button, h } from "../base/dom.js";
import { formatBytes, formatDate, formatPercent } from "../base/format.js";
import { copyText } from "../base/shell.js";
import { deviceLabel, t, term } from "../base/texts.js";

const LINES_SHOWN = 12; // of the text, until the rest is asked for
const LONG_TEXT = 700; // characters: few lines can be long ones
const SHOWN_VALUE = 60; // characters of a value in the name of its button

/** @type {unknown[]} */
export const UNFINISHED = ["pending", "processing"];

/**
 * @param {PhotoDetail} photo
 * @param {{ title: string, reprocess: (pressed: HTMLButtonElement) => unknown, veil: Child }} options `veil` is shown in place of what
 *   was read
 */
export function detailsOf(photo, { title, reprocess, veil }) {
  const { analysis } = photo;
  const isDone = analysis.status === "done";
  const entities = entitiesOf(photo).filter(({ type, value }) => type !== "time" && !isRecorded(photo, value)); // a bare time says nothing
  const text = textOf(photo);
  const again = button(t("details.reprocess"), { glyph: "refresh", click: () => reprocess(again) });
  const facts = [
    ["taken", formatDate(photo.original_timestamp)],
    ["uploaded", formatDate(photo.created_at)],
    ["app", analysis.app_name],
    ["type", isDone && analysis.content_category && term("category", analysis.content_category)],
    ["purpose", isDone && analysis.intent && term("intent", analysis.intent)],
    ["device", deviceLabel(photo.device_id, photo.device_name)],
    ["size", `${photo.width} × ${photo.height}, ${formatBytes(photo.file_size)}`],
    ["name", !veil && photo.filename],
    ["state", t(`status.${analysis.status}`)],
    ["confidence", isDone && formatPercent(analysis.confidence)],
  ];
  return [
    h("h3.details-title", title),
    veil,
    analysis.status === "error" &&
      h("div.details-failed", { role: "alert" }, h("strong", t("details.failed")), h("p", analysis.error_message), again),
    UNFINISHED.includes(analysis.status) && h("p.muted", { role: "status", text: t("details.waiting") }),
    !veil && [
      (photo.own.includes("summary") || saysMore(photo.summary, title)) && h("p.details-summary", photo.summary),
      h("div.details-records"), // for what it says, as data (records.js)
      h("div.details-own"), // for tags and a note (own-words.js)
      h("div.details-agenda"), // for what happens on days that it names (agenda.js)
      entities.length > 0 && h("section", h("h4", t("details.entities")), h("ul.list.entities", entities.map(entityRow))),
      text ? textSection(text) : isDone && h("p.muted.small", t("details.noText")),
    ],
    h(
      "section",
      h("h4", t("details.facts")),
      h(
        "dl.facts",
        facts.filter(([, value]) => value).map(([name, value]) => [h("dt", t(`details.${name}`)), h("dd", value)]),
      ),
    ),
  ];
}

/**
 * Whether a text has words that another one has not.
 *
 * @param {string} text
 * @param {string} other
 */
function saysMore(text, other) {
  const known = detailWords(other);
  return detailWords(text).some((word) => word.length > 2 && !known.includes(word));
}

/** @param {string} text */
const detailWords = (text) => /** @type {string[]} */ (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);

/**
 * Whether a value is listed with the records of a photo.
 *
 * @param {PhotoDetail} photo
 * @param {string} value
 */
const isRecorded = ({ records }, value) =>
  records.some(({ fields }) => fields.some((field) => field.value === value || field.text === value));

/** @param {string} text */
function textSection(text) {
  const isLong = text.split("\n", LINES_SHOWN + 1).length > LINES_SHOWN || text.length > LONG_TEXT;
  const body = h("p.details-text", { class: isLong ? "short" : "", text });
  const more = button(t("details.more"), { kind: "quiet", "aria-expanded": "false" });
  more.addEventListener("click", () => {
    const isShort = body.classList.toggle("short");
    more.setAttribute("aria-expanded", String(!isShort));
    more.textContent = t(isShort ? "details.more" : "details.less");
  });
  return h(
    "section",
    h(
      "div.row.apart",
      h("h4", t("details.text")),
      button("", { glyph: "copy", kind: "quiet", label: t("details.copy", { value: t("details.text") }), click: () => copyText(text) }),
    ),
    body,
    isLong && more,
  );
}

/**
 * The entities of a photo that have a value. A model wrote the list, so it may be anything.
 *
 * @param {PhotoDetail} photo
 * @returns {{ type: string, value: string, href: string | null }[]}
 */
export function entitiesOf({ analysis }) {
  /** @type {Entity[]} */
  const list = parsed(analysis.entities, []);
  if (!Array.isArray(list)) return [];
  return list.filter((entity) => entity?.value).map((entity) => {
    const [type, value] = [String(entity.type).toLowerCase(), String(entity.value)];
    return { type, value, href: entityTarget(type, value) };
  });
}

/** @param {{ type: string, value: string, href: string | null }} entity */
function entityRow({ type, value, href }) {
  const isWeb = href?.startsWith("http");
  const shown = href ? h("a", { href, rel: "noopener noreferrer", target: isWeb ? "_blank" : null, text: value }) : h("span", value);
  return h(
    "li",
    h("span.entity-type", term("entity", type)),
    h("span.grow", shown),
    button("", {
      glyph: "copy",
      kind: "quiet",
      label: t("details.copy", { value: value.slice(0, SHOWN_VALUE) }),
      click: () => copyText(value),
    }),
  );
}

/**
 * The address of an entity, or null. Only web, mail and phone links, whatever type the screenshot claims.
 *
 * @param {string} type
 * @param {string} value
 */
export function entityTarget(type, value) {
  if (/^https?:\/\/\S+$/i.test(value)) return value;
  if (/^(link|url|website)$/.test(type) && /^[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(value)) return `https://${value}`;
  if (type === "email" && /^[^\s@:?&]+@[^\s@:?&]+$/.test(value)) return `mailto:${value}`;
  if (type === "phone" && /^\+?[\d\s()./-]{5,25}$/.test(value)) return `tel:${value.replace(/[^\d+]/g, "")}`;
  return null;
}

/**
 * The text in the picture: what was read here, else what the model says it has read.
 *
 * @param {PhotoDetail} photo
 */
export function textOf({ text, analysis }) {
  if (text) return text;
  const answer = analysis.llm_response;
  if (!answer) return "";
  const start = answer.indexOf("{");
  const told = start < 0 ? null : parsed(answer.slice(start, answer.lastIndexOf("}") + 1), {})?.visible_text;
  return typeof told === "string" ? told : "";
}

/**
 * @param {string} text
 * @param {any} fallback
 */
function parsed(text, fallback) {
  try {
    return JSON.parse(text) ?? fallback;
  } catch {
    return fallback;
  }
}
