"""Snaplore's own export as a source of an import: what `export.py` wrote about each picture.

The words, tags, stars, times and devices of a person come back. What a model found is found anew. Chats,
notes and memories are not imported: a backup has them.
"""

import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from clock import parse_time
from errors import BadInput
from upkeep.importing import Said

MOST_ITEM = 16 * 1_048_576  # characters of a photo's JSON
TEXTS = ("title", "summary", "note", "text")
FIELD = ("name", "value", "text")  # of a record; its lines are counted anew


class Export(NamedTuple):
    """What an export of Snaplore says, by the name of the file in the zip."""

    photos: dict[str, Said]
    trashed: set[str]

    def of(self, place: str) -> Said:
        """What is said about a file."""
        if place in self.photos:
            return self.photos[place]
        if place in self.trashed:
            return Said(left_out="it was in the trash")
        if place.startswith("photos/"):
            return Said(left_out="photos.json does not name it")
        return Said(left_out="only screenshots are imported; a backup keeps chats, notes and settings")


def is_one(archive: zipfile.ZipFile) -> bool:
    names = archive.NameToInfo
    return "photos.json" in names and "settings.json" in names and "skills.json" in names


def read(archive: zipfile.ZipFile) -> Export:
    """What the export says. Raises `BadInput` when it is damaged."""
    photos, trashed = {}, set()
    for item in _listed(archive, "photos.json"):
        if isinstance(item.get("file"), str):
            photos[item["file"]] = _said(item)
    if "trash.json" in archive.NameToInfo:
        trashed = {str(item.get("file")) for item in _listed(archive, "trash.json")}
    return Export(photos, trashed)


def _listed(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSON list as the export lays them out: each ends with its bracket's line."""
    try:
        with archive.open(name) as file:
            lines: list[bytes] = []
            size = 0
            for line in file:
                lines.append(line)
                size += len(line)
                if size > MOST_ITEM:
                    raise BadInput(f"{name}: an entry is too large")
                if line.startswith(b"}"):
                    item = msgspec.json.decode(b"".join(lines).strip().lstrip(b"[").rstrip(b"],\n"))
                    lines, size = [], 0
                    if isinstance(item, dict):
                        yield item
    except (zipfile.BadZipFile, EOFError, msgspec.DecodeError):
        raise BadInput(f"{name}: it is damaged") from None


def _said(item: dict[str, Any]) -> Said:
    own = [name for name in item.get("own") or () if name in (*TEXTS, "records")]
    texts = {name: str(item[name]) for name in TEXTS if item.get(name) and name in (*own, "note")}
    corrected = [
        {
            "type": record["type"],
            "fields": [{name: field.get(name, "") for name in FIELD} for field in record["fields"]],
        }
        for record in (item.get("records") or () if "records" in own else ())
    ]
    return Said(
        taken=parse_time(str(item.get("original_timestamp") or ""), field="original_timestamp"),
        kept=item.get("kept") is True,
        tags=[str(tag) for tag in item.get("tags") or ()],
        texts=texts,
        records=corrected,
        device_id=str(item.get("device_id") or ""),
        device_name=str(item.get("device_name") or ""),
        local_id=str(item.get("local_media_store_id") or ""),
        filename=str(item.get("filename") or ""),
        source_type=str(item.get("source_type") or "screenshot"),
    )
