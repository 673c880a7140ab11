"""What a person decides about photos: keep, throw away, own words, tags, many at once, and what retention
spares. All of it through the API, the jobs and the clean-up.
"""

import contextlib
import dataclasses
import io
import itertools
import json
import shutil
import threading
import zipfile
from datetime import timedelta

import pytest

import database
import lexicon
import models
from analysis.pool import Worker
from app import create_app
from assistant import tools
from clock import iso, utc_now
from curation import retention
from models import Analysis, Dynamic
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS
from upkeep import check, cleanup, findings

DAY = timedelta(days=1)


@pytest.fixture
def stored(client):
    """`stored("text", …)`: upload a picture for each text, analysed as if the text stood on it; their ids."""

    def store(*texts, **fields):
        ids = []
        for text in texts:
            photo_id = client.upload(draw(text, size=(40, 40)), f"{text}.png", **fields).json["id"]
            result = {"status": "done", "visible_text": text, "title": f"About {text}", "reads_left": 0}
            with database.scope():
                Analysis.update(summary=f"It says {text}.", **result).where(
                    Analysis.photo == photo_id
                ).execute()
                lexicon.index(photo_id)
            ids.append(photo_id)
        return ids

    return store


def found(client, query):
    return [item["id"] for item in client.get(f"/api/search?q={query}").json["items"]]


def listed(client, query=""):
    page = client.get(f"/api/photos{query}").json
    assert page["total"] == len(page["items"])
    return [item["id"] for item in page["items"]]


def is_sound(settings):
    """Whether the integrity check finds nothing."""
    return [str(kind) for kind in check.check(settings, findings.Orders(now=utc_now())) if kind.wrong] == []


def batch(client, action, ids, **more):
    answer = client.post("/api/photos/batch", json={"ids": ids, "action": action, **more})
    assert answer.status_code == 200, answer.json
    return answer.json


# ------------------------------------------------------------------------------------------------------ trash


def test_a_photo_in_the_trash_is_in_the_list_of_the_trash_alone_and_comes_back_as_it_was(
    client, settings, stored
):
    (photo,) = stored("Invoice 4711")
    client.patch(f"/api/photos/{photo}", json={"kept": True, "tags": ["Work"], "note": "for taxes"})
    before = client.get(f"/api/photos/{photo}").json
    assert (listed(client), found(client, "invoice"), found(client, "taxes")) == ([photo], [photo], [photo])

    assert client.post(f"/api/photos/{photo}/trash").status_code == 200
    for part in ("", "/lines", "/state", "/image", "/thumbnail"):
        detail(client.get(f"/api/photos/{photo}{part}"), 404)
    detail(client.patch(f"/api/photos/{photo}", json={"kept": False}), 404)
    detail(client.post(f"/api/analysis/{photo}/reprocess"), 404)
    for query in ("", "?status=done", "?kept=true", "?tag=work", "?since=2020-01-01", "?order=taken"):
        assert listed(client, query) == []
    assert found(client, "invoice") == found(client, "taxes") == found(client, "work") == []
    assert client.get("/api/stats").json["total_photos"] == 0
    amounts = client.get("/api/data/stats").json
    assert (amounts["total_photos"], amounts["kept_photos"], amounts["trashed_photos"]) == (0, 0, 1)
    assert client.get("/api/photos/tags").json["tags"] == []
    assert is_sound(settings)
    (item,) = client.get("/api/photos?trash=true").json["items"]
    assert item["deleted_at"]
    assert {name: item[name] for name in ("id", "title", "summary", "kept", "tags", "note")} == {
        name: before[name] for name in ("id", "title", "summary", "kept", "tags", "note")
    }
    for part in ("image", "thumbnail"):
        assert client.get(f"/api/photos/{photo}/{part}?trash=true").status_code == 200

    assert client.post(f"/api/photos/{photo}/restore").status_code == 200
    assert client.get(f"/api/photos/{photo}").json == before
    assert (found(client, "invoice"), found(client, "taxes")) == ([photo], [photo])
    assert listed(client, "?kept=true") == listed(client, "?tag=WORK") == [photo]
    assert listed(client, "?trash=true") == []
    detail(client.get(f"/api/photos/{photo}/image?trash=true"), 404)
    assert is_sound(settings)


