"""A bucket of an S3-compatible store: the few calls that backups and pictures elsewhere need.

The client is our own, because all outbound HTTP goes through `net`, whose connections check the address that
they connect to and whose deadline covers the whole call. What is left is a signature (AWS Signature Version
4) and five calls, all with the address `endpoint/bucket/key`, which every S3-compatible store accepts.
boto3 would be 15 MB and a second way out of the program.

Every object is written with the SHA-256 of its bytes as a part of the signature, and their MD5, so that the
store refuses what arrives changed. An object appears as a whole or not at all. Nothing but sealed bytes is
ever given to this module.

Where the store fails for a moment, a call is tried again, unless the caller has no time for that.
"""

import base64
import contextlib
import hashlib
import hmac
import html
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import net
from clock import utc_now
from errors import StartRefused, Unavailable, Unreadable
from settings import MEGABYTE, S3_ADDRESS, Settings, variable

BLOCK = 262_144  # bytes
TRIES = 4
PAUSES = (1.0, 4.0, 10.0)  # seconds before the second try and those after it
# Seconds for a whole call, and bytes a second that a slow line carries at least.
ANSWER_SECONDS = 60.0
SLOWEST = 20_000
LARGEST_LIST = 4 * MEGABYTE  # bytes of one page of a listing: 1,000 names
MOST_PAGES = 20_000  # of a listing: twenty million objects
MOST_WITHOUT = 10  # pages without any object, one after the other
LISTED_ERROR = 4_000  # bytes of an error that are read
RETRY_AFTER = 30.0  # seconds, for clients

EMPTY = hashlib.sha256(b"").hexdigest()

CREDENTIALS = (
    f"There are no credentials for the bucket: set {variable('s3_access_key')} and "
    f"{variable('s3_secret_key')}, or {variable('s3_credentials_file')}."
)


class BucketAway(Unavailable):
    """The store does not answer, or refuses. The sentence names the host and the store's own word for it.

    `passing` is whether another try may help.
    """

    def __init__(self, detail: str, *, passing: bool):
        super().__init__(detail, retry_after=RETRY_AFTER)
        self.passing = passing


class ObjectLost(Unreadable):
    """There is no such object."""


class Credentials(NamedTuple):
    access_key: str
    secret_key: str

    def __repr__(self) -> str:
        return "Credentials(…)"


Result = TypeVar("Result")


class Listed(NamedTuple):
    """An object of a listing."""

    name: str  # below the bucket's prefix
    size: int  # bytes
    modified: datetime  # UTC


def credentials(settings: Settings) -> Credentials:
    """The keys of the store, read anew each time, so that a file may be replaced. Raises `StartRefused`."""
    access_key, secret_key = settings.s3_access_key, settings.s3_secret_key
    if path := settings.s3_credentials_file:
        try:
            with path.open(encoding="ascii") as file:
                lines = file.read(1_000).split()
        except (OSError, UnicodeError):
            raise StartRefused(f"{variable('s3_credentials_file')}: {path} cannot be read.") from None
        if len(lines) != 2:
            raise StartRefused(
                f"{variable('s3_credentials_file')}: {path} must have two lines, the access key and the "
                "secret key."
            )
        access_key, secret_key = lines
    if not access_key or not secret_key:
        raise StartRefused(CREDENTIALS)
    return Credentials(access_key, secret_key)


