"""Rollback detection: notices a database that is older than the key ring beside it, or the reverse.

SQLCipher authenticates each page with its place, but not with its age. An older file or page that was written
under the same key opens like the present one. So the starts of the service are counted twice, in a row of the
database and in the key ring. The database's count is written first. A start that is killed in between leaves
it one ahead, which the next start puts right; any other difference means that one of the two was put back.

A database that was put back, or is that of another folder, is refused at the start (`database.open_store`):
whatever a job removed by it would be lost for good. A key ring that was put back opens the newest data, so
the service goes on. But no start is counted, so that the evidence stays until a person accepts the data as it
is, and no job removes anything until then.

This notices whole files, and the page with the stored settings, from before the last start. It does not
notice other single pages, nor a key ring that is put back together with the database.
"""

import contextlib
import logging
import secrets
from collections.abc import Iterator

import msgspec
import peewee

import database
import models
from crypto import KeyRing
from database import FOLDER, STARTS, Store, db
from errors import SnaploreError

log = logging.getLogger(__name__)


def count_start() -> None:
    """Count a start of the service. Needs that no scope is open.

    Logs an error instead when the database and the key ring are not of the same time, and a warning when the
    count cannot be written, as on a full disk.
    """
    store = database.store()
    try:
        with store.lock.exclusive():
            with _connection(store):
                if problem := database.difference():
                    log.error("%s. %s.", problem, database.ADVICE)
                    return
                ring = _written(db, store.ring, store.ring.starts + 1)
            store.replace_ring(ring)
    except (SnaploreError, OSError, *database.DATABASE_ERRORS) as failure:
        known = database.known_failure(failure)
        log.warning(
            "this start is not counted, so a database from before it would not be noticed: %s",
            known.detail if known else failure,
        )


def accept() -> None:
    """Accept the database and the key ring as the present ones. Needs that no scope is open."""
    store = database.store()
    with store.lock.exclusive():
        with _connection(store):
            ring = _written(db, store.ring, max(models.stored_value(STARTS, 0), store.ring.starts) + 1)
        store.replace_ring(ring)


def of_one_time(copy: peewee.Database, ring: KeyRing) -> KeyRing:
    """Let the open database `copy` of a backup have the count of `ring`; returns the ring that has the same.

    They differ in a backup that was made while one of the two was put back. Whoever restores it accepts it.
    """
    starts, folder = models.stored_value(STARTS, 0, copy), models.stored_value(FOLDER, "", copy)
    is_of_one_time = (starts, folder) == (ring.starts, ring.folder)
    return ring if is_of_one_time else _written(copy, ring, ring.starts)


def _written(base: peewee.Database, ring: KeyRing, starts: int) -> KeyRing:
    """Write the count and the folder's name to the database; returns the ring that has the same."""
    folder = ring.folder or models.stored_value(FOLDER, base=base) or secrets.token_hex(8)
    models.store_value(STARTS, starts, base)
    models.store_value(FOLDER, folder, base)
    return msgspec.structs.replace(ring, starts=starts, folder=folder)


@contextlib.contextmanager
def _connection(store: Store) -> Iterator[None]:
    """A connection to the present database. Needs the lock exclusively."""
    store.follow()
    db.connect()
    try:
        yield
    finally:
        db.manual_close()
