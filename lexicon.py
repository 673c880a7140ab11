"""The search index and its vocabulary: what is indexed, and which terms a word of a query may mean.

Text is cut into terms in Python (`terms.py`) and stored, joined by spaces, in a contentless FTS5 table whose
tokenizer only splits at spaces, so that one place decides what a term is. Filters are terms too (`@intent:…`,
`@2026-11-21`): FTS5 skips from match to match, while a filter in a join would read every photo with a common
word. The table `vocabulary` has each term with the number of photos that contain it.

The words of the vocabulary are also held in memory, where prefixes are found by bisection and typos by a scan
with rapidfuzz (with 100,000 documents 98 % recall in 3 ms; a trigram index takes 140 ms for 95 %). So the
index is only queried for terms that exist, and a query of unknown words needs no search.

More than 500 lines, because what is indexed and what a query means must agree term by term.
"""

import bisect
import collections
import contextlib
import copy
import heapq
import itertools
import logging
import math
import operator
import re
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

import database
import models
import terms
from database import db
from models import Redaction, Vocabulary
from rules import apps, redaction, sensitive
from rules.holdings import holdings
from text import encodable, one_line
from writings import figures, han

log = logging.getLogger(__name__)

MAX_QUERY = 1_000  # characters of a query that are read
MAX_WORDS = 32  # words of a query that are used
MAX_MEANINGS = 24  # terms that one word may mean; fewer if a query has many words
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
FEWEST_DIGITS, LONG_NUMBER = 4, 8  # so many of its last digits find a number of so many
MAX_SPELLED = 8  # words of a query that are read as pinyin
MOST_RUNS = 200  # of characters that have the same sounds
LONGEST_JOIN = 4  # words that text recognition may join
BLOCK = 64  # words in one string in memory; finding one of them takes 3 µs
SLICE = 20_000  # words that are read at once
# With so many photos, other meanings of a word add nothing: photos with the exact word are ranked first.
PLENTY = 2_000

# The worth of a term that differs from the query's word: characters that text recognition confuses, the word
# joined with its neighbour or split in two, a longer word, one letter different, two letters different.
CONFUSED, JOINED, LONGER, TYPO, FAR_TYPO = 0.95, 0.95, 0.85, 0.7, 0.5
# A day or a number in another writing; a day of which the text has no year; Chinese that is spelled by its
# sound.
REWRITTEN, WITHOUT_YEAR, SPOKEN = 0.94, 0.75, 0.8

TOGETHER = 1_000  # photos that a rebuild indexes at once
# Pages that one step of compacting writes, in 0.1 s. Compacting the index of 100,000 photos in one step would
# block writers for a second.
MERGED = 500
# From this block id on, FTS5 keeps its marks of removed rows (FTS5_TOMBSTONE_ROWID in its source).
MARKS = 1 << 53
EVERYTHING = "@"  # a term that every photo in the index has
NO_WORD = (EVERYTHING, figures.MARK)  # how terms begin that are no words
TABLES = ("photo_index", "redacted_index")
FORM = (
    2  # another number for each change of the terms under which a text is indexed: `renew` rebuilds the index
)
# A photo that guarded queries may search by all of its text, with {id} for its id. The conditions are
# literal, as in the partial indexes.
OPEN = """NOT EXISTS (SELECT 1 FROM redactions WHERE photo_id = {id})
    AND NOT EXISTS (SELECT 1 FROM analyses INDEXED BY analyses_sensitive
        WHERE sensitive <> '' AND photo_id = {id})
    AND NOT EXISTS (SELECT 1 FROM analyses INDEXED BY analyses_unjudged
        WHERE judged = 0 AND photo_id = {id})"""

_ALIKE = {character: group for group in ("0o", "1li") for character in group}
_QUOTED = re.compile(r'"([^"]*)"')
_PIECES = re.compile(r'"[^"]*"|[^\s"]+')
_OR = ("OR", "|", "或")
_ENTITIES = msgspec.json.Decoder(list[dict[str, str]])
_TAGS = msgspec.json.Decoder(list[str])
_APART = "\n" * 4
_SEEN = "documents - hidden"  # photos that a guarded query may find by a term

# ---------------------------------------------------------------------------------------------------- writing


