"""Faults of the machine: full, read-only and damaged disks, keys that are lost, clocks that jump, two
services at once.

Where the machine allows it, disks are real: a small file system in a namespace of its own. What fails says so
in a sentence, leaves nothing half done, and works again without a restart; what does not need the thing that
fails goes on.
"""

import errno
import io
import os
import re
import threading
import time
from datetime import timedelta

import pytest

import database
import models
import pictures
from analysis import pool, results
from assistant import chat, openings, recollection
from clock import utc_now
from database import db
from disk import DamagedFile
from disk import _write_all as write_all
from engines import configuration
from engines.circuit import Circuit
from models import Analysis, Memory, Message, Photo
from settings import NAME
from tests.support.client import detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.service import Service, alive, eventually
from tests.support.small_disk import small_disk

DAY = timedelta(days=1)
FULL = "The disk is full: nothing more can be stored until there is room."
READ_ONLY = "The disk is read-only: stored data can be read, but nothing can be added or changed."
SMALL = draw("small", size=(60, 60))
LARGE = draw("large", size=(700, 700), compress_level=0)  # 1.4 MB: it does not stay in memory
HUGE = draw("huge", size=(1300, 1300), compress_level=0)  # 5 MB: it is sent as it is read


def remote(fake):
    return {
        "api_key": "key",
        "dev_mode": "true",
        "analysis_workers": "1",
        "llm_base_url": fake.url,
        "llm_model": "scripted",
    }


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", 12_000_000) as disk:
        if disk is None:
            pytest.skip("this machine allows no small file system; failing writes are tested without")
        yield disk


@pytest.fixture
def service(disk, tmp_path, fake_llm):
    """A running service on the small disk."""
    service = Service(tmp_path, data_dir=disk.folder / "data", **remote(fake_llm))
    service.inside = disk.inside
    service.data = disk.here / "data"
    with service:
        yield service


def upload(service, *pictures, batch=False):
    field, path = ("files", "/api/photos/upload-batch") if batch else ("file", "/api/photos/upload")
    files = [(field, (f"{number}.png", picture)) for number, picture in enumerate(pictures)]
    # Of no device, so that the same picture is stored each time.
    return service.call("POST", path, files=files, data={"device_id": "unknown"})


def say(service, message="Where is my train?"):
    return service.call("POST", "/api/chat/send", json={"message": message})


def refused(answer, status, sentence):
    assert (answer.status_code, answer.json()) == (status, {"detail": sentence})


def nothing_is_half_stored(service):
    """Each photo has its two files, and there are no others."""
    total = service.get("/api/photos")["total"]
    assert len(list(service.data.glob("photos/*/*"))) == 2 * total
    assert list(service.data.glob("spool/*")) == []
    return total


# -------------------------------------------------------------------------------------------------- full disk


def test_on_a_full_disk_nothing_is_stored_in_part_reading_goes_on_and_writing_too_once_there_is_room(
    service, disk
):
    kept = service.upload(LARGE)["id"]
    service.wait_until_analysed()
    disk.fill()
    for answer in (
        upload(service, SMALL),
        upload(service, LARGE),
        upload(service, SMALL, LARGE, batch=True),
        say(service),
    ):
        refused(answer, 507, FULL)
    assert nothing_is_half_stored(service) == 1
    assert service.call("GET", f"/api/photos/{kept}/image").content == LARGE
    assert service.call("GET", f"/api/photos/{kept}/thumbnail").ok
    assert service.get("/api/search", q="library")["total"] == 1
    assert service.get("/api/chat/conversations")["conversations"] == []

    disk.empty()
    assert upload(service, SMALL).ok
    assert upload(service, SMALL, SMALL, batch=True).json()["uploaded"] == 2
    assert say(service).ok
    assert service.wait_until_analysed()["done"] == nothing_is_half_stored(service) == 4


@pytest.mark.slow
def test_wherever_the_disk_becomes_full_an_upload_is_whole_or_nothing(service, disk):
    """A page more each time, so that each write of an upload meets the end of the disk."""
    statuses = []
    for pages in range(24):
        disk.fill(leave=pages)
        for picture in (SMALL, draw(str(pages), size=(100, 100))):
            statuses.append(upload(service, picture).status_code)
        nothing_is_half_stored(service)
    disk.empty()
    assert set(statuses) == {200, 507}
    assert upload(service, LARGE).ok
    stats = service.wait_until_analysed()
    assert stats["done"] == nothing_is_half_stored(service) == statuses.count(200) + 1


