"""The assistant: one turn of a conversation, from the person's message to the answer; `/api/chat`.

A turn is a loop: ask the model, run the tools that it calls, send it their results, and ask again, at most
`ROUNDS` times; then once more without tools, so that a turn ends in text. The database is open only for
moments, never during a call of a model or a tool. The person's message is stored before anything can fail,
the rest when the turn is over (`assistant/conversations.py`).

Turns of one conversation run one after the other. At most `MOST_AT_ONCE` turns run at the same time, because
each holds a server thread while its model works, and uploads, lists and searches need threads, too.

Memories are extracted later, in the background, and only from the person's own words (`read_for_memories`).
"""

import logging
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, cast

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
from assistant.transcript import Transcript
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
)
from locks import named_lock
from models import Message
from settings import MEGABYTE, Settings
from spool import Spool
from text import cut
from web import inputs, shapes

log = logging.getLogger(__name__)

ROUNDS = 3
MAX_CALLS = 8  # of tools in a round; the rest is ignored
MAX_MESSAGE = 32_768  # characters
MAX_REPLY = 100_000  # characters: a longer one would be stored and sent again, and slow down the page
MAX_ATTACHMENT = 20 * MEGABYTE

# Half of the server's 16 threads (gunicorn.conf.py).
MOST_AT_ONCE = 8
TURN_PATIENCE = 60.0  # seconds that a message waits for the conversation's previous turn
CONVERSATION_BUSY = "The conversation's previous message is still being answered."
BUSY_AGAIN = 5.0  # seconds, for Retry-After

# The answer gets a quarter of the context, and at most so many tokens.
ANSWER_SHARE, MAX_ANSWER = 4, 8_192
MAX_PICTURES = 8  # sent again from earlier turns: each adds up to 0.5 MB to the request

READ_AGAIN = 60.0  # seconds until a turn is read again after its model failed
IDLE_WAIT = 10.0  # seconds between looks for turns that other processes have finished

ATTACHED = {"zh": "发送了一个附件", "en": "Sent an attachment"}
CUT_OFF = {"zh": "（回答达到长度上限，在此中断。）", "en": "(The answer stopped here, at its length limit.)"}


class UserMessage(msgspec.Struct, frozen=True):
    """A message from the person. `picture` is a JPEG, reduced for models (`pictures.for_model`)."""

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


def send(settings: Settings, message: UserMessage, *, clock: Callable[[], datetime] = utc_now) -> Reply:
    """Answer a message. Opens the database itself, for moments.

    Raises `NotFound` for an unknown or disabled skill; `Unavailable` when too many chats run, the
    conversation is busy or the day's tokens are used up; `ModelFailure` when the model gives no answer. After
    the last two, the message stays in the conversation.
    """
    conversation_id = message.conversation_id or secrets.token_hex(16)
    turns = database.store().folder / "turns"
    with _places.one(), named_lock(turns, conversation_id, TURN_PATIENCE, busy=CONVERSATION_BUSY):
        turn = _Turn(settings, message, conversation_id, clock)
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
    """The attached picture as a JPEG, reduced for models.

    Raises `TooLarge`, `BadInput` for an empty file, and `UnsupportedImage`.
    """
    file.check()
    with file.open() as picture:
        return pictures.for_model(picture)