def test_the_list_of_the_trash_shows_what_was_thrown_away_last_first_and_takes_no_filter(client, stored):
    first, second, third = stored("one", "two", "three")
    for photo in (second, third, first):
        client.post(f"/api/photos/{photo}/trash")
    client.post(f"/api/photos/{third}/trash")

    assert listed(client, "?trash=true") == [first, third, second], "thrown away again, it keeps its time"
    page = client.get("/api/photos?trash=true&page=2&page_size=2").json
    assert (page["total"], [item["id"] for item in page["items"]]) == (3, [second])
    for query in ("kept=true", "tag=a", "status=done", "since=2020-01-01"):
        assert "trash" in detail(client.get(f"/api/photos?trash=true&{query}"), 400)


@pytest.mark.parametrize("call", ["trash", "restore"])
def test_an_unknown_photo_is_neither_thrown_away_nor_brought_back(client, call):
    detail(client.post(f"/api/photos/7/{call}"), 404)


@pytest.mark.slow
def test_a_trashed_photo_is_deleted_for_good_by_delete_by_emptying_and_with_everything(
    client, settings, stored
):
    one, two, three = stored("one", "two", "three")
    for photo in (one, two, three):
        client.patch(f"/api/photos/{photo}", json={"note": "mine", "tags": ["a"]})
        client.post(f"/api/photos/{photo}/trash")

    assert client.delete(f"/api/photos/{one}").status_code == 200
    detail(client.post(f"/api/photos/{one}/restore"), 404)
    assert listed(client, "?trash=true") == [three, two]
    assert client.post("/api/photos/trash/empty").json == {"deleted": 2}
    assert listed(client, "?trash=true") == []
    (four,) = stored("four")
    client.patch(f"/api/photos/{four}", json={"note": "mine", "tags": ["a"], "kept": True})
    client.post(f"/api/photos/{four}/trash")
    assert client.post("/api/data/clear", json={"confirm": "delete everything"}).json["photos"] == 1

    assert not [path for path in (settings.data_dir / "photos").rglob("*") if path.is_file()]
    with database.scope():
        for table in (models.Trash, models.OwnWords, models.PhotoTag, models.Tally):
            assert table.select().count() == 0, table
    assert is_sound(settings)


def test_a_phone_that_uploads_again_does_not_bring_back_what_was_thrown_away(client):
    same = {"device_id": "phone", "local_media_store_id": "7"}
    photo = client.upload(draw("a"), **same).json["id"]
    client.post(f"/api/photos/{photo}/trash")

    again = client.upload(draw("a"), **same).json
    assert (again["id"], again["dedup"]) == (photo, True)
    assert listed(client) == []
    assert listed(client, "?trash=true") == [photo]


def test_a_photo_that_waits_in_the_trash_costs_no_call_and_waits_again_when_it_is_back(
    client, remote, fake_llm, work_queue, clock
):
    photo = client.upload(draw("a")).json["id"]
    client.post(f"/api/photos/{photo}/trash")
    assert work_queue(remote, clock=clock) == 0
    assert not fake_llm.requests

    client.post(f"/api/photos/{photo}/restore")
    assert work_queue(remote, clock=clock) == 1
    assert client.get(f"/api/photos/{photo}").json["analysis"]["status"] == "done"


