"""What is sensitive is marked, and leaves by no exit; everything else does."""

import contextlib
import dataclasses
import http.server
import json
import logging
import re
import urllib.parse

import pytest

import database
import gate
import memory
import models
from analysis import pool
from analysis.pool import Worker
from app import create_app
from assistant import chat, openings, recollection, turns
from clock import utc_now
from database import db
from engines.findings import MemoryCandidate
from engines.lines import Line, Page
from errors import AnswerUnusable, BadInput, ProviderDown, ProviderRefused, Unavailable
from locks import named_lock
from models import Analysis, McpServer
from rules import sensitive
from rules.embedded import LocalModel
from settings import ROOT
from tests.support import fake_llm as completions
from tests.support import screens
from tests.support.beginning import begin
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.fake_mcp import FakeMCP
from tests.support.loopback import Loopback
from tests.support.undone import undo_shown

CARD = "4532 0151 1283 0366"
SENSITIVE = ("Harbor Bank", f"Card number {CARD}", "Valid thru 08/29")
HARMLESS = ("Library account", "Due on Friday")


def page(*lines):
    return Page(540, 960, [Line(text, 0.99, 40, 60 * n, 400, 60 * n + 40) for n, text in enumerate(lines, 1)])


class Eyes:
    """Reads what the test says, by the order of the pictures."""

    def __init__(self, *pages):
        self.pages, self.failures, self.calls = list(pages), [], 0

    def read(self, picture, *, patience=None):
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.pages.pop(0), "small"


@pytest.fixture
def eyes(monkeypatch):
    eyes = Eyes()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    return eyes


def upload(client, text="one"):
    return client.upload(draw(text)).json["id"]


def photo(client, photo_id):
    return client.get(f"/api/photos/{photo_id}").json


def columns(photo_id):
    with database.scope():
        return Analysis.get(Analysis.photo == photo_id)


def stored(client, reading, eyes, *lines):
    """A photo that was read and analysed."""
    eyes.pages.append(page(*lines))
    photo_id = upload(client, " ".join(lines))
    reading.work()
    return photo_id


# ------------------------------------------------------------------------------------------------------ marks


def test_a_photo_is_marked_by_what_was_read_in_its_detail_and_in_lists(client, reading, eyes):
    marked = stored(client, reading, eyes, *SENSITIVE)
    plain = stored(client, reading, eyes, *HARMLESS)

    assert photo(client, marked)["sensitive"] == ["card"]
    assert photo(client, plain)["sensitive"] == []
    items = client.get("/api/photos").json["items"]
    assert [(item["id"], item["sensitive"]) for item in items] == [(plain, []), (marked, ["card"])]
    (hit,) = client.get("/api/search?q=harbor").json["items"]
    assert (hit["id"], hit["sensitive"]) == (marked, ["card"])  # what is stored is found


def test_the_statistics_count_what_is_held_back_by_kind(client, reading, eyes):
    stored(client, reading, eyes, *SENSITIVE)
    both = stored(client, reading, eyes, *SENSITIVE, "Password: Tulip2041!")
    stored(client, reading, eyes, *HARMLESS)

    def told():
        stats = client.get("/api/stats").json
        return stats["sensitive_photos"], stats["sensitive_kinds"]

    assert told() == (2, {"card": 2, "password": 1})
    client.post(f"/api/photos/{both}/trash")
    assert told() == (1, {"card": 1})
    (item,) = client.get("/api/photos?trash=true").json["items"]
    assert item["sensitive"] == ["card", "password"]
    client.post(f"/api/photos/{both}/restore")
    assert told() == (2, {"card": 2, "password": 1})
    client.delete(f"/api/photos/{both}")
    assert told() == (1, {"card": 1})


def test_a_client_that_knows_only_ids_learns_which_photos_to_veil(client, reading, eyes):
    marked, plain, thrown = (
        stored(client, reading, eyes, *lines) for lines in (SENSITIVE, HARMLESS, ("Password: Tulip2041!",))
    )
    client.post(f"/api/photos/{thrown}/trash")

    found = client.get(f"/api/photos/sensitive?ids={marked},{plain},{thrown},999").json["items"]
    assert found == [{"id": marked, "sensitive": ["card"]}, {"id": thrown, "sensitive": ["password"]}]
    for wrong in ("", "1,", "1,,2", "x", "-1", ",".join("1" * 101)):
        assert "ids" in detail(client.get(f"/api/photos/sensitive?ids={wrong}"), 400)


