"""Who uses the data folder: locks on files in it, over threads and processes, which the kernel releases when
a process dies.
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
    """`flock` on a file in the data folder, shared or exclusive, over threads and processes.

    Who wants it exclusively first closes the turnstile, through which every sharer passes, so that steady
    traffic cannot keep it waiting.
    """

    def __init__(self, folder: Path):
        self._paths = (folder / "turnstile", folder / "lock")
        self._held = threading.local()

    @contextlib.contextmanager
    def shared(self, patience: float = PATIENCE) -> Iterator[None]:
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
        # A forked worker must not use its parent's: `flock` would take the two for one holder.
        if getattr(self._held, "process", None) != os.getpid():
            self._held.process = os.getpid()
            self._held.files = tuple(_LockFile(path) for path in self._paths)
        return tuple(file.descriptor for file in self._held.files)


@contextlib.contextmanager
def named_lock(folder: Path, name: str, patience: float, *, busy: str) -> Iterator[None]:
    """Be alone with what `name`, a file name, stands for, over threads and processes.

    The file is there only while somebody holds or wants the lock. Raises `Unavailable` with the sentence
    `busy` after `patience` seconds.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    path, deadline = folder / name, time.monotonic() + patience
    while True:
        file = _LockFile(path)
        _flock(file.descriptor, fcntl.LOCK_EX, deadline, busy)
        # Who held it before may have removed the file: then this lock is on nothing, and the next one would
        # be on another file.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.descriptor), os.stat(path)):
                break
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        fcntl.flock(file.descriptor, fcntl.LOCK_UN)


class Presence:
    """A file that a process keeps locked while it lives, so that others can tell its leases from those of the
    dead.
    """

    def __init__(self, folder: Path):
        self.name = secrets.token_hex(8)
        self.folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = _LockFile(folder / self.name)
        fcntl.flock(self._file.descriptor, fcntl.LOCK_EX)

    @staticmethod
    def alive(folder: Path, name: str) -> bool:
        """Whether the process that took `name` lives; the file of a dead one is removed."""
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
        """Leave no file behind: this process holds no lease any more."""
        (self.folder / self.name).unlink(missing_ok=True)


class ServiceLock:
    """Held by the one service of a data folder while any process of it lives, or by what must not run beside
    one.

    A forked worker inherits it, so it outlasts a master that was killed until its workers have noticed.
    Raises `StartRefused`.
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
    """A descriptor of a thread's own, since `flock` belongs to the open file; closed with the thread."""

    def __init__(self, path: Path):
        self.descriptor = _open(path)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # it was never opened
            os.close(self.descriptor)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        # A disk that fails is made read-only by the system. To lock a file that is there takes no right to
        # write, so reading goes on.
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
