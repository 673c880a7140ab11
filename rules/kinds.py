"""Which kind of screen a page is: a conversation, a payment, an article, a ticket, settings and so on.

Evidence is weighed for each kind: words by their place (a word in the header or alone on a
line counts more than one in a sentence), and the layout: bubbles, a column of amounts or of times at the
right, an address bar, running text. A learned vote (`rules/vote.py`) weighs it against the rest of the screen
and chooses the category; by the rules alone, it is the kind with the most evidence if that is `ENOUGH`. Most
kinds belong to the contract's category `other`; they are there so that a screen of settings which names
every feature of a messenger is not taken for a conversation.

The phrases of each kind and what a kind means are in `rules/words/kinds.toml`.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from engines.lines import Line
from rules import wordlists
from rules.entities import CLOCK, MONTH, NUMBER, SHORT_WEEKDAY, SIGN, WEEKDAY
from rules.layout import Block, Layout, is_chinese, is_clock, weight

ENOUGH = 3.0
HEADER, ALONE, INSIDE = 1.6, 1.0, 0.55  # by what a word's weight is multiplied, by its place
LONG_MESSAGE = 400  # letters, Chinese ones counted double; longer blocks of a wide screen are an article's
MONTH_DAYS = 14  # numbers from 1 to 31 alone in their places: a month as a table
MOST_OF_WORDS = 7.0  # evidence from words alone; each further word of a kind counts less

_TABLE = wordlists.table("kinds")
# The contract's category of each kind; the probable reason for keeping such a screen, unless it names an
# appointment; and where a date beside a word like "due" is an appointment.
CATEGORY: dict[str, str] = {kind: entry["category"] for kind, entry in _TABLE.items()}
INTENT: dict[str, str] = {kind: entry["intent"] for kind, entry in _TABLE.items()}
# The kind of a screen of which only the category is known.
USUAL: dict[str, str] = {entry["category"]: kind for kind, entry in _TABLE.items() if entry.get("usual")}
DATED = frozenset({"", *(kind for kind, entry in _TABLE.items() if entry.get("dated"))})


class Verdict(NamedTuple):
    """The kind of a screen, "" when nothing has enough evidence; how much it has, its category, and how
    likely that is; how likely each type of record is, empty where there was no vote.
    """

    kind: str
    evidence: float
    category: str
    chance: float = 0.0
    types: Mapping[str, float] = MappingProxyType({})


def evidence(layout: Layout) -> dict[str, float]:
    """What speaks for each kind of screen."""
    found = _by_words(layout)
    for kind, amount in _by_layout(layout, found).items():
        found[kind] = found.get(kind, 0) + amount
    return found


def by_rules(found: Mapping[str, float]) -> Verdict:
    """The kind with the most evidence, if that is enough."""
    best = max(found, key=lambda kind: found[kind], default="")
    if not best or found[best] < ENOUGH:
        return Verdict("", max(0.0, found.get(best, 0.0)), "other")
    return Verdict(best, found[best], CATEGORY[best])


# ------------------------------------------------------------------------------------------------------ words

_PHRASES: dict[str, list[tuple[str, float, str]]] = {}
for _kind, _entry in _TABLE.items():
    for _weight in [key for key in _entry if key[0].isdigit()]:
        for _phrase in wordlists.lines(_entry[_weight]):
            _mark = _phrase[0] if _phrase[0] in "=#" and len(_phrase) > 1 else ""
            _PHRASES.setdefault(_phrase.removeprefix(_mark), []).append((_kind, float(_weight), _mark))
_LONGEST = max(map(len, _PHRASES))
_MAX_TEXT = 20_000  # characters that are compared with the phrases


_IN_SENTENCES = frozenset({"code"})  # messages, whose words are in sentences


def _by_words(layout: Layout) -> dict[str, float]:
    """The evidence of the words for each kind."""
    amounts: dict[str, list[float]] = {}
    for (kind, _), amount in phrases(layout).items():
        amounts.setdefault(kind, []).append(amount)
    return {kind: _together(found) for kind, found in amounts.items()}


def phrases(layout: Layout) -> dict[tuple[str, str], float]:
    """The phrases that a screen has, each with its kind, and what it speaks for that kind by its place."""
    best: dict[tuple[str, str], float] = {}
    read = 0
    headers = {id(line) for line in layout.headers[:1]}
    for line in [*_caption_lines(layout), *layout.lines]:
        text = line.text[:400]
        read += len(text)
        if read > _MAX_TEXT:
            break
        folded = " ".join(text.casefold().split())
        alone = _bare(folded)
        is_header = id(line) in headers
        for phrase in _phrases_in(folded, alone):
            for kind, worth, mark in _PHRASES[phrase]:
                whole = phrase == alone
                if (mark == "=" and not whole) or (mark == "#" and not (is_header and whole)):
                    continue
                place = HEADER if is_header and whole and mark != "#" else ALONE if whole or mark else INSIDE
                # In a long sentence, a word says little about the screen.
                if kind in _IN_SENTENCES:
                    place = ALONE
                elif not whole and len(folded) > 60:
                    place *= 0.6
                key = (kind, phrase)
                best[key] = max(best.get(key, 0), worth * place)
    return best


def _together(amounts: list[float]) -> float:
    """The evidence of several words: each further one counts a tenth less than the one before."""
    total, share = 0.0, 1.0
    for amount in sorted(amounts, reverse=True):
        total += amount * share
        share *= 0.88
    return min(MOST_OF_WORDS, total)


def _phrases_in(text: str, alone: str) -> set[str]:
    """The known phrases in a line: Latin ones as whole words, Chinese ones anywhere."""
    found = {alone} if alone in _PHRASES else set()
    for start in _STARTS.finditer(text):
        at = start.start()
        for first in _BY_START.get(text[at : at + 2], ()):
            if text.startswith(first, at) and _is_whole(text, at, at + len(first)):
                found.add(first)
    return found


_BY_START: dict[str, list[str]] = {}
for _phrase in _PHRASES:
    _BY_START.setdefault(_phrase[:2] if len(_phrase) > 1 else _phrase, []).append(_phrase)
for _phrase in [one for one in _PHRASES if len(one) == 1]:
    del _BY_START[_phrase]  # a single character counts only alone
# Where a phrase may begin: at a Chinese character, at a sign, or at the first letter of a word.
_STARTS = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]|[^\w\s]|(?<![a-z0-9])[a-z0-9äöü]")


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether Latin letters at the ends of a found phrase are the ends of words."""
    after = text[end : end + 1]
    last = text[end - 1 : end]
    return not (last.isascii() and last.isalpha() and after.isascii() and after.isalpha())


