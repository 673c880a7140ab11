// Zooming and moving a picture on its stage: the geometry, and the one state machine that turns the events of mouse, pen and fingers
// into it. It knows neither photos nor the viewer. Points and areas are in CSS pixels of the stage.

/**
 * @typedef {{ x: number, y: number }} Point
 * @typedef {{ width: number, height: number }} Size
 * @typedef {{ left: number, top: number, right: number, bottom: number }} Area the part of the stage that nothing covers
 */

const TALL = 2.6; // height / width: no phone's screen is as tall; a scrolled page or chat is
const TALL_WIDTH = 720; // CSS px: a phone's text in a wider column is too large to read
const MOST_ZOOM = 8; // screen pixels for a pixel of the picture
export const ZOOM_STEP = 1.5;

/**
 * The place and scale of a picture. A picture that is smaller than the area is in its middle; a larger one always covers it.
 *
 * @param {() => Area} area
 * @param {() => unknown} moved
 */
export function zoomable(area, moved) {
  /** @type {Size} */
  let size = { width: 0, height: 0 };
  let scale = 1; // CSS px for a pixel of the picture
  let x = 0; // of the picture's corner
  let y = 0;
  let isHome = true; // as it was opened: it then follows the size of the stage

  const isTall = () => size.height > TALL * size.width;
  const whole = () => {
    const { left, top, right, bottom } = area();
    return Math.min((right - left) / size.width, (bottom - top) / size.height, 1);
  };
  const homeScale = () => (isTall() ? Math.min((area().right - area().left) / size.width, TALL_WIDTH / size.width, 1) : whole());
  const actual = () => 1 / devicePixelRatio;
  const least = () => Math.min(whole(), actual());
  const most = () => Math.max(MOST_ZOOM * actual(), 2 * homeScale());

  function keepInside() {
    const { left, top, right, bottom } = area();
    const place = (/** @type {number} */ at, /** @type {number} */ length, /** @type {number} */ from, /** @type {number} */ to) =>
      length <= to - from ? from + (to - from - length) / 2 : Math.min(from, Math.max(to - length, at));
    x = place(x, size.width * scale, left, right);
    y = place(y, size.height * scale, top, bottom);
    moved();
  }

  function home() {
    isHome = true;
    scale = homeScale();
    [x, y] = [area().left, area().top]; // a tall picture begins at its top
    keepInside();
  }

  /**
   * Change the scale; `point` stays over the same part of the picture.
   *
   * @param {number} wanted
   * @param {Point} [point]
   */
  function zoomTo(wanted, point = middle()) {
    const next = Math.min(most(), Math.max(least(), wanted));
    x = point.x - ((point.x - x) * next) / scale;
    y = point.y - ((point.y - y) * next) / scale;
    scale = next;
    isHome = false;
    keepInside();
  }

  function middle() {
    const { left, top, right, bottom } = area();
    return { x: (left + right) / 2, y: (top + bottom) / 2 };
  }

  return {
    home, zoomTo,
    get scale() { return scale; },
    get x() { return x; },
    get y() { return y; },
    get size() { return size; },
    get isTall() { return isTall(); },
    /** Whether it has the scale at which it is opened. */
    isFitted: () => Math.abs(scale / homeScale() - 1) < 0.001,
    /** @param {Point} [point] */
    fit: (point) => (isTall() && point ? zoomTo(homeScale(), point) : home()),
    actual,
    /** @param {Size} next the picture's, in its own pixels */
    resize(next) {
      if (next.width === size.width && next.height === size.height) return;
      size = next;
      home();
    },
    /** The stage or what covers it has changed. */
    refit: () => (isHome ? home() : zoomTo(scale)),
    /**
     * @param {number} dx
     * @param {number} dy
     */
    move(dx, dy) {
      x += dx;
      y += dy;
      if (dy && isTall()) isHome = false; // a scrolled picture keeps its place
      keepInside();
    },
    /**
     * Whether it can still be moved to the right or left (`dx`), or down or up (`dy`).
     *
     * @param {number} dx
     * @param {number} dy
     */
    canMove(dx, dy) {
      const { left, top, right, bottom } = area();
      const slack = 0.5;
      if (dx > 0) return x < left - slack;
      if (dx < 0) return x + size.width * scale > right + slack;
      return dy > 0 ? y < top - slack : dy < 0 && y + size.height * scale > bottom + slack;
    },
    /** Whether it is larger than the area. */
    isLarger() {
      const { left, top, right, bottom } = area();
      return size.width * scale > right - left + 1 || size.height * scale > bottom - top + 1;
    },
    /**
     * Make this part of the picture (in fractions) visible. Nothing moves where it is.
     *
     * @param {Box} box
     */
    reveal(box) {
      const { top, bottom } = area();
      const from = y + box.top * size.height * scale;
      const to = from + box.height * size.height * scale;
      if (from < top || to > bottom) this.move(0, (top + bottom) / 2 - (from + to) / 2);
    },
  };
}

/** @typedef {ReturnType<typeof zoomable>} Zoomable */

