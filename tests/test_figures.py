"""Days and numbers in a text, as terms that do not depend on their writing."""

import time

import pytest
from hypothesis import given, strategies

from writings import figures


def terms_of(text):
    return [term for figure in figures.find(text) for term in figure.terms]


@pytest.mark.parametrize(
    "text",
    [
        "2025-05-27", "2025/5/27", "2025.05.27", "2025年5月27日", "2025 年 5 月 27 日",
        "27.05.2025", "27/5/25",
        "5/27/2025", "27 may 2025", "27th of may 2025", "may 27, 2025", "27. mai 2025", "27-may-2025",
        "le 27 mai 2025", "27 mayo 2025",
    ],
)  # fmt: skip
def test_a_day_has_the_same_terms_however_it_is_written(text):
    assert set(terms_of(text)) - {"20250527"} == {"=2025-05-27", "=*05-27"}


@pytest.mark.parametrize("text", ["5/27", "27.5.", "may 27", "27 mai", "5月27日", "tue, 27th may"])
def test_a_day_without_its_year_has_a_term_of_its_own(text):
    assert terms_of(text) == ["=05-27"]


def test_a_day_that_may_be_in_two_months_is_both():
    assert set(terms_of("5/6")) == {"=05-06", "=06-05"}
    assert set(terms_of("5/6/2025")) == {"=2025-05-06", "=*05-06", "=2025-06-05", "=*06-05"}
    assert set(terms_of("2025/5/6")) == {"=2025-05-06", "=*05-06"}


@pytest.mark.parametrize(
    "text", ["12:30", "3.5 km", "45/100", "10%", "31.02.2025", "24 hours", "version 1.2.3", "99 problems", ""]
)
def test_what_is_no_figure_has_no_terms(text):
    assert terms_of(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.50", "1234"), ("1 234,50", "1234"), ("1.234.567", "1234567"), ("1'234.50", "1234"),
        ("4006 381 333 931", "4006381333931"), ("4471-9902-1185-7730", "4471990211857730"),
        ("de21 5001 0517 5407 3249 31", "de21500105175407324931"),
    ],
)  # fmt: skip
def test_a_number_in_groups_is_also_one(text, number):
    assert number in terms_of(text)


@given(strategies.text(alphabet="0123456789 .-/,年月日may", max_size=60))
def test_the_places_of_figures_are_in_the_text(text):
    assert all(0 <= one.start < one.end <= len(text) and one.terms for one in figures.find(text))


def test_a_long_text_of_digits_takes_little_time():
    begun = time.process_time()
    for text in ("1 " * 10_000, "12-" * 7_000, "5/" * 10_000, "2025年" * 4_000, "may " * 5_000):
        list(figures.find(text))
    assert time.process_time() - begun < 2
