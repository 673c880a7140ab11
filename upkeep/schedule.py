"""The scheduled jobs without cron, for a container: one process that starts each job of the file `crontab` at
its time, as a process of its own.
"""

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CRONTAB = ROOT / "crontab"
LONGEST_GAP = timedelta(days=1)  # of time that is made up for after a sleep of the machine
PATIENCE = 20.0  # seconds for a job that is asked to end; what it had begun, its next run goes on with
_LINE = re.compile(r"(\d{1,2}) ([\d,-]{1,40}|\*) \* \* \* .{0,200}? jobs ([a-z-]{1,40})\b")


class Entry(NamedTuple):
    """A line of the crontab: `job` runs at `minute` of each of `hours`."""

    minute: int
    hours: frozenset[int]
    job: str

    def is_due(self, moment: datetime) -> bool:
        return moment.minute == self.minute and moment.hour in self.hours


def entries(crontab: str) -> list[Entry]:
    """The jobs of a crontab, in its order. Raises `ValueError` for a line of another form than Snaplore's."""
    found = []
    for line in crontab.splitlines():
        text = " ".join(line.split())
        if re.match(r"[0-9*]", text):
            match = _LINE.match(text)
            if match is None:
                raise ValueError(f"This line of the crontab cannot be read: {text[:80]}")
            minute, hours, job = match.groups()
            found.append(Entry(int(minute), _hours(hours), job))
    return found


def _hours(field: str) -> frozenset[int]:
    """The hours of a crontab's field: *, 3, or 8-11,18-23."""
    if field == "*":
        return frozenset(range(24))
    hours: set[int] = set()
    for part in field.split(","):
        first, _, last = part.partition("-")
        hours.update(range(int(first), int(last or first) + 1))
    return frozenset(hours)


def due(scheduled: list[Entry], after: datetime, until: datetime) -> list[str]:
    """The jobs that are due after one moment and until another, each once, in the order of their times. Of a
    longer gap than a day, only the last day counts. A clock that was set back makes nothing due.
    """
    moment = max(after, until - LONGEST_GAP).replace(second=0, microsecond=0)
    found: dict[str, None] = {}
    while (moment := moment + timedelta(minutes=1)) <= until:
        found.update((entry.job, None) for entry in scheduled if entry.is_due(moment))
    return list(found)


def keep(stopping: threading.Event, *, failed: Callable[[str, int], None]) -> None:
    """Run every job once, because some may have been missed, and then each at its local time, one after the
    other, until `stopping` is set. `failed` is told the name and exit code of a job that fails; its next time
    tries it again.
    """
    scheduled = entries(CRONTAB.read_text(encoding="utf-8"))
    waiting = list(dict.fromkeys(entry.job for entry in scheduled))
    looked = datetime.now()
    while not stopping.is_set():
        for job in waiting:
            code = _run(job, stopping)
            if code and not stopping.is_set():
                failed(job, code)
        stopping.wait(60 - time.time() % 60)
        now = datetime.now()
        waiting = due(scheduled, looked, now)
        looked = now


def _run(job: str, stopping: threading.Event) -> int:
    """Run a job as a process and return its exit code. It is asked to end when `stopping` is set."""
    process = subprocess.Popen([sys.executable, str(ROOT / "snaplore"), "jobs", job], cwd=ROOT)
    while process.poll() is None:
        if stopping.wait(0.2):
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return process.returncode
