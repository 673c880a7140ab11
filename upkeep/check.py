"""Integrity check: verifies that everything stored is present, intact and consistent, and repairs derived
data.

Originals and rows cannot be recreated: problems with them are reported and nothing is changed, unless a
person gives up what is lost. Everything else is derived from them and can be recreated: the copy of the key
ring, thumbnails, the lines that were read, the search index, its vocabulary, the tallies. A damaged database
is only reported: what SQLite would salvage from its pages may be rows that nobody wrote, and a backup has the
real ones.

The check runs beside a busy service. Rows are read in batches, each in a scope of its own, and files outside
of any scope. A row or file that looks wrong may have been deleted or replaced a moment ago, so it is checked
again before it is reported. No file is held in memory as a whole.

Keys and database are checked here, what is in files by `upkeep/stored.py`, and what follows from rows by
`upkeep/derived.py`.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import crypto
import database
import photos
from database import db
from errors import DatabaseEmpty, DataDamaged, StartRefused
from settings import Settings
from upkeep import derived, orphans, rollback, stored
from upkeep.findings import Kind, Orders

ATTEMPTS = 3  # at authenticating pages of the database, which a checkpoint may be writing


def check(settings: Settings, orders: Orders) -> Iterator[Kind]:
    """The findings, kind by kind. The data folder need not be open, and no scope may be open. Opens the
    folder if its keys allow it.

    Even without `repair`, opening restores a lost copy of the key ring and migrates an older database, as
    every start does.
    """
    keys, pages = Kind("keys"), Kind("database")
    if not _has_data(settings):
        keys.note(f"there is no data in {settings.data_dir}")
        yield keys
        return
    readable, age = _look_at_copies(keys, settings), Kind("age")
    try:
        try:
            database.open_store(settings, any_age=True)
        except DatabaseEmpty as loss:
            age.note(loss.detail, repaired=orders.repair)
            if not orders.repair:
                yield from (keys, age)
                return
            database.open_store(settings, any_age=True, anew=True)
            rollback.accept()
    except StartRefused as refusal:
        refused = pages if readable else keys
        refused.note(refusal.detail)
        yield from (keys, pages) if readable else (keys,)
        return
    yield keys
    broken_index = _integrity(pages)
    yield pages
    originals, thumbnails = Kind("originals"), Kind("thumbnails")
    aside = [([Kind("files set aside")], stored.look_at_aside)]
    elsewhere = [([Kind("originals in the bucket")], partial(stored.look_at_elsewhere, settings))]
    looks: tuple[tuple[list[Kind], Callable[..., None]], ...] = (
        ([age], _age),
        ([Kind("certificate")], stored.look_at_certificate),
        *(aside if (settings.data_dir / orphans.FOLDER).exists() else []),
        ([originals, thumbnails], stored.look_at_pictures),
        *(elsewhere if _uses_bucket(settings) else []),
        ([Kind("attachments")], stored.look_at_attachments),
        ([Kind("files")], stored.look_at_files),
        ([Kind("analyses")], derived.look_at_analyses),
        ([Kind("readings")], derived.look_at_readings),
        ([Kind("index")], derived.renew_broken_index if broken_index else derived.look_at_index),
        ([Kind("vocabulary")], derived.look_at_vocabulary),
        ([Kind("tallies")], derived.look_at_tallies),
    )
    for kinds, look in looks:
        try:
            look(*kinds, orders)
        except database.DATABASE_ERRORS as problem:
            _raise_unless_damaged(problem)
            kinds[-1].note(f"cannot be read: {problem}")
        yield from kinds


def _uses_bucket(settings: Settings) -> bool:
    if settings.originals is not None:
        return True
    try:
        with database.scope():
            return photos.sizes().away > 0
    except database.DATABASE_ERRORS as problem:
        _raise_unless_damaged(problem)
        return False


def _raise_unless_damaged(problem: Exception) -> None:
    """Raise `problem` again if it says nothing about the data, like a full disk or a lock timeout."""
    if not isinstance(database.known_failure(problem), DataDamaged | None):
        raise problem


# --------------------------------------------------------------------------------------------- keys, database


def _has_data(settings: Settings) -> bool:
    """Whether there is data to open; opening an empty folder would create new data."""
    return any(
        path.is_file() for name in ("keys", "database") for path in (settings.data_dir / name).glob("*")
    )


def _look_at_copies(kind: Kind, settings: Settings) -> bool:
    """Note problems with the copies of the key ring; returns whether one can be read."""
    folder = settings.data_dir / "keys"
    with contextlib.suppress(StartRefused):
        master_key = (
            crypto.read_master_key(settings.master_key_file or folder / "master.key")
            if settings.encryption
            else None
        )
        for copy in crypto.KeyStore(folder, master_key).wrong_copies():
            kind.note(
                f"the copy {copy.name} of the key ring was missing, damaged or out of date", repaired=True
            )
        return True
    return False


def _integrity(kind: Kind) -> bool:
    """Note problems with the pages and rows of the database; returns whether the full-text index is broken.

    Each table is checked in a scope of its own, because a scope holds the lock of the data folder: a run that
    needs the folder exclusively waits for it, and all requests wait for that run.
    """
    problems = _damaged_pages()
    try:
        with database.scope():
            tables = [
                row[0]
                for row in db.execute_sql("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            ]
    except database.DATABASE_ERRORS as failure:
        _raise_unless_damaged(failure)
        problems, tables = [*problems, str(failure)], []
    for table in tables:
        problems += _problems_of(table)
    for problem in problems:
        if not problem.startswith("fts5:"):
            kind.note(problem)
    if kind.wrong:
        kind.advice = "restore a backup (./snaplore restore)"
    return any(problem.startswith("fts5:") for problem in problems)


def _problems_of(table: str) -> list[str]:
    try:
        with database.scope():
            answers = [row[0] for row in db.execute_sql(f'PRAGMA integrity_check("{table}")').fetchall()]
            orphaned = db.execute_sql(f'PRAGMA foreign_key_check("{table}")').fetchall()
    except database.DATABASE_ERRORS as problem:
        _raise_unless_damaged(problem)
        return [f"{table} cannot be read: {problem}"]
    lines = [
        line
        for answer in answers
        for line in answer.splitlines()
        if line != "ok" and not line.startswith("***")
    ]
    return lines + [
        f"row {row_id} of {table} refers to a missing row of {parent}" for _, row_id, parent, _ in orphaned
    ]


def _damaged_pages() -> list[str]:
    """SQLCipher's message for every page that fails its authentication; none if the database is not
    encrypted.

    SQLCipher reads the file without SQLite's locks, so a page that a checkpoint is writing may fail once.
    """
    damaged: list[str] = []
    for attempt in range(ATTEMPTS):
        with database.scope():
            found = [row[0] for row in db.execute_sql("PRAGMA cipher_integrity_check").fetchall()]
        damaged = [problem for problem in found if not attempt or problem in damaged]
        if not damaged:
            break
    return damaged


def _age(kind: Kind, orders: Orders) -> None:
    """Note a database that is older than the key ring, or the reverse, unless a person accepts it."""
    with database.scope():
        problem = database.difference()
    if problem:
        if orders.repair:
            rollback.accept()
        kind.note(problem, repaired=orders.repair)
        kind.advice = "" if orders.repair else database.ADVICE
