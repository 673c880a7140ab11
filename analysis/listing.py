"""The list of analyses, how far each is, and their counts; `/api/analysis` and `/api/stats`."""

from datetime import datetime, timedelta
from typing import cast

import msgspec
from flask import Blueprint

import access
import claims
import gate
import models
import photos
import tallies
from clock import utc_now
from database import db
from engines.findings import Intent
from errors import NotFound
from models import Analysis, Selected
from web import inputs, shapes

# The pace of the queue: that of at most so many photos, of at least so many, in this time.
MOST_PACED, FEWEST_PACED, PACED = 50, 3, timedelta(minutes=5)


def page(
    number: int, size: int, *, status: str | None = None, intent: str | None = None
) -> tuple[int, list[shapes.AnalysisItem]]:
    """The total number of analyses, and one page of them, the newest photo first."""
    among = Selected("analyses")
    if status is not None:
        among = among.where("status = ?", status)
    if intent is not None:
        among = among.where("intent = ?", intent)
    total = tallies.photos({"status": status, "intent": intent})
    ids = models.page_of(among, ("photo_id",), number, size)
    if not ids:
        return total, []
    rows = db.execute_sql(_LIST, (msgspec.json.encode(ids).decode(),)).fetchall()
    return total, [cast(shapes.AnalysisItem, dict(zip(_LISTED, row, strict=True))) for row in rows]


def statistics(*, now: datetime) -> shapes.Statistics:
    """Counts by status, and of finished analyses by intent and category, from the tallies."""
    counts = {"pending": 0, "processing": 0, "done": 0, "error": 0}
    intents: dict[str, int] = {}
    categories: dict[str, int] = {}
    for status, intent, category, number in tallies.by_result():
        counts[status] += number
        if status == "done":
            intents[intent] = intents.get(intent, 0) + number
            categories[category] = categories.get(category, 0) + number
    total, kinds = sum(counts.values()), gate.tallied()
    return {
        "total_photos": total,
        "total_analyses": total,
        "done": counts["done"],
        "pending": counts["pending"],
        "processing": counts["processing"],
        "errors": counts["error"],
        "searchable": counts["done"] + (_failed_but_read() if counts["error"] else 0),
        "seconds_left": _seconds_left(counts["pending"] + counts["processing"], now=now),
        "sensitive_photos": sum(kinds.values()),
        "sensitive_kinds": gate.counts(kinds),
        "intent_distribution": intents,
        "category_distribution": categories,
    }


def _failed_but_read() -> int:
    """The number of photos whose analysis failed, but whose text was read on this machine."""
    # The first condition is literal, as in the partial index `analyses_faulty`.
    found = db.execute_sql(
        "SELECT count(*) FROM analyses JOIN readings USING (photo_id) WHERE fault <> '' AND status = 'error'"
    )
    return cast(int, found.fetchone()[0])


def _seconds_left(waiting: int, *, now: datetime) -> int | None:
    """The seconds until so many photos are analysed, by the pace of those that were analysed last; None when
    fewer than `FEWEST_PACED` were analysed in the last `PACED`. The queue takes the oldest photo first, so
    the newest photos that are done were analysed last.
    """
    if not waiting:
        return 0
    newest = Analysis.select(Analysis.completed_at).where(Analysis.status == "done")
    times = [row.completed_at for row in newest.order_by(Analysis.photo.desc()).limit(MOST_PACED)]
    recent = [time for time in times if time is not None and now - PACED <= time <= now]
    if len(recent) < FEWEST_PACED:
        return None
    passed: timedelta = now - min(recent)
    return round(passed.total_seconds() / len(recent) * waiting)


def state(photo_id: int, caller: access.Caller) -> shapes.AnalysisState:
    """How far the analysis of a photo is. Raises `NotFound`, also for a photo that `caller` may not see."""
    photo = photos.get(photo_id)
    of_its_device = caller.owns_device and photo.device_id == caller.device_id
    if caller.uploads_only and photo.token_id != caller.token_id and not of_its_device:
        raise NotFound("Photo not found")
    return shapes.of(Analysis.get(Analysis.photo == photo_id), shapes.AnalysisState)


# Plain SQL: each column is a field of an `AnalysisItem`, in their order.
_LISTED = shapes.names(shapes.AnalysisItem)
_LIST = f"""SELECT {", ".join(f"a.{name}" for name in shapes.names(shapes.AnalysisFields))}, p.filename
    FROM analyses a JOIN photos p ON p.id = a.photo_id
    WHERE a.photo_id IN (SELECT value FROM json_each(?)) ORDER BY a.photo_id DESC"""  # noqa: S608

# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("analysis", __name__, url_prefix="/api")


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20
    status: shapes.Status | None = None
    intent: Intent | None = None


@routes.get("/analysis")
@inputs.operation()
def index(query: ListQuery) -> shapes.AnalysisPage:
    """List analyses, the newest photo first. Every photo has one analysis, from its upload on; photos in the
    trash are left out.
    """
    total, items = page(query.page, query.page_size, status=query.status, intent=query.intent)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.post("/analysis/<id:photo_id>/reprocess")
@inputs.operation(NotFound)
def ask_again(photo_id: int) -> shapes.Done:
    """Analyse a photo again. It waits in the queue like a new one. Own words and tags stay."""
    claims.reprocess(photo_id, now=utc_now())
    return {"message": "Reprocessing queued"}


@routes.get("/photos/<id:photo_id>/state")
@inputs.operation(NotFound)
def show_state(photo_id: int) -> shapes.AnalysisState:
    """Show how far the analysis of a photo is. A token of the scope `upload` sees its own uploads."""
    return state(photo_id, access.caller())


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.Statistics:
    """Count photos and analyses, and the finished ones by intent and category. Photos in the trash do not
    count.
    """
    return statistics(now=utc_now())
