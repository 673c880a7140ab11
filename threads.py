"""Threads: one order, parcel, trip, booking or bill over all screenshots of it, with its state;
`/api/threads`.

`rules/joins.py` decides which records are about one thing and how far it is. The tables keep that: a trace
for each record that may be part of a thread, its keys, and the threads. They are derived: `file` makes the
traces of photos anew after every change of their records, and puts the records that these touch together
again. That is done when something is written, because a list has to be quick, and one record touches few
others. What depends on the time (a trip is past) is decided when a thread is shown.

What a person has taken out of a thread stays apart from the photos that are in it, whatever is analysed
again, and from those that join it later.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from flask import Blueprint

import clock
import database
import models
from clock import local_day, utc_now
from database import db
from engines.records import Record
from errors import NotFound
from rules import joins, templates
from rules.joins import Member, Trace
from web import inputs, shapes

MOST_TOUCHED = 400  # records that are put together again at once; more have a key that is none
OVER = ("delivered", "past", "paid", "refunded", "cancelled")
# What was not seen for so long counts as over, unless it has a day to come.
FORGOTTEN = timedelta(days=60)

_TRACE = msgspec.json.Decoder(Trace)
_RECORD = msgspec.json.Decoder(Record)

Place = tuple[int, int]  # of a record: its photo, and its place among the photo's


class Filed(NamedTuple):
    """A record of a photo, as `file` needs it. `lines` are those of the photo's text."""

    photo_id: int
    place: int
    record: Record
    taken: datetime
    lines: Sequence[str]


class Moment(NamedTuple):
    """A time that a record names: the field, and the local day or time."""

    name: str
    at: str


class Thread(NamedTuple):
    """What is shown of a thread. `said_on` is the photo that says its state, on the line `line`, None where
    no single line does. `sensitive` are the kinds of what is sensitive on its photos, the newest first.
    """

    id: int
    title: str
    type: str
    state: str
    is_open: bool
    said_on: int
    line: int | None
    photos: int
    first_at: str
    last_at: str
    photo_ids: list[int]
    next: Moment | None
    sensitive: list[str]


class Day(NamedTuple):
    """What a thread has on one day: its name there, and its times in their order."""

    thread_id: int
    title: str
    times: list[Moment]


# ------------------------------------------------------------------------------------------- putting together


def file(photo_ids: Iterable[int], found: Iterable[Filed]) -> None:
    """Make the traces of these photos those of the records in `found`, and put together again what they
    touch.
    """
    ids = list(photo_ids)
    before = {
        (row.photo_id, row.place): row.thread_id
        for row in models.ThreadTrace.select().where(models.ThreadTrace.photo.in_(ids))
    }
    traces = {
        (one.photo_id, one.place): (one, trace)
        for one in found
        if (trace := joins.trace(one.record, one.lines, local_day(one.taken).isoformat()))
    }
    if not before and not traces:
        return
    models.ThreadTrace.delete().where(models.ThreadTrace.photo.in_(ids)).execute()
    models.ThreadKey.delete().where(models.ThreadKey.photo.in_(ids)).execute()
    for (photo_id, place), (one, trace) in traces.items():
        models.ThreadTrace.insert(
            photo=photo_id,
            place=place,
            thread=before.get((photo_id, place)),
            taken_at=one.taken,
            trace=msgspec.json.encode(trace).decode(),
            amount=trace.amount if trace.type in joins.PAYMENTS else "",
            day=trace.day,
        ).execute()
        for key in trace.keys:
            models.ThreadKey.insert(key=key, photo=photo_id, place=place).execute()
    _settle({thread_id for thread_id in before.values() if thread_id}, set(traces))


def take_out(thread_id: int, photo_id: int) -> None:
    """Take a photo out of a thread for good. Raises `NotFound` if it is not part of it."""
    with db.atomic():
        ids = _photos_of([thread_id]).get(thread_id, [])
        if photo_id not in ids:
            raise NotFound("This screenshot is not in this thread")
        _keep_apart(photo_id, (other for other in ids if other != photo_id))
        _settle({thread_id}, set())


