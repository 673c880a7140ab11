"""The category of a screen and the type of its record, by votes that were learned from labelled screenshots
(`make train`).

Three things vote: the measures of the layout (bubbles on both sides, amounts or times at the right, running
text, tabs), what the rules found for each kind of screen (`rules/kinds.py`), and the vector of the text where
this machine can make one; for the type, that of the head alone, too. A linear model adds them up, so each
vote can be read in `vote.json` and `types.json`. The files have the seed and how well the weights did on apps
that they did not learn from; `vote.json` has two sets of them, with and without the vector. Without one, no
type is voted for: the measures alone are not surer than the makers of the records.

The category decides between kinds; the kind is the one of that category with the most evidence. The type
decides which reader of a whole screen (`rules/recorder.py`) makes its record.
"""

import array
import functools
import itertools
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rules import kinds
from rules.entities import CLOCK, MONTH
from rules.kinds import Verdict
from rules.layout import Layout, is_chinese, is_clock, letters, weight

WEIGHTS = Path(__file__).with_name("vote.json")
TYPES = Path(__file__).with_name("types.json")
SCALE = 4.0  # evidence of a kind that counts as one
HEADS, MOST_OF_HEADING = 2, 80  # lines of a screen's head; characters of its largest text
KNOWN = 1.0  # evidence from which on a kind is named, where the vote decided for its category

