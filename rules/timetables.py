"""Tables and lists of what is to come: rows that each have a day of their own, like appointments or exams.

A row's entry is called what its other words are. Lists of what is past (payments, chats, files) have days
that are over, and labels with their values are no rows of a table.
"""

import re
from datetime import date, timedelta
from typing import NamedTuple

from engines.lines import Line
from rules import cues, days
from rules.layout import Row, joined, letters, plain, weight
from rules.moments import Moment, written
from rules.planned import FAR, MAX_QUOTE, MAX_TITLE, Occasion
from rules.view import View
from text import one_line, shortened

LEAST_ROWS = 2
SOON = timedelta(days=100)
LEAST_WORDS = 3  # letters of a name, Chinese ones counted double


class _Entry(NamedTuple):
    name: str
    moment: Moment
    clock: str
    line: Line
    words: str


def timetable(view: View) -> list[Occasion]:
    """One entry for each row that is to come; none where the screen has no such table."""
    if view.taken is None or "°" in view.layout.content:
        return []
    today = view.taken.date()
    found = [entry for row in view.layout.rows if (entry := _entry(view, row)) is not None]
    if len(found) < LEAST_ROWS or len({entry.name for entry in found}) < len(found):
        return []
    if not all(_is_to_come(entry, today) for entry in found) or all(
        entry.moment.day == today for entry in found
    ):
        return []
    lefts = {entry.line.left // max(1, view.layout.width // 20) for entry in found}
    rights = {entry.line.right // max(1, view.layout.width // 20) for entry in found}
    if min(len(lefts), len(rights)) > 1 + len(found) // 3:
        return []
    header = view.layout.header
    head = days.folded(header.text) if header is not None else ""
    return [_occasion(view, entry, head) for entry in found]


def _entry(view: View, row: Row) -> _Entry | None:
    dated = [(moment, line) for line in row.lines if (moment := view.moments.day(line.text)) is not None]
    if len(dated) != 1 or any(view.pairs.is_label(line) for line in row.lines):
        return None
    moment, line = dated[0]
    rest = [other.text for other in row.lines if other is not line]
    clocks = [one for text in rest for one in view.moments.alone(text) if one.clock]
    clock = moment.clock or (clocks[0].clock if len(clocks) == 1 else "")
    others = [text for text in rest if not view.moments.alone(text)]
    words = joined(text for text in others if letters(text) > 0.5)
    beside = plain(line.text[: moment.start]).strip(" ,:·-–|")
    if weight(words) < LEAST_WORDS and weight(beside) >= LEAST_WORDS and _cue(beside) is None:
        words = beside
    if weight(words) < LEAST_WORDS:
        above = view.pairs.near(line, below=False)
        if above is None or above.top - line.top < -2.2 * line.height or view.moments.day(above.text):
            return None
        if view.pairs.is_label(above) or letters(above.text) < 0.5:
            return None
        words = above.text
    if not moment.exact or weight(words) < LEAST_WORDS or len(words) > MAX_TITLE:
        return None
    return _Entry(plain(words), moment, clock, line, joined(one.text for one in row.lines))


def _is_to_come(entry: _Entry, today: date) -> bool:
    """Whether the day of an entry is to come. Without a year, one far ahead may be past."""
    day = entry.moment.day
    far = FAR if re.search(r"20\d\d", entry.line.text) else SOON
    return day is not None and today <= day <= today + far


def _occasion(view: View, entry: _Entry, head: str) -> Occasion:
    found = [_cue(entry.words), _cue(head), _cue(entry.name)]
    known = [cue for cue in found if cue is not None and cue.kind]
    kind = min(known, key=lambda cue: cue.weak).kind if known else "event"
    if kind == "delivery" or (kind == "deadline" and entry.clock and _cue(entry.name) is not None):
        kind = "event"
    place = (entry.line.left, entry.line.top)
    line = next(number for number, one in enumerate(view.page.lines) if (one.left, one.top) == place)
    starts = written(entry.moment.day, entry.clock) if entry.moment.day else ""
    quote = one_line(view.page.lines[line].text)[:MAX_QUOTE]
    title, ends = shortened(entry.name, MAX_TITLE), entry.moment.ends or None
    return Occasion(kind, title, starts, ends, not entry.clock, quote, line)


def _cue(text: str) -> cues.Cue | None:
    return cues.of_label(days.folded(text), is_travel=False)
