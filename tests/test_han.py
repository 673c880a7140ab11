"""Traditional and simplified Chinese characters, and their sounds."""

import pytest
from hypothesis import given, strategies

from writings import han


def test_traditional_characters_become_simplified_ones():
    assert han.simplified("臺灣高鐵電子車票 Zug") == "台湾高铁电子车票 Zug"


@given(strategies.text(alphabet=strategies.characters(min_codepoint=0x3400, max_codepoint=0x9FFF)))
def test_a_text_keeps_its_length_and_changes_once(text):
    once = han.simplified(text)

    assert len(once) == len(text)
    assert han.simplified(once) == once


@pytest.mark.parametrize(
    ("word", "way"),
    [
        ("huochepiao", ["huo", "che", "piao"]),
        ("xian", ["xi", "an"]),
        ("lvxing", ["lu", "xing"]),
        ("che1piao4", ["che", "piao"]),
        ("zhuang", ["zhuang"]),
    ],
)
def test_a_word_is_divided_into_syllables(word, way):
    assert way in han.syllables(word)


@pytest.mark.parametrize("word", ["hotel", "xyz", "", "2025", "火车", "a" * 60])
def test_what_is_no_pinyin_has_no_syllables(word):
    assert han.syllables(word) == []


def test_a_character_is_found_by_each_of_its_common_readings():
    assert "行" in han.characters("xing")
    assert "行" in han.characters("hang")
    assert han.characters("tel") == ""
