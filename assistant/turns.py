"""The turns of a conversation, with attached pictures: storing them, and reading them again.

A turn is a user message and everything up to the next one. The user message is stored when it arrives, so it
is not lost when the model fails. All that follows is stored in one transaction when the turn is over, so a
conversation never ends in a tool call without its answer. When a client sends the same message again after a
failure, it is not stored twice.

An attached picture is stored as the model gets it (upright, at most 1568 px, no metadata), in a sealed file
of its own: nothing needs the original again, and later turns need not decode it.
"""

import itertools
import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, NamedTuple

import msgspec
import peewee

import database
import disk
from clock import iso
from database import db
from errors import NotFound, Unreadable
from models import Conversation, Message
from spool import keep_bytes, new_place

MAX_TITLE = 60
ATTACHMENT_TYPE = "image/jpeg"
OWN_TOOL = "save_memory"  # its results are the person's or the model's words
CHUNK = 50  # messages that one query reads of a history

Turn = list[Message]  # a user message and what followed it, in order


class Earlier(NamedTuple):
    """What is sent again of a message; the fields of `Message`, which take ten times as long to make."""

    id: int
    role: str
    content: str | None
    tool_calls: str | None
    tool_call_id: str | None
    tool_name: str | None
    attachment_path: str | None
    attachment_key: bytes | None


def begin_turn(
    conversation_id: str | None, content: str, picture: bytes | None, *, device_id: str, now: datetime
) -> Message:
    """Store a user message, in a new conversation if there is none with this id; durable on return.

    `picture` is a JPEG. If the conversation's last message is the same one, still unanswered, that one is
    returned instead.
    """
    conversation_id = conversation_id or secrets.token_hex(16)
    repeated = unanswered(conversation_id, content, picture)
    if repeated is not None:
        return repeated
    message = Message(conversation=conversation_id, role="user", content=content, created_at=now)
    if picture is not None:
        path = new_place(database.store().attachments)
        message.attachment_key = keep_bytes(picture, path)
        disk.sync_file(path.parent)
        message.attachment_bytes = path.stat().st_size
        message.attachment_path = str(path.relative_to(database.store().folder))
        message.attachment_type = ATTACHMENT_TYPE
        message.attachment_generation = database.store().ring.generation
    try:
        with db.atomic():
            title = content.strip().splitlines()[0].strip()[:MAX_TITLE]
            db.execute_sql(
                """INSERT INTO conversations (id, title, device_id, created_at, updated_at, noted_message_id)
                VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at""",
                (conversation_id, title, device_id, iso(now), iso(now)),
            )
            message.save(force_insert=True)
    except BaseException:
        drop_unless_stored(message)
        raise
    return message


def unanswered(conversation_id: str, content: str, picture: bytes | None) -> Message | None:
    """The conversation's last message if it is this one of the person, still without an answer."""
    sql = "SELECT id, role, content FROM messages WHERE conversation_id = ? ORDER BY id DESC LIMIT 1"
    last = db.execute_sql(sql, (conversation_id,)).fetchone()
    if last is None or last[1:] != ("user", content):
        return None
    message: Message = Message.get_by_id(last[0])
    return message if _has_picture(message, picture) else None


def has_foreign_text(question: Message) -> bool:
    """Whether what others wrote is in a conversation up to this message: a picture, or a tool's finding."""
    known = db.execute_sql(
        f"SELECT {', '.join(Earlier._fields)} FROM messages WHERE conversation_id = ? AND id <= ?"  # noqa: S608
        " AND (role = 'tool' OR attachment_path IS NOT NULL) ORDER BY id DESC",
        (question.conversation_id, question.id),
    )
    return any(
        message.attachment_path is not None or is_foreign(message)
        for message in itertools.starmap(Earlier, known)
    )


def is_foreign(message: Message | Earlier) -> bool:
    """Whether text that others wrote is in the result of a tool."""
    name = message.tool_name or ""
    if name == OWN_TOOL:
        return False
    try:
        answer = msgspec.json.decode(message.content or "")
    except msgspec.DecodeError:
        return True
    if not isinstance(answer, dict) or answer.get("results") or answer.get("closest_in_meaning"):
        return True
    return bool(answer.get("error")) and name.startswith("mcp__")  # the server's own words


