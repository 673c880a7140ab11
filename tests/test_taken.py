"""When a picture was taken: by its client, its EXIF data, its name, its file's date or its upload; and the
command that mends what is stored. The zone of these tests is one with summer time.
"""

import io
import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from PIL import Image

import database
from models import Photo
from tests.support.drawing import draw
from writings import taken

NOW = datetime(2026, 11, 24, 12)
ZONE = "Europe/Berlin"

# The name of a file -> the time in Berlin, or with a Z in UTC.
NAMES = {
    # Android, also with the app: Pixel, Samsung, OnePlus, Xiaomi, Huawei
    "Screenshot_20260102-101112.png": "2026-01-02T10:11:12",
    "Screenshot_20260702-101112.png": "2026-07-02T10:11:12",
    "Screenshot_20260102-101112_WhatsApp.jpg": "2026-01-02T10:11:12",
    "Screenshot_20260102_101112_One UI Home.jpg": "2026-01-02T10:11:12",
    "Screenshot_2026-01-02-10-11-12-345_com.tencent.mm.jpg": "2026-01-02T10:11:12.345",
    "Screenshot_2026-01-02-10-11-12-34_40deb401b9ffe8e1df2f1cc5ba480b12.jpg": "2026-01-02T10:11:12",
    "Screenshot_2026-01-02-10-11-12.png": "2026-01-02T10:11:12",
    "Screenshot_20260102101112.png": "2026-01-02T10:11:12",
    "Screenshot_20260102-101112~2.png": "2026-01-02T10:11:12",
    # macOS and iOS, with 24 and with 12 hours, and in other languages
    "Screenshot 2026-01-02 at 10.11.12.png": "2026-01-02T10:11:12",
    "Screenshot 2026-01-02 at 9.11.12 PM.png": "2026-01-02T21:11:12",
    "Screenshot 2026-01-02 at 9.11.12\u202fPM.png": "2026-01-02T21:11:12",
    "Screenshot 2026-01-02 at 12.11.12\u202fAM (2).png": "2026-01-02T00:11:12",
    "Screen Shot 2026-01-02 at 12.11.12 p.m..png": "2026-01-02T12:11:12",
    "Bildschirmfoto 2026-01-02 um 10.11.12.png": "2026-01-02T10:11:12",
    "Capture d’écran 2026-01-02 à 10.11.12.png": "2026-01-02T10:11:12",
    "截屏2026-01-02 10.11.12.png": "2026-01-02T10:11:12",
    "截屏2026-01-02 下午3.04.05.png": "2026-01-02T15:04:05",
    "スクリーンショット 2026-01-02 午前10.11.12.png": "2026-01-02T10:11:12",
    # Windows, GNOME, KDE
    "Screenshot 2026-01-02 101112.png": "2026-01-02T10:11:12",
    "Screenshot from 2026-01-02 10-11-12.png": "2026-01-02T10:11:12",
    "Screenshot_20260102_101112.png": "2026-01-02T10:11:12",
    # cameras and messengers
    "IMG_20260102_101112.jpg": "2026-01-02T10:11:12",
    "20260102_101112.jpg": "2026-01-02T10:11:12",
    "PXL_20260102_101112345.jpg": "2026-01-02T10:11:12.345Z",
    "WhatsApp Image 2026-01-02 at 10.11.12 (1).jpeg": "2026-01-02T10:11:12",
    "IMG-20260102-WA0001.jpg": "2026-01-02T12:00:00",
    "signal-2026-01-02-10-11-12-345.jpg": "2026-01-02T10:11:12.345",
    "photo_2026-01-02_10-11-12.jpg": "2026-01-02T10:11:12",
    "mmexport1767348672345.jpg": "2026-01-02T10:11:12.345Z",
    "2026-01-02T10:11:12Z.png": "2026-01-02T10:11:12Z",
    # no time, or none that there is
    "invoice 2026-01-02.png": None,
    "order 20260102 1234567.png": None,
    "Screenshot (12).png": None,
    "IMG_1234.PNG": None,
    "20260230_101112.png": None,
    "Screenshot_20260102-251112.png": None,
    "Screenshot 2026-01-02 at 13.11.12 PM.png": None,
    "Screenshot_20990102-101112.png": None,
    "Screenshot_19990102-101112.png": None,
    "1767348672345.png": None,
    "": None,
}


