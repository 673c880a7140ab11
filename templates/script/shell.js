// The frame around the views: navigation, addresses, theme, what every view shows while it loads, has nothing, or fails.

import { ApiError, wasAborted } from "./api.js";
import { closeDialogs, sentence, toast } from "./dialogs.js";
import { button, fill, h, icon, listen } from "./dom.js";
import { recalled, remember } from "./preferences.js";
import { language, t } from "./texts.js";

const views = new Map();
const badges = {};
let leave = []; // clean-up of the view that is shown
let main = null;

/**
 * Register a view: {title, icon, show(container, {id, query})}; the navigation shows them in the order of registering. `show` returns
 * what ends it: a function, a list of them, or nothing.
 */
export function route(name, view) {
  views.set(name, view);
}

/** Open an address like "#/chat/12?x=y". */
export function go(address) {
  if (location.hash === address) showView();
  else location.hash = address;
}

/** Change the address without showing the view anew. */
export function replaceAddress(address) {
  history.replaceState(null, "", address);
}

function currentAddress() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  let id = rest.join("/") || null;
  try {
    id = id && decodeURIComponent(id);
  } catch { /* a stray % stays as it is */ }
  return { name: name || views.keys().next().value, id, query: new URLSearchParams(query) };
}

/** Whether the views are shown, rather than the sign-in. */
export const isOpen = () => main !== null;

/** Show the navigation and the view of the current address. */
export function openShell() {
  renderShell();
  showView();
}

/** End the view that is shown, to make place for the sign-in. */
export function closeShell() {
  leaveView();
  main = null;
}

/** Put the keyboard, and a screen reader, at the start of the view. */
export function focusView() {
  main?.focus({ preventScroll: true });
}

export function renderAll() {
  document.documentElement.lang = language() === "zh" ? "zh-Hans" : "en";
  applyTheme();
  if (main) openShell();
}

function renderShell() {
  main = h("main", { id: "main", tabindex: "-1" });
  const skip = h("a.skip", { href: "#main", text: t("shell.skip"), on: { click: (event) => (event.preventDefault(), main.focus()) } });
  const links = [...views].map(([name, view]) =>
    h("a.nav-link", { href: `#/${name}`, dataset: { view: name } },
      icon(view.icon), h("span.nav-text", t(view.title)), h("span.nav-badge", { hidden: true })));
  const brand = h("div.brand", { "aria-hidden": "true" }, mark(), h("span", "Snaplore"));
  fill(document.getElementById("app"), skip,
    h("div.shell", h("nav.nav", { label: t("shell.nav") }, brand, links), main));
  for (const name of Object.keys(badges)) navBadge(name, badges[name]);
}

export function mark() {
  return h("span.mark", icon("mark"));
}

/** A number beside the navigation's entry; 0 hides it. */
export function navBadge(name, count) {
  badges[name] = count;
  const badge = document.querySelector(`.nav-link[data-view=${name}] .nav-badge`);
  if (!badge) return;
  badge.hidden = !count;
  fill(badge, h("span", { "aria-hidden": "true", text: count > 99 ? "99+" : String(count) }),
    h("span.visually-hidden", t("shell.unread", { count })));
}

export function showView() {
  if (!main) return;
  const address = currentAddress();
  const view = views.get(address.name);
  leaveView();
  for (const link of document.querySelectorAll(".nav-link")) link.ariaCurrent = link.dataset.view === address.name ? "page" : null;
  const container = h("div", { class: `view view-${view ? address.name : "missing"}` });
  fill(main, container);
  window.scrollTo(0, 0);
  document.title = `${view ? t(view.title) : "?"} · Snaplore`;
  if (view) leave = [view.show(container, address) ?? []].flat();
  else container.append(emptyState({ glyph: "search", title: t("shell.missing"), action: h("a.button", { href: "#/", text: t("shell.toHome") }) }));
}

// A file that is dropped beside a place that takes files must not replace the page.
listen(window, { dragover: (event) => event.preventDefault(), drop: (event) => event.preventDefault() });

function leaveView() {
  for (const end of leave) end();
  leave = [];
  closeDialogs();
}

window.addEventListener("hashchange", () => {
  showView();
  focusView(); // a screen reader goes on reading in the new view
});

/** The heading of a view, with its actions at the right. */
export function pageHead(title, ...actions) {
  return h("header.page-head", h("h1", title), h("div.row", actions));
}

export function skeleton(lines = 3, shape = "line") {
  return h("div.stack", { role: "status", label: t("shell.loading") },
    Array.from({ length: lines }, () => h("div", { class: `skeleton ${shape}` })));
}

export function emptyState({ glyph = "image", title, text, action }) {
  return h("div.empty", icon(glyph), h("h2", title), text && h("p", { text }), action);
}

export function failedState(error, retry) {
  return h("div.empty", { role: "alert" }, icon("warn"), h("h2", t("shell.failed")),
    h("p", sentence(error)), button(t("shell.retry"), { glyph: "refresh", click: retry }));
}

/**
 * Show a skeleton in `container`, then what `render(data)` makes of what `fetcher(signal)` brings, or the failure with a retry.
 * Returns a function that gives it up.
 */
export function load(container, fetcher, render, waiting = skeleton()) {
  let attempt = null;
  const run = async () => {
    attempt?.abort();
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

/** Call `fn` now and then every `seconds`, one call at a time, only while the page is looked at. Returns stop(). */
export function poll(fn, seconds) {
  let timer = null;
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

/** `fn` once, `wait` ms after the last call. `.cancel()` gives it up. */
export function debounced(fn, wait) {
  let timer = null;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(fn, wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Disable a button while `promise` is under way; returns what it brings. The focus that is lost by that comes back. */
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

/** "en", "zh" or "auto". */
export function setLanguage(name) {
  remember("language", name);
  renderAll();
}

/** "light", "dark" or "auto". */
export function setTheme(name) {
  remember("theme", name);
  applyTheme();
}

function applyTheme() {
  const chosen = recalled("theme", "auto");
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers give the clipboard to https and localhost only; a box on the LAN often has neither.
    const area = h("textarea.visually-hidden", { value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(t("shell.copied"), { kind: "good", seconds: 2 });
}
