"""The lists of words that the rules go by. They are data, in `rules/words/*.toml`, each with its source: a
word is found and added there, and no code changes.

A list is one text with an entry a line, or with entries between spaces where none contains one: such texts
are read in a millisecond, arrays of a thousand strings are not.
"""

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

WORDS = Path(__file__).with_name("words")


def table(name: str) -> dict[str, Any]:
    """What `rules/words/{name}.toml` holds."""
    return tomllib.loads((WORDS / f"{name}.toml").read_text(encoding="utf-8"))


def lines(text: str) -> list[str]:
    """The entries of a list that has one a line."""
    return [line for line in text.splitlines() if line]


def words(text: str) -> frozenset[str]:
    """The entries of a list that separates them by spaces."""
    return frozenset(text.split())


def any_of(words: str) -> str:
    """An expression for any of these words, the longest first."""
    return "|".join(map(re.escape, sorted(words.split(), key=len, reverse=True)))


def either(names: str) -> str:
    """An expression for any of these names: English ones as whole words, and Chinese ones behind a bar."""
    english, _, chinese = names.partition("|")
    spoken = "|".join(re.escape(one.strip()) for one in sorted(english.split(","), key=len, reverse=True))
    return "|".join(filter(None, (rf"\b(?:{spoken})\b" if spoken else "", any_of(chinese))))


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
