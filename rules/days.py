"""Reads days and times of day in a text, in the forms that screens write: English, Chinese, numbers, words
like "tomorrow", and ranges of them. How months are written is `MONTH` in `rules/entities.py`.

A day is resolved by when the screenshot was taken: that gives "Friday" its date, and "3 Jan" its year. Where
a date in figures can be read in two ways (3/12/2026) and nothing else on the screen decides, it is not read.

Every pattern takes linear time: repetitions are bounded. `folded` keeps the length of a text, so places in it
are places in the original.

More than 550 lines, because the forms of days and of times are one grammar, which decides by the longest.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from rules import wordlists
from rules.entities import MONTH, SHORT_WEEKDAYS
from rules.wordlists import END, START, any_in, any_of

# Without a year, a day up to this long ago is rather a past one than one of the next year.
BEHIND = timedelta(days=90)
LATE = 10  # from this hour on, a party without am or pm is rather in the morning
_FOLDED = str.maketrans(
    "０１２３４５６７８９：，．／（）｜–—−‐‑~～〜號點週後時兩○零至",
    "0123456789:,./()|--------号点周后时两〇〇到",
)
_DIGITS = {digit: number for number, digit in enumerate("〇一二三四五六七八九")} | {"两": 2, "十": 10}
# January is 1, and Monday is 0.
_MONTHS, _ENGLISH = (wordlists.numbered("days", part, 1) for part in ("months", "numbers"))
_WEEKDAYS, _SHORT_WEEKDAYS = (wordlists.numbered("days", part) for part in ("weekdays", "weekdays_short"))
_RELATIVE, _WEEKS = (
    {
        word: int(number)
        for number, languages in wordlists.table("days")[part].items()
        for words in languages.values()
        for word in wordlists.entries(words)
    }
    for part in ("relative", "weeks")
)
_EVENINGS = frozenset(wordlists.listed("days", "evenings"))
# The part of the day of each Chinese word for one.
_PARTS = {
    word: part
    for part, words in wordlists.table("days")["parts"].items()
    for word in wordlists.entries(words)
}


class Day(NamedTuple):
    """A day as it is written: what is not there is None. `weekday` is 0 for Monday; `weeks` is 0 for this
    week, 1 for the next one; `either` is whether month and day can change places,
    `vague` whether it counts only with a word that is certain: 3/12, "in 30 days".
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    weeks: int | None = None
    offset: int | None = None
    either: bool = False
    vague: bool = False
    evening: bool = False

    @property
    def is_weekday(self) -> bool:
        """Whether it is a weekday and nothing else."""
        return self.weekday is not None and self.day is None


class Clock(NamedTuple):
    """A time of day as it is written. `half` is "a" or "p", or "" where it is not written; `bare` is "at 7",
    `padded` is "07:00", and `seconds` are only written in records of what has happened.
    """

    hour: int
    minute: int
    half: str = ""
    bare: bool = False
    padded: bool = False
    seconds: bool = False


@dataclass(frozen=True)
class When:
    """A day, a time of day, or both, from `start` to `end` in a text; `last` and `until` end a range."""

    start: int
    end: int
    first: Day | None = None
    last: Day | None = None
    clock: Clock | None = None
    until: Clock | None = None
    repeats: bool = False  # "Mon–Fri", "every Friday"


class _Token(NamedTuple):
    start: int
    end: int
    first: Day | None
    last: Day | None
    clock: Clock | None


def folded(text: str) -> str:
    """`text` with one form for each sign: ASCII digits and colons, a hyphen for all dashes."""
    return text.translate(_FOLDED)


def whens(text: str) -> list[When]:
    """The days and times in a folded text, in its order; those that belong together are one."""
    found: list[When] = []
    for token in _tokens(text):
        joined = _joined(found[-1], token, text[found[-1].end : token.start]) if found else None
        if joined is not None:
            found[-1] = joined
        else:
            found.append(When(token.start, token.end, token.first, token.last, token.clock))
    return [_whole(one, text) for one in found if not (one.first is None and one.clock and one.clock.bare)]


