"""Finds what people copy out of a text: links, addresses, codes, phone numbers, dates and times.

Every pattern takes linear time on hostile text: repetitions are bounded, or cannot match the same characters
in two ways.
"""

import re
from collections.abc import Callable, Sequence

from engines.findings import Entity
from rules import wordlists
from rules.wordlists import END, START, any_in, any_of
from text import one_line

CLOCK = r"(?:[01]?\d|2[0-3])[:：][0-5]\d"
SIGN = r"(?:US\$|HK\$|NT\$|CN¥|[$€£¥￥])"
# The number of groups is bounded, so that a page full of digits is not split in every possible way.
NUMBER = r"(?:\d{1,3}(?:[,.' ]\d{3}){1,5}(?:[.,]\d{1,2})?|\d{1,15}(?:[.,]\d{1,2})?)(?!\d)"
MAX_LINE = 300  # characters of a line in which dates are looked for
MOST_DATES = 8  # of each kind; a screen with more is a list or a calendar
_DAYS = wordlists.table("days")
MONTH = any_of(
    name.capitalize() for language in ("en", "de") for name in re.findall(r"\w+", _DAYS["months"][language])
)
_WEEKDAYS = wordlists.entries(_DAYS["weekdays"]["en"])
SHORT_WEEKDAYS = [forms.split()[0] for forms in wordlists.listed("days", "weekdays_short")]  # "mon", "tue"
WEEKDAY, SHORT_WEEKDAY = any_of(_WEEKDAYS), any_of(SHORT_WEEKDAYS)  # English ones


def entities_in(text: str) -> list[Entity]:
    """The entities in `text`, each once, ordered by kind: codes, links, email addresses, phone numbers,
    addresses, dates, times. Amounts are read by `rules/prices.py`.

    A date or a time counts only with a cue: a word like "due" or "departs" on its line or the line above, a
    year, or each other. A clock, a length or a price's date alone are on every second screen.
    """
    found: dict[tuple[str, str], Entity] = {}
    for kind, pattern, accepts in _ENTITIES:
        for match in pattern.finditer(text):
            label = match["label"].strip(" :：#") if "label" in pattern.groupindex else ""
            value = one_line(match["value"] if pattern.groupindex else match[0])
            if kind == "link" and text[max(0, match.start() - 1) : match.start()] in ("", "\n"):
                value = _ICON.sub("", value)
            if accepts(value):
                value = value.rstrip(".,;:!?)，。")
                found.setdefault((kind, value.casefold()), Entity(kind, value, label))
    for kind, value in _dated(text):
        found.setdefault((kind, value.casefold()), Entity(kind, value))
    return list(found.values())


def entities_of_codes(contents: Sequence[str], formats: Sequence[str]) -> list[Entity]:
    """What the contents of bar and QR codes are: links, Wi-Fi, mail addresses, phone numbers, or codes. The
    label is the format.
    """
    found: list[Entity] = []
    for content, label in zip(contents, formats, strict=True):
        found.append(_encoded(content, label))
        if found[-1].type == "wifi" and (password := _fields(content.partition(":")[2]).get("P")):
            found.append(Entity("password", password, label))
    return found


def _encoded(content: str, label: str) -> Entity:
    scheme, colon, rest = content.partition(":")
    match scheme.lower():
        case "http" | "https":
            return Entity("link", content, label)
        case "wifi":
            return Entity("wifi", _fields(rest).get("S") or NO_NAME, label)
        case "mailto" if rest:
            return Entity("email", rest.partition("?")[0], label)
        case "tel" if rest:
            return Entity("phone", rest, label)
        case "otpauth" | "otpauth-migration" if colon:
            # The secret is in the text alone, which the gate for sensitive matter reads.
            return Entity("code", rest.partition("?")[0].strip("/"), scheme.lower())
    return Entity("code", content, label)


def _fields(text: str) -> dict[str, str]:
    """The fields of a code like `S:name;T:WPA;P:password;;`; a backslash is before special characters."""
    fields: dict[str, str] = {}
    name, value, escaped, in_value = "", "", False, False
    for letter in text:
        if escaped or (in_value and letter not in ";\\") or (not in_value and letter not in ":;\\"):
            name, value = (name, value + letter) if in_value else (name + letter, value)
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ":":
            in_value = True
        else:
            fields.setdefault(name.strip().upper(), value)
            name, value, in_value = "", "", False
    return fields


