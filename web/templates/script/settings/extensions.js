// Settings: what extends the assistant, which is skills and the tools of MCP servers.

import { erase, glyphButton, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { add, button, field, h } from "../base/dom.js";
import { formDialog, settingsCard, settingsRow, toggle } from "./panels.js";
import { load } from "../base/shell.js";
import { t, words } from "../base/texts.js";

words({
  settings: {
    skills: "Skills|技能",
    skillsText: "Saved instructions for chats|对话用的指令",
    tools: "MCP servers|MCP 服务器",
    toolsText: "Tools for the assistant|助手可用的工具",
  },
  skills: {
    lead: "A skill is a saved set of instructions. Pick one next to the message field.|技能是一组保存好的指令，可在消息框旁选择。",
    add: "New skill|新建技能",
    id: "ID|标识",
    idText: "Letters, digits, - and _; it cannot be changed later|字母、数字、- 和 _；之后不能更改",
    name: "Name|名称",
    icon: "Icon|图标",
    iconText: "An emoji|一个表情符号",
    description: "Description|说明",
    prompt: "Instructions|指令",
    none: "No skills yet.|还没有技能。",
    deleteText: "The skill “{name}” will be permanently deleted.|技能“{name}”将被永久删除。",
  },
  tools: {
    lead: "The assistant can use the tools of these servers in chats. They see only what it sends them.|助手可在对话中使用这些服务器的工具。它们只能看到助手发送的内容。",
    add: "Add a server|添加服务器",
    url: "Address|地址",
    none: "No MCP servers yet.|还没有 MCP 服务器。",
    deleteText: "The server “{name}” will be removed.|服务器“{name}”将被移除。",
    trusted: "Send without asking|无需询问即可发送",
    trustedText: "Otherwise you are asked before the assistant sends something it may have read|否则，助手发送可能读到的内容前会先询问你",
  },
});

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
    body: [idRow, field(t("skills.name"), name), field(t("tools.url"), url), field(t("skills.description"), description),
      field(t("tools.trusted"), trusted, t("tools.trustedText"))],
    read: () => ({ ...(!server && { id: id.value }), name: name.value, url: url.value, description: description.value, trusted: trusted.checked }),
  };
}