def day_first(text: str) -> bool | None:
    """Whether the screen with this folded text writes the day before the month; None where nothing shows."""
    for match in _NUMERIC.finditer(text):
        first, second = int(match["a"]), int(match["b"])
        if match["s"] != "." and (first > 12) != (second > 12):
            return first > 12
    if any("\u4e00" <= letter <= "\u9fff" for letter in text):
        return False
    if re.search(r"[€£]|(?<!\d)(?:1[3-9]|2[0-3]):[0-5]\d", text):
        return True
    return False if re.search(r"\$ ?\d", text) else None


def resolved(day: Day, taken: datetime, order: bool | None, *, past: bool = False) -> date | None:
    """The date that is meant on a screenshot that was `taken` then; None where it is none, or is not certain.
    `order` is whether numbers have the day first; `past` is for what has happened already.
    """
    today = taken.date()
    if day.offset is not None:
        return today + timedelta(days=day.offset)
    if day.month is None and day.day is not None:
        return _day_of_month(day, today)
    if day.day is None:
        return _weekday(day, today)
    month, number = day.month or 0, day.day
    if day.either and number != month:
        if order is None:
            return None
        if order:
            month, number = number, month
    if day.year is not None:
        return _date(day.year, month, number)
    dates = [_date(today.year + more, month, number) for more in (-1, 0, 1)]
    possible = [one for one in dates if one is not None]
    if day.weekday is not None:
        possible = [one for one in possible if one.weekday() == day.weekday] or possible
    if past:
        return max((one for one in possible if one <= today), default=None)
    ahead = [one for one in possible if one >= today - BEHIND]
    return min(ahead, default=None) or max(possible, default=None)


def contradicts(day: Day, found: date) -> bool:
    """Whether another weekday is written beside a day: it is one of another year, or misread."""
    return day.weekday is not None and day.day is not None and day.weekday != found.weekday()


def clock(
    written: Clock, *, tonight: bool = False, evening: bool = False, after: Clock | None = None
) -> time:
    """The time of day. `tonight` is whether its day is "tonight", `evening` whether a word near it says so; a
    bare hour is one at which people meet. `after` is the beginning of a range that ends with it.
    """
    hour = written.hour % 24
    if written.half:
        hour = hour % 12 + (12 if written.half == "p" else 0)
    elif 1 <= hour < 12 and (
        tonight
        or (evening and hour < LATE and not written.padded)
        or (written.bare and hour <= 7)
        or _goes_on(written, after)
    ):
        hour += 12
    return time(hour, written.minute)


def _goes_on(written: Clock, after: Clock | None) -> bool:
    """Whether a range from an afternoon ends in it: 下午2:30-4:00."""
    return after is not None and after.half == "p" and written.hour < 12


# ------------------------------------------------------------------------------------------------- resolving


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _day_of_month(day: Day, today: date) -> date | None:
    """The next day with this number, and with this weekday if one is written."""
    for months in range(-1, 13):
        year, month = divmod(today.year * 12 + today.month - 1 + months, 12)
        found = _date(year, month + 1, day.day or 0)
        if found is None or found < today or (day.weekday is not None and found.weekday() != day.weekday):
            continue
        return found
    return None


def _weekday(day: Day, today: date) -> date:
    if day.weeks is not None:
        return today + timedelta(days=(day.weekday or 0) - today.weekday() + 7 * day.weeks)
    return today + timedelta(days=((day.weekday or 0) - today.weekday()) % 7)


# --------------------------------------------------------------------------------------------------- joining

_JOIN = re.compile(
    r"[\s,.·•|@()/:T-]{0,4}(?:(?:" + any_in("days", "joining", end=r"\b") + r"|kl\.)\s?)?[\s,·•|@(:]{0,3}",
    re.IGNORECASE,
)
_RANGE = re.compile(rf"\s{{0,3}}(?:-|{any_in('days', 'ranges')})\s{{0,3}}", re.IGNORECASE)
_REPEATS = re.compile(any_in("days", "repeating", r"\b") + r"[\s]{0,2}$", re.IGNORECASE)


