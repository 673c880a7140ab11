"""Reading the text of stored pictures on this machine: when it is tried, and which pictures need no reading.

A picture with exactly the pixels of one that was read, in another file, is not read again.
"""

import contextlib
import logging
import math
import time
from typing import BinaryIO

import database
import llm
import photos
import pictures
import readings
from engines.lines import Page
from errors import ProviderDown, ProviderRefused, SnaploreError, Unavailable
from models import Photo
from settings import Settings

log = logging.getLogger(__name__)

READ_PAUSE = 30.0  # seconds until reading is tried again when it was not possible

Read = tuple[Page, str]  # what was read, and by which engine


class TextReader:
    """Reads pictures for the threads of a worker. It rests for `READ_PAUSE` when reading is not possible."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._again_at = -math.inf  # monotonic

    @property
    def rests(self) -> bool:
        return time.monotonic() < self._again_at

    @property
    def runs_here(self) -> bool:
        """Whether this machine can read at all, now or later."""
        return self._again_at < math.inf

    def read(self, photo: Photo, picture: BinaryIO, *, anew: bool, patience: float) -> Read | None:
        """What is on a picture, read now or before; None when it cannot be read, or not now.

        A picture that fails is tried again some times, in the background. Raises `Unavailable` when other
        pictures are read for `patience` seconds, but nothing else that a model raises: no failure of reading
        may hinder an analysis.
        """
        if not anew and (known := self.read_before(photo, picture)) is not None:
            return known
        if self.rests:
            return None
        with database.scope():
            readings.count_tries(photo.id, 1)  # before: it may take this process with it
        try:
            return llm.reader(self._settings).read(picture, patience=patience)
        except (ProviderRefused, ProviderDown, Unavailable) as problem:
            with database.scope():
                readings.count_tries(photo.id, -1)  # this says nothing about the picture
            log.info("photo %d is not read now: %s", photo.id, problem)
            if isinstance(problem, Unavailable):
                raise
            # An engine that does not run here will not until a restart.
            refused = isinstance(problem, ProviderRefused)
            self._again_at = time.monotonic() + (math.inf if refused else READ_PAUSE)
        except (SnaploreError, OSError) as problem:
            log.info("photo %d cannot be read: %s", photo.id, problem)
        return None

    def read_before(self, photo: Photo, picture: BinaryIO) -> Read | None:
        """What the same OCR model has read on another photo with exactly the same pixels, which is another
        file of the same screenshot; None when there is none. A few other pixels may be another word, so
        nothing less than all of them counts.
        """
        with database.scope():
            alike = readings.of_same_look(photo, reader=self._settings.ocr_model)
        for other in alike:
            is_same = False
            # The other one may be lost, damaged, deleted just now, or in the bucket: then this one is read.
            with contextlib.suppress(SnaploreError, OSError):
                with database.scope():
                    opened = photos.open_original(other)
                with opened:
                    is_same = pictures.are_same(picture, opened)
            picture.seek(0)
            if is_same:
                log.info("photo %d has the pixels of photo %d, which was read", photo.id, other.id)
                with database.scope():
                    return readings.page_of(other.id)
        return None
