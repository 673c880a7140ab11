"""The lists of words that the rules go by. They are data, in `rules/words/*.toml`, each with its source: a
word is found and added there, and no code changes.

A list is one text with an entry a line, or with entries between spaces where none contains one, or between
commas: such texts are read in a millisecond, arrays of a thousand strings are not.
"""

import functools
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WORDS = Path(__file__).with_name("words")
# What is around a word in letters, in expressions that ignore case.
START, END = r"(?<![a-z])", r"(?![a-z])"
_UNSPACED = "\u2e80"  # here begin scripts whose words have no blanks between them, or have endings


@functools.cache
def table(name: str) -> dict[str, Any]:
    """What `rules/words/{name}.toml` holds."""
    return tomllib.loads((WORDS / f"{name}.toml").read_text(encoding="utf-8"))


def lines(text: str) -> list[str]:
    """The entries of a list that has one a line."""
    return [line for line in text.splitlines() if line]


def words(text: str) -> frozenset[str]:
    """The entries of a list that separates them by spaces."""
    return frozenset(text.split())


def entries(text: str) -> list[str]:
    """The entries of a list that has commas between them."""
    return [entry for part in text.split(",") if (entry := " ".join(part.split()))]


def listed(name: str, part: str) -> list[str]:
    """The entries of a list of `words/{name}.toml` in all its languages, with commas between them."""
    return [entry for text in table(name)[part].values() for entry in entries(text)]


def numbered(name: str, part: str, first: int = 0) -> dict[str, int]:
    """The number of each word of such a list whose entries are in their order, like the months; an entry has
    all forms of a name, between spaces.
    """
    return {
        form: number
        for text in table(name)[part].values()
        for number, forms in enumerate(entries(text), first)
        for form in forms.split()
    }


def any_in(name: str, part: str, start: str = "", end: str = "") -> str:
    """An expression for any entry of `listed(name, part)`; `start` and `end` as in `any_of`."""
    return any_of(listed(name, part), start, end)


def any_of(words: str | Iterable[str], start: str = "", end: str = "") -> str:
    """An expression for any of these words, the longest first; a text has them between spaces. `start` and
    `end` are around those of scripts that have blanks between words.
    """
    words = words.split() if isinstance(words, str) else words
    found = sorted(set(words), key=lambda word: (-len(word), word))
    spaced = "|".join(re.escape(word) for word in found if word[0] < _UNSPACED)
    others = "|".join(re.escape(word) for word in found if word[0] >= _UNSPACED)
    if spaced and (start or end):
        spaced = f"{start}(?:{spaced}){end}"
    return "(?:" + ("|".join(filter(None, (spaced, others))) or "(?!)") + ")"


def either(names: str) -> str:
    """An expression for any of these names: English ones with commas between them, as whole words, and
    Chinese ones behind a bar, with spaces.
    """
    english, _, chinese = names.partition("|")
    return any_of([*entries(english), *chinese.split()], r"\b", r"\b")


def is_interface(text: str) -> bool:
    """Whether a text is a label that many apps have (`words/interface.toml`)."""
    return text.casefold().replace("’", "'").strip(" .…。!！?？•·+|_[]()（）:：>›") in _interface()


@functools.cache
def _interface() -> frozenset[str]:
    return frozenset(word for text in table("interface")["labels"].values() for word in lines(text))


@functools.cache
def parts_of_labels() -> tuple[frozenset[str], frozenset[str]]:
    """The last two characters of all such labels, and their words with those that tell kinds of screens."""
    labels = _interface()
    kinds = " ".join(
        text for kind in table("kinds").values() for text in kind.values() if isinstance(text, str)
    )
    return frozenset(label[-2:] for label in labels), frozenset(" ".join(labels).split()) | words(kinds)
