"""Importing a folder of screenshots: finding its files and storing each one.

A stored file is recognised by its content, not by its name or place. So an import can be stopped at any time
and run again: it skips files that are stored already, even if they were moved or renamed.

The folder may be anybody's: a memory card, a share, a download. Each folder and file is opened below the one
that holds it, never through a link, so that a path of any length works and nothing outside of the folder is
read. Nothing that is not a regular file is opened, or waited for if it takes a file's place. A file is read
once, up to the limit of an upload.
"""

import dataclasses
import errno
import io
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

import access
import database
import pictures
import text
import uploads
from clock import utc_now
from errors import BadInput, SnaploreError
from spool import Spool

BLOCK = 262_144  # bytes that are read at once
MAX_SHOWN = 1_000  # characters of a path; a longer one is shown by its end
REPLACED = "has become something other than a file"

# O_NONBLOCK: a fifo that has taken a file's place is not waited for.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclasses.dataclass(frozen=True)
class Entry:
    """A file or folder below the imported folder, by its name and the folder that holds it."""

    parent: "Entry | None"  # None: the imported folder itself
    name: str  # as the system gives it, so it may have lone surrogates and control characters

    @property
    def shown(self) -> str:
        """The path as one line of text: what a terminal would not print is escaped."""
        return one_line("/".join(entry.name.rstrip("/") for entry in self._line()), MAX_SHOWN)

    @property
    def places(self) -> list[str]:
        """The names from below the imported folder down to this entry."""
        return [entry.name for entry in self._line()[1:]]

    def open(self) -> int:
        """A descriptor of the folder. Raises `OSError`, also when a folder on the way has become a link."""
        top, *below = self._line()
        folder = os.open(top.name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for entry in below:
            try:
                inner = os.open(entry.name, _FLAGS | os.O_DIRECTORY, dir_fd=folder)
            finally:
                os.close(folder)
            folder = inner
        return folder

    def _line(self) -> "list[Entry]":
        """The entries from the imported folder down to this one."""
        line, entry = [self], self.parent
        while entry is not None:
            line.append(entry)
            entry = entry.parent
        return line[::-1]


@dataclasses.dataclass(frozen=True)
class File(Entry):
    """A regular file, as it was listed. It can be opened until the next one is taken from `files`."""

    folder: int  # a descriptor


def files(
    folder: Path, *, leave_out: Path, failed: Callable[[Entry, Exception], None] = lambda entry, why: None
) -> Iterator[File]:
    """The files below `folder` in a stable order, without hidden files, links, devices and `leave_out`. Calls
    `failed` for a folder that cannot be listed.

    In memory are the names of one folder at a time, and those of the folders that are still to be listed.
    Raises `BadInput` when `folder` is `leave_out`, or inside it.
    """
    own = leave_out.resolve()
    if own in (folder.resolve(), *folder.resolve().parents):
        raise BadInput("FOLDER: the service's own data is not imported")
    own_place = os.stat(own)
    waiting = [Entry(None, str(folder))]
    while waiting:
        entry = waiting.pop()
        try:
            opened = entry.open()
        except OSError as problem:
            failed(entry, problem)
            continue
        try:
            if not os.path.samestat(os.fstat(opened), own_place):
                names, folders = _listed(opened)
                yield from (File(entry, name, opened) for name in names)
                waiting += [Entry(entry, name) for name in reversed(folders)]
        except OSError as problem:
            failed(entry, problem)
        finally:
            os.close(opened)


class Said(msgspec.Struct, frozen=True):
    """What an export or a library says about a picture."""

    taken: datetime | None = None  # UTC
    kept: bool = False
    tags: list[str] = []
    texts: dict[str, str] = {}  # title, summary, note and text
    records: list[dict[str, Any]] = []  # as `records.corrected` takes them
    device_id: str = ""
    device_name: str = ""
    local_id: str = ""  # empty: the checksum of the file
    filename: str = ""  # empty: that of the file
    source_type: str = "screenshot"
    whole_name: str = ""  # of the file, before the export cut it
    left_out: str = ""  # why it is not imported; empty when it is


NOTHING_SAID = Said()


class Received:
    """A picture that was read from a file, in a sealed spool. Close it, or use it as a context."""

    def __init__(self, spool: Spool, name: str, modified: float):
        self.spool = spool
        self.name = name
        self.modified = modified  # epoch seconds

    @property
    def sha256(self) -> bytes:
        return self.spool.sha256

    def __enter__(self) -> "Received":
        return self

    def __exit__(self, *_problem: object) -> None:
        self.spool.close()


def receive(file: File) -> Received | None:
    """Read a file; None when it is not a picture. Raises `SnaploreError`, `OSError`."""
    try:
        opened = os.open(file.name, _FLAGS, dir_fd=file.folder)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise BadInput(REPLACED) from None
        raise
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput(REPLACED)
        # Files of /proc and /sys are empty by their size. To read one may take forever, or have an effect.
        blocks = iter(lambda: os.read(opened, BLOCK), b"") if found.st_size else ()
        return received(blocks, file.name, found.st_mtime)
    finally:
        os.close(opened)


def received(blocks: Iterable[bytes], name: str, modified: float) -> Received | None:
    """A picture from its bytes; None when they are none. Raises `SnaploreError`."""
    remaining = iter(blocks)
    first = next(remaining, b"")
    if not pictures.recognised(io.BytesIO(first)):
        return None
    spool = Spool(uploads.MAX_FILE)
    try:
        for block in itertools.chain((first,), remaining):
            spool.write(block)
            if spool.oversized:
                break
        spool.check()
    except BaseException:
        spool.close()
        raise
    return Received(spool, text.storable(name), modified)


def store(received: Received, upload: uploads.Upload) -> uploads.Stored:
    """Store a picture that was received. Opens a scope. Raises `SnaploreError`, `OSError`."""
    with database.scope():
        return uploads.store(received.spool, upload, now=utc_now())


def described(
    received: Received, device_id: str, device_name: str, said: Said = NOTHING_SAID
) -> uploads.Upload:
    """A picture that was received, as an upload, with what an export or a library says about it."""
    local_id = said.local_id
    if not local_id and said.device_id in ("", access.NO_DEVICE):
        # The checksum identifies the file, so that the next run recognises it wherever it is. Photos of a
        # device need no id for that.
        local_id = f"sha256:{received.sha256.hex()}"
    return uploads.Upload(
        said.device_id or device_id,
        said.filename or received.name,
        said.taken,
        said.device_name or device_name,
        said.source_type,
        file_date=_time(received.modified),
        local_media_store_id=local_id,
    )


def read_small(file: File, most: int) -> bytes:
    """The first `most` bytes of a file. Raises `OSError`."""
    opened = os.open(file.name, _FLAGS, dir_fd=file.folder)
    with os.fdopen(opened, "rb") as content:
        return content.read(most) if stat.S_ISREG(os.fstat(opened).st_mode) else b""


def one_line(path: str, most: int) -> str:
    """The last `most` characters of a path; what a terminal would not print is escaped."""
    shown = path if len(path) <= most else f"…{path[-most:]}"
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in shown)


def reason(problem: Exception) -> str:
    """Why an entry could not be imported, in a few words, without its path."""
    if isinstance(problem, SnaploreError):
        return problem.detail
    return (isinstance(problem, OSError) and problem.strerror) or type(problem).__name__


def _listed(folder: int) -> tuple[list[str], list[str]]:
    """The names of the regular files and of the folders in a folder, sorted, without hidden ones."""
    names, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_file(follow_symlinks=False):
                names.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return sorted(names), sorted(folders)


def _time(seconds: float) -> datetime:
    """This time, or the present one if it is outside of the calendar, as file systems allow."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return utc_now()
