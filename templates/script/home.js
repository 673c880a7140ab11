// Home: what there is, what is going on, what is new.

texts({ en: { "home.title": "Home" }, zh: { "home.title": "首页" } });

route("home", {
  title: "home.title",
  icon: "home",
  show(container) {
    add(container, pageHead(t("home.title")));
  },
});
