"""Meaning: the screenshots that are nearest to a description in other words than those on them; part of
`/api/search`.

Each photo has a vector of its title, summary and text, made in the background, behind analyses and readings
(`engines/vectors.py`). A query becomes a vector too, and the photos with the nearest ones are its relatives.
Something is always nearest, so relatives are a list of their own, with grades, and never mixed with what has
the words of a query.

Without vectors, because the setting is off or the machine cannot make them, there are no relatives, and all
else works.
"""

import logging
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from flask import Blueprint

import database
import lexicon
import llm
import loops
import models
import photos
import readings
import text
from clock import utc_now
from database import db
from engines import vectors
from errors import ProviderDown, ProviderRefused, Unavailable
from models import Analysis, Meaning, MeaningDue, MeaningSigns, OwnWords, Photo
from queries import operators
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# Of the sum of both cosines. For 56 descriptions of 82 screenshots, most right answers have more than 0.45;
# of 15 queries for what is on none, 13 have less than 0.3 at best.
PROBABLE, LEAST = 0.45, 0.15
COMPARED = 200  # photos with the nearest signs, whose vectors are compared
PIECE = 5_000  # signs that are read and sent at once
MAX_QUERY = 400  # characters
MAX_SNIPPET = 160  # characters
MOST_FAILURES = 3
PATIENCE = 3.0  # seconds for the text that is being worked on
REST = 30.0  # seconds until the next look for work
BEHIND = 5.0  # seconds while analyses run


class Relative(msgspec.Struct, frozen=True):
    """A photo near to a description in meaning."""

    photo_id: int
    score: float  # the sum of two cosines
    grade: Literal["probable", "possible"]
    snippet: str


def relatives(description: str, *, limit: int) -> list[Relative]:
    """The photos nearest to a description, the nearest first; none for a quoted phrase, which is wanted as it
    is, and for a query with operators. Opens its own short scopes.

    Raises `ProviderRefused` when this machine cannot make vectors, `ProviderDown`, and `Unavailable` while
    other texts are being compared.
    """
    wanted = text.storable(description[:MAX_QUERY]).strip()
    query = lexicon.read(wanted)
    if query.phrases or not query.sequence or operators.split(wanted, now=utc_now()).operators:
        return []
    with database.scope():
        if not MeaningSigns.select().exists():
            return []
    found = llm.embedder().nearest(wanted, COMPARED, changes=_changes, vectors_of=_vectors, patience=PATIENCE)
    near = [(photo_id, score) for photo_id, score in found[:limit] if score >= LEAST]
    with database.scope():
        texts = {photo_id: text_of(photo_id) for photo_id, _ in near}
    return [
        Relative(
            photo_id,
            round(score, 4),
            "probable" if score >= PROBABLE else "possible",
            " ".join(texts[photo_id][:MAX_SNIPPET].split()),
        )
        for photo_id, score in near
    ]


def relatives_if_possible(description: str, settings: Settings, *, limit: int) -> list[Relative] | None:
    """As `relatives`; None where the setting is off or this machine cannot make vectors. Raises `Unavailable`
    when it cannot at the moment.
    """
    if settings.meaning == "off":
        return None
    try:
        return relatives(description, limit=limit)
    except ProviderRefused:
        return None
    except ProviderDown as failure:
        raise Unavailable(failure.detail) from None


def shown(near: list[Relative]) -> list[shapes.PhotoRelative]:
    """The relatives as clients see them: as hits of a search in which no word matches."""
    of_photo = {one.photo_id: msgspec.to_builtins(one) | {"matched": [], "boxes": []} for one in near}
    with database.scope():
        items = photos.list_items(list(of_photo))
    return [shapes.of({**item, **of_photo[item["id"]]}, shapes.PhotoRelative) for item in items]


