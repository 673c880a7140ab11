// One screenshot: its tile, its detail in a dialog, and its deletion, which can be undone.

import { api, picture } from "./api.js";
import { dialog, fail, toast } from "./dialogs.js";
import { button, fill, h } from "./dom.js";
import { formatAgo, formatBytes, formatDate, formatPercent } from "./format.js";
import { busy, copyText, load, poll, skeleton } from "./shell.js";
import { t, term, words } from "./texts.js";
import { tell } from "./upload.js";

words({
  detail: {
    open: "Open screenshot {id}|打开截图 {id}",
    title: "Screenshot {id}|截图 {id}",
    zoom: "Zoom|缩放",
    back: "Previous screenshot|上一张截图",
    next: "Next screenshot|下一张截图",
    summary: "Summary|摘要",
    entities: "Details|详细信息",
    text: "Text in the screenshot|截图中的文字",
    facts: "File|文件信息",
    reprocess: "Analyse again|重新分析",
    queued: "Queued for analysis.|已加入分析队列。",
    delete: "Delete|删除",
    deleted: "Screenshot deleted|截图已删除",
    download: "Download|下载",
    taken: "Taken|截图时间",
    uploaded: "Uploaded|上传时间",
    device: "Device|设备",
    size: "Size|大小",
    name: "File name|文件名",
    confidence: "Confidence|置信度",
    failed: "The analysis failed|分析失败",
    waiting: "The analysis is not finished yet. The result will appear here.|分析尚未完成，结果会显示在这里。",
    copy: "Copy {value}|复制 {value}",
    picture: "Screenshot: {summary}|截图：{summary}",
  },
  entity: {
    link: "Link|链接",
    email: "E-mail|邮箱",
    phone: "Phone|电话",
    amount: "Amount|金额",
    date: "Date|日期",
    code: "Code|代码",
    time: "Time|时间",
  },
});

/**
 * `step(id, -1 | 1)` returns the id of the previous or next screenshot in the list, or null.
 *
 * @typedef {{ step?: (id: number, delta: number) => number | null, closed?: (id: number) => unknown }} DetailOptions
 */

const UNDO_SECONDS = 6;
/** @type {Record<Status, string>} */
const STATUS_KINDS = { pending: "warn", processing: "warn", done: "good", error: "bad" };
/** @type {unknown[]} */
export const UNFINISHED = ["pending", "processing"];

/**
 * The tile of a photo; a click opens the detail. `words` are highlighted in its text.
 *
 * @param {PhotoItem & { snippet?: string }} photo
 * @param {{ words?: string[], open?: (id: number) => unknown, [attribute: string]: any }} options
 */
export function photoCard(photo, { words = [], open = openPhoto, ...props } = {}) {
  const status = photo.analysis_status;
  const text = photo.snippet || photo.summary || photo.filename || "";
  return h("button", { type: "button", class: "photo-card", dataset: { photo: photo.id }, on: { click: () => open(photo.id) }, ...props },
    h("span.photo-frame", picture(`/api/photos/${photo.id}/thumbnail`, ""),
      UNFINISHED.includes(status) && h("span.badge.photo-status", t(`status.${status}`)),
      status === "error" && h("span.badge.bad.photo-status", t("status.error"))),
    h("span.photo-words", h("span.visually-hidden", `${t("detail.open", { id: photo.id })}: `),
      h("span.photo-text", marked(text, words)),
      photo.original_timestamp && h("span.photo-time", formatAgo(photo.original_timestamp))));
}

/**
 * `text` with the words of a search highlighted. Chinese is matched by pairs of characters, like in the search.
 *
 * @param {string} text
 * @param {string[]} words
 */
function marked(text, words) {
  const pieces = words.flatMap((word) =>
    /^[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}$/.test(word) ? [word, ...Array.from({ length: word.length - 1 }, (_, at) => word.slice(at, at + 2))] : [word]);
  if (!pieces.length) return text;
  const escaped = pieces.map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/^(?=[a-z0-9])/i, "(?<![a-z0-9])"));
  // The pattern is one group, so every second part is a match.
  return text.split(new RegExp(`(${escaped.join("|")})`, "iu")).map((part, at) => (at % 2 ? h("mark", part) : part));
}

/**
 * Open the detail of a photo.
 *
 * @param {number} id
 * @param {DetailOptions} options
 */
