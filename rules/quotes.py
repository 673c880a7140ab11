"""Which lines of a screenshot answer a question, by plain rules: those with its words, and near them what is
wished for, a date for "when" or a price for "how much".
"""

import bisect
import re
from collections.abc import Sequence
from typing import NamedTuple

import terms
from rules import questions, wished
from rules.questions import Question
from writings import figures

MOST_LINES = 400  # of a screenshot that are looked at
AROUND = 1  # lines quoted before and after the one that answers
MOST_QUOTED = 5  # lines
MAX_LINE = 160  # characters of a quoted line

ENOUGH = 0.6  # share of the words that must be on the screenshot
# Parts of a score: the words on a line, those beside it, what is wished for near it, and a label of that.
ON_LINE, BESIDE, WISHED, LABELLED = 0.6, 0.4, 0.5, 0.3
BELOW = 0.9  # of a word beside: a name is more often above what belongs to it than below
FARTHEST = 12  # rows between a name and what answers
NEAR = 3  # lines: at this distance, what is wished for counts half
ABOVE = 3  # lines: so much farther is what stands above a name than what stands below it
MOST_ENTRIES = 12  # lines of a list under its heading
MOST_SAID = 3  # lines of what somebody says: the name, the time, the words
FEWEST_COLUMNS = 3  # of a table
MAX_LABEL = 24  # characters
_NAME = re.compile(r"\b[A-Z][^\W\d_]{2,}\b")
_UNIT = re.compile(r"\([^()]*\)$")  # behind a label
REACH = 3  # rows in which the words of a question belong together
HEADING = 4  # rows at the top of a page
DAY = "="  # the piece of a day of the calendar
LEAST = 0.1  # score where the words are only in what is known about a screenshot


class Quote(NamedTuple):
    """The lines that answer, and how well they do: 0 when the words are not there."""

    score: float
    lines: list[str]
    has_wish: bool
    value: str = ""  # what stands behind or below the label that the question names
    answer: str = ""  # the line that has what is wished for
    is_beside: bool = False  # that line is beside one with the words
    own: frozenset[str] = frozenset()  # the words of the question on that line


class _Text:
    """The lines of a text, in which a tab is between those side by side, and what of the question is on each.
    A word or a name of the question is a set of pieces, a day of the calendar is one piece.
    """

    def __init__(self, question: Question, text: str, about: str):
        rows = [[cell.strip() for cell in row.split("\t") if cell.strip()] for row in text.splitlines()]
        cells = [(cell, at) for at, row in enumerate(filter(None, rows)) for cell in row][:MOST_LINES]
        self.lines = [cell for cell, _ in cells]
        self.rows = [row for _, row in cells]
        self.folded = [terms.fold(line).casefold() for line in self.lines]
        self.units = [questions.pieces([word]) for word in question.wanted]
        days = [_figures_on(line) for line in self.folded]
        self.units += [{DAY}] if question.days else []
        wanted = set().union(*self.units) - {DAY}
        names = [of for word, of in zip(question.wanted, self.units, strict=False) if " " in word]
        self.present = [
            _whole({word for word in wanted if questions.is_on(word, line)}, names)
            | ({DAY} if not question.days.isdisjoint(on) else set())
            for line, on in zip(self.folded, days, strict=True)
        ]
        around = terms.fold(about).casefold()
        self.known = {piece for piece in wanted if questions.is_on(piece, around)}
        said = _figures_on(around)
        self.known |= {DAY} if not question.days.isdisjoint(said) else set()
        words = (word for line in self.lines for word in _NAME.findall(line))
        self.months = _months_of(set().union(*days))
        self.months |= {f"{number:02}" for word in words if (number := figures.MONTHS.get(word.casefold()))}
        self.known_months = _months_of(said)

    def near(self, *places: int) -> set[str]:
        """The pieces near these lines, in the heading of the page, and in what else is known of it."""
        rows = {self.rows[at] + by for at in places for by in range(-REACH, REACH + 1)} | set(range(HEADING))
        return self.known.union(*(on for on, row in zip(self.present, self.rows, strict=True) if row in rows))

    def on_rows(self, *rows: int) -> set[str]:
        """The pieces on these rows."""
        return set().union(*(self.present[at] for row in rows for at in self._row(row)))

    def is_of(self, month: str) -> bool:
        """Whether the page names this month, or none."""
        return not month or not self.months or month in self.months | self.known_months

    def covers(self, found: set[str]) -> bool:
        """Whether enough of the words are among these pieces."""
        enough = sum(len(of & found) >= ENOUGH * len(of) for of in self.units)
        return enough >= ENOUGH * len(self.units)

    def beside(self, at: int) -> int | None:
        """The line that belongs to a label: the one below it in a row of values under a row of labels, else
        the next one.
        """
        row, below = self._row(self.rows[at]), self._row(self.rows[at] + 1)
        if (
            len(row) == len(below) > 1
            and not any(map(self._has_digits, row))
            and all(map(self._has_digits, below))
        ):
            return below[row.index(at)]
        return at + 1 if at + 1 < len(self.lines) else None

    def in_column(self, at: int) -> int | None:
        """The line in the column of a table that this line heads, in the row with most of the other words of
        the question; None where it heads no column. Of a row with more cells than headings, the last ones
        are theirs.
        """
        heads = self._row(self.rows[at])
        if len(heads) < FEWEST_COLUMNS or any(map(self._has_digits, heads)):
            return None
        below = (self._row(row) for row in range(self.rows[at] + 1, self.rows[-1] + 1))
        others = [of - self.present[at] for of in self.units]
        shares = [
            (_share(self.on_rows(self.rows[row[0]]), others), row) for row in below if len(row) >= len(heads)
        ]
        share, row = max(shares, key=lambda one: one[0], default=(0.0, []))
        return row[heads.index(at) - len(heads)] if share else None

    def distance(self, at: int, other: int) -> float:
        """How many rows two lines are apart; of a row of values, only its own belongs to a label."""
        apart = abs(self.rows[other] - self.rows[at])
        if (
            apart == 1
            and other > at
            and len(self._row(self.rows[at])) == len(self._row(self.rows[other])) > 1
        ):
            return 0 if other == self.beside(at) else apart + ABOVE
        return apart

    def _row(self, number: int) -> list[int]:
        first = bisect.bisect_left(self.rows, number)
        return list(range(first, bisect.bisect_right(self.rows, number)))

    def _has_digits(self, at: int) -> bool:
        return any(map(str.isdigit, self.lines[at]))


