"""The shapes of the answers: each resource with its fields, as clients see them. `web/inputs.py` has the
other half of the contract.

`of` reads a row into its shape, so a field that is declared here cannot be forgotten in an answer. Answers
are not validated when they are sent; the tests check every answer that they receive against the contract
(`tests/support/contract.py`). The file is long because it is one list: split by noun, it would become a dozen
files that only repeat the nouns' names.
"""

import functools
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast, get_args

from msgspec import Meta

from clock import iso
from engines import articles
from engines.findings import Category, Intent
from engines.reading import MemoryCategory, MemoryType

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
StoredPath = Annotated[str, Meta(description="relative to the data folder")]
Status = Literal["pending", "processing", "done", "error"]
PictureType = Literal["image/jpeg", "image/png", "image/webp", "image/gif"]
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


# ---------------------------------------------------------------------------------------------------- Service


class Identity(TypedDict):
    name: str
    version: str
    status: Literal["running"]


class Health(TypedDict):
    status: Literal["ok"]


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


class PhotoItem(PhotoFields):
    """A photo in a list."""

    analysis_status: Status
    intent: Literal["", Intent]
    summary: str


class PhotoPage(TypedDict):
    total: Count
    page: Count
    page_size: Count
    items: list[PhotoItem]


class AnalysisFields(TypedDict):
    id: int
    photo_id: int
    status: Status
    app_name: str
    content_category: Literal["", Category]
    intent: Literal["", Intent]
    summary: str
    entities: Entities
    confidence: Share
    error_message: str | None
    created_at: Timestamp
    completed_at: Timestamp | None


class AnalysisDetail(AnalysisFields):
    llm_response: Annotated[str, Meta(description="the model's unmodified answer")]


class PhotoDetail(PhotoFields):
    """A photo with its analysis."""

    local_media_store_id: str
    original_path: StoredPath
    thumbnail_path: StoredPath
    analysis: AnalysisDetail


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


class PhotoHit(PhotoItem):
    """A photo in the search results."""

    score: float
    snippet: str


class PhotoHits(TypedDict):
    total: Count
    items: list[PhotoHit]


# --------------------------------------------------------------------------------------------------- Analyses


class AnalysisItem(AnalysisFields):
    """An analysis in a list."""

    photo_filename: str


class AnalysisPage(TypedDict):
    total: Count
    page: Count
    page_size: Count
    items: list[AnalysisItem]


class Statistics(TypedDict):
    total_photos: Count
    total_analyses: Count
    done: Count
    pending: Count
    processing: Count
    errors: Count
    intent_distribution: dict[str, Count]
    category_distribution: dict[str, Count]


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


class ConversationList(TypedDict):
    conversations: list[ConversationItem]


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
    created_at: Timestamp


class ConversationDetail(ConversationFields):
    """A conversation with all its messages."""

    messages: list[MessageFields]


class MessageList(TypedDict):
    messages: list[MessageFields]


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


class Answered(TypedDict):
    conversation_id: ConversationId
    message: AnswerMessage


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


class MemoryPage(TypedDict):
    total: Count
    page: Count
    page_size: Count
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

    day: Annotated[
        str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="UTC", examples=["2026-11-21"])
    ]
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
    total_photos: Count
    total_memories: Count
    storage_used_bytes: Count
    storage_free_bytes: Annotated[int, Meta(ge=0, description="free space on the disk")]


class RetentionFields(TypedDict):
    retention_days: Annotated[int, Meta(ge=0, description="0 keeps everything")]


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


class ServerList(TypedDict):
    servers: list[ServerFields]
