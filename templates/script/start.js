// The last file: everything is registered, the page starts.

renderAll();
begin();
