"""The layouts of drawn sheets (`sheets.py`): where labels, values, rows and sentences are on a screen.

They are in two halves: rules are tuned on the first, and the second is only counted.
"""

import random
import re

from engines.lines import Line
from tests.support import fonts

WIDTH, HEIGHT = 1080, 2340
TUNING = ("beside", "colon", "stacked", "pair", "mail")
JUDGING = ("column", "above", "triple", "slip", "table", "bubble")
RUNNING = ("mail", "bubble")  # layouts of sentences


class Canvas:
    """Notes where each text is."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self.lines: list[Line] = []
        self.sizes: list[int] = []
        self._y = 150
        self._size = chance.choice((36, 40, 44))
        self._text(60, 34, "9:41", 36)

    def _text(self, x: float, y: float, text: str, size: int, anchor: str = "l") -> int:
        """Write one line; returns its width."""
        width = int(fonts.font(fonts.CHINESE, size).getlength(text))
        left = int(x - {"l": 0, "r": width, "m": width / 2}[anchor])
        self.lines.append(Line(text, 0.98, left, int(y + 0.1 * size), left + width, int(y + 1.1 * size)))
        self.sizes.append(size)
        return width

    def head(self, heading: str, subject: str) -> None:
        """The heading of a screen and the name of what it is about."""
        large = self._chance.random() < 0.5
        self._text(WIDTH / 2 if large else 60, self._y, heading, self._size + 8, "m" if large else "l")
        self._y += 120
        if subject:
            self._text(WIDTH / 2 if large else 60, self._y, subject, self._size + 22, "m" if large else "l")
            self._y += 130

    def row(self, first: str, second: str, *, right: bool) -> None:
        """A row of a list with its value at the right."""
        edge = WIDTH - 60 if right else 760
        self._text(60 if right else 320, self._y, first, self._size)
        if second:
            self._text(edge, self._y, second, self._size, "r")
        self._y += int(1.9 * self._size)

    def foot(self, text: str) -> None:
        """A line in the middle."""
        self._y += 20
        self._text(WIDTH / 2, self._y, text, self._size - 6, "m")
        self._y += int(1.8 * self._size)

    def pairs(self, layout: str, pairs: list[tuple[str, str]]) -> None:
        """Labels with their values."""
        size = self._size
        self._y += 40
        if layout in ("pair", "triple", "table"):
            many = {"pair": 2, "triple": 3, "table": 3}[layout]
            for first in range(0, len(pairs), many):
                self._columns(pairs[first : first + many], many, is_table=layout == "table")
            return
        for label, value in pairs:
            match layout:
                case "beside":
                    self._text(60, self._y, label, size)
                    self._y += self._wrapped(value, WIDTH - 60, self._y, size, "r", 640)
                case "column":
                    self._text(60, self._y, label, size)
                    self._y += self._wrapped(value, 470, self._y, size, "l", 560)
                case "colon":
                    colon = "：" if re.search(r"[\u3040-\u9fff]", label) else ": "
                    self._y += self._wrapped(f"{label}{colon}{value}", 60, self._y, size, "l", 960) - int(
                        0.5 * size
                    )
                case "stacked":
                    self._text(60, self._y, label, size - 8)
                    self._y += int(1.25 * size)
                    self._y += self._wrapped(value, 60, self._y, size + 4, "l", 960) + int(0.5 * size)
                case "above":
                    self._text(60, self._y, value, size + 8)
                    self._text(60, self._y + int(1.45 * size), label, size - 8)
                    self._y += int(3.6 * size)
                case "slip":
                    self._text(320, self._y, label, size - 4)
                    self._y += self._wrapped(value, 760, self._y, size - 4, "r", 300)

    def _columns(self, pairs: list[tuple[str, str]], many: int, *, is_table: bool) -> None:
        size, wide, deep = self._size - 6, 960 // many, 0
        for number, (label, value) in enumerate(pairs):
            left = 60 + number * wide
            self._text(left, self._y, label, size if is_table else size - 6)
            deep = max(deep, self._wrapped(value, left, self._y + int(1.5 * size), size, "l", wide - 30))
        self._y += int(1.5 * size) + deep + int(0.7 * size)

    def running(self, layout: str, texts: list[str]) -> None:
        """Sentences, as a mail or in the bubble of a message."""
        size = self._size
        if layout == "mail":
            self._y += 60
            for text in texts:
                self._y += self._wrapped(text, 60, self._y, size, "l", 960) - int(0.3 * size)
            return
        self._text(WIDTH / 2, self._y, self._chance.choice(("Info", "106 9330", "+44 7700 900123")), 44, "m")
        self._y += 160
        whole = ("" if re.search(r"[\u3040-\u9fff]", texts[0]) else " ").join(texts)
        self._y += self._wrapped(whole, 110, self._y, size, "l", 700)

    def _wrapped(self, text: str, x: int, y: int, size: int, anchor: str, width: int) -> int:
        """Write a text in lines of at most this width; returns how far down they go."""
        font = fonts.font(fonts.CHINESE, size)
        lines, line = [], ""
        words_of = re.findall(r"[\u3000-\u9fff\uff00-\uffef]|[^\s\u3000-\u9fff\uff00-\uffef]+\s?|\s", text)
        for word in words_of:
            if line and font.getlength(line + word.rstrip()) > width:
                lines.append(line)
                line = ""
            line += word
        lines.append(line)
        for number, one in enumerate(lines):
            self._text(x, y + int(1.35 * size) * number, one.strip(), size, anchor)
        return int(1.35 * size) * (len(lines) - 1) + int(1.95 * size)
