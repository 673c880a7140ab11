"""Originals in a bucket: moved, fetched, verified, deleted; and a bucket that is away costs only them."""

import dataclasses
import io
import threading
import zipfile
from datetime import timedelta

import pytest

import database
import photos
from app import create_app
from buckets import away, s3
from clock import utc_now
from errors import Unreadable
from models import Analysis, ForgottenOriginal, Photo
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.fake_s3 import FakeS3
from upkeep import backup, check, cleanup, findings, moving, offsite, resealing, restore, rotation, verifying
from upkeep.progress import silent


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(s3, "PAUSES", (0.0,))
    monkeypatch.setattr(away, "PATIENCE", 30.0)
    with FakeS3() as fake:
        yield fake


@pytest.fixture
def settings(tmp_path, store):
    return store.settings(data_dir=tmp_path / "data", originals="s3://snaps/originals")


PICTURE = draw("a boarding pass", size=(90, 160))


def uploaded(client, *names):
    """Photos of half a year ago, analysed and read."""
    ids = [
        client.upload(draw(name, size=(90, 160)), f"{name}.png", device_id="phone").json["id"]
        for name in names
    ]
    with database.scope():
        Photo.update(created_at=utc_now() - timedelta(days=180)).execute()
        Analysis.update(status="done", reads_left=0).execute()
    return ids


def moved(settings):
    return moving.move(settings, silent, now=utc_now())


def row(photo_id):
    with database.scope():
        return Photo.get_by_id(photo_id)


def here(settings, photo_id):
    return settings.data_dir / row(photo_id).original_path


def problems(settings, **orders):
    database.close_store()
    return [
        str(kind)
        for kind in check.check(settings, findings.Orders(utc_now(), **orders))
        if kind.wrong and kind.name != "age"
    ]


def test_an_old_original_goes_to_the_bucket_and_is_served_from_there(settings, store, client):
    (old,) = uploaded(client, "old")
    new = client.upload(PICTURE, "new.png", device_id="phone").json["id"]
    before = client.get(f"/api/photos/{old}/image").data
    sealed = here(settings, old).read_bytes()
    result = moved(settings)
    assert (result.done, result.bytes, result.left) == (1, len(sealed), 0)
    assert not here(settings, old).exists()
    assert here(settings, new).exists()
    assert store.objects == {f"originals/{row(old).original_path}": sealed}
    amounts = client.get("/api/data/stats").json
    assert (amounts["away_photos"], amounts["storage_away_bytes"]) == (1, len(sealed))
    assert client.get(f"/api/photos/{old}/image").data == before
    store.calls.clear()
    assert client.get(f"/api/photos/{old}/image").data == before  # from the fetched copy
    assert client.get(f"/api/photos/{old}/thumbnail").status_code == 200
    assert store.calls == []
    assert problems(settings) == []


def test_a_bucket_that_is_away_costs_only_the_originals_that_are_there(settings, store, client):
    old, lost = uploaded(client, "old", "other")
    moved(settings)
    new = client.upload(PICTURE, "new.png", device_id="phone").json["id"]
    store.fail(calls=1_000)
    answer = client.get(f"/api/photos/{old}/image")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
    assert "in the bucket, which is not available now" in answer.json["detail"]
    asked = len(store.calls)
    assert client.get(f"/api/photos/{lost}/image").status_code == 503
    assert len(store.calls) == asked  # nobody waits for it again
    assert client.get(f"/api/photos/{new}/image").status_code == 200
    assert client.get(f"/api/photos/{old}").status_code == 200
    assert client.get(f"/api/photos/{old}/thumbnail").status_code == 200
    exported = client.post("/api/photos/export", json={"ids": [old, new]}).data
    assert sorted(zipfile.ZipFile(io.BytesIO(exported)).namelist()) == ["left-out.json", "new.png"]
    assert client.delete(f"/api/photos/{old}").status_code == 200
    assert "SlowDown" in problems(settings)[0]


def test_nobody_waits_long_for_a_slow_bucket(settings, store, client, monkeypatch):
    (old,) = uploaded(client, "old")
    moved(settings)
    monkeypatch.setattr(away, "PATIENCE", 0.05)
    going_on = threading.Event()
    store.before = lambda handler, key: not going_on.wait(30)
    answer = client.get(f"/api/photos/{old}/image")
    assert answer.status_code == 503
    assert "being fetched" in answer.json["detail"]
    going_on.set()
    monkeypatch.setattr(away, "PATIENCE", 30.0)
    assert client.get(f"/api/photos/{old}/image").status_code == 200
    assert store.calls.count(f"GET originals/{row(old).original_path}") == 2  # verified once, fetched once


def test_a_deleted_photo_goes_from_the_bucket_too(settings, store, client):
    old, other = uploaded(client, "old", "other")
    moved(settings)
    client.get(f"/api/photos/{old}/image")
    path = row(old).original_path
    client.delete(f"/api/photos/{old}")
    assert not list((settings.data_dir / away.FOLDER).iterdir())
    assert moved(settings).deleted == 1
    assert list(store.objects) == [f"originals/{row(other).original_path}"]
    with database.scope():
        assert ForgottenOriginal.select().count() == 0
        assert photos.sizes().away == 1
    assert path not in str(store.objects)


