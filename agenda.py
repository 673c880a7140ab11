"""The agenda: what happens on a day that a screenshot names, each with the line that says so; `/api/agenda`.

`rules/occasions.py` makes entries of the records that are stored of a photo, as a person has corrected them,
and finds further dates with a cue on the lines that were read. A date that a remote model names
counts only if it is on one of these lines. So the rows of a photo depend on nothing but what is stored about
it, and `renew` makes them again whenever that changes, in the same transaction.

One event on several screenshots is one item: rows of the same kind and start with nearly the same title share
an `event_id`, which is the item's id. They are dismissed and announced together, and a later screenshot of
the event takes that over. A dismissed row is never deleted by an analysis, only with its photo.

Times are local, as screens show them, in the time zone of this machine. Triggers mark the rows of photos in
the trash (`migrations/0019_agenda.sql`); no list has them.

More than 550 lines, because finding, merging, announcing and listing an event must agree on when two are the
same.
"""

import logging
import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast

import blinker
import msgspec
import peewee
from flask import Blueprint
from msgspec import Meta

import clock
import database
import gate
import models
import push
import readings
import records
import terms
import threads
from clock import utc_now
from database import db
from engines.configuration import LOCAL
from engines.findings import Entity
from engines.lines import Page
from engines.records import Record
from errors import BadInput, NotFound
from models import AgendaItem, Analysis
from rules import planned, statements, templates
from rules.occasions import Screen
from rules.planned import Occasion
from settings import NAME, Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# With a new number, every stored photo is looked at again, in the background.
GRAMMAR = 3
LOOKED_AT_ONCE = 4  # photos in a transaction, with up to 10 ms each
MOST_DATES = 20  # of a remote model, for one photo

Order = Literal["earliest", "latest"]

# Hours of the local day in which an event is announced: the evening before, and in the morning. Later than
# that, the announcement would come too late to be of use, or at night.
EVENING = range(18, 24)
MORNING = range(8, 12)
MOST_NAMED = 3  # events in a notification

# Sent with the items that are announced now, in the transaction that records it: what a receiver writes there
# is kept if and only if they count as announced.
reminded = blinker.Signal()


class Item(NamedTuple):
    """An event of the agenda. What it says is from one of its screenshots, `photo_id`; `photo_ids` are all of
    them, that one first. `line` is the index of the quoted line in the reading of `photo_id`. `sensitive`
    are the kinds of what is sensitive on that screenshot. `revision` grows with each change.
    """

    id: int
    photo_id: int
    photo_ids: list[int]
    kind: str
    title: str
    starts_at: str
    ends_at: str | None
    all_day: bool
    quote: str
    line: int
    dismissed: bool
    sensitive: list[str]
    created_at: datetime
    changed_at: datetime
    revision: int


# ------------------------------------------------------------------------------------------- what is in it


def renew(photo_id: int, page: Page | None, *, now: datetime) -> None:
    """Make the rows of a photo what its reading, `page`, and its analysis say. A row of an event that is
    still on it stays the same row, also if the event has moved. Does nothing if there is no such photo.
    """
    stored = _stored(photo_id)
    if stored is None:
        return
    found = [] if page is None else _found(page, *stored)
    left = sorted(AgendaItem.select().where(AgendaItem.photo == photo_id), key=lambda row: row.id)
    with db.atomic():
        for occasion in found:
            row = _same_row(left, occasion)
            if row is not None:
                left.remove(row)
                if all(getattr(row, name) == getattr(occasion, name) for name in _FIELDS):
                    continue
                others = (AgendaItem.event_id == row.event_id) & (AgendaItem.id != row.id)
                if _moves(row, occasion) and AgendaItem.select().where(others).exists():
                    # The other screenshots still show the event as it was, under its id.
                    row.delete_instance()
                    row = None
            _keep(photo_id, row, occasion, now=now)
        gone = [row.id for row in left if row.dismissed_at is None]
        AgendaItem.delete().where(AgendaItem.id.in_(gone)).execute()


class _Looked(msgspec.Struct):
    """How far stored photos were looked at: all from `below` on, by the grammar of this number."""

    grammar: int = 0
    below: int | None = None


