"""A text in the form in which the rules of what is sensitive look at it, with the places of its lines.

The text was read from a picture. So full-width forms, look-alikes and the digits of other scripts become the
usual ones, each one character for one, so that a place in the form is the same place in the text.
"""

import bisect
import functools
import re
import unicodedata
from collections.abc import Iterator

MAX_CHARACTERS = 200_000  # looked at; what is stored for a photo has half of that

# A place in the text: the first character and the one after the last.
Span = tuple[int, int]

ALIKE = "OoQDIil|!SBZ"  # letters that are read for digits
DIGITS = str.maketrans(ALIKE, "000011111582")
LETTERS = str.maketrans("01582", "OISBZ")
D = rf"[0-9{ALIKE}]"


class Text:
    """A text to look at: `text` in the usual forms, and `folded`, the same without capitals and accents."""

    def __init__(self, text: str):
        self.text = text[:MAX_CHARACTERS].translate(_usual())
        self.folded = fold(self.text)
        self._starts = [0, *(match.end() for match in re.finditer(r"\n", self.text))]

    def line_of(self, place: int) -> int:
        return bisect.bisect_right(self._starts, place) - 1

    def span(self, line: int) -> Span:
        """The place of a line, without its break."""
        following = line + 1
        end = self._starts[following] - 1 if following < len(self._starts) else len(self.text)
        return self._starts[line], end

    def rest(self, place: int) -> Span:
        """From a place to the end of its line."""
        return place, self.span(self.line_of(place))[1]

    def lines_below(self, place: int, most: int) -> Iterator[Span]:
        first = self.line_of(place) + 1
        return (self.span(line) for line in range(first, min(first + most, len(self._starts))))

    def reach(self, place: int, lines: int, characters: int) -> int:
        """The end of what is at most so many lines below a place, and so many characters."""
        bottom = max((end for _, end in self.lines_below(place, lines)), default=self.rest(place)[1])
        return min(max(bottom, self.rest(place)[1]), place + characters)

    def around(self, start: int, end: int, *, above: int, below: int = 0) -> Span:
        """The lines of a piece, with so many lines above and below, 200 characters in each direction."""
        first, last = max(0, self.line_of(start) - above), self.line_of(end) + below
        top = self._starts[first]
        bottom = self.span(min(last, len(self._starts) - 1))[1]
        return max(top, start - 200), min(bottom, end + 200)

    def before(self, start: int) -> list[Span]:
        """What is before a value: the beginning of its line, and the line above if no word is in that."""
        line = self.line_of(start)
        here = max(self._starts[line], start - 200), start
        if line and sum(map(str.isalpha, self.text[slice(*here)])) < 2:
            top, bottom = self.span(line - 1)
            return [(max(top, bottom - 200), bottom), here]
        return [here]

    def pieces(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Line, first and last character, exclusive, of each line of a piece."""
        for line in range(self.line_of(start), self.line_of(max(start, end - 1)) + 1):
            top, bottom = self.span(line)
            if max(start, top) < min(end, bottom):
                yield line, max(start, top) - top, min(end, bottom) - top


def fold(text: str) -> str:
    """A text in small letters without accents, of the same length."""
    folded = text.translate(_unaccented()).lower()
    if len(folded) == len(text):
        return folded
    return "".join(one.lower() if len(one.lower()) == 1 else one for one in text)


@functools.cache
def _usual() -> dict[int, str]:
    """The usual form of each character that has one of one character."""
    usual = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    # Digits of other scripts, in circles, of mathematics.
    for code in range(0xB2, 0x1FC00):
        digit = unicodedata.digit(chr(code), None)
        if digit is not None:
            usual[code] = str(digit)
    usual |= dict.fromkeys(map(ord, "\u3000\u00a0\u2002\u2003\u2009\u202f\t\r\f\v"), " ")
    usual |= dict.fromkeys(map(ord, "‐‑‒–—−﹣"), "-")
    usual |= dict.fromkeys(map(ord, "×Χ"), "X")
    usual |= dict.fromkeys(map(ord, "“”„«»「」『』"), '"')
    usual |= dict.fromkeys(map(ord, "‘’‚"), "'")
    usual |= dict.fromkeys(map(ord, "【〔〖"), "[") | dict.fromkeys(map(ord, "】〕〗"), "]")
    # These separate parts of a sentence, and never occur inside a number.
    usual |= dict.fromkeys(map(ord, "，、。；"), ";")
    return usual


@functools.cache
def _unaccented() -> dict[int, str]:
    accented = (*range(0xC0, 0x250), *range(0x400, 0x500), *range(0x1E00, 0x1F00))
    found = {code: unicodedata.normalize("NFD", chr(code))[0] for code in accented}
    return found | dict(zip(map(ord, "łŁøØđĐ"), "lLoOdD", strict=True))
