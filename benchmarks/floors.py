"""The floors: the least that the same work costs on this machine. `measure` compares the service to them."""

import io
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import sqlcipher3

import crypto
import disk
import pictures
from database import db

# The packages that the service imports, without its own files.
PACKAGES = (
    "flask, flask_cors, gunicorn.app.wsgiapp, gunicorn.workers.gthread, peewee, playhouse.sqlcipher_ext, "
    "PIL.Image, requests, msgspec, json_repair, rapidfuzz.distance, click, "
    "cryptography.hazmat.primitives.ciphers.aead"
)


class BareStore:
    """Stores pictures with the necessary steps only: decode, make a thumbnail, seal, flush, insert."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._key = crypto.new_key()
        folder.mkdir()
        self._connect().execute(
            "CREATE TABLE pictures (name TEXT, width INTEGER, height INTEGER, key BLOB, thumbnail_key BLOB)"
        )

    def ready(self) -> Callable[[bytes], None]:
        """A function that stores a picture, for one thread."""
        connection = self._connect()

        def keep(picture: bytes) -> None:
            examined = pictures.examine(io.BytesIO(picture))
            name, keys = secrets.token_hex(16), (crypto.new_key(), crypto.new_key())
            for path, data, key in zip(
                (name, f"{name}.thumbnail"), (picture, examined.thumbnail), keys, strict=True
            ):
                writer = disk.SealedWriter(self._folder / path, key)
                writer.write(data)
                writer.finish()
                disk.sync_file(writer.path)
            connection.execute(
                "INSERT INTO pictures VALUES (?, ?, ?, ?, ?)", (name, examined.width, examined.height, *keys)
            )

        return keep

    def _connect(self) -> sqlcipher3.Connection:
        connection = sqlcipher3.connect(self._folder / "bare.db", timeout=60, isolation_level=None)
        connection.execute(f"PRAGMA key = \"x'{self._key.hex()}'\"")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection


def bare_query(term: str) -> list[int]:
    """The ids of the newest 20 photos that match `term`, an FTS5 query, in the open database.

    Unlike the service's search, it does not analyse, correct or rank anything, and reads no text.
    """
    rows = db.execute_sql(
        "SELECT rowid FROM photo_index WHERE photo_index MATCH ? ORDER BY rowid DESC LIMIT 20", (term,)
    )
    return [row[0] for row in rows]


def bare_process() -> tuple[float, int]:
    """How long an interpreter takes to import the same packages (seconds), and its memory (PSS, bytes)."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", f"import {PACKAGES}; print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        process.stdout.readline()
        seconds = time.perf_counter() - begun
        memory = psutil.Process(process.pid).memory_full_info().pss
        process.communicate(b"\n")
    if process.returncode:
        raise RuntimeError("the service's packages cannot be imported")
    return seconds, memory


def copy(source: Path, target: Path) -> float:
    """Seconds to copy a file and flush the copy."""
    begun = time.perf_counter()
    shutil.copyfile(source, target)
    disk.sync_file(target)
    return time.perf_counter() - begun


def flush(folder: Path, times: int = 20) -> float:
    """The mean time to write 4 KB and flush it to the disk, in seconds."""
    path = folder / f"flushed-{threading.get_ident()}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        begun = time.perf_counter()
        for _ in range(times):
            os.write(descriptor, b"\0" * 4096)
            os.fsync(descriptor)
        return (time.perf_counter() - begun) / times
    finally:
        os.close(descriptor)
        path.unlink()
