"""Vectors of a configured provider: what is sent, kept and compared, and what happens when it fails."""

import base64
import contextlib
import dataclasses
import math
import random
import struct
from datetime import timedelta

import pytest

import database
import gate
import meaning
from app import create_app
from clock import utc_now
from database import db
from engines import ledger, vectors
from errors import AnswerUnusable, ProviderDown, ProviderRefused, Unavailable
from models import Meaning, MeaningDue, MeaningSigns, SpendLedger
from tests.support.client import Client
from tests.support.library import Library

WORDS = ("rain", "soup", "ship", "code", "dinner", "shoes", "bank", "music", "garden")
CARD = "Card number 4532 0151 1283 0366"
DIMENSIONS = 100  # no multiple of eight, nor of 64


def vector(text, dimensions=DIMENSIONS):
    """Texts with a word of `WORDS` in common lie together; all of them have much in common."""
    found = [0.5 + random.Random(place).random() for place in range(dimensions)]
    for place, word in enumerate(WORDS):
        found[place] += 6.0 * (word in text)
    return found


def provider(dimensions=DIMENSIONS):
    """An answer of the server to a request for vectors, in another order than asked."""

    def answer(request):
        assert request.path == "/v1/embeddings", request.path
        data = [
            {"object": "embedding", "index": index, "embedding": vector(text, dimensions)}
            for index, text in enumerate(request.body["input"])
        ]
        return {"data": data[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}

    return answer


@pytest.fixture
def library(tmp_path, fake_llm):
    library = Library(tmp_path / "data")
    library.settings = dataclasses.replace(
        library.settings,
        embeddings="vectors-1",
        dev_mode=True,
        llm_base_url=fake_llm.url,
        llm_api_key="sk-secret",
        llm_model="eyes-1",
    )
    fake_llm.default = provider()
    yield library
    database.close_store()


@pytest.fixture
def client(library):
    return Client(create_app(library.settings))


def work_off(library, **options):
    while meaning.embed_some(library.settings, **options):
        pass


def fill(library):
    return {word: library.add(f"Screen about {word} number {place}") for place, word in enumerate(WORDS)}


def sent(fake_llm):
    return [text for request in fake_llm.requests for text in request.body["input"]]


def provided(table):
    """The rows of the provider."""
    return table.select().where(table.maker == "provider")


def mark_of(photo_id):
    with database.scope():
        row = provided(Meaning).where(Meaning.photo == photo_id).first()
        return row and row.model


def left():
    with database.scope():
        return {row.photo_id: row.failures for row in provided(MeaningDue)}


def related(client, text, **query):
    return client.get("/api/search/related", query_string={"q": text, **query}).json


def test_texts_are_sent_together_newest_first_and_the_cost_is_recorded(library, fake_llm):
    ids = fill(library)
    work_off(library)
    (request,) = fake_llm.requests
    assert request.body["model"] == "vectors-1"
    assert request.key == "sk-secret"
    assert request.body["input"] == [f"Screen about {word} number {n}" for n, word in enumerate(WORDS)][::-1]
    assert left() == {}
    mark = f"{fake_llm.url.removesuffix('/v1')} vectors-1 {DIMENSIONS}"
    assert {mark_of(photo_id) for photo_id in ids.values()} == {mark}
    with database.scope():
        (row,) = SpendLedger.select()
        assert (row.purpose, row.model, row.calls, row.prompt_tokens) == (
            "meaning",
            "custom/vectors-1",
            1,
            7,
        )
        signs = provided(MeaningSigns).where(MeaningSigns.photo == ids["rain"]).get().signs
        packed = provided(Meaning).where(Meaning.photo == ids["rain"]).get().vector
    assert (len(packed), len(signs)) == (DIMENSIONS, 16)


def test_a_photo_is_found_by_the_providers_vectors_and_others_by_none(library, client, fake_llm):
    ids = fill(library)
    work_off(library)
    found = related(client, "will it rain")
    assert (found["available"], found["model"]) == (True, "custom/vectors-1")
    assert [item["id"] for item in found["items"]] == [ids["rain"]]
    assert found["items"][0]["grade"] == "probable"
    assert fake_llm.requests[-1].body["input"] == ["will it rain"]
    assert related(client, "volcano")["items"] == []


def test_nothing_sensitive_is_sent_and_a_vector_goes_when_it_becomes_so(library, client, fake_llm):
    ids = fill(library)
    held = library.add(f"A garden\n{CARD}")
    with database.scope(), db.atomic():
        gate.mark(ids["soup"], CARD)  # by what was read on it, which its text does not show
    work_off(library)
    assert not any("4532" in text or "soup" in text for text in sent(fake_llm))
    assert (mark_of(held), mark_of(ids["soup"])) == (None, None)

    before = len(sent(fake_llm))
    assert related(client, f"soup {CARD}")["model"] in ("local", "")
    assert len(sent(fake_llm)) == before

    with database.scope(), db.atomic():
        gate.mark(ids["rain"], CARD)
        gate.set_cleared(held, cleared=True)
    work_off(library)
    assert mark_of(ids["rain"]) is None
    assert mark_of(held) is not None
    assert sent(fake_llm)[before:] == [f"A garden\n{CARD}"]


def test_what_the_gate_lets_pass_when_it_is_off_is_sent(library, fake_llm):
    library.add(f"A garden\n{CARD}")
    meaning.embed_some(dataclasses.replace(library.settings, sensitive="off"))
    assert any(CARD in text for text in sent(fake_llm))


def test_without_the_setting_or_without_a_provider_nothing_is_sent(library, fake_llm):
    fill(library)
    for changes in ({"embeddings": None}, {"llm_base_url": None}):
        assert not meaning.embed_some(dataclasses.replace(library.settings, **changes))
    assert fake_llm.requests == []
    assert len(left()) == len(WORDS)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="no vectors"),
        pytest.param([], id="none"),
        pytest.param([{"embedding": vector("")}] * 2, id="too many"),
        pytest.param([{"index": 1, "embedding": vector("")}], id="of another text"),
        pytest.param([{"index": True, "embedding": vector("")}], id="index is no number"),
        pytest.param([{"embedding": [0.1] * 8}], id="short"),
        pytest.param([{"embedding": [0.1] * 4_097}], id="long"),
        pytest.param([{"embedding": [0.0] * 100}], id="zero"),
        pytest.param([{"embedding": [math.nan] * 100}], id="no numbers"),
        pytest.param([{"embedding": [0.1] * 99 + [math.inf]}], id="infinite"),
        pytest.param([{"embedding": [10**400] * 100}], id="huge"),
        pytest.param([{"embedding": ["0.1"] * 100}], id="texts"),
        pytest.param([{"embedding": [True] * 100}], id="booleans"),
        pytest.param([{"embedding": "AACAPwAAgD8="}], id="packed, short"),
        pytest.param([{"embedding": "AACAfwAA" * 64}], id="packed, no numbers"),
        pytest.param([{"embedding": "AACA" * 10_000}], id="packed, long"),
        pytest.param([{"embedding": "Zürich"}], id="not packed"),
        pytest.param([["embedding"]], id="lists"),
    ],
)
def test_an_answer_without_good_vectors_is_refused_and_paid(library, fake_llm, data):
    photo_id = library.add("text")
    fake_llm.reply({"data": data, "usage": {"prompt_tokens": 5}})
    with pytest.raises(AnswerUnusable):
        meaning.embed_some(library.settings)
    assert left() == {photo_id: 1}
    assert mark_of(photo_id) is None
    with database.scope():
        assert ledger.tokens_today(now=utc_now()) == 5