_SPOKEN = ("conversation", "conversations")
# Of the width: between the left edges of times below messages of both sides; how far a time in the middle is
# from there, twice.
SPREAD, CENTRED = 0.1, 0.08
# A time, or a day and a time, with hardly a word before it.
_STAMP = re.compile(
    r"(?:[^\d\s]{1,20} )?\W{0,3}"
    rf"(?:{kinds.AGO}|[\d\W]{{0,12}}(?:{MONTH})?[\d\W]{{0,10}}{CLOCK}(?:[:：]\d\d)?(?: ?[ap]m)?)\W{{0,4}}",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\d{1,4}(?:[.,]\d)?[kKmM万]?")
_DECIMAL = re.compile(r"\d[.,]\d\d(?!\d)")
_LINK = re.compile(
    r"https?://|www\.|(?<![\w-])[\w-]{2,63}\.(?:com|org|net|io|cn|de|dev|app)\b", re.IGNORECASE
)


class Weights(msgspec.Struct):
    """A set of weights: for each category its start, for each measure a weight for each category, and those
    of the vector's places (none in the set without it), with how well it did when it was trained.
    """

    start: list[float]
    measures: dict[str, list[float]]
    vector: list[list[float]]
    figures: dict[str, Any]


class Model(msgspec.Struct):
    """What `vote.json` and `types.json` hold: what is voted for in the order of all weights, the sets, and
    the seed. Of types, there are those of whole screens, and the categories of screens without such a record.
    """

    choices: list[str]
    seed: int
    with_vector: Weights
    without: Weights = msgspec.field(default_factory=lambda: Weights([], {}, [], {}))


def recognise(layout: Layout, sense: Callable[[str], bytes] | None = None) -> Verdict:
    """The kind and the category of a screen. `sense` makes the vector of a text in bytes, b"" where this
    machine cannot.
    """
    evidence = kinds.evidence(layout)
    if not layout.all_lines:
        return kinds.by_rules(evidence)
    vector = sense(layout.content) if sense else b""
    measured = measures(layout, evidence)
    chances = shares(WEIGHTS, measured, unit(vector))
    if not vector and not _is_spoken(layout, evidence):
        chances["chat"] = 0.0
    category = max(chances, key=lambda name: chances[name])
    of_category = {kind: amount for kind, amount in evidence.items() if kinds.CATEGORY[kind] == category}
    kind = max(of_category, key=lambda kind: of_category[kind], default="")
    amount = of_category.get(kind, 0.0)
    if amount < (kinds.ENOUGH if category == "other" else KNOWN):
        kind = kinds.USUAL.get(category, "")
    if category == "chat" and kind in ("", *_SPOKEN):
        kind = _SPOKEN[_is_list(layout)]
    types = shares(TYPES, measured, [*unit(vector), *unit(sense(head(layout)))]) if vector and sense else {}
    return Verdict(kind, amount, category, round(chances[category], 3), types)


def head(layout: Layout) -> str:
    """The texts at the top, which name a screen, and the largest one."""
    lines = layout.headers[:HEADS] or [row.first for row in layout.rows[:HEADS]]
    large = [layout.heading.text[:MOST_OF_HEADING]] if layout.heading else []
    return "\n".join([*(line.text for line in lines), *large])


def _is_spoken(layout: Layout, evidence: Mapping[str, float]) -> bool:
    """Whether a word or a bubble speaks for a conversation: lines of text alone do not, unless their meaning
    does.
    """
    return any(layout.bubbles) or any(evidence.get(kind) for kind in _SPOKEN)


def _is_list(layout: Layout) -> bool:
    """Whether a screen of a messenger lists chats: it has no field for a message, not both sides of a
    conversation, and is not mostly sentences.
    """
    left, right = layout.bubbles
    right = [block for block in right if not kinds.WHEN_RIGHT.fullmatch(block.text.strip())]
    if layout.composer is not None:
        return False
    listed = len(layout.values(kinds.WHEN_RIGHT))
    if listed >= 3 or (listed == 2 and not right):
        return True
    if _is_stamped(layout):
        return False
    texts = [line.text for line in layout.lines if weight(line.text) >= 3]
    running = sum(len(text.split()) >= 3 or text.rstrip()[-1:] in "?!？！。" for text in texts)
    sides = left and right and len(left) + len(right) >= 3
    return not sides and (len(left) < 3 or 3 * running <= 2 * len(texts))


def _is_stamped(layout: Layout) -> bool:
    """Whether there are times alone in their rows, as above or below messages: not all at one left edge, as
    the entries of a list have them, or at the right or in the middle.
    """
    stamps = [row.first for row in layout.rows if len(row.lines) == 1 and _STAMP.fullmatch(row.first.text)]
    spread = max((one.left for one in stamps), default=0) - min((one.left for one in stamps), default=0)
    centred = sum(abs(one.left + one.right - layout.width) < CENTRED * layout.width for one in stamps)
    beside = all(one.left > layout.width / 2 for one in stamps)
    return len(stamps) >= 3 and (spread > SPREAD * layout.width or beside or centred == len(stamps))


def shares(path: Path, measured: Mapping[str, float], vector: Sequence[float]) -> dict[str, float]:
    """How likely each choice is, by the weights in a file; all together are 1. `vector` is empty where this
    machine makes none.
    """
    model = _model(path)
    weights = model.with_vector if vector else model.without
    found = list(weights.start)
    columns = ((value, weights.measures.get(name, ())) for name, value in measured.items() if value)
    for value, column in itertools.chain(columns, zip(vector, weights.vector, strict=False)):
        for place, each in enumerate(column):
            found[place] += value * each
    most = max(found)
    powers = [math.exp(one - most) for one in found]
    return {name: power / sum(powers) for name, power in zip(model.choices, powers, strict=True)}


def unit(vector: bytes) -> list[float]:
    """A vector of signed bytes with the length 1, empty where there is none."""
    values = array.array("b", vector)
    length = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / length for value in values]


def measures(layout: Layout, evidence: Mapping[str, float]) -> dict[str, float]:
    """All that votes beside the vector, by names, most of it between 0 and 1."""
    found = {**_of_places(layout), **_of_texts(layout)}
    best = kinds.by_rules(evidence).category
    for kind, amount in evidence.items():
        found[f"kind {kind}"] = amount / SCALE
        name = f"category {kinds.CATEGORY[kind]}"
        found[name] = max(found.get(name, 0.0), amount / SCALE)
    found[f"rules {best}"] = 1.0
    return found


