"""Chats in the real server: beside other requests, during a kill and a stop, and read for memories later."""

import contextlib
import http.client
import json
import threading

import pytest

from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import PATIENCE, Service, eventually


@pytest.fixture
def service(tmp_path, fake_llm):
    with Service(
        tmp_path, dev_mode="true", api_key="chat", llm_base_url=fake_llm.url, llm_model="m", language="en"
    ) as service:
        yield service


class Chat(threading.Thread):
    """A thread that sends one message from its own client address."""

    def __init__(self, service: Service, message: str, *, address: str = "127.0.0.1", **fields: str):
        super().__init__()
        self.status: int | None = None
        self.body: dict = {}
        self._service, self._address, self._content = service, address, {"message": message, **fields}
        self.start()

    def run(self) -> None:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._service.port, timeout=PATIENCE, source_address=(self._address, 0)
        )
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            headers = {**self._service.bearer, "Content-Type": "application/json"}
            connection.request("POST", "/api/chat/send", json.dumps(self._content), headers)
            answer = connection.getresponse()
            self.body = json.loads(answer.read())
            self.status = answer.status


def test_everything_else_answers_while_twelve_chats_hang(service, fake_llm):
    let_go = threading.Event()
    for _ in range(12):
        fake_llm.answer("At last.", after=let_go)
    chats = [Chat(service, f"Message {number}", address=f"127.0.0.{number + 2}") for number in range(12)]
    try:
        eventually(
            lambda: len(fake_llm.requests) + sum(chat.status == 503 for chat in chats) == 12,
            "all chats wait or are refused",
        )

        assert service.knock("GET", "/api/health").json() == {"status": "ok"}
        assert service.get("/api/photos")["total"] == 0
        assert service.upload(draw())["dedup"] is False
        assert service.get("/api/chat/conversations")["conversations"]
        assert len(fake_llm.requests) >= 4
        assert all(chat.status in (None, 503) for chat in chats)
    finally:
        let_go.set()
        for chat in chats:
            chat.join()

    assert {chat.status for chat in chats} == {200, 503}


def test_a_kill_in_the_middle_of_a_turn_loses_no_message(service, fake_llm):
    fake_llm.stay_silent()
    chat = Chat(service, "Are you there?", conversation_id="cafe")
    fake_llm.wait_for_requests(1)

    service.kill()
    chat.join()
    service.start()

    assert [row["content"] for row in service.get("/api/chat/conversations/cafe")["messages"]] == [
        "Are you there?"
    ]
    fake_llm.answer("Yes.")
    again = Chat(service, "Are you there?", conversation_id="cafe")
    again.join()
    assert [row["content"] for row in service.get("/api/chat/conversations/cafe")["messages"]] == [
        "Are you there?",
        "Yes.",
    ]


def test_a_turn_in_progress_is_finished_when_the_service_stops(service, fake_llm):
    let_go = threading.Event()
    fake_llm.answer("Just in time.", after=let_go)
    chat = Chat(service, "Hello", conversation_id="cafe")
    fake_llm.wait_for_requests(1)

    service.begin_to_stop()
    let_go.set()
    chat.join()

    assert chat.body["message"]["content"] == "Just in time."
    assert service.wait() == 0


def test_a_turn_is_read_for_memories_in_the_background(service, fake_llm: FakeLLM):
    fake_llm.answer("Good to know.")
    fake_llm.answer(
        {"memories": [{"content": "Is allergic to peanuts.", "category": "fact", "memory_type": "long_term"}]}
    )

    Chat(service, "I am allergic to peanuts.").join()

    memories = eventually(lambda: service.get("/api/memories")["items"], "the memory is written")
    assert [memory["content"] for memory in memories] == ["Is allergic to peanuts."]


def test_a_turn_that_was_not_read_before_a_kill_is_read_after_it(service, fake_llm):
    fake_llm.answer("Good to know.")
    fake_llm.stay_silent()
    Chat(service, "I am allergic to peanuts.").join()
    fake_llm.wait_for_requests(2)

    service.kill()
    fake_llm.answer(
        {"memories": [{"content": "Is allergic to peanuts.", "category": "fact", "memory_type": "long_term"}]}
    )
    service.start()

    eventually(lambda: service.get("/api/memories")["total"] == 1, "the memory is written")
