// Asks before a call of a tool that sends something out: which tool, which server gets it, and exactly what.
//
// The arguments come from a model that may have been persuaded by what it has read. So they are shown as they would be sent, with
// characters that cannot be seen made visible, and nothing of them can look like a part of this page.

import { fail } from "../base/dialogs.js";
import { button, h, icon } from "../base/dom.js";
import { busy } from "../base/shell.js";
import { t } from "../base/texts.js";

const SENT_TEXT_SHOWN = 1200;
// Controls, blanks without width, marks that reverse the direction of writing, tags.
const UNSEEN = /[\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|\udb40[\udc00-\uddff]/;

/**
 * @typedef {"once" | "conversation" | "always" | "refuse"} Consent
 * @param {PendingCall[]} calls
 * @param {(call: PendingCall, consent: Consent) => Promise<unknown>} answer
 */
export function consentPanel(calls, answer) {
  return calls.map((call) => consentCard(call, answer));
}

/**
 * @param {PendingCall} call
 * @param {(call: PendingCall, consent: Consent) => Promise<unknown>} answer
 */
function consentCard(call, answer) {
  const choice = (/** @type {Consent} */ consent, kind = "") => {
    const chosen = button(t(`consent.${consent}`), { kind, click: () => busy(chosen, answer(call, consent)).catch(fail) });
    return chosen;
  };
  const { sensitive, server_id: isServer } = call;
  const kinds = sensitive.map((kind) => t(`consent.${kind}`)).join(t("consent.and"));
  const name = call.tool.startsWith("mcp__") ? call.tool.split("__").slice(2).join("__") || call.tool : call.tool;
  return h("div.consent.stack.tight", { role: "group", "aria-label": t("consent.title") },
    h("h2.row", icon(sensitive.length ? "warn" : "send"), t("consent.title")),
    h("p", isServer ? t("consent.tool", { name: madeVisible(name) }) : t("consent.web")),
    h("p", `${t("consent.server")} `, h("strong.consent-host", madeVisible(call.server))),
    kinds && h("p.consent-sensitive", t("consent.sensitive", { kinds })),
    h("h3", t("consent.arguments")), sentText(readable(call.arguments)),
    !sensitive.length && h("p.hint", t("consent.why")), // what is sensitive is asked about whatever was read
    h("div.row.consent-choices", choice("refuse"), !sensitive.length && choice("conversation"),
      !sensitive.length && isServer && choice("always"), choice("once", "primary")));
}

/** @param {string} text */
function sentText(text) {
  const pre = h("pre.consent-arguments", { tabindex: 0, text: text.slice(0, SENT_TEXT_SHOWN) });
  if (text.length <= SENT_TEXT_SHOWN) return pre;
  pre.append("…");
  const all = button(t("consent.all", { count: text.length }), { kind: "quiet", click: () => (pre.textContent = text, all.remove()) });
  return h("div", pre, all);
}

/**
 * One line for each argument; JSON where a value is no text.
 *
 * @param {string} given
 */
function readable(given) {
  /** @type {unknown} */
  let fields;
  try {
    fields = JSON.parse(given);
  } catch {
    fields = null;
  }
  if (!fields || typeof fields !== "object") return madeVisible(given);
  const lines = Object.entries(fields).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 1)}`,
  );
  return madeVisible(lines.join("\n"));
}

/** @param {string} text */
function madeVisible(text) {
  const isUnseen = (/** @type {string} */ character) => (character < " " && character !== "\n") || UNSEEN.test(character);
  return [...text].map((character) => (isUnseen(character) ? `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}` : character)).join("");
}
