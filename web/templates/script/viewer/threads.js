// A photo's thread in the viewer: the other screenshots of the same order, parcel, trip, booking or bill, as a strip.

import { api } from "../base/api.js";
import { fail, toast } from "../base/dialogs.js";
import { button, h } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { t, term } from "../base/texts.js";
import { stripMembers } from "./stacks.js";

/**
 * @param {number} id
 * @param {number} current the photo that is shown
 * @param {{ signal: AbortSignal, open: (id: number) => unknown, changed: () => unknown }} options
 * @returns {Promise<HTMLElement | null>} null where no other screenshot is part of it
 */
export async function threadStrip(id, current, { signal, open, changed }) {
  /** @type {ThreadFields | null} */
  const thread = await api.get(`/api/threads/${id}`, null, { signal }).catch(() => null); // the viewer is whole without it
  if (!thread || thread.count < 2) return null;
  const label = t(`threadOf.${thread.type}`, { count: formatNumber(thread.count) });
  const ids = [...thread.photo_ids].reverse();
  const takeOut = async () => {
    if (!(await hasDeleted(`/api/threads/${id}/photos/${current}`))) return;
    changed();
    toast(t("threads.out"), { seconds: 8, action: { label: t("shell.undo"), run: async () => {
      if (await hasDeleted(`/api/threads/apart/${current}`)) changed();
    } } });
  };
  return h(
    "div.viewer-stack.viewer-thread",
    { role: "group", label },
    h("div.thread-label", h("span", label), stateBadge(thread)),
    h(
      "div.stack-members",
      stripMembers(ids, current, {
        open,
        nameOf: (_, at) => t("stack.member", { at: at + 1, count: ids.length }),
        signOf: (member) => member === thread.said_on && thread.type !== "page" && t("threads.newest"),
      }),
    ),
    button("", { glyph: "minus", kind: "quiet stack-tidy", label: t(`threadNot.${thread.type}`), click: takeOut }),
  );
}

/** @param {string} path */
async function hasDeleted(path) {
  try {
    await api.delete(path);
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

const STATE_KINDS = { good: ["delivered", "paid"], warn: ["out_for_delivery", "ready_for_pickup", "due"], bad: ["cancelled"] };

/** @param {ThreadFields} thread */
export function stateBadge({ state }) {
  const kind = Object.entries(STATE_KINDS).find(([, states]) => states.includes(state));
  return state && h(`span.badge${kind ? `.${kind[0]}` : ""}`, term("threadState", state));
}
