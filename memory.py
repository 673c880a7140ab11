"""Memories: short facts about the person, from validation through recall to decay; `/api/memories`.

Analyses, chat turns and the assistant's own tool propose memories, and `remember` is the only way to save
one. Models propose too much: the question that they were asked, memories that they were just given, facts
that are known already. A wrong memory affects every later conversation, so validation prefers to refuse, and
de-duplication prefers to keep two memories: a duplicate costs a line of context, a wrong merge costs a fact.

A wording keeps its source: text on a screenshot never replaces the wording of something the person said.

Terms are those of the search index, so Chinese is compared in pairs of characters. A person has thousands of
memories at most. They are compared in Python, with the terms of each text cached, and need no index (a recall
from 10,000 memories takes 30 ms).
"""

import functools
import heapq
import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, cast

import msgspec
import peewee
from flask import Blueprint
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

import gate
import models
import terms
from clock import iso, utc_now
from database import db
from engines.findings import MemoryCandidate
from engines.reading import MAX_MEMORY, MEMORY_CATEGORIES, MEMORY_TYPES, MemoryCategory, MemoryType
from errors import NotFound
from models import Memory
from text import fraction, one_line, storable
from web import inputs, shapes

LIFETIME = timedelta(hours=48)  # of a short-term memory since it was last saved or strengthened
ALIKE = 85  # rapidfuzz ratio (0 to 100) from which two texts may say the same; their words decide
GAIN = 0.1  # the share of what is missing to importance 1 that a repeated memory gains

MOST_RECALLED = 12
MAX_MESSAGE = 4_000  # characters of a message that are read for recall
# From this importance on, a memory is recalled even when it shares no word with the message: an allergy
# matters to every dinner.
IMPORTANT = 0.8
IMPORTANCE_SHARE = 0.5  # the weight of full importance relative to full relevance
# Words of a message that are checked for typos, the longest first. Each is compared with all words of all
# memories.
MAX_TYPOS = 8
TYPO = 0.7  # the weight of a word that matches only with one letter changed

