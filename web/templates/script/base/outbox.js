// The outbox of the installed page: pictures that wait for the network. The service worker keeps and sends them, because it goes on
// when the page is closed; this file tells it what to do, and whose key to use.

import { session } from "./api.js";
import { toast } from "./dialogs.js";
import { recalled } from "./preferences.js";
import { t } from "./texts.js";
import { workerAddress } from "./trusted.js";

const PATIENCE = 5000; // ms for an answer of the service worker

/** Whether pictures can wait here: only over https or on this machine, and where the browser has service workers. */
export const canWait = () => Boolean(navigator.serviceWorker?.controller);

/**
 * Start the service worker, and listen to what it has sent. `sent(id)` is called for each picture.
 *
 * @param {(id: number) => unknown} sent
 */
export async function startOutbox(sent) {
  if (!navigator.serviceWorker) return;
  navigator.serviceWorker.addEventListener("message", ({ data }) => {
    if (data?.task !== "sent") return;
    if (data.problem) toast(t("outbox.refused", data), { kind: "bad" });
    else sent(data.id);
  });
  const shared = Number(new URLSearchParams(location.search).get("shared"));
  if (shared) {
    history.replaceState(null, "", location.pathname + location.hash);
    toast(t("outbox.shared", { count: shared }));
  }
  window.addEventListener("online", shareKey);
  try {
    await navigator.serviceWorker.register(workerAddress());
  } catch {
    return; // private windows, or a certificate that the browser does not accept: the page works without
  }
  await navigator.serviceWorker.ready;
  // A page that was loaded while the worker started is not in its charge yet, and would keep nothing for later.
  if (!canWait()) ask({ task: "claim" });
  shareKey();
}

/**
 * Let the service worker send what waits, now with the key of the person who is signed in. It stores the key, to send by itself
 * later, only where the person stays signed in. Without anybody signed in, it forgets the key, and what waits goes on waiting.
 */
export async function shareKey() {
  const key = document.documentElement.dataset.key === "open" ? "" : session.key; // "": none is needed
  const isKept = key === "" || (key !== null && key === recalled("key", null));
  await ask({ task: "key", key: isKept ? key : null });
  if (key !== null) await ask({ task: "send", key });
}

/**
 * Have the browser forget what it has cached of the service: the access has ended. Without a network the frame stays, which holds
 * nothing of the person, or there would be no page to sign in on.
 */
export async function emptyCaches() {
  await fetch("sign-out", { method: "POST", keepalive: true, signal: AbortSignal.timeout(PATIENCE) });
  if (!("caches" in window)) return; // over plain http
  await caches.delete("frame"); // the service worker's; others belong to whatever else is at this address
}

/** Delete the key and everything that waits: somebody has signed out. */
export const emptyOutbox = () => ask({ task: "forget" });

/**
 * Keep a picture until it can be sent. Rejects when it cannot be kept.
 *
 * @param {File} file
 * @param {string} name
 * @param {string} id by which the service recognises it if it is sent twice
 */
export async function keepForLater(file, name, id) {
  const isDone = await ask({ task: "keep", item: { id, file, name, taken: file.lastModified } });
  if (!isDone) throw new Error("The service worker has not kept it.");
}

/**
 * Have the service worker do something; resolves to whether it was done, false where there is no service worker.
 *
 * @param {{ task: "claim" | "key" | "send" | "forget" | "keep", [field: string]: unknown }} order
 * @returns {Promise<boolean>}
 */
async function ask(order) {
  const worker = (await navigator.serviceWorker?.getRegistration())?.active;
  if (!worker) return false;
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data);
    setTimeout(() => resolve(false), PATIENCE); // a worker that does not run must not keep anybody from signing out
    worker.postMessage(order, [port2]);
  });
}
