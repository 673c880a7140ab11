"""The assistant: one turn of a conversation, from the person's message to the answer; `/api/chat`.

A turn is a loop: the model is asked, calls tools, is given what they say, and is asked again, at most
`ROUNDS` times; then once more without tools, so that a turn always ends in text. The database is used for
moments in between and never while a model or a tool is waited for. The message is stored before anything can
fail, the rest when the turn is over (`assistant/conversations.py`).

Turns of one conversation come one after the other. Over all conversations only so many run at once, because
each holds a thread of the server while its model thinks, and uploads, lists and searches need threads, too.

What a turn tells about the person is found out afterwards, in the background, from the person's own words
(`read_for_memories`).
"""

import contextlib
import logging
import secrets
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Any, NamedTuple, cast

import blinker
import msgspec
from flask import Blueprint
from werkzeug.datastructures import FileStorage

import database
import llm
import loops
import memory
import models
import pictures
from assistant import context, conversations, skills
from assistant.conversations import Turn
from assistant.tools import Toolbox
from clock import utc_now
from database import db
from engines import configuration, ledger, prompts, reading, replies
from engines.findings import Answer, MemoryCandidate, Usage
from errors import (
    AnswerUnusable,
    BadInput,
    ModelFailure,
    NotFound,
    ProviderDown,
    ProviderRefused,
    ToolsRefused,
    Unavailable,
    Unreadable,
)
from locks import named_lock
from models import Message
from settings import MEGABYTE, Settings
from spool import Spool
from web import inputs, shapes

log = logging.getLogger(__name__)

ROUNDS = 3
MAX_CALLS = 8  # in a round; a model that wants more has lost its way
MAX_MESSAGE = 32_768  # characters
MAX_ATTACHMENT = 20 * MEGABYTE

# Half of the server's 16 threads (gunicorn.conf.py).
MOST_AT_ONCE = 8
TURN_PATIENCE = 60.0  # seconds that a message waits for the turn before it
CONVERSATION_BUSY = "This conversation still waits for its last answer."
BUSY_AGAIN = 5.0  # seconds, for Retry-After

# The part of the context that is kept for the answer, and how long that may be.
ANSWER_SHARE, MAX_ANSWER = 4, 8_192
MAX_PICTURES = 8  # of a history that are sent again: each is up to half a megabyte in the request

READ_AGAIN = 60.0  # seconds until what a failing model could not read is tried again
IDLE_WAIT = 10.0  # seconds after which the background looks for turns that other processes have left

ATTACHED = {"zh": "发送了一个附件", "en": "Sent an attachment"}
CUT_OFF = {"zh": "（回答达到长度上限，在此中断。）", "en": "(The answer stopped here, at its length limit.)"}


class Said(msgspec.Struct, frozen=True):
    """What a person says in a turn. `picture` is a JPEG as models get it."""

    content: str
    conversation_id: str | None = None
    device_id: str = ""
    skill_id: str | None = None
    picture: bytes | None = None


class Reply(msgspec.Struct, frozen=True):
    conversation_id: str
    content: str
    tool_calls: list[shapes.ToolCall]  # all calls of the turn


# ----------------------------------------------------------------------------------------------------- a turn


def send(settings: Settings, said: Said, *, clock: Callable[[], datetime] = utc_now) -> Reply:
    """Answer a message. Opens the database by itself, for moments.

    Raises `NotFound` for a skill that is not there or not enabled; `Unavailable` when too many chats run, the
    conversation is busy or the day's tokens are used up; `ModelFailure` when the model gives no answer. The
    message stays in the conversation after the last two.
    """
    conversation_id = said.conversation_id or secrets.token_hex(16)
    turns = database.store().folder / "turns"
    with _places.one(), named_lock(turns, conversation_id, TURN_PATIENCE, busy=CONVERSATION_BUSY):
        turn = _Turn(settings, said, conversation_id, clock)
        try:
            turn.run()
            turn.end()
        except BaseException as problem:
            turn.give_up(problem)
            raise
    finished.send()
    calls = [
        call
        for message in turn.following
        if message.tool_calls
        for call in msgspec.json.decode(message.tool_calls)
    ]
    return Reply(conversation_id, turn.text, calls)


