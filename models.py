"""The tables and their invariants, and small stored values.

More than 550 lines, because all tables are listed in one place; most lines are columns.
"""

import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec
import peewee

from clock import iso, utc_now
from database import db


class TimestampField(peewee.Field):
    """UTC without a zone, stored as `clock.iso` writes it: as text it sorts in order of time."""

    field_type = "TEXT"

    def db_value(self, value: datetime | str | None) -> str | None:
        return iso(value) if isinstance(value, datetime) else value

    def python_value(self, value: str | None) -> datetime | None:
        return datetime.fromisoformat(value) if value is not None else None


def _plural(model: type[peewee.Model]) -> str:
    return f"{peewee.make_snake_case(model.__name__)}s"  # type: ignore[attr-defined]


class Model(peewee.Model):
    """Its table has its name in the plural, unless it gives another one."""

    class Meta:
        database = db
        table_function = _plural


READS = 3  # times that reading the text of a photo is tried


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
    away = peewee.IntegerField(default=0)  # where the original is, as `buckets.away` has it
    away_bytes = peewee.IntegerField(default=0)  # of the original in the bucket, sealed; 0: it is here
    token_id = peewee.IntegerField(null=True)  # of the token that uploaded it; null: the owner's key
    perceptual_hash = peewee.BlobField(null=True)  # of `pictures`; null: not computed yet
    taken_from = peewee.TextField(null=True)  # a `taken.Source`; null: stored before there were any


class Analysis(Model):
    """The analysis of a photo and also its place in the queue. Every photo has exactly one from the start,
    except in the trash: there the row waits in `Trash`.
    """

    id = peewee.AutoField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, unique=True, on_delete="CASCADE", backref="analyses")
    device_id = peewee.TextField()  # the photo's, copied so that one index serves each filter
    taken_at = TimestampField()  # the photo's `original_timestamp`, for the same reason; set by a trigger
    status = peewee.TextField()
    app_name = peewee.TextField(default="")
    content_category = peewee.TextField(default="")
    intent = peewee.TextField(default="")
    title = peewee.TextField(default="")
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
    # How often reading its text on this machine may still be tried; 0: it was read, or has failed too often.
    reads_left = peewee.IntegerField(default=READS)
    kept = peewee.BooleanField(default=False)  # a person keeps the photo: retention spares it
    # Another photo of its stack is shown: 1, one of the same device; 2, only one of another device. Triggers
    # keep it.
    covered = peewee.IntegerField(default=0)
    sensitive = peewee.TextField(default="")  # the kinds of what is sensitive on it, with blanks between them
    cleared = peewee.BooleanField(default=False)  # a person says that it is not sensitive
    judged = peewee.BooleanField(default=True)  # False: stored before the rules, which look at it later
    # A JSON list of `engines.records.Record`; null: they were not looked for yet.
    records = peewee.TextField(null=True)

    class Meta:
        table_name = "analyses"


class Reading(Model):
    """The lines of text that were read on a photo, packed. A photo without a row was not read."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="readings")
    width = peewee.IntegerField()  # pixels of the upright picture in which the boxes are measured
    height = peewee.IntegerField()
    lines = peewee.BlobField()  # as `engines.packing` writes it
    reader = peewee.TextField()  # the engine


class AppMark(Model):
    """A text on a photo that may be the name of its app."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="app_marks")
    folded = peewee.TextField()  # its letters and digits
    name = peewee.TextField()
    chance = peewee.FloatField()  # by this photo alone

    class Meta:
        table_name = "wordmarks"
        primary_key = peewee.CompositeKey("photo", "folded")


class Meaning(Model):
    """The vector of what a photo's text means, as `engines.vectors` packs it, of each maker."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="meanings")
    maker = peewee.TextField()  # `local` or `provider`
    model = peewee.TextField()  # what made it: of a provider, the host, the name and the dimensions
    vector = peewee.BlobField()

    class Meta:
        primary_key = peewee.CompositeKey("photo", "maker")


class MeaningSigns(Model):
    """The signs of a photo's vector. A later id is a later change."""

    id = peewee.AutoField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="meaning_signs")
    maker = peewee.TextField()
    model = peewee.TextField()
    signs = peewee.BlobField()

    class Meta:
        table_name = "meaning_signs"
        indexes = ((("photo", "maker"), True),)


