// Settings: the language model, and its usage.

import { praise, settle } from "../base/actions.js";
import { api } from "../base/api.js";
import { codeRow } from "../base/connect.js";
import { fail } from "../base/dialogs.js";
import { add, button, choice, field, fill, h } from "../base/dom.js";
import { formatNumber } from "../base/format.js";
import { dataTable, facts, settingsCard } from "./panels.js";
import { busy, load } from "../base/shell.js";
import { t, term } from "../base/texts.js";

/** @type {Record<string, string>} */
const PROVIDER_NAMES = {
  openai: "OpenAI", anthropic: "Anthropic", gemini: "Google Gemini", deepseek: "DeepSeek", qwen: "Qwen",
  zhipu: "Zhipu GLM", ollama: "Ollama",
};
const USAGE_PERIODS = [7, 30, 90];

/** @param {HTMLElement} container */
export function showModel(container) {
  const fetched = async (/** @type {AbortSignal} */ signal) => {
    const paths = ["/api/config/llm", "/api/config/llm/presets"];
    const [now, { presets }] = await Promise.all(paths.map((path) => api.get(path, {}, { signal })));
    return { now, presets };
  };
  return load(container, fetched, ({ now, presets }) => modelForm(now, presets));
}

/**
 * The form of the model. Choosing a provider fills in its base URL and model; both can be changed.
 *
 * @param {ConfigurationFields} now the current configuration
 * @param {Record<string, PresetFields>} presets
 */
function modelForm(now, presets) {
  const known = now.provider === "local" || now.provider in presets;
  const names = Object.keys(presets).map((name) => [name, PROVIDER_NAMES[name] ?? name]);
  const provider = choice([["local", t("model.local")], ...names, ["custom", t("model.custom")]], known ? now.provider : "custom");
  const address = h("input", { type: "url", value: now.base_url, required: true, spellcheck: "false" });
  const model = h("input", { type: "text", value: now.provider === "local" ? "" : now.model, spellcheck: "false", maxlength: 256 });
  const key = h("input", { type: "password", autocomplete: "off", spellcheck: "false" });
  const temperature = h("input", { type: "number", min: 0, max: 2, step: 0.1, value: String(now.temperature) });
  const removal = h("div");
  const result = h("p", { role: "status" });
  const save = h("button.button.primary", { type: "submit", text: t("list.save") });
  const test = button(t("model.test"), { click: () => attempt(test, tested, showResult) });
  const advice = h("div");
  const keyField = field(t("model.key"), key, "?");
  const keyHint = /** @type {HTMLElement} */ (keyField.lastChild);
  const remote = h("div.stack", h("p.hint", t("model.lead")),
    h("div.settings-fields", field(t("model.address"), address), field(t("model.model"), model),
      h("div.stack.tight", keyField, removal), field(t("model.temperature"), temperature, t("model.temperatureText"))));
  const local = h("p.hint", t("model.localText"));
  const context = h("p.hint");
  const sent = (/** @type {Event} */ event) => {
    event.preventDefault();
    attempt(save, stored, () => praise(t("settings.saved")));
  };
  const form = h("form.stack", { on: { input: changed, submit: sent } },
    h("div.settings-fields", field(t("model.provider"), provider)), local, remote, context,
    h("div.row", save, test), result, advice);

  /**
   * Like `settle`; a refusal that names the setting which allows the address stays in the form, with the setting.
   *
   * @template Result
   * @param {HTMLButtonElement} pressed
   * @param {() => Promise<Result>} work
   * @param {(answer: Result) => unknown} then
   */
  async function attempt(pressed, work, then) {
    fill(advice);
    result.textContent = "";
    try {
      then(await busy(pressed, work()));
    } catch (error) {
      if (!advise(error?.detail)) fail(error);
    }
  }

  /**
   * Show how the refused address is allowed. Returns whether the sentence says so.
   *
   * @param {string | undefined} sentence
   */
  function advise(sentence) {
    const setting = /SNAPLORE_LLM_ALLOWED_HOSTS=\S+/.exec(sentence ?? "");
    if (setting) {
      fill(advice, h("div.stack.tight", { role: "alert" }, h("p.problem", t("model.allow")), codeRow(setting[0], t("model.setting"))));
    }
    return Boolean(setting);
  }

  /** @param {string} text */
  function originOf(text) {
    return URL.canParse(text) ? new URL(text).origin : "";
  }

  /** @returns {Partial<ConfigurationFields> & { api_key?: string }} */
  function wanted() {
    if (provider.value === "local") return { provider: "local" };
    return {
      provider: provider.value, base_url: address.value.trim(), model: model.value.trim(), temperature: Number(temperature.value),
      ...(key.value && { api_key: key.value }),
    };
  }

  function isChanged() {
    const { provider: name, ...rest } = wanted();
    if (name === "local" || now.provider === "local") return name !== now.provider;
    return Boolean(key.value) || rest.base_url !== now.base_url || rest.model !== now.model || rest.temperature !== now.temperature;
  }

  /** @param {Event} [event] */
  function changed(event) {
    if (event?.target === provider) {
      const preset = presets[provider.value];
      address.value = preset?.base_url ?? "";
      model.value = preset?.model ?? "";
      key.value = "";
    }
    result.textContent = "";
    fill(advice);
    const isLocal = provider.value === "local";
    local.hidden = !isLocal;
    remote.hidden = isLocal;
    address.disabled = isLocal; // a hidden required field would block the form
    const moved = now.api_key_set && originOf(address.value) !== originOf(now.base_url);
    const state = now.api_key_set ? "model.keySet" : "model.keyNone";
    keyHint.textContent = t(moved ? "model.keyMoves" : state, { origin: originOf(now.base_url) });
    const forget = button(t("model.removeKey"), { kind: "quiet", click: () => forgetKey(forget) });
    fill(removal, now.api_key_set && !moved && forget);
    test.replaceChildren(h("span", isChanged() ? t("model.saveAndTest") : t("model.test")));
    context.textContent = isLocal || isChanged() ? "" : t("model.context", { tokens: formatNumber(now.max_context_tokens) });
  }

  async function stored() {
    now = await api.put("/api/config/llm", wanted());
    key.value = "";
    model.value = provider.value === "local" ? "" : now.model;
    address.value = now.base_url;
    changed();
  }

  /** @param {HTMLButtonElement} pressed */
  function forgetKey(pressed) {
    settle(pressed, () => api.put("/api/config/llm", { api_key: "" }), (answer) => {
      now = answer;
      changed();
      praise(t("settings.saved"));
    });
  }

  async function tested() {
    if (!form.reportValidity()) return null;
    if (isChanged()) await stored();
    return api.post("/api/config/llm/test");
  }

  /** @param {{ success: boolean, milliseconds: number, model: string, message: string } | null} answer */
  function showResult(answer) {
    if (!answer || (!answer.success && advise(answer.message))) return;
    const words = { model: answer.model, message: answer.message, milliseconds: formatNumber(answer.milliseconds) };
    result.className = answer.success ? "model-good" : "problem";
    result.textContent = t(answer.success ? "model.worked" : "model.failed", words);
  }

  changed();
  return settingsCard(t("model.title"), form);
}

