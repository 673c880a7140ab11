"""What a model returns for a screenshot and in a chat: the contract's value lists and the types.

The remote model and the embedded one both return `Findings`, so the queue, the storage and the search index
need not know which of them it was. A value outside the value lists is corrected here, in one place.
"""

from typing import Any, Literal, NamedTuple, get_args

import msgspec

from engines.lines import Page
from engines.records import MAX_RECORDS, Record, checked
from errors import AnswerUnusable
from text import fraction, one_line, storable

Category = Literal["chat", "webpage", "finance", "notification", "social_media", "other"]
Intent = Literal["reference", "reminder", "research", "note", "ignore"]
CATEGORIES: tuple[str, ...] = get_args(Category)
INTENTS: tuple[str, ...] = get_args(Intent)

# Characters, and entries of `MAX_ENTITIES`; more than any screen shows. They keep a talkative model from
# filling the disk.
MAX_NAME = 200
MAX_TITLE = 120
MAX_SUMMARY = 4_000
MAX_TEXT = 100_000
MAX_ENTITIES = 100
MAX_ENTITY = 500
MAX_CALLS = 8  # of tools in one answer; further ones are not read


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str  # link, email, phone, amount, address, date, code, person, place …
    value: str
    label: str = ""  # what a code is for, as the screen says it


class MemoryCandidate(msgspec.Struct, frozen=True):
    """Something about the person that may be worth remembering. `memory.py` checks it before it is stored."""

    content: str
    category: str = "fact"
    memory_type: str = "short_term"
    importance: float = 0.5


class Usage(msgspec.Struct):
    """Calls and tokens of an answer, for the spend ledger; the embedded model has none."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Source(msgspec.Struct, frozen=True):
    """What a model says of a screenshot: the `words` as they are on it, or a field of a record."""

    photo_id: int
    text: str  # as the answer has it
    words: list[str] = []
    type: str = ""
    field: str = ""


class Answer(msgspec.Struct):
    """A model's answer to one call in a conversation."""

    text: str
    # As the protocol has them: id, type, function (name, arguments: the text of a JSON object).
    tool_calls: list[dict[str, Any]] = []
    finish_reason: str = "stop"
    usage: Usage = msgspec.field(default_factory=Usage)
    # The assistant's message as it is sent back with the tools' answers: some providers require their
    # signatures and reasoning in it.
    message: dict[str, Any] = {}
    sources: list[Source] = []  # where the answer is from, if the model itself names that

    @property
    def cut_off(self) -> bool:
        """Whether it ended at a length limit."""
        return self.finish_reason in ("length", "max_tokens")

    def require_whole(self) -> None:
        """Raises `AnswerUnusable` when it was cut off."""
        if self.cut_off:
            raise AnswerUnusable("The model's answer was cut off at its length limit.")


MAX_JUDGED = 1_000  # characters of `Findings.raw` of the embedded analyser


class Wordmark(NamedTuple):
    """A text that may be the name of the app, and how likely it is, from 0 to 1."""

    name: str
    chance: float


# The fields of `Findings` that a model is asked for and that an analysis is stored with.
RESULT_FIELDS = (
    "app_name",
    "content_category",
    "intent",
    "title",
    "summary",
    "entities",
    "confidence",
    "visible_text",
    "records",
)


class Findings(msgspec.Struct):
    """The result of one analysis.

    `confidence` is 0 to 1. `visible_text` is the text on the screenshot, line by line, kept for search. `raw`
    is the model's answer as it arrived, kept as `llm_response`. `page` is what a model has read itself, with
    the places of the lines, and `reader` is the engine that it was read with. `records` are checked; None
    where a model has not said whether there are any.
    """

    app_name: str = ""
    content_category: str = "other"
    intent: str = "note"
    title: str = ""
    summary: str = ""
    entities: list[Entity] = []
    confidence: float = 0.0
    visible_text: str = ""
    memories: list[MemoryCandidate] = []
    raw: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    page: Page | None = None
    reader: str = ""
    records: list[Record] | None = None
    wordmarks: list[Wordmark] = []  # of the embedded analyser: other screenshots may make one sure

    def __post_init__(self) -> None:
        self.app_name = _clean(self.app_name, MAX_NAME)
        self.title = one_line(_clean(self.title, MAX_TITLE))
        self.summary = _clean(self.summary, MAX_SUMMARY)
        self.visible_text = _clean(self.visible_text, MAX_TEXT)
        if self.content_category not in CATEGORIES:
            self.content_category = "other"
        if self.intent not in INTENTS:
            self.intent = "note"
        self.confidence = fraction(self.confidence)
        self.entities = [
            Entity(
                _clean(entity.type, MAX_NAME),
                _clean(entity.value, MAX_ENTITY),
                _clean(entity.label, MAX_NAME),
            )
            for entity in self.entities[:MAX_ENTITIES]
            if entity.value.strip()
        ]
        if self.records is not None:
            self.records = [record for one in self.records if (record := checked(one))][:MAX_RECORDS]


class _Judged(msgspec.Struct):
    rules: int
    kind: str


def kind_in(raw: str) -> str:
    """The kind of screen that the embedded analyser put into `Findings.raw`; "" for other models."""
    try:
        return msgspec.json.decode(raw, type=_Judged).kind
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ""


def _clean(text: str, limit: int) -> str:
    """`text` as it can be stored, trimmed and cut to `limit` characters."""
    return storable(text).strip()[:limit]
