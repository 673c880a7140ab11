"""Notes, which the contract calls dynamics: listing, marking as read, pinning and deleting them, and saving
the reasoner's articles as new notes or as continuations of recent ones; `/api/dynamics`.

The reasoner (`reasoner.py`) decides whether an article continues a recent note. A continued note gets the
new text above the old one and is unread again; its id, date and pin stay.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, cast

import msgspec
import peewee
from flask import Blueprint

import gate
import records
from clock import utc_now
from database import db
from engines import articles
from engines.articles import Article, Category
from errors import NotFound
from models import Dynamic
from rules import noted, templates
from web import inputs, shapes

# Far less than the default retention of 30 days, which counts from a note's creation: a continuation is kept
# for at least three weeks.
RECENT = timedelta(days=7)
MOST_RECENT = 100

PASS = timedelta(minutes=10)  # the time in which a reader goes through the pages of a list

# -------------------------------------------------------------------------------------------------- the notes


def page(
    cursor: int, limit: int, *, category: str | None = None, device_id: str | None = None, now: datetime
) -> tuple[list[shapes.DynamicItem], int]:
    """The list items after `cursor`, pinned ones first, then the newest; and the next cursor, 0 at the end.

    A cursor is the id of the last item of the previous page, 0 for the first page.
    """
    query = Dynamic.select(*_LIST_COLUMNS)
    for column, value in ((Dynamic.category, category), (Dynamic.device_id, device_id)):
        if value is not None:
            query = query.where(column == value)
    following = query.where(_after(cursor, limit, query, now=now)) if cursor else query
    rows = list(following.order_by(Dynamic.is_pinned.desc(), Dynamic.id.desc()).limit(limit + 1))
    following_cursor = rows[limit - 1].id if len(rows) > limit else 0
    shown = rows[:limit]
    kinds = _kinds(shown)
    words = _in_words(shown, "title", "summary")
    return [
        shapes.of(row, shapes.DynamicItem, sensitive=kinds[row.id], **said)
        for row, said in zip(shown, words, strict=True)
    ], following_cursor


def detail(dynamic_id: int) -> shapes.DynamicDetail:
    """A note with its content and sources. Raises `NotFound`."""
    found = _get(dynamic_id)
    [words] = _in_words([found], "title", "summary", "content")
    return shapes.of(found, shapes.DynamicDetail, sensitive=_kinds([found])[found.id], **words)


def newest(limit: int) -> list[shapes.DynamicDetail]:
    """The newest notes with their content and sources, the newest first."""
    rows = list(Dynamic.select().order_by(Dynamic.id.desc()).limit(limit))
    kinds = _kinds(rows)
    return [shapes.of(row, shapes.DynamicDetail, sensitive=kinds[row.id]) for row in rows]


def statistics() -> shapes.DynamicStatistics:
    """How many notes are unread, and how many notes each category has, including read ones."""
    counts = Dynamic.select(
        Dynamic.category, peewee.fn.COUNT(Dynamic.id), peewee.fn.SUM(~Dynamic.is_read)
    ).group_by(Dynamic.category)
    rows = list(cast("Iterable[tuple[str, int, int]]", counts.tuples()))
    return {"total_unread": sum(row[2] for row in rows), "by_category": {row[0]: row[1] for row in rows}}


def mark_read(dynamic_id: int) -> None:
    """Mark a note as read. Raises `NotFound`."""
    if not Dynamic.update(is_read=True).where(Dynamic.id == dynamic_id).execute():
        raise NotFound("Dynamic not found")


def mark_all_read(device_id: str | None = None) -> int:
    """Mark all notes, or those of a device, as read; returns how many were unread."""
    unread = ~Dynamic.is_read
    if device_id is not None:
        unread &= Dynamic.device_id == device_id
    return cast(int, Dynamic.update(is_read=True).where(unread).execute())


def flip_pin(dynamic_id: int, *, now: datetime) -> bool:
    """Pin a note, or unpin a pinned one; returns whether it is pinned now. Raises `NotFound`."""
    with db.atomic():
        dynamic = _get(dynamic_id)
        dynamic.is_pinned = not dynamic.is_pinned
        dynamic.pinned_at = now if dynamic.is_pinned else None
        dynamic.save(only=[Dynamic.is_pinned, Dynamic.pinned_at])
    return dynamic.is_pinned


def delete(dynamic_id: int) -> None:
    """Delete a note. Raises `NotFound`."""
    if not Dynamic.delete().where(Dynamic.id == dynamic_id).execute():
        raise NotFound("Dynamic not found")


def latest(most: int) -> list[Dynamic]:
    """The notes whose text was written or continued last, the latest first."""
    return list(Dynamic.select().order_by(Dynamic.changed_at.desc(), Dynamic.id.desc()).limit(most))


# ----------------------------------------------------------------------------------- what the reasoner writes


def recent(device_id: str | None, *, now: datetime) -> list[Dynamic]:
    """The notes that an article may continue, of one device or of all, the newest first."""
    condition = Dynamic.created_at > now - RECENT
    if device_id is not None:
        condition &= Dynamic.device_id == device_id
    return list(Dynamic.select().where(condition).order_by(Dynamic.id.desc()).limit(MOST_RECENT))


def add(article: Article, origins: dict[int | str, str], *, now: datetime) -> Dynamic:
    """Save an article as a new note. `origins` maps the ids that it cites to their devices."""
    fields = msgspec.structs.asdict(article)
    columns = {name: fields[name] for name in ("title", "summary", "content", "category", "confidence")}
    dynamic = Dynamic(
        **columns, device_id=_device(origins), created_at=now, changed_at=now, **_sources(article, origins)
    )
    dynamic.save(force_insert=True)
    return dynamic


def rewrite(dynamic_id: int, article: Article, origins: dict[int | str, str], *, now: datetime) -> bool:
    """Put an article in the place of a note that was not read yet; False when it was read or deleted."""
    earlier = Dynamic.get_or_none((Dynamic.id == dynamic_id) & ~Dynamic.is_read)
    if earlier is None:
        return False
    earlier.title, earlier.summary, earlier.content = article.title, article.summary, article.content
    earlier.changed_at = now
    for name, ids in _sources(article, origins).items():
        setattr(earlier, name, ids)
    earlier.save()
    return True


def extend(earlier: Dynamic, article: Article, origins: dict[int | str, str], *, now: datetime) -> None:
    """Continue a note with an article: new text on top, new title and summary, the same id, date and pin."""
    earlier.content = articles.continued(article.content, earlier.content)
    for name, ids in _sources(article, origins, earlier).items():
        setattr(earlier, name, ids)
    if _device(origins) != earlier.device_id:
        earlier.device_id = ""
    earlier.title, earlier.summary = article.title, article.summary
    earlier.confidence, earlier.is_read, earlier.changed_at = article.confidence, False, now
    earlier.save()


def _device(origins: dict[int | str, str]) -> str:
    """The device of all sources; empty when there are several."""
    devices = set(origins.values())
    return devices.pop() if len(devices) == 1 else ""


def _sources(
    article: Article, origins: dict[int | str, str], earlier: Dynamic | None = None
) -> dict[str, str]:
    """The cited ids as the contract's JSON texts, with those of `earlier`, without deleted sources."""
    cited: dict[str, Sequence[int | str]] = {
        "source_photo_ids": article.photo_ids,
        "source_conversation_ids": article.conversation_ids,
    }
    found = {}
    for name, ids in cited.items():
        before = json.loads(getattr(earlier, name)) if earlier else []
        found[name] = json.dumps(
            list(dict.fromkeys([*before, *(known for known in ids if known in origins)]))
        )
    return found


