// Settings: webhooks, the programs that are told what happens here, each with the log of what it was sent.

import { erase, settle } from "../base/actions.js";
import { api, isOwner } from "../base/api.js";
import { codeRow } from "../base/connect.js";
import { dialog, toast } from "../base/dialogs.js";
import { add, button, field, h } from "../base/dom.js";
import { feedsCard } from "./feeds.js";
import { formatAgo, formatNumber, formatTime, parseTime } from "../base/format.js";
import { formDialog, settingsCard, settingsRow, toggle } from "./panels.js";
import { load } from "../base/shell.js";
import { t, words } from "../base/texts.js";

words({
  settings: {
    programs: "Programs|程序",
    programsText: "Calendars, feed readers, webhooks|日历、订阅、Webhook",
  },
  webhooks: {
    title: "Webhooks|Webhook",
    lead: "Programs such as Home Assistant, n8n or ntfy are told what happens here. Every call is signed. About sensitive screenshots they learn only that there is one.|通知 Home Assistant、n8n、ntfy 等程序这里发生了什么。每次调用都带有签名。对于敏感截图，它们只会知道有这样一张截图。",
    none: "No webhooks yet.|还没有 Webhook。",
    add: "New webhook|新建 Webhook",
    url: "Address|地址",
    urlText: "Gets one POST for each event|每个事件发送一次 POST",
    name: "Name|名称",
    nameText: "Empty: the host|留空则使用主机名",
    events: "Events|事件",
    photo_analysed: "Screenshot analysed|截图分析完成",
    note_written: "Note written|写好笔记",
    reminder_due: "Reminder due|提醒到期",
    webhook_test: "Test|测试",
    made: "Copy the secret now|请立即复制密钥",
    madeText: "The receiver checks signatures with it (Standard Webhooks). It is shown only this once.|接收方用它验证签名（Standard Webhooks）。密钥只显示这一次。",
    secret: "Secret|密钥",
    test: "Test|测试",
    tested: "{name} has accepted the test.|{name} 已接受测试。",
    failed: "{name} did not accept the test: {problem}|{name} 未接受测试：{problem}",
    log: "Log|日志",
    logTitle: "Log: {name}|日志：{name}",
    logNone: "Nothing was sent yet.|尚未发送任何内容。",
    again: "Send again|重新发送",
    queued: "Sent again in a moment.|即将重新发送。",
    delivered: "Delivered|已送达",
    waiting: "Waiting|等待中",
    failing: "Failed|失败",
    withdrawn: "Withdrawn: deleted before it was sent|已撤回：发送前已被删除",
    next: "next try {when}|下次尝试：{when}",
    soon: "in a moment|即将",
    tries: "tries: {count}|尝试次数：{count}",
    waits: "Events waiting: {count}|等待发送的事件：{count}",
    since: "Failing, first {when}|发送失败，首次：{when}",
    dropped: "Events not sent because too many waited: {count}|因等待过多而未发送的事件：{count}",
    deleteText: "“{name}” gets no events any more, and its log is deleted.|“{name}”将不再收到事件，其日志也会被删除。",
  },
});

/**
 * @typedef {{ id: number, name: string, url: string, events: string[], enabled: boolean, problem: string, failing_since: string | null,
 *   waiting: number, dropped: number }} WebhookFields
 * @typedef {{ id: number, event: string, subject: number, status: string, attempts: number, answer: number | null, problem: string,
 *   created_at: string, tried_at: string | null, next_at: string | null }} DeliveryFields
 */

const WEBHOOK_EVENTS = ["photo.analysed", "note.written", "reminder.due"];

/** @param {string} event */
const eventName = (event) => t(`webhooks.${event.replace(".", "_")}`);

/** @param {HTMLElement} container */
export function showPrograms(container) {
  const feeds = feedsCard();
  add(container, feeds.card);
  const endings = [feeds.show()];
  if (isOwner()) {
    const hooks = webhooksCard();
    add(container, hooks.card);
    endings.push(hooks.show());
  }
  return () => endings.forEach((end) => end());
}

