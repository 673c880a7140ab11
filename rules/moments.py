"""Reads days and times as one screen writes them, for records: `2026-12-04`, `2026-12-04T07:10`.

What is written in the text is read by `rules/days.py`. A missing year is the one that another day of the
screen has, where the screen is an old one, or else the nearest that fits when the screenshot was taken. Where
neither is known, a day without a year is no day.
"""

import re
from datetime import date, datetime, timedelta
from typing import NamedTuple

from rules import days, wordlists
from rules.days import Clock, Day, When

MAX_TEXT = 20_000  # characters of a screen that are looked through for its years
_HOURS = re.compile(wordlists.any_of(wordlists.lines(wordlists.table("days")["hours"])), re.IGNORECASE)
_YEAR = re.compile(r"(?<![\d.,/-])(?<!©)(?<!© )(20[0-4]\d)(?![\d.,:]?\d)")


class Moment(NamedTuple):
    """A day, a time of day, or both, in a text, and the end if it is a range."""

    start: int
    end: int
    day: date | None
    clock: str  # "07:10", or ""
    last: date | None
    until: str
    exact: bool = True  # a day of a month, not "Friday" or "tomorrow"

    @property
    def begins(self) -> str:
        """The beginning in normal form, "" where its day is not known."""
        return written(self.day, self.clock) if self.day else ""

    @property
    def ends(self) -> str:
        """The end in normal form, "" where there is none."""
        if self.last is not None:
            return written(self.last, self.until)
        if not self.until or self.day is None:
            return ""
        return written(self.day + timedelta(days=self.until < self.clock), self.until)


class Moments:
    """The days and times of one screen, whose text is `text`, taken at `taken` if that is known. `day_first`
    is whether its language writes the day before the month; None where that is not known.
    """

    def __init__(self, text: str, taken: datetime | None, *, day_first: bool | None = None):
        folded = days.folded(text[:MAX_TEXT])
        self._taken = taken
        shown = days.day_first(folded)
        self._order = day_first if shown is None else shown
        self._years = {int(year) for year in _YEAR.findall(folded)}

    def all(self, text: str) -> list[Moment]:
        """The days and times in a text."""
        text = days.folded(text[:400])
        if _HOURS.search(text) is not None:
            return []
        return [self._moment(when) for when in days.whens(text) if not when.repeats]

    def day(self, text: str) -> Moment | None:
        """The first day in a text, with its time: one of a month before a weekday."""
        found = [one for one in self.all(text) if one.day is not None]
        return min(found, key=lambda one: not one.exact, default=None)

    def clock(self, text: str) -> Moment | None:
        """The first time of day in a text."""
        return next((one for one in self.all(text) if one.clock), None)

    def alone(self, text: str) -> list[Moment]:
        """The days and times of a text that is little else; none otherwise."""
        found = self.all(text)
        beside = _said(text) - sum(_said(text[one.start : one.end]) for one in found)
        return found if beside <= 8 else []

    def _moment(self, when: When) -> Moment:
        first = self.resolved(when.first) if when.first else None
        last = self.resolved(when.last) if when.last and first else None
        if first and last and last < first:
            last = last.replace(year=last.year + 1) if (last.month, last.day) != (2, 29) else None
        tonight = when.first is not None and when.first.evening
        return Moment(
            when.start,
            when.end,
            first,
            _clock(when.clock, tonight),
            last,
            _clock(when.until, tonight, when.clock),
            when.first is None or when.first.day is not None,
        )

    def resolved(self, day: Day) -> date | None:
        """The date of a day as this screen writes it; None where it is not certain."""
        order = self._order
        if day.either and day.year is not None and order is None:
            return None
        year = next(iter(self._years)) if len(self._years) == 1 else None
        if self._taken is None:
            if day.year is None and (day.month is None or year is None):
                return None
            return days.resolved(day._replace(year=day.year or year), datetime(year or 2000, 1, 1), order)
        if year is not None and year < self._taken.year and day.year is None and day.month is not None:
            there = days.resolved(day._replace(year=year), self._taken, order)
            if there is not None and not days.contradicts(day, there):
                return there
        return days.resolved(day, self._taken, order)


def written(day: date, clock: str) -> str:
    """A day and a time of day, if any, in normal form."""
    return f"{day}T{clock}" if clock else f"{day}"


def _said(text: str) -> int:
    """The letters and digits of a text, Chinese ones counted double."""
    return sum(1 + (letter > "\u2e80") for letter in text if letter.isalnum())


def _clock(clock: Clock | None, tonight: bool, after: Clock | None = None) -> str:
    return f"{days.clock(clock, tonight=tonight, after=after):%H:%M}" if clock else ""
