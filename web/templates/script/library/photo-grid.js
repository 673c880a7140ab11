// A grid of screenshots that is a view of its own: the trash, and what will be deleted soon. It is the library's timeline without
// months, with a selection.

import { fail } from "../base/dialogs.js";
import { fill, h, listen } from "../base/dom.js";
import { sequenceOf } from "./library.js";
import { selectable } from "./selection.js";
import { failedState, skeleton } from "../base/shell.js";
import { photoCard, tileTools } from "./tile.js";
import { timeline } from "./timeline.js";
import { photoEvents } from "../base/upload.js";
import { openPhoto } from "../viewer/viewer.js";

/**
 * @param {(told: { changed: () => unknown, failed: (error: unknown) => unknown }) => import("./photo-list.js").PhotoList} makeList
 * @param {{ actions: import("./selection.js").Choice[], empty: () => Child, counted: (count: number) => unknown, trash?: boolean }} options
 */
export function photoGrid(makeList, { actions, empty, counted, trash = false }) {
  const body = h("div.library-body", skeleton(12, "tile"));
  const covered = () => 0;
  /** @type {unknown} */
  let problem = null;
  const drawn = () => {
    if (list.count === null) return;
    counted(list.count);
    if (!list.count) return fill(body, empty());
    if (!grid.node.isConnected) fill(body, grid.node);
    grid.changed();
  };
  const failed = (/** @type {unknown} */ error) => {
    if (list.count !== null) return fail(error);
    problem = error;
    fill(body, failedState(error, refresh));
  };
  const list = makeList({ changed: drawn, failed });
  const open = (/** @type {number} */ id) =>
    openPhoto(id, { trash, sequence: sequenceOf(list), closed: (last) => body.isConnected && grid.focus(last) });
  const grid = timeline(list, (photo, props) => photoCard(photo, { ...props, open }), covered, tileTools);
  const refresh = () => list.refresh(...grid.inView());
  const selection = selectable({
    node: grid.node,
    count: () => list.count ?? 0,
    placeOf: (id) => list.placeOf(id),
    at: (place) => list.at(place),
    between: (from, to, told) => list.between(from, to, told),
    focusPlace: grid.focusPlace,
    amend: (id, fields) => list.amend(id, fields),
    actions,
  });
  const unlisten = listen(photoEvents, {
    hidden: () => list.hide(),
    deleted: (event) => list.remove(event.detail),
    restored: refresh,
    many: refresh,
  });
  refresh();
  return {
    body, open, refresh,
    stop() {
      selection.stop();
      list.stop();
      grid.stop();
      unlisten();
    },
    failed: () => problem !== null,
  };
}