def drop_unless_stored(message: Message) -> None:
    """Remove a message's file if its row was not stored: even a commit can fail on a full disk."""
    path = message.attachment_path
    if path and not Message.select().where(Message.attachment_path == path).exists():
        (database.store().folder / path).unlink(missing_ok=True)


def end_turn(question: Message, following: Turn, *, recalled: list[str] | None, now: datetime) -> None:
    """Store what followed a user message. Raises `NotFound` when the conversation was deleted meanwhile.

    With `recalled`, the memories that the model was given, the turn is queued for being read for memories
    (`next_to_read`).
    """
    waiting = None if recalled is None else msgspec.json.encode(recalled).decode()
    with db.atomic():
        if not Message.update(recalled=waiting).where(Message.id == question.id).execute():
            raise NotFound("The conversation was deleted while the answer was being written.")
        for message in following:
            message.conversation_id = question.conversation_id
            message.save(force_insert=True)
        Conversation.update(updated_at=now).where(Conversation.id == question.conversation_id).execute()


def earlier_turns(question: Message) -> Iterator[list[Earlier]]:
    """The turns of a conversation before a user message, latest first; read lazily."""
    turn: list[Earlier] = []
    before = question.id
    while rows := _before(question.conversation_id, before):
        for message in rows:
            turn.insert(0, message)
            if message.role == "user":
                yield turn
                turn = []
        before = rows[-1].id
    if turn:
        yield turn


def picture_of(message: Message | Earlier) -> bytes:
    """The attached JPEG. Raises `Unreadable` when there is none, or its file is lost or damaged."""
    with open_picture(message) as file:
        return file.read()


def open_picture(message: Message | Earlier) -> BinaryIO:
    """A seekable reader of the attached JPEG. Raises `Unreadable`, here or from a read."""
    if message.attachment_path is None:
        raise Unreadable("No picture is attached to the message.")
    return disk.open_sealed(database.store().folder / message.attachment_path, message.attachment_key)


def next_to_read() -> tuple[Message, str, list[str]] | None:
    """The oldest user message not read for memories yet, its answer, and what was recalled for it."""
    waiting = peewee.SQL("recalled IS NOT NULL")  # exactly the condition of the partial index
    question = Message.select().where(waiting).order_by(Message.id).first()
    if question is None:
        return None
    following = (
        Message.select()
        .where(Message.conversation == question.conversation_id, Message.id > question.id)
        .order_by(Message.id)
    )
    answer = next(
        (message.content for message in following if message.role == "assistant" and message.content), ""
    )
    return question, answer, msgspec.json.decode(question.recalled, type=list[str])


def turn_of(question: Message) -> Turn:
    """A user message and what followed it, up to the next one."""
    turn = [question]
    same = (Message.conversation == question.conversation_id) & (Message.id > question.id)
    for message in Message.select().where(same).order_by(Message.id):
        if message.role == "user":
            break
        turn.append(message)
    return turn


def mark_read(message_id: int) -> bool:
    """Take a turn out of the queue of `next_to_read`. Returns False if it was not there."""
    return bool(
        Message.update(recalled=None)
        .where(Message.id == message_id, Message.recalled.is_null(False))
        .execute()
    )


def forget_picture(message_id: int) -> None:
    """Remove the picture from a message because its file is lost."""
    none = {
        "attachment_path": None,
        "attachment_key": None,
        "attachment_type": None,
        "attachment_generation": None,
    }
    Message.update(**none, attachment_bytes=0).where(Message.id == message_id).execute()


def is_kept(message: Message) -> bool:
    """Whether a message still exists: its conversation may be deleted while the answer is being written."""
    return Message.select().where(Message.id == message.id).exists()


def _before(conversation_id: str, message_id: int) -> list[Earlier]:
    found = db.execute_sql(
        f"SELECT {', '.join(Earlier._fields)} FROM messages WHERE conversation_id = ? AND id < ?"  # noqa: S608
        " ORDER BY id DESC LIMIT ?",
        (conversation_id, message_id, CHUNK),
    )
    return list(itertools.starmap(Earlier, found))


def _has_picture(message: Message, picture: bytes | None) -> bool:
    if picture is None or message.attachment_path is None:
        return picture is None and message.attachment_path is None
    return picture_of(message) == picture
