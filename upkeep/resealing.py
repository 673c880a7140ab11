"""Sealing stored files anew: under a new key each, or unsealed where encryption is off; and which keys open
which files.

Each file is sealed under a key of its own, which the database holds, so these keys need not be rotated with
the database's. `seal_anew` rotates them as well: it writes each file again, one by one, while the service
runs. The new file has a new name; then its row is updated; the old file is deleted once no reader can still
be about to open it.
"""

import collections
import contextlib
import dataclasses
import itertools
import logging
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import peewee

import database
import disk
import models
from buckets import away
from buckets.s3 import Bucket, BucketAway
from database import db
from errors import SnaploreError, Unreadable
from models import Message, Photo
from spool import Spool, new_place
from upkeep import moving, orphans
from upkeep.progress import Progress

log = logging.getLogger(__name__)

STORED = re.compile(r"[0-9a-f]{32}(\.thumbnail)?")  # names of pictures, attachments and spools
BATCH = 100  # rows whose files are sealed anew before the old files are deleted
BLOCK = 262_144  # bytes


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
            if STORED.fullmatch(path.name) and path.is_file() and disk.is_unsealed(path):
                with database.scope():
                    if not _is_named(str(path.relative_to(folder))):
                        path.unlink()


def _is_named(name: str) -> bool:
    return any(kind.rows.where(fields.path == name).exists() for kind in _KINDS for fields in kind.files)


def _batches(
    kind: _Kind, where: peewee.Expression | bool, progress: Progress
) -> Iterator[tuple[list[Any], Callable[[], None]]]:
    """Batches of rows that own files, each read in its own scope, with a function to call after each row."""
    with database.scope():
        total = kind.rows.where(where).count()
    seen = itertools.count(1)

    def report() -> None:
        done = next(seen)
        progress(kind.name, done, max(total, done))

    for rows in database.batches(kind.rows.where(where), kind.id, BATCH):
        yield rows, report


def _seal_row_anew(kind: _Kind, row_id: int, bucket: Bucket | None) -> list[Path]:
    """Rewrite a row's files; returns the previous ones, or none if it has changed meanwhile."""
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
                readers.enter_context(disk.open_sealed(path, key))
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
            disk.sync_file(place.parent)
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
    """Open every file: this finds lost and truncated files and wrong keys. Opens its own scopes."""
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
    """Whether the row still names the file: it may have been deleted, or sealed anew, meanwhile."""
    return kind.rows.where(kind.id == row.id, path == getattr(row, path.name)).exists()


def _opens(path: Path, key: bytes | None) -> bool:
    try:
        disk.open_sealed(path, key).close()
    except SnaploreError:
        return False
    return True
