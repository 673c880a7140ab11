"""The data folder: created once, never over existing data, migrated forwards only, locked by turns."""

import dataclasses
import hashlib
import shutil
import threading
from datetime import timedelta

import msgspec
import peewee
import pytest
import sqlcipher3

import claims
import database
import models
import tallies
from clock import utc_now
from errors import StartRefused, Unavailable
from tests.support.service import together


@pytest.fixture
def opened(settings):
    yield database.open_store(settings)
    database.close_connections()


def reopen(settings, **changes):
    database.close_connections()
    return database.open_store(dataclasses.replace(settings, **changes))


def fingerprint(folder):
    """Every file below `folder` with its content, but for the locks and SQLite's shared memory, which hold no
    data.
    """
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "turnstile") and not path.name.endswith("-shm")
    )
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_fresh_folder_is_made_private_encrypted_and_complete(settings, opened):
    with database.scope():
        models.store_value("word", "readable")

    assert settings.data_dir.stat().st_mode & 0o777 == 0o700
    assert (settings.data_dir / "keys" / "master.key").stat().st_mode & 0o777 == 0o600
    assert opened.ring.generation == 1
    assert not opened.database.read_bytes().startswith(b"SQLite format 3")
    everything = b"".join(path.read_bytes() for path in settings.data_dir.rglob("*") if path.is_file())
    assert b"readable" not in everything


def test_with_encryption_off_the_same_folder_is_readable(settings):
    store = database.open_store(dataclasses.replace(settings, encryption=False))
    with database.scope():
        models.store_value("word", "readable")
    database.close_connections()

    assert store.database.read_bytes().startswith(b"SQLite format 3")
    assert not (settings.data_dir / "keys" / "master.key").exists()


def test_stored_data_is_there_after_a_restart(settings, opened):
    with database.scope():
        models.store_value("word", {"kept": [1, 2]})
    reopen(settings)

    with database.scope():
        assert models.stored_value("word") == {"kept": [1, 2]}
        assert models.stored_value("nothing", "default") == "default"


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        ("master key lost", "master key .* is not there"),
        ("master key wrong", "not the one it was made with"),
        ("master key damaged", "is damaged"),
        ("both rings lost", "its keys are not in"),
        ("both rings damaged", "cannot be opened"),
        ("database lost", "The database .* is not there"),
        ("database damaged", "does not open with its key"),
        ("all keys lost", "its keys are not in"),
    ],
)
def test_missing_wrong_or_damaged_keys_and_data_refuse_the_start_and_touch_nothing(
    settings, opened, harm, sentence
):
    database.close_connections()
    keys = settings.data_dir / "keys"
    match harm:
        case "master key lost":
            (keys / "master.key").unlink()
        case "master key wrong":
            (keys / "master.key").write_text("ab" * 32)
        case "master key damaged":
            (keys / "master.key").write_text("ab")
        case "both rings lost":
            (keys / "ring.1").unlink()
            (keys / "ring.2").unlink()
        case "both rings damaged":
            (keys / "ring.1").write_bytes(b"x" * 200)
            (keys / "ring.2").write_bytes(b"")
        case "database lost":
            opened.database.unlink()
        case "database damaged":
            opened.database.write_bytes(b"\x5a" * opened.database.stat().st_size)
        case "all keys lost":
            shutil.rmtree(keys)
    before = fingerprint(settings.data_dir)

    with pytest.raises(StartRefused, match=sentence) as refusal:
        reopen(settings)

    assert "\n" not in str(refusal.value)
    assert fingerprint(settings.data_dir) == before


@pytest.mark.parametrize("encrypted", [True, False])
def test_data_that_does_not_match_the_encryption_setting_refuses_the_start(settings, encrypted):
    database.open_store(dataclasses.replace(settings, encryption=encrypted))
    before = fingerprint(settings.data_dir)

    with pytest.raises(StartRefused, match=f"Set it to {'true' if encrypted else 'false'}"):
        reopen(settings, encryption=not encrypted)
    assert fingerprint(settings.data_dir) == before


