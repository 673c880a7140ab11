"""Stored readings in a plainer form: the lines as MessagePack, deflated. The form before, with varints and a
list of common words, is read here for the last time.

Each reading is rewritten, in batches: about a minute for 100,000 photos, in which the log reports the
progress. A damaged reading stays as it is, and `./snaplore check` names it.
"""

import logging
import zlib
from pathlib import Path

import msgspec

log = logging.getLogger(__name__)

BATCH = 500
REPORTED_EVERY = 10_000
MAX_BYTES = 420_000
ENCODINGS = ("utf-8", "utf-16-be")

# Common words, by which the form before was shorter; the commonest last, because what is near the end takes
# the fewest bits.
_WORDS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_DICTIONARIES = tuple(_WORDS.encode(encoding) for encoding in ENCODINGS)


def unpacked(data):
    """The lines of a reading in the form before, each as text, confidence, left, top, right and bottom.
    Raises `ValueError`.
    """
    form, crc, body = data[0], data[1:5], data[5:]
    if form >= len(ENCODINGS) or crc != zlib.crc32(bytes([form]) + body).to_bytes(4, "big"):
        raise ValueError("damaged")
    numbers, place = varints(body, 0, 1)
    count = numbers[0]
    numbers, place = varints(body, place, 5 * count)
    signed = [-((number + 1) >> 1) if number & 1 else number >> 1 for number in numbers]
    columns = [signed[start : start + count] for start in range(0, 5 * count, count or 1)]
    unpacker = zlib.decompressobj(wbits=-15, zdict=_DICTIONARIES[form])
    texts = unpacker.decompress(body[place:], MAX_BYTES).decode(ENCODINGS[form]).split("\n") if count else []
    lines = []
    left = bottom = height = 0
    for text, step_left, step_top, step_height, width, doubt in zip(texts, *columns, strict=True):
        left, height, top = left + step_left, height + step_height, bottom + step_top
        bottom = top + height
        lines.append((text, round(1 - doubt / 100, 2), left, top, left + width, bottom))
    return lines


def varints(body, place, count):
    """The `count` varints from `place` on, and the place behind them. Raises `ValueError`."""
    numbers = []
    number = shift = 0
    while len(numbers) < count:
        if place >= len(body):
            raise ValueError("cut off")
        byte = body[place]
        number |= (byte & 0x7F) << shift
        shift += 7
        place += 1
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return numbers, place


def packed_anew(rows):
    """The rows of a batch as they are to be stored; without those that are damaged."""
    for photo_id, data in rows:
        try:
            yield zlib.compress(msgspec.msgpack.encode(unpacked(data))), photo_id
        except (ValueError, IndexError, zlib.error):
            log.error("the reading of photo %d is damaged, and stays as it is", photo_id)


def up(migrator, db):
    (total,) = db.execute_sql("SELECT count(*) FROM readings").fetchone()
    last = done = 0
    batch = "SELECT photo_id, lines FROM readings WHERE photo_id > ? ORDER BY photo_id LIMIT ?"
    while rows := db.execute_sql(batch, (last, BATCH)).fetchall():
        db.connection().executemany("UPDATE readings SET lines = ? WHERE photo_id = ?", packed_anew(rows))
        last, done = rows[-1][0], done + len(rows)
        if done % REPORTED_EVERY == 0:
            log.info("readings rewritten: %d of %d", done, total)
