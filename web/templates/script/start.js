// The entry: registers the views in the order of the navigation, and starts the page.

import { chat } from "./chat.js";
import { home } from "./home.js";
import { memories } from "./memories.js";
import { notes } from "./notes.js";
import { photos } from "./photos.js";
import { settings } from "./settings.js";
import { renderAll, route } from "./shell.js";
import { begin } from "./signin.js";

route("home", home);
route("photos", photos);
route("chat", chat);
route("notes", notes);
route("memories", memories);
route("settings", settings);
renderAll();
begin();
