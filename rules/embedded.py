"""The embedded model: what analyses screenshots and answers chats when no LLM is set, offline and at no cost.

It has the same interface as the remote model. An OCR engine in a child process (`engines/ocr.py`) reads the
text, and plain rules (`rules/judge.py`) judge it, so its confidence never exceeds one half.

Children read one picture at a time and serve all threads. By default there is one, because each takes 340 MB.
The first picture starts it, and it is ended when no picture has arrived for a while, so an idle service holds
no models in memory. A picture that crashes the child, hangs it or makes its answer unreadable fails alone;
the next one gets a new child. A picture is copied to the child through a pipe, chunk by chunk, as it is
decrypted: it is never whole in this process, and never on a disk.

A machine may be too slow for the chosen model. If the first picture that a child gets is not read in time,
the fast model reads from then on, until it is so fast that the picture was the cause. If that one does not
read any of several pictures in time either, the machine is refused as one without an engine is, so that the
queue waits instead of taking minutes for each picture.
"""

import base64
import contextlib
import io
import logging
import os
import queue
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import msgspec

from engines import articles
from engines.child import ChildFailed, ChildOwner, ChildSilent
from engines.findings import Answer, Findings, MemoryCandidate, Usage
from engines.lines import Page
from engines.ocr import BUNDLED, Ready
from errors import AnswerUnusable, ProviderDown, ProviderRefused, Unavailable
from rules import digest, replies
from rules.judge import VERSION, judge

log = logging.getLogger(__name__)

CHILD = (sys.executable, "-m", "engines.ocr")
CHUNK = 256 * 1024
MAX_ANSWER = 16 * 1024 * 1024  # the answer to 50 megapixels of small text is below 1 MB
# A long capture is read in many strips, each within the time limit; together they may take this many times as
# long. A picture may wait behind such a capture, and both must end within the queue's lease of 5 minutes.
LONGEST = 2
FAST = BUNDLED[0]
# The fast model takes a fifth to a half of the time of the others. If it reads a picture of so many pixels in
# this share of the limit, the others are in time, too.
IN_TIME, LARGE = 1 / 8, 1_000_000
TOO_SLOW = (
    "Reading this picture took too long with the OCR model `{model}`. If this machine is too slow for it, set"
    " SNAPLORE_OCR_MODEL=tiny; until it proves faster, `tiny` reads"
)
# Pictures, none of which the fast model has read in time, and no other before.
MOST_MISSED = 3
HOPELESS = (
    "The embedded analyser cannot work on this machine: it is too slow. Even the fastest OCR model has read"
    f" none of {MOST_MISSED} pictures in time. One more is tried after a restart, or when a screenshot is"
    " analysed again"
)
MEMORY_FOR_TWO = 3 * 1024**3  # bytes: two readers of screenshots, vectors and the service are 1.1 GB
# With these, glibc returns memory after each picture (272 MB instead of 297 at the peak), and Tesseract uses
# one thread.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "OMP_THREAD_LIMIT": "1",
}

Message = TypeVar("Message", Ready, Page)


def identity(ocr_model: str) -> str:
    """What analysed a photo: the model that reads, and the version of the rules that judge."""
    return f"local/{ocr_model}/{VERSION}"


def fitting_readers() -> int:
    """How many screenshots are read at once where the settings do not say: two where this process may use two
    cores and `MEMORY_FOR_TWO` bytes, by the machine and by its control groups (`MemoryMax` of a unit, the
    limit of a container); else one.
    """
    memory = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with contextlib.suppress(OSError):  # without version 2 of control groups, there is no limit to be read
        group = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2].lstrip("/")
        inside = Path("/sys/fs/cgroup", group)
        for place in (inside, *inside.parents):
            with contextlib.suppress(OSError, ValueError):  # no limit is the word "max"
                memory.append(int((place / "memory.max").read_text()))
    return 2 if min(memory) >= MEMORY_FOR_TWO and len(os.sched_getaffinity(0)) >= 2 else 1


