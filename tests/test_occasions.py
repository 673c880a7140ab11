"""Dates with a cue are found on a screenshot, as the days that were meant when it was taken."""

import contextlib
import io
import time
from datetime import datetime

import pytest

from benchmarks import dates, drawn
from engines.lines import Line, Page
from rules import embedded
from rules.occasions import MOST, Screen, occasions

TAKEN = datetime(2026, 11, 22, 12, 0)  # a Sunday
SEED = 7  # not the benchmark's


def page(*rows, size=44):
    """A page with these rows from the top; a row is a text, or texts at the left and the right."""
    lines = []
    for number, row in enumerate(rows):
        top = 400 + 110 * number
        left, *right = (row,) if isinstance(row, str) else row
        lines.append(Line(left, 0.98, 60, top, min(1_040, 60 + 24 * len(left)), top + size))
        lines += [Line(text, 0.98, 1_020 - 24 * len(text), top, 1_020, top + size) for text in right]
    return Page(1_080, 2_340, lines)


def found(*rows, taken=TAKEN):
    return [
        (one.kind, one.starts_at, *([one.ends_at] if one.ends_at else []))
        for one in occasions(page(*rows), taken)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Days.
        ("Due 3 Dec", ("deadline", "2026-12-03")),
        ("Due Dec 3, 2026", ("deadline", "2026-12-03")),
        ("Due Friday the 4th", ("deadline", "2026-12-04")),
        ("Due on the 25th", ("deadline", "2026-11-25")),
        ("Due tomorrow 9am", ("deadline", "2026-11-23T09:00")),
        ("Due the day after tomorrow", ("deadline", "2026-11-24")),
        ("Due in 3 days", ("deadline", "2026-11-25")),
        ("Due in two weeks", ("deadline", "2026-12-06")),
        ("Due 3.12.", ("deadline", "2026-12-03")),
        ("Due 03.12.2026", ("deadline", "2026-12-03")),
        ("Rechnung fällig 3. Dezember", ("deadline", "2026-12-03")),
        ("截止 二〇二六年十二月三日", ("deadline", "2026-12-03")),
        ("截止日期：12月3号", ("deadline", "2026-12-03")),
        ("请在25号前提交", ("deadline", "2026-11-25")),
        ("后天上午10点开会", ("event", "2026-11-24T10:00")),
        ("下周三下午3点半开会", ("event", "2026-11-25T15:30")),
        ("优惠券3天后到期", ("expiry", "2026-11-25")),
        # Recognised text loses spaces.
        ("Departure2026-12-0314:30", ("departure", "2026-12-03T14:30")),
        # The year is the nearest that fits.
        ("Due 3 Jan", ("deadline", "2027-01-03")),
        ("Due 20 Oct", ("deadline", "2026-10-20")),
        ("Thu 3 Dec is the last day", ("deadline", "2026-12-03")),
        ("Expired 3 Dec", ("expiry", "2025-12-03")),
        ("Expired 3 Dec 2019", ("expiry", "2019-12-03")),
        # Times.
        ("Meeting 3 Dec 2:30 PM", ("event", "2026-12-03T14:30")),
        ("Meeting 3 Dec at noon", ("event", "2026-12-03T12:00")),
        ("let's meet Friday at 7", ("event", "2026-11-27T19:00")),
        ("let's meet Friday at 10", ("event", "2026-11-27T10:00")),
        ("今晚八点一起吃饭", ("event", "2026-11-22T20:00")),
        ("报名截止 11月30日24:00", ("deadline", "2026-11-30T23:59")),
        # Ranges.
        ("Conference 24–26 Nov", ("event", "2026-11-24", "2026-11-26")),
        ("Conference 30 Nov to 2 Dec", ("event", "2026-11-30", "2026-12-02")),
        ("Conference 30 Dec – 2 Jan 2027", ("event", "2026-12-30", "2027-01-02")),
        ("活动时间：11月24日至26日", ("event", "2026-11-24", "2026-11-26")),
        ("Meeting 3 Dec 9-10:30 am", ("event", "2026-12-03T09:00", "2026-12-03T10:30")),
        ("Meeting 3 Dec 11:30-1 pm", ("event", "2026-12-03T11:30", "2026-12-03T13:00")),
        ("Party 3 Dec 22:00–02:00", ("event", "2026-12-03T22:00", "2026-12-04T02:00")),
        # What is valid for a range expires at its end.
        ("有效期 2026.11.01-2026.12.03", ("expiry", "2026-12-03")),
    ],
)
def test_forms_of_days_and_times(text, expected):
    assert found(text) == [expected]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["Due 12/03/2026"], []),
        (["Due 12/13/2026"], ["2026-12-13"]),
        (["Due 12/03/2026", "Paid 01/22/2026"], ["2026-12-03"]),
        (["Due 12/03/2027", "Paid 22/01/2026"], ["2027-03-12"]),
        (["Due 12/03/2026", "$40.00"], ["2026-12-03"]),
        (["Due 12/03/2027", "£40.00"], ["2027-03-12"]),
        (["截止 12/03"], ["2026-12-03"]),
        (["Due 31/11/2026"], []),
    ],
)
def test_the_order_of_day_and_month_is_the_screens_own(rows, expected):
    assert [one.starts_at for one in occasions(page(*rows), TAKEN)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "Posted 3 Dec", "Photos from 3 Nov", "Born 3 Dec 1990", "© 2026", "Paid 20 Nov",
        "2026-11-22 11:58:03", "Friday 18:30", "Today 12:30", "Dinner today", "Meeting 3 Nov",
        "Meeting starts in 5 minutes",
        "04:31 / 12:08", "Score 12-24", "Every Friday at 7 pm", "Mon–Fri 9:00–18:00", "Due to rain on 3 Nov",
        "Appointment on 3 Dec has been cancelled", "Free returns within 30 days", "Version 2026.12.3",
        "Rain 3 Dec 12° 7°", "Tue, 3 Dec party", "3天前", "周五 18:30", "1小时前 明天几点",
        "下单时间 11月20日 10:00", "出生日期 1990年12月3日", "已取消：12月3日 14:00 预约",
    ],
)  # fmt: skip
def test_other_days_are_no_occasions(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("Due date", "3 Dec")], [("deadline", "2026-12-03")]),
        (["Due date", "3 Dec"], [("deadline", "2026-12-03")]),
        # The date of a ticket is one of its columns, its time another one.
        (
            [("Date", "3 Dec"), ("Boarding", "14:05"), ("Departure", "14:45")],
            [("departure", "2026-12-03T14:05"), ("departure", "2026-12-03T14:45")],
        ),
        # The dates of a list are not those of its entries.
        ([("Meeting notes", "Nov 20"), ("Flight deals", "Nov 21")], []),
        ([("Posted", "3 Dec")], []),
        # With two days, nobody knows whose time it is.
        ([("Date", "3 Dec"), ("Return", "5 Dec"), ("Boarding", "14:05")], [("event", "2026-12-03")]),
    ],
)
def test_a_label_is_at_the_left_or_above(rows, expected):
    assert found(*rows) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((("Fri", "27 Nov"), ("Seat", "F12")), ["2026-11-27"]),
        (("Friday", "27 November", "Admit one"), ["2026-11-27"]),
        ((("Day", "Fri 27 Nov"), ("Row 5", "Seat 3")), ["2026-11-27"]),
        (("周五", "11月27日", "座位 5排3座"), ["2026-11-27"]),
        ((("Date", "Fri 27 Nov"), ("Time", "19:30"), ("Row 5", "Seat 3")), ["2026-11-27T19:30"]),
        ((("日期", "11月27日 周五"), ("时间", "19:30"), ("座位", "5排3座")), ["2026-11-27T19:30"]),
        # A weekday never overrules the day beside it.
        ((("Thu", "27 Nov"), ("Seat", "F12")), ["2026-11-27"]),
        # A past day, two times, no ticket.
        ((("Fri", "20 Nov"), ("Seat", "F12")), []),
        ((("Date", "27 Nov"), ("Time", "19:30"), ("Time", "21:00"), ("Seat", "3")), ["2026-11-27"]),
        ((("Fri", "27 Nov"), ("Size", "5 MB")), []),
    ],
)
def test_the_day_and_the_time_of_a_ticket_are_labels_and_values(rows, expected):
    assert [starts_at for _, starts_at in found("Night of Jazz", *rows)] == expected


