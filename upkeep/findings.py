"""What a check finds, kind by kind, and what it may change meanwhile."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import peewee

import database
from errors import NotFound, SnaploreError
from upkeep.progress import Progress, silent

BATCH = 100  # rows that are read at once
NAMED = 20  # problems of a kind that are listed; the rest is counted


class Kind(msgspec.Struct):
    """The findings of one kind."""

    name: str
    wrong: int = 0
    repaired: int = 0
    named: list[str] = msgspec.field(default_factory=list)  # the first problems
    advice: str = ""

    def note(self, problem: str, *, repaired: bool = False) -> None:
        self.wrong += 1
        self.repaired += repaired
        if len(self.named) < NAMED:
            self.named.append(f"{problem} (repaired)" if repaired else problem)

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.name}: OK"
        more = [f"and {self.wrong - len(self.named)} more"] if self.wrong > len(self.named) else []
        repaired = f", {self.repaired} repaired" if self.repaired else ""
        advice = [self.advice] if self.advice else []
        return f"{self.name}: {self.wrong} wrong{repaired}: {'; '.join([*self.named, *more, *advice])}"


class Orders(NamedTuple):
    """What a run may change, and where it reports its progress."""

    now: datetime
    repair: bool = False
    forget_lost: bool = False  # delete photos, and messages' attachments, whose file is lost for good
    report: Progress = silent


def every_row(
    query: "peewee.ModelSelect[Any]", stage: str, orders: Orders, *, key: peewee.Field | None = None
) -> Iterator[Any]:
    """All rows by ascending `key` (the id), read in batches; no scope is open while a row is used."""
    with database.scope():
        total = query.count()
    done = 0
    for rows in database.batches(query, key or query.model.id, BATCH):
        yield from rows
        done += len(rows)
        orders.report(stage, min(done, total), total)


def act(verb: Callable[..., object], *arguments: object) -> bool:
    """Call `verb` in a scope of its own; returns whether it succeeded."""
    try:
        with database.scope():
            verb(*arguments)
    except NotFound:  # deleted meanwhile, which solves the problem as well
        return True
    except SnaploreError:
        return False
    return True