def renew_older(*, now: datetime) -> bool:
    """Look at some photos that were read before this version, the newest first; False when there are none.
    Meant for when nothing else is to do. No picture is opened.
    """
    done = msgspec.convert(models.stored_value("agenda.looked", {}), _Looked)
    below = done.below if done.grammar == GRAMMAR else None
    ids = readings.newest(LOOKED_AT_ONCE, below=below)
    if ids:
        with db.atomic():
            for photo_id in ids:
                renew(photo_id, readings.page(photo_id), now=now)
            models.store_value("agenda.looked", _Looked(GRAMMAR, ids[-1]))
    return bool(ids)


def _stored(photo_id: int) -> tuple[datetime, list[Record] | None, list[Entity]] | None:
    """When a photo was taken, in local time; its records as they are shown, None where they were not looked
    for yet; and the dates that a remote model has named. Also of a photo in the trash.
    """
    analysis = "coalesce(a.{0}, json_extract(trash.analysis, '$.{0}'))"
    row = db.execute_sql(
        f"""SELECT original_timestamp, coalesce(own.records, {analysis.format("records")}),
            {analysis.format("entities")}, {analysis.format("analyser")}
        FROM photos LEFT JOIN analyses AS a ON a.photo_id = photos.id
        LEFT JOIN trash ON trash.photo_id = photos.id LEFT JOIN own_words AS own ON own.photo_id = photos.id
        WHERE photos.id = ?""",  # noqa: S608
        (photo_id,),
    ).fetchone()
    if row is None:
        return None
    taken, shown, entities, analyser = row
    dates = []
    if not (analyser or "").startswith(f"{LOCAL}/"):
        named = msgspec.json.decode(entities or "[]", type=list[Entity])
        dates = [entity for entity in named if entity.type.casefold() == "date"][:MOST_DATES]
    there = None if shown is None else records.decoded(shown)
    return clock.local_time(datetime.fromisoformat(taken)), there, dates


def _found(page: Page, taken: datetime, shown: list[Record] | None, dates: list[Entity]) -> list[Occasion]:
    """The occasions on a photo, each once."""
    found: list[Occasion] = []
    screen = Screen(page, taken, shown)
    named = (screen.standing(date.value, date.label) for date in dates)
    for occasion in (*screen.occasions, *named):
        if occasion is not None and not any(_is_one(occasion, other) for other in found):
            found.append(occasion)
    return found


def _keep(photo_id: int, row: AgendaItem | None, occasion: Occasion, *, now: datetime) -> None:
    """Store an occasion, in place of `row` if there is one, as part of the event that it belongs to."""
    end = occasion.ends_at or occasion.starts_at
    fields: dict[str, Any] = {
        **{name: getattr(occasion, name) for name in _FIELDS},
        "last_at": end if "T" in end else f"{end}T24",
        "changed_at": now,
    }
    event = _event_of(occasion)
    if row is not None:
        if _moves(row, occasion):
            fields |= {"evening_at": None, "morning_at": None}
            if event is not None:
                fields |= _shared_fields(event)
        fields["revision"] = row.revision + 1
        AgendaItem.update(fields).where(AgendaItem.id == row.id).execute()
        return
    shared = {"event_id": 0} if event is None else _shared_fields(event)
    new_id = AgendaItem.insert(photo=photo_id, created_at=now, revision=0, **fields, **shared).execute()
    if event is None:
        AgendaItem.update(event_id=AgendaItem.id).where(AgendaItem.id == new_id).execute()


_FIELDS = ("kind", "title", "starts_at", "ends_at", "all_day", "quote", "line")


def _shared_fields(event: AgendaItem) -> dict[str, Any]:
    return {name: getattr(event, name) for name in ("event_id", "dismissed_at", "evening_at", "morning_at")}


def _event_of(occasion: Occasion) -> AgendaItem | None:
    """A row of the event that an occasion belongs to."""
    same = (AgendaItem.starts_at == occasion.starts_at) & (AgendaItem.kind == occasion.kind)
    rows = AgendaItem.select().where(same).order_by(AgendaItem.event_id, AgendaItem.id)
    return next((row for row in rows if _is_one(occasion, row)), None)


