// The page comes in two parts: the document, with what the library needs, and a later part with everything else, such as the settings.
// This file fetches the later part when it is first needed, or when the page has nothing else to do.

import { ApiError } from "./api.js";
import { button, fill, h } from "./dom.js";
import { emptyState, failedState, skeleton } from "./shell.js";
import { focusKept, reload } from "./signin.js";
import { addTexts, t } from "./texts.js";
import { asScript } from "./trusted.js";

/** @typedef {typeof import("../later.js").provided} Later */

/** What the later part uses of the first. The linker fills it in (dashboard.py). */
export const lent = {};

const IDLE = 3000; // ms after which the later part is fetched, also where the page is busy

/** @type {Later | null} */
let here = null;
/** @type {Promise<Later> | null} */
let arriving = null;
let attempts = 0;

/**
 * The later part, fetched at the first call and after a failure. Rejects with the reason; an `ApiError` of status 404 means that the
 * service has another version of the page.
 */
export function later() {
  arriving ??= fetchPart().catch((problem) => {
    arriving = null;
    throw problem;
  });
  return arriving;
}

/** Fetch the later part as soon as the page has nothing else to do. */
export function laterWhenIdle() {
  const begin = () => later().catch(() => {}); // the next use tries again, and tells
  if ("requestIdleCallback" in window) requestIdleCallback(begin, { timeout: IDLE });
  else setTimeout(begin, IDLE / 2);
}

/**
 * A view of the later part.
 *
 * @param {keyof Later["views"]} name
 * @param {{ title: string, icon: import("./dom.js").Glyph, within?: string }} named
 * @returns {import("./shell.js").View}
 */
export function laterView(name, named) {
  return {
    ...named,
    show(container, address) {
      /** @type {Ending[]} */
      let leave = [];
      const stop = whenHere(container, ({ views }) => {
        fill(container);
        leave = [views[name].show(container, address) ?? []].flat();
        focusKept();
      });
      return [stop, () => leave.forEach((end) => end())];
    },
  };
}

/**
 * Call `use` with the later part as soon as it is there: at once if it is there already. A failure is not told.
 *
 * @param {(part: Later) => unknown} use
 */
export function withLater(use) {
  if (here) use(here);
  else later().then(use, () => {});
}

/**
 * An element that is filled with what `make` returns, as soon as the later part is there.
 *
 * @param {(part: Later) => Child} make
 */
export function laterContent(make) {
  const place = h("div.later");
  whenHere(place, (part) => fill(place, make(part)));
  return place;
}

/**
 * Call `use` with the later part: at once where it is there. Until then `container` shows that it is loading, or why it failed.
 * Returns a function that drops the call.
 *
 * @param {HTMLElement} container
 * @param {(part: Later) => unknown} use
 */
function whenHere(container, use) {
  let isWanted = true;
  const begin = async () => {
    fill(container, skeleton(6));
    try {
      await later();
    } catch (problem) {
      if (isWanted) fill(container, laterFailed(problem, begin));
      return;
    }
    if (isWanted && here) use(here);
  };
  if (here) use(here);
  else begin();
  return () => (isWanted = false);
}

/**
 * @param {any} problem
 * @param {() => unknown} retry
 */
function laterFailed(problem, retry) {
  if (problem.status !== 404) return failedState(problem, retry);
  return emptyState({
    glyph: "refresh",
    title: t("parts.updated"),
    text: t("parts.updatedText"),
    action: button(t("parts.reload"), { kind: "primary", click: () => reload("main") }),
  });
}

async function fetchPart() {
  attempts += 1;
  let text = "";
  try {
    // After a failure not from the browser's cache, which may hold what is broken.
    const answer = await fetch(document.documentElement.dataset.later ?? "", { cache: attempts > 1 ? "reload" : "default" });
    if (!answer.ok) throw new ApiError(answer.status, t("api.odd", { status: answer.status }));
    text = await answer.text();
  } catch (problem) {
    throw problem instanceof ApiError ? problem : new ApiError(0, t("api.unreachable"));
  }
  return run(text);
}

/**
 * Run the later part as an inline script, which the Content-Security-Policy allows by its hash. It reports itself by an event.
 *
 * @param {string} text
 */
function run(text) {
  const script = h("script");
  script.addEventListener("part", (event) => {
    const { style, texts, run: start } = /** @type {CustomEvent} */ (event).detail;
    addTexts(texts);
    document.head.append(h("style", style));
    here = start(lent);
  });
  script.text = asScript(text);
  document.head.append(script); // runs here
  script.remove();
  if (!here) throw new Error(t("parts.changed"));
  return here;
}
