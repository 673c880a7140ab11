"""The shapes of the answers: each resource with its fields, as clients see them. `web/inputs.py` has the
other half of the contract.

`of` reads a row into its shape, so a field that is declared here cannot be forgotten in an answer. Answers
are not validated when they are sent; the tests check every answer that they receive against the contract
(`tests/support/contract.py`). The file is long because it is one list: split by noun, it would become a dozen
files that only repeat the nouns' names.

More than 550 lines, because every published answer is described in one place; most lines are fields.
"""

import functools
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast, get_args

from msgspec import Meta

from clock import iso
from engines import articles
from engines.findings import Category, Intent
from engines.reading import MemoryCategory, MemoryType
from rules.sensitive import Kind
from writings.taken import Source

Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[int, Meta(ge=0, description="bytes")]
Pixels = Annotated[int, Meta(ge=1, description="pixels")]
Share = Annotated[float, Meta(ge=0, le=1)]
Timestamp = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}$",
        description="UTC, ISO 8601",
        examples=["2026-11-21T07:31:04.123"],
    ),
]
Day = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples=["2026-11-21"])]
ConversationId = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{1,64}\Z", description="1 to 64 lowercase hexadecimal digits")
]
Entities = Annotated[
    str,
    Meta(
        description="a JSON list of objects with `type` and `value`",
        examples=['[{"type": "date", "value": "Friday"}]'],
    ),
]
Title = Annotated[str, Meta(max_length=120, description="names the screenshot in a short line, or is empty")]
OwnTitle = Annotated[str, Meta(max_length=200, description="the person's own, else the analysis's; or empty")]
Tags = Annotated[list[str], Meta(description="in alphabetical order")]
Sensitive = Annotated[
    list[Kind],
    Meta(description="what its text shows that must not leave the machine; empty when there is nothing"),
]
StoredPath = Annotated[str, Meta(description="relative to the data folder")]
Status = Literal["pending", "processing", "done", "error"]
Scope = Literal["upload", "read", "full", "feed"]
PictureType = Literal["image/jpeg", "image/png", "image/webp", "image/gif", "image/heic", "image/avif"]
PICTURES: tuple[str, ...] = get_args(PictureType)

T = TypeVar("T")


def of(row: Any, shape: type[T], **derived: Any) -> T:
    """`row`, an object or a dict, as a `shape`. Fields are read by name; times get the contract's format.

    `derived` gives the fields that the row does not have, or has under another name. Raises `AttributeError`
    or `KeyError` for a field that is in neither.
    """
    read = row.__getitem__ if isinstance(row, dict) else functools.partial(getattr, row)
    fields = dict(derived)
    for name in names(cast(type, shape)):  # mypy takes a `type[T]` for unhashable
        if name not in derived:
            value = read(name)
            fields[name] = iso(value) if isinstance(value, datetime) else value
    return cast(T, fields)


@functools.cache
def names(shape: type) -> tuple[str, ...]:
    """The fields of `shape`, inherited ones first."""
    return tuple(shape.__annotations__)


def columns(table: Any, shape: type) -> list[Any]:
    """The columns of `table` that a list selects: exactly those that `of` needs to read rows into `shape`."""
    found = ((name, getattr(table, name)) for name in names(shape))
    return [column if column.name == name else column.alias(name) for name, column in found]


class Done(TypedDict):
    message: str


class Paged(TypedDict):
    """One page of a list."""

    total: Count
    page: Count
    page_size: Count


# ---------------------------------------------------------------------------------------------------- Service


class Identity(TypedDict):
    name: str
    version: str
    status: Literal["running"]


class Health(TypedDict):
    status: Literal["ok"]


# ----------------------------------------------------------------------------------------------------- Access


class TokenFields(TypedDict):
    """A token, without its secret."""

    id: int
    name: str
    scope: Scope
    device_id: Annotated[
        str,
        Meta(
            description="the first device that it was used for; empty before. A token that may only upload "
            "is of this device alone"
        ),
    ]
    created_at: Timestamp
    last_used_at: Timestamp | None


class TokenList(TypedDict):
    tokens: list[TokenFields]


class NewToken(TypedDict):
    """A new token, with its secret."""

    id: int
    name: str
    scope: Scope
    token: Annotated[str, Meta(description="`snp_` and 43 characters; sent like the API key")]
    created_at: Timestamp


FeedKind = Literal["agenda", "notes", "search"]


class FeedFields(TypedDict):
    """A feed, without its address."""

    id: int
    kind: FeedKind
    query: Annotated[str, Meta(description="of a search; else empty")]
    token_id: Annotated[int | None, Meta(description="the token that made it; null: the owner")]
    created_at: Timestamp
    last_used_at: Timestamp | None


