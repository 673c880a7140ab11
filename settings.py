"""The settings table, read from the environment once and checked at start.

Every variable of Snaplore is a field of `Settings` with its type, reader, default and help.
`Settings.from_environ` turns the environment into one frozen object, which `create_app` passes on; nothing
else reads `os.environ`. An invalid value stops the start with one line that names the variable: a silent
default would hide a typing error until it costs data. No repr contains a secret.
"""

import dataclasses
import ipaddress
import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from errors import StartRefused

NAME = "Snaplore"
VERSION = "0.1.0"
PREFIX = "SNAPLORE_"
MEGABYTE = 1_048_576  # bytes
ROOT = Path(__file__).resolve().parent
# The wheel has the program in a folder of this name, which its next version replaces: data is kept elsewhere.
INSTALLED = ROOT.name == "_app"
START = "snaplore serve" if INSTALLED else "make run"  # what starts the service


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


# The address of a bucket, with an optional prefix. Names that need no escaping only.
S3_ADDRESS = r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(?:/[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}){0,10})/?"


def _bucket(value: str) -> str:
    if not re.fullmatch(S3_ADDRESS, value):
        raise ValueError("must be an address like s3://bucket/prefix")
    return value.rstrip("/")


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


def _matching(pattern: re.Pattern[str], demand: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(demand)
        return value

    return read


_region = _matching(
    re.compile(r"[A-Za-z0-9-]{1,40}"), "must be letters, digits and hyphens, like eu-central-1"
)
_model_name = _matching(re.compile(r"[!-~]{1,256}"), "must be a model's name without blanks")


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


def _watched(value: str) -> tuple[tuple[str, Path], ...]:
    """Folders, each with the name of its device, or "" for that of the folder."""
    entries = []
    for entry in _names(value):
        name, is_named, folder = entry.rpartition("=")
        path = _path(folder.strip())
        if not folder.strip() or (is_named and not name.strip()) or len(name) > 100:
            raise ValueError(
                f"must list folders like /home/me/Screenshots or Phone=/srv/phone, and {entry!r} is none"
            )
        entries.append((name.strip(), path))
    if len({path for _, path in entries}) < len(entries):
        raise ValueError("must list each folder once")
    return tuple(entries)


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
        _path,
        ROOT / "data",
        "The folder of all stored data: database, pictures, keys. Unset, a wheel that pipx or uv has "
        "installed uses `$XDG_DATA_HOME/snaplore` (`~/.local/share/snaplore`).",
    )
    read_only: bool = _setting(
        _flag,
        False,
        "`true` refuses every request that would change something. `snaplore serve --demo` sets it.",
    )
    bind: str | None = _setting(
        _bind,
        None,
        "Address and port that the service listens on. Unset: `127.0.0.1:8000`, so only this machine can "
        "connect, and the owner can let the own network in from the page.",
    )
    retention_days: int = _setting(
        _whole(0, 36_500), 30, "Age in days after which data is cleaned up. 0 keeps everything."
    )
    language: str = _setting(
        _choice("zh", "en"),
        "zh",
        "Language of fixed texts: pushes, default titles, summaries of the embedded analyser. Unset: the "
        "language that `LC_ALL`, `LC_MESSAGES` or `LANG` names (`zh` for Chinese, `en` for any other); `zh` "
        "where they name none.",
    )
    analysis_workers: int = _setting(_whole(1, 32), 2, "Threads of the analysis pool.")
    ocr_model: str = _setting(
        _choice("both", "small", "tiny"),
        "both",
        "OCR model of the embedded analyser. `both`: `tiny` reads every line, and `small` reads again what "
        "`tiny` is unsure of, in little more than half of the time of `small` alone. `tiny` alone is "
        "faster, and reads Latin and simplified Chinese only.",
    )
    ocr_processes: int = _setting(
        _whole(0, 8),
        0,
        "Screenshots that are read at the same time, each by a process of its own, which takes a core, "
        "and up to 340 MB until it has been idle for two minutes. `0`: two where the service may use two "
        "cores and 3 GB, else one, as under the limits of the systemd units.",
    )
    read_locally: bool = _setting(
        _flag,
        True,
        "Read the text of each screenshot on this machine first, whichever model analyses it. `false` leaves "
        "reading to the vision LLM; then there is no text on the pictures.",
    )
    meaning: str = _setting(
        _choice("local", "off"),
        "local",
        "Find screenshots by descriptions in other words, with two small models on this machine (175 MB of "
        "memory while they work). They also help to tell what kind of screen one is. `off`: by words only.",
    )
    embeddings: str | None = _setting(
        _model_name,
        None,
        "Name of an embedding model of the configured LLM's provider, like `text-embedding-3-small`. It then "
        "gets the title, summary and text of each screenshot, which costs tokens, and each search that finds "
        "little, but nothing sensitive. Unset: nothing is sent, and meanings are compared on "
        "this machine. Needs an LLM that is not the embedded one, and `SNAPLORE_MEANING=local`.",
    )
    sensitive: str = _setting(
        _choice("local", "off"),
        "local",
        "`local` keeps what is sensitive (cards, one-time codes, passwords and the like) on this machine: it "
        "is not sent to a remote model, web search, MCP server or push webhook. `off` holds nothing back.",
    )
    confirm_calls: str = _setting(
        _choice("page", "always"),
        "page",
        "`page`: clients that can ask the person do so before a web search or a call of an MCP tool, once "
        "the model has read a screenshot, a web page or a tool's answer. `always`: for clients that cannot "
        "ask, such calls are refused.",
    )
    codes_expire: int = _setting(
        _whole(0, 36_500),
        0,
        "Age in days after which screenshots of one-time codes go to the trash. 0: never.",
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
    originals: str | None = _setting(
        _bucket,
        None,
        "Bucket that takes the sealed originals of older pictures, like `s3://bucket/prefix`; thumbnails and "
        "database stay here. Unset: everything stays here. Needs `SNAPLORE_ENCRYPTION`.",
    )
    originals_after: int = _setting(
        _whole(1, 36_500), 90, "Age in days, from the upload, at which an original goes to that bucket."
    )
    s3_endpoint: str | None = _setting(
        _address,
        None,
        "Address of the S3-compatible store for backups and originals; it may be on the local network and "
        "without https. Unset: AWS.",
    )
    s3_region: str = _setting(_region, "us-east-1", "Region of the store, as it is part of its signatures.")
    s3_access_key: str | None = _setting(_text, None, "Access key of the store.", secret=True)
    s3_secret_key: str | None = _setting(_text, None, "Secret key of the store.", secret=True)
    s3_credentials_file: Path | None = _setting(
        _path,
        None,
        "File with two lines, the access key and the secret key, instead of these two. Unset: the systemd "
        "credential `s3`, if there is one.",
    )
    watch: tuple[tuple[str, Path], ...] = _setting(
        _watched,
        (),
        "Comma-separated folders whose new screenshots are stored by themselves, each with the name of its "
        "device if you want: `/home/me/Screenshots, Phone=/srv/sync/phone`.",
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
    webhook_allowed_hosts: tuple[str, ...] = _setting(
        _trusted_hosts,
        (),
        "Comma-separated host names, addresses or networks that registered webhooks may call although they "
        "are private or plain http, like `homeassistant.local`.",
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
    tls: str = _setting(
        _choice("auto", "off"),
        "auto",
        "`auto` serves https with the certificate of `./snaplore tls init`, once there is one; `off` serves "
        "plain http.",
    )
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
        values: dict[str, Any] = {"language": language} if (language := _spoken(environ)) else {}
        if INSTALLED:
            values["data_dir"] = _home_folder(environ)
        for setting in dataclasses.fields(cls):
            raw = environ.get(variable(setting.name), "").strip()
            if not raw:
                continue
            try:
                values[setting.name] = setting.metadata["read"](raw)
            except ValueError as problem:
                raise StartRefused(f"{variable(setting.name)}: {problem}") from None
        # systemd's folder of credentials (LoadCredential).
        if not values.keys() & {"s3_access_key", "s3_credentials_file"} and (
            held := environ.get("CREDENTIALS_DIRECTORY")
        ):
            credential = Path(held) / "s3"
            values |= {"s3_credentials_file": credential} if credential.is_file() else {}
        settings = cls(**values)
        if settings.originals and not settings.encryption:
            raise StartRefused(
                f"{variable('originals')}: only sealed pictures leave this machine, and "
                f"{variable('encryption')} is false"
            )
        own = settings.data_dir.resolve()
        for _, folder in settings.watch:
            if own in (folder.resolve(), *folder.resolve().parents):
                raise StartRefused(
                    f"{variable('watch')}: {folder} is inside the data folder, which is not watched"
                )
        return settings

    @property
    def authentication_skipped(self) -> bool:
        """Dev mode without a key: no request needs a key."""
        return self.dev_mode and not self.api_key

    @property
    def address(self) -> str:
        """Address and port that the service listens on."""
        return self.bind or "127.0.0.1:8000"

    @property
    def binds_to_loopback(self) -> bool:
        """Whether only this machine can connect."""
        host = self.address.rsplit(":", 1)[0].strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def _spoken(environ: Mapping[str, str]) -> str:
    """`zh` or `en`, by the locale of a person's session; empty for `C`, `POSIX` or none, as in a service."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        spoken = re.split("[_.@]", environ.get(name, "").strip().lower(), maxsplit=1)[0]
        if spoken not in ("", "c", "posix"):
            return "zh" if spoken == "zh" else "en"
    return ""


def prefer_english(environ: MutableMapping[str, str]) -> None:
    """Choose English for what a person starts where no locale names a language, as under cron.

    The service alone keeps its default, Chinese, because clients rely on its texts.
    """
    if not _spoken(environ):
        environ.setdefault(variable("language"), "en")


def _home_folder(environ: Mapping[str, str]) -> Path:
    """The data folder of a wheel, by the XDG Base Directory Specification: relative paths are invalid."""
    named = environ.get("XDG_DATA_HOME", "")
    return (Path(named) if os.path.isabs(named) else _path("~/.local/share")) / NAME.lower()


def variable(field: str) -> str:
    """The environment variable of a field of `Settings`."""
    return PREFIX + field.upper()
