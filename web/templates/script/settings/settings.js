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
import { chooseLanguage, chosenLanguage, t, words } from "../base/texts.js";
import { showPrograms } from "./webhooks.js";

words({
  settings: {
    sections: "Settings sections|设置分区",
    back: "All settings|全部设置",
    general: "General|通用",
    generalText: "Language and appearance|语言和外观",
    access: "Access|访问",
    accessText: "Sign out, encryption|退出登录、加密",
    saved: "Saved|已保存",
    add: "Add|添加",
    edit: "Edit|编辑",
    on: "enabled|已启用",
    remove: "Remove|移除",
  },
  general: {
    language: "Language|语言",
    auto: "Same as the browser|跟随浏览器",
    theme: "Appearance|外观",
    autoTheme: "Same as the system|跟随系统",
    light: "Light|浅色",
    dark: "Dark|深色",
    here: "Saved in this browser only.|仅保存在此浏览器中。",
    about: "About|关于",
    version: "Snaplore {version}. Everything on this page comes from your own server.|Snaplore {version}。本页的所有内容都来自你自己的服务器。",
  },
  access: {
    browser: "This browser|此浏览器",
    connect: "Address and key for other devices|其他设备所需的地址与密钥",
    signOut: "Sign out|退出登录",
    signOutText: "This browser forgets the key.|此浏览器将忘记密钥。",
    keys: "Encryption at rest|静态加密",
    encrypted: "Pictures and the database are encrypted on disk.|图片和数据库在磁盘上是加密的。",
    plain: "Stored data is not encrypted (SNAPLORE_ENCRYPTION=false).|存储的数据未加密（SNAPLORE_ENCRYPTION=false）。",
    generation: "Key in use|当前密钥",
    number: "number {number}|第 {number} 代",
    made: "Created|创建时间",
    rotation: "Next rotation|下次轮换",
    rotationText: "{when}, by the rotation job (every {days} days)|{when}，由轮换任务执行（每 {days} 天）",
    overdue: "due since {when}; the rotation job will do it|{when}已到期，将由轮换任务执行",
    never: "off|未启用",
    key: "Key|密钥",
    count: "Files|文件",
  },
});

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
  const languages = choice([["auto", t("general.auto")], ["en", "English"], ["zh", "中文"]], chosenLanguage(),
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
  add(container,
    settingsCard(t("access.browser"),
      session.key ? h("div.row", button(t("access.signOut"), { click: leaving }), h("span.hint", t("access.signOutText"))) : h("p.problem", t("connect.open")),
      h("p", h("a", { href: "#/settings/devices", text: t("access.connect") }))),
    settingsCard(t("access.keys"), keys));
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