def _bare(text: str) -> str:
    """A line without counters and icons around its words: "chats (3)" is "chats"."""
    text = text.strip(" \t·•*|>›»<←→▼√×〉+☰=-_…。，,:：")
    if text.endswith((")", "）")):
        head = text[:-1].rstrip("0123456789+ ")
        if head.endswith(("(", "（")):
            text = head[:-1].rstrip()
    return text


def _caption_lines(layout: Layout) -> list[Line]:
    """The caption of a framed screen as a line without a place."""
    return [Line(layout.caption, 1.0, 0, 0, 0, 0)] if layout.caption else []


# ----------------------------------------------------------------------------------------------------- layout

# Alternatives of an expression, by the names in `rules/words/signs.toml`.
_ANY = {
    f"{part} {name}": "|".join(words.split())
    for part, lists in wordlists.table("signs").items()
    for name, words in lists.items()
}
AGO = (
    rf"{_ANY['ago days']}|just now|\d{{1,3}} ?(?:{_ANY['ago short']})\.?(?: ago)?"
    rf"|\d{{1,3}} (?:{_ANY['ago long']})s? ago|\d{{1,2}} (?:minutes?|hours?)(?= ?$)"
    rf"|vor \d{{1,3}} \w{{1,8}}\.?|\d{{1,3}} ?(?:{_ANY['ago chinese']})前"
)
_DAY = rf"{WEEKDAY}|{SHORT_WEEKDAY}\.?|(?:周|星期|週)[一二三四五六日天]"
WHEN_RIGHT = re.compile(
    rf"\W{{0,3}}(?:{AGO}|{_DAY}|{CLOCK}(?: ?[ap]m)?|\d{{1,2}}[-/.月]\d{{1,2}}日?"
    rf"|{MONTH}\.? \d{{1,2}}(?:, \d{{4}})?|\d{{1,2}} {MONTH}\.?|\d{{4}}-\d{{2}}-\d{{2}})\W{{0,4}}",
    re.IGNORECASE,
)
# The header of a notification: "Calendar · 5m". No name of a sender begins with a number or is a handle.
_HEADED = re.compile(
    rf"^(?!\W{{0,3}}\d|[ur]/|.{{0,30}}@)(.{{2,40}}?) ?[·•・∙] ?(?:{AGO})\W{{0,3}}$", re.IGNORECASE
)
AMOUNT_RIGHT = re.compile(
    rf"[-+−]? ?(?:{SIGN} ?{NUMBER}|{NUMBER} ?(?:€|£|元|USD|EUR|CNY)|{NUMBER}[.,]\d\d)|[-+−] ?{NUMBER}"
)
MONEY = re.compile(rf"{SIGN} ?\d|\d ?(?:€|£|元)")
HANDLE = re.compile(r"(?:^|[\s(])@\w[\w.]{1,40}")
HASHTAG = re.compile(r"(?:^|\s)[#＃][^\W\d_]\w")
COUNTED = re.compile(
    rf"(?:^|[^\w.])\d[\d.,]{{0,11}} ?[km]? (?:{_ANY['counted post']})\b"
    rf"|\d ?万?\+? ?(?:{_ANY['counted post_chinese']})|(?:{_ANY['counted post_before']}) ?\(?\d",
    re.IGNORECASE,
)
_VIEWED = re.compile(
    rf"\d[\d.,]{{0,11}} ?[kmb]? (?:{_ANY['counted video']})\b|\d ?万? ?(?:{_ANY['counted video_chinese']})",
    re.IGNORECASE,
)
_ENDS_IN_CLOCK = re.compile(rf"{CLOCK}(?: ?[ap]m)?\W{{0,6}}$", re.IGNORECASE)
_SENTENCE_ENDS = frozenset(".?!。？！…")
_YEAR = re.compile(r"(?:19|20)\d\d")
# Other lists with times at the right.
_ALSO_DATED = wordlists.words("mail notices tasks calendar files music video article contacts note weather")
_LENGTH = re.compile(r"\d{1,2}:\d\d ?/ ?\d{1,2}:\d\d")
_ADDRESS = re.compile(
    r"\W{0,6}(?:https?://\S{3,}|(?:[\w-]{1,63}\.){1,6}(?:com|org|net|io|dev|cn|de|uk|edu|gov|fr|jp|app|co)(?:[/?]\S*)?)"
    r"(?:\W.{0,4})?",
    re.IGNORECASE,
)
_VOTED = re.compile(r"(?:u|r)/\w{3,}|\d{1,9} ?[·•] ?\d{1,9}[hdmw]\b")
BY = "|".join(wordlists.table("writings")["byline"]["words"].split())  # alternatives of an expression
_BYLINE = re.compile(
    rf"(?:{BY}) [A-Z][\w.'-]{{1,30}} [A-Z][\w.'-]{{1,30}}|(?:{_ANY['byline chinese']})[:：/]"
    r"|·\s?\d{1,2} min"
)
_CODE_LINE = re.compile(
    r"[{};]\s{0,4}$|^\s{0,12}(?:def|class|import|return|if|for|const|let|var|func|\$) |\w\(.{0,60}\)[:;]?$"
)
_DAY_OF_MONTH = re.compile(r"[1-9]|[12][0-9]|3[01]")
_TEMPERATURE = re.compile(r"-?\d{1,3} ?(?:°|℃|℉|C\b)|H:\d{1,3}")


