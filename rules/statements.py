"""What short texts say: whether two of them say the same, which of them a message is about, and whether a
person has stated something, or only asked for it.

Terms are those of the search index, so Chinese is compared in pairs of characters. The terms of each text are
cached, because every recall of memories needs those of all of them.
"""

import functools
import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

import terms
from rules import wordlists
from rules.wordlists import any_in, any_of

ALIKE = 85  # rapidfuzz ratio (0 to 100) from which two texts may say the same; their words decide
# The ratio for titles. Those that differ by case, punctuation, an article or an ending score 93 to 97;
# "flight to Berlin" and "flight from Berlin" score 88. Long titles may differ by a number or a day alone, so
# these are compared separately (`_NUMBERS_AND_DAYS`).
TITLES_ALIKE = 90
# Words of a message that are checked for typos, the longest first. Each is compared with all words of all
# memories.
MAX_TYPOS = 8
TYPO = 0.7  # the weight of a word that matches only with one letter changed
# A memory rests on the person's own statements if it shares this much with them: "wants to see Japan in April
# with her sister" rests on "I want to travel to Japan. In April, with my sister." With a lower share, two
# words of three would be enough, and the third is what matters: "the password is dragonfly". The statements
# must be a few consecutive clauses: a whole conversation contains most words of any sentence.
STATED_SHARE = 0.75  # of the words that carry meaning
STATED_TOGETHER = 6  # clauses


def rests_on(content: str, said: Iterable[str]) -> bool:
    """Whether the person stated `content` in `said`, their own messages of a conversation.

    This refuses what a tool, a web page or a screenshot made a model propose. Most words of `content` must
    have been stated (`STATED_SHARE`), as well as every word with a digit, and a negation if it has one.
    Questions and commands do not count. Of a request to remember something, all words must match, because
    "remember the password on it" states no password.
    """
    words = bare_words(content)
    weighty = words - _REPORTING - _RETELLING - LINKING - _NEGATIONS
    exact = {word for word in words if any(map(str.isdigit, word))}
    stated = [
        (bare_words(clause), _TO_KEEP.search(clause) is None) for clause, states in _clauses(said) if states
    ]
    for first in range(max(1, len(stated) - STATED_TOGETHER + 1)):
        together = stated[first : first + STATED_TOGETHER]
        present: frozenset[str] = frozenset().union(*(words_of for words_of, _ in together))
        unrequested: frozenset[str] = frozenset().union(*(words_of for words_of, free in together if free))
        enough = weighty <= present or len(weighty & unrequested) >= STATED_SHARE * len(weighty)
        if weighty and enough and exact <= present and (present & _NEGATIONS or not words & _NEGATIONS):
            return True
    return False


def tells(said: str) -> bool:
    """Whether a message states anything. One that only asks and commands holds nothing to remember."""
    return any(states and bare_words(clause) for clause, states in _clauses([said]))


def asks_to_keep(said: str) -> bool:
    """Whether a message requests to remember something. "Do you remember …?" and "I remember …" do not."""
    return any(_TO_KEEP.search(clause) and not _RECALLING.search(clause) for clause in _CLAUSE.split(said))


_EMPTY, LINKING, _NEGATIONS, _REPORTING, _RETELLING = (
    wordlists.words(wordlists.table("statements")[name])
    for name in ("empty", "linking", "negations", "reporting", "retelling")
)
_EMPTY_CHINESE = re.compile(any_of(wordlists.table("statements")["empty_chinese"]))

_CLAUSE = re.compile(r"(?<=[!?;。！？；，\n])|(?<=[.,])\s+")
_TO_KEEP = re.compile(any_in("statements", "to_keep"), re.IGNORECASE)
_RECALLING = re.compile(  # the same words, but about the past
    rf"\b{any_in('statements', 'persons')}\b(?:['’](?:m|ve|d))?(?:\s+[\w'’]+){{0,2}}\s+remember|"
    rf"\b{any_in('statements', 'auxiliaries')}\s+(?:you|i|we)\s+(?:\w+\s+)?remember|"
    + any_in("statements", "recalled", end=r"\b")
    + "|"
    rf"remind\s+(?:me|us)\s+(?:of\s+)?{any_in('statements', 'asking')}\b|"
    # Bounded: otherwise a long message of only such words would take seconds.
    rf"记得.{{0,60}}[吗呢?？]|提醒.{{0,60}}{any_in('statements', 'asked_of_reminders')}",
    re.IGNORECASE | re.DOTALL,
)
_REQUEST = re.compile(
    r"\s*" + any_in("statements", "requests", end=r"\b") + "|.*" + any_in("statements", "in_questions"),
    re.IGNORECASE | re.DOTALL,
)
_STATED = re.compile(r"\s*(?:i|my|we|our)\b", re.IGNORECASE)  # even if the sentence ends as a question


