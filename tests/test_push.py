"""Push: devices come, are listed and go; a receiver on loopback gets what the contract says, once, signed,
whatever others do.
"""

import dataclasses
import functools
import http.server
import itertools
import json
import logging
import socket
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import quote

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

import database
import net
import push
from app import create_app
from errors import StartRefused
from tests.support.client import Client, detail

PIXEL = {
    "device_id": "pixel",
    "token": "token-of-pixel",
    "platform": "ios",
    "device_name": "My Pixel",
    "device_model": "Pixel 12",
    "app_version": "1.2.3",
}
HOOK = "/hook/secret-of-the-path?key=secret-of-the-query"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HANG = "hang"
BREAK = "break"
PATIENCE = 90.0


@dataclasses.dataclass(frozen=True)
class Call:
    path: str
    headers: dict[str, str]  # names in lower case
    raw: bytes

    @property
    def payload(self):
        return json.loads(self.raw)


class Receiver(http.server.ThreadingHTTPServer):
    """The operator's webhook. `answer` is a function of the call that gives a status, a status with headers,
    HANG or BREAK.
    """

    request_queue_size = 64

    def __init__(self):
        self.answer = lambda call: 200
        self.calls: list[Call] = []
        self.changed = threading.Condition()
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://localhost:{self.server_port}{HOOK}"

    def queue(self, *answers):
        """These answers in turn, then 200."""
        remaining = itertools.chain(answers, itertools.repeat(200))
        self.answer = lambda call: next(remaining)

    def wait_for_calls(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.calls) >= count, PATIENCE), (
                f"{len(self.calls)} of {count} calls came"
            )

    def calls_for(self, device_id):
        return [call for call in self.calls if call.payload["device_id"] == device_id]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        call = Call(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        with self.server.changed:
            self.server.calls.append(call)
            self.server.changed.notify_all()
        answer = self.server.answer(call)
        if answer == HANG:
            self.server.closing.wait(PATIENCE)
        elif answer != BREAK:
            status, headers = answer if isinstance(answer, tuple) else (answer, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

    def log_message(self, format, *args):
        """Silent: pytest shows what matters."""


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def settings(settings, receiver):
    return dataclasses.replace(settings, push_webhook_url=receiver.url)


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """The pauses between the tries, in seconds, which are not made."""
    made = []
    monkeypatch.setattr(push.time, "sleep", made.append)
    return made


@pytest.fixture
def register(client):
    """`register("pixel", "tablet")` with tokens of their own."""

    def register(*device_ids):
        for device_id in device_ids:
            answer = client.post(
                "/api/push/register", json={"device_id": device_id, "token": f"token-of-{device_id}"}
            )
            assert answer.json == {"message": "Registered", "device_id": device_id}

    return register


@pytest.fixture
def client_with(settings):
    """`client_with(language="zh")`: a client of the same data under changed settings."""
    yield lambda **changes: Client(create_app(dataclasses.replace(settings, **changes)))
    database.close_connections()


def listed(client):
    return client.get("/api/push/devices").json["devices"]


def deliver(client):
    """The count of a broadcast."""
    answer = client.post("/api/push/broadcast")
    assert answer.status_code == 200
    return answer.json["count"]


# ---------------------------------------------------------------------------------------------------- devices


def test_a_registered_device_is_listed_with_everything_it_said(client, clock, monkeypatch):
    monkeypatch.setattr(push, "utc_now", clock)
    assert client.post("/api/push/register", json=PIXEL).json == {
        "message": "Registered",
        "device_id": "pixel",
    }
    moment = clock.now.isoformat(timespec="milliseconds")

    assert listed(client) == [{"id": 1, **PIXEL, "last_seen": moment, "created_at": moment}]


def test_what_a_device_does_not_say_has_its_default(client, register):
    register("pixel")
    (device,) = listed(client)

    assert device["platform"] == "android"
    assert device["device_name"] == "pixel"
    assert device["device_model"] == device["app_version"] == ""


def test_registering_again_changes_what_is_given_and_refreshes_last_seen(client, clock, monkeypatch):
    monkeypatch.setattr(push, "utc_now", clock)
    client.post("/api/push/register", json=PIXEL)
    (first,) = listed(client)
    clock.move(days=1)
    client.post("/api/push/register", json={"device_id": "pixel", "token": "renewed", "app_version": "2.0"})
    (again,) = listed(client)

    assert again["last_seen"] == clock.now.isoformat(timespec="milliseconds") > first["last_seen"]
    assert again == {**first, "token": "renewed", "app_version": "2.0", "last_seen": again["last_seen"]}


def test_one_device_that_registers_in_parallel_is_one_device(app):
    start = threading.Barrier(8)

    def register():
        client = Client(app)
        start.wait(PATIENCE)
        return client.post("/api/push/register", json=PIXEL).status_code

    with ThreadPoolExecutor(8) as threads:
        answers = [pending.result() for pending in [threads.submit(register) for _ in range(8)]]

    assert answers == [200] * 8
    assert [device["device_id"] for device in listed(Client(app))] == ["pixel"]


def test_the_device_that_was_seen_last_comes_first(client, register, clock, monkeypatch):
    monkeypatch.setattr(push, "utc_now", clock)
    for device_id in ("one", "two", "three", "one"):
        register(device_id)
        clock.move(seconds=1)

    register("four", "five")

    assert [device["device_id"] for device in listed(client)] == ["five", "four", "one", "three", "two"]


def test_a_listing_of_any_length_costs_one_query(client, register):
    def queries():
        seen = []
        database.db.query_hooks.append(seen.append)
        try:
            listed(client)
        finally:
            database.db.query_hooks.remove(seen.append)
        return len(seen)

    none = queries()
    register("one", "two", "three")

    assert queries() == none == 1


@pytest.mark.parametrize(
    "device_id", ["pixel", "with space", "50%", "a/b", "https://push.example//x/?y#z", "手机", "x" * 256]
)
def test_a_deleted_device_is_gone_whatever_its_id_looks_like(client, register, device_id):
    register("other", device_id)
    path = f"/api/push/devices/{quote(device_id, safe='')}"
    assert client.delete(path).json == {"message": "Deleted"}

    assert [device["device_id"] for device in listed(client)] == ["other"]
    assert detail(client.delete(path), 404) == "Device not found"


def test_devices_survive_a_restart(client, client_with):
    client.post("/api/push/register", json=PIXEL)
    before = listed(client)

    assert listed(client_with()) == before


@pytest.mark.parametrize(
    ("field", "length"),
    [("token", 1024), ("platform", 64), ("device_name", 256), ("device_model", 256), ("app_version", 32)],
)
def test_every_field_takes_its_limit_and_no_more(client, field, length):
    client.post("/api/push/register", json={**PIXEL, field: "字" * length})
    assert listed(client)[0][field] == "字" * length

    sentence = detail(client.post("/api/push/register", json={**PIXEL, field: "x" * (length + 1)}), 400)
    assert sentence == f"{field}: must be at most {length:,} characters"


@pytest.mark.parametrize("path", ["register", "test"])
@pytest.mark.parametrize("device_id", ["", "x" * 257, "a\0b", "a\nb", "a\x7fb", "a\x85b", "/a", 7, None])
def test_a_device_id_that_cannot_be_one_is_400(client, path, device_id):
    sentence = detail(client.post(f"/api/push/{path}", json={**PIXEL, "device_id": device_id}), 400)

    assert sentence == "device_id: must be 1 to 256 characters, no control characters, no leading slash"
    assert listed(client) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"token": ""}, "token: must not be empty"),
        ({"token": "a\0b"}, "token: must not contain a NUL character"),
        ({"platform": 5}, "platform: must be a text"),
        ({"device_name": None}, "device_name: must be a text"),
    ],
)
def test_a_registration_that_cannot_be_taken_is_400_and_names_the_field(client, change, sentence):
    assert detail(client.post("/api/push/register", json={**PIXEL, **change}), 400) == sentence
    assert listed(client) == []


