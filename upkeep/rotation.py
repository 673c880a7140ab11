"""Key rotation: the database key, the file keys and the master key; and switching encryption on or off.

A new database key means a new database file. Alone with the folder, all rows are exported into a file with
another name, under the new key; the copy is read back and compared; then the key ring is replaced, which
commits the rotation: before it, the old file is the database; after it, the new one. A run that dies in
between leaves a file that no key ring names, and a later start removes it. Requests wait meanwhile, about a
second for 10,000 photos.

Each file is sealed under a key of its own, which the database holds, so the file keys need not be rotated
with it. `seal_anew` rotates them as well: it writes each file again, one by one, while the service runs. The
new file has a new name; then its row is updated; the old file is deleted once no reader can still be about to
open it.
"""

import collections
import contextlib
import dataclasses
import itertools
import logging
import math
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import peewee
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
import models
from buckets import away
from buckets.s3 import Bucket, BucketAway
from database import Store, db
from errors import EncryptionDiffers, SnaploreError, StorageFull, Unreadable
from locks import PATIENCE, ServiceLock, named_lock
from models import Message, Photo
from settings import Settings
from spool import Spool, new_place
from upkeep import archive, moving, orphans
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
STORED = re.compile(r"[0-9a-f]{32}(\.thumbnail)?")  # names of pictures, attachments and spools
BATCH = 100  # rows whose files are sealed anew before the old files are deleted
BLOCK = 262_144  # bytes


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
    """Seal the key ring under another master key. Needs that no service runs, unless the data folder
    holds the master key.
    """
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
        _export(new, ring, lambda: progress("database", min(crypto.size_of(new), size), size))
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
    size = old.stat().st_size + crypto.size_of(old.with_name(f"{old.name}-wal"))
    if shutil.disk_usage(old.parent).free < size * ROOM:
        raise StorageFull(
            f"A second copy of the database needs {math.ceil(size * ROOM / 1_048_576)} MB, and less is free."
        )


def _flush_and_check(source: SqlCipherDatabase, new: Path, ring: crypto.KeyRing) -> None:
    """Flush `new` and compare it with what `source` reads. Raises `Unreadable` when they differ."""
    crypto.sync_file(new)
    crypto.sync_file(new.parent)
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
    crypto.sync_file(old.parent)


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


# ------------------------------------------------------------------------------------------------------ files


class _Kind(NamedTuple):
    """Rows that own files: the folder of the files, and the columns for their generation and size."""

    name: str  # plural, as the progress bar shows it
    one: str  # singular
    folder: str
    generation: peewee.Field
    bytes: peewee.Field  # of all files of a row, on disk

    @property
    def files(self) -> tuple[models.FileFields, ...]:
        return models.FILES[self.generation.model]

    @property
    def id(self) -> peewee.Field:
        number: peewee.Field = self.generation.model.id
        return number

    @property
    def rows(self) -> "peewee.ModelSelect[Any]":
        """The rows that have files, with only the columns that resealing needs."""
        columns = (
            self.id,
            self.generation,
            *(column for fields in self.files for column in (fields.path, fields.key)),
            *(fields.away for fields in self.files if fields.away is not None),
        )
        rows: peewee.ModelSelect[Any] = self.generation.model.select(*columns)
        return rows.where(self.generation.is_null(False))


_KINDS = (
    _Kind("pictures", "picture", "photos", Photo.key_generation, Photo.disk_bytes),
    _Kind(
        "attachments", "attachment", "attachments", Message.attachment_generation, Message.attachment_bytes
    ),
)


@dataclasses.dataclass
class SealedAnew:
    """Numbers of photos and attachments."""

    done: int = 0
    unreadable: int = 0  # lost or damaged, and therefore unchanged


