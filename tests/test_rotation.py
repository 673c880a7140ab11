"""Key rotation of the database, the files and the master key: beside a running service, killed at any point,
and with encryption switched on and off.
"""

import contextlib
import dataclasses
import hashlib
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
import pytest
import requests
import sqlcipher3

import crypto
import database
import disk
import models
import photos
from app import create_app
from assistant import turns
from clock import utc_now
from crypto import KeyStore
from errors import StartRefused, StorageFull, Unavailable, Unreadable
from models import Photo
from settings import ROOT, Settings
from tests.support import kills
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.service import Service, eventually
from upkeep import archive, check, findings, resealing, rotation
from upkeep.progress import silent

SWITCH_KILLS = 25  # in each direction
KILLS = 4  # of 50 with `--thorough`
PHOTOS = 200  # of 3,000 with `--thorough`


def rotate(**moment):
    rotation.rotate(silent, now=utc_now() + timedelta(**moment))


def filled(client, count=3):
    """Upload pictures and begin a chat with an attachment; returns the pictures by photo id."""
    pictures = [draw(f"Number {number}") for number in range(count)]
    ids = [client.upload(picture, device_id="phone").json["id"] for picture in pictures]
    with database.scope():
        turns.begin_turn("cafe", "Look", draw("a cat", format="JPEG"), device_id="phone", now=utc_now())
    return dict(zip(ids, pictures, strict=True))


def attachment_of(conversation_id):
    with database.scope():
        message = models.Message.get(
            models.Message.attachment_path.is_null(False), models.Message.conversation == conversation_id
        )
        with disk.open_sealed(
            database.store().folder / message.attachment_path, message.attachment_key
        ) as file:
            return file.read()


def holds(client, pictures):
    for photo_id, picture in pictures.items():
        assert client.get(f"/api/photos/{photo_id}/image").data == picture
        assert client.get(f"/api/photos/{photo_id}/thumbnail").data.startswith(b"\xff\xd8")
    assert client.get("/api/photos").json["total"] == len(pictures)
    assert attachment_of("cafe").startswith(b"\xff\xd8")


def databases(settings):
    return sorted(path.name for path in (settings.data_dir / "database").glob("*.db"))


def all_bytes(settings):
    return b"".join(path.read_bytes() for path in settings.data_dir.rglob("*") if path.is_file())


# --------------------------------------------------------------------------------------------------- database


@pytest.mark.slow
def test_a_rotation_gives_the_database_a_new_file_and_key_and_loses_nothing(
    client, settings, work_queue, clock
):
    pictures = filled(client)
    work_queue(clock=clock)
    found = client.get("/api/search?q=number").json
    old_ring, old_file = database.store().ring, database.store().database
    old = old_file.read_bytes()
    rotate()

    holds(client, pictures)
    assert client.get("/api/search?q=number").json == found
    ring = database.store().ring
    assert (ring.generation, ring.database_key == old_ring.database_key) == (old_ring.generation + 1, False)
    assert databases(settings) == [database.store().database.name] != [old_file.name]
    assert not list(settings.data_dir.glob(f"database/{old_file.name}*"))
    assert old[:4096] not in all_bytes(settings)
    again = create_app(settings)
    holds(Client(again), pictures)


def test_no_file_contains_the_old_key_even_with_the_master_key(client, settings):
    filled(client)
    old = database.store().ring.database_key
    rotate()
    database.close_connections()

    master = crypto.read_master_key(settings.data_dir / "keys" / "master.key")
    for copy in ("ring.1", "ring.2"):
        alone = settings.data_dir / copy.replace("ring", "alone")
        alone.mkdir()
        (alone / "ring.1").write_bytes((settings.data_dir / "keys" / copy).read_bytes())
        ring = KeyStore(alone, master).read()
        assert ring.database_key != old
    content = all_bytes(settings)
    for form in (old, old.hex().encode(), old.hex().upper().encode()):
        assert form not in content


def test_pragmas_and_sequences_are_the_same_after_a_rotation(client, settings):
    filled(client)

    def facts():
        with database.scope():
            ask = database.db.execute_sql
            pragmas = [
                ask(f"PRAGMA {name}").fetchone()[0]
                for name in ("auto_vacuum", "user_version", "journal_mode", "page_size")
            ]
            sequences = ask("SELECT * FROM sqlite_sequence ORDER BY name").fetchall()
            checks = ask("PRAGMA foreign_key_check").fetchall(), ask("PRAGMA integrity_check").fetchall()
            return pragmas, sequences, checks, ask("SELECT * FROM tallies").fetchall()

    before = facts()
    assert before[2] == ([], [("ok",)])
    rotate()
    assert facts() == before
    client.delete("/api/photos/3")
    assert client.upload(draw("new")).json["id"] == 4, "an id is not used twice"


