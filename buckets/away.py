"""Originals that lie in the bucket of `SNAPLORE_ORIGINALS`: opening and fetching them.

An original is sealed here, before it goes, under a key that only the database knows, and has there the name
that it has here. So what comes back is authenticated like a file of the disk: nothing is trusted because it
came from the bucket.

A fetched original is written, still sealed, to a folder of a bounded size, from which the ones that nobody
has opened for the longest time are deleted. A thread of its own fetches it. A request waits for that thread
for some seconds only; then its client is asked to come again, and finds it fetched. When the bucket has
failed, nobody waits for it for half a minute.

No database scope may be open while something is fetched. So `opened` never calls the bucket: it raises
`Elsewhere`, and whoever catches that calls `fetch` outside of the scope, and opens again.
"""

import contextlib
import logging
import os
import secrets
import threading
import time
from pathlib import Path
from typing import BinaryIO

import database
import disk
from buckets import s3
from errors import SnaploreError, Unavailable, Unreadable
from settings import MEGABYTE, Settings, variable

log = logging.getLogger(__name__)

HERE, MOVING, AWAY = 0, 1, 2  # `Photo.away`
FOLDER = "fetched"
ROOM = 256 * MEGABYTE  # bytes of fetched originals that are kept
LARGEST = 64 * MEGABYTE  # bytes of a sealed original: an upload has at most 50 MB
MOST = 4  # originals that are fetched at once
PATIENCE = 5.0  # seconds that a request waits for one
REST = 30.0  # seconds without a call, after the bucket has failed
SLOW = "The original is being fetched from the bucket. Please come again in a moment."
BUSY = "Too many originals are being fetched from the bucket. Please come again in a moment."
UNSET = f"The original is in a bucket, and {variable('originals')} does not name one."


class Elsewhere(Unavailable):
    """The original is in the bucket, and not fetched yet."""

    def __init__(self, path: str, key: bytes | None):
        super().__init__("The original is in the bucket. Please come again in a moment.", retry_after=REST)
        self.path, self.key = path, key


class BucketUnreachable(Unavailable):
    """The original is in the bucket, which does not answer; everything else works."""


def bucket(settings: Settings, *, patient: bool = True) -> s3.Bucket | None:
    """The bucket of originals, None when none is set. Without patience, each call is tried once."""
    if settings.originals is None:
        return None
    return s3.Bucket(settings.originals, settings, tries=s3.TRIES if patient else 1)


def opened(path: str, key: bytes | None) -> BinaryIO:
    """A reader of an original that was fetched before. Raises `Elsewhere` when it was not."""
    place = _place(path)
    try:
        reader = disk.open_sealed(place, key)
    except Unreadable:
        place.unlink(missing_ok=True)
        raise Elsewhere(path, key) from None
    with contextlib.suppress(OSError):
        os.utime(place)  # the last one to be deleted
    return reader


def fetch(missing: Elsewhere) -> None:
    """Fetch an original, waiting at most `PATIENCE` seconds. Needs that no scope is open.

    Raises `Unavailable` when it takes longer or the bucket does not answer, and `Unreadable` when the bucket
    has no such object, or another one.
    """
    database.store().cache(_Fetches).fetch(missing)


def forget(path: str) -> None:
    """Delete the fetched copy of an original, if there is one."""
    _place(path).unlink(missing_ok=True)


def fetch_to(target: Path, path: str, key: bytes | None, source: s3.Bucket) -> None:
    """Write an original's sealed bytes from the bucket to a file. Raises `BucketAway`, `Unreadable`."""
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            source.get(path, file, most=LARGEST)
        with disk.open_sealed(part, key) as content:
            while content.read(s3.BLOCK):
                pass
        part.replace(target)
    except OSError as problem:
        if isinstance(problem, SnaploreError):
            raise
        raise Unavailable(f"The original cannot be fetched: {problem.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def _place(path: str) -> Path:
    return database.store().folder / FOLDER / path.rpartition("/")[2]


class _Fetch:
    """A thread that fetches one original."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.problem: SnaploreError | None = None


class _Fetches:
    """The originals that are being fetched by this process, each once."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: dict[str, _Fetch] = {}
        self._source: s3.Bucket | None = None
        self._rests_until = 0.0  # monotonic
        self._problem = ""

    def clear(self) -> None:
        with self._guard:
            if self._source is not None:
                self._source.close()
            self._source = None

    def fetch(self, missing: Elsewhere) -> None:
        with self._guard:
            running = self._running.get(missing.path)
            if running is None:
                if _place(missing.path).exists():  # another request has fetched it since the caller looked
                    return
                if time.monotonic() < self._rests_until:
                    raise BucketUnreachable(self._problem, retry_after=REST)
                if len(self._running) >= MOST:
                    raise Unavailable(BUSY, retry_after=PATIENCE)
                running = self._running[missing.path] = _Fetch()
                name = f"fetch-{len(self._running)}"
                threading.Thread(target=self._run, args=(missing, running), name=name, daemon=True).start()
        if not running.ended.wait(PATIENCE):
            raise Unavailable(SLOW, retry_after=PATIENCE)
        if running.problem is not None:
            raise running.problem

    def _run(self, missing: Elsewhere, running: _Fetch) -> None:
        try:
            place = _place(missing.path)
            place.parent.mkdir(mode=0o700, exist_ok=True)
            fetch_to(place, missing.path, missing.key, self._bucket())
            _make_room(place.parent, keeping=place)
        except s3.BucketAway as problem:
            said = f"The original is in the bucket, which is not available now. {problem.detail}."
            with self._guard:
                self._rests_until, self._problem = time.monotonic() + REST, said
            running.problem = BucketUnreachable(said, retry_after=REST)
        except SnaploreError as problem:
            running.problem = problem
        except Exception:
            log.exception("an original could not be fetched")
            running.problem = Unavailable("The original cannot be fetched now.", retry_after=REST)
        finally:
            with self._guard:
                del self._running[missing.path]
            running.ended.set()

    def _bucket(self) -> s3.Bucket:
        with self._guard:
            if self._source is None:
                self._source = bucket(database.store().settings, patient=False)
            if self._source is None:
                raise Unavailable(UNSET, retry_after=REST)
            return self._source


def _make_room(folder: Path, *, keeping: Path) -> None:
    """Delete the fetched originals that were not opened for the longest time, until the rest fits."""
    held = []
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process makes room, too
            status = path.stat()
            held.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in held)
    for _, size, path in sorted(held):
        if total <= ROOM:
            return
        if path != keeping:
            path.unlink(missing_ok=True)
            total -= size
