"""Recognises in a text what must not leave this machine: cards, bank accounts, identity numbers, one-time
codes, passwords, keys, recovery phrases.

Every kind rests on a form that little else has (a check digit, a beginning, a list of words) or on a word
that names it beside it, in twelve languages. Words and forms are data with their sources (`words/*.toml`);
each kind has a module that reads them. The text was read from a picture, so letters that look like digits
count as digits, blanks inside a number do not matter, and a value may be on the lines below its label. All of
it takes linear time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, get_args

import msgspec

from rules import accounts, identity, keys, onetime, passwords, phrases
from rules.searched import MAX_CHARACTERS, Span, Text

Kind = Literal[
    "card",
    "iban",
    "national_id",
    "one_time_code",
    "password",
    "api_key",
    "private_key",
    "recovery_phrase",
]
KINDS: tuple[str, ...] = get_args(Kind)
# The version of these rules. What was judged by another one is judged again.
VERSION = 2

__all__ = ["KINDS", "MAX_CHARACTERS", "VERSION", "Finding", "Kind", "find", "kinds"]


class Finding(msgspec.Struct, frozen=True):
    """A piece of a line that is sensitive: the line's index, and the first and the last character, exclusive.
    What goes over several lines has a finding for each.
    """

    kind: str
    line: int
    start: int
    end: int


def find(lines: Sequence[str]) -> list[Finding]:
    """What is sensitive in `lines`, in their order."""
    text = Text("\n".join(line.replace("\n", " ") for line in lines))
    found = {
        Finding(kind, *piece)
        for kind, spans in _found(text).items()
        for start, end in spans
        for piece in text.pieces(start, end)
    }
    return sorted(found, key=lambda one: (one.line, one.start, one.end, one.kind))


def kinds(text: str) -> list[str]:
    """The kinds of what is sensitive in `text`, in the order of `KINDS`."""
    found = _found(Text(text))
    return [kind for kind in KINDS if found[kind]]


def _found(text: Text) -> dict[str, list[Span]]:
    """The places of each kind. What has a name of its own is not an access key as well."""
    found = {kind: list(finder(text)) for kind, finder in _FINDERS.items()}
    others = [
        span
        for kind in ("one_time_code", "password", "private_key", "recovery_phrase")
        for span in found[kind]
    ]
    found["api_key"] = [
        (start, end)
        for start, end in found["api_key"]
        if not any(first < end and start < last for first, last in others)
    ]
    return found


def _recovery(text: Text) -> Iterator[Span]:
    yield from phrases.recovery_phrases(text)
    yield from keys.recovery_keys(text)


_FINDERS: dict[str, Callable[[Text], Iterator[Span]]] = {
    "card": accounts.cards,
    "iban": accounts.bank_accounts,
    "national_id": identity.identity_numbers,
    "one_time_code": onetime.one_time_codes,
    "password": passwords.passwords,
    "api_key": keys.api_keys,
    "private_key": keys.private_keys,
    "recovery_phrase": _recovery,
}
