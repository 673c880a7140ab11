// What a person says about a screenshot, in the panel beside it: a title, a summary, a note, tags and corrected text. Each is edited
// where it stands. Leaving a field or Enter saves it, Escape takes it back.

import { api } from "../base/api.js";
import { fail, sentence, toast } from "../base/dialogs.js";
import { button, fill, h, icon } from "../base/dom.js";
import { LONGEST_TAG, tagInput } from "../base/tags.js";
import { t } from "../base/texts.js";

/** @typedef {"title" | "summary" | "note" | "text"} OwnField */

/** @type {Record<OwnField, number>} */
const LONGEST = { title: 200, summary: 2000, note: 10_000, text: 200_000 }; // characters, as in the API

/**
 * Make the panel of a photo editable. `saved` is called with the new detail, and with what had the focus, a selector.
 *
 * @param {HTMLElement} content with what `detailsOf` makes
 * @param {PhotoDetail} photo
 * @param {(detail: PhotoDetail, focus: string) => unknown} saved
 */
export function ownWords(content, photo, saved) {
  const path = `/api/photos/${photo.id}`;
  /** @type {(changes: object, focus: string) => Promise<unknown>} */
  const send = async (changes, focus) => saved(await api.patch(path, changes), focus);

  /**
   * @param {OwnField} name
   * @param {HTMLElement} node what is shown
   * @param {HTMLElement} pencil opens the field
   * @param {HTMLElement} line what the field takes the place of
   */
  function editable(name, node, pencil, line = node) {
    const value = { title: photo.title, summary: photo.summary, note: photo.note, text: photo.text }[name];
    const isLine = name === "title";
    const open = () => {
      const props = { maxlength: LONGEST[name], "aria-label": t(`own.${name}`), placeholder: isLine ? node.textContent : undefined, value };
      const field = isLine
        ? h("input.own-input", { type: "text", ...props })
        : h("textarea.own-input", { rows: name === "text" ? 10 : 3, ...props });
      const hint = h("p.hint", { text: t(isLine ? "own.hintLine" : "own.hintText") });
      const problem = h("p.problem", { role: "alert" });
      const place = h("div.own-editing", field, hint, problem);
      let isOver = false;
      const close = () => {
        isOver = true;
        place.remove();
        line.hidden = pencil.hidden = false;
      };
      const save = async () => {
        const next = field.value.trim();
        if (isOver) return;
        if (next === value.trim()) return close();
        isOver = true; // leaving the field is no second time
        field.readOnly = true;
        problem.textContent = "";
        try {
          await send({ [name]: next }, `[data-own="${name}"]`);
        } catch (error) {
          isOver = field.readOnly = false;
          problem.textContent = sentence(error);
          if (place.isConnected) field.focus();
          else fail(error); // another picture is shown by now
        }
      };
      field.addEventListener("blur", save);
      field.addEventListener("keydown", (/** @type {any} */ event) => {
        event.stopPropagation(); // keys of the viewer
        if (event.isComposing) return; // Enter ends the word that is being composed
        const isSave = event.key === "Enter" && (isLine || event.ctrlKey || event.metaKey);
        if (!isSave && event.key !== "Escape") return;
        event.preventDefault(); // Escape does not close the viewer
        if (isSave) return save();
        close();
        pencil.focus();
      });
      line.hidden = pencil.hidden = true;
      line.after(place);
      field.focus();
      if (isLine) field.select();
    };
    pencil.addEventListener("click", open);
    node.addEventListener(isLine ? "click" : "dblclick", () => getSelection()?.isCollapsed !== false && open());
    if (photo.own.includes(name)) line.after(ownMark(name, value));
  }

  /**
   * @param {OwnField} name
   * @param {string} value
   */
  function ownMark(name, value) {
    const focus = `[data-own="${name}"]`;
    const back = button(t("own.back"), { kind: "quiet", click: async () => {
      try {
        await send({ [name]: "" }, focus);
        toast(t("own.isBack"), { action: { label: t("shell.undo"), run: () => send({ [name]: value }, focus).catch(fail) } });
      } catch (error) {
        fail(error);
      }
    } });
    return h("p.own-mark", icon("edit"), h("span", t("own.yours")), back);
  }

  const pencilOf = (/** @type {OwnField} */ name) =>
    button("", { glyph: "edit", kind: "quiet own-pencil", label: t("own.edit", { name: t(`own.${name}`) }), dataset: { own: name } });

  const title = /** @type {HTMLElement} */ (content.querySelector(".details-title"));
  const titlePencil = pencilOf("title");
  editable("title", title, titlePencil, lineOf(title, titlePencil));

  const shown = /** @type {HTMLElement | null} */ (content.querySelector(".details-summary"));
  const summary = shown ?? h("p.details-summary", { hidden: true });
  const summaryPencil = shown ? pencilOf("summary") : adding("summary", t("own.addSummary"));
  const note = h("p.details-note", { text: photo.note, hidden: !photo.note });
  const notePencil = photo.note ? pencilOf("note") : adding("note", t("own.addNote"));
  const tags = tagRow();
  if (shown) editable("summary", shown, summaryPencil, lineOf(shown, summaryPencil));
  const noteSection = photo.note ? h("section.own-note", h("div.row.apart", h("h4", t("own.note")), notePencil), note) : h("div", note);
  const additions = h("div.row.own-additions", !photo.note && notePencil, !shown && summaryPencil);
  const where = content.querySelector(".details-own") ?? content;
  fill(where, tags, noteSection, !shown && summary, additions);
  editable("note", note, notePencil);
  if (!shown) editable("summary", summary, summaryPencil);

  const text = /** @type {HTMLElement | null} */ (content.querySelector(".details-text"));
  if (text && photo.text) {
    const pencil = pencilOf("text");
    text.previousElementSibling?.append(pencil);
    editable("text", text, pencil);
  }

  function tagRow() {
    const change = (/** @type {string[]} */ next, /** @type {string} */ focus) => send({ tags: next }, focus).catch(fail);
    const append = (/** @type {string} */ tag) => {
      const name = tag.trim().slice(0, LONGEST_TAG);
      if (name) change([...photo.tags, name], ".own-tags input");
    };
    const { input, suggestions, draw } = tagInput(append, () => photo.tags);
    input.placeholder = t("own.addTag");
    suggestions.classList.add("own-suggestions");
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.isComposing) return;
      if (event.key === "Enter" || event.key === ",") append(input.value);
      else if (event.key === "Backspace" && !input.value && photo.tags.length) change(photo.tags.slice(0, -1), ".own-tags input");
      else if (event.key === "Escape" && input.value) {
        input.value = "";
        draw();
      } else return;
      event.preventDefault();
    });
    const chips = photo.tags.map((tag) =>
      h(
        "li.filter.own-tag",
        h("a", { href: `#/library?tag=${encodeURIComponent(tag)}`, title: t("own.showTag", { tag }), text: tag }),
        button("", {
          glyph: "close",
          kind: "quiet",
          label: t("own.removeTag", { tag }),
          click: () =>
            change(
              photo.tags.filter((other) => other !== tag),
              ".own-tags input",
            ),
        }),
      ),
    );
    return h("div.own-tags", { role: "group", label: t("own.tags") }, h("ul.list.chips", chips, h("li", input)), suggestions);
  }
}

/**
 * @param {HTMLElement} node
 * @param {HTMLElement} pencil
 */
function lineOf(node, pencil) {
  const line = h("div.own-line");
  node.replaceWith(line);
  line.append(node, pencil);
  return line;
}

/**
 * @param {OwnField} name
 * @param {string} text
 */
function adding(name, text) {
  return button(text, { glyph: "plus", kind: "quiet own-add", dataset: { own: name } });
}
