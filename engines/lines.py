"""The text of a picture as an OCR engine reads it: a `Page` of `Line`s, which `engines/ocr.py` fills and
`rules/judge.py` judges.

It is a file of its own because the OCR process needs these two types and nothing else of the analyser.
"""

import re
from collections.abc import Sequence

import msgspec

# Two screens beside each other: between which parts of the width the empty strip between them is, and how far
# down the clocks of their status bars are, as a part of the height.
STRIP, CLOCKS = (0.42, 0.58), 0.12
_CLOCK = re.compile(r"\W{0,3}(?:[01]?\d|2[0-3])[:：][0-5]\d(?!\d)")


class Line(msgspec.Struct, array_like=True):
    """A line of text and its place in the picture, in pixels from the top left. `confidence` is 0 to 1."""

    text: str
    confidence: float
    left: int
    top: int
    right: int
    bottom: int

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def width(self) -> int:
        return self.right - self.left


class Page(msgspec.Struct):
    """All the text of a picture, in reading order. `codes` are formats, whose contents are the last lines."""

    width: int = 0
    height: int = 0
    lines: list[Line] = []
    problem: str = ""
    codes: list[str] = []

    @property
    def text(self) -> str:
        """The text, a line a row."""
        return "\n".join(line.text for line in self.lines)

    @property
    def written(self) -> list[Line]:
        """The lines without the contents of codes."""
        return self.lines[: len(self.lines) - len(self.codes)]

    @property
    def encoded(self) -> list[Line]:
        """The contents of the codes."""
        return self.lines[len(self.lines) - len(self.codes) :]


def gutter(lines: Sequence[Line]) -> int | None:
    """Where the empty strip between two screens on one picture is; None where there is one screen."""
    width, height = (
        max((one.right for one in lines), default=0),
        max((one.bottom for one in lines), default=0),
    )
    if not 0.7 * height < width < 1.6 * height:
        return None
    crossing = [one for one in lines if one.left < STRIP[1] * width and one.right > STRIP[0] * width]
    left = max((one.right for one in crossing if one.left + one.right < width), default=STRIP[0] * width)
    right = min((one.left for one in crossing if one.left + one.right >= width), default=STRIP[1] * width)
    if right - left < 0.01 * width:
        return None
    middle = int(left + right) // 2
    clocks = [one for one in lines if one.bottom < CLOCKS * height and _CLOCK.match(one.text)]
    sides = {one.left > middle for one in clocks}
    return middle if len(sides) == 2 else None


def spaced(words: list[str]) -> str:
    """The words of a line, with a space between them except between two Chinese or Japanese characters."""
    line = words[0]
    for word in words[1:]:
        line += word if is_ideographic(line[-1:]) and is_ideographic(word[:1]) else f" {word}"
    return line


def is_ideographic(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\uffef"
