"""Data folders with thousands of photos, made by the code that stores and analyses real ones.

Each photo goes through `photos.store` and `analysis.work`: its files are sealed, its rows written, its text indexed as in
service. Three things are left out, because they would take hours at 100,000 photos and change nothing of what is measured
afterwards: pictures have a hundred bytes instead of a megabyte, the model's answer is made up, and nothing is flushed to the disk
before the whole folder is done. A seed that a power cut destroys is made again.
"""

import dataclasses
import functools
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO
from unittest import mock

import analysis
import crypto
import llm
import models
import photos
from benchmarks import material
from findings import Findings
from models import db
from settings import Settings
from spool import Spool

BATCH = 500  # photos in one transaction
DEVICES = 3
DAYS = 30  # over which the photos are spread, as the retention period has it
REFERENCE = 1_000  # photos of the small folder that the large one is compared to
SCREENSHOTS = 12  # at most; a quick look takes fewer


class MadeUpModel:
    """Answers at once with a text of the writer's."""

    identity = "benchmark/made-up"

    def __init__(self, writer: material.Writer):
        self._writer = writer

    def analyse(self, picture: BinaryIO, *, name: str = "") -> Findings:
        return self._writer.findings()

    def close(self) -> None:
        """Holds nothing."""


class Folders:
    """The data folders of one run under `root`, each made when it is first asked for."""

    def __init__(self, root: Path, size: int, rounds: int, *, now: datetime):
        self.size = size
        self.rounds = rounds
        self.seconds = 0.0  # spent on filling them
        self._root = root
        self._now = now

    @functools.cached_property
    def large(self) -> Settings:
        return self._filled("large", self.size)

    @functools.cached_property
    def small(self) -> Settings:
        return self._filled("small", REFERENCE) if self.size > REFERENCE else self.large

    @functools.cached_property
    def plain(self) -> Settings:
        """The large one without encryption. Its pictures are not there."""
        target = self.empty("plain", encryption=False)
        copy_unencrypted(self.large, target)
        return target

    @functools.cached_property
    def screenshots(self) -> list[bytes]:
        """PNGs of a phone's size, no two alike."""
        writer = material.Writer()
        return [material.screenshot(writer, number) for number in range(min(SCREENSHOTS, 3 * self.rounds))]

    def empty(self, name: str, **settings) -> Settings:
        """A folder that nothing has been stored in."""
        return dataclasses.replace(Settings(data_dir=self.path(name), language="en"), **settings)

    def path(self, name: str) -> Path:
        return self._root / name

    def _filled(self, name: str, size: int) -> Settings:
        print(f"storing and analysing {size:,} photos ...", file=sys.stderr, flush=True)
        begun = time.perf_counter()
        settings = self.empty(name)
        fill(settings, size, now=self._now)
        self.seconds += time.perf_counter() - begun
        return settings


def fill(settings: Settings, size: int, *, now: datetime) -> None:
    """Make the data folder of `settings` with `size` analysed photos, and leave it open in this process."""
    models.open_store(settings)
    writer = material.Writer()
    with mock.patch.object(llm, "model_for", return_value=MadeUpModel(writer)), mock.patch.object(crypto, "sync_file"):
        with models.scope():
            db.execute_sql("PRAGMA synchronous = OFF")
        for first in range(0, size, BATCH):
            # Around the scopes that the queue opens: the transaction belongs to this thread's connection, which they share.
            with db.atomic():
                for number in range(first, min(first + BATCH, size)):
                    _store_and_analyse(settings, number, now - timedelta(days=DAYS) * (size - number) / size)
    with models.scope():
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    models.close_connection()
    os.sync()


def copy_unencrypted(source: Settings, target: Settings) -> None:
    """Make the data folder of `target` with the database of `source` in plain; pictures are not copied."""
    models.open_store(target)
    models.close_connection()
    plain = models.store().database
    for file in plain.parent.iterdir():
        file.unlink()
    models.open_store(source)
    with models.scope():
        db.execute_sql("ATTACH DATABASE ? AS plain KEY ''", (str(plain),))
        db.execute_sql("SELECT sqlcipher_export('plain')")
        db.execute_sql("DETACH DATABASE plain")
    models.close_connection()


def upload_of(data: bytes) -> Spool:
    """What the form parser makes of a file part."""
    spool = Spool(photos.MAX_FILE)
    spool.write(data)
    return spool


def described(number: int, taken: datetime) -> photos.Upload:
    return photos.Upload(f"phone_{number % DEVICES}", f"Screenshot_{number:06}.png", taken, "Phone", local_media_store_id=str(number))


def _store_and_analyse(settings: Settings, number: int, moment: datetime) -> None:
    spool = upload_of(material.tiny_picture(number))
    with models.scope():
        photos.store(spool, described(number, moment), now=moment)
    analysis.work(settings, clock=lambda: moment)
