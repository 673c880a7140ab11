"""Search over analysed screenshots: which photos match a query, and their ranking; `/api/search`.

The index and its vocabulary are in `lexicon.py`, which also expands the words of a query.

Ranking all matches is slow (1.3 s for a word in 95 % of a million photos). So a query takes its newest 2,000
matches, lets FTS5 rank them where that is cheap, and compares the text of the best hundred with the query.
That comparison prefers exact words to prefixes and prefixes to typos, and recognises a phrase even if text
recognition joined or split its words.
"""

import collections
from collections.abc import Iterable
from datetime import date, datetime, timedelta

import msgspec
from flask import Blueprint

import photos
import terms
from clock import iso, parse_time, utc_now
from engines.findings import Category, Intent
from lexicon import Query, Word, counts, date_terms, filter_term, read, rows, texts_of, understand
from web import inputs, shapes

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

# The parts of a score, which sum to 1: words present, words close together, words in the heading, and age.
COVERED, CLOSE, HEADING, FRESH = 0.65, 0.25, 0.09, 0.01
HALF_FRESH = timedelta(days=30)  # the age at which half of the freshness is left
NEARBY = 12  # words: a sentence, or two lines of a screen

SNIPPET = 160  # characters
DAY = timedelta(days=1)


class Hit(msgspec.Struct, frozen=True):
    """A photo that matches a query."""

    photo_id: int
    score: float  # 0 to 1
    snippet: str


class Found(msgspec.Struct, frozen=True):
    """The result of a search. `total` is the number of matching photos, counted up to `NEWEST`, or up to
    `RERANKED` if no photo has all words.
    """

    total: int
    items: list[Hit]


# ---------------------------------------------------------------------------------------------------- finding


def find(
    text: str,
    *,
    limit: int = 20,
    category: str | None = None,
    intent: str | None = None,
    device_id: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime,
) -> Found:
    """The photos that match the query `text`, best first, at most `limit` of them.

    Words in double quotes must occur as a phrase. Any other word also matches longer words that it begins,
    typical errors of text recognition, and, if there are few matches, words one or two letters away. A photo
    must have all words or, if no photo has, most of the distinctive ones. `since` (inclusive) and `until`
    (exclusive) filter by `original_timestamp`: people remember when they took a picture, not when it was
    uploaded. Any string is a valid query.
    """
    query = read(text)
    scope = _Scope.of(query, {"category": category, "intent": intent, "device": device_id}, since, until)
    if not query.sequence or scope is None:
        return Found(0, [])
    words = understand(query, typos=False)
    total, candidates = _with_all(words, scope)
    if total > RERANKED and len(query.sequence) > 1:
        candidates = list(dict.fromkeys([*_with_phrase(words, query, scope), *candidates]))[:RERANKED]
    if total < FEW and query.loose:
        words = understand(query, typos=True)
        total, candidates = _with_all(words, scope)
    if total or not query.loose:
        matches = _ranked(candidates, words, query, now)
    else:
        matches = [
            match
            for match in _ranked(_with_most(words, scope), words, query, now)
            if match.coverage >= COVERAGE
        ]
        total = len(matches)
    return Found(
        total,
        [
            Hit(match.photo_id, round(match.score, 4), _snippet(match.texts, words))
            for match in matches[:limit]
        ],
    )


class _Scope(msgspec.Struct):
    """The conditions for every match of a query: filters, quoted phrases and the time range."""

    conditions: list[str]
    postings: int = 0  # of the terms of filters and days
    since: str = ""
    until: str = ""

    @classmethod
    def of(
        cls, query: Query, filters: dict[str, str | None], since: datetime | None, until: datetime | None
    ) -> "_Scope | None":
        """None when no photo was taken in the time range."""
        of_filters = [filter_term(name, value) for name, value in filters.items() if value]
        days = _days(since, until) if since or until else []
        if (since or until) and not days:
            return None
        conditions = [*map(_quoted, of_filters), *(_quoted(" ".join(phrase)) for phrase in query.phrases)]
        scope = cls(conditions, sum(counts([*of_filters, *days]).values()))
        if days:
            scope.conditions.append(_any(days))
            scope.since, scope.until = iso(since) or "0", iso(until) or "~"
        return scope

    def matching(self, conditions: Iterable[str]) -> tuple[str, list[str]]:
        """The SQL for photos that meet `conditions` in this scope, and its values."""
        sql, values = (
            "SELECT photo_index.rowid FROM photo_index",
            [" AND ".join([*self.conditions, *conditions])],
        )
        if not self.until:
            return f"{sql} WHERE photo_index MATCH ?", values
        # The index knows only whole days; the photos know the time. CROSS keeps SQLite from starting with the
        # photos.
        sql += " CROSS JOIN photos ON photos.id = photo_index.rowid WHERE photo_index MATCH ?"
        return f"{sql} AND original_timestamp >= ? AND original_timestamp < ?", [
            *values,
            self.since,
            self.until,
        ]


