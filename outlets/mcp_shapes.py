"""What agents send to the tools of `/mcp`, and what they get. Models choose tools by these docstrings and
descriptions, so each says for whom it is and what to do next.

Times are local, with their offset, because people mean the clock on their wall; `time_zone` names the zone.
"""

from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from assistant.arguments import FOUND, Agenda, Limit, ListRecords, about
from engines.articles import Category
from engines.findings import CATEGORIES, INTENTS
from web import shapes

MOST_NOTES = 20
MAX_QUERY = 1_000  # characters
CURSOR = r"^[0-9]{1,4}-[0-9]{1,2}$"

_Query = Annotated[str, Meta(max_length=MAX_QUERY, description="A few distinctive words, not a sentence")]
_ScreenshotId = Annotated[int, Meta(ge=1, le=2**53)]
_Url = Annotated[str, Meta(description="of the page that shows it")]
_Cursor = Annotated[
    str, Meta(description="`next_cursor` of an answer, for its next page; with the same other arguments")
]
_Moment = Annotated[str, Meta(description="local, with its offset", examples=["2026-11-21T08:31:04+01:00"])]
_Day = Annotated[str, Meta(description="local day")]
_Zone = Annotated[str, Meta(description="of all days and times here", examples=["Europe/Berlin"])]
_Next = Annotated[str, Meta(description="for the next page; absent on the last one")]
_Withheld = Annotated[
    list[str],
    Meta(description="fields that are sensitive and stay on the person's machine; `all` for the whole of it"),
]


# ---------------------------------------------------------------------------------------------- what is asked


class Search(msgspec.Struct):
    """For ChatGPT's connectors only; other agents use search_screenshots. Search the person's own screenshots
    by the words on them. Returns links; read one with fetch.
    """

    query: _Query


class Fetch(msgspec.Struct):
    """For ChatGPT's connectors only; other agents use get_screenshot. Read one of the person's
    screenshots as a document: its whole text and what is known about it.
    """

    # The form that connectors expect: ids are texts.
    id: Annotated[str, Meta(pattern="^[0-9]{1,15}$", description="an id from `search`")]


class Overview(msgspec.Struct):
    """Start here: the local time and zone, how many screenshots there are, and the exact names of the largest
    apps, tags, devices and types of records, by which the other tools filter.
    """


class SearchScreenshots(msgspec.Struct):
    """Search the person's own screenshots by the words on them. Finds words, their beginnings and typos;
    use a few distinctive words, not a sentence. An empty query lists the newest that match the filters.
    The query may have operators: app:"Google Maps", tag:trip, device:phone, is:kept, is:unread, has:code,
    has:link, has:date, type:receipt, seller:rewe, amount:>20, has:amount, on:2026-11, before:2026, -word.
    Read what you found with get_screenshot. When nothing matches, `nearest` has words that exist, and
    `closest_in_meaning` screenshots that may be about it in other words; most are not.
    """

    query: Annotated[str, Meta(description='Words to look for; "in quotes" for an exact phrase')] = ""
    category: Annotated[str, about("Only this kind of content", CATEGORIES)] = ""
    intent: Annotated[str, about("Only what was kept for this purpose", INTENTS)] = ""
    device_id: Annotated[str, Meta(description="Only screenshots of this device, by its id in overview")] = ""
    since: Annotated[
        str,
        Meta(description="Only taken from this local day or time on, like 2026-11-21 or 2026-11-21T19:00"),
    ] = ""
    until: Annotated[
        str, Meta(description="Only taken until this local day, which is included, or before this local time")
    ] = ""
    limit: Limit = FOUND
    cursor: _Cursor = ""


class GetScreenshot(msgspec.Struct):
    """Read one screenshot: its text, summary, records and details. Takes an id from any other tool. A
    long text comes in parts: go on at `next_offset` until there is none.
    """

    id: _ScreenshotId
    offset: Annotated[int, Meta(ge=0, le=2**31, description="Read the text from this character on")] = 0
    thumbnail: Annotated[bool, Meta(description="Also return a picture of it")] = False
    size: Annotated[
        Literal["small", "large"],
        Meta(
            description="Of that picture: small (512 pixels) shows the layout, large (1,568) can be read and "
            "costs about 1,500 tokens"
        ),
    ] = "small"


class RecentNotes(msgspec.Struct):
    """Read the newest notes that Snaplore wrote about what is on the person's screenshots and in their chats,
    the newest first.
    """

    limit: Annotated[int, Meta(ge=1, le=MOST_NOTES, description="How many notes")] = 5
    cursor: _Cursor = ""


class AgendaPage(Agenda):
    __doc__ = Agenda.__doc__
    cursor: _Cursor = ""


class RecordsPage(ListRecords):
    __doc__ = ListRecords.__doc__
    cursor: _Cursor = ""


class ListThreads(msgspec.Struct):
    """List what several screenshots are about together: orders and their parcels, trips, bookings and bills,
    with the present state of each (shipped, delivered, checked in, due, paid, refunded …). Use it for
    "where is my parcel", "is it paid", "which trips are coming up". The one with the newest screenshot
    comes first.
    """

    type: Annotated[str, about("Only this type", ("order", "parcel", "trip", "booking", "bill", "page"))] = ""
    state: Annotated[
        str, Meta(description="Only in this state; `open` for all that is not over", examples=["open"])
    ] = ""
    limit: Limit = FOUND
    cursor: _Cursor = ""


# ------------------------------------------------------------------------------------------- what is answered


class Answered(TypedDict):
    notice: str
    time_zone: _Zone


class Link(TypedDict):
    id: str
    title: str
    url: _Url


class Links(TypedDict):
    results: list[Link]


