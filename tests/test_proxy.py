"""A real nginx in front of the real service, over TLS, with the configuration of docs/operations.md, which
passes bodies on as they arrive. `PLAIN` is the least that a person would write: nginx keeps bodies in files.

nginx runs as an ordinary user in a temporary folder. Without nginx, these tests are skipped.
"""

import contextlib
import datetime
import hashlib
import http.client
import ipaddress
import itertools
import json
import os
import pwd
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import psutil
import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from settings import ROOT
from tests.support.browser import Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import PATIENCE, Clients, HeldUpload, Service, eventually
from uploads import MAX_BATCH, MAX_FILE

PROGRAM = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")

MEGABYTE = 1024 * 1024
RESTARTS = 5
PLAIN = """
server {
    listen 443 ssl;
    ssl_certificate fullchain.pem;
    ssl_certificate_key privkey.pem;
    location / {
        proxy_pass http://127.0.0.1:8000;
        client_max_body_size 0;
        proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
}
"""
# What Debian's nginx.conf has around a site, as far as it matters here.
MAIN = """
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    default_type application/octet-stream;
    ssl_protocols TLSv1.2 TLSv1.3;
    access_log {folder}/access.log;
    gzip on;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site;
}}
"""


def documented() -> str:
    """The site of docs/operations.md."""
    return re.findall(r"```nginx\n(.*?)```", (ROOT / "docs/operations.md").read_text(), re.DOTALL)[0]


class Nginx:
    """nginx with `site` in front of `service`. A context manager; `url` is its address.

    The socket is opened here and inherited, as at an update of nginx, so that no other process can take the
    port in between.
    """

    def __init__(self, service: Service, site: str):
        self.service = service
        self.streams = "proxy_request_buffering off" in site
        self.folder = Path(tempfile.mkdtemp(prefix="nginx-"))
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=511)
        self._socket.setblocking(False)  # nginx expects that: else a process waits in accept for ever
        self.port = self._socket.getsockname()[1]
        self.url = f"{'https' if ' ssl' in site else 'http'}://127.0.0.1:{self.port}"
        self.write(site)
        self.certificate = self.folder / "fullchain.pem"
        self.certificate.write_bytes(_certificate(self.folder / "privkey.pem"))
        (self.folder / "nginx.conf").write_text(MAIN.format(folder=self.folder))

    def __enter__(self) -> "Nginx":
        user = "nobody" if os.geteuid() == 0 else None
        if user:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, pwd.getpwnam(user).pw_uid, -1)
        number = self._socket.fileno()
        with (self.folder / "stderr").open("wb") as stderr:
            self._process = subprocess.Popen(
                [PROGRAM, "-p", self.folder, "-e", self.folder / "start.log",
                 "-c", self.folder / "nginx.conf"],
                env={"NGINX": f"{number};"}, pass_fds=[number], user=user, stdin=subprocess.DEVNULL,
                stdout=stderr, stderr=stderr,
            )  # fmt: skip
        try:
            eventually(lambda: self._runs() and self.get("/api/health").ok, "nginx answers", every=0.05)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._socket.close()
        shutil.rmtree(self.folder)

    def write(self, site: str) -> None:
        """Make `site` the configuration, with this machine's port, certificate and service in it."""
        site = re.sub(r"listen \[::\].*\n", "", site)
        site = site.replace("listen 443", f"listen 127.0.0.1:{self.port}")
        site = site.replace("127.0.0.1:8000", f"127.0.0.1:{self.service.port}")
        site = re.sub(r"\S*/(fullchain|privkey)\.pem", rf"{self.folder}/\1.pem", site)
        site = re.sub(r" (fullchain|privkey)\.pem", rf" {self.folder}/\1.pem", site)
        (self.folder / "site").write_text(site.replace("/var/log/nginx", str(self.folder)))

    def reload(self) -> None:
        """Let it read its configuration again, and wait until the new processes serve."""
        before = set(self.workers)
        self._process.send_signal(signal.SIGHUP)
        eventually(lambda: set(self.workers) - before, "new processes of nginx")

    @property
    def workers(self) -> list[psutil.Process]:
        return psutil.Process(self._process.pid).children()

    @property
    def written(self) -> int:
        """The bytes of all files that its processes hold open, deleted ones included, but for its logs."""
        size = 0
        for process in self.workers:
            for link in list(Path(f"/proc/{process.pid}/fd").iterdir()):
                with contextlib.suppress(OSError):
                    name = os.readlink(link)
                    if name.startswith(str(self.folder)) and ".log" not in name:
                        size += link.stat().st_size
        return size

    def session(self, address: str = "127.0.0.1") -> requests.Session:
        """A client on the address."""
        session = requests.Session()
        session.trust_env = False  # ignore this machine's proxy settings
        session.verify = str(self.certificate)
        session.headers.update(self.service.bearer)
        adapter = requests.adapters.HTTPAdapter()
        adapter.init_poolmanager(10, 10, source_address=(address, 0))
        session.mount("https://", adapter)
        return session

    def call(self, method: str, path: str, **options) -> requests.Response:
        with self.session() as session:
            return session.request(method, self.url + path, timeout=PATIENCE, **options)

    def get(self, path: str, **options) -> requests.Response:
        return self.call("GET", path, **options)

    def upload(self, picture: bytes, **options) -> requests.Response:
        return self.call("POST", "/api/photos/upload", files={"file": ("one.png", picture)}, **options)

    def hold(self, picture: bytes, *, chunked: bool = False, key: str | None = None) -> HeldUpload:
        context = ssl.create_default_context(cafile=str(self.certificate))
        return HeldUpload(
            self.service, picture, chunked=chunked, headers={} if key is None else {"Authorization": key},
            connection=http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=context),
        )  # fmt: skip

    def _runs(self) -> bool:
        stderr = (self.folder / "stderr").read_text()
        assert self._process.poll() is None, stderr
        return True


