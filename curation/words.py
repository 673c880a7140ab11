"""What a person says about photos: which are kept, their tags, and own words and records in place of the
analysis's; `PATCH /api/photos/{id}` and `/api/photos/tags`.

Own words have a table of their own (`models.OwnWords`), so an analysis never overwrites them, and an empty
text gives the analysis's back. They are searched: a change removes the photo from the index and indexes it
again, in one transaction. A photo in the trash cannot be changed.
"""

from collections.abc import Iterable
from typing import Annotated, Any, cast

import msgspec
import peewee
from flask import Blueprint
from msgspec import UNSET, Meta, UnsetType

import agenda
import gate
import lexicon
import photos
import readings
import records
import tallies
from clock import utc_now
from database import db
from engines.records import MAX_VALUE
from errors import BadInput, NotFound
from models import Analysis, OwnWords, PhotoTag
from rules.sensitive import Kind
from text import one_line, storable
from web import inputs, shapes

MAX_TITLE, MAX_SUMMARY, MAX_NOTE, MAX_TEXT = 200, 2_000, 10_000, 200_000  # characters
MAX_TAGS = 30  # of a photo
MAX_TAG = 50  # characters
MAX_LISTED = 100  # tags in the list of tags
TEXTS = ("title", "summary", "note", "text")
OWN = (*TEXTS, "records")


class Changes(msgspec.Struct, frozen=True):
    """What changes about a photo. None stays as it is; "" gives a text of the analysis back."""

    kept: bool | None = None
    tags: list[str] | None = None
    texts: dict[str, str] = {}  # some of `OWN`; records as `records.encoded` writes them
    cleared: bool | None = None  # the person says that it is not sensitive, or no longer says so


def change(photo_id: int, changes: Changes) -> None:
    """Change what a person says about a photo. Raises `NotFound`, also in the trash, and `BadInput`."""
    tags = None if changes.tags is None else checked_tags(changes.tags)
    texts = {name: _cleaned(name, text) or None for name, text in changes.texts.items()}
    with db.atomic():
        if not present([photo_id]):
            raise NotFound("Photo not found")
        if changes.kept is not None:
            keep([photo_id], kept=changes.kept)
        if changes.cleared is not None:
            gate.set_cleared(photo_id, cleared=changes.cleared)
            lexicon.redact_anew([photo_id])
            records.file([photo_id])
        if tags is None and not texts:
            return
        with lexicon.changing([photo_id]):
            if tags is not None:
                PhotoTag.delete().where(PhotoTag.photo == photo_id).execute()
                add_tags({photo_id: tags})
            if texts:
                _write(photo_id, texts)
        if "records" in texts:
            records.file([photo_id])
            agenda.renew(photo_id, readings.page(photo_id), now=utc_now())


def keep(photo_ids: list[int], *, kept: bool) -> set[int]:
    """Keep these photos, or no longer; returns the ids of those that exist."""
    with db.atomic():
        found = present(photo_ids)
        changed = Analysis.photo.in_(list(found)) & (Analysis.kept != kept)
        Analysis.update(kept=kept).where(changed).execute()
    return found


def keep_selected(photo_ids: "peewee.ModelSelect[Any]") -> int:
    """Keep the photos whose ids a query selects; returns how many were not kept before."""
    changed = Analysis.photo.in_(photo_ids) & ~Analysis.kept
    return cast(int, Analysis.update(kept=True).where(changed).execute())


def tag(photo_ids: list[int], tag: str) -> set[int]:
    """Tag these photos, and return the ids of those that exist; all or none. Raises `BadInput`."""
    (checked,) = checked_tags([tag])
    folded = lexicon.folded_tag(checked)
    with db.atomic():
        found = present(photo_ids)
        numbers: dict[int, int] = {}
        tagged = set()
        for row in PhotoTag.select(PhotoTag.photo, PhotoTag.folded).where(PhotoTag.photo.in_(list(found))):
            numbers[row.photo_id] = numbers.get(row.photo_id, 0) + 1
            if row.folded == folded:
                tagged.add(row.photo_id)
        new = sorted(found - tagged)
        for photo_id in new:
            if numbers.get(photo_id, 0) >= MAX_TAGS:
                raise BadInput(f"tag: photo {photo_id} has {MAX_TAGS} tags already")
        with lexicon.changing(new):
            add_tags({photo_id: [checked] for photo_id in new})
    return found


def untag(photo_ids: list[int], tag: str) -> set[int]:
    """Take a tag from these photos; returns the ids of those that exist, also without this tag."""
    (checked,) = checked_tags([tag])
    with db.atomic():
        found = present(photo_ids)
        with_it = (PhotoTag.folded == lexicon.folded_tag(checked)) & PhotoTag.photo.in_(list(found))
        tagged = [row.photo_id for row in PhotoTag.select(PhotoTag.photo).where(with_it)]
        with lexicon.changing(tagged):
            PhotoTag.delete().where(with_it).execute()
    return found


def every_tag() -> list[shapes.TagCount]:
    """The tags with the most photos, at most `MAX_LISTED`, each with the number of its photos."""
    return [{"tag": name, "photos": number} for name, number in tallies.largest_tags(MAX_LISTED)]


def present(photo_ids: Iterable[int]) -> set[int]:
    """Those of these photos that exist and are not in the trash."""
    query = Analysis.select(Analysis.photo).where(Analysis.photo.in_(list(photo_ids)))
    return {photo_id for (photo_id,) in cast("Iterable[tuple[int]]", query.tuples())}


