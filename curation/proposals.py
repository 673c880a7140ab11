"""What a person's correction of a record proposes for others of the same seller, and the corrections that the
person accepts; `/api/photos/{id}/proposals`.

Nothing is stored: the lessons of a correction follow from what was read and what the person says
(`rules/lessons.py`), and the proposals from those of the newest records of the same type and seller that make
the same mistake. What a person has corrected is in none. Each accepted proposal is a correction of its photo,
which "back to what was read" undoes.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple, cast

import msgspec
from flask import Blueprint

import readings
import records
from clock import local_time
from curation import words
from database import db
from engines.records import Record, Value
from errors import NotFound
from rules import lessons
from rules.layout import Layout
from rules.lessons import Lesson
from rules.view import View
from web import inputs, shapes

MOST_COMPARED = 200  # records of a seller, the newest


class Proposal(NamedTuple):
    """A field of the records of a seller, and its values before and after on each photo."""

    type: str
    field: str
    party: str
    changes: dict[int, tuple[Value, Value]]


class _Stored(NamedTuple):
    """What is known of a photo's records: those that were read, a person's, and the page."""

    read: list[Record]
    own: list[Record]
    view: View


def proposed(photo_id: int) -> list[Proposal]:
    """What a photo's correction proposes for others, field by field. Raises `NotFound`."""
    if not words.present([photo_id]):
        raise NotFound("Photo not found")
    stored = _stored(photo_id)
    if stored is None or not stored.own:
        return []
    found = []
    for lesson, party, name in _lessons(stored):
        changes = {
            other_id: (cast(Value, record.get(lesson.field)), value)
            for other_id, record, value in _same_mistakes(lesson, party, photo_id)
        }
        if changes:
            found.append(Proposal(lesson.type, lesson.field, name, changes))
    return found


def accept(photo_id: int, field: str, photo_ids: Sequence[int]) -> list[int]:
    """Correct a field on those of `photo_ids` for which it is proposed; returns them. Raises `NotFound`."""
    corrected = []
    with db.atomic():
        for proposal in proposed(photo_id):
            for other_id in photo_ids if proposal.field == field else ():
                if other_id in proposal.changes:
                    _correct(other_id, proposal, proposal.changes[other_id][1])
                    corrected.append(other_id)
    return corrected


def _correct(photo_id: int, proposal: Proposal, value: Value) -> None:
    stored = cast(_Stored, _stored(photo_id))
    own = [
        {
            "type": record.type,
            "fields": [
                {"name": field.name, "value": value}
                if record.type == proposal.type and field.name == proposal.field
                else msgspec.to_builtins(field)
                for field in record.fields
            ],
        }
        for record in stored.read
    ]
    texts = {"records": records.encoded(records.corrected(own, photo_id))}
    words.change(photo_id, words.Changes(texts=texts))


def _lessons(stored: _Stored) -> Iterator[tuple[Lesson, str, str]]:
    """What a photo's correction teaches, and about whom: the party as it was read, and its name."""
    for read, own in zip(stored.read, stored.own, strict=False):
        party = records.party_of(read)
        if read.type == own.type and party:
            for lesson in lessons.lessons(read, own, stored.view):
                yield lesson, party, records.named_in(own)[0] if records.named_in(own) else ""


def _same_mistakes(lesson: Lesson, party: str, photo_id: int) -> Iterator[tuple[int, Record, Value]]:
    for other_id in records.of_party(lesson.type, party, MOST_COMPARED):
        stored = _stored(other_id) if other_id != photo_id else None
        if stored is None or stored.own:
            continue
        for record in stored.read:
            value = (
                lessons.applied(lesson, record, stored.view) if records.party_of(record) == party else None
            )
            if value is not None:
                yield other_id, record, value
                break


def _stored(photo_id: int) -> _Stored | None:
    """None for a photo of which nothing was read."""
    row = db.execute_sql(
        """SELECT a.records, own.records, a.taken_at
        FROM analyses AS a LEFT JOIN own_words AS own ON own.photo_id = a.photo_id WHERE a.photo_id = ?""",
        (photo_id,),
    ).fetchone()
    page = readings.page(photo_id) if row else None
    if page is None:
        return None
    taken = local_time(datetime.fromisoformat(row[2]))
    return _Stored(records.decoded(row[0]), records.decoded(row[1]), View(page, Layout(page), "", "", taken))


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("proposals", __name__, url_prefix="/api/photos")


class Accepted(msgspec.Struct):
    field: Annotated[str, msgspec.Meta(max_length=100, examples=["total"])]
    photo_ids: Annotated[list[int], msgspec.Meta(max_length=MOST_COMPARED, examples=[[12, 15]])]


@routes.get("/<id:photo_id>/proposals")
@inputs.operation(NotFound)
def index(photo_id: int) -> shapes.ProposalList:
    """List what the correction of a photo's records proposes for other photos of the same seller, on which
    the same mistake was made. Nothing is changed. Photos that a person has corrected are left out.
    """
    return {
        "proposals": [
            {
                "type": cast(Any, one.type),
                "field": one.field,
                "party": one.party,
                "photos": [
                    {"photo_id": other_id, "before": cast(Any, before), "after": cast(Any, after)}
                    for other_id, (before, after) in one.changes.items()
                ],
            }
            for one in proposed(photo_id)
        ]
    }


@routes.post("/<id:photo_id>/proposals", endpoint="accept")
@inputs.operation(NotFound)
def accept_proposal(photo_id: int, body: Accepted) -> shapes.CorrectedPhotos:
    """Correct a field on other photos as it is proposed. What is not proposed for a photo changes nothing.
    `PATCH /api/photos/{id}` with `records: null` undoes it for one.
    """
    return {"corrected": accept(photo_id, body.field, body.photo_ids)}
