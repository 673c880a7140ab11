// What a photo says, as data: a card for each record in the panel beside the picture. A tap on the pencil of a value corrects it where
// it is, and the same mistake on other screenshots of the seller is offered to be corrected, too.

import { api } from "../base/api.js";
import { fail, sentence, toast } from "../base/dialogs.js";
import { button, fill, h, icon } from "../base/dom.js";
import { formatAmount, formatLocal, formatNumber } from "../base/format.js";
import { copyText } from "../base/shell.js";
import { t } from "../base/texts.js";
import { tell } from "../base/upload.js";

/**
 * @typedef {{ find: (lines: number[]) => void, saved: (detail: PhotoDetail, focus: string) => void, heading?: string }} RecordActions
 * @typedef {{ type: string, field: string, party: string, photos: { photo_id: number }[] }} Proposal
 */

/**
 * Show the records of a photo. A field that is on the picture is a button that shows its lines there.
 *
 * @param {HTMLElement} content the panel
 * @param {PhotoDetail} photo
 * @param {RecordActions} actions
 */
export function recordCards(content, photo, actions) {
  const place = /** @type {HTMLElement | null} */ (content.querySelector(".details-records"));
  if (!place) return;
  const isOwn = photo.own.includes("records");
  fill(place, photo.records.map((_, at) => recordCard(photo, at, actions)), isOwn && ownMark(photo, actions));
  if (isOwn) propose(place, photo).catch(() => {}); // it is offered when the photo is opened the next time
}

/**
 * @param {PhotoDetail} photo
 * @param {number} at
 * @param {RecordActions} actions
 */
function recordCard(photo, at, actions) {
  const record = photo.records[at];
  const rows = record.fields.map((field) => {
    const { name, value, lines } = field;
    const text = valueText(value);
    const line = lines.length ? button(text, { kind: "quiet record-value", title: t("records.show"), click: () => actions.find(lines) }) : h("span", text);
    const place = h("dd.record-line", line);
    if (!Array.isArray(value)) {
      place.append(button("", { glyph: "copy", kind: "quiet own-pencil", label: t("details.copy", { value: text }), click: () => copyText(text) }));
      const pencil = button("", { glyph: "edit", kind: "quiet own-pencil", label: t("own.edit", { name: t(`recordFields.${name}`) }),
        dataset: { record: `${at}-${name}` }, click: () => correct(place, pencil, photo, at, field, actions) });
      place.append(pencil);
    }
    return [h("dt", t(`recordFields.${name}`)), place];
  });
  return h("section.record", h(actions.heading ?? "h4", t(`records.${record.type}`)), h("dl.facts.record-facts", rows));
}

/**
 * A field in place of a value. Leaving it or Enter saves it, Escape takes it back.
 *
 * @param {HTMLElement} place
 * @param {HTMLElement} pencil
 * @param {PhotoDetail} photo
 * @param {number} at
 * @param {RecordField} field
 * @param {RecordActions} actions
 */
function correct(place, pencil, photo, at, field, actions) {
  const { name, value } = field;
  const written = typeof value === "string" ? value : `${/** @type {Amount} */ (value).value} ${/** @type {Amount} */ (value).currency}`;
  const type = typeof value !== "string" ? "text" : /^\d{4}-\d\d-\d\dT/.test(value) ? "datetime-local" : /^\d{4}-\d\d-\d\d$/.test(value) ? "date" : "text";
  const input = h("input.own-input", { type, value: written, maxlength: 500, "aria-label": t(`recordFields.${name}`) });
  const problem = h("p.problem", { role: "alert" });
  const shown = [...place.childNodes];
  let isOver = false;
  const close = () => {
    isOver = true;
    fill(place, ...shown);
  };
  const save = async () => {
    if (isOver) return;
    const text = input.value.trim();
    if (!text || text === written) return close();
    const next = typeof value === "string" ? text : amountOf(text, /** @type {Amount} */ (value).currency);
    if (!next) {
      problem.textContent = t("records.noAmount");
      return;
    }
    isOver = true; // leaving the field is no second time
    input.readOnly = true;
    const records = photo.records.map(({ type: kind, fields }, number) => ({ type: kind, fields: fields.map((one) =>
      number === at && one.name === name ? { name, value: next, lines: one.lines } : one) }));
    try {
      actions.saved(await api.patch(`/api/photos/${photo.id}`, { records }), `[data-record="${at}-${name}"]`);
    } catch (error) {
      isOver = input.readOnly = false;
      problem.textContent = sentence(error);
      if (!place.isConnected) fail(error); // another picture is shown by now
    }
  };
  input.addEventListener("blur", save);
  input.addEventListener("keydown", (/** @type {any} */ event) => {
    event.stopPropagation(); // keys of the viewer
    if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault(); // Escape does not close the viewer
    if (event.key === "Enter") return void save();
    close();
    pencil.focus();
  });
  fill(place, h("div.own-editing", input, problem));
  input.focus();
}

/**
 * @param {PhotoDetail} photo
 * @param {RecordActions} actions
 */
function ownMark(photo, { saved }) {
  const send = async (/** @type {object[] | null} */ records) => saved(await api.patch(`/api/photos/${photo.id}`, { records }), ".own-pencil[data-record]");
  const back = button(t("own.back"), { kind: "quiet", click: async () => {
    try {
      await send(null);
      const again = photo.records.map(({ type, fields }) => ({ type, fields }));
      toast(t("own.isBack"), { action: { label: t("shell.undo"), run: () => send(again).catch(fail) } });
    } catch (error) {
      fail(error);
    }
  } });
  return h("p.own-mark.record-own", icon("edit"), h("span", t("own.yours")), back);
}

/**
 * Offer to correct the same mistake on others. Nothing is changed unless it is accepted.
 *
 * @param {HTMLElement} place
 * @param {PhotoDetail} photo
 */
async function propose(place, photo) {
  /** @type {{ proposals: Proposal[] }} */
  const { proposals } = await api.get(`/api/photos/${photo.id}/proposals`);
  for (const { field, party, photos } of proposals) {
    const count = photos.length;
    const accept = button(t("records.accept"), { click: async () => {
      try {
        /** @type {{ corrected: number[] }} */
        const { corrected } = await api.post(`/api/photos/${photo.id}/proposals`, { field, photo_ids: photos.map((one) => one.photo_id) });
        offer.remove();
        toast(t("records.accepted", { count: formatNumber(corrected.length) }));
        for (const id of corrected) tell("changed", id);
      } catch (error) {
        fail(error);
      }
    } });
    const text = t(count === 1 ? "records.proposeOne" : "records.propose", { count: formatNumber(count), party, field: t(`recordFields.${field}`) });
    const offer = h("div.record-proposal", { role: "status" }, h("p", text), accept);
    place.append(offer);
  }
}

/**
 * An amount as a person types it, "23,80" or "23.80 EUR", in its normal form; null for something else.
 *
 * @param {string} text
 * @param {string} currency where none is written
 */
function amountOf(text, currency) {
  const found = /^(-?)(\d[\d.,' ]*?)(?:[.,](\d{1,2}))? ?([A-Za-z]{3})?$/.exec(text);
  if (!found) return null;
  const [, sign, whole, cents, code] = found;
  const digits = whole.replace(/\D/g, "");
  return { value: `${sign}${digits}${cents ? `.${cents}` : ""}`, currency: (code ?? currency).toUpperCase() };
}

/** @param {RecordField["value"]} value */
function valueText(value) {
  if (typeof value === "string") return formatLocal(value);
  if (!Array.isArray(value)) return formatAmount(value);
  return value.map((entry) => Object.values(entry).join(" · ")).join("\n");
}
