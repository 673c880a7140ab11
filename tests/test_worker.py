"""Slow and hostile clients of the real server: none of them keeps the others waiting."""

import contextlib
import json
import re
import socket
import threading
import time

import pytest
import requests

from settings import NAME, ROOT
from tests.support import crowd
from tests.support.crowd import HALF, REFUSED, connections
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import PATIENCE, HeldUpload, Service, eventually
from tests.support.wire import CLOSING, HEALTH, answer, changed, rest, statuses

SOON = 30.0  # seconds; without the rule that a test is about, it would take far longer
ALLOWED = "https://dashboard.example"
PAGE = HEALTH.replace(b"/api/health", b"/").replace(
    b"Host: x", b"Accept: text/html\r\nContent-Length: 0\r\nExpect: 100-continue"
)


@pytest.fixture(scope="module")
def descriptors():
    with crowd.descriptors():
        yield


@pytest.fixture(scope="module")
def service(tmp_path_factory, descriptors):
    """One that gives nobody up for the time of a test: a client that is slow stays there."""
    folder = tmp_path_factory.mktemp("patient")
    settings = {"api_key": "key", "dev_mode": "true", "llm_model": "scripted", "llm_api_key": "sk-scripted"}
    with (
        FakeLLM() as fake,
        Service(
            folder,
            *changed(folder, HEADER_SECONDS=600.0, CLOSING_SECONDS=600.0),
            llm_base_url=fake.url,
            cors_origins=ALLOWED,
            **settings,
        ) as service,
    ):
        yield service


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    folder = tmp_path_factory.mktemp("impatient")
    limits = changed(folder, HEADER_SECONDS=0.5, BODY_GRACE=0.5, LEAST_RATE=10_000)
    with Service(folder, *limits, api_key="key") as service:
        yield service


@contextlib.contextmanager
def connection(service, sent=b""):
    with connections(service, 1, sent) as (only,):
        yield only


