"""A store that does its worst: nothing that it lists or sends holds a command for ever, fills the disk, or
replaces any data.
"""

import itertools
import shutil
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from buckets import s3
from clock import utc_now
from errors import NotFound, SnaploreError, Unreadable
from tests.support.fake_s3 import FakeS3
from tests.test_backup import listing
from tests.test_s3 import backed_up, kept_in, restored
from upkeep import offsite

MOMENT = "2026-01-01T00:00:00.000Z"


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


def page(*names, token="", size="1"):
    listed = "".join(
        f"<Contents><Key>{name}</Key><LastModified>{MOMENT}</LastModified><Size>{size}</Size></Contents>"
        for name in names
    )
    following = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    truncated = str(bool(token)).lower()
    return (
        f"<ListBucketResult>{listed}<IsTruncated>{truncated}</IsTruncated>{following}</ListBucketResult>"
    ).encode()


def lists(store, answer):
    """Let `answer` make the pages, of the number of the call and the continuation token."""
    numbers = itertools.count()

    def act(handler, key):
        if key:
            return False
        query = parse_qs(urlsplit(handler.path).query)
        handler.respond(200, answer(next(numbers), query.get("continuation-token", [""])[0]))
        return True

    store.before = act


ENDLESS = {
    "the same page and token": lambda number, token: page("pi/photos/aa", token="again"),
    "no object and the same token": lambda number, token: page(token="again"),
    "no object and other tokens": lambda number, token: page(token=f"t{number}"),
    "two tokens by turns": lambda number, token: page(f"pi/photos/{number % 2}", token=f"t{number % 2}"),
    "names that go back": lambda number, token: page(f"pi/photos/{9 - number}", token=f"t{number}"),
    "the same name twice": lambda number, token: page("pi/photos/aa", "pi/photos/aa"),
    "names that nobody asked for": lambda number, token: page(
        f"other/photos/{number:09}", token=f"t{number}"
    ),
}


@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS)
def test_a_listing_that_no_store_makes_is_refused_after_a_few_pages(store, bucket, answer):
    lists(store, answer)
    with pytest.raises(Unreadable, match=r"does not end|in a wrong order"):
        list(bucket.listed("photos/"))
    assert len(store.calls) <= s3.MOST_WITHOUT + 2


@pytest.mark.slow
def test_a_listing_of_ever_new_names_ends_after_so_many_pages(store, bucket, monkeypatch):
    monkeypatch.setattr(s3, "MOST_PAGES", 50)
    lists(store, lambda number, token: page(f"pi/photos/{number:09}", token=f"t{number}"))
    with pytest.raises(Unreadable, match="does not end"):
        list(bucket.listed("photos/"))
    assert len(store.calls) == 50


@pytest.mark.parametrize("size", ["-1", "x", "9" * 5_000, "1e9", ""])
def test_sizes_that_are_none_are_no_objects_or_harmless(store, bucket, size):
    lists(store, lambda number, token: page("pi/photos/aa", size=size))
    assert len(list(bucket.listed("photos/"))) <= 1


def test_a_page_that_is_too_large_is_refused(store, bucket):
    lists(store, lambda number, token: b"<Contents>" * (s3.LARGEST_LIST // 10 + 1))
    with pytest.raises(Unreadable, match="larger than it was"):
        list(bucket.listed())


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/x",
        "backups/../x",
        "backups/20260101T000000Z-0123456G",
        "backups/\x1b[31m",
        "backups//SHA256SUMS",
    ],
)
def test_names_that_no_backup_has_are_no_backups(store, bucket, name):
    lists(store, lambda number, token: page(f"pi/backups/{name}/SHA256SUMS"))
    assert offsite.snapshots(bucket) == []
    with pytest.raises(NotFound):
        offsite.chosen(bucket, None)


# --------------------------------------------------------------------------------------------------- restores


@pytest.fixture(scope="module")
def backup(tmp_path_factory):
    """The objects of two backups of one folder, and that folder."""
    folder = tmp_path_factory.mktemp("hostile") / "data"
    with FakeS3() as store:
        bucket = s3.Bucket("s3://snaps/pi", store.settings())
        settings = kept_in(folder, store, "first")
        backed_up(settings, bucket)
        kept_in(folder, store, "second")
        backed_up(settings, bucket, now=utc_now() + timedelta(hours=1))
        bucket.close()
        return dict(store.objects), folder


