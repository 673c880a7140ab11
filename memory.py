"""Memories: short facts about the person, from validation through recall to decay; `/api/memories`.

Analyses, chat turns and the assistant's own tool propose memories, and `remember` is the only way to save
one. Models propose too much: the question that they were asked, memories that they were just given, facts
that are known already. A wrong memory affects every later conversation, so validation prefers to refuse, and
de-duplication prefers to keep two memories: a duplicate costs a line of context, a wrong merge costs a fact.

A wording keeps its source: text on a screenshot never replaces the wording of something the person said.

What their texts say, `statements.py` compares. A person has thousands of memories at most, which need no
index (a recall from 10,000 takes 30 ms).
"""

import heapq
import itertools
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, cast

import msgspec
import peewee
from flask import Blueprint
from rapidfuzz import fuzz, process

import gate
import models
from clock import iso, utc_now
from database import db
from engines.findings import MemoryCandidate
from engines.reading import MAX_MEMORY, MEMORY_CATEGORIES, MEMORY_TYPES, MemoryCategory, MemoryType
from errors import NotFound
from models import Memory
from rules import statements
from text import fraction, one_line, storable
from web import inputs, shapes

LIFETIME = timedelta(hours=48)  # of a short-term memory since it was last saved or strengthened
GAIN = 0.1  # the share of what is missing to importance 1 that a repeated memory gains

MOST_RECALLED = 12
MAX_MESSAGE = 4_000  # characters of a message that are read for recall
# From this importance on, a memory is recalled even when it shares no word with the message: an allergy
# matters to every dinner.
IMPORTANT = 0.8
IMPORTANCE_SHARE = 0.5  # the weight of full importance relative to full relevance

DECAY = 0.98  # a day
FLOOR = 0.05  # of importance: long-term memories fade no further
LONGEST_DECAY = 150  # days; 0.98 to the power of 149 is below the floor, so more change nothing
DAY = timedelta(days=1)


class Decayed(NamedTuple):
    """The result of a decay."""

    days: int  # for which importance was lowered
    decayed: int  # long-term memories that lost importance
    expired: int  # short-term memories that were deleted


def remember(
    candidate: MemoryCandidate,
    *,
    source_type: str,
    device_id: str = "",
    now: datetime,
    said: Iterable[str] = (),
    recalled: Iterable[str] = (),
) -> Memory | None:
    """Save a memory, or strengthen the one that says the same; None when the candidate is refused.

    `said` are the person's messages of this turn, `recalled` the memories that the model was given for it;
    see `statements.is_refused`. Content is cut to one line of `MAX_MEMORY` characters, importance is clamped
    to 0..1, and a category or type outside the lists becomes "fact" or "short_term".
    """
    content = one_line(storable(candidate.content))[:MAX_MEMORY].strip()
    if statements.is_refused(content, said, recalled):
        return None
    memory_type = candidate.memory_type if candidate.memory_type in MEMORY_TYPES else "short_term"
    category = candidate.category if candidate.category in MEMORY_CATEGORIES else "fact"
    importance = fraction(candidate.importance)
    with db.atomic():
        memory = _twin(content, source_type, device_id, now=now)
        if memory is None:
            memory = Memory(content=content, source_type=source_type, device_id=device_id, created_at=now)
            memory.importance, memory.category, memory.memory_type = importance, category, memory_type
        else:
            _strengthen(memory, content, importance, category, memory_type)
        memory.expires_at = now + LIFETIME if memory.memory_type == "short_term" else None
        memory.save()
    return memory