class FeedList(TypedDict):
    feeds: list[FeedFields]


class NewFeed(TypedDict):
    """A new feed, with its address."""

    id: int
    kind: FeedKind
    query: str
    url: Annotated[str, Meta(description="a secret: whoever has it can read the feed")]
    qr: Annotated[str, Meta(description="the address as a QR code (SVG); an agenda's begins with `webcal:`")]
    created_at: Timestamp


class FoundSecret(TypedDict):
    """A place of something sensitive on the upright picture."""

    kind: str
    left: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    top: Annotated[float, Meta(ge=0, le=1, description="part of the height")]
    width: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    height: Annotated[float, Meta(ge=0, le=1, description="part of the height")]


class RedactionFields(TypedDict):
    boxes: list[FoundSecret]


class ShareFields(TypedDict):
    """A link to a picture, without its address."""

    id: int
    photo_id: int
    redacted: Annotated[int, Meta(description="how many places are painted over")]
    created_at: Timestamp
    expires_at: Timestamp
    max_views: int | None
    views: int
    last_viewed_at: Timestamp | None
    token_id: Annotated[int | None, Meta(description="the token that made it; null: the owner")]


class ShareList(TypedDict):
    shares: list[ShareFields]


class NewShare(TypedDict):
    """A new link, with its address."""

    id: int
    url: Annotated[str, Meta(description="a secret: whoever has it sees the picture")]
    expires_at: Timestamp


Event = Literal["photo.analysed", "note.written", "reminder.due"]


class WebhookFields(TypedDict):
    """A webhook, without its secret."""

    id: int
    name: str
    url: str
    events: list[Event]
    enabled: bool
    problem: Annotated[str, Meta(description="why the service has switched it off; else empty")]
    failing_since: Annotated[Timestamp | None, Meta(description="the first failure since the last success")]
    waiting: Annotated[int, Meta(ge=0, description="events that are not delivered yet")]
    dropped: Annotated[int, Meta(ge=0, description="events that were not sent because too many waited")]
    created_at: Timestamp


class WebhookList(TypedDict):
    webhooks: list[WebhookFields]


class NewWebhook(TypedDict):
    """A new webhook, with its secret."""

    id: int
    name: str
    url: str
    events: list[Event]
    secret: Annotated[
        str, Meta(description="`whsec_` and base64: the key of the signatures (Standard Webhooks)")
    ]
    created_at: Timestamp


class DeliveryFields(TypedDict):
    """An event that is or was sent to a webhook."""

    id: int
    message_id: Annotated[str, Meta(description="the header `webhook-id`, the same in every attempt")]
    event: Literal["photo.analysed", "note.written", "reminder.due", "webhook.test"]
    subject: Annotated[int, Meta(description="id of the photo, note or agenda item")]
    status: Annotated[
        Literal["waiting", "delivered", "failed", "withdrawn"],
        Meta(description="withdrawn: what it is about was deleted before it was sent"),
    ]
    attempts: Count
    answer: Annotated[int | None, Meta(description="HTTP status of the last attempt; null without one")]
    problem: Annotated[str, Meta(description="why the last attempt failed; else empty")]
    created_at: Timestamp
    tried_at: Annotated[Timestamp | None, Meta(description="the last attempt")]
    next_at: Annotated[Timestamp | None, Meta(description="the next attempt")]


class DeliveryList(TypedDict):
    deliveries: list[DeliveryFields]


class PairingFields(TypedDict):
    code: Annotated[str, Meta(description="8 characters, to be typed")]
    url: Annotated[str, Meta(description="the address of the page, with the code behind `#`")]
    expires_at: Timestamp
    qr: Annotated[str, Meta(description="`url` as a QR code, in SVG")]


class RecipeValue(TypedDict):
    name: str
    value: str
    typed: Annotated[bool, Meta(description="whether a person types or pastes it, or chooses it from a list")]


class RecipeAction(TypedDict):
    """An action of iOS Shortcuts, filled in."""

    title: str
    values: list[RecipeValue]


class RecipeFields(TypedDict):
    """What a program needs to send screenshots here."""

    name: Annotated[str, Meta(description="of the program")]
    filename: Annotated[str, Meta(description="empty when `content` is a line for a shell, or there is none")]
    content: Annotated[str, Meta(description="the file or the line; empty when there are only steps")]
    steps: list[str]
    actions: Annotated[list[RecipeAction], Meta(description="of iOS Shortcuts; empty for other programs")]


