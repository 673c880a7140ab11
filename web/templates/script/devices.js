// Settings: the devices that are notified of new notes.

import { erase, glyphButton, settle } from "./actions.js";
import { api } from "./api.js";
import { toast } from "./dialogs.js";
import { add, button, field, h } from "./dom.js";
import { formatAgo } from "./format.js";
import { settingsCard, settingsRow } from "./panels.js";
import { load } from "./shell.js";
import { t, words } from "./texts.js";

words({
  settings: {
    devices: "Devices|设备",
  },
  devices: {
    title: "Notified devices|接收通知的设备",
    lead: "These devices are notified of new notes. A phone registers when its app starts.|有新笔记时会通知这些设备。手机应用启动时会自动注册。",
    none: "No devices registered yet.|还没有设备注册。",
    seen: "{platform} · last seen {when}|{platform} · 上次出现：{when}",
    test: "Test|测试",
    tested: "Sent to {name}.|已发送到 {name}。",
    failed: "Could not reach {name}: the webhook did not accept the message.|无法送达 {name}：webhook 未接受这条消息。",
    removeText: "“{name}” gets no notifications until it registers again.|“{name}”在重新注册之前不会再收到通知。",
    broadcast: "Message to all devices|发消息给所有设备",
    subject: "Title|标题",
    text: "Text|内容",
    send: "Send to all|发送给全部",
    sent: "Sent to devices: {count}|已发送到 {count} 台设备",
  },
});

/** @param {HTMLElement} container */
export function showDevices(container) {
  const body = h("div");
  const show = () => load(body, (signal) => api.get("/api/push/devices", {}, { signal }), ({ devices }) =>
    devices.length ? h("ul.list", devices.map(item)) : h("p.hint", t("devices.none")));

  /** @param {DeviceFields} device */
  function item(device) {
    const name = device.device_name;
    const seen = t("devices.seen", { platform: device.platform, when: formatAgo(device.last_seen) });
    const details = [[device.device_model, device.app_version].filter(Boolean).join(" · "), seen];
    const test = button(t("devices.test"), { label: `${t("devices.test")}: ${name}`, click: () =>
      settle(test, () => api.post("/api/push/test", { device_id: device.device_id }), ({ success }) =>
        toast(t(success ? "devices.tested" : "devices.failed", { name }), { kind: success ? "good" : "bad" })) });
    const path = `/api/push/devices/${device.device_id.split("/").map(encodeURIComponent).join("/")}`;
    const title = t("settings.remove");
    const remove = glyphButton("trash", `${title}: ${name}`, () =>
      erase(remove, { title, text: t("devices.removeText", { name }), path, action: title }, show));
    return settingsRow(name, details, test, remove);
  }

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
  add(container, settingsCard(t("devices.title"), h("p.hint", t("devices.lead")), body),
    settingsCard(t("devices.broadcast"), h("form.stack", { on: { submit: sent } },
      field(t("devices.subject"), subject), field(t("devices.text"), text), h("div.row", send))));
  return show();
}