# A memory rests on the person's own statements if it shares this much with them: "wants to see Japan in April
# with her sister" rests on "I want to travel to Japan. In April, with my sister." With a lower share, two
# words of three would be enough, and the third is what matters: "the password is dragonfly". The statements
# must be a few consecutive clauses: a whole conversation contains most words of any sentence.
STATED_SHARE = 0.75  # of the words that carry meaning
STATED_TOGETHER = 6  # clauses

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
    see `_is_refused`. Content is cut to one line of `MAX_MEMORY` characters, importance is clamped to 0..1,
    and a category or type outside the lists becomes "fact" or "short_term".
    """
    content = one_line(storable(candidate.content))[:MAX_MEMORY].strip()
    if _is_refused(content, said, recalled):
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


def rests_on(content: str, said: Iterable[str]) -> bool:
    """Whether the person stated `content` in `said`, their own messages of a conversation.

    This refuses what a tool, a web page or a screenshot made a model propose. Most words of `content` must
    have been stated (`STATED_SHARE`), as well as every word with a digit, and a negation if it has one.
    Questions and commands do not count. Of a request to remember something, all words must match, because
    "remember the password on it" states no password.
    """
    words = _words(content)
    weighty = words - _REPORTING - _RETELLING - _LINKING - _NEGATIONS
    exact = {word for word in words if any(map(str.isdigit, word))}
    stated = [
        (_words(clause), _TO_KEEP.search(clause) is None) for clause, states in _clauses(said) if states
    ]
    for first in range(max(1, len(stated) - STATED_TOGETHER + 1)):
        together = stated[first : first + STATED_TOGETHER]
        present: frozenset[str] = frozenset().union(*(words_of for words_of, _ in together))
        unrequested: frozenset[str] = frozenset().union(*(words_of for words_of, free in together if free))
        enough = weighty <= present or len(weighty & unrequested) >= STATED_SHARE * len(weighty)
        if weighty and enough and exact <= present and (present & _NEGATIONS or not words & _NEGATIONS):
            return True
    return False


def tells(said: str) -> bool:
    """Whether a message states anything. One that only asks and commands holds nothing to remember."""
    return any(states and _words(clause) for clause, states in _clauses([said]))


def asks_to_keep(said: str) -> bool:
    """Whether a message requests to remember something. "Do you remember …?" and "I remember …" do not."""
    return any(_TO_KEEP.search(clause) and not _RECALLING.search(clause) for clause in _CLAUSE.split(said))


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
    texts = _indexed(tuple(content for _, _, content in rows))
    weights = _weights(set(_terms(message[:MAX_MESSAGE])) - _LINKING, texts)
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
    """Counts of the memories that have not expired, in total, by type and by category. A category without
    memories is left out.
    """
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


# ---------------------------------------------------------------------------------- comparing texts

# Words without meaning of their own; a model chooses among them at random.
_EMPTY = frozenset(
    terms.cut(
        "a an the user i me my mine we our you your he she his her their am is are be do does has have s "
        "m ve that this"
    )
)
_EMPTY_CHINESE = re.compile("用户|我们?|[的了也很都]")
# Recall ignores these. Comparisons do not, because they may be the only difference: flying to Berlin and from
# Berlin.
_LINKING = frozenset(
    terms.cut(
        "to of in on at by for from with and or as it its was were what when where who which why how can "
        "could will would should about please if not no so but there any some"
    )
)
# Words with which a model reports that the person asked something.
_REPORTING = frozenset(
    terms.cut(
        "ask asked asking want wanted know wonder wondering request requested question about whether if to"
    )
)
_REPORTING |= frozenset("问询想知道")
# Words that a model adds when it repeats a statement.
_RETELLING = frozenset(
    terms.cut(
        "say said tell told mention mentioned call called name named currently also really very just year "
        "old don doesn didn isn"
    )
)
_RETELLING |= frozenset("说是在有叫名正")
# Adding or dropping one of these reverses the meaning. The t is what is left of n't.
_NEGATIONS = frozenset(terms.cut("no not never none nothing without cannot nor t")) | frozenset(
    "不没沒未无無非别別"
)

_CLAUSE = re.compile(r"(?<=[!?;。！？；，\n])|(?<=[.,])\s+")
_TO_KEEP = re.compile(
    r"remember|remind|don['’]t forget|keep in mind|note that|please note"
    r"|note down|make a note|记住|记得|记下|记一下|提醒|别忘",
    re.IGNORECASE,
)
_RECALLING = re.compile(  # the same words, but about the past
    r"\b(?:i|we|they|he|she)\b(?:['’](?:m|ve|d))?(?:\s+[\w'’]+){0,2}\s+remember|"
    r"\b(?:do|did|don['’]t|didn['’]t)\s+(?:you|i|we)\s+(?:\w+\s+)?remember|"
    r"remember(?:ed|s)\b|reminded\b|reminders?\b|"
    r"remind\s+(?:me|us)\s+(?:of\s+)?(?:what|where|who|whose|when|which|why|how)\b|"
    # Bounded: otherwise a long message of only such words would take seconds.
    r"[我还]记得|记得.{0,60}[吗呢?？]|提醒.{0,60}(?:吗|什么|哪|谁|多少)",
    re.IGNORECASE | re.DOTALL,
)
_REQUEST = re.compile(
    r"\s*(?:(?:what|where|who|whom|whose|which|why|how|is|are|was|were|do|does|did|can|could|would|will|should|"
    r"please|find|show|tell|give|list|search|look|open|write|explain|summari[sz]e|translate|describe|compare|"
    r"help|calculate|check|recommend|suggest|"
    r"i wonder|i(?:'d| would)? (?:like|want) to know)\b|请|帮|给我|告诉|找|搜|查|翻译|总结|解释|列出)|"
    r".*(?:什么|怎么|哪|谁|几点|多少|吗|呢)",
    re.IGNORECASE | re.DOTALL,
)
_STATED = re.compile(r"\s*(?:i|my|we|our)\b", re.IGNORECASE)  # even if the sentence ends as a question


def _is_refused(content: str, said: Iterable[str], recalled: Iterable[str]) -> bool:
    """Whether `content` must not be saved, because it

    - says nothing: it has no words, or only reports that somebody asked something;
    - restates the prompt: all of its words are in questions and commands of `said`;
    - repeats, in whole or in part, a memory of `recalled`: strengthening that would make each recall more
      likely by itself.

    The last two do not apply if the person states it in `said`: "I like jazz. Do you like jazz?" is worth
    remembering.
    """
    words = _words(content)
    requested, stated = _heard(said)
    if not words - _REPORTING:
        return True
    if words <= stated:
        return False
    return words - _REPORTING <= requested or any(_repeats(content, given) for given in recalled)


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
    if len(_words(content)) > len(_words(memory.content)):
        memory.content = content


@functools.lru_cache(maxsize=16_384)
def _terms(text: str) -> tuple[str, ...]:
    """The terms of a text, in order, without empty words. Cached, because every recall needs those of all
    memories.
    """
    return tuple(
        sys.intern(term) for term in terms.cut(_EMPTY_CHINESE.sub("", terms.fold(text))) if term not in _EMPTY
    )


def _words(text: str) -> frozenset[str]:
    """The words of a text for comparisons: words without a final s, and single Chinese characters."""
    found = (
        ((term.removesuffix("s") if len(term) > 3 else term),) if terms.is_word(term) else term
        for term in _terms(text)
    )
    return frozenset(itertools.chain.from_iterable(found))


def _heard(said: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of the clauses in which the person asks or commands, and of those that state something."""
    requests: list[str] = []
    statements: list[str] = []
    for clause, states in _clauses(said):
        (statements if states else requests).append(clause)
    return _words("\n".join(requests)), _words("\n".join(statements))


