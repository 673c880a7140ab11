"""The embedded model: what analyses screenshots and answers chats when no LLM is set, offline and at no cost.

It has the same interface as the remote model. An OCR engine in a child process (`engines/ocr.py`) reads the
text, and plain rules (`engines/rules.py`) judge it, so its confidence never exceeds one half.

One child serves all threads, one picture at a time: a second engine would cost 300 MB, and there are few
cores. The first picture starts it, and it is ended when no picture has arrived for a while, so an idle
service holds no models in memory. A picture that crashes the child, hangs it or makes its answer unreadable
fails alone; the next one gets a new child. A picture is copied to the child through a pipe, chunk by chunk,
as it is decrypted: it is never whole in this process, and never on a disk.
"""

import base64
import contextlib
import io
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO, Any, BinaryIO, TypeVar

import msgspec

from engines import articles, digest, replies, rules
from engines.findings import Answer, Findings, MemoryCandidate, Usage
from engines.lines import Page
from engines.ocr import Ready
from errors import AnswerUnusable, ProviderDown, ProviderRefused
from settings import ROOT

log = logging.getLogger(__name__)

CHILD = (sys.executable, "-m", "engines.ocr")
CHUNK = 256 * 1024
MAX_ANSWER = 16 * 1024 * 1024  # the answer to 50 megapixels of small text is below 1 MB
# A long capture is read in many strips, each within the time limit; together they may take this many times as
# long. A picture may wait behind such a capture, and both must end within the queue's lease of 5 minutes.
LONGEST = 2
# The child gets none of the service's variables, since it needs none of its secrets. With these, glibc
# returns memory after each picture (272 MB instead of 297 at the peak), and Tesseract uses one thread.
ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "OMP_THREAD_LIMIT": "1",
}

Message = TypeVar("Message", Ready, Page)