@pytest.fixture(autouse=True)
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", ZONE)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def in_utc(written):
    moment = datetime.fromisoformat(written)  # a time without a zone is the machine's
    return moment.astimezone(UTC).replace(tzinfo=None)


@pytest.mark.parametrize("name", NAMES)
def test_the_time_in_a_name_is_read(name):
    expected = NAMES[name]
    found = taken.from_name(name, now=NOW)
    assert (found and found.moment) == (expected and in_utc(expected))


def test_a_long_name_takes_linear_time():
    for part in ("20260102", "20260102-", "2026-01-02 at ", "IMG-", "1" * 13):
        assert taken.from_name(part * 100_000, now=NOW) is None


def test_the_first_that_says_it_decides():
    name, file_date = "Screenshot_20260102-101112.png", NOW - timedelta(days=9)
    given, exif = NOW - timedelta(days=1), NOW - timedelta(days=2)
    named = in_utc("2026-01-02T10:11:12")

    assert taken.decided(given, exif, name, file_date, now=NOW) == (given, "client")
    assert taken.decided(None, exif, name, file_date, now=NOW) == (exif, "exif")
    assert taken.decided(None, None, name, file_date, now=NOW) == (named, "name")
    assert taken.decided(None, None, "a.png", file_date, now=NOW) == (file_date, "file")
    assert taken.decided(None, None, "a.png", None, now=NOW) == (NOW, "upload")


def test_the_files_date_gives_a_name_with_only_a_day_its_time():
    name = "IMG-20260102-WA0001.jpg"
    that_day, later = in_utc("2026-01-02T23:30"), in_utc("2026-01-03T00:30")
    assert taken.decided(None, None, name, that_day, now=NOW) == (that_day, "file")
    assert taken.decided(None, None, name, later, now=NOW) == (in_utc("2026-01-02T12:00"), "name")


# ------------------------------------------------------------------------------------- uploads and folders


def with_exif(text):
    exif = Image.Exif()
    exif.get_ifd(0x8769).update({0x9003: "2024:03:01 12:00:00", 0x9011: "+01:00"})
    return draw(text, format="JPEG", exif=exif)


def of(client, photo_id):
    shown = client.get(f"/api/photos/{photo_id}").json
    return shown["original_timestamp"], shown["taken_from"]


NAME = "Screenshot_20240102-101112_App.png"
NAMED = ("2024-01-02T09:11:12.000", "name")
OTHER = {"file_timestamp": "1700000000123"}


def test_an_upload_without_a_time_gets_it_from_the_picture_its_name_or_its_file(client):
    def sent(picture, name, **fields):
        return of(client, client.upload(picture, name, **fields).json["id"])

    assert sent(draw("one"), NAME, original_timestamp="1700000000123", **OTHER) == (
        "2023-11-14T22:13:20.123",
        "client",
    )
    assert sent(with_exif("two"), NAME, **OTHER) == ("2024-03-01T11:00:00.000", "exif")
    assert sent(draw("three"), NAME, **OTHER) == NAMED
    assert sent(draw("four"), "a.png", **OTHER) == ("2023-11-14T22:13:20.123", "file")
    moment, source = sent(draw("five"), "a.png")
    assert source == "upload"
    assert moment > "2024-06"
    assert "file_timestamp" in client.upload(draw(), "a.png", file_timestamp="soon").json["detail"]


