"""The search index: what is indexed of a photo, and the counts of its terms.

Text is cut into terms in Python (`terms.py`) and stored, joined by spaces, in a contentless FTS5 table whose
tokenizer only splits at spaces, so that one place decides what a term is. Filters are terms too (`@intent:…`,
`@2026-11-21`): FTS5 skips from match to match, while a filter in a join would read every photo with a common
word. The table `vocabulary` has each term with the number of photos that contain it (`vocabulary.py`); what a
query means in these terms, `queries/wording.py` finds.
"""

import collections
import contextlib
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import msgspec

import database
import models
import terms
from database import db
from models import Redaction, Vocabulary
from rules import apps, redaction, sensitive
from rules.holdings import holdings
from text import encodable, one_line
from vocabulary import EVERYTHING, date_terms, filter_term
from writings import figures

log = logging.getLogger(__name__)

TOGETHER = 1_000  # photos that a rebuild indexes at once
# Pages that one step of compacting writes, in 0.1 s. Compacting the index of 100,000 photos in one step would
# block writers for a second.
MERGED = 500
# From this block id on, FTS5 keeps its marks of removed rows (FTS5_TOMBSTONE_ROWID in its source).
MARKS = 1 << 53
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

_ENTITIES = msgspec.json.Decoder(list[dict[str, str]])
_TAGS = msgspec.json.Decoder(list[str])
_APART = "\n" * 4

# ---------------------------------------------------------------------------------------------------- writing


def index(photo_id: int) -> None:
    """Index a photo by the present text of its analysis. A photo without text is not indexed.

    Before the text of an indexed photo is overwritten, `remove` must be called in the same transaction: it
    needs the old text to correct the vocabulary's counts. Repeating either call changes nothing.
    """
    remove(photo_id)
    index_new([photo_id])


def index_new(photo_ids: Iterable[int]) -> int:
    """Index photos that are not in the index, all at once; returns how many of them have text."""
    shown = _shown(photo_ids)
    documents = {photo_id: document for photo_id, row in shown.items() if (document := row.document())}
    for photo_id, document in documents.items():
        db.execute_sql("INSERT INTO photo_index(rowid, tokens) VALUES (?, ?)", (photo_id, document.tokens()))
    _count(_distinct(documents.values()))
    _redact(shown[photo_id] for photo_id in documents)
    _mark_holdings(shown.values())
    return len(documents)


def remove(photo_id: int) -> None:
    """Remove a photo from the index. Its analysis must still have the text that was indexed."""
    remove_all([photo_id])


def remove_all(photo_ids: Iterable[int]) -> None:
    """Remove photos from the index, as `remove`. Updates the vocabulary once for all of them."""
    indexed = [photo_id for photo_id in photo_ids if _is_indexed(photo_id)]
    shown = _shown(indexed)
    _forget_redactions(indexed, shown)
    for photo_id in indexed:
        db.execute_sql("DELETE FROM photo_index WHERE rowid = ?", (photo_id,))
    _count(_distinct(document for row in shown.values() if (document := row.document())), -1)


@contextlib.contextmanager
def changing(photo_ids: Iterable[int]) -> Iterator[None]:
    """Index photos anew whose texts are changed inside the context, in the caller's transaction."""
    ids = list(photo_ids)
    remove_all(ids)
    yield
    index_new(ids)


def redact_anew(photo_ids: list[int]) -> None:
    """Index these photos anew for guarded queries, after their marks have changed, and not their texts."""
    shown = _shown(photo_ids)
    _forget_redactions(photo_ids, shown)
    _redact(row for photo_id, row in shown.items() if _is_indexed(photo_id))


def empty() -> None:
    """Remove all photos from the index, a thousand times faster than with `remove`."""
    for table in TABLES:
        db.execute_sql(f"INSERT INTO {table}({table}) VALUES ('delete-all')")  # noqa: S608
    Redaction.delete().execute()
    db.execute_sql("DELETE FROM vocabulary")


def renew() -> None:
    """Rebuild the index if an older program built it: a minute for 50,000 photos. Opens its own scope."""
    with database.scope():
        if models.stored_value("index_form", 1) == FORM:
            return
        with db.atomic():
            total = _number("SELECT count(*) FROM analyses")
            rebuild(lambda done: log.info("the search index is built anew: %d of %d photos", done, total))


def rebuild(progress: Callable[[int], None] | None = None) -> int:
    """Rebuild index and vocabulary from the analyses; returns the number of photos, as `progress` gets it."""
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


class Shown(NamedTuple):
    """What is shown of a photo, as far as it is indexed."""

    texts: list[str]  # as `texts_of` returns them
    photo_id: int
    title: str
    filename: str
    own_text: str
    sensitive: str
    cleared: bool
    category: str
    intent: str
    device_id: str
    taken: str
    folded_tags: str
    entities: str
    text: str

    def document(self, texts: list[str] | None = None) -> Document | None:
        """The document of the photo with its texts, or with these; None without any text."""
        folded = terms.fold_lines(self.texts if texts is None else texts)
        if not (sequence := terms.cut(folded)):
            return None
        chosen = (("category", self.category), ("intent", self.intent), ("device", self.device_id))
        filters = [
            EVERYTHING,
            *(filter_term(name, value) for name, value in chosen),
            *date_terms(self.taken),
            *sorted(filter_term("tag", tag) for tag in _TAGS.decode(self.folded_tags)),
        ]
        parts = figure_terms(folded).difference(sequence).union(terms.parts(folded, sequence))
        return Document(sequence, sorted(parts), filters)


