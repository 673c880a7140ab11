"""The backup: one file with everything, made beside the running service, and complete or not there at all.

It shows one moment. A read transaction fixes the rows of that moment, and every file that they name gets a
second name (a hard link) in a private folder, where nothing deletes it; the database is then copied out of
the same transaction. Files are never written to, and they go only after their row, so a link is as good as a
copy. Most links are made before that moment, in short scopes, so that the transaction is short. A file can
still vanish between the moment and its link: then the moment is taken anew, and since the newest files are
linked first, once more is nearly always enough. A file that a later moment still names, and that was missing
before it, is lost.

With no lock held, all of that becomes one file, as `upkeep/archive.py` describes it. What cannot be read or
fails its authentication is left out and named, so that one damaged picture does not spoil the rest.
"""

import contextlib
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import peewee
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
from database import db
from errors import Conflict, StorageFull
from locks import named_lock
from models import Photo
from settings import VERSION
from upkeep import archive
from upkeep.progress import Progress

ROUNDS = 5  # moments that are tried before writers are made to wait for the last one
STEP = 500  # rows whose files are linked in one scope
PAGES = 1_000  # of the database that are copied between two looks at the progress bar


class Made(NamedTuple):
    head: archive.Head
    size: int  # bytes of the file
    unreadable: list[str]  # paths below the data folder


def make(
    target: Path, progress: Progress, *, now: datetime, force: bool = False, with_master_key: bool = False
) -> Made:
    """Write a backup of the open data folder to `target`, mode 0600. Needs that no scope is open.

    Raises `Conflict` when there is one, except with `force`; `StorageFull` before or while the disk is full;
    `Unavailable` when another backup is being made. Then `target` is as it was, and nothing else is left.
    """
    if target.exists() and not force:
        raise Conflict(f"{target} exists. Choose another name, or replace it with --force.")
    folder = database.store().folder
    busy = named_lock(folder / "jobs", "backup", 0, busy="Another backup is being made.")
    failure = f"The backup cannot be written to {target}"
    with archive.explain_failures(failure), busy, archive.private_folder(folder, "backup") as private:
        archive.remove_matching(target.parent, re.escape(target.name) + r"\.[0-9a-f]{8}\.part")
        _link_ahead(private, progress)
        moment = _take_moment(private, progress)
        with archive.opened(private / archive.DATABASE, moment.ring) as copy:
            sizes = [crypto.size_of(private / Path(file.path).name) for file in archive.stored_files(copy)]
            size = (private / archive.DATABASE).stat().st_size + sum(sizes) + archive.MEMBER * len(sizes)
            if shutil.disk_usage(target.parent).free < size:
                raise StorageFull(
                    f"The backup needs {math.ceil(size / 1_048_576)} MB, and less is free where {target} is to be."
                )
            photos = Photo.select(peewee.fn.COUNT(Photo.id)).scalar(copy)
            ring = moment.ring
            head = archive.Head(
                archive.FORMAT,
                VERSION,
                now,
                ring.database_key is not None,
                ring.generation,
                photos,
                len(sizes),
            )
            with _new_file(target) as file:
                unreadable = _write(
                    file, head, private, copy, moment.master_key if with_master_key else None, progress
                )
    return Made(head, target.stat().st_size, unreadable)


# --------------------------------------------------------------------------------------------- the one moment


class _Moment(NamedTuple):
    ring: crypto.KeyRing
    master_key: bytes | None  # that seals it


def _link_ahead(private: Path, progress: Progress) -> None:
    """Link nearly everything, in short scopes: what needs the folder alone does not wait for more than one."""
    with database.scope():
        total, done = (
            sum(path.model.select().where(path.is_null(False)).count() for path, _, _ in archive.FILE_FIELDS),
            0,
        )
    for path, _, _ in archive.FILE_FIELDS:
        number, last = path.model.id, 0
        while True:
            with database.scope():
                chosen = (
                    path.model.select(number, path)
                    .where(number > last, path.is_null(False))
                    .order_by(number)
                    .limit(STEP)
                )
                rows = list(chosen.tuples())
                for _, name in rows:
                    _keep(name, private)
            if not rows:
                break
            last, done = rows[-1][0], done + len(rows)
            progress("linking", done, max(total, done))


