"""What the places of the lines say about a screen: its caption, header, rows, columns, bubbles and
paragraphs.

It goes by places, sizes, and whether a text has letters or digits; only an empty field for a message and a
dialog are known by words (`rules/words/parts.toml`). What the parts mean is judged elsewhere
(`rules/kinds.py`, `rules/captions.py`).

Pictures of phones in their frame, as app stores show them, have a caption above the screen: large lines above
the clock of the status bar. It is kept apart, so that the screen's own header is found.
"""

import itertools
import re
import statistics
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from engines.lines import Line, Page, gutter
from rules import screen, wordlists

HEADER_BOTTOM = 0.17  # of the height: where a screen's header ends at the latest, below the status bar
NAVIGATION_TOP = 0.88
LARGE = 1.45  # times the median height of the lines: a heading, an amount, a caption
WRAPPED = 0.4  # of the width: a narrower line was not wrapped, so the line below is another one
RIGHT_EDGE = 0.8  # of the width: where the values at the right of a list end
SENTENCE = 60  # letters, Chinese ones counted double, of a paragraph
# A page with more text is judged by its beginning, and so is a line.
MAX_LINES = 600
MAX_LINE = 300

_ICONS_BEFORE = re.compile(r"^[^\w(\[（【《“\"'@#$€£¥￥+\-−<>→/]+")
_ICON_LETTER = re.compile(r"^[\u2e80-\u9fff](?: ?(?=[A-Za-z]{3})| (?=[\u2e80-\u9fff]{2}))")
_ICON_READ = re.compile(r"^\w (?=\w{3})")  # the sign before a field
_CLOCK = re.compile(r"\W{0,3}(?:[01]?\d|2[0-3])[:：][0-5]\d(?:[:：][0-5]\d)?(?: ?[AaPp][Mm])?\W{0,3}$")
_SYMBOL_KEYS = ("?123", "!#1", "123?", "&123")  # of Gboard and others, of Samsung
_DIGITS = frozenset("0123456789")  # the row above the letters, each a line
_KEYBOARD_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm")

_PARTS = wordlists.table("parts")
_COMPOSER_BEGINS = tuple(wordlists.lines(_PARTS["composer"]["begins"]))
_COMPOSER_ALONE = frozenset(wordlists.lines(_PARTS["composer"]["alone"]))
CUT = 8  # letters of a field's text that is cut: "Send messag…"
_COMPOSER_CUT = frozenset(text[:end] for text in _COMPOSER_BEGINS for end in range(CUT, len(text)))
_LEADING = wordlists.words(_PARTS["times"]["leading"])
_TRAILING_TIME = re.compile(r"[\s·•]{0,3}(?:[01]?\d|2[0-3])[:：][0-5]\d(?: ?[ap]m)?\W{0,4}$", re.IGNORECASE)
_DIALOG_ENDS = frozenset(wordlists.lines(_PARTS["dialog"]["ends"]))
COMPOSER_TOP = 0.6  # of what is read: where a field for a message is at the highest, above a keyboard too
DIALOG_MARGIN = 0.04  # of the width: how far a dialog is from the edges at least


class Row(NamedTuple):
    """Lines beside each other, from left to right."""

    lines: tuple[Line, ...]

    @property
    def first(self) -> Line:
        """The leftmost line."""
        return self.lines[0]

    @property
    def last(self) -> Line:
        """The rightmost line."""
        return self.lines[-1]


class Block(NamedTuple):
    """The lines of a paragraph, a bubble or a heading, and its whole text."""

    lines: tuple[Line, ...]
    text: str

    @property
    def left(self) -> int:
        """Its left edge."""
        return min(line.left for line in self.lines)

    @property
    def right(self) -> int:
        """Its right edge."""
        return max(line.right for line in self.lines)

    @property
    def top(self) -> int:
        """Its top edge."""
        return self.lines[0].top

    @property
    def bottom(self) -> int:
        """Its bottom edge."""
        return self.lines[-1].bottom

    @property
    def height(self) -> float:
        """The height of a line."""
        return statistics.fmean(line.height for line in self.lines)