class Bucket:
    """The objects of a bucket whose names begin with a prefix. Thread-safe.

    `address` is `s3://bucket/prefix`. Every call raises `BucketAway` when the store does not answer or
    refuses. `tries` is how often a call is tried.
    """

    def __init__(self, address: str, settings: Settings, *, tries: int = TRIES):
        match = re.fullmatch(S3_ADDRESS, address)
        if match is None:
            raise StartRefused("The address of a bucket is like s3://bucket/prefix.")
        self._bucket, prefix = match["bucket"], match["prefix"].strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._region = settings.s3_region
        self._endpoint = (settings.s3_endpoint or f"https://s3.{self._region}.amazonaws.com").rstrip("/")
        # The address is the operator's own, as that of the push webhook: it may be on the local network.
        trusted = [urlsplit(settings.s3_endpoint).hostname or ""] if settings.s3_endpoint else []
        self._client = net.Client(net.Guard(allowed_hosts=trusted))
        self._credentials = credentials(settings)
        self._tries = tries
        self.host = net.host(self._endpoint)

    def __repr__(self) -> str:
        return f"Bucket({self._bucket}/{self._prefix})"

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def put(self, name: str, content: bytes) -> None:
        """Write an object; an existing one is replaced."""
        digest, md5 = hashlib.sha256(content).hexdigest(), hashlib.md5(content, usedforsecurity=False)
        self._put(name, content, len(content), digest, md5.digest())

    def put_file(self, name: str, path: Path) -> str:
        """Write a file as an object; returns the SHA-256 of its bytes, in hexadecimal digits."""
        digest, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        with path.open("rb", buffering=0) as file:
            while block := file.read(BLOCK):
                digest.update(block)
                md5.update(block)
                size += len(block)
        self._put(name, path, size, digest.hexdigest(), md5.digest())
        return digest.hexdigest()

    def get(self, name: str, into: BinaryIO | None, *, most: int) -> str:
        """Write the bytes of an object into a file, from its present position, or nowhere, with None;
        returns their SHA-256.

        Raises `ObjectLost`, and `Unreadable` for an object of more than `most` bytes.
        """
        start = into.tell() if into else 0

        def attempt() -> str:
            digest, size = hashlib.sha256(), 0
            if into:
                into.seek(start)  # of an earlier try; the file may end behind the last byte of this one
                into.truncate()
            deadline = ANSWER_SECONDS + most / SLOWEST
            with self._called("GET", name, deadline=deadline, most=most + 1) as answer:
                for piece in answer:
                    size += len(piece)
                    if size > most:
                        raise Unreadable(f"{self.host}: an object is larger than it was.")
                    digest.update(piece)
                    if into:
                        into.write(piece)
                expected = answer.headers.get("Content-Length", "")
            if expected.isdigit() and int(expected) != size:
                raise BucketAway(
                    f"{self.host}: the connection broke before the object was whole", passing=True
                )
            return digest.hexdigest()

        return self._tried(attempt)

    def digest(self, name: str, *, most: int) -> str:
        """The SHA-256 of an object's bytes, which are read back from the store. Raises as `get` does."""
        return self.get(name, None, most=most)

    def size(self, name: str) -> int | None:
        """The size of an object in bytes, None when there is none."""

        def attempt() -> int | None:
            try:
                with self._called("HEAD", name, deadline=ANSWER_SECONDS) as answer:
                    length = answer.headers.get("Content-Length", "")
                    return int(length) if re.fullmatch("[0-9]{1,18}", length) else None
            except ObjectLost:
                return None

        return self._tried(attempt)

    def delete(self, name: str) -> None:
        """Delete an object; none is no error."""

        def attempt() -> None:
            with contextlib.suppress(ObjectLost), self._called("DELETE", name, deadline=ANSWER_SECONDS):
                pass

        self._tried(attempt)

    def listed(self, below: str = "") -> Iterator[Listed]:
        """The objects whose names begin with `below`, in the order of their names, read page by page.

        Raises `Unreadable` for a listing that no store makes: one that does not ascend, repeats its token,
        has other names, or does not end.
        """
        prefix, token, last, without = self._prefix + below, "", "", 0
        for _ in range(MOST_PAGES):
            query = {"list-type": "2", "max-keys": "1000", "prefix": prefix}
            page = self._page({**query, "continuation-token": token} if token else query)
            before = last
            for key, listed in _objects(page, len(self._prefix)):
                if key <= last or not key.startswith(prefix):
                    raise Unreadable(
                        f"{self.host}: the bucket is listed in a wrong order, or with other names."
                    )
                last = key
                yield listed
            following = re.search(r"<NextContinuationToken>([^<]{1,1500})</NextContinuationToken>", page)
            if "<IsTruncated>true</IsTruncated>" not in page or following is None:
                return
            without = 0 if last > before else without + 1
            if token == html.unescape(following[1]) or without == MOST_WITHOUT:
                break
            token = html.unescape(following[1])
        raise Unreadable(f"{self.host}: the listing of the bucket does not end.")

    def _page(self, query: Mapping[str, str]) -> str:
        def attempt() -> str:
            with self._called("GET", None, query, deadline=ANSWER_SECONDS, most=LARGEST_LIST) as answer:
                return answer.read().decode(errors="replace")

        return self._tried(attempt)

    def _put(self, name: str, content: bytes | Path, size: int, digest: str, md5: bytes) -> None:
        headers = {
            "Content-MD5": base64.b64encode(md5).decode(),
            "Content-Type": "application/octet-stream",
        }

        def attempt() -> None:
            with contextlib.ExitStack() as opened:
                body = opened.enter_context(content.open("rb")) if isinstance(content, Path) else content
                deadline = ANSWER_SECONDS + size / SLOWEST
                opened.enter_context(
                    self._called("PUT", name, deadline=deadline, body=body, payload=digest, headers=headers)
                )

        self._tried(attempt)

    def _tried(self, attempt: Callable[[], Result]) -> Result:
        for number in range(self._tries):
            try:
                return attempt()
            except BucketAway as problem:
                if not problem.passing or number == self._tries - 1:
                    raise
            time.sleep(PAUSES[min(number, len(PAUSES) - 1)])
        raise AssertionError("the last try returns or raises")

    @contextlib.contextmanager
    def _called(
        self,
        method: str,
        name: str | None,
        query: Mapping[str, str] | None = None,
        *,
        deadline: float,
        body: Any = None,
        payload: str = EMPTY,
        headers: Mapping[str, str] | None = None,
        most: int = LISTED_ERROR,
    ) -> Iterator[net.Answer]:
        """The answer of a signed call that succeeded. `name` None is the bucket itself."""
        path = f"/{self._bucket}" if name is None else f"/{self._bucket}/{self._prefix}{name}"
        url = f"{self._endpoint}{path}" + (f"?{_query(query)}" if query else "")
        signed = _signed(
            method, url, _query(query or {}), payload, self._credentials, self._region, now=utc_now()
        )
        sent = {"Accept": "*/*", "Accept-Encoding": "identity", **(headers or {}), **signed}
        try:
            with self._client.open(
                method, url, body, headers=sent, deadline=deadline, max_bytes=max(most, LISTED_ERROR)
            ) as answer:
                if not 200 <= answer.status < 300:
                    raise _refusal(self.host, answer)
                yield answer
        except net.AnswerTooLarge:
            raise Unreadable(f"{self.host}: an object is larger than it was.") from None
        except net.CallFailed as problem:
            raise BucketAway(problem.detail, passing=not isinstance(problem, net.AddressBlocked)) from None


