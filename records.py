"""Records as they are stored: what screenshots say, as types with fields (`engines/records.py`); their list
with sums, `/api/records`.

An analysis keeps the records that it found, and `models.OwnWords` a person's correction of them, which is
shown in their place. The table has a row for each record that is shown, in columns by which records are
listed, summed and searched. It is derived: `file` makes the rows of a photo anew after every change of what
they rest on. A photo in the trash has none.

What is sensitive leaves by no exit, field by field. For those who must not learn it (`guarded`), a record is
searched and shown without the fields in `SECRET`; one in which something sensitive is left, or of a photo
that is withheld (`lexicon.withheld`), is not there at all.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from flask import Blueprint

import database
import gate
import models
import readings
import terms
import threads
from clock import local_day
from database import db
from engines.lines import Page
from engines.records import MAX_RECORDS, TYPES, Field, Record, checked, normal, placed
from errors import BadInput
from lexicon import OPEN
from rules import templates, totals
from web import inputs, shapes

# Fields that hold a record's amount, its day and who it is with, the first that is there.
AMOUNTS = ("total", "totalPaymentDue", "amount", "price")
DAYS = (
    *("date", "paymentDueDate", "renewalDate", "expectedArrival", "departureTime", "checkinTime"),
    *("startDate", "startTime", "datePublished", "arrivalTime"),
)
PARTIES = ("seller", "provider", "carrier", "beneficiary", "sender", "publisher", "service")
NAMED = "Reservation"  # of types that end with it, `name` is who it is with
# Sensitive by what they are, whatever the rules find in them.
SECRET = {
    "OneTimeCode": frozenset({"code"}),
    "WifiNetwork": frozenset({"password"}),
    "MoneyTransfer": frozenset({"iban"}),
}
MOST_WORDS = 16  # of a query for records
# Orders of a list: by day, amount (as a bare number), or who it is with. What has none of it comes last.
Sort = Literal["latest", "earliest", "highest", "lowest", "a_to_z", "z_to_a"]
_ORDERS: dict[Sort, str] = {
    "latest": "day DESC, id DESC",
    "earliest": "day, id",
    "highest": "amount IS NULL, CAST(amount AS REAL) DESC, id DESC",
    "lowest": "amount IS NULL, CAST(amount AS REAL), id",
    "a_to_z": "party = '', party, id",
    "z_to_a": "party = '', party DESC, id DESC",
}

_RECORDS = msgspec.json.Decoder(list[Record])
_RECORD = msgspec.json.Decoder(Record)
_UNSPACED = re.compile(f"[{terms.UNSPACED}]")


class Wanted(NamedTuple):
    """Which records to list. Days are included; None is no end."""

    types: Sequence[str] = ()
    since: date | None = None
    until: date | None = None
    seller: str = ""
    text: str = ""


class Listed(NamedTuple):
    """A record in a list, with its photo, its day, what is sensitive on the photo, and whether its total is
    doubtful.
    """

    id: int
    photo_id: int
    day: str
    record: Record
    sensitive: list[str]
    doubtful: bool
    withheld: Sequence[str] = ()  # the names of its fields that are left out, because they are sensitive


class Sum(NamedTuple):
    """The sum of the amounts of so many records."""

    currency: str
    value: Decimal
    records: int


# ----------------------------------------------------------------------------------------------- what is kept


def encoded(records: Iterable[Record]) -> str:
    """Records as they are stored with an analysis or a person's words."""
    return msgspec.json.encode(list(records)).decode()


def decoded(stored: str | None) -> list[Record]:
    """What `encoded` has stored. What a later version has stored, and this one cannot read, is none."""
    try:
        return _RECORDS.decode(stored) if stored else []
    except msgspec.DecodeError:
        return []


