"""The transcript of a conversation: stored turns in the form in which a model is sent them again."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

import gate
from assistant import context, turns
from assistant.turns import Earlier
from engines import prompts
from errors import Unreadable
from models import Message


class History(NamedTuple):
    """Earlier turns, oldest first."""

    turns: list[context.Sized]  # those that are sent again
    own_words: list[str]  # the person's messages in all turns that were read


class Transcript(NamedTuple):
    """Renders stored turns for the model. One without tools gets their results with the person's message."""

    frame: prompts.Frame
    takes_tools: bool
    gated: bool = False  # what rests on sensitive screenshots is left out

    def history(self, turns: Iterable[list[Earlier]], most: int, *, pictures: int) -> History:
        """The latest of `turns` that fit into `most` tokens, with at most so many `pictures`. `turns` come
        latest first.

        A turn that does not fit with its picture is rendered without it. The history begins after the first
        turn that does not fit at all, so that it has no gaps.
        """
        sent: list[context.Sized] = []
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
            sent.append(fitting)
            most -= fitting.tokens
            pictures -= attached
        return History(sent[::-1], own_words)

    def messages(self, turn: Sequence[Message | Earlier], *, pictures: bool) -> context.Messages:
        """The messages of a turn. Without `pictures`, a line of text replaces each attached picture."""
        messages: context.Messages = []
        held = held_back(turn) if self.gated else set()
        for number, message in enumerate(turn):
            if number in held:
                message = _without_content(message)
            if message.role == "user":
                messages.append({"role": "user", "content": _user_content(message, pictures=pictures)})
            elif message.role == "tool" and self.takes_tools:
                framed = self.frame.around(message.content or "")
                messages.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": framed})
            elif message.role == "tool" and messages:
                text = f"{prompts.LOOKED_UP}\n{self.frame.around(message.content or '')}"
                before = messages[-1]["content"]
                parts = before if isinstance(before, list) else [{"type": "text", "text": before}]
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


# The tools whose results are screenshots. What others answer came from outside.
SCREENSHOTS = ("search_knowledge_base", "get_screenshot", "agenda", "list_records", "list_threads")


def held_back(turn: Sequence[Message | Earlier]) -> set[int]:
    """The positions of the messages in a turn that must not leave (`gate.held`). An embedded model has read
    such results in full, as has a remote one if a photo was marked later.
    """
    return gate.held([_said(message) for message in turn])


def _said(message: Message | Earlier) -> gate.Said:
    if message.role == "tool":
        return gate.Said(found=(message.content or "") if message.tool_name in SCREENSHOTS else "")
    return gate.Said(words=(message.content or "") if message.role == "assistant" else "")


def _without_content(message: Message | Earlier) -> Message:
    if message.role == "tool":
        result: dict[str, Any] = {
            "tool": message.tool_name,
            "count": 0,
            "results": [],
            "error": gate.HELD_BACK,
        }
        content = msgspec.json.encode(result).decode()
    else:
        content = gate.HELD_BACK
    return Message(
        role=message.role, content=content, tool_call_id=message.tool_call_id, tool_name=message.tool_name
    )


def _user_content(message: Message | Earlier, *, pictures: bool) -> str | list[dict[str, Any]]:
    """The content of a user message in the protocol's form."""
    content = message.content or ""
    if message.attachment_path is None:
        return content
    if pictures:
        with contextlib.suppress(Unreadable):
            jpeg = turns.picture_of(message)
            return [{"type": "text", "text": content}, prompts.picture(jpeg)]
    return f"{content}\n{prompts.NO_PICTURE}"
