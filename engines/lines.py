"""The text of a picture as an OCR engine reads it: a `Page` of `Line`s, which `engines/ocr.py` fills and
`rules/judge.py` judges.

It is a file of its own because the OCR process needs these two types and nothing else of the analyser.
"""

import msgspec


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
    """All the text of a picture, in reading order. `problem` is why it could not be read, or "". `codes` are
    the formats of the bar and QR codes, whose contents are the last lines.
    """

    width: int = 0
    height: int = 0
    lines: list[Line] = []
    problem: str = ""
    codes: list[str] = []

    @property
    def written(self) -> list[Line]:
        """The lines without the contents of codes."""
        return self.lines[: len(self.lines) - len(self.codes)]

    @property
    def encoded(self) -> list[Line]:
        """The contents of the codes."""
        return self.lines[len(self.lines) - len(self.codes) :]
