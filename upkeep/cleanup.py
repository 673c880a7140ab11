"""Clean-up: what has grown old goes, with its files, its place in the index and every trace of it in the
database's bytes.

It runs beside a busy service, so it is made of many short steps, each a scope and a transaction of its own,
with room between them for whoever waits to write. Whatever cuts it off, each step before was whole, and the
next run goes on where this one ended.

To delete is not yet to forget. SQLite overwrites a deleted row with zeros (`secure_delete`), but the
full-text index only marks what was removed until it is merged, and the write-ahead log holds pages as they
were until it is emptied. So after the rows come the index, the pages, and last the log.

Files without a row come from crashes between the two. They are looked for only in the folders and by the
names that the service gives, and only when they are older than a day: what an upload is about to name in a
row is seconds old.
"""

import contextlib
import itertools
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import peewee

import crypto
import database
import devices
import lexicon
import models
import photos
from assistant import conversations
from database import db
from errors import Unavailable
from locks import Presence, named_lock
from models import Conversation, Dynamic, Memory, Message, Photo
from settings import Settings
from upkeep.progress import Progress, silent

log = logging.getLogger(__name__)

BATCH = 50  # rows in one transaction: 0.1 s for photos, beside a busy service
UNINDEXED_BATCH = 250  # photos in one transaction that stand in no index any more
NAMES = 500  # file names that are looked up in the database at once
PAGES = 500  # free pages that are given back in one transaction
# Seconds between two steps. Who waits to write looks again every 50 ms at the latest when a step takes under
# 0.18 s (SQLite's busy handler), so everybody who waited gets their turn.
ROOM = 0.06
ORPHAN_AGE = timedelta(days=1)
CLEAR_PATIENCE = 1.0  # seconds that one deletion of everything waits for another: a second click

# Bytes of a database that is written anew each time. When SQLite moves rows from page to page it leaves copies in the gaps, which
# `secure_delete` does not know of: of 1,000 removed words two or three stay in the file. Only writing all pages anew ends them, and it
# keeps writers out: 0.2 s for so many bytes, some seconds on a slow card. In a larger database they stay until its key is rotated.
REWRITABLE = 32 * 1024 * 1024

# Emptying the log keeps writers out until the last reader has finished, so each try is short, and there are
# several.
LOG_PATIENCE = 500  # milliseconds
LOG_TRIES = 20


class Cleaned(msgspec.Struct):
    """Numbers of what was removed, or would be."""

    photos: int = 0
    conversations: int = 0
    dynamics: int = 0
    memories: int = 0
    orphans: int = 0  # files without a row
    bytes: int = 0  # of all files that went, as they were on the disk


def clean(
    settings: Settings, *, now: datetime, dry_run: bool = False, progress: Progress = silent
) -> Cleaned:
    """Remove what is older than the retention period, what has expired, and files without a row. Needs that
    no scope is open.

    Goes by age: photos by upload, conversations by their last message, dynamics that are not pinned. A
    retention of 0 days keeps them all. With `dry_run` nothing is changed, and the numbers are those that a
    run would have had now.
    """
    cleaned = Cleaned()
    with database.scope():
        days = retention_days(settings)
    for kind in _kinds(days, now):
        if dry_run:
            _count(kind, cleaned)
        else:
            _purge(kind, cleaned, progress)
    _remove_orphans(cleaned, progress, now=now, dry_run=dry_run)
    if not dry_run:
        _remove_lock_files(now=now)
        _erase(progress)
    return cleaned


def clear(*, now: datetime, progress: Progress = silent) -> Cleaned:
    """Remove everything that people and their devices have stored, whatever its age and pin. Needs that no
    scope is open.

    What was there before goes, also where it is just being analysed or answered: photos and conversations go
    first, and without them nothing more comes of it. What is stored meanwhile stays. One that is cut off
    leaves less; until the next one has ended it, a search does not find what is left. Raises `Unavailable`
    while another one is at it.
    """
    cleaned = Cleaned()
    with named_lock(
        database.store().folder / "jobs", "clear", CLEAR_PATIENCE, busy="Everything is being deleted already."
    ):
        with _step(), db.atomic():
            before = _after_all(now)
            lexicon.empty()
            devices.forget_all()
        for kind in _everything(before):
            _purge(kind, cleaned, progress)
        _remove_orphans(cleaned, progress, now=now, dry_run=False)
        _erase(progress)
    return cleaned


def retention_days(settings: Settings) -> int:
    """The age in days at which data goes, 0 for never: what was set at run time, else the environment's.
    Needs a scope.
    """
    days: int = models.stored_value("retention_days", settings.retention_days)
    return days