def test_a_sentence_may_be_wrapped():
    rows = ["Your appointment with Dr. Chen is", "on 3 December at 14:30. Please bring it."]
    (one,) = occasions(page(*rows, size=80), TAKEN)

    assert (one.kind, one.starts_at, one.line) == ("appointment", "2026-12-03T14:30", 1)
    assert one.quote == rows[1]


@pytest.mark.parametrize(
    ("rows", "title"),
    [
        (["Electricity bill due 3 Dec"], "Electricity bill due"),
        (["Flight CA1831 to Shanghai departs 3 Dec at 14:30"], "Flight CA1831 to Shanghai departs"),
        (["Hotel Marina", ("Check-in", "3 Dec")], "Hotel Marina · Check-in"),
        (["电费账单 12月3日截止"], "电费账单截止"),
        (["Meeting " + "word " * 60 + "3 Dec"], None),
        (["12月3日"], None),
        (["快递请于12月3日前取走"], "快递取走"),
        (["Dentist appointment", "3 Dec at 14:30", "Dr. Chen, Main Street 5"], "Dr. Chen"),
        (["Appointment", "Dr. Lindqvist", "Tuesday, December 1, 2026 at 08:15"], "Dr. Lindqvist"),
        (["Parcel locker", "Pick up until 3 Dec", "Code 48 29 11"], "Parcel locker · Pick up"),
    ],
)
def test_the_title_is_made_of_words_that_are_there(rows, title):
    assert [one.title for one in occasions(page(*rows), TAKEN)] == ([title] if title else [])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            ["My week", ("Tue 1 Dec, 08:15", "Dentist, Dr. Chen"), ("Thu 3 Dec, 17:30", "Physiotherapy")],
            [("2026-12-01T08:15", "Dentist, Dr. Chen"), ("2026-12-03T17:30", "Physiotherapy")],
        ),
        (
            ["我的日程", ("部门例会", "11月25日 10:00"), ("体检", "11月27日 08:00")],
            [("2026-11-25T10:00", "部门例会"), ("2026-11-27T08:00", "体检")],
        ),
        # What is over, of today, and a forecast.
        (["Files", ("Report", "20 Nov"), ("Photos", "21 Nov")], []),
        (["Files", ("Report", "22 Nov"), ("Photos", "22 Nov")], []),
        (["Old payments", ("Rent", "9 Apr"), ("Water", "5 Mar")], []),
        (["Weather", ("Tue 1 Dec", "12° rain"), ("Wed 2 Dec", "9° fog")], []),
    ],
)
def test_each_row_of_a_table_is_an_entry(rows, expected):
    assert [(one.starts_at, one.title) for one in occasions(page(*rows), TAKEN)] == expected


