"""Background threads that repeat one step of work: the analysis pool, the chat reader, the reasoner.

The database holds the work, so a thread that dies with its process loses nothing: the next process finds the
work there. Only the server process starts these threads, after the fork; commands and the tests of a step
call the step directly.

`Places` bounds how many request threads do the same slow work at once, so that others stay free.
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

AFTER_FAILURE = 5.0  # seconds between a failed step and the next one


class Loop:
    """Threads that repeat `step`, which returns the seconds until its next run (0: at once).

    The signal `wake_on` ends the wait.
    """

    def __init__(
        self, name: str, step: Callable[[], float], *, wake_on: blinker.Signal | None = None, threads: int = 1
    ):
        self._step = step
        self._signal = wake_on
        self._wake = threading.Condition()
        self._calls = 0  # of `wake`, so that a call between a step and the wait after it is not missed
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
        """End one thread's wait: there may be work. Also the receiver of the signal."""
        with self._wake:
            self._calls += 1
            self._wake.notify()

    def stop(self) -> None:
        """Start no further step."""
        if self._signal is not None:
            self._signal.disconnect(self.wake)
        with self._wake:
            self._stopping = True
            self._wake.notify_all()

    def join(self, seconds: float) -> None:
        """Wait at most `seconds` for the running steps."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        logged = ""
        while not self._stopping:
            calls = self._calls
            try:
                pause = self._step()
            except Exception as problem:
                # The outermost loop: no failure may end it, the next step may succeed.
                known = database.known_failure(problem)
                name = threading.current_thread().name
                if known is None:
                    log.exception("%s could not work", name)
                elif str(known) != logged:  # once: a disk stays full for hours
                    log.error("%s cannot work: %s (%s)", name, known, problem)
                logged, pause = str(known), AFTER_FAILURE
            else:
                logged = ""
            if pause > 0:
                with self._wake:
                    self._wake.wait_for(partial(self._woken_since, calls), pause)

    def _woken_since(self, calls: int) -> bool:
        return self._stopping or self._calls != calls


class Places:
    """At most `most` threads of this process at once; a caller without a place gets `Unavailable`."""

    def __init__(self, most: int, *, full: str, retry_after: float):
        self._free = threading.BoundedSemaphore(most)
        self._full, self._retry_after = full, retry_after

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Hold a place. Raises `Unavailable` at once when none is free."""
        if not self._free.acquire(blocking=False):
            raise Unavailable(f"{self._full} Please come again in a moment.", retry_after=self._retry_after)
        try:
            yield
        finally:
            self._free.release()
