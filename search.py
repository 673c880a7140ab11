"""Search over analysed screenshots: which photos match a query, and their ranking; `/api/search`.

The index is in `lexicon.py`; what the words of a query may mean, `queries/wording.py` finds.

The texts of at most a hundred candidates (`queries/candidates.py`) are compared with the query. That prefers
exact words to prefixes and prefixes to typos, and recognises a phrase even if text recognition joined or
split its words.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from flask import Blueprint

import photos
import readings
import terms
from clock import parse_time, utc_now
from engines.findings import Category, Intent
from lexicon import TEXTS, figure_terms, redactions, rows, texts_of
from queries import candidates
from queries.candidates import Candidates, newest_with_all, request_of
from queries.matches import Box, Marker, densest
from queries.scope import Scope
from queries.wording import Near, Query, Word, as_typed
from vocabulary import CONFUSED, TYPO
from web import inputs, shapes
from writings import figures

# The parts of a score, which sum to 1: words present, words close together, words in the heading, and age.
COVERED, CLOSE, HEADING, FRESH = 0.65, 0.25, 0.09, 0.01
HALF_FRESH = timedelta(days=30)  # the age at which half of the freshness is left
NEARBY = 12  # words: a sentence, or two lines of a screen

MAX_FORMS = 5  # words that are named in place of one of the query


class Hit(msgspec.Struct, frozen=True):
    """A photo that matches a query."""

    photo_id: int
    score: float  # 0 to 1
    snippet: str
    matched: list[str] = []  # the matching words, as they are written on the screenshot
    boxes: list[Box] = []  # their places on the picture


class Correction(msgspec.Struct, frozen=True):
    """A word of the query that stands nowhere as it was typed, and the words that were found instead."""

    word: str
    matched: list[str]


class Found(msgspec.Struct, frozen=True):
    """The result of a search. `total` is the number of matching photos, counted up to `NEWEST`, or up to
    `RERANKED` if no photo has all words. `nearest` are words that exist, when nothing was found.
    """

    total: int
    items: list[Hit]
    corrected: list[Correction] = []
    nearest: list[Near] = []


# ---------------------------------------------------------------------------------------------------- finding


def find(
    text: str,
    filters: photos.Filters = photos.Filters(),  # noqa: B008 - it is frozen
    *,
    limit: int = 20,
    guarded: bool = False,
    now: datetime,
) -> Found:
    """The photos that match the query `text`, best first, at most `limit` of them.

    Words in double quotes must occur as a phrase. Any other word also matches longer words that it begins,
    typical errors of text recognition, other writings of a day or a number, and, if there are few matches,
    words one or two letters away, and Chinese that sounds so. A photo
    must have all words or, if no photo has, most of the distinctive ones. The period of `filters` is that of
    `original_timestamp`: people remember when they took a picture, not when it was uploaded. Any string is a
    valid query.

    A `guarded` query is of somebody who may not learn what is sensitive: `rules/redaction.py` has what it
    searches of a photo with something sensitive on it.

    Operators in `text` (`queries/operators.py`) filter, too. Without any words, all photos that pass are
    counted, also those without text, and the latest pictures come first.
    """
    request = request_of(text, filters, now, guarded=guarded)
    query, scope = request.query, request.scope
    if query.is_empty:
        return _listed(scope, limit) if request.operators else Found(0, [])
    found = candidates.find(query, scope)
    if not found.words:
        return Found(0, [])
    matches = [match for match in _ranked(found, query, now) if match.coverage >= found.least]
    total = len(matches) if found.least else found.total
    if not matches:
        return Found(total, [], nearest=candidates.near(found.words, request))
    return Found(total, *_shown(matches[:limit], found.words, request.words))


def count_new(text: str, first_id: int, *, most: int, now: datetime) -> int:
    """The number of photos from `first_id` on with every word of a query, without typos, at most `most`."""
    request = request_of(text, photos.Filters(), now)
    scope = msgspec.structs.replace(request.scope, first_id=first_id)
    if not request.query.is_empty:
        return len(newest_with_all(request, scope, most))
    return scope.count(most) if request.operators and not scope.is_empty else 0


def newest(text: str, most: int, *, guarded: bool = False, now: datetime) -> list[int]:
    """The newest photos with every word of a query, or without words all that pass its operators."""
    request = request_of(text, photos.Filters(), now, guarded=guarded)
    if not request.query.is_empty:
        return newest_with_all(request, request.scope, most)
    return request.scope.listed(most)[1] if request.operators and not request.scope.is_empty else []


def _listed(scope: Scope, limit: int) -> Found:
    """All that passes, where there are no words to search for."""
    if scope.is_empty:
        return Found(0, [])
    total, ids = scope.listed(limit)
    texts = {found.photo_id: found for found in _texts(ids, guarded=scope.guarded)}
    read_of = readings.of(photo_id for photo_id, found in texts.items() if not found.redacted)
    marker = Marker([])
    return Found(
        total,
        [
            Hit(photo_id, 0.0, marker.show(texts[photo_id].texts, read_of.get(photo_id)).snippet)
            for photo_id in ids
            if photo_id in texts
        ],
    )


# ---------------------------------------------------------------------------------------------------- ranking


class _Searched(NamedTuple):
    """What is searched of a photo."""

    photo_id: int
    taken: str
    texts: list[str]
    redacted: bool


class _Match(NamedTuple):
    searched: _Searched
    coverage: float
    score: float


def _ranked(found: Candidates, query: Query, now: datetime) -> list[_Match]:
    """The photos by their scores; of those with nearly equal scores, the newest first."""
    comparison = _Comparison(found.words, query)
    matches = []
    for searched in _texts(found.photo_ids, guarded=query.guarded):
        coverage, score = comparison.of(searched.texts)
        age = max(timedelta(), now - datetime.fromisoformat(searched.taken))
        matches.append(_Match(searched, coverage, score + FRESH * 0.5 ** (age / HALF_FRESH)))
    return sorted(
        matches,
        key=lambda match: (round(match.score, 3), match.searched.taken, match.searched.photo_id),
        reverse=True,
    )


def _texts(photo_ids: list[int], *, guarded: bool) -> list[_Searched]:
    """What is searched of these photos; for a guarded query, what is left of those that are withheld."""
    found = rows(
        f"SELECT photo_id, taken_at, {TEXTS} FROM shown"  # noqa: S608
        " WHERE photo_id IN (SELECT value FROM json_each(?))",
        msgspec.json.encode(photo_ids).decode(),
    )
    left = redactions(photo_ids) if guarded else {}
    return [
        _Searched(
            photo_id, taken, left[photo_id] if photo_id in left else texts_of(*fields), photo_id in left
        )
        for photo_id, taken, *fields in found
    ]


class _Comparison:
    """Compares the texts of a hundred photos with one query, which is prepared once."""

    def __init__(self, words: list[Word], query: Query):
        self._words = words
        self._numbers = {term: number for number, word in enumerate(words) for term in word.meanings}
        weight = sum(word.weight for word in words)
        self._shares = [word.weight / weight for word in words]
        # The best meaning of each word first; those with a space are looked for in the whole line.
        self._best_first = [
            sorted(((worth, term, " " in term) for term, worth in word.meanings.items()), reverse=True)
            for word in words
        ]
        self._phrase = f" {' '.join(query.sequence)} "
        self._needle = query.needle
        self._has_figures = any(map(figures.is_term, self._numbers))
        self._reach = len(query.sequence)

    def of(self, texts: list[str]) -> tuple[float, float]:
        """The share of the query's weight that a photo has, and its score without freshness."""
        head, body = terms.fold_lines(texts[:2]), terms.fold_lines(texts[2:])
        sequence = terms.cut(head)
        in_head = set(sequence)
        sequence += terms.cut(body)
        present = set(sequence)
        in_text = not present.isdisjoint(self._numbers)
        if any(_may_be_a_part(word, present) for word in self._words):
            present.update(terms.parts(head, []), terms.parts(body, []))
            if self._has_figures:
                present |= figure_terms(f"{head}\n{body}")
        line = f" {' '.join(sequence)} "
        coverage, heading = 0.0, 0.0
        for word, share, meanings in zip(self._words, self._shares, self._best_first, strict=True):
            for worth, term, is_phrase in meanings:
                if term in present or (is_phrase and f" {term} " in line):
                    coverage += share * worth
                    heading += 0.0 if in_head.isdisjoint(word.meanings) else share * worth
                    break
        close = _as_a_whole(f"{head}\n{body}".casefold(), self._phrase in line, self._needle)
        if not close and in_text:
            numbers = self._numbers
            close = self._closeness(
                [(place, numbers[term]) for place, term in enumerate(sequence) if term in numbers]
            )
        return coverage, COVERED * coverage + CLOSE * close + HEADING * heading

    def _closeness(self, marks: list[tuple[int, int]]) -> float:
        """How close the words, of which one is there, are. `marks` are places in the sequence and numbers."""
        if len(self._words) == 1:
            exactly, nearby = 1, 1
        else:
            exactly, nearby = densest(marks, self._reach)[0], densest(marks, NEARBY)[0]
        return (0.35 * exactly + 0.15 * nearby) / len(self._words)