def test_what_the_bucket_has_changed_is_not_served(settings, store, client):
    (old,) = uploaded(client, "old")
    moved(settings)
    (key,) = store.objects
    store.objects[key] = store.objects[key][:-1] + b"x"
    assert client.get(f"/api/photos/{old}/image").status_code == 500
    store.objects[key] += b"longer"
    assert "is damaged" in problems(settings)[0]
    del store.objects[key]
    assert "is lost" in problems(settings)[0]


def test_nothing_is_forgotten_here_that_does_not_come_back_from_the_bucket(settings, store, client):
    (old,) = uploaded(client, "old")

    def garble(handler, key):
        if handler.command == "GET" and key in store.objects:
            handler.respond(200, store.objects[key][::-1])
            return True
        return False

    store.before = garble
    with pytest.raises(s3.BucketAway, match="not what was written"):
        moved(settings)
    assert here(settings, old).exists()
    assert client.get(f"/api/photos/{old}/image").status_code == 200
    store.before = None
    assert moved(settings).done == 1


def test_originals_come_back_for_good(settings, store, client):
    ids = uploaded(client, "old", "other")
    moved(settings)
    result = moving.bring_back(settings, silent)
    assert result.done == 2
    assert all(here(settings, photo_id).exists() for photo_id in ids)
    with database.scope():
        assert photos.sizes() == (photos.sizes().here, 0, 0)
    assert store.objects == {}
    assert problems(settings) == []


@pytest.mark.slow
def test_sealing_anew_keeps_the_original_in_the_bucket(settings, store, client):
    (old,) = uploaded(client, "old")
    before = client.get(f"/api/photos/{old}/image").data
    moved(settings)
    path = row(old).original_path
    rotation.rotate(silent, now=utc_now())
    assert resealing.seal_anew(silent) == resealing.SealedAnew(done=1)
    changed = row(old)
    assert (changed.away, changed.original_path == path) == (away.AWAY, False)
    assert not here(settings, old).exists()
    assert client.get(f"/api/photos/{old}/image").data == before
    assert moved(settings).deleted == 1
    assert list(store.objects) == [f"originals/{changed.original_path}"]
    assert problems(settings) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "bucket"])
def test_a_backup_has_the_originals_of_the_bucket(tmp_path, settings, store, client, kind):
    (old,) = uploaded(client, "old")
    before = client.get(f"/api/photos/{old}/image").data
    moved(settings)
    key = settings.data_dir / "keys" / "master.key"
    if kind == "file":
        assert backup.make(tmp_path / "backup.tar", silent, now=utc_now()).unreadable == []
        source = tmp_path / "backup.tar"
    else:
        bucket = s3.Bucket("s3://snaps/backups", settings)
        made = offsite.make(bucket, silent, now=utc_now(), keep=offsite.Keep())
        assert made.unreadable == []
        source = verifying.Snapshot(bucket, made.name)
    database.close_store()
    for name in store.named("originals/"):
        del store.objects[name]
    elsewhere = dataclasses.replace(settings, data_dir=tmp_path / "new", originals=None)
    assert restore.restore(elsewhere, source, silent, now=utc_now(), master_key_file=key).photos == 1
    client = Client(create_app(elsewhere))
    assert client.get(f"/api/photos/{old}/image").data == before
    assert client.get("/api/data/stats").json["away_photos"] == 0
    assert problems(elsewhere) == []


@pytest.mark.slow
def test_a_restore_leaves_in_the_bucket_what_is_there(tmp_path, settings, store, client):
    old, other, new = uploaded(client, "old", "other", "new")
    with database.scope():
        Photo.update(created_at=utc_now()).where(Photo.id == new).execute()
    before = [client.get(f"/api/photos/{number}/image").data for number in (old, other, new)]
    bucket = s3.Bucket("s3://snaps/backups", settings)
    offsite.make(bucket, silent, now=utc_now(), keep=offsite.Keep())  # when all of them were here
    moved(settings)
    paths = [row(number).original_path for number in (old, other, new)]
    key = settings.data_dir / "keys" / "master.key"
    database.close_store()
    del store.objects[f"originals/{paths[1]}"]
    elsewhere = dataclasses.replace(settings, data_dir=tmp_path / "new")
    source = verifying.Snapshot(bucket, offsite.chosen(bucket, None))
    restore.restore(elsewhere, source, silent, now=utc_now(), master_key_file=key)
    assert [(elsewhere.data_dir / path).exists() for path in paths] == [False, True, True]
    client = Client(create_app(elsewhere))
    assert client.get("/api/data/stats").json["away_photos"] == 1
    assert [client.get(f"/api/photos/{number}/image").data for number in (old, other, new)] == before
    assert problems(elsewhere) == []
    store.objects[f"originals/{paths[0]}"] += b"x"
    with pytest.raises(Unreadable, match="is not the one of this backup"):
        restore.restore(elsewhere, source, silent, now=utc_now(), master_key_file=key)


@pytest.mark.slow
def test_an_analysis_fetches_an_original_and_clean_up_deletes_objects(settings, store, client, work_queue):
    (old,) = uploaded(client, "old")
    moved(settings)
    client.post(f"/api/analysis/{old}/reprocess")
    work_queue(settings)
    assert client.get(f"/api/photos/{old}").json["analysis"]["status"] == "done"
    cleanup.clear(now=utc_now())
    assert moved(settings).deleted == 1
    assert store.objects == {}
