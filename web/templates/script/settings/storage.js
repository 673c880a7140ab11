// Settings: stored data, retention, export and deletion of everything.

import { praise, settle } from "../base/actions.js";
import { api, ApiError } from "../base/api.js";
import { sentPictures, turns } from "../chat/chat.js";
import { confirmDialog, fail } from "../base/dialogs.js";
import { add, button, field, h } from "../base/dom.js";
import { formatBytes, formatNumber } from "../base/format.js";
import { amounts, CHOICES, consequence, duration, isHarmless, keep, preview } from "../base/keeping.js";
import { facts, formDialog, settingsCard, toggle } from "./panels.js";
import { debounced, load, navBadge } from "../base/shell.js";
import { t } from "../base/texts.js";

const CLEAR_PHRASE = "delete everything"; // expected by the API, whatever the language

/** @returns {[string, string][]} */
const inBucket = (/** @type {any} */ stats) =>
  stats.away_photos
    ? [[t("data.away"), t("data.awaySize", { count: formatNumber(stats.away_photos), size: formatBytes(stats.storage_away_bytes) })]]
    : [];

/** @param {HTMLElement} container */
export function showStorage(container) {
  const stored = h("div");
  const kept = h("div");
  const count = () => load(stored, (signal) => api.get("/api/data/stats", {}, { signal }), (stats) =>
    [facts([
      [t("data.photos"), formatNumber(stats.total_photos)],
      [t("data.memories"), formatNumber(stats.total_memories)],
      [t("data.kept"), formatNumber(stats.kept_photos)],
      [t("data.trashed"), formatNumber(stats.trashed_photos)],
      [t("data.used"), formatBytes(stats.storage_used_bytes)],
      [t("data.free"), formatBytes(stats.storage_free_bytes)],
      ...inBucket(stats),
    ]), h("p.row", h("a", { href: "#/trash", text: t("data.trash") }), h("a", { href: "#/duplicates", text: t("data.duplicates") }))]);
  const stopKept = load(kept, (signal) => api.get("/api/data/retention", {}, { signal }), retentionForm);
  const codes = h("div");
  const stopCodes = load(codes, (signal) => api.get("/api/data/codes", {}, { signal }), codesSwitch);
  let stopCount = count();
  const status = h("p.hint", { role: "status" });
  const download = button(t("data.download"), { glyph: "download", click: () => settle(download, () => exportAll(status), () => {}) });
  const again = () => {
    stopCount();
    stopCount = count();
  };
  const clear = button(t("data.clear"), { glyph: "trash", kind: "danger", click: () => confirmClear(again) });
  add(container, settingsCard(t("data.retention"), kept, codes), settingsCard(t("data.stored"), stored),
    settingsCard(t("data.export"), h("p", t("data.exportText")), h("div.row", download), status),
    settingsCard(t("data.clear"), h("p", t("data.clearText")), h("div.row", clear)));
  return () => (stopKept(), stopCodes(), stopCount());
}

/** @param {{ days: number, photos: number }} codes */
function codesSwitch({ days, photos }) {
  const change = async (/** @type {boolean} */ isOn) => {
    await api.put("/api/data/codes", { days: isOn ? days || 1 : 0 });
    praise(t("settings.saved"));
  };
  const age = days > 1 ? t("data.afterDays", { count: formatNumber(days) }) : t("data.afterDay");
  const details = h("p.hint", t("data.codesText", { age, count: formatNumber(photos) }));
  return h("div.row.settings-row", h("div.grow", h("strong", t("data.codes")), details), toggle(t("data.codes"), days > 0, change));
}

/**
 * The choices, each with what it would delete.
 *
 * @param {RetentionFields} kept
 */
function retentionForm({ retention_days: now }) {
  const isOwn = !CHOICES.includes(now);
  const days = h("input", {
    type: "number",
    min: 1,
    max: 36500,
    step: 1,
    value: isOwn ? String(now) : "",
    "aria-label": t("data.days"),
    on: { input: typed },
  });
  const options = [...CHOICES, null].map((choice) => {
    const id = `keep-${choice ?? "own"}`;
    const radio = h("input", {
      type: "radio",
      name: "keep",
      id,
      value: String(choice ?? "own"),
      required: true,
      checked: choice === null ? isOwn : choice === now,
    });
    const effect = h("span.hint", { role: "status" });
    return { choice, radio, effect, row: h("div.row.keep-choice", radio,
      h("label", { for: id, text: choice === null ? t("data.own") : duration(choice) }), choice === null && days, effect) };
  });
  const own = options[options.length - 1];
  const save = h("button.button", { type: "submit", text: t("list.save") });

  const chosen = () => {
    const { choice } = options.find(({ radio }) => radio.checked) ?? own;
    return choice ?? Number(days.value);
  };
  const foretell = debounced(async () => {
    const wanted = Number(days.value);
    own.effect.textContent = wanted && days.validity.valid ? consequence(await preview(wanted)) : "";
  }, 300);
  function typed() {
    own.radio.checked = true;
    foretell();
  }

  // A choice says what it deletes as soon as that is known. Without it, the choice is still there.
  for (const { choice, effect } of options) if (choice) preview(choice).then((due) => (effect.textContent = consequence(due)), () => {});
  if (isOwn) foretell();

  const sent = async (/** @type {Event} */ event) => {
    event.preventDefault();
    days.required = own.radio.checked;
    if (!save.form?.reportValidity()) return;
    const wanted = chosen();
    const due = wanted ? await preview(wanted).catch(fail) : null;
    if (wanted && !due) return;
    const isShorter = wanted > 0 && (now === 0 || wanted < now);
    const ask = { title: t("data.retention"), action: t("data.shorten", { duration: duration(wanted) }), danger: true };
    if (due && isShorter && !isHarmless(due) && !(await confirmDialog({ ...ask, text: t("data.shorter", { list: amounts(due) }) }))) return;
    settle(save, () => keep(wanted), (answer) => {
      now = answer.retention_days;
      praise(t("settings.saved"));
    });
  };
  return h("form.stack", { on: { submit: sent } }, h("p.hint", t("data.retentionText")),
    h("div.stack.tight", { role: "radiogroup", "aria-label": t("data.retention") }, options.map(({ row }) => row)), h("div.row", save));
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
