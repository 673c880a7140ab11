// What is done to things, in every view the same way: press, wait, say how it went.

import { api } from "./api.js";
import { confirmDialog, fail, toast } from "./dialogs.js";
import { button } from "./dom.js";
import { busy } from "./shell.js";
import { t, words } from "./texts.js";

words({
  list: {
    more: "Show more|显示更多",
    delete: "Delete|删除",
    save: "Save|保存",
    all: "All|全部",
  },
});

// What is pressed, done, and said: `work()` is awaited, its failure shown, `then(answer)` called.
export async function settle(pressed, work, then) {
  try {
    then(await busy(pressed, work()));
  } catch (error) {
    fail(error);
  }
}

// Asks, deletes what is at `path`, and says so; what was gone already is as good as deleted.
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

export function praise(text) {
  toast(text, { kind: "good" });
}

// A button that shows only an icon.
export function glyphButton(glyph, label, click, props) {
  return button("", { glyph, label, click, kind: "quiet", ...props });
}

export function moreButton(next) {
  const more = button(t("list.more"), { click: () => settle(more, next, () => {}) });
  return more;
}
