"""The worker and the pool of threads that work through the queue.

`claims.py` decides which photo is due and what a failure means for it. A worker claims a photo, calls the
model with no transaction open, and saves the result in one transaction, but only if the claim still holds.
When nothing is due, it goes on with `analysis/backlog.py`.
"""

import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import BinaryIO, NamedTuple

import msgspec

import claims
import database
import gate
import llm
import loops
import photos
import readings
import uploads
from analysis import results, text_reader
from analysis.backlog import Backlog
from analysis.text_reader import Read, TextReader
from buckets import away
from claims import Claim
from clock import utc_now
from curation import stacks
from database import db
from engines import configuration, ledger
from engines.findings import Findings
from errors import (
    AnswerUnusable,
    SnaploreError,
    StorageFull,
    Unavailable,
    Unreadable,
)
from locks import Presence
from models import Photo
from rules import disguises
from settings import Settings

log = logging.getLogger(__name__)

# Seconds that an analysis waits for the OCR process, which may be reading another picture. Together with the
# longest reading and the longest answer this stays below the queue's lease.
READ_PATIENCE = 30.0
# Seconds that the next analysis waits for uploads that are being stored. An analysis takes the processors for
# about as long as an upload, or longer where it reads the picture here. With endless uploads, each thread of
# the pool still begins one in this time.
UPLOADS_FIRST = 2.0

NOT_READABLE = "This screenshot is sensitive, so no other model gets it, and the embedded one cannot read it."

STOP_PATIENCE = 15.0  # seconds that running analyses have to finish when the service stops

# ------------------------------------------------------------------------------------------------- the worker


