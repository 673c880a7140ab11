"""A fake vision model on a loopback port: an OpenAI-compatible server whose answers the test chooses, over
real sockets.

Queued answers are used in order. When the queue is empty, `default`, a function of the request, returns the
content; for a request of vectors, the whole body.
`requests` has all requests in order. Nothing here sleeps: all waiting is for an event or for the
client's disconnection.
"""

import base64
import dataclasses
import http.server
import json
import select
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.support.loopback import Loopback

FINDINGS = {
    "app_name": "Mail",
    "content_category": "notification",
    "intent": "reminder",
    "summary": "A reminder that the library book is due on Friday.",
    "entities": [{"type": "date", "value": "Friday"}],
    "confidence": 0.9,
    "visible_text": "Library\nYour book is due on Friday.",
    "memories": [
        {
            "content": "Has borrowed a book from the library.",
            "category": "fact",
            "memory_type": "short_term",
            "importance": 0.4,
        }
    ],
}


# seconds after which the server gives up, so that a client without a deadline fails its test and does not
# hang it
PATIENCE = 10.0
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclasses.dataclass(frozen=True)
class Request:
    """One received call."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: Any  # decoded JSON

    @property
    def key(self) -> str | None:
        """The received bearer key."""
        scheme, _, secret = self.headers.get("authorization", "").partition(" ")
        return secret if scheme == "Bearer" else None

    @property
    def text(self) -> str:
        """All text of all messages."""
        return "\n".join(part.get("text", "") for part in self._parts())

    @property
    def images(self) -> list[bytes]:
        """The pictures in the messages, decoded from their data URLs."""
        urls = [part["image_url"]["url"] for part in self._parts() if part.get("type") == "image_url"]
        return [base64.b64decode(url.partition(";base64,")[2], validate=True) for url in urls]

    def _parts(self) -> list[dict]:
        contents = [message.get("content") or [] for message in self.body["messages"]]
        return [
            part
            for content in contents
            for part in ([{"type": "text", "text": content}] if isinstance(content, str) else content)
        ]


class FakeLLM(Loopback):
    """The server. A context manager; `url` is the base address to configure (with dev mode). With `tls` it
    uses https.
    """

    def __init__(
        self,
        default: Callable[[Request], Any] = lambda request: FINDINGS,
        *,
        tls: ssl.SSLContext | None = None,
    ):
        self.default = default
        self.requests: list[Request] = []
        self.queue_is_for: Callable[[Request], bool] = lambda request: True  # other requests get the default
        self._queue: deque[Callable[[Handler], None]] = deque()
        self._scheme = "http" if tls is None else "https"
        super().__init__(Handler, tls=tls)

    @property
    def connections(self) -> int:
        """How many connections were accepted so far."""
        return self._server.accepted

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.port}/v1"

    def answer(
        self,
        content: Any = FINDINGS,
        *,
        tool_calls: list[dict] | None = None,
        finish_reason: str = "stop",
        usage: Any = None,
        after: threading.Event | None = None,
        **message: Any,
    ) -> None:
        """Queue a chat completion. Text and lists are sent unchanged, anything else as JSON text. The answer
        waits for `after`.
        """
        body = _completion(
            content, tool_calls=tool_calls, finish_reason=finish_reason, usage=usage, **message
        )
        self._enqueue(lambda handler: handler.reply(200, body, after=after))

    def fail(
        self,
        status: int,
        message: str = "It went wrong.",
        *,
        headers: dict[str, str] | None = None,
        **error: Any,
    ) -> None:
        """Queue an HTTP error with an OpenAI-shaped error object."""
        self.reply({"error": {"message": message, **error}}, status=status, headers=headers)

    def reply(self, body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """Queue any HTTP answer. Bytes are sent unchanged, anything else as JSON."""
        self._enqueue(lambda handler: handler.reply(status, body, headers=headers))

    def stay_silent(self) -> None:
        """Queue silence: no byte until the client disconnects."""
        self._enqueue(lambda handler: handler.wait_for_client(PATIENCE))

    def close_mid_answer(self) -> None:
        """Queue an answer that is shorter than its declared length, followed by the end of the connection."""
        self._enqueue(
            lambda handler: handler.send(b'HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"choices": [')
        )

    def drip(self, head: bytes = CHUNKED, piece: bytes = b"1\r\n \r\n", *, every: float = 0.02) -> None:
        """Queue `head`, then `piece` repeatedly. With an empty `head`, the pieces form the status line."""
        self._enqueue(lambda handler: handler.drip(head, piece, every))

    def wait_for_requests(self, count: int, *, seconds: float = 90) -> list[Request]:
        """The requests, once there are `count` of them. Raises `TimeoutError` otherwise."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, seconds):
                raise TimeoutError(f"{len(self.requests)} of {count} requests came")
            return list(self.requests)

    def _enqueue(self, act: "Callable[[Handler], None]") -> None:
        with self._changed:
            self._queue.append(act)

    def _take(self, request: Request) -> "Callable[[Handler], None]":
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            if self._queue and self.queue_is_for(request):
                return self._queue.popleft()
        answer = self.default(request)
        body = answer if request.path.endswith("/embeddings") else _completion(answer)
        return lambda handler: handler.reply(200, body)


def _completion(
    content: Any,
    *,
    tool_calls: list | None = None,
    finish_reason: str = "stop",
    usage: Any = None,
    **message: Any,
) -> dict:
    text = (
        content
        if content is None or isinstance(content, str | list)
        else json.dumps(content, ensure_ascii=False)
    )
    message = {"role": "assistant", "content": text, **message}
    if tool_calls is not None:
        message["tool_calls"] = tool_calls
    usage = (
        {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100} if usage is None else usage
    )
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, fake: FakeLLM, *args):
        self._fake = fake
        super().__init__(*args)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = Request(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self._fake._take(request)(self)

    def log_message(self, format, *args):
        """Log nothing."""

    def reply(
        self,
        status: int,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        after: threading.Event | None = None,
    ) -> None:
        while after is not None and not after.wait(0.02):
            if self._fake._closing.is_set():
                return
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} -", "Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + data)

    def send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.close_connection = True

    def drip(self, head: bytes, piece: bytes, every: float) -> None:
        self.send(head)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.wait_for_client(every):
            self.wfile.write(piece)

    def wait_for_client(self, seconds: float) -> bool:
        """Wait for this time. False as soon as the client disconnects or the server stops."""
        self.close_connection = True
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if readable or self._fake._closing.is_set():
                return False
        return True
