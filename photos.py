"""Photos: storing, de-duplicating, listing, serving and deleting them; `/api/photos`.

A photo consists of two sealed files, original and thumbnail, and two rows, photo and analysis. The rows are
inserted in one transaction, after the files have been flushed to the disk. A crash in between leaves files
without a row, which clean-up removes, but never a row without its files. The analysis row is the photo's
place in the queue, so storing a photo also queues its analysis.

A list accepts any combination of filters and returns its total, at about the cost of one page. Without a
period the total comes from the tallies, and the page from the index of a filter. That index has the order of
the list and contains the other filters' columns, so that only rows of the page are read. A period filters by
`original_timestamp`, as in a search, because people remember when they took a picture. Its pages are in that
order, too, the latest picture first: in the order of uploads, every page would either sort the whole period
or scan everything uploaded since.

More than 500 lines, because a photo's whole life is one concern and its routes have the largest contract.
"""

import io
import itertools
import logging
import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, BinaryIO, NamedTuple, cast

import blinker
import flask
import msgspec
import peewee
from flask import Blueprint
from werkzeug.datastructures import FileStorage

import crypto
import database
import devices
import lexicon
import models
import pictures
from clock import parse_time, utc_now
from database import db
from devices import MAX_NAME, DeviceId, EpochMs, Name
from engines.findings import Category, Intent
from errors import BadInput, NotFound, SnaploreError, Unreadable, UnsupportedImage
from models import Analysis, Photo
from settings import MEGABYTE
from spool import Spool, keep_bytes, new_place
from web import inputs, shapes

log = logging.getLogger(__name__)

MAX_FILE = 50 * MEGABYTE
MAX_BATCH = 50
# A picture up to this size is read completely before the response starts, so that damage is an error with a
# sentence. A larger one is streamed, and damage after its first and before its last 64 kB breaks the
# connection.
IN_MEMORY = 4 * MEGABYTE

# Sent after the transaction that stored a photo; it wakes the analysis pool.
stored = blinker.Signal()


class Upload(msgspec.Struct, frozen=True):
    """What a client reports about a file. All of it is for display only, except the ids that de-duplicate."""

    device_id: str
    filename: str
    original_timestamp: datetime
    device_name: str = ""
    source_type: str = "screenshot"
    local_media_store_id: str = ""


class Stored(NamedTuple):
    """The result of an upload."""

    id: int
    filename: str
    file_size: int
    dedup: bool  # it was stored before, so nothing was stored now


def store(spool: Spool, upload: Upload, *, now: datetime) -> Stored:
    """Store the picture in `spool`. When this returns, its files and rows have been flushed to the disk.

    A pair of device and local id is stored once, even by parallel uploads. Raises `BadInput` for an empty
    file, `TooLarge`, and `UnsupportedImage`.
    """
    began = time.monotonic()
    if (earlier := _already_stored(upload)) is not None:
        devices.note_upload(
            upload.device_id, upload.original_timestamp, device_name=upload.device_name, new=0, now=now
        )
        log.info("photo %d uploaded again: nothing is stored", earlier.id)
        return earlier
    spool.check()
    with spool.open() as picture:
        examined = pictures.examine(picture)
    written: list[Path] = []
    try:
        photo = _photo(spool, upload, examined, written, now=now)
        with db.atomic():
            photo.save(force_insert=True)
            models.enqueue(photo, now=now)
            devices.note_upload(
                upload.device_id, upload.original_timestamp, device_name=upload.device_name, new=1, now=now
            )
    except BaseException as problem:
        for path in written:
            path.unlink(missing_ok=True)
        # A parallel upload has stored the same photo since the check above.
        if isinstance(problem, peewee.IntegrityError) and (earlier := _already_stored(upload)) is not None:
            return earlier
        raise
    stored.send()
    log.info("photo %d uploaded: %d bytes, %.2f s", photo.id, photo.file_size, time.monotonic() - began)
    return Stored(photo.id, photo.filename, photo.file_size, dedup=False)