def _same_row(rows: list[AgendaItem], occasion: Occasion) -> AgendaItem | None:
    """That of `rows`, all of one photo, which an occasion on this photo was stored as."""
    exactly = (row for row in rows if row.title == occasion.title and not _moves(row, occasion))
    renamed = (row for row in rows if _is_one(occasion, row))
    moved = (row for row in rows if row.kind == occasion.kind and row.quote == occasion.quote)
    return next(exactly, None) or next(renamed, None) or next(moved, None)


def _is_one(one: Occasion, other: "Occasion | AgendaItem") -> bool:
    """Whether both are the same event."""
    same = (one.kind, one.starts_at) == (other.kind, other.starts_at)
    return same and is_alike(one.title, other.title, at_time=not one.all_day)


def _moves(row: AgendaItem, occasion: Occasion) -> bool:
    return (row.kind, row.starts_at) != (occasion.kind, occasion.starts_at)


def is_alike(title: str, other: str, *, at_time: bool) -> bool:
    """Whether two titles name the same event, given that kind and start are the same; `at_time`: also to the
    minute, so that half of the words are enough. On a whole day, they differ in little, or one has all the
    words of the other and at most as many again. A flight's number or an order's decides by itself.
    """
    one, two = (set(terms.cut(terms.fold(text).casefold())) for text in (title, other))
    if one == two:
        return True
    numbers, others = (set(_NUMBER.findall(terms.fold(text).casefold())) for text in (title, other))
    if numbers and others:
        return not numbers.isdisjoint(others)
    fewer, more = sorted((one, two), key=len)
    if at_time:
        return 2 * len(fewer & more) >= len(fewer) > 0
    if len(fewer) >= 2 and fewer <= more and 2 * len(fewer) >= len(more):
        return True
    # In Chinese, one character of ten is another matter: a water bill is no electricity bill.
    return title.isascii() and other.isascii() and statements.titles_alike(title, other)


# Letters with digits, or many digits: not a year, a seat or an amount.
_NUMBER = re.compile(r"(?<![a-z0-9])(?:[a-z]{1,4}\d{3,10}|\d{6,16})(?![a-z0-9])")


# -------------------------------------------------------------------------------------------------- listing


def listed(
    since: str | None = None,
    until: str | None = None,
    *,
    dismissed: bool = False,
    photo_id: int | None = None,
    leaving: bool = False,
    order: Order = "earliest",
    limit: int = 100,
) -> tuple[int, list[Item]]:
    """The number of events between `since` and `until`, and the first `limit` of them by their start.

    `since` and `until` are local days or times, as `local_bound` makes them; None is no end. An event that
    has not ended by `since` is included; one that starts at `until` is not, but a day as `until` is included.
    `dismissed` includes the dismissed ones. With `photo_id`, only what is on that photo, and as that photo
    has it. With `leaving`, without what the gate holds back; the total may count some of it.
    """
    conditions: list[Any] = [_NOT_TRASHED]
    if since is not None:
        conditions += [AgendaItem.starts_at >= _first_start(since), AgendaItem.last_at >= since]
    if until is not None:
        conditions.append(AgendaItem.starts_at < (until if "T" in until else f"{until}T24"))
    if not dismissed:
        conditions.append(AgendaItem.dismissed_at.is_null())
    if photo_id is not None:
        conditions.append(AgendaItem.photo == photo_id)
    if leaving:
        sensitive = Analysis.select(Analysis.photo).where(models.IS_SENSITIVE)
        conditions.append(AgendaItem.photo.not_in(sensitive))
    columns = (AgendaItem.starts_at, AgendaItem.event_id)
    query = AgendaItem.select(*columns).where(*conditions).distinct()
    total = query.count()
    query = query.order_by(*(columns if order == "earliest" else [column.desc() for column in columns]))
    ids = [event_id for _, event_id in cast("Iterable[tuple[str, int]]", query.limit(limit).tuples())]
    found = _items(ids, photo_id=photo_id, leaving=leaving)
    return total, [found[event_id] for event_id in ids if event_id in found]


