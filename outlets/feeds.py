"""Feeds: the agenda for calendars, notes and searches for feed readers; `/api/feeds` and `/feed/…`.

Such programs send no key, so the address itself is the secret: 256 random bits, of which only the SHA-256 is
stored. Whoever has it reads this one feed and nothing else, until it is revoked. A feed that a device made
ends with the device's access. What is sensitive is in no feed (`gate.py`), and neither are pictures.

An answer says whether anything has changed since the last one, so that a program that asks every few minutes
costs little: `ETag` and `Last-Modified` are those of the content, not of the moment.
"""

import hashlib
import json
import logging
import re
import secrets
import time
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import flask
import msgspec
from flask import Blueprint
from msgspec import Meta

import access
import agenda
import crypto
import database
import dynamics
import gate
import lexicon
import photos
import search
from clock import local_day, utc_now
from database import db
from errors import BadInput, NotFound
from models import CalendarEntry, Feed, store_value, stored_value
from outlets import atom, ics
from queries.wording import MAX_QUERY
from settings import NAME, Settings
from text import storable
from web import inputs, shapes

log = logging.getLogger(__name__)

MOST_FEEDS = 100
MOST_ENTRIES = 50  # the latest: a program that has not asked for a while misses older ones
MOST_EVENTS = 1_000  # the nearest ones
PAST = timedelta(days=30)  # how long a calendar keeps what is over
CANCELLED = timedelta(days=14)  # how long it is told that an event is gone
USE_STEP = timedelta(minutes=1)  # how exactly `last_used_at` is known, so that few requests write
FILES = {"agenda": "agenda.ics", "notes": "notes.atom", "search": "search.atom"}

TITLES = {
    "en": {"agenda": NAME, "notes": f"{NAME} notes", "search": f"{NAME}: {{query}}"},
    "zh": {"agenda": NAME, "notes": f"{NAME} 笔记", "search": f"{NAME}：{{query}}"},
}
GONE = {"en": "Removed", "zh": "已移除"}  # the title of an event that is gone
SENSITIVE_QUERY = {"en": "a search", "zh": "搜索"}  # instead of one with something sensitive in it

# ---------------------------------------------------------------------------------------------- the addresses


def make(
    kind: shapes.FeedKind, query: str, base: str, *, token_id: int | None, now: datetime
) -> shapes.NewFeed:
    """Make a feed; the answer holds its address this once. `base` is that of the service, without a trailing
    slash, and `token_id` the token that asks, None for the owner. Raises `BadInput`.
    """
    query = storable(query).strip()
    if (kind == "search") != bool(query):
        raise BadInput("query: is missing" if kind == "search" else "query: is only for a feed of a search")
    secret = secrets.token_urlsafe(32)
    with db.atomic():
        if Feed.select().count() >= MOST_FEEDS:
            raise BadInput(f"kind: there are {MOST_FEEDS} feeds already; revoke one first")
        feed = Feed.create(
            kind=kind,
            query=query,
            digest=crypto.secret_digest(secret),
            token=token_id,
            created_at=now,
            changed_at=now,
        )
    log.info("feed %d made, kind %s", feed.id, kind)
    url = f"{base}/feed/{secret}/{FILES[kind]}"
    # A phone that scans it subscribes at once: `webcal` is the scheme of calendars.
    subscribed = re.sub("^https?:", "webcal:", url) if kind == "agenda" else url
    return shapes.of(feed, shapes.NewFeed, url=url, qr=access.qr_drawn(subscribed))


def every() -> list[shapes.FeedFields]:
    """All feeds, the newest first."""
    return [shapes.of(feed, shapes.FeedFields) for feed in Feed.select().order_by(Feed.id.desc())]


def revoke(feed_id: int) -> None:
    """Revoke a feed: its address leads nowhere from now on. Raises `NotFound`."""
    if not Feed.delete().where(Feed.id == feed_id).execute():
        raise NotFound("Feed not found")
    log.info("feed %d revoked", feed_id)


def forget_all() -> None:
    """Revoke all feeds, and forget what calendars were told."""
    Feed.delete().execute()
    CalendarEntry.delete().execute()


def at(secret: str, kind: shapes.FeedKind, *, now: datetime) -> Feed:
    """The feed with this secret, which is used now. Raises `NotFound`, with one sentence for every reason."""
    feed = Feed.get_or_none(Feed.digest == crypto.secret_digest(secret))
    if feed is None or feed.kind != kind:
        raise NotFound("There is nothing at this path.")
    if feed.last_used_at is None or now - feed.last_used_at >= USE_STEP:
        _note(feed, last_used_at=now)
    return feed


def _note(feed: Feed, **columns: datetime | bytes) -> None:
    with database.unless_full():
        Feed.update(columns).where(Feed.id == feed.id).execute()


# ------------------------------------------------------------------------------------------------ the content


class Content(NamedTuple):
    """What a feed holds, as its program gets it."""

    body: bytes
    media_type: str
    etag: str
    changed_at: datetime  # UTC