def test_the_job_rotates_the_key_by_its_age_or_on_request(client, cli, settings):
    filled(client)
    early = cli.invoke(args=["jobs", "rotate-keys"])
    due = f"{database.store().ring.created_at + timedelta(days=90):%Y-%m-%d}"
    assert early.exit_code == 0
    assert early.stdout.startswith(f"rotate-keys: the database key is due on {due} (")
    assert database.store().ring.generation == 1

    forced = cli.invoke(args=["jobs", "rotate-keys", "--force"])
    assert forced.exit_code == 0
    assert forced.stdout.startswith("rotate-keys: the database has a new key, after ")
    ring = database.store().ring
    database.store().replace_ring(
        msgspec.structs.replace(ring, created_at=utc_now() - timedelta(days=90, minutes=1))
    )
    by_age = cli.invoke(args=["jobs", "rotate-keys"])
    assert "new key" in by_age.stdout
    assert database.store().ring.generation == 3


def test_a_clock_that_was_ahead_makes_no_key_due_early(client, settings):
    assert not rotation.is_due(settings, now=database.store().ring.created_at - timedelta(days=400))
    assert rotation.is_due(settings, now=database.store().ring.created_at + timedelta(days=90))


@dataclasses.dataclass
class Usage:
    free: int


def test_without_space_for_a_second_database_nothing_changes(client, settings, monkeypatch):
    pictures = filled(client)
    before = database.store().ring
    monkeypatch.setattr(rotation.shutil, "disk_usage", lambda path: Usage(free=1_000))
    with pytest.raises(StorageFull, match="needs 2 MB"):
        rotate()
    assert database.store().ring == before
    holds(client, pictures)
    assert len(databases(settings)) == 1


def test_a_copy_that_differs_is_deleted(client, settings, monkeypatch):
    pictures = filled(client)
    before = database.store().ring
    contents = rotation._contents
    monkeypatch.setattr(rotation, "_contents", lambda schema: (contents(schema), schema))
    with pytest.raises(Unreadable, match="could not be copied completely"):
        rotate()
    assert database.store().ring == before
    assert len(databases(settings)) == 1
    holds(client, pictures)


def test_a_copy_that_the_disk_has_changed_is_deleted(client, settings, monkeypatch):
    pictures = filled(client)
    before = database.store().ring
    sync_file = disk.sync_file

    def damage(path):
        sync_file(path)
        if path.suffix == ".db":
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)

    monkeypatch.setattr(disk, "sync_file", damage)
    with pytest.raises(Unreadable, match="could not be copied completely"):
        rotate()
    assert database.store().ring == before
    assert len(databases(settings)) == 1
    holds(client, pictures)


def whole(path, ring):
    """The rows of each table of a database, those of the search index among them."""
    with archive.opened(path, ring) as base:
        ask = base.execute_sql
        assert ask("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert ask("PRAGMA cipher_integrity_check").fetchall() == []
        tables = [
            name
            for name, sql in ask("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
            if not sql.startswith("CREATE VIRTUAL")
        ]
        return {name: sorted(map(repr, ask(f'SELECT * FROM "{name}"'))) for name in tables}


@pytest.fixture
def compared(monkeypatch):
    """Compares both databases whole at the end of each rotation; counts the rotations."""
    counted = Counter()
    replace = database.Store.replace_ring

    def replaced(store, ring, key_store=None):
        if ring.database_file != store.ring.database_file:
            assert whole(store.database, store.ring) == whole(store.folder / ring.database_file, ring)
            counted["rotations"] += 1
        replace(store, ring, key_store)

    monkeypatch.setattr(database.Store, "replace_ring", replaced)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"encryption": False}], indirect=True)
def test_the_new_database_has_every_row_of_the_old_one(client, work_queue, clock, compared):
    pictures = filled(client)
    work_queue(clock=clock)
    rotate()
    assert compared["rotations"] == 1
    holds(client, pictures)


