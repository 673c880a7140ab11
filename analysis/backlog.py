"""What a worker does while nothing is due: photos of earlier versions are marked, compared, read, judged and
looked through for dates by the present rules, the newest first.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, cast

import msgspec

import agenda
import database
import gate
import lexicon
import llm
import models
import photos
import readings
import records
from analysis import results
from analysis.text_reader import TextReader
from curation import stacks
from database import ROOM, db
from errors import Unavailable, Unreadable
from locks import named_lock
from models import Analysis, Photo
from settings import Settings

log = logging.getLogger(__name__)

PROGRESS_EVERY = 100  # photos read or judged in the background between two lines in the log
JUDGED_AT_ONCE = 40  # photos that are looked at in a step, with up to 5 ms each


class Judged(msgspec.Struct):
    """How far photos were judged again: all from `below` on (0: all), by the embedded model's `version`."""

    version: str = ""
    below: int | None = None


class Backlog:
    """The steps, each for one photo or a few. A step returns False when there is nothing for it to do."""

    def __init__(self, settings: Settings, texts: TextReader, clock: Callable[[], datetime]):
        self._settings, self._texts, self._clock = settings, texts, clock
        self._older = 0  # photos that reading in the background has come to
        self._rejudged = 0  # photos, since this worker began
        self._all_looked_at = False  # by this version of the grammar of dates

    def step(self) -> bool:
        """Do the first step for which there is something to do; False when there is none."""
        steps = (self.mark_older, self.place_next, self.read_older, self.judge_older, self.look_for_dates)
        return any(step() for step in steps)

    def mark_older(self) -> bool:
        """Mark what is sensitive on some photos that earlier rules judged; False when there are none. One
        thread of all processes does it: two, one after the other, would leave no room for others that write.
        """
        with database.scope():
            if not gate.is_behind():  # before the lock: an idle service writes nothing
                return False
        return _alone("mark-older", self._mark_newest)

    @staticmethod
    def _mark_newest() -> bool:
        with database.scope(), db.atomic():
            judged = gate.mark_older()
            lexicon.redact_anew(judged)
            records.file(judged)
        if judged:
            time.sleep(ROOM)
        return bool(judged)

    def read_older(self) -> bool:
        """Read the newest photo that has not been read; False when there is none, or reading is not possible
        now. Meant for when `work` has nothing to do.

        One thread of all processes reads at a time. A photo that fails several times is not tried again.
        """
        if not self._settings.read_locally or self._texts.rests:
            return False
        with database.scope():
            if readings.next_unread() is None:  # before the lock: an idle service writes nothing
                if self._older:
                    log.info("every photo is read")
                    self._older = 0
                return False
        return _alone("read-older", self._read_newest)

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
        with database.scope():
            if _judged().below == 0:  # before the lock: an idle service writes nothing
                return False
        return _alone("judge-older", self._judge_newest)

    def _judge_newest(self) -> bool:
        with database.scope():
            done = _judged()
            below = Analysis.select(Analysis.photo).order_by(Analysis.photo.desc()).limit(JUDGED_AT_ONCE)
            if done.below is not None:
                below = below.where(Analysis.photo < done.below)
            ids = [row.photo_id for row in below]
            if not ids:
                models.store_value("analysis.judged", Judged(done.version, 0))  # what comes back raises it
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
            models.store_value("analysis.judged", Judged(done.version, min(ids)))
        before = self._rejudged // PROGRESS_EVERY
        self._rejudged += len(judged)
        if self._rejudged // PROGRESS_EVERY > before:
            log.info("%d photos judged again by the present rules", self._rejudged)
        return True

    def _read_newest(self) -> bool:
        with database.scope(), db.atomic():
            photo_id = readings.next_unread()
            if photo_id is None:
                return False
            anew = Analysis.select(Analysis.fresh).where(Analysis.photo == photo_id).scalar()
            left = readings.count_unread() if self._older % PROGRESS_EVERY == 0 else 0
            self._older += 1
            try:
                photo = photos.get(photo_id)
                picture = photos.open_original(photo)
            except (Unavailable, Unreadable):  # what is in the bucket is not fetched for this
                readings.end_tries(photo_id)
                return True
        if left:
            log.info("%d photos are still to be read in the background", left)
        with picture:
            read = self._texts.read(photo, picture, anew=anew, patience=0)
        if read is None:
            return not self._texts.rests
        with database.scope(), db.atomic():
            row = Analysis.get_or_none(Analysis.photo == photo_id)
            if row is not None:  # not deleted meanwhile
                results.keep_read(row, read, now=self._clock())
        return True


def _judged() -> Judged:
    """How far photos were judged again by the present version of the embedded model."""
    done = msgspec.convert(models.stored_value("analysis.judged", {}), Judged)
    version = llm.judged_by("")  # without the reader: the rules alone
    return done if done.version == version else Judged(version)


def _alone(name: str, step: Callable[[], bool]) -> bool:
    """Whether a step did something, which one thread of all processes does at a time."""
    try:
        with named_lock(database.store().folder / "jobs", name, 0, busy="Another thread does this."):
            return step()
    except Unavailable:
        return False


def judge_all_again() -> None:
    """Let the next start judge again what the embedded model has judged. Opens its own scope."""
    with database.scope():
        models.store_value("analysis.judged", {})
