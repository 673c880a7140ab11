"""Files that no row names: where they come from, which of them are deleted, and which wait for 30 days first.

A file whose row was deleted, or got another file, is in the table `discarded`, which triggers write in the
same transaction. The verb deletes the file afterwards; if it is killed in between, clean-up deletes it. So
what is to go, goes, however much of a small library it is.

Any other file without a row is an orphan: an upload was killed between the file and its row, or the row is
lost, because an older database was put back. Nobody can tell the two from each other, so orphans are moved to
`orphans/<day>/`, sealed as they are. A file that a row asks for comes back from there; the others are deleted
after `KEEPING`. A run that would move a large share of all files moves none: then it is the database that is
wrong.

Orphans are searched only in the folders and under the names that the service uses, and only if they are older
than a day: a file that an upload is about to name in a row is seconds old.
"""

import contextlib
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import peewee

import database
import disk
import models
from buckets import away
from database import db
from errors import Conflict
from models import Discarded, Message, Photo
from upkeep.progress import Progress

AGE = timedelta(days=1)
FOLDER = "orphans"  # in the data folder
KEEPING = timedelta(days=30)
NAMES = 500  # file names in one query
# The share of all stored files that a run moves without being told to, and a number that is always few.
SHARE, FEW = 0.1, 20

TOO_MANY = (
    "{} of {} stored files belong to no row, as if an older database had been put back; nothing is deleted. "
    "Restore the database that they belong to. Or set them aside, for 30 days: "
    "`./snaplore jobs cleanup --many-orphans`"
)


class Removed(NamedTuple):
    """What became of files without a row."""

    deleted: int = 0
    bytes: int = 0  # of the deleted ones, on disk
    aside: int = 0
    back: int = 0


class _Place(NamedTuple):
    """A folder that may contain orphans."""

    folder: str
    name: str  # a regular expression
    # The columns that name files there. None: the files there are temporary.
    columns: tuple[peewee.Field, ...] = ()
    spread: bool = False  # over subfolders named by two hexadecimal digits


def _paths(model: type[models.Model]) -> tuple[peewee.Field, ...]:
    return tuple(fields.path for fields in models.FILES[model])


_STORED = (
    _Place("photos", r"[0-9a-f]{32}(\.thumbnail|\.[0-9a-f]{8})?", _paths(Photo), spread=True),
    _Place("attachments", r"[0-9a-f]{32}", _paths(Message), spread=True),
)
_TEMPORARY = (
    _Place("spool", r"[0-9a-f]{32}(\.[0-9a-f]{8})?"),
    _Place(away.FOLDER, r"[0-9a-f]{32}(\.[0-9a-f]{8})?"),
    _Place("keys", r".+\.[0-9a-f]{8}\.new"),
)
_COLUMNS = (*_paths(Photo), *_paths(Message))


def found(report: Progress, *, now: datetime) -> list[Path]:
    """The orphans among the stored files. Opens its own scopes."""
    return [path for batch in _search(_STORED, report, now=now) for path in batch]


def too_many(lost: list[Path]) -> str:
    """The sentence of the refusal to move so many; empty when they are few. Opens its own scope."""
    with database.scope():
        named = sum(column.model.select().where(column.is_null(False)).count() for column in _COLUMNS)
    number = len(lost)
    return TOO_MANY.format(number, named + number) if number > max(FEW, SHARE * (named + number)) else ""


def check_number(lost: list[Path]) -> None:
    """Raise `Conflict` if these orphans are too many to be moved without a person's word."""
    if problem := too_many(lost):
        raise Conflict(f"{problem}.")


def remove(lost: list[Path], report: Progress, *, now: datetime, dry_run: bool = False) -> Removed:
    """Set aside these orphans, bring back from there what a row asks for, and delete temporary files, files
    of deleted rows, and what was set aside for long enough. With `dry_run` nothing is done but counted.
    """
    deleted = [*_discarded(dry_run=dry_run), *_temporary(report, now=now, dry_run=dry_run)]
    back = bring_back(dry_run=dry_run)
    deleted += _expired(now=now, dry_run=dry_run)
    aside = len(lost) if dry_run else set_aside(lost, now=now)
    return Removed(len(deleted), sum(deleted), aside, back)


def remove_all(report: Progress, *, now: datetime) -> None:
    """Delete every file without a row: a person has ordered everything to be deleted."""
    for path in found(report, now=now):
        path.unlink(missing_ok=True)
    _discarded(dry_run=False)
    _temporary(report, now=now, dry_run=False)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(database.store().folder / FOLDER)


def set_aside(lost: list[Path], *, now: datetime) -> int:
    """Move orphans to the folder of this day; returns how many still were orphans."""
    folder, moved = database.store().folder, 0
    for batch in _batches(iter(lost)):
        # The scope keeps out a restore, which writes files before their rows.
        with database.scope():
            for path in _without_row(batch):
                target = folder / FOLDER / now.date().isoformat() / path.relative_to(folder)
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    path.replace(target)
                    moved += 1
    return moved