/** @param {HTMLElement} container */
export function showUsage(container) {
  const body = h("div");
  let stop = () => {};
  const show = () => {
    stop();
    const days = Number(period.value);
    stop = load(body, (signal) => api.get("/api/usage", { days }, { signal }), (usage) => usageShown(usage, days));
  };
  const period = choice(USAGE_PERIODS.map((days) => [String(days), t("usage.days", { days })]), "30", { on: { change: show } });
  const choosing = h("div.settings-fields", field(t("usage.period"), period));
  add(container, settingsCard(t("usage.title"), h("p.hint", t("usage.lead")), choosing, body));
  show();
  return () => stop();
}

/**
 * @param {UsageReport} usage
 * @param {number} period in days
 */
function usageShown({ daily_token_limit: limit, tokens_today: today, days: rows }, period) {
  const dayAgo = (/** @type {number} */ days) => new Date(Date.now() - days * 86400000).toISOString().slice(0, 10);
  const byDay = new Map(Array.from({ length: period }, (_, number) => /** @type {[string, number]} */ ([dayAgo(period - 1 - number), 0])));
  for (const { day, total_tokens: tokens } of rows) if (byDay.has(day)) byDay.set(day, (byDay.get(day) ?? 0) + tokens);
  const most = Math.max(0, ...byDay.values());
  const tokens = rows.reduce((sum, row) => sum + row.total_tokens, 0);
  const calls = rows.reduce((sum, row) => sum + row.calls, 0);
  const spent = formatNumber(today);
  const label = t("usage.chart", { first: dayAgo(period - 1), last: dayAgo(0), most: formatNumber(most) });
  return h("div.stack",
    facts([
      [t("usage.today"), limit ? t("usage.of", { tokens: spent, limit: formatNumber(limit) }) : t("usage.tokens", { tokens: spent })],
      [t("usage.total"), t("usage.calls", { calls: formatNumber(calls), tokens: formatNumber(tokens) })],
    ]),
    most > 0 && h("div.usage-chart", { role: "img", "aria-label": label },
      [...byDay].map(([day, count]) => h("i", { title: `${day}: ${formatNumber(count)}`, style: { height: `${(100 * count) / most}%` } }))),
    rows.length > 0
      ? dataTable(["day", "purpose", "model", "callCount", "in", "out"].map((name) => t(`usage.${name}`)),
        rows.map((row) => {
          const numbers = [row.calls, row.prompt_tokens, row.completion_tokens];
          return [row.day, term("purpose", row.purpose), row.model, ...numbers.map(formatNumber)];
        }))
      : h("p.hint", t("usage.none")));
}
