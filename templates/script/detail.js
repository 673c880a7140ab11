// One screenshot: its tile, and the detail over the page.

/** The tile of a photo (a list item): opens the detail. */
function photoCard(photo) {
  return h("button", { type: "button", class: "photo-card", on: { click: () => openPhoto(photo.id) } },
    picture(`/api/photos/${photo.id}/thumbnail`, photo.summary || photo.filename || ""));
}

function openPhoto(id) {
  dialog({ title: `#${id}`, body: picture(`/api/photos/${id}/image`, ""), wide: true });
}
