"""The database: opening it, scopes, locks, migrations, and the meaning of its failures.

One SQLCipher file holds everything but the pictures. `open_store` opens it at start. Each use of it, in any
process, is a `scope()`, which holds a shared lock on the data folder. Work that needs the folder alone (a
migration, a key rotation, a restore) takes the lock exclusively. Scopes reuse connections, because opening
one takes time and its page cache is cold; when the key ring has changed, new ones are opened.

Only the outermost caller opens a scope: the request, the job, one step of the analysis pool. Verbs never do,
so that one caller's verbs run in one scope. The exceptions walk through all rows (`batches`), and their
docstrings say so.

More than 550 lines, because opening, locking, migrating and the failures of each are one order of steps.
"""

import contextlib
import errno
import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar

import msgspec
import peewee
import sqlcipher3
from playhouse.migrations import Migration, Runner
from playhouse.pool import PooledDatabase
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import disk
from clock import utc_now
from errors import (
    DatabaseEmpty,
    DataDamaged,
    EncryptionDiffers,
    SnaploreError,
    StartRefused,
    StorageFull,
    Unavailable,
)
from locks import FolderLock, ServiceLock, named_lock
from settings import NAME, ROOT, Settings

log = logging.getLogger(__name__)
# It logs each migration in a line of its own, which are thirty at a first start; `_migrate` logs one.
logging.getLogger("peewee.migrations").setLevel(logging.WARNING)

MIGRATIONS = ROOT / "migrations"
# Seconds between two steps of long work that writes. If a step takes under 0.18 s, SQLite's busy handler
# retries a blocked writer at least every 50 ms, so every waiting writer gets through.
ROOM = 0.06
ROTATION = "rotation"  # the name of the lock that a running rotation holds
# Names of stored values that the key ring has, too: `difference` compares them.
STARTS, FOLDER = "starts", "folder"
ADVICE = (
    "Restore a backup (`./snaplore restore`) or put the right file back; or accept the data as it is "
    "(`./snaplore check --repair`)"
)

PRAGMAS = (
    ("cipher_log_level", "NONE"),  # `StartRefused` reports a wrong key
    ("journal_mode", "WAL"),
    ("synchronous", "FULL"),  # an answered upload survives a power cut; NORMAL may lose the last commits
    ("foreign_keys", 1),
    ("secure_delete", 1),
    ("temp_store", 2),  # memory: no readable temporary file
    ("busy_timeout", 10_000),
    # KiB for each connection: 1,000 would save 17 MB with six clients and cost a tenth of the search rate in
    # 100,000 photos.
    ("cache_size", -4_000),
    ("wal_autocheckpoint", 1_000),
    ("journal_size_limit", 32 * 1024 * 1024),
)

# auto_vacuum is incremental, so that clean-up can return free pages to the file system. It must be set before
# the first write, and only then: on an existing database the pragma is a write, which waits for other writers
# and fails on a full or read-only disk.
FIRST_PRAGMAS = (("auto_vacuum", 2), *PRAGMAS)


class _Database(PooledDatabase, SqlCipherDatabase):  # type: ignore[misc]  # playhouse brings no types
    """Reuse the oldest idle connection: its page cache is the warmest, and newer ones can be closed soon."""

    _connections: list[tuple[float, int, sqlcipher3.Connection]]  # the idle ones: a heap, the oldest first

    def __init__(self) -> None:
        # IMMEDIATE: otherwise a transaction that reads before it writes would fail as locked when another one
        # wrote in between.
        super().__init__(None, max_connections=0, pragmas=PRAGMAS, autoconnect=False, lock_type="IMMEDIATE")

    def point_at(self, ring: crypto.KeyRing, folder: Path) -> None:
        """Let new connections open the database of `ring`.

        No scope may be open but the caller's own, and that must not have connected yet.
        """
        pragmas = PRAGMAS if ring.generation else FIRST_PRAGMAS
        self.init(
            str(folder / ring.database_file),
            passphrase=passphrase(ring),
            pragmas=pragmas,
            check_same_thread=False,
        )
        self.close_idle()

    def rest(self) -> None:
        """Close all idle connections but the oldest, and empty the page cache of that one."""
        with self._pool_lock:
            spare, self._connections = self._connections[1:], self._connections[:1]
            for *_, connection in spare:
                self._close_raw(connection)
            for *_, connection in self._connections:
                connection.execute("PRAGMA shrink_memory")

    def _can_reuse(self, conn: sqlcipher3.Connection) -> bool:
        return not bool(conn.in_transaction)  # still in one: on a full disk the rollback failed


