"""The originals of chosen photos as one zip, created while it is sent; `/api/photos/export`. It also has what
any zip of pictures needs: names that every system can write, and entries that are streamed.

A slow client blocks nothing: files are opened in short scopes, and no scope is open while a part is sent. A
picture that is deleted meanwhile is still read from its open file. Only a block of a picture is in memory,
and nothing readable is written to the disk. Pictures are stored uncompressed, because they are compressed
already. To leave out a damaged one, each is read twice: once before its first byte is sent.
"""

import contextlib
import hashlib
import itertools
import re
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO

import flask
import msgspec
from flask import Blueprint

import database
import photos
from clock import utc_now
from curation.batch import PhotoIds
from errors import NotFound, Unavailable, Unreadable
from loops import Places
from models import Photo
from settings import NAME
from web import inputs

OPENED = 10  # files that are opened in one scope and stay open until the client has received them
BLOCK = 262_144  # bytes
MAX_STEM = 50  # characters: at most 200 bytes in UTF-8, and a file name may have 255
EARLIEST, LATEST = datetime(1980, 1, 1), datetime(2107, 12, 31)  # the range of dates in a zip

# An export occupies one of the server's 16 threads (gunicorn.conf.py) until its client has received it.
MOST_EXPORTS = 2
EXPORTS_AGAIN = 60.0  # seconds, for Retry-After


class Outlet:
    """The file that a zip is written to: it cannot seek, and holds what was not yet taken."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, data: bytes) -> int:
        self._held += data
        return len(data)

    def flush(self) -> None:
        """There is nothing to flush."""

    def close(self) -> None:
        """There is nothing to close."""

    def take(self) -> bytes:
        taken = bytes(self._held)
        self._held.clear()
        return taken

    def full(self) -> bool:
        return len(self._held) >= BLOCK


def chosen(photo_ids: list[int]) -> list[int]:
    """Those of these photos that exist and are not in the trash, in order. Raises `NotFound` for none."""
    there = {item["id"] for item in photos.list_items(photo_ids)}
    found = [photo_id for photo_id in dict.fromkeys(photo_ids) if photo_id in there]
    if not found:
        raise NotFound("Photo not found")
    return found


def stream(photo_ids: list[int], *, now: datetime) -> Iterator[bytes]:
    """A zip of the originals in parts of about `BLOCK` bytes. Opens its own short scopes.

    Each file has the name that it was uploaded with, with a number where two have the same, and the
    picture's time. What cannot be read is listed in `left-out.json`.
    """
    outlet = Outlet()
    names: set[str] = set()
    left_out: list[dict[str, Any]] = []
    with zipfile.ZipFile(outlet, "w") as archive:
        for start in range(0, len(photo_ids), OPENED):
            with contextlib.ExitStack() as opened:
                files = [_opened(photo_id) for photo_id in photo_ids[start : start + OPENED]]
                for _, reader in files:
                    if reader is not None:
                        opened.callback(reader.close)
                for photo, reader in files:
                    if photo is None:  # deleted meanwhile
                        continue
                    name = _unique(file_name(photo), names)
                    if reader is None or not is_whole(reader, photo.sha256):
                        left_out.append({"photo_id": photo.id, "file": name})
                        continue
                    yield from write(archive, outlet, name, photo.original_timestamp, reader)
        if left_out:
            with archive.open(entry("left-out.json", now, zipfile.ZIP_DEFLATED), "w") as listed:
                listed.write(msgspec.json.format(msgspec.json.encode(left_out), indent=2))
    yield outlet.take()


def write(
    archive: zipfile.ZipFile, outlet: Outlet, name: str, moment: datetime, reader: BinaryIO
) -> Iterator[bytes]:
    """Write a picture into the zip; yields a part whenever the outlet is full."""
    reader.seek(0)
    with archive.open(entry(name, moment, zipfile.ZIP_STORED), "w") as written:
        while block := reader.read(BLOCK):
            written.write(block)
            if outlet.full():
                yield outlet.take()


def is_whole(file: BinaryIO, sha256: bytes | None) -> bool:
    """Whether `file` can be read to its end and has this checksum, if that is known."""
    digest = hashlib.sha256()
    try:
        while block := file.read(BLOCK):
            digest.update(block)
    except OSError:
        return False
    return sha256 in (None, digest.digest())


def entry(name: str, moment: datetime, compression: int) -> zipfile.ZipInfo:
    """The entry of a file in a zip."""
    made = zipfile.ZipInfo(name, min(LATEST, max(EARLIEST, moment)).timetuple()[:6])
    made.compress_type = compression
    made.external_attr = 0o600 << 16  # Unix mode: without it some programs unpack unreadable files
    return made


FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # characters that some system forbids in file names
RESERVED = re.compile(r"(?i)con|prn|aux|nul|com\d|lpt\d")  # names that Windows forbids


def stem(photo: Photo) -> str:
    """The client's file name without its extension, made safe for every system."""
    return FORBIDDEN.sub("_", PurePosixPath(photo.filename).stem)[:MAX_STEM].strip(" .") or "screenshot"


def ending(photo: Photo) -> str:
    """The extension of the picture's real type."""
    return {"image/jpeg": "jpg"}.get(photo.mime_type, photo.mime_type.removeprefix("image/"))


def file_name(photo: Photo) -> str:
    """The client's file name, made safe for every system."""
    name = stem(photo)
    return f"{name}_.{ending(photo)}" if RESERVED.fullmatch(name) else f"{name}.{ending(photo)}"


def _unique(name: str, taken: set[str]) -> str:
    """`name`, with a number if it is taken, also in another case: not every system tells `a` from `A`."""
    begin, dot, end = name.rpartition(".")
    names = itertools.chain([name], (f"{begin} ({number}){dot}{end}" for number in itertools.count(2)))
    free = next(name for name in names if name.casefold() not in taken)
    taken.add(free.casefold())
    return free


def _opened(photo_id: int) -> tuple[Photo | None, BinaryIO | None]:
    """The row and an open file, in a scope for both: a rotation changes the files' keys."""

    def opened() -> tuple[Photo, BinaryIO]:
        photo = photos.get(photo_id)
        return photo, photos.open_original(photo)

    try:
        return photos.bringing(opened)
    except NotFound:
        return None, None
    except (Unreadable, Unavailable):
        with contextlib.suppress(NotFound), database.scope():
            return photos.get(photo_id), None
    return None, None


_exports = Places(MOST_EXPORTS, full="Too many exports are running.", retry_after=EXPORTS_AGAIN)

# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("originals", __name__, url_prefix="/api/photos")


class ExportRequest(msgspec.Struct):
    ids: PhotoIds


@routes.post("/export", endpoint="export")
@inputs.without_scope
@inputs.operation(NotFound, Unavailable)
def download(body: ExportRequest) -> Annotated[flask.Response, inputs.Media(("application/zip",))]:
    """Get the originals of up to 500 photos as a zip. Ids that do not exist are left out."""
    now = utc_now()
    with database.scope():
        ids = chosen(body.ids)
    place = contextlib.ExitStack()  # closed when the client has received everything
    place.enter_context(_exports.one())
    answer = flask.Response(stream(ids, now=now), mimetype="application/zip")
    name = f"{NAME.lower()}-{len(ids)}-{now.date().isoformat()}.zip"
    answer.headers["Content-Disposition"] = f"attachment; filename={name}"
    answer.call_on_close(place.close)
    return answer
