"""What was read on a photo: kept with its places, whoever analysed it, shown, copied and deleted with it."""

import contextlib
import dataclasses
import io
import json
import zipfile

import pytest
from PIL import Image

import database
import readings
import uploads
from analysis.pool import Worker
from app import create_app
from database import db
from engines.findings import Findings
from engines.lines import Line, Page
from errors import AnswerUnusable, ProviderDown, ProviderRefused, Unavailable
from locks import named_lock
from models import Analysis, Photo, Reading
from rules.embedded import LocalModel
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from tests.support.service import Service, eventually
from tests.support.undone import undo_shown

WIDE = draw("Library account\nDue on Friday", size=(960, 540))
PAGE = Page(
    1080,
    2400,
    [
        Line("9:41", 0.99, 40, 30, 150, 75),
        Line("87%", 0.99, 950, 30, 1040, 75),
        Line("Library account", 0.98, 60, 190, 600, 250),
        Line("Due on Friday", 0.97, 60, 300, 1110, 360),
    ],
)


def keep(photo_id, page=PAGE):
    with database.scope(), db.atomic():
        readings.save(photo_id, page, reader="small")


def upload(client, text="one", **fields):
    return client.upload(draw(text), **fields).json["id"]


def lines(client, photo_id):
    return client.get(f"/api/photos/{photo_id}/lines").json


def columns(photo_id):
    with database.scope():
        return Analysis.get(Analysis.photo == photo_id)


def test_lines_are_shown_with_their_places_as_parts_of_the_picture(client):
    photo = upload(client)
    keep(photo)

    shown = lines(client, photo)

    assert (shown["width"], shown["height"]) == (1080, 2400)
    assert [line["text"] for line in shown["lines"]] == ["9:41", "87%", "Library account", "Due on Friday"]
    assert [line["status_bar"] for line in shown["lines"]] == [True, True, False, False]
    third, last = shown["lines"][2:]
    assert third["left"] == pytest.approx(60 / 1080, abs=1e-5)
    assert third["top"] == pytest.approx(190 / 2400, abs=1e-5)
    assert (third["width"], third["height"]) == (0.5, 0.025)
    assert last["left"] + last["width"] == pytest.approx(1)  # it went beyond the picture


def test_a_photo_that_was_not_read_has_no_lines_and_the_text_that_the_model_saw(client, worker):
    photo = upload(client)
    before = client.get(f"/api/photos/{photo}").json["text"]
    worker.work()

    assert before == ""
    assert lines(client, photo) == {"width": 540, "height": 960, "lines": []}
    assert client.get(f"/api/photos/{photo}").json["text"] == "Library\nYour book is due on Friday."


def test_the_detail_has_the_text_as_it_was_read(client):
    photo = upload(client)
    keep(photo)

    assert client.get(f"/api/photos/{photo}").json["text"] == "9:41\n87%\nLibrary account\nDue on Friday"


def test_an_unknown_photo_is_not_found(client):
    assert detail(client.get("/api/photos/7/lines"), 404) == "Photo not found"


def test_readings_of_many_photos_are_read_at_once(client):
    photos = [upload(client, text) for text in ("one", "two", "three")]
    for photo in photos[:2]:
        keep(photo)
    with database.scope():
        found = readings.of(photos)

    assert sorted(found) == photos[:2]
    assert found[photos[0]].lines[2].text == "Library account"


def test_a_damaged_reading_is_no_lines_and_is_logged_without_its_text(client, caplog):
    photo = upload(client)
    keep(photo)
    with database.scope():
        Reading.update(lines=b"Library account").where(Reading.photo == photo).execute()

    assert lines(client, photo)["lines"] == []
    assert client.get(f"/api/photos/{photo}").json["text"] == ""
    assert f"the reading of photo {photo} cannot be used" in caplog.text
    assert "Library" not in caplog.text


def test_it_is_deleted_with_its_photo(client):
    photo = upload(client)
    keep(photo)
    client.delete(f"/api/photos/{photo}")

    with database.scope():
        assert Reading.select().count() == 0


def test_it_is_part_of_the_export(client):
    photo = upload(client)
    keep(photo)

    archive = zipfile.ZipFile(io.BytesIO(client.get("/api/data/export").get_data()))
    (record,) = json.loads(archive.read("photos.json"))

    assert record["lines"] == lines(client, photo)["lines"]
    assert record["text"].startswith("9:41\n87%")


def test_identical_bytes_get_the_lines_of_the_first(client, worker):
    first = upload(client)
    worker.work()
    keep(first)
    second = upload(client)
    worker.work()

    assert columns(second).status == "done"
    assert lines(client, second) == lines(client, first)
    assert columns(second).reads_left == 0


