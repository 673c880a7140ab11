"""Threads of the server process that repeat one step of work: the analysis pool, the reading of finished
chats, the reasoner.

What is to be done stands in the database, so a thread that dies with its process loses nothing: the next one
finds it there. These threads only make it happen soon. They are started in the server process, after it has
forked, never by commands or tests of a step.

`Places` bounds how many of the server's own threads may be at the same slow work at once, so that some are left for everything else.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import blinker

import database
from errors import Unavailable

log = logging.getLogger(__name__)

AFTER_FAILURE = 5.0  # seconds until a step that failed unexpectedly is tried again


class Loop:
    """Threads that repeat `step`, which returns how many seconds may pass until its next turn; 0 is at once.
    `wake_on` ends the wait.
    """

    def __init__(
        self, name: str, step: Callable[[], float], *, wake_on: blinker.Signal | None = None, threads: int = 1
    ):
        self._step = step
        self._signal = wake_on
        self._wake = threading.Condition()
        self._calls = 0  # so that a call between looking and sleeping is not missed
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        if self._signal is not None:
            self._signal.connect(self.wake)
        for thread in self._threads:
            thread.start()

    def wake(self, _sender: object = None) -> None:
        """There may be something to do; also as the receiver of a signal."""
        with self._wake:
            self._calls += 1
            self._wake.notify()

    def stop(self) -> None:
        """Begin no further step."""
        if self._signal is not None:
            self._signal.disconnect(self.wake)
        with self._wake:
            self._stopping = True
            self._wake.notify_all()

    def join(self, seconds: float) -> None:
        """Wait, at most so long, for the steps that are under way."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        told = ""
        while not self._stopping:
            calls = self._calls
            try:
                pause = self._step()
            except Exception as problem:
                # The outermost loop: whatever it is, the next piece of work gets its turn.
                known = database.known_failure(problem)
                name = threading.current_thread().name
                if known is None:
                    log.exception("%s could not work", name)
                elif str(known) != told:  # a disk stays full for hours
                    log.error("%s cannot work: %s (%s)", name, known, problem)
                told, pause = str(known), AFTER_FAILURE
            else:
                told = ""
            if pause > 0:
                with self._wake:
                    self._wake.wait_for(partial(self._woken_since, calls), pause)

    def _woken_since(self, calls: int) -> bool:
        return self._stopping or self._calls != calls


class Places:
    """So many may be inside at once, in this process; who finds no place left is told to come again."""

    def __init__(self, most: int, *, full: str, retry_after: float):
        self._free = threading.BoundedSemaphore(most)
        self._full, self._retry_after = full, retry_after

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Have a place. Raises `Unavailable` when there is none."""
        if not self._free.acquire(blocking=False):
            raise Unavailable(f"{self._full} Please come again in a moment.", retry_after=self._retry_after)
        try:
            yield
        finally:
            self._free.release()