def _certificate(key_file: Path) -> bytes:
    """A certificate for 127.0.0.1, signed by itself, whose key is written to the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "snaplore.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    tomorrow = now + datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, tomorrow
    )
    signed = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    key_file.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    return signed.public_bytes(encoding)


def large(size: int, number: int = 0) -> bytes:
    """A picture of exactly so many bytes: what follows its end is stored with it."""
    picture = draw(f"Large {number}")
    rest = number.to_bytes(8, "big") + os.urandom(1016)
    return (picture + rest * (size // len(rest) + 1))[:size]


@contextlib.contextmanager
def behind_proxy(folder: Path):
    """A service that trusts one proxy, and whose pictures are judged by a fake model."""
    settings = {"api_key": "key", "trusted_proxies": "1", "dev_mode": "true", "llm_model": "scripted"}
    with (
        FakeLLM() as fake,
        Service(folder, **settings, llm_base_url=fake.url, llm_api_key="sk-scripted") as service,
    ):
        yield service


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with behind_proxy(tmp_path_factory.mktemp("behind")) as service:
        yield service


@pytest.fixture(scope="module")
def documented_nginx(service):
    with Nginx(service, documented()) as nginx:
        yield nginx


@pytest.fixture(scope="module", params=["documented", "plain"])
def nginx(request, service):
    if request.param == "documented":
        yield request.getfixturevalue("documented_nginx")
    else:
        with Nginx(service, PLAIN) as nginx:
            yield nginx


# ---------------------------------------------------------------------------------------------------- uploads


@pytest.mark.slow
def test_uploads_arrive_whole_up_to_the_largest(nginx, service):
    for size in (30_000, 5 * MEGABYTE, MAX_FILE):
        picture = large(size)
        answer = nginx.upload(picture)
        assert answer.status_code == 200, answer.text
        stored = service.call("GET", f"/api/photos/{answer.json()['id']}/image").content
        assert stored == picture


def test_an_upload_of_unknown_length_arrives(nginx, service):
    picture = large(3 * MEGABYTE)
    with contextlib.closing(nginx.hold(picture, chunked=True)) as upload:
        upload.send(MEGABYTE)
        answer = upload.finish()
        assert answer.status == 200
        number = json.loads(answer.read())["id"]
    assert service.call("GET", f"/api/photos/{number}/image").content == picture


@pytest.mark.slow
def test_a_full_batch_arrives(nginx):
    pictures = [large(MEGABYTE + number, number) for number in range(MAX_BATCH)]
    files = [("files", (f"{number}.png", picture)) for number, picture in enumerate(pictures)]
    answer = nginx.call("POST", "/api/photos/upload-batch", files=files, data={"device_id": "phone"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["uploaded"] == MAX_BATCH
    for picture, result in list(zip(pictures, answer.json()["results"], strict=True))[::7]:
        assert nginx.get(f"/api/photos/{result['id']}/image").content == picture


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
@pytest.mark.parametrize(
    ("key", "size", "status", "sentence"),
    [("Bearer wrong", 8 * MEGABYTE, 401, "API key"), (None, MAX_FILE + 3 * MEGABYTE, 413, "larger than")],
    ids=["401", "413"],
)
def test_a_refused_body_gets_its_sentence(nginx, chunked, key, size, status, sentence):
    with contextlib.closing(nginx.hold(large(size), chunked=chunked, key=key)) as upload:
        # The client may notice the end of the connection while it sends.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            upload.send_rest()
        answer = upload.answer()
        body = answer.read()
        assert answer.status == status, body
        assert sentence in json.loads(body)["detail"]


def test_a_refusal_arrives_before_the_body_has_been_sent(documented_nginx):
    with contextlib.closing(documented_nginx.hold(large(5 * MEGABYTE), key="Bearer wrong")) as upload:
        upload.send(MEGABYTE)
        assert upload.answer().status == 401


def test_a_client_that_leaves_midway_leaves_nothing_behind(nginx, service):
    picture = large(8 * MEGABYTE)
    for chunked in (False, True):
        with contextlib.closing(nginx.hold(picture, chunked=chunked)) as upload:
            upload.send(3 * MEGABYTE)
            if nginx.streams:
                eventually(lambda: any(service.data.glob("spool/*")), "the upload has begun to arrive")
    before = service.get("/api/photos")["total"]
    eventually(lambda: not any(service.data.glob("spool/*")), "its file is removed")
    assert service.get("/api/photos")["total"] == before
    assert " ERROR " not in service.output


# -------------------------------------------------------------------------------------------------- downloads


def test_pictures_are_served_in_ranges_and_only_when_changed(nginx):
    picture = large(3 * MEGABYTE)
    path = f"/api/photos/{nginx.upload(picture).json()['id']}/image"
    whole = nginx.get(path)
    assert (whole.status_code, whole.content) == (200, picture)
    assert int(whole.headers["Content-Length"]) == len(picture)
    part = nginx.get(path, headers={"Range": "bytes=1000000-1999999"})
    assert (part.status_code, part.content) == (206, picture[1_000_000:2_000_000])
    assert part.headers["Content-Range"] == f"bytes 1000000-1999999/{len(picture)}"
    assert nginx.get(path, headers={"Range": "bytes=9000000-"}).status_code == 416
    unchanged = nginx.get(path, headers={"If-None-Match": whole.headers["ETag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    stale = {"Range": "bytes=0-9", "If-Range": '"another"'}
    assert nginx.get(path, headers=stale).content == picture


def test_the_dashboard_is_served_and_only_when_changed(nginx, service):
    page = nginx.get("/", headers={"Accept": "text/html"})
    assert page.text == service.knock("GET", "/", headers={"Accept": "text/html"}).text
    known = {"Accept": "text/html", "If-None-Match": page.headers["ETag"]}
    assert nginx.get("/", headers=known).status_code == 304


@pytest.mark.slow
def test_the_export_arrives_whole(nginx):
    picture = large(2 * MEGABYTE)
    number = nginx.upload(picture).json()["id"]
    archive = zipfile.ZipFile(BytesIO(nginx.get("/api/data/export").content))
    assert archive.testzip() is None
    (photo,) = [photo for photo in json.loads(archive.read("photos.json")) if photo["id"] == number]
    assert archive.read(photo["file"]) == picture


@pytest.mark.slow
def test_clients_that_leave_in_the_middle_of_an_answer_cost_nothing(nginx, service):
    picture = large(20 * MEGABYTE)
    path = f"/api/photos/{nginx.upload(picture).json()['id']}/image"
    for _ in range(2 * 16):  # twice the threads of the service
        with nginx.session() as client, client.get(nginx.url + path, stream=True, timeout=PATIENCE) as answer:
            assert answer.raw.read(1_000)
    assert nginx.get(path).content == picture
    assert " ERROR " not in service.output


# ---------------------------------------------------------------------------------------- what nginx writes


@pytest.mark.slow
def test_nginx_keeps_no_picture_in_a_file_as_documented_and_does_by_itself(nginx, service):
    """What a file contains stays on the disk when the file is deleted, readable."""
    picture = large(20 * MEGABYTE)
    with contextlib.closing(nginx.hold(picture)) as upload:
        upload.send(15 * MEGABYTE)
        if nginx.streams:
            # Once the service has it all, none is left on its way through nginx.
            eventually(lambda: stored_in(service.data / "spool") > 14 * MEGABYTE, "the upload arrives")
            assert nginx.written == 0
        else:
            eventually(lambda: nginx.written > 14 * MEGABYTE, "nginx keeps the upload")
        number = json.loads(upload.finish().read())["id"]
    with (
        nginx.session() as client,
        client.get(f"{nginx.url}/api/photos/{number}/image", stream=True, timeout=PATIENCE) as answer,
    ):
        beginning = answer.raw.read(1_000)
        if nginx.streams:
            assert nginx.written == 0
        else:
            eventually(lambda: nginx.written > 10 * MEGABYTE, "nginx keeps the picture")
        assert beginning + answer.raw.read() == picture


@pytest.mark.slow
def test_the_words_of_a_search_are_in_no_log_of_nginx(tmp_path):
    words = "embarrassing-words"
    for site, logged in ((documented(), False), (PLAIN, True)):
        with Service(tmp_path, api_key="key") as service, Nginx(service, site) as nginx:
            assert nginx.get("/api/search", params={"q": words}).ok
            service.kill()
            assert nginx.get("/api/search", params={"q": words}).status_code in (502, 503)
            logs = "".join(path.read_text() for path in nginx.folder.glob("*.log"))
            assert (words in logs) is logged


def stored_in(folder: Path) -> int:
    """The bytes of the folder's files."""
    return sum(path.stat().st_size for path in list(folder.glob("*")))


