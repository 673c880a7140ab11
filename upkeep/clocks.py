"""Whether a job that deletes by age can trust the clock.

A Pi has no battery-backed clock. If its clock starts years ahead, such a job would delete all data, or let
all memories fade. So a run that comes too long after the one before does nothing. By the next one NTP has
corrected the clock, or the machine really was off for that long.

A clock that is far ahead of everything that this library has seen is doubted longer: only a second run, at
least a day later, does the work. What was uploaded or written within the last day proves nothing, because the
same clock has dated it.
"""

from datetime import UTC, datetime, timedelta

import peewee

import database
import models
from clock import from_epoch_ms, iso
from models import Photo

LONGEST_ABSENCE = timedelta(days=7)
FAR = timedelta(days=45)
AGAIN = timedelta(days=1)


def doubt(job: str, *, now: datetime) -> str:
    """Why this run of a job is to do nothing; empty when the clock can be trusted. Opens its own scope."""
    with database.scope():
        last, ahead = _moment(job, "ran_at"), _ahead(job, now)
        _note(job, "ran_at", now)
        if ahead is None:
            _note(job, "ahead_at", None)
            if last is not None and now - last > LONGEST_ABSENCE:
                return (
                    f"the last run was more than {LONGEST_ABSENCE.days} days ago; if the clock is right, the "
                    "next run does the work"
                )
            return ""
        first = _moment(job, "ahead_at")
        if first is not None and AGAIN <= now - first <= FAR:
            return ""
        if first is None or not timedelta(0) <= now - first <= FAR:
            _note(job, "ahead_at", now)
        return (
            f"the clock is {ahead.days} days ahead of everything stored; if it is right, a run that comes at "
            "least a day after the first such run does the work"
        )


def note_done(job: str, *, now: datetime) -> None:
    """Remember that this job has done its work. Opens its own scope."""
    with database.scope():
        _note(job, "done_at", now)


def _ahead(job: str, now: datetime) -> timedelta | None:
    """How far the clock is ahead of the latest known change, or None when that is not far."""
    earlier = now - AGAIN
    uploaded = Photo.select(peewee.fn.MAX(Photo.created_at)).where(Photo.created_at < earlier).scalar()
    known = [_moment(job, "done_at"), uploaded, *_changes(earlier)]
    newest = max((moment for moment in known if moment is not None), default=now)
    return now - newest if now - newest > FAR else None


def _changes(before: datetime) -> list[datetime]:
    """When files came to or left the folders of pictures, as far as that was before this moment."""
    latest = before.replace(tzinfo=UTC).timestamp()
    times = [folder.stat().st_mtime for folder in database.store().photos.iterdir()]
    return [from_epoch_ms(int(time * 1_000)) for time in times if 0 <= time < latest]


def _moment(job: str, what: str) -> datetime | None:
    stored = models.stored_value(f"jobs.{job}.{what}")
    return None if stored is None else datetime.fromisoformat(stored)


def _note(job: str, what: str, moment: datetime | None) -> None:
    models.store_value(f"jobs.{job}.{what}", iso(moment))
