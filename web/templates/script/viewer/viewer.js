// The viewer: one photo over the view that is shown, with its own address and history entry, its neighbours beside it, the text on
// it, and its details in a panel.
//
// The file is long because it is one closure: each part of the open viewer needs the current photo and its slide. What does not need them
// is in files of its own: zoom.js, overlay.js, slide.js, sheet.js, details.js, menu.js, picture-file.js.

import { settle } from "../base/actions.js";
import { api, wasAborted } from "../base/api.js";
import { trashPhoto } from "../base/deletion.js";
import { detailsOf, entitiesOf, textOf, UNFINISHED } from "./details.js";
import { fail, modal, toast } from "../base/dialogs.js";
import { button, fill, h, icon, listen } from "../base/dom.js";
import { formatDate, formatNumber, formatPercent } from "../base/format.js";
import { closeMenu, openMenu } from "../base/menu.js";
import { spotAt } from "./overlay.js";
import { canShareFiles, copyToClipboard, saveFile } from "../base/picture-file.js";
import { recalled, remember } from "../base/preferences.js";
import { bottomSheet } from "./sheet.js";
import { withLater } from "../base/parts.js";
import { addressBeneath, busy, copyText, failedState, poll, replaceAddress, skeleton } from "../base/shell.js";
import { pictureSlide } from "./slide.js";
import { t, words } from "../base/texts.js";
import { photoEvents, tell } from "../base/upload.js";
import { isVeiled, kindsOf, lookUp, reasonOf, uncover, veilEvents } from "./veil.js";
import { gestures, ZOOM_STEP } from "./zoom.js";

words({
  viewer: {
    untitled: "Screenshot|截图",
    stage: "Picture|图片",
    actions: "Actions|操作",
    back: "Previous screenshot|上一张截图",
    next: "Next screenshot|下一张截图",
    place: "{at} of {total}|第 {at} 张，共 {total} 张",
    download: "Download|下载",
    share: "Share|分享",
    copyPicture: "Copy picture|复制图片",
    copyText: "Copy text|复制文字",
    details: "Details|详细信息",
    more: "More actions|更多操作",
    marks: "Mark the matches|标出匹配处",
    reprocess: "Analyse again|重新分析",
    queued: "Queued for analysis.|已加入分析队列。",
    delete: "Delete (Del)|删除（Del）",
    keep: "Keep (S)|保留（S）",
    zoomIn: "Zoom in|放大",
    zoomOut: "Zoom out|缩小",
    actual: "Actual size|实际大小",
    fit: "Fit to the screen|适应屏幕",
    picture: "Screenshot: {title}|截图：{title}",
    broken: "This picture cannot be shown. Its file may be damaged.|无法显示这张图片，文件可能已损坏。",
    gone: "This screenshot is not here any more.|这张截图已不存在。",
    noText: "No text was recognised in this picture.|没有识别出文字。",
    openLink: "Open {host}|打开 {host}",
    write: "Write an e-mail|写邮件",
    call: "Call|拨打电话",
    copyValue: "Copy|复制",
    selectAll: "Select all|全选",
    target: "What to do with it|可执行的操作",
    uncover: "Show for 5 minutes|显示 5 分钟",
    notSensitive: "Not sensitive|不是敏感内容",
  },
});

/**
 * @typedef {import("../base/dom.js").Glyph} Glyph
 * @typedef {import("../base/menu.js").MenuItem} MenuItem
 * @typedef {import("./overlay.js").Target} Target
 * @typedef {import("./slide.js").Slide} Slide
 * @typedef {import("./veil.js").Veilable} Veilable
 * @typedef {import("./zoom.js").Zoomable} Zoomable
 */

/** @typedef {{ sequence?: Sequence, closed?: (id: number) => unknown, found?: (id: number) => Found | undefined, trash?: boolean }} ViewerOptions `trash`: its photos are in the trash */

const NARROW = matchMedia("(max-width: 760px)");
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const GUTTER = 72; // px at each side of the picture, for the arrows
const MARGIN = 16; // px above and below the picture
const STRIP = 88; // px of a stack below the picture
const SLIDE_GAP = 24; // px between two slides
const TURN_PART = 0.3; // of the width: a swipe that is longer turns to the neighbour
const PULL_CLOSES = 110; // px
const GLIDES = { duration: 220, easing: "cubic-bezier(.2, .8, .3, 1)" };
const PAN_STEP = 90; // px, of an arrow key

/** @type {{ node: HTMLDialogElement, show: (id: number) => void } | null} */
let viewer = null;

/**
 * Open a photo over the view. Without a `sequence` it has no neighbours; `closed` is called with the photo that was shown last.
 *
 * @param {number} id
 * @param {ViewerOptions} options
 */