const SLOP = { mouse: 3, touch: 9 }; // px that a press may move before it is a drag
const DOUBLE_MS = 300;
const DOUBLE_PX = 32;
const LONG_MS = 450; // from then on a press of a finger belongs to the browser's selection of text
const OWN_MS = 750; // where the browser has selected nothing by then, the page does
const FLICK = 0.45; // px in a ms: faster than this, a short swipe counts
const FLICK_MS = 80; // the last movements, by which the speed is measured

/**
 * What the gestures do. Speeds are in px in a ms.
 *
 * @typedef {object} Hooks
 * @property {() => Zoomable} picture the one on the stage
 * @property {(event: PointerEvent) => boolean} isText whether text is under the mouse
 * @property {(phase: "start" | "move" | "end", event: PointerEvent, clicks: number) => unknown} select text: by the mouse, and by a
 *   finger where the browser does not
 * @property {(event: PointerEvent) => boolean} press a press that did not move; returns whether it was for something there
 * @property {(event: PointerEvent) => unknown} tap a press that did not move, and to which no second one came
 * @property {(dx: number) => unknown} swipe sideways, so far
 * @property {(dx: number, isFlick: boolean) => unknown} swiped
 * @property {(dy: number) => unknown} pull up or down a picture that cannot move that way, so far
 * @property {(dy: number, isFlick: boolean) => unknown} pulled
 */

/**
 * Listen to all gestures on `stage`. At any time it is in one state:
 *
 * - idle: nothing is pressed
 * - press: one pointer is down and has not moved yet
 * - text: the pointer selects text
 * - pan: the picture follows the pointer
 * - swipe, pull: the whole slide follows the finger
 * - pinch: two fingers
 * - ignore: the rest of a gesture that is over, or the browser's own
 *
 * @param {HTMLElement} stage
 * @param {Hooks} hooks
 */