def recall(
    message: str, *, device_id: str | None = None, most: int = MOST_RECALLED, now: datetime
) -> list[Memory]:
    """The memories that are relevant to a message, the best first, at most `most`. Increments the
    `access_count` of each.

    They share a term with the message, or are `IMPORTANT`. Rare terms weigh more (idf), and a word that no
    memory has matches words one letter away. Of two equal scores the newer memory comes first. With
    `device_id`, only memories of this device and of no device are read. Equal texts are returned once.
    """
    # Without peewee: each turn of a chat recalls.
    sql = "SELECT id, importance, content FROM memories WHERE (expires_at IS NULL OR expires_at > ?)"
    values = [iso(now)]
    if device_id is not None:
        sql, values = f"{sql} AND device_id IN (?, '')", [*values, device_id]
    rows = db.execute_sql(sql, values).fetchall()
    texts = statements.index_of(tuple(content for _, _, content in rows))
    weights = statements.weights_in(
        set(statements.terms_of(message[:MAX_MESSAGE])) - statements.LINKING, texts
    )
    everything = sum(weights.values()) or 1.0
    related = set(itertools.chain.from_iterable(texts.having[term] for term in weights))
    related.update(place for place, row in enumerate(rows) if row[1] >= IMPORTANT)
    scored: dict[tuple[str, ...], tuple[float, int]] = {}
    for place in related:
        memory_id, importance, _ = rows[place]
        its_terms = texts.terms[place]
        relevance = sum(map(weights.__getitem__, weights.keys() & its_terms)) / everything
        score = (relevance + IMPORTANCE_SHARE * importance, memory_id)
        scored[its_terms] = max(score, scored.get(its_terms, score))
    ids = [memory_id for _, memory_id in heapq.nlargest(most, scored.values())]
    with db.atomic():
        db.execute_sql(
            """UPDATE memories SET access_count = access_count + 1
            WHERE id IN (SELECT value FROM json_each(?))""",
            (msgspec.json.encode(ids).decode(),),
        )
        found = {memory.id: memory for memory in Memory.select().where(Memory.id.in_(ids))}
    return [found[memory_id] for memory_id in ids if memory_id in found]


def page(
    number: int,
    size: int,
    *,
    memory_type: str | None = None,
    category: str | None = None,
    device_id: str | None = None,
    now: datetime,
) -> tuple[int, list[shapes.MemoryFields]]:
    """The total and one page of memories, newest first, without expired ones."""
    where = _alive(now)
    for column, value in (
        (Memory.memory_type, memory_type),
        (Memory.category, category),
        (Memory.device_id, device_id),
    ):
        if value is not None:
            where &= column == value
    query = Memory.select().where(where)
    return query.count(), [
        shapes.of(memory, shapes.MemoryFields, sensitive=gate.kinds_about([], memory.content))
        for memory in query.order_by(Memory.id.desc()).paginate(number, size)
    ]


def statistics(*, now: datetime) -> shapes.MemoryStatistics:
    """Counts of the memories that have not expired, in total, by type and by category."""
    kinds = Memory.select(Memory.memory_type, Memory.category, peewee.fn.COUNT(Memory.id)).where(_alive(now))
    counts = dict.fromkeys(MEMORY_TYPES, 0)
    categories: dict[str, int] = {}
    rows = kinds.group_by(Memory.memory_type, Memory.category).tuples()
    for memory_type, category, number in cast("Iterable[tuple[str, str, int]]", rows):
        counts[memory_type] += number
        categories[category] = categories.get(category, 0) + number
    return {
        "total": sum(counts.values()),
        "short_term": counts["short_term"],
        "long_term": counts["long_term"],
        "categories": categories,
    }


def delete(memory_id: int) -> None:
    """Delete a memory. Raises `NotFound`."""
    if not Memory.delete().where(Memory.id == memory_id).execute():
        raise NotFound("Memory not found")


