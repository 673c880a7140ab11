"""The words that name something sensitive (`words/labels.toml`), where they are in a text, and how random
what follows them is.

A label is judged with capitals and accents folded, at the bounds of words: "DB_PASSWORD", "clientSecret" and
"Benutzerkennwort" are labels, "1Password" is none. Chinese, Japanese and Korean have no bounds of words.
"""

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator

from rules import wordlists
from rules.searched import Span, Text, fold


class Labels:
    """The words of some lists, in all languages. The expression for them is made when it is first needed."""

    def __init__(self, *names: str, words: Iterable[str] = ()):
        """The words of these lists of `labels.toml`, and `words`."""
        self._names, self._words = names, tuple(words)

    @functools.cached_property
    def expression(self) -> re.Pattern[str]:
        """Matches the longest of the words, folded."""
        return re.compile(_alternatives({*self._words_in(*self._names), *map(fold, self._words)}))

    @functools.cached_property
    def _ends(self) -> tuple[str, ...]:
        """Those that may end a longer word."""
        lists = (wordlists.table("labels")[name]["ends"] for name in self._names)
        return tuple(fold(word) for text in lists for word in wordlists.entries(text))

    def _words_in(self, *names: str) -> Iterator[str]:
        for name in names:
            yield from words(name)

    def find(self, text: Text, start: int = 0, end: int | None = None) -> Iterator[Span]:
        """Where one of the words is between two places."""
        folded = text.folded
        for match in self.expression.finditer(folded, start, len(folded) if end is None else end):
            if _begins(text, match.start(), match[0], self._ends) and _ends(text, match.end()):
                yield match.span()

    def are_in(self, text: Text, start: int, end: int) -> bool:
        return any(True for _ in self.find(text, max(0, start), max(0, end)))


@functools.cache
def words(name: str) -> frozenset[str]:
    """The words of a list, folded."""
    return frozenset(map(fold, wordlists.listed("labels", name)))


def _alternatives(found: Collection[str]) -> str:
    """An expression for the longest of some words, by their first letters: so that at most places one look
    decides. What stands between the words of a label may be read as something else, or not at all.
    """
    groups = itertools.groupby(sorted(found), key=lambda word: word[0])
    branches = []
    for first, group in groups:
        rest = sorted((word[1:] for word in group), key=lambda word: (-len(word), word))
        branches.append(re.escape(first) + "(?:" + "|".join(map(_spaced, rest)) + ")")
    return "|".join(branches)


def _spaced(word: str) -> str:
    return (
        re.sub(r"(?:\\ )+", "[ _.:-]{0,2}\\\\n?", re.escape(word))
        .replace("\\-", "[ -]?")
        .replace("'", "['` ]?")
    )


def _begins(text: Text, start: int, word: str, ends: tuple[str, ...]) -> bool:
    before = text.folded[start - 1 : start]
    if not before.isalnum() or not _is_spaced(word[0]) or not _is_spaced(before):
        return True
    if before.isalpha() and word in ends:
        return True
    return len(word) > 4 and text.text[start].isupper() and text.text[start - 1].islower()


def _ends(text: Text, end: int) -> bool:
    after = text.folded[end : end + 1]
    if not after.isalpha() or not _is_spaced(after) or not _is_spaced(text.folded[end - 1]):
        return True
    return text.text[end].isupper() and text.text[end - 1].islower()


def _is_spaced(character: str) -> bool:
    """Whether words of the character's script have blanks between them, as far as labels need it."""
    return character < "\u0e00"


# ------------------------------------------------------------------------------------------------- randomness