# --------------------------------------------------------------------------------------------------- one note

_LIST_COLUMNS = [
    *(getattr(Dynamic, name) for name in shapes.names(shapes.DynamicItem) if name != "sensitive"),
    *(Dynamic.content, Dynamic.source_photo_ids),  # what is sensitive is looked for in these
]


def _kinds(found: Sequence[Dynamic]) -> dict[int, list[str]]:
    """The kinds of what is sensitive on the screenshots that notes rest on and in their texts, by id."""
    sources = {note.id: json.loads(note.source_photo_ids) for note in found}
    marks = gate.marks({photo_id for ids in sources.values() for photo_id in ids})
    return {
        note.id: gate.kinds_about(
            [marks[photo_id] for photo_id in sources[note.id] if photo_id in marks],
            *(note.title, note.summary, note.content),
        )
        for note in found
    }


def _in_words(found: Sequence[Dynamic], *names: str) -> list[dict[str, str]]:
    """These texts of notes, in the language that is spoken where templates have made them."""
    spoken = templates.spoken("")
    cited = {photo_id for note in found for photo_id in json.loads(note.source_photo_ids)} if spoken else ()
    pairs = records.reworded(cited) if cited else []
    return [
        {name: noted.again(getattr(note, name), pairs, note.created_at.date()) for name in names}
        for note in found
    ]