@pytest.mark.parametrize("missing", ["device_id", "token"])
def test_a_registration_needs_an_id_and_a_token(client, missing):
    given = {name: value for name, value in PIXEL.items() if name != missing}

    assert detail(client.post("/api/push/register", json=given), 400) == f"{missing}: is missing"


# ------------------------------------------------------------------------------------------------- the events


def test_the_receiver_gets_exactly_the_payload_of_the_contract(client, receiver):
    client.post("/api/push/register", json=PIXEL)
    answer = client.post("/api/push/broadcast", json={"title": "Hello", "body": "你好"})

    assert answer.json == {"message": "Sent to 1 device", "count": 1}
    (call,) = receiver.calls
    assert call.path == HOOK
    assert call.headers["content-type"] == "application/json"
    assert call.payload == {
        "device_id": "pixel",
        "device_name": "My Pixel",
        "platform": "ios",
        "token": "token-of-pixel",
        "title": "Hello",
        "body": "你好",
        "data": {},
    }


def test_a_device_without_a_name_is_called_by_its_id(client, register, receiver):
    register("pixel")
    deliver(client)

    assert receiver.calls[0].payload["device_name"] == "pixel"


@pytest.mark.parametrize(("language", "body"), [("zh", "新消息"), ("en", "New message")])
def test_a_broadcast_of_nothing_says_that_there_is_something_new(
    client_with, register, receiver, language, body
):
    register("pixel")
    assert deliver(client_with(language=language)) == 1

    assert (receiver.calls[0].payload["title"], receiver.calls[0].payload["body"]) == ("Snaplore", body)