def _may_be_a_part(word: Word, present: set[str]) -> bool:
    """Whether a word that is not among the `present` terms may be a part of one, which takes long to find."""
    worth = max((worth for term, worth in word.meanings.items() if term in present), default=0.0)
    return worth <= TYPO and max(word.meanings.values(), default=CONFUSED) >= CONFUSED


def _as_a_whole(text: str, phrase: bool, needle: str) -> float:
    """How well the folded and case-folded `text` contains the query as a whole, 0 to 1: 1 as the first line
    by itself, less within a line or further down, and less if only with other spaces, which text recognition
    drops and adds.
    """
    if not phrase and len(needle) < 6 and not terms.RUN.search(needle):
        return 0.0  # so short that it may be part of other words
    lines = terms.squeezed(text)
    place = lines.find(needle)
    if place < 0:
        return 0.5 if phrase or needle in lines.replace("\n", "") else 0.0
    shortest, start = len(lines), place
    while start >= 0:  # line by line
        end = lines.find("\n", start)
        end = end if end >= 0 else len(lines)
        shortest = min(shortest, end - (lines.rfind("\n", 0, start) + 1))
        start = lines.find(needle, end)
    share = len(needle) / shortest
    return (0.7 if phrase else 0.55) + 0.2 * share + 0.1 * (1 - place / len(lines))


