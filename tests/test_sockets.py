"""TLS of the real server: slow, hostile and unusual clients cost no thread, and every request is answered
whole.
"""

import contextlib
import http.client
import json
import os
import select
import socket
import ssl
import threading
import time

import pytest
import requests

from tests.support import crowd
from tests.support.crowd import HALF, REFUSED, connections
from tests.support.drawing import draw
from tests.support.service import PATIENCE, HeldUpload, eventually
from tests.support.trust import SecureService, hello
from tests.support.wire import CLOSING, HEALTH, answer, changed, rest, statuses

SOON = 30.0  # seconds; without the rule that a test is about, it would take far longer


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """One that gives nobody up for the time of a test: a client that is slow stays there."""
    folder = tmp_path_factory.mktemp("patient")
    limits = changed(folder, HEADER_SECONDS=600.0, CLOSING_SECONDS=600.0)
    with (
        crowd.descriptors(),
        SecureService(folder, *limits, "--worker-connections", "3000", api_key="key") as service,
    ):
        yield service


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    folder = tmp_path_factory.mktemp("impatient")
    limits = changed(folder, HEADER_SECONDS=0.5, BODY_GRACE=0.5, LEAST_RATE=10_000)
    with SecureService(folder, *limits, api_key="key") as service:
        yield service


def quickly(service, method, path, **options):
    with requests.Session() as session:
        session.trust_env = False
        return session.request(
            method,
            service.url + path,
            headers=service.bearer,
            timeout=SOON,
            verify=str(service.authority),
            **options,
        )


def answers_soon(service):
    assert quickly(service, "GET", "/api/health").json() == {"status": "ok"}
    assert quickly(service, "GET", "/api/photos").status_code == 200
    assert quickly(service, "POST", "/api/photos/upload", files={"file": draw()}).status_code == 200


# ------------------------------------------------------------------------------------------------ handshakes


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_served_with_http_1_1(service, version):
    context = service.context(maximum_version=version, minimum_version=version)
    context.set_alpn_protocols(["h2", "http/1.1"])
    plain = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    with context.wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(HEALTH)
        assert answer(client)[0] == 200
        assert client.selected_alpn_protocol() == "http/1.1"


def test_an_older_version_of_tls_is_refused(service):
    old = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context = service.context(minimum_version=old, maximum_version=old)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    plain = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    with pytest.raises(ssl.SSLError), context.wrap_socket(plain, server_hostname="localhost"):
        pass


def test_beside_1_000_half_open_handshakes_everything_is_answered_soon(service):
    first = hello()
    with (
        connections(service, 400, first[:100]),  # a part of the first message
        connections(service, 300, first),  # nothing after the server's answer
        connections(service, 200, b"\x16"),
        connections(service, 100, b"\x16\x03\x01\xff\xff" + bytes(1_000)),
        crowd.connections(service, 50),
    ):
        for _ in range(3):
            answers_soon(service)


@pytest.mark.slow
def test_beside_slow_clients_over_tls_everything_is_answered_soon(service):
    with contextlib.ExitStack() as stack:
        for sent in (HALF, REFUSED, b""):
            for _ in range(40):
                stack.enter_context(service.connection(sent))
        for _ in range(3):
            answers_soon(service)


def test_a_handshake_and_a_request_that_come_byte_by_byte_are_served(service):
    client, (incoming, outgoing) = in_memory(service)
    with connections(service) as (connection,):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def pass_on():
            for byte in outgoing.read():
                connection.sendall(bytes([byte]))

        shake_hands(client, incoming, connection, pass_on)
        client.write(CLOSING)
        pass_on()
        incoming.write(rest(connection))
        incoming.write_eof()
        assert client.read(65_536).startswith(b"HTTP/1.1 200 OK")


def in_memory(service):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return service.context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1"), (incoming, outgoing)


def shake_hands(client, incoming, connection, pass_on):
    while True:
        try:
            client.do_handshake()
            return
        except ssl.SSLWantReadError:
            pass_on()
            incoming.write(connection.recv(65_536))