def index(photo_id: int) -> None:
    """Index a photo by the present text of its analysis. A photo without text is not indexed.

    Before the text of an indexed photo is overwritten, `remove` must be called in the same transaction: it
    needs the old text to correct the vocabulary's counts. Repeating either call changes nothing.
    """
    remove(photo_id)
    index_new([photo_id])


def index_new(photo_ids: Iterable[int]) -> int:
    """Index photos that are not in the index; returns how many of them have text. Updates the vocabulary once
    for all of them, which takes half the time of `index`.
    """
    photo_ids = list(photo_ids)
    documents = {photo_id: document for photo_id in photo_ids if (document := document_of(photo_id))}
    for photo_id, document in documents.items():
        db.execute_sql("INSERT INTO photo_index(rowid, tokens) VALUES (?, ?)", (photo_id, document.tokens()))
    _count(_distinct(documents.values()))
    _redact(documents)
    _mark_holdings(photo_ids)
    return len(documents)


def remove(photo_id: int) -> None:
    """Remove a photo from the index. Its analysis must still have the text that was indexed."""
    remove_all([photo_id])


def remove_all(photo_ids: Iterable[int]) -> None:
    """Remove photos from the index, as `remove`. Updates the vocabulary once for all of them."""
    indexed = [photo_id for photo_id in photo_ids if _is_indexed(photo_id)]
    _forget_redactions(indexed)
    for photo_id in indexed:
        db.execute_sql("DELETE FROM photo_index WHERE rowid = ?", (photo_id,))
    _count(_distinct(filter(None, map(document_of, indexed))), -1)


@contextlib.contextmanager
def changing(photo_ids: Iterable[int]) -> Iterator[None]:
    """Index photos anew whose texts are changed inside the context, in the caller's transaction. Of the
    vocabulary only what differs is written, so 500 new tags take a third of the time of `remove` and `index`.
    """
    photo_ids = list(photo_ids)
    before = {photo_id: document_of(photo_id) for photo_id in photo_ids if _is_indexed(photo_id)}
    _forget_redactions(photo_ids)
    yield
    after = {photo_id: document_of(photo_id) for photo_id in photo_ids}
    changed = [photo_id for photo_id, document in after.items() if document != before.get(photo_id)]
    for photo_id in changed:
        if photo_id in before:
            db.execute_sql("DELETE FROM photo_index WHERE rowid = ?", (photo_id,))
        if document := after[photo_id]:
            tokens = (photo_id, document.tokens())
            db.execute_sql("INSERT INTO photo_index(rowid, tokens) VALUES (?, ?)", tokens)
    old = _distinct(document for photo_id in changed if (document := before.get(photo_id)))
    new = _distinct(document for photo_id in changed if (document := after[photo_id]))
    _count(new - old)
    _count(old - new, -1)
    _redact(photo_id for photo_id in photo_ids if after[photo_id])
    _mark_holdings(changed)


def redact_anew(photo_ids: list[int]) -> None:
    """Index these photos anew for guarded queries, after their marks have changed, and not their texts."""
    _forget_redactions(photo_ids)
    _redact(photo_id for photo_id in photo_ids if _is_indexed(photo_id))


def empty() -> None:
    """Remove all photos from the index, a thousand times faster than with `remove`."""
    for table in TABLES:
        db.execute_sql(f"INSERT INTO {table}({table}) VALUES ('delete-all')")  # noqa: S608
    Redaction.delete().execute()
    db.execute_sql("DELETE FROM vocabulary")


def renew() -> None:
    """Rebuild the index if a version of the program built it that indexed texts otherwise; the log has the
    progress. Takes a minute for 50,000 photos. Opens its own scope.
    """
    with database.scope():
        if models.stored_value("index_form", 1) == FORM:
            return
        with db.atomic():
            total = _number("SELECT count(*) FROM analyses")
            rebuild(lambda done: log.info("the search index is built anew: %d of %d photos", done, total))


def rebuild(progress: Callable[[int], None] | None = None) -> int:
    """Rebuild index and vocabulary from the analyses; returns the number of indexed photos, which `progress`
    receives as it grows.
    """
    empty()
    indexed = 0
    rows = db.execute_sql("SELECT photo_id FROM analyses ORDER BY photo_id")
    while batch := rows.fetchmany(TOGETHER):
        indexed += index_new([row[0] for row in batch])
        if progress:
            progress(indexed)
    models.store_value("index_form", FORM)
    return indexed