def packed(values):
    return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(lambda place, values: {"index": place, "embedding": packed(values)}, id="base64"),
        pytest.param(lambda place, values: {"embedding": values}, id="without an index"),
        pytest.param(lambda place, values: {"index": 0, "embedding": values}, id="index always 0"),
    ],
)
def test_the_forms_that_servers_send_are_taken_each_vector_for_its_text(library, fake_llm, row):
    ids = fill(library)

    def answer(request):  # without usage
        return {"data": [row(place, vector(text)) for place, text in enumerate(request.body["input"])]}

    fake_llm.default = answer
    work_off(library)
    assert left() == {}
    with database.scope():
        kept = {one.photo_id: bytes(one.vector) for one in provided(Meaning)}
        text = meaning.text_of(ids["rain"])
    assert (
        kept[ids["rain"]]
        == vectors.quantised(struct.unpack("<100f", struct.pack("<100f", *vector(text)))).vector
    )
    assert len(set(kept.values())) == len(WORDS)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "input (992 tokens) is too large to process. increase the physical batch size (512)"),
        (500, "the input length exceeds the context length"),
        (413, "Payload Too Large"),
        (422, "batch size 10 > maximum allowed batch size 8"),
    ],
)
def test_a_server_that_finds_a_text_too_long_is_not_down(library, fake_llm, status, message):
    photo_id = library.add("text")
    fake_llm.fail(status, message)
    with pytest.raises(AnswerUnusable):
        meaning.embed_some(library.settings)
    assert left() == {photo_id: 1}
    work_off(library)
    assert mark_of(photo_id)