@pytest.mark.parametrize(
    ("query", "sent", "expected"),
    [
        ("?title=T&body=B", {}, ("T", "B")),
        ("", {"title": "T", "body": "B"}, ("T", "B")),
        ("?title=T", {"body": "B"}, ("T", "B")),
        ("?title=query&body=query", {"title": "T", "body": "B"}, ("T", "B")),
        ("?title=", {"body": ""}, ("Snaplore", "New message")),
    ],
)
def test_the_texts_of_a_broadcast_come_from_the_query_or_the_body(
    client, register, receiver, query, sent, expected
):
    register("pixel")
    client.post(f"/api/push/broadcast{query}", json=sent)

    assert (receiver.calls[0].payload["title"], receiver.calls[0].payload["body"]) == expected


@pytest.mark.parametrize(("field", "length"), [("title", 256), ("body", 4096)])
def test_the_texts_of_a_broadcast_have_limits(client, field, length):
    assert client.post("/api/push/broadcast", json={field: "x" * length}).status_code == 200

    sentence = f"{field}: must be at most {length:,} characters"
    assert detail(client.post("/api/push/broadcast", json={field: "x" * (length + 1)}), 400) == sentence
    assert (
        detail(client.post("/api/push/broadcast", query_string={field: "x" * (length + 1)}), 400) == sentence
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "title", "body"),
    [
        ("zh", "Snaplore 测试通知", "这是一条测试推送通知"),
        ("en", "Snaplore test notification", "This is a test push notification"),
    ],
)
def test_a_test_goes_to_its_device_alone(client_with, register, receiver, language, title, body):
    register("pixel", "tablet")
    answer = client_with(language=language).post("/api/push/test", json={"device_id": "tablet"})

    assert answer.json == {"message": "Sent", "success": True}
    (call,) = receiver.calls
    sent = {name: call.payload[name] for name in ("device_id", "title", "body", "data")}
    assert sent == {"device_id": "tablet", "title": title, "body": body, "data": {}}


def test_a_test_that_the_webhook_refuses_is_no_success(client, register, receiver):
    register("pixel")
    receiver.queue(403)
    answer = client.post("/api/push/test", json={"device_id": "pixel"})

    assert (answer.status_code, answer.json["success"]) == (200, False)


@pytest.mark.slow
def test_a_test_of_an_unknown_device_is_404_and_a_send_to_it_false(client, settings, receiver):
    assert detail(client.post("/api/push/test", json={"device_id": "nobody"}), 404) == "Device not found"
    assert detail(client.post("/api/push/test"), 400) == "device_id: is missing"

    assert push.send(settings, "nobody", push.Notification("T", "B")) is False
    assert receiver.calls == []


def test_a_send_goes_to_its_device_alone(register, settings, receiver):
    register("pixel", "tablet")

    assert push.send(settings, "pixel", push.Notification("T", "B", {"a": 1})) is True
    assert [(call.payload["device_id"], call.payload["data"]) for call in receiver.calls] == [
        ("pixel", {"a": 1})
    ]


