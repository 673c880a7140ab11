"""One action on many photos, all of it or nothing; `/api/photos/batch`.

Each action is one transaction, so a crash in the middle changes no photo. Ids that do not exist are listed
and hinder nothing: the selection of a client may be older than the library.
"""

from datetime import datetime
from typing import Annotated, Literal, assert_never

import msgspec
from flask import Blueprint
from msgspec import Meta

import claims
import photos
from clock import utc_now
from curation import trash, words
from errors import BadInput
from web import inputs, shapes

MOST = 500  # photos of one call; together they hold the database for a second or two

Action = Literal["trash", "restore", "delete", "keep", "unkeep", "tag", "untag", "reprocess"]


def run(action: Action, photo_ids: list[int], tag: str, *, now: datetime) -> tuple[int, list[int]]:
    """Do one thing to these photos: how many are as requested, and the missing ids. Raises `BadInput`."""
    ids = list(dict.fromkeys(photo_ids))
    if action in ("tag", "untag") and not tag:
        raise BadInput("tag: is missing")
    match action:
        case "trash":
            done = trash.put(ids, now=now)
        case "restore":
            done = trash.restore(ids)
        case "delete":
            done = photos.delete_all(ids)
        case "keep" | "unkeep":
            done = words.keep(ids, kept=action == "keep")
        case "tag":
            done = words.tag(ids, tag)
        case "untag":
            done = words.untag(ids, tag)
        case "reprocess":
            done = claims.reprocess_all(ids, now=now)
        case _:
            assert_never(action)
    return len(done), [photo_id for photo_id in ids if photo_id not in done]


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("batch", __name__, url_prefix="/api/photos")

PhotoId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
PhotoIds = Annotated[list[PhotoId], Meta(min_length=1, max_length=MOST)]


class BatchRequest(msgspec.Struct):
    ids: PhotoIds
    action: Action
    tag: Annotated[
        str, Meta(max_length=words.MAX_TAG, description="needed for `tag` and `untag`, and for no other")
    ] = ""


@routes.post("/batch", endpoint="run")
@inputs.operation()
def change_many(body: BatchRequest) -> shapes.BatchChanged:
    """Do one thing to up to 500 photos, all of it or nothing.

    `delete` is for good; `trash` has a way back.
    """
    done, missing = run(body.action, body.ids, body.tag, now=utc_now())
    return {"done": done, "missing": missing}
