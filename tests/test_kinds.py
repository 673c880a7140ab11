"""The phrases of kinds are sound, and none of weight belongs to one app."""

from collections import Counter

import pytest

from benchmarks import labelled
from engines.findings import CATEGORIES, INTENTS
from rules import kinds, wordlists
from rules.layout import Layout

OF_WEIGHT = 2.0
TABLE = wordlists.table("kinds")
PHRASES = [
    (kind, phrase, float(weight))
    for kind, entry in TABLE.items()
    for weight in entry
    if weight[0].isdigit()
    for phrase in wordlists.lines(entry[weight])
]


def test_each_kind_has_values_of_the_contract_and_each_phrase_one_weight():
    assert {entry["category"] for entry in TABLE.values()} == set(CATEGORIES)
    assert {entry["intent"] for entry in TABLE.values()} <= set(INTENTS)
    assert [
        twice for twice, count in Counter((kind, phrase) for kind, phrase, _ in PHRASES).items() if count > 1
    ] == []
    assert all(phrase == phrase.casefold() for _, phrase, _ in PHRASES)
    assert set(kinds.USUAL) == set(CATEGORIES) - {"other"}


def test_a_phrase_of_weight_is_a_word_or_a_few_and_no_line_of_one_screen():
    long = [phrase for _, phrase, weight in PHRASES if weight >= OF_WEIGHT and len(phrase) > 36]

    assert long == []


@pytest.mark.slow
@pytest.mark.skipif(
    not labelled.folders(), reason="the labelled screenshots are not part of the project: CORPUS"
)
def test_no_phrase_of_weight_is_of_one_app_that_nobody_looked_at():
    found: dict[tuple[str, str], set[tuple[bool, str]]] = {}
    for case in labelled.cases(labelled.folders()):
        for key in kinds.phrases(Layout(case.page)):
            found.setdefault(key, set()).add((case.judges, case.app))
    of_weight = {
        (kind, phrase.lstrip("=#") or phrase) for kind, phrase, weight in PHRASES if weight >= OF_WEIGHT
    }

    # Counted, not named: the judging half is not looked at.
    assert sum(len(apps) == 1 and next(iter(apps))[0] for key, apps in found.items() if key in of_weight) == 0
