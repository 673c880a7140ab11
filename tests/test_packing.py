"""Packed lines come back exactly, are small, and no damage does more than refuse them."""

import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import packing
from engines.lines import Line

PIXELS = st.integers(-5, 30_000)
LINES = st.lists(
    st.builds(
        lambda text, doubt, left, top, width, height: Line(
            text, round(1 - doubt / 100, 2), left, top, left + width, top + height
        ),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=40),
        st.integers(0, 100), PIXELS, PIXELS, st.integers(0, 4_000), st.integers(0, 400),
    ),
    max_size=30,
)  # fmt: skip
TEXTS = """\
9:41|Library account|Loans and reservations|The Left Hand of Darkness|Ursula K. Le Guin
Due on 27 November 2026|Renewed twice|A Field Guide to Getting Lost|Rebecca Solnit|Due on 3 December 2026
Can be renewed once|Reservations|The Overstory|Richard Powers|Ready for pickup at the main desk until Friday
Charges|Balance: 2.40 EUR|Pay now|Opening hours|Monday to Friday 10:00–19:00|Saturday 10:00–14:00
Home|Search|Account|More"""
# A screen of a phone, as it is read.
SCREEN = [
    Line(text, 1.0, 44 + 90 * (row % 3 == 1), 80 + 90 * row, 44 + 21 * len(text), 122 + 90 * row)
    for row, text in enumerate(TEXTS.replace("\n", "|").split("|"))
]


@given(LINES)
def test_what_is_packed_comes_back(lines):
    assert packing.unpack(packing.pack(lines)) == lines


def test_a_screen_takes_less_than_a_kilobyte():
    assert 300 < sum(len(line.text) for line in SCREEN) < 600
    assert len(packing.pack(SCREEN)) < 1_000


def test_a_line_break_and_halves_of_characters_in_a_text_cost_no_line():
    lines = [Line("one\ntwo\0\ud800", 0.5, 0, 0, 9, 9), Line("three", 0.5, 0, 10, 9, 19)]

    assert [line.text for line in packing.unpack(packing.pack(lines))] == ["one two", "three"]


def test_what_is_beyond_the_limits_is_left_out():
    many = [Line(str(number), 1.0, 0, number, 9, number + 1) for number in range(packing.MAX_LINES + 5)]
    long = [Line("x" * 60_000, 1.0, 0, 0, 9, 9), Line("y" * 60_000, 1.0, 0, 9, 9, 18)]

    assert packing.unpack(packing.pack(many)) == many[: packing.MAX_LINES]
    assert packing.unpack(packing.pack(long)) == long[:1]


@given(st.integers(0, len(packing.pack(SCREEN)) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place, change):
    packed = bytearray(packing.pack(SCREEN))
    packed[place] ^= change
    with pytest.raises(packing.Damaged):
        packing.unpack(bytes(packed))


@given(st.binary(max_size=200))
def test_bytes_that_were_never_packed_are_refused_or_read_as_lines(body):
    for data in (body, zlib.compress(body)):
        with contextlib.suppress(packing.Damaged):
            packing.unpack(data)


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = zlib.compress(bytes(50 * packing.MAX_BYTES))

    with pytest.raises(packing.Damaged, match="too long"):
        packing.unpack(bomb)
    assert len(bomb) < packing.MAX_BYTES
