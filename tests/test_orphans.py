"""Files without a row: what is deleted, what is set aside and comes back, when a run stops instead; and that
a clock that is ahead, or a key ring that was put back, deletes nothing.
"""

import os
import pathlib
from datetime import timedelta

import pytest

import database
import photos
from clock import utc_now
from errors import Conflict
from models import Discarded, Photo
from tests.support.drawing import draw
from tests.test_rollback import start
from upkeep import cleanup, orphans, resealing, rotation
from upkeep.progress import silent

DAY = timedelta(days=1)


def stored(settings, folder="photos"):
    return {path for path in (settings.data_dir / folder).rglob("*") if path.is_file()}


def make_old(paths, *, now):
    for path in paths:
        os.utime(path, ((now - 2 * DAY).timestamp(),) * 2)


def lose_rows(*ids):
    """Lose rows as an older database has lost them: it does not know that these files ever had any."""
    with database.scope():
        Photo.delete().where(Photo.id.in_(ids)).execute()
        Discarded.delete().execute()


@pytest.fixture
def library(client, settings):
    ids = [client.upload(draw(str(number))).json["id"] for number in range(4)]
    make_old(stored(settings), now=utc_now())
    return ids


def test_orphans_wait_for_30_days_and_are_deleted_then(client, settings, library):
    now, before = utc_now(), stored(settings)
    contents = {path.name: path.read_bytes() for path in before}
    lose_rows(library[0])
    assert cleanup.clean(settings, now=now, dry_run=True).aside == 2
    assert stored(settings) == before

    cleaned = cleanup.clean(settings, now=now)
    assert (cleaned.aside, cleaned.orphans, cleaned.bytes) == (2, 0, 0)
    aside = stored(settings, f"orphans/{now.date().isoformat()}/photos")
    assert {path.name for path in aside} == {path.name for path in before - stored(settings)}
    assert all(path.read_bytes() == contents[path.name] for path in aside), "sealed as they were"
    assert cleanup.clean(settings, now=now + 29 * DAY).orphans == 0
    assert stored(settings, "orphans") == aside
    last = cleanup.clean(settings, now=now + 32 * DAY, dry_run=True).orphans
    assert last == cleanup.clean(settings, now=now + 32 * DAY).orphans == 2
    assert stored(settings, "orphans") == set()


@pytest.mark.parametrize("how", ["clean-up", "check"])
def test_what_was_set_aside_comes_back_when_a_row_asks_for_it(client, cli, settings, library, how):
    picture = client.get(f"/api/photos/{library[0]}/image").data
    with database.scope():
        [row] = Photo.select().where(Photo.id == library[0]).dicts()
    lose_rows(library[0])
    assert cleanup.clean(settings, now=utc_now()).aside == 2
    with database.scope():
        Photo.insert(**row).execute()  # the right database is back
    assert client.get(f"/api/photos/{library[0]}/image").status_code == 500

    if how == "clean-up":
        assert cleanup.clean(settings, now=utc_now() + 3 * DAY).back == 2
    else:
        database.close_connections()
        found = cli.invoke(args=["check"])
        assert "files set aside: 2 wrong: photos/" in found.output
        repaired = cli.invoke(args=["check", "--repair"]).output
        assert "files set aside: 2 wrong, 2 repaired: " in repaired
        assert "originals: OK\nthumbnails: OK" in repaired
    assert client.get(f"/api/photos/{library[0]}/image").data == picture
    assert cleanup.clean(settings, now=utc_now() + 4 * DAY).back == 0


@pytest.mark.slow
def test_a_run_that_would_set_aside_a_tenth_of_all_files_deletes_nothing_until_it_is_told_to(
    client, cli, settings
):
    ids = [client.upload(draw(str(number))).json["id"] for number in range(60)]
    make_old(stored(settings), now=utc_now())
    now, before = utc_now() + 31 * DAY, stored(settings)
    lose_rows(*ids[:11])  # 22 of 120 files

    with pytest.raises(Conflict, match=r"22 of 120 stored files belong to no row.*--many-orphans`\."):
        cleanup.clean(settings, now=now)
    assert stored(settings) == before
    database.close_connections()
    refused = cli.invoke(args=["jobs", "cleanup"])
    assert refused.exit_code == 1
    assert "cleanup: 22 of 120 stored files belong to no row, as if" in refused.output
    repaired = cli.invoke(args=["check", "--repair"])
    assert repaired.exit_code == 1
    assert "files: 22 wrong: photos/" in repaired.output
    assert stored(settings) == before
    told = cli.invoke(args=["jobs", "cleanup", "--many-orphans"])
    assert "; 22 files without a row were set aside" in told.output
    assert len(stored(settings)) == 98

    lose_rows(*ids[11:15])  # 8 of 98, which is less than a tenth
    assert cleanup.clean(settings, now=utc_now() + DAY).aside == 8


