// Zooming and moving a picture on its stage: the geometry. It knows neither photos nor the viewer. Points and areas are in CSS pixels of
// the stage.

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