class Worker:
    """Processes the queue, one photo per call of `work`; several threads may share a worker.

    It owns what outlives a call: the presence by which other workers know that its leases are alive, the
    running claims, and the outcomes that could not be saved yet. `close` ends all three.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], datetime] = utc_now):
        self._settings = settings
        self._clock = clock
        self._presences = settings.data_dir / "workers"
        self._presence: Presence | None = None
        self._presence_guard = threading.Lock()
        self._running: dict[str, Claim] = {}  # being analysed, by token
        # Outcomes that are not saved yet, by the token of the claim. While there are any, nothing is claimed:
        # with a full disk, an answer would be paid for and lost.
        self._unsettled: dict[str, _Outcome] = {}
        self._settling = threading.Lock()
        self._texts = TextReader(settings)
        self.backlog = Backlog(settings, self._texts, clock)

    def work(self) -> bool:
        """Claim one due photo, analyse it and save the result; False when nothing was due.

        While several uploads are being stored, it first waits for them, at most `UPLOADS_FIRST` seconds. The
        threads of the pool repeat this. It raises only what the database raises.
        """
        arriving = database.store().cache(uploads.Arriving)
        if arriving.crowded and self._settings.read_locally:
            llm.reader(self._settings).prepare()  # meanwhile
        arriving.wait(UPLOADS_FIRST)
        began = time.monotonic()
        self._settle_unsettled()
        task = self._next_task()
        if task is None:
            return False
        claim = task.claim
        try:
            with self._working_on(claim):
                ended = self._worked_through(task)
        except Exception:
            self._unsettled[claim.token] = _Outcome(claim)
            raise
        self._unsettled[claim.token] = ended
        self._settle_unsettled()
        with database.scope():
            stacks.place(claim.photo.id)
        if ended.outcome is not None:
            # Only the type of a failure: its message may quote the model.
            result = "done" if isinstance(ended.outcome, Findings) else type(ended.outcome).__name__
            log.info("photo %d analysed: %s, %.2f s", claim.photo.id, result, time.monotonic() - began)
        return True

    def _next_task(self) -> "_Task | None":
        """A claim on the next due photo, and what is to analyse it; None when nothing may be claimed now."""
        with database.scope():
            config = configuration.latest(self._settings)
            model = llm.model_for(config, self._settings)
            if ledger.out_of_tokens(config, self._settings, now=self._clock()):
                return None  # the queue continues tomorrow
            claim = self.claim_next(_fingerprint(config), now=self._clock())
        return None if claim is None else _Task(claim, config, model)

    def _worked_through(self, task: "_Task") -> "_Outcome":
        """How the analysis of a claimed photo ends: with what was found on the same bytes before, or with
        what a model finds on the picture. Raises what the database raises.
        """
        claim, config, model = task
        with database.scope():
            found = None if claim.fresh else results.of_same_bytes(claim.photo, model.identity)
        if found is not None:
            return _Outcome(claim, found, model.identity, asked=False)
        try:
            picture = photos.bringing(lambda: photos.open_original(claim.photo))
        except (Unreadable, away.BucketUnreachable, away.Elsewhere) as problem:
            return _Outcome(claim, problem, model.identity)
        with picture:
            if config.provider == configuration.LOCAL:
                return self._analysed_here(claim, model, picture)
            return self._analysed_by(model, claim, config, picture)

    def _analysed_here(self, claim: Claim, model: llm.Model, picture: BinaryIO) -> "_Outcome":
        """What the embedded model finds on a picture."""
        photo, reader = claim.photo, llm.reader(self._settings)
        read = None if claim.fresh else self._texts.read_before(photo, picture)
        if read is not None:
            return _Outcome(claim, _judged_here(reader, read, picture, photo), model.identity)
        return _Outcome(claim, _ask(model, picture, photo, photo.filename), model.identity)

    def _analysed_by(
        self, model: llm.Model, claim: Claim, config: configuration.Configuration, picture: BinaryIO
    ) -> "_Outcome":
        """What a remote model finds on a picture, or the embedded one if it must not leave. It is read here
        first. Where a near-duplicate has the same words, nobody is asked.
        """
        photo, settings = claim.photo, self._settings
        read = self._read(claim, picture)
        with database.scope():
            known = results.known(claim, read, now=self._clock())
        if known is None:
            return _Outcome(claim)
        page = known.read[0] if known.read and settings.read_locally else None
        text, name = readings.lines_on(page).content if page else "", photo.filename
        if gate.is_before(config, settings):
            may_be_read = settings.read_locally and self._texts.runs_here and known.reads_left > 0
            if known.read is None and may_be_read:
                # A picture must not leave only because the reader is busy now, or has failed once.
                return _Outcome(claim, pause=timedelta(seconds=text_reader.READ_PAUSE))
            # What was read before may have been judged by earlier rules.
            if gate.withholds(known.mark, text):
                reader = llm.reader(settings)
                found = _judged_here(reader, known.read, picture, photo)
                return _Outcome(claim, found, reader.identity, asked=False)
            name = name if known.mark.cleared else disguises.plain_name(name)
        if page is not None and not claim.fresh:
            with database.scope():
                stacks.place(photo.id)
                other, is_awaited = stacks.same_words(photo.id, page, model.identity)
                if other is not None:
                    log.info(
                        "photo %d has the words of photo %d, which was analysed", photo.id, other.photo_id
                    )
                    analyser = f"{model.identity}, of the near-duplicate {other.photo_id}"
                    found = results.of_same_words(other)
                    return _Outcome(claim, found, analyser, asked=False, read=known.read)
            if is_awaited:
                return _Outcome(claim, pause=claims.COPY_DELAY)
        return _Outcome(claim, _ask(model, picture, photo, name, text), model.identity, read=known.read)

    def _read(self, claim: Claim, picture: BinaryIO) -> Read | None:
        """What is on a claimed photo; None when it was read before, or cannot be read now."""
        if not self._settings.read_locally or not claim.reads_left:
            return None
        with contextlib.suppress(Unavailable):
            return self._texts.read(claim.photo, picture, anew=claim.fresh, patience=READ_PATIENCE)
        return None

    def claim_next(self, fingerprint: str, *, now: datetime) -> Claim | None:
        """Claim the oldest due photo, or None; see `claims.claim_next`."""
        return claims.claim_next(fingerprint, lambda: self._present().name, now=now)

    def recover(self, *, now: datetime) -> int:
        """Return photos of dead workers to the queue, but none of this worker's own; see `claims.recover`."""

        def is_own(token: str) -> bool:
            return token in self._running or token in self._unsettled

        return claims.recover(self._presences, is_own, now=now)

    def close(self) -> None:
        """Save the outcomes, give back the photos that are still being analysed, and remove the presence."""
        with contextlib.suppress(StorageFull, Unavailable, *database.DATABASE_ERRORS):
            self._settle_unsettled()
        for claim in list(self._running.values()):
            with database.scope():
                claims.give_back(claim, now=self._clock())
        if self._presence is not None:
            self._presence.forget()
            self._presence = None

    def _settle_unsettled(self) -> None:
        """Save the outcomes. Raises what the database raises, and keeps an outcome if a retry may succeed."""
        with self._settling:
            for token, ended in list(self._unsettled.items()):
                try:
                    with database.scope():
                        if ended.outcome is None:
                            claims.give_back(ended.claim, now=self._clock(), pause=ended.pause)
                        else:
                            _settle(ended, ended.outcome, now=self._clock())
                except Exception as problem:
                    if not isinstance(database.known_failure(problem), StorageFull | Unavailable):
                        del self._unsettled[token]
                    raise
                del self._unsettled[token]

    @contextlib.contextmanager
    def _working_on(self, claim: Claim) -> Iterator[None]:
        self._running[claim.token] = claim
        try:
            yield
        finally:
            self._running.pop(claim.token, None)

    def _present(self) -> Presence:
        """The presence, created with the first claim, so that the service also starts on a read-only disk."""
        with self._presence_guard:
            if self._presence is None:
                self._presence = Presence(self._presences)
            return self._presence


