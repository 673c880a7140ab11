// Settings: each section has an address of its own, so that only its data is fetched. This file has the frame and the sections
// "General" and "Access and keys"; the other sections have files of their own.

import { api, session } from "../base/api.js";
import { showDevices } from "./devices.js";
import { add, button, choice, field, h, icon } from "../base/dom.js";
import { showServers, showSkills } from "./extensions.js";
import { formatAgo, formatDate, formatNumber, parseTime } from "../base/format.js";
import { showModel, showUsage } from "./model.js";
import { dataTable, facts, settingsCard } from "./panels.js";
import { recalled } from "../base/preferences.js";
import { load, pageHead, setTheme } from "../base/shell.js";
import { reload, signOut } from "../base/signin.js";
import { showStatistics } from "./statistics.js";
import { showStorage } from "./storage.js";
import { chooseLanguage, chosenLanguage, offeredLanguages, t } from "../base/texts.js";
import { showPrograms } from "./webhooks.js";

/**
 * In the order of the navigation. Each fills a container, and may return a function that ends it.
 *
 * @type {Record<string, (container: HTMLElement) => Ending | void>}
 */
const SECTIONS = {
  general: showGeneral,
  model: showModel,
  usage: showUsage,
  skills: showSkills,
  tools: showServers,
  devices: showDevices,
  programs: showPrograms,
  data: showStorage,
  statistics: showStatistics,
  access: showAccess,
};

/** @type {Pick<import("../base/shell.js").View, "show">} */
export const settings = {
  show(container, { id }) {
    const names = Object.keys(SECTIONS);
    const chosen = id && names.includes(id) ? id : "general";
    const body = h("div.stack.settings-body");
    const links = names.map((name) =>
      h("a.tab", { href: `#/settings/${name}`, "aria-current": name === chosen ? "page" : undefined },
        h("span", t(`settings.${name}`)), h("span.settings-about", t(`settings.${name}Text`))));
    // On a phone, the sections are a page of their own, which is the start of the settings.
    add(container, pageHead(t("settings.title")), h("a.row.settings-back", { href: "#/settings" }, icon("back"), t("settings.back")),
      h("nav.tabs.settings-nav", { "aria-label": t("settings.sections") }, links), body);
    container.classList.toggle("settings-start", !id);
    return SECTIONS[chosen](body);
  },
};

/** @param {HTMLElement} container */
function showGeneral(container) {
  const speak = () => {
    chooseLanguage(languages.value);
    reload("general-language");
  };
  const languages = choice([["auto", t("general.auto")], ...Object.entries(offeredLanguages)], chosenLanguage(),
    { id: "general-language", on: { change: speak } });
  const kinds = [["auto", t("general.autoTheme")], ["light", t("general.light")], ["dark", t("general.dark")]];
  const themes = choice(kinds, recalled("theme", "auto"),
    { on: { change: () => setTheme(themes.value) } });
  add(container,
    settingsCard(t("settings.general"),
      h("div.settings-fields", field(t("general.language"), languages), field(t("general.theme"), themes)),
      h("p.hint", t("general.here"))),
    settingsCard(t("general.about"), h("p", t("general.version", { version: document.documentElement.dataset.version ?? "" }))));
}

/** @param {HTMLElement} container */
function showAccess(container) {
  const keys = h("div");
  const leaving = async () => {
    await signOut();
    location.reload(); // discards the drafts, pictures and answers of this tab
  };
  add(
    container,
    settingsCard(
      t("access.browser"),
      session.key
        ? h("div.row", button(t("access.signOut"), { click: leaving }), h("span.hint", t("access.signOutText")))
        : h("p.problem", t("connect.open")),
      h("p", h("a", { href: "#/settings/devices", text: t("access.connect") })),
    ),
    settingsCard(t("access.keys"), keys),
  );
  return load(keys, (signal) => api.get("/api/data/keys", {}, { signal }), (/** @type {KeyStatus} */ found) => {
    if (!found.encrypted) return h("p", t("access.plain"));
    const due = found.rotation_due_at;
    let rotation = t("access.never");
    const words = { when: formatDate(due), days: found.rotation_days };
    if (due) rotation = t(parseTime(due) < new Date() ? "access.overdue" : "access.rotationText", words);
    return h("div.stack", h("p", t("access.encrypted")),
      facts([
        [t("access.generation"), t("access.number", { number: found.generation })],
        [t("access.made"), `${formatDate(found.created_at)} (${formatAgo(found.created_at)})`],
        [t("access.rotation"), rotation],
      ]),
      found.files.length > 0 && dataTable([t("access.key"), t("access.count")],
        found.files.map(({ generation, count }) => [t("access.number", { number: generation }), formatNumber(count)])));
  });
}
