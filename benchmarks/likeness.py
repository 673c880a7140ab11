"""`python -m benchmarks.likeness FOLDER`: how well near-duplicates are told from different screens.

From the screenshots in a folder (or from drawn ones), this makes pairs that a person would call the same
screen: one without its status bar, at another time, scrolled by a line, or encoded again. And pairs that look
the same and are not: another amount, another name, another chat, another row in a list. All are read by the
real text recognition. Printed are the precision and the recall of `rules.likeness`, with every pair that is
judged wrongly; the exit status is 1 below `PRECISION` or `RECALL`.
"""

import argparse
import hashlib
import io
import itertools
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from PIL import Image, ImageDraw, ImageFont

import pictures
from engines import packing
from engines.lines import Line, Page
from rules import likeness, screen
from rules.embedded import LocalModel

PRECISION, RECALL = 0.99, 0.8
VARIANTS = 50  # of each kind
SUFFIXES = (".png", ".jpg", ".webp")
NAMES = ("Alice Moreau", "Bob Lindqvist", "Chen Weimin", "Dora Kovacs", "Emil Sørensen", "Fatima Haddad")
SENTENCES = (
    "Are you coming tonight?", "The train is late again", "I sent you the papers", "Dinner at eight works",
    "Can you call me back?", "The parcel has arrived", "See you at the station", "Thanks, that helps a lot",
    "Which floor was it?", "The meeting moved to Monday", "Let us ask the landlord", "I left the keys inside",
)  # fmt: skip

Named = TypeVar("Named")


class Shot(NamedTuple):
    """A picture as it is judged: its perceptual hash and what is read on it."""

    hash: bytes
    page: Page


class Pair(NamedTuple):
    kind: str
    name: str
    first: Shot
    second: Shot
    alike: bool


class Reader:
    """Reads pictures; with a `folder`, keeps what was read for the next run."""

    def __init__(self, folder: Path | None):
        self._folder = folder
        self._model = LocalModel(ocr_model="both", language="en")

    def shot(self, image: Image.Image, *, quality: int = 0) -> Shot:
        """`image` as a PNG, or as a JPEG of that quality, hashed and read."""
        out = io.BytesIO()
        if quality:
            image.convert("RGB").save(out, "JPEG", quality=quality)
        else:
            image.save(out, "PNG", compress_level=1)
        return Shot(pictures.examine(out).perceptual_hash, self._page(out))

    def close(self) -> None:
        self._model.close()

    def _page(self, picture: io.BytesIO) -> Page:
        kept = self._folder and self._folder / hashlib.sha256(picture.getbuffer()).hexdigest()
        if kept and kept.exists():
            return msgspec.json.decode(kept.read_bytes(), type=Page)
        picture.seek(0)
        page, _ = self._model.read(picture)
        # As it is stored, which rounds a little.
        page.lines = packing.unpack(packing.pack(page.lines))
        if kept:
            kept.write_bytes(msgspec.json.encode(page))
        return page