@pytest.mark.parametrize(
    ("titles", "language", "title", "body"),
    [
        (["甲"], "zh", "Snaplore 新笔记", "已生成 1 篇笔记：甲"),
        (["甲", "乙", "丙", "丁"], "zh", "Snaplore 新笔记", "已生成 4 篇笔记：甲、乙、丙"),
        (["A"], "en", "Snaplore new notes", "1 new note: A"),
        (["A", "B", "C", "D"], "en", "Snaplore new notes", "4 new notes: A, B, C"),
    ],
)
def test_new_notes_are_told_with_their_number_and_the_first_titles(
    register, settings, receiver, titles, language, title, body
):
    register("pixel")

    assert push.broadcast(settings, push.new_notes(titles, language)) == 1
    sent = {name: receiver.calls[0].payload[name] for name in ("title", "body", "data")}
    assert sent == {"title": title, "body": body, "data": {"count": len(titles), "type": "new_dynamics"}}


def test_a_broadcast_to_nobody_counts_none(client, receiver):
    assert deliver(client) == 0
    assert receiver.calls == []


def test_without_an_address_everything_is_only_logged_and_counts_as_sent(
    client_with, register, receiver, caplog
):
    caplog.set_level(logging.INFO)
    register("pixel", "tablet")
    client = client_with(push_webhook_url=None)
    answer = client.post("/api/push/broadcast", json={"title": "Hello"})

    assert answer.json["count"] == 2
    lines = [record.getMessage() for record in caplog.records if record.name == "push"]
    assert all("'Hello'" in line for line in lines)
    assert [device_id in line for line, device_id in zip(lines, ("'tablet'", "'pixel'"), strict=True)] == [
        True,
        True,
    ]
    assert client.post("/api/push/test", json={"device_id": "pixel"}).json["success"] is True
    assert detail(client.post("/api/push/test", json={"device_id": "nobody"}), 404) == "Device not found"
    assert receiver.calls == []


# --------------------------------------------------------------------------------------------------- delivery


@pytest.mark.parametrize(
    ("answers", "waited"),
    [
        ([429, 200], [1.0]),
        ([500, 503, 200], [1.0, 3.0]),
        ([BREAK, 201], [1.0]),
        ([(429, {"Retry-After": "7"}), 200], [7.0]),
        ([(503, {"Retry-After": "3600"}), 204], [10.0]),
        ([(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), 200], [1.0]),
        ([(429, {"Retry-After": "²"}), (429, {"Retry-After": "-5"}), 200], [1.0, 3.0]),
    ],
)
def test_what_may_pass_is_tried_again_with_the_same_bytes(
    client, register, receiver, pauses, answers, waited
):
    register("pixel")
    receiver.queue(*answers)

    assert deliver(client) == 1
    assert pauses == waited
    assert len(receiver.calls) == len(answers)
    assert len({call.raw for call in receiver.calls}) == 1


@pytest.mark.parametrize("answer", [500, 429, BREAK])
def test_after_three_tries_it_is_a_failure(client, register, receiver, answer):
    register("pixel")
    receiver.answer = lambda call: answer

    assert deliver(client) == 0
    assert len(receiver.calls) == 3


@pytest.mark.parametrize("status", [300, 304, 400, 401, 404, 410, 451])
def test_a_refusal_is_not_tried_again(client, register, receiver, status):
    register("pixel")
    receiver.queue(status)

    assert deliver(client) == 0
    assert len(receiver.calls) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(client, register, receiver, status):
    register("pixel")
    receiver.queue((status, {"Location": "/elsewhere"}))

    assert deliver(client) == 0
    assert [call.path for call in receiver.calls] == [HOOK]


def test_an_address_where_nobody_listens_costs_the_tries_and_is_a_failure(client_with, register, pauses):
    register("pixel")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else's
        client = client_with(push_webhook_url=f"http://127.0.0.1:{taken.getsockname()[1]}/")

        assert deliver(client) == 0
    assert pauses == [1.0, 3.0]


def test_a_webhook_that_is_silent_is_given_up_and_not_asked_again(client, register, receiver, monkeypatch):
    monkeypatch.setattr(push, "CALL_SECONDS", 0.2)
    register("pixel")
    receiver.queue(HANG)

    assert deliver(client) == 0
    assert len(receiver.calls) == 1


