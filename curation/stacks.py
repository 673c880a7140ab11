"""Stacks: the same screen several times, shown as one tile, and nothing is deleted for it;
`/api/photos/duplicates`.

A stack has the pictures with the same bytes, of any device and time, and near-duplicates of one device
within a day (`rules/likeness.py`). A photo is compared when it is stored and again when it was read; what
is due waits in `models.Uncompared`, which triggers fill, so a crash only delays it. Comparing is bounded: the
nearest photos in time, of those the ones with a similar perceptual hash, and of a stack only its first photo.
So a stack is around its first photo, and cannot drift from screen to screen, nor from day to day.

A photo leaves its stack when it is deleted or goes to the trash. Which one is shown for the stack is decided
by triggers (`migrations/0013_stacks.py`): the kept one, or the newest.
"""

import contextlib
import logging
from datetime import timedelta
from typing import Any, NamedTuple

import peewee
from flask import Blueprint

import models
import photos
import pictures
import readings
from database import db
from engines.lines import Page
from errors import Unavailable, Unreadable, UnsupportedImage
from models import Analysis, Photo, Stacked, Uncompared
from rules import likeness
from web import inputs, shapes

log = logging.getLogger(__name__)

MOST_MEMBERS = 100
MOST_LISTED = 500  # photos of the stacks in one list
SPAN = timedelta(days=1)  # between near-duplicates
MOST_NEIGHBOURS = 200  # photos before and after, whose hashes are compared
MOST_READ = 24  # of them, whose words are compared
NO_HASH = b""  # of a picture that cannot be read


def place(photo_id: int) -> None:
    """Put a photo that is due to be compared into its stack, or out of one that it does not belong to.

    Comparing is outside of a transaction. If one of the photos has changed meanwhile, the photo stays due.
    """
    if not Uncompared.select().where(Uncompared.photo == photo_id).exists():
        return
    photo = Photo.get_or_none(Photo.id == photo_id)
    if photo is None:
        return
    if photo.perceptual_hash is None:  # stored by an earlier version
        photo.perceptual_hash = _hash(photo)
        photos.keep_hash(photo_id, photo.perceptual_hash)
    page = readings.page(photo_id)
    found = _same_bytes(photo) or (_near_duplicate(photo, page) if page is not None else None)
    with db.atomic():
        due = Uncompared.photo == photo_id
        if not Uncompared.select().where(due).exists() or readings.page(photo_id) != page:
            return  # deleted or read meanwhile
        if found is not None and not _is_as_found(found):
            return
        Uncompared.delete().where(due).execute()
        _move(photo_id, found)


def place_next() -> bool:
    """Place the newest photo that is due; False when there is none."""
    due = Uncompared.select(Uncompared.photo).order_by(Uncompared.photo.desc()).limit(1).scalar()
    if due is None:
        return False
    place(due)
    return True


def same_words(photo_id: int, page: Page, analyser: str) -> tuple[Analysis | None, bool]:
    """The analysis by `analyser` of a photo in the same stack that has the same words, names and numbers as
    are on `page`, so that its result holds for this one, too; and whether such a photo is being analysed just
    now, which was stored before this one.
    """
    stack = models.stacks_of([photo_id]).get(photo_id)
    if stack is None:
        return None, False
    others = [other for other in stack.photo_ids if other != photo_id]
    among = Analysis.photo.in_(others) & Analysis.status.in_(("done", "processing"))
    awaited = False
    for row in Analysis.select().where(among).order_by(Analysis.photo.desc()).limit(MOST_READ):
        if row.status == "done" and row.analyser != analyser:
            continue
        if row.status == "processing" and row.photo_id > photo_id:
            continue  # it waits for this one
        other = readings.page(row.photo_id)
        if other is not None and likeness.compare(page, other).same_words:
            if row.status == "done":
                return row, False
            awaited = True
    return None, awaited


def duplicates() -> shapes.Duplicates:
    """The newest stacks, each with its photos: as many whole stacks as have MOST_LISTED photos together."""
    sizes = (
        Stacked.select(peewee.fn.MIN(Stacked.photo), peewee.fn.COUNT(Stacked.photo))
        .group_by(Stacked.stack_id)
        .having(peewee.fn.COUNT(Stacked.photo) > 1)
        .order_by(Stacked.stack_id.desc())
        .tuples()
    )
    rows: list[Any] = list(sizes)
    listed: list[int] = []
    left = MOST_LISTED
    for first, size in rows:
        left -= size
        if left < 0:
            break
        listed.append(first)
    found = models.stacks_of(listed)
    items = photos.list_items([photo_id for first in listed for photo_id in found[first].photo_ids])
    by_id = {item["id"]: item for item in items}
    return {
        "total": len(rows),
        "stacks": [
            {"best": found[first].best, "photos": [by_id[photo_id] for photo_id in found[first].photo_ids]}
            for first in listed
        ],
    }


class _Found(NamedTuple):
    """A photo that another one belongs to, and the stack that it is in; None: in none yet."""

    photo_id: int
    stack_id: int | None


