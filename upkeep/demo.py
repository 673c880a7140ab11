"""The screens of `snaplore serve --demo`: drawn from `demo.toml`, in a folder of their own.

English is drawn with the page's font. Chinese needs a font of this machine; where there is none, only the
English screens are drawn.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont

SCREENS = Path(__file__).with_name("demo.toml")
LATIN = Path(__file__).parent.parent / "web" / "templates" / "font" / "inter.woff2"
SIZE = (720, 1280)
MARGIN = 40
TALL = 92  # between lines
# Quiet colours of headers, by turns: the app's own.
COLOURS = ("#2f5d8a", "#3f7d5c", "#8a4b2f", "#5b4b8a", "#8a2f55", "#3d6d78")
SECONDS = 10.0  # for the list of fonts


def draw(folder: Path, *, now: datetime) -> int:
    """Draw every screen into `folder`, dated when it was taken; returns how many. `now` is local."""
    screens = tomllib.loads(SCREENS.read_text(encoding="utf-8"))
    drawn = 0
    for language, font in (("en", LATIN), ("zh", chinese_font())):
        if font is None:
            continue
        for number, screen in enumerate(screens[language]):
            taken = (now - timedelta(days=screen["days"])).replace(hour=9, minute=number % 60, second=0)
            taken = min(taken, now)
            file = folder / f"{screen['app']} {language}-{number:02}.png"
            _screen(screen, COLOURS[number % len(COLOURS)], font, f"{taken:%H:%M}").save(file)
            os.utime(file, (taken.timestamp(), taken.timestamp()))
            drawn += 1
    return drawn


def chinese_font() -> Path | None:
    """A font of this machine that has simplified Chinese; None when there is none, or no list of fonts."""
    program = shutil.which("fc-list")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, ":lang=zh-cn", "file"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    files = sorted(line.partition(": ")[0].rstrip(": ") for line in done.stdout.splitlines())
    # A sans-serif one is what phones have.
    return next((Path(file) for file in sorted(files, key=lambda file: "Sans" not in file)), None)


def _screen(screen: dict[str, Any], colour: str, font: Path, clock: str) -> Image.Image:
    image = Image.new("RGB", SIZE, "white")
    canvas = ImageDraw.Draw(image)
    small, normal, large = (ImageFont.truetype(str(font), size) for size in (26, 34, 44))
    canvas.rectangle((0, 0, SIZE[0], 170), fill=colour)
    canvas.text((MARGIN, 14), clock, font=small, fill="white")
    canvas.text((SIZE[0] - MARGIN, 14), "87%", font=small, fill="white", anchor="ra")
    canvas.text((MARGIN, 88), screen["app"], font=large, fill="white")
    _lines(canvas, screen["lines"], normal, large)
    return image


def _lines(canvas: ImageDraw.ImageDraw, lines: Sequence[str], normal: Font, large: Font) -> None:
    for number, line in enumerate(lines):
        left, _, right = line.partition(" | ")
        top = 230 + number * TALL
        canvas.text((MARGIN, top), left, font=normal if number else large, fill="#1c1c1e")
        if right:
            canvas.text((SIZE[0] - MARGIN, top), right, font=normal, fill="#3a3a3c", anchor="ra")
        canvas.line((MARGIN, top + 66, SIZE[0] - MARGIN, top + 66), fill="#e5e5ea", width=2)