def test_a_master_key_of_the_operators_own_is_used_and_no_other_is_made(settings, tmp_path):
    key = tmp_path / "credential"
    key.write_text("0f" * 32)
    reopen(settings, master_key_file=key)
    reopen(settings, master_key_file=key)

    assert not (settings.data_dir / "keys" / "master.key").exists()
    with pytest.raises(StartRefused):
        reopen(settings)


def test_an_interrupted_first_start_starts_over(settings, opened):
    database.close_connections()
    ring = opened.ring
    # The state after a crash between making the key ring and completing the database.
    opened._key_store.write(models.msgspec.structs.replace(ring, generation=0))
    opened.database.write_bytes(b"half of a page")

    assert reopen(settings).ring.generation == 1
    with database.scope():
        models.store_value("word", 1)


def test_a_schema_of_a_newer_version_refuses_the_start(settings, opened):
    with database.scope():
        database.db.execute_sql(
            "INSERT INTO schema_migration (name, applied) VALUES ('0999_future', '2030-01-01')"
        )

    with pytest.raises(StartRefused, match="0999_future"):
        reopen(settings)


def test_an_older_schema_is_migrated_with_its_data(settings, opened, tmp_path, monkeypatch):
    with database.scope():
        models.store_value("word", "kept")
    steps = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, steps)
    (steps / "0002_more.py").write_text(
        'def up(migrator, db):\n    db.execute_sql("CREATE TABLE more (id INTEGER PRIMARY KEY)")\n'
    )
    monkeypatch.setattr(database, "MIGRATIONS", steps)
    reopen(settings)

    with database.scope():
        assert models.stored_value("word") == "kept"
        assert "more" in database.db.get_tables()


def test_every_model_has_the_columns_of_its_table(opened):
    with database.scope():
        for model in models.Model.__subclasses__():
            columns = {column.name for column in database.db.get_columns(model._meta.table_name)}
            assert columns == set(model._meta.columns), model.__name__


def test_a_scope_inside_a_scope_is_refused(opened):
    with database.scope(), pytest.raises(RuntimeError, match="already"), database.scope():
        pass


def test_the_database_is_closed_outside_of_a_scope(opened):
    with database.scope():
        assert models.stored_value("word") is None
    with pytest.raises(peewee.InterfaceError):
        models.stored_value("word")


def test_scopes_share_connections_and_a_rest_leaves_one(opened):
    seen = {}

    def use(meeting):
        with database.scope():
            seen[id(database.db.connection())] = database.db.connection()
            meeting.wait(90)

    def use_at_once(number):
        meeting = threading.Barrier(number)
        together(*[lambda: use(meeting)] * number)
        return sum(map(_is_open, seen.values()))

    assert use_at_once(4) == 4
    assert use_at_once(2) == 4
    assert len(seen) == 4
    database.db.rest()
    assert use_at_once(1) == 1
    database.close_connections()
    assert not any(map(_is_open, seen.values()))


def _is_open(connection):
    try:
        return connection.total_changes >= 0
    except sqlcipher3.ProgrammingError:
        return False


def test_a_connection_with_an_open_transaction_is_not_reused(opened):
    with database.scope():
        database.db.execute_sql("BEGIN IMMEDIATE")
        database.db.execute_sql("REPLACE INTO settings VALUES ('word', '1')")
    with database.scope():
        assert models.stored_value("word") is None
        models.store_value("word", 2)


