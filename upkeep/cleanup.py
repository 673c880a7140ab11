"""Clean-up: deletes data that is older than the retention period, with its files, its index entries and every
trace in the bytes of the database.

It runs beside a busy service, so it consists of many short steps. Each is a scope and a transaction of its
own, and a pause after it lets waiting writers in. A run can be killed at any moment: completed steps stay,
and the next run continues.

A deleted row is not gone from the disk. SQLite overwrites it with zeros (`secure_delete`), but the full-text
index only marks what was removed until it is merged, and the write-ahead log keeps earlier versions of pages
until it is emptied. So after the rows come the index, then the free pages, then the log.

Files without a row are the concern of `upkeep/orphans.py`.
"""

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import msgspec
import peewee

import database
import devices
import disk
import lexicon
import models
import photos
from assistant import conversations
from curation import retention, searches, trash
from database import ROOM, db
from errors import Unavailable
from locks import Presence, named_lock
from models import Conversation, Dynamic, Memory, Message, Photo, Trash
from outlets import feeds, shares, webhooks
from settings import Settings
from upkeep import orphans
from upkeep.progress import Progress, silent

log = logging.getLogger(__name__)

BATCH = 50  # rows in one transaction: 0.1 s for photos, beside a busy service
UNINDEXED_BATCH = 250  # photos in one transaction that have no index entries any more
PAGES = 500  # free pages that are returned to the file system in one transaction
CLEAR_PATIENCE = 1.0  # seconds that a second click on "delete everything" waits for the first

# A database up to this size, in bytes, is rewritten by each clean-up. When SQLite moves rows between pages,
# it leaves copies in gaps that `secure_delete` does not cover: of 1,000 deleted words, two or three stay in
# the file. Only rewriting all pages removes them, and it blocks writers: 0.2 s at this size, some seconds on
# a slow card. In a larger database these copies stay until its key is rotated.
REWRITABLE = 32 * 1024 * 1024

# Emptying the log blocks writers until the last reader has finished, so there are many short attempts.
LOG_PATIENCE = 500  # milliseconds
LOG_TRIES = 20


class Cleaned(msgspec.Struct):
    """Numbers of what was deleted, or would be."""

    photos: int = 0
    trash: int = 0  # photos that were in the trash for long enough
    codes: int = 0  # photos of one-time codes that went to the trash
    conversations: int = 0
    dynamics: int = 0
    memories: int = 0
    orphans: int = 0  # files without a row that were deleted
    aside: int = 0  # files without a row that were set aside
    back: int = 0  # files that were set aside and that a row asks for
    bytes: int = 0  # of all deleted files, on disk
    kept: int = 0  # photos that are older than the retention period, and stay because they are kept


def clean(
    settings: Settings,
    *,
    now: datetime,
    dry_run: bool = False,
    many_orphans: bool = False,
    progress: Progress = silent,
) -> Cleaned:
    """Delete what is older than the retention period, what has expired, and files without a row. Needs that
    no scope is open.

    The age of a photo counts from its upload, that of a conversation from its last message; kept photos and
    pinned dynamics stay. A photo in the trash is deleted `trash.DAYS` after it went there, whatever its age.
    Screenshots of one-time codes go to the trash at the age that is set for them, if one is. A retention of 0
    days keeps everything but expired memories, old trash and orphans. With `dry_run` nothing is deleted, and
    the numbers are those that a run would have now. Raises `Conflict`, having deleted nothing, when so many
    files belong to no row that the database may be wrong, except with `many_orphans`.
    """
    cleaned = Cleaned()
    lost = orphans.found(progress, now=now)
    if not many_orphans:
        orphans.check_number(lost)
    with database.scope():
        days, codes_days = retention.days(settings), retention.codes_days(settings)
        cleaned.kept = photos.count_spared(now - timedelta(days=days)) if days else 0
    for kind in [*_kinds(days, now), *_expired_codes(codes_days, now)]:
        if dry_run:
            with database.scope():
                setattr(cleaned, kind.name, _number(kind))
                cleaned.bytes += _size(kind, kind.due)
        else:
            _purge(kind, cleaned, progress)
    removed = orphans.remove(lost, progress, now=now, dry_run=dry_run)
    cleaned.orphans, cleaned.aside, cleaned.back = removed.deleted, removed.aside, removed.back
    cleaned.bytes += removed.bytes
    if not dry_run:
        with _step(), db.atomic():
            shares.purge(now)
        _remove_lock_files(now=now)
        _erase(progress)
    return cleaned


