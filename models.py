"""The tables and their invariants, and small stored values."""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec
import peewee

from clock import iso
from database import db


class TimestampField(peewee.Field):
    """UTC without a zone, stored as `clock.iso` writes it: as text it sorts in order of time."""

    field_type = "TEXT"

    def db_value(self, value: datetime | str | None) -> str | None:
        return iso(value) if isinstance(value, datetime) else value

    def python_value(self, value: str | None) -> datetime | None:
        return datetime.fromisoformat(value) if value is not None else None


class Model(peewee.Model):
    class Meta:
        database = db
        legacy_table_names = False


class Photo(Model):
    id = peewee.AutoField()
    device_id = peewee.TextField()
    device_name = peewee.TextField(default="")
    local_media_store_id = peewee.TextField(default="")
    filename = peewee.TextField()
    original_path = peewee.TextField()  # relative to the data folder, as is thumbnail_path
    thumbnail_path = peewee.TextField()
    file_size = peewee.IntegerField()  # bytes of the uploaded picture
    width = peewee.IntegerField()
    height = peewee.IntegerField()
    mime_type = peewee.TextField()
    source_type = peewee.TextField(default="screenshot")
    original_timestamp = TimestampField()
    created_at = TimestampField()
    sha256 = peewee.BlobField()
    file_key = peewee.BlobField(null=True)  # null: the file is not sealed
    thumbnail_key = peewee.BlobField(null=True)
    key_generation = peewee.IntegerField()  # of the key ring when the files were sealed
    disk_bytes = peewee.IntegerField(default=0)  # of both files on the disk, sealed

    class Meta:
        table_name = "photos"


class Analysis(Model):
    """The analysis of a photo and also its place in the queue. Every photo has exactly one from the start."""

    id = peewee.AutoField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, unique=True, on_delete="CASCADE", backref="analyses")
    device_id = peewee.TextField()  # the photo's, copied so that one index serves each filter
    taken_at = TimestampField()  # the photo's `original_timestamp`, for the same reason; set by a trigger
    status = peewee.TextField()
    app_name = peewee.TextField(default="")
    content_category = peewee.TextField(default="")
    intent = peewee.TextField(default="")
    summary = peewee.TextField(default="")
    entities = peewee.TextField(default="[]")
    confidence = peewee.FloatField(default=0.0)
    visible_text = peewee.TextField(default="")
    llm_response = peewee.TextField(default="")
    error_message = peewee.TextField(null=True)
    created_at = TimestampField()
    completed_at = TimestampField(null=True)
    analyser = peewee.TextField(default="")  # identity of the model that produced the result
    attempts = peewee.IntegerField(default=0)  # failures since it was last queued
    interruptions = peewee.IntegerField(default=0)  # times that its worker died
    returns = peewee.IntegerField(default=0)  # times that it was queued again automatically
    due_at = TimestampField()
    lease_until = TimestampField(null=True)
    lease_token = peewee.TextField(null=True)
    fault = peewee.TextField(default="")  # cause of an error: provider, refused or row
    # Requested again: it must not reuse an earlier result of the same bytes.
    fresh = peewee.BooleanField(default=False)
    noted = peewee.BooleanField(default=False)  # the reasoner has read the result

    class Meta:
        table_name = "analyses"


def enqueue(photo: Photo, *, now: datetime) -> None:
    """Create a photo's analysis row, pending and due `now`, unless it has one."""
    row = {
        "photo": photo.id,
        "device_id": photo.device_id,
        "status": "pending",
        "created_at": now,
        "due_at": now,
    }
    Analysis.insert(**row).on_conflict_ignore().execute()


def mark_noted(photo_ids: list[int]) -> None:
    """Record that the reasoner has read the analyses of these photos."""
    Analysis.update(noted=True).where(Analysis.photo.in_(photo_ids)).execute()


