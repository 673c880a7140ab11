"""The analysis queue: which photo is due, which thread may analyse it, and when a failure is retried.

The database is the queue: every photo's analysis row says whether it is pending, when it is due, and who
holds it. A *claim* is one exclusive transaction that takes the oldest due row and writes a lease on it.
Threads, workers and restarts share no other state.

Failures are treated by their cause:

- The provider's fault (no connection, 429, 5xx) is retried. After three in a row a circuit breaker stops the
  queue except for one probe at a time, so that an outage uses up no photo's attempts.
- A refusal (401, 403, 404) stops the queue until the configuration changes (`engines/circuit.py`).
- The photo's own fault affects only that photo.
"""

import logging
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import blinker
import msgspec
import peewee

import models
from clock import iso
from database import db
from engines.circuit import LONGEST_PAUSE, Circuit
from engines.findings import Findings
from errors import (
    MAX_RETRY_AFTER,
    AnswerUnusable,
    NotFound,
    ProviderDown,
    ProviderRefused,
    SnaploreError,
    Unreadable,
    UnsupportedImage,
)
from locks import Presence
from models import READS, Analysis, Photo

log = logging.getLogger(__name__)

# Sent after the transaction that queued a photo; it wakes the analysis pool.
arrival = blinker.Signal()

LEASE = timedelta(minutes=5)  # more than twice the longest answer, 130 s
RETRY_DELAYS = (timedelta(seconds=2), timedelta(seconds=8))
TRIES = len(RETRY_DELAYS) + 1
COPY_DELAY = timedelta(seconds=3)  # while a result that may be copied is being made
LONGEST_DELAY = LONGEST_PAUSE + timedelta(seconds=MAX_RETRY_AFTER)  # of a retry or a probe
# How often a row that failed by the provider's fault returns to the queue by itself. Without a limit, a
# picture on which the provider always fails would be retried for ever.
MAX_RETURNS = 5
# After so many crashes during its analysis, a picture counts as their cause.
MAX_INTERRUPTIONS = 20
UNLEASED = {"lease_until": None, "lease_token": None}
# Seconds between two looks at the queue: other processes add rows, and leases end, without a signal.
IDLE_WAIT = 5.0
BLOCKED_WAIT = 1.0  # seconds, while something is due that cannot be claimed


class Claim(NamedTuple):
    """The right of one thread to analyse a photo until the lease ends, with what was read of the photo.
    `fresh`: a person asks for a new result. `attempts`: how often it has failed. `reads_left`: how often its
    text may be tried to be read.
    """

    photo: Photo
    fresh: bool
    attempts: int
    reads_left: int
    token: str
    probe: bool

    @property
    def held(self) -> peewee.Expression:
        """The condition of its row, while nobody has requested the photo again, deleted it or taken over its
        lease.
        """
        return (Analysis.photo == self.photo.id) & (Analysis.lease_token == self.token)


# -------------------------------------------------------------------------------------------------- the queue


def enqueue(photo: Photo, *, now: datetime) -> None:
    """Create a photo's analysis row, pending and due `now`, unless it has one."""
    row = {
        "photo": photo.id,
        "device_id": photo.device_id,
        "status": "pending",
        "created_at": now,
        "due_at": now,
    }
    Analysis.insert(**row).on_conflict_ignore().execute()


def claim_next(fingerprint: str, holder: Callable[[], str], *, now: datetime) -> Claim | None:
    """Claim the oldest due photo; None when there is none. While the circuit is open, the claim is a probe,
    and only possible once a probe is due.

    Two photos with identical bytes are never analysed at the same time: the second waits, and copies the
    result of the first. `fingerprint` identifies the configuration; `holder` returns the name of the worker's
    presence, and is called only when a photo is due.
    """
    with db.atomic():
        before, circuit = _change_circuit(lambda circuit: circuit.about(fingerprint))
        if circuit != before:
            _return_to_queue(("provider", "refused"), now=now)
        if not circuit.lets_through(now):
            return None
        due = _due(now, probe=circuit.open)
        if due is None:
            return None
        if circuit.open:
            _change_circuit(lambda circuit: circuit.probed(now + LEASE))  # one at a time
        token = f"{holder()}:{secrets.token_hex(8)}"
        lease = {"status": "processing", "lease_until": now + LEASE, "lease_token": token}
        Analysis.update(**lease).where(Analysis.id == due).execute()
        columns = (Analysis.fresh, Analysis.attempts, Analysis.reads_left, Photo)
        row = Analysis.select(*columns).join(Photo).where(Analysis.id == due).get()
        return Claim(row.photo, row.fresh, row.attempts, row.reads_left, token, circuit.open)