def days_and_times(text: str) -> list[tuple[str, str]]:
    """The days and then the times of day in a text, whatever they are for."""
    days = [match[0] for match in _DATE.finditer(text) if _possible_date(match[0])]
    times = [("time", one_line(match[0])) for match in _TIME.finditer(text)]
    return [*(("date", one_line(day).rstrip(".,")) for day in days), *times]


def _dated(text: str) -> list[tuple[str, str]]:
    """The dates and then the times that have a cue."""
    dates, times = [], []
    above = ""
    for line in text.splitlines():
        line = line[:MAX_LINE]
        here = [match[0] for match in _DATE.finditer(line) if _possible_date(match[0])]
        clocks = [match[0] for match in _TIME.finditer(line)]
        if not here and not clocks:
            above = line
            continue
        # A label is on the line above, a sentence is on the line itself.
        cued = bool(_CUE.search(line)) or (len(above) <= 24 and bool(_CUE.search(above)))
        if here and (cued or clocks or any(map(_HAS_YEAR.search, here))):
            dates += [one_line(value).rstrip(".,") for value in here]
        if clocks and not _LENGTHS.search(line) and (cued or here or _DAY_WORD.search(line)):
            times += [one_line(value) for value in clocks]
        above = line
    return [("date", value) for value in dates[:MOST_DATES]] + [
        ("time", value) for value in times[:MOST_DATES]
    ]


def _uncut(value: str) -> bool:
    return not value.endswith(("..", "…"))


def _with_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _dialable(value: str) -> bool:
    """E.164 allows 15 digits; fewer than 7 are too often something else."""
    return 7 <= sum(character.isdigit() for character in value) <= 15


def _possible_date(value: str) -> bool:
    """False for a numeric date that has no month from 1 to 12 or no day from 1 to 31, in whatever order."""
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    if len(numbers) < 3 or not re.fullmatch(r"[\d./-]+", value):
        return True
    month_and_day = numbers[1:] if numbers[0] > 31 else numbers[:2]
    return 1 <= min(month_and_day) <= 12 and max(month_and_day) <= 31


