// Sign-in. The key is kept in memory, and in the browser's storage only on request.

import { api, session } from "./api.js";
import { confirmDialog, sentence, toast } from "./dialogs.js";
import { field, h } from "./dom.js";
import { emptyCaches, emptyOutbox, shareKey } from "./outbox.js";
import { forget, recalled, remember } from "./preferences.js";
import { busy, closeShell, fillPage, focusView, isOpen, mark, openShell } from "./shell.js";
import { t } from "./texts.js";
import { stopUploads, tellInterrupted } from "./upload.js";

let focusLater = ""; // the id of an element

export function begin() {
  session.refused = () => signedOut();
  session.key = takeKept("carried") ?? recalled("key", null);
  const open = () => {
    const [, code] = /^#\/pair\/(\w+)$/.exec(location.hash) ?? [];
    const [, key] = /^#key=([^&]+)$/.exec(location.hash) ?? [];
    if (!code && !key) return false;
    history.replaceState(null, "", "#/library"); // neither code nor key is kept in the history
    const signedIn = key ? () => enter(decodeURIComponent(key)) : () => redeem(code);
    followLink(signedIn, key && decodeURIComponent(key)).catch((error) => isOpen() ? toast(sentence(error), { kind: "bad" }) : showSignIn(sentence(error)));
    return true;
  };
  window.addEventListener("hashchange", open);
  if (open()) return;
  focusLater = takeKept("focused") ?? "";
  if (session.key || document.documentElement.dataset.key === "open") {
    openShell();
    tellInterrupted();
  } else showSignIn();
  focusKept();
}

/** Focus what `reload` was told to, once it is there. */
export function focusKept() {
  const kept = focusLater && document.getElementById(focusLater);
  if (!kept) return;
  focusLater = "";
  kept.focus();
}

/**
 * Load the page again without signing out, and focus this element then.
 *
 * @param {string} id
 */
export function reload(id) {
  try {
    sessionStorage.setItem("snaplore.focused", id);
    if (session.key) sessionStorage.setItem("snaplore.carried", session.key);
  } catch { /* no storage: the person signs in again */ }
  location.reload();
}

/**
 * What was kept over `reload`, which is in the storage of this tab only until the page has started.
 *
 * @param {"carried" | "focused"} name
 */
function takeKept(name) {
  try {
    const kept = sessionStorage.getItem(`snaplore.${name}`);
    sessionStorage.removeItem(`snaplore.${name}`);
    return kept;
  } catch {
    return null;
  }
}

/**
 * Use the code or the key of a link. A browser that is signed in is asked first: a link alone must not replace its key.
 *
 * @param {() => Promise<void>} signedIn signs in with it
 * @param {string} [key]
 */
async function followLink(signedIn, key) {
  if (session.key && await isAccepted()) {
    openShell();
    if (key === session.key) return;
    if (!await confirmDialog({ title: t("signin.another"), text: t("signin.anotherText"), action: t("signin.enter") })) return;
  }
  await signedIn();
}

/**
 * Sign in with the key of the address that `make run` prints, and stay signed in.
 *
 * @param {string} key
 */
async function enter(key) {
  // Not by `api`, for which a refusal ends the access that this browser has.
  const answer = await fetch("api/stats", { headers: { Authorization: `Bearer ${key}` } }).catch(() => null);
  if (!answer?.ok) throw new Error(t(answer?.status === 401 ? "signin.wrong" : "api.unreachable"));
  session.key = key;
  remember("key", key);
  shareKey();
  openShell();
  focusView();
}

/** Whether the key still opens anything. Otherwise it is forgotten. */
async function isAccepted() {
  try {
    await api.get("/api/stats");
  } catch (error) {
    if (error.status === 401) session.key = null;
  }
  return session.key !== null;
}

/**
 * Exchange a pairing code for a token, and sign in with it.
 *
 * @param {string} code
 */
async function redeem(code) {
  const { token } = await api.post("/api/pairing/redeem", { code, device_name: deviceName() });
  session.key = token;
  remember("key", token);
  shareKey();
  openShell();
  focusView();
}

/** What this device is called in the list of devices: "iPhone", "Chrome on Android". */
function deviceName() {
  const agent = navigator.userAgent;
  const [system] = /iPhone|iPad|Android|Windows|Macintosh|CrOS|Linux/.exec(agent) ?? [""];
  const [browser] = /Firefox|Edg|SamsungBrowser|Chrome|Safari/.exec(agent) ?? [""];
  return [browser === "Edg" ? "Edge" : browser, system === "Macintosh" ? "Mac" : system].filter(Boolean).join(", ");
}

/** Forget the key and what waits for the network, and then show the sign-in. */
export async function signOut() {
  await emptyOutbox().catch(() => {});
  await signedOut("");
}

/** The service refused the key. */
async function signedOut(reason = t("signin.ended")) {
  if (!isOpen()) return; // the sign-in reports a wrong key itself
  session.key = null;
  forget("key");
  shareKey();
  stopUploads();
  closeShell();
  showSignIn(reason);
  await emptyCaches().catch(() => {}); // no network
}

function showSignIn(reason = "") {
  document.title = `${t("signin.title")} · Snaplore`;
  const input = h("input", {
    type: "password",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
    autocapitalize: "none",
  });
  const keep = h("input", { type: "checkbox", id: "keep", checked: true });
  const problem = h("p.problem", { role: "alert", text: reason });
  const submit = h("button.button.primary", { type: "submit" }, h("span", t("signin.enter")));
  const attempt = async () => {
    problem.textContent = "";
    session.key = input.value.trim();
    try {
      await api.get("/api/stats");
    } catch (error) {
      session.key = null;
      problem.textContent = error.status === 401 ? t("signin.wrong") : sentence(error);
      input.focus();
      return;
    }
    if (keep.checked) remember("key", session.key);
    shareKey();
    openShell();
    focusView();
  };
  const code = h("input", {
    type: "text",
    autocomplete: "one-time-code",
    autocapitalize: "characters",
    spellcheck: "false",
    maxlength: "20",
  });
  const send = h("button.button", { type: "submit" }, h("span", t("signin.enter")));
  const enterCode = () => redeem(code.value).catch((error) => ((problem.textContent = sentence(error)), code.focus()));
  const byCode = h("details.signin-code", h("summary", t("signin.useCode")),
    h("form.stack.tight", { on: { submit: (event) => (event.preventDefault(), busy(send, enterCode())) } },
      field(t("signin.code"), code, t("signin.codeHint")), send));
  const form = h("form.stack", { on: { submit: (event) => (event.preventDefault(), busy(submit, attempt())) } },
    field(t("signin.key"), input, t("signin.hint")),
    h("label.row.check", { for: "keep" }, keep, h("span", t("signin.keep"))), problem, submit);
  fillPage(h("main.signin-page", h("div.signin.card", h("div.brand", mark(), h("h1", "Snaplore")), h("p.muted", t("signin.lead")), form, byCode)));
  input.focus();
}
