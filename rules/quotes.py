"""Which lines of a screenshot answer a question, by plain rules: those with its words, and near them what is
wished for, a date for "when" or a price for "how much".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import terms
from rules import questions
from rules.questions import Question

MOST_LINES = 400  # of a screenshot that are looked at
AROUND = 1  # lines quoted before and after the one that answers
MOST_QUOTED = 5  # lines
MAX_LINE = 160  # characters of a quoted line

ENOUGH = 0.6  # share of the words that must be on the screenshot
# Parts of a score: the words on a line, those beside it, what is wished for near it, and a label of that.
ON_LINE, BESIDE, WISHED, LABELLED = 0.6, 0.4, 0.5, 0.3
BELOW = 0.9  # of a word beside: a name is more often above what belongs to it than below
NEAR = 3  # lines: at this distance, what is wished for counts half
ABOVE = 2  # lines: so much farther is what stands above a name than what stands below it
MOST_ENTRIES = 12  # lines of a list under its heading
MAX_LABEL = 24  # characters
_UNIT = re.compile(r"\([^()]*\)$")  # behind a label
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


def best(question: Question, text: str, about: str = "") -> Quote:
    """The best lines of a screenshot's text for a question. `about` is what else is known of it, where some
    of the words may be.
    """
    lines = [stripped for line in text.splitlines()[:MOST_LINES] if (stripped := line.strip())]
    wanted = questions.pieces(question.wanted)
    folded = [terms.fold(line).casefold() for line in lines]
    present = [{word for word in wanted if questions.is_on(word, line)} for line in folded]
    around = terms.fold(about).casefold()
    there = set().union(*present)
    if not wanted or not (there or around):
        return Quote(0.0, [], False)
    there |= {piece for piece in wanted if questions.is_on(piece, around)}
    pieces = [questions.pieces([word]) for word in question.wanted]
    if sum(len(of & there) >= ENOUGH * len(of) for of in pieces) < ENOUGH * len(pieces):
        return Quote(0.0, [], False)
    score, place, answer = _best_place(question, lines, present, pieces)
    if questions.wants_entries(question):
        quoted = lines[place : place + MOST_ENTRIES]
    else:
        quoted = _quoted(lines, place, answer) if score else []
    return Quote(
        score or LEAST,
        [line[:MAX_LINE] for line in quoted],
        answer is not None,
        _labelled(question, lines, folded),
        lines[answer][:MAX_LINE] if answer is not None else "",
        answer is not None and abs(answer - place) <= 1 and _share(present[place], pieces) >= ENOUGH,
        frozenset(present[answer] if answer is not None else ()),
    )


def _best_place(
    question: Question, lines: list[str], present: list[set[str]], pieces: list[set[str]]
) -> tuple[float, int, int | None]:
    """The score and the index of the best line with words of the question, and of the line that answers near
    it. `present` has the pieces of words that are on each line, `pieces` those of each word.
    """
    folded = [terms.fold(line).casefold() for line in lines]
    helpful = questions.pieces(question.helpful)
    also = [{word for word in helpful if word in line} for line in folded]
    # A line that asks does not answer, nor does what is left on an account.
    worth = {
        at: WISHED * fit + LABELLED * _has_label(question, folded, at)
        for at, line in enumerate(lines)
        if (fit := questions.answers(question, line) if question.wish else bool(also[at]))
        and not line.endswith(("?", "？"))
        and not (question.wish == "amount" and _is_left(question, folded, at))
    }
    best: tuple[float, int, int | None] = (0.0, 0, None)
    for at in range(len(lines)):
        if not present[at] and not also[at]:
            continue
        on_line = len(pieces) * _share(present[at], pieces) + 0.5 * len(also[at])
        above = set().union(*present[max(0, at - 1) : at + 1])
        below = set().union(*present[at + 1 : at + 2]) - above
        beside = _share(above, pieces) + BELOW * _share(below, pieces)
        of_line = ON_LINE * on_line / max(1, len(pieces) + 0.5 * len(helpful)) + BESIDE * beside
        before = question.wish == "who" and len(lines[at]) > MAX_LABEL
        near = max(
            ((_nearness(at, other, before=before) * fit, -other) for other, fit in worth.items()),
            default=None,
        )
        total = of_line + (near[0] if near else 0.0)
        if total > best[0]:
            best = total, at, -near[1] if near else None
    return best


def _share(found: set[str], pieces: list[set[str]]) -> float:
    """Which part of the words is there: each counts the same, since a long Chinese one has more pieces."""
    return sum(len(of & found) / len(of) for of in pieces) / max(1, len(pieces))


def _is_left(question: Question, folded: list[str], at: int) -> bool:
    """Whether a line has the balance of an account, which nobody asks for by "how much"."""
    around = " ".join(folded[max(0, at - 1) : at + 1])
    return any(word in around and word not in question.text for word in questions.LEFT)


def _labelled(question: Question, lines: list[str], folded: list[str]) -> str:
    """The value of a label that the question names, like "Seat" or 检票口: what stands behind it on its line,
    or on the next line; "" where there is none. The longest label counts.
    """
    named = _labels_of(question)
    best, value = (False, 0), ""
    for at, line in enumerate(folded):
        label, colon, behind = line.replace("：", ":").partition(":")
        label = _UNIT.sub("", label).strip()
        worth = (named.get(label, False), len(label))
        if not label or len(label) > MAX_LABEL or label not in named or worth <= best:
            continue
        rest = lines[at][-len(behind) :].strip() if colon and behind.strip() else ""
        rest = rest or (lines[at + 1] if at + 1 < len(lines) and folded[at + 1] not in named else "")
        if rest and _fits(question, rest, is_field=worth[0]):
            best, value = worth, rest[:MAX_LINE]
    return value


def _labels_of(question: Question) -> dict[str, bool]:
    """The texts that a label may have: what the question calls what it wants, and other names of that; each
    with whether it is the name of a field or a thing, and not only a word of the question.
    """
    names = questions.names_of(questions.FIELDS, question.text)
    found: dict[str, bool] = {}
    for word in (*question.words, *question.helpful):
        plain = terms.fold(word).casefold()
        is_name = not names or any(plain in questions.all_names(questions.FIELDS[key]) for key in names)
        if (
            is_name and not plain[0].isdigit() and plain in question.text
        ):  # and not only in the question before
            forms = [
                plain,
                *(form.format(plain) for form in questions.LABELS),
                *questions.SAME.get(plain, ()),
            ]
            found |= dict.fromkeys(forms, False)
    return found | {name: True for key in names for name in questions.all_names(questions.FIELDS[key])}


def _fits(question: Question, value: str, *, is_field: bool) -> bool:
    """Whether a value is of the kind that is wished for. Behind a word that names no field, it must be, or be
    short and have digits: a heading is no label.
    """
    if question.wish in ("when", "number", "long") or (question.wish and not is_field):
        return questions.answers(question, value) > 0
    if question.wish or questions.wants_entries(question):
        return is_field
    return is_field or (len(value) <= MAX_LABEL and any(map(str.isdigit, value)))


def _nearness(at: int, other: int, *, before: bool) -> float:
    """1 on the same line, falling with the distance. What answers comes behind a label or a name, and
    `before` a text of whose author the name is wanted.
    """
    is_far = other != at and (other < at) != before
    return NEAR / (NEAR + abs(other - at) + (ABOVE if is_far else 0.0))


def _has_label(question: Question, lines: Sequence[str], at: int) -> bool:
    """Whether the line, or the one before it, has a word like "Departure" or "Total"."""
    return any(questions.labels(question.wish, line) for line in lines[max(0, at - 1) : at + 1])


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