def _with_all(words: list[Word], scope: _Scope) -> tuple[int, list[int]]:
    """How many photos have every word, at most `NEWEST`, and the candidates for a comparison of the text."""
    if not all(word.meanings for word in words):
        return 0, []
    rarest_first = sorted(words, key=lambda word: word.photos)
    conditions: list[str] = []
    lookups = 0
    for word in rarest_first:
        lookups += len(word.meanings) * rarest_first[0].photos
        if not conditions or lookups < LOOKUPS:
            conditions.append(_any(word.meanings))
    return _candidates(conditions, scope, sum(word.photos for word in words))


def _with_phrase(words: list[Word], query: Query, scope: _Scope) -> list[int]:
    """The newest photos with the exact phrase, which may be older than the newest photos with its words."""
    if min(word.photos for word in words) * len(query.sequence) > LOOKUPS:
        return []
    return _newest([_quoted(" ".join(query.sequence))], scope, RERANKED // 2)


def _with_most(words: list[Word], scope: _Scope) -> list[int]:
    """Candidates that include all photos with `COVERAGE` of the words' weight: each such photo has at least
    one of the heaviest words.
    """
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
    return _candidates([_any(meanings)], scope, postings)[1]


def _candidates(conditions: list[str], scope: _Scope, postings: int) -> tuple[int, list[int]]:
    newest = _newest(conditions, scope, NEWEST)
    if len(newest) <= RERANKED or postings + scope.postings > RANKABLE:
        return len(newest), newest[:RERANKED]
    sql, values = scope.matching(conditions)
    best = rows(f"{sql} AND photo_index.rowid >= ? ORDER BY rank LIMIT {RERANKED}", *values, newest[-1])
    return len(newest), [row[0] for row in best]


def _newest(conditions: list[str], scope: _Scope, most: int) -> list[int]:
    sql, values = scope.matching(conditions)
    return [row[0] for row in rows(f"{sql} ORDER BY photo_index.rowid DESC LIMIT {most}", *values)]


def _any(of: Iterable[str]) -> str:
    return f"({' OR '.join(map(_quoted, of))})"


def _quoted(term: str) -> str:
    """A string of FTS5's query language. Terms never contain quotes."""
    return f'"{term}"'


def _days(since: datetime | None, until: datetime | None) -> list[str]:
    """Terms of years, months and days that cover the range, as far as there are photos."""
    oldest, newest = rows("SELECT min(term), max(term) FROM vocabulary WHERE term >= '@0' AND term < '@:'")[0]
    if oldest is None:
        return []
    day = max(date(int(oldest[1:]), 1, 1), since.date() if since else date.min)
    last = min(date.fromisoformat(newest[1:]), until.date() if until else date.max).toordinal()
    covering = []
    while day.toordinal() <= last:
        year, month, this = date_terms(day.isoformat())
        to_year = date(day.year, 12, 31)
        to_month = (day.replace(day=28) + 4 * DAY).replace(day=1) - DAY if day.month < 12 else to_year
        if (day.month, day.day) == (1, 1) and to_year.toordinal() <= last:
            term, end = year, to_year
        elif day.day == 1 and to_month.toordinal() <= last:
            term, end = month, to_month
        else:
            term, end = this, day
        covering.append(term)
        if end == date.max:
            break
        day = end + DAY
    return covering


# ---------------------------------------------------------------------------------------------------- ranking


class _Match(msgspec.Struct):
    photo_id: int
    taken: str
    texts: list[str]
    coverage: float
    score: float


def _ranked(photo_ids: list[int], words: list[Word], query: Query, now: datetime) -> list[_Match]:
    """The photos by their scores; of those with nearly equal scores, the newest first."""
    analyses = rows(
        """SELECT photo_id, taken_at, app_name, summary, entities, visible_text FROM analyses
        WHERE photo_id IN (SELECT value FROM json_each(?))""",
        msgspec.json.encode(photo_ids).decode(),
    )
    numbers = {term: number for number, word in enumerate(words) for term in word.meanings}
    matches = []
    for photo_id, taken, *fields in analyses:
        texts = texts_of(*fields)
        coverage, score = _compared(texts, words, numbers, query)
        age = max(timedelta(), now - datetime.fromisoformat(taken))
        matches.append(_Match(photo_id, taken, texts, coverage, score + FRESH * 0.5 ** (age / HALF_FRESH)))
    return sorted(
        matches, key=lambda match: (round(match.score, 3), match.taken, match.photo_id), reverse=True
    )


def _compared(
    texts: list[str], words: list[Word], numbers: dict[str, int], query: Query
) -> tuple[float, float]:
    """The share of the query's weight that a photo has, and its score without freshness. `numbers` maps a
    term to the index of its word.
    """
    head, body = terms.fold_lines(texts[:2]), terms.fold_lines(texts[2:])
    sequence = terms.cut(head)
    in_head = set(sequence)
    sequence += terms.cut(body)
    present = set(sequence)
    if any(present.isdisjoint(word.meanings) for word in words):
        present.update(terms.parts(head, []), terms.parts(body, []))
    line = f" {' '.join(sequence)} "
    weight = sum(word.weight for word in words)
    coverage, heading = 0.0, 0.0
    for word in words:
        worths = (
            worth
            for term, worth in word.meanings.items()
            if term in present or (" " in term and f" {term} " in line)
        )
        share = word.weight / weight * max(worths, default=0.0)
        coverage += share
        heading += 0.0 if in_head.isdisjoint(word.meanings) else share
    close = _as_a_whole(
        terms.squeeze(f"{head}\n{body}"), f" {' '.join(query.sequence)} " in line, query.needle
    )
    if not close:
        marks = [(place, numbers[term]) for place, term in enumerate(sequence) if term in numbers]
        close = (0.35 * _densest(marks, len(query.sequence))[0] + 0.15 * _densest(marks, NEARBY)[0]) / len(
            words
        )
    return coverage, COVERED * coverage + CLOSE * close + HEADING * heading


def _as_a_whole(lines: str, phrase: bool, needle: str) -> float:
    """How well the text contains the query as a whole, 0 to 1: 1 as the first line by itself, less within a
    line or further down, and less if only with other spaces, which text recognition drops and adds.
    """
    if not phrase and len(needle) < 6 and not terms.RUN.search(needle):
        return 0.0  # so short that it may be part of other words
    place = lines.find(needle)
    if place < 0:
        return 0.5 if phrase or needle in lines.replace("\n", "") else 0.0
    share = max(len(needle) / len(line) for line in lines.split("\n") if needle in line)
    return (0.7 if phrase else 0.55) + 0.2 * share + 0.1 * (1 - place / len(lines))


def _densest(marks: list[tuple[int, int]], reach: int) -> tuple[int, int]:
    """The largest number of distinct words within `reach`, and the first place where they start. `marks` are
    pairs of place and word, in order.
    """
    most, start = 0, 0
    inside: collections.Counter[int] = collections.Counter()
    first = 0
    for place, word in marks:
        inside[word] += 1
        while marks[first][0] <= place - reach:
            inside[marks[first][1]] -= 1
            first += 1
        if (distinct := sum(map(bool, inside.values()))) > most:
            most, start = distinct, marks[first][0]
    return most, start


def _snippet(texts: list[str], words: list[Word]) -> str:
    """About `SNIPPET` characters around the place with most of the query's words: plain text, without
    highlighting.
    """
    app_name, summary, *values, visible_text = (" ".join(text.split()) for text in texts)
    numbers = {
        part: number for number, word in enumerate(words) for term in word.meanings for part in term.split()
    }
    most, snippet = 0, _cut_out(visible_text or summary, 0)
    for text in (visible_text, summary, " ".join(values), app_name):
        found, place = _densest(_marks(text, numbers), SNIPPET)
        if found > most:
            most, snippet = found, _cut_out(text, place)
    return snippet


def _marks(text: str, numbers: dict[str, int]) -> list[tuple[int, int]]:
    """The places of the query's words in `text`, as pairs of place and word, in order."""
    marks = []
    for piece in terms.PIECE.finditer(text):
        of_piece = [piece[0].casefold()] if piece[0].isascii() else terms.cut(terms.fold(piece[0]))
        marks += [
            (piece.start() + place, numbers[term]) for place, term in enumerate(of_piece) if term in numbers
        ]
    if not marks:
        # Maybe as a part of a compound, or as one character of a run.
        plain = text.casefold()
        marks = sorted((plain.find(term), number) for term, number in numbers.items() if term in plain)
    return marks


def _cut_out(text: str, place: int) -> str:
    start = max(0, min(place - SNIPPET // 4, len(text) - SNIPPET))
    end = start + SNIPPET
    # Cut at a space if one is near.
    if start and (space := text.find(" ", start, min(place, start + 20))) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", end - 20, end)) > 0:
        end = space
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("search", __name__, url_prefix="/api/search")


class SearchQuery(msgspec.Struct):
    q: inputs.AnyText = ""
    limit: inputs.PageSize = 20
    category: Category | None = None
    intent: Intent | None = None
    device_id: str | None = None
    since: inputs.Moment = ""
    until: inputs.Moment = ""


@routes.get("", endpoint="find")
@inputs.operation()
def find_photos(query: SearchQuery) -> shapes.PhotoHits:
    """Find photos by words, `"phrases"`, beginnings of words, and words with typos, the best first. Any text
    is a valid query.
    """
    found = find(
        query.q,
        limit=query.limit,
        category=query.category,
        intent=query.intent,
        device_id=query.device_id,
        since=parse_time(query.since, field="since"),
        until=parse_time(query.until, field="until"),
        now=utc_now(),
    )
    hits = {hit.photo_id: hit for hit in found.items}
    items: list[shapes.PhotoHit] = [
        {**item, "score": hits[item["id"]].score, "snippet": hits[item["id"]].snippet}
        for item in photos.list_items(list(hits))
    ]
    return {"total": found.total, "items": items}