def seal_anew(progress: Progress, *, only_unlike: bool = False) -> SealedAnew:
    """Write every file of an earlier generation again, sealed under a new key, or unsealed where encryption
    is off.

    Opens its own short scopes, may run while the service runs, and continues where an earlier run ended. With
    `only_unlike`, it writes only files whose state differs from the folder's: sealed files of an unencrypted
    folder, or the reverse.
    """
    result = SealedAnew()
    with database.scope():
        generation, encrypted = database.store().ring.generation, database.store().encrypted
    bucket = away.bucket(database.store().settings)
    for kind in _KINDS:
        due = kind.generation < generation
        if only_unlike:
            due &= kind.files[0].key.is_null(encrypted)
        for rows, report in _batches(kind, due, progress):
            replaced: list[Path] = []
            for row in rows:
                try:
                    replaced += _seal_row_anew(kind, row.id, bucket)
                    result.done += 1
                except (Unreadable, BucketAway) as problem:
                    log.warning("%s %d stays under its old key: %s", kind.one, row.id, problem.detail)
                    result.unreadable += 1
                report()
            _remove(replaced)
    if only_unlike and encrypted:
        _remove_unsealed()
    return result


def _remove_unsealed() -> None:
    """Remove the unsealed files of Snaplore that no row names.

    A run that was killed has left them, and nobody else writes such a file into an encrypted folder. Clean-up
    would leave them readable for a day.
    """
    folder = database.store().folder
    places = [(folder / kind.folder).glob("*/*") for kind in _KINDS]
    places.append((folder / orphans.FOLDER).glob("*/*/*/*"))
    for path in itertools.chain((folder / "spool").iterdir(), *places):
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            if STORED.fullmatch(path.name) and path.is_file() and crypto.is_unsealed(path):
                with database.scope():
                    if not _is_named(str(path.relative_to(folder))):
                        path.unlink()


def _is_named(name: str) -> bool:
    return any(kind.rows.where(fields.path == name).exists() for kind in _KINDS for fields in kind.files)


def _batches(
    kind: _Kind, where: peewee.Expression | bool, progress: Progress
) -> Iterator[tuple[list[Any], Callable[[], None]]]:
    """Batches of rows that own files, each read in a scope of its own, with a function to call after each
    row.
    """
    with database.scope():
        total = kind.rows.where(where).count()
    seen = itertools.count(1)

    def report() -> None:
        done = next(seen)
        progress(kind.name, done, max(total, done))

    for rows in database.batches(kind.rows.where(where), kind.id, BATCH):
        yield rows, report


def _seal_row_anew(kind: _Kind, row_id: int, bucket: Bucket | None) -> list[Path]:
    """Rewrite the files of one row; returns its previous files, or none if the row was deleted or changed
    meanwhile. An original that is in the bucket stays there, under its new name.
    """
    with contextlib.ExitStack() as readers:
        fetched = _fetched(kind, row_id, bucket, readers)
        with database.scope():  # around both: while a row exists, so do its files
            store = database.store()
            row = kind.rows.where(kind.id == row_id).first()
            if row is None:
                return []
            old = [store.folder / getattr(row, fields.path.name) for fields in kind.files]
            keys = [getattr(row, fields.key.name) for fields in kind.files]
            old_path = str(old[0].relative_to(store.folder))
            is_away = fetched is not None and not old[0].exists()
            places = [fetched, *old[1:]] if fetched is not None and is_away else old
            sources = [
                readers.enter_context(crypto.open_sealed(path, key))
                for path, key in zip(places, keys, strict=True)
            ]
            generation = store.ring.generation
        place = new_place(store.folder / kind.folder)
        new = [place.with_name(place.name + path.suffix) for path in old]
        replaced = 0
        try:
            changed: dict[peewee.Field, object] = {kind.generation: generation}
            for fields, source, target in zip(kind.files, sources, new, strict=True):
                changed |= {
                    fields.path: str(target.relative_to(store.folder)),
                    fields.key: _sealed(source, target),
                }
            crypto.sync_file(place.parent)
            changed[kind.bytes] = sum(path.stat().st_size for path in new)
            if kind.id.model is Photo:
                changed |= {Photo.away: away.HERE, Photo.away_bytes: 0}
            if is_away and bucket is not None:
                size = new[0].stat().st_size
                changed |= {Photo.away: away.AWAY, Photo.away_bytes: size, kind.bytes: new[1].stat().st_size}
                moving.verified(bucket, str(new[0].relative_to(store.folder)), new[0])
            with database.scope(), db.atomic():
                unchanged = kind.files[0].path == old_path
                replaced = kind.id.model.update(changed).where(kind.id == row_id, unchanged).execute()
        finally:
            for path in new[:1] if replaced and is_away else [] if replaced else new:
                path.unlink(missing_ok=True)
            if is_away and bucket is not None and not replaced:
                with contextlib.suppress(BucketAway):
                    bucket.delete(str(new[0].relative_to(store.folder)))
    return old if replaced else []


