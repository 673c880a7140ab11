"""The arguments of the assistant's built-in tools: their shapes, which models read as descriptions, and how
the calls that a model writes are read.
"""

import functools
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from msgspec import Meta

import records
from clock import start_of_local
from engines import reading
from engines.findings import CATEGORIES, INTENTS
from engines.records import TYPES
from errors import BadInput
from rules import joins, questions
from text import one_line

T = TypeVar("T")

MOST_FOUND = 20
MOST_PAGES = 9_999
SORTS = get_args(records.Sort)
FOUND = 8  # screenshots, unless the model sets a limit

DAY = timedelta(days=1)


def about(description: str, allowed: Sequence[str] = ()) -> Meta:
    """The schema of a text argument. The model sees the `allowed` words; `one_of` is lenient about them."""
    return Meta(description=description, extra_json_schema={"enum": list(allowed)} if allowed else None)


Page = Annotated[int, Meta(ge=1, le=MOST_PAGES, description="Which page of the results")]
# Limits for the model only, which `Meta` does not enforce: a model that wants 50 gets the most allowed.
Limit = Annotated[
    int, Meta(description="How many results", extra_json_schema={"minimum": 1, "maximum": MOST_FOUND})
]
LastDay = Annotated[str, about("Last local day, like 2026-11-28")]


# The arguments of the built-in tools. Models choose tools by these docstrings and descriptions.


class SearchKnowledgeBase(msgspec.Struct):
    """Search the person's own screenshots by the words on them. Finds words, their beginnings and typos; use
    a few distinctive words, not a sentence. An empty query lists the newest screenshots that match the
    filters. The query may have operators: app:"Google Maps", tag:trip, is:kept, is:unread, has:code,
    has:link, has:date, type:receipt, seller:rewe, amount:>20, has:amount, on:2026-11, before:2026, -word.
    With few results, `closest_in_meaning` has screenshots that may be about it in other words; most are not:
    read one before you rely on it.
    """

    query: Annotated[str, about('Words to look for; "in quotes" for an exact phrase')] = ""
    category: Annotated[str, about("Only this kind of content", CATEGORIES)] = ""
    intent: Annotated[str, about("Only what was kept for this purpose", INTENTS)] = ""
    device_id: Annotated[str, about("Only screenshots of this device")] = ""
    since: Annotated[
        str,
        about(
            "Only taken at or after this time, UTC, like 2026-11-21 or 2026-11-21T07:30:00; or today,"
            " this_week or this_month, which are local"
        ),
    ] = ""
    until: Annotated[str, about("Only taken before this time, UTC; a date includes its whole day")] = ""
    limit: Limit = FOUND
    page: Page = 1


class GetScreenshot(msgspec.Struct):
    """Read one screenshot: its text, summary and entities. Takes an id from search_knowledge_base. A long
    text comes in parts: go on at `next_offset`. In the text, a tab is between what is side by side.
    """

    id: Annotated[int, Meta(ge=1, le=2**53)]  # JSON numbers are exact up to here in every parser
    offset: Annotated[int, Meta(ge=0, le=2**31, description="Read the text from this character on")] = 0


class Agenda(msgspec.Struct):
    """List what happens on days that the person's screenshots name: events, deadlines, departures, pickups,
    appointments and expiries, by their start. Use it for what is due or coming up. Days and times are local.
    Each result has the id of its screenshot, and the line that says so.
    """

    period: Annotated[
        str,
        about(
            "Instead of since and until; ahead is from this minute on",
            [name for name in questions.PERIODS if name],
        ),
    ] = ""
    since: Annotated[str, about("First local day, like 2026-11-21; today when nothing is given")] = ""
    until: LastDay = ""
    limit: Limit = MOST_FOUND
    page: Page = 1


class ListRecords(msgspec.Struct):
    """List what the person's screenshots say as records: receipts, invoices, transfers, tickets, parcels,
    appointments, recipes and others, the latest day first, with the exact sums of their amounts by currency.
    Use it for how much in total, how many, and which: never add amounts yourself. Days are local.
    """

    type: Annotated[str, about("Only this type", list(TYPES))] = ""
    text: Annotated[str, about("Words that each record must have, like the name of a shop")] = ""
    period: Annotated[
        str,
        about(
            "Instead of since and until: 2026-11, 2026, 11, this_month, last_month or this_year; or ahead,"
            " for what is to come, the soonest first"
        ),
    ] = ""
    since: Annotated[str, about("First local day, like 2026-11-21")] = ""
    until: LastDay = ""
    sort: Annotated[str, about("Another order: by day, by amount, or by who it is with", SORTS)] = ""
    limit: Limit = FOUND
    page: Page = 1


