"""Watched folders: what is stored from them, once, and what is not."""

import dataclasses
import os
import random
import re
import shutil
import time

import pytest

import database
from app import create_app
from errors import StartRefused
from settings import ROOT, Settings
from tests.support.beginning import begin
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.service import Service, eventually
from upkeep import importing, watching

HASTY = "\nfrom upkeep import watching\nwatching.EVERY = 0.2\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "Screenshots"
    folder.mkdir()
    return folder


@pytest.fixture
def watched(settings, folder):
    """The test client of a service that watches `folder`."""
    begin(settings)
    yield Client(create_app(dataclasses.replace(settings, watch=(("My phone", folder),))))
    database.close_store()


@pytest.fixture
def watcher(watched):
    return watching.Watcher(watched.app.settings)


def put(folder, name, text="some words", **options):
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(draw(text=text, **options))
    return place


def listed(client):
    return client.get("/api/photos", query_string={"page_size": 100}).json["items"]


def overview(client):
    (found,) = client.get("/api/watch").json["folders"]
    return found


def test_a_file_is_stored_when_it_was_seen_unchanged_twice(watched, watcher, folder):
    put(folder, "one.png")
    put(folder, "2026/deep/two.png", text="other words")

    assert watcher.look() == 0
    assert watcher.look() == 2
    assert watcher.look() == 0
    photos = listed(watched)
    assert {photo["filename"] for photo in photos} == {"one.png", "two.png"}
    assert {(photo["device_name"], photo["device_id"]) for photo in photos} == {("My phone", "My_phone")}
    assert (folder / "one.png").exists()


def test_a_file_that_still_grows_waits(watched, watcher, folder):
    content = draw(text="grows")
    (folder / "slow.png").write_bytes(content[:100])
    for end in (200, 400):
        assert watcher.look() == 0
        (folder / "slow.png").write_bytes(content[:end])
    (folder / "slow.png").write_bytes(content)
    assert watcher.look() == 0
    assert watcher.look() == 1
    assert overview(watched)["failures"] == []


def test_hidden_unfinished_and_foreign_files_are_left_alone(watched, watcher, folder):
    for name in (
        ".hidden.png",
        ".stversions/old.png",
        "~syncthing~new.png",
        "a.png.part",
        "b.crdownload",
        "c.PNG.TMP",
    ):
        put(folder, name, text=name)
    (folder / "notes.txt").write_text("no picture")
    os.mkfifo(folder / "pipe.png")
    os.symlink(put(folder.parent, "outside.png"), folder / "link.png")

    assert [watcher.look() for _ in range(3)] == [0, 0, 0]
    assert overview(watched) == {
        "folder": str(folder),
        "device_name": "My phone",
        "device_id": "My_phone",
        "present": True,
        "stored": 0,
        "failures": [],
    }


def test_a_moved_renamed_or_deleted_screenshot_does_not_come_back(watched, watcher, folder, settings):
    put(folder, "one.png")
    watcher.look(), watcher.look()
    (photo,) = listed(watched)
    watched.delete(f"/api/photos/{photo['id']}")

    (folder / "one.png").rename(folder / "renamed.png")
    later = watching.Watcher(watched.app.settings)  # as after a restart
    assert [later.look() for _ in range(3)] == [0, 0, 0]
    shutil.copy(folder / "renamed.png", folder / "copy.png")
    assert [watcher.look() for _ in range(3)] == [0, 0, 0]
    assert listed(watched) == []


def test_a_file_with_new_content_is_stored_again(watched, watcher, folder):
    put(folder, "latest.png", text="first")
    watcher.look(), watcher.look()
    put(folder, "latest.png", text="second, with more words")
    watcher.look()

    assert watcher.look() == 1
    assert len(listed(watched)) == 2


def test_a_file_that_cannot_be_stored_is_listed_and_tried_again_when_it_changes(watched, watcher, folder):
    (folder / "broken.png").write_bytes(draw(text="broken")[:-200])
    watcher.look(), watcher.look(), watcher.look()

    (failure,) = overview(watched)["failures"]
    assert failure["name"].endswith("broken.png")
    assert failure["problem"]
    put(folder, "broken.png", text="whole now")
    watcher.look()
    assert watcher.look() == 1
    assert overview(watched)["stored"] == 1


@pytest.mark.slow
def test_a_file_that_could_not_be_read_is_listed_once_and_stored_when_it_can_be(
    watched, watcher, folder, monkeypatch
):
    put(folder, "locked.png")
    watcher.look()
    with monkeypatch.context() as locked:

        def refuse(_file):
            raise PermissionError(13, "Permission denied")

        locked.setattr(importing, "receive", refuse)
        watcher.look()
        (failure,) = overview(watched)["failures"]
        watcher.look()
        assert overview(watched)["failures"] == [failure]  # and not written anew each time
    later = watching.Watcher(watched.app.settings)  # as after a restart
    assert [later.look(), later.look()] == [0, 1]
    assert watcher.look() == 0
    assert overview(watched)["failures"] == []


