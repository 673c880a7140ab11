"""Encryption at rest: the master key and the key ring; `disk.py` seals the files.

There are three layers, as in Signal's desktop and phone apps. The *master key* (32 random bytes, outside the
data folder if the operator wants) encrypts the *key ring*. The key ring holds the key of the database and
names the database file. The database holds a random key for each stored file. So changing the master key
rewrites one small file, and changing the database key does not touch the pictures.

The key ring is written in two copies, each replaced atomically, because losing it loses everything. No key is
ever made where data exists: a missing or wrong key raises `StartRefused`, and nothing is changed.

With encryption off, the same files are written to the same paths without encryption.
"""

import base64
import binascii
import contextlib
import hashlib
import logging
import os
import secrets
from datetime import datetime
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import disk
from errors import EncryptionDiffers, StartRefused

log = logging.getLogger(__name__)

KEY_BYTES = 32

# ------------------------------------------------------------------------------------------------- master key


def read_master_key(path: Path) -> bytes:
    """The 32 bytes in a master key file, which holds 64 hex digits, base64 or raw bytes.

    Raises `StartRefused` when the file is missing, unreadable or in no such format.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise StartRefused(missing_master_key(path)) from None
    except OSError as problem:
        raise StartRefused(f"The master key {path} cannot be read: {problem.strerror}.") from None
    if len(raw) == KEY_BYTES:
        return raw
    text = raw.strip()
    for decode in (binascii.unhexlify, lambda value: base64.b64decode(value, validate=True)):
        with contextlib.suppress(ValueError):
            if len(key := decode(text)) == KEY_BYTES:
                return key
    raise StartRefused(
        f"The master key {path} is damaged: it must hold 32 bytes, as 64 hex digits, as base64, or raw."
    )


def missing_master_key(path: Path) -> str:
    """The sentence of the refusal."""
    return f"The master key {path} is not there. Put it back: without it no stored data can be read."


def make_master_key(path: Path) -> bytes:
    """Write a new master key to `path` as `write_master_key` does, and return it."""
    key = new_key()
    write_master_key(path, key)
    return key


def secret_digest(secret: str) -> bytes:
    """The SHA-256 by which a token, or the secret of an address, is found. A secret has 256 random bits:
    there is nothing to guess, and an index that compares digests tells nothing about one.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key() -> bytes:
    """32 random bytes: a master key, a database key or a file key."""
    return secrets.token_bytes(KEY_BYTES)


def write_master_key(path: Path, key: bytes) -> None:
    """Write `key` to `path`, mode 0600, atomically, never over an existing file. Needs the folder's lock."""
    if path.exists():
        raise FileExistsError(f"{path} exists")
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    disk.write_new(fresh, key.hex().encode() + b"\n")
    disk.durable_rename(fresh, path)


# --------------------------------------------------------------------------------------------------- key ring


SWITCHED_ON = (
    "The stored data is encrypted, but SNAPLORE_ENCRYPTION is false. Set it to true, or decrypt the data: "
    "`./snaplore keys apply`."
)
SWITCHED_OFF = (
    "The stored data is not encrypted, but SNAPLORE_ENCRYPTION is true. Set it to false, or encrypt the "
    "data: `./snaplore keys apply`."
)


class KeyRing(msgspec.Struct, frozen=True):
    """The current database and its key.

    `generation` grows with every change; in generation 0 no database is complete yet.
    """

    generation: int
    created_at: datetime  # of the database key, UTC: its age decides when to rotate
    database_file: str  # a name inside the data folder
    database_key: bytes | None  # None: encryption is off
    # How often the service has started, which the database counts, too: `database.difference` compares them.
    starts: int = 0
    folder: str = ""  # of which data folder the database is, by a random name; empty before the first start

    def __repr__(self) -> str:
        return f"KeyRing(generation={self.generation}, database_file={self.database_file!r})"


def new_key_ring(*, encrypted: bool, now: datetime, after: KeyRing | None = None) -> KeyRing:
    """A ring with a new key for a new database file: the first one, or the one `after` another."""
    file, key = f"database/{secrets.token_hex(8)}.db", new_key() if encrypted else None
    if after is None:
        return KeyRing(0, now, file, key)
    return KeyRing(after.generation + 1, now, file, key, after.starts, after.folder)


