"""Pages of a database file: which of them the write-ahead log has changed, and how single pages get into a
copy of the file under another key.

SQLite copies whole databases or rows, so this module reads and writes the two formats itself. Both are fixed:
that of the log is at https://www.sqlite.org/fileformat2.html#the_write_ahead_log, that of the pages
(SQLCipher 4) at https://www.zetetic.net/sqlcipher/design/. An encrypted page is its text under AES-256-CBC,
then the initialisation vector, then an HMAC-SHA512 over both and the page's number. The first page begins
with the file's salt, in place of SQLite's fixed first bytes. `are_known` recognises files of these formats
before anything is written; after that, a page that is not authentic is an error.

Everything of the log that could be a changed page counts as one, so neither the checksums of its frames nor
the ends of its transactions matter. A page that has not changed is copied once more, which is harmless.
"""

import hashlib
import hmac
import os
import secrets
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from errors import Unreadable

SIZE = 4_096  # bytes of a page: the default of SQLite and of SQLCipher
SALT = 16
VECTOR = 16
TAG = 64
TEXT = SIZE - VECTOR - TAG  # where the initialisation vector begins
PLAIN = b"SQLite format 3\0"  # the first bytes of a file that is not encrypted
LOG_HEADER = 32
LOG_FORMAT = (0x377F0682, 0x377F0683)  # the checksums are little-endian or big-endian
LOG_VERSION = 3_007_000
FRAME_HEADER = 24
ZERO = bytes(SIZE)


class Key:
    """The keys of one database file, for the text of its pages and for their authentication."""

    def __init__(self, key: bytes, salt: bytes):
        """`key` is the raw database key, and `salt` the first 16 bytes of the file."""
        self._salt = salt
        self._aes = AES(key)
        self._authentication = hashlib.pbkdf2_hmac("sha512", key, bytes(byte ^ 0x3A for byte in salt), 2, 32)

    def opened(self, number: int, page: bytes) -> bytes:
        """The text of the page with this number, from 1. Raises `Unreadable` when it is not authentic."""
        body, tag = page[_start(number) : TEXT + VECTOR], page[TEXT + VECTOR :]
        if not hmac.compare_digest(tag, self._tag(number, body)):
            raise Unreadable(f"Page {number} of the database is damaged.")
        decryptor = Cipher(self._aes, CBC(body[-VECTOR:])).decryptor()
        return decryptor.update(body[:-VECTOR]) + decryptor.finalize()

    def sealed(self, number: int, text: bytes) -> bytes:
        """The page with this number and text, as the file holds it."""
        vector = secrets.token_bytes(VECTOR)
        encryptor = Cipher(self._aes, CBC(vector)).encryptor()
        body = encryptor.update(text) + encryptor.finalize() + vector
        return self._salt[: _start(number)] + body + self._tag(number, body)

    def _tag(self, number: int, body: bytes) -> bytes:
        return hmac.digest(self._authentication, body + number.to_bytes(4, "little"), "sha512")


def _start(number: int) -> int:
    return SALT if number == 1 else 0


class Place(NamedTuple):
    """A place in a write-ahead log."""

    salts: bytes = b""  # of the log: each new one has others
    frames: int = 0  # pages before this place


BEGIN = Place()


def are_known(source: BinaryIO, key: bytes | None) -> bool:
    """Whether the open database file and its log have the formats of this module: those of SQLCipher 4 with
    its defaults, or of SQLite where `key` is None, with pages of `SIZE` bytes.
    """
    first = os.pread(source.fileno(), SIZE, 0)
    if len(first) < SIZE:
        return False
    try:
        text = first[SALT:] if key is None else Key(key, first[:SALT]).opened(1, first)
        _log_header(Path(source.name))
    except Unreadable:
        return False
    reserve = 0 if key is None else VECTOR + TAG
    known = SIZE.to_bytes(2, "big") + bytes([2, 2, reserve, 64, 32, 32])  # 2: with a write-ahead log
    return text[: len(known)] == known and (key is not None or first[:SALT] == PLAIN)


def log_salts(database: Path) -> bytes:
    """The mark of the present write-ahead log of `database`; empty where none was begun."""
    return _log_header(database)[16:24]


def _log_header(database: Path) -> bytes:
    with open(f"{database}-wal", "rb", buffering=0) as log:
        header = os.pread(log.fileno(), LOG_HEADER, 0)
    if not header:
        return b""
    kind, version, size = struct.unpack(">3I", header[:12].ljust(12, b"\0"))
    if len(header) < LOG_HEADER or kind not in LOG_FORMAT or version != LOG_VERSION or size != SIZE:
        raise Unreadable("The log of the database has an unknown format.")
    return header


def changed(database: Path, after: Place = BEGIN) -> set[int]:
    """The numbers of the pages in the write-ahead log of `database` after a place; of all pages in it, if
    the place is in another log.

    While a transaction is open that reads, the log keeps every page that was written since that began: SQLite
    does not begin a log anew whose pages a reader may need, or which is not yet wholly in the database. The
    numbers may include pages that were written earlier, or in transactions that were rolled back.
    """
    numbers: set[int] = set()
    salts = log_salts(database)
    frame = after.frames if after.salts == salts else 0
    with open(f"{database}-wal", "rb", buffering=0) as log:
        while True:
            header = os.pread(log.fileno(), FRAME_HEADER, LOG_HEADER + frame * (FRAME_HEADER + SIZE))
            if len(header) < FRAME_HEADER:
                return numbers
            if header[8:16] == salts:
                numbers.add(int.from_bytes(header[:4], "big"))
            frame += 1


def carry_over(
    numbers: Iterable[int], old: BinaryIO, target: Path, keys: tuple[bytes, bytes] | None = None
) -> None:
    """Make the pages with these numbers, the first page and the number of pages in `target` the same as in
    the open file `old`, flush them and compare them.

    `keys` are those of the old file and the target; None where neither is encrypted. What the log of the old
    file holds is not seen. Raises `Unreadable` when a page is damaged, or is written meanwhile. Needs that no
    connection of this process has `target` open: closing it here would drop SQLite's locks.
    """
    with target.open("r+b", buffering=0) as new:
        there, had = os.fstat(old.fileno()).st_size // SIZE, os.fstat(new.fileno()).st_size // SIZE
        due = sorted({1, *range(had + 1, there + 1), *(number for number in numbers if 0 < number <= there)})
        opening = sealing = None
        if keys is not None:
            opening, sealing = (
                Key(key, os.pread(file.fileno(), SALT, 0)) for key, file in zip(keys, (old, new), strict=True)
            )
        new.truncate(there * SIZE)
        for number in due:
            text = _read(old.fileno(), number, opening)
            page = sealing.sealed(number, text) if sealing is not None and text != ZERO else text
            if os.pwrite(new.fileno(), page, (number - 1) * SIZE) != SIZE:
                raise Unreadable(f"Page {number} of the database could not be written.")
        os.fsync(new.fileno())
        for number in due:
            if _read(new.fileno(), number, sealing) != _read(old.fileno(), number, opening):
                raise Unreadable(f"Page {number} of the database was not copied.")


def _read(file: int, number: int, key: Key | None) -> bytes:
    """The text of a page; of a page that SQLite has reserved and never written, `ZERO`."""
    page = os.pread(file, SIZE, (number - 1) * SIZE)
    return page if key is None or page == ZERO else key.opened(number, page)