def asked_for() -> Iterator[tuple[Path, Path]]:
    """The files that were set aside and that a row names, each with its place. Opens its own scopes."""
    for day in _days():
        for batch in _batches(_files_in(day)):
            with database.scope():
                folder = database.store().folder
                places = {folder / path.relative_to(day): path for path in batch}
                unnamed = set(_without_row(list(places)))
            yield from ((path, place) for place, path in places.items() if place not in unnamed)


def bring_back(*, dry_run: bool = False) -> int:
    """Move the files that a row asks for back to their places; returns their number."""
    number = 0
    for path, place in asked_for():
        number += 1
        if not dry_run and not place.exists():
            place.parent.mkdir(mode=0o700, exist_ok=True)
            path.replace(place)
    return number


def _expired(*, now: datetime, dry_run: bool) -> list[int]:
    """Delete what was set aside for long enough and no row asks for; returns the sizes."""
    sizes: list[int] = []
    for day in _days():
        if date.fromisoformat(day.name) < (now - KEEPING).date():
            sizes += _deleted(_files_in(day), dry_run=dry_run)
            if not dry_run:
                shutil.rmtree(day)
    return sizes


def _discarded(*, dry_run: bool) -> list[int]:
    """Delete the files that rows have named, of which a killed verb left some; returns their sizes."""
    sizes: list[int] = []
    last = ""
    while True:
        with database.scope():
            rows = Discarded.select().where(Discarded.path > last).order_by(Discarded.path).limit(NAMES)
            names = [row.path for row in rows]
        if not names:
            return sizes
        last = names[-1]
        folder = database.store().folder
        left = [path for name in names if (path := folder / name).exists()]
        if left and not dry_run:
            with database.store().lock.exclusive():
                pass  # waits for every scope that may have read a row, and is about to open its file
        with database.scope(), db.atomic():
            sizes += _deleted(_unnamed(left, _COLUMNS), dry_run=dry_run)
            if not dry_run:
                Discarded.delete().where(Discarded.path.in_(names)).execute()


def _temporary(report: Progress, *, now: datetime, dry_run: bool) -> list[int]:
    """Delete temporary files that killed runs have left; returns their sizes."""
    batches = _search(_TEMPORARY, report, now=now)
    return [size for batch in batches for size in _deleted(batch, dry_run=dry_run)]


def _deleted(paths: Iterable[Path], *, dry_run: bool) -> list[int]:
    """Delete these files; returns their sizes on disk."""
    sizes = []
    for path in paths:
        sizes.append(disk.size_of(path))
        if not dry_run:
            path.unlink(missing_ok=True)
    return sizes


def _search(places: Iterable[_Place], report: Progress, *, now: datetime) -> Iterator[list[Path]]:
    folder = database.store().folder
    searched = [
        (place, below) for place in places for below in _folders(folder / place.folder, spread=place.spread)
    ]
    for number, (place, below) in enumerate(searched, start=1):
        for files in _batches(old_files(below, place.name, now=now)):
            with database.scope():
                yield _without_row(files) if place.columns else files
        report("files", number, len(searched))


def _folders(folder: Path, *, spread: bool) -> list[Path]:
    if not spread:
        return [folder]
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and re.fullmatch("[0-9a-f]{2}", path.name)
    )


def _without_row(files: list[Path]) -> list[Path]:
    """Those of these files that are orphans: neither a row names them, nor did one that was deleted."""
    return _unnamed(files, (*_COLUMNS, Discarded.path))


def _unnamed(files: list[Path], columns: Iterable[peewee.Field]) -> list[Path]:
    paths = {str(path.relative_to(database.store().folder)): path for path in files}
    for column in columns:
        for (known,) in column.model.select(column).where(column.in_(list(paths))).tuples():
            paths.pop(known, None)
    return list(paths.values())


def old_files(folder: Path, name: str, *, now: datetime) -> Iterator[Path]:
    """Files in `folder` whose whole name matches and that are older than `AGE`; none without the folder."""
    latest = (now - AGE).replace(tzinfo=UTC).timestamp()
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # gone since the folder was read
                if (
                    re.fullmatch(name, entry.name)
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat().st_mtime < latest
                ):
                    yield Path(entry.path)


def _days() -> list[Path]:
    folder = database.store().folder / FOLDER
    with contextlib.suppress(FileNotFoundError):
        return sorted(
            path for path in folder.iterdir() if re.fullmatch(r"\d{4}-\d\d-\d\d", path.name) and path.is_dir()
        )
    return []


def _files_in(folder: Path) -> Iterator[Path]:
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _batches(paths: Iterator[Path]) -> Iterator[list[Path]]:
    while batch := list(itertools.islice(paths, NAMES)):
        yield batch