def test_a_sub_folder_that_cannot_be_listed_is_named_until_it_can_be(watched, watcher, folder, monkeypatch):
    put(folder, "locked/one.png")
    put(folder, "open/two.png", text="two")
    listed_before = importing._listed

    def refuse(opened):
        if os.path.samestat(os.fstat(opened), os.stat(folder / "locked")):
            raise PermissionError(13, "Permission denied")
        return listed_before(opened)

    with monkeypatch.context() as locked:
        locked.setattr(importing, "_listed", refuse)
        assert [watcher.look(), watcher.look()] == [0, 1]
        (failure,) = overview(watched)["failures"]
        assert failure["name"].endswith("locked")
        assert failure["problem"] == "Permission denied"
        watcher.look()
        assert overview(watched)["failures"] == [failure]  # and not written anew each time
    later = watching.Watcher(watched.app.settings)  # as after a restart
    assert [later.look(), later.look()] == [0, 1]
    assert overview(watched)["failures"] == []


def test_a_folder_that_vanishes_is_reported_once_and_read_again_when_it_is_back(
    watched, watcher, folder, caplog
):
    caplog.set_level("INFO")
    put(folder, "one.png")
    watcher.look(), watcher.look()
    folder.rename(folder.parent / "away")
    watcher.look(), watcher.look(), watcher.look()
    assert caplog.text.count("is not there") == 1
    assert overview(watched)["present"] is False

    (folder.parent / "away").rename(folder)
    put(folder, "two.png", text="after")
    assert [watcher.look(), watcher.look()] == [0, 1]
    assert "is there again" in caplog.text


def test_a_full_disk_loses_nothing(watched, watcher, folder, monkeypatch):
    from errors import StorageFull

    def full(*_):
        raise StorageFull("full")

    put(folder, "one.png")
    watcher.look()
    with monkeypatch.context() as broken:
        broken.setattr(importing, "store", full)
        with pytest.raises(StorageFull):
            watcher.look()
    assert [watcher.look(), watcher.look()].count(1) == 1


def test_deleting_everything_forgets_the_names_of_failed_files_and_stores_nothing_again(
    watched, watcher, folder
):
    put(folder, "fine.png")
    (folder / "secret name.png").write_bytes(draw(text="broken")[:-200])
    watcher.look(), watcher.look()
    assert len(overview(watched)["failures"]) == 1
    assert watched.post("/api/data/clear", json={"confirm": "delete everything"}).json["photos"] == 1

    assert overview(watched)["failures"] == []
    with database.scope():
        assert "secret" not in repr(database.db.execute_sql("SELECT * FROM watched_files").fetchall())
    later = watching.Watcher(watched.app.settings)
    assert [later.look() for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("value", ["=/tmp", "Phone=", "Phone=/a, Tablet=/a", "x" * 101 + "=/a"])
def test_a_setting_that_names_no_folder_stops_the_start(value):
    with pytest.raises(StartRefused, match="SNAPLORE_WATCH: must list"):
        Settings.from_environ({"SNAPLORE_WATCH": value})


@pytest.mark.parametrize("place", [".", "photos", "../link"])
def test_the_data_folder_and_what_is_in_it_is_not_watched(tmp_path, place):
    """Reading it would stop the reading of the other folders, too."""
    data = tmp_path / "data"
    (data / "photos").mkdir(parents=True)
    (tmp_path / "link").symlink_to(data)
    with pytest.raises(StartRefused, match=r"SNAPLORE_WATCH: .* is inside the data folder"):
        Settings.from_environ(
            {"SNAPLORE_DATA_DIR": str(data), "SNAPLORE_WATCH": f"{tmp_path}, {data}/{place}"}
        )


def test_folders_may_have_names(tmp_path):
    settings = Settings.from_environ(
        {"SNAPLORE_WATCH": f"{tmp_path}/Bilder, 手机={tmp_path}/b, A b={tmp_path}/c"}
    )

    named = [(one.folder.name, one.device_name, one.device_id) for one in watching.folders(settings)]
    assert named[0] == ("Bilder", "Bilder", "Bilder")
    assert named[2] == ("c", "A b", "A_b")
    assert named[1][1] == "手机"
    assert re.fullmatch(r"watched_[0-9a-f]{8}", named[1][2])


def hasty(folder):
    configuration = folder / "hasty.py"
    configuration.write_text((ROOT / "gunicorn.conf.py").read_text() + HASTY)
    return ("-c", str(configuration))


@pytest.mark.slow
def test_the_service_watches_by_itself_with_two_workers(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    with Service(tmp_path, *hasty(tmp_path), "-w", "2", watch=str(folder)) as service:
        for number in range(20):
            put(folder, f"{number}.png", text=f"number {number}")
        eventually(lambda: service.get("/api/stats")["total_photos"] == 20, "all are stored")
        time.sleep(1)
        assert service.get("/api/stats")["total_photos"] == 20
        assert service.get("/api/watch")["folders"][0]["stored"] == 20


@pytest.mark.slow
def test_ten_thousand_files_are_each_stored_once_although_the_service_is_killed(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    content = draw(text="the same", size=(60, 40))
    chance = random.Random(1)
    with Service(tmp_path, *hasty(tmp_path), watch=str(folder), analysis_workers="1") as service:
        kills = sorted(chance.sample(range(1_000, 9_000), 2))
        for number in range(10_000):
            place = folder / f"{number % 50}" / f"{number}.png"
            place.parent.mkdir(exist_ok=True)
            # A trailing number makes each its own picture: decoders ignore what follows the end of a PNG.
            place.write_bytes(content + number.to_bytes(4, "big"))
            if number in kills:
                service.kill()
                service.start()
        deadline = time.monotonic() + 600
        while service.get("/api/stats")["total_photos"] < 10_000:
            assert time.monotonic() < deadline
            time.sleep(1)
        assert service.get("/api/stats")["total_photos"] == 10_000
        assert service.get("/api/watch")["folders"][0]["failures"] == []
