"""Integrity check: verifies that everything stored is present, intact and consistent, and repairs derived
data.

Originals and rows cannot be recreated: problems with them are reported and nothing is changed, unless a
person gives up what is lost. Everything else is derived from them and can be recreated: the copy of the key
ring, thumbnails, the lines that were read, the search index, its vocabulary, the tallies. A damaged database
is only reported: what SQLite would salvage from its pages may be rows that nobody wrote, and a backup has the
real ones.

The check runs beside a busy service. Rows are read in batches, each in a scope of its own, and files outside
of any scope. A row or file that looks wrong may have been deleted or replaced a moment ago, so it is checked
again before it is reported. No file is held in memory as a whole.

More than 550 lines, because it is a list of looks, one for each kind of stored data.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import peewee

import claims
import crypto
import database
import lexicon
import models
import photos
import pictures
import readings
import tallies
from assistant import conversations
from buckets import away
from buckets.s3 import BucketAway, Listed
from database import db
from errors import DatabaseEmpty, DataDamaged, NotFound, SnaploreError, StartRefused, Unreadable
from models import Analysis, ForgottenOriginal, Message, Photo, Reading, Vocabulary
from settings import Settings, variable
from tls import authority
from upkeep import archive, orphans, rollback
from upkeep.progress import Progress, silent

BATCH = 100  # rows that are read at once
BLOCK = 262_144  # bytes of a file that are read at once
TERMS = 5_000  # terms of the vocabulary that are compared at once, in 20 ms
NAMED = 20  # problems of a kind that are listed; the rest is counted
ATTEMPTS = 3  # at authenticating pages of the database, which a checkpoint may be writing

Row = TypeVar("Row", Photo, Message)


class Kind(msgspec.Struct):
    """The findings of one kind."""

    name: str
    wrong: int = 0
    repaired: int = 0
    named: list[str] = msgspec.field(default_factory=list)  # the first problems
    advice: str = ""

    def note(self, problem: str, *, repaired: bool = False) -> None:
        self.wrong += 1
        self.repaired += repaired
        if len(self.named) < NAMED:
            self.named.append(f"{problem} (repaired)" if repaired else problem)

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.name}: OK"
        more = [f"and {self.wrong - len(self.named)} more"] if self.wrong > len(self.named) else []
        repaired = f", {self.repaired} repaired" if self.repaired else ""
        advice = [self.advice] if self.advice else []
        return f"{self.name}: {self.wrong} wrong{repaired}: {'; '.join([*self.named, *more, *advice])}"


class Orders(NamedTuple):
    """What a run may change, and where it reports its progress."""

    now: datetime
    repair: bool = False
    forget_lost: bool = False  # delete photos, and messages' attachments, whose file is lost for good
    report: Progress = silent


def check(settings: Settings, orders: Orders) -> Iterator[Kind]:
    """The findings, kind by kind. The data folder need not be open, and no scope may be open. Opens the
    folder if its keys allow it.

    Even without `repair`, opening restores a lost copy of the key ring and migrates an older database, as
    every start does.
    """
    keys, pages = Kind("keys"), Kind("database")
    if not _has_data(settings):
        keys.note(f"there is no data in {settings.data_dir}")
        yield keys
        return
    readable, age = _look_at_copies(keys, settings), Kind("age")
    try:
        try:
            database.open_store(settings, any_age=True)
        except DatabaseEmpty as loss:
            age.note(loss.detail, repaired=orders.repair)
            if not orders.repair:
                yield from (keys, age)
                return
            database.open_store(settings, any_age=True, anew=True)
            rollback.accept()
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
        ([age], _age),
        ([Kind("certificate")], _certificate),
        *([([Kind("files set aside")], _aside)] if (settings.data_dir / orphans.FOLDER).exists() else []),
        ([originals, thumbnails], _pictures),
        *(
            [([Kind("originals in the bucket")], partial(_elsewhere, settings))]
            if _uses_bucket(settings)
            else []
        ),
        ([Kind("attachments")], _attachments),
        ([Kind("files")], _files),
        ([Kind("analyses")], _analyses),
        ([Kind("readings")], _readings),
        ([Kind("index")], _broken_index if broken_index else _index),
        ([Kind("vocabulary")], _vocabulary),
        ([Kind("tallies")], _tallies),
    )
    for kinds, look in looks:
        try:
            look(*kinds, orders)
        except database.DATABASE_ERRORS as problem:
            _raise_unless_damaged(problem)
            kinds[-1].note(f"cannot be read: {problem}")
        yield from kinds


def _uses_bucket(settings: Settings) -> bool:
    if settings.originals is not None:
        return True
    try:
        with database.scope():
            return photos.sizes().away > 0
    except database.DATABASE_ERRORS as problem:
        _raise_unless_damaged(problem)
        return False


def _raise_unless_damaged(problem: Exception) -> None:
    """Raise `problem` again if it says nothing about the data, like a full disk or a lock timeout."""
    if not isinstance(database.known_failure(problem), DataDamaged | None):
        raise problem


# --------------------------------------------------------------------------------------------- keys, database


def _has_data(settings: Settings) -> bool:
    """Whether there is data to open; opening an empty folder would create new data."""
    return any(
        path.is_file() for name in ("keys", "database") for path in (settings.data_dir / name).glob("*")
    )


def _look_at_copies(kind: Kind, settings: Settings) -> bool:
    """Note problems with the copies of the key ring; returns whether one can be read. If none can, opening
    reports the reason.
    """
    folder = settings.data_dir / "keys"
    with contextlib.suppress(StartRefused):
        master_key = (
            crypto.read_master_key(settings.master_key_file or folder / "master.key")
            if settings.encryption
            else None
        )
        for copy in crypto.KeyStore(folder, master_key).wrong_copies():
            kind.note(
                f"the copy {copy.name} of the key ring was missing, damaged or out of date", repaired=True
            )
        return True
    return False


def _integrity(kind: Kind) -> bool:
    """Note problems with the pages and rows of the database; returns whether the full-text index is broken.

    Each table is checked in a scope of its own, because a scope holds the lock of the data folder: a run that
    needs the folder exclusively waits for it, and all requests wait for that run.
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
        kind.advice = "restore a backup (./snaplore restore)"
    return any(problem.startswith("fts5:") for problem in problems)