export function gestures(stage, hooks) {
  /** @type {"idle" | "press" | "text" | "pan" | "swipe" | "pull" | "pinch" | "ignore"} */
  let state = "idle";
  /** @type {Map<number, Point>} */
  const pointers = new Map();
  /** @type {Point} */
  let start = { x: 0, y: 0 };
  let startTime = 0;
  /** @type {{ x: number, y: number, time: number }[]} */
  let trail = [];
  /** @type {{ x: number, y: number, time: number, count: number }} */
  let last = { x: 0, y: 0, time: -Infinity, count: 0 }; // the last tap
  let tapTimer = 0;
  let longTimer = 0;

  const local = (/** @type {MouseEvent} */ event) => {
    const { left, top } = stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  const distance = (/** @type {Point} */ one, /** @type {Point} */ other) => Math.hypot(one.x - other.x, one.y - other.y);
  const isNear = (/** @type {Point} */ point) => distance(point, last) < DOUBLE_PX;
  const capture = (/** @type {PointerEvent} */ event) => {
    try {
      stage.setPointerCapture(event.pointerId);
    } catch { /* the pointer is already up */ }
  };

  /** @param {PointerEvent} event */
  function down(event) {
    const point = local(event);
    if (event.pointerType === "mouse" && event.button !== 0) return;
    clearTimeout(tapTimer);
    clearTimeout(longTimer);
    pointers.set(event.pointerId, point);
    if (pointers.size === 2) {
      if (state === "swipe" || state === "pull") finish(0, false);
      state = "pinch";
      for (const id of pointers.keys()) capture(/** @type {PointerEvent} */ ({ pointerId: id }));
      return;
    }
    if (pointers.size > 2) return;
    [start, startTime, trail] = [point, event.timeStamp, []];
    state = "press";
    if (!hooks.isText(event)) return;
    if (event.pointerType !== "mouse") longTimer = setTimeout(() => selectByHand(event), OWN_MS);
    else {
      const again = event.timeStamp - last.time < DOUBLE_MS * 1.5 && isNear(point);
      last = { ...point, time: event.timeStamp, count: again ? last.count + 1 : 1 };
      state = "text";
      capture(event);
      hooks.select("start", event, last.count);
    }
  }

  /** @param {PointerEvent} event the press, which has not moved since */
  function selectByHand(event) {
    if (state !== "press" || !getSelection()?.isCollapsed) return; // the browser's own selection has handles, and is better
    state = "text";
    last = { ...start, time: -Infinity, count: 2 }; // a word
    capture(event);
    hooks.select("start", event, last.count);
  }

  /** @param {PointerEvent} event */
  function move(event) {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const point = local(event);
    pointers.set(event.pointerId, point);
    const picture = hooks.picture();
    if (state === "press") decide(event, point);
    else if (state === "text") hooks.select("move", event, last.count);
    else if (state === "pan") picture.move(point.x - before.x, point.y - before.y);
    else if (state === "swipe") hooks.swipe(point.x - start.x);
    else if (state === "pull") hooks.pull(point.y - start.y);
    else if (state === "pinch") {
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (!other) return;
      const [was, is] = [distance(before, other), distance(point, other)];
      picture.move((point.x - before.x) / 2, (point.y - before.y) / 2);
      if (was > 0) picture.zoomTo((picture.scale * is) / was, { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 });
    }
    trail = [...trail.filter(({ time }) => event.timeStamp - time < FLICK_MS), { ...point, time: event.timeStamp }];
  }

  /**
   * What a press that moves becomes.
   *
   * @param {PointerEvent} event
   * @param {Point} point
   */
  function decide(event, point) {
    const isMouse = event.pointerType === "mouse";
    const [dx, dy] = [point.x - start.x, point.y - start.y];
    if (Math.hypot(dx, dy) < (isMouse ? SLOP.mouse : SLOP.touch)) return;
    const picture = hooks.picture();
    if (isMouse) state = picture.isLarger() ? "pan" : "ignore";
    else if (event.timeStamp - startTime > LONG_MS) state = "ignore";
    else if (Math.abs(dx) > Math.abs(dy)) state = picture.canMove(dx, 0) ? "pan" : "swipe";
    else state = picture.canMove(0, dy) || !picture.isFitted() ? "pan" : "pull";
    if (state === "ignore") return;
    capture(event);
    if (state === "pan") picture.move(dx, dy);
    // The picture starts where it is, and not with a jump of the slop.
    else start = point;
  }

  /** @param {PointerEvent} event */
  function up(event) {
    if (!pointers.delete(event.pointerId)) return;
    clearTimeout(longTimer);
    const point = local(event);
    if (state === "pinch") {
      state = pointers.size === 1 ? "pan" : state;
      if (pointers.size) return;
    }
    if (pointers.size) return;
    if (state === "press") pressed(event, point);
    else if (state === "text") {
      hooks.select("end", event, last.count);
      if (distance(point, start) >= SLOP.mouse) last.time = -Infinity; // a drag is no click that a second one could follow
      else if (last.count === 1) hooks.press(event);
    } else if (state === "swipe" || state === "pull") {
      const axis = state === "swipe" ? "x" : "y";
      const first = trail[0] ?? { ...point, time: event.timeStamp };
      const speed = (point[axis] - first[axis]) / Math.max(1, event.timeStamp - first.time);
      const gone = point[axis] - start[axis];
      finish(gone, Math.abs(speed) > FLICK && Math.sign(speed) === Math.sign(gone));
    }
    state = "idle";
  }

  /**
   * @param {PointerEvent} event
   * @param {Point} point
   */
  function pressed(event, point) {
    if (event.pointerType !== "mouse" && event.timeStamp - startTime > LONG_MS) return;
    if (hooks.press(event)) return;
    if (event.timeStamp - last.time < DOUBLE_MS && isNear(point)) {
      last.time = -Infinity;
      const picture = hooks.picture();
      if (picture.isFitted()) picture.zoomTo(Math.max(picture.scale * 2.5, picture.actual()), point);
      else picture.fit(point);
      return;
    }
    last = { ...point, time: event.timeStamp, count: 1 };
    if (event.pointerType === "mouse") hooks.tap(event);
    else tapTimer = setTimeout(() => hooks.tap(event), DOUBLE_MS);
  }

  /**
   * @param {number} gone
   * @param {boolean} isFlick
   */
  function finish(gone, isFlick) {
    if (state === "swipe") hooks.swiped(gone, isFlick);
    else hooks.pulled(gone, isFlick);
  }

  /** @param {PointerEvent} event */
  function cancel(event) {
    if (!pointers.delete(event.pointerId) || pointers.size) return;
    clearTimeout(longTimer);
    if (state === "swipe" || state === "pull") finish(0, false);
    state = "idle";
  }

  /** @param {WheelEvent} event */
  function wheel(event) {
    event.preventDefault();
    const unit = [1, 16, 400][event.deltaMode] ?? 1;
    const picture = hooks.picture();
    const [dx, dy] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
    // A pinch on a touchpad arrives as a wheel with Ctrl, in small steps. A tall picture is scrolled like a page.
    if (event.ctrlKey || (!event.shiftKey && !picture.isTall)) {
      const power = Math.max(-0.25, Math.min(0.25, -event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.002)));
      picture.zoomTo(picture.scale * Math.exp(power), local(event));
    } else picture.move(-dx * unit, -dy * unit);
  }

  stage.addEventListener("mousedown", (event) => event.preventDefault()); // the browser's own dragging and selecting by the mouse
  // Otherwise Chromium takes the end of a drag for a fling of the page, and swallows the next tap to stop it.
  stage.addEventListener("touchmove", (event) => state !== "press" && state !== "ignore" && event.cancelable && event.preventDefault(), { passive: false });
  stage.addEventListener("pointerdown", down);
  stage.addEventListener("pointermove", move);
  stage.addEventListener("pointerup", up);
  stage.addEventListener("pointercancel", cancel);
  stage.addEventListener("wheel", wheel, { passive: false });
  return () => {
    clearTimeout(tapTimer);
    clearTimeout(longTimer);
  };
}
