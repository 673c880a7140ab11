"""The candidates of a query: which photos have its words, or most of them, within its scope.

Ranking all matches is slow (1.3 s for a word in 95 % of a million photos). So a query takes its newest 2,000
matches, lets FTS5 rank them where that is cheap, and `search.py` compares the text of the best hundred with
the query.
"""

from datetime import datetime
from typing import NamedTuple

import msgspec

import photos
from lexicon import rows
from queries.operators import split
from queries.scope import Scope, any_of, quoted
from queries.wording import MAX_QUERY, Near, Query, Word, nearest, read, understand
from text import encodable

NEWEST = 2_000  # matches that are counted and ranked: the newest ones
RERANKED = 100  # of these, the best are compared on their text, 0.1 ms each
FEW = 5  # with fewer matches, words with typos match too
COVERAGE = 0.6  # share of a query's weight that a photo must have when none has all words

# Limits of the cost of a query. FTS5 ranks by reading all postings of all terms, 20 ms per million: with more
# than `RANKABLE`, the newest matches count as the best. It finds matches by reading the postings of the
# rarest word and looking up each meaning of the others: past `LOOKUPS`, the remaining words are so common
# that they are not required.
RANKABLE = 100_000
LOOKUPS = 500_000

MAX_NEAREST = 6  # words that are suggested when nothing was found


class Request(NamedTuple):
    """A query with its operators and filters."""

    words: str  # the text without operators
    operators: bool  # whether it has any
    query: Query
    scope: Scope


def request_of(text: str, filters: photos.Filters, now: datetime, *, guarded: bool = False) -> Request:
    """The request in a text, which may be any string."""
    parts = split(encodable(text[:MAX_QUERY]), now=now)
    query = read(parts.words, guarded=guarded)
    return Request(parts.words, bool(parts.operators), query, Scope.of(parts.operators, query, filters))


class Candidates(NamedTuple):
    """The photos whose texts are compared with a query."""

    words: list[Word]  # of the query, with what they may mean
    total: int  # photos with every word, counted up to `NEWEST`
    photo_ids: list[int]
    least: float  # the share of the query's weight that each must have


def find(query: Query, scope: Scope) -> Candidates:
    """The candidates of a query: photos that have all words or, if none has, most; with few, also typos."""
    if scope.is_empty or not scope.limit_to_days():
        return Candidates([], 0, [], 0.0)
    words = understand(query, typos=False)
    total, found = _with_all(words, scope)
    if total > RERANKED and len(query.sequence) > 1 and not query.choices:
        found = list(dict.fromkeys([*_with_phrase(words, query, scope), *found]))[:RERANKED]
    if total < FEW and query.loose:
        words = understand(query, typos=True)
        total, found = _with_all(words, scope)
    if total or not query.loose:
        return Candidates(words, total, found, 0.0)
    return Candidates(words, 0, _with_most(words, scope), COVERAGE)


def near(words: list[Word], request: Request) -> list[Near]:
    """Words that exist and are near to those of a request, each with its number of photos in the scope."""
    scope = request.scope
    found = nearest(words, request.query)
    if scope.narrows:
        within = msgspec.structs.replace(scope, phrases=[])
        found = [Near(word, len(within.newest([quoted(word)], NEWEST))) for word, _ in found]
    return [word for word in found if word.photos][:MAX_NEAREST]


def newest_with_all(request: Request, scope: Scope, most: int) -> list[int]:
    """The newest photos that have every word of a request, without typos, at most `most`."""
    words = [] if scope.is_empty else understand(request.query, typos=False)
    if not words or not all(word.meanings for word in words) or not scope.limit_to_days():
        return []
    return scope.newest(_every(words), most)


def _with_all(words: list[Word], scope: Scope) -> tuple[int, list[int]]:
    """How many photos have every word, at most `NEWEST`, and the candidates for a comparison of the text."""
    if not all(word.meanings for word in words):
        return 0, []
    return _candidates(_every(words), scope, sum(word.photos for word in words))


def _every(words: list[Word]) -> list[str]:
    """The conditions for photos that have every word; very common ones are left out."""
    rarest_first = sorted(words, key=lambda word: word.photos)
    conditions: list[str] = []
    lookups = 0
    for word in rarest_first:
        lookups += len(word.meanings) * rarest_first[0].photos
        if not conditions or lookups < LOOKUPS:
            conditions.append(any_of(word.meanings))
    return conditions


def _with_phrase(words: list[Word], query: Query, scope: Scope) -> list[int]:
    """The newest photos with the exact phrase, which may be older than the newest photos with its words."""
    if min(word.photos for word in words) * len(query.sequence) > LOOKUPS:
        return []
    return scope.newest([quoted(" ".join(query.sequence))], RERANKED // 2)


def _with_most(words: list[Word], scope: Scope) -> list[int]:
    """Candidates with one of the heaviest words: they include all with `COVERAGE` of the words' weight."""
    missable = (1 - COVERAGE) * sum(word.weight for word in words)
    if len(words) < 2 or sum(word.weight for word in words if not word.meanings) > missable:
        return []
    meanings: dict[str, float] = {}
    weight, postings = 0.0, 0
    for word in sorted(words, key=lambda word: word.weight, reverse=True):
        meanings |= word.meanings
        postings += word.photos
        weight += word.weight
        if weight > missable:
            break
    return _candidates([any_of(meanings)], scope, postings)[1]


def _candidates(conditions: list[str], scope: Scope, postings: int) -> tuple[int, list[int]]:
    newest = scope.newest(conditions, NEWEST)
    # A guarded query is not ranked by FTS5, which would count the words that are redacted, too.
    if len(newest) <= RERANKED or postings + scope.postings > RANKABLE or scope.guarded:
        return len(newest), newest[:RERANKED]
    sql, values = scope.matching(conditions)
    # By `bm25` and not by `rank`, the same value: SQLite takes three quarters of the time.
    best = rows(
        f"{sql} AND photo_index.rowid >= ? ORDER BY bm25(photo_index) LIMIT {RERANKED}", *values, newest[-1]
    )
    return len(newest), [row[0] for row in best]