def _problems_of(table: str) -> list[str]:
    try:
        with database.scope():
            answers = [row[0] for row in db.execute_sql(f'PRAGMA integrity_check("{table}")').fetchall()]
            orphaned = db.execute_sql(f'PRAGMA foreign_key_check("{table}")').fetchall()
    except database.DATABASE_ERRORS as problem:
        _raise_unless_damaged(problem)
        return [f"{table} cannot be read: {problem}"]
    lines = [
        line
        for answer in answers
        for line in answer.splitlines()
        if line != "ok" and not line.startswith("***")
    ]
    return lines + [
        f"row {row_id} of {table} refers to a missing row of {parent}" for _, row_id, parent, _ in orphaned
    ]


def _damaged_pages() -> list[str]:
    """SQLCipher's message for every page that fails its authentication; none if the database is not
    encrypted.

    SQLCipher reads the file without SQLite's locks, so a page that a checkpoint is writing may fail once.
    """
    damaged: list[str] = []
    for attempt in range(ATTEMPTS):
        with database.scope():
            found = [row[0] for row in db.execute_sql("PRAGMA cipher_integrity_check").fetchall()]
        damaged = [problem for problem in found if not attempt or problem in damaged]
        if not damaged:
            break
    return damaged


def _age(kind: Kind, orders: Orders) -> None:
    """Note a database that is older than the key ring, or the reverse, unless a person accepts it."""
    with database.scope():
        problem = database.difference()
    if problem:
        if orders.repair:
            rollback.accept()
        kind.note(problem, repaired=orders.repair)
        kind.advice = "" if orders.repair else database.ADVICE


# ------------------------------------------------------------------------------------------------------ files


