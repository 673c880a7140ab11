// Creates elements. The whole page is built here, from text and never from markup, so what a screenshot, a model or a file name
// contains can only become text.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "selected", "indeterminate", "scrollTop"]);

/**
 * Create an element: `h("p.muted.small", { id: "x" }, "Words", other)`. The tag has its classes. Then come the properties, if any
 * (class, text, label for screen readers, on: {event: fn}, dataset, style: {name: value}, DOM properties, attributes) and the children.
 *
 * @template {string} Tag
 * @param {Tag} tag
 * @param {(Props | Child)[]} children
 * @returns {Made<Tag>}
 */
export function h(tag, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = /** @type {Made<Tag>} */ (document.createElement(name));
  if (classes.length) node.className = classes.join(" ");
  /** @type {Props} */
  const last = {};
  const props = /** @type {Props} */ (children[0]?.constructor === Object ? children.shift() : {});
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key === "label") node.ariaLabel = value;
    else if (key === "class") node.className += ` ${value}`;
    else if (key === "text") node.textContent = value;
    else if (key === "on") listen(node, value);
    else if (key === "dataset") Object.assign(node.dataset, value);
    else if (key === "style") for (const [property, css] of Object.entries(value)) node.style.setProperty(property, css);
    else if (PROPERTIES.has(key)) last[key] = value;
    else if (/^(aria|data)-/.test(key)) node.setAttribute(key, value);
    else if (value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  add(node, /** @type {Child[]} */ (children));
  Object.assign(node, last); // last, because the value of a select needs its options
  return node;
}

/**
 * Add listeners, as `{event: fn}`. Returns a function that removes them.
 *
 * @param {EventTarget} target
 * @param {Listeners} listeners
 */
export function listen(target, listeners) {
  for (const [event, fn] of Object.entries(listeners)) target.addEventListener(event, fn);
  return () => {
    for (const [event, fn] of Object.entries(listeners)) target.removeEventListener(event, fn);
  };
}

/**
 * Append nodes and texts. Lists are flattened; null, undefined and false are skipped.
 *
 * @template {Element | DocumentFragment} Parent
 * @param {Parent} node
 * @param {Child[]} children
 */
export function add(node, ...children) {
  addAll(node, children);
  return node;
}

/**
 * @param {Element | DocumentFragment} node
 * @param {Child[]} children
 */
function addAll(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) addAll(node, child); // not spread: the number of arguments of a call is limited
    else if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replace the children of a node.
 *
 * @template {Element} Parent
 * @param {Parent} node
 * @param {Child[]} children
 */