def _after(
    cursor: int, limit: int, query: "peewee.ModelSelect[Dynamic]", *, now: datetime
) -> peewee.Expression:
    """The condition for the items after the item `cursor`. The order is by pin, then by id.

    The item may have been deleted or pinned since its page was shown. With its present pin, the reader would
    then see the whole list again, or skip the rest of it. But a page ends among the pinned notes only if it
    holds `limit` of them: with fewer pinned notes down to the cursor, the item was not pinned when it was
    shown. This decides for a deleted item, and for one that was pinned within the last `PASS`.
    """
    shown = Dynamic.get_or_none(Dynamic.id == cursor)
    reaching = query.where(Dynamic.is_pinned == True, Dynamic.id >= cursor).count() + (shown is None)  # noqa: E712, for the index
    among_pinned = reaching >= limit
    if shown is not None:
        pinned_at = shown.pinned_at if shown.is_pinned else None
        if pinned_at is None or pinned_at <= now - PASS:
            among_pinned = shown.is_pinned
    position = peewee.Tuple(Dynamic.is_pinned, Dynamic.id)
    return cast(peewee.Expression, position < peewee.Tuple(among_pinned, cursor))


def _get(dynamic_id: int) -> Dynamic:
    dynamic = Dynamic.get_or_none(Dynamic.id == dynamic_id)
    if dynamic is None:
        raise NotFound("Dynamic not found")
    return dynamic


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("dynamics", __name__, url_prefix="/api/dynamics")


class ListQuery(msgspec.Struct):
    cursor: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 30
    category: Category | None = None
    device_id: str | None = None


class Device(msgspec.Struct):
    device_id: Annotated[str, msgspec.Meta(max_length=256)] | None = None


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.DynamicPage:
    """List notes, pinned ones first, then the newest.

    A cursor is the id of the last item of the previous page, 0 for the first page.
    """
    items, following = page(
        query.cursor, query.limit, category=query.category, device_id=query.device_id, now=utc_now()
    )
    return {"items": items, "next_cursor": following, "has_more": following > 0}


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.DynamicStatistics:
    """Count the unread notes, and all notes by category. Read and unread notes count by category."""
    return statistics()


@routes.get("/<id:dynamic_id>")
@inputs.operation(NotFound)
def show(dynamic_id: int) -> shapes.DynamicDetail:
    """Show a note with its content and sources. Reading it here does not mark it as read."""
    return detail(dynamic_id)


@routes.put("/<id:dynamic_id>/read")
@inputs.operation(NotFound)
def read(dynamic_id: int) -> shapes.MarkedRead:
    """Mark a note as read. A note that was read already stays so."""
    mark_read(dynamic_id)
    return {"message": "Marked as read", "is_read": True}


@routes.put("/read-all")
@inputs.operation()
def read_all(query: Device, body: Device) -> shapes.AllMarkedRead:
    """Mark all notes as read, or those of the device in the query or the body. The answer tells how many were
    unread.
    """
    return {"message": "Marked as read", "updated": mark_all_read(body.device_id or query.device_id or None)}


@routes.put("/<id:dynamic_id>/pin")
@inputs.operation(NotFound)
def pin(dynamic_id: int) -> shapes.Pinned:
    """Pin a note, or unpin a pinned one. Clean-up spares a pinned note. The answer has the new value."""
    return {"is_pinned": flip_pin(dynamic_id, now=utc_now())}


@routes.delete("/<id:dynamic_id>")
@inputs.operation(NotFound)
def remove(dynamic_id: int) -> shapes.Done:
    """Delete a note. The screenshots and chats that it rests on stay."""
    delete(dynamic_id)
    return {"message": "Deleted"}
