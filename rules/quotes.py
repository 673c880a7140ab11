"""Which lines of a screenshot answer a question, by plain rules: those with its words, and near them what is
wished for, a date for "when" or a price for "how much".
"""

from collections.abc import Sequence
from typing import NamedTuple

from rules import questions
from rules.questions import Question

MOST_LINES = 400  # of a screenshot that are looked at
AROUND = 1  # lines quoted before and after the one that answers
MOST_QUOTED = 5  # lines
MAX_LINE = 160  # characters of a quoted line

ENOUGH = 0.6  # share of the words that must be on the screenshot
# Parts of a score: the words on a line, those beside it, what is wished for near it, and a label of that.
ON_LINE, BESIDE, WISHED, LABELLED = 0.6, 0.4, 0.5, 0.3
NEAR = 3  # lines: at this distance, what is wished for counts half


class Quote(NamedTuple):
    """The lines that answer, and how well they do: 0 when the words are not there."""

    score: float
    lines: list[str]
    has_wish: bool


def best(question: Question, text: str) -> Quote:
    """The best lines of a screenshot's text for a question."""
    lines = [stripped for line in text.splitlines()[:MOST_LINES] if (stripped := line.strip())]
    wanted = {questions.stem(word).casefold() for word in question.wanted}
    helpful = {questions.stem(word).casefold() for word in question.helpful}
    folded = [line.casefold() for line in lines]
    present = [{word for word in wanted if word in line} for line in folded]
    if not wanted or len(set().union(*present)) < ENOUGH * len(wanted):
        return Quote(0.0, [], False)
    also = [{word for word in helpful if word in line} for line in folded]
    answering = [at for at, line in enumerate(lines) if questions.answers(question.wish, line)]
    labelled = {at for at in answering if _has_label(question, folded, at)}
    score, place, answer = 0.0, 0, None
    for at in range(len(lines)):
        if not present[at] and not also[at]:
            continue
        words = (len(present[at]) + 0.5 * len(also[at])) / (len(wanted) + 0.5 * len(helpful))
        beside = set().union(*present[max(0, at - 1) : at + 2])
        of_line = ON_LINE * words + BESIDE * len(beside) / len(wanted)
        near = max(
            (
                (_nearness(at, other) * (WISHED + LABELLED * (other in labelled)), -other)
                for other in answering
            ),
            default=None,
        )
        total = of_line + (near[0] if near else 0.0)
        if total > score:
            score, place, answer = total, at, -near[1] if near else None
    return Quote(score, [line[:MAX_LINE] for line in _quoted(lines, place, answer)], answer is not None)


def _nearness(at: int, other: int) -> float:
    """1 on the same line, falling with the distance; a label comes before its value."""
    return NEAR / (NEAR + abs(other - at) + (0.5 if other < at else 0.0))


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
