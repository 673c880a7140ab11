"""Buckets and backups in them: against a strict fake store over real sockets; with `S3_STORE` set, against a
real one.
"""

import hashlib
import io
import time
from datetime import timedelta

import pytest

import database
import photos
from buckets import s3
from clock import utc_now
from errors import NotFound, StartRefused, Unreadable
from settings import Settings
from tests.support.fake_s3 import FakeS3
from tests.test_backup import contents, listing, live
from upkeep import offsite, restore, verifying
from upkeep.progress import silent

KEEP_ALL = offsite.Keep()


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(s3, "PAUSES", (0.0,))
    with FakeS3() as fake:
        yield fake


@pytest.fixture
def bucket(store):
    bucket = s3.Bucket("s3://snaps/pi", store.settings())
    yield bucket
    bucket.close()


def kept_in(folder, store, *names, **others):
    settings = store.settings(data_dir=folder, **others)
    live(settings, *names)
    return settings


def backed_up(settings, bucket, *, keep=KEEP_ALL, now=None):
    database.open_store(settings)
    try:
        return offsite.make(bucket, silent, now=now or utc_now(), keep=keep)
    finally:
        database.close_store()


def restored(settings, bucket, name=None, **options):
    source = verifying.Snapshot(bucket, offsite.chosen(bucket, name))
    return restore.restore(settings, source, silent, now=utc_now(), **options)


# ------------------------------------------------------------------------------------------------- the bucket


def test_objects_are_written_listed_read_and_deleted(store, bucket):
    store.page = 2
    for number in range(5):
        bucket.put(f"photos/ab/{number}", b"x" * number)
    assert [(item.name, item.size) for item in bucket.listed("photos/")] == [
        (f"photos/ab/{number}", number) for number in range(5)
    ]
    assert bucket.digest("photos/ab/3", most=10) == hashlib.sha256(b"xxx").hexdigest()
    assert bucket.size("photos/ab/3") == 3
    assert bucket.size("photos/ab/9") is None
    bucket.delete("photos/ab/3")
    bucket.delete("photos/ab/3")
    with pytest.raises(s3.ObjectLost):
        bucket.get("photos/ab/3", io.BytesIO(), most=10)
    assert store.named("") == [f"pi/photos/ab/{number}" for number in (0, 1, 2, 4)]


def test_what_fails_for_a_moment_is_tried_again(store, bucket):
    store.fail(calls=2)
    bucket.put("a", b"content")
    assert store.objects["pi/a"] == b"content"
    broken = [True]

    def break_off(handler, _key):
        if not broken.pop() if broken else True:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", "7")
        handler.end_headers()
        handler.wfile.write(b"con")
        handler.close_connection = True
        return True

    store.before = break_off
    got = io.BytesIO()
    bucket.get("a", got, most=10)
    assert got.getvalue() == b"content"
    assert not broken


def test_a_refusal_names_the_store_and_its_word_but_no_key(store, bucket):
    wrong = s3.Bucket("s3://snaps/pi", _wrong_key(store))
    with pytest.raises(s3.BucketAway, match=r"127\.0\.0\.1:\d+: .* 403 \(SignatureDoesNotMatch") as seen:
        wrong.put("a", b"content")
    assert "secret" not in str(seen.value).lower()
    with pytest.raises(s3.BucketAway, match="NoSuchBucket"):
        s3.Bucket("s3://other", store.settings()).digest("a", most=10)
    assert "secret" not in repr(wrong) + repr(s3.credentials(store.settings())) + repr(store.settings())


def _wrong_key(store):
    return Settings(**{**store.variables(), "s3_secret_key": "a-secret-of-somebody-else"})


