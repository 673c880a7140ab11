"""The parts of what an OpenAI-compatible server answers: text, calls of tools, vectors, usage, the message of
a failure. Servers differ in all of them.
"""

import array
import base64
import binascii
import contextlib
import json
import math
import secrets
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from engines import reading
from engines.findings import MAX_CALLS, Usage
from errors import MAX_RETRY_AFTER, AnswerUnusable

MAX_TOKENS_COUNTED = 10**9  # a larger count is wrong, and must not use up the day's limit
# Of a vector. Fewer say little; the largest models have 4,096.
MIN_DIMENSIONS, MAX_DIMENSIONS = 64, 4_096
MAX_COMPONENT = 1e9  # of a vector; most models send vectors of length 1
MAX_ERROR_DEPTH = 4  # Gemini sends a list of an object in an object


def calls(sent: Any) -> list[dict[str, Any]]:
    """The first `MAX_CALLS` tool calls, with unique ids and JSON arguments, which servers demand."""
    complete: dict[str, dict[str, Any]] = {}
    for call in sent if isinstance(sent, list) else []:
        if len(complete) == MAX_CALLS:
            break
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            continue
        given = function.get("arguments")
        arguments = given if isinstance(given, dict) else reading.loose_object(reading.as_text(given))
        call_id = reading.as_text(call.get("id"))
        if not call_id or call_id in complete:
            call_id = f"call_{secrets.token_hex(8)}"
        named = {
            "name": reading.as_text(function.get("name")),
            "arguments": json.dumps(arguments, ensure_ascii=False),
        }
        complete[call_id] = {**call, "id": call_id, "type": "function", "function": {**function, **named}}
    return list(complete.values())


def vectors(data: list[Any], count: int) -> list[list[float]]:
    """The vectors in an answer, in order. Raises `AnswerUnusable` unless `count` sound ones are there."""
    rows = [row if isinstance(row, dict) else {} for row in data[: count + 1]]
    indices = [row.get("index", place) for place, row in enumerate(rows)]
    if indices == [0] * count:  # relays that do not count send them in the order of the texts
        indices = list(range(count))
    if sorted(index for index in indices if type(index) is int) != list(range(count)):
        raise AnswerUnusable("The model's server did not send a vector for each text.")
    found: list[list[float]] = [[]] * count
    for index, row in zip(indices, rows, strict=True):
        found[index] = _vector(row.get("embedding"))
    if len({len(vector) for vector in found}) > 1:
        raise AnswerUnusable("The model's vectors differ in length.")
    return found


def _vector(values: Any) -> list[float]:
    if isinstance(values, str):
        values = _unpacked(values)
    if not isinstance(values, list) or not MIN_DIMENSIONS <= len(values) <= MAX_DIMENSIONS:
        raise AnswerUnusable(
            f"The model's server did not send a vector of {MIN_DIMENSIONS} to {MAX_DIMENSIONS} numbers."
        )
    if any(type(value) not in (int, float) or not abs(value) < MAX_COMPONENT for value in values):
        raise AnswerUnusable("The model's vector has something else than finite numbers in it.")
    if not any(values):
        raise AnswerUnusable("The model's vector is zero.")
    return [float(value) for value in values]


def _unpacked(text: str) -> list[float]:
    """The numbers of a vector in base64 (32 bits, little-endian), as some relays send it; else none."""
    values = array.array("f")
    with contextlib.suppress(binascii.Error, ValueError):
        values.frombytes(base64.b64decode(text[: MAX_DIMENSIONS * 6], validate=True))
    if sys.byteorder == "big":
        values.byteswap()
    return values.tolist()


def message_of(payload: Any) -> str:
    """A server's message about an error, in any of the usual shapes; "" when there is none."""
    for _ in range(MAX_ERROR_DEPTH):
        if isinstance(payload, list) and payload:
            payload = payload[0]
        if not isinstance(payload, dict):
            break
        payload = next(
            (payload[name] for name in ("error", "message", "detail", "msg") if payload.get(name)), None
        )
    return payload if isinstance(payload, str) else ""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """`Retry-After` in seconds from `now`, also of an HTTP date (RFC 9110, 10.2.3); None without one."""
    value = headers.get("Retry-After", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
            seconds = (moment.astimezone(UTC).replace(tzinfo=None) - now).total_seconds()
        except (ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else max(0.0, min(seconds, MAX_RETRY_AFTER))


def usage(counts: Any) -> Usage:
    """What a call has cost, by the counts of the server."""
    counts = counts if isinstance(counts, dict) else {}
    prompt, completion = (
        reading.as_number(counts.get(name), 0.0) for name in ("prompt_tokens", "completion_tokens")
    )
    return Usage(
        1, int(min(max(prompt, 0.0), MAX_TOKENS_COUNTED)), int(min(max(completion, 0.0), MAX_TOKENS_COUNTED))
    )


def content(sent: Any) -> str:
    """The text of a message, which is a string or a list of parts."""
    parts = sent if isinstance(sent, list) else [sent]
    return "".join(
        reading.as_text(part.get("text")) if isinstance(part, dict) else reading.as_text(part)
        for part in parts
    )
