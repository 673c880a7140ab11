"""Who wrote something and when, by where the name and the time are: beside or above each other.

Posts, comments and articles are signed so on any screen, whatever the app calls it.
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from engines.lines import Line
from rules import wordlists
from rules.entities import MONTH
from rules.headings import is_title, names_nothing
from rules.kinds import AGO, BY, COUNTED, WHEN_RIGHT
from rules.layout import SENTENCE, Block, Layout, Row, is_clock, joined, letters, plain, weight

_SIGNS = wordlists.table("signs")["ago"]
_AGO = wordlists.table("writings")["ago"]
_BY = re.compile(rf"(?<!\S)(?:{BY}) ", re.IGNORECASE)
_DATE = (
    r"(?:(?:19|20)\d\d[-/.年] ?\d{1,2}[-/.月] ?\d{1,2}日?|\d{1,2}月\d{1,2}日"
    rf"|\d{{1,2}}\.? {MONTH}\.?,? \d{{4}}|{MONTH}\.? \d{{1,2}}(?:[a-z]{{2}})?(?:,? \d{{4}})?)"
    r"(?:[\s(].{0,18})?"
)
# "an hour ago", "9 godz. temu", "hace 3 días": sure wherever it stands.
_LONG_TIME = (
    rf"(?:(?:an?|a few|\d{{1,3}}) {wordlists.any_of(_SIGNS['signed'])}s? ago"
    rf"|\d{{1,3}} ?[^\W\d]{{1,9}}\.? {wordlists.any_of(_AGO['after'])}(?!\w)"
    rf"|(?<!\w){wordlists.any_of(_AGO['before'])} \d{{1,3}} [^\W\d]{{1,9}}(?!\w))"
)
_CHINESE_TIME = rf"\d{{1,3}} ?(?:{'|'.join(_SIGNS['chinese'].split())})前"
_TIME = rf"(?:{_LONG_TIME}|{AGO}|{_DATE})"
# The time of a post, perhaps with a word before it and what was done then, or who may see it, behind it:
# "posted 3h ago", "3 hours ago – Public".
_TIME_OF_POST = re.compile(
    rf"(?:[^\W\d]{{2,8}} ?[:：]? ?)?{_TIME}(?:[\u4e00-\u9fff☆★⭐].{{0,24}}| ?[·•–|-] ?.{{2,20}})?\W{{0,4}}",
    re.IGNORECASE,
)
_NAME_AND_TIME = re.compile(
    rf"(?!\d)([^@·•|]{{2,30}}?)(?: ?@[\w.@]{{2,40}})? ?[·•@|-] ?{_TIME}(?: ?[·•] ?\S{{3,40}})?\W{{0,3}}"
    rf"|(?:{AGO}) ?[·•-] ?(.{{2,30}})|(?!\d)([^@·•|]{{2,30}}?){_CHINESE_TIME}.{{0,6}}"
    rf"|(?!\d)(.{{2,60}}?),?[ ·•|–-]{{1,3}}(?:[^\W\d]{{4,6}} )?{_LONG_TIME}.{{0,40}}",
    re.IGNORECASE,
)
_NAME_AND_HANDLE = re.compile(
    r"(?!\d)([^@·•|!#]{2,30}?) \(?@[\w.-]{2,30}(?:@[\w.-]{3,40})?\)?(?: .{0,30})?"
    r"|(u/[\w-]{3,30})(?: ?[·•].{0,30})?|([^@·•|!#\s\d][^@·•|!#]{1,30})@[\w-]{2,30}(?:\.[\w-]{2,20}){1,3}"
)
MOST_BETWEEN = 3  # blocks from a post's signature on, of which one is its text
FEW = 24  # letters beside a number of likes, with which a text is no more than that
LONGEST_NAME = 26  # letters of a name, Chinese ones counted double
LONGEST_LINE = 36  # the same, of a name beside its time in one line, perhaps with its server


class Signed(NamedTuple):
    """Who wrote a post, with the lines of the name and of the time, and the text below."""

    author: str
    lines: tuple[Line, ...]
    said: Block


def first_signed(layout: Layout) -> Signed | None:
    """The first post with a name beside or right above a time, and a text below these; None where there is
    none.
    """
    begins = {id(block.lines[0]) for block in layout.blocks}
    found = [one for at in range(len(layout.rows)) if (one := signature(layout, at))]
    names = {id(lines[0]) for _, lines in found}
    for author, lines in found:
        if len(lines) == 1 or id(lines[0]) in begins:
            said = _below(layout, lines, names)
            if said is not None:
                return Signed(author, lines, said)
    return None


def _below(layout: Layout, lines: tuple[Line, ...], names: set[int]) -> Block | None:
    """The text below a signature, up to the next of `names`."""
    name, lowest = lines[0], lines[-1].bottom - 0.3 * lines[-1].height
    column = [
        part
        for block in layout.blocks
        if block.right > name.left and block.left < name.right + 0.15 * layout.width
        if (part := _part_below(block, lowest))
    ]
    below = itertools.takewhile(
        lambda block: block.lines[0] is not layout.composer and id(block.lines[0]) not in names,
        column[:MOST_BETWEEN],
    )
    posted = [block for block in below if _is_posted(plain(block.text))]
    return next((block for block in posted if weight(block.text) >= SENTENCE), posted[0] if posted else None)


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
    if name := _names(text):
        return name, (line,)
    if (
        not is_name(text)
        or line.text.rstrip().endswith((":", "："))
        or line.height < 0.7 * layout.median
        or any(is_dated(one) for one in _aligned(layout.rows[max(0, at - 1) : at], line))
    ):
        return None
    beside = [one for one in row.lines if one.left > line.left and (is_dated(one) or is_clock(one.text))]
    under = [
        one
        for one in _aligned(layout.rows[at + 1 : at + 3], line)
        if (is_dated(one) and not _names(plain(one.text))) or plain(one.text).startswith("@")
    ]
    if layout.header is line and not any(map(is_dated, (*beside, *under))):
        return None  # the bar of somebody's profile
    dated = beside[:1] or under[-1:]
    return (_name_alone(text), (line, *dated)) if dated else None


def _names(text: str) -> str:
    """Whom a line names that has the time or the handle too, "" for none."""
    match = _NAME_AND_TIME.fullmatch(text) or _NAME_AND_HANDLE.fullmatch(text)
    if match is None:
        return ""
    name = _BY.split(next(filter(None, match.groups()), ""))[-1].strip()
    is_whole = is_title(name, 2) and weight(name) <= LONGEST_LINE and name[-1:] not in ":："
    return name if is_whole and not _TIME_OF_POST.fullmatch(name) else ""


def is_name(text: str) -> bool:
    """Whether a short text may be a whole name."""
    return (
        is_title(text, 2)
        and weight(text) <= LONGEST_NAME
        and not re.match(r"\d\S{0,4} ", text)
        and not names_nothing(text)
        and letters(text) >= (0.5 if weight(text) > 2 else 1)
        and text[-1:] not in "。！？!?"
    )


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
    """Whether a text may be what somebody wrote: no time, handle, button or number of likes."""
    return (
        weight(text) >= 4
        and not text.startswith("@")
        and not _TIME_OF_POST.fullmatch(text)
        and not (COUNTED.search(text) and weight(text) < FEW)
        and not names_nothing(text)
    )


def is_ago(text: str) -> bool:
    """Whether a text says when something was written."""
    return WHEN_RIGHT.fullmatch(text) is not None or _TIME_OF_POST.fullmatch(text) is not None


def long_text(layout: Layout, least: int, most: float = math.inf) -> Block | None:
    """The first text with so many letters, above a place."""
    return next(
        (
            block
            for block in layout.blocks
            if block.bottom <= most
            and weight(block.text) >= least
            and letters(block.text) > 0.6
            and block.lines != (layout.header,)
            and "@" not in block.text[:40]
            and not _NAME_AND_TIME.fullmatch(plain(block.text))
        ),
        None,
    )


def named_above(layout: Layout, said: Block) -> Line | None:
    """The short text close above a post, at its left edge."""
    near = [
        block.lines[0]
        for block in layout.blocks
        if 0 <= said.top - block.bottom < 2 * block.height and abs(block.left - said.left) < block.height
    ]
    if not near or near[-1] is layout.header:
        return None
    return near[-1] if is_name(plain(near[-1].text)) else None
