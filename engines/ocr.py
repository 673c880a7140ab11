"""Reading the text on a screenshot: the program that runs in the OCR child process, and the form of its
answer.

It is a process of its own because the engine is native code that reads hostile pictures: if it crashes, hangs
or takes too much memory, this process ends and the service goes on. It gets no settings, no keys and no
database; pictures arrive on its standard input and are never written anywhere. It ends when that input
closes, so it does not outlive a parent that was killed.

The engine is faster-paddle, whose models are part of its package. If that cannot be loaded, Tesseract is
called, if it is installed. Both have one method, `Engine.lines`, so that the project's youngest dependency is
easy to replace.

The detector works on a reduced picture, where it misses text that is less than about 5 pixels high. So the
reduction is bounded: a picture is read in overlapping strips that are as wide as it is, so that no strip cuts
a line of text in two. The same plan bounds memory, which grows with the detector's input: strips that are
nearly square are padded to a longer shape.
"""

import contextlib
import ctypes
import io
import itertools
import math
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import msgspec
from PIL.Image import Transpose

import pictures
from engines import codes
from engines.lines import Line, Page, gutter, spaced
from engines.twopass import SCALE, TwoPasses
from errors import UnsupportedImage

if TYPE_CHECKING:
    from PIL import Image

BUNDLED = ("tiny", "small")  # fast, exact; any other model would be downloaded
# Sides that the detector scales a strip down to. 960 reads phone screens without a loss (1,280 found nothing
# more and took a sixth more time); the others are for desktops, whose text is small relative to the width.
DETECTOR_SIDES = (960, 1280, 1600)
SHEET_SIDE = round(SCALE * DETECTOR_SIDES[0])  # of the sheets of a phone's screen
# The smallest accepted scale: it finds 99 % of the words in text of 12 pixels; 0.3 finds hardly any.
MIN_SCALE = 0.43
# A phone's screen has three pixels per point, so it may be scaled down further, and is read in one strip.
PHONE_SHAPE = 1.9  # height to width, at least
PHONE_HEIGHT = 2_900
# The detector's input for a strip: about 960 x 720. At 960 x 960 it takes 100 MB more.
MAX_DETECTOR_PIXELS = 700_000
MAX_SHAPE = 0.75  # of a strip's short side to its long one; a strip that is nearer to a square is padded
# Resident bytes from which the engine is made anew before the next strip. It keeps what its largest inputs
# took, which adds up to 400 MB over many pictures of different shapes.
MOST_KEPT = 290 * 1024**2
MOST_KEPT_BY_TWO = 260 * 1024**2  # of two engines, from which the one that is loaded in 0.04 s is made anew
DETECTOR_MIN_SIDE = 736  # the engine enlarges smaller pictures to this
OVERLAP = 160  # twice the height of the largest text that must not be cut
MAX_WIDTH = 3_840  # wider ones, several screens side by side, are cut into columns too
MIN_SIDE = 8  # pixels; no text is readable below

MIN_CONFIDENCE = 0.4
# The models read an ellipsis as two dots: of 50 lines on real screens that were read so, all had three.
ELLIPSIS = re.compile(r"(?<!\.)\.\.\s*$")
# A picture that lies on its side has lines that are higher than wide; one on its head, or mirrored, is read
# with a mean confidence of 0.6 to 0.8, where others have 0.95 and more.
TALL = 1.5
# Of the upright reading's certainty, from which a turned one counts: of lines on their side, and of others.
ON_SIDE, BETTER = 0.9, 1.1
CERTAIN, GUESSED = 0.88, 0.7
# Pixels of a picture that is read again: three readings stay within the time for one.
MOST_TURNED = 12_000_000

# Of the processor's word of control: results, and operands, that are too small to be normal count as zero.
FLUSH_TO_ZERO, DENORMALS_ARE_ZERO = 0x8000, 0x40

TESSERACT_LANGUAGES = ("eng", "chi_sim", "chi_tra", "jpn", "deu", "fra", "spa")
NICENESS = 10


class Ready(msgspec.Struct):
    """The child's first message: the engine that it has loaded, or why none."""

    engine: str = ""
    problem: str = ""


class Engine(Protocol):
    name: str

    def lines(self, tile: "Image.Image", detector_side: int) -> Iterable[Line]:
        """The lines on `tile`, in no order. A failure ends the process, and only this picture fails."""


