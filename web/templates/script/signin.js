// Sign-in. The key is kept in memory, and in the browser's storage only on request.

import { api, session } from "./api.js";
import { sendDeletions } from "./detail.js";
import { sentence } from "./dialogs.js";
import { field, h } from "./dom.js";
import { forget, recalled, remember } from "./preferences.js";
import { busy, closeShell, fillPage, focusView, isOpen, mark, openShell } from "./shell.js";
import { t, words } from "./texts.js";
import { stopUploads } from "./upload.js";

words({
  signin: {
    title: "Sign in|登录",
    lead: "Find anything in your screenshots.|查找截图中的任何内容。",
    key: "Key|密钥",
    hint: "Shown when the service starts with make run, and by ./snaplore keys show-api-key.|用 make run 启动服务时会显示，也可以运行 ./snaplore keys show-api-key 查看。",
    keep: "Keep me signed in on this browser|在此浏览器中保持登录",
    enter: "Sign in|登录",
    wrong: "Wrong key.|密钥不正确。",
    ended: "This key is no longer valid. Please sign in again.|密钥已失效，请重新登录。",
  },
});

export function begin() {
  session.refused = () => signedOut();
  session.key = recalled("key", null);
  if (session.key || document.documentElement.dataset.key === "open") openShell();
  else showSignIn();
}

/** Forget the key and show the sign-in. */
export function signOut() {
  sendDeletions(); // these requests still need the key
  signedOut("");
}

/** The service refused the key. */
function signedOut(reason = t("signin.ended")) {
  if (!isOpen()) return; // the sign-in reports a wrong key itself
  session.key = null;
  forget("key");
  stopUploads();
  closeShell();
  showSignIn(reason);
}

function showSignIn(reason = "") {
  document.title = `${t("signin.title")} · Snaplore`;
  const input = h("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false", autocapitalize: "none" });
  const keep = h("input", { type: "checkbox", id: "keep" });
  const problem = h("p.problem", { role: "alert", text: reason });
  const submit = h("button.button.primary", { type: "submit" }, h("span", t("signin.enter")));
  const attempt = async () => {
    problem.textContent = "";
    session.key = input.value.trim();
    try {
      await api.get("/api/stats");
    } catch (error) {
      session.key = null;
      problem.textContent = error.status === 401 ? t("signin.wrong") : sentence(error);
      input.focus();
      return;
    }
    if (keep.checked) remember("key", session.key);
    openShell();
    focusView();
  };
  const form = h("form.signin.card", { on: { submit: (event) => (event.preventDefault(), busy(submit, attempt())) } },
    h("div.brand", mark(), h("h1", "Snaplore")), h("p.muted", t("signin.lead")),
    field(t("signin.key"), input, t("signin.hint")),
    h("label.row.check", { for: "keep" }, keep, h("span", t("signin.keep"))), problem, submit);
  fillPage(h("main.signin-page", form));
  input.focus();
}
