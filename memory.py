"""Memories: what is worth keeping about the person, from the gate that lets it in to the decay that lets it
fade; `/api/memories`.

Whoever extracts memories (an analysis, a chat turn, the assistant's own tool) hands them to `remember`, the
only way in. Models propose too much: the question that they were asked, what they were reminded of a moment
ago, what is known already. A wrong memory comes back in every later conversation, so the gate errs towards
writing nothing, and de-duplication towards keeping two apart: two memories that say the same cost a line of
context, two that were taken for one cost a fact.

A wording keeps the source that it came from. Text on a screenshot never becomes the wording of what the
person said.

Terms are those of the search index, so Chinese is compared in pairs of characters. The memories of a person
are thousands at most; they are compared in Python, where the terms of each text are kept, and need no index
of their own (a recall from 10,000: 30 ms).
"""

import functools
import heapq
import itertools
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, cast

import msgspec
import peewee
from flask import Blueprint
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

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

LIFETIME = timedelta(hours=48)  # of a short-term memory since it was last told
ALIKE = 85  # rapidfuzz's ratio from which two texts may say the same; whether they do, their words decide
GAIN = 0.1  # of what is missing to 1, which a memory gains in importance when it is told again

MOST_RECALLED = 12
MAX_MESSAGE = 4_000  # characters of a message that are read for recall
# from here a memory is recalled even when it shares no word with the message: an allergy matters to every
# dinner
IMPORTANT = 0.8
IMPORTANCE_SHARE = 0.5  # what full importance is worth beside full relevance
# words of a message whose typos are looked for, the longest; each is compared with every word of every memory
MAX_TYPOS = 8
TYPO = 0.7  # what a word is worth of which only a neighbour by one letter is found

# What a memory must share with what the person told to rest on it: "wants to see Japan in April with her
# sister" of "I want to travel to Japan. In April, with my sister." With less, two words of three would do,
# and the third is what matters: "the password is dragonfly". It must be told in a few clauses that follow
# each other: in all of a long conversation any sentence finds most of its words.
TOLD_SHARE = 0.75  # of the words that say something
TOLD_TOGETHER = 6  # clauses

DECAY = 0.98  # a day
FLOOR = 0.05  # of importance: what is long-term fades, but stays
LONGEST_DECAY = 150  # days; 0.98 to the power of 149 is below the floor, so more change nothing
DAY = timedelta(days=1)


class Decayed(NamedTuple):
    days: int  # that were made up
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
    """Write a memory, or strengthen the one that says the same; None when the gate lets nothing in.

    `said` is what the person wrote in this turn, `recalled` the memories that the model was given for it. Refused is

    - what says nothing: no word, or only that somebody asked something;
    - what restates the prompt: its words are all in the questions and commands of `said`;
    - what was recalled: the model repeats, in whole or in part, what it was given. It gains nothing by that, or each recall would
      make itself the likelier.

    Neither of the last two counts when the person told it in `said`: "I like jazz. Do you like jazz?" is
    worth remembering.

    What is let in is brought inside the limits: one line of at most `MAX_MEMORY` characters, importance 0 to
    1, "fact" and "short_term" for a category and a type outside the lists. Then it is compared with what a
    recall for `device_id` would see. The one that says the same stays, with its id and its source, and

    - gains importance: the greater of both, and `GAIN` of what is missing to 1;
    - becomes long-term if either is; a short-term one lives for another `LIFETIME`;
    - takes the new category if its own is only the general "fact";
    - takes the new wording if that goes on where the old one ends, and comes from the same source; from another one it becomes a
      memory of its own. A new wording that adds nothing is dropped: clients may have seen the old one.
    """
    content = one_line(storable(candidate.content))[:MAX_MEMORY].strip()
    asked, told = _heard(said)
    words = _words(content)
    if not words - _REPORTING:
        return None
    if not words <= told and (
        words - _REPORTING <= asked or any(_repeats(content, given) for given in recalled)
    ):
        return None
    memory_type = candidate.memory_type if candidate.memory_type in MEMORY_TYPES else "short_term"
    category = candidate.category if candidate.category in MEMORY_CATEGORIES else "fact"
    importance = fraction(candidate.importance)
    with db.atomic():
        kept = _twin(content, source_type, device_id, now=now)
        if kept is None:
            kept = Memory(content=content, source_type=source_type, device_id=device_id, created_at=now)
            kept.importance, kept.category, kept.memory_type = importance, category, memory_type
        else:
            importance = max(importance, kept.importance)
            kept.importance = importance + GAIN * (1 - importance)
            if kept.category == "fact":
                kept.category = category
            if memory_type == "long_term":
                kept.memory_type = memory_type
            if len(_words(content)) > len(_words(kept.content)):
                kept.content = content
        kept.expires_at = now + LIFETIME if kept.memory_type == "short_term" else None
        kept.save()
    return kept


