"""Which model is configured: by the environment, by changes at runtime, and by presets; `/api/config/llm`.

Changes at runtime are stored in the database, the key included, and override the environment field by field.
Every process reads them through a cache, so a change made in one process takes effect in all of them within a
minute. With nothing configured, the provider is `local`, the embedded model: a state like any other.
"""

import dataclasses
import time

import msgspec

import net
from database import db, store
from errors import BadInput, NotFound
from models import store_value, stored_value
from settings import Settings, variable

LOCAL = "local"
CUSTOM = "custom"

CACHE_SECONDS = 60.0  # by the contract
DEFAULT_CONTEXT_TOKENS = 32_768  # of a model that is in no preset; the smaller vision models have this many
TEMPERATURE = 0.2  # lower is more factual


@dataclasses.dataclass(frozen=True)
class Preset:
    provider: str
    base_url: str
    model: str
    max_context_tokens: int


PRESETS = {
    preset.provider: preset
    for preset in (
        Preset("openai", "https://api.openai.com/v1", "gpt-6.1-terra", 922_000),
        Preset("anthropic", "https://api.anthropic.com/v1", "claude-haiku-5-5", 1_000_000),
        Preset(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gemini-flash-latest",
            1_048_576,
        ),
        Preset("deepseek", "https://api.deepseek.com/v1", "deepseek-flash", 1_000_000),
        Preset("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen3.8-flash", 991_808),
        Preset("zhipu", "https://open.bigmodel.cn/api/paas/v4", "glm-5.3-flash", 1_048_576),
        Preset("ollama", "http://localhost:11434/v1", "qwen3-vl", 32_768),
    )
}


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Which model answers. `base_url` is empty for the embedded model."""

    provider: str
    base_url: str
    api_key: str | None = dataclasses.field(repr=False)
    model: str
    max_context_tokens: int
    temperature: float


class Stored(msgspec.Struct):
    """The changes at runtime; an empty field means the environment's value."""

    provider: str = ""
    base_url: str = ""
    api_key: str = ""
    key_origin: str = ""  # the only origin that the key is sent to
    model: str = ""
    temperature: float | None = None

    def __repr__(self) -> str:
        return f"Stored(provider={self.provider!r}, base_url={self.base_url!r}, model={self.model!r})"


def current(settings: Settings) -> Configuration:
    """The configuration in force. Reads the database at most once in `CACHE_SECONDS`."""
    return merged(store().cache(_LastRead).stored(), settings)


def latest(settings: Settings) -> Configuration:
    """The configuration as it is stored at this moment, read without the cache.

    For the queue, whose circuit breaker belongs to one configuration: workers that see different ones would
    overwrite each other's state.
    """
    return merged(_read_stored(), settings)


def merged(stored: Stored, settings: Settings) -> Configuration:
    """The stored fields, completed by the environment's; the embedded model when neither has an address.

    A key is used only for the origin that it was given for: the environment's key is not sent to a stored
    address at another origin.
    """
    base_url = _base_url(stored, settings)
    if not base_url:
        return Configuration(LOCAL, "", None, f"ocr-{settings.ocr_model}", DEFAULT_CONTEXT_TOKENS, 0.0)
    origin = _origin(base_url)
    preset = next((one for one in PRESETS.values() if net.origin(one.base_url) == origin), None)
    stored_key = stored.api_key if stored.key_origin == origin else None
    own_key = settings.llm_api_key if _origin(settings.llm_base_url or "") == origin else None
    return Configuration(
        provider=stored.provider or (preset.provider if preset else CUSTOM),
        base_url=base_url,
        api_key=stored_key or own_key,
        model=stored.model or settings.llm_model or (preset.model if preset else ""),
        max_context_tokens=preset.max_context_tokens if preset else DEFAULT_CONTEXT_TOKENS,
        temperature=TEMPERATURE if stored.temperature is None else stored.temperature,
    )


def change(
    settings: Settings,
    *,
    provider: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    model: str | None = None,
    temperature: float | None = None,
) -> None:
    """Store the fields that are not None. An empty text returns a field to the environment; provider `local`
    returns to the embedded model.

    The name of a preset as provider, without an address, also sets the preset's address and model. A stored
    key is dropped when the address changes to another origin and no new key is given. Raises `BadInput`.
    """
    wanted = {
        "provider": provider,
        "base_url": base_url,
        "api_key": api_key,
        "model": model,
        "temperature": temperature,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    preset = PRESETS.get(provider or "")
    if provider == LOCAL:
        given = {"provider": LOCAL, "base_url": "", "api_key": "", "model": ""}
    elif preset is not None and not base_url:
        given = {
            "base_url": preset.base_url,
            "model": preset.model,
            **{name: value for name, value in given.items() if value != ""},
        }
    elif base_url is not None and not provider:
        given["provider"] = ""  # the address shows whose it is
    if new_address := str(given.get("base_url", "")):
        given["base_url"] = guard(settings).check_address(new_address, field="base_url")
    with db.atomic():
        after = msgspec.structs.replace(_read_stored(), **given)
        address = _base_url(after, settings)
        if not address and (after.provider not in ("", LOCAL) or after.api_key):
            raise BadInput("base_url: is missing")
        if api_key:
            after.key_origin = net.Key(api_key, net.origin(address)).origin
        elif after.key_origin != (net.origin(address) if address else ""):
            after.api_key = after.key_origin = ""
        store_value("llm", after)
    store().cache(_LastRead).clear()


def apply_preset(settings: Settings, name: str, api_key: str | None) -> None:
    """Store a preset's address and model, and the key if one is given. Raises `NotFound`."""
    preset = PRESETS.get(name)
    if preset is None:
        raise NotFound("Preset not found")
    change(settings, provider=name, base_url=preset.base_url, api_key=api_key, model=preset.model)


def guard(settings: Settings) -> net.Guard:
    """The rules for model addresses that are set through the API."""
    return net.Guard(
        dev_mode=settings.dev_mode,
        allowed_hosts=settings.llm_allowed_hosts,
        setting=variable("llm_allowed_hosts"),
    )


class _LastRead:
    """A cache of the stored fields, at most `CACHE_SECONDS` old."""

    def __init__(self) -> None:
        self._read: tuple[float, Stored] | None = None  # monotonic time of the read, and the fields

    def stored(self) -> Stored:
        read = self._read
        if read is None or time.monotonic() - read[0] > CACHE_SECONDS:
            read = self._read = (time.monotonic(), _read_stored())
        return read[1]

    def clear(self) -> None:
        self._read = None


def _read_stored() -> Stored:
    return msgspec.convert(stored_value("llm", {}), Stored)


def _base_url(stored: Stored, settings: Settings) -> str:
    return stored.base_url or ("" if stored.provider == LOCAL else settings.llm_base_url or "")


def _origin(base_url: str) -> str | None:
    """The origin of a configured address; None for one that the guard refuses: the call reports it."""
    try:
        return net.origin(base_url)
    except BadInput:
        return None
