// What a newcomer sees: the first steps where the library is empty, and the one question that the page asks by itself, which is how
// long to keep things.

import { praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { codeRow, connection } from "../base/connect.js";
import { button, fill, h, icon } from "../base/dom.js";
import { CHOICES, duration, keep } from "../base/keeping.js";
import { pickFolder } from "../base/folders.js";
import { t } from "../base/texts.js";
import { uploadButton } from "../base/upload.js";

const IS_TOUCHED = matchMedia("(hover: none)"); // a phone has nowhere to drop from

/**
 * The whole content of an empty library: one card to begin with, and what is less often wanted below it.
 *
 * @param {HTMLElement} keeping the question how long to keep things
 */
export function firstSteps(keeping) {
  const folder = button(t("upload.folder"), { glyph: "folder", click: pickFolder });
  return h("section.first-steps", { "aria-labelledby": "first-title" },
    h("div.card.first-card",
      h("div.first-drop", icon("upload"), h("h2.first-title", { id: "first-title", text: t(IS_TOUCHED.matches ? "first.touched" : "first.title") }),
        h("p", t(IS_TOUCHED.matches ? "first.touchedLead" : "first.lead")), h("div.row", uploadButton(), folder), h("p.hint", t("first.formats"))),
      h("section.stack.first-phone", h("h3.row", icon("device"), h("span", t("first.phone"))), connection())),
    keeping,
    h("div.first-more",
      h("details.card", h("summary", t("first.folder")),
        h("div.stack", h("p", t("first.folderText")), codeRow("./snaplore import FOLDER", t("first.command")))),
      h("details.card", h("summary", t("first.model")), h("div.stack", h("p", t("first.modelText")),
        h("div.row", h("a.button", { href: "#/settings/model", text: t("first.modelButton") }))))));
}

/**
 * The question how long to keep things. It stays empty where somebody has answered it, on whichever device, and where the service
 * does not say: the settings have the same choice.
 *
 * @param {HTMLElement} place
 */
export function keepingQuestion(place) {
  api.get("/api/data/retention").then(
    (/** @type {RetentionFields} */ now) => !now.chosen && fill(place, question(place, now.retention_days)),
    () => {},
  );
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