def rests_on(content: str, said: Iterable[str]) -> bool:
    """Whether the person has told `content` themselves in `said`, the messages that they wrote in a
    conversation.

    What a tool, a web page or a screenshot says, and a model was talked into passing on, does not: most of
    its words must have been told, each that has a digit, and that it is a no. What the person only asked or
    commanded does not count; of a request to remember something it must be all words, for "remember the
    password on it" tells no password.
    """
    words = _words(content)
    weighty = words - _REPORTING - _RETELLING - _LINKING - _NEGATIONS
    exact = {word for word in words if any(map(str.isdigit, word))}
    told = [(_words(clause), _TO_KEEP.search(clause) is None) for clause, tells in _clauses(said) if tells]
    for first in range(max(1, len(told) - TOLD_TOGETHER + 1)):
        together = told[first : first + TOLD_TOGETHER]
        heard = frozenset().union(*(words_of for words_of, _ in together))
        freely = frozenset().union(*(words_of for words_of, free in together if free))
        enough = weighty <= heard or len(weighty & freely) >= TOLD_SHARE * len(weighty)
        if weighty and enough and exact <= heard and (heard & _NEGATIONS or not words & _NEGATIONS):
            return True
    return False


def tells(said: str) -> bool:
    """Whether a message tells anything: one that only asks and commands holds nothing to remember."""
    return any(is_told and _words(clause) for clause, is_told in _clauses([said]))


def asks_to_keep(said: str) -> bool:
    """Whether a message asks for something to be remembered. "Do you remember …?" and "I remember …" do not."""
    return any(_TO_KEEP.search(clause) and not _RECALLING.search(clause) for clause in _CLAUSE.split(said))


def recall(
    message: str, *, device_id: str | None = None, most: int = MOST_RECALLED, now: datetime
) -> list[Memory]:
    """The memories that matter to a message, the best first, at most `most`; each one's `access_count` goes
    up by 1.

    They share a term with the message, or are `IMPORTANT`. Rare terms weigh more (idf); a word that no memory
    has stands for the ones a letter away. Among equals the newer comes first. With `device_id`, those of this
    device and those of none, otherwise all; the same text comes once.
    """
    chosen = Memory.select(Memory.id, Memory.importance, Memory.content).where(_seen_by(device_id, now=now))
    rows = [(memory_id, importance, _terms(content)) for memory_id, importance, content in _raw(chosen)]
    weights = _weights(set(_terms(message[:MAX_MESSAGE])) - _LINKING, [row[2] for row in rows])
    everything = sum(weights.values()) or 1.0
    scored: dict[tuple[str, ...], tuple[float, int]] = {}
    for memory_id, importance, its_terms in rows:
        shared = weights.keys() & its_terms
        if shared or importance >= IMPORTANT:
            relevance = sum(map(weights.__getitem__, shared)) / everything
            score = (relevance + IMPORTANCE_SHARE * importance, memory_id)
            scored[its_terms] = max(score, scored.get(its_terms, score))
    ids = [memory_id for _, memory_id in heapq.nlargest(most, scored.values())]
    with db.atomic():
        Memory.update(access_count=Memory.access_count + 1).where(Memory.id.in_(ids)).execute()
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
    """The total and one page of memories as the contract shows them, newest first. What has expired is not
    there any more.
    """
    where = _alive(now)
    for column, value in (
        (Memory.memory_type, memory_type),
        (Memory.category, category),
        (Memory.device_id, device_id),
    ):
        if value is not None:
            where &= column == value
    chosen = Memory.select().where(where)
    return chosen.count(), [
        shapes.of(memory, shapes.MemoryFields)
        for memory in chosen.order_by(Memory.id.desc()).paginate(number, size)
    ]


