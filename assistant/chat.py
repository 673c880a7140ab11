"""The assistant: one turn of a conversation, from the person's message to the answer; `/api/chat`.

A turn has an opening (`assistant/openings.py`), rounds of the model and its tools (`assistant/rounds.py`),
and an end, which is here. The database is open only for moments, never during a call of a model or a tool.
The person's message is stored before anything can fail, the rest when the turn is over
(`assistant/turns.py`).

A call that would send something out may wait for the person (`assistant/confirmation.py`): the turn is then
interrupted, and goes on when all such calls are answered, or when the same message is sent again.

Turns of one conversation run one after the other. At most `MOST_AT_ONCE` turns run at the same time, because
each holds a server thread while its model works, and uploads, lists and searches need threads, too.

Memories are extracted later, in the background, and only from the person's own words
(`assistant/recollection.py`).
"""

import contextlib
import logging
import secrets
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, cast

import msgspec
from flask import Blueprint
from werkzeug.datastructures import FileStorage

import database
import llm
import loops
import pictures
from assistant import confirmation, conversations, openings, recollection, turns
from assistant.citations import Citation
from assistant.openings import Opening, UserMessage
from assistant.rounds import Rounds
from clock import utc_now
from database import db
from engines import configuration, ledger
from errors import BadInput, Conflict, ModelFailure, NotFound, SnaploreError, Unavailable
from locks import named_lock
from models import AskedCall
from settings import MEGABYTE, Settings
from spool import Spool
from web import inputs, shapes

log = logging.getLogger(__name__)

MAX_MESSAGE = 32_768  # characters
MAX_ATTACHMENT = 20 * MEGABYTE
READ_PATIENCE = 5.0  # seconds that a message waits for the reader, which may be reading another picture

# Half of the server's 16 threads (gunicorn.conf.py).
MOST_AT_ONCE = 8
TURN_PATIENCE = 60.0  # seconds that a message waits for the conversation's previous turn
CONVERSATION_BUSY = "The conversation's previous message is still being answered."
BUSY_AGAIN = 5.0  # seconds, for Retry-After

ATTACHED = {"zh": "发送了一个附件", "en": "Sent an attachment"}


class Reply(msgspec.Struct, frozen=True):
    conversation_id: str
    content: str
    tool_calls: list[shapes.ToolCall]  # all calls of the turn
    pending_calls: list[shapes.PendingCall] | None = None  # None: the client did not ask for them
    citations: list[Citation] = []


# ----------------------------------------------------------------------------------------------------- a turn


def send(settings: Settings, message: UserMessage, *, clock: Callable[[], datetime] = utc_now) -> Reply:
    """Answer a message. Opens the database itself, for moments.

    Raises `NotFound` for an unknown or disabled skill; `Unavailable` when too many chats run, the
    conversation is busy or the day's tokens are used up; `ModelFailure` when the model gives no answer. After
    the last two, the message stays in the conversation.
    """
    conversation_id = message.conversation_id or secrets.token_hex(16)
    with _turn_of(conversation_id):
        with database.scope():
            opening = openings.begin(settings, message, conversation_id, now=clock())
            rounds = Rounds(settings, opening, clock)
        return _complete(opening, rounds, clock)