def _first_start(since: str) -> str:
    """The earliest start of what has not ended by `since`. Without an end, an event is over on its day; with
    one, it may have begun before.
    """
    lasting = (peewee.SQL("ends_at IS NOT NULL"), AgendaItem.last_at >= since)  # as in the partial index
    # The plus keeps SQLite from walking along the index of all starts.
    begun = AgendaItem.select(peewee.SQL("MIN(+starts_at)")).where(*lasting).scalar()
    return min(begun or since, since[: len("2026-11-22")])


def get(item_id: int) -> Item:
    """One event. Raises `NotFound`, also when all its photos are in the trash."""
    found = _items([item_id])
    if item_id not in found:
        raise NotFound("There is nothing with this id in the agenda")
    return found[item_id]


def on_photos(photo_ids: Iterable[int]) -> dict[int, list[Item]]:
    """What is on each of these photos, as that photo has it, by its start; without photos with nothing."""
    query = _joined(AgendaItem, *_MARKS).where(AgendaItem.photo.in_(list(photo_ids)))
    found: dict[int, list[Item]] = {}
    for row in query.order_by(AgendaItem.starts_at, AgendaItem.id).objects():
        found.setdefault(row.photo_id, []).append(_item([row], row.photo_id))
    return found


def local_bound(value: str, *, field: str) -> str | None:
    """A day or a time as `listed` takes it: local time without a zone; one with a zone is converted. None
    when `value` is empty. Raises `BadInput`, naming `field`, for anything else.
    """
    if not value:
        return None
    try:
        if len(value) == len("2026-11-22"):
            return date.fromisoformat(value).isoformat()
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone().replace(tzinfo=None)
        return moment.isoformat(timespec="minutes")
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"{field}: must be a day like 2026-11-22 or a time like 2026-11-22T14:30") from None


