"""`make judge`: its labels and made-up screens are sound, and a drawn screen is read and judged."""

import contextlib
import io

import msgspec
import pytest
from PIL import Image

from benchmarks import described, drawn, labelled
from engines.findings import CATEGORIES, INTENTS
from rules import embedded

SCREENS = {screen.name: screen for screen in drawn.screens()}
LABELS = msgspec.json.decode(labelled.LABELS.read_bytes(), type=dict[str, labelled.Label])


def test_labels_and_screens_use_the_contracts_values():
    categories = {label.category for label in LABELS.values()}
    intents = {intent for label in LABELS.values() for intent in label.intents}
    for screen in SCREENS.values():
        categories.update(screen.categories)
        intents.update(screen.intents)

    assert categories == set(CATEGORIES)
    assert intents == set(INTENTS)
    assert len(SCREENS) >= 60


def test_descriptions_are_answered_by_labelled_screenshots_and_none_is_in_two_sets():
    sets = [{query for label in LABELS.values() for query in label.queries}]
    for descriptions in msgspec.json.decode(
        described.DESCRIPTIONS.read_bytes(), type=dict[str, dict[str, list[str]]]
    ).values():
        assert {name for names in descriptions.values() for name in names} <= set(LABELS)
        sets.append(set(descriptions))

    assert min(map(len, sets)) >= 50
    assert len(set().union(*sets)) == sum(map(len, sets))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chat-en", "pay-en", "settings-en", "pay-zh"])
def test_a_drawn_screen_is_read_and_judged_as_it_is_labelled(name):
    screen = SCREENS[name]
    picture = drawn.draw(screen)
    model = embedded.LocalModel(ocr_model="small", language="en")
    with contextlib.closing(model):
        found = model.analyse(io.BytesIO(picture))

    assert Image.open(io.BytesIO(picture)).size == drawn.SIZE
    assert found.content_category in screen.categories
    assert found.app_name == screen.app
    assert any(word.casefold() in found.title.casefold() for word in screen.title)