class Document(TypedDict):
    id: str
    title: str
    text: str
    url: _Url
    metadata: dict[str, str]


class Named(TypedDict):
    name: str
    count: int


class Device(TypedDict):
    device_id: str
    name: str


class Survey(TypedDict):
    notice: str
    now: _Moment
    time_zone: _Zone
    total: Annotated[int, Meta(description="screenshots")]
    apps: list[Named]
    tags: list[Named]
    devices: list[Device]
    record_types: list[Named]


class Detail(TypedDict):
    type: str
    value: str


class Screenshot(TypedDict):
    """A screenshot; a sensitive one has no other fields than the first three and `withheld`."""

    id: int
    title: str
    url: _Url
    app: NotRequired[str]
    summary: NotRequired[str]
    snippet: NotRequired[Annotated[str, Meta(description="what is around the words that were found")]]
    category: NotRequired[str]
    intent: NotRequired[str]
    device_id: NotRequired[str]
    taken: NotRequired[_Moment]
    grade: NotRequired[Literal["probable", "possible"]]
    withheld: NotRequired[_Withheld]


class WholeScreenshot(Screenshot):
    text: NotRequired[Annotated[str, Meta(description="what was read on it, or the person's own text")]]
    text_length: NotRequired[Annotated[int, Meta(description="characters of the whole text")]]
    next_offset: NotRequired[Annotated[int, Meta(description="where the text goes on; absent at its end")]]
    note: NotRequired[Annotated[str, Meta(description="the person's")]]
    tags: NotRequired[list[str]]
    details: NotRequired[list[Detail]]
    records: NotRequired[Annotated[str, Meta(description="what it says as data, a field a line")]]
    filename: NotRequired[str]
    status: NotRequired[Annotated[str, Meta(description="of the analysis")]]


class Near(TypedDict):
    word: str
    photos: Annotated[int, Meta(description="how many screenshots have it")]


class Corrected(TypedDict):
    word: Annotated[str, Meta(description="of the query")]
    matched: Annotated[list[str], Meta(description="the words that were found in its place")]


class Screenshots(Answered):
    total: Annotated[int, Meta(description="how many match; `results` has the best of them")]
    results: list[Screenshot]
    next_cursor: NotRequired[_Next]
    corrected: NotRequired[list[Corrected]]
    nearest: NotRequired[Annotated[list[Near], Meta(description="words that exist, when nothing was found")]]
    unknown_operators: NotRequired[
        Annotated[
            list[str],
            Meta(description="parts that look like an operator and are none: they were searched as words"),
        ]
    ]
    closest_in_meaning: NotRequired[
        Annotated[list[Screenshot], Meta(description="may be about it in other words; most are not")]
    ]


class OneScreenshot(Answered):
    screenshot: WholeScreenshot


class Note(TypedDict):
    """A note; one about a sensitive screenshot has no other fields than the first three and `withheld`."""

    id: int
    title: str
    url: _Url
    summary: NotRequired[str]
    content: NotRequired[Annotated[str, Meta(description="Markdown")]]
    category: NotRequired[Category]
    created_at: NotRequired[_Moment]
    screenshots: NotRequired[Annotated[list[int], Meta(description="ids of those that it rests on")]]
    withheld: NotRequired[_Withheld]


class Notes(Answered):
    results: list[Note]
    next_cursor: NotRequired[_Next]


class Event(TypedDict):
    id: Annotated[int, Meta(description="of the screenshot that names it")]
    title: str
    url: _Url
    kind: shapes.OccasionKind
    starts_at: Annotated[str, Meta(description="local day or time")]
    ends_at: NotRequired[Annotated[str, Meta(description="local day or time")]]
    quote: Annotated[str, Meta(description="the line that says so")]


class Events(Answered):
    today: _Day
    results: list[Event]
    next_cursor: NotRequired[_Next]


class FoundRecord(TypedDict):
    """What a screenshot says, without what is sensitive."""

    id: Annotated[int, Meta(description="of the screenshot that says it")]
    title: str
    url: _Url
    type: str
    day: Annotated[str, Meta(description="local day of the record itself, else of the screenshot")]
    text: Annotated[str, Meta(description="a field a line")]
    withheld: NotRequired[_Withheld]


class Sum(TypedDict):
    currency: str
    value: Annotated[str, Meta(description="a decimal number")]
    count: int


class Records(Answered):
    total: Annotated[int, Meta(description="how many there are; `results` has the latest of them")]
    sums: Annotated[list[Sum], Meta(description="of all of them, also those on other pages, by currency")]
    results: list[FoundRecord]
    next_cursor: NotRequired[_Next]


class Coming(TypedDict):
    name: Annotated[str, Meta(description="what happens then")]
    at: Annotated[str, Meta(description="local day or time")]


class FoundThread(TypedDict):
    """An order, parcel, trip, booking or bill; a sensitive one has no other fields than the first four and
    `withheld`.
    """

    id: Annotated[int, Meta(description="of the thread")]
    title: str
    url: Annotated[str, Meta(description="of the screenshot that says its state")]
    screenshots: Annotated[list[int], Meta(description="their ids, for get_screenshot; the newest first")]
    type: NotRequired[str]
    state: NotRequired[str]
    is_open: NotRequired[Annotated[bool, Meta(description="it is not over")]]
    said_on: NotRequired[Annotated[int, Meta(description="the screenshot that says its state")]]
    first_at: NotRequired[_Moment]
    last_at: NotRequired[_Moment]
    next: NotRequired[Coming]
    withheld: NotRequired[_Withheld]


class Threads(Answered):
    total: int
    results: list[FoundThread]
    next_cursor: NotRequired[_Next]
