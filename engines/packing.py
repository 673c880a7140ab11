"""The lines of a page as they are stored: MessagePack, deflated, about a kilobyte for a full screen.

zlib's checksum notices damage, and unpacking takes linear time and bounded memory, whatever the bytes are.
"""

import itertools
import zlib
from collections.abc import Iterable, Sequence

import msgspec

from engines.lines import Line
from text import fraction, storable

MAX_LINES = 5_000  # 50 megapixels of small text have half of that
MAX_CHARACTERS = 100_000
MAX_BYTES = 4 * MAX_CHARACTERS + 64 * MAX_LINES  # a line's numbers take 50 bytes at most


class Damaged(ValueError):
    """The bytes are no packed page."""


def pack(lines: Sequence[Line]) -> bytes:
    """The texts and boxes of the first lines, packed; confidences in per cent, no line breaks."""
    return zlib.compress(msgspec.msgpack.encode([_stored(line) for line in _within_limits(lines)]))


def unpack(data: bytes) -> list[Line]:
    """The lines that were packed. Raises `Damaged`."""
    unpacker = zlib.decompressobj()
    try:
        encoded = unpacker.decompress(data, MAX_BYTES)
        if not unpacker.eof:
            raise Damaged("it is cut off or too long")
        return msgspec.msgpack.decode(encoded, type=list[Line])
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Damaged(f"it is damaged ({problem})") from None


def _within_limits(lines: Iterable[Line]) -> Iterable[Line]:
    characters = 0
    for line in itertools.islice(lines, MAX_LINES):
        characters += len(line.text)
        if characters > MAX_CHARACTERS:
            return
        yield line


def _stored(line: Line) -> Line:
    return msgspec.structs.replace(
        line, text=storable(line.text).replace("\n", " "), confidence=round(fraction(line.confidence), 2)
    )
