"""What a query means: its terms, and which terms of the vocabulary each of its words may mean.

A word also means longer words that it begins, typical errors of text recognition, other writings of a day or
a number, and, if a search asks for them, words one or two letters away, and Chinese that sounds so. Each has
a worth, by which a search ranks.
"""

import itertools
import math
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

import msgspec
from rapidfuzz.distance import OSA

import terms
from lexicon import OPEN, rows
from text import encodable
from vocabulary import EVERYTHING, JOINED, MAX_MEANINGS, Words, counts, date_terms, latest, sounding
from writings import figures, han

MAX_QUERY = 1_000  # characters of a query that are read
MAX_WORDS = 32  # words of a query that are used
ALL_MEANINGS = 128  # terms that all words of a query may mean
MAX_TYPOS = 4  # words of a query that are checked for typos; scanning 100,000 words takes 1 to 8 ms each
SUGGESTED = 12  # words that are near to those of a query
# Words that say nothing by themselves: none is offered in place of a word that was not found.
EMPTY = frozenset(
    """a about all also am an and any are as at be because been but by can could did do does for from had
    has have he her here him his how i if in into is it its just me more my no nor not of off on only or
    our out over she so some such than that the their them then there these they this those through to
    too up us very was we were what when where which while who why will with would you your 的 了 和 是 在 我
    你 他 她 它 也 都 就 不 有 与 及 或 吗 呢 吧""".split()  # noqa: SIM905  # one word a line would take two pages
)
MAX_SPELLED = 8  # words of a query that are read as pinyin
LONGEST_JOIN = 4  # words that text recognition may join
# With so many photos, other meanings of a word add nothing: photos with the exact word are ranked first.
PLENTY = 2_000

# A day or a number in another writing; a day of which the text has no year; Chinese that is spelled by its
# sound.
REWRITTEN, WITHOUT_YEAR, SPOKEN = 0.94, 0.75, 0.8

DAY = timedelta(days=1)

_QUOTED = re.compile(r'"([^"]*)"')
_PIECES = re.compile(r'"[^"]*"|[^\s"]+')
_OR = ("OR", "|", "或")


