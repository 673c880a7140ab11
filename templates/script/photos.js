// Screenshots: the grid of all of them.

texts({ en: { "photos.title": "Screenshots" }, zh: { "photos.title": "截图" } });

route("photos", {
  title: "photos.title",
  icon: "image",
  show(container) {
    add(container, pageHead(t("photos.title")));
  },
});
