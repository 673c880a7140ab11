// Settings: how a device connects, which devices upload, and which are notified of new notes.

import { erase, glyphButton, settle } from "../base/actions.js";
import { api, isOwner } from "../base/api.js";
import { connection } from "../base/connect.js";
import { toast } from "../base/dialogs.js";
import { add, button, field, h } from "../base/dom.js";
import { formatAgo, formatNumber } from "../base/format.js";
import { formDialog, settingsCard, settingsRow } from "./panels.js";
import { load } from "../base/shell.js";
import { deviceLabel, t } from "../base/texts.js";

/** @typedef {{ id: string, uploads?: SyncedDevice, notified?: DeviceFields, tokens?: TokenFields[] }} Device */

const OWN = ["dashboard", "import", "unknown"]; // ids that this page, an import and nameless uploads have

/** @param {HTMLElement} container */
export function showDevices(container) {
  const body = h("div");
  const message = h("div");
  /** @type {() => () => void} */
  const show = () => load(body, fetchDevices, (devices) => {
    message.hidden = !devices.some((device) => device.notified);
    return devices.length ? h("ul.list", devices.map(item)) : h("p.hint", t("devices.none"));
  });

  /** @param {Device} device */
  function item({ id, uploads, notified, tokens = [] }) {
    const fallback = tokens.length ? id : deviceLabel(id);
    const name = tokens[0]?.name || (OWN.includes(id) ? "" : notified?.device_name || uploads?.device_name) || fallback;
    const access = tokens.map(({ scope, last_used_at: used }) =>
      t(used ? "devices.access" : "devices.unused", { scope: t(`devices.${scope}`), when: formatAgo(used) }));
    /** @type {HTMLElement[]} */
    const renames = tokens.map((token) => renamer(token, show));
    const revoke = tokens.map((token) => {
      const label = t("devices.revoke");
      const pressed = button(label, { label: `${label}: ${name}`, click: () =>
        erase(pressed, { title: label, text: t("devices.revokeText", { name }), path: `/api/tokens/${token.id}`, action: label }, show) });
      return pressed;
    });
    const uploaded = uploads?.total_synced
      ? t("devices.uploads", { count: formatNumber(uploads.total_synced), when: formatAgo(uploads.last_sync_time) })
      : t("devices.noUploads");
    if (!notified) return settingsRow(name, [...access, uploaded], renames, revoke);
    const seen = t("devices.notified", { when: formatAgo(notified.last_seen) });
    const model = [notified.device_model, notified.platform, notified.app_version].filter(Boolean).join(" · ");
    const test = button(t("devices.test"), { label: `${t("devices.test")}: ${name}`, click: () =>
      settle(test, () => api.post("/api/push/test", { device_id: id }), ({ success }) =>
        toast(t(success ? "devices.tested" : "devices.failed", { name }), { kind: success ? "good" : "bad" })) });
    const path = `/api/push/devices/${id.split("/").map(encodeURIComponent).join("/")}`;
    const title = t("devices.remove");
    const remove = glyphButton("trash", `${title}: ${name}`, () =>
      erase(remove, { title, text: t("devices.removeText", { name }), path, action: title }, show));
    return settingsRow(name, [...access, uploaded, seen, model], test, remove, renames, revoke);
  }

  add(message, messageCard());
  add(container, settingsCard(t("devices.connect"), connection()),
    settingsCard(t("devices.title"), h("p.hint", t("devices.lead")), body), message);
  return show();
}

/**
 * The button that renames a token.
 *
 * @param {TokenFields} token
 * @param {() => unknown} then
 */
function renamer({ id, name }, then) {
  const label = t("devices.rename");
  return button(label, { label: `${label}: ${name}`, click: () => {
    const input = h("input", { type: "text", required: true, maxlength: 100, value: name });
    formDialog({ title: label, body: field(t("devices.name"), input), action: label,
      submit: async () => (await api.patch(`/api/tokens/${id}`, { name: input.value.trim() }), then()) });
  } });
}

/**
 * The devices that upload, the latest first, and then those that only are notified.
 *
 * @param {AbortSignal} signal
 */
async function fetchDevices(signal) {
  const ask = (/** @type {string} */ path) => api.get(path, null, { signal });
  const asked = [ask("/api/photos/devices"), ask("/api/push/devices"), isOwner() ? ask("/api/tokens") : { tokens: [] }];
  const [uploading, registered, access] =
    /** @type {[{ devices: SyncedDevice[] }, { devices: DeviceFields[] }, { tokens: TokenFields[] }]} */ (await Promise.all(asked));
  /** @type {Map<string, Device>} */
  const devices = new Map();
  for (const uploads of uploading.devices) devices.set(uploads.device_id, { id: uploads.device_id, uploads });
  for (const notified of registered.devices) {
    devices.set(notified.device_id, { ...devices.get(notified.device_id), id: notified.device_id, notified });
  }
  for (const token of access.tokens) {
    const id = token.device_id && !OWN.includes(token.device_id) ? token.device_id : `token ${token.id}`;
    const device = devices.get(id) ?? { id };
    devices.set(id, { ...device, tokens: [...(device.tokens ?? []), token] });
  }
  return [...devices.values()];
}

function messageCard() {
  const subject = h("input", { type: "text", maxlength: 256, placeholder: "Snaplore" });
  const text = h("textarea", { rows: 2, required: true, maxlength: 4096 });
  const send = h("button.button", { type: "submit", text: t("devices.send") });
  const sent = (/** @type {Event} */ event) => {
    event.preventDefault();
    settle(send, () => api.post("/api/push/broadcast", { title: subject.value, body: text.value }), ({ count }) => {
      toast(t("devices.sent", { count }), { kind: count ? "good" : "info" });
      text.value = "";
    });
  };
  return settingsCard(t("devices.broadcast"), h("form.stack", { on: { submit: sent } },
    field(t("devices.subject"), subject), field(t("devices.text"), text), h("div.row", send)));
}