@pytest.mark.parametrize("brought_back", [False, True])
def test_the_result_of_an_analysis_in_progress_does_not_bring_a_photo_back(
    client, remote, fake_llm, clock, work_queue, brought_back
):
    photo = client.upload(draw("a")).json["id"]

    with contextlib.closing(Worker(remote, clock=clock)) as worker:
        let_go = threading.Event()
        fake_llm.answer(FINDINGS, after=let_go)
        running = threading.Thread(target=worker.work)
        running.start()
        fake_llm.wait_for_requests(1)
        client.post(f"/api/photos/{photo}/trash")
        if brought_back:
            client.post(f"/api/photos/{photo}/restore")
        let_go.set()
        running.join()

    assert listed(client) == ([photo] if brought_back else [])
    assert found(client, "library") == []
    if not brought_back:
        client.post(f"/api/photos/{photo}/restore")
    assert client.get(f"/api/photos/{photo}").json["analysis"]["status"] == "pending"
    fake_llm.answer(FINDINGS)
    assert work_queue(remote, clock=clock) == 1
    assert found(client, "library") == [photo]


def test_the_assistant_neither_finds_nor_opens_what_is_in_the_trash(client, stored):
    (photo,) = stored("Invoice 4711")
    client.post(f"/api/photos/{photo}/trash")
    with tools.Toolbox(client.app.settings, device_id="", own_words=(), recalled=(), clock=utc_now) as box:
        assert box.run("search_knowledge_base", json.dumps({"query": "invoice"}))["results"] == []
        assert box.run("search_knowledge_base", "{}")["results"] == []
        assert "error" in box.run("get_screenshot", json.dumps({"id": photo}))


def test_an_export_leaves_the_trash_out_unless_it_is_asked_for(client, stored):
    here, away = stored("here", "away")
    client.patch(f"/api/photos/{away}", json={"note": "mine", "tags": ["a"]})
    client.post(f"/api/photos/{away}/trash")

    def exported(query):
        archive = zipfile.ZipFile(io.BytesIO(client.get(f"/api/data/export{query}").data))
        pictures = [name for name in archive.namelist() if name.endswith(".png")]
        rows = {name: json.loads(archive.read(name)) for name in archive.namelist() if "json" in name}
        return len(pictures), [row["id"] for row in rows["photos.json"]], rows.get("trash.json")

    assert exported("") == (1, [here], None)
    number, ids, (record,) = exported("?trash=true")
    assert (number, ids) == (2, [here])
    assert (record["id"], record["note"], record["tags"]) == (away, "mine", ["a"])
    assert record["file"]


# -------------------------------------------------------------------------------------------------- own words


def test_own_words_are_shown_and_searched_in_place_of_the_analysis_and_can_be_taken_back(
    client, settings, stored
):
    photo, _ = stored("Umbrella 4711", "something else")
    before = client.get(f"/api/photos/{photo}").json
    changed = client.patch(
        f"/api/photos/{photo}",
        json={
            "title": " My\nparasol ",
            "summary": "Bought in Kyoto.",
            "text": "Parasol 4712",
            "note": "gift",
        },
    ).json

    assert (changed["title"], changed["summary"]) == ("My parasol", "Bought in Kyoto.")
    assert (changed["text"], changed["note"]) == ("Parasol 4712", "gift")
    assert changed["own"] == ["title", "summary", "text"]
    assert changed["analysis"] == before["analysis"]
    for word in ("parasol", "kyoto", "4712", "gift"):
        assert found(client, word) == [photo], word
    assert found(client, "umbrella") == []
    (item,) = client.get("/api/photos?page_size=1&page=2").json["items"]
    assert (item["title"], item["summary"], item["note"]) == ("My parasol", "Bought in Kyoto.", "gift")

    back = {"title": "", "summary": None, "text": "", "note": None}
    assert client.patch(f"/api/photos/{photo}", json=back).json == before
    assert (found(client, "umbrella"), found(client, "parasol")) == ([photo], [])
    with database.scope():
        assert models.OwnWords.select().count() == 0
    assert is_sound(settings)