class LocalModel:
    """The embedded analyser. Safe to share between threads. `identity` names the analyser, so that the result
    of an equal picture can be copied.
    """

    def __init__(self, *, ocr_model: str, language: str, idle_seconds: float = 120, time_limit: float = 60):
        """`time_limit`: seconds that the child may be silent. An idle child is ended after `idle_seconds`."""
        self.identity = f"local/{ocr_model}"
        self.takes_tools = True
        self._ocr_model = ocr_model
        self._language = language
        self._idle_seconds = idle_seconds
        self._time_limit = time_limit
        self._lock = threading.Lock()  # held while the child reads a picture, starts or ends
        self._child: subprocess.Popen[bytes] | None = None
        self._engine = ""
        self._idle_timer: threading.Timer | None = None
        self._closed = False

    def analyse(self, picture: BinaryIO, *, name: str = "") -> Findings:
        """What the rules find in the text of `picture`, a seekable reader of a stored file; `name` is its
        file name.

        Phones write the app into the names of screenshots, so `name` is evidence too. Raises `AnswerUnusable`
        when this picture cannot be read, `ProviderRefused` when no OCR engine runs on this machine,
        `ProviderDown` when the child cannot be started or the model is being closed. An error of reading
        `picture` itself is passed on.
        """
        with self._lock:
            page = self._read(picture)
            engine = self._engine
        if page.problem:
            raise AnswerUnusable(f"The picture cannot be read: {page.problem.removeprefix('file: ')}.")
        return rules.judge(page, analyser=f"local/{engine}", language=self._language, name=name)

    def complete(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        most: int = 0,
        remembered: Sequence[str] = (),
    ) -> Answer:
        """The next message of a chat, by plain rules (`engines/replies.py`), the text of attached pictures
        included. Raises as `analyse` does.
        """
        offered = {tool["function"]["name"] for tool in tools or []}
        text, calls = replies.reply(messages, offered, remembered, self._text_on)
        return Answer(
            text, calls, message={"role": "assistant", "content": text or None, "tool_calls": calls}
        )

    def memories_in(self, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage]:
        """None: the embedded model remembers only on request, by a tool."""
        return [], Usage()

    def write_notes(self, material: articles.Material) -> articles.Notes:
        """A digest by plain rules (`engines/digest.py`)."""
        return digest.write(material, self._language)

    def close(self) -> None:
        """End the child, also in the middle of a picture (whose `analyse` raises `ProviderDown`); no other
        one is started.
        """
        self._closed = True
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            self._end()

    def _text_on(self, url: str) -> str:
        """The text on a picture that is given by its data URL."""
        with self._lock:
            page = self._read(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        return "\n".join(line.text for line in page.lines)

    def _read(self, picture: BinaryIO) -> Page:
        """The child's answer. After any failure its state is unknown, so it is ended."""
        self._stop_timer()
        deadline = time.monotonic() + LONGEST * self._time_limit
        try:
            self._start()
            self._send(picture)
            page = self._receive(Page, deadline)
        except _ChildFailed as failure:
            code = self._end()
            log.warning("the OCR process was ended: %s (exit code %s)", failure, code)
            self._raise_if_closed()
            raise AnswerUnusable(f"The text of this picture could not be read: {failure}.") from None
        except BaseException:
            self._end()
            raise
        self._idle_timer = threading.Timer(self._idle_seconds, self._end_when_idle)
        self._idle_timer.daemon = True
        self._idle_timer.start()
        return page

    def _start(self) -> None:
        """Start a child unless one is ready. One that died since the last picture is replaced."""
        self._raise_if_closed()
        if self._child is not None and self._child.poll() is None:
            return
        self._end()
        size, tesseract = self._ocr_model, shutil.which("tesseract") or ""
        ready = self._launch(size, tesseract)
        if ready is None and tesseract:
            ready = self._launch("", tesseract)
        if ready is None or ready.problem:
            reason = (
                ready.problem
                if ready
                else "its processor cannot run faster-paddle, and Tesseract is not installed"
            )
            raise ProviderRefused(f"The embedded analyser cannot work on this machine: {reason}.")
        self._engine = ready.engine

    def _launch(self, size: str, tesseract: str) -> Ready | None:
        """A new child's first answer; None when the processor lacks an instruction that the engine needs."""
        # No PR_SET_PDEATHSIG: it follows the thread that started the child, and threads of a pool end before
        # their process.
        try:
            self._child = subprocess.Popen(
                [*CHILD, size, tesseract, str(LONGEST * self._time_limit)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,  # where `-m` finds the program
                env=ENVIRONMENT,
                bufsize=0,
                # A process group of its own: Ctrl-C is meant for the service, and one kill ends Tesseract
                # too.
                start_new_session=True,
            )
        except OSError as problem:  # no memory, no process left, or Python itself is being replaced
            raise ProviderDown(f"The OCR process could not be started: {problem.strerror}.") from None
        for pipe in _pipes(self._child):
            os.set_blocking(pipe.fileno(), False)
        if self._closed:  # `close` was called before there was a child to kill
            self._child.kill()
        try:
            return self._receive(Ready, time.monotonic() + self._time_limit)
        except _ChildFailed as failure:
            code = self._end()
            if code == -signal.SIGILL:
                return None
            self._raise_if_closed()
            raise ProviderDown(f"The OCR process could not be started: {failure}.") from None

    def _send(self, picture: BinaryIO) -> None:
        length = picture.seek(0, os.SEEK_END)
        picture.seek(0)
        self._write(length.to_bytes(8, "big"))
        while length > 0:
            chunk = picture.read(min(CHUNK, length))
            if not chunk:
                raise AnswerUnusable("The picture ended before its end.")
            length -= len(chunk)
            self._write(chunk)

    def _write(self, data: bytes) -> None:
        pipe = _pipes(self._child)[0].fileno()
        rest = memoryview(data)
        while rest:
            self._wait(pipe, select.POLLOUT, time.monotonic() + self._time_limit)
            try:
                rest = rest[os.write(pipe, rest) :]
            except BrokenPipeError:
                raise _ChildFailed("the OCR process ended") from None

    def _receive(self, kind: type[Message], deadline: float) -> Message:
        """The next message. Heartbeats before it are skipped; each gives the child another `time_limit`, up
        to `deadline`.
        """
        while not (length := int.from_bytes(self._exactly(4, deadline), "big")):
            pass
        if length > MAX_ANSWER:
            raise _ChildFailed("the OCR process sent an unreadable answer")
        try:
            return msgspec.json.decode(self._exactly(length, deadline), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _ChildFailed("the OCR process sent an unreadable answer") from None

    def _exactly(self, count: int, deadline: float) -> bytes:
        pipe = _pipes(self._child)[1].fileno()
        data = bytearray()
        while len(data) < count:
            self._wait(pipe, select.POLLIN, min(deadline, time.monotonic() + self._time_limit))
            part = os.read(pipe, count - len(data))
            if not part:
                raise _ChildFailed("the OCR process ended")
            data += part
        return bytes(data)

    def _wait(self, pipe: int, event: int, deadline: float) -> None:
        poll = select.poll()  # `select` itself fails on file numbers past 1,023
        poll.register(pipe, event)
        if not poll.poll(max(0, deadline - time.monotonic()) * 1000):
            raise _ChildFailed("it took too long")

    def _end_when_idle(self) -> None:
        # A picture that holds the lock has stopped this timer, or is about to set a new one.
        if self._lock.acquire(blocking=False):
            try:
                if threading.current_thread() is self._idle_timer:
                    self._end()
            finally:
                self._lock.release()

    def _end(self) -> int | None:
        """Kill the child, which holds nothing worth saving, and reap it; returns its exit code."""
        self._stop_timer()
        child, self._child = self._child, None
        if child is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
        for pipe in _pipes(child):
            pipe.close()
        return code

    def _stop_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ProviderDown("The embedded analyser is being closed.")


def _pipes(child: subprocess.Popen[bytes] | None) -> tuple[IO[bytes], IO[bytes]]:
    """The standard input and output of a child that was started."""
    if child is None or child.stdin is None or child.stdout is None:
        raise AssertionError("the child is started with both pipes")
    return child.stdin, child.stdout


class _ChildFailed(Exception):
    """The child gave no answer; the text is the reason, as part of a sentence."""
