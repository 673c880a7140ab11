"""The client's connection to a service: requests with its token, over plain http or verified https.

It uses the standard library only, so that it runs on any machine with Python. It follows no redirect, because
a token must not travel to another address, and ignores proxies. What it receives is limited in size.
"""

import contextlib
import hashlib
import http.client
import json
import secrets
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from settings import MEGABYTE
from terminal.failures import Failed, Unreachable, Untrusted

PATIENCE = 60.0  # seconds for one step of a connection
MOST_JSON = 32 * MEGABYTE
MOST_PICTURE = 64 * MEGABYTE
MOST_TABLE = 64 * MEGABYTE
MOST_CERTIFICATE = 64 * 1024
BLOCK = 256 * 1024


Query = str | int | tuple[str, ...]  # a value of a query; several of one name


class Login(NamedTuple):
    """Where a service is, and by what it lets this client in."""

    url: str  # without a trailing slash
    token: str
    ca: str = ""  # the only certificate authority that is trusted, PEM; empty: those of the system

    def __repr__(self) -> str:
        return f"Login({self.url!r})"


class Service:
    """A service that `login` leads to. Every call opens a connection of its own."""

    def __init__(self, login: Login):
        self.login = login
        parts = urlsplit(login.url)
        self._secure, self._path = parts.scheme == "https", parts.path
        self._host, self._port = parts.hostname or "", parts.port

    def get(self, path: str, **query: Query) -> dict[str, Any]:
        """The JSON object that `path` answers. Empty values of the query are left out. Raises `Failed`."""
        return _object(self._answer("GET", _target(path, query), most=MOST_JSON))

    def table(self, path: str, **query: Query) -> bytes:
        """The bytes of a table. Empty values of the query are left out. Raises `Failed`."""
        return self._answer("GET", _target(path, query), most=MOST_TABLE)

    def picture(self, path: str) -> bytes:
        """The bytes of a picture. Raises `Failed`."""
        return self._answer("GET", path, most=MOST_PICTURE)

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The JSON object that answers the JSON `body`. Raises `Failed`."""
        sent = json.dumps(body).encode()
        return _object(self._answer("POST", path, [sent], "application/json", most=MOST_JSON))

    def delete(self, path: str) -> None:
        """Delete what is at `path`. Raises `Failed`."""
        self._answer("DELETE", path, most=MOST_JSON)

    def download(self, path: str, file: BinaryIO) -> int:
        """Write what `path` answers to `file`, however large it is; returns its size in bytes. Raises
        `Failed`, also where the connection ends before the answer does, and `OSError` of the file.
        """
        size = 0
        headers = {"Authorization": f"Bearer {self.login.token}", "User-Agent": "snaplore-client"}
        with contextlib.closing(self._connection()) as connection:
            with self._explained():
                connection.request("GET", self._path + path, headers=headers)
                answer = connection.getresponse()
                if answer.status != 200:
                    raise _refusal(answer, answer.read(MOST_JSON))
            while True:
                with self._explained():
                    block = answer.read(BLOCK)
                if not block:
                    return size
                size += file.write(block)

    def upload(self, filename: str, picture: bytes, fields: Mapping[str, str]) -> dict[str, Any]:
        """Upload a picture, with the fields of the form. Raises `Failed`."""
        boundary = secrets.token_hex(16)
        body = [
            *(_part(boundary, f'name="{name}"', value.encode()) for name, value in fields.items() if value),
            _part(boundary, f'name="file"; filename="{_quoted(filename)}"', picture),
            f"--{boundary}--\r\n".encode(),
        ]
        kind = f"multipart/form-data; boundary={boundary}"
        return _object(self._answer("POST", "/api/photos/upload", body, kind, most=MOST_JSON))

    def check(self) -> None:
        """Raises `Failed` unless the service answers and accepts the token, whatever it may do."""
        self._answer("GET", "/api/openapi.json", most=MOST_JSON)  # for tokens of every scope but feeds

    def _answer(
        self, method: str, target: str, body: Iterable[bytes] = (), kind: str = "", *, most: int
    ) -> bytes:
        parts = list(body)
        headers = {"Authorization": f"Bearer {self.login.token}", "User-Agent": "snaplore-client"}
        if parts:
            headers |= {"Content-Type": kind, "Content-Length": str(sum(map(len, parts)))}
        with self._explained(), contextlib.closing(self._connection()) as connection:
            # A service that refuses a large body answers before it has read all of it.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, self._path + target, parts or None, headers)
            answer = connection.getresponse()
            data = answer.read(most + 1)
        if answer.status == 401 and self.login.token:
            url = self.login.url
            raise Failed(f"{url} does not accept the token: run `snaplore login {url}`.", status=401)
        if answer.status != 200:
            raise _refusal(answer, data)
        if len(data) > most:
            raise Failed(f"{self.login.url} answers with more than the {most // MEGABYTE} MB that fit here.")
        return data

    def _connection(self) -> http.client.HTTPConnection:
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
        try:
            context = ssl.create_default_context(cadata=self.login.ca or None)
        except (ssl.SSLError, ValueError):
            raise Failed("The certificate authority cannot be read: it must be a PEM file.") from None
        return http.client.HTTPSConnection(self._host, self._port, timeout=PATIENCE, context=context)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Failures of a connection as sentences."""
        url = self.login.url
        try:
            yield
        except ssl.SSLCertVerificationError as problem:
            raise Untrusted(
                f"The certificate of {url} is not trusted ({problem.verify_message}). If it is that of your "
                f"service, `snaplore login {url}` with --ca or --fingerprint trusts it."
            ) from None
        except ssl.SSLError:
            raise Unreachable(f"{url} does not speak https.") from None
        except socket.gaierror:
            raise Unreachable(f"The name {self._host} is not known.") from None
        except ConnectionRefusedError:
            raise Unreachable(f"Nothing listens at {url}: is the service running?") from None
        except TimeoutError:
            raise Unreachable(f"{url} does not answer.") from None
        except OSError as problem:
            raise Unreachable(f"{url} cannot be reached: {problem.strerror or 'it hung up'}.") from None
        except (http.client.HTTPException, UnicodeError):
            raise Unreachable(f"{url} does not answer as Snaplore does.") from None