def _clauses(said: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each clause, and whether it states something; otherwise it is a question or a command."""
    for clause in itertools.chain.from_iterable(map(_CLAUSE.split, said)):
        asks = _REQUEST.match(clause) or (clause.rstrip().endswith(("?", "？")) and not _STATED.match(clause))
        yield clause, not asks or _TO_KEEP.search(clause) is not None


def _repeats(text: str, given: str) -> bool:
    """Whether `text` adds nothing to `given`: it says the same, or a part of it."""
    words, known = _words(text), _words(given)
    alike = fuzz.partial_ratio(" ".join(_terms(text)), " ".join(_terms(given))) >= ALIKE
    return words <= known and not (known - words) & _NEGATIONS and alike


def _says_the_same(text: str, other: str) -> bool:
    """Whether two similar texts have the same words, or one of them continues the other.

    Similarity alone would confuse Friday with Monday, 1,200 with 1,300, and liking with disliking.
    """
    shorter, longer = sorted((_terms(text), _terms(other)), key=len)
    more = _words(text) ^ _words(other)
    return not more or (longer[: len(shorter)] == shorter and not more & _NEGATIONS)


def _twin(content: str, source_type: str, device_id: str, *, now: datetime) -> Memory | None:
    """The memory that says the same as `content`, the most similar of several. A memory of another source
    counts only if `content` adds no word, because its wording must not be replaced.
    """
    seen = _alive(now) & Memory.device_id.in_({device_id, ""})
    query = Memory.select(Memory.id, Memory.content, Memory.source_type).where(seen)
    # As the driver returns them: with peewee's conversions 10,000 rows take three times as long.
    rows = cast(list[tuple[Any, ...]], db.execute(query).fetchall())
    known = {memory_id: (text, source) for memory_id, text, source in rows}
    keys = {memory_id: " ".join(_terms(text)) for memory_id, (text, _) in known.items()}
    for _, _, memory_id in process.extract(
        " ".join(_terms(content)), keys, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None
    ):
        text, source = known[memory_id]
        adds = _words(content) - _words(text)
        if _says_the_same(content, text) and (source == source_type or not adds):
            return Memory.get_by_id(memory_id)
    return None


class _Texts(NamedTuple):
    """The terms of some texts, and the places of the texts that have a term."""

    terms: list[tuple[str, ...]]
    having: dict[str, list[int]]


@functools.lru_cache(maxsize=2)
def _indexed(contents: tuple[str, ...]) -> _Texts:
    """The index of some texts. It is cached by the texts themselves, so it never differs from what is stored;
    memories rarely change from one turn of a chat to the next.
    """
    its_terms = [_terms(content) for content in contents]
    having: dict[str, list[int]] = {}
    for place, some in enumerate(its_terms):
        for term in set(some):
            having.setdefault(term, []).append(place)
    return _Texts(its_terms, having)


def _weights(wanted: set[str], texts: _Texts) -> dict[str, float]:
    """The terms of a message that occur in `texts`, with their weights: 1 for a term of one text, near 0 for
    one of all texts.
    """
    number = len(texts.terms)
    weights = {
        term: math.log1p(number / len(texts.having[term])) / math.log1p(number)
        for term in wanted & texts.having.keys()
    }
    misspelt = [
        term for term in wanted - weights.keys() if len(term) > 3 and term.isalpha() and terms.is_word(term)
    ]
    if misspelt:
        vocabulary = list(texts.having)
        for term in sorted(misspelt, key=lambda term: (-len(term), term))[:MAX_TYPOS]:
            for near, _, _ in process.extract(
                term, vocabulary, scorer=OSA.distance, score_cutoff=1, limit=None
            ):
                weights.setdefault(near, TYPO)
    return weights


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