# -------------------------------------------------------------------------------------------------- one photo


class _Task(NamedTuple):
    """A claimed photo, and the model that is to analyse it."""

    claim: Claim
    config: configuration.Configuration
    model: llm.Model


class _Outcome(NamedTuple):
    """How an analysis has ended; without an outcome, the photo returns to the queue after a pause."""

    claim: Claim
    outcome: Findings | SnaploreError | None = None
    analyser: str = ""
    asked: bool = True
    pause: timedelta = timedelta(0)
    read: Read | None = None  # what is on the photo, where the model does not say so


def _judged_here(
    reader: llm.Reader, known: Read | None, picture: BinaryIO, photo: Photo
) -> Findings | SnaploreError:
    """The embedded model's findings in a photo that no other model gets. Any failure is the photo's own."""
    try:
        read = known or reader.read(picture, patience=READ_PATIENCE)
        return reader.judge(*read, name=photo.filename, taken=results.time_taken(photo))
    except (SnaploreError, OSError) as problem:
        log.info("a sensitive photo cannot be read: %s", problem)
    except Exception:
        log.exception("the embedded model failed unexpectedly")
    return AnswerUnusable(NOT_READABLE)


def _ask(
    model: llm.Model, picture: BinaryIO, photo: Photo, name: str, text: str = ""
) -> Findings | SnaploreError:
    """The model's findings, or the failure, which is returned because it is recorded like a result."""
    try:
        return model.analyse(picture, name=name, text=text, taken=results.time_taken(photo))
    except (SnaploreError, OSError) as problem:
        if isinstance(problem, SnaploreError):
            return problem
        return Unreadable("The stored picture cannot be read.")
    except Exception:
        log.exception("a model failed unexpectedly")
        return AnswerUnusable("The analysis failed unexpectedly; the service's log has the reason.")


def _settle(ended: _Outcome, outcome: Findings | SnaploreError, *, now: datetime) -> None:
    """Record the outcome of a claim, unless the claim no longer holds. The cost is recorded in any case."""
    claim, analyser = ended.claim, ended.analyser
    usage = getattr(outcome, "usage", None)
    with db.atomic():
        if usage is not None and usage.calls:
            ledger.record(usage, purpose="analysis", model=analyser, now=now)
        if not claims.is_current(claim):
            return
        match outcome:
            case Findings():
                results.keep(claim.photo, outcome, ended.read, analyser, now=now)
            case _:
                if isinstance(outcome, AnswerUnusable) and analyser.startswith(results.LOCAL) and ended.asked:
                    readings.count_tries(claim.photo.id, 1)  # the embedded model could not read it
                claims.fail(claim, outcome, now=now)
        claims.end(claim, outcome if ended.asked else None, now=now)


def _fingerprint(config: configuration.Configuration) -> str:
    """A hash of everything on which a provider's refusal may depend. It does not reveal the key."""
    parts = (config.provider, config.base_url, config.model, config.api_key)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


# --------------------------------------------------------------------------------------------------- the pool


class Pool:
    """Threads that repeat `Worker.work`. Started only in the server process, after its fork."""

    def __init__(self, settings: Settings):
        self._worker = Worker(settings)
        self._loop = loops.Loop(
            "analysis", self._step, wake_on=claims.arrival, threads=settings.analysis_workers
        )

    def start(self) -> None:
        """Recover interrupted analyses, allow a probe, and start the threads."""
        try:
            with database.scope(), db.atomic():
                recovered = self._worker.recover(now=utc_now())
                claims.allow_probe(now=utc_now())
            if recovered:
                log.info("%d interrupted analyses are pending again", recovered)
        except Exception as problem:
            # With a full disk or a damaged page the service must still start, to show what is stored. The
            # threads try again.
            if database.known_failure(problem) is None:
                raise
            log.error("interrupted analyses were not recovered: %s", problem)
        self._loop.start()

    def stop(self) -> None:
        """Stop claiming, wait `STOP_PATIENCE` for running analyses, and give the others back."""
        self._loop.stop()
        self._loop.join(STOP_PATIENCE)
        self._worker.close()

    def _step(self) -> float:
        if self._worker.work():
            return 0.0
        with database.scope():
            self._worker.recover(now=utc_now())
            pause = claims.seconds_until_due(now=utc_now())
        return 0.0 if self._worker.backlog.step() else pause
