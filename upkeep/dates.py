"""Correcting when stored photos were taken, by their EXIF data and their names: earlier versions took the
date of the file where a folder was imported or watched, and the time of the upload where a client gave none.

A time that a client gave stays. What follows from the time is made anew: the day of records, threads and the
agenda; what the embedded analyser made of words like "today" follows at the next start of the service.
"""

from datetime import datetime
from typing import Any, NamedTuple, cast

import agenda
import database
import photos
import pictures
import readings
import records
from buckets import away
from database import db
from errors import SnaploreError
from models import Photo
from upkeep.progress import Progress
from writings import taken

BATCH = 50
IMPORTED = "sha256:"  # how the ids begin that imports and watched folders give
WEAK = ("file", "upload")  # sources that a name or EXIF data corrects


class Mended(NamedTuple):
    examined: int  # photos whose time no client gave
    changed: int
    elsewhere: int  # originals in a bucket, which are not fetched for this
    unreadable: int


def mend(progress: Progress, *, now: datetime, dry_run: bool = False) -> Mended:
    """Correct the times of all photos; `dry_run` only counts. Opens its own scopes, beside the service."""
    with database.scope():
        total = Photo.select().count()
    counts, done = dict.fromkeys(Mended._fields, 0), 0
    for batch in database.batches(cast(Any, Photo.select()), Photo.id, BATCH):
        found: dict[int, taken.Taken] = {}
        for photo in batch:
            if not _may_be_wrong(photo):
                continue
            counts["examined"] += 1
            if photo.away != away.HERE:
                counts["elsewhere"] += 1
                continue
            try:
                better = _better(photo, now=now)
            except (SnaploreError, OSError):
                counts["unreadable"] += 1
                continue
            if better is not None and better != (photo.original_timestamp, photo.taken_from):
                found[photo.id] = better
                counts["changed"] += better.moment != photo.original_timestamp
        if found and not dry_run:
            _save(found, now=now)
        done += len(batch)
        progress("photos", done, total)
    return Mended(**counts)


def _may_be_wrong(photo: Photo) -> bool:
    """Whether no client gave the time. Of a photo of an earlier version, its id or its time says so."""
    if photo.taken_from is not None:
        return photo.taken_from in WEAK
    return photo.local_media_store_id.startswith(IMPORTED) or photo.original_timestamp == photo.created_at


def _better(photo: Photo, *, now: datetime) -> taken.Taken | None:
    with photos.open_original(photo) as picture:
        exif = pictures.taken_at(picture)
    is_import = photo.local_media_store_id.startswith(IMPORTED)
    file_date = photo.original_timestamp if is_import or photo.taken_from == "file" else None
    found = taken.decided(None, exif, photo.filename, file_date, now=now)
    return None if found.source == "upload" else found


def _save(found: dict[int, taken.Taken], *, now: datetime) -> None:
    with database.scope(), db.atomic():
        for photo_id, better in found.items():
            photos.set_taken(photo_id, better)
        records.file(found)
        for photo_id in found:
            agenda.renew(photo_id, readings.page(photo_id), now=now)
