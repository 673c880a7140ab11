// The frame around the views: navigation, addresses, theme, and the states of loading, empty and failed.

import { ApiError, wasAborted } from "./api.js";
import { closeDialogs, sentence, toast } from "./dialogs.js";
import { button, fill, h, icon, listen } from "./dom.js";
import { recalled, remember } from "./preferences.js";
import { t } from "./texts.js";

/**
 * @typedef {object} View
 * @property {string} title the key of its name
 * @property {import("./dom.js").Glyph} icon
 * @property {string} [within] the view in whose place of the navigation it is; without, it has a place of its own
 * @property {(container: HTMLElement, address: Address) => Ending | Ending[] | void} show returns functions that end it
 */

/**
 * What is shown over the view that is there, such as a picture, and has an address of its own.
 *
 * @typedef {object} Cover
 * @property {string} beneath the view under it where the page is opened with this address
 * @property {boolean} [isBound] shown over that view only
 * @property {(address: Address) => unknown} show called when this address is reached, unless it was pushed by the page itself
 */

/** @type {Map<string, View>} */
const views = new Map();
/** @type {Map<string, Cover>} */
const covers = new Map();
/** @type {Record<string, number>} */
const badges = {};
/** @type {Ending[]} */
let leave = []; // of the current view
/** @type {HTMLElement | null} */
let main = null;
let drawn = ""; // the address of the current view, which stays while something covers it

// Addresses of earlier versions: bookmarks and links in old notes still work.
/** @type {Record<string, (id: string) => string>} */
const MOVED = { home: () => "library", photos: (id) => (id ? `photo/${id}` : "library"), memories: () => "notes/memories" };

/**
 * Register a view. The navigation lists them in this order.
 *
 * @param {string} name
 * @param {View} view
 */
export function route(name, view) {
  views.set(name, view);
}

/**
 * Register what is shown over a view. Going to its address and back leaves the view beneath as it is.
 *
 * @param {string} name
 * @param {Cover} shown
 */
export function cover(name, shown) {
  covers.set(name, shown);
}

/**
 * Open an address like "#/chat/12?x=y".
 *
 * @param {string} address
 */
export function go(address) {
  if (location.hash === address) showView();
  else location.hash = address;
}

/**
 * Change the address without redrawing the view.
 *
 * @param {string} address
 */
export function replaceAddress(address) {
  history.replaceState(history.state, "", address);
  if (!covers.has(currentAddress().name)) drawn = address;
}

/** The address of the view that is shown, also while something covers it. */
export const addressBeneath = () => drawn;

/** @returns {Address} */
function currentAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  if (Object.hasOwn(MOVED, name)) {
    history.replaceState(history.state, "", `#/${MOVED[name](rest.join("/"))}${query && `?${query}`}`);
    return currentAddress();
  }
  /** @type {string | null} */
  let id = rest.join("/") || null;
  try {
    id = id && decodeURIComponent(id);
  } catch { /* a stray %: kept as it is */ }
  return { name: name || [...views.keys()][0], id, query: new URLSearchParams(query) };
}

/** Whether a view is shown, and not the sign-in. */
export const isOpen = () => main !== null;

/** Show the navigation and the view of the current address. */
export function openShell() {
  renderShell();
  showView();
}

/** End the current view, before the sign-in is shown. */
export function closeShell() {
  leaveView();
  main = null;
}

/** Move the focus to the start of the view. */
export function focusView() {
  main?.focus({ preventScroll: true });
}

export function renderAll() {
  applyTheme();
  if (main) openShell();
}

/** @param {Child[]} children */
export function fillPage(...children) {
  fill(/** @type {HTMLElement} */ (document.getElementById("app")), children);
}

function renderShell() {
  main = h("main", { id: "main", tabindex: "-1" });
  const skip = h("a.skip", { href: "#main", text: t("shell.skip"), on: { click: (event) => (event.preventDefault(), main?.focus()) } });
  const links = [...views].filter(([, view]) => !view.within).map(([name, view]) =>
    h("a.nav-link", { href: `#/${name}`, dataset: { view: name } },
      h("span.nav-icon", icon(view.icon), h("span.nav-badge", { hidden: true })), h("span.nav-text", t(view.title))));
  const brand = h("div.brand", { "aria-hidden": "true", title: "Snaplore" }, mark());
  fillPage(skip, h("div.shell", h("nav.nav", { label: t("shell.nav") }, brand, links), main));
  for (const name of Object.keys(badges)) navBadge(name, badges[name]);
}