db = _Database()


# ------------------------------------------------------------------------------------------ opening and locks


class Cache(Protocol):
    """A module's cache of the open store; `clear` empties it. A new one is empty."""

    def clear(self) -> None: ...


C = TypeVar("C", bound=Cache)


class Store:
    """The open data folder of this process: its paths, key ring, lock and caches."""

    def __init__(self, settings: Settings):
        self.folder = settings.data_dir
        self.photos = self.folder / "photos"
        self.attachments = self.folder / "attachments"
        self.spool = self.folder / "spool"
        self.keys = self.folder / "keys"
        for folder in (
            self.folder,
            self.keys,
            self.folder / "database",
            self.photos,
            self.attachments,
            self.spool,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.settings = settings
        self._follow_guard = threading.Lock()
        self._caches: dict[type[Cache], Cache] = {}
        self._caches_guard = threading.Lock()
        self.lock = FolderLock(self.folder)
        with self.lock.exclusive():
            self._end_master_key_change()
            self._key_store = self._open_keys()
            if not self._key_store.exists():
                self.refuse_if_data()
                self._key_store.write(crypto.new_key_ring(encrypted=settings.encryption, now=utc_now()))
            self.ring = self._key_store.read()
            self._key_store.heal()
            self._signature = self._key_store.signature()

    @property
    def encrypted(self) -> bool:
        """Whether the key ring holds a database key."""
        return self.ring.database_key is not None

    @property
    def database(self) -> Path:
        return self.folder / self.ring.database_file

    def cache(self, kind: type[C]) -> C:
        """The store's one cache of this class, until the store is closed: a key rotation keeps the rows."""
        with self._caches_guard:
            cache = self._caches.get(kind)
            if not isinstance(cache, kind):
                cache = self._caches[kind] = kind()
            return cache

    def close(self) -> None:
        """Clear the caches and close the idle connections. Threads with an open scope may go on."""
        with self._caches_guard:
            caches = list(self._caches.values())
        for cache in caches:
            cache.clear()
        close_connections()

    def follow(self) -> None:
        """Use the new key ring if another process has replaced it. Needs the lock."""
        with self._follow_guard:
            if (signature := self._key_store.signature()) != self._signature:
                self._key_store = self._open_keys()  # the master key may be new, too
                self.ring = self._key_store.read()
                self._signature = signature
                db.point_at(self.ring, self.folder)

    def replace_ring(self, ring: crypto.KeyRing, key_store: crypto.KeyStore | None = None) -> None:
        """Make `ring` the key ring, sealed by `key_store` if the master key changes, too.

        Needs the lock exclusively.
        """
        self._key_store = key_store or self._key_store
        self._key_store.write(ring)
        self.ring = ring
        self._signature = self._key_store.signature()
        db.point_at(self.ring, self.folder)

    def replace_master_key(self, key: bytes) -> None:
        """Seal the key ring under `key`, and store `key` if the master key is a file of the data folder.

        Needs the lock exclusively.
        """
        ring = msgspec.structs.replace(self.ring, generation=self.ring.generation + 1)
        if self.settings.master_key_file is None:
            self._coming_master_key.unlink(missing_ok=True)
            crypto.write_master_key(self._coming_master_key, key)
        self.replace_ring(ring, crypto.KeyStore(self.keys, key))
        self._end_master_key_change()

    def remove_left_databases(self) -> None:
        """Remove what an interrupted rotation left: an old or unfinished database that no ring names. While a
        rotation runs, such a file is its own.

        Needs that the database of the ring is the right one: if an older ring was put back, the file that it
        does not name may be the only one with the data.
        """
        if self._left_databases():
            with (
                contextlib.suppress(Unavailable),
                named_lock(self.folder / "jobs", ROTATION, 0, busy=""),
                self.lock.exclusive(),
            ):
                self.follow()
                for path in self._left_databases():
                    path.unlink(missing_ok=True)

    def _left_databases(self) -> list[Path]:
        return [
            path
            for path in self.database.parent.iterdir()
            if re.fullmatch(r"[0-9a-f]{16}\.db(-wal|-shm|-journal)?", path.name)
            and not path.name.startswith(self.database.name)
        ]

    @property
    def master_key_path(self) -> Path:
        return self.settings.master_key_file or self.keys / "master.key"

    @property
    def _coming_master_key(self) -> Path:
        return self.keys / "master.key.coming"

    def _end_master_key_change(self) -> None:
        """Complete an interrupted change of the master key: keep the new key if a ring is sealed under it."""
        coming = self._coming_master_key
        if coming.exists():
            if crypto.KeyStore(self.keys, crypto.read_master_key(coming)).opens():
                disk.durable_rename(coming, self.keys / "master.key")
            else:
                coming.unlink()

    def _open_keys(self) -> crypto.KeyStore:
        return crypto.KeyStore(self.keys, self._master_key() if self.settings.encryption else None)

    def _master_key(self) -> bytes:
        path = self.master_key_path
        if self.settings.master_key_file is None and not path.exists():
            ring = crypto.KeyStore(self.keys, None)
            if ring.exists():
                if ring.is_plain():
                    raise EncryptionDiffers(crypto.SWITCHED_OFF)
                raise StartRefused(crypto.missing_master_key(path))
            self.refuse_if_data()
            return crypto.make_master_key(path)
        return crypto.read_master_key(path)

    def refuse_if_data(self, *folders: Path) -> None:
        """No key is ever made over existing data."""
        for folder in folders or (self.folder / "database", self.photos, self.attachments):
            if any(path.is_file() for path in folder.rglob("*")):
                raise StartRefused(
                    f"{folder} holds data, but its keys are not in {self.folder / 'keys'}. Put the keys back."
                )


def passphrase(ring: crypto.KeyRing) -> str:
    """The database key in SQLCipher's notation for raw keys; empty where encryption is off.

    A raw key needs no key derivation, so opening takes a millisecond.
    """
    return f"x'{ring.database_key.hex()}'" if ring.database_key else ""


_store: Store | None = None


def lock_service(settings: Settings) -> ServiceLock:
    """The lock of the one service of a data folder, which is made if it is missing. A service takes it before
    it opens the folder: one that is refused must have migrated nothing. Raises `StartRefused`.
    """
    with _refusal(settings):
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return ServiceLock(settings.data_dir)


def open_store(
    settings: Settings, *, any_age: bool = False, anew: bool = False, alone: bool = False
) -> Store:
    """Open the data folder for this process: create it if it is missing, migrate it if it is older.

    A store that is open already is closed. Raises `StartRefused`, having changed nothing, when a key is
    missing or wrong, the folder cannot be written, the data is newer than this program, a service runs on
    data that has to be migrated, or the database is not the one of the key ring: empty (`DatabaseEmpty`),
    from before the last start, or of another folder. With `any_age`, the last two are opened; with `anew`, an
    empty database becomes a new one. With `alone`, the caller holds the lock of the service.
    """
    with _refusal(settings):
        return _open_store(settings, any_age=any_age, anew=anew, alone=alone)


@contextlib.contextmanager
def _refusal(settings: Settings) -> Iterator[None]:
    """Turn a failure of the disk or the database into `StartRefused`."""
    try:
        yield
    except (OSError, *DATABASE_ERRORS) as problem:
        if (known := known_failure(problem)) is not None:
            reason = known.detail
        elif isinstance(problem, OSError):
            reason = problem.strerror or str(problem)
        else:
            raise
        raise StartRefused(f"The data folder {settings.data_dir} cannot be used: {reason}") from None


def _open_store(settings: Settings, *, any_age: bool, anew: bool, alone: bool) -> Store:
    global _store
    store = Store(settings)
    if not os.access(store.folder, os.W_OK):
        raise StartRefused(
            f"The data folder {store.folder} cannot be written: its disk is read-only, or another user "
            "owns it."
        )
    close_store()
    db.point_at(store.ring, store.folder)
    _store = store
    if store.ring.generation and not store.database.exists():
        raise StartRefused(f"The database {store.database} is not there. Restore it from a backup.")
    if store.ring.generation == 0:
        store.refuse_if_data(store.photos, store.attachments)
        with store.lock.exclusive():
            store.follow()
            if store.ring.generation == 0:  # no other process has created it meanwhile
                _create(store)
                # From here on, a missing database is a loss, not a first start.
                store.replace_ring(msgspec.structs.replace(store.ring, generation=1))
    elif _is_empty(store):
        if not anew:
            raise DatabaseEmpty(
                f"The database {store.database} is empty, but the folder is not new. {ADVICE}."
            )
        with store.lock.exclusive():
            _create(store)
    elif _pending_migrations(store, any_age=any_age):
        with _without_service(store, alone=alone), store.lock.exclusive():
            _migrate()
    store.remove_left_databases()
    return store


def store() -> Store:
    """The open data folder. Raises `RuntimeError` before `open_store`."""
    if _store is None:
        raise RuntimeError("no data folder is open")
    return _store


def close_store() -> None:
    """Close the open store, if there is one, when the process ends."""
    if _store is not None:
        _store.close()


@contextlib.contextmanager
def scope() -> Iterator[None]:
    """One use of the database by this thread: the lock is held, a connection with the current key is open.

    Raises `Unavailable` when the folder stays locked, and `RuntimeError` inside another scope of this thread.
    """
    if not db.is_closed():
        raise RuntimeError("a database scope is open already in this thread")
    current = store()
    with current.lock.shared():
        current.follow()
        db.connect()
        # On a disk that is read-only now, no connection is kept: while one is open, no other connection of
        # this process could write again.
        reusable = os.access(db.database, os.W_OK)
        try:
            yield
        except DATABASE_ERRORS as problem:
            # After a damaged page SQLCipher reads nothing more over its connection. But on a full disk no new
            # connection could be opened.
            reusable = reusable and isinstance(known_failure(problem), StorageFull | None)
            raise
        finally:
            if reusable:
                db.close()
            else:
                db.manual_close()


def batches(query: peewee.ModelSelect, key: peewee.Field, size: int) -> Iterator[list[Any]]:
    """All rows of `query` in lists of up to `size`, ascending by the unique field `key`.

    Opens a scope for each list; none is open while the caller uses one.
    """
    remaining = query
    while True:
        with scope():
            rows = list(remaining.order_by(key).limit(size))
        if not rows:
            return
        yield rows
        remaining = query.where(key > rows[-1].__data__[key.name])


def close_connections() -> None:
    """Close the idle connections, before the process forks."""
    db.close_idle()


# peewee wraps the driver's exceptions from executing a statement, but not those from reading its rows.
DATABASE_ERRORS = (peewee.DatabaseError, sqlcipher3.DatabaseError)
_FULL = "The disk is full: nothing more can be stored until there is room."
_READ_ONLY = "The disk is read-only: stored data can be read, but nothing can be added or changed."
_FAILING = "The disk cannot be read or written: the log of the system has the reason."
_DAMAGED = "The database is damaged in a part that this needs: run `./snaplore check` and restore a backup."
# Words of SQLite's messages and their meaning; the first match counts.
_FAILURES = (
    ("disk is full", lambda: StorageFull(_FULL)),
    ("locked", lambda: Unavailable("The database is busy. Please come again in a moment.", retry_after=5)),
    ("readonly", lambda: Unavailable(_READ_ONLY, retry_after=300)),
    ("malformed", lambda: DataDamaged(_DAMAGED)),
    ("not a database", lambda: DataDamaged(_DAMAGED)),
    # A damaged page of the search index.
    ("vtable constructor failed", lambda: DataDamaged(_DAMAGED)),
    # Also when Linux has remounted a failing disk read-only.
    ("disk I/O error", lambda: Unavailable(_FAILING, retry_after=300)),
    ("unable to open database file", lambda: Unavailable(_FAILING, retry_after=300)),
)


def known_failure(problem: BaseException | None) -> SnaploreError | None:
    """The failure of `errors.py` that `problem` is, or means (database damaged, disk full); else None."""
    if isinstance(problem, SnaploreError):
        return problem
    while isinstance(problem, DATABASE_ERRORS):
        for words, failure in _FAILURES:
            if words in str(problem):
                return failure()
        # On a full disk SQLite rolls back by itself, and then peewee's own rollback fails: the cause is the
        # exception before.
        problem = problem.__context__
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(_FULL)
    if isinstance(problem, OSError) and problem.errno == errno.EROFS:
        return Unavailable(_READ_ONLY, retry_after=300)
    return None


@contextlib.contextmanager
def unless_full() -> Iterator[None]:
    """For a note in passing, like the time of a use: a full or read-only disk must not prevent reading."""
    try:
        yield
    except DATABASE_ERRORS as problem:
        if known_failure(problem) is None:
            raise


def difference() -> str:
    """How the database and the key ring differ in age or origin; empty when they do not. Needs a connection.

    The database's count is written first: a start that is killed in between leaves it one ahead.
    """
    expected, starts = store().ring.starts, _stored(STARTS, 0)
    if starts > expected + 1 and not _loss():
        return (
            f"the key ring was put back: it is of start {expected} of the service, the database of {starts}"
        )
    return _loss()


def _loss() -> str:
    """Why the open database is not the newest of this folder; empty when it is. Needs a connection."""
    ring, starts, folder = store().ring, _stored(STARTS, 0), _stored(FOLDER, "")
    if folder and ring.folder and folder != ring.folder:
        return "the database is that of another data folder"
    if starts < ring.starts or (ring.folder and not folder):
        return (
            f"the database, or its page with the settings, was put back: it is of start {starts} of the "
            f"service, the key ring of start {ring.starts}"
        )
    return ""


def _stored(name: str, default: Any) -> Any:
    """A value of `models.store_value`, also where the schema is not yet migrated."""
    row = db.execute_sql("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
    return default if row is None else msgspec.json.decode(row[0])


@contextlib.contextmanager
def _first_look(store: Store) -> Iterator[None]:
    """A scope that raises `StartRefused` when the database does not open with its key."""
    try:
        with scope():
            yield
    except peewee.DatabaseError as problem:
        if "not a database" in str(problem):
            raise StartRefused(
                f"The database {store.database} does not open with its key: it is damaged or has another key."
            ) from None
        raise


def _is_empty(store: Store) -> bool:
    """Whether the database holds nothing of Snaplore's. Connecting would write to a file of 0 bytes."""
    if not disk.size_of(store.database):
        return True
    with _first_look(store):
        return not db.execute_sql("SELECT 1 FROM sqlite_master WHERE name = 'settings'").fetchone()


def _pending_migrations(store: Store, *, any_age: bool) -> bool:
    """Whether migrations are due. Raises `StartRefused` for the schema of a newer program, and for another
    database than that of the key ring, unless one of `any_age` is accepted.
    """
    with _first_look(store):
        # A key ring that was put back opens the newest data, so nothing is lost by using it.
        problem = "" if any_age else _loss()
        status = migrations_of(db).status()
    unknown = [row.name for row in status if row.path is None]
    if unknown:
        raise StartRefused(
            f"A newer Snaplore wrote the data (it knows {unknown[-1]}). Install that version or a later one."
        )
    if problem:
        raise StartRefused(f"The data in {store.folder} is not its newest: {problem}. {ADVICE}.")
    return any(row.applied is None for row in status)


class _Statements(Migration):  # type: ignore[misc]  # playhouse brings no types
    """A migration that is a file of SQL statements."""

    def load(self) -> SimpleNamespace:
        return SimpleNamespace(up=self._up)

    def _up(self, _migrator: Any, base: peewee.Database) -> None:
        statement = ""
        for line in Path(self.path).read_text(encoding="utf-8").splitlines(keepends=True):
            statement += line
            if sqlcipher3.complete_statement(statement):  # not within a trigger
                base.execute_sql(statement)  # type: ignore[no-untyped-call]
                statement = ""


class _Migrations(Runner):  # type: ignore[misc]  # as above
    def migrations(self) -> list[Migration]:
        files = Path(self.directory).glob("[0-9]*.sql")
        statements = [_Statements(int(file.stem[:4]), file.stem, str(file), None) for file in files]
        return sorted([*super().migrations(), *statements])


def migrations_of(base: peewee.Database) -> Any:
    """playhouse's runner of the migrations of a database: files of SQL statements, and Python modules."""
    return _Migrations(base, str(MIGRATIONS))


def _create(store: Store) -> None:
    """Make a new database. Needs the lock exclusively."""
    # An interrupted first start may have left an incomplete database, which holds no data.
    for leftover in store.database.parent.glob(store.database.name + "*"):
        leftover.unlink()
    db.point_at(msgspec.structs.replace(store.ring, generation=0), store.folder)
    _migrate()
    db.point_at(store.ring, store.folder)
    disk.sync_file(store.database.parent)


@contextlib.contextmanager
def _without_service(store: Store, *, alone: bool) -> Iterator[None]:
    """No service runs meanwhile. An older one would go on with a schema that it does not know, and could not
    be started again.
    """
    if alone:
        yield
        return
    try:
        service = ServiceLock(store.folder)
    except StartRefused:
        raise StartRefused(
            f"The data in {store.folder} must be migrated for this version, but a {NAME} service of an "
            "earlier version is running on it. Stop that service first."
        ) from None
    with contextlib.closing(service):
        yield


def _migrate() -> None:
    """Apply the pending migrations. Needs the lock exclusively."""
    db.connect(reuse_if_open=True)
    try:
        runner = migrations_of(db)
        is_new = not any(row.applied for row in runner.status())
        applied = runner.up()
        log.info("database %s", "made" if is_new else f"migrated: {', '.join(applied)}")
    finally:
        db.close()
