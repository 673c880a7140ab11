"""The retention period, and what it will delete within a week: telling of it in time, and keeping all of it;
`/api/photos/expiring`.

`upkeep/cleanup.py` deletes; `photos.older` decides which photos that are.

A note tells of each photo once, when it comes within a week of being deleted, and there is at most one such
note a day. As long as the last one is unread it is rewritten, so that a person finds one note and not seven.
With a retention period of a week or less every new photo would be told of, so nothing is.
"""

from datetime import datetime, timedelta

import msgspec
from flask import Blueprint

import dynamics
import models
import photos
from clock import iso, utc_now
from curation import words
from database import db
from engines.articles import Article
from models import Photo
from outlets import webhooks
from settings import Settings
from web import inputs, shapes

SOON = timedelta(days=7)
DAY = timedelta(days=1)
MOST_SHOWN = 100


def days(settings: Settings) -> int:
    """The age in days at which data is deleted, 0 for never: the stored value, else the setting's."""
    chosen: int = models.stored_value("retention_days", settings.retention_days)
    return chosen


def codes_days(settings: Settings) -> int:
    """The age in days at which one-time codes go to the trash, 0 for never. Needs a scope."""
    chosen: int = models.stored_value("codes_days", settings.codes_expire)
    return chosen


def expiring(settings: Settings, *, now: datetime) -> shapes.ExpiringPhotos:
    """The photos that retention deletes within a week: number, first ones, and when they are due."""
    age = timedelta(days=days(settings))
    due = photos.older(now - age + SOON)
    total = photos.count_older(now - age + SOON) if age else 0
    if not total:
        return {"total": 0, "from": None, "until": None, "items": []}
    first_ones = due.order_by(Photo.created_at, Photo.id).limit(MOST_SHOWN)
    items = photos.list_items([photo.id for photo in first_ones])
    first, last = (
        due.select(Photo.created_at).order_by(order).limit(1).get().created_at
        for order in (Photo.created_at, Photo.created_at.desc())
    )
    return {
        "total": total,
        "from": iso(max(now, first + age)),
        "until": iso(max(now, last + age)),
        "items": items,
    }


def keep_expiring(settings: Settings, *, now: datetime) -> int:
    """Keep all photos that retention deletes within a week; returns their number."""
    age = timedelta(days=days(settings))
    return words.keep_selected(photos.older(now - age + SOON)) if age else 0


def warn(settings: Settings, *, now: datetime) -> bool:
    """Save the note about what retention deletes within a week, once; returns whether. Needs a scope."""
    age = timedelta(days=days(settings))
    if age <= SOON:
        return False
    told = msgspec.convert(models.stored_value("retention.told", {}), _Told)
    if told.at is not None and told.at <= now < told.at + DAY:
        return False
    due = photos.older(now - age + SOON)
    unknown = due if told.up_to is None else due.where(Photo.created_at > told.up_to)
    newest = unknown.select(Photo.created_at).order_by(Photo.created_at.desc()).limit(1).get_or_none()
    if newest is None:
        return False
    found = expiring(settings, now=now)
    origins: dict[int | str, str] = {item["id"]: item["device_id"] for item in found["items"]}
    article = _article(found, settings)
    with db.atomic():
        if told.note is None or not dynamics.rewrite(told.note, article, origins, now=now):
            told.note = dynamics.add(article, origins, now=now).id
            webhooks.record(webhooks.WRITTEN, told.note, now=now)
        told.at, told.up_to = now, newest.created_at
        models.store_value("retention.told", told)
    return True


class _Told(msgspec.Struct):
    """The last note about what retention will delete."""

    note: int | None = None  # its id
    at: datetime | None = None
    up_to: datetime | None = None  # upload time of the newest photo that it told of


_TEXTS = {
    "en": (
        "{total} screenshots will be deleted by {until}",
        "They reach the age of {days} days, at which screenshots are deleted. Keep those that you still need "
        "with the star, or keep all of them on the home view. What is kept is never deleted by age.",
    ),
    "zh": (
        "{total} 张截图将在 {until} 前删除",
        "它们即将达到 {days} 天的保留期限。还需要的请用星标保留，也可以在首页全部保留。"
        "保留的截图不会因时间而被删除。",
    ),
}


def _article(found: shapes.ExpiringPhotos, settings: Settings) -> Article:
    known = {
        "total": found["total"],
        "until": (found["until"] or "")[: len("2026-11-22")],
        "days": days(settings),
    }
    title, content = (text.format(**known) for text in _TEXTS[settings.language])
    if found["total"] == 1:
        title = title.replace("screenshots", "screenshot")
    cited = [item["id"] for item in found["items"]]
    return Article(title, content, category="reminder", confidence=1.0, photo_ids=cited)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("retention", __name__, url_prefix="/api/photos")


@routes.get("/expiring", endpoint="expiring")
@inputs.operation()
def show_expiring() -> shapes.ExpiringPhotos:
    """Show the photos that retention will delete within seven days, the first ones first. Kept photos are not
    among them. The list has at most 100 items; `total` counts all.
    """
    return expiring(inputs.settings(), now=utc_now())


@routes.post("/expiring/keep", endpoint="keep_expiring")
@inputs.operation()
def keep_all() -> shapes.AllKept:
    """Keep all photos that retention would delete within seven days. The answer tells how many are kept now
    that were not before.
    """
    return {"kept": keep_expiring(inputs.settings(), now=utc_now())}