class MeaningDue(Model):
    """A photo whose vector of this maker is missing, or older than its text. Triggers insert the rows."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="meanings_due")
    maker = peewee.TextField()
    changes = peewee.IntegerField(default=1)  # of its text since it has been due
    failures = peewee.IntegerField(default=0)  # over its text: the child died, or the answer was unusable
    leased_until = peewee.IntegerField(default=0)  # seconds since 1970

    class Meta:
        table_name = "meanings_due"
        primary_key = peewee.CompositeKey("photo", "maker")


class Stacked(Model):
    """A photo in a stack: the same screen several times. One that is alone in its stack is shown as any."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="stacked")
    stack_id = peewee.IntegerField()  # the id of the photo that was its first

    class Meta:
        table_name = "stacked"


class Uncompared(Model):
    """A photo that is due to be compared with others, for its stack. Triggers add what is new or was read."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="uncompared")

    class Meta:
        table_name = "uncompared"


class Stack(NamedTuple):
    """The photos of a stack: the shown one, then the newest first; and its best one (`shapes.Stack`)."""

    photo_ids: list[int]
    best: int


def stacks_of(photo_ids: Iterable[int]) -> dict[int, Stack]:
    """The stack of each of these photos that is in one with others."""
    # Without peewee, which takes longer to write it than SQLite to find that there is none.
    rows = db.execute_sql(
        """SELECT asked.photo_id, member.photo_id, kept, length(visible_text), width * height
        FROM stacked AS asked JOIN stacked AS member ON member.stack_id = asked.stack_id
        JOIN analyses AS a ON a.photo_id = member.photo_id JOIN photos ON photos.id = member.photo_id
        WHERE asked.photo_id IN (SELECT value FROM json_each(?))
        ORDER BY covered <> 0, taken_at DESC, a.photo_id DESC""",
        (msgspec.json.encode(list(photo_ids)).decode(),),
    )
    found: dict[int, list[tuple[int, list[int]]]] = {}
    for photo_id, member_id, *value in rows.fetchall():
        found.setdefault(photo_id, []).append((member_id, value))
    return {
        photo_id: Stack([member_id for member_id, _ in members], max(members, key=lambda one: one[1])[0])
        for photo_id, members in found.items()
        if len(members) > 1
    }


class OwnWords(Model):
    """What a person wrote about a photo, each text in place of the analysis's. Null: nothing of their own."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="own_words")
    title = peewee.TextField(null=True)
    summary = peewee.TextField(null=True)
    note = peewee.TextField(null=True)
    text = peewee.TextField(null=True)  # corrects what was read on it
    records = peewee.TextField(null=True)  # a JSON list; an empty one says that there are none

    class Meta:
        table_name = "own_words"


class Record(Model):
    """What is shown of a photo's records, in columns for lists, sums and searches."""

    id = peewee.AutoField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="record_rows")
    place = peewee.IntegerField()  # among the records of its photo
    type = peewee.TextField()
    day = peewee.TextField()  # the record's own, else the one on which the picture was taken; local
    amount = peewee.TextField(null=True)  # decimal
    currency = peewee.TextField(null=True)
    party = peewee.TextField()  # who or what it is with, folded
    words = peewee.TextField()  # of all values, folded
    plain = peewee.TextField(null=True)  # these without what is sensitive; null: nothing of it may leave


class Thread(Model):
    """An order, parcel, trip, booking, bill or page on several screenshots, derived from their traces."""

    id = peewee.AutoField()
    type = peewee.TextField()
    state = peewee.TextField()
    photos = peewee.IntegerField()
    first_at = peewee.TextField()  # when its oldest screenshot was taken, and its newest
    last_at = peewee.TextField()
    ends_at = peewee.TextField()  # the last time that it names, local; "" without one
    said_photo_id = peewee.IntegerField()  # the photo that says the state, and its line
    said_line = peewee.IntegerField(null=True)
    told = peewee.TextField(default="")  # states that a note has told of, with blanks between