def file(photo_ids: Iterable[int]) -> None:
    """Make the rows of these photos anew, from what is shown of them. Ids stay as long as places do."""
    ids = list(photo_ids)
    found = db.execute_sql(
        """SELECT photo_id, records, cleared, taken_at, visible_text FROM shown
        WHERE photo_id IN (SELECT value FROM json_each(?))""",
        (msgspec.json.encode(ids).decode(),),
    ).fetchall()
    rows, filed = [], []
    for photo_id, stored, is_cleared, taken_at, text in found:
        taken = datetime.fromisoformat(taken_at)
        for place, record in enumerate(decoded(stored)):
            rows.append(_row(photo_id, place, record, cleared=bool(is_cleared), taken=taken))
            filed.append(threads.Filed(photo_id, place, record, taken, text.split("\n")))
    kept = {(row["photo"], row["place"]) for row in rows}
    old = models.Record.select(models.Record.id, models.Record.photo, models.Record.place)
    gone = [
        row.id for row in old.where(models.Record.photo.in_(ids)) if (row.photo_id, row.place) not in kept
    ]
    if gone:
        models.Record.delete().where(models.Record.id.in_(gone)).execute()
    for row in rows:
        models.Record.insert(**row).on_conflict(
            conflict_target=[models.Record.photo, models.Record.place], update=row
        ).execute()
    threads.file(ids, filed)


def forget(photo_ids: Iterable[int]) -> None:
    """Delete the rows of these photos, which go to the trash or are deleted."""
    ids = list(photo_ids)
    models.Record.delete().where(models.Record.photo.in_(ids)).execute()
    threads.file(ids, ())


def on_page(records: Iterable[Record], page: Page | None, *, confidence: float) -> list[Record]:
    """Records with the lines of a photo's reading on which their values are. Those of a remote model have
    the `confidence` of its findings, where all their values are on lines.
    """
    records = [
        msgspec.structs.replace(record, confidence=confidence) if record.source == "model" else record
        for record in records
    ]
    lines = [line.text for line in page.lines] if page else []
    return [there for record in records if (there := placed(record, lines))]


def corrected(given: Sequence[Mapping[str, Any]], photo_id: int) -> list[Record]:
    """What a person says that a photo says, as records that can be stored. Raises `BadInput`, naming what is
    wrong: an unknown type or field, a value of another form, a field that is missing.
    """
    if len(given) > MAX_RECORDS:
        raise BadInput(f"records: must have at most {MAX_RECORDS} entries")
    page = readings.page(photo_id)
    lines = [line.text for line in page.lines] if page else []
    return [_corrected(one["type"], one["fields"], lines) for one in given]


def _corrected(name: str, given: Sequence[Mapping[str, Any]], lines: list[str]) -> Record:
    shape = TYPES.get(name)
    if shape is None:
        raise BadInput(f"records: the type {name[:40]!r} is unknown")
    fields = []
    for one in given:
        field, value = one["name"], one["value"]
        if field not in shape.fields:
            raise BadInput(f"records: a {name} has no field {field[:40]!r}")
        form = shape.fields[field]
        if normal(value, form) is None:
            raise BadInput(f"records: {field} of a {name} must be a value of the form {form.kind}")
        there = [line for line in one.get("lines", ()) if 0 <= line < len(lines)]
        fields.append(Field(field, value, one.get("text", ""), there))
    record = checked(Record(name, fields, "person", 1.0))
    if record is None:
        needed = " or ".join(" and ".join(names) for names in shape.needs)
        raise BadInput(f"records: a {name} needs {needed}")
    # Words that a person has typed may be on another line; what is on none stays where the old value was.
    found = cast(Record, placed(record, lines))
    fields = [
        old if old.lines and (old.text or not new.lines) else new
        for old, new in zip(record.fields, found.fields, strict=True)
    ]
    return Record(record.type, fields, record.source, record.confidence)


# ---------------------------------------------------------------------------------------------- what is shown


def ids_of(photo_ids: Iterable[int]) -> dict[int, dict[int, int]]:
    """The ids of the records of these photos: photo id -> place -> id."""
    sql = "SELECT photo_id, place, id FROM records WHERE photo_id IN (SELECT value FROM json_each(?))"
    found: dict[int, dict[int, int]] = {}
    for photo_id, place, row_id in db.execute_sql(sql, (msgspec.json.encode(list(photo_ids)).decode(),)):
        found.setdefault(photo_id, {})[place] = row_id
    return found


def shown(stored: str, ids: Mapping[int, int]) -> list[shapes.RecordFields]:
    """The records of a photo as clients see them. `ids` has those of their places."""
    return [_shown(record, ids.get(place, 0)) for place, record in enumerate(decoded(stored))]


