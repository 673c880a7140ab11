"""Clean-up: what is deleted, what stays, which bytes remain on the disk, and that it can be killed at any
moment.

Encryption is off here, so that the tests can read the bytes.
"""

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, timedelta
from pathlib import Path

import pytest

import database
import lexicon
import models
import search
import uploads
from assistant import turns
from clock import utc_now
from curation import retention
from database import db
from engines.findings import MemoryCandidate
from locks import Presence, named_lock
from memory import remember
from models import Analysis, Conversation, Dynamic, Memory, Message, Photo, SyncState, Vocabulary
from settings import ROOT, Settings
from spool import Spool
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import Clients, Service, eventually, together
from upkeep import cleanup
from upkeep.cleanup import Cleaned

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
JOBS = ("reason", "decay", "cleanup")


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "data", language="en", encryption=False)


def count(model):
    with database.scope():
        return model.select().count()


def files(settings, folder=""):
    return {path for path in (settings.data_dir / folder).rglob("*") if path.is_file()}


def say(content, *, now, picture=None):
    with database.scope():
        return turns.begin_turn(None, content, picture, device_id="phone", now=now).conversation_id


def note(title, *, now, pinned=False):
    with database.scope():
        return Dynamic.create(title=title, category="note", is_pinned=pinned, created_at=now).id


def told(content, *, now, lasting=False):
    candidate = MemoryCandidate(content=content, memory_type="long_term" if lasting else "short_term")
    with database.scope():
        return remember(candidate, source_type="chat", now=now).id


def remaining(model, column):
    with database.scope():
        return {row[0] for row in model.select(column).tuples()}


def make_old(*paths, age=2 * DAY):
    moment = utc_now().timestamp() - age.total_seconds()
    for path in paths:
        os.utime(path, (moment - 60, moment - 60))


def fill(number, *, uploaded):
    """Analysed photos, each with a unique word, created faster than by uploads."""
    for first in range(0, number, 100):
        with database.scope(), db.atomic():
            for this in range(first, min(number, first + 100)):
                spool = Spool(uploads.MAX_FILE)
                spool.write(draw(str(this), size=(8, 8)))
                kept = uploads.store(spool, uploads.Upload("unknown", f"{this}.png", uploaded), now=uploaded)
                result = {
                    "status": "done",
                    "visible_text": f"common words and perpendicular{this}x",
                    "summary": f"horizontal{this}x",
                }
                Analysis.update(**result).where(Analysis.photo == kept.id).execute()
                lexicon.index(kept.id)


# -------------------------------------------------------------------------------------------------------- age


def test_after_31_days_a_photo_is_deleted_with_its_analysis_files_and_index_entries(
    client, settings, remote, work_queue, clock
):
    client.upload(draw(), device_id="phone")
    work_queue(remote, clock=clock)
    assert client.get("/api/search?q=library").json["total"] == 1

    assert cleanup.clean(settings, now=utc_now() + 29 * DAY) == Cleaned(memories=1)
    assert client.get("/api/photos").json["total"] == 1

    size = sum(path.stat().st_size for path in files(settings, "photos"))
    assert cleanup.clean(settings, now=utc_now() + 31 * DAY) == Cleaned(photos=1, bytes=size)
    assert client.get("/api/photos").json["total"] == client.get("/api/search?q=library").json["total"] == 0
    assert client.get("/api/stats").json["total_photos"] == 0
    assert files(settings, "photos") == set()
    assert count(Analysis) == count(Vocabulary) == 0
    assert count(SyncState) == 1, "how far a device is synced stays"


def test_conversations_are_deleted_with_their_attachments_31_days_after_the_last_message(app, settings):
    now = utc_now()
    old = say("What is on this?", now=now, picture=draw(format="JPEG"))
    kept = say("How are you?", now=now)
    with database.scope():
        Conversation.update(updated_at=now + 20 * DAY).where(Conversation.id == kept).execute()
    [attachment] = files(settings, "attachments")
    size = attachment.stat().st_size

    assert cleanup.clean(settings, now=now + 31 * DAY) == Cleaned(conversations=1, bytes=size)
    assert remaining(Conversation, Conversation.id) == {kept}
    assert remaining(Message, Message.conversation) == {kept}
    assert old != kept
    assert not attachment.exists()


def test_notes_that_are_not_pinned_are_deleted_after_31_days(app, settings):
    now = utc_now()
    note("Forgotten", now=now)
    pinned = note("Pinned", now=now, pinned=True)
    young = note("Young", now=now + 5 * DAY)

    assert cleanup.clean(settings, now=now + 31 * DAY) == Cleaned(dynamics=1)
    assert remaining(Dynamic, Dynamic.id) == {pinned, young}


