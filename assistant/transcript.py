"""The transcript of a conversation: stored turns in the form in which a model is sent them again."""

import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import gate
from assistant import context, conversations
from assistant.conversations import Earlier
from engines import prompts
from errors import Unreadable
from models import Message

TURNS = 20  # of a history whose photos are looked up together

Marks = Mapping[int, gate.Mark]  # by the ids of photos


class History(NamedTuple):
    """Earlier turns, oldest first."""

    turns: list[context.Sized]  # those that are sent again
    own_words: list[str]  # the person's messages in all turns that were read


class Transcript(NamedTuple):
    """Renders stored turns in the protocol's form. For a model that takes no tools, the tools' results are
    appended to the person's message.
    """

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
        for turn, marks in _with_marks(turns) if self.gated else ((turn, None) for turn in turns):
            own_words[:0] = [message.content or "" for message in turn if message.role == "user"]
            attached = sum(message.attachment_path is not None for message in turn)
            with_pictures = (True, False) if attached and pictures > 0 else (False,)
            fitting = context.first_fitting(
                (self.messages(turn, pictures=shown, marks=marks) for shown in with_pictures), most
            )
            if fitting is None:
                break
            sent.append(fitting)
            most -= fitting.tokens
            pictures -= attached
        return History(sent[::-1], own_words)

    def messages(
        self, turn: Sequence[Message | Earlier], *, pictures: bool, marks: Marks | None = None
    ) -> context.Messages:
        """The messages of a turn. Without `pictures`, a line of text replaces each attached picture. `marks`
        are those of the photos that its tools have found, if they are known.
        """
        messages: context.Messages = []
        held = held_back(turn, marks) if self.gated else set()
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


# The tools whose results are screenshots. What others answer came from outside.
SCREENSHOTS = ("search_knowledge_base", "get_screenshot", "agenda", "list_records")


def held_back(turn: Sequence[Message | Earlier], marks: Marks | None = None) -> set[int]:
    """The positions of the messages in a turn that must not leave: results of tools about sensitive
    screenshots, and the answers that were given after them. `marks` are those of the screenshots, if they are
    known.

    An embedded model has read such results in full, as has a remote one if a photo was marked later.
    """
    if marks is None:
        marks = gate.marks(_found_in(turn))
    held: set[int] = set()
    photos: set[int] = set()
    for number, message in enumerate(turn):
        if message.role == "tool" and message.tool_name in SCREENSHOTS:
            results = _judged(message.content or "")
            photos.update(marks.keys() & {photo_id for photo_id, _ in results})
            judged = (
                (marks.get(photo_id or 0, gate.Mark()), is_sensitive) for photo_id, is_sensitive in results
            )
            if any(not mark.cleared and (mark.sensitive or is_sensitive) for mark, is_sensitive in judged):
                held.add(number)
        elif (
            message.role == "assistant"
            and message.content
            and (
                held or (photos and gate.withholds_marked([marks[each] for each in photos], message.content))
            )
        ):
            held.add(number)
    return held


def _with_marks(turns: Iterable[list[Earlier]]) -> Iterator[tuple[list[Earlier], Marks]]:
    """The turns, each with the marks of the photos that its tools have found: in one query for some turns."""
    rest = iter(turns)
    while some := list(itertools.islice(rest, TURNS)):
        marks = gate.marks(_found_in(itertools.chain.from_iterable(some)))
        yield from ((turn, marks) for turn in some)


def _found_in(messages: Iterable[Message | Earlier]) -> set[int]:
    """The ids of the photos in the results of tools."""
    return {
        photo_id
        for message in messages
        if message.role == "tool" and message.tool_name in SCREENSHOTS
        for photo_id, _ in _judged(message.content or "")
        if photo_id is not None
    }


@functools.lru_cache(maxsize=256)
def _judged(content: str) -> list[tuple[int | None, bool]]:
    """Of each result of a tool, the photo's id, and whether something sensitive is in its texts. Each turn
    asks this again about its whole history, and judging texts is slow.
    """
    results = _results(content)
    ids = [result["id"] if isinstance(result.get("id"), int) else None for result in results]
    return [
        (photo_id, gate.withholds(gate.Mark(), result)) for photo_id, result in zip(ids, results, strict=True)
    ]


def _results(content: str) -> list[dict[str, Any]]:
    """The results of a tool, without those that were held back when it ran."""
    try:
        answer = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return []
    results = answer.get("results", []) if isinstance(answer, dict) else []
    return [result for result in results if isinstance(result, dict) and result.get("title") != gate.TITLE]


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
            return [{"type": "text", "text": content}, prompts.picture(conversations.picture_of(message))]
    return f"{content}\n{prompts.NO_PICTURE}"


def _parts(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
