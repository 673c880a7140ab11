// The gestures on a stage: the one state machine that turns the events of mouse, pen and fingers into movements of a picture. It knows
// neither photos nor the viewer. Points are in CSS pixels of the stage.

/** @typedef {import("./zoom.js").Point} Point */

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
 * @property {() => import("./zoom.js").Zoomable} picture the one on the stage
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

const distance = (/** @type {Point} */ one, /** @type {Point} */ other) => Math.hypot(one.x - other.x, one.y - other.y);

/**
 * The gestures on one stage. At any time it is in one state:
 *
 * - idle: nothing is pressed
 * - press: one pointer is down and has not moved yet
 * - text: the pointer selects text
 * - pan: the picture follows the pointer
 * - swipe, pull: the whole slide follows the finger
 * - pinch: two fingers
 * - ignore: the rest of a gesture that is over, or the browser's own
 */
export class Gestures {
  #stage;
  #hooks;
  /** @type {"idle" | "press" | "text" | "pan" | "swipe" | "pull" | "pinch" | "ignore"} */
  #state = "idle";
  /** @type {Map<number, Point>} */
  #pointers = new Map();
  /** @type {Point} */
  #start = { x: 0, y: 0 };
  #startTime = 0;
  /** @type {{ x: number, y: number, time: number }[]} */
  #trail = [];
  #last = { x: 0, y: 0, time: -Infinity, count: 0 }; // the last tap
  #tapTimer = 0;
  #longTimer = 0;

