"""Importing what other programs export: zips and folders, several of them as one export, without unpacking
anything to the disk.

Each picture is read from its zip in blocks into a sealed spool, and stored as an upload is. What the export
says about it, its time, note, tags and that it is a favourite, is filled in where the photo has nothing of
its own. Everything is recognised by its content, so an import may be killed and run again.

All sources are read twice: first for what they say about pictures, because a picture and its JSON file may be
in different zips.
"""

import contextlib
import lzma
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import database
import records
import uploads
from curation import words
from database import db
from errors import BadInput
from models import Shown
from upkeep import exported, importing, takeout
from upkeep.importing import NOTHING_SAID, Said

ALREADY_THERE = "already there"  # known without reading it
MAX_SHOWN = 300  # characters of a place in a zip
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError)


class Item(NamedTuple):
    """A file that may be a picture. `receive` works until the next item is taken."""

    shown: str  # its place, as one line of text
    receive: Callable[[], importing.Received | None]  # None: not a picture
    said: Said


class Sources:
    """Zips and folders that are imported together. Raises `BadInput` when one is nothing that can be read."""

    def __init__(self, sources: Sequence[Path], *, own: Path):
        self._own = own
        self._sources = sources
        self._sidecars = takeout.Sidecars()
        self._exports: dict[Path, exported.Export] = {}
        self.count = 0
        for source in sources:
            self.count += self._read_zip(source) if source.is_file() else self._read_folder(source)

    def items(self, failed: Callable[[str, Exception], None]) -> Iterator[Item]:
        """Every file but those that say something about others. `failed` gets folders without access."""
        for source in self._sources:
            if source.is_file():
                yield from self._in_zip(source)
            else:
                yield from self._in_folder(source, failed)

    def _read_zip(self, source: Path) -> int:
        count = 0
        with _opened(source) as archive:
            if exported.is_one(archive):
                self._exports[source] = exported.read(archive)
            for member in _members(archive):
                folder, _, name = member.filename.rpartition("/")
                if self._says_something(name):
                    with contextlib.suppress(*_DAMAGED, OSError), archive.open(member) as file:
                        self._remember(folder, name, file.read(takeout.MOST_TABLE_BYTES))
                else:
                    count += 1
        return count

    def _read_folder(self, source: Path) -> int:
        count = 0
        for file in importing.files(source, leave_out=self._own):
            if self._says_something(file.name):
                with contextlib.suppress(OSError, BadInput):
                    folder = "/".join(file.places[:-1])
                    self._remember(folder, file.name, importing.read_small(file, takeout.MOST_TABLE_BYTES))
            else:
                count += 1
        return count

    @staticmethod
    def _says_something(name: str) -> bool:
        return name.endswith(".json") or takeout.is_table(name)

    def _remember(self, folder: str, name: str, content: bytes) -> None:
        if takeout.is_table(name):
            for picture, said in takeout.details(content):
                self._sidecars.add_picture(folder, picture, said)
        elif len(content) <= takeout.MOST_BYTES and (found := takeout.facts(content)):
            self._sidecars.add(folder, name, found)

    def _in_zip(self, source: Path) -> Iterator[Item]:
        export = self._exports.get(source)
        with _opened(source) as archive:
            for member in _members(archive):
                folder, _, name = member.filename.rpartition("/")
                if export is None and self._says_something(name):
                    continue
                shown = importing.one_line(f"{source.name}/{member.filename}", MAX_SHOWN)
                found = export.of(member.filename) if export else self._sidecars.of(folder, name)
                yield Item(shown, _receiver(archive, member, name), found or NOTHING_SAID)

    def _in_folder(self, source: Path, failed: Callable[[str, Exception], None]) -> Iterator[Item]:
        def not_listed(entry: importing.Entry, problem: Exception) -> None:
            failed(entry.shown, problem)

        for file in importing.files(source, leave_out=self._own, failed=not_listed):
            if not self._says_something(file.name):
                found = self._sidecars.of("/".join(file.places[:-1]), file.name)
                yield Item(file.shown, partial(importing.receive, file), found or NOTHING_SAID)


def store(item: Item, device_id: str, device_name: str) -> bool | None:
    """Store an item: True if new, False if known, None for no picture. Raises `SnaploreError`, `OSError`."""
    received = item.receive()
    if received is None:
        return None
    said = item.said
    with received:
        stored = importing.store(received, importing.described(received, device_id, device_name, said))
    if said.kept or said.tags or said.texts or said.records:
        with database.scope(), db.atomic():
            _fill_in(stored.id, said)
    return not stored.dedup


def trial() -> Callable[[Item, str, str], bool | None]:
    """`store`, which only says what it would do. The pictures are read and not decoded."""
    seen: set[bytes] = set()

    def would_store(item: Item, device_id: str, device_name: str) -> bool | None:
        received = item.receive()
        if received is None:
            return None
        with received:
            upload = importing.described(received, device_id, device_name, item.said)
            is_new = received.sha256 not in seen and not uploads.is_stored(upload, received.sha256)
            seen.add(received.sha256)
        return is_new

    return would_store


def _fill_in(photo_id: int, said: Said) -> None:
    """Write what an export says about a photo, where the photo has nothing of its own."""
    row = Shown.get_or_none(Shown.photo == photo_id)
    if row is None:  # in the trash
        return
    own = {"note": row.note, "title": row.own_title, "summary": row.own_summary, "text": row.own_text}
    texts = {name: text for name, text in said.texts.items() if not own[name]}
    if said.records and not row.own_records:
        with contextlib.suppress(BadInput):  # types of an earlier version
            texts["records"] = records.encoded(records.corrected(said.records, photo_id))
    tags = said.tags if said.tags and row.tags == "[]" else None
    words.change(photo_id, words.Changes(kept=said.kept or None, tags=tags, texts=texts))


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(source)
    except _DAMAGED:
        raise BadInput(f"{source}: this is no zip that can be read") from None
    except OSError as problem:
        raise BadInput(f"{source}: {problem.strerror}") from None
    with archive:
        yield archive


def _members(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    """The files of a zip, without hidden ones and what macOS adds."""
    for member in archive.infolist():
        places = member.filename.split("/")
        if not member.is_dir() and not any(place.startswith((".", "__MACOSX")) for place in places):
            yield member


def _receiver(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str
) -> Callable[[], importing.Received | None]:
    def receive() -> importing.Received | None:
        try:
            with archive.open(member) as file:
                blocks = iter(lambda: file.read(importing.BLOCK), b"")
                return importing.received(blocks, name, _modified(member.date_time))
        except _DAMAGED as problem:
            is_locked = isinstance(problem, RuntimeError) and bool(member.flag_bits & 1)
            raise BadInput("it is encrypted" if is_locked else "it is damaged in the zip") from None

    return receive


def _modified(date_time: Any) -> float:
    """A zip's local time in epoch seconds; 0 when it is no time."""
    try:
        return time.mktime(datetime(*date_time).timetuple())
    except (ValueError, OverflowError):
        return 0.0
