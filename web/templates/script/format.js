// Formats times, sizes and numbers. The API's timestamps are UTC without a zone; the page shows local time.

import { h } from "./dom.js";
import { language } from "./texts.js";

const locale = () => (language() === "zh" ? "zh-CN" : navigator.languages.find((name) => name.startsWith("en")) ?? "en");

/** @param {string} timestamp */
export function parseTime(timestamp) {
  return new Date(/[Zz]|[+-]\d\d:\d\d$/.test(timestamp) ? timestamp : `${timestamp}Z`);
}

/** @param {string | null} timestamp */
export function formatDate(timestamp) {
  if (!timestamp) return "";
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(parseTime(timestamp));
}

/** @type {[Intl.RelativeTimeFormatUnit, number, number][]} */
const AGO_UNITS = [["second", 1, 60], ["minute", 60, 3600], ["hour", 3600, 86400], ["day", 86400, 30 * 86400]]; // name, length, used until

/**
 * "5 minutes ago"; the date after a month.
 *
 * @param {string | null} timestamp
 */
export function formatAgo(timestamp) {
  if (!timestamp) return "";
  const seconds = (parseTime(timestamp).getTime() - Date.now()) / 1000;
  const relative = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  for (const [unit, length, until] of AGO_UNITS) {
    if (Math.abs(seconds) < until) return relative.format(Math.round(seconds / length), unit);
  }
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }).format(parseTime(timestamp));
}

/** @param {number} count */
export function formatBytes(count) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const step = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, count)) / Math.log(1024)));
  const digits = step < 2 ? 0 : 1;
  /** @type {Intl.NumberFormatOptions} */
  const options = { style: "unit", unit: units[step], unitDisplay: step ? "short" : "long", maximumFractionDigits: digits };
  return new Intl.NumberFormat(locale(), options).format(count / 1024 ** step);
}

/** @param {number} count */
export function formatNumber(count) {
  return new Intl.NumberFormat(locale()).format(count ?? 0);
}

/** @param {number} share */
export function formatPercent(share) {
  return new Intl.NumberFormat(locale(), { style: "percent" }).format(share ?? 0);
}

/**
 * A <time> with the age, and the full date as its tooltip.
 *
 * @param {string} timestamp
 */
export function timeAgo(timestamp) {
  return h("time", { datetime: timestamp && `${timestamp}Z`, title: formatDate(timestamp), text: formatAgo(timestamp) });
}
