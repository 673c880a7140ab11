"""What a person's correction of a record teaches about others of the same seller.

A mistake repeats itself in two ways. A name or words were misread, and the same words are on the other
screenshots. Or a value was taken from the wrong place, like the subtotal for the total: then the others have
theirs from a line with the same label, and the right value is on a line with the label that the corrected
value has. An amount or a day itself is never carried over: it is of one screenshot.
"""

from typing import NamedTuple

from engines.lines import Line
from engines.records import TYPES, Record, Value
from rules.layout import weight
from rules.view import View

LEAST_LABEL = 3  # letters of a label, Chinese ones counted double
_FOUND = ("amount", "day", "time")  # forms of values that are found by the label of their line


class Lesson(NamedTuple):
    """What was wrong in a field: its value, and the label of the line that it was taken from; and what is
    right. A label is "" where there is none.
    """

    type: str
    field: str
    before: Value
    wrong_label: str
    after: Value
    right_label: str


def lessons(read: Record, corrected: Record, view: View) -> list[Lesson]:
    """What a correction of a record on a screen teaches, a lesson for each field that is another now."""
    found = []
    for field in corrected.fields:
        before = next((one for one in read.fields if one.name == field.name), None)
        if before is None or before.value == field.value or isinstance(field.value, list):
            continue
        kind = TYPES[read.type].fields[field.name].kind
        wrong = right = ""
        if kind in _FOUND:
            wrong = _label_of(view, before.lines)
            labels = {label for label, value in _values(view, kind) if value == field.value}
            right = next(iter(labels)) if len(labels) == 1 else ""
            if not wrong or not right or wrong == right:
                continue
        found.append(Lesson(read.type, field.name, before.value, wrong, field.value, right))
    return found


def applied(lesson: Lesson, record: Record, view: View) -> Value | None:
    """The right value of a record with the same mistake; None where it has not made it, or where what is
    right is not certain.
    """
    field = next((one for one in record.fields if one.name == lesson.field), None)
    if record.type != lesson.type or field is None:
        return None
    if not lesson.wrong_label:
        return lesson.after if field.value == lesson.before else None
    if _label_of(view, field.lines) != lesson.wrong_label:
        return None
    kind = TYPES[record.type].fields[field.name].kind
    right = [value for label, value in _values(view, kind) if label == lesson.right_label]
    return right[0] if len(right) == 1 and right[0] != field.value else None


def _values(view: View, kind: str) -> list[tuple[str, Value]]:
    """The labels of a screen's rows with the amounts, or the days and times, in them."""
    found: list[tuple[str, Value]] = []
    for row in view.layout.rows:
        for line in row.lines:
            price = view.money.amount(line.text) or view.money.price(line.text)
            moment = view.moments.day(line.text)
            label = _label(view, line)
            if kind == "amount" and price is not None:
                found.append((label, price.normal()))
            elif kind in ("day", "time") and moment is not None and moment.day is not None:
                found.append((label, moment.begins if kind == "time" else f"{moment.day}"))
    return [(label, value) for label, value in found if label]


def _label_of(view: View, lines: list[int]) -> str:
    """The label of the first of a field's lines that has one."""
    places = {(line.left, line.top): line for row in view.layout.rows for line in row.lines}
    at = [view.page.lines[number] for number in lines if number < len(view.page.lines)]
    labels = (_label(view, places[line.left, line.top]) for line in at if (line.left, line.top) in places)
    return next(filter(None, labels), "")


def _label(view: View, line: Line) -> str:
    """The letters of the row of a line up to its value, or of the line above it."""
    row = next((row for row in view.layout.rows if any(one is line for one in row.lines)), None)
    before = [one for one in row.lines if one.left <= line.left] if row else [line]
    own = _letters("".join(one.text for one in before))
    if weight(own) >= LEAST_LABEL:
        return own
    above = view.pairs.near(line, below=False)
    label = _letters(above.text) if above is not None else ""
    return label if weight(label) >= LEAST_LABEL else ""


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text.casefold()))