# -------------------------------------------------------------------------------------------------- addresses


def asked(nginx: Nginx, address: str, times: int) -> list[int]:
    """The statuses of so many messages from the address, each of which claims to come from another one."""
    statuses = []
    with nginx.session(address) as client:
        for number in range(times):
            claimed = f"192.0.2.{number}"
            claims = {"X-Forwarded-For": claimed, "X-Real-IP": claimed, "Forwarded": f"for={claimed}"}
            url = f"{nginx.url}/api/chat/send"
            answer = client.post(url, json={"message": "Hello"}, headers=claims, timeout=PATIENCE)
            statuses.append(answer.status_code)
    return statuses


def test_the_rate_limit_counts_the_clients_address_and_not_what_it_claims(nginx):
    last = 20 + nginx.streams  # an address for each nginx, since they share the service
    assert asked(nginx, f"127.0.0.{last}", 12) == [200] * 10 + [429] * 2
    assert asked(nginx, f"127.0.1.{last}", 1) == [200]


def test_an_nginx_that_is_not_told_to_replace_the_address_passes_on_what_a_client_claims(service):
    with Nginx(service, re.sub(r".*X-Forwarded-For.*\n", "", PLAIN)) as nginx:
        assert asked(nginx, "127.0.0.50", 12) == [200] * 12


