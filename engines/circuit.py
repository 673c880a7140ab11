"""The circuit breaker of the analysis queue: whether a model's provider may be asked, after how it answered.

A `Circuit` is a plain value, and each event makes the next one; whoever keeps it saves it (`claims.py`, in
the database, for all threads and workers). It is closed while the provider answers. Three failures in a row
open it: the queue waits, and one photo at a time goes as a *probe*, after a pause that doubles with each
probe that fails. A refusal (401, 403, 404) opens it without a time for a probe, since only another
configuration, or a person who asks again, can help.
"""

from datetime import datetime, timedelta

import msgspec

from engines.findings import Findings
from errors import AnswerUnusable, ProviderDown, ProviderRefused, SnaploreError

FAILURES = 3  # in a row, which open it
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(minutes=10)


class Circuit(msgspec.Struct, frozen=True):
    """The state of the breaker."""

    fingerprint: str = ""  # of the configuration that it is about
    failures: int = 0  # of the provider, in a row
    open: bool = False
    probe_at: datetime | None = None  # while open: of the next probe; None: not until asked for
    pause: float = 0.0  # seconds

    def about(self, fingerprint: str) -> "Circuit":
        """This circuit, or a closed one when the configuration is another: its provider may answer."""
        return self if self.fingerprint == fingerprint else Circuit(fingerprint=fingerprint)

    def lets_through(self, now: datetime) -> bool:
        """Whether a photo may be claimed; while the circuit is open that photo is a probe."""
        return not self.open or (self.probe_at is not None and self.probe_at <= now)

    def probed(self, next_at: datetime) -> "Circuit":
        """A probe has gone. If it never ends, the next one goes at `next_at`, when its lease has ended."""
        return msgspec.structs.replace(self, probe_at=next_at) if self.open else self

    def with_probe_allowed(self, now: datetime) -> "Circuit":
        """A provider that refused may be asked once more."""
        refused = self.open and self.probe_at is None
        return msgspec.structs.replace(self, probe_at=now) if refused else self

    def without_waiting_past(self, latest: datetime, *, now: datetime) -> "Circuit":
        """A probe that waits beyond `latest` got its time from a clock that was ahead; it may go `now`."""
        late = self.open and self.probe_at is not None and self.probe_at > latest
        return msgspec.structs.replace(self, probe_at=now) if late else self

    def after(self, outcome: Findings | SnaploreError | None, *, probe: bool, now: datetime) -> "Circuit":
        """The circuit after an analysis, which may have been a `probe`; None: the provider was not asked."""
        match outcome:
            case Findings() | AnswerUnusable():  # the provider answered, whatever the answer is worth
                return Circuit(fingerprint=self.fingerprint)
            case ProviderDown():
                return self._after_failure(timedelta(seconds=outcome.retry_after or 0), probe=probe, now=now)
            case ProviderRefused():
                return Circuit(fingerprint=self.fingerprint, failures=self.failures + 1, open=True)
            case _:  # it says nothing about the provider: a probe leaves its place to the next one
                return self.probed(now) if probe else self

    def _after_failure(self, asked_to_wait: timedelta, *, probe: bool, now: datetime) -> "Circuit":
        failures, is_open, pause = self.failures + 1, self.open, timedelta(seconds=self.pause)
        if probe:
            pause = min(max(pause * 2, FIRST_PAUSE), LONGEST_PAUSE)  # after a refusal there was no pause yet
        elif not is_open and failures >= FAILURES:
            is_open, pause = True, FIRST_PAUSE
        # Open without a pause is a refusal that came in between, which holds.
        probe_at = now + max(asked_to_wait, pause) if is_open and pause else self.probe_at
        return Circuit(self.fingerprint, failures, is_open, probe_at, pause.total_seconds())
