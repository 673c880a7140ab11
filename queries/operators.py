"""Operators: the parts of a query that name what to filter by, like `app:Maps` or `-is:kept`.

A query is words, as ever. A part of it is an operator only where its name is known and its value is possible;
everything else is text: `12:30`, `http://…`, a lone `note:`, `is:foo`. So no query is an error, and a query
without operators means what it meant before there were any.

A name and a colon (`:` or `：`) are followed by the value, which ends at a space, or is in quotes with a
space after them. A minus in front of an operator, a word or a phrase excludes. A minus before a digit is a
part of a number.

What screenshots say is asked for by `type:receipt`, also by a beginning like `type:flight`, where a
category's name means the category. A value may also be the page's word for it, in any of its languages, like
`type:金融`. Sellers are asked for by `seller:rewe`; by `amount:>20`, `amount:<=9.99`, `amount:10..20` or
`amount:5EUR`; and by `has:amount`. Amounts are compared without their sign.

Days are those of this machine's time zone. `before:` is before the day, month or year begins, `after:` is
after it has ended, `on:` is within it.
"""

import functools
import re
from datetime import date, datetime, timedelta
from typing import NamedTuple

import terms
from clock import local_day, start_of_local
from engines.findings import CATEGORIES, INTENTS
from engines.records import TYPES
from rules.holdings import KINDS
from web import page_texts

MOST = 32  # operators of a query; further ones are text

STATES = ("kept", "sensitive", "unread")  # values of `is:`
DAYS = {"today": 0, "今天": 0, "yesterday": 1, "昨天": 1}  # days ago
FIRST_YEAR, LAST_YEAR = 1970, 2999  # of dates; others are text

_DATED = ("before", "after", "on")
# The values of those that take no others.
_VALUES = {"category": CATEGORIES, "intent": INTENTS, "is": STATES, "has": (*KINDS, "amount")}
_RECORDS = ("type", "seller", "amount")
NAMES = ("app", "tag", "device", *_VALUES, *_RECORDS, *_DATED)
SHORTEST_TYPE = 3  # letters with which a type's name may begin

