// The texts of the page. They are in a file for each language (templates/texts/). The service puts those that the page uses in here, in
// the language that a cookie or the browser's languages choose (page_texts.py, dashboard.py).

/** @type {Record<string, string>} */
const phrases = {};

/** The languages that the page has: their names by their codes. */
export const offeredLanguages = PAGE_LANGUAGES;

/**
 * Take in the texts of a part of the page: `{ chat: { title: "Chat" } }` makes t("chat.title").
 *
 * @param {Record<string, Record<string, string>>} views
 */
export function addTexts(views) {
  for (const [view, entries] of Object.entries(views)) {
    for (const [word, text] of Object.entries(entries)) phrases[`${view}.${word}`] = text;
  }
}

addTexts(PAGE_TEXTS);

/** The code of the language of the page. */
export const language = () => document.documentElement.lang.split("-")[0];

/** The person's choice: the code of a language, or "auto". The service reads it from a cookie, because it sends the texts. */
export const chosenLanguage = () => /snaplore_language=(\w+)/.exec(document.cookie)?.[1] ?? "auto";

/**
 * Choose the language of the page, from the next time on that it is loaded.
 *
 * @param {string} name
 */
export function chooseLanguage(name) {
  const value = name === "auto" ? "; Max-Age=0" : `${name}; Max-Age=31536000`;
  document.cookie = `snaplore_language=${value}; Path=${location.pathname}; SameSite=Strict`;
}

/**
 * The text of `key` ("view.word") with its {names} filled in. A missing text shows its key; a test looks for that.
 *
 * @param {string} key
 * @param {Record<string, string | number>} params
 */
export function t(key, params = {}) {
  return (phrases[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(params[name] ?? ""));
}

const OWN_DEVICES = ["dashboard", "import", "unknown"]; // ids of uploads by this page, by imports, and by nameless programs

/**
 * The name of a device in words.
 *
 * @param {string} id
 * @param {string} [name]
 */
export const deviceLabel = (id, name) => (OWN_DEVICES.includes(id) ? term("deviceNames", id) : name || id);

/**
 * The text of an API value such as a category. New values that have no text yet are shown as they are.
 *
 * @param {string} group
 * @param {string} value
 */
export function term(group, value) {
  const key = `${group}.${value}`;
  return key in phrases ? t(key) : String(value ?? "").replaceAll("_", " ");
}