def store_batch(
    spools: Iterable[Spool], uploads: Iterable[Upload], *, now: datetime
) -> list[shapes.BatchResult]:
    """Store each picture by itself; a failure does not affect the others.

    Returns, in order, `{id, filename, dedup}` or `{filename, error}`, where `error` is `empty`, `too large`,
    `unsupported image` or a sentence.
    """
    results: list[shapes.BatchResult] = []
    for spool, upload in zip(spools, uploads, strict=True):
        try:
            photo = store(spool, upload, now=now)
            results.append({"id": photo.id, "filename": photo.filename, "dedup": photo.dedup})
        except Exception as problem:
            known = database.known_failure(problem)
            if known is None:
                raise
            results.append(
                {"filename": display_name(upload.filename, ""), "error": _batch_error(known, spool)}
            )
        finally:
            spool.close()
    return results


class Filters(msgspec.Struct, frozen=True):
    """The filters of a list; None means any value. `since` is inclusive, `until` is exclusive."""

    status: str | None = None
    device_id: str | None = None
    category: str | None = None
    intent: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def values(self) -> dict[str, str | None]:
        """The values by the names of the columns, without the period."""
        return {
            "status": self.status,
            "device_id": self.device_id,
            "content_category": self.category,
            "intent": self.intent,
        }


def page(number: int, size: int, filters: Filters) -> tuple[int, list[shapes.PhotoItem]]:
    """The total and one page of list items, in the order of `ids_of_page`."""
    total, ids = ids_of_page(number, size, filters)
    return total, list_items(ids)


def ids_of_page(number: int, size: int, filters: Filters) -> tuple[int, list[int]]:
    """The total and the ids of one page: the newest upload first, or in a period the latest picture first."""
    values = {getattr(Analysis, name): value for name, value in filters.values().items() if value is not None}
    query = Analysis.select(Analysis.photo)
    if filters.since is None and filters.until is None:
        for column, value in values.items():
            query = query.where(column == value)
        total = models.tallied(**filters.values())
        return total, models.page_of(query, (Analysis.photo,), number, size, total)
    # The plus keeps SQLite from using the index of a filter, in which it would read the time of every photo.
    among = [
        peewee.Expression(peewee.NodeList((peewee.SQL("+"), column)), peewee.OP.EQ, value)
        for column, value in values.items()
    ]
    total = _total(filters, among)
    return total, models.page_of(
        query.where(*_within(filters), *among), (Analysis.taken_at, Analysis.photo), number, size, total
    )


def list_items(ids: list[int]) -> list[shapes.PhotoItem]:
    """The list items of these photos, in this order, without deleted ones."""
    if not ids:
        return []
    query = Photo.select(*_LIST_COLUMNS).join(Analysis).where(Photo.id.in_(ids))
    found = {row["id"]: row for row in cast("Iterable[dict[str, Any]]", query.dicts())}
    return [shapes.of(found[photo_id], shapes.PhotoItem) for photo_id in ids if photo_id in found]


def detail(photo_id: int) -> shapes.PhotoDetail:
    """A photo with its analysis. Raises `NotFound`."""
    photo = get(photo_id)
    return detail_of(photo, Analysis.get(Analysis.photo == photo.id))


def detail_of(photo: Photo, analysis: Analysis) -> shapes.PhotoDetail:
    """As `detail`, from rows that were read before."""
    return shapes.of(photo, shapes.PhotoDetail, analysis=shapes.of(analysis, shapes.AnalysisDetail))


def get(photo_id: int) -> Photo:
    """The row. Raises `NotFound`."""
    photo = Photo.get_or_none(Photo.id == photo_id)
    if photo is None:
        raise NotFound("Photo not found")
    return photo


def open_original(photo: Photo) -> BinaryIO:
    """A seekable reader of the uploaded bytes. Raises `Unreadable` when the file is missing or damaged."""
    return crypto.open_sealed(database.store().folder / photo.original_path, photo.file_key)


def open_thumbnail(photo: Photo) -> BinaryIO:
    """A seekable reader of the thumbnail. Raises `Unreadable` when its file is missing or damaged."""
    return crypto.open_sealed(database.store().folder / photo.thumbnail_path, photo.thumbnail_key)


