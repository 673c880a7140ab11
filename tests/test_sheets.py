"""Records, agenda entries and threads of drawn sheets (`benchmarks/sheets.py`), a sample of each half."""

import pytest

from benchmarks import joined, sheet_counts
from benchmarks.sheet_layouts import JUDGING, TUNING
from benchmarks.sheets import sheets

EVERY = 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layouts", "types", "recall", "precision", "agenda"),
    [(TUNING, 0.92, 0.90, 0.96, 0.95), (JUDGING, 0.86, 0.83, 0.90, 0.90)],
    ids=["tuning", "judging"],
)
def test_what_is_drawn_is_read(layouts, types, recall, precision, agenda):
    counts = sheet_counts.report(layouts, every=EVERY)
    assert counts["types"] >= types * counts["sheets"]
    assert counts["right"] >= recall * counts["fields"]
    assert counts["right"] >= precision * counts["found"]
    assert counts["events right"] >= agenda * counts["events"]
    assert counts["events right"] >= agenda * counts["events found"]


@pytest.mark.slow
def test_sheets_are_the_same_each_time_and_of_all_types():
    names = [sheet.name for sheet in sheets(TUNING)]
    assert len(set(names)) == len(names) > 400
    first, again = (next(sheets(("beside",), types=("Invoice",))) for _ in range(2))
    assert first == again


@pytest.mark.slow
@pytest.mark.parametrize(("layouts", "recall"), [(TUNING, 0.95), (JUDGING, 0.8)], ids=["tuning", "judging"])
def test_screenshots_of_one_thing_are_joined(tmp_path, layouts, recall):
    counted = joined.count(tmp_path / "data", layouts, seed=1, beside=60)
    assert counted.wanted >= 200
    assert counted.precision >= 0.98
    assert counted.recall >= recall
