// One action on many screenshots: sent in calls of 500, with progress, and one "Undo" for all of them.

import { api } from "./api.js";
import { sentence, toast } from "./dialogs.js";
import { formatNumber } from "./format.js";
import { saveFile } from "./picture-file.js";
import { t } from "./texts.js";
import { tell } from "./upload.js";

const AT_ONCE = 500; // the API's limit for a call

/**
 * @typedef {"trash" | "restore" | "delete" | "keep" | "unkeep" | "tag" | "untag" | "reprocess"} BatchAction
 * @typedef {(done: number, total: number) => unknown} Told
 */

/** @type {Partial<Record<BatchAction, BatchAction>>} */
const OPPOSITES = { trash: "restore", restore: "trash", keep: "unkeep", unkeep: "keep", tag: "untag", untag: "tag" };

/**
 * Do `action` to these photos. `changing` are those that it changes, and which are put back by "Undo"; an action without an opposite
 * has none. Each call is done as a whole or not at all; after a failure, what the calls before it have done can be undone.
 *
 * @param {number[]} ids
 * @param {BatchAction} action
 * @param {{ tag?: string, changing?: number[], told?: Told, isQuiet?: boolean }} [options]
 */
export async function changeMany(ids, action, { tag = "", changing = ids, told = () => {}, isQuiet = false } = {}) {
  let done = 0; // of the ids
  let counted = 0;
  /** @type {any} */
  let problem = null;
  for (; done < ids.length && !problem; done += AT_ONCE) {
    told(done, ids.length);
    try {
      /** @type {BatchChanged} */
      const answer = await api.post("/api/photos/batch", { ids: ids.slice(done, done + AT_ONCE), action, ...(tag && { tag }) });
      counted += answer.done;
    } catch (error) {
      problem = error;
      done -= AT_ONCE;
    }
  }
  if (counted) tell("many", 0);
  const back = OPPOSITES[action];
  const sent = new Set(ids.slice(0, Math.max(0, done)));
  const changed = changing.filter((id) => sent.has(id));
  const undo = back &&
    changed.length > 0 &&
    !isQuiet && { label: t("shell.undo"), run: () => changeMany(changed, back, { tag, isQuiet: true }) };
  const outcome = isQuiet ? t("batch.undone") : t(`batch.${action}`, { count: formatNumber(counted), tag });
  const text = problem
    ? t("batch.partly", { done: formatNumber(counted), total: formatNumber(ids.length), problem: sentence(problem) })
    : outcome;
  if (problem?.status !== 401) toast(text, { kind: problem ? "bad" : "good", seconds: undo ? 10 : undefined, action: undo || undefined });
  return !problem;
}

/**
 * Save the originals of these photos as zips of up to 500 pictures.
 *
 * @param {number[]} ids
 * @param {Told} told
 */
export async function downloadMany(ids, told) {
  const day = new Date().toISOString().slice(0, 10);
  for (let done = 0; done < ids.length; done += AT_ONCE) {
    told(done, ids.length);
    const answer = await api.openPosted("/api/photos/export", { ids: ids.slice(done, done + AT_ONCE) });
    const part = ids.length > AT_ONCE ? `-${done / AT_ONCE + 1}` : "";
    saveFile(new File([await answer.blob()], `snaplore-${day}${part}.zip`, { type: "application/zip" }));
  }
}
