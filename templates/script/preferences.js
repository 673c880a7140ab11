// Small preferences of this browser: kept in its storage, and for as long as the page is open where it has none.

const preferences = {};

export function remember(name, value) {
  preferences[name] = value;
  try {
    localStorage.setItem(`snaplore.${name}`, JSON.stringify(value));
  } catch { /* private mode or full: kept in memory only */ }
}

export function recalled(name, fallback) {
  if (!(name in preferences)) {
    try {
      preferences[name] = JSON.parse(localStorage.getItem(`snaplore.${name}`)) ?? undefined;
    } catch {
      preferences[name] = undefined;
    }
  }
  return preferences[name] ?? fallback;
}

export function forget(name) {
  delete preferences[name];
  try {
    localStorage.removeItem(`snaplore.${name}`);
  } catch { /* nothing is kept there */ }
}