def _take_moment(private: Path, progress: Progress) -> _Moment:
    """Bring the files, the key ring and the database of one moment into `private`."""
    missing: set[str] = set()
    for number in range(ROUNDS):
        with database.scope(), contextlib.ExitStack() as held:
            if number == ROUNDS - 1:
                held.enter_context(db.atomic())  # whoever wants to delete something waits until this is over
            store = database.store()
            live = held.enter_context(archive.opened(store.database, store.ring))
            held.enter_context(live.atomic("DEFERRED"))
            gone = {file.path for file in archive.stored_files(live) if not _keep(file.path, private)}
            if gone <= missing or number == ROUNDS - 1:
                for ring in archive.RINGS:
                    shutil.copyfile(store.folder / ring, private / Path(ring).name)
                _copy_database(live, private / archive.DATABASE, store.ring, progress)
                return _Moment(
                    store.ring, crypto.read_master_key(store.master_key_path) if store.encrypted else None
                )
            missing = gone
    raise AssertionError("the last round returns")


def _keep(path: str, private: Path) -> bool:
    """Give a stored file its second name; False when it is not there."""
    try:
        archive.link(
            f"{database.store().folder}/{path}", f"{private}/{path.rpartition('/')[2]}"
        )  # strings: there may be 200,000
    except FileExistsError:
        pass
    except FileNotFoundError:
        return False
    return True


def _copy_database(live: SqlCipherDatabase, target: Path, ring: crypto.KeyRing, progress: Progress) -> None:
    """Copy the rows that the open transaction of `live` sees, page by page under the same key."""
    # A copy that is cut off is thrown away: it needs neither journal nor flushes.
    unprotected = (("cipher_log_level", "NONE"), ("journal_mode", "OFF"), ("synchronous", "OFF"))
    with archive.opened(target, ring, unprotected) as copy:
        live.connection().backup(
            copy.connection(),
            pages=PAGES,
            progress=lambda _, remaining, total: progress("database", total - remaining, total),
        )


# ----------------------------------------------------------------------------------------------- the one file


def _write(
    file: BinaryIO,
    head: archive.Head,
    private: Path,
    copy: SqlCipherDatabase,
    master_key: bytes | None,
    progress: Progress,
) -> list[str]:
    """Write all members; returns the paths of the files that cannot be read."""
    unreadable = []
    with (private / archive.SUMS).open("w+b") as sums:
        tar = archive.Writer(file, sums, head.created_at)
        tar.add_bytes(archive.HEAD, msgspec.json.format(msgspec.json.encode(head)) + b"\n")
        for name in archive.RINGS:
            tar.add(name, private / Path(name).name)
        if master_key is not None:
            tar.add_bytes(archive.MASTER_KEY, master_key.hex().encode() + b"\n")
        tar.add(archive.DATABASE, private / archive.DATABASE)
        for number, stored in enumerate(archive.stored_files(copy), start=1):
            path = private / Path(stored.path).name
            if archive.FILE.fullmatch(stored.path) and stored.is_intact(path):
                tar.add(stored.path, path)
            else:
                unreadable.append(stored.path)
            if number % archive.REPORT == 0 or number == head.files:
                progress("writing", number, head.files)
        tar.add_bytes(archive.UNREADABLE, msgspec.json.encode(unreadable) + b"\n")
        tar.close()
    return unreadable


@contextlib.contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A file that becomes `target`, flushed, when all went well; else nothing is left of it."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb", buffering=archive.BLOCK) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        crypto.durable_rename(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
