"""Uploads: storing a picture with its thumbnail and its rows, once; `/api/photos/upload`.

A photo consists of two sealed files, original and thumbnail, and two rows, photo and analysis. The rows are
inserted in one transaction, after the files have been flushed to the disk. A crash in between leaves files
without a row, which clean-up removes, but never a row without its files. The analysis row is the photo's
place in the queue, so storing a photo also queues its analysis.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple, cast

import msgspec
from werkzeug.datastructures import FileStorage

import access
import claims
import database
import devices
import disk
import photos
import pictures
from clock import utc_now
from database import db
from devices import MAX_NAME, DeviceId, EpochMs, Name
from errors import BadInput, SnaploreError
from models import Photo, Selected
from photos import display_name
from settings import MEGABYTE
from spool import Spool, keep_bytes, new_place
from web import inputs, shapes
from writings import taken

log = logging.getLogger(__name__)

MAX_FILE = 50 * MEGABYTE
MAX_BATCH = 50

CROWD = 2  # uploads at a time: more than a person who shares a picture, and what a phone that syncs has


class Arriving:
    """How many uploads this process is storing. Somebody waits for an upload, and nobody for its analysis, so
    in a crowd of uploads the processors are theirs: analyses wait for them a little.
    """

    def __init__(self) -> None:
        self._number = 0
        self._changed = threading.Condition()

    @property
    def crowded(self) -> bool:
        return self._number >= CROWD

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Count the upload that is stored in this context."""
        with self._changed:
            self._number += 1
        try:
            yield
        finally:
            with self._changed:
                self._number -= 1
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until there is no crowd, at most for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self.crowded, seconds)

    def clear(self) -> None:
        """Nothing to clear: uploads count themselves out."""


class Upload(msgspec.Struct, frozen=True):
    """What a client reports about a file. All of it is for display only, except the ids that de-duplicate."""

    device_id: str
    filename: str
    original_timestamp: datetime | None = None  # None: `writings.taken` decides
    device_name: str = ""
    source_type: str = "screenshot"
    local_media_store_id: str = ""
    token_id: int | None = None  # of the token that uploads it
    has_device: bool = True  # all of the device is the uploader's: see `access.use_device`
    file_date: datetime | None = None  # of the last change of the file, where the client knows it

    def taken(self, exif: datetime | None, *, now: datetime) -> taken.Taken:
        """When the picture was taken, and what says so."""
        return taken.decided(self.original_timestamp, exif, self.filename, self.file_date, now=now)


class Stored(NamedTuple):
    """The result of an upload."""

    id: int
    filename: str
    file_size: int
    dedup: bool  # it was stored before, so nothing was stored now


def store(spool: Spool, upload: Upload, *, now: datetime) -> Stored:
    """Store the picture in `spool`. When this returns, its files and rows have been flushed to the disk.

    The same bytes from one device are stored once, even by parallel uploads. A photo in the trash counts as
    stored, and stays there: a phone that syncs again must not bring back what its owner has thrown away.
    Raises `BadInput` for an empty file, `TooLarge`, and `UnsupportedImage`.
    """
    with database.store().cache(Arriving).one():
        return _store(spool, upload, now=now)


def is_stored(upload: Upload, sha256: bytes) -> bool:
    """Whether `store` would find these bytes stored. Opens a scope."""
    with database.scope():
        return _already_stored(upload, sha256) is not None


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


def _store(spool: Spool, upload: Upload, *, now: datetime) -> Stored:
    began = time.monotonic()
    spool.check()
    if (earlier := _already_stored(upload, spool.sha256)) is not None:
        _note_upload(upload, upload.taken(None, now=now).moment, new=0, now=now)
        log.info("photo %d uploaded again: nothing is stored", earlier.id)
        return earlier
    with spool.open() as picture:
        examined = pictures.examine(picture)
    written: list[Path] = []
    try:
        photo = _photo(spool, upload, examined, written, now=now)
        with db.atomic():
            # A parallel upload may have stored the same photo since the check above.
            earlier = _already_stored(upload, spool.sha256)
            if earlier is None:
                photo.save(force_insert=True)
                _note_upload(upload, photo.original_timestamp, new=1, now=now)
                claims.enqueue(photo, now=now)
    except BaseException:
        _discard(written)
        raise
    if earlier is not None:
        _discard(written)
        return earlier
    claims.arrival.send()
    log.info("photo %d uploaded: %d bytes, %.2f s", photo.id, photo.file_size, time.monotonic() - began)
    return Stored(photo.id, photo.filename, photo.file_size, dedup=False)


def _photo(
    spool: Spool, upload: Upload, examined: pictures.Examined, written: list[Path], *, now: datetime
) -> Photo:
    """Write the two files of a picture, named in `written` before; returns its row, not yet inserted."""
    current = database.store()
    original = new_place(current.photos)
    thumbnail = original.with_name(f"{original.name}.thumbnail")
    written += (original, thumbnail)
    file_key, thumbnail_key = spool.keep(original), keep_bytes(examined.thumbnail, thumbnail)
    moment, source = upload.taken(examined.taken, now=now)
    disk.sync_file(original.parent)
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
        perceptual_hash=examined.perceptual_hash,
        source_type=upload.source_type[:MAX_NAME] or "screenshot",
        token_id=upload.token_id,
        original_timestamp=moment,
        taken_from=source,
        created_at=now,
        sha256=spool.sha256,
        file_key=file_key,
        thumbnail_key=thumbnail_key,
        key_generation=current.ring.generation,
        disk_bytes=original.stat().st_size + thumbnail.stat().st_size,
    )


