// The last file: the views, in the order of the navigation, and the start.

route("home", home);
route("photos", photos);
route("chat", chat);
route("notes", notes);
route("memories", memories);
route("settings", settings);
renderAll();
begin();