# ---------------------------------------------------------------------------------------------- the protocol


def _signed(
    method: str,
    url: str,
    query: str,
    payload: str,
    keys: Credentials,
    region: str,
    *,
    now: datetime,
) -> dict[str, str]:
    """The headers of AWS Signature Version 4 for a call whose body has the SHA-256 `payload`."""
    parts = urlsplit(url)
    moment = f"{now:%Y%m%dT%H%M%SZ}"
    scope = f"{now:%Y%m%d}/{region}/s3/aws4_request"
    named = {"host": net.host(url), "x-amz-content-sha256": payload, "x-amz-date": moment}
    names = ";".join(named)
    listed = "".join(f"{name}:{value}\n" for name, value in named.items())
    request = "\n".join((method, quote(parts.path, safe="/-_.~"), query, listed, names, payload))
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{keys.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return {
        "x-amz-content-sha256": payload,
        "x-amz-date": moment,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}",
    }


def _query(query: Mapping[str, str]) -> str:
    """A query in the canonical form of the signature, which is also the one that is sent."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))


def _refusal(host: str, answer: net.Answer) -> Exception:
    """The failure that an answer means. A store explains it by a word in XML."""
    try:
        said = answer.read().decode(errors="replace")
    except net.CallFailed:
        said = ""
    code = re.search(r"<Code>([A-Za-z0-9]{1,64})</Code>", said[:LISTED_ERROR])
    word = code[1] if code else ""
    if answer.status == 404 and word in ("", "NoSuchKey"):
        return ObjectLost(f"{host}: there is no such object")
    passing = answer.status >= 500 or answer.status in (408, 429) or word == "RequestTimeout"
    return BucketAway(
        f"{host}: the store answers {answer.status}{f' ({word})' if word else ''}", passing=passing
    )


def _objects(page: str, prefix: int) -> Iterator[tuple[str, Listed]]:
    """The objects of a page of a listing, each with its whole key. Nothing else of the XML is needed."""
    found: dict[str, str] = {}
    for match in _LISTED.finditer(page):
        if match["name"] is not None:
            found[match["name"]] = match["value"]
        elif {"Key", "Size", "LastModified"} <= found.keys():
            with contextlib.suppress(ValueError):  # not a listing of S3
                modified = datetime.fromisoformat(found["LastModified"][:19])
                key = html.unescape(found["Key"])
                yield key, Listed(key[prefix:], int(found["Size"]), modified)
            found = {}


_LISTED = re.compile(r"<(?P<name>Key|Size|LastModified)>(?P<value>[^<]{1,6000})</|</Contents>")