class _Turn:
    """A turn in progress: what follows the person's message, as it is stored and as the protocol has it."""

    def __init__(
        self, settings: Settings, message: UserMessage, conversation_id: str, clock: Callable[[], datetime]
    ):
        self.following: Turn = []
        self.text = ""  # the answer's
        self._settings, self._input, self._clock = settings, message, clock
        self._frame = prompts.Frame()
        self._usage = Usage()
        now = clock()
        with database.scope():
            skill = (
                skills.get_enabled(message.skill_id, settings.language, now=now) if message.skill_id else None
            )
            config = configuration.current(settings)
            self._model = llm.model_for(config, settings)
            self._question = Message()
            try:
                with db.atomic():
                    self._question = conversations.begin_turn(
                        conversation_id,
                        message.content,
                        message.picture,
                        device_id=message.device_id,
                        now=now,
                    )
                    self._recalled = [
                        entry.content
                        for entry in memory.recall(
                            message.content, device_id=message.device_id or None, now=now
                        )
                    ]
            except BaseException:
                conversations.drop_unless_stored(self._question)
                raise
            llm.require_tokens(config, settings, now=now)
            persona = skill.system_prompt if skill else prompts.PERSONA
            system = prompts.chat(self._frame, persona=persona, remembered=self._recalled, now=now)
            self._system = {"role": "system", "content": system}
            self._most_answer = min(MAX_ANSWER, config.max_context_tokens // ANSWER_SHARE)
            self._room = config.max_context_tokens - self._most_answer - context.tokens(self._system)
            self._read_history()

    def run(self) -> None:
        """Ask the model and run its tools, until there is an answer."""
        toolbox = Toolbox(
            self._settings,
            device_id=self._input.device_id,
            own_words=[*self._history.own_words, self._input.content],
            recalled=self._recalled,
            clock=self._clock,
            is_kept=lambda: conversations.is_kept(self._question),
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
                    return self._finish(answer)
                self._call(answer, toolbox)
            if not self._model.takes_tools:
                self._look_up(toolbox)
        return self._finish(self._ask_for_text())

    def end(self) -> None:
        """Store the messages that followed, and the tokens they cost."""
        now = self._clock()
        recalled = self._recalled if memory.tells(self._input.content) else None
        with database.scope(), db.atomic():
            ledger.record(self._usage, purpose="chat", model=self._model.identity, now=now)
            conversations.end_turn(self._question, self.following, recalled=recalled, now=now)

    def give_up(self, problem: BaseException) -> None:
        """Record the tokens that a failed turn cost."""
        self._count(getattr(problem, "usage", None))
        if self._usage.calls:
            with database.scope():
                ledger.record(self._usage, purpose="chat", model=self._model.identity, now=self._clock())

    def _ask_for_text(self) -> Answer:
        """The answer after the last round. Some models call tools although none are offered: such a model is
        asked once more, and if it still gives no text, the answer is made of what the tools found.
        """
        answer = self._ask(None)
        if reading.spoken(answer.text) or not self.following:
            return answer
        try:
            answer = self._ask(None, {"role": "user", "content": prompts.ANSWER_NOW})
            if reading.spoken(answer.text):
                return answer
        except ModelFailure as problem:
            log.warning("the answer is made of what the tools found: %s", problem)
            self._count(problem.usage)
        results = [message.content or "" for message in self.following if message.role == "tool"]
        return Answer(replies.from_results(self._input.content, results))

    def _ask(self, offered: list[dict[str, Any]] | None, *reminders: dict[str, Any]) -> Answer:
        room = self._room - (context.tokens(offered) if offered else 0)
        present = [*self._present, *reminders]
        messages = [self._system, *context.fit(self._history.messages, present, room)]
        answer = self._model.complete(
            messages, tools=offered, most=self._most_answer, remembered=self._recalled
        )
        self._count(answer.usage)
        if answer.tool_calls and offered:
            answer.require_whole()
        return answer

    def _call(self, answer: Answer, toolbox: Toolbox) -> list[dict[str, Any]]:
        """Run the tools that the model calls; returns their results."""
        results = []
        calls = answer.tool_calls[:MAX_CALLS]
        self._present.append({**answer.message, "tool_calls": calls})
        self._note(role="assistant", tool_calls=_encoded([_plain(call) for call in calls]))
        for call in calls:
            name = call["function"]["name"]
            results.append(toolbox.run(name, call["function"]["arguments"]))
            result = _encoded(results[-1])
            self._present.append(
                {"role": "tool", "tool_call_id": call["id"], "content": self._frame.around(result)}
            )
            self._note(role="tool", content=result, tool_call_id=call["id"], tool_name=results[-1]["tool"])
        return results

    def _look_up(self, toolbox: Toolbox) -> None:
        """For a model that takes no tools: search for what the person asks, as the embedded model would."""
        results: list[dict[str, Any]] = []
        while calls := replies.next_searches(self._input.content, results):
            results += self._call(Answer("", calls), toolbox)
        with database.scope():
            self._read_history()

    def _finish(self, answer: Answer) -> None:
        text = reading.spoken(answer.text)
        if not text:
            raise AnswerUnusable("The model gave no answer.")
        if answer.cut_off or len(text) > MAX_REPLY:
            text = f"{cut(text, MAX_REPLY)}\n\n{CUT_OFF[self._settings.language]}"
        self.text = text
        self._note(role="assistant", content=text)

    def _note(self, **fields: Any) -> None:
        self.following.append(Message(created_at=self._clock(), **fields))

    def _count(self, usage: Usage | None) -> None:
        for name, number in msgspec.structs.asdict(usage or Usage()).items():
            setattr(self._usage, name, getattr(self._usage, name) + number)

    def _read_history(self) -> None:
        """Render this turn, and the earlier ones that fit, in the form that the model takes."""
        transcript = Transcript(self._frame, self._model.takes_tools)
        self._present = transcript.messages([self._question, *self.following], pictures=True)
        pictures = MAX_PICTURES - (self._question.attachment_path is not None)
        self._history = transcript.history(
            conversations.earlier_turns(self._question), self._room, pictures=pictures
        )


_places = loops.Places(MOST_AT_ONCE, full="Too many chats are running.", retry_after=BUSY_AGAIN)


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _plain(call: dict[str, Any]) -> dict[str, Any]:
    """A call as it is stored and published: without the fields of a single provider."""
    function = call["function"]
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": function["arguments"]},
    }


# --------------------------------------------------------------------------------------------------- memories

# Sent when a turn has been stored: it may hold memories.
finished = blinker.Signal()


def read_for_memories(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Read the oldest finished turn for memories and save them. Returns False when no turn is waiting or
    none can be read now.

    The background thread repeats this. A turn that the model cannot read is skipped for good; when the model
    cannot be reached, the turn waits. Whatever the model proposes, only what the person wrote is saved.
    """
    with database.scope():
        config = configuration.current(settings)
        waiting = conversations.next_to_read()
        if waiting is None or llm.out_of_tokens(config, settings, now=clock()):
            return False
        model = llm.model_for(config, settings)
        models.prove_writable()
    question, answer, recalled = waiting
    content = question.content or ""
    found, usage, later = _memories_in(model, content, answer)
    with database.scope(), db.atomic():
        ledger.record(usage, purpose="memory", model=model.identity, now=clock())
        if later or not conversations.mark_read(question.id):  # it was deleted meanwhile
            return not later
        device_id = question.conversation.device_id
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
    """The background thread that reads finished turns for memories."""

    def step() -> float:
        try:
            # One process at a time: two would both pay for the same turn.
            with named_lock(
                database.store().folder / "turns", "reading", 0, busy="Another process is reading turns."
            ):
                if read_for_memories(settings):
                    return 0.0
            with database.scope():
                return IDLE_WAIT if conversations.next_to_read() is None else READ_AGAIN
        except Unavailable:
            return IDLE_WAIT

    return loops.Loop("memories", step, wake_on=finished)


def _memories_in(model: llm.Model, question: str, answer: str) -> tuple[list[MemoryCandidate], Usage, bool]:
    """The memories that a model finds, their cost, and whether to try again later."""
    try:
        return *model.memories_in(question, answer), False
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
    """Send a message to the assistant and get its answer.

    An unknown `conversation_id` begins a conversation under this id, so a client may choose one and use it
    again when it retries. After a 502 the message stays in the conversation.
    """
    if not body.message.strip():
        raise BadInput("message: must not be empty")
    message = UserMessage(body.message, body.conversation_id, body.device_id or "", body.skill_id)
    return _answer(send(inputs.settings(), message))


@routes.post("/send-with-file")
@inputs.takes_files(largest=MAX_ATTACHMENT)
@inputs.without_scope
@inputs.operation(NotFound, ModelFailure, Unavailable)
def send_with_file(form: MessageForm, file: FileStorage | None) -> shapes.Answered:
    """Send a message with a picture to the assistant and get its answer."""
    settings = inputs.settings()
    content = form.message if form.message.strip() else ATTACHED[settings.language]
    picture = attached(cast(Spool, file.stream)) if file else None  # the request class opens spools
    message = UserMessage(content, form.conversation_id, form.device_id or "", form.skill_id, picture)
    return _answer(send(settings, message))


def _answer(reply: Reply) -> shapes.Answered:
    return {
        "conversation_id": reply.conversation_id,
        "message": {"role": "assistant", "content": reply.content, "tool_calls": reply.tool_calls},
    }
