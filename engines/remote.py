"""A model at a configured address, called by the protocol that all providers share: OpenAI-compatible chat
completions.

Servers that call themselves compatible differ in what they accept and in what they send. So a parameter that
a server refuses by name is left out from then on, and an answer is read as tolerantly as possible without
making anything up: types are converted and nearly-JSON is repaired, but an answer that was cut off or holds
none of the fields is a failure, and nothing of it is stored. The class of a failure names its cause
(`errors.ModelFailure`); the queue retries, this module does not.

Text on a screenshot is data: the prompt states that, and the answer is only ever read as data.
"""

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import net
import pictures
from clock import utc_now
from engines import articles, completions, prompts, reading
from engines.configuration import Configuration
from engines.findings import Answer, Findings, MemoryCandidate, Usage
from errors import (
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
MAX_MESSAGE = 2_000  # characters of a provider's message that are read
MAX_QUOTED = 200  # characters of a provider's message that are shown
MAX_ANSWER_BYTES = 2 * MEGABYTE  # ten times a full screen of text in escaped characters
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
            message = completions.message_of(reading.from_json(response.body))
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
        """The vectors of some texts, all of one length, and the usage of the call, which takes at most
        `deadline` seconds. Raises `ModelFailure`; that of a billed call carries its usage.
        """
        body: dict[str, Any] = {"input": list(texts)}
        if self._configuration.model:
            body["model"] = self._configuration.model
        response = self._post(body, "embeddings", deadline)
        payload = reading.from_json(response.body)
        if not 200 <= response.status < 300:
            message = completions.message_of(payload)
            # Asked again, a server refuses the same text again.
            is_of_text = response.status == 413 or (
                response.status == 500 and _TOO_LONG.search(message[:MAX_MESSAGE])
            )
            raise self._failure(400 if is_of_text else response.status, response.headers, message)
        payload = payload if isinstance(payload, dict) else {}
        usage = completions.usage(payload.get("usage"))
        with _billed(usage):
            if not isinstance(payload.get("data"), list):
                self._complain(payload, response, "vectors")
            return completions.vectors(payload["data"], len(texts)), usage

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
        usage = completions.usage(payload.get("usage"))
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
            text = completions.content(message.get("content"))
            calls = completions.calls(message.get("tool_calls"))
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
        raise self._failure(status, response.headers, completions.message_of(payload))

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
                f"The model's server cannot answer now{reason}",
                retry_after=completions.retry_after(headers, utc_now()),
            )
        return AnswerUnusable(f"The model's server refuses this request{reason}")

    def _quoted(self, text: str) -> str:
        """A provider's message as it may be shown: on one line, short, without the key, which some quote."""
        if self._configuration.api_key:
            text = text.replace(self._configuration.api_key, "[key]")
        text = text[:MAX_MESSAGE]  # only now, so that no part of a key is left at the end
        return shortened(one_line("".join(char if char.isprintable() else " " for char in text)), MAX_QUOTED)


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