_QUOTES = '"“”„«»「」＂'  # those that `terms.fold` makes one
_QUOTE = re.compile(f"[{_QUOTES}]")
# What may begin an operator or an exclusion. Of everything else, only quotes matter.
_START = re.compile(
    r"(?<!\S)([-－]?)([A-Za-z]{2,8})[:：]"
    rf"|(?<!\S)([-－])(?=[^\W\d_]|[{_QUOTES}])"
    rf"|[{_QUOTES}]"
)
_SPACE = re.compile(r"\s")
_NUMBER = r"[0-9]{1,12}(?:[.,][0-9]{1,4})?"
_AMOUNT = re.compile(rf"(<=|>=|<|>|=)?({_NUMBER})(?:\.\.({_NUMBER}))?([A-Z]{{3}})?", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?", re.ASCII)


class Period(NamedTuple):
    """A time range, UTC without a zone; None is no end. `since` is inclusive, `until` is exclusive."""

    since: datetime | None
    until: datetime | None


class Amount(NamedTuple):
    """A range of amounts, ends included where they are `whole`, of one currency or, with "", of any."""

    least: float | None = None
    most: float | None = None
    whole: bool = True
    currency: str = ""


class Operator(NamedTuple):
    """A condition of a query: an operator's `name`, or `time`, or `word`; `types` are those of records."""

    name: str
    value: str
    excludes: bool = False
    period: Period | None = None
    types: tuple[str, ...] = ()
    amount: Amount | None = None


class Parts(NamedTuple):
    """A query, taken apart."""

    words: str  # what is left to search for
    operators: list[Operator]


def split(text: str, *, now: datetime) -> Parts:
    """The operators of a query, and the text without them. `now` tells which day is today."""
    left: list[str] = []
    operators: list[Operator] = []
    place = copied = 0
    while len(operators) < MOST and (found := _START.search(text, place)):
        minus, name, lone_minus = found[1], found[2], found[3]
        if name is None and lone_minus is None:  # a quote: what is in it is text
            closing = _QUOTE.search(text, found.end())
            place = closing.end() if closing else found.end()
            continue
        value, end = _value(text, found.end())
        if name is not None:
            operator = _operator(name.lower(), value.strip(), bool(minus), now)
            if operator is None and minus:
                value, end = _value(text, found.end(1))
                operator = _exclusion(value)
        else:
            operator = _exclusion(value)
        is_whole = end == len(text) or _SPACE.match(text, end) is not None
        if operator is None or not is_whole:
            place = found.end()
            continue
        operators.append(operator)
        left += (text[copied : found.start()], " ")
        place = copied = end
    return Parts("".join([*left, text[copied:]]), operators)


def unknown(text: str, *, now: datetime) -> list[str]:
    """The parts that look like operators and are none, at most `MOST`: a word, a colon and a value."""
    left = split(text, now=now).words
    found = []
    for part in _SPACE.split(left):
        name, colon, value = part.lstrip("-－").replace("：", ":").partition(":")
        if colon and value and name.isascii() and name.isalpha() and not value.startswith("//"):
            found.append(part)
    return found[:MOST]


def _value(text: str, start: int) -> tuple[str, int]:
    """The value that starts here, without its quotes, and where it ends."""
    if start < len(text) and text[start] in _QUOTES and (closing := _QUOTE.search(text, start + 1)):
        return text[start + 1 : closing.start()], closing.end()
    space = _SPACE.search(text, start)
    end = space.start() if space else len(text)
    return text[start:end], end


def _operator(name: str, value: str, excludes: bool, now: datetime) -> Operator | None:
    """None where the name is unknown or the value impossible."""
    if not value or name not in NAMES:
        return None
    if name in _DATED:
        period = _period(name, value, now)
        return None if period is None else Operator("time", value, excludes, period)
    # The page offers values under labels, in each of its languages.
    value = _labels().get(name, {}).get(terms.fold(value).casefold(), value)
    if name == "type":
        return _type(terms.fold(value).casefold().replace("-", "_"), excludes)
    if name == "amount":
        amount = _amount(terms.fold(value))
        return None if amount is None else Operator(name, value, excludes, amount=amount)
    allowed = _VALUES.get(name)
    if allowed is not None:
        value = terms.fold(value).casefold().replace("-", "_")
    return None if allowed is not None and value not in allowed else Operator(name, value, excludes)


@functools.cache
def _labels() -> dict[str, dict[str, str]]:
    """By operator, the value of each label. A label of two values means the first, which is a category."""
    labels: dict[str, dict[str, str]] = {}
    offered = (("category", "category"), ("intent", "intent"), ("category", "type"), ("records", "type"))
    for group, name in offered:
        values = {*CATEGORIES, *INTENTS, *TYPES}
        for code in page_texts.LANGUAGES:
            for value, label in page_texts.language(code).texts[group].items():
                if value in values:
                    labels.setdefault(name, {}).setdefault(terms.fold(label).casefold(), value)
    return labels


def _type(value: str, excludes: bool) -> Operator | None:
    if value in CATEGORIES:
        return Operator("category", value, excludes)
    meant = tuple(name for name in TYPES if name.casefold() == value)
    if not meant and len(value) >= SHORTEST_TYPE:
        meant = tuple(name for name in TYPES if name.casefold().startswith(value))
    return Operator("type", value, excludes, types=meant) if meant else None


def _amount(value: str) -> Amount | None:
    found = _AMOUNT.fullmatch(value)
    if found is None or (found[1] and found[3]):
        return None
    first, last = (float(number.replace(",", ".")) if number else None for number in found.group(2, 3))
    sign, currency = found[1] or "=", (found[4] or "").upper()
    if sign == "=":
        return Amount(first, first if last is None else last, True, currency)
    least, most = (first, None) if sign[0] == ">" else (None, first)
    return Amount(least, most, sign.endswith("="), currency)


def _exclusion(value: str) -> Operator | None:
    phrase = " ".join(terms.cut(terms.fold(value)))
    return Operator("word", phrase, excludes=True) if phrase else None


def _period(name: str, value: str, now: datetime) -> Period | None:
    days = _days(terms.fold(value).casefold(), now)
    if days is None:
        return None
    first, following = map(start_of_local, days)
    if name == "before":
        return Period(None, first)
    return Period(following, None) if name == "after" else Period(first, following)


def _days(value: str, now: datetime) -> tuple[date, date] | None:
    """The first day of a date, and the first one after it."""
    if value in DAYS:
        day = local_day(now) - timedelta(days=DAYS[value])
        return day, day + timedelta(days=1)
    found = _DATE.fullmatch(value)
    if found is None or not FIRST_YEAR <= int(found[1]) <= LAST_YEAR:
        return None
    year, month, day_of_month = int(found[1]), int(found[2] or 1), int(found[3] or 1)
    try:
        first = date(year, month, day_of_month)
    except ValueError:
        return None
    if found[3]:
        return first, first + timedelta(days=1)
    if found[2]:
        return first, date(year + month // 12, month % 12 + 1, 1)
    return first, date(year + 1, 1, 1)
