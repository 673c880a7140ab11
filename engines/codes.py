"""Bar and QR codes in a picture, read in the OCR child: links, Wi-Fi, tickets, parcels, loyalty cards.

What a code says is kept as a line of text at the code's lower edge. So it is stored, found, marked on the
picture and passed through the gate for what is sensitive like everything else that was read, and a secret in
a code (`otpauth://`, the password of a Wi-Fi) is as protected as one that is written.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from engines.lines import Line, Page
from text import one_line

if TYPE_CHECKING:
    from PIL import Image

MAX_CODES = 12  # of a picture; a person keeps one, a sheet of stickers has many
MAX_CONTENT = 1_000  # characters; a ticket has 60 to 300
# A long capture is searched in overlapping parts: the reader scales a large picture down, which would lose
# the codes. A part takes 35 ms.
PART = 2_600
OVERLAP = 600  # pixels; a code on a phone's screen is smaller
MAX_PARTS = 12
LINE = 14  # of the width of a code: the height of its line
# Text in the middle of a code, a logo for example, is longer or more certain than noise.
SHORT, UNCERTAIN = 4, 0.8
# What people meet. The others are found in noise: four bars are an ITF code.
FORMATS = (
    "QRCode", "MicroQRCode", "Aztec", "DataMatrix", "PDF417", "Code128", "Code39", "EAN13", "EAN8", "UPCA",
    "UPCE",
)  # fmt: skip


class Reader:
    """zxing-cpp, if it can be loaded; without it no codes are found, and everything else works."""

    def __init__(self) -> None:
        self._package: Any = None  # native, loaded in the child only
        try:
            import zxingcpp

            formats = [getattr(zxingcpp.BarcodeFormat, name) for name in FORMATS]
            self._formats = zxingcpp.BarcodeFormats(formats)
            self._package = zxingcpp
        except Exception:  # a native module may fail to load with any exception
            self._package = None

    def add_to(self, page: Page, image: "Image.Image") -> None:
        """Add the contents of the codes in `image` to its page; take out what was read in their patterns."""
        found = self._found(image)
        page.lines = [line for line in page.lines if not any(_is_noise(line, box) for _, _, box in found)]
        page.lines += [line for line, _, _ in found]
        page.codes = [format for _, format, _ in found]

    def _found(self, image: "Image.Image") -> list[tuple[Line, str, "Box"]]:
        """Line, format and place of each code."""
        if self._package is None:
            return []
        found: dict[str, tuple[Line, str, Box]] = {}
        step = PART - OVERLAP
        starts = range(0, max(1, image.height - OVERLAP), step) if image.height > PART else range(1)
        for top in starts[:MAX_PARTS]:
            part = image.crop((0, top, image.width, min(image.height, top + PART))).convert("L")
            shape = (part.height, part.width)
            pixels = memoryview(part.tobytes()).cast("B", shape=shape)  # no array package is needed
            for code in self._package.read_barcodes(pixels, formats=self._formats):
                content = one_line(code.text.replace("\0", ""))[:MAX_CONTENT]
                if content and content not in found and len(found) < MAX_CODES:
                    box = _box(code.position, top, image)
                    height = max(8, (box.right - box.left) // LINE)
                    upper = max(0, box.bottom - height)
                    line = Line(content, 1.0, box.left, upper, box.right, box.bottom)
                    found[content] = (line, str(code.format), box)
        return list(found.values())


class Box(NamedTuple):
    """A place in the picture, in pixels."""

    left: int
    top: int
    right: int
    bottom: int


def _box(position: Any, top: int, image: "Image.Image") -> Box:
    """The place of a code that was found in the part of `image` that begins at `top`."""
    corners = (position.top_left, position.top_right, position.bottom_left, position.bottom_right)
    across = [min(max(0, corner.x), image.width) for corner in corners]
    down = [min(max(0, top + corner.y), image.height) for corner in corners]
    return Box(min(across), min(down), max(across), max(down))


def _is_noise(line: Line, box: Box) -> bool:
    """Whether a line was read in the pattern of a code: it is in it, and short or uncertain."""
    across, down = (line.left + line.right) / 2, (line.top + line.bottom) / 2
    inside = box.left <= across <= box.right and box.top <= down <= box.bottom
    return inside and (len(line.text) <= SHORT or line.confidence < UNCERTAIN)
