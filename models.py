"""The tables, and the invariants of their rows."""

import secrets
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import peewee

from clock import iso
from database import db


class TimestampField(peewee.Field):
    """UTC without a zone, as the text of the contract, which sorts in the order of time."""

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
    file_size = peewee.IntegerField()  # bytes of the picture as it was uploaded
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
    disk_bytes = peewee.IntegerField(default=0)  # of both files as they were written

    class Meta:
        table_name = "photos"


class Analysis(Model):
    """The analysis of a photo and, at once, its place in the queue: every photo has exactly one, from its
    first moment.
    """

    id = peewee.AutoField()
    photo_id: int  # peewee makes it of `photo`
    photo = peewee.ForeignKeyField(Photo, unique=True, on_delete="CASCADE", backref="analyses")
    device_id = peewee.TextField()  # the photo's, so that one index serves each filter
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
    returns = peewee.IntegerField(default=0)  # times that it came back to the queue by itself
    due_at = TimestampField()
    lease_until = TimestampField(null=True)
    lease_token = peewee.TextField(null=True)
    fault = peewee.TextField(default="")  # of an error: provider, refused or row
    fresh = peewee.BooleanField(
        default=False
    )  # asked for again: an earlier result of the same bytes will not do
    noted = peewee.BooleanField(default=False)  # the reasoner has looked at the result

    class Meta:
        table_name = "analyses"


def enqueue(photo: Photo, *, now: datetime) -> None:
    """Give a photo its analysis row, pending and due `now`, unless it has one."""
    row = {
        "photo": photo.id,
        "device_id": photo.device_id,
        "status": "pending",
        "created_at": now,
        "due_at": now,
    }
    Analysis.insert(**row).on_conflict_ignore().execute()


def mark_noted(photo_ids: list[int]) -> None:
    """The reasoner has looked at the analyses of these photos."""
    Analysis.update(noted=True).where(Analysis.photo.in_(photo_ids)).execute()


class Tally(Model):
    """How many photos have this device, status, intent and category; kept by triggers, so that no count scans
    the table.
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
    """How many photos have these values of a `Tally`'s fields; None is any value."""
    chosen = Tally.select(peewee.fn.SUM(Tally.photos))
    for name, value in values.items():
        if value is not None:
            chosen = chosen.where(getattr(Tally, name) == value)
    return chosen.scalar() or 0


def page_of(
    chosen: "peewee.ModelSelect[Any]", order: tuple[peewee.Field, ...], number: int, size: int, total: int
) -> list[int]:
    """Page `number` of the ids that `chosen` selects, descending by `order`; of `total` in all.

    SQLite walks to a page row by row, so one in the older half is read from the other end: the oldest is as
    near as the newest.
    """
    start = (number - 1) * size
    if start >= total:
        return []  # where little passes the filters, finding that out would be a long walk
    if start <= total // 2:
        return [
            row[0]
            for row in chosen.order_by(*(field.desc() for field in order)).limit(size).offset(start).tuples()
        ]
    end = min(start + size, total)
    return [row[0] for row in chosen.order_by(*order).limit(end - start).offset(total - end).tuples()][::-1]


class Holding(Model):
    """How many files of a kind there are, and what they take on the disk; kept by triggers, so that nobody
    walks through folders.
    """

    kind = peewee.TextField()  # photo, which is an original with its thumbnail, or attachment
    key_generation = peewee.IntegerField()  # of the key ring when they were sealed
    items = peewee.IntegerField()
    bytes = peewee.IntegerField()

    class Meta:
        table_name = "holdings"
        primary_key = peewee.CompositeKey("kind", "key_generation")


class Vocabulary(Model):
    """Every term of the search index and the number of photos that have it; written by `search.py` only."""

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
    noted_message_id = peewee.IntegerField(default=0)  # up to which the reasoner has looked at it

    class Meta:
        table_name = "conversations"


class Message(Model):
    id = peewee.AutoField()
    conversation_id: str  # peewee makes it of `conversation`
    conversation = peewee.ForeignKeyField(Conversation, on_delete="CASCADE", backref="messages")
    role = peewee.TextField()
    content = peewee.TextField(null=True)
    tool_calls = peewee.TextField(null=True)
    tool_call_id = peewee.TextField(null=True)
    tool_name = peewee.TextField(null=True)
    attachment_path = peewee.TextField(null=True)
    attachment_key = peewee.BlobField(null=True)
    attachment_type = peewee.TextField(null=True)
    attachment_bytes = peewee.IntegerField(default=0)  # as it was written
    attachment_generation = peewee.IntegerField(null=True)  # of the key ring when it was sealed
    # On a user message whose turn is over and was not yet read for memories: the memories that the model was
    # given, a JSON list.
    recalled = peewee.TextField(null=True)
    created_at = TimestampField()

    class Meta:
        table_name = "messages"


class FileFields(NamedTuple):
    """Where a row names a file that it owns."""

    path: peewee.Field  # relative to the data folder; null: it has none
    key: peewee.Field  # null: the file is not sealed
    sha256: peewee.Field | None = None  # of its content, where rows have that


# Every place of the database that names a file.
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
    """A value kept by `store_value`, or `default`."""
    row = StoredSetting.get_or_none(StoredSetting.name == name)
    return default if row is None else msgspec.json.decode(row.value)


def store_value(name: str, value: Any) -> None:
    """Keep a small JSON value: a runtime setting, a counter, the state of the circuit breaker."""
    StoredSetting.replace(name=name, value=msgspec.json.encode(value).decode()).execute()


def prove_writable() -> None:
    """Write a little, so that a full or read-only disk is found before a model is paid for what could not be
    kept. Needs a scope.
    """
    store_value("models.proof", secrets.token_hex(8))