class Redeemed(TypedDict):
    token: str
    scope: Scope


class CertificateFields(TypedDict):
    """The fingerprints are SHA-256, as pairs of hexadecimal digits between colons."""

    fingerprint: Annotated[str, Meta(description="of the server's certificate; it changes with each renewal")]
    expires_at: Timestamp
    names: Annotated[list[str], Meta(description="host names and addresses that it is valid for")]
    ca_fingerprint: Annotated[str, Meta(description="of the CA that issued it; `/ca` hands the CA out")]
    ca_expires_at: Timestamp


NetworkChoice = Literal["off", "minutes", "always"]


class NetworkFields(TypedDict):
    listen: Annotated[
        Literal["off", "minutes", "always", "fixed"],
        Meta(description="whether the own network may connect; `fixed`: SNAPLORE_BIND says where it listens"),
    ]
    until: Annotated[Timestamp | None, Meta(description="when ten minutes are over")]


class Addresses(TypedDict):
    addresses: Annotated[
        list[str],
        Meta(
            description="where other devices open the service, the best first",
            examples=[["http://192.168.1.20:8000"]],
        ),
    ]
    loopback_only: Annotated[bool, Meta(description="whether it listens for its own machine alone")]
    certificate: Annotated[
        CertificateFields | None,
        Meta(description="the service's own certificate, by which it serves https; null without one"),
    ]
    network: Annotated[
        NetworkFields | None,
        Meta(
            description="of a service that was started for its own machine alone; `PUT /api/network` "
            "changes it. null where nothing is to be chosen"
        ),
    ]


# ----------------------------------------------------------------------------------------------------- Photos


class Uploaded(TypedDict):
    id: int
    filename: str
    file_size: NotRequired[Bytes]  # only of a new photo
    dedup: bool
    message: Literal["Uploaded", "Already exists (dedup)"]


class BatchResult(TypedDict):
    """The result for one file: `id` and `dedup`, or `error`."""

    filename: str
    id: NotRequired[int]
    dedup: NotRequired[bool]
    error: NotRequired[
        Annotated[str, Meta(description="`empty`, `too large`, `unsupported image`, or a sentence")]
    ]


class BatchUploaded(TypedDict):
    uploaded: Annotated[int, Meta(ge=0, description="number of newly stored photos")]
    results: list[BatchResult]


class PhotoFields(TypedDict):
    id: int
    filename: str
    file_size: Bytes
    width: Pixels
    height: Pixels
    mime_type: PictureType
    source_type: str
    device_id: str
    device_name: str
    original_timestamp: Timestamp
    created_at: Timestamp


class Stack(TypedDict):
    """The same screen several times."""

    count: Count
    photo_ids: Annotated[list[int], Meta(description="the one that is shown first, then the newest first")]
    best: Annotated[int, Meta(description="the kept one, else the one with the most text, else the largest")]


class ShownPhoto(PhotoFields):
    """What lists and the detail of a photo have in common."""

    title: OwnTitle
    summary: Annotated[str, Meta(description="the person's own, else the analysis's")]
    kept: Annotated[bool, Meta(description="retention spares it")]
    tags: Tags
    sensitive: Sensitive
    note: Annotated[str, Meta(description="the person's; empty when there is none")]
    deleted_at: Annotated[Timestamp | None, Meta(description="when it went to the trash")]


class Amount(TypedDict):
    value: Annotated[str, Meta(description="decimal", examples=["23.80"])]
    currency: Annotated[str, Meta(description="ISO 4217", examples=["EUR"])]


RecordType = Annotated[
    str, Meta(description="of schema.org where it has the type, else Snaplore's own", examples=["Receipt"])
]


class RecordField(TypedDict):
    """A field of a record."""

    name: Annotated[str, Meta(examples=["total"])]
    value: Annotated[
        Amount | str | list[dict[str, str]],
        Meta(
            description="a text, a local day or time without zone, an amount or a list of objects",
            examples=[{"value": "23.80", "currency": "EUR"}],
        ),
    ]
    text: Annotated[str, Meta(description="the words as they are on the screen", examples=["€ 23,80"])]
    lines: Annotated[list[int], Meta(description="their lines, as `…/lines` counts them", examples=[[4]])]


RecordText = Annotated[str, Meta(description="the record in one line", examples=["€23.80 · REWE · 21 Nov"])]


class RecordLine(TypedDict):
    """What a photo says, in one line."""

    type: RecordType
    line: RecordText


