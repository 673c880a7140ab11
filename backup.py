"""The backup: one file with everything, made beside the running service, and complete or not there at all.

It shows one moment. A read transaction fixes the rows of that moment, and every file that they name gets a second name (a hard link)
in a private folder, where nothing deletes it; the database is then copied out of the same transaction. Files are never written to, and
they go only after their row, so a link is as good as a copy. Most links are made before that moment, in short scopes, so that the
transaction is short. A file can still vanish between the moment and its link: then the moment is taken anew, and since the newest files
are linked first, once more is nearly always enough. A file that a later moment still names, and that was missing before it, is lost.

With no lock held, all of that becomes a tar file, uncompressed because sealed bytes do not compress. Anybody can take it apart without
Snaplore: `tar` unpacks it, and `sha256sum -c SHA256SUMS` checks it. This list is its last member, so a file that was cut off is never
valid. What cannot be read or fails its authentication is left out and named, so that one damaged picture does not spoil the rest.
"""

import contextlib
import errno
import hashlib
import io
import itertools
import math
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import peewee
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import models
from clock import to_epoch_ms
from errors import Conflict, DataDamaged, SnaploreError, StorageFull, Unreadable
from locks import named_lock
from models import Photo, db
from progress import Progress
from settings import VERSION

FORMAT = 1  # grows when an older Snaplore could not restore the file
ROUNDS = 5  # moments that are tried before writers are made to wait for the last one
STEP = 500  # rows whose files are linked in one scope
PAGES = 1_000  # of the database that are copied between two looks at the progress bar
BLOCK = 1_048_576  # bytes
MEMBER = 1_200  # bytes that a member takes beyond its content, at most: its header, its padding, its line in the list
# Of a connection that only reads.
READING = (("cipher_log_level", "NONE"), ("temp_store", 2), ("busy_timeout", 10_000))
REPORT = 50  # files between two looks at the progress bar

# The members, in this order; the master key only where it was asked for, and the files between the database and the last two.
HEAD = "backup.json"
RINGS = ("keys/ring.1", "keys/ring.2")
MASTER_KEY = "keys/master.key"
DATABASE = "database.db"
FILE = re.compile(r"(?:photos|attachments)/([0-9a-f]{2})/\1[0-9a-f]{30}(?:\.thumbnail)?")
UNREADABLE = "unreadable.json"
SUMS = "SHA256SUMS"

MEMBERS = {HEAD, *RINGS, MASTER_KEY, DATABASE, UNREADABLE, SUMS}


class Head(msgspec.Struct, frozen=True):
    """What the backup says of itself before anything else."""

    format: int
    version: str  # of the Snaplore that made it
    created_at: datetime  # UTC
    encrypted: bool
    generation: int  # of the key ring
    photos: int
    files: int  # pictures, thumbnails and attachments, the unreadable ones too


class Made(NamedTuple):
    head: Head
    size: int  # bytes of the file
    unreadable: list[str]  # paths below the data folder


class StoredFile(NamedTuple):
    """A file that a row names."""

    path: str  # below the data folder
    key: bytes | None
    sha256: bytes | None  # of the content, where the row has it

    def is_intact(self, place: Path) -> bool:
        """Whether `place` holds it: authentic from the first chunk to the last, or, where it is not sealed, of the row's sum."""
        digest = hashlib.sha256() if self.key is None and self.sha256 is not None else None
        try:
            with crypto.open_sealed(place, self.key) as file:
                while block := file.read(BLOCK):
                    if digest is not None:
                        digest.update(block)
        except (Unreadable, OSError):
            return False
        return digest is None or digest.digest() == self.sha256


