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
import time
from collections.abc import Iterator
from typing import Any, Literal, NoReturn, get_args

from json_repair.json_parser import JSONParser

from engines.findings import MAX_ENTITIES, RESULT_FIELDS, Entity, Findings, MemoryCandidate
from engines.records import MAX_ENTRIES, MAX_RECORDS, TYPES, Field, Form, Record, Value
from errors import AnswerUnusable
from text import fraction, storable

# json_repair is plain Python and takes quadratic time for some texts: 15 s for 8 kB of "{1". The limits are
# beyond what a screen shows; the deadline, in seconds of the processor's time, is for texts within them.
MAX_REPAIRED_CHARACTERS = 200_000
MAX_REPAIRED_ARGUMENTS = 20_000  # characters of a tool's arguments
MAX_REPAIRED_BRACKETS = 500  # opening ones, and as many closing ones
MAX_REPAIRED_DEPTH = 64
REPAIR_SECONDS = 2.0
REPAIR_SECONDS_OF_ARGUMENTS = 0.25  # there may be several tool calls in one answer

# Brackets and commas of a server's answer, those in its texts included. Python takes 50 times the memory of
# the JSON for a list of empty lists, so its size alone is no bound. A screen full of figures has a tenth of
# this.
MAX_VALUES = 100_000

MAX_MEMORIES = 10
MAX_MEMORY = 500  # characters
MemoryCategory = Literal[
    "fact", "people", "project", "finance", "schedule", "preference", "interest", "habit"
]
MemoryType = Literal["short_term", "long_term"]
MEMORY_CATEGORIES: tuple[str, ...] = get_args(MemoryCategory)
MEMORY_TYPES: tuple[str, ...] = get_args(MemoryType)

EXPECTED_FIELDS = frozenset({*RESULT_FIELDS, "memories"})
_NUMBER = r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)"
_AMOUNT = re.compile(rf"{_NUMBER} ?([A-Z]{{3}})|([A-Z]{{3}}) ?{_NUMBER}")


def read_findings(answer: str) -> Findings:
    """The findings in a model's answer. Raises `AnswerUnusable` when no object in it has any field."""
    try:
        found = _best_object(answer)
        return Findings(
            app_name=as_text(found.get("app_name")),
            content_category=_word(found.get("content_category")),
            intent=_word(found.get("intent")),
            title=as_text(found.get("title")),
            summary=as_text(found.get("summary")),
            entities=list(itertools.islice(_entities(found.get("entities"), "text"), MAX_ENTITIES)),
            confidence=_share(found.get("confidence"), 0.0),
            visible_text=as_text(found.get("visible_text")),
            memories=list(itertools.islice(_memories(found.get("memories")), MAX_MEMORIES)),
            raw=storable(answer),
            records=list(itertools.islice(_records(found["records"]), MAX_RECORDS))
            if "records" in found
            else None,
        )
    except RecursionError:
        _unreadable()


def read_memories(answer: str) -> list[MemoryCandidate]:
    """The memories in a model's answer, an object with a list of them. Raises `AnswerUnusable`."""
    try:
        return list(itertools.islice(_memories(_best_object(answer).get("memories")), MAX_MEMORIES))
    except RecursionError:
        _unreadable()


def loose_json(answer: str) -> Any:
    """The JSON, or nearly JSON, of an answer; a list if there are several. Raises `AnswerUnusable`."""
    try:
        return json.loads(answer)
    except ValueError:
        return _repaired(answer, MAX_REPAIRED_CHARACTERS, REPAIR_SECONDS)
    except RecursionError:
        _unreadable()


def loose_object(text: str) -> dict[str, Any]:
    """The JSON object of a `text` that is one or nearly so, else an empty one."""
    value = None
    with contextlib.suppress(AnswerUnusable, RecursionError):
        try:
            value = json.loads(text)
        except ValueError:
            value = _repaired(text, MAX_REPAIRED_ARGUMENTS, REPAIR_SECONDS_OF_ARGUMENTS)
    return value if isinstance(value, dict) else {}