def untold(since: datetime, most: int) -> list[int]:
    """The threads with a screenshot of after `since` whose state no note has told of, the longest ago
    first.
    """
    sql = """SELECT id FROM threads WHERE last_at >= ? AND type != 'page' AND state != ''
        AND instr(' ' || told || ' ', ' ' || state || ' ') = 0 ORDER BY last_at LIMIT ?"""
    return [row[0] for row in db.execute_sql(sql, (f"{since:%Y-%m-%d %H:%M:%S}", most)).fetchall()]


def count_as_told(thread_id: int) -> None:
    """Note that a note has told of the present state of a thread."""
    sql = "UPDATE threads SET told = trim(told || ' ' || state) WHERE id = ?"
    db.execute_sql(sql, (thread_id,))


def let_join(photo_id: int) -> None:
    """Undo `take_out` for a photo, whichever thread it was taken out of."""
    apart = models.ThreadApart
    with db.atomic():
        apart.delete().where((apart.photo == photo_id) | (apart.other == photo_id)).execute()
        rows = models.ThreadTrace.select().where(models.ThreadTrace.photo == photo_id)
        _settle(set(), {(row.photo_id, row.place) for row in rows})


class _Touched(NamedTuple):
    """A record that is put together again, with the thread that it was in."""

    member: Member
    thread_id: int | None


def _settle(thread_ids: set[int], places: set[Place]) -> None:
    """Put together again the records of these threads, those at these places, and what they touch."""
    touched = _touched(thread_ids, places)
    ids = {photo_id for photo_id, _ in touched}
    pairs = _apart_from(ids)
    free = thread_ids | {one.thread_id for one in touched.values() if one.thread_id}
    groups = joins.things((one.member for one in touched.values()), pairs)
    for group in sorted(groups, key=len, reverse=True):
        kind = joins.thing_of(group)
        was = [touched[one.photo_id, one.place].thread_id for one in group]
        known = Counter(thread_id for thread_id in was if thread_id in free)
        thread_id = min(known, key=lambda one: (-known[one], one)) if known else None
        if kind:
            free.discard(cast(int, thread_id))
            thread_id = _save(thread_id, kind, group)
        else:
            thread_id = None
        changed = [one for one, old in zip(group, was, strict=True) if old != thread_id]
        for one in changed:
            models.ThreadTrace.update(thread=thread_id).where(
                models.ThreadTrace.photo == one.photo_id, models.ThreadTrace.place == one.place
            ).execute()
        _keep_all_apart({one.photo_id for one in group}, pairs)
    models.Thread.delete().where(models.Thread.id.in_(free)).execute()


def _save(thread_id: int | None, kind: str, group: Sequence[Member]) -> int:
    state, said = joins.state_of(group, kind)
    columns = {
        "type": kind,
        "state": state,
        "photos": len({one.photo_id for one in group}),
        "first_at": group[0].taken,
        "last_at": max(one.taken for one in group),
        "ends_at": max(one.trace.ends_at for one in group),
        "said_photo_id": said.photo_id,
        "said_line": said.trace.line,
    }
    if thread_id is None:
        # What the screenshots before the newest one said is no news.
        before = [one for one in group if one.photo_id != group[-1].photo_id]
        columns["told"] = joins.state_of(before or group, kind)[0]
        return int(models.Thread.insert(columns).execute())
    models.Thread.update(columns).where(models.Thread.id == thread_id).execute()
    return thread_id


def _touched(thread_ids: set[int], places: set[Place]) -> dict[Place, _Touched]:
    """The records of these threads and at these places, and all that they may join, with theirs."""
    found: dict[Place, _Touched] = {}
    seen: set[int] = set()
    new = list(_rows("thread_id IN (SELECT value FROM json_each(?))", list(thread_ids)))
    new += _at(places)
    while new and len(found) < MOST_TOUCHED:
        found |= {(one.member.photo_id, one.member.place): one for one in new}
        wanted = {one.thread_id for one in new if one.thread_id} - seen
        seen |= wanted
        near = [
            *_rows("thread_id IN (SELECT value FROM json_each(?))", list(wanted)),
            *_with_keys(new),
            *(other for one in new for other in _near(one.member)),
        ]
        new = [one for one in near if (one.member.photo_id, one.member.place) not in found]
    return found


