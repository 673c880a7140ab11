// What is sensitive and held back: how many there are, beside the count of the library, and that a person says of a screenshot that it is
// not.

import { api } from "../base/api.js";
import { fail, toast } from "../base/dialogs.js";
import { fill, h, icon } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { t } from "../base/texts.js";
import { tell } from "../base/upload.js";
import { learn } from "../viewer/veil.js";

export const SENSITIVE = "#/library?q=is%3Asensitive";

/**
 * Record that a photo is not sensitive, with a way back.
 *
 * @param {import("../viewer/veil.js").Veilable} photo
 */
export async function notSensitive({ id }) {
  const send = async (/** @type {[] | null} */ sensitive) => {
    try {
      /** @type {PhotoDetail} */
      const detail = await api.patch(`/api/photos/${id}`, { sensitive });
      learn(id, detail.sensitive);
      tell("changed", id);
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  };
  if (await send([])) toast(t("held.cleared"), { seconds: 8, action: { label: t("shell.undo"), run: () => send(null) } });
}

/** @param {Statistics} stats */
export const kindRows = ({ sensitive_kinds: kinds }) =>
  Object.entries(kinds).map(([kind, count]) => /** @type {[string, string]} */ ([t(`kinds.${kind}`), formatNumber(count)]));

/**
 * How many screenshots are held back, as a small sign that leads to them; nothing where none is.
 *
 * @param {HTMLElement} place
 * @param {Statistics} stats
 */
export function heldBackNotice(place, stats) {
  const count = stats.sensitive_photos;
  const kinds = kindRows(stats).map((row) => row.join(" ")).join(", ");
  const words = t(count === 1 ? "held.one" : "held.many", { count: formatNumber(count), kinds });
  const sign = h("a.held", { href: SENSITIVE, title: words, label: words }, icon("hidden"), h("span", { "aria-hidden": "true", text: formatNumber(count) }));
  fill(place, count > 0 && sign);
}