@pytest.mark.slow
def test_of_a_batch_what_has_room_is_stored_and_the_rest_is_told(service, disk):
    for pages in (
        30,
        20,
        10,
        5,
        3,
        2,
        1,
        0,
    ):  # beside the two large ones, which are on the disk already when the first is stored
        disk.fill(leave=2 * (len(LARGE) // 4096 + 2) + pages)
        before = service.get("/api/photos")["total"]
        answer = upload(service, SMALL, LARGE, LARGE, batch=True)
        assert answer.status_code == 200, answer.text
        told = [result.get("error") for result in answer.json()["results"]]
        assert told.count(FULL) == 3 - answer.json()["uploaded"]
        assert nothing_is_half_stored(service) == before + answer.json()["uploaded"]
        if FULL in told:
            return
    pytest.fail("there was room for everything")


@pytest.mark.slow
def test_a_result_that_finds_no_room_waits_for_it_and_is_not_paid_for_twice(service, disk, fake_llm):
    answer = threading.Event()
    fake_llm.answer(after=answer)
    service.upload(SMALL)
    fake_llm.wait_for_requests(1)
    disk.fill()
    answer.set()
    eventually(
        lambda: "analysis-0 cannot work: The disk is full" in service.output, "the result finds no room"
    )
    assert service.get("/api/stats")["processing"] == 1

    disk.empty()
    service.upload(draw("the next one"))  # which wakes the queue
    assert service.wait_until_analysed()["done"] == 2
    assert len(fake_llm.requests) == 2
    assert [day["calls"] for day in service.get("/api/usage")["days"]] == [2]


@pytest.mark.slow
def test_a_service_starts_on_a_full_disk_and_shows_what_is_there(service, disk):
    service.upload(SMALL)
    service.wait_until_analysed()
    service.kill()
    disk.fill()
    service.start()
    disk.fill()  # what the start has given back
    assert service.get("/api/search", q="library")["total"] == 1
    assert service.call("GET", "/api/photos/1/image").content == SMALL
    refused(upload(service, SMALL), 507, FULL)
    disk.empty()
    assert upload(service, SMALL).ok


@pytest.mark.slow
@pytest.mark.parametrize("picture", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EDQUOT])
def test_a_write_that_finds_no_room_leaves_nothing_whichever_it_is(
    client, settings, monkeypatch, picture, problem
):
    write, left = write_all, [0]

    def writes(file, data):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(problem, os.strerror(problem))
        write(file, data)

    monkeypatch.setattr("disk._write_all", writes)
    allowed = 0
    while (answer := client.upload(picture)).status_code != 200:
        assert detail(answer, 507) == FULL
        assert [
            path
            for name in ("photos", "spool")
            for path in (settings.data_dir / name).rglob("*")
            if path.is_file()
        ] == []
        allowed += 1
        left[0] = allowed
    assert allowed >= 4


@pytest.mark.slow
def test_a_database_without_room_refuses_and_recovers(client, settings, fake_llm, remote, work_queue, clock):
    client.upload(SMALL)
    with database.scope():
        db.execute_sql("PRAGMA incremental_vacuum").fetchall()  # migrations leave free pages
        pages = db.execute_sql("PRAGMA page_count").fetchone()[0]
        db.execute_sql(f"PRAGMA max_page_count = {pages}")
    statuses = [client.upload(SMALL, "x" * 250).status_code for _ in range(60)]
    assert {200, 507} == set(statuses)
    assert len([path for path in (settings.data_dir / "photos").rglob("*") if path.is_file()]) == 2 * (
        1 + statuses.count(200)
    )
    with database.scope():
        db.execute_sql(f"PRAGMA max_page_count = {2 * pages}")
    assert client.upload(SMALL).status_code == 200


@pytest.mark.slow
def test_an_attachment_that_finds_no_room_leaves_nothing(client, settings):
    def send(number):
        form = {
            "file": (io.BytesIO(draw(str(number))), "attached.png"),
            "message": f"{number} " + "x" * 2_000,
        }
        return client.post("/api/chat/send-with-file", data=form).status_code

    assert send(0) == 200
    with database.scope():
        db.execute_sql("PRAGMA incremental_vacuum").fetchall()  # migrations leave free pages
        pages = db.execute_sql("PRAGMA page_count").fetchone()[0]
    statuses = []
    for more in range(7):
        with database.scope():
            db.execute_sql(f"PRAGMA max_page_count = {pages + more}")
        statuses.append(send(more + 1))
        with database.scope():
            named = {
                path
                for (path,) in Message.select(Message.attachment_path)
                .where(Message.attachment_path.is_null(False))
                .tuples()
            }
        there = {
            str(path.relative_to(settings.data_dir))
            for path in (settings.data_dir / "attachments").rglob("*")
            if path.is_file()
        }
        assert there == named
    assert 507 in statuses


def test_what_cannot_be_kept_is_not_read_for_memories(client, fake_llm, remote, monkeypatch):
    def full(*_, **__):
        raise models.peewee.OperationalError("database or disk is full")

    chat.send(remote, openings.UserMessage("My sister lives in Lyon."))
    asked = len(fake_llm.requests)
    with monkeypatch.context() as patched:
        patched.setattr(models, "store_value", full)
        for _ in range(3):
            with pytest.raises(models.peewee.OperationalError):
                recollection.read_for_memories(remote)
    assert len(fake_llm.requests) == asked
    fake_llm.answer({"memories": []})
    assert recollection.read_for_memories(remote)


def test_a_result_that_the_database_cannot_take_is_kept_for_the_next_turn(
    client, fake_llm, worker, clock, monkeypatch
):
    def full(*_, **__):
        raise models.peewee.OperationalError("database or disk is full")

    client.upload(SMALL)
    with monkeypatch.context() as patched:
        patched.setattr(results, "keep", full)
        for _ in range(3):
            with pytest.raises(models.peewee.OperationalError):
                worker.work()
        clock.move(hours=1)
        with database.scope():
            assert worker.recover(now=clock()) == 0
    assert not worker.work()
    assert client.get("/api/stats").json["done"] == len(fake_llm.requests) == 1
    assert client.get("/api/usage").json["days"][0]["calls"] == 1


# --------------------------------------------------------------------------------------------- read-only disk


@pytest.mark.slow
def test_on_a_disk_that_became_read_only_reading_goes_on_and_writing_is_refused(service, disk):
    service.upload(LARGE)
    service.wait_until_analysed()
    assert say(service, "library").ok
    disk.mount_read_only()
    # A worker that opens everything anew.
    [worker] = service.workers
    worker.kill()
    eventually(lambda: not alive(worker) and service.workers, "there is another worker")
    eventually(lambda: answers(service), "it answers")

    assert service.get("/api/photos")["total"] == service.get("/api/search", q="library")["total"] == 1
    assert service.call("GET", "/api/photos/1/image").content == LARGE
    assert service.call("GET", "/api/photos/1/thumbnail").ok
    assert len(service.get("/api/chat/conversations")["conversations"]) == 1
    for picture in (SMALL, LARGE):
        refused(upload(service, picture), 503, READ_ONLY)
    refused(say(service), 503, READ_ONLY)
    for method, path in (("DELETE", "/api/photos/1"), ("POST", "/api/analysis/1/reprocess")):
        answer = service.call(method, path)
        refused(answer, 503, READ_ONLY)
        assert answer.headers["Retry-After"]

    disk.unmount()
    assert upload(service, SMALL).ok
    assert say(service).ok
    assert service.wait_until_analysed()["done"] == nothing_is_half_stored(service) == 2


@pytest.mark.slow
def test_on_a_read_only_disk_the_start_is_refused_with_one_line(service, disk):
    service.upload(SMALL)
    service.kill()
    disk.mount_read_only()
    for program in (("gunicorn",), ("flask", "--app", "app", "keys", "show-api-key")):
        ended = service.run(*program)
        assert ended.returncode != 0
        [line] = (ended.stdout + ended.stderr).splitlines()
        assert "cannot be written: its disk is read-only" in line
    disk.unmount()
    service.start()
    assert service.get("/api/photos")["total"] == 1


def test_a_failing_disk_is_told_as_such():
    failure = database.known_failure(models.peewee.OperationalError("disk I/O error"))
    assert (failure.status, failure.detail) == (
        503,
        "The disk cannot be read or written: the log of the system has the reason.",
    )


def answers(service):
    try:
        return service.knock("GET", "/api/health").ok
    except OSError:  # the connection had gone to the worker that was killed
        return False


# ------------------------------------------------------------------------------------------- damaged pictures


def path_of(settings, photo_id, column=Photo.original_path):
    with database.scope():
        return settings.data_dir / Photo.select(column).where(Photo.id == photo_id).scalar()


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("place", [0, 0.5, 0.9999])
def test_a_damaged_picture_is_told_of_and_everything_else_works(
    client, settings, remote, fake_llm, work_queue, clock, place
):
    for picture in (LARGE, SMALL):
        client.upload(picture)
    flip(path_of(settings, 1), place)
    assert detail(client.get("/api/photos/1/image"), 500) == "A stored file is damaged."
    assert client.get("/api/photos/1/thumbnail").status_code == 200
    assert client.get("/api/photos/2/image").data == SMALL

    work_queue(remote, clock=clock)
    [sound, damaged] = client.get("/api/analysis").json["items"]
    assert (sound["status"], damaged["status"]) == ("done", "error")
    assert damaged["error_message"] in (
        "A stored file is damaged.",
        "file: the picture is damaged or cut off (DamagedFile)",
    )
    assert len(fake_llm.requests) == 1
    assert client.delete("/api/photos/1").status_code == 200


@pytest.mark.slow
def test_a_lost_picture_is_told_of(client, settings):
    client.upload(SMALL)
    path_of(settings, 1).unlink()
    assert (
        detail(client.get("/api/photos/1/image"), 500)
        == "A stored file cannot be opened: No such file or directory."
    )


def test_of_a_large_picture_nothing_damaged_is_sent_as_if_it_were_whole(client, settings):
    client.upload(HUGE)
    assert client.get("/api/photos/1/image").data == HUGE
    flip(path_of(settings, 1))
    with pytest.raises(
        DamagedFile
    ):  # in the middle of its answer, so that the server cuts the connection off
        client.get("/api/photos/1/image")
    assert client.get("/api/photos").json["total"] == 1


@pytest.mark.parametrize(
    "harm",
    [flip, lambda path: path.unlink(), lambda path: path.write_bytes(b"")],
    ids=["flipped", "lost", "emptied"],
)
def test_a_damaged_thumbnail_is_made_anew_when_it_is_asked_for(client, settings, harm):
    client.upload(LARGE)
    before = client.get("/api/photos/1/thumbnail").data
    harm(path_of(settings, 1, Photo.thumbnail_path))
    assert client.get("/api/photos/1/thumbnail").data == before
    assert pictures.recognised(io.BytesIO(before))
    assert len([path for path in (settings.data_dir / "photos").rglob("*") if path.is_file()]) == 2
    flip(path_of(settings, 1, Photo.thumbnail_path))
    flip(path_of(settings, 1))
    assert detail(client.get("/api/photos/1/thumbnail"), 500) == "The stored picture is damaged."


# ------------------------------------------------------------------------------------------- damaged database


def damage_table(name):
    """Flip a bit in the first page of a table, with no connection open; returns the database's path."""
    with database.scope():
        page = db.execute_sql("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        path = database.store().database
    database.close_connections()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 + 100] ^= 1
    path.write_bytes(content)
    return path


def test_a_damaged_page_costs_what_stands_on_it_and_no_more(client):
    client.upload(SMALL)
    client.post("/api/chat/send", json={"message": "Where is my train?"})
    damage_table("conversations")
    for _ in range(3):
        assert "run `./snaplore check`" in detail(client.get("/api/chat/conversations"), 500)
        assert client.get("/api/photos").json["total"] == 1
        assert client.get("/api/photos/1/image").data == SMALL
    assert client.upload(SMALL).status_code == 200


def test_a_damaged_index_is_told_of_by_the_search(client, remote, work_queue, clock):
    client.upload(SMALL)
    work_queue(remote, clock=clock)
    damage_table("photo_index_data")
    assert "run `./snaplore check`" in detail(client.get("/api/search?q=library"), 500)
    assert client.get("/api/photos").json["total"] == 1


@pytest.mark.slow
def test_a_service_on_a_damaged_page_starts_once_and_stays(client, settings, tmp_path, fake_llm):
    client.upload(SMALL)
    damage_table("analyses")
    with Service(tmp_path, **remote(fake_llm)) as service:
        [worker] = service.workers
        eventually(
            lambda: "analysis-0 cannot work: The database is damaged" in service.output, "the queue tells"
        )
        assert service.call("GET", "/api/photos/1/image").content == SMALL
        assert service.call("GET", "/api/photos/1").status_code == 500
        assert service.get("/api/skills")["skills"]
        assert service.workers == [worker]
        ended = service.run("flask", "--app", "app", "check")
        assert ended.returncode == 1
        assert "HMAC verification failed for page" in ended.stdout
        assert ended.stderr == ""


@pytest.mark.slow
def test_a_damaged_log_costs_what_came_last_and_the_rest_is_there(tmp_path, fake_llm):
    with Service(tmp_path, **remote(fake_llm)) as service:
        for number in range(6):
            service.upload(draw(str(number)), f"{number}.png")
        service.wait_until_analysed()
        service.kill()
        [log] = service.data.glob("database/*-wal")
        flip(log)
        service.start()
        names = [photo["filename"] for photo in service.photos()]
        assert names == [f"{number}.png" for number in reversed(range(len(names)))]
        for photo in service.photos():
            assert service.call("GET", f"/api/photos/{photo['id']}/image").ok
        service.upload(draw("after that"))
        service.wait_until_analysed()
        checked = service.run("flask", "--app", "app", "check")
        assert checked.returncode == 0, checked.stdout


# ------------------------------------------------------------------------------------------------------- keys


@pytest.mark.slow
def test_one_damaged_copy_of_the_key_ring_is_healed_at_the_start_which_is_logged(tmp_path):
    with Service(tmp_path, api_key="key") as service:
        service.upload(SMALL)
        service.kill()
        flip(service.data / "keys" / "ring.1")
        service.start()
        assert service.get("/api/photos")["total"] == 1
        assert service.output.count("replaced one copy of the key ring, which was missing") == 1
        assert len({path.read_bytes() for path in service.data.glob("keys/ring.*")}) == 1


# ------------------------------------------------------------------------------------------------------ clock


@pytest.mark.parametrize("ahead", [timedelta(hours=1), 365 * DAY], ids=["an hour", "a year"])
def test_what_was_queued_by_a_clock_that_was_ahead_is_analysed(
    client, remote, fake_llm, work_queue, worker, clock, ahead
):
    client.upload(SMALL)
    with database.scope():
        Analysis.update(due_at=clock() + ahead).execute()
    assert work_queue(remote, clock=clock) == 0
    with database.scope():
        worker.recover(now=clock())
    fake_llm.fail(503)
    assert work_queue(remote, clock=clock) == 1
    with database.scope():
        worker.recover(now=clock())
    assert work_queue(remote, clock=clock) == 0, "what has failed waits for its delay"
    clock.move(seconds=3)
    assert work_queue(remote, clock=clock) == 1
    assert client.get("/api/stats").json["done"] == 1


def test_a_delay_that_a_clock_ahead_has_given_ends(client, remote, fake_llm, work_queue, worker, clock):
    client.upload(SMALL)
    with database.scope():
        Analysis.update(due_at=clock() + 365 * DAY, attempts=1).execute()
        worker.recover(now=clock())
    assert work_queue(remote, clock=clock) == 1
    assert client.get("/api/stats").json["done"] == 1


def test_a_failure_that_a_clock_ahead_put_off_comes_back(client, remote, fake_llm, work_queue, worker, clock):
    for picture in (SMALL, LARGE):
        client.upload(picture)
    with database.scope():
        state = {"status": "error", "fault": "provider", "due_at": utc_now() + 365 * DAY}
        Analysis.update(**state).where(Analysis.photo == 1).execute()
        models.store_value(
            "analysis.circuit",
            Circuit(fingerprint=pool._fingerprint(configuration.current(remote)), failures=1),
        )
        worker.recover(now=clock())
    work_queue(remote, clock=clock)
    assert client.get("/api/stats").json["done"] == 2


def test_a_circuit_that_a_clock_ahead_has_opened_is_probed(
    client, remote, fake_llm, work_queue, worker, clock
):
    client.upload(SMALL)
    with database.scope():
        fingerprint = pool._fingerprint(configuration.current(remote))
        circuit = Circuit(
            fingerprint=fingerprint, failures=3, open=True, probe_at=utc_now() + 365 * DAY, pause=30.0
        )
        models.store_value("analysis.circuit", circuit)
    assert work_queue(remote, clock=clock) == 0
    with database.scope():
        worker.recover(now=clock())
    assert work_queue(remote, clock=clock) == 1
    assert client.get("/api/stats").json["done"] == 1


def test_a_clock_that_jumps_ahead_takes_no_work_away_from_who_is_at_it(client, worker, fake_llm, clock):
    def years_later(request):
        clock.move(days=2000)
        with database.scope():
            recovered.append(worker.recover(now=clock()))
        return FINDINGS

    recovered = []
    client.upload(SMALL)
    fake_llm.default = years_later
    assert worker.work()
    assert recovered == [0]
    assert client.get("/api/stats").json["done"] == len(fake_llm.requests) == 1


def test_who_came_in_the_last_minute_is_not_shut_out_by_a_clock_that_is_set_back(client, monkeypatch):
    def statuses(times):
        return {client.post("/api/chat/send", json={"message": ""}).status_code for _ in range(times)}

    assert statuses(10) == {400}
    assert statuses(1) == {429}
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    assert statuses(10) == {400}
    assert statuses(1) == {429}
    monkeypatch.setattr(time, "time", lambda: real())
    assert statuses(10) == {400}


@pytest.mark.slow
def test_jobs_that_go_by_age_do_nothing_when_the_clock_has_jumped_and_make_up_for_it_when_it_stays(
    client, cli, monkeypatch
):
    def run(job, now):
        monkeypatch.setattr("jobs.utc_now", lambda: now)
        database.close_connections()
        ended = cli.invoke(args=["jobs", job])
        assert ended.exit_code == 0, ended.output
        return ended.output

    now = utc_now()
    client.upload(SMALL)
    with database.scope():
        Memory.create(content="Is allergic to nuts", memory_type="long_term", importance=1.0, created_at=now)
    years_ahead = now + 2000 * DAY
    jumped = (
        "skipped, because the last run was more than 7 days ago; "
        "if the clock is right, the next run does the work"
    )
    for job in ("cleanup", "decay"):
        run(job, now + DAY)
        assert f"{job}: skipped, because the clock is 1999 days ahead" in run(job, years_ahead)
        run(job, now + 2 * DAY)  # the network has set it right
        assert run(job, now + 9 * DAY + timedelta(hours=1)) == f"{job}: {jumped}\n"
        run(job, now + 9 * DAY + timedelta(hours=2))  # it really was off for a week
    assert client.get("/api/photos").json["total"] == 1
    with database.scope():
        assert Memory.get().importance == pytest.approx(0.98**9)

    assert run("cleanup", now + 41 * DAY) == f"cleanup: {jumped}\n"
    assert run("cleanup", now + 42 * DAY).startswith("cleanup: 1 photos, ")


def test_spending_and_lists_take_a_clock_that_was_set_back(client, worker, fake_llm, clock):
    client.upload(SMALL)
    assert worker.work()
    clock.move(days=-366)
    client.upload(draw("another"))
    with database.scope():
        Analysis.update(due_at=clock()).where(Analysis.photo == 2).execute()
        Photo.update(created_at=clock(), original_timestamp=clock()).where(Photo.id == 2).execute()
    assert worker.work()
    assert [item["id"] for item in client.get("/api/photos").json["items"]] == [2, 1]
    assert client.get("/api/search?q=library").json["total"] == 2
    assert sum(day["calls"] for day in client.get("/api/usage?days=400").json["days"]) == 2


# ----------------------------------------------------------------------------------------------- two services


@pytest.mark.slow
def test_a_second_service_on_the_same_folder_is_refused_with_one_line_and_the_first_goes_on(tmp_path):
    with Service(tmp_path, api_key="key") as service:
        second = service.run("gunicorn")
        assert second.returncode not in (0, None)
        lines = [line for line in (second.stdout + second.stderr).splitlines() if NAME in line]
        assert lines == [
            f"{NAME} cannot start: A {NAME} service is running on {service.data}. Stop it first."
        ]
        assert "Traceback" not in second.stdout + second.stderr
        service.upload(SMALL)

        service.kill()
        service.start()
        assert service.get("/api/photos")["total"] == 1

        workers = service.workers
        service.master.kill()
        eventually(lambda: not any(map(alive, workers)), "its worker notices, and ends")
        service.wait()
        service.start()
        assert service.stop() == 0
        assert re.search(r"cannot start", service.output) is None
