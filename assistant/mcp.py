"""A client of MCP servers over Streamable HTTP: lists a server's tools, and calls one for a result as text.

The protocol has two eras. Up to 2025-11-25 a handshake opens a session, and each request names it. Since
2026-07-28 there is no session: each request carries the version and the client's name, in `params._meta` and
again in headers. The client calls `server/discover` to find a server's era: a valid answer, or an error that
only the later era has, means the later one; anything else leads to the handshake (specification 2026-07-28,
basic/versioning and basic/transports/streamable-http, "Backward Compatibility").

A server is not trusted. Everything that it sends passes `net`, with its address guard, a deadline and a limit
of size, and `mcp_messages`, which limits what reaches a model. So a dead or malicious server costs one
failure in bounded time. No error message quotes a server: its texts are only in a `Result` or a `Tool`, and
the caller frames them as data.

Not implemented: the stream that a GET opens, and resuming an interrupted stream, because calls last seconds;
and the requests that a server may make of a client (sampling, elicitation, roots), because no person is
present to approve them. The official SDK has all of this, but it is asynchronous, takes 45 MB, and connects
without an address guard.
"""

import contextlib
import itertools
import logging
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

import net
from assistant import mcp_messages as messages
from assistant.mcp_messages import Message, Tool
from errors import BadInput
from settings import NAME, VERSION
from text import cut, storable

log = logging.getLogger(__name__)

T = TypeVar("T")

STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"  # requested; a server may answer with an earlier version
HANDSHAKE_VERSIONS = (HANDSHAKE, "2025-06-18", "2025-03-26", "2024-11-05")

CLOSE_SECONDS = 3.0  # to end a session, which is only a courtesy
# Measured: decoding makes a list of tiny entries 36 times as large, and a result of tiny blocks 11 times.
MAX_LIST_BYTES = 1024 * 1024  # of one page
MAX_RESULT_BYTES = 4 * 1024 * 1024  # including pictures, which are discarded
MAX_PAGES = 20  # of a list of tools: a server could return cursors for ever
MAX_TOOLS = 100  # read from one server
MAX_LIST_CHARACTERS = 60_000  # of one server's tools: some 15,000 tokens of each request to a model
MAX_RESULT = 20_000  # characters of a call's result
MAX_SERVER_REQUESTS = 20  # by the server while it answers one request

# JSON-RPC's and MCP's error codes. The last three exist in the stateless era only.
METHOD_NOT_FOUND = -32601
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

_SESSION = re.compile(r"[!-~]{1,1024}")


class McpFailure(net.CallFailed):
    """The server answered, but not as the protocol requires."""


class Refused(McpFailure):
    """The server answered with an error. `message` is the server's text."""

    def __init__(self, host: str, status: int, code: int, message: str, versions: list[str]):
        super().__init__(f"{host}: the MCP server refused (HTTP status {status}, error {code})")
        self.code = code
        self.message = message
        self.versions = versions  # supported by the server; with `UNSUPPORTED_VERSION`


class Result(NamedTuple):
    text: str
    is_error: bool  # the text describes the error, for the model