def resaved(content, *, changed=None):
    """The same pixels in another file; with `changed`, all but one."""
    image, out = Image.open(io.BytesIO(content)).convert("RGB"), io.BytesIO()
    if changed:
        image.putpixel(changed, (254, 255, 255))
    image.save(out, "WEBP", lossless=True)
    return out.getvalue()


@pytest.mark.parametrize("first_is_lost", [False, True])
def test_another_file_with_the_same_pixels_is_not_read_again_and_one_with_another_pixel_is(
    client, settings, monkeypatch, work_queue, first_is_lost
):
    eyes = Eyes()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    settings = dataclasses.replace(settings, ocr_model="small")
    first = client.upload(WIDE, "Screenshot_1.png").json["id"]
    work_queue(settings)
    if first_is_lost:
        with database.scope():
            (settings.data_dir / Photo.get_by_id(first).original_path).unlink()
    second = client.upload(resaved(WIDE), "IMG_2.webp").json["id"]
    work_queue(settings)
    assert eyes.calls == 1 + first_is_lost
    assert lines(client, second) == lines(client, first) != []
    assert found(client, "library") == [second, first]
    assert columns(second).reads_left == 0

    client.upload(resaved(WIDE, changed=(900, 500)), "IMG_3.webp")
    work_queue(settings)
    assert eyes.calls == 2 + first_is_lost
    client.post(f"/api/analysis/{second}/reprocess")  # a person asks for a new result
    work_queue(settings)
    assert eyes.calls == 3 + first_is_lost


def test_another_file_with_the_same_pixels_is_not_read_again_for_a_remote_model_or_later(
    client, remote, fake_llm, eyes
):
    settings = dataclasses.replace(remote, read_locally=True, ocr_model="small")
    fake_llm.answer(FINDINGS)
    fake_llm.answer(FINDINGS)
    first = client.upload(WIDE).json["id"]
    with contextlib.closing(Worker(settings)) as worker:
        assert worker.work()
        second = client.upload(resaved(WIDE)).json["id"]
        assert worker.work()
        assert (eyes.calls, lines(client, second)) == (1, lines(client, first))
        with database.scope():
            readings.forget(second)
        assert worker.backlog.read_older()
    assert (eyes.calls, lines(client, second)) == (1, lines(client, first))
    assert columns(second).reads_left == 0


@pytest.mark.slow
def test_the_embedded_analyser_keeps_what_it_reads_and_gives_a_title(client, work_queue):
    photo = client.upload(WIDE, "Screenshot_1.png").json["id"]
    work_queue()

    shown, item = lines(client, photo), client.get("/api/photos").json["items"][0]
    assert [line["text"] for line in shown["lines"]] == ["Library account", "Due on Friday"]
    assert (shown["width"], shown["height"]) == (960, 540)
    assert client.get(f"/api/photos/{photo}").json["text"] == "Library account\nDue on Friday"
    title = "Library account: Due on Friday"
    assert item["title"] == client.get("/api/analysis").json["items"][0]["title"] == title
    assert client.get("/api/search?q=library").json["items"][0]["title"] == title
    assert columns(photo).reads_left == 0


@pytest.mark.slow
def test_the_boxes_of_a_rotated_picture_are_those_of_the_upright_one(client, work_queue):
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° clockwise
    out = io.BytesIO()
    turned = Image.open(io.BytesIO(WIDE)).transpose(Image.Transpose.ROTATE_90)
    turned.save(out, "JPEG", exif=exif, quality=95)
    photo = client.upload(out.getvalue(), "camera.jpg").json["id"]
    work_queue()

    shown = lines(client, photo)
    assert (shown["width"], shown["height"]) == (960, 540)
    assert shown["lines"][0]["text"] == "Library account"
    assert shown["lines"][0]["left"] < 0.05
    assert 0.05 < shown["lines"][0]["top"] < 0.12


def test_a_result_that_comes_too_late_leaves_no_lines(client, settings, monkeypatch):
    """What was read is saved in the transaction of the result, which an overtaken claim does not reach."""
    photo = upload(client)
    worker = Worker(settings)

    def overtaken(*_, **__):
        client.post(f"/api/analysis/{photo}/reprocess")
        return Findings(page=PAGE, reader="small")

    monkeypatch.setattr(LocalModel, "analyse", overtaken)
    worker.work()
    worker.close()

    assert lines(client, photo)["lines"] == []
    assert columns(photo).reads_left > 0