# ------------------------------------------------------------------------------------------------------- rows


Rows: TypeAlias = "peewee.ModelSelect[Any]"


class _Kind(NamedTuple):
    """Rows of one table that go."""

    name: str  # the field of `Cleaned` that counts them
    due: Rows  # the oldest first
    paths: Callable[[Rows], Rows] | None  # of the files that go with them
    purge: Callable[[], int]  # removes up to `BATCH` of them, and returns their number


def _kinds(days: int, now: datetime) -> list[_Kind]:
    expired = Memory.select(Memory.id).where(Memory.expires_at <= now)
    kinds = [_Kind("memories", expired, None, lambda: _delete(expired))]
    if days:
        before = now - timedelta(days=days)
        old_photos = Photo.select(Photo.id).where(Photo.created_at < before).order_by(Photo.created_at)
        old_conversations = (
            Conversation.select(Conversation.id)
            .where(Conversation.updated_at < before)
            .order_by(Conversation.updated_at)
        )
        old_dynamics = Dynamic.select(Dynamic.id).where(Dynamic.created_at < before, ~Dynamic.is_pinned)
        kinds += [
            _Kind("photos", old_photos, _pictures, lambda: photos.purge(before, most=BATCH)),
            _Kind(
                "conversations",
                old_conversations,
                _attachments,
                lambda: conversations.purge(before, most=BATCH),
            ),
            _Kind("dynamics", old_dynamics, None, lambda: _delete(old_dynamics)),
        ]
    return kinds


def _everything(before: datetime) -> list[_Kind]:
    """What came before this time, in the order in which nothing more can come of it."""
    uploaded = Photo.select(Photo.id).where(Photo.created_at < before)
    begun = Conversation.select(Conversation.id).where(Conversation.created_at < before)
    remembered, written = Memory.select(Memory.id), Dynamic.select(Dynamic.id)
    return [
        _Kind("photos", uploaded, None, lambda: photos.purge(before, most=UNINDEXED_BATCH)),
        _Kind("conversations", begun, None, lambda: conversations.purge_begun(before, most=BATCH)),
        _Kind("memories", remembered, None, lambda: _delete(remembered)),
        _Kind("dynamics", written, None, lambda: _delete(written)),
    ]


def _after_all(now: datetime) -> datetime:
    """A moment after `now` and all that is stored, should the clock have been ahead."""
    latest: list[datetime | None] = [
        model.select(peewee.fn.MAX(model.created_at)).scalar() for model in (Photo, Conversation)
    ]
    return max([now, *filter(None, latest)]) + timedelta(milliseconds=1)


def _delete(due: Rows) -> int:
    """In one statement, so that what is pinned at this moment stays."""
    deleted: int = due.model.delete().where(due.model.id.in_(due.limit(BATCH))).execute()
    return deleted


def _pictures(chosen: Rows) -> Rows:
    return Photo.select(*_paths(Photo)).where(Photo.id.in_(chosen))


def _attachments(chosen: Rows) -> Rows:
    return Message.select(Message.attachment_path).where(
        Message.conversation.in_(chosen), Message.attachment_path.is_null(False)
    )


def _count(kind: _Kind, cleaned: Cleaned) -> None:
    with database.scope():
        setattr(cleaned, kind.name, kind.due.count())
        cleaned.bytes += _size(kind, kind.due)


def _purge(kind: _Kind, cleaned: Cleaned, report: Progress) -> None:
    with database.scope():
        total = kind.due.count()
    done = 0
    while done < total:
        with _step():
            size = _size(kind, kind.due.limit(BATCH))
            removed = kind.purge()
        if not removed:  # what was due has been deleted by others meanwhile
            break
        done += removed
        cleaned.bytes += size
        report(kind.name, min(done, total), total)
    setattr(cleaned, kind.name, done)


def _size(kind: _Kind, chosen: Rows) -> int:
    """Bytes on the disk of the files that go with these rows."""
    if kind.paths is None:
        return 0
    folder = database.store().folder
    return sum(
        crypto.size_of(folder / path) for row in kind.paths(chosen).tuples().iterator() for path in row
    )


@contextlib.contextmanager
def _step() -> Iterator[None]:
    """A scope of its own, and then room for others."""
    with database.scope():
        yield
    time.sleep(ROOM)


# ------------------------------------------------------------------------------------------------------ files


class _Place(NamedTuple):
    """Where files may lie that nothing knows of any more."""

    folder: str
    name: str  # a regular expression
    columns: tuple[
        peewee.Field, ...
    ] = ()  # that know files there; none: a file there is always on its way somewhere
    spread: bool = False  # over folders of two hexadecimal digits


