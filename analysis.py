"""Analysing photos: the worker and the pool of threads that process the queue, the list of analyses, and
their counts; `/api/analysis` and `/api/stats`.

`claims.py` decides which photo is due and what a failure means for it. A worker claims a photo, calls the
model with no transaction open, and saves the result in one transaction, but only if the claim still holds.

More than 550 lines, because a claim is worked through in one place, from the picture to the row that is
stored.
"""

import contextlib
import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
from flask import Blueprint

import access
import agenda
import claims
import database
import gate
import lexicon
import llm
import loops
import models
import photos
import pictures
import readings
import records
import results
import tallies
import uploads
from buckets import away
from claims import Claim
from clock import utc_now
from curation import stacks
from database import db
from engines import configuration, ledger
from engines.findings import Findings, Intent
from engines.lines import Page
from errors import (
    AnswerUnusable,
    NotFound,
    ProviderDown,
    ProviderRefused,
    SnaploreError,
    StorageFull,
    Unavailable,
    Unreadable,
)
from locks import Presence, named_lock
from models import Analysis, Photo, Selected
from rules import disguises
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# Seconds that an analysis waits for the OCR process, which may be reading another picture. Together with the
# longest reading and the longest answer this stays below the queue's lease.
READ_PATIENCE = 30.0
# Seconds that the next analysis waits for uploads that are being stored. An analysis takes the processors for
# about as long as an upload, or longer where it reads the picture here. With endless uploads, each thread of
# the pool still begins one in this time.
UPLOADS_FIRST = 2.0
READ_PAUSE = 30.0  # seconds until reading is tried again when it was not possible
PROGRESS_EVERY = 100  # photos read or judged in the background between two lines in the log

NOT_READABLE = "This screenshot is sensitive, so no other model gets it, and the embedded one cannot read it."

# The pace of the queue: that of at most so many photos, of at least so many, in this time.
MOST_PACED, FEWEST_PACED, PACED = 50, 3, timedelta(minutes=5)
JUDGED_AT_ONCE = 40  # photos that are looked at in a step, with up to 5 ms each
STOP_PATIENCE = 15.0  # seconds that running analyses have to finish when the service stops

# ------------------------------------------------------------------------------------------------- the worker