  /**
   * @param {HTMLElement} stage
   * @param {Hooks} hooks
   */
  constructor(stage, hooks) {
    this.#stage = stage;
    this.#hooks = hooks;
    stage.addEventListener("mousedown", (event) => event.preventDefault()); // the browser's own dragging and selecting by the mouse
    // Otherwise Chromium takes the end of a drag for a fling of the page, and swallows the next tap to stop it.
    stage.addEventListener(
      "touchmove",
      (event) => this.#state !== "press" && this.#state !== "ignore" && event.cancelable && event.preventDefault(),
      { passive: false },
    );
    stage.addEventListener("pointerdown", (event) => this.#down(event));
    stage.addEventListener("pointermove", (event) => this.#move(event));
    stage.addEventListener("pointerup", (event) => this.#up(event));
    stage.addEventListener("pointercancel", (event) => this.#cancel(event));
    stage.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  end() {
    clearTimeout(this.#tapTimer);
    clearTimeout(this.#longTimer);
  }

  /** @param {MouseEvent} event */
  #local(event) {
    const { left, top } = this.#stage.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  /** @param {number} pointerId */
  #capture(pointerId) {
    try {
      this.#stage.setPointerCapture(pointerId);
    } catch { /* the pointer is already up */ }
  }

  /** @param {Point} point */
  #isNear(point) {
    return distance(point, this.#last) < DOUBLE_PX;
  }

  /** @param {PointerEvent} event */
  #down(event) {
    const point = this.#local(event);
    if (event.pointerType === "mouse" && event.button !== 0) return;
    clearTimeout(this.#tapTimer);
    clearTimeout(this.#longTimer);
    this.#pointers.set(event.pointerId, point);
    if (this.#pointers.size === 2) {
      if (this.#state === "swipe" || this.#state === "pull") this.#finish(0, false);
      this.#state = "pinch";
      for (const id of this.#pointers.keys()) this.#capture(id);
      return;
    }
    if (this.#pointers.size > 2) return;
    [this.#start, this.#startTime, this.#trail] = [point, event.timeStamp, []];
    this.#state = "press";
    if (!this.#hooks.isText(event)) return;
    if (event.pointerType !== "mouse") this.#longTimer = setTimeout(() => this.#selectByHand(event), OWN_MS);
    else {
      const again = event.timeStamp - this.#last.time < DOUBLE_MS * 1.5 && this.#isNear(point);
      this.#last = { ...point, time: event.timeStamp, count: again ? this.#last.count + 1 : 1 };
      this.#state = "text";
      this.#capture(event.pointerId);
      this.#hooks.select("start", event, this.#last.count);
    }
  }

  /** @param {PointerEvent} event the press, which has not moved since */
  #selectByHand(event) {
    if (this.#state !== "press" || !getSelection()?.isCollapsed) return; // the browser's own selection has handles, and is better
    this.#state = "text";
    this.#last = { ...this.#start, time: -Infinity, count: 2 }; // a word
    this.#capture(event.pointerId);
    this.#hooks.select("start", event, this.#last.count);
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) return;
    const point = this.#local(event);
    this.#pointers.set(event.pointerId, point);
    const picture = this.#hooks.picture();
    if (this.#state === "press") this.#decide(event, point);
    else if (this.#state === "text") this.#hooks.select("move", event, this.#last.count);
    else if (this.#state === "pan") picture.move(point.x - before.x, point.y - before.y);
    else if (this.#state === "swipe") this.#hooks.swipe(point.x - this.#start.x);
    else if (this.#state === "pull") this.#hooks.pull(point.y - this.#start.y);
    else if (this.#state === "pinch") {
      const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1];
      if (!other) return;
      const [was, is] = [distance(before, other), distance(point, other)];
      picture.move((point.x - before.x) / 2, (point.y - before.y) / 2);
      if (was > 0) picture.zoomTo((picture.scale * is) / was, { x: (point.x + other.x) / 2, y: (point.y + other.y) / 2 });
    }
    this.#trail = [...this.#trail.filter(({ time }) => event.timeStamp - time < FLICK_MS), { ...point, time: event.timeStamp }];
  }

  /**
   * What a press that moves becomes.
   *
   * @param {PointerEvent} event
   * @param {Point} point
   */
  #decide(event, point) {
    const isMouse = event.pointerType === "mouse";
    const [dx, dy] = [point.x - this.#start.x, point.y - this.#start.y];
    if (Math.hypot(dx, dy) < (isMouse ? SLOP.mouse : SLOP.touch)) return;
    const picture = this.#hooks.picture();
    if (isMouse) this.#state = picture.isLarger() ? "pan" : "ignore";
    else if (event.timeStamp - this.#startTime > LONG_MS) this.#state = "ignore";
    else if (Math.abs(dx) > Math.abs(dy)) this.#state = picture.canMove(dx, 0) ? "pan" : "swipe";
    else this.#state = picture.canMove(0, dy) || !picture.isFitted() ? "pan" : "pull";
    if (this.#state === "ignore") return;
    this.#capture(event.pointerId);
    if (this.#state === "pan") picture.move(dx, dy);
    // The picture starts where it is, and not with a jump of the slop.
    else this.#start = point;
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (!this.#pointers.delete(event.pointerId)) return;
    clearTimeout(this.#longTimer);
    const point = this.#local(event);
    if (this.#state === "pinch") {
      this.#state = this.#pointers.size === 1 ? "pan" : this.#state;
      if (this.#pointers.size) return;
    }
    if (this.#pointers.size) return;
    if (this.#state === "press") this.#pressed(event, point);
    else if (this.#state === "text") {
      this.#hooks.select("end", event, this.#last.count);
      if (distance(point, this.#start) >= SLOP.mouse) this.#last.time = -Infinity; // a drag is no click that a second one could follow
      else if (this.#last.count === 1) this.#hooks.press(event);
    } else if (this.#state === "swipe" || this.#state === "pull") {
      const axis = this.#state === "swipe" ? "x" : "y";
      const first = this.#trail[0] ?? { ...point, time: event.timeStamp };
      const speed = (point[axis] - first[axis]) / Math.max(1, event.timeStamp - first.time);
      const gone = point[axis] - this.#start[axis];
      this.#finish(gone, Math.abs(speed) > FLICK && Math.sign(speed) === Math.sign(gone));
    }
    this.#state = "idle";
  }

  /**
   * @param {PointerEvent} event
   * @param {Point} point
   */
  #pressed(event, point) {
    if (event.pointerType !== "mouse" && event.timeStamp - this.#startTime > LONG_MS) return;
    if (this.#hooks.press(event)) return;
    if (event.timeStamp - this.#last.time < DOUBLE_MS && this.#isNear(point)) {
      this.#last.time = -Infinity;
      const picture = this.#hooks.picture();
      if (picture.isFitted()) picture.zoomTo(Math.max(picture.scale * 2.5, picture.actual()), point);
      else picture.fit(point);
      return;
    }
    this.#last = { ...point, time: event.timeStamp, count: 1 };
    if (event.pointerType === "mouse") this.#hooks.tap(event);
    else this.#tapTimer = setTimeout(() => this.#hooks.tap(event), DOUBLE_MS);
  }

  /**
   * @param {number} gone
   * @param {boolean} isFlick
   */
  #finish(gone, isFlick) {
    if (this.#state === "swipe") this.#hooks.swiped(gone, isFlick);
    else this.#hooks.pulled(gone, isFlick);
  }

  /** @param {PointerEvent} event */
  #cancel(event) {
    if (!this.#pointers.delete(event.pointerId) || this.#pointers.size) return;
    clearTimeout(this.#longTimer);
    if (this.#state === "swipe" || this.#state === "pull") this.#finish(0, false);
    this.#state = "idle";
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    event.preventDefault();
    const unit = [1, 16, 400][event.deltaMode] ?? 1;
    const picture = this.#hooks.picture();
    const [dx, dy] = event.shiftKey ? [event.deltaY, event.deltaX] : [event.deltaX, event.deltaY];
    // A pinch on a touchpad arrives as a wheel with Ctrl, in small steps. A tall picture is scrolled like a page.
    if (event.ctrlKey || (!event.shiftKey && !picture.isTall)) {
      const power = Math.max(-0.25, Math.min(0.25, -event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.002)));
      picture.zoomTo(picture.scale * Math.exp(power), this.#local(event));
    } else picture.move(-dx * unit, -dy * unit);
  }
}
