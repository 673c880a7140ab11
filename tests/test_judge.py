"""`make judge`: its labels and made-up screens are sound, and a drawn screen is read and judged."""

import contextlib
import csv
import hashlib
import io
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from benchmarks import bring, described, drawn, judge, labelled
from engines.findings import CATEGORIES, INTENTS, Findings
from engines.records import Field, Record
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


def test_a_record_counts_against_the_rules_where_a_person_sees_none_and_not_where_nobody_looked(capsys):
    found = Findings(records=[Record("Article", [Field("headline", "Tea")])])
    cases = [
        labelled.Case(name, Path(name), "Notes", ["other"], "en", recorded=looked)
        for name, looked in (("a", True), ("b", True), ("c", False))
    ]

    judge.report("drawn", [(case, found) for case in cases], errors=False)

    assert "none where a person has none 0 of 2" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chat-en", "pay-en", "settings-en", "pay-zh"])
def test_a_drawn_screen_is_read_and_judged_as_it_is_labelled(name):
    screen = SCREENS[name]
    picture = drawn.draw(screen)
    language = "zh" if name.endswith("-zh") else "en"
    model = embedded.LocalModel(ocr_model="small", language=language)
    with contextlib.closing(model):
        found = model.analyse(io.BytesIO(picture))

    assert Image.open(io.BytesIO(picture)).size == drawn.SIZE
    assert found.content_category in screen.categories
    assert found.app_name == screen.app
    assert any(word.casefold() in found.title.casefold() for word in screen.title)


def test_the_labelled_pictures_name_their_sources_and_have_the_contracts_categories():
    with labelled.PICTURES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    assert {row["category"] for row in rows} == set(CATEGORIES)
    assert {row["second_category"] for row in rows} <= {"", *CATEGORIES}
    assert len({row["sha256"] for row in rows}) == len(rows) >= 600
    assert all(row["repo"].count("/") == 1 and len(row["source_commit"]) == 40 for row in rows)
    assert all(len(row["sha256"]) == 64 and row["source_path"] for row in rows)
    judging = sum(labelled.is_judging(row["app_name"]) for row in rows)
    assert 0.25 < judging / len(rows) < 0.6


def test_pictures_are_brought_once_and_kept_only_if_they_are_the_same(tmp_path):
    content = b"picture"
    digest = hashlib.sha256(content).hexdigest()
    row = {"sha256": digest, "repo": "some/app", "source_commit": "c0", "source_path": "shots/my app.PNG"}
    asked = []

    def get(address):
        asked.append(address)
        if "gone" in address:
            raise OSError("not there")
        return content

    others = [{**row, "sha256": "0" * 64}, {**row, "sha256": "1" * 64, "source_path": "gone.png"}]
    assert bring.bring([row, *others], tmp_path, get) == (1, 2)
    assert bring.bring([row], tmp_path, get) == (1, 0)

    assert asked[0] == "https://raw.githubusercontent.com/some/app/c0/shots/my%20app.PNG"
    assert len(asked) == 3
    assert [path.name for path in tmp_path.iterdir()] == [f"{digest[:16]}.png"]
