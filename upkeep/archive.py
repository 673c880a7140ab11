"""The file format of a backup, which `upkeep.backup` writes and `upkeep.restore` reads, and its files.

It is a tar file, uncompressed because sealed bytes do not compress. It can be read without Snaplore: `tar`
unpacks it, and `sha256sum -c SHA256SUMS` checks it. That list is the last member, so a truncated file is
never valid.
"""

import contextlib
import errno
import hashlib
import heapq
import io
import itertools
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import peewee
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
import disk
import models
from buckets import away
from clock import to_epoch_ms
from errors import DataDamaged, SnaploreError, StorageFull, Unreadable

FORMAT = 1  # increased when an older Snaplore cannot restore the file
BLOCK = 1_048_576  # bytes
# Bytes that a member takes beyond its content, at most: its header, its padding and its line in the list.
MEMBER = 1_200
REPORT = 50  # files between two progress reports
# Pragmas of a connection that only reads.
READING = (("cipher_log_level", "NONE"), ("temp_store", 2), ("busy_timeout", 10_000))

# Sizes of more than 8 GB fit into a header of this format. PAX would put them into an extended header, and a
# restore accepts none.
TAR_FORMAT = tarfile.GNU_FORMAT

# The members, in this order. The master key is optional; the stored files are between the database and the
# last two.
HEAD = "backup.json"
RINGS = ("keys/ring.1", "keys/ring.2")
MASTER_KEY = "keys/master.key"
DATABASE = "database.db"
FILE = re.compile(r"(?:photos|attachments)/([0-9a-f]{2})/\1[0-9a-f]{30}(?:\.thumbnail)?")
UNREADABLE = "unreadable.json"
SUMS = "SHA256SUMS"

ASIDE = "before-restore-"  # the beginning of the name of the folder with the data from before a restore

MEMBERS = {HEAD, *RINGS, MASTER_KEY, DATABASE, UNREADABLE, SUMS}
# The largest size, in bytes, of the members that a restore reads into memory. The list of unreadable files
# has room for a million.
LARGEST = {HEAD: 100_000, **dict.fromkeys(RINGS, 100_000), MASTER_KEY: 100_000, UNREADABLE: 64 * BLOCK}


class Head(msgspec.Struct, frozen=True):
    """The first member, which describes the backup."""

    format: int
    version: str  # of the Snaplore that made it
    created_at: datetime  # UTC
    encrypted: bool
    generation: int  # of the key ring
    photos: int
    files: int  # pictures, thumbnails and attachments, including the unreadable ones
    bytes: int = 0  # about how much room it takes unpacked; 0: an earlier version did not say


# ---------------------------------------------------------------------------------------------------- members


class Writer:
    """Writes a tar file member by member, with the list of their checksums."""

    def __init__(self, file: BinaryIO, sums: BinaryIO, now: datetime):
        # copybufsize is documented nowhere and has no type; its default of 16 KB costs many small reads.
        self._tar: tarfile.TarFile = tarfile.open(  # type: ignore[call-overload]  # noqa: SIM115 - see close
            fileobj=file, mode="w", format=TAR_FORMAT, copybufsize=BLOCK
        )
        self._sums = sums
        self._time = to_epoch_ms(now) // 1000

    def add(self, name: str, path: Path) -> None:
        with path.open("rb", buffering=0) as file:
            self._add(name, file, os.fstat(file.fileno()).st_size)

    def add_bytes(self, name: str, content: bytes) -> None:
        self._add(name, io.BytesIO(content), len(content))

    def close(self) -> None:
        """Add the list of checksums and end the file."""
        self._sums.seek(0)
        self._add(SUMS, self._sums, os.fstat(self._sums.fileno()).st_size, listed=False)
        self._tar.close()

    def _add(self, name: str, file: BinaryIO, size: int, *, listed: bool = True) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, self._time
        reader = Hashing(file)
        self._tar.addfile(member, reader)
        self._tar.members.clear()  # type: ignore[attr-defined]  # an entry per file would stay in memory
        if listed:
            self._sums.write(sum_line(reader.digest.hexdigest(), name))


class Hashing:
    """A reader that hashes what is read through it."""

    def __init__(self, file: BinaryIO):
        self.digest = hashlib.sha256()
        self._file = file

    def read(self, size: int = -1) -> bytes:
        block = self._file.read(size)
        self.digest.update(block)
        return block


def sum_line(digest: str, name: str) -> bytes:
    """A line of `SUMS`, in the format of `sha256sum`."""
    return f"{digest}  {name}\n".encode()


# --------------------------------------------------------------------------------- the database and its files


@contextlib.contextmanager
def opened(
    path: Path, ring: crypto.KeyRing, pragmas: Iterable[tuple[str, str | int]] = READING
) -> Iterator[SqlCipherDatabase]:
    """A separate connection to the database at `path`, under the key of `ring`."""
    copy = SqlCipherDatabase(
        str(path), passphrase=database.passphrase(ring), pragmas=pragmas, autoconnect=False
    )
    copy.connect()
    try:
        yield copy
    finally:
        copy.close()


