// Formats times, sizes and numbers. The API's timestamps are UTC without a zone; the page shows local time.

import { h } from "./dom.js";
import { language } from "./texts.js";

// English has as many ways to write a date as countries: the browser's languages have the person's.
const locale = () => (language() === "en" && navigator.languages.find((name) => name.startsWith("en"))) || document.documentElement.lang;

/** @param {string} timestamp */
export function parseTime(timestamp) {
  return new Date(/[Zz]|[+-]\d\d:\d\d$/.test(timestamp) ? timestamp : `${timestamp}Z`);
}

/** @param {string | null} timestamp */
export function formatDate(timestamp) {
  if (!timestamp) return "";
  return dateFormat({ dateStyle: "medium", timeStyle: "short" }).format(parseTime(timestamp));
}

/** @param {string} timestamp */
export function formatTime(timestamp) {
  return dateFormat({ timeStyle: "short" }).format(parseTime(timestamp));
}

/** @param {string} clock a time of day, "14:30" */
export function formatClock(clock) {
  return dateFormat({ timeStyle: "short" }).format(new Date(`2026-01-01T${clock}`));
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
  return dateFormat({ dateStyle: "medium" }).format(parseTime(timestamp));
}

/**
 * The heading of a day, "2026-11-17": "Tomorrow", "Today", "Yesterday", "Tuesday, 17 November"; with the year unless it is this one.
 *
 * @param {string} day
 * @param {Date} now
 * @param {"long" | "short" | "date"} length "date": without the weekday
 * @param {boolean} [isInside] within a sentence: "tomorrow"
 */
export function formatDay(day, now, length, isInside = false) {
  const [year, month, date] = day.split("-").map(Number);
  const moment = new Date(year, month - 1, date);
  const ago = Math.round((new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime() - moment.getTime()) / 86_400_000);
  if (Math.abs(ago) <= 1) {
    const word = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(-ago, "day");
    return isInside ? word : word.charAt(0).toLocaleUpperCase(locale()) + word.slice(1);
  }
  const own = year === now.getFullYear() ? undefined : "numeric";
  const weekday = length === "date" ? undefined : length;
  return dateFormat({ weekday, day: "numeric", month: weekday ?? "short", year: own }).format(moment);
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const dateFormats = new Map(); // a list formats hundreds of dates, and making a format takes longer than using it

/** @param {Intl.DateTimeFormatOptions} options */
function dateFormat(options) {
  const key = `${locale()} ${JSON.stringify(options)}`;
  const format = dateFormats.get(key) ?? new Intl.DateTimeFormat(locale(), options);
  dateFormats.set(key, format);
  return format;
}

/**
 * "November", or "November 2024" unless it is of the year of `now`.
 *
 * @param {string} month "2026-11"
 * @param {Date | null} now
 */
export function formatMonth(month, now) {
  const [year, number] = month.split("-").map(Number);
  return dateFormat({ month: "long", year: year === now?.getFullYear() ? undefined : "numeric" }).format(new Date(year, number - 1));
}

/** @param {string} day "2026-11-22" */
export function formatMonthShort(day) {
  return dateFormat({ month: "short" }).format(new Date(`${day}T12:00`));
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

/** @param {{ value: string, currency: string }} amount */
export function formatAmount({ value, currency }) {
  return new Intl.NumberFormat(locale(), { style: "currency", currency, currencyDisplay: "narrowSymbol" }).format(Number(value));
}

/**
 * A local day or time of a record, "2026-12-04" or "2026-12-04T07:10"; any other text as it is.
 *
 * @param {string} value
 */
export function formatLocal(value) {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d)?$/.test(value)) return value;
  const isDay = value.length === 10;
  return dateFormat({ dateStyle: "medium", timeStyle: isDay ? undefined : "short" }).format(new Date(isDay ? `${value}T12:00` : value));
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

/** @param {string[]} names */
export const formatList = (names) => new Intl.ListFormat(locale()).format(names);
