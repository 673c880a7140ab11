// Throwing a screenshot away: it goes to the trash, from where it can be brought back for 30 days, here at once by "Undo".

import { api } from "./api.js";
import { fail, toast } from "./dialogs.js";
import { t } from "./texts.js";
import { tell } from "./upload.js";

const UNDO_SECONDS = 8;

/**
 * Photos that no list shows any more, while the service has not answered yet.
 *
 * @type {Set<number>}
 */
export const hiddenPhotos = new Set();

/**
 * Hide a photo at once, and move it to the trash. Where that fails, it is shown again.
 *
 * @param {number} id
 */
export function trashPhoto(id) {
  if (hiddenPhotos.has(id)) return;
  hiddenPhotos.add(id);
  tell("hidden", id);
  const isThere = move(id);
  const undo = async () => {
    if (!(await isThere)) return;
    try {
      await api.post(`/api/photos/${id}/restore`);
      tell("restored", id);
    } catch (error) {
      fail(error);
    }
  };
  toast(t("deletion.trashed"), { seconds: UNDO_SECONDS, action: { label: t("shell.undo"), run: undo } });
}

/** @param {number} id */
async function move(id) {
  try {
    await api.post(`/api/photos/${id}/trash`, undefined, { keepalive: true });
  } catch (error) {
    if (error.status !== 404) {
      hiddenPhotos.delete(id);
      tell("restored", id);
      fail(error);
      return false;
    }
  }
  tell("deleted", id);
  hiddenPhotos.delete(id);
  return true;
}
