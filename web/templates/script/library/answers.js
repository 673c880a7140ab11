// Above the results of a search that names what a screenshot is about ("wifi", "iban", a shop): its fact, with the value to copy or the
// page to open right there, so that nothing has to be opened and looked through for it.

import { api } from "../base/api.js";
import { fill, h } from "../base/dom.js";
import { t } from "../base/texts.js";
import { isVeiled, veilable } from "../viewer/veil.js";
import { factCard, wantedValue } from "../viewer/fact.js";

const LOOKED_AT = 3; // of the best hits

/**
 * Fill `place` with the facts that the best hits are about. It stays empty where the search names none of them.
 *
 * @param {HTMLElement} place
 * @param {PhotoHit[]} hits the best first
 * @param {{ q: string, open: (id: number) => unknown, signal: AbortSignal }} options
 */
export async function searchAnswers(place, hits, { q, open, signal }) {
  const best = hits.filter(({ score }) => score > 0).slice(0, LOOKED_AT);
  const fetched = best.map((hit) => api.get(`/api/photos/${hit.id}`, null, { signal }).catch(() => null));
  const details = /** @type {(PhotoDetail | null)[]} */ (await Promise.all(fetched));
  if (signal.aborted) return;
  const named = details.filter((photo, at) => photo && isNamed(photo, [...q.split(/\s+/), ...best[at].matched]));
  const photos = /** @type {PhotoDetail[]} */ (named).filter((photo) => typeOf(photo) === typeOf(/** @type {PhotoDetail} */ (named[0])));
  fill(place, photos.map((photo) => {
    const row = h("li");
    const { title } = photo;
    veilable(row, photo, () => fill(row, factCard(photo, { covered: isVeiled(photo), title, open: () => open(photo.id) })));
    return row;
  }));
}

/** @param {PhotoDetail} photo */
const typeOf = ({ records }) => records[0]?.type ?? "";

/**
 * Whether one of these words is among those that name the fact of a photo.
 *
 * @param {PhotoDetail} photo
 * @param {string[]} words
 */
function isNamed(photo, words) {
  const wanted = wantedValue(photo);
  if (!wanted) return false;
  const record = photo.records.find(({ line }) => line);
  const name = letters([record && t(`records.${record.type}`), t(`recordFields.${wanted.name}`), record?.line, photo.title].join(" "));
  return words.map(letters).some((word) => word && name.includes(word));
}

/** @param {string} text */
const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");