TOP_LEVEL = r"(?:com|org|net|io|dev|app|cn|de|uk|fr|jp|eu|info|ai|gov|edu|tv|xyz|hk|tw)"
_NAMED = r"(?:(?![到在至从往去是的了请])[\u4e00-\u9fff])"
# A street with a number, in the order of English, German, the Romance languages, and Chinese.
_ADDRESS = (
    rf"(?<![\w.,])\d{{1,5}} (?:[A-Z][\w.']{{1,20}} ){{1,4}}{any_in('entities', 'streets')}\b\.?"
    r"(?:, [A-Z][\w'-]{2,20}(?: [A-Z][\w'-]{1,20}){0,2})?"
    rf"|\b[A-ZÄÖÜ][a-zäöüß]{{2,24}}{any_in('entities', 'street_endings')} \d{{1,4}}[a-z]?\b"
    r"(?:, \d{5} [A-ZÄÖÜ]\w{2,20})?"
    rf"|\b{any_in('entities', 'street_beginnings')}"
    r" (?:[\w']{2,20} ){1,4}\d{1,5}\b(?:, [A-Z]\w{2,20})?"
    # No street's name has one of the words that lead to it.
    rf"|(?:{_NAMED}{{2,6}}[省市区县]){{0,3}}{_NAMED}{{1,6}}{any_in('entities', 'chinese_streets')}\d{{1,5}}号"
    rf"(?:\d{{1,4}}{any_in('entities', 'parts_of_houses')}|店)?"
)
_NO_URL = r"\s<>\"'，。；、（）【】《》…"
_ENTITIES: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = (
    # A code is recognised by a word on its line or on the line above, or by a form that nothing else has.
    (
        "code",
        re.compile(
            rf"(?P<label>(?i:{any_in('entities', 'codes')}))(?: ?(?:is|为|是))?[\s:：#]{{0,3}}"
            r"(?P<value>[A-Z0-9][A-Z0-9-]{2,30}[A-Z0-9])(?![A-Za-z])"
        ),
        _with_digit,
    ),
    (
        "code",
        re.compile(
            r"(?<![\w.])(\d{4,8}|[A-Z]-\d{6})"
            rf"(?= (?i:is your) |[（(]?{any_in('entities', 'codes_behind')})"
        ),
        _with_digit,
    ),
    # Tracking numbers: UPS, SF Express, YTO, JD, and the postal form of the UPU (S10).
    (
        "code",
        re.compile(
            r"(?<![A-Za-z\d])(?:1Z[\dA-Z]{16}|(?:SF|YT|JD[A-Z]?)\d{12,15}|[A-Z]{2}\d{9}[A-Z]{2})(?![A-Za-z\d])"
        ),
        _with_digit,
    ),
    (
        "link",
        re.compile(
            rf"https?://[^{_NO_URL}]{{4,}}"
            rf"|(?<![\w@./-])(?:[a-z0-9][a-z0-9-]{{0,62}}\.){{1,8}}{TOP_LEVEL}(?![\w@-]|\.\w|\.\.)"
            rf"(?:/[^{_NO_URL}]*)?",
            re.IGNORECASE,
        ),
        _uncut,
    ),
    # Not after an @: the fediverse writes user names so.
    (
        "email",
        re.compile(
            r"(?<![@\w.+-])[\w+-]+(?:\.[\w+-]+)*@(?:[a-z0-9-]+\.)+[a-z]{2,}(?!\w|\.\.)",
            re.IGNORECASE | re.ASCII,
        ),
        _uncut,
    ),
    (
        "phone",
        re.compile(
            # International, then China, then North America.
            r"(?<![\w.+-])(?:\+\d{1,3}[ -]?(?:\(\d{1,4}\)[ -]?)?\d{1,4}(?:[ -]?\d{2,4}){1,4}"
            r"|(?:86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4}|\(?0\d{2,3}\)?[ -]\d{7,8}|400[ -]\d{3}[ -]\d{4}"
            r"|(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4})(?![\w-])"
        ),
        _dialable,
    ),
    ("address", re.compile(_ADDRESS), _with_digit),
)
_ICON = re.compile(r"^8(?=[a-z]{4,}[.-])")  # of a globe or a chain, at the beginning of a line
_DATE = re.compile(
    r"(?<![\d./-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:19|20)\d{2})(?!\d)"
    r"|(?<!\d)(?:\d{4}年 ?)?\d{1,2}月 ?\d{1,2}[日号]"
    rf"|(?i:\b{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?![\d:])(?:,? (?:19|20)\d{{2}}\b)?)"
    rf"|(?i:\b\d{{1,2}}(?:st|nd|rd|th|\.)? {MONTH}\b\.?(?:,? (?:19|20)\d{{2}}\b)?)"
)
# The usual word for each part of the day, and an hour.
_CHINESE_TIME = any_of(wordlists.entries(words)[0] for words in _DAYS["parts"].values()) + r" ?\d{1,2}[点时]"
_TIME = re.compile(
    rf"(?<![\d:.,]){CLOCK}(?::[0-5]\d)?(?: ?[ap]m\b)?(?![\d:])|(?<![\d:.,])(?:1[0-2]|[1-9]) ?[ap]m\b"
    rf"|{_CHINESE_TIME}(?:半|\d{{1,2}}分?)?",
    re.IGNORECASE,
)
_HAS_YEAR = re.compile(r"(?:19|20)\d\d")
_DAY_WORD = re.compile(
    any_of([*_WEEKDAYS, *wordlists.listed("days", "beside_times")])
    + rf"|(?:周|星期)[一二三四五六日天]|{_CHINESE_TIME}",
    re.IGNORECASE,
)
_CUE = re.compile(any_in("entities", "cues", START, END), re.IGNORECASE)
_LENGTHS = re.compile(r"\d:\d\d ?/ ?\d{1,2}:\d\d|\(\d{1,2}:\d\d\)")
# A screen with one of these is kept to look something up.
NO_NAME = "Wi-Fi"  # of a network whose code has none
CODE_KINDS = frozenset({"code", "link", "email", "phone", "address", "wifi"})
WHEN = re.compile(f"{_DATE.pattern}|{_TIME.pattern}", re.IGNORECASE)
