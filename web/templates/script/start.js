// The entry: registers the views in the order of the navigation, and starts the page.

import { library, photoCover } from "./library/library.js";
import { laterView, laterWhenIdle, withLater } from "./base/parts.js";
import { cover, renderAll, route } from "./base/shell.js";
import { begin } from "./base/signin.js";
import { startOutbox } from "./base/outbox.js";
import { folders, tell } from "./base/upload.js";

route("library", library);
route("chat", laterView("chat", { title: "chat.title", icon: "chat" }));
route("agenda", laterView("agenda", { title: "agenda.title", icon: "calendar" }));
route("notes", laterView("notes", { title: "notes.title", icon: "note" }));
route("settings", laterView("settings", { title: "settings.title", icon: "settings" }));
route("trash", laterView("trash", { title: "trash.title", icon: "trash", within: "library" }));
route("records", laterView("records", { title: "tables.title", icon: "receipt", within: "library" }));
route("threads", laterView("threads", { title: "threads.title", icon: "folder", within: "library" }));
route("duplicates", laterView("duplicates", { title: "duplicates.title", icon: "stack", within: "library" }));
route("expiring", laterView("expiring", { title: "expiring.title", icon: "clock", within: "library" }));
cover("photo", photoCover);
cover("trashed", { beneath: "trash", isBound: true, show: (address) => withLater(({ openTrashed }) => openTrashed(address)) });
folders.take = (entries) => withLater(({ uploadEntries }) => uploadEntries(entries));
folders.pick = () => withLater(({ pickFolder }) => pickFolder());
renderAll();
startOutbox((id) => tell("added", id));
begin();
laterWhenIdle();