class Tally(Model):
    """The number of photos with this device, status, intent and category.

    Triggers keep it, so no count scans the table.
    """

    device_id = peewee.TextField()
    status = peewee.TextField()
    intent = peewee.TextField()
    content_category = peewee.TextField()
    photos = peewee.IntegerField()

    class Meta:
        table_name = "tallies"
        primary_key = peewee.CompositeKey("device_id", "status", "intent", "content_category")


def tallied(**values: str | None) -> int:
    """The number of photos with these values of a `Tally`'s fields; None is any value."""
    query = Tally.select(peewee.fn.SUM(Tally.photos))
    for name, value in values.items():
        if value is not None:
            query = query.where(getattr(Tally, name) == value)
    return query.scalar() or 0


def page_of(
    query: "peewee.ModelSelect[Any]", order: tuple[peewee.Field, ...], number: int, size: int, total: int
) -> list[int]:
    """Page `number` (from 1) of the ids that `query` selects, descending by `order`; `total` is their number.

    SQLite walks to a page row by row, so a page in the older half is read from the other end: the last page
    costs as little as the first.
    """
    start = (number - 1) * size
    if start >= total:
        return []  # a query that matches few rows would walk far to find none
    if start <= total // 2:
        return _ids(query.order_by(*(field.desc() for field in order)).limit(size).offset(start))
    end = min(start + size, total)
    return _ids(query.order_by(*order).limit(end - start).offset(total - end))[::-1]


def _ids(query: "peewee.ModelSelect[Any]") -> list[int]:
    # peewee's types call a row a model, even where `tuples` makes it a tuple.
    return [row[0] for row in cast("Iterable[tuple[int]]", query.tuples())]


class Holding(Model):
    """The number and size of the stored files of one kind and key generation.

    Triggers keep it, so no count walks through folders.
    """

    kind = peewee.TextField()  # photo (an original with its thumbnail) or attachment
    key_generation = peewee.IntegerField()  # of the key ring when the files were sealed
    items = peewee.IntegerField()
    bytes = peewee.IntegerField()

    class Meta:
        table_name = "holdings"
        primary_key = peewee.CompositeKey("kind", "key_generation")


class Vocabulary(Model):
    """Every term of the search index and the number of photos that contain it."""

    id = peewee.AutoField()
    term = peewee.TextField(unique=True)
    documents = peewee.IntegerField()

    class Meta:
        table_name = "vocabulary"


class SyncState(Model):
    device_id = peewee.TextField(primary_key=True)
    device_name = peewee.TextField(default="")
    last_synced_timestamp = TimestampField(null=True)
    last_sync_time = TimestampField()
    total_synced = peewee.IntegerField(default=0)

    class Meta:
        table_name = "sync_states"


class Conversation(Model):
    id = peewee.TextField(primary_key=True)
    title = peewee.TextField()
    device_id = peewee.TextField(default="")
    created_at = TimestampField()
    updated_at = TimestampField()
    noted_message_id = peewee.IntegerField(default=0)  # the last one that the reasoner has read

    class Meta:
        table_name = "conversations"


class Message(Model):
    id = peewee.AutoField()
    conversation_id: str  # added by peewee for `conversation`
    conversation = peewee.ForeignKeyField(Conversation, on_delete="CASCADE", backref="messages")
    role = peewee.TextField()
    content = peewee.TextField(null=True)
    tool_calls = peewee.TextField(null=True)
    tool_call_id = peewee.TextField(null=True)
    tool_name = peewee.TextField(null=True)
    attachment_path = peewee.TextField(null=True)
    attachment_key = peewee.BlobField(null=True)
    attachment_type = peewee.TextField(null=True)
    attachment_bytes = peewee.IntegerField(default=0)  # on the disk, sealed
    attachment_generation = peewee.IntegerField(null=True)  # of the key ring when it was sealed
    # A JSON list of the memories that the model was given; on a user message whose turn is over and has not
    # yet been read for new memories.
    recalled = peewee.TextField(null=True)
    created_at = TimestampField()

    class Meta:
        table_name = "messages"