class RecordFields(RecordLine):
    """What a photo says, as data."""

    id: int
    fields: list[RecordField]
    source: Annotated[
        Literal["local", "model", "person"],
        Meta(description="rules on this machine, a remote model, a person"),
    ]
    confidence: Share


class ListedRecord(RecordFields):
    """A record in the list of records."""

    photo_id: int
    day: Annotated[Day, Meta(description="its own, else the one on which the picture was taken")]
    sensitive: Sensitive
    doubtful: Annotated[
        bool, Meta(description="whether its items do not add up to its total: one of them was misread")
    ]


class RecordTypeCount(TypedDict):
    type: RecordType
    count: Count


class RecordTypes(TypedDict):
    types: list[RecordTypeCount]


class RecordSum(TypedDict):
    """The sum of the amounts in one currency, and how many they are."""

    currency: Annotated[str, Meta(description="ISO 4217", examples=["EUR"])]
    value: Annotated[str, Meta(description="decimal", examples=["47.60"])]
    count: Count


class RecordPage(Paged):
    records: list[ListedRecord]
    sums: Annotated[list[RecordSum], Meta(description="over all records that match, not only this page")]


class ProposedChange(TypedDict):
    """A value of a field on another photo, as it is and as it is proposed."""

    photo_id: int
    before: Amount | str | list[dict[str, str]]
    after: Amount | str | list[dict[str, str]]


class Proposal(TypedDict):
    """A field that was corrected on one photo, with the photos of the same seller that have the mistake."""

    type: RecordType
    field: Annotated[str, Meta(examples=["total"])]
    party: Annotated[str, Meta(description="who they are with", examples=["REWE"])]
    photos: list[ProposedChange]


class ProposalList(TypedDict):
    proposals: list[Proposal]


class CorrectedPhotos(TypedDict):
    corrected: Annotated[list[int], Meta(description="ids of the corrected photos", examples=[[12]])]


class PhotoItem(ShownPhoto):
    """A photo in a list."""

    record: Annotated[RecordLine | None, Meta(description="what it says, its main record; null without one")]

    analysis_status: Status
    app_name: str
    intent: Literal["", Intent]


class ListedPhoto(PhotoItem):
    """A photo in the list of photos."""

    stack: NotRequired[Annotated[Stack | None, Meta(description="only with `stacks=true`")]]


class PhotoPage(Paged):
    items: list[ListedPhoto]


class DuplicateStack(TypedDict):
    best: Annotated[int, Meta(description="the kept one, else the one with the most text, else the largest")]
    photos: Annotated[list[PhotoItem], Meta(description="the one that is shown first, then the newest first")]


class Duplicates(TypedDict):
    total: Count
    stacks: list[DuplicateStack]


class AppCount(TypedDict):
    app_name: str
    photos: Count


class AppList(TypedDict):
    apps: Annotated[list[AppCount], Meta(description="the one with the most photos first")]


class MonthCount(TypedDict):
    month: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}$", description="UTC", examples=["2026-11"])]
    photos: Count


class Timeline(TypedDict):
    months: list[MonthCount]


class AnalysisFields(TypedDict):
    id: int
    photo_id: int
    status: Status
    app_name: str
    content_category: Literal["", Category]
    intent: Literal["", Intent]
    title: Title
    summary: str
    entities: Entities
    confidence: Share
    error_message: str | None
    created_at: Timestamp
    completed_at: Timestamp | None


class AnalysisDetail(AnalysisFields):
    llm_response: Annotated[str, Meta(description="the model's unmodified answer")]


class PhotoDetail(ShownPhoto):
    """A photo with its analysis."""

    local_media_store_id: str
    taken_from: Annotated[
        Source | None,
        Meta(
            description="what says when it was taken: its client, its EXIF data, its file's name, the date "
            "of its file, or only its upload; null where an earlier version stored it"
        ),
    ]
    original_path: StoredPath
    thumbnail_path: StoredPath
    text: Annotated[
        str,
        Meta(
            description="the person's own, else what was read on it, a line a row in reading order; empty "
            "when nothing was"
        ),
    ]
    records: Annotated[list[RecordFields], Meta(description="own, else the analysis's; the main one first")]
    own: Annotated[
        list[Literal["title", "summary", "text", "records"]],
        Meta(description="the fields that the person wrote in place of the analysis's"),
    ]
    stack: Annotated[Stack | None, Meta(description="the same screen several times; null when it is not")]
    thread_id: Annotated[int | None, Meta(description="of the order, trip, bill … that it is part of")]
    analysis: Annotated[AnalysisDetail, Meta(description="as the analysis found it, without own words")]


class SensitivePhoto(TypedDict):
    id: int
    sensitive: Sensitive


