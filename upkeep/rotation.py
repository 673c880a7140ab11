"""Keys that turn: a new key for the database, for the files, and for what holds the two; and encryption
switched on or off.

A new database key means a new database: everything is exported into a file of another name under the key that
only this process has yet, and what it exported is read back and compared. Then the key ring is replaced,
which is the one moment that counts. Before it the old file is the database, after it the new one; whatever
ends this in between leaves a file that no ring names, and the next start removes it. Meanwhile nobody else
may use the database, so requests wait; those that would wait too long get a 503.

Files are sealed under keys of their own that the database holds, so they need not turn with it. Those who
want them turned as well (`seal_anew`) get each written once more, one by one beside the running service: a
new file under a new name, then its row, and the old file goes when nobody can be on the way to it any more.
"""

import collections
import contextlib
import dataclasses
import itertools
import logging
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import peewee

import crypto
import database
import models
from database import Store, db
from errors import EncryptionDiffers, SnaploreError, StorageFull, Unreadable
from locks import ServiceLock, named_lock
from models import Message, Photo
from settings import Settings
from spool import Spool, new_place
from upkeep.progress import Progress

log = logging.getLogger(__name__)

STEPS = (
    2_000  # of SQLite's virtual machine between two looks at how far the export is: a hundredth of a second
)
# times the database's size that must be free: the new file is a little smaller than the old one, or as large
ROOM = 1.1
BATCH = 100  # rows whose files are sealed anew before the old ones go
BLOCK = 262_144  # bytes


def is_due(settings: Settings, *, now: datetime) -> bool:
    """Whether the database key has reached the age at which it turns."""
    return database.store().encrypted and now >= due_at(settings)


def due_at(settings: Settings) -> datetime:
    """When the database key has reached that age."""
    return database.store().ring.created_at + timedelta(days=settings.key_rotation_days)


def rotate(progress: Progress, *, now: datetime) -> None:
    """Put the database under a new key, in a new file; alone with the data folder while it lasts.

    Raises `Unavailable` when others stay in the folder, and `StorageFull` when there is no room for a second
    database; then, and after every other failure, the old state is whole.
    """
    store = database.store()
    # A backup stays in the folder for seconds, and whoever came after this one would wait for both.
    backup = named_lock(store.folder / "jobs", "backup", 0, busy="A backup is being made.")
    with backup, store.lock.exclusive():
        store.follow()
        _move_database(
            store,
            crypto.new_key_ring(encrypted=store.encrypted, now=now, generation=store.ring.generation + 1),
            progress,
        )


def apply_encryption(settings: Settings, progress: Progress, *, now: datetime) -> bool:
    """Encrypt or decrypt the database as the settings say, while no service runs; False when it is that way
    already.

    The folder is open then, and `seal_anew` brings the files after it. Raises `StartRefused` for a running
    service and lost keys.
    """
    with contextlib.suppress(EncryptionDiffers):
        database.open_store(settings)
        return False
    with contextlib.closing(ServiceLock(settings.data_dir)):
        store = database.open_store(dataclasses.replace(settings, encryption=not settings.encryption))
        with store.lock.exclusive():
            key_store = crypto.KeyStore(store.keys, _master_key(store) if settings.encryption else None)
            ring = crypto.new_key_ring(
                encrypted=settings.encryption, now=now, generation=store.ring.generation + 1
            )
            _move_database(store, ring, progress, key_store)
        database.open_store(settings)
    return True


def change_master_key(key: bytes) -> None:
    """Seal the key ring under another master key. Beside a running service only when that key is kept in the
    data folder.
    """
    store = database.store()
    with store.lock.exclusive():
        store.follow()
        store.replace_master_key(key)


def _master_key(store: Store) -> bytes:
    path = store.master_key_path
    return crypto.read_master_key(path) if path.exists() else crypto.make_master_key(path)


# --------------------------------------------------------------------------------------------------- database


