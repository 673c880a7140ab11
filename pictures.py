"""Untrusted pictures: their type, whether they decode in full, and smaller copies of them.

Only this module opens pictures. A picture is a seekable reader (a sealed file, decrypted while it is read),
never one block of bytes, and is decoded once. A small file can take all memory when it is decoded, so limits
apply before: pixels are counted from the header, and pictures above `LARGE_PIXELS` are decoded one at a time
in the whole process. Pillow gets a list of the permitted formats, so its other parsers are never reached.

HEIC and AVIF are decoded by a child process (`heif.py`), which is this module as a program. They have
the same limits. Of a sequence, only the first picture is read.
"""

import contextlib
import io
import math
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from PIL import Image, ImageChops, ImageDraw, ImageFile, ImageFont, UnidentifiedImageError

import heif
from errors import Unavailable, UnsupportedImage

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")  # of this process
# MPO is Pillow's name for a JPEG that is followed by further pictures, as some phones write it.
MIME_TYPES = {
    "JPEG": "image/jpeg",
    "MPO": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "HEIC": "image/heic",
    "AVIF": "image/avif",
}
NOT_EVERYWHERE = ("image/heic", "image/avif")  # not every browser shows them

MAX_PIXELS = 50_000_000
# A JPEG is decoded at a fraction of its size (DCT scaling), so more pixels need no more memory. The decoder
# keeps all coefficients of a progressive JPEG in memory at any scale, so the ordinary limit applies to it.
MAX_JPEG_PIXELS = 120_000_000
MAX_FRAMES = 1_000
# Of each frame: to make one, Pillow holds four of its size. Recordings of a 5K screen pass, and take 250 MB.
MAX_FRAME_PIXELS = 16_000_000
# All frames of an animation together: decoding takes up to some 10 seconds. Refused by the header's size and
# the number of frames, before any frame is decoded: to reach a frame, Pillow decodes those before it.
MAX_ANIMATION_PIXELS = 250_000_000
LARGE_PIXELS = 8_000_000
LARGE_PATIENCE = 20.0  # seconds that a request waits for another large picture before it answers 503

THUMBNAIL_SIDE = 512
MODEL_SIDE, MODEL_QUALITY = 1568, 88
# A picture that is longer than any phone's screen, relative to its width, is sent to a model in parts. Those
# of a page of 1080 × 9000 pixels are 1080 × 2350 and arrive at 0.67 of their size, whose text is read well.
LONGEST_SCREEN = 3.0
LONGEST_PART = 2.2
OVERLAP = 0.08  # of a part's length: some lines of text
MOST_PARTS = 8
PART_QUALITY = 80  # together, eight parts stay below 3 MB
JPEG_QUALITY = 90  # of a whole picture for a browser that cannot show the original
# It takes half of the time of LANCZOS, which is only a little sharper.
FILTER = Image.Resampling.HAMMING
COPIED_PIXELS = 4_000_000  # up to so many, a second copy in full size is made where that takes less time
STRIP_PIXELS = 500_000
# The perceptual hash: a byte for each row of a grid, with so many rows on the picture's width, and a bit for
# each step in brightness from left to right. Rows follow the width, not the height, so that a picture without
# its status bar has the same rows one or two places higher.
HASH_ROWS = 18  # on a width: 40 for a phone's screen
MOST_HASH_ROWS = 64
HASH_STEPS = 8
HASH_MARGIN = 3  # steps up to this many of 255 levels are noise

# Pillow's own limit is the second line of defence: it also sees frames and tiles larger than the header says.
Image.MAX_IMAGE_PIXELS = MAX_JPEG_PIXELS
ImageFile.LOAD_TRUNCATED_IMAGES = False
warnings.filterwarnings("ignore", module=r"PIL\.")  # about metadata, which is never stored
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)

_one_large_picture = threading.Lock()


class Examined(NamedTuple):
    """The stored properties of an accepted picture. Width and height: pixels, EXIF orientation applied."""

    mime_type: str
    width: int
    height: int
    thumbnail: bytes  # JPEG, long side at most 512 px, without metadata
    perceptual_hash: bytes  # see `perceptual_hash`
    taken: datetime | None = None  # as `taken_at` has it


