"""Conversations: listing, showing and deleting them; `/api/chat/conversations`. Their turns are stored in
`assistant/turns.py`.
"""

from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, cast

import flask
import msgspec
import peewee
from flask import Blueprint

import database
import gate
from assistant import confirmation
from assistant.turns import ATTACHMENT_TYPE, picture_of
from database import db
from errors import NotFound, Unreadable
from models import Conversation, Message
from web import inputs, shapes

MAX_LAST_MESSAGE = 200  # characters in a list
MAX_DEVICE = 256


def mark_noted(conversation_id: str, last_message_id: int) -> None:
    """Record that the reasoner has read the conversation up to this message."""
    Conversation.update(noted_message_id=last_message_id).where(Conversation.id == conversation_id).execute()


def page(number: int, size: int, *, device_id: str | None = None) -> list[shapes.ConversationItem]:
    """One page of conversations, latest first, each with its number of messages and its last message."""
    selected = Conversation.select()
    if device_id is not None:
        selected = selected.where(Conversation.device_id == device_id)
    found = list(
        selected.order_by(Conversation.updated_at.desc(), Conversation.id.desc()).paginate(number, size)
    )
    ids = [conversation.id for conversation in found]
    spoken = peewee.Case(None, [((Message.role != "tool") & Message.content.is_null(False), Message.id)])
    counts = Message.select(Message.conversation, peewee.fn.COUNT(Message.id), peewee.fn.MAX(spoken))
    counts = counts.where(Message.conversation.in_(ids)).group_by(Message.conversation)
    counted = {conversation_id: rest for conversation_id, *rest in _tuples(counts)}
    beginning = peewee.fn.SUBSTR(Message.content, 1, MAX_LAST_MESSAGE)
    latest_ids = [latest_id for _, latest_id in counted.values()]
    latest = Message.select(Message.id, beginning, Message.citations).where(Message.id.in_(latest_ids))
    last = {
        message_id: (text, [citation["photo_id"] for citation in msgspec.json.decode(citations or "[]")])
        for message_id, text, citations in _tuples(latest)
    }
    marks = gate.marks({photo_id for _, photo_ids in last.values() for photo_id in photo_ids})
    items = []
    for conversation in found:
        count, last_id = counted.get(conversation.id, (0, None))
        spoken_last, photo_ids = last.get(last_id, ("", []))
        found_marks = [marks[photo_id] for photo_id in photo_ids if photo_id in marks]
        kinds = gate.kinds_about(found_marks, conversation.title, spoken_last)
        derived = {"message_count": count, "last_message": spoken_last, "sensitive": kinds}
        items.append(shapes.of(conversation, shapes.ConversationItem, **derived))
    return items


def detail(conversation_id: str) -> shapes.ConversationDetail:
    """A conversation with all its messages. Raises `NotFound`."""
    conversation = Conversation.get_or_none(Conversation.id == conversation_id)
    if conversation is None:
        raise NotFound("Conversation not found")
    waiting = confirmation.waiting(conversation_id)
    shown = shapes.of(
        conversation,
        shapes.ConversationDetail,
        messages=_messages(conversation_id, 0),
        pending_calls=waiting,
    )
    if not waiting:
        del shown["pending_calls"]
    return shown


def messages_after(conversation_id: str, after_id: int) -> list[shapes.MessageFields]:
    """The messages with an id greater than `after_id`, ascending. Raises `NotFound`."""
    if not Conversation.select().where(Conversation.id == conversation_id).exists():
        raise NotFound("Conversation not found")
    return _messages(conversation_id, after_id)


def with_picture(conversation_id: str, message_id: int) -> Message:
    """The message of a conversation, if a picture is attached to it. Raises `NotFound`."""
    message: Message | None = Message.get_or_none(
        Message.id == message_id, Message.conversation == conversation_id
    )
    if message is None or message.attachment_path is None:
        raise NotFound("No picture is attached to a message with this id")
    return message


def delete(conversation_id: str) -> None:
    """Remove a conversation with its messages and attachments. Raises `NotFound`."""
    if not _delete(Conversation.id == conversation_id, most=1):
        raise NotFound("Conversation not found")


def purge(before: datetime, *, most: int) -> int:
    """Remove up to `most` conversations without a message since `before`; returns the number removed."""
    return _delete(Conversation.updated_at < before, most=most)


