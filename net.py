"""The only outbound HTTP of Snaplore: which addresses may be called, and calls that cannot hang, flood or
leak.

Addresses for models and tools come in through the API, so whoever holds the API key could otherwise point the
service at the router, at the cloud's metadata server or at itself. Looking a name up when it is saved does
not help: its owner may answer differently a second later (DNS rebinding). So the rule is enforced where it
cannot be argued with: the connection class resolves the name once, refuses unless every answer is allowed,
and connects to an address that it has just checked, by number. TLS still asks for the host's name. The seam
is `_new_conn`, which urllib3's own SOCKS support uses too.

Two URL parsers that disagree are the other way in. Here an address is taken apart by one strict pattern,
which knows less than a browser on purpose, and put together again from its parts; what it does not match is
refused, not interpreted.

A call is one exchange under one deadline: connecting, TLS, sending, and every single read get what is left of
it, so that a server which drips bytes gains nothing. (Only looking the name up keeps the time of the system's
resolver, which cannot be interrupted; it counts.) requests' transport adapter is driven directly: a `Session`
would follow redirects, keep cookies, and read proxies and .netrc from the environment, and none of these may
happen here.

An address that the operator trusts, like the push webhook's, is called through a `Guard` which names its
host.
"""

import contextlib
import dataclasses
import http.client
import io
import ipaddress
import json
import logging
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.connection import create_connection

from errors import BadInput, SnaploreError
from settings import NAME, VERSION

# Its warnings about oddities of an answer quote the whole address, and a query may hold a key.
logging.getLogger("urllib3").setLevel(logging.ERROR)

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # the default deadline of a call, all in all
MAX_ANSWER_BYTES = 10 * 1024 * 1024  # after decompression: a bomb is counted by what it becomes
MAX_URL_LENGTH = 2048
CHUNK_BYTES = 64 * 1024
POOL_SIZE = 32  # idle connections kept per host: as many as the analysis pool may have threads

# User info, fragments, backslashes, blanks, percent signs in the host and everything beyond ASCII (full-width
# digits) do not match.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>(?:/[\w./~:@!$&'()*+,;=%-]*)?(?:\?[\w./~:@!$&'()*+,;=%?-]*)?)",
    re.ASCII | re.IGNORECASE,
)
_NAME = re.compile(r"(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{1,63}(?<!-)")
# A last label like this makes C libraries and browsers read the whole host as an IPv4 address: 2130706433,
# 0x7f.1, 127.1.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")

# What `ipaddress` calls global although it is not a place of its own: the former 6to4 relays; protocol
# assignments with Teredo and ORCHID; 6to4, which wraps any IPv4 address; documentation (RFC 9637). Outside of
# 2000::/3 nothing is assigned (RFC 4291).
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = [
    ipaddress.ip_network(net)
    for net in ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: how IPv4-only hosts look in IPv6-only networks

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class CallFailed(SnaploreError):
    """An outbound call without a whole answer. The sentence names the host, never the path, the query or a
    key.
    """

    status = 502


class AddressBlocked(CallFailed):
    """The name resolves to an address that must not be called; no connection was made."""


class Unreachable(CallFailed):
    """No connection, no trusted TLS, or one that broke before the answer was whole."""


class TimedOut(CallFailed):
    """The deadline passed."""


class AnswerTooLarge(CallFailed):
    """The answer went past its limit of size and was cut off."""


@dataclasses.dataclass(frozen=True)
class Key:
    """A bearer key, bound to the origin it was configured for: no call carries it anywhere else."""

    secret: str = dataclasses.field(repr=False)
    origin: str

    def __post_init__(self):
        if not re.fullmatch(r"[!-~]+", self.secret):
            raise BadInput("api_key: must be printable ASCII without blanks")


@dataclasses.dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]  # looked up without regard to case
    body: bytes