def attached(file: Spool) -> bytes:
    """An attached picture as models get it. Raises `TooLarge`, `BadInput` for an empty file, and
    `UnsupportedImage`.
    """
    file.check()
    with file.open() as picture:
        return pictures.for_model(picture)


class History(NamedTuple):
    """Earlier turns as they are sent again, and what the person wrote in those that were read; both oldest
    first.
    """

    messages: list[context.Messages]  # of each turn
    own_words: list[str]


class Transcript(NamedTuple):
    """Stored turns in the protocol's form. A model that takes no tools finds what they said in the person's
    message.
    """

    frame: prompts.Frame
    takes_tools: bool

    def history(self, turns: Iterable[Turn], most: int, *, pictures: int) -> History:
        """The latest of `turns` that fit into `most` tokens, with at most so many `pictures`. They come
        latest first.

        A turn that does not fit with its picture is sent without. The first that does not fit at all ends it,
        so that there are no holes.
        """
        messages: list[context.Messages] = []
        own_words: list[str] = []
        for turn in turns:
            own_words[:0] = [message.content or "" for message in turn if message.role == "user"]
            attached = sum(message.attachment_path is not None for message in turn)
            with_pictures = (True, False) if attached and pictures > 0 else (False,)
            fitting = context.first_fitting(
                (self.messages(turn, pictures=shown) for shown in with_pictures), most
            )
            if fitting is None:
                break
            messages.insert(0, fitting)
            most -= context.tokens(fitting)
            pictures -= attached
        return History(messages, own_words)

    def messages(self, turn: Turn, *, pictures: bool) -> context.Messages:
        """The messages of a turn. Without `pictures`, a line stands in for each that was attached."""
        messages: context.Messages = []
        for message in turn:
            if message.role == "user":
                messages.append({"role": "user", "content": _shown(message, pictures=pictures)})
            elif message.role == "tool" and self.takes_tools:
                framed = self.frame.around(message.content or "")
                messages.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": framed})
            elif message.role == "tool" and messages:
                text = f"{prompts.LOOKED_UP}\n{self.frame.around(message.content or '')}"
                parts = _parts(messages[-1]["content"])
                messages[-1]["content"] = [*parts, {"type": "text", "text": text}]
            elif message.tool_calls and self.takes_tools:
                messages.append(
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": msgspec.json.decode(message.tool_calls),
                    }
                )
            elif message.content:
                messages.append({"role": message.role, "content": message.content})
        return messages