def _of_places(layout: Layout) -> dict[str, float]:
    """Where the lines are, and how large."""
    lines, rows = layout.lines, layout.rows
    width, height, count = layout.width, layout.height, max(1, len(layout.lines))
    left, right = ([one for one in side if weight(one.text) >= 6] for side in layout.bubbles)
    said = len(left) + len(right)
    long = [weight(block.text) for block in layout.paragraphs]
    gaps = [below.first.top - above.first.bottom for above, below in itertools.pairwise(rows)]
    edges = [line.left / width for line in lines] or [0.0]
    heights = [line.height / max(1, layout.median) for line in lines] or [0.0]
    last = max(lines, key=lambda line: line.bottom, default=None)
    types = last is not None and not layout.navigation and last.top > 0.85 * height
    return {
        "lines": _part(count, 60),
        "wide": float(width > height),
        "tall": _part(height / width, 3),
        "bubbles at the left": _part(len(left), 6),
        "bubbles at the right": _part(len(right), 6),
        "bubbles on both sides": float(bool(left and right and said >= 3)),
        "share of bubbles at the right": len(right) / max(1, said),
        "paragraphs": _part(len(long), 6),
        "running text": _part(sum(long), 2000),
        "longest paragraph": _part(max(long, default=0), 600),
        "heading": float(layout.heading is not None),
        "navigation": float(layout.navigation is not None),
        "menu at the left": float(bool(layout.sidebar)),
        "entries": _part(len(layout.entries), 12),
        "status bar": float(layout.top > 0 and not layout.caption),
        "caption": float(bool(layout.caption)),
        "rows of two": sum(len(row.lines) >= 2 for row in rows) / max(1, len(rows)),
        "rows of three": sum(len(row.lines) >= 3 for row in rows) / max(1, len(rows)),
        "space between rows": _part(statistics.median(gaps or [0]) / max(1, layout.median), 3),
        "indented as beside pictures": sum(0.13 < edge < 0.26 for edge in edges) / count,
        "same left edge": 1 - _part(statistics.pstdev(edges), 0.33),
        "sizes differ": _part(statistics.pstdev(heights), 1),
        "largest": _part(max(heights), 5),
        "field at the bottom": float(types and last.left < 0.3 * width and len(last.text) < 32),  # type: ignore[union-attr]
        "size of letters": _part(layout.median / min(width, height), 0.05),
    }  # fmt: skip


def _of_texts(layout: Layout) -> dict[str, float]:
    """What forms the texts have."""
    texts = [line.text.strip() for line in layout.lines]
    count = max(1, len(texts))

    def matching(pattern: re.Pattern[str], most: int) -> float:
        return _part(sum(pattern.search(text) is not None for text in texts), most)

    def ending(signs: tuple[str, ...], most: int) -> float:
        return _part(sum(text.endswith(signs) for text in texts), most)

    return {
        "digits": 1 - letters("".join(texts)) if texts else 0.0,
        "Chinese": sum(any(map(is_chinese, text)) for text in texts) / count,
        "handles": matching(kinds.HANDLE, 4),
        "hashtags": matching(kinds.HASHTAG, 4),
        "links": matching(_LINK, 4),
        "counts": _part(sum(_COUNT.fullmatch(text) is not None for text in texts), 10),
        "decimals": matching(_DECIMAL, 8),
        "clocks": _part(sum(map(is_clock, texts)), 8),
        "amounts at the right": _part(len(layout.values(kinds.AMOUNT_RIGHT)), 6),
        "money": matching(kinds.MONEY, 8),
        "times at the right": _part(len(layout.values(kinds.WHEN_RIGHT)), 6),
        "times alone": _part(sum(kinds.WHEN_RIGHT.fullmatch(text) is not None for text in texts), 8),
        "questions": ending(("?", "？"), 4),
        "exclamations": ending(("!", "！"), 4),
        "ends of sentences": ending((".", "?", "!", "。", "？", "！"), count),
        "length": _part(statistics.fmean(map(len, texts)) if texts else 0, 60),
        "short": sum(len(text) <= 12 for text in texts) / count,
    }


def _part(amount: float, most: float) -> float:
    return min(1.0, amount / most)


@functools.cache
def _model(path: Path) -> Model:
    return msgspec.json.decode(path.read_bytes(), type=Model)


def columns(weights: Sequence[Sequence[float]]) -> list[list[float]]:
    """Weights as they are stored: four digits, which no vote notices."""
    return [[float(f"{each:.4g}") for each in column] for column in weights]