class KeyStore:
    """The two copies of the key ring in `folder`, sealed with `master_key`, or plain where that is None."""

    def __init__(self, folder: Path, master_key: bytes | None):
        self.folder = folder
        self._master_key = master_key
        self._copies = (folder / "ring.1", folder / "ring.2")

    def exists(self) -> bool:
        return any(copy.exists() for copy in self._copies)

    def is_plain(self) -> bool:
        """Whether a copy was written with encryption off."""
        return any(copy.exists() and copy.read_bytes().startswith(_PLAIN_RING) for copy in self._copies)

    def opens(self) -> bool:
        """Whether a copy can be read with this master key."""
        return bool(self._readable())

    def signature(self) -> tuple[tuple[int, int], ...]:
        """A value that changes whenever either copy is replaced. Costs two calls of `stat`.

        Covering both copies, it also shows a replacement that was interrupted between the two.
        """
        return tuple(_signature(copy) for copy in self._copies)

    def read(self) -> KeyRing:
        """The newest readable copy. Raises `StartRefused` when there is none."""
        rings = self._readable()
        if not rings:
            raise StartRefused(self._why_unreadable())
        return _newest(rings)

    def write(self, ring: KeyRing) -> None:
        """Replace both copies, one after the other. Once the first is replaced, `read` returns `ring`."""
        content = self._seal(ring)
        self._replace(self._copies[0], content)
        try:
            self._replace(self._copies[1], content)
        except OSError as problem:
            log.error(
                "cannot write the second copy of the key ring (%s); the next start tries again",
                problem.strerror,
            )

    def heal(self) -> None:
        """Replace a missing, damaged or older copy by the newest one."""
        rings = self._readable()
        if rings and (len(rings) < len(self._copies) or rings[0] != rings[1]):
            log.warning("replaced one copy of the key ring, which was missing, damaged or old")
            self.write(_newest(rings))

    def wrong_copies(self) -> list[Path]:
        """The copies that `heal` would replace. Raises `StartRefused` when no copy is readable."""
        newest = self.read()
        return [copy for copy in self._copies if self._ring_of(copy) != newest]

    def _replace(self, copy: Path, content: bytes) -> None:
        fresh = copy.with_name(f"{copy.name}.{secrets.token_hex(4)}.new")
        try:
            disk.write_new(fresh, content)
            disk.durable_rename(fresh, copy)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise

    def _readable(self) -> list[KeyRing]:
        return [ring for copy in self._copies if (ring := self._ring_of(copy)) is not None]

    def _ring_of(self, copy: Path) -> KeyRing | None:
        with contextlib.suppress(OSError, ValueError, InvalidTag, msgspec.MsgspecError):
            return self._unseal(copy.read_bytes())
        return None

    def _seal(self, ring: KeyRing) -> bytes:
        body = msgspec.json.encode(ring)
        if self._master_key is None:
            return _PLAIN_RING + hashlib.sha256(body).digest() + body
        nonce = secrets.token_bytes(12)
        return _SEALED_RING + nonce + AESGCM(self._master_key).encrypt(nonce, body, _SEALED_RING)

    def _unseal(self, content: bytes) -> KeyRing:
        head, rest = content[: len(_SEALED_RING)], content[len(_SEALED_RING) :]
        if self._master_key is None:
            digest, body = rest[:32], rest[32:]
            if head != _PLAIN_RING or hashlib.sha256(body).digest() != digest:
                raise ValueError("not a plain key ring")
        else:
            if head != _SEALED_RING:
                raise ValueError("not a sealed key ring")
            body = AESGCM(self._master_key).decrypt(rest[:12], rest[12:], _SEALED_RING)
        return msgspec.json.decode(body, type=KeyRing)

    def _why_unreadable(self) -> str:
        """The sentence of the refusal. Raises `EncryptionDiffers` where that is the reason."""
        heads = {copy.read_bytes()[: len(_SEALED_RING)] for copy in self._copies if copy.exists()}
        if not heads:
            return f"The key ring in {self.folder} is not there. Put it back: without it no data can be read."
        if self._master_key is None and _SEALED_RING in heads:
            raise EncryptionDiffers(SWITCHED_ON)
        if self._master_key is not None and _PLAIN_RING in heads:
            raise EncryptionDiffers(SWITCHED_OFF)
        return (
            f"The key ring in {self.folder} cannot be opened: the master key is not the one it was made "
            "with, or the ring is damaged."
        )


def _newest(rings: list[KeyRing]) -> KeyRing:
    return max(rings, key=lambda ring: (ring.generation, ring.starts))


def _signature(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns


_PLAIN_RING = b"SNAPLORE-RING-0\n"
_SEALED_RING = b"SNAPLORE-RING-1\n"
