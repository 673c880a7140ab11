"""Screens with and without secrets, for `benchmarks.secrets`: filled from `secrets.txt`, laid out and drawn.

Each frame of the file is a header line, `@ kinds language`, and then what the screen says, as apps, mails,
terminals, chats and settings write it. `kinds` are the right answers ("a|b" where two names are right), or
`harmless`. ⟦…⟧ is a secret and ‹…› any other value, both made by `benchmarks.synthetic`; `label :: value` is
a row that is set out in several ways.
"""

import hashlib
import io
import random
import re
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from benchmarks import synthetic
from tests.support import fonts

FRAMES = Path(__file__).with_name("secrets.txt")
HARMLESS = "harmless"
DRAWS = 2  # screens of a frame, each with other values
# Where a secret begins and ends in a text that is being laid out: private characters, which no screen has.
BEGIN, END = "\ue000", "\ue001"
# Letters between which a line may break.
WIDE = "[\u2e80-\ud7ff\uf900-\uffef]"
IDEOGRAPHIC = ("zh", "ja")
FULL_WIDTH = str.maketrans({":": "：", ",": "，", "(": "（", ")": "）", "!": "！", "?": "？"})
QUOTES = (('"', '"'), ("“", "”"), ("'", "'"), ("「", "」"), ("`", "`"))
FONTS = (fonts.SANS, fonts.BOLD, fonts.MONO, "tiro", fonts.CHINESE)  # "tiro" is a serif one
COLOURS = (("white", "black"), ("#f4f4f6", "#333333"), ("#121212", "#e8e8e8"), ("#0b1f3a", "#ffffff"))


class Frame(NamedTuple):
    """A screen with places for values. `kinds` is empty for a harmless one."""

    kinds: tuple[str, ...]
    language: str
    rows: tuple[str, ...]

    @property
    def half(self) -> str:
        """Rules may be made with the tuning half in view; only the judging half says how good they are."""
        digest = hashlib.sha256("\n".join(self.rows).encode()).digest()
        return ("tuning", "judging")[digest[0] % 2]

    @property
    def group(self) -> str:
        return self.language if self.language in ("en", "zh") else "others"


class Screen(NamedTuple):
    """A filled frame: its lines, and for each line the columns at which letters and digits of secrets are."""

    frame: Frame
    lines: tuple[str, ...]
    secret: tuple[frozenset[int], ...]
    layout: str


class Picture(NamedTuple):
    """A drawn screen as a PNG, and how it is drawn: upright, small, dark, slanted or turned."""

    screen: Screen
    content: bytes
    manner: str


def frames() -> list[Frame]:
    """All the frames of the file."""
    found = []
    for block in FRAMES.read_text().strip().split("\n\n"):
        head, *rows = block.splitlines()
        _, kinds, language = head.split()
        found.append(Frame(() if kinds == HARMLESS else tuple(kinds.split("|")), language, tuple(rows)))
    return found


def screens(seed: int) -> list[Screen]:
    """`DRAWS` screens of each frame: one set out as in the file, the others in ways chosen by chance."""
    return [
        _screen(frame, draw, random.Random(f"{seed} {draw} {frame.rows}"))
        for frame in frames()
        for draw in range(DRAWS)
    ]


def draw(screen: Screen, chance: random.Random) -> Picture:
    """The screen in a font, size, colours and position chosen by chance."""
    manner = chance.choices(("upright", "small", "dark", "slanted", "turned"), (30, 15, 20, 15, 20))[0]
    paper, ink = chance.choice(COLOURS[2:] if manner == "dark" else COLOURS[:2])
    size = chance.randint(20, 24) if manner == "small" else chance.randint(30, 44)
    is_wide = re.search(WIDE, "".join(screen.lines)) is not None
    font = fonts.font(fonts.CHINESE if is_wide else chance.choice(FONTS), size)
    width, margin, leading = 1080, 60, int(size * chance.uniform(1.5, 2.1))
    lines = [part for line in screen.lines for part in _fitting(line, font, width - 2 * margin)]
    image = Image.new("RGB", (width, max(1400, 260 + leading * len(lines))), paper)
    canvas = ImageDraw.Draw(image)
    canvas.text((margin, 40), "9:41", fill=ink, font=font)
    for index, line in enumerate(lines):
        canvas.text((margin, 180 + leading * index), line, fill=ink, font=font)
    if manner == "slanted":
        angle = chance.choice((-3, -2, 2, 3))
        image = image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=paper)
    elif manner == "turned":
        image = image.rotate(chance.choice((90, 180, 270)), expand=True)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return Picture(screen, out.getvalue(), manner)