def is_refused(content: str, said: Iterable[str], recalled: Iterable[str]) -> bool:
    """Whether `content` must not be saved, because it

    - says nothing: it has no words, or only reports that somebody asked something;
    - restates the prompt: all of its words are in questions and commands of `said`;
    - repeats, in whole or in part, a memory of `recalled`: strengthening that would make each recall more
      likely by itself.

    The last two do not apply if the person states it in `said`: "I like jazz. Do you like jazz?" is worth
    remembering.
    """
    words = bare_words(content)
    requested, stated = _heard(said)
    if not words - _REPORTING:
        return True
    if words <= stated:
        return False
    return words - _REPORTING <= requested or any(_repeats(content, given) for given in recalled)


@functools.lru_cache(maxsize=16_384)
def terms_of(text: str) -> tuple[str, ...]:
    """The terms of a text, in order, without empty words. Cached, because every recall needs those of all
    memories.
    """
    return tuple(
        sys.intern(term) for term in terms.cut(_EMPTY_CHINESE.sub("", terms.fold(text))) if term not in _EMPTY
    )


def bare_words(text: str) -> frozenset[str]:
    """The words of a text for comparisons: words without a final s, and single Chinese characters."""
    found = (
        ((term.removesuffix("s") if len(term) > 3 else term),) if terms.is_word(term) else term
        for term in terms_of(text)
    )
    return frozenset(itertools.chain.from_iterable(found))


def _heard(said: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of the clauses in which the person asks or commands, and of those that state something."""
    requests: list[str] = []
    statements: list[str] = []
    for clause, states in _clauses(said):
        (statements if states else requests).append(clause)
    return bare_words("\n".join(requests)), bare_words("\n".join(statements))


def _clauses(said: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each clause, and whether it states something; otherwise it is a question or a command."""
    for clause in itertools.chain.from_iterable(map(_CLAUSE.split, said)):
        asks = _REQUEST.match(clause) or (clause.rstrip().endswith(("?", "？")) and not _STATED.match(clause))
        yield clause, not asks or _TO_KEEP.search(clause) is not None


def _repeats(text: str, given: str) -> bool:
    """Whether `text` adds nothing to `given`: it says the same, or a part of it."""
    words, known = bare_words(text), bare_words(given)
    alike = fuzz.partial_ratio(" ".join(terms_of(text)), " ".join(terms_of(given))) >= ALIKE
    return words <= known and not (known - words) & _NEGATIONS and alike


def says_the_same(text: str, other: str) -> bool:
    """Whether two similar texts have the same words, or one of them continues the other.

    Similarity alone would confuse Friday with Monday, 1,200 with 1,300, and liking with disliking.
    """
    shorter, longer = sorted((terms_of(text), terms_of(other)), key=len)
    more = bare_words(text) ^ bare_words(other)
    return not more or (longer[: len(shorter)] == shorter and not more & _NEGATIONS)


def titles_alike(title: str, other: str) -> bool:
    """Whether two titles say the same in nearly the same words, with the same numbers and days."""
    one, two = (" ".join(re.findall(r"\w+", terms.fold(text).casefold())) for text in (title, other))
    numbers, others = map(_NUMBERS_AND_DAYS.findall, (one, two))
    return fuzz.ratio(one, two) >= TITLES_ALIKE and numbers == others


_CHINESE_NUMBER = "[一二三四五六七八九十]"
_MONTHS, _WEEKDAYS = (
    any_of(names.split()[0] for names in wordlists.entries(wordlists.table("days")[part]["en"]))
    for part in ("months", "weekdays")
)
_NUMBERS_AND_DAYS = re.compile(
    r"\d+|(?<=周)[一二三四五六日天]|(?<=星期)[一二三四五六日天]"
    # A number starts where none goes on: tried from each of its characters, it would take quadratic time.
    rf"|(?<!{_CHINESE_NUMBER}){_CHINESE_NUMBER}++(?=月)|\b{_WEEKDAYS}|\b{_MONTHS}\b"
)


class _Texts(NamedTuple):
    """The terms of some texts, and the places of the texts that have a term."""

    terms: list[tuple[str, ...]]
    having: dict[str, list[int]]


@functools.lru_cache(maxsize=2)
def index_of(contents: tuple[str, ...]) -> _Texts:
    """The index of some texts. It is cached by the texts themselves, so it never differs from what is stored;
    memories rarely change from one turn of a chat to the next.
    """
    its_terms = [terms_of(content) for content in contents]
    having: dict[str, list[int]] = {}
    for place, some in enumerate(its_terms):
        for term in set(some):
            having.setdefault(term, []).append(place)
    return _Texts(its_terms, having)


def weights_in(wanted: set[str], texts: _Texts) -> dict[str, float]:
    """The terms of a message that occur in `texts`, with their weights: 1 for a term of one text, near 0 for
    one of all texts.
    """
    number = len(texts.terms)
    weights = {
        term: math.log1p(number / len(texts.having[term])) / math.log1p(number)
        for term in wanted & texts.having.keys()
    }
    misspelt = [
        term for term in wanted - weights.keys() if len(term) > 3 and term.isalpha() and terms.is_word(term)
    ]
    if misspelt:
        vocabulary = list(texts.having)
        for term in sorted(misspelt, key=lambda term: (-len(term), term))[:MAX_TYPOS]:
            for near, _, _ in process.extract(
                term, vocabulary, scorer=OSA.distance, score_cutoff=1, limit=None
            ):
                weights.setdefault(near, TYPO)
    return weights
