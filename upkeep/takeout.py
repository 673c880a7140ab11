"""What the exports of Google Photos (Takeout) and Apple (privacy.apple.com) say about their pictures.

Google puts a JSON file beside each picture, and cuts its name. `Screenshot.png` has
`Screenshot.png.supplemental-metadata.json`, or what 46 characters leave of that, or `Screenshot.png.json` in
older exports; `Screenshot(1).png` has `Screenshot.png.supplemental-metadata(1).json`. Where no name fits, the
title in the JSON, which is the name of the uploaded file, may. The picture and its JSON may be in different
parts of the export.

Apple has one or more tables, `Photo Details.csv`, in each folder.
"""

import csv
import io
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from text import storable
from upkeep.importing import Said

MOST_BYTES = 1_048_576  # of a JSON file; Google's have some kilobytes
MOST_TABLE_BYTES = 64 * MOST_BYTES
LONGEST = 46  # characters of a JSON file's name without its ending, which Google's export cuts to
SHORTEST_CUT = LONGEST - 5  # a number like (12) may take a part of them
WHOLE = ".supplemental-metadata"
MOST_NOTE = 10_000  # characters

_NUMBERED = re.compile(r"(?P<name>.{0,250})\((?P<number>[0-9]{1,5})\)", re.DOTALL)
_EDITED = tuple(tomllib.loads(Path(__file__).with_name("takeout.toml").read_text(encoding="utf-8"))["edited"])
_TABLE = re.compile(r"Photo Details(?:-[0-9]{1,4})?\.csv")
_APPLE_TIME = "%A %B %d,%Y %I:%M %p %Z"  # Friday January 2,2026 10:11 AM GMT


class _Time(msgspec.Struct):
    timestamp: str = ""  # epoch seconds


class _Sidecar(msgspec.Struct):
    photoTakenTime: _Time
    title: str = ""
    description: str = ""
    favorited: bool = False
    trashed: bool = False


def facts(content: bytes) -> Said | None:
    """What a JSON file of Takeout says; None for any other file."""
    try:
        found = msgspec.json.decode(content, type=_Sidecar)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    note = storable(found.description).strip()[:MOST_NOTE]
    return Said(
        taken=_moment(found.photoTakenTime.timestamp),
        kept=found.favorited,
        texts={"note": note} if note else {},
        whole_name=storable(found.title),
        left_out="it was in the trash of Google Photos" if found.trashed else "",
    )


def is_table(name: str) -> bool:
    return _TABLE.fullmatch(name) is not None


def details(content: bytes) -> Iterator[tuple[str, Said]]:
    """The names of pictures in a table of Apple, each with what it says. A damaged table ends early."""
    table = csv.DictReader(io.StringIO(content.decode("utf-8-sig", errors="replace")))
    try:
        for row in table:
            if name := row.get("imgName"):
                deleted = "it was recently deleted at Apple" if row.get("deleted") == "yes" else ""
                taken = _apple_moment(row.get("originalCreationDate") or "")
                yield name, Said(taken=taken, kept=row.get("favorite") == "yes", left_out=deleted)
    except csv.Error:
        return


class Sidecars:
    """What is said about pictures, by their folder and name."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str, str], Said] = {}
        self._by_title: dict[tuple[str, str], Said] = {}
        self._by_picture: dict[tuple[str, str], Said] = {}

    def add(self, folder: str, name: str, said: Said) -> None:
        """Remember what a JSON file of Takeout with this name says."""
        base, number = _parted(name.removesuffix(".json"))
        self._by_name[folder, base, number] = said
        self._by_title.setdefault((folder, said.whole_name), said)

    def add_picture(self, folder: str, name: str, said: Said) -> None:
        """Remember what a table says about this picture."""
        self._by_picture[folder, name] = said

    def of(self, folder: str, name: str) -> Said | None:
        """What is said about a picture; None when nothing is."""
        if said := self._by_picture.get((folder, name)):
            return said
        stem, dot, ending = name.rpartition(".")
        base, number = _parted(stem)
        said = self._named(folder, f"{base}{dot}{ending}", number) or self._by_title.get((folder, name))
        for suffix in () if said else _EDITED:
            if base.endswith(suffix):
                original = base.removesuffix(suffix)
                said = self._named(folder, f"{original}{dot}{ending}", number)
                # The other way round: Screenshot(1)-edited.png.
                said = said or self.of(folder, f"{original}{dot}{ending}")
                break
        return said

    def _named(self, folder: str, name: str, number: str) -> Said | None:
        """By the name of the JSON file, as far as the export has left it."""
        whole = f"{name}{WHOLE}"
        for length in range(len(whole), min(len(name), SHORTEST_CUT) - 1, -1):
            said = self._by_name.get((folder, whole[:length], number))
            # A name that was cut may be that of another picture, which its title tells.
            if said and (length >= len(name) or said.whole_name.startswith(whole[:length])):
                return said
        return None


def _parted(stem: str) -> tuple[str, str]:
    """A name and its number: `Screenshot(1)` is the second of this name."""
    numbered = _NUMBERED.fullmatch(stem)
    return (numbered["name"], numbered["number"]) if numbered else (stem, "")


def _moment(seconds: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seconds[:20]), UTC).replace(tzinfo=None) if seconds else None
    except (ValueError, OverflowError, OSError):
        return None


def _apple_moment(written: str) -> datetime | None:
    try:
        return datetime.strptime(written[:60], _APPLE_TIME)
    except ValueError:
        return None