class ThreadTrace(Model):
    """What a record is recognised by again (`rules.joins.Trace`)."""

    photo_id: int  # added by peewee for `photo`
    thread_id: int | None  # added by peewee for `thread`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="thread_traces")
    place = peewee.IntegerField()  # of the record among those of its photo
    thread = peewee.ForeignKeyField(Thread, null=True, on_delete="SET NULL", backref="traces")
    taken_at = TimestampField()
    trace = peewee.TextField()
    amount = peewee.TextField()  # of payments
    day = peewee.TextField()

    class Meta:
        primary_key = peewee.CompositeKey("photo", "place")


class ThreadKey(Model):
    """A key of a trace; records that share one are about one thing, with some exceptions."""

    key = peewee.TextField()
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="thread_keys")
    place = peewee.IntegerField()

    class Meta:
        primary_key = peewee.CompositeKey("key", "photo", "place")


class ThreadApart(Model):
    """Two photos that are never in one thread, because a person has taken one of them out."""

    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="apart")
    other = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="apart_from")

    class Meta:
        table_name = "threads_apart"
        primary_key = peewee.CompositeKey("photo", "other")


class Shown(Model):
    """What is shown of a photo outside of the trash: own words, else the analysis's. A read-only view."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, backref="shown")
    device_id = peewee.TextField()
    taken_at = TimestampField()
    status = peewee.TextField()
    app_name = peewee.TextField()
    content_category = peewee.TextField()
    intent = peewee.TextField()
    entities = peewee.TextField()
    visible_text = peewee.TextField()  # as the analysis has it
    kept = peewee.BooleanField()
    sensitive = peewee.TextField()
    cleared = peewee.BooleanField()
    withheld = peewee.BooleanField()  # it has a redaction, or own words that are not judged yet
    title = peewee.TextField()
    summary = peewee.TextField()
    text = peewee.TextField()
    records = peewee.TextField()  # a JSON list
    note = peewee.TextField()
    # The person's; empty: nothing of their own.
    own_title = peewee.TextField()
    own_summary = peewee.TextField()
    own_text = peewee.TextField()
    own_records = peewee.TextField()
    tags = peewee.TextField()  # a JSON list, in alphabetical order

    class Meta:
        table_name = "shown"


class PhotoTag(Model):
    """A tag of a photo that is not in the trash."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="tags")
    folded = peewee.TextField()  # as tags are compared
    tag = peewee.TextField()  # as the person wrote it
    taken_at = TimestampField()  # the photo's `original_timestamp`, so that an index has this order

    class Meta:
        primary_key = peewee.CompositeKey("photo", "folded")


class Trash(Model):
    """A photo in the trash, with its analysis row and its tags, which no other table has meanwhile."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="trash")
    deleted_at = TimestampField()
    analysis = peewee.TextField()  # a JSON object: column -> value, without the photo's id
    tags = peewee.TextField()  # a JSON list

    class Meta:
        table_name = "trash"


class Trait(Model):
    """What a search filters by, beside the columns of an analysis. A photo without a row was not opened and
    holds nothing. The row stays while the photo is in the trash.
    """

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="marks")
    opened = peewee.BooleanField(default=False)  # a person has opened it
    holds = peewee.IntegerField(default=0)  # bits, as `rules.holdings` has them

    class Meta:
        table_name = "marks"


class SavedSearch(Model):
    """A query that a person has saved. Its id is never given again."""

    id = peewee.AutoField()
    name = peewee.TextField()
    folded = peewee.TextField(unique=True)  # the name as names are compared
    query = peewee.TextField()
    created_at = TimestampField()
    opened_at = TimestampField()

    class Meta:
        table_name = "saved_searches"


# Conditions of a selection of photos. `kept = 1` is literal, as in the partial index `analyses_kept`.
IN_TRASH = peewee.fn.EXISTS(Trash.select(peewee.SQL("1")).where(Trash.photo == Photo.id))
# As in the partial indexes `analyses_sensitive` and `analyses_unjudged`.
IS_SENSITIVE = peewee.SQL("sensitive <> ''")
UNJUDGED = peewee.SQL("judged = 0")
IS_KEPT = peewee.fn.EXISTS(
    Analysis.select(peewee.SQL("1")).where(peewee.SQL("kept = 1") & (Analysis.photo == Photo.id))
)


class Tally(Model):
    """The number of photos that are alike in all that lists filter by. Triggers keep it for `tallies`."""

    app_name = peewee.TextField()
    month = peewee.TextField()  # like 2026-11, UTC
    device_id = peewee.TextField()
    status = peewee.TextField()
    intent = peewee.TextField()
    content_category = peewee.TextField()
    kept = peewee.IntegerField()
    covered = peewee.IntegerField()
    photos = peewee.IntegerField()

    class Meta:
        table_name = "tallies"
        primary_key = peewee.CompositeKey(
            "app_name", "month", "device_id", "status", "intent", "content_category", "kept", "covered"
        )


class Selected(NamedTuple):
    """Rows of a table in plain SQL: each list needs some, and peewee takes longer to write a statement than
    SQLite to run it. Conditions are constants of the program; what a client sends is in the values.
    """

    table: str
    conditions: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def where(self, condition: str, *values: Any) -> "Selected":
        return Selected(self.table, (*self.conditions, condition), (*self.values, *values))

    @property
    def sql(self) -> str:
        """From the name of the table on."""
        return f"{self.table} WHERE {' AND '.join(self.conditions)}" if self.conditions else self.table

    def total(self) -> int:
        sql = f"SELECT count(*) FROM {self.sql}"  # noqa: S608
        return cast(int, db.execute_sql(sql, self.values).fetchone()[0])


def page_of(selected: Selected, order: tuple[str, ...], number: int, size: int) -> list[int]:
    """Page `number` (from 1) of the photos' ids in `selected`, descending by the columns `order`."""
    by = ", ".join(f"{column} DESC" for column in order)
    sql = f"SELECT photo_id FROM {selected.sql} ORDER BY {by} LIMIT ? OFFSET ?"  # noqa: S608
    return [row[0] for row in db.execute_sql(sql, (*selected.values, size, (number - 1) * size)).fetchall()]