def test_lists_say_which_notes_chats_and_memories_a_page_is_to_cover(client, reading, eyes):
    marked, plain = (stored(client, reading, eyes, *lines) for lines in (SENSITIVE, HARMLESS))
    secret, now = f"Card number {CARD}", utc_now()
    with database.scope():
        common = {"category": "note", "created_at": now}
        models.Dynamic.create(title="A card", source_photo_ids=json.dumps([plain, marked]), **common)
        models.Dynamic.create(title="A library", source_photo_ids=json.dumps([plain, 999]), **common)
        models.Dynamic.create(title="Deep inside", content=secret, **common)
        memory.remember(MemoryCandidate(secret), source_type="chat", now=now)
        memory.remember(MemoryCandidate("Likes tea"), source_type="chat", now=now)
        turns.begin_turn("c1", secret, None, device_id="", now=now)
        turns.begin_turn("c2", "Where is my train?", None, device_id="", now=now)

    def kinds(path, name, field):
        return {item[field]: item["sensitive"] for item in client.get(path).json[name]}

    notes = {"A card": ["card"], "A library": [], "Deep inside": ["card"]}
    assert kinds("/api/dynamics", "items", "title") == notes
    assert [client.get(f"/api/dynamics/{number}").json["sensitive"] for number in (1, 2, 3)] == list(
        notes.values()
    )
    remembered = kinds("/api/memories", "items", "content")
    assert (remembered[secret], remembered["Likes tea"]) == (["card"], [])
    assert kinds("/api/chat/conversations", "conversations", "id") == {"c1": ["card"], "c2": []}
    # A person who says that a screenshot is not sensitive says it of the notes about it, too.
    client.patch(f"/api/photos/{marked}", json={"sensitive": []})
    assert client.get("/api/dynamics/1").json["sensitive"] == []


def test_a_person_says_that_a_photo_is_not_sensitive_which_holds(client, fake_llm, reading, eyes):
    photo_id = stored(client, reading, eyes, *SENSITIVE)
    assert fake_llm.requests == []

    assert client.patch(f"/api/photos/{photo_id}", json={"sensitive": []}).json["sensitive"] == []
    eyes.pages.append(page(*SENSITIVE))
    client.post(f"/api/analysis/{photo_id}/reprocess")
    reading.work()

    assert photo(client, photo_id)["sensitive"] == []
    assert CARD in fake_llm.requests[0].text  # it is theirs to send
    assert client.get("/api/stats").json["sensitive_photos"] == 0
    assert client.patch(f"/api/photos/{photo_id}", json={"sensitive": None}).json["sensitive"] == ["card"]


def test_only_an_empty_list_says_so(client, reading, eyes):
    photo_id = stored(client, reading, eyes, *SENSITIVE)

    assert "sensitive" in detail(client.patch(f"/api/photos/{photo_id}", json={"sensitive": ["card"]}), 400)
    detail(client.patch("/api/photos/999", json={"sensitive": []}), 404)
    client.post(f"/api/photos/{photo_id}/trash")
    detail(client.patch(f"/api/photos/{photo_id}", json={"sensitive": []}), 404)


def test_the_mark_follows_when_the_text_is_read_again(client, reading, eyes):
    photo_id = stored(client, reading, eyes, *HARMLESS)
    eyes.pages.append(page(*SENSITIVE))
    client.post(f"/api/analysis/{photo_id}/reprocess")
    reading.work()
    assert photo(client, photo_id)["sensitive"] == ["card"]

    eyes.pages.append(page(*HARMLESS))
    client.post(f"/api/analysis/{photo_id}/reprocess")
    reading.work()
    assert photo(client, photo_id)["sensitive"] == []


def test_photos_stored_before_are_marked_in_the_background_from_what_was_read(client, reading, eyes):
    photos = [stored(client, reading, eyes, *SENSITIVE, str(n)) for n in range(3)]
    cleared = photos[0]
    client.patch(f"/api/photos/{cleared}", json={"sensitive": []})
    with database.scope():  # as a version before this one has left them
        Analysis.update(sensitive="", judged=False).execute()
    calls = eyes.calls

    while reading.backlog.mark_older():
        pass

    assert [photo(client, photo_id)["sensitive"] for photo_id in photos] == [[], ["card"], ["card"]]
    assert eyes.calls == calls
    with database.scope():
        assert gate.mark_older() == []


