"""Who may do what: the API key of the owner.

It is the one that is set, or one that is made at the first start and kept in the encrypted database.
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
    """The key that requests must carry; None in dev mode without one. Made at the first start when none is
    set.
    """
    if settings.api_key:
        return settings.api_key
    if settings.dev_mode:
        if not settings.binds_to_loopback:
            log.warning(
                "DEV MODE WITHOUT A KEY on %s: everybody who reaches this address can read and delete everything",
                settings.bind,
            )
        return None
    with database.scope():
        return generated_api_key()


def generated_api_key() -> str:
    """The key of a service for which none was set: made at the first call, the same ever after."""
    with db.atomic():
        key: str | None = stored_value("api_key")
        if key is None:
            key = secrets.token_urlsafe(24)
            store_value("api_key", key)
    return key


def key_matches(authorization: str, key: str | None) -> bool:
    """Whether the header `authorization`, as WSGI gives it, carries `key`; None lets everybody in.

    In constant time, over digests, so that neither content nor length tells. Clients send a non-ASCII key as
    UTF-8 or Latin-1.
    """
    if key is None:
        return True
    scheme, _, given = authorization.partition(" ")
    digest = hashlib.sha256(given.strip().encode("latin-1", "replace")).digest()
    spellings = (key.encode("utf-8", "surrogateescape"), key.encode("latin-1", "backslashreplace"))
    equal = [hmac.compare_digest(digest, hashlib.sha256(spelling).digest()) for spelling in spellings]
    return scheme.lower() == "bearer" and any(equal)
