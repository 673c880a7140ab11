"""iCalendar (RFC 5545), as text: what a calendar is given of the agenda.

Times are local, with the rules of this machine's time zone beside them, because a person means the time on
the clock: an appointment at 9 stays at 9. The rules are computed from the system's own, and each change of
the clock is listed: programs that know the zone by its name ignore them, and for others they are right
without a rule that repeats.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

from settings import NAME, VERSION

if TYPE_CHECKING:
    import icalendar

MEDIA_TYPE = "text/calendar"
REFRESHED = timedelta(hours=1)  # how often a calendar should ask again
DAY, WEEK = timedelta(days=1), timedelta(days=7)
# Before the first and after the last event of a feed: a calendar may place an event that is moved there.
MARGIN = timedelta(days=400)
LINKS = Path("/etc/localtime")


class Entry(NamedTuple):
    """One event. Of whole days, `starts_at` and `ends_at` are the midnights of the first and the last one.
    Without an end it is a moment, or one day. A cancelled one has no texts.
    """

    uid: str
    sequence: int
    changed_at: datetime  # UTC
    starts_at: datetime  # local
    ends_at: datetime | None
    all_day: bool
    title: str
    note: str = ""
    page: str = ""  # address
    category: str = ""
    is_cancelled: bool = False


def calendar(name: str, entries: Sequence[Entry]) -> bytes:
    """The document, in lines of at most 75 octets."""
    import icalendar  # imported only where somebody subscribes

    made = icalendar.Calendar()
    made.add("prodid", f"-//{NAME}//{NAME} {VERSION}//EN")
    made.add("version", "2.0")
    made.add("calscale", "GREGORIAN")
    made.add("name", name)
    made.add("x-wr-calname", name)
    made.add("refresh-interval", REFRESHED, parameters={"VALUE": "DURATION"})
    made.add("x-published-ttl", "PT1H")
    timed = [entry.starts_at for entry in entries if not entry.all_day]
    zone = ""
    if timed:
        first, last = min(timed) - MARGIN, max(timed) + MARGIN
        zone = zone_name(first.year, last.year)
        rules = icalendar.Timezone.from_tzinfo(_Clock(), zone, first.date(), last.date())
        made.add_component(rules)
    for entry in entries:
        made.add_component(_event(entry, zone))
    written: bytes = made.to_ical()
    return written


def zone_name(first: int, last: int) -> str:
    """The name of this machine's time zone, or a made-up one like Local-CET-CEST."""
    # As the C library does: the variable comes first.
    name = os.environ.get("TZ", "").removeprefix(":")
    name = name or str(LINKS.resolve()).partition("/zoneinfo/")[2].removeprefix("posix/")
    try:
        zone = ZoneInfo(name) if name else None
    except (OSError, ValueError, KeyError):  # no such zone, or no name
        zone = None
    unnamed = f"Local-{re.sub('[^A-Za-z0-9+-]', '', '-'.join(time.tzname))}"
    if zone is None:
        return unnamed
    weeks = [datetime(first, 1, 1, tzinfo=UTC) + count * WEEK for count in range((last - first + 1) * 53)]
    same = all(week.astimezone(zone).utcoffset() == week.astimezone().utcoffset() for week in weeks)
    return name if same else unnamed


def _event(entry: Entry, zone: str) -> icalendar.Event:
    import icalendar

    made = icalendar.Event()
    made.add("uid", entry.uid)
    # The same as the change's, so that a document that says the same is the same.
    made.add("dtstamp", entry.changed_at.replace(tzinfo=UTC, microsecond=0))
    made.add("last-modified", entry.changed_at.replace(tzinfo=UTC, microsecond=0))
    made.add("sequence", entry.sequence)
    _add_time(made, "dtstart", entry.starts_at, zone, all_day=entry.all_day)
    if entry.ends_at is not None and (entry.all_day or entry.ends_at > entry.starts_at):
        # The end of whole days is the day after the last one.
        ends_at = max(entry.starts_at, entry.ends_at) + DAY if entry.all_day else entry.ends_at
        _add_time(made, "dtend", ends_at, zone, all_day=entry.all_day)
    made.add("summary", entry.title)
    if entry.note:
        made.add("description", entry.note)
    if entry.page:
        made.add("url", entry.page)
    if entry.category:
        made.add("categories", [entry.category])
    made.add("status", "CANCELLED" if entry.is_cancelled else "CONFIRMED")
    # What a screenshot names takes no time from the person's calendar.
    made.add("transp", "TRANSPARENT")
    return made


def _add_time(made: icalendar.Event, name: str, moment: datetime, zone: str, *, all_day: bool) -> None:
    if all_day:
        made.add(name, moment.date())
    else:
        made.add(name, moment.replace(second=moment.second, microsecond=0), parameters={"TZID": zone})


class _Clock(tzinfo):
    """This machine's clock, by the rules that its C library has."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(seconds=_at(moment).tm_gmtoff)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=_at(moment).tm_isdst > 0)

    def tzname(self, moment: datetime | None) -> str:
        return _at(moment).tm_zone


def _at(moment: datetime | None) -> time.struct_time:
    if moment is None:
        raise ValueError("the clock's offset depends on the moment")
    return time.localtime(time.mktime(moment.replace(tzinfo=None).timetuple()))
