// The page's words in English and Chinese. Each view registers its own beside its code; the shell's are here.

const phrases = { en: {}, zh: {} };

function texts(more) {
  for (const language of ["en", "zh"]) Object.assign(phrases[language], more[language]);
}

/** Texts by view and word, each as [English, Chinese]: `words({ chat: { title: ["Chat", "对话"] } })`. */
function words(views) {
  for (const [view, entries] of Object.entries(views)) {
    for (const [word, [en, zh]] of Object.entries(entries)) texts({ en: { [`${view}.${word}`]: en }, zh: { [`${view}.${word}`]: zh } });
  }
}

/** "en" or "zh": what was chosen, else the first of the browser's languages that the page speaks. */
function language() {
  const chosen = recalled("language", "auto");
  if (chosen in phrases) return chosen;
  const spoken = navigator.languages.map((name) => name.slice(0, 2).toLowerCase());
  return spoken.find((name) => name in phrases) ?? "en";
}

/** The text of `key` ("view.word"), its {names} filled in. A missing one shows its key, which a test looks for. */
function t(key, params = {}) {
  const text = phrases[language()][key] ?? phrases.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => params[name] ?? "");
}

/** The text of a value that the service may add to (a category, an intent): unknown ones are shown as they are. */
function term(group, value) {
  const key = `${group}.${value}`;
  return key in phrases.en ? t(key) : String(value ?? "").replaceAll("_", " ");
}

function setLanguage(name) {
  remember("language", name);
  renderAll();
}

/** Small preferences of this browser. Where it keeps nothing, they last until the page is closed. */
function remember(name, value) {
  state.settings[name] = value;
  try {
    localStorage.setItem(`snaplore.${name}`, JSON.stringify(value));
  } catch { /* private mode or full: kept in memory only */ }
}

function recalled(name, fallback) {
  if (!(name in state.settings)) {
    try {
      state.settings[name] = JSON.parse(localStorage.getItem(`snaplore.${name}`)) ?? undefined;
    } catch {
      state.settings[name] = undefined;
    }
  }
  return state.settings[name] ?? fallback;
}

function forget(name) {
  delete state.settings[name];
  try {
    localStorage.removeItem(`snaplore.${name}`);
  } catch { /* nothing is kept there */ }
}

const state = { key: null, settings: {} };

texts({
  en: {
    "shell.skip": "Skip to content", "shell.nav": "Main navigation", "shell.retry": "Try again", "shell.close": "Close",
    "shell.cancel": "Cancel", "shell.undo": "Undo", "shell.failed": "That did not work", "shell.dismiss": "Dismiss",
    "shell.loading": "Loading…", "shell.copied": "Copied", "shell.copy": "Copy", "shell.missing": "There is nothing at this address.",
    "shell.toHome": "Go to Home", "shell.unread": "{count} unread",
    "api.unreachable": "The server cannot be reached. Is it running, and are you on its network?",
    "api.odd": "The server answered {status} without a reason.",
    "api.wait": "{detail} Try again in {seconds} s.",
    "status.pending": "Waiting", "status.processing": "Analysing", "status.done": "Done", "status.error": "Failed",
    "category.chat": "Chat", "category.webpage": "Web page", "category.finance": "Finance", "category.notification": "Notification",
    "category.social_media": "Social media", "category.other": "Other",
    "intent.reference": "Reference", "intent.reminder": "Reminder", "intent.research": "Research", "intent.note": "Note",
    "intent.ignore": "Nothing to do",
  },
  zh: {
    "shell.skip": "跳到内容", "shell.nav": "主导航", "shell.retry": "重试", "shell.close": "关闭",
    "shell.cancel": "取消", "shell.undo": "撤销", "shell.failed": "操作未成功", "shell.dismiss": "关闭提示",
    "shell.loading": "加载中…", "shell.copied": "已复制", "shell.copy": "复制", "shell.missing": "这个地址没有内容。",
    "shell.toHome": "回到首页", "shell.unread": "{count} 条未读",
    "api.unreachable": "无法连接服务器。它在运行吗?你和它在同一网络吗?",
    "api.odd": "服务器返回 {status},没有说明原因。",
    "api.wait": "{detail} 请 {seconds} 秒后再试。",
    "status.pending": "等待中", "status.processing": "分析中", "status.done": "已完成", "status.error": "失败",
    "category.chat": "聊天", "category.webpage": "网页", "category.finance": "财务", "category.notification": "通知",
    "category.social_media": "社交媒体", "category.other": "其他",
    "intent.reference": "参考", "intent.reminder": "提醒", "intent.research": "研究", "intent.note": "笔记", "intent.ignore": "无需处理",
  },
});
