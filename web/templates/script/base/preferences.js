// Preferences of this browser, in its local storage; in memory only where that is not available.

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
  } catch { /* no storage, or full: kept in memory only */ }
}

/**
 * The remembered value, or `fallback`.
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
  } catch { /* no storage: nothing to remove */ }
}