class Vocabulary(Model):
    """Every term of the search index and the number of photos that contain it."""

    id = peewee.AutoField()
    term = peewee.TextField(unique=True)
    documents = peewee.IntegerField()
    hidden = peewee.IntegerField(default=0)  # of these, the ones that have it only in what is redacted

    class Meta:
        table_name = "vocabulary"


class Redaction(Model):
    """The searchable texts of a photo that is withheld (`lexicon.withheld`), without what is sensitive."""

    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, primary_key=True, on_delete="CASCADE", backref="redactions")
    texts = peewee.TextField()  # a JSON list, as `lexicon.texts_of` returns it


class SyncState(Model):
    device_id = peewee.TextField(primary_key=True)
    device_name = peewee.TextField(default="")
    last_synced_timestamp = TimestampField(null=True)
    last_sync_time = TimestampField()
    total_synced = peewee.IntegerField(default=0)


class Conversation(Model):
    id = peewee.TextField(primary_key=True)
    title = peewee.TextField()
    device_id = peewee.TextField(default="")
    created_at = TimestampField()
    updated_at = TimestampField()
    noted_message_id = peewee.IntegerField(default=0)  # the last one that the reasoner has read


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
    citations = peewee.TextField(null=True)  # a JSON list, of an answer (`assistant/citations.py`)
    created_at = TimestampField()


class PausedTurn(Model):
    """A turn that waits for the person (`assistant/confirmation.py`)."""

    message_id: int  # added by peewee for `message`
    message = peewee.ForeignKeyField(Message, primary_key=True, on_delete="CASCADE")
    state = peewee.TextField()  # JSON


class AskedCall(Model):
    """A call of a tool about which the person is or was asked."""

    id = peewee.TextField(primary_key=True)
    message_id: int  # added by peewee for `message`
    message = peewee.ForeignKeyField(Message, on_delete="CASCADE")  # the user message of its turn
    place = peewee.IntegerField()  # among the calls of its round
    tool = peewee.TextField()
    server = peewee.TextField()  # the host that gets the arguments
    server_id = peewee.TextField(null=True)  # of an MCP server
    arguments = peewee.TextField()  # a JSON object
    sensitive = peewee.TextField()  # kinds, with blanks between them
    decision = peewee.TextField(null=True)  # allowed, refused or expired; null: it waits
    for_conversation = peewee.BooleanField(default=False)  # this tool may be called again in it
    result = peewee.TextField(null=True)  # JSON; null: it did not run, or did not finish
    asked_at = TimestampField()


