"""Which photos a list shows: any combination of filters with its total, at about the cost of one page.

Without a period the total stands in the tallies, and the page is read from the index of the filter, which ends in the order of the list
and carries the other filters, so that no row is looked at before it is known to be shown.

A period is about `original_timestamp`, as in a search: people remember when they took a picture. Its pages are in that order, too, the
latest picture first. In the order of uploads every page would either sort the whole period or walk through everything that was uploaded
since.
"""

from datetime import datetime

import msgspec
import peewee

import models
from models import Analysis


class Filters(msgspec.Struct, frozen=True):
    """What the listed photos have in common; None is anything. `since` is inclusive, `until` is not."""

    status: str | None = None
    device_id: str | None = None
    category: str | None = None
    intent: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def values(self) -> dict[str, str | None]:
        """By the names of the columns, but for the period."""
        return {"status": self.status, "device_id": self.device_id, "content_category": self.category, "intent": self.intent}


def page(number: int, size: int, filters: Filters) -> tuple[int, list[int]]:
    """The total and the ids of one page: the newest upload first; in a period the latest picture first."""
    values = {getattr(Analysis, name): value for name, value in filters.values().items() if value is not None}
    chosen = Analysis.select(Analysis.photo)
    if filters.since is None and filters.until is None:
        for column, value in values.items():
            chosen = chosen.where(column == value)
        total = models.tallied(**filters.values())
        return total, models.page_of(chosen, (Analysis.photo,), number, size, total)
    # SQLite would take the index of a filter and read the time of every photo in it. The plus keeps it from that.
    among = [peewee.Expression(peewee.NodeList((peewee.SQL("+"), column)), peewee.OP.EQ, value) for column, value in values.items()]
    total = _total(filters, among)
    return total, models.page_of(chosen.where(*_within(filters), *among), (Analysis.taken_at, Analysis.photo), number, size, total)


def _within(filters: Filters) -> list[peewee.Expression]:
    since = [] if filters.since is None else [Analysis.taken_at >= filters.since]
    return since if filters.until is None else [*since, Analysis.taken_at < filters.until]


def _total(filters: Filters, among: list[peewee.Expression]) -> int:
    """How many photos pass the filters in the period: counted there, or outside of it where there are fewer to count."""
    if not _holds_most(filters):
        return Analysis.select().where(*_within(filters), *among).count()
    before = Analysis.taken_at < filters.since if filters.since else None
    after = Analysis.taken_at >= filters.until if filters.until else None
    outside = (Analysis.select().where(side, *among).count() for side in (before, after) if side is not None)
    return models.tallied(**filters.values()) - sum(outside)


def _holds_most(filters: Filters) -> bool:
    """Whether most of the time over which there are photos is in the period, and so, likely, are most photos."""
    oldest, newest = Analysis.select(peewee.fn.MIN(Analysis.taken_at)).scalar(), Analysis.select(peewee.fn.MAX(Analysis.taken_at)).scalar()
    if oldest is None:
        return False
    held = min(filters.until or newest, newest) - max(filters.since or oldest, oldest)
    return held > (newest - oldest) / 2
