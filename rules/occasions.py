"""Finds what happens on a day that a screenshot names: a flight, a bill, a parcel to pick up, an appointment.

A day counts only with a cue, a word like "due" or "departs" near it: on its line, on the label at its left or
above it, or on the screen of a ticket. Clocks, dates of posts and lengths of videos are on every second
screen. Other words show that a day is past or nobody's business ("posted", "born", "paid"); the nearest word
decides. Nothing is understood.

More than 550 lines, because a date counts as an event by rules that weigh against each other.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from engines.lines import Line, Page
from engines.records import Record
from rules import cues, days, kinds, recorder
from rules.cues import Cue
from rules.days import When
from rules.layout import Block, Layout, is_chinese, joined, letters, plain, weight
from rules.names import is_generic
from rules.planned import (
    FAR,
    LASTING,
    LONG_AGO,
    MAX_QUOTE,
    MAX_TITLE,
    Occasion,
    lines_of_days,
    planned,
)
from rules.subjects import subject
from rules.timetables import timetable
from rules.view import View
from rules.wordlists import any_in
from text import one_line, shortened

MOST = 20
MAX_BLOCK = 1_200  # characters of a paragraph that are read
MAX_TEXT = 20_000  # characters of a page that are looked through for its context
MAX_LABEL = 40  # characters
# Days and times of a paragraph and of a page; one with more is a calendar or a log.
MOST_IN_BLOCK, MOST_IN_PAGE = 12, 100
ENDS = frozenset("?!。？！吗吧了…")  # of a sentence, which is no label
MOST_ENTRIES = 3  # paragraphs with days on a screen about one thing
MAX_SUBJECT = 60  # characters
ENOUGH_WORDS = 12  # letters that say what it is, Chinese ones counted double
PROSE = 30  # letters of a sentence, Chinese ones counted double
LIGHT = 14  # letters beside a value, Chinese ones counted double
# Documents are valid for decades.
LONG_AGO_VALID, FAR_VALID = timedelta(days=20 * 366), timedelta(days=30 * 366)
# Without a year, a day further ahead may be one of this year's that is past.
SOON = timedelta(days=100)
# How far from a day its cue may be, in letters, Chinese ones counted double.
BEFORE, BEFORE_WEAK, AFTER = 70, 46, 26
WEAKER = 36  # twice the letters by which a weak cue must be nearer than another one
PLANNED = frozenset({"appointment", "departure", "pickup"})  # kinds that a title tells


# Kinds of screens whose days are of the world or past, and no plans.
_ARTICLES = frozenset({"article", "post", "accounts", "weather"})

# Deliveries are events that need no time of day.
_KINDS = {"delivery": "event"}


class _Found(NamedTuple):
    when: When
    cue: Cue
    block: int
    label: str
    distance: int


def occasions(page: Page, taken: datetime, records: Sequence[Record] | None = None) -> list[Occasion]:
    """The occasions on a page, at most `MOST`, in order of `starts_at`. `taken` is when the screenshot was
    taken, in local time without a zone. `records` are those of the page; None makes them again.
    """
    return Screen(page, taken, records).occasions


def _squeezed(text: str) -> str:
    return "".join(days.folded(text).casefold().split())


class Screen:
    """The paragraphs of a page, and the days in them. Its arguments are those of `occasions`."""

    def __init__(self, page: Page, taken: datetime, records: Sequence[Record] | None = None):
        self._taken = taken
        self._layout = Layout(page)
        view = View(page, self._layout, kinds.by_rules(kinds.evidence(self._layout)).kind, "", taken)
        self._view = view
        records = recorder.records(view) if records is None else records
        corrected = [record for record in records if record.source == "person"]
        self._planned = self._entries(records, is_corrected=bool(corrected))
        self._corrected = {line for record in corrected for line in lines_of_days(record)}
        self._recorded = {line for record in records for field in record.fields for line in field.lines}
        self._is_article = view.kind in _ARTICLES
        self._blocks = self._layout.blocks
        self._texts = [
            days.folded(joined(line.text for line in block.lines))[:MAX_BLOCK] for block in self._blocks
        ]
        self._whens: list[list[When]] = []
        left = MOST_IN_PAGE
        for text in self._texts:
            self._whens.append(days.whens(text)[: min(left, MOST_IN_BLOCK)] if left else [])
            left -= len(self._whens[-1])
        whole = "\n".join(self._texts)[:MAX_TEXT]
        self._order = days.day_first(whole)
        self._is_travel = cues.TRAVEL.search(whole) is not None
        # The column of dates in a list of messages, files or payments.
        self._is_list = sum(len(row.lines) > 1 and _is_dated(row.last.text) for row in self._layout.rows) >= 4
        self._known: dict[int, tuple[Cue | None, str]] = {}  # the labels
        self._places = _places(page)
        self._rows = {id(line): row.lines for row in self._layout.rows for line in row.lines}
        self._of_line = {
            id(line): number for number, block in enumerate(self._blocks) for line in block.lines
        }

    def _entries(self, records: Sequence[Record], *, is_corrected: bool) -> list[Occasion]:
        """The entries of the screen's records, or the rows of a table where these are no fields of them."""
        own, table = planned(records, self._view), timetable(self._view)
        fields = {line for record in records for field in record.fields for line in field.lines}
        is_own = bool(own) and all(entry.line in fields for entry in table)
        return own if is_corrected or is_own else table or own

    @functools.cached_property
    def occasions(self) -> list[Occasion]:
        """See `occasions`."""
        found = [one for number in range(len(self._blocks)) for one in self._in_block(number)]
        made = [(one, made) for one in found if (made := self._made(one)) is not None]
        made.sort(key=lambda pair: (pair[1].starts_at[:10], pair[0].cue.weak, pair[0].distance))
        kept: list[Occasion] = []
        for reason, one in made:
            # The date of a ticket, beside its times.
            timed = any(not other.all_day and other.starts_at[:10] == one.starts_at for other in kept)
            if not (reason.cue.weak and timed) and not any(_same(one, other) for other in kept):
                kept = [other for other in kept if not _same(other, one)] + [one]
        if self._planned:
            days_named = {entry.starts_at[:10] for entry in self._planned}
            kept = [
                one
                for one in kept
                if one.line not in self._recorded
                or one.starts_at[:10] not in days_named
                or any(_is_known(one, entry) for entry in self._planned)
            ]
        kept = [one for one in kept if one.line not in self._corrected]
        for entry in self._planned:
            same = [one for one in kept if _is_known(one, entry)]
            entry = _completed(entry, same)
            if not entry.title:
                name = subject(self._view)
                entry = replace(entry, title=name.text if name else entry.quote)
            kept = [entry, *(one for one in kept if one not in same)]
        return sorted(kept, key=lambda one: (one.starts_at, one.line))[:MOST]

    def standing(self, said: str, label: str = "") -> Occasion | None:
        """The occasion whose line contains `said`, a date as a remote model gives it; None where no line
        does. `label` is what the model calls the date, such as "due date": a cue in it is as good as one on
        the screen.
        """
        said = days.folded(one_line(said[:MAX_QUOTE]))
        squeezed = _squeezed(said)
        meant = next((when.first for when in days.whens(said) if when.first), None)
        if meant is None:
            return None
        day = self.day(meant)
        for one in (*self.occasions, *self.labelled(label[:MAX_LABEL])):
            if squeezed in _squeezed(one.quote) and (day is None or one.starts_at.startswith(f"{day}")):
                return one
        return None

    def day(self, written: days.Day) -> date | None:
        """The date of a day as this screen writes it."""
        return days.resolved(written, self._taken, self._order)

    def labelled(self, label: str) -> list[Occasion]:
        """The days of the page as what `label` says they are; none where it has no cue."""
        cue = cues.of_label(days.folded(label), self._is_travel)
        if cue is None or not cue.kind:
            return []
        found = [
            _Found(when, cue, number, label, 0)
            for number, whens in enumerate(self._whens)
            for when in whens
            if when.first is not None and not when.repeats
        ]
        return [made for one in found if (made := self._made(one)) is not None][:MOST]

    # ----------------------------------------------------------------------------------------------- finding

    def _in_block(self, number: int) -> Iterator[_Found]:
        text, whens = self._texts[number], self._whens[number]
        if not whens:
            return
        near = list(cues.cues_in(text, self._is_travel))
        for when in _combined(text, whens, near):
            if when.repeats or _cancelled(text, when):
                continue
            cue, distance = _nearest(text, when, near, whens)
            if cue is not None:
                cue = cue._replace(kind=_kind(cue, text, when, near))
            label = ""
            if cue is None and _is_value(text, whens):
                cue, label = self._label(number)
                distance = 2
            if cue is None:
                cue, distance = self._to_come(number, when, near), 60
            if cue is None or not cue.kind:
                continue
            if when.first is None:
                first = self._only_day() if label and not cue.weak else None
                if first is None:
                    continue
                when, distance = replace(when, first=first), distance + 20
            yield _Found(when, cue, number, label, distance)

    def _only_day(self) -> days.Day | None:
        """The day of a labelled time: the only day to come that is a value of the screen."""
        found: dict[date, days.Day] = {}
        for text, whens in zip(self._texts, self._whens, strict=True):
            for one in whens if _is_value(text, whens) else ():
                if one.first is not None and (day := self.day(one.first)) and day >= self._taken.date():
                    found.setdefault(day, one.first)
        return next(iter(found.values())) if len(found) == 1 else None

    def _label(self, number: int) -> tuple[Cue | None, str]:
        """The cue of the label at the left of a value or above it, and the label."""
        if number not in self._known:
            self._known[number] = self._cue_of_label(number)
        return self._known[number]

    def _cue_of_label(self, number: int) -> tuple[Cue | None, str]:
        for label, is_beside in self._labels(number):
            text = days.folded(label.text[:MAX_LABEL])
            if days.whens(text) or (not is_beside and text.rstrip()[-1:] in ENDS):
                return None, ""
            cue = cues.of_label(text, self._is_travel)
            if cue is None:
                if is_beside and weight(text) >= 2:
                    return None, ""  # the value of something else
                continue
            # A name in a list with a word in it is no label: its date is the entry's, and mostly past.
            rest = weight(text[: cue.start]) + weight(text[cue.end :])
            weak = cue.weak or rest > LIGHT // 2
            return cue._replace(weak=weak), label.text
        return None, ""

    def _labels(self, number: int) -> Iterator[tuple[Line, bool]]:
        line = self._blocks[number].lines[0]
        beside = [other for other in self._rows.get(id(line), ()) if other.right <= line.left + 2]
        if beside:
            yield beside[-1], True
        above = [
            block.lines[-1]
            for block in self._blocks
            if block.bottom <= line.top + 0.3 * line.height
            and line.top - block.bottom < 1.8 * max(line.height, 1)
            and (_is_below(line, block.lines[-1]))
        ]
        if above and not beside:
            yield max(above, key=lambda other: other.bottom), False

    def _to_come(self, number: int, when: When, near: Sequence[Cue]) -> Cue | None:
        """What a day is for that has words beside it and no cue. Posts, lists and receipts name days that are
        past, so a day that certainly is to come is somebody's plan.
        """
        day, text = when.first, self._texts[number]
        if day is None or any(not cue.kind for cue in near) or day.vague or self._is_article:
            return None
        if weight(text) > PROSE and when.clock is None and cues.YOURS.search(text) is None:
            return None  # what the news say
        words = _words_beside(text, self._whens[number])
        if _is_value(text, self._whens[number]) and words < 4:
            label, is_beside = next(self._labels(number), (None, False))
            text = days.folded(label.text[:MAX_LABEL]) if label is not None else ""
            is_named = is_beside and (when.clock is not None or day.year is not None)
            if (
                not (is_named or cues.DATED.search(text))
                or weight(text) < 4
                or days.whens(text)
                or self._is_list
            ):
                return None
            if any(not cue.kind for cue in cues.cues_in(text, self._is_travel)):
                return None
        elif words < 4 or "°" in text:
            return None
        before = cues.UNTIL.search(text[max(0, when.start - 20) : when.start])
        if day.offset == 0 and not day.evening:
            return None  # "Today 11:20" is the time of a message
        is_relative = day.is_weekday or day.offset is not None
        if is_relative and before is None and (when.clock is None or (words < 8 and day.is_weekday)):
            return None
        first = self.day(day)
        if first is None:
            return None
        # Lists and posts have no ranges of days.
        is_near = first - self._taken.date() <= SOON
        if day.year is None and not is_near and (when.last is None or when.clock is not None):
            return None
        kind = "event" if before is None else "expiry" if cues.LASTS.search(text) else "deadline"
        return Cue(when.start, when.start, kind, True)

    # ------------------------------------------------------------------------------------------------ making

    def _made(self, found: _Found) -> Occasion | None:
        when, cue = found.when, found.cue
        if when.first is None:
            return None
        past = cue.kind == "expiry" and cues.EXPIRED.search(self._texts[found.block]) is not None
        first = days.resolved(when.first, self._taken, self._order, past=past)
        last = self.day(when.last) if when.last else None
        if first is None or (when.last and last is None):
            return None
        if last is not None and last < first:
            last = next((one for one in _years(last, first)), None)
        text = self._texts[found.block]
        evening = cues.EVENING.search(text[max(0, when.start - 30) : when.end + 20]) is not None
        start, until = _clocks(when, evening)
        if last is not None and cue.kind == "expiry":
            # What is valid for a range expires at its end.
            first, last, start, until = last, None, until, None
        today = self._taken.date()
        behind, ahead = (LONG_AGO_VALID, FAR_VALID) if cue.kind == "expiry" else (LONG_AGO, FAR)
        if not -behind <= first - today <= ahead:
            return None
        if start is None and cue.kind == "event" and (when.first.is_weekday or when.first.offset == 0):
            return None  # "Sunday dinner", "meetings today"
        is_over = first < today or (start is not None and datetime.combine(first, start) < self._taken)
        if is_over and first == today and when.first.is_weekday and when.first.weeks is None:
            first, is_over = first + timedelta(days=7), False
        if first < today and cue.kind not in LASTING:
            return None
        if cue.weak and (days.contradicts(when.first, first) or (when.clock and when.clock.seconds)):
            return None
        if cue.weak and (is_over or (start is None and (first == today or when.first.vague))):
            return None
        title = self._title(found)
        kind = _KINDS.get(cue.kind, cue.kind)
        if cue.weak and kind == "event":
            kind = next(
                (one.kind for one in cues.cues_in(days.folded(title), False) if one.kind in PLANNED), kind
            )
        line, index = self._line(found)
        ends_at = None
        if last is not None and last != first:
            ends_at = _written(last, until)
        elif start is not None and until is not None:
            ends_at = _written(first + timedelta(days=until < start), until)
        return Occasion(
            kind,
            title,
            _written(first, start),
            ends_at,
            start is None,
            one_line(line.text)[:MAX_QUOTE],
            index,
        )

    def _line(self, found: _Found) -> tuple[Line, int]:
        """The line on which the day, or else its cue, is, and its index in the page."""
        lines = self._blocks[found.block].lines
        texts = [line.text for line in lines]
        on = (number for number in range(len(lines)) if found.when.start < len(joined(texts[: number + 1])))
        line = lines[next(on, -1)]
        return line, self._places[(line.left, line.top, line.right, line.bottom)]

    def _title(self, found: _Found) -> str:
        """What it is: the words beside the day, and where they are few, what the screen is about."""
        block = self._blocks[found.block]
        texts = [line.text for line in block.lines]
        text = joined(texts)[:MAX_BLOCK]
        first, last = self._own_lines(found)
        own = (len(joined(texts[:first])), len(joined(texts[:last])))
        words = plain(found.label).rstrip(":： ") if found.label else _sentence_without(text, found.when, own)
        subject = ""
        if found.label or weight(words) < ENOUGH_WORDS:
            subject = plain(texts[first - 1])[:MAX_SUBJECT] if first else self._subject(block)
        if subject and words.casefold() not in subject.casefold():
            words = f"{subject} · {words}" if words else subject
        return shortened(one_line(words or subject or text), MAX_TITLE) or found.cue.kind

    def _own_lines(self, found: _Found) -> tuple[int, int]:
        """The lines of the block, from the first to before the last, that are one sentence with the day. A
        line that begins anew, like "Gate C12" below "Departs 9:40", is another.
        """
        texts = [line.text for line in self._blocks[found.block].lines]
        on = next(
            (number for number in range(len(texts)) if found.when.start < len(joined(texts[: number + 1]))), 0
        )
        ends = next(
            (number for number in range(len(texts)) if found.when.end <= len(joined(texts[: number + 1]))), on
        )
        anew = [number for number in range(1, len(texts)) if _begins_anew(texts[number - 1], texts[number])]
        first = max((number for number in anew if number <= on), default=0)
        return first, min((number for number in anew if number > ends), default=len(texts))

    def _subject(self, own: Block) -> str:
        """What the screen is about: its heading, the entry above a block, or its header."""
        layout = self._layout
        named = [layout.heading.text] if layout.heading is not None and layout.heading is not own else []
        above = [
            block
            for block in self._blocks
            if block.bottom <= own.top
            and weight(block.text) >= 4
            and all(len(self._rows.get(id(line), ())) == 1 for line in block.lines)
        ]
        if sum(map(bool, self._whens)) > MOST_ENTRIES:
            above = []  # of a list, somebody else's
        named += [block.text for block in sorted(above, key=lambda block: -round(block.height, -1))]
        named += [line.text for line in layout.headers[:1]]
        for text in named:
            name = plain(shortened(one_line(text), MAX_SUBJECT))
            if (
                letters(name) > 0.5
                and not set(name) <= _WEEK
                and not is_generic(name)
                and not days.whens(days.folded(name))
            ):
                return name
        header = plain(layout.headers[0].text)[:MAX_SUBJECT] if layout.headers else ""
        return header if letters(header) > 0.5 else ""  # "11月" is a calendar's


