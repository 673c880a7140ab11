// The message field: text, one attached picture (chosen, pasted or dropped), and the skill for the answer.
//
// Enter sends, except during input method composition, where Enter confirms the typed characters (Chinese, for example). The draft
// belongs to the tab, not to the view, so that it survives a visit to another view.

import { glyphButton } from "../base/actions.js";
import { api } from "../base/api.js";
import { toast } from "../base/dialogs.js";
import { h, icon } from "../base/dom.js";
import { formatBytes } from "../base/format.js";
import { ACCEPTED, dropBroken, isPicture } from "../base/picture-file.js";
import { t } from "../base/texts.js";

const MAX_MESSAGE = 32768;
const MAX_ATTACHMENT = 20 * 1024 * 1024;

/**
 * A message before it is sent: its text, the attached picture, and the id of the skill ("" for none).
 *
 * @typedef {{ text: string, file: File | null, skill: string }} Written
 * @type {Written}
 */
export const draft = { text: "", file: null, skill: "" };

/**
 * `send` is called with the message, and the field is emptied.
 *
 * @param {(written: Written) => unknown} send
 */
export function composer(send) {
  let url = "";
  let locked = false;
  const preview = h("div.row.composer-preview", { hidden: true });
  const input = h("textarea.composer-text", {
    rows: 1, maxlength: MAX_MESSAGE, placeholder: t("composer.placeholder"),
    "aria-label": t("composer.label"), "aria-describedby": "composer-keys", value: draft.text,
    on: { input: typed, keydown: pressed, paste: (event) => take(event, event.clipboardData) },
  });
  const picker = h("input", {
    type: "file", accept: ACCEPTED, hidden: true, "aria-label": t("composer.attach"), on: { change: picked },
  });
  const choose = () => (draft.skill = skill.value);
  // Hidden where there is none to choose: the built-in model follows no instructions.
  const skill = h("select.composer-skill", { "aria-label": t("composer.skill"), hidden: true, on: { change: choose } },
    h("option", { value: "", text: t("composer.plain") }));
  const submit = h("button.button.primary.icon", { type: "submit", "aria-label": t("composer.send"), title: t("composer.send") },
    icon("send"));
  const form = h("form.composer", { on: { submit: submitted } }, preview, input,
    h("div.row.composer-bar",
      glyphButton("attach", t("composer.attach"), () => picker.click()), picker, skill,
      h("span.composer-keys", { id: "composer-keys", text: t("composer.keys") }), submit));

  function typed() {
    draft.text = input.value;
    grow();
    submit.disabled = locked || !(draft.text.trim() || draft.file);
  }

  function grow() {
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight}px`;
  }

  /** @param {KeyboardEvent} event */
  function pressed(event) {
    // Safari reports keyCode 229, and not isComposing, for the Enter that ends a composition.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    form.requestSubmit();
  }

  /** @param {Event} event */
  function submitted(event) {
    event.preventDefault();
    if (locked || !(draft.text.trim() || draft.file)) return;
    const said = { ...draft };
    write("", null);
    send(said);
  }

  function picked() {
    attach(picker.files?.[0]);
    picker.value = "";
  }

  /**
   * @param {Event} event
   * @param {DataTransfer | null} transfer
   */
  function take(event, transfer) {
    const file = [...(transfer?.files ?? [])][0];
    if (!file || transfer?.types.includes("text/plain")) return; // a copied table comes both as text and as a picture
    event.preventDefault();
    attach(file);
  }

  /** @param {File} [file] */
  function attach(file) {
    if (!file) return;
    if (!isPicture(file)) return toast(t("composer.notPicture", { name: file.name }), { kind: "bad" });
    if (file.size > MAX_ATTACHMENT) return toast(t("composer.tooLarge", { name: file.name }), { kind: "bad" });
    draft.file = file;
    show();
    input.focus();
  }

  function show() {
    if (url) URL.revokeObjectURL(url);
    url = draft.file ? URL.createObjectURL(draft.file) : "";
    preview.hidden = !url;
    preview.replaceChildren();
    if (draft.file) {
      const remove = () => (write(input.value, null), input.focus());
      preview.append(
        h("img", { src: url, alt: "", on: { error: dropBroken } }),
        h("span", `${draft.file.name} · ${formatBytes(draft.file.size)}`),
        glyphButton("close", t("composer.remove"), remove),
      );
    }
    typed();
  }

  /**
   * @param {string} text
   * @param {File | null} file
   */
  function write(text, file) {
    input.value = text;
    draft.text = text;
    draft.file = file;
    show();
  }

  async function listSkills() {
    try {
      const asked = [api.get("/api/skills"), api.get("/api/config/llm")];
      const [listed, model] = /** @type {[{ skills: SkillDetail[] }, ConfigurationFields]} */ (await Promise.all(asked));
      const skills = model.provider === "local" ? [] : listed.skills;
      skill.hidden = !skills.length;
      skill.append(...skills.map((one) => h("option", { value: one.id, text: `${one.icon} ${one.name}`.trim(), title: one.description })));
      skill.value = skills.some((one) => one.id === draft.skill) ? draft.skill : "";
      draft.skill = skill.value;
    } catch {
      // A message can be sent without the list of skills, and its request reports what is wrong.
    }
  }

  show();
  listSkills();
  return {
    element: form,
    input,
    focus: () => input.focus(),
    grow,
    write,
    take,
    /** @param {boolean} value */
    lock(value) {
      locked = value;
      typed();
    },
    close() {
      if (url) URL.revokeObjectURL(url);
    },
  };
}