def clear(*, now: datetime) -> Cleaned:
    """Delete everything that people and their devices have stored, whatever its age, pinned or not. Needs
    that no scope is open.

    Photos and conversations are deleted first, so that an analysis or answer in progress cannot store
    anything that follows from them. What is stored during the run stays. A run that is killed leaves the
    rest, which a search does not find and the next run deletes. Raises `Unavailable` while another run is in
    progress.
    """
    cleaned = Cleaned()
    with named_lock(
        database.store().folder / "jobs", "clear", CLEAR_PATIENCE, busy="Everything is being deleted already."
    ):
        with _step(), db.atomic():
            before = _later_than_all(now)
            lexicon.empty()
            devices.forget_all()
            searches.forget_all()
            feeds.forget_all()
            webhooks.forget_deliveries()
        for kind in _everything(before):
            _purge(kind, cleaned, silent)
        orphans.remove_all(silent, now=now)
        _erase(silent)
    return cleaned


def retention_is_chosen(settings: Settings) -> bool:
    """Whether the retention period was set, at run time or by the environment. Needs a scope."""
    return (
        models.stored_value("retention_days") is not None
        or settings.retention_days != Settings.retention_days
    )


def due(days: int, *, now: datetime) -> Cleaned:
    """The rows that a clean-up with this retention period would delete now. Needs a scope."""
    counted = Cleaned()
    for kind in _kinds(days, now):
        setattr(counted, kind.name, _number(kind))
    return counted


# ------------------------------------------------------------------------------------------------------- rows


Rows: TypeAlias = "peewee.ModelSelect[Any]"


class _Kind(NamedTuple):
    """Rows of one table that are to be deleted."""

    name: str  # the field of `Cleaned` that counts them
    due: Rows  # oldest first
    paths: Callable[[Rows], Rows] | None  # selects the paths of their files
    purge: Callable[[], int]  # deletes a batch of them and returns their number
    counted: Callable[[], int] | None = None  # their number, found faster than by selecting them


def _kinds(days: int, now: datetime) -> list[_Kind]:
    expired = Memory.select(Memory.id).where(Memory.expires_at <= now)
    thrown_away = now - trash.DAYS
    kinds = [
        _Kind("memories", expired, None, lambda: _delete(expired)),
        _Kind(
            "trash",
            photos.thrown_away(thrown_away).order_by(Trash.deleted_at),
            _pictures,
            lambda: photos.purge_trash(thrown_away, most=BATCH),
        ),
    ]
    if days:
        before = now - timedelta(days=days)
        old_photos = photos.older(before).order_by(Photo.created_at)
        old_conversations = (
            Conversation.select(Conversation.id)
            .where(Conversation.updated_at < before)
            .order_by(Conversation.updated_at)
        )
        old_dynamics = Dynamic.select(Dynamic.id).where(Dynamic.created_at < before, ~Dynamic.is_pinned)
        kinds += [
            _Kind(
                "photos",
                old_photos,
                _pictures,
                lambda: photos.purge(before, most=BATCH),
                lambda: photos.count_older(before),
            ),
            _Kind(
                "conversations",
                old_conversations,
                _attachments,
                lambda: conversations.purge(before, most=BATCH),
            ),
            _Kind("dynamics", old_dynamics, None, lambda: _delete(old_dynamics)),
        ]
    return kinds


def _expired_codes(days: int, now: datetime) -> list[_Kind]:
    if not days:
        return []
    expired = photos.with_codes(now - timedelta(days=days))

    def throw_away() -> int:
        return len(trash.put([photo.id for photo in expired.limit(BATCH)], now=now))

    return [_Kind("codes", expired, None, throw_away)]


def _everything(before: datetime) -> list[_Kind]:
    """All rows from before this time, sources before what is derived from them."""
    uploaded = Photo.select(Photo.id).where(Photo.created_at < before)
    begun = Conversation.select(Conversation.id).where(Conversation.created_at < before)
    remembered, written = Memory.select(Memory.id), Dynamic.select(Dynamic.id)
    return [
        _Kind("photos", uploaded, None, lambda: photos.purge_all(before, most=UNINDEXED_BATCH)),
        _Kind("conversations", begun, None, lambda: conversations.purge_begun(before, most=BATCH)),
        _Kind("memories", remembered, None, lambda: _delete(remembered)),
        _Kind("dynamics", written, None, lambda: _delete(written)),
    ]