# ------------------------------------------------------------------------------------------------------ parts


def _places(page: Page) -> dict[tuple[int, int, int, int], int]:
    """The index of each line, by its box: the layout has copies without icons."""
    return {
        (line.left, line.top, line.right, line.bottom): index
        for index, line in reversed(list(enumerate(page.lines)))
    }


def _is_below(line: Line, above: Line) -> bool:
    """Whether a line is in the same column as the one above it."""
    return (
        abs(line.left - above.left) < 1.2 * line.height
        or abs(line.left + line.right - above.left - above.right) < 1.2 * line.height
        or abs(line.right - above.right) < 0.6 * line.height
    )


def _is_value(text: str, whens: Sequence[When]) -> bool:
    """Whether a text is days and times with little else."""
    return _words_beside(text, whens) <= LIGHT


def _is_dated(text: str) -> bool:
    folded = days.folded(text[:MAX_LABEL])
    found = days.whens(folded)
    return bool(found) and _is_value(folded, found)


def _words_beside(text: str, whens: Sequence[When]) -> int:
    """The letters of a text beside its days and times, Chinese ones counted double."""
    return weight(text) - sum(weight(text[when.start : when.end]) for when in whens)


def _same(one: Occasion, other: Occasion) -> bool:
    """Whether `one` says nothing that `other` does not."""
    if one.starts_at == other.starts_at and (one.ends_at == other.ends_at or one.ends_at is None):
        return True
    return (
        one.all_day
        and one.ends_at is None
        and one.kind == other.kind
        and one.starts_at == other.starts_at[:10]
    )