@pytest.mark.slow
def test_a_handshake_that_takes_too_long_is_given_up(impatient):
    with connections(impatient, 2, hello()[:50]) as (silent, dripping):
        assert rest(silent) == b""
        with contextlib.suppress(ConnectionError):
            for _ in range(1_000):
                dripping.sendall(b"\0")
                time.sleep(0.02)
            pytest.fail("the connection is still open")


@pytest.mark.parametrize(
    "garbage", [b"\x16" * 2_000, b"\x16\x03\x03\x00\x05hello" * 50, b"\x16\x03\x01" + os.urandom(3_000)]
)
def test_garbage_in_place_of_a_handshake_ends_the_connection(service, garbage):
    with connections(service, 1, garbage) as (client,):
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert len(rest(client)) < 100  # an alert at most
    answers_soon(service)


def test_garbage_after_the_handshake_ends_the_connection(service):
    with service.connection(HEALTH) as client:
        assert answer(client)[0] == 200
        raw = socket.socket(fileno=os.dup(client.fileno()))
        with raw:
            raw.settimeout(PATIENCE)
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            with contextlib.suppress(ConnectionResetError):
                while raw.recv(65_536):
                    pass
    answers_soon(service)


# -------------------------------------------------------------------------------------------------- requests


def test_pipelined_requests_in_one_record_are_answered_in_order(service):
    refused = b"GET /api/photos HTTP/1.1\r\nHost: x\r\n\r\n"
    with service.connection(HEALTH + refused + HEALTH + refused[:20]) as client:
        assert statuses(client, 3) == [200, 401, 200]
        client.sendall(refused[20:])
        assert statuses(client, 1) == [401]


@pytest.mark.slow
def test_many_pipelined_requests_are_all_answered(service):
    with service.connection() as client:
        sending = threading.Thread(target=client.sendall, args=(HEALTH * 1_000,))
        sending.start()
        assert statuses(client, 1_000) == [200] * 1_000
        sending.join()


def test_requests_in_records_of_their_own_that_arrive_together_are_all_answered(service):
    client, (incoming, outgoing) = in_memory(service)
    with connections(service) as (connection,):
        shake_hands(client, incoming, connection, lambda: connection.sendall(outgoing.read()))
        for _ in range(20):
            client.write(HEALTH)
        client.write(CLOSING)
        connection.sendall(outgoing.read())
        incoming.write(rest(connection))
        received = bytearray()
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            while piece := client.read(65_536):
                received += piece
    assert received.count(b"HTTP/1.1 200 OK") == 21


