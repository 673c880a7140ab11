"""Locks between threads and processes: `flock` on files in the data folder.

The kernel releases the locks of a process that dies.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from errors import StartRefused, Unavailable

PATIENCE = 10.0  # seconds that a request waits for the data folder before it answers 503


class FolderLock:
    """The lock of the data folder, shared or exclusive, between threads and processes (`flock`).

    An exclusive waiter first closes the turnstile that every shared user must pass, so steady traffic cannot
    starve it.
    """

    def __init__(self, folder: Path):
        self._paths = (folder / "turnstile", folder / "lock")
        self._held = threading.local()

    @contextlib.contextmanager
    def shared(self, patience: float = PATIENCE) -> Iterator[None]:
        """Hold the lock together with other shared users. Raises `Unavailable` after `patience` seconds."""
        turnstile, lock = self._descriptors()
        deadline = time.monotonic() + patience
        _flock(turnstile, fcntl.LOCK_SH, deadline)
        try:
            _flock(lock, fcntl.LOCK_SH, deadline)
        finally:
            fcntl.flock(turnstile, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def exclusive(self, patience: float = 60.0) -> Iterator[None]:
        """Hold the lock alone. Raises `Unavailable` after `patience` seconds."""
        turnstile, lock = self._descriptors()
        deadline = time.monotonic() + patience
        _flock(turnstile, fcntl.LOCK_EX, deadline)
        try:
            _flock(lock, fcntl.LOCK_EX, deadline)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)
        finally:
            fcntl.flock(turnstile, fcntl.LOCK_UN)

    def _descriptors(self) -> tuple[int, int]:
        # A forked worker opens its own: with its parent's descriptor it would share its parent's lock.
        if getattr(self._held, "process", None) != os.getpid():
            self._held.process = os.getpid()
            self._held.files = tuple(_LockFile(path) for path in self._paths)
        return tuple(file.descriptor for file in self._held.files)


@contextlib.contextmanager
def named_lock(folder: Path, name: str, patience: float, *, busy: str) -> Iterator[None]:
    """Hold the lock called `name`, a file name in `folder`, alone between threads and processes.

    The file exists only while a process holds or waits for the lock. Raises `Unavailable` with the sentence
    `busy` after `patience` seconds.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    path, deadline = folder / name, time.monotonic() + patience
    while True:
        file = _LockFile(path)
        _flock(file.descriptor, fcntl.LOCK_EX, deadline, busy)
        # The previous holder may have removed the file. Then this lock is on a file without a name, and the
        # next caller would lock a new file: try again.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.descriptor), os.stat(path)):
                break
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        fcntl.flock(file.descriptor, fcntl.LOCK_UN)


class Presence:
    """A file that a process keeps locked while it lives, which shows others that its leases are alive."""

    def __init__(self, folder: Path):
        self.name = secrets.token_hex(8)
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = _LockFile(folder / self.name)
        fcntl.flock(self._file.descriptor, fcntl.LOCK_EX)

    @staticmethod
    def alive(folder: Path, name: str) -> bool:
        """Whether the process with this `name` lives; the file of a dead process is removed."""
        path = folder / name
        if not path.is_file():
            return False
        file = _LockFile(path)
        try:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        path.unlink(missing_ok=True)
        return False

    def forget(self) -> None:
        """Remove the file: this process holds no lease any more."""
        (self.folder / self.name).unlink(missing_ok=True)


class ServiceLock:
    """Held by the one service of a data folder, or by a command that must not run beside a service: two
    services would have separate rate limits, caches and models.

    Forked workers inherit it: when the master is killed, the lock lasts until its workers have ended, too.
    Raises `StartRefused` when another process holds it.
    """

    def __init__(self, folder: Path):
        self._file = _LockFile(folder / "service")
        try:
            fcntl.flock(self._file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(f"A Snaplore service is running on {folder}. Stop it first.") from None

    def close(self) -> None:
        fcntl.flock(self._file.descriptor, fcntl.LOCK_UN)


class _LockFile:
    """A descriptor for one thread, because `flock` belongs to the open file; closed with the thread."""

    def __init__(self, path: Path):
        self.descriptor = _open(path)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was never opened
            os.close(self.descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        # Linux remounts a failing disk read-only. Locking an existing file needs no write access, so reading
        # stays possible.
        if problem.errno == errno.EROFS and path.exists():
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        raise


def _flock(
    descriptor: int, kind: int, deadline: float, what: str = "The data folder is being worked on."
) -> None:
    pause = 0.001
    while True:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Unavailable(f"{what} Please come again in a moment.", retry_after=10) from None
            time.sleep(pause)
            pause = min(0.05, pause * 2)