def _is_known(one: Occasion, planned: Occasion) -> bool:
    """Whether a day that was found by its words is that of a record."""
    if one.all_day or planned.all_day:
        return one.starts_at[:10] == planned.starts_at[:10]
    return one.starts_at == planned.starts_at


def _completed(planned: Occasion, same: Sequence[Occasion]) -> Occasion:
    """An entry of a record with the times that were found by their words, and with the words around them
    where they name more than the record does: "Flight CA1831 to Shanghai".
    """
    if not planned.title or _NUMBER_ALONE.fullmatch(planned.title):
        longer = (one.title for one in same if planned.title in one.title)
        planned = replace(planned, title=next(longer, planned.title))
    timed = next((one for one in same if not one.all_day), None)
    if timed is not None and planned.all_day:
        return replace(timed, kind=planned.kind, title=planned.title)
    ends = next((one.ends_at for one in same if one.ends_at and one.starts_at == planned.starts_at), None)
    return replace(planned, ends_at=planned.ends_at or ends)


def _written(day: date, clock: time | None) -> str:
    return f"{day}T{clock:%H:%M}" if clock is not None else f"{day}"


def _years(last: date, first: date) -> Iterator[date]:
    for more in (1, 2):
        try:
            later = last.replace(year=last.year + more)
        except ValueError:
            continue
        if later >= first:
            yield later


