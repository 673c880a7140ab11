// Settings: webhooks, the programs that are told what happens here, each with the log of what it was sent.

import { erase, settle } from "../base/actions.js";
import { api, isOwner } from "../base/api.js";
import { codeRow } from "../base/connect.js";
import { dialog, toast } from "../base/dialogs.js";
import { add, button, field, h } from "../base/dom.js";
import { feedsCard } from "./feeds.js";
import { formatAgo, formatNumber, formatTime, parseTime } from "../base/format.js";
import { formDialog, settingsCard, settingsRow, toggle } from "./panels.js";
import { sharesCard } from "./shares.js";
import { load } from "../base/shell.js";
import { t } from "../base/texts.js";

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
  const [feeds, shares] = [feedsCard(), sharesCard()];
  add(container, feeds.card, shares.card);
  const endings = [feeds.show(), shares.show()];
  if (isOwner()) {
    const hooks = webhooksCard();
    add(container, hooks.card);
    endings.push(hooks.show());
  }
  return () => endings.forEach((end) => end());
}

function webhooksCard() {
  const body = h("div");
  const show = () =>
    load(
      body,
      (signal) => api.get("/api/webhooks", null, { signal }),
      (/** @type {{ webhooks: WebhookFields[] }} */ { webhooks }) =>
        webhooks.length
          ? h(
              "ul.list",
              webhooks.map((one) => webhookRow(one, show)),
            )
          : h("p.hint", t("webhooks.none")),
    );
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
          dialog({
            title: t("webhooks.made"),
            body: h("div.stack", h("p", t("webhooks.madeText")), codeRow(secret, t("webhooks.secret"))),
          });
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
  const test = button(t("webhooks.test"), {
    label: said("webhooks.test"),
    click: () =>
      settle(
        test,
        () => api.post(`${path}/test`),
        (/** @type {DeliveryFields} */ { status, problem: why }) =>
          status === "delivered"
            ? toast(t("webhooks.tested", { name }), { kind: "good" })
            : toast(t("webhooks.failed", { name, problem: why }), { kind: "bad" }),
      ),
  });
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
  const draw = () =>
    load(
      body,
      (signal) => api.get(`${path}/deliveries`, null, { signal }),
      (/** @type {{ deliveries: DeliveryFields[] }} */ { deliveries }) =>
        deliveries.length ? h("ul.list", deliveries.map(entry)) : h("p.hint", t("webhooks.logNone")),
    );

  /** @param {DeliveryFields} delivery */
  function entry({ id, event, subject, status, attempts, answer, problem, created_at: created, next_at: next }) {
    const test = event === "webhook.test";
    const title = eventName(event) + (test ? "" : ` #${subject}`);
    const outcome = t(`webhooks.${status === "failed" ? "failing" : status}`);
    const due = next && (parseTime(next) > new Date() ? formatTime(next) : t("webhooks.soon"));
    const details = [
      [formatAgo(created), outcome, status === "delivered" && answer, attempts > 1 && t("webhooks.tries", { count: attempts })]
        .filter(Boolean)
        .join(" · "),
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