def upload(service, picture):
    """The bytes of a request that uploads a picture."""
    url = f"{service.url}/api/photos/upload"
    request = requests.Request("POST", url, files={"file": ("one.png", picture)}, headers=service.bearer)
    made = request.prepare()
    lines = ["POST /api/photos/upload HTTP/1.1", "Host: x", *(f"{n}: {v}" for n, v in made.headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + made.body


# ------------------------------------------------------------------------------------------------------ crowd


def test_beside_864_slow_clients_everything_is_answered_soon(service):
    with crowd.crowd(service) as bodies:
        for _ in range(3):
            assert quickly(service, "GET", "/api/health").json() == {"status": "ok"}
            assert quickly(service, "GET", "/api/photos").status_code == 200
            files = {"file": ("crowd.png", draw("In the crowd"))}
            assert quickly(service, "POST", "/api/photos/upload", files=files).status_code == 200
        assert answer(bodies[-1])[0] == 401


def test_clients_leave_the_service_the_descriptors_that_it_needs(tmp_path):
    scarce = tmp_path / "scarce.py"
    limit = "resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))"
    scarce.write_text(f"{(ROOT / 'gunicorn.conf.py').read_text()}\n{limit}\n")
    with Service(tmp_path, "-c", str(scarce), api_key="key") as service, connections(service, 500):
        assert quickly(service, "GET", "/api/photos").status_code == 200
        files = {"file": ("scarce.png", draw("Scarce"))}
        assert quickly(service, "POST", "/api/photos/upload", files=files).status_code == 200
        assert "Too many open files" not in service.output


def slow_reader(service):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(PATIENCE)
    client.connect(("127.0.0.1", service.port))
    return client


@pytest.mark.parametrize("encryption", [pytest.param("true", marks=pytest.mark.slow), "false"])
def test_a_client_that_reads_slowly_gets_whole_answers_in_order(tmp_path, encryption):
    picture = draw(size=(1100, 1100), compress_level=0)
    with Service(tmp_path, api_key="key", encryption=encryption) as service:
        stored = service.upload(picture)["id"]
        lines = f"GET /api/photos/{stored}/image HTTP/1.1", "Host: x", "Authorization: Bearer key"
        with slow_reader(service) as client:
            client.sendall("\r\n".join([*lines, "", ""]).encode() * 3 + CLOSING)
            time.sleep(0.5)
            received = rest(client)
    assert received.count(picture) == 3
    assert received.endswith(b'{"status":"ok"}')


def quickly(service, method, path, **options):
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, service.url + path, headers=service.bearer, timeout=SOON, **options)


def test_clients_that_take_every_connection_keep_nobody_out(tmp_path):
    few = "--worker-connections", "40", "--threads", "4"
    limits = changed(tmp_path, HEADER_SECONDS=600.0)
    with (
        Service(tmp_path, *limits, *few, api_key="key") as service,
        connections(service, 60),
        connections(service, 60, HALF),
    ):
        assert quickly(service, "GET", "/api/photos").status_code == 200
        assert quickly(service, "GET", "/api/health").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("pages", [1, 40], ids=["one page", "pipelined pages"])
def test_beside_clients_that_do_not_read_their_answers_everything_is_answered_soon(service, pages):
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(slow_reader(service))
            client.sendall(PAGE * pages)  # each also takes a "100 Continue"
        for _ in range(5):
            assert quickly(service, "GET", "/api/health").json() == {"status": "ok"}
            assert quickly(service, "GET", "/api/photos").status_code == 200
            time.sleep(0.2)
        # Late, but whole.
        assert statuses(client, 2 * pages) == [100, 200] * pages


# ----------------------------------------------------------------------------------------------------- header


def test_a_header_over_64_kb_is_431(service):
    line = b"X-Long: " + b"x" * 990 + b"\r\n"
    with connection(service, b"GET /api/health HTTP/1.1\r\n" + line * 100) as client:
        status, headers, content = answer(client)
        assert (status, headers["Connection"]) == (431, "close")
        assert "64 kB" in json.loads(content)["detail"]
        assert rest(client) == b""


def test_a_header_of_63_kb_is_served(service):
    line = b"X-Long: " + b"x" * 990 + b"\r\n"
    with connection(service, b"GET /api/health HTTP/1.1\r\n" + line * 63 + b"\r\n") as client:
        assert answer(client)[0] == 200


def test_a_header_that_comes_byte_by_byte_is_served_within_its_time(service):
    with connection(service) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in HEALTH:
            client.sendall(bytes([byte]))
            time.sleep(0.001)
        assert answer(client)[0] == 200


def test_a_header_that_is_dripped_for_too_long_is_408(impatient):
    with connection(impatient, HALF) as client:
        client.settimeout(0.1)
        received = b""
        for _ in range(100):
            with contextlib.suppress(TimeoutError):
                received = client.recv(4_096, socket.MSG_PEEK)
                break
            client.sendall(b"x")
        assert received
        client.settimeout(PATIENCE)
        status, headers, content = answer(client)
        assert (status, headers["Connection"]) == (408, "close")
        assert set(json.loads(content)) == {"detail"}
        assert rest(client) == b""


def test_a_connection_without_a_byte_is_closed_without_a_byte(impatient):
    with connection(impatient) as client:
        assert rest(client) == b""


@pytest.mark.slow
def test_the_time_for_a_later_header_begins_with_its_first_byte(impatient):
    with connection(impatient, HEALTH) as client:
        assert answer(client)[0] == 200
        time.sleep(1.0)
        client.sendall(HEALTH)
        assert answer(client)[0] == 200
        client.sendall(HALF)
        assert answer(client)[0] == 408


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /api/health HTTP/1.1\nHost: x\n\n", 400),
        (b"GET /api/health HTTP/1.1\r\nHost: x\n", 400),
        (b"GET /api/health HTTP/1.1\nHost: x\r\n\r\n", 400),
        (b"\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500) + b"\r\n\r\n", 400),
        (b"GET /" + b"x" * 9_000, 414),
        (b"\r\nGET /api/health HTTP/1.1\r\n\r\n", 200),
        (b"GET /api/health HTTP/1.0\r\n\r\n", 200),
    ],
)
@pytest.mark.parametrize("step", [1, 100_000], ids=["in bytes", "at once"])
def test_gunicorn_judges_each_header_as_before(service, request_, status, step):
    if step == 1 and len(request_) > 1_000:
        step = 1_000
    with connection(service) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(request_), step):
            with contextlib.suppress(OSError):
                client.sendall(request_[start : start + step])
        assert answer(client)[0] == status


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "PATH_INFO", "script_name", "SCRIPT-NAME"])
@pytest.mark.parametrize("value", ["/api", "/elsewhere", "/"])
def test_a_client_cannot_move_the_service_to_another_path(service, name, value):
    with connection(service) as client:
        client.sendall(f"GET /api/health HTTP/1.1\r\nHost: x\r\n{name}: {value}\r\n\r\n".encode())
        assert answer(client)[0] == 200


# ----------------------------------------------------------------------------------- one connection, requests


def test_pipelined_requests_are_answered_in_order_also_when_the_last_comes_in_parts(service):
    refused = b"GET /api/photos HTTP/1.1\r\nHost: x\r\n\r\n"
    with connection(service, HEALTH + refused + HEALTH + refused[:20]) as client:
        assert statuses(client, 3) == [200, 401, 200]
        client.sendall(refused[20:])
        assert statuses(client, 1) == [401]


@pytest.mark.slow
def test_many_pipelined_requests_are_all_answered(service):
    with connection(service) as client:
        sending = threading.Thread(target=client.sendall, args=(HEALTH * 1_000,))
        sending.start()
        assert statuses(client, 1_000) == [200] * 1_000
        sending.join()


def test_a_connection_is_kept_for_request_after_request(service):
    with connection(service) as client:
        for _ in range(20):
            client.sendall(HEALTH[:30])
            time.sleep(0.005)
            client.sendall(HEALTH[30:])
            status, headers, _ = answer(client)
            assert (status, headers["Connection"]) == (200, "keep-alive")


