"""The forms of time."""

from clock import from_epoch_ms, iso, to_epoch_ms


def test_timestamps_have_milliseconds_and_no_zone_and_survive_the_round_trip():
    moment = from_epoch_ms(1_795_246_264_123)

    assert iso(moment) == "2026-11-21T07:31:04.123"
    assert to_epoch_ms(moment) == 1_795_246_264_123
    assert iso(from_epoch_ms(-1)) == "1969-12-31T23:59:59.999"
