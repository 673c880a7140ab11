// The texts of the page. Each view registers its own in its file, as "English|Chinese"; common ones are here. The service sends
// only those of one language, which a cookie or the browser's languages choose (dashboard.py).

/** @type {Record<string, string>} */
const phrases = {};

/**
 * Register texts by view, one a line: `words({ chat: { title: "Chat|对话" } })` makes t("chat.title").
 *
 * @param {Record<string, Record<string, string>>} views
 */
export function words(views) {
  for (const [view, entries] of Object.entries(views)) {
    for (const [word, text] of Object.entries(entries)) phrases[`${view}.${word}`] = text;
  }
}

/**
 * The language of the page.
 *
 * @returns {"en" | "zh"}
 */
export function language() {
  return document.documentElement.lang.startsWith("zh") ? "zh" : "en";
}

/** The person's choice: "en", "zh" or "auto". The service reads it from a cookie, because it sends the texts. */
export const chosenLanguage = () => /snaplore_language=(en|zh)/.exec(document.cookie)?.[1] ?? "auto";

/**
 * Choose the language of the page, from the next time on that it is loaded.
 *
 * @param {string} name
 */
export function chooseLanguage(name) {
  const value = name === "auto" ? "; Max-Age=0" : `${name}; Max-Age=31536000`;
  document.cookie = `snaplore_language=${value}; Path=/; SameSite=Strict`;
}

/**
 * The text of `key` ("view.word") with its {names} filled in. A missing text shows its key; a test looks for that.
 *
 * @param {string} key
 * @param {Record<string, string | number>} params
 */
export function t(key, params = {}) {
  return (phrases[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(params[name] ?? ""));
}

/**
 * The text of an API value such as a category. New values that have no text yet are shown as they are.
 *
 * @param {string} group
 * @param {string} value
 */
export function term(group, value) {
  const key = `${group}.${value}`;
  return key in phrases ? t(key) : String(value ?? "").replaceAll("_", " ");
}

words({
  shell: {
    skip: "Skip to content|跳到内容",
    nav: "Main navigation|主导航",
    retry: "Try again|重试",
    close: "Close|关闭",
    cancel: "Cancel|取消",
    undo: "Undo|撤销",
    failed: "Something went wrong|出错了",
    dismiss: "Dismiss|关闭提示",
    loading: "Loading…|加载中…",
    copied: "Copied|已复制",
    copy: "Copy|复制",
    missing: "Page not found|找不到页面",
    toLibrary: "Go to the library|前往图库",
    unread: "{count} unread|{count} 条未读",
  },
  api: {
    unreachable: "Cannot reach the server. Check that it is running and that you are on its network.|无法连接服务器。请检查服务是否在运行，以及你是否在它的网络中。",
    odd: "The server answered with status {status} and no explanation.|服务器返回状态 {status}，未说明原因。",
    wait: "{detail} Try again in {seconds} s.|{detail} 请在 {seconds} 秒后重试。",
  },
  status: {
    pending: "Waiting|等待中",
    processing: "Analysing|分析中",
    done: "Done|已完成",
    error: "Failed|失败",
  },
  category: {
    chat: "Chat|聊天",
    webpage: "Web page|网页",
    finance: "Finance|财务",
    notification: "Notification|通知",
    social_media: "Social media|社交媒体",
    other: "Other|其他",
  },
  intent: {
    reference: "Reference|参考",
    reminder: "Reminder|提醒",
    research: "Research|研究",
    note: "Note|笔记",
    ignore: "Nothing to do|无需处理",
  },
});
