"""The trash: photos that a person has thrown away and can bring back for `DAYS` days;
`/api/photos/{id}/trash`, `/restore` and `/api/photos/trash/empty`.

In the trash, a photo's analysis row and tags are in `models.Trash` and nowhere else, and the photo is not in
the index. So nothing that lists, counts, finds or analyses photos can meet it. Its files stay where they are,
sealed: a rotation, a backup and a check treat them as those of any photo. What is brought back is as it was;
an analysis that was in progress is discarded and starts again.
"""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from flask import Blueprint

import claims
import database
import gate
import lexicon
import models
import photos
import records
from clock import utc_now
from curation import words
from database import ROOM, db
from errors import NotFound, Unavailable
from models import Analysis, PhotoTag, Trash
from web import inputs, shapes

DAYS = timedelta(days=30)
BATCH = 250  # photos that are deleted in one transaction; they have no index entries


def put(photo_ids: list[int], *, now: datetime) -> set[int]:
    """Move these photos to the trash; returns the ids of those there now. Earlier ones keep their time."""
    with db.atomic():
        tags: dict[int, list[str]] = {}
        for row in PhotoTag.select().where(PhotoTag.photo.in_(photo_ids)).order_by(PhotoTag.folded):
            tags.setdefault(row.photo_id, []).append(row.tag)
        moved = _analyses(photo_ids)
        lexicon.remove_all(analysis["photo_id"] for analysis in moved)  # needs the analyses and the tags
        for analysis in moved:
            photo_id = analysis.pop("photo_id")
            if analysis["status"] == "processing":  # its result is discarded, because the lease is gone
                analysis |= {"status": "pending", "lease_until": None, "lease_token": None}
            Trash.create(
                photo=photo_id,
                deleted_at=now,
                analysis=msgspec.json.encode(analysis).decode(),
                tags=msgspec.json.encode(tags.get(photo_id, [])).decode(),
            )
        PhotoTag.delete().where(PhotoTag.photo.in_(list(tags))).execute()
        records.forget(photo_ids)
        Analysis.delete().where(Analysis.photo.in_(photo_ids)).execute()
        return present(photo_ids)


def restore(photo_ids: list[int]) -> set[int]:
    """Bring these photos back from the trash; returns the ids of those that are not in it now."""
    with db.atomic():
        rows = list(Trash.select().where(Trash.photo.in_(photo_ids)))
        ids = [row.photo_id for row in rows]
        Trash.delete().where(Trash.photo.in_(ids)).execute()
        for row in rows:
            _insert_analysis({"photo_id": row.photo_id, **msgspec.json.decode(row.analysis)})
        words.add_tags({row.photo_id: msgspec.json.decode(row.tags) for row in rows})
        gate.mark_as_now(ids)  # the rules may be others than when it went
        lexicon.index_new(ids)
        records.file(ids)
        _judge_again(ids)
        found = words.present(photo_ids)
    claims.arrival.send()  # one of them may be due to be analysed
    return found


def _judge_again(ids: Sequence[int]) -> None:
    """Let the background walk over all photos come to these again, which it passed in the trash."""
    judged: dict[str, Any] = models.stored_value("analysis.judged", {})
    if ids and judged.get("below") is not None and judged["below"] <= max(ids):
        models.store_value("analysis.judged", judged | {"below": max(ids) + 1})


def empty(*, now: datetime) -> int:
    """Delete everything in the trash for good; returns the number of photos. Opens its own scopes."""
    deleted = 0
    while True:
        with database.scope():
            batch = photos.purge_trash(now + timedelta(milliseconds=1), most=BATCH)
        if not batch:
            return deleted
        deleted += batch
        time.sleep(ROOM)


def present(photo_ids: Iterable[int]) -> set[int]:
    """Those of these photos that are in the trash."""
    return {row.photo_id for row in Trash.select(Trash.photo).where(Trash.photo.in_(list(photo_ids)))}


def _analyses(photo_ids: list[int]) -> list[dict[str, Any]]:
    """The rows of `analyses` with every column that SQLite has, also those of later versions."""
    cursor = db.execute_sql(
        "SELECT * FROM analyses WHERE photo_id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(photo_ids).decode(),),
    )
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _insert_analysis(row: dict[str, Any]) -> None:
    known = [name for name in Analysis._meta.columns if name in row]
    marks = ", ".join("?" * len(known))
    db.execute_sql(
        f"INSERT INTO analyses ({', '.join(known)}) VALUES ({marks})",  # noqa: S608
        tuple(row[name] for name in known),
    )


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("trash", __name__, url_prefix="/api/photos")


@routes.post("/<id:photo_id>/trash", endpoint="put")
@inputs.operation(NotFound)
def throw_away(photo_id: int) -> shapes.Done:
    """Move a photo to the trash. Nothing finds it there but the list of the trash; after 30 days the clean-up
    deletes it.
    """
    if not put([photo_id], now=utc_now()):
        raise NotFound("Photo not found")
    return {"message": "In the trash"}


@routes.post("/<id:photo_id>/restore", endpoint="restore")
@inputs.operation(NotFound)
def bring_back(photo_id: int) -> shapes.Done:
    """Bring a photo back from the trash, as it was. Its analysis, tags and own words come back with it."""
    if not restore([photo_id]):
        raise NotFound("Photo not found")
    return {"message": "Restored"}


@routes.post("/trash/empty", endpoint="empty")
@inputs.without_scope
@inputs.operation(Unavailable)
def empty_trash() -> shapes.TrashEmptied:
    """Delete everything in the trash, at once and for good. Nothing brings these photos back. The answer
    tells how many there were.
    """
    return {"deleted": empty(now=utc_now())}
