"""Slow clients without the API key, all at once: half-sent headers, silent connections, dripping bodies."""

import contextlib
import resource
import socket
import threading
from collections.abc import Iterator

from tests.support.service import PATIENCE, Service

HALF = b"GET /api/health HTTP/1.1\r\nHost: x\r\nX-Half:"
REFUSED = b"POST /api/photos/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\nx"
DESCRIPTORS = 4_096


@contextlib.contextmanager
def descriptors() -> Iterator[None]:
    """Enough of them for the crowd, in this process and in those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def connections(service: Service, count: int = 1, sent: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections, over each of which `sent` has been sent."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
            made.append(stack.enter_context(connection))
            if sent:
                connection.sendall(sent)
        yield made


@contextlib.contextmanager
def crowd(service: Service) -> Iterator[list[socket.socket]]:
    """400 half-sent headers, 400 silent connections and 64 bodies of which a byte arrives each 0.2 s. Returns
    the connections of the bodies.
    """

    def drip() -> None:
        while not enough.wait(0.2):
            for body in bodies:
                with contextlib.suppress(OSError):  # the service may have closed it
                    body.sendall(b"x")

    enough = threading.Event()
    with (
        connections(service, 400, HALF),
        connections(service, 400),
        connections(service, 64, REFUSED) as bodies,
    ):
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            yield bodies
        finally:
            enough.set()
            dripping.join()