def test_keys_come_from_a_credential_of_systemd(tmp_path, store):
    (tmp_path / "s3").write_text("the-access-key\nthe-secret-key\n")
    settings = Settings.from_environ({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert s3.credentials(settings) == ("the-access-key", "the-secret-key")
    (tmp_path / "s3").write_text("only-one")
    with pytest.raises(StartRefused, match="two lines"):
        s3.credentials(settings)
    with pytest.raises(StartRefused, match="SNAPLORE_S3_ACCESS_KEY"):
        s3.credentials(Settings())


def test_a_store_on_a_private_address_is_called_only_where_it_is_the_endpoint(store):
    settings = store.settings()
    with pytest.raises(StartRefused):
        s3.Bucket("s3://Bad_Name", settings)
    with pytest.raises(StartRefused, match="SNAPLORE_ORIGINALS: only sealed"):
        Settings.from_environ({"SNAPLORE_ORIGINALS": "s3://snaps", "SNAPLORE_ENCRYPTION": "false"})


# --------------------------------------------------------------------------------------- backup and restore


def test_a_backup_is_restored_on_a_new_machine(tmp_path, store, bucket):
    settings = kept_in(tmp_path / "data", store, "first", "second")
    made = backed_up(settings, bucket)
    assert (made.head.photos, made.sent, made.unreadable) == (2, 5, [])
    before = contents(settings)
    database.close_store()
    elsewhere = store.settings(data_dir=tmp_path / "new")
    result = restored(elsewhere, bucket, master_key_file=settings.data_dir / "keys" / "master.key")
    assert result.photos == 2
    assert contents(elsewhere) == before
    database.close_store()


@pytest.mark.slow
def test_nothing_readable_and_no_key_is_in_the_bucket(tmp_path, store, bucket):
    settings = kept_in(tmp_path / "data", store, "first")
    backed_up(settings, bucket)
    key = bytes.fromhex((settings.data_dir / "keys" / "master.key").read_text())
    for content in store.objects.values():
        assert b"quicksilver" not in content
        assert b"PNG" not in content
        assert key not in content
        assert key.hex().encode() not in content
    with pytest.raises(StartRefused, match="Encryption is off"):
        backed_up(kept_in(tmp_path / "plain", store, encryption=False), bucket)


@pytest.mark.slow
def test_a_second_backup_sends_only_what_is_new_and_both_can_be_restored(tmp_path, store, bucket):
    settings = kept_in(tmp_path / "data", store, "first")
    one = backed_up(settings, bucket)
    live(settings, "second")
    store.calls.clear()
    later = utc_now() + timedelta(seconds=2)  # the names of two backups of one second have no order
    two = backed_up(settings, bucket, now=later)
    assert two.sent == 3  # two files of the photo, and one of the conversation
    assert not [call for call in store.calls if call.startswith("PUT pi/photos") and "first" in call]
    assert offsite.snapshots(bucket) == sorted([one.name, two.name])
    assert restored(settings, bucket, one.name).photos == 1
    assert restored(settings, bucket).photos == 2
    with pytest.raises(NotFound, match="There is no backup"):
        offsite.chosen(bucket, "20200101T000000Z-00000000")


@pytest.mark.slow
def test_a_backup_that_breaks_off_leaves_no_backup_and_the_next_one_continues(tmp_path, store, bucket):
    settings = kept_in(tmp_path / "data", store, *map(str, range(6)))
    sent = []

    def away(handler, key):
        if handler.command == "PUT" and "/photos/" in key:
            sent.append(key)
            if len(sent) > 6:
                handler.refuse(403, "QuotaExceeded")
                return True
        return False

    store.before = away
    with pytest.raises(s3.BucketAway, match="QuotaExceeded"):
        backed_up(settings, bucket)
    assert offsite.snapshots(bucket) == []
    with pytest.raises(NotFound):
        offsite.chosen(bucket, None)
    there = len(store.named("pi/photos/")) + len(store.named("pi/attachments/"))
    assert there
    store.before = None
    assert backed_up(settings, bucket).sent == 13 - there
    assert restored(settings, bucket).photos == 6


@pytest.mark.slow
@pytest.mark.parametrize("what", ["photos/", "database.db.", "keys/ring.1", "SHA256SUMS", "backup.json"])
@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_a_damaged_backup_is_refused_and_replaces_nothing(tmp_path, store, bucket, what, damage):
    settings = kept_in(tmp_path / "data", store, "first")
    made = backed_up(settings, bucket)
    before = listing(settings.data_dir)
    key = next(key for key in store.objects if what in key)
    if damage == "gone":
        del store.objects[key]
    else:
        content = bytearray(store.objects[key])
        content[len(content) // 2] ^= 1
        store.objects[key] = bytes(content)
    with pytest.raises((Unreadable, NotFound, StartRefused)):
        restored(settings, bucket, made.name)
    assert listing(settings.data_dir) == before


@pytest.mark.slow
def test_pruning_keeps_days_and_months_and_every_file_that_a_backup_names(tmp_path, store, bucket):
    settings = kept_in(tmp_path / "data", store, "first")
    days = ("2026-01-05", "2026-01-31", "2026-02-10", "2026-03-01", "2026-03-02", "2026-03-03")
    moments = [utc_now().fromisoformat(f"{day}T02:00:00") for day in days]
    for number, moment in enumerate(moments):
        if number == 3:
            database.open_store(settings)
            with database.scope():
                photos.delete_all([1])
            live(settings, "later")
        backed_up(settings, bucket, now=moment)
    first = set(store.named("pi/photos/"))
    made = backed_up(
        settings, bucket, keep=offsite.Keep(2, 2), now=utc_now().fromisoformat("2026-03-03T03:00:00")
    )
    assert [name[:15] for name in offsite.snapshots(bucket)] == [
        "20260210T020000",
        "20260302T020000",
        "20260303T030000",
    ]
    assert made.pruned == 4
    assert set(store.named("pi/photos/")) == first  # February still names the first picture
    store.modified = {key: time.time() - 200_000 for key in store.objects}
    backed_up(settings, bucket, keep=offsite.Keep(1, 0), now=utc_now())
    assert len(offsite.snapshots(bucket)) == 1
    assert set(store.named("pi/photos/")) < first
    assert len({key.split("/")[2] for key in store.named("pi/backups/")}) == 1
    assert restored(settings, bucket).photos == 1
