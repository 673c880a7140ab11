// Settings: the links to single pictures that lead somewhere, with how often each was opened.

import { erase } from "../base/actions.js";
import { api } from "../base/api.js";
import { button, h } from "../base/dom.js";
import { formatDate } from "../base/format.js";
import { load } from "../base/shell.js";
import { t } from "../base/texts.js";
import { settingsCard, settingsRow } from "./panels.js";

/**
 * @typedef {object} ShareFields
 * @property {number} id
 * @property {number} photo_id
 * @property {number} redacted
 * @property {string} expires_at
 * @property {number} views
 */

/** The card of the links, and the function that ends its loading. */
export function sharesCard() {
  const body = h("div");
  const show = () => load(body, (signal) => api.get("/api/shares", null, { signal }), (/** @type {{ shares: ShareFields[] }} */ { shares }) =>
    (shares.length ? h("ul.list", shares.map(item)) : h("p.hint", t("sharing.none"))));

  /** @param {ShareFields} share */
  function item({ id, photo_id: photo, redacted, expires_at: ends, views }) {
    const title = t("sharing.end");
    const name = h("a", { href: `#/photo/${photo}`, text: t("sharing.photo", { id: photo }) });
    const end = button(title, { label: `${title}: ${name.textContent}`, click: () =>
      erase(end, { title, text: t("sharing.endText"), path: `/api/shares/${id}`, action: title }, show) });
    const facts = [t("sharing.views", { count: views }), t("sharing.ends", { when: formatDate(ends) })];
    return settingsRow(name, [...facts, redacted ? t("sharing.own", { count: redacted }) : t("sharing.bare")], end);
  }

  const card = settingsCard(t("sharing.links"), h("p.hint", t("sharing.linksText")), body);
  return { card, show };
}