def _certificate(kind: Kind, orders: Orders) -> None:
    """The certificate can be issued again; the CA cannot be recreated, because devices trust its key."""
    with database.scope():
        for problem in authority.problems(now=orders.now):
            is_repaired = orders.repair and problem.startswith("certificate")
            if is_repaired:
                authority.renew(now=orders.now, forced=True)
            else:
                kind.advice = "`./snaplore tls init --anew` makes a new CA, which every device has to install"
            kind.note(problem, repaired=is_repaired)


def _pictures(originals: Kind, thumbnails: Kind, orders: Orders) -> None:
    for photo in _rows(Photo.select(), "pictures", orders):
        original = _confirmed(photo, _original_problem)
        if original:
            originals.note(
                f"photo {photo.id} ({photo.filename}) is {original}",
                repaired=orders.forget_lost and _act(photos.delete, photo.id),
            )
        if (problem := _confirmed(photo, _thumbnail_problem)) and not (original and orders.forget_lost):
            repaired = orders.repair and not original and _act(photos.make_thumbnail_anew, photo)
            thumbnails.note(f"the thumbnail of photo {photo.id} is {problem}", repaired=repaired)


def _elsewhere(settings: Settings, kind: Kind, orders: Orders) -> None:
    """Each original that is only in the bucket is there, with its size, and nothing else is. Their bytes are
    authenticated when they are fetched.
    """
    source = away.bucket(settings)
    there = Photo.select().where(Photo.away > away.HERE)
    if source is None:
        with database.scope():
            number = photos.sizes().away
        kind.note(f"{number} originals are in a bucket, and {variable('originals')} does not name one")
        return

    def unnamed(listed: Listed) -> None:
        with database.scope():
            named = there.where(Photo.original_path == listed.name).exists()
            known = ForgottenOriginal.select().where(ForgottenOriginal.path == listed.name).exists()
        if not named and not known:  # what was forgotten is deleted when originals are moved
            is_repaired = orders.repair and not archive.is_kept_aside(database.store().folder)
            if is_repaired:
                source.delete(listed.name)
            kind.note(f"object {listed.name} belongs to no photo", repaired=is_repaired)

    with contextlib.closing(source):
        try:
            objects = archive.Ascending(source.listed("photos/"), unnamed)
            for photo in _rows(there, "bucket", orders, key=Photo.original_path):
                listed = objects.find(photo.original_path)
                here = database.store().folder / photo.original_path
                if here.exists() or (listed is not None and listed.size == photo.away_bytes):
                    continue
                with database.scope():
                    current = there.where(Photo.id == photo.id, Photo.original_path == photo.original_path)
                    is_named = current.exists()
                if is_named and source.size(photo.original_path) != photo.away_bytes:
                    repaired = orders.forget_lost and _act(photos.delete, photo.id)
                    problem = "is lost" if listed is None else "is damaged"
                    kind.note(f"photo {photo.id} ({photo.filename}) {problem}", repaired=repaired)
            objects.end()
        except BucketAway as problem:
            kind.note(f"they cannot be checked now: {problem.detail}")


def _attachments(kind: Kind, orders: Orders) -> None:
    for message in _rows(
        Message.select().where(Message.attachment_path.is_null(False)), "attachments", orders
    ):
        if problem := _confirmed(message, _attachment_problem):
            repaired = orders.forget_lost and _act(conversations.forget_picture, message.id)
            kind.note(f"the attachment of message {message.id} is {problem}", repaired=repaired)


def _aside(kind: Kind, orders: Orders) -> None:
    """Files that were set aside although a row names them: their database is back."""
    folder = database.store().folder
    for path, place in orphans.asked_for():
        kind.note(f"{place.relative_to(folder)} is in {path.parents[2]}", repaired=orders.repair)
    if kind.wrong and orders.repair:
        orphans.bring_back()


def _files(kind: Kind, orders: Orders) -> None:
    lost = orphans.found(orders.report, now=orders.now)
    kind.advice = orphans.too_many(lost)
    is_repaired = orders.repair and not kind.advice
    if is_repaired:
        orphans.set_aside(lost, now=orders.now)
    for path in lost:
        kind.note(f"{path.relative_to(database.store().folder)} belongs to no row", repaired=is_repaired)


