"""Key rotation: the database key, the file keys and the master key; and switching encryption on or off.

A new database key means a new database file. Alone with the folder, all rows are exported into a file with
another name, under the new key; the copy is read back and compared; then the key ring is replaced, which
commits the rotation: before it, the old file is the database; after it, the new one. A run that dies in
between leaves a file that no key ring names, and a later start removes it. Requests wait meanwhile, about a
second for 10,000 photos.

The keys of files, which the database holds, are the concern of `upkeep/resealing.py`.
"""

import contextlib
import dataclasses
import logging
import math
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
import disk
from database import Store, db
from errors import EncryptionDiffers, StorageFull, Unreadable
from locks import PATIENCE, ServiceLock, named_lock
from settings import Settings
from upkeep import archive
from upkeep.progress import Progress

log = logging.getLogger(__name__)

# A file that a crash leaves incomplete is deleted, so it needs neither journal nor flushes.
UNPROTECTED = (("cipher_log_level", "NONE"), ("journal_mode", "OFF"), ("synchronous", "OFF"))
# Instructions of SQLite's virtual machine between two progress reports of the export: a hundredth of a
# second.
STEPS = 2_000
# The free space that the export needs, as a multiple of the database's size: the new file is at most as
# large.
ROOM = 1.1


def is_due(settings: Settings, *, now: datetime) -> bool:
    """Whether the database key has reached the age at which it is rotated."""
    return database.store().encrypted and now >= due_at(settings)


def due_at(settings: Settings) -> datetime:
    """When the database key reaches that age, UTC."""
    return database.store().ring.created_at + timedelta(days=settings.key_rotation_days)


def rotate(progress: Progress, *, now: datetime) -> None:
    """Move the database into a new file under a new key. Others wait meanwhile.

    Needs that no scope of this process is open. Raises `Unavailable` during a backup or another rotation, or
    when other processes do not leave the folder in time; and `StorageFull` when there is no room for a second
    database. After any failure the old state is complete.
    """
    store = database.store()
    jobs = store.folder / "jobs"
    only = named_lock(jobs, database.ROTATION, PATIENCE, busy="The database key is being replaced.")
    # A backup holds the folder for seconds, and requests that arrive meanwhile would wait for both.
    backup = named_lock(jobs, "backup", 0, busy="A backup is being made.")
    with only, backup, store.lock.exclusive():
        store.follow()
        ring = crypto.new_key_ring(encrypted=store.encrypted, now=now, after=store.ring)
        _move_database(store, ring, progress)


def apply_encryption(settings: Settings, progress: Progress, *, now: datetime) -> bool:
    """Encrypt or decrypt the database as the settings say; returns False when it is in that state already.

    Afterwards the folder is open, and `seal_anew` converts the files. Raises `StartRefused` when a service
    runs or a key is missing.
    """
    with contextlib.suppress(EncryptionDiffers):
        database.open_store(settings)
        return False
    with contextlib.closing(ServiceLock(settings.data_dir)):
        present = dataclasses.replace(settings, encryption=not settings.encryption)
        store = database.open_store(present, alone=True)
        with store.lock.exclusive():
            path, key = store.master_key_path, None
            if settings.encryption:
                key = crypto.read_master_key(path) if path.exists() else crypto.make_master_key(path)
            key_store = crypto.KeyStore(store.keys, key)
            ring = crypto.new_key_ring(encrypted=settings.encryption, now=now, after=store.ring)
            _move_database(store, ring, progress, key_store)
        database.open_store(settings, alone=True)
    return True


def change_master_key(key: bytes) -> None:
    """Seal the key ring under another master key. Where that is elsewhere, no service may run."""
    store = database.store()
    with store.lock.exclusive():
        store.follow()
        store.replace_master_key(key)


# --------------------------------------------------------------------------------------------------- database


