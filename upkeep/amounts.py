"""The stored data as a whole, under `/api/data`: statistics, retention period, keys, export, and deleting
everything.

Bytes are those that the rows name, summed over an index; only the few files of the database are measured on
the disk. A cache would be wrong right after an upload.
"""

import contextlib
import shutil
from datetime import datetime
from typing import Annotated, Literal

import flask
import msgspec
import peewee
from flask import Blueprint

import database
import disk
import memory
import models
import photos
import tallies
from clock import iso, utc_now
from curation import retention
from errors import Unavailable
from loops import Places
from models import Message
from settings import NAME, Settings
from upkeep import cleanup, export, rotation, watching
from web import inputs, shapes

# An export occupies one of the server's 16 threads (gunicorn.conf.py) until its client has received it.
MOST_EXPORTS = 2
EXPORTS_AGAIN = 60.0  # seconds, for Retry-After


def statistics(*, now: datetime) -> shapes.Amounts:
    """How much is stored, and how many bytes the disk has left for the service. Needs a scope."""
    store, sizes = database.store(), photos.sizes()
    attached = Message.select(peewee.fn.TOTAL(Message.attachment_bytes)).scalar()
    # With the write-ahead log, whose name starts with the database's.
    files = store.database.parent.glob(f"{store.database.name}*")
    database_bytes = sum(disk.size_of(path) for path in files)
    return {
        "total_photos": tallies.photos(),
        "kept_photos": tallies.photos(kept=True),
        "trashed_photos": tallies.trashed(),
        "total_memories": memory.statistics(now=now)["total"],
        "storage_used_bytes": database_bytes + sizes.here + int(attached),
        "away_photos": sizes.away,
        "storage_away_bytes": sizes.away_bytes,
        "storage_free_bytes": shutil.disk_usage(store.folder).free,
    }


def keys(settings: Settings) -> shapes.KeyStatus:
    """The age of the keys, and the number of photos under each generation. Needs a scope."""
    store = database.store()
    ring = store.ring
    due = rotation.due_at(settings) if store.encrypted else None
    return {
        "encrypted": store.encrypted,
        "generation": ring.generation,
        "created_at": iso(ring.created_at),
        "rotation_days": settings.key_rotation_days,
        "rotation_due_at": iso(due),
        "files": [{"generation": number, "count": count} for number, count in photos.sealed_under()],
    }


_exports = Places(MOST_EXPORTS, full="Too many exports are running.", retry_after=EXPORTS_AGAIN)

# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("data", __name__, url_prefix="/api/data")


Days = Annotated[int, msgspec.Meta(ge=0, le=36_500)]


class Retention(msgspec.Struct):
    retention_days: Days


class Codes(msgspec.Struct):
    days: Days


class ExportQuery(msgspec.Struct):
    trash: Annotated[bool, msgspec.Meta(description="with `true`, also photos in the trash")] = False


class Clearing(msgspec.Struct):
    confirm: Annotated[Literal["delete everything"], msgspec.Meta(description="'delete everything'")]


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.Amounts:
    """Show how much is stored. Sizes are bytes on the disk."""
    return statistics(now=utc_now())


@routes.get("/retention")
@inputs.operation()
def show_retention() -> shapes.RetentionFields:
    """Show after how many days stored data is deleted. Kept photos and pinned notes are spared. Clean-up
    deletes, once a day where it is scheduled.
    """
    settings = inputs.settings()
    return {
        "retention_days": retention.days(settings),
        "chosen": cleanup.retention_is_chosen(settings),
    }


@routes.get("/retention/preview")
@inputs.operation()
def preview_retention(query: Retention) -> shapes.RetentionPreview:
    """Count what the next clean-up would delete with another retention period. Nothing is changed by it."""
    due = cleanup.due(query.retention_days, now=utc_now())
    return {
        "retention_days": query.retention_days,
        "photos": due.photos,
        "conversations": due.conversations,
        "dynamics": due.dynamics,
    }


@routes.put("/retention")
@inputs.operation()
def change_retention(body: Retention) -> shapes.RetentionFields:
    """Set after how many days stored data is deleted; 0 keeps everything. The stored value wins over the
    environment. Nothing is deleted before the next clean-up.
    """
    models.store_value("retention_days", body.retention_days)
    return show_retention()


@routes.get("/codes")
@inputs.operation()
def show_codes() -> shapes.CodesFields:
    """Show after how many days screenshots of one-time codes go to the trash, and how many there are. Only
    screenshots whose one sensitive matter is a code count.
    """
    return {
        "days": retention.codes_days(inputs.settings()),
        "photos": photos.with_codes(utc_now()).count(),
    }


@routes.put("/codes")
@inputs.operation()
def change_codes(body: Codes) -> shapes.CodesFields:
    """Set after how many days screenshots of one-time codes go to the trash; 0: never. Clean-up moves those
    that are not kept and show nothing else that is sensitive.
    """
    models.store_value("codes_days", body.days)
    return show_codes()


@routes.get("/keys")
@inputs.operation()
def show_keys() -> shapes.KeyStatus:
    """Show the age of the keys, and how many photos are sealed under each generation. Times are null when
    encryption is off. No key is shown.
    """
    return keys(inputs.settings())


@routes.get("/export")
@inputs.without_scope
@inputs.operation(Unavailable)
def download(query: ExportQuery) -> Annotated[flask.Response, inputs.Media(("application/zip",))]:
    """Export everything as a zip of readable files, without the trash unless `trash` is true. Pictures are
    the originals, and everything else is readable text. It is streamed, so its size is not known before, and
    one export runs at a time.
    """
    now, place = utc_now(), contextlib.ExitStack()  # closed when the client has received everything
    place.enter_context(_exports.one())
    answer = flask.Response(
        export.stream(inputs.settings(), with_trash=query.trash, now=now), mimetype="application/zip"
    )
    answer.headers["Content-Disposition"] = (
        f"attachment; filename={NAME.lower()}-{now.date().isoformat()}.zip"
    )
    answer.call_on_close(place.close)
    return answer


@routes.post("/clear")
@inputs.without_scope
@inputs.operation(Unavailable)
def clear(body: Clearing) -> shapes.Cleared:
    """Delete all photos, conversations, notes, memories and saved searches. Configuration, skills,
    MCP servers, push devices and keys stay.
    """
    deleted = cleanup.clear(now=utc_now())
    with database.scope():
        watching.forget_names()
    return {
        "message": "Deleted",
        "photos": deleted.photos,
        "conversations": deleted.conversations,
        "dynamics": deleted.dynamics,
        "memories": deleted.memories,
    }
