// The one Trusted Types policy of the page. Where a browser has them, a text becomes the address of a service worker, or a script, only
// through it; and the Content-Security-Policy lets only scripts run whose hashes it names.

export const WORKER = "service-worker.js";

/** @type {{ createScriptURL(url: string): any, createScript(text: string): any } | undefined} */
const policy = /** @type {any} */ (window).trustedTypes?.createPolicy("snaplore", {
  createScriptURL: (/** @type {string} */ url) => (url === WORKER ? url : ""),
  createScript: (/** @type {string} */ text) => text,
});

/** @returns {string} */
export const workerAddress = () => policy?.createScriptURL(WORKER) ?? WORKER;

/**
 * @param {string} text
 * @returns {string}
 */
export const asScript = (text) => policy?.createScript(text) ?? text;
