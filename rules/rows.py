"""Which lines of a screen name the entries of its list: a vote that was learned from lists which people wrote
down (`make train`).

Each line has measures: its place, how far it is from what is above and below it, how many lines share its
left edge, what is in its row, and the forms of its words. Each measure has ranges, and each range a weight
for every kind of list; they add up to the chance that the line is a name. Those lines are chosen together by
which most of the names are expected to be found, and little else. `rows.json` has the weights, the seed, and
how many lists were right of apps that it did not learn from.
"""

import bisect
import functools
import itertools
import math
import re
import statistics
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engines.lines import Line
from rules.headings import is_day, is_title
from rules.kinds import AGO, AMOUNT_RIGHT, WHEN_RIGHT
from rules.layout import Layout, is_chinese, plain, weight, without_time
from rules.wordlists import is_interface

WEIGHTS = Path(__file__).with_name("rows.json")
# Kinds of screens (`rules/kinds.py`) that have weights of their own; others have what these share.
KINDS = ("settings", "conversations", "mail", "tasks", "calendar", "accounts", "contacts")
ALIKE = {"notices": "conversations", "lock_screen": "conversations"}
MOST_LINES = 150  # of a page, from its beginning
MOST = 200  # characters of a text that are looked at
FAR = 9.0  # heights: a gap that is as good as none below or above
NONE, APART = -1.0, -9.0  # a measure of what is not there
SAME = 0.7  # of the usual height: how far the left edges of a column are apart
PAIR, LEAST_PAIRS = 1.6, 3  # times the gap inside is that between pairs; so many are no accident
LONG = 40  # characters from which on a text is a sentence
LEAST_DIGITS = 4  # of a number that sent a message
AGO_BEHIND = re.compile(rf"[\s·•](?:{AGO})\W{{0,3}}$", re.IGNORECASE)
_COUNT = re.compile(r"\W{0,2}\d{1,4}\W{0,2}")
_ENDS = ".!?。！？…"


class Weights(msgspec.Struct):
    """Where the ranges of each measure end; for each kind of list what no measure counts, and what each range
    of a measure does, "" for other screens; and how well all did when they were trained.
    """

    ends: dict[str, list[float]]
    start: dict[str, float]
    counts: dict[str, dict[str, list[float]]]
    seed: int
    figures: dict[str, Any]


class Named(NamedTuple):
    """The lines that name a list's entries, from top to bottom, and how much of what is chosen and of what
    should be is expected to be both: 0 to 1.
    """

    lines: list[Line]
    chance: float


def named(layout: Layout, kind: str) -> Named:
    """The lines that name the entries of a screen of this kind."""
    return chosen(chances(layout, kind))


def chances(layout: Layout, kind: str) -> list[tuple[float, Line]]:
    """The lines of a screen of this kind, each with the chance that it names an entry."""
    weights, kind = _weights(WEIGHTS), ALIKE.get(kind, kind)
    kind = kind if kind in weights.start else ""
    counts = [(name, ends, weights.counts[kind][name]) for name, ends in weights.ends.items()]
    found = []
    for line, measured in measures(layout):
        total = weights.start[kind]
        for name, ends, counted in counts:
            total += counted[bisect.bisect_right(ends, measured[name])]
        found.append((1 / (1 + math.exp(-total)), line))
    return found


def chosen(found: Sequence[tuple[float, Line]]) -> Named:
    """The lines with the best chances, as many as are expected to have the best harmonic mean of the share of
    them that are names and the share of the names that are among them.
    """
    total, hits, best = sum(chance for chance, _ in found), 0.0, 0.0
    taken: list[Line] = []
    for chance, line in sorted(found, key=lambda one: -one[0]):
        if 2 * chance <= best:
            break
        if name_of(line):
            taken.append(line)
            hits += chance
            best = 2 * hits / (len(taken) + total)
    return Named(_first_of_pairs(sorted(taken, key=lambda line: (line.top, line.left))), best)


def _first_of_pairs(lines: list[Line]) -> list[Line]:
    """The lines; where they are pairs, closer to each other than to the next pair, only the first of each: a
    name with what is said below it.
    """
    gaps = [below.top - above.bottom for above, below in itertools.pairwise(lines)]
    wide = PAIR * max(1, statistics.median_low(gaps)) if gaps else 0
    starts = [0, *(at for at, gap in enumerate(gaps, 1) if gap > wide)]
    sizes = [after - start for start, after in itertools.pairwise([*starts, len(lines)])]
    is_paired = len(starts) >= LEAST_PAIRS and max(sizes) == 2 and 2 * sizes.count(2) > len(sizes)
    return [lines[start] for start in starts] if is_paired else lines


def name_of(line: Line) -> str:
    """What a line names: its text without a time behind it, "" where it has hardly a letter."""
    text = plain(AGO_BEHIND.sub("", without_time(line.text[:MOST])))
    return text if weight(text) or sum(map(str.isdigit, text)) >= LEAST_DIGITS else ""


Measured = list[tuple[Line, dict[str, float]]]

_measured: weakref.WeakKeyDictionary[Layout, Measured] = weakref.WeakKeyDictionary()


def measures(layout: Layout) -> Measured:
    """The lines of a screen, each with its measures by names."""
    if layout not in _measured:
        _measured[layout] = _Places(layout).measures()
    return _measured[layout]


