"""Saved searches, each with the number of new photos that match it; `/api/searches`.

A saved search is a name and a query, which may be any text. New is what was uploaded since the search was
last opened. Counting is bounded: it looks at the newest uploads only, and stops where a number says no more
than "many".
"""

from datetime import datetime
from typing import Annotated

import msgspec
import peewee
from flask import Blueprint
from msgspec import Meta

import search
import terms
from clock import iso, utc_now
from database import db
from errors import BadInput, Conflict, NotFound
from lexicon import rows
from models import SavedSearch
from queries.wording import MAX_QUERY
from text import one_line, storable
from web import inputs, shapes

MOST_SEARCHES = 100
MAX_NAME = 100  # characters
MOST_NEW = 100  # new photos of a search that are counted
LOOKED_AT = 2_000  # newest uploads among which they are


def every(*, now: datetime) -> list[shapes.SavedSearch]:
    """The saved searches in the order of their names, each with its number of new photos."""
    searches = SavedSearch.select().order_by(SavedSearch.folded)
    newest = _ids("SELECT id FROM photos ORDER BY id DESC LIMIT 1 OFFSET ?", LOOKED_AT - 1)
    return [_shown(saved, newest, now=now) for saved in searches]


def save(name: str, query: str, *, now: datetime) -> shapes.SavedSearch:
    """Save a query under a name, with no new photos yet. Raises `Conflict` and `BadInput`."""
    name, query = one_line(storable(name)), storable(query).strip()
    if not name:
        raise BadInput("name: must not be blank")
    if not query:
        raise BadInput("query: must not be blank")
    folded = terms.fold_latin(name).casefold()
    with db.atomic():
        if SavedSearch.select().count() >= MOST_SEARCHES:
            raise BadInput(f"name: there are {MOST_SEARCHES} saved searches already; delete one first")
        try:
            saved = SavedSearch.create(name=name, folded=folded, query=query, created_at=now, opened_at=now)
        except peewee.IntegrityError:
            raise Conflict("A search with this name is saved already") from None
    return shapes.of(saved, shapes.SavedSearch, new=0)


def mark_opened(search_id: int, *, now: datetime) -> shapes.SavedSearch:
    """Record that a person has opened a saved search: what it finds is no longer new. Raises `NotFound`."""
    with db.atomic():
        saved = SavedSearch.get_or_none(SavedSearch.id == search_id)
        if saved is None:
            raise NotFound("Search not found")
        saved.opened_at = now
        saved.save(only=[SavedSearch.opened_at])
    return shapes.of(saved, shapes.SavedSearch, new=0)


def delete(search_id: int) -> None:
    """Delete a saved search. Raises `NotFound`."""
    if not SavedSearch.delete().where(SavedSearch.id == search_id).execute():
        raise NotFound("Search not found")


def forget_all() -> None:
    """Delete all saved searches."""
    SavedSearch.delete().execute()


def _shown(saved: SavedSearch, newest: int, *, now: datetime) -> shapes.SavedSearch:
    since = iso(saved.opened_at)
    # Not from an id that was the newest: an id may be given again when its photo was deleted.
    first = _ids("SELECT id FROM photos WHERE created_at > ? ORDER BY created_at, id LIMIT 1", since)
    new = search.count_new(saved.query, max(first, newest), most=MOST_NEW, now=now) if first else 0
    return shapes.of(saved, shapes.SavedSearch, new=new)


def _ids(sql: str, value: object) -> int:
    """The only id that a statement finds, or 0."""
    found = rows(sql, value)
    return found[0][0] if found else 0


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("searches", __name__, url_prefix="/api/searches")


class NewSearch(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, description="as `q` of a search")]


@routes.get("")
@inputs.operation()
def index() -> shapes.SavedSearches:
    """List the saved searches, each with the number of photos that match and were uploaded since it was last
    opened: at most 100, among the newest 2,000 uploads. Those are counted that were uploaded since
    `opened_at`.
    """
    return {"searches": every(now=utc_now())}


@routes.post("")
@inputs.operation(Conflict)
def add(body: NewSearch) -> shapes.SavedSearch:
    """Save a search. A name is given once, whatever its upper and lower case; at most 100 can be saved."""
    return save(body.name, body.query, now=utc_now())


@routes.post("/<id:search_id>/opened")
@inputs.operation(NotFound)
def open_(search_id: int) -> shapes.SavedSearch:
    """Say that a person has opened a saved search: what it finds now is not new any more. The list of saved
    searches counts from this moment on.
    """
    return mark_opened(search_id, now=utc_now())


@routes.delete("/<id:search_id>")
@inputs.operation(NotFound)
def remove(search_id: int) -> shapes.Done:
    """Delete a saved search. The photos that it finds stay."""
    delete(search_id)
    return {"message": "Deleted"}