def best(question: Question, text: str, about: str = "") -> Quote:
    """The best lines of a screenshot's text for a question. `about` is what else is known of it, where some
    of the words may be.
    """
    page = _Text(question, text, about)
    there = page.known.union(*page.present)
    if not page.units or not there or not page.covers(there) or not page.is_of(question.month):
        return Quote(0.0, [], False)
    score, place, answer = _best_place(question, page)
    if score and not page.covers(page.near(place, place if answer is None else answer)):
        return Quote(0.0, [], False)
    lines = page.lines
    if questions.wants_entries(question):
        quoted = lines[place : place + MOST_ENTRIES]
    elif score and answer is None and questions.wants_words(question):
        quoted = lines[place : place + MOST_SAID]
    else:
        quoted = _quoted(lines, place, answer) if score else []
    return Quote(
        score or LEAST,
        [line[:MAX_LINE] for line in quoted],
        answer is not None,
        _labelled(question, page),
        lines[answer][:MAX_LINE] if answer is not None else "",
        answer is not None
        and abs(page.rows[answer] - page.rows[place]) <= 1
        and _share(page.present[place], page.units) >= ENOUGH,
        frozenset(page.present[answer] - {DAY} if answer is not None else ()),
    )


def _best_place(question: Question, page: _Text) -> tuple[float, int, int | None]:
    """The score and the index of the best line with words of the question, and of the line that answers near
    it.
    """
    lines, folded, present, units = page.lines, page.folded, page.present, page.units
    helpful, sought = questions.pieces(question.helpful), questions.pieces(question.sought)
    also = [{word for word in helpful if questions.is_on(word, line)} for line in folded]
    asks_for = sought if any(sought & on for on in also) else helpful
    # A line that asks does not answer, nor does what is left on an account.
    worth = {
        at: WISHED * fit + LABELLED * _has_label(question, folded, at)
        for at, line in enumerate(lines)
        if (fit := wished.answers(question, line) if question.wish else bool(also[at] & asks_for))
        and not line.endswith(("?", "？"))
        and not (question.wish == "amount" and _is_left(question, folded, at))
    }
    named = {at for at in worth if also[at] & sought and any(map(str.isdigit, lines[at]))}
    worth = {at: fit for at, fit in worth.items() if not named or at in named}
    best: tuple[float, int, int | None] = (0.0, 0, None)
    for at, row in enumerate(page.rows):
        if not present[at] and not also[at]:
            continue
        on_line = len(units) * _share(present[at], units) + 0.5 * len(also[at])
        above = page.on_rows(row - 1, row)
        below = page.on_rows(row + 1) - above
        beside = _share(above, units) + BELOW * _share(below, units)
        of_line = ON_LINE * on_line / max(1, len(units) + 0.5 * len(helpful)) + BESIDE * beside
        before = question.wish == "who" and len(lines[at]) > MAX_LABEL
        near = max(
            (
                (_nearness(page, at, other, before=before) * fit, -other)
                for other, fit in worth.items()
                if page.distance(at, other) <= FARTHEST
            ),
            default=None,
        )
        total = of_line + (near[0] if near else 0.0)
        if total > best[0]:
            best = total, at, -near[1] if near else None
    return best


def _whole(found: set[str], names: list[set[str]]) -> set[str]:
    """The pieces on a line, without a part of a name, which is another's."""
    parts = (of for of in names if len(of & found) < ENOUGH * len(of))
    return found.difference(*parts)


def _figures_on(line: str) -> set[str]:
    """The days and numbers on a folded line, as terms of the index."""
    return {one for figure in figures.find(line) for one in figure.terms}