def _move_database(
    store: Store, ring: crypto.KeyRing, progress: Progress, key_store: crypto.KeyStore | None = None
) -> None:
    """Needs the lock exclusively."""
    old, new = store.database, store.folder / ring.database_file
    size = old.stat().st_size
    if shutil.disk_usage(store.folder).free < size * ROOM:
        raise StorageFull(
            f"A second database needs {math.ceil(size * ROOM / 1_048_576)} MB, and less is free."
        )
    db.connect()
    try:
        # What is still in the write-ahead log goes into the old file, which so can be cut to nothing below.
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        _export(new, ring, lambda: progress("database", min(crypto.size_of(new), size), size))
    except BaseException:
        _remove_database(new)
        raise
    finally:
        db.manual_close()
    # If this fails half-way, the ring on the disk decides, and the next start removes the file that it does
    # not name.
    store.replace_ring(ring, key_store)
    progress("database", size, size)
    # Idle threads of the service have it open until their next request, and its room on the disk would be
    # taken until then.
    os.truncate(old, 0)
    _remove_database(old)
    crypto.sync_file(old.parent)


def _export(new: Path, ring: crypto.KeyRing, report: Callable[[], None]) -> None:
    """Write the open database to `new` under the key of `ring`, flushed and compared. Raises `Unreadable`
    when the two differ.
    """
    with _attached(new, ring):
        # Before anything is written. A file that a crash leaves half written is thrown away, so it needs
        # neither journal nor flushes.
        for pragma in ("auto_vacuum = 2", "journal_mode = OFF", "synchronous = OFF"):
            db.execute_sql(f"PRAGMA fresh.{pragma}").fetchall()
        connection = db.connection()
        connection.set_progress_handler(report, STEPS)
        try:
            db.execute_sql("SELECT sqlcipher_export('fresh')").fetchall()
        finally:
            connection.set_progress_handler(None, 0)
        version = db.execute_sql("PRAGMA main.user_version").fetchone()[0]
        db.execute_sql(f"PRAGMA fresh.user_version = {int(version)}")
    crypto.sync_file(new)
    crypto.sync_file(new.parent)
    with _attached(new, ring):  # again, so that it is read from the file
        # An authentic page is the one that was written. SQLite's own check, of every index against its table,
        # would tell no more of the writing, and keeps everybody waiting for twice as long as all the rest;
        # but it is all there is where nothing authenticates.
        check = "cipher_integrity_check" if ring.database_key else "integrity_check"
        damages = [row[0] for row in db.execute_sql(f"PRAGMA fresh.{check}").fetchall() if row[0] != "ok"]
        if damages or _contents("main") != _contents("fresh"):
            log.error(
                "the exported database is not what it was exported from: %s",
                "; ".join(damages[:3]) or "rows are missing",
            )
            raise Unreadable("The database could not be copied whole, and stays as it is. See `flask check`.")


@contextlib.contextmanager
def _attached(path: Path, ring: crypto.KeyRing) -> Iterator[None]:
    db.execute_sql("ATTACH DATABASE ? AS fresh KEY ?", (str(path), database.passphrase(ring)))
    try:
        yield
    finally:
        db.execute_sql("DETACH DATABASE fresh")


def _contents(schema: str) -> tuple[list[tuple[str, str, str, str]], dict[str, int]]:
    """The definitions, and the number of rows of each table."""
    definitions = db.execute_sql(
        f"SELECT type, name, tbl_name, sql FROM {schema}.sqlite_master ORDER BY 1, 2, 3"  # noqa: S608
    ).fetchall()
    tables = [name for kind, name, _table, _sql in definitions if kind == "table"]
    return definitions, {
        name: db.execute_sql(f'SELECT count(*) FROM {schema}."{name}"').fetchone()[0]  # noqa: S608
        for name in tables
    }