class SensitivePhotos(TypedDict):
    """Those of the named photos that have something sensitive."""

    items: list[SensitivePhoto]


class TagCount(TypedDict):
    tag: str
    photos: Count


class TagList(TypedDict):
    tags: Annotated[list[TagCount], Meta(description="the one with the most photos first")]


class BatchChanged(TypedDict):
    done: Annotated[int, Meta(ge=0, description="photos that are now as requested")]
    missing: Annotated[list[int], Meta(description="ids that do not exist")]


class TrashEmptied(TypedDict):
    deleted: Count


# Photos that retention will delete soon, because they are not kept. `from` is a keyword of Python.
ExpiringPhotos = TypedDict(
    "ExpiringPhotos",
    {
        "total": Count,
        "from": Annotated[Timestamp | None, Meta(description="when the first is due; null when none is")],
        "until": Annotated[Timestamp | None, Meta(description="when the last of them is due")],
        "items": Annotated[list[PhotoItem], Meta(description="the first ones, at most 100")],
    },
)


class AllKept(TypedDict):
    kept: Count


class LineFields(TypedDict):
    """A line of text and its place on the upright picture."""

    text: str
    left: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    top: Annotated[float, Meta(ge=0, le=1, description="part of the height")]
    width: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    height: Annotated[float, Meta(ge=0, le=1, description="part of the height")]
    status_bar: Annotated[bool, Meta(description="it shows the clock, the battery or the network")]


class PhotoLines(TypedDict):
    """What was read on a photo. Width and height are those of the upright picture."""

    width: Pixels
    height: Pixels
    lines: Annotated[list[LineFields], Meta(description="in reading order; empty when nothing was read")]


class SyncedDevice(TypedDict):
    device_id: str
    device_name: str
    last_synced_timestamp: Timestamp | None
    last_sync_time: Timestamp
    total_synced: Count


class SyncedDevices(TypedDict):
    devices: list[SyncedDevice]


class SyncProgress(TypedDict):
    """How far a device is synced. A device that has never uploaded has null, 0 and 0."""

    device_id: str
    last_synced_timestamp: Timestamp | None
    last_synced_ts_ms: Annotated[int, Meta(ge=0, description="the same in epoch milliseconds")]
    total_synced: Count


class Box(TypedDict):
    """A part of the upright picture."""

    left: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    top: Annotated[float, Meta(ge=0, le=1, description="part of the height")]
    width: Annotated[float, Meta(ge=0, le=1, description="part of the width")]
    height: Annotated[float, Meta(ge=0, le=1, description="part of the height")]


class PhotoHit(PhotoItem):
    """A photo in the search results."""

    score: float
    snippet: Annotated[str, Meta(description="begins near the first match")]
    matched: Annotated[list[str], Meta(description="the matching words as on the screenshot; at most 20")]
    boxes: Annotated[list[Box], Meta(description="the places of these words on the picture; at most 20")]


class PhotoRelative(PhotoHit):
    """A photo that is close to a description in meaning."""

    grade: Literal["probable", "possible"]


class PhotoRelatives(TypedDict):
    available: Annotated[bool, Meta(description="whether this machine can look for meanings")]
    model: Annotated[
        str,
        Meta(
            description="what compared them: `local`, or the provider and its model, with `local` for the"
            " photos that have no vector of it; empty when not available"
        ),
    ]
    items: Annotated[list[PhotoRelative], Meta(description="the closest first")]


class Correction(TypedDict):
    """A word of the query that was found in another form only."""

    word: str
    matched: list[str]


class NearWord(TypedDict):
    word: str
    photos: Count


class PhotoHits(TypedDict):
    total: Count
    items: list[PhotoHit]
    corrected: list[Correction]
    nearest: Annotated[list[NearWord], Meta(description="words that exist, if nothing was found; at most 6")]


class SavedSearch(TypedDict):
    id: int
    name: str
    query: str
    new: Annotated[
        int,
        Meta(ge=0, le=100, description="photos that match and were uploaded since `opened_at`; at most 100"),
    ]
    created_at: Timestamp
    opened_at: Annotated[Timestamp, Meta(description="when a person opened it last")]


class SavedSearches(TypedDict):
    searches: list[SavedSearch]


class WatchedFailure(TypedDict):
    """A file of a watched folder that could not be stored."""

    name: Annotated[str, Meta(description="its path, from the watched folder on")]
    problem: Annotated[str, Meta(description="a sentence, or a few words of the system")]
    seen_at: Timestamp


