"""Photos: listing, serving and deleting them; `/api/photos`.

A photo consists of two sealed files, original and thumbnail, and two rows, photo and analysis; `uploads.py`
stores them.

A photo in the trash has no analysis row (`models.Trash`), so lists, counts and searches, which all read
analyses, do not have it. Only the list of the trash, its pictures and deleting know such a photo. What a
person wrote about a photo is shown in place of the analysis's words; `curation/` writes it.

A list accepts any combination of filters and returns its total, at about the cost of one page. Without a
period the total comes from the tallies. The page comes from the index of a filter: there is one for each
filter in each of the two orders, by upload and by the time of the picture. It contains the other filters'
columns, so that only rows of the page are read. A period filters by `original_timestamp`, as in a search,
because people remember when they took a picture. Its pages are always in the order of that time, the latest
picture first: in the order of uploads, every page would either sort the whole period or scan everything
uploaded since.

More than 550 lines, because what is listed, served and deleted is one row, and its routes have the largest
contract.
"""

import io
import itertools
import logging
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, TypeVar, cast

import flask
import msgspec
import peewee
from flask import Blueprint

import database
import disk
import lexicon
import models
import pictures
import readings
import records
import tallies
import threads
from buckets import away
from clock import iso, parse_time
from database import db
from devices import MAX_NAME
from engines.findings import Category, Intent
from errors import BadInput, NotFound, Unavailable, Unreadable, UnsupportedImage
from models import Analysis, ForgottenOriginal, Photo, Selected, Trash
from settings import MEGABYTE
from spool import keep_bytes, new_place
from web import inputs, shapes
from writings import taken

log = logging.getLogger(__name__)

# A picture up to this size is read completely before the response starts, so that damage is an error with a
# sentence. A larger one is streamed, and damage after its first and before its last 64 kB breaks the
# connection.
IN_MEMORY = 4 * MEGABYTE

MAX_APPS = 100

Order = Literal["uploaded", "taken"]  # of a list
Opened = TypeVar("Opened")  # what a verb opens


class Filters(msgspec.Struct, frozen=True):
    """The filters of a list; None means any value. `since` is inclusive, `until` is exclusive."""

    status: str | None = None
    device_id: str | None = None
    category: str | None = None
    intent: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    app: str | None = None  # exactly as it is stored
    kept: bool = False  # only kept photos
    tag: str | None = None
    stacks: bool = False  # only one photo of each stack

    def values(self) -> dict[str, str | None]:
        """The values by the names of the columns, without the period."""
        return {
            "app_name": self.app,
            "status": self.status,
            "device_id": self.device_id,
            "content_category": self.category,
            "intent": self.intent,
        }


def page(
    number: int, size: int, filters: Filters, order: Order = "uploaded"
) -> tuple[int, list[shapes.ListedPhoto]]:
    """The total and one page of list items, in the order of `ids_of_page`; with `filters.stacks`, each with
    its stack.
    """
    total, ids = ids_of_page(number, size, filters, order)
    items = cast("list[shapes.ListedPhoto]", list_items(ids))
    if filters.stacks:
        stacks = models.stacks_of(ids)
        for item in items:
            item["stack"] = _stack(stacks.get(item["id"]))
    return total, items


def ids_of_page(number: int, size: int, filters: Filters, order: Order = "uploaded") -> tuple[int, list[int]]:
    """The total and the ids of a page: by upload or, with `taken` or a period, by the time of the picture."""
    taken = order == "taken" or filters.since is not None or filters.until is not None
    by = ("taken_at", "photo_id") if taken else ("photo_id",)
    if filters.tag is not None:
        tagged = _tagged(filters, filters.tag)
        return tagged.total(), models.page_of(tagged, by, number, size)
    among = _among(filters, taken=taken)
    return _total(filters, among), models.page_of(_within(filters, among), by, number, size)


def trashed_page(number: int, size: int) -> tuple[int, list[shapes.PhotoItem]]:
    """The number of photos in the trash, and one page of them, the one that was thrown away last first."""
    total = tallies.trashed()
    ids = models.page_of(Selected("trash"), ("deleted_at", "photo_id"), number, size)
    return total, trashed_items(ids)


