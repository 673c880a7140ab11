// Actions that every view performs in the same way: a button press, a request, a message with the outcome.

import { api } from "./api.js";
import { confirmDialog, fail, toast } from "./dialogs.js";
import { button } from "./dom.js";
import { busy } from "./shell.js";
import { t } from "./texts.js";

/**
 * Await `work()` with the pressed button disabled, then call `then(answer)`. A failure is shown as a message.
 *
 * @template Result
 * @param {HTMLButtonElement} pressed
 * @param {() => Promise<Result>} work
 * @param {(answer: Result) => unknown} then
 */
export async function settle(pressed, work, then) {
  try {
    then(await busy(pressed, work()));
  } catch (error) {
    fail(error);
  }
}

/**
 * Ask for confirmation, delete the resource at `path` and report it. A 404 counts as deleted.
 *
 * @param {HTMLButtonElement} pressed
 * @param {{ title: string, text: string, path: string, done?: string, action?: string }} options
 * @param {() => unknown} then
 */
export async function erase(pressed, { title, text, path, done, action = t("list.delete") }, then) {
  if (!(await confirmDialog({ title, text, action, danger: true }))) return;
  try {
    await busy(pressed, api.delete(path));
  } catch (error) {
    if (error.status !== 404) return fail(error);
  }
  if (done) praise(done);
  then();
}

/** @param {string} text */
export function praise(text) {
  toast(text, { kind: "good" });
}

/**
 * A button with an icon and no text.
 *
 * @param {import("./dom.js").Glyph} glyph
 * @param {string} label
 * @param {(event: Event) => unknown} click
 * @param {import("./dom.js").ButtonProps} [props]
 */
export function glyphButton(glyph, label, click, props) {
  return button("", { glyph, label, click, kind: "quiet", ...props });
}

/** @param {() => Promise<unknown>} next */
export function moreButton(next) {
  const more = button(t("list.more"), { click: () => settle(more, next, () => {}) });
  return more;
}
