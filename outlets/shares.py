"""Sharing a picture without its secrets: as a file, or by a link that ends; `/api/photos/{id}/redacted`,
`/api/photos/{id}/shares`, `/api/shares` and `/s/…`.

What is painted over is decided when the picture is shared: what the rules find sensitive in the text that was
read, and what the person draws. The boxes are painted into the pixels, and the picture is encoded anew, so
the file has neither what is below them nor metadata, nor a name. A link holds 256 random bits, of which only
the SHA-256 is stored: it can be ended, not shown again. It leads to the picture alone, without a page around
it and without a script.

The rules know the characters of a line and its box, not where each character is. So what is painted begins a
little before the estimated place of the secret and goes on to the end of the line, as in the redacted index.
"""

import itertools
import logging
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple

import flask
import msgspec
from flask import Blueprint
from msgspec import Meta

import access
import crypto
import database
import gate
import models
import photos
import pictures
import readings
from clock import utc_now
from database import db
from errors import BadInput, Conflict, NotFound, Unavailable, Unreadable
from models import Photo, Share
from rules import sensitive
from web import inputs, shapes

log = logging.getLogger(__name__)

MOST_SHARES = 200  # links at a time
MOST_BOXES = 500
SHORTEST, LONGEST, USUAL = 60, 30 * 86_400, 7 * 86_400  # seconds that a link lasts
BEFORE = 1.5  # characters that are painted before the estimated place of a secret
AROUND = 0.2  # of a line's height, above and below it
# Width by height and number of characters. Bar codes and columns of Chinese are narrower than a row of
# text; they are painted over whole.
NARROW = 0.2
# A code may have each digit in a cell of its own, which is read as a line. What begins or ends a key, and a
# phrase of words, is painted over whole: its lines are read with others in one.
CELLED, CELL = "one_time_code", 2
WHOLE = ("private_key", "recovery_phrase")
SMALLEST = 0.002  # of the width and the height: a box that nobody would see is a mistake


class Covered(msgspec.Struct, frozen=True):
    """A place on the upright picture that is painted over, in parts of its width and height."""

    left: Annotated[float, Meta(ge=0, le=1)]
    top: Annotated[float, Meta(ge=0, le=1)]
    width: Annotated[float, Meta(ge=SMALLEST, le=1)]
    height: Annotated[float, Meta(ge=SMALLEST, le=1)]


Redaction = Literal["sensitive", "none"] | Annotated[list[Covered], Meta(max_length=MOST_BOXES)]


class Found(NamedTuple):
    """A box with the kind of secret that is in it."""

    kind: str
    box: Covered


# ------------------------------------------------------------------------------------------- what is painted


def found_on(photo_id: int) -> list[Found]:
    """The places of what is sensitive on a photo; none where the person has said that nothing is.

    Raises `NotFound`, and `Conflict` when the photo has not been read, because then nobody knows.
    """
    photos.get(photo_id)
    page = readings.page(photo_id)
    if page is None:
        raise Conflict(
            "This screenshot was not read yet, so nobody knows what is sensitive on it. Try again when it"
            " has been analysed, or choose yourself what is painted over."
        )
    if gate.marks([photo_id])[photo_id].cleared:
        return []
    lines = readings.lines_on(page).lines
    found = []
    cells: list[readings.Line] = []
    for finding in sensitive.find([line.text for line in lines]):
        read, line = page.lines[finding.line], lines[finding.line]
        if finding.kind == CELLED and len(line.text) <= CELL:
            cells.append(line)
            continue
        is_row = read.width > NARROW * read.height * len(read.text) and finding.kind not in WHOLE
        found.append(Found(finding.kind, _box(line, _before(line.text, finding.start) if is_row else 0.0)))
    return found + [Found(CELLED, box) for box in _rows(cells)]


def boxes_of(photo_id: int, redact: Redaction) -> list[Covered]:
    """What is painted over for a choice of the person. Raises as `found_on` does."""
    if isinstance(redact, list):
        photos.get(photo_id)
        return redact
    return [] if redact == "none" else [found.box for found in found_on(photo_id)]


