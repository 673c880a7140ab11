"""Which records a screen holds: the makers of all types, in the order in which they are asked.

A type that is sure by its form (a flight number between two places, a code with its label) is asked before
one that any list of lines may look like.
"""

from engines.records import MAX_RECORDS, Record
from rules.view import Maker, View

MAKERS: tuple[Maker, ...] = ()


def records(view: View) -> list[Record]:
    """The records of a screen, at most `MAX_RECORDS`, the one that it is about first."""
    found = [record for maker in MAKERS if (record := maker(view)) is not None]
    return found[:MAX_RECORDS]