def _joined(when: When, token: _Token, gap: str) -> When | None:
    """`when` with a further part, if the text between them connects them."""
    if len(gap) > 24:
        return None
    if _RANGE.fullmatch(gap):
        if token.clock and when.clock and when.until is None:
            return replace(when, end=token.end, until=token.clock)
        if token.first and when.first and when.last is None and token.last is None:
            if when.first.is_weekday and token.first.is_weekday:
                return replace(when, end=token.end, repeats=True)
            if when.first.is_weekday == token.first.is_weekday:
                return replace(when, end=token.end, last=token.first)
    if not _JOIN.fullmatch(gap):
        return None
    if token.clock:
        if when.clock is None and when.first is not None:
            return replace(when, end=token.end, clock=token.clock)
        if when.clock is not None and when.until is None and when.last is not None:
            return replace(when, end=token.end, until=token.clock)
        return None
    if token.first is None:
        return None
    if when.first is None:
        return replace(when, end=token.end, first=token.first, last=token.last)
    if (
        when.last is None
        and when.first.is_weekday
        and token.first.weekday is None
        and (when.clock is None or len(gap) <= 2)
    ):
        if token.first.offset is not None:
            return replace(when, end=token.end, first=token.first)
        first = token.first._replace(weekday=when.first.weekday)
        return replace(when, end=token.end, first=first, last=token.last)
    if when.last is None and token.first.is_weekday and when.first.weekday is None:
        return replace(when, end=token.end, first=when.first._replace(weekday=token.first.weekday))
    return None


def _whole(when: When, text: str) -> When:
    """`when` with what its parts give each other: the year of the end, the half of the day of the end."""
    first, last = when.first, when.last
    if first and last and first.year is None and last.year is not None and first.month and last.month:
        later = (first.month, first.day or 0) > (last.month, last.day or 0)
        when = replace(when, first=first._replace(year=last.year - later))
    start, end = when.clock, when.until
    if start and end and end.half and not start.half and start.hour <= 12:
        # 9-10:30 am, 11:30-1 pm
        half = end.half if start.hour % 12 <= end.hour % 12 else "a"
        when = replace(when, clock=start._replace(half=half))
    before = _REPEATS.search(text[max(0, when.start - 12) : when.start])
    if before and before[0].strip().lower() != "on" and first is not None and first.is_weekday:
        when = replace(when, repeats=True)
    return when


# ---------------------------------------------------------------------------------------------------- tokens

_YEAR = r"(?P<y>(?:19|20)\d\d)"
_ORDINAL = r"(?:st|nd|rd|th|er|º)"
_OF = r"(?:of |de )?"
_NUMERIC = re.compile(
    r"(?<![\d./-])(?P<a>\d{1,2})(?P<s>[./-])(?P<b>\d{1,2})(?P=s)(?P<y>(?:19|20)?\d\d)(?!\d|[./-]\d)"
)


def _number(written: str) -> int:
    """A number up to 99 in Chinese or ASCII digits: 十二, 二十, 3."""
    if written.isdigit() and written.isascii():
        return int(written)
    tens, ten, ones = written.partition("十")
    if not ten:
        return _DIGITS[written]
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _absolute(match: re.Match[str]) -> Day | None:
    year = match.groupdict().get("y")
    return Day(int(year) if year else None, int(match["m"]), int(match["d"]))


def _named(match: re.Match[str]) -> Day | None:
    year, month = match["y"], match["month"].casefold()
    is_verb = match["month"] in ("may", "march", "mar") and match.start("month") < match.start("d")
    if is_verb or month not in _MONTHS:
        return None
    return Day(int(year) if year else None, _MONTHS[month], int(match["d"]))


def _chinese(match: re.Match[str]) -> Day | None:
    digits = match["y"]
    year = int("".join(str(_DIGITS[digit]) for digit in digits)) if digits else None
    return Day(year, _number(match["m"]), _number(match["d"]))


def _numeric(match: re.Match[str]) -> Day | None:
    first, second, year = int(match["a"]), int(match["b"]), int(match["y"])
    year += 2000 if year < 100 else 0
    if match["s"] == "." or first > 12:
        return Day(year, second, first)
    return Day(year, first, second, either=second <= 12)


