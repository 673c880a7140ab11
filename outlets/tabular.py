"""Records as files for other programs: `/api/records.csv` for spreadsheets, and `/api/records.jsonld`.

Both have all records that a filter finds at the beginning, and are made while they are sent, in batches with
a database scope of their own, so that a client that reads slowly holds neither memory nor the database.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Annotated

import flask
import msgspec
from flask import Blueprint

import database
import records
from clock import utc_now
from engines.records import TYPES, Record
from outlets import linked
from records import Filter, Listed, SortedFilter
from settings import NAME
from web import inputs

CSV = "text/csv"
FIRST_BATCH, BATCH = 50, 500  # records: the first one is soon there

# A spreadsheet computes a cell that begins so, whoever wrote it. Some take the wide signs, too.
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")


def rows(ids: list[int], types: list[str]) -> Iterator[list[str]]:
    """The heading and the records as rows: type, day, a column for each field, and the ids."""
    forms = {name: form for kind in types for name, form in TYPES[kind].fields.items()}
    amounts = {name for name, form in forms.items() if form.kind == "amount"}
    heading = ["type", "day"]
    for name in forms:
        heading += [name, f"{name}Currency"] if name in amounts else [name]
    yield [*heading, "doubtful", "record_id", "photo_id"]
    for found in _every(ids):
        cells = [found.record.type, found.day]
        for name in forms:
            if name in amounts:
                amount = found.record.amount(name)
                cells += [f"{amount[0]:f}", amount[1]] if amount else ["", ""]
            else:
                cells.append(_cell(found.record, name))
        doubtful = "true" if found.doubtful else ""
        yield [*cells, doubtful, str(found.id), str(found.photo_id)]


def as_csv(ids: list[int], types: list[str]) -> Iterator[str]:
    """The table as CSV (RFC 4180), with the mark by which spreadsheets know UTF-8."""
    yield "\ufeff"
    for row in rows(ids, types):
        line = io.StringIO()
        csv.writer(line).writerow(row)
        yield line.getvalue()


def as_jsonld(ids: list[int]) -> Iterator[str]:
    """The records as one JSON-LD document."""
    yield f'{{"@context":{msgspec.json.encode(linked.CONTEXT).decode()},"@graph":['
    for at, found in enumerate(_every(ids)):
        node = msgspec.json.encode(linked.node(found.record, found.id, found.photo_id)).decode()
        yield f"{',' if at else ''}\n{node}"
    yield "\n]}\n"


def _every(ids: list[int]) -> Iterator[Listed]:
    first, size = 0, FIRST_BATCH
    while first < len(ids):
        with database.scope():
            batch = records.of(ids[first : first + size])
        yield from batch
        first, size = first + size, BATCH


def _cell(record: Record, name: str) -> str:
    """A value as a text that no spreadsheet takes for a formula."""
    value = record.get(name) or ""
    if isinstance(value, list):
        value = "; ".join(" ".join(entry.values()) for entry in value)
    text = str(value)
    return f"'{text}" if _FORMULA.match(text) else text


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("tabular", __name__, url_prefix="/api")


@routes.get("/records.csv")
@inputs.without_scope
@inputs.operation()
def show_csv(query: SortedFilter) -> Annotated[flask.Response, inputs.Media((CSV,))]:
    """Get records as a table for spreadsheets, with the filters and orders of `/api/records`. It has a column
    for each field, and an amount's currency in a column of its own. A text that a spreadsheet would compute
    has an apostrophe in front.
    """
    wanted = query.wanted()
    with database.scope():
        ids, types = records.ids(wanted, query.sort), list(records.counted(wanted))
    return _file(lambda: as_csv(ids, types), f"{CSV}; charset=utf-8", "csv")


@routes.get("/records.jsonld")
@inputs.without_scope
@inputs.operation()
def show_jsonld(query: Filter) -> Annotated[flask.Response, inputs.Media((linked.MEDIA_TYPE,))]:
    """Get records as JSON-LD in schema.org's vocabulary, with the filters of `/api/records`. What that has no
    word for is named below `urn:snaplore:`.
    """
    with database.scope():
        ids = records.ids(query.wanted())
    return _file(lambda: as_jsonld(ids), linked.MEDIA_TYPE, "jsonld")


def _file(make: Callable[[], Iterator[str]], media_type: str, ending: str) -> flask.Response:
    answer = flask.Response(make(), content_type=media_type)
    name = f"{NAME.lower()}-records-{utc_now().date().isoformat()}.{ending}"
    answer.headers["Content-Disposition"] = f"attachment; filename={name}"
    return answer