class Judged(msgspec.Struct):
    """How far photos were judged again: all from `below` on, by the embedded model's `version`."""

    version: str = ""
    below: int | None = None


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
        self._reads_again_at = -math.inf  # monotonic: when reading in the background is tried next
        self._older = 0  # photos that reading in the background has come to
        self._judged_to: tuple[Any] | None = None  # the stored place of the walk when nothing was left
        self._rejudged = 0  # photos, since this worker began
        self._all_looked_at = False  # by this version of the grammar of dates

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
        try:
            ended = self._worked_through(task)
        except Exception:
            self._unsettled[task.claim.token] = _Outcome(task.claim)
            raise
        if ended is not None:
            self._settle(ended, began)
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

    def _worked_through(self, task: "_Task") -> "_Outcome | None":
        """The outcome for a claimed photo; None when an earlier result was copied, or is waited for."""
        claim, config, model = task
        with database.scope():
            if results.copied_from_twin(claim, model.identity, now=self._clock()):
                stacks.place(claim.photo_id)
                log.info("photo %d analysed: copied from the same picture", claim.photo_id)
                return None
        try:
            picture, photo = self._opened(claim)
        except (NotFound, Unreadable, away.BucketUnreachable, away.Elsewhere) as problem:
            return _Outcome(claim, problem, model.identity)
        with picture, self._working_on(claim):
            return self._analyse(claim, model, config, picture, photo)

    def _opened(self, claim: Claim) -> tuple[BinaryIO, Photo]:
        """The original of a claimed photo, which may have to be fetched, and its row."""
        with database.scope():
            photo = photos.get(claim.photo_id)
            with contextlib.suppress(away.Elsewhere):
                return photos.open_original(photo), photo
        with self._working_on(claim):
            return photos.bringing(lambda: photos.open_original(photos.get(claim.photo_id))), photo

    def _settle(self, ended: "_Outcome", began: float) -> None:
        """Save the outcome for a photo."""
        photo_id = ended.claim.photo_id
        self._unsettled[ended.claim.token] = ended
        self._settle_unsettled()
        with database.scope():
            stacks.place(photo_id)
        # Only the type of a failure: its message may quote the model.
        result = "done" if isinstance(ended.outcome, Findings) else type(ended.outcome).__name__
        log.info("photo %d analysed: %s, %.2f s", photo_id, result, time.monotonic() - began)

    def mark_older(self) -> bool:
        """Mark what is sensitive on some photos that earlier rules judged; False when there are none."""
        with database.scope(), db.atomic():
            judged = gate.mark_older()
            lexicon.redact_anew(judged)
            records.file(judged)
        return bool(judged)

    def read_older(self) -> bool:
        """Read the newest photo that has not been read; False when there is none, or reading is not possible
        now. Meant for when `work` has nothing to do.

        One thread of all processes reads at a time. A photo that fails several times is not tried again.
        """
        if not self._settings.read_locally or time.monotonic() < self._reads_again_at:
            return False
        with database.scope():
            if readings.next_unread() is None:  # before the lock: an idle service writes nothing
                if self._older:
                    log.info("every photo is read")
                    self._older = 0
                return False
        folder = database.store().folder / "jobs"
        try:
            with named_lock(folder, "read-older", 0, busy="Another thread reads."):
                return self._read_newest()
        except Unavailable:
            return False

    def place_next(self) -> bool:
        """Put the newest photo that is due to be compared into its stack; False when there is none. Meant for
        when `work` has nothing to do: photos that were stored by an earlier version, or read later.
        """
        with database.scope():
            return stacks.place_next()

    def look_for_dates(self) -> bool:
        """Look for dates on photos that an earlier version has read, when nothing else is left to do."""
        if not self._all_looked_at:
            with database.scope():
                self._all_looked_at = not agenda.renew_older(now=self._clock())
        return not self._all_looked_at

    def judge_older(self) -> bool:
        """Judge some photos again that an earlier version of the embedded model has judged, and find the
        records of those that another model has analysed before there were any, the newest first; False when
        there are none. Meant for when there is nothing to analyse and nothing to read.

        It needs only the lines that were read: no picture is opened. One thread of all processes does it.
        """
        if self._judged_to == (self._judged_place(),):
            return False
        folder = database.store().folder / "jobs"
        try:
            with named_lock(folder, "judge-older", 0, busy="Another thread judges."):
                is_left = self._judge_newest()
        except Unavailable:
            return False
        self._judged_to = None if is_left else (self._judged_place(),)
        return is_left

    @staticmethod
    def _judged_place() -> Any:
        with database.scope():
            return models.stored_value("analysis.judged")

    def _judge_newest(self) -> bool:
        with database.scope():
            done = msgspec.convert(models.stored_value("analysis.judged", {}), Judged)
            version = llm.judged_by("")  # without the reader: the rules alone
            if done.version != version:
                done = Judged(version)
            below = Analysis.select(Analysis.photo).order_by(Analysis.photo.desc()).limit(JUDGED_AT_ONCE)
            if done.below is not None:
                below = below.where(Analysis.photo < done.below)
            ids = [row.photo_id for row in below]
            if not ids:
                if done.below:
                    models.store_value("analysis.judged", Judged(version, 0))  # what comes back raises it
                return False
            of_photo = (Photo.filename, Photo.original_timestamp)
            columns = (Analysis.photo, Analysis.analyser, Analysis.completed_at, *of_photo)
            due = results.JUDGED_HERE | ((Analysis.status == "done") & Analysis.records.is_null())
            rows = Analysis.select(*columns).join(Photo).where(Analysis.photo.in_(ids), due)
            # `objects` puts the columns of both tables on one object.
            stored = [(row, readings.page_of(row.photo_id)) for row in cast("Iterator[Any]", rows.objects())]
        reader = llm.reader(self._settings)
        judged = [
            (row, read, reader.judge(*read, name=row.filename, taken=results.time_taken(row)))
            for row, read in stored
            if read is not None
        ]
        with database.scope(), db.atomic():
            for row, (page, engine), found in judged:
                analyser = llm.judged_by(engine)
                if row.analyser != analyser:
                    results.replace_judgement(row, page, found, analyser, now=self._clock())
            models.store_value("analysis.judged", Judged(version, min(ids)))
        before = self._rejudged // PROGRESS_EVERY
        self._rejudged += len(judged)
        if self._rejudged // PROGRESS_EVERY > before:
            log.info("%d photos judged again by the present rules", self._rejudged)
        return True

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

    def _analyse(
        self,
        claim: Claim,
        model: llm.Model,
        config: configuration.Configuration,
        picture: BinaryIO,
        photo: Photo,
    ) -> "_Outcome | None":
        """Read a claimed photo and ask the model for it, or the embedded one if it must not leave. None
        when the result of a near-duplicate was copied, or is waited for. Raises what the database raises.
        """
        name, taken = photo.filename, results.time_taken(photo)
        before = gate.is_before(config, self._settings)
        reads_first, read = llm.reads_first(config, self._settings), None
        if reads_first or before:
            with database.scope():
                read = readings.page_of(claim.photo_id)
        if reads_first:
            read = self._read_first(claim, picture) or read
            if read is None and before and self._reads_again_at < math.inf and self._reads_left(claim):
                # A picture must not leave only because the reader is busy now, or has failed once.
                return _Outcome(claim, pause=timedelta(seconds=READ_PAUSE))
        text = readings.lines_on(read[0]).content if reads_first and read is not None else ""
        if before:
            with database.scope():
                mark = gate.marks([claim.photo_id]).get(claim.photo_id, gate.Mark())
            # What was read before may have been judged by earlier rules.
            if gate.withholds(mark, text):
                reader = llm.reader(self._settings)
                outcome = _judge_here(reader, read, picture, name, taken)
                return _Outcome(claim, outcome, reader.identity, asked=False)
            name = name if mark.cleared else disguises.plain_name(name)
        if reads_first and self._copied_from_stack(claim, model.identity):
            return None
        is_local = config.provider == configuration.LOCAL
        if is_local and (same := self._read_before(claim.photo_id, picture)) is not None:
            reader = llm.reader(self._settings)
            return _Outcome(claim, _judge_here(reader, same, picture, name, taken), reader.identity)
        return _Outcome(claim, _ask(model, picture, name, text, taken), model.identity)

    def _read_first(self, claim: Claim, picture: BinaryIO) -> tuple[Page, str] | None:
        """What is read now on a claimed photo, and the engine; None when it is not due, or cannot be read. It
        is saved, so that it is found whatever the model answers. Raises what the database raises.
        """
        read = None
        if self._reads_left(claim):
            read = self._read_before(claim.photo_id, picture)
            with contextlib.suppress(Unavailable):
                read = read or self._read(claim.photo_id, picture, patience=READ_PATIENCE)
        if read is not None:
            with database.scope(), db.atomic():
                if claims.is_current(claim):
                    results.keep_and_index(claim.photo_id, *read, now=self._clock())
        return read

    @staticmethod
    def _reads_left(claim: Claim) -> bool:
        with database.scope():
            return bool(Analysis.select(Analysis.reads_left).where(Analysis.id == claim.analysis_id).scalar())

    def _copied_from_stack(self, claim: Claim, analyser: str) -> bool:
        """Copy, or wait for, the result of a near-duplicate with the same words; False when there is none."""
        with database.scope():
            stacks.place(claim.photo_id)
            if Analysis.select(Analysis.fresh).where(Analysis.id == claim.analysis_id).scalar():
                return False  # a person asks for a new result
            other, awaited = stacks.same_words(claim.photo_id, analyser)
            if other is None and not awaited:
                return False
            if other is None:
                claims.give_back(claim, now=self._clock(), pause=claims.COPY_DELAY)
                return True
            results.copy_from_near_duplicate(claim, other, analyser, now=self._clock())
        log.info("photo %d analysed: copied from a near-duplicate", claim.photo_id)
        return True

    def _read_newest(self) -> bool:
        with database.scope(), db.atomic():
            photo_id = readings.next_unread()
            if photo_id is None:
                return False
            left = readings.count_unread() if self._older % PROGRESS_EVERY == 0 else 0
            self._older += 1
            try:
                picture = photos.open_original(photos.get(photo_id))
            except (Unavailable, Unreadable):  # what is in the bucket is not fetched for this
                readings.end_tries(photo_id)
                return True
        if left:
            log.info("%d photos are still to be read in the background", left)
        with picture:
            read = self._read_before(photo_id, picture) or self._read(photo_id, picture, patience=0)
        if read is None:
            return time.monotonic() >= self._reads_again_at
        with database.scope(), db.atomic():
            results.keep_and_index(photo_id, *read, now=self._clock())
        return True

    def _read_before(self, photo_id: int, picture: BinaryIO) -> tuple[Page, str] | None:
        """What the same OCR model has read on another photo with exactly the same pixels, which is another
        file of the same screenshot, and the engine. None when there is none, or when a person asks for a new
        result. A few other pixels may be another word, so nothing less than all of them counts.
        """
        with database.scope():
            photo = Photo.get_or_none(Photo.id == photo_id)
            asked = Analysis.select(Analysis.fresh).where(Analysis.photo == photo_id).scalar()
            if photo is None or asked:
                return None
            alike = readings.of_same_look(photo, reader=self._settings.ocr_model)
        for other in alike:
            is_same = False
            # The other one may be lost, damaged, deleted just now, or in the bucket: then this one is read.
            with contextlib.suppress(SnaploreError, OSError):
                with database.scope():
                    opened = photos.open_original(other)
                with opened:
                    is_same = pictures.are_same(picture, opened)
            picture.seek(0)
            if is_same:
                log.info("photo %d has the pixels of photo %d, which was read", photo_id, other.id)
                with database.scope():
                    return readings.page_of(other.id)
        return None

    def _read(self, photo_id: int, picture: BinaryIO, *, patience: float) -> tuple[Page, str] | None:
        """The text of a picture and the engine that has read it; None when it cannot be read, or not now.

        A picture that fails is tried again some times, in the background. Raises `Unavailable` when other
        pictures are read for `patience` seconds, but nothing else that a model raises: no failure of reading
        may hinder an analysis.
        """
        if time.monotonic() < self._reads_again_at:
            return None
        with database.scope():
            readings.count_tries(photo_id, 1)  # before: it may take this process with it
        try:
            return llm.reader(self._settings).read(picture, patience=patience)
        except (ProviderRefused, ProviderDown, Unavailable) as problem:
            with database.scope():
                readings.count_tries(photo_id, -1)  # this says nothing about the picture
            log.info("photo %d is not read now: %s", photo_id, problem)
            if isinstance(problem, Unavailable):
                raise
            # An engine that does not run here will not until a restart.
            refused = isinstance(problem, ProviderRefused)
            self._reads_again_at = time.monotonic() + (math.inf if refused else READ_PAUSE)
        except (SnaploreError, OSError) as problem:
            log.info("photo %d cannot be read: %s", photo_id, problem)
        return None

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


