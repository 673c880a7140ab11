"""The gunicorn worker of the service: a thread serves a request only once its header has arrived.

gunicorn's own `ThreadWorker` reads headers in its threads and waits there for as long as a client likes, so
16 half-sent headers would stop 16 threads. Here the poller, the loop in the main thread that watches all
sockets, collects each header without blocking, for a limited time and up to a limited size. It also sends the
end of an answer to a client that reads slowly (`ClientSocket`), and it closes connections: it reads and
discards what the client still sends. A client without the API key therefore occupies no thread while it sends
or reads, and its body is never waited for.

In a thread, a request's body must keep to a least rate (`web/connections.py`).

With a certificate (`Worker.certificate`), TLS and plain HTTP share a port: the first byte of a connection
decides. The handshake is part of collecting the first header, with the same time limit, so it costs no thread
either. gunicorn's own TLS, whose handshake is made in a thread, is refused by gunicorn.conf.py.

It overrides private methods of gunicorn 27.0.1, the version that requirements.txt pins (`_cap_keepalive`
among them), because gunicorn has no other place at which a header can be awaited without a thread. Whoever
raises the pin reads gunicorn's `workers/gthread.py` again.
"""

import contextlib
import errno
import json
import logging
import re
import resource
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Protocol

from gunicorn import glogging
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from web.connections import SOCKET_PATIENCE, Connection
from web.sockets import KILOBYTE, PIECE, ClientSocket

# From the connection, or from the first byte of a later request, to the end of the header. A phone with a bad
# connection needs a second or two; nginx allows 60 s.
HEADER_SECONDS = 10.0
# The longest address is 8 kB (gunicorn.conf.py); cookies of other services on the same host add some more.
MAX_HEADER = 64 * KILOBYTE

# A connection is closed once the rest of a refused body is discarded. nginx closes in the same way
# (`lingering_close`), after 30 s. Here it is longer for phones that upload 50 MB; a connection that is being
# closed costs no thread.
CLOSING_SECONDS = 120.0
MAX_DISCARDED = 128 * KILOBYTE * KILOBYTE

# Clients get no more connections than leave these for the service: each of 16 threads opens the database (3
# files), a lock or two and a picture, and so do the loops in the background.
OWN_DESCRIPTORS = 256

log = logging.getLogger(__name__)

FEED_SECRET = re.compile(r"(/feed/+)[^/\s?\"]+")