export function openPhoto(id, options = {}) {
  if (viewer?.node.open) viewer.show(id);
  else viewer = openViewer(id, options);
}

/**
 * @param {number} first
 * @param {ViewerOptions} options
 */
function openViewer(first, { sequence, closed, found, trash = false }) {
  const beneath = addressBeneath();
  const query = (sequence && beneath.split("?")[1]) || "";
  const root = trash ? "#/trashed/" : "#/photo/";
  const addressOf = (/** @type {number} */ photo) => `${root}${photo}${query && `?${query}`}`;
  const isPhoto = () => location.hash.startsWith(root);
  if (!isPhoto()) history.pushState({ over: beneath }, "", addressOf(first));
  const titleBefore = document.title;

  let id = first;
  let isBare = false; // everything but the picture is hidden
  let isLeaving = false;
  let hasMarks = true;
  /** @type {Map<number, Slide>} */
  const slides = new Map();
  /** @type {Map<number, Promise<number | null>>} */
  let neighbours = new Map(); // of the current photo, by -1 and 1
  /** @type {PhotoDetail | null} */
  let photo = null;
  /** @type {PhotoLines | null} */
  let lines = null;
  /** @type {AgendaFields[]} */
  let planned = []; // what happens on days that it names
  /** @type {Map<number, string[]>} */
  const looked = new Map(); // what is sensitive on photos, by answers that are newer than a list
  let give = new AbortController(); // requests for the current photo
  /** @type {Promise<unknown>} */
  let detailArrives = Promise.resolve();

  // ------------------------------------------------------------------------------------------------------------- elements

  const heading = h("h2.viewer-title", { tabindex: "-1" });
  const under = h("p.viewer-under");
  const announced = h("p.visually-hidden", { role: "status" });
  const shut = button("", { glyph: "close", kind: "quiet", label: t("shell.close"), click: () => leave() });
  const tool = (/** @type {string} */ name, /** @type {Glyph} */ glyph, /** @type {(pressed: HTMLButtonElement) => unknown} */ run, props = {}) => {
    const made = button("", { glyph, kind: "quiet", label: t(`viewer.${name}`), click: () => run(made), ...props });
    return made;
  };
  const share = tool("share", "share", sharePicture, { hidden: true });
  const marking = tool("marks", "marker", () => toggleMarks(), { "aria-pressed": "true", hidden: true });
  const star = tool("keep", "star", () => toggleKept(), { kind: "quiet keep", "aria-pressed": "false", hidden: trash });
  const bin = tool("delete", "trash", () => remove(), { hidden: trash });
  const info = tool("details", "info", () => toggleDetails(), { "aria-expanded": "false" });
  const more = tool("more", "more", openMore, { "aria-haspopup": "menu" });
  const showing = [tool("download", "download", download), tool("copyPicture", "pictures", copyPicture), tool("copyText", "text", copyAll, { hidden: trash })];
  const tools = h("div.viewer-tools", { role: "group", label: t("viewer.actions") }, marking,
    star, ...showing.slice(0, 1), share, ...showing.slice(1), bin, info);
  const bar = h("div.viewer-bar", shut, h("div.viewer-name", heading, under), more);
  const track = h("div.viewer-track");
  const percent = h("button.viewer-percent", { type: "button", title: t("viewer.fit"), on: { click: () => glide((zoom) => zoom.fit()) } });
  const zooms = h("div.viewer-zooms", { role: "group" },
    tool("zoomOut", "minus", () => zoomBy(1 / ZOOM_STEP)), percent, tool("zoomIn", "plus", () => zoomBy(ZOOM_STEP)),
    h("button.viewer-actual", { type: "button", title: t("viewer.actual"), label: t("viewer.actual"), text: "1:1", on: { click: actualSize } }));
  const stage = h("div.viewer-stage", track);
  const arrow = (/** @type {number} */ delta, /** @type {"back" | "next"} */ glyph) =>
    button("", { glyph, kind: `quiet viewer-arrow ${glyph}`, label: t(`viewer.${glyph}`), disabled: true, click: () => turn(delta) });
  const arrows = [arrow(-1, "back"), arrow(1, "next")];
  const content = h("div.viewer-details");
  const head = h("div.sheet-head");
  const panel = h("section.viewer-panel", { label: t("viewer.details") }, head, content);
  const node = h("dialog.viewer", bar, h("div.viewer-place", { role: "group", label: t("viewer.stage") }, arrows[0], stage, arrows[1], zooms), panel, announced);
  const sheet = bottomSheet(panel, head, content, () => arranged());

  // ---------------------------------------------------------------------------------------------------------------- layout

  function area() {
    const { clientWidth: width, clientHeight: height } = stage;
    const lower = stackNode ? STRIP : 0;
    if (!NARROW.matches) {
      const side = Math.min(GUTTER, width / 6);
      return { left: side, top: MARGIN / 2, right: width - side, bottom: height - MARGIN - lower };
    }
    if (isBare) return { left: 0, top: 0, right: width, bottom: height };
    return { left: 0, top: bar.offsetHeight, right: width, bottom: height - sheet.covers() - MARGIN / 2 - lower };
  }

  /** Place all slides again, after what covers the stage has changed. */
  function arranged() {
    const isOpen = NARROW.matches ? sheet.level() !== "peek" : !panel.hidden;
    info.setAttribute("aria-expanded", String(isOpen));
    showMiddle();
    for (const slide of slides.values()) {
      slide.glide();
      slide.zoom.refit();
    }
  }

  /** The arrows are at the middle of what is free. */
  function showMiddle() {
    const { top, bottom } = area();
    node.style.setProperty("--middle", `${(top + bottom) / 2}px`);
    node.style.setProperty("--below", `${bottom}px`);
  }

  /** On a phone the actions are in the sheet, above the details, where the thumb is. */
  function fold() {
    if (NARROW.matches) head.append(tools);
    else bar.insertBefore(tools, more);
    panel.hidden = !NARROW.matches && !recalled("viewer.panel", true);
    sheet.turn(NARROW.matches);
  }

  function toggleDetails() {
    if (NARROW.matches) return sheet.set(sheet.level() === "peek" ? "half" : "peek");
    panel.hidden = !panel.hidden;
    remember("viewer.panel", !panel.hidden);
    arranged();
  }

  /** @param {boolean} wanted */
  function setBare(wanted) {
    if (isBare === wanted) return;
    isBare = wanted;
    node.classList.toggle("bare", isBare);
    arranged();
  }

  // ---------------------------------------------------------------------------------------------------------------- photos

  const current = () => /** @type {Slide} */ (slides.get(id));

  /** @param {number} photoId */
  function slideOf(photoId) {
    let slide = slides.get(photoId);
    if (!slide) {
      slide = pictureSlide(photoId, area, sequence?.summary(photoId), () => photoId === id && showZoom(), trash);
      slides.set(photoId, slide);
      track.append(slide.node);
    }
    return slide;
  }

  /** @type {HTMLElement | null} */
  let stackNode = null; // the strip of the stack that the photo belongs to

  /** @param {Stack | null} stack */
  function showStack(stack) {
    withLater(({ stackStrip }) => {
      if (photo?.stack !== stack || (!stack && !stackNode)) return;
      const hadFocus = stackNode?.contains(document.activeElement);
      stackNode?.remove();
      stackNode = stack && stackStrip(stack, id, { viewer: node, open: show });
      if (stackNode) stage.after(stackNode);
      if (hadFocus) /** @type {HTMLElement | null} */ (stackNode?.querySelector("[aria-current]") ?? heading)?.focus();
      arranged();
    });
  }

  const own = { node, show };

  /** @param {number} next */
  function show(next) {
    if (next === id && slides.has(id)) return;
    id = next;
    give.abort();
    give = new AbortController();
    [photo, lines, planned] = [null, null, []];
    closeMenu();
    getSelection()?.removeAllRanges();
    if (location.hash !== addressOf(id)) replaceAddress(addressOf(id));
    const slide = slideOf(id);
    place([null, id, null]);
    slide.zoom.home();
    markFound();
    showHead();
    content.classList.add("stale");
    if (!content.hasChildNodes()) fill(content, skeleton(6));
    const { signal } = give;
    const isPlaced = slide.zoom.size.width > 0;
    loadPicture(slide).then(() => {
      if (signal.aborted) return;
      if (!isPlaced) markFound();
      preload(signal);
    });
    detailArrives = loadDetail(signal);
    loadLines(signal);
    loadPlace(signal);
  }

  /**
   * What is sensitive on a photo, as far as it is known.
   *
   * @param {number} photoId
   */
  function veilableOf(photoId) {
    const sensitive = looked.get(photoId) ?? sequence?.summary(photoId)?.sensitive;
    return sensitive && { id: photoId, sensitive };
  }

  /** Whether the current photo is veiled. */
  function isCovered() {
    const known = veilableOf(id);
    return known !== undefined && isVeiled(known);
  }

  /**
   * Look whether a photo is sensitive before anything of it is fetched, where no list has told.
   *
   * @param {number} photoId
   */
  async function isCoveredAt(photoId) {
    if (!veilableOf(photoId)) looked.set(photoId, (await lookUp([photoId])).get(photoId)?.sensitive ?? []);
    return isVeiled(/** @type {Veilable} */ (veilableOf(photoId)));
  }

  /**
   * Load the picture of a slide, or its veil.
   *
   * @param {Slide} slide
   */
  function loadPicture(slide) {
    return slide.load(sentences(), async () => {
      const isHidden = await isCoveredAt(slide.id);
      const known = veilableOf(slide.id);
      return isHidden && known ? veilCard(known) : null;
    });
  }

  /** @param {Veilable} known */
  function veilCard(known) {
    const holdsPress = { pointerdown: (/** @type {Event} */ event) => event.stopPropagation() }; // it is no tap on the picture
    return [icon("hidden"), h("p", reasonOf(known)), h("div.row", { on: holdsPress }, button(t("viewer.uncover"), { kind: "primary", click: () => uncover(known.id) }),
      !trash && button(t("viewer.notSensitive"), { click: setCleared }))];
  }

  function setCleared() {
    const known = veilableOf(id);
    withLater(({ notSensitive }) => known && notSensitive(known));
  }

  /** The current photo was covered or uncovered: show it anew. */
  function veilChanged() {
    const slide = slides.get(id);
    const wasCovered = slide?.isCovered();
    if (!slide || wasCovered === undefined || isLeaving || isCovered() === wasCovered) return;
    const focused = document.activeElement;
    const isFocusLost = focused === document.body || (node.contains(focused) && focused !== heading);
    slide.release();
    slides.delete(id);
    fill(content);
    show(id);
    if (isFocusLost) heading.focus();
  }

  /** @param {number} photoId */
  function veilChangedAt(photoId) {
    if (photoId === id) return veilChanged();
    const slide = slides.get(photoId);
    if (!slide) return;
    slide.release();
    slides.delete(photoId);
    preload(give.signal);
  }

  /**
   * Keep the slides of these photos, before, at and after the middle, and release all others.
   *
   * @param {(number | null)[]} wanted
   */
  function place(wanted) {
    for (const [photoId, slide] of slides) {
      const at = photoId === wanted[1] ? 1 : wanted.indexOf(photoId); // while a list closes up, a photo may be its own neighbour
      if (at < 0) {
        slide.release();
        slides.delete(photoId);
      } else {
        slide.node.style.setProperty("--at", String(at - 1));
        slide.node.inert = at !== 1;
      }
    }
  }

  /** @param {AbortSignal} signal */
  async function loadPlace(signal) {
    neighbours = new Map([-1, 1].map((delta) => [delta, sequence ? sequence.neighbour(id, delta) : Promise.resolve(null)]));
    for (const each of arrows) each.hidden = !sequence;
    sequence?.place(id).then((at) => {
      if (signal.aborted) return;
      showPlace(at);
      if (marking.hidden) markFound(); // by now the list may know what it has found
    }, () => {});
    for (const [at, delta] of [-1, 1].entries()) {
      const set = (/** @type {boolean} */ isLast) => {
        if (signal.aborted) return;
        if (isLast && document.activeElement === arrows[at]) heading.focus(); // a disabled button loses the focus to nowhere
        arrows[at].disabled = isLast;
      };
      neighbours.get(delta)?.then((other) => set(other === null), (error) => set(error?.status === 404)); // pressing it tells what is wrong
    }
  }

  /** @param {AbortSignal} signal */
  async function preload(signal) {
    const around = await Promise.all([-1, 1].map((delta) => neighbours.get(delta)?.catch(() => null) ?? null));
    if (signal.aborted) return;
    for (const other of around) if (other !== null) loadPicture(slideOf(other));
    place([around[0], id, around[1]]);
  }

  /** @param {number} delta */
  async function turn(delta) {
    const from = id;
    try {
      const next = await (neighbours.get(delta) ?? null);
      if (next !== null && id === from && viewer && !isLeaving) show(next);
    } catch (error) {
      fail(error);
      if (id === from && sequence) neighbours.set(delta, sequence.neighbour(id, delta));
    }
  }

  /** @param {AbortSignal} signal */
  const fetchDetail = (signal) => api.get(`/api/photos/${id}`, null, { signal });

  /** @param {AbortSignal} signal */
  async function loadDetail(signal) {
    if (trash) return showTrashed();
    try {
      const detail = await fetchDetail(signal);
      if (signal.aborted) return;
      showDetail(detail);
      api.post(`/api/photos/${detail.id}/opened`).catch(() => {}); // it stays unread
    } catch (error) {
      if (signal.aborted || wasAborted(error)) return;
      content.classList.remove("stale");
      if (error.status === 404) fill(content, h("p.muted", t("viewer.gone")));
      else fill(content, failedState(error, () => loadDetail(signal)));
    }
  }

  /** @param {AbortSignal} signal */
  async function loadLines(signal) {
    if (trash) return;
    try {
      if (await isCoveredAt(id) || signal.aborted) return;
      const read = await api.get(`/api/photos/${id}/lines`, null, { signal });
      if (signal.aborted) return;
      lines = read;
      current().setLines(read);
      showHead();
      showSpots();
      showDates();
    } catch { /* without lines the picture is a picture; a failure of the service shows at the detail */ }
  }

  /** @param {PhotoDetail} detail */
  function showDetail(detail) {
    photo = detail;
    looked.set(detail.id, detail.sensitive);
    content.classList.remove("stale");
    showHead();
    const isHidden = isCovered();
    fill(content, detailsOf(detail, { title: title(), reprocess, veil: isHidden && h("p.details-veil", icon("hidden"), h("span", reasonOf(detail))) }).filter(Boolean));
    showStack(detail.stack);
    veilChanged(); // if the list was older than the detail
    if (!isHidden) {
      withLater(({ ownWords, photoAgenda }) => {
        if (photo !== detail) return;
        ownWords(content, detail, showSaved);
        photoAgenda(content, detail.id, { signal: give.signal, mark: showDates, find: (item) => boxOf(item).forEach((box) => glide((zoom) => zoom.reveal(box))) });
      });
    }
    if (NARROW.matches) sheet.refit();
    else content.scrollTop = 0;
    showSpots();
  }

  /**
   * Own words were saved.
   *
   * @param {PhotoDetail} detail
   * @param {string} focus
   */
  function showSaved(detail, focus) {
    tell("changed", detail.id);
    if (detail.id !== id || isLeaving) return;
    const at = content.scrollTop;
    showDetail(detail);
    content.scrollTop = at;
    /** @type {HTMLElement | null} */ (content.querySelector(focus))?.focus();
  }

  /** Photos were thrown away or brought back: its stack may be another one. */
  async function refreshDetail() {
    if (trash || isLeaving) return;
    const { signal } = give;
    const detail = await fetchDetail(signal).catch(() => null); // gone: the next one is shown
    if (!detail || signal.aborted || content.contains(document.activeElement)) return; // not while somebody writes
    const at = content.scrollTop;
    showDetail(detail);
    content.scrollTop = at;
  }

  /** What the list of the trash knows about it; no other answer of the service has it. */
  function showTrashed() {
    content.classList.remove("stale");
    const item = sequence?.summary(id);
    if (!item) return fill(content, h("p.muted", t("viewer.gone")));
    withLater(({ trashedDetails }) => fill(content, trashedDetails(item, { restored: () => goOn("restored"), erased: () => goOn("deleted") })));
  }

  /** While it is analysed: redraw only when the status has changed, so that nothing moves while somebody reads. */
  async function look() {
    if (!photo || !UNFINISHED.includes(photo.analysis.status)) return;
    const { signal } = give;
    const detail = await fetchDetail(signal);
    if (signal.aborted || !photo || detail.analysis.status === photo.analysis.status) return;
    if (!UNFINISHED.includes(detail.analysis.status)) loadLines(signal);
    showDetail(detail);
    tell("changed", id);
  }

  // ------------------------------------------------------------------------------------------------------- what is shown

  function title() {
    if (isCovered()) return t("veil.title");
    const given = photo?.title || sequence?.summary(id)?.title;
    if (given) return given;
    const line = lines?.lines.find(({ status_bar: isBar, text }) => !isBar && text.trim())?.text ?? (photo && textOf(photo).split("\n", 1)[0]);
    return line?.trim() || taken() || t("viewer.untitled");
  }

  const taken = () => formatDate(photo?.original_timestamp ?? sequence?.summary(id)?.original_timestamp ?? null);

  function showHead() {
    const name = title();
    showKept();
    for (const each of [share, ...showing]) each.disabled = isCovered();
    heading.textContent = name;
    node.ariaLabel = name;
    document.title = `${name} · Snaplore`;
    current().image.alt = t("viewer.picture", { title: name });
    const shown = content.querySelector(".details-title");
    if (shown && photo) shown.textContent = name;
    showUnder();
  }

  let placeText = "";
  function showUnder() {
    const date = taken();
    fill(under, [date !== heading.textContent && date, placeText].filter(Boolean).map((part, at) => [at > 0 && " · ", h("span", part)]));
  }

  /** @param {{ at: number, total: number } | null} at */
  function showPlace(at) {
    placeText = at ? t("viewer.place", { at: formatNumber(at.at), total: formatNumber(at.total) }) : "";
    showUnder();
    announced.textContent = [heading.textContent, placeText].filter(Boolean).join(", ");
  }

  function showZoom() {
    const slide = slides.get(id);
    if (!slide) return; // it is being made
    const { scale, actual } = slide.zoom;
    percent.textContent = formatPercent(scale / actual());
  }

  function showSpots() {
    if (photo && lines) current().setSpots(entitiesOf(photo).filter(({ type, href }) => href || type === "code"));
  }

  /**
   * The line that an item of the agenda is on.
   *
   * @param {AgendaFields} item
   */
  const boxOf = ({ line }) => lines?.lines.slice(line, line + 1) ?? [];

  function showDates(items = planned) {
    planned = items;
    if (lines) current().setDates(isCovered() ? [] : planned.flatMap(boxOf));
  }

  function markFound() {
    const boxes = isCovered() ? [] : found?.(id)?.boxes ?? [];
    marking.hidden = !boxes.length;
    current().setMarks(hasMarks ? boxes : []);
    if (boxes.length && current().zoom.size.width) current().zoom.reveal(boxes[0]);
  }

  function toggleMarks() {
    hasMarks = !hasMarks;
    marking.setAttribute("aria-pressed", String(hasMarks));
    markFound();
  }

  // --------------------------------------------------------------------------------------------------------------- actions

  /** @param {(zoom: Zoomable) => unknown} change */
  function glide(change) {
    current().glide();
    change(current().zoom);
  }

  /** @param {number} factor */
  function zoomBy(factor) {
    glide((zoom) => zoom.zoomTo(zoom.scale * factor));
  }

  function actualSize() {
    glide((zoom) => zoom.zoomTo(zoom.actual()));
  }

  async function pictureFile() {
    const blob = await current().blob();
    return new File([blob], photo?.filename || `${id}`, { type: blob.type });
  }

  /** @param {HTMLButtonElement} pressed */
  function download(pressed) {
    settle(pressed, pictureFile, saveFile);
  }

  /** @param {HTMLButtonElement} pressed */
  function sharePicture(pressed) {
    settle(pressed, async () => navigator.share({ files: [await pictureFile()], title: title() }), () => {});
  }

  /** @param {HTMLButtonElement} pressed */
  function copyPicture(pressed) {
    busy(pressed, copyToClipboard(current().picture()));
  }

  function copyAll() {
    const rows = (lines?.lines ?? []).filter(({ status_bar: isBar }) => !isBar);
    const all = rows.length ? rows.map(({ text }) => text).join("\n") : (photo ? textOf(photo) : "");
    if (all) copyText(all);
    else toast(t("viewer.noText"));
  }

  function openMore() {
    openMenu(node, more, {
      label: t("viewer.more"), back: more, items: [
        { label: t("viewer.actual"), glyph: "search", run: actualSize },
        ...(trash || !kindsOf(veilableOf(id) ?? { id, sensitive: [] }).length ? [] : [{ label: t("viewer.notSensitive"), glyph: /** @type {const} */ ("check"), run: setCleared }]),
        ...(trash ? [] : [{ label: t("viewer.reprocess"), glyph: /** @type {const} */ ("refresh"), run: () => reprocess(more) }]),
      ],
    });
  }

  /** @param {HTMLButtonElement} pressed */
  async function reprocess(pressed) {
    const of = id;
    try {
      await busy(pressed, api.post(`/api/analysis/${of}/reprocess`));
      toast(t("viewer.queued"), { kind: "good" });
      tell("changed", of);
      if (photo && of === id) showDetail({ ...photo, analysis: { ...photo.analysis, status: "pending" } });
    } catch (error) {
      fail(error);
    }
  }

  async function toggleKept() {
    await detailArrives;
    const of = photo;
    if (!of) return;
    of.kept = !of.kept;
    showKept();
    try {
      await api.patch(`/api/photos/${of.id}`, { kept: of.kept });
      tell("changed", of.id);
    } catch (error) {
      of.kept = !of.kept;
      showKept();
      fail(error);
    }
  }

  function showKept() {
    star.setAttribute("aria-pressed", String(photo?.kept ?? sequence?.summary(id)?.kept ?? false));
  }

  /** Throw it away and show the next one, so that many can be gone through. */
  async function remove() {
    const gone = id;
    const next = await nextPhoto();
    if (id !== gone || isLeaving) return;
    trashPhoto(gone);
    if (next === null) leave();
    else show(next);
  }

  async function nextPhoto() {
    const member = photo?.stack?.photo_ids.find((other) => other !== id);
    if (member) return member;
    for (const delta of [1, -1]) {
      const next = await neighbours.get(delta)?.catch(() => null);
      if (next !== null && next !== undefined) return next;
    }
    return null;
  }

  /**
   * It has left this list: show the next one.
   *
   * @param {"restored" | "deleted"} how
   */
  async function goOn(how) {
    const gone = id;
    const next = await nextPhoto();
    tell("deleted", gone);
    if (how === "restored") tell("many", 0);
    if (id !== gone || isLeaving) return;
    if (next === null) leave();
    else show(next);
  }

  /**
   * @param {Target} target
   * @param {HTMLElement} spot
   */
  function openSpot({ value, href }, spot) {
    /** @type {MenuItem[]} */
    const items = [{ label: t("viewer.copyValue"), glyph: "copy", run: () => copyText(value) }];
    if (href?.startsWith("mailto:")) items.unshift({ label: t("viewer.write"), glyph: "mail", href });
    else if (href?.startsWith("tel:")) items.unshift({ label: t("viewer.call"), glyph: "phone", href });
    else if (href) items.unshift({ label: t("viewer.openLink", { host: hostOf(href) }), glyph: "open", href });
    openMenu(node, spot, { label: t("viewer.target"), head: value, items, back: heading });
  }

  /** What the browser offers itself where it has made the selection. */
  function offerCopy() {
    const text = current().text();
    const chosen = text?.selected();
    const line = getSelection()?.focusNode?.parentElement;
    if (!text || !chosen || !line) return;
    openMenu(node, line, {
      label: t("viewer.target"), head: chosen, back: heading, items: [
        { label: t("viewer.copyValue"), glyph: "copy", run: () => copyText(chosen) },
        { label: t("viewer.selectAll"), glyph: "text", run: () => (text.selectAll(), offerCopy()) },
      ],
    });
  }

  // ---------------------------------------------------------------------------------------------------- pointers and keys

  /** @param {PointerEvent} event */
  function onPicture(event) {
    const { left, top } = stage.getBoundingClientRect();
    const { x, y, scale } = current().zoom;
    return { x: (event.clientX - left - x) / scale, y: (event.clientY - top - y) / scale };
  }

  const shift = (/** @type {number} */ dx, /** @type {number} */ dy = 0) => (track.style.transform = dx || dy ? `translate(${dx}px, ${dy}px)` : "");

  /**
   * @param {number} dx
   * @param {number} dy
   */
  async function settleTrack(dx, dy) {
    if (!CALM.matches) await track.animate({ transform: `translate(${dx}px, ${dy}px)` }, GLIDES).finished;
    shift(0);
  }

  /** @param {number} delta */
  const neighbourSlide = (delta) => [...slides.values()].find((slide) => slide.node.style.getPropertyValue("--at") === String(delta));

  const endGestures = gestures(stage, {
    picture: () => current().zoom,
    isText: (event) => current().text()?.isText(onPicture(event)) ?? false,
    select(phase, event, clicks) {
      const text = current().text();
      if (phase === "start") text?.begin(onPicture(event), clicks, event.shiftKey);
      else if (phase === "move") text?.extend(onPicture(event));
      else if (event.pointerType !== "mouse") offerCopy();
    },
    press(event) {
      if (closeMenu()) return true;
      const at = spotAt(event.clientX, event.clientY);
      if (at) openSpot(at.target, /** @type {HTMLElement} */ (at.spot));
      return at !== null;
    },
    tap(event) {
      if (isCovered()) return uncover(id);
      const selection = getSelection();
      if (selection && !selection.isCollapsed) selection.removeAllRanges();
      else if (event.pointerType !== "mouse") setBare(!isBare);
    },
    swipe: (dx) => shift(neighbourSlide(-Math.sign(dx)) ? dx : dx / 4),
    async swiped(dx, isFlick) {
      const delta = -Math.sign(dx);
      const next = neighbourSlide(delta);
      const isFar = isFlick || Math.abs(dx) > stage.clientWidth * TURN_PART;
      if (!next || !isFar) return settleTrack(0, 0);
      const from = id;
      await settleTrack(-delta * (stage.clientWidth + SLIDE_GAP), 0);
      if (id === from && viewer) show(next.id);
    },
    pull(dy) {
      shift(0, dy > 0 ? dy : dy / 4);
      node.style.setProperty("--gone", String(Math.min(1, Math.max(0, dy / 400))));
    },
    pulled(dy, isFlick) {
      node.style.removeProperty("--gone");
      if (dy > PULL_CLOSES || (dy > 0 && isFlick)) return leave();
      settleTrack(0, 0);
      if (dy < -PULL_CLOSES / 2 && NARROW.matches && sheet.level() === "peek") sheet.set("half");
    },
  });

  /** @type {Record<string, () => unknown>} */
  const keys = {
    "ArrowLeft": () => turn(-1),
    "ArrowRight": () => turn(1),
    "Shift+ArrowLeft": () => glide((zoom) => zoom.move(PAN_STEP, 0)),
    "Shift+ArrowRight": () => glide((zoom) => zoom.move(-PAN_STEP, 0)),
    "ArrowUp": () => glide((zoom) => zoom.move(0, PAN_STEP)),
    "ArrowDown": () => glide((zoom) => zoom.move(0, -PAN_STEP)),
    "PageUp": () => glide((zoom) => zoom.move(0, stage.clientHeight * 0.85)),
    "PageDown": () => glide((zoom) => zoom.move(0, stage.clientHeight * -0.85)),
    "+": () => zoomBy(ZOOM_STEP),
    "=": () => zoomBy(ZOOM_STEP),
    "-": () => zoomBy(1 / ZOOM_STEP),
    "0": () => glide((zoom) => zoom.fit()),
    "1": actualSize,
    "i": () => toggleDetails(),
    "s": () => trash || toggleKept(),
    "Delete": () => trash || remove(),
  };

  node.addEventListener("keydown", (event) => {
    if (event.key === "Tab") setBare(false);
    if (/** @type {Element} */ (event.target).matches("input, textarea")) return; // own words are typed
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "a") {
      event.preventDefault();
      const text = current().text();
      if (text?.rows.length) text.selectAll();
      else {
        const told = content.querySelector(".details-text");
        if (told) getSelection()?.selectAllChildren(told);
      }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.key === "Enter" || event.key === " ") && isCovered() && !/** @type {Element} */ (event.target).closest("button, a")) {
      event.preventDefault();
      return uncover(id);
    }
    const isScrolled = /Arrow[UD]|Page/.test(event.key) && content.contains(/** @type {Node} */ (event.target));
    const run = isScrolled ? undefined : keys[event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
  node.addEventListener("wheel", (event) => content.contains(/** @type {Node} */ (event.target)) || event.preventDefault(), { passive: false });
  node.addEventListener("cancel", (event) => {
    event.preventDefault();
    leave();
  });

  // ---------------------------------------------------------------------------------------------------------------- leaving

  /** @type {(() => unknown) | null} */
  let afterwards = null;

  /**
   * Close it as the Back button would, where the page has made the history entry, so that none is left behind.
   *
   * @param {() => unknown} [then]
   */
  function leave(then) {
    afterwards ??= then ?? null;
    if (isLeaving) return;
    isLeaving = true;
    if (isPhoto() && history.state?.over === addressBeneath()) return history.back();
    if (isPhoto()) replaceAddress(addressBeneath());
    node.close();
  }

  const unlisten = [
    // An address that is no photo's: Back was pressed, or a link. Another photo's is reported by the shell.
    listen(window, { hashchange: () => isPhoto() || node.close() }),
    listen(NARROW, { change: fold }),
    listen(photoEvents, { many: refreshDetail, restored: refreshDetail, deleted: refreshDetail }),
    listen(veilEvents, { changed: (event) => veilChangedAt(event.detail) }),
    listen(document, {
      copy: (/** @type {ClipboardEvent} */ event) => {
        const chosen = current().text()?.selected();
        if (!chosen || !event.clipboardData) return;
        event.clipboardData.setData("text/plain", chosen);
        event.preventDefault();
      },
    }),
  ];
  const sized = new ResizeObserver(() => {
    sheet.refit();
    showMiddle();
    for (const slide of slides.values()) slide.zoom.refit();
  });

  modal(node, {
    focus: heading,
    closed: () => {
      give.abort();
      closeMenu();
      sized.disconnect();
      endGestures();
      stopLooking();
      for (const end of unlisten) end();
      for (const slide of slides.values()) slide.release();
      document.title = titleBefore;
      if (viewer !== own) return; // the view was drawn again, with a viewer over it
      viewer = null;
      // Closed by the browser, for example by a second Escape: the address must not be left behind.
      if (isPhoto() && !isLeaving) history.state?.over === addressBeneath() ? history.back() : replaceAddress(addressBeneath());
      closed?.(id);
      afterwards?.();
    },
  });
  fold();
  sized.observe(stage);
  share.hidden = !canShareFiles();
  show(first);
  const stopLooking = poll(look, 1.5);
  return own;
}

const sentences = () => ({ broken: t("viewer.broken"), gone: t("viewer.gone") });

/** @param {string} href */
function hostOf(href) {
  try {
    return new URL(href).host;
  } catch {
    return href.slice(0, 60);
  }
}
