"""Webhooks: what happens here reaches a real receiver, signed, at least once, and nothing sensitive does."""

import dataclasses
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
from datetime import datetime, timedelta

import jinja2
import pytest
from standardwebhooks import Webhook as Signature

import agenda
import database
import dynamics
import net
from clock import iso, utc_now
from database import db
from engines.articles import Article
from models import AgendaItem, Analysis, Delivery, Webhook
from outlets import webhooks
from settings import ROOT
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.library import Library
from tests.support.loopback import Loopback
from tests.support.service import Service, eventually

CARD = "4532 0151 1283 0366"
EVENTS = ["photo.analysed", "note.written", "reminder.due"]


class Receiver(Loopback):
    """A program that receives events. It answers with the next of `answers`, and then 204."""

    def __init__(self):
        self.answers, self.calls = [], []
        self.held = threading.Event()  # set: answers are given
        self.held.set()
        super().__init__(_Handler)
        self.url = f"http://localhost:{self.port}/hook/secret-of-the-path"

    @property
    def bodies(self):
        return [json.loads(body) for _, body in self.calls]

    @property
    def ids(self):
        return [headers["webhook-id"] for headers, _ in self.calls]


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, receiver, *arguments):
        self.receiver = receiver
        super().__init__(*arguments)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.receiver.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.receiver.held.wait(20)
        status, headers = self.receiver.answers.pop(0) if self.receiver.answers else (204, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format, *args):
        """Silent: pytest shows what matters."""


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def settings(settings):
    return dataclasses.replace(settings, dev_mode=True, api_key="key")


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


@pytest.fixture
def send(settings, clock):
    """`send()` makes one round of the loop."""
    return lambda: webhooks.send_due(settings, clock=clock)


def register(client, receiver, events=EVENTS, **fields):
    answer = client.post("/api/webhooks", json={"url": receiver.url, "events": events, **fields})
    assert answer.status_code == 200, answer.json
    return answer.json


def happen(event, subject):
    with database.scope(), db.atomic():
        webhooks.record(event, subject, now=utc_now())


def note(title="A note", content="At length."):
    with database.scope(), db.atomic():
        note_id = dynamics.add(Article(title, content), {}, now=utc_now()).id
        webhooks.record("note.written", note_id, now=utc_now())
        return note_id


def log_of(client, webhook):
    return client.get(f"/api/webhooks/{webhook['id']}/deliveries").json["deliveries"]


def shown(client):
    (found,) = client.get("/api/webhooks").json["webhooks"]
    return found


def test_an_analysed_photo_is_sent_signed_with_what_was_found(
    client, settings, receiver, make_photo, work_queue, send, clock
):
    webhook = register(client, receiver)
    assert webhook["name"].startswith("localhost")
    photo = client.upload(make_photo(text="hello there")).json["id"]
    client.patch(f"/api/photos/{photo}", json={"title": "Mine"})
    quiet = dataclasses.replace(settings, read_locally=False)
    work_queue(quiet, clock=clock)
    clock.now = utc_now() + timedelta(minutes=1)
    with database.scope():
        Delivery.update(due_at=utc_now()).execute()  # the queue ran by a clock that is an hour ahead
    assert send()
    assert not send()

    (headers, body), (message,) = receiver.calls[0], receiver.bodies
    Signature(webhook["secret"]).verify(body, headers)
    assert message["type"] == "photo.analysed"
    assert message["timestamp"].endswith("Z")
    assert message["data"]["photo_id"] == photo
    assert (message["data"]["title"], message["data"]["sensitive"]) == ("Mine", False)
    (entry,) = log_of(client, webhook)
    assert (entry["status"], entry["answer"], entry["attempts"]) == ("delivered", 204, 1)
    assert entry["message_id"] == headers["webhook-id"]


def test_a_webhook_gets_the_events_that_it_asks_for(client, receiver, library, send):
    with Receiver() as other:
        notes = register(client, receiver, ["note.written"])
        register(client, other, ["photo.analysed"])
        note_id = note("Trip", "At **length**.")
        assert send()
        assert [message["data"]["note_id"] for message in receiver.bodies] == [note_id]
        assert receiver.bodies[0]["data"]["content"] == "At **length**."
        assert other.calls == []
        client.patch(f"/api/webhooks/{notes['id']}", json={"events": ["photo.analysed"]})
        note()
        assert not send()