# ------------------------------------------------------------------------------------------------ connections


def test_many_requests_share_few_connections_to_the_service(documented_nginx, service):
    for _ in range(40):
        assert documented_nginx.get("/api/health").ok
    (worker,) = service.workers
    behind = [c for c in worker.net_connections() if c.laddr and c.laddr.port == service.port and c.raddr]
    assert 1 <= len([c for c in behind if c.status == psutil.CONN_ESTABLISHED]) < 10


def test_one_address_cannot_take_all_connections(service):
    few = documented().replace("limit_conn snaplore 64;", "limit_conn snaplore 4;")
    assert few != documented()
    with Nginx(service, few) as nginx, contextlib.ExitStack() as stack:
        for _ in range(4):
            upload = stack.enter_context(contextlib.closing(nginx.hold(large(MEGABYTE))))
            upload.send(100_000)
        eventually(lambda: nginx.get("/api/health").status_code == 503, "the connections are counted")
        refused = nginx.get("/api/health")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        assert "come again" in refused.json()["detail"]
        with nginx.session("127.0.0.60") as other:
            assert other.get(f"{nginx.url}/api/health", timeout=PATIENCE).ok


LENGTHS = {
    "both": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two": b"Content-Length: 4\r\nContent-Length: 60\r\n\r\n",
    "listed": b"Content-Length: 4, 60\r\n\r\n",
    "signed": b"Content-Length: +4\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n",
    "two codings": b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n",
    "blank before the colon": b"Content-Length: 4\r\nTransfer-Encoding : chunked\r\n\r\n",
    "folded": b"Content-Length: 4\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
    "underscore": b"Content-Length: 4\r\nTransfer_Encoding: chunked\r\n\r\n",
    "bare LF": b"Content-Length: 4\nTransfer-Encoding: chunked\n\n",
    "chunk with a sign": b"Transfer-Encoding: chunked\r\n\r\n+4\r\n",
    "chunk of 2^64 + 4": b"Transfer-Encoding: chunked\r\n\r\n10000000000000004\r\n",
}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_a_body_whose_length_is_ambiguous_brings_nobody_another_ones_answer(documented_nginx, lengths):
    """Were nginx and the service of different opinions about its end, its rest would be a request of the next
    client on the shared connection.
    """
    nginx = documented_nginx
    context = ssl.create_default_context(cafile=str(nginx.certificate))
    smuggled = b"0\r\n\r\nGET /none HTTP/1.1\r\nHost: x\r\nX: "
    for path in (b"/api/health", b"/api/photos/upload"):
        for bearer in (b"", b"Authorization: Bearer key\r\n"):
            with (
                socket.create_connection(("127.0.0.1", nginx.port), timeout=PATIENCE) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
            ):
                client.sendall(
                    b"POST " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + bearer + lengths + smuggled
                )
            for _ in range(4):
                assert nginx.get("/api/health").json() == {"status": "ok"}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_http_2_passes_uploads_and_pictures(service, tmp_path):
    picture = large(20 * MEGABYTE)
    (tmp_path / "one.png").write_bytes(picture)
    with Nginx(service, documented().replace("443 ssl;", "443 ssl http2;")) as nginx:
        curl = ["curl", "--silent", "--show-error", "--http2", "--noproxy", "*",
                "--cacert", nginx.certificate, "-H", "Authorization: Bearer key",
                "-w", "%{stderr}%{http_version}"]  # fmt: skip
        form = ["-F", f"file=@{tmp_path / 'one.png'}", f"{nginx.url}/api/photos/upload"]
        sent = subprocess.run([*curl, *form], capture_output=True, timeout=PATIENCE, check=True)
        assert sent.stderr == b"2"
        path = f"{nginx.url}/api/photos/{json.loads(sent.stdout)['id']}/image"
        received = subprocess.run([*curl, path], capture_output=True, timeout=PATIENCE, check=True)
        assert received.stdout == picture