class Logger(glogging.Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's logger, without the addresses of feeds, which are secrets."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for log in (self.access_log, self.error_log):
            log.addFilter(_without_secret)


def _without_secret(record: logging.LogRecord) -> bool:
    line = record.getMessage()
    if "/feed/" in line:
        record.msg, record.args = FEED_SECRET.sub(r"\1…", line), ()
    return True


class Certificate(Protocol):
    """What the server shows to new connections; None while it speaks plain HTTP only."""

    @property
    def context(self) -> ssl.SSLContext | None: ...


class Worker(ThreadWorker):  # type: ignore[misc]  # gunicorn brings no types
    """gunicorn's threaded worker, whose poller collects headers and closes connections.

    A connection is in one of five states: its header is collected; a thread serves it; the end of an answer
    is sent; it is kept alive; it is being closed. Except while a thread serves it, it belongs to the poller,
    which calls the methods of this class.
    """

    certificate: Certificate | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if descriptors != resource.RLIM_INFINITY:
            left = max(descriptors - OWN_DESCRIPTORS, 2 * self.cfg.threads)
            self.worker_connections: int = min(self.cfg.worker_connections, left)
            self.max_keepalived = self.worker_connections - self.cfg.threads
        # Connection -> when it is given up (monotonic), in this order
        self._collecting: dict[Connection, float] = {}
        self._sending: dict[Connection, float] = {}
        self._closing: dict[Connection, float] = {}
        self.sockets: list[Any]  # of `Worker`, which has no types
        # The sockets of `listen_also` by their addresses, and the names of those that were closed.
        self._also: dict[tuple[str, int], socket.socket] = {}
        self._ended: set[Any] = set()
        self._quits = False

    def handle_quit(self, sig: int, frame: Any) -> None:
        """End at once. Ctrl+C tells it twice, by the terminal and by the arbiter, and gunicorn's own method
        would wait in the second call for a lock that the first one holds.
        """
        if not self._quits:
            self._quits = True
            super(ThreadWorker, self).handle_quit(sig, frame)

    def listen_also(self, addresses: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        """Listen on these IP addresses and ports too, and no longer on others that an earlier call named.
        Returns those that it listens on now, in this order. Called from any thread, by one at a time.

        Where a socket is closed, its connections end too, once their running requests are answered.
        """
        wanted = list(addresses)
        for address in self._also.keys() - set(wanted):
            self.method_queue.defer(self._stop_listening, self._also.pop(address))
        for address in wanted:
            if address not in self._also:
                with _logged(f"cannot listen on {address[0]} port {address[1]}"):
                    self._also[address] = _listening_on(address)
                    self.method_queue.defer(self._begin_listening, self._also[address])
        return [address for address in wanted if address in self._also]

    def _begin_listening(self, listener: socket.socket) -> None:
        # A list of its own: the arbiter's has its listeners only.
        self.sockets = [*self.sockets, listener]
        self._ended.discard(listener.getsockname())
        if self._accepting:
            self.poller.register(listener, EVENT_READ, self.accept)

    def _stop_listening(self, listener: socket.socket) -> None:
        name = listener.getsockname()
        self.sockets = [other for other in self.sockets if other is not listener]
        if self._accepting:
            self.poller.unregister(listener)
        listener.close()
        self._ended.add(name)
        for conn in [conn for conn in self.keepalived_conns if conn.server == name]:
            self.poller.unregister(conn.sock)
            self.keepalived_conns.remove(conn)
            self._close(conn)
        for conn in [conn for conn in self._collecting if conn.server == name]:
            self._drop(conn)

    def accept(self, listener: socket.socket) -> None:
        try:
            client, address = listener.accept()
        except OSError as problem:
            if problem.errno in (errno.EMFILE, errno.ENFILE) and self._make_room():
                return  # the listener is still readable: the next round accepts
            if problem.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        # Otherwise silent clients with as many connections would keep all others out.
        if self.nr_conns >= self.worker_connections:
            self._make_room()
        self._collect(Connection(self.cfg, ClientSocket(client), address, listener.getsockname()))

    def on_client_socket_readable(self, conn: Connection, client: ClientSocket) -> None:
        """A connection that was kept alive brings its next request, or its end."""
        if conn not in self.keepalived_conns:
            return  # dropped in this round
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._collect(conn)
        self._on_header(conn, client)

    def finish_request(self, conn: Connection, fs: "Future[bool]") -> None:
        """Take back a connection from the thread that served a request on it."""
        if conn.sock.fileno() < 0:  # closed in the thread, after an error
            self._drop(conn)
        elif conn.sock.unsent:
            conn.served = fs
            self._wait(conn, self._sending, SOCKET_PATIENCE, self._on_writable, EVENT_WRITE)
        elif fs.cancelled() or fs.exception() or not fs.result() or conn.server in self._ended:
            self._close(conn)
        # Pipelined, and maybe only in part.
        elif (early := conn.parser.unreader.take_buffered()) or conn.sock.has_more:
            self._collect(conn, early)
        else:
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Give up the connections whose time is over. `ThreadWorker.run` calls this in each round."""
        for conn in self._overdue(self._collecting):
            if conn.header:
                sentence = f"The header of the request has not arrived within {HEADER_SECONDS:g} seconds."
                self._refuse(conn, HTTPStatus.REQUEST_TIMEOUT, sentence)
            else:
                self._drop(conn)
        for conn in self._overdue(self._sending) + self._overdue(self._closing):
            self._drop(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """Give up by `deadline` what waits for a client. `ThreadWorker.run` calls this when it stops."""
        super()._cap_keepalive(deadline)
        for waiting in (self._collecting, self._closing):
            for conn, until in waiting.items():
                waiting[conn] = min(until, deadline)

    def _collect(self, conn: Connection, early: bytes = b"") -> None:
        """Wait for the next header on `conn`, of which `early` has arrived."""
        if early and conn.receive(early):
            self.enqueue_req(conn)
        elif len(conn.header) >= MAX_HEADER:
            self._refuse_size(conn)
        else:
            self._wait(conn, self._collecting, HEADER_SECONDS, self._on_header)
            if conn.sock.has_more:
                self._on_header(conn, conn.sock)

    def _on_header(self, conn: Connection, client: ClientSocket) -> None:
        if conn not in self._collecting:
            return  # dropped in this round
        if not conn.is_known and not self._know(conn):
            return
        while (data := self._received(conn, min(PIECE, MAX_HEADER - len(conn.header)))) is not None:
            if not data:
                self._drop(conn)
                return
            if conn.receive(data):
                self._leave(conn)
                self.enqueue_req(conn)
                return
            if len(conn.header) >= MAX_HEADER:
                self._refuse_size(conn)
                return
            if not client.has_more:
                return

    def _know(self, conn: Connection) -> bool:
        """Begin TLS on `conn` if its client does. Returns False while that is not known."""
        context = self.certificate.context if self.certificate else None
        if context is not None:
            begins = conn.sock.begins_with_tls()
            if begins is None:
                return False
            if begins:
                conn.sock.begin_tls(context)
        conn.is_known = True
        return True

    def _on_writable(self, conn: Connection, client: ClientSocket) -> None:
        if conn not in self._sending:
            return  # dropped in this round
        try:
            client.flush()
        except OSError:
            self._drop(conn)
            return
        if not client.unsent and conn.served is not None:
            self._leave(conn)
            self.finish_request(conn, conn.served)

    def _refuse_size(self, conn: Connection) -> None:
        self._refuse(
            conn,
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"The header of the request is larger than the {MAX_HEADER // KILOBYTE} kB that can be taken.",
        )

    def _refuse(self, conn: Connection, status: HTTPStatus, sentence: str) -> None:
        """Answer in place of the application, with its error body, and close."""
        body = json.dumps({"detail": sentence})
        answer = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        with contextlib.suppress(OSError):  # a client that reads nothing gets nothing
            conn.sock.setblocking(False)
            conn.sock.sendall(answer.encode())
        self._close(conn)

    def _close(self, conn: Connection) -> None:
        """End the answers on `conn`, and discard what the client still sends until it closes as well."""
        self._leave(conn)
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:  # closed already
            self._drop(conn)
            return
        self._wait(conn, self._closing, CLOSING_SECONDS, self._on_rest)

    def _on_rest(self, conn: Connection, client: ClientSocket) -> None:
        if conn not in self._closing:
            return  # dropped in this round
        data = self._received(conn, PIECE, unread=True)
        if data is None:
            return
        conn.discarded += len(data)
        if not data or conn.discarded > MAX_DISCARDED:
            self._drop(conn)

    @staticmethod
    def _received(conn: Connection, most: int, *, unread: bool = False) -> bytes | None:
        """Up to `most` bytes that have arrived, none at the end of the connection; None: nothing new."""
        try:
            return bytes(conn.sock.recv_unread(most) if unread else conn.sock.recv(most))
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def _wait(
        self,
        conn: Connection,
        waiting: dict[Connection, float],
        seconds: float,
        callback: Callable[[Connection, ClientSocket], None],
        event: int = EVENT_READ,
    ) -> None:
        """Call `callback` when `conn` is readable or writable, for at most so many seconds."""
        conn.sock.setblocking(False)
        # A stopping service still finishes its answers, within gunicorn's graceful_timeout.
        if not self.alive and waiting is not self._sending:
            seconds = min(seconds, STOP_KEEPALIVE_LINGER)
        waiting[conn] = time.monotonic() + seconds
        self.poller.register(conn.sock, event, partial(callback, conn))

    def _leave(self, conn: Connection) -> None:
        for waiting in (self._collecting, self._sending, self._closing):
            if waiting.pop(conn, None) is not None:
                self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        self._leave(conn)
        self.nr_conns -= 1
        conn.close()

    def _make_room(self) -> bool:
        """Drop a connection that no thread serves: the oldest in its state. Returns whether there is one."""
        for waiting in (self._closing, self._collecting, self._sending):
            if waiting:
                self._drop(next(iter(waiting)))
                return True
        if self.keepalived_conns:
            self.keepalived_conns[0].timeout = 0.0
            self.murder_keepalived()
            return True
        return False

    @staticmethod
    def _overdue(waiting: dict[Connection, float]) -> list[Connection]:
        now = time.monotonic()
        overdue = []
        for conn, until in waiting.items():
            if until > now:
                break
            overdue.append(conn)
        return overdue


def _listening_on(address: tuple[str, int]) -> socket.socket:
    """A socket that listens on an IP address and a port. Raises `OSError`."""
    is_later = ":" in address[0]
    listener = socket.socket(socket.AF_INET6 if is_later else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_later:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _logged(sentence: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        log.warning("%s: %s", sentence, problem.strerror)
