"""Reads amounts of money in any usual writing: "€ -30.00", "1.234,56 EUR", "¥ 88", "23,30,127.39 ₹", "12,–".

Signs, codes and their currencies are `words/currencies.toml`. A sign of several currencies, like $ or ¥,
stands for the one that the screen names by its code or shows by its script. Every pattern takes linear time.
"""

import functools
import re
from collections import Counter
from typing import Any, NamedTuple

from rules import wordlists

MAX_TEXT = 20_000  # characters that are looked through for the currency of a screen

_SPACES = str.maketrans("\u00a0\u2009\u202f−–—－．，", "   ----.,")
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{2}){0,4},\d{3}(?:\.\d{1,2})?"  # 1,234.56 and 23,30,127.39
    r"|\d{1,3}(?:\.\d{3}){1,5}(?:,\d{1,2})?|\d{1,3}(?:[ ']\d{3}){1,5}(?:[.,]\d{1,2})?"
    r"|\d{1,15}(?:[.,]\d{1,2})?)(?![\d])(?:[.,]-{1,2})?"
)
_NO_PIECES = r"(?=钱|[^\u4e00-\u9fff]|$)"  # 块 before another word counts pieces: 20块松饼
_MANY = {"万": 10_000, "萬": 10_000, "亿": 100_000_000, "億": 100_000_000}
_PLAIN = re.compile(rf"(?P<sign>[-+])? ?(?P<number>{_NUMBER})(?P<after>-)?")


class Price(NamedTuple):
    """An amount from `start` to `end` of a text: a decimal number, and its ISO 4217 code."""

    start: int
    end: int
    value: str
    currency: str

    def normal(self) -> dict[str, str]:
        """As a record has it."""
        return {"value": self.value, "currency": self.currency}


class Money:
    """Amounts as one screen writes them. `text` is the screen's."""

    def __init__(self, text: str):
        self._text = text[:MAX_TEXT]
        self._kana = re.search(r"[\u3041-\u30ff]", self._text) is not None
        self._named = {
            code for code in re.findall(r"(?<![A-Z])[A-Z]{3}(?![A-Z])", self._text) if code in _codes()
        }

    @functools.cached_property
    def currency(self) -> str:
        """The currency of most amounts of the screen, or the only one that it names; "" where it has none."""
        found = Counter(price.currency for price in self.prices(self._text))
        named = "".join(self._named) if len(self._named) == 1 else ""
        return found.most_common(1)[0][0] if found else named

    def prices(self, text: str) -> list[Price]:
        """The amounts in a text that have a sign or a code."""
        folded = text.translate(_SPACES)
        found = []
        for match in _marked().finditer(folded):
            mark = match["before"] or match["after"]
            number = match["first"] or match["second"]
            negative = "-" in (match["minus"] or "", match["inner"] or "", match["sign"] or "")
            many = match["many"] or match["more"] or ""
            value = _value(number, negative=negative, many=many)
            if value is not None:
                found.append(Price(*match.span(), value, self._currency(mark)))
        return found

    def price(self, text: str) -> Price | None:
        """The first amount in a text."""
        return next(iter(self.prices(text)), None)

    def amount(self, text: str) -> Price | None:
        """A text that is an amount and little else, also one without a sign, where others of the screen have
        one and it has the decimals of an amount.
        """
        text = text.strip()[:60]
        found = self.price(text)
        if found is not None:
            beside = text[: found.start] + text[found.end :]
            return found if sum(map(str.isalnum, beside)) <= 12 else None
        match = _PLAIN.fullmatch(text.translate(_SPACES))
        if match is None or not self.currency or not re.search(r"[.,]\d\d$|[.,]-", match["number"]):
            return None
        value = _value(match["number"], negative="-" in (match["sign"], match["after"]))
        return Price(0, len(text), value, self.currency) if value is not None else None

    def _currency(self, mark: str) -> str:
        if mark in _codes():
            return mark
        code = str(_table()["signs"][mark])
        others: list[str] = _table()["shared"].get(mark, "").split()
        named = [other for other in others if other in self._named]
        if len(named) == 1:
            return named[0]
        return "JPY" if self._kana and "JPY" in others else code


def _value(number: str, *, negative: bool, many: str = "") -> str | None:
    number = re.sub(r"[.,]-{1,2}$", "", number)
    whole, decimals = number, ""
    match = re.search(r"[.,](\d{1,2})$", number)
    if match is not None:
        whole, decimals = number[: match.start()], match[1]
    digits = re.sub(r"\D", "", whole).lstrip("0") or "0"
    if many:
        factor = len(str(_MANY[many])) - 1
        shifted = digits + decimals.ljust(factor, "0")
        digits, decimals = (shifted if len(decimals) <= factor else digits), ""
    value = f"{digits}.{decimals}" if decimals else digits
    return f"-{value}" if negative else value


@functools.cache
def _table() -> dict[str, Any]:
    return wordlists.table("currencies")


@functools.cache
def _codes() -> frozenset[str]:
    return wordlists.words(str(_table()["codes"]))


@functools.cache
def _marked() -> re.Pattern[str]:
    """An amount with a sign before or behind it."""
    marks = sorted((*_table()["signs"], *_codes()), key=len, reverse=True)
    before = "|".join(
        re.escape(mark) for mark in marks if mark[0] not in "元块円원" and not mark[0].islower()
    )
    after = "|".join(
        re.escape(mark)
        + (
            r"(?![A-Za-z])"
            if mark[-1].isascii() and mark[-1].isalpha()
            else _NO_PIECES
            if mark == "块"
            else ""
        )
        for mark in marks
    )
    return re.compile(
        rf"(?<![\w.,])(?P<minus>[-+])? ?(?P<before>{before}) ?(?P<inner>[-+])? ?"
        rf"(?P<first>{_NUMBER})(?: ?(?P<many>[万萬亿億]))?"
        rf"|(?<![\w.,])(?P<sign>[-+])? ?(?P<second>{_NUMBER}) ?(?P<more>[万萬亿億])? ?(?P<after>{after})"
    )
