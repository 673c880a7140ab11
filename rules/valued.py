"""The entities of a screen: those of its records and its labels, and then what the rest of its text has by
its form. Text that was wrapped is joined first, so a link, an address or a date is found as a whole.
"""

import itertools
from collections.abc import Iterable, Iterator

from engines.findings import Entity
from engines.lines import Line
from engines.records import TYPES, Record
from rules.accounts import ibans
from rules.entities import days_and_times, entities_in
from rules.pairs import FORMED
from rules.parcels import pickup_code, tracking_number
from rules.travel import code
from rules.view import View
from text import one_line

# The labels whose values are codes, with what reads them.
_CODES = (
    ("booking", code),
    ("ticket", code),
    ("tracking", tracking_number),
    ("pickup_code", pickup_code),
)


def entities(view: View, records: Iterable[Record]) -> list[Entity]:
    """The entities of a screen, each once: codes first."""
    found: dict[tuple[str, str], Entity] = {}
    of_text = (*_accounts(view), *entities_in(_text(view)), *_amounts(view))
    for entity in (*_labelled(view), *_of_records(view, records), *of_text):
        found.setdefault((entity.type, _key(entity)), entity)
    values = list(found.values())
    return [one for one in values if not any(_is_part(one, other) for other in values)]


def _labelled(view: View) -> Iterator[Entity]:
    for name, read in _CODES:
        for value, place in view.pairs.each(name, read, FORMED):
            if any(map(str.isdigit, value)) or name == "booking":
                yield Entity("code", value, place.label)


def _of_records(view: View, records: Iterable[Record]) -> Iterator[Entity]:
    """The days and times of records: that they are in one is the cue that others need."""
    for record in records:
        for field in record.fields:
            if TYPES[record.type].fields[field.name].kind in ("day", "time"):
                for line in field.lines:
                    for kind, value in days_and_times(view.page.lines[line].text):
                        yield Entity(kind, value)


def _accounts(view: View) -> Iterator[Entity]:
    """The IBANs whose check digits are right, also those that go on in the line below."""
    for start, end in ibans(view.text):
        yield Entity("iban", one_line(view.text.text[start:end]))


def _amounts(view: View) -> Iterator[Entity]:
    for line in view.layout.all_lines:
        for price in view.money.prices(line.text):
            if price.value.strip("-0."):
                yield Entity("amount", line.text[price.start : price.end].strip())


def _text(view: View) -> str:
    """The lines of a screen, and its paragraphs and wrapped links as one line each."""
    paragraphs = [block.text for block in view.layout.blocks if len(block.lines) > 1]
    return "\n".join((view.layout.content, *_links(view.layout.all_lines), *paragraphs))


def _links(lines: list[Line]) -> Iterator[str]:
    """The links that go on in the line below: it begins at the same edge and has no blank."""
    for line, below in itertools.pairwise(lines):
        start, end = line.text.rsplit(" ", 1)[-1], below.text.strip()
        is_wide = line.width >= 0.8 * below.width and any(sign in end for sign in "/-_=&?%0123456789")
        if (
            "://" in start
            and " " not in end
            and not end.startswith("http")
            and (start != line.text.strip() or abs(below.left - line.left) < line.height)
            and 0 <= below.top - line.top < 2.2 * line.height
            and (start[-1] in "/-_.=&?%" or is_wide)
        ):
            yield start + end


def _key(entity: Entity) -> str:
    value = entity.value.casefold()
    return value.replace(" ", "") if entity.type == "code" else value


def _is_part(one: Entity, other: Entity) -> bool:
    """Whether an entity is the beginning of another one, which was read in full."""
    if one is other or one.type != other.type or one.type not in ("link", "address", "code"):
        return False
    short, long = _key(one), _key(other)
    return len(short) >= 6 and short != long and long.startswith(short)