def _judge_here(
    reader: llm.Reader, page: tuple[Page, str] | None, picture: BinaryIO, name: str, taken: datetime
) -> Findings | SnaploreError:
    """The embedded model's findings in a photo that no other model gets. Any failure is the photo's own."""
    try:
        read = page or reader.read(picture, patience=READ_PATIENCE)
        return reader.judge(*read, name=name, taken=taken)
    except (SnaploreError, OSError) as problem:
        log.info("a sensitive photo cannot be read: %s", problem)
    except Exception:
        log.exception("the embedded model failed unexpectedly")
    return AnswerUnusable(NOT_READABLE)


def _ask(
    model: llm.Model, picture: BinaryIO, name: str, text: str, taken: datetime
) -> Findings | SnaploreError:
    """The model's findings, or the failure, which is returned because it is recorded like a result."""
    try:
        return model.analyse(picture, name=name, text=text, taken=taken)
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
                results.keep(claim, outcome, analyser, now=now)
            case _:
                if isinstance(outcome, AnswerUnusable) and analyser.startswith(results.LOCAL) and ended.asked:
                    readings.count_tries(claim.photo_id, 1)  # the embedded model could not read it
                claims.fail(claim, outcome, now=now)
        claims.end(claim, outcome if ended.asked else None, now=now)