class Client:
    """A connection to one server, for one thread.

    `deadline` is the total time of each verb in seconds, including discovery, handshake and all pages. For
    every failure verbs raise `net.CallFailed`, also for an address that the guard refuses.
    """

    def __init__(self, url: str, guard: net.Guard, *, deadline: float):
        self._url = url
        self._deadline = deadline
        self._http = net.Client(guard)
        try:
            self._host = guard.target(url).host
        except BadInput as refused:
            raise McpFailure(refused.detail) from None
        self._ids = itertools.count(1)
        self._version = ""  # not negotiated yet
        self._session = ""
        self._mirrored: dict[str, dict[tuple[str, ...], str]] = {}  # by tool, from the list

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def list_tools(self) -> list[Tool]:
        """The tools that can be offered to a model. Those that break rules or limits are left out."""
        return self._list_tools(time.monotonic() + self._deadline)

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """The tool's result, or the error of the server, as text of about `MAX_RESULT` characters."""
        until = time.monotonic() + self._deadline
        try:
            try:
                raw = self._call(name, arguments, until)
            except Refused as refused:
                # Some arguments are required in headers as well; the schemas name them.
                if refused.code != HEADER_MISMATCH:
                    raise
                self._list_tools(until)
                raw = self._call(name, arguments, until)
        except Refused as refused:
            return Result(cut(refused.message, MAX_RESULT) or refused.detail, True)
        return self._result(raw)

    def close(self) -> None:
        """End the session, if there is one, and close the connections. A server that is silent is ignored."""
        if self._session:
            seconds = min(CLOSE_SECONDS, self._deadline)
            ending = self._http.open("DELETE", self._url, headers=self._headers(), deadline=seconds)
            with contextlib.suppress(net.CallFailed), ending:
                pass
        self._forget_session()
        self._http.close()

    def _list_tools(self, until: float) -> list[Tool]:
        tools: dict[str, Tool] = {}
        left = MAX_LIST_CHARACTERS
        for number, raw in enumerate(self._listed(until)):
            left -= memoryview(raw).nbytes
            if left < 0 or number == MAX_TOOLS:
                log.warning("%s offers more tools than the limits allow", self._host)
                break
            try:
                tool = messages.tool(raw)
            except ValueError as problem:
                invalid = isinstance(problem, msgspec.MsgspecError)  # its text may quote the server
                reason = "it does not follow the protocol" if invalid else problem
                log.warning("a tool of %s is left out: %s", self._host, reason)
            else:
                tools.setdefault(tool.name, tool)
        self._mirrored = {tool.name: tool.mirrored for tool in tools.values()}
        return list(tools.values())

    def _listed(self, until: float) -> Iterator[msgspec.Raw]:
        cursor = None
        for _ in range(MAX_PAGES):
            page = self._decode(
                self._request("tools/list", {} if cursor is None else {"cursor": cursor}, until),
                messages.Page,
            )
            yield from page.tools
            cursor = page.nextCursor
            if cursor is None:
                return
        log.warning("%s: the list of tools does not end after %d pages", self._host, MAX_PAGES)

    def _call(self, name: str, arguments: dict[str, Any], until: float) -> msgspec.Raw:
        return self._request("tools/call", {"name": name, "arguments": arguments}, until)

    def _result(self, raw: msgspec.Raw) -> Result:
        result = self._decode(raw, messages.CallResult)
        if result.resultType == "input_required":
            raise McpFailure(f"{self._host}: the tool requires further input, which is not supported")
        if result.resultType != "complete" or (result.content is None and not result.structuredContent):
            raise self._malformed()
        return Result(cut(messages.result_text(result), MAX_RESULT), result.isError)

    def _request(self, method: str, params: dict[str, Any], until: float) -> msgspec.Raw:
        """The result of a request, in the server's era and session. A lost session is opened again, once."""
        if not self._version:
            self._negotiate(until)
        try:
            return self._ask(method, params, until, in_session=bool(self._session))[0]
        except _SessionLost:
            self._forget_session()
            self._negotiate(until)
            return self._ask(method, params, until)[0]

    def _negotiate(self, until: float) -> None:
        """Find out the server's era, and open a session if it is the earlier one."""
        self._version = STATELESS
        try:
            raw, _ = self._ask("server/discover", {}, until)
            versions = self._decode(raw, messages.Discovered).supportedVersions
            if STATELESS in versions:
                return
        except Refused as refused:
            if refused.code in (HEADER_MISMATCH, MISSING_CAPABILITY):
                self._forget_session()
                raise
            versions = refused.versions if refused.code == UNSUPPORTED_VERSION else list(HANDSHAKE_VERSIONS)
        except McpFailure:
            versions = list(HANDSHAKE_VERSIONS)
        except net.CallFailed:
            self._forget_session()
            raise
        self._forget_session()
        if not set(versions) & set(HANDSHAKE_VERSIONS):
            raise McpFailure(f"{self._host}: the MCP server supports no known version of the protocol")
        self._shake_hands(until)

    def _shake_hands(self, until: float) -> None:
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": NAME, "version": VERSION},
        }
        raw, session = self._ask("initialize", params, until)
        version = self._decode(raw, messages.Initialized).protocolVersion
        if version not in HANDSHAKE_VERSIONS:
            raise McpFailure(f"{self._host}: the MCP server supports no known version of the protocol")
        if session and not _SESSION.fullmatch(session):
            raise McpFailure(f"{self._host}: the MCP server opened a session without a usable id")
        self._version, self._session = version, session
        try:
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"}, until)
        except net.CallFailed:
            self._forget_session()
            raise

    def _forget_session(self) -> None:
        self._version = self._session = ""

    def _ask(
        self, method: str, params: dict[str, Any], until: float, *, in_session: bool = False
    ) -> tuple[msgspec.Raw, str]:
        """The result of one request, and the session id that came with it.

        With `in_session`, the HTTP statuses for an unknown session raise `_SessionLost`. Some servers use
        them for other errors, too; so the second attempt, in a new session, takes them at face value.
        """
        number = next(self._ids)
        if self._version == STATELESS:
            meta = {
                "protocolVersion": STATELESS,
                "clientInfo": {"name": NAME, "version": VERSION},
                "clientCapabilities": {},
            }
            params = {
                **params,
                "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
            }
        headers = self._headers(method, params)
        with self._post(
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, headers, until
        ) as answer:
            if in_session and answer.status in (400, 404):
                raise _SessionLost
            message = self._find_answer(answer, number, until)
            if message.error is not None:
                error = message.error
                raise Refused(
                    self._host, answer.status, error.code, storable(error.message), _supported(error.data)
                )
            if answer.status != 200 or not message.result:
                raise self._unreadable(answer)
            return message.result, answer.headers.get("Mcp-Session-Id", "")

    def _send(self, message: dict[str, Any], until: float) -> None:
        """Send a message that gets no answer: a notification, or a response to the server."""
        with self._post(message, self._headers(), until) as answer:
            if not 200 <= answer.status < 300:
                raise self._unreadable(answer)
            if answer.headers.get("Content-Length") == "0":
                answer.read()  # so that the connection can be reused

    def _post(
        self, message: dict[str, Any], headers: dict[str, str], until: float
    ) -> contextlib.AbstractContextManager[net.Answer]:
        left = until - time.monotonic()
        if left <= 0:
            raise net.TimedOut(f"{self._host}: no whole answer in time")
        most = MAX_RESULT_BYTES if message.get("method") == "tools/call" else MAX_LIST_BYTES
        return self._http.open("POST", self._url, message, headers=headers, deadline=left, max_bytes=most)

    def _headers(self, method: str = "", params: dict[str, Any] | None = None) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        if self._version:
            headers["MCP-Protocol-Version"] = self._version
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        if self._version == STATELESS:
            headers["Mcp-Method"] = method
            if params and "name" in params:
                headers["Mcp-Name"] = messages.header_value(params["name"])
                for path, header in self._mirrored.get(params["name"], {}).items():
                    value = messages.at(params["arguments"], path)
                    if value is not None:
                        headers[f"Mcp-Param-{header}"] = messages.header_value(value)
        return headers

    def _find_answer(self, answer: net.Answer, number: int, until: float) -> Message:
        """The message that answers request `number`: the body, or one event of a stream."""
        if answer.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "text/event-stream":
            message = self._message(answer, answer.read())
            if _answers(message, number, answer.status):
                return message
            raise self._unreadable(answer)
        requests = 0
        for data in messages.events(answer):
            message = self._message(answer, data)
            if message.method is None and _answers(message, number, answer.status):
                return message
            if message.method is not None and message.id is not None and self._version != STATELESS:
                requests += 1
                if requests > MAX_SERVER_REQUESTS:
                    raise McpFailure(f"{self._host}: the MCP server makes too many requests while it answers")
                self._reply(message, until)
        raise McpFailure(f"{self._host}: the MCP server's stream ended without an answer")

    def _reply(self, request: Message, until: float) -> None:
        """Respond to a request of the server: a ping succeeds, every other method is not found."""
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request.id}
        if request.method == "ping":
            response["result"] = {}
        else:
            response["error"] = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        self._send(response, until)

    def _message(self, answer: net.Answer, data: bytes) -> Message:
        try:
            return messages.decode(data, Message)
        except ValueError:
            raise self._unreadable(answer) from None

    def _decode(self, raw: msgspec.Raw, shape: type[T]) -> T:
        try:
            return messages.decode(raw, shape)
        except ValueError:
            raise self._malformed() from None

    def _malformed(self) -> McpFailure:
        return McpFailure(f"{self._host}: the MCP server's answer does not follow the protocol")

    def _unreadable(self, answer: net.Answer) -> McpFailure:
        return McpFailure(f"{self._host}: no MCP answer (HTTP status {answer.status})")


class _SessionLost(Exception):
    """The server did nothing; the request can be repeated in a new session."""


def _answers(message: Message, number: int, status: int) -> bool:
    """Whether `message` answers request `number`. An error has no id if the server could not read it."""
    return message.id == number or (message.id is None and message.error is not None and status >= 400)


def _supported(data: msgspec.Raw) -> list[str]:
    try:
        return messages.decode(data, messages.Versions).supported
    except ValueError:
        return []
