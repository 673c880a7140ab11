"""The reasoner, which writes notes about what is new: when it looks, at what, and what it keeps of it;
`/api/dynamics/trigger`.

What is new carries a mark until a cycle has looked at it: an analysis its own, a conversation the last
message that was seen. A time would not do as the mark: results are stored a moment after the time that they
carry, and a cycle in between would never see them. With marks a cycle for one device and one for all share
one memory, what does not fit waits for the next, and a cycle that fails has done nothing. Articles and marks
are written in one transaction; the database is closed while the model thinks.

Memories and earlier notes are shown to the model to understand what is new. They are no news, and cannot be
cited.

An article that goes on where a recent note ends, by its own word or by its title, continues that note: on top
of what stood there, unread again, under its old id, date and pin. Only new notes are counted and pushed: a
push names what is new, and would name a running topic every hour.

Cycles never overlap, over all processes; one may wait. Every third completed analysis asks for one, hourly
cron for another.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

import msgspec
import peewee

import database
import dynamics
import llm
import loops
import memory
import models
import push
from assistant import context, conversations
from clock import utc_now
from database import db
from engines import articles, configuration, ledger
from engines.articles import Article, Material, NewConversation, NewPhoto, Notes, RecentNote
from engines.findings import Entity
from errors import AnswerUnusable, ModelFailure, SnaploreError, Unavailable
from locks import named_lock
from models import Analysis, Conversation, Dynamic, Message, Photo
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# What a cycle looks at, whatever the model could take: a model that is shown more reads less of each.
MOST_NEW = 200  # screenshots and, apart from these, conversations; the latest ones, the others wait
TRIES_ALONE = 3
MOST_TOKENS = 60_000  # and half of the context, as the answer and its thoughts need room
# Of the tokens, at most; the rest is for screenshots.
NOTES_SHARE, MEMORIES_SHARE, CONVERSATIONS_SHARE = 1 / 8, 1 / 8, 1 / 4
INSTRUCTION_TOKENS = 700
MOST_MEMORIES = 40
MOST_SAID = 30  # messages of a conversation, the latest
MAX_SAID = 400  # characters of each
# Characters of a screenshot's summary and text. The summary should hold what matters of the text.
MAX_SUMMARY, MAX_TEXT = 600, 300
MOST_ENTITIES = 20
ANALYSES_A_CYCLE = 3  # by the contract
# More than so many would find nothing new.
MOST_ASKED = 3
# While the queue is busy, as after an import, only the first so many of these come at once, then one in so
# long a time.
MOST_IN_A_ROW = 3
SPACING = timedelta(minutes=5)

TURN_PATIENCE = 200.0  # seconds: the longest answer of a model, 130, and the longest push, 60
PLACE_PATIENCE = 0.5  # for the moment in which one that waited begins
BUSY = "The reasoner is at work, and one more cycle waits already."
LOOK_AGAIN = 5.0  # seconds

T = TypeVar("T")


class Asked(msgspec.Struct):
    """The cycles that completed analyses have asked for, over all processes and restarts."""

    completed: int = 0  # since the last one that asked
    waiting: int = 0
    in_a_row: int = 0  # cycles since the queue was last found empty
    last_at: datetime | None = None


class Portion(msgspec.Struct):
    """How much a cycle looks at: less after answers that could not be used."""

    most: int = MOST_NEW
    failures: int = 0  # of one screenshot or conversation alone, in a row


# -------------------------------------------------------------------------------------------------- the cycle


def cycle(
    settings: Settings, *, device_id: str | None = None, clock: Callable[[], datetime] = utc_now
) -> list[Dynamic]:
    """Look at what is new, of one device or of all; save what is worth a note, push, and return the notes
    that are new.

    Opens the database by itself, for moments. Raises `Unavailable` when one cycle runs and another waits, and
    when something is new but the day's tokens are used up; `ModelFailure` when the model gives no answer.
    After any of these what is new stays new.
    """
    with _turn():
        with database.scope():
            chosen = configuration.current(settings)
            model = llm.model_for(chosen, settings)
            material = _collect(device_id, min(MOST_TOKENS, chosen.max_context_tokens // 2), now=clock())
            if not material.photos and not material.conversations:
                return []
            llm.require_tokens(chosen, settings, now=clock())
        try:
            written = model.write_notes(material)
        except ModelFailure as problem:
            with database.scope():
                _fail(problem, material, model.identity, now=clock())
            raise
        with database.scope():
            saved = _save(written, material, device_id, model.identity, now=clock())
        _tell(settings, [dynamic.title for dynamic in saved])
        return saved


def count_completed() -> None:
    """An analysis is complete, in the transaction that says so; every third one asks for a cycle."""
    asked = _asked()
    asked.completed += 1
    if asked.completed >= ANALYSES_A_CYCLE:
        asked.completed, asked.waiting = 0, min(MOST_ASKED, asked.waiting + 1)
    _save_asked(asked)


def run_if_due(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Run a cycle that completed analyses have asked for; False when there is none, or it has to wait.

    One that fails is not repeated: what it would have looked at stays for the next one, at the latest the
    hourly.
    """
    with database.scope():
        if not _take(now=clock()):
            return False
    try:
        cycle(settings, clock=clock)
    except SnaploreError as problem:
        log.warning("the reasoner's cycle came to nothing: %s", problem)
    return True


