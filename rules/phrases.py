"""Recovery phrases in a text: words of the list of BIP-39 in a row, numbered or not, over lines and in
columns.

The words are the English list of BIP-39, unchanged from https://github.com/trezor/python-mnemonic (MIT
licence, © 2013-2016 Pavol Rusnak), in `bip39-english.txt`.
"""

import bisect
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from rules.labels import Labels
from rules.searched import Span, Text

PHRASE_LENGTHS = (12, 15, 18, 21, 24)
LEAST_WORDS = PHRASE_LENGTHS[0]
LEAST_READ = 10  # of twelve words, where the screen says what they are
NAMED_WITHIN = 600  # characters between a word and what says that it is one of a phrase: a large screen
_PHRASE_WORD = Labels("recovery")
_WORD = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]+")


def recovery_phrases(text: Text) -> Iterator[Span]:
    names = [start for start, _ in _PHRASE_WORD.find(text)]
    run: list[tuple[re.Match[str], bool]] = []  # the words in order, and whether each is of the list
    named = False
    for word in _WORD.finditer(text.text):
        if word[0] in ("l", "I", "i"):
            continue  # the number 1 of a list
        known = is_listed(word[0])
        if not run:  # a whole conversation may name a phrase somewhere
            nearest = bisect.bisect_left(names, word.start() - NAMED_WITHIN)
            named = nearest < len(names) and names[nearest] < word.end() + NAMED_WITHIN
        if known or (named and run and run[-1][1]):  # one that was misread, between two of the list
            run.append((word, known))
            continue
        yield from _phrase(run, named)
        run = []
    yield from _phrase(run, named)


def _phrase(run: list[tuple[re.Match[str], bool]], named: bool) -> Iterator[Span]:
    while run and not run[-1][1]:
        run.pop()
    known = sum(one for _, one in run)
    if named:
        # Ten of twelve in a row: in prose, every other word may be on the list.
        starts = range(max(1, len(run) - LEAST_WORDS + 1))
        enough = len(run) >= LEAST_WORDS - 1 and any(
            sum(one for _, one in run[start : start + LEAST_WORDS]) >= LEAST_READ for start in starts
        )
    else:  # wallets write small letters, lists of topics do not
        enough = known >= LEAST_WORDS and all(word[0].islower() for word, _ in run)
    # A list of the same few words is none, nor is prose, in which some words come back.
    if enough and len({word[0].lower() for word, _ in run}) >= len(run) * 3 // 4:
        yield run[0][0].start(), run[-1][0].end()


def is_listed(word: str) -> bool:
    """Whether it is one of the 2,048 words, which are everyday ones."""
    return word.lower() in _bip39()


@functools.cache
def _bip39() -> frozenset[str]:
    path = Path(__file__).with_name("bip39-english.txt")
    return frozenset(path.read_text(encoding="ascii").split())