@pytest.fixture
def other_format(request):
    """Makes new databases in another format of SQLCipher than with its defaults."""
    name, value, default = request.param
    with contextlib.closing(sqlcipher3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA cipher_default_{name} = {value}")
        yield
        connection.execute(f"PRAGMA cipher_default_{name} = {default}")


@pytest.mark.parametrize(
    "other_format",
    [
        ("page_size", "8192", "4096"),
        ("hmac_algorithm", "HMAC_SHA256", "HMAC_SHA512"),
        ("kdf_algorithm", "PBKDF2_HMAC_SHA1", "PBKDF2_HMAC_SHA512"),
    ],
    indirect=True,
    ids=lambda values: values[0],
)
def test_a_database_of_another_format_is_rotated(other_format, tmp_path):
    client = Client(create_app(Settings(data_dir=tmp_path / "other")))
    pictures = filled(client)
    before, busy = database.store().ring, []
    rotation.rotate(lambda *_: busy.append(_is_held_alone()), now=utc_now())
    assert set(busy) == {True}, "others wait meanwhile"
    assert database.store().ring.database_key != before.database_key
    holds(client, pictures)
    database.close_store()


def _is_held_alone():
    with ThreadPoolExecutor(1) as thread:  # each thread has its own locks
        return thread.submit(_is_refused).result()


def _is_refused():
    try:
        with database.store().lock.shared(patience=0):
            return False
    except Unavailable:
        return True


def test_two_rotations_at_a_time_are_one_too_many(client, settings, monkeypatch):
    filled(client)
    monkeypatch.setattr(rotation, "PATIENCE", 0)
    refused = []

    def again(stage, done, total):
        with pytest.raises(Unavailable) as refusal:
            rotate()
        refused.append(refusal.value.detail)

    rotation.rotate(again, now=utc_now())
    assert refused[0].startswith("The database key is being replaced.")
    assert database.store().ring.generation == 2


@pytest.mark.parametrize("copy", ["ring.1", "ring.2"])
def test_a_key_ring_that_cannot_be_written_completely_leaves_one_state_or_the_other(
    client, settings, monkeypatch, copy
):
    pictures = filled(client)
    rename = disk.durable_rename

    def failing(source, target):
        if target.name == copy:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(disk, "durable_rename", failing)
    with contextlib.suppress(OSError):
        rotate()
    monkeypatch.undo()
    assert not list(settings.data_dir.glob("keys/*.new"))
    holds(client, pictures)
    client.upload(draw("afterwards"))
    database.close_connections()
    holds(Client(create_app(settings)), {**pictures, 4: draw("afterwards")})
    assert len(databases(settings)) == 1


def test_a_running_service_follows_a_ring_of_which_only_one_copy_was_replaced(client, settings):
    """A rotation was killed between the two copies: a service that still used the old file would write data
    that the next start does not see.
    """
    pictures = filled(client)
    old_second = (settings.data_dir / "keys" / "ring.2").read_bytes()
    store = database.store()
    stale = database.Store(settings)
    database.close_connections()
    rotate()
    (settings.data_dir / "keys" / "ring.2").write_bytes(old_second)
    stale.follow()
    assert stale._signature == stale._key_store.signature()
    assert stale.ring.database_file == store.ring.database_file
    holds(client, pictures)


def test_a_start_removes_the_files_of_a_killed_rotation(client, settings):
    pictures = filled(client)
    left = settings.data_dir / "database" / f"{secrets.token_hex(8)}.db"
    left.write_bytes(b"half a database")
    left.with_name(f"{left.name}-wal").write_bytes(b"its log")
    other = settings.data_dir / "database" / "mine.txt"
    other.write_text("not Snaplore's")
    database.close_connections()
    holds(Client(create_app(settings)), pictures)

    assert len(databases(settings)) == 1
    assert not left.with_name(f"{left.name}-wal").exists()
    assert other.exists()


# ------------------------------------------------------------------------------------------------- by kill -9


@pytest.fixture
def thorough(request):
    return request.config.getoption("--thorough")


@pytest.mark.slow
def test_a_rotation_killed_at_any_point_beside_a_busy_service_loses_nothing(tmp_path, thorough):
    kills, photos = (50, 3_000) if thorough else (KILLS, PHOTOS)
    seed = secrets.randbelow(10**6)
    print("seed", seed)  # pytest shows it with a failure
    chance = random.Random(seed)
    stored: dict[int, str] = {}
    refused: list[int] = []
    with Service(
        tmp_path, api_key="key", dev_mode="true", llm_base_url="http://localhost:9/v1", llm_model="none"
    ) as service:
        _fill(service, stored, photos)
        end = threading.Event()
        with ThreadPoolExecutor(3) as clients:
            busy = [clients.submit(_keep_uploading, service, stored, refused, end) for _ in range(3)]
            try:
                duration = _timed_rotation(service)
                for _ in range(kills):
                    _kill_a_rotation(service, chance.uniform(0, 1.2 * duration))
            finally:
                end.set()
            for client in busy:
                client.result()
        assert set(refused) <= {503}, refused
        finished = service.run("flask", "--app", "app", "jobs", "rotate-keys", "--force")
        assert "new key" in finished.stdout, finished.stderr
        assert {photo["id"] for photo in service.photos()} == stored.keys()
        for photo_id in chance.sample(sorted(stored), 100):
            picture = service.call("GET", f"/api/photos/{photo_id}/image").content
            assert hashlib.sha256(picture).hexdigest() == stored[photo_id]
        assert len(list(service.data.glob("database/*.db"))) == 1
        service.kill()
        service.start()
        assert service.get("/api/stats")["total_photos"] == len(stored)


def _fill(service, stored, count):
    with ThreadPoolExecutor(3) as clients:
        list(clients.map(lambda _number: _upload(service, stored), range(count)))


def _upload(service, stored):
    picture = _picture()
    answer = service.call("POST", "/api/photos/upload", files={"file": ("a.png", picture)})
    if answer.status_code == 200:
        stored[answer.json()["id"]] = hashlib.sha256(picture).hexdigest()
    return answer.status_code


def _picture():
    return draw(secrets.token_hex(8), size=(64, 64))


def _keep_uploading(service, stored, refused, end):
    while not end.is_set():
        with contextlib.suppress(requests.ConnectionError):
            status = _upload(service, stored)
            if status != 200:
                refused.append(status)


def _rotation(service):
    command = [sys.executable, "-m", "flask", "--app", "app", "jobs", "rotate-keys", "--force"]
    return subprocess.Popen(
        command, cwd=ROOT, env=service.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _timed_rotation(service):
    """The seconds from the first trace of a new file to the end."""
    before = _names(service)
    process = _rotation(service)
    eventually(lambda: _names(service) - before, "the export begins", every=0)
    began = os.times().elapsed
    assert process.wait(90) == 0, process.stdout.read()
    process.stdout.close()
    return max(0.02, os.times().elapsed - began)


def _kill_a_rotation(service, after):
    before = _names(service)
    process = _rotation(service)
    eventually(lambda: _names(service) - before or process.poll() is not None, "the export begins", every=0)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _names(service):
    return {path.name for path in service.data.glob("database/*.db")}


@pytest.mark.slow
def test_requests_during_a_rotation_wait_and_continue_with_the_new_key(tmp_path):
    with Service(tmp_path, api_key="key") as service:
        photo = service.upload(_picture())["id"]
        for _ in range(2):
            done = service.run("flask", "--app", "app", "jobs", "rotate-keys", "--force")
            assert done.returncode == 0, done.stderr
            assert service.get(f"/api/photos/{photo}")["id"] == photo
            service.upload(_picture())
        assert service.get("/api/stats")["total_photos"] == 3
        assert len(_names(service)) == 1


def test_who_has_waited_too_long_for_a_rotation_gets_a_503_and_nothing_is_half_stored(
    client, settings, monkeypatch
):
    pictures = filled(client)
    shared = database.FolderLock.shared
    monkeypatch.setattr(database.FolderLock, "shared", lambda lock: shared(lock, patience=0.05))
    inside, leave = threading.Event(), threading.Event()

    def alone():
        with database.store().lock.exclusive():
            inside.set()
            leave.wait(90)

    with ThreadPoolExecutor(1) as thread:
        holding = thread.submit(alone)
        inside.wait(90)
        answer = client.upload(draw("too early"))
        leave.set()
        holding.result()
    assert "come again" in detail(answer, 503)
    assert answer.headers["Retry-After"] == "10"
    holds(client, pictures)
    assert not list((settings.data_dir / "spool").iterdir())


# ------------------------------------------------------------------------------------------------------ files


def paths_of(settings):
    folder = settings.data_dir
    return {
        path.relative_to(folder)
        for kind in ("photos", "attachments")
        for path in (folder / kind).rglob("*")
        if path.is_file()
    }


def test_pictures_are_resealed_under_new_keys_and_names(client, settings):
    pictures = filled(client)
    with database.scope():
        old_keys = {key for row in Photo.select(Photo.file_key, Photo.thumbnail_key).tuples() for key in row}
    before = paths_of(settings)
    rotate()
    sealed = resealing.seal_anew(silent)

    assert (sealed.done, sealed.unreadable) == (4, 0)
    after = paths_of(settings)
    assert len(after) == len(before) == 7
    assert not after & before
    with database.scope():
        keys = {key for row in Photo.select(Photo.file_key, Photo.thumbnail_key).tuples() for key in row}
        assert len(keys) == 6
        assert not keys & old_keys
    holds(client, pictures)
    assert resealing.status(silent) == resealing.Status({2: 7}, [])
    assert resealing.seal_anew(silent).done == 0
    assert client.get("/api/data/keys").json["files"] == [{"generation": 2, "count": 3}]


def test_resealing_continues_where_it_was_killed(client, settings, monkeypatch):
    pictures = filled(client)
    rotate()
    sealed = resealing._sealed
    calls = iter(range(100))

    def dying(source, target):
        if next(calls) == 3:  # the thumbnail of the second photo
            raise KeyboardInterrupt
        return sealed(source, target)

    monkeypatch.setattr(resealing, "_sealed", dying)
    with pytest.raises(KeyboardInterrupt):
        resealing.seal_anew(silent)
    monkeypatch.undo()
    holds(client, pictures)
    assert resealing.seal_anew(silent).done == 3
    holds(client, pictures)


def test_a_photo_that_is_deleted_while_it_is_resealed_stays_deleted(client, settings, monkeypatch):
    pictures = filled(client)
    rotate()
    sealed = resealing._sealed

    def deleting(source, target):
        if 1 in pictures:
            del pictures[1]
            assert client.delete("/api/photos/1").status_code == 200
        return sealed(source, target)

    monkeypatch.setattr(resealing, "_sealed", deleting)
    resealing.seal_anew(silent)
    assert len(paths_of(settings)) == 5
    holds(client, pictures)


def test_the_status_lists_a_damaged_picture_which_stays_unchanged(client, cli, settings):
    filled(client)
    with database.scope():
        place = Photo.get_by_id(2).original_path
    path = settings.data_dir / place
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    run = cli.invoke(args=["jobs", "rotate-keys", "--force", "--pictures"])

    assert run.exit_code == 0
    assert "3 pictures and attachments resealed, 1 could not be read and are unchanged" in run.stdout
    status = cli.invoke(args=["keys", "status"])
    assert status.exit_code == 1
    assert "Files:        2 of generation 1, 5 of generation 2" in status.stdout
    assert f"Unreadable:   1\n  {place} (picture 2)" in status.stdout


# ------------------------------------------------------------------------------------------ switching on, off


def switch(settings, *, on):
    database.close_connections()
    return dataclasses.replace(settings, encryption=on)


def apply(settings):
    app = create_app_closed(settings)
    return app.test_cli_runner().invoke(args=["keys", "apply"])


def create_app_closed(settings):
    """An application as commands get it: its data folder is not open."""
    app = create_app(dataclasses.replace(settings, data_dir=settings.data_dir.parent / secrets.token_hex(4)))
    app.settings, app.is_open = settings, False
    database.close_connections()
    return app


@pytest.mark.slow
def test_encryption_is_switched_off_and_on_again_for_all_data(client, settings):
    pictures = filled(client)
    plain = switch(settings, on=False)
    with pytest.raises(StartRefused, match=r"SNAPLORE_ENCRYPTION is false.*./snaplore keys apply"):
        create_app(plain)
    off = apply(plain)
    assert off.exit_code == 0, off.output
    assert off.output.splitlines()[-1] == "4 pictures and attachments unsealed"
    holds(Client(create_app(plain)), pictures)
    files = sum((settings.data_dir / path).stat().st_size for path in paths_of(settings))
    with database.scope():
        attached = models.Message.select(models.peewee.fn.SUM(models.Message.attachment_bytes)).scalar()
        assert photos.sizes().here + attached == files
    content = all_bytes(plain)
    assert all(picture in content for picture in pictures.values())
    assert b"SQLite format 3" in content
    assert (
        "encryption is off"
        in create_app(plain).test_cli_runner().invoke(args=["jobs", "rotate-keys", "--force"]).stdout
    )

    sealed = switch(settings, on=True)
    with pytest.raises(StartRefused, match=r"SNAPLORE_ENCRYPTION is true.*./snaplore keys apply"):
        create_app(sealed)
    foreign = settings.data_dir / "photos" / "ab" / "mine.txt"
    foreign.parent.mkdir(exist_ok=True)
    foreign.write_text("not Snaplore's")
    on = apply(sealed)
    assert on.exit_code == 0, on.output
    assert foreign.exists()
    holds(Client(create_app(sealed)), pictures)
    content = all_bytes(sealed)
    assert not any(picture[:64] in content for picture in pictures.values())
    assert b"SQLite format 3" not in content
    assert apply(sealed).output.startswith("The database is encrypted already.\n0 ")


def test_data_that_was_never_encrypted_gets_a_master_key_with_encryption(tmp_path, settings):
    plain = dataclasses.replace(settings, encryption=False)
    client = Client(create_app(plain))
    pictures = filled(client)
    sealed = switch(settings, on=True)
    with pytest.raises(StartRefused, match="keys apply"):
        create_app(sealed)
    assert not (settings.data_dir / "keys" / "master.key").exists(), "a refused start changes nothing"
    assert apply(sealed).exit_code == 0
    assert oct((settings.data_dir / "keys" / "master.key").stat().st_mode)[-3:] == "600"
    holds(Client(create_app(sealed)), pictures)


def unsealed(settings):
    """How many files are readable: originals, thumbnails, attachments and uploads on their way."""
    files = [
        path
        for name in ("photos", "attachments", "spool")
        for path in (settings.data_dir / name).rglob("*")
        if path.is_file()
    ]
    contents = [path.read_bytes() for path in files]
    return sum(content != b"" and not content.startswith(b"SNAPSEAL1\n") for content in contents)


@pytest.mark.slow
@pytest.mark.parametrize("on", [False, True])
@pytest.mark.parametrize(
    "moment", ["before the ring", "between its copies", "before the pictures", "before the old pictures go"]
)
def test_a_killed_switch_can_be_run_again(client, settings, monkeypatch, on, moment):
    pictures = filled(client)
    target = switch(settings, on=on)
    if on:
        assert apply(switch(settings, on=False)).exit_code == 0
        database.close_connections()
    with monkeypatch.context() as patch:
        if moment == "before the pictures":
            patch.setattr(resealing, "seal_anew", _interrupted)
        elif moment == "before the old pictures go":
            patch.setattr(resealing, "_remove", _interrupted)
        else:
            rename = disk.durable_rename
            cut = {"before the ring": "ring.1", "between its copies": "ring.2"}[moment]
            patch.setattr(
                disk,
                "durable_rename",
                lambda source, place: _interrupted() if place.name == cut else rename(source, place),
            )
        with contextlib.suppress(KeyboardInterrupt):
            apply(target)
    again = apply(target)
    assert again.exit_code == 0, again.output
    holds(Client(create_app(target)), pictures)
    assert len(databases(settings)) == 1
    assert (b"SQLite format 3" in all_bytes(settings)) is not on
    assert unsealed(settings) == 0 if on else unsealed(settings) >= 7


def _interrupted(*_arguments, **_options):
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
def test_a_switch_killed_at_any_system_call_leaves_one_whole_state_and_can_be_run_again(
    client, settings, tmp_path, on
):
    kills.need_strace()
    seed = secrets.randbelow(10**6)
    pictures = filled(client)
    if on:
        assert apply(switch(settings, on=False)).exit_code == 0
    database.close_connections()
    shutil.copytree(settings.data_dir, tmp_path / "template")
    command = ("keys", "apply")
    every = kills.points(switch(settings, on=on), *command)
    print(f"{SWITCH_KILLS} of {len(every)} points, seed {seed}")  # pytest shows it with a failure
    points = kills.spread(every, SWITCH_KILLS, random.Random(seed))

    def killed(number):
        (tmp_path / str(number)).mkdir()
        folder = kills.copied(tmp_path / "template", tmp_path / str(number))
        target = dataclasses.replace(settings, data_dir=folder, encryption=on)
        kills.kill(target, points[number], *command)
        return target

    switched = []
    with ThreadPoolExecutor(2) as runs:
        for point, target in zip(points, runs.map(killed, range(SWITCH_KILLS)), strict=True):
            try:
                app = create_app(target)
            except StartRefused:
                app = create_app(switch(target, on=not on))
            switched.append(app.settings.encryption == on)
            holds(Client(app), pictures)
            again = apply(target)
            assert again.exit_code == 0, (point, again.output)
            holds(Client(create_app(target)), pictures)
            database.close_connections()
            assert len(databases(target)) == 1, point
            content = all_bytes(target)
            assert (b"SQLite format 3" in content) is not on, point
            assert unsealed(target) == 0 if on else unsealed(target) >= 7, point
            kinds = list(check.check(target, findings.Orders(utc_now())))
            assert [str(kind) for kind in kinds if kind.wrong] == [], point
            database.close_connections()
            shutil.rmtree(target.data_dir)
    assert switched == sorted(switched), "one call commits the switch"
    assert {*switched} == {False, True}, "killed before it and after it"


@pytest.mark.slow
def test_encryption_is_not_switched_while_a_service_runs(tmp_path):
    with Service(tmp_path, api_key="key") as service:
        refused = service.run("flask", "--app", "app", "keys", "apply", encryption="false")
        assert refused.returncode == 1
        assert "A Snaplore service is running" in refused.stderr
        service.upload(_picture())
        assert service.stop() == 0
        assert service.run("flask", "--app", "app", "keys", "apply", encryption="false").returncode == 0
        service.start(encryption="false")
        assert service.get("/api/stats")["total_photos"] == 1


# ------------------------------------------------------------------------------------------------- master key


def test_the_master_key_is_replaced_while_a_service_runs(tmp_path):
    with Service(tmp_path, api_key="key") as service:
        photo = service.upload(_picture())["id"]
        old = (service.data / "keys" / "master.key").read_text()
        changed = service.run("flask", "--app", "app", "keys", "change-master")
        assert changed.returncode == 0, changed.stderr
        assert service.get(f"/api/photos/{photo}")["id"] == photo
        assert service.run("flask", "--app", "app", "jobs", "rotate-keys", "--force").returncode == 0
        assert service.get(f"/api/photos/{photo}")["id"] == photo
        service.kill()
        service.start()
        assert service.get(f"/api/photos/{photo}")["id"] == photo
        assert (service.data / "keys" / "master.key").read_text() != old
        assert sorted(path.name for path in (service.data / "keys").iterdir()) == [
            "master.key",
            "ring.1",
            "ring.2",
        ]
        (service.data / "keys" / "master.key").write_text(old)
        assert not KeyStore(
            service.data / "keys", crypto.read_master_key(service.data / "keys" / "master.key")
        ).opens()


@pytest.mark.parametrize("moment", ["ring.1", "ring.2", "master.key"])
def test_a_killed_change_of_the_master_key_leaves_one_complete_pair(client, settings, monkeypatch, moment):
    pictures = filled(client)
    rename = disk.durable_rename
    with monkeypatch.context() as patch:
        patch.setattr(
            disk,
            "durable_rename",
            lambda source, place: _interrupted() if place.name == moment else rename(source, place),
        )
        with pytest.raises(KeyboardInterrupt):
            rotation.change_master_key(crypto.new_key())
    database.close_connections()
    holds(Client(create_app(settings)), pictures)
    rotate()
    database.close_connections()
    holds(Client(create_app(settings)), pictures)
    kept = {path.name for path in (settings.data_dir / "keys").iterdir() if not path.name.endswith(".new")}
    assert kept == {"master.key", "ring.1", "ring.2"}


@pytest.mark.slow
def test_a_master_key_file_of_the_operator_is_replaced_by_the_operator(tmp_path):
    first, second = tmp_path / "first.key", tmp_path / "second.key"
    first.write_text(secrets.token_hex(32))
    second.write_text(secrets.token_hex(32))
    with Service(tmp_path, api_key="key", master_key_file=first) as service:
        service.upload(_picture())
        change = ("flask", "--app", "app", "keys", "change-master", "--new-key-file", str(second))
        assert "A Snaplore service is running" in service.run(*change).stderr
        service.stop()
        assert "--new-key-file" in service.run(*change[:-2]).stderr
        changed = service.run(*change)
        assert changed.returncode == 0, changed.stderr
        assert str(first) in changed.stdout
        with pytest.raises(AssertionError, match="ended at its start"):
            service.start()
        first.write_text(second.read_text())
        service.start()
        assert service.get("/api/stats")["total_photos"] == 1