def of_photos(photo_ids: Iterable[int]) -> dict[int, list[Record]]:
    """The records of these photos, by photo, without those of photos in the trash."""
    sql = "SELECT photo_id, records FROM shown WHERE photo_id IN (SELECT value FROM json_each(?))"
    rows = db.execute_sql(sql, (msgspec.json.encode(list(photo_ids)).decode(),)).fetchall()
    return {photo_id: decoded(stored) for photo_id, stored in rows}


def first(stored: Any) -> Record | None:
    """The decoded first record of a photo; None where it has none that can be read."""
    try:
        return msgspec.convert(stored, Record | None)
    except msgspec.ValidationError:
        return None


def fact(record: Record | None) -> shapes.RecordLine | None:
    """A record in one line, for lists; None for None."""
    return None if record is None else {"type": record.type, "line": _line(record)}


def in_words(record: Record | None, app: str, title: str, summary: str) -> tuple[str, str]:
    """The title and the summary of a photo whose first record this is, in the language that is spoken, where
    a template has made them.
    """
    return (title, summary) if record is None else templates.again(record, app, title, summary)


def reworded(photo_ids: Iterable[int]) -> list[tuple[str, str]]:
    """The titles and summaries of these photos that `in_words` changes, as they are stored and as changed."""
    rows = db.execute_sql(
        "SELECT app_name, title, summary, records FROM shown"
        " WHERE photo_id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(list(photo_ids)).decode(),),
    ).fetchall()
    pairs: list[tuple[str, str]] = []
    for app, title, summary, stored in rows:
        record = next(iter(decoded(stored)), None)
        pairs += zip((title, summary), in_words(record, app, title, summary), strict=True)
    return [(stored, spoken) for stored, spoken in pairs if stored != spoken]


def listed(
    wanted: Wanted, number: int, size: int, *, guarded: bool = False, sort: Sort = "latest"
) -> tuple[int, list[Listed], list[Sum]]:
    """How many records are wanted, one page of them, and the sums of all of them by currency, the one with
    the most records first. Raises `BadInput` for an unknown type.
    """
    _check(wanted)
    among, values = _among(wanted, guarded=guarded)
    sums, total = _sums(among, values, every=wanted == Wanted(wanted.types))
    page = f"{_sorted(among, sort)} LIMIT ? OFFSET ?"
    ids = [row[0] for row in db.execute_sql(page, (*values, size, (number - 1) * size)).fetchall()]
    return total, of(ids, guarded=guarded), sums


def ids(wanted: Wanted, sort: Sort = "latest") -> list[int]:
    """The ids of all wanted records. Raises `BadInput` for an unknown type."""
    _check(wanted)
    among, values = _among(wanted, guarded=False)
    return [row[0] for row in db.execute_sql(_sorted(among, sort), tuple(values)).fetchall()]


def counted(wanted: Wanted, *, guarded: bool = False) -> dict[str, int]:
    """How many of the wanted records there are of each type that has some. Raises `BadInput` for an unknown
    type.
    """
    _check(wanted)
    among, values = _among(wanted, guarded=guarded)
    sql = f"SELECT type, COUNT(*) FROM records {among} GROUP BY type"  # noqa: S608
    found = dict(db.execute_sql(sql, tuple(values)).fetchall())
    return {name: found[name] for name in TYPES if name in found}


def _check(wanted: Wanted) -> None:
    for name in wanted.types:
        if name not in TYPES:
            raise BadInput(f"type: {name[:40]!r} is unknown; the types are {', '.join(TYPES)}")


def _sorted(among: str, sort: Sort) -> str:
    return f"SELECT id FROM records {among} ORDER BY {_ORDERS[sort]}"  # noqa: S608


