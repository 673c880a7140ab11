"""Finds what happens on a day that a screenshot names: a flight, a bill, a parcel to pick up, an appointment.

A date counts only with a cue, a word like "due" or "departs" near it: clocks, dates of posts and lengths of
videos are on every second screen. Only words that are there are read; nothing is understood.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime

from engines.lines import Page
from text import one_line, shortened

MOST = 20
MAX_TITLE = 120
MAX_QUOTE = 300


@dataclass(frozen=True)
class Occasion:
    """Something that happens at a time. `kind` is event, deadline, departure, pickup, appointment or expiry;
    `title` says what it is. `starts_at` and `ends_at` are local time without a zone: "2026-11-22" if
    `all_day`, else "2026-11-22T14:30". `quote` is the line that it is on, whose index in the page is `line`.
    """

    kind: str
    title: str
    starts_at: str
    ends_at: str | None
    all_day: bool
    quote: str
    line: int


def occasions(page: Page, taken: datetime) -> list[Occasion]:
    """The occasions on a page, at most `MOST`, in order of `starts_at`. `taken` is when the screenshot was
    taken, in local time without a zone.
    """
    found = []
    for index, line in enumerate(page.written):
        text = line.text[:MAX_QUOTE]
        kind = next((kind for kind, cue in _CUES if cue.search(text)), "")
        match = _DATE.search(text)
        if not kind or match is None:
            continue
        try:
            day = date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            continue
        clock = _CLOCK.search(text, match.end())
        start = f"{day}T{int(clock[1]):02}:{clock[2]}" if clock else f"{day}"
        found.append(
            Occasion(kind, shortened(one_line(text), MAX_TITLE), start, None, not clock, text, index)
        )
    return sorted(found, key=lambda one: (one.starts_at, one.line))[:MOST]


def standing(page: Page, said: str, taken: datetime, label: str = "") -> Occasion | None:
    """The occasion whose line contains `said`, a date as a remote model gives it; None where no line does.
    `label` is what the model says the date is for.
    """
    squeezed = "".join(said.casefold().split())
    if not squeezed:
        return None
    return next(
        (one for one in occasions(page, taken) if squeezed in "".join(one.quote.casefold().split())), None
    )


_CUES = (
    ("departure", re.compile(r"\b(?:depart|boarding|flight)|出发|登机|起飞|发车", re.IGNORECASE)),
    ("pickup", re.compile(r"\bpick ?up|\bcollect|取件|取货", re.IGNORECASE)),
    ("expiry", re.compile(r"\bexpir|\bvalid until|有效期|到期", re.IGNORECASE)),
    ("deadline", re.compile(r"\bdue\b|\bdeadline\b|截止|还款", re.IGNORECASE)),
    ("appointment", re.compile(r"\bappointment\b|预约|挂号|复诊", re.IGNORECASE)),
    ("event", re.compile(r"\bmeeting\b|\bstarts?\b|会议|开会", re.IGNORECASE)),
)
_DATE = re.compile(r"(?<!\d)(20\d\d)(?:[-/.]|年 ?)(\d{1,2})(?:[-/.]|月 ?)(\d{1,2})(?!\d)")
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-3])[:：]([0-5]\d)(?!\d)")