class _Turn:
    """A turn under way: what has followed the person's message so far, and the same as the protocol has it."""

    def __init__(self, settings: Settings, said: Said, conversation_id: str, clock: Callable[[], datetime]):
        self.following: Turn = []
        self.text = ""  # the answer's
        self._settings, self._said, self._clock = settings, said, clock
        self._frame = prompts.Frame()
        self._usage = Usage()
        now = clock()
        with database.scope():
            skill = skills.get_enabled(said.skill_id, settings.language, now=now) if said.skill_id else None
            chosen = configuration.current(settings)
            self._model = llm.model_for(chosen, settings)
            self._asked = Message()
            try:
                with db.atomic():
                    self._asked = conversations.begin_turn(
                        conversation_id, said.content, said.picture, device_id=said.device_id, now=now
                    )
                    self._recalled = [
                        kept.content
                        for kept in memory.recall(said.content, device_id=said.device_id or None, now=now)
                    ]
            except BaseException:
                conversations.drop_unless_stored(self._asked)
                raise
            llm.require_tokens(chosen, settings, now=now)
            persona = skill.system_prompt if skill else prompts.PERSONA
            system = prompts.chat(self._frame, persona=persona, remembered=self._recalled, now=now)
            self._system = {"role": "system", "content": system}
            self._most_answer = min(MAX_ANSWER, chosen.max_context_tokens // ANSWER_SHARE)
            self._room = chosen.max_context_tokens - self._most_answer - context.tokens(self._system)
            self._read_history()

    def run(self) -> None:
        """Everything that follows the person's message: rounds of calls and what the tools say, and the
        answer.
        """
        toolbox = Toolbox(
            self._settings,
            device_id=self._said.device_id,
            said=[*self._history.own_words, self._said.content],
            recalled=self._recalled,
            clock=self._clock,
            is_kept=lambda: conversations.is_kept(self._asked),
        )
        with toolbox:
            for _ in range(ROUNDS):
                if not self._model.takes_tools:
                    break
                try:
                    answer = self._ask(toolbox.offered)
                except ToolsRefused:
                    break
                if not answer.tool_calls:
                    return self._answered(answer)
                self._call(answer, toolbox)
            if not self._model.takes_tools:
                self._look_up(toolbox)
        return self._answered(self._ask(None))

    def end(self) -> None:
        """Store what followed, and what it cost."""
        now = self._clock()
        recalled = self._recalled if memory.tells(self._said.content) else None
        with database.scope(), db.atomic():
            ledger.record(self._usage, purpose="chat", model=self._model.identity, now=now)
            conversations.end_turn(self._asked, self.following, recalled=recalled, now=now)

    def give_up(self, problem: BaseException) -> None:
        """Record what was paid for nothing."""
        self._count(getattr(problem, "usage", None))
        if self._usage.calls:
            with database.scope():
                ledger.record(self._usage, purpose="chat", model=self._model.identity, now=self._clock())

    def _ask(self, offered: list[dict[str, Any]] | None) -> Answer:
        room = self._room - (context.tokens(offered) if offered else 0)
        messages = [self._system, *context.fit(self._history.messages, self._present, room)]
        answer = self._model.complete(
            messages, tools=offered, most=self._most_answer, remembered=self._recalled
        )
        self._count(answer.usage)
        if answer.tool_calls:
            answer.require_whole()
        return answer

    def _call(self, answer: Answer, toolbox: Toolbox) -> list[dict[str, Any]]:
        """Do what the model asks for; returns what the tools say."""
        results = []
        calls = answer.tool_calls[:MAX_CALLS]
        self._present.append({**answer.message, "tool_calls": calls})
        self._note(role="assistant", tool_calls=_encoded([_plain(call) for call in calls]))
        for call in calls:
            name = call["function"]["name"]
            results.append(toolbox.run(name, call["function"]["arguments"]))
            said = _encoded(results[-1])
            self._present.append(
                {"role": "tool", "tool_call_id": call["id"], "content": self._frame.around(said)}
            )
            self._note(role="tool", content=said, tool_call_id=call["id"], tool_name=results[-1]["tool"])
        return results

    def _look_up(self, toolbox: Toolbox) -> None:
        """For a model that takes no tools: search for what the person asks, as the embedded model would."""
        said: list[dict[str, Any]] = []
        while calls := replies.next_searches(self._said.content, said):
            said += self._call(Answer("", calls), toolbox)
        with database.scope():
            self._read_history()

    def _answered(self, answer: Answer) -> None:
        text = reading.spoken(answer.text)
        if not text:
            raise AnswerUnusable("The model gave no answer.")
        if answer.cut_off:
            text = f"{text}\n\n{CUT_OFF[self._settings.language]}"
        self.text = text
        self._note(role="assistant", content=text)

    def _note(self, **fields: Any) -> None:
        self.following.append(Message(created_at=self._clock(), **fields))

    def _count(self, usage: Usage | None) -> None:
        for name, number in msgspec.structs.asdict(usage or Usage()).items():
            setattr(self._usage, name, getattr(self._usage, name) + number)

    def _read_history(self) -> None:
        """Put this turn, and the earlier ones that fit, into the form that the model takes now."""
        transcript = Transcript(self._frame, self._model.takes_tools)
        self._present = transcript.messages([self._asked, *self.following], pictures=True)
        pictures = MAX_PICTURES - (self._asked.attachment_path is not None)
        self._history = transcript.history(
            conversations.earlier_turns(self._asked), self._room, pictures=pictures
        )


_places = loops.Places(MOST_AT_ONCE, full="Too many chats are going on.", retry_after=BUSY_AGAIN)


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _plain(call: dict[str, Any]) -> dict[str, Any]:
    """A call as it is stored and shown: without what only its provider understands."""
    function = call["function"]
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


def _shown(message: Message, *, pictures: bool) -> str | list[dict[str, Any]]:
    """A user's message as the content of the protocol's."""
    content = message.content or ""
    if message.attachment_path is None:
        return content
    if pictures:
        with contextlib.suppress(Unreadable):
            return [{"type": "text", "text": content}, prompts.picture(conversations.picture_of(message))]
    return f"{content}\n{prompts.NO_PICTURE}"


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


# --------------------------------------------------------------------------------------------------- memories

# Sent after a turn was stored: there may be something to remember.
finished = blinker.Signal()


def read_for_memories(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Read the oldest turn that waits for it, and remember what the person told in it; False when nothing
    waits or nothing can be done.

    What the background repeats. A turn that no model can read is dropped; a model that cannot be reached is
    asked again later. Only what rests on the person's own words passes the gate, whatever the model says.
    """
    with database.scope():
        chosen = configuration.current(settings)
        waiting = conversations.next_to_read()
        if waiting is None or llm.out_of_tokens(chosen, settings, now=clock()):
            return False
        model = llm.model_for(chosen, settings)
        models.prove_writable()
    asked, answer, recalled = waiting
    content = asked.content or ""
    found, usage, stay = _memories_in(model, content, answer)
    with database.scope(), db.atomic():
        ledger.record(usage, purpose="memory", model=model.identity, now=clock())
        if stay or not conversations.mark_read(asked.id):  # it was deleted meanwhile
            return not stay
        device_id = asked.conversation.device_id
        for candidate in found:
            if memory.rests_on(candidate.content, [content]):
                memory.remember(
                    candidate,
                    source_type="chat",
                    device_id=device_id,
                    now=clock(),
                    said=[content],
                    recalled=recalled,
                )
    return True


def reader(settings: Settings) -> loops.Loop:
    """The background thread that reads finished turns."""

    def step() -> float:
        try:
            # One process at a time: two would pay for the same turn.
            with named_lock(database.store().folder / "turns", "reading", 0, busy="Another process reads."):
                if read_for_memories(settings):
                    return 0.0
            with database.scope():
                return IDLE_WAIT if conversations.next_to_read() is None else READ_AGAIN
        except Unavailable:
            return IDLE_WAIT

    return loops.Loop("memories", step, wake_on=finished)


def _memories_in(model: llm.Model, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage, bool]:
    """What a model finds, what it cost, and whether to ask again later."""
    try:
        return *model.memories_in(said, answered), False
    except ModelFailure as problem:
        later = isinstance(problem, ProviderDown | ProviderRefused)
        if not later:
            log.warning("a turn could not be read for memories: %s", problem)
        return [], problem.usage or Usage(), later


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("chat", __name__, url_prefix="/api/chat")

Content = Annotated[str, msgspec.Meta(max_length=MAX_MESSAGE)]
DeviceId = Annotated[str, msgspec.Meta(max_length=conversations.MAX_DEVICE)]
SkillId = Annotated[str, msgspec.Meta(max_length=64)]


class MessageBody(msgspec.Struct):
    message: Content
    conversation_id: shapes.ConversationId | None = None
    device_id: DeviceId | None = None
    skill_id: SkillId | None = None


class MessageForm(msgspec.Struct):
    message: Content = ""
    conversation_id: shapes.ConversationId | None = None
    device_id: DeviceId | None = None
    skill_id: SkillId | None = None


@routes.post("/send")
@inputs.without_scope
@inputs.operation(NotFound, ModelFailure, Unavailable)
def send_message(body: MessageBody) -> shapes.Answered:
    """Say something to the assistant, and get its answer.

    A `conversation_id` that is not known begins a conversation under it, so that a client may choose one and
    find it again when it tries once more. After a 502 the message stays in the conversation.
    """
    if not body.message.strip():
        raise BadInput("message: must not be empty")
    said = Said(body.message, body.conversation_id, body.device_id or "", body.skill_id)
    return _shown_reply(send(inputs.settings(), said))


@routes.post("/send-with-file")
@inputs.takes_files(largest=MAX_ATTACHMENT)
@inputs.without_scope
@inputs.operation(NotFound, ModelFailure, Unavailable)
def send_with_file(form: MessageForm, file: FileStorage | None) -> shapes.Answered:
    """Say something to the assistant with a picture, and get its answer."""
    settings = inputs.settings()
    content = form.message if form.message.strip() else ATTACHED[settings.language]
    picture = attached(cast(Spool, file.stream)) if file else None  # what the request class opens
    said = Said(content, form.conversation_id, form.device_id or "", form.skill_id, picture)
    return _shown_reply(send(settings, said))


def _shown_reply(reply: Reply) -> shapes.Answered:
    return {
        "conversation_id": reply.conversation_id,
        "message": {"role": "assistant", "content": reply.content, "tool_calls": reply.tool_calls},
    }
