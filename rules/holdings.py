"""What a screenshot holds that people look for by its kind: a code, a link, a date.

A search filters by it (`has:link`), so it is stored, as the bits of one number.
"""

from collections.abc import Iterable
from typing import Literal, get_args

from rules import entities

Kind = Literal["code", "link", "date"]
KINDS: tuple[str, ...] = get_args(Kind)  # in the order of their bits; new ones are added at the end


def holdings(types: Iterable[str], text: str) -> int:
    """The kinds among the `types` of an analysis's entities, or found in the `text` by rules, as bits."""
    there = {kind.casefold() for kind in types} | {entity.type for entity in entities.entities_in(text)}
    return sum(bit(kind) for kind in KINDS if kind in there)


def bit(kind: str) -> int:
    """The number in which only the bit of this kind is set."""
    return 1 << KINDS.index(kind)
