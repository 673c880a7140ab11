"""Checking that everything is there, whole, and agrees; and mending what can be made again from what is left.

Originals and rows cannot be made again: what is wrong with them is named and stays as it is, unless a person
gives up what is lost. Everything else follows from them, so it can: the copy of the key ring, thumbnails, the
search index, its vocabulary, the tallies. A damaged database is only told of: what SQLite makes up for its
pages are no rows that anybody wrote, and a backup has the real ones.

It runs beside a busy service: rows are looked at a batch at a time, in scopes of their own, files outside of
any. So what looks wrong may have been deleted or replaced a moment ago, and is looked at again before it is
called so. No file is ever held in memory.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec
import peewee

import crypto
import database
import lexicon
import models
import photos
import pictures
from assistant import conversations
from database import db
from errors import DataDamaged, NotFound, SnaploreError, StartRefused, Unreadable
from models import Analysis, Message, Photo, Vocabulary
from settings import Settings
from upkeep import cleanup
from upkeep.progress import Progress, silent

BATCH = 100  # rows that are read at once
BLOCK = 262_144  # bytes of a file that are read at once
TERMS = 5_000  # of the vocabulary that are compared at once, 20 ms
NAMED = 20  # of what is wrong of a kind; of the rest the number tells enough
LOOKS = 3  # at pages of the database that a checkpoint may just be writing

Row = TypeVar("Row", Photo, Message)


class Kind(msgspec.Struct):
    """What was found of one kind of thing."""

    name: str
    wrong: int = 0
    mended: int = 0
    named: list[str] = msgspec.field(default_factory=list)  # the first of what is wrong
    advice: str = ""

    def note(self, problem: str, *, mended: bool = False) -> None:
        self.wrong += 1
        self.mended += mended
        if len(self.named) < NAMED:
            self.named.append(f"{problem} (mended)" if mended else problem)

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.name}: OK"
        more = [f"and {self.wrong - len(self.named)} more"] if self.wrong > len(self.named) else []
        mended = f", {self.mended} mended" if self.mended else ""
        advice = [self.advice] if self.advice else []
        return f"{self.name}: {self.wrong} wrong{mended}: {'; '.join([*self.named, *more, *advice])}"


class Orders(NamedTuple):
    """What a run may do beyond looking, and whom it tells how far it is."""

    now: datetime
    repair: bool = False
    forget_lost: bool = False  # delete photos, and messages' attachments, whose file is lost for good
    report: Progress = silent


def check(settings: Settings, orders: Orders) -> Iterator[Kind]:
    """What was found, kind by kind. Needs no open data folder, and that no scope is open; opens the folder
    when its keys allow it.

    Opening mends a lost copy of the key ring and migrates an older database, as every start does, also
    without `repair`.
    """
    keys, pages = Kind("keys"), Kind("database")
    if not _has_data(settings):
        keys.note(f"there is no data in {settings.data_dir}")
        yield keys
        return
    readable = _look_at_copies(keys, settings)
    try:
        database.open_store(settings)
    except StartRefused as refusal:
        refused = pages if readable else keys
        refused.note(refusal.detail)
        yield from (keys, pages) if readable else (keys,)
        return
    yield keys
    broken_index = _integrity(pages)
    yield pages
    originals, thumbnails = Kind("originals"), Kind("thumbnails")
    looks: tuple[tuple[list[Kind], Callable[..., None]], ...] = (
        ([originals, thumbnails], _pictures),
        ([Kind("attachments")], _attachments),
        ([Kind("files")], _files),
        ([Kind("analyses")], _analyses),
        ([Kind("index")], _broken_index if broken_index else _index),
        ([Kind("vocabulary")], _vocabulary),
        ([Kind("tallies")], _tallies),
        ([Kind("holdings")], _holdings),
    )
    for kinds, look in looks:
        try:
            look(*kinds, orders)
        except database.DATABASE_ERRORS as problem:
            _raise_unless_damaged(problem)
            kinds[-1].note(f"cannot be read: {problem}")
        yield from kinds


def _raise_unless_damaged(problem: Exception) -> None:
    """A full disk or a busy moment says nothing about the data."""
    if not isinstance(database.known_failure(problem), DataDamaged | None):
        raise problem


# --------------------------------------------------------------------------------------------- keys, database


def _has_data(settings: Settings) -> bool:
    """Whether opening would find anything; where there is nothing it makes a new folder."""
    return any(
        path.is_file() for name in ("keys", "database") for path in (settings.data_dir / name).glob("*")
    )


def _look_at_copies(kind: Kind, settings: Settings) -> bool:
    """Notes what is wrong with the copies of the key ring; returns whether one can be read. If none can,
    opening says why.
    """
    folder = settings.data_dir / "keys"
    with contextlib.suppress(StartRefused):
        master_key = (
            crypto.read_master_key(settings.master_key_file or folder / "master.key")
            if settings.encryption
            else None
        )
        for copy in crypto.KeyStore(folder, master_key).wrong_copies():
            kind.note(f"the copy {copy.name} of the key ring was lost, damaged or old", mended=True)
        return True
    return False


def _integrity(kind: Kind) -> bool:
    """Notes what is wrong with the database's pages and rows; returns whether it is the full-text index that
    is broken.

    Table by table: the lock of the data folder is held meanwhile, and who must be alone with it keeps
    everybody waiting.
    """
    problems = _damaged_pages()
    try:
        with database.scope():
            tables = [
                row[0]
                for row in db.execute_sql("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            ]
    except database.DATABASE_ERRORS as failure:
        _raise_unless_damaged(failure)
        problems, tables = [*problems, str(failure)], []
    for table in tables:
        problems += _problems_of(table)
    for problem in problems:
        if not problem.startswith("fts5:"):
            kind.note(problem)
    if kind.wrong:
        kind.advice = "restore a backup (flask restore)"
    return any(problem.startswith("fts5:") for problem in problems)


def _problems_of(table: str) -> list[str]:
    try:
        with database.scope():
            told = [row[0] for row in db.execute_sql(f'PRAGMA integrity_check("{table}")').fetchall()]
            strays = db.execute_sql(f'PRAGMA foreign_key_check("{table}")').fetchall()
    except database.DATABASE_ERRORS as problem:
        _raise_unless_damaged(problem)
        return [f"{table} cannot be read: {problem}"]
    lines = [
        line for answer in told for line in answer.splitlines() if line != "ok" and not line.startswith("***")
    ]
    return lines + [
        f"row {row_id} of {table} belongs to nothing in {parent}" for _, row_id, parent, _ in strays
    ]


def _damaged_pages() -> list[str]:
    """SQLCipher's word on every page that fails its authentication; none where the database is not encrypted.

    It reads the file past SQLite's locks: a page that a checkpoint is writing fails once and is right the
    next time.
    """
    damaged: list[str] = []
    for look in range(LOOKS):
        with database.scope():
            found = [row[0] for row in db.execute_sql("PRAGMA cipher_integrity_check").fetchall()]
        damaged = [problem for problem in found if not look or problem in damaged]
        if not damaged:
            break
    return damaged


# ------------------------------------------------------------------------------------------------------ files


def _pictures(originals: Kind, thumbnails: Kind, orders: Orders) -> None:
    for photo in _rows(Photo.select(), "pictures", orders):
        lost = _confirmed(photo, _original_problem)
        if lost:
            originals.note(
                f"photo {photo.id} ({photo.filename}) is {lost}",
                mended=orders.forget_lost and _act(photos.delete, photo.id),
            )
        if (problem := _confirmed(photo, _thumbnail_problem)) and not (lost and orders.forget_lost):
            mended = orders.repair and not lost and _act(photos.make_thumbnail_anew, photo)
            thumbnails.note(f"that of photo {photo.id} is {problem}", mended=mended)


def _attachments(kind: Kind, orders: Orders) -> None:
    for message in _rows(
        Message.select().where(Message.attachment_path.is_null(False)), "attachments", orders
    ):
        if problem := _confirmed(message, _attachment_problem):
            mended = orders.forget_lost and _act(conversations.forget_picture, message.id)
            kind.note(f"that of message {message.id} is {problem}", mended=mended)


def _files(kind: Kind, orders: Orders) -> None:
    for path in cleanup.orphans(orders.report, now=orders.now):
        if orders.repair:
            path.unlink(missing_ok=True)
        kind.note(f"{path.relative_to(database.store().folder)} belongs to nothing", mended=orders.repair)


def _rows(chosen: "peewee.ModelSelect[Any]", stage: str, orders: Orders) -> Iterator[Any]:
    """All rows in the order of their ids, a batch at a time; no scope is open while they are used."""
    with database.scope():
        total = chosen.count()
    done = 0
    for rows in database.batches(chosen, chosen.model.id, BATCH):
        yield from rows
        done += len(rows)
        orders.report(stage, min(done, total), total)


def _confirmed(row: Row, problem_of: Callable[[Row], str]) -> str:
    """What is wrong with a row's file, empty for nothing: a row that is gone or names another file by now is
    looked at as it is.
    """
    if not problem_of(row):
        return ""
    with database.scope():
        current = type(row).get_or_none(type(row).id == row.id)
    return problem_of(current) if current is not None else ""


def _original_problem(photo: Photo) -> str:
    return _file_problem(photo.original_path, photo.file_key, photo.sha256)


def _thumbnail_problem(photo: Photo) -> str:
    return _file_problem(photo.thumbnail_path, photo.thumbnail_key)


def _attachment_problem(message: Message) -> str:
    return _file_problem(message.attachment_path, message.attachment_key) if message.attachment_path else ""


def _file_problem(name: str, key: bytes | None, sha256: bytes | None = None) -> str:
    """What is wrong with a stored file; it is read, and by that authenticated, from the first chunk to the
    last.
    """
    path = database.store().folder / name
    try:
        with crypto.open_sealed(path, key) as file:
            # Nothing but its first bytes tells of a thumbnail or an attachment that was never sealed whether
            # it is one.
            whole = key is not None or sha256 is not None or pictures.recognised(file)
            file.seek(0)
            digest = hashlib.sha256()
            while block := file.read(BLOCK):
                digest.update(block)
    except crypto.DamagedFile:
        return "damaged"
    except Unreadable:
        return "unreadable" if path.exists() else "lost"
    except OSError as problem:
        return f"unreadable: {problem.strerror}"
    return "damaged" if not whole or sha256 not in (None, digest.digest()) else ""


def _act(verb: Callable[..., object], *arguments: object) -> bool:
    """Whether the verb, in a scope of its own, did what it should."""
    try:
        with database.scope():
            verb(*arguments)
    except NotFound:  # deleted meanwhile, which mends it as well
        return True
    except SnaploreError:
        return False
    return True


# ----------------------------------------------------------------------------------------------- what follows


def _analyses(kind: Kind, orders: Orders) -> None:
    with database.scope():
        missing = list(
            Photo.select().where(~peewee.fn.EXISTS(Analysis.select().where(Analysis.photo == Photo.id)))
        )
        for photo in missing:
            if orders.repair:
                models.enqueue(photo, now=orders.now)
            kind.note(f"photo {photo.id} has none", mended=orders.repair)


def _broken_index(kind: Kind, orders: Orders) -> None:
    if orders.repair:
        with database.scope(), db.atomic():
            lexicon.rebuild()
    kind.note("the index is damaged", mended=orders.repair)


def _index(kind: Kind, orders: Orders) -> None:
    """Photos are in the index exactly when their analysis has text, and with as many words."""
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
            kind.note(
                f"photo {photo_id} {'has other words there' if photo_id in indexed else 'is not in it'}",
                mended=orders.repair,
            )
        last, done = end, done + len(ids)
        orders.report("index", done, total)


def _indexed(after: int, up_to: int | None) -> dict[int, int]:
    """The photos of the index in a range of ids, and the number of their words as FTS5 has it: a varint."""
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


def _vocabulary(kind: Kind, orders: Orders) -> None:
    """The vocabulary has exactly the index's terms, each with the number of photos that have it there."""
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
            kind.note(f"“{term}” is counted wrongly", mended=orders.repair)
        last, done = end, done + len(known)
        orders.report("vocabulary", min(done, total), total)


