"""Entities are found in text by patterns, each once, in linear time."""

import time
from datetime import datetime

import pytest

from engines.lines import Line, Page
from rules.entities import entities_in
from rules.judge import judge
from tests.support.properties import REPEATED


def screen(text):
    """The entities of a screen with these lines below each other."""
    lines = [
        Line(row, 0.98, 40, 160 + 80 * number, 40 + 20 * len(row), 200 + 80 * number)
        for number, row in enumerate(text.split("\n"))
    ]
    page = Page(1080, 2400, lines)
    return judge(page, analyser="local", language="en", taken=datetime(2026, 11, 22)).entities


def entities(text):
    return [(entity.type, entity.value) for entity in screen(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "see https://example.com/a?b=1, or www.example.org.",
            [("link", "https://example.com/a?b=1"), ("link", "www.example.org")],
        ),
        ("github.com/login", [("link", "github.com/login")]),
        ("网址：https://example.cn/新闻。更多", [("link", "https://example.cn/新闻")]),
        ("https://example.com/very-lo...", []),
        ("report.pdf, Node.js 20.11.0, e.g. this", []),
        ("write to anna.b+shop@mail.example.com!", [("email", "anna.b+shop@mail.example.com")]),
        ("@anna@mastodon.social wrote", []),
        ("call +49 30 1234567 now", [("phone", "+49 30 1234567")]),
        ("电话：138 0013 8000", [("phone", "138 0013 8000")]),
        ("(415) 555-0123 or 010-62345678", [("phone", "(415) 555-0123"), ("phone", "010-62345678")]),
        ("serial 12345678901234567890", []),
        (
            "total $1,204.50 and 12,50 € and ¥88",
            [("amount", "$1,204.50"), ("amount", "12,50 €"), ("amount", "¥88")],
        ),
        ("实付 199元，余额 3.5万元", [("amount", "199元"), ("amount", "3.5万元")]),
        ("-$450.00 and 20 USD", [("amount", "-$450.00"), ("amount", "20 USD")]),
        (
            "on 2026-11-21, 21.11.2026 or 11/21/2026",
            [("date", "2026-11-21"), ("date", "21.11.2026"), ("date", "11/21/2026")],
        ),
        (
            "November 21, 2026 and 3 Mar and 17. März",
            [("date", "November 21, 2026"), ("date", "3 Mar"), ("date", "17. März")],
        ),
        ("2026年11月21日，3月5号", [("date", "2026年11月21日"), ("date", "3月5号")]),
        ("2026-13-45 and 10.0.2026", []),
        ("at 14:30 or 9:05 PM or 7 am", [("time", "14:30"), ("time", "9:05 PM"), ("time", "7 am")]),
        ("下午3点半", [("time", "下午3点半")]),
        ("ratio 16:9 and 25:61", []),
        ("Your verification code is: 482913", [("code", "482913")]),
        ("482913 is your login code", [("code", "482913")]),
        ("【银行】验证码 771204，请勿告诉他人", [("code", "771204")]),
        ("取件码\n5-2-3021", [("code", "5-2-3021")]),
        ("Tracking number: 1Z999AA10123456784", [("code", "1Z999AA10123456784")]),
        ("顺丰 SF1234567890123 已发出", [("code", "SF1234567890123")]),
        ("verification code required", []),
        ("A@example.com a@EXAMPLE.com", [("email", "A@example.com")]),
        ("Boarding\n06:55\nGate", [("time", "06:55")]),
        ("due Nov 30\nby 14:30\nat 14:30", [("date", "Nov 30"), ("time", "14:30")]),
        ("还款日\n12月05日", [("date", "12月05日")]),
        ("明天 14:00 复诊", [("time", "14:00")]),
        # The times of a list of chats, the dates of a list of payments, the length of a video, a clock.
        ("Grandpa Joe\n17:05\nHiking Crew\n16:48", []),
        ("Movie Palace\nNov 12\n-$24.00", [("amount", "-$24.00")]),
        ("1:12 / 3:48", []),
        ("Voice message (0:14)", []),
        ("9:41", []),
        ("$0.00", []),
        # Labels say what a code is, in several languages.
        ("Buchungsnummer\n7RT4K2", [("code", "7RT4K2")]),
        ("Localizador: XK29QP", [("code", "XK29QP")]),
        ("Numéro de suivi\n6A 1234 5678 901", [("code", "6A 1234 5678 901")]),
        ("Your parcel is ready, pickup code 6-2-4471", [("code", "6-2-4471")]),
        # What was wrapped is one.
        (
            "https://example.org/a/very/long/path-\nto/the-page?id=12",
            [("link", "https://example.org/a/very/long/path-to/the-page?id=12")],
        ),
        ("8example.org/guide", [("link", "example.org/guide")]),
        ("Balance € -30.00", [("amount", "€ -30.00")]),
        ("04 DEC 2026", [("date", "04 DEC 2026")]),
        ("1180 Harbor Blvd, Oakland", [("address", "1180 Harbor Blvd, Oakland")]),
        ("Rua das Flores 41, Porto", [("address", "Rua das Flores 41, Porto")]),
        ("Goethestraße 12a, 80336 München", [("address", "Goethestraße 12a, 80336 München")]),
        ("包裹已到幸福路12号店", [("address", "幸福路12号店")]),
        (
            "https://example.org/very and https://example.org/very/long",
            [("link", "https://example.org/very/long")],
        ),
    ],
)
def test_entities_are_found_once_and_by_their_kind(text, expected):
    assert entities(text) == expected


def test_a_code_has_the_words_that_tell_what_it_is_for():
    (code,) = screen("Booking reference: QX7RTB")

    assert (code.value, code.label) == ("QX7RTB", "Booking reference")


@pytest.mark.parametrize("unit", REPEATED)
def test_hostile_repetition_is_read_in_linear_time(unit):
    begun = time.process_time()
    entities_in(unit * 20_000)
    assert time.process_time() - begun < 2  # seconds, for up to 140,000 characters
