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
            text, 1 - doubt / 100, left, top, left + width, top + height
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


def test_a_screen_takes_a_few_hundred_bytes():
    assert 300 < sum(len(line.text) for line in SCREEN) < 600
    assert len(packing.pack(SCREEN)) < 500


def test_chinese_takes_less_than_it_does_in_utf_8():
    text = "您的包裹已到达幸福路菜鸟驿站，请凭取件码及时领取，营业时间为早上九点至晚上八点。"
    lines = [Line(f"{row}{text}"[row:], 1.0, 40, 90 * row, 900, 90 * row + 40) for row in range(10)]

    packed = packing.pack(lines)

    assert packed[0] == packing.ENCODINGS.index("utf-16-be")
    assert packing.unpack(packed) == lines


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
    for form in range(3):
        crc = zlib.crc32(bytes([form]) + body)
        with contextlib.suppress(packing.Damaged):
            packing.unpack(bytes([form]) + crc.to_bytes(4, "big") + body)


def test_a_bomb_is_refused_before_it_is_unpacked():
    packer = zlib.compressobj(9, wbits=-15)
    bomb = bytes([1, 0, 0, 0, 0, 0]) + packer.compress(bytes(50 * packing.MAX_BYTES)) + packer.flush()

    with pytest.raises(packing.Damaged, match="too long"):
        packing.unpack(b"\0" + zlib.crc32(b"\0" + bomb).to_bytes(4, "big") + bomb)
    assert len(bomb) < packing.MAX_BYTES
