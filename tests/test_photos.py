"""Photos over HTTP: stored once, durable, judged by their bytes, served safely, deleted with everything that
was theirs.
"""

import hashlib
import io
import itertools
import re
import threading
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from PIL import Image

import database
import lexicon
import models
import photos
import pictures
import uploads
from clock import utc_now
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS

MEGABYTE = 1_048_576


@pytest.fixture
def small_limit(monkeypatch, app):
    """The limit of a file brought down to 100 kB, so that going over it is quick."""
    for endpoint in ("photos.upload", "photos.upload_batch"):
        view = app.view_functions[endpoint]
        monkeypatch.setattr(view, "takes_files", (100_000, view.takes_files[1]))


def files_of(settings):
    return sorted(
        path
        for folder in ("photos", "spool")
        for path in (settings.data_dir / folder).rglob("*")
        if path.is_file()
    )


def batch(client, *files, **fields):
    return client.post(
        "/api/photos/upload-batch",
        data={"device_id": "pixel", "files": [(io.BytesIO(c), name) for c, name in files], **fields},
    )


def test_a_large_picture_is_asked_to_come_again_when_others_take_too_long(client, settings, monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PATIENCE", 0.05)
    large = draw(size=(4_000, 3_000))
    with pictures._one_large_picture:
        refused = client.upload(large)
        assert detail(refused, 503) == "Another large picture is being read. Please come again in a moment."
        assert refused.headers["Retry-After"] == "10"
        assert client.upload(draw("small")).status_code == 200
        assert len(files_of(settings)) == 2
    assert client.upload(large).status_code == 200


def test_an_upload_is_answered_with_the_contracts_fields(client, make_photo):
    picture = make_photo()
    answer = client.upload(picture, "inbox.png", device_id="pixel_8", local_media_store_id="77")

    assert answer.status_code == 200
    assert answer.json == {
        "id": 1,
        "filename": "inbox.png",
        "file_size": len(picture),
        "dedup": False,
        "message": "Uploaded",
    }


def test_the_same_local_id_of_a_device_is_stored_once(client, make_photo, settings):
    first = client.upload(make_photo(), "a.png", device_id="pixel", local_media_store_id="77")
    again = client.upload(make_photo(), "b.png", device_id="pixel", local_media_store_id="77")
    other_device = client.upload(make_photo(), "a.png", device_id="tablet", local_media_store_id="77")

    assert again.json == {
        "id": first.json["id"],
        "filename": "a.png",
        "dedup": True,
        "message": "Already exists (dedup)",
    }
    assert other_device.json["dedup"] is False
    assert len(files_of(settings)) == 4
    assert client.get("/api/photos/sync-state?device_id=pixel").json["total_synced"] == 1


def test_the_same_bytes_of_a_device_are_one_photo_whatever_their_id(client, make_photo):
    ids = {
        client.upload(make_photo(), device_id="pixel", local_media_store_id=local_id).json["id"]
        for local_id in ("", "", "0", "1")
    }

    assert len(ids) == 1


def test_the_same_id_with_other_bytes_is_another_photo(client, make_photo):
    named = {"device_id": "pixel", "local_media_store_id": "77"}
    first = client.upload(make_photo("One"), **named).json
    second = client.upload(make_photo("Two"), **named).json

    assert (first["dedup"], second["dedup"]) == (False, False)
    assert first["id"] != second["id"]
    assert client.get("/api/photos/sync-state?device_id=pixel").json["total_synced"] == 2


def test_of_uploads_that_name_no_device_only_the_same_id_makes_one_photo(client, make_photo):
    ids = [
        client.upload(make_photo(), local_media_store_id=local_id).json["id"]
        for local_id in ("", "", "0", "0", "1")
    ]

    assert ids == [1, 2, 3, 3, 4]


def test_a_person_gets_back_what_is_in_the_trash_by_uploading_it_without_an_id(client, make_photo):
    first = client.upload(make_photo(), device_id="pixel").json["id"]
    client.post(f"/api/photos/{first}/trash")

    assert client.upload(make_photo(), device_id="pixel").json["dedup"] is False


def test_parallel_uploads_of_one_photo_store_it_once(app, settings, make_photo):
    picture, answers = make_photo(), []
    start = threading.Barrier(8)

    def upload():
        client = Client(app)
        start.wait(90)
        answers.append(client.upload(picture, device_id="pixel", local_media_store_id="77").json)

    threads = [threading.Thread(target=upload) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answer["dedup"] for answer in answers) == [False] + [True] * 7
    assert len({answer["id"] for answer in answers}) == 1
    assert len(files_of(settings)) == 2
    assert Client(app).get("/api/photos/sync-state?device_id=pixel").json["total_synced"] == 1


def test_a_deleted_photo_can_be_uploaded_again(client, make_photo):
    first = client.upload(make_photo(), local_media_store_id="77").json["id"]
    client.delete(f"/api/photos/{first}")
    again = client.upload(make_photo(), local_media_store_id="77").json

    assert again["dedup"] is False
    assert again["id"] > first


def test_the_bytes_decide_the_type_whatever_the_client_claims(client, make_photo):
    photo = client.upload(make_photo(format="GIF"), "document.pdf", mime_type="application/pdf").json["id"]

    assert client.get(f"/api/photos/{photo}").json["mime_type"] == "image/gif"
    assert client.get(f"/api/photos/{photo}/image").headers["Content-Type"] == "image/gif"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"<html><script>alert(1)</script>", "not a JPEG"),
        (b"%PDF-1.7", "not a JPEG"),
        (draw(format="TIFF"), "not a JPEG"),
        (draw()[:-400], "damaged or cut off"),
    ],
)
def test_what_is_not_a_whole_picture_is_400_and_leaves_nothing_behind(client, settings, content, reason):
    assert reason in detail(client.upload(content, "fine.png", mime_type="image/png"), 400)
    assert files_of(settings) == []
    assert client.get("/api/photos").json["total"] == 0


