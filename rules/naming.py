"""Which texts of a screen a person would put in its title: a vote that was learned from titles which people
wrote (`make train`).

Each block of text has measures: its size and its place, its part in a list or a conversation, the forms of
its words, and how good a heading the rules think it is (`rules/headings.py`). Each measure has ranges, and
each range a weight; they add up to the share of the block's words that a person's title is expected to have.
`naming.json` has the weights, the seed, and how well they did on apps that they did not learn from.
"""

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engines.lines import Line
from rules.headings import LONGEST, SITE, best_of, first_sentence, is_day, is_title, names_nothing, scores
from rules.kinds import MONEY
from rules.layout import Block, Layout, is_chinese, letters, plain, weight
from rules.lists import entries
from rules.names import without_count
from rules.ranges import Ranges
from rules.wordlists import is_interface

WEIGHTS = Path(__file__).with_name("naming.json")
LEAST = 2  # letters of a text that may be in a title
NONE, LAST = -1, 60  # of what is in no list; the highest number of a place
WORST = -9.0  # the score of what is no heading
# Words of a person's title that are on the screen, parts of a title, and those that are tried.
USUAL, MOST_PARTS, LOOKED_AT = 3, 2, 8
LARGER = 1.3  # times as high: a heading beside which "Read" or "Details" in the bar says nothing
MOST_TEXTS = 150  # of a page, from its beginning
MOST = 200  # characters of a text that are looked at
_WORD = re.compile(r"[^\W_\u2e80-\u9fff]+|[\u2e80-\u9fff]")
_COUNTED = re.compile(r"[^\w€$£¥₹]{0,9}\d")  # a count or a time before other words
_CLOCK = re.compile(r"\d[:：]\d\d")
_ENDS = ".!?。！？…"


class Weights(Ranges):
    """The share of an average block, for each measure where its ranges end and what each counts, and how well
    all did when they were trained.
    """

    seed: int
    figures: dict[str, Any]


class Part(NamedTuple):
    """A text, its lines, and the share of its words that a person's title is expected to have."""

    text: str
    lines: tuple[Line, ...]
    share: float


def parts(layout: Layout, kind: str, app: str) -> list[Part]:
    """The texts of a screen that may be in its title, the best first; of a dialog in front, only its own."""
    layout, weights, found = layout.main, _weights(WEIGHTS), []
    in_front = {id(line) for row in layout.dialog for line in row.lines}
    for block, text, measured in measures(layout, kind, app):
        is_behind = in_front and id(block.lines[0]) not in in_front
        if is_behind or not measured["may be a title"] or "@" in text or _COUNTED.match(text):
            continue
        share = weights.total(measured)
        found.append(Part(first_sentence(without_count(text), LONGEST), block.lines, share))
    return sorted(found, key=lambda part: -part.share)


def chosen(found: Iterable[Part]) -> list[Part]:
    """Those of the best parts that a title is expected to gain by, at most `MOST_PARTS`, as they are read; a
    larger heading alone, without the name of a kind of screen.

    What is expected is the harmonic mean of the shares of words that a title has of a person's, and a
    person's of it.
    """
    taken: list[Part] = []
    known: set[str] = set()
    hits = best = 0.0
    for part in itertools.islice(found, LOOKED_AT):
        new = set(_WORD.findall(part.text.casefold())) - known
        expected = 2 * (hits + part.share * len(new)) / (USUAL + len(known) + len(new))
        if new and (expected > best or not taken) and len(taken) < MOST_PARTS:
            taken.append(part)
            known |= new
            hits, best = hits + part.share * len(new), expected
    taken.sort(key=lambda part: (part.lines[0].top, part.lines[0].left))
    named = [part for part in taken if not names_nothing(part.text)]
    is_larger = len(named) == 1 < len(taken) and all(
        _height(named[0]) >= LARGER * _height(part) for part in taken if part is not named[0]
    )
    return named if is_larger else taken


def _height(part: Part) -> int:
    return max(line.height for line in part.lines)