def make(target: Path, progress: Progress, *, now: datetime, force: bool = False, with_master_key: bool = False) -> Made:
    """Write a backup of the open data folder to `target`, mode 0600. Needs that no scope is open.

    Raises `Conflict` when there is one, except with `force`; `StorageFull` before or while the disk is full; `Unavailable` when
    another backup is being made. Then `target` is as it was, and nothing else is left.
    """
    if target.exists() and not force:
        raise Conflict(f"{target} exists. Choose another name, or replace it with --force.")
    folder = models.store().folder
    busy = named_lock(folder / "jobs", "backup", 0, busy="Another backup is being made.")
    with told(f"The backup cannot be written to {target}"), busy, private_folder(folder, "backup") as private:
        _remove(target.parent, re.escape(target.name) + r"\.[0-9a-f]{8}\.part")
        _link_ahead(private, progress)
        moment = _take_moment(private, progress)
        with opened(private / DATABASE, moment.ring) as database:
            sizes = [_size(private, file) for file in stored_files(database)]
            size = (private / DATABASE).stat().st_size + sum(sizes) + MEMBER * len(sizes)
            if shutil.disk_usage(target.parent).free < size:
                raise StorageFull(f"The backup needs {math.ceil(size / 1_048_576)} MB, and less is free where {target} is to be.")
            photos = Photo.select(peewee.fn.COUNT(Photo.id)).scalar(database)
            head = Head(FORMAT, VERSION, now, moment.ring.database_key is not None, moment.ring.generation, photos, len(sizes))
            with _new_file(target) as file:
                unreadable = _write(file, head, private, database, moment.master_key if with_master_key else None, progress)
    return Made(head, target.stat().st_size, unreadable)


# --------------------------------------------------------------------------------------------------- what restoring needs, too


@contextlib.contextmanager
def opened(path: Path, ring: crypto.KeyRing, pragmas: Iterable[tuple] = READING) -> Iterator[SqlCipherDatabase]:
    """A connection of its own to the database at `path`, under the key of `ring`."""
    database = SqlCipherDatabase(str(path), passphrase=models.passphrase(ring), pragmas=pragmas, autoconnect=False)
    database.connect()
    try:
        yield database
    finally:
        database.close()


def stored_files(database: SqlCipherDatabase) -> Iterator[StoredFile]:
    """Every file that a row names; of each kind the newest first."""
    for path, key, digest in _FIELDS:
        columns = (path, key, peewee.SQL("NULL") if digest is None else digest)
        chosen = path.model.select(*columns).where(path.is_null(False)).order_by(path.model.id.desc())
        for row in chosen.tuples().iterator(database):
            yield StoredFile(*row)


def link(source: Path | str, target: Path | str) -> None:
    """A second name for a file, or a copy where the file system has no links. Raises `FileExistsError` and `FileNotFoundError`."""
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
            raise
        with open(source, "rb") as original, open(target, "xb") as copy:
            shutil.copyfileobj(original, copy, BLOCK)


@contextlib.contextmanager
def private_folder(folder: Path, purpose: str) -> Iterator[Path]:
    """Where a new state is put together, below the data folder, while this lasts; what killed runs have left goes first."""
    _remove(folder, f"{purpose}-[0-9a-f]{{16}}")
    private = folder / f"{purpose}-{secrets.token_hex(8)}"
    private.mkdir(mode=0o700)
    try:
        yield private
    finally:
        shutil.rmtree(private)


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """A failure of the disk or of a database becomes a sentence that starts with `what`."""
    try:
        yield
    except models.DATABASE_ERRORS as problem:
        known = models.known_failure(problem)
        if known is None or isinstance(known, DataDamaged):
            known = Unreadable(f"{what}: the database is damaged, or not the key's own.")
        raise known from problem
    except OSError as problem:
        if isinstance(problem, SnaploreError):
            raise
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"{what}: the disk is full.") from None
        raise SnaploreError(f"{what}: {problem.strerror or problem}.") from problem


_FIELDS = tuple(itertools.chain.from_iterable(models.FILES.values()))

# ------------------------------------------------------------------------------------------------------------- the one moment