def loop(settings: Settings) -> loops.Loop:
    """The thread that runs what `count_completed` asks for; for the server process, after it has forked."""
    return loops.Loop("reasoner", lambda: 0.0 if run_if_due(settings) else LOOK_AGAIN)


# ------------------------------------------------------------------------------------------- whose turn it is


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Be the only cycle. One more may wait for that; the next one is sent away."""
    folder = database.store().folder / "reasoner"
    with contextlib.ExitStack() as place:
        place.enter_context(named_lock(folder, "waiting", PLACE_PATIENCE, busy=BUSY))
        with named_lock(folder, "running", TURN_PATIENCE, busy=BUSY):
            place.close()
            yield


def _take(*, now: datetime) -> bool:
    """Take one of the cycles that are asked for, if its time has come; of a burst, one stands for all."""
    asked = _asked()
    if not asked.waiting and not asked.in_a_row:
        return False
    with db.atomic():
        asked = _asked()
        busy = models.tallied(status="pending") + models.tallied(status="processing") > 0
        burst = asked.in_a_row >= MOST_IN_A_ROW
        too_soon = asked.last_at is not None and asked.last_at <= now < asked.last_at + SPACING
        due = asked.waiting > 0 and not (busy and burst and too_soon)
        if due:
            asked.waiting = 0 if burst else asked.waiting - 1
            asked.in_a_row, asked.last_at = asked.in_a_row + 1, now
        if not busy:
            asked.in_a_row = 0
        if due or not busy:
            _save_asked(asked)
    return due


def _asked() -> Asked:
    return msgspec.convert(models.stored_value("dynamics.asked", {}), Asked)


def _save_asked(asked: Asked) -> None:
    models.store_value("dynamics.asked", asked)


# ------------------------------------------------------------------------------------------------ what is new

# What is not worth keeping is not worth a note. The index is named: SQLite would walk through everything that
# is done instead.
_NEW = """
    SELECT photo_id FROM analyses INDEXED BY analyses_to_note
    WHERE status = 'done' AND noted = 0 AND intent <> 'ignore' AND ? IN ('', device_id)
    ORDER BY photo_id DESC LIMIT ?