def test_one_thread_at_a_time_marks_photos_stored_before(client, reading, eyes, settings):
    stored(client, reading, eyes, *SENSITIVE)
    with database.scope():
        Analysis.update(sensitive="", judged=False).execute()
    with named_lock(settings.data_dir / "jobs", "mark-older", 0, busy=""):
        assert reading.backlog.mark_older() is False
        with database.scope():
            assert Analysis.select().where(~Analysis.judged).count() == 1
    assert reading.backlog.mark_older() is True


def test_a_text_that_only_a_remote_model_has_seen_marks_the_photo_too(client, fake_llm, worker):
    fake_llm.answer({**FINDINGS, "visible_text": "\n".join(SENSITIVE)})
    photo_id = upload(client)
    worker.work()  # without reading first

    assert photo(client, photo_id)["sensitive"] == ["card"]


# --------------------------------------------------------------------------------------------------- analyses


def test_a_sensitive_photo_is_analysed_by_the_embedded_model_and_no_other(client, fake_llm, reading, eyes):
    marked = stored(client, reading, eyes, *SENSITIVE)
    assert fake_llm.requests == []
    stored(client, reading, eyes, *HARMLESS)

    assert columns(marked).status == "done"
    assert columns(marked).analyser.startswith("local/")
    assert photo(client, marked)["text"] == "\n".join(SENSITIVE)
    assert eyes.calls == 2  # it is judged from what was read
    assert len(fake_llm.requests) == 1
    assert "Library account" in fake_llm.requests[0].text


def test_with_the_gate_off_it_is_marked_and_sent(client, fake_llm, remote, eyes, clock):
    settings = dataclasses.replace(remote, read_locally=True, sensitive="off")
    with contextlib.closing(Worker(settings, clock=clock)) as worker:
        photo_id = stored(client, worker, eyes, *SENSITIVE)

    assert CARD in fake_llm.requests[0].text
    assert photo(client, photo_id)["sensitive"] == ["card"]


@pytest.mark.parametrize(
    "failure",
    [Unavailable("Other pictures are being read."), ProviderDown("no child"), AnswerUnusable("it crashed")],
    ids=lambda failure: type(failure).__name__,
)
def test_a_picture_waits_until_it_could_be_read_and_is_not_sent_before(
    client, fake_llm, reading, eyes, clock, monkeypatch, failure
):
    monkeypatch.setattr("analysis.text_reader.READ_PAUSE", 0.0)
    eyes.failures = [failure]
    photo_id = stored(client, reading, eyes, *SENSITIVE)
    assert columns(photo_id).status == "pending"
    assert fake_llm.requests == []

    reading.work()
    assert columns(photo_id).status == "done"
    assert fake_llm.requests == []


def test_what_cannot_be_read_cannot_be_judged_and_is_sent(client, fake_llm, reading, eyes, monkeypatch):
    monkeypatch.setattr("analysis.text_reader.READ_PAUSE", 0.0)
    eyes.failures = [AnswerUnusable("it crashed")] * 3
    photo_id = upload(client)
    for _ in range(3):
        reading.work()

    assert columns(photo_id).status == "done"
    assert len(fake_llm.requests) == 1


def test_without_an_engine_on_this_machine_the_remote_model_works_on(client, fake_llm, reading, eyes):
    eyes.failures = [ProviderRefused("no engine")]
    photo_id = upload(client)
    reading.work()

    assert columns(photo_id).status == "done"


def test_a_failure_of_the_embedded_model_is_the_photos_own_and_opens_no_circuit(
    client, fake_llm, reading, eyes, monkeypatch
):
    monkeypatch.setattr(LocalModel, "judge", lambda *args, **options: 1 / 0)
    for number in range(3):
        marked = stored(client, reading, eyes, *SENSITIVE, str(number))
        assert columns(marked).error_message == pool.NOT_READABLE
    monkeypatch.undo()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    plain = stored(client, reading, eyes, *HARMLESS)

    assert columns(plain).status == "done"
    assert len(fake_llm.requests) == 1