# ------------------------------------------------------------------------------- before a remote model's call

SEEN = {**FINDINGS, "title": "Library loan", "visible_text": "Due on Friday\nfine of 2 EUR"}


class Eyes:
    """Stands for the OCR process: it reads `PAGE` on every picture, or fails as `failures` say."""

    def __init__(self):
        self.calls = 0
        self.failures = []
        self.page = PAGE

    def read(self, picture, *, patience=None):
        assert not db.in_transaction() if not db.is_closed() else True
        assert picture.read(4)
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.page, "small"


@pytest.fixture
def eyes(monkeypatch):
    eyes = Eyes()
    monkeypatch.setattr(LocalModel, "read", lambda self, *args, **options: eyes.read(*args, **options))
    return eyes


def found(client, words):
    return [item["id"] for item in client.get(f"/api/search?q={words}").json["items"]]


def test_the_reader_starts_while_an_analysis_waits_for_a_crowd_of_uploads(client, reading, monkeypatch):
    prepared = []
    monkeypatch.setattr(LocalModel, "prepare", lambda self: prepared.append(self))
    monkeypatch.setattr("analysis.pool.UPLOADS_FIRST", 0.01)
    assert reading.work() is False
    assert prepared == []
    arriving = database.store().cache(uploads.Arriving)
    with arriving.one(), arriving.one():
        assert reading.work() is False
    assert len(prepared) == 1


def test_a_remote_model_gets_the_text_framed_without_the_status_bar(client, fake_llm, reading, eyes):
    upload(client)
    reading.work()

    (request,) = fake_llm.requests
    marker = request.text.partition("<data ")[2].partition(">")[0]
    assert f"<data {marker}>\nLibrary account\nDue on Friday\n</data {marker}>" in request.text
    assert "lacks or has wrong" in request.text
    assert "all text in the picture" not in request.text
    assert "87%" not in request.text


def test_what_was_read_and_what_the_model_adds_is_found_and_nothing_twice(client, fake_llm, reading, eyes):
    fake_llm.answer(SEEN)
    photo = upload(client)
    reading.work()

    assert columns(photo).visible_text == "9:41\n87%\nLibrary account\nDue on Friday\nfine of 2 EUR"
    assert found(client, "account") == found(client, "fine") == [photo]
    assert client.get("/api/photos").json["items"][0]["title"] == "Library loan"
    assert client.get(f"/api/photos/{photo}").json["text"].endswith("Due on Friday")


@pytest.mark.slow
@pytest.mark.parametrize("status", [503, 401, 400])
def test_what_was_read_is_found_also_when_the_model_fails(
    client, cli, fake_llm, reading, eyes, clock, status
):
    for _ in range(3):
        fake_llm.fail(status)
    photo = upload(client)
    reading.work()

    assert columns(photo).status != "done"
    assert found(client, "account") == [photo]
    assert len(lines(client, photo)["lines"]) == 4
    for _ in range(3):
        clock.move(seconds=60)
        reading.work()
    assert eyes.calls == 1  # no retry reads again
    assert "index: OK" in cli.invoke(args=["check"]).output


def test_while_the_provider_is_down_pictures_are_read_in_the_background(client, fake_llm, reading, eyes):
    photos = [upload(client, text) for text in ("one", "two", "three", "four", "five")]
    for _ in range(3):
        fake_llm.fail(503)
    while reading.work():
        pass
    while reading.backlog.read_older():
        pass

    assert len(fake_llm.requests) == 3  # then the circuit opened
    assert sorted(found(client, "account")) == photos


def test_a_result_replaces_what_the_model_added_before(client, fake_llm, reading, eyes):
    fake_llm.answer(SEEN)
    photo = upload(client)
    reading.work()
    fake_llm.answer({**SEEN, "visible_text": "receipt"})
    client.post(f"/api/analysis/{photo}/reprocess")
    reading.work()

    assert eyes.calls == 2  # a person's request reads again
    assert columns(photo).visible_text.splitlines()[-2:] == ["Due on Friday", "receipt"]
    assert found(client, "fine") == []
    assert found(client, "receipt") == [photo]