def _with_keys(members: Iterable[_Touched]) -> Iterator[_Touched]:
    """The records that share a key with one of these."""
    traces = [one.member.trace for one in members]
    keys = {key for trace in traces for key in trace.keys}
    sql = "SELECT photo_id, place FROM thread_keys WHERE key IN (SELECT value FROM json_each(?))"
    places = db.execute_sql(sql, (msgspec.json.encode(list(keys)).decode(),)).fetchall()
    for other in _at(set(places)):
        if any(joins.shares(trace, other.member.trace) for trace in traces):
            yield other


def _near(member: Member) -> Iterator[_Touched]:
    """The payments of the same amount at about the same time with the same party, of which one has a key and
    the other has none.
    """
    trace = member.trace
    if not trace.amount or trace.type not in joins.PAYMENTS:
        return
    day = datetime.fromisoformat(trace.day)
    first, last = (f"{day + sign * joins.NEAR:%Y-%m-%d}" for sign in (-1, 1))
    where = "amount != '' AND amount = ? AND day BETWEEN ? AND ?"
    for other in _rows(where, trace.amount, first, last):
        if bool(trace.keys) != bool(other.member.trace.keys) and joins.is_near(trace, other.member.trace):
            yield other


def _at(places: Iterable[Place]) -> Iterator[_Touched]:
    wanted = set(places)
    for one in _rows("photo_id IN (SELECT value FROM json_each(?))", list({photo for photo, _ in wanted})):
        if (one.member.photo_id, one.member.place) in wanted:
            yield one


def _rows(where: str, *values: Any) -> Iterator[_Touched]:
    """The traces that a condition of SQL selects. A list among the values goes as JSON."""
    if values == ([],):
        return
    given = [msgspec.json.encode(one).decode() if isinstance(one, list) else one for one in values]
    sql = f"SELECT photo_id, place, thread_id, taken_at, trace FROM thread_traces WHERE {where}"  # noqa: S608
    for photo_id, place, thread_id, taken, trace in db.execute_sql(sql, tuple(given)).fetchall():
        yield _Touched(Member(photo_id, place, taken, _TRACE.decode(trace)), thread_id)


def _apart_from(photo_ids: set[int]) -> list[tuple[int, int]]:
    sql = """WITH given AS (SELECT value FROM json_each(?))
        SELECT photo_id, other_id FROM threads_apart WHERE photo_id IN given OR other_id IN given"""
    return list(db.execute_sql(sql, (msgspec.json.encode(list(photo_ids)).decode(),)))


def _keep_apart(photo_id: int, others: Iterable[int]) -> None:
    for other in others:
        models.ThreadApart.insert(photo=photo_id, other=other).on_conflict_ignore().execute()


def _keep_all_apart(photo_ids: set[int], pairs: list[tuple[int, int]]) -> None:
    """What was taken out of a thread is kept apart from all photos that are in it now."""
    known = {frozenset(pair) for pair in pairs}
    for one, other in pairs:
        for out, member in ((one, other), (other, one)):
            if member in photo_ids and out not in photo_ids:
                _keep_apart(out, (new for new in photo_ids if frozenset((out, new)) not in known))


# -------------------------------------------------------------------------------------------------- listing


def of(photo_ids: Iterable[int]) -> dict[int, int]:
    """The thread of each of these photos, by its first record that is part of one."""
    sql = """SELECT photo_id, thread_id FROM thread_traces
        WHERE photo_id IN (SELECT value FROM json_each(?)) AND thread_id IS NOT NULL
        ORDER BY photo_id, place DESC"""
    return dict(db.execute_sql(sql, (msgspec.json.encode(list(photo_ids)).decode(),)).fetchall())


def listed(
    types: Sequence[str], state: str, number: int, size: int, *, now: datetime
) -> tuple[int, list[Thread]]:
    """How many threads there are of these types (all without one) and in this state, and one page of them,
    the one with the newest screenshot first. `state` may be "open", and "" for any.
    """
    conditions: list[str] = ["1"]
    values: list[Any] = []
    if types:
        marks = ", ".join("?" * len(types))
        conditions.append(f"{'type' if len(types) == 1 else '+type'} IN ({marks})")
        values += types
    present, forgotten = _present(now), now - FORGOTTEN
    if state == "open":
        # Two indexes give the few that may be; with OR, SQLite reads all threads.
        over = ", ".join(f"'{name}'" for name in OVER)
        conditions += [
            """id IN (SELECT id FROM threads WHERE last_at >= ?
                UNION SELECT id FROM threads WHERE ends_at != '' AND ends_at >= ?)""",
            f"{_STATE} NOT IN ({over}) AND type != 'page'",
        ]
        values += [f"{forgotten:%Y-%m-%d %H:%M:%S}", present, present]
    elif state:
        conditions.append(f"{_STATE} = ?")
        values += [present, state]
    where = " AND ".join(conditions)
    (total,) = db.execute_sql(f"SELECT COUNT(*) FROM threads WHERE {where}", tuple(values)).fetchone()  # noqa: S608
    page = f"SELECT id FROM threads WHERE {where} ORDER BY last_at DESC, id DESC LIMIT ? OFFSET ?"  # noqa: S608
    ids = [row[0] for row in db.execute_sql(page, (*values, size, (number - 1) * size)).fetchall()]
    found = _shown(ids, now=now)
    return total, [found[thread_id] for thread_id in ids]