def test_a_folder_of_the_version_before_is_marked_after_its_migration(client, settings, reading, eyes):
    photos = [stored(client, reading, eyes, *SENSITIVE), stored(client, reading, eyes, *HARMLESS)]
    with database.scope():
        # Of later versions.
        db.execute_sql("DROP TRIGGER meanings_due_after_analysis")
        undo_shown()
        for later in ("TABLE redactions", "TABLE redacted_index"):
            db.execute_sql(f"DROP {later}")
        db.execute_sql("ALTER TABLE vocabulary DROP COLUMN hidden")
        for name in ("sensitive", "sensitive_taken", "unjudged"):
            db.execute_sql(f"DROP INDEX analyses_{name}")
        for name in ("sensitive", "cleared", "judged"):
            db.execute_sql(f"ALTER TABLE analyses DROP COLUMN {name}")
        db.execute_sql("DELETE FROM schema_migration WHERE name LIKE '0014%'")
        db.execute_sql("DELETE FROM schema_migration WHERE name LIKE '%_redactions'")
    database.close_store()

    migrated = Client(create_app(settings))
    assert [photo(migrated, photo_id)["sensitive"] for photo_id in photos] == [[], []]
    assert reading.backlog.mark_older() is True
    assert [photo(migrated, photo_id)["sensitive"] for photo_id in photos] == [["card"], []]
    assert migrated.get("/api/stats").json["sensitive_kinds"] == {"card": 1}


# -------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"to": "eve@example.com", "body": f"the card is {CARD}"}, "a payment card"),
        ({"body": "DE89 3704 0044 0532 0130 00"}, "a bank account"),
        ({"lines": ["DE89 3704 0044", "0532 0130 00"]}, "a bank account"),  # in pieces
        ({"card": {"number": 4532015112830366}}, "a payment card"),
        ({"order": CARD}, "a payment card"),  # whatever the field is called
        ({"password": "sunshine"}, "a password"),
        ({"text": "her verification code is 482913"}, "a one-time code"),
        ({"deep": [[[{"x": [{"y": "11010519491231002X"}]}]]]}, "an identity number"),
        ({"key": "ghp_abcdEFGH1234567890abcdefghij123456ab"}, "an access key"),
        ({"words": screens.WORDS[::171]}, "a recovery phrase"),
        ({"to": "e", f"{CARD} card": True}, "a payment card"),  # as a name
        ({f"card {CARD}": None}, "a payment card"),
        ({f"card {CARD}": {}}, "a payment card"),
        ({"q": "4 5 3 2 0 1 5 1 1 2 8 3 0 3 6 6"}, "a payment card"),
        ({"q": "4532.0151.1283.0366"}, "a payment card"),
        ({"q": "4532_0151_1283_0366"}, "a payment card"),
        ({"q": "4532%200151%201283%200366"}, "a payment card"),
        ({"q": "4532%25200151%25201283%25200366"}, "a payment card"),
        ({"q": "\u200b".join("4532015112830366")}, "a payment card"),
        ({"q": "٤٥٣٢ ٠١٥١ ١٢٨٣ ٠٣٦٦"}, "a payment card"),
        ({"q": "④⑤③② ⓪①⑤① ①②⑧③ ⓪③⑥⑥"}, "a payment card"),
        ({"q": "𝟒𝟓𝟑𝟐 𝟎𝟏𝟓𝟏 𝟏𝟐𝟖𝟑 𝟎𝟑𝟔𝟔"}, "a payment card"),
        ({"q": "de89 3704 0044 0532 0130 00"}, "a bank account"),
        ({"q": "the code is 738201,5 minutes, to log in"}, "a one-time code"),
        ({"q": "password: $ummer2024!"}, "a password"),
    ],
)
def test_arguments_with_something_sensitive_are_refused(arguments, named):
    with pytest.raises(BadInput, match=named) as refused:
        gate.check_arguments(arguments)
    assert "4532" not in refused.value.detail


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"place": "Bremen", "days": 3, "metric": True, "near": None},
        {"query": "price of a Kindle in 2026"},
        {"order": "112-4829130-7712045", "tracking": "1Z999AA10123456784"},
    ],
)
def test_other_arguments_leave(arguments):
    gate.check_arguments(arguments)


@pytest.mark.parametrize("provider", [True, False])
def test_a_number_that_two_calls_of_a_turn_carry_in_halves_is_refused(house, provider):
    """The second call is refused, whether both are made at once or one after the other."""
    halves = [
        ("mcp__mail__send", {"body": "first 4532 0151"}),
        ("mcp__mail__send", {"body": "then 1283 0366"}),
    ]
    if provider:
        house.calls(*halves)
    else:
        for half in halves:
            house.calls(half)
    house.model.answer("Done.")
    house.say("Mail it in two.")

    sent = [one.body["params"]["arguments"] for one in house.mail.requests if one.method == "tools/call"]
    assert sent == [{"body": "first 4532 0151"}]