Evidence = Iterator[tuple[str, float]]  # a kind, and what speaks for it


def _by_layout(layout: Layout, words: Mapping[str, float]) -> dict[str, float]:
    """The evidence of places and forms for each kind, as far as `words` do not speak against it."""
    found: dict[str, float] = {}
    calm = words.get("settings", 0) < 4  # a screen of settings has few forms of its own
    parts = (
        *((_speech(layout, words), _dated_rows(layout, words)) if calm else ()),
        _money(layout, words),
        _notices(layout),
        *((_posts(layout),) if calm else ()),
        _running_text(layout, words),
        _grids(layout),
    )
    for kind, amount in itertools.chain.from_iterable(parts):
        found[kind] = found.get(kind, 0) + amount
    return {kind: amount for kind, amount in found.items() if amount}


def _speakers(layout: Layout) -> tuple[list[Block], list[Block]]:
    """The bubbles with words in them, on the left and on the right."""
    left, right = layout.bubbles
    return [one for one in left if weight(one.text) >= 6], [one for one in right if weight(one.text) >= 6]


def _speech(layout: Layout, words: Mapping[str, float]) -> Evidence:
    said_left, said_right = _speakers(layout)
    if not (said_left and said_right and len(said_left) + len(said_right) >= 3):
        return
    clocks = sum(_ENDS_IN_CLOCK.search(line.text[-16:]) is not None for line in layout.lines)
    sentences = sum(block.text.rstrip()[-1:] in _SENTENCE_ENDS for block in [*said_left, *said_right])
    # On a wide screen, two columns of text look like two speakers.
    is_wide = layout.width > layout.height
    columns = is_wide and max(weight(block.text) for block in layout.blocks) > LONG_MESSAGE
    if not columns and (clocks or layout.width < layout.height or words.get("conversation", 0) >= 1):
        yield "conversation", 1.8 + 0.4 * min(4, clocks) + 0.3 * min(3, len(said_right))
        yield "conversation", 0.25 * min(4, sentences)


