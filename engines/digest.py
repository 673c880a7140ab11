"""Notes without a model, by plain rules: one report a day, which is continued, and a reminder of screenshots
that name a date to keep.
"""

import itertools
from typing import Any

from engines import findings
from engines.articles import Article, Material, NewPhoto, Notes
from text import one_line, shortened

# The highest confidence of the embedded model, which recognises words and understands nothing.
CONFIDENCE = 0.4
MOST_LINES = 6  # per group; the others are only counted
MAX_LINE = 160
MAX_NAMED = 48  # characters of the screenshot's description in a title


def write(material: Material, language: str) -> Notes:
    """The embedded model's notes: the day's report, and a reminder if a screenshot calls for one. `language`
    is `zh` or `en`.
    """
    texts = _TEXTS[language]
    reminder = _reminder([photo for photo in material.photos if _is_to_remember(photo)], texts)
    return Notes(([reminder] if reminder else []) + [_report(material, texts)])


_TEXTS = {
    "en": {
        "report": "New on {day:%Y-%m-%d}",
        "counted": "{counts}: {groups}",
        "photos": ("1 screenshot", "{} screenshots"),
        "conversations": ("1 conversation", "{} conversations"),
        "comma": ", ",
        "more": "and {} more",
        "chats": "Conversations",
        "blank": "Screenshot",
        "reminder": "Don't forget: {first}",
        "reminders": "Don't forget: {first} and {others} more",
        "named": "**{when}**: {text}",
        "categories": dict(
            zip(
                findings.CATEGORIES,
                ("Chat", "Web pages", "Finance", "Notifications", "Social media", "Other"),
                strict=True,
            )
        ),
    },
    "zh": {
        "report": "{day.year}年{day.month}月{day.day}日新内容",
        "counted": "{counts}：{groups}",
        "photos": ("1 张截图", "{} 张截图"),
        "conversations": ("1 个对话", "{} 个对话"),
        "comma": "、",
        "more": "另外还有 {} 条",
        "chats": "对话",
        "blank": "截图",
        "reminder": "别忘了：{first}",
        "reminders": "别忘了：{first} 等 {all} 项",
        "named": "**{when}**：{text}",
        "categories": dict(
            zip(findings.CATEGORIES, ("聊天", "网页", "财务", "通知", "社交媒体", "其他"), strict=True)
        ),
    },
}


def _report(material: Material, texts: dict[str, Any]) -> Article:
    """What is new, by app, or by category where the app is not known. It continues the same day's report."""
    groups: dict[str, list[str]] = {}
    for photo in material.photos:
        name = photo.app or texts["categories"].get(photo.category) or texts["categories"]["other"]
        groups.setdefault(name, []).append(_description(photo, texts))
    if material.conversations:
        groups[texts["chats"]] = [
            shortened(one_line(conversation.title), MAX_LINE) for conversation in material.conversations
        ]
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    title = texts["report"].format(day=material.now)
    counts = (("photos", len(material.photos)), ("conversations", len(material.conversations)))
    counted = texts["comma"].join(texts[name][count != 1].format(count) for name, count in counts if count)
    summary = texts["counted"].format(counts=counted, groups=texts["comma"].join(name for name, _ in ordered))
    return Article(
        title=title,
        summary=summary,
        content="\n\n".join(_section(name, lines, texts) for name, lines in ordered),
        category="report",
        confidence=CONFIDENCE,
        photo_ids=[photo.id for photo in material.photos],
        conversation_ids=[conversation.id for conversation in material.conversations],
        updates=next((note.id for note in material.notes if note.title == title), None),
    )


def _reminder(photos: list[NewPhoto], texts: dict[str, Any]) -> Article | None:
    if not photos:
        return None
    named = texts["reminders" if len(photos) > 1 else "reminder"]
    return Article(
        title=named.format(
            first=shortened(one_line(_description(photos[0], texts)), MAX_NAMED),
            others=len(photos) - 1,
            all=len(photos),
        ),
        summary=texts["comma"].join(dict.fromkeys(itertools.chain.from_iterable(map(_when, photos)))),
        content="\n".join(_item(photo, texts) for photo in photos),
        category="reminder",
        confidence=CONFIDENCE,
        photo_ids=[photo.id for photo in photos],
    )


def _is_to_remember(photo: NewPhoto) -> bool:
    """A bill names a date and an amount; either alone is on every second screen."""
    return photo.intent == "reminder" or {"date", "amount"} <= {entity.type for entity in photo.entities}


def _when(photo: NewPhoto) -> list[str]:
    return [entity.value for entity in photo.entities if entity.type in ("date", "time", "amount")]


def _item(photo: NewPhoto, texts: dict[str, Any]) -> str:
    when, text = texts["comma"].join(dict.fromkeys(_when(photo))), _description(photo, texts)
    return f"- {texts['named'].format(when=when, text=text) if when else text}"


def _section(name: str, lines: list[str], texts: dict[str, Any]) -> str:
    more = len(lines) - MOST_LINES
    listed = lines[:MOST_LINES] + ([texts["more"].format(more)] if more > 0 else [])
    return "\n".join([f"### {name} ({len(lines)})", *(f"- {line}" for line in listed)])


def _description(photo: NewPhoto, texts: dict[str, Any]) -> str:
    return shortened(one_line(photo.summary or photo.text), MAX_LINE) or texts["blank"]