# --------------------------------------------------------------------------------------------------- restarts


class Uploader:
    """A phone that sends pictures through nginx without a pause, each over a new connection, and notes each
    answer. (nginx closes a connection on which it has answered before the end of a body.)
    """

    def __init__(self, nginx: Nginx, number: int):
        self.stored: dict[int, str] = {}  # photo -> SHA-256 of what was sent
        self.statuses: Counter[int] = Counter()  # 0 for an answer that was cut off
        self._numbers = itertools.count(number * 100_000)
        self._nginx = nginx

    def __call__(self) -> None:
        picture = large(300_000, next(self._numbers))
        try:
            answer = self._nginx.upload(picture)
        except requests.exceptions.ChunkedEncodingError:
            self.statuses[0] += 1
            return
        self.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            self.stored[answer.json()["id"]] = hashlib.sha256(picture).hexdigest()
        else:
            assert "come again" in answer.json()["detail"], answer.text


def check_answered(service: Service, uploaders: list[Uploader]) -> None:
    """Each upload that was answered is stored unchanged."""
    for uploader in uploaders:
        assert uploader.stored
        for number, digest in uploader.stored.items():
            picture = service.call("GET", f"/api/photos/{number}/image").content
            assert hashlib.sha256(picture).hexdigest() == digest


@pytest.mark.slow
@pytest.mark.parametrize(("end", "broken"), [("stop", set()), ("kill", {0})])
def test_while_the_service_restarts_clients_are_asked_to_come_again_and_no_answered_upload_is_lost(
    tmp_path, end, broken
):
    """Only a killed service may break an answer off."""
    with behind_proxy(tmp_path) as service, Nginx(service, documented()) as nginx:
        uploaders = [Uploader(nginx, number) for number in range(4)]
        with Clients(service, *uploaders) as clients:
            for _ in range(RESTARTS):
                go_on(clients)
                getattr(service, end)()
                service.start(bind=f"127.0.0.1:{service.port}")
            go_on(clients)
        assert clients.failures == []
        statuses = sum((uploader.statuses for uploader in uploaders), Counter())
        assert {200, 503} <= set(statuses) <= {200, 503} | broken, statuses
        check_answered(service, uploaders)


