"""The circuit breaker of the analysis queue: whether the model's provider may be called now.

A `Circuit` is a plain value, and each event returns the next one; `claims.py` saves it in the database, for
all threads and workers. It is closed while the provider answers. Three failures in a row open it: the queue
waits, and one photo at a time is tried as a *probe*, after a pause that doubles with each probe that fails. A
refusal (401, 403, 404) opens it without a time for a probe, since only another configuration, or a person who
retries, can help.
"""

from datetime import datetime, timedelta

import msgspec

from engines.findings import Findings
from errors import AnswerUnusable, ProviderDown, ProviderRefused, SnaploreError

FAILURES = 3  # in a row that open it
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=10)


class Circuit(msgspec.Struct, frozen=True):
    """The state of the breaker."""

    fingerprint: str = ""  # of the configuration that it belongs to
    failures: int = 0  # of the provider, in a row
    open: bool = False
    probe_at: datetime | None = None  # while open: when the next probe is due; None: only on request
    pause: float = 0.0  # seconds

    def about(self, fingerprint: str) -> "Circuit":
        """This circuit, or a closed one for another configuration, whose provider may answer."""
        return self if self.fingerprint == fingerprint else Circuit(fingerprint=fingerprint)

    def lets_through(self, now: datetime) -> bool:
        """Whether a photo may be claimed; while the circuit is open that photo is a probe."""
        return not self.open or (self.probe_at is not None and self.probe_at <= now)

    def probed(self, next_at: datetime) -> "Circuit":
        """A probe has started. If it never ends, the next one is due at `next_at`, when its lease expires."""
        return msgspec.structs.replace(self, probe_at=next_at) if self.open else self

    def with_probe_allowed(self, now: datetime) -> "Circuit":
        """If the provider refused, allow one probe."""
        refused = self.open and self.probe_at is None
        return msgspec.structs.replace(self, probe_at=now) if refused else self

    def without_waiting_past(self, latest: datetime, *, now: datetime) -> "Circuit":
        """A probe due after `latest` was scheduled by a clock that ran ahead; it is due `now`."""
        late = self.open and self.probe_at is not None and self.probe_at > latest
        return msgspec.structs.replace(self, probe_at=now) if late else self

    def after(self, outcome: Findings | SnaploreError | None, *, probe: bool, now: datetime) -> "Circuit":
        """The circuit after an analysis, which may have been a `probe`; None: the provider was not called."""
        match outcome:
            case Findings() | AnswerUnusable():  # the provider answered, whatever the answer is worth
                return Circuit(fingerprint=self.fingerprint)
            case ProviderDown():
                return self._after_failure(timedelta(seconds=outcome.retry_after or 0), probe=probe, now=now)
            case ProviderRefused():
                return Circuit(fingerprint=self.fingerprint, failures=self.failures + 1, open=True)
            case _:  # nothing is known about the provider: the next photo may be the probe
                return self.probed(now) if probe else self

    def _after_failure(self, retry_after: timedelta, *, probe: bool, now: datetime) -> "Circuit":
        failures, is_open, pause = self.failures + 1, self.open, timedelta(seconds=self.pause)
        if probe:
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)  # after a refusal there was no pause yet
        elif not is_open and failures >= FAILURES:
            is_open, pause = True, FIRST_PAUSE
        # Open without a pause: a refusal opened it in the meantime, and stays in force.
        probe_at = now + max(retry_after, pause) if is_open and pause else self.probe_at
        return Circuit(self.fingerprint, failures, is_open, probe_at, pause.total_seconds())
