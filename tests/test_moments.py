"""Days and times of a screen are read for records, with the year that is meant."""

from datetime import datetime

import pytest

from rules.moments import Moments

TAKEN = datetime(2026, 11, 22, 12, 0)  # a Sunday


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("04 DEC 2026", "2026-12-04", ""),
        ("Fri 4 Dec", "2026-12-04", ""),
        ("Friday, 4 December 2026 at 07:10", "2026-12-04T07:10", ""),
        ("27–30 Nov", "2026-11-27", "2026-11-30"),
        ("CA1831 12月11日 08:20", "2026-12-11T08:20", ""),
        ("2026-12-04 07:10-09:00", "2026-12-04T07:10", "2026-12-04T09:00"),
        ("3 Jan", "2027-01-03", ""),
        ("4. Dezember 2026, 7:10 Uhr", "2026-12-04T07:10", ""),
        ("4 décembre 2026", "2026-12-04", ""),
        ("4 de diciembre de 2026", "2026-12-04", ""),
        ("4 dicembre 2026", "2026-12-04", ""),
        ("4 de dezembro", "2026-12-04", ""),
        ("4 maart 2027", "2027-03-04", ""),
        ("ven. 4 déc. à 07h10", "2026-12-04T07:10", ""),
        ("2026年12月4日(金) 7時10分", "2026-12-04T07:10", ""),
    ],
)
def test_days_and_times_are_read_in_normal_form(text, begins, ends):
    found = Moments(text, TAKEN).day(text)
    assert found is not None
    assert (found.begins, found.ends) == (begins, ends)


def test_the_year_of_an_old_screen_counts():
    assert Moments("December 2024\nThu 5 Dec", TAKEN).day("Thu 5 Dec").begins == "2024-12-05"
    assert Moments("© 2024\nFri 4 Dec", TAKEN).day("Fri 4 Dec").begins == "2026-12-04"
    assert Moments("Booked in 2026\n4 Dec", None).day("4 Dec").begins == "2026-12-04"
    assert Moments("4 Dec", None).day("4 Dec") is None
    assert Moments("Friday", None).day("Friday") is None
