"""The clock, and the forms of time: every moment is UTC without a zone, in whole milliseconds, and is written
in one form.
"""

from datetime import UTC, datetime

from errors import BadInput


def utc_now() -> datetime:
    """The present moment, UTC, without a zone, whole milliseconds: the only form of time that is stored or
    compared.
    """
    return from_epoch_ms(int(datetime.now(UTC).timestamp() * 1000))


def from_epoch_ms(milliseconds: int) -> datetime:
    """UTC without a zone. Raises `ValueError` or `OverflowError` outside the years 1 to 9999."""
    seconds, rest = divmod(milliseconds, 1000)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000, tzinfo=None)


def to_epoch_ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def iso(moment: datetime | None) -> str | None:
    """`2026-11-21T07:31:04.123`: the contract's form. It sorts as text in the order of time."""
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def parse_time(value: str, *, field: str) -> datetime | None:
    """An ISO 8601 time as UTC without a zone; one that names no zone is UTC already. None when `value` is
    empty.

    Raises `BadInput` that names `field`.
    """
    if not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return parsed if parsed.tzinfo is None else from_epoch_ms(round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise BadInput(f"{field}: must be a time like 2026-11-21T07:31:04") from None