def get(thread_id: int, *, now: datetime) -> Thread:
    """One thread. Raises `NotFound`."""
    found = _shown([thread_id], now=now)
    if thread_id not in found:
        raise NotFound("There is no thread with this id")
    return found[thread_id]


# A booking is past when the last of its times is.
_STATE = (
    "CASE WHEN state IN ('booked', 'checked_in') AND ends_at != '' AND ends_at < ? THEN 'past' ELSE state END"
)


def days(photo_ids: Iterable[int]) -> dict[int, dict[str, Day]]:
    """What the threads of these photos have on each day: photo id -> local day."""
    threads: dict[int, list[int]] = {}
    for photo_id, thread_id in of(photo_ids).items():
        threads.setdefault(thread_id, []).append(photo_id)
    found: dict[int, dict[str, Day]] = {}
    for thread_id, records in _records(threads).items():
        on: dict[str, list[Record]] = {}
        for record in (record for _, record in records):
            for moment in _moments(record):
                on.setdefault(moment.at[:10], []).append(record)
        by_day = {day: _day(thread_id, day, on[day]) for day in on}
        found |= dict.fromkeys(threads[thread_id], by_day)
    return found


def _day(thread_id: int, day: str, records: Sequence[Record]) -> Day:
    """`records` are those with a time on this day, the newest last."""
    latest = {
        moment.name: moment for record in records for moment in _moments(record) if moment.at[:10] == day
    }
    times = sorted(latest.values(), key=lambda moment: (moment.at, joins.TIMES.index(moment.name)))
    return Day(thread_id, _title(records), times)


def _moments(record: Record) -> Iterator[Moment]:
    for name in joins.TIMES:
        if at := record.text(name):
            yield Moment(name, at)


def _title(records: Iterable[Record]) -> str:
    """The name of a thread, from the record that says most; of equal ones, the newest, which is last."""
    best = max(
        enumerate(records),
        key=lambda one: (-_RANK.get(one[1].type, len(_RANK)), len(one[1].fields), one[0]),
    )
    return templates.thread(best[1], templates.spoken(database.store().settings.language))


_RANK = {name: rank for rank, name in enumerate(joins.THINGS)}


def _shown(thread_ids: Sequence[int], *, now: datetime) -> dict[int, Thread]:
    given = msgspec.json.encode(list(thread_ids)).decode()
    sql = f"""SELECT id, type, {_STATE}, said_photo_id, said_line, photos, first_at, last_at, ends_at
        FROM threads WHERE id IN (SELECT value FROM json_each(?))"""  # noqa: S608
    present, forgotten = _present(now), f"{now - FORGOTTEN:%Y-%m-%d %H:%M:%S}"
    rows = db.execute_sql(sql, (present, given)).fetchall()
    records = _records(thread_ids)
    photo_ids = _photos_of(thread_ids)
    kinds = _sensitive({photo_id for ids in photo_ids.values() for photo_id in ids})
    found = {}
    for thread_id, kind, state, said_on, line, count, first, last, ends in rows:
        if thread_id not in records:
            continue
        own = [record for _, record in records[thread_id]]
        coming = [moment for record in own for moment in _moments(record) if _is_ahead(moment.at, present)]
        is_open = state not in OVER and kind != "page" and (last >= forgotten or ends >= present)
        found[thread_id] = Thread(
            thread_id, _title(own), kind, state, is_open, said_on, line, count, _iso(first), _iso(last),
            photo_ids[thread_id],
            min(coming, key=lambda moment: moment.at, default=None),
            sorted({kind for photo_id in photo_ids[thread_id] for kind in kinds.get(photo_id, ())}),
        )  # fmt: skip
    return found