def _months_of(terms_of_days: set[str]) -> set[str]:
    """The numbers of the months: the term of a day ends in its month and its number."""
    return {one[-5:-3] for one in terms_of_days if one.startswith(figures.MARK)}


def _share(found: set[str], pieces: list[set[str]]) -> float:
    """Which part of the words is there: each counts the same, since a long Chinese one has more pieces."""
    return sum(len(of & found) / len(of) for of in pieces if of) / max(1, len(pieces))


def _is_left(question: Question, folded: list[str], at: int) -> bool:
    """Whether a line has the balance of an account, which nobody asks for by "how much"."""
    around = " ".join(folded[max(0, at - 1) : at + 1])
    return any(word in around and word not in question.text for word in questions.LEFT)


def _labelled(question: Question, page: _Text) -> str:
    """The value of a label that a question names, like "Seat" or 检票口: what stands behind it on its line,
    beside or below it; "" where there is none. Of several, the one nearest to the other words counts, then
    the longest.
    """
    named = _labels_of(question, page.folded)
    best, value = (False, 0.0, 0), ""
    for at, line in enumerate(page.folded):
        label, colon, behind = line.replace("：", ":").partition(":")
        label = _UNIT.sub("", label).strip()
        if not label or len(label) > MAX_LABEL or label not in named:
            continue
        near = page.on_rows(*range(page.rows[at] - REACH, page.rows[at] + 2))
        worth = (named[label], _share(near, page.units), len(label))
        cell = page.in_column(at)
        if worth <= best or not page.covers(page.near(at, at if cell is None else cell)):
            continue
        rest = page.lines[at][-len(behind) :].strip() if colon and behind.strip() else ""
        beside = page.beside(at) if cell is None else cell
        rest = rest or (page.lines[beside] if beside is not None and page.folded[beside] not in named else "")
        is_new = terms.fold(rest).casefold() not in question.text
        if rest and is_new and (cell is not None or _fits(question, rest, is_field=worth[0])):
            best, value = worth, rest[:MAX_LINE]
    return value


def _labels_of(question: Question, folded: list[str]) -> dict[str, bool]:
    """The texts that a label may have: what the question calls what it wants, and other names of that; each
    with whether it is the name of a field or a thing, and not only a word of the question. What it asks for
    by "which" comes before its other words, if the page has it.
    """
    names = questions.names_of(questions.FIELDS, question.text)
    found: dict[str, bool] = {}
    sought = [
        word
        for word in question.sought
        if any(questions.is_on(one, text) for one in questions.pieces([word]) for text in folded)
    ]
    for word in sought or (*question.words, *question.helpful):
        plain = terms.fold(word).casefold()
        is_name = not names or any(plain in questions.all_names(questions.FIELDS[key]) for key in names)
        if (
            is_name and not plain[0].isdigit() and not _is_named(word) and plain in question.text
        ):  # and not only in the question before
            forms = [
                plain,
                *(form.format(plain) for form in questions.LABELS),
                *questions.SAME.get(plain, ()),
            ]
            found |= dict.fromkeys(forms, False)
    return found | {name: True for key in names for name in questions.all_names(questions.FIELDS[key])}


def _is_named(word: str) -> bool:
    """Whether a word of a question is a name, which is no label."""
    return " " in word or (word[:1].isupper() and not word.isupper())


def _fits(question: Question, value: str, *, is_field: bool) -> bool:
    """Whether a value is of the kind that is wished for. Behind a word that names no field, it must be, or be
    short and have digits: a heading is no label.
    """
    if question.wish in ("when", "number", "long") or (question.wish and not is_field):
        return wished.answers(question, value) > 0
    if question.wish or questions.wants_entries(question):
        return is_field
    return is_field or (len(value) <= MAX_LABEL and any(map(str.isdigit, value)))


def _nearness(page: _Text, at: int, other: int, *, before: bool) -> float:
    """1 on the same row, falling with the distance. What answers comes behind a label or a name, and `before`
    a text of whose author the name is wanted.
    """
    is_far = page.rows[other] != page.rows[at] and (other < at) != before
    return NEAR / (NEAR + page.distance(at, other) + (ABOVE if is_far else 0.0))


def _has_label(question: Question, lines: Sequence[str], at: int) -> bool:
    """Whether the line, or the one before it, has a word like "Departure" or "Total"."""
    return any(wished.labels(question.wish, line) for line in lines[max(0, at - 1) : at + 1])


def _quoted(lines: list[str], place: int, answer: int | None) -> list[str]:
    """The line with the words and the one that answers, with their neighbours if they are near."""
    first, last = sorted((place, place if answer is None else answer))
    if last - first + 1 + 2 * AROUND <= MOST_QUOTED:
        return lines[max(0, first - AROUND) : last + 1 + AROUND]
    if last - first < MOST_QUOTED:
        return lines[first : last + 1]
    if answer is None:
        return lines[first : last + 1]
    return [lines[place], *lines[max(0, answer - AROUND) : answer + 1 + AROUND]]