def open_sound_thumbnail(photo: Photo) -> BinaryIO:
    """The thumbnail, completely in memory. A missing or damaged one is made anew from the original. Raises
    `Unreadable` when that is missing or damaged, too.
    """
    try:
        return _whole(open_thumbnail(photo))
    except Unreadable:
        make_thumbnail_anew(photo)
        return _whole(open_thumbnail(get(photo.id)))


def make_thumbnail_anew(photo: Photo) -> None:
    """Make the thumbnail again from the original. Raises `Unreadable` when that is missing or damaged."""
    with open_original(photo) as picture:
        try:
            thumbnail = pictures.examine(picture).thumbnail
        except UnsupportedImage:
            raise Unreadable("The stored picture is damaged.") from None
    folder = database.store().folder
    place = new_place(database.store().photos)
    fresh = place.with_name(f"{place.name}.thumbnail")
    key = keep_bytes(thumbnail, fresh)
    crypto.sync_file(fresh.parent)
    replaced = {"thumbnail_path": str(fresh.relative_to(folder)), "thumbnail_key": key}
    same = (Photo.id == photo.id) & (Photo.thumbnail_path == photo.thumbnail_path)
    unused = folder / photo.thumbnail_path if Photo.update(**replaced).where(same).execute() else fresh
    unused.unlink(missing_ok=True)


def delete(photo_id: int) -> None:
    """Delete a photo with its analysis, its index entry and its files. Raises `NotFound`."""
    if not _delete(Photo.id == photo_id, most=1):
        raise NotFound("Photo not found")


def purge(before: datetime, *, most: int) -> int:
    """Delete up to `most` photos that were uploaded before `before`, the oldest first; returns how many."""
    return _delete(Photo.created_at < before, most=most)


