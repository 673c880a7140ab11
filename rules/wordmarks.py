"""Which text of a screen is the name of its app: a vote that was learned from labelled screenshots (`make
train`).

A wrong name would show up in searches for that app. Each text that may be one has measures: its place and
size, the forms of its words, whether lists of apps or of labels have it, and what is beside it. Each measure
has ranges, and each range a weight; they add up to how likely it is that the text names the app. What is
likely but not sure becomes sure where other screenshots of the library have it, too (`supported`): an app
writes its name on many of its screens. `wordmarks.json` has the weights, the seed, and how well they did on
apps that they did not learn from.
"""

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from engines.findings import Wordmark
from engines.lines import Line
from rules import apps, names, wordlists
from rules.kinds import headed, is_lock_screen
from rules.layout import Layout, is_chinese, is_clock, plain, weight
from rules.ranges import Ranges

WEIGHTS = Path(__file__).with_name("wordmarks.json")
SURE = 0.65  # chance from which on a text is taken for the app's name
KEPT, LEAST_CHANCE = 5, 0.02  # names of a screen that other screens may make sure
MOST_LINES = 150  # of a page, from its beginning
MOST_OF_LINE, MOST_BESIDE = 120, 200  # characters that are looked at
LEAST, LONGEST, MOST_WORDS = 2, 30, 4  # letters and words of a name
HEAD, EDGE, CENTRED = 0.12, 0.15, 0.08  # of the height: a bar or the head of a page; of the width
WIDE = 1.15  # times the height: a page, or the window of a program
LAST, MOST_SIZES, NONE = 15, 6, -1  # the highest numbers of places; of what has no words
READ = 0.85  # certainty of reading from which on a header may be a name
FEW_LINES = 16  # of a screen on which the header of a notification is no person in a feed
# Numbers of kinds of screens, as the weights know them.
_KINDS = (
    "", "article", "page", "conversation", "conversations", "post", "profile", "video", "settings", "mail",
    "accounts", "shop", "payment", "notices", "home_screen", "lock_screen", "note", "source", "map",
    "calendar", "tasks", "weather",
)  # fmt: skip
# Such screens are headed by a person or a thing, who are on other screenshots, too.
OF_OTHERS = frozenset(["conversation", "post", "profile", "video", "article"])
_DASH = re.compile(r" [-–—|·] ")
_DOT = re.compile(r" ?[·•・∙] ?")
_HOST = re.compile(r"(?<![\w.-])(?:[\w-]{1,40}\.){0,3}([\w-]{3,40})\.[a-z]{2,6}(?![\w-])", re.IGNORECASE)


class Joint(msgspec.Struct):
    """What counts for a name on a screen of which other screens of the library have it, too: how sure it is
    on this one, how much surer than `FAINT` on the best of the others, that there are several of them, and
    that this one is of a kind that is headed by others.
    """

    start: float
    own: float
    best: float
    several: float
    headed: float


class Weights(Ranges):
    """What a text and its place count, what other screens do, and how well all did when trained."""

    joint: Joint
    seed: int
    figures: dict[str, Any]


FAINT = -4.0  # logarithm of the odds


class _Candidate(NamedTuple):
    name: str
    line: Line
    how: str


def app_name(layout: Layout, kind: str, file_name: str, marks: Sequence[Wordmark], language: str) -> str:
    """The app where something names it, else "": the file's name, the headers of notifications, the name of a
    well-known app as a header, or the likeliest of `marks`. An app with a Chinese name has it where
    `language` is "zh".
    """
    found = names.in_file_name(file_name)
    if not found and kind in ("notices", "lock_screen"):
        found = _notified(layout)
    if not found and kind != "home_screen" and kind not in OF_OTHERS:
        found = _known(layout)
    if not found and marks and marks[0].chance >= SURE:
        found = marks[0].name
    return apps.names_of(found)[language == "zh"] or found


def marks(layout: Layout, kind: str) -> list[Wordmark]:
    """The texts of a screen that may be the name of its app, the likeliest first; none on a home screen,
    which has those of others.
    """
    if kind in ("home_screen", "lock_screen"):
        return []
    weights = _weights(WEIGHTS)
    found = []
    for name, measured in measures(layout, kind):
        if (chance := _chance(weights.total(measured))) >= LEAST_CHANCE:
            found.append(Wordmark(name, chance))
    return sorted(found, key=lambda mark: -mark.chance)[:KEPT]