class AgendaItem(Model):
    """What happens on a day that a screenshot names. Rows of one event share `event_id`."""

    id = peewee.AutoField()
    event_id = peewee.IntegerField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE", backref="agenda")
    kind = peewee.TextField()
    title = peewee.TextField()
    starts_at = peewee.TextField()  # local time without a zone, as `rules.occasions` writes it
    ends_at = peewee.TextField(null=True)
    last_at = peewee.TextField()  # the end for comparisons: of a whole day like 2026-11-22T24
    all_day = peewee.BooleanField()
    quote = peewee.TextField()  # the line that it is on
    line = peewee.IntegerField()  # its index in the reading
    dismissed_at = TimestampField(null=True)
    evening_at = TimestampField(null=True)  # when it was announced the evening before
    morning_at = TimestampField(null=True)  # and in the morning
    created_at = TimestampField()
    changed_at = TimestampField()
    revision = peewee.IntegerField(default=0)  # changes since then
    trashed = peewee.BooleanField(default=False)  # the photo is in the trash; triggers keep it


class ForgottenOriginal(Model):
    """An object in the bucket that no photo names any more. Triggers write it."""

    path = peewee.TextField(primary_key=True)


class Discarded(Model):
    """A file that a row has named, and none does any more. Triggers write it."""

    path = peewee.TextField(primary_key=True)

    class Meta:
        table_name = "discarded"


class FileFields(NamedTuple):
    """The fields by which a row names a file that it owns."""

    path: peewee.Field  # relative to the data folder; null: no file
    key: peewee.Field  # null: the file is not sealed
    sha256: peewee.Field | None = None  # of the content; None: the table has no such field
    away: peewee.Field | None = None  # whether the file may be in the bucket; None: it is always here


