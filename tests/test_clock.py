"""The formats of time."""

from datetime import datetime

import pytest

from clock import from_epoch_ms, iso, parse_time, to_epoch_ms
from errors import BadInput


def test_timestamps_have_milliseconds_and_no_zone_and_survive_the_round_trip():
    moment = from_epoch_ms(1_795_246_264_123)

    assert iso(moment) == "2026-11-21T07:31:04.123"
    assert to_epoch_ms(moment) == 1_795_246_264_123
    assert iso(from_epoch_ms(-1)) == "1969-12-31T23:59:59.999"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("2026-11-21", datetime(2026, 11, 21)),
        ("2026-11-21T07:31:04", datetime(2026, 11, 21, 7, 31, 4)),
        ("2026-11-21T07:31:04Z", datetime(2026, 11, 21, 7, 31, 4)),
        ("2026-11-21T07:31:04.500+08:00", datetime(2026, 11, 20, 23, 31, 4, 500_000)),
    ],
)
def test_a_time_is_read_as_utc_without_a_zone(text, expected):
    assert parse_time(text, field="since") == expected


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
def test_what_is_no_time_is_refused_by_the_name_of_its_field(text):
    with pytest.raises(BadInput, match=r"^since: must be a time like 2026-11-21T07:31:04$"):
        parse_time(text, field="since")
