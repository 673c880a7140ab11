"""All outbound HTTP: which addresses may be called, with limits of time and size for every call.

The API accepts addresses of models and tools, so a holder of the API key could otherwise direct the service
to the router, the cloud's metadata server or itself (server-side request forgery). Resolving a name when it
is saved does not help, because its owner can change the answer a second later (DNS rebinding). So the
connection class enforces the rule: it resolves the name once, refuses unless every answer is allowed, and
connects to an address that it has just checked. TLS still verifies the host's name. The hook is `_new_conn`,
which urllib3's own SOCKS support overrides, too.

Two URL parsers that disagree would be another way in. Here one strict pattern, deliberately narrower than a
browser's parser, splits an address, and the address that is called is assembled from the parts. Whatever the
pattern does not match is refused.

A call is one exchange under one deadline: connecting, TLS, sending and every read get the time that is left,
so a server that drips bytes gains nothing. (The system's name lookup cannot be interrupted; its time counts
towards the deadline.) The module calls requests' transport adapter directly: a `Session` would follow
redirects, keep cookies, and read proxies and .netrc from the environment, none of which is safe here.

An address that the operator trusts, like the push webhook's, is called through a `Guard` that allows its
host.

The rules and the connections that enforce them share this long file, because neither is safe without the
other.
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
from typing import TYPE_CHECKING, Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.connection import create_connection

from errors import BadInput, SnaploreError
from settings import NAME, VERSION

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# urllib3's warnings about malformed answers quote the whole address, and its query may contain a key.
logging.getLogger("urllib3").setLevel(logging.ERROR)

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0  # the default deadline of a whole call
MAX_ANSWER_BYTES = 10 * 1024 * 1024  # after decompression, because of decompression bombs
MAX_URL_LENGTH = 2048
MAX_HOST_LENGTH = 253  # RFC 1035 allows 255 bytes on the wire
ABOUT_HOST = f"http or https, with a host of at most {MAX_HOST_LENGTH} characters"  # for the contract
CHUNK_BYTES = 64 * 1024
POOL_SIZE = 32  # idle connections per host: the largest number of threads in the analysis pool

# User info, fragments, backslashes, spaces, percent signs in the host and non-ASCII characters (like
# full-width digits) do not match.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<rest>(?:/[\w./~:@!$&'()*+,;=%-]*)?(?:\?[\w./~:@!$&'()*+,;=%?-]*)?)",
    re.ASCII | re.IGNORECASE,
)
_NAME = re.compile(r"(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{1,63}(?<!-)")
# With such a last label, C libraries and browsers read the whole host as an IPv4 address: 2130706433, 0x7f.1,
# 127.1.
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")

# IANA's special-purpose registries (RFC 6890, as of 2026), multicast and the reserved space. The table is our
# own, because `ipaddress.is_global` differs between versions of Python. Outside of 2000::/3 no IPv6 address
# is assigned for global unicast (RFC 4291).
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by a provider's customers (RFC 6598); some clouds' metadata
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local; most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; Oracle Cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # the former 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarking
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "168.63.129.16/32",  # Azure's platform services, at a public address
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking, anycast
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds any IPv4 address
        "3fff::/20",  # documentation (RFC 9637)
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: how IPv4-only hosts look in IPv6-only networks

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class CallFailed(SnaploreError):
    """An outbound call without a whole answer. The sentence names the host, never path, query or key."""

    status = 502


class AddressBlocked(CallFailed):
    """The name resolves to a forbidden address; no connection was made."""


class Unreachable(CallFailed):
    """No connection, no trusted TLS, or a connection that broke before the answer was whole."""


class TimedOut(CallFailed):
    """The deadline passed."""


class AnswerTooLarge(CallFailed):
    """The answer exceeds the size limit and was cut off."""


@dataclasses.dataclass(frozen=True)
class Key:
    """A bearer key, bound to the origin it was configured for: it is never sent to another one."""

    secret: str = dataclasses.field(repr=False)
    origin: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[!-~]+", self.secret):
            raise BadInput("api_key: must be printable ASCII without blanks")


@dataclasses.dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str]  # case-insensitive
    body: bytes


class Guard:
    """Which addresses may be called: public ones by https, `localhost` in dev mode, and the allowed hosts.

    `allowed_hosts` are names, addresses and networks (`SNAPLORE_LLM_ALLOWED_HOSTS`), also for plain http. An
    allowed name may resolve to any address; an allowed address or network may be called under any name.
    `setting` is the variable that a refusal names, if `allowed_hosts` come from one. `resolve` has the
    signature of `socket.getaddrinfo`.
    """

    def __init__(
        self,
        *,
        dev_mode: bool = False,
        allowed_hosts: Iterable[str] = (),
        setting: str = "",
        resolve: Callable[..., list[Any]] = socket.getaddrinfo,
    ):
        self._resolve = resolve
        allowed_hosts = self._allowed_hosts = tuple(allowed_hosts)
        self._setting = setting
        self._names = {"localhost"} if dev_mode else set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for host in allowed_hosts:
            try:
                self._networks.append(ipaddress.ip_network(host.strip("[]"), strict=False))
            except ValueError:
                self._names.add(host.lower().rstrip("."))

    def check_address(self, url: str, *, field: str = "address") -> str:
        """`url` normalised, for saving. Raises `BadInput` naming `field`.

        A name that does not resolve now is accepted.
        """
        target = self.target(url, field=field)
        try:
            self.addresses(target.host, target.port, secure=target.secure)
        except AddressBlocked as blocked:
            raise BadInput(f"{field}: {blocked.detail}{self._unless_allowed(target.host)}") from None
        except Unreachable:
            pass  # the service may be offline now; every connection is checked again
        return target.url

    def target(self, url: str, *, field: str = "address") -> "Target":
        """`url` split and checked by all rules that need no name lookup. Raises `BadInput` naming `field`."""
        target = _split(url, field)
        if target.address is not None and not self._allows(target.host, target.address, secure=True):
            raise BadInput(f"{field}: must not be a private address{self._unless_allowed(target.host)}")
        if not target.secure and not self._may_be_plain(target):
            raise BadInput(f"{field}: must use https://{self._unless_allowed(target.host)}")
        return target

    def _unless_allowed(self, host: str) -> str:
        """How the operator allows a host of their own, with the whole value of the setting; or nothing."""
        hosts = ",".join([*self._allowed_hosts, host])
        return f", unless the service is started with {self._setting}={hosts}" if self._setting else ""

    def addresses(self, host: str, port: int, *, secure: bool) -> list[Address]:
        """The addresses of `host`, at least one, all of them allowed.

        Raises `AddressBlocked` when one is not, and `Unreachable` when there is none.
        """
        literal = _literal(host)
        found = [literal] if literal is not None else self._look_up(host, port)
        if not all(self._allows(host, address, secure=secure) for address in found):
            what = "a private address" if secure else "an address that may not be called without https"
            raise AddressBlocked(f"{host} resolves to {what} (a mistake, or DNS rebinding); it is not called")
        return found

    def _allows(self, host: str, address: Address, *, secure: bool) -> bool:
        if host in self._names:
            # `localhost` must be this machine.
            return address.is_loopback or host != "localhost"
        return any(address in network for network in self._networks) or (secure and _is_public(address))

    def _may_be_plain(self, target: "Target") -> bool:
        if target.address is not None:
            return self._allows(target.host, target.address, secure=False)
        # A name may resolve to an address in an allowed network: `addresses` decides.
        return target.host in self._names or bool(self._networks)

    def _look_up(self, host: str, port: int) -> list[Address]:
        try:
            answers = self._resolve(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            answers = []
        if not answers:
            raise Unreachable(f"{host}: the name does not resolve")
        # Behind a "%" is the zone of a link-local address, which is forbidden in any zone.
        return list(dict.fromkeys(ipaddress.ip_address(answer[4][0].split("%")[0]) for answer in answers))


class Client:
    """Outbound calls to the addresses that a `Guard` allows. Thread-safe; idle connections are shared.

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
        deadline: float = ANSWER_SECONDS,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> Response:
        """POST `body` as JSON and return the whole answer, whatever its status; redirects are not followed.

        `deadline` is in seconds. Raises `BadInput` when the address is invalid or forbidden by itself, or
        `key` belongs to another origin, and a `CallFailed` for all other failures.
        """
        with self.open("POST", url, body, key=key, deadline=deadline, max_bytes=max_bytes) as answer:
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
        """Make a call and yield its answer, whose body is read as a stream.

        A `body` that is not None is sent as JSON; bytes, and an open file, are sent as they are, and are JSON
        unless `headers` name another type. `deadline` (seconds) and
        `max_bytes` also limit the reading of the answer's body. If the caller stops before its end, the
        connection is closed. Raises as `post_json` does.
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
        # requests passes this type on to urllib3, though its annotations do not name it.
        timeout: Any = urllib3.Timeout(total=deadline, connect=deadline, read=deadline)
        with _translated_failures(target.host, until):
            is_sent_as_it_is = body is None or isinstance(body, bytes | io.IOBase)
            data = body if is_sent_as_it_is else json.dumps(body).encode()
            prepared = requests.Request(method, target.url, headers=headers, data=data).prepare()
            received = self._adapter.send(prepared, stream=True, timeout=timeout, verify=self._verify)
        with contextlib.closing(received):
            yield Answer(received, target.host, until, max_bytes)

    def close(self) -> None:
        """Close the idle connections."""
        self._adapter.close()


class Answer:
    """The status and headers of an answer, and its body, which can be read once, piece by piece."""

    def __init__(self, received: requests.Response, host: str, until: float, max_bytes: int):
        self.status = received.status_code
        self.headers: Mapping[str, str] = received.headers  # case-insensitive
        self._body = received.raw
        self._host, self._until, self._max_bytes = host, until, max_bytes

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        while True:
            with _translated_failures(self._host, self._until):
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
        """The rest of the body."""
        body = bytearray()
        for piece in self:
            body += piece
        return bytes(body)


def origin(url: str) -> str:
    """Scheme, host and port of `url`, like `https://host:443`, to which keys are bound. Raises `BadInput`."""
    return _split(url, "address").origin


def host(url: str) -> str:
    """The host of `url`, with its port unless it is the scheme's own. Raises `BadInput`."""
    return _split(url, "address").authority