def answer_call(
    settings: Settings,
    conversation_id: str,
    call_id: str,
    *,
    allow: bool,
    for_conversation: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> Reply:
    """Run or refuse a call that waits for the person; after the last one, go on with its turn. Opens the
    database itself, for moments. With `for_conversation`, this tool of this server is not asked about again
    in the conversation, unless something sensitive is in the arguments.

    Raises `NotFound` for an unknown call, `Conflict` for one that was answered, and what `send` raises. After
    a failure of the model, the same message sent again goes on with the turn; no call that was answered runs
    again.
    """
    with database.scope():
        confirmation.unanswered(conversation_id, call_id)
    with _turn_of(conversation_id):
        with database.scope():
            call = confirmation.unanswered(conversation_id, call_id)  # the turn before may have answered it
            opening = openings.resume(settings, conversation_id, now=clock())
            rounds = Rounds(settings, opening, clock)
            confirmation.decide(call, allow=allow, for_conversation=for_conversation)
        return _complete(opening, rounds, clock, call if allow else None)


def attached(file: Spool) -> bytes:
    """The attached picture as a JPEG, reduced for models.

    Raises `TooLarge`, `BadInput` for an empty file, and `UnsupportedImage`.
    """
    file.check()
    with file.open() as picture:
        return pictures.for_model(picture)


def read_on(file: Spool, settings: Settings) -> str:
    """The text of an attached picture for a remote model, which gets the picture reduced: of a long one it
    could read nothing. "" for the embedded model, which reads by itself, and where reading is not possible.
    """
    with database.scope():
        if not llm.reads_first(configuration.current(settings), settings):
            return ""
    try:
        with file.open() as picture:
            page, _ = llm.reader(settings).read(picture, patience=READ_PATIENCE)
    except (SnaploreError, OSError) as problem:
        log.info("an attached picture is not read: %s", type(problem).__name__)
        return ""
    return "\n".join(line.text for line in page.lines)


@contextlib.contextmanager
def _turn_of(conversation_id: str) -> Iterator[None]:
    """One of the places for turns, and the only turn of its conversation. Raises `Unavailable`."""
    turns = database.store().folder / "turns"
    with _places.one(), named_lock(turns, conversation_id, TURN_PATIENCE, busy=CONVERSATION_BUSY):
        yield
    recollection.finished.send()


def _complete(
    opening: Opening, rounds: Rounds, clock: Callable[[], datetime], allowed: AskedCall | None = None
) -> Reply:
    """Run the turn to its end, or until the person must be asked, and store it with its tokens."""
    pending: list[shapes.PendingCall] = []
    try:
        rounds.run(allowed)
        with database.scope(), db.atomic():
            if rounds.is_waiting:
                pending = _pause(opening, rounds, now=clock())
            else:
                _end(opening, rounds, now=clock())
            _record(opening, rounds, now=clock())
    except BaseException as problem:
        rounds.count(getattr(problem, "usage", None))
        if rounds.usage.calls:
            with database.scope():
                _record(opening, rounds, now=clock())
        raise
    calls = [
        call
        for message in rounds.following
        if message.tool_calls
        for call in msgspec.json.decode(message.tool_calls)
    ]
    return Reply(
        opening.conversation_id,
        rounds.text,
        calls,
        pending if opening.message.confirm else None,
        rounds.citations,
    )


def _record(opening: Opening, rounds: Rounds, *, now: datetime) -> None:
    ledger.record(rounds.usage, purpose="chat", model=opening.model.identity, now=now)


def _pause(opening: Opening, rounds: Rounds, *, now: datetime) -> list[shapes.PendingCall]:
    """Store the interrupted turn; returns the calls that wait for the person."""
    if not turns.is_kept(opening.question):
        raise NotFound("The conversation was deleted while the answer was being written.")
    if rounds.asked:
        confirmation.pause(opening.question.id, rounds.paused, rounds.asked, now=now)
    return confirmation.waiting(opening.conversation_id)


def _end(opening: Opening, rounds: Rounds, *, now: datetime) -> None:
    """Store the messages that followed."""
    recalled = opening.recalled if opening.tells else None
    turns.end_turn(opening.question, rounds.following, recalled=recalled, now=now)
    confirmation.close(opening.question.id)


_places = loops.Places(MOST_AT_ONCE, full="Too many chats are running.", retry_after=BUSY_AGAIN)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("chat", __name__, url_prefix="/api/chat")

Content = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE)]
DeviceId = Annotated[str, msgspec.Meta(max_length=conversations.MAX_DEVICE)]
SkillId = Annotated[str, msgspec.Meta(max_length=64)]
Confirm = Annotated[
    bool,
    msgspec.Meta(
        description="the client can ask the person about calls of tools that send something out: the answer"
        " may have `pending_calls`"
    ),
]


class MessageBody(msgspec.Struct):
    message: Content
    conversation_id: shapes.ConversationId | None = None
    device_id: DeviceId | None = None
    skill_id: SkillId | None = None
    confirm: Confirm = False


class MessageForm(MessageBody):
    message: Content = ""


class CallAnswer(msgspec.Struct):
    allow: bool
    for_conversation: Annotated[
        bool,
        msgspec.Meta(
            description="do not ask about this tool of this server again in this conversation, unless"
            " something sensitive is in the arguments"
        ),
    ] = False


@routes.post("/send")
@inputs.without_scope
@inputs.operation(NotFound, ModelFailure, Unavailable)
def send_message(body: MessageBody) -> shapes.Answered:
    """Send a message to the assistant and get its answer.

    An unknown `conversation_id` begins a conversation under this id, so a client may choose one and use it
    again when it retries. After a 502 the message stays in the conversation.
    """
    if not body.message.strip():
        raise BadInput("message: must not be empty")
    message = UserMessage(
        body.message, body.conversation_id, body.device_id or "", body.skill_id, confirm=body.confirm
    )
    return _answer(send(inputs.settings(), message))


@routes.post("/send-with-file")
@inputs.takes_files(largest=MAX_ATTACHMENT)
@inputs.without_scope
@inputs.operation(NotFound, ModelFailure, Unavailable)
def send_with_file(form: MessageForm, file: FileStorage | None) -> shapes.Answered:
    """Send a message with a picture to the assistant and get its answer. Without a message, the text says
    that a picture was sent. The picture stays in the context of later turns while it fits.
    """
    settings = inputs.settings()
    content = form.message if form.message.strip() else ATTACHED[settings.language]
    spool = cast(Spool, file.stream) if file else None  # the request class opens spools
    picture, read = (attached(spool), read_on(spool, settings)) if spool else (None, "")
    device_id = form.device_id or ""
    message = UserMessage(
        content, form.conversation_id, device_id, form.skill_id, picture, form.confirm, read
    )
    return _answer(send(settings, message))


@routes.post("/conversations/<conversation_id>/calls/<call_id>")
@inputs.without_scope
@inputs.operation(NotFound, Conflict, ModelFailure, Unavailable)
def answer_pending_call(conversation_id: str, call_id: str, body: CallAnswer) -> shapes.Answered:
    """Allow or refuse a call that waits for the person. After the last one, the turn goes on to its answer.

    A call can be answered once. Another message to the conversation refuses those that wait. After a 502 or a
    lost connection, the same message sent again goes on with the turn, and no call runs twice.
    """
    reply = answer_call(
        inputs.settings(), conversation_id, call_id, allow=body.allow, for_conversation=body.for_conversation
    )
    return _answer(reply)


def _answer(reply: Reply) -> shapes.Answered:
    answered: shapes.Answered = {
        "conversation_id": reply.conversation_id,
        "message": {
            "role": "assistant",
            "content": reply.content,
            "tool_calls": reply.tool_calls,
            "citations": msgspec.to_builtins(reply.citations),
        },
    }
    if reply.pending_calls is not None:
        answered["pending_calls"] = reply.pending_calls
    return answered