FAILURES = [
    AnswerUnusable("it took too long"),
    ProviderRefused("The embedded analyser cannot work on this machine"),
    ProviderDown("The OCR process could not be started."),
    Unavailable("Other pictures are being read."),
    OSError("the file ends"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_no_failure_of_reading_hinders_the_analysis_where_nothing_is_held_back(
    client, fake_llm, remote, clock, eyes, failure
):
    eyes.failures = [failure]
    photo = upload(client)
    settings = dataclasses.replace(remote, read_locally=True, sensitive="off")
    with contextlib.closing(Worker(settings, clock=clock)) as reading:
        reading.work()

    assert columns(photo).status == "done"
    assert lines(client, photo)["lines"] == []
    assert columns(photo).reads_left == (2 if isinstance(failure, AnswerUnusable | OSError) else 3)
    assert "all text in the picture" in fake_llm.requests[0].text


def test_an_engine_that_does_not_run_here_is_tried_once(client, fake_llm, reading, eyes):
    eyes.failures = [ProviderRefused("no engine")] * 9
    for text in ("one", "two", "three"):
        upload(client, text)
        reading.work()

    assert eyes.calls == 1
    assert reading.backlog.read_older() is False
    assert eyes.calls == 1


def test_with_reading_switched_off_nothing_is_read(client, worker, eyes):
    photo = upload(client)
    worker.work()

    assert worker.backlog.read_older() is False
    assert eyes.calls == 0
    assert columns(photo).visible_text == FINDINGS["visible_text"]


def test_a_claim_that_was_lost_while_reading_saves_nothing(client, fake_llm, reading, eyes, monkeypatch):
    photo = upload(client)

    def overtaken(picture, *, patience=None):
        client.delete(f"/api/photos/{photo}")
        return PAGE, "small"

    monkeypatch.setattr(eyes, "read", overtaken)
    reading.work()

    assert fake_llm.requests == []  # nor is it sent to a model
    with database.scope():
        assert Reading.select().count() == 0
    assert found(client, "account") == []


def test_the_real_engine_reads_before_the_model_is_asked(client, fake_llm, reading):
    photo = client.upload(WIDE, "camera.png").json["id"]
    reading.work()

    assert "Library account\nDue on Friday" in fake_llm.requests[0].text
    assert columns(photo).visible_text == "Library account\nDue on Friday\nYour book is due on Friday."


# ---------------------------------------------------------------------------------------------- older photos


def test_photos_of_an_earlier_version_are_read_in_the_background_newest_first(
    app, client, remote, fake_llm, worker, eyes, clock, caplog
):
    photos = [upload(client, text) for text in ("one", "two", "three")]
    for _ in photos:
        fake_llm.answer(SEEN)
        worker.work()
    before = [client.get(f"/api/photos/{photo}").json["analysis"] for photo in photos]
    with database.scope():
        undo_readings()
    database.close_store()
    later = Client(create_app(app.settings))
    caplog.set_level("INFO")
    order = []
    with contextlib.closing(Worker(dataclasses.replace(remote, read_locally=True), clock=clock)) as reading:
        assert reading.work() is False
        while reading.backlog.read_older():
            order.append([photo for photo in photos if lines(later, photo)["lines"]])

    assert order == [photos[2:], photos[1:], photos]
    assert "3 photos are still to be read in the background" in caplog.text
    assert sorted(found(later, "account")) == sorted(found(later, "fine")) == photos
    for photo, analysed in zip(photos, before, strict=True):
        shown = later.get(f"/api/photos/{photo}").json
        assert shown["analysis"] == {**analysed, "title": ""}
        assert columns(photo).visible_text.splitlines()[-1] == "fine of 2 EUR"
    assert eyes.calls == 3


def undo_readings():
    """The schema as it was before 0007_readings, without what later migrations make of these columns."""
    undo_shown()
    for (trigger,) in db.execute_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        if trigger.startswith("meanings_due"):
            db.execute_sql(f"DROP TRIGGER {trigger}")
    db.execute_sql("DROP INDEX analyses_unread")
    db.execute_sql("DROP TABLE readings")
    for column in ("title", "reads_left"):
        db.execute_sql(f"ALTER TABLE analyses DROP COLUMN {column}")
    db.execute_sql("DELETE FROM schema_migration WHERE name = '0007_readings'")


def test_a_photo_that_cannot_be_read_is_tried_three_times(client, worker, reading, eyes):
    upload(client)
    worker.work()
    eyes.failures = [AnswerUnusable("it took too long")] * 9
    while reading.backlog.read_older():
        pass

    assert eyes.calls == 3


def test_a_photo_whose_file_is_lost_is_given_up(client, worker, reading, eyes, settings):
    photo = upload(client)
    worker.work()
    with database.scope():
        (settings.data_dir / Photo.get_by_id(photo).original_path).unlink()

    assert reading.backlog.read_older() is True
    assert reading.backlog.read_older() is False
    assert (eyes.calls, columns(photo).reads_left) == (0, 0)


def test_a_reading_that_is_killed_is_repeated(client, worker, reading, eyes):
    photo = upload(client)
    worker.work()
    eyes.failures = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        reading.backlog.read_older()

    assert columns(photo).reads_left == 2
    assert reading.backlog.read_older() is True
    assert len(lines(client, photo)["lines"]) == 4


def test_a_photo_that_is_deleted_while_it_is_read_leaves_nothing(client, worker, reading, eyes, monkeypatch):
    photo = upload(client)
    worker.work()

    def deleted(picture, *, patience=None):
        client.delete(f"/api/photos/{photo}")
        return PAGE, "small"

    monkeypatch.setattr(eyes, "read", deleted)

    assert reading.backlog.read_older() is True
    with database.scope():
        assert Reading.select().count() == 0
    assert found(client, "account") == []


def test_one_thread_of_all_processes_reads_at_a_time(client, worker, reading, eyes, settings):
    upload(client)
    worker.work()
    with named_lock(settings.data_dir / "jobs", "read-older", 0, busy=""):
        assert reading.backlog.read_older() is False
    assert eyes.calls == 0
    assert reading.backlog.read_older() is True


def test_a_damaged_reading_is_reported_and_read_again_after_a_repair(client, cli, worker, reading, eyes):
    photo = upload(client)
    worker.work()
    reading.backlog.read_older()
    with database.scope():
        Reading.update(lines=b"damaged").where(Reading.photo == photo).execute()

    assert (
        f"readings: 1 wrong: the lines of photo {photo} cannot be read" in cli.invoke(args=["check"]).output
    )
    assert "(repaired)" in cli.invoke(args=["check", "--repair"]).output
    assert reading.backlog.read_older() is True
    assert len(lines(client, photo)["lines"]) == 4


@pytest.mark.parametrize(
    ("read", "seen", "expected"),
    [
        ("", "a\nb", "a\nb"),
        ("a b", "", "a b"),
        (
            "Library account\nDue on Friday",
            "library ACCOUNT Due\non friday.",
            "Library account\nDue on Friday",
        ),
        ("Dentlst at 3", "Dentist at 3", "Dentlst at 3\nDentist at 3"),
        ("微信支付", "微信\n支付宝", "微信支付\n支付宝"),
    ],
)
def test_text_is_merged_by_its_words(read, seen, expected):
    assert readings.merged(read, seen) == expected


def test_reading_waits_while_the_engine_reads_something_else(client, worker, reading, eyes):
    photo = upload(client)
    worker.work()
    eyes.failures = [Unavailable("Other pictures are being read.")]

    assert reading.backlog.read_older() is False
    assert columns(photo).reads_left == 3
    assert reading.backlog.read_older() is True


def test_a_misread_icon_beside_the_clock_is_still_known_for_one_when_it_was_stored(client):
    photo = upload(client)
    icon = Line("VA à", 0.41, 900, 28, 1010, 78)
    keep(photo, Page(1080, 2400, [PAGE.lines[0], icon, PAGE.lines[2]]))

    assert [line["status_bar"] for line in lines(client, photo)["lines"]] == [True, True, False]


@pytest.mark.slow
def test_a_service_reads_what_it_has_stored_before_once_it_may(tmp_path, fake_llm):
    remote = {"dev_mode": "true", "api_key": "key", "llm_base_url": fake_llm.url, "llm_model": "scripted"}
    with Service(tmp_path, **remote) as service:
        photo = service.upload(WIDE)["id"]
        service.wait_until_analysed()
        assert service.get(f"/api/photos/{photo}/lines")["lines"] == []
        service.stop()
        service.start(read_locally="true")
        eventually(lambda: service.get(f"/api/photos/{photo}/lines")["lines"], "the photo is read")

        assert service.get(f"/api/photos/{photo}")["text"] == "Library account\nDue on Friday"
        assert [item["id"] for item in service.get("/api/search?q=account")["items"]] == [photo]
    assert len(fake_llm.requests) == 1


def test_a_text_has_a_tab_between_what_is_side_by_side():
    placed = [("9:41", 0.1, 0.01, True), ("Gate", 0.1, 0.2, False), ("C12", 0.6, 0.201, False)]
    placed += [("Seat", 0.1, 0.3, False)]
    lines = [readings.Line(text, left, top, 0.2, 0.02, bar) for text, left, top, bar in placed]
    read = readings.Lines(1080, 2400, lines)
    assert read.in_rows(read.content) == "Gate\tC12\nSeat"
    assert read.in_rows(read.text) == "9:41\nGate\tC12\nSeat"
    assert read.in_rows("Gate\nC13") == "Gate\nC13"  # a person's own