def test_expired_short_term_memories_are_deleted_and_long_term_ones_stay(app, settings):
    now = utc_now()
    told("The parcel arrives on Tuesday.", now=now)
    lasting = told("Is allergic to nuts.", now=now, lasting=True)

    assert cleanup.clean(settings, now=now + 49 * HOUR) == Cleaned(memories=1)
    assert cleanup.clean(settings, now=now + 1000 * DAY) == Cleaned()
    assert remaining(Memory, Memory.id) == {lasting}


@pytest.mark.slow
def test_data_stays_at_exactly_the_retention_period_and_is_deleted_a_moment_later(app, settings):
    now, moment = utc_now(), timedelta(milliseconds=1)
    fill(1, uploaded=now)
    say("Hello", now=now)
    note("Note", now=now)
    told("The parcel arrives on Tuesday.", now=now)

    assert cleanup.clean(settings, now=now + 48 * HOUR - moment) == Cleaned()
    assert cleanup.clean(settings, now=now + 48 * HOUR) == Cleaned(memories=1)
    assert cleanup.clean(settings, now=now + 30 * DAY) == Cleaned()
    size = sum(path.stat().st_size for path in files(settings, "photos"))
    assert cleanup.clean(settings, now=now + 30 * DAY + moment) == Cleaned(
        photos=1, conversations=1, dynamics=1, bytes=size
    )


def test_a_retention_of_0_days_keeps_everything_that_has_not_expired(app, client, settings):
    now = utc_now()
    client.upload(draw())
    say("Hello", now=now)
    note("Note", now=now)
    told("The parcel arrives on Tuesday.", now=now)
    with database.scope():
        models.store_value("retention_days", 0)

    assert cleanup.clean(settings, now=now + 10_000 * DAY) == Cleaned(memories=1)


def test_a_retention_that_was_set_at_run_time_wins(app, client, settings):
    client.upload(draw())
    with database.scope():
        assert retention.days(settings) == 30
        models.store_value("retention_days", 90)
        assert retention.days(settings) == 90

    assert cleanup.clean(settings, now=utc_now() + 89 * DAY).photos == 0
    assert cleanup.clean(settings, now=utc_now() + 91 * DAY).photos == 1


@pytest.mark.slow
def test_one_run_deletes_more_than_a_batch_and_reports_progress(app, settings):
    now = utc_now()
    fill(2 * cleanup.BATCH + 1, uploaded=now)
    told_of = []
    cleaned = cleanup.clean(settings, now=now + 31 * DAY, progress=lambda *progress: told_of.append(progress))

    assert cleaned.photos == 101
    assert [progress for progress in told_of if progress[0] == "photos"] == [
        ("photos", done, 101) for done in (50, 100, 101)
    ]
    assert told_of[-1] == ("database", 3, 3)
    assert all(done <= total for _, done, total in told_of)
    assert files(settings, "photos") == set()


def test_a_photo_that_is_deleted_during_its_analysis_leaves_nothing(
    client, settings, remote, fake_llm, work_queue, clock
):
    def clean_first(request):
        cleaned.append(cleanup.clean(settings, now=utc_now() + 31 * DAY))
        return FINDINGS

    cleaned = []
    client.upload(draw())
    fake_llm.default = clean_first
    assert work_queue(remote, clock=clock) == 1

    assert [one.photos for one in cleaned] == [1]
    assert count(Photo) == count(Analysis) == count(Vocabulary) == count(Memory) == 0
    assert client.get("/api/stats").json["processing"] == 0


# --------------------------------------------------------------------------------------------- one-time codes


@pytest.mark.slow
def test_one_time_codes_go_to_the_trash_after_a_day_where_that_is_set(client, settings):
    shown = {"code": "one_time_code", "kept": "one_time_code", "both": "card one_time_code", "plain": ""}
    ids = {name: client.upload(draw(name)).json["id"] for name in shown}
    with database.scope():
        for name, kinds in shown.items():
            Analysis.update(sensitive=kinds, kept=name == "kept").where(Analysis.photo == ids[name]).execute()
    now = utc_now()

    assert client.get("/api/data/codes").json == {"days": 0, "photos": 1}
    assert cleanup.clean(settings, now=now + 2 * DAY).codes == 0  # off
    assert client.put("/api/data/codes", json={"days": 1}).json == {"days": 1, "photos": 1}
    assert cleanup.clean(settings, now=now + 23 * HOUR).codes == 0
    assert cleanup.clean(settings, now=now + 25 * HOUR, dry_run=True).codes == 1
    assert client.get("/api/photos?trash=true").json["total"] == 0
    assert cleanup.clean(settings, now=now + 25 * HOUR).codes == 1

    assert [item["id"] for item in client.get("/api/photos?trash=true").json["items"]] == [ids["code"]]
    assert {item["id"] for item in client.get("/api/photos").json["items"]} == {*ids.values()} - {ids["code"]}
    assert cleanup.clean(settings, now=now + 25 * HOUR).codes == 0