def test_an_answer_too_large_or_no_json_is_refused(library, fake_llm):
    library.add("text")
    for body in (b"[" * 200_000, b"x" * 3_000_000, b'{"data": [', b""):
        fake_llm.reply(body)
        with pytest.raises(AnswerUnusable):
            meaning.embed_some(library.settings)
        with database.scope():
            MeaningDue.update(failures=0).where(MeaningDue.maker == "provider").execute()


def test_texts_that_a_server_refuses_are_sent_alone_and_shorter_and_given_up_at_last(library, fake_llm):
    library.add("first")
    work_off(library)
    fake_llm.requests.clear()
    good, bad = library.add("good"), library.add("poison " + "x" * 1_000)
    answer = provider()

    def choosy(request):
        if any("poison" in text for text in request.body["input"]):
            return {"error": {"message": "too long", "code": 400}}
        return answer(request)

    fake_llm.default = choosy
    for _ in range(6):
        with contextlib.suppress(AnswerUnusable):
            meaning.embed_some(library.settings)
    assert [len(request.body["input"]) for request in fake_llm.requests] == [2, 1, 1, 1]
    assert max(map(len, sent(fake_llm)[2:])) == vectors.SHORT_TEXT
    assert left() == {bad: meaning.MOST_FAILURES}
    assert mark_of(good)


def test_while_a_provider_is_down_nothing_is_lost_and_what_is_claimed_waits(library, fake_llm):
    photo_id = library.add("text")
    fake_llm.fail(503, headers={"Retry-After": "90"})
    with pytest.raises(ProviderDown) as caught:
        meaning.embed_some(library.settings)
    assert caught.value.retry_after == 90
    assert left() == {photo_id: 0}
    fake_llm.fail(401, "Wrong key sk-secret.")
    with pytest.raises(ProviderRefused) as refused:
        meaning.embed_some(library.settings)
    assert "sk-secret" not in refused.value.detail
    with database.scope():
        meaning._claim("provider", utc_now(), together=10)  # another worker
    assert not meaning.embed_some(library.settings)
    assert meaning.embed_some(
        library.settings, clock=lambda: utc_now() + timedelta(seconds=meaning.LEASE + 1)
    )
    assert mark_of(photo_id)


def test_the_daily_limit_stops_searches_and_vectors(library, client, fake_llm):
    fill(library)
    work_off(library)
    library.add("one more")
    limited = dataclasses.replace(library.settings, daily_token_limit=7)
    before = len(fake_llm.requests)
    with pytest.raises(Unavailable):
        meaning.embed_some(limited)
    assert related(Client(create_app(limited)), "will it rain")["model"] != "custom/vectors-1"
    assert len(fake_llm.requests) == before


