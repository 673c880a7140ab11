"""The reasoner, which writes notes about new screenshots and conversations: when a cycle runs, what the model
gets to read, and how its articles are saved; `/api/dynamics/trigger`.

A cycle marks everything that the model has read: an analysis as noted, a conversation up to its last message.
Times could not replace the marks: a result is stored a moment after its time, and a cycle in between would
miss it for ever. Marks also make cycles for one device and for all devices agree, leave what does not fit to
the next cycle, and let a failed cycle change nothing. Articles and marks are written in one transaction, and
no database scope is open during the call of the model.

Memories and recent notes are given to the model as context. They are not new, and cannot be cited.

An article continues a recent note if it names that note or has nearly the same title (`dynamics.extend`).
Only new notes are counted and pushed: otherwise a topic of the day would be pushed every hour.

Cycles never overlap, across all processes; one may wait. Every third completed analysis requests a cycle, and
cron runs one every hour.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeVar, cast

import msgspec
import peewee

import agenda
import database
import dynamics
import gate
import llm
import loops
import memory
import models
import push
import tallies
from assistant import context, conversations
from assistant.transcript import held_back
from clock import local_time, utc_now
from database import db
from engines import articles, configuration, ledger
from engines.articles import Article, Material, NewConversation, NewPhoto, Notes, RecentNote
from engines.findings import Entity
from errors import AnswerUnusable, ModelFailure, SnaploreError, Unavailable
from locks import named_lock
from models import Analysis, Conversation, Dynamic, Message, Photo, Shown
from outlets import webhooks
from rules import statements
from settings import Settings
from web import inputs, shapes

log = logging.getLogger(__name__)

# The limits of one cycle, even for models that take more: the longer the prompt, the less of it they use.
MOST_NEW = 200  # screenshots, and as many conversations; the newest ones, the others wait
TRIES_ALONE = 3  # of one screenshot or conversation by itself
MOST_TOKENS = 60_000  # of the prompt, and at most half of the context: the answer needs room
# Of these tokens, at most; the rest is for screenshots.
NOTES_SHARE, MEMORIES_SHARE, CONVERSATIONS_SHARE = 1 / 8, 1 / 8, 1 / 4
INSTRUCTION_TOKENS = 700
MOST_MEMORIES = 40
MOST_SAID = 30  # messages of a conversation, the newest
MAX_SAID = 400  # characters of each message
# Characters of a screenshot's summary and text. The summary should hold what matters of the text.
MAX_SUMMARY, MAX_TEXT = 600, 300
MOST_ENTITIES = 20
# Earlier screenshots that the rules compare new ones with.
MOST_COMPARED, COMPARED = 80, timedelta(days=14)

MOST_READ = 400  # messages of a conversation that are looked at for what the assistant has read

ANALYSES_A_CYCLE = 3  # by the contract
MOST_ASKED = 3  # requested cycles that may wait; further ones would find nothing new
# While the queue is busy, for example after an import, only so many requested cycles run at once, then one
# per `SPACING`.
MOST_IN_A_ROW = 3
SPACING = timedelta(minutes=5)

RUNNING_PATIENCE = 200.0  # seconds: the longest answer of a model, 130, and the longest push, 60
WAITING_PATIENCE = 0.5  # seconds: a cycle that has waited leaves its place when it starts
BUSY = "The reasoner is running, and another cycle is already waiting."
LOOK_AGAIN = 5.0  # seconds until the thread looks for a requested cycle again

T = TypeVar("T")


class Requests(msgspec.Struct):
    """The cycles that completed analyses have requested, across all processes and restarts."""

    completed: int = 0  # analyses since the last request
    waiting: int = 0  # requested cycles that have not run
    in_a_row: int = 0  # cycles since the queue was last empty
    last_at: datetime | None = None


class Portion(msgspec.Struct):
    """How much a cycle reads: less after answers that were unusable."""

    most: int = MOST_NEW
    failures: int = 0  # in a row, of one screenshot or conversation by itself


# -------------------------------------------------------------------------------------------------- the cycle


def cycle(
    settings: Settings, *, device_id: str | None = None, clock: Callable[[], datetime] = utc_now
) -> list[Dynamic]:
    """Give the model what is new, of one device or of all; save its articles, push, and return the new notes.

    Opens its own short database scopes. Raises `Unavailable` when one cycle runs and another waits, and when
    something is new but the day's tokens are used up; `ModelFailure` when the model gives no usable answer.
    After any of these nothing is marked as read.
    """
    with _only_cycle():
        with database.scope():
            config = configuration.current(settings)
            model = llm.model_for(config, settings)
            tokens = min(MOST_TOKENS, config.max_context_tokens // 2)
            gated = gate.is_before(config, settings)
            for_rules = config.provider == configuration.LOCAL
            material = _collect(device_id, tokens, gated=gated, for_rules=for_rules, now=clock())
            if not material.photos and not material.conversations:
                return []
            ledger.require_tokens(config, settings, now=clock())
        try:
            written = model.write_notes(material)
        except ModelFailure as problem:
            with database.scope():
                _fail(problem, material, model.identity, now=clock())
            raise
        with database.scope():
            saved = _save(written, material, device_id, model.identity, now=clock())
        _push(settings, saved)
        return saved


def count_completed() -> None:
    """Count a completed analysis, in the transaction that completes it. Every third one requests a cycle."""
    requests = _requests()
    requests.completed += 1
    if requests.completed >= ANALYSES_A_CYCLE:
        requests.completed, requests.waiting = 0, min(MOST_ASKED, requests.waiting + 1)
    _save_requests(requests)


def run_if_due(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Run a requested cycle; False when none is requested, or it has to wait.

    A failed cycle is not repeated: its material stays new for the next one, at the latest the hourly one.
    """
    with database.scope():
        if not _take(now=clock()):
            return False
    try:
        cycle(settings, clock=clock)
    except SnaploreError as problem:
        log.warning("the reasoner's cycle failed: %s", problem)
    return True


