"""Whether anything is left of a secret on a picture that is passed on: `python -m benchmarks.redacted`.

Drawn screens with cards, accounts, identity numbers, codes, passwords and keys (`tests/support/screens.py`)
are read, redacted by the service, and read once more. Of what was recognised as sensitive, nothing may be
read again, no part of the file is metadata, and the redaction leaves no file in the data folder. What the
rules do not recognise is not painted over; it is counted apart.
"""

import argparse
import contextlib
import io
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from PIL import Image

import database
import readings
from app import Application
from benchmarks import described, labelled
from database import db
from engines.lines import Page
from rules import sensitive
from rules.embedded import LocalModel
from tests.support import screens

SEED = 29
PIECE = 5  # characters of a secret in a row that may not be read again
# Of a JPEG that Pillow writes: the JFIF header, and what is needed to decode it.
MARKERS = frozenset({0xE0, 0xDB, 0xC0, 0xC2, 0xC4, 0xDA, 0xDD})


class Result(NamedTuple):
    """What became of a screen."""

    name: str
    recognised: bool  # all kinds of what is sensitive on it
    left: list[str]  # of what was recognised: what was read again, or is in the file


def results(app: Application, model: LocalModel, count: int) -> Iterator[Result]:
    """The results of so many screens."""
    client = app.test_client()
    for screen in screens.sensitive_screens(SEED, count):
        content = screen.picture()
        answer = client.post("/api/photos/upload", data={"file": (io.BytesIO(content), "private-name.png")})
        photo_id = int((answer.json or {})["id"])
        page, _ = model.read(io.BytesIO(content))
        with database.scope(), db.atomic():
            readings.save(photo_id, page, reader=labelled.READER)
        before = _files(app)
        jpeg = client.post(f"/api/photos/{photo_id}/redacted", json={}).data
        left = ["a file in the data folder"] if _files(app) != before else []
        left += [f"segment {marker:#x}" for marker in sorted(set(_segments(jpeg)) - MARKERS)]
        if b"private-name" in jpeg or Image.open(io.BytesIO(jpeg)).info.keys() & {
            "exif",
            "icc_profile",
            "comment",
        }:
            left.append("metadata")
        again, _ = model.read(io.BytesIO(jpeg))
        left += _read_again(page, again)
        found = set(sensitive.kinds("\n".join(line.text for line in page.lines)))
        yield Result(screen.name, found >= screen.kinds, left)


def main() -> None:
    """Redact and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    began = time.perf_counter()
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        described.service(Path(folder)) as app,
        contextlib.closing(LocalModel(ocr_model=labelled.READER, language="en")) as model,
    ):
        for result in results(app, model, options.count):
            counts.update(
                {"screens": 1, "recognised": result.recognised, "with something left": bool(result.left)}
            )
            if result.left:
                print(f"{result.name}: {result.left}", flush=True)
    print(
        ", ".join(f"{name} {count}" for name, count in counts.items()),
        f"in {time.perf_counter() - began:.0f} s",
    )


def _read_again(page: Page, again: Page) -> list[str]:
    """The pieces of what was found sensitive in a reading that are in another one, where that had to be
    painted over.
    """
    text = _squeezed("".join(line.text for line in again.lines))
    harmless = _squeezed("".join(line.text for line in page.lines))
    found = []
    for finding in sensitive.find([line.text for line in page.lines]):
        secret = _squeezed(page.lines[finding.line].text[finding.start : finding.end])
        pieces = {secret[at : at + PIECE] for at in range(max(1, len(secret) - PIECE + 1))}
        found += [piece for piece in sorted(pieces) if piece in text and harmless.count(piece) == 1]
    return found


def _squeezed(text: str) -> str:
    return re.sub(r"\W", "", text).casefold()


def _files(app: Application) -> list[str]:
    """The files of the data folder, without those of the database."""
    folder = Path(app.settings.data_dir)
    return sorted(
        str(path) for path in folder.rglob("*") if path.is_file() and not path.name.startswith("snaplore.db")
    )


def _segments(jpeg: bytes) -> Iterator[int]:
    """The markers of a JPEG up to its pixels."""
    at = 2
    while at + 4 <= len(jpeg) and jpeg[at] == 0xFF:
        yield jpeg[at + 1]
        if jpeg[at + 1] == 0xDA:
            return
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4])


if __name__ == "__main__":
    main()