"""


def _collect(device_id: str | None, tokens: int, *, now: datetime) -> Material:
    """What is new, the latest first, and what is known beside it; as much of each as fits into its share of
    the prompt.
    """
    tokens, most = tokens - INSTRUCTION_TOKENS, min(MOST_NEW, _portion().most)
    remembered = [item["content"] for item in memory.page(1, MOST_MEMORIES, device_id=device_id, now=now)[1]]
    recent = [
        RecentNote(row.id, row.title, row.summary, row.category)
        for row in dynamics.recent(device_id, now=now)
    ]
    memories, recent = _fitting(remembered, tokens * MEMORIES_SHARE), _fitting(recent, tokens * NOTES_SHARE)
    # However small the context is, something is looked at.
    conversations = _fitting(_conversations(device_id, most), tokens * CONVERSATIONS_SHARE, least=1)
    left = tokens - _size([*memories, *recent, *conversations])
    photos = _fitting(_photos(device_id, most), left, least=0 if conversations else 1)
    return Material(now, photos, conversations, memories, recent)


def _photos(device_id: str | None, most: int) -> list[NewPhoto]:
    ids = [row[0] for row in db.execute_sql(_NEW, (device_id or "", most)).fetchall()]
    columns = (
        Photo.original_timestamp.alias("taken"),
        *(Analysis.photo, Analysis.device_id, Analysis.app_name, Analysis.content_category, Analysis.intent),
        peewee.fn.SUBSTR(Analysis.summary, 1, MAX_SUMMARY).alias("short_summary"),
        peewee.fn.SUBSTR(Analysis.visible_text, 1, MAX_TEXT).alias("short_text"),
        Analysis.entities,
    )
    chosen = Analysis.select(*columns).join(Photo).where(Analysis.photo.in_(ids))
    return [
        NewPhoto(
            id=row.photo_id,
            taken=row.taken,
            device=row.device_id,
            app=row.app_name,
            category=row.content_category,
            intent=row.intent,
            summary=row.short_summary,
            text=row.short_text,
            entities=msgspec.json.decode(row.entities, type=list[Entity])[:MOST_ENTITIES],
        )
        for row in cast("Iterable[Any]", chosen.order_by(Analysis.photo.desc()).objects())
    ]


def _conversations(device_id: str | None, most: int) -> list[NewConversation]:
    """Conversations with new answers, and what was said up to the last one: a question that is still open
    waits for its answer.
    """
    is_new = (Message.id > Conversation.noted_message_id) & Message.content.is_null(False)
    last = peewee.fn.MAX(Message.id)
    answered = Conversation.select(Conversation.id, Conversation.title, Conversation.device_id, last)
    # CROSS keeps the order: from each conversation to its new messages, not through all messages.
    answered = answered.join(Message, peewee.JOIN.CROSS).where(
        Message.conversation == Conversation.id, is_new, Message.role == "assistant"
    )
    if device_id is not None:
        answered = answered.where(Conversation.device_id == device_id)
    found = []
    newest = answered.group_by(Conversation.id).order_by(last.desc()).limit(most).tuples()
    for conversation_id, title, device, last_id in cast("Iterable[tuple[str, str, str, int]]", newest):
        messages = Message.select(Message.role, peewee.fn.SUBSTR(Message.content, 1, MAX_SAID))
        messages = messages.join(Conversation).where(
            is_new, Message.conversation == conversation_id, Message.role != "tool", Message.id <= last_id
        )
        rows = messages.order_by(Message.id.desc()).limit(MOST_SAID).tuples()
        latest = list(cast("Iterable[tuple[str, str]]", rows))
        said = tuple(f"{role}: {content}" for role, content in reversed(latest))
        found.append(NewConversation(conversation_id, title, device, said, last_id))
    return found


def _fitting(items: Sequence[T], tokens: float, *, least: int = 0) -> list[T]:
    """Those from the front that fit into `tokens`, but at least so many."""
    sizes = itertools.accumulate(_size([item]) for item in items)
    return [
        item
        for number, (item, size) in enumerate(zip(items, sizes, strict=True))
        if size <= tokens or number < least
    ]


def _size(items: Iterable[Any]) -> int:
    return sum(context.tokens(articles.shown(item)) for item in items)


# ----------------------------------------------------------------------------------------- what becomes of it


def _save(
    written: Notes, material: Material, device_id: str | None, model: str, *, now: datetime
) -> list[Dynamic]:
    """Keep the articles, and that the material has been looked at; returns the notes that are new."""
    with db.atomic():
        ledger.record(written.usage, purpose="reasoning", model=model, now=now)
        _mark(material)
        _save_portion(Portion(min(2 * _portion().most, MOST_NEW)))
        recent = {dynamic.id: dynamic for dynamic in dynamics.recent(device_id, now=now)}
        saved = []
        for article in written.articles:
            origins = _origins(article)
            if not origins:
                continue
            earlier = recent.get(article.updates) if article.updates is not None else None
            if earlier is None:
                alike = (note for note in recent.values() if articles.alike(note.title, article.title))
                earlier = next(alike, None)
            if earlier is not None:
                dynamics.extend(earlier, article, origins)
                continue
            dynamic = dynamics.add(article, origins, now=now)
            recent[dynamic.id] = dynamic
            saved.append(dynamic)
    return saved


def _fail(problem: ModelFailure, material: Material, model: str, *, now: datetime) -> None:
    """Count what the failure cost. An answer that is unusable may be so because of one screenshot, or of
    their number.

    So the next cycle looks at half as many. When one alone has failed as often as a screenshot may fail in
    its analysis, it is given up, or nothing would ever be noted again.
    """
    with db.atomic():
        if problem.usage is not None:
            ledger.record(problem.usage, purpose="reasoning", model=model, now=now)
        if not isinstance(problem, AnswerUnusable):
            return
        portion, number = _portion(), max(len(material.photos), len(material.conversations))
        if number > 1:
            portion = Portion(number // 2)
        elif portion.failures + 1 < TRIES_ALONE:
            portion.failures += 1
        else:
            portion = Portion(1)
            _mark(material)
            cited = [
                *(photo.id for photo in material.photos),
                *(conversation.id for conversation in material.conversations),
            ]
            log.warning("the reasoner gives up on %s: %s", cited, problem)
        _save_portion(portion)


def _portion() -> Portion:
    return msgspec.convert(models.stored_value("dynamics.portion", {}), Portion)


def _save_portion(portion: Portion) -> None:
    models.store_value("dynamics.portion", portion)


def _mark(material: Material) -> None:
    models.mark_noted([photo.id for photo in material.photos])
    for seen in material.conversations:
        conversations.mark_noted(seen.id, seen.last_message_id)


def _origins(article: Article) -> dict[int | str, str]:
    """The cited ids with their devices, but for what was deleted while the model was thinking: nothing of
    that is kept.
    """
    photos = Photo.select(Photo.id, Photo.device_id).where(Photo.id.in_(article.photo_ids))
    conversations = Conversation.select(Conversation.id, Conversation.device_id).where(
        Conversation.id.in_(article.conversation_ids)
    )
    return {
        **dict(cast("Iterable[tuple[int, str]]", photos.tuples())),
        **dict(cast("Iterable[tuple[str, str]]", conversations.tuples())),
    }


def _tell(settings: Settings, titles: list[str]) -> None:
    """Push, once for all; what is saved is saved whether it is heard of or not."""
    if not titles:
        return
    try:
        push.broadcast(settings, push.new_notes(titles, settings.language))
    except (SnaploreError, OSError, peewee.DatabaseError) as problem:
        log.warning("new notes could not be pushed: %s", problem)


# -------------------------------------------------------------------------------------------------- the route

routes = dynamics.routes  # the trigger is one of the notes' paths; the application registers both as one


@routes.post("/trigger")
@inputs.without_scope
@inputs.operation(Unavailable, ModelFailure)
def trigger(query: dynamics.Device, body: dynamics.Device) -> shapes.Generated:
    """Look at what is new, of all devices or of the one that the query or the body names, and write notes
    about it.
    """
    saved = cycle(inputs.settings(), device_id=body.device_id or query.device_id or None)
    return {"generated": len(saved), "articles": [shapes.of(dynamic, shapes.NewArticle) for dynamic in saved]}
