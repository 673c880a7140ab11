"""Whether two screenshots show the same screen: near-duplicates, by their perceptual hash and their words.

The words decide. A screen that was taken twice has the same lines in the same places, or, where it was
scrolled, some of them moved by the same distance. So lines are matched by their text and place. What is left
on either side must have come into view, or gone out of it, at the edge of what moved, or be noise of the text
recognition. Two lines at the same place that are read surely and differ make different screens, however much
else is the same: it may be the amount of a payment, or the name in a chat. The status bar is ignored.

The hash rules out pictures that have the same words and look different, and it costs much less to compare, so
that only a few readings have to be looked at.

`python -m benchmarks.likeness` measures precision and recall.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

import terms
from engines.lines import Line, Page
from rules import screen

# The hash. A scrolled screen has rows that moved and, under its fixed bars, rows that did not, so a row is
# compared with both.
MOST_MOVED_ROWS = 6
MOST_DIFFERENT = 0.5
LEAST_BITS = 12  # as many are taken as set, so that a few do not decide about a picture that is all flat

# The words. Distances are parts of the picture's width, so that copies of other sizes are comparable.
MOST_LINES = 400  # of a page; one with more is like no other
MOST_MOVED = 0.3  # of the width: further scrolled, it is another part of the page
LEAST_LETTERS = 12  # of the lines that are the same, in all
LEAST_SHARE = 0.6  # of all letters on either page
PLACE = 0.6  # of the height of a line, by which its place may differ
ASIDE = 0.04  # of the width, likewise to either side
STEP = 0.01  # of the width, by which lines that moved together may differ
LEAST_MOVING = 0.2  # of the lines: fewer have not moved because the screen was scrolled
BAR = 0.18  # of the height, at the top and the bottom, where lines do not move with the others
REACH = 0.25  # of the width, besides the movement: how far from the others a line may go out of view
MOST_NOISE = 0.06  # of all letters: lines that were read on one of the pictures only
SHORT_NOISE = 3  # letters of a misread icon; a Chinese character counts as two
SURE = 0.96  # confidence above which the text recognition was right
DOUBTFUL = 0.85  # below, it may have read an icon
LONG = 24  # letters of a line, of which one may be misread though the text recognition is sure
LEAST_BESIDE = 4  # letters of a text beside which an icon may have been read
DISSIMILAR = 0.2  # of the letters of a line, or one letter


class Likeness(NamedTuple):
    """`alike`: the same screen. `same_words`: so nearly that what is known about one holds for the other."""

    alike: bool
    same_words: bool


DIFFERENT = Likeness(False, False)


def near(first: bytes | None, second: bytes | None) -> bool:
    """Whether two perceptual hashes (`pictures.perceptual_hash`) may be those of the same screen. None is
    like no other.
    """
    return distance(first, second) <= MOST_DIFFERENT


def distance(first: bytes | None, second: bytes | None) -> float:
    """How different two perceptual hashes are after the best movement: the bits that differ, as a share of
    those that are set in either, from 0 to 1. Most pictures are mostly flat, and unset bits say little.
    """
    if not first or not second or abs(len(first) - len(second)) > MOST_MOVED_ROWS:
        return 1.0
    return min(_distance(first, second, moved) for moved in range(-MOST_MOVED_ROWS, MOST_MOVED_ROWS + 1))


def compare(first: Page, second: Page) -> Likeness:
    """Whether the lines on two pictures are those of the same screen."""
    if max(len(first.lines), len(second.lines)) > MOST_LINES:
        return DIFFERENT
    one, two = _content(first), _content(second)
    letters = max(_letters(one), _letters(two))
    moved = _moved(one, two)
    pairs = _matched(one, two, moved)
    same = sum(_weight(one[at].key) for at in pairs)
    if same < max(LEAST_LETTERS, LEAST_SHARE * letters):
        return DIFFERENT
    lost = [line for at, line in enumerate(one) if at not in pairs]
    found = set(pairs.values())
    gained = [line for at, line in enumerate(two) if at not in found]
    if moved:
        bars = BAR * min(first.height / max(1, first.width), second.height / max(1, second.width))
        lost, gained = _inside(one, two, pairs, lost, gained, moved, bars)
    rest = _differences(lost, gained, moved)
    if rest is None or rest > MOST_NOISE * letters:
        return DIFFERENT
    unmatched = [line for at, line in enumerate(one) if at not in pairs]
    unmatched += [line for at, line in enumerate(two) if at not in found]
    said = (line for line in unmatched if _weight(line.key) > SHORT_NOISE or _digits(line.key))
    return Likeness(True, next(said, None) is None)


def _distance(first: bytes, second: bytes, moved: int) -> float:
    different = either = 0
    for at, row in enumerate(first):
        if not 0 <= at + moved < len(second):
            continue
        other = second[at + moved]
        if at < len(second) and (row ^ second[at]).bit_count() < (row ^ other).bit_count():
            other = second[at]  # of a bar that does not move
        different += (row ^ other).bit_count()
        either += (row | other).bit_count()
    return different / max(either, LEAST_BITS)


class _Placed(NamedTuple):
    """A line: what is compared of its text, and its place in widths of the picture."""

    key: str
    left: float
    right: float
    top: float
    bottom: float
    confidence: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        return self.bottom - self.top


def _content(page: Page) -> list[_Placed]:
    bar = screen.status_bar(page)
    placed = (_placed(line, max(1, page.width)) for at, line in enumerate(page.lines) if at not in bar)
    return [line for line in placed if line.key]


def _placed(line: Line, width: int) -> _Placed:
    sides = (line.left / width, line.right / width, line.top / width, line.bottom / width)
    return _Placed(_key(line.text), *sides, line.confidence)


def _key(text: str) -> str:
    """The letters and digits, and of the signs those that change a number."""
    folded = terms.fold(text[:1000]).casefold()
    kept = []
    for at, character in enumerate(folded):
        if character.isalnum():
            kept.append(character)
        elif character in ".,:-+−" and folded[at + 1 : at + 2].isdigit():
            before = folded[at - 1 : at].isdigit()
            if before and character in ".,:":
                kept.append(".")
            elif not before and character in "-−+":
                kept.append("+" if character == "+" else "-")
    return "".join(kept)


def _letters(lines: Sequence[_Placed]) -> int:
    return sum(_weight(line.key) for line in lines)


def _moved(one: Sequence[_Placed], two: Sequence[_Placed]) -> float:
    """By how much the lines that moved did, in widths; 0 when nothing has."""
    places: dict[str, list[float]] = defaultdict(list)
    for line in two:
        places[line.key].append(line.middle)
    once: dict[str, int] = defaultdict(int)
    for line in one:
        once[line.key] += 1
    steps = sorted(
        step
        for line in one
        if once[line.key] == 1 and len(places[line.key]) == 1 and _weight(line.key) > SHORT_NOISE
        for step in (places[line.key][0] - line.middle,)
        if abs(step) <= MOST_MOVED
    )
    found = len(steps)
    steps = [step for step in steps if abs(step) > STEP / 2]
    best: list[float] = []
    start = 0
    for end, step in enumerate(steps):
        while step - steps[start] > STEP:
            start += 1
        if end - start + 1 > len(best):
            best = steps[start : end + 1]
    return best[len(best) // 2] if len(best) >= max(2, LEAST_MOVING * found) else 0.0


def _matched(one: Sequence[_Placed], two: Sequence[_Placed], moved: float) -> dict[int, int]:
    """The index of a line in `two` for each in `one` that has the same text and place."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(two):
        by_key[line.key].append(at)
    pairs = {}
    for at, line in enumerate(one):
        there = by_key[line.key]
        for other in there:
            if _same_place(line, two[other], moved):
                pairs[at] = other
                there.remove(other)
                break
    return pairs


