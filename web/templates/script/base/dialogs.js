// Messages and dialogs over the page. Dialogs are <dialog> elements: the browser keeps the focus inside them.

import { ApiError, wasAborted } from "./api.js";
import { button, h } from "./dom.js";
import { t } from "./texts.js";

/** @type {HTMLDialogElement[]} */
const openDialogs = [];

/**
 * Show a message that disappears by itself. `action` adds a button; `after` runs when it disappears and the button was not pressed.
 *
 * @param {string} text
 * @param {{
 *   kind?: "info" | "good" | "bad",
 *   action?: { label: string, run: () => unknown },
 *   seconds?: number,
 *   after?: () => unknown,
 * }} options
 */
export function toast(text, { kind = "info", action, seconds = kind === "bad" ? 8 : 5, after } = {}) {
  let timer = 0;
  const dismiss = (isTaken = false) => {
    clearTimeout(timer);
    if (!item.isConnected) return;
    item.remove();
    if (!isTaken) after?.();
  };
  const take = () => {
    dismiss(true);
    action?.run();
  };
  const item = h("div", { class: `toast ${kind}`, role: kind === "bad" ? "alert" : undefined },
    h("p", { text }), action && button(action.label, { kind: "quiet", click: take }),
    button("", { glyph: "close", kind: "quiet", label: t("shell.dismiss"), click: () => dismiss() }));
  const start = () => (timer = setTimeout(dismiss, seconds * 1000));
  item.addEventListener("pointerenter", () => clearTimeout(timer));
  item.addEventListener("pointerleave", start);
  item.addEventListener("focusin", () => clearTimeout(timer));
  item.addEventListener("focusout", start);
  const region = toasts();
  region.append(item);
  while (region.children.length > 4) /** @type {HTMLElement} */ (region.querySelector(".button.icon")).click();
  start();
}

const toasts = () => /** @type {HTMLElement} */ (document.getElementById("toasts"));

/**
 * The message of a failure, with the time to wait where the service gives one.
 *
 * @param {any} error
 */
export function sentence(error) {
  if (!(error instanceof ApiError)) return String(error?.message ?? error);
  return error.retryAfter ? t("api.wait", { detail: error.detail, seconds: error.retryAfter }) : error.detail;
}

/** @param {any} error */
export function fail(error) {
  if (wasAborted(error) || error?.status === 401) return; // aborted on purpose; or the sign-in reports it
  if (!(error instanceof ApiError)) console.error(error);
  toast(sentence(error), { kind: "bad" });
}

/**
 * Open a dialog. `actions` is a list of buttons; `closed(reason)` is called once, when it closes.
 *
 * @param {{
 *   title: string,
 *   body: Child,
 *   actions?: HTMLElement[],
 *   wide?: boolean,
 *   closed?: (reason: string) => unknown,
 * }} options
 */
export function dialog({ title, body, actions = [], wide = false, closed }) {
  const shut = button("", { glyph: "close", kind: "quiet", label: t("shell.close"), click: () => node.close() });
  const heading = h("h2", { text: title, tabindex: "-1" });
  const node = h("dialog", { class: `dialog ${wide ? "wide" : ""}`, label: title },
    h("header.dialog-head", heading, shut), h("div.dialog-body", body),
    actions.length ? h("footer.row.end", actions) : null);
  node.addEventListener("click", (event) => event.target === node && node.close()); // a click beside the dialog
  modal(node, { focus: heading, closed });
  return { node, close: (reason = "") => node.close(reason) };
}

/**
 * Show a <dialog> over everything else. When it closes, it is removed, the focus returns to where it was, and `closed(reason)` is called.
 *
 * @param {HTMLDialogElement} node
 * @param {{ focus: HTMLElement, closed?: (reason: string) => unknown }} options `focus`: what gets the focus if nothing has `autofocus`
 */
export function modal(node, { focus, closed }) {
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  node.addEventListener("close", () => {
    openDialogs.splice(openDialogs.indexOf(node), 1);
    placeToasts();
    node.remove();
    if (before?.isConnected) before.focus({ preventScroll: true });
    closed?.(node.returnValue);
  });
  document.body.append(node);
  node.showModal();
  openDialogs.push(node);
  placeToasts();
  /** @type {HTMLElement} */ (node.querySelector("[autofocus]") ?? focus).focus();
}

/**
 * Ask a question; resolves to whether it was confirmed. Escape, the close button and a click beside the dialog cancel.
 *
 * @param {{ title: string, text: string, action: string, danger?: boolean }} options
 * @returns {Promise<boolean>}
 */
export function confirmDialog({ title, text, action, danger = false }) {
  return new Promise((resolve) => {
    const yes = button(action, { kind: danger ? "danger" : "primary", click: () => handle.close("yes") });
    const no = button(t("shell.cancel"), { click: () => handle.close(), autofocus: true });
    const handle = dialog({ title, body: h("p", { text }), actions: [no, yes], closed: (reason) => resolve(reason === "yes") });
  });
}

export function closeDialogs() {
  for (const node of [...openDialogs]) node.close();
}

/** Everything outside a modal dialog is inert, so messages move into the topmost open dialog. */
function placeToasts() {
  (openDialogs.at(-1) ?? document.body).append(toasts());
}