def _remove(folder: Path, name: str) -> None:
    for path in folder.iterdir():
        if re.fullmatch(name, path.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


class _Moment(NamedTuple):
    ring: crypto.KeyRing
    master_key: bytes | None  # that seals it


def _link_ahead(private: Path, progress: Progress) -> None:
    """Link nearly everything, in short scopes: what needs the folder alone does not wait for more than one."""
    with models.scope():
        total, done = sum(path.model.select().where(path.is_null(False)).count() for path, _, _ in _FIELDS), 0
    for path, _, _ in _FIELDS:
        number, last = path.model.id, 0
        while True:
            with models.scope():
                chosen = path.model.select(number, path).where(number > last, path.is_null(False)).order_by(number).limit(STEP)
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
        with models.scope(), contextlib.ExitStack() as held:
            if number == ROUNDS - 1:
                held.enter_context(db.atomic())  # whoever wants to delete something waits until this is over
            store = models.store()
            live = held.enter_context(opened(store.database, store.ring))
            held.enter_context(live.atomic("DEFERRED"))
            gone = {file.path for file in stored_files(live) if not _keep(file.path, private)}
            if gone <= missing or number == ROUNDS - 1:
                for ring in RINGS:
                    shutil.copyfile(store.folder / ring, private / Path(ring).name)
                _copy_database(live, private / DATABASE, store.ring, progress)
                return _Moment(store.ring, crypto.read_master_key(store.master_key_path) if store.encrypted else None)
            missing = gone
    raise AssertionError("the last round returns")


def _keep(path: str, private: Path) -> bool:
    """Give a stored file its second name; False when it is not there."""
    try:
        link(f"{models.store().folder}/{path}", f"{private}/{path.rpartition('/')[2]}")  # strings: there may be 200,000
    except FileExistsError:
        pass
    except FileNotFoundError:
        return False
    return True


def _copy_database(live: SqlCipherDatabase, target: Path, ring: crypto.KeyRing, progress: Progress) -> None:
    """Copy the rows that the open transaction of `live` sees, page by page under the same key."""
    # A copy that is cut off is thrown away: it needs neither journal nor flushes.
    unprotected = (("cipher_log_level", "NONE"), ("journal_mode", "OFF"), ("synchronous", "OFF"))
    with opened(target, ring, unprotected) as copy:
        live.connection().backup(
            copy.connection(), pages=PAGES, progress=lambda _, remaining, total: progress("database", total - remaining, total)
        )


# --------------------------------------------------------------------------------------------------------------- the one file


class _Archive:
    """A tar file that is written member by member, with the list of their sums."""

    def __init__(self, file: BinaryIO, sums: BinaryIO, now: datetime):
        self._tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, copybufsize=BLOCK)  # noqa: SIM115 - see close
        self._sums = sums
        self._time = to_epoch_ms(now) // 1000

    def add(self, name: str, path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            self._add(name, file, os.fstat(file.fileno()).st_size)

    def add_bytes(self, name: str, content: bytes) -> None:
        self._add(name, io.BytesIO(content), len(content))

    def close(self) -> None:
        """Add the list, and end the file."""
        self._sums.seek(0)
        self._add(SUMS, self._sums, os.fstat(self._sums.fileno()).st_size, listed=False)
        self._tar.close()

    def _add(self, name: str, file: BinaryIO, size: int, *, listed: bool = True) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, self._time
        reader = Hashing(file)
        self._tar.addfile(member, reader)
        self._tar.members.clear()  # it would keep them all in memory
        if listed:
            self._sums.write(sum_line(reader.digest.hexdigest(), name))


class Hashing:
    """A reader that sums up what goes through it."""

    def __init__(self, file: BinaryIO):
        self.digest = hashlib.sha256()
        self._file = file

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self.digest.update(block)
        return block


def sum_line(digest: str, name: str) -> bytes:
    """A line of `SUMS`, as `sha256sum` writes it."""
    return f"{digest}  {name}\n".encode()


def _write(
    file: BinaryIO, head: Head, private: Path, database: SqlCipherDatabase, master_key: bytes | None, progress: Progress
) -> list[str]:
    """Write all members; returns the paths of the files that cannot be read."""
    unreadable = []
    with (private / SUMS).open("w+b") as sums:
        archive = _Archive(file, sums, head.created_at)
        archive.add_bytes(HEAD, msgspec.json.format(msgspec.json.encode(head)) + b"\n")
        for name in RINGS:
            archive.add(name, private / Path(name).name)
        if master_key is not None:
            archive.add_bytes(MASTER_KEY, master_key.hex().encode() + b"\n")
        archive.add(DATABASE, private / DATABASE)
        for number, stored in enumerate(stored_files(database), start=1):
            path = private / Path(stored.path).name
            if FILE.fullmatch(stored.path) and stored.is_intact(path):
                archive.add(stored.path, path)
            else:
                unreadable.append(stored.path)
            if number % REPORT == 0 or number == head.files:
                progress("writing", number, head.files)
        archive.add_bytes(UNREADABLE, msgspec.json.encode(unreadable) + b"\n")
        archive.close()
    return unreadable


@contextlib.contextmanager
def _new_file(target: Path) -> Iterator[BinaryIO]:
    """A file that becomes `target`, flushed, when all went well; else nothing is left of it."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb", buffering=BLOCK) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        crypto.durable_rename(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _size(private: Path, file: StoredFile) -> int:
    try:
        return (private / Path(file.path).name).stat().st_size
    except FileNotFoundError:
        return 0
