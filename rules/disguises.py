"""What is sensitive in the arguments of a call or in a file's name, also where it is disguised: in other
signs, with blanks between the digits, or in pieces over several calls.
"""

import re
import unicodedata
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import Any

from errors import BadInput
from rules import sensitive

TOO_MUCH = "not sent: there is too much in the arguments to look whether something sensitive is in them."
MAX_VALUES = 2_000  # texts of a call's arguments that are looked at one by one
MAX_SPLIT = 300  # characters of a text that may be a piece of a number that was split over calls

_SINGLE_DIGITS = re.compile(r"(?<![0-9])([0-9])[ ,;._/|-]{1,3}(?=[0-9](?![0-9]))")
_NUMBER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{0,2}[0-9][0-9 ]{2,24}(?![A-Za-z0-9])")


def kinds_in(arguments: Any, *, earlier: Sequence[Any] = ()) -> tuple[str, ...]:
    """The kinds of what is sensitive in the arguments of a call, names included, also in pieces: in one text
    each, in all of them one after the other, and with the `earlier` calls of a turn. Raises `BadInput` when
    there is too much to look at.
    """
    named = texts_in("", arguments)
    values = [value for _, value in named if value]
    names = [name for name, _ in named if name]
    lines = "\n".join(f"{name}: {value}" if name else value for name, value in named)
    if len(named) > MAX_VALUES or len(lines) > sensitive.MAX_CHARACTERS:
        raise BadInput(TOO_MUCH)
    texts = (lines, "\n".join(dict.fromkeys(names)), "\n".join(values), " ".join(values))
    found: set[str] = set()
    for text in dict.fromkeys(texts):
        if not found:
            found = {kind for form in _forms(text) for kind in sensitive.kinds(form)}
    if not found and earlier:
        found = _across(
            [
                _numbers(*values),
                *(_numbers(*(text for _, text in texts_in("", one) if text)) for one in earlier),
            ]
        )
    return tuple(kind for kind in sensitive.KINDS if kind in found)


def plain_name(name: str) -> str:
    """A file's name, or "" where something sensitive is in it."""
    stem = re.sub(r"[_+-]", " ", name.rpartition(".")[0] or name)
    return "" if any(map(sensitive.kinds, (*_forms(name), *_forms(stem)))) else name


def _forms(text: str) -> Iterator[str]:
    """A text, and what it stands for where that differs: plain signs, usual letters, joined digits."""
    yield text
    plain = text if text.isascii() else "".join(map(_usual, text))
    plain = urllib.parse.unquote(urllib.parse.unquote(plain)) if "%" in plain else plain
    if plain != text:
        yield plain
    joined = _SINGLE_DIGITS.sub(r"\1", plain)
    if joined != plain:
        yield joined


def _usual(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    if category in ("Nd", "No", "Nl", "Ll", "Lu"):
        return unicodedata.normalize("NFKC", character)
    return character


def _numbers(*values: str) -> str:
    """The numbers in short texts, which may be pieces of one."""
    short = (value for value in values if len(value) <= MAX_SPLIT)
    return " ".join(found[0].strip() for value in short for found in _NUMBER.finditer(value))


def _across(pieces: Sequence[str]) -> set[str]:
    """What the numbers of two calls make together: cards, accounts and ids, which have check digits."""
    checked = {"card", "iban", "national_id"}
    now, *before = pieces
    joined = (
        f"{one} {other}" for some in before if some and now for one, other in ((some, now), (now, some))
    )
    return {kind for text in joined for kind in sensitive.kinds(text) if kind in checked}


def texts_in(name: str, value: Any) -> list[tuple[str, str]]:
    """The texts and numbers in a JSON value, in their order, each with the name of its field, which may be
    its label; one more than `MAX_VALUES` of them at most. A name whose value is no text has "".
    """
    found: list[tuple[str, str]] = []
    waiting = [(name, value)]
    while waiting and len(found) <= MAX_VALUES:
        label, one = waiting.pop()
        if isinstance(one, dict) and one:
            waiting += reversed([(str(key), item) for key, item in one.items()])
        elif isinstance(one, list) and one:
            waiting += [(label, item) for item in reversed(one)]
        elif one is not None and not isinstance(one, bool | dict | list):
            found.append((label, str(one)))
        elif label:
            found.append((label, ""))
    return found