class WatchedFolder(TypedDict):
    folder: str
    device_name: str
    device_id: str
    present: Annotated[bool, Meta(description="whether the folder is there")]
    stored: Count
    failures: Annotated[list[WatchedFailure], Meta(description="the latest 100")]


class WatchedFolders(TypedDict):
    folders: list[WatchedFolder]


# --------------------------------------------------------------------------------------------------- Analyses


class AnalysisItem(AnalysisFields):
    """An analysis in a list."""

    photo_filename: str


class AnalysisPage(Paged):
    items: list[AnalysisItem]


class AnalysisState(TypedDict):
    """How far the analysis of a photo is."""

    photo_id: int
    status: Status
    error_message: str | None


class Statistics(TypedDict):
    total_photos: Count
    total_analyses: Count
    done: Count
    pending: Count
    processing: Count
    errors: Count
    searchable: Annotated[
        int, Meta(ge=0, description="photos that are analysed, or were read though their analysis failed")
    ]
    seconds_left: Annotated[
        Count | None,
        Meta(description="until all are analysed, by the pace of the last five minutes; null: not known"),
    ]
    intent_distribution: dict[str, Count]
    category_distribution: dict[str, Count]
    sensitive_photos: Annotated[int, Meta(ge=0, description="photos with something sensitive, held back")]
    sensitive_kinds: Annotated[
        dict[str, Count], Meta(description="how many of them have each kind; a photo may have several")
    ]


# ---------------------------------------------------------------------------------------------- Conversations


class ConversationFields(TypedDict):
    id: ConversationId
    title: str
    device_id: str
    created_at: Timestamp
    updated_at: Timestamp


class ConversationItem(ConversationFields):
    """A conversation in a list."""

    message_count: Count
    last_message: Annotated[str, Meta(description="the beginning of the last message")]
    sensitive: Annotated[list[Kind], Meta(description="kinds of what is sensitive in these two texts")]


class ConversationList(TypedDict):
    conversations: list[ConversationItem]


class Citation(TypedDict):
    """What an answer says, and where that is on a screenshot."""

    photo_id: int
    text: Annotated[str, Meta(description="the words of the answer")]
    lines: Annotated[list[int], Meta(description="indices of lines of the photo, as `…/lines` had them")]
    boxes: Annotated[list[Box], Meta(description="the places of these lines on the picture")]


Citations = Annotated[
    list[Citation],
    Meta(
        description="the lines of screenshots that say what the answer says; what is on no line, and what is"
        " withheld from the model, has none"
    ),
]


class MessageFields(TypedDict):
    id: int
    role: Literal["user", "assistant", "tool"]
    content: Annotated[
        str | None, Meta(description="null when an assistant only calls tools; a tool's is a JSON object")
    ]
    tool_calls: Annotated[
        str | None, Meta(description="a JSON list of objects with `id`, `type` and `function`")
    ]
    tool_name: str | None
    has_attachment: Annotated[bool, Meta(description="whether a picture is attached")]
    citations: Citations
    created_at: Timestamp


class PendingCall(TypedDict):
    """A call of a tool that waits for the person's word."""

    id: str
    tool: str
    server: Annotated[str, Meta(description="the host that would get the arguments")]
    server_id: Annotated[str | None, Meta(description="of an MCP server; null: a web search")]
    arguments: Annotated[str, Meta(description="a JSON object, as it would be sent")]
    sensitive: Annotated[list[Kind], Meta(description="kinds of what is sensitive in the arguments")]


PendingCalls = Annotated[
    list[PendingCall],
    Meta(description="that wait for the person's word; the turn goes on with the last; missing without any"),
]


class ConversationDetail(ConversationFields):
    """A conversation with all its messages."""

    messages: list[MessageFields]
    pending_calls: NotRequired[PendingCalls]


class MessageList(TypedDict):
    messages: list[MessageFields]
    pending_calls: NotRequired[PendingCalls]


# ------------------------------------------------------------------------------------------------------- Chat


class FunctionCall(TypedDict):
    name: str
    arguments: Annotated[str, Meta(description="a JSON object")]


class ToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: FunctionCall


class AnswerMessage(TypedDict):
    role: Literal["assistant"]
    content: str
    tool_calls: Annotated[list[ToolCall], Meta(description="all calls of the turn")]
    citations: Citations


class Answered(TypedDict):
    conversation_id: ConversationId
    message: AnswerMessage
    pending_calls: NotRequired[PendingCalls]


# --------------------------------------------------------------------------------------------------- Dynamics


