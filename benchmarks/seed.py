"""Data folders with many photos, a million in a quarter of an hour.

The first of every `ALIKE` photos goes through `uploads.store` and a worker: its files are sealed, its
rows written and its text indexed as in service. The rows of the following photos are copies of its rows
with their own ids, names, times and texts; their files are hard links to its files; and they are indexed
together.
A test checks that both ways leave the same in every table.

Work that would take hours for 100,000 photos and does not affect the measurements is left out: pictures have
half a kilobyte instead of a megabyte, the model's answers are made up, and nothing is flushed to the disk
before the whole folder is complete. After a power cut, the folder has to be made again.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO
from unittest import mock

import msgspec

import agenda
import database
import devices
import disk
import gate
import lexicon
import llm
import models
import readings
import reasoner
import uploads
from analysis import results
from analysis.pool import Worker
from benchmarks import material
from database import db
from engines.findings import Findings
from models import Analysis, Photo, Reading, Uncompared
from settings import Settings
from spool import Spool, new_place
from upkeep import rollback

ALIKE = 1_000  # photos in one transaction that share their files; ext4 allows 65,000 links to one
# Indexes are written at random places. A large page cache (KiB) and a long write-ahead log (pages) collect
# several writes of a page before it goes to the disk.
CACHE = 256 * 1024
LOG = 50_000
DEVICES = 3
DAYS = 30  # over which the photos are spread, like the default retention period
REFERENCE = 1_000  # photos in the small folder, with which the large one is compared
SCREENSHOTS = 12  # at most; a quick run uses fewer


class MadeUpModel:
    """A model that answers at once with a made-up text."""

    identity = "benchmark/made-up"

    def __init__(self, writer: material.Writer):
        self._writer = writer

    def analyse(
        self, picture: BinaryIO, *, name: str = "", text: str = "", taken: datetime | None = None
    ) -> Findings:
        return self._writer.findings()

    def close(self) -> None:
        """Nothing to close."""


class Folders:
    """The data folders of one run under `root`, each made at its first use."""

    def __init__(self, root: Path, size: int, rounds: int, *, now: datetime, pictures: Path | None = None):
        """With `pictures`, screenshots are the files of that folder, and not made up."""
        self.size = size
        self._pictures = pictures
        self.rounds = rounds
        self.now = now  # the time at which the last photo was stored
        self.seconds = 0.0  # spent on filling them
        self._root = root

    @property
    def has_pictures(self) -> bool:
        """Whether screenshots are given ones."""
        return self._pictures is not None

    @functools.cached_property
    def large(self) -> Settings:
        return self._filled("large", self.size)

    @functools.cached_property
    def small(self) -> Settings:
        return self._filled("small", REFERENCE) if self.size > REFERENCE else self.large

    @functools.cached_property
    def plain(self) -> Settings:
        """The large folder without encryption and without pictures."""
        target = self.empty("plain", encryption=False)
        copy_unencrypted(self.large, target)
        return target

    @functools.cached_property
    def screenshots(self) -> list[bytes]:
        """Different PNGs of a phone's size, or the given pictures."""
        if self._pictures is not None:
            return [path.read_bytes() for path in sorted(self._pictures.iterdir())]
        writer = material.Writer()
        return [material.screenshot(writer, number) for number in range(min(SCREENSHOTS, 3 * self.rounds))]

    def empty(self, name: str, **settings: Any) -> Settings:
        """The settings of an empty folder."""
        # What a measurement has stored is not read again in the background of the next one.
        quiet = Settings(data_dir=self.path(name), language="en", read_locally=False)
        return dataclasses.replace(quiet, **settings)

    def path(self, name: str) -> Path:
        return self._root / name

    def _filled(self, name: str, size: int) -> Settings:
        print(f"storing and analysing {size:,} photos ...", file=sys.stderr, flush=True)
        begun = time.perf_counter()
        settings = self.empty(name)
        fill(settings, size, now=self.now)
        self.seconds += time.perf_counter() - begun
        return settings


def fill(settings: Settings, size: int, *, now: datetime, alike: int = ALIKE) -> None:
    """Make the data folder of `settings` with `size` analysed photos. It stays open in this process."""
    database.open_store(settings)
    lexicon.renew()  # as a service does at its start, which would otherwise build the index once more
    writer = material.Writer()
    with (
        mock.patch.object(llm, "model_for", return_value=MadeUpModel(writer)),
        mock.patch.object(disk, "sync_file"),
        database.scope(),
    ):
        for pragma in ("synchronous = OFF", f"cache_size = -{CACHE}", f"wal_autocheckpoint = {LOG}"):
            db.execute_sql(f"PRAGMA {pragma}")
        gate.mark_older()  # notes the rules of this version, by which all that follows is marked
        # One transaction spans many photos, so the queue must not open scopes of its own.
        with mock.patch.object(database, "scope", contextlib.nullcontext):
            for first in range(0, size, alike):
                moments = [
                    now - timedelta(days=DAYS) * (size - number) / size
                    for number in range(first, min(first + alike, size))
                ]
                with db.atomic():
                    _store_and_analyse(settings, first, moments[0])
                    _add_alike(writer, first + 1, moments[1:])
        # The days that they name are nowhere measured, and would be looked for beside what is.
        models.store_value("agenda.looked", {"grammar": agenda.GRAMMAR, "below": 0})
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close_connections()
    os.sync()