class Guard:
    """Which addresses may be called: https to public ones; in dev mode `localhost`; and what the operator
    trusts.

    `allowed_hosts` are names, addresses and networks (`SNAPLORE_LLM_ALLOWED_HOSTS`), also for plain http. A trusted name is
    trusted wherever it leads, a trusted address or network under any name. `resolve` has the signature of `socket.getaddrinfo`.
    """

    def __init__(
        self,
        *,
        dev_mode: bool = False,
        allowed_hosts: Iterable[str] = (),
        resolve: Callable[..., list] = socket.getaddrinfo,
    ):
        self._resolve = resolve
        self._names = {"localhost"} if dev_mode else set()
        self._networks = []
        for host in allowed_hosts:
            try:
                self._networks.append(ipaddress.ip_network(host.strip("[]"), strict=False))
            except ValueError:
                self._names.add(host.lower().rstrip("."))

    def check_address(self, url: str, *, field: str = "address") -> str:
        """`url` in its normal form, for saving. Raises `BadInput` naming `field`. A name that does not
        resolve now is accepted.
        """
        target = self.target(url, field=field)
        try:
            self.addresses(target.host, target.port, secure=target.secure)
        except AddressBlocked as blocked:
            raise BadInput(f"{field}: {blocked.detail}") from None
        except Unreachable:
            pass  # the service may be offline while it is configured; every connection is checked again
        return target.url

    def target(self, url: str, *, field: str = "address") -> "Target":
        """`url` taken apart and held against all rules that need no name lookup. Raises `BadInput` naming
        `field`.
        """
        target = _split(url, field)
        if target.address is not None and not self._allows(target.host, target.address, secure=True):
            raise BadInput(f"{field}: must not be a private address")
        if not target.secure and not self._may_be_plain(target):
            raise BadInput(f"{field}: must use https://")
        return target

    def addresses(self, host: str, port: int, *, secure: bool) -> list[Address]:
        """The addresses of `host`, all of them allowed. Raises `AddressBlocked`, or `Unreachable` when there
        are none.
        """
        literal = _literal(host)
        found = [literal] if literal is not None else self._look_up(host, port)
        if not all(self._allows(host, address, secure=secure) for address in found):
            what = "a private address" if secure else "an address that may not be called without https"
            raise AddressBlocked(f"{host} resolves to {what} (a mistake, or DNS rebinding); it is not called")
        return found

    def _allows(self, host: str, address: Address, *, secure: bool) -> bool:
        if host in self._names:
            # Nobody may answer for `localhost` but this machine.
            return address.is_loopback or host != "localhost"
        return any(address in network for network in self._networks) or (secure and _is_public(address))

    def _may_be_plain(self, target: "Target") -> bool:
        if target.address is not None:
            return self._allows(target.host, target.address, secure=False)
        # A name may lead into a trusted network: what it resolves to decides.
        return target.host in self._names or bool(self._networks)

    def _look_up(self, host: str, port: int) -> list[Address]:
        try:
            answers = self._resolve(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            answers = []
        if not answers:
            raise Unreachable(f"{host}: the name does not resolve")
        # "%": the zone of a link-local address, which is refused with it or without it.
        return list(dict.fromkeys(ipaddress.ip_address(answer[4][0].split("%")[0]) for answer in answers))


class Client:
    """Calls that keep to a `Guard`. Safe for use by several threads, which share its idle connections.

    `ca_file` (PEM) replaces the certificate authorities of the certifi package.
    """

    def __init__(self, guard: Guard, *, ca_file: str | None = None):
        self._guard = guard
        self._adapter = _Adapter(guard)
        self._verify = ca_file or True

    def post_json(
        self,
        url: str,
        body: Any,
        *,
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = ANSWER_SECONDS,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Response:
        """The whole answer, whatever its status; a redirect is an answer like any other. `deadline` in
        seconds.

        Raises `BadInput` when the address breaks a rule by itself or is not the key's, and a `CallFailed` for
        the rest.
        """
        with self.open(
            "POST", url, body, key=key, headers=headers, deadline=deadline, max_bytes=max_bytes
        ) as answer:
            return Response(answer.status, answer.headers, answer.read())

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        url: str,
        body: Any = None,
        *,
        key: Key | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = ANSWER_SECONDS,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Iterator["Answer"]:
        """An answer whose body is still coming, for streams. A `body` that is not None is sent as JSON; bytes
        are JSON already.

        The deadline and the limit of size hold for the answer's body as well. Left before its end, its
        connection is closed. Raises like `post_json`.
        """
        target = self._guard.target(url)
        content_type = {} if body is None else {"Content-Type": "application/json"}
        headers = {
            "Accept": "application/json",
            "User-Agent": f"{NAME}/{VERSION}",
            **content_type,
            **(headers or {}),
        }
        if key is not None:
            if target.origin != key.origin:
                raise BadInput(f"address: the key belongs to {key.origin}")
            headers["Authorization"] = f"Bearer {key.secret}"
        until = time.monotonic() + deadline
        timeout = urllib3.Timeout(total=deadline, connect=deadline, read=deadline)
        with _failures_told(target.host, until):
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            prepared = requests.Request(method, target.url, headers=headers, data=data).prepare()
            received = self._adapter.send(prepared, stream=True, timeout=timeout, verify=self._verify)
        with contextlib.closing(received):
            yield Answer(received, target.host, until, max_bytes)

    def close(self) -> None:
        """Close the idle connections."""
        self._adapter.close()


class Answer:
    """Status and headers of an answer, and its body, once, in the pieces in which it comes."""

    def __init__(self, received: requests.Response, host: str, until: float, max_bytes: int):
        self.status = received.status_code
        self.headers: Mapping[str, str] = received.headers  # looked up without regard to case
        self._body = received.raw
        self._host, self._until, self._max_bytes = host, until, max_bytes

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        while True:
            with _failures_told(self._host, self._until):
                piece = self._body.read1(CHUNK_BYTES, decode_content=True)
            if not piece:
                return
            size += len(piece)
            if size > self._max_bytes:
                raise AnswerTooLarge(
                    f"{self._host}: the answer is over {self._max_bytes // 1024 // 1024} MB and was cut off"
                )
            yield piece

    def read(self) -> bytes:
        """All that is left of the body."""
        body = bytearray()
        for piece in self:
            body += piece
        return bytes(body)


def origin(url: str) -> str:
    """Scheme, host and port of `url`, like `https://host:443`: what a key is bound to. Raises `BadInput`."""
    return _split(url, "address").origin


@dataclasses.dataclass(frozen=True)
class Target:
    """An address taken apart; its normal form is put together from the parts."""

    scheme: str
    host: str  # lower case, without brackets
    port: int
    rest: str  # path and query

    @property
    def secure(self) -> bool:
        return self.scheme == "https"

    @property
    def address(self) -> Address | None:
        return _literal(self.host)

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self._bracketed}:{self.port}"

    @property
    def url(self) -> str:
        standard = 443 if self.secure else 80
        return (
            f"{self.scheme}://{self._bracketed}{'' if self.port == standard else f':{self.port}'}{self.rest}"
        )

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def _split(url: str, field: str) -> Target:
    match = _URL.fullmatch(url) if len(url) <= MAX_URL_LENGTH else None
    if match is None:
        if "@" in re.split(r"[/?#]", url.partition("://")[2])[0]:
            raise BadInput(f"{field}: must not hold a user name or password")
        raise BadInput(f"{field}: must be an address like https://host/path, in ASCII, without a fragment")
    scheme, host = match["scheme"].lower(), match["host"].lower()
    port = int(match["port"] or (443 if scheme == "https" else 80))
    if not 0 < port < 65536:
        raise BadInput(f"{field}: the port must be between 1 and 65535")
    if host.startswith("["):
        literal = _literal(host.strip("[]"))
        good = isinstance(literal, ipaddress.IPv6Address)
        host = str(literal)
    elif _NUMERIC.fullmatch(host.rpartition(".")[2]):
        good = _literal(host) is not None  # four plain decimal numbers, or it is a disguise
    else:
        good = len(host) <= 253 and bool(_NAME.fullmatch(host))
    if not good:
        raise BadInput(f"{field}: the host must be a name, or an IP address in its usual spelling")
    return Target(scheme, host, port, match["rest"])


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    """Global unicast by IANA's registries, also when it stands for an IPv4 address inside an IPv6 one."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.ipv4_mapped
        if inner is not None:
            return _is_public(inner)
        if address not in _GLOBAL_IPV6:
            return False
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _NOT_PUBLIC)
    )


@contextlib.contextmanager
def _failures_told(host: str, until: float) -> Iterator[None]:
    """Turn the libraries' errors into a `CallFailed`.

    They quote the whole URL, and its query may hold a key: their text goes nowhere, `from None` keeps it out
    of traces.
    """
    try:
        yield
    except (requests.Timeout, urllib3.exceptions.TimeoutError):
        raise TimedOut(f"{host}: no whole answer in time") from None
    except (requests.exceptions.SSLError, urllib3.exceptions.SSLError):
        raise Unreachable(
            f"{host}: no trusted TLS connection (is the certificate valid for this name?)"
        ) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
        if time.monotonic() >= until:
            raise TimedOut(f"{host}: no whole answer in time") from None
        raise Unreachable(f"{host}: the connection broke before the answer was whole") from None


class _Adapter(HTTPAdapter):
    """requests' transport with connections that ask the guard."""

    def __init__(self, guard: Guard):
        self._guard = guard
        super().__init__(pool_maxsize=POOL_SIZE)

    def init_poolmanager(self, *args, **kwargs):
        super().init_poolmanager(*args, **kwargs)
        plain = type(
            "PlainConnection",
            (_GuardedConnection, urllib3.connection.HTTPConnection),
            {"guard": self._guard, "secure": False},
        )
        secure = type(
            "SecureConnection",
            (_GuardedConnection, urllib3.connection.HTTPSConnection),
            {"guard": self._guard, "secure": True},
        )
        self.poolmanager.pool_classes_by_scheme = {
            "http": type("PlainPool", (urllib3.HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("SecurePool", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": secure}),
        }


class _DeadlineReader(io.RawIOBase):
    """The receiving side of a socket: each read waits no longer than until the deadline, however little the
    last one brought.
    """

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float):
        self._raw, self._sock, self._until = raw, sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int | None:
        self._sock.settimeout(_left(self._until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    """Status line, headers and body, read through a `_DeadlineReader`.

    urllib3 puts what is left of `Timeout.total` on the socket just before it makes a response; on its own
    that would count for each read anew.
    """

    def __init__(self, sock: socket.socket, *args, **kwargs):
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(
            _DeadlineReader(self.fp.detach(), sock, time.monotonic() + sock.gettimeout())
        )


class _GuardedConnection:
    """Mixed into urllib3's connections. Their `timeout` is the rest of the call's deadline when they connect."""

    response_class = _DeadlineResponse
    guard: Guard
    secure: bool

    def connect(self) -> None:
        until = time.monotonic() + self.timeout
        super().connect()
        self.sock.settimeout(
            _left(until)
        )  # for sending: a picture over a slow line takes longer than connecting may

    def _new_conn(self) -> socket.socket:
        """A socket connected to one of the checked addresses. They share the time for connecting, so that a
        dead one leaves some.
        """
        addresses = self.guard.addresses(self.host, self.port, secure=self.secure)
        until = time.monotonic() + min(CONNECT_SECONDS, self.timeout)
        for index, address in enumerate(addresses):
            try:
                share = _left(until) / (len(addresses) - index)
                sock = create_connection((str(address), self.port), share, socket_options=self.socket_options)
            except OSError:
                continue
            sock.settimeout(min(CONNECT_SECONDS, self.timeout))  # for the TLS handshake
            return sock
        raise Unreachable(f"{self.host}: no connection to port {self.port}")


def _left(until: float) -> float:
    """Seconds until the monotonic moment `until`. Raises `TimeoutError` when it has passed: zero would mean
    not to wait at all.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
