"""What of a screen's records is an entry of the agenda: a flight departs, a bill is due, a hotel is entered.

Which fields these are and what the entry is called is `words/agenda.toml`.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import msgspec

from engines.records import TYPES, Field, Record
from rules import templates, wordlists
from rules.layout import is_chinese
from rules.view import View
from text import one_line, shortened

MAX_TITLE = 120
MAX_QUOTE = 300
# A day further away is misread, or of something that is over.
LONG_AGO, FAR = timedelta(days=400), timedelta(days=3 * 366)
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


def planned(records: Iterable[Record], view: View) -> list[Occasion]:
    """The entries of the agenda that the records of a screen make, in their order. The title is "" where a
    record has no name.
    """
    found = []
    for record in records:
        shape = _table().get(record.type)
        if shape is None:
            continue
        for name, kind in shape["fields"].items():
            field = next((field for field in record.fields if field.name == name), None)
            starts = record.text(name)
            if field is None or not starts:
                continue
            if record.source == "person" and not field.lines:
                # What a person has typed is on no line: the quote is the record's first one.
                lines = [line for other in record.fields for line in other.lines][:1]
                field = msgspec.structs.replace(field, lines=lines)
            if not field.lines or field.lines[0] >= len(view.page.lines):
                continue
            title = _title(record, shape, field, view)
            if _is_to_come(starts, kind, view):
                ends = record.text(shape.get("ends", {}).get(name, "")) or None
                found.append(_occasion(kind, title, field, ends, view))
    return found


def again(title: str, starts_at: str, records: Iterable[Record]) -> str:
    """The title of an entry in the language that is spoken, where a template has made it of one of these
    records; any other title stays as it is, as one that has a label of the screen.
    """
    wanted = templates.spoken("")
    for record in records if wanted else ():
        shape = _table().get(record.type)
        if shape is None or starts_at not in map(record.text, shape["fields"]):
            continue
        written = _written(record)
        said = {
            language: [
                shortened(text, MAX_TITLE)
                for one in shape[language]
                if (text := templates.complete(one, written, language))
            ]
            for language in templates.LANGUAGES
        }
        if said[wanted] and title not in said[wanted] and any(title in texts for texts in said.values()):
            return said[wanted][0]
    return title


def lines_of_days(record: Record) -> set[int]:
    """The lines of the days and times of a record."""
    forms = TYPES[record.type].fields
    return {
        line for field in record.fields if forms[field.name].kind in ("day", "time") for line in field.lines
    }


def _occasion(kind: str, title: str, field: Field, ends: str | None, view: View) -> Occasion:
    starts = str(field.value)
    if ends is not None and (ends <= starts or len(ends) != len(starts)):
        ends = None
    line = field.lines[0]
    quote = one_line(view.page.lines[line].text)[:MAX_QUOTE]
    return Occasion(kind, shortened(title, MAX_TITLE), starts, ends, len(starts) == 10, quote, line)


def _is_to_come(starts: str, kind: str, view: View) -> bool:
    if view.taken is None:
        return True
    today, day = view.taken.date(), date.fromisoformat(starts[:10])
    return today - LONG_AGO <= day <= today + FAR and (day >= today or kind in LASTING)


def _title(record: Record, shape: dict[str, Any], field: Field, view: View) -> str:
    """What an entry is called: the first of its type's titles whose fields are there."""
    language = "zh" if sum(map(is_chinese, view.layout.content)) > 0.2 * len(view.layout.content) else "en"
    written = _written(record)
    for title in shape[language]:
        label = _label(field, view) if "{label}" in title else ""
        if "{label}" in title and not label:
            continue
        said = templates.complete(title.replace("{label}", label), written, language)
        if said:
            return said
    return ""


def _written(record: Record) -> Record:
    """A record whose codes are as they are on the screen, with their blanks."""
    fields = [
        msgspec.structs.replace(one, value=one.text)
        if TYPES[record.type].fields[one.name].kind == "code" and one.text.replace(" ", "") == one.value
        else one
        for one in record.fields
    ]
    return msgspec.structs.replace(record, fields=fields)


def _label(field: Field, view: View) -> str:
    """The label that is on the line of a field, or beside or above it."""
    name = {"checkinTime": "checkin", "checkoutTime": "checkout"}.get(field.name, "")
    found = view.pairs.find(name, view.moments.day) if name else None
    return found[1].label if found else ""


@functools.cache
def _table() -> dict[str, Any]:
    return wordlists.table("agenda")
