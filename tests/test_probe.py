"""The test of the connection to the model: a word for whoever set it up, and never an error."""

import dataclasses
import io

import pytest
from PIL import Image

import database
import llm
from app import create_app
from tests.support.client import Client, detail

KEY = "sk-scripted-secret"
PATH = "/api/config/llm/test"


@pytest.fixture
def remote_client(remote):
    return Client(create_app(dataclasses.replace(remote, api_key="mine")))


def tokens_of(client):
    [row] = client.get("/api/usage").json["days"]
    return row["purpose"], row["model"], row["calls"], row["total_tokens"]


def test_the_embedded_model_needs_no_connection(client):
    answer = client.post(PATH).json

    assert answer == {
        "success": True,
        "message": "The embedded analyser needs no connection.",
        "model": "ocr-both",
        "milliseconds": 0,
    }
    assert client.get("/api/usage").json["days"] == []


def test_a_model_that_answers_is_asked_for_one_word_with_its_key_and_what_it_costs_is_counted(
    remote_client, fake_llm
):
    fake_llm.answer("Lantern.", usage={"prompt_tokens": 20, "completion_tokens": 1})
    answer = remote_client.post(PATH)

    assert answer.json["success"] is True
    assert (answer.json["message"], answer.json["model"]) == ("The model answers.", "scripted")
    assert answer.json["milliseconds"] >= 0
    [asked] = fake_llm.requests
    assert (asked.key, asked.body["model"], asked.body["max_tokens"]) == (KEY, "scripted", 256)
    assert len(asked.text) < 100
    [picture] = asked.images
    with Image.open(io.BytesIO(picture)) as drawn:
        assert drawn.size == (448, 160)
        assert drawn.convert("L").getextrema()[0] < 30  # there is a word on it
    assert tokens_of(remote_client) == ("test", "custom/scripted", 1, 21)


def test_a_model_that_does_not_see_is_told_from_one_that_does(remote_client, fake_llm):
    fake_llm.answer("I cannot see any picture.")
    answer = remote_client.post(PATH).json
    assert answer["success"] is False
    assert "does not see pictures" in answer["message"]

    fake_llm.fail(400, "image_url is not supported by this model")
    fake_llm.answer("ok")
    answer = remote_client.post(PATH).json
    assert "does not see pictures" in answer["message"]
    assert "image_url is not supported" in answer["message"]
    assert [len(request.images) for request in fake_llm.requests] == [1, 1, 0]


def test_what_was_just_stored_is_what_is_tested(remote_client, fake_llm):
    remote_client.put("/api/config/llm", json={"model": "another"})

    assert remote_client.post(PATH).json["model"] == "another"
    assert fake_llm.requests[0].body["model"] == "another"


@pytest.mark.parametrize(
    ("status", "said", "sentence"),
    [
        (
            401,
            f"Incorrect API key provided: {KEY}",
            "refuses this configuration (401): Incorrect API key provided: [key]",
        ),
        (404, "No such model", "refuses this configuration (404): No such model"),
        (429, "Slow down", "cannot answer now (429): Slow down"),
        (500, "Oops", "cannot answer now (500): Oops"),
        (400, "Nonsense", "refuses this request (400): Nonsense"),
    ],
)
def test_a_failure_of_the_provider_is_told_in_a_sentence_without_the_key(
    remote_client, fake_llm, status, said, sentence
):
    fake_llm.fail(status, said)
    fake_llm.fail(status, said)
    answer = remote_client.post(PATH)

    assert answer.status_code == 200
    assert answer.json["success"] is False
    assert sentence in answer.json["message"]
    assert KEY not in answer.get_data(as_text=True)
    assert remote_client.get("/api/usage").json["days"] == []


def test_an_answer_that_cannot_be_used_is_a_failure_that_was_paid_for(remote_client, fake_llm):
    fake_llm.reply({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 0}})

    assert remote_client.post(PATH).json["success"] is False
    assert tokens_of(remote_client) == ("test", "custom/scripted", 1, 5)


def test_nobody_at_the_address_and_an_address_that_may_not_be_called_are_told(settings, fake_llm):
    fake_llm.close()
    gone = dataclasses.replace(settings, dev_mode=True, api_key="mine", llm_base_url=fake_llm.url)
    private = dataclasses.replace(settings, api_key="mine", llm_base_url="https://10.0.0.1/v1")
    for unreachable, sentence in (
        (gone, "cannot be reached"),
        (private, "cannot be called as it is configured"),
    ):
        answer = Client(create_app(unreachable)).post(PATH)
        assert (answer.status_code, answer.json["success"]) == (200, False)
        assert sentence in answer.json["message"]


def test_a_model_that_says_nothing_is_not_waited_for_long(remote_client, fake_llm, monkeypatch):
    monkeypatch.setattr(llm, "DEADLINE", 0.3)
    fake_llm.stay_silent()
    answer = remote_client.post(PATH).json

    assert answer["success"] is False
    assert "cannot be reached" in answer["message"]
    assert answer["milliseconds"] >= 300


def test_the_database_is_free_while_the_model_thinks(remote_client, fake_llm):
    def meanwhile(request):
        with database.store().lock.exclusive(patience=0):
            alone.append(request.path)
        return "lantern"

    alone = []
    fake_llm.default = meanwhile

    assert remote_client.post(PATH).json["success"] is True
    assert alone == ["/v1/chat/completions"]


def test_the_limit_of_the_day_holds_here_too(remote, fake_llm):
    client = Client(create_app(dataclasses.replace(remote, api_key="mine", daily_token_limit=10)))
    fake_llm.answer("lantern")
    assert client.post(PATH).json["success"] is True
    refused = client.post(PATH).json

    assert refused["success"] is False
    assert "used up" in refused["message"]
    assert len(fake_llm.requests) == 1


def test_it_needs_the_key_of_the_service(remote_client, fake_llm):
    detail(remote_client.open.post(PATH), 401)

    assert fake_llm.requests == []