def _clocks(when: When, evening: bool) -> tuple[time | None, time | None]:
    if when.clock is None:
        return None, None
    tonight = when.first is not None and when.first.evening
    start = days.clock(when.clock, tonight=tonight, evening=evening)
    if when.until is None:
        return start, None
    return start, days.clock(when.until, tonight=tonight, evening=evening, after=when.clock)


def _nearest(text: str, when: When, near: Sequence[Cue], whens: Sequence[When]) -> tuple[Cue | None, int]:
    """The cue that is nearest to a day in a text, and how far away it is."""
    best: tuple[int, int, Cue] | None = None
    for cue in near:
        if cue.start < when.end and when.start < cue.end:
            continue
        # "Before" in Chinese is right behind its day.
        if cue.kind and text[cue.start] in cues.BEHIND and not 0 <= cue.start - when.end <= 1:
            continue
        before = cue.end <= when.start
        between = text[cue.end : when.start] if before else text[when.end : cue.start]
        if _BARRIER.search(between):
            continue
        distance = sum(1 + is_chinese(letter) for letter in between)
        if between.strip(" ,.:") == "":
            distance = 0
        # A day between belongs to the cue before it.
        crossed = sum(
            (cue.end <= one.start < when.start) if before else (when.end <= one.start < cue.start)
            for one in whens
        )
        # And one right before another day belongs to that.
        crossed += not before and any(0 <= one.start - cue.end <= 2 for one in whens)
        distance += 30 * crossed
        most = (BEFORE_WEAK if cue.weak else BEFORE) if before else AFTER
        if distance <= most:
            rank = 2 * distance + (not before) + (WEAKER if cue.weak else 0)
            if best is None or rank < best[0]:
                best = (rank, distance, cue)
    return (best[2], best[1]) if best else (None, 0)


