"""The labels of a screen find their values: beside, below, above, or behind a colon, in several languages."""

import time

import pytest

from engines.lines import Line, Page
from rules.layout import Layout
from rules.pairs import NAMED, Pairs
from tests.support.properties import REPEATED


def put(text, left, top, height=40):
    return Line(text, 0.98, left, top, left + round(0.55 * height * len(text)), top + height)


def pairs(*lines):
    return Pairs(Layout(Page(1080, 2340, list(lines))))


def found(name, *lines, read=lambda text: text or None):
    value = pairs(*lines).find(name, read)
    return value[1].text if value else None


@pytest.mark.parametrize(
    ("name", "lines", "value"),
    [
        ("gate", [put("Gate", 60, 200), put("C12", 900, 200)], "C12"),
        ("gate", [put("Gate", 60, 200, 30), put("C12", 60, 240)], "C12"),
        ("gate", [put("登机口：C12", 60, 200)], "C12"),
        ("gate", [put("Gate: C12  Seat: 14A", 60, 200)], "C12"),
        ("seat", [put("Gate: C12  Seat: 14A", 60, 200)], "14A"),
        ("platform", [put("Gleis 7", 60, 200)], "7"),
        ("total", [put("Total: -14.00 EUR", 60, 200)], "-14.00 EUR"),
        ("total", [put("Total – 14.00 EUR", 60, 200)], "14.00 EUR"),
        ("booking", [put("Bookingreference QX7RTB", 60, 200)], "QX7RTB"),
        ("booking", [put("Código de reserva: QX7RTB", 60, 200)], "QX7RTB"),
        ("seat", [put("Seatbelt", 60, 200)], None),
        # A row of labels above a row of values, although one of them is none that is known.
        (
            "passenger",
            [
                *(put("Passenger", 60, 200, 30), put("Xyz", 600, 200, 30)),
                *(put("J. Doe", 60, 240), put("2", 600, 240)),
            ],
            "J. Doe",
        ),
        # A list of labels beside their values.
        (
            "passenger",
            [put("Passenger", 60, 200), put("J. Doe", 888, 200), put("Xyz", 60, 300), put("2A", 976, 300)],
            "J. Doe",
        ),
        (
            "delivery_address",
            [
                put("Lieferadresse", 60, 200, 30),
                put("Am Markt 5", 60, 240),
                put("12345 Musterstadt", 60, 286),
            ],
            "Am Markt 5 12345 Musterstadt",
        ),
    ],
)
def test_a_label_has_its_value(name, lines, value):
    assert found(name, *lines) == value


def test_the_form_of_a_field_decides_which_value_is_its_own():
    lines = [put("Total", 60, 200), put("incl. tax", 900, 200), put("23.80", 60, 260)]

    assert found("total", *lines, read=lambda text: text if text[0].isdigit() else None) == "23.80"
    assert pairs(*lines).find("seat", str, NAMED) is None


@pytest.mark.parametrize("unit", REPEATED)
def test_hostile_repetition_is_read_in_linear_time(unit):
    begun = time.process_time()
    labels = pairs(*(put((unit * 300)[:300], 60, 10 * number) for number in range(300)))
    for name in ("total", "gate", "to"):
        labels.find(name, lambda text: None)
    assert time.process_time() - begun < 2