def test_the_calls_of_a_turn_that_only_have_numbers_leave(house):
    bodies = [{"body": f"Invoice {2026 + n}-0{n}18 is due on 2026-11-0{n + 1}"} for n in range(3)]
    house.calls(*(("mcp__mail__send", body) for body in bodies))
    house.model.answer("Done.")
    house.say("Mail them.")

    sent = [one.body["params"]["arguments"] for one in house.mail.requests if one.method == "tools/call"]
    assert sent == bodies


@pytest.mark.parametrize(
    "name",
    [
        "Card 4539 1488 0343 6467.png",
        "password=hunter2Xq9.png",
        "card_4539148803436467.jpg",
        "IBAN-DE89370400440532013000.webp",
    ],
)
def test_a_file_name_with_something_sensitive_is_not_told_to_a_remote_model(
    client, fake_llm, reading, eyes, name
):
    eyes.pages.append(page(*HARMLESS))
    client.upload(draw("one"), filename=name)
    reading.work()

    (request,) = fake_llm.requests
    assert "Library account" in request.text
    assert name not in request.text


def test_another_file_name_is_told_to_a_remote_model(client, fake_llm, reading, eyes):
    eyes.pages.append(page(*HARMLESS))
    client.upload(draw("one"), filename="Screenshot_20261123-143022_Library.png")
    reading.work()

    assert "Screenshot_20261123-143022_Library.png" in fake_llm.requests[0].text


def test_photos_that_earlier_rules_have_judged_are_judged_again_once(client, reading, eyes, monkeypatch):
    photos = [stored(client, reading, eyes, *SENSITIVE, str(n)) for n in range(3)]
    while reading.backlog.mark_older():
        pass
    with database.scope():
        Analysis.update(sensitive="").execute()  # as rules would that did not know it
        assert gate.mark_older() == []
    monkeypatch.setattr(sensitive, "VERSION", sensitive.VERSION + 1)
    while reading.backlog.mark_older():
        pass

    assert [photo(client, photo_id)["sensitive"] for photo_id in photos] == [["card"]] * 3
    with database.scope():
        assert gate.mark_older() == []


def test_what_comes_back_from_the_trash_is_judged_by_the_present_rules(client, reading, eyes):
    photo_id = stored(client, reading, eyes, *SENSITIVE)
    with database.scope():
        Analysis.update(sensitive="").execute()
    client.post(f"/api/photos/{photo_id}/trash")
    client.post(f"/api/photos/{photo_id}/restore")

    assert photo(client, photo_id)["sensitive"] == ["card"]


def test_a_text_that_earlier_rules_have_judged_is_judged_again_before_it_is_sent(
    client, fake_llm, reading, eyes
):
    photo_id = stored(client, reading, eyes, *SENSITIVE)
    with database.scope():
        Analysis.update(sensitive="", reads_left=0).execute()
    client.post(f"/api/analysis/{photo_id}/reprocess")
    with database.scope():
        Analysis.update(reads_left=0).execute()
    reading.work()

    assert fake_llm.requests == []


def test_arguments_that_cannot_be_looked_at_whole_are_refused():
    with pytest.raises(BadInput, match="too much"):
        gate.check_arguments([["x"] * 5_000, CARD])
    with pytest.raises(BadInput, match="too much"):
        gate.check_arguments("x " * 200_000 + CARD)


# -------------------------------------------------------------------------------------------------- the exits


class FarEnd(Loopback):
    """Records what arrives: web searches and notifications."""

    def __init__(self):
        self.received = []
        super().__init__(_Recorder)


class _Recorder(http.server.BaseHTTPRequestHandler):
    def __init__(self, far_end, *args):
        self._far_end = far_end
        super().__init__(*args)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._far_end.received.append(urllib.parse.unquote_plus(f"{self.path} {body}"))
        found = b'{"results": []}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    do_GET = do_POST

    def log_message(self, format, *args):
        """Log nothing."""


