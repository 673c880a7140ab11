"""Moving originals to the bucket of `SNAPLORE_ORIGINALS`, and back.

An original goes in steps, and a run may be killed between any two: the row says that it is on its way; the
sealed file is written to the bucket, and read back; once no reader can be about to open it here, the file is
deleted; the row says that it is there. Until the file is deleted here, it is complete here, and before that
the object was compared with it byte by byte.

A photo whose analysis or reading is still to come stays. So does one whose file is damaged, which `check`
reports. An object that no photo names any more, because its photo was deleted or its file sealed anew, is
listed by triggers and deleted by the next run.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import peewee

import database
import disk
import models
import photos
from buckets import away
from buckets.s3 import Bucket, BucketAway
from database import db
from errors import Unreadable
from locks import named_lock
from models import Analysis, ForgottenOriginal, Photo
from settings import Settings
from upkeep import archive
from upkeep.progress import Progress

BATCH = 16  # originals that are sent before the files here are deleted
CALLS = 4  # originals that are sent at once
FORGOTTEN = 100  # objects that are deleted in one go


class Moved(NamedTuple):
    done: int  # originals
    bytes: int  # of them
    left: int  # lost or damaged ones, which stay as they are
    deleted: int  # objects that no photo names any more


def move(settings: Settings, progress: Progress, *, now: datetime, seconds: float = math.inf) -> Moved | None:
    """Move the originals that are old enough to the bucket, as far as it gets in so many seconds; None when
    no bucket is set. Opens its own scopes, and runs beside the service.

    Raises `BucketAway`, and `Unavailable` when another run is in progress.
    """
    source = away.bucket(settings)
    if source is None:
        return None
    before = now - timedelta(days=settings.originals_after)
    due = Photo.select().where(
        Photo.away < away.AWAY, Photo.created_at < before, ~models.IN_TRASH, ~_awaits_work(settings)
    )
    with _alone(source):
        deleted = _delete_forgotten(source)
        ends = time.monotonic() + seconds
        done, size, left = _walk(due, lambda rows: _send(source, rows), progress, ends=ends)
    return Moved(done, size, left, deleted)


def bring_back(settings: Settings, progress: Progress) -> Moved | None:
    """Bring all originals back from the bucket, as long as the disk has room. Otherwise as `move`."""
    source = away.bucket(settings)
    if source is None:
        return None
    with _alone(source):
        there = Photo.select().where(Photo.away > away.HERE)
        done, size, left = _walk(there, lambda rows: _fetch(source, rows), progress)
        deleted = _delete_forgotten(source)
    return Moved(done, size, left, deleted)


def verified(bucket: Bucket, name: str, path: Path) -> None:
    """Write a file to the bucket, and compare what comes back. Raises `BucketAway`."""
    digest = bucket.put_file(name, path)
    if bucket.digest(name, most=path.stat().st_size) != digest:
        raise BucketAway(f"{bucket.host}: what comes back is not what was written", passing=False)


# ------------------------------------------------------------------------------------------------- one by one


class _Place(NamedTuple):
    """Where the original of a photo is after a step, and its size in bytes."""

    photo: Photo
    place: int
    size: int


def _walk(
    due: "peewee.ModelSelect[Any]",
    step: Callable[[list[Photo]], list[_Place]],
    progress: Progress,
    *,
    ends: float = math.inf,
) -> tuple[int, int, int]:
    """Apply `step` to batches of photos; returns the originals moved, their bytes, and those not moved."""
    with database.scope():
        total = due.count()
    done = size = seen = 0
    for rows in database.batches(due, Photo.id, BATCH):
        moved = step(rows)
        seen += len(rows)
        done += len(moved)
        size += sum(place.size for place in moved)
        progress("originals", seen, max(seen, total))
        if time.monotonic() > ends:
            break
    return done, size, seen - done


def _send(source: Bucket, rows: list[Photo]) -> list[_Place]:
    with database.scope():
        photos.set_moving([row.id for row in rows])
    folder = database.store().folder

    def sent(row: Photo) -> _Place | None:
        here = folder / row.original_path
        size = disk.size_of(here)
        if not here.exists():  # a run was killed after it had verified the object
            there = source.size(row.original_path)
            return _Place(row, away.AWAY, there) if there else None
        stored = archive.StoredFile(row.original_path, row.file_key, row.sha256)
        if row.file_key is None or not stored.is_intact(here):
            return None
        verified(source, row.original_path, here)
        return _Place(row, away.AWAY, size)

    with ThreadPoolExecutor(CALLS) as pool:
        moved = [place for place in pool.map(sent, rows) if place is not None]
    with database.store().lock.exclusive():
        pass  # waits for every scope that may have read that the original is here
    for place in moved:
        (folder / place.photo.original_path).unlink(missing_ok=True)
    return _noted(moved)


def _fetch(source: Bucket, rows: list[Photo]) -> list[_Place]:
    folder = database.store().folder

    def fetched(row: Photo) -> _Place | None:
        here = folder / row.original_path
        if not here.exists():
            try:
                away.fetch_to(here, row.original_path, row.file_key, source)
            except Unreadable:
                return None
            disk.sync_file(here)
        return _Place(row, away.HERE, disk.size_of(here))

    with ThreadPoolExecutor(CALLS) as pool:
        moved = [place for place in pool.map(fetched, rows) if place is not None]
    for parent in {(folder / place.photo.original_path).parent for place in moved}:
        disk.sync_file(parent)
    return _noted(moved)


def _noted(moved: list[_Place]) -> list[_Place]:
    """Write down where these originals are; returns those whose rows are still there and unchanged."""
    folder = database.store().folder
    noted = []
    with database.scope(), db.atomic():
        for place in moved:
            thumbnail = disk.size_of(folder / place.photo.thumbnail_path)
            if photos.set_place(place.photo, place.place, size=place.size, thumbnail=thumbnail):
                noted.append(place)
            elif place.place == away.HERE:  # deleted or sealed anew meanwhile: nobody names this file
                (folder / place.photo.original_path).unlink(missing_ok=True)
    for place in noted:
        away.forget(place.photo.original_path)
    return noted


def _delete_forgotten(source: Bucket) -> int:
    """Delete the objects that no photo names; returns how many. None while a restore may need them."""
    deleted = 0
    if archive.is_kept_aside(database.store().folder):
        return 0
    while True:
        with database.scope():
            paths = [row.path for row in ForgottenOriginal.select().limit(FORGOTTEN)]
        if not paths:
            return deleted
        with ThreadPoolExecutor(CALLS) as pool:
            list(pool.map(source.delete, paths))
        with database.scope():
            photos.drop_forgotten(paths)
        deleted += len(paths)


def _awaits_work(settings: Settings) -> peewee.Expression:
    """Whether the analysis of a photo is still to come, or its reading on this machine."""
    unsettled = Analysis.status.in_(("pending", "processing"))
    if settings.read_locally:
        unsettled |= Analysis.reads_left > 0
    waiting = Analysis.select(peewee.SQL("1")).where(Analysis.photo == Photo.id, unsettled)
    return cast(peewee.Expression, peewee.fn.EXISTS(waiting))


@contextlib.contextmanager
def _alone(source: Bucket) -> Iterator[None]:
    """Only one run moves originals at a time."""
    folder = database.store().folder / "jobs"
    busy = named_lock(folder, "originals", 0, busy="Another run moves originals.")
    with busy, contextlib.closing(source):
        yield