def test_an_occasion_has_its_line_as_proof_and_there_are_not_endlessly_many():
    rows = [f"Task {number} due {1 + number % 28} Dec 2026, {number % 24:02}:00" for number in range(60)]
    read = page(*rows)
    all_found = occasions(read, TAKEN)

    assert len(all_found) == MOST
    assert [one.starts_at for one in all_found] == sorted(one.starts_at for one in all_found)
    assert all(read.lines[one.line].text == one.quote for one in all_found)
    assert occasions(Page(), TAKEN) == []


def test_a_remote_models_date_counts_only_where_its_words_stand():
    read = page("Council tax", "Amount £ 204", "12 Dec 2026", "Meeting 3 Dec, 14:30")

    assert Screen(read, TAKEN).standing("3 Dec").starts_at == "2026-12-03T14:30"
    assert Screen(read, TAKEN).standing("3  DEC").kind == "event"
    assert Screen(read, TAKEN).standing("12 Dec 2026") is None  # for nothing, as far as the screen shows
    assert Screen(read, TAKEN).standing("12 Dec 2026", "payment due").kind == "deadline"
    assert Screen(page("有效期 11月1日至12月3日"), TAKEN).standing("12月3日").starts_at == "2026-12-03"
    assert Screen(page("有效期 11月1日至12月3日"), TAKEN).standing("11月1日") is None
    for said in ("13 Dec 2026", "December 12", "2026-12-12", "3", "", " ", "-", "£"):
        assert Screen(read, TAKEN).standing(said, "payment due") is None, said
    assert Screen(read, TAKEN).standing("12 Dec 2026", "date of birth") is None


# ---------------------------------------------------------------------------------------------- the benchmark


def test_labelled_lines_are_found_and_nothing_else():
    cases = dates.lines(SEED)
    total = dates.score(cases, [occasions(case.page, case.taken) for case in cases])

    assert len(cases) == dates.LINES
    assert total.expected > 150
    assert total.precision >= 0.97, total
    assert total.recall >= 0.85, total


@pytest.mark.slow
def test_labelled_screens_are_read_and_found():
    cases = dates.screens(SEED, 60)
    with contextlib.closing(embedded.LocalModel(ocr_model="small", language="en")) as model:
        pages = [model.read(io.BytesIO(drawn.draw(case.screen)))[0] for case in cases]
    total = dates.score(cases, [occasions(one, case.taken) for one, case in zip(pages, cases, strict=True)])

    assert total.precision >= 0.97, total
    assert total.recall >= 0.85, total


def test_the_generator_is_the_same_for_a_seed_and_another_for_another():
    names = [case.name for case in dates.lines(SEED, 50)]

    assert names == [case.name for case in dates.lines(SEED, 50)]
    assert names != [case.name for case in dates.lines(SEED + 1, 50)]


def test_what_is_wrong_is_counted():
    (case,) = [case for case in dates.lines(SEED) if len(case.expected) == 1][:1]
    right = occasions(case.page, case.taken)

    assert dates.score([case], [right]) == (1, 1, 1)
    assert dates.score([case], [[]]) == (1, 0, 0)
    assert dates.score([case], [[*right, *right]]) == (1, 2, 1)
    assert dates.score([case._replace(expected=())], [right]) == (0, 1, 0)


# -------------------------------------------------------------------------------------------------- hostility


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["1/", "12:", "3 Nov ", "11月", "due ", "周一", "- ", "due 3 Dec "])
def test_hostile_repetition_is_read_in_linear_time(unit):
    text = unit * (20_000 // len(unit))
    hostile = Page(1_080, 2_340, [Line(text, 0.9, 10, 100 * n, 900, 100 * n + 40) for n in range(20)])
    begun = time.process_time()
    occasions(hostile, TAKEN)
    Screen(hostile, TAKEN).standing(text, text)
    assert time.process_time() - begun < 3  # seconds, for 400,000 characters