def _records(thread_ids: Iterable[int]) -> dict[int, list[tuple[int, Record]]]:
    """The records of threads with their photos, the oldest screenshot first."""
    sql = """SELECT thread_id, thread_traces.photo_id, json_extract(shown.records, '$[' || place || ']')
        FROM thread_traces JOIN shown ON shown.photo_id = thread_traces.photo_id
        WHERE thread_id IN (SELECT value FROM json_each(?))
        ORDER BY thread_traces.taken_at, thread_traces.photo_id, place"""
    found: dict[int, list[tuple[int, Record]]] = {}
    given = msgspec.json.encode(list(thread_ids)).decode()
    for thread_id, photo_id, stored in db.execute_sql(sql, (given,)).fetchall():
        found.setdefault(thread_id, []).append((photo_id, _RECORD.decode(stored)))
    return found


def _photos_of(thread_ids: Iterable[int]) -> dict[int, list[int]]:
    """The photos of each thread, the newest first."""
    sql = """SELECT thread_id, photo_id FROM thread_traces
        WHERE thread_id IN (SELECT value FROM json_each(?))
        GROUP BY thread_id, photo_id ORDER BY taken_at DESC, photo_id DESC"""
    found: dict[int, list[int]] = {}
    for thread_id, photo_id in db.execute_sql(sql, (msgspec.json.encode(list(thread_ids)).decode(),)):
        found.setdefault(thread_id, []).append(photo_id)
    return found


def _sensitive(photo_ids: Iterable[int]) -> Mapping[int, Sequence[str]]:
    rows = models.Shown.select(models.Shown.photo, models.Shown.sensitive)
    return {
        row.photo_id: row.sensitive.split() for row in rows.where(models.Shown.photo.in_(list(photo_ids)))
    }


def _present(now: datetime) -> str:
    """This minute in local time, as the times of records are."""
    return clock.local_time(now).isoformat(timespec="minutes")


def _is_ahead(at: str, present: str) -> bool:
    return at >= (present if "T" in at else present[:10])


def _iso(stored: str) -> str:
    return cast(str, clock.iso(datetime.fromisoformat(stored)))


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("threads", __name__, url_prefix="/api/threads")


class ListQuery(msgspec.Struct):
    type: Annotated[list[shapes.ThreadType], msgspec.Meta(description="may repeat")] = []
    state: Annotated[
        Literal["", "open"] | shapes.ThreadState,
        msgspec.Meta(
            description="`open` is what is not over, and was seen in the last 60 days or is to come"
        ),
    ] = ""
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.ThreadPage:
    """List threads, the one with the newest screenshot first. A thread is an order, a parcel, a trip, a
    booking, a bill or a page with all screenshots of it.
    """
    total, found = listed(query.type, query.state, query.page, query.page_size, now=utc_now())
    return {
        "total": total,
        "page": query.page,
        "page_size": query.page_size,
        "threads": [_fields(thread) for thread in found],
    }


@routes.get("/<id:thread_id>")
@inputs.operation(NotFound)
def show(thread_id: int) -> shapes.ThreadFields:
    """Show a thread. `said_on` and `line` are where its state stands."""
    return _fields(get(thread_id, now=utc_now()))


@routes.delete("/<id:thread_id>/photos/<id:photo_id>", endpoint="take_out")
@inputs.operation(NotFound)
def take_photo_out(thread_id: int, photo_id: int) -> shapes.Done:
    """Take a screenshot out of a thread. It stays out, whatever is analysed again."""
    take_out(thread_id, photo_id)
    return {"message": "Taken out"}


@routes.delete("/apart/<id:photo_id>", endpoint="let_join")
@inputs.operation()
def let_photo_join(photo_id: int) -> shapes.Done:
    """Undo that a screenshot was taken out of threads. It joins what it is part of by its records."""
    let_join(photo_id)
    return {"message": "May join"}


def _fields(thread: Thread) -> shapes.ThreadFields:
    coming = thread.next and {"name": thread.next.name, "at": thread.next.at}
    return shapes.of(thread, shapes.ThreadFields, next=coming, count=thread.photos)