def painted(photo_id: int, boxes: Sequence[Covered]) -> bytes:
    """A photo as a JPEG with solid boxes. Raises `NotFound`, `Unreadable`, `Unavailable`, `Elsewhere`."""
    with photos.open_original(photos.get(photo_id)) as picture:
        return pictures.painted(picture, [(box.left, box.top, box.width, box.height) for box in boxes])


def _before(text: str, start: int) -> float:
    """The part of a line's width before a character, somewhat less than by an even division."""
    wide = [2 if letter > "\u2e80" else 1 for letter in text]
    return max(0.0, (sum(wide[:start]) - BEFORE * (start > 0)) / max(1, sum(wide)))


def _rows(cells: Sequence[readings.Line]) -> list[Covered]:
    """The places of codes with each digit in its own cell, a cell more on both sides."""
    rows: list[list[readings.Line]] = []
    for cell in sorted(cells, key=lambda one: one.top):
        if rows and cell.top < rows[-1][0].top + rows[-1][0].height:
            rows[-1].append(cell)
        else:
            rows.append([cell])
    boxes = []
    for row in rows:
        lefts = sorted(cell.left for cell in row)
        gaps = [right - left for left, right in itertools.pairwise(lefts)]
        pitch = min(gaps, default=0.0)
        top, bottom = min(cell.top for cell in row), max(cell.top + cell.height for cell in row)
        left = max(0.0, lefts[0] - pitch)
        right = min(1.0, max(cell.left + cell.width for cell in row) + pitch)
        boxes.append(_box(readings.Line("", left, top, right - left, bottom - top, False), 0.0))
    return boxes


def _box(line: readings.Line, start: float) -> Covered:
    margin = AROUND * line.height
    left, top = max(0.0, line.left + start * line.width), max(0.0, line.top - margin)
    right, bottom = min(1.0, line.left + line.width + margin / 2), min(1.0, line.top + line.height + margin)
    return Covered(left, top, max(SMALLEST, right - left), max(SMALLEST, bottom - top))


# ------------------------------------------------------------------------------------------------------ links


def share(
    photo_id: int,
    redact: Redaction,
    *,
    expires_in: int,
    max_views: int | None,
    base: str,
    token_id: int | None,
    now: datetime,
) -> shapes.NewShare:
    """Make a link to a photo; the answer holds its address this once. `base` is the address of the service,
    without a trailing slash, and `token_id` the token that asks, None for the owner.

    Raises as `boxes_of` does, and `BadInput` when there are too many links.
    """
    boxes = boxes_of(photo_id, redact)
    secret = secrets.token_urlsafe(32)
    with db.atomic():
        if Share.select().where(_is_alive(now)).count() >= MOST_SHARES:
            raise BadInput(f"there are {MOST_SHARES} links already; end one first")
        row = Share.create(
            photo=photo_id,
            token=token_id,
            digest=crypto.secret_digest(secret),
            boxes=msgspec.json.encode(boxes).decode(),
            created_at=now,
            expires_at=now + timedelta(seconds=expires_in),
            max_views=max_views,
        )
    log.info("link %d to photo %d made", row.id, photo_id)
    return shapes.of(row, shapes.NewShare, url=f"{base}/s/{secret}")


def alive(*, now: datetime) -> list[shapes.ShareFields]:
    """The links that lead somewhere, the newest first."""
    rows = Share.select().where(_is_alive(now)).order_by(Share.id.desc())
    return [shapes.of(row, shapes.ShareFields, redacted=len(msgspec.json.decode(row.boxes))) for row in rows]


def end(share_id: int) -> None:
    """End a link: it leads nowhere from now on, in every worker. Raises `NotFound`."""
    if not Share.delete().where(Share.id == share_id).execute():
        raise NotFound("Link not found")
    log.info("link %d ended", share_id)


def forget_all() -> None:
    """End all links."""
    Share.delete().execute()


def purge(before: datetime) -> int:
    """Delete the rows of links that ended before. Returns how many."""
    return int(Share.delete().where(Share.expires_at < before).execute())


