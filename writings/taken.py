"""When a picture was taken, by the first of these that says it: its client, its EXIF data, its file's name,
the date of its file. Else it is the time of its upload.

Most screenshots of Android and Windows have no EXIF data, and a zip, a USB cable or a cloud loses the dates
of files. But phones and computers put the time into the name. Names are read by one form: a day, a gap and a
time, anywhere in the name. The tests have a table of who writes which.
"""

import re
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

Source = Literal["client", "exif", "name", "file", "upload"]

OLDEST = datetime(2000, 1, 1)  # a number that looks like an earlier time is another number
AHEAD = timedelta(days=1)  # of now: a clock may be wrong by a zone, and a later time is another number
LONGEST = 255  # characters of a name
NOON = 12  # the hour of a name that has only a day

_HALVES = tomllib.loads(Path(__file__).with_name("halves.toml").read_text(encoding="utf-8"))
_MORNING, _AFTERNOON = frozenset(_HALVES["morning"].split()), frozenset(_HALVES["afternoon"].split())
_BLANKS = " \u00a0\u2009\u202f"  # macOS writes U+202F before AM and PM
# 2026-01-02 at 10.11.12 PM, 20260102_101112345, 2026_01_02 下午3.04.05, 2026-01-02T10:11:12Z
_DAY = r"(?<![0-9])(20[0-9]{2})(?:([0-9]{2})([0-9]{2})|[-._]([0-9]{1,2})[-._]([0-9]{1,2}))"
_TIME = r"([^0-9]{0,12})(?:([0-9]{2})([0-9]{2})([0-9]{2})|([0-9]{1,2})[-._: h]([0-9]{2})[-._: m]([0-9]{2}))"
_REST = rf"(?:[-._]?([0-9]{{3}}))?(?![0-9])(?:[{_BLANKS}]{{0,2}}([AaPp])\.?[Mm]\b|(?P<utc>Z)\b)?"
_MOMENT = re.compile(_DAY + _TIME + _REST)
# The photos of messengers have a day and a number: IMG-20260102-WA0001.jpg
_ONLY_DAY = re.compile(r"^[A-Z]{3}-(20[0-9]{2})([0-9]{2})([0-9]{2})-WA[0-9]{1,6}(?![0-9])")
# Milliseconds: mmexport1767348672345.jpg
_EPOCH = re.compile(r"^[A-Za-z_-]{2,20}(1[0-9]{12})(?![0-9])")
_IN_UTC = ("PXL_",)  # Google's camera, as it documents; everything else writes the local time


class Named(NamedTuple):
    """The time in a file's name."""

    moment: datetime  # UTC without a zone
    only_day: bool = False  # the name has no time: it is noon


class Taken(NamedTuple):
    """When a picture was taken, UTC without a zone, and what says so."""

    moment: datetime
    source: Source


def decided(
    given: datetime | None,
    exif: datetime | None,
    name: str,
    file_date: datetime | None,
    *,
    now: datetime,
) -> Taken:
    """When a picture was taken: by its client, EXIF data, name or file (UTC; None: unknown), else `now`."""
    if given is not None:
        return Taken(given, "client")
    if exif is not None:
        return Taken(exif, "exif")
    named = from_name(name, now=now)
    if named is None:
        return Taken(file_date, "file") if file_date is not None else Taken(now, "upload")
    if named.only_day and file_date is not None and _local_day(file_date) == _local_day(named.moment):
        return Taken(file_date, "file")  # it knows the time, too
    return Taken(named.moment, "name")


def from_name(name: str, *, now: datetime) -> Named | None:
    """The local time in a file's name; None without one from `OLDEST` to a day after `now`."""
    name = name[-LONGEST:]
    for found in _MOMENT.finditer(name):
        moment = _moment(found)
        if moment is not None:
            in_utc = found["utc"] is not None or name.startswith(_IN_UTC)
            moment = moment if in_utc else _from_local(moment)
            if OLDEST <= moment <= now + AHEAD:
                return Named(moment)
    if day := _ONLY_DAY.search(name):
        noon = _valid(int(day[1]), int(day[2]), int(day[3]), NOON)
        if noon is not None and OLDEST <= noon <= now + AHEAD:
            return Named(_from_local(noon), only_day=True)
    if epoch := _EPOCH.search(name):
        seconds, rest = divmod(int(epoch[1]), 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=rest * 1000)
        if moment <= now + AHEAD:
            return Named(moment)
    return None


def _moment(found: re.Match[str]) -> datetime | None:
    """The time of a match as it is written; None where there is no such day or time."""
    year, *parts = found.groups()
    month, day = (part for part in parts[:4] if part is not None)
    gap, rest = parts[4], parts[5:]
    hour, minute, second = (part for part in rest[:6] if part is not None)
    thousandth, half = rest[6] or "0", _half(gap, rest[7])
    number = int(hour)
    if half is not None:
        if not 1 <= number <= 12:
            return None
        number = number % 12 + (12 if half == "p" else 0)
    return _valid(int(year), int(month), int(day), number, int(minute), int(second), int(thousandth))


def _half(gap: str, letter: str | None) -> str | None:
    """`a` or `p`, where the name has a half of the day: before the time, or behind it."""
    if letter is not None:
        return letter.lower()
    words = gap.replace("_", " ").split()
    if any(word in _AFTERNOON for word in words):
        return "p"
    return "a" if any(word in _MORNING for word in words) else None


def _valid(
    year: int, month: int, day: int, hour: int, minute: int = 0, second: int = 0, thousandth: int = 0
) -> datetime | None:
    try:
        return datetime(year, month, day, hour, minute, second, thousandth * 1000)
    except ValueError:
        return None


def _from_local(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _local_day(moment: datetime) -> tuple[int, int, int]:
    local = moment.replace(tzinfo=UTC).astimezone()
    return local.year, local.month, local.day