def _note_upload(upload: Upload, moment: datetime, *, new: int, now: datetime) -> None:
    known = moment if upload.has_device else None
    devices.note_upload(upload.device_id, known, device_name=upload.device_name, new=new, now=now)


def _discard(written: list[Path]) -> None:
    for path in written:
        path.unlink(missing_ok=True)


def _already_stored(upload: Upload, sha256: bytes) -> Stored | None:
    """The same bytes from the same device, if they are stored.

    Uploads that name no device may come from anywhere: of these, only those with the same id are the same. A
    photo in the trash counts for what sends ids: that is a sync, and not a person who uploads it once more.
    """
    same = Selected("photos").where("device_id = ? AND sha256 = ?", upload.device_id, sha256)
    if not upload.has_device:
        same = same.where("token_id IS ?", upload.token_id)
    if upload.device_id == access.NO_DEVICE:
        if not upload.local_media_store_id:
            return None
        same = same.where("local_media_store_id = ?", upload.local_media_store_id)
    elif not upload.local_media_store_id:
        same = same.where("NOT EXISTS (SELECT 1 FROM trash WHERE photo_id = photos.id)")
    sql = f"SELECT id, filename, file_size FROM {same.sql} ORDER BY id LIMIT 1"  # noqa: S608
    found = db.execute_sql(sql, same.values).fetchone()
    return None if found is None else Stored(found[0], found[1], found[2], dedup=True)


def _batch_error(problem: SnaploreError, spool: Spool) -> str:
    if spool.oversized:
        return "too large"
    if not spool.size:
        return "empty"
    return "unsupported image" if isinstance(problem, BadInput) else problem.detail


# ----------------------------------------------------------------------------------------------------- routes

routes = photos.routes


class UploadForm(msgspec.Struct):
    device_id: DeviceId = access.NO_DEVICE
    device_name: Name = ""
    source_type: Name = "screenshot"
    local_media_store_id: Name = ""
    original_timestamp: EpochMs = ""
    file_timestamp: EpochMs = ""
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
    file_timestamps: Entries = ""
    local_ids: Entries = ""
    mime_types: Entries = ""


@routes.post("/upload")
@inputs.takes_files(largest=MAX_FILE)
@inputs.operation()
def upload(form: UploadForm, file: FileStorage) -> shapes.Uploaded:
    """Upload a screenshot.

    The bytes decide its type: JPEG, PNG, WebP, GIF, HEIC or AVIF. When the answer is sent, the picture is on
    the disk. The same bytes from the same `device_id` are stored once, also, if they have a
    `local_media_store_id`, when they are in the trash, where they stay. The same id with other bytes is
    another photo. Without a `device_id`, only the same bytes with the same id are one photo. A token that may
    only upload is of the first device that it sends; with another one, it is 403.

    Without `original_timestamp`, the picture was taken when its EXIF data says, else its file's name
    (`Screenshot_20260102-101112.png`, in the time zone of the service), else at `file_timestamp`, the last
    change of the file, else now. `taken_from` in the photo's detail says which it was.
    """
    return _shown(store(_spool(file), _described(form, file), now=utc_now()))


def _shown(photo: Stored) -> shapes.Uploaded:
    stored: shapes.Uploaded = {
        "id": photo.id,
        "filename": photo.filename,
        "dedup": photo.dedup,
        "message": "Already exists (dedup)" if photo.dedup else "Uploaded",
    }
    if not photo.dedup:
        stored["file_size"] = photo.file_size
    return stored


@routes.post("/upload-batch")
@inputs.takes_files(largest=MAX_FILE, most=MAX_BATCH)
@inputs.operation()
def upload_batch(form: BatchForm, files: list[FileStorage]) -> shapes.BatchUploaded:
    """Upload several screenshots. A failure is reported in its own result and does not affect the others."""
    results = store_batch(map(_spool, files), _described_each(form, files), now=utc_now())
    return {"uploaded": sum(result.get("dedup") is False for result in results), "results": results}


def _described(form: UploadForm, file: FileStorage) -> Upload:
    caller, has_device = _uploader(form.device_id)
    return Upload(
        form.device_id,
        file.filename or "",
        inputs.moment("original_timestamp", form.original_timestamp),
        form.device_name,
        form.source_type,
        form.local_media_store_id,
        caller.token_id,
        has_device,
        inputs.moment("file_timestamp", form.file_timestamp),
    )


def _described_each(form: BatchForm, files: list[FileStorage]) -> list[Upload]:
    caller, has_device = _uploader(form.device_id)
    entries = [
        inputs.listed(name, getattr(form, name), most=len(files))
        for name in ("timestamps", "file_timestamps", "local_ids", "mime_types")
    ]
    return [
        Upload(
            form.device_id,
            file.filename or "",
            inputs.moment("timestamps", taken),
            form.device_name,
            local_media_store_id=local_id,
            token_id=caller.token_id,
            has_device=has_device,
            file_date=inputs.moment("file_timestamps", changed),
        )
        for file, taken, changed, local_id, _ in zip(files, *entries, strict=True)
    ]


def _uploader(device_id: str) -> tuple[access.Caller, bool]:
    """Who uploads for a device, and whether they may have all of it. Raises `BadInput`, `Forbidden`."""
    devices.check_id(device_id)
    caller = access.caller()
    return caller, access.use_device(caller, device_id)


def _spool(file: FileStorage) -> Spool:
    return cast(Spool, file.stream)  # `app.Request.open_spool` made it