@dataclasses.dataclass(frozen=True)
class Target:
    """An address, split into its parts; `url` is assembled from them."""

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
    def authority(self) -> str:
        standard = 443 if self.secure else 80
        return f"{self._bracketed}{'' if self.port == standard else f':{self.port}'}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.rest}"

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
        good = _literal(host) is not None  # four plain decimal numbers, not a disguised address
    else:
        good = len(host) <= MAX_HOST_LENGTH and bool(_NAME.fullmatch(host))
    if not good:
        raise BadInput(f"{field}: the host must be a name, or an IP address in its usual spelling")
    return Target(scheme, host, port, match["rest"])


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_public(address: Address) -> bool:
    """Whether `address`, or the IPv4 address that it embeds (mapped, NAT64), is global unicast."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.ipv4_mapped
        if inner is not None:
            return _is_public(inner)
        if address not in _GLOBAL_IPV6:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


@contextlib.contextmanager
def _translated_failures(host: str, until: float) -> Iterator[None]:
    """Turn the libraries' errors into a `CallFailed`.

    Their texts quote the whole URL, and its query may contain a key, so they are dropped; `from None` keeps
    them out of tracebacks.
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
    """requests' transport adapter with connections that check addresses with the guard."""

    def __init__(self, guard: Guard):
        self._guard = guard
        super().__init__(pool_maxsize=POOL_SIZE)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        plain = type(
            "PlainConnection",
            (_GuardedConnection,),
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
    """The receiving side of a socket. Each read ends at the deadline, however little the last one brought."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, until: float):
        self._raw, self._sock, self._until = raw, sock, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        self._sock.settimeout(_left(self._until))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    """Status line, headers and body, read through a `_DeadlineReader`.

    Just before urllib3 makes a response, it sets the socket's timeout to what is left of `Timeout.total`.
    Without the reader that timeout would start anew with each read.
    """

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any):
        super().__init__(sock, *args, **kwargs)
        until = time.monotonic() + (sock.gettimeout() or ANSWER_SECONDS)
        self.fp = io.BufferedReader(_DeadlineReader(self.fp.detach(), sock, until))


class _GuardedConnection(urllib3.connection.HTTPConnection):
    """Mixed into urllib3's connections. When they connect, `timeout` is the rest of the call's deadline."""

    response_class = _DeadlineResponse
    guard: Guard
    secure: bool
    timeout: float

    def connect(self) -> None:
        until = time.monotonic() + self.timeout
        super().connect()
        # For sending: a picture over a slow line takes longer than `CONNECT_SECONDS`.
        self.sock.settimeout(_left(until))

    def _new_conn(self) -> socket.socket:
        """A socket connected to one of the checked addresses.

        The addresses share the time for connecting, so that a dead one leaves time for the others.
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
    """Seconds until the monotonic time `until`. Raises `TimeoutError` when it has passed.

    It never returns 0, which would make a socket non-blocking.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
