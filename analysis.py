"""Analysing photos: the worker and the pool of threads that process the queue, the list of analyses, and
their counts; `/api/analysis` and `/api/stats`.

`claims.py` decides which photo is due and what a failure means for it. A worker claims a photo, calls the
model with no transaction open, and saves the result in one transaction, but only if the claim still holds.
"""

import contextlib
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, BinaryIO

import msgspec
from flask import Blueprint

import claims
import database
import lexicon
import llm
import loops
import memory
import models
import photos
import reasoner
from claims import Claim
from clock import utc_now
from database import db
from engines import configuration, ledger
from engines.findings import Findings, Intent, MemoryCandidate
from errors import AnswerUnusable, NotFound, SnaploreError, StorageFull, Unavailable, Unreadable
from locks import Presence
from models import Analysis, Photo, Tally
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

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
        self._held: dict[str, Claim] = {}  # being analysed, by token
        # Claims whose outcome is not saved yet, with the outcome (None: not analysed) and the analyser. While
        # there are any, nothing is claimed: with a full disk, an answer would be paid for and lost.
        self._unsettled: dict[str, tuple[Claim, Findings | SnaploreError | None, str]] = {}
        self._settling = threading.Lock()

    def work(self) -> bool:
        """Claim one due photo, analyse it and save the result; False when nothing was due.

        The threads of the pool repeat this. It raises only what the database raises.
        """
        began = time.monotonic()
        outcome: Findings | SnaploreError
        picture: BinaryIO | None
        self._settle_unsettled()
        with database.scope():
            config = configuration.latest(self._settings)
            model = llm.model_for(config, self._settings)
            if llm.out_of_tokens(config, self._settings, now=self._clock()):
                return False  # the queue continues tomorrow
            claim = self.claim_next(_fingerprint(config), now=self._clock())
            if claim is None:
                return False
            try:
                if _copied_from_twin(claim, model.identity, now=self._clock()):
                    log.info("photo %d analysed: copied from the same picture", claim.photo_id)
                    return True
                photo = photos.get(claim.photo_id)
                picture = photos.open_original(photo)
            except (NotFound, Unreadable) as problem:
                picture, outcome = None, problem
            except Exception:
                self._unsettled[claim.token] = (claim, None, model.identity)
                raise
        if picture is not None:
            with picture, self._holding(claim):
                outcome = _ask(model, picture, photo.filename)
        self._unsettled[claim.token] = (claim, outcome, model.identity)
        self._settle_unsettled()
        # Only the type of a failure: its message may quote the model.
        result = "done" if isinstance(outcome, Findings) else type(outcome).__name__
        log.info("photo %d analysed: %s, %.2f s", claim.photo_id, result, time.monotonic() - began)
        return True

    def claim_next(self, fingerprint: str, *, now: datetime) -> Claim | None:
        """Claim the oldest due photo, or None; see `claims.claim_next`."""
        return claims.claim_next(fingerprint, lambda: self._present().name, now=now)

    def recover(self, *, now: datetime) -> int:
        """Return photos of dead workers to the queue, but none of this worker's own; see `claims.recover`."""

        def is_held(token: str) -> bool:
            return token in self._held or token in self._unsettled

        return claims.recover(self._presences, is_held, now=now)

    def close(self) -> None:
        """Save the outcomes, give back the photos that are still being analysed, and remove the presence."""
        with contextlib.suppress(StorageFull, Unavailable, *database.DATABASE_ERRORS):
            self._settle_unsettled()
        for claim in list(self._held.values()):
            with database.scope():
                claims.give_back(claim, now=self._clock())
        if self._presence is not None:
            self._presence.forget()
            self._presence = None

    def _settle_unsettled(self) -> None:
        """Save the outcomes. Raises what the database raises, and keeps an outcome if a retry may succeed."""
        with self._settling:
            for token, (claim, outcome, analyser) in list(self._unsettled.items()):
                try:
                    with database.scope():
                        if outcome is None:
                            claims.give_back(claim, now=self._clock())
                        else:
                            _settle(claim, outcome, analyser, now=self._clock())
                except Exception as problem:
                    if not isinstance(database.known_failure(problem), StorageFull | Unavailable):
                        del self._unsettled[token]
                    raise
                del self._unsettled[token]

    @contextlib.contextmanager
    def _holding(self, claim: Claim) -> Iterator[None]:
        self._held[claim.token] = claim
        try:
            yield
        finally:
            self._held.pop(claim.token, None)

    def _present(self) -> Presence:
        """The presence, created with the first claim, so that the service also starts on a read-only disk."""
        with self._presence_guard:
            if self._presence is None:
                self._presence = Presence(self._presences)
            return self._presence


# -------------------------------------------------------------------------------------------------- one photo


def _ask(model: llm.Model, picture: BinaryIO, name: str) -> Findings | SnaploreError:
    """The model's findings, or the failure, which is returned because it is recorded like a result."""
    try:
        return model.analyse(picture, name=name)
    except (SnaploreError, OSError) as problem:
        if isinstance(problem, SnaploreError):
            return problem
        return Unreadable("The stored picture cannot be read.")
    except Exception:
        log.exception("a model failed unexpectedly")
        return AnswerUnusable("The analysis failed unexpectedly; the service's log has the reason.")


