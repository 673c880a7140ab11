// Settings: feeds, the secret addresses at which calendars and feed readers follow what is here.

import { erase } from "../base/actions.js";
import { api } from "../base/api.js";
import { codeRow, isLoopback } from "../base/connect.js";
import { dialog } from "../base/dialogs.js";
import { button, choice, field, h } from "../base/dom.js";
import { formatAgo } from "../base/format.js";
import { formDialog, settingsCard, settingsRow } from "./panels.js";
import { load } from "../base/shell.js";
import { t, words } from "../base/texts.js";

words({
  feeds: {
    title: "Calendars and feed readers|日历与订阅",
    lead: "Subscribe to your agenda in a calendar, or to notes and searches in a feed reader. Whoever has an address can read its feed. Sensitive screenshots are left out.|在日历中订阅日程，或在阅读器中订阅笔记和搜索。任何拥有地址的人都能读取相应内容。敏感截图不会包含在内。",
    none: "No feeds yet.|还没有订阅地址。",
    add: "New feed|新建订阅",
    kind: "Content|内容",
    agenda: "Agenda, for calendars|日程（用于日历）",
    notes: "Notes|笔记",
    search: "A search|一个搜索",
    searched: "Search: {query}|搜索：{query}",
    query: "Search for|搜索内容",
    queryText: "As in the search field, such as app:Mail invoice|与搜索框相同，例如 app:Mail 发票",
    create: "Make address|生成地址",
    made: "Copy the address now|请立即复制地址",
    madeText: "It is shown only this once. Add it to your calendar or feed reader as a subscription.|地址只显示这一次。请在日历或阅读器中将其添加为订阅。",
    address: "Address of the feed|订阅地址",
    open: "Open in a calendar app|在日历应用中打开",
    used: "Last read {when}|上次读取：{when}",
    unused: "Not read yet|尚未读取",
    device: "Ends with the access of the device that made it|随创建它的设备的访问权限一同失效",
    revoke: "Revoke|撤销",
    revokeText: "Programs that use this address get nothing any more. This cannot be undone.|使用此地址的程序将无法再读取内容。此操作无法撤销。",
  },
});

/** @typedef {{ id: number, kind: "agenda" | "notes" | "search", query: string, token_id: number | null, last_used_at: string | null }} FeedFields */

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
    return settingsRow(name, [used ? t("feeds.used", { when: formatAgo(used) }) : t("feeds.unused"), token ? t("feeds.device") : ""], revoke);
  }

  function create() {
    const query = h("input", { type: "search", maxlength: 1000, spellcheck: "false" });
    const asked = field(t("feeds.query"), query, t("feeds.queryText"));
    const changed = () => {
      asked.hidden = kind.value !== "search";
      query.required = !asked.hidden;
    };
    const kind = choice([["agenda", t("feeds.agenda")], ["notes", t("feeds.notes")], ["search", t("feeds.search")]], "agenda", { on: { change: changed } });
    changed();
    formDialog({ title: t("feeds.add"), body: [field(t("feeds.kind"), kind), asked], action: t("feeds.create"), submit: async () => {
      const made = await api.post("/api/feeds", { kind: kind.value, query: asked.hidden ? "" : query.value, address: await reachable() });
      setTimeout(() => (showAddress(made), show())); // once the form has closed
    } });
  }

  const card = settingsCard(t("feeds.title"), h("p.hint", t("feeds.lead")), body, h("div.row", button(t("feeds.add"), { glyph: "plus", click: create })));
  return { card, show };
}

/** @param {{ kind: string, url: string }} made */
function showAddress({ kind, url }) {
  dialog({ title: t("feeds.made"), body: h("div.stack", h("p", t("feeds.madeText")), codeRow(url, t("feeds.address")),
    kind === "agenda" && h("div.row", h("a.button", { href: url.replace(/^https?:/, "webcal:"), text: t("feeds.open") }))) });
}

/** The address by which other programs reach the service: where this page was opened on this machine, not that one. */
async function reachable() {
  if (!isLoopback(location.hostname)) return location.origin;
  const { addresses } = await api.get("/api/addresses");
  return addresses[0] ?? location.origin;
}