def test_a_batch_has_a_time_for_each_file(client):
    names = {"a": NAME, "b": "b.png", "c": NAME}
    data = {
        "files": [(io.BytesIO(draw(text)), name) for text, name in names.items()],
        "device_id": "pixel",
        "timestamps": ",,1700000000123",
        "file_timestamps": ",1700000000123,",
    }
    answer = client.post("/api/photos/upload-batch", data=data)
    ids = [result["id"] for result in answer.json["results"]]
    assert [of(client, photo_id)[1] for photo_id in ids] == ["name", "file", "client"]


def test_an_import_takes_the_time_from_the_name_before_that_of_the_file(client, cli, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / NAME).write_bytes(draw("name"))
    (folder / "Screenshot_20240102-101113.jpg").write_bytes(with_exif("exif"))
    (folder / "file.png").write_bytes(draw("file"))
    for file in folder.iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    cli.invoke(args=["import", str(folder)])

    items = client.get("/api/photos").json["items"]
    assert {item["filename"]: of(client, item["id"]) for item in items} == {
        NAME: NAMED,
        "Screenshot_20240102-101113.jpg": ("2024-03-01T11:00:00.000", "exif"),
        "file.png": ("2023-11-14T22:13:20.000", "file"),
    }


# -------------------------------------------------------------------------------------------------- mending


def as_earlier(photo_id, **columns):
    """A photo as an earlier version stored it."""
    with database.scope():
        Photo.update(taken_from=None, **columns).where(Photo.id == photo_id).execute()


@pytest.fixture
def stored_before(client):
    """Photos of an earlier version -> what is right."""
    old = datetime(2023, 11, 20, 8)
    named, exif, imported, given, plain = (
        client.upload(picture, name, device_id="pixel").json["id"]
        for picture, name in (
            (draw("1"), NAME),
            (with_exif("2"), NAME),
            (draw("3"), "Screenshot_20240102-101112.png"),
            (draw("4"), NAME),
            (draw("5"), "plain.png"),
        )
    )
    for photo_id in (named, exif, plain):
        as_earlier(photo_id, original_timestamp=old, created_at=old)
    as_earlier(imported, original_timestamp=old, local_media_store_id="sha256:00")
    as_earlier(given, original_timestamp=old)
    shown = old.isoformat(timespec="milliseconds")
    return {
        named: NAMED,
        exif: ("2024-03-01T11:00:00.000", "exif"),
        imported: NAMED,
        given: (shown, None),
        plain: (shown, None),
    }


def test_stored_times_are_mended_where_no_client_gave_them(client, cli, stored_before):
    client.patch(f"/api/photos/{min(stored_before)}", json={"tags": ["trip"]})
    before = {photo_id: of(client, photo_id) for photo_id in stored_before}

    counted = cli.invoke(args=["mend-dates", "--dry-run"])
    assert counted.output == "mend-dates: 3 of 4 times would be corrected\n"
    assert {photo_id: of(client, photo_id) for photo_id in stored_before} == before

    assert cli.invoke(args=["mend-dates"]).output == "mend-dates: 3 of 4 times corrected\n"
    assert {photo_id: of(client, photo_id) for photo_id in stored_before} == stored_before
    january = "since=2024-01-01T00:00:00&until=2024-02-01T00:00:00"
    assert client.get(f"/api/photos?{january}").json["total"] == 2
    assert client.get(f"/api/photos?tag=trip&{january}").json["total"] == 1
    months = {row["month"]: row["photos"] for row in client.get("/api/photos/timeline").json["months"]}
    assert months == {"2023-11": 2, "2024-01": 2, "2024-03": 1}
    assert cli.invoke(args=["check"]).exit_code == 0
    assert cli.invoke(args=["mend-dates"]).output == "mend-dates: 0 of 1 times corrected\n"


def test_a_lost_file_is_counted_and_the_others_are_mended(client, cli, settings, stored_before):
    place = client.get(f"/api/photos/{min(stored_before)}").json["original_path"]
    (settings.data_dir / place).unlink()
    mended = cli.invoke(args=["mend-dates"])
    assert (mended.exit_code, mended.output) == (
        1,
        "mend-dates: 2 of 4 times corrected, 1 could not be read\n",
    )