def test_a_request_without_a_file_is_400_and_names_the_field(client):
    assert detail(client.post("/api/photos/upload", data={"device_id": "pixel"}), 400).startswith("file: ")
    assert detail(client.post("/api/photos/upload", json={"file": "x"}), 400).startswith("file: ")


@pytest.mark.parametrize("device_id", ["has space", "semi;colon", "x" * 257, "ümlaut", "line\n", "../up"])
def test_a_device_id_outside_its_alphabet_is_400(client, make_photo, device_id):
    sentence = detail(client.upload(make_photo(), device_id=device_id), 400)
    assert sentence.startswith("device_id: must be 1 to 256 letters, digits or underscores")


@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "1e3", "９", "9" * 15, "9" * 40])
def test_a_timestamp_that_is_no_epoch_milliseconds_is_400(client, make_photo, value):
    assert detail(client.upload(make_photo(), original_timestamp=value), 400).startswith(
        "original_timestamp: "
    )


def test_the_defaults_of_an_upload_are_those_of_the_contract(client, make_photo):
    before = utc_now().isoformat(timespec="milliseconds")
    photo = client.get(f"/api/photos/{client.upload(make_photo()).json['id']}").json

    assert photo["device_id"] == "unknown"
    assert photo["source_type"] == "screenshot"
    assert photo["local_media_store_id"] == photo["device_name"] == ""
    assert photo["original_timestamp"] >= before


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\tb\x9b.png", "ab.png"),
        ("截图 1.png", "截图 1.png"),
        ("..", ".."),
        ("x" * 400 + ".png", "x" * 251 + ".png"),
        ("gnp\u202e.exe", "gnp.exe"),
    ],
)
def test_a_file_name_is_kept_for_display_only(client, make_photo, settings, sent, kept):
    assert client.upload(make_photo(), sent).json["filename"] == kept
    assert all(len(path.stem) == 32 for path in files_of(settings))
    assert photos.display_name("C:\\Users\\me\\a\r\nb.png", "") == "ab.png"
    assert photos.display_name("", "image/webp") == "screenshot.webp"


def test_a_file_over_50_mb_is_413_and_leaves_nothing_behind(client, settings):
    assert "file: is larger than 50 MB" in detail(client.upload(bytes(50 * MEGABYTE + 1)), 413)
    assert files_of(settings) == []


def test_a_large_file_takes_the_same_way_through_a_sealed_spool(client, settings):
    noise = io.BytesIO()
    Image.effect_noise((1800, 1500), 100).save(noise, "PNG")
    content = noise.getvalue()
    assert len(content) > 2 * MEGABYTE
    photo = client.upload(content).json["id"]

    assert client.get(f"/api/photos/{photo}/image").data == content
    assert all(content[:16] not in path.read_bytes() for path in files_of(settings))
    assert not list((settings.data_dir / "spool").iterdir())