def purge_begun(before: datetime, *, most: int) -> int:
    """Remove up to `most` conversations that began before `before`, active ones too; returns how many."""
    return _delete(Conversation.created_at < before, most=most)


def _delete(where: peewee.Expression, *, most: int) -> int:
    with db.atomic():
        doomed = Conversation.select(Conversation.id).where(where).order_by(Conversation.updated_at)
        ids = [row[0] for row in _tuples(doomed.limit(most))]
        attached = Message.select(Message.attachment_path).where(
            Message.conversation.in_(ids), Message.attachment_path.is_null(False)
        )
        paths = [row[0] for row in _tuples(attached)]
        Conversation.delete().where(Conversation.id.in_(ids)).execute()
    # After the commit: a crash here leaves files without a row, which are unreadable; clean-up removes them.
    for path in paths:
        (database.store().folder / path).unlink(missing_ok=True)
    return len(ids)


def _tuples(query: "peewee.ModelSelect[Any]") -> list[tuple[Any, ...]]:
    # peewee's stubs type the rows of `tuples()` as models.
    return cast(list[tuple[Any, ...]], list(query.tuples()))


def _messages(conversation_id: str, after_id: int) -> list[shapes.MessageFields]:
    later = (
        Message.select()
        .where(Message.conversation == conversation_id, Message.id > after_id)
        .order_by(Message.id)
    )
    return [
        shapes.of(
            message,
            shapes.MessageFields,
            has_attachment=message.attachment_path is not None,
            citations=msgspec.json.decode(message.citations or "[]"),
        )
        for message in later
    ]


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("conversations", __name__, url_prefix="/api/chat/conversations")


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: inputs.PageSize = 50
    device_id: str | None = None


class AfterQuery(msgspec.Struct):
    after_id: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.ConversationList:
    """List conversations, latest first. Each with the beginning of its last message. Without `device_id`,
    those of all devices.
    """
    return {"conversations": page(query.page, query.page_size, device_id=query.device_id)}


@routes.get("/<conversation_id>")
@inputs.operation(NotFound)
def show(conversation_id: str) -> shapes.ConversationDetail:
    """Show a conversation with all its messages. Calls of tools that wait for the person's word are in
    `pending_calls`.
    """
    return detail(conversation_id)


@routes.get("/<conversation_id>/messages")
@inputs.operation(NotFound)
def incremental(conversation_id: str, query: AfterQuery) -> shapes.MessageList:
    """List the messages with an id greater than `after_id`, ascending. A client that knows the conversation
    pulls what is new with the largest id it has.
    """
    pulled: shapes.MessageList = {"messages": messages_after(conversation_id, query.after_id)}
    if waiting := confirmation.waiting(conversation_id):
        pulled["pending_calls"] = waiting
    return pulled


@routes.get("/<conversation_id>/messages/<id:message_id>/attachment")
@inputs.operation(NotFound, Unreadable)
def attachment(
    conversation_id: str, message_id: int
) -> Annotated[flask.Response, inputs.Media((ATTACHMENT_TYPE,), has_etag=True)]:
    """Get the picture that is attached to a message, as the model got it. It is a JPEG, made smaller where
    the original was large. A message without a picture is 404.
    """
    message = with_picture(conversation_id, message_id)
    fresh = flask.Response(mimetype=ATTACHMENT_TYPE)
    fresh.set_etag(PurePath(str(message.attachment_path)).name)  # a file is never written again
    if not flask.request.if_none_match.contains_weak(fresh.get_etag()[0] or ""):
        fresh.data = picture_of(message)
    fresh.headers["Content-Security-Policy"] = "sandbox"
    # A copy is asked about each time, with the key: it may have been revoked, and the picture deleted.
    fresh.headers["Cache-Control"] = "private, no-cache"
    fresh.vary.add("Authorization")
    fresh.make_conditional(flask.request.environ)
    return fresh


@routes.delete("/<conversation_id>")
@inputs.operation(NotFound)
def remove(conversation_id: str) -> shapes.Done:
    """Delete a conversation with its messages and attachments. Memories that were taken from it stay."""
    delete(conversation_id)
    return {"message": "Deleted"}