class _Places:
    """Where the lines of a screen are, by their numbers."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._lines = layout.lines[:MOST_LINES]
        self._texts = [plain(line.text[:MOST]) for line in self._lines]
        self._forms = [_form(text) for text in self._texts]
        at = {id(line): number for number, line in enumerate(self._lines)}
        rows = ([at[id(line)] for line in row.lines if id(line) in at] for row in layout.rows)
        self._rows = [row for row in rows if row]
        self._row_of = {one: number for number, row in enumerate(self._rows) for one in row}

    def measures(self) -> Measured:
        layout, listed = self._layout, {id(row.first) for row in self._layout.entries}
        columns = self._columns()
        bar = layout.navigation.lines if layout.navigation else []
        found = []
        for one, line in enumerate(self._lines):
            if line in bar:
                continue
            rank, place = columns[one]
            of_screen = {
                "larger columns": rank,
                "in its column": place,
                "left edge": line.left / layout.width,
                "off the middle": abs(line.left + line.right - layout.width) / layout.width,
                "size": math.log2(max(0.1, line.height / max(1, layout.median))),
                "place from the top": (line.top - layout.top) / layout.height,
                "texts before it": one,
                "texts behind it": len(self._lines) - one,
                "begins an entry": float(id(line) in listed),
                "certainty": line.confidence,
            }
            found.append((line, {**of_screen, **self._beside(one), **_of_text(self._texts[one])}))
        return found

    def _columns(self) -> dict[int, tuple[int, int]]:
        """For each line, how many columns of lines with about the same left edge are larger than its own, and
        how many lines of it are above.
        """
        columns: list[list[int]] = []
        edge = -math.inf
        for one in sorted(range(len(self._lines)), key=lambda one: self._lines[one].left):
            if self._lines[one].left - edge < SAME * self._layout.median:
                columns[-1].append(one)
            else:
                columns.append([one])
                edge = self._lines[one].left
        columns.sort(key=len, reverse=True)
        return {
            one: (rank, place)
            for rank, column in enumerate(columns)
            for place, one in enumerate(sorted(column, key=lambda one: self._lines[one].top))
        }

    def _beside(self, one: int) -> dict[str, float]:
        """What is in a line's row, above and below it."""
        line, row = self._lines[one], self._rows[self._row_of[one]]
        place, height = row.index(one), max(1, self._lines[one].height)
        behind = self._texts[row[-1]] if place < len(row) - 1 else ""
        above, below = self._next(one, -1), self._next(one, 1)
        over = self._lines[above] if above is not None else None
        under = self._lines[below] if below is not None else None
        up = min(FAR, (line.top - over.bottom) / height) if over else FAR
        down = min(FAR, (under.top - line.bottom) / height) if under else FAR
        return {
            "in its row": len(row),
            "time behind": float(WHEN_RIGHT.fullmatch(behind) is not None),
            "count behind": float(_COUNT.fullmatch(behind) is not None),
            "text before": min(4, weight(self._texts[row[place - 1]])) if place else NONE,
            "gap before": (line.left - self._lines[row[place - 1]].right) / height if place else NONE,
            "gap above": up,
            "gap below": down,
            "closer below": up - down,
            "text above": self._forms[above] if above is not None else NONE,
            "indent below": (under.left - line.left) / height if under else APART,
            "width below": under.width / self._layout.width if under else NONE,
        }

    def _next(self, one: int, step: int) -> int | None:
        """The line below another one (step 1) or above it (step -1), in one of the next two rows."""
        line, row = self._lines[one], self._row_of[one]
        for number in (row + step, row + 2 * step):
            others = self._rows[number] if 0 <= number < len(self._rows) else []
            over = [
                other
                for other in others
                if self._lines[other].left < line.right and line.left < self._lines[other].right
            ]
            if over:
                return min(over, key=lambda other: abs(self._lines[other].left - line.left))
        return None


def _form(text: str) -> int:
    """What a text looks like: a time, an amount, the rest of a sentence, one, a heading, a name."""
    if WHEN_RIGHT.fullmatch(text) or is_day(text):
        return 0
    if AMOUNT_RIGHT.fullmatch(text):
        return 1
    if text[:1].islower():
        return 2
    if text[-1:] in _ENDS or len(text) > LONG:
        return 3
    return 4 if text.isupper() else 5


def _of_text(text: str) -> dict[str, float]:
    """The measures of a text: its length, and the forms of its words."""
    return {
        "words": len(text.split()),
        "interface": float(is_interface(text)),
        "may be a title": float(is_title(text, 2)),
        "amount": float(AMOUNT_RIGHT.fullmatch(text) is not None),
        "end of a sentence": float(text[-1:] in _ENDS) + float(text.endswith(("..", "…"))),
        "colon": 2.0 * text.endswith((":", "：")) + float(":" in text[:-1] or "：" in text[:-1]),
        "comma": float("," in text or "，" in text or "、" in text),
        "Chinese": float(is_chinese(text[:1])),
        "address": float("@" in text),
    }


@functools.cache
def _weights(path: Path) -> Weights:
    return msgspec.json.decode(path.read_bytes(), type=Weights)