def trashed_items(ids: list[int]) -> list[shapes.PhotoItem]:
    """The list items of these photos, in this order, without those that are not in the trash."""
    return _items(_TRASHED, ids)


def apps() -> list[shapes.AppCount]:
    """The apps with the most photos, at most `MAX_APPS`, each with the number of its photos."""
    return [{"app_name": name, "photos": number} for name, number in tallies.largest_apps(MAX_APPS)]


def open_names(most: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The `most` apps and tags of the most photos with nothing sensitive, each with the number of these."""
    apps, tags = (
        db.execute_sql(
            f"""SELECT {name}, COUNT(*) AS number FROM {table}
            WHERE {name} <> '' AND {lexicon.OPEN.format(id=f"{table}.photo_id")}
            GROUP BY {name} ORDER BY number DESC, {name} LIMIT ?""",  # noqa: S608
            (most,),
        ).fetchall()
        for name, table in (("app_name", "analyses"), ("tag", "photo_tags"))
    )
    return apps, tags


def timeline(filters: Filters) -> list[shapes.MonthCount]:
    """The months in which pictures were taken, the newest first, with their numbers, whatever the period."""
    months = tallies.by_month(filters.values(), stacks=filters.stacks)
    return [{"month": month, "photos": number} for month, number in months]


def list_items(ids: list[int]) -> list[shapes.PhotoItem]:
    """The list items of these photos, in this order, without deleted ones."""
    return _items(_LIST, ids)


def analysed_at(ids: list[int]) -> dict[int, datetime]:
    """When each of these photos was analysed, without those that are not."""
    done = Analysis.select(Analysis.photo, Analysis.completed_at).where(Analysis.photo.in_(ids))
    return {
        row.photo_id: row.completed_at
        for row in done.where(Analysis.status == "done")
        if row.completed_at is not None
    }


def detail(photo_id: int) -> shapes.PhotoDetail:
    """A photo with its analysis and its text. Raises `NotFound`."""
    found = details([photo_id])
    if not found:
        raise NotFound("Photo not found")
    return found[photo_id]


def details(photo_ids: list[int]) -> dict[int, shapes.PhotoDetail]:
    """As `detail`, those of these photos that are not in the trash."""
    rows = db.execute_sql(_DETAIL, (msgspec.json.encode(photo_ids).decode(),)).fetchall()
    stacks, thread_ids = models.stacks_of(photo_ids), threads.of(photo_ids)
    record_ids = records.ids_of(photo_ids)
    found: dict[int, shapes.PhotoDetail] = {}
    for row in rows:
        values = iter(row)
        photo, analysis, shown = (dict(zip(names, values)) for names in _DETAIL_COLUMNS)  # noqa: B905
        photo_id = photo["id"]
        record = next(iter(records.decoded(shown["records"])), None)
        title, summary = records.in_words(record, analysis["app_name"], shown["title"], shown["summary"])
        found[photo_id] = shapes.of(
            photo,
            shapes.PhotoDetail,
            text=shown["own_text"] or readings.text(photo_id) or shown["text"],
            title=title,
            summary=summary,
            kept=bool(shown["kept"]),
            tags=msgspec.json.decode(shown["tags"]),
            note=shown["note"],
            deleted_at=None,
            sensitive=shown["sensitive"].split(),
            records=records.shown(shown["records"], record_ids.get(photo_id, {})),
            own=[name for name in ("title", "summary", "text", "records") if shown[f"own_{name}"]],
            stack=_stack(stacks.get(photo_id)),
            thread_id=thread_ids.get(photo_id),
            analysis=shapes.of(analysis, shapes.AnalysisDetail),
        )
    return found


def get(photo_id: int, *, trashed: bool = False) -> Photo:
    """The row of a photo that is not in the trash; with `trashed`, of one that is. Raises `NotFound`."""
    there = models.IN_TRASH if trashed else ~models.IN_TRASH
    photo = Photo.get_or_none((Photo.id == photo_id) & there)
    if photo is None:
        raise NotFound("Photo not found")
    return photo


def open_original(photo: Photo) -> BinaryIO:
    """A seekable reader of the uploaded bytes. Raises `Unreadable` when the file is missing or damaged, and
    `Elsewhere` when it is in the bucket and was not fetched: see `bringing`.
    """
    place = database.store().folder / photo.original_path
    try:
        return disk.open_sealed(place, photo.file_key)
    except Unreadable:
        if photo.away == away.HERE or place.exists():
            raise
    return away.opened(photo.original_path, photo.file_key)


def bringing(verb: Callable[[], Opened]) -> Opened:
    """Call a verb in a scope of its own. If it needs an original that is in the bucket, fetch that, while no
    scope is open, and call the verb again.

    Raises what the verb raises; `Unavailable` while the bucket does not answer, and `Unreadable` when it has
    lost the original.
    """
    try:
        with database.scope():
            return verb()
    except away.Elsewhere as missing:
        away.fetch(missing)
    with database.scope():
        return verb()


class Sizes(NamedTuple):
    """Bytes of pictures and thumbnails on the disk, and the number and bytes of originals in the bucket."""

    here: int
    away: int
    away_bytes: int


def sizes() -> Sizes:
    """How much room all photos take, those in the trash included. Read from the index `photos_sizes`."""
    sql = "SELECT total(disk_bytes), total(away_bytes > 0), total(away_bytes) FROM photos"
    return Sizes(*map(int, db.execute_sql(sql).fetchone()))


def sealed_under() -> list[tuple[int, int]]:
    """The key generations under which photos are sealed, ascending, each with the number of its photos."""
    sql = "SELECT key_generation, count(*) FROM photos GROUP BY key_generation"
    return cast("list[tuple[int, int]]", db.execute_sql(sql).fetchall())


def set_taken(photo_id: int, found: taken.Taken) -> None:
    """Correct when a photo was taken. A trigger takes the time to its analysis and its tags."""
    Photo.update(original_timestamp=found.moment, taken_from=found.source).where(
        Photo.id == photo_id
    ).execute()


def set_moving(photo_ids: list[int]) -> None:
    """Note that the originals of these photos are on their way to the bucket."""
    Photo.update(away=away.MOVING).where(Photo.id.in_(photo_ids), Photo.away == away.HERE).execute()


def set_place(photo: Photo, place: int, *, size: int, thumbnail: int) -> bool:
    """Note where an original is, with its bytes and its thumbnail's; False when the row has changed."""
    is_away = place == away.AWAY
    changed = {
        "away": place,
        "away_bytes": size if is_away else 0,
        "disk_bytes": thumbnail + (0 if is_away else size),
    }
    same = (Photo.id == photo.id) & (Photo.original_path == photo.original_path)
    return bool(Photo.update(**changed).where(same).execute())


def set_here(photo_id: int, copy: peewee.Database) -> None:
    """Note in another database that the original of a photo is not in the bucket."""
    disk = Photo.disk_bytes + Photo.away_bytes
    here = {"away": away.HERE, "away_bytes": 0, "disk_bytes": disk}
    Photo.update(here).where(Photo.id == photo_id).execute(copy)


def set_away(photo: Photo, size: int, copy: peewee.Database) -> None:
    """Note in another database that the original of a photo is in the bucket, with so many bytes there."""
    disk = photo.disk_bytes - (0 if photo.away_bytes else size)
    changed = {"away": away.AWAY, "away_bytes": size, "disk_bytes": disk}
    Photo.update(changed).where(Photo.id == photo.id).execute(copy)
    forgotten = ForgottenOriginal.path == photo.original_path
    ForgottenOriginal.delete().where(forgotten).execute(copy)


def drop_forgotten(paths: list[str]) -> None:
    """Note that these objects are gone from the bucket."""
    ForgottenOriginal.delete().where(ForgottenOriginal.path.in_(paths)).execute()


def open_jpeg(photo: Photo) -> BinaryIO:
    """The original as a JPEG, upright, in memory. It is made each time: browsers keep it for a day, and a
    stored one would be larger than the original. Raises `Unreadable` as `open_original` does, and
    `Unavailable` while too many are made.
    """
    with open_original(photo) as picture:
        try:
            return io.BytesIO(pictures.as_jpeg(picture))
        except UnsupportedImage:
            raise Unreadable("The stored picture is damaged.") from None


def open_thumbnail(photo: Photo) -> BinaryIO:
    """A seekable reader of the thumbnail. Raises `Unreadable` when its file is missing or damaged."""
    return disk.open_sealed(database.store().folder / photo.thumbnail_path, photo.thumbnail_key)


def open_sound_thumbnail(photo: Photo) -> BinaryIO:
    """The thumbnail, in memory; made anew from the original if it is lost. Raises `Unreadable`."""
    try:
        return _whole(open_thumbnail(photo))
    except Unreadable:
        make_thumbnail_anew(photo)
        return _whole(open_thumbnail(Photo.get_by_id(photo.id)))


def keep_hash(photo_id: int, perceptual_hash: bytes) -> None:
    """Store the perceptual hash of a photo that an earlier version has stored without."""
    missing = (Photo.id == photo_id) & Photo.perceptual_hash.is_null()
    Photo.update(perceptual_hash=perceptual_hash).where(missing).execute()


def make_thumbnail_anew(photo: Photo) -> None:
    """Make the thumbnail again from the original. Raises `Unreadable` when that is missing or damaged."""
    with open_original(photo) as picture:
        try:
            thumbnail = pictures.examine(picture).thumbnail
        except UnsupportedImage:
            raise Unreadable("The stored picture is damaged.") from None
    folder = database.store().folder
    place = new_place(database.store().photos)
    fresh = place.with_name(f"{place.name}.thumbnail")
    key = keep_bytes(thumbnail, fresh)
    disk.sync_file(fresh.parent)
    replaced = {"thumbnail_path": str(fresh.relative_to(folder)), "thumbnail_key": key}
    same = (Photo.id == photo.id) & (Photo.thumbnail_path == photo.thumbnail_path)
    unused = folder / photo.thumbnail_path if Photo.update(**replaced).where(same).execute() else fresh
    unused.unlink(missing_ok=True)


def delete(photo_id: int) -> None:
    """Delete a photo with its analysis, its index entry and its files. Raises `NotFound`."""
    if not delete_all([photo_id]):
        raise NotFound("Photo not found")


def delete_all(photo_ids: list[int]) -> set[int]:
    """Delete these photos, in the trash or not, in one transaction; returns the ids of those that existed."""
    return set(_delete(_FILES.where(Photo.id.in_(photo_ids))))


def older(before: datetime) -> "peewee.ModelSelect[Any]":
    """The ids of the photos that retention deletes: uploaded before `before`, neither kept nor in the trash.

    The trash has its own time, so that what was thrown away can be brought back as long as people expect.
    """
    return Photo.select(Photo.id).where(Photo.created_at < before, ~models.IS_KEPT, ~models.IN_TRASH)


def count_older(before: datetime) -> int:
    """The number of photos that retention deletes, counted by those that it spares."""
    uploaded = Photo.select().where(Photo.created_at < before).count()
    in_trash = Trash.select().join(Photo).where(Photo.created_at < before).count()
    return uploaded - in_trash - count_spared(before)


def count_spared(before: datetime) -> int:
    """The number of photos that retention would delete if they were not kept."""
    kept = peewee.SQL("kept = 1")  # literal, as in the partial index
    return Analysis.select().join(Photo).where(kept, Photo.created_at < before).count()


def with_codes(before: datetime) -> "peewee.ModelSelect[Any]":
    """The ids of the photos with a one-time code alone, uploaded before `before`, that are not kept."""
    # The first condition is literal, as in the partial index `analyses_sensitive`.
    shows_code = models.IS_SENSITIVE & (Analysis.sensitive == "one_time_code") & ~Analysis.kept
    return (
        Photo.select(Photo.id)
        .join(Analysis)
        .where(shows_code, Photo.created_at < before)
        .order_by(Photo.created_at, Photo.id)
    )


def thrown_away(before: datetime) -> "peewee.ModelSelect[Any]":
    """The ids of the photos that went to the trash before `before`."""
    return Photo.select(Photo.id).join(Trash).where(Trash.deleted_at < before)


def purge(before: datetime, *, most: int) -> int:
    """Delete up to `most` of the photos that retention deletes, the oldest first; returns how many."""
    # Outside of the transaction: many kept photos may be older than the first that is due.
    first = older(before).select(peewee.fn.MIN(Photo.created_at)).scalar()
    due = older(before).where(Photo.created_at >= first).order_by(Photo.created_at).limit(most)
    return len(_delete(due.select(*_FILE_COLUMNS))) if first is not None else 0


def purge_trash(before: datetime, *, most: int) -> int:
    """Delete up to `most` photos that went to the trash before `before`, oldest first; returns how many."""
    due = thrown_away(before).order_by(Trash.deleted_at).limit(most)
    return len(_delete(due.select(*_FILE_COLUMNS)))


def purge_all(before: datetime, *, most: int) -> int:
    """Delete up to `most` photos uploaded before `before`, also kept and trashed ones; returns how many."""
    return len(_delete(_FILES.where(Photo.created_at < before).order_by(Photo.created_at).limit(most)))


def display_name(filename: str, mime_type: str) -> str:
    """The client's file name without path parts and control characters. It is not a name on the disk."""
    name = PurePosixPath(
        re.sub(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", "", filename).replace("\\", "/")
    ).name
    return name[-MAX_NAME:] or "screenshot" + {"image/jpeg": ".jpg"}.get(
        mime_type, mime_type.replace("image/", ".")
    )


# Plain SQL, because peewee takes longer to write a statement of this size than SQLite to run it. All rows are
# one JSON value, because reading 400 of SQLite's values takes longer than finding them.
_LIST_COLUMNS = {
    "title": "title",
    "summary": "summary",
    "note": "note",
    "kept": "json(iif(kept, 'true', 'false'))",
    "tags": "json(tags)",
    "deleted_at": "NULL",
    "sensitive": "sensitive",  # kinds with blanks between them
    **{name: f"p.{name}" for name in shapes.names(shapes.PhotoFields)},
    "analysis_status": "status",
    "app_name": "app_name",
    "intent": "intent",
    "record": "json(records -> 0)",
}
_LISTED = tuple(_LIST_COLUMNS)
_LIST = f"""SELECT json_group_array(json_array({", ".join(_LIST_COLUMNS.values())}))
    FROM photos p JOIN shown ON shown.photo_id = p.id
    WHERE p.id IN (SELECT value FROM json_each(?))"""  # noqa: S608
# Of a photo in the trash, the analysis is JSON. One that went there long ago has nothing sensitive.
_TRASH_COLUMNS = _LIST_COLUMNS | {
    **{name: f"coalesce(nullif(own.{name}, ''), analysis ->> '{name}')" for name in ("title", "summary")},
    "note": "coalesce(own.note, '')",
    "kept": "json(iif(analysis ->> 'kept', 'true', 'false'))",
    "tags": "json(trash.tags)",
    "deleted_at": "deleted_at",
    "sensitive": "coalesce(analysis ->> 'sensitive', '')",
    "analysis_status": "analysis ->> 'status'",
    "app_name": "analysis ->> 'app_name'",
    "intent": "analysis ->> 'intent'",
    "record": "json(coalesce(nullif(own.records, ''), analysis ->> 'records') -> 0)",
}
_TRASHED = f"""SELECT json_group_array(json_array({", ".join(_TRASH_COLUMNS.values())}))
    FROM photos p JOIN trash ON trash.photo_id = p.id LEFT JOIN own_words AS own ON own.photo_id = p.id
    WHERE p.id IN (SELECT value FROM json_each(?))"""  # noqa: S608
_SHOWN_COLUMNS = (
    *("title", "summary", "note", "text", "own_title", "own_summary", "own_text", "tags"),
    *("kept", "sensitive", "records", "own_records"),
)
_PHOTO_COLUMNS = tuple(name for name in shapes.names(shapes.PhotoDetail) if name in Photo._meta.fields)
_DETAIL_COLUMNS = (_PHOTO_COLUMNS, shapes.names(shapes.AnalysisDetail), _SHOWN_COLUMNS)
_DETAIL = f"""SELECT {", ".join(f"p.{name}" for name in _DETAIL_COLUMNS[0])},
    {", ".join(f"a.{name}" for name in _DETAIL_COLUMNS[1])},
    {", ".join(f"shown.{name}" for name in _DETAIL_COLUMNS[2])}
    FROM photos p JOIN analyses a ON a.photo_id = p.id JOIN shown ON shown.photo_id = p.id
    WHERE p.id IN (SELECT value FROM json_each(?))"""  # noqa: S608
_FILE_COLUMNS = (Photo.id, Photo.original_path, Photo.thumbnail_path)
_FILES = Photo.select(*_FILE_COLUMNS)


def _items(sql: str, ids: list[int]) -> list[shapes.PhotoItem]:
    """The list items of these photos that `_LIST` or `_TRASHED` finds, in this order."""
    if not ids:
        return []
    rows: str = db.execute_sql(sql, (msgspec.json.encode(ids).decode(),)).fetchone()[0]
    found = {item["id"]: item for item in map(_listed, msgspec.json.decode(rows))}
    return [found[photo_id] for photo_id in ids if photo_id in found]


def _listed(row: list[Any]) -> shapes.PhotoItem:
    """A list item from its columns."""
    item = dict(zip(_LISTED, row, strict=True))
    item["sensitive"] = item["sensitive"].split()
    record = records.first(item["record"])
    said = records.in_words(record, item["app_name"], item["title"], item["summary"])
    item["title"], item["summary"] = said
    item["record"] = records.fact(record)
    return cast(shapes.PhotoItem, item)


def _tagged(filters: Filters, tag: str) -> Selected:
    """The photos with a tag that pass the filters; each of them is looked up for other filters."""
    tagged = Selected("photo_tags").where("folded = ?", lexicon.folded_tag(tag))
    if filters.since is not None:
        tagged = tagged.where("taken_at >= ?", iso(filters.since))
    if filters.until is not None:
        tagged = tagged.where("taken_at < ?", iso(filters.until))
    others: dict[str, Any] = {name: value for name, value in filters.values().items() if value is not None}
    if filters.kept:
        others["kept"] = 1
    if not others and not filters.stacks:
        return tagged
    passing = _uncovered(Selected("analyses", ("photo_id = photo_tags.photo_id",)), filters)
    for name, value in others.items():
        passing = passing.where(f"+{name} = ?", value)
    return tagged.where(f"EXISTS (SELECT 1 FROM {passing.sql})", *passing.values)  # noqa: S608


def _among(filters: Filters, *, taken: bool) -> Selected:
    """The photos that pass the filters without the period. SQLite uses no index for a column with a plus."""
    values = {name: value for name, value in filters.values().items() if value is not None}
    leading = None
    among = Selected("analyses")
    if filters.kept:
        # Few photos are kept, and their index has every other column. Literal, as in that partial index.
        among = among.where("kept = 1")
        leading = "kept"
    elif filters.stacks and not taken and not values:
        # Literal, as in the partial index `analyses_shown`.
        return among.where("NOT covered")
    elif taken and values:
        # Of several filters, the one that the fewest photos pass: their number is what a page may have to
        # walk through.
        leading = min(values, key=lambda name: tallies.photos({name: values[name]}))
    elif filters.app is not None:
        leading = "app_name"
    for name, value in values.items():
        among = among.where(f"+{name} = ?" if leading not in (None, name) else f"{name} = ?", value)
    return _uncovered(among, filters)


def _uncovered(among: Selected, filters: Filters) -> Selected:
    """Those of `among` that are shown for their stack; all without stacks. For the plus, see `_among`."""
    if not filters.stacks:
        return among
    return among.where("NOT +covered" if filters.device_id is None else "+covered <> 1")


def _within(filters: Filters, among: Selected) -> Selected:
    """Those of `among` that are in the period."""
    if filters.since is not None:
        among = among.where("taken_at >= ?", iso(filters.since))
    return among if filters.until is None else among.where("taken_at < ?", iso(filters.until))


def _total(filters: Filters, among: Selected) -> int:
    """How many photos match the filters: from the tallies, or, in a period, counted in its index."""
    if filters.since is not None or filters.until is not None:
        return _within(filters, among).total()
    return tallies.photos(filters.values(), kept=filters.kept, stacks=filters.stacks)


def _stack(found: models.Stack | None) -> shapes.Stack | None:
    if found is None:
        return None
    return {"count": len(found.photo_ids), "photo_ids": found.photo_ids, "best": found.best}


def _whole(file: BinaryIO) -> BinaryIO:
    with file:
        return io.BytesIO(file.read())


def _delete(due: "peewee.ModelSelect[Any]") -> list[int]:
    """Delete the photos of which `due` selects the `_FILE_COLUMNS`; returns their ids."""
    with db.atomic():
        rows = list(cast("Iterable[tuple[int, str, str]]", due.tuples()))
        ids = [row[0] for row in rows]
        lexicon.remove_all(ids)
        records.forget(ids)
        Analysis.delete().where(Analysis.photo.in_(ids)).execute()
        Photo.delete().where(Photo.id.in_(ids)).execute()
    # After the commit: a crash here leaves files without a row, which have lost their keys; clean-up removes
    # them.
    for path in itertools.chain.from_iterable(row[1:] for row in rows):
        (database.store().folder / path).unlink(missing_ok=True)
    for row in rows:
        away.forget(row[1])
    return ids


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("photos", __name__, url_prefix="/api/photos")


AppName = Annotated[str, msgspec.Meta(description="exactly as the analysis has it")]


Stacks = Annotated[
    bool, msgspec.Meta(description="with `true`, one photo for each stack: the kept one, else the newest")
]


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20
    status: shapes.Status | None = None
    device_id: str | None = None
    category: Category | None = None
    intent: Intent | None = None
    since: inputs.Moment = ""
    until: inputs.Moment = ""
    app: AppName | None = None
    order: Order = "uploaded"
    kept: Annotated[bool, msgspec.Meta(description="with `true`, only kept photos")] = False
    tag: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    trash: Annotated[
        bool, msgspec.Meta(description="with `true`, the photos in the trash; then no filter is allowed")
    ] = False
    stacks: Stacks = False


class PictureQuery(msgspec.Struct):
    trash: Annotated[bool, msgspec.Meta(description="with `true`, of a photo in the trash")] = False


class ImageQuery(PictureQuery):
    format: Literal["jpeg"] | None = None


class TimelineQuery(msgspec.Struct):
    status: shapes.Status | None = None
    device_id: str | None = None
    category: Category | None = None
    intent: Intent | None = None
    app: AppName | None = None
    stacks: Stacks = False


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.PhotoPage:
    """List photos, the newest upload first. With the order `taken`, the latest picture comes first, and also
    with `since` or `until`, which filter by the time of the picture. The list of the trash takes no filter;
    what was thrown away last comes first. With `stacks`, filters apply to the photo that is shown.
    """
    if query.trash:
        return _trash_page(query)
    since, until = parse_time(query.since, field="since"), parse_time(query.until, field="until")
    among = (query.status, query.device_id, query.category, query.intent)
    filters = Filters(*among, since, until, query.app, query.kept, query.tag, query.stacks)
    total, items = page(query.page, query.page_size, filters, query.order)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


def _trash_page(query: ListQuery) -> shapes.PhotoPage:
    if query != ListQuery(query.page, query.page_size, order=query.order, trash=True, stacks=query.stacks):
        raise BadInput("trash: cannot be combined with a filter")
    total, trashed = trashed_page(query.page, query.page_size)
    items = cast("list[shapes.ListedPhoto]", trashed)
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.get("/apps", endpoint="apps")
@inputs.operation()
def list_apps() -> shapes.AppList:
    """List the apps with the most photos, at most 100. Names are those of the analyses. Photos in the trash
    do not count.
    """
    return {"apps": apps()}


@routes.get("/timeline", endpoint="timeline")
@inputs.operation()
def show_timeline(query: TimelineQuery) -> shapes.Timeline:
    """Count the photos of each month (UTC) in which pictures were taken, the newest first. Filters are those
    of the list of photos. Months without photos are left out.
    """
    among = (query.status, query.device_id, query.category, query.intent)
    filters = Filters(*among, app=query.app, stacks=query.stacks)
    return {"months": timeline(filters)}


@routes.get("/<id:photo_id>")
@inputs.operation(NotFound)
def show(photo_id: int) -> shapes.PhotoDetail:
    """Show a photo with its analysis. A photo in the trash is 404 here; the list of photos has it with
    `trash=true`.
    """
    return detail(photo_id)


@routes.get("/<id:photo_id>/image")
@inputs.without_scope
@inputs.operation(NotFound, Unreadable, Unavailable)
def image(
    photo_id: int, query: ImageQuery
) -> Annotated[flask.Response, inputs.Media(shapes.PICTURES, has_etag=True, has_ranges=True)]:
    """Get the picture as it was uploaded. With the format `jpeg`, a HEIC or AVIF comes as a JPEG of the same
    size, for browsers that cannot show it. An original that is in a bucket is fetched; if that takes longer
    than some seconds, or the bucket does not answer, the answer is 503.
    """
    return bringing(lambda: _image(photo_id, query))


def _image(photo_id: int, query: ImageQuery) -> flask.Response:
    photo = get(photo_id, trashed=query.trash)
    if query.format and photo.mime_type in pictures.NOT_EVERYWHERE:
        return _picture(open_jpeg, photo, "image/jpeg", f"{photo.sha256.hex()}-jpeg")
    return _picture(open_original, photo, photo.mime_type, photo.sha256.hex(), photo.file_size)


@routes.get("/<id:photo_id>/thumbnail")
@inputs.operation(NotFound, Unreadable)
def thumbnail(
    photo_id: int, query: PictureQuery
) -> Annotated[flask.Response, inputs.Media(("image/jpeg",), has_etag=True, has_ranges=True)]:
    """Get a JPEG of at most 512 px on its long side. It is upright, whatever the EXIF orientation of the
    original.
    """
    photo = get(photo_id, trashed=query.trash)
    return _picture(
        open_sound_thumbnail, photo, "image/jpeg", f"{photo.sha256.hex()}-{pictures.THUMBNAIL_SIDE}"
    )


@routes.delete("/<id:photo_id>")
@inputs.operation(NotFound)
def remove(photo_id: int) -> shapes.Done:
    """Delete a photo with its analysis and its files, at once and for good, in the trash or not. To have a
    way back, move it to the trash instead.
    """
    delete(photo_id)
    return {"message": "Deleted"}


def _picture(
    opened: Callable[[Photo], BinaryIO], photo: Photo, mime_type: str, etag: str, size: int | None = None
) -> flask.Response:
    """A stored picture as a response that a browser displays but never executes."""
    fresh = flask.Response(mimetype=mime_type)
    fresh.set_etag(etag)
    if not flask.request.if_none_match.contains_weak(etag):
        reader = opened(photo)
        if size is None:
            size = reader.seek(0, io.SEEK_END)
            reader.seek(0)
        elif size <= IN_MEMORY:
            reader = _whole(reader)
            if reader.seek(0, io.SEEK_END) != size:
                raise Unreadable("A stored file is damaged.")
            reader.seek(0)
        fresh = flask.send_file(reader, mimetype=mime_type, etag=etag, conditional=False)
        fresh.content_length = size
        fresh.call_on_close(reader.close)
    fresh.headers["Content-Security-Policy"] = "sandbox"
    # A copy is asked about each time, with the key: it may have been revoked, and the picture deleted.
    fresh.headers["Cache-Control"] = "private, no-cache"
    fresh.vary.add("Authorization")
    fresh.make_conditional(flask.request.environ, accept_ranges=size is not None, complete_length=size)
    return fresh
