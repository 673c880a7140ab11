// The service worker of the installed page. It keeps both parts of the page, so that it opens offline; it receives pictures that another
// app shares with Snaplore; and it sends what waits in the outbox once the service can be reached. It keeps no answer of the API.

const FRAME = "frame"; // the cache with the page and its later part, which hold nothing of the person
const ROOT = new URL("./", location.href).pathname; // "/", or the path below which a proxy has put the service
const PARTS = `${ROOT}parts/`;
const MANIFEST = `${ROOT}manifest.webmanifest`; // names the address for sharing, which foreign pages cannot read
const SHARE = `${ROOT}share/`;
const OUTBOX = "snaplore";
const TASK = "outbox";
const HOPELESS = [400, 413]; // statuses of a picture that will never be accepted

addEventListener("install", (event) => {
  skipWaiting();
  event.waitUntil(keepFrame().catch(() => {})); // the next visit tries again
});

addEventListener("activate", (event) => event.waitUntil(clients.claim()));

addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  if (origin !== location.origin) return;
  if (event.request.method === "POST" && pathname.startsWith(SHARE)) event.respondWith(receive(event, pathname));
  else if (event.request.mode === "navigate" && pathname === ROOT) event.respondWith(frame(event));
  else if (pathname.startsWith(PARTS)) event.respondWith(part(event.request));
});

addEventListener("sync", (event) => event.tag === TASK && event.waitUntil(sendAll()));
addEventListener("message", (event) => event.waitUntil(obey(event)));

// What a page asks for, by its `task`.
const ORDERS = {
  claim: () => clients.claim(),
  key: ({ key }) => act("state", "readwrite", (store) => (key === null ? store.delete("key") : store.put(key, "key"))),
  keep: ({ item }) => put(item).then(later),
  send: ({ key }) => sendAll(key),
  async forget() {
    await act("state", "readwrite", (store) => store.clear());
    await act("outbox", "readwrite", (store) => store.clear());
  },
};

/** Do what a page asks for, and answer whether it was done. */
async function obey({ data, ports: [port] }) {
  const isDone = await ORDERS[data.task](data).then(() => true, () => false);
  port?.postMessage(isDone);
}

async function keepFrame() {
  const answer = await fetch(ROOT, { headers: { Accept: "text/html" }, cache: "no-cache" });
  if (answer.ok) await keepBoth(answer);
  await keepManifest();
}

/** Keep the manifest, for the address at which pictures are shared while there is no network. */
async function keepManifest() {
  const cache = await caches.open(FRAME);
  await cache.add(new Request(MANIFEST, { cache: "no-cache" }));
  return cache.match(MANIFEST);
}

/** Whether this is the service's own address for sharing. Any website can send a form to the others. */
async function isForSharing(pathname) {
  const kept = (await caches.match(MANIFEST, { cacheName: FRAME })) ?? (await keepManifest());
  return ROOT + (await kept.json()).share_target.action === pathname;
}

/** Keep this page with its later part instead of an earlier version of them. */
async function keepBoth(answer) {
  const cache = await caches.open(FRAME);
  const [, named] = /data-later="?([\w/.-]+)/.exec(await answer.clone().text()) ?? [];
  const later = named && ROOT + named;
  if (later && !(await cache.match(later, { ignoreVary: true }))) await cache.add(later);
  await cache.put(ROOT, answer);
  for (const request of await cache.keys()) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith(PARTS) && pathname !== later) await cache.delete(request);
  }
}

/** The later part; "reload" is a page's second attempt, after what it got did not run. */
async function part(request) {
  const kept = await caches.match(request, { cacheName: FRAME, ignoreVary: true });
  if (kept && request.cache !== "reload") return kept;
  return fetch(request).catch((problem) => kept ?? Promise.reject(problem));
}

/** The page from the service; offline, as it was the last time. */
async function frame(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok) {
      const copy = answer.clone();
      event.waitUntil(keepBoth(copy).catch(() => {}));
    }
    return answer;
  } catch (problem) {
    const kept = await caches.match(ROOT, { cacheName: FRAME });
    if (kept) return kept;
    throw problem;
  }
}

/** Keep shared pictures in the outbox, open the library, and send them meanwhile. */
async function receive(event, pathname) {
  if (!(await isForSharing(pathname).catch(() => false))) return Response.redirect(ROOT, 303);
  const form = await event.request.formData();
  const files = form.getAll("files").filter((part) => part instanceof File && part.size > 0);
  for (const file of files) {
    await put({ id: crypto.randomUUID(), file, name: file.name || "shared.png", taken: file.lastModified });
  }
  if (files.length) event.waitUntil(later().then(() => sendAll()).catch(() => {}));
  return Response.redirect(`${ROOT}?shared=${files.length}#/library`, 303);
}

/** Ask the browser to send the outbox when there is a network, where it can do that. */
async function later() {
  await registration.sync?.register(TASK).catch(() => {});
}

let sending = null;

/**
 * Send what waits, one by one, with this key or the stored one; "" is none. Rejects when something is left because of the network,
 * so that the browser tries again.
 */
function sendAll(given) {
  sending ??= sendEach(given).finally(() => (sending = null));
  return sending;
}

async function sendEach(given) {
  const key = given ?? (await act("state", "readonly", (store) => store.get("key")));
  if (key === undefined) return; // nobody is signed in
  for (const item of await everything()) {
    const form = new FormData();
    const described = { device_id: "dashboard", device_name: "Dashboard", file_timestamp: item.taken, local_media_store_id: item.id };
    for (const [name, value] of Object.entries(described)) form.append(name, String(value));
    form.append("file", item.file, item.name);
    const answer = await fetch(`${ROOT}api/photos/upload`, { method: "POST", body: form, headers: key ? { Authorization: `Bearer ${key}` } : {} });
    if (answer.status === 401 || answer.status === 403) return; // until somebody signs in
    if (!answer.ok && !HOPELESS.includes(answer.status)) throw new Error(`status ${answer.status}`);
    await remove(item.id);
    const { id = null, detail = null } = await answer.json();
    for (const page of await clients.matchAll()) page.postMessage({ task: "sent", id, name: item.name, problem: answer.ok ? null : detail });
  }
}

// The outbox: a database of the browser with the store "outbox" (by id) and the store "state" (the key of a person who stays signed in).

function database() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open(OUTBOX, 1);
    opening.onupgradeneeded = () => {
      opening.result.createObjectStore("outbox", { keyPath: "id" });
      opening.result.createObjectStore("state");
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

async function act(store, mode, action) {
  const opened = await database();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = opened.transaction(store, mode);
      const request = action(transaction.objectStore(store));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    opened.close();
  }
}

const put = (item) => act("outbox", "readwrite", (store) => store.put(item));
const remove = (id) => act("outbox", "readwrite", (store) => store.delete(id));
const everything = () => act("outbox", "readonly", (store) => store.getAll());
