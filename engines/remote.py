"""A model at a configured address, called by the protocol that all providers share: OpenAI-compatible chat
completions.

Servers that call themselves compatible differ in what they accept and in what they send. So a parameter that
a server refuses by name is left out from then on, and an answer is read as tolerantly as possible without
making anything up: types are converted and nearly-JSON is repaired, but an answer that was cut off or holds
none of the fields is a failure, and nothing of it is stored. The class of a failure names its cause
(`errors.ModelFailure`); the queue retries, this module does not.

Text on a screenshot is data: the prompt states that, and the answer is only ever read as data.
"""

import array
import base64
import binascii
import contextlib
import json
import math
import re
import secrets
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import net
import pictures
from clock import utc_now
from engines import articles, prompts, reading
from engines.configuration import Configuration
from engines.findings import MAX_CALLS, Answer, Findings, MemoryCandidate, Usage
from errors import (
    MAX_RETRY_AFTER,
    AnswerUnusable,
    BadInput,
    ModelFailure,
    ProviderDown,
    ProviderRefused,
    ToolsRefused,
)
from settings import MEGABYTE
from text import one_line, shortened

CHAT = "chat/completions"  # the path of a call
MAX_ANSWER_TOKENS = 16_384  # a full screen of text, and room for reasoning before it
MAX_TOKENS_COUNTED = 10**9  # a larger count is wrong, and must not use up the day's limit
MAX_MESSAGE = 2_000  # characters of a provider's message that are read
MAX_QUOTED = 200  # characters of a provider's message that are shown
MAX_ANSWER_BYTES = 2 * MEGABYTE  # ten times a full screen of text in escaped characters
# Of a vector. Fewer say little; the largest models have 4,096.
MIN_DIMENSIONS, MAX_DIMENSIONS = 64, 4_096
MAX_COMPONENT = 1e9  # of a vector; most models send vectors of length 1
MAX_ERROR_DEPTH = 4  # Gemini sends a list of an object in an object
# What servers report that the status does not tell.
_REPORTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_NO_TOOLS, _TOO_LONG = (
    re.compile("|".join(_REPORTS[name]), re.IGNORECASE) for name in ("no_tools", "too_long")
)
_VERSION = re.compile(r"/v[0-9]")  # in an address

# Structured outputs: https://platform.openai.com/docs/guides/structured-outputs. Servers without them refuse
# the parameter, or this type of it.
_BY_SCHEMA = "json_schema"
# Where `detail` of a picture is documented.
DETAILED = frozenset({"api.openai.com", "openrouter.ai"})

T = TypeVar("T")