def decay(*, now: datetime) -> Decayed:
    """Delete expired memories, and multiply the importance of long-term memories by `DECAY` for each whole
    day since the last decay.

    Missed days are applied one by one, so that a memory fades only for days on which it existed. The rest of
    a day is left to the next run: running twice changes nothing, and running late loses nothing.
    """
    with db.atomic():
        expired = Memory.delete().where(Memory.expires_at <= now).execute()
        earliest = now - LONGEST_DECAY * DAY
        stored = models.stored_value("memory.decayed_at")
        # After a clock that was ahead, decay must not stop until the time has caught up.
        last = min(now, max(earliest, datetime.fromisoformat(stored))) if stored else earliest
        days = (now - last) // DAY
        fading = (Memory.memory_type == "long_term") & (Memory.importance > FLOOR)
        decayed = (
            Memory.select().where(fading, Memory.created_at <= last + (days - 1) * DAY).count() if days else 0
        )
        for _ in range(days):
            lower = peewee.fn.MAX(FLOOR, Memory.importance * DECAY)
            Memory.update(importance=lower).where(fading, Memory.created_at <= last).execute()
            last += DAY
        models.store_value("memory.decayed_at", iso(last))
    return Decayed(days, decayed, expired)


def _strengthen(memory: Memory, content: str, importance: float, category: str, memory_type: str) -> None:
    """Update a memory that says the same as a candidate with these values. Id and source stay.

    Importance becomes the greater of both and gains `GAIN` of what is missing to 1. The memory becomes
    long-term if either is. The category replaces only the general "fact". The wording is replaced only if the
    new one adds words; otherwise clients keep the one that they may have seen.
    """
    importance = max(importance, memory.importance)
    memory.importance = importance + GAIN * (1 - importance)
    if memory.category == "fact":
        memory.category = category
    if memory_type == "long_term":
        memory.memory_type = memory_type
    if len(statements.bare_words(content)) > len(statements.bare_words(memory.content)):
        memory.content = content


def _twin(content: str, source_type: str, device_id: str, *, now: datetime) -> Memory | None:
    """The memory that says the same as `content`. Another source's counts only if no word is added."""
    seen = _alive(now) & Memory.device_id.in_({device_id, ""})
    query = Memory.select(Memory.id, Memory.content, Memory.source_type).where(seen)
    # As the driver returns them: with peewee's conversions 10,000 rows take three times as long.
    rows = cast(list[tuple[Any, ...]], db.execute(query).fetchall())
    known = {memory_id: (text, source) for memory_id, text, source in rows}
    keys = {memory_id: " ".join(statements.terms_of(text)) for memory_id, (text, _) in known.items()}
    for _, _, memory_id in process.extract(
        " ".join(statements.terms_of(content)),
        keys,
        scorer=fuzz.ratio,
        score_cutoff=statements.ALIKE,
        limit=None,
    ):
        text, source = known[memory_id]
        adds = statements.bare_words(content) - statements.bare_words(text)
        if statements.says_the_same(content, text) and (source == source_type or not adds):
            return Memory.get_by_id(memory_id)
    return None


def _alive(now: datetime) -> peewee.Expression:
    """The condition for memories that have not expired. Decay deletes the others once a day."""
    return Memory.expires_at.is_null() | (Memory.expires_at > now)


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("memory", __name__, url_prefix="/api/memories")


class ListQuery(msgspec.Struct):
    page: inputs.Page = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    memory_type: MemoryType | None = None
    category: MemoryCategory | None = None
    device_id: str | None = None


@routes.get("")
@inputs.operation()
def index(query: ListQuery) -> shapes.MemoryPage:
    """List memories that have not expired, the newest first. Short-term memories expire after 48 hours;
    long-term ones never do.
    """
    filters = {"memory_type": query.memory_type, "category": query.category, "device_id": query.device_id}
    total, items = page(query.page, query.page_size, **filters, now=utc_now())
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.MemoryStatistics:
    """Count the memories. Expired ones do not count."""
    return statistics(now=utc_now())


@routes.delete("/<id:memory_id>")
@inputs.operation(NotFound)
def remove(memory_id: int) -> shapes.Done:
    """Delete a memory. The assistant does not recall it any more."""
    delete(memory_id)
    return {"message": "Deleted"}
