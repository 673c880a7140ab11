"""Finds what happens on a day that a screenshot names: a flight, a bill, a parcel to pick up, an appointment.

A day counts only with a cue, a word like "due" or "departs" near it: on its line, on the label at its left or
above it, or on the screen of a ticket. Clocks, dates of posts and lengths of videos are on every second
screen. Other words show that a day is past or nobody's business ("posted", "born", "paid"); the nearest word
decides. Nothing is understood.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from engines import days
from engines.days import When
from engines.layout import Block, Layout, is_chinese, joined, letters, plain, weight
from engines.lines import Line, Page
from engines.names import is_generic
from text import one_line, shortened

MOST = 20
MAX_TITLE = 120
MAX_QUOTE = 300
MAX_BLOCK = 1_200  # characters of a paragraph that are read
MAX_TEXT = 20_000  # characters of a page that are looked through for its context
MAX_LABEL = 40  # characters
# Days and times of a paragraph and of a page; one with more is a calendar or a log.
MOST_IN_BLOCK, MOST_IN_PAGE = 12, 100
MAX_SUBJECT = 60  # characters
ENOUGH_WORDS = 12  # letters that say what it is, Chinese ones counted double
LIGHT = 14  # letters beside a value, Chinese ones counted double
# A day further away is misread, or of something that is over. Documents are valid for decades.
LONG_AGO, FAR = timedelta(days=400), timedelta(days=3 * 366)
LONG_AGO_VALID, FAR_VALID = timedelta(days=20 * 366), timedelta(days=30 * 366)
# Without a year, a day further ahead may be one of this year's that is past.
SOON = timedelta(days=100)
# How far from a day its cue may be, in letters, Chinese ones counted double.
BEFORE, BEFORE_WEAK, AFTER = 70, 46, 26
WEAKER = 24  # twice the letters by which a weak cue must be nearer than another one
# What may have been missed. Of other kinds a day that is over when the screenshot is taken is only a date.
LASTING = frozenset({"deadline", "expiry"})


@dataclass(frozen=True)
class Occasion:
    """Something that happens at a time. `kind` is event, deadline, departure, pickup, appointment or expiry;
    `title` says what it is. `starts_at` and `ends_at` are local time without a zone: "2026-11-22" if
    `all_day`, else "2026-11-22T14:30". `quote` is the line that it is on, whose index in the page is `line`.
    """

    kind: str
    title: str
    starts_at: str
    ends_at: str | None
    all_day: bool
    quote: str
    line: int


class _Cue(NamedTuple):
    """A word that says what a day is for. `kind` is "" where it is for nothing that is to come; one that is
    `weak` needs a day to come.
    """

    start: int
    end: int
    kind: str
    weak: bool


# Deliveries are events that need no time of day.
_KINDS = {"delivery": "event"}


class _Found(NamedTuple):
    when: When
    cue: _Cue
    block: int
    label: str
    distance: int


def occasions(page: Page, taken: datetime) -> list[Occasion]:
    """The occasions on a page, at most `MOST`, in order of `starts_at`. `taken` is when the screenshot was
    taken, in local time without a zone.
    """
    return _Screen(page, taken).occasions()


def standing(page: Page, said: str, taken: datetime, label: str = "") -> Occasion | None:
    """The occasion whose line contains `said`, a date as a remote model gives it; None where no line does.
    `label` is what the model calls the date, such as "due date": a cue in it is as good as one on the screen.
    """
    squeezed = _squeezed(said[:MAX_QUOTE])
    if not any(map(str.isdigit, squeezed)) and len(squeezed) < 2:
        return None
    screen = _Screen(page, taken)
    return next((one for one in screen.occasions() if squeezed in _squeezed(one.quote)), None) or next(
        (one for one in screen.labelled(label[:MAX_LABEL]) if squeezed in _squeezed(one.quote)), None
    )


def _squeezed(text: str) -> str:
    return "".join(days.folded(text).casefold().split())


class _Screen:
    """The paragraphs of a page, and the days in them."""

    def __init__(self, page: Page, taken: datetime):
        self._taken = taken
        self._layout = Layout(page)
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
        self._is_travel = _TRAVEL.search(whole) is not None
        self._is_ticket = _TICKET.search(whole) is not None
        # The column of dates in a list of messages, files or payments.
        self._is_list = sum(len(row.lines) > 1 and _is_dated(row.last.text) for row in self._layout.rows) >= 4
        self._known: dict[int, tuple[_Cue | None, str]] = {}  # the labels
        self._places = _places(page)
        self._rows = {id(line): row.lines for row in self._layout.rows for line in row.lines}
        self._of_line = {
            id(line): number for number, block in enumerate(self._blocks) for line in block.lines
        }

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
        return sorted(kept, key=lambda one: (one.starts_at, one.line))[:MOST]

    def labelled(self, label: str) -> list[Occasion]:
        """The days of the page as what `label` says they are; none where it has no cue."""
        cue = _nearest_end(list(_cues(days.folded(label), self._is_travel)), len(label))
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
        cues = list(_cues(text, self._is_travel))
        for when in _combined(text, whens, cues):
            if when.repeats or _cancelled(text, when):
                continue
            cue, distance = _nearest(text, when, cues, whens)
            label = ""
            if cue is None and _is_value(text, whens):
                cue, label = self._label(number)
                distance = 2
            if cue is None:
                cue, distance = self._context(number, when) or self._to_come(number, when, cues), 60
            if cue is None or not cue.kind:
                continue
            if when.first is None:
                completed = self._with_day(number, when, cue)
                if completed is None:
                    continue
                when, distance = completed, distance + 20
            elif when.clock is None and _is_value(text, whens):
                when = self._with_time(number, when)
            yield _Found(when, cue, number, label, distance)

    def _label(self, number: int) -> tuple[_Cue | None, str]:
        """The cue of the label at the left of a value or above it, and the label."""
        if number not in self._known:
            self._known[number] = self._cue_of_label(number)
        return self._known[number]

    def _cue_of_label(self, number: int) -> tuple[_Cue | None, str]:
        for label, is_beside in self._labels(number):
            text = days.folded(label.text[:MAX_LABEL])
            if days.whens(text):
                return None, ""
            cue = _nearest_end(list(_cues(text, self._is_travel)), len(text))
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

    def _context(self, number: int, when: When) -> _Cue | None:
        """What a day with a time is for on a ticket or an invitation, where it is alone on its line."""
        if when.first is None or not _is_value(self._texts[number], self._whens[number]):
            return None
        if self._rows.get(id(self._blocks[number].lines[0]), ((),))[0] is not self._blocks[number].lines[0]:
            return None
        if self._with_time(number, when).clock is None:
            return None
        if not self._is_ticket:
            return None
        return _Cue(0, 0, "departure" if self._is_travel else "event", True)

    def _to_come(self, number: int, when: When, cues: Sequence[_Cue]) -> _Cue | None:
        """What a day is for that has words beside it and no cue. Posts, lists and receipts name days that are
        past, so a day that certainly is to come is somebody's plan.
        """
        day, text = when.first, self._texts[number]
        if day is None or any(not cue.kind for cue in cues) or day.short:
            return None
        words = _words_beside(text, self._whens[number])
        if _is_value(text, self._whens[number]) and words < 4:
            label, is_beside = next(self._labels(number), (None, False))
            text = days.folded(label.text[:MAX_LABEL]) if label is not None else ""
            is_named = is_beside and (when.clock is not None or day.year is not None)
            if not (is_named or _DATED.search(text)) or weight(text) < 4 or days.whens(text) or self._is_list:
                return None
            if any(not cue.kind for cue in _cues(text, self._is_travel)):
                return None
        elif words < 4 or "°" in text:
            return None
        before = _UNTIL.search(text[max(0, when.start - 20) : when.start])
        is_relative = day.is_weekday or day.offset is not None
        if is_relative and before is None and (when.clock is None or (words < 8 and not day.offset)):
            return None
        first = days.resolved(day, self._taken, self._order)
        if first is None or (day.year is None and first - self._taken.date() > SOON):
            return None
        kind = ("expiry" if before["until"] else "deadline") if before is not None else "event"
        return _Cue(when.start, when.start, kind, True)

    def _with_day(self, number: int, when: When, cue: _Cue) -> When | None:
        """A labelled time with the day that is on the screen, if there is one only that is to come."""
        text, whens = self._texts[number], self._whens[number]
        if cue.weak and not _PURE_TIME.search(text) and not _is_value(text, whens):
            return None
        found: dict[date, tuple[int, When]] = {}
        for other, whens in enumerate(self._whens):
            if other == number or not whens or not _is_value(self._texts[other], whens):
                continue
            for one in whens:
                if one.first is None or one.clock is not None or one.repeats or one.last is not None:
                    continue
                label = self._label(other)[0]
                if label is not None and (not label.kind or (label.kind != cue.kind and not label.weak)):
                    continue
                day = days.resolved(one.first, self._taken, self._order)
                if day is not None and day >= self._taken.date():
                    found.setdefault(day, (other, one))
        if len(found) != 1:
            return None
        ((_, one),) = found.values()
        return replace(when, first=one.first)

    def _with_time(self, number: int, when: When) -> When:
        """A day with the time that is alone on the line below it."""
        line = self._blocks[number].lines[-1]
        for other in (number + 1, number - 1):
            if not 0 <= other < len(self._blocks) or len(self._whens[other]) != 1:
                continue
            one, near = self._whens[other][0], self._blocks[other].lines[0]
            if (
                one.first is None
                and one.clock is not None
                and _is_value(self._texts[other], [one])
                and abs(near.top - line.top) < 2.6 * line.height
                and (_is_below(near, line) or _is_below(line, near))
                and not next(self._labels(other), (None, False))[1]
            ):
                return replace(when, clock=one.clock, until=one.until)
        return when

    # ------------------------------------------------------------------------------------------------ making

    def _made(self, found: _Found) -> Occasion | None:
        when, cue = found.when, found.cue
        if when.first is None:
            return None
        past = cue.kind == "expiry" and _PAST.search(self._texts[found.block]) is not None
        first = days.resolved(when.first, self._taken, self._order, past=past)
        last = days.resolved(when.last, self._taken, self._order) if when.last else None
        if first is None or (when.last and last is None):
            return None
        if last is not None and last < first:
            last = next((one for one in _years(last, first)), None)
        text = self._texts[found.block]
        evening = _EVENING.search(text[max(0, when.start - 30) : when.end + 20]) is not None
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
        if cue.weak and (is_over or (start is None and (first == today or when.first.short))):
            return None
        line, index = self._line(found)
        ends_at = None
        if last is not None and last != first:
            ends_at = _written(last, until)
        elif start is not None and until is not None:
            ends_at = _written(first + timedelta(days=until < start), until)
        return Occasion(
            _KINDS.get(cue.kind, cue.kind),
            self._title(found),
            _written(first, start),
            ends_at,
            start is None,
            one_line(line.text)[:MAX_QUOTE],
            index,
        )

    def _line(self, found: _Found) -> tuple[Line, int]:
        """The line on which the day, or else its cue, is, and its index in the page."""
        block = self._blocks[found.block]
        at = 0
        for line in block.lines:
            at += len(line.text.strip()) + 1
            if found.when.start < at:
                break
        return line, self._places[(line.left, line.top, line.right, line.bottom)]

    def _title(self, found: _Found) -> str:
        """What it is: the words beside the day, and where they are few, what the screen is about."""
        block = self._blocks[found.block]
        text = joined(line.text for line in block.lines)[:MAX_BLOCK]
        words = plain(found.label).rstrip(":： ") if found.label else _sentence_without(text, found.when)
        subject = self._subject(block) if found.label or weight(words) < ENOUGH_WORDS else ""
        if subject and words.casefold() not in subject.casefold():
            words = f"{subject} · {words}" if words else subject
        return shortened(one_line(words or subject or text), MAX_TITLE) or found.cue.kind

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
        named += [block.text for block in sorted(above, key=lambda block: -round(block.height, -1))]
        named += [line.text for line in layout.headers[:1]]
        for text in named:
            name = plain(shortened(one_line(text), MAX_SUBJECT))
            if letters(name) > 0.5 and not is_generic(name) and not days.whens(days.folded(name)):
                return name
        return plain(layout.headers[0].text)[:MAX_SUBJECT] if layout.headers else ""


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


def _cues(text: str, is_travel: bool) -> Iterator[_Cue]:
    """The cues in a folded text, in its order; of those that overlap, the longest."""
    found = [
        _Cue(*match.span(), kind, weak) for kind, weak, pattern in _CUES for match in pattern.finditer(text)
    ]
    if is_travel:
        found += [_Cue(*match.span(), "", False) for match in _ARRIVAL.finditer(text)]
    end = 0
    for cue in sorted(found, key=lambda one: (one.start, -one.end, one.kind != "")):
        if cue.start >= end:
            end = cue.end
            yield cue


def _nearest(text: str, when: When, cues: Sequence[_Cue], whens: Sequence[When]) -> tuple[_Cue | None, int]:
    """The cue that is nearest to a day in a text, and how far away it is."""
    best: tuple[int, int, _Cue] | None = None
    for cue in cues:
        if cue.start < when.end and when.start < cue.end:
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


def _combined(text: str, whens: Sequence[When], cues: Sequence[_Cue]) -> list[When]:
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
            and (cue := _nearest(text, when, cues, whens)[0]) is not None
            and cue.kind
            and cue.start >= day.end
        ):
            found[-1] = replace(when, first=day.first)
        else:
            found.append(when)
    return found


def _nearest_end(cues: Sequence[_Cue], end: int) -> _Cue | None:
    """The cue of a label: one that says that nothing is to come, or else the last."""
    return next((cue for cue in cues if not cue.kind), None) or (cues[-1] if cues else None)


def _cancelled(text: str, when: When) -> bool:
    start = max((match.end() for match in _BARRIER.finditer(text, 0, when.start)), default=0)
    end = next((match.start() for match in _BARRIER.finditer(text, when.end)), len(text))
    return _CANCELLED.search(text[start:end]) is not None


def _sentence_without(text: str, when: When) -> str:
    """The sentence around a day, without the day and the words that lead to it."""
    start = max((match.end() for match in _BARRIER.finditer(text, 0, when.start)), default=0)
    end = next((match.start() for match in _BARRIER.finditer(text, when.end)), len(text))
    before = _LEADING.sub("", text[start : when.start].rstrip(" ,:：(（[【·•|@-")[-200:])
    after = text[when.end : end]
    if text[when.end - 1] == "." and after.lstrip()[:1].isupper():
        after = ""  # the next sentence, behind "24 Dec."
    after = _TRAILING.sub("", after.lstrip(" ,.:：)）]】·•|-"))
    return plain(joined(part for part in (before.strip(" ,:："), after) if part.strip())).strip(" ,.:：;")


# ------------------------------------------------------------------------------------------------------ words


def _words(latin: str, chinese: str) -> re.Pattern[str]:
    """Any of these alternatives, in any case; Latin ones as whole words."""
    return re.compile(rf"(?<![a-z])(?:{latin})(?![a-z])|{chinese}", re.IGNORECASE)


_BY = "(?:之前|以前|前)(?:来|到)?"  # after a day
_CUES: tuple[tuple[str, bool, re.Pattern[str]], ...] = (
    (
        "",
        False,
        _words(
            r"posted|published|updated?|edited|created|modified|issued?|issue date|date of issue|born"
            r"|birth(?:day|date)?"
            r"|date of birth|dob|paid|ordered|order (?:placed|date)|placed|purchased|shipped|delivered"
            r"|received|sent|last"
            r"|previous(?:ly)?|since|joined|founded|copyright|©|version|build|releas(?:e|ed|e notes)"
            r"|downloaded|photos? taken"
            r"|transactions?(?: date)?|statement(?: date)?|billing period|was|were|had|closed|arrived"
            r"|cancell?ed|every|each"
            r"|repeats?|booked(?: on)?|ago|log-?in|logged|seen|viewed|signed|established|built|started|met"
            r"|yesterday|history|minutes|notes|opening hours|hours|missed(?: call)?|call ended"
            r"|last message|deals|fell|said|recorded|reviewed|finished|completed|backup|read|season"
            r"|sunrise|sunset|results"
            r"|duration|registered|added|opened|left|went|changed|uploaded|as of|photos from|thanks for"
            r"|logged in|sign-?in|departed",
            r"下单(?:时间)?|支付(?:时间)?|付款时间|创建(?:时间)?|发布(?:于|时间)?|更新(?:时间)?|编辑|签收|揽收|出生(?:日期)?"
            r"|生日(?![会聚派])|签发(?:日期)?|开票(?:日期)?|注册(?:时间)?|上次|登录|交易(?:时间)?|转账(?:时间)?|到账|退款|发货(?:时间)?"
            r"|入库(?:时间)?|到柜(?:时间)?|领取时间|账单日|成立|拍摄|开户(?:日期)?|昨[天日晚]|前天|去年|来自|阅读|播放|评论|营业(?:时间)?"
            r"|送信|上架(?:时间)?|发表|完成时间|成交|快件已|始建|记者|停用|消费|截至|完成|入职|最近|回放|上[周个]|每[周天日月年逢]|预约创建|发生",
        ),
    ),
    ("", False, re.compile(r"(?:^|[·•|-] ?)[Bb]y [A-Z][\w.'-]{1,20} [A-Z]")),
    (
        "departure",
        False,
        _words(
            r"depart(?:s|ing|ure|ures)?(?: (?:date|time))?|boarding(?: time)?|boards|takes? off|take-?off"
            r"|sails"
            r"|abfahrt|abflug",
            r"出发(?:时间|日期)?|登机(?:时间)|登机(?![口牌])|起飞(?:时间)?|发车(?:时间)?|开车(?:时间)?|乘车(?:日期|时间)|启程"
            r"|(?<=[\d点半分])开(?![会始放户票学业盘播场奖机发通启具立幕演课考])",
        ),
    ),
    (
        "departure",
        True,
        _words("flight|leaves|train to|ferry|bus to|dep|outbound|inbound", "航班|车次|列车|次列车"),
    ),
    ("departure", True, re.compile(r"(?<![A-Z\d])[A-Z]{2} ?\d{3,4}(?![\d-])|(?<![A-Za-z])[GDCKTZ]\d{1,4}次")),
    (
        "pickup",
        False,
        _words(
            r"pick(?:ed)? ?-?up(?: (?:by|until|from|before))?|ready for (?:collection|pick-?up)"
            r"|collect(?: by| until)?"
            r"|collection(?: (?:by|until|from))?",
            rf"(?:{_BY})?(?:取件|取走|取出|取货|领取|自提|提货)(?:时间|截止)?(?!码)|请取件[到至]",
        ),
    ),
    (
        "delivery",
        False,
        _words(
            r"deliver(?:y|s|ed by)|delivery (?:date|window|on|by)|arriv(?:es?|ing)(?: by| on)?"
            r"|out for delivery",
            rf"(?:{_BY})?(?:送达|派送|配送|到货)",
        ),
    ),
    (
        "expiry",
        False,
        _words(
            r"expir(?:es?|y|ed|ation|ing)(?: (?:date|on|in))?|exp\.? date|date of expiry|valid(?: (?:until"
            r"|till|thru|through|to|for|from))?"
            r"|use (?:by|before)|best before|redeem by|available until|(?:offer|trial|sale|subscription"
            r"|plan|membership|promotion)s? ends?(?: on)?|ends? on"
            r"|renews?(?: on)?|gültig bis",
            rf"有效期[至到限]?|到期(?:日|时间)?|过期|失效|清零|作废|(?:{_BY})?有效(?:[至到]|日期)?|使用期限|{_BY}使用|续费",
        ),
    ),
    ("expiry", True, _words("until|through|only till|ends?", "截[至到]")),
    (
        "deadline",
        False,
        _words(
            r"due(?! (?:to|diligence)(?![a-z]))(?: (?:date|by|on))?|payment due(?: date)?|deadline"
            r"|payable(?: by)?|pay (?:by|before)|submi(?:t|ssions?|tted)(?: (?:by|before|close))?"
            r"|clos(?:es?|ing)(?: (?:on|date))?|register by|registration closes|rsvp(?: by)?|respond by"
            r"|reply by|apply by|return by"
            r"|last day|no later than|latest by|book by|order by|enrol by|enroll by|fällig|next (?:payment"
            r"|bill|instal?lment)(?: due)?|auto-?pay(?: scheduled for| on)?|return window closes"
            r"|cancel (?:by|before)",
            rf"截止(?:日期?|时间)?|最后还款日|到期还款日|还款日期?|应还日期?|还书日期?|自动还款|扣款(?:日期?)?|死线|缴费(?:截止日?)?|还款"
            rf"|{_BY}(?:[^\d\s,。;]{{0,2}}(?:缴|交|付|还|提交|回复|完成|报名|支付))?(?![面后天往端台方])"
            r"|最晚|最迟|逾期",
        ),
    ),
    (
        "appointment",
        False,
        _words(
            r"appointments?(?: (?:date|time))?|appt|reserv(?:ation|ed)|booked for|check-?up|consultation"
            r"|interview|haircut"
            r"|vaccination|viewing",
            r"预约(?:时间|日期)?|就诊(?:时间|日期)?|挂号|复诊|面试(?:时间)?|面谈|体检|看诊|看病|手术|理发",
        ),
    ),
    ("appointment", True, _words("dentist|doctor|scheduled for", "牙医")),
    (
        "event",
        False,
        _words(
            r"meeting|starts?|begins?|kick-?off|doors(?: open)?|webinar|invit(?:ation|ed)"
            r"|check[- ]?in(?: date)?"
            r"|check[- ]?out(?: date)?|rescheduled to|moved to|postponed to",
            r"开会|会议(?:时间)?|开始(?:时间)?|举[行办]|召开|开[场幕播演学课业考]|上映|活动(?:时间|日期)|家长会|考试(?:时间|日期)?"
            r"|入住(?:日期|时间)?|离店(?:日期|时间)?|退房(?:日期|时间)?|集合(?:时间)?|展览(?:时间)?|演出(?:时间)?|比赛(?:时间)?",
        ),
    ),
    (
        "event",
        True,
        _words(
            r"meet(?: up)?|opens|airs|premieres|maintenance|outage|holidays?|graduation|session|visit"
            r"|booked in|let's|how about|what about|shall we|catch up|call me|zoom|free|want to"
            r"|wanna|join|come|trip|itinerary|stay|your booking|"
            r"term|semester|practice|training|launch|conference|concert|festival|exhibition|party|wedding"
            r"|dinner|lunch|breakfast|coffee|drinks|brunch"
            r"|movie|film|match|class|lesson|course|workshop|exam|test|screening|show|gig|game night"
            r"|ceremony|sync|stand-?up|call"
            r"|event|when|date (?:and|&) time|reminder|join us|see you|rehearsal|practice|lecture|seminar"
            r"|tour|barbecue|picnic",
            r"例会|聚会|聚餐|吃饭|见面|碰头|婚礼|讲座|培训|直播|电影|值班|上课|演唱会|生日会|报到|场次|日程|提醒"
            r"|改到|改期|推迟到|延期到|邀请|典礼|仪式|停[电水气]|检修|维护|开售|开抢|抢票|预售|放假|假期|答辩|年会|团建|晚会|首映|开庭|宣讲"
            r"|打球|火锅|聚一?聚|唱歌|爬山|逛街|健身|喝|约(?![为占等定合])|[吗吧呗](?=[?。!,]|$)|一起|出游|旅行|行程"
            r"|见(?![面过到证解])|(?<![\u4e00-\u9fff])(?:时间|日期)(?![\u4e00-\u9fff])|观影时间|放映时间",
        ),
    ),
)
_ARRIVAL = _words("arriv(?:es?|als?|ing)(?: time)?", "到达(?:时间)?|抵达(?:时间)?")
_TRAVEL = _words(
    r"boarding|flight|airport|gate|terminal|airlines?|train|railway|coach|platform|ferry",
    "航班|登机|列车|车次|铁路|航站楼|检票",
)
_TICKET = _words(
    r"seats?|row|screen|admit one|tickets?|venue|rsvp|invitation|event details|add to calendar|guests"
    r"|organi[sz]er|attendees"
    r"|going|interested",
    "座位|影厅|取票|入场|检票|日程|场馆|添加到日历|参会人|排\\d",
)
_CANCELLED = _words(r"(?:been|was|is|were|are) cancell?ed|cancell?ed:", "已取消|被取消|取消了")
_EVENING = _words("tonight|evening|dinner|party|drinks|movie|pm", "今晚|明晚|晚上|晚饭|晚餐")
_PAST = _words("expired", "已过期|已到期|已失效")
_PURE_TIME = _words("boarding|depart(?:s|ure)|doors|check-in", "登机|起飞|出发|发车")
_UNTIL = re.compile(
    r"(?<![a-z])(?:(?P<until>until|till?|through)|by|before|no later than)(?: the)?\s{0,2}$", re.IGNORECASE
)
_DATED = _words("date|day|on|from|when|starts?|ends?|time", "日期?$|时间")
# Where a sentence ends. A full stop after "Dr" or in "Nov. 22" is none.
_BARRIER = re.compile(
    r"[!?。！？;；]|(?<!\b[A-Z][a-z])(?<!\b[A-Z])(?<!\b[A-Z][a-z]{2})\.(?:\s|(?=[A-Z][a-z]))"
)
_LEADING = re.compile(
    r"(?:^|\s)(?:(?:at|on|by|is|until|till|from|for|the|in|before|no later than|due on|through|to|um|am"
    r"|bis)\s?){1,4}$",
    re.IGNORECASE,
)
_TRAILING = re.compile(r"^(?:at|in|on|from|by|and)\s(?=\w)", re.IGNORECASE)
