"""Which service the client talks to, and the login that it remembers.

The order: `--url`, `SNAPLORE_URL`, the stored login, and at last the service of this machine, whose key its
owner may read anyway. A token is used with the address that it was given for, and with no other.

The login is in `~/.config/snaplore/login.json`, which only its owner can read.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from terminal.failures import Failed
from terminal.service import Login

PAIRING = "/pair/"  # what the fragment of a pairing link begins with, before its code
LONGEST = 100_000  # bytes of the file
IS_POSIX = os.name == "posix"  # elsewhere, a file's mode says nothing about who can read it


class Address(NamedTuple):
    url: str  # without a trailing slash
    code: str  # of a pairing link; else empty


def address(given: str) -> Address:
    """The address in what a person gives: a URL, or the link of a pairing. Raises `Failed`."""
    try:
        parts = urlsplit(given.strip() if "//" in given else f"http://{given.strip()}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or parts.username is not None or parts.query:
        raise Failed("That is no address of a service: it must be like https://192.168.1.20:8000.")
    host = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/")
    if not path.isprintable() or not path.isascii() or " " in path or not host.isascii():
        raise Failed("The address has signs that an address cannot have.")
    code = parts.fragment.removeprefix(PAIRING) if parts.fragment.startswith(PAIRING) else ""
    return Address(f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}", code)


def chosen(url: str, ca: str, environ: Mapping[str, str], own: Callable[[], Login] | None) -> Login:
    """The login for a command. `url` and `ca` (PEM) are those of its options or empty; `own` gives that of
    the service on this machine. Raises `Failed`.
    """
    named, token = environ.get("SNAPLORE_URL", "").strip(), environ.get("SNAPLORE_TOKEN", "").strip()
    remembered = stored(environ)
    if url or named:
        wanted = address(url or named).url
        is_remembered = remembered is not None and remembered.url == wanted
        ca = ca or (remembered.ca if remembered is not None and is_remembered else "")
        if token and (not named or address(named).url == wanted):
            return Login(wanted, usable(token), ca)
        if remembered is not None and is_remembered:
            return remembered._replace(ca=ca)
        raise Failed(f"There is no token for {wanted}: run `snaplore login {wanted}`, or set SNAPLORE_TOKEN.")
    if token:
        raise Failed("SNAPLORE_TOKEN is set: set SNAPLORE_URL to the address that it is for.")
    if remembered is not None:
        return remembered._replace(ca=ca or remembered.ca)
    if own is not None:
        return own()
    raise Failed("Log in first: `snaplore login https://address-of-the-service`.")


def usable(token: str) -> str:
    """`token`, if it can be sent. Raises `Failed`."""
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Failed("The token has signs that a token cannot have.")
    return token


def stored(environ: Mapping[str, str]) -> Login | None:
    """The stored login, or None. Raises `Failed` when the file cannot be used."""
    file = _file(environ)
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if IS_POSIX and mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise Failed(f"{file} can be read by others: run `chmod 600 {file}`.")
            kept = json.loads(opened.read(LONGEST))
        return Login(address(kept["url"]).url, usable(kept["token"]), str(kept["ca"]))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Failed(f"{file} cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise Failed(f"{file} cannot be read: log in again.") from None


def store(login: Login, environ: Mapping[str, str]) -> Path:
    """Remember a login in place of the last one. Returns its file. Raises `Failed`."""
    file = _file(environ)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)  # of a process that was killed
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            json.dump(login._asdict(), opened)
        fresh.replace(file)
    except OSError as problem:
        raise Failed(f"{file} cannot be written: {problem.strerror}.") from None
    return file


def forget(environ: Mapping[str, str]) -> bool:
    """Delete the stored login. Returns whether there was one. Raises `Failed`."""
    try:
        _file(environ).unlink()
    except FileNotFoundError:
        return False
    except OSError as problem:
        raise Failed(f"{_file(environ)} cannot be deleted: {problem.strerror}.") from None
    return True


def _file(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
    return Path(home) / "snaplore" / "login.json"
