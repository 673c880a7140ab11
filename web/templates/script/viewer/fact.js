// What a screenshot is kept for, in one line: the record that it is about, with a button for the one value that is most often wanted of
// it, such as the password of a Wi-Fi. The button copies a value that is covered, too: nothing is shown for that.

import { button, h, icon } from "../base/dom.js";
import { copyText } from "../base/shell.js";
import { t, term } from "../base/texts.js";
import { entitiesOf, entityTarget } from "./details.js";

// Fields of records, the most wanted first.
const WANTED = [
  "password", "code", "pickupCode", "trackingUrl", "url", "iban", "trackingNumber", "reservationId", "ticketNumber", "telephone", "email",
  "confirmationNumber", "orderNumber",
];
/** @type {Record<string, string>} the fields that types of entities are like */
const LIKE = { link: "url", url: "url", website: "url", iban: "iban", password: "password", phone: "telephone", email: "email" };
const NAMING = ["ssid", "service"]; // fields that name a covered record and give nothing away

/** @typedef {{ name: string, value: string, href: string | null }} WantedValue */

/**
 * The card of a photo; null where it has nothing to say.
 *
 * @param {PhotoDetail} photo
 * @param {{ covered: boolean, title?: string, open?: () => unknown }} options `title` stands for a record where there is none; `open`
 *   makes the words a button
 */
export function factCard(photo, { covered, title, open }) {
  const record = photo.records.find(({ line }) => line);
  const value = wantedValue(photo);
  const wanted = value && !(covered && value.href) ? value : null; // an address would be shown
  const line = covered ? coveredName(record) : record?.line || title;
  if (!wanted && !line) return null;
  if (!wanted && line?.split(" · ").every((part) => photo.title.includes(part))) return null; // it is the title once more
  const words = [record && h("span.muted", t(`records.${record.type}`)), h("strong", line || (covered ? t("veil.title") : wanted?.href ? new URL(wanted.href).host : wanted?.value))];
  return h("div.fact-card", open ? h("button.fact-words", { type: "button", on: { click: open } }, words) : h("div.fact-words", words),
    wanted && wantedButton(wanted));
}

/**
 * The value of a photo that is most often wanted.
 *
 * @param {PhotoDetail} photo
 * @returns {WantedValue | null}
 */
export function wantedValue(photo) {
  const fields = photo.records.flatMap((record) => record.fields);
  for (const name of WANTED) {
    const value = fields.find((field) => field.name === name)?.value;
    if (typeof value === "string" && value) return { name, value, href: name.toLowerCase().endsWith("url") ? entityTarget("link", value) : null };
  }
  const entity = entitiesOf(photo).filter(({ type }) => type in LIKE)
    .sort((one, other) => WANTED.indexOf(LIKE[one.type]) - WANTED.indexOf(LIKE[other.type]))[0];
  return entity ? { name: LIKE[entity.type], value: entity.value, href: LIKE[entity.type] === "url" ? entity.href : null } : null;
}

/** @param {RecordFields | undefined} record */
function coveredName(record) {
  const named = record?.fields.find(({ name }) => NAMING.includes(name))?.value;
  return typeof named === "string" ? named : "";
}

/** @param {WantedValue} wanted */
function wantedButton({ name, value, href }) {
  const text = term("wanted", name);
  if (!href) return button(text, { glyph: "copy", kind: "fact-do", click: () => copyText(value) });
  return h("a.button.fact-do", { href, target: "_blank", rel: "noopener noreferrer", title: href }, icon("open"), h("span", text));
}
