// Settings: stored data, retention, export and deletion of everything.

import { praise, settle } from "./actions.js";
import { api, ApiError } from "./api.js";
import { sentPictures, turns } from "./chat.js";
import { confirmDialog } from "./dialogs.js";
import { add, button, field, h } from "./dom.js";
import { formatBytes, formatNumber } from "./format.js";
import { facts, formDialog, settingsCard } from "./panels.js";
import { load, navBadge } from "./shell.js";
import { t, words } from "./texts.js";

words({
  settings: {
    data: "Storage|存储",
  },
  data: {
    stored: "Stored data|已存储的数据",
    photos: "Screenshots|截图",
    memories: "Memories|记忆",
    used: "Space used|已用空间",
    free: "Free disk space|磁盘剩余空间",
    retention: "Retention|保留期限",
    days: "Days|天数",
    retentionText: "Screenshots, chats and unpinned notes older than this are deleted once a day. 0 keeps everything.|超过此天数的截图、对话和未置顶的笔记每天清理一次。0 表示全部保留。",
    shorter: "Screenshots, chats and unpinned notes older than {days} days will be deleted within a day.|{days} 天以前的截图、对话和未置顶的笔记将在一天内删除。",
    shorten: "Keep {days} days|保留 {days} 天",
    export: "Export|导出",
    exportText: "All screenshots, chats, notes, memories and settings as readable files in one zip, without keys. The zip is not encrypted. Store it safely.|全部截图、对话、笔记、记忆和设置，以可读文件打包为一个 zip，不含密钥。zip 未加密，请妥善保管。",
    download: "Export everything|导出全部",
    exporting: "Exporting. Please keep this page open.|正在导出，请保持此页面打开。",
    exportBroken: "The export was interrupted. Please try again.|导出中断，请重试。",
    clear: "Delete everything|删除全部",
    clearText: "Permanently deletes all screenshots, chats, notes and memories. Settings, skills, servers and devices are kept.|永久删除所有截图、对话、笔记和记忆。设置、技能、服务器和设备会保留。",
    clearType: "Type “{phrase}” to confirm|输入“{phrase}”以确认",
    cleared: "Deleted {photos} screenshots, {conversations} chats, {dynamics} notes and {memories} memories.|已删除 {photos} 张截图、{conversations} 个对话、{dynamics} 篇笔记和 {memories} 条记忆。",
  },
});

const CLEAR_PHRASE = "delete everything"; // expected by the API, whatever the language

/** @param {HTMLElement} container */
export function showStorage(container) {
  const stored = h("div");
  const kept = h("div");
  const count = () => load(stored, (signal) => api.get("/api/data/stats", {}, { signal }), (stats) =>
    facts([
      [t("data.photos"), formatNumber(stats.total_photos)],
      [t("data.memories"), formatNumber(stats.total_memories)],
      [t("data.used"), formatBytes(stats.storage_used_bytes)],
      [t("data.free"), formatBytes(stats.storage_free_bytes)],
    ]));
  const stopKept = load(kept, (signal) => api.get("/api/data/retention", {}, { signal }), retentionForm);
  let stopCount = count();
  const status = h("p.hint", { role: "status" });
  const download = button(t("data.download"), { glyph: "download", click: () => settle(download, () => exportAll(status), () => {}) });
  const again = () => {
    stopCount();
    stopCount = count();
  };
  const clear = button(t("data.clear"), { glyph: "trash", kind: "danger", click: () => confirmClear(again) });
  add(container, settingsCard(t("data.stored"), stored), settingsCard(t("data.retention"), kept),
    settingsCard(t("data.export"), h("p", t("data.exportText")), h("div.row", download), status),
    settingsCard(t("data.clear"), h("p", t("data.clearText")), h("div.row", clear)));
  return () => (stopKept(), stopCount());
}

/** @param {{ retention_days: number }} kept */
function retentionForm({ retention_days: now }) {
  const days = h("input", { type: "number", min: 0, max: 36500, step: 1, required: true, value: String(now) });
  const save = h("button.button", { type: "submit", text: t("list.save") });
  const sent = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const wanted = Number(days.value);
    const isShorter = wanted > 0 && (now === 0 || wanted < now);
    const words = { days: formatNumber(wanted) };
    const warning = { title: t("data.retention"), text: t("data.shorter", words), action: t("data.shorten", words), danger: true };
    if (isShorter && !(await confirmDialog(warning))) return;
    settle(save, () => api.put("/api/data/retention", { retention_days: wanted }), (answer) => {
      now = answer.retention_days;
      praise(t("settings.saved"));
    });
  };
  return h("form.stack", { on: { submit: sent } },
    h("div.settings-fields", field(t("data.days"), days, t("data.retentionText"))), h("div.row", save));
}

/**
 * Download the export. By fetch, because a link cannot send the key; the browser keeps a large answer on disk.
 *
 * @param {HTMLElement} status
 */
async function exportAll(status) {
  status.textContent = t("data.exporting");
  try {
    const response = await api.open("/api/data/export");
    const blob = await response.blob().catch(() => {
      throw new ApiError(0, t("data.exportBroken"));
    });
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: `snaplore-${new Date().toISOString().slice(0, 10)}.zip` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000); // by then the browser has opened it
  } finally {
    status.textContent = "";
  }
}

/** @param {() => unknown} then */
function confirmClear(then) {
  const typed = h("input", { type: "text", autocomplete: "off", spellcheck: "false", autocapitalize: "none" });
  const form = formDialog({
    title: t("data.clear"), action: t("data.clear"), danger: true,
    body: [h("p", t("data.clearText")), field(t("data.clearType", { phrase: CLEAR_PHRASE }), typed)],
    submit: async () => {
      const counts = await api.post("/api/data/clear", { confirm: CLEAR_PHRASE });
      turns.clear();
      sentPictures.clear();
      navBadge("notes", 0);
      praise(t("data.cleared", counts));
      then();
    },
  });
  const check = () => (form.send.disabled = typed.value.trim() !== CLEAR_PHRASE);
  typed.addEventListener("input", check);
  check();
}