def _settle(claim: Claim, outcome: Findings | SnaploreError, analyser: str, *, now: datetime) -> None:
    """Record the outcome of a claim, unless the claim no longer holds. The cost is recorded in any case."""
    usage = getattr(outcome, "usage", None)
    with db.atomic():
        if usage is not None and usage.calls:
            ledger.record(usage, purpose="analysis", model=analyser, now=now)
        if not claims.still_held(claim):
            return
        match outcome:
            case Findings():
                _save(claim, result_fields(outcome), analyser, now=now)
                _remember(claim, outcome.memories, now=now)
            case _:
                claims.fail(claim, outcome, now=now)
        claims.end(claim, outcome, now=now)


def _copied_from_twin(claim: Claim, analyser: str, *, now: datetime) -> bool:
    """Copy the result of the same analyser for identical bytes, without a call; False when there is none."""
    query = Analysis.select(Analysis.fresh, Photo.sha256).join(Photo)
    row = query.where(Analysis.id == claim.analysis_id).objects().first()
    if row is None or row.fresh:
        return False
    # A subquery: otherwise SQLite would start with all finished analyses.
    same_bytes = Photo.select(Photo.id).where(Photo.sha256 == row.sha256)
    twin = Analysis.get_or_none(
        Analysis.photo.in_(same_bytes), Analysis.status == "done", Analysis.analyser == analyser
    )
    if twin is None:
        return False
    with db.atomic():
        if claims.still_held(claim):
            _save(claim, {name: getattr(twin, name) for name in _RESULT_FIELDS}, analyser, now=now)
        claims.end(claim, None, now=now)  # the provider was not asked
    return True


_RESULT_FIELDS = (
    "app_name",
    "content_category",
    "intent",
    "summary",
    "entities",
    "confidence",
    "visible_text",
    "llm_response",
)


def result_fields(findings: Findings) -> dict[str, Any]:
    """The columns of an analysis row that hold these findings."""
    result = {name: getattr(findings, name) for name in _RESULT_FIELDS if hasattr(findings, name)}
    return {
        **result,
        "entities": msgspec.json.encode(findings.entities).decode(),
        "llm_response": findings.raw,
    }


def _save(claim: Claim, result: dict[str, Any], analyser: str, *, now: datetime) -> None:
    lexicon.remove(claim.photo_id)  # before the update: removing an earlier result needs its text
    done = {
        "status": "done",
        "analyser": analyser,
        "completed_at": now,
        "error_message": None,
        "fault": "",
        "fresh": False,
        "noted": False,
    }
    counters = {"attempts": 0, "interruptions": 0, "returns": 0}
    Analysis.update(**result, **done, **counters, **claims.UNLEASED).where(
        Analysis.id == claim.analysis_id
    ).execute()
    lexicon.index(claim.photo_id)
    reasoner.count_completed()


def _remember(claim: Claim, candidates: list[MemoryCandidate], *, now: datetime) -> None:
    """Save what the picture tells about the person. A second analysis of it adds nothing, because memories
    are de-duplicated.
    """
    device_id = photos.get(claim.photo_id).device_id if candidates else ""
    for candidate in candidates:
        memory.remember(candidate, source_type="screenshot", device_id=device_id, now=now)


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
            "analysis", self._step, wake_on=photos.stored, threads=settings.analysis_workers
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
            return claims.seconds_until_due(now=utc_now())


# ---------------------------------------------------------------------------------------------------- reading


def page(
    number: int, size: int, *, status: str | None = None, intent: str | None = None
) -> tuple[int, list[shapes.AnalysisItem]]:
    """The total number of analyses, and one page of them, the newest photo first."""
    query = Analysis.select(Analysis.id)
    if status is not None:
        query = query.where(Analysis.status == status)
    if intent is not None:
        query = query.where(Analysis.intent == intent)
    total = models.tallied(status=status, intent=intent)
    ids = models.page_of(query, (Analysis.photo,), number, size, total)
    if not ids:
        return total, []
    rows = (
        Analysis.select(*_LIST_COLUMNS)
        .join(Photo)
        .where(Analysis.id.in_(ids))
        .order_by(Analysis.photo.desc())
    )
    return total, [shapes.of(row, shapes.AnalysisItem) for row in rows.dicts()]


def statistics() -> shapes.Statistics:
    """Counts by status, and of finished analyses by intent and category. Reads the tallies, so the cost does
    not grow with the number of photos.
    """
    counts = {"pending": 0, "processing": 0, "done": 0, "error": 0}
    intents: dict[str, int] = {}
    categories: dict[str, int] = {}
    for tally in Tally.select():
        counts[tally.status] += tally.photos
        if tally.status == "done":
            intents[tally.intent] = intents.get(tally.intent, 0) + tally.photos
            categories[tally.content_category] = categories.get(tally.content_category, 0) + tally.photos
    total = sum(counts.values())
    return {
        "total_photos": total,
        "total_analyses": total,
        "done": counts["done"],
        "pending": counts["pending"],
        "processing": counts["processing"],
        "errors": counts["error"],
        "intent_distribution": intents,
        "category_distribution": categories,
    }


_LIST_COLUMNS = (*shapes.columns(Analysis, shapes.AnalysisFields), Photo.filename.alias("photo_filename"))

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
    """List analyses, the newest photo first."""
    total, items = page(query.page, query.page_size, status=query.status, intent=query.intent)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.post("/analysis/<id:photo_id>/reprocess")
@inputs.operation(NotFound)
def ask_again(photo_id: int) -> shapes.Done:
    """Analyse a photo again."""
    claims.reprocess(photo_id, now=utc_now())
    return {"message": "Reprocessing queued"}


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.Statistics:
    """Count photos and analyses, and the finished ones by intent and category."""
    return statistics()
