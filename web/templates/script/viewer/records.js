// What a photo says, as data: a card for each record in the panel beside the picture.

import { button, fill, h } from "../base/dom.js";
import { formatAmount, formatLocal } from "../base/format.js";
import { t } from "../base/texts.js";

/**
 * Show the records of a photo. A field that is on the picture is a button that shows its lines there.
 *
 * @param {HTMLElement} content the panel
 * @param {RecordFields[]} records
 * @param {(lines: number[]) => void} find
 */
export function recordCards(content, records, find) {
  const place = content.querySelector(".details-records");
  if (place) fill(place, records.map((record) => recordCard(record, find)));
}

/**
 * @param {RecordFields} record
 * @param {(lines: number[]) => void} find
 */
function recordCard(record, find) {
  const rows = record.fields.map(({ name, value, lines }) => {
    const text = valueText(value);
    const line = lines.length ? button(text, { kind: "quiet record-value", title: t("records.show"), click: () => find(lines) }) : text;
    return [h("dt", t(`recordFields.${name}`)), h("dd", line)];
  });
  return h("section.record", h("h4", t(`records.${record.type}`)), h("dl.facts.record-facts", rows));
}

/** @param {RecordField["value"]} value */
function valueText(value) {
  if (typeof value === "string") return formatLocal(value);
  if (!Array.isArray(value)) return formatAmount(value);
  return value.map((entry) => Object.values(entry).join(" · ")).join("\n");
}