def period(name: str, today: date) -> tuple[str, str]:
    """The first and the last day of one of `questions.PERIODS`; a week ends on Sunday."""
    sunday = today + timedelta(days=6 - today.weekday())
    month_end = (today.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    first, last = {
        "today": (today, today),
        "tomorrow": (today + timedelta(days=1), today + timedelta(days=1)),
        "this_week": (today, sunday),
        "next_week": (sunday + timedelta(days=1), sunday + timedelta(days=7)),
        "this_month": (today, month_end),
    }[name]
    return first.isoformat(), last.isoformat()


_NOT_TRASHED = peewee.SQL("trashed = 0")


_MARKS = (Analysis.sensitive, Analysis.cleared, Analysis.taken_at)


def _joined(*columns: Any) -> "peewee.ModelSelect[Any]":
    """Rows with the analyses of their photos, without those in the trash."""
    return AgendaItem.select(*columns).join(Analysis, on=(AgendaItem.photo == Analysis.photo))


def _items(event_ids: list[int], *, photo_id: int | None = None, leaving: bool = False) -> dict[int, Item]:
    """The events with these ids, of those of their photos that are not in the trash."""
    query = _joined(AgendaItem, *_MARKS).where(AgendaItem.event_id.in_(event_ids)).objects()
    by_event: dict[int, list[Any]] = {}
    for row in query:  # `objects` puts the columns of both tables on one object
        if leaving and gate.withholds(gate.Mark(row.sensitive, row.cleared), [row.title, row.quote]):
            continue
        by_event.setdefault(row.event_id, []).append(row)
    return {event_id: _item(rows, photo_id) for event_id, rows in by_event.items()}


def _item(rows: list[Any], photo_id: int | None) -> Item:
    """An event, from the row that says most: one with an end, the longer title, the newer screenshot."""
    rows.sort(key=lambda row: (row.ends_at is not None, len(row.title), row.taken_at, row.id), reverse=True)
    rows.sort(key=lambda row: row.photo_id != photo_id)
    best = rows[0]
    return Item(
        id=best.event_id,
        photo_id=best.photo_id,
        photo_ids=list(dict.fromkeys(row.photo_id for row in rows)),
        **{name: getattr(best, name) for name in _FIELDS},
        dismissed=best.dismissed_at is not None,
        sensitive=best.sensitive.split(),
        created_at=min(row.created_at for row in rows),
        changed_at=max(row.changed_at for row in rows),
        revision=sum(row.revision for row in rows),
    )


# ----------------------------------------------------------------------------------------------- dismissing


def dismiss(item_id: int, *, now: datetime) -> Item:
    """Take an event out of the agenda, on whichever screenshots it is. Raises `NotFound`."""
    return _set_dismissed(item_id, now, now=now)


def undo_dismissal(item_id: int, *, now: datetime) -> Item:
    """Bring a dismissed event back. Raises `NotFound`."""
    return _set_dismissed(item_id, None, now=now)


def _set_dismissed(item_id: int, moment: datetime | None, *, now: datetime) -> Item:
    with db.atomic():
        if get(item_id).dismissed != (moment is not None):
            AgendaItem.update(dismissed_at=moment, changed_at=now, revision=AgendaItem.revision + 1).where(
                AgendaItem.event_id == item_id
            ).execute()
        return get(item_id)


# ----------------------------------------------------------------------------------------------- announcing


class Slot(NamedTuple):
    """When events are announced, and which."""

    name: Literal["evening", "morning"]
    day: date
    since: str  # local day or time, as in `listed`

    @property
    def mark(self) -> peewee.Field:
        """The column of the rows that were announced."""
        return AgendaItem.evening_at if self.name == "evening" else AgendaItem.morning_at


def slot(now: datetime) -> Slot | None:
    """What is announced at `now`, UTC: in the evening the next day, in the morning the rest of the day."""
    local = clock.local_time(now)
    if local.hour in EVENING:
        tomorrow = local.date() + timedelta(days=1)
        return Slot("evening", tomorrow, tomorrow.isoformat())
    if local.hour in MORNING:
        return Slot("morning", local.date(), local.isoformat(timespec="minutes"))
    return None


def due(now: datetime, *, leaving: bool = True) -> list[Item]:
    """The events that are announced at `now` and were not announced yet, in the order of their start. With
    `leaving`, without what the gate holds back.
    """
    current = slot(now)
    if current is None:
        return []
    day = current.day.isoformat()
    rows = AgendaItem.select(AgendaItem.starts_at, AgendaItem.event_id).where(
        _NOT_TRASHED,
        AgendaItem.starts_at.between(day, f"{day}T24"),
        (AgendaItem.starts_at >= current.since) | AgendaItem.all_day,
        AgendaItem.dismissed_at.is_null(),
        current.mark.is_null(),
    )
    ids = sorted(set(cast("Iterable[tuple[str, int]]", rows.tuples())))
    found = _items([event_id for _, event_id in ids], leaving=leaving)
    return [found[event_id] for _, event_id in ids if event_id in found]


class _Undelivered(msgspec.Struct):
    """Events whose notification reached no device, and when they were announced."""

    slot: str = ""
    day: date = date.min
    ids: list[int] = []


def remind(settings: Settings, *, now: datetime) -> list[Item]:
    """Announce what is due at `now`, once: by a notification to every device, and by `reminded`. Returns what
    was announced. Needs that no scope is open.

    What is announced is recorded before it is sent: a kill in between loses a notification, and never makes a
    second one. If no device could be reached, the next run tries to send it again.
    """
    current, closed = slot(now), gate.is_closed(settings)
    if current is None:
        return []
    with database.scope(), db.atomic():
        items = due(now, leaving=closed)
        AgendaItem.update({current.mark: now}).where(
            AgendaItem.event_id.in_([item.id for item in items])
        ).execute()
        if items:
            reminded.send(items)
        items = sorted(items + _undelivered(current, leaving=closed), key=lambda item: item.starts_at)
        has_devices = bool(push.devices())
    if not items:
        return []
    if has_devices and not push.broadcast(settings, _notification(items, current, settings.language)):
        log.warning("a reminder reached no device; the next run tries again")
        with database.scope():
            ids = [item.id for item in items]
            models.store_value("agenda.undelivered", _Undelivered(current.name, current.day, ids))
        return []
    return items


def _undelivered(current: Slot, *, leaving: bool) -> list[Item]:
    """The events that an earlier run could not deliver in this slot; from then on they count as delivered."""
    kept = models.stored_value("agenda.undelivered")
    if kept is None:
        return []
    models.store_value("agenda.undelivered", None)
    waiting = msgspec.convert(kept, _Undelivered)
    if (waiting.slot, waiting.day) != (current.name, current.day):
        return []
    return [item for item in _items(waiting.ids, leaving=leaving).values() if not item.dismissed]


def _notification(items: list[Item], current: Slot, language: str) -> push.Notification:
    lines = [_line(item, language) for item in items[:MOST_NAMED]]
    more = len(items) - len(lines)
    if language == "zh":
        title = f"{NAME} {'明天' if current.name == 'evening' else '今天'}"
        body = "；".join(lines) + (f"；另有 {more} 项" if more else "")
    else:
        title = f"{NAME}: {'tomorrow' if current.name == 'evening' else 'today'}"
        body = "; ".join(lines) + (f"; and {more} more" if more else "")
    data = {"count": len(items), "type": "agenda", "day": current.day.isoformat()}
    return push.Notification(title, body, data)


def _line(item: Item, language: str) -> str:
    if item.all_day:
        return item.title
    return f"{item.starts_at.partition('T')[2]} {item.title}"


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("agenda", __name__, url_prefix="/api/agenda")

Bound = Annotated[
    str,
    Meta(
        description="a local day or time, in the time zone of the service; a time with a zone is converted",
        examples=["2026-11-22"],
    ),
]


class ListQuery(msgspec.Struct):
    since: Bound = ""
    until: Bound = ""
    dismissed: bool = False
    photo_id: int | None = None
    order: Order = "earliest"
    limit: inputs.PageSize = 100


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.Agenda:
    """List what happens on days that screenshots name, by its start. What has not ended at `since` and starts
    before `until` is listed; a day as `until` is included. What was dismissed is left out, unless `dismissed`
    asks for it. With `photo_id`, only what is on that photo.
    """
    since, until = local_bound(query.since, field="since"), local_bound(query.until, field="until")
    if since and until and since[: len(until)] > until[: len(since)]:
        raise BadInput("until: must not be before since")
    total, items = listed(
        since,
        until,
        dismissed=query.dismissed,
        photo_id=query.photo_id,
        order=query.order,
        limit=query.limit,
    )
    days = threads.days(photo_id for item in items for photo_id in item.photo_ids)
    listed_items: list[shapes.ListedAgendaFields] = [
        {**shown, "thread": _thread(item, days)} for item, shown in zip(items, _shown(items), strict=True)
    ]
    return {"total": total, "limit": query.limit, "items": listed_items}


@routes.post("/<id:item_id>/dismiss", endpoint="dismiss")
@inputs.operation(NotFound)
def dismiss_item(item_id: int) -> shapes.AgendaFields:
    """Take an event out of the agenda. It stays out, whatever is analysed again, and on further screenshots
    of it.
    """
    return _shown([dismiss(item_id, now=utc_now())])[0]


@routes.delete("/<id:item_id>/dismiss", endpoint="undo")
@inputs.operation(NotFound)
def undo(item_id: int) -> shapes.AgendaFields:
    """Bring a dismissed event back. One that was not dismissed stays as it is."""
    return _shown([undo_dismissal(item_id, now=utc_now())])[0]


def _thread(item: Item, days: dict[int, dict[str, threads.Day]]) -> shapes.ThreadDay | None:
    """The thread whose day has the time of an item."""
    for photo_id in item.photo_ids:
        day = days.get(photo_id, {}).get(item.starts_at[:10])
        if day and any(item.all_day or moment.at == item.starts_at for moment in day.times):
            times: list[shapes.ThreadMoment] = [{"name": one.name, "at": one.at} for one in day.times]
            return {"thread_id": day.thread_id, "title": day.title, "times": times}
    return None


def _shown(items: list[Item]) -> list[shapes.AgendaFields]:
    """The events as clients see them, their titles in the language that is spoken."""
    found = records.of_photos(item.photo_id for item in items) if templates.spoken("") else {}
    return [
        shapes.of(
            item,
            shapes.AgendaFields,
            title=planned.again(item.title, item.starts_at, found.get(item.photo_id, [])),
        )
        for item in items
    ]
