"""Request bodies as a web server delivers them: chunked, malformed, too large. The tests use real sockets,
because Flask's test client sends no chunks.
"""

import http.client
import json
import socket

import pytest

from tests.support.service import Service

MALFORMED = (
    b"zz\r\n",
    b"2\r\n{}zz0\r\n\r\n",
    b"-1\r\n\r\n",
    b"2;a b\r\n{}\r\n0\r\n\r\n",
    b"2\r\n{}\r\n0\r\nno trailer\r\n\r\n",
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("inputs"), api_key="inputs") as service:
        yield service


def answer_to(service, body, key, path="/api/skills", kind="application/json"):
    """The status and the sentence of the answer to a POST with this chunked body, sent as it is."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as client:
        client.sendall(head.encode() + body)
        answer = http.client.HTTPResponse(client)
        answer.begin()
        with answer:
            return answer.status, json.loads(answer.read())["detail"]


def chunks(body):
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("body", MALFORMED)
def test_malformed_chunks_without_the_key_are_401_and_leave_no_trace_in_the_log(service, body):
    before = len(service.output)

    assert answer_to(service, body, "wrong")[0] == 401

    assert service.output[before:] == ""


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=b"])
@pytest.mark.parametrize("body", MALFORMED)
def test_malformed_chunks_are_400_and_one_line_of_the_log(service, body, kind):
    before = len(service.output)
    path = "/api/skills" if kind == "application/json" else "/api/photos/upload"

    status, sentence = answer_to(service, body, service.key, path, kind)

    assert (status, sentence) == (400, "body: its chunks are malformed")
    assert service.output[before:].count("\n") == 1


def test_a_chunked_body_over_the_limit_is_413(service):
    skill = {"id": "chunked", "name": "n", "system_prompt": "p"}
    whole = json.dumps(skill).encode().ljust(1_048_576)

    assert answer_to(service, chunks(whole + b" "), service.key) == (
        413,
        "The request is larger than the 1 MB that this path accepts.",
    )
    assert answer_to(service, chunks(whole[:-2] + b"]"), service.key)[0] == 400
    assert answer_to(service, chunks(b" " * 2_097_152), service.key)[0] == 413
