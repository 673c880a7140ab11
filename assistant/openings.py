"""What a turn of a conversation starts from: the person's message, stored, and what the model is given with
it. A turn begins with a message, or resumes after the person has answered the calls that it waited for.

Nothing here asks a model or runs a tool. The verbs are for use in a database scope.
"""

from datetime import datetime
from typing import Any, NamedTuple

import msgspec

import gate
import llm
import memory
from assistant import confirmation, context, skills, turns
from assistant.confirmation import Paused
from assistant.turns import Turn
from database import db
from engines import configuration, ledger, prompts
from engines.configuration import Configuration
from errors import NotFound
from models import Message
from rules import statements
from settings import Settings

FOREIGN_MEMORIES = ("screenshot", "assistant")  # made of what was read, not of what the person wrote

# The answer gets a quarter of the context, and at most so many tokens.
ANSWER_SHARE, MAX_ANSWER = 4, 8_192


class UserMessage(msgspec.Struct, frozen=True):
    """A message from the person. `picture` is a JPEG for models, `read` what was read on it here before."""

    content: str
    conversation_id: str | None = None
    device_id: str = ""
    skill_id: str | None = None
    picture: bytes | None = None
    confirm: bool = False  # the client can ask the person about calls
    read: str = ""


class Opening(NamedTuple):
    """A turn before its model is asked. `paused` is what was done of it before the person was asked."""

    message: UserMessage
    question: Message  # the message, as it is stored
    paused: Paused | None
    model: llm.Model
    gated: bool
    frame: prompts.Frame
    system: dict[str, Any]
    recalled: list[str]  # the memories that the model is given
    has_foreign_memories: bool
    has_foreign_text: bool
    most_answer: int  # tokens
    room: int  # tokens of the context that are left for the messages
    tells: bool  # something that may be worth a memory

    @property
    def conversation_id(self) -> str:
        return str(self.question.conversation_id)


def begin(settings: Settings, message: UserMessage, conversation_id: str, *, now: datetime) -> Opening:
    """Store the message, or find the turn that it began and that was interrupted. Another message ends that
    turn.

    Raises `NotFound` for an unknown or disabled skill, and `Unavailable` when the day's tokens are used up;
    by then the message is stored.
    """
    chosen = _chosen(message, settings, now=now)
    question = Message()
    try:
        with db.atomic():
            paused = _interrupted_by(message, conversation_id, now=now)
            question = turns.begin_turn(
                conversation_id, message.content, message.picture, device_id=message.device_id, now=now
            )
            if paused is not None and not message.confirm:
                confirmation.expire(question.id)
            recalled = (
                _Recalled(paused.recalled, paused.has_foreign_memories)
                if paused
                else _recall(message, gated=chosen.gated, now=now)
            )
    except BaseException:
        turns.drop_unless_stored(question)
        raise
    ledger.require_tokens(chosen.config, settings, now=now)
    return _opened(message, question, paused, chosen, recalled, now=now)


def resume(settings: Settings, conversation_id: str, *, now: datetime) -> Opening:
    """Go on with the interrupted turn of a conversation. Raises `NotFound`, and what `begin` raises."""
    interrupted = confirmation.paused(conversation_id)
    question = Message.get_or_none(Message.id == interrupted[0]) if interrupted else None
    if interrupted is None or question is None:
        raise NotFound("The conversation was deleted.")
    paused = interrupted[1]
    content = question.content or ""
    message = UserMessage(content, conversation_id, paused.device_id, paused.skill_id, confirm=True)
    chosen = _chosen(message, settings, now=now)
    ledger.require_tokens(chosen.config, settings, now=now)
    recalled = _Recalled(paused.recalled, paused.has_foreign_memories)
    return _opened(message, question, paused, chosen, recalled, now=now)


class _Chosen(NamedTuple):
    """Who answers: the skill's words, the model, and whether the gate is before it."""

    persona: str
    config: Configuration
    model: llm.Model
    gated: bool


class _Recalled(NamedTuple):
    """The memories that the model is given, and whether others wrote one of them."""

    memories: list[str]
    has_foreign: bool


def _opened(
    message: UserMessage,
    question: Message,
    paused: Paused | None,
    chosen: _Chosen,
    recalled: _Recalled,
    *,
    now: datetime,
) -> Opening:
    persona, config, model, gated = chosen
    frame = prompts.Frame()
    system = {
        "role": "system",
        "content": prompts.chat(frame, persona=persona, remembered=recalled.memories, now=now),
    }
    most_answer = min(MAX_ANSWER, config.max_context_tokens // ANSWER_SHARE)
    return Opening(
        message,
        question,
        paused,
        model,
        gated,
        frame,
        system,
        recalled.memories,
        recalled.has_foreign,
        recalled.has_foreign or turns.has_foreign_text(question),
        most_answer,
        config.max_context_tokens - most_answer - context.tokens(system),
        statements.tells(message.content),
    )


def _chosen(message: UserMessage, settings: Settings, *, now: datetime) -> _Chosen:
    persona = prompts.PERSONA
    if message.skill_id:
        persona = skills.get_enabled(message.skill_id, settings.language, now=now).system_prompt
    config = configuration.current(settings)
    return _Chosen(persona, config, llm.model_for(config, settings), gate.is_before(config, settings))


def _recall(message: UserMessage, *, gated: bool, now: datetime) -> _Recalled:
    found = memory.recall(message.content, device_id=message.device_id or None, now=now)
    given = [entry for entry in found if not (gated and gate.withholds_text(entry.content))]
    return _Recalled(
        [entry.content for entry in given], any(entry.source_type in FOREIGN_MEMORIES for entry in given)
    )


def _interrupted_by(message: UserMessage, conversation_id: str, *, now: datetime) -> Paused | None:
    """The interrupted turn of the conversation, if it is this message's; another one is ended."""
    interrupted = confirmation.paused(conversation_id)
    if interrupted is None:
        return None
    repeated = turns.unanswered(conversation_id, message.content, message.picture)
    if repeated is not None and repeated.id == interrupted[0]:
        return interrupted[1]
    _end_interrupted(*interrupted, now=now)
    return None


def _end_interrupted(question_id: int, turn: Paused, *, now: datetime) -> None:
    """End a turn whose calls the person did not answer: they count as refused."""
    confirmation.expire(question_id)
    following = messages_of(turn)
    for call in confirmation.settle(turn.open):
        result = call.result or {}
        following.append(
            Message(
                role="tool",
                content=msgspec.json.encode(result).decode(),
                tool_call_id=call.id,
                tool_name=result.get("tool", call.name),
                created_at=now,
            )
        )
    question = Message.get_by_id(question_id)
    recalled = turn.recalled if statements.tells(question.content or "") else None
    turns.end_turn(question, following, recalled=recalled, now=now)
    confirmation.close(question_id)


def messages_of(turn: Paused) -> Turn:
    """The messages that followed the person's before a turn was interrupted."""
    return [Message(**msgspec.structs.asdict(message)) for message in turn.following]