class StoredFile(NamedTuple):
    """A file that a row names."""

    path: str  # below the data folder
    key: bytes | None
    sha256: bytes | None  # of the content, where the row has one
    away: int = away.HERE  # where it may be, as `buckets.away` has it

    def is_intact(self, place: Path) -> bool:
        """Whether the file at `place` is complete: all chunks are authentic, or the checksum is the row's."""
        digest = hashlib.sha256() if self.key is None and self.sha256 is not None else None
        try:
            with disk.open_sealed(place, self.key) as file:
                while block := file.read(BLOCK):
                    if digest is not None:
                        digest.update(block)
        except (Unreadable, OSError):
            return False
        return digest is None or digest.digest() == self.sha256


FILE_FIELDS = tuple(itertools.chain.from_iterable(models.FILES.values()))


def stored_files(copy: SqlCipherDatabase) -> Iterator[StoredFile]:
    """Every file that a row names, the newest first within each kind."""
    for fields in FILE_FIELDS:
        for row in _rows(fields).order_by(fields.path.model.id.desc()).tuples().iterator(copy):
            yield StoredFile(*row)


def stored_by_path(copy: SqlCipherDatabase) -> Iterator[StoredFile]:
    """As `stored_files`, ascending by path. Each kind is read by the index of its path."""
    kinds = [
        itertools.starmap(StoredFile, _rows(fields).order_by(fields.path).tuples().iterator(copy))
        for fields in FILE_FIELDS
    ]
    return heapq.merge(*kinds, key=lambda file: file.path)


def _rows(fields: models.FileFields) -> "peewee.ModelSelect[Any]":
    path, key, digest, place = fields
    columns = (peewee.SQL("NULL") if digest is None else digest, peewee.SQL("0") if place is None else place)
    rows: peewee.ModelSelect[Any] = path.model.select(path, key, *columns)
    return rows.where(path.is_null(False))


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


class Ascending(Generic[N]):
    """Looks up names, in ascending order, in a stream that ascends: no list of either is in memory.

    `passed` is called with what was not looked up. Raises `Unreadable` when the stream does not ascend.
    """

    def __init__(self, items: Iterator[N], passed: Callable[[N], object] = lambda item: None):
        self._items, self._passed = items, passed
        self._next = next(items, None)

    def find(self, name: str) -> N | None:
        while self._next is not None and self._next.name < name:
            self._passed(self._next)
            self._advance()
        if self._next is None or self._next.name != name:
            return None
        found = self._next
        self._advance()
        return found

    def end(self) -> None:
        """Nothing more is looked up."""
        while self._next is not None:
            self._passed(self._next)
            self._advance()

    def _advance(self) -> None:
        before = self._next.name if self._next is not None else ""
        self._next = next(self._items, None)
        if self._next is not None and self._next.name < before:
            raise Unreadable("The store, or a list of checksums, does not name objects in their order.")


def link(source: Path | str, target: Path | str) -> None:
    """Link or copy `source` to `target`. Raises `FileExistsError` and `FileNotFoundError`."""
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError as problem:
        if problem.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
            raise
        with open(source, "rb") as original, open(target, "xb") as copy:
            shutil.copyfileobj(original, copy, BLOCK)


# ----------------------------------------------------------------------------------------------- around a run


def is_kept_aside(folder: Path) -> bool:
    """Whether a restore has kept the data from before it."""
    return any(folder.glob(f"{ASIDE}*"))


@contextlib.contextmanager
def private_folder(folder: Path, purpose: str) -> Iterator[Path]:
    """A temporary folder below the data folder, removed at the end, as are those of killed runs."""
    remove_matching(folder, f"{purpose}-[0-9a-f]{{16}}")
    private = folder / f"{purpose}-{secrets.token_hex(8)}"
    private.mkdir(mode=0o700)
    try:
        yield private
    finally:
        shutil.rmtree(private)


def remove_matching(folder: Path, name: str) -> None:
    """Remove the files and folders in `folder` whose whole name matches the regular expression."""
    for path in folder.iterdir():
        if re.fullmatch(name, path.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextlib.contextmanager
def explain_failures(what: str) -> Iterator[None]:
    """Turn a failure of the disk or of a database into an error whose sentence starts with `what`."""
    try:
        yield
    except database.DATABASE_ERRORS as problem:
        known = database.known_failure(problem)
        if known is None or isinstance(known, DataDamaged):
            known = Unreadable(f"{what}: the database is damaged, or encrypted with another key.")
        raise known from problem
    except OSError as problem:
        if isinstance(problem, SnaploreError):
            raise
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull(f"{what}: the disk is full.") from None
        raise SnaploreError(f"{what}: {problem.strerror or problem}.") from problem
