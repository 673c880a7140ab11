"""What a screen with values is about: the name in its head, like a shop's, a hotel's or an event's; and which
words show what kind of such a screen it is (`words/contexts.toml`).
"""

import functools
import re
from collections.abc import Callable, Iterator

from engines.lines import Line
from rules import wordlists
from rules.labels import Labels
from rules.layout import Block, is_chinese, is_clock, letters, plain, weight
from rules.names import is_generic
from rules.pairs import Value
from rules.searched import fold
from rules.view import View

MAX_NAME = 70  # characters
LARGER = 1.25  # than the text is a name that is set apart from it
MOST_SAID = 400  # characters of a paragraph in which a name is looked for
HEAD = 0.6  # of the height: where the name of what a screen is about is
SENTENCE = re.compile(r"[.!?。！？]\s*$|[.!?]\s+[A-Z]")


@functools.cache
def words_of(name: str, part: str = "words") -> tuple[str, ...]:
    """The words of a list of `words/contexts.toml`."""
    text = wordlists.table("contexts")[name][part]
    return tuple(word.strip() for word in re.split(r",\s+", text.strip()) if word.strip(" ,"))


def any_of(name: str, part: str = "words") -> str:
    """An expression for the longest of the words of a list."""
    return wordlists.any_of(words_of(name, part))


_CAPITAL = r"[A-ZÀ-ÖØ-Ý][\w'’.&-]{0,30}"
_PROPER = (
    rf"(?:(?:{any_of('sentence', 'articles')}) )?{_CAPITAL}"
    rf"(?: (?:(?:{any_of('sentence', 'small')}) ){{0,2}}{_CAPITAL}){{0,4}}"
)
_BEFORE_NAME = re.compile(
    rf"(?<!\w)(?:{any_of('sentence', 'things')}) (?:\w{{1,12}} )?"
    rf"(?:{any_of('sentence', 'joiners')}) ({_PROPER})"
)
_BEHIND_NAME = re.compile(
    rf"(?<!\w)(?:{any_of('sentence', 'yours')}) ({_PROPER}) (?:{any_of('sentence', 'behind')})(?!\w)"
)
_CHINESE_NAME = re.compile(
    rf"(?:{any_of('sentence', 'leads')})([^\s，。：！,:]{{2,20}}?)(?:{any_of('sentence', 'trails')})"
)
_SPEAKER = re.compile(
    rf"^【([^】]{{2,20}})】|^([^\s，。：:]{{2,16}}?)(?:{any_of('sentence', 'warns')})[:：]"
    rf"|^({_PROPER}): (?:{any_of('sentence', 'yours')}) "
)


@functools.cache
def _labels(name: str, part: str) -> Labels:
    return Labels(words=(word.strip(",") for word in words_of(name, part)))


def evidence(view: View, name: str, part: str = "words") -> int:
    """How many different words of a list are on the screen."""
    return len({view.text.folded[slice(*span)] for span in _labels(name, part).find(view.text)})


def is_heading(text: str) -> bool:
    """Whether a text says what kind of screen it is, and names nothing."""
    folded = fold(plain(text)).strip(" .!:：！。")
    if folded in _headings() or is_generic(text):
        return True
    # 电费账单, 我的订单
    return is_chinese(folded[:1]) and len(folded) <= 6 and any(folded.endswith(one) for one in _endings())


def _endings() -> tuple[str, ...]:
    return words_of("heading", "endings")


@functools.cache
def _headings() -> frozenset[str]:
    lists = ("heading", "statuses")
    return frozenset(fold(word.strip(" ,!")) for name in lists for word in words_of(name))


def subject(view: View, accepts: Callable[[str], bool] = lambda text: True) -> Value | None:
    """The name in the head of a screen, the largest and uppermost that names something and that `accepts`."""
    layout = view.layout
    reach = layout.top + HEAD * min(layout.height, 2.4 * layout.width)
    navigation = {id(line) for line in layout.navigation.lines} if layout.navigation else set()
    best: tuple[float, Block] | None = None
    for block in _parts(view):
        text = plain(block.text)
        if (
            block.top > reach
            or id(block.lines[0]) in navigation
            or not names_something(view, text, block.lines[0])
        ):
            continue
        if not accepts(text):
            continue
        alone = view.pairs.beside(block.lines[0]) is None
        place = (block.top - layout.top) / max(1, reach - layout.top)
        score = 2.2 * min(2.5, block.height / max(1, layout.median)) - 1.6 * place + (0.6 if alone else 0)
        if best is None or score > best[0]:
            best = score, block
    return Value(_whose(plain(best[1].text)), best[1].lines, "above", "") if best else None


def _parts(view: View) -> Iterator[Block]:
    """The paragraphs of a screen; of one that labels follow in the same size, each line before them."""
    for block in view.layout.blocks:
        labels = [number for number, line in enumerate(block.lines) if view.pairs.begins_label(line)]
        if labels and len(block.lines) > 1:
            yield from (Block((line,), line.text) for line in block.lines[: labels[0]])
        else:
            yield block


def about(view: View, accepts: Callable[[str], bool] = lambda text: True) -> Value | None:
    """What a screen is about: a name that is set larger than the text, or one that a sentence names, or the
    name in its head.
    """
    found = subject(view, accepts)
    if found is not None and found.lines[0].height > LARGER * view.layout.median:
        return found
    named = mentioned(view)
    return named if named is not None and accepts(named.text) else found


def mentioned(view: View) -> Value | None:
    """The name in a sentence like "Thanks for your order at Blue Heron"."""
    for block in view.layout.blocks:
        for form in (_BEFORE_NAME, _BEHIND_NAME, _CHINESE_NAME, _SPEAKER):
            found = form.search(block.text[:MOST_SAID])
            name = next((one for one in found.groups() if one), "").strip(" ,") if found else ""
            if found and weight(name) >= 3 and not is_heading(name) and fold(name) not in _things():
                return Value(name, _lines_with(name, block), "inside", "")
    return None


def _lines_with(name: str, block: Block) -> tuple[Line, ...]:
    """The lines of a paragraph on which a name is, which may have been wrapped."""
    return (
        tuple(line for line in block.lines if name in line.text)
        or tuple(
            line for line in block.lines if any(part in line.text for part in name.split() if len(part) > 2)
        )
        or block.lines
    )


@functools.cache
def _things() -> frozenset[str]:
    return frozenset(fold(word) for part in ("things", "behind") for word in words_of("sentence", part))


def _whose(text: str) -> str:
    """A name without the heading before it: "Your order with Uber Eats"."""
    for joiner in re.finditer(rf"\s(?:{any_of('heading', 'joiners')})\s", text):
        if fold(text[: joiner.start()]) in _headings():
            return text[joiner.end() :]
    return text


def names_something(view: View, text: str, line: Line) -> bool:
    """Whether a text may be a name: no label, heading, sentence, amount, day or time."""
    if not 2 <= len(text) <= MAX_NAME or weight(text) < 3 or letters(text) < 0.6 or is_clock(text):
        return False
    if is_heading(text) or view.pairs.is_label(line) or view.pairs.begins_label(line):
        return False
    if SENTENCE.search(text) or "@" in text or "://" in text:
        return False
    return not view.money.prices(text) and not any(one.day or one.clock for one in view.moments.all(text))