# ------------------------------------------------------------------------------------------- what a hit shows


def _shown(found: list[_Match], words: list[Word], text: str) -> tuple[list[Hit], list[Correction]]:
    """The hits, and which words of the query `text` they have in another form only."""
    marker = Marker(words)
    read_of = readings.of(photo.photo_id for photo, *_ in found if not photo.redacted)
    hits = []
    differing: list[dict[str, str]] = [{} for _ in words]
    as_they_are: set[int] = set()
    for match in found:
        photo_id, _, texts, _ = match.searched
        shown = marker.show(texts, read_of.get(photo_id))
        hits.append(
            Hit(
                photo_id,
                round(match.score, 4),
                shown.snippet,
                [form.written for form in shown.forms],
                shown.boxes,
            )
        )
        for form in shown.forms:
            for number in form.words:
                if form.differs:
                    differing[number].setdefault(form.written.casefold(), form.written)
                else:
                    as_they_are.add(number)
    corrected = [
        Correction(as_typed(word.term, text), list(forms.values())[:MAX_FORMS])
        for number, (word, forms) in enumerate(zip(words, differing, strict=True))
        if forms and number not in as_they_are
    ]
    return hits, corrected


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
    app: photos.AppName | None = None


@routes.get("", endpoint="find")
@inputs.operation()
def find_photos(query: SearchQuery) -> shapes.PhotoHits:
    """Find photos by words, `"phrases"`, beginnings of words, and words with typos, the best first. Any text
    is a valid query. `OR` between two words or phrases: one of them is enough. Days, amounts and long numbers
    are found in other writings, Chinese in the other script and by its pinyin.

    Operators filter: `app:` `tag:` `device:` `category:` `intent:` with a value (`app:"Google Maps"`),
    `before:` `after:` `on:` with a day, month or year (`2026-11-22`, `2026-11`, `2026`) or `today` or
    `yesterday` (`今天`, `昨天`), `is:kept` `is:sensitive` `is:unread` `has:code` `has:link` `has:date`; and
    by records `type:receipt` (also a beginning like `type:flight`, or a category), `seller:rewe`,
    `amount:>20` (`<`, `>=`, `<=`, `10..20`, also with a currency, `5EUR`), `has:amount`, of which all
    hold for one record. A minus excludes: `-word`, `-"a phrase"`, `-app:Maps`. Of several apps,
    devices, categories, intents or types, a photo has one; all other operators must hold. `after:`
    begins when the day, month or year has ended, and days are those of the server's time zone. Unread
    is what nobody has opened (`POST /api/photos/{id}/opened`). Everything else with a colon is text.
    Without words, all photos that pass are counted, and the latest pictures come first.
    """
    filters = photos.Filters(
        device_id=query.device_id,
        category=query.category,
        intent=query.intent,
        since=parse_time(query.since, field="since"),
        until=parse_time(query.until, field="until"),
        app=query.app,
    )
    return _as_hits(find(query.q, filters, limit=query.limit, now=utc_now()))


def _as_hits(found: Found) -> shapes.PhotoHits:
    hits = {hit.photo_id: hit for hit in found.items}
    items = [
        shapes.of({**item, **msgspec.to_builtins(hits[item["id"]])}, shapes.PhotoHit)
        for item in photos.list_items(list(hits))
    ]
    return {
        "total": found.total,
        "items": items,
        "corrected": msgspec.to_builtins(found.corrected),
        "nearest": [{"word": near.word, "photos": near.photos} for near in found.nearest],
    }