def together(marks: Sequence[Wordmark], others: Callable[[str], Sequence[float]], kind: str) -> str:
    """The likeliest of a screen's names, where that is sure; "" where none is. `others` has the chances of a
    name, by its letters, on the other screens of the library, the highest first.
    """
    chances = {name: supported(chance, others(folded(name)), kind) for name, chance in marks}
    best = max(chances, key=lambda name: chances[name], default="")
    return best if chances.get(best, 0.0) >= SURE else ""


def supported(chance: float, others: Sequence[float], kind: str) -> float:
    """How likely a name is whose chance on its own screen of this kind is `chance`, and on the best of the
    other screens of the library that have it `others`, the highest first.
    """
    if not others:
        return chance
    joint = _weights(WEIGHTS).joint
    total = joint.start + joint.own * odds(chance) + joint.best * (odds(others[0]) - FAINT)
    return _chance(total + joint.several * (len(others) > 1) + joint.headed * (kind in OF_OTHERS))


def odds(chance: float) -> float:
    """The logarithm of the odds of a chance, which is kept from being sure."""
    return math.log((chance + 1e-3) / (1 - chance + 1e-3))


def _chance(total: float) -> float:
    return 1 / (1 + math.exp(-total))


def folded(name: str) -> str:
    """A name as names are compared: its letters and digits."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _notified(layout: Layout) -> str:
    """The app in the headers of notifications, if all name the same."""
    headers = filter(None, (headed(line.text) for line in layout.all_lines))
    senders = {_DOT.split(plain(header))[0].strip(" .…") for header in headers}
    if len(senders) != 1:
        return ""
    (sender,) = senders
    # In a feed, "Anna · 5m" is a person: a header of notifications is on a short or locked screen.
    return sender if is_lock_screen(layout) or len(layout.lines) <= FEW_LINES else ""


def _known(layout: Layout) -> str:
    """The well-known app that the header names. A name of everyday words ("Signal", "Photos") is more often a
    heading: it needs a second place.
    """
    line = layout.header
    name = names.without_count(plain(line.text)) if line else ""
    if line is None or line.confidence < READ or not apps.names_of(name)[0]:
        return ""
    is_everyday, places = names.is_everyday(name), sum(name in one.text for one in layout.all_lines)
    return name if id(line) not in _beside_clock(layout) and (not is_everyday or places > 1) else ""


def _beside_clock(layout: Layout) -> set[int]:
    """The lines at the very top beside a clock, by their ids: the way back to another app, or who carries the
    network.
    """
    rows = [row for row in layout.rows[:2] if any(is_clock(line.text) for line in row.lines)]
    return {id(line) for row in rows for line in row.lines}


def measures(layout: Layout, kind: str) -> Iterator[tuple[str, dict[str, float]]]:
    """The texts of a screen that may be a name, each with its measures by names."""
    places = _Places(layout, kind)
    for several in _candidates(layout).values():
        name, line, _ = several[0]
        yield name, {**places.of(line), **_of_text(name), **places.of_name(several)}


def _candidates(layout: Layout) -> dict[str, list[_Candidate]]:
    """The texts that may be a name by their letters, each as often as it is on the screen."""
    several: dict[str, list[_Candidate]] = {}
    clock = _beside_clock(layout)
    for line in layout.all_lines[:MOST_LINES]:
        if id(line) in clock:
            continue
        for how, name in _names_in(line.text[:MOST_OF_LINE]):
            key = folded(name)
            is_short = LEAST <= weight(name) <= LONGEST and len(name.split()) <= MOST_WORDS
            if is_short and len(key) >= LEAST and not key.isdigit() and not is_clock(name):
                several.setdefault(key, []).append(_Candidate(name, line, how))
    return several


def _names_in(text: str) -> Iterator[tuple[str, str]]:
    """The names that a line may have, and how it has them."""
    yield "whole", names.without_count(names.without_version(text)).strip(" :|·•<>")
    parts = _DASH.split(plain(text))
    if len(parts) > 1:
        yield "last", parts[-1].strip()
    yield "phrase", names.without_version(names.in_phrase(text))
    yield "version", names.versioned(text)


class _Places:
    """Where the lines of a screen are, and what is beside them."""

    def __init__(self, layout: Layout, kind: str):
        self._layout = layout
        self._kind = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
        self._rows = {id(line): (at, row) for at, row in enumerate(layout.rows) for line in row.lines}
        self._headers = {id(line): at for at, line in enumerate(layout.headers)}
        tall = sorted({self._size(line) for line in layout.lines}, reverse=True)
        self._sizes = {size: at for at, size in enumerate(tall[:MOST_SIZES])}
        content = " ".join(line.text[:MOST_OF_LINE] for line in layout.all_lines[:MOST_LINES])
        self._hosts = {folded(host) for host in _HOST.findall(content)}

    def _size(self, line: Line) -> float:
        return round(line.height / max(1, self._layout.median), 1)

    def of(self, line: Line) -> dict[str, float]:
        """The measures of a line by its place."""
        layout = self._layout
        at, row = self._rows.get(id(line), (LAST, None))
        top = (line.top - layout.top) / max(1, min(layout.height, 2 * layout.width))
        off = abs(line.left + line.right - layout.width) / layout.width
        corner = 1 + (line.left < EDGE * layout.width) + 2 * (off < CENTRED) if top < HEAD else 0
        return {
            "place from the top": top,
            "left edge": line.left / layout.width,
            "off the middle": off,
            "corner": corner,
            "size": self._size(line),
            "larger sizes": self._sizes.get(self._size(line), MOST_SIZES),
            "certainty": line.confidence,
            "shape": (layout.top > 0) + 2 * (layout.width > WIDE * layout.height),
            "rows before it": min(at, LAST),
            "in its row": len(row.lines) if row else 0,
            "first in its row": float(row is not None and row.first is line),
            "labels beside it": self._labels(at, line),
            "labels below it": self._labels(at + 1, line),
            "header": self._headers.get(id(line), LAST),
            "lines": len(layout.all_lines),
            "kind": self._kind,
            "kind, in the head": self._kind + 1 if top < HEAD else 0,
        }

    def _labels(self, at: int, line: Line) -> float:
        """The share of the words in a row beside a line that labels of many apps have."""
        row = self._layout.rows[at].lines if at < len(self._layout.rows) else ()
        beside = " ".join(other.text[:MOST_OF_LINE] for other in row if other is not line)
        words = [word for word in re.split(r"[\W\d_]+", beside[:MOST_BESIDE]) if len(word) > 1]
        return sum(map(names.is_common, words)) / len(words) if words else NONE

    def of_name(self, several: Sequence[_Candidate]) -> dict[str, float]:
        """The measures of a name by all places that it has."""
        name, hows = several[0].name, {one.how for one in several}
        reach = self._layout.top + HEAD * self._layout.height
        listed = 2.0 if apps.names_of(name)[0] else float(bool(apps.more_of(name)[0]))
        return {
            "times": len({id(one.line) for one in several}),
            "listed": listed,
            "listed, in the head": listed * (1 + any(one.line.top < reach for one in several)),
            "host": float(folded(name) in self._hosts),
            **{how: float(how in hows) for how in ("whole", "last", "phrase", "version")},
        }


def _of_text(name: str) -> dict[str, float]:
    """The measures of a name by its letters."""
    words = name.split()
    return {
        "length": weight(name),
        "words": len(words),
        "large letters": sum(word[:1].isupper() for word in words) / max(1, len(words)),
        "capitals": float(name.isupper()),
        "coined": float(names.is_coined(name)),
        "product": float(names.is_product(name)),
        "words of labels": names.is_common(name) + 2 * names.is_everyday(name),
        "interface": float(wordlists.is_interface(name)),
        "Chinese": float(is_chinese(name[:1])),
        "letters only": float(name.replace(" ", "").isalpha()),
        "digits": sum(map(str.isdigit, name)) / max(1, len(name)),
    }


@functools.cache
def _weights(path: Path) -> Weights:
    return msgspec.json.decode(path.read_bytes(), type=Weights)
