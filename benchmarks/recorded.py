"""Screens with labelled records: receipts, bills, transfers, parcels, tickets, bookings, appointments, codes
and contacts in several languages, and screens on which there is nothing to pay, book or receive.

They are in `records.txt`, which is for judging only: `report` prints how many types, fields and agenda
entries are right, never which. Whoever changes the rules reads neither that file nor what the rules make of
it.
"""

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from benchmarks import drawn
from engines.lines import Page
from engines.records import TYPES, Record, Value
from rules.judge import judge
from rules.occasions import Occasion, occasions
from rules.wordmarks import folded

SCREENS = Path(__file__).with_name("records.txt")
ALIKE = 0.8  # part of a list's entries that must be found


class Case(NamedTuple):
    """A drawn screen, when it was taken, the type of its record ("" for none), its fields as they are
    written in the file, and its agenda entries with the words of a title.
    """

    screen: drawn.Screen
    taken: datetime
    type: str
    fields: dict[str, str]
    events: list[tuple[str, str]]


class Score(NamedTuple):
    """What was expected, what was found, and how much of that is right."""

    expected: int
    found: int
    right: int

    def __str__(self) -> str:
        precision, recall = self.right / max(1, self.found), self.right / max(1, self.expected)
        return f"{self.right} of {self.expected}, precision {precision:.2f}, recall {recall:.2f}"


def cases() -> list[Case]:
    """All screens of the file."""
    blocks = SCREENS.read_text(encoding="utf-8").split("\n@ ")[1:]
    return [_case(block.strip().splitlines()) for block in blocks]


def report(read: Callable[[bytes], Page]) -> None:
    """Print the counts. `read` reads a drawn picture."""
    print("\n== records on drawn screens (judging: counts only)")
    total: Counter[str] = Counter()
    for case in cases():
        page = read(drawn.draw(case.screen))
        language = (
            "zh" if any("\u2e80" < letter < "\uffef" for row in case.screen.rows for letter in row) else "en"
        )
        found = judge(page, analyser="judged", language=language, taken=case.taken)
        total += _fields(case, found.records)
        total += _agenda(case, occasions(page, case.taken))
    print(f"types: {Score(total['types'], total['types found'], total['types right'])}")
    print(f"fields: {Score(total['fields'], total['fields found'], total['fields right'])}")
    print(f"agenda: {Score(total['events'], total['events found'], total['events right'])}")
    print(f"agenda titles with half of a person's words: {total['titled']} of {total['events right']}")


def _case(rows: list[str]) -> Case:
    name, kind, taken = rows[0].removeprefix("@ ").split()
    labels = [row.partition(" = ")[::2] for row in rows[1:] if re.match(r"[A-Za-z]+ = ", row)]
    fields = {key: value for key, value in labels if key != "event"}
    events = [
        (start, title)
        for key, value in labels
        if key == "event"
        for start, _, title in [value.partition(" ")]
    ]
    drawn_rows = tuple(row for row in rows[1:] if not re.match(r"[A-Za-z]+ = ", row))
    screen = drawn.Screen(name, (), (), "", (), drawn_rows)
    return Case(screen, datetime.fromisoformat(taken), "" if kind == "-" else kind, fields, events)


def _fields(case: Case, found: list[Record]) -> Counter[str]:
    """Of the record of the right type; a record of things on a screen that has none counts as found."""
    counts: Counter[str] = Counter()
    counts["types"] = int(bool(case.type))
    bought = [record for record in found if record.type in _THINGS]
    first = bought[0] if case.type == "" and bought else found[0] if case.type and found else None
    counts["types found"] = int(first is not None)
    counts["types right"] = int(first is not None and first.type == case.type)
    counts["fields"] = len(case.fields)
    if first is not None:
        counts["fields found"] = len(first.fields)
        if first.type == case.type:
            counts["fields right"] = sum(
                field.name in case.fields and is_equal(field.value, case.fields[field.name])
                for field in first.fields
            )
    return counts


_THINGS = frozenset(list(TYPES)[: list(TYPES).index("Recipe")])  # what is paid, booked, received


def _agenda(case: Case, found: list[Occasion]) -> Counter[str]:
    counts: Counter[str] = Counter({"events": len(case.events), "events found": len(found)})
    for start, title in case.events:
        here = next((one for one in found if one.starts_at == start), None)
        if here is not None:
            counts["events right"] += 1
            wanted = words(title)
            counts["titled"] += 2 * len(wanted & words(here.title)) >= len(wanted)
    return counts


def is_equal(value: Value, expected: str) -> bool:
    """Whether a value in normal form is what a label says."""
    if isinstance(value, list):
        names = {folded(name) for name in expected.split(" | ")}
        first = {folded(next(iter(entry.values()))) for entry in value}
        return len(names & first) >= ALIKE * max(len(names), len(first))
    if isinstance(value, dict):
        number, _, currency = expected.partition(" ")
        try:
            return Decimal(value["value"]) == Decimal(number) and value["currency"] == currency
        except InvalidOperation:
            return False
    return folded(value) == folded(expected) or (
        len(expected) > 3 and folded(expected) in folded(value) and len(value) < 2 * len(expected)
    )


def words(text: str) -> set[str]:
    """Words, and pairs of Chinese characters."""
    found = set(re.findall(r"[a-zäöüß0-9.,]+", text.casefold()))
    for run in re.findall(r"[\u4e00-\u9fff]+", text):
        found |= {run[at : at + 2] for at in range(max(1, len(run) - 1))}
    return found