def test_a_reminder_is_sent_once_however_often_it_is_announced(client, settings, receiver, library, send):
    register(client, receiver)
    photo, day = library.add("A bill"), datetime.now() + timedelta(days=1)
    with database.scope(), db.atomic():
        row = AgendaItem.create(
            event_id=0, photo=photo, kind="deadline", title="Bill",
            starts_at=f"{day:%Y-%m-%d}", last_at=f"{day:%Y-%m-%d}T24", all_day=True, quote="due",
            line=0, created_at=utc_now(), changed_at=utc_now(),
        )  # fmt: skip
        AgendaItem.update(event_id=row.id).where(AgendaItem.id == row.id).execute()
    with database.scope(), db.atomic():
        agenda.reminded.send([agenda.get(row.id)])
    with database.scope(), db.atomic():
        agenda.reminded.send([agenda.get(row.id)])
    assert send()
    assert not send()

    (message,) = receiver.bodies
    assert message["type"] == "reminder.due"
    assert message["data"]["agenda_id"] == row.id
    assert (message["data"]["title"], message["data"]["all_day"]) == ("Bill", True)


def test_a_failure_is_tried_again_later_with_the_same_id(client, receiver, send, clock):
    webhook = register(client, receiver)
    receiver.answers = [(503, {"Retry-After": "600"}), (500, {})]
    note()
    assert send()
    (entry,) = log_of(client, webhook)
    assert (entry["status"], entry["answer"], entry["problem"]) == ("waiting", 503, "HTTP status 503")
    assert entry["next_at"] == iso(clock.now + timedelta(minutes=10))
    assert shown(client)["failing_since"] == iso(clock.now)

    clock.move(minutes=9)
    assert not send()
    clock.move(minutes=2)
    assert send()
    clock.move(hours=1)
    assert send()
    assert len(set(receiver.ids)) == 1
    assert len(receiver.ids) == 3
    (entry,) = log_of(client, webhook)
    assert (entry["status"], entry["attempts"], entry["next_at"]) == ("delivered", 3, None)
    assert shown(client)["failing_since"] is None


def test_one_that_fails_hinders_no_other_and_is_asked_rarely(client, receiver, send, clock):
    with Receiver() as broken:
        register(client, broken)
        register(client, receiver)
        broken.answers = [(500, {})] * 9
        for _ in range(3):
            note()
        while send():
            pass
        assert (len(broken.calls), len(receiver.calls)) == (1, 3)
        for _ in range(4):
            clock.move(minutes=1)
            send()
        assert len(broken.calls) == 3  # it rests for 5 s, 30 s, then 5 minutes
        broken.answers = []
        clock.move(hours=1)
        while send():
            pass
        assert len(set(broken.ids)) == 3  # back again, it gets all that has waited


def test_a_delivery_ends_after_a_day_and_a_webhook_after_three(client, receiver, send, clock):
    webhook = register(client, receiver, name="Home")
    receiver.answers = [(400, {})] * 99
    note()
    for _ in range(9):
        send()
        clock.move(hours=10)
    (entry,) = log_of(client, webhook)
    assert (entry["status"], entry["attempts"]) == ("failed", 8)
    assert shown(client)["enabled"]

    note()
    assert send()
    found = shown(client)
    assert not found["enabled"]
    assert "3 days" in found["problem"]
    assert "HTTP status 400" in found["problem"]
    assert [entry["status"] for entry in log_of(client, webhook)] == ["failed", "failed"]
    note()
    assert not send()  # nothing is queued for it
    detail(client.post(f"/api/webhooks/{webhook['id']}/deliveries/{entry['id']}/send"), 400)

    receiver.answers = []
    client.patch(f"/api/webhooks/{webhook['id']}", json={"enabled": True})
    assert (shown(client)["enabled"], shown(client)["problem"]) == (True, "")
    again = client.post(f"/api/webhooks/{webhook['id']}/deliveries/{entry['id']}/send").json
    assert (again["status"], again["attempts"]) == ("waiting", 0)
    assert send()
    assert receiver.ids[-1] == entry["message_id"]


def test_a_receiver_that_is_gone_is_believed_at_once(client, receiver, send):
    register(client, receiver)
    receiver.answers = [(410, {})]
    note()
    assert send()
    assert not shown(client)["enabled"]
    assert "410" in shown(client)["problem"]


def test_nothing_sensitive_is_sent(client, receiver, library, send, settings):
    register(client, receiver)
    photo = library.add(f"Card number {CARD}", summary="The harbour bank")
    plain = library.add("Harmless")
    with database.scope():
        Analysis.update(sensitive="card").where(Analysis.photo == photo).execute()
    happen("photo.analysed", photo)
    happen("photo.analysed", plain)
    held = note("A bill", f"Card number {CARD}")
    while send():
        pass

    by_type = {json.dumps(message["data"], sort_keys=True) for message in receiver.bodies}
    assert json.dumps({"photo_id": photo, "sensitive": True}, sort_keys=True) in by_type
    assert json.dumps({"note_id": held, "sensitive": True}, sort_keys=True) in by_type
    sent = b"".join(body for _, body in receiver.calls).decode()
    assert CARD not in sent
    assert "harbour bank" not in sent
    opened = dataclasses.replace(settings, sensitive="off")
    happen("photo.analysed", photo)
    assert webhooks.send_due(opened, clock=lambda: utc_now() + timedelta(hours=2))
    assert receiver.bodies[-1]["data"]["summary"] == "The harbour bank"