def recover(presences: Path, is_own: Callable[[str], bool], *, now: datetime) -> int:
    """Return photos whose worker died, or whose lease ended, to the queue; returns how many.

    `presences` is the folder of the workers' presences; `is_own` reports whether the caller itself holds a
    token. A row that is due later than any delay allows got its time from a clock that was ahead: it becomes
    due now.
    """
    _forget_clock_ahead(now)
    recovered = 0
    columns = (Analysis.id, Analysis.lease_token, Analysis.lease_until, Analysis.interruptions)
    for row in Analysis.select(*columns).where(Analysis.status == "processing"):
        token = row.lease_token or ""
        if is_own(token):
            continue  # a thread of the caller is analysing it, whatever the clock says
        leased = row.lease_until is not None and row.lease_until > now
        if leased and Presence.alive(presences, token.partition(":")[0]):
            continue
        with db.atomic():
            mine = (Analysis.id == row.id) & (Analysis.lease_token == row.lease_token)
            if row.interruptions + 1 >= MAX_INTERRUPTIONS:
                sentence = f"The analysis was interrupted {MAX_INTERRUPTIONS} times and was given up."
                end = {"status": "error", "fault": "row", "error_message": sentence, "completed_at": now}
                recovered += Analysis.update(**end).where(mine).execute()
            else:
                recovered += _requeue(mine, now=now, interruptions=row.interruptions + 1)
    return recovered


def seconds_until_due(*, now: datetime) -> float:
    """How many seconds a thread may sleep when nothing could be claimed; at most `IDLE_WAIT`."""
    circuit = _circuit()
    if circuit.open:
        due = circuit.probe_at
    else:
        earliest = db.execute_sql(_EARLIEST).fetchone()
        due = earliest and datetime.fromisoformat(earliest[0])
    if due is None:
        return IDLE_WAIT
    # A row that is due already was left for a reason that lasts: the day's tokens are used up, or identical
    # bytes are being analysed.
    return min(IDLE_WAIT, (due - now).total_seconds()) if due > now else BLOCKED_WAIT


def reprocess(photo_id: int, *, now: datetime) -> None:
    """Return a photo to the queue, whatever its state. A running analysis of it is discarded when it ends.

    The present result stays readable and searchable until the new one is saved. The request also allows a
    provider that refused one more try. Raises `NotFound`.
    """
    if not reprocess_all([photo_id], now=now):
        raise NotFound("Photo not found")


def reprocess_all(photo_ids: list[int], *, now: datetime) -> set[int]:
    """As `reprocess`, for many photos in one transaction; returns the ids of those that exist."""
    with db.atomic():
        fields = {"error_message": None, "attempts": 0, "interruptions": 0, "returns": 0, "fresh": True}
        fields["reads_left"] = READS  # its text is read again, too
        asked = Analysis.photo.in_(photo_ids)
        query = Analysis.select(Analysis.photo).where(asked)
        found = {photo_id for (photo_id,) in cast("Iterable[tuple[int]]", query.tuples())}
        if found:
            _requeue(asked, now=now, **fields)
            allow_probe(now=now)
    if found:
        arrival.send()
    return found


def allow_probe(*, now: datetime) -> None:
    """Allow a provider that refused one more try, because a person requested it or restarted the service."""
    _change_circuit(lambda circuit: circuit.with_probe_allowed(now))


def give_back(claim: Claim, *, now: datetime, pause: timedelta = timedelta(0)) -> None:
    """Return a claimed photo to the queue for `pause`, without counting an attempt."""
    with db.atomic():
        _requeue(claim.held, now=now + pause)
        end(claim, None, now=now)


def is_current(claim: Claim) -> bool:
    """Whether the claim still holds: nobody requested the photo again, deleted it or took over its lease."""
    return Analysis.select().where(claim.held).exists()


def fail(claim: Claim, problem: SnaploreError, *, now: datetime) -> None:
    """Record a failure: the photo becomes pending again after a delay, or its status becomes `error`."""
    attempts, asked_to_wait = claim.attempts + 1, timedelta(0)
    match problem:
        case ProviderRefused():
            fault, is_final, attempts = "refused", True, claim.attempts
        case ProviderDown():
            attempts = claim.attempts if claim.probe else attempts  # a probe costs its row nothing
            fault, is_final = "provider", attempts >= TRIES
            asked_to_wait = timedelta(seconds=problem.retry_after or 0)
        case _:
            fault, is_final = "row", attempts >= TRIES or isinstance(problem, Unreadable | UnsupportedImage)
    state: dict[str, Any] = {"attempts": attempts, "error_message": str(problem), **UNLEASED}
    if is_final:
        state |= {"status": "error", "fault": fault, "completed_at": now, "due_at": now + LONGEST_PAUSE}
    else:
        delay = max(asked_to_wait, RETRY_DELAYS[max(0, attempts - 1)])
        state |= {"status": "pending", "fault": "", "due_at": now + delay}
    Analysis.update(**state).where(claim.held).execute()


