"""Any text becomes storable, and is shortened by exact rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text import CUT_MARK, cut, encodable, fraction, one_line, shortened, storable

ANY_TEXT = st.text(st.characters() | st.sampled_from("\0 \n…\ud83d\ude00"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\0b", "ab"),
        ("cut \ud83d in two", "cut  in two"),
        ("\ude00\ud83d", ""),
        ("😀 中文", "😀 中文"),
        (" a\n", " a\n"),
    ],
)
def test_a_storable_text_has_no_nul_and_no_lone_surrogates(text, expected):
    assert storable(text) == expected


def test_an_encodable_text_may_have_a_nul():
    assert encodable("a\0b\ud83d") == "a\0b"


@given(ANY_TEXT)
def test_any_text_becomes_storable(text):
    assert "\0" not in storable(text).encode().decode()
    assert storable(storable(text)) == storable(text)


@pytest.mark.parametrize(
    ("text", "expected"), [("  a \t\r\n b\u3000c ", "a b c"), ("a b", "a b"), (" \n", "")]
)
def test_a_line_has_single_blanks(text, expected):
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("four", 4, "four"),
        ("fiver", 4, "fiv…"),
        ("two words", 5, "two…"),
        ("天地玄黄", 3, "天地…"),
        ("", 1, ""),
        ("ab", 1, "…"),
    ],
)
def test_a_shortened_text_ends_with_an_ellipsis_within_the_limit(text, most, expected):
    assert shortened(text, most) == expected


@given(ANY_TEXT, st.integers(1, 20))
def test_a_shortened_text_is_never_longer_than_allowed(text, most):
    assert len(shortened(text, most)) <= most


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("four", 4, "four"), ("fiver", 4, f"five{CUT_MARK}"), ("a bc", 2, f"a {CUT_MARK}")],
)
def test_a_cut_text_keeps_all_characters_up_to_the_limit_and_is_marked(text, most, expected):
    assert cut(text, most) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.3, 0.3),
        (1, 1.0),
        (7, 1.0),
        (math.inf, 1.0),
        (0, 0.0),
        (-0.1, 0.0),
        (-math.inf, 0.0),
        (math.nan, 0.0),
    ],
)
def test_a_fraction_is_from_0_to_1(value, expected):
    found = fraction(value)
    assert (found, type(found)) == (expected, float)
