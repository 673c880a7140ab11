// How long things are kept: the choices, and what each of them would delete. The settings show it, and the first steps ask it once.

import { api } from "./api.js";
import { formatNumber } from "./format.js";
import { t } from "./texts.js";

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
  const list = kinds
    .filter((kind) => due[kind])
    .map((kind) => t(`keeping.${kind}${due[kind] === 1 ? "One" : ""}`, { count: formatNumber(due[kind]) }));
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