def _same_place(line: _Placed, other: _Placed, moved: float) -> bool:
    aside = min(abs(other.left - line.left), abs(other.right - line.right))
    return aside <= ASIDE and (_level(line, other, 0.0) or _level(line, other, moved))


def _level(line: _Placed, other: _Placed, moved: float) -> bool:
    """Whether `other` is in the row of `line` after a movement."""
    return abs(other.middle - line.middle - moved) <= PLACE * max(line.height, other.height)


def _inside(
    one: Sequence[_Placed],
    two: Sequence[_Placed],
    pairs: dict[int, int],
    lost: list[_Placed],
    gained: list[_Placed],
    moved: float,
    bars: float,
) -> tuple[list[_Placed], list[_Placed]]:
    """The lines that were lost and gained, without those at the edges of what moved: they went out of view or
    came into it, or were cut in two. Where lines between the `bars` have not moved, nothing was scrolled: a
    row was removed or added.
    """
    moving = [(one[at], two[other]) for at, other in pairs.items() if _level(one[at], two[other], moved)]
    if not moving:
        return lost, gained
    here, there = [line.middle for line, _ in moving], [other.middle for _, other in moving]
    reach = abs(moved) + REACH

    def above(line: _Placed, edge: float) -> bool:
        return 0 < edge - line.middle <= reach

    def below(line: _Placed, edge: float) -> bool:
        return 0 < line.middle - edge <= reach

    if moved < 0:  # lines went out of view at the top, and came into it at the bottom
        gone = [line for line in lost if above(line, min(here))]
        come = [line for line in gained if below(line, max(there))]
        rests = [line for line in gained if above(line, min(there))]
        parts = [line for line in lost if below(line, max(here))]
    else:
        gone = [line for line in lost if below(line, max(here))]
        come = [line for line in gained if above(line, min(there))]
        rests = [line for line in gained if below(line, max(there))]
        parts = [line for line in lost if above(line, min(here))]
    cut = [rest for rest in rests if any(_overlap(line, rest, moved) for line in gone)]
    cut += [part for part in parts if any(_overlap(part, line, moved) for line in come)]
    bottom = max(line.bottom for line in (*one, *two)) - bars
    still = [
        one[at]
        for at, other in pairs.items()
        if not _level(one[at], two[other], moved) and one[at].top > bars and one[at].bottom < bottom
    ]
    seen_once = {
        id(line)
        for line in (*gone, *come, *cut)
        if not any(other.left < line.right and line.left < other.right for other in still)
    }
    return (
        [line for line in lost if id(line) not in seen_once],
        [line for line in gained if id(line) not in seen_once],
    )


