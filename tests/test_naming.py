"""What of a screen belongs in its title (`rules/naming.py`): weights that fit the measures; the choice."""

import pytest

from benchmarks import labelled
from engines.lines import Line, Page
from rules import naming
from rules.layout import Layout

SCREEN = [
    ("09:41", 60, 40, 32), ("Departures", 60, 180, 64), ("Waterloo Station", 60, 300, 40),
    ("Northern line", 60, 480, 36), ("2 min", 900, 480, 36), ("Bakerloo line", 60, 620, 36),
    ("5 min", 900, 620, 36), ("Jubilee line", 60, 760, 36), ("9 min", 900, 760, 36),
]  # fmt: skip


def page(texts=SCREEN):
    lines = [
        Line(text, 0.99, left, top, left + 18 * len(text), top + height) for text, left, top, height in texts
    ]
    return Page(1080, 2340, lines)


@pytest.mark.parametrize(
    "path", [naming.WEIGHTS, labelled.HELD_OUT / naming.WEIGHTS.name], ids=["all", "half"]
)
def test_each_measure_has_a_weight_for_each_of_its_ranges(path):
    weights = naming._weights(path)
    _, _, measured = next(naming.measures(Layout(page()).main, "", ""))
    assert weights.measures.keys() == measured.keys()
    assert all(
        len(counts) == len(ends) + 1 and ends == sorted(ends) for ends, counts in weights.measures.values()
    )


def test_the_heading_is_expected_in_a_title_before_buttons_and_times():
    found = [part.text for part in naming.parts(Layout(page()), "", "")]
    assert found[0] == "Departures"
    assert not {"09:41", "2 min", "5 min", "9 min"} & set(found)


def test_a_title_has_at_most_two_texts_in_the_order_in_which_they_are_read():
    parts = naming.parts(Layout(page()), "", "")
    chosen = naming.chosen(parts)
    assert 1 <= len(chosen) <= naming.MOST_PARTS
    assert [part.lines[0].top for part in chosen] == sorted(part.lines[0].top for part in chosen)
    assert naming.chosen([]) == []


def test_a_text_that_says_what_another_says_is_not_chosen_beside_it():
    line = page().lines[1]
    said = [naming.Part(text, (line,), 0.9) for text in ("Departures", "DEPARTURES", "Waterloo")]
    assert [part.text for part in naming.chosen(said)] == ["Departures", "Waterloo"]


def test_a_page_of_many_lines_is_looked_at_from_its_beginning():
    many = page([(f"Line {number} of the page", 60, 40 * number, 30) for number in range(3_000)])
    assert len(naming.parts(Layout(many), "", "")) <= naming.MOST_TEXTS
