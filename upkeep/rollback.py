"""Rollback detection: notices a database that is older than the key ring beside it, or the reverse.

SQLCipher authenticates each page with its place, but not with its age. An older file or page that was written
under the same key opens like the present one. So the starts of the service are counted twice, in a row of the
database and in the key ring. The database's count is written first. A start that is killed in between leaves
it one ahead, which the next start puts right; any other difference means that one of the two was put back.

After such a difference no start is counted, so that the evidence stays until a person accepts the data as it
is. The data stays readable meanwhile: locking the owner out would help nobody.

This notices whole files, and the page with the stored settings, from before the last start. It does not
notice other single pages, nor a key ring that is put back together with the database.
"""

import contextlib
import logging
from collections.abc import Iterator

import msgspec

import database
import models
from database import Store, db
from errors import SnaploreError

log = logging.getLogger(__name__)

COUNT = "starts"  # name of the stored value
ADVICE = (
    "If you did that, `./snaplore check --repair` accepts the data as it is; if you did not, restore a "
    "backup (./snaplore restore)"
)


def count_start() -> None:
    """Count a start of the service. Needs that no scope is open.

    Logs an error instead when the database and the key ring are not of the same time, and a warning when the
    count cannot be written, as on a full disk.
    """
    store = database.store()
    try:
        with store.lock.exclusive():
            with _connection(store):
                if problem := difference():
                    log.error("%s. %s.", problem, ADVICE)
                    return
                starts = store.ring.starts + 1
                models.store_value(COUNT, starts)
            store.replace_ring(msgspec.structs.replace(store.ring, starts=starts))
    except (SnaploreError, OSError, *database.DATABASE_ERRORS) as failure:
        known = database.known_failure(failure)
        log.warning(
            "this start is not counted, so a database from before it would not be noticed: %s",
            known.detail if known else failure,
        )


def difference() -> str:
    """How the database and the key ring differ in age; empty when they do not. Needs a connection."""
    stored, ring = models.stored_value(COUNT, 0), database.store().ring.starts
    if stored < ring:
        return (
            f"the database, or its page with the settings, was put back: it is of start {stored} of the "
            f"service, the key ring of start {ring}"
        )
    if stored > ring + 1:
        return f"the key ring was put back: it is of start {ring} of the service, the database of {stored}"
    return ""


def accept() -> None:
    """Accept the database and the key ring as the present ones. Needs that no scope is open."""
    store = database.store()
    with store.lock.exclusive():
        with _connection(store):
            starts = max(models.stored_value(COUNT, 0), store.ring.starts) + 1
            models.store_value(COUNT, starts)
        store.replace_ring(msgspec.structs.replace(store.ring, starts=starts))


@contextlib.contextmanager
def _connection(store: Store) -> Iterator[None]:
    """A connection to the present database. Needs the lock exclusively."""
    store.follow()
    db.connect()
    try:
        yield
    finally:
        db.manual_close()