def test_a_connection_is_kept_for_request_after_request(service):
    with service.connection() as client:
        for _ in range(20):
            client.sendall(HEALTH[:30])
            time.sleep(0.005)
            client.sendall(HEALTH[30:])
            status, headers, _ = answer(client)
            assert (status, headers["Connection"]) == (200, "keep-alive")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /api/health HTTP/1.1\nHost: x\n\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /" + b"x" * 9_000, 414),
        (b"GET /api/health HTTP/1.1\r\n" + b"X-Long: " + b"x" * 70_000, 431),
        (b"GET /api/health HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_each_header_is_judged_as_without_tls(service, request_, status):
    with service.connection(request_) as client:
        assert answer(client)[0] == status


def test_the_end_of_a_connection_is_announced(service):
    with service.connection(CLOSING) as client:
        client.suppress_ragged_eofs = False  # an end that is not announced raises
        assert rest(client).endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("encryption", [pytest.param("true", marks=pytest.mark.slow), "false"])
def test_a_client_that_reads_slowly_gets_whole_answers_in_order(tmp_path, encryption):
    picture = draw(size=(1100, 1100), compress_level=0)
    with SecureService(tmp_path, api_key="key", encryption=encryption) as service:
        stored = service.upload(picture)["id"]
        lines = f"GET /api/photos/{stored}/image HTTP/1.1", "Host: x", "Authorization: Bearer key"
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        plain.settimeout(PATIENCE)
        plain.connect(("127.0.0.1", service.port))
        with service.context().wrap_socket(plain, server_hostname="127.0.0.1") as client:
            client.sendall("\r\n".join([*lines, "", ""]).encode() * 3 + CLOSING)
            time.sleep(0.5)
            received = rest(client)
    assert received.count(picture) == 3
    assert received.endswith(b'{"status":"ok"}')


def test_a_large_picture_arrives_whole_and_is_returned_whole(service):
    picture = draw(size=(2600, 2000), compress_level=0)
    stored = service.upload(picture)["id"]
    assert len(picture) > 15_000_000
    assert service.call("GET", f"/api/photos/{stored}/image").content == picture


def test_a_refusal_comes_at_once_and_the_client_may_go_on_sending(service):
    with service.connection(REFUSED) as client:
        client.settimeout(SOON)
        status, headers, _ = answer(client)
        assert (status, headers["Connection"]) == (401, "close")
        for _ in range(100):
            client.sendall(bytes(100_000))
        assert rest(client) == b""


def test_a_refused_body_that_is_there_already_costs_no_connection(service):
    small = b"POST /api/skills HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" + b"x" * 2_000
    with service.connection(small) as client:
        status, headers, _ = answer(client)
        assert (status, headers["Connection"]) == (401, "keep-alive")
        client.sendall(HEALTH)
        assert answer(client)[0] == 200


def secure(service):
    return http.client.HTTPSConnection("127.0.0.1", service.port, timeout=PATIENCE, context=service.context())


def test_a_body_below_the_least_rate_is_given_up(impatient):
    held = HeldUpload(impatient, draw(size=(1100, 1100), compress_level=0), connection=secure(impatient))
    with contextlib.closing(held):
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
    return bool(select.select([held._connection.sock], [], [], 0.05)[0])


def test_a_body_that_is_dripped_inside_of_one_record_is_given_up(impatient):
    """Nothing of a record can be read before its end: the time limit must hold without any progress."""
    client, (incoming, outgoing) = in_memory(impatient)
    with connections(impatient) as (connection,):
        shake_hands(client, incoming, connection, lambda: connection.sendall(outgoing.read()))
        client.write(
            b"POST /api/photos/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 90000\r\n\r\n"
        )
        connection.sendall(outgoing.read())
        client.write(bytes(16_000))
        record = outgoing.read()
        connection.settimeout(0.02)
        received = bytearray()
        gone = time.monotonic() + PATIENCE
        for byte in record[:-1]:
            if time.monotonic() > gone:
                pytest.fail("the connection is still open")
            with contextlib.suppress(OSError):
                connection.sendall(bytes([byte]))
            try:
                piece = connection.recv(65_536)
            except TimeoutError:
                continue
            received += piece
            if not piece:
                break
    assert received  # tickets, and an answer


def test_a_client_that_goes_half_way_leaves_nothing_behind(service):
    for count in (30, 5_000):
        held = HeldUpload(service, draw(), connection=secure(service))
        held.send(count)
        held.close()
    answers_soon(service)
    eventually(lambda: not any(service.data.glob("spool/*")), "the upload is gone")


# ------------------------------------------------------------------------------------------------ plain http


def test_a_browser_over_plain_http_is_led_to_https(service):
    plain = service.url.replace("https:", "http:")
    for method in ("GET", "HEAD"):
        found = requests.request(method, f"{plain}/?a=b", allow_redirects=False, timeout=PATIENCE)
        assert (found.status_code, found.headers["Location"]) == (307, f"{service.url}/?a=b")


def test_a_program_over_plain_http_is_refused_with_a_sentence(service):
    plain = service.url.replace("https:", "http:")
    for method, headers in (("GET", service.bearer), ("POST", {}), ("DELETE", service.bearer)):
        found = requests.request(method, f"{plain}/api/photos", headers=headers, timeout=PATIENCE)
        assert found.status_code == 400
        assert service.url in found.json()["detail"]


def test_over_plain_http_the_way_to_trust_and_the_health_are_answered(service):
    plain = service.url.replace("https:", "http:")
    for path in ("/ca", "/ca.crt", "/ca.mobileconfig", "/api/health"):
        assert requests.get(plain + path, timeout=PATIENCE).status_code == 200