@pytest.mark.slow
def test_while_nginx_reads_its_configuration_again_no_request_fails(service):
    with Nginx(service, documented()) as nginx:
        uploaders = [Uploader(nginx, 50 + number) for number in range(3)]
        with (
            contextlib.closing(nginx.hold(large(5 * MEGABYTE))) as upload,
            Clients(service, *uploaders) as clients,
        ):
            upload.send(2 * MEGABYTE)
            for _ in range(RESTARTS):
                go_on(clients)
                nginx.reload()
            go_on(clients)
            assert upload.finish().status == 200
        assert clients.failures == []
        assert set(sum((uploader.statuses for uploader in uploaders), Counter())) == {200}
        check_answered(service, uploaders)


def go_on(clients: Clients) -> None:
    """Wait for some more answers."""
    before = clients.done
    eventually(lambda: clients.done >= before + 8, "uploads go on")


# ----------------------------------------------------------------------------------------------- below a path

BELOW = "/at/home"
SHARED = """async (content) => {
    const form = new FormData();
    form.append("files", new File([Uint8Array.from(content)], "b.png", {type: "image/png"}));
    const manifest = await fetch("manifest.webmanifest");
    const described = await manifest.json();
    const [target, start, scope] = [described.share_target.action, described.start_url, described.scope].map(
        (address) => new URL(address, manifest.url).href);
    return [(await fetch(target, {method: "POST", body: form})).url, start, scope];
}"""


def below_a_path() -> str:
    """The documented site with the service below a path, over plain http, which browsers trust on loopback.
    It has a page that shows the service in a frame, as Home Assistant does.
    """
    site = re.sub(r".*ssl_certificate.*\n", "", documented()).replace(" ssl;", ";")
    for written, instead in (
        ("location / {", f"location {BELOW}/ {{"),
        ("proxy_pass http://snaplore;", "proxy_pass http://snaplore/;"),
        ('X-Forwarded-Prefix ""', f"X-Forwarded-Prefix {BELOW}"),
    ):
        assert site.count(written) == 1
        site = site.replace(written, instead)
    framing = f'<title>Home</title><iframe src="{BELOW}/#/settings/devices" width=900 height=700></iframe>'
    pages = f"""
    location = /api/health {{ return 200; }}
    location = /favicon.ico {{ return 204; }}
    location = /framing {{ default_type text/html; return 200 '{framing}'; }}
    """
    return site.replace("\n    location @away", f"{pages}\n    location @away")


@pytest.fixture(scope="module")
def below(chromium, tmp_path_factory):
    dashboard = Dashboard(chromium, tmp_path_factory.mktemp("below"), None, trusted_proxies="1")
    with dashboard, Nginx(dashboard.service, below_a_path()) as nginx:
        dashboard.direct = nginx.url + BELOW
        # A name of this machine that the page does not take for it.
        dashboard.address = dashboard.direct.replace("127.0.0.1", "home.localhost")
        yield dashboard


@pytest.mark.slow
def test_below_a_path_the_page_stores_shows_shares_and_opens_offline(below):
    """`Dashboard` reports each request to another address than the one with the path."""
    page = below.open("#/library", service_workers="allow")
    settled(page, "Boolean(navigator.serviceWorker.controller)")
    worker = page.evaluate("navigator.serviceWorker.controller.scriptURL")
    assert worker == f"{below.address}/service-worker.js"
    paths = "caches.open('frame').then((cache) => cache.keys()).then((all) => all.map(({url}) => url))"
    settled(page, f"({paths}).then((all) => all.length >= 3)")
    assert all(url.startswith(f"{below.address}/") for url in page.evaluate(paths))

    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files([{"name": "a.png", "mimeType": "image/png", "buffer": draw("One")}])
    page.wait_for_selector("img.picture[data-state=ready]")
    root = f"{below.address}/"
    assert page.evaluate(SHARED, list(draw("Two"))) == [f"{root}?shared=1", root, root]
    eventually(lambda: below.service.get("/api/photos")["total"] == 2, "the shared picture is stored")
    page.goto(f"{below.address}/#/settings/general")
    page.get_by_label("Language").select_option("zh")
    page.wait_for_selector("html[lang^=zh]")
    assert {cookie["path"] for cookie in page.context.cookies()} == {f"{BELOW}/"}

    below.tolerate("ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to load resource")
    page.context.set_offline(True)
    page.reload()
    page.wait_for_selector("nav")
    below.begin_anew()


