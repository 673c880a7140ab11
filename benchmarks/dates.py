"""Lines and screens with labelled dates, for `rules/occasions.py`: airlines, parcel lockers, banks,
hospitals, cinemas, trains, calendars, bills, coupons, visas, chats, and as many on which nothing is to come.

They are made from the templates of `dates.txt` with days, times and forms by a seed. Half of the templates
are held out by a hash of their text: only their totals are printed. In a template `{d1}` is a day to come,
`{p1}` a past one, `{x1}` the end of a document's validity, `{b1}` a birth, `{t1}` a time of day, `{d1..d2}`
and `{t1..t2}` are ranges, and what follows a dot is a form: `.rel` is "tomorrow" or "Friday".
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks import drawn
from engines.lines import Line, Page
from rules.occasions import occasions
from rules.planned import Occasion

TEMPLATES = Path(__file__).with_name("dates.txt")
LINES, SCREENS = 400, 120
SEED = 20  # the tests use others
_SLOT = re.compile(r"\{([a-z]\d?)(?:\.\.([a-z]\d))?(?:\.([a-z]+))?\}")
_CHINESE = "零一二三四五六七八九十"
_WEEKDAYS = "一二三四五六日"


class Expected(NamedTuple):
    """An occasion that is right: any of `kinds`."""

    kinds: tuple[str, ...]
    starts_at: str
    ends_at: str | None


class Case(NamedTuple):
    """A line or a screen, when it was taken, and what is to be found on it. `page` is None for a screen,
    which is drawn and read.
    """

    name: str
    held_out: bool
    taken: datetime
    screen: drawn.Screen
    page: Page | None
    expected: tuple[Expected, ...]


class Score(NamedTuple):
    """How many occasions were expected and found, and how many of these are right."""

    expected: int
    found: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.found)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.expected)

    def __str__(self) -> str:
        return (
            f"{self.right} of {self.expected} dates, {self.found} found: "
            f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        )


def lines(seed: int = SEED, count: int = LINES) -> list[Case]:
    """`count` lines, each with its page."""
    templates = [row for row in _text().partition("\n@ ")[0].splitlines() if row and row[0] != "#"]
    cases = []
    for number, (template, filled) in enumerate(_drawn(templates, seed, count)):
        labels, text = (part.strip() for part in template.split("|", 1))
        rows = filled.fill(text)
        screen = drawn.Screen(f"line-{number}", (), (), "", (), (rows,))
        cases.append(
            Case(rows, _held_out(text), filled.taken, screen, _page(rows), filled.expected(labels.split()))
        )
    return cases


def screens(seed: int = SEED, count: int = SCREENS) -> list[Case]:
    """`count` screens, which are to be drawn and read."""
    blocks = ["@ " + block.strip() for block in ("\n" + _text()).split("\n@ ")[1:]]
    cases = []
    for template, filled in _drawn(blocks, seed, count):
        head, *rows = template.splitlines()
        _, name, *labels = head.split()
        screen = drawn.Screen(name, (), (), "", (), tuple(filled.fill(row) for row in rows))
        cases.append(Case(name, _held_out(name), filled.taken, screen, None, filled.expected(labels)))
    return cases


def score(cases: Iterable[Case], found: Iterable[Sequence[Occasion]]) -> Score:
    """How well `found`, the occasions of each case, fits: kind, start and end must be right."""
    expected = all_found = right = 0
    for case, here in zip(cases, found, strict=True):
        expected, all_found = expected + len(case.expected), all_found + len(here)
        right += len(here) - len(wrong(case, here)[0])
    return Score(expected, all_found, right)


def wrong(case: Case, found: Sequence[Occasion]) -> tuple[list[Occasion], list[Expected]]:
    """What was found wrongly, and what was not found."""
    missing, surplus = list(case.expected), []
    for one in found:
        fits = next(
            (
                expected
                for expected in missing
                if one.kind in expected.kinds
                and (one.starts_at, one.ends_at) == (expected.starts_at, expected.ends_at)
            ),
            None,
        )
        if fits is None:
            surplus.append(one)
        else:
            missing.remove(fits)
    return surplus, missing


def report(read: Callable[[bytes], Page], *, held_out: bool = False) -> None:
    """Print the scores of all lines and screens. `read` reads a drawn picture; `held_out` lists the errors of
    that half, too.
    """
    print("\n== dates that come back")
    for name, cases in (("lines", lines()), ("screens", screens())):
        pages = [case.page or read(drawn.draw(case.screen)) for case in cases]
        found = [occasions(page, case.taken) for case, page in zip(cases, pages, strict=True)]
        for is_held_out in (False, True):
            half = [pair for pair in zip(cases, found, strict=True) if pair[0].held_out == is_held_out]
            total = score([case for case, _ in half], [here for _, here in half])
            print(f"{name}, {'held out' if is_held_out else 'tuning'}: {len(half)}, {total}")
            for case, here in half if held_out or not is_held_out else ():
                _print_errors(case, here)
        print(f"{name}: {len(cases)}, {score(cases, found)}")


def _print_errors(case: Case, found: Sequence[Occasion]) -> None:
    surplus, missing = wrong(case, found)
    if surplus or missing:
        print(f"  {case.name} (taken {case.taken:%a %Y-%m-%d %H:%M})")
    for one in surplus:
        print(f"    wrong: {one.kind} {one.starts_at} {one.ends_at or ''} {one.quote!r}")
    for expected in missing:
        print(f"    missing: {'/'.join(expected.kinds)} {expected.starts_at} {expected.ends_at or ''}")


def _text() -> str:
    return TEMPLATES.read_text(encoding="utf-8")


def _held_out(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def _drawn(templates: Sequence[str], seed: int, count: int) -> "list[tuple[str, _Filled]]":
    """`count` templates, all of them equally often, each with its values."""
    dice = random.Random(seed)
    order = [template for _ in range(count // len(templates) + 1) for template in _shuffled(templates, dice)]
    return [(template, _Filled(template, dice)) for template in order[:count]]


def _shuffled(templates: Sequence[str], dice: random.Random) -> list[str]:
    return dice.sample(templates, len(templates))


def _page(rows: str) -> Page:
    """A page with these lines: `::` is before a text at the right, `//` before one below."""
    found = []
    for number, row in enumerate(rows.split(" // ")):
        left, _, right = row.partition(" :: ")
        top = 700 + 96 * number
        found.append(Line(left, 0.98, 60, top, min(1040, 60 + _width(left)), top + 44))
        if right:
            found.append(Line(right, 0.98, 1020 - _width(right), top, 1020, top + 44))
    return Page(1080, 2340, found)


def _width(text: str) -> int:
    return sum(42 if letter > "\u2e80" else 20 for letter in text)


class _Filled:
    """The values of a template's slots, and the form in which they are written."""

    def __init__(self, template: str, dice: random.Random):
        self._dice = dice
        self.is_chinese = any("\u2e80" < letter < "\uffef" for letter in template)
        self.taken = datetime(2024, 1, 1) + timedelta(
            days=dice.randrange(1_400), minutes=dice.randrange(480, 1_200)
        )
        today = self.taken.date()
        forms = {match[3] for match in _SLOT.finditer(template) if match[1].startswith("d")}
        most = 6 if forms & {"rel", "week", "in"} else 27 if "nth" in forms else 120
        first = today + timedelta(days=dice.randint(2 if "in" in forms else 1, most))
        self._days = {
            "d0": today + (first - today) // 2 if most > 6 else first,
            "d1": first,
            "d2": first + timedelta(days=dice.randint(1, 4)),
            "p1": today - timedelta(days=dice.randint(2, 80)),
            "x1": today + timedelta(days=dice.randint(-600, 3_600)),
            "b1": date(1950, 1, 1) + timedelta(days=dice.randrange(20_000)),
        }
        if "d0" in template and self._days["d0"] == today:
            self._days["d0"] = first
        hour = dice.randint(13, 19) if "{t1.h}" in template else dice.randint(7, 18)
        minute = 0 if "{t1.h}" in template else dice.choice((0, 0, 15, 30, 30, 45, 5, 50))
        start = datetime.combine(today, time(hour, minute))
        later = start + timedelta(minutes=dice.choice((30, 40, 60, 90, 120)))
        self._times = {"t1": start.time(), "t2": later.time()}
        self._day_form = dice.randrange(100)
        self._time_form = dice.randrange(100)

    def fill(self, text: str) -> str:
        """`text` with its slots filled."""
        return _SLOT.sub(self._slot, text)

    def expected(self, labels: Iterable[str]) -> tuple[Expected, ...]:
        """`["deadline/expiry:d1@t1..t2"]` with the values."""
        found = []
        for label in labels:
            if label == "-":
                continue
            kinds, _, when = label.partition(":")
            start, _, end = when.removesuffix(".h").partition("..")
            day = start.partition("@")[0]
            ends_at = self._value(end if end.startswith("d") else f"{day}@{end}") if end else None
            found.append(Expected(tuple(kinds.split("/")), self._value(start), ends_at))
        return tuple(sorted(found, key=lambda one: one.starts_at))

    def _value(self, name: str) -> str:
        day, _, clock = name.partition("@")
        return f"{self._days[day]}T{self._times[clock]:%H:%M}" if clock else f"{self._days[day]}"

    def _slot(self, match: re.Match[str]) -> str:
        name, end, form = match.groups()
        if name.startswith("t"):
            return self._time_range() if end else self._time(self._times[name], form or "")
        return self._range(self._days[name], self._days[end]) if end else self._day(name, form or "")

    # ------------------------------------------------------------------------------------------------- days

    def _day(self, name: str, form: str) -> str:
        day, today = self._days[name], self.taken.date()
        away = (day - today).days
        match form:
            case "ago":
                return str(-away)
            case "in":
                return str(away)
            case "y":
                return str(day.year)
            case "nth":
                return (
                    f"{day:%A} the {_ordinal(day.day)}"
                    if self._day_form % 2
                    else f"{day:%a} {_ordinal(day.day)}"
                )
            case "week":
                return self._weekday(day)
            case "rel" if away <= 2 and self.is_chinese:
                return ("明天", "后天")[away - 1]
            case "rel" if away == 1:
                return "tomorrow"
            case "rel":
                return self._weekday(day)
            case "zh":
                year = "".join("〇一二三四五六七八九"[int(digit)] for digit in str(day.year)) + "年"
                return f"{year if self._day_form % 2 else ''}{_chinese(day.month)}月{_chinese(day.day)}日"
        # Apps write the year of a day that is far away, and of each document.
        return self._absolute(day, with_year=abs(away) > 100 or name in ("x1", "b1"))

    def _weekday(self, day: date) -> str:
        if self.is_chinese:
            return ("周" if self._day_form % 2 else "星期") + _WEEKDAYS[day.weekday()]
        return f"{day:%A}"

    def _absolute(self, day: date, *, with_year: bool) -> str:
        if self.is_chinese:
            week = _WEEKDAYS[day.weekday()]
            forms = [f"{day.year}年{day.month}月{day.day}日", f"{day}", f"{day:%Y/%m/%d}", f"{day:%Y.%m.%d}"]
            if not with_year:
                forms += [
                    f"{day.month}月{day.day}日", f"{day.month}月{day.day}日", f"{day.month}月{day.day}号",
                    f"{day.month}月{day.day}日（周{week}）", f"{day.month}月{day.day}日 星期{week}",
                    f"{day:%m}月{day:%d}日",
                ]  # fmt: skip
            return forms[self._day_form % len(forms)]
        forms = [
            f"{day.day} {day:%b %Y}", f"{day:%b} {day.day}, {day.year}", f"{day.day} {day:%B %Y}", f"{day}",
            f"{day:%a}, {day.day} {day:%b %Y}",
            f"{day:%d.%m.%Y}", f"{day:%B} {_ordinal(day.day)}, {day.year}",
        ]  # fmt: skip
        if day.day > 12:
            forms += [f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}"]
        if not with_year:
            forms += [
                f"{day.day} {day:%b}", f"{day:%b} {day.day}", f"{day:%B} {day.day}",
                f"{day:%a}, {day:%b} {day.day}",
                f"{day:%A} {day.day} {day:%B}", f"{_ordinal(day.day)} {day:%B}",
                f"{day:%a} {day.day} {day:%b}",
                f"{day:%A}, {day:%B} {day.day}", f"{day:%d %b}".upper(),
            ]  # fmt: skip
        return forms[self._day_form % len(forms)]

    def _range(self, first: date, last: date) -> str:
        dash = ("–", "-", " – ", " - ")[self._time_form % 4]
        whole = (first.year, first.month) == (last.year, last.month)
        if self.is_chinese:
            to = ("至", "-", "~", "—")[self._time_form % 4]
            end = f"{last.day}日" if whole else f"{last.month}月{last.day}日"
            forms = [
                f"{first.month}月{first.day}日{to}{end}",
                f"{first.month}月{first.day}日{to}{last.month}月{last.day}日",
                f"{first:%Y.%m.%d}{to}{last:%Y.%m.%d}",
                f"{first.year}年{first.month}月{first.day}日{to}{last.year}年{last.month}月{last.day}日",
            ]
            return forms[self._day_form % len(forms)]
        forms = [
            f"{first.day} {first:%b}{dash}{last.day} {last:%b}",
            f"{first:%b} {first.day} – {last:%b} {last.day}",
        ]
        if whole:
            forms += [
                f"{first.day}{dash}{last.day} {last:%b}", f"{first:%b} {first.day}{dash}{last.day}",
                f"{first:%B} {first.day}{dash}{last.day}, {last.year}",
                f"{first.day} to {last.day} {last:%B}",
            ]  # fmt: skip
        return forms[self._day_form % len(forms)]

    # ------------------------------------------------------------------------------------------------ times

    def _time(self, clock: time, form: str) -> str:
        if form == "h":
            return str(clock.hour - 12)
        hour = (clock.hour - 1) % 12 + 1
        if self.is_chinese:
            part = (
                "上午"
                if clock.hour < 12
                else "中午"
                if clock.hour == 12
                else "下午"
                if clock.hour < 18
                else "晚上"
            )
            spoken = {0: "", 30: "半"}.get(clock.minute, f"{clock.minute:02}分")
            forms = [
                f"{clock:%H:%M}",
                f"{clock:%H:%M}",
                f"{part}{hour}点{spoken}",
                f"{part}{hour}:{clock:%M}",
            ]
            return forms[self._time_form % len(forms)]
        half = "AM" if clock.hour < 12 else "PM"
        short = f"{hour}" if clock.minute == 0 else f"{hour}:{clock:%M}"
        forms = [
            f"{clock:%H:%M}",
            f"{clock:%H:%M}",
            f"{hour}:{clock:%M} {half}",
            f"{short}{half.lower()}",
            f"{short} {half}",
        ]
        return forms[self._time_form % len(forms)]

    def _time_range(self) -> str:
        first, last = self._times["t1"], self._times["t2"]
        if self.is_chinese:
            return f"{first:%H:%M}{('-', '~', '至', '–')[self._day_form % 4]}{last:%H:%M}"
        dash = ("–", " - ", " – ", "-", " to ")[self._day_form % 5]
        if self._time_form % 2:
            return f"{first:%H:%M}{dash}{last:%H:%M}"
        return f"{self._time(first, '')}{dash}{self._time(last, '')}"


def _ordinal(number: int) -> str:
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    if tens == 0:
        return _CHINESE[ones]
    return ("" if tens == 1 else _CHINESE[tens]) + "十" + (_CHINESE[ones] if ones else "")