def test_many_writers_side_by_side_lose_nothing(opened):
    def count():
        for _ in range(25):
            with database.scope(), database.db.atomic():
                models.store_value("count", models.stored_value("count", 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with database.scope():
        assert models.stored_value("count") == 200


def test_the_exclusive_lock_is_granted_under_steady_traffic(opened):
    stop, alone = threading.Event(), threading.Event()

    def traffic():
        while not stop.is_set():
            with opened.lock.shared():
                stop.wait(0.002)

    threads = [threading.Thread(target=traffic) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        with opened.lock.exclusive(patience=20):
            alone.set()
            with pytest.raises(Unavailable), _in_other_thread(opened.lock.shared, 0.05):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert alone.is_set()


def test_a_connection_follows_a_key_ring_that_was_replaced(settings, opened):
    with database.scope():
        models.store_value("word", "old")
    fresh = opened.database.with_name("fresh.db")
    with database.scope():
        database.db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(opened.database, fresh)
        models.store_value("word", "newer, in the old file")
    opened._key_store.write(
        models.msgspec.structs.replace(opened.ring, generation=2, database_file="database/fresh.db")
    )

    with database.scope():
        assert models.stored_value("word") == "old"
        assert opened.ring.generation == 2


def test_tallies_follow_every_change(opened):
    now = utc_now()
    with database.scope():
        for number in range(6):
            photo = models.Photo.create(
                **dict.fromkeys(("filename", "mime_type"), ""),
                device_id=f"d{number % 2}",
                original_path=str(number),
                thumbnail_path=str(-number - 1),
                file_size=1,
                width=1,
                height=1,
                original_timestamp=now,
                created_at=now,
                sha256=b"",
                key_generation=1,
            )
            claims.enqueue(photo, now=now)
        models.Analysis.update(status="done", intent="note", content_category="chat", app_name="Mail").where(
            models.Analysis.photo < 4
        ).execute()
        models.Analysis.update(taken_at=now - timedelta(days=40)).where(models.Analysis.photo == 3).execute()
        for kept, photo_ids in ((True, (1, 2, 3, 5)), (False, (3,))):
            models.Analysis.update(kept=kept).where(models.Analysis.photo.in_(photo_ids)).execute()
        for tag, photo_ids in (("Work", (1, 2, 6)), ("home", (1,))):
            for photo_id in photo_ids:
                models.PhotoTag.create(photo=photo_id, tag=tag, folded=tag.lower(), taken_at=now)
        models.Photo.delete().where(models.Photo.id == 1).execute()

        analysis = models.Analysis
        month = peewee.fn.SUBSTR(analysis.taken_at, 1, 7)
        columns = (analysis.device_id, analysis.status, analysis.intent, analysis.content_category)
        key = (analysis.app_name, month, *columns, analysis.kept, analysis.covered)
        counted = analysis.select(*key, peewee.fn.COUNT("*")).group_by(*key).tuples()
        assert sorted(models.Tally.select().tuples()) == sorted(counted)
        assert tallies.largest_tags(9) == [("Work", 2)]


def test_a_photo_in_the_trash_gets_no_analysis_by_any_statement(opened):
    now = utc_now()
    with database.scope():
        photo = models.Photo.create(
            **dict.fromkeys(("device_id", "filename", "mime_type", "original_path", "thumbnail_path"), ""),
            **dict.fromkeys(("file_size", "width", "height", "key_generation"), 1),
            **dict.fromkeys(("original_timestamp", "created_at"), now),
            sha256=b"",
        )
        models.Trash.create(photo=photo, deleted_at=now, analysis="{}", tags="[]")

        with pytest.raises(peewee.IntegrityError, match="in the trash"):
            claims.enqueue(photo, now=now)


class Counted:
    """A cache that counts how often it was cleared."""

    def __init__(self):
        self.cleared = 0

    def clear(self):
        self.cleared += 1


def test_a_store_has_one_cache_of_each_class_until_it_is_closed(opened, settings):
    found = []
    threads = [threading.Thread(target=lambda: found.append(opened.cache(Counted))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(cache) for cache in found}) == 1
    opened.replace_ring(msgspec.structs.replace(opened.ring, generation=opened.ring.generation + 1))
    assert found[0].cleared == 0

    following = database.open_store(settings)
    assert found[0].cleared == 1
    assert following.cache(Counted) is not found[0]
    database.close_store()
    assert following.cache(Counted).cleared == 1
    with database.scope():  # a thread that still works may go on
        assert models.Photo.select().count() == 0


class _in_other_thread:
    """Enter a lock in another thread, which does not share this thread's hold, and raise here what it raised
    there.
    """

    def __init__(self, lock, patience):
        self._lock, self._patience = lock, patience

    def __enter__(self):
        raised = []

        def enter():
            try:
                with self._lock(self._patience):
                    pass
            except Unavailable as problem:
                raised.append(problem)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]

    def __exit__(self, *exc_info):
        pass