def pairs(folder: Path | None, reader: Reader, chance: random.Random) -> Iterator[Pair]:
    """All pairs, each with the right answer."""
    originals: dict[str, tuple[Image.Image, Shot]] = {}
    for name, image in _found(folder) if folder else _drawn(chance):
        originals[name] = image, reader.shot(image)
    for (name, (_, first)), (other, (_, second)) in itertools.combinations(originals.items(), 2):
        yield Pair("another screen", f"{name} / {other}", first, second, False)
    named = list(originals.items())
    with_bar = [(name, found) for name, found in named if screen.status_bar(found[1].page)]
    for again, (name, (image, shot)) in _taken(with_bar):
        yield Pair("no status bar", name, shot, reader.shot(_cropped(image, shot.page, 5 * again)), True)
    for _, (name, (image, shot)) in _taken(with_bar):
        yield Pair("another time", name, shot, reader.shot(_at_another_time(image, shot.page, chance)), True)
    for _, (name, (image, shot)) in _taken(named):
        before, after = _scrolled(image, shot.page)
        yield Pair("scrolled", name, reader.shot(before), reader.shot(after), True)
    for _, (name, (image, shot)) in _taken(named):
        again = image.resize([max(1, int(side * chance.uniform(0.7, 1))) for side in image.size])
        again = image.resize((again.width, max(1, image.height * again.width // image.width)))
        yield Pair("encoded again", name, shot, reader.shot(again, quality=chance.randint(50, 90)), True)
    for kind, pattern in (("another number", str.isdigit), ("another name", str.isalpha)):
        changed = []
        for name, (image, shot) in named:
            bar = screen.status_bar(shot.page)
            lines = [
                line
                for index, line in enumerate(shot.page.lines)
                if index not in bar and sum(map(pattern, line.text)) >= 2 and line.confidence > 0.9
            ]
            if lines:
                changed.append((name, (image, shot, lines)))
        for _, (name, (image, shot, lines)) in _taken(changed):
            other = reader.shot(_rewritten(image, chance.choice(lines), pattern, chance))
            yield Pair(kind, name, shot, other, False)
    for kind, make in (("another chat", _chat), ("another form", _form), ("another list", _list)):
        for number in range(10):
            seed = chance.random()
            first, second = (reader.shot(make(random.Random(seed), change=change)) for change in (0, 1))
            yield Pair(kind, f"{kind} {number}", first, second, False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likeness", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="with screenshots (default: drawn ones)")
    parser.add_argument("--keep", type=Path, help="a folder for what was read, for the next run")
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args()
    reader = Reader(options.keep)
    counts: Counter[tuple[str, bool, bool]] = Counter()
    try:
        for pair in pairs(options.folder, reader, random.Random(options.seed)):
            found = likeness.compare(pair.first.page, pair.second.page).alike and likeness.near(
                pair.first.hash, pair.second.hash
            )
            counts[pair.kind, pair.alike, found] += 1
            if found != pair.alike:
                print(f"{'missed' if pair.alike else 'WRONG'}: {pair.kind}: {pair.name}", flush=True)
    finally:
        reader.close()
    sys.exit(_judged(counts))


def _judged(counts: Counter[tuple[str, bool, bool]]) -> int:
    for kind in dict.fromkeys(kind for kind, _, _ in counts):
        of = {
            (alike, found): counts[kind, alike, found] for alike in (True, False) for found in (True, False)
        }
        print(f"{kind:>16}: {sum(of.values()):5} pairs, {of[True, False] + of[False, True]} judged wrongly")
    right, missed, wrong = (
        sum(number for (_, *judged), number in counts.items() if judged == [alike, found])
        for alike, found in ((True, True), (True, False), (False, True))
    )
    precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
    print(f"precision {precision:.3f} (at least {PRECISION}), recall {recall:.3f} (at least {RECALL})")
    return int(precision < PRECISION or recall < RECALL)


def _found(folder: Path) -> Iterator[tuple[str, Image.Image]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SUFFIXES:
            with Image.open(path) as image:
                yield path.name, image.convert("RGB")


def _drawn(chance: random.Random) -> Iterator[tuple[str, Image.Image]]:
    for kind, make in (("chat", _chat), ("form", _form), ("list", _list)):
        for number in range(5):
            yield f"{kind} {number}", make(random.Random(chance.random()), change=0)


def _taken(found: list[Named]) -> list[tuple[int, Named]]:
    """`VARIANTS` of these, each as often as the others, with the number of its round."""
    return [(index // len(found), found[index % len(found)]) for index in range(VARIANTS)] if found else []


# --------------------------------------------------------------------------------------- changes of a picture


def _cropped(image: Image.Image, page: Page, more: int) -> Image.Image:
    bar = [page.lines[index] for index in screen.status_bar(page)]
    top = max(line.bottom + line.height // 2 for line in bar)
    return image.crop((0, top + more, image.width, image.height))


def _at_another_time(image: Image.Image, page: Page, chance: random.Random) -> Image.Image:
    lines = [page.lines[index] for index in screen.status_bar(page)]
    clock = next(line for line in lines if ":" in line.text or "：" in line.text)
    return _written(image, clock, f"{chance.randint(10, 23)}:{chance.randint(10, 59)}")


def _scrolled(image: Image.Image, page: Page) -> tuple[Image.Image, Image.Image]:
    """Two views of the picture's content, under its first and above its last rows, a line apart."""
    height = statistics.median([line.height for line in page.lines] or [image.height // 40])
    step = max(4, int(height * 1.6))
    top, bottom = int(image.height * 0.12), int(image.height * 0.92)
    views = []
    for offset in (0, step):
        view = Image.new("RGB", (image.width, image.height - step))
        view.paste(image.crop((0, 0, image.width, top)), (0, 0))
        view.paste(image.crop((0, top + offset, image.width, bottom - step + offset)), (0, top))
        view.paste(image.crop((0, bottom, image.width, image.height)), (0, bottom - step))
        views.append(view)
    return views[0], views[1]


def _rewritten(image: Image.Image, line: Line, pattern: object, chance: random.Random) -> Image.Image:
    """`image` with another number, or other words, in the place of `line`."""
    if pattern is str.isdigit:
        digits = [index for index, character in enumerate(line.text) if character.isdecimal()]
        if line.text.isascii() and digits:
            text, at = line.text, chance.choice(digits)
            other = chance.choice([digit for digit in "123456789" if digit != text[at]])
            return _written(image, line, text[:at] + other + text[at + 1 :])
        return _written(image, line, f"{chance.randint(100, 999)}.{chance.randint(10, 99)}")
    return _written(image, line, chance.choice([name for name in NAMES if name != line.text]))


def _written(image: Image.Image, line: Line, text: str) -> Image.Image:
    """`image` with `text` over `line`, in its size and about its colours."""
    box = (line.left, line.top, line.right, line.bottom)
    colours = image.crop(box).quantize(8).convert("RGB").getcolors() or []
    colours.sort(reverse=True)
    paper = colours[0][1]
    ink = max((colour for _, colour in colours), key=lambda colour: _distance(colour, paper))
    changed = image.copy()
    draw = ImageDraw.Draw(changed)
    draw.rectangle((line.left - 2, line.top - 2, line.right + 2, line.bottom + 2), fill=paper)
    draw.text((line.left, line.top), text, fill=ink, font=_font(max(8, int(line.height * 0.8))))
    return changed


def _distance(colour: tuple[int, ...], other: tuple[int, ...]) -> int:
    return sum(abs(one - two) for one, two in zip(colour, other, strict=True))


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


# ---------------------------------------------------------------------------------------------- drawn screens


def _screen(chance: random.Random, title: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (1080, 2160), "white")
    draw = ImageDraw.Draw(image)
    draw.text((60, 30), f"{chance.randint(10, 23)}:{chance.randint(10, 59)}", fill="black", font=_font(40))
    draw.text((900, 30), f"{chance.randint(10, 99)}%", fill="black", font=_font(40))
    draw.rectangle((0, 110, 1080, 240), fill="#eeeeee")
    draw.text((60, 145), title, fill="black", font=_font(56))
    return image, draw


def _chat(chance: random.Random, *, change: int) -> Image.Image:
    """A chat; changed, another one with the same person in the title."""
    image, draw = _screen(chance, chance.choice(NAMES))
    said = chance.sample(SENTENCES, 8)
    for number, sentence in enumerate(said if not change else chance.sample(SENTENCES, 8)):
        left = 60 if number % 2 else 340
        top = 300 + 210 * number
        draw.rounded_rectangle(
            (left, top, left + 680, top + 130), 30, fill="#dcf0ff" if left > 60 else "#eee"
        )
        draw.text((left + 40, top + 35), sentence, fill="black", font=_font(44))
    return image


def _form(chance: random.Random, *, change: int) -> Image.Image:
    """The receipt of a payment; changed, one with another amount, date or recipient."""
    image, draw = _screen(chance, "Payment details")
    fields = {
        "Recipient": chance.choice(NAMES),
        "Amount": f"{chance.randint(10, 99)}.{chance.randint(10, 99)}",
        "Date": f"2026-{chance.randint(10, 12)}-{chance.randint(10, 28)}",
        "Reference": f"INV-{chance.randint(1000, 9999)}",
        "Method": "Credit card",
        "Status": "Completed",
    }
    which = chance.choice(("Recipient", "Amount", "Date", "Reference"))
    if change:
        value = fields[which]
        if which == "Recipient":
            fields[which] = chance.choice([name for name in NAMES if name != value])
        else:
            last = chance.choice([digit for digit in "0123456789" if digit != value[-1]])
            fields[which] = value[:-1] + last
    for number, (label, value) in enumerate(fields.items()):
        top = 320 + 200 * number
        draw.text((60, top), label, fill="#666666", font=_font(40))
        draw.text((60, top + 60), value, fill="black", font=_font(52))
    draw.rounded_rectangle((60, 1900, 1020, 2040), 40, fill="#2266dd")
    draw.text((460, 1935), "Share", fill="white", font=_font(56))
    return image


def _list(chance: random.Random, *, change: int) -> Image.Image:
    """A list of chats; changed, with another message in one row."""
    image, draw = _screen(chance, "Chats")
    rows = [
        (name, chance.choice(SENTENCES), f"{chance.randint(10, 19)}:{chance.randint(10, 59)}")
        for name in NAMES
    ]
    chance.shuffle(rows)
    at = chance.randrange(len(rows))
    if change:
        name, said, _ = rows[at]
        other = chance.choice([sentence for sentence in SENTENCES if sentence != said])
        rows[at] = name, other, f"{chance.randint(20, 23)}:{chance.randint(10, 59)}"
    for number, (name, said, time) in enumerate(rows):
        top = 280 + 220 * number
        draw.ellipse((60, top, 200, top + 140), fill="#aabbcc")
        draw.text((240, top + 10), name, fill="black", font=_font(48))
        draw.text((240, top + 80), said, fill="#666666", font=_font(40))
        draw.text((920, top + 10), time, fill="#666666", font=_font(36))
    return image


if __name__ == "__main__":
    main()