def of(ids: Sequence[int], *, guarded: bool = False) -> list[Listed]:
    """The records with these ids, in this order, without those that are gone."""
    rows = db.execute_sql(
        """SELECT records.id, records.photo_id, day, cleared, sensitive, shown.visible_text,
            json_extract(shown.records, '$[' || place || ']')
        FROM records JOIN shown ON shown.photo_id = records.photo_id
        WHERE records.id IN (SELECT value FROM json_each(?))""",
        (msgspec.json.encode(ids).decode(),),
    ).fetchall()
    found = {}
    for row_id, photo_id, day, cleared, sensitive, text, stored in rows:
        whole = _RECORD.decode(stored)
        record = without_secrets(whole) if guarded and not cleared else whole
        doubtful, left_out = totals.is_doubtful(record, text), withheld([whole], [record])
        found[row_id] = Listed(row_id, photo_id, day, record, sensitive.split(), doubtful, left_out)
    return [found[row_id] for row_id in ids if row_id in found]


def without_secrets(record: Record) -> Record:
    """A record without the fields that are sensitive by what they are."""
    secret = SECRET.get(record.type, frozenset())
    fields = [field for field in record.fields if field.name not in secret]
    return Record(record.type, fields, record.source, record.confidence)


def withheld(whole: Iterable[Record], shown: Iterable[Record]) -> list[str]:
    """The names of the fields that `without_secrets` has taken away."""
    left = {field.name for record in shown for field in record.fields}
    return sorted({field.name for record in whole for field in record.fields} - left)


def is_of(party: str) -> str:
    """The value with which `instr(party, ?)` finds a name, by its beginning or that of one of its words."""
    words = _folded(party).strip()
    return words if _UNSPACED.match(words) else f" {words}"


def _among(wanted: Wanted, *, guarded: bool) -> tuple[str, list[Any]]:
    """The condition of SQL for the wanted records, and its values."""
    conditions: list[tuple[str, list[Any]]] = []
    if wanted.types:
        # With several, the index of days has the order of the list: with a plus, SQLite uses no other.
        column = "type" if len(wanted.types) == 1 else "+type"
        marks = ", ".join("?" * len(wanted.types))
        conditions.append((f"{column} IN ({marks})", list(wanted.types)))
    if wanted.since is not None:
        conditions.append(("day >= ?", [wanted.since.isoformat()]))
    if wanted.until is not None:
        conditions.append(("day <= ?", [wanted.until.isoformat()]))
    if wanted.seller:
        conditions.append(("instr(party, ?)", [is_of(wanted.seller)]))
    words = "plain" if guarded else "words"
    conditions += [(f"instr({words}, ?)", [is_of(word)]) for word in wanted.text.split()[:MOST_WORDS]]
    if guarded:
        conditions += [("plain IS NOT NULL", []), (OPEN.format(id="records.photo_id"), [])]
    where = " AND ".join(sql for sql, _ in conditions)
    return f"WHERE {where}" if where else "", [value for _, values in conditions for value in values]


def _sums(among: str, values: list[Any], *, every: bool) -> tuple[list[Sum], int]:
    """The sums by currency, and the number of records, with those without an amount. With `every`, nothing
    but types is a condition.
    """
    # SQLite has no decimal numbers. Equal amounts come in one row. In an index they lie together by type.
    groups = "type, currency, amount" if every else "currency, amount"
    sql = f"SELECT currency, amount, COUNT(*) FROM records {among} GROUP BY {groups}"  # noqa: S608
    sums: dict[str, Sum] = {}
    total = 0
    for currency, amount, count in db.execute_sql(sql, tuple(values)).fetchall():
        total += count
        if amount is not None:
            before = sums.get(currency, Sum(currency, Decimal(0), 0))
            sums[currency] = Sum(currency, before.value + Decimal(amount) * count, before.records + count)
    return sorted(sums.values(), key=lambda one: (-one.records, one.currency)), total


def _row(photo_id: int, place: int, record: Record, *, cleared: bool, taken: datetime) -> dict[str, Any]:
    amount = next((found for name in AMOUNTS if (found := record.amount(name))), None)
    day = day_of(record) or local_day(taken).isoformat()
    open_part = record if cleared else without_secrets(record)
    plain = _text(open_part)
    is_held = not cleared and (checked(open_part) is None or gate.withholds_text(plain))
    return {
        "photo": photo_id,
        "place": place,
        "type": record.type,
        "day": day[:10],
        "amount": f"{amount[0]:f}" if amount else None,
        "currency": amount[1] if amount else None,
        "party": party_of(record),
        "words": _folded(_text(record)),
        "plain": None if is_held else _folded(plain),
    }


