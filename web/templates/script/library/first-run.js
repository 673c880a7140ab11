// What a newcomer sees: the first steps where the library is empty, and the one question that the page asks by itself, which is how
// long to keep things.

import { praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { codeRow, connection } from "../base/connect.js";
import { button, fill, h, icon } from "../base/dom.js";
import { CHOICES, duration, keep } from "../base/keeping.js";
import { t, words } from "../base/texts.js";
import { uploadButton } from "../base/upload.js";

words({
  first: {
    title: "Welcome to Snaplore|欢迎使用 Snaplore",
    lead: "Add screenshots, and find anything in them by the words they show. They stay on your own server.|添加截图，之后就能用其中的文字找到任何内容。截图只保存在你自己的服务器上。",
    add: "Add a few pictures|添加几张图片",
    addText: "Drop or paste them anywhere on this page. JPEG, PNG, WebP, GIF, HEIC and AVIF, up to 50 MB each.|拖放或粘贴到本页任意位置。支持 JPEG、PNG、WebP、GIF、HEIC 和 AVIF，每张不超过 50 MB。",
    phone: "Connect a phone|连接手机",
    folder: "Import a folder|导入文件夹",
    folderText: "Run this on the server, in Snaplore’s folder. You can stop it and run it again at any time.|在服务器上的 Snaplore 目录中运行。可以随时停止并再次运行。",
    command: "Import command|导入命令",
    model: "Choose a model|选择模型",
    optional: "optional|可选",
    modelText: "Snaplore works without one: this server reads the text itself, offline. A language model also understands what the pictures mean.|不配置模型也能使用：服务器会离线识别文字。语言模型还能理解图片的含义。",
    modelButton: "Set up a language model|配置语言模型",
    ask: "How long should Snaplore keep your screenshots?|截图要保留多久？",
    askText: "Now: {duration}. Older screenshots, chats and unpinned notes are deleted. You can change it any time in Settings, Storage.|当前：{duration}。更早的截图、对话和未置顶的笔记会被删除。可随时在“设置”的“存储”中更改。",
    kept: "Kept: {duration}|保留：{duration}",
  },
});

/**
 * The whole content of an empty library.
 *
 * @param {HTMLElement} keeping the question how long to keep things
 */
export function firstSteps(keeping) {
  return h("section.first-steps", { "aria-labelledby": "first-title" },
    h("header.stack.tight", h("h2.first-title", { id: "first-title", text: t("first.title") }), h("p.muted", t("first.lead"))),
    keeping,
    h("div.first-grid",
      step("upload", t("first.add"), h("p", t("first.addText")), h("div.row", uploadButton())),
      step("device", t("first.phone"), connection()),
      step("folder", t("first.folder"), h("p", t("first.folderText")), codeRow("./snaplore import FOLDER", t("first.command"))),
      step("chat", [t("first.model"), " ", h("span.badge", t("first.optional"))], h("p", t("first.modelText")),
        h("div.row", h("a.button", { href: "#/settings/model", text: t("first.modelButton") })))));
}

/**
 * @param {import("../base/dom.js").Glyph} glyph
 * @param {Child} title
 * @param {Child[]} content
 */
function step(glyph, title, ...content) {
  return h("section.card.stack.first-step", h("h3.row", icon(glyph), h("span", title)), content);
}

/**
 * The question how long to keep things. It stays empty where somebody has answered it, on whichever device, and where the service
 * does not say: the settings have the same choice.
 *
 * @param {HTMLElement} place
 */
export function keepingQuestion(place) {
  api.get("/api/data/retention").then((/** @type {RetentionFields} */ now) => !now.chosen && fill(place, question(place, now.retention_days)), () => {});
}

/**
 * @param {HTMLElement} place
 * @param {number} now
 */
function question(place, now) {
  const answer = (/** @type {number} */ days) => {
    const pressed = button(duration(days), { click: () => settle(pressed, () => keep(days), () => {
      place.replaceChildren();
      praise(t("first.kept", { duration: duration(days) }));
    }) });
    return pressed;
  };
  return h("section.card.keeping", { "aria-labelledby": "keeping-title" },
    h("div.grow", h("h2", { id: "keeping-title", text: t("first.ask") }), h("p.hint", t("first.askText", { duration: duration(now) }))),
    h("div.row", { role: "group", "aria-labelledby": "keeping-title" }, CHOICES.map(answer)));
}