def test_the_detail_holds_the_photo_and_its_analysis(client, make_photo):
    photo = client.upload(
        make_photo(size=(300, 700)), original_timestamp="1700000000123", device_name="My Phone"
    ).json["id"]
    shown = client.get(f"/api/photos/{photo}").json

    assert set(shown) == {
        *(
            "id",
            "local_media_store_id",
            "thread_id",
            "filename",
            "original_path",
            "thumbnail_path",
            "file_size",
            "width",
            "height",
            "mime_type",
        ),
        *("source_type", "device_id", "device_name", "original_timestamp", "created_at", "text", "analysis"),
        *(
            "taken_from",
            "title",
            "summary",
            "kept",
            "tags",
            "note",
            "deleted_at",
            "own",
            "sensitive",
            "stack",
            "records",
        ),
    }
    assert (shown["width"], shown["height"]) == (300, 700)
    assert shown["original_timestamp"] == "2023-11-14T22:13:20.123"
    assert not shown["original_path"].startswith("/")
    assert set(shown["analysis"]) == {
        *(
            "id",
            "photo_id",
            "status",
            "app_name",
            "content_category",
            "intent",
            "title",
            "summary",
            "entities",
            "confidence",
            "llm_response",
        ),
        *("error_message", "created_at", "completed_at"),
    }
    assert shown["analysis"]["status"] == "pending"


def test_list_items_have_exactly_the_contracts_fields_newest_first(client, make_photo):
    for number in range(3):
        client.upload(make_photo(f"Number {number}"), f"{number}.png")
    page = client.get("/api/photos").json

    assert (page["total"], page["page"], page["page_size"]) == (3, 1, 20)
    assert [item["filename"] for item in page["items"]] == ["2.png", "1.png", "0.png"]
    assert set(page["items"][0]) == {
        *(
            "id",
            "filename",
            "file_size",
            "width",
            "height",
            "mime_type",
            "source_type",
            "device_id",
            "device_name",
        ),
        *("original_timestamp", "created_at", "analysis_status", "intent", "title", "app_name", "summary"),
        *("kept", "tags", "note", "deleted_at", "sensitive", "record"),
    }


def test_pages_and_filters_fit_together(client, make_photo, work_queue):
    for number in range(5):
        client.upload(
            make_photo(f"Number {number}"), f"{number}.png", device_id="even" if number % 2 == 0 else "odd"
        )
    names = [
        [item["filename"] for item in client.get(f"/api/photos?page={page}&page_size=2").json["items"]]
        for page in (1, 2, 3, 4)
    ]

    assert names == [["4.png", "3.png"], ["2.png", "1.png"], ["0.png"], []]
    assert client.get("/api/photos?device_id=odd").json["total"] == 2
    assert client.get("/api/photos?device_id=odd&status=pending").json["total"] == 2
    assert client.get("/api/photos?status=done").json == {"total": 0, "page": 1, "page_size": 20, "items": []}
    assert client.get("/api/photos?device_id=nobody").json["total"] == 0


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 20])
def test_every_photo_is_on_exactly_one_page_in_order(client, make_photo, size):
    for number in range(7):
        client.upload(make_photo(f"Number {number}", size=(60, 60)))
    pages = [client.get(f"/api/photos?page={page}&page_size={size}").json for page in range(1, 9)]

    assert [item["id"] for page in pages for item in page["items"]] == [7, 6, 5, 4, 3, 2, 1]
    assert all(len(page["items"]) <= size and page["total"] == 7 for page in pages)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("page=0", "page: must be between 1 and 1000000000"),
        ("page=" + "9" * 30, "page: must be between 1 and 1000000000"),
        ("page_size=101", "page_size: must be between 1 and 100"),
        ("status=finished", "status: must be one of done, error, pending, processing"),
        ("status=null", "status: must be one of done, error, pending, processing"),
        ("device_id=a%00b", "device_id: must not contain a NUL character"),
    ],
)
def test_an_unreadable_query_is_400_and_names_the_field(client, query, sentence):
    assert detail(client.get(f"/api/photos?{query}"), 400) == sentence


def test_a_page_of_any_size_costs_the_same_number_of_queries(client, make_photo):
    def queries(path):
        seen = []
        database.db.query_hooks.append(seen.append)
        try:
            client.get(path)
        finally:
            database.db.query_hooks.remove(seen.append)
        return len(seen)

    client.upload(make_photo())
    one = queries("/api/photos?page_size=100")
    for number in range(6):
        client.upload(make_photo(f"Number {number}"))

    assert queries("/api/photos?page_size=100") == one == 3
    assert queries("/api/photos?status=pending&device_id=unknown") == 3