def _same_bytes(photo: Photo) -> _Found | None:
    query = (
        Photo.select(Photo.id)
        .join(Analysis, on=(Analysis.photo == Photo.id))
        .where(Photo.sha256 == photo.sha256, Photo.id != photo.id)
        .order_by(Photo.id)
        .limit(MOST_MEMBERS)
    )
    found = [_Found(other.id, _stack_of(other.id)) for other in query]
    found.sort(key=lambda other: other.stack_id is None)
    return next((other for other in found if _has_room(other, photo)), None)


def _near_duplicate(photo: Photo, page: Page) -> _Found | None:
    near = [
        other for other in _neighbours(photo) if likeness.near(photo.perceptual_hash, other.perceptual_hash)
    ]
    near.sort(key=lambda other: abs(other.original_timestamp - photo.original_timestamp))
    tried: set[int] = set()
    for other in near[:MOST_READ]:
        found = _Found(other.id, _stack_of(other.id))
        first = other if found.stack_id is None else _first(found.stack_id, photo)
        if first is None or first.id in tried or not _has_room(found, photo):
            continue
        tried.add(first.id)
        if not likeness.near(photo.perceptual_hash, first.perceptual_hash):
            continue
        there = readings.page(first.id)
        if there is not None and likeness.compare(page, there).alike:
            return found
    return None


def _neighbours(photo: Photo) -> list[Photo]:
    """The photos of the same device within a day that have a hash, the nearest on either side."""
    found: list[Photo] = []
    taken = photo.original_timestamp
    for side, order in (
        (Analysis.taken_at.between(taken - SPAN, taken), Analysis.taken_at.desc()),
        (Analysis.taken_at.between(taken, taken + SPAN), Analysis.taken_at),
    ):
        ids = Analysis.select(Analysis.photo).where(Analysis.device_id == photo.device_id, side)
        among = [row.photo_id for row in ids.order_by(order).limit(MOST_NEIGHBOURS)]
        columns = (Photo.id, Photo.original_timestamp, Photo.perceptual_hash)
        hashed = Photo.id.in_(among) & (Photo.id != photo.id) & Photo.perceptual_hash.is_null(False)
        found.extend(Photo.select(*columns).where(hashed))
    return list({other.id: other for other in found}.values())


def _first(stack_id: int, photo: Photo) -> Photo | None:
    """The first photo of a stack that is of the device of `photo`, with which near-duplicates are compared;
    None when there is none besides `photo`, or when it was taken more than a day before or after.
    """
    query = Photo.select().join(Stacked, on=(Stacked.photo == Photo.id)).where(Stacked.stack_id == stack_id)
    others = query.where(Photo.device_id == photo.device_id, Photo.id != photo.id)
    first: Photo | None = others.order_by(Photo.id).first()
    if first is None or abs(first.original_timestamp - photo.original_timestamp) > SPAN:
        return None
    return first


def _is_as_found(found: _Found) -> bool:
    """Whether the other photo is still there, and no other thread has placed it meanwhile."""
    there = Analysis.select().where(Analysis.photo == found.photo_id).exists()
    return there and _stack_of(found.photo_id) == found.stack_id


def _stack_of(photo_id: int) -> int | None:
    row = Stacked.get_or_none(Stacked.photo == photo_id)
    return None if row is None else row.stack_id


def _has_room(found: _Found, photo: Photo) -> bool:
    if found.stack_id is None:
        return True
    others = Stacked.select().where(Stacked.stack_id == found.stack_id, Stacked.photo != photo.id)
    return others.count() < MOST_MEMBERS


def _move(photo_id: int, found: _Found | None) -> None:
    """Put a photo into the stack of another, which may be a new one; or, with None, into none."""
    if found is None:
        Stacked.delete().where(Stacked.photo == photo_id).execute()
        return
    stack_id = found.stack_id
    if stack_id is None:
        stack_id = 1 + (Stacked.select(peewee.fn.MAX(Stacked.stack_id)).scalar() or 0)
        Stacked.create(photo=found.photo_id, stack_id=stack_id)
    if _stack_of(photo_id) != stack_id:
        Stacked.insert(photo=photo_id, stack_id=stack_id).on_conflict(
            conflict_target=[Stacked.photo], update={Stacked.stack_id: stack_id}
        ).execute()


def _hash(photo: Photo) -> bytes:
    for opened in (photos.open_thumbnail, photos.open_original):
        with (
            contextlib.suppress(OSError, Unavailable, Unreadable, UnsupportedImage),
            opened(photo) as picture,
        ):
            return pictures.perceptual_hash(picture)
    log.info("photo %d cannot be compared: its picture is unreadable", photo.id)
    return NO_HASH


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("stacks", __name__, url_prefix="/api/photos")


@routes.get("/duplicates")
@inputs.operation()
def list_duplicates() -> shapes.Duplicates:
    """List the screens that were saved several times, the newest first, each with all its pictures. Whole
    stacks with together 500 pictures at most are listed; `total` counts all stacks.
    """
    return duplicates()
