"""The check of derived data: the queue, the lines that were read, the search index, its vocabulary, the
counts. All of it is made again where it is wrong.
"""

import peewee

import claims
import database
import lexicon
import models
import readings
import tallies
from database import db
from models import Analysis, Photo, Reading, Vocabulary
from upkeep.findings import BATCH, Kind, Orders, act, every_row

TERMS = 5_000  # terms of the vocabulary that are compared at once, in 20 ms


def look_at_analyses(kind: Kind, orders: Orders) -> None:
    with database.scope():
        missing = list(
            Photo.select().where(
                ~peewee.fn.EXISTS(Analysis.select().where(Analysis.photo == Photo.id)), ~models.IN_TRASH
            )
        )
        for photo in missing:
            if orders.repair:
                claims.enqueue(photo, now=orders.now)
            kind.note(f"photo {photo.id} has no analysis", repaired=orders.repair)


def look_at_readings(kind: Kind, orders: Orders) -> None:
    for row in every_row(Reading.select(), "readings", orders, key=Reading.photo):
        if readings.is_damaged(row):
            repaired = orders.repair and act(readings.forget, row.photo_id)
            kind.note(f"the lines of photo {row.photo_id} cannot be read", repaired=repaired)


def renew_broken_index(kind: Kind, orders: Orders) -> None:
    if orders.repair:
        with database.scope(), db.atomic():
            lexicon.rebuild()
    kind.note("the index is damaged", repaired=orders.repair)


def look_at_index(kind: Kind, orders: Orders) -> None:
    """A photo is in the index if and only if its analysis has text, and with the same number of words."""
    last: int | None = 0
    done = 0
    with database.scope():
        total = Analysis.select().count()
    while last is not None:
        with database.scope(), db.atomic("DEFERRED"):
            following = Analysis.select(Analysis.photo).where(Analysis.photo > last)
            ids = [row.photo_id for row in following.order_by(Analysis.photo).limit(BATCH)]
            end = ids[-1] if len(ids) == BATCH else None
            indexed = _indexed(last, end)
            wrong = [
                photo_id for photo_id in sorted({*ids, *indexed}) if indexed.get(photo_id) != _words(photo_id)
            ]
        for photo_id in wrong:
            with database.scope(), db.atomic():
                if orders.repair:
                    lexicon.index(photo_id)
            problem = "is indexed with other words" if photo_id in indexed else "is not indexed"
            kind.note(f"photo {photo_id} {problem}", repaired=orders.repair)
        last, done = end, done + len(ids)
        orders.report("index", done, total)


def _indexed(after: int, up_to: int | None) -> dict[int, int]:
    """The indexed photos in a range of ids: photo id -> number of words, which FTS5 stores as a varint."""
    sizes = db.execute_sql(
        "SELECT id, sz FROM photo_index_docsize WHERE id > ? AND id <= ?", (after, up_to or 2**63 - 1)
    )
    words = {}
    for photo_id, size in sizes:
        number = 0
        for byte in size:
            number = number << 7 | byte & 0x7F
        words[photo_id] = number
    return words


def _words(photo_id: int) -> int | None:
    document = lexicon.document_of(photo_id)
    return None if document is None else len(document.tokens().split(" "))


def look_at_vocabulary(kind: Kind, orders: Orders) -> None:
    """The vocabulary has exactly the terms of the index, each with the number of photos that have it."""
    last: str | None = ""
    done, total = 0, 0
    while last is not None:
        with database.scope(), db.atomic("DEFERRED"):
            db.execute_sql(
                "CREATE VIRTUAL TABLE IF NOT EXISTS temp.index_terms USING fts5vocab(main, photo_index, row)"
            )
            total = total or Vocabulary.select().count()
            indexed = dict(
                db.execute_sql(
                    "SELECT term, doc FROM index_terms WHERE term > ? ORDER BY term LIMIT ?", (last, TERMS)
                ).fetchall()
            )
            end = max(indexed, key=str.encode) if len(indexed) == TERMS else None
            following = Vocabulary.select(Vocabulary.term, Vocabulary.documents).where(Vocabulary.term > last)
            rows = following if end is None else following.where(Vocabulary.term <= end)
            known = {row.term: row.documents for row in rows}
            suspicious = sorted(term for term in {*indexed, *known} if indexed.get(term) != known.get(term))
            wrong = [term for term in suspicious if _miscounted(term, known.get(term))]
        for term in wrong:
            if orders.repair:
                with database.scope(), db.atomic():
                    lexicon.count_anew(term)
            kind.note(f"the count of “{term}” is wrong", repaired=orders.repair)
        last, done = end, done + len(known)
        orders.report("vocabulary", min(done, total), total)


def _miscounted(term: str, documents: int | None) -> bool:
    """Whether the count is really wrong: FTS5 and Python fold the case of some scripts differently."""
    if documents is None:
        return not Vocabulary.select().where(Vocabulary.term == term.casefold()).exists()
    return documents != lexicon.photos_with(term)


def look_at_tallies(kind: Kind, orders: Orders) -> None:
    """Triggers keep the counts; they are exactly what counting the analyses gives."""
    with database.scope(), db.atomic():
        wrong = tallies.wrong()
        if wrong and orders.repair:
            tallies.count_anew()
    for app_name, month, device_id, status, intent, category, *_ in wrong:
        alike = (app_name or "no app", month, device_id, status, intent or "no intent")
        kind.note(f"photos of {', '.join((*alike, category or 'no category'))}", repaired=orders.repair)