def _overlap(line: _Placed, other: _Placed, moved: float) -> bool:
    """Whether `other` covers a part of the place to which `line` moved."""
    higher = line.top + moved < other.bottom and other.top < line.bottom + moved
    return higher and other.left < line.right and line.left < other.right


def _differences(lost: list[_Placed], gained: list[_Placed], moved: float) -> int | None:
    """The letters of lines that were read on one of the pictures only; None when two lines at the same place
    differ, or a text that is certain is only on one.
    """
    noise = 0
    taken: set[int] = set()
    for line in lost:
        beside = [
            other
            for other in gained
            if (_level(line, other, 0.0) or _level(line, other, moved))
            and other.left < line.right
            and line.left < other.right
        ]
        if not beside:
            if _certain(line):
                return None
            noise += _weight(line.key)
            continue
        taken.update(map(id, beside))
        # A text that was cut in two differently is judged with the others of its row.
        row = [other for other in lost if _level(line, other, 0.0)]
        confidences = [other.confidence for other in (line, *beside)]
        together = _joined(beside)
        if not any(_same_text(text, together, confidences) for text in (line.key, _joined(row))):
            return None
    for line in gained:
        if id(line) not in taken:
            if _certain(line):
                return None
            noise += _weight(line.key)
    return noise


def _joined(lines: list[_Placed]) -> str:
    return "".join(line.key for line in sorted(lines, key=lambda line: line.left))


def _certain(line: _Placed) -> bool:
    """Whether a line that was read on one picture only was really there. A few letters may be an icon,
    however sure the text recognition is.
    """
    if _weight(line.key) <= SHORT_NOISE:
        return False
    return line.confidence >= (DOUBTFUL if any(map(str.isdigit, line.key)) else SURE)


def _same_text(key: str, other: str, confidences: Sequence[float]) -> bool:
    """Whether two texts at the same place are the same, but for noise of the text recognition."""
    if max(confidences) < DOUBTFUL or _icon_beside(*sorted((key, other), key=len)):
        return True
    one, two = key.translate(_CONFUSED), other.translate(_CONFUSED)
    if one == two:
        return True
    longest = max(len(one), len(two))
    if min(confidences) >= SURE:
        most = _weight(max(key, other, key=len)) // LONG  # in a long line it errs unnoticed
    elif longest == 1:
        return True
    else:
        most = max(1, int(DISSIMILAR * longest))
    same_digits = _digits(key) == _digits(other) or _digits(one) == _digits(two)
    return same_digits and Levenshtein.distance(one, two) <= most


def _icon_beside(short: str, long: str) -> bool:
    """Whether `long` is `short` with an icon that was read as a character before or after it."""
    if len(long) != len(short) + 1 or _weight(short) < LEAST_BESIDE:
        return False
    if long.endswith(short):
        return not short[0].isdigit() and (long[0].isascii() or _weight(short) >= 2 * LEAST_BESIDE)
    return long.startswith(short) and long[-1].isascii() and not long[-1].isdigit()


# Characters that text recognition confuses, in groups.
_CONFUSED = str.maketrans(
    {
        character: group[0]
        for group in (
            "0o",
            "1il",
            "tf",
            "gq",
            "一ー",
            "二ニ",
            "力カ",
            "口ロ",
            "夕タ",
            "千干",
            "已己巳",
            "末未",
        )
        for character in group
    }
)


def _digits(key: str) -> list[str]:
    return [character for character in key if character.isdigit()]


def _weight(key: str) -> int:
    """The number of letters, of which a Chinese one counts as two."""
    return sum(2 if character >= _FIRST_WIDE else 1 for character in key)


_FIRST_WIDE = "\u1100"
