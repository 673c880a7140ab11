"""Files on the disk: sealed ones, each by a key of its own, and what makes a file or a name durable.

A sealed file is AES-256-GCM in chunks of 64 KB. Without a key, the same bytes are written as they are.
"""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from errors import Unreadable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 65_536
_HEADER = b"SNAPSEAL1\n"
_TAG = 16
_SEALED_CHUNK = CHUNK + _TAG


class SealedWriter:
    """Writes a new file at `path`, sealed under `key` in chunks as data arrives; holds at most two in memory.

    Each chunk is encrypted with AES-256-GCM in the STREAM construction (Hoang, Reyhanitabar, Rogaway and
    Vizár, 2015). Its nonce is the chunk's number and a flag for the last chunk, so changed, missing, swapped
    and repeated chunks are detected. Files share nonces, which is safe because every file has a key of its
    own. With `key` None the bytes are written unencrypted.
    """

    def __init__(self, path: Path, key: bytes | None):
        self.path = path
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed by finish() or discard()
        self._cipher = AESGCM(key) if key is not None else None
        self._held = bytearray()
        self._number = 0
        if self._cipher:
            try:
                _write_all(self._file, _HEADER)
            except OSError:  # a full disk: the caller gets no writer that could discard the file
                self.discard()
                raise

    def write(self, data: bytes | bytearray) -> int:
        if self._cipher is None:
            _write_all(self._file, data)
            return len(data)
        self._held += data
        # The last chunk carries a flag, so a full chunk waits until more data arrives.
        while len(self._held) > CHUNK:
            self._put(self._cipher, bytes(self._held[:CHUNK]), last=False)
            del self._held[:CHUNK]
        return len(data)

    def finish(self) -> None:
        """Complete the file. It is durable only after `sync_file`."""
        if self._cipher:
            self._put(self._cipher, bytes(self._held), last=True)
            self._held.clear()
        self._file.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _put(self, cipher: AESGCM, chunk: bytes, *, last: bool) -> None:
        _write_all(self._file, cipher.encrypt(_nonce(self._number, last), chunk, _HEADER))
        self._number += 1


def open_sealed(path: Path, key: bytes | None) -> io.BufferedReader:
    """A seekable binary reader of a file written by `SealedWriter`, in constant memory.

    This call authenticates the file's length, each read its chunk. Raises `Unreadable` when the file cannot
    be opened, and `DamagedFile`, also from a read, when authentication fails.
    """
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 - owned by the reader
    except OSError as problem:
        raise Unreadable(f"A stored file cannot be opened: {problem.strerror}.") from None
    if key is None:
        return io.BufferedReader(file)
    try:
        return io.BufferedReader(_SealedFile(file, key), CHUNK)
    except BaseException:
        file.close()
        raise


def sealed_size(size: int) -> int:
    """The bytes of a file that `SealedWriter` makes under a key of so many bytes."""
    return len(_HEADER) + size + _TAG * max(1, -(-size // CHUNK))


def is_unsealed(path: Path) -> bool:
    """Whether the file has content that `SealedWriter` did not write under a key. Raises `OSError`."""
    with path.open("rb", buffering=0) as file:
        start = file.read(len(_HEADER))
    return bool(start) and start != _HEADER


class DamagedFile(Unreadable, OSError):
    """A sealed file fails authentication. Also an `OSError`: picture decoders treat it as a failing disk."""


class _SealedFile(io.RawIOBase):
    def __init__(self, file: io.FileIO, key: bytes):
        self._file = file
        self._cipher = AESGCM(key)
        self._position = 0
        self._loaded: tuple[int, bytes] = (-1, b"")
        sealed = os.fstat(file.fileno()).st_size - len(_HEADER)
        self._chunks = max(1, -(-sealed // _SEALED_CHUNK))
        if sealed < _TAG or file.read(len(_HEADER)) != _HEADER:
            raise DamagedFile("A stored file is damaged.")
        self._length = sealed - self._chunks * _TAG
        self._chunk(self._chunks - 1)  # its flag proves that the file is not cut off

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        if start + offset < 0:
            raise ValueError("negative seek position")
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer)
        number, offset = divmod(self._position, CHUNK)
        if self._position >= self._length:
            return 0
        part = self._chunk(number)[offset : offset + len(target)]
        target[: len(part)] = part
        self._position += len(part)
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _chunk(self, number: int) -> bytes:
        if self._loaded[0] != number:
            sealed = os.pread(self._file.fileno(), _SEALED_CHUNK, len(_HEADER) + number * _SEALED_CHUNK)
            try:
                chunk = self._cipher.decrypt(_nonce(number, number == self._chunks - 1), sealed, _HEADER)
            except (InvalidTag, ValueError):
                raise DamagedFile("A stored file is damaged.") from None
            self._loaded = (number, chunk)
        return self._loaded[1]


def durable_rename(source: Path, target: Path) -> None:
    """Rename within a file system; the new name is durable when this returns."""
    os.replace(source, target)
    sync_file(target.parent)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 when it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def write_new(path: Path, content: bytes) -> None:
    """Make a file with this content, for this account alone; durable when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb", buffering=0) as file:
        _write_all(file, content)
        os.fsync(descriptor)
    sync_file(path.parent)


def sync_file(path: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


def _write_all(file: io.FileIO, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