def add_tags(tags: dict[int, list[str]]) -> None:
    """Insert tags that were checked and that these photos do not have. They are not indexed by this."""
    taken = Analysis.select(Analysis.photo, Analysis.taken_at).where(Analysis.photo.in_(list(tags)))
    rows = [
        {"photo": row.photo_id, "tag": name, "folded": lexicon.folded_tag(name), "taken_at": row.taken_at}
        for row in taken
        for name in tags[row.photo_id]
    ]
    for start in range(0, len(rows), 200):  # SQLite limits the values of a statement
        PhotoTag.insert_many(rows[start : start + 200]).execute()


def checked_tags(tags: list[str]) -> list[str]:
    """The tags, trimmed, and of those that differ only in case or accents the first. Raises `BadInput`."""
    found: dict[str, str] = {}
    for name in tags:
        trimmed = one_line(storable(name))
        folded = lexicon.folded_tag(trimmed)
        if not folded:
            raise BadInput("tags: a tag must not be empty")
        if len(trimmed) > MAX_TAG:
            raise BadInput(f"tags: a tag must be at most {MAX_TAG} characters")
        found.setdefault(folded, trimmed)
    if len(found) > MAX_TAGS:
        raise BadInput(f"tags: must have at most {MAX_TAGS} entries")
    return list(found.values())


def _cleaned(name: str, text: str) -> str:
    return one_line(storable(text)) if name == "title" else storable(text).strip()


def _write(photo_id: int, texts: dict[str, str | None]) -> None:
    row = OwnWords.get_or_none(OwnWords.photo == photo_id)
    own = {name: getattr(row, name) if row else None for name in OWN} | texts
    if any(own.values()):
        OwnWords.insert(photo=photo_id, **own).on_conflict_replace().execute()
    else:
        OwnWords.delete().where(OwnWords.photo == photo_id).execute()


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("words", __name__, url_prefix="/api/photos")

Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG)]
Note = Annotated[str, Meta(max_length=MAX_NOTE)]
_GIVES_BACK = '"" or null gives that of the analysis back'
Title = Annotated[str, Meta(max_length=MAX_TITLE, description=_GIVES_BACK)]
Summary = Annotated[str, Meta(max_length=MAX_SUMMARY, description=_GIVES_BACK)]
Text = Annotated[str, Meta(max_length=MAX_TEXT, description=_GIVES_BACK)]
NotSensitive = Annotated[
    list[str],
    Meta(max_length=0, description="[]: it is not sensitive, which holds; null: the rules decide again"),
]


class OwnField(msgspec.Struct):
    name: Annotated[str, Meta(max_length=100, examples=["total"])]
    value: Annotated[
        dict[str, str] | str | list[dict[str, str]],
        Meta(description="in normal form", examples=[{"value": "23.80", "currency": "EUR"}]),
    ]
    text: Annotated[str, Meta(max_length=MAX_VALUE, examples=["€ 23,80"])] = ""
    lines: Annotated[list[int], Meta(max_length=100, examples=[[4]])] = []


class OwnRecord(msgspec.Struct):
    type: shapes.RecordType
    fields: Annotated[list[OwnField], Meta(max_length=MAX_TAGS)]


OwnRecords = Annotated[
    list[OwnRecord], Meta(description="[]: it says none of this; null gives those of the analysis back")
]


class PhotoChanges(msgspec.Struct):
    kept: bool | UnsetType = UNSET
    tags: Annotated[list[Tag], Meta(max_length=MAX_TAGS)] | UnsetType = UNSET
    note: Note | UnsetType | None = UNSET
    title: Title | UnsetType | None = UNSET
    summary: Summary | UnsetType | None = UNSET
    text: Text | UnsetType | None = UNSET
    sensitive: NotSensitive | UnsetType | None = UNSET
    records: OwnRecords | UnsetType | None = UNSET


@routes.patch("/<id:photo_id>")
@inputs.operation(NotFound)
def edit(photo_id: int, body: PhotoChanges) -> shapes.PhotoDetail:
    """Keep a photo, tag it, write own words about it, and correct its records. What is absent stays as it is.
    Own words and records are never overwritten by an analysis; tags that differ only in case are one. Records
    replace all of the photo's; each needs the fields without which there is no record of its type.
    """
    texts = {name: getattr(body, name) or "" for name in TEXTS if getattr(body, name) is not UNSET}
    if body.records is not UNSET:
        given = None if body.records is None else msgspec.to_builtins(body.records)
        texts["records"] = "" if given is None else records.encoded(records.corrected(given, photo_id))
    kept = None if body.kept is UNSET else body.kept
    cleared = None if body.sensitive is UNSET else body.sensitive is not None
    change(photo_id, Changes(kept, None if body.tags is UNSET else body.tags, texts, cleared))
    return photos.detail(photo_id)


class Named(msgspec.Struct):
    ids: Annotated[
        str,
        Meta(pattern=r"^[0-9]{1,15}(,[0-9]{1,15}){0,99}$", description="up to 100, with commas between"),
    ]


@routes.get("/sensitive")
@inputs.operation()
def list_sensitive(query: Named) -> shapes.SensitivePhotos:
    """List which of these photos have something sensitive, also in the trash, so that a client that knows
    only their ids can veil them. Ids that do not exist are left out.
    """
    found = gate.kinds_of(map(int, query.ids.split(",")))
    return {
        "items": [
            shapes.SensitivePhoto(id=photo_id, sensitive=cast(list[Kind], kinds))
            for photo_id, kinds in found.items()
        ]
    }


@routes.get("/tags")
@inputs.operation()
def list_tags() -> shapes.TagList:
    """List the tags with the most photos, at most 100. Tags that differ only in upper and lower case are one
    tag.
    """
    return {"tags": every_tag()}
