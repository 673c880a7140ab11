// A tile grows into the picture on the stage when it is opened, and the picture shrinks back into its tile when it is closed.

export const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const FLIGHT = { duration: 200, easing: "cubic-bezier(.2, .8, .3, 1)" };

/**
 * Where the list beneath shows a photo: the whole picture, and the part of it that can be seen, in CSS pixels of the window; null where it
 * is not on the screen.
 *
 * @param {import("./viewer.js").Viewer} viewer
 */
function placeBeneath({ id, slides }) {
  const image = /** @type {HTMLImageElement | null} */ (document.querySelector(`#main [data-photo="${id}"] .picture[data-state="ready"]`));
  const { width, height } = slides.current().zoom.size;
  if (!image || !width) return null;
  const { left, top, width: across, height: down } = image.getBoundingClientRect();
  // A tile shows its picture from the top, cropped to fill it.
  const scale = Math.max(across / width, down / height);
  const whole = { left: left + (across - width * scale) / 2, top, width: width * scale, height: height * scale };
  const frame = /** @type {HTMLElement} */ (image.closest(".photo-card, .result-frame")).getBoundingClientRect();
  return frame.bottom > 0 && frame.top < innerHeight ? { image, whole, scale, frame } : null;
}

/**
 * The picture as it is in the list, on the stage.
 *
 * @param {NonNullable<ReturnType<typeof placeBeneath>>} place
 * @param {HTMLElement} track
 */
function smallState({ whole, scale, frame }, track) {
  const { left, top } = track.getBoundingClientRect();
  const cut = [
    (frame.top - whole.top) / whole.height, (whole.left + whole.width - frame.right) / whole.width,
    (whole.top + whole.height - frame.bottom) / whole.height, (frame.left - whole.left) / whole.width,
  ].map((share) => `${Math.max(0, share) * 100}%`);
  return { transform: `translate(${whole.left - left}px, ${whole.top - top}px) scale(${scale})`, clipPath: `inset(${cut.join(" ")})` };
}

/**
 * The picture of the tile under that on the stage, until that is there.
 *
 * @param {HTMLImageElement} image
 * @param {HTMLElement} canvas
 */
function lend(image, canvas) {
  const copy = document.createElement("canvas");
  [copy.className, copy.width, copy.height] = ["viewer-lent", image.naturalWidth, image.naturalHeight];
  copy.getContext("2d")?.drawImage(image, 0, 0);
  canvas.prepend(copy);
  canvas.querySelector("img")?.addEventListener("load", () => copy.remove(), { once: true });
}

/**
 * Grow the tile into the picture. Where there is none, or motion is unwanted, nothing moves.
 *
 * @param {import("./viewer.js").Viewer} viewer
 */
export function flyIn(viewer) {
  const place = CALM.matches ? null : placeBeneath(viewer);
  if (!place) return;
  const { node, track } = viewer.frame;
  const { canvas } = viewer.slides.current();
  lend(place.image, canvas);
  node.classList.add("flying");
  const { transform } = canvas.style;
  const flight = canvas.animate([smallState(place, track), { transform, clipPath: "inset(0)" }], FLIGHT);
  flight.onfinish = flight.oncancel = () => node.classList.remove("flying");
}

/**
 * Shrink the picture into its tile, from where it has been pulled to. Returns a promise of its end, or null where nothing moves.
 *
 * @param {import("./viewer.js").Viewer} viewer
 */
export function flyBack(viewer) {
  const place = CALM.matches ? null : placeBeneath(viewer);
  if (!place) return null;
  const { node, track } = viewer.frame;
  const { canvas } = viewer.slides.current();
  node.classList.add("flying", "leaving");
  const { transform } = canvas.style;
  const flight = canvas.animate([{ transform, clipPath: "inset(0)" }, smallState(place, track)], { ...FLIGHT, fill: "forwards" });
  return flight.finished.catch(() => {});
}
