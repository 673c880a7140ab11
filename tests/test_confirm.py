"""Calls that send something out wait for the person's word, over HTTP with a scripted model and a real MCP
server: what is asked, what goes out, and what stays when the service stops in between.
"""

import dataclasses
import io
import json
import threading

import pytest

import database
import memory
from app import create_app
from assistant import chat
from clock import utc_now
from database import db
from engines.findings import MemoryCandidate
from models import AskedCall, McpServer, PausedTurn
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_mcp import FakeMCP
from tests.support.service import Service, together

IBAN = "DE89 3704 0044 0532 0130 00"
SEND = {"name": "send", "inputSchema": {"type": "object", "properties": {"body": {"type": "string"}}}}
MAIL = "mcp__mail__send"


@pytest.fixture
def mail():
    with FakeMCP(stateless=True, tools=[SEND]) as server:
        yield server


class Talk:
    """A conversation of a client that can ask, with a model that follows a script."""

    def __init__(self, client, model):
        self.client, self.model = client, model
        self.id = "c0ffee"

    def calls(self, *calls, **fields):
        made = [
            {
                "id": f"call_{number}",  # the same in every round, as some providers do it
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
                **fields,
            }
            for number, (name, arguments) in enumerate(calls)
        ]
        self.model.answer(None, tool_calls=made)

    def reads(self):
        """The model searches the screenshots next, and finds something."""
        self.calls(("search_knowledge_base", {"query": "library"}))

    def say(self, message="Hello", status=200, confirm=True, **fields):
        body = {"message": message, "conversation_id": self.id, **({"confirm": True} if confirm else {})}
        answer = self.client.post("/api/chat/send", json={**body, **fields})
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.json

    def answer(self, call, *, allow, status=200, **fields):
        path = f"/api/chat/conversations/{self.id}/calls/{call['id']}"
        answer = self.client.post(path, json={"allow": allow, **fields})
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.json

    def stored(self):
        return self.client.get(f"/api/chat/conversations/{self.id}").json

    def results(self):
        return [json.loads(one["content"]) for one in self.stored()["messages"] if one["role"] == "tool"]


@pytest.fixture
def talk(remote, fake_llm, work_queue, mail):
    client = Client(create_app(remote))
    client.upload(draw("Library"))
    fake_llm.answer()
    work_queue(remote)
    with database.scope():
        db.execute_sql("DELETE FROM memories")  # what the analysis found is text of others, too
    server = {"id": "mail", "name": "Mail", "url": mail.url}
    assert client.post("/api/mcp-servers", json=server).status_code == 200
    fake_llm.requests.clear()
    return Talk(client, fake_llm)


def sent(mail):
    """The arguments of the calls that have arrived."""
    return [one.body["params"]["arguments"] for one in mail.requests if one.method == "tools/call"]


def asked(talk, *calls):
    """The pending calls of a turn in which the model reads a screenshot first."""
    talk.reads()
    talk.calls(*(calls or [(MAIL, {"body": "Your book is due"})]))
    reply = talk.say()
    assert reply["message"]["content"] == ""
    return reply["pending_calls"]


# ---------------------------------------------------------------------------------------------- what is asked