def _move_database(
    store: Store, ring: crypto.KeyRing, progress: Progress, key_store: crypto.KeyStore | None = None
) -> None:
    """Export the database, commit the new key ring and remove the old file. Needs the lock exclusively."""
    old, new = store.database, store.folder / ring.database_file
    _need_room(old)
    size = old.stat().st_size
    # Over an earlier connection the export fails when another process has vacuumed since: "database schema
    # has changed".
    database.close_connections()
    db.connect()
    try:
        # Moves the write-ahead log into the old file, so that truncating that file leaves nothing.
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        _export(new, ring, lambda: progress("database", min(disk.size_of(new), size), size))
        _flush_and_check(db, new, ring)
    except BaseException:
        _remove_database(new)
        raise
    finally:
        db.manual_close()
    # If this fails half-way, the key ring on disk decides which file is the database; the next start removes
    # the other one.
    store.replace_ring(ring, key_store)
    _remove_old(old)
    progress("database", size, size)


def _export(new: Path, ring: crypto.KeyRing, report: Callable[[], None]) -> None:
    """Write the rows of the open database to `new`."""
    db.execute_sql("ATTACH DATABASE ? AS fresh KEY ?", (str(new), database.passphrase(ring)))
    try:
        # Set before anything is written.
        for pragma, value in (("auto_vacuum", 2), *UNPROTECTED[1:]):
            db.execute_sql(f"PRAGMA fresh.{pragma} = {value}").fetchall()
        connection = db.connection()
        connection.set_progress_handler(report, STEPS)
        try:
            db.execute_sql("SELECT sqlcipher_export('fresh')").fetchall()
        finally:
            connection.set_progress_handler(None, 0)
        version = db.execute_sql("PRAGMA main.user_version").fetchone()[0]
        db.execute_sql(f"PRAGMA fresh.user_version = {int(version)}")
    finally:
        db.execute_sql("DETACH DATABASE fresh")


def _need_room(old: Path) -> None:
    size = old.stat().st_size + disk.size_of(old.with_name(f"{old.name}-wal"))
    if shutil.disk_usage(old.parent).free < size * ROOM:
        raise StorageFull(
            f"A second copy of the database needs {math.ceil(size * ROOM / 1_048_576)} MB, and less is free."
        )


def _flush_and_check(source: SqlCipherDatabase, new: Path, ring: crypto.KeyRing) -> None:
    """Flush `new` and compare it with what `source` reads. Raises `Unreadable` when they differ."""
    disk.sync_file(new)
    disk.sync_file(new.parent)
    with archive.opened(new, ring) as copy:  # opened again, so that the check reads the file
        # A page that passes its authentication is the page that was written. SQLite's own check compares
        # every index with its table: it would find nothing more and takes twice as long as all the rest.
        # Without encryption it is the only check.
        check = "cipher_integrity_check" if ring.database_key else "integrity_check"
        damages = [row[0] for row in copy.execute_sql(f"PRAGMA {check}").fetchall() if row[0] != "ok"]
        if damages or _contents(source) != _contents(copy):
            raise _incomplete("; ".join(damages[:3]) or "rows are missing")


def _incomplete(difference: str) -> Unreadable:
    log.error("the copy of the database differs from the original: %s", difference)
    return Unreadable(
        "The database could not be copied completely and stays as it is. Run `./snaplore check`."
    )


def _remove_old(old: Path) -> None:
    # Idle threads of the service keep the old file open until their next request, which would keep its space
    # allocated: truncate it.
    with contextlib.suppress(FileNotFoundError):  # a restore has replaced the folder's state since
        os.truncate(old, 0)
    _remove_database(old)
    disk.sync_file(old.parent)


def _contents(base: SqlCipherDatabase) -> tuple[list[tuple[str, str, str, str]], dict[str, int]]:
    """The definitions of tables, indexes and triggers, and the number of rows of each table."""
    definitions: list[tuple[str, str, str, str]] = base.execute_sql(
        "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3"
    ).fetchall()
    tables = [name for kind, name, _table, _sql in definitions if kind == "table"]
    return definitions, {
        name: base.execute_sql(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
        for name in tables
    }


def _remove_database(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