def _later_than_all(now: datetime) -> datetime:
    """A moment after `now` and after everything stored, in case the clock was ahead."""
    latest: list[datetime | None] = [
        model.select(peewee.fn.MAX(model.created_at)).scalar() for model in (Photo, Conversation)
    ]
    return max([now, *filter(None, latest)]) + timedelta(milliseconds=1)


def _delete(due: Rows) -> int:
    """Delete a batch in one statement, so that a row that is pinned at this moment stays."""
    deleted: int = due.model.delete().where(due.model.id.in_(due.limit(BATCH))).execute()
    return deleted


def _pictures(rows: Rows) -> Rows:
    return Photo.select(Photo.original_path, Photo.thumbnail_path).where(Photo.id.in_(rows))


def _attachments(rows: Rows) -> Rows:
    return Message.select(Message.attachment_path).where(
        Message.conversation.in_(rows), Message.attachment_path.is_null(False)
    )


def _number(kind: _Kind) -> int:
    return kind.counted() if kind.counted else kind.due.count()


def _purge(kind: _Kind, cleaned: Cleaned, report: Progress) -> None:
    with database.scope():
        total = _number(kind)
    done = 0
    while done < total:
        with _step():
            size = _size(kind, kind.due.limit(BATCH))
            removed = kind.purge()
        if not removed:  # others have deleted the rest meanwhile
            break
        done += removed
        cleaned.bytes += size
        report(kind.name, min(done, total), total)
    setattr(cleaned, kind.name, done)


def _size(kind: _Kind, rows: Rows) -> int:
    """Size on disk, in bytes, of the files of these rows."""
    if kind.paths is None:
        return 0
    folder = database.store().folder
    return sum(
        disk.size_of(folder / path) for paths in kind.paths(rows).tuples().iterator() for path in paths
    )


@contextlib.contextmanager
def _step() -> Iterator[None]:
    """A scope of its own, followed by a pause for waiting writers."""
    with database.scope():
        yield
    time.sleep(ROOM)


def _remove_lock_files(*, now: datetime) -> None:
    """Remove lock files that killed processes have left behind. They are empty and lock nothing."""
    folder = database.store().folder
    for path in orphans.old_files(folder / "workers", "[0-9a-f]{16}", now=now):
        Presence.alive(path.parent, path.name)  # removes the file of a dead one
    locks = (("turns", "[0-9a-f]{1,64}|reading"), ("jobs", "[a-z-]+"), ("reasoner", "[a-z]+"))
    for path in itertools.chain.from_iterable(
        orphans.old_files(folder / name, pattern, now=now) for name, pattern in locks
    ):
        with contextlib.suppress(Unavailable), named_lock(path.parent, path.name, 0, busy=""):
            pass  # leaving removes the file


# ---------------------------------------------------------------------------------------------- traces, space


def _erase(report: Progress) -> None:
    """Make deleted data unreadable in the files of the database, and return its space."""
    for done, erase in enumerate((_compact_index, _give_back_pages, _empty_log), start=1):
        erase()
        report("database", done, 3)


def _compact_index() -> None:
    for _ in range(3):  # again if the service has deleted more meanwhile, or has interrupted the merge
        with _step():
            more = lexicon.compact(first=True)
        if not more:
            return
        while more:
            with _step():
                more = lexicon.compact(first=False)


def _give_back_pages() -> None:
    given_back = True
    while (
        given_back
    ):  # never in a database without `auto_vacuum`, which keeps its zeroed free pages for reuse
        with _step():
            before = _pragma("freelist_count")
            _pragma(f"incremental_vacuum({PAGES})")
            given_back = _pragma("freelist_count") < before
            small = _pragma("page_count") * _pragma("page_size") <= REWRITABLE
    if small:
        with _step():
            db.execute_sql("VACUUM")


def _empty_log() -> None:
    usual = dict(database.PRAGMAS)["busy_timeout"]
    for _ in range(LOG_TRIES):
        with _step():
            _pragma("wal_checkpoint(PASSIVE)")  # most of the work, without blocking anybody
            _pragma(f"busy_timeout = {LOG_PATIENCE}")
            try:
                busy = _pragma("wal_checkpoint(TRUNCATE)")
            finally:
                _pragma(f"busy_timeout = {usual}")
        if not busy:
            return
    log.warning("the write-ahead log is in use: a later clean-up removes deleted data from it")


def _pragma(pragma: str) -> int:
    """The number in the pragma's first row, or 0. All rows are fetched: some pragmas work only as far."""
    rows = db.execute_sql(f"PRAGMA {pragma}").fetchall()
    return int(rows[0][0]) if rows and rows[0] else 0  # SQLCipher returns its page size as text