class DynamicItem(TypedDict):
    """A note in a list."""

    id: int
    title: str
    summary: str
    category: articles.Category
    confidence: Share
    is_read: bool
    is_pinned: bool
    device_id: Annotated[str, Meta(description="empty when its sources come from several devices")]
    created_at: Timestamp
    sensitive: Annotated[
        list[Kind],
        Meta(description="kinds of what is sensitive on the screenshots of the note, and in its texts"),
    ]


class DynamicPage(TypedDict):
    items: list[DynamicItem]
    next_cursor: Annotated[int, Meta(ge=0, description="0 when there are no more")]
    has_more: bool


class DynamicDetail(DynamicItem):
    """A note with its content and sources."""

    content: Annotated[str, Meta(description="Markdown")]
    source_photo_ids: Annotated[str, Meta(description="a JSON list of ints", examples=["[1, 2]"])]
    source_conversation_ids: Annotated[str, Meta(description="a JSON list of strings", examples=["[]"])]


class DynamicStatistics(TypedDict):
    total_unread: Count
    by_category: dict[str, Count]


class MarkedRead(TypedDict):
    message: str
    is_read: bool


class AllMarkedRead(TypedDict):
    message: str
    updated: Count


class Pinned(TypedDict):
    is_pinned: bool


class NewArticle(TypedDict):
    title: str
    category: articles.Category


class Generated(TypedDict):
    generated: Count
    articles: list[NewArticle]


# --------------------------------------------------------------------------------------------------- Memories


class MemoryFields(TypedDict):
    id: int
    content: str
    memory_type: MemoryType
    source_type: Annotated[str, Meta(description="where it comes from: `chat`, `screenshot`, …")]
    category: MemoryCategory
    importance: Share
    access_count: Count
    created_at: Timestamp
    expires_at: Timestamp | None
    sensitive: Annotated[list[Kind], Meta(description="kinds of what is sensitive in `content`")]


class MemoryPage(Paged):
    items: list[MemoryFields]


class MemoryStatistics(TypedDict):
    total: Count
    short_term: Count
    long_term: Count
    categories: dict[str, Count]


# ------------------------------------------------------------------------------------------ LLM configuration


class PresetFields(TypedDict):
    provider: str
    base_url: str
    model: str
    max_context_tokens: Count


class ConfigurationFields(PresetFields):
    """Which model is in use, without its key. The embedded model (provider `local`) has an empty address."""

    api_key_set: bool
    temperature: float


class PresetList(TypedDict):
    presets: dict[str, PresetFields]


# ------------------------------------------------------------------------------------------------------ Usage


class UsageRow(TypedDict):
    """Calls to one model for one purpose on one day."""

    day: Annotated[Day, Meta(description="UTC")]
    purpose: str
    model: str
    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count


class UsageReport(TypedDict):
    daily_token_limit: Annotated[int, Meta(ge=0, description="0 is no limit")]
    tokens_today: Count
    days: list[UsageRow]


# ------------------------------------------------------------------------------------------------------- Data


class Amounts(TypedDict):
    total_photos: Annotated[int, Meta(ge=0, description="without those in the trash")]
    kept_photos: Count
    trashed_photos: Count
    total_memories: Count
    storage_used_bytes: Annotated[int, Meta(ge=0, description="on this disk")]
    away_photos: Annotated[int, Meta(ge=0, description="photos whose originals are in a bucket")]
    storage_away_bytes: Annotated[int, Meta(ge=0, description="in that bucket")]
    storage_free_bytes: Annotated[int, Meta(ge=0, description="free space on the disk")]


class RetentionFields(TypedDict):
    retention_days: Annotated[int, Meta(ge=0, description="0 keeps everything")]
    chosen: Annotated[
        bool, Meta(description="whether somebody has set it, so that clients need not ask for it")
    ]


class CodesFields(TypedDict):
    days: Annotated[
        int, Meta(ge=0, description="age at which screenshots of one-time codes go to the trash; 0: never")
    ]
    photos: Annotated[int, Meta(ge=0, description="how many there are that are not kept, of any age")]


class RetentionPreview(TypedDict):
    """What the next clean-up would delete with this retention period."""

    retention_days: Annotated[int, Meta(ge=0, description="0 keeps everything")]
    photos: Count
    conversations: Count
    dynamics: Count


class SealedFiles(TypedDict):
    generation: Count
    count: Count


class KeyStatus(TypedDict):
    """The keys in use. The times are null when encryption is off."""

    encrypted: bool
    generation: Count
    created_at: Timestamp | None
    rotation_days: Count
    rotation_due_at: Timestamp | None
    files: list[SealedFiles]


class Cleared(TypedDict):
    message: str
    photos: Count
    conversations: Count
    dynamics: Count
    memories: Count