def test_below_a_path_the_addresses_for_other_programs_have_it_whatever_a_client_claims(below):
    headers = {**below.service.bearer, "X-Forwarded-Prefix": "/elsewhere"}
    for path, body in (("feeds", {"kind": "notes"}), ("pairing", {"name": "phone", "scope": "upload"})):
        made = requests.post(f"{below.direct}/api/{path}", json=body, headers=headers, timeout=PATIENCE)
        assert made.json()["url"].startswith(f"{below.direct}/"), made.text
        if path == "feeds":
            assert "<feed" in requests.get(made.json()["url"], timeout=PATIENCE).text


@pytest.mark.slow
def test_in_a_frame_a_phone_is_given_an_address_that_it_can_open(below):
    found = {"addresses": ["http://192.0.2.7:8000"], "loopback_only": False}

    def shown(path, frame=None):
        page = below.open(path)
        page.route("**/api/addresses", lambda route: route.fulfill(json=found))
        page.reload()
        place = page.frame_locator(frame) if frame else page
        place.get_by_role("button", name="Show a code").first.click()
        return place.locator(".pairing p").first.inner_text()

    assert below.address in shown("#/settings/devices")
    below.address = below.address.removesuffix(BELOW)
    assert found["addresses"][0] in shown("framing", "iframe")
    below.address += BELOW
    below.begin_anew()


# ----------------------------------------------------------------------------------------------------- Caddy


@pytest.fixture
def own_service(tmp_path):
    with behind_proxy(tmp_path) as service:
        yield service


@pytest.fixture
def caddy(own_service, tmp_path):
    """The address of Caddy as documented, in front of a service, and a session with it."""
    service = own_service
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed")
    site = re.findall(r"```caddy\n(.*?)```", (ROOT / "docs/operations.md").read_text(), re.DOTALL)[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "certificate.pem").write_bytes(_certificate(tmp_path / "key.pem"))
    own = f"https://127.0.0.1:{port} {{\n\ttls {tmp_path}/certificate.pem {tmp_path}/key.pem"
    site = site.replace("snaplore.example.org {", own).replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
    (tmp_path / "Caddyfile").write_text(f"{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{site}")
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    command = [program, "run", "--adapter", "caddyfile", "--config", str(tmp_path / "Caddyfile")]
    with (tmp_path / "log").open("wb") as log, requests.Session() as session:
        session.trust_env = False
        session.verify = str(tmp_path / "certificate.pem")
        session.headers.update(service.bearer)
        process = subprocess.Popen(command, env=home, stdout=log, stderr=log)
        url = f"https://127.0.0.1:{port}"

        def answers():
            with contextlib.suppress(requests.ConnectionError):
                return session.get(f"{url}/api/health", timeout=PATIENCE).ok

        try:
            eventually(answers, "caddy answers", every=0.05)
            yield url, session
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.slow
def test_caddy_as_documented_passes_whole_pictures_and_replaces_what_a_client_claims(caddy):
    url, session = caddy
    picture = draw(size=(2600, 2000), compress_level=0)
    stored = session.post(f"{url}/api/photos/upload", files={"file": picture}, timeout=PATIENCE).json()["id"]
    assert session.get(f"{url}/api/photos/{stored}/image", timeout=PATIENCE).content == picture
    paired = session.post(f"{url}/api/pairing", json={}, timeout=PATIENCE).json()
    assert paired["url"].startswith(f"{url}/#/pair/")
    statuses = [
        session.post(
            f"{url}/api/chat/send", json={"message": "Hello"}, headers={"X-Forwarded-For": f"10.0.0.{number}"}
        ).status_code
        for number in range(12)
    ]
    assert statuses == [200] * 10 + [429] * 2


@pytest.mark.slow
def test_while_the_service_restarts_caddy_lets_requests_wait(caddy, own_service):
    url, session = caddy
    own_service.stop()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(session.get, f"{url}/api/photos", timeout=PATIENCE)
        own_service.start(bind=f"127.0.0.1:{own_service.port}")
        assert waiting.result().status_code == 200