class LocalModel:
    """The embedded analyser. Safe to share between threads. `identity` names the analyser, so that the result
    of an equal picture can be copied.
    """

    def __init__(
        self,
        *,
        ocr_model: str,
        language: str,
        sense: Callable[[str], bytes] | None = None,
        readers: int = 1,
        idle_seconds: float = 120,
        time_limit: float = 60,
    ):
        """`sense` makes the vector of a text, b"" where it cannot. `readers`: children that may read at the
        same time. `time_limit`: seconds that one may be silent. An idle one is ended after `idle_seconds`.
        """
        self.identity = identity(ocr_model)
        self.takes_tools = True
        self._language = language
        self._sense = sense
        self._readers = [_Reader(ocr_model, idle_seconds, time_limit) for _ in range(readers)]
        # The one that has read last is taken first, so that another is only started when it is needed.
        self._free: queue.LifoQueue[_Reader] = queue.LifoQueue()
        for reader in reversed(self._readers):
            self._free.put(reader)

    def close(self) -> None:
        """End the children, also in the middle of their work, which then fails; no other ones are started."""
        for reader in self._readers:
            reader.close()

    def prepare(self) -> None:
        """Load the models into a child, unless one is there or reads, because pictures are coming. A failure
        is met again, and reported, by the first picture.
        """
        with contextlib.suppress(queue.Empty, ProviderDown, ProviderRefused), self._taken(0) as reader:
            reader.prepare()

    def read(self, picture: BinaryIO, *, patience: float | None = None) -> tuple[Page, str]:
        """The text of `picture`, a seekable reader of a stored file, and the name of the engine.

        Raises `AnswerUnusable` when this picture cannot be read, `ProviderRefused` when no OCR engine runs on
        this machine, `ProviderDown` when the child cannot be started or the model is being closed, and
        `Unavailable` when it reads other pictures for `patience` seconds. An error of reading `picture`
        itself is passed on.
        """
        try:
            with self._taken(patience) as reader:
                page, engine = reader.read(picture)
        except queue.Empty:
            raise Unavailable("Other pictures are being read. Please come again in a moment.") from None
        if page.problem:
            raise AnswerUnusable(f"The picture cannot be read: {page.problem.removeprefix('file: ')}.")
        return page, engine

    def analyse(
        self, picture: BinaryIO, *, name: str = "", text: str = "", taken: datetime | None = None
    ) -> Findings:
        """What the rules find in the text of `picture`, whose file name is `name`. It reads the text itself,
        with its places, and returns it too.

        Phones write the app into the names of screenshots, so `name` is evidence. Raises as `read` does.
        """
        return self.judge(*self.read(picture), name=name, taken=taken)

    def judge(self, page: Page, engine: str, *, name: str = "", taken: datetime | None = None) -> Findings:
        """What the rules find in a page that `engine` has read before. `taken` is when the screenshot was
        taken, in local time without a zone.
        """
        findings = judge(
            page,
            analyser=f"local/{engine}",
            language=self._language,
            name=name,
            sense=self._sense,
            taken=taken,
        )
        findings.page, findings.reader = page, engine
        return findings

    def complete(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        most: int = 0,
        remembered: Sequence[str] = (),
    ) -> Answer:
        """The next message of a chat, by plain rules (`rules/replies.py`), the text of attached pictures
        included. Raises as `analyse` does.
        """
        offered = {tool["function"]["name"] for tool in tools or []}
        said = replies.reply(messages, offered, remembered, self._text_on)
        message = {"role": "assistant", "content": said.text or None, "tool_calls": said.calls}
        return Answer(said.text, said.calls, message=message, sources=said.sources)

    def memories_in(self, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage]:
        """None: the embedded model remembers only on request, by a tool."""
        return [], Usage()

    def write_notes(self, material: articles.Material) -> articles.Notes:
        """A digest by plain rules (`rules/digest.py`)."""
        return digest.write(material, self._language)

    def _text_on(self, url: str) -> str:
        """The text on a picture that is given by its data URL."""
        with self._taken(None) as reader:
            page, _ = reader.read(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        return page.text

    @contextlib.contextmanager
    def _taken(self, patience: float | None) -> "Iterator[_Reader]":
        """A reader that is free, or gets free within `patience` seconds. Raises `queue.Empty`."""
        reader = self._free.get(block=patience != 0, timeout=patience or None)
        try:
            yield reader
        finally:
            self._free.put(reader)


class _Reader(ChildOwner):
    """A child that reads pictures with a model, for one thread at a time."""

    def __init__(self, ocr_model: str, idle_seconds: float, time_limit: float):
        super().__init__(idle_seconds)
        self._chosen = self._ocr_model = ocr_model
        self._time_limit = time_limit
        self._in_time = False  # the chosen model has read a picture in time
        self._has_read = False  # any model has
        self._missed: set[int] = set()  # the lengths of pictures that the fastest model has not read in time
        self._engine = ""

    def prepare(self) -> None:
        """Start the child. Raises as `LocalModel.read` does."""
        with self._lock:
            self._start()
            self._set_timer()

    def read(self, picture: BinaryIO) -> tuple[Page, str]:
        """The child's answer, and its engine. After any failure its state is unknown, so it is ended."""
        with self._lock:
            self._stop_timer()
            try:
                self._start()
                begun = time.monotonic()  # not before: a slow machine takes long to load the models, too
                self._send(picture)
                page = self._receive(Page, begun + LONGEST * self._time_limit)
            except ChildFailed as failure:
                code = self._end()
                log.warning("the OCR process was ended: %s (exit code %s)", failure, code)
                self._raise_if_closed()
                if isinstance(failure, ChildSilent) or code == -signal.SIGALRM:
                    self._raise_too_slow(picture.seek(0, os.SEEK_END))
                raise AnswerUnusable(f"The text of this picture could not be read: {failure}.") from None
            except BaseException:
                self._end()
                raise
            engine = self._engine
            self._judge_pace(page, time.monotonic() - begun)
            self._set_timer()
            return page, engine

    def _raise_too_slow(self, length: int) -> NoReturn:
        """Raise `AnswerUnusable` for a picture of so many bytes. Unless the chosen model has read another one
        in time, the fast one is used from now on; and if that one reads none, raise `ProviderRefused`.
        """
        if not (self._in_time or self._ocr_model == FAST or self._engine not in ("", self._chosen)):
            sentence = TOO_SLOW.format(model=self._ocr_model)
            log.warning("%s", sentence)
            self._ocr_model = FAST
            raise AnswerUnusable(f"{sentence}.")
        self._missed.add(length)  # the same picture is tried several times
        if len(self._missed) >= MOST_MISSED and not self._has_read:
            raise ProviderRefused(f"{HOPELESS}.")
        raise AnswerUnusable("The text of this picture could not be read: it took too long.")

    def _judge_pace(self, page: Page, seconds: float) -> None:
        """Use the chosen model again if the fast one shows that the machine is fast enough for it."""
        self._has_read = True
        if self._ocr_model == self._chosen:
            self._in_time = True
        elif page.width * page.height >= LARGE and seconds < IN_TIME * self._time_limit:
            log.info("the OCR model `%s` reads again: this machine is fast enough for it", self._chosen)
            self._ocr_model, self._in_time = self._chosen, True
            self._end()

    def _start(self) -> None:
        """Start a child unless one is ready. One that died since the last picture is replaced."""
        self._raise_if_closed()
        if self._child is not None and self._child.runs:
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
        try:
            self._begin(
                [*CHILD, size, tesseract, str(LONGEST * self._time_limit)],
                name="the OCR process",
                environment=ENVIRONMENT,
            )
        except OSError as problem:
            raise ProviderDown(f"The OCR process could not be started: {problem.strerror}.") from None
        try:
            return self._receive(Ready, time.monotonic() + self._time_limit)
        except ChildFailed as failure:
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
        self._running.write(data, limit=self._time_limit)

    def _receive(self, kind: type[Message], deadline: float) -> Message:
        """The next message. Heartbeats before it are skipped; each gives the child another `time_limit`, up
        to `deadline`.
        """
        answer = self._running.receive(limit=self._time_limit, deadline=deadline, most=MAX_ANSWER)
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ChildFailed("the OCR process sent an unreadable answer") from None

    def _raise_if_closed(self) -> None:
        if self._closed:
            raise ProviderDown("The embedded analyser is being closed.")