function webhooksCard() {
  const body = h("div");
  const show = () => load(body, (signal) => api.get("/api/webhooks", null, { signal }), (/** @type {{ webhooks: WebhookFields[] }} */ { webhooks }) =>
    (webhooks.length ? h("ul.list", webhooks.map((one) => webhookRow(one, show))) : h("p.hint", t("webhooks.none"))));
  const create = () => {
    const url = h("input", { type: "url", required: true, maxlength: 2048, placeholder: "https://…", spellcheck: "false" });
    const name = h("input", { type: "text", maxlength: 100 });
    const chosen = WEBHOOK_EVENTS.map((event) => h("input", { type: "checkbox", value: event, checked: true }));
    const events = h("fieldset.stack.tight.plain", h("legend", t("webhooks.events")),
      chosen.map((box) => h("label.row", box, h("span", eventName(box.value)))));
    formDialog({ title: t("webhooks.add"), action: t("settings.add"),
      body: [field(t("webhooks.url"), url, t("webhooks.urlText")), field(t("webhooks.name"), name, t("webhooks.nameText")), events],
      submit: async () => {
        const picked = chosen.filter((box) => box.checked).map((box) => box.value);
        const { secret } = await api.post("/api/webhooks", { url: url.value, name: name.value.trim(), events: picked });
        setTimeout(() => { // once the form has closed
          dialog({ title: t("webhooks.made"), body: h("div.stack", h("p", t("webhooks.madeText")), codeRow(secret, t("webhooks.secret"))) });
          show();
        });
      } });
  };
  const card = settingsCard(t("webhooks.title"), h("p.hint", t("webhooks.lead")), body,
    h("div.row", button(t("webhooks.add"), { glyph: "plus", click: create })));
  return { card, show };
}

/**
 * @param {WebhookFields} webhook
 * @param {() => unknown} show
 */
function webhookRow({ id, name, url, events, enabled, problem, failing_since: since, waiting, dropped }, show) {
  const path = `/api/webhooks/${id}`;
  const said = (/** @type {string} */ word) => `${t(word)}: ${name}`;
  const details = [url, events.map(eventName).join(" · "), problem,
    !problem && since ? t("webhooks.since", { when: formatAgo(since) }) : "",
    waiting ? t("webhooks.waits", { count: formatNumber(waiting) }) : "",
    dropped ? t("webhooks.dropped", { count: formatNumber(dropped) }) : ""];
  const on = toggle(said("settings.on"), enabled, (now) => api.patch(path, { enabled: now }).then(show));
  const test = button(t("webhooks.test"), { label: said("webhooks.test"), click: () =>
    settle(test, () => api.post(`${path}/test`), (/** @type {DeliveryFields} */ { status, problem: why }) =>
      (status === "delivered" ? toast(t("webhooks.tested", { name }), { kind: "good" }) : toast(t("webhooks.failed", { name, problem: why }), { kind: "bad" }))) });
  const log = button(t("webhooks.log"), { label: said("webhooks.log"), click: () => showLog(path, name, show) });
  const remove = button("", { glyph: "trash", kind: "quiet", label: said("list.delete"), click: () =>
    erase(remove, { title: t("list.delete"), text: t("webhooks.deleteText", { name }), path }, show) });
  return settingsRow(name, details, on, test, log, remove);
}

/**
 * @param {string} path
 * @param {string} name
 * @param {() => unknown} changed
 */
function showLog(path, name, changed) {
  const body = h("div.webhook-log");
  const draw = () => load(body, (signal) => api.get(`${path}/deliveries`, null, { signal }), (/** @type {{ deliveries: DeliveryFields[] }} */ { deliveries }) =>
    (deliveries.length ? h("ul.list", deliveries.map(entry)) : h("p.hint", t("webhooks.logNone"))));

  /** @param {DeliveryFields} delivery */
  function entry({ id, event, subject, status, attempts, answer, problem, created_at: created, next_at: next }) {
    const test = event === "webhook.test";
    const title = eventName(event) + (test ? "" : ` #${subject}`);
    const outcome = t(`webhooks.${status === "failed" ? "failing" : status}`);
    const due = next && (parseTime(next) > new Date() ? formatTime(next) : t("webhooks.soon"));
    const details = [
      [formatAgo(created), outcome, status === "delivered" && answer, attempts > 1 && t("webhooks.tries", { count: attempts })].filter(Boolean).join(" · "),
      status === "withdrawn" ? "" : [problem, due && t("webhooks.next", { when: due })].filter(Boolean).join(" · "),
    ];
    const label = t("webhooks.again");
    const again = button(label, { label: `${label}: ${title}`, click: () =>
      settle(again, () => api.post(`${path}/deliveries/${id}/send`), () => (toast(t("webhooks.queued")), (end = draw()))) });
    return settingsRow(title, details, !test && status !== "withdrawn" && again);
  }

  let end = draw();
  dialog({ title: t("webhooks.logTitle", { name }), body, closed: () => (end(), changed()) });
}