class Strip(NamedTuple):
    left: int
    top: int
    right: int
    bottom: int


def plan(width: int, height: int) -> tuple[int, list[Strip]]:
    """The detector's side and the overlapping strips in which a picture of this size is read.

    Every strip is scaled by at least `MIN_SCALE` (except on phone screens and in pictures wider than
    `MAX_WIDTH`) to at most `MAX_DETECTOR_PIXELS`. No strips: the picture is too narrow for text.
    """
    if min(width, height) < MIN_SIDE:
        return DETECTOR_SIDES[0], []
    columns = _spans(width, -(-width // MAX_WIDTH))
    wide = columns[0][1]
    phone = height >= PHONE_SHAPE * wide and height <= PHONE_HEIGHT
    side = next((side for side in DETECTOR_SIDES if phone or side >= MIN_SCALE * wide), DETECTOR_SIDES[-1])
    longest = PHONE_HEIGHT if phone else max(side / MIN_SCALE, wide)
    for count in itertools.count(1):
        high = _span(height, count)
        long, short = _padded_shape(wide, high)
        scale = min(max(1, DETECTOR_MIN_SIDE / short), side / long)
        if high <= 2 * OVERLAP or (long <= longest and long * short * scale * scale <= MAX_DETECTOR_PIXELS):
            return side, [
                Strip(left, top, right, bottom)
                for top, bottom in _spans(height, count)
                for left, right in columns
            ]
    raise AssertionError("more rows make lower strips")


def read(image: "Image.Image", engine: Engine, after_strip: Callable[[], None] = lambda: None) -> Page:
    """The text of an RGB picture in reading order. `after_strip` is called as each strip is done.

    A picture that is hard to read may lie on its side, stand on its head or be mirrored. Then it is read so
    as well, and the most certain reading counts, with its places on the picture as it is.
    """
    upright, tall = _read(image, engine, None, after_strip)
    texts = [line for line in upright.lines if len(line.text) > 1]
    if not texts or image.width * image.height > MOST_TURNED:
        return upright
    if tall:
        turns = (Transpose.ROTATE_90, Transpose.ROTATE_270)
    elif sum((line.confidence - CERTAIN) * len(line.text) for line in texts) < 0:
        turns = (Transpose.ROTATE_180, Transpose.FLIP_LEFT_RIGHT)
    else:
        return upright
    turned = [_read(image, engine, turn, after_strip)[0] for turn in turns]
    # The engine may read lines on their side, but in the wrong order.
    best = max(turned, key=_certainty)
    least = _certainty(upright) * (ON_SIDE if tall else BETTER)
    return best if _certainty(best) >= least else upright


def _read(
    image: "Image.Image", engine: Engine, turn: Transpose | None, after_strip: Callable[[], None]
) -> tuple[Page, bool]:
    """The text of a picture that is turned before, strip by strip; and whether most lines are tall."""
    width, height = image.size
    if turn in (Transpose.ROTATE_90, Transpose.ROTATE_270):
        width, height = height, width
    side, strips = plan(width, height)
    found: list[tuple[bool, Line]] = []
    for strip in strips:
        tile = image.crop(_unturned(strip, turn, *image.size))
        if turn is not None:
            tile = tile.transpose(turn)
        # Pillow's type allows for pictures of one band, which have a single pair.
        extrema = cast(tuple[tuple[int, int], ...], tile.getextrema())
        if any(low != high for low, high in extrema):
            for line in engine.lines(_padded(tile), side):
                if _is_text(line):
                    cut = (line.top <= 1 and strip.top > 0) or (
                        line.bottom >= tile.height - 1 and strip.bottom < height
                    )
                    found.append((cut, _moved(line, strip)))
        after_strip()
    lines = [line for _, line in found] if len(strips) < 2 else _without_duplicates(found)
    placed = [
        Line(
            line.text,
            line.confidence,
            *_unturned((line.left, line.top, line.right, line.bottom), turn, *image.size),
        )
        for line in reading_order(lines)
    ]
    # Measured before pieces are joined: the lines of a picture on its side look like pieces of one line.
    tall = sum(line.height > TALL * line.width for line in lines if len(line.text) > 1)
    return Page(image.width, image.height, placed), tall * 2 > len(lines)


def _certainty(page: Page) -> float:
    """How much of a page is read, and how surely: what is read wrongly has a confidence of 0.6 to 0.8."""
    return sum((line.confidence - GUESSED) * len(line.text) for line in page.lines)


def _unturned(
    box: tuple[int, int, int, int], turn: Transpose | None, width: int, height: int
) -> tuple[int, int, int, int]:
    """A place on the turned picture as a place on the picture, which has this size."""
    left, top, right, bottom = box
    match turn:
        case Transpose.ROTATE_90:
            return width - bottom, left, width - top, right
        case Transpose.ROTATE_180:
            return width - right, height - bottom, width - left, height - top
        case Transpose.ROTATE_270:
            return top, height - right, bottom, height - left
        case Transpose.FLIP_LEFT_RIGHT:
            return width - right, top, width - left, bottom
    return left, top, right, bottom


def reading_order(lines: list[Line]) -> list[Line]:
    """`lines` from top to bottom and left to right, with the lines of a wrapped paragraph one after the
    other.

    Pieces of one line that the detector split are joined. Rows go across columns, but text in another column
    never splits a paragraph, so that its phrases can be found. Of two screens beside each other the left one
    is read first; columns of vertical text are read from the right.
    """
    if (middle := gutter(lines)) is not None:
        sides = [[line for line in lines if (line.left > middle) == right] for right in (False, True)]
        return [line for side in sides for line in reading_order(side)]
    columns = [line for line in lines if _is_vertical(line)]
    if len(columns) >= 2:
        kept = {id(line) for line in columns}
        result = reading_order([line for line in lines if id(line) not in kept])
        for group in _beside_each_other(columns):
            top = min(line.top for line in group)
            place = next((at for at, line in enumerate(result) if line.top >= top), len(result))
            result[place:place] = sorted(group, key=lambda line: -line.right)
        return result
    rows = [_joined(row) for row in _rows(lines)]
    order = [line for row in rows for line in row]
    following = _wrapped(rows)
    continued = {id(line) for line in following.values()}
    read = []
    for line in order:
        if id(line) in continued:
            continue
        part: Line | None = line
        while part is not None:
            read.append(part)
            part = following.get(id(part))
    return read


class Paddle:
    """faster-paddle with a model, loaded anew (0.15 s) for another detector side or to free memory."""

    def __init__(self, name: str, most_kept: int = MOST_KEPT, side: int = DETECTOR_SIDES[0]):
        if name not in BUNDLED:
            raise ValueError(f"{name} is not a model of the package")
        import faster_paddle  # only here, in the child: 63 MB of native code

        self.name = name
        self._most_kept = most_kept
        self._make = faster_paddle.OcrEngine
        self._engine: Any = None  # a native object, whose package has no types
        self._side = 0
        self._switch(side)

    def lines(self, tile: "Image.Image", detector_side: int) -> Iterator[Line]:
        if _resident() > self._most_kept:
            self._side = 0
        self._switch(detector_side)
        for found in self._engine.ocr(_bitmap(tile))["bounds"].values():
            (left, top), (right, bottom) = found["topLeftCoord"], found["bottomRightCoord"]
            text = ELLIPSIS.sub("...", found["text"])
            yield Line(text, float(found["confidence"]), int(left), int(top), int(right), int(bottom))

    def _switch(self, side: int) -> None:
        if side != self._side:
            self._engine = None  # freed before the next one is made: two would double the memory
            self._engine = self._make(model_size=self.name, threads=1, det_max_side=side)
            self._side = side


class Tesseract:
    """The `tesseract` program, called for each strip; the picture and the answer go through pipes."""

    name = "tesseract"

    def __init__(self, program: str):
        self._program = program
        listed = subprocess.run(
            [program, "--list-langs"], capture_output=True, text=True, check=True
        ).stdout.split()
        self._languages = "+".join(language for language in TESSERACT_LANGUAGES if language in listed)
        if not self._languages:
            raise OSError("Tesseract has no language data")

    def lines(self, tile: "Image.Image", detector_side: int) -> Iterator[Line]:
        command = [self._program, "stdin", "stdout", "-l", self._languages, "tsv"]
        table = subprocess.run(
            command, input=_bitmap(tile), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        ).stdout
        words = [row.split("\t") for row in table.decode("utf-8", "replace").splitlines()[1:]]
        words = [word for word in words if len(word) == 12 and word[0] == "5" and word[11].strip()]
        for _, group in itertools.groupby(words, key=lambda word: word[1:5]):  # page, block, paragraph, line
            row = list(group)
            left, top = min(int(word[6]) for word in row), min(int(word[7]) for word in row)
            right, bottom = (
                max(int(word[6]) + int(word[8]) for word in row),
                max(int(word[7]) + int(word[9]) for word in row),
            )
            confidence = statistics.fmean(float(word[10]) for word in row) / 100
            yield Line(spaced([word[11] for word in row]), confidence, left, top, right, bottom)


def main(size: str, tesseract: str, longest: int) -> None:
    """Serve pictures from standard input until it closes; see `rules/embedded.py` for the other end.

    A picture is 8 bytes of length and its file. Answers are frames of 4 bytes of length and JSON: `Ready`
    once, then a `Page` for each picture; an empty frame is a heartbeat. The process ends when a picture takes
    more than `longest` seconds.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # Meant for the service, which may want to finish the picture first; then it closes the input.
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("900")  # if memory runs out, the kernel kills this process first
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the engine's output must not get between the frames

    def send(message: msgspec.Struct | None) -> None:
        body = b"" if message is None else msgspec.json.encode(message)
        answers.write(len(body).to_bytes(4, "big") + body)
        answers.flush()

    _skip_denormals()
    engine, problem = _load(size, tesseract)
    reader = codes.Reader()
    send(Ready(problem=problem) if engine is None else Ready(engine.name))
    while engine is not None and len(length := source.read(8)) == 8:
        picture = io.BytesIO(source.read(int.from_bytes(length, "big")))
        signal.alarm(longest)  # ends the process even if it hangs in native code and its parent is gone
        image: Image.Image | None = None
        try:
            image = pictures.decode(picture)
            picture.close()
            page = read(image, engine, after_strip=lambda: send(None))
            reader.add_to(page, image)
        except UnsupportedImage as refused:
            page = Page(problem=refused.detail)
        image = None  # free its memory before waiting for the next one
        signal.alarm(0)
        send(page)


def _load(size: str, tesseract: str) -> tuple[Engine | None, str]:
    """The first engine that can be loaded, or None and the reason."""
    try:
        if size == TwoPasses.name:
            fast, exact = Paddle(BUNDLED[0], MOST_KEPT_BY_TWO), Paddle(BUNDLED[1], side=SHEET_SIDE)
            return TwoPasses(fast.lines, exact.lines), ""
        if size:
            return Paddle(size), ""
        problem = "its processor cannot run faster-paddle"
    except Exception as failure:  # a native module may fail to load with any exception
        problem = f"faster-paddle cannot be loaded ({type(failure).__name__})"
    if not tesseract:
        return None, f"{problem}, and Tesseract is not installed"
    try:
        return Tesseract(tesseract), ""
    except (OSError, subprocess.SubprocessError) as failure:
        return None, f"{problem}, nor can Tesseract ({type(failure).__name__})"


def _skip_denormals() -> None:
    """Have this thread, and those that it starts, take the tiniest numbers for zero.

    The models make many of them, and x86 counts with each by a routine of its own: reading by `small` takes a
    quarter less time without them, and reads the same. ONNX Runtime's setting for it is not offered.
    """
    if platform.machine() != "x86_64":
        return
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        state = (ctypes.c_uint32 * 8)()  # `fenv_t`: seven words of the older unit, and MXCSR
        library.fegetenv(state)
        state[7] |= FLUSH_TO_ZERO | DENORMALS_ARE_ZERO
        library.fesetenv(state)


def _resident() -> int:
    """The resident memory of this process, in bytes; 0 where the system does not say."""
    with contextlib.suppress(OSError), open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _span(length: int, count: int) -> int:
    """The size of each of `count` equal spans that cover `length` and overlap by `OVERLAP`."""
    return -(-(length + (count - 1) * OVERLAP) // count)


def _spans(length: int, count: int) -> list[tuple[int, int]]:
    size = _span(length, count)
    starts = [min(number * (size - OVERLAP), length - size) for number in range(count)]
    return [(start, start + size) for start in starts]


def _padded_shape(width: int, height: int) -> tuple[int, int]:
    """The long and the short side of a padded strip of this size."""
    long, short = max(width, height), min(width, height)
    return max(long, math.ceil(short / MAX_SHAPE)), short


def _padded(tile: "Image.Image") -> "Image.Image":
    long, short = _padded_shape(*tile.size)
    if long == max(tile.size):
        return tile
    shape = (long, short) if tile.width >= tile.height else (short, long)
    return tile.crop((0, 0, *shape))  # Pillow fills the outside with black, in which nothing is found


def _bitmap(tile: "Image.Image") -> bytes:
    """`tile` as a BMP file, the cheapest format to write and read."""
    out = io.BytesIO()
    tile.save(out, "BMP")
    return out.getvalue()


def _is_text(line: Line) -> bool:
    """False for marks alone, and for a single letter: an icon (read as 三 or X) or an initial."""
    text = line.text.strip()
    return line.confidence >= MIN_CONFIDENCE and (
        text.isdigit() if len(text) == 1 else any(character.isalnum() for character in text)
    )


def _moved(line: Line, strip: Strip) -> Line:
    left, top = strip.left, strip.top
    return Line(
        line.text, line.confidence, line.left + left, line.top + top, line.right + left, line.bottom + top
    )


def _without_duplicates(found: list[tuple[bool, Line]]) -> list[Line]:
    """Each line once: of two in the same place the one that is not cut, then the larger one."""
    unique: list[Line] = []
    for _, line in sorted(found, key=lambda item: (item[0], -item[1].width * item[1].height)):
        if not any(_same_place(line, other) for other in unique):
            unique.append(line)
    return unique


def _same_place(one: Line, other: Line) -> bool:
    width = min(one.right, other.right) - max(one.left, other.left)
    height = min(one.bottom, other.bottom) - max(one.top, other.top)
    smaller = min(one.width * one.height, other.width * other.height)
    return width > 0 and height > 0 and width * height > smaller / 2


def _rows(lines: list[Line]) -> list[list[Line]]:
    """Lines beside each other, top row first: their middles differ by at most half the smaller height."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.top + line.bottom, line.left)):
        first = rows[-1][0] if rows else line
        lower = (line.top + line.bottom - first.top - first.bottom) / 2
        if rows and lower <= 0.5 * min(line.height, first.height):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda line: line.left) for row in rows]