class Layout:
    """The parts of a page. `lines` are its lines without status bar, keyboard and caption."""

    def __init__(self, page: Page):
        self._page = page
        self.width, self.height = max(1, page.width), max(1, page.height)
        bar = screen.status_bar(page)
        self._gutter = gutter(page.written)
        whole = [line for index, line in enumerate(page.written) if index not in bar]
        self.content = "\n".join(line.text for line in whole)  # all of it
        lines = [
            line if len(line.text) <= MAX_LINE else msgspec.structs.replace(line, text=line.text[:MAX_LINE])
            for line in whole[:MAX_LINES]
        ]
        lines = _without_icons(_without_keyboard(lines))
        self.all_lines = lines  # the caption's too
        caption, lines = ([], lines) if bar else _caption(lines, self.width, self.height)
        self.lines = screen.without_bars(lines, self.width, self.height)
        self.top = max((line.bottom for line in [*caption, *(page.lines[index] for index in bar)]), default=0)
        self.caption = plain(" ".join(line.text for line in caption))
        self.median = statistics.median([line.height for line in self.lines] or [1])

    @cached_property
    def rows(self) -> list[Row]:
        """The lines as rows, from top to bottom; of two screens beside each other the left one's first."""
        rows: list[list[Line]] = []
        strip = self.width if self._gutter is None else self._gutter
        order = sorted(self.lines, key=lambda line: (line.left > strip, line.top + line.bottom, line.left))
        for line in order:
            middle = (line.top + line.bottom) / 2
            if (
                rows
                and rows[-1][0].top <= middle <= rows[-1][0].bottom
                and (rows[-1][0].left > strip) == (line.left > strip)
            ):
                rows[-1].append(line)
            else:
                rows.append([line])
        return [Row(tuple(sorted(row, key=lambda line: line.left))) for row in rows]

    @cached_property
    def blocks(self) -> list[Block]:
        """The lines in reading order, those of a paragraph or heading together."""
        groups: list[list[Line]] = []
        for line in self.lines:
            if groups and self._continues(groups[-1], line):
                groups[-1].append(line)
            else:
                groups.append([line])
        return [Block(tuple(group), joined(line.text for line in group)) for group in groups]

    @cached_property
    def headers(self) -> list[Line]:
        """The texts that are alone in their rows at the top, where a screen's title is."""
        upper = self.top + HEADER_BOTTOM * min(self.height, 2.4 * self.width)
        found = []
        for row in self.rows:
            if row.first.bottom > upper:
                break
            # A row of three or more texts is tabs or the status bar of another device.
            worded = [line for line in row.lines if weight(line.text) >= 2 and not is_clock(line.text)]
            if len(worded) == 1 and len(worded[0].text) <= 60:
                found.append(worded[0])
        return found

    @cached_property
    def header(self) -> Line | None:
        """The title in the bar at the top, as far as its place and size tell; None when there is none."""
        return next((line for line in self.headers if line.height >= 0.85 * self.median), None)

    @cached_property
    def heading(self) -> Block | None:
        """The largest text with words, if it is clearly larger than the others, in the upper two thirds."""
        large = [
            block
            for block in self.blocks
            if block.height >= LARGE * self.median
            and weight(block.text) >= 4
            and letters(block.text) > 0.5
            and block.top < self.top + 0.66 * min(self.height, 2.4 * self.width)
        ]
        tallest = max((block.height for block in large), default=0)
        return next((block for block in large if block.height >= 0.85 * tallest), None)

    @cached_property
    def below_heading(self) -> list[Line]:
        """The texts alone in their rows right below a large heading at the top: the header of a framed
        screen.
        """
        heading = self.heading
        if heading is None or heading.top > 0.15 * self.height or heading.height < 1.8 * self.median:
            return []
        lowest = heading.bottom + HEADER_BOTTOM * self.height
        rows = [row for row in self.rows if heading.bottom <= row.first.top and row.first.bottom <= lowest]
        return [row.first for row in rows[:2] if len(row.lines) == 1 and weight(row.first.text) >= 2]

    @cached_property
    def navigation(self) -> Row | None:
        """The row of short labels at the bottom."""
        for row in reversed(self.rows):
            if row.first.top < NAVIGATION_TOP * self.height:
                return None
            if len(row.lines) >= 3 and all(len(line.text) <= 16 for line in row.lines):
                return row
        return None

    @cached_property
    def sidebar(self) -> list[Line]:
        """The menu at the left of a wide screen: a column of short labels, beside which all else is."""
        if self.width < 1.15 * self.height:
            return []
        column = [line for line in self.lines if line.right < 0.25 * self.width]
        edge = max((line.right for line in column), default=0)
        beside = [line for line in self.lines if line.left > edge]
        short = [line for line in column if len(line.text) <= 24]
        is_menu = (
            len(short) >= 4
            and 10 * len(short) >= 9 * len(column)
            and 8 * (len(column) + len(beside)) >= 7 * len(self.lines)
            and len(beside) >= len(column) // 2 + 3
        )
        return column if is_menu else []

    @cached_property
    def main(self) -> "Layout":
        """The screen without the menu at its left."""
        menu = {id(line) for line in self.sidebar}
        if not menu:
            return self
        page = msgspec.structs.replace(
            self._page, lines=[line for line in self._page.lines if id(line) not in menu]
        )
        return Layout(page)

    @cached_property
    def composer(self) -> Line | None:
        """The empty field for a message at the bottom, as a conversation has it."""
        lowest = max((line.bottom for line in self.lines), default=0)
        labels = {id(line) for row in self.rows if len(row.lines) >= 3 for line in row.lines}
        for line in reversed(self.lines):
            text = _ICON_READ.sub("", folded(line.text))
            if line.top <= COMPOSER_TOP * lowest or len(text) > 60:
                continue
            is_cut = len(text) >= CUT and line.text.rstrip().endswith(("..", "…")) and text in _COMPOSER_CUT
            if text.startswith(_COMPOSER_BEGINS) or (
                id(line) not in labels and (text in _COMPOSER_ALONE or is_cut)
            ):
                return line
        return None

    @cached_property
    def dialog(self) -> list[Row]:
        """The rows of a dialog that is in front of what it dims, its buttons last; none without buttons."""
        buttons = next(
            (
                row
                for row in reversed(self.rows)
                if len(row.lines) <= 3
                and any(folded(line.text) in _DIALOG_ENDS for line in row.lines)
                and all(len(line.text) <= 24 for line in row.lines)
            ),
            None,
        )
        if buttons is None or buttons.first.top < 0.25 * self.height:
            return []
        inside: list[Row] = [buttons]
        for row in reversed(self.rows[: self.rows.index(buttons)]):
            gap = inside[0].first.top - row.first.bottom
            margins = (row.first.left, self.width - row.last.right)
            if gap > 6 * self.median or min(margins) < DIALOG_MARGIN * self.width:
                break
            inside.insert(0, row)
        left = min(row.first.left for row in inside)
        while len(inside) > 1 and inside[0].first.left > left + 0.3 * self.width:
            inside.pop(0)
        rest = [line for line in self.lines if line.bottom < inside[0].first.top]
        behind = [line for line in rest if line.left < left - 0.01 * self.width]
        said = sum(weight(line.text) for row in inside[:-1] for line in row.lines)
        return inside if len(behind) >= 2 and len(inside) >= 2 and said >= 8 else []

    @cached_property
    def body(self) -> list[Block]:
        """The blocks without header and navigation."""
        left_out = {id(line) for line in (self.navigation.lines if self.navigation else ())}
        if self.header is not None:
            left_out.add(id(self.header))
        return [block for block in self.blocks if not any(id(line) in left_out for line in block.lines)]

    @cached_property
    def paragraphs(self) -> list[Block]:
        """The blocks of running text."""
        return [block for block in self.body if weight(block.text) >= SENTENCE and letters(block.text) > 0.6]

    @cached_property
    def bubbles(self) -> tuple[list[Block], list[Block]]:
        """The blocks that are alone in their rows at the left, and at the right, as in a conversation."""
        alone = {id(row.first) for row in self.rows if len(row.lines) == 1}
        left, right = [], []
        for block in self.body:
            if (
                weight(block.text) < 3
                or (block.text.isupper() and not any(map(is_chinese, block.text)))
                or block.height >= LARGE * self.median
                or is_clock(block.text)
            ):
                continue
            if not any(id(line) in alone for line in block.lines):
                continue
            space_left, space_right = block.left, self.width - block.right
            if space_left > 0.22 * self.width and space_right < 0.16 * self.width:
                right.append(block)
            elif space_left < 0.25 * self.width and space_right > 0.12 * self.width:
                left.append(block)
        return left, right

    @cached_property
    def entries(self) -> list[Row]:
        """The rows that name a list's entries: each entry's first, all at the same left edge."""
        left_out = {id(line) for line in (self.navigation.lines if self.navigation else ())}
        left_out |= {id(line) for line in (*self.headers[:1], *self.sidebar)}
        worded = [
            row
            for row in self.rows
            if weight(row.first.text) >= 2
            and not is_clock(row.first.text)
            and id(row.first) not in left_out
            and not (len(row.lines) >= 3 and all(len(line.text) <= 16 for line in row.lines))  # tabs
        ]
        edges: dict[int, list[Row]] = {}
        step = max(1, self.width // 40)
        for row in worded:
            edges.setdefault(row.first.left // step, []).append(row)
        best: list[Row] = []
        for edge in edges:
            best = max(best, edges[edge] + edges.get(edge + 1, []), key=len)
        best = sorted(best, key=lambda row: row.first.top)
        # Where the entries have values at the right, those rows name them.
        valued = [row for row in best if len(row.lines) >= 2 and row.last.right > RIGHT_EDGE * self.width]
        if len(valued) >= 3 and 3 * len(valued) >= len(best):
            return valued
        # The lines of an entry are closer to each other than to the next entry.
        gaps = sorted(row.first.top - above.first.bottom for above, row in itertools.pairwise(best))
        if len(gaps) < 2:
            return best
        low, high = max(1, gaps[len(gaps) // 5]), gaps[-1 - len(gaps) // 5]
        if low > statistics.median(row.first.height for row in best):
            return best  # sections of entries that have one line each
        cut = (low + high) / 2 if high > 1.8 * low else -self.height
        return best[:1] + [
            row for above, row in itertools.pairwise(best) if row.first.top - above.first.bottom >= cut
        ]

    def values(self, pattern: re.Pattern[str]) -> list[Row]:
        """The rows whose last text, at the right edge and beside another one, matches `pattern` as a
        whole.
        """
        return [
            row
            for row in self.rows
            if len(row.lines) >= 2
            and row.last.right > RIGHT_EDGE * self.width
            and pattern.fullmatch(row.last.text.strip())
        ]

    def _continues(self, group: Sequence[Line], line: Line) -> bool:
        above = group[-1]
        smaller, larger = sorted((above.height, line.height))
        gap = line.top - above.bottom
        is_large = larger >= LARGE * self.median
        # The middle of a sentence, also in a bubble. A last word without tall letters is a low line.
        goes_on = line.text[:1].islower() or (
            is_chinese(line.text[:1])
            and above.text[-1:] not in "。！？：…"
            and above.width > 0.5 * self.width
        )
        if (
            larger > (1.5 if goes_on else 1.3) * smaller
            or not -0.3 * larger < gap < (1.0 if is_large else 0.8) * larger
        ):
            return False
        same_left = abs(line.left - above.left) < 0.8 * larger
        centered = abs(line.left + line.right - above.left - above.right) < larger
        if is_large:  # a heading, which may be wrapped anywhere
            return same_left or centered
        if larger > 1.18 * smaller and not goes_on:
            return False
        wrapped = above.width >= max(0.75 * line.width, WRAPPED * self.width)
        if goes_on and same_left and gap < 0.7 * larger:
            wrapped = wrapped or above.width >= max(0.75 * line.width, 0.25 * self.width)
        return (same_left and wrapped) or (centered and wrapped and above.width > 0.55 * self.width)


def plain(text: str) -> str:
    """`text` without the icons around it, which are read as punctuation or as a single Chinese character."""
    text = text.strip()
    shorter = _ICON_LETTER.sub("", _ICONS_BEFORE.sub("", text[:400]))
    shorter = shorter.rstrip(" \t·•|:：>›»←→▼▾∨√×、,，")
    return " ".join(shorter.split()) or text[:400]


def joined(texts: Iterable[str]) -> str:
    """Wrapped lines as one text: without a space between Chinese characters, and hyphenated words whole."""
    whole = ""
    for text in texts:
        text = text.strip()
        if not whole:
            whole = text
        elif whole.endswith("-") and text[:1].islower():
            whole = whole[:-1] + text
        elif is_chinese(whole[-1:]) and is_chinese(text[:1]):
            whole += text
        else:
            whole += f" {text}"
    return whole


def folded(text: str) -> str:
    """A label without case and the signs around it: "> Cancel…" is "cancel"."""
    return plain(text[:80]).casefold().replace("’", "'").strip(" .…。!！?？•·+|_[]()（）")


def weight(text: str) -> int:
    """The number of letters, Chinese ones counted double: how much a text says."""
    return sum(1 + (character > "\u2e80") for character in text if character.isalpha())


def wide(text: str) -> int:
    """How wide a text is: its characters, Chinese ones counted double."""
    return sum(1 + (character > "\u2e80") for character in text)


def letters(text: str) -> float:
    """The part of the letters in the letters and digits of a text."""
    found = sum(character.isalpha() for character in text)
    return found / max(1, found + sum(character.isdigit() for character in text))


def is_clock(text: str) -> bool:
    """Whether a text is a time of day and nothing else."""
    return _CLOCK.match(text[:24]) is not None and len(text) < 24


def without_time(text: str) -> str:
    """A text without the time of day behind it, which a list or a chat adds; one that a word leads to, like
    "at", is part of the text.
    """
    found = _TRAILING_TIME.search(text)
    if found is None:
        return text
    before = text[: found.start()].rstrip()
    return text if before.rpartition(" ")[2].casefold() in _LEADING else before


def ends_in_time(text: str) -> bool:
    """Whether a time of day stands behind a text."""
    return _TRAILING_TIME.search(text) is not None


def is_chinese(character: str) -> bool:
    """Whether it is a Chinese or Japanese character, or their punctuation."""
    return "\u2e80" <= character <= "\u9fff" or "\uf900" <= character <= "\uffef"


def _caption(lines: list[Line], width: int, height: int) -> tuple[list[Line], list[Line]]:
    """The large lines above the clock of a phone in its frame, and the other lines, without that clock."""
    for line in lines:
        if line.top > 0.55 * height:
            break
        if not is_clock(line.text) or any(
            map(str.isalpha, line.text)
        ):  # a post's "11:21 PM" is no status bar
            continue
        above = [other for other in lines if other.bottom <= line.top]
        below = [other for other in lines if other.top >= line.bottom]
        if above and len(below) >= 3:
            usual = statistics.median(other.height for other in below)
            if line.height <= 1.5 * usual and statistics.median(one.height for one in above) >= 1.3 * usual:
                beside = (line.top, line.bottom)
                rest = [other for other in below if other.top >= beside[0]]
                return above, rest
        break
    return _slogan(lines, width)


def _slogan(lines: list[Line], width: int) -> tuple[list[Line], list[Line]]:
    """The large lines in the middle above a screen that is drawn smaller than the picture, and the others."""
    usual = statistics.median([line.height for line in lines] or [1])
    above = list(
        itertools.takewhile(
            lambda line: line.height >= 1.4 * usual and abs(line.left + line.right - width) < 0.16 * width,
            lines,
        )
    )
    rest = lines[len(above) :]
    if len(rest) < 5 or sum(weight(line.text) for line in above) < 16:
        return [], lines
    inset = min(line.left for line in rest) > 0.07 * width and max(line.right for line in rest) < 0.93 * width
    gap = min(line.top for line in rest) - above[-1].bottom
    return (above, rest) if inset and gap > above[-1].height else ([], lines)


def _without_icons(lines: list[Line]) -> list[Line]:
    """`lines` without icons that were read as one or two Chinese characters, on a page in another
    language.
    """
    chinese = [line for line in lines if any(map(is_chinese, line.text))]
    if 8 * len(chinese) > len(lines) or any(sum(map(is_chinese, line.text)) > 2 for line in chinese):
        return lines
    return [line for line in lines if len(line.text) > 2 or not all(map(is_chinese, line.text))]


def _without_keyboard(lines: list[Line]) -> list[Line]:
    """`lines` without the rows of a keyboard, which are read as letters with spaces between, or of which only
    the last is read, with the name of its language.
    """
    symbols = [line for line in lines if line.text.strip() in _SYMBOL_KEYS]
    lines = [
        line
        for line in lines
        if not any(key.top < (line.top + line.bottom) / 2 < key.bottom for key in symbols[:4])
    ]
    digits = [line for line in lines if line.text.strip() in _DIGITS]
    digits = [line for line in digits if sum(abs(one.top - line.top) < line.height for one in digits) >= 6]
    # A week of a calendar has no 9 together with a 1 or a 0.
    if {"9"} < (there := {line.text.strip() for line in digits}) and there & {"0", "1"}:
        lines = [line for line in lines if line.bottom < min(one.top for one in digits)]
    keys = [
        line
        for line in lines
        if len(line.text) <= 40
        and len(squeezed := "".join(letter for letter in line.text.lower() if letter.isalpha())) >= 4
        and any(squeezed in row or row in squeezed for row in _KEYBOARD_ROWS)
    ]
    if not keys:
        return lines
    top, height = min(line.top for line in keys), max(line.height for line in keys)
    return [line for line in lines if line.bottom < top or line.height > 3 * height]
