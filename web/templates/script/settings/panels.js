// The parts of the settings: cards, rows, switches, forms in a dialog, and tables.

import { dialog, fail, sentence } from "../base/dialogs.js";
import { button, h } from "../base/dom.js";
import { busy } from "../base/shell.js";
import { t } from "../base/texts.js";

/**
 * A card with a title.
 *
 * @param {string} title
 * @param {Child[]} children
 */
export function settingsCard(title, ...children) {
  return h("section.card.stack", h("h2", title), children);
}

/**
 * One item of a list, with its actions.
 *
 * @param {Child} title
 * @param {string[]} details
 * @param {Child[]} actions
 */
export function settingsRow(title, details, ...actions) {
  return h("li.row.settings-row",
    h("div.grow", h("strong", title), details.filter(Boolean).map((text) => h("p.hint", { text }))),
    h("div.row", actions));
}

/**
 * A switch. It flips back when `change(on)` fails.
 *
 * @param {string} label
 * @param {boolean} on
 * @param {(on: boolean) => Promise<unknown>} change
 */
export function toggle(label, on, change) {
  const box = h("input.switch", { type: "checkbox", role: "switch", checked: on, "aria-label": label });
  const changed = () => busy(box, change(box.checked)).catch((error) => ((box.checked = !box.checked), fail(error)));
  box.addEventListener("change", changed);
  return box;
}

/**
 * A form in a dialog. When `submit()` fails, the dialog stays open with the error and what was typed.
 *
 * @param {{ title: string, body: Child, action: string, danger?: boolean, submit: () => Promise<unknown>, wide?: boolean }} options
 */
export function formDialog({ title, body, action, danger, submit, wide }) {
  const problem = h("p.problem", { role: "alert" });
  const send = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}`, text: action });
  const sent = async (/** @type {Event} */ event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      await busy(send, submit());
      handle.close();
    } catch (error) {
      problem.textContent = sentence(error);
    }
  };
  const form = h("form.stack", { on: { submit: sent } }, body, problem,
    h("div.row.end", button(t("shell.cancel"), { click: () => handle.close() }), send));
  const handle = dialog({ title, body: form, wide });
  return { send, form };
}

/**
 * @param {string[]} headings
 * @param {string[][]} rows
 */
export function dataTable(headings, rows) {
  return h("div.settings-table", { tabindex: 0, role: "region", "aria-label": headings.join(", ") },
    h("table",
      h("thead", h("tr", headings.map((text) => h("th", { scope: "col", text })))),
      h("tbody", rows.map((cells) => h("tr", cells.map((text) => h("td", { text })))))));
}

/**
 * A list of names and values.
 *
 * @param {[string, string][]} pairs
 */
export function facts(pairs) {
  return h("dl.settings-facts", pairs.map(([name, value]) => [h("dt", name), h("dd", value)]));
}