def test_another_model_makes_all_vectors_again_and_is_never_compared_with_the_first(
    library, fake_llm, monkeypatch
):
    ids = fill(library)
    work_off(library)
    monkeypatch.setattr(meaning, "TOGETHER", 4)
    library.settings = dataclasses.replace(library.settings, embeddings="vectors-2")
    fake_llm.default = provider(dimensions=200)
    client = Client(create_app(library.settings))
    before = len(fake_llm.requests)
    assert related(client, "will it rain")["model"] != "custom/vectors-2"
    assert len(fake_llm.requests) == before  # nothing to compare it with yet

    newest = library.add("the newest")
    assert meaning.embed_some(library.settings)
    assert mark_of(newest).endswith("vectors-2 200")
    assert mark_of(ids["rain"]).endswith("vectors-1 100")
    assert ids["rain"] in left()
    work_off(library)
    assert mark_of(ids["rain"]).endswith("vectors-2 200")
    found = related(client, "will it rain")
    assert (found["model"], found["items"][0]["id"]) == ("custom/vectors-2", ids["rain"])


def test_a_server_that_changes_its_dimensions_is_not_paid_for_everything_again(library, client, fake_llm):
    fill(library)
    work_off(library)
    fake_llm.default = provider(dimensions=200)
    library.add("one more")
    with pytest.raises(AnswerUnusable, match="200 numbers"):
        meaning.embed_some(library.settings)
    assert len(left()) == 1
    assert related(client, "will it rain")["model"] != "custom/vectors-1"


def test_a_search_does_not_wait_again_for_a_provider_that_failed(library, client, fake_llm):
    fill(library)
    work_off(library)
    fake_llm.fail(500)
    assert related(client, "will it rain")["model"] != "custom/vectors-1"
    before = len(fake_llm.requests)
    assert related(client, "will it rain")["model"] != "custom/vectors-1"
    assert len(fake_llm.requests) == before


def test_a_change_while_the_provider_answers_is_sent_again_and_the_deleted_stay_away(
    library, client, fake_llm
):
    changed, deleted = library.add("first"), library.add("second")
    answer = provider()

    def meanwhile(request):
        fake_llm.default = answer
        library.analyse_again(changed, "soup")
        client.delete(f"/api/photos/{deleted}")
        return answer(request)

    fake_llm.default = meanwhile
    work_off(library)
    assert sent(fake_llm)[-1] == "soup"
    assert mark_of(deleted) is None
    assert left() == {}


@pytest.mark.slow
def test_both_answer_together_each_photo_by_one_model(library, client, fake_llm):
    ids = fill(library)
    held = library.add(f"Weather forecast: showers and thunderstorms\n{CARD}")
    work_off(library)
    while meaning.make_one():
        pass
    found = related(client, "will it rain or be sunny this week", limit=20)
    assert found["model"] == "custom/vectors-1"
    shown = [item["id"] for item in found["items"]]
    assert set(shown) == {ids["rain"], held}
    fake_llm.fail(500)
    again = related(client, "will it rain tomorrow", limit=20)
    assert again["model"] == "local"
    assert held in [item["id"] for item in again["items"]]


@pytest.mark.slow
def test_signs_and_vectors_are_those_that_numpy_would_make():
    import numpy

    for dimensions in (64, 100, 1_536, 4_096):
        values = [random.Random(place).gauss(0, 1) for place in range(dimensions)]
        made = vectors.quantised(values)
        array = numpy.array(values)
        assert made.signs[: -(-dimensions // 8)] == numpy.packbits(array > 0).tobytes()
        assert len(made.signs) == vectors.signs_size(dimensions)
        again = numpy.frombuffer(made.vector, numpy.int8).astype(float)
        assert again @ array / numpy.linalg.norm(again) / numpy.linalg.norm(array) > 0.999
