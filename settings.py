"""The settings table, read from the environment once and checked at start.

Every variable of Snaplore is a field of `Settings` with its type, reader, default and help.
`Settings.from_environ` turns the environment into one frozen object, which `create_app` passes on; nothing
else reads `os.environ`. An invalid value stops the start with one line that names the variable: a silent
default would hide a typing error until it costs data. No repr contains a secret.
"""

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from errors import StartRefused

NAME = "Snaplore"
VERSION = "0.1.0"
PREFIX = "SNAPLORE_"
MEGABYTE = 1_048_576  # bytes
ROOT = Path(__file__).resolve().parent


def _text(value: str) -> str:
    return value


def _flag(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.lower() == "true"


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", value) or not low <= int(value) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(value)

    return read


def _choice(*choices: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return read


def _address(value: str) -> str:
    """An http or https address. Whether it may be called is decided by `net.Guard` for each call."""
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1)
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be an address like https://host/path")
    return value


def _names(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _origins(value: str) -> tuple[str, ...]:
    origins = _names(value)
    for origin in origins:
        parts = urlsplit(origin)
        if (
            parts.scheme not in ("http", "https")
            or not parts.netloc
            or origin != f"{parts.scheme}://{parts.netloc}"
        ):
            raise ValueError(f"must list origins like https://host:port, and {origin!r} is none")
    return origins


def _trusted_hosts(value: str) -> tuple[str, ...]:
    hosts = _names(value)
    for host in hosts:
        try:
            ipaddress.ip_network(host.strip("[]"), strict=False)
        except ValueError:
            # Without ports: the rule is about hosts, whichever port is called there.
            if not re.fullmatch(r"[A-Za-z0-9._-]+", host):
                raise ValueError(
                    f"must list host names, addresses or networks, without ports, and {host!r} is none"
                ) from None
    return hosts


def _bind(value: str) -> str:
    match = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:\[\]/]+):([0-9]{1,5})", value)
    if not match or int(match[2]) > 65535:
        raise ValueError("must be an address and a port, like 127.0.0.1:8000")
    return value


def _path(value: str) -> Path:
    return Path(value).expanduser().absolute()


def _setting(read: Callable[[str], Any], default: Any, help: str, *, secret: bool = False) -> Any:
    """A row of the table. `read` raises `ValueError` with what follows "SNAPLORE_X: " in the refusal."""
    return dataclasses.field(
        default=default, repr=not secret, metadata={"read": read, "help": help, "secret": secret}
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The table: each variable is `PREFIX` and the field's name in upper case."""

    api_key: str | None = _setting(
        _text,
        None,
        "Shared key for `Authorization: Bearer`. Unset: a random one is made at the first start.",
        secret=True,
    )
    dev_mode: bool = _setting(
        _flag,
        False,
        "`true` allows running without a key and an LLM at `http://localhost`. For development only.",
    )
    data_dir: Path = _setting(
        _path, ROOT / "data", "The folder of all stored data: database, pictures, keys."
    )
    bind: str = _setting(_bind, "127.0.0.1:8000", "Address and port that the service listens on.")
    retention_days: int = _setting(
        _whole(0, 36_500), 30, "Age in days after which data is cleaned up. 0 keeps everything."
    )
    language: str = _setting(
        _choice("zh", "en"),
        "zh",
        "Language of fixed texts: pushes, default titles, summaries of the embedded analyser.",
    )
    analysis_workers: int = _setting(_whole(1, 32), 2, "Threads of the analysis pool.")
    ocr_model: str = _setting(
        _choice("tiny", "small"),
        "small",
        "OCR model of the embedded analyser. `tiny` is faster, and reads Latin and simplified Chinese only.",
    )
    llm_api_key: str | None = _setting(_text, None, "Key of the vision LLM.", secret=True)
    llm_base_url: str | None = _setting(
        _address, None, "Address of an OpenAI-compatible API. Unset: the embedded analyser."
    )
    llm_model: str | None = _setting(_text, None, "Name of the model.")
    llm_allowed_hosts: tuple[str, ...] = _setting(
        _trusted_hosts,
        (),
        "Comma-separated host names, addresses or networks that may be called although they are private or "
        "plain http.",
    )
    daily_token_limit: int = _setting(_whole(0, 10**15), 0, "Tokens a day for all LLM calls. 0 is no limit.")
    encryption: bool = _setting(_flag, True, "Encrypt everything that is stored.")
    master_key_file: Path | None = _setting(
        _path,
        None,
        "File with the master key (a systemd credential, a mounted secret). Unset: one is made in the data "
        "folder.",
    )
    key_rotation_days: int = _setting(
        _whole(1, 36_500), 90, "Age in days at which the rotation job makes a new key."
    )
    push_webhook_url: str | None = _setting(
        _address,
        None,
        "Address that gets one POST per device and notification. Unset: notifications are only logged.",
        secret=True,
    )
    push_webhook_secret: str | None = _setting(
        _text, None, "Signs each webhook call (Standard Webhooks).", secret=True
    )
    fcm_project_id: str | None = _setting(
        _text, None, "Reserved for a mobile push channel that is not active."
    )
    fcm_credentials_json: str | None = _setting(
        _text, None, "Reserved for a mobile push channel that is not active.", secret=True
    )
    searxng_url: str | None = _setting(_address, None, "Address of a SearXNG server for web search.")
    tavily_api_key: str | None = _setting(_text, None, "Key of the Tavily web search.", secret=True)
    brave_api_key: str | None = _setting(_text, None, "Key of the Brave web search.", secret=True)
    cors_origins: tuple[str, ...] = _setting(
        _origins, (), "Comma-separated origins of web clients that are served elsewhere."
    )
    trusted_proxies: int = _setting(
        _whole(0, 16), 0, "Number of reverse proxies in front, for the client's address."
    )
    ratelimit_storage: str = _setting(
        _text,
        "memory://",
        "Storage address of the rate limiter, shared when there are several workers.",
        secret=True,
    )

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Read and check every variable; an empty one is unset. Raises `StartRefused` naming the variable."""
        values = {}
        for setting in dataclasses.fields(cls):
            raw = environ.get(variable(setting.name), "").strip()
            if not raw:
                continue
            try:
                values[setting.name] = setting.metadata["read"](raw)
            except ValueError as problem:
                raise StartRefused(f"{variable(setting.name)}: {problem}") from None
        return cls(**values)

    @property
    def authentication_skipped(self) -> bool:
        """Dev mode without a key: no request needs a key."""
        return self.dev_mode and not self.api_key

    @property
    def binds_to_loopback(self) -> bool:
        """Whether only this machine can connect."""
        host = self.bind.rsplit(":", 1)[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def variable(field: str) -> str:
    """The environment variable of a field of `Settings`."""
    return PREFIX + field.upper()