def test_a_body_in_the_packet_of_its_header_arrives(service):
    picture = draw("In one packet")
    whole = upload(service, picture)
    with connection(service, whole) as client:
        status, _, content = answer(client)
        assert status == 200
        client.sendall(whole + HEALTH)
        assert statuses(client, 2) == [200, 200]
    stored = json.loads(content)["id"]
    assert service.call("GET", f"/api/photos/{stored}/image").content == picture


@pytest.mark.parametrize("cut", [30, 250, -100], ids=["in the header", "behind the header", "in the body"])
def test_a_client_that_goes_half_way_leaves_nothing_behind(service, cut):
    with connection(service, upload(service, draw("Half way"))[:cut]):
        pass
    assert quickly(service, "GET", "/api/health").status_code == 200
    eventually(lambda: not any(service.data.glob("spool/*")), "the upload is gone")


# ----------------------------------------------------------------------------------------------------- bodies


def test_a_refusal_comes_at_once_and_the_client_may_go_on_sending(service):
    with connection(service, REFUSED) as client:
        client.settimeout(SOON)
        status, headers, _ = answer(client)
        assert (status, headers["Connection"]) == (401, "close")
        for _ in range(100):
            client.sendall(bytes(100_000))
        client.shutdown(socket.SHUT_WR)
        assert rest(client) == b""


def test_a_refused_body_that_is_there_already_costs_no_connection(service):
    small = b"POST /api/skills HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2_000
    with connection(service, small) as client:
        status, headers, _ = answer(client)
        assert (status, headers["Connection"]) == (401, "keep-alive")
        client.sendall(HEALTH)
        assert answer(client)[0] == 200


def test_malformed_chunks_without_a_key_are_401(service):
    chunks = b"POST /api/skills HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    with connection(service, chunks) as client:
        status, headers, _ = answer(client)
        assert (status, headers["Connection"]) == (401, "close")


def test_the_body_of_a_preflight_is_not_waited_for(service):
    lines = (
        "OPTIONS /api/photos/upload HTTP/1.1",
        "Host: x",
        f"Origin: {ALLOWED}",
        "Access-Control-Request-Method: POST",
        "Content-Length: 1000000",
    )
    with connection(service, "\r\n".join([*lines, "", ""]).encode()) as client:
        client.settimeout(SOON)
        assert answer(client, "OPTIONS")[0] == 200


def test_a_body_below_the_least_rate_is_given_up(impatient):
    with contextlib.closing(HeldUpload(impatient, draw(size=(1100, 1100), compress_level=0))) as held:
        gone = time.monotonic() + PATIENCE
        with contextlib.suppress(OSError):
            while time.monotonic() < gone and not readable(held):
                held.send(10)
        response = held.answer()
        assert response.status in (400, 408)
        assert set(json.loads(response.read())) == {"detail"}
    eventually(lambda: not any(impatient.data.glob("spool/*")), "the upload is gone")
    assert "ERROR" not in impatient.output


def readable(held):
    held._connection.sock.settimeout(0.05)
    try:
        return bool(held._connection.sock.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    finally:
        held._connection.sock.settimeout(PATIENCE)


def test_a_body_above_the_least_rate_may_take_longer_than_the_grace(impatient):
    with contextlib.closing(HeldUpload(impatient, draw(size=(1100, 1100), compress_level=0))) as held:
        for _ in range(20):
            held.send(20_000)
            time.sleep(0.05)
        assert held.finish().status == 200


# -------------------------------------------------------------------------------------------------------- end


@pytest.mark.slow
def test_half_headers_do_not_hold_up_the_end(tmp_path):
    limits = changed(tmp_path, HEADER_SECONDS=600.0, CLOSING_SECONDS=600.0)
    with (
        Service(tmp_path, *limits, api_key="key") as service,
        connections(service, 20, HALF) as half,
        connections(service, 20) as silent,
        connections(service, 20, REFUSED) as refused,
    ):
        with connection(service, HEALTH) as kept:
            assert answer(kept)[0] == 200
            assert [answer(client)[0] for client in refused] == [401] * 20
            service.begin_to_stop()
            half[0].sendall(b" x\r\n\r\n")
            status, headers, _ = answer(half[0])
            assert (status, headers["Connection"]) == (200, "close")
            began = time.monotonic()
            assert service.wait() == 0
            assert time.monotonic() - began < 20  # graceful_timeout is 30
        for client in half[1:] + silent:
            with contextlib.suppress(ConnectionResetError):
                assert answer_or_end(client) in (b"", b"HTTP/1.1 408 Request Timeout")
        assert not re.search(r"\[ERROR\]|\[CRITICAL\]", service.output)


def answer_or_end(client):
    return rest(client).partition(b"\r\n")[0]


# -------------------------------------------------------------------------------------------------------- TLS


def test_tls_by_gunicorn_is_refused_with_one_line(tmp_path):
    certificate = tmp_path / "certificate.pem"
    certificate.write_text("")
    ended = Service(tmp_path).run("gunicorn", "--certfile", str(certificate))
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"{NAME} cannot start: gunicorn's TLS ")
