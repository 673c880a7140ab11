"""A database that is older than the key ring, or not the folder's own, is refused at the start until a person
accepts it; a key ring that is older is noticed.
"""

import contextlib
import dataclasses
import errno
import logging
import os

import msgspec
import pytest

import crypto
import database
import disk
import models
from app import create_app
from clock import utc_now
from database import db
from errors import StartRefused
from tests.support.drawing import draw
from tests.support.service import Service
from upkeep import archive, backup, check, findings, restore, rollback, rotation
from upkeep.progress import silent

PUT_BACK = "the database, or its page with the settings, was put back: it is of start"


@pytest.fixture(autouse=True)
def closed():
    yield
    database.close_connections()


def start(settings):
    """Start as gunicorn does, and end."""
    create_app(settings)
    rollback.count_start()
    database.close_connections()


def age(settings, **orders):
    """The line of the check."""
    try:
        [line] = [
            kind for kind in check.check(settings, findings.Orders(utc_now(), **orders)) if kind.name == "age"
        ]
        return str(line)
    finally:
        database.close_connections()


def counts(settings):
    """The starts that the database and the key ring have counted."""
    database.open_store(settings)
    with database.scope():
        stored = models.stored_value(database.STARTS, 0)
    database.close_connections()
    return stored, database.store().ring.starts


def database_of(settings):
    [path] = (settings.data_dir / "database").glob("*.db")
    return path


def put_back(path, content, number):
    """Put back one page of an earlier `content`."""
    place = slice((number - 1) * 4096, number * 4096)
    present = bytearray(path.read_bytes())
    assert present[place] != content[place], "the page has changed"
    present[place] = content[place]
    path.write_bytes(present)