def _is_vertical(line: Line) -> bool:
    """Whether a line is a column of at least three Chinese characters below each other."""
    return (
        len(line.text) >= 3
        and line.height > 2.2 * line.width
        and 2 * sum("\u2e80" <= character <= "\u9fff" for character in line.text) > len(line.text)
    )


def _beside_each_other(columns: list[Line]) -> list[list[Line]]:
    """Columns in groups of which each overlaps another one in height, the uppermost group first."""
    groups: list[list[Line]] = []
    for line in sorted(columns, key=lambda line: line.top):
        if groups and line.top < max(other.bottom for other in groups[-1]):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _joined(row: list[Line]) -> list[Line]:
    """`row` with the pieces of one line joined: of similar height, and no further apart than words."""
    result = row[:1]
    for line in row[1:]:
        last = result[-1]
        smaller, larger = sorted((last.height, line.height))
        if -larger < line.left - last.right < 0.8 * larger and larger <= 1.4 * smaller:
            confidence = (last.confidence * last.width + line.confidence * line.width) / max(
                1, last.width + line.width
            )
            result[-1] = Line(
                spaced([last.text, line.text]), confidence,
                last.left, min(last.top, line.top),
                max(last.right, line.right), max(last.bottom, line.bottom),
            )  # fmt: skip
        else:
            result.append(line)
    return result


def _wrapped(rows: list[list[Line]]) -> dict[int, Line]:
    """For each line that continues in a line below it: that line, by the `id` of the first.

    The text below continues a line when it is close, begins at the same place and has the same height, and
    when the line is long enough to have been wrapped.
    """
    following: dict[int, Line] = {}
    taken: set[int] = set()
    for number, row in enumerate(rows):
        below = [line for later in rows[number + 1 : number + 6] for line in later]
        for line in row:
            for next_line in below:
                smaller, larger = sorted((line.height, next_line.height))
                close = -0.3 * larger < next_line.top - line.bottom < 0.9 * larger
                aligned = abs(next_line.left - line.left) < 0.8 * larger
                if (
                    close
                    and aligned
                    and larger <= 1.35 * smaller
                    and line.width >= max(0.75 * next_line.width, 6 * larger)
                ):
                    if id(next_line) not in taken:
                        following[id(line)] = next_line
                        taken.add(id(next_line))
                    break
    return following


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], math.ceil(float(sys.argv[3])))