@pytest.mark.slow
def test_every_combination_of_filters_lists_exactly_what_passes_them(
    client, make_photo, work_queue, remote, fake_llm, clock
):
    """Against a plain comparison of all photos: any filters together, with totals, over pages that come from
    both ends.
    """
    kinds = [
        ("finance", "note"),
        ("finance", "reminder"),
        ("chat", "note"),
        ("chat", "note"),
        ("finance", "note"),
        ("chat", "ignore"),
    ]
    for number, (category, intent) in enumerate(kinds):
        taken = datetime(2026, 3, 1 + (number * 5) % 7, tzinfo=UTC)  # not in the order of the uploads
        client.upload(
            make_photo(str(number), size=(60, 60)),
            device_id=f"phone_{number % 2}",
            original_timestamp=f"{taken.timestamp() * 1000:.0f}",
        )
        app_name = "Bank" if number % 4 else "Mail"
        fake_llm.answer({**FINDINGS, "content_category": category, "intent": intent, "app_name": app_name})
        work_queue(remote, clock=clock)
    client.post("/api/analysis/1/reprocess")
    everything = [client.get(f"/api/photos/{number}").json for number in range(len(kinds), 0, -1)]
    choices = {
        "status": (None, "done", "pending", "error"),
        "device_id": (None, "phone_1"),
        "category": (None, "finance", "other"),
        "intent": (None, "note"),
        "since": (None, "2026-03-02", "2020-01-01"),
        "until": (None, "2026-03-06T00:00:00", "2026-03-02T12:00:00.001", "2030-01-01"),
    }
    others = {
        "app": (None, "Bank"),
        "order": (None, "taken"),
        **{name: choices[name][:2] for name in ("device_id", "category", "since")},
    }
    found = set()
    combinations = [
        dict(zip(some, values, strict=True))
        for some in (choices, others)
        for values in itertools.product(*some.values())
    ]
    for values in combinations:
        query = {name: value for name, value in values.items() if value is not None}
        expected = [photo for photo in everything if passes(photo, query)]
        if "since" in query or "until" in query or query.get("order") == "taken":
            expected.sort(key=lambda photo: photo["original_timestamp"], reverse=True)
        pages = [
            client.get("/api/photos", query_string={**query, "page": page, "page_size": 2}).json
            for page in (1, 2, 3)
        ]
        assert [photo["id"] for page in pages for photo in page["items"]] == [
            photo["id"] for photo in expected
        ], query
        assert {page["total"] for page in pages} == {len(expected)}, query
        found.add(len(expected))
    assert found == set(range(len(kinds) + 1)), "the filters tell the photos apart"


def passes(photo, query):
    """Whether a photo's detail has what the query asks for."""
    analysis = photo["analysis"]
    has = {
        "status": analysis["status"],
        "category": analysis["content_category"],
        "intent": analysis["intent"],
    }
    has |= {"device_id": photo["device_id"], "app": analysis["app_name"]}
    period = query.get("since", "") <= photo["original_timestamp"] < query.get("until", "~")
    return period and all(query.get(name, value) == value for name, value in has.items())


@pytest.fixture
def analysed(client, make_photo, work_queue, fake_llm, remote):
    """A function that uploads a picture of some time, and whose analysis finds this app."""
    texts = map(str, itertools.count(1))

    def add(app_name, taken, device_id="phone", **findings):
        moment = datetime.fromisoformat(taken).replace(tzinfo=UTC)
        photo = client.upload(
            make_photo(next(texts), size=(60, 60)),
            device_id=device_id,
            original_timestamp=f"{moment.timestamp() * 1000:.0f}",
        ).json["id"]
        fake_llm.answer({**FINDINGS, "app_name": app_name, **findings})
        work_queue(remote)
        return photo

    return add


def test_the_apps_are_those_with_photos_the_most_frequent_first(client, analysed, make_photo):
    assert client.get("/api/photos/apps").json == {"apps": []}
    bank = analysed("Bank", "2026-03-01")
    for app_name in ("Mail", "Maps", "Mail", ""):
        analysed(app_name, "2026-03-01")
    client.upload(make_photo("not analysed yet"))

    counts = [("Mail", 2), ("Bank", 1), ("Maps", 1)]
    expected = [{"app_name": name, "photos": photos} for name, photos in counts]
    assert client.get("/api/photos/apps").json == {"apps": expected}
    client.delete(f"/api/photos/{bank}")
    assert client.get("/api/photos/apps").json == {"apps": [expected[0], expected[2]]}
    assert client.get("/api/photos?app=Mail").json["total"] == 2
    assert client.get("/api/photos?app=mail").json["total"] == 0


