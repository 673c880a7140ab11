// Small preferences of this browser: kept in its storage, and for as long as the page is open where it has none.

/** @type {Record<string, any>} */
const preferences = {};

/**
 * @param {string} name
 * @param {any} value
 */
export function remember(name, value) {
  preferences[name] = value;
  try {
    localStorage.setItem(`snaplore.${name}`, JSON.stringify(value));
  } catch { /* private mode or full: kept in memory only */ }
}

/**
 * What was remembered, or `fallback`.
 *
 * @param {string} name
 * @param {any} fallback
 * @returns {any}
 */
export function recalled(name, fallback) {
  if (!(name in preferences)) {
    try {
      preferences[name] = JSON.parse(localStorage.getItem(`snaplore.${name}`) ?? "null") ?? undefined;
    } catch {
      preferences[name] = undefined;
    }
  }
  return preferences[name] ?? fallback;
}

/** @param {string} name */
export function forget(name) {
  delete preferences[name];
  try {
    localStorage.removeItem(`snaplore.${name}`);
  } catch { /* nothing is kept there */ }
}