def test_the_files_of_a_killed_deletion_are_deleted_however_many_they_are(
    client, settings, library, monkeypatch
):
    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(orphans, "FEW", 0)
    with monkeypatch.context() as patched:
        patched.setattr(pathlib.Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt), database.scope():
            photos.delete_all(library[:3])
    assert len(stored(settings)) == 8
    cleaned = cleanup.clean(settings, now=utc_now())
    assert (cleaned.orphans, cleaned.aside) == (6, 0)
    assert len(stored(settings)) == 2
    with database.scope():
        assert not Discarded.select().exists()


def test_after_a_killed_resealing_clean_up_goes_on_by_itself(client, settings, library, monkeypatch):
    monkeypatch.setattr(orphans, "FEW", 0)

    def killed(*_, **__):
        raise KeyboardInterrupt

    rotation.rotate(silent, now=utc_now())
    with monkeypatch.context() as patched:
        patched.setattr(resealing, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            resealing.seal_anew(silent)
    assert len(stored(settings)) == 16, "each file is there twice"
    cleaned = cleanup.clean(settings, now=utc_now())
    assert (cleaned.orphans, cleaned.aside) == (8, 0)
    assert all(client.get(f"/api/photos/{number}/image").status_code == 200 for number in library)
    assert resealing.seal_anew(silent).done == 0


# ----------------------------------------------------------------------------------------------- the clock


@pytest.fixture
def run(cli, monkeypatch):
    def run(job, now):
        monkeypatch.setattr("jobs.utc_now", lambda: now)
        database.close_connections()
        ended = cli.invoke(args=["jobs", job])
        assert ended.exit_code == 0, ended.output
        return ended.output

    return run


def test_a_clock_that_is_far_ahead_deletes_nothing_until_a_second_run_a_day_later(client, library, run):
    ahead = utc_now() + 3_650 * DAY
    assert "cleanup: skipped, because the clock is 3650 days ahead of everything stored" in run(
        "cleanup", ahead
    )
    assert "skipped" in run("cleanup", ahead + timedelta(hours=1))
    client.upload(draw("dated by the same clock"))
    with database.scope():
        Photo.update(created_at=ahead).where(Photo.id == 5).execute()
    assert "skipped" in run("cleanup", ahead + timedelta(hours=23))
    assert client.get("/api/photos").json["total"] == 5
    assert "cleanup: 4 photos" in run("cleanup", ahead + timedelta(hours=25))


def test_a_clock_that_is_far_ahead_twice_is_doubted_twice(client, library, run):
    now = utc_now()
    assert "skipped" in run("cleanup", now + 400 * DAY)
    run("cleanup", now + DAY)  # the network has set it right
    assert "skipped" in run("cleanup", now + 402 * DAY)
    assert "skipped" in run("cleanup", now + 4_000 * DAY)
    assert client.get("/api/photos").json["total"] == 4


def test_a_library_that_was_off_for_less_than_45_days_is_cleaned_at_once(client, library, run):
    assert "cleanup: 4 photos" in run("cleanup", utc_now() + 44 * DAY)


def test_while_the_key_ring_is_an_earlier_one_no_job_removes_anything(client, cli, settings, library):
    database.close_store()
    start(settings)
    earlier = {path: path.read_bytes() for path in settings.data_dir.glob("keys/ring.*")}
    start(settings)
    start(settings)
    for path, content in earlier.items():
        path.write_bytes(content)
    before = stored(settings, "")
    start(settings)
    for job in ("cleanup", "decay", "move-originals"):
        refused = cli.invoke(args=["jobs", job])
        assert refused.exit_code == 1
        assert f"{job}: nothing is removed, because the key ring was put back" in refused.output
    assert {path for path in before if "photos" in path.parts} == stored(settings)
    assert cli.invoke(args=["check", "--repair"]).exit_code == 0
    assert cli.invoke(args=["jobs", "cleanup"]).exit_code == 0