def compact(*, first: bool) -> bool:
    """Do one step, of `MERGED` pages, of merging the index into one segment; returns whether steps are left.
    Must be called without a transaction.

    Until then, removed text is only marked as deleted in the index; after a clean-up it must really be gone.
    The first step does nothing and returns False when nothing is marked. Steps and their end are those of
    https://sqlite.org/fts5.html#the_merge_command.
    """
    are_left = [_merge(table, first=first) for table in TABLES]
    return any(are_left)


def _merge(table: str, *, first: bool) -> bool:
    if first and not rows(f"SELECT 1 FROM {table}_data WHERE id >= ? LIMIT 1", MARKS):  # noqa: S608
        return False
    before = _number("SELECT total_changes()")
    pages = -MERGED if first else MERGED
    db.execute_sql(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
    return _number("SELECT total_changes()") - before >= 2


def photos_with(term: str) -> int:
    """How many photos contain this term, counted in the index itself."""
    return _number("SELECT count(*) FROM photo_index WHERE photo_index MATCH ?", f'"{term}"')


def count_anew(term: str) -> None:
    """Correct the vocabulary's count of a term from the index."""
    if documents := photos_with(term):
        redacted = "SELECT count(*) FROM photo_index JOIN redactions ON photo_id = photo_index.rowid"
        hidden = _number(f"{redacted} WHERE photo_index MATCH ?", f'"{term}"') - _number(
            "SELECT count(*) FROM redacted_index WHERE redacted_index MATCH ?", f'"{term}"'
        )
        counted = {"documents": documents, "hidden": max(0, hidden)}
        Vocabulary.insert(term=term, **counted).on_conflict(
            conflict_target=[Vocabulary.term], update=counted
        ).execute()
    else:
        Vocabulary.delete().where(Vocabulary.term == term).execute()


class Document(msgspec.Struct):
    """The terms under which a photo is indexed."""

    sequence: list[str]  # terms in the order of the text, in which phrases are found
    parts: list[str]  # parts of these terms, which belong to no phrase
    filters: list[str]

    def tokens(self) -> str:
        return " ".join(itertools.chain(self.sequence, self.parts, self.filters))

    def distinct(self) -> set[str]:
        return {*self.sequence, *self.parts, *self.filters}


def document_of(photo_id: int, texts: list[str] | None = None) -> Document | None:
    """The document of a photo with the present text of its analysis, or with these texts; None when it has no
    text.
    """
    found = rows(
        f"SELECT {TEXTS}, content_category, intent, shown.device_id, original_timestamp"  # noqa: S608
        " FROM shown JOIN photos ON photos.id = photo_id WHERE photo_id = ?",
        photo_id,
    )
    if not found:
        return None
    *fields, category, intent, device_id, taken = found[0]
    folded = terms.fold_lines(texts_of(*fields) if texts is None else texts)
    if not (sequence := terms.cut(folded)):
        return None
    tags = rows("SELECT folded FROM photo_tags WHERE photo_id = ?", photo_id)
    filters = [
        EVERYTHING,
        *(filter_term("category", category), filter_term("intent", intent), filter_term("device", device_id)),
        *date_terms(taken),
        *sorted(filter_term("tag", tag) for (tag,) in tags),
    ]
    parts = figure_terms(folded).difference(sequence).union(terms.parts(folded, sequence))
    return Document(sequence, sorted(parts), filters)


def figure_terms(folded: str) -> set[str]:
    """The terms of the days and numbers in a folded text, whatever their writing."""
    return {term for figure in figures.find(folded.casefold()) for term in figure.terms}


def withheld(photo_ids: Iterable[int]) -> set[int]:
    """Those of these photos of which a guarded query finds less than is on them, or nothing: they are marked,
    or have something sensitive in what a person wrote, or are not judged yet.
    """
    sql = f"SELECT value FROM json_each(?) WHERE NOT ({OPEN.format(id='value')})"  # noqa: S608
    return {row[0] for row in rows(sql, msgspec.json.encode(list(photo_ids)).decode())}


def redactions(photo_ids: Iterable[int]) -> dict[int, list[str]]:
    """What guarded queries search of those of these photos that are withheld, as `texts_of` returns it."""
    ids = list(photo_ids)  # SQLite reads the whole table to find that it has none of no ids
    rows = Redaction.select().where(Redaction.photo.in_(ids)) if ids else ()
    return {row.photo_id: msgspec.json.decode(row.texts) for row in rows}


def _redact(photo_ids: Iterable[int]) -> None:
    """Index those of these photos that are withheld by what is not sensitive on them."""
    found = rows(
        f"""SELECT photo_id, sensitive, title, filename, own_text, {TEXTS}
        FROM shown JOIN photos ON photos.id = photo_id
        WHERE NOT cleared AND photo_id IN (SELECT value FROM json_each(?))""",  # noqa: S608
        msgspec.json.encode(list(photo_ids)).decode(),
    )
    for photo_id, marked, title, filename, own_text, *fields in found:
        texts = texts_of(*fields)
        short = [title, filename, *texts[:-1], own_text]
        # All at once takes a tenth of the time; the empty lines keep them apart.
        if not marked and not sensitive.kinds(_APART.join(filter(None, short))):
            continue
        texts = redaction.redacted(texts, [title, filename])
        encoded = msgspec.json.encode(texts).decode("utf-8", "replace")
        Redaction.insert(photo=photo_id, texts=encoded).execute()
        if document := document_of(photo_id, texts):
            tokens = (photo_id, document.tokens())
            db.execute_sql("INSERT INTO redacted_index(rowid, tokens) VALUES (?, ?)", tokens)
        _hide(photo_id, document, 1)


def _forget_redactions(photo_ids: list[int]) -> None:
    """Undo `_redact`. The photos must still have the texts that were indexed."""
    if not photo_ids:
        return
    for row in Redaction.select().where(Redaction.photo.in_(photo_ids)):
        _hide(row.photo_id, document_of(row.photo_id, msgspec.json.decode(row.texts)), -1)
        db.execute_sql("DELETE FROM redacted_index WHERE rowid = ?", (row.photo_id,))
        row.delete_instance()


def _hide(photo_id: int, redacted: Document | None, sign: int) -> None:
    """Count the terms that a photo has only in what was cut out, or count them no longer."""
    document = document_of(photo_id)
    hidden = (document.distinct() if document else set()) - (redacted.distinct() if redacted else set())
    db.execute_sql(
        "UPDATE vocabulary SET hidden = hidden + ? WHERE term IN (SELECT value FROM json_each(?))",
        (sign, msgspec.json.encode(sorted(hidden)).decode()),
    )


def _mark_holdings(photo_ids: list[int]) -> None:
    """Record what these photos hold, as bits, for the filters of a search. It follows from the indexed text,
    so it changes with that.
    """
    found = rows(
        "SELECT photo_id, entities, text FROM shown WHERE photo_id IN (SELECT value FROM json_each(?))",
        msgspec.json.encode(photo_ids).decode(),
    )
    bits = [
        (photo_id, holdings([entity.get("type", "") for entity in _entities(entities)], text))
        for photo_id, entities, text in found
    ]
    # Most photos hold what they held; a statement that changes nothing writes nothing.
    sql = """INSERT INTO marks (photo_id, opened, holds)
        SELECT value ->> 0, 0, value ->> 1 FROM json_each(?) WHERE true
        ON CONFLICT (photo_id) DO UPDATE SET holds = excluded.holds WHERE holds <> excluded.holds"""
    db.execute_sql(sql, (msgspec.json.encode(bits).decode(),))


def _entities(column: str) -> list[dict[str, str]]:
    return _ENTITIES.decode(column)


def _is_indexed(photo_id: int) -> bool:
    return bool(rows("SELECT 1 FROM photo_index WHERE rowid = ?", photo_id))


def _distinct(documents: Iterable[Document]) -> "collections.Counter[str]":
    """The number of documents with each term."""
    return collections.Counter(itertools.chain.from_iterable(document.distinct() for document in documents))


def _count(documents: "collections.Counter[str]", sign: int = 1) -> None:
    """Add these numbers of photos to the counts of their terms, or subtract them. Sorted terms visit each
    page only once.
    """
    counted = (msgspec.json.encode(sorted(documents.items())).decode(),)
    if sign > 0:
        db.execute_sql(
            """INSERT INTO vocabulary(term, documents)
            SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE true
            ON CONFLICT(term) DO UPDATE SET documents = documents + excluded.documents""",
            counted,
        )
        return
    db.execute_sql(
        """UPDATE vocabulary SET documents = documents - gone.number
        FROM (SELECT value ->> 0 AS term, value ->> 1 AS number FROM json_each(?)) AS gone
        WHERE vocabulary.term = gone.term""",
        counted,
    )
    db.execute_sql(
        """DELETE FROM vocabulary
        WHERE documents < 1 AND term IN (SELECT value ->> 0 FROM json_each(?))""",
        counted,
    )


# The columns of the view `shown` that are the arguments of `texts_of`.
TEXTS = "app_name, summary, entities, text, own_title, note, tags"


def texts_of(
    app_name: str, summary: str, entities: str, text: str, own_title: str, note: str, tags: str
) -> list[str]:
    """The searchable texts of a photo: its app's names, heading, values of the entities and the person's
    note, visible text. The heading is the summary, below the person's title and tags.
    """
    values = [entity.get("value", "") for entity in _entities(entities)]
    heading = "\n".join(filter(None, (own_title, *_TAGS.decode(tags), summary)))
    return [apps.with_other_name(app_name), heading, *values, *filter(None, (note,)), text]


def folded_tag(tag: str) -> str:
    """A tag as it is compared: without differences of case, accents and spaces."""
    return one_line(terms.fold_latin(encodable(tag))).casefold()


def filter_term(name: str, value: str) -> str:
    """The term of a filter, which occurs in no text. In hexadecimal, because FTS5 ignores case."""
    return f"@{name}:{value.encode().hex()}"


def date_terms(day: str) -> list[str]:
    """The terms of an ISO timestamp's year, month and day, so that a time range needs few terms."""
    return [f"@{day[:length]}" for length in (4, 7, 10)]


def rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of an SQL statement."""
    return cast(list[tuple[Any, ...]], db.execute_sql(sql, values).fetchall())


def _number(sql: str, *values: object) -> int:
    return cast(int, rows(sql, *values)[0][0])


# ----------------------------------------------------------------------------------------- what a query means


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
    """A distinct word of a query, with the terms that it may mean and their worth. A meaning with a space is
    a phrase.
    """

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
    """A folded query without the words and phrases that `OR` joins, and lists of these: of
    `berlin visa OR "residence card"`, `berlin` is left.
    """
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
    lexicon = _lexicon(guarded=query.guarded)
    own = {term: word for word in every for term in word.meanings}
    photos_with = counts([EVERYTHING, *own], guarded=query.guarded)
    most = max(2, min(MAX_MEANINGS, ALL_MEANINGS // max(1, len(own))))
    free = [term for term in own if term in query.loose and terms.is_word(term) and " " not in term]
    for term in free:
        if typos or photos_with.get(term, 0) < PLENTY:
            own[term].meanings |= dict(itertools.islice(_close(term, lexicon), most))
    if typos:
        for term in sorted(free, key=lambda term: photos_with.get(term, 0))[:MAX_TYPOS]:
            own[term].meanings = dict(lexicon.near(term)[:most]) | own[term].meanings
        for spoken, together in _spoken(query, free):
            for term in together:
                own[term].meanings = dict.fromkeys(spoken, SPOKEN) | own[term].meanings
    for meanings, together in itertools.chain(_joins(query, lexicon), _rewritten(query)):
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
    """Terms of the vocabulary that are the words of a query, which `understand` found with typos, or are near
    to them: at most `SUGGESTED`, the nearest first.
    """
    if query.guarded and _is_preparing():
        return []
    lexicon = _lexicon(guarded=query.guarded)
    near: dict[str, float] = {}
    for word in words[:MAX_TYPOS]:
        suggested = {word.term, *(term for term in word.meanings if " " not in term)}
        if terms.is_word(word.term):
            suggested.update(lexicon.starting(word.term[: max(2, 2 * len(word.term) // 3)], SUGGESTED))
            if word.term not in query.loose:
                suggested.update(term for term, _ in lexicon.near(word.term)[:SUGGESTED])
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


def counts(of: Iterable[str], *, guarded: bool = False) -> dict[str, int]:
    """How many photos contain these terms, for a guarded query without what is redacted; terms without photos
    are left out.
    """
    number = _SEEN if guarded else "documents"
    sql = f"SELECT term, {number} FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))"  # noqa: S608
    if guarded:
        sql += f" AND {_SEEN} > 0"
    return dict(db.execute_sql(sql, (msgspec.json.encode(list(of)).decode(),)).fetchall())


def _is_preparing() -> bool:
    return bool(rows("SELECT 1 FROM analyses INDEXED BY analyses_unjudged WHERE judged = 0 LIMIT 1"))


def _close(word: str, lexicon: "_Lexicon") -> Iterator[tuple[str, float]]:
    """Terms that `word` may mean without a typo, with their worth, the closest first."""
    spellings = map("".join, itertools.product(*(_ALIKE.get(character, character) for character in word)))
    for spelling in itertools.islice(spellings, 256):
        if spelling != word and spelling in lexicon:
            yield spelling, CONFUSED
    if word not in lexicon:
        for place in range(2, len(word) - 1):
            if word[:place] in lexicon and word[place:] in lexicon:
                yield f"{word[:place]} {word[place:]}", JOINED
    if len(word) >= FEWEST_DIGITS and word.isdigit():
        for longer in lexicon.ending(word, MAX_MEANINGS // 2):
            yield longer, LONGER
    if len(word) > 1:
        for longer in lexicon.starting(word, MAX_MEANINGS // 2):
            yield longer, LONGER * (0.8 + 0.2 * len(word) / len(longer))


def _joins(query: Query, lexicon: "_Lexicon") -> Iterator[tuple[dict[str, float], list[str]]]:
    """Terms that join neighbouring words of the query, each with these words."""
    for first, last in itertools.combinations(range(len(query.sequence)), 2):
        together = query.sequence[first : last + 1]
        if (
            len(together) <= LONGEST_JOIN
            and query.loose.issuperset(together)
            and all(map(terms.is_word, together))
        ):
            joined = "".join(together)
            longer = lexicon.starting(joined, 3) if len(joined) > 5 else []
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
            found += _sounding(list(itertools.chain.from_iterable(way)), guarded=query.guarded)
        if found:
            yield found[: MAX_MEANINGS // 2], together


def _sounding(syllables: list[str], *, guarded: bool) -> list[str]:
    """The runs of characters with these sounds whose pairs are in the vocabulary, the most frequent first, as
    terms with spaces.
    """
    if not 2 <= len(syllables) <= han.MOST_SYLLABLES:
        return []
    number = _SEEN if guarded else "documents"
    runs: dict[str, int] = {}
    for place, (first, second) in enumerate(itertools.pairwise(map(han.characters, syllables))):
        begins = set(first) if not place else set(first).intersection(run[-1] for run in runs)
        pairs: dict[str, list[tuple[str, int]]] = {}
        for term, count in rows(
            f"""SELECT term, {number} FROM json_each(?) AS begin JOIN vocabulary
            ON term > begin.value AND term < begin.value || char(1114111) WHERE {number} > 0""",  # noqa: S608
            msgspec.json.encode(sorted(begins)).decode(),
        ):
            if len(term) == 2 and term[1] in second:
                pairs.setdefault(term[0], []).append((term, count))
        found = pairs.values() if not place else ()
        grown = {term: count for several in found for term, count in several}
        for run, fewest in runs.items():
            grown |= {run + term[1]: min(fewest, count) for term, count in pairs.get(run[-1], ())}
        runs = dict(sorted(grown.items(), key=lambda one: -one[1])[:MOST_RUNS])
    return [" ".join(map("".join, itertools.pairwise(run))) for run in runs]


# ---------------------------------------------------------------------------------------- the words in memory


class _Block(NamedTuple):
    """Alphabetically consecutive words in one string: separate strings would take four times the memory."""

    text: str  # one word per line
    counts: "array[int]"

    @classmethod
    def of(cls, rows: list[tuple[str, int]]) -> "_Block":
        return cls("\n".join(word for word, _ in rows), array("I", [count for _, count in rows]))

    def first(self) -> str:
        return self.text.partition("\n")[0]

    def words(self) -> list[str]:
        return self.text.split("\n")

    def rows(self) -> list[tuple[str, int]]:
        return list(zip(self.words(), self.counts, strict=True))


class _Lexicon:
    """The words of the vocabulary, 3 MB for 100,000. Immutable: `with_new` returns another one, so readers
    need no lock.
    """

    def __init__(self, photos: int, *, guarded: bool):
        self.photos = photos  # in the index when it was read, to tell how outdated the counts are
        self._number = _SEEN if guarded else "documents"
        self._last_id = 0
        # Words of letters only, concatenated, by their first letter and length.
        self._letters: dict[tuple[str, int], str] = {}
        slices = []
        for rows in self._new_rows():
            slices.append(list(_blocks(sorted(rows))))
            self._add_letters(word for word, _ in rows)
        sorted_rows = (itertools.chain.from_iterable(block.rows() for block in blocks) for blocks in slices)
        self._blocks = list(_blocks(heapq.merge(*sorted_rows)))
        self._firsts = [block.first() for block in self._blocks]
        self._size = sum(len(block.counts) for block in self._blocks)
        self.added = 0

    def with_new(self) -> "_Lexicon":
        """A lexicon with the words added since this one was read, or this one when there are none."""
        grown = copy.copy(self)
        if not (rows := list(itertools.chain.from_iterable(grown._new_rows()))):
            return self
        grown._blocks, grown._firsts = self._blocks.copy(), self._firsts.copy()
        grown._letters = self._letters.copy()
        fresh = [word for word, count in rows if grown._put(word, count)]
        grown._add_letters(fresh)
        grown.added += len(fresh)
        return grown

    def has_aged(self, photos: int) -> bool:
        """Whether a quarter of the photos or words has changed since it was read, so that outdated counts
        and removed words matter.
        """
        return abs(photos - self.photos) > self.photos / 4 or self.added > self._size / 4

    def __contains__(self, word: str) -> bool:
        return bool(self._blocks) and word in self._block(word).words()

    def starting(self, prefix: str, most: int) -> list[str]:
        """The `most` most frequent words that are longer than `prefix` and start with it."""
        if not self._blocks:
            return []
        end = prefix + "\U0010ffff"
        first, last = self._place(prefix), self._place(end)
        blocks = self._blocks[first : last + 1]
        # Only the first and the last block have other words, too. The words of the others are only needed for
        # the most frequent ones.
        start = bisect.bisect_right(blocks[0].words(), prefix)
        stop = sum(len(block.counts) for block in blocks[:-1]) + bisect.bisect_left(blocks[-1].words(), end)
        counts = array("I", itertools.chain.from_iterable(block.counts for block in blocks))
        places = heapq.nlargest(most, range(start, stop), key=counts.__getitem__)
        starts = list(itertools.accumulate((len(block.counts) for block in blocks), initial=0))
        found = ((bisect.bisect_right(starts, place) - 1, place) for place in places)
        return [blocks[block].words()[place - starts[block]] for block, place in found]

    def ending(self, digits: str, most: int) -> list[str]:
        """The `most` most frequent long numbers, or codes, that end with these digits."""
        wanted = f"{digits}\n"
        found = []
        for block in self._blocks:
            if wanted in block.text or block.text.endswith(digits):
                found += [
                    row for row in block.rows() if row[0].endswith(digits) and len(row[0]) >= LONG_NUMBER
                ]
        return [word for word, _ in heapq.nlargest(most, found, key=operator.itemgetter(1)) if word != digits]

    def near(self, word: str) -> list[tuple[str, float]]:
        """Words of which `word` may be a typing or reading error, with their worth, the nearest first. A swap
        of neighbouring letters is one error. Short words, numbers and codes are never taken for typos.
        """
        if len(word) < 4 or not word.isalpha():
            return []
        reach = 1 if len(word) < 8 else 2
        buckets = [(word[0], len(word) + longer) for longer in range(-reach, reach + 1)]
        found = self._within(buckets, word, reach)
        if not found and word not in self:
            # The first letter is seldom wrong, and other first letters cost ten times the time. If it is
            # wrong, it must be the only error.
            others = [key for key in self._letters if key[0] != word[0] and abs(key[1] - len(word)) < 2]
            found = self._within(others, word, 1)
        return [(near, TYPO if distance == 1 else FAR_TYPO) for distance, _, near in sorted(found)]

    def _within(self, buckets: list[tuple[str, int]], word: str, reach: int) -> list[tuple[int, int, str]]:
        found = []
        for bucket in buckets:
            together, length = self._letters.get(bucket, ""), bucket[1]
            choices = [together[start : start + length] for start in range(0, len(together), length)]
            for near, distance, _ in process.extract(
                word, choices, scorer=OSA.distance, score_cutoff=reach, limit=None
            ):
                if distance:
                    found.append((distance, -dict(self._block(near).rows())[near], near))
        return found

    def _place(self, word: str) -> int:
        """The index of the block that contains a word, or would contain it."""
        return max(0, bisect.bisect_right(self._firsts, word) - 1)

    def _block(self, word: str) -> _Block:
        return self._blocks[self._place(word)]

    def _put(self, word: str, count: int) -> bool:
        """Set the count of a word; returns whether the word is new here. A word that was removed from the
        vocabulary and added again may still be here.
        """
        place = self._place(word)
        counted = dict(self._blocks[place].rows()) if self._blocks else {}
        fresh = word not in counted
        rows = sorted((counted | {word: count}).items())
        # A block that has become twice as long is split.
        parts = [rows] if len(rows) < 2 * BLOCK else [rows[:BLOCK], rows[BLOCK:]]
        halves = [_Block.of(part) for part in parts]
        self._blocks[place : place + 1] = halves
        self._firsts[place : place + 1] = [half.first() for half in halves]
        return fresh

    def _add_letters(self, words: Iterable[str]) -> None:
        buckets: dict[tuple[str, int], list[str]] = {}
        for word in filter(str.isalpha, words):
            buckets.setdefault((word[0], len(word)), []).append(word)
        for bucket, its_words in buckets.items():
            self._letters[bucket] = "".join((self._letters.get(bucket, ""), *its_words))

    def _new_rows(self) -> Iterator[list[tuple[str, int]]]:
        """New words and their counts, in slices: a million at once would briefly take 150 MB."""
        cursor = db.execute_sql(
            f"SELECT id, term, {self._number} FROM vocabulary"  # noqa: S608
            f" WHERE id > ? AND {self._number} > 0 ORDER BY id",
            (self._last_id,),
        )
        while rows := cursor.fetchmany(SLICE):
            self._last_id = rows[-1][0]
            yield [
                (term, count)
                for _, term, count in rows
                if len(term) > 1 and term[0] not in NO_WORD and terms.is_word(term)
            ]


def _blocks(rows: Iterable[tuple[str, int]]) -> Iterator[_Block]:
    left = iter(rows)
    while following := list(itertools.islice(left, BLOCK)):
        yield _Block.of(following)


class _LatestLexicon:
    """The lexicon that queries share. It is updated with words that any process has added."""

    guarded = False

    def __init__(self) -> None:
        self._latest: _Lexicon | None = None
        self._guard = threading.Lock()

    def of(self, photos: int) -> _Lexicon:
        """The present lexicon; `photos` is the present number of photos in the index."""
        with self._guard:
            known = self._latest
            if known is None or known.has_aged(photos):
                self._latest = _Lexicon(photos, guarded=self.guarded)
            else:
                self._latest = known.with_new()
            return self._latest

    def clear(self) -> None:
        with self._guard:
            self._latest = None


class _LatestGuardedLexicon(_LatestLexicon):
    """The lexicon that guarded queries share: without words that are on photos only where these are redacted.

    One that is later on another photo, too, is found as it is typed, and by its beginning or a typo when the
    lexicon is read anew.
    """

    guarded = True


def _lexicon(*, guarded: bool) -> _Lexicon:
    """The words of the open store."""
    photos = counts([EVERYTHING]).get(EVERYTHING, 0)
    if db.in_transaction():
        return _Lexicon(photos, guarded=guarded)  # not shared: what it has read may be rolled back
    return database.store().cache(_LatestGuardedLexicon if guarded else _LatestLexicon).of(photos)