def events(feed: Feed, base: str, settings: Settings, *, now: datetime) -> Content:
    """The agenda: what is coming up, what is over since `PAST`, and what is gone since `CANCELLED`."""
    entries = _calendar(settings, now=now)
    title = TITLES[settings.language]["agenda"]
    # Also when this machine is in another time zone now.
    etag, changed_at = _changed(feed, (title, entries, time.tzname), base, now=now)
    paged = [entry._replace(page=entry.page and f"{base}/#/{entry.page}") for entry in entries]
    return Content(ics.calendar(title, paged), ics.MEDIA_TYPE, etag, changed_at)


def notes(feed: Feed, base: str, settings: Settings, *, now: datetime) -> Content:
    """The latest notes, those that were continued included."""
    found = dynamics.latest(MOST_ENTRIES)
    if gate.is_closed(settings):
        found = [
            note
            for note in found
            if not gate.withholds_any(
                json.loads(note.source_photo_ids), note.title, note.summary, note.content
            )
        ]
    entries = [
        atom.Entry(
            name=f"note/{note.id}",
            title=note.title,
            page=f"notes/{note.id}",
            content=atom.html_of(note.content),
            published_at=note.created_at,
            changed_at=note.changed_at,
            summary=note.summary,
            category=note.category,
        )
        for note in found
    ]
    return _atom(feed, TITLES[settings.language]["notes"], entries, base, now=now)


def searched(feed: Feed, base: str, settings: Settings, *, now: datetime) -> Content:
    """The newest analysed photos that match the feed's query."""
    ids = search.newest(feed.query, MOST_ENTRIES, guarded=gate.is_closed(settings), now=now)
    analysed_at = photos.analysed_at(ids)
    found = [photo for photo in photos.list_items(ids) if photo["id"] in analysed_at]
    if gate.is_closed(settings):
        marks, withheld = gate.marks(ids), lexicon.withheld(ids)
        found = [photo for photo in found if photo["id"] not in withheld]
        found = [photo for photo in found if not gate.withholds(marks[photo["id"]], _shown(photo))]
    entries = [
        atom.Entry(
            name=f"photo/{photo['id']}",
            title=photo["title"] or photo["summary"] or photo["filename"],
            page=f"photo/{photo['id']}",
            content=atom.html_of("\n\n".join(filter(None, (photo["summary"], photo["note"])))),
            published_at=datetime.fromisoformat(photo["created_at"]),
            changed_at=analysed_at[photo["id"]],
            summary=photo["summary"],
            category=photo["app_name"],
        )
        for photo in found
    ]
    is_held = gate.is_closed(settings) and gate.withholds_text(feed.query)
    query = SENSITIVE_QUERY[settings.language] if is_held else feed.query
    title = TITLES[settings.language]["search"].format(query=query)
    return _atom(feed, title, entries, base, now=now)


def _calendar(settings: Settings, *, now: datetime) -> list[ics.Entry]:
    """The events of the agenda feed, and a record of what calendars are told of them.

    A calendar updates an event when its sequence number grows, and drops one that is cancelled. The agenda
    knows neither what a calendar has seen nor what is gone, so that is kept here.
    """
    since = (local_day(now) - PAST).isoformat()
    total, items = agenda.listed(since, leaving=gate.is_closed(settings), limit=MOST_EVENTS)
    beyond = items[-1].starts_at if total > MOST_EVENTS and items else None
    instance = _instance()
    known = {row.item: row for row in CalendarEntry.select()}
    entries, changed, over = [], [], []
    for item in items:
        # What differs when a calendar is to be told of a change.
        shown = (item.kind, item.title, item.starts_at, item.ends_at, item.quote, item.photo_id)
        fingerprint = hashlib.sha256(msgspec.json.encode(shown)).digest()
        row = known.pop(str(item.id), None)
        if row is None or row.fingerprint != fingerprint:
            row = CalendarEntry(
                item=str(item.id),
                fingerprint=fingerprint,
                sequence=0 if row is None else row.sequence + 1,
                starts_at=item.starts_at,
                all_day=item.all_day,
                changed_at=now,
            )
            changed.append(row)
        entries.append(_entry(instance, row, item.title, item))
    for row in known.values():
        if row.starts_at < since:
            over.append(row.item)
        elif beyond is None or row.starts_at < beyond:
            if row.cancelled_at is None:
                row.fingerprint, row.sequence, row.changed_at = b"", row.sequence + 1, now
                row.cancelled_at = now
                changed.append(row)
            if now - row.cancelled_at < CANCELLED:
                entries.append(_entry(instance, row, GONE[settings.language]))
    if changed or over:
        with database.unless_full(), db.atomic():
            CalendarEntry.delete().where(CalendarEntry.item.in_(over)).execute()
            for row in changed:
                CalendarEntry.insert(row.__data__).on_conflict_replace().execute()
    return entries


def _entry(instance: uuid.UUID, row: CalendarEntry, title: str, item: agenda.Item | None = None) -> ics.Entry:
    """An event for calendars; cancelled without the item."""
    entry = ics.Entry(
        uid=str(uuid.uuid5(instance, f"agenda/{row.item}")),
        sequence=row.sequence,
        changed_at=row.changed_at,
        starts_at=datetime.fromisoformat(row.starts_at),
        ends_at=datetime.fromisoformat(item.ends_at) if item is not None and item.ends_at else None,
        all_day=bool(row.all_day),
        title=title,
        is_cancelled=item is None,
    )
    if item is None:
        return entry
    return entry._replace(note=item.quote, page=f"photo/{item.photo_id}", category=item.kind)