def judge_all_again() -> None:
    """Let the next start judge again what the embedded model has judged. Opens its own scope."""
    with database.scope():
        models.store_value("analysis.judged", {})


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
        steps = (
            self._worker.mark_older,
            self._worker.place_next,
            self._worker.read_older,
            self._worker.judge_older,
            self._worker.look_for_dates,
        )
        return 0.0 if any(step() for step in steps) else pause


# ---------------------------------------------------------------------------------------------------- reading


def page(
    number: int, size: int, *, status: str | None = None, intent: str | None = None
) -> tuple[int, list[shapes.AnalysisItem]]:
    """The total number of analyses, and one page of them, the newest photo first."""
    among = Selected("analyses")
    if status is not None:
        among = among.where("status = ?", status)
    if intent is not None:
        among = among.where("intent = ?", intent)
    total = tallies.photos({"status": status, "intent": intent})
    ids = models.page_of(among, ("photo_id",), number, size)
    if not ids:
        return total, []
    rows = db.execute_sql(_LIST, (msgspec.json.encode(ids).decode(),)).fetchall()
    return total, [cast(shapes.AnalysisItem, dict(zip(_LISTED, row, strict=True))) for row in rows]


def statistics(*, now: datetime) -> shapes.Statistics:
    """Counts by status, and of finished analyses by intent and category, from the tallies."""
    counts = {"pending": 0, "processing": 0, "done": 0, "error": 0}
    intents: dict[str, int] = {}
    categories: dict[str, int] = {}
    for status, intent, category, number in tallies.by_result():
        counts[status] += number
        if status == "done":
            intents[intent] = intents.get(intent, 0) + number
            categories[category] = categories.get(category, 0) + number
    total, kinds = sum(counts.values()), gate.tallied()
    return {
        "total_photos": total,
        "total_analyses": total,
        "done": counts["done"],
        "pending": counts["pending"],
        "processing": counts["processing"],
        "errors": counts["error"],
        "searchable": counts["done"] + (_failed_but_read() if counts["error"] else 0),
        "seconds_left": _seconds_left(counts["pending"] + counts["processing"], now=now),
        "sensitive_photos": sum(kinds.values()),
        "sensitive_kinds": gate.counts(kinds),
        "intent_distribution": intents,
        "category_distribution": categories,
    }