export function openPhoto(id, { step = () => null, closed } = {}) {
  const give = new AbortController();
  const image = h("img.detail-image", { alt: "", draggable: "false" });
  const stage = h("button.detail-stage", { type: "button", "aria-pressed": "false", label: t("detail.zoom") }, image);
  stage.addEventListener("click", () => zoom(stage, image));
  const side = h("div.detail-side");
  const turn = (/** @type {number} */ delta) => {
    const other = step(id, delta);
    if (other === null) return;
    handle.close("turned");
    openPhoto(other, { step, closed });
  };
  const arrow = (/** @type {number} */ delta, /** @type {"back" | "next"} */ glyph) =>
    button("", { glyph, kind: `detail-turn ${glyph}`, label: t(`detail.${glyph}`), disabled: step(id, delta) === null, click: () => turn(delta) });
  const handle = dialog({
    title: t("detail.title", { id }), wide: true,
    body: h("div.detail", h("div.detail-picture", stage, arrow(-1, "back"), arrow(1, "next")), side),
    closed: (reason) => {
      for (const end of endings) end();
      if (image.src) URL.revokeObjectURL(image.src);
      if (reason !== "turned") closed?.(id);
    },
  });
  handle.node.classList.add("detail-dialog");
  handle.node.addEventListener("keydown", ({ key, altKey, ctrlKey, metaKey }) => {
    if (altKey || ctrlKey || metaKey) return;
    if (key === "ArrowLeft" || key === "ArrowRight") turn(key === "ArrowLeft" ? -1 : 1);
  });
  api.blobUrl(`/api/photos/${id}/image`, give.signal).then((url) => (image.src = url)).catch(fail);

  /** @type {PhotoDetail | null} */
  let photo = null;
  const draw = (/** @type {PhotoDetail} */ found) => {
    photo = found;
    image.alt = t("detail.picture", { summary: found.analysis.summary || found.filename });
    return detailFacts(found, draw, side, handle.close);
  };
  /** @type {(signal: AbortSignal) => Promise<PhotoDetail>} */
  const fetchDetail = (signal) => api.get(`/api/photos/${id}`, null, { signal });
  const look = async () => {
    if (!photo || !UNFINISHED.includes(photo.analysis.status)) return;
    const found = await fetchDetail(give.signal);
    // Redraw only when the status has changed, so that nothing moves while somebody reads.
    if (found.analysis.status === photo.analysis.status) return;
    fill(side, draw(found));
    tell("changed", id);
  };
  const endings = [() => give.abort(), load(side, fetchDetail, draw, skeleton(6)), poll(look, 1.5)];
}

/**
 * Switch between fitting the window and full size.
 *
 * @param {HTMLElement} stage
 * @param {HTMLImageElement} image
 */
function zoom(stage, image) {
  const large = stage.getAttribute("aria-pressed") !== "true";
  stage.setAttribute("aria-pressed", String(large));
  if (large) image.style.width = `${Math.max(image.naturalWidth / Math.min(2, devicePixelRatio), stage.clientWidth * 1.6)}px`;
  else image.style.removeProperty("width");
}

/**
 * @param {PhotoDetail} photo
 * @param {(photo: PhotoDetail) => Child} draw
 * @param {HTMLElement} side where it is drawn
 * @param {() => void} close
 */
function detailFacts(photo, draw, side, close) {
  const { analysis } = photo;
  /** @type {Entity[]} */
  const entities = parsed(analysis.entities, []).filter((/** @type {Entity | null} */ entity) => entity?.value);
  const text = visibleText(analysis.llm_response);
  const reprocess = button(t("detail.reprocess"), { glyph: "refresh" });
  reprocess.addEventListener("click", async () => {
    try {
      await busy(reprocess, api.post(`/api/analysis/${photo.id}/reprocess`));
      toast(t("detail.queued"), { kind: "good" });
      tell("changed", photo.id);
      fill(side, draw({ ...photo, analysis: { ...analysis, status: "pending" } }));
    } catch (error) {
      fail(error);
    }
  });
  const remove = button(t("detail.delete"), { glyph: "trash", kind: "danger", click: () => (close(), deletePhoto(photo.id)) });
  const download = button(t("detail.download"), { glyph: "download", click: () => busy(download, saveOriginal(photo)) });
  const facts = [
    ["taken", formatDate(photo.original_timestamp)], ["uploaded", formatDate(photo.created_at)],
    ["device", photo.device_name || photo.device_id], ["size", `${photo.width} × ${photo.height}, ${formatBytes(photo.file_size)}`], ["name", photo.filename],
  ];
  return [
    h("div.row", h("span", { class: `badge ${STATUS_KINDS[analysis.status]}`, text: t(`status.${analysis.status}`) }),
      analysis.status === "done" && [h("span.chip", term("category", analysis.content_category)), h("span.chip", term("intent", analysis.intent))],
      analysis.app_name && h("span.chip", analysis.app_name)),
    analysis.status === "error" && h("div.detail-error", { role: "alert" }, h("strong", t("detail.failed")), h("p", analysis.error_message)),
    UNFINISHED.includes(analysis.status) && h("p.muted", { role: "status", text: t("detail.waiting") }),
    analysis.summary && h("section", h("h3", t("detail.summary")), h("p", analysis.summary)),
    entities.length > 0 && h("section", h("h3", t("detail.entities")), h("ul.list.entities", entities.map(entityRow))),
    text && h("details.detail-text", h("summary", t("detail.text")), h("pre", { text, tabindex: "0" }),
      button(t("shell.copy"), { glyph: "copy", kind: "quiet", click: () => copyText(text) })),
    h("section", h("h3", t("detail.facts")), h("dl.facts", facts.map(([name, value]) => [h("dt", t(`detail.${name}`)), h("dd", value)]),
      analysis.status === "done" && [h("dt", t("detail.confidence")), h("dd", formatPercent(analysis.confidence))])),
    h("div.row", download, reprocess, remove),
  ].map((part) => part || null).flat();
}

