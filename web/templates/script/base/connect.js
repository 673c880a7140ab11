// How another device connects: an address that it can reach, and the key, which is shown only on demand.

import { glyphButton, settle } from "./actions.js";
import { api, isOwner, session } from "./api.js";
import { confirmDialog } from "./dialogs.js";
import { button, fill, h } from "./dom.js";
import { formatTime } from "./format.js";
import { copyText, load, skeleton } from "./shell.js";
import { t } from "./texts.js";

const HIDDEN = "••••••••••••";

/** The card's content; it loads the addresses by itself. */
export function connection() {
  const body = h("div.stack.connect");
  const show = () => {
    load(body, (signal) => api.get("/api/addresses", null, { signal }), (/** @type {Addresses} */ found) => shown(found, show), skeleton(2));
  };
  show();
  return body;
}

/**
 * @param {Addresses} found
 * @param {() => unknown} again
 */
function shown({ addresses, loopback_only: alone, certificate, network }, again) {
  // The address that this page was opened with works for this browser, so it comes first.
  const here = isOnlyHere() ? [] : [pageAddress()];
  const [best, ...others] = new Set([...here, ...addresses]);
  if (!best) return alone ? letIn(network, again) : h("p", t("connect.none"));
  const command = codeRow(uploadCommand(best, false), t("connect.command"));
  const reveal = (/** @type {boolean} */ isShown) =>
    fill(command, [...codeRow(uploadCommand(best, isShown), t("connect.command")).childNodes]);
  const byHand = [h("p", t("connect.how")),
    h("dl.connect-facts",
      h("dt", t("connect.address")), h("dd", codeRow(best, t("connect.address"))),
      h("dt", t("connect.key")), h("dd", session.key ? keyRow(session.key, reveal) : h("p.problem", t("connect.open"))))];
  return [
    network && letOut(network, again),
    !isSecureContext && h("div.stack.tight", h("p", t("connect.plain")), codeRow("./snaplore tls init", t("connect.command"))),
    certificate && h("p.hint", t("connect.trust", { address: best })),
    isOwner() && session.key ? [pairing(best), h("details", h("summary", t("connect.byHand")), byHand), programs(best)] : byHand,
    others.length > 0 && h("details", h("summary", t("connect.others")),
      h("ul.list.stack.tight", others.map((address) => h("li", codeRow(address, t("connect.address")))))),
    h("details", h("summary", t("connect.terminal")), command),
  ];
}

/**
 * The button that shows a code, and the code.
 *
 * @param {string} address
 */
function pairing(address) {
  const place = h("div.stack.tight");
  const show = button(t("connect.pair"), { kind: "primary", glyph: "phone", click: () =>
    settle(show, () => api.post("/api/pairing", { address }), (/** @type {PairingFields} */ { code, qr, expires_at: until }) => fill(place,
      h("div.pairing", h("img", { src: `data:image/svg+xml,${encodeURIComponent(qr)}`, alt: "", width: 176, height: 176 }),
        h("div.stack.tight", h("p", t("connect.scan", { address })), h("p.pairing-code", { text: `${code.slice(0, 4)} ${code.slice(4)}` }),
          h("p.hint", t("connect.once", { time: formatTime(until) })))), h("div.row", show))) });
  return fill(place, h("div.row", show));
}

const PROGRAMS = { "http-shortcuts": "HTTP Shortcuts (Android)", ios: "iOS Shortcuts", sharex: "ShareX (Windows)", powershell: "PowerShell",
  macos: "macOS", flameshot: "Flameshot", spectacle: "Spectacle", grim: "grim + slurp", curl: "curl" };

/**
 * What other programs need to send screenshots here.
 *
 * @param {string} address
 */
function programs(address) {
  const place = h("div.stack.tight");
  const one = (/** @type {[string, string]} */ [kind, name]) => {
    const pressed = button(name, {
      click: () =>
        settle(
          pressed,
          () => api.post(`/api/recipes/${kind}`, { address }),
          (recipe) => fill(place, recipeCard(recipe)),
        ),
    });
    return pressed;
  };
  return h("details", h("summary", t("connect.programs")), h("div.stack.tight", h("p.hint", t("connect.programsText")),
    h("div.row", Object.entries(PROGRAMS).map(one)), place));
}

/** @param {RecipeFields} recipe */
function recipeCard({ name, filename, content, steps, actions }) {
  const file =
    filename &&
    h("a.button", {
      href: `data:text/plain;charset=utf-8,${encodeURIComponent(content)}`,
      download: filename,
      text: t("connect.save", { name: filename }),
    });
  return h("section.stack.tight", h("h3", name), file ? h("div.row", file) : content && codeRow(content, name),
    steps.length > 0 && h("ol.recipe", steps.map((step) => h("li", step))),
    actions.map(({ title, values }) => h("figure.action", h("figcaption", title), h("dl", values.map(({ name: field, value, typed }) =>
      h("div.row", h("dt", field), h("dd.grow", { text: value, class: typed ? "typed" : "" }),
        typed && glyphButton("copy", `${t("shell.copy")}: ${field}`, () => copyText(value))))))));
}

