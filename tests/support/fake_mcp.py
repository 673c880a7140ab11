"""A fake MCP server on a loopback port, for either version of the protocol, over real sockets. It also breaks
the protocol when a test wants that.

By default it follows its version strictly, so that a client's mistake is refused: the later version checks
that headers and `_meta` agree, the earlier one that a session is opened before it is used. `act` queues
another behaviour for the next request of a method.
"""

import base64
import dataclasses
import json
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from tests.support import fake_llm
from tests.support.loopback import Loopback

META = "io.modelcontextprotocol/"
TOOLS = [
    {
        "name": "weather",
        "description": "The weather of a place, 天气.",
        "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
    {"name": "now.utc", "inputSchema": {"type": "object", "additionalProperties": False}},
]


@dataclasses.dataclass(frozen=True)
class Request:
    """One received HTTP request."""

    verb: str
    headers: dict[str, str]  # names in lower case
    body: Any  # decoded JSON

    @property
    def method(self) -> str:
        """The method of a JSON-RPC request; `response` for a response, `DELETE` without a body."""
        return self.verb if self.body is None else self.body.get("method", "response")


class FakeMCP(Loopback):
    """The server. A context manager; `url` is its address (with dev mode). With `stream` it answers with
    server-sent events.
    """

    def __init__(self, *, stateless: bool = False, stream: bool = False, tools: list[dict] | None = None):
        self.stateless, self.stream = stateless, stream
        self.pages = [TOOLS if tools is None else tools]
        self.result: Any = {"content": [{"type": "text", "text": "Sunny, 晴"}]}
        self.version = "2025-11-25"  # the negotiated one
        self.sessions: set[str] = set()
        self.requests: list[Request] = []
        self._opened = 0
        self._acts: dict[str, deque[Callable[[_Handler, Request], None]]] = defaultdict(deque)
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/mcp"

    @property
    def methods(self) -> list[str]:
        """The methods of the received requests, in order."""
        return [request.method for request in self.requests]

    def act(self, method: str, act: "Callable[[_Handler, Request], None]") -> None:
        """Queue this behaviour for the requests of `method`."""
        self._acts[method].append(act)

    def reply(self, method: str, body: Any, *, status: int = 200, kind: str = "application/json") -> None:
        """Queue these bytes, or this JSON, as the answer to a request of `method`."""
        self.act(method, lambda handler, request: handler.respond(status, body, kind=kind))

    def forget_sessions(self) -> None:
        self.sessions.clear()

    def wait_for(self, method: str) -> Request:
        """The first request of `method`, after waiting for it. Raises `TimeoutError`."""
        with self._changed:
            if not self._changed.wait_for(lambda: method in self.methods, 90):
                raise TimeoutError(f"no {method} came")
            return next(request for request in self.requests if request.method == method)

    def answer(self, request: Request) -> tuple[int, Any, dict[str, str]]:
        """Status, message and headers of the answer that the protocol requires."""
        refusal = self._modern_refusal(request) if self.stateless else self._session_refusal(request)
        if refusal is not None:
            status, code, message = refusal
            return (
                status,
                {"jsonrpc": "2.0", "id": request.body.get("id"), "error": {"code": code, "message": message}},
                {},
            )
        headers = {}
        params = request.body.get("params", {})
        match request.method:
            case "server/discover":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "initialize":
                self._opened += 1
                headers["Mcp-Session-Id"] = f"session-{self._opened}"
                self.sessions.add(headers["Mcp-Session-Id"])
                result = {
                    "protocolVersion": self.version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }
            case "tools/list":
                number = int(params.get("cursor", "0"))
                result = {"tools": self.pages[number]}
                if number + 1 < len(self.pages):
                    result["nextCursor"] = str(number + 1)
            case _:
                result = self.result(params) if callable(self.result) else self.result
        return 200, {"jsonrpc": "2.0", "id": request.body["id"], "result": result}, headers

    def _session_refusal(self, request: Request) -> tuple[int, int, str] | None:
        if request.method == "initialize":
            return None
        session = request.headers.get("mcp-session-id")
        if session is None:
            return 400, -32000, "Bad Request: Server not initialized"
        if session not in self.sessions:
            return 404, -32001, "Session not found"
        if request.headers.get("mcp-protocol-version") != self.version:
            return 400, -32000, "Bad Request: Unsupported protocol version"
        return None

    def _modern_refusal(self, request: Request) -> tuple[int, int, str] | None:
        headers, params = request.headers, request.body.get("params", {})
        meta = params.get("_meta", {})
        if meta.get(f"{META}protocolVersion") != "2026-07-28" or f"{META}clientCapabilities" not in meta:
            return 400, -32022, "Unsupported protocol version"
        expected = {"mcp-protocol-version": "2026-07-28", "mcp-method": request.method}
        if request.method == "tools/call":
            expected["mcp-name"] = params["name"]
            expected |= {
                f"mcp-param-{header}": params["arguments"].get(name)
                for name, header in self._wanted_headers(params["name"])
            }
        for name, value in expected.items():
            spelled = str(value).lower() if isinstance(value, bool | int) else value
            if _decoded(headers.get(name)) != spelled:
                return 400, -32020, f"Header mismatch: {name}"
        if request.method not in ("server/discover", "tools/list", "tools/call"):
            return 404, -32601, "Method not found"
        return None

    def _wanted_headers(self, tool: str) -> list[tuple[str, str]]:
        schemas = [
            offered["inputSchema"] for page in self.pages for offered in page if offered["name"] == tool
        ]
        properties = schemas[0].get("properties", {}) if schemas else {}
        return [
            (name, schema["x-mcp-header"].lower())
            for name, schema in properties.items()
            if "x-mcp-header" in schema
        ]

    def _take(self, request: Request) -> "Callable[[_Handler, Request], None] | None":
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            acts = self._acts[request.method]
            return acts.popleft() if acts else None


class _Handler(fake_llm.Handler):
    """Handles requests. It takes the queued behaviour by method, accepts DELETE and sends streams."""

    def do_POST(self):
        self._handle(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_DELETE(self):
        self._handle(None)

    def _handle(self, body: Any) -> None:
        request = Request(self.command, {name.lower(): value for name, value in self.headers.items()}, body)
        act = self._fake._take(request)
        if act is not None:
            act(self, request)
        elif request.verb == "DELETE":
            self._fake.sessions.discard(request.headers.get("mcp-session-id", ""))
            self.respond(200, b"")
        elif "id" not in request.body or request.method == "response":
            self.respond(202, b"")
        else:
            status, message, headers = self._fake.answer(request)
            if self._fake.stream and status == 200:
                self.begin_stream(headers)
                self.event(b"id: 1\ndata: \n")
                self.message(message)
                self.end_stream()
            else:
                self.respond(status, message, headers=headers)

    def respond(
        self, status: int, body: Any, *, headers: dict[str, str] | None = None, kind: str = "application/json"
    ) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        lines = [f"HTTP/1.1 {status} -", f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + data)

    def begin_stream(self, headers: dict[str, str] | None = None) -> None:
        lines = [
            "HTTP/1.1 200 OK",
            "Content-Type: text/event-stream; charset=utf-8",
            "Transfer-Encoding: chunked",
        ]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode())

    def message(self, message: Any) -> None:
        self.event(b"event: message\ndata: " + json.dumps(message, ensure_ascii=False).encode() + b"\n")

    def event(self, lines: bytes) -> None:
        """One event: its lines, each with its end, and the empty one after them."""
        self.chunk(lines + b"\n")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end_stream(self) -> None:
        self.wfile.write(b"0\r\n\r\n")


def _decoded(value: str | None) -> str | None:
    if value is not None and value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2], validate=True).decode()
    return value
