"""Authentication: the owner's API key.

It is `SNAPLORE_API_KEY` or, where that is unset, a key made at the first start and stored in the encrypted
database.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

import database
from database import db
from errors import BadInput, NotAuthenticated
from models import store_value, stored_value
from settings import Settings

log = logging.getLogger(__name__)

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def api_key(settings: Settings) -> str | None:
    """The key that requests must carry; None in dev mode without a key. Opens a database scope."""
    if settings.api_key:
        return settings.api_key
    if settings.dev_mode:
        if not settings.binds_to_loopback:
            log.warning(
                "DEV MODE WITHOUT A KEY on %s: anyone who reaches it can read and delete everything",
                settings.bind,
            )
        return None
    with database.scope():
        return generated_api_key()


def generated_api_key() -> str:
    """The key where none is set: made by the first call and stored. Needs a scope."""
    with db.atomic():
        key: str | None = stored_value("api_key")
        if key is None:
            key = secrets.token_urlsafe(24)
            store_value("api_key", key)
    return key


def key_matches(authorization: str, key: str | None) -> bool:
    """Whether the header `authorization`, as WSGI gives it, carries `key`; always true where `key` is None.

    Digests are compared in constant time, so the duration reveals neither the key's content nor its length.
    Clients send a non-ASCII key as UTF-8 or Latin-1, so both are accepted.
    """
    if key is None:
        return True
    scheme, _, given = authorization.partition(" ")
    digest = hashlib.sha256(given.strip().encode("latin-1", "replace")).digest()
    spellings = (key.encode("utf-8", "surrogateescape"), key.encode("latin-1", "backslashreplace"))
    equal = [hmac.compare_digest(digest, hashlib.sha256(spelling).digest()) for spelling in spellings]
    return scheme.lower() == "bearer" and any(equal)


def check_without_key(headers: Headers, origins: Collection[str], *, reads_json: bool) -> None:
    """Refuse what foreign web pages can send, through a person's browser, to a service without a key.

    A page can send forms and text to any address (CSRF), and can reach this one under its own name (DNS
    rebinding). So the addressed host must be this machine, the browser must not report another site, and a
    JSON body (`reads_json`) must have its content type, which a browser sends to another site only after
    asking it. Pages of `origins` are allowed.

    Raises `NotAuthenticated`, or `BadInput` for the content type.
    """
    origin = headers.get("Origin")
    is_foreign = origin not in origins and (
        headers.get("Sec-Fetch-Site") == "cross-site" or (origin is not None and not _is_local(origin))
    )
    if is_foreign or not _is_local(f"http://{headers.get('Host', '')}"):
        raise NotAuthenticated(
            "A service without an API key answers requests to localhost only, and none of other websites."
        )
    content_type = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if reads_json and content_type != "application/json":
        raise BadInput("body: must have the content type application/json")


def _is_local(address: str) -> bool:
    """Whether the host of a URL is this machine."""
    try:
        parts = urlsplit(address)
        return parts.hostname in LOCAL_HOSTS and parts.username is None
    except ValueError:
        return False
