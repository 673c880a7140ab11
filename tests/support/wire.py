"""Requests and answers byte by byte, over sockets of a test's own, and services with other limits."""

import http.client
import re
import socket
from email.message import Message
from pathlib import Path
from typing import Any

from settings import ROOT

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n"
OF_BODIES = ("BODY_GRACE", "LEAST_RATE")  # limits in `web/connections.py`; the others are in `web/worker.py`
CLOSING = HEALTH.replace(b"Host", b"Connection: close\r\nHost")


def changed(folder: Path, **limits: Any) -> tuple[str, str]:
    """The arguments of a gunicorn whose worker has these limits."""
    modules = {name: "connections" if name in OF_BODIES else "worker" for name in limits}
    lines = [f"web.{modules[name]}.{name} = {value}" for name, value in limits.items()]
    path = folder / "changed.py"
    path.write_text(
        "\n".join([(ROOT / "gunicorn.conf.py").read_text(), "import web.connections, web.worker", *lines, ""])
    )
    return "-c", str(path)


def answer(connection: socket.socket, method: str = "GET") -> tuple[int, Message, bytes]:
    """The next answer: its status, its headers, its content."""
    response = http.client.HTTPResponse(connection, method=method)
    response.begin()
    return response.status, response.headers, response.read()


def statuses(connection: socket.socket, count: int) -> list[int]:
    """The statuses of the next answers, pipelined ones."""
    received = bytearray()
    while len(found := re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", received)) < count:
        piece = connection.recv(65_536)
        assert piece, "the service has closed the connection"
        received += piece
    return [int(status) for status in found]


def rest(connection: socket.socket) -> bytes:
    """All that comes until the service closes the connection."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))
