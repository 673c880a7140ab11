// How another device connects: an address that it can reach, and the key, which is shown only on demand.

import { glyphButton, settle } from "./actions.js";
import { api, isOwner, session } from "./api.js";
import { button, fill, h } from "./dom.js";
import { formatTime } from "./format.js";
import { copyText, load, skeleton } from "./shell.js";
import { t, words } from "./texts.js";

words({
  connect: {
    pair: "Show a code|显示配对码",
    scan: "Scan it with the phone’s camera, or open {address} there and type this code:|用手机相机扫描，或在手机上打开 {address} 并输入配对码：",
    once: "Valid once, until {time}. The phone gets access of its own, which you can end under “Your devices”.|仅可使用一次，{time} 前有效。手机会获得单独的访问权限，可在“你的设备”中随时取消。",
    byHand: "Without a code|不使用配对码",
    programs: "Other programs|其他程序",
    programsText: "Each gets a file or a line with a token that may only upload.|每个程序会得到一个文件或一行命令，其中的令牌只能上传。",
    save: "Save {name}|保存 {name}",
    how: "Open this address in your phone’s browser and sign in with the key, or enter both in an app that uploads screenshots.|在手机浏览器中打开这个地址并用密钥登录，或在上传截图的应用中填写地址和密钥。",
    address: "Address|地址",
    others: "Other addresses of this server|本服务器的其他地址",
    key: "Key|密钥",
    masked: "hidden|已隐藏",
    show: "Show|显示",
    hide: "Hide|隐藏",
    terminal: "From a terminal|使用终端",
    command: "Upload command|上传命令",
    alone: "Only this computer can reach Snaplore now. To let phones on your network in, stop it and start it like this:|目前只有这台电脑能访问 Snaplore。要让网络中的手机访问，请停止服务并这样启动：",
    guarded: "Every request still needs the key.|每个请求仍然需要密钥。",
    service: "As a service, set SNAPLORE_BIND in its environment instead.|以系统服务运行时，请改为在其环境中设置 SNAPLORE_BIND。",
    none: "No address of this server was found that other devices can reach.|没有找到其他设备可以访问的服务器地址。",
    plain: "This page was opened over plain http. The browser then allows no installing, no sharing to it, no offline use and no notifications. To get them, run this on the server and open the address that it prints:|此页面通过未加密的 http 打开，浏览器因此不支持安装、接收分享、离线使用和通知。请在服务器上运行以下命令，并打开其显示的地址：",
    trust: "A new device warns of this server until you install its certificate, once: open {address}/ca there.|新设备在安装本服务器的证书之前会显示警告，只需安装一次：在该设备上打开 {address}/ca。",
    open: "The service runs in development mode without a key: anyone who can reach it can read everything.|服务以开发模式运行且没有密钥：任何能访问它的人都能读取全部内容。",
  },
});

const HIDDEN = "••••••••••••";

/** The card's content; it loads the addresses by itself. */
export function connection() {
  const body = h("div.stack.connect");
  load(body, (signal) => api.get("/api/addresses", null, { signal }), (/** @type {Addresses} */ found) => shown(found), skeleton(2));
  return body;
}

/** @param {Addresses} found */
function shown({ addresses, loopback_only: alone, certificate }) {
  // The address that this page was opened with works for this browser, so it comes first.
  const here = isLoopback(location.hostname) ? [] : [location.origin];
  const [best, ...others] = new Set([...here, ...addresses]);
  if (!best) return alone ? letIn() : h("p", t("connect.none"));
  const command = codeRow(uploadCommand(best, false), t("connect.command"));
  const reveal = (/** @type {boolean} */ isShown) => fill(command, [...codeRow(uploadCommand(best, isShown), t("connect.command")).childNodes]);
  const byHand = [h("p", t("connect.how")),
    h("dl.connect-facts",
      h("dt", t("connect.address")), h("dd", codeRow(best, t("connect.address"))),
      h("dt", t("connect.key")), h("dd", session.key ? keyRow(session.key, reveal) : h("p.problem", t("connect.open"))))];
  return [
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
    const pressed = button(name, { click: () => settle(pressed, () => api.post(`/api/recipes/${kind}`, { address }), (recipe) => fill(place, recipeCard(recipe))) });
    return pressed;
  };
  return h("details", h("summary", t("connect.programs")), h("div.stack.tight", h("p.hint", t("connect.programsText")),
    h("div.row", Object.entries(PROGRAMS).map(one)), place));
}

/** @param {RecipeFields} recipe */
function recipeCard({ name, filename, content, steps, actions }) {
  const file = filename && h("a.button", { href: `data:text/plain;charset=utf-8,${encodeURIComponent(content)}`, download: filename, text: t("connect.save", { name: filename }) });
  return h("section.stack.tight", h("h3", name), file ? h("div.row", file) : content && codeRow(content, name),
    steps.length > 0 && h("ol.recipe", steps.map((step) => h("li", step))),
    actions.map(({ title, values }) => h("figure.action", h("figcaption", title), h("dl", values.map(({ name: field, value, typed }) =>
      h("div.row", h("dt", field), h("dd.grow", { text: value, class: typed ? "typed" : "" }),
        typed && glyphButton("copy", `${t("shell.copy")}: ${field}`, () => copyText(value))))))));
}

function letIn() {
  const port = location.port || "80";
  const command = `SNAPLORE_BIND=0.0.0.0:${port} make run`;
  return [h("p", t("connect.alone")), codeRow(command, t("connect.command")),
    h("p.hint", `${t("connect.guarded")} ${t("connect.service")}`)];
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
  const toggle = button(t("connect.show"), { click: flip, "aria-pressed": "false", "aria-label": `${t("connect.show")}: ${t("connect.key")}` });
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
  return h("div.row.code-row", h("code.settings-code.grow", { text }), glyphButton("copy", `${t("shell.copy")}: ${name}`, () => copyText(text)));
}

/** @param {string} host */
export function isLoopback(host) {
  return host === "localhost" || host === "[::1]" || host.startsWith("127.");
}