def test_the_environment_sets_the_expiry_of_codes_until_it_is_set_at_run_time(client, settings):
    settings = dataclasses.replace(settings, codes_expire=2)
    code = client.upload(draw()).json["id"]
    with database.scope():
        Analysis.update(sensitive="one_time_code").where(Analysis.photo == code).execute()
    later = utc_now() + 3 * DAY
    assert cleanup.clean(settings, now=later, dry_run=True).codes == 1
    client.put("/api/data/codes", json={"days": 0})
    assert cleanup.clean(settings, now=later, dry_run=True).codes == 0
    assert client.put("/api/data/codes", json={"days": -1}).status_code == 400


# ---------------------------------------------------------------------------------------------------- dry run


def test_a_dry_run_reports_the_numbers_of_a_run_and_changes_nothing(app, client, settings):
    now = utc_now()
    fill(3, uploaded=now)
    say("What is on this?", now=now, picture=draw(format="JPEG"))
    note("Note", now=now)
    told("The parcel arrives on Tuesday.", now=now)
    orphan = settings.data_dir / "spool" / ("ab" * 16)
    orphan.write_bytes(b"cut off")
    presence = settings.data_dir / "workers" / ("0" * 16)
    presence.parent.mkdir(exist_ok=True)
    presence.touch()
    make_old(orphan, presence)
    before = {path: path.read_bytes() for path in files(settings) if path.suffix != ".db-shm"}
    then = now + 31 * DAY
    expected = cleanup.clean(settings, now=then, dry_run=True)

    assert {path: path.read_bytes() for path in before} == before
    assert (
        expected.photos,
        expected.conversations,
        expected.dynamics,
        expected.memories,
        expected.orphans,
    ) == (3, 1, 1, 1, 1)
    assert cleanup.clean(settings, now=then) == expected
    assert cleanup.clean(settings, now=then, dry_run=True) == Cleaned()


# ------------------------------------------------------------------------------------------------ other files


def test_only_orphans_older_than_a_day_are_deleted_or_set_aside(app, client, settings):
    client.upload(draw())
    say("What is on this?", now=utc_now(), picture=draw(format="JPEG"))
    with_rows = files(settings, "photos") | files(settings, "attachments")
    name = "0123456789abcdef" * 2
    orphans = [
        f"photos/01/{name}",
        f"photos/01/{name}.thumbnail",
        f"attachments/01/{name}",
        f"spool/{name}",
        "keys/ring.1.0a1b2c3d.new",
    ]
    strangers = [
        f"photos/{name}",
        "photos/01/notes.txt",
        f"photos/01/{name}.jpg",
        "keys/ring.1.new",
        f"spool/{name}.txt",
        f"{name}",
    ]
    for path in orphans + strangers:
        (settings.data_dir / path).parent.mkdir(exist_ok=True)
        (settings.data_dir / path).write_bytes(b"12345")
    there = files(settings)
    make_old(*there)
    young = settings.data_dir / "photos" / "01" / name[::-1]
    young.write_bytes(b"an upload that has no row yet")
    now = utc_now()
    os.utime(young, (0, (now - DAY).replace(tzinfo=UTC).timestamp()))

    assert cleanup.clean(settings, now=now) == Cleaned(orphans=2, aside=3, bytes=10)
    left = files(settings)
    assert {path.relative_to(settings.data_dir / "orphans" / now.date().isoformat()) for path in left - there
            if "orphans" in path.parts} == {Path(path) for path in orphans[:3]}  # fmt: skip
    assert {settings.data_dir / path for path in orphans} == there - left
    assert with_rows | {young} | {settings.data_dir / path for path in strangers} <= left
    with database.scope():
        database.store().follow()  # the key ring is intact