def examine(picture: BinaryIO) -> Examined:
    """Decode `picture` in full, once, and make its thumbnail.

    Raises `UnsupportedImage`, with the reason, for anything but a whole JPEG, PNG, WebP, GIF, HEIC or AVIF
    within the limits, and `Unavailable` when a large picture waits too long for another one.
    """
    if kind := heif.kind_of(picture):
        header, small = _from_child(picture, kind, THUMBNAIL_SIDE, LARGE_PATIENCE)
        taken = _moment(lambda: (header.taken, header.taken_offset))
        thumbnail = _jpeg(small, quality=82)
        return Examined(MIME_TYPES[kind], header.width, header.height, thumbnail, _hash(small), taken)
    with _opened(picture, LARGE_PATIENCE) as image:
        width, height = image.size
        if image.getexif().get(_ORIENTATION, 1) in _SIDEWAYS:
            width, height = height, width
        mime_type = MIME_TYPES[image.format or ""]
        small = _reduced(image, THUMBNAIL_SIDE)
        _walk_frames(image)
        if image.format == "PNG":
            _check_png_end(picture)
        taken = _moment(lambda: _in_exif(image))
        return Examined(mime_type, width, height, _jpeg(small, quality=82), _hash(small), taken)


def perceptual_hash(thumbnail: BinaryIO) -> bytes:
    """A hash that is nearly the same for nearly the same pictures, from a picture or its thumbnail: at most
    `MOST_HASH_ROWS` bytes, from the top. `rules.likeness` compares them. Raises as `examine` does.
    """
    with _opened(thumbnail, None) as image:
        return _hash(_reduced(image, THUMBNAIL_SIDE))


def for_model(picture: BinaryIO) -> bytes:
    """A JPEG of the first frame for a vision model: long side at most 1568 px, upright, without EXIF or GPS.
    Raises as `examine` does.
    """
    if kind := heif.kind_of(picture):
        return _jpeg(_from_child(picture, kind, MODEL_SIDE, LARGE_PATIENCE)[1], quality=MODEL_QUALITY)
    with _opened(picture, LARGE_PATIENCE) as image:
        return _jpeg(_reduced(image, MODEL_SIDE), quality=MODEL_QUALITY)


def parts_for_model(picture: BinaryIO) -> list[bytes]:
    """As `for_model`, in several parts that overlap if the picture is longer than a screen: reduced as a
    whole, its text could not be read. At most `MOST_PARTS`; those of a still longer one are smaller. No
    client waits, so a large picture waits for others as long as it takes.
    """
    if kind := heif.kind_of(picture):
        header, small = _from_child(picture, kind, MODEL_SIDE, None)
        if not _is_long(header.width, header.height):
            return [_jpeg(small, quality=MODEL_QUALITY)]
    else:
        with _opened(picture, None) as image:
            if not _is_long(*image.size):
                return [_jpeg(_reduced(image, MODEL_SIDE), quality=MODEL_QUALITY)]
    whole = decode(picture, patience=None)
    return [
        _jpeg(_resized(part, _size(*part.size, MODEL_SIDE)), quality=PART_QUALITY)
        for part in map(whole.crop, _parts(*whole.size))
    ]


def _is_long(width: int, height: int) -> bool:
    return max(width, height) > LONGEST_SCREEN * min(width, height)


def _parts(width: int, height: int) -> Iterator[tuple[int, int, int, int]]:
    """The boxes of the parts of a long picture, each `LONGEST_PART` times as long as wide."""
    along, across = max(width, height), min(width, height)
    number = min(MOST_PARTS, math.ceil(along / (across * LONGEST_PART * (1 - OVERLAP))))
    step = along / number
    for part in range(number):
        begin, end = max(0, round(part * step - across * LONGEST_PART * OVERLAP)), round((part + 1) * step)
        yield (begin, 0, end, across) if width > height else (0, begin, across, end)


