"""The export: all of the person's data as one zip of readable files, created while it is sent.

A slow client blocks nothing: rows are read and files are opened in short scopes, and no scope is open while a
part is sent. A picture that is deleted meanwhile is still read from its open file. One that was deleted
earlier, or whose bytes are not the uploaded ones, is left out and listed in `left-out.json`. To know that
before its first byte is sent, each picture is read twice. `curation/originals.py` writes pictures into a zip.

Memory use does not depend on the amount of data, except for the directory at the end of the zip, 0.4 KB per
picture: beside it, only a block of a picture and a few rows are held. Pictures are stored uncompressed,
because they are compressed already. Secrets are left out: keys, push tokens, and the queries of addresses,
which may contain secrets.
"""

import contextlib
import itertools
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

import msgspec
import peewee

import agenda
import database
import llm
import models
import photos
import readings
from assistant import conversations, mcp_servers, skills, turns
from clock import iso
from curation import retention
from curation.originals import FORBIDDEN, OPENED, RESERVED, Outlet, ending, entry, is_whole, stem, write
from engines import configuration
from errors import NotFound, Unavailable, Unreadable
from models import Analysis, Conversation, Dynamic, Memory, Message, Photo, SavedSearch, Trash
from settings import NAME, VERSION, Settings
from web import shapes

ROWS = 50  # read in one scope; the row of a screenshot may contain 100 KB of text
MAX_FOLDER = 100


def stream(settings: Settings, *, with_trash: bool = False, now: datetime) -> Iterator[bytes]:
    """The zip in parts of about `BLOCK` bytes. Opens its own short scopes.

    It contains `photos.json`, `conversations.json`, `notes.json`, `memories.json`, `searches.json`,
    `skills.json` and `settings.json`; the pictures by device and day, under the names in `photos.json`; the
    attachments by conversation. Photos in the trash are left out, unless `with_trash`: then `trash.json`
    lists them.
    """
    outlet = Outlet()
    with zipfile.ZipFile(outlet, "w") as archive:
        yield from _Export(archive, outlet, settings, with_trash, now).parts()
    yield outlet.take()


class _File(NamedTuple):
    """A stored picture on its way into the zip."""

    kind: str  # the name of the id's field in `left-out.json`
    id: int
    name: str
    moment: datetime
    reader: BinaryIO | None  # None: it cannot be opened
    sha256: bytes | None = None  # of the uploaded bytes, where it is known


class _Export:
    """The content of one zip. Its generators yield a part when enough is written, never inside a scope."""

    def __init__(
        self, archive: zipfile.ZipFile, outlet: Outlet, settings: Settings, with_trash: bool, now: datetime
    ):
        self._archive, self._outlet, self._settings, self._now = archive, outlet, settings, now
        self._with_trash = with_trash
        self._left_out: dict[str, dict[str, Any]] = {}  # by name

    def parts(self) -> Iterator[bytes]:
        with database.scope():
            settings = _settings(self._settings, now=self._now)
            known_skills = skills.every(self._settings.language, now=self._now)
            newest = Photo.select(peewee.fn.MAX(Photo.id)).scalar() or 0
        yield from self._write_json("settings.json", [settings], single=True)
        yield from self._write_json("skills.json", map(_record, known_skills))
        yield from self._write_json("memories.json", map(_record, _rows(Memory.select(), Memory.id)))
        yield from self._write_json(
            "searches.json", map(_record, _rows(SavedSearch.select(), SavedSearch.id))
        )
        yield from self._write_json("notes.json", map(_note, _rows(Dynamic.select(), Dynamic.id)))
        pictures = Photo.select().where(Photo.id <= newest)
        if not self._with_trash:
            pictures = pictures.where(~models.IN_TRASH)
        yield from self._write_files(pictures, Photo.id, _picture)
        analyses = Analysis.select(Analysis, Photo).join(Photo).where(Analysis.photo <= newest)
        yield from self._write_json("photos.json", self._photos(analyses))
        if self._with_trash:
            yield from self._write_json("trash.json", self._trashed())
        yield from self._write_files(
            Message.select().where(Message.attachment_path.is_null(False)), Message.id, _attachment
        )
        yield from self._write_json("conversations.json", _conversations())
        yield from self._write_json("left-out.json", self._left_out.values())

    def _write_json(self, name: str, items: Iterable[Any], *, single: bool = False) -> Iterator[bytes]:
        """Write a JSON list item by item; with `single`, write the only item itself."""
        with self._archive.open(
            entry(name, self._now, zipfile.ZIP_DEFLATED), "w", force_zip64=True
        ) as written:
            written.write(b"" if single else b"[")
            for number, item in enumerate(items):
                written.write(b",\n" if number else b"")
                written.write(msgspec.json.format(msgspec.json.encode(item), indent=2))
                yield from self._part()
            written.write(b"\n" if single else b"]\n")

    def _write_files(
        self, query: "peewee.ModelSelect[Any]", key: peewee.Field, file_of: Callable[[Any], _File]
    ) -> Iterator[bytes]:
        """Write the stored files of the rows."""
        for rows in database.batches(query, key, OPENED):
            with contextlib.ExitStack() as opened:
                files = [file_of(row) for row in rows]
                for file in files:
                    if file.reader is not None:
                        opened.callback(file.reader.close)
                for file in files:
                    yield from self._write_file(file)

    def _write_file(self, file: _File) -> Iterator[bytes]:
        if file.reader is None or not is_whole(file.reader, file.sha256):
            self._left_out[file.name] = {file.kind: file.id, "file": file.name}
            return
        yield from write(self._archive, self._outlet, file.name, file.moment, file.reader)

    def _part(self) -> Iterator[bytes]:
        if self._outlet.full():
            yield self._outlet.take()

    def _photos(self, analyses: "peewee.ModelSelect[Any]") -> Iterator[dict[str, Any]]:
        for rows in database.batches(analyses, Analysis.photo, ROWS):
            ids = [row.photo_id for row in rows]
            with database.scope():
                details, read, planned = photos.details(ids), readings.of(ids), agenda.on_photos(ids)
            for row in rows:
                if row.photo_id in details:  # not thrown away meanwhile
                    items = planned.get(row.photo_id, [])
                    yield {
                        **self._photo(row, details[row.photo_id], read.get(row.photo_id)),
                        "agenda": [shapes.of(item, shapes.AgendaFields) for item in items],
                    }

    def _trashed(self) -> Iterator[dict[str, Any]]:
        joined: peewee.ModelSelect[Any] = Trash.select(Trash, Photo).join(Photo)
        for rows in database.batches(joined, Trash.photo, ROWS):
            names = {row.photo_id: _picture_name(row.photo) for row in rows}
            with database.scope():
                items = photos.trashed_items(list(names))
            for item in items:
                name = names[item["id"]]
                yield {**item, "file": None if name in self._left_out else name}

    def _photo(
        self, analysis: Analysis, detail: shapes.PhotoDetail, read: readings.Lines | None
    ) -> dict[str, Any]:
        name = _picture_name(analysis.photo)
        found = {"entities": msgspec.json.decode(analysis.entities), "visible_text": analysis.visible_text}
        paths = ("original_path", "thumbnail_path")  # of the data folder, which means nothing outside of it
        return {
            **{field: value for field, value in detail.items() if field not in paths},
            "file": None if name in self._left_out else name,
            "lines": readings.shown(read.lines) if read else [],
            "analysis": {**detail["analysis"], **found},
        }


