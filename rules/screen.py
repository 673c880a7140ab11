"""The parts of a screen that say nothing about its content: the status bar, with clock, battery and network,
the ribbon of a test build, and the bars of a browser.

The status bar is recognised by its place and its form, and only where both are certain: a line that is
wrongly taken for the status bar would be missing in titles, summaries and snippets, while one that is
overlooked only disturbs. So everything rests on a clock in the strip at the top, and a row with any other
text of a page is no status bar, such as the first row of a list of chats, which has a time, too.
"""

import re
from collections.abc import Sequence

from engines.lines import Line, Page
from rules.wordlists import END, START, any_in

# The strip in which a status bar ends, as a part of the height, and of the width because a long capture is
# many screens high. Pictures of a phone in its frame have it lower than the screen itself would.
STRIP_HEIGHT, STRIP_WIDTH = 0.068, 0.14
STRIP_RIGHT = 0.045  # of the height: for a clock at the right, where lists have their times
STRIP_LANDSCAPE = 0.04
LARGEST = 0.065  # height of its text as a part of the screen's shorter side
LEFT, RIGHT = 0.3, 0.8  # of the width: where a clock at the left begins, and where other signs begin
BARS = 0.16  # of the height: where the bars of a browser end
UNCERTAIN = 0.8  # confidence below which a short text in the row is a misread icon
LONGEST_ICONS = 14  # characters of such a text

_PART_OF_DAY = any_in("screen", "parts_of_day")
_CLOCK = re.compile(
    rf"\W{{0,3}}(?:{_PART_OF_DAY}\W?)?(?<!\d)(?:[01]?\d|2[0-3])[:：][0-5]\d(?:[:：][0-5]\d)?(?!\d)"
)
_SIGNS = re.compile(
    r"\d{1,3} ?%"
    r"|\d{1,4}(?:[.,]\d{1,2})? ?[KMG]?B?/s"
    rf"|{START}(?:[2-6]G[A+]?|[AP]\.?M\.?){END}|{_PART_OF_DAY}"
    rf"|{any_in('screen', 'networks', START, END)}|{any_in('screen', 'carriers', START, END)}",
    re.IGNORECASE,
)
_RIBBON = re.compile(rf"[A-Z]{{0,2}}[DO0][EF][BR8][UO][GC]|{any_in('screen', 'ribbons')}", re.IGNORECASE)
_ADDRESS = re.compile(
    r"https?://|localhost[:/]|(?<![\w@.])(?:[\w-]{1,63}\.){1,4}(?:com|org|net|io|dev|cn|de|app|co)/\S",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![A-Za-z\d])\d{1,4}(?:[.,]\d{1,2})?(?![A-Za-z\d])")


def status_bar(page: Page) -> frozenset[int]:
    """The indices of the lines in `page.lines` that are the status bar."""
    lowest, largest = _strip(page), LARGEST * min(page.width, page.height)
    strip = [
        (index, line)
        for index, line in enumerate(page.lines)
        if line.bottom <= lowest and line.height <= largest
    ]
    for _, clock in strip:
        if not _CLOCK.search(clock.text):
            continue
        row = [(index, line) for index, line in strip if _beside(line, clock)]
        # A taller line in the same row is a title.
        lines = [line for line in page.lines if line is not clock and _beside(line, clock)]
        if _is_status_bar(clock, lines, page):
            return frozenset(index for index, _ in row)
    return frozenset()


def without_bars(lines: list[Line], width: int, height: int) -> list[Line]:
    """`lines` without a ribbon and without the bars of a browser, on a page of this size."""
    return _without_browser(_without_ribbon(lines, width, height), width, height)


def _without_ribbon(lines: list[Line], width: int, height: int) -> list[Line]:
    """`lines` without the word on a ribbon across the upper right corner, as test builds have it."""
    corner = min(width, height)
    return [
        line
        for line in lines
        if not (
            line.bottom < 0.2 * corner
            and line.left > width - 0.25 * corner
            and line.text.isupper()
            and _RIBBON.fullmatch(line.text)
        )
    ]


def _without_browser(lines: list[Line], width: int, height: int) -> list[Line]:
    """`lines` without the bars of a browser: its tabs, the address, and the bookmarks below it."""
    if width < height:
        return lines
    bar = next(
        (line for line in lines if line.bottom < BARS * height and _ADDRESS.search(line.text[:200])), None
    )
    if bar is None:
        return lines
    rest = [line for line in lines if line.top + line.bottom > 2 * bar.bottom]
    first = min((line.top for line in rest), default=0)
    row = [line for line in rest if line.top < first + bar.height]
    if (
        len(row) >= 4
        and first < bar.bottom + 2 * bar.height
        and max(line.height for line in row) < 1.2 * bar.height
    ):
        rest = [line for line in rest if line not in row]
    return rest if len(rest) >= 3 else lines


def _strip(page: Page) -> float:
    """The lowest place, in pixels, at which a status bar ends."""
    if page.height < page.width:
        return STRIP_LANDSCAPE * page.height
    return min(STRIP_HEIGHT * page.height, STRIP_WIDTH * page.width)


def _beside(line: Line, clock: Line) -> bool:
    middle = (line.top + line.bottom) / 2
    return clock.top <= middle <= clock.bottom or line.top <= (clock.top + clock.bottom) / 2 <= line.bottom


def _is_status_bar(clock: Line, others: Sequence[Line], page: Page) -> bool:
    """Whether the row of `clock` holds nothing but what a status bar shows."""
    odd = [line for line in others if not _is_sign(line)]
    battery = any("%" in line.text and line.left > 0.6 * page.width for line in others)
    back = len(odd) == 1 and battery and odd[0].right < clock.left  # the link to the app before
    if not _is_sign(clock) or (odd and not back):
        return False
    if any(line.bottom <= clock.top for line in page.lines):
        return False  # a status bar is the first row
    opposite = battery or any(
        line.left > RIGHT * page.width or line.right > 0.9 * page.width for line in others
    )
    if clock.left <= LEFT * page.width:
        return opposite or page.height >= page.width
    if clock.right >= RIGHT * page.width:
        return page.height > page.width and clock.bottom <= STRIP_RIGHT * page.height
    return opposite  # in the middle, as on tablets


def _is_sign(line: Line) -> bool:
    """Whether the text is made of clock, battery, network and icons only."""
    text = line.text.strip()
    rest = _NUMBER.sub(" ", _SIGNS.sub(" ", _CLOCK.sub(" ", text)))
    letters = sum(character.isalnum() for character in rest)
    if not letters:
        return True
    if _CLOCK.search(text) or "%" in text:
        return letters <= 2  # icons beside it
    return len(text) <= LONGEST_ICONS and (
        line.confidence < UNCERTAIN or (letters <= 2 and not text.isascii())
    )