def test_an_analysis_never_overwrites_own_words(client, remote, fake_llm, clock, work_queue, stored):
    (photo,) = stored("Umbrella")
    mine = {"title": "Mine", "summary": "My own.", "text": "Parasol", "note": "gift", "tags": ["rain"]}
    client.patch(f"/api/photos/{photo}", json={**mine, "kept": True})
    client.post(f"/api/analysis/{photo}/reprocess")
    fake_llm.answer({**FINDINGS, "summary": "Another summary.", "visible_text": "Another text"})
    work_queue(remote, clock=clock)

    shown = client.get(f"/api/photos/{photo}").json
    assert shown["analysis"]["summary"] == "Another summary."
    assert {name: shown[name] for name in (*mine, "kept")} == {**mine, "kept": True}
    assert found(client, "parasol") == found(client, "rain") == [photo]
    assert found(client, "another") == []


def test_a_word_in_a_title_or_a_tag_ranks_before_the_same_word_in_a_text(client, stored):
    in_title, in_tag, in_text = stored("first thing", "second thing", "a zebra and some other words")
    client.patch(f"/api/photos/{in_title}", json={"title": "zebra"})
    client.patch(f"/api/photos/{in_tag}", json={"tags": ["zebra"]})

    assert set(found(client, "zebra")[:2]) == {in_title, in_tag}
    assert found(client, "zebra")[2] == in_text


def test_the_assistant_reads_own_words(client, stored):
    (photo,) = stored("Umbrella")
    client.patch(
        f"/api/photos/{photo}",
        json={"title": "Parasol", "summary": "Mine.", "text": "Sun", "note": "gift", "tags": ["rain"]},
    )
    with tools.Toolbox(client.app.settings, device_id="", own_words=(), recalled=(), clock=utc_now) as box:
        (hit,) = box.run("search_knowledge_base", json.dumps({"query": "gift"}))["results"]
        (shown,) = box.run("get_screenshot", json.dumps({"id": photo}))["results"]
    assert (hit["title"], hit["summary"]) == ("Parasol", "Mine.")
    assert (shown["visible_text"], shown["note"], shown["tags"]) == ("Sun", "gift", ["rain"])


def test_tags_that_differ_in_case_are_one_and_are_listed_with_their_numbers(client, stored):
    one, two = stored("one", "two")
    tags = client.patch(f"/api/photos/{one}", json={"tags": ["Büro", " work  home ", "BÜRO", "会议"]}).json[
        "tags"
    ]
    client.patch(f"/api/photos/{two}", json={"tags": ["buro"]})

    assert tags == ["Büro", "work home", "会议"]
    counts = {row["tag"]: row["photos"] for row in client.get("/api/photos/tags").json["tags"]}
    assert counts == {"Büro": 2, "work home": 1, "会议": 1}
    assert listed(client, "?tag=BURO") == [two, one]
    assert listed(client, "?tag=buro&status=done&order=taken") == [two, one]
    assert listed(client, "?tag=buro&status=error") == listed(client, "?tag=buro&kept=true") == []
    client.patch(f"/api/photos/{one}", json={"tags": []})
    assert [row["tag"] for row in client.get("/api/photos/tags").json["tags"]] == ["buro"]
    assert listed(client, "?tag=work%20home") == []


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"tags": "a"}, "tags: must be a list"),
        ({"tags": [""]}, "tags: each entry must not be empty"),
        ({"tags": [" "]}, "tags: a tag must not be empty"),
        ({"tags": ["a" * 51]}, "tags: each entry must be at most 50 characters"),
        ({"tags": [3]}, "tags: each entry must be a text"),
        ({"tags": [str(number) for number in range(31)]}, "tags: must have at most 30 entries"),
        ({"title": "x" * 201}, "title: must be at most 200 characters"),
        ({"summary": "x" * 2_001}, "summary: must be at most 2,000 characters"),
        ({"note": "x" * 10_001}, "note: must be at most 10,000 characters"),
        ({"text": "x" * 200_001}, "text: must be at most 200,000 characters"),
        ({"kept": None}, "kept: must be true or false"),
        ({"title": "a\0"}, "title: must not contain a NUL character"),
    ],
)
def test_what_is_too_long_or_of_another_kind_is_refused_by_name_and_changes_nothing(
    client, stored, body, sentence
):
    (photo,) = stored("one")
    before = client.get(f"/api/photos/{photo}").json

    assert detail(client.patch(f"/api/photos/{photo}", json={"kept": True, **body}), 400) == sentence
    assert client.get(f"/api/photos/{photo}").json == before


