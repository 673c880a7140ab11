"""Readings: the lines of text that were read on a photo on this machine, with their places; a photo's
`/api/photos/{id}/lines`.

A reading is kept whichever model analyses the photo: the page puts the lines over the picture, and a search
shows where a match stands. What is searched is not kept here, but with the analysis (`lexicon.py`).

A reading is about a kilobyte (`engines/packing.py`). Which of its lines are the status bar is recognised
whenever it is read (`rules/screen.py`), so that better rules also serve photos that were read before.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
import peewee
from flask import Blueprint

import models
import pictures
import terms
from database import db
from engines import packing
from engines.lines import Page
from errors import NotFound
from models import READS, Analysis, Photo, Reading
from rules import screen
from web import inputs, shapes

log = logging.getLogger(__name__)

MOST_COMPARED = 2  # photos that look like one, whose pixels are compared: two decodings each
MAX_MERGED = 100_000  # characters of text that is searched, in all


class Line(msgspec.Struct, frozen=True):
    """A line of text and its place, in parts of the width and the height of the upright picture."""

    text: str
    left: float
    top: float
    width: float
    height: float
    status_bar: bool


class Lines(msgspec.Struct, frozen=True):
    """What was read on a photo: the size of the upright picture in pixels, and the lines in reading order."""

    width: int
    height: int
    lines: Sequence[Line]

    @property
    def text(self) -> str:
        """The text, a line a row."""
        return "\n".join(line.text for line in self.lines)

    @property
    def content(self) -> str:
        """The text without the status bar."""
        return "\n".join(line.text for line in self.lines if not line.status_bar)

    def in_rows(self, text: str) -> str:
        """A text of these lines with a tab, not a break, between what is side by side, as the cells of a
        table are. A text of other lines, such as a person's, is left as it is.
        """
        lines = [line for line in self.lines if text == self.text or not line.status_bar]
        if not lines or "\n".join(line.text for line in lines) != text:
            return text
        row, parts = lines[0], [lines[0].text]
        for line in lines[1:]:
            is_beside = row.top <= line.top + line.height / 2 <= row.top + row.height
            is_beside = is_beside and line.left >= row.left + row.width / 2
            parts += ["\t" if is_beside else "\n", line.text]
            row = line
        return "".join(parts)


def save(photo_id: int, page: Page, *, reader: str) -> Page:
    """Store what the engine `reader` has read on a photo, in place of an earlier reading; returns it as it is
    stored.
    """
    end_tries(photo_id)
    columns = row(photo_id, page, reader=reader)
    Reading.insert(**columns).on_conflict_replace().execute()
    return Page(page.width, page.height, packing.unpack(columns["lines"]))


def row(photo_id: int, page: Page, *, reader: str) -> dict[str, Any]:
    """The columns of a reading."""
    packed = packing.pack(page.lines)
    return {"photo": photo_id, "width": page.width, "height": page.height, "lines": packed, "reader": reader}


def of_same_look(photo: Photo, *, reader: str) -> list[Photo]:
    """The newest other photos that were read by `reader` and may have the same pixels as `photo`, in another
    file: of the same size and the same perceptual hash. At most `MOST_COMPARED`, and none of a large photo,
    as two decoded ones would take much memory.
    """
    if not photo.perceptual_hash or photo.width * photo.height > pictures.LARGE_PIXELS:
        return []
    same = (Photo.perceptual_hash == photo.perceptual_hash) & (Photo.id != photo.id)
    same &= (Photo.width == photo.width) & (Photo.height == photo.height) & (Reading.reader == reader)
    found = Photo.select(Photo).join(Reading, on=(Reading.photo == Photo.id)).where(same)
    return list(found.order_by(Photo.id.desc()).limit(MOST_COMPARED))


def forget(photo_id: int) -> None:
    """Delete the reading of a photo, which is then due to be read again."""
    Reading.delete().where(Reading.photo == photo_id).execute()
    Analysis.update(reads_left=READS).where(Analysis.photo == photo_id).execute()


def end_tries(photo_id: int) -> None:
    """Record that the text of a photo was read on this machine, or cannot be."""
    Analysis.update(reads_left=0).where(Analysis.photo == photo_id).execute()


def next_unread() -> int | None:
    """The newest photo whose text is due to be read on this machine; None when there is none."""
    # Literal, as in the partial index: with bound values SQLite would read the whole table.
    due = peewee.SQL("reads_left > 0 AND status <> 'processing'")
    query = Analysis.select(Analysis.photo).where(due).order_by(Analysis.photo.desc()).limit(1)
    return cast("int | None", query.scalar())


def count_unread() -> int:
    """How many photos are due to be read on this machine."""
    return Analysis.select().where(peewee.SQL("reads_left > 0")).count()


def count_tries(photo_id: int, tries: int) -> None:
    """Record failed `tries` at reading a photo; a negative number takes them back."""
    Analysis.update(reads_left=Analysis.reads_left - tries).where(Analysis.photo == photo_id).execute()


def of(photo_ids: Iterable[int]) -> dict[int, Lines]:
    """The readings of those photos that have one, in one query. A damaged one is left out, and logged."""
    # Without peewee: a search has 20 of them.
    sql = """SELECT photo_id, width, height, lines FROM readings
        WHERE photo_id IN (SELECT value FROM json_each(?))"""
    rows = db.execute_sql(sql, (msgspec.json.encode(list(photo_ids)).decode(),)).fetchall()
    found = ((photo_id, _page(photo_id, *columns)) for photo_id, *columns in rows)
    return {photo_id: lines_on(page) for photo_id, page in found if page is not None}


def page_of(photo_id: int) -> tuple[Page, str] | None:
    """The reading as it was stored, in pixels, and the engine; None when there is none that can be used."""
    sql = "SELECT width, height, lines, reader FROM readings WHERE photo_id = ?"
    row = db.execute_sql(sql, (photo_id,)).fetchone()
    read = None if row is None else _page(photo_id, *row[:3])
    return None if read is None else (read, row[3])


def newest(most: int, *, below: int | None = None) -> list[int]:
    """The ids of the newest photos that have a reading, also in the trash; of those below an id, if given."""
    query = Reading.select(Reading.photo).order_by(Reading.photo.desc()).limit(most)
    if below is not None:
        query = query.where(Reading.photo < below)
    return [row.photo_id for row in query]


def page(photo_id: int) -> Page | None:
    """As `page_of`, without the engine."""
    found = page_of(photo_id)
    return None if found is None else found[0]


def lines_of(photo_id: int) -> shapes.PhotoLines:
    """The reading as clients see it; one without lines when there is none. Raises `NotFound`."""
    present = (Photo.id == photo_id) & ~models.IN_TRASH
    photo = Photo.select(Photo.width, Photo.height).where(present).get_or_none()
    if photo is None:
        raise NotFound("Photo not found")
    found = of([photo_id]).get(photo_id) or Lines(photo.width, photo.height, [])
    return {
        "width": found.width,
        "height": found.height,
        "lines": shown(found.lines),
    }


def shown(lines: Iterable[Line]) -> list[shapes.LineFields]:
    """The lines as clients see them: their places are rounded, to less than a pixel."""
    names = ("left", "top", "width", "height")
    return [
        shapes.of(line, shapes.LineFields, **{name: round(getattr(line, name), 5) for name in names})
        for line in lines
    ]


def text(photo_id: int) -> str:
    """What was read on a photo, a line a row; "" when nothing was."""
    found = page(photo_id)
    return "" if found is None else found.text


def lines_on(page: Page) -> Lines:
    """The lines of a page with their places as parts of the picture."""
    bar = screen.status_bar(page)
    across, down = max(1, page.width), max(1, page.height)
    placed = []
    for index, line in enumerate(page.lines):
        left, top, right, bottom = line.left, line.top, line.right, line.bottom
        if not (0 <= left <= right <= across and 0 <= top <= bottom <= down):
            left, right = (min(max(0, place), across) for place in (left, right))
            top, bottom = (min(max(0, place), down) for place in (top, bottom))
        width, height = max(0, right - left) / across, max(0, bottom - top) / down
        placed.append(Line(line.text, left / across, top / down, width, height, index in bar))
    return Lines(page.width, page.height, placed)


def is_damaged(row: Reading) -> bool:
    """Whether a row cannot be unpacked."""
    try:
        packing.unpack(row.lines)
    except packing.Damaged:
        return True
    return False


def merged(read: str, seen: str) -> str:
    """The text to search for a photo: what was `read` on this machine, and those lines of what a model has
    `seen` that have a word which was not read.

    What the model repeats would only make the index larger. Lines are compared by their words, because models
    break them elsewhere.
    """
    known = set(terms.cut(terms.fold(read)))
    more = [line for line in seen.splitlines() if not known.issuperset(terms.cut(terms.fold(line)))]
    return "\n".join(filter(None, (read, *more)))[:MAX_MERGED]


def _page(photo_id: int, width: int, height: int, packed: bytes) -> Page | None:
    try:
        return Page(width, height, packing.unpack(packed))
    except packing.Damaged as problem:
        log.error("the reading of photo %d cannot be used: %s", photo_id, problem)
        return None


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("readings", __name__, url_prefix="/api/photos")


@routes.get("/<id:photo_id>/lines")
@inputs.operation(NotFound)
def show(photo_id: int) -> shapes.PhotoLines:
    """Show the lines of text that were read on a photo, in reading order, with their places. Places are
    fractions of the upright picture, from its upper left corner. A photo that was not read yet has no lines.
    """
    return lines_of(photo_id)