def _short(match: re.Match[str]) -> Day | None:
    first, second = int(match["a"]), int(match["b"])
    if first > 12:
        return Day(None, second, first, vague=True)
    return Day(None, first, second, either=second <= 12, vague=True)


def _relative(match: re.Match[str]) -> Day | None:
    word = match[0].casefold()
    return Day(offset=_RELATIVE[word], evening=word in _EVENINGS)


def _ahead(match: re.Match[str]) -> Day | None:
    written = match["n"].casefold()
    number = _ENGLISH[written] if written in _ENGLISH else _number(written)
    return Day(offset=number * (7 if match["unit"].casefold() in ("week", "周", "星期") else 1), vague=True)


def _of_week(match: re.Match[str]) -> Day | None:
    prefix, word = (match["next"] or "").casefold(), match["w"].casefold()
    weekday = _WEEKDAYS.get(word, _SHORT_WEEKDAYS.get(word))
    if weekday is None:
        row = "月火水木金土日" if word in "月火水木金土" or match[0][0] == "(" else "一二三四五六日天"
        weekday = row.index(word[-1]) % 7
    return Day(weekday=weekday, weeks=_WEEKS.get(prefix))


def _nth(match: re.Match[str]) -> Day | None:
    return Day(day=int(match["d"]))


_D = r"(?P<d>3[01]|[12]\d|0?[1-9])"
_E = r"(?P<e>3[01]|[12]\d|0?[1-9])"
_TO = rf"(?:-|{any_in('days', 'day_ranges')})"
_ANY_MONTH = any_of(_MONTHS)
_ALONE = r"(?<![\d./:$€£¥#-])"
_DAYS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Day | None]], ...] = (
    # A clock may follow without a space: recognised text loses some.
    (
        re.compile(
            rf"(?<![\d./]){_YEAR} ?[-/.年] ?(?P<m>\d{{1,2}}) ?[-/.月] ?{_D}(?:(?!\d)|(?=\d\d:)) ?[日号]?"
        ),
        _absolute,
    ),
    (re.compile(rf"(?<![\d年])(?:{_YEAR} ?年 ?)?(?P<m>1[0-2]|0?[1-9]) ?月 ?{_D} ?[日号]"), _absolute),
    (
        re.compile(
            r"(?:(?P<y>[〇一二三四五六七八九]{4})年)?(?P<m>十[一二]?|[一二三四五六七八九])月"
            r"(?P<d>[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])[日号]"
        ),
        _chinese,
    ),
    (
        re.compile(
            rf"(?<![\d:./$€£])(?<!\d-){_D}(?:{_ORDINAL}|\.)? ?{_OF}(?P<month>{_ANY_MONTH})(?![a-zà-ÿ])\.?"
            rf"(?:,? ?(?:de |del )?{_YEAR}(?!\d))?",
            re.IGNORECASE,
        ),
        _named,
    ),
    (
        re.compile(
            rf"(?<![a-z])(?P<month>{MONTH})\.? ?{_D}{_ORDINAL}?(?!\d|[:.,]\d)(?:,? ?{_YEAR}(?!\d))?",
            re.IGNORECASE,
        ),
        _named,
    ),
    (_NUMERIC, _numeric),
    (re.compile(_ALONE + r"(?P<a>\d{1,2})/(?P<b>\d{1,2})(?![\d/.:%]|-\d)"), _short),
    # 11-22 only where a time or a weekday follows, or "by" in Chinese.
    (
        re.compile(_ALONE + r"(?P<a>\d\d)-(?P<b>\d\d)(?= ?\(?(?:\d\d:\d\d|周|星期|前|之前|到期))"),
        _short,
    ),
    (
        re.compile(_ALONE + r"(?P<b>\d{1,2})\.(?P<a>\d{1,2})\.(?!\d)"),
        lambda match: Day(None, int(match["a"]), int(match["b"])),
    ),
    (re.compile(any_of(_RELATIVE, START, END), re.IGNORECASE), _relative),
    (
        re.compile(
            rf"(?<![a-z])(?:in|within)(?: the next)? (?P<n>\d{{1,3}}|{any_of(_ENGLISH)})"
            r" ?(?P<unit>day|week)s?(?![a-z])",
            re.IGNORECASE,
        ),
        _ahead,
    ),
    (
        re.compile(r"(?<![a-z\d])(?P<n>\d{1,3}) (?P<unit>day)s? (?:left|remaining|to go)", re.IGNORECASE),
        _ahead,
    ),
    (
        re.compile(
            r"(?<!\d)(?P<n>\d{1,3}|[一二两三四五六七八九十]) ?个?(?P<unit>天|日|周|星期)(?:之|以)?[后内]"
        ),
        _ahead,
    ),
    (re.compile(r"(?:还有|还剩|剩余?) ?(?P<n>\d{1,3}|[一二两三四五六七八九十]) ?(?P<unit>天)"), _ahead),
    (
        re.compile(rf"(?<![a-z])(?:(?P<next>next|this) )?(?P<w>{any_of(_WEEKDAYS)})(?![a-z])", re.IGNORECASE),
        _of_week,
    ),
    (
        re.compile(
            r"(?<![A-Za-z])(?:(?P<next>next|this) )?(?P<w>"
            + any_of([*map(str.capitalize, _SHORT_WEEKDAYS), *map(str.upper, SHORT_WEEKDAYS)])
            + r")(?![A-Za-z])\.?"
        ),
        _of_week,
    ),
    (re.compile(r"(?P<next>)\((?P<w>[月火水木金土日])\)"), _of_week),
    (
        re.compile(
            rf"(?P<next>{any_of(word for word in _WEEKS if not word.isascii())})?"
            rf"(?P<w>{any_in('days', 'week')}[一二三四五六日天])(?![年岁])"
        ),
        _of_week,
    ),
    (re.compile(rf"(?<![a-z\d])(?:the ){_D}{_ORDINAL}(?![a-z\d])", re.IGNORECASE), _nth),
    (re.compile(rf"(?<={any_of(['day', *SHORT_WEEKDAYS])} ){_D}{_ORDINAL}(?![a-z\d])", re.IGNORECASE), _nth),
    (
        re.compile(
            rf"(?<![\d排车栋路座第月年\u3041-\u30ff]){_D}[日号]"
            rf"(?={any_in('days', 'behind_day')}|\s?\d{{1,2}}[:点]|[,。;!]|$)"
        ),
        _nth,
    ),
)
_RANGES: tuple[re.Pattern[str], ...] = (
    re.compile(
        rf"(?<![\d:./$€£])(?<!\d-){_D}(?:{_ORDINAL}|\.)? ?{_TO} ?{_E}(?:{_ORDINAL}|\.)? ?(?:of |de )?"
        rf"(?P<month>{_ANY_MONTH})(?![a-zà-ÿ])\.?(?:,? ?(?:de |del )?{_YEAR}(?!\d))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?<![a-z])(?P<month>{MONTH})\.? ?{_D}{_ORDINAL}? ?{_TO} ?{_E}{_ORDINAL}?(?![\d:])"
        rf"(?! ?(?:{MONTH}))(?:,? ?{_YEAR}(?!\d))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?<![\d年])(?:{_YEAR} ?年 ?)?(?P<m>1[0-2]|0?[1-9]) ?月 ?{_D} ?[日号]?"
        rf" ?(?:-|到) ?{_E} ?[日号]"
    ),
)
_HALF = r"(?P<half>[ap])\.?m(?![a-z])\.?"
_PART = rf"(?<![今明])(?P<part>{any_of(_PARTS)})"
_HOUR = r"1[0-2]|0?[1-9]"
_BARE = re.compile(
    rf"(?<=at )(?P<h>{_HOUR})(?![\d:%-]|[.,/]\d| ?[ap]\.?m| \w{{0,9}}(?:street|st|road)\b)", re.IGNORECASE
)
_CLOCKS: tuple[re.Pattern[str], ...] = (
    re.compile(
        rf"(?:{_PART} ?)?(?<![\d:.,])(?P<h>[01]?\d"
        rf"|2[0-4]):(?P<mi>[0-5]\d)(?P<s>:[0-5]\d)?(?: ?{_HALF})?(?![\d:])",
        re.IGNORECASE,
    ),
    re.compile(rf"(?<![\d:.,$€£/])(?P<h>{_HOUR}) ?{_HALF}", re.IGNORECASE),
    # The beginning of "2-4 pm".
    re.compile(
        rf"(?<![\d:.,$€£/-])(?P<h>{_HOUR})(?= ?(?:-|to) ?(?:{_HOUR})(?::[0-5]\d)? ?[ap]\.?m)", re.IGNORECASE
    ),
    re.compile(r"(?<![a-z])(?:noon|midnight)(?![a-z])", re.IGNORECASE),
    re.compile(r"(?<![\d:.,])(?P<h>[01]?\d|2[0-4])(?:[.:](?P<mi>[0-5]\d))? Uhr"),
    re.compile(r"(?<![\w:.,])(?P<h>[01]\d|2[0-3])[hH](?P<mi>[0-5]\d)(?!\w)"),  # 2h30 is a duration
    re.compile(
        rf"(?:{_PART} ?)?(?<![\d第几:.,])"
        r"(?P<h>\d{1,2}|十[一二]?|二十[一二三四]?|[一二三四五六七八九两]) ?[点时](?![间段候光代评赞击])"
        r"(?: ?(?P<mi>半|一刻|三刻|[0-5]?\d ?分?)(?!\d))?(?:钟|整)?"
    ),
    _BARE,
    re.compile(rf"(?<![\d:.,])(?P<h>{_HOUR}) ?o'clock", re.IGNORECASE),
)