@pytest.mark.slow
def test_the_longest_own_words_are_stored_found_and_shown(client, settings, stored):
    (photo,) = stored("one")
    longest = {"title": "t" * 200, "summary": "s" * 2_000, "note": "n" * 10_000, "text": "word " * 40_000}
    shown = client.patch(f"/api/photos/{photo}", json=longest).json

    assert {name: shown[name] for name in longest} == {**longest, "text": longest["text"].strip()}
    assert found(client, "word") == [photo]
    assert is_sound(settings)


# ----------------------------------------------------------------------------------------------- many at once


def test_a_batch_does_one_thing_to_many_and_names_what_is_missing(client, settings, stored):
    one, two, three = ids = stored("one", "two", "three")

    assert batch(client, "keep", [one, two, 99, one]) == {"done": 2, "missing": [99]}
    assert listed(client, "?kept=true") == [two, one]
    assert batch(client, "unkeep", [one]) == {"done": 1, "missing": []}
    assert batch(client, "tag", ids, tag="Work") == batch(client, "tag", ids, tag="work")
    assert listed(client, "?tag=work") == found(client, "work") == [three, two, one]
    assert batch(client, "untag", [two, three], tag="WORK") == {"done": 2, "missing": []}
    assert listed(client, "?tag=work") == found(client, "work") == [one]
    assert batch(client, "trash", [two, three]) == {"done": 2, "missing": []}
    assert batch(client, "keep", ids) == {"done": 1, "missing": [two, three]}
    assert batch(client, "restore", ids) == {"done": 3, "missing": []}
    assert listed(client, "?kept=true") == [two, one]
    assert batch(client, "reprocess", [one, 99]) == {"done": 1, "missing": [99]}
    assert listed(client, "?status=pending") == [one]
    batch(client, "trash", [one])
    assert batch(client, "delete", [one, two, 99]) == {"done": 2, "missing": [99]}
    assert listed(client) == [three]
    assert is_sound(settings)


@pytest.mark.parametrize(
    ("action", "verb", "failing"),
    [("trash", "remove_all", 1), ("tag", "_shown", 2), ("delete", "remove_all", 1)],
)
def test_a_batch_that_fails_in_the_middle_changes_nothing(
    client, settings, stored, monkeypatch, action, verb, failing
):
    ids = stored("one", "two", "three")
    client.patch(f"/api/photos/{ids[0]}", json={"tags": ["a"]})
    before = [client.get(f"/api/photos/{photo}").json for photo in ids]
    whole, calls = getattr(lexicon, verb), itertools.count(1)

    def fail(*arguments):
        result = whole(*arguments)
        if next(calls) == failing:
            raise RuntimeError("a crash in the middle")
        return result

    with monkeypatch.context() as patched:
        patched.setattr(lexicon, verb, fail)
        body = {"ids": ids, "action": action, "tag": "b"}
        assert client.post("/api/photos/batch", json=body).status_code == 500

    assert next(calls) > failing
    assert [client.get(f"/api/photos/{photo}").json for photo in ids] == before
    assert found(client, "three") == [ids[2]]
    assert is_sound(settings)


def test_a_tag_too_many_on_one_photo_tags_none_of_them(client, stored):
    one, two = stored("one", "two")
    client.patch(f"/api/photos/{two}", json={"tags": [f"tag {number}" for number in range(30)]})

    answer = client.post("/api/photos/batch", json={"ids": [one, two], "action": "tag", "tag": "more"})
    assert f"photo {two}" in detail(answer, 400)
    assert listed(client, "?tag=more") == []