def statistics(*, now: datetime) -> shapes.MemoryStatistics:
    """`{total, short_term, long_term, categories}`: numbers of memories that have not expired; categories
    only where there are any.
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
    """Raises `NotFound`."""
    if not Memory.delete().where(Memory.id == memory_id).execute():
        raise NotFound("Memory not found")


def decay(*, now: datetime) -> Decayed:
    """Delete what has expired, and lower the importance of long-term memories by `DECAY` for each whole day
    since the last decay.

    Days that were missed are gone through one by one, as they would have been: a memory fades only for the
    days that it has existed. What is left of a day stays for the next time, so running it twice changes
    nothing, and running it late loses nothing.
    """
    with db.atomic():
        expired = Memory.delete().where(Memory.expires_at <= now).execute()
        earliest = now - LONGEST_DECAY * DAY
        stored = models.stored_value("memory.decayed_at")
        # A clock that was ahead must not stop the decay until the time has caught up with it.
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


# ---------------------------------------------------------------------------------- what texts have in common

# Words that no text says anything by: which of them a model chooses differs from day to day.
_EMPTY = frozenset(
    terms.cut(
        "a an the user i me my mine we our you your he she his her their am is are be do does has have s m ve that this"
    )
)
_EMPTY_CHINESE = re.compile("用户|我们?|[的了也很都]")
# Recall leaves these out, too. Two memories may differ in nothing else: flying to Berlin and from Berlin.
_LINKING = frozenset(
    terms.cut(
        "to of in on at by for from with and or as it its was were what when where who which why how can could will would should "
        "about please if not no so but there any some"
    )
)
# How a model reports that it was asked something.
_REPORTING = frozenset(
    terms.cut(
        "ask asked asking want wanted know wonder wondering request requested question about whether if to"
    )
)
_REPORTING |= frozenset("问询想知道")
# What a model adds when it tells again what somebody told it.
_RETELLING = frozenset(
    terms.cut(
        "say said tell told mention mentioned call called name named currently also really very just year old don doesn didn isn"
    )
)
_RETELLING |= frozenset("说是在有叫名正")
# Left out of the one or added to the other, they turn the meaning round. The t is what is left of n't.
_NEGATIONS = frozenset(terms.cut("no not never none nothing without cannot nor t")) | frozenset(
    "不没沒未无無非别別"
)

_CLAUSE = re.compile(r"(?<=[!?;。！？；，\n])|(?<=[.,])\s+")
_TO_KEEP = re.compile(
    r"remember|remind|don['’]t forget|keep in mind|note that|please note|note down|make a note|记住|记得|记下|记一下|提醒|别忘",
    re.IGNORECASE,
)
_RECALLING = re.compile(  # the same words, about what was kept or should have been
    r"\b(?:i|we|they|he|she)\b(?:['’](?:m|ve|d))?(?:\s+[\w'’]+){0,2}\s+remember|"
    r"\b(?:do|did|don['’]t|didn['’]t)\s+(?:you|i|we)\s+(?:\w+\s+)?remember|"
    r"remember(?:ed|s)\b|reminded\b|reminders?\b|remind\s+(?:me|us)\s+(?:of\s+)?(?:what|where|who|whose|when|which|why|how)\b|"
    # bounded: a long message of nothing else would take seconds
    r"[我还]记得|记得.{0,60}[吗呢?？]|提醒.{0,60}(?:吗|什么|哪|谁|多少)",
    re.IGNORECASE | re.DOTALL,
)
_REQUEST = re.compile(
    r"\s*(?:(?:what|where|who|whom|whose|which|why|how|is|are|was|were|do|does|did|can|could|would|will|should|please|find|show|tell|"
    r"give|list|search|look|open|write|explain|summari[sz]e|translate|describe|compare|help|calculate|check|recommend|suggest|"
    r"i wonder|i(?:'d| would)? (?:like|want) to know)\b|请|帮|给我|告诉|找|搜|查|翻译|总结|解释|列出)|"
    r".*(?:什么|怎么|哪|谁|几点|多少|吗|呢)",
    re.IGNORECASE | re.DOTALL,
)
_TOLD = re.compile(r"\s*(?:i|my|we|our)\b", re.IGNORECASE)  # although the sentence ends as a question


@functools.lru_cache(maxsize=16_384)
def _terms(text: str) -> tuple[str, ...]:
    """The terms of a text, in order, without those that say nothing. Kept, because recall needs those of
    every memory each time.
    """
    return tuple(
        sys.intern(term) for term in terms.cut(_EMPTY_CHINESE.sub("", terms.fold(text))) if term not in _EMPTY
    )


def _words(text: str) -> frozenset[str]:
    """What a text says, to compare it as a whole: its words but for a final s, and its Chinese characters."""
    found = (
        ((term.removesuffix("s") if len(term) > 3 else term),) if terms.is_word(term) else term
        for term in _terms(text)
    )
    return frozenset(itertools.chain.from_iterable(found))


def _heard(said: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of the clauses in which the person asks or commands, and of those in which they tell
    something.
    """
    asked: list[str] = []
    told: list[str] = []
    for clause, tells in _clauses(said):
        (told if tells else asked).append(clause)
    return _words("\n".join(asked)), _words("\n".join(told))