export function mark() {
  return h("span.mark", icon("mark"));
}

/**
 * Show a number beside an entry of the navigation; 0 hides it.
 *
 * @param {string} name
 * @param {number} count
 */
export function navBadge(name, count) {
  badges[name] = count;
  const badge = /** @type {HTMLElement | null} */ (document.querySelector(`.nav-link[data-view=${name}] .nav-badge`));
  if (!badge) return;
  badge.hidden = !count;
  fill(badge, h("span", { "aria-hidden": "true", text: count > 99 ? "99+" : String(count) }),
    h("span.visually-hidden", t("shell.unread", { count })));
}

export function showView() {
  if (!main) return;
  const address = currentAddress();
  const over = covers.get(address.name);
  const name = over?.beneath ?? address.name;
  const view = views.get(name);
  drawn = over ? `#/${name}${address.query.size ? `?${address.query}` : ""}` : location.hash;
  leaveView();
  for (const link of document.querySelectorAll(".nav > .nav-link")) {
    link.ariaCurrent = link.getAttribute("data-view") === (view?.within ?? name) ? "page" : null;
  }
  const container = h("div", { class: `view view-${view ? name : "missing"}` });
  fill(main, container);
  window.scrollTo(0, 0);
  document.title = `${view ? t(view.title) : "?"} · Snaplore`;
  if (view) leave = [view.show(container, over ? { name, id: null, query: address.query } : address) ?? []].flat();
  else {
    container.append(
      emptyState({ glyph: "search", title: t("shell.missing"), action: h("a.button", { href: "#/", text: t("shell.toLibrary") }) }),
    );
  }
  over?.show(address);
}

// Without this, a file that is dropped outside a drop zone replaces the page.
listen(window, { dragover: (event) => event.preventDefault(), drop: (event) => event.preventDefault() });

function leaveView() {
  for (const end of leave) end();
  leave = [];
  closeDialogs();
}

window.addEventListener("hashchange", () => {
  if (!main) return;
  const address = currentAddress();
  const over = covers.get(address.name);
  if (over && (!over.isBound || drawn.split(/[/?]/)[1] === over.beneath)) {
    over.show(address);
    return;
  }
  if (location.hash === drawn) return; // what covered the view is gone
  showView();
  focusView(); // so that a screen reader continues in the new view
});

/**
 * The heading of a view, with its actions on the right.
 *
 * @param {string} title
 * @param {Child[]} actions
 */
export function pageHead(title, ...actions) {
  return h("header.page-head", h("h1", title), h("div.row", actions));
}

export function skeleton(lines = 3, shape = "line") {
  return h("div.stack", { role: "status", label: t("shell.loading") },
    Array.from({ length: lines }, () => h("div", { class: `skeleton ${shape}` })));
}

/** @param {{ glyph?: import("./dom.js").Glyph, title: string, text?: string, action?: Child }} state */
export function emptyState({ glyph = "image", title, text, action }) {
  return h("div.empty", icon(glyph), h("h2", title), text && h("p", { text }), action);
}

const FIRST_LOOK = 2; // seconds until the first look whether a server that did not answer is there again; doubled each time
const LAST_LOOK = 30;
/** @type {Map<HTMLElement, () => unknown>} */
const waitingForServer = new Map(); // what is shown instead of a view, with what shows the view

/** Look until the server answers, as long as something on the page waits for it, and then show what waits. */
async function lookForServer() {
  for (let seconds = FIRST_LOOK; waitingForServer.size; seconds = Math.min(2 * seconds, LAST_LOOK)) {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    for (const state of waitingForServer.keys()) if (!state.isConnected) waitingForServer.delete(state);
    if (!waitingForServer.size || document.hidden || !await fetch("api/health").then(({ ok }) => ok, () => false)) continue;
    const retries = [...waitingForServer.values()];
    waitingForServer.clear();
    for (const retry of retries) retry();
  }
}

