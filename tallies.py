"""Counts of photos, which triggers keep in the table `tallies`, so that no list counts photos.

A row counts the photos that are alike in everything that a list filters by. Any count is a sum of rows.
"""

from collections.abc import Mapping
from typing import Any, cast

from database import db
from models import Trash

Values = Mapping[str, str | None]  # field of a `Tally` -> the wanted value; None: any

_COUNTED = """
    SELECT app_name, substr(taken_at, 1, 7), device_id, status, intent, content_category, kept, covered,
    count(*) FROM analyses GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""
_SHOWN, _SHOWN_ON_DEVICE = "NOT covered", "covered <> 1"


def photos(values: Values | None = None, *, kept: bool = False, stacks: bool = False) -> int:
    """The number of photos with these values. With `kept`, only of kept ones. With `stacks`, without those
    for which another of their stack is shown; with a device, only another of the same device covers a photo.
    """
    within, given = _within(values or {}, kept=kept, stacks=stacks)
    sql = f"SELECT coalesce(sum(photos), 0) FROM tallies WHERE {within}"  # noqa: S608
    return cast(int, db.execute_sql(sql, given).fetchone()[0])


def by_month(values: Values, *, stacks: bool) -> list[tuple[str, int]]:
    """The months with photos that have these values, the newest first, each with their number."""
    within, given = _within(values, kept=False, stacks=stacks)
    sql = f"SELECT month, sum(photos) FROM tallies WHERE {within} GROUP BY month ORDER BY month DESC"  # noqa: S608
    return [(month, number) for month, number in db.execute_sql(sql, given).fetchall()]


def by_result() -> list[tuple[str, str, str, int]]:
    """Each status, intent and category that photos have together, with their number."""
    sql = "SELECT status, intent, content_category, sum(photos) FROM tallies GROUP BY 1, 2, 3"
    return cast("list[tuple[str, str, str, int]]", db.execute_sql(sql).fetchall())


def largest_apps(most: int) -> list[tuple[str, int]]:
    """The `most` apps with the most photos, each with their number, without those that have no name."""
    sql = """SELECT app_name, sum(photos) AS number FROM tallies WHERE app_name <> ''
        GROUP BY app_name ORDER BY number DESC, app_name LIMIT ?"""
    return cast("list[tuple[str, int]]", db.execute_sql(sql, (most,)).fetchall())


def largest_tags(most: int) -> list[tuple[str, int]]:
    """The `most` tags with the most photos, each with their number, and spelled as on the first of them."""
    sql = """SELECT tag, number FROM photo_tags JOIN (
            SELECT folded, count(*) AS number, min(photo_id) AS photo_id FROM photo_tags
            GROUP BY folded ORDER BY number DESC, folded LIMIT ?
        ) USING (folded, photo_id) ORDER BY number DESC, folded"""
    return cast("list[tuple[str, int]]", db.execute_sql(sql, (most,)).fetchall())


def trashed() -> int:
    """The number of photos in the trash."""
    return Trash.select().count()


def wrong() -> list[tuple[Any, ...]]:
    """The keys of the rows that differ from what the analyses give, are missing or superfluous."""
    differing = f"""
        WITH counted AS ({_COUNTED})
        SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM tallies)
        UNION ALL SELECT * FROM (SELECT * FROM tallies EXCEPT SELECT * FROM counted)
    """  # noqa: S608
    return sorted({row[:-1] for row in db.execute_sql(differing).fetchall()})


def count_anew() -> None:
    """Make the table again, from the analyses."""
    db.execute_sql("DELETE FROM tallies")
    db.execute_sql(f"INSERT INTO tallies {_COUNTED}")


def _within(values: Values, *, kept: bool, stacks: bool) -> tuple[str, tuple[Any, ...]]:
    """The conditions on a row, and their values."""
    given = {name: value for name, value in values.items() if value is not None}
    conditions = [f"{name} = ?" for name in given]
    if kept:
        conditions.append("kept")
    if stacks:
        conditions.append(_SHOWN_ON_DEVICE if "device_id" in given else _SHOWN)
    return " AND ".join(conditions) or "true", tuple(given.values())