def measures(layout: Layout, kind: str, app: str) -> Iterator[tuple[Block, str, dict[str, float]]]:
    """The blocks of a screen, each with its text and its measures by names."""
    scored = list(scores(layout, kind))
    places = _Places(layout, kind, scored)
    named = best_of(scored, layout, app)
    heads = {id(line) for line in named.lines} if named else set()
    blocks = layout.blocks[:MOST_TEXTS]
    folded = [plain(block.text).casefold() for block in blocks]
    times = Counter(folded)
    for at, block in enumerate(blocks):
        text = plain(block.text)
        if weight(text) >= LEAST:
            of_screen = {
                "heading": float(id(block.lines[0]) in heads),
                "certainty": min(line.confidence for line in block.lines),
                "times on the screen": times[folded[at]],
                "inside others": sum(folded[at] in one for one in folded),
                "names the app": float(bool(app) and app.casefold() in folded[at]),
            }
            yield block, text, {**places.of(at, block), **_of_text(text), **of_screen}


class _Places:
    """Where the blocks of a screen are, and what they are there: each dictionary is by the id of a line."""

    def __init__(self, layout: Layout, kind: str, scored: Sequence[tuple[Block, float]]):
        self._layout = layout
        self._headers = {id(line): at for at, line in enumerate(layout.headers)}
        ranked = sorted(scored, key=lambda one: -one[1])
        self._ranks = {id(block.lines[0]): (at, score) for at, (block, score) in enumerate(ranked)}
        self._listed: dict[int, tuple[int, int]] = {}
        for at, entry in enumerate(entries(layout, kind)):
            for part, line in enumerate(entry.lines):
                self._listed.setdefault(id(line), (at, part))
        self._rows = {id(line): row for row in layout.rows for line in row.lines}
        self._sides: dict[int, float] = {}
        for side, blocks in enumerate(layout.bubbles, 1):
            self._sides.update({id(block.lines[0]): side for block in blocks})
        self._tallest = sorted({round(block.height) for block in layout.blocks}, reverse=True)

    def of(self, at: int, block: Block) -> dict[str, float]:
        """The measures of a block, which is the one with this number."""
        layout, line = self._layout, block.lines[0]
        row, navigation = self._rows.get(id(line)), layout.navigation
        rank, score = self._ranks.get(id(line), (LAST, WORST))
        entry, part = self._listed.get(id(line), (NONE, NONE))
        return {
            "size": math.log2(max(0.1, block.height / max(1, layout.median))),
            "larger sizes": self._tallest.index(round(block.height)),
            "place from the top": (block.top - layout.top) / max(1, layout.height),
            "texts before it": min(at, LAST),
            "texts behind it": min(len(layout.blocks) - at, LAST),
            "header": self._headers.get(id(line), LAST),
            "as a heading": score,
            "better headings": rank,
            "entry": entry,
            "part of an entry": part,
            "in its row": len(row.lines) if row else 0,
            "first in its row": float(row is not None and row.first is line),
            "left edge": block.left / layout.width,
            "right edge": block.right / layout.width,
            "off the middle": abs(block.left + block.right - layout.width) / layout.width,
            "lines": len(block.lines),
            "navigation": float(navigation is not None and line in navigation.lines),
            "field": float(line is layout.composer),
            "side of a conversation": self._sides.get(id(line), 0),
        }


def _of_text(text: str) -> dict[str, float]:
    """The measures of a text: its length, and the forms of its words."""
    words = text.split()
    return {
        "words": len(words),
        "length": weight(text),
        "letters": letters(text),
        "interface": float(is_interface(text)),
        "kind of screen": float(names_nothing(text)),
        "may be a title": float(is_title(text, LEAST)),
        "day": float(is_day(text)),
        "clock": float(_CLOCK.search(text[:MOST]) is not None),
        "money": float(MONEY.search(text[:MOST]) is not None),
        "digits": float(any(map(str.isdigit, text))),
        "end of a sentence": float(text[-1:] in _ENDS),
        "capitals": float(text.isupper()),
        "small letter": float(text[:1].islower()),
        "large letters": sum(word[:1].isupper() for word in words) / max(1, len(words)),
        "Chinese": float(is_chinese(text[:1])),
        "address": float("@" in text or SITE.search(text[:MOST]) is not None),
    }


@functools.cache
def _weights(path: Path) -> Weights:
    return msgspec.json.decode(path.read_bytes(), type=Weights)