def _screen(frame: Frame, draw: int, chance: random.Random) -> Screen:
    rows = "\n".join(frame.rows)
    rows = re.sub("‹([^›]+)›", lambda found: synthetic.make(found[1], chance), rows)
    rows = re.sub("⟦([^⟧]+)⟧", lambda found: f"{BEGIN}{synthetic.make(found[1], chance)}{END}", rows)
    layout = chance.choice(LAYOUTS) if draw else "as written"
    lines = []
    for row in rows.split("\n"):
        lines.extend(_set_out(row, layout, frame.language, chance))
    clean, secret, inside = [], [], False
    for line in lines:
        text, columns = "", set()
        for letter in line:
            if letter in (BEGIN, END):
                inside = letter == BEGIN
                continue
            if inside and letter.isalnum():
                columns.add(len(text))
            text += letter
        if text.strip():
            clean.append(text)
            secret.append(frozenset(columns))
    return Screen(frame, tuple(clean), tuple(secret), layout)


LAYOUTS = ("above", "left", "right", "below", "capitals", "quoted", "full width", "narrow", "narrow")


def _set_out(row: str, layout: str, language: str, chance: random.Random) -> list[str]:
    """The lines of a row in one of the `LAYOUTS`; a row without a label is only wrapped or given quotes."""
    colon = "：" if language in IDEOGRAPHIC else ": "
    if " :: " not in row:
        if layout == "full width" and language in IDEOGRAPHIC:
            return [_outside(row)]
        return _wrapped(row, chance.randint(16, 30)) if layout == "narrow" else [row]
    label, value = row.split(" :: ")
    match layout:
        case "above":
            return [label, value]
        case "left":
            return [f"{label}    {value}"]
        case "right":
            return [f"{value}    {label}"]
        case "below":
            return [value, label]
        case "capitals":
            return [f"{label.upper()}{colon}{value}"]
        case "quoted" if BEGIN in value:
            opened, closed = chance.choice(QUOTES)
            return [f"{label}{colon}{opened}{value}{closed}"]
        case "full width":
            return [f"{label}：{value}"]
        case "narrow":
            return _wrapped(f"{label}{colon}{value}", chance.randint(16, 30))
    return [f"{label}{colon}{value}"]


def _outside(row: str) -> str:
    """`row` with full-width punctuation around its secrets."""
    parts = re.split(f"({BEGIN}[^{END}]*{END})", row)
    return "".join(part if part.startswith(BEGIN) else part.translate(FULL_WIDTH) for part in parts)


def _wrapped(row: str, width: int) -> list[str]:
    """`row` in lines of at most `width` columns; as on a phone, words longer than a line are broken."""
    lines, line = [], ""
    for word in re.findall(rf"{WIDE}|(?:(?!{WIDE})\S)+\s*|\s+", row):
        if line and len(line) + len(word.rstrip()) > width:
            lines.append(line)
            line = ""
        while len(word.rstrip()) > width:
            lines.append(word[:width])
            word = word[width:]
        line += word
    return [*lines, line]


def _fitting(line: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """`line` in parts that fit into `width` pixels."""
    parts = []
    while font.getlength(line) > width:
        end = next(index for index in range(len(line), 0, -1) if font.getlength(line[:index]) <= width)
        end = line.rfind(" ", 1, end) + 1 or end
        parts.append(line[:end])
        line = line[end:]
    return [*parts, line]
