// The later part of the page: everything that the library does not need at its start. What the first part uses of it is named here.

import { agenda, comingUp, photoAgenda } from "./agenda.js";
import { chat } from "./chat.js";
import { expiring, expiringNotice } from "./expiring.js";
import { firstSteps, keepingQuestion } from "./first-run.js";
import { heldBackNotice, notSensitive } from "./held-back.js";
import { memories } from "./memories.js";
import { notes } from "./notes.js";
import { ownWords } from "./own-words.js";
import { related } from "./related.js";
import { completeSearch } from "./search-completion.js";
import { savedSearches } from "./searches.js";
import { selectable } from "./selection.js";
import { settings } from "./settings.js";
import { stackStrip } from "./stacks.js";
import { openTrashed, trash, trashedDetails } from "./trash.js";

/** @type {(container: HTMLElement, address: Address) => Ending | Ending[] | void} */
const showNotes = (container, address) => (address.id === "memories" ? memories : notes).show(container, address);

export const provided = {
  /** By the name in their address. */
  views: { agenda, chat, expiring, notes: { show: showNotes }, settings, trash },
  comingUp,
  completeSearch,
  expiringNotice,
  firstSteps,
  heldBackNotice,
  keepingQuestion,
  notSensitive,
  openTrashed,
  ownWords,
  photoAgenda,
  related,
  savedSearches,
  selectable,
  stackStrip,
  trashedDetails,
};