def _clock(match: re.Match[str]) -> Clock | None:
    groups = match.groupdict()
    if "h" not in groups:
        return Clock(12, 0, "p") if match[0].casefold() == "noon" else Clock(0, 0)
    hour, written = _number(groups["h"]), groups.get("mi") or ""
    minute = {"半": 30, "一刻": 15, "三刻": 45, "": 0}.get(written)
    minute = int(written.rstrip("分 ")) if minute is None else minute
    half, part = (groups.get("half") or "").casefold(), _PARTS.get(groups.get("part") or "", "")
    if hour == 24 or (hour == 12 and part == "night"):
        return Clock(23, 59)  # the end of the day
    if hour > 24 or minute > 59:
        return None
    if part in ("afternoon", "night") or (part == "noon" and hour not in (10, 11)):
        half = "p"
    elif part:
        half = "p" if part == "forenoon" and hour == 12 else "a"
    bare = match.re is _BARE
    exact = groups.get("s") is not None
    return Clock(hour, minute, half if 1 <= hour <= 12 else "", bare, groups["h"][0] == "0", exact)


def _tokens(text: str) -> Iterator[_Token]:
    """The days and clocks in the order of the text; of those that overlap, the first and longest."""
    found: list[_Token] = []
    for pattern in _RANGES:
        for match in pattern.finditer(text):
            day = _named(match) if "month" in match.groupdict() else _absolute(match)
            if day is not None and int(match["e"]) > (day.day or 0):
                found.append(_Token(*match.span(), day, day._replace(day=int(match["e"])), None))
    for pattern, read in _DAYS:
        for match in pattern.finditer(text):
            day = read(match)
            if day is not None:
                found.append(_Token(*match.span(), day, None, None))
    joined = {token.end for token in found}
    for pattern in _CLOCKS:
        for match in pattern.finditer(text):
            written = _clock(match)
            if written is not None:
                found.append(_Token(*match.span(), None, None, written))
    for end in joined:  # 2026-11-2214:30
        glued = _GLUED.match(text, end)
        if glued is not None:
            found.append(_Token(*glued.span(), None, None, _clock(glued)))
    end = 0
    for token in sorted(found, key=lambda one: (one.start, -one.end)):
        if token.start >= end:
            end = token.end
            yield token


_GLUED = re.compile(r"(?P<h>[01]\d|2[0-3]):(?P<mi>[0-5]\d)(?P<s>:[0-5]\d)?(?![\d:])")