def _shown(photo_ids: Iterable[int]) -> dict[int, Shown]:
    """What is shown of those of these photos that are not in the trash."""
    found = rows(
        f"""SELECT photo_id, title, filename, own_text, sensitive, cleared,
            content_category, intent, shown.device_id, original_timestamp,
            (SELECT json_group_array(folded) FROM photo_tags AS t WHERE t.photo_id = shown.photo_id),
            entities, text, {TEXTS}
        FROM shown JOIN photos ON photos.id = photo_id
        WHERE photo_id IN (SELECT value FROM json_each(?)) ORDER BY photo_id""",  # noqa: S608
        msgspec.json.encode(list(photo_ids)).decode(),
    )
    return {row[0]: Shown(texts_of(*row[13:]), *row[:13]) for row in found}


def document_of(photo_id: int) -> Document | None:
    """The document of a photo with the texts of its analysis; None without any text."""
    shown = _shown([photo_id]).get(photo_id)
    return None if shown is None else shown.document()


def figure_terms(folded: str) -> set[str]:
    """The terms of the days and numbers in a folded text, whatever their writing."""
    return {term for figure in figures.find(folded.casefold()) for term in figure.terms}


def withheld(photo_ids: Iterable[int]) -> set[int]:
    """Those of these photos of which a guarded query finds less than is on them, or nothing."""
    sql = f"SELECT value FROM json_each(?) WHERE NOT ({OPEN.format(id='value')})"  # noqa: S608
    return {row[0] for row in rows(sql, msgspec.json.encode(list(photo_ids)).decode())}


def redactions(photo_ids: Iterable[int]) -> dict[int, list[str]]:
    """What guarded queries search of those of these photos that are withheld, as `texts_of` returns it."""
    ids = list(photo_ids)  # SQLite reads the whole table to find that it has none of no ids
    rows = Redaction.select().where(Redaction.photo.in_(ids)) if ids else ()
    return {row.photo_id: msgspec.json.decode(row.texts) for row in rows}


def _redact(shown: Iterable[Shown]) -> None:
    """Index those of these photos that are withheld by what is not sensitive on them."""
    for row in shown:
        names, texts = [row.title, row.filename], row.texts
        short = [*names, *texts[:-1], row.own_text]
        # All at once takes a tenth of the time; the empty lines keep them apart.
        if row.cleared or not (row.sensitive or sensitive.kinds(_APART.join(filter(None, short)))):
            continue
        texts = redaction.redacted(texts, names)
        encoded = msgspec.json.encode(texts).decode("utf-8", "replace")
        Redaction.insert(photo=row.photo_id, texts=encoded).execute()
        if document := row.document(texts):
            tokens = (row.photo_id, document.tokens())
            db.execute_sql("INSERT INTO redacted_index(rowid, tokens) VALUES (?, ?)", tokens)
        _hide(row.document(), document, 1)


def _forget_redactions(photo_ids: list[int], shown: Mapping[int, Shown]) -> None:
    """Undo `_redact` for these photos, of which what was indexed is `shown`."""
    if not photo_ids:
        return
    for row in Redaction.select().where(Redaction.photo.in_(photo_ids)):
        if (there := shown.get(row.photo_id)) is not None:
            _hide(there.document(), there.document(msgspec.json.decode(row.texts)), -1)
        db.execute_sql("DELETE FROM redacted_index WHERE rowid = ?", (row.photo_id,))
        row.delete_instance()


def _hide(document: Document | None, redacted: Document | None, sign: int) -> None:
    """Count the terms that a photo has only in what was cut out, or count them no longer."""
    hidden = (document.distinct() if document else set()) - (redacted.distinct() if redacted else set())
    db.execute_sql(
        "UPDATE vocabulary SET hidden = hidden + ? WHERE term IN (SELECT value FROM json_each(?))",
        (sign, msgspec.json.encode(sorted(hidden)).decode()),
    )


def _mark_holdings(shown: Iterable[Shown]) -> None:
    """Record what these photos hold, as bits, for the filters of a search. It follows from the index."""
    bits = [
        (
            row.photo_id,
            holdings([entity.get("type", "") for entity in _ENTITIES.decode(row.entities)], row.text),
        )
        for row in shown
    ]
    # Most photos hold what they held; a statement that changes nothing writes nothing.
    sql = """INSERT INTO marks (photo_id, opened, holds)
        SELECT value ->> 0, 0, value ->> 1 FROM json_each(?) WHERE true
        ON CONFLICT (photo_id) DO UPDATE SET holds = excluded.holds WHERE holds <> excluded.holds"""
    db.execute_sql(sql, (msgspec.json.encode(bits).decode(),))


def _is_indexed(photo_id: int) -> bool:
    return bool(rows("SELECT 1 FROM photo_index WHERE rowid = ?", photo_id))


def _distinct(documents: Iterable[Document]) -> "collections.Counter[str]":
    """The number of documents with each term."""
    return collections.Counter(itertools.chain.from_iterable(document.distinct() for document in documents))


def _count(documents: "collections.Counter[str]", sign: int = 1) -> None:
    """Add these numbers of photos to the counts of their terms. Sorted terms visit each page only once."""
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
    """The searchable texts of a photo: its app's names, heading, values and note, visible text."""
    values = [entity.get("value", "") for entity in _ENTITIES.decode(entities)]
    heading = "\n".join(filter(None, (own_title, *_TAGS.decode(tags), summary)))
    return [apps.with_other_name(app_name), heading, *values, *filter(None, (note,)), text]


def folded_tag(tag: str) -> str:
    """A tag as it is compared: without differences of case, accents and spaces."""
    return one_line(terms.fold_latin(encodable(tag))).casefold()


def rows(sql: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows of an SQL statement."""
    return cast(list[tuple[Any, ...]], db.execute_sql(sql, values).fetchall())


def _number(sql: str, *values: object) -> int:
    return cast(int, rows(sql, *values)[0][0])
