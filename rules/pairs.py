"""The labels of a screen and the values that belong to them: "Gate" beside or above "C12", "Total: 12.50".

Labels are the words of `words/fields.toml`, in all languages at once, without capitals and accents, and with
or without their blanks, since recognised text loses some. A label has several possible values: what follows
it on its line, what is right of it in its row, what is below it, what is above it. Which one it is, the form
of the field decides: `Pairs.find` returns the first that a reader accepts. So a table of labels above their
values and a list of labels beside theirs need no rules of their own.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from engines.lines import Line
from rules import wordlists
from rules.layout import Layout, Row, is_chinese, joined
from rules.searched import fold

MAX_LABEL = 40  # characters
MOST_WRAPPED = 4  # lines of a value
FAR_BELOW = 2.4  # heights of the larger line between a label and a value below it
OTHER = "other"
_AROUND = " :：#|·•,;，；。-–—="  # what is between a label and its value
# A label is a caption of the value above it where the gap above is at most this part of the one below; so
# many more labels must be captions than not.
NEARER, LEAST_CAPTIONS, NO_GAP = 0.7, 2, 10_000

# Where a value is: behind its label and a colon, or without one, or in the middle of a sentence; beside it in
# the row; below or above it.
Where = Literal["colon", "rest", "inside", "right", "below", "above"]
NAMED: tuple[Where, ...] = ("colon", "right", "below")  # where a value may be any text
FORMED: tuple[Where, ...] = (
    "colon",
    "rest",
    "right",
    "below",
    "inside",
    "above",
)  # one with a form of its own

# "Your order number is 4711".
_SIGN = re.compile(r"[:：]? ([-−])(?=[€$£¥₹]? ?\d)")  # a minus before an amount, and not a dash
_IS = re.compile(
    "^"
    + wordlists.any_of(wordlists.entries(wordlists.table("contexts")["sentence"]["is"]))
    + r"(?=[\s\d:：A-Z])[\s:：]*"
)

T = TypeVar("T")


class Value(NamedTuple):
    """A possible value of a label: its text, and the lines that it is on."""

    text: str
    lines: tuple[Line, ...]
    where: Where
    label: str


class Label(NamedTuple):
    """A label on a line, from `start` to `end` of its text. `names` are the fields that it may be. `is_whole`
    is whether the line has nothing else, `is_first` whether it begins a line or a part of one.
    """

    names: frozenset[str]
    line: Line
    start: int
    end: int
    is_first: bool
    is_whole: bool
    colon: bool


class Pairs:
    """The labels of a screen with their possible values."""

    def __init__(self, layout: Layout):
        self._layout = layout
        self._row: dict[int, Row] = {id(line): row for row in layout.rows for line in row.lines}
        self._block = {id(line): block for block in layout.blocks for line in block.lines}
        self.labels = [label for line in layout.lines for label in labels_in(line)]
        self._whole = {id(label.line) for label in self.labels if label.is_whole}
        self._by_name: dict[str, list[Label]] = {}
        for label in self.labels:
            for name in label.names:
                self._by_name.setdefault(name, []).append(label)

    @functools.cached_property
    def is_continental(self) -> bool:
        """Whether a label is in a language that writes the day before the month, and not in English."""
        first = (label for label in self.labels if label.is_first)
        return any(_squeezed(fold(line_text(label))) in _continental() for label in first)

    def is_label(self, line: Line) -> bool:
        """Whether a line is a label and nothing else."""
        return id(line) in self._whole

    def has(self, *names: str) -> bool:
        """Whether one of these fields has a label that begins a line or is one."""
        return any(label.is_first for name in names for label in self._by_name.get(name, ()))

    def find(
        self, names: str | tuple[str, ...], read: Callable[[str], T | None], where: Iterable[Where] = FORMED
    ) -> tuple[T, Value] | None:
        """The first value of these fields that `read` accepts, as it reads it, and its place."""
        return next(self.each(names, read, where), None)

    def each(
        self, names: str | tuple[str, ...], read: Callable[[str], T | None], where: Iterable[Where] = FORMED
    ) -> Iterator[tuple[T, Value]]:
        """For each label of these fields, the first value that `read` accepts, as it reads it, and its place.
        The labels of the first name come first.
        """
        allowed = tuple(where)
        for name in (names,) if isinstance(names, str) else names:
            for label in self._by_name.get(name, ()):
                for value in self._values(label):
                    if value.where in allowed and (found := read(value.text)) is not None:
                        yield found, value
                        break

    def text(self, *names: str) -> Value | None:
        """The value of the first of these fields that is any text with a letter: a name, an address."""
        found = self.find(names, lambda text: text if any(map(str.isalpha, text)) else None, NAMED)
        return found[1] if found else None

    def _values(self, label: Label) -> Iterator[Value]:
        line, name = label.line, line_text(label)
        rest = self._rest(label)
        if rest:
            where: Where = "colon" if label.colon else "rest" if label.is_first else "inside"
            lines = self._continued(label, rest)
            yield Value(joined([rest, *(one.text for one in lines[1:])]), lines, where, name)
        elif not label.is_whole and len(lines := self._continued(label, "")) > 1:
            yield Value(joined(one.text for one in lines[1:]), lines, "inside", name)
        if not label.is_first or (rest and not label.colon):
            return
        beside = self.beside(line)
        below = self.near(line, below=not self._is_captioned)
        if beside is None and (below is None or self._is_other(below)):
            below = self._set_below(line) or below
        if beside is not None and below is not None and self._is_column(line, beside, below):
            yield self._value(below, "below", name)
        if beside is not None and (not self._is_other(beside) or "status" in label.names):
            yield self._value(beside, "right", name)
        if below is not None and not self._is_other(below):
            yield self._value(below, "below", name)
        above = self.near(line, below=self._is_captioned)
        if above is not None and not self._is_other(above):
            yield Value(above.text, (above,), "above", name)

    @functools.cached_property
    def _is_captioned(self) -> bool:
        """Whether this screen sets labels below their values, as captions: most are nearer to the line above
        them.
        """
        nearer = 0
        for label in self.labels:
            if not label.is_whole or self.beside(label.line) is not None:
                continue
            above, below = self.near(label.line, below=False), self.near(label.line, below=True)
            up = label.line.top - above.bottom if above else NO_GAP
            down = below.top - label.line.bottom if below else NO_GAP
            nearer += (up < NEARER * down) - (down < NEARER * up)
        return nearer >= LEAST_CAPTIONS

    def _is_other(self, line: Line) -> bool:
        """Whether a line is another label, with or without its value."""
        return self.is_label(line) or self.begins_label(line)

    def _rest(self, label: Label) -> str:
        """What follows a label on its line, up to the next label."""
        text = label.line.text
        following = [
            other.start
            for other in self.labels
            if other.line is label.line
            and other.start >= label.end
            and (other.colon or (other.is_first and not _is_part(label, other, text)))
        ]
        rest = text[label.end : min(following, default=len(text))].lstrip(" .…")
        sign = _SIGN.match(rest)
        return (sign[1] if sign else "") + _IS.sub("", rest.strip(_AROUND)).strip()

    def _continued(self, label: Label, rest: str) -> tuple[Line, ...]:
        """The line of a label and those into which the paragraph that it begins was wrapped."""
        block = self._block.get(id(label.line))
        if block is None or not label.line.text.rstrip(_AROUND).endswith(rest.rstrip(_AROUND)):
            return (label.line,)
        at = next(number for number, one in enumerate(block.lines) if one is label.line)
        wide = max(line.right for line in block.lines)
        found = [label.line]
        for line in block.lines[at + 1 : at + MOST_WRAPPED]:
            if self.begins_label(line) or _has_room(found[-1], line, wide):
                break
            found.append(line)
        return tuple(found)

    def _value(self, line: Line, where: Where, label: str) -> Value:
        """A value with the lines into which it was wrapped."""
        lines = [line]
        while (
            not self._is_captioned
            and len(lines) < MOST_WRAPPED
            and (below := self.near(lines[-1], below=True)) is not None
        ):
            last = lines[-1]
            if (
                self.is_label(below)
                or below.top - last.bottom > 0.7 * last.height
                or not 0.87 < below.height / max(1, last.height) < 1.15
                or self.begins_label(below)
                or self.beside(below) is not None
                or any(other.right <= below.left for other in self._row[id(below)].lines)
            ):
                break
            lines.append(below)
        return Value(joined(one.text for one in lines), tuple(lines), where, label)

    def begins_label(self, line: Line) -> bool:
        """Whether a line is a label with a value behind a colon."""
        return any(label.line is line and label.start == 0 and label.colon for label in self.labels)

    def beside(self, line: Line) -> Line | None:
        """The line at the right of a line in its row."""
        row = self._row.get(id(line))
        return next((other for other in row.lines if other.left >= line.right - 2), None) if row else None

    def near(self, line: Line, *, below: bool) -> Line | None:
        """The nearest line in the column of a line, below or above it."""
        best: tuple[int, Line] | None = None
        for other in self._layout.lines:
            gap = other.top - line.bottom if below else line.top - other.bottom
            reach = FAR_BELOW * min(max(line.height, other.height), 2 * line.height)
            if other is line or not -0.4 * min(line.height, other.height) < gap < reach:
                continue
            if _in_column(line, other) and (best is None or gap < best[0]):
                best = gap, other
        return best[1] if best else None

    def _set_below(self, line: Line) -> Line | None:
        """The value of a label that is too long to be in its row: right below, and at the right edge of other
        values.
        """
        for other in self._layout.lines:
            if (
                -0.2 * line.height < other.top - line.bottom < 0.8 * line.height
                and other.left > line.left + line.height
                and len(self._row[id(other)].lines) == 1
                and any(abs(other.right - right) < 0.3 * line.height for right in self._edges)
            ):
                return other
        return None

    @functools.cached_property
    def _edges(self) -> set[int]:
        """The right edges of the values that are beside their labels."""
        beside = (self.beside(label.line) for label in self.labels if label.is_whole)
        return {value.right for value in beside if value is not None}

    def _is_column(self, line: Line, beside: Line, below: Line) -> bool:
        """Whether a row is the heads of columns: below each is something, set at its left edge."""
        under = self.near(beside, below=True)
        return (
            not self.is_label(below)
            and under is not None
            and not self.is_label(under)
            and abs(below.left - line.left) < line.height
            and abs(under.left - beside.left) < line.height
            and abs(under.right - beside.right) > 2
        )


def _has_room(line: Line, below: Line, wide: int) -> bool:
    """Whether the first word of the line below would fit behind a line, which then was not wrapped."""
    word = below.text.split(" ")[0]
    many = 1 if is_chinese(word[:1]) else len(word)
    return line.right + (many + 1) * (below.right - below.left) / max(1, len(below.text)) < wide


def _is_part(label: Label, other: Label, text: str) -> bool:
    """Whether another label is a word of the value of a label: "Seat: Row F, Seat 12", "Status: Shipped"."""
    begins = not text[label.end : other.start].strip(" :：")
    return not label.names.isdisjoint(other.names) or (begins and label.colon and OTHER in other.names)


def labels_in(line: Line) -> list[Label]:
    """The labels on a line, the longest where some begin at the same place."""
    text = line.text[:300]
    folded = fold(text).replace("：", ":")
    found: list[Label] = []
    place = 0
    while place < len(folded):
        length = _label_at(folded, place)
        if not length:
            place += 1
            continue
        end = place + length
        rest = folded[end:].lstrip(" .")
        before = folded[:place].rstrip()
        colon = rest[:1] in (":", "#") or rest[:2] == "no"
        is_first = (
            not before or before[-1] in ":|·•,;，；/()（）" or folded[max(0, place - 2) : place] == "  "
        )
        is_whole = not before and len(rest.strip(" :#.*?>›")) == 0 and len(text) <= MAX_LABEL
        names = _labels()[_squeezed(folded[place:end])]
        found.append(Label(names, line, place, end, is_first, is_whole, colon))
        place = end
    return found


def line_text(label: Label) -> str:
    """A label as it is written."""
    return label.line.text[label.start : label.end]


def _label_at(folded: str, place: int) -> int:
    """The length of the longest label at a place, 0 where none is."""
    first = folded[place]
    chinese = is_chinese(first)
    if first.isspace() or (
        place and not chinese and folded[place - 1].isalnum() and folded[place - 1].isascii()
    ):
        return 0
    for label in _beginnings().get(folded[place : place + 2], ()):
        if folded.startswith(label, place):
            end = place + len(label)
            if is_chinese(label[-1]) or not folded[end : end + 1].isalpha():
                return len(label)
    return 0


def _in_column(line: Line, other: Line) -> bool:
    """Whether two lines are set at the same left edge, right edge or middle."""
    slack = 1.2 * min(line.height, other.height)
    return (
        abs(line.left - other.left) < slack
        or abs(line.right - other.right) < 0.6 * slack
        or abs(line.left + line.right - other.left - other.right) < slack
    )


def _squeezed(label: str) -> str:
    return label.replace(" ", "")


@functools.cache
def _labels() -> dict[str, frozenset[str]]:
    """The fields of each label, folded and without blanks."""
    found: dict[str, set[str]] = {}
    for name, languages in wordlists.table("fields").items():
        for words in languages.values():
            for word in re.split(r",\s+", words.strip()):
                found.setdefault(_squeezed(fold(word.strip())), set()).add(name)
    return {label: frozenset(names) for label, names in found.items() if label}


@functools.cache
def _continental() -> frozenset[str]:
    """The labels of German, French, Spanish, Italian, Dutch and Portuguese that are none of English."""
    found: dict[str, set[str]] = {}
    for languages in wordlists.table("fields").values():
        for language, words in languages.items():
            for word in re.split(r",\s+", words.strip()):
                found.setdefault(_squeezed(fold(word.strip())), set()).add(language)
    return frozenset(label for label, languages in found.items() if not languages & {"en", "zh", "ja"})


@functools.cache
def _beginnings() -> dict[str, list[str]]:
    """The labels by their first two characters, the longest first, with and without blanks."""
    written = set(_labels())
    for languages in wordlists.table("fields").values():
        for words in languages.values():
            written |= {fold(word.strip()) for word in re.split(r",\s+", words.strip())}
    found: dict[str, list[str]] = {}
    for label in sorted(written, key=len, reverse=True):
        found.setdefault(label[:2], []).append(label)
    return found
