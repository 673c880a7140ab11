// How long things are kept: the choices, and what each of them would delete. The settings show it, and the first steps ask it once.

import { api } from "./api.js";
import { formatNumber } from "./format.js";
import { t, words } from "./texts.js";

words({
  keeping: {
    days: "{count} days|{count} 天",
    day: "1 day|1 天",
    year: "1 year|1 年",
    forever: "Forever|永久",
    nothing: "deletes nothing now|现在不会删除任何内容",
    deletes: "deletes now: {list}|现在会删除：{list}",
    photos: "{count} screenshots|{count} 张截图",
    photosOne: "1 screenshot|1 张截图",
    conversations: "{count} chats|{count} 个对话",
    conversationsOne: "1 chat|1 个对话",
    dynamics: "{count} notes|{count} 篇笔记",
    dynamicsOne: "1 note|1 篇笔记",
    separator: ", |、",
  },
});

export const CHOICES = [30, 365, 0];

/** @param {number} days as the API has it: 0 is for ever */
export function duration(days) {
  if (days === 0) return t("keeping.forever");
  if (days === 365) return t("keeping.year");
  return days === 1 ? t("keeping.day") : t("keeping.days", { count: formatNumber(days) });
}

/**
 * What the next clean-up would delete with this choice.
 *
 * @param {number} days
 * @param {AbortSignal} [signal]
 * @returns {Promise<RetentionPreview>}
 */
export function preview(days, signal) {
  return api.get("/api/data/retention/preview", { retention_days: days }, { signal });
}

/** @param {RetentionPreview} due */
export function isHarmless(due) {
  return !(due.photos || due.conversations || due.dynamics);
}

/** @param {RetentionPreview} due */
export function amounts(due) {
  const kinds = /** @type {const} */ (["photos", "conversations", "dynamics"]);
  const list = kinds.filter((kind) => due[kind]).map((kind) => t(`keeping.${kind}${due[kind] === 1 ? "One" : ""}`, { count: formatNumber(due[kind]) }));
  return list.join(t("keeping.separator"));
}

/** @param {RetentionPreview} due */
export function consequence(due) {
  return isHarmless(due) ? t("keeping.nothing") : t("keeping.deletes", { list: amounts(due) });
}

/**
 * @param {number} days
 * @returns {Promise<RetentionFields>}
 */
export function keep(days) {
  return api.put("/api/data/retention", { retention_days: days });
}
