"""What a screen says beside its heading: its amount, labelled values, entries, and sentences.

A label of an interface (`words/interface.toml`) alone says what a screen can do, not what it is about, and
what was read without certainty says nothing: neither is content. Labels with a value beside them are.
"""

import re
from collections.abc import Iterable, Sequence

from engines.lines import Line
from rules.headings import Heading, first_sentence, is_day, is_title
from rules.kinds import WHEN_RIGHT
from rules.layout import Block, Layout, is_chinese, is_clock, joined, letters, plain, weight
from rules.lists import Entry, entries
from rules.rows import AGO_BEHIND
from rules.wordlists import is_interface
from text import shortened

SURE = 0.88  # confidence of reading, below which a text is no content
SENTENCE, RUNNING, PART = (
    40,
    140,
    34,
)  # letters of a sentence without its full stop, of a text, of a label or a name
LONGEST = 120  # characters of an entry
CARD = 1.15  # times the usual height: a value with its label above or below it

_WRITTEN = frozenset(["post", "profile", "video", "conversation", "conversations", "article", "source"])
_VALUE = re.compile(r"[-+−~≈<>]? ?(?:\S{0,4} ?)?\d[\d.,:/ '%]{0,16}(?: ?(?:[€£$¥₹元]|[^\W\d]\S{0,9}))?")
_ICONS = re.compile(r"[0oO.·•|]{1,4}")  # circles and dots, read as letters
_ENDS = (".", "!", "?", "。", "！", "？", "…", "”", '"')


def values(layout: Layout, kind: str) -> list[str]:
    """Labels with their values: "Balance €2,310.18". A value is at the right of its label, or the larger text
    right below or above it. On a screen where people write, numbers count likes and comments.
    """
    if kind in _WRITTEN:
        return []
    found: dict[str, str] = {}
    for row in layout.rows:
        label, value = _stripped(row.first.text), plain(row.last.text)
        if (
            2 <= len(row.lines) <= 3
            and row.first not in layout.headers[:1]
            and _is_sure((row.first, row.last))
            and row.last.right > 0.5 * layout.width
            and _is_label(label)
            and _is_value(value)
        ):
            found.setdefault(label, f"{label} {value}")
    for line in layout.lines:
        value = plain(line.text)
        if line.height >= CARD * layout.median and line.confidence >= SURE and _is_value(value):
            beside = next((one for one in layout.lines if _labels(one, line)), None)
            if beside is not None and _is_label(label := _stripped(beside.text)):
                found.setdefault(label, f"{label} {value}")
    return list(found.values())


def _labels(label: Line, value: Line) -> bool:
    """Whether a smaller text is right above or below a value, at its left edge or its middle."""
    gap = max(value.top - label.bottom, label.top - value.bottom)
    aligned = abs(label.left - value.left) < value.height or abs(
        label.left + label.right - value.left - value.right
    ) < 2 * min(value.height, label.height)
    return (
        -0.3 * value.height < gap < 1.2 * value.height
        and aligned
        and label.confidence >= SURE
        and label.height < value.height
    )


def _is_label(text: str) -> bool:
    return len(text) <= PART and letters(text) > 0.7 and is_title(text, 2)


def _is_value(text: str) -> bool:
    return (
        _VALUE.fullmatch(text) is not None
        and not _ICONS.fullmatch(text.split()[0])
        and not WHEN_RIGHT.fullmatch(text)
        and not is_clock(text)
    )


def _stripped(text: str) -> str:
    return plain(text).strip("<>〈〉 ")


def named(layout: Layout, kind: str, heading: Heading | None) -> list[Entry]:
    """The entries of the screen's list that are content, each with what is below it where that is, too."""
    of_heading = {id(line) for line in heading.lines} if heading else set()
    title = heading.text if heading else ""
    block_of = {id(line): block for block in layout.blocks for line in block.lines}
    found = []
    for entry in entries(layout, kind, title):
        first = entry.lines[0]
        block = block_of[id(first)]
        wrapped = len(block.lines) >= 2 and block.lines[0] is first
        name = _named(block.text if wrapped else entry.name)
        if id(first) in of_heading or not _is_content(first, name) or len(name) > LONGEST:
            continue
        below = entry.lines[1] if len(entry.lines) > 1 else None
        if below is not None and below in block.lines:
            below = None
        whole = _named(block_of[id(below)].text) if below is not None else ""
        said = whole if below is not None and _is_content(below, whole) else ""
        found.append(entry._replace(name=name, said="" if said in (name, title) else said))
    return list({entry.name.casefold(): entry for entry in found}.values())


def sentence(layout: Layout, heading: Heading | None, limit: int) -> str:
    """The beginning of the first running text, "" where there is none."""
    title = heading.text if heading else ""
    for block in (*layout.paragraphs, *layout.body):
        text = plain(block.text)
        ends = text.endswith(_ENDS) and not text.endswith(("..", "…"))
        if (
            weight(text) >= (14 if ends else SENTENCE)
            and (ends or len(block.lines) >= 2)
            and text not in title
            and _is_sure(block.lines)
            and is_title(text)
            and letters(text) > 0.7
        ):
            return first_sentence(text, limit)
    return ""


def is_running(layout: Layout) -> bool:
    """Whether there is a text to read: sentences, and not the long entries of a list."""
    return any(
        weight(block.text) >= RUNNING and plain(block.text).rstrip()[-1:] in '.!?。！？”"…:：'
        for block in layout.paragraphs
    ) or (
        sum(weight(block.text) for block in layout.paragraphs) >= 3 * RUNNING
        and _sentences(layout.paragraphs)
    )


def worded(layout: Layout, heading: Heading | None) -> list[str]:
    """The other texts of the screen that are content, the larger ones first."""
    lines = {id(line) for line in heading.lines} if heading else set()
    title = heading.text if heading else ""
    left_out = {
        id(line) for line in (*layout.sidebar, *(layout.navigation.lines if layout.navigation else ()))
    }
    left_out.add(id(layout.composer))
    found = []
    for block in layout.blocks:
        rest = tuple(line for line in block.lines if id(line) not in lines and id(line) not in left_out)
        text = plain(block.text if len(rest) == len(block.lines) else joined(line.text for line in rest))
        if rest and text not in title and (_is_content(rest[0], text) or _is_moment(rest[0], text)):
            found.append(Block(rest, text))
    found.sort(key=lambda block: -round(block.height / max(1, layout.median)))
    return list(dict.fromkeys(shortened(plain(block.text), 60) for block in found))


def _sentences(blocks: Iterable[Block]) -> bool:
    return any(re.search(r"[.!?] [A-Z]|[。！？]\S", block.text) for block in blocks)


def _named(text: str) -> str:
    return _stripped(AGO_BEHIND.sub("", text[: LONGEST + 40]))


def _is_sure(lines: Sequence[Line]) -> bool:
    return all(line.confidence >= SURE for line in lines)


def _is_moment(line: Line, text: str) -> bool:
    """Whether a text is a day with its time, and not how long ago something was."""
    has_both = any(map(str.isalpha, text)) and any(map(str.isdigit, text))
    return line.confidence >= SURE and has_both and is_day(text)


def _is_content(line: Line, text: str) -> bool:
    least = 4 if is_chinese(text[:1]) else 3
    return line.confidence >= SURE and is_title(text, least) and not is_day(text) and not is_interface(text)