class FileFields(NamedTuple):
    """The fields by which a row names a file that it owns."""

    path: peewee.Field  # relative to the data folder; null: no file
    key: peewee.Field  # null: the file is not sealed
    sha256: peewee.Field | None = None  # of the content; None: the table has no such field


# All fields of the database that name files.
FILES = {
    Photo: (
        FileFields(Photo.original_path, Photo.file_key, Photo.sha256),
        FileFields(Photo.thumbnail_path, Photo.thumbnail_key),
    ),
    Message: (FileFields(Message.attachment_path, Message.attachment_key),),
}


class Skill(Model):
    id = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    description = peewee.TextField(default="")
    icon = peewee.TextField(default="")
    system_prompt = peewee.TextField()
    enabled = peewee.BooleanField(default=True)
    created_at = TimestampField()

    class Meta:
        table_name = "skills"


class McpServer(Model):
    id = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    url = peewee.TextField()
    description = peewee.TextField(default="")
    enabled = peewee.BooleanField(default=True)
    created_at = TimestampField()

    class Meta:
        table_name = "mcp_servers"


class Dynamic(Model):
    id = peewee.AutoField()
    title = peewee.TextField()
    summary = peewee.TextField(default="")
    content = peewee.TextField(default="")
    category = peewee.TextField()
    confidence = peewee.FloatField(default=0.0)
    is_read = peewee.BooleanField(default=False)
    is_pinned = peewee.BooleanField(default=False)
    device_id = peewee.TextField(default="")
    source_photo_ids = peewee.TextField(default="[]")
    source_conversation_ids = peewee.TextField(default="[]")
    created_at = TimestampField()
    pinned_at = TimestampField(null=True)

    class Meta:
        table_name = "dynamics"


class Memory(Model):
    id = peewee.AutoField()
    content = peewee.TextField()
    memory_type = peewee.TextField()
    source_type = peewee.TextField(default="")
    category = peewee.TextField(default="fact")
    importance = peewee.FloatField(default=0.5)
    access_count = peewee.IntegerField(default=0)
    device_id = peewee.TextField(default="")
    created_at = TimestampField()
    expires_at = TimestampField(null=True)

    class Meta:
        table_name = "memories"


class PushDevice(Model):
    id = peewee.AutoField()
    device_id = peewee.TextField(unique=True)
    token = peewee.TextField()
    platform = peewee.TextField(default="android")
    device_name = peewee.TextField(default="")
    device_model = peewee.TextField(default="")
    app_version = peewee.TextField(default="")
    last_seen = TimestampField()
    created_at = TimestampField()

    class Meta:
        table_name = "push_devices"


class SpendLedger(Model):
    """Calls and tokens of a day (UTC), by purpose and model."""

    day = peewee.TextField()
    purpose = peewee.TextField()
    model = peewee.TextField()
    calls = peewee.IntegerField(default=0)
    prompt_tokens = peewee.IntegerField(default=0)
    completion_tokens = peewee.IntegerField(default=0)

    class Meta:
        table_name = "spend_ledger"
        primary_key = peewee.CompositeKey("day", "purpose", "model")


class StoredSetting(Model):
    name = peewee.TextField(primary_key=True)
    value = peewee.TextField()  # JSON

    class Meta:
        table_name = "settings"


def stored_value(name: str, default: Any = None) -> Any:
    """The value stored by `store_value` under `name`, or `default`."""
    row = StoredSetting.get_or_none(StoredSetting.name == name)
    return default if row is None else msgspec.json.decode(row.value)


def store_value(name: str, value: Any) -> None:
    """Store a small JSON value: a runtime setting, a counter, the state of the circuit breaker."""
    row = {"name": name, "value": msgspec.json.encode(value).decode()}
    StoredSetting.insert(**row).on_conflict_replace().execute()


def prove_writable() -> None:
    """Write a small value: a full or read-only disk then fails before a model call that costs money.

    Needs a scope.
    """
    store_value("models.proof", secrets.token_hex(8))