def seen(secret: str, *, now: datetime) -> tuple[int, list[Covered]]:
    """The photo of the link with this secret, and what is painted over. It counts as a view.

    Raises `NotFound`, with one sentence for every reason.
    """
    counted = (
        Share.update(views=Share.views + 1, last_viewed_at=now)
        .where((Share.digest == crypto.secret_digest(secret)) & _is_alive(now))
        .returning(Share.photo, Share.boxes)
        .execute()
    )
    row = next(iter(counted), None)
    if row is None:
        raise NotFound("There is nothing at this path.")
    return row.photo_id, msgspec.json.decode(row.boxes, type=list[Covered])


def _is_alive(now: datetime) -> Any:
    unseen = Share.max_views.is_null() | (Share.views < Share.max_views)
    present = Share.photo.not_in(Photo.select(Photo.id).where(models.IN_TRASH))
    return (Share.expires_at > now) & unseen & present


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("shares", __name__)

Jpeg = Annotated[flask.Response, inputs.Media(("image/jpeg",))]


class RedactedRequest(msgspec.Struct):
    redact: Redaction = "sensitive"


class ShareRequest(msgspec.Struct):
    redact: Redaction = "sensitive"
    expires_in: Annotated[int, Meta(ge=SHORTEST, le=LONGEST, description="seconds")] = USUAL
    max_views: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    address: access.Address = ""


@routes.get("/api/photos/<id:photo_id>/redaction")
@inputs.operation(NotFound, Conflict)
def show_redaction(photo_id: int) -> shapes.RedactionFields:
    """List the places of what was found sensitive on a photo: what `redact: "sensitive"` paints over. A
    page draws them, and sends those that the person keeps, with others, as `redact`.
    """
    return {"boxes": [shapes.of(box, shapes.FoundSecret, kind=kind) for kind, box in found_on(photo_id)]}


@routes.post("/api/photos/<id:photo_id>/redacted")
@inputs.without_scope
@inputs.operation(NotFound, Conflict, Unreadable, Unavailable)
def redact(photo_id: int, body: RedactedRequest) -> Jpeg:
    """Get the picture as a JPEG that can be passed on, without metadata and file name. Solid boxes are
    painted over what was found sensitive, or over the given places.
    """

    def paint() -> bytes:
        return painted(photo_id, boxes_of(photo_id, body.redact))

    return _picture(photos.bringing(paint))


@routes.post("/api/photos/<id:photo_id>/shares")
@inputs.operation(NotFound, Conflict)
def add(photo_id: int, body: ShareRequest) -> shapes.NewShare:
    """Make a link to the picture for somebody without a key. The answer shows it this once. Solid boxes are
    painted over what was found sensitive, or over the given places. The link ends by itself, with the photo,
    and with the token that made it.
    """
    return share(
        photo_id,
        body.redact,
        expires_in=body.expires_in,
        max_views=body.max_views,
        base=body.address or inputs.own_address(),
        token_id=access.caller().token_id,
        now=utc_now(),
    )


@routes.get("/api/shares")
@inputs.operation()
def index() -> shapes.ShareList:
    """List the links that lead somewhere, the newest first, with how often each was opened. Their addresses
    are shown only when they are made.
    """
    return {"shares": alive(now=utc_now())}


@routes.delete("/api/shares/<id:share_id>")
@inputs.operation(NotFound)
def remove(share_id: int) -> shapes.Done:
    """End a link, at once. It is 404 from then on, like one that never was."""
    end(share_id)
    return {"message": "Ended"}


@routes.get("/s/<secret>")
@inputs.without_scope
@inputs.operation(NotFound, Unreadable, Unavailable)
def show(secret: str) -> Jpeg:
    """Get a shared picture, at its link; needs no key. Every wrong or ended link is the same 404."""
    with database.scope():
        photo_id, boxes = seen(secret, now=utc_now())
    return _picture(photos.bringing(lambda: painted(photo_id, boxes)))


def _picture(jpeg: bytes) -> flask.Response:
    answer = flask.Response(jpeg, mimetype="image/jpeg")
    answer.headers["Cache-Control"] = "no-store"
    answer.headers["Content-Disposition"] = 'inline; filename="screenshot.jpg"'
    answer.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["X-Robots-Tag"] = "noindex, nofollow"
    return answer