def test_of_many_apps_a_hundred_are_listed(client, make_photo):
    client.upload(make_photo(size=(20, 20)))
    with database.scope():
        photo, analysis = models.Photo.get(), models.Analysis.get()
        for number in range(102):
            paths = {"original_path": f"{number}", "thumbnail_path": f"{number}t"}
            copy = models.Photo.create(**{**photo.__data__, **paths, "id": number + 2})
            found = {"id": number + 2, "photo": copy, "app_name": str(number or 101)}
            models.Analysis.create(**{**analysis.__data__, **found})

    apps = client.get("/api/photos/apps").json["apps"]
    assert len(apps) == 100
    assert apps[0] == {"app_name": "101", "photos": 2}


def test_the_timeline_counts_the_photos_of_each_month(client, analysed):
    assert client.get("/api/photos/timeline").json == {"months": []}
    chat, finance = {"content_category": "chat"}, {"content_category": "finance"}
    last = analysed("Mail", "2026-03-31T23:59:59.999", **chat)
    analysed("Bank", "2026-04-01", device_id="other", **finance)
    analysed("Mail", "2025-12-24", **finance)
    analysed("Mail", "2026-03-01", **finance)

    def months(query=""):
        return [tuple(month.values()) for month in client.get(f"/api/photos/timeline{query}").json["months"]]

    assert months() == [("2026-04", 1), ("2026-03", 2), ("2025-12", 1)]
    assert months("?app=Mail") == [("2026-03", 2), ("2025-12", 1)]
    assert months("?app=Mail&category=finance&status=done") == [("2026-03", 1), ("2025-12", 1)]
    assert months("?category=finance&intent=reminder") == [("2026-04", 1), ("2026-03", 1), ("2025-12", 1)]
    assert months("?device_id=other") == [("2026-04", 1)]
    assert months("?status=error") == months("?app=Maps") == []
    client.delete(f"/api/photos/{last}")
    assert months() == [("2026-04", 1), ("2026-03", 1), ("2025-12", 1)]


@pytest.mark.parametrize("query", ["since=2023-01-01", "order=taken", "order=taken&device_id=unknown"])
@pytest.mark.parametrize("total", [1, 40])
def test_by_time_the_latest_picture_comes_first_and_of_one_moment_the_newest_upload(
    client, make_photo, total, query
):
    picture = make_photo(size=(20, 20))
    for number in range(total):
        client.upload(picture, original_timestamp=str(1_700_000_000_000 - number % 3))
    listed = client.get(f"/api/photos?{query}&page_size=100").json

    assert listed["total"] == total
    order = [(photo["original_timestamp"], photo["id"]) for photo in listed["items"]]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "category=games",
            "category: must be one of chat, finance, notification, other, social_media, webpage",
        ),
        ("intent=buy", "intent: must be one of ignore, note, reference, remind"),
        ("order=size", "order: must be one of taken, uploaded"),
        ("since=yesterday", "since: must be a time like 2026-11-21T07:31:04"),
        ("until=2026-13-01", "until: must be a time like 2026-11-21T07:31:04"),
    ],
)
def test_a_filter_that_cannot_be_read_is_400_and_names_the_field(client, query, sentence):
    assert detail(client.get(f"/api/photos?{query}"), 400).startswith(sentence)


def test_a_search_answers_with_matches_corrections_and_near_words(client, analysed):
    analysed("Mail", "2026-03-01", visible_text="Summer camping", summary="A trip")

    found = client.get("/api/search?q=campnig&app=Mail").json
    assert [(item["matched"], item["app_name"], item["boxes"]) for item in found["items"]] == [
        (["camping"], "Mail", [])
    ]
    assert found["corrected"] == [{"word": "campnig", "matched": ["camping"]}]
    assert found["nearest"] == []
    nothing = client.get("/api/search?q=camping+glacier").json
    assert (nothing["items"], nothing["nearest"]) == ([], [{"word": "camping", "photos": 1}])


