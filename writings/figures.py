"""Days and numbers, which people write in many ways, as terms of the search index.

2025-05-27, 27 May 2025, 5/27/2025 and 2025年5月27日 are one day; 1,234.50 and 1 234,50 have the number 1234;
4006 381 333 931 is one number. A text is indexed under these terms besides its words, and a query that has
such a figure means them, too. 5/6 may be in May or in June, so it is both.
"""

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

MARK = "="  # a term of a day begins with it, and no word does
FEWEST_DIGITS = 4  # of a number in groups
LONGEST = 24  # digits of a number in groups: an IBAN, a parcel's

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["months"]
#: The names of months, without accents, with their numbers.
MONTHS = {name: number for number, line in enumerate(_NAMES.split("\n"), 1) for name in line.split()}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_DAY = r"(?<!\d)[0-3]?\d(?!\d)"
_NUMBER = r"(?<!\d)[01]?\d(?!\d)"
_TH = r"(?:st|nd|rd|th|er|\.)?"
_DAYS = tuple(
    map(
        re.compile,
        (
            rf"(?<!\d)(?P<y>{_YEAR})(?:(?P<sign>[-./])(?P<m>{_NUMBER})(?P=sign)| ?年 ?(?P<n>{_NUMBER}) ?月 ?)"
            rf"(?P<d>{_DAY})(?: ?[日号])?",
            rf"(?<![年\d])(?<!年 )(?P<m>{_NUMBER}) ?月 ?(?P<d>{_DAY})(?: ?[日号])?",
            rf"(?P<d>{_DAY})(?P<s>[./-])(?P<m>{_DAY})(?P=s)(?P<y>{_YEAR}|\d\d)(?![\d.:/-])",
            rf"(?<![/.])(?P<d>{_DAY})/(?P<m>{_DAY})(?![/\d%])|(?<![/.])(?P<e>{_DAY})\.(?P<n>{_NUMBER})\.(?!\d)",
            rf"(?P<d>{_DAY}){_TH}[ -]?(?:of )?(?P<m>{_MONTH})\b\.?,?(?:[ -](?P<y>{_YEAR})(?!\d))?",
            rf"\b(?P<m>{_MONTH})\b\.?[ -]?(?P<d>{_DAY})(?![.:]\d){_TH}(?:,? ?(?P<y>{_YEAR})(?!\d))?",
        ),
    )
)
# By thousands; or the groups of a code, which may begin as an IBAN does.
_GROUPED = re.compile(
    r"(?<![\d.,])\d{1,3}(?:[ ,.'’]\d{3})+(?!\d)"
    r"|(?<![\d.,])(?:\b[a-z]{2}\d\d(?:[ -](?:\d{2,8}|[a-z]{4}\b)){1,7}|\d{2,8}(?:[ -]\d{2,8}){1,7})"
    r"(?![\da-z])"
)
_GAP = re.compile(r"[ ,.'’-]")


class Figure(NamedTuple):
    """A figure in a text, its place, the terms under which the text is indexed, and, as terms with what they
    are worth, what it means in a query: all that is written, or less, as a day without its year.
    """

    start: int
    end: int
    terms: list[str]
    meanings: dict[str, float]


def is_term(term: str) -> bool:
    """Whether a term may be that of a figure."""
    return term[0] == MARK or sum(map(str.isdigit, term)) >= FEWEST_DIGITS


def find(text: str, whole: float = 1.0, less: float = 0.5) -> Iterator[Figure]:
    """The figures in a folded and case-folded text. Meanings are worth `whole` or `less`."""
    if not any(map(text.__contains__, "0123456789")):
        return
    for pattern in _DAYS:
        for found in pattern.finditer(text):
            terms: list[str] = []
            meanings: dict[str, float] = {}
            for year, day in _days_of(found.groupdict()):
                # A day of another year is not found by one with its year.
                terms += [f"{MARK}{year}-{day}", f"{MARK}*{day}"] if year else [MARK + day]
                meanings |= (
                    {f"{MARK}{year}-{day}": whole, MARK + day: less}
                    if year
                    else {MARK + day: whole, f"{MARK}*{day}": whole}
                )
            if terms:
                yield Figure(*found.span(), terms, meanings)
    for found in _GROUPED.finditer(text):
        number = _GAP.sub("", found[0])
        if len(number) <= LONGEST:
            yield Figure(*found.span(), [number], {number: whole})


def _days_of(parts: dict[str, str | None]) -> Iterator[tuple[int, str]]:
    """The days that the parts of a match may mean, each as its year (0 when there is none) and `05-27`."""
    year = int(parts.get("y") or 0)
    year += 2000 if 0 < year < 100 else 0
    first, second = parts["d"] or parts.get("e") or "", parts["m"] or parts.get("n") or ""
    day, month = int(first), MONTHS.get(second) or int(second)
    # Only with these two, the month may be written first.
    is_either = parts.get("s") in ("/", "-") or (
        not year and second.isdigit() and "e" in parts and parts["d"]
    )
    for one, other in dict.fromkeys([(month, day), (day, month)] if is_either else [(month, day)]):
        try:
            date(year or 2024, one, other)
        except ValueError:
            continue
        yield year, f"{one:02}-{other:02}"
