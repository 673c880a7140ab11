"""Draws screens of ordinary apps from `screens.txt`: chats, banks, tickets, posts, settings and more, in
two languages.

The developers' corpus has screens of open-source apps only, and its pictures may not be part of this project.
These screens are made up, so they
may. Each is a header line, `@ name categories intents "app" "title words"`,
and then one element a line, whose first character says what it is:

    #  the app bar, and behind :: its second line      !  a large line
    .  a small line in the middle                      p  a paragraph
    -  a row of a list :: its second line :: its right k  a label :: its value
    <  a bubble at the left :: its time                >  a bubble at the right
    ~  tabs                                            =  the navigation at the bottom
    [  a button                                        ?  an input field at the bottom
    u  a browser's address bar
"""

import io
import shlex
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

from tests.support import fonts

SCREENS = Path(__file__).with_name("screens.txt")
SIZE = (1080, 2340)


class Screen(NamedTuple):
    """A made-up screen and what is right about it: any of `categories`, any of `intents`, an `app` if its
    name is visible, any of the `title` words.
    """

    name: str
    categories: tuple[str, ...]
    intents: tuple[str, ...]
    app: str
    title: tuple[str, ...]
    rows: tuple[str, ...]


def screens() -> list[Screen]:
    """All the screens of the file."""
    found = []
    for block in SCREENS.read_text().split("\n\n"):
        head, *rows = block.strip().splitlines()
        _, name, categories, intents, app, title = shlex.split(head)
        words = tuple(title.split(";")) if title else ()
        found.append(
            Screen(name, tuple(categories.split(",")), tuple(intents.split(",")), app, words, tuple(rows))
        )
    return found


class Place(NamedTuple):
    """A text that was drawn, and the place of its line in pixels: left, top, right, bottom; as high as
    letters with accents and descenders.
    """

    text: str
    box: tuple[float, float, float, float]


def draw(screen: Screen) -> bytes:
    """The screen as a PNG file."""
    return placed(screen)[0]


def placed(screen: Screen) -> tuple[bytes, list[Place]]:
    """The screen as a PNG file, and what is written where."""
    image = Image.new("RGB", SIZE, "white")
    pen = _Pen(ImageDraw.Draw(image))
    pen.text(60, 34, "9:41", 40)
    pen.text(SIZE[0] - 60, 34, "5G 82%", 38, anchor="ra")
    for row in screen.rows:
        pen.element(row[0], [part.strip() for part in row[1:].split("::")])
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue(), pen.places


class _Pen:
    def __init__(self, canvas: ImageDraw.ImageDraw):
        self._canvas = canvas
        self._y = 130
        self.places: list[Place] = []

    def element(self, kind: str, parts: list[str]) -> None:
        """Draw one element below the ones before."""
        first, second, third = (*parts, "", "")[:3]
        middle, right = SIZE[0] // 2, SIZE[0] - 60
        match kind:
            case "#":
                self.text(150, self._y, first, 58)
                self._y += 80
                if second:
                    self.text(150, self._y, second, 36, fill="#666")
                    self._y += 50
                self._y += 50
            case "!":
                self._y += 30
                for line in self._wrapped(first, 92, SIZE[0] - 120):
                    self.text(middle, self._y, line, 92, anchor="ma")
                    self._y += 120
            case ".":
                self.text(middle, self._y, first, 38, anchor="ma", fill="#555")
                self._y += 76
            case "p":
                for line in self._wrapped(first, 44, SIZE[0] - 120):
                    self.text(60, self._y, line, 44)
                    self._y += 66
                self._y += 24
            case "-":
                for line in self._wrapped(first, 46, SIZE[0] - 460 if third or not second else SIZE[0] - 330):
                    self.text(150, self._y, line, 46)
                    self._y += 62
                if third:
                    self.text(right, self._y - 58, third, 38, anchor="ra")
                if second:
                    for line in self._wrapped(second, 38, SIZE[0] - 330):
                        self.text(150, self._y, line, 38, fill="#666")
                        self._y += 54
                self._y += 50
            case "k":
                self.text(60, self._y, first, 42, fill="#555")
                self.text(right, self._y, second, 42, anchor="ra")
                self._y += 96
            case "<" | ">":
                self._bubble(first, second, kind == ">")
            case "~" | "=":
                labels = first.split("|")
                y = self._y if kind == "~" else SIZE[1] - 110
                for number, label in enumerate(labels):
                    x = SIZE[0] * (2 * number + 1) // (2 * len(labels))
                    self.text(x, y, label.strip(), 40, anchor="ma")
                self._y += 110 if kind == "~" else 0
            case "[":
                self._canvas.rounded_rectangle((90, self._y, SIZE[0] - 90, self._y + 110), 30, fill="#ddebff")
                self.text(middle, self._y + 28, first, 44, anchor="ma")
                self._y += 150
            case "?":
                self._canvas.rounded_rectangle(
                    (60, SIZE[1] - 190, SIZE[0] - 200, SIZE[1] - 90), 40, outline="#999"
                )
                self.text(100, SIZE[1] - 165, first, 42, fill="#777")
            case "u":
                self._canvas.rounded_rectangle((60, 120, SIZE[0] - 160, 210), 40, fill="#eee")
                self.text(110, 138, first, 42)
                self._y = 270
            case _:
                raise ValueError(f"{kind!r} is no element")

    def text(self, x: int, y: int, text: str, size: int, *, anchor: str = "la", fill: str = "black") -> None:
        """Write one line; `anchor` is Pillow's."""
        font = fonts.font(fonts.CHINESE, size)
        self._canvas.text((x, y), text, font=font, anchor=anchor, fill=fill)
        left, _, right, _ = self._canvas.textbbox((x, y), text, font=font, anchor=anchor)
        _, top, _, bottom = self._canvas.textbbox((x, y), "Ápg", font=font, anchor=anchor)
        self.places.append(Place(text, (left, top, right, bottom)))

    def _bubble(self, text: str, time: str, own: bool) -> None:
        lines = self._wrapped(text, 44, 640)
        width = max(_width(line, 44) for line in lines) + 60
        left = SIZE[0] - 60 - width if own else 150
        height = 64 * len(lines) + 36 + (40 if time else 0)
        color = "#c9f0c9" if own else "#eee"
        self._canvas.rounded_rectangle((left, self._y, left + width, self._y + height), 30, fill=color)
        for number, line in enumerate(lines):
            self.text(left + 30, self._y + 16 + 64 * number, line, 44)
        if time:
            self.text(left + width - 24, self._y + height - 46, time, 30, anchor="ra", fill="#666")
        self._y += height + 44

    def _wrapped(self, text: str, size: int, width: int) -> list[str]:
        lines, line = [], ""
        words = text.split(" ") if text.isascii() else list(text)
        space = " " if text.isascii() else ""
        for word in words:
            longer = f"{line}{space}{word}" if line else word
            if line and _width(longer, size) > width:
                lines.append(line)
                longer = word
            line = longer
        return [*lines, line]


def _width(text: str, size: int) -> int:
    return int(fonts.font(fonts.CHINESE, size).getlength(text))
