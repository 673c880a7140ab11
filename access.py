"""Authentication: the owner's API key.

It is `SNAPLORE_API_KEY` or, where that is unset, a key made at the first start and stored in the encrypted
database.
"""

import hashlib
import hmac
import logging
import secrets

import database
from database import db
from models import store_value, stored_value
from settings import Settings

log = logging.getLogger(__name__)


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
