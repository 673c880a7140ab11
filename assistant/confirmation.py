"""Calls that wait for the person's word: a model that has read texts of others wants to call a tool that
sends something out, and the person decides whether it may.

A turn with such calls is interrupted. It is stored beside its message, not as messages: in a conversation, no
call is without its result. The calls that need no word have run by then. Each other one is a row with an id
of its own, because some providers give the calls of every round the same ids.

An answer is recorded before its call runs and the result after it, so that a call runs at most once whatever
crashes between, and a model is told when nobody knows whether a call was carried out.
"""

import secrets
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from database import db
from errors import Conflict, NotFound
from models import AskedCall, Message, PausedTurn
from web import shapes

REFUSED = "not sent: the person refused this call."
EXPIRED = "not sent: the person did not allow this call and wrote something else."
UNANSWERED = "not sent: this call needs the person's consent, for which this client cannot ask."
INTERRUPTED = "interrupted: nobody knows whether this call was carried out. Tell the person so."


class Destination(NamedTuple):
    """Where a call would send its arguments, and what is sensitive in them."""

    server: str  # its host, as in its address; several hosts have commas between them
    server_id: str | None  # of an MCP server
    trusted: bool
    arguments: str  # a JSON object, exactly as it would be sent
    sensitive: tuple[str, ...]  # kinds


class Call(msgspec.Struct):
    """A call of the round that is not over."""

    id: str  # the model's
    name: str
    arguments: str
    asked: str | None = None  # under which id the person is asked
    result: dict[str, Any] | None = None


class Noted(msgspec.Struct):
    """A message of an interrupted turn."""

    role: str
    created_at: datetime
    content: str | None = None
    tool_calls: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None


class Paused(msgspec.Struct):
    """A turn that waits for the person."""

    device_id: str
    skill_id: str | None
    recalled: list[str]  # the memories that the model was given
    has_foreign_memories: bool
    rounds: int
    model: str  # that has called
    spoken: list[dict[str, Any]]  # its messages with calls, with the fields that it requires again
    following: list[Noted]
    open: list[Call]


def pause(question_id: int, turn: Paused, asked: dict[str, Destination], *, now: datetime) -> None:
    """Store an interrupted turn, and the calls that the person is asked about. Needs a transaction."""
    state = msgspec.json.encode(turn).decode()
    PausedTurn.insert(message=question_id, state=state).on_conflict_replace().execute()
    calls = {call.asked: (place, call) for place, call in enumerate(turn.open)}
    for id, destination in asked.items():
        place, call = calls[id]
        AskedCall.create(
            id=id,
            message=question_id,
            place=place,
            tool=call.name,
            server=destination.server,
            server_id=destination.server_id,
            arguments=destination.arguments,
            sensitive=" ".join(destination.sensitive),
            asked_at=now,
        )


def paused(conversation_id: str) -> tuple[int, Paused] | None:
    """The interrupted turn of a conversation, with the id of its user message."""
    # Without peewee: each turn asks.
    sql = """SELECT message_id, state FROM paused_turns JOIN messages ON messages.id = message_id
        WHERE conversation_id = ? ORDER BY message_id DESC LIMIT 1"""
    row = db.execute_sql(sql, (conversation_id,)).fetchone()
    return None if row is None else (row[0], msgspec.json.decode(row[1], type=Paused))


def new_id() -> str:
    return secrets.token_hex(16)


def waiting(conversation_id: str) -> list[shapes.PendingCall]:
    """The calls of a conversation that the person has not answered, in their order."""
    selected = AskedCall.select().join(Message).where(Message.conversation == conversation_id)
    unanswered = sorted(
        selected.where(AskedCall.decision.is_null()), key=lambda call: (call.message_id, call.place)
    )
    return [shapes.of(call, shapes.PendingCall, sensitive=call.sensitive.split()) for call in unanswered]


def unanswered(conversation_id: str, call_id: str) -> AskedCall:
    """The call that waits under this id. Raises `NotFound`, and `Conflict` when it does not wait any more."""
    selected = AskedCall.select().join(Message)
    mine = selected.where(AskedCall.id == call_id, Message.conversation == conversation_id)
    call: AskedCall | None = mine.first()
    if call is None:
        raise NotFound("No call of this conversation has this id")
    if call.decision is not None:
        raise Conflict("This call has been answered already.")
    return call


def decide(call: AskedCall, *, allow: bool, for_conversation: bool) -> None:
    """Record what the person says of a call. Raises `Conflict` when another answer came first."""
    decision = "allowed" if allow else "refused"
    lasting = allow and for_conversation and not call.sensitive
    first = AskedCall.update(decision=decision, for_conversation=lasting).where(
        AskedCall.id == call.id, AskedCall.decision.is_null()
    )
    if not first.execute():
        raise Conflict("This call has been answered already.")


def keep_result(call: AskedCall, result: dict[str, Any]) -> None:
    """Store the result of a call that was allowed."""
    encoded = msgspec.json.encode(result).decode()
    AskedCall.update(result=encoded).where(AskedCall.id == call.id).execute()


def expire(question_id: int) -> None:
    """Take the calls of a turn that still wait as refused."""
    waits = (AskedCall.message == question_id) & AskedCall.decision.is_null()
    AskedCall.update(decision="expired").where(waits).execute()


def settle(calls: list[Call]) -> list[Call]:
    """The calls of an interrupted round with the results of those that were answered meanwhile."""
    rows = {row.id: row for row in AskedCall.select().where(AskedCall.id.in_([call.asked for call in calls]))}
    return [msgspec.structs.replace(call, result=_result(call, rows.get(call.asked or ""))) for call in calls]


def close(question_id: int) -> None:
    """Forget the state of an interrupted turn that is over. For use in the transaction that ends it."""
    PausedTurn.delete().where(PausedTurn.message == question_id).execute()


def is_allowed(conversation_id: str, tool: str, server: str) -> bool:
    """Whether the person has allowed this tool of this server for the whole conversation."""
    return (
        AskedCall.select()
        .join(Message)
        .where(
            Message.conversation == conversation_id,
            AskedCall.tool == tool,
            AskedCall.server == server,
            AskedCall.for_conversation,
        )
        .exists()
    )


def not_run(tool: str, reason: str) -> dict[str, Any]:
    """The result of a call that did not run."""
    return {"tool": tool, "count": 0, "results": [], "error": reason}


def _result(call: Call, asked: AskedCall | None) -> dict[str, Any] | None:
    if asked is None or asked.decision is None:
        return call.result
    if asked.result is not None:
        result: dict[str, Any] = msgspec.json.decode(asked.result)
        return result
    reason = {"refused": REFUSED, "expired": EXPIRED}.get(asked.decision, INTERRUPTED)
    return not_run(call.name, reason)
