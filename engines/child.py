"""A child process that runs one of the service's own modules, and frames of bytes to and from it.

Native code that reads hostile input, or needs much memory for a short time, runs in such a process: if it
crashes, hangs or takes too much memory, that process ends and the service goes on. It gets none of the
service's variables, since it needs none of its secrets. It ends when its standard input closes, so it does
not outlive a parent that was killed.

A frame is 4 bytes of length and its content; an empty frame is a heartbeat.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO

from settings import ROOT


class ChildFailed(Exception):
    """The child gave no answer; the text is the reason, as part of a sentence."""


class ChildSilent(ChildFailed):
    """The child sent nothing for as long as it may."""


class Child:
    """A running child. It belongs to one thread at a time. After a failure its state is unknown: end it."""

    def __init__(self, command: Sequence[str], *, name: str, environment: dict[str, str]):
        """Start `command`; failures call it `name`. Raises `OSError` without memory or processes."""
        self._name = name
        # No PR_SET_PDEATHSIG: it follows the thread that started the child, and threads of a pool end before
        # their process.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,  # where `-m` finds the program
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"} | environment,
            bufsize=0,
            # A process group of its own: Ctrl-C is meant for the service, and one kill ends what the child
            # has started, too.
            start_new_session=True,
        )
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def write(self, data: bytes, *, limit: float) -> None:
        """Send `data`. Raises `ChildFailed` when none of it is taken for `limit` seconds."""
        pipe = self._pipes[0].fileno()
        rest = memoryview(data)
        while rest:
            _wait(pipe, select.POLLOUT, time.monotonic() + limit)
            try:
                rest = rest[os.write(pipe, rest) :]
            except BrokenPipeError:
                raise ChildFailed(f"{self._name} ended") from None

    def receive(self, *, limit: float, deadline: float, most: int) -> bytes:
        """The content of the next frame of at most `most` bytes that is no heartbeat. Each heartbeat gives
        the child another `limit` seconds, up to `deadline` on the monotonic clock. Raises `ChildFailed`.
        """
        while not (length := int.from_bytes(self._exactly(4, limit, deadline), "big")):
            pass
        if length > most:
            raise ChildFailed(f"{self._name} sent an unreadable answer")
        return self._exactly(length, limit, deadline)

    def kill(self) -> None:
        """Kill the process, from any thread; the one that waits for it gets `ChildFailed`."""
        self._process.kill()

    def end(self) -> int:
        """Kill the child, which holds nothing worth saving, and reap it; returns its exit code."""
        with contextlib.suppress(ProcessLookupError):
            if self.runs:
                os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        for pipe in self._pipes:
            pipe.close()
        return code

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the child is started with both pipes")
        return self._process.stdin, self._process.stdout

    def _exactly(self, count: int, limit: float, deadline: float) -> bytes:
        pipe = self._pipes[1].fileno()
        data = bytearray()
        while len(data) < count:
            _wait(pipe, select.POLLIN, min(deadline, time.monotonic() + limit))
            part = os.read(pipe, count - len(data))
            if not part:
                raise ChildFailed(f"{self._name} ended")
            data += part
        return bytes(data)


class ChildOwner:
    """Starts the one child of all threads when it is needed, and ends it when it is idle."""

    def __init__(self, idle_seconds: float):
        """An idle child is ended after `idle_seconds`."""
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()  # held while the child works, starts or ends
        self._child: Child | None = None
        self._idle_timer: threading.Timer | None = None
        self._closed = False

    def close(self) -> None:
        """End the child, also in the middle of its work, which then fails; no other one is started."""
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._end()

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise AssertionError("the child is started")
        return self._child

    def _begin(self, command: Sequence[str], *, name: str, environment: dict[str, str]) -> None:
        """Start the child. Raises `OSError` as `Child` does."""
        self._child = Child(command, name=name, environment=environment)
        if self._closed:  # `close` was called before there was a child to kill
            self._child.kill()

    def _end(self) -> int | None:
        """End the child, if there is one; returns its exit code."""
        self._stop_timer()
        child, self._child = self._child, None
        return None if child is None else child.end()

    def _set_timer(self) -> None:
        self._stop_timer()
        self._idle_timer = threading.Timer(self._idle_seconds, self._end_when_idle)
        self._idle_timer.daemon = True
        self._idle_timer.start()

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end_when_idle(self) -> None:
        # Work that holds the lock has stopped this timer, or is about to set a new one.
        if self._lock.acquire(blocking=False):
            try:
                if threading.current_thread() is self._idle_timer:
                    self._end()
            finally:
                self._lock.release()


def _wait(pipe: int, event: int, deadline: float) -> None:
    poll = select.poll()  # `select` itself fails on file numbers past 1,023
    poll.register(pipe, event)
    if not poll.poll(max(0, deadline - time.monotonic()) * 1000):
        raise ChildSilent("it took too long")
