"""Uploaded files while they arrive: hashed and counted, and never unencrypted on the disk.

Up to `IN_MEMORY` bytes an upload stays in memory; a larger one goes into a sealed file in the data folder,
under a key of its own. A rename makes it the stored file, so large uploads are written once. Bytes beyond the
size limit are counted and dropped; the caller checks `oversized`, and because the body was drained, the
client can read the 413.
"""

import contextlib
import hashlib
import io
import secrets
from pathlib import Path
from typing import BinaryIO

import crypto
import database
import disk
from errors import BadInput, TooLarge
from settings import MEGABYTE

IN_MEMORY = 1 * MEGABYTE


def new_place(under: Path) -> Path:
    """A path with a random name for a new file below `under`; its folder exists durably."""
    name = secrets.token_hex(16)
    folder = under / name[:2]
    if not folder.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        disk.sync_file(under)
    return folder / name


def keep_bytes(content: bytes, target: Path) -> bytes | None:
    """Store `content` as the file `target`, flushed, and return its key. The caller flushes the folder."""
    with contextlib.closing(Spool(len(content))) as spool:
        spool.write(content)
        return spool.keep(target)


class Spool:
    """An upload: written by the form parser, then read, then stored by `keep` or dropped by `close`."""

    def __init__(self, largest: int):
        self.size = 0
        self.oversized = False
        self._largest = largest
        self._hash = hashlib.sha256()
        self._memory = bytearray()
        self._writer: disk.SealedWriter | None = None
        self._key: bytes | None = None
        self._sealed: Path | None = None  # a complete file, not stored yet

    @property
    def sha256(self) -> bytes:
        return self._hash.digest()

    def write(self, data: bytes) -> int:
        self.size += len(data)
        if self.size > self._largest:
            self.oversized = True
            self.close()
            return len(data)
        self._hash.update(data)
        if self._writer is None and self.size > IN_MEMORY:
            self._spill()
        if self._writer is None:
            self._memory += data
            return len(data)
        return self._writer.write(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Do nothing: the form parser rewinds what it wrote, but `open` makes readers of their own."""
        return 0

    def check(self) -> None:
        """Raise `TooLarge` when the upload exceeds its limit, and `BadInput` when it is empty."""
        if self.oversized:
            raise TooLarge(f"file: is larger than {self._largest // MEGABYTE} MB")
        if not self.size:
            raise BadInput("file: is empty")

    def open(self) -> BinaryIO:
        """A seekable reader of the content; nothing may be written after this."""
        if self._writer is None and self._sealed is None:
            return io.BytesIO(self._memory)
        return disk.open_sealed(self._complete(), self._key)

    def keep(self, target: Path) -> bytes | None:
        """Store this as the file `target`, flushed, and return its key. The caller flushes the folder."""
        if self._writer is None and self._sealed is None:
            self._spill()
        sealed = self._complete()
        disk.sync_file(sealed)
        sealed.rename(target)
        self._sealed = None
        return self._key

    def close(self) -> None:
        """Drop the content, unless `keep` has stored it."""
        self._memory.clear()
        if self._writer is not None:
            self._writer.discard()
            self._writer = None
        if self._sealed is not None:
            self._sealed.unlink(missing_ok=True)
            self._sealed = None

    def _spill(self) -> None:
        store = database.store()
        self._key = crypto.new_key() if store.encrypted else None
        self._writer = disk.SealedWriter(store.spool / secrets.token_hex(16), self._key)
        self._writer.write(self._memory)
        self._memory = bytearray()

    def _complete(self) -> Path:
        if self._writer is not None:
            self._writer.finish()
            self._sealed = self._writer.path
            self._writer = None
        if self._sealed is None:
            raise RuntimeError("there is no sealed file")
        return self._sealed