class RemoteModel:
    """A model behind an OpenAI-compatible address. Safe for use by several threads."""

    def __init__(
        self,
        configuration: Configuration,
        guard: net.Guard,
        *,
        language: str,
        deadline: float = net.ANSWER_SECONDS,
    ):
        self.identity = f"{configuration.provider}/{configuration.model}"
        self._configuration = configuration
        self._client = net.Client(guard)
        self._language = language
        self._deadline = deadline
        self._dropped: frozenset[str] = frozenset()  # parameters that this server refuses
        self.takes_tools = True  # until the server reports otherwise

    def analyse(
        self, picture: BinaryIO, *, name: str = "", text: str = "", taken: datetime | None = None
    ) -> Findings:
        """See `Model`. Raises `UnsupportedImage` for a picture that does not decode."""
        parts = pictures.parts_for_model(picture)
        question = prompts.analysis(
            parts, name, self._language, text=text, taken=taken, detail=self._takes_detail
        )
        findings, usage = self._read_json(question, reading.read_findings, prompts.FINDINGS_SCHEMA)
        findings.usage = usage
        return findings

    def complete(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        most: int = MAX_ANSWER_TOKENS,
        remembered: Sequence[str] = (),
        json_answer: bool = False,
        schema: dict[str, Any] | None = None,
    ) -> Answer:
        """See `Model`. A JSON answer follows the `schema` where the server can hold a model to one. Raises
        `ToolsRefused` when the model cannot call tools. The failure of a billed call carries its usage.
        """
        body: dict[str, Any] = {"messages": messages}
        if self._configuration.model:  # a server with a single model needs no name
            body["model"] = self._configuration.model
        if tools:
            body["tools"] = tools
        dropped = self._dropped
        while True:
            parameters = self._parameters(dropped, most, json_answer, schema)
            response = self._post(body | parameters, CHAT, self._deadline)
            refused = _refused_parameter(response, parameters)
            if refused is None:
                break
            if refused == "response_format" and parameters[refused]["type"] == _BY_SCHEMA:
                refused = _BY_SCHEMA  # plain JSON may do
            dropped |= {refused}
        if not 200 <= response.status < 300:
            message = _message_of(reading.from_json(response.body))
            if tools and 400 <= response.status < 500 and _NO_TOOLS.search(message[:MAX_MESSAGE]):
                self.takes_tools = False
                raise ToolsRefused(f"The model takes no tools: {self._quoted(message)}")
            raise self._failure(response.status, response.headers, message)
        self._dropped |= dropped  # only after it has helped
        return self._read(response)

    def memories_in(self, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage]:
        """See `Model`."""
        return self._read_json(prompts.memories(said, answered), reading.read_memories)

    def write_notes(self, material: articles.Material) -> articles.Notes:
        """See `Model`."""
        question = prompts.notes(material, self._language)
        found, usage = self._read_json(question, lambda answer: articles.read(answer, material))
        return articles.Notes(found, usage)

    def embed(self, texts: Sequence[str], *, deadline: float) -> tuple[list[list[float]], Usage]:
        """The vectors of some texts, of one length between `MIN_DIMENSIONS` and
        `MAX_DIMENSIONS`, and the usage of the call, which takes at most `deadline` seconds. Raises
        `ModelFailure`; that of a billed call carries its usage.
        """
        body: dict[str, Any] = {"input": list(texts)}
        if self._configuration.model:
            body["model"] = self._configuration.model
        response = self._post(body, "embeddings", deadline)
        payload = reading.from_json(response.body)
        if not 200 <= response.status < 300:
            message = _message_of(payload)
            # Asked again, a server refuses the same text again.
            is_of_text = response.status == 413 or (
                response.status == 500 and _TOO_LONG.search(message[:MAX_MESSAGE])
            )
            raise self._failure(400 if is_of_text else response.status, response.headers, message)
        payload = payload if isinstance(payload, dict) else {}
        usage = _usage(payload.get("usage"))
        with _billed(usage):
            if not isinstance(payload.get("data"), list):
                self._complain(payload, response, "vectors")
            return _vectors(payload["data"], len(texts)), usage

    def close(self) -> None:
        self._client.close()

    def _read_json(
        self,
        messages: list[dict[str, Any]],
        read: Callable[[str], T],
        schema: dict[str, Any] | None = None,
    ) -> tuple[T, Usage]:
        """The result of `read` on a whole JSON answer, and the usage of the call."""
        answer = self.complete(messages, json_answer=True, schema=schema)
        with _billed(answer.usage):
            answer.require_whole()
            return read(answer.text), answer.usage

    @property
    def _takes_detail(self) -> bool:
        """Whether the server knows how detailed a picture is to be shown; others may refuse the word."""
        address = self._configuration.base_url
        try:
            return net.host(address) in DETAILED
        except BadInput:  # the call says so
            return False

    def _parameters(
        self, dropped: frozenset[str], most: int, json_answer: bool, schema: dict[str, Any] | None
    ) -> dict[str, Any]:
        limit = min(most, self._configuration.max_context_tokens // 2)
        wanted: dict[str, Any] = {"temperature": self._configuration.temperature, "max_tokens": limit}
        if json_answer and schema is not None and _BY_SCHEMA not in dropped:
            described = {"name": "answer", "strict": True, "schema": schema}
            wanted["response_format"] = {"type": _BY_SCHEMA, _BY_SCHEMA: described}
        elif json_answer:
            wanted["response_format"] = {"type": "json_object"}
        if "max_tokens" in dropped:
            wanted["max_completion_tokens"] = limit  # its newer name
        return {name: value for name, value in wanted.items() if name not in dropped}

    def _post(self, body: dict[str, Any], path: str, deadline: float) -> net.Response:
        base_url, api_key = self._configuration.base_url, self._configuration.api_key
        address, mark, query = base_url.partition("?")
        # Some servers' documents give the address of the call, with its path.
        server = address.rstrip("/").removesuffix(f"/{CHAT}")
        url = f"{server}/{path}{mark}{query}"
        try:
            key = net.Key(api_key, net.origin(base_url)) if api_key else None
            return self._client.post_json(url, body, key=key, deadline=deadline, max_bytes=MAX_ANSWER_BYTES)
        except BadInput as problem:
            raise ProviderRefused(
                f"The model cannot be called as it is configured ({problem.detail})."
            ) from None
        except net.AnswerTooLarge as problem:
            raise AnswerUnusable(f"The model's answer cannot be used ({problem.detail}).") from None
        except net.CallFailed as problem:
            raise ProviderDown(f"The model cannot be reached ({problem.detail}).") from None

    def _read(self, response: net.Response) -> Answer:
        payload = reading.from_json(response.body)
        payload = payload if isinstance(payload, dict) else {}
        usage = _usage(payload.get("usage"))
        with _billed(usage):
            choices = payload.get("choices")
            choice = (
                choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
            )
            message = choice.get("message")
            if not isinstance(message, dict):
                self._complain(payload, response, "a chat completion")
            finish_reason = reading.as_text(choice.get("finish_reason")).lower()
            if message.get("refusal"):
                raise AnswerUnusable(
                    f"The model declined: {self._quoted(reading.as_text(message['refusal']))}"
                )
            if finish_reason.startswith(("content_filter", "safety")):
                raise AnswerUnusable("The provider's content filter stopped the answer.")
            text, calls = _content(message.get("content")), _calls(message.get("tool_calls"))
            thoughts = {
                name: message[name]
                for name in ("reasoning_content", "reasoning_details")
                if calls and message.get(name)
            }
            again = {"role": "assistant", "content": text or None, "tool_calls": calls, **thoughts}
            return Answer(text, calls, finish_reason, usage, again)

    def _complain(self, payload: dict[str, Any], response: net.Response, wanted: str) -> NoReturn:
        """Raise for an answer without what is `wanted`: relays put a failure into a body of 200."""
        error = payload.get("error")
        if not error:
            raise AnswerUnusable(f"The model's server did not send {wanted}.")
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else response.status
        raise self._failure(status, response.headers, _message_of(payload))

    def _failure(self, status: int, headers: Mapping[str, str], message: str) -> ModelFailure:
        reason = f" ({status}): {self._quoted(message)}" if message else f" ({status})."
        # A redirect is not followed, so it is as final as a refusal.
        if status in (401, 403, 404) or 300 <= status < 400:
            unversioned = status == 404 and not _VERSION.search(self._configuration.base_url)
            hint = " Addresses mostly end in /v1." if unversioned else ""
            return ProviderRefused(f"The model's server refuses this configuration{reason}{hint}")
        # 402: an empty account works again once it is topped up, without a change here.
        if status in (402, 408, 425, 429) or status >= 500:
            return ProviderDown(
                f"The model's server cannot answer now{reason}", retry_after=_retry_after(headers, utc_now())
            )
        return AnswerUnusable(f"The model's server refuses this request{reason}")

    def _quoted(self, text: str) -> str:
        """A provider's message as it may be shown: on one line, short, without the key, which some quote."""
        if self._configuration.api_key:
            text = text.replace(self._configuration.api_key, "[key]")
        text = text[:MAX_MESSAGE]  # only now, so that no part of a key is left at the end
        return shortened(one_line("".join(char if char.isprintable() else " " for char in text)), MAX_QUOTED)


def _calls(calls: Any) -> list[dict[str, Any]]:
    """The first `MAX_CALLS` tool calls, with unique ids and JSON arguments, which servers demand."""
    complete: dict[str, dict[str, Any]] = {}
    for call in calls if isinstance(calls, list) else []:
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


def _vectors(data: list[Any], count: int) -> list[list[float]]:
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


def _refused_parameter(response: net.Response, parameters: Mapping[str, Any]) -> str | None:
    """The parameter that the server refuses. Some name it as `param`, most only in the text."""
    if response.status not in (400, 422):
        return None
    payload = reading.from_json(response.body)
    error = payload.get("error") if isinstance(payload, dict) else None
    named = error.get("param") if isinstance(error, dict) else None
    if isinstance(named, str) and named in parameters:
        return named
    text = response.body[:MAX_MESSAGE].decode("utf-8", "replace").replace(_BY_SCHEMA, "response_format")
    return next((name for name in parameters if re.search(rf"\b{name}\b", text)), None)


def _message_of(payload: Any) -> str:
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


def _retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
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


def _usage(counts: Any) -> Usage:
    counts = counts if isinstance(counts, dict) else {}
    prompt, completion = (
        reading.as_number(counts.get(name), 0.0) for name in ("prompt_tokens", "completion_tokens")
    )
    return Usage(
        1, int(min(max(prompt, 0.0), MAX_TOKENS_COUNTED)), int(min(max(completion, 0.0), MAX_TOKENS_COUNTED))
    )


@contextlib.contextmanager
def _billed(usage: Usage) -> Iterator[None]:
    """Reads a billed answer: a failure inside carries the usage."""
    try:
        yield
    except (ModelFailure, RecursionError) as problem:
        failure = (
            problem
            if isinstance(problem, ModelFailure)
            else AnswerUnusable("The model's answer is nested too deeply.")
        )
        failure.usage = usage
        raise failure from None


def _content(content: Any) -> str:
    """The text of a message, which is a string or a list of parts."""
    parts = content if isinstance(content, list) else [content]
    return "".join(
        reading.as_text(part.get("text")) if isinstance(part, dict) else reading.as_text(part)
        for part in parts
    )
