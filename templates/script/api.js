// Talking to the service. Every request carries the key in its header, pictures as well: an <img> cannot, so they are fetched
// and shown by object URLs, which are given back as soon as the picture is there.

import { h } from "./dom.js";
import { t } from "./texts.js";

/** The key, and what to do when the service refuses it: the sign-in sets both. */
export const session = { key: null, refused: () => {} };

export class ApiError extends Error {
  constructor(status, detail, retryAfter = null) {
    super(detail);
    Object.assign(this, { status, detail, retryAfter });
  }
}

export const wasAborted = (problem) => problem?.name === "AbortError";

export const api = {
  get: (path, query, options) => call("GET", path, { query, ...options }),
  post: (path, body, options) => call("POST", path, { body, ...options }),
  put: (path, body, options) => call("PUT", path, { body, ...options }),
  delete: (path, options) => call("DELETE", path, options),
  form: sendForm,
  /** The raw Response of an authenticated GET; raises like the others. */
  async open(path, options) {
    return respond("GET", path, options ?? {});
  },
  /** An object URL of an authenticated picture; whoever asks revokes it. */
  async blobUrl(path, signal) {
    const response = await respond("GET", path, { signal });
    return URL.createObjectURL(await response.blob());
  },
};

async function call(method, path, options = {}) {
  const response = await respond(method, path, options);
  try {
    return await response.json();
  } catch (problem) {
    throw wasAborted(problem) ? problem : new ApiError(0, t("api.unreachable"));
  }
}

async function respond(method, path, { query, body, signal, keepalive }) {
  const headers = authorization();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(withQuery(path, query), { method, headers, body: payload, signal, keepalive });
  } catch (problem) {
    throw wasAborted(problem) ? problem : new ApiError(0, t("api.unreachable"));
  }
  if (!response.ok) throw refusal(response.status, await response.text().catch(() => ""), response.headers.get("Retry-After"));
  return response;
}

/** Multipart, by XMLHttpRequest: fetch does not tell how far an upload has come. `onProgress(fraction)`. */
function sendForm(path, form, { onProgress, signal } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    if (onProgress) request.upload.onprogress = (event) => event.lengthComputable && onProgress(event.loaded / event.total);
    request.onload = () => {
      if (request.status >= 400) return reject(refusal(request.status, request.responseText, request.getResponseHeader("Retry-After")));
      try {
        resolve(JSON.parse(request.responseText));
      } catch {
        reject(new ApiError(request.status, t("api.odd", { status: request.status })));
      }
    };
    request.onerror = () => reject(new ApiError(0, t("api.unreachable")));
    request.onabort = () => reject(new DOMException("aborted", "AbortError"));
    if (signal?.aborted) return reject(new DOMException("aborted", "AbortError"));
    signal?.addEventListener("abort", () => request.abort());
    request.send(form);
  });
}

function authorization() {
  // A header takes Latin-1; a key of other letters travels as its UTF-8 bytes, which the service reads as well.
  const bytes = new TextEncoder().encode(session.key ?? "");
  return session.key ? { Authorization: `Bearer ${String.fromCharCode(...bytes)}` } : {};
}

function refusal(status, text, retryAfter) {
  let detail = null;
  try {
    detail = JSON.parse(text).detail;
  } catch { /* a proxy's page */ }
  // The rate limit's window is told with every answer of a limited path, also where waiting for it would not help.
  const seconds = ([429, 503].includes(status) && Number(retryAfter)) || null;
  const error = new ApiError(status, typeof detail === "string" ? detail : t("api.odd", { status }), seconds);
  if (status === 401) session.refused();
  return error;
}

function withQuery(path, query) {
  const filled = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return filled.length ? `${path}?${new URLSearchParams(filled)}` : path;
}

// A browser opens six connections to one host. Pictures take four at most, so that a click never waits behind thumbnails; the
// last one asked for goes first, because that is where the eye is.
const PICTURES_AT_ONCE = 4;
const waitingPictures = [];
let loadingPictures = 0;

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) wantPicture(target);
    else target.loading_?.abort(); // scrolled past, or taken from the page
  }
}, { rootMargin: "150px" });

/** An <img> that is fetched when it comes near the screen, and given up when it leaves before it has arrived. */
export function picture(path, alt, props = {}) {
  const image = h("img", { alt, decoding: "async", draggable: "false", ...props, class: `picture ${props.class ?? ""}`, "data-state": "waiting" });
  image.path_ = path;
  watcher.observe(image);
  return image;
}

function wantPicture(image) {
  if (image.loading_) return;
  image.loading_ = new AbortController();
  image.loading_.signal.addEventListener("abort", () => {
    image.loading_ = null;
    const place = waitingPictures.indexOf(image);
    if (place >= 0) waitingPictures.splice(place, 1);
  });
  waitingPictures.push(image);
  nextPicture();
}

async function nextPicture() {
  if (loadingPictures >= PICTURES_AT_ONCE || !waitingPictures.length) return;
  const image = waitingPictures.pop();
  const { signal } = image.loading_;
  loadingPictures += 1;
  try {
    const url = await api.blobUrl(image.path_, signal);
    watcher.unobserve(image);
    image.onload = image.onerror = (event) => {
      image.dataset.state = event.type === "load" ? "ready" : "broken";
      URL.revokeObjectURL(url);
    };
    image.src = url;
  } catch (problem) {
    if (!wasAborted(problem)) image.dataset.state = "broken";
  } finally {
    loadingPictures -= 1;
    nextPicture();
  }
}