@given(st.binary(max_size=60) | st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_searched_for_is_no_error(client, typed):
    answer = client.get(f"/api/search?q={quote(typed)}")

    assert answer.status_code == 200
    assert answer.json == {"total": 0, "items": [], "corrected": [], "nearest": []}


def test_what_a_call_does_not_know_may_hold_anything(client):
    assert client.get("/api/photos?utm_source=a%00b").status_code == 200


def test_no_call_reads_all_photos(client, make_photo, work_queue):
    """Query plans: each statement of each call finds its rows by an index, in the order of the index."""
    statements = []
    photo = client.upload(make_photo(), device_id="pixel", local_media_store_id="1").json["id"]
    database.db.query_hooks.append(statements.append)
    try:
        client.upload(make_photo("other"), device_id="pixel", local_media_store_id="2")
        client.get("/api/photos?page=2")
        filters = (
            "status=pending",
            "device_id=pixel",
            "category=finance",
            "intent=note",
            "since=2020-01-01",
            "until=2020-01-01",
        )
        for number in range(len(filters) + 1):
            for query in itertools.combinations(filters, number):
                client.get(f"/api/photos?{'&'.join(query)}")
        for query in ("", "?status=done", "?intent=note", "?intent=note&status=done"):
            client.get(f"/api/analysis{query}")
        for path in (
            "/api/stats",
            f"/api/photos/{photo}",
            f"/api/photos/{photo}/image",
            "/api/photos/sync-state?device_id=pixel",
        ):
            client.get(path)
        client.post(f"/api/analysis/{photo}/reprocess")
        client.delete(f"/api/photos/{photo}")
    finally:
        database.db.query_hooks.clear()
    explained = [
        event for event in statements if event.sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE"))
    ]

    assert len(explained) > 25
    with database.scope():
        for event in explained:
            for *_, step in database.db.execute_sql(
                f"EXPLAIN QUERY PLAN {event.sql}", event.params
            ).fetchall():
                # Unfiltered, `SCAN … USING COVERING INDEX` walks the order of the list and stops at the end
                # of the page.
                grows = (
                    re.match(r"SCAN (t1|t2|photos|analyses)\b(?!.*COVERING INDEX)", step)
                    and "tallies" not in event.sql
                )
                assert not grows, f"{event.sql}\n{step}"
                few = r" IN \(|FROM tallies|count\(.* GROUP BY "
                sorts = "TEMP B-TREE" in step and not re.search(few, event.sql)
                assert not sorts, f"{event.sql}\n{step}"


def test_a_filtered_list_is_found_and_counted_in_an_index_without_a_look_at_the_rows(client, make_photo):
    """Rows are long: a filter that few of them pass would read hundreds of megabytes."""
    client.upload(make_photo())
    with database.scope():
        models.Analysis.update(content_category="other", intent="note").execute()
    filters = (
        "status=pending",
        "device_id=unknown",
        "category=other",
        "intent=note",
        "since=2020-01-01",
        "until=2090-01-01",
    )
    statements = []
    database.db.query_hooks.append(statements.append)
    try:
        for number in range(1, len(filters) + 1):
            for query in itertools.combinations(filters, number):
                assert client.get(f"/api/photos?{'&'.join(query)}").json["total"] == 1
    finally:
        database.db.query_hooks.clear()
    finding = [event for event in statements if "analyses" in event.sql and "summary" not in event.sql]

    assert len(finding) == 63 + 48, "a page of each combination, and a count of each in a period"
    with database.scope():
        for event in finding:
            steps = [
                row[-1]
                for row in database.db.execute_sql(f"EXPLAIN QUERY PLAN {event.sql}", event.params).fetchall()
            ]
            assert any(
                re.match(r"SEARCH (t1|analyses) USING COVERING INDEX analyses_\w+( \(|$)", step)
                for step in steps
            ), f"{event.sql}\n{steps}"
            assert not any("TEMP B-TREE" in step for step in steps), f"{event.sql}\n{steps}"


def test_the_original_comes_back_byte_for_byte_with_its_headers(client, make_photo):
    picture = make_photo(format="JPEG")
    photo = client.upload(picture).json["id"]
    answer = client.get(f"/api/photos/{photo}/image")

    assert answer.data == picture
    assert answer.headers["Content-Length"] == str(len(picture))
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "sandbox"
    assert (answer.headers["Cache-Control"], answer.headers["Vary"]) == ("private, no-cache", "Authorization")
    assert answer.headers["ETag"]
    assert "Content-Disposition" not in answer.headers


@pytest.mark.parametrize("kind", ["image", "thumbnail"])
def test_an_unchanged_picture_is_304_without_a_body(client, make_photo, kind):
    path = f"/api/photos/{client.upload(make_photo()).json['id']}/{kind}"
    etag = client.get(path).headers["ETag"]

    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = client.get(path, headers={"If-None-Match": sent})
        assert (answer.status_code, answer.data) == (304, b"")
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_part_of_the_original_can_be_asked_for(client, make_photo):
    picture = make_photo()
    answer = client.get(
        f"/api/photos/{client.upload(picture).json['id']}/image", headers={"Range": "bytes=100-199"}
    )

    assert answer.status_code == 206
    assert answer.data == picture[100:200]


def test_the_thumbnail_is_a_small_jpeg(client, make_photo):
    answer = client.get(f"/api/photos/{client.upload(make_photo(size=(1080, 2400))).json['id']}/thumbnail")
    thumbnail = Image.open(io.BytesIO(answer.data))

    assert answer.headers["Content-Type"] == "image/jpeg"
    assert (thumbnail.format, thumbnail.size) == ("JPEG", (230, 512))


def test_deleting_removes_photo_analysis_index_and_files(client, make_photo, settings, work_queue):
    photo = client.upload(make_photo("Perpendicular"), device_id="pixel").json["id"]
    with database.scope():
        models.Analysis.update(
            status="done", visible_text="Perpendicular", intent="note", content_category="other"
        ).execute()
        lexicon.index(photo)
    assert client.get("/api/search?q=perpendicular").json["total"] == 1

    assert client.delete(f"/api/photos/{photo}").json == {"message": "Deleted"}
    for path in (f"/api/photos/{photo}", f"/api/photos/{photo}/image", f"/api/photos/{photo}/thumbnail"):
        detail(client.get(path), 404)
    detail(client.delete(f"/api/photos/{photo}"), 404)
    assert files_of(settings) == []
    assert client.get("/api/search?q=perpendicular").json["items"] == []
    assert client.get("/api/stats").json["total_photos"] == 0
    with database.scope():
        assert models.Vocabulary.select().count() == 0


def test_a_lost_or_damaged_file_costs_that_picture_only(client, make_photo, settings):
    lost, damaged, whole = (client.upload(make_photo(text)).json["id"] for text in ("one", "two", "three"))
    paths = {
        number: settings.data_dir / client.get(f"/api/photos/{number}").json["original_path"]
        for number in (lost, damaged)
    }
    paths[lost].unlink()
    content = bytearray(paths[damaged].read_bytes())
    content[-1] ^= 1
    paths[damaged].write_bytes(content)

    assert "stored file" in detail(client.get(f"/api/photos/{lost}/image"), 500)
    assert "stored file" in detail(client.get(f"/api/photos/{damaged}/image"), 500)
    shown = client.get(f"/api/photos/{lost}/thumbnail").data
    thumbnail = settings.data_dir / client.get(f"/api/photos/{whole}").json["thumbnail_path"]
    thumbnail.unlink()
    assert client.get(f"/api/photos/{whole}/thumbnail").status_code == 200  # made anew from the picture
    assert client.get(f"/api/photos/{lost}/thumbnail").data == shown
    assert client.get(f"/api/photos/{whole}/image").status_code == 200
    assert client.delete(f"/api/photos/{lost}").status_code == 200


def test_a_batch_reports_each_file_by_itself(client, make_photo):
    first = make_photo("first")
    files = [
        (first, "a.png"),
        (b"", "b.png"),
        (b"no picture", "c.png"),
        (first, "d.png"),
        (first[:-300], "e.png"),
    ]
    answer = batch(client, *files, local_ids="1,2,3,1", timestamps="1700000000000,,,1700000001000").json

    assert answer["uploaded"] == 1
    assert answer["results"] == [
        {"id": 1, "filename": "a.png", "dedup": False},
        {"filename": "b.png", "error": "empty"},
        {"filename": "c.png", "error": "unsupported image"},
        {"id": 1, "filename": "a.png", "dedup": True},
        {"filename": "e.png", "error": "unsupported image"},
    ]


def test_a_file_over_the_limit_costs_a_batch_only_that_file(client, make_photo, small_limit):
    answer = batch(
        client, (make_photo(), "a.png"), (b"\x89PNG" + b"x" * 200_000, "b.png"), (make_photo("c"), "c.png")
    ).json

    assert answer["uploaded"] == 2
    assert answer["results"][1] == {"filename": "b.png", "error": "too large"}


def test_names_and_times_of_a_batch_are_matched_by_position(client, make_photo):
    batch(
        client,
        (make_photo("a"), "a.png"),
        (make_photo("b"), "b.png"),
        timestamps=",1700000000000",
        local_ids="x",
    )
    shown = {number: client.get(f"/api/photos/{number}").json for number in (1, 2)}

    assert shown[1]["local_media_store_id"] == "x"
    assert shown[2]["local_media_store_id"] == ""
    assert shown[2]["original_timestamp"] == "2023-11-14T22:13:20.000"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"timestamps": "1,2,3"}, "timestamps"),
        ({"local_ids": "a,b,c"}, "local_ids"),
        ({"timestamps": "1,x"}, "timestamps"),
    ],
)
def test_a_batch_with_too_many_or_unreadable_entries_is_400_and_stores_nothing(
    client, make_photo, fields, named
):
    answer = batch(client, (make_photo("a"), "a.png"), (make_photo("b"), "b.png"), **fields)

    assert detail(answer, 400).startswith(f"{named}: ")
    assert client.get("/api/photos").json["total"] == 0


