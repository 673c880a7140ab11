// Settings: feeds, the secret addresses at which calendars and feed readers follow what is here.

import { erase } from "../base/actions.js";
import { api } from "../base/api.js";
import { button, choice, field, h } from "../base/dom.js";
import { formatAgo } from "../base/format.js";
import { formDialog, settingsCard, settingsRow } from "./panels.js";
import { load } from "../base/shell.js";
import { makeFeed, showAddress } from "../base/subscribe.js";
import { t } from "../base/texts.js";

/**
 * @typedef {object} FeedFields
 * @property {number} id
 * @property {"agenda" | "notes" | "search"} kind
 * @property {string} query
 * @property {number | null} token_id
 * @property {string | null} last_used_at
 */

/** The card of the feeds, and the function that ends its loading. */
export function feedsCard() {
  const body = h("div");
  const show = () => load(body, (signal) => api.get("/api/feeds", null, { signal }), (/** @type {{ feeds: FeedFields[] }} */ { feeds }) =>
    (feeds.length ? h("ul.list", feeds.map(item)) : h("p.hint", t("feeds.none"))));

  /** @param {FeedFields} feed */
  function item({ id, kind, query, token_id: token, last_used_at: used }) {
    const name = kind === "search" ? t("feeds.searched", { query }) : t(`feeds.${kind}`);
    const title = t("feeds.revoke");
    const revoke = button(title, { label: `${title}: ${name}`, click: () =>
      erase(revoke, { title, text: t("feeds.revokeText"), path: `/api/feeds/${id}`, action: title }, show) });
    return settingsRow(
      name,
      [used ? t("feeds.used", { when: formatAgo(used) }) : t("feeds.unused"), token ? t("feeds.device") : ""],
      revoke,
    );
  }

  function create() {
    const query = h("input", { type: "search", maxlength: 1000, spellcheck: "false" });
    const asked = field(t("feeds.query"), query, t("feeds.queryText"));
    const changed = () => {
      asked.hidden = kind.value !== "search";
      query.required = !asked.hidden;
    };
    const kind = choice(
      [
        ["agenda", t("feeds.agenda")],
        ["notes", t("feeds.notes")],
        ["search", t("feeds.search")],
      ],
      "agenda",
      { on: { change: changed } },
    );
    changed();
    formDialog({ title: t("feeds.add"), body: [field(t("feeds.kind"), kind), asked], action: t("feeds.create"), submit: async () => {
      const made = await makeFeed(/** @type {any} */ (kind.value), asked.hidden ? "" : query.value);
      setTimeout(() => (showAddress(made), show())); // once the form has closed
    } });
  }

  const card = settingsCard(
    t("feeds.title"),
    h("p.hint", t("feeds.lead")),
    body,
    h("div.row", button(t("feeds.add"), { glyph: "plus", click: create })),
  );
  return { card, show };
}