def _fetched(kind: _Kind, row_id: int, bucket: Bucket | None, opened: contextlib.ExitStack) -> Path | None:
    """A temporary copy of the original of a row that is only in the bucket; None for all others."""
    with database.scope():
        row = kind.rows.where(kind.id == row_id).first()
        spool, folder = database.store().spool, database.store().folder
    if not isinstance(row, Photo) or not row.away or bucket is None or (folder / row.original_path).exists():
        return None
    place = spool / secrets.token_hex(16)
    opened.callback(place.unlink, missing_ok=True)
    away.fetch_to(place, row.original_path, row.file_key, bucket)
    return place


def _sealed(source: BinaryIO, target: Path) -> bytes | None:
    """Write `target` from `source` and flush it; returns its key, None where encryption is off."""
    with contextlib.closing(Spool(sys.maxsize)) as spool:
        shutil.copyfileobj(source, spool, BLOCK)
        return spool.keep(target)


def _remove(paths: list[Path]) -> None:
    """Delete files that no row names any more. A reader that has opened one reads on to its end."""
    with database.store().lock.exclusive():
        pass  # waits for every scope that may have read the earlier rows
    for path in paths:
        path.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------- status


class Status(NamedTuple):
    """What `./snaplore keys status` reports about files."""

    generations: dict[int, int]  # generation -> number of files
    unreadable: list[str]  # paths below the data folder, with the rows that name them


def status(progress: Progress) -> Status:
    """Open every file, which authenticates its last chunk: this finds lost and truncated files and wrong
    keys. Opens its own scopes.
    """
    generations: collections.Counter[int] = collections.Counter()
    unreadable: list[str] = []
    for kind in _KINDS:
        for rows, report in _batches(kind, True, progress):
            with database.scope():
                for row in rows:
                    for path, key, *_ in kind.files:
                        place = getattr(row, path.name)
                        generations[getattr(row, kind.generation.name)] += 1
                        here = database.store().folder / place
                        if _is_away(row, path, here):  # `check` looks whether it is in the bucket
                            continue
                        if not _opens(here, getattr(row, key.name)) and _is_current(kind, row, path):
                            unreadable.append(f"{place} ({kind.one} {row.id})")
                    report()
    return Status(dict(generations), unreadable)


def _is_away(row: Photo | Message, path: peewee.Field, here: Path) -> bool:
    """Whether this is an original that is only in the bucket."""
    return isinstance(row, Photo) and path is Photo.original_path and row.away > 0 and not here.exists()


def _is_current(kind: _Kind, row: Photo | Message, path: peewee.Field) -> bool:
    """Whether the row still names the file: the row may have been deleted, or its file sealed anew,
    meanwhile.
    """
    return kind.rows.where(kind.id == row.id, path == getattr(row, path.name)).exists()


def _opens(path: Path, key: bytes | None) -> bool:
    try:
        crypto.open_sealed(path, key).close()
    except SnaploreError:
        return False
    return True
