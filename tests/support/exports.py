"""Exports as Google and Apple make them, drawn: pictures with their JSON files and tables, and what each
picture should become.
"""

import io
import json
import random
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.support.drawing import draw

FIRST = datetime(2021, 3, 4, 5, 6, 7)
LIMIT = 46


class Expected(NamedTuple):
    taken: datetime
    kept: bool
    note: str


def picture(text):
    return draw(text, size=(160, 90))


def sidecar(title, taken, **more):
    seconds = str(int(taken.replace(tzinfo=UTC).timestamp()))
    return json.dumps({"title": title, "photoTakenTime": {"timestamp": seconds}, **more}).encode()


def sidecar_name(name, cut=LIMIT):
    """The name of Google's JSON file for an uploaded name; of a second one of a name, `name(1).png`."""
    stem, _, ending = name.rpartition(".")
    number = ""
    if stem.endswith(")"):
        stem, _, number = stem.rpartition("(")
        number = f"({number}"
    return f"{f'{stem}.{ending}.supplemental-metadata'[:cut]}{number}.json"


def takeout(folder: Path, count: int, parts: int = 2) -> tuple[list[Path], dict[str, Expected]]:
    """Write the zips of a Takeout with `count` pictures, all different; returns them, and by the text of each
    file name what should be stored. Each JSON file is in a part chosen by chance. Some pictures are in an
    album as well.
    """
    chance = random.Random(1)
    zips = [folder / f"takeout-20260101T000000Z-{number + 1:03}.zip" for number in range(parts)]
    archives = [zipfile.ZipFile(path, "w") for path in zips]
    expected = {}
    for number in range(count):
        taken = FIRST + timedelta(hours=7 * number, seconds=number)
        place = f"Takeout/Google Photos/Photos from {taken.year}"
        stem = (
            f"Screenshot_{taken:%Y%m%d-%H%M%S}_{number}",
            f"Screenshot_{taken:%Y-%m-%d-%H-%M-%S}-{number:03}_com.a.long.name.of.an.app",
            f"IMG_{number}",
        )[number % 3]
        name = f"{stem}.png"
        kept, note = number % 7 == 0, f"Note {number}" if number % 5 == 0 else ""
        said = sidecar(name, taken, favorited=kept, description=note)
        content = picture(f"{number}")
        chance.choice(archives).writestr(f"{place}/{name}", content)
        chance.choice(archives).writestr(f"{place}/{sidecar_name(name)}", said)
        if number % 10 == 0:
            archives[-1].writestr(f"Takeout/Google Photos/An album/{name}", content)
        expected[name] = Expected(taken, kept, note)
    archives[0].writestr(
        "Takeout/Google Photos/Photos from 2021/a film.mp4", b"\0\0\0\x20ftypisom" + bytes(99)
    )
    archives[0].writestr("Takeout/archive_browser.html", "<html>")
    for archive in archives:
        archive.close()
    return zips, expected


def zipped(files: dict[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()