def page_of(table):
    with database.scope():
        page = db.execute_sql("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    database.close_connections()
    return page


def output_of_start(service):
    before = len(service.output)
    service.start()
    return service.output[before:]


@pytest.mark.slow
def test_a_database_that_was_put_back_is_refused_until_it_is_accepted(tmp_path):
    with Service(tmp_path, "-w", "2", api_key="key") as service:
        service.upload(draw("first"))
        service.stop()
        [path] = service.data.glob("database/*.db")
        earlier = path.read_bytes()
        service.start()
        service.upload(draw("second"))
        service.stop()
        assert "put back" not in service.output

        path.write_bytes(earlier)
        with pytest.raises(AssertionError, match="ended at its start"):
            service.start()
        refusal = f"{PUT_BACK} 1 of the service, the key ring of start 2. {database.ADVICE}."
        assert refusal in service.output
        cleaned = service.run("flask", "--app", "app", "jobs", "cleanup")
        assert (cleaned.returncode, refusal in cleaned.stderr) == (1, True)
        found = service.run("flask", "--app", "app", "check")
        assert found.returncode == 1
        assert f"age: 1 wrong: {PUT_BACK} 1 of the service, the key ring of start 2; Rest" in found.stdout
        accepted = service.run("flask", "--app", "app", "check", "--repair")
        assert "start 2 (repaired)\n" in accepted.stdout
        service.start()
        assert service.get("/api/stats")["total_photos"] == 1
        assert len([path for path in service.data.glob("photos/*/*") if path.is_file()]) == 4


def test_each_start_is_refused_until_the_data_is_accepted(settings, caplog):
    start(settings)
    earlier = database_of(settings).read_bytes()
    start(settings)
    database_of(settings).write_bytes(earlier)
    for _ in range(3):
        with pytest.raises(StartRefused, match=f"{PUT_BACK} 1 of the service, the key ring of start 2"):
            start(settings)
    assert database_of(settings).read_bytes() == earlier
    age(settings, repair=True)
    start(settings)
    assert not caplog.records
    assert counts(settings) == (4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("encryption", [True, False])
@pytest.mark.parametrize("content", ["no bytes", "no tables"])
def test_an_empty_database_is_refused_until_a_new_one_is_accepted(settings, encryption, content):
    settings = dataclasses.replace(settings, encryption=encryption)
    create_app(settings)  # and never started as a service: nothing is counted
    path, ring = database.store().database, database.store().ring
    database.close_connections()
    path.write_bytes(b"")
    if content == "no tables":
        with archive.opened(path, ring) as base:
            base.execute_sql("PRAGMA user_version = 1")
    before = path.read_bytes()
    with pytest.raises(StartRefused, match=r"is empty, but the folder is not new\. Restore a backup"):
        start(settings)
    assert age(settings).startswith("age: 1 wrong: The database ")
    assert path.stat().st_size == len(before)
    assert age(settings, repair=True).startswith("age: 1 wrong, 1 repaired: ")
    assert age(settings) == "age: OK"
    start(settings)
    with database.scope():
        assert db.execute_sql("PRAGMA auto_vacuum").fetchone()[0] == 2, "as in any new database"


def test_a_database_of_another_folder_is_refused(settings, tmp_path):
    mine, other = (dataclasses.replace(settings, data_dir=tmp_path / name, encryption=False) for name in "ab")
    start(mine)
    start(other)
    database_of(mine).write_bytes(database_of(other).read_bytes())
    with pytest.raises(StartRefused, match="the database is that of another data folder"):
        start(mine)
    age(mine, repair=True)
    start(mine)
    assert age(mine) == "age: OK"


def test_a_key_ring_from_before_a_rotation_does_not_delete_the_present_database(settings):
    start(settings)
    earlier = {path: path.read_bytes() for path in settings.data_dir.glob("keys/ring.*")}
    create_app(settings)
    rotation.rotate(silent, now=utc_now())
    database.close_connections()
    present = database_of(settings)
    for path, content in earlier.items():
        path.write_bytes(content)
    with pytest.raises(StartRefused, match=r"is not there\. Restore it"):
        start(settings)
    assert present.exists()


def test_the_key_ring_of_a_first_start_is_refused_beside_pictures(app, client, settings):
    client.upload(draw())
    store = database.store()
    database.close_connections()
    crypto.KeyStore(store.keys, crypto.read_master_key(store.master_key_path)).write(
        msgspec.structs.replace(store.ring, generation=0)
    )
    with pytest.raises(StartRefused, match="Put the keys back"):
        start(settings)
    assert store.database.exists()


def test_an_old_page_with_the_settings_is_noticed(settings):
    start(settings)
    earlier = database_of(settings).read_bytes()
    start(settings)
    page = page_of("settings")
    put_back(database_of(settings), earlier, page)
    assert age(settings) == (
        f"age: 1 wrong: {PUT_BACK} 1 of the service, the key ring of start 2; {database.ADVICE}"
    )


def test_another_old_page_and_a_key_ring_of_the_same_moment_are_not_noticed(settings):
    """What docs/security.md says about the limits of the detection."""
    start(settings)
    before = database_of(settings).read_bytes()
    rings = {path: path.read_bytes() for path in settings.data_dir.glob("keys/ring.*")}
    with database.scope():
        db.execute_sql(
            "INSERT INTO mcp_servers (id, name, url, created_at) VALUES ('a', 'b', 'https://new', '')"
        )
    database.close_connections()
    start(settings)
    put_back(database_of(settings), before, page_of("mcp_servers"))
    assert age(settings) == "age: OK"

    database_of(settings).write_bytes(before)
    for path, content in rings.items():
        path.write_bytes(content)
    assert age(settings) == "age: OK"


def test_a_key_ring_that_was_put_back_is_noticed(settings):
    start(settings)
    earlier = {path: path.read_bytes() for path in settings.data_dir.glob("keys/ring.*")}
    start(settings)
    start(settings)
    for path, content in earlier.items():
        path.write_bytes(content)
    expected = "the key ring was put back: it is of start 1 of the service, the database of 3"
    assert age(settings) == f"age: 1 wrong: {expected}; {database.ADVICE}"
    assert age(settings, repair=True) == f"age: 1 wrong, 1 repaired: {expected} (repaired)"
    assert age(settings) == "age: OK"


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["ring.1", "ring.2"])
def test_a_start_that_is_killed_between_the_two_counts_is_no_finding(settings, monkeypatch, cut):
    start(settings)
    rename = disk.durable_rename

    def killed(source, target):
        if target.name == cut:
            raise KeyboardInterrupt
        rename(source, target)

    for _ in range(3):
        with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
            patched.setattr(disk, "durable_rename", killed)
            create_app(settings)
            rollback.count_start()
        database.close_connections()
        assert age(settings) == "age: OK"
    start(settings)
    stored, ring = counts(settings)
    assert stored == ring
    assert age(settings) == "age: OK"


def test_a_killed_acceptance_can_be_repeated(settings, monkeypatch):
    start(settings)
    earlier = database_of(settings).read_bytes()
    start(settings)
    database_of(settings).write_bytes(earlier)
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(crypto.KeyStore, "write", _interrupted)
        age(settings, repair=True)
    assert age(settings).startswith("age: 1 wrong") or counts(settings)[0] == counts(settings)[1] + 1
    age(settings, repair=True)
    assert age(settings) == "age: OK"
    start(settings)
    assert len(set(counts(settings))) == 1


def _interrupted(*_):
    raise KeyboardInterrupt


def test_a_key_ring_and_a_database_from_before_the_count_are_of_the_same_time(settings):
    create_app(settings)
    store, ring = database.store(), database.store().ring
    body = {name: value for name, value in msgspec.to_builtins(ring).items() if name != "starts"}
    old = msgspec.convert(body, msgspec.defstruct("Old", list(body)))
    crypto.KeyStore(store.keys, crypto.read_master_key(store.master_key_path)).write(old)
    database.close_connections()
    assert age(settings) == "age: OK"
    start(settings)
    assert counts(settings) == (1, 1)


def test_rotations_switches_of_encryption_and_a_new_master_key_keep_the_count(settings):
    start(settings)
    start(settings)
    create_app(settings)
    rotation.rotate(silent, now=utc_now())
    rotation.change_master_key(crypto.new_key())
    database.close_connections()
    assert counts(settings) == (2, 2)
    plain = dataclasses.replace(settings, encryption=False)
    rotation.apply_encryption(plain, silent, now=utc_now())
    assert counts(plain) == (2, 2)
    start(plain)
    earlier = database_of(plain).read_bytes()
    start(plain)
    assert age(plain) == "age: OK"
    database_of(plain).write_bytes(earlier)
    assert "it is of start 3 of the service, the key ring of start 4" in age(plain)


def test_a_rotation_does_not_hide_a_database_that_was_put_back(settings):
    start(settings)
    earlier = database_of(settings).read_bytes()
    start(settings)
    database_of(settings).write_bytes(earlier)
    database.open_store(settings, any_age=True)
    rotation.rotate(silent, now=utc_now())
    database.close_connections()
    assert "it is of start 1 of the service, the key ring of start 2" in age(settings)


@pytest.mark.slow
def test_a_restored_backup_brings_the_database_and_the_key_ring_of_one_moment(settings, tmp_path):
    start(settings)
    create_app(settings)
    backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    database.close_connections()
    for _ in range(3):
        start(settings)
    restore.restore(settings, tmp_path / "backup.tar", silent, now=utc_now())
    assert counts(settings) == (1, 1)
    restore.undo(settings, now=utc_now())
    assert counts(settings) == (4, 4)
    start(settings)
    assert age(settings) == "age: OK"


@pytest.mark.slow
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EROFS])
def test_a_start_that_cannot_be_counted_goes_on_and_says_so(settings, monkeypatch, caplog, problem):
    def fails(*_):
        raise OSError(problem, os.strerror(problem))

    start(settings)
    with monkeypatch.context() as patched:
        patched.setattr(crypto.KeyStore, "_replace", fails)
        for _ in range(3):
            start(settings)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 3
    assert all("this start is not counted" in warning and "The disk is" in warning for warning in warnings)
    assert age(settings) == "age: OK"
    start(settings)
    assert counts(settings) == (2, 2)