@pytest.mark.parametrize("failure", [404, 500, BREAK, HANG])
def test_one_dead_device_of_five_costs_the_others_nothing(client, register, receiver, monkeypatch, failure):
    monkeypatch.setattr(push, "CALL_SECONDS", 0.5)
    register("one", "two", "dead", "four", "five")
    receiver.answer = lambda call: failure if call.payload["device_id"] == "dead" else 200

    assert deliver(client) == 4
    for device_id in ("one", "two", "four", "five"):
        assert len(receiver.calls_for(device_id)) == 1


def test_devices_are_served_side_by_side(client, register, receiver):
    register("one", "two", "three", "four", "five")
    together = threading.Barrier(
        5
    )  # broken, and then nobody is answered with 200, unless all five calls are open at once

    def meet(call):
        together.wait(PATIENCE)
        return 200

    receiver.answer = meet

    assert deliver(client) == 5


def test_a_broadcast_ends_in_time_however_many_devices_hang(client, register, receiver, monkeypatch, caplog):
    monkeypatch.setattr(push, "BROADCAST_SECONDS", 0.5)
    register(*(f"device{number}" for number in range(push.THREADS + 4)))
    receiver.answer = lambda call: HANG

    assert deliver(client) == 0
    assert len(receiver.calls) == push.THREADS
    failures = sorted(record.getMessage().partition("failed: ")[2] for record in caplog.records)
    assert failures == ["TimedOut"] * push.THREADS + ["the time limit was reached"] * 4


@pytest.mark.parametrize(
    ("seconds", "deadlines", "ended"),
    [
        (25.0, [30.0, 30.0, 6.0], 79.0),
        (28.0, [30.0, 30.0], 57.0),  # the pause would end with the minute, so none is made
        (60.0, [30.0], 60.0),
    ],
)
def test_a_call_has_half_a_minute_and_a_notification_a_minute(
    register, settings, monkeypatch, seconds, deadlines, ended
):
    """Calls that take so many seconds and fail, by a clock of their own."""
    now, given = [0.0], []

    def pass_by(duration):
        now[0] += duration

    def call(*args, deadline, **options):
        given.append(deadline)
        pass_by(seconds)
        raise net.Unreachable("refused")

    register("pixel")
    monkeypatch.setattr(push, "time", types.SimpleNamespace(monotonic=lambda: now[0], sleep=pass_by))
    monkeypatch.setattr(net.Client, "open", call)

    assert push.send(settings, "pixel", push.Notification("T", "B")) is False
    assert (given, now) == (deadlines, [ended])


def test_the_database_is_free_while_a_webhook_is_waited_for(app, client, register, receiver):
    register("pixel")
    go_on = threading.Event()
    receiver.answer = lambda call: 200 if go_on.wait(PATIENCE) else 500

    with ThreadPoolExecutor(1) as threads:
        pending = threads.submit(deliver, Client(app))
        try:
            receiver.wait_for_calls(1)
            with database.store().lock.exclusive():
                entered = True
        finally:
            go_on.set()

        assert entered
        assert pending.result() == 1


def test_a_third_request_that_would_wait_for_a_webhook_is_told_to_come_again(app, client, register, receiver):
    register("pixel")
    go_on = threading.Event()
    receiver.answer = lambda call: 200 if go_on.wait(PATIENCE) else 500

    with ThreadPoolExecutor(2) as threads:
        pending = [threads.submit(deliver, Client(app)) for _ in range(2)]
        try:
            receiver.wait_for_calls(2)
            refused = [
                client.post("/api/push/broadcast"),
                client.post("/api/push/test", json={"device_id": "pixel"}),
            ]
        finally:
            go_on.set()
        assert [waiting.result() for waiting in pending] == [1, 1]

    for answer in refused:
        detail(answer, 503)
        assert answer.headers["Retry-After"] == "10"
    assert deliver(client) == 1


# ------------------------------------------------------------------------------------- signatures and secrets


@pytest.mark.parametrize(
    ("secret", "known_to_receiver"),
    [
        (SECRET, SECRET),
        ("whsec_aGVsbG8gd29ybGQ=", "whsec_aGVsbG8gd29ybGQ="),
        ("whsec_aGVsbG8gd29ybGQ", "whsec_aGVsbG8gd29ybGQ"),
        ("plain words, 密码", "plain words, 密码".encode()),
    ],
)
def test_the_official_library_verifies_every_call(client_with, register, receiver, secret, known_to_receiver):
    register("pixel", "tablet")
    assert (
        client_with(push_webhook_secret=secret)
        .post("/api/push/broadcast", json={"body": "截图 & ümlaut"})
        .json["count"]
        == 2
    )

    for call in receiver.calls:
        assert Webhook(known_to_receiver).verify(call.raw, call.headers)["body"] == "截图 & ümlaut"
        with pytest.raises(WebhookVerificationError):
            Webhook(known_to_receiver).verify(call.raw + b" ", call.headers)
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 2