def day_of(record: Record) -> str:
    """The day or time that a record is of, local; "" where it names none."""
    return next(filter(None, map(record.text, DAYS)), "")


def is_over(record: Record, present: str) -> bool:
    """Whether the time of day that a record is of has passed at this local minute."""
    at = day_of(record)
    return "T" in at and at < present


def party_of(record: Record) -> str:
    """Who a record is with, as it is compared; "" where that is nobody."""
    return _folded("\n".join(named_in(record)))


def named_in(record: Record) -> list[str]:
    """Those whom a record is with, as they are written."""
    names = (*PARTIES, "name") if record.type.endswith(NAMED) else PARTIES
    return [name for name in map(record.text, names) if name]


def of_party(kind: str, party: str, most: int) -> list[int]:
    """The photos with the newest records of a type that are with exactly this party."""
    sql = "SELECT photo_id FROM records WHERE type = ? AND party = ? ORDER BY day DESC, id DESC LIMIT ?"
    return [row[0] for row in db.execute_sql(sql, (kind, party, most)).fetchall()]


def _text(record: Record) -> str:
    """All values of a record, and the words as they are on the screen, a line each."""
    return "\n".join(part for field in record.fields for part in (*_parts(field.value), field.text) if part)


def _parts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, dict):
        return (" ".join(value.values()),)
    return (" ".join(entry.values()) for entry in value)


def _folded(text: str) -> str:
    """A text as it is compared, with a space before each word."""
    return "".join(f" {word}" for word in terms.fold(text).casefold().split())


def _shown(record: Record, row_id: int) -> shapes.RecordFields:
    fields = cast("list[shapes.RecordField]", msgspec.to_builtins(record.fields))
    return {
        "id": row_id,
        "type": cast(Any, record.type),
        "line": _line(record),
        "fields": fields,
        "source": record.source,
        "confidence": record.confidence,
    }


def _line(record: Record) -> str:
    return templates.line(record, templates.spoken(database.store().settings.language))


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("records", __name__, url_prefix="/api/records")

Day = Annotated[
    str,
    msgspec.Meta(pattern=r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?\Z", examples=["2026-11-22"]),
]


class Filter(msgspec.Struct):
    type: Annotated[list[shapes.RecordType], msgspec.Meta(description="may repeat")] = []
    since: Day = ""
    until: Day = ""
    seller: Annotated[str, msgspec.Meta(max_length=200, examples=["REWE"])] = ""
    q: inputs.AnyText = ""

    def wanted(self) -> Wanted:
        """Raises `BadInput`."""
        since, until = _day("since", self.since), _day("until", self.until)
        return Wanted(self.type, since, until, self.seller, self.q)


class SortedFilter(Filter):
    sort: Annotated[
        Sort,
        msgspec.Meta(
            description="by day, by amount (as a bare number, whatever its currency), or by who it is with;"
            " what has none of it comes last"
        ),
    ] = "latest"


class ListQuery(SortedFilter):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 20


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.RecordPage:
    """List records, the latest day first unless `sort` says otherwise. Days are those of the record, or the
    one on which the picture was taken where it has none; `since` and `until` are included.
    """
    total, found, sums = listed(query.wanted(), query.page, query.page_size, sort=query.sort)
    return {
        "total": total,
        "page": query.page,
        "page_size": query.page_size,
        "records": [
            {
                **_shown(one.record, one.id),
                "photo_id": one.photo_id,
                "day": one.day,
                "sensitive": cast(Any, one.sensitive),
                "doubtful": one.doubtful,
            }
            for one in found
        ],
        "sums": [{"currency": one.currency, "value": f"{one.value:f}", "count": one.records} for one in sums],
    }


@routes.get("/types")
@inputs.operation()
def types(query: Filter) -> shapes.RecordTypes:
    """Count records by type. Types without any are left out."""
    found = counted(query.wanted())
    return {"types": [{"type": cast(Any, name), "count": count} for name, count in found.items()]}


def _day(name: str, given: str) -> date | None:
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        raise BadInput(f"{name}: must be a day like 2026-11-22") from None