def display_name(filename: str, mime_type: str) -> str:
    """The client's file name without path parts and control characters. It is not a name on the disk."""
    name = PurePosixPath(
        re.sub(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", filename).replace("\\", "/")
    ).name
    return name[-MAX_NAME:] or "screenshot" + {"image/jpeg": ".jpg"}.get(
        mime_type, mime_type.replace("image/", ".")
    )


_LIST_COLUMNS = (
    *shapes.columns(Photo, shapes.PhotoFields),
    *(Analysis.status.alias("analysis_status"), Analysis.intent, Analysis.summary),
)


def _within(filters: Filters) -> list[peewee.Expression]:
    since = [] if filters.since is None else [Analysis.taken_at >= filters.since]
    return since if filters.until is None else [*since, Analysis.taken_at < filters.until]


def _total(filters: Filters, among: list[peewee.Expression]) -> int:
    """How many photos match the filters in the period. Counts those in the period or those outside of it,
    whichever are likely to be fewer.
    """
    if not _holds_most(filters):
        return Analysis.select().where(*_within(filters), *among).count()
    before = Analysis.taken_at < filters.since if filters.since else None
    after = Analysis.taken_at >= filters.until if filters.until else None
    outside = (Analysis.select().where(side, *among).count() for side in (before, after) if side is not None)
    return models.tallied(**filters.values()) - sum(outside)


def _holds_most(filters: Filters) -> bool:
    """Whether the period covers most of the time between the oldest and the newest photo, and so, probably,
    most photos.
    """
    # Two statements: one with both would read the whole index.
    oldest = Analysis.select(peewee.fn.MIN(Analysis.taken_at)).scalar()
    newest = Analysis.select(peewee.fn.MAX(Analysis.taken_at)).scalar()
    if oldest is None:
        return False
    held = min(filters.until or newest, newest) - max(filters.since or oldest, oldest)
    return bool(held > (newest - oldest) / 2)


def _photo(
    spool: Spool, upload: Upload, examined: pictures.Examined, written: list[Path], *, now: datetime
) -> Photo:
    """Write the two files of an accepted picture; returns its row, not yet inserted. The paths are added to
    `written` before the files are, so that the caller can remove partial files.
    """
    current = database.store()
    original = new_place(current.photos)
    thumbnail = original.with_name(f"{original.name}.thumbnail")
    written += (original, thumbnail)
    file_key, thumbnail_key = spool.keep(original), keep_bytes(examined.thumbnail, thumbnail)
    crypto.sync_file(original.parent)
    return Photo(
        device_id=upload.device_id,
        device_name=upload.device_name[:MAX_NAME],
        local_media_store_id=upload.local_media_store_id,
        filename=display_name(upload.filename, examined.mime_type),
        original_path=str(original.relative_to(current.folder)),
        thumbnail_path=str(thumbnail.relative_to(current.folder)),
        file_size=spool.size,
        width=examined.width,
        height=examined.height,
        mime_type=examined.mime_type,
        source_type=upload.source_type[:MAX_NAME] or "screenshot",
        original_timestamp=upload.original_timestamp,
        created_at=now,
        sha256=spool.sha256,
        file_key=file_key,
        thumbnail_key=thumbnail_key,
        key_generation=current.ring.generation,
        disk_bytes=original.stat().st_size + thumbnail.stat().st_size,
    )


def _whole(file: BinaryIO) -> BinaryIO:
    with file:
        return io.BytesIO(file.read())


def _already_stored(upload: Upload) -> Stored | None:
    if not upload.local_media_store_id:
        return None
    # Literal, as in the partial index: with a bound value SQLite cannot use that and reads all photos.
    named = peewee.SQL("local_media_store_id <> ''")
    same = (Photo.device_id == upload.device_id) & (Photo.local_media_store_id == upload.local_media_store_id)
    photo = Photo.get_or_none(same & named)
    return None if photo is None else Stored(photo.id, photo.filename, photo.file_size, dedup=True)


def _delete(where: peewee.Expression, *, most: int) -> int:
    with db.atomic():
        query = (
            Photo.select(Photo.id, Photo.original_path, Photo.thumbnail_path)
            .where(where)
            .order_by(Photo.created_at)
            .limit(most)
        )
        rows = list(cast("Iterable[tuple[int, str, str]]", query.tuples()))
        ids = [row[0] for row in rows]
        for photo_id in ids:
            lexicon.remove(photo_id)
        Analysis.delete().where(Analysis.photo.in_(ids)).execute()
        Photo.delete().where(Photo.id.in_(ids)).execute()
    # After the commit: a crash here leaves files without a row, which have lost their keys; clean-up removes
    # them.
    for path in itertools.chain.from_iterable(row[1:] for row in rows):
        (database.store().folder / path).unlink(missing_ok=True)
    return len(ids)


def _batch_error(problem: SnaploreError, spool: Spool) -> str:
    if spool.oversized:
        return "too large"
    if not spool.size:
        return "empty"
    return "unsupported image" if isinstance(problem, BadInput) else problem.detail


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("photos", __name__, url_prefix="/api/photos")


class UploadForm(msgspec.Struct):
    device_id: DeviceId = "unknown"
    device_name: Name = ""
    source_type: Name = "screenshot"
    local_media_store_id: Name = ""
    original_timestamp: EpochMs = ""
    mime_type: str = ""  # ignored: the bytes decide


Entries = Annotated[
    str,
    msgspec.Meta(
        description="one for each file, in their order, separated by commas; missing ones are empty"
    ),
]


class BatchForm(msgspec.Struct):
    device_id: DeviceId
    device_name: Name = ""
    timestamps: Entries = ""
    local_ids: Entries = ""
    mime_types: Entries = ""


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20
    status: shapes.Status | None = None
    device_id: str | None = None
    category: Category | None = None
    intent: Intent | None = None
    since: inputs.Moment = ""
    until: inputs.Moment = ""


@routes.post("/upload")
@inputs.takes_files(largest=MAX_FILE)
@inputs.operation()
def upload(form: UploadForm, file: FileStorage) -> shapes.Uploaded:
    """Upload a screenshot.

    The bytes decide its type: JPEG, PNG, WebP or GIF. When the answer is sent, the picture is on the disk. A
    pair of `device_id` and `local_media_store_id` is stored once; without a local id, every upload is stored.
    """
    now = utc_now()
    taken = inputs.moment("original_timestamp", form.original_timestamp, now)
    described = Upload(
        form.device_id,
        file.filename or "",
        taken,
        form.device_name,
        form.source_type,
        form.local_media_store_id,
    )
    photo = store(_spool(file), described, now=now)
    if photo.dedup:
        return {
            "id": photo.id,
            "filename": photo.filename,
            "dedup": True,
            "message": "Already exists (dedup)",
        }
    return {
        "id": photo.id,
        "filename": photo.filename,
        "file_size": photo.file_size,
        "dedup": False,
        "message": "Uploaded",
    }


@routes.post("/upload-batch")
@inputs.takes_files(largest=MAX_FILE, most=MAX_BATCH)
@inputs.operation()
def upload_batch(form: BatchForm, files: list[FileStorage]) -> shapes.BatchUploaded:
    """Upload several screenshots. A failure is reported in its own result and does not affect the others."""
    now = utc_now()
    times = [
        inputs.moment("timestamps", value, now)
        for value in inputs.listed("timestamps", form.timestamps, most=len(files))
    ]
    ids = inputs.listed("local_ids", form.local_ids, most=len(files))
    inputs.listed("mime_types", form.mime_types, most=len(files))
    described = [
        Upload(form.device_id, file.filename or "", taken, form.device_name, local_media_store_id=local_id)
        for file, taken, local_id in zip(files, times, ids, strict=True)
    ]
    results = store_batch([_spool(file) for file in files], described, now=now)
    return {"uploaded": sum(result.get("dedup") is False for result in results), "results": results}


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.PhotoPage:
    """List photos, the newest upload first. With `since` or `until`, which filter by the time of the picture,
    the latest picture comes first.
    """
    since, until = parse_time(query.since, field="since"), parse_time(query.until, field="until")
    filters = Filters(query.status, query.device_id, query.category, query.intent, since, until)
    total, items = page(query.page, query.page_size, filters)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.get("/<id:photo_id>")
@inputs.operation(NotFound)
def show(photo_id: int) -> shapes.PhotoDetail:
    """Show a photo with its analysis."""
    return detail(photo_id)


@routes.get("/<id:photo_id>/image")
@inputs.operation(NotFound, Unreadable)
def image(
    photo_id: int,
) -> Annotated[flask.Response, inputs.Media(shapes.PICTURES, has_etag=True, has_ranges=True)]:
    """Get the picture as it was uploaded."""
    photo = get(photo_id)
    return _picture(open_original, photo, photo.mime_type, photo.sha256.hex(), photo.file_size)


@routes.get("/<id:photo_id>/thumbnail")
@inputs.operation(NotFound, Unreadable)
def thumbnail(
    photo_id: int,
) -> Annotated[flask.Response, inputs.Media(("image/jpeg",), has_etag=True, has_ranges=True)]:
    """Get a JPEG of at most 512 px on its long side."""
    photo = get(photo_id)
    return _picture(
        open_sound_thumbnail, photo, "image/jpeg", f"{photo.sha256.hex()}-{pictures.THUMBNAIL_SIDE}"
    )


@routes.delete("/<id:photo_id>")
@inputs.operation(NotFound)
def remove(photo_id: int) -> shapes.Done:
    """Delete a photo with its analysis and its files."""
    delete(photo_id)
    return {"message": "Deleted"}


def _spool(file: FileStorage) -> Spool:
    return cast(Spool, file.stream)  # `app.Request.open_spool` made it


def _picture(
    opened: Callable[[Photo], BinaryIO], photo: Photo, mime_type: str, etag: str, size: int | None = None
) -> flask.Response:
    """A stored picture as a response that a browser displays but never executes."""
    fresh = flask.Response(mimetype=mime_type)
    fresh.set_etag(etag)
    if not flask.request.if_none_match.contains_weak(etag):
        reader = opened(photo)
        if size is None:
            size = reader.seek(0, io.SEEK_END)
            reader.seek(0)
        elif size <= IN_MEMORY:
            reader = _whole(reader)
            if reader.seek(0, io.SEEK_END) != size:
                raise Unreadable("A stored file is damaged.")
            reader.seek(0)
        fresh = flask.send_file(reader, mimetype=mime_type, etag=etag, conditional=False)
        fresh.content_length = size
        fresh.call_on_close(reader.close)
    fresh.headers["Content-Security-Policy"] = "sandbox"
    fresh.headers["Cache-Control"] = "private, max-age=86400"
    fresh.make_conditional(flask.request.environ, accept_ranges=size is not None, complete_length=size)
    return fresh