def _paths(model: type[models.Model]) -> tuple[peewee.Field, ...]:
    return tuple(fields.path for fields in models.FILES[model])


_PLACES = (
    _Place("photos", r"[0-9a-f]{32}(\.thumbnail)?", _paths(Photo), spread=True),
    _Place("attachments", r"[0-9a-f]{32}", _paths(Message), spread=True),
    _Place("spool", r"[0-9a-f]{32}"),
    _Place("keys", r".+\.[0-9a-f]{8}\.new"),
)


def orphans(report: Progress, *, now: datetime) -> Iterator[Path]:
    """Files that nothing knows of and that are older than `ORPHAN_AGE`, each while the scope is open in which
    it had no row.

    So a restore, which is alone with the folder and brings files before their rows, never loses any of them
    to who removes these.
    """
    folder = database.store().folder
    searched = [
        (place, below) for place in _PLACES for below in _folders(folder / place.folder, spread=place.spread)
    ]
    for number, (place, below) in enumerate(searched, start=1):
        for files in _batches(_old_files(below, place.name, now=now)):
            with database.scope():
                yield from _without_row(files, place.columns)
        report("files", number, len(searched))


def _remove_orphans(cleaned: Cleaned, report: Progress, *, now: datetime, dry_run: bool) -> None:
    for path in orphans(report, now=now):
        cleaned.orphans += 1
        cleaned.bytes += crypto.size_of(path)
        if not dry_run:
            path.unlink(missing_ok=True)


def _folders(folder: Path, *, spread: bool) -> list[Path]:
    if not spread:
        return [folder]
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and re.fullmatch("[0-9a-f]{2}", path.name)
    )


def _without_row(files: list[Path], columns: Iterable[peewee.Field]) -> list[Path]:
    paths = {str(path.relative_to(database.store().folder)): path for path in files}
    for column in columns:
        for (known,) in column.model.select(column).where(column.in_(list(paths))).tuples():
            del paths[known]
    return list(paths.values())


def _remove_lock_files(*, now: datetime) -> None:
    """Those that killed processes have left behind. They are empty and count for nothing."""
    folder = database.store().folder
    for path in _old_files(folder / "workers", "[0-9a-f]{16}", now=now):
        Presence.alive(path.parent, path.name)  # removes the file of a dead one
    locks = (("turns", "[0-9a-f]{1,64}|reading"), ("jobs", "[a-z-]+"), ("reasoner", "[a-z]+"))
    for path in itertools.chain.from_iterable(
        _old_files(folder / name, pattern, now=now) for name, pattern in locks
    ):
        with contextlib.suppress(Unavailable), named_lock(path.parent, path.name, 0, busy=""):
            pass  # leaving removes the file


def _old_files(folder: Path, name: str, *, now: datetime) -> Iterator[Path]:
    """Files in `folder` whose whole name matches, last written before `ORPHAN_AGE`; none where there is no
    folder.
    """
    latest = (now - ORPHAN_AGE).replace(tzinfo=UTC).timestamp()
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # gone since the folder was read
                if (
                    re.fullmatch(name, entry.name)
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat().st_mtime < latest
                ):
                    yield Path(entry.path)


def _batches(paths: Iterator[Path]) -> Iterator[list[Path]]:
    while batch := list(itertools.islice(paths, NAMES)):
        yield batch


# ---------------------------------------------------------------------------------------------- traces, space


def _erase(report: Progress) -> None:
    """Make what was removed unreadable in the database's files, and give back its space."""
    for done, erase in enumerate((_compact_index, _give_back_pages, _empty_log), start=1):
        erase()
        report("database", done, 3)


def _compact_index() -> None:
    for _ in range(
        3
    ):  # once more where the service has removed more meanwhile, or its writing has cut in before the end
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
    ):  # nothing in a database without `auto_vacuum`: there free pages, zeroed, wait for what comes
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
            _pragma("wal_checkpoint(PASSIVE)")  # the most of the work, in nobody's way
            _pragma(f"busy_timeout = {LOG_PATIENCE}")
            try:
                busy = _pragma("wal_checkpoint(TRUNCATE)")
            finally:
                _pragma(f"busy_timeout = {usual}")
        if not busy:
            return
    log.warning("the write-ahead log is in use: what was deleted leaves it with a later clean-up")


def _pragma(pragma: str) -> int:
    """The first value of its answer, a number, and 0 where it answers nothing. All of it is read: some
    pragmas work only as far as they are read.
    """
    rows = db.execute_sql(f"PRAGMA {pragma}").fetchall()
    return int(rows[0][0]) if rows and rows[0] else 0  # SQLCipher says its page size as text