def test_what_is_deleted_before_it_is_sent_is_withdrawn(client, receiver, library, send):
    webhook = register(client, receiver)
    photo = library.add("Harmless")
    happen("photo.analysed", photo)
    client.post(f"/api/photos/{photo}/trash")
    client.delete(f"/api/dynamics/{note()}")
    while send():
        pass
    assert receiver.calls == []
    assert [entry["status"] for entry in log_of(client, webhook)] == ["withdrawn", "withdrawn"]


def test_the_queue_and_the_log_are_bounded(client, receiver, send, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST_WAITING", 3)
    monkeypatch.setattr(webhooks, "KEPT", 2)
    webhook = register(client, receiver)
    for _ in range(5):
        note()
    assert (shown(client)["waiting"], shown(client)["dropped"]) == (3, 2)
    while send():
        pass
    assert len(receiver.calls) == 3
    with database.scope():
        assert Delivery.select().count() == 2
    assert len(log_of(client, webhook)) == 2


def test_a_test_event_is_sent_at_once_and_only_once(client, receiver, send):
    webhook = register(client, receiver)
    path = f"/api/webhooks/{webhook['id']}/test"
    assert client.post(path).json["status"] == "delivered"
    Signature(webhook["secret"]).verify(receiver.calls[0][1], receiver.calls[0][0])
    assert receiver.bodies[0]["type"] == "webhook.test"
    receiver.answers = [(500, {})]
    assert (client.post(path).json["problem"], log_of(client, webhook)[0]["status"]) == (
        "HTTP status 500",
        "failed",
    )
    assert not send()
    detail(client.post("/api/webhooks/999/test"), 404)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"url": "http://192.168.1.5/hook", "events": EVENTS}, "SNAPLORE_WEBHOOK_ALLOWED_HOSTS=192.168.1.5"),
        ({"url": "https://169.254.169.254/latest", "events": EVENTS}, "url: must not be a private address"),
        ({"url": "ftp://a", "events": EVENTS}, "url: must be an address"),
        ({"url": "https://u:p@host/", "events": EVENTS}, "url: must not hold a user name"),
        ({"url": "https://example.com/", "events": []}, "events: must have"),
        ({"url": "https://example.com/", "events": ["x"]}, "events: each entry must be one of"),
        ({"events": EVENTS}, "url: is missing"),
    ],
)
def test_what_is_no_webhook_is_refused_with_the_reason(client, body, message):
    assert message in detail(client.post("/api/webhooks", json=body), 400)
    assert client.get("/api/webhooks").json["webhooks"] == []


def test_only_the_owner_registers_and_the_secret_is_shown_once(client, app, receiver, caplog):
    webhook = register(client, receiver)
    assert webhook["secret"] not in client.get("/api/webhooks").text
    assert receiver.url not in caplog.text
    assert webhook["secret"] not in caplog.text
    with database.scope():
        assert webhook["secret"] not in repr(Webhook.get())
    token = client.post("/api/tokens", json={"name": "phone", "scope": "full"}).json["token"]
    phone = Client(app)
    phone.headers = {"Authorization": f"Bearer {token}"}
    detail(phone.get("/api/webhooks"), 403)
    detail(phone.post("/api/webhooks", json={"url": receiver.url, "events": EVENTS}), 403)
    client.delete(f"/api/webhooks/{webhook['id']}")
    detail(client.delete(f"/api/webhooks/{webhook['id']}"), 404)
    detail(client.get(f"/api/webhooks/{webhook['id']}/deliveries"), 404)


def test_an_address_that_is_allowed_no_longer_is_not_called(client, receiver, send, settings):
    webhook = register(client, receiver)
    note()
    strict = dataclasses.replace(settings, dev_mode=False)
    assert webhooks.send_due(strict, clock=lambda: utc_now() + timedelta(hours=1))
    assert receiver.calls == []
    assert "SNAPLORE_WEBHOOK_ALLOWED_HOSTS" in log_of(client, webhook)[0]["problem"]
    allowed = dataclasses.replace(strict, webhook_allowed_hosts=("localhost",))
    assert webhooks.send_due(allowed, clock=lambda: utc_now() + timedelta(hours=2))
    assert len(receiver.calls) == 1