@pytest.mark.parametrize(
    "body",
    [
        {"ids": [], "action": "keep"},
        {"ids": [1] * 501, "action": "keep"},
        {"ids": ["a"], "action": "keep"},
        {"ids": [0], "action": "keep"},
        {"ids": [1], "action": "tag"},
        {"ids": [1], "action": "burn"},
    ],
)
def test_a_batch_of_nothing_of_too_much_or_of_something_else_is_refused(client, body):
    detail(client.post("/api/photos/batch", json=body), 400)


def test_the_originals_of_chosen_photos_come_as_one_zip(client, make_photo):
    pictures = [make_photo(f"Number {number}") for number in range(2)]
    ids = [
        client.upload(picture, "截图.png", original_timestamp="1700000000000").json["id"]
        for picture in pictures
    ]
    answer = client.post("/api/photos/export", json={"ids": [*ids, 999]})

    with zipfile.ZipFile(io.BytesIO(answer.data)) as archive:
        assert archive.namelist() == ["截图.png", "截图 (2).png"]
        assert [archive.read(name) for name in archive.namelist()] == pictures
        assert archive.infolist()[0].date_time == (2023, 11, 14, 22, 13, 20)
        assert archive.infolist()[0].flag_bits & 0x800, "the name is UTF-8"


def test_a_damaged_original_is_left_out_of_the_zip_and_named_in_it(client, settings, stored):
    whole, damaged = stored("whole", "damaged")
    path = settings.data_dir / client.get(f"/api/photos/{damaged}").json["original_path"]
    path.write_bytes(path.read_bytes()[:-20])
    with zipfile.ZipFile(
        io.BytesIO(client.post("/api/photos/export", json={"ids": [damaged, whole]}).data)
    ) as archive:
        assert archive.namelist() == ["whole.png", "left-out.json"]
        assert json.loads(archive.read("left-out.json")) == [{"photo_id": damaged, "file": "damaged.png"}]
    detail(client.post("/api/photos/export", json={"ids": [99]}), 404)


# -------------------------------------------------------------------------------------------------- retention


def test_retention_spares_what_is_kept_and_the_trash_has_its_own_time(client, settings, stored):
    kept, _, thrown_away = stored("kept", "old", "thrown")
    client.patch(f"/api/photos/{kept}", json={"kept": True})
    now = utc_now()
    batch(client, "trash", [thrown_away])

    dry = cleanup.clean(settings, now=now + 29 * DAY, dry_run=True)
    assert (dry.photos, dry.trash, dry.kept) == (0, 0, 0)
    for dry_run in (True, False):
        cleaned = cleanup.clean(settings, now=now + 31 * DAY, dry_run=dry_run)
        assert (cleaned.photos, cleaned.trash, cleaned.kept) == (1, 1, 1)
        assert cleaned.bytes > 0
    assert listed(client) == [kept]
    assert listed(client, "?trash=true") == []
    assert len([path for path in (settings.data_dir / "photos").rglob("*") if path.is_file()]) == 2
    assert is_sound(settings)


def test_an_old_photo_has_its_whole_time_in_the_trash(client, settings, stored):
    (photo,) = stored("old")
    now = utc_now()
    with database.scope():
        models.Photo.update(created_at=now - 400 * DAY).execute()
    client.post(f"/api/photos/{photo}/trash")

    assert cleanup.clean(settings, now=now + 29 * DAY).trash == 0
    assert client.post(f"/api/photos/{photo}/restore").status_code == 200
    assert cleanup.clean(settings, now=now + 29 * DAY).photos == 1


def test_a_retention_of_nothing_still_empties_the_trash(client, settings, stored):
    one, two = stored("one", "two")
    client.put("/api/data/retention", json={"retention_days": 0})
    client.post(f"/api/photos/{one}/trash")

    cleaned = cleanup.clean(settings, now=utc_now() + 31 * DAY)
    assert (cleaned.photos, cleaned.trash) == (0, 1)
    assert listed(client) == [two]


