"""The layouts of drawn sheets (`sheets.py`): where labels, values, rows and sentences are on a screen.

They are tables of `sheets.toml`, in two halves: rules are tuned on the first, and the second is only counted.
"""

import random
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engines.lines import Line
from tests.support import fonts

WIDTH, HEIGHT = 1080, 2340
RUNNING = ("mail", "note", "bubble")  # layouts of sentences
_CHINESE = r"[\u3040-\u9fff]"


class Layout(NamedTuple):
    """How labels, values and the items of a receipt are drawn; lengths in pixels, `down`, `extra` and `tall`
    in heights of the text. A label begins at `left`, its value `down` below it at `at`: there it begins, ends
    or has its middle, as `anchor` says. `small` and `large` are what label and value are larger than the
    text. With `many`, labels are the heads of so many columns; `colon` sets both in one line, and so does
    `dots` with dots between; with `above`, a label is a caption below its value. Items are rows up to
    `right`, with what a piece costs `under` their names, or the cells of `columns`; `later` sets them below
    the labels, and `hero` sets the amount large and without a label. `paper` is a layout for receipts and
    bills only.
    """

    left: int = 60
    right: int = WIDTH - 60
    at: int = 60
    anchor: str = "l"
    width: int = 960
    down: float = 0
    extra: float = 0
    small: int = 0
    large: int = 0
    many: int = 0
    tall: float = 1.9
    colon: bool = False
    dots: bool = False
    above: bool = False
    under: bool = False
    columns: bool = False
    later: bool = False
    hero: bool = False
    paper: bool = False


class Item(NamedTuple):
    """What was bought: its name, how many, what they cost and what one of them costs, and name and number as
    they are written together.
    """

    name: str
    quantity: str
    price: str
    each: str
    written: str


@cache
def words() -> dict[str, Any]:
    """The file of what sheets say and how they are laid out."""
    return tomllib.loads(Path(__file__).with_name("sheets.toml").read_text(encoding="utf-8"))


LAYOUTS = {
    name: Layout(**form) for half in ("tuning", "judging") for name, form in words()["layouts"][half].items()
}
TUNING = tuple(words()["layouts"]["tuning"])
JUDGING = tuple(words()["layouts"]["judging"])


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

    def row(self, first: str, second: str, layout: Layout) -> None:
        """A row of a list with its value at the right."""
        self._text(layout.left, self._y, first, self._size)
        if second:
            self._text(layout.right, self._y, second, self._size, "r")
        self._y += int(layout.tall * self._size)

    def items(self, items: list[Item], heads: list[str], layout: Layout) -> None:
        """What was bought."""
        size, middle = self._size, layout.left + 2 * (layout.right - layout.left) // 3
        for number, item in enumerate(items):
            if layout.columns:
                if number == 0:
                    self._cells(heads, layout.left, middle, layout.right)
                self._cells([item.name, item.quantity or "1", item.price], layout.left, middle, layout.right)
            elif layout.under and item.each:
                self.row(item.name, item.price, layout)
                self._text(layout.left, self._y - int(0.5 * size), f"{item.quantity} x {item.each}", size - 8)
                self._y += size
            else:
                self.row(item.written, item.price, layout)

    def _cells(self, texts: list[str], left: int, middle: int, right: int) -> None:
        self._text(left, self._y, texts[0], self._size)
        self._text(middle, self._y, texts[1], self._size, "r")
        self._text(right, self._y, texts[2], self._size, "r")
        self._y += int(1.9 * self._size)

    def hero(self, text: str) -> None:
        """An amount that is larger than all else."""
        self._text(WIDTH / 2, self._y, text, self._size + 44, "m")
        self._y += 150

    def foot(self, text: str) -> None:
        """A line in the middle."""
        self._y += 20
        self._text(WIDTH / 2, self._y, text, self._size - 6, "m")
        self._y += int(1.8 * self._size)

    def pairs(self, layout: Layout, pairs: list[tuple[str, str]]) -> None:
        """Labels with their values."""
        size, many = self._size, layout.many
        self._y += 40
        if many:
            for first in range(0, len(pairs), many):
                self._columns(pairs[first : first + many], layout)
            return
        for label, value in pairs:
            if layout.above:
                self._text(layout.left, self._y, value, size + layout.large, layout.anchor)
                self._text(layout.left, self._y + int(1.45 * size), label, size + layout.small, layout.anchor)
                self._y += int(3.6 * size)
                continue
            if layout.colon or layout.dots:
                value = self._joined(label, value, layout)
            else:
                stacked = layout.anchor if layout.down else "l"
                self._text(
                    layout.at if layout.down else layout.left, self._y, label, size + layout.small, stacked
                )
            down, label_at = int(layout.down * size), len(self.lines) - 1
            deep = self._wrapped(
                value, layout.at, self._y + down, size + layout.large, layout.anchor, layout.width
            )
            self._y += down + deep + int(layout.extra * size) + self._parted(label_at)

    def _parted(self, label: int) -> int:
        """Move a value that lies on its label below it, and return how far."""
        lines = self.lines[label:]
        if not any(one.left < lines[0].right and one.top < lines[0].bottom for one in lines[1:]):
            return 0
        down = int(1.2 * lines[0].height)
        self.lines[label + 1 :] = [
            msgspec.structs.replace(one, top=one.top + down, bottom=one.bottom + down) for one in lines[1:]
        ]
        return down

    def _joined(self, label: str, value: str, layout: Layout) -> str:
        """A label and its value in one line."""
        if layout.dots:
            free = layout.width - fonts.font(fonts.CHINESE, self._size).getlength(f"{label}  {value}")
            return f"{label} {'.' * max(3, int(free / (0.3 * self._size)))} {value}"
        return f"{label}{'：' if re.search(_CHINESE, label) else ': '}{value}"

    def _columns(self, pairs: list[tuple[str, str]], layout: Layout) -> None:
        size, wide, deep = self._size - 6 + layout.large, (layout.right - layout.left) // layout.many, 0
        for number, (label, value) in enumerate(pairs):
            left = layout.left + number * wide
            self._text(left, self._y, label, size + layout.small - layout.large)
            deep = max(deep, self._wrapped(value, left, self._y + int(1.5 * size), size, "l", wide - 30))
        self._y += int(1.5 * size) + deep + int(0.7 * size)

    def running(self, layout: str, texts: list[str]) -> None:
        """Sentences: a line each as in a mail, as a note, or in the bubble of a message."""
        size = self._size
        if layout == "mail":
            self._y += 60
            for text in texts:
                self._y += self._wrapped(text, 60, self._y, size, "l", 960) - int(0.3 * size)
            return
        whole = ("" if re.search(_CHINESE, texts[0]) else " ").join(texts)
        if layout == "note":
            self._wrapped(whole, 60, self._y + 60, size, "l", 960)
            return
        self._text(WIDTH / 2, self._y, self._chance.choice(("Info", "106 9330", "+44 7700 900123")), 44, "m")
        self._y += 160
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