def loop(settings: Settings) -> loops.Loop:
    """The thread that runs requested cycles; for the server process, after its fork."""
    return loops.Loop("reasoner", lambda: 0.0 if run_if_due(settings) else LOOK_AGAIN)


# ------------------------------------------------------------------------------------------ when a cycle runs


@contextlib.contextmanager
def _only_cycle() -> Iterator[None]:
    """Wait until no other cycle runs. Raises `Unavailable` when another cycle is already waiting."""
    folder = database.store().folder / "reasoner"
    with contextlib.ExitStack() as waiting:
        waiting.enter_context(named_lock(folder, "waiting", WAITING_PATIENCE, busy=BUSY))
        with named_lock(folder, "running", RUNNING_PATIENCE, busy=BUSY):
            waiting.close()
            yield


def _take(*, now: datetime) -> bool:
    """Take one of the requested cycles, if it may run now. After a burst, one cycle answers all requests."""
    requests = _requests()
    if not requests.waiting and not requests.in_a_row:
        return False
    with db.atomic():
        requests = _requests()
        busy = tallies.photos({"status": "pending"}) + tallies.photos({"status": "processing"}) > 0
        burst = requests.in_a_row >= MOST_IN_A_ROW
        too_soon = requests.last_at is not None and requests.last_at <= now < requests.last_at + SPACING
        due = requests.waiting > 0 and not (busy and burst and too_soon)
        if due:
            requests.waiting = 0 if burst else requests.waiting - 1
            requests.in_a_row, requests.last_at = requests.in_a_row + 1, now
        if not busy:
            requests.in_a_row = 0
        if due or not busy:
            _save_requests(requests)
    return due


def _requests() -> Requests:
    return msgspec.convert(models.stored_value("dynamics.asked", {}), Requests)


def _save_requests(requests: Requests) -> None:
    models.store_value("dynamics.asked", requests)


# ------------------------------------------------------------------------------------------------ what is new

# Screenshots with the intent `ignore` are not worth a note. The index is named: otherwise SQLite would walk
# through all finished analyses.
_NEW = """
    SELECT photo_id FROM analyses INDEXED BY analyses_to_note
    WHERE status = 'done' AND noted = 0 AND intent <> 'ignore' AND ? IN ('', device_id)
    ORDER BY photo_id DESC LIMIT ?
"""
# Newest first; few are skipped on the way, because most finished analyses were noted.
_NOTED = """
    SELECT photo_id FROM analyses
    WHERE status = 'done' AND noted = 1 AND intent <> 'ignore' AND ? IN ('', device_id)
    ORDER BY photo_id DESC LIMIT ?
"""