/**
 * Only this computer can connect. The owner can let the network in, where the service offers it.
 *
 * @param {NetworkFields | null} network
 * @param {() => unknown} again
 */
function letIn(network, again) {
  if (network?.listen === "off" && isOwner()) {
    const text = `${t("connect.openText")} ${location.protocol === "http:" ? t("connect.openPlain") : ""}`;
    const offer = (/** @type {"minutes" | "always"} */ listen, /** @type {string} */ kind) => {
      const pressed = button(t(`connect.${listen}`), { kind, click: async () => {
        if (await confirmDialog({ title: t("connect.openTitle"), text, action: t(`connect.${listen}`) })) setListening(pressed, listen, again);
      } });
      return pressed;
    };
    return [h("p", t("connect.onlyHere")), h("div.row", offer("minutes", "primary"), offer("always", ""))];
  }
  const port = location.port || "80";
  const command = `SNAPLORE_BIND=0.0.0.0:${port} make run`;
  return [h("p", t(network?.listen === "fixed" ? "connect.fixed" : "connect.alone")), codeRow(command, t("connect.command")),
    h("p.hint", `${t("connect.guarded")} ${t("connect.service")}`)];
}

/**
 * The network may connect because the owner let it in: until when, and how to end it.
 *
 * @param {NetworkFields} network
 * @param {() => unknown} again
 */
function letOut({ listen, until }, again) {
  if (!["minutes", "always"].includes(listen)) return null;
  const stop = button(t("connect.stop"), { click: () => setListening(stop, "off", again) });
  const always = button(t("connect.always"), { click: () => setListening(always, "always", again) });
  return h("div.stack.tight", h("p", until ? t("connect.openUntil", { time: formatTime(until) }) : t("connect.openAlways")),
    isOwner() && h("div.row", until && always, stop));
}

/**
 * @param {HTMLButtonElement} pressed
 * @param {"minutes" | "always" | "off"} listen
 * @param {() => unknown} again
 */
function setListening(pressed, listen, again) {
  settle(pressed, () => api.put("/api/network", { listen }), again);
}

/**
 * The key, hidden until it is asked for. `reveal` is called with whether it is shown.
 *
 * @param {string} key
 * @param {(isShown: boolean) => unknown} reveal
 */
function keyRow(key, reveal) {
  const text = h("code.settings-code.grow", { text: HIDDEN, label: t("connect.masked"), role: "img" });
  let isShown = false;
  const flip = () => {
    isShown = !isShown;
    text.textContent = isShown ? key : HIDDEN;
    text.ariaLabel = isShown ? null : t("connect.masked");
    text.role = isShown ? null : "img";
    toggle.replaceChildren(t(isShown ? "connect.hide" : "connect.show"));
    toggle.setAttribute("aria-pressed", String(isShown));
    reveal(isShown);
  };
  const toggle = button(t("connect.show"), {
    click: flip,
    "aria-pressed": "false",
    "aria-label": `${t("connect.show")}: ${t("connect.key")}`,
  });
  return h("div.row.code-row", text, toggle, glyphButton("copy", `${t("shell.copy")}: ${t("connect.key")}`, () => copyText(key)));
}

/**
 * @param {string} address
 * @param {boolean} withKey
 */
function uploadCommand(address, withKey) {
  const key = withKey ? session.key : "…";
  const bearer = session.key ? ` -H 'Authorization: Bearer ${key}'` : "";
  return `curl${bearer} -F file=@screenshot.png ${address}/api/photos/upload`;
}

/**
 * A text in code, with a button that copies it.
 *
 * @param {string} text
 * @param {string} name what it is, for the button's label
 */
export function codeRow(text, name) {
  return h(
    "div.row.code-row",
    h("code.settings-code.grow", { text }),
    glyphButton("copy", `${t("shell.copy")}: ${name}`, () => copyText(text)),
  );
}

/** @param {string} host */
export function isLoopback(host) {
  return host === "localhost" || host === "[::1]" || host.startsWith("127.");
}

const pageAddress = () => (location.origin + location.pathname).replace(/\/$/, "");

/** Whether no other device can open the page's address: it is this machine's own, or in a frame of a program that asks who comes. */
const isOnlyHere = () => isLoopback(location.hostname) || parent !== window;

/** The address by which other programs reach the service: the page's own, unless only this browser can open that. */
export async function reachable() {
  if (!isOnlyHere()) return pageAddress();
  const { addresses } = await api.get("/api/addresses");
  return addresses[0] ?? pageAddress();
}
