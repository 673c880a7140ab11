"""The clock and the one format of time: UTC without a zone, in whole milliseconds."""

from datetime import UTC, date, datetime

from errors import BadInput


def utc_now() -> datetime:
    """The current time, UTC without a zone, in whole milliseconds: all that is stored or compared."""
    return from_epoch_ms(int(datetime.now(UTC).timestamp() * 1000))


def from_epoch_ms(milliseconds: int) -> datetime:
    """Unix time in milliseconds as UTC without a zone.

    Raises `ValueError` or `OverflowError` outside the years 1 to 9999.
    """
    seconds, rest = divmod(milliseconds, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000, tzinfo=None)


def to_epoch_ms(moment: datetime) -> int:
    """`moment`, UTC without a zone, as Unix time in milliseconds."""
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def iso(moment: datetime | None) -> str | None:
    """`moment` like `2026-11-21T07:31:04.123`, the format of the API; as text it sorts in order of time."""
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def local_time(moment: datetime) -> datetime:
    """`moment`, UTC without a zone, in the time zone of this machine, without a zone."""
    return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=None)


def local_day(moment: datetime) -> date:
    """The day of `moment`, UTC without a zone, in the time zone of this machine."""
    return local_time(moment).date()


def start_of_local(day: date) -> datetime:
    """When a day from 1970 on begins in the time zone of this machine, UTC without a zone."""
    return from_epoch_ms(round(datetime(day.year, day.month, day.day).timestamp() * 1000))


def parse_time(value: str, *, field: str) -> datetime | None:
    """An ISO 8601 time as UTC without a zone; a time without a zone is UTC. None when `value` is empty.

    Raises `BadInput`, naming `field`, for anything else.
    """
    if not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return parsed if parsed.tzinfo is None else from_epoch_ms(round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise BadInput(f"{field}: must be a time like 2026-11-21T07:31:04") from None