def test_lock_files_of_dead_processes_are_deleted_and_others_stay(app, settings):
    for folder in ("turns", "jobs", "workers"):
        (settings.data_dir / folder).mkdir(exist_ok=True)
    dead = [settings.data_dir / path for path in ("turns/0a1b", "jobs/decay", f"workers/{'d' * 16}")]
    for path in dead:
        path.touch()
    living = Presence(settings.data_dir / "workers")
    young = settings.data_dir / "turns" / "1c2d"
    young.touch()
    with named_lock(settings.data_dir / "turns", "5e6f", 0, busy="busy"):
        held = [settings.data_dir / "turns" / "5e6f", settings.data_dir / "workers" / living.name]
        make_old(*dead, *held)
        assert cleanup.clean(settings, now=utc_now()) == Cleaned()
        assert not any(path.exists() for path in dead)
        assert all(path.exists() for path in [*held, young])
    living.forget()


# -------------------------------------------------------------------------------------------------- the bytes


def present(settings, words):
    """Those of `words` that any file of the data folder contains, ignoring case."""
    content = [path.read_bytes().lower() for path in files(settings)]
    return {word for word in words if any(word.lower() in one for one in content)}


def test_what_was_deleted_is_in_no_byte_of_the_data_folder(
    app, client, settings, remote, fake_llm, work_queue, clock
):
    said, seen, summary, entity, remembered = (
        "Zanzibar sunrise",
        "quicksilver",
        "contraband marzipan",
        "Ambrosius",
        "Ermintrude",
    )
    fake_llm.answer({
        **FINDINGS, "summary": summary, "visible_text": seen,
        "entities": [{"type": "person", "value": entity}],
        "memories": [
            {"content": f"Owes {remembered} money.", "category": "fact", "memory_type": "short_term",
             "importance": 0.4}
        ],
    })  # fmt: skip
    picture = draw("secret", size=(700, 700), compress_level=0)
    client.upload(picture, "divorce-papers.png", local_media_store_id="hidden-album")
    work_queue(remote, clock=clock)
    attachment = draw("attached", size=(300, 300), format="JPEG")
    say(said, now=utc_now(), picture=attachment)
    note("Regretted rendezvous", now=utc_now())
    staying = client.upload(draw("stays"), "staying-file.png").json["id"]
    with database.scope():
        Photo.update(created_at=utc_now() + 20 * DAY).where(Photo.id == staying).execute()
    words = [
        *said.split(),
        seen,
        *summary.split(),
        entity,
        remembered,
        "divorce-papers",
        "hidden-album",
        "Regretted",
        "rendezvous",
    ]
    needles = {word.encode() for word in words} | {
        picture[len(picture) // 2 :][:200],
        attachment[len(attachment) // 2 :][:200],
    }
    assert present(settings, needles) == needles

    cleanup.clean(settings, now=utc_now() + 31 * DAY)
    assert present(settings, needles) == set()
    assert present(settings, {b"staying-file"}), "the proof that it would have been found"


@pytest.mark.slow
def test_of_a_thousand_words_none_is_left_in_the_gaps_between_rows(app, settings):
    """SQLite leaves rare copies there when it moves rows between pages, so a few words prove nothing."""
    now = utc_now()
    fill(200, uploaded=now - 40 * DAY)
    fill(100, uploaded=now)
    gone = {
        f"{word}{number}x".encode() for word in ("perpendicular", "horizontal") for number in range(100, 200)
    }
    assert present(settings, gone) == gone

    assert cleanup.clean(settings, now=now).photos == 200
    assert present(settings, gone) == set()
    with database.scope():
        assert search.find("perpendicular50x", now=now).total > 0
        assert search.find("perpendicular150x", now=now).items == []


@pytest.mark.slow
def test_a_large_database_is_not_rewritten_but_returns_its_free_pages_in_steps(app, settings, monkeypatch):
    monkeypatch.setattr(cleanup, "REWRITABLE", 0)
    monkeypatch.setattr(cleanup, "PAGES", 20)
    empty = size_of_database()
    fill(150, uploaded=utc_now())
    full = size_of_database()
    cleanup.clean(settings, now=utc_now() + 31 * DAY)

    assert size_of_database() - empty < (full - empty) / 4
    with database.scope():
        assert db.execute_sql("PRAGMA freelist_count").fetchone() == (0,)
        assert db.execute_sql("PRAGMA integrity_check").fetchone() == ("ok",)


def size_of_database():
    with database.scope():
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        return database.store().database.stat().st_size


def test_the_log_stays_during_a_read_and_the_next_clean_up_empties_it(app, settings, monkeypatch, caplog):
    monkeypatch.setattr(cleanup, "LOG_TRIES", 1)
    reading, done = threading.Event(), threading.Event()

    def reader():
        with database.scope(), db.atomic("DEFERRED"):
            Photo.select().count()
            reading.set()
            done.wait(90)

    note("Something to write", now=utc_now())
    thread = threading.Thread(target=reader)
    thread.start()
    try:
        assert reading.wait(90)
        note("Something that the reader does not see", now=utc_now())
        cleanup.clean(settings, now=utc_now())
        assert "write-ahead log is in use" in caplog.text
    finally:
        done.set()
        thread.join()
    with database.scope():
        log = database.store().database.with_name(database.store().database.name + "-wal")
        assert db.execute_sql("PRAGMA busy_timeout").fetchone() == (10_000,)
    assert log.stat().st_size > 0

    cleanup.clean(settings, now=utc_now())
    assert log.stat().st_size == 0


# --------------------------------------------------------------------------------------------- real processes


@pytest.mark.slow
def test_a_killed_run_leaves_everything_intact_and_the_next_run_finishes(app, settings, tmp_path):
    fill(4 * cleanup.BATCH, uploaded=utc_now() - 40 * DAY)
    fill(3, uploaded=utc_now())
    pictures = files(settings, "photos")
    make_old(*pictures)
    database.close_connections()
    service = Service(tmp_path, encryption="false")
    command = [sys.executable, "-m", "flask", "--app", "app", "jobs", "cleanup"]
    run = subprocess.Popen(
        command, cwd=ROOT, env=service.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        eventually(
            lambda: run.poll() is not None or not all(path.exists() for path in pictures),
            "the first photos are gone",
            every=0.001,
        )
    finally:
        run.send_signal(signal.SIGKILL)
        said = run.communicate()[0]
    assert run.returncode == -signal.SIGKILL, said

    left = count(Photo)
    assert 3 < left < 203, "it was killed in the middle"
    with database.scope():
        assert db.execute_sql("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute_sql("PRAGMA foreign_key_check").fetchall() == []
        assert Analysis.select().count() == left == Vocabulary.get(Vocabulary.term == "common").documents
        for row in Photo.select(Photo.original_path, Photo.thumbnail_path).tuples():
            assert all((settings.data_dir / path).is_file() for path in row)
    database.close_connections()

    again = service.run("flask", "--app", "app", "jobs", "cleanup")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith(f"cleanup: {left - 3} photos, ")
    assert count(Photo) == 3
    assert len(files(settings, "photos")) == 6, "also what lost its row when the first run died"
    assert files(settings, "jobs") == set()


@pytest.mark.slow
def test_the_jobs_run_beside_a_busy_service_and_nobody_meets_a_locked_database(tmp_path):
    article = {
        "title": "A book is due",
        "content": "The library wants it back on Friday.",
        "photo_ids": list(range(1, 200)),
    }

    def model(request):
        return {"articles": [article]} if "articles" in request.text else FINDINGS

    with FakeLLM(model) as fake:
        remote = {"api_key": "key", "dev_mode": "true", "llm_base_url": fake.url, "llm_model": "scripted"}
        with Service(tmp_path, language="en", **remote) as service:
            with Work(service) as work:
                for first in (0, 10):
                    eventually(lambda last=first + 10: len(work.uploaded) >= last, "the service is busy")
                    make_uploads_old(service, work.uploaded[first : first + 10])
                    before = work.done
                    runs = dict(
                        zip(
                            JOBS,
                            together(*(lambda name=name: run_job(service, name) for name in JOBS)),
                            strict=True,
                        )
                    )
                    for name, run in runs.items():
                        assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
                        assert run.stdout.startswith(f"{name}: ")
                        assert len(run.stdout.splitlines()) == 1, run.stdout
                    assert not runs["cleanup"].stdout.startswith("cleanup: 0 photos")
                    eventually(lambda before=before: work.done > before, "the service still works")
            service.wait_until_analysed()
        assert work.failures == []
        assert "locked" not in service.output
        assert "error" not in service.output.lower()


def run_job(service, name):
    return service.run("flask", "--app", "app", "jobs", name)


def make_uploads_old(service, ids):
    """Make photos appear as uploaded 40 days ago."""
    database.open_store(Settings(data_dir=service.data))
    with database.scope():
        Photo.update(created_at=utc_now() - 40 * DAY).where(Photo.id.in_(ids)).execute()
    database.close_connections()


class Work(Clients):
    """Clients that upload, list and search until they are stopped."""

    def __init__(self, service):
        super().__init__(service, self._upload, self._upload, self._search)
        self.uploaded = []

    def _upload(self):
        self.uploaded.append(self._service.upload(draw(str(self.done), size=(60, 60)))["id"])

    def _search(self):
        self._service.get("/api/search", q="library book")
        self._service.get("/api/photos", page_size=20)