def _rows(
    query: "peewee.ModelSelect[Any]", stage: str, orders: Orders, *, key: peewee.Field | None = None
) -> Iterator[Any]:
    """All rows by ascending `key`, their id unless given, read in batches; no scope is open while a row is
    used.
    """
    with database.scope():
        total = query.count()
    done = 0
    for rows in database.batches(query, key or query.model.id, BATCH):
        yield from rows
        done += len(rows)
        orders.report(stage, min(done, total), total)


def _confirmed(row: Row, problem_of: Callable[[Row], str]) -> str:
    """The problem with a row's file, empty if there is none. It is confirmed with a fresh copy of the row,
    which may have been deleted or may name another file by now.
    """
    if not problem_of(row):
        return ""
    with database.scope():
        current = type(row).get_or_none(type(row).id == row.id)
    return problem_of(current) if current is not None else ""


def _original_problem(photo: Photo) -> str:
    if photo.away and not (database.store().folder / photo.original_path).exists():
        return ""  # `_elsewhere` looks for it
    return _file_problem(photo.original_path, photo.file_key, photo.sha256)


def _thumbnail_problem(photo: Photo) -> str:
    return _file_problem(photo.thumbnail_path, photo.thumbnail_key)


def _attachment_problem(message: Message) -> str:
    return _file_problem(message.attachment_path, message.attachment_key) if message.attachment_path else ""


def _file_problem(name: str, key: bytes | None, sha256: bytes | None = None) -> str:
    """The problem with a stored file, empty if there is none. The file is read, and thereby authenticated,
    from the first chunk to the last.
    """
    path = database.store().folder / name
    try:
        with crypto.open_sealed(path, key) as file:
            # An unsealed thumbnail or attachment has no checksum: only its first bytes can be checked.
            intact = key is not None or sha256 is not None or pictures.recognised(file)
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
    return "damaged" if not intact or sha256 not in (None, digest.digest()) else ""


def _act(verb: Callable[..., object], *arguments: object) -> bool:
    """Call `verb` in a scope of its own; returns whether it succeeded."""
    try:
        with database.scope():
            verb(*arguments)
    except NotFound:  # deleted meanwhile, which solves the problem as well
        return True
    except SnaploreError:
        return False
    return True


# ----------------------------------------------------------------------------------------------- derived data


def _analyses(kind: Kind, orders: Orders) -> None:
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


def _readings(kind: Kind, orders: Orders) -> None:
    for row in _rows(Reading.select(), "readings", orders, key=Reading.photo):
        if readings.is_damaged(row):
            repaired = orders.repair and _act(readings.forget, row.photo_id)
            kind.note(f"the lines of photo {row.photo_id} cannot be read", repaired=repaired)


def _broken_index(kind: Kind, orders: Orders) -> None:
    if orders.repair:
        with database.scope(), db.atomic():
            lexicon.rebuild()
    kind.note("the index is damaged", repaired=orders.repair)


def _index(kind: Kind, orders: Orders) -> None:
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


def _vocabulary(kind: Kind, orders: Orders) -> None:
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
    """Whether the count is really wrong. For some scripts FTS5 and Python fold case differently, so one term
    can have two spellings.
    """
    if documents is None:
        return not Vocabulary.select().where(Vocabulary.term == term.casefold()).exists()
    return documents != lexicon.photos_with(term)


def _tallies(kind: Kind, orders: Orders) -> None:
    """Triggers keep the counts; they are exactly what counting the analyses gives."""
    with database.scope(), db.atomic():
        wrong = tallies.wrong()
        if wrong and orders.repair:
            tallies.count_anew()
    for app_name, month, device_id, status, intent, category, *_ in wrong:
        alike = (app_name or "no app", month, device_id, status, intent or "no intent")
        kind.note(f"photos of {', '.join((*alike, category or 'no category'))}", repaired=orders.repair)
