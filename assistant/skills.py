"""Skills: named system prompts for chats; `/api/skills`.

Four come with the service (`skills.toml`). They are created once, when skills are first read, and are then
like any other: a changed one stays changed, and a deleted one does not come back.
"""

import tomllib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import peewee
from flask import Blueprint
from msgspec import Meta

import models
from clock import utc_now
from database import db
from errors import Conflict, NotFound, StorageFull
from models import Skill
from web import inputs, shapes

DEFAULTS = Path(__file__).with_name("skills.toml")


def every(language: str, *, now: datetime) -> list[Skill]:
    """All skills, in the order of their creation. The first call creates the four defaults."""
    _make_defaults(language, now=now)
    return list(Skill.select().order_by(Skill.created_at, peewee.SQL("rowid")))


def get(skill_id: str, language: str, *, now: datetime) -> Skill:
    """A skill, enabled or not. Raises `NotFound`."""
    _make_defaults(language, now=now)
    skill = Skill.get_or_none(Skill.id == skill_id)
    if skill is None:
        raise NotFound("Skill not found")
    return skill


def get_enabled(skill_id: str, language: str, *, now: datetime) -> Skill:
    """An enabled skill. Raises `NotFound`, also for a disabled one."""
    skill = get(skill_id, language, now=now)
    if not skill.enabled:
        raise NotFound("Skill not found")
    return skill


def create(fields: dict[str, Any], *, now: datetime) -> Skill:
    """Create a skill. Raises `Conflict` when its id is taken."""
    try:
        with db.atomic():
            return Skill.create(**fields, created_at=now)
    except peewee.IntegrityError:
        raise Conflict("A skill with this id exists already") from None


def update(skill_id: str, fields: dict[str, Any]) -> Skill:
    """Change the given fields of a skill. Raises `NotFound`."""
    with db.atomic():
        skill = Skill.get_or_none(Skill.id == skill_id)
        if skill is None:
            raise NotFound("Skill not found")
        for name, value in fields.items():
            setattr(skill, name, value)
        skill.save()
    return skill


def delete(skill_id: str) -> None:
    """Delete a skill. Raises `NotFound`."""
    if not Skill.delete().where(Skill.id == skill_id).execute():
        raise NotFound("Skill not found")


def _make_defaults(language: str, *, now: datetime) -> None:
    if models.stored_value("skills.made"):
        return
    defaults = tomllib.loads(DEFAULTS.read_text("utf-8"))
    with db.atomic():
        for fields in defaults[language]:
            Skill.insert(**fields, created_at=now).on_conflict_ignore().execute()
        models.store_value("skills.made", True)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("skills", __name__, url_prefix="/api/skills")

Id = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z", description="1 to 64 letters, digits, hyphens or underscores"),
]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Description = Annotated[str, Meta(max_length=2_000)]
Icon = Annotated[str, Meta(max_length=64)]
Prompt = Annotated[str, Meta(min_length=1, max_length=32_768)]


class ListQuery(msgspec.Struct):
    include_disabled: bool = False


class NewSkill(msgspec.Struct):
    id: Id
    name: Name
    system_prompt: Prompt
    description: Description = ""
    icon: Icon = ""


class SkillChange(msgspec.Struct):
    name: Name | msgspec.UnsetType = msgspec.UNSET
    system_prompt: Prompt | msgspec.UnsetType = msgspec.UNSET
    description: Description | msgspec.UnsetType = msgspec.UNSET
    icon: Icon | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET


@routes.get("")
@inputs.operation(StorageFull)  # the first call writes the defaults
def index(query: ListQuery) -> shapes.SkillList:
    """List the enabled skills, or all of them. The first call makes four default skills."""
    language, now = inputs.settings().language, utc_now()
    if query.include_disabled:
        return {"skills": [shapes.of(skill, shapes.SkillItem) for skill in every(language, now=now)]}
    enabled = [skill for skill in every(language, now=now) if skill.enabled]
    listed = [shapes.of(skill, shapes.SkillFields) for skill in enabled]
    return {"skills": cast(list[shapes.SkillItem], listed)}  # `enabled` is optional there


@routes.get("/<skill_id>")
@inputs.operation(NotFound, StorageFull)
def show(skill_id: str) -> shapes.SkillDetail:
    """Show a skill with its system prompt. Disabled skills are shown, too."""
    return shapes.of(get(skill_id, inputs.settings().language, now=utc_now()), shapes.SkillDetail)


@routes.post("")
@inputs.operation(Conflict)
def add(body: NewSkill) -> shapes.SkillDetail:
    """Create a skill. Its id is chosen by the client; one that is in use is 409."""
    return shapes.of(create(msgspec.structs.asdict(body), now=utc_now()), shapes.SkillDetail)


@routes.put("/<skill_id>")
@inputs.operation(NotFound)
def change(skill_id: str, body: SkillChange) -> shapes.SkillDetail:
    """Change the given fields of a skill. A disabled skill is not listed and cannot be used in a chat."""
    return shapes.of(update(skill_id, inputs.given(body)), shapes.SkillDetail)


@routes.delete("/<skill_id>")
@inputs.operation(NotFound)
def remove(skill_id: str) -> shapes.Done:
    """Delete a skill. Chats that used it stay as they are."""
    delete(skill_id)
    return {"message": "Deleted"}
