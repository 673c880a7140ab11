"""The learned vote: its weights are sound, and it works with and without a vector."""

import msgspec
import pytest

from engines.findings import CATEGORIES
from engines.lines import Line, Page
from engines.vectors import USE_DIMENSIONS
from rules import kinds, vote
from rules.layout import Layout
from rules.recorder import SCREENS

MODEL = msgspec.json.decode(vote.WEIGHTS.read_bytes(), type=vote.Model)
TYPES = msgspec.json.decode(vote.TYPES.read_bytes(), type=vote.Model)
FEW = ("Umbra", "Xylo and the others went away")


def layout(*texts):
    lines = [
        Line(text, 0.99, 60, 200 + 90 * n, 60 + 20 * len(text), 240 + 90 * n) for n, text in enumerate(texts)
    ]
    return Layout(Page(1080, 2400, lines))


def towards(category):
    """A vector that speaks for this category."""
    column = [row[MODEL.choices.index(category)] for row in MODEL.with_vector.vector]
    largest = max(map(abs, column))
    return bytes(round(127 * one / largest) % 256 for one in column)


def test_the_weights_are_a_small_file_with_their_figures():
    assert vote.WEIGHTS.stat().st_size + vote.TYPES.stat().st_size < 500_000
    assert set(MODEL.choices) == set(CATEGORIES)
    assert set(TYPES.choices) == {*SCREENS, *CATEGORIES}
    for weights in (MODEL.with_vector, MODEL.without):
        assert weights.figures["apps"] > 100
        assert weights.figures["cross-validated by app"]["right"] > 0.7
        assert {len(column) for column in weights.measures.values()} == {len(CATEGORIES)}
    assert len(MODEL.with_vector.vector) == USE_DIMENSIONS
    assert len(TYPES.with_vector.vector) == 2 * USE_DIMENSIONS  # the text's and the head's
    assert not MODEL.without.vector


def test_every_measure_has_a_weight():
    every_kind = dict.fromkeys(kinds.CATEGORY, 1.0)
    known = set(vote.measures(layout(*FEW), every_kind))

    # Kinds that no labelled screenshot had evidence for are left out.
    assert len(known - set(MODEL.without.measures)) < 10
    assert set(MODEL.without.measures) <= known | {f"rules {category}" for category in CATEGORIES}


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_vector_of_the_text_has_a_say(category):
    few = layout(*FEW)
    measured = vote.measures(few, {})
    without, given = (
        vote.shares(vote.WEIGHTS, measured, vote.unit(vector)) for vector in (b"", towards(category))
    )

    assert sum(given.values()) == pytest.approx(1)
    assert given[category] == max(given.values())
    assert given[category] > without[category]
    assert vote.recognise(few, lambda text: towards(category)).category == category


def test_a_category_without_evidence_for_a_kind_has_its_usual_one():
    found = vote.recognise(layout(*FEW), lambda text: towards("finance"))

    assert (found.kind, found.category) == ("accounts", "finance")


def test_a_machine_without_vectors_goes_by_the_screen_alone():
    chat = layout("WhatsApp", "Type a message", "Photo", "Voice message", "Online")

    assert vote.recognise(chat, lambda text: b"") == vote.recognise(chat)
    assert vote.recognise(chat).category == "chat"


def test_the_type_of_a_record_is_voted_for_only_with_a_vector():
    few = layout(*FEW)
    types = vote.recognise(few, lambda text: towards("chat")).types

    assert set(types) == set(TYPES.choices)
    assert sum(types.values()) == pytest.approx(1)
    assert not vote.recognise(few).types


def test_a_picture_without_text_is_not_voted_on():
    assert vote.recognise(layout()) == kinds.Verdict("", 0.0, "other")


def test_a_page_of_text_is_no_chat_where_no_vector_says_so():
    texts = (
        "The lighthouse was built in 1862 by people",
        "who came over the ice with stones on sledges.",
        "In the first winter the lamp burned with oil.",
        "Its keepers wrote down each ship that passed.",
    )
    lines = [Line(text, 0.99, 60, 200 + 60 * n, 980, 240 + 60 * n) for n, text in enumerate(texts)]

    assert vote.recognise(Layout(Page(1080, 2400, lines))).category == "other"