def _kind(cue: Cue, text: str, when: When, near: Sequence[Cue]) -> str:
    """What a cue means beside the others of its text."""
    if cue.kind == "expiry" and cue.end < when.start - 2 and not cues.LASTS.search(text):
        # "Sign the renewal by 3 Dec"; "use by" is a cue itself.
        return "deadline" if cues.UNTIL.search(text[max(0, when.start - 20) : when.start]) else cue.kind
    if cue.kind == "deadline" and text[cue.start] in cues.BEHIND:
        # 12月3日前免费，请尽快取件
        return "pickup" if any(one.kind == "pickup" for one in near) else cue.kind
    return cue.kind


def _combined(text: str, whens: Sequence[When], near: Sequence[Cue]) -> list[When]:
    """The days and times of a text, where a time in the sentence of a day has that day: "27 Nov, coach 8,
    leaves at 9:30".
    """
    found: list[When] = []
    for when in whens:
        day = found[-1] if found else None
        if (
            day is not None
            and day.first is not None
            and day.clock is None
            and day.last is None
            and when.first is None
            and not _BARRIER.search(text[day.end : when.start])
            and (cue := _nearest(text, when, near, whens)[0]) is not None
            and cue.kind
            and cue.start >= day.end
        ):
            found[-1] = replace(when, first=day.first)
        else:
            found.append(when)
    return found


