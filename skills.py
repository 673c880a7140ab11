"""Skills: named system prompts that a chat can be run with; `/api/skills`.

Four come with the service. They are made once, when skills are first asked for, and are then like any other: who changes one keeps
the change, and who deletes one has seen the last of it.
"""

from datetime import datetime
from typing import Annotated, Any

import msgspec
import peewee
from flask import Blueprint, current_app
from msgspec import Meta

import models
import params
import shapes
from clock import utc_now
from errors import Conflict, NotFound, StorageFull
from models import Skill, db

# By language: id, name, description, icon, system prompt.
DEFAULTS = {
    "en": (
        (
            "summarize",
            "Summary",
            "Sums up what you saved about a topic or a time.",
            "📝",
            "You sum up. Search the knowledge base for everything that belongs to the person's question, then give a short summary: "
            "the main points first, each with the screenshots it rests on, then what is open or contradictory. Add nothing that "
            "is not in what you found.",
        ),
        (
            "reminders",
            "Reminders",
            "Finds dates, deadlines and things to do.",
            "⏰",
            "You look after dates and duties. Search the knowledge base for appointments, deadlines, bills, deliveries and promises, and "
            "list them in the order of time, each with its date, what has to be done and the screenshot it comes from. Say which are "
            "past, and where a date is only a guess.",
        ),
        (
            "research",
            "Research",
            "Works through a question with your screenshots and the web.",
            "🔍",
            "You research. Take the question apart, search the knowledge base first and the web second, compare what they say, and answer "
            "with sources: screenshots by their id, pages by their address. Keep apart what is known, what is likely and what is "
            "missing.",
        ),
        (
            "stock",
            "Stocks",
            "Puts quotes and finance news that you saved into context.",
            "📈",
            "You help to read saved quotes, charts and finance news. Name the security, the figures and the time of each screenshot, "
            "compare them over time, and look for current news where it helps. Explain soberly, name risks, and give no "
            "advice to buy or sell.",
        ),
    ),
    "zh": (
        (
            "summarize",
            "内容总结",
            "总结你保存的某个主题或某段时间的内容。",
            "📝",
            "你负责总结。先在知识库中搜索与用户问题有关的全部内容，再给出简短总结：先列要点，并注明每一点依据的截图，"
            "再说明尚不清楚或相互矛盾之处。不要添加搜索结果中没有的内容。",
        ),
        (
            "reminders",
            "提醒事项",
            "找出日期、期限和待办事项。",
            "⏰",
            "你负责日程和待办。在知识库中搜索预约、截止日期、账单、快递和承诺，按时间顺序列出，"
            "每一项写明日期、要做的事和来源截图。指出哪些已经过期，哪些日期只是推测。",
        ),
        (
            "research",
            "深入研究",
            "结合你的截图和网络资料研究一个问题。",
            "🔍",
            "你负责研究。先拆解问题，先查知识库，再查网络，比较各方说法，并附上来源作答：截图注明编号，网页注明地址。"
            "区分已知、可能和缺失的信息。",
        ),
        (
            "stock",
            "股票分析",
            "把你保存的行情和财经新闻放到一起看。",
            "📈",
            "你帮助解读保存的行情、图表和财经新闻。写明每张截图中的证券、数字和时间，比较其变化，必要时查找最新消息。"
            "客观说明，指出风险，不提供买卖建议。",
        ),
    ),
}


def enabled(language: str, *, now: datetime) -> list[Skill]:
    """The enabled skills in the order in which they were made; the four defaults are made at the first call."""
    _make_defaults(language, now=now)
    return list(Skill.select().where(Skill.enabled).order_by(Skill.created_at, peewee.SQL("rowid")))


def every(language: str, *, now: datetime) -> list[Skill]:
    """As `enabled`, and those that are not."""
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
    """A skill that a chat may be run with. Raises `NotFound`, also for a disabled one."""
    skill = get(skill_id, language, now=now)
    if not skill.enabled:
        raise NotFound("Skill not found")
    return skill


def create(fields: dict[str, Any], *, now: datetime) -> Skill:
    """Make a skill. Raises `Conflict` when its id is taken."""
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
    """Raises `NotFound`."""
    if not Skill.delete().where(Skill.id == skill_id).execute():
        raise NotFound("Skill not found")


def _make_defaults(language: str, *, now: datetime) -> None:
    if models.stored_value("skills.made"):
        return
    names = ("id", "name", "description", "icon", "system_prompt")
    with db.atomic():
        for values in DEFAULTS[language]:
            Skill.insert(**dict(zip(names, values, strict=True)), created_at=now).on_conflict_ignore().execute()
        models.store_value("skills.made", True)


# --------------------------------------------------------------------------------------------------------------------- routes

routes = Blueprint("skills", __name__, url_prefix="/api/skills")

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z", description="1 to 64 letters, digits, hyphens or underscores")]
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
@params.operation(StorageFull)  # the first call makes the defaults, as that of `show` does
def index(query: ListQuery) -> shapes.SkillList:
    """List the enabled skills, or all."""
    language, now = current_app.settings.language, utc_now()
    if query.include_disabled:
        return {"skills": [shapes.of(skill, shapes.SkillItem) for skill in every(language, now=now)]}
    return {"skills": [shapes.of(skill, shapes.SkillFields) for skill in enabled(language, now=now)]}


@routes.get("/<skill_id>")
@params.operation(NotFound, StorageFull)
def show(skill_id: str) -> shapes.SkillDetail:
    """Show a skill with its system prompt."""
    return shapes.of(get(skill_id, current_app.settings.language, now=utc_now()), shapes.SkillDetail)


@routes.post("")
@params.operation(Conflict)
def add(body: NewSkill) -> shapes.SkillDetail:
    """Create a skill."""
    return shapes.of(create(msgspec.structs.asdict(body), now=utc_now()), shapes.SkillDetail)


@routes.put("/<skill_id>")
@params.operation(NotFound)
def change(skill_id: str, body: SkillChange) -> shapes.SkillDetail:
    """Change a skill; what is not given stays. A disabled one is not listed, and no chat runs with it."""
    return shapes.of(update(skill_id, params.given(body)), shapes.SkillDetail)


@routes.delete("/<skill_id>")
@params.operation(NotFound)
def remove(skill_id: str) -> shapes.Done:
    """Delete a skill."""
    delete(skill_id)
    return {"message": "Deleted"}
