// What is closest to a search in meaning, below its few hits: a list of its own, because the words of the search are not there.

import { api, wasAborted } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { resultList } from "./results.js";
import { t } from "../base/texts.js";

const MOST = 5;

/**
 * Fill `container` with what is closest to `q` in meaning and not `known`. It stays empty where there is nothing, and where the
 * service cannot look for meanings.
 *
 * @param {HTMLElement} container
 * @param {{ q: string, known: number[], open: (id: number) => unknown, signal: AbortSignal }} options
 */
export async function related(container, { q, known, open, signal }) {
  /** @type {{ items: PhotoHit[] }} */
  let found;
  try {
    found = await api.get("/api/search/related", { q, limit: MOST }, { signal });
  } catch (error) {
    if (!wasAborted(error)) console.warn(error); // the hits are there: nothing is missing that was asked for
    return;
  }
  const items = found.items.filter((hit) => !known.includes(hit.id));
  if (!items.length || signal.aborted) return;
  fill(
    container,
    h("h2", { id: "related", text: t("related.title") }),
    h("p.muted", t("related.text")),
    resultList(items, { q: "", open }),
  );
  container.setAttribute("aria-labelledby", "related");
}