class House:
    """A service with a remote model and something that records at each of its exits."""

    def __init__(self, settings, reading, eyes, model, web, hook, mail):
        self.settings, self.reading, self.eyes = settings, reading, eyes
        self.model, self.web, self.hook, self.mail = model, web, hook, mail
        self.answered = []
        begin(settings)
        self.client = Client(create_app(settings))
        self.client.post("/api/push/register", json={"device_id": "pixel", "token": "a-token"})
        with database.scope():
            McpServer.create(id="mail", name="Mail", url=mail.url, created_at=utc_now())

    def store(self, *lines):
        return stored(self.client, self.reading, self.eyes, *lines)

    def use(self, provider):
        given = {"provider": provider, "base_url": self.settings.llm_base_url, "model": "scripted"}
        body = {"provider": "local"} if provider == "local" else given
        assert self.client.put("/api/config/llm", json=body).status_code == 200

    def say(self, message, **fields):
        answer = self.client.post("/api/chat/send", json={"message": message, **fields})
        assert answer.status_code == 200, answer.json
        return answer.json

    def send(self, message, conversation_id=None):
        """As `say`, without the limit of messages a minute; returns the id of the conversation."""
        return chat.send(self.settings, openings.UserMessage(message, conversation_id)).conversation_id

    def calls(self, *calls):
        """The model calls these tools next."""
        self.model.answer(None, tool_calls=[_call(n, *call) for n, call in enumerate(calls)])

    def passes_on(self):
        """The model sends what it has read to everybody next, and then says it."""

        def read():
            return re.sub(r"</?data \w+>", "", self.model.requests[-1].text[-80_000:])

        def send(handler):
            calls = [("web_search", {"query": read()[-3_000:]}), ("mcp__mail__send", {"body": read()})]
            made = [_call(n, *call) for n, call in enumerate(calls)]
            handler.reply(200, completions._completion(None, tool_calls=made))

        self.model._enqueue(send)
        self.model._enqueue(lambda handler: handler.reply(200, completions._completion(read()[-2_000:])))

    def ask_as_agent(self, name, **arguments):
        """Call a tool of `/mcp`, as a model elsewhere does."""
        params = {"name": name, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**self.client.headers, "MCP-Protocol-Version": "2025-11-25"}
        answer = self.client.open.post("/mcp", json=body, headers=headers)
        assert answer.json["result"]["isError"] is False, answer.json
        self.answered.append(json.dumps(answer.json["result"]["structuredContent"], ensure_ascii=False))

    def sent(self, log):
        """What has arrived anywhere, by the name of the exit."""
        return {
            "model": "\n".join(json.dumps(one.body, ensure_ascii=False) for one in self.model.requests),
            "web": "\n".join(self.web.received),
            "push": "\n".join(self.hook.received),
            "mcp": "\n".join(json.dumps(one.body, ensure_ascii=False) for one in self.mail.requests),
            "agents": "\n".join(self.answered),
            "log": log,
        }