def test_another_try_has_the_same_id_and_its_own_time(client_with, register, receiver, monkeypatch):
    client = client_with(push_webhook_secret=SECRET)
    register("pixel")
    start, seconds = push.utc_now(), itertools.count()
    monkeypatch.setattr(push, "utc_now", lambda: start + timedelta(seconds=next(seconds)))
    receiver.queue(500, 429)

    assert deliver(client) == 1
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    moments = [int(call.headers["webhook-timestamp"]) for call in receiver.calls]
    assert [moment - moments[0] for moment in moments] == [0, 1, 2]
    for call in receiver.calls:
        Webhook(SECRET).verify(call.raw, call.headers)


def test_without_a_secret_nothing_is_signed(client, register, receiver):
    register("pixel")
    deliver(client)

    assert not [name for name in receiver.calls[0].headers if name.startswith("webhook-")]


@pytest.mark.parametrize(
    "secret",
    ["whsec_", "whsec_===", "whsec_abcd efgh", "whsec_abcde", "whsec_abcd!efgh", "whsec_ab-_", "whsec_密码"],
)
def test_a_secret_that_is_marked_as_base64_and_is_none_stops_the_start(settings, secret):
    with pytest.raises(StartRefused) as refusal:
        push.announce(dataclasses.replace(settings, push_webhook_secret=secret))

    assert str(refusal.value) == "SNAPLORE_PUSH_WEBHOOK_SECRET: must be base64 after whsec_"


@pytest.mark.parametrize(
    "url", ["http://anna:word@nas.lan/hook", "https://nas.lan/hook#part", "https://密码.example/"]
)
def test_an_address_that_could_never_be_called_stops_the_start_and_is_not_quoted(settings, url):
    with pytest.raises(StartRefused) as refusal:
        push.announce(dataclasses.replace(settings, push_webhook_url=url))

    assert str(refusal.value).startswith("SNAPLORE_PUSH_WEBHOOK_URL: must ")
    assert not [part for part in ("anna", "nas.lan", "密码") if part in str(refusal.value)]


@pytest.mark.parametrize(
    "url",
    [
        "http://nas.lan:8080/hook",
        "http://192.168.1.5/",
        "http://[fd00::5]:81/a?b=c",
        "https://ntfy.example/x",
    ],
)
def test_an_address_on_the_lan_and_without_tls_is_the_operators_choice(settings, url, caplog):
    caplog.set_level(logging.INFO)
    push.announce(dataclasses.replace(settings, push_webhook_url=url))

    assert not caplog.records


@pytest.mark.parametrize(
    "changes",
    [{"fcm_project_id": "project-7"}, {"fcm_credentials_json": '{"private_key": "secret-of-the-channel"}'}],
)
def test_the_reserved_channel_is_accepted_and_said_to_be_inactive(settings, caplog, changes):
    caplog.set_level(logging.INFO)
    push.announce(dataclasses.replace(settings, **changes))

    (line,) = [record.getMessage() for record in caplog.records]
    assert "SNAPLORE_FCM_PROJECT_ID" in line
    assert "inactive" in line
    assert not [value for value in changes.values() if value in line]


@pytest.mark.parametrize("answer", [200, 500, 307, BREAK, HANG])
def test_no_token_address_or_secret_is_in_the_log(
    client_with, register, receiver, monkeypatch, caplog, answer
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(push, "CALL_SECONDS", 0.2)
    client = client_with(push_webhook_secret=SECRET)
    register("pixel")
    receiver.answer = functools.partial(lambda given, call: given, answer)
    deliver(client)

    assert ("push to device 'pixel' failed" in caplog.text) == (answer != 200)
    for private in (
        "token-of-pixel",
        "secret-of-the",
        "localhost",
        str(receiver.server_port),
        SECRET.removeprefix("whsec_"),
    ):
        assert private not in caplog.text