def spoken(text: str) -> str:
    """A model's answer without the reasoning that some models write before it."""
    return text.rpartition("</think>")[2].partition("<think>")[0].strip()


def from_json(body: bytes) -> Any:
    """The JSON value in `body`; None when it is not JSON, nested too deeply, or of too many values."""
    if sum(body.count(mark) for mark in (b"{", b"[", b",")) > MAX_VALUES:
        return None
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


def _records(given: Any) -> Iterator[Record]:
    """The records in an answer, not checked, and without places, which a model does not know."""
    for one in given if isinstance(given, list) else []:
        shape = TYPES.get(as_text(one.get("type"))) if isinstance(one, dict) else None
        if shape is None:
            continue
        listed = one.get("fields")
        if isinstance(listed, dict):
            listed = [{"name": name, "value": value} for name, value in listed.items()]
        fields = [
            Field(name, _value(field.get("value"), shape.fields[name]), as_text(field.get("text")))
            for field in (listed if isinstance(listed, list) else [])
            if isinstance(field, dict) and (name := as_text(field.get("name"))) in shape.fields
        ]
        yield Record(as_text(one["type"]), fields, "model")


def _value(given: Any, form: Form) -> Value:
    """The value of a field as near to its form as the answer has it."""
    if form.kind == "list":
        entries = given if isinstance(given, list) else []
        return [_entry(entry, form.keys) for entry in entries[:MAX_ENTRIES]]
    if form.kind != "amount":
        return as_text(given)
    if isinstance(given, dict):
        return {"value": as_text(given.get("value")), "currency": as_text(given.get("currency")).upper()}
    plain = _AMOUNT.fullmatch(as_text(given))
    return {"value": plain[1] or plain[4], "currency": plain[2] or plain[3]} if plain else ""


def _entry(given: Any, keys: tuple[str, ...]) -> dict[str, str]:
    if isinstance(given, dict):
        return {str(name): as_text(value) for name, value in given.items()}
    values = given if isinstance(given, list) else [given]
    return dict(zip(keys, map(as_text, values), strict=False))


def _best_object(answer: str) -> dict[str, Any]:
    """The JSON object with most of the expected fields, from a text that may hold more or nearly-JSON."""
    value = loose_json(answer)
    objects = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    best = max(objects, key=lambda item: len(EXPECTED_FIELDS & item.keys()), default={})
    if not EXPECTED_FIELDS & best.keys():
        _unreadable()
    return best


def _repaired(answer: str, max_characters: int, seconds: float) -> Any:
    """The JSON value that json_repair reads in `answer`. Raises `AnswerUnusable`."""
    # Reasoning holds drafts; reasoning without an end was cut off before the answer.
    text = spoken(answer)
    if len(text) > max_characters or not _is_repairable(text):
        _unreadable()
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return _Parser(text, seconds).parse()
    except (ValueError, RecursionError):
        _unreadable()


def _is_repairable(text: str) -> bool:
    """Whether the brackets of `text`, those in its strings included, are few and not deeply nested."""
    opened = closed = depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        if bracket[0] in "[{":
            opened, depth = opened + 1, depth + 1
        else:
            closed, depth = closed + 1, max(0, depth - 1)
        if depth > MAX_REPAIRED_DEPTH or max(opened, closed) > MAX_REPAIRED_BRACKETS:
            return False
    return True


class _Parser(JSONParser):
    """json_repair's parser with a deadline, which it checks at each value and at each string."""

    def __init__(self, text: str, seconds: float):
        super().__init__(text, None, False, try_valid_json_suffix=True)  # as `json_repair.loads` makes it
        self._until = time.thread_time() + seconds

    def parse_json(self, *args: Any, **options: Any) -> Any:
        self._check_deadline()
        return super().parse_json(*args, **options)

    def parse_string(self) -> Any:
        self._check_deadline()
        return super().parse_string()

    def _check_deadline(self) -> None:
        if time.thread_time() > self._until:
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