@pytest.fixture
def victim(backup, store, tmp_path):
    """A folder with other data, and a bucket with both backups."""
    objects, folder = backup
    store.objects = dict(objects)
    shutil.copytree(folder, tmp_path / "data")
    return store.settings(data_dir=tmp_path / "data")


def newest(store, name):
    return max(key for key in store.objects if key.startswith("pi/backups/") and name in key)


def stored(store):
    return store.named("pi/photos/")


def swap(store):
    one, two = stored(store)[:2]
    store.objects[one], store.objects[two] = store.objects[two], store.objects[one]


def give_another_database(store):
    first, second = sorted(key for key in store.objects if "database.db" in key)
    store.objects[second] = store.objects[first]


def give_another_ring(store):
    store.objects[newest(store, "keys/ring.1")] = b"SNAPLORE-RING-1\n" + bytes(100)


def truncate(store):
    store.objects[stored(store)[0]] = store.objects[stored(store)[0]][:-1]


def empty(store):
    store.objects[newest(store, "SHA256SUMS")] = b""


def claim_little(store):
    head = newest(store, "backup.json")
    store.objects[head] = store.objects[head].replace(b'"files"', b'"files_"')


def add_to_the_list(store):
    sums = newest(store, "SHA256SUMS")
    names = (f"photos/ab/ab{number:030x}" for number in range(1_000))
    store.objects[sums] += b"".join(f"{'0' * 64}  {name}\n".encode() for name in names)


def name_a_file_outside(store):
    sums = newest(store, "SHA256SUMS")
    store.objects[sums] += f"{'0' * 64}  ../../outside\n".encode()


def repeat_a_line(store):
    sums = newest(store, "SHA256SUMS")
    lines = store.objects[sums].splitlines(keepends=True)
    store.objects[sums] = b"".join([*lines, lines[-2]])


def grow_an_object(store):
    store.objects[stored(store)[0]] += bytes(1_000_000)


def add_parts(store):
    part = newest(store, "database.db")
    for number in range(1, 20):
        store.objects[f"{part[:-5]}{number:05}"] = bytes(16 * 1_048_576)


DAMAGES = (
    *(swap, give_another_database, give_another_ring, truncate, empty, claim_little, add_to_the_list),
    *(name_a_file_outside, repeat_a_line, grow_an_object, add_parts),
)


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_restore_from_a_hostile_bucket_is_refused_and_replaces_nothing(store, bucket, victim, damage):
    before, outside = listing(victim.data_dir), set(victim.data_dir.parent.iterdir())
    damage(store)
    with pytest.raises(SnaploreError):
        restored(victim, bucket)
    assert listing(victim.data_dir) == before
    assert set(victim.data_dir.parent.iterdir()) == outside
    assert len(store.calls) < 100


@pytest.mark.slow
def test_a_bucket_that_sends_more_than_the_backup_says_does_not_fill_the_disk(
    store, bucket, victim, monkeypatch
):
    monkeypatch.setattr(offsite, "_SMALL", 1_048_576)
    add_parts(store)
    with pytest.raises(Unreadable, match="larger than it was"):
        restored(victim, bucket)
    assert sum("database.db" in call and call.startswith("GET") for call in store.calls) <= 3


@pytest.mark.slow
def test_a_bucket_that_breaks_off_each_object_is_given_up(store, bucket, victim):
    before = listing(victim.data_dir)

    def break_off(handler, key):
        if handler.command != "GET" or "/photos/" not in key:
            return False
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(store.objects[key])))
        handler.end_headers()
        handler.wfile.write(store.objects[key][:10])
        handler.close_connection = True
        return True

    store.before = break_off
    with pytest.raises(s3.BucketAway):
        restored(victim, bucket)
    assert listing(victim.data_dir) == before


@pytest.mark.slow
def test_after_all_that_the_honest_backup_is_restored(store, bucket, victim):
    assert restored(victim, bucket).photos == 2
