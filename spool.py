"""A file part on its way in: hashed and counted as it arrives, and never readable on the disk, not even for a
moment.

Up to `IN_MEMORY` bytes it stays in memory; beyond, it goes into a sealed file under the data folder, under a
key of its own. That file becomes the stored one by a rename, so large uploads are written once. What arrives
beyond the limit is counted and thrown away: the caller says no by `oversized`, and the client gets to read
it.
"""

import contextlib
import hashlib
import io
import secrets
from pathlib import Path
from typing import BinaryIO

import crypto
import database
from errors import BadInput, TooLarge
from settings import MEGABYTE

IN_MEMORY = 1 * MEGABYTE


def new_place(under: Path) -> Path:
    """A path for a new file below the folder `under`: of a random name, in a folder that is there durably."""
    name = secrets.token_hex(16)
    folder = under / name[:2]
    if not folder.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        crypto.sync_file(under)
    return folder / name


def keep_bytes(content: bytes, target: Path) -> bytes | None:
    """Make a stored file of what is in memory, its content flushed; returns its key. The caller flushes the
    folder.
    """
    with contextlib.closing(Spool(len(content))) as spool:
        spool.write(content)
        return spool.keep(target)


class Spool:
    """Written by the form parser, then read, then either kept by `keep` or gone with `close`."""

    def __init__(self, largest: int):
        self.size = 0
        self.oversized = False
        self._largest = largest
        self._hash = hashlib.sha256()
        self._memory = bytearray()
        self._writer: crypto.SealedWriter | None = None
        self._key: bytes | None = None
        self._sealed: Path | None = None  # a complete file, not yet kept

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
        """The form parser rewinds what it wrote; readers come from `open`."""
        return 0

    def check(self) -> None:
        """Raises `TooLarge` when more came than may come, and `BadInput` when nothing did."""
        if self.oversized:
            raise TooLarge(f"file: is larger than {self._largest // MEGABYTE} MB")
        if not self.size:
            raise BadInput("file: is empty")

    def open(self) -> BinaryIO:
        """A seekable reader of what has arrived."""
        if self._writer is None and self._sealed is None:
            return io.BytesIO(self._memory)
        return crypto.open_sealed(self._complete(), self._key)

    def keep(self, target: Path) -> bytes | None:
        """Make this the stored file `target`, its content flushed; returns its key. The caller flushes the
        folder.
        """
        if self._writer is None and self._sealed is None:
            self._spill()
        sealed = self._complete()
        crypto.sync_file(sealed)
        sealed.rename(target)
        self._sealed = None
        return self._key

    def close(self) -> None:
        """Drop what is still held; what was kept stays."""
        self._memory.clear()
        if self._writer is not None:
            self._writer.discard()
            self._writer = None
        if self._sealed is not None:
            self._sealed.unlink(missing_ok=True)
            self._sealed = None

    def _spill(self) -> None:
        store = database.store()
        self._key = store.new_file_key()
        self._writer = crypto.SealedWriter(store.spool / secrets.token_hex(16), self._key)
        self._writer.write(self._memory)
        self._memory = bytearray()

    def _complete(self) -> Path:
        if self._writer is not None:
            self._writer.finish()
            self._sealed = self._writer.path
            self._writer = None
        if self._sealed is None:
            raise RuntimeError("nothing was written to a file")
        return self._sealed