def offered_authority(url: str) -> str:
    """The authority (PEM) that a service hands out over plain http, to be compared. Raises `Failed`."""
    plain = Service(Login(url.replace("https://", "http://", 1), ""))
    pem = plain._answer("GET", "/ca.crt", most=MOST_CERTIFICATE).decode("ascii", "replace")
    fingerprint(pem)
    return pem


def fingerprint(pem: str) -> str:
    """The SHA-256 of a certificate, as pairs of hexadecimal digits. Raises `Failed`."""
    try:
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    except ValueError:
        raise Failed("That is no certificate in a PEM file.") from None
    return ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))


def _target(path: str, query: Mapping[str, Query]) -> str:
    given = {name: value for name, value in query.items() if value not in ("", ())}
    return f"{path}?{urlencode(given, doseq=True, errors='replace')}" if given else path


def _part(boundary: str, disposition: str, content: bytes) -> bytes:
    head = f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
    return head.encode() + content + b"\r\n"


def _quoted(filename: str) -> str:
    """A file name for a form, as browsers write it."""
    return filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Failed("The answer is not one of Snaplore.")
    return value


def _refusal(answer: http.client.HTTPResponse, data: bytes) -> Failed:
    try:
        detail = json.loads(data)["detail"]
    except (ValueError, RecursionError, KeyError, TypeError):
        place = quote(answer.headers.get("Location", ""), safe=":/?#&=%")
        leads = f" and leads to {place}" if place else ""
        detail = f"The service answers with status {answer.status}{leads}."
    waiting = answer.headers.get("Retry-After", "")
    seconds = float(waiting) if waiting.isascii() and waiting.isdigit() and len(waiting) < 6 else 0.0
    return Failed(str(detail), status=answer.status, retry_after=seconds)
