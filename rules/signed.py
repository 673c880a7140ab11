"""Who wrote something and when, by where the name and the time are: beside or above each other.

Posts, comments and articles are signed so on any screen, whatever the app calls it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from engines.lines import Line
from rules import wordlists
from rules.entities import MONTH
from rules.headings import is_title
from rules.kinds import AGO, BY, WHEN_RIGHT
from rules.layout import Block, Layout, Row, joined, plain, weight

_BY = re.compile(rf"^(?:{BY}) ", re.IGNORECASE)
_DATE = (
    r"(?:(?:19|20)\d\d[-/.年] ?\d{1,2}[-/.月] ?\d{1,2}日?|\d{1,2}月\d{1,2}日"
    rf"|\d{{1,2}}\.? {MONTH}\.?,? \d{{4}}|{MONTH}\.? \d{{1,2}}(?:,? \d{{4}})?)(?:[\s(].{{0,18}})?"
)
_UNITS = wordlists.any_of(wordlists.table("signs")["ago"]["signed"])
_LONG_TIME = rf"(?:an?|a few|\d{{1,3}}) {_UNITS}s? ago"
_TIME = rf"(?:{_LONG_TIME}|{AGO}|{_DATE})"
# The time of a post, perhaps with a word before it and what was done then behind it: "posted 3h ago".
_TIME_OF_POST = re.compile(
    rf"(?:[^\W\d]{{2,8}} ?[:：]? ?)?{_TIME}(?:[\u4e00-\u9fff☆★⭐].{{0,14}})?\W{{0,4}}", re.IGNORECASE
)
_NAME_AND_TIME = re.compile(
    rf"(?!\d)([^@·•|]{{2,30}}?)(?: ?@[\w.@]{{2,40}})?[ ·•@|-]{{1,3}}{_TIME}(?: ?[·•] ?\S{{3,40}})?\W{{0,3}}"
    rf"|(?:{AGO}) ?[·•-] ?(.{{2,30}})|(?!\d)([^@·•|]{{2,30}}?) ?(?:{AGO}).{{0,6}}",
    re.IGNORECASE,
)
_NAME_AND_HANDLE = re.compile(
    r"([^@·•|!#]{2,30}?) @[\w.-]{2,30}(?:@[\w.-]{3,40})?(?: ?[·•].{0,30})?|(u/[\w-]{3,30})(?: ?[·•].{0,30})?"
)
MOST_BETWEEN = 3  # blocks from a post's signature on, of which one is its text
TITLED = 12  # letters of a post's heading
LONGEST_NAME = 26  # letters of a name, Chinese ones counted double


class Signed(NamedTuple):
    """Who wrote a post, with the lines of the name and of the time, the heading above these, and the text
    below.
    """

    author: str
    lines: tuple[Line, ...]
    headline: Block | None
    said: Block


def first_signed(layout: Layout) -> Signed | None:
    """The first post with a name beside or right above a time, and a text below these; None where there is
    none.
    """
    begins = {id(block.lines[0]) for block in layout.blocks}
    for at in range(len(layout.rows)):
        found = signature(layout, at)
        if found is None or (len(found[1]) > 1 and id(found[1][0]) not in begins):
            continue
        author, lines = found
        lowest = lines[-1].bottom - 0.3 * lines[-1].height
        below = [part for block in layout.blocks if (part := _part_below(block, lowest))]
        said = next((one for one in below[:MOST_BETWEEN] if _is_posted(plain(one.text))), None)
        if said is None or said.lines[0] is layout.composer:
            return None
        above = [one for one in layout.blocks if 0 <= lines[0].top - one.bottom < 3 * lines[0].height]
        headline = next(
            (one for one in above if weight(one.text) >= TITLED and is_title(plain(one.text))), None
        )
        return Signed(author, lines, headline, said)
    return None


def _part_below(block: Block, lowest: float) -> Block | None:
    """The lines of a block that are below a place."""
    lines = tuple(line for line in block.lines if line.top >= lowest)
    return Block(lines, joined(line.text for line in lines)) if lines else None


def signature(layout: Layout, at: int) -> tuple[str, tuple[Line, ...]] | None:
    """Who a row names as the author, and the lines of the name and of the time: "Anna · 3h", "3d - anna", a
    name with a time beside it, or with a time or a handle in one of the two rows below.
    """
    row = layout.rows[at]
    line = next((one for one in row.lines if weight(one.text) >= 1), row.first)
    text = plain(line.text)
    if (match := _NAME_AND_TIME.fullmatch(text)) and is_title(
        name := _BY.sub("", match[1] or match[2] or match[3]), 2
    ):
        return name.strip(), (line,)
    if (match := _NAME_AND_HANDLE.fullmatch(text)) and is_title(name := match[1] or match[2], 2):
        return name.strip(), (line,)
    if (
        not is_title(text, 2)
        or weight(text) > LONGEST_NAME
        or line.height < 0.7 * layout.median
        or any(is_dated(one) for one in _aligned(layout.rows[max(0, at - 1) : at], line))
    ):
        return None
    beside = [one for one in row.lines if one is not line and is_dated(one)]
    under = [
        one
        for one in _aligned(layout.rows[at + 1 : at + 3], line)
        if is_dated(one) or plain(one.text).startswith("@")
    ]
    if layout.header is line and not any(map(is_dated, (*beside, *under))):
        return None  # the bar of somebody's profile
    dated = beside[:1] or under[-1:]
    return (_name_alone(text), (line, *dated)) if dated else None


def _aligned(rows: Sequence[Row], line: Line) -> list[Line]:
    """The lines of these rows that are close to a line and at its left edge."""
    return [
        one
        for row in rows
        for one in row.lines
        if abs(one.left - line.left) < 2 * line.height
        and min(abs(one.top - line.bottom), abs(line.top - one.bottom)) < 3 * line.height
    ]


def is_dated(line: Line) -> bool:
    """Whether a line is the time of a post and little else."""
    return _TIME_OF_POST.fullmatch(plain(line.text)) is not None


def _name_alone(text: str) -> str:
    """A name without the handle or the place behind it."""
    return re.split(r" ?@| · |·", text)[0].strip()[:LONGEST_NAME] or text


def _is_posted(text: str) -> bool:
    return weight(text) >= 4 and not text.startswith("@") and not _TIME_OF_POST.fullmatch(text)


def is_ago(text: str) -> bool:
    """Whether a text says when something was written."""
    return WHEN_RIGHT.fullmatch(text) is not None or _TIME_OF_POST.fullmatch(text) is not None


def names_author(text: str) -> bool:
    """Whether a text is a name with a time: "Anna · 3h"."""
    return _NAME_AND_TIME.fullmatch(text) is not None