def _rows(query: "peewee.ModelSelect[Any]", key: peewee.Field) -> Iterator[Any]:
    return itertools.chain.from_iterable(database.batches(query, key, ROWS))


# --------------------------------------------------------------------------------------------------- pictures


def _picture(photo: Photo) -> _File:
    reader = _opened(photos.open_original, photo)
    return _File("photo_id", photo.id, _picture_name(photo), photo.original_timestamp, reader, photo.sha256)


def _attachment(message: Message) -> _File:
    reader = _opened(turns.open_picture, message)
    return _File(
        "message_id",
        message.id,
        _attachment_name(message.conversation_id, message.id),
        message.created_at,
        reader,
    )


def _opened(opener: Callable[[Any], BinaryIO], row: Photo | Message) -> BinaryIO | None:
    """An open file, in a scope with its row as it is now: a rotation changes the files' keys."""

    def opened() -> BinaryIO | None:
        current = type(row).get_or_none(type(row).id == row.id)
        return None if current is None else opener(current)

    try:
        return photos.bringing(opened)
    except (Unreadable, Unavailable):
        return None


def _picture_name(photo: Photo) -> str:
    """The file name, safe for every system and unique by the photo's id, with the type's extension."""
    folder = FORBIDDEN.sub("_", photo.device_id)[:MAX_FOLDER]
    folder = f"{folder}_" if RESERVED.fullmatch(folder) else folder
    name = f"{stem(photo)}-{photo.id}.{ending(photo)}"
    return f"photos/{folder}/{photo.original_timestamp.date().isoformat()}/{name}"


def _attachment_name(conversation_id: str, message_id: int) -> str:
    return f"attachments/{conversation_id}/{message_id}.jpg"


# ---------------------------------------------------------------------------------------------------- records


def _record(row: models.Model) -> dict[str, Any]:
    return {
        name: iso(value) if isinstance(value, datetime) else value for name, value in row.__data__.items()
    }


def _note(dynamic: Dynamic) -> dict[str, Any]:
    names = ("source_photo_ids", "source_conversation_ids")
    return {**_record(dynamic), **{name: msgspec.json.decode(getattr(dynamic, name)) for name in names}}


def _conversations() -> Iterator[dict[str, Any]]:
    for row in _rows(Conversation.select(Conversation.id), Conversation.id):
        try:
            with database.scope():
                conversation = conversations.detail(row.id)
                attached = Message.select(Message.id).where(
                    Message.conversation == row.id, Message.attachment_path.is_null(False)
                )
                ids = {message.id for message in attached}
        except NotFound:  # deleted meanwhile
            continue
        messages = [
            {**message, "file": _attachment_name(row.id, message["id"]) if message["id"] in ids else None}
            for message in conversation["messages"]
        ]
        yield {**conversation, "messages": messages}


def _settings(settings: Settings, *, now: datetime) -> dict[str, Any]:
    model = llm.shown(configuration.current(settings))
    servers = [{**_record(server), "url": _plain(server.url)} for server in mcp_servers.registered()]
    return {
        "exported_by": f"{NAME} {VERSION}",
        "exported_at": iso(now),
        "retention_days": retention.days(settings),
        "language": settings.language,
        "llm": {**model, "base_url": _plain(model["base_url"])},
        "mcp_servers": servers,
    }


def _plain(address: str) -> str:
    return urlsplit(address)._replace(query="", fragment="").geturl()
