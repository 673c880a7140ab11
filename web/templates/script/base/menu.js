// A small menu at a button or at a place of a picture. One is open at a time.

import { add, fill, h, icon, listen } from "./dom.js";

/** @typedef {{ label: string, glyph: import("./dom.js").Glyph, run?: () => unknown, href?: string, kind?: string }} MenuItem */

const MENU_EDGE = 8; // px between the menu and the edge of the screen

/** @type {(() => void) | null} */
let shutMenu = null;

/** Close the menu that is open. Returns whether there was one. */
export function closeMenu() {
  const wasOpen = shutMenu !== null;
  shutMenu?.();
  return wasOpen;
}

/**
 * Open a menu below `anchor`, within `container`. Arrow keys move in it; Escape, Tab and a press elsewhere close it, and the focus goes
 * to `back`.
 *
 * @param {HTMLElement} container
 * @param {HTMLElement} anchor
 * @param {{ label: string, head?: string, items: MenuItem[], back: HTMLElement }} options
 */
export function openMenu(container, anchor, { label, head, items, back }) {
  closeMenu();
  const rows = items.map(({ label: text, glyph, run, href, kind = "" }) => {
    const choose = () => {
      shut();
      back.focus({ preventScroll: true });
      run?.();
    };
    const props = { class: kind, role: "menuitem", tabindex: "-1", on: { click: choose } };
    const content = [icon(glyph), h("span", text)];
    if (href) {
      return h("a.menu-item", { ...props, href, rel: "noopener noreferrer", target: /^https?:/i.test(href) ? "_blank" : null }, content);
    }
    return h("button.menu-item", { type: "button", ...props }, content);
  });
  const node = h("div.menu", { role: "menu", label });
  fill(node, head && h("p.menu-head", { text: head, role: "presentation" }), rows);
  const shut = () => {
    shutMenu = null;
    unlisten();
    node.remove();
    anchor.removeAttribute("aria-expanded");
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const at = rows.indexOf(/** @type {any} */ (document.activeElement));
    /** @type {Record<string, number>} */
    const places = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 };
    event.stopPropagation(); // keys in the menu are not the viewer's
    if (event.key in places) {
      event.preventDefault();
      rows[(places[event.key] + rows.length) % rows.length].focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      shut();
      back.focus({ preventScroll: true });
    }
  };
  node.addEventListener("keydown", onKey);
  const elsewhere = (/** @type {Event} */ event) =>
    !node.contains(/** @type {Node} */ (event.target)) && !anchor.contains(/** @type {Node} */ (event.target)) && shut();
  const unlisten = listen(window, { resize: shut, pointerdown: elsewhere });
  shutMenu = shut;
  anchor.setAttribute("aria-expanded", "true");
  add(container, node);
  const at = anchor.getBoundingClientRect();
  const own = node.getBoundingClientRect();
  const left = Math.max(MENU_EDGE, Math.min(at.left, innerWidth - own.width - MENU_EDGE));
  const below = at.bottom + 6;
  const top = below + own.height + MENU_EDGE > innerHeight ? Math.max(MENU_EDGE, at.top - own.height - 6) : below;
  Object.assign(node.style, { left: `${left}px`, top: `${top}px` });
  rows[0].focus({ preventScroll: true });
}
