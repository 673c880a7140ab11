"""Identity numbers in a text: those with check digits that are narrow enough by themselves, those beside the
word that names them, and the lines of passports and cards that machines read. Forms and words are in
`words/identity.toml`.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rules import checks, wordlists
from rules.labels import Labels
from rules.searched import ALIKE, DIGITS, D, Span, Text

REACH = 120  # characters after the word in which its number is, over at most three lines
LINES = 3
MOST_PARTS = 9  # groups of a number with blanks between them


class Number(NamedTuple):
    """A kind of number: its words, its form, its check, the signs that belong to it, and how it is written
    where no word names it.
    """

    words: Labels
    form: re.Pattern[str]
    check: str
    keep: str
    shape: re.Pattern[str] | None


_TABLE = wordlists.table("identity")
_NUMBERS = tuple(
    Number(
        Labels(words=wordlists.entries(one["words"])),
        re.compile(one["form"]),
        one.get("check", ""),
        one.get("keep", ""),
        re.compile(one["shape"]) if "shape" in one else None,
    )
    for one in (*_TABLE["number"], *_TABLE["document"])
)
_ALONE = tuple(
    (
        re.compile(rf"(?<![0-9A-Za-z.-])(?:{one['alone']})(?![0-9A-Za-z]|[.-]\d)"),
        one.get("check", ""),
        one.get("keep", ""),
    )
    for one in _TABLE["number"]
    if "alone" in one
)
_RESIDENT = re.compile(rf"(?<![0-9A-Za-z]){D}{{2}}[ ]?(?:{D}[ ./-]?){{15}}[0-9Xx{ALIKE}](?![0-9A-Za-z])")
_PART = re.compile(r"[A-Za-z0-9&](?:[A-Za-z0-9./()&+-]{0,40}[A-Za-z0-9)])?")
_SIGNS = re.compile(r"[ ./()·-]")
_SENTENCE = re.compile(wordlists.any_in("identity", "asked", wordlists.START, wordlists.END))


def identity_numbers(text: Text) -> Iterator[Span]:
    yield from residents(text)
    for form, check, keep in _ALONE:
        for found in form.finditer(text.text):
            if _holds(_plain(found[0], keep), check):
                yield found.span()
    for number in _NUMBERS:
        for start, end in number.words.find(text):
            yield from list(_beside(text, number, end, text.reach(end, LINES, REACH))) or _above(
                text, number, start
            )
    yield from _machine_readable(text)


def residents(text: Text) -> Iterator[Span]:
    """The numbers of Chinese residents, which need no word."""
    return (found.span() for found in _RESIDENT.finditer(text.text) if resident(found[0]))


def resident(read: str) -> bool:
    """Whether this is the number of a Chinese resident."""
    plain = re.sub(r"[ ./-]", "", read)
    if len(plain) != 18 or sum(map(str.isdigit, plain)) < 14:
        return False
    check = plain[-1].upper()
    return checks.china(plain[:-1].translate(DIGITS) + (check if check == "X" else check.translate(DIGITS)))


def _above(text: Text, number: Number, start: int) -> Iterator[Span]:
    """The number before its word, on the line or on the one above, if it has a check or a shape."""
    line = text.line_of(start)
    if number.check or number.shape:
        yield from _beside(text, number, max(text.span(max(0, line - 1))[0], start - REACH), start)


def _beside(text: Text, number: Number, end: int, bottom: int) -> Iterator[Span]:
    """The number after a place, on the line or below: one part, or several that follow each other."""
    parts = list(_PART.finditer(text.text, end, bottom))[:24]
    for first in range(len(parts)):
        read = ""
        for last in range(first, min(first + MOST_PARTS, len(parts))):
            gap = text.text[parts[last - 1].end() : parts[last].start()] if last > first else ""
            if len(gap.strip(" \n./-")) > 0 or len(gap) > 4:
                break
            read += parts[last][0]
            start, stop = parts[first].start(), parts[last].end()
            if number.shape is not None and not number.shape.fullmatch(text.text[start:stop]):
                continue
            if _is_number(number, read):
                yield start, stop
                return


def _is_number(number: Number, read: str) -> bool:
    plain = _plain(read, number.keep)
    if any(map(str.isdigit, plain)) and number.form.fullmatch(plain):
        return _holds(plain, number.check)
    spelled = plain.translate(DIGITS)
    return (
        spelled.isdigit()
        and plain != spelled
        and sum(map(str.isdigit, plain)) > len(plain) * 2 // 3
        and (bool(number.form.fullmatch(spelled)) and bool(number.check) and _holds(spelled, number.check))
    )


def _plain(read: str, keep: str) -> str:
    return "".join(one for one in read if one in keep or not _SIGNS.fullmatch(one))


def _holds(plain: str, check: str) -> bool:
    if not check:
        return True
    try:
        return checks.CHECKS[check](plain)
    except (ValueError, IndexError, KeyError):  # not of the form that the check is for
        return False


# ------------------------------------------------------------------------------------- machine-readable lines

# ICAO 9303: number, check, state, birth, check, sex, expiry, check. The filler "<" is often read as another
# sign.
_NUMBER_LINE = re.compile(r"([A-Z0-9<]{9})([0-9<])([A-Z<]{3})([0-9]{6})([0-9])([MFX<])([0-9]{6})([0-9])")
_BIRTH_LINE = re.compile(r"([0-9]{6})([0-9])([MFX<])([0-9]{6})([0-9])([A-Z<]{3})")
_NAME_LINE = re.compile(r"[PIACV][A-Z<][A-Z<]{3}[A-Z]{1,30}(?:<{1,2}[A-Z]{1,30}){1,6}<{2,40}")
_MACHINE_LINE = re.compile(r'[A-Z0-9<"‹c ]{24,60}')
_FILLERS = str.maketrans({'"': "<", "‹": "<", " ": ""})


def _machine_readable(text: Text) -> Iterator[Span]:
    for line in _MACHINE_LINE.finditer(text.text):
        plain = line[0].translate(_FILLERS)
        for form, fields in ((_NUMBER_LINE, (4, 7)), (_BIRTH_LINE, (1, 4))):
            found = form.search(plain)
            if found and all(checks.machine_readable(found[one], found[one + 1]) for one in fields):
                yield line.span()
        if _NAME_LINE.match(plain):
            yield line.span()