def _collect(device_id: str | None, tokens: int, *, gated: bool, for_rules: bool, now: datetime) -> Material:
    """What is new, newest first, with memories and recent notes as context; of each, as much as fits into its
    share of the prompt. Before the gate, nothing sensitive is in it. `for_rules`: with earlier screenshots.
    """
    tokens, most = tokens - INSTRUCTION_TOKENS, min(MOST_NEW, _portion().most)
    remembered = [item["content"] for item in memory.page(1, MOST_MEMORIES, device_id=device_id, now=now)[1]]
    remembered = [text for text in remembered if not (gated and gate.withholds_text(text))]
    recent = [
        RecentNote(row.id, row.title, row.summary, row.category)
        for row in dynamics.recent(device_id, now=now)
        if not (gated and _is_held(row))
    ]
    memories, recent = _fitting(remembered, tokens * MEMORIES_SHARE), _fitting(recent, tokens * NOTES_SHARE)
    # However small the context is, at least one item is read.
    conversations = _fitting(_conversations(device_id, most, gated), tokens * CONVERSATIONS_SHARE, least=1)
    # A model compares with its recent notes; the rules have nothing but the screenshots themselves.
    earlier = _earlier(device_id, now=now) if for_rules else []
    left = tokens - _size([*memories, *recent, *conversations])
    screenshots = _fitting(_photos(device_id, most, gated), left, least=0 if conversations else 1)
    if for_rules:
        screenshots, earlier = _with_days(screenshots, now=now), _with_days(earlier, now=now)
    return Material(now, screenshots, conversations, memories, recent, earlier)


def _with_days(found: list[NewPhoto], *, now: datetime) -> list[NewPhoto]:
    """The screenshots with the days on which the agenda has something for them."""
    events = agenda.on_photos(photo.id for photo in found)
    today = local_time(now).date()
    days = {
        photo_id: [
            day
            for item in items
            if not item.dismissed and (day := date.fromisoformat(item.starts_at[:10])) >= today
        ]
        for photo_id, items in events.items()
    }
    return [
        msgspec.structs.replace(photo, event_day=min(days.get(photo.id, []), default=None)) for photo in found
    ]


def _is_held(note: Dynamic) -> bool:
    """Whether a note rests on a sensitive screenshot, or has something sensitive in it."""
    cited = msgspec.json.decode(note.source_photo_ids, type=list[int])
    return gate.withholds_any(cited, note.title, note.summary)


def _photos(device_id: str | None, most: int, gated: bool) -> list[NewPhoto]:
    """The new screenshots. Sensitive ones before the gate are left out, and marked as read."""
    found = _described([row[0] for row in db.execute_sql(_NEW, (device_id or "", most)).fetchall()])
    if not gated:
        return found
    marks = gate.marks(photo.id for photo in found)
    held = {
        photo.id
        for photo in found
        if gate.withholds(marks.get(photo.id, gate.Mark()), msgspec.to_builtins(photo))
    }
    _mark_noted(sorted(held))
    return [photo for photo in found if photo.id not in held]


def _earlier(device_id: str | None, *, now: datetime) -> list[NewPhoto]:
    """The newest screenshots of earlier cycles, of the last `COMPARED`, which new ones are compared with."""
    rows = db.execute_sql(_NOTED, (device_id or "", MOST_COMPARED)).fetchall()
    since = now - COMPARED
    return [photo for photo in _described([row[0] for row in rows]) if photo.taken >= since]


def _described(ids: list[int]) -> list[NewPhoto]:
    """These screenshots, the newest first. What the person wrote replaces what was found."""
    columns = (
        Photo.original_timestamp.alias("taken"),
        *(Shown.photo, Shown.device_id, Shown.app_name, Shown.content_category, Shown.intent, Shown.title),
        peewee.fn.SUBSTR(Shown.summary, 1, MAX_SUMMARY).alias("short_summary"),
        peewee.fn.SUBSTR(Shown.text, 1, MAX_TEXT).alias("short_text"),
        peewee.fn.SUBSTR(Shown.note, 1, MAX_SUMMARY).alias("short_note"),
        Shown.entities,
    )
    query = Shown.select(*columns).join(Photo).where(Shown.photo.in_(ids))
    return [
        NewPhoto(
            id=row.photo_id,
            taken=row.taken,
            device=row.device_id,
            app=row.app_name,
            category=row.content_category,
            intent=row.intent,
            title=row.title,
            summary=row.short_summary,
            text=row.short_text,
            note=row.short_note,
            entities=msgspec.json.decode(row.entities, type=list[Entity])[:MOST_ENTITIES],
        )
        for row in cast("Iterable[Any]", query.order_by(Shown.photo.desc()).objects())
    ]