def end(claim: Claim, outcome: Findings | SnaploreError | None, *, now: datetime) -> None:
    """Update the circuit with the outcome of a claim; None means that the provider was not asked.

    When the provider answers, photos that failed by its fault return to the queue: all of them after an
    outage, otherwise those whose pause is over.
    """
    before, circuit = _change_circuit(lambda circuit: circuit.after(outcome, probe=claim.probe, now=now))
    if isinstance(outcome, Findings | AnswerUnusable):
        _return_to_queue(
            ("provider", "refused") if before.open else ("provider",), now=now, only_due=not before.open
        )
    if before.open == circuit.open:
        return
    if not circuit.open:
        log.info("the model's provider answers again")
    elif isinstance(outcome, ProviderRefused):
        log.warning("the model's provider refuses; the queue waits for another configuration: %s", outcome)
    else:
        log.warning("the model's provider fails; the queue waits: %s", outcome)


def _return_to_queue(faults: tuple[str, ...], *, now: datetime, only_due: bool = False) -> None:
    # Literal, as in the partial index `analyses_faulty`. Only rows with the status `error` have a fault.
    failed = peewee.SQL("fault <> ''") & Analysis.fault.in_(faults) & (Analysis.returns < MAX_RETURNS)
    if only_due:
        failed &= Analysis.due_at <= iso(now)
    _requeue(failed, now=now, attempts=0, returns=Analysis.returns + 1)


def _requeue(where: peewee.Expression, *, now: datetime, **fields: Any) -> int:
    state = {"status": "pending", "fault": "", "due_at": now, **UNLEASED, **fields}
    return cast(int, Analysis.update(**state).where(where).execute())


def _forget_clock_ahead(now: datetime) -> None:
    """Correct times that were computed while the clock was ahead, as on machines without a battery."""
    present, latest = iso(now), iso(now + LONGEST_DELAY)
    late = [row[0] for row in db.execute_sql(_DUE_TOO_LATE, (present, latest, latest)).fetchall()]
    if late:
        Analysis.update(due_at=now).where(Analysis.id.in_(late)).execute()
    _change_circuit(lambda circuit: circuit.without_waiting_past(now + LONGEST_DELAY, now=now))


# A row without attempts has no delay, so it is late as soon as it is due after now.
_DUE_TOO_LATE = """
    SELECT id FROM analyses INDEXED BY analyses_due
    WHERE status = 'pending' AND due_at > ? AND (attempts = 0 OR due_at > ?)
    UNION ALL SELECT id FROM analyses INDEXED BY analyses_faulty
    WHERE fault <> '' AND fault = 'provider' AND due_at > ? LIMIT 500
"""


def _due(now: datetime, *, probe: bool) -> int | None:
    """The id of the next analysis. A probe may also take one that the provider failed."""
    row: tuple[int] | None
    if probe:
        row = db.execute_sql(_NEXT_PENDING).fetchone() or db.execute_sql(_NEXT_FAILED).fetchone()
    else:
        row = db.execute_sql(_DUE_NOW, (iso(now),)).fetchone()
    return None if row is None else row[0]


# The partial indexes are named, and their conditions are literals: with a bound status SQLite would read and
# sort the whole queue.
_DUE = """
    SELECT analyses.id FROM {rows} JOIN photos ON photos.id = photo_id
    WHERE {condition} AND NOT EXISTS (
        SELECT 1 FROM photos AS twin JOIN analyses AS other ON other.photo_id = twin.id
        WHERE twin.sha256 = photos.sha256 AND other.status = 'processing'
    )
    ORDER BY {order} LIMIT 1
"""
_DUE_NOW = _DUE.format(
    rows="analyses INDEXED BY analyses_due",
    condition="status = 'pending' AND due_at <= ?",
    order="due_at, photo_id",
)
_NEXT_PENDING = _DUE.format(
    rows="analyses INDEXED BY analyses_due", condition="status = 'pending'", order="due_at, photo_id"
)
_NEXT_FAILED = _DUE.format(
    rows="analyses INDEXED BY analyses_faulty",
    condition="fault <> '' AND fault = 'provider'",
    order="photo_id",
)
_EARLIEST = (
    "SELECT due_at FROM analyses INDEXED BY analyses_due WHERE status = 'pending' ORDER BY due_at LIMIT 1"
)


def _circuit() -> Circuit:
    return msgspec.convert(models.stored_value("analysis.circuit", {}), Circuit)


def _change_circuit(change: Callable[[Circuit], Circuit]) -> tuple[Circuit, Circuit]:
    """The circuit before and after `change`. Saves it when it differs; nothing else writes it."""
    before = _circuit()
    after = change(before)
    if after != before:
        models.store_value("analysis.circuit", after)
    return before, after
