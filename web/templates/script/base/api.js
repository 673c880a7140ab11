// Requests to the service. Each sends the key in a header. An <img> cannot do that, so pictures are fetched and shown by object
// URLs, which are revoked as soon as the picture has loaded.

import { h } from "./dom.js";
import { t } from "./texts.js";

/**
 * The API key, and what to do when the service refuses it. The sign-in sets both.
 *
 * @type {{ key: string | null, refused: () => void }}
 */
export const session = { key: null, refused: () => {} };

/** Whether this browser has the owner's key, and not a token, which cannot make tokens or change where data goes. */
export const isOwner = () => !session.key?.startsWith("snp_");

export class ApiError extends Error {
  /**
   * @param {number} status 0 where no answer came
   * @param {string} detail a sentence
   * @param {number | null} retryAfter seconds
   */
  constructor(status, detail, retryAfter = null) {
    super(detail);
    this.status = status;
    this.detail = detail;
    this.retryAfter = retryAfter;
  }
}

/** @param {any} problem */
export const wasAborted = (problem) => problem?.name === "AbortError";

/**
 * @typedef {Record<string, string | number | boolean | null | undefined>} Query
 * @typedef {{ query?: Query | null, body?: unknown, signal?: AbortSignal, keepalive?: boolean }} Options
 */

export const api = {
  /** @type {(path: string, query?: Query | null, options?: Options) => Promise<any>} */
  get: (path, query, options) => call("GET", path, { query, ...options }),
  /** @type {(path: string, body?: unknown, options?: Options) => Promise<any>} */
  post: (path, body, options) => call("POST", path, { body, ...options }),
  /** @type {(path: string, body: unknown) => Promise<any>} */
  patch: (path, body) => call("PATCH", path, { body }),
  /** @type {(path: string, body?: unknown) => Promise<any>} */
  put: (path, body) => call("PUT", path, { body }),
  /** @type {(path: string, options?: Options) => Promise<any>} */
  delete: (path, options) => call("DELETE", path, options),
  form: sendForm,
  /**
   * The raw Response of an authenticated GET. Throws ApiError like the others.
   *
   * @param {string} path
   * @param {AbortSignal} [signal]
   */
  open: (path, signal) => respond("GET", path, { signal }),
  /**
   * The raw Response of an authenticated POST, for an answer that is a file.
   *
   * @param {string} path
   * @param {unknown} body
   */
  openPosted: (path, body) => respond("POST", path, { body }),
  /**
   * An object URL of a picture. The caller revokes it.
   *
   * @param {string} path
   * @param {AbortSignal} [signal]
   */
  async blobUrl(path, signal) {
    const response = await respond("GET", path, { signal });
    return URL.createObjectURL(await response.blob());
  },
};

/**
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 */
async function call(method, path, options) {
  const response = await respond(method, path, options);
  try {
    return await response.json();
  } catch (problem) {
    throw wasAborted(problem) ? problem : new ApiError(0, t("api.unreachable"));
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {Options} options
 */
async function respond(method, path, { query, body, signal, keepalive } = {}) {
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

/**
 * Send a multipart form. By XMLHttpRequest, because fetch does not report the progress of an upload.
 *
 * @param {string} path
 * @param {FormData} form
 * @param {{ onProgress?: (fraction: number) => void, signal?: AbortSignal }} options
 * @returns {Promise<any>}
 */
function sendForm(path, form, { onProgress, signal } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", withQuery(path));
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

/** @returns {Record<string, string>} */
function authorization() {
  // A header value is Latin-1. A key with other characters is sent as UTF-8 bytes, which the service accepts too.
  const bytes = new TextEncoder().encode(session.key ?? "");
  return session.key ? { Authorization: `Bearer ${String.fromCharCode(...bytes)}` } : {};
}

/**
 * @param {number} status
 * @param {string} text the body, which should be the API's {detail}
 * @param {string | null} retryAfter
 */
function refusal(status, text, retryAfter) {
  let detail = null;
  try {
    detail = JSON.parse(text).detail;
  } catch { /* not JSON: a page of a proxy */ }
  // Rate-limited paths send Retry-After with every answer, also with errors that waiting does not cure.
  const seconds = ([429, 503].includes(status) && Number(retryAfter)) || null;
  const error = new ApiError(status, typeof detail === "string" ? detail : t("api.odd", { status }), seconds);
  if (status === 401) session.refused();
  return error;
}

/**
 * The address of a path of the API, relative to the page: a proxy may have put the service below a path of its own.
 *
 * @param {string} path
 * @param {Query | null} [query]
 */
function withQuery(path, query) {
  const filled = Object.entries(query ?? {}).flatMap(([name, value]) => ((value ?? "") === "" ? [] : [[name, String(value)]]));
  return filled.length ? `.${path}?${new URLSearchParams(filled)}` : `.${path}`;
}

// A browser opens at most six connections to a host. Pictures use four of them, so that a click never waits for thumbnails. The
// most recent request goes first: it is for what is on the screen now.
const PICTURES_AT_ONCE = 4;
/** @type {HTMLImageElement[]} */
const waitingPictures = [];
/** @type {WeakMap<Element, string>} */
const picturePaths = new WeakMap();
/** @type {WeakMap<Element, AbortController>} */
const pictureRequests = new WeakMap();
let loadingPictures = 0;

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) wantPicture(/** @type {HTMLImageElement} */ (target));
    else pictureRequests.get(target)?.abort(); // scrolled past, or removed from the page
  }
}, { rootMargin: "150px" });

/**
 * An <img> that is fetched when it comes near the screen; the request is aborted when it leaves before it has loaded.
 *
 * @param {string} path
 * @param {string} alt
 * @param {Props} props
 */
export function picture(path, alt, props = {}) {
  const image = h("img", {
    alt,
    decoding: "async",
    draggable: "false",
    ...props,
    class: `picture ${props.class ?? ""}`,
    "data-state": "waiting",
  });
  picturePaths.set(image, path);
  watcher.observe(image);
  return image;
}

/** @param {HTMLImageElement} image */
function wantPicture(image) {
  if (pictureRequests.has(image)) return;
  const request = new AbortController();
  pictureRequests.set(image, request);
  request.signal.addEventListener("abort", () => {
    pictureRequests.delete(image);
    const place = waitingPictures.indexOf(image);
    if (place >= 0) waitingPictures.splice(place, 1);
  });
  waitingPictures.push(image);
  nextPicture();
}

async function nextPicture() {
  if (loadingPictures >= PICTURES_AT_ONCE) return;
  const image = waitingPictures.pop();
  if (!image) return;
  loadingPictures += 1;
  try {
    const url = await api.blobUrl(picturePaths.get(image) ?? "", pictureRequests.get(image)?.signal);
    watcher.unobserve(image);
    const arrived = (/** @type {string} */ state) => {
      image.dataset.state = state;
      URL.revokeObjectURL(url);
    };
    image.onload = () => arrived("ready");
    image.onerror = () => arrived("broken");
    image.src = url;
  } catch (problem) {
    if (!wasAborted(problem)) image.dataset.state = "broken";
  } finally {
    loadingPictures -= 1;
    nextPicture();
  }
}