# ------------------------------------------------------------------------------------------------------- Push


class Registered(TypedDict):
    message: str
    device_id: str


class DeviceFields(TypedDict):
    id: int
    device_id: str
    token: str
    platform: str
    device_name: str
    device_model: str
    app_version: str
    last_seen: Timestamp
    created_at: Timestamp


class DeviceList(TypedDict):
    devices: list[DeviceFields]


class TestSent(TypedDict):
    message: str
    success: bool


class BroadcastSent(TypedDict):
    message: str
    count: Annotated[int, Meta(ge=0, description="number of devices it was sent to")]


# ----------------------------------------------------------------------------------------------------- Skills


class SkillFields(TypedDict):
    id: str
    name: str
    description: str
    icon: str


class SkillItem(SkillFields):
    """A skill in a list. `enabled` is present when disabled skills were requested as well."""

    enabled: NotRequired[bool]


class SkillDetail(SkillFields):
    system_prompt: str
    enabled: bool


class SkillList(TypedDict):
    skills: list[SkillItem]


# ------------------------------------------------------------------------------------------------ MCP servers


class ServerFields(TypedDict):
    id: str
    name: str
    url: str
    description: str
    enabled: bool
    trusted: Annotated[bool, Meta(description="calls of its tools need no confirmation")]


class ServerList(TypedDict):
    servers: list[ServerFields]


# ----------------------------------------------------------------------------------------------------- Agenda

LocalTime = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2})?$",
        description="local time without a zone; of a whole day without a time",
        examples=["2026-11-22T14:30"],
    ),
]
OccasionKind = Literal["event", "deadline", "departure", "pickup", "appointment", "expiry"]


class AgendaFields(TypedDict):
    """Something that happens at a time that a screenshot names."""

    id: int
    photo_id: Annotated[int, Meta(description="the screenshot that says most about it")]
    photo_ids: Annotated[list[int], Meta(description="all screenshots of it, that one first")]
    kind: OccasionKind
    title: str
    starts_at: LocalTime
    ends_at: LocalTime | None
    all_day: bool
    quote: Annotated[str, Meta(description="the line that it is on")]
    line: Annotated[int, Meta(ge=0, description="the index of that line in the lines of the photo")]
    dismissed: bool
    sensitive: Sensitive


class ThreadMoment(TypedDict):
    """A time that a record of a thread names."""

    name: Annotated[str, Meta(description="the field of the record", examples=["boardingTime"])]
    at: LocalTime


class ThreadDay(TypedDict):
    """What a thread has on one day. Of its items in the agenda, one row is enough."""

    thread_id: int
    title: Annotated[str, Meta(examples=["NW482 Hamburg–Lisbon"])]
    times: Annotated[list[ThreadMoment], Meta(description="in their order")]


class ListedAgendaFields(AgendaFields):
    """An item in the list of the agenda."""

    thread: Annotated[ThreadDay | None, Meta(description="the trip, parcel … that it belongs to, on its day")]


ThreadType = Literal["order", "parcel", "trip", "booking", "bill", "page"]
ThreadState = Literal[
    "",
    "ordered",
    "shipped",
    "out_for_delivery",
    "ready_for_pickup",
    "delivered",
    "booked",
    "checked_in",
    "past",
    "due",
    "paid",
    "refunded",
    "cancelled",
]


class ThreadFields(TypedDict):
    """One order, parcel, trip, booking, bill or page over all screenshots of it."""

    id: int
    title: Annotated[str, Meta(examples=["Order from Harbor Books"])]
    type: ThreadType
    state: Annotated[ThreadState, Meta(description="how far it is; empty for a page")]
    is_open: Annotated[bool, Meta(description="whether something of it is to come or to do")]
    said_on: Annotated[int, Meta(description="the screenshot that the state rests on")]
    line: Annotated[int | None, Meta(description="and its line, as `…/lines` counts them, where one says it")]
    count: Annotated[int, Meta(ge=1, description="screenshots")]
    first_at: Annotated[Timestamp, Meta(description="when the oldest screenshot was taken")]
    last_at: Annotated[Timestamp, Meta(description="when the newest screenshot was taken")]
    photo_ids: Annotated[list[int], Meta(description="the newest first")]
    next: Annotated[ThreadMoment | None, Meta(description="the nearest time to come")]
    sensitive: Sensitive


class ThreadPage(Paged):
    threads: list[ThreadFields]


class Agenda(TypedDict):
    total: Count
    limit: Annotated[int, Meta(ge=1, description="the most items of this answer")]
    items: list[ListedAgendaFields]
