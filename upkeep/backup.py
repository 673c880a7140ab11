"""The backup: one file with everything, made while the service runs; it is either complete or absent.

A backup is a snapshot of one moment. A read transaction fixes the rows, every file that they name is hard
linked into a private folder, where nothing deletes it, and the database is copied from the same transaction.
Stored files are never written to and are deleted only after their row, so a link is as good as a copy. A file
can still be deleted between the start of the transaction and its link; then the snapshot is repeated. The
newest files are linked first, so the second attempt nearly always succeeds. A file that was missing before a
snapshot and that this snapshot still names is lost. The links of 100,000 photos take some seconds, in which
nobody waits but a run that needs the folder alone.

The archive is then written without holding any lock, in the format of `upkeep/archive.py`. Files that cannot
be read or fail their authentication are left out and listed, so that one damaged picture does not make the
rest unusable.
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
import disk
from buckets import away
from database import db
from errors import Conflict, StorageFull, Unavailable, Unreadable
from locks import named_lock
from models import Photo
from settings import VERSION
from upkeep import archive
from upkeep.progress import Progress

ROUNDS = 5  # attempts at a snapshot; during the last one, writers wait
PAGES = 1_000  # database pages that are copied between two progress reports


class Made(NamedTuple):
    head: archive.Head
    size: int  # bytes of the file
    unreadable: list[str]  # paths below the data folder


def make(
    target: Path, progress: Progress, *, now: datetime, force: bool = False, with_master_key: bool = False
) -> Made:
    """Write a backup of the open data folder to `target`, mode 0600. Needs that no scope is open.

    Originals that are in a bucket are fetched. Those that cannot be fetched now are listed as unreadable;
    after a restore they are where they were.

    Raises `Conflict` when `target` exists, except with `force`; `StorageFull` when the disk has or gets too
    little space; `Unavailable` when another backup is being made. After any failure `target` is unchanged and
    no other file is left.
    """
    if target.exists() and not force:
        raise Conflict(f"{target} exists. Choose another name, or replace it with --force.")
    failure = f"The backup cannot be written to {target}"
    with archive.explain_failures(failure), snapshot(progress, now=now) as taken:
        archive.remove_matching(target.parent, re.escape(target.name) + r"\.[0-9a-f]{8}\.part")
        size = taken.head.bytes + archive.MEMBER * taken.head.files
        if shutil.disk_usage(target.parent).free < size:
            megabytes = math.ceil(size / 1_048_576)
            raise StorageFull(f"The backup needs {megabytes} MB, and less is free for {target}.")
        with _new_file(target) as file:
            unreadable = _write(file, taken, taken.master_key if with_master_key else None, progress)
    return Made(taken.head, target.stat().st_size, unreadable)


# ----------------------------------------------------------------------------------------------- the snapshot


class Snapshot(NamedTuple):
    """Everything as it is at one moment, in a private folder."""

    private: Path  # with the files under their own names, the copies of the key ring, and the database
    copy: SqlCipherDatabase  # a connection to that database
    head: archive.Head
    master_key: bytes | None  # that seals the key ring


@contextlib.contextmanager
def snapshot(progress: Progress, *, now: datetime) -> Iterator[Snapshot]:
    """A snapshot of the data folder, removed at the end. Needs no open scope. Raises `Unavailable`."""
    folder = database.store().folder
    busy = named_lock(folder / "jobs", "backup", 0, busy="Another backup is being made.")
    with busy, archive.private_folder(folder, "backup") as private:
        moment = _take_moment(private, progress)
        with archive.opened(private / archive.DATABASE, moment.ring) as copy:
            sizes = [disk.size_of(private / Path(file.path).name) for file in archive.stored_files(copy)]
            there = Photo.select(peewee.fn.SUM(Photo.away_bytes)).scalar(copy) or 0
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
                sum(sizes) + there + (private / archive.DATABASE).stat().st_size,
            )
            yield Snapshot(private, copy, head, moment.master_key)


class _Moment(NamedTuple):
    ring: crypto.KeyRing
    master_key: bytes | None  # that seals it


def _take_moment(private: Path, progress: Progress) -> _Moment:
    """Put the files, the key ring and the database of one moment into `private`."""
    missing: set[str] = set()
    for number in range(ROUNDS):
        with database.scope(), contextlib.ExitStack() as held:
            if number == ROUNDS - 1:
                held.enter_context(db.atomic())  # deletions wait until this is over
            store = database.store()
            live = held.enter_context(archive.opened(store.database, store.ring))
            held.enter_context(live.atomic("DEFERRED"))
            gone = {
                file.path
                for file in archive.stored_files(live)
                if not _keep(file.path, private) and not file.away
            }
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
    """Link a stored file into `private`; False when it does not exist."""
    try:
        # Strings instead of `Path`, which is slower: there may be 200,000 files.
        archive.link(f"{database.store().folder}/{path}", f"{private}/{path.rpartition('/')[2]}")
    except FileExistsError:
        pass
    except FileNotFoundError:
        return False
    return True


def _copy_database(live: SqlCipherDatabase, target: Path, ring: crypto.KeyRing, progress: Progress) -> None:
    """Copy the rows that the open transaction of `live` sees, page by page under the same key."""
    # An incomplete copy is deleted, so it needs neither journal nor flushes.
    unprotected = (("cipher_log_level", "NONE"), ("journal_mode", "OFF"), ("synchronous", "OFF"))
    with archive.opened(target, ring, unprotected) as copy:
        live.connection().backup(
            copy.connection(),
            pages=PAGES,
            progress=lambda _, remaining, total: progress("database", total - remaining, total),
        )


# ------------------------------------------------------------------------------------------------ the archive


def _write(file: BinaryIO, taken: Snapshot, master_key: bytes | None, progress: Progress) -> list[str]:
    """Write all members; returns the paths of the files that cannot be read."""
    private, copy, head, _ = taken
    unreadable = []
    with (private / archive.SUMS).open("w+b") as sums:
        tar = archive.Writer(file, sums, head.created_at)
        tar.add_bytes(archive.HEAD, msgspec.json.format(msgspec.json.encode(head)) + b"\n")
        for name in archive.RINGS:
            tar.add(name, private / Path(name).name)
        if master_key is not None:
            tar.add_bytes(archive.MASTER_KEY, master_key.hex().encode() + b"\n")
        tar.add(archive.DATABASE, private / archive.DATABASE)
        originals = Originals()
        for number, stored in enumerate(archive.stored_files(copy), start=1):
            path = private / Path(stored.path).name
            with originals.at_hand(stored, path):
                if archive.FILE.fullmatch(stored.path) and stored.is_intact(path):
                    tar.add(stored.path, path)
                else:
                    unreadable.append(stored.path)
            if number % archive.REPORT == 0 or number == head.files:
                progress("writing", number, head.files)
        tar.add_bytes(archive.UNREADABLE, msgspec.json.encode(unreadable) + b"\n")
        tar.close()
    return unreadable


class Originals:
    """The originals that are in a bucket, for a backup."""

    def __init__(self) -> None:
        self._source = away.bucket(database.store().settings)

    @contextlib.contextmanager
    def at_hand(self, file: archive.StoredFile, place: Path) -> Iterator[None]:
        """Fetch a file to `place` if it is in the bucket and not there, and delete it afterwards."""
        is_fetched = bool(file.away) and self._source is not None and not place.exists()
        if is_fetched and self._source is not None:
            with contextlib.suppress(Unavailable, Unreadable):
                away.fetch_to(place, file.path, file.key, self._source)
        try:
            yield
        finally:
            if is_fetched:
                place.unlink(missing_ok=True)


@contextlib.contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A file that is flushed and renamed to `target` on success, and removed on failure."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb", buffering=archive.BLOCK) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        disk.durable_rename(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