def test_a_call_that_sends_something_out_waits_once_a_screenshot_was_read(talk, mail):
    (pending,) = asked(talk)

    assert pending == {
        "id": pending["id"],
        "tool": MAIL,
        "server": f"localhost:{mail.port}",
        "server_id": "mail",
        "arguments": '{"body":"Your book is due"}',
        "sensitive": [],
    }
    assert sent(mail) == []
    assert [one["role"] for one in talk.stored()["messages"]] == ["user"]
    assert talk.stored()["pending_calls"] == [pending]
    path = f"/api/chat/conversations/{talk.id}/messages"
    assert talk.client.get(path).json["pending_calls"] == [pending]

    talk.model.answer("It is sent.")
    reply = talk.answer(pending, allow=True)

    assert sent(mail) == [{"body": "Your book is due"}]
    assert (reply["message"]["content"], reply["pending_calls"]) == ("It is sent.", [])
    assert [call["function"]["name"] for call in reply["message"]["tool_calls"]] == [
        "search_knowledge_base",
        MAIL,
    ]
    assert [one["role"] for one in talk.stored()["messages"]] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant")
    ]
    assert "pending_calls" not in talk.stored()
    roles = [message["role"] for message in talk.model.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert "Sunny" in talk.model.requests[-1].text


def test_a_refused_call_is_not_sent_and_the_model_goes_on(talk, mail):
    (pending,) = asked(talk)
    talk.model.answer("Then I leave it.")

    assert talk.answer(pending, allow=False)["message"]["content"] == "Then I leave it."

    assert sent(mail) == []
    assert talk.results()[-1]["error"] == "not sent: the person refused this call."
    assert "the person refused" in talk.model.requests[-1].text


def test_before_anything_of_others_was_read_nothing_is_asked(talk, mail):
    talk.calls((MAIL, {"body": "Hello"}))
    talk.model.answer("Sent.")

    assert talk.say("Send a hello")["pending_calls"] == []

    assert sent(mail) == [{"body": "Hello"}]


def test_what_an_earlier_turn_or_the_server_itself_has_told_counts(talk, mail):
    talk.calls((MAIL, {"body": "Hello"}))
    talk.calls((MAIL, {"body": "Again"}))
    (pending,) = talk.say()["pending_calls"]
    talk.model.answer("Sent.")
    talk.answer(pending, allow=True)

    talk.calls((MAIL, {"body": "Third"}))
    (pending,) = talk.say("And in the next turn?")["pending_calls"]
    assert "Third" in pending["arguments"]
    assert len(sent(mail)) == 2


def test_a_web_search_names_the_hosts_that_would_get_it(talk):
    (pending,) = asked(talk, ("web_search", {"query": "library"}))

    assert (pending["tool"], pending["server"], pending["server_id"]) == (
        "web_search",
        "html.duckduckgo.com",
        None,
    )


def test_an_empty_search_is_no_text_of_others(talk, mail):
    talk.calls(("search_knowledge_base", {"query": "zebra"}))
    talk.calls((MAIL, {"body": "Nothing"}))
    talk.model.answer("Sent.")

    assert talk.say()["pending_calls"] == []


def test_a_memory_that_was_made_of_a_screenshot_counts(talk, mail):
    with database.scope():
        memory.remember(
            MemoryCandidate("Collects trains of tin.", "fact", "long_term", 0.9),
            source_type="screenshot",
            now=utc_now(),
        )
    talk.calls((MAIL, {"body": "Trains"}))

    assert len(talk.say("What about trains?")["pending_calls"]) == 1


def test_an_attached_picture_counts_and_a_form_can_ask_to_confirm(talk, mail):
    talk.calls((MAIL, {"body": "Trains"}))
    form = {"file": (io.BytesIO(draw("Trains")), "picture.png"), "confirm": "true"}

    reply = talk.client.post("/api/chat/send-with-file", data=form).json

    talk.id = reply["conversation_id"]
    (pending,) = reply["pending_calls"]
    talk.model.answer("Sent.")
    assert talk.answer(pending, allow=True)["message"]["content"] == "Sent."
    assert len(talk.model.requests[-1].images) == 1


def test_clients_that_do_not_ask_keep_their_turn(talk, mail):
    talk.reads()
    talk.calls((MAIL, {"body": "Your book is due"}))
    talk.model.answer("Sent.")

    reply = talk.say(confirm=False)

    assert set(reply) == {"conversation_id", "message"}
    assert reply["message"]["content"] == "Sent."
    assert sent(mail) == [{"body": "Your book is due"}]


def test_with_always_a_client_that_cannot_ask_is_told_what_was_held_back(talk, mail, remote):
    talk.client = Client(create_app(dataclasses.replace(remote, confirm_calls="always")))
    talk.reads()
    talk.calls((MAIL, {"body": "Your book is due"}), (MAIL, {"body": IBAN}))
    talk.model.answer("I could not.")

    content = talk.say(confirm=False)["message"]["content"]

    assert sent(mail) == []
    assert content.startswith("I could not.\n\n(Not sent without your consent: ")
    assert content.count(f"{MAIL} to localhost:{mail.port}") == 1
    talk.reads()
    talk.calls((MAIL, {"body": "Your book is due"}))
    assert len(talk.say("Again")["pending_calls"]) == 1


# -------------------------------------------------------------------------------------------- what is trusted


def test_a_trusted_server_is_not_asked_about_until_its_address_is_another_host(talk, mail):
    server = talk.client.put("/api/mcp-servers/mail", json={"trusted": True}).json
    assert server["trusted"] is True
    talk.reads()
    talk.calls((MAIL, {"body": "Your book is due"}))
    talk.model.answer("Sent.")
    assert talk.say()["pending_calls"] == []
    assert len(sent(mail)) == 1

    moved = talk.client.put("/api/mcp-servers/mail", json={"url": f"{mail.url}?same=host"}).json
    assert moved["trusted"] is True
    moved = talk.client.put("/api/mcp-servers/mail", json={"url": "https://other.example/mcp"}).json
    assert moved["trusted"] is False


def test_a_tool_that_is_allowed_for_the_conversation_is_not_asked_about_again_in_it(talk, mail):
    (pending,) = asked(talk)
    talk.model.answer("Sent.")
    talk.answer(pending, allow=True, for_conversation=True)

    talk.calls((MAIL, {"body": "Second"}))
    talk.model.answer("Sent.")
    assert talk.say("Once more")["pending_calls"] == []
    assert len(sent(mail)) == 2
    talk.calls((MAIL, {"body": IBAN}))
    assert talk.say("And the account")["pending_calls"][0]["sensitive"] == ["iban"]

    talk.id = "beef"
    assert len(asked(talk)) == 1


def test_an_iban_is_refused_without_the_page_asked_with_it_and_sent_when_allowed(talk, mail):
    talk.client.put("/api/mcp-servers/mail", json={"trusted": True})  # never by "always"
    talk.calls((MAIL, {"body": f"pay to {IBAN}"}))
    talk.model.answer("It was refused.")
    talk.say(confirm=False)
    assert sent(mail) == []
    assert "a bank account" in talk.results()[-1]["error"]

    talk.calls((MAIL, {"body": f"pay to {IBAN}"}))
    (pending,) = talk.say("Send it all the same")["pending_calls"]
    assert pending["sensitive"] == ["iban"]
    assert sent(mail) == []

    talk.calls((MAIL, {"body": IBAN}))
    (again,) = talk.answer(pending, allow=True, for_conversation=True)["pending_calls"]
    assert sent(mail) == [{"body": f"pay to {IBAN}"}]
    talk.model.answer("Sent once.")
    talk.answer(again, allow=False)
    assert len(sent(mail)) == 1


# ------------------------------------------------------------------------------------------ one after another


def test_several_calls_are_answered_one_by_one_and_keep_their_order(talk, mail):
    first, second = asked(
        talk,
        (MAIL, {"body": "one"}),
        ("search_knowledge_base", {"query": "book"}),
        (MAIL, {"body": "two"}),
    )
    asked_before = len(talk.model.requests)

    reply = talk.answer(second, allow=True)
    assert reply["pending_calls"] == [first]
    assert len(talk.model.requests) == asked_before
    assert sent(mail) == [{"body": "two"}]

    talk.model.answer("Done.")
    talk.answer(first, allow=False)
    assert [one["tool"] for one in talk.results()[1:]] == [MAIL, "search_knowledge_base", MAIL]
    assert ["error" in one for one in talk.results()[1:]] == [True, False, False]


def test_the_rounds_of_a_turn_are_counted_over_its_interruptions(talk, mail):
    (pending,) = asked(talk)
    talk.calls((MAIL, {"body": "third round"}))
    (pending,) = talk.answer(pending, allow=True)["pending_calls"]
    talk.model.answer("Enough.")

    assert talk.answer(pending, allow=True)["message"]["content"] == "Enough."

    assert ["tools" in one.body for one in talk.model.requests] == [True, True, True, False]


def test_another_message_refuses_what_waits(talk, mail):
    (pending,) = asked(talk)
    talk.model.answer("Something else, then.")

    talk.say("Never mind", confirm=False)

    assert talk.results()[-1]["error"].startswith("not sent: the person did not allow")
    roles = [one["role"] for one in talk.stored()["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "user", "assistant"]
    assert "has been answered already" in detail_of(talk, pending, 409)
    assert sent(mail) == []
    with database.scope():
        assert PausedTurn.select().count() == 0


def test_the_same_message_again_asks_again_without_the_model(talk, mail):
    (pending,) = asked(talk)
    requests = len(talk.model.requests)

    assert talk.say()["pending_calls"] == [pending]

    assert len(talk.model.requests) == requests
    talk.model.answer("Not sent, then.")
    assert talk.say(confirm=False)["message"]["content"] == "Not sent, then."
    assert sent(mail) == []


def test_a_second_answer_is_a_409_and_an_unknown_call_a_404(talk, mail):
    (pending,) = asked(talk)
    talk.model.answer("Sent.")
    talk.answer(pending, allow=True)

    detail_of(talk, pending, 409)
    detail_of(talk, {"id": "0" * 32}, 404)
    talk.id = "deadbeef"
    detail_of(talk, pending, 404)
    assert len(sent(mail)) == 1


def detail_of(talk, pending, status):
    path = f"/api/chat/conversations/{talk.id}/calls/{pending['id']}"
    return detail(talk.client.post(path, json={"allow": True}), status)


def test_parallel_answers_run_a_call_once(talk, mail):
    (pending,) = asked(talk)
    talk.model.answer("Sent.")
    path = f"/api/chat/conversations/{talk.id}/calls/{pending['id']}"
    statuses = []

    def answer():
        statuses.append(talk.client.post(path, json={"allow": True}).status_code)

    threads = [threading.Thread(target=answer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(statuses) == [200, 409, 409, 409]
    assert len(sent(mail)) == 1


# ---------------------------------------------------------------------------------------------- when it fails


def test_a_restart_loses_nothing(talk, mail, remote):
    (pending,) = asked(talk)
    database.close_store()

    talk.client = Client(create_app(remote))
    assert talk.stored()["pending_calls"] == [pending]
    talk.model.answer("Sent.")
    assert talk.answer(pending, allow=True)["message"]["content"] == "Sent."
    assert sent(mail) == [{"body": "Your book is due"}]


def test_after_a_failure_of_the_model_the_same_message_goes_on_and_no_call_runs_twice(talk, mail):
    (pending,) = asked(talk)
    talk.model.fail(500)
    talk.answer(pending, allow=True, status=502)
    assert len(sent(mail)) == 1

    talk.model.answer("It was sent.")
    assert talk.say()["message"]["content"] == "It was sent."

    assert len(sent(mail)) == 1
    assert "Sunny" in talk.model.requests[-1].text


def test_a_crash_while_a_call_runs_is_told_and_the_call_not_repeated(talk, mail, remote, monkeypatch):
    (pending,) = asked(talk)

    class Killed(BaseException):
        """As if the process ended here."""

    def die(*args, **options):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(chat.confirmation, "keep_result", die)
        with pytest.raises(Killed):
            chat.answer_call(remote, talk.id, pending["id"], allow=True)
    database.close_store()
    talk.client = Client(create_app(remote))
    detail_of(talk, pending, 409)

    talk.model.answer("I do not know whether it was sent.")
    talk.say()

    assert len(sent(mail)) == 1
    assert talk.results()[-1]["error"].startswith("interrupted")


def test_a_call_does_not_go_to_another_address_than_the_one_that_was_shown(talk, mail):
    (pending,) = asked(talk)
    with FakeMCP(stateless=True, tools=[SEND]) as other:
        talk.client.put("/api/mcp-servers/mail", json={"url": other.url})
        talk.model.answer("It moved.")
        talk.answer(pending, allow=True)

        assert sent(other) == sent(mail) == []
    assert "the address has changed" in talk.results()[-1]["error"]


def test_a_conversation_takes_its_pending_calls_along(talk, mail):
    (pending,) = asked(talk)

    assert talk.client.delete(f"/api/chat/conversations/{talk.id}").status_code == 200

    detail_of(talk, pending, 404)
    with database.scope():
        assert AskedCall.select().count() == PausedTurn.select().count() == 0


def test_fields_that_a_provider_requires_again_outlast_the_question(talk, mail):
    talk.reads()
    talk.calls((MAIL, {"body": "hello"}), extra_content={"google": {"thought_signature": "abc"}})
    (pending,) = talk.say()["pending_calls"]
    talk.model.answer("Sent.")
    talk.answer(pending, allow=True)

    calls = [one["tool_calls"] for one in talk.model.requests[-1].body["messages"] if one.get("tool_calls")]
    assert calls[-1][0]["extra_content"] == {"google": {"thought_signature": "abc"}}
    assert all("extra_content" not in (one["tool_calls"] or "") for one in talk.stored()["messages"])


def test_a_folder_of_the_version_before_gets_the_tables_and_trusts_no_server(client, settings):
    with database.scope():
        McpServer.create(id="mail", name="Mail", url="https://mail.example/mcp", created_at=utc_now())
        for table in ("asked_calls", "paused_turns"):
            db.execute_sql(f"DROP TABLE {table}")
        db.execute_sql("ALTER TABLE mcp_servers DROP COLUMN trusted")
        db.execute_sql("DELETE FROM schema_migration WHERE name LIKE '0018%'")
    database.close_store()

    migrated = Client(create_app(settings))
    assert [one["trusted"] for one in migrated.get("/api/mcp-servers").json["servers"]] == [False]
    with database.scope():
        assert PausedTurn.select().count() == AskedCall.select().count() == 0


@pytest.mark.slow
def test_two_workers_run_a_call_once_and_a_killed_service_goes_on(tmp_path, fake_llm, mail):
    settings = {"llm_base_url": fake_llm.url, "llm_model": "scripted", "llm_api_key": "sk-scripted-secret"}
    made = {"id": "call_0", "type": "function", "function": {"name": MAIL, "arguments": '{"body": "one"}'}}
    with Service(tmp_path, "-w", "2", dev_mode="true", api_key="k" * 40, **settings) as service:
        server = {"id": "mail", "name": "Mail", "url": mail.url}
        assert service.call("POST", "/api/mcp-servers", json=server).status_code == 200
        fake_llm.answer(None, tool_calls=[made])
        fake_llm.answer(None, tool_calls=[made])
        body = {"message": "Hello", "conversation_id": "c0ffee", "confirm": True}
        (pending,) = service.call("POST", "/api/chat/send", json=body).json()["pending_calls"]
        assert len(sent(mail)) == 1
        service.kill()
        service.start()

        assert service.get("/api/chat/conversations/c0ffee")["pending_calls"] == [pending]
        fake_llm.answer("Sent.")
        path = f"/api/chat/conversations/c0ffee/calls/{pending['id']}"
        answers = together(*[lambda: service.call("POST", path, json={"allow": True})] * 8)

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert len(sent(mail)) == 2