def _dated_rows(layout: Layout, words: Mapping[str, float]) -> Evidence:
    dated = layout.values(WHEN_RIGHT)
    if len(dated) >= 3:
        # Who wrote is a short name; what has a year beside it is an article, a file or a task.
        recent = [row for row in dated if len(row.first.text) <= 28 and not _YEAR.search(row.last.text)]
        wrapped = sum(len(block.lines) >= 2 for block in layout.body)
        if len(recent) >= 3 and 3 * wrapped <= len(recent) + 2:
            others = max((words.get(kind, 0) for kind in _ALSO_DATED), default=0)
            yield "conversations", (2.4 if len(recent) < 5 else 3.1) - (1.5 if others >= 3 else 0)
        for kind, amount in (("notices", 1.2), ("mail", 1.0)):
            if words.get(kind, 0) >= 0.5:
                yield kind, amount
    below = sum(
        len(row.lines) == 1 and WHEN_RIGHT.fullmatch(row.first.text.strip()) is not None
        for row in layout.rows
    )
    ends = sum(line.text.rstrip().endswith(("?", "!", "？", "！", "。")) for line in layout.lines)
    if below >= 4 and ends >= 2:
        yield "conversations", 3.1


def _money(layout: Layout, words: Mapping[str, float]) -> Evidence:
    paid = layout.values(AMOUNT_RIGHT)
    money = sum(MONEY.search(line.text) is not None for line in layout.lines)
    if len(paid) >= 3 and (
        money >= 1 or sum("." in row.last.text or "," in row.last.text for row in paid) >= 3
    ):
        yield "accounts", 2.5 if money >= 2 else 1.6
    if money >= 4:
        yield "accounts", 1.4
    if money >= 1 and layout.heading is None and words.get("payment", 0) >= 1:
        yield "payment", 0.6
    if any(line.height >= 1.45 * layout.median and MONEY.search(line.text) for line in layout.lines):
        for kind in ("payment", "accounts", "shop"):
            if words.get(kind, 0) >= 1:
                yield kind, 1.6


def _notices(layout: Layout) -> Evidence:
    senders = sum(headed(line.text) != "" for line in layout.lines)
    yield "notices", min(4.5, 3.2 * senders)
    if is_lock_screen(layout):
        yield "lock_screen", 3.5 + min(2, senders)
    elif any(line.height >= 2.2 * layout.median and is_clock(line.text) for line in layout.lines) and senders:
        yield "lock_screen", 3


