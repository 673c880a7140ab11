// Subscriptions of other programs: an address is made, and shown once, also as a code that a phone scans.

import { api } from "./api.js";
import { codeRow, isLoopback, reachable } from "./connect.js";
import { dialog } from "./dialogs.js";
import { h } from "./dom.js";
import { t } from "./texts.js";

/**
 * Make the address of a feed.
 *
 * @param {"agenda" | "notes" | "search"} kind
 * @param {string} query
 * @returns {Promise<{ kind: string, url: string, qr: string }>}
 */
export const makeFeed = async (kind, query = "") => api.post("/api/feeds", { kind, query, address: await reachable() });

/** @param {{ kind: string, url: string, qr: string }} made */
export function showAddress({ kind, url, qr }) {
  const code = h("img", { src: `data:image/svg+xml,${encodeURIComponent(qr)}`, alt: t("feeds.code"), width: 208, height: 208 });
  const alone = isLoopback(new URL(url).hostname) &&
    h("p.problem", t("feeds.alone"), " ", h("a", { href: "#/settings/devices", text: t("connect.letIn") }));
  dialog({ title: t("feeds.made"), body: h("div.stack", alone, h("div.pairing", code, h("div.stack", h("p", t("feeds.madeText")))),
    codeRow(url, t("feeds.address")),
    kind === "agenda" && h("div.row", h("a.button", { href: url.replace(/^https?:/, "webcal:"), text: t("feeds.open") }))) });
}
