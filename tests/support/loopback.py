"""A server on a loopback port in its own thread, the base of the suite's fake servers. Stopping it cuts all
connections, as when a machine is switched off.
"""

import functools
import http.server
import socket
import ssl
import threading
from typing import Self


class Loopback:
    """A context manager; the kernel chooses `port`. `handler` is called with this object before its other
    arguments.
    """

    def __init__(
        self, handler: type[http.server.BaseHTTPRequestHandler], *, tls: ssl.SSLContext | None = None
    ):
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), functools.partial(handler, self))
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name=type(self).__name__
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info) -> None:
        self.close()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def close(self) -> None:
        """Stop, and cut every connection."""
        if not self._closing.is_set():
            self._closing.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server.cut_connections()


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, *args):
        self.accepted = 0
        self._connections: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request, client_address):
        self.accepted += 1
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """Ignore clients that disconnect early: many tests do that."""

    def cut_connections(self):
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it is closed already