def _cancelled(text: str, when: When) -> bool:
    start = max((match.end() for match in _BARRIER.finditer(text, 0, when.start)), default=0)
    end = next((match.start() for match in _BARRIER.finditer(text, when.end)), len(text))
    return cues.CANCELLED.search(text[start:end]) is not None


def _begins_anew(above: str, line: str) -> bool:
    """Whether a line is no continuation of the one above it."""
    return (
        re.match(r"[A-Z0-9]", line) is not None
        and _LEADING.search(above[-200:]) is None
        and above[-1:] != ","
    )


def _sentence_without(text: str, when: When, own: tuple[int, int]) -> str:
    """The sentence around a day, between two places, without the day and the words that lead to it."""
    start = max((match.end() for match in _BARRIER.finditer(text, own[0], when.start)), default=own[0])
    end = next((match.start() for match in _BARRIER.finditer(text, when.end, own[1])), own[1])
    before = _LEADING.sub("", text[start : when.start].rstrip(" ,:：(（[【·•|@-")[-200:])
    after = text[when.end : end]
    if text[when.end - 1] == "." and after.lstrip()[:1].isupper():
        after = ""  # the next sentence, behind "24 Dec."
    after = _TRAILING.sub("", after.lstrip(" ,.:：)）]】·•|-"))
    return plain(joined(part for part in (before.strip(" ,:："), after) if part.strip())).strip(" ,.:：;")


# Where a sentence ends. A full stop after "Dr" or in "Nov. 22" is none.
_BARRIER = re.compile(
    r"[!?。！？;；]|(?<!\b[A-Z][a-z])(?<!\b[A-Z])(?<!\b[A-Z][a-z]{2})\.(?:\s|(?=[A-Z][a-z]))"
)
_LEADING = re.compile(
    rf"(?:^|\s)(?:{any_in('days', 'leading')}\s?){{1,4}}$|{any_in('days', 'leading_chinese')}$", re.IGNORECASE
)
_TRAILING = re.compile(
    rf"^(?:{any_in('days', 'trailing')}\s(?=\w)|{any_in('days', 'trailing_chinese')})", re.IGNORECASE
)
_NUMBER_ALONE = re.compile(r"[A-Z0-9 ]{2,12}")
_WEEK = frozenset("日一二三四五六周MTWFS ")  # the head of a calendar