def _remove_database(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------------------ files


class _Kind(NamedTuple):
    """Rows that own files: where these lie, and the columns of their generation and of all their bytes."""

    name: str  # of all of them, as the progress shows it
    one: str  # what a single one is called
    folder: str
    generation: peewee.Field
    bytes: peewee.Field

    @property
    def files(self) -> tuple[models.FileFields, ...]:
        return models.FILES[self.generation.model]

    @property
    def id(self) -> peewee.Field:
        number: peewee.Field = self.generation.model.id
        return number

    @property
    def rows(self) -> "peewee.ModelSelect[Any]":
        """Those that have files, with these columns only."""
        columns = (
            self.id,
            self.generation,
            *(column for fields in self.files for column in (fields.path, fields.key)),
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
    unreadable: int = 0  # files that are lost or damaged: they stay as they are


def seal_anew(progress: Progress, *, only_unlike: bool = False) -> SealedAnew:
    """Write every file of an earlier generation once more, sealed under a new key, or unsealed where
    encryption is off.

    Opens its own short scopes, works beside the service, and goes on where an earlier run ended. With
    `only_unlike` just what is sealed where the folder is not encrypted, or the other way round.
    """
    result = SealedAnew()
    with database.scope():
        generation, encrypted = database.store().ring.generation, database.store().encrypted
    for kind in _KINDS:
        due = kind.generation < generation
        if only_unlike:
            due &= kind.files[0].key.is_null(encrypted)
        for rows, report in _batches(kind, due, progress):
            replaced: list[Path] = []
            for row in rows:
                try:
                    replaced += _seal_row_anew(kind, row.id)
                    result.done += 1
                except Unreadable as problem:
                    log.warning("%s %d stays under its old key: %s", kind.one, row.id, problem.detail)
                    result.unreadable += 1
                report()
            _remove(replaced)
    return result


def _batches(
    kind: _Kind, where: peewee.Expression | bool, progress: Progress
) -> Iterator[tuple[list[Any], Callable[[], None]]]:
    """The rows that own files, a scope for each batch, and what to call for each row that is done."""
    with database.scope():
        total = kind.rows.where(where).count()
    seen = itertools.count(1)

    def report() -> None:
        done = next(seen)
        progress(kind.name, done, max(total, done))

    for rows in database.batches(kind.rows.where(where), kind.id, BATCH):
        yield rows, report


def _seal_row_anew(kind: _Kind, row_id: int) -> list[Path]:
    """Returns the files that the row had before; none when it is gone or has changed meanwhile."""
    with contextlib.ExitStack() as readers:
        with database.scope():  # around both: the files of a row that is there are there
            store = database.store()
            row = kind.rows.where(kind.id == row_id).first()
            if row is None:
                return []
            old = [store.folder / getattr(row, fields.path.name) for fields in kind.files]
            keys = [getattr(row, fields.key.name) for fields in kind.files]
            sources = [
                readers.enter_context(crypto.open_sealed(path, key))
                for path, key in zip(old, keys, strict=True)
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
            with database.scope(), db.atomic():
                unchanged = kind.files[0].path == str(old[0].relative_to(store.folder))
                replaced = kind.id.model.update(changed).where(kind.id == row_id, unchanged).execute()
        finally:
            if not replaced:
                for path in new:
                    path.unlink(missing_ok=True)
    return old if replaced else []


def _sealed(source: BinaryIO, target: Path) -> bytes | None:
    """Write `target` from `source`, flushed; returns its key."""
    with contextlib.closing(Spool(sys.maxsize)) as spool:
        shutil.copyfileobj(source, spool, BLOCK)
        return spool.keep(target)


def _remove(paths: list[Path]) -> None:
    """Once nobody reads a row that names them: who has opened them by then reads on to the end."""
    with database.store().lock.exclusive():
        pass
    for path in paths:
        path.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------- status


class Status(NamedTuple):
    """What `flask keys status` tells of files: how many of each generation, and which do not open."""

    generations: dict[int, int]
    unreadable: list[str]


def status(progress: Progress) -> Status:
    """Look at every file: opening one authenticates its end, so that a lost, cut or wrongly keyed one is
    found. Opens its own scopes.
    """
    generations: collections.Counter[int] = collections.Counter()
    unreadable: list[str] = []
    for kind in _KINDS:
        for rows, report in _batches(kind, True, progress):
            with database.scope():
                for row in rows:
                    for path, key, _ in kind.files:
                        place = getattr(row, path.name)
                        generations[getattr(row, kind.generation.name)] += 1
                        if not _opens(
                            database.store().folder / place, getattr(row, key.name)
                        ) and _is_current(kind, row, path):
                            unreadable.append(f"{place} ({kind.one} {row.id})")
                    report()
    return Status(dict(generations), unreadable)


def _is_current(kind: _Kind, row: Photo | Message, path: peewee.Field) -> bool:
    """Whether the row still names the file: it may have been deleted, or sealed anew, since it was read."""
    return kind.rows.where(kind.id == row.id, path == getattr(row, path.name)).exists()


def _opens(path: Path, key: bytes | None) -> bool:
    try:
        crypto.open_sealed(path, key).close()
    except SnaploreError:
        return False
    return True