export function fill(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

const ICONS = {
  mark: "M5 9V5h4M19 9V5h-4M5 15v4h4M19 15v4h-4M12 10.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
  image: "M5 4h14a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM4 16l5-5 5 5 2-2 4 4M15 9h.01",
  chat: "M5 5h14a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1h-7l-5 4v-4H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1z",
  note: "M6 3h9l4 4v13a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM14 3v5h5M9 13h6M9 17h4",
  memory: "M7 3h10v18l-5-4-5 4z",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l4 4",
  upload: "M12 16V5M7 9l5-5 5 5M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3",
  download: "M12 4v11M7 11l5 5 5-5M4 17v2a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-2",
  send: "M4 12l16-8-5 17-4-7zM11 14l9-10",
  plus: "M12 5v14M5 12h14",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v5M14 11v5",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  check: "M5 12l5 5 9-10",
  copy: "M9 9h10v11H9zM5 15V4h10",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  refresh: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  close: "M6 6l12 12M18 6L6 18",
  attach: "M19 11l-7 7a4 4 0 0 1-6-6l8-8a3 3 0 0 1 4 4l-8 8a1 1 0 0 1-2-2l7-7",
  key: "M8 12a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM11 13l8-8M16 8l3 3M13 11l2 2",
  menu: "M4 7h16M4 12h16M4 17h16",
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  down: "M6 9l6 6 6-6",
  tool: "M14 6a4 4 0 0 1 5 5l-9 9-4-4 9-9M14 6l3-2M6 16l-2 4 4-2",
  calendar: "M5 6h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM4 10h16M8 4v4M16 4v4",
  clock: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM12 8v4l3 2",
  minus: "M5 12h14",
  share:
    "M18 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM6 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM18 22a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8.6 13.5l6.8 4M15.4 6.5l-6.8 4",
  info: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 11v5M12 8h.01",
  more: "M11.2 5a.8.8 0 1 0 1.6 0 .8.8 0 1 0-1.6 0zM11.2 12a.8.8 0 1 0 1.6 0 .8.8 0 1 0-1.6 0zM11.2 19a.8.8 0 1 0 1.6 0 .8.8 0 1 0-1.6 0z",
  text: "M4 8V5h16v3M12 5v14M9 19h6",
  pictures: "M8 4h11a1 1 0 0 1 1 1v11a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM7 14l4-4 4 4 2-2 3 3M4 8v11a1 1 0 0 0 1 1h11",
  marker: "M14 4l6 6-9 9H6l-2-2 1-4zM11 7l6 6M4 21h16",
  open: "M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5",
  mail: "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM3 8l9 6 9-6",
  phone: "M6 3h4l2 5-3 2a12 12 0 0 0 5 5l2-3 5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 4 5a2 2 0 0 1 2-2z",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  device: "M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2",
  folder: "M4 6h6l2 2h8v11H4z",
  star: "M12 4l2.4 5.1 5.6.7-4.1 3.9 1 5.6-4.9-2.7-4.9 2.7 1-5.6L4 9.8l5.6-.7z",
  tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
  stack: "M9 4h10a1 1 0 0 1 1 1v10M4 9h10a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V9z",
  restore: "M4 10a8 8 0 1 1 1 6M4 4v6h6",
  receipt: "M6 3h12v18l-2-1.5-2 1.5-2-1.5-2 1.5-2-1.5L6 21zM9 8h6M9 12h6",
  money: "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM12 9.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM6 9h.01M18 15h.01",
  parcel: "M4 8l8-4 8 4v8l-8 4-8-4zM4 8l8 4 8-4M12 12v8M8 6l8 4",
  trip: "M5 8h14a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1zM9 8V5a1 1 0 0 1 1-1h4a1 1 0 0 1 1 1v3M8 8v12M16 8v12",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  hidden: "M3 12c2-4 5-6 9-6s7 2 9 6c-2 4-5 6-9 6s-7-2-9-6zM12 9.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM4 20L20 4",
};

/** @typedef {keyof typeof ICONS} Glyph */

/**
 * An icon, hidden from screen readers: the text beside it or the label of its button names it.
 *
 * @param {Glyph} name
 */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  const path = document.createElementNS(space, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "glyph");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * A button. `label` names it where it has no text.
 *
 * @typedef {{ glyph?: Glyph, kind?: string, label?: string, click?: (event: Event) => unknown, [attribute: string]: any }} ButtonProps
 * @param {string} text
 * @param {ButtonProps} props
 */
export function button(text, { glyph, kind = "", label, click, ...props } = {}) {
  const kinds = `button ${kind}${text ? "" : " icon"}`;
  return h("button", { type: "button", class: kinds, label, title: label, on: click && { click }, ...props },
    glyph && icon(glyph), text && h("span", { text }));
}

let fields = 0;

/**
 * A control with its label above it and a hint below.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string | false} [hint]
 */
export function field(label, control, hint) {
  control.id ||= `field-${(fields += 1)}`;
  const help = hint && h("p.hint", { id: `${control.id}-hint`, text: hint });
  if (help) control.setAttribute("aria-describedby", help.id);
  return h("div.field", h("label", { for: control.id, text: label }), control, help);
}

/**
 * A select. `options` is a list of [value, text].
 *
 * @param {string[][]} options
 * @param {string} value
 * @param {Props} props
 */
export function choice(options, value, props = {}) {
  return h("select", { ...props, value }, options.map(([key, text]) => h("option", { value: key, text })));
}