def copy_unencrypted(source: Settings, target: Settings) -> None:
    """Make the data folder of `target`: an unencrypted copy of the database of `source`, without pictures."""
    database.open_store(target)
    database.close_connections()
    plain = database.store().database
    for file in plain.parent.iterdir():
        file.unlink()
    database.open_store(source)
    with database.scope():
        db.execute_sql("ATTACH DATABASE ? AS plain KEY ''", (str(plain),))
        db.execute_sql("SELECT sqlcipher_export('plain')")
        db.execute_sql("DETACH DATABASE plain")
    database.close_connections()
    # The copy has the name and the starts of the other folder.
    database.open_store(target, any_age=True)
    rollback.accept()
    database.open_store(source)
    database.close_connections()


def upload_of(data: bytes) -> Spool:
    """A spool with `data`, as the form parser makes it from a file part."""
    spool = Spool(uploads.MAX_FILE)
    spool.write(data)
    return spool


def described(number: int, taken: datetime) -> uploads.Upload:
    return uploads.Upload(
        f"phone_{number % DEVICES}",
        f"Screenshot_{number:06}.png",
        taken,
        "Phone",
        local_media_store_id=str(number),
    )


def _store_and_analyse(settings: Settings, number: int, moment: datetime) -> None:
    spool = upload_of(material.tiny_picture(number))
    with database.scope():
        uploads.store(spool, described(number, moment), now=moment)
    with contextlib.closing(Worker(settings, clock=lambda: moment)) as worker:
        worker.work()


def _add_alike(writer: material.Writer, first: int, moments: list[datetime]) -> None:
    """Add the photos from number `first` on, stored and analysed at `moments`, as copies of the last photo
    that share its files.
    """
    photo, analysed = (model.select().order_by(model.id.desc()).dicts().get() for model in (Photo, Analysis))
    photo_rows, analysis_rows, reading_rows, uploads = [], [], [], {}
    for step, moment in enumerate(moments, start=1):
        upload, picture = described(first + step - 1, moment), material.tiny_picture(first + step - 1)
        described_fields = {
            name: value for name, value in msgspec.structs.asdict(upload).items() if name in photo
        }
        files = {name: _linked(photo[name]) for name in ("original_path", "thumbnail_path")}
        sha256 = hashlib.sha256(picture).digest()
        photo_rows.append(
            {
                **photo,
                **described_fields,
                **files,
                "sha256": sha256,
                "id": photo["id"] + step,
                "created_at": moment,
            }
        )
        findings = writer.findings()
        found = results.columns_of(findings)
        reading_rows.append(readings.row(photo["id"] + step, findings.page, reader=findings.reader))
        ids = {"id": analysed["id"] + step, "photo": photo["id"] + step, "device_id": upload.device_id}
        analysis_rows.append(
            {**analysed, **found, **ids, **dict.fromkeys(("created_at", "due_at", "completed_at"), moment)}
        )
        uploads.setdefault(upload.device_id, []).append((upload, moment))
    _insert(Photo, photo_rows)
    _insert(Reading, reading_rows)
    _insert(Analysis, analysis_rows)
    ids_of_rows = [row["id"] for row in photo_rows]
    gate.mark_as_now(ids_of_rows)
    lexicon.index_new(ids_of_rows)
    # Their texts differ, so none would come into a stack.
    Uncompared.delete().where(Uncompared.photo > photo["id"]).execute()
    for of_device in uploads.values():
        upload, moment = of_device[-1]
        devices.note_upload(
            upload.device_id,
            upload.original_timestamp,
            device_name=upload.device_name,
            new=len(of_device),
            now=moment,
        )
    # The number of requested runs of the note writer is limited. Beyond the limit, only the count within the
    # current cycle changes.
    most = reasoner.ANALYSES_A_CYCLE * reasoner.MOST_ASKED
    for _ in range(
        len(moments) if len(moments) < most else most + (len(moments) - most) % reasoner.ANALYSES_A_CYCLE
    ):
        reasoner.count_completed()


def _linked(path: str) -> str:
    """A hard link to the stored file at `path`, named as `uploads.store` names files; the link's path."""
    folder = database.store().folder
    original = folder / path
    place = new_place(folder / Path(path).parts[0]).with_suffix(original.suffix)
    place.hardlink_to(original)
    return str(place.relative_to(folder))


def _insert(model: type[models.Model], rows: list[dict[str, Any]]) -> None:
    """Insert `rows` without peewee, whose statement takes longer to build than SQLite takes to run it."""
    if rows:
        fields = [model._meta.fields[name] for name in rows[0]]
        columns, marks = ", ".join(field.column_name for field in fields), ", ".join("?" * len(fields))
        values = ([field.db_value(row[field.name]) for field in fields] for row in rows)
        statement = f"INSERT INTO {model._meta.table_name} ({columns}) VALUES ({marks})"  # noqa: S608
        db.connection().executemany(statement, values)