def _clauses(said: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each clause, and whether the person tells something in it; otherwise they ask or command."""
    for clause in itertools.chain.from_iterable(map(_CLAUSE.split, said)):
        asks = _REQUEST.match(clause) or (clause.rstrip().endswith(("?", "？")) and not _TOLD.match(clause))
        yield clause, not asks or _TO_KEEP.search(clause) is not None


def _repeats(text: str, given: str) -> bool:
    """Whether `text` says nothing beyond `given`: the same, or a part of it."""
    words, known = _words(text), _words(given)
    alike = fuzz.partial_ratio(" ".join(_terms(text)), " ".join(_terms(given))) >= ALIKE
    return words <= known and not (known - words) & _NEGATIONS and alike


def _says_the_same(text: str, other: str) -> bool:
    """Whether two texts that look alike have the same words, or one of them goes on where the other ends.

    A ratio alone would take Friday for Monday, 1,200 for 1,300 and liking for disliking.
    """
    shorter, longer = sorted((_terms(text), _terms(other)), key=len)
    more = _words(text) ^ _words(other)
    return not more or (longer[: len(shorter)] == shorter and not more & _NEGATIONS)


def _twin(content: str, source_type: str, device_id: str, *, now: datetime) -> Memory | None:
    """The memory that says the same as `content`, the most alike of several. One of another source must have
    the same words, because a wording that says more cannot go under its name.
    """
    chosen = Memory.select(Memory.id, Memory.content, Memory.source_type).where(_seen_by(device_id, now=now))
    known = {memory_id: (text, source) for memory_id, text, source in _raw(chosen)}
    keys = {memory_id: " ".join(_terms(text)) for memory_id, (text, _) in known.items()}
    for _, _, memory_id in process.extract(
        " ".join(_terms(content)), keys, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None
    ):
        text, source = known[memory_id]
        adds = _words(content) - _words(text)
        if _says_the_same(content, text) and (source == source_type or not adds):
            return Memory.get_by_id(memory_id)
    return None


def _weights(wanted: set[str], texts: list[tuple[str, ...]]) -> dict[str, float]:
    """The terms by which a message finds something in `texts`, with their weights: 1 for a term of one text,
    near 0 for one of all.
    """
    having = Counter(itertools.chain.from_iterable(map(wanted.intersection, texts)))
    weights = {
        term: math.log1p(len(texts) / number) / math.log1p(len(texts)) for term, number in having.items()
    }
    misspelt = [
        term for term in wanted - having.keys() if len(term) > 3 and term.isalpha() and terms.is_word(term)
    ]
    if misspelt:
        vocabulary = list(set(itertools.chain.from_iterable(texts)))
        for term in sorted(misspelt, key=lambda term: (-len(term), term))[:MAX_TYPOS]:
            for near, _, _ in process.extract(
                term, vocabulary, scorer=OSA.distance, score_cutoff=1, limit=None
            ):
                weights.setdefault(near, TYPO)
    return weights


def _raw(chosen: "peewee.ModelSelect[Memory]") -> list[tuple[Any, ...]]:
    """The rows as the driver returns them; with peewee's conversions 10,000 take three times as long."""
    return cast(list[tuple[Any, ...]], db.execute(chosen).fetchall())


def _alive(now: datetime) -> peewee.Expression:
    """An expired memory is gone from its moment on; the daily decay only clears it away."""
    return Memory.expires_at.is_null() | (Memory.expires_at > now)


def _seen_by(device_id: str | None, *, now: datetime) -> peewee.Expression:
    return _alive(now) if device_id is None else _alive(now) & Memory.device_id.in_({device_id, ""})


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
    """List memories, the newest first; what has expired is not there any more."""
    chosen = {"memory_type": query.memory_type, "category": query.category, "device_id": query.device_id}
    total, items = page(query.page, query.page_size, **chosen, now=utc_now())
    return {"total": total, "page": query.page, "page_size": query.page_size, "items": items}


@routes.get("/stats")
@inputs.operation()
def stats() -> shapes.MemoryStatistics:
    """Count the memories."""
    return statistics(now=utc_now())


@routes.delete("/<id:memory_id>")
@inputs.operation(NotFound)
def remove(memory_id: int) -> shapes.Done:
    """Delete a memory."""
    delete(memory_id)
    return {"message": "Deleted"}
