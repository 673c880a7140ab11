"""The names of apps that are sure only together: what other screenshots of the library say."""

import itertools

import pytest

import llm
from engines.findings import Findings, Wordmark
from rules import wordmarks
from tests.support.drawing import draw

FEED = '{"rules": 1, "kind": "page"}'


class Embedded:
    """A model that finds on each picture what is planned for it, in the order of the uploads."""

    identity = "local/planned"

    def __init__(self):
        self.planned = []

    def analyse(self, picture, *, name="", text="", taken=None):
        return self.planned.pop(0)


@pytest.fixture
def add(client, monkeypatch, work_queue):
    """Upload a picture on which these names may be the app's, and analyse it; returns its id."""
    model, number = Embedded(), itertools.count()
    monkeypatch.setattr(llm, "model_for", lambda chosen, settings: model)

    def added(*marks, picture="", app=""):
        found = [Wordmark(*mark) for mark in marks]
        model.planned.append(Findings(app_name=app, summary="Words.", raw=FEED, wordmarks=found))
        text = picture or f"picture {next(number)}"
        photo_id = client.upload(draw(text), f"{text}.png").json["id"]
        work_queue()
        return photo_id

    return added


def app_of(client, photo_id):
    return client.get(f"/api/photos/{photo_id}").json["analysis"]["app_name"]


def test_a_likely_name_is_sure_where_another_photo_has_it_too(client, add):
    first = add(("Fernery", 0.5), ("Moss", 0.3))
    assert app_of(client, first) == ""

    second = add(("FERNERY", 0.4), ("Lichen", 0.3))
    third = add(("Bark", 0.5))

    assert app_of(client, first) == "Fernery"
    assert app_of(client, second) == "FERNERY"
    assert app_of(client, third) == ""
    found = client.get("/api/search?q=app:fernery").json["items"]
    assert {hit["id"] for hit in found} == {first, second}


def test_a_faint_name_stays_unsaid_and_a_name_that_was_found_stays(client, add):
    faint = add(("Settings", 0.1))
    sure = add(("Settings", 0.1), ("Fernery", 0.5), app="Moss")
    again = add(("Settings", 0.1), ("Fernery", 0.5))

    assert [app_of(client, one) for one in (faint, sure, again)] == ["", "Moss", "Fernery"]


def test_the_same_picture_says_nothing_more(client, add):
    first = add(("Fernery", 0.5), picture="ferns")
    copy = client.upload(draw("ferns"), "copy.png", device_id="another").json["id"]
    other = add(("Moss", 0.5))

    assert app_of(client, copy) == app_of(client, first) == app_of(client, other) == ""


def test_what_is_deleted_tells_nothing(client, add):
    gone = add(("Fernery", 0.5))
    client.post(f"/api/photos/{gone}/trash")
    client.delete(f"/api/photos/{gone}")

    assert app_of(client, add(("Fernery", 0.5))) == ""


def test_who_heads_a_conversation_is_on_other_screenshots_too():
    assert wordmarks.supported(0.4, [0.4], "conversation") < wordmarks.supported(0.4, [0.4], "page")
    assert wordmarks.supported(0.4, [], "page") == 0.4