/** @param {Entity} entity */
function entityRow({ type, value }) {
  const text = String(value);
  const target = entityTarget(String(type).toLowerCase(), text);
  const shown = target ? h("a", { href: target, rel: "noopener noreferrer", target: "_blank", text }) : h("span", text);
  return h("li", h("span.entity-type", term("entity", String(type).toLowerCase())), h("span.grow", shown),
    button("", { glyph: "copy", kind: "quiet", label: t("detail.copy", { value: text.slice(0, 60) }), click: () => copyText(text) }));
}

/**
 * The address of an entity, or null. Only web, mail and phone links, whatever type the screenshot claims.
 *
 * @param {string} type
 * @param {string} value
 */
function entityTarget(type, value) {
  if (/^https?:\/\/\S+$/i.test(value)) return value;
  if (/^(link|url|website)$/.test(type) && /^[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(value)) return `https://${value}`;
  if (type === "email" && /^[^\s@:?&]+@[^\s@:?&]+$/.test(value)) return `mailto:${value}`;
  if (type === "phone" && /^\+?[\d\s()./-]{5,25}$/.test(value)) return `tel:${value.replace(/[^\d+]/g, "")}`;
  return null;
}

/**
 * The text in the screenshot, which is a field of the model's raw answer.
 *
 * @param {string | undefined} answer
 */
function visibleText(answer) {
  if (!answer) return "";
  const start = answer.indexOf("{");
  const text = start < 0 ? null : parsed(answer.slice(start, answer.lastIndexOf("}") + 1), {})?.visible_text;
  return typeof text === "string" ? text : "";
}

/**
 * @param {string} text
 * @param {any} fallback
 */
function parsed(text, fallback) {
  try {
    return JSON.parse(text) ?? fallback;
  } catch {
    return fallback;
  }
}

/** @param {PhotoDetail} photo */
async function saveOriginal(photo) {
  try {
    const url = await api.blobUrl(`/api/photos/${photo.id}/image`);
    const anchor = h("a", { href: url, download: photo.filename });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (error) {
    fail(error);
  }
}

// ---------------------------------------------------------------------------------------------------------------- deletion

// A deletion is sent when the time to undo it is over, or when the page is left. Until then the photo is hidden.
/** @type {Map<number, "waiting" | "sent">} */
export const hiddenPhotos = new Map();

/** @param {number} id */
function deletePhoto(id) {
  if (hiddenPhotos.has(id)) return;
  toast(t("detail.deleted"), {
    seconds: UNDO_SECONDS, action: { label: t("shell.undo"), run: () => restorePhoto(id) }, after: () => sendDeletion(id),
  });
  hiddenPhotos.set(id, "waiting");
  tell("hidden", id);
}

/** @param {number} id */
function restorePhoto(id) {
  hiddenPhotos.delete(id);
  tell("restored", id);
}

/** @param {number} id */
async function sendDeletion(id) {
  if (hiddenPhotos.get(id) === "sent") return;
  hiddenPhotos.set(id, "sent");
  try {
    await api.delete(`/api/photos/${id}`, { keepalive: true });
    tell("deleted", id);
    hiddenPhotos.delete(id);
  } catch (error) {
    if (error.status === 404) tell("deleted", id);
    else fail(error);
    restorePhoto(id);
  }
}

export function sendDeletions() {
  for (const [id, state] of hiddenPhotos) if (state === "waiting") sendDeletion(id);
}

window.addEventListener("pagehide", sendDeletions);
