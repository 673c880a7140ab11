"""Which photos a person has opened: what they have not is what `is:unread` finds.

Whoever shows a photo to a person says so here. It does not follow from reading its detail, which programs do,
too, and the page does for photos that it only prepares to show.
"""

from flask import Blueprint

from database import db
from errors import NotFound
from models import Analysis, Trait
from web import inputs, shapes


def open_photo(photo_id: int) -> None:
    """Record that a person has opened a photo. Raises `NotFound`."""
    with db.atomic():
        if not Analysis.select().where(Analysis.photo == photo_id).exists():
            raise NotFound("Photo not found")
        Trait.insert(photo=photo_id, opened=True).on_conflict(
            conflict_target=[Trait.photo], update={"opened": True}
        ).execute()


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("opened", __name__, url_prefix="/api/photos")


@routes.post("/<id:photo_id>/opened")
@inputs.operation(NotFound)
def open_(photo_id: int) -> shapes.Done:
    """Say that a person has opened a photo. Until then, it is unread."""
    open_photo(photo_id)
    return {"message": "Opened"}