def _call(number, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{number}", "type": "function", "function": function}


SEND = {"name": "send", "inputSchema": {"type": "object", "properties": {"body": {"type": "string"}}}}


@pytest.fixture
def house(app, remote, reading, eyes, fake_llm):
    with FarEnd() as web, FarEnd() as hook, FakeMCP(stateless=True, tools=[SEND]) as mail:
        settings = dataclasses.replace(
            remote,
            searxng_url=f"http://localhost:{web.port}/",
            push_webhook_url=f"http://localhost:{hook.port}/hook",
        )
        yield House(settings, reading, eyes, fake_llm, web, hook, mail)


def test_what_only_looks_sensitive_is_shown_also_in_snippets_and_summaries_on_one_line():
    for screen in screens.look_alikes(7, 320):
        lines = screen.text.split("\n")
        result = {
            "id": 12,
            "summary": "; ".join(lines),
            "snippet": " ".join(lines)[:200],
            "filename": "a.png",
        }
        assert not gate.withholds(gate.Mark(), [screen.text, result]), screen.text


def test_a_remote_models_tools_say_only_that_there_is_a_sensitive_screenshot(house):
    marked, plain = house.store(*SENSITIVE), house.store(*HARMLESS)
    house.model.requests.clear()
    house.calls(("search_knowledge_base", {}), ("get_screenshot", {"id": marked}))
    house.model.answer("Done.")
    told = house.say("What have I saved?")

    messages = house.client.get(f"/api/chat/conversations/{told['conversation_id']}").json["messages"]
    listed, one = (json.loads(message["content"]) for message in messages if message["role"] == "tool")
    assert [(result["id"], result["title"]) for result in listed["results"]] == [
        (plain, "Mail"),
        (marked, gate.TITLE),
    ]
    assert one["results"][0]["title"] == gate.TITLE
    assert set(one["results"][0]) == {"id", "title", "snippet", "device_id", "taken"}
    assert "Harbor" not in house.model.requests[-1].text
    assert "Your book is due" in house.model.requests[-1].text


def test_a_screenshot_that_is_not_sensitive_for_the_person_is_shown_to_the_model(house):
    marked = house.store(*SENSITIVE)
    house.client.patch(f"/api/photos/{marked}", json={"sensitive": []})
    house.calls(("get_screenshot", {"id": marked}))
    house.model.answer("Done.")
    house.say("Read it.")

    assert CARD in house.model.requests[-1].text


def test_the_embedded_model_reads_everything_and_a_remote_one_later_not(house):
    house.store(*SENSITIVE)
    house.use("local")
    told = house.say("Harbor Bank")
    assert CARD in told["message"]["content"]

    house.use("openai")
    house.model.answer("Hello.")
    house.say("And now?", conversation_id=told["conversation_id"])

    sent = house.model.requests[-1].text
    assert CARD not in sent
    assert gate.HELD_BACK in sent
    assert "Harbor Bank" in sent  # the person's own words


def test_a_scripted_model_that_reads_an_account_and_calls_a_mail_tool_is_refused(house):
    house.calls(("mcp__mail__send", {"body": "IBAN DE89 3704 0044 0532 0130 00"}))
    house.calls(("web_search", {"query": "who owns DE89370400440532013000"}))
    house.calls(("mcp__mail__send", {"body": "The weather is fine."}))
    house.model.answer("Done.")
    told = house.say("Mail my account to Eve.")

    messages = house.client.get(f"/api/chat/conversations/{told['conversation_id']}").json["messages"]
    results = [json.loads(message["content"]) for message in messages if message["role"] == "tool"]
    assert ["a bank account" in result.get("error", "") for result in results] == [True, True, False]
    assert house.web.received == []
    calls = [one.body["params"]["arguments"] for one in house.mail.requests if one.method == "tools/call"]
    assert calls == [{"body": "The weather is fine."}]


def test_with_the_gate_off_arguments_leave(house):
    house.settings = dataclasses.replace(house.settings, sensitive="off")
    house.client = Client(create_app(house.settings))
    house.calls(("mcp__mail__send", {"body": CARD}))
    house.model.answer("Done.")
    house.say("Mail it.")

    assert CARD in house.sent("")["mcp"]


def test_memories_with_something_sensitive_are_not_recalled_for_a_remote_model(house):
    with database.scope():
        for content in ("The password of the wifi is Tulip2041!", "The wifi is called Meadow."):
            candidate = MemoryCandidate(content, memory_type="long_term", importance=0.9)
            memory.remember(candidate, source_type="chat", now=utc_now())
    house.model.answer("Meadow.")
    house.say("What is the wifi called?")

    assert "Meadow" in house.model.requests[-1].text
    assert "Tulip" not in house.model.requests[-1].text


def test_a_turn_with_something_sensitive_is_not_read_for_memories(house):
    for said in ("My password is: Tulip2041!", "I live in Bremen."):
        house.model.answer("I see.")
        house.say(said)
    house.model.requests.clear()
    house.model.default = lambda request: {"memories": []}
    while recollection.read_for_memories(house.settings):
        pass

    assert len(house.model.requests) == 1
    assert "Bremen" in house.model.requests[0].text


def test_a_notification_with_something_sensitive_is_replaced(house, caplog):
    caplog.set_level(logging.INFO)
    for body in (f"Card {CARD}", "The laundry is done."):
        house.client.post("/api/push/broadcast", json={"title": "House", "body": body})
    quiet = dataclasses.replace(house.settings, push_webhook_url=None)
    Client(create_app(quiet)).post("/api/push/broadcast", json={"title": CARD, "body": ""})

    assert "something sensitive" in house.hook.received[0]
    assert "laundry" in house.hook.received[1]
    assert CARD not in "\n".join(house.hook.received) + caplog.text


REMINDER = ("Reminder", "Your payment is due on Friday", "Please pay by Friday")


@pytest.mark.parametrize("lines", [SENSITIVE, HARMLESS])
def test_a_notification_about_new_notes_names_none_about_a_sensitive_screenshot(house, lines):
    house.use("local")
    house.store(*REMINDER, *lines)
    house.client.post("/api/dynamics/trigger")
    titles = [note["title"] for note in house.client.get("/api/dynamics").json["items"]]

    (told,) = house.hook.received
    assert ("About a sensitive screenshot" in told) == (lines == SENSITIVE)
    assert (json.dumps(titles[0])[1:-1] in told) == (lines == HARMLESS)


def test_a_chat_about_a_sensitive_screenshot_is_no_material_for_a_remote_model_but_for_own_words(house):
    house.store(*SENSITIVE)
    house.use("local")
    house.send("Harbor Bank")
    house.send("My password is: Tulip2041!")
    house.use("openai")
    house.model.requests.clear()
    house.model.default = lambda request: {"articles": []}
    assert house.client.post("/api/dynamics/trigger").status_code == 200

    (request,) = house.model.requests
    assert "user: Harbor Bank" in request.text
    assert CARD not in request.text
    assert "I found this" not in request.text
    assert "Tulip" not in request.text


def needles(screen):
    """The forms in which the secrets of a screen would be found elsewhere."""
    for secret in screen.secrets:
        pieces = [secret, screens.grouped(secret), screens.grouped(secret, "-")]
        if "PRIVATE KEY" in secret:
            pieces = secret.split("\n")[1:3]
        elif screen.kinds == {"recovery_phrase"}:
            pieces = [" ".join(secret.split()[start : start + 4]) for start in range(0, 12, 4)]
        elif secret.isdigit() and len(secret) < 6:
            continue  # it may be anywhere by chance
        yield from pieces


def is_in(text, piece):
    """Whether a secret is in a text. A code of six digits may be inside another word by chance."""
    return piece in text and bool(re.search(rf"(?<![0-9A-Za-z]){re.escape(piece)}(?![0-9A-Za-z])", text))


def run_of_everything(house, sensitive, harmless, caplog):
    """Analyses, chats with either model, notes, memories, pushes, failures."""
    caplog.set_level(logging.INFO)
    house.model.queue_is_for = lambda request: bool(request.body.get("tools"))
    marked = [house.store(*screen.text.split("\n")) for screen in sensitive]
    plain = [
        house.store(f"Harmless{number}marker", *screen.text.split("\n"))
        for number, screen in enumerate(harmless)
    ]
    house.store(*REMINDER)  # a note about it is written and pushed, whichever screens there are

    house.use("local")
    asked = [screen.text.split("\n")[0] for screen in sensitive if screen.rows[0][0] == "title"]
    begun = [house.send(question) for question in asked[:: len(asked) // 8]]
    house.client.post("/api/dynamics/trigger")
    house.use("openai")
    for conversation_id in begun:
        house.passes_on()
        house.send("Go on.", conversation_id)
    everything = [*marked, *plain]
    for start in range(0, len(everything), 16):
        for first in (start, start + 8):
            some = everything[first : first + 8]
            if some:
                house.calls(*(("get_screenshot", {"id": photo_id}) for photo_id in some))
        house.passes_on()
        house.send("Send all of it to Eve.")
        house.model._queue.clear()
    house.model.default = lambda request: {"articles": [], "memories": []}
    with database.scope():
        Analysis.update(noted=False).execute()
    for _ in range(len(everything) // 10):
        house.client.post("/api/dynamics/trigger")
    while recollection.read_for_memories(house.settings):
        pass
    house.model.fail(500, "It went wrong.")
    house.client.post("/api/chat/send", json={"message": "Hello"})
    for limiter in house.client.app.extensions["limiter"]:
        limiter.enabled = False
    for photo_id in everything:
        house.ask_as_agent("get_screenshot", id=photo_id)
        house.ask_as_agent("fetch", id=str(photo_id))
    for question in asked[:20]:
        house.ask_as_agent("search_screenshots", query=question, limit=20)
    house.ask_as_agent("recent_notes", limit=20)
    house.ask_as_agent("agenda", since="2000-01-01")
    house.ask_as_agent("list_records")
    return house.sent(caplog.text)


def check_everything(house, count, caplog):
    sensitive = screens.sensitive_screens(7, count)
    harmless = screens.look_alikes(7, count // 5)
    sent = run_of_everything(house, sensitive, harmless, caplog)

    looked_for = [piece for screen in sensitive for piece in needles(screen)]
    leaked = [(name, piece) for name, text in sent.items() for piece in looked_for if is_in(text, piece)]
    assert leaked == []
    assert len(looked_for) >= count
    for number in range(len(harmless)):
        assert f"Harmless{number}marker" in sent["model"], number
        assert f"Harmless{number}marker" in sent["mcp"], number
        assert f"Harmless{number}marker" in sent["agents"], number
    assert "marker" in sent["web"]
    assert sent["push"]


@pytest.mark.slow
def test_no_exit_lets_anything_sensitive_out_and_each_lets_out_the_rest(house, caplog):
    check_everything(house, 32, caplog)


@pytest.mark.slow
def test_of_500_secrets_none_leaves_in_a_run_of_everything(house, caplog):
    check_everything(house, 500, caplog)


def test_every_exit_names_a_module_that_asks_the_gate():
    for leaving in gate.EXITS:
        source = (ROOT / f"{leaving.module.replace('.', '/')}.py").read_text()
        assert "gate." in source, leaving.name
