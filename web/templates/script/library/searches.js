// Saved searches: a row of chips below the search field. Each opens with one tap and has the number of new screenshots that match.

import { praise } from "../base/actions.js";
import { api } from "../base/api.js";
import { dialog, fail, toast } from "../base/dialogs.js";
import { button, field, fill, h, icon } from "../base/dom.js";
import { t } from "../base/texts.js";

const MANY_NEW = 100; // the API counts no further

/**
 * The row of saved searches in `row`. `open(query)` shows the results of one. Call `draw(query)` when the query of the page has changed
 * ("" for none), and `refresh()` when screenshots may have come.
 *
 * @param {HTMLElement} row
 * @param {(query: string) => unknown} open
 */
export function savedSearches(row, open) {
  /** @type {SavedSearch[]} */
  let saved = [];
  let query = "";
  row.setAttribute("role", "group");
  row.ariaLabel = t("searches.label");
  const draw = (/** @type {string} */ now) => {
    query = now;
    const at =
      document.activeElement instanceof HTMLElement && row.contains(document.activeElement)
        ? document.activeElement.dataset.search
        : undefined;
    const current = saved.find((one) => one.query.toLowerCase() === query.toLowerCase());
    fill(
      row,
      saved.map((one) => chip(one, one === current)),
      query &&
        !current &&
        h(
          "button.filter.save-search",
          { type: "button", dataset: { search: "save" }, on: { click: () => saveDialog(query, added) } },
          icon("plus"),
          h("span", t("searches.save")),
        ),
    );
    row.hidden = !row.childElementCount;
    if (at) /** @type {HTMLElement | null} */ (row.querySelector(`[data-search="${at}"]`) ?? row.querySelector("button"))?.focus();
  };
  const chip = (/** @type {SavedSearch} */ one, /** @type {boolean} */ isCurrent) => {
    const count = one.new >= MANY_NEW ? `${MANY_NEW}+` : String(one.new);
    const name = h(
      "button.filter.saved-search",
      {
        type: "button",
        title: one.query,
        "aria-pressed": String(isCurrent),
        dataset: { search: one.id },
        on: { click: () => choose(one) },
      },
      icon("memory"),
      h("span", one.name),
      one.new > 0 && h("span.new-count", { text: count, "aria-hidden": "true" }),
    );
    name.ariaLabel = one.new ? t("searches.new", { name: one.name, count }) : one.name;
    if (!isCurrent) return name;
    const remove = button("", {
      glyph: "trash",
      kind: "quiet remove-search",
      label: t("searches.remove", { name: one.name }),
      click: () => forget(one),
    });
    remove.dataset.search = `remove-${one.id}`;
    return h("span.current-search", name, remove);
  };
  const choose = (/** @type {SavedSearch} */ one) => {
    one.new = 0;
    api.post(`/api/searches/${one.id}/opened`).catch(() => {}); // the count stays until the next time
    open(one.query);
  };
  const added = (/** @type {SavedSearch} */ one) => {
    saved = [...saved, one].sort((a, b) => a.name.localeCompare(b.name));
    draw(query);
    /** @type {HTMLElement | null} */ (row.querySelector(`[data-search="${one.id}"]`))?.focus();
  };
  const forget = async (/** @type {SavedSearch} */ one) => {
    try {
      await api.delete(`/api/searches/${one.id}`);
    } catch (error) {
      if (error.status !== 404) return fail(error);
    }
    saved = saved.filter((other) => other !== one);
    draw(query);
    toast(t("searches.removed", { name: one.name }), {
      action: { label: t("shell.undo"), run: () => api.post("/api/searches", { name: one.name, query: one.query }).then(added, fail) },
    });
  };
  const refresh = async () => {
    try {
      saved = (await api.get("/api/searches")).searches;
    } catch {
      return; // the library has worse to tell
    }
    draw(query);
  };
  refresh();
  return { draw, refresh };
}

/**
 * @param {string} query
 * @param {(saved: SavedSearch) => unknown} added
 */
function saveDialog(query, added) {
  const name = h("input", {
    type: "text",
    value: query.slice(0, 100),
    maxlength: "100",
    required: true,
    autocomplete: "off",
    autofocus: true,
  });
  const form = h("form.stack", { id: "save-search", on: { submit: async (event) => {
    event.preventDefault();
    try {
      const saved = await api.post("/api/searches", { name: name.value, query });
      close();
      praise(t("searches.saved", { name: saved.name }));
      added(saved);
    } catch (error) {
      fail(error);
    }
  } } }, field(t("searches.name"), name, t("searches.query", { query })));
  const save = h("button.button.primary", { type: "submit", form: "save-search" }, t("list.save"));
  const { close } = dialog({ title: t("searches.saveTitle"), body: form, actions: [save] });
  name.select();
}