def test_a_batch_needs_a_device_and_one_to_fifty_files(client, make_photo):
    picture = make_photo(size=(20, 20))

    assert detail(
        client.post("/api/photos/upload-batch", data={"files": [(io.BytesIO(picture), "a.png")]}), 400
    ).startswith("device_id: ")
    assert detail(client.post("/api/photos/upload-batch", data={"device_id": "pixel"}), 400).startswith(
        "files: "
    )
    assert "at most 50" in detail(batch(client, *[(picture, f"{number}.png") for number in range(51)]), 400)
    fifty = [(make_photo(size=(20 + number, 20)), f"{number}.png") for number in range(50)]
    assert batch(client, *fifty).json["uploaded"] == 50


def test_the_sync_state_follows_the_newest_upload(client, make_photo):
    for taken in ("1700000000000", "1800000000000", "1600000000000"):
        client.upload(make_photo(taken), device_id="pixel", original_timestamp=taken, device_name="My Phone")
    state = client.get("/api/photos/sync-state?device_id=pixel").json

    assert state == {
        "device_id": "pixel",
        "last_synced_timestamp": "2027-01-15T08:00:00.000",
        "last_synced_ts_ms": 1_800_000_000_000,
        "total_synced": 3,
    }
    device = client.get("/api/photos/devices").json["devices"][0]
    assert set(device) == {
        "device_id",
        "device_name",
        "last_synced_timestamp",
        "last_sync_time",
        "total_synced",
    }
    assert device["device_name"] == "My Phone"


