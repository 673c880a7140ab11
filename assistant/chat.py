"""The assistant: one turn of a conversation, from the person's message to the answer; `/api/chat`.

A turn is a loop: ask the model, run the tools that it calls, send it their results, and ask again, at most
`ROUNDS` times; then once more without tools, so that a turn ends in text. The database is open only for
moments, never during a call of a model or a tool. The person's message is stored before anything can fail,
the rest when the turn is over (`assistant/conversations.py`).

A call that would send something out may wait for the person (`assistant/confirmation.py`): the turn is then
interrupted, and goes on when all such calls are answered, or when the same message is sent again.

Turns of one conversation run one after the other. At most `MOST_AT_ONCE` turns run at the same time, because
each holds a server thread while its model works, and uploads, lists and searches need threads, too.

Memories are extracted later, in the background, and only from the person's own words (`read_for_memories`).

More than 550 lines, because a turn that is interrupted at any step is resumed by the same steps.
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
import gate
import llm
import loops
import memory
import models
import pictures
from assistant import confirmation, context, conversations, skills
from assistant.confirmation import Call, Destination, Noted, Paused
from assistant.conversations import Turn
from assistant.tools import Toolbox
from assistant.transcript import Transcript, held_back
from clock import utc_now
from database import db
from engines import configuration, ledger, prompts, reading
from engines.findings import Answer, MemoryCandidate, Usage
from errors import (
    AnswerUnusable,
    BadInput,
    Conflict,
    ModelFailure,
    NotFound,
    ProviderDown,
    ProviderRefused,
    SnaploreError,
    ToolsRefused,
    Unavailable,
)
from locks import named_lock
from models import AskedCall, Message
from rules import replies
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
READ_PATIENCE = 5.0  # seconds that a message waits for the reader, which may be reading another picture

FOREIGN_MEMORIES = ("screenshot", "assistant")  # made of what was read, not of what the person wrote

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
HELD_BACK = {
    "zh": "（未经你确认，以下内容没有发送：{calls}。此客户端无法询问；请在网页中提问。）",
    "en": "(Not sent without your consent: {calls}. This client cannot ask for it; the page can.)",
}
CALL_TO = {"zh": "{tool}（发往 {server}）", "en": "{tool} to {server}"}
CUT_OFF = {"zh": "（回答达到长度上限，在此中断。）", "en": "(The answer stopped here, at its length limit.)"}


class UserMessage(msgspec.Struct, frozen=True):
    """A message from the person. `picture` is a JPEG, reduced for models (`pictures.for_model`), and `read`
    what was read on it before that on this machine.
    """

    content: str
    conversation_id: str | None = None
    device_id: str = ""
    skill_id: str | None = None
    picture: bytes | None = None
    confirm: bool = False  # the client can ask the person about calls
    read: str = ""


class Reply(msgspec.Struct, frozen=True):
    conversation_id: str
    content: str
    tool_calls: list[shapes.ToolCall]  # all calls of the turn
    pending_calls: list[shapes.PendingCall] | None = None  # None: the client did not ask for them


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
        turn.complete()
    finished.send()
    return turn.reply


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
    turns = database.store().folder / "turns"
    with _places.one(), named_lock(turns, conversation_id, TURN_PATIENCE, busy=CONVERSATION_BUSY):
        with database.scope():
            call = confirmation.unanswered(conversation_id, call_id)  # the turn before may have answered it
        turn = _Turn(settings, None, conversation_id, clock)
        with database.scope():
            confirmation.decide(call, allow=allow, for_conversation=for_conversation)
        turn.complete(call if allow else None)
    finished.send()
    return turn.reply


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


class _Turn:
    """A turn in progress: what follows the person's message, as it is stored and as the protocol has it."""

    def __init__(
        self,
        settings: Settings,
        message: UserMessage | None,  # None: go on with the interrupted turn of the conversation
        conversation_id: str,
        clock: Callable[[], datetime],
    ):
        self._settings, self._clock, self._conversation_id = settings, clock, conversation_id
        self._following: Turn = []
        self._text = ""  # the answer's
        self._pending: list[shapes.PendingCall] = []
        self._frame = prompts.Frame()
        self._usage = Usage()
        self._rounds = 0
        self._spoken: list[dict[str, Any]] = []  # the model's messages with calls, as it sent them
        self._open: list[Call] = []  # of the round that is not over
        self._asked: dict[str, Destination] = {}  # what this run asks the person
        self._held_back: list[Destination] = []
        now = clock()
        with database.scope():
            interrupted = confirmation.paused(conversation_id)
            question = None
            if message is None:
                question, message = _as_it_was(conversation_id, interrupted)
            self._input = message
            skill = (
                skills.get_enabled(message.skill_id, settings.language, now=now) if message.skill_id else None
            )
            config = configuration.current(settings)
            self._model = llm.model_for(config, settings)
            self._gated = gate.is_before(config, settings)
            self._question = Message()
            try:
                with db.atomic():
                    self._begin(question, interrupted, now)
            except BaseException:
                conversations.drop_unless_stored(self._question)
                raise
            llm.require_tokens(config, settings, now=now)
            persona = skill.system_prompt if skill else prompts.PERSONA
            system = prompts.chat(self._frame, persona=persona, remembered=self._recalled, now=now)
            self._system = {"role": "system", "content": system}
            self._most_answer = min(MAX_ANSWER, config.max_context_tokens // ANSWER_SHARE)
            self._room = config.max_context_tokens - self._most_answer - context.tokens(self._system)
            self._has_foreign_text = self._has_foreign_memories or conversations.has_foreign_text(
                self._question
            )
            self._read_history()

    @property
    def reply(self) -> Reply:
        calls = [
            call
            for message in self._following
            if message.tool_calls
            for call in msgspec.json.decode(message.tool_calls)
        ]
        pending = self._pending if self._input.confirm else None
        return Reply(self._conversation_id, self._text, calls, pending)

    def complete(self, allowed: AskedCall | None = None) -> None:
        """Run the turn to its end, or until the person must be asked, and store it. A call that they have
        just `allowed` runs first.
        """
        try:
            with self._toolbox() as toolbox:
                if allowed is not None:
                    result = toolbox.run(allowed.tool, allowed.arguments, allowed_for=allowed.server)
                    with database.scope():
                        confirmation.keep_result(allowed, result)
                self._run(toolbox)
            self._end()
        except BaseException as problem:
            self._give_up(problem)
            raise

    def _begin(self, question: Message | None, interrupted: tuple[int, Paused] | None, now: datetime) -> None:
        """Store the message, or find the turn that it began and that was interrupted. Another message ends
        that turn.
        """
        said = self._input
        if question is not None and interrupted is not None:
            self._question = question
            self._resume(interrupted[1])
            return
        if interrupted is not None:
            repeated = conversations.unanswered(self._conversation_id, said.content, said.picture)
            if repeated is None or repeated.id != interrupted[0]:
                _end_interrupted(*interrupted, now=now)
                interrupted = None
        self._question = conversations.begin_turn(
            self._conversation_id, said.content, said.picture, device_id=said.device_id, now=now
        )
        if interrupted is not None:
            self._resume(interrupted[1])
            return
        found = memory.recall(said.content, device_id=said.device_id or None, now=now)
        recalled = [entry for entry in found if not (self._gated and gate.withholds_text(entry.content))]
        self._recalled = [entry.content for entry in recalled]
        self._has_foreign_memories = any(entry.source_type in FOREIGN_MEMORIES for entry in recalled)

    def _resume(self, turn: Paused) -> None:
        self._recalled, self._has_foreign_memories = turn.recalled, turn.has_foreign_memories
        self._rounds, self._spoken = turn.rounds, turn.spoken
        self._following = [Message(**msgspec.structs.asdict(message)) for message in turn.following]
        if not self._input.confirm:
            confirmation.expire(self._question.id)
        if turn.model != self._model.identity:  # its fields are of no use to another model
            self._spoken = []
        self._open = turn.open

    def _toolbox(self) -> Toolbox:
        return Toolbox(
            self._settings,
            device_id=self._input.device_id,
            own_words=[*self._history.own_words, self._input.content],
            recalled=self._recalled,
            clock=self._clock,
            gated=self._gated,
            is_kept=lambda: conversations.is_kept(self._question),
        )

    def _run(self, toolbox: Toolbox) -> None:
        """Ask the model and run its tools, until there is an answer or the person must be asked."""
        if self._open:
            with database.scope():
                self._open = confirmation.settle(self._open)
            if self._is_waiting:
                return None
            self._close_round()
        while self._rounds < ROUNDS:
            if not self._model.takes_tools:
                break
            try:
                answer = self._ask(toolbox.offered)
            except ToolsRefused:
                break
            if not answer.tool_calls:
                return self._finish(answer)
            self._call(answer, toolbox)
            if self._is_waiting:
                return None
        if not self._model.takes_tools:
            self._look_up(toolbox)
        return self._finish(self._ask_for_text())

    @property
    def _is_waiting(self) -> bool:
        return any(call.result is None for call in self._open)

    def _end(self) -> None:
        """Store the messages that followed, or the interrupted turn, and the tokens they cost."""
        now = self._clock()
        with database.scope(), db.atomic():
            ledger.record(self._usage, purpose="chat", model=self._model.identity, now=now)
            if self._is_waiting:
                self._pause(now)
            else:
                recalled = self._recalled if memory.tells(self._input.content) else None
                conversations.end_turn(self._question, self._following, recalled=recalled, now=now)
                confirmation.close(self._question.id)

    def _pause(self, now: datetime) -> None:
        if not conversations.is_kept(self._question):
            raise NotFound("The conversation was deleted while the answer was being written.")
        if self._asked:
            turn = Paused(
                self._input.device_id,
                self._input.skill_id,
                self._recalled,
                self._has_foreign_memories,
                self._rounds,
                self._model.identity,
                self._spoken,
                [_noted(message) for message in self._following],
                self._open,
            )
            confirmation.pause(self._question.id, turn, self._asked, now=now)
        self._pending = confirmation.waiting(self._conversation_id)

    def _give_up(self, problem: BaseException) -> None:
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
        if reading.spoken(answer.text) or not self._following:
            return answer
        try:
            answer = self._ask(None, {"role": "user", "content": prompts.ANSWER_NOW})
            if reading.spoken(answer.text):
                return answer
        except ModelFailure as problem:
            log.warning("the answer is made of what the tools found: %s", problem)
            self._count(problem.usage)
        results = [message.content or "" for message in self._following if message.role == "tool"]
        return Answer(replies.from_results(self._input.content, results))

    def _ask(self, offered: list[dict[str, Any]] | None, *reminders: dict[str, Any]) -> Answer:
        room = self._room - (context.tokens(offered) if offered else 0)
        present = [*self._present, *reminders]
        messages = [self._system, *context.fit(self._history.turns, present, room)]
        answer = self._model.complete(
            messages, tools=offered, most=self._most_answer, remembered=self._recalled
        )
        self._count(answer.usage)
        if answer.tool_calls and offered:
            answer.require_whole()
        return answer

    def _call(self, answer: Answer, toolbox: Toolbox) -> list[dict[str, Any]]:
        """Run the tools that the model calls, but for calls that wait for the person; returns their results
        when there are none of those.
        """
        calls = answer.tool_calls[:MAX_CALLS]
        self._spoken.append({**answer.message, "tool_calls": calls})
        self._present.append(self._spoken[-1])
        self._note(role="assistant", tool_calls=_encoded([_plain(call) for call in calls]))
        # What this round finds was not read when its calls were written.
        knew = self._has_foreign_text
        self._open = [self._handled(call, toolbox, has_foreign_text=knew) for call in calls]
        return [] if self._is_waiting else self._close_round()

    def _handled(self, call: dict[str, Any], toolbox: Toolbox, *, has_foreign_text: bool) -> Call:
        """The call with its result, or the person is asked."""
        one = Call(call["id"], call["function"]["name"], call["function"]["arguments"])
        to = toolbox.destination(one.name, one.arguments)
        if to is not None and (to.sensitive or (has_foreign_text and not self._trusts(one.name, to))):
            if self._input.confirm:
                one.asked, one.arguments = confirmation.new_id(), to.arguments
                self._asked[one.asked] = to
                return one
            if self._settings.confirm_calls == "always":
                self._held_back.append(to._replace(arguments=one.name))
                if not to.sensitive:
                    one.result = confirmation.not_run(one.name, confirmation.UNANSWERED)
                    return one
        one.result = toolbox.run(one.name, one.arguments)
        return one

    def _trusts(self, tool: str, to: Destination) -> bool:
        """Whether the person wants no question before calls of this tool."""
        if to.trusted:
            return True
        with database.scope():
            return confirmation.is_allowed(self._conversation_id, tool, to.server)

    def _close_round(self) -> list[dict[str, Any]]:
        """Note the results of the round, in the order of its calls, and return them."""
        results = [call.result or {} for call in self._open]
        for call, found in zip(self._open, results, strict=True):
            result = _encoded(found)
            self._present.append(
                {"role": "tool", "tool_call_id": call.id, "content": self._frame.around(result)}
            )
            self._note(role="tool", content=result, tool_call_id=call.id, tool_name=found["tool"])
            self._has_foreign_text |= conversations.is_foreign(self._following[-1])
        self._open, self._rounds = [], self._rounds + 1
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
        if self._held_back:
            language = self._settings.language
            shown = dict.fromkeys(
                CALL_TO[language].format(tool=to.arguments, server=to.server) for to in self._held_back
            )
            text = f"{text}\n\n{HELD_BACK[language].format(calls=', '.join(shown))}"
        self._text = text
        self._note(role="assistant", content=text)

    def _note(self, **fields: Any) -> None:
        self._following.append(Message(created_at=self._clock(), **fields))

    def _count(self, usage: Usage | None) -> None:
        for name, number in msgspec.structs.asdict(usage or Usage()).items():
            setattr(self._usage, name, getattr(self._usage, name) + number)

    def _read_history(self) -> None:
        """Render this turn, and the earlier ones that fit, in the form that the model takes."""
        transcript = Transcript(self._frame, self._model.takes_tools, self._gated)
        self._present = transcript.messages([self._question, *self._following], pictures=True)
        asked = self._present[0]["content"]
        if self._input.read and isinstance(asked, list):
            framed = self._frame.around(cut(self._input.read, prompts.MAX_READ))
            asked.append({"type": "text", "text": f"{prompts.READ_ON_PICTURE}\n{framed}"})
        if self._model.takes_tools:
            calling = (at for at, message in enumerate(self._present) if message.get("tool_calls"))
            for at, spoken in zip(calling, self._spoken):  # noqa: B905 - none are kept of another model
                self._present[at] = spoken
        pictures = MAX_PICTURES - (self._question.attachment_path is not None)
        self._history = transcript.history(
            conversations.earlier_turns(self._question), self._room, pictures=pictures
        )


def _as_it_was(conversation_id: str, interrupted: tuple[int, Paused] | None) -> tuple[Message, UserMessage]:
    """The message of an interrupted turn, as it is stored and as it came but for its picture. Raises
    `NotFound` when it was deleted meanwhile.
    """
    question = Message.get_or_none(Message.id == interrupted[0]) if interrupted else None
    if interrupted is None or question is None:
        raise NotFound("The conversation was deleted.")
    turn = interrupted[1]
    content = question.content or ""
    said = UserMessage(content, conversation_id, turn.device_id, turn.skill_id, confirm=True)
    return question, said


def _end_interrupted(question_id: int, turn: Paused, *, now: datetime) -> None:
    """End a turn whose calls the person did not answer: they count as refused."""
    confirmation.expire(question_id)
    following = [Message(**msgspec.structs.asdict(message)) for message in turn.following]
    for call in confirmation.settle(turn.open):
        result = call.result or {}
        following.append(
            Message(
                role="tool",
                content=_encoded(result),
                tool_call_id=call.id,
                tool_name=result.get("tool", call.name),
                created_at=now,
            )
        )
    question = Message.get_by_id(question_id)
    recalled = turn.recalled if memory.tells(question.content or "") else None
    conversations.end_turn(question, following, recalled=recalled, now=now)
    confirmation.close(question_id)


def _noted(message: Message) -> Noted:
    return Noted(
        message.role,
        message.created_at,
        message.content,
        message.tool_calls,
        message.tool_call_id,
        message.tool_name,
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
    cannot be reached, the turn waits. Whatever the model proposes, only what the person wrote is saved. A
    turn in which something sensitive was said or read is sent to no remote model, and skipped.
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
        held = gate.is_before(config, settings) and (
            gate.withholds_text(content, answer) or bool(held_back(conversations.turn_of(question)))
        )
    found, usage, later = ([], Usage(), False) if held else _memories_in(model, content, answer)
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


class MessageForm(msgspec.Struct):
    message: Content = ""
    conversation_id: shapes.ConversationId | None = None
    device_id: DeviceId | None = None
    skill_id: SkillId | None = None
    confirm: Confirm = False


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
        "message": {"role": "assistant", "content": reply.content, "tool_calls": reply.tool_calls},
    }
    if reply.pending_calls is not None:
        answered["pending_calls"] = reply.pending_calls
    return answered
