// What is sensitive and held back: told once above the library, and that a person says of a screenshot that it is not.

import { api } from "../base/api.js";
import { fail, toast } from "../base/dialogs.js";
import { button, fill, h, icon } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { recalled, remember } from "../base/preferences.js";
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
 * Say above the library how many screenshots are held back and why, the first time and whenever there are more.
 *
 * @param {HTMLElement} place
 */
export async function heldBackNotice(place) {
  /** @type {Statistics | null} */
  const stats = await api.get("/api/stats").catch(() => null); // the next visit asks again
  if (!stats) return;
  const count = stats.sensitive_photos;
  const told = recalled("held.told", 0);
  if (count < told) remember("held.told", count);
  if (count <= told) return;
  const dismiss = () => {
    remember("held.told", count);
    place.replaceChildren();
  };
  const kinds = kindRows(stats).map((row) => row.join(" ")).join(" · ");
  fill(place, h("section.held", { label: t("held.title") }, icon("hidden"),
    h("p", t(count === 1 ? "held.one" : "held.many", { count: formatNumber(count) }), " ", h("span.muted", t("held.why"), " ", kinds), " ",
      h("a", { href: SENSITIVE, text: t("held.show") })),
    button("", { glyph: "close", kind: "quiet", label: t("shell.dismiss"), click: dismiss })));
}