def decode(picture: BinaryIO, *, patience: float | None = LARGE_PATIENCE) -> Image.Image:
    """The first frame, RGB, upright, with transparency on white.

    It has the full size, or half of it for a JPEG of more than `MAX_PIXELS`. A large one waits `patience`
    seconds for others, None for as long as it takes. Raises as `examine` does.
    """
    if kind := heif.kind_of(picture):
        return _from_child(picture, kind, 0, patience)[1]
    with _opened(picture, patience) as image:
        if image.width * image.height > MAX_PIXELS:
            image.draft("RGB", (image.width // 2, image.height // 2))
        image.load()
        # Flattened at once, a picture with transparency would take four times its memory, and not twice.
        flat = image if image.mode == "RGB" and not image.has_transparency_data else _in_strips(image, 1)
        return _upright(image, flat)


def are_same(first: BinaryIO, second: BinaryIO) -> bool:
    """Whether `decode` of two pictures is equal, whatever their formats. Raises as `examine` does."""
    one, other = decode(first), decode(second)
    return one.size == other.size and ImageChops.difference(one, other).getbbox() is None


def as_jpeg(picture: BinaryIO) -> bytes:
    """The whole picture as a JPEG, upright and without metadata. Raises as `examine` does."""
    return _jpeg(decode(picture), quality=JPEG_QUALITY)


def drawn(word: str) -> bytes:
    """A JPEG with a word on it, black on white, to test whether a model sees."""
    image = Image.new("RGB", (448, 160), "white")
    ImageDraw.Draw(image).text((40, 40), word, fill="black", font=ImageFont.load_default(size=72))
    return _jpeg(image, quality=MODEL_QUALITY)


def painted(picture: BinaryIO, boxes: Sequence[tuple[float, float, float, float]]) -> bytes:
    """The whole picture as a JPEG without metadata, with solid boxes (parts of it). Raises as `examine`."""
    image = decode(picture)
    pen = ImageDraw.Draw(image)
    for left, top, width, height in boxes:
        x, y = math.floor(left * image.width), math.floor(top * image.height)
        right, bottom = math.ceil((left + width) * image.width), math.ceil((top + height) * image.height)
        pen.rectangle((x, y, right, bottom), fill="black")
    return _jpeg(image, quality=JPEG_QUALITY)


def recognised(picture: BinaryIO) -> bool:
    """Whether the first bytes are those of a supported picture. The rest may still be damaged."""
    # Pillow would read a WebP in full, whatever its size.
    picture.seek(0)
    head = picture.read(12)
    return (
        head.startswith(_SIGNATURES)
        or (head[:4] == b"RIFF" and head[8:] == b"WEBP")
        or heif.kind_of(picture) is not None
    )


def taken_at(picture: BinaryIO) -> datetime | None:
    """When the picture was taken, UTC without a zone, by its EXIF data; None where that says nothing.

    A time without an offset is in the machine's time zone.
    """
    return _moment(lambda: _written_time(picture))


def _moment(written: Callable[[], tuple[str, str]]) -> datetime | None:
    """What `taken_at` returns for a time and its offset, which are read here: they may be damaged."""
    try:
        taken, offset = written()
        parsed = datetime.strptime(
            f"{taken.strip()} {offset.strip()}".strip(),
            "%Y:%m:%d %H:%M:%S %z" if offset else "%Y:%m:%d %H:%M:%S",
        )
        return parsed.astimezone(UTC).replace(tzinfo=None)
    except (
        *_DAMAGE,
        *(AttributeError, UnsupportedImage, Unavailable),
        *(Image.DecompressionBombError, Image.DecompressionBombWarning),
    ):
        return None


_SIGNATURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")  # of JPEG, PNG and GIF
_ORIENTATION = 0x0112
_EXIF_IFD, _TAKEN, _TAKEN_OFFSET = 0x8769, 0x9003, 0x9011
_SIDEWAYS = (5, 6, 7, 8)
# Pillow's decoders raise any of these for damaged pictures.
_DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    struct.error,
)


def _from_child(
    picture: BinaryIO, kind: heif.Kind, side: int, patience: float | None
) -> tuple[heif.Header, Image.Image]:
    """The header of a HEIC or AVIF, and the upright RGB picture of `side` pixels at most (0: in full)."""
    with heif.opened(picture, kind, patience=patience) as decoder:
        pixels = decoder.header.width * decoder.header.height
        if pixels > MAX_PIXELS:
            raise UnsupportedImage(_too_many_pixels(MAX_PIXELS))
        with _alone(patience) if pixels > LARGE_PIXELS else contextlib.nullcontext():
            return decoder.header, decoder.image(side)


def _rendered(image: Image.Image, side: int) -> Image.Image:
    """What the child answers with; `side` is that of `_from_child`."""
    return _reduced(image, side) if side else _upright(image, _flat(image))


def _written_time(picture: BinaryIO) -> tuple[str, str]:
    """The time and its offset (or nothing) as EXIF data has them. Raises `KeyError` where there is none."""
    if kind := heif.kind_of(picture):
        with heif.opened(picture, kind) as decoder:
            return decoder.header.taken, decoder.header.taken_offset
    picture.seek(0)
    with Image.open(picture, formats=FORMATS) as image:
        return _in_exif(image)


def _in_exif(image: Image.Image) -> tuple[str, str]:
    exif = image.getexif().get_ifd(_EXIF_IFD)
    return exif[_TAKEN], exif.get(_TAKEN_OFFSET, "")


@contextlib.contextmanager
def _opened(picture: BinaryIO, patience: float | None) -> Iterator[Image.Image]:
    """An image within the limits, not decoded yet; whatever decoding raises becomes `UnsupportedImage`.

    Raises `Unavailable` when it is large and others are read for `patience` seconds.
    """
    picture.seek(0)
    with contextlib.ExitStack() as stack:
        try:
            image = stack.enter_context(Image.open(picture, formats=FORMATS))
            pixels = _within_limits(image)
            if pixels > LARGE_PIXELS:
                stack.enter_context(_alone(patience))
            yield image
        except (UnsupportedImage, Unavailable):
            raise
        except UnidentifiedImageError:
            raise UnsupportedImage("file: not a JPEG, PNG, WebP, GIF, HEIC or AVIF picture") from None
        except (Image.DecompressionBombError, Image.DecompressionBombWarning):
            raise UnsupportedImage(_too_many_pixels(MAX_JPEG_PIXELS)) from None
        except _DAMAGE as problem:
            raise UnsupportedImage(
                f"file: the picture is damaged or cut off ({type(problem).__name__})"
            ) from None


@contextlib.contextmanager
def _alone(patience: float | None) -> Iterator[None]:
    """Be the only thread that decodes a large picture. Raises `Unavailable` after `patience` seconds."""
    if not _one_large_picture.acquire(timeout=-1 if patience is None else patience):
        raise Unavailable(
            "Another large picture is being read. Please come again in a moment.", retry_after=10
        )
    try:
        yield
    finally:
        _one_large_picture.release()


def _within_limits(image: Image.Image) -> int:
    """The picture's pixels, from its header. Raises `UnsupportedImage` when a limit is exceeded."""
    width, height = image.size
    baseline_jpeg = image.format in ("JPEG", "MPO") and not image.info.get("progressive")
    limit = MAX_JPEG_PIXELS if baseline_jpeg else MAX_PIXELS
    if width * height > limit:
        raise UnsupportedImage(_too_many_pixels(limit))
    frames = getattr(image, "n_frames", 1)
    if frames > MAX_FRAMES:
        raise UnsupportedImage(f"file: more than {MAX_FRAMES} frames")
    animated = frames > 1 and image.format != "MPO"  # that has separate pictures; only the first is decoded
    if animated and width * height > MAX_FRAME_PIXELS:
        limit = MAX_FRAME_PIXELS // 1_000_000
        raise UnsupportedImage(f"file: more than {limit} megapixels in each frame of an animation")
    if animated and width * height * frames > MAX_ANIMATION_PIXELS:
        limit = MAX_ANIMATION_PIXELS // 1_000_000
        raise UnsupportedImage(f"file: more than {limit} megapixels in all frames together")
    return width * height


def _too_many_pixels(limit: int) -> str:
    return f"file: more than {limit // 1_000_000} megapixels"


def _walk_frames(image: Image.Image) -> None:
    """Visit every frame of an animation: one may be cut off, or larger than the first."""
    if image.format == "MPO":
        return
    for number in range(1, getattr(image, "n_frames", 1)):
        image.seek(number)
        _within_limits(image)
        image.load()


def _check_png_end(picture: BinaryIO) -> None:
    """Raise `UnsupportedImage` for a PNG without its last chunk: Pillow accepts one with all its pixels."""
    picture.seek(8)  # behind the signature
    while header := picture.read(8):
        length, kind = struct.unpack(">I4s", header)
        if kind == b"IEND":
            if len(picture.read(4)) == 4:
                return
            break
        picture.seek(length + 4, io.SEEK_CUR)
    raise UnsupportedImage("file: the picture is damaged or cut off (no end)")


def _reduced(image: Image.Image, side: int) -> Image.Image:
    """A copy with a long side of at most `side` pixels, RGB, upright; no second full-size copy is made."""
    image.draft("RGB", (side * 2, side * 2))  # JPEG only: decode at 1/2, 1/4 or 1/8 of the size
    image.load()
    if (image.mode == "RGB" and not image.has_transparency_data) or (
        image.width * image.height <= COPIED_PIXELS
    ):
        return _upright(image, _flat(_resized(_resizable(image), _size(*image.size, side))))
    # The strips are reduced to twice the final size, because the last step then gives a sharper result; for a
    # large picture to the final size, to save memory.
    margin = 1 if image.width * image.height > LARGE_PIXELS else 2
    small = _in_strips(image, max(1, max(image.size) // (side * margin)))
    small.thumbnail((side, side), FILTER, reducing_gap=None)
    return _upright(image, small)


def _resizable(image: Image.Image) -> Image.Image:
    """`image` in a mode that can be resized: with transparency, its colours multiplied by it."""
    if image.mode.startswith("I") or image.mode == "F" or not image.has_transparency_data:
        return _flat(image)
    if _is_opaque(image):
        # The same pixels in a mode whose fourth byte means nothing.
        with contextlib.suppress(ValueError):  # they are in several pieces of memory
            return Image.fromarrow(image, "RGBX", image.size)
        return image.convert("RGB")
    return (image if image.mode == "RGBA" else image.convert("RGBA")).convert("RGBa")


def _resized(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    resized = image.resize(size, FILTER, reducing_gap=2.0)
    return resized.convert("RGBA") if resized.mode == "RGBa" else resized


def _size(width: int, height: int, side: int) -> tuple[int, int]:
    """The size of a picture whose long side becomes at most `side`."""
    scale = min(1.0, side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _is_opaque(image: Image.Image) -> bool:
    """Whether nothing shines through a picture with transparency, as in most screenshots that have it."""
    return image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255)


def _hash(small: Image.Image) -> bytes:
    """The difference hash (dHash) of every row of a grid, one after the other."""
    height = small.height * HASH_ROWS / small.width  # in rows
    rows = max(1, min(round(height), MOST_HASH_ROWS))
    box = (0, 0, small.width, min(small.height, small.height * rows / height))
    grid = small.convert("L").resize((HASH_STEPS + 1, rows), Image.Resampling.BOX, box=box)
    levels = grid.tobytes()
    width = HASH_STEPS + 1
    return bytes(
        sum((levels[at + step] > levels[at + step + 1] + HASH_MARGIN) << step for step in range(HASH_STEPS))
        for at in range(0, rows * width, width)
    )


def _in_strips(image: Image.Image, factor: int) -> Image.Image:
    """`image` flattened and reduced by the whole number `factor`, strip by strip to save memory."""
    width, height = image.size
    result = Image.new("RGB", (-(-width // factor), -(-height // factor)))
    rows = max(1, STRIP_PIXELS // (width * factor)) * factor
    for top in range(0, height, rows):
        strip = _flat(image.crop((0, top, width, min(top + rows, height))))
        result.paste(strip.reduce(factor) if factor > 1 else strip, (0, top // factor))
    return result


def _flat(image: Image.Image) -> Image.Image:
    """`image` as RGB: transparency on white, 16 bits reduced to 8."""
    if image.mode.startswith("I;16"):
        image = image.point(lambda value: value / 256, "L")
    elif image.mode in ("I", "F"):
        image = image.point(lambda value: value / 256).convert("L")
    if image.has_transparency_data and not _is_opaque(image):
        image = image if image.mode == "RGBA" else image.convert("RGBA")
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A"))
        return flat
    return image if image.mode == "RGB" else image.convert("RGB")


def _upright(source: Image.Image, image: Image.Image) -> Image.Image:
    """`image`, made from `source`, rotated or mirrored by the EXIF orientation of `source`."""
    method = _TRANSPOSITIONS.get(source.getexif().get(_ORIENTATION, 1))
    return image if method is None else image.transpose(method)


# TIFF 6.0, tag 274, as in Pillow's own `exif_transpose`.
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _jpeg(image: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    image.info = {}  # otherwise Pillow writes the original's comments and profiles
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


if __name__ == "__main__":
    heif.serve(sys.argv[1], _rendered)
