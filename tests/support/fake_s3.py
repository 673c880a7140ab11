"""A fake S3-compatible store on a loopback port, over real sockets. It is strict: a wrong signature, checksum
or bucket is refused, as a real store does. What a test wants goes wrong: answers that break off, objects
that are changed, a store that hangs.
"""

import base64
import contextlib
import hashlib
import hmac
import http.server
import re
import time
from collections.abc import Callable
from urllib.parse import parse_qs, unquote, urlsplit

from settings import Settings
from tests.support.loopback import Loopback

ACCESS, SECRET = "ACCESSKEY0123456789A", "a-secret-key-of-forty-characters-0123456"


class FakeS3(Loopback):
    """The store, with one bucket. A context manager. `objects` are its bytes by key; `calls` what it was
    asked, like `PUT photos/ab/…`.
    """

    def __init__(self, bucket: str = "snaps", page: int = 1_000):
        self.bucket, self.page = bucket, page
        self.objects: dict[str, bytes] = {}
        self.modified: dict[str, float] = {}
        self.calls: list[str] = []
        self.before: Callable[[_Handler, str], bool] | None = None  # answers itself where it returns True
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, **others) -> Settings:
        return Settings(**self.variables(), language="en", **others)

    def variables(self) -> dict[str, str]:
        """The settings that lead to this store."""
        return {"s3_endpoint": self.url, "s3_access_key": ACCESS, "s3_secret_key": SECRET}

    def named(self, beginning: str) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(beginning))

    def fail(self, *, calls: int = 1, method: str = "", status: int = 503, code: str = "SlowDown") -> None:
        """Refuse the next calls of this method with this answer."""
        left = [calls]

        def act(handler: "_Handler", _key: str) -> bool:
            if left[0] > 0 and method in ("", handler.command):
                left[0] -= 1
                handler.refuse(status, code)
                return True
            return False

        self.before = act


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, store: FakeS3, *args):
        self.store = store
        super().__init__(*args)

    def log_message(self, *_args) -> None:
        """Nothing is logged."""

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def do_PUT(self) -> None:
        self._serve()

    do_GET = do_HEAD = do_DELETE = do_PUT

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.store.calls.append(f"{self.command} {key}")
        if self.store.before is not None and self.store.before(self, key):
            return
        if (code := self._wrong(parts, body)) is not None:
            self.refuse(403, code)
        elif bucket != self.store.bucket:
            self.refuse(404, "NoSuchBucket")
        elif not key:
            self._list({name: values[0] for name, values in parse_qs(parts.query).items()})
        elif self.command == "PUT":
            md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
            if self.headers.get("Content-MD5", md5) != md5:
                self.refuse(400, "BadDigest")
                return
            self.store.objects[key] = body
            self.store.modified[key] = time.time()
            self.respond(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        elif self.command == "DELETE":
            self.store.objects.pop(key, None)
            self.respond(204, b"")
        elif key not in self.store.objects:
            self.refuse(404, "NoSuchKey")
        else:
            self.respond(200, self.store.objects[key])

    def _wrong(self, parts, body: bytes) -> str | None:
        """Why the request is refused: computed from what has arrived, as AWS documents it."""
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, "
            r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
            self.headers.get("Authorization", ""),
        )
        if match is None or match[1] != ACCESS:
            return "InvalidAccessKeyId"
        _, day, region, names, signature = match.groups()
        moment = self.headers["x-amz-date"]
        if not moment.startswith(day):
            return "AuthorizationHeaderMalformed"
        canonical = [self.command, parts.path]
        canonical.append("&".join(sorted(parts.query.split("&"))))
        canonical += [f"{name}:{self.headers[name].strip()}" for name in names.split(";")]
        canonical += ["", names, self.headers["x-amz-content-sha256"]]
        scope = f"{day}/{region}/s3/aws4_request"
        digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
        text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, digest))
        key = f"AWS4{SECRET}".encode()
        for part in (day, region, "s3", "aws4_request", text):
            key = hmac.new(key, part.encode(), "sha256").digest()
        if key.hex() != signature:
            return "SignatureDoesNotMatch"
        if self.headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            return "XAmzContentSHA256Mismatch"
        return None

    def _list(self, query: dict[str, str]) -> None:
        after = query.get("continuation-token", "")
        keys = [key for key in self.store.named(query.get("prefix", "")) if key > after]
        page = keys[: min(int(query["max-keys"]), self.store.page)]
        listed = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{self._date(key)}</LastModified>"
            f"<ETag>&quot;x&quot;</ETag><Size>{len(self.store.objects[key])}</Size></Contents>"
            for key in page
        )
        more = len(keys) > len(page)
        following = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        self.respond(
            200,
            f'<?xml version="1.0"?><ListBucketResult><Name>{self.store.bucket}</Name>{listed}'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{following}</ListBucketResult>".encode(),
        )

    def _date(self, key: str) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.store.modified.get(key, 0)))

    def refuse(self, status: int, code: str) -> None:
        self.respond(status, f"<Error><Code>{code}</Code><Message>{SECRET}</Message></Error>".encode())

    def respond(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