# All fields of the database that name files.
FILES = {
    Photo: (
        FileFields(Photo.original_path, Photo.file_key, Photo.sha256, Photo.away),
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


class McpServer(Model):
    id = peewee.TextField(primary_key=True)
    name = peewee.TextField()
    url = peewee.TextField()
    description = peewee.TextField(default="")
    enabled = peewee.BooleanField(default=True)
    trusted = peewee.BooleanField(default=False)  # the person is not asked before calls
    created_at = TimestampField()


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
    changed_at = TimestampField(default=utc_now)  # its text
    pinned_at = TimestampField(null=True)


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


class Token(Model):
    """A token of a device or program. Its id is never given again, because photos name it."""

    id = peewee.AutoField()
    name = peewee.TextField()
    scope = peewee.TextField()
    digest = peewee.BlobField(unique=True)  # SHA-256 of the token
    device_id = peewee.TextField(default="")
    owns_device = peewee.BooleanField(default=False)  # nobody else uses that device
    is_paired = peewee.BooleanField(default=False)  # a pairing code was exchanged for it
    created_at = TimestampField()
    last_used_at = TimestampField(null=True)


class Pairing(Model):
    """A pairing code that waits to be redeemed."""

    id = peewee.AutoField()
    digest = peewee.BlobField(unique=True)  # SHA-256 of the code
    name = peewee.TextField(default="")
    scope = peewee.TextField()
    device_id = peewee.TextField(default="")  # that the token will own; empty: the first one that it sends
    expires_at = TimestampField()


class Share(Model):
    """A link to a photo for somebody without a key, and what is painted over on it."""

    id = peewee.AutoField()
    photo_id: int  # added by peewee for `photo`
    photo = peewee.ForeignKeyField(Photo, on_delete="CASCADE")
    token_id: int | None
    token = peewee.ForeignKeyField(Token, null=True, on_delete="CASCADE")  # that made it; null: the owner
    digest = peewee.BlobField(unique=True)  # SHA-256 of the secret in the address
    boxes = peewee.TextField()  # JSON: [{left, top, width, height}], in parts of the picture's
    created_at = TimestampField()
    expires_at = TimestampField()
    max_views = peewee.IntegerField(null=True)
    views = peewee.IntegerField(default=0)
    last_viewed_at = TimestampField(null=True)


class Feed(Model):
    """An address at which a program reads the agenda, the notes or a search, without a key."""

    id = peewee.AutoField()
    kind = peewee.TextField()
    query = peewee.TextField(default="")  # of a search
    digest = peewee.BlobField(unique=True)  # SHA-256 of the secret in the address
    token_id: int | None  # added by peewee for `token`
    token = peewee.ForeignKeyField(Token, null=True, on_delete="CASCADE")  # that made it; null: the owner
    created_at = TimestampField()
    last_used_at = TimestampField(null=True)
    fingerprint = peewee.BlobField(default=b"")  # of what it held last
    changed_at = TimestampField()  # when it began to hold that


class CalendarEntry(Model):
    """An item of the agenda as calendars know it."""

    item = peewee.TextField(primary_key=True)  # as the feed names it
    fingerprint = peewee.BlobField()
    sequence = peewee.IntegerField(default=0)  # how often it was changed
    starts_at = peewee.TextField()  # local time
    all_day = peewee.BooleanField()
    changed_at = TimestampField()
    cancelled_at = TimestampField(null=True)

    class Meta:
        table_name = "calendar_entries"


class Webhook(Model):
    """An address that is sent events."""

    id = peewee.AutoField()
    name = peewee.TextField()
    url = peewee.TextField()
    secret = peewee.TextField()  # of its signatures
    events = peewee.TextField()  # with blanks between them
    enabled = peewee.BooleanField(default=True)
    problem = peewee.TextField(default="")  # why it was switched off
    failures = peewee.IntegerField(default=0)  # in a row
    failing_since = TimestampField(null=True)
    rests_until = TimestampField(null=True)
    dropped = peewee.IntegerField(default=0)  # events for which its queue had no room
    created_at = TimestampField()


class Delivery(Model):
    """An event on its way to a webhook, or in its log."""

    id = peewee.AutoField()
    webhook_id: int  # added by peewee for `webhook`
    webhook = peewee.ForeignKeyField(Webhook, on_delete="CASCADE", backref="deliveries")
    message_id = peewee.TextField()  # the same in every attempt
    event = peewee.TextField()
    subject = peewee.IntegerField()  # id of the row that it is about
    status = peewee.TextField()  # waiting, delivered, failed or withdrawn
    attempts = peewee.IntegerField(default=0)
    due_at = TimestampField()
    tried_at = TimestampField(null=True)
    answer = peewee.IntegerField(null=True)  # HTTP status
    problem = peewee.TextField(default="")
    created_at = TimestampField()

    class Meta:
        table_name = "deliveries"


class WatchedFile(Model):
    """A file of a watched folder that was stored, ignored or refused."""

    key = peewee.BlobField(primary_key=True)  # digest of its place, size and time
    folder = peewee.TextField()
    content = peewee.BlobField(null=True)  # SHA-256; null: not a picture, or not read
    outcome = peewee.TextField()  # stored, known, ignored, failed, unreadable or unlisted
    name = peewee.TextField(default="")  # only of a file that failed
    problem = peewee.TextField(default="")
    seen_at = TimestampField()


class StoredSetting(Model):
    name = peewee.TextField(primary_key=True)
    value = peewee.TextField()  # JSON

    class Meta:
        table_name = "settings"


def stored_value(name: str, default: Any = None, base: peewee.Database | None = None) -> Any:
    """The value stored by `store_value` under `name`, or `default`; of the open database, or of `base`."""
    row = StoredSetting.select().where(StoredSetting.name == name).get_or_none(base)
    return default if row is None else msgspec.json.decode(row.value)


def store_value(name: str, value: Any, base: peewee.Database | None = None) -> None:
    """Store a small JSON value: a runtime setting, a counter, the state of the circuit breaker."""
    row = {"name": name, "value": msgspec.json.encode(value).decode()}
    StoredSetting.insert(**row).on_conflict_replace().execute(base)


def stored_secret(name: str) -> str:
    """A random text of 192 bits: made by the first call with this name, and stored. Needs a scope."""
    with db.atomic():
        secret: str | None = stored_value(name)
        if secret is None:
            secret = secrets.token_urlsafe(24)
            store_value(name, secret)
    return secret


def prove_writable() -> None:
    """Write a small value: a full or read-only disk then fails before a model call that costs money.

    Needs a scope.
    """
    store_value("models.proof", secrets.token_hex(8))
