"""The status bar is recognised on phones of many kinds, and no line of the content is taken for it."""

import pytest

from engines.lines import Line, Page
from rules import screen

CONTENT = [(60, 190, 500, 240, "Library account"), (60, 300, 900, 345, "Loans and reservations")]


def page(*rows, size=(1080, 2400)):
    """A page of rows `(left, top, right, bottom, text)`, or with a confidence behind them."""
    lines = [Line(row[4], row[5] if len(row) > 5 else 0.99, *row[:4]) for row in rows]
    return Page(*size, lines)


def bar(found):
    return [line.text for index, line in enumerate(found.lines) if index in screen.status_bar(found)]


@pytest.mark.parametrize(
    "row",
    [
        [(40, 30, 150, 75, "9:41")],
        [(40, 30, 150, 75, "09:41"), (900, 32, 1030, 74, "83%")],
        [(40, 30, 150, 75, "21:34"), (760, 32, 850, 74, "LTE"), (900, 32, 1030, 74, "100 %")],
        [(40, 30, 150, 75, "9:41"), (860, 32, 1040, 74, "LTE100%")],
        [(40, 30, 330, 75, "9:41 AM"), (860, 32, 1040, 74, "5G")],
        [(40, 30, 330, 75, "上午9:41"), (700, 32, 1040, 74, "中国移动 5G")],
        [(40, 30, 200, 75, "9:41 ▲"), (650, 28, 1010, 78, "4N84% ", 0.6)],
        [(40, 30, 160, 75, "9:00品", 0.87), (880, 28, 1010, 78, "VA", 0.48)],
        [(40, 30, 260, 75, "09:42:09"), (480, 28, 590, 78, "0.43 KB/s"), (880, 28, 1010, 78, "58")],
        [(40, 30, 360, 75, "下午2:05 9.08K/s"), (880, 28, 1010, 78, "4G+ 58%")],
        [(500, 30, 600, 75, "9:41"), (40, 32, 330, 74, "Vodafone"), (900, 32, 1040, 74, "72%")],
        [(940, 20, 1050, 65, "5:28")],
    ],
)
def test_the_status_bar_of_a_phone_is_recognised(row):
    found = page(*row, *CONTENT)

    assert bar(found) == [line[4] for line in row]


def test_on_a_tablet_held_sideways_clock_and_battery_are_needed():
    clock, battery = (50, 24, 150, 64, "1:00"), (2620, 24, 2820, 60, "LTE 100%")
    content = (60, 150, 500, 190, "January")

    assert bar(page(clock, battery, content, size=(2880, 1800))) == ["1:00", "LTE 100%"]
    assert bar(page(clock, content, size=(2880, 1800))) == []


def test_in_a_long_capture_the_bar_is_as_high_as_on_a_screen():
    found = page((40, 30, 150, 75, "9:41"), *CONTENT, (40, 900, 150, 945, "9:55"), size=(1080, 20_000))

    assert bar(found) == ["9:41"]


@pytest.mark.parametrize(
    "row",
    [
        [(40, 30, 300, 75, "< Signal"), (480, 30, 600, 75, "9:41"), (820, 30, 950, 75, "100%")],
        [(560, 30, 1060, 75, "杰 39% 3:04 PM")],
    ],
    ids=["a link back to another app", "icons before the clock"],
)
def test_the_bar_holds_more_than_clock_and_battery(row):
    assert bar(page(*row, *CONTENT)) == [line[4] for line in row]


@pytest.mark.parametrize(
    "row",
    [
        [(40, 30, 500, 75, "Anna Schmidt"), (940, 30, 1050, 75, "10:45")],  # the first of a list of chats
        [(40, 30, 150, 75, "10:45"), (240, 30, 900, 75, "Meeting with Anna")],  # an agenda
        [(40, 30, 700, 75, "10:45 Departure to Graz")],
        [(40, 30, 700, 75, "Depart at 10:45")],
        [(40, 20, 500, 65, "Anna Schmidt"), (40, 80, 150, 125, "10:45")],  # below the first row
        [(40, 140, 150, 185, "10:45")],  # too low
        [(40, 20, 500, 150, "10:45")],  # too large, as on a lock screen
        [(40, 30, 150, 75, "83%")],  # no clock
        [(40, 30, 150, 75, "10:45"), (800, 30, 1000, 75, "OK")],  # a button
        [(40, 30, 150, 75, "10:75")],
        [(40, 30, 150, 75, "110:45")],
        [(40, 30, 300, 75, "$10.45")],
        [(40, 30, 300, 75, "1:0 2:1")],
    ],
)
def test_no_line_of_the_content_is_taken_for_it(row):
    assert bar(page(*row, *CONTENT)) == []


def test_a_picture_without_text_or_size_has_none():
    assert screen.status_bar(Page()) == frozenset()
    assert screen.status_bar(page(size=(1, 1))) == frozenset()
    assert screen.status_bar(page((0, 0, 0, 0, "9:41"), size=(0, 0))) in (frozenset(), frozenset({0}))


def test_a_hostile_line_costs_no_time():
    """Would not end with an expression that backtracks."""
    for text in (
        "9:41" + "1" * 90_000,
        "9:41" + " " * 90_000 + "!",
        "1" * 90_000,
        "AP" * 45_000,
        "9:41 %" * 20_000,
    ):
        screen.status_bar(page((40, 30, 150, 75, text), (40, 30, 900, 75, text)))