class ListThreads(msgspec.Struct):
    """List what several screenshots are about together: orders and their parcels, trips, bookings and bills,
    with the present state of each, and the line that says it. Use it for "where is my parcel" and "is it
    paid". What is not over comes first.
    """

    type: Annotated[str, about("Only this type; a parcel may be one of an order", list(joins.STATES))] = ""
    text: Annotated[str, about("Words or the number that one of its screenshots must have")] = ""
    limit: Limit = FOUND


class WebSearch(msgspec.Struct):
    """Search the web for what the screenshots cannot tell: current facts, prices, news, background."""

    query: Annotated[
        str, about("What to search for. It leaves the person's device: put nothing private into it")
    ]


class SaveMemory(msgspec.Struct):
    """Remember something about the person for later conversations. Only what they told you themselves, in
    their language and words, or what they ask you to remember.
    """

    content: Annotated[str, about("One sentence")]
    category: Annotated[str, about("What it is about", reading.MEMORY_CATEGORIES)] = "fact"
    memory_type: Annotated[
        str, about("long_term if it stays true, short_term if it passes within days", reading.MEMORY_TYPES)
    ] = "long_term"
    importance: Annotated[
        float, Meta(description="0 to 1", extra_json_schema={"minimum": 0, "maximum": 1})
    ] = 0.5


@functools.cache
def described(shape: type) -> tuple[str, dict[str, Any]]:
    """The description and the JSON schema of a tool with these arguments; nobody may change them."""
    schema = msgspec.json.schema_components([shape])[1][shape.__name__]
    properties = {
        name: {key: value for key, value in schema_of.items() if (key, value) != ("default", "")}
        for name, schema_of in schema["properties"].items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required", [])}
    return one_line(schema["description"]), parameters


def decoded(text: str) -> dict[str, Any]:
    fields = reading.loose_object(text)
    if not fields and text.strip() not in ("", "{}", "null"):
        raise BadInput("The arguments must be a JSON object.")
    return fields


def read(shape: type[T], arguments: dict[str, Any]) -> T:
    """The arguments as a `shape`, read leniently: numbers and lists may be texts. Raises `BadInput`."""
    try:
        texts = {name: reading.as_text(value) for name, value in arguments.items()}
        if "id" in texts:
            texts["id"] = texts["id"].removeprefix("#")  # the prompt cites ids in this form
        return msgspec.convert({name: text for name, text in texts.items() if text}, shape, strict=False)
    except msgspec.ValidationError as problem:
        if missing := re.search(r"missing required field `([^`]+)`", str(problem)):
            raise BadInput(f"{missing[1]}: is missing") from None
        raise BadInput(
            f"{str(problem).rpartition('$.')[2].rstrip('`')}: must be a number within its limits"
        ) from None
    except RecursionError:
        raise BadInput("The arguments are nested too deeply.") from None


def one_of(name: str, value: str, allowed: Sequence[str]) -> str | None:
    """`value` in the spelling of `allowed`; None if empty. Raises `BadInput`, naming the allowed words."""
    word = re.sub(r"[\s-]+", "_", value.lower())
    if word and word not in allowed:
        raise BadInput(f"{name}: must be one of {', '.join(allowed)}")
    return word or None


def day(name: str, given: str) -> date | None:
    try:
        return date.fromisoformat(given) if given else None
    except ValueError:
        raise BadInput(f"{name}: must be a day like 2026-11-22") from None


def begun(name: str, today: date) -> datetime | None:
    """When one of `questions.SINCE` began, UTC without a zone; None for another text."""
    days = {
        "today": today,
        "this_week": today - timedelta(days=today.weekday()),
        "this_month": today.replace(day=1),
    }
    return start_of_local(days[name]) if name in days else None


def span(period: str, today: date, *, ahead: bool = False) -> tuple[date, date]:
    """The first and last day of a year or month, of the latest or, `ahead`, the next. Raises `BadInput`."""
    this_month = today.replace(day=1)
    known = {
        "this_year": f"{today.year}",
        "this_month": f"{this_month:%Y-%m}",
        "last_month": f"{this_month - DAY:%Y-%m}",
    }
    named = known.get(period, period)
    if found := re.fullmatch(r"(?:(\d{4})-)?(\d{1,2})", named):
        month = int(found[2])
        other = today.year + (month < today.month) if ahead else today.year - (month > today.month)
        year = int(found[1]) if found[1] else other
        first, last = (year, month), (year, month + 1) if month < 12 else (year + 1, 1)
    elif re.fullmatch(r"\d{4}", named):
        first, last = (int(named), 1), (int(named) + 1, 1)
    else:
        raise BadInput("period: must be like 2026-11, 2026, 11, this_month, last_month or this_year")
    try:
        return date(*first, 1), date(*last, 1) - DAY
    except ValueError:
        raise BadInput("period: there is no such month") from None
