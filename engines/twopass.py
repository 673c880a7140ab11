"""Reading in two passes: a fast model reads every line, and an exact one reads those again of which the fast
one is unsure.

The exact model takes five times as long, most of it for lines that both read alike. The fast model's
confidence says which lines these are. The others are cut out and put on sheets, and the exact model reads the
sheets. So a script that the fast model does not know, like traditional Chinese, is read by the exact one, and
the exact one never needs the memory for a whole screen.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from PIL import Image

from engines.lines import Line, is_ideographic, spaced

# The lowest confidence that is believed, by what a mistake costs: in a short line, each character counts, and
# reading it again costs little; so do digits, and the fast model knows less Chinese and Japanese. On real
# screenshots, a third of the lines are doubted so.
SURE, SURE_IN_DETAIL, SURE_OF_SHORT = 0.97, 0.98, 0.99
SHORT = 12  # characters
MARGIN = 0.3  # around a line, of its height: the detector needs some surroundings, and may cut letters off
# Pixels between two pieces on a sheet, beside each other and the height of a line more: the detector joins
# what is nearer, and what was joined belongs to none.
GAP = 8
HIGHEST = 0.75  # of a sheet's width, so that its detection takes little memory
# The detector's side for a sheet of a tile that is higher than wide, of the tile's. Such a sheet is as wide
# as the tile and low, so it is still reduced less than a phone's screen, whose long side is its height. A
# sheet of a wide tile has the tile's side, and is lower.
SCALE = 0.5
COVERED = 0.6  # of a line's width, which the second reading must cover to replace the first

Reader = Callable[[Image.Image, int], Iterable[Line]]  # the lines on a tile, with this side of the detector


class Piece(NamedTuple):
    """A line of a tile, the box around it that is cut out, and where the box begins on its sheet."""

    line: Line
    box: tuple[int, int, int, int]
    left: int
    top: int

    @property
    def right(self) -> int:
        return self.left + self.box[2] - self.box[0]

    @property
    def bottom(self) -> int:
        return self.top + self.box[3] - self.box[1]

    def holds(self, found: Line) -> bool:
        """Whether the middle of what was `found` on the sheet is in this line, not in its surroundings."""
        across = (found.left + found.right) / 2 - self.left + self.box[0]
        down = (found.top + found.bottom) / 2 - self.top + self.box[1]
        return self.line.left <= across <= self.line.right and self.line.top <= down <= self.line.bottom


class TwoPasses:
    """An engine (`engines/ocr.py`) made of two."""

    name = "both"

    def __init__(self, fast: Reader, exact: Reader):
        self._fast, self._exact = fast, exact

    def lines(self, tile: Image.Image, detector_side: int) -> Iterator[Line]:
        doubtful = []
        for line in self._fast(tile, detector_side):
            if is_doubtful(line):
                doubtful.append(line)
            else:
                yield line
        scale = 1 if tile.width > tile.height else SCALE
        for pieces in _sheets(doubtful, *tile.size, HIGHEST * (SCALE / scale) ** 2 * tile.width):
            sheet = Image.new("RGB", (tile.width, max(piece.bottom for piece in pieces)))
            for piece in pieces:
                sheet.paste(tile.crop(piece.box), (piece.left, piece.top))
            found = list(self._exact(sheet, round(scale * detector_side)))
            for piece in pieces:
                yield _corrected(piece.line, [line for line in found if piece.holds(line)])


def is_doubtful(line: Line) -> bool:
    """Whether a line is to be read again. A single letter is not: it is an icon, which is left out."""
    text = line.text.strip()
    if len(text) < 2 and not text.isdigit():
        return False
    if len(text) <= SHORT:
        return line.confidence < SURE_OF_SHORT
    in_detail = any(character.isdigit() or is_ideographic(character) for character in text)
    return line.confidence < (SURE_IN_DETAIL if in_detail else SURE)


def _sheets(lines: list[Line], width: int, height: int, highest: float) -> Iterator[list[Piece]]:
    """The lines of a tile in rows, on sheets of its width: the highest first, so that a row wastes little."""
    pieces: list[Piece] = []
    left = top = 0
    for line in sorted(lines, key=lambda line: -line.height):
        margin = round(MARGIN * min(line.height, line.width))
        box = (
            max(0, line.left - margin), max(0, line.top - margin),
            min(width, line.right + margin), min(height, line.bottom + margin),
        )  # fmt: skip
        if left and left + box[2] - box[0] > width:
            left, top = 0, max(piece.bottom for piece in pieces) + GAP
        if pieces and top + box[3] - box[1] > highest:
            yield pieces
            pieces, left, top = [], 0, 0
        pieces.append(Piece(line, box, left, top))
        left = pieces[-1].right + GAP + min(line.height, line.width)
    if pieces:
        yield pieces


def _corrected(line: Line, found: list[Line]) -> Line:
    """`line` with the text and the confidence of the second reading, if that has most of it and is surer."""
    width = sum(part.width for part in found)
    if width < max(1, COVERED * line.width):
        return line
    confidence = sum(part.confidence * part.width for part in found) / width
    if confidence < line.confidence:
        return line
    text = spaced([part.text for part in sorted(found, key=lambda part: part.left)])
    return Line(text, confidence, line.left, line.top, line.right, line.bottom)