def _miscounted(term: str, documents: int | None) -> bool:
    """For some scripts FTS5 folds case in another way than Python does, so that the same term stands under
    two spellings.
    """
    if documents is None:
        return not Vocabulary.select().where(Vocabulary.term == term.casefold()).exists()
    return documents != lexicon.photos_with(term)


class _Count(NamedTuple):
    """A table that triggers keep, and the query for what should be in it."""

    table: str
    counted: str
    keys: int  # columns, the first ones, that say what a row counts


_TALLIED = _Count(
    "tallies",
    "SELECT device_id, status, intent, content_category, count(*) FROM analyses GROUP BY 1, 2, 3, 4",
    4,
)
_HELD = _Count(
    "holdings",
    """
    SELECT 'photo', key_generation, count(*), sum(disk_bytes) FROM photos GROUP BY 2
    UNION ALL
    SELECT 'attachment', attachment_generation, count(*), sum(attachment_bytes) FROM messages WHERE attachment_path IS NOT NULL GROUP BY 2
    """,
    2,
)


def _tallies(kind: Kind, orders: Orders) -> None:
    for device_id, status, intent, category in _miscounts(_TALLIED, repair=orders.repair):
        kind.note(
            f"photos of {device_id!r}, {status}, {intent or 'no intent'}, {category or 'no category'}",
            mended=orders.repair,
        )


def _holdings(kind: Kind, orders: Orders) -> None:
    for owner, generation in _miscounts(_HELD, repair=orders.repair):
        kind.note(f"files of {owner}s under keys of generation {generation}", mended=orders.repair)


def _miscounts(count: _Count, *, repair: bool) -> list[tuple[Any, ...]]:
    """What the table counts wrongly, by its keys."""
    table, counted, keys = count
    differing = f"""
        WITH counted AS ({counted})
        SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM {table})
        UNION ALL SELECT * FROM (SELECT * FROM {table} EXCEPT SELECT * FROM counted)
    """  # noqa: S608
    with database.scope():
        wrong = {row[:keys] for row in db.execute_sql(differing).fetchall()}
        if wrong and repair:
            with db.atomic():
                db.execute_sql(f"DELETE FROM {table}")  # noqa: S608
                db.execute_sql(f"INSERT INTO {table} {counted}")
    return sorted(wrong)
