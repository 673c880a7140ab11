// One field for everything (Ctrl+K): to search, to go to any view, and to do what has no button everywhere; and the list of keys (?).

import { api } from "./api.js";
import { dialog } from "./dialogs.js";
import { fill, h, icon } from "./dom.js";
import { pickFolder } from "./folders.js";
import { pickFiles } from "./upload.js";
import { go, setTheme } from "./shell.js";
import { t } from "./texts.js";

const COMMANDS_SHOWN = 9; // commands shown at once
const SETTINGS = ["general", "model", "usage", "skills", "tools", "devices", "programs", "data", "statistics", "access"];

/** @typedef {import("./dom.js").Glyph} Glyph */
/** @typedef {{ label: string, hint: string, glyph: Glyph, run: () => unknown }} Command */

/** @returns {Command[]} */
function commands() {
  const view = (/** @type {string} */ text, /** @type {string} */ address, /** @type {Glyph} */ glyph, hint = "goTo") =>
    ({ label: t(text), hint: t(`commands.${hint}`), glyph, run: () => go(`#/${address}`) });
  const act = (/** @type {string} */ text, /** @type {Glyph} */ glyph, /** @type {() => unknown} */ run) =>
    ({ label: t(text), hint: t("commands.act"), glyph, run });
  return [
    view("library.title", "library", "image"),
    view("agenda.title", "agenda", "calendar"),
    view("chat.title", "chat", "chat"),
    view("notes.title", "notes", "note"),
    act("upload.add", "upload", pickFiles),
    act("upload.folder", "folder", pickFolder),
    view("threads.title", "threads", "folder"),
    view("tables.title", "records", "receipt"),
    view("duplicates.title", "duplicates", "stack"),
    view("library.kept", "library?kept=true", "star"),
    view("library.trash", "trash", "trash"),
    view("expiring.title", "expiring", "clock"),
    view("notes.memoriesTab", "notes/memories", "memory"),
    view("agenda.past", "agenda?past=1", "calendar"),
    ...SETTINGS.map((name) => view(`settings.${name}`, `settings/${name}`, "settings", "setting")),
    act("commands.keys", "info", showKeys),
    act("commands.light", "edit", () => setTheme("light")),
    act("commands.dark", "edit", () => setTheme("dark")),
    act("commands.auto", "edit", () => setTheme("auto")),
  ];
}

/** Open the field. */
export function openCommands() {
  let all = commands();
  /** @type {Command[]} */
  let shown = [];
  let active = 0;
  const list = h("ul.list.commands-list", { id: "commands", role: "listbox", label: t("commands.title") });
  const input = h("input", {
    type: "text", autofocus: true, placeholder: t("commands.hint"), label: t("commands.hint"), autocomplete: "off", spellcheck: "false",
    role: "combobox", "aria-expanded": "true", "aria-controls": "commands", "aria-autocomplete": "list", maxlength: "400",
  });
  const choose = (/** @type {Command | undefined} */ command) => {
    if (!command) return;
    close();
    command.run();
  };
  const activate = (/** @type {number} */ at) => {
    active = at;
    [...list.children].forEach((node, place) => node.setAttribute("aria-selected", String(place === at)));
    list.children[at]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", `command-${at}`);
  };
  const draw = () => {
    const text = input.value.trim();
    /** @type {Command} */
    const search = { label: t("commands.search", { q: text }), hint: t("commands.find"), glyph: "search",
      run: () => go(`#/library?${new URLSearchParams({ q: text })}`) };
    const found = fitting(all, text).slice(0, COMMANDS_SHOWN);
    const first = found.filter((one) => isMeant(one, text));
    shown = text ? [...first, search, ...found.filter((one) => !first.includes(one))] : found;
    fill(list, shown.map((command, at) => h("li.command", { id: `command-${at}`, role: "option", "aria-selected": "false",
      on: { click: () => choose(command), pointermove: () => at === active || activate(at) } },
      icon(command.glyph), h("span.grow", command.label), h("span.muted", command.hint))));
    activate(0);
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing || !(step || event.key === "Enter")) return;
    event.preventDefault();
    if (step) activate((active + step + shown.length) % shown.length);
    else choose(shown[active]);
  };
  input.addEventListener("input", draw);
  input.addEventListener("keydown", onKey);
  const { close } = dialog({ title: t("commands.title"), body: h("div.commands", input, list) });
  draw();
  // Saved searches are commands too, once they are here.
  api.get("/api/searches").then(({ searches }) => {
    all = [...all, ...searches.map((/** @type {SavedSearch} */ { name, query }) => ({ label: name, hint: t("searches.label"), glyph: "memory",
      run: () => go(`#/library?${new URLSearchParams({ q: query })}`) }))];
    if (active === 0) draw();
  }, () => {}); // without them, the field has everything else
}

/** @param {string} text */
const wordsOf = (text) => text.toLowerCase().split(/\s+/);

/**
 * Whether each typed word begins one of the command's.
 *
 * @param {Command} command
 * @param {string} text
 */
const isMeant = ({ label, hint }, text) => wordsOf(text).every((typed) => wordsOf(`${label} ${hint}`).some((own) => own.startsWith(typed)));

/**
 * Those with all these words, and first those whose words begin with them.
 *
 * @param {Command[]} all
 * @param {string} text
 */
function fitting(all, text) {
  const rank = (/** @type {Command} */ one) => Number(one.label.toLowerCase().startsWith(text.toLowerCase())) + Number(isMeant(one, text));
  return all.filter(({ label, hint }) => wordsOf(text).every((word) => `${label} ${hint}`.toLowerCase().includes(word)))
    .sort((one, other) => rank(other) - rank(one));
}

const KEYS = {
  everywhere: { "/": "search", "Ctrl K": "commands", "?": "keys" },
  library: { "← → ↑ ↓": "move", Enter: "open", S: "star", X: "select", "Ctrl A": "selectAll", Delete: "trash", Esc: "clear" },
  viewer: { "← →": "turn", "+ −": "zoom", 0: "fit", 1: "actual", I: "details", S: "star", "Ctrl A": "text", Delete: "trash", Esc: "close" },
  agenda: { Delete: "dismiss" },
};

/** Show what keys do. */
export function showKeys() {
  const groups = Object.entries(KEYS).map(([name, keys]) => h("section.stack.tight", h("h3", t(`keys.${name}`)), h("dl.keys",
    Object.entries(keys).map(([key, does]) => [h("dt", key.split(" ").map((one) => h("kbd", one))), h("dd", t(`keysOf.${does}`))]))));
  dialog({ title: t("commands.keys"), body: h("div.key-groups", { tabindex: 0, role: "group", label: t("commands.keys") }, groups), wide: true });
}