@pytest.mark.slow
def test_what_was_on_its_way_when_the_service_was_killed_is_sent_again_with_the_same_id(tmp_path, receiver):
    with Service(tmp_path, dev_mode="true", api_key="key", read_locally="false") as service:
        answer = service.call("POST", "/api/webhooks", json={"url": receiver.url, "events": EVENTS}).json()
        receiver.held.clear()
        service.upload(draw(text="hello"))
        eventually(lambda: receiver.calls, "the event")
        service.kill()
        receiver.held.set()
        service.start()
        eventually(lambda: len(receiver.calls) >= 2, "the event again")
        assert len(set(receiver.ids)) == 1
        for headers, body in receiver.calls:
            Signature(answer["secret"]).verify(body, headers)
        path = f"/api/webhooks/{answer['id']}/deliveries"
        eventually(lambda: service.get(path)["deliveries"][0]["status"] == "delivered", "the log")


RUN = """
const block = require("fs").readFileSync(0, "utf8");
const [headers, body, secret] = JSON.parse(process.argv[1]);
const $input = { first: () => ({ json: { headers } }) };
const node = { helpers: { getBinaryDataBuffer: async () => Buffer.from(body, "utf8") } };
const Code = Object.getPrototypeOf(async function () {}).constructor;
new Code("$input", "require", block.replace("whsec_…", secret)).call(node, $input, require)
  .then((found) => console.log(found[0].json.type), (problem) => console.log(problem.message));
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_code_for_n8n_in_the_documents_checks_signatures(client, receiver, send, clock):
    webhook = register(client, receiver)
    note("Tägliche 笔记")
    clock.now = utc_now() + timedelta(seconds=1)  # the receiver's
    assert send()
    block = re.search(r"```js\n(.*?)```", (ROOT / "docs/programs.md").read_text(), re.DOTALL)[1]
    headers, body = receiver.calls[0][0], receiver.calls[0][1].decode()

    def run(headers, body, secret=webhook["secret"]):
        given = json.dumps([headers, body, secret])
        done = subprocess.run(
            ["node", "-e", RUN, given], input=block, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert run(headers, body) == "note.written"
    assert run(headers, body.replace("A", "B", 1) + " ") == "Wrong signature"
    assert run(headers, body, "whsec_AAAA") == "Wrong signature"
    assert run({**headers, "webhook-timestamp": "1"}, body) == "Wrong signature"


# Of each language: what runs a program, and the program around the block of the documents. Its arguments are
# the secret, and the three headers with their names.
CHECKS = {
    "py": (
        [sys.executable, "-c"],
        """BLOCK
import sys
headers = dict(zip(sys.argv[2::2], sys.argv[3::2]))
sys.exit(not is_signed(sys.argv[1], headers, sys.stdin.buffer.read()))""",
    ),
    "javascript": (
        ["node", "-e"],
        """BLOCK
const [secret, ...rest] = process.argv.slice(1);
const headers = {};
while (rest.length) headers[rest.shift()] = rest.shift();
process.exit(isSigned(secret, headers, require("fs").readFileSync(0)) ? 0 : 1);""",
    ),
    "bash": (["sh", "-c"], "shift\nSECRET=$1 ID=$3 TIMESTAMP=$5 SIGNATURE=$7 BODY=/dev/stdin\nBLOCK"),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", CHECKS)
def test_the_documents_check_of_a_signature_accepts_what_is_signed(client, receiver, send, language):
    command, program = CHECKS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    secret = register(client, receiver)["secret"]
    note("Tägliche 笔记")
    assert send()
    text = (ROOT / "docs/programs.md").read_text()
    block = re.search(rf"```{language}\n(.*?)```", text, re.DOTALL)[1]
    headers, body = receiver.calls[0]
    filler = ["sh", "-"] if language == "bash" else []

    def accepted(secret=secret, body=body, **changed):
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        named = [part for name in names for part in (name, changed.get(name[8:], headers[name]))]
        run = [*command, program.replace("BLOCK", block), *filler, secret, *named]
        return subprocess.run(run, input=body, check=False).returncode == 0

    assert accepted()
    assert not accepted(body=body + b" ")
    assert not accepted(secret="whsec_AAAA")
    assert not accepted(timestamp="1")
    assert not accepted(signature="v1,AAAA")


def test_the_recipes_in_the_documents_fit_the_events():
    text = (ROOT / "docs/programs.md").read_text()
    example = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])
    block = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    condition, title, message = re.findall(r'"(\{\{.*\}\})"', block)

    def rendered(template, event):
        return (
            jinja2.Environment(undefined=jinja2.StrictUndefined)
            .from_string(template)
            .render(trigger={"json": event})
        )

    assert rendered(condition, example) == "True"
    assert rendered(condition, {"type": webhooks.TEST, "data": {}}) == "False"
    assert rendered(condition, {**example, "data": {"agenda_id": 7, "sensitive": True}}) == "False"
    assert rendered(title, example) == "Harbor Energy"
    assert rendered(message, example) == "2026-11-23: Your bill is due 2026-11-23"
    address = re.search(r"```text\n(https://ntfy\S+)", text)[1]
    assert net.Guard().target(address).url == address
