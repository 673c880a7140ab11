"""What gunicorn's parser is given of a client's connection: a header that has arrived as a whole, and then
the body, which must keep to a least rate.

As `web/worker.py`, it overrides private methods of the gunicorn that requirements.txt pins.
"""

import re
import socket
import time
from concurrent.futures import Future
from typing import Any

from gunicorn.http.message import Request as GunicornRequest
from gunicorn.http.parser import RequestParser
from gunicorn.http.unreader import SocketUnreader
from gunicorn.workers.gthread import TConn

from web.sockets import KILOBYTE, PIECE, ClientSocket

SOCKET_PATIENCE = 60.0  # seconds without any progress after which a thread gives a client up
# A body may take BODY_GRACE seconds, and one second more for each LEAST_RATE bytes that have arrived: 50 MB
# over the slowest 3G (8 kB/s) take under two hours and pass, and so does a short loss of the network. Because
# the size of a body is limited, this is a deadline for the whole of it as well.
BODY_GRACE = 60.0
LEAST_RATE = 1_000  # bytes a second
# What is left of a refused body is discarded, so that the client can read its answer: closing a socket with
# unread bytes resets the connection. When the rest has already arrived and is at most MAX_UNREAD bytes long,
# the connection is kept; otherwise it is closed.
MAX_UNREAD = 256 * KILOBYTE

_BARE_LF = re.compile(rb"(?<!\r)\n")


class Unreader(SocketUnreader):  # type: ignore[misc]  # gunicorn brings no types
    """Gives gunicorn's parser a request: first the collected header, then the body, from the socket.

    Reading raises `TimeoutError` when the body falls below the least rate.
    """

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._started = 0.0
        self._received = 0
        self._in_body = False
        self._waits = False

    def begin(self, header: bytes) -> None:
        """Start a request with what was collected of it: its header, maybe the beginning of its body."""
        self._started = time.monotonic()
        self._received = len(header)
        self._in_body = False
        self.unread(header)

    def begin_body(self) -> None:
        """From here on, reading may wait for the client."""
        self._in_body = True
        self._waits = True

    def has_all_of(self, body: Any) -> bool:
        """Discard what has arrived of `body`, at most MAX_UNREAD bytes. Returns whether that was all."""
        left = MAX_UNREAD
        self._waits = False
        try:
            while left > 0 and (piece := body.read(min(left, PIECE))):
                left -= len(piece)
        # Nothing has arrived (`BlockingIOError`), the client is gone, or the chunks are malformed.
        except Exception:
            return False
        return left > 0

    def chunk(self, size_hint: int | None = None) -> bytes:
        if not self._in_body:
            return b""  # the end, for a parser that asks for more than a complete header
        self.sock.settimeout(self._patience() if self._waits else 0.0)
        try:
            data: bytes = super().chunk(size_hint)
        finally:
            self.sock.settimeout(SOCKET_PATIENCE)
        self._received += len(data)
        return data

    def _patience(self) -> float:
        """Seconds that the next bytes of the body may take."""
        left = BODY_GRACE + self._received / LEAST_RATE - (time.monotonic() - self._started)
        if left <= 0:
            raise TimeoutError("The body of the request arrives too slowly")
        return min(left, SOCKET_PATIENCE)


class Request(GunicornRequest):  # type: ignore[misc]  # gunicorn brings no types
    def set_body_reader(self) -> None:
        super().set_body_reader()
        if self.unreader.sock.is_encrypted:
            self.scheme = "https"
        self.unreader.begin_body()

    def should_close(self) -> bool:
        """Whether the connection ends with this request. It also ends when the body has not arrived in full
        by the time of the answer: the rest of a refused upload is not waited for.
        """
        if not super().should_close() and (self.body.failed or not self.unreader.has_all_of(self.body)):
            self.must_close = True
        return bool(super().should_close())


class Parser(RequestParser):  # type: ignore[misc]  # gunicorn brings no types
    mesg_class = Request

    def __init__(self, cfg: Any, sock: socket.socket, client: Any) -> None:
        super().__init__(cfg, sock, client)
        self.unreader = Unreader(sock)


class Connection(TConn):  # type: ignore[misc]  # gunicorn brings no types
    """A client's connection, with what has arrived of the next request's header."""

    def __init__(self, cfg: Any, sock: ClientSocket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self.parser = Parser(cfg, sock, client)
        self.is_known = False  # whether it speaks TLS
        self.data_ready = True  # or `ThreadWorker.handle` waits in its thread for the first byte
        self.header = bytearray()
        self.discarded = 0
        self.served: Future[bool] | None = None  # the request whose answer is being sent

    def init(self) -> None:
        """Begin a request. `ThreadWorker.handle` calls this in the thread, before it parses."""
        self.initialized = True
        self.sock.settimeout(SOCKET_PATIENCE)
        self.parser.unreader.begin(bytes(self.header))
        self.header.clear()

    def receive(self, data: bytes) -> bool:
        """Add `data` to the header. Returns whether gunicorn's parser can judge it: it is complete, or one
        that the parser refuses already (a bare LF, a first line that is too long).
        """
        known = len(self.header)
        self.header += data
        if self.header.find(b"\r\n\r\n", max(0, known - 3)) >= 0 or _BARE_LF.search(self.header, known):
            return True
        longest = self.cfg.limit_request_line
        start = 2 if self.header.startswith(b"\r\n") else 0  # the parser skips one empty line
        return (
            0 < longest < len(self.header) - start - 2
            and self.header.find(b"\r\n", start, start + longest + 2) < 0
        )