def age(ids, days):
    with database.scope():
        for number, photo in enumerate(ids):
            moment = utc_now() - days * DAY + timedelta(minutes=number)
            models.Photo.update(created_at=moment).where(models.Photo.id == photo).execute()


def test_what_retention_deletes_within_a_week_is_shown_and_can_be_kept(client, stored):
    soon, later, kept, thrown_away = stored("soon", "later", "kept", "thrown")
    age([soon, kept, thrown_away], 25)
    age([later], 22)
    client.patch(f"/api/photos/{kept}", json={"kept": True})
    client.post(f"/api/photos/{thrown_away}/trash")

    shown = client.get("/api/photos/expiring").json
    assert (shown["total"], [item["id"] for item in shown["items"]]) == (1, [soon])
    assert shown["from"] == shown["until"]
    assert shown["from"][:10] == iso(utc_now() + 5 * DAY)[:10]
    assert client.post("/api/photos/expiring/keep").json == {"kept": 1}
    empty = {"total": 0, "from": None, "until": None, "items": []}
    assert client.get("/api/photos/expiring").json == empty
    assert set(listed(client, "?kept=true")) == {soon, kept}

    client.put("/api/data/retention", json={"retention_days": 0})
    assert client.get("/api/photos/expiring").json == empty
    assert client.post("/api/photos/expiring/keep").json == {"kept": 0}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_note_tells_once_of_what_will_be_deleted_and_is_rewritten_while_it_is_unread(
    client, settings, stored, language
):
    object.__setattr__(settings, "language", language)
    first, second, third = stored("first", "second", "third")
    now = utc_now()

    def warned(at):
        with database.scope():
            return retention.warn(settings, now=at)

    assert not warned(now)
    age([first], 25)
    assert warned(now)
    (note,) = client.get("/api/dynamics").json["items"]
    assert (note["category"], note["is_read"]) == ("reminder", False)
    assert "1" in note["title"]
    assert json.loads(client.get(f"/api/dynamics/{note['id']}").json["source_photo_ids"]) == [first]

    age([second], 24)
    assert not warned(now + timedelta(hours=23)), "one a day at most"
    assert warned(now + DAY)
    (rewritten,) = client.get("/api/dynamics").json["items"]
    assert (rewritten["id"], "2" in rewritten["title"]) == (note["id"], True)
    assert not warned(now + 2 * DAY), "each photo is told of once"

    client.put(f"/api/dynamics/{note['id']}/read")
    age([third], 23)
    assert warned(now + 3 * DAY)
    assert len(client.get("/api/dynamics").json["items"]) == 2

    client.put("/api/data/retention", json={"retention_days": 7})
    assert not warned(now + 9 * DAY), "with a week or less, every new photo would be told of"


def test_the_nightly_job_says_what_it_spares_and_writes_the_note(client, cli, stored):
    kept, soon = stored("kept", "soon")
    age([kept], 40)
    age([soon], 25)
    client.patch(f"/api/photos/{kept}", json={"kept": True})

    assert "0 photos, 0 from the trash" in cli.invoke(args=["jobs", "cleanup", "--dry-run"]).output
    assert client.get("/api/dynamics").json["items"] == []
    assert "; 1 older photos are kept (" in cli.invoke(args=["jobs", "cleanup"]).output
    with database.scope():
        assert Dynamic.select().count() == 1


# ---------------------------------------------------------------------------------------- the data as a whole