def _shown(photo: shapes.PhotoItem) -> dict[str, str]:
    """What a feed shows of a photo."""
    return {
        "title": photo["title"],
        "summary": photo["summary"],
        "note": photo["note"],
        "filename": photo["filename"],
        "app": photo["app_name"],
    }


def _atom(feed: Feed, title: str, entries: Sequence[atom.Entry], base: str, *, now: datetime) -> Content:
    etag, changed_at = _changed(feed, (title, entries), base, now=now)
    authority = f"{_instance().hex}.{NAME.lower()}.invalid"
    body = atom.document(
        title, f"feed/{feed.id}", entries, authority=authority, base=base, changed_at=changed_at
    )
    return Content(body, atom.MEDIA_TYPE, etag, changed_at)


def _changed(feed: Feed, content: object, base: str, *, now: datetime) -> tuple[str, datetime]:
    """The tag of what a feed holds, and since when it has held it.

    The time is kept and not that of the newest entry: a feed changes, too, when an entry goes. It is later
    than the last one by a second at least, because HTTP knows no less.
    """
    fingerprint = hashlib.sha256(msgspec.json.encode(content)).digest()
    if feed.fingerprint != fingerprint:
        feed.changed_at = max(now, feed.changed_at + timedelta(seconds=1)) if feed.fingerprint else now
        _note(feed, fingerprint=fingerprint, changed_at=feed.changed_at)
    return hashlib.sha256(fingerprint + base.encode()).hexdigest()[:32], feed.changed_at


def _instance() -> uuid.UUID:
    """What makes the ids in the feeds of this service different from those of others."""
    known = stored_value("feeds.instance")
    if known is None:
        with db.atomic():
            known = stored_value("feeds.instance", str(uuid.uuid4()))
            store_value("feeds.instance", known)
    return uuid.UUID(known)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("feeds", __name__)

Atom = Annotated[flask.Response, inputs.Media((atom.MEDIA_TYPE,), has_etag=True)]
Calendar = Annotated[flask.Response, inputs.Media((ics.MEDIA_TYPE,), has_etag=True)]


class FeedRequest(msgspec.Struct):
    kind: shapes.FeedKind
    query: Annotated[
        str,
        Meta(max_length=MAX_QUERY, description="as `q` of a search; needed for its feed, and for no other"),
    ] = ""
    address: access.Address = ""


@routes.get("/api/feeds")
@inputs.operation()
def index() -> shapes.FeedList:
    """List the feeds, the newest first, without their addresses. An address is shown only when its feed is
    made.
    """
    return {"feeds": every()}


@routes.post("/api/feeds")
@inputs.operation()
def add(body: FeedRequest) -> shapes.NewFeed:
    """Make a feed for a calendar or a feed reader. The answer shows its address this once: whoever has it can
    read the feed. A feed that a token makes ends with the token.
    """
    base = body.address or inputs.own_address()
    return make(body.kind, body.query, base, token_id=access.caller().token_id, now=utc_now())


@routes.delete("/api/feeds/<id:feed_id>")
@inputs.operation(NotFound)
def remove(feed_id: int) -> shapes.Done:
    """Revoke a feed, at once. Its address is 404 from then on, like one that never was."""
    revoke(feed_id)
    return {"message": "Revoked"}


@routes.get("/feed/<token>/agenda.ics")
@inputs.operation(NotFound)
def show_agenda(token: str) -> Calendar:
    """Get the agenda as iCalendar, at the address of a feed; needs no key. Every wrong address is the same
    404.
    """
    now = utc_now()
    return _answer(events(at(token, "agenda", now=now), inputs.own_address(), inputs.settings(), now=now))


@routes.get("/feed/<token>/notes.atom")
@inputs.operation(NotFound)
def show_notes(token: str) -> Atom:
    """Get the latest notes as Atom, at the address of a feed; needs no key. Every wrong address is the same
    404.
    """
    now = utc_now()
    return _answer(notes(at(token, "notes", now=now), inputs.own_address(), inputs.settings(), now=now))


@routes.get("/feed/<token>/search.atom")
@inputs.operation(NotFound)
def show_search(token: str) -> Atom:
    """Get the newest screenshots that a search finds as Atom, at the address of a feed; needs no key. Every
    wrong address is the same 404.
    """
    now = utc_now()
    return _answer(searched(at(token, "search", now=now), inputs.own_address(), inputs.settings(), now=now))


def _answer(content: Content) -> flask.Response:
    fresh = flask.Response(content.body, mimetype=content.media_type)
    fresh.headers["Cache-Control"] = "private, no-cache"  # a copy is asked about: it may have been revoked
    fresh.headers["Content-Security-Policy"] = "sandbox"
    fresh.set_etag(content.etag)
    fresh.last_modified = content.changed_at
    fresh.make_conditional(flask.request.environ)
    return fresh
