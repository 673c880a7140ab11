"""Reads models' answers, as tolerantly as possible without making anything up.

Models are asked for one JSON object with certain fields. They put fences, prose or their reasoning around it,
forget quotes, write numbers as text and lists as objects. All of that is corrected here. But an answer
without an object, or an object without any of the fields, is a failure: half a guess in the archive is worse
than another attempt.

No answer can break the reader: nesting, size, numbers and characters are checked before they are used.
"""

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal, NoReturn, get_args

import json_repair

from engines.findings import MAX_ENTITIES, Entity, Findings, MemoryCandidate
from errors import AnswerUnusable
from text import fraction, storable

# json_repair is plain Python, and nesting makes it quadratic: 12 s for 100,000 braces. A screen shows less
# than either limit.
MAX_REPAIRED_CHARACTERS = 200_000
MAX_REPAIRED_BRACKETS = 4_000

MAX_MEMORIES = 10
MAX_MEMORY = 500  # characters
MemoryCategory = Literal[
    "fact", "people", "project", "finance", "schedule", "preference", "interest", "habit"
]
MemoryType = Literal["short_term", "long_term"]
MEMORY_CATEGORIES: tuple[str, ...] = get_args(MemoryCategory)
MEMORY_TYPES: tuple[str, ...] = get_args(MemoryType)

EXPECTED_FIELDS = frozenset(
    {
        "app_name",
        "content_category",
        "intent",
        "summary",
        "entities",
        "confidence",
        "visible_text",
        "memories",
    }
)


def read_findings(answer: str) -> Findings:
    """The findings in a model's answer. Raises `AnswerUnusable` when it holds no object with any of the
    fields.
    """
    try:
        found = _best_object(answer)
        return Findings(
            app_name=as_text(found.get("app_name")),
            content_category=_word(found.get("content_category")),
            intent=_word(found.get("intent")),
            summary=as_text(found.get("summary")),
            entities=list(itertools.islice(_entities(found.get("entities"), "text"), MAX_ENTITIES)),
            confidence=_share(found.get("confidence"), 0.0),
            visible_text=as_text(found.get("visible_text")),
            memories=list(itertools.islice(_memories(found.get("memories")), MAX_MEMORIES)),
            raw=storable(answer),
        )
    except RecursionError:
        _unreadable()


def read_memories(answer: str) -> list[MemoryCandidate]:
    """The memories in a model's answer, an object with a list of them. Raises `AnswerUnusable` when it holds
    no such object.
    """
    try:
        return list(itertools.islice(_memories(_best_object(answer).get("memories")), MAX_MEMORIES))
    except RecursionError:
        _unreadable()


def loose_json(answer: str) -> Any:
    """The JSON value of an answer that is JSON or nearly so; a list if there are several. Raises
    `AnswerUnusable`.
    """
    try:
        return json.loads(answer)
    except ValueError:
        return _repaired(answer)


def loose_object(text: str) -> dict[str, Any]:
    """The JSON object of a `text` that is one or nearly so, else an empty one."""
    value = None
    with contextlib.suppress(AnswerUnusable, RecursionError):
        value = loose_json(text)
    return value if isinstance(value, dict) else {}


def spoken(text: str) -> str:
    """A model's answer without the reasoning that some models write before it."""
    return text.rpartition("</think>")[2].partition("<think>")[0].strip()


def from_json(body: bytes) -> Any:
    """The JSON value in `body`; None when it is not JSON, or nested too deeply."""
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def as_text(value: Any) -> str:
    """A value as storable text: a list line by line, and "" for null, booleans and objects."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(as_text, value)))
    return "" if value is None or isinstance(value, bool | dict) else storable(str(value)).strip()


def as_number(value: Any, default: float) -> float:
    """A value as a number, infinity included, or `default` when it is not one."""
    try:
        found = default if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return default
    return default if math.isnan(found) else found


def _best_object(answer: str) -> dict[str, Any]:
    """The JSON object with most of the expected fields, from a text that may hold more than it, or
    nearly-JSON.
    """
    value = loose_json(answer)
    objects = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    best = max(objects, key=lambda item: len(EXPECTED_FIELDS & item.keys()), default={})
    if not EXPECTED_FIELDS & best.keys():
        _unreadable()
    return best


def _repaired(answer: str) -> Any:
    # Reasoning holds drafts; reasoning without an end was cut off before the answer.
    text = spoken(answer)
    if len(text) > MAX_REPAIRED_CHARACTERS or text.count("{") + text.count("[") > MAX_REPAIRED_BRACKETS:
        _unreadable()
    try:
        return json_repair.loads(text)
    except ValueError:
        _unreadable()


def _unreadable() -> NoReturn:
    raise AnswerUnusable("The model's answer is not the JSON object that it was asked for.") from None


def _entities(value: Any, kind: str) -> Iterator[Entity]:
    """Objects with type and value, as requested, but also a mapping from type to values, or bare values."""
    if isinstance(value, list):
        for item in value:
            yield from _entities(item, kind)
    elif isinstance(value, dict) and "type" in value:
        content = next((value[name] for name in ("value", "name", "text") if name in value), None)
        yield from _entities(content, as_text(value["type"]) or kind)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _entities(item, kind if name == "value" else name)
    elif content := as_text(value):
        yield Entity(storable(kind), content)


def _memories(value: Any) -> Iterator[MemoryCandidate]:
    for item in value if isinstance(value, list) else [value]:
        fields = item if isinstance(item, dict) else {"content": item}
        content = as_text(fields.get("content"))[:MAX_MEMORY].strip()
        category, memory_type = _word(fields.get("category")), _word(fields.get("memory_type"))
        if content:
            yield MemoryCandidate(
                content,
                category if category in MEMORY_CATEGORIES else "fact",
                memory_type if memory_type in MEMORY_TYPES else "short_term",
                _share(fields.get("importance"), 0.5),
            )


def _word(value: Any) -> str:
    """A word of a value list: "Social Media" is social_media."""
    return re.sub(r"[\s-]+", "_", as_text(value).lower())


def _share(value: Any, default: float) -> float:
    """A number from 0 to 1; "85%" is 0.85. Values outside are clamped: a bare 7 may not be a percentage."""
    percent = isinstance(value, str) and value.strip().endswith("%")
    share = as_number(value.strip().rstrip("%") if isinstance(value, str) else value, default)
    return fraction(share / 100 if percent else share)