def make_one() -> bool:
    """Make the vector of the newest photo that needs one; False when none does. Opens its own short scopes.

    Raises `ProviderRefused` when this machine cannot make vectors, and `ProviderDown`, also when the child
    died over this text.
    """
    with database.scope():
        due = _next_due()
        content = "" if due is None else text_of(due.photo_id)
    if due is None:
        return False
    try:
        made, name = llm.embedder().embed(content)
    except ProviderDown:
        with database.scope():
            count = {"failures": MeaningDue.failures + 1}
            MeaningDue.update(count).where(MeaningDue.photo == due.photo_id).execute()
        raise
    with database.scope(), db.atomic():
        if Photo.select().where(Photo.id == due.photo_id).exists():  # not deleted meanwhile
            _keep(due.photo_id, made, name)
        unchanged = (MeaningDue.photo == due.photo_id) & (MeaningDue.changes == due.changes)
        MeaningDue.delete().where(unchanged).execute()
    return True


def text_of(photo_id: int) -> str:
    """What a photo's vector is made of: its title, summary, note and text, the person's own before those of
    the analysis, the status bar left out.
    """
    analysis = Analysis.get_or_none(Analysis.photo == photo_id)
    if analysis is None:  # deleted, or in the trash
        return ""
    own = photos.own_words([photo_id]).get(photo_id, OwnWords())
    read = readings.of([photo_id]).get(photo_id)
    parts = (
        own.title or analysis.title,
        own.summary or analysis.summary,
        own.note,
        own.text or (read.content if read else analysis.visible_text),
    )
    return "\n".join(part for part in parts if part)[: vectors.LONG_TEXT]


def loop(settings: Settings) -> loops.Loop:
    """The thread that makes vectors, behind analyses and readings."""

    def step() -> float:
        with database.scope():
            if models.tallied(status="processing") or models.next_unread() is not None:
                return BEHIND
        try:
            return 0.0 if make_one() else REST
        except ProviderRefused:
            return REST  # said once in the log

    return loops.Loop("meaning", step)


def _next_due() -> MeaningDue | None:
    query = (
        MeaningDue.select()
        .where(MeaningDue.failures < MOST_FAILURES)
        .order_by(MeaningDue.failures, MeaningDue.photo.desc())
        .limit(1)
    )
    return next(iter(query), None)


def _keep(photo_id: int, made: vectors.Embedded, name: str) -> None:
    Meaning.insert(photo=photo_id, vector=made.vector, model=name).on_conflict_replace().execute()
    MeaningSigns.insert(photo=photo_id, signs=made.signs).on_conflict_replace().execute()


def _changes(known: int) -> Iterator[tuple[int, list[int], list[bytes]]]:
    while True:
        with database.scope():
            query = (
                MeaningSigns.select().where(MeaningSigns.id > known).order_by(MeaningSigns.id).limit(PIECE)
            )
            rows = [(row.id, row.photo_id, bytes(row.signs)) for row in query]
        if not rows:
            return
        known = rows[-1][0]
        yield known, [row[1] for row in rows], [row[2] for row in rows]


def _vectors(photo_ids: list[int]) -> list[tuple[int, bytes]]:
    # Joined with the analyses: a photo without one is in the trash.
    with database.scope():
        query = (
            Meaning.select(Meaning.photo, Meaning.vector)
            .join(Analysis, on=(Analysis.photo == Meaning.photo))
            .where(Meaning.photo.in_(photo_ids))
        )
        found = {row.photo_id: bytes(row.vector) for row in query}
    return [(photo_id, found[photo_id]) for photo_id in photo_ids if photo_id in found]


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("meaning", __name__, url_prefix="/api/search")


class RelatedQuery(msgspec.Struct):
    q: inputs.AnyText = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5


@routes.get("/related", endpoint="find")
@inputs.without_scope
@inputs.operation(Unavailable)
def find_related(query: RelatedQuery) -> shapes.PhotoRelatives:
    """Find the photos that are closest to a description in meaning, whatever their words. Something is always
    closest, so each has a grade. A quoted phrase and a query with operators have no relatives.
    """
    near = relatives_if_possible(query.q, inputs.settings(), limit=query.limit)
    return {"available": near is not None, "items": shown(near or [])}
