// Settings: what extends the assistant, which is skills and the tools of MCP servers.

import { erase, glyphButton, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { add, button, field, h } from "../base/dom.js";
import { formDialog, settingsCard, settingsRow, toggle } from "./panels.js";
import { load } from "../base/shell.js";
import { t } from "../base/texts.js";

const ID_PATTERN = "[A-Za-z0-9_\\-]{1,64}";

// Both are lists whose items can be enabled, added, edited and deleted; they differ in their fields.
/** @param {HTMLElement} container */
export function showSkills(container) {
  return extensionList(container, {
    group: "skills", path: "/api/skills", query: { include_disabled: true }, name: "skills",
    row: (/** @type {SkillDetail} */ skill) => [`${skill.icon} ${skill.name}`.trim(), [skill.description]],
    fields: skillFields,
  });
}

/** @param {HTMLElement} container */
export function showServers(container) {
  return extensionList(container, {
    group: "tools", path: "/api/mcp-servers", query: {}, name: "servers",
    row: (/** @type {ServerFields} */ server) => [server.name, [server.url, server.description]],
    fields: serverFields,
  });
}

/**
 * @template {{ id: string, name: string, enabled?: boolean }} Extension
 * @param {HTMLElement} container
 * @param {{
 *   group: string,
 *   path: string,
 *   query: import("../base/api.js").Query,
 *   name: string,
 *   row: (one: Extension) => [title: string, details: string[]],
 *   fields: (one: Extension | null) => { body: Child, read: () => Record<string, unknown> },
 * }} kind `name` is the list's name in the API's answer; `fields` makes the form of an item, or of a new one
 */
function extensionList(container, { group, path, query, name, row, fields }) {
  const body = h("div");
  const wide = group === "skills"; // room for the instructions
  const place = (/** @type {Extension} */ one) => `${path}/${encodeURIComponent(one.id)}`;
  const show = () => load(body, (signal) => api.get(path, query, { signal }), (answer) => {
    const items = answer[name].map((/** @type {Extension} */ one) => item(one));
    return items.length ? h("ul.list", items) : h("p.hint", t(`${group}.none`));
  });

  /** @param {Extension} one */
  function item(one) {
    const [title, details] = row(one);
    const said = (/** @type {string} */ word) => `${t(word)}: ${one.name}`;
    const remove = glyphButton("trash", said("list.delete"), () =>
      erase(remove, { title: t("list.delete"), text: t(`${group}.deleteText`, { name: one.name }), path: place(one) }, show));
    const edit = button(t("settings.edit"), { kind: "quiet", label: said("settings.edit"), click: () => change(one, edit) });
    // Where the API leaves `enabled` out, the list has only enabled items.
    const on = toggle(`${one.name}: ${t("settings.on")}`, one.enabled ?? true, (enabled) => api.put(place(one), { enabled }));
    return settingsRow(title, details, on, edit, remove);
  }

  /**
   * @param {Extension} one
   * @param {HTMLButtonElement} pressed
   */
  function change(one, pressed) {
    // The list does not contain the instructions.
    settle(pressed, async () => (group === "skills" ? api.get(place(one)) : one), (whole) => {
      const { body: inputs, read } = fields(whole);
      formDialog({ title: one.name, body: inputs, action: t("list.save"), wide, submit: () => api.put(place(one), read()).then(show) });
    });
  }

  function create() {
    const { body: inputs, read } = fields(null);
    const submit = () => api.post(path, read()).then(show);
    formDialog({ title: t(`${group}.add`), body: inputs, action: t("settings.add"), wide, submit });
  }

  add(container, settingsCard(t(`settings.${group}`), h("p.hint", t(`${group}.lead`)), body,
    h("div.row", button(t(`${group}.add`), { glyph: "plus", click: create }))));
  return show();
}

/**
 * The field of the id, which is set when an item is created and then fixed.
 *
 * @param {{ id: string } | null} known
 * @returns {[HTMLInputElement, HTMLElement]}
 */
function idField(known) {
  const id = h("input", {
    type: "text", required: true, pattern: ID_PATTERN, spellcheck: "false", autocapitalize: "none",
    disabled: Boolean(known), value: known?.id ?? "",
  });
  return [id, field(t("skills.id"), id, !known && t("skills.idText"))];
}

/** @param {SkillDetail | null} skill */
function skillFields(skill) {
  const [id, idRow] = idField(skill);
  const name = h("input", { type: "text", required: true, maxlength: 200, value: skill?.name ?? "" });
  const glyph = h("input", { type: "text", maxlength: 64, value: skill?.icon ?? "" });
  const description = h("input", { type: "text", maxlength: 2000, value: skill?.description ?? "" });
  const prompt = h("textarea", { rows: 8, required: true, maxlength: 32768, value: skill?.system_prompt ?? "" });
  return {
    body: [
      h("div.settings-fields", idRow, field(t("skills.name"), name), field(t("skills.icon"), glyph, t("skills.iconText")),
        field(t("skills.description"), description)),
      field(t("skills.prompt"), prompt),
    ],
    read: () => ({
      ...(!skill && { id: id.value }), name: name.value, icon: glyph.value, description: description.value, system_prompt: prompt.value,
    }),
  };
}

/** @param {ServerFields | null} server */
function serverFields(server) {
  const [id, idRow] = idField(server);
  const name = h("input", { type: "text", required: true, maxlength: 200, value: server?.name ?? "" });
  const url = h("input", { type: "url", required: true, placeholder: "https://…", spellcheck: "false", value: server?.url ?? "" });
  const description = h("input", { type: "text", maxlength: 2000, value: server?.description ?? "" });
  const trusted = h("input.switch", { type: "checkbox", role: "switch", checked: server?.trusted ?? false });
  return {
    body: [
      idRow,
      field(t("skills.name"), name),
      field(t("tools.url"), url),
      field(t("skills.description"), description),
      field(t("tools.trusted"), trusted, t("tools.trustedText")),
    ],
    read: () => ({
      ...(!server && { id: id.value }),
      name: name.value,
      url: url.value,
      description: description.value,
      trusted: trusted.checked,
    }),
  };
}
