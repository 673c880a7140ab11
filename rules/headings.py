"""Which line of a screen names it.

Every line that could is a candidate: those at the top, those that are larger than the others, the first of
the rest, and those of a dialog before what it dims. A score weighs its size, its place, whether it is alone
in its row, how sure it was read, and what its words are (`rules/words/headings.toml`): a button never is a
title, and the name of a kind of screen ("Details") only where nothing larger is below it.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engines.lines import Line
from rules import wordlists
from rules.entities import MONTH, SHORT_WEEKDAY, TOP_LEVEL, WEEKDAY
from rules.kinds import WHEN_RIGHT
from rules.layout import Block, Layout, folded, is_chinese, letters, plain, weight
from rules.names import is_generic, without_count
from rules.wordlists import is_interface
from text import shortened

CUT = 0.8  # of a page: a word that begins with a small letter, or few capitals
DATES = 20  # characters of a line of days, from which on they are those of a chart
LONGEST = 70  # characters; only a heading without a break is longer
# The parts of a score. A line as large as the others in the middle of the screen has none.
SIZE, AT_TOP, DEPTH, GENERIC, APP, UNSURE, NOISE, SHORT, RUNNING = 1.6, 1.6, 1.2, 1.1, 0.9, 8.0, 4.0, 0.7, 0.7
# What an entry of a list lacks, what is not larger than the rest, and a second line at the top.
LISTED, PLAIN, SECOND = 0.8, 0.7, 1.0
SURE = 0.93  # confidence of reading, below which a line is less probably a title

_WORDS = wordlists.table("headings")
_NEVER = frozenset(wordlists.lines(_WORDS["never"]["words"]))
_NEVER_BEGINS = tuple(wordlists.lines(_WORDS["never"]["begins"]))
_GENERIC = frozenset(wordlists.lines(_WORDS["generic"]["words"]))
_HEADED = wordlists.words(_WORDS["kinds"]["headed"])
_LINKS = wordlists.words(wordlists.table("names")["plain"]["links"])
SITE = re.compile(
    rf"(?:https?://)?(?:www\.)?((?:[\w-]{{1,63}}\.){{1,6}}{TOP_LEVEL})(?:[/?]\S{{0,200}})?", re.IGNORECASE
)
_UNITS = {name: wordlists.any_of(words) for name, words in _WORDS["measures"].items()}
# A distance or a time, days of a week in a row, a weekday with a time.
_MEASURE = re.compile(
    rf"\d{{1,3}} ?(?:{_UNITS['latin']}\b|{_UNITS['chinese']}).{{0,24}}|[日一二三四五六 ]{{7,14}}"
    rf"|{SHORT_WEEKDAY}\w{{0,6}}\W.{{0,20}}\d\d:\d\d.{{0,14}}|{SHORT_WEEKDAY}\W.{{8,40}}"
    rf"|(?:{WEEKDAY}|{SHORT_WEEKDAY}\.?)(?:\W{{1,2}}\d{{1,2}})?"
    rf"|\d{{1,2}}\W{{0,2}}{WEEKDAY}|v?\d+(?:\.\d+){{1,3}}.{{0,8}}",
    re.IGNORECASE,
)
_AGO = re.compile(
    rf"\d{{1,3}} ?(?:[a-z]{{1,7}} ago|{_UNITS['ago']})\b.{{0,12}}$",
    re.IGNORECASE,
)
_LENS = re.compile(r"^[qoaω⌕] (?=\w)")  # the sign before a field for a search
_DATED = re.compile(
    rf"{MONTH}|{WEEKDAY}|{SHORT_WEEKDAY}|[ap]m|星期|\d|[年月日周]",
    re.IGNORECASE,
)
_BATTERY = re.compile(
    r"(?:\d?\W?(?:LTE|[2-6]G|VoLTE|WiFi)\W?.{0,4}\d{1,3} ?%?|.{0,6}\d{1,3} ?%"
    r"|.{0,6}\d[\d.]{0,5} ?[KMG]B?/s.{0,16})\W{0,3}",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"\w: \d|\w: ?/|^\d{1,2}[:：]\d\d"
)  # a label with its value, a line that begins with a time
_SENTENCE_END = re.compile(r"[。！？!?]|\.(?=\s|$)")
_SIGNS = frozenset(" ,.:'’-–—&()（）/·•!?！？，。：、“”\"«»…#@+\u3000|《》%")


class Heading(NamedTuple):
    """What names a screen, and its lines, none for the caption above a framed screen. A `generic` one is the
    name of a kind of screen, or the app's.
    """

    text: str
    lines: tuple[Line, ...]
    generic: bool


def heading(layout: Layout, kind: str, app: str) -> Heading | None:
    """What names the screen; None where no line does."""
    return best_of(scores(layout.main, kind), layout.main, app)


def best_of(scored: Iterable[tuple[Block, float]], layout: Layout, app: str) -> Heading | None:
    """The heading among blocks with their scores, of the main part of a screen."""
    best: tuple[float, Heading] | None = None
    for block, score in scored:
        text = without_count(plain(block.text))
        if not is_title(text, 2 if block.lines[0] in layout.headers else 3) or (
            len(text) > DATES and is_day(text)
        ):
            continue
        generic, is_app = names_nothing(text), text.casefold() == app.casefold()
        score -= APP if is_app else GENERIC if generic else 0
        if best is None or score > best[0]:
            best = score, Heading(first_sentence(text, LONGEST), block.lines, generic or is_app)
    if layout.caption and is_title(layout.caption) and best is None:
        return Heading(first_sentence(layout.caption, LONGEST), (), False)
    return best[1] if best else None


def scores(layout: Layout, kind: str) -> Iterator[tuple[Block, float]]:
    """The blocks that may name the screen, each with what its place and its text count."""
    for block, score in _candidates(layout, kind):
        if text := without_count(plain(block.text)):
            yield block, score + _worth(layout, block, text)


def is_title(text: str, least: int = 3) -> bool:
    """Whether a text may name anything: it has letters and is no button, time, address or menu."""
    word = _LENS.sub("", folded(text))
    return (
        weight(text) >= least
        and letters(text) >= (0.3 if text[-1:] == "月" else 0.4)
        and word not in _NEVER
        and not word.startswith(_NEVER_BEGINS)
        and not _MEASURE.fullmatch(text)
        and not WHEN_RIGHT.fullmatch(text)
        and not SITE.fullmatch(text)
        and not _BATTERY.fullmatch(text)
        and not _is_menu(text)
    )


def is_day(text: str) -> bool:
    """Whether a text is a day or a time and little else."""
    return weight(_DATED.sub("", text)) < 3


def names_nothing(text: str) -> bool:
    """Whether a title is only the name of a kind of screen, as many others have it."""
    alone = len(text.split()) == 1 and is_generic(text)
    word = folded(text).rstrip("0123456789 ")
    return alone or word in _GENERIC or is_interface(word) or text.endswith(("...", "…", ".."))


def first_sentence(text: str, limit: int) -> str:
    """The beginning of a text, up to the end of a sentence where that is within the limit."""
    if len(text) <= limit:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text[:limit])]
    long_enough = [end for end in ends if end >= 24]
    return text[: long_enough[-1]].rstrip() if long_enough else shortened(text, limit)


def site(layout: Layout) -> tuple[str, Line] | None:
    """The host in the address bar, and its line; None where there is none."""
    for line in [*layout.all_lines[:6], *layout.all_lines[-3:]]:
        match = SITE.fullmatch(plain(line.text)[:300])
        if match and "." in match[1]:
            return match[1].lower(), line
    return None


def _candidates(layout: Layout, kind: str) -> Iterator[tuple[Block, float]]:
    """The blocks that may name the screen, each with what its place counts."""
    block_of = {id(line): block for block in layout.blocks for line in block.lines}
    if layout.dialog:
        lines = [line for row in layout.dialog[:-1] for line in row.lines]
        for at, line in enumerate(lines[:4]):
            yield block_of[id(line)], AT_TOP * (2 if at == 0 else 1)
        return
    seen = set()
    alone = {id(row.first) for row in layout.rows if len(row.lines) == 1}
    listed = {id(row.first) for row in layout.entries} if len(layout.entries) >= 3 else set()
    limit = min(layout.height, 2.4 * layout.width)
    for at, line in enumerate(layout.headers):
        block = block_of[id(line)]
        if len(block.lines) > 1 and block.height < 1.2 * layout.median:
            block = Block((line,), line.text)  # not the paragraph that follows
        seen.add(id(block_of[id(line)].lines[0]))
        second = at > 0 and line.height < 1.3 * layout.headers[0].height
        place = AT_TOP - SECOND * second - 0.2 * at - DEPTH * (line.top - layout.top) / limit
        yield block, place - LISTED * (id(line) in listed and at > 0)
    for block in [one for one in layout.blocks if one.top < layout.top + 0.66 * limit][:40]:
        if id(block.lines[0]) in seen or block.lines[0] in (*layout.sidebar, layout.composer):
            continue
        is_large = block.height >= 1.3 * layout.median
        place = -DEPTH * max(0.0, (block.top - layout.top) / limit) + 0.3 * (id(block.lines[0]) in alone)
        if is_large:
            yield block, place + (kind in _HEADED)
        else:
            yield block, place - PLAIN - LISTED * (id(block.lines[0]) in listed)


def _worth(layout: Layout, block: Block, text: str) -> float:
    """What size, certainty and form of a text count."""
    sure = min(line.confidence for line in block.lines)
    size = SIZE * math.log2(min(4.0, max(0.6, block.height / max(1, layout.median))))
    noise = sum(not (one.isalnum() or one in _SIGNS) for one in text) / len(text)
    digits = max(0.0, 0.75 - letters(text))
    said = weight(text)
    odd = sum(one.isupper() and two.islower() for one, two in zip(text[1:], text, strict=False))
    return (
        size
        - UNSURE * max(0.0, SURE - sure)
        - NOISE * noise
        - 1.5 * digits
        - SHORT * ((said < 4) + (said < 7 and " " not in text and block.lines[0] not in layout.headers[:1]))
        - 2 * is_day(text)
        - 0.5 * (_VALUE.search(text) is not None)
        - RUNNING * (said > 90 or (text[-1:] in ".。" and len(text) > 30))
        - 0.5 * (_AGO.search(text) is not None)
        - 0.2 * min(2, odd)
        - 0.4 * (text.isupper() and size <= 0.5)
        - CUT * (layout.width > layout.height and _is_cut(text))
        - 1.0 * ("@" in text or SITE.search(text) is not None)
    )


def _is_cut(text: str) -> bool:
    """Whether a text may be a part of a logo."""
    return (text[:1].islower() and " " not in text) or (text.isupper() and text.isalpha() and len(text) <= 6)


def _is_menu(text: str) -> bool:
    """Whether a text is the links at the top of a web page, read as one line."""
    words = text.casefold().split()
    return len(words) >= 4 and (
        2 * sum(word in _LINKS for word in words) > len(words)
        or all(len(word) <= 4 and is_chinese(word[0]) for word in words)
    )