@pytest.fixture
def version_before(client, settings, tmp_path, monkeypatch):
    """`version_before()`: settings of a folder of the version before, with the photos of `client`."""

    def make():
        copied = ("photos", "analyses", "readings", "vocabulary")
        with database.scope():
            rows = {name: database.db.execute_sql(f"SELECT * FROM {name}").fetchall() for name in copied}
            columns = {name: [column.name for column in database.db.get_columns(name)] for name in copied}
            index = {photo: lexicon.document_of(photo).tokens() for photo, *_ in rows["photos"]}
        database.close_store()
        steps = tmp_path / "migrations"
        steps.mkdir()
        for step in database.MIGRATIONS.glob("00*"):
            if step.name < "0011":
                shutil.copy(step, steps)
        before = dataclasses.replace(settings, data_dir=tmp_path / "before")
        with monkeypatch.context() as patched:
            patched.setattr(database, "MIGRATIONS", steps)
            database.open_store(before)
        with database.scope():
            for name in copied:
                known = [column.name for column in database.db.get_columns(name)]
                marks = ", ".join("?" * len(known))
                for row in rows[name]:
                    values = dict(zip(columns[name], row, strict=True))
                    database.db.execute_sql(
                        f"INSERT INTO {name} ({', '.join(known)}) VALUES ({marks})",
                        [values[column] for column in known],
                    )
            for entry in index.items():
                database.db.execute_sql("INSERT INTO photo_index(rowid, tokens) VALUES (?, ?)", entry)
            assert "trash" not in database.db.get_tables()
        database.close_store()
        shutil.copytree(settings.data_dir / "photos", before.data_dir / "photos", dirs_exist_ok=True)
        return before

    return make


def test_a_folder_of_the_version_before_is_migrated_with_its_photos(stored, version_before):
    (photo,) = stored("Invoice 4711")
    settings = version_before()

    migrated = Client(create_app(settings))
    shown = migrated.get(f"/api/photos/{photo}").json
    assert (shown["kept"], shown["tags"], shown["note"], shown["own"]) == (False, [], "", [])
    assert found(migrated, "invoice") == [photo]
    changed = migrated.patch(f"/api/photos/{photo}", json={"kept": True, "tags": ["a"], "title": "Mine"})
    assert changed.json["title"] == "Mine"
    migrated.post(f"/api/photos/{photo}/trash")
    migrated.post(f"/api/photos/{photo}/restore")
    assert listed(migrated, "?kept=true") == [photo]
    assert is_sound(settings)


@pytest.mark.slow
def test_the_trash_survives_a_key_rotation_and_a_restored_backup(client, cli, settings, stored, tmp_path):
    (photo,) = stored("Invoice 4711")
    client.patch(f"/api/photos/{photo}", json={"note": "mine", "tags": ["a"], "kept": True})
    before = client.get(f"/api/photos/{photo}").json
    client.post(f"/api/photos/{photo}/trash")
    for arguments in (
        ("jobs", "rotate-keys", "--force", "--pictures"),
        ("backup", str(tmp_path / "backup.tar")),
        ("restore", str(tmp_path / "backup.tar")),
    ):
        done = cli.invoke(args=[*arguments])
        assert done.exit_code == 0, done.output

    database.close_store()
    restored = Client(create_app(settings))
    assert listed(restored, "?trash=true") == [photo]
    assert restored.get(f"/api/photos/{photo}/image?trash=true").status_code == 200
    restored.post(f"/api/photos/{photo}/restore")
    paths = ("original_path", "thumbnail_path")
    after = restored.get(f"/api/photos/{photo}").json
    assert {name: value for name, value in after.items() if name not in paths} == {
        name: value for name, value in before.items() if name not in paths
    }


def test_the_check_counts_kept_photos_anew(client, settings, stored):
    (photo,) = stored("one")
    client.patch(f"/api/photos/{photo}", json={"kept": True})
    with database.scope():
        database.db.execute_sql("UPDATE tallies SET photos = 7")
    assert not is_sound(settings)
    repaired = list(check.check(settings, findings.Orders(now=utc_now(), repair=True)))

    assert sum(kind.repaired for kind in repaired) == 1
    assert client.get("/api/data/stats").json["kept_photos"] == 1