def _failed_but_read() -> int:
    """The number of photos whose analysis failed, but whose text was read on this machine."""
    # The first condition is literal, as in the partial index `analyses_faulty`.
    found = db.execute_sql(
        "SELECT count(*) FROM analyses JOIN readings USING (photo_id) WHERE fault <> '' AND status = 'error'"
    )
    return cast(int, found.fetchone()[0])


def _seconds_left(waiting: int, *, now: datetime) -> int | None:
    """The seconds until so many photos are analysed, by the pace of those that were analysed last; None when
    fewer than `FEWEST_PACED` were analysed in the last `PACED`. The queue takes the oldest photo first, so
    the newest photos that are done were analysed last.
    """
    if not waiting:
        return 0
    newest = Analysis.select(Analysis.completed_at).where(Analysis.status == "done")
    times = [row.completed_at for row in newest.order_by(Analysis.photo.desc()).limit(MOST_PACED)]
    recent = [time for time in times if time is not None and now - PACED <= time <= now]
    if len(recent) < FEWEST_PACED:
        return None
    passed: timedelta = now - min(recent)
    return round(passed.total_seconds() / len(recent) * waiting)


def state(photo_id: int, caller: access.Caller) -> shapes.AnalysisState:
    """How far the analysis of a photo is. Raises `NotFound`, also for a photo that `caller` may not see."""
    photo = photos.get(photo_id)
    of_its_device = caller.owns_device and photo.device_id == caller.device_id
    if caller.uploads_only and photo.token_id != caller.token_id and not of_its_device:
        raise NotFound("Photo not found")
    return shapes.of(Analysis.get(Analysis.photo == photo_id), shapes.AnalysisState)


# Plain SQL: each column is a field of an `AnalysisItem`, in their order.
_LISTED = shapes.names(shapes.AnalysisItem)
_LIST = f"""SELECT {", ".join(f"a.{name}" for name in shapes.names(shapes.AnalysisFields))}, p.filename
    FROM analyses a JOIN photos p ON p.id = a.photo_id
    WHERE a.photo_id IN (SELECT value FROM json_each(?)) ORDER BY a.photo_id DESC"""  # noqa: S608

# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("analysis", __name__, url_prefix="/api")


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20
    status: shapes.Status | None = None
    intent: Intent | None = None


@routes.get("/analysis")
@inputs.operation()
def index(query: ListQuery) -> shapes.AnalysisPage:
    """List analyses, the newest photo first. Every photo has one analysis, from its upload on; photos in the
    trash are left out.
    """
    total, items = page(query.page, query.page_size, status=query.status, intent=query.intent)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.post("/analysis/<id:photo_id>/reprocess")
@inputs.operation(NotFound)
def ask_again(photo_id: int) -> shapes.Done:
    """Analyse a photo again. It waits in the queue like a new one. Own words and tags stay."""
    claims.reprocess(photo_id, now=utc_now())
    return {"message": "Reprocessing queued"}


@routes.get("/photos/<id:photo_id>/state")
@inputs.operation(NotFound)
def show_state(photo_id: int) -> shapes.AnalysisState:
    """Show how far the analysis of a photo is. A token of the scope `upload` sees its own uploads."""
    return state(photo_id, access.caller())


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.Statistics:
    """Count photos and analyses, and the finished ones by intent and category. Photos in the trash do not
    count.
    """
    return statistics(now=utc_now())