class Query(msgspec.Struct):
    """A query, cut into terms."""

    sequence: list[str]  # all terms that must be there, in order
    phrases: list[list[str]]  # the terms in double quotes
    loose: set[str]  # the terms outside of quotes
    needle: str  # the whole query, squeezed
    #: Of each of these lists one must be there: a term, or several that follow each other, with spaces.
    choices: list[list[str]] = []
    #: The days and numbers that the query has: the terms that write one, and what they mean together.
    figures: list[tuple[list[str], dict[str, float]]] = []
    #: The caller may not learn what is sensitive, so redacted text never changes the answer.
    guarded: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it has no words to search for."""
        return not (self.sequence or self.choices)


class Word(msgspec.Struct):
    """A distinct word of a query, with the terms that it may mean, or phrases, and their worth."""

    term: str
    meanings: dict[str, float]
    photos: int = 0  # sum of the photos of all meanings
    weight: float = 1.0  # how distinctive it is: 1 for a word of at most one photo, near 0 for one of all


def read(text: str, *, guarded: bool = False) -> Query:
    """The terms of a query, which may be any string. An unbalanced quote is ignored."""
    # SQLite's driver refuses lone surrogates. Terms contain no NUL and no operators, so nothing else needs to
    # be escaped.
    folded = terms.fold(encodable(text[:MAX_QUERY]))
    folded, choices = _choices(folded)
    sequence = terms.cut(folded)[:MAX_WORDS]
    phrases = [phrase for quoted in _QUOTED.findall(folded) if (phrase := terms.cut(quoted)[:MAX_WORDS])]
    free = _QUOTED.sub(" ", folded).casefold()
    found = (
        (terms.cut(free[figure.start : figure.end]), figure.meanings)
        for figure in figures.find(free, REWRITTEN, WITHOUT_YEAR)
    )
    return Query(
        sequence,
        phrases,
        {*terms.cut(free), *itertools.chain.from_iterable(choices)},
        terms.squeeze("".join(sequence)),
        choices,
        list(found),
        guarded,
    )


def _choices(folded: str) -> tuple[str, list[list[str]]]:
    """A query without what `OR` joins, and lists of that: of `berlin visa OR "residence card"`, `berlin`."""
    choices: list[list[str]] = []
    left: list[str] = []
    is_joined = False
    for piece in _PIECES.findall(folded):
        if piece in _OR:
            is_joined = bool(left)
        elif not (cut := terms.cut(piece)[:MAX_WORDS]):
            continue
        elif is_joined:
            # The one before is its own list, or the first of one.
            before = left.pop()
            if before:
                choices.append([" ".join(terms.cut(before))])
            choices[-1].append(" ".join(cut))
            left.append("")
            is_joined = False
        else:
            left.append(piece)
    return (folded, []) if not choices else (" ".join(left), choices[:MAX_WORDS])


def understand(query: Query, *, typos: bool) -> list[Word]:
    """The distinct words of a query with their meanings, which are terms of the present vocabulary. With
    `typos`, these include words one or two letters away, and Chinese that sounds as the query is spelled. A
    word in quotes means only itself, and so does each of a guarded query while there are photos to judge,
    whose words are in the vocabulary.
    """
    words = {term: Word(term, {term: 1.0}) for term in query.sequence}
    every = [*words.values(), *(Word(one[0], dict.fromkeys(one, 1.0)) for one in query.choices)]
    if query.guarded and _is_preparing():
        return every
    vocabulary = latest(guarded=query.guarded)
    own = {term: word for word in every for term in word.meanings}
    photos_with = counts([EVERYTHING, *own], guarded=query.guarded)
    most = max(2, min(MAX_MEANINGS, ALL_MEANINGS // max(1, len(own))))
    free = [term for term in own if term in query.loose and terms.is_word(term) and " " not in term]
    for term in free:
        if typos or photos_with.get(term, 0) < PLENTY:
            own[term].meanings |= dict(itertools.islice(vocabulary.close(term), most))
    if typos:
        for term in sorted(free, key=lambda term: photos_with.get(term, 0))[:MAX_TYPOS]:
            own[term].meanings = dict(vocabulary.near(term)[:most]) | own[term].meanings
        for spoken, together in _spoken(query, free):
            for term in together:
                own[term].meanings = dict.fromkeys(spoken, SPOKEN) | own[term].meanings
    for meanings, together in itertools.chain(_joins(query, vocabulary), _rewritten(query)):
        for term in together:
            words[term].meanings = meanings | words[term].meanings
    meant = itertools.chain.from_iterable(word.meanings for word in every)
    photos_with |= counts(meant, guarded=query.guarded)
    everything = photos_with.get(EVERYTHING, 1)
    for word in every:
        word.meanings = {
            term: worth for term, worth in word.meanings.items() if term in photos_with or " " in term
        }
        word.photos = sum(photos_with.get(term, 1) for term in word.meanings)
        if having := photos_with.get(word.term) or word.photos:
            word.weight = max(0.05, math.log1p(everything / having) / math.log1p(everything))
    return every


class Near(NamedTuple):
    """A word of the vocabulary."""

    word: str
    photos: int


def stands(query: Query) -> bool:
    """Whether a photo has every word of a query as it is typed."""
    wanted = (" AND ".join(f'"{term}"' for term in dict.fromkeys(query.sequence)),)
    found = "SELECT 1 FROM {0} WHERE {0} MATCH ?"
    if query.guarded:
        of_redacted = rows(f"{found} LIMIT 1".format("redacted_index"), *wanted)
        return bool(of_redacted) or bool(
            rows(f"{found} AND {OPEN.format(id='photo_index.rowid')} LIMIT 1".format("photo_index"), *wanted)
        )
    return bool(rows(f"{found} LIMIT 1".format("photo_index"), *wanted))


def nearest(words: list[Word], query: Query) -> list[Near]:
    """Terms that are near to a query's words, or are these with typos: `SUGGESTED`, the nearest first."""
    if query.guarded and _is_preparing():
        return []
    vocabulary = latest(guarded=query.guarded)
    near: dict[str, float] = {}
    for word in words[:MAX_TYPOS]:
        suggested = {word.term, *(term for term in word.meanings if " " not in term)}
        if terms.is_word(word.term):
            suggested.update(vocabulary.starting(word.term[: max(2, 2 * len(word.term) // 3)], SUGGESTED))
            if word.term not in query.loose:
                suggested.update(term for term, _ in vocabulary.near(word.term)[:SUGGESTED])
        for term in suggested - EMPTY:
            alike = OSA.normalized_similarity(word.term, term)
            if alike >= 0.5:
                near[term] = max(alike, near.get(term, 0.0))
    photos_with = counts(near, guarded=query.guarded)
    ranked = sorted(photos_with, key=lambda term: (near[term], photos_with[term]), reverse=True)
    return [Near(term, photos_with[term]) for term in ranked[:SUGGESTED]]


def as_typed(term: str, text: str) -> str:
    """A term of the query `text` as a person has typed it."""
    pieces = (piece[0] for piece in terms.PIECE.finditer(text[:MAX_QUERY]))
    return next((piece for piece in pieces if terms.cut(terms.fold(encodable(piece))) == [term]), term)


def days_within(since: datetime | None, until: datetime | None) -> list[str]:
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


def _is_preparing() -> bool:
    return bool(rows("SELECT 1 FROM analyses INDEXED BY analyses_unjudged WHERE judged = 0 LIMIT 1"))


def _joins(query: Query, vocabulary: Words) -> Iterator[tuple[dict[str, float], list[str]]]:
    """Terms that join neighbouring words of the query, each with these words."""
    for first, last in itertools.combinations(range(len(query.sequence)), 2):
        together = query.sequence[first : last + 1]
        if (
            len(together) <= LONGEST_JOIN
            and query.loose.issuperset(together)
            and all(map(terms.is_word, together))
        ):
            joined = "".join(together)
            longer = vocabulary.starting(joined, 3) if len(joined) > 5 else []
            yield dict.fromkeys([joined, *longer], JOINED), together


def _rewritten(query: Query) -> Iterator[tuple[dict[str, float], list[str]]]:
    """Other writings of the days and numbers in the query, each with the words that write it."""
    for together, meanings in query.figures:
        if query.loose.issuperset(together) and set(together).issubset(query.sequence):
            yield meanings, together


def _spoken(query: Query, free: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Chinese in the vocabulary that sounds as words of the query spell it (pinyin), with these words. A
    syllable by itself may be too many characters, so it is read together with its neighbours.
    """
    ways = {term: read for term in free[:MAX_SPELLED] if (read := han.syllables(term))}
    groups = [[term] for term, read in ways.items() if any(len(way) > 1 for way in read)]
    for are_spelled, run in itertools.groupby(query.sequence, ways.__contains__):
        together = list(run)
        if (
            are_spelled
            and len(together) > 1
            and any([len(term_way)] == [1] for term_way in ways[together[0]])
        ):
            groups.append(together)
    for together in groups:
        found: list[str] = []
        for way in itertools.islice(itertools.product(*(ways[term] for term in together)), han.MOST_WAYS):
            found += sounding(list(itertools.chain.from_iterable(way)), guarded=query.guarded)
        if found:
            yield found[: MAX_MEANINGS // 2], together
