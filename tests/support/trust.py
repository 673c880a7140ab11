"""A service that serves https with its own certificate, and clients that trust its CA."""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import requests

from tests.support.service import PATIENCE, Service


class SecureService(Service):
    """A service with a certificate. Its requests go over https and are verified."""

    def __init__(self, folder: Path, *arguments: str, **settings: Any):
        super().__init__(folder, *arguments, **settings)
        self.authority = folder / "ca.crt"

    def start(self, **settings: Any) -> None:
        if not self.authority.exists():
            made = self.run("flask", "--app", "app", "tls", "init")
            assert made.returncode == 0, made.stderr
        super().start(**settings)
        plain = self.url
        with requests.Session() as session:
            session.trust_env = False
            found = session.get(f"{plain}/ca.crt", timeout=PATIENCE)
        self.authority.write_bytes(found.content)
        self.url = plain.replace("http:", "https:")

    def knock(self, method: str, path: str, **options: Any) -> requests.Response:
        return super().knock(method, path, **{"verify": str(self.authority), **options})

    def context(self, **changes: Any) -> ssl.SSLContext:
        """A client's, which trusts the CA."""
        context = ssl.create_default_context(cafile=str(self.authority))
        for name, value in changes.items():
            setattr(context, name, value)
        return context

    @contextlib.contextmanager
    def connection(self, sent: bytes = b"", **changes: Any) -> Iterator[ssl.SSLSocket]:
        """A connection with a finished handshake, over which `sent` has been sent."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.context(**changes).wrap_socket(plain, server_hostname="127.0.0.1") as made:
            if sent:
                made.sendall(sent)
            yield made


def hello(name: str = "127.0.0.1") -> bytes:
    """The first message of a client's handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()