def test_an_unknown_device_has_synced_nothing(client):
    assert client.get("/api/photos/sync-state?device_id=new").json == {
        "device_id": "new",
        "last_synced_timestamp": None,
        "last_synced_ts_ms": 0,
        "total_synced": 0,
    }
    assert detail(client.get("/api/photos/sync-state"), 400) == "device_id: is missing"


def test_the_start_of_a_sync_can_be_set_and_cleared(client):
    set_to = client.post(
        "/api/photos/sync-state", data={"device_id": "pixel", "since_ms": "1700000000000", "device_name": "P"}
    )
    cleared = client.post("/api/photos/sync-state", data={"device_id": "pixel", "since_ms": "0"})

    assert set_to.json["last_synced_ts_ms"] == 1_700_000_000_000
    assert cleared.json == {
        "device_id": "pixel",
        "last_synced_timestamp": None,
        "last_synced_ts_ms": 0,
        "total_synced": 0,
    }
    assert client.get("/api/photos/devices").json["devices"][0]["device_name"] == "P"
    assert (
        detail(client.post("/api/photos/sync-state", data={"since_ms": "1"}), 400) == "device_id: is missing"
    )
    assert detail(
        client.post("/api/photos/sync-state", data={"device_id": "pixel", "since_ms": "-1"}), 400
    ).startswith("since_ms: ")


def test_a_failing_database_leaves_no_file_and_no_row(app, client, make_photo, settings, monkeypatch):
    def fail(*args, **kwargs):
        raise models.peewee.OperationalError("database or disk is full")

    monkeypatch.setattr(uploads.devices, "note_upload", fail)
    answer = client.upload(make_photo())
    monkeypatch.undo()

    assert "disk is full" in detail(answer, 507)
    assert files_of(settings) == []
    assert client.get("/api/photos").json["total"] == 0
    assert client.upload(make_photo()).status_code == 200


def test_what_is_stored_is_recognisable_by_its_hash(client, make_photo):
    picture = make_photo()
    photo = client.upload(picture).json["id"]

    assert (
        client.get(f"/api/photos/{photo}/image").headers["ETag"] == f'"{hashlib.sha256(picture).hexdigest()}"'
    )