/**
 * What is shown where no answer came. It tries again by itself; a second one on a screen does not say it all again.
 *
 * @param {() => unknown} retry
 */
function unreachableState(retry) {
  const isSecond = document.querySelector(".unreachable");
  const node = isSecond ? h("p.muted.unreachable", t("shell.retrying")) : h("div.empty.unreachable", { role: "alert" }, icon("refresh"),
    h("h2", t("shell.unreachable")), h("p", t("shell.unreachableText")), button(t("shell.retry"), { glyph: "refresh", click: retry }));
  const isAlone = !waitingForServer.size;
  waitingForServer.set(node, retry);
  if (isAlone) lookForServer();
  return node;
}

/**
 * @param {any} error
 * @param {() => unknown} retry
 */
export function failedState(error, retry) {
  if (error?.status === 0) return unreachableState(retry);
  return h("div.empty", { role: "alert" }, icon("warn"), h("h2", t("shell.failed")),
    h("p", sentence(error)), button(t("shell.retry"), { glyph: "refresh", click: retry }));
}

/**
 * Show `waiting` in `container`, then `render(data)` with the data of `fetcher(signal)`, or the failure with a retry button.
 * Returns a function that aborts it.
 *
 * @template Data
 * @param {HTMLElement} container
 * @param {(signal: AbortSignal) => Promise<Data>} fetcher
 * @param {(data: Data) => Child} render
 * @param {HTMLElement} waiting
 */
export function load(container, fetcher, render, waiting = skeleton()) {
  let attempt = new AbortController();
  const run = async () => {
    attempt.abort();
    attempt = new AbortController();
    const { signal } = attempt;
    fill(container, waiting);
    container.setAttribute("aria-busy", "true");
    try {
      const data = await fetcher(signal);
      if (!signal.aborted) fill(container, render(data));
    } catch (problem) {
      if (!signal.aborted) {
        if (!(problem instanceof ApiError)) console.error(problem);
        fill(container, failedState(problem, run));
      }
    }
    if (!signal.aborted) container.removeAttribute("aria-busy");
  };
  run();
  return () => attempt.abort();
}

/**
 * Call `fn` now and every `seconds` after it has ended, while the page is visible. Returns a function that stops it.
 *
 * @param {() => unknown} fn
 * @param {number} seconds
 */
export function poll(fn, seconds) {
  let timer = 0;
  let stopped = false;
  let running = false;
  const run = async () => {
    clearTimeout(timer);
    if (stopped || running || document.hidden) return;
    running = true;
    try {
      await fn();
    } catch (problem) {
      if (!(problem instanceof ApiError) && !wasAborted(problem)) console.error(problem);
    }
    running = false;
    if (!stopped) timer = setTimeout(run, seconds * 1000);
  };
  const unlisten = listen(document, { visibilitychange: run });
  run();
  return () => {
    stopped = true;
    clearTimeout(timer);
    unlisten();
  };
}

/**
 * Run `fn` once, `wait` ms after the last call. `.cancel()` drops a pending run.
 *
 * @param {() => unknown} fn
 * @param {number} wait
 */
export function debounced(fn, wait) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(fn, wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/**
 * Disable a button until `promise` settles, and return its result. The focus, which disabling removes, is restored.
 *
 * @template Result
 * @param {HTMLButtonElement | HTMLInputElement} target
 * @param {Promise<Result>} promise
 */
export async function busy(target, promise) {
  const focused = document.activeElement === target;
  target.disabled = true;
  target.setAttribute("aria-busy", "true");
  try {
    return await promise;
  } finally {
    target.disabled = false;
    target.removeAttribute("aria-busy");
    if (focused && document.activeElement === document.body) target.focus();
  }
}

/** @param {string} name "light", "dark" or "auto" */
export function setTheme(name) {
  remember("theme", name);
  applyTheme();
}

function applyTheme() {
  const chosen = recalled("theme", "auto");
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard API needs https or localhost; a server in the LAN often has neither.
    const area = h("textarea.visually-hidden", { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(t("shell.copied"), { kind: "good", seconds: 2 });
}