_MASK = re.compile(r"[*•·●∙⬤xX._…#-]{3,80}.{0,4}|.{0,6}(?:[*•●∙⬤]{2,80}|…|\.{3}).{0,6}")
_DATE_OR_CLOCK = re.compile(r"\d{1,4}([-/.:])\d{1,2}(?:\1\d{1,4})?(?:[apAP]\.?[mM]\.?)?")
_VERSION = re.compile(r"[vV]?\d{1,4}(?:\.\d{1,6}){1,4}")
_AMOUNT = re.compile(r"[$€£¥]?\d{1,3}(?:[.,]?\d{3}){0,4}(?:[.,]\d{1,2})?[$€£¥%]?")
# What programs write instead of a value.
_PLACEHOLDER = re.compile(
    r"\$\{?[A-Za-z_.]{1,60}\}?|<[^<>]{1,60}>|\{\{?[^{}]{1,60}\}?\}|%\(?[A-Za-z_]{1,40}\)?[sd%]?"
    r"|\[[A-Za-z _-]{1,40}\]"
    r"""|[A-Za-z_][A-Za-z_0-9.]{0,60}[(\[](?:["'][^"']{0,60}["']|[A-Za-z_., =]{0,60})[)\]]{0,2}[;,.:)]{0,3}"""
    r"|[A-Za-z_]{1,40}(?:\.[A-Za-z_]{1,40}){1,6}[;,)]?"
)
_ADDRESS = re.compile(
    r"(?:https?:|www\.)[^\s]{1,200}|[^\s@]{1,64}@[^\s@]{1,80}\.[a-zA-Z]{2,10}[.,;]?"
    r"|/(?:[A-Za-z0-9_.-]{1,40}/){0,8}[A-Za-z_.-]{1,40}/?"
)
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")


def transitions(value: str) -> int:
    """How often small letters, capitals and digits take turns, without other signs: random text does so at
    every second character, words and dates hardly ever. A capital before small letters is none.
    """
    plain = re.sub(r"[^A-Za-z0-9]", "", value[:400])
    pieces = _CLASSES.findall(plain)
    changes = len(pieces) - 1
    for piece, following in itertools.pairwise(pieces):
        if len(piece) == 1 and piece.isupper() and following.islower() and len(following) > 2:
            changes -= 1
    return max(0, changes)


def is_random(value: str, least: int = 16) -> bool:
    """Whether a value is as random as a key: long, of many characters, with letters and digits in turns."""
    plain = re.sub(r"[^A-Za-z0-9]", "", value[:600])
    if len(plain) < least or len(set(plain.lower())) < 7 or _is_no_value(value):
        return False
    if not any(map(str.isalpha, plain)):
        return False
    turns = transitions(value)
    if any(map(str.isdigit, plain)):
        return turns >= max(3, min(len(plain), 64) // 8)
    # Letters alone: capitals among small ones, or no vowels for a long time.
    return turns >= len(plain) // 4 or bool(re.search(r"[bcdfghjklmnpqrstvwxz]{6}", plain.lower()))


def is_made(value: str, *, digits_alone: int = 8) -> bool:
    """Whether a text without a sign of it is a password: one word with digits or signs between letters."""
    if (
        " " in value
        or any(one >= "\u0e00" for one in value)
        or (not 6 <= len(value) <= 64 and not value.isdigit())
        or is_excluded(value)
    ):
        return False
    if value.isdigit():
        return digits_alone <= len(value) <= 24
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    signs = any(character in "!@#$%^&*_+=?~-./:" for character in value[:-1].lstrip("("))
    return letters and (digits or (signs and not _is_words(value)))


def is_excluded(value: str) -> bool:
    """Whether a value is none, as a whole: a mask, a day, a version, a word of a form or of a program."""
    plain = value.strip("\"'`.,;:()[]<>!?…")
    return len(plain) < 1 or fold(plain) in words("prose") or _is_no_value(value) or _is_no_value(plain)


def _is_no_value(value: str) -> bool:
    if any(form.fullmatch(value) for form in (_MASK, _DATE_OR_CLOCK, _VERSION, _PLACEHOLDER, _ADDRESS)):
        return True
    return bool(_AMOUNT.fullmatch(value)) and not value.isdigit()


def _is_words(value: str) -> bool:
    """Whether a value is nothing but words with a sign between them: sign-in, e-mail, and/or."""
    return all(
        part.isalpha() and (part.islower() or part.istitle() or part.isupper())
        for part in re.split(r"[-/_.&+:]", value.strip(".:"))
    )


def is_phrase(value: str, least: int = 3) -> bool:
    """Whether a text is a password of several words: at most one of four is one of a sentence or a form."""
    parts = re.split(r"[ -]+", value.strip(" .\"'"))
    if not least <= len(parts) <= 12 or not all(part.isalpha() and 3 <= len(part) <= 14 for part in parts):
        return False
    alike = all(map(str.islower, parts)) or all(map(str.istitle, parts)) or all(map(str.isupper, parts))
    prose = words("prose")
    ordinary = sum(fold(part) in prose for part in parts)
    return alike and len(set(parts)) == len(parts) and ordinary <= (len(parts) > 3)
