"""Which app a photo is of where its own words are not enough: names that are likely on it are sure where
other photos of the library have them, too (`rules/wordmarks.py`).

A photo with the same bytes, or in the same stack, is the same screen and tells nothing more.
"""

from database import db
from engines.findings import Findings, Wordmark, kind_in
from models import AppMark
from rules.wordmarks import folded, together

MOST_NAMED = 200  # photos that one photo gives a name


def keep(photo_id: int, found: Findings) -> str:
    """Store which names may be the app's on a photo; returns its app, which others may have made sure."""
    AppMark.delete().where(AppMark.photo == photo_id).execute()
    rows = [
        {"photo": photo_id, "folded": folded(name), "name": name, "chance": chance}
        for name, chance in found.wordmarks
    ]
    if rows:
        AppMark.insert_many(rows).execute()
    return found.app_name or _supported(photo_id, found.wordmarks, kind_in(found.raw))


def of(photo_id: int) -> list[Wordmark]:
    """The names that may be the app's on a photo, the likeliest first."""
    rows = AppMark.select().where(AppMark.photo == photo_id).order_by(AppMark.chance.desc())
    return [Wordmark(row.name, row.chance) for row in rows]


def named_by(photo_id: int) -> dict[int, str]:
    """The photos without an app that this one gives a name, by their ids."""
    found = {}
    for mark in AppMark.select().where(AppMark.photo == photo_id):
        for other_id, answer in db.execute_sql(_UNNAMED, _supported_by(mark)):
            if name := _supported(other_id, of(other_id), kind_in(answer)):
                found[other_id] = name
    return found


def _supported_by(mark: AppMark) -> tuple[str, int, int | None, int]:
    """What `_UNNAMED` needs for a name: one photo that it may make sure, or all, if it is surer on its own
    photo than on any other.
    """
    having = AppMark.select().where((AppMark.folded == mark.folded) & (AppMark.photo != mark.photo_id))
    best = having.order_by(AppMark.chance.desc()).first()
    only = best.photo_id if best is not None and best.chance >= mark.chance else None
    return mark.folded, mark.photo_id, only, MOST_NAMED


_UNNAMED = """
    SELECT other.photo_id, a.llm_response FROM wordmarks AS other
    JOIN analyses AS a ON a.photo_id = other.photo_id
    WHERE other.folded = ?1 AND other.photo_id <> ?2 AND a.app_name = '' AND a.status = 'done'
    AND other.photo_id = coalesce(?3, other.photo_id) LIMIT ?4
"""
_BEST_OTHERS = """
    SELECT chance FROM photos AS own JOIN wordmarks AS other ON other.photo_id <> own.id
    JOIN photos ON photos.id = other.photo_id AND photos.sha256 <> own.sha256
    WHERE own.id = ? AND folded = ? AND NOT EXISTS (
        SELECT 1 FROM stacked AS its JOIN stacked USING (stack_id)
        WHERE its.photo_id = own.id AND stacked.photo_id = other.photo_id
    ) ORDER BY chance DESC LIMIT 2
"""


def _supported(photo_id: int, marks: list[Wordmark], kind: str) -> str:
    """The likeliest of a photo's names, where that is sure."""

    def others(folded_name: str) -> list[float]:
        return [chance for (chance,) in db.execute_sql(_BEST_OTHERS, (photo_id, folded_name))]

    return together(marks, others, kind)