def _conversations(device_id: str | None, most: int, gated: bool) -> list[NewConversation]:
    """Conversations with new answers, and their messages up to the last answer: a question without an answer
    is left to the next cycle. Before the gate, messages with something sensitive are left out, and so are the
    assistant's in a conversation in which it has read a sensitive screenshot.
    """
    is_new = (Message.id > Conversation.noted_message_id) & Message.content.is_null(False)
    last = peewee.fn.MAX(Message.id)
    answered = Conversation.select(Conversation.id, Conversation.title, Conversation.device_id, last)
    # CROSS fixes the order of the join: each conversation, then its new messages, instead of all messages.
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
        if gated:
            title = "" if gate.withholds_text(title) else title
            latest = _let_out(conversation_id, latest)
        said = tuple(f"{role}: {content}" for role, content in reversed(latest))
        found.append(NewConversation(conversation_id, title, device, said, last_id))
    return found


def _let_out(conversation_id: str, messages: list[tuple[str, str]]) -> list[tuple[str, str]]:
    query = Message.select().where(Message.conversation == conversation_id).order_by(Message.id.desc())
    read = held_back(list(query.limit(MOST_READ))[::-1])
    return [
        (role, content)
        for role, content in messages
        if not (read and role == "assistant") and not gate.withholds_text(content)
    ]


def _fitting(items: Sequence[T], tokens: float, *, least: int = 0) -> list[T]:
    """The first items that fit into `tokens`, but at least `least` of them."""
    sizes = itertools.accumulate(_size([item]) for item in items)
    return [
        item
        for number, (item, size) in enumerate(zip(items, sizes, strict=True))
        if size <= tokens or number < least
    ]


def _size(items: Iterable[Any]) -> int:
    return sum(context.tokens(articles.shown(item)) for item in items)


# ---------------------------------------------------------------------------------------------- what is saved


def _save(
    written: Notes, material: Material, device_id: str | None, model: str, *, now: datetime
) -> list[Dynamic]:
    """Save the articles and mark the material as read; returns the new notes."""
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
                alike = (one for one in recent.values() if statements.titles_alike(one.title, article.title))
                earlier = next(alike, None)
            if earlier is not None:
                dynamics.extend(earlier, article, origins, now=now)
                continue
            dynamic = dynamics.add(article, origins, now=now)
            recent[dynamic.id] = dynamic
            saved.append(dynamic)
            webhooks.record(webhooks.WRITTEN, dynamic.id, now=now)
    return saved


def _fail(problem: ModelFailure, material: Material, model: str, *, now: datetime) -> None:
    """Record what the failure cost. An answer may be unusable because of one screenshot, or because there are
    too many.

    So the next cycle reads half as many. An item that has failed `TRIES_ALONE` times by itself is marked as
    read: otherwise it would block all later notes.
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
            log.warning("the reasoner skips %s: %s", cited, problem)
        _save_portion(portion)


def _portion() -> Portion:
    return msgspec.convert(models.stored_value("dynamics.portion", {}), Portion)


def _save_portion(portion: Portion) -> None:
    models.store_value("dynamics.portion", portion)


def _mark(material: Material) -> None:
    _mark_noted([photo.id for photo in material.photos])
    for seen in material.conversations:
        conversations.mark_noted(seen.id, seen.last_message_id)


def _mark_noted(photo_ids: list[int]) -> None:
    Analysis.update(noted=True).where(Analysis.photo.in_(photo_ids)).execute()


def _origins(article: Article) -> dict[int | str, str]:
    """The cited ids with their devices, without what was deleted during the call of the model."""
    there = Photo.id.in_(article.photo_ids) & ~models.IN_TRASH
    screenshots = Photo.select(Photo.id, Photo.device_id).where(there)
    conversations = Conversation.select(Conversation.id, Conversation.device_id).where(
        Conversation.id.in_(article.conversation_ids)
    )
    return {
        **dict(cast("Iterable[tuple[int, str]]", screenshots.tuples())),
        **dict(cast("Iterable[tuple[str, str]]", conversations.tuples())),
    }


def _push(settings: Settings, notes: list[Dynamic]) -> None:
    """Push once for all new notes, naming none that rests on something sensitive. Failures are logged."""
    if not notes:
        return
    with database.scope():
        closed = gate.is_closed(settings)
        titles = [
            push.UNNAMED[settings.language] if closed and _is_held(note) else note.title for note in notes
        ]
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
    """Write notes about what is new, of all devices or of the one that the query or the body names. The call
    lasts until they are written. Where nothing is new, no model is called and no note is written.
    """
    saved = cycle(inputs.settings(), device_id=body.device_id or query.device_id or None)
    return {"generated": len(saved), "articles": [shapes.of(dynamic, shapes.NewArticle) for dynamic in saved]}