def _posts(layout: Layout) -> Evidence:
    texts = [line.text for line in layout.lines]
    handles = sum(HANDLE.search(text) is not None for text in texts)
    counted = sum(COUNTED.search(text) is not None for text in texts)
    viewed = sum(_VIEWED.search(text) is not None for text in texts)
    tagged = sum(HASHTAG.search(text) is not None for text in texts)
    voted = sum(_VOTED.search(text) is not None for text in texts)
    yield "post", min(3.4, 1.5 * min(2, handles) + 0.4 * max(0, handles - 2))
    yield "post", min(4.0, 2.4 * counted) + min(1.6, 0.8 * tagged) + min(2.5, 1.0 * voted)
    yield "video", min(3.6, 2.0 * viewed) + (1.5 if any(map(_LENGTH.search, texts)) else 0)


def _running_text(layout: Layout, words: Mapping[str, float]) -> Evidence:
    texts = [line.text for line in layout.lines]
    article = 0.0
    long = sum(weight(block.text) for block in layout.paragraphs)
    if long >= 200 and not all(_speakers(layout)):
        article += min(3.0, long / 200)
    if any(_BYLINE.search(text) for text in texts[:14]):
        article += 1.4
    if layout.heading is not None and long >= 200:
        article += 0.8
    yield "article", article
    edges = (
        line
        for line in layout.all_lines
        if line.bottom < layout.top + 0.16 * layout.height or line.top > 0.9 * layout.height
    )
    if any(_ADDRESS.fullmatch(line.text.strip()[:200]) for line in edges):
        yield "page", 3.0 + 0.6 * (words.get("article", 0) + article)
    code = sum(_CODE_LINE.search(text[:200]) is not None for text in texts)
    if code >= 4 and code * 3 >= len(texts):
        yield "source", 3.5


def _grids(layout: Layout) -> Evidence:
    texts = [line.text for line in layout.lines]
    if sum(_TEMPERATURE.search(text) is not None for text in texts) >= 4:
        yield "weather", 3
    if len(days_of_month(layout)) >= MONTH_DAYS:
        yield "calendar", 3.5
    grid = [
        row
        for row in layout.rows
        if len(row.lines) >= 3 and all(2 <= len(one.text) <= 12 for one in row.lines)
    ]
    if len(grid) >= 3 and 3 * len(grid) >= 2 * len(layout.rows) - 3:
        yield "home_screen", 3.2


def days_of_month(layout: Layout) -> list[Line]:
    """The numbers of days that a month has as a table, each alone in its cell."""
    return [line for line in layout.lines if _DAY_OF_MONTH.fullmatch(line.text.strip())]


_DOTS = re.compile(r"[·•・∙]")


def headed(text: str, *, with_address: bool = False) -> str:
    """The sender in the header of a notification, "" when a text is none. The bell or the arrow behind the
    time may have been read as one character. With an address, as in "Anna · anna@example.org · now", it is
    one on a lock screen only; elsewhere it is a post.
    """
    text = text[:80].rstrip()
    if with_address and "@" in text:
        first, last = _DOTS.split(text)[0], _DOTS.split(text)[-1]
        return first.strip() if WHEN_RIGHT.fullmatch(last.strip()) and "@" not in first else ""
    match = _HEADED.match(text)
    if match is None and (text[-2:-1] == " " or is_chinese(text[-1:])):
        match = _HEADED.match(text[:-1])
    return match[1] if match else ""


def is_lock_screen(layout: Layout) -> bool:
    """Whether there is a clock in digits far larger than the other text, and a date close to it."""
    clock = next(
        (line for line in layout.all_lines if is_clock(line.text) and line.height >= 2.2 * layout.median),
        None,
    )
    if clock is None:
        return False
    near = (
        line
        for line in layout.all_lines
        if line is not clock and abs(line.top - clock.bottom) < 3 * clock.height
    )
    return any(_DATED.search(line.text[:80]) for line in near)


_DATED = re.compile(rf"{MONTH}|\d月|周[一二三四五六日]|星期", re.IGNORECASE)
