// The later part of the page: everything that the library does not need at its start. What the first part uses of it is named here.

import { searchAnswers } from "./library/answers.js";
import { agenda, comingUp, photoAgenda } from "./library/agenda.js";
import { chat } from "./chat/chat.js";
import { openCommands, showKeys } from "./base/commands.js";
import { pickFolder, uploadEntries } from "./base/folders.js";
import { duplicates } from "./library/duplicates.js";
import { expiring, expiringNotice } from "./library/expiring.js";
import { firstSteps, keepingQuestion } from "./library/first-run.js";
import { heldBackNotice, notSensitive } from "./library/held-back.js";
import { memories } from "./chat/memories.js";
import { notes } from "./chat/notes.js";
import { factCard } from "./viewer/fact.js";
import { ownWords } from "./viewer/own-words.js";
import { recordCards } from "./viewer/records.js";
import { recordShelves, recordTables } from "./library/records.js";
import { related } from "./library/related.js";
import { completeSearch } from "./library/search-completion.js";
import { savedSearches } from "./library/searches.js";
import { selectable } from "./library/selection.js";
import { settings } from "./settings/settings.js";
import { openSharing } from "./viewer/sharing.js";
import { stackStrip } from "./viewer/stacks.js";
import { threads } from "./library/threads.js";
import { threadStrip } from "./viewer/threads.js";
import { openTrashed, trash, trashedDetails } from "./library/trash.js";

/** @type {(container: HTMLElement, address: Address) => Ending | Ending[] | void} */
const showNotes = (container, address) => (address.id === "memories" ? memories : notes).show(container, address);

export const provided = {
  /** By the name in their address. */
  views: { agenda, chat, duplicates, expiring, notes: { show: showNotes }, records: recordTables, settings, threads, trash },
  comingUp,
  completeSearch,
  expiringNotice,
  factCard,
  firstSteps,
  heldBackNotice,
  keepingQuestion,
  notSensitive,
  openCommands,
  openSharing,
  openTrashed,
  ownWords,
  photoAgenda,
  pickFolder,
  recordShelves,
  recordCards,
  related,
  searchAnswers,
  savedSearches,
  selectable,
  showKeys,
  stackStrip,
  threadStrip,
  trashedDetails,
  uploadEntries,
};
