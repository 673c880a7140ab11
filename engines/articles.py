"""Notes as a model writes them: the material that it is given, and the checks that its answer must pass.

A note is a claim about the person's own things, so each must cite the screenshots and conversations that it
rests on, out of those that the model was shown. An article that cites none is dropped: it is invented, or
dictated by a text on a screenshot. Whoever gets a text onto a screenshot could otherwise write to the person
in the service's name. Such a text must not be able to send anything away either, so an article holds no
pictures and no HTML, which a page that shows it would fetch.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, get_args

import msgspec

from engines import reading
from engines.findings import Entity, Usage
from errors import AnswerUnusable
from text import fraction, one_line, shortened

Category = Literal["insight", "reminder", "report", "note"]
CATEGORIES: tuple[str, ...] = get_args(Category)
MOST_ARTICLES = 5  # per cycle: nobody reads a longer list every hour

# Characters.
MAX_TITLE = 120
MAX_SUMMARY = 500
MAX_CONTENT = 20_000

SEPARATOR = "\n\n---\n\n"


class NewPhoto(msgspec.Struct, frozen=True, omit_defaults=True):
    """A screenshot whose analysis is new. The model sees the field names, here and below."""

    id: int
    taken: datetime
    device: str = ""
    app: str = ""
    category: str = ""
    intent: str = ""
    title: str = ""
    summary: str = ""
    text: str = ""  # the beginning of the text on it
    note: str = ""  # the person's own
    entities: Sequence[Entity] = ()
    # Of its first event in the agenda that is still to come; only for the rules.
    event_day: date | None = None


class NewConversation(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    title: str
    device: str = ""
    said: Sequence[str] = ()  # new messages in order, "user: …" and "assistant: …"
    last_message_id: int = 0


class RecentNote(msgspec.Struct, frozen=True):
    id: int
    title: str
    summary: str
    category: str


Item = NewPhoto | NewConversation | RecentNote | str  # of the material; a text is a memory


class Material(msgspec.Struct, frozen=True):
    """The material of one cycle. Only the photos and conversations are new and may be cited by a model. The
    embedded model also compares them with `earlier` photos, which were in an earlier cycle.
    """

    now: datetime
    photos: Sequence[NewPhoto] = ()
    conversations: Sequence[NewConversation] = ()
    memories: Sequence[str] = ()
    notes: Sequence[RecentNote] = ()
    earlier: Sequence[NewPhoto] = ()


class Article(msgspec.Struct):
    """One note as a model wrote it, within the limits. `updates` is the id of the note that it continues."""

    title: str
    content: str
    summary: str = ""
    category: str = "note"
    confidence: float = 0.5
    photo_ids: list[int] = []
    conversation_ids: list[str] = []
    updates: int | None = None

    def __post_init__(self) -> None:
        self.title = shortened(one_line(self.title), MAX_TITLE)
        self.content = _TAG.sub("&lt;", _IMAGE.sub("", self.content))[:MAX_CONTENT].strip()
        self.summary = shortened(one_line(self.summary or self.content), MAX_SUMMARY)
        if self.category not in CATEGORIES:
            self.category = "note"
        self.confidence = fraction(self.confidence)


class Notes(msgspec.Struct):
    """The articles that a model wrote, and the usage of the calls."""

    articles: list[Article] = []
    usage: Usage = msgspec.field(default_factory=Usage)


def shown(item: Item) -> str:
    """A piece of the material as the model sees it, on one line."""
    return msgspec.json.encode(item).decode()


def read(answer: str, material: Material) -> list[Article]:
    """The articles in a model's answer that have a title and a text and cite something in `material`; none is
    a valid answer.

    Raises `AnswerUnusable` when the answer holds no list of articles.
    """
    photo_ids = {str(photo.id): photo.id for photo in material.photos}
    conversation_ids = {conversation.id: conversation.id for conversation in material.conversations}
    recent_ids = {str(note.id): note.id for note in material.notes}
    articles = []
    for fields in _objects(reading.loose_json(answer)):
        article = Article(
            title=reading.as_text(fields.get("title")),
            content=reading.as_text(fields.get("content")) or reading.as_text(fields.get("summary")),
            summary=reading.as_text(fields.get("summary")),
            category=reading.as_text(fields.get("category")).lower(),
            confidence=reading.as_number(fields.get("confidence"), 0.5),
            photo_ids=_cited(fields.get("photo_ids"), photo_ids),
            conversation_ids=_cited(fields.get("conversation_ids"), conversation_ids),
            updates=next(iter(_cited(fields.get("updates"), recent_ids)), None),
        )
        if article.title and article.content and (article.photo_ids or article.conversation_ids):
            articles.append(article)
    return articles[:MOST_ARTICLES]


def continued(content: str, earlier: str) -> str:
    """`content` above `earlier`, cut at the end to `MAX_CONTENT`; `earlier` alone if it already holds it."""
    return earlier if content in earlier else f"{content}{SEPARATOR}{earlier}"[:MAX_CONTENT].rstrip()


# ------------------------------------------------------------------------------------------ reading an answer

_LISTS = ("articles", "notes")
_IMAGE = re.compile(r"!(?=\[)")
_TAG = re.compile(r"<(?!https?://)(?=[A-Za-z/!?])")


def _objects(found: Any) -> list[dict[str, Any]]:
    """The articles of an answer: of the requested object, of several values, of a list, or a single one."""
    values = found if isinstance(found, list) else [found]
    objects = [value for value in values if isinstance(value, dict)]
    for value in objects:
        for name in _LISTS:
            if isinstance(value.get(name), list):
                return [item for item in value[name] if isinstance(item, dict)]
    if not all("title" in value for value in objects) or (not objects and found != []):
        raise AnswerUnusable("The model's answer is not the list of articles that it was asked for.")
    return objects


def _cited(value: Any, known: dict[str, Any]) -> list[Any]:
    """The ids in `value`, which is a list or one id, that are `known`, each once."""
    values = value if isinstance(value, list) else [value]
    given = (reading.as_text(item).lstrip("#") for item in values)
    return [known[text] for text in dict.fromkeys(given) if text in known]
