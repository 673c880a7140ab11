"""Saved searches and opened photos, over HTTP; and the upgrade of a folder from the version before."""

import shutil
from datetime import timedelta

import pytest

import database
import search
from app import create_app
from clock import iso, utc_now
from curation import opened, searches
from database import db
from models import Analysis, Photo
from settings import Settings
from tests.support.client import Client, detail
from tests.support.library import Library

LATER = timedelta(minutes=5)


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


def uploaded_now(photo_id, moment=None):
    with database.scope():
        Photo.update(created_at=moment or utc_now() + LATER).where(Photo.id == photo_id).execute()
    return photo_id


def new_of(client):
    return {saved["name"]: saved["new"] for saved in client.get("/api/searches").json["searches"]}


def test_a_saved_search_counts_what_was_uploaded_since_it_was_opened(client, library):
    library.add("An old harbour", app_name="Maps")
    queries = {"Maps": "app:maps", "Harbour": "harbour", "Mist": "mist -harbour", "All unread": "is:unread"}
    for name, query in queries.items():
        answer = client.post("/api/searches", json={"name": name, "query": query})
        assert (answer.status_code, answer.json["new"]) == (200, 0)
        assert (answer.json["name"], answer.json["query"]) == (name, query)
    assert new_of(client) == dict.fromkeys(queries, 0)

    uploaded_now(library.add("A new harbour", app_name="Maps"))
    uploaded_now(library.add("Harbour in the mist"))
    uploaded_now(library.add("Mist"))
    uploaded_now(library.add(""))  # waits for its text
    assert new_of(client) == {"All unread": 4, "Harbour": 2, "Maps": 1, "Mist": 1}


def test_what_was_opened_is_not_new(client, library):
    saved = client.post("/api/searches", json={"name": "Harbour", "query": "harbour"}).json
    first = uploaded_now(library.add("A harbour"), utc_now() + timedelta(milliseconds=20))
    assert new_of(client) == {"Harbour": 1}

    with database.scope():
        assert searches.mark_opened(saved["id"], now=utc_now() + LATER)["new"] == 0
    assert new_of(client) == {"Harbour": 0}
    uploaded_now(library.add("Another harbour"), utc_now() + 2 * LATER)
    assert new_of(client) == {"Harbour": 1}
    answer = client.post(f"/api/searches/{saved['id']}/opened").json
    assert (answer["id"], answer["new"], answer["created_at"]) == (saved["id"], 0, saved["created_at"])

    assert client.post(f"/api/photos/{first}/opened").json == {"message": "Opened"}


def test_a_search_in_the_list_counts_no_more_than_its_limits(client, library, monkeypatch):
    client.post("/api/searches", json={"name": "Harbour", "query": "harbour"})
    client.post("/api/searches", json={"name": "Not mist", "query": "-mist"})
    for _ in range(6):
        uploaded_now(library.add("A harbour"))

    monkeypatch.setattr(searches, "MOST_NEW", 4)
    assert new_of(client) == {"Harbour": 4, "Not mist": 4}
    monkeypatch.setattr(searches, "LOOKED_AT", 3)
    assert new_of(client) == {"Harbour": 3, "Not mist": 3}


@pytest.mark.parametrize("query", ["app:", "12:30", '"', "-", "before:yesterday", "😀", "a" * 1_000])
def test_any_text_can_be_saved_and_counted(client, library, query):
    uploaded_now(library.add("12:30"))
    saved = client.post("/api/searches", json={"name": "n", "query": query})

    assert saved.status_code == 200
    assert client.get("/api/searches").status_code == 200


def test_a_name_is_given_once_and_can_be_given_again_after_deletion(client):
    first = client.post("/api/searches", json={"name": "  My\nsearch ", "query": " x "}).json
    assert (first["name"], first["query"]) == ("My search", "x")
    again = {"name": "MY SEARCH", "query": "y"}
    assert detail(client.post("/api/searches", json=again), 409) == "A search with this name is saved already"

    assert client.delete(f"/api/searches/{first['id']}").json == {"message": "Deleted"}
    assert client.post("/api/searches", json=again).json["id"] != first["id"]
    assert [saved["name"] for saved in client.get("/api/searches").json["searches"]] == ["MY SEARCH"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": " \n", "query": "x"}, "name"),
        ({"name": "", "query": "x"}, "name"),
        ({"name": "x" * 101, "query": "x"}, "name"),
        ({"name": "x", "query": " "}, "query"),
        ({"name": "x", "query": "x" * 1_001}, "query"),
        ({"name": "x"}, "query"),
        ({"query": "x"}, "name"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_the_field(client, body, field):
    assert detail(client.post("/api/searches", json=body), 400).startswith(f"{field}: ")


def test_a_hundred_searches_can_be_saved(client):
    with database.scope():
        for number in range(searches.MOST_SEARCHES):
            searches.save(f"search {number}", "x", now=utc_now())

    refused = client.post("/api/searches", json={"name": "one more", "query": "x"})
    assert detail(refused, 400) == "name: there are 100 saved searches already; delete one first"
    assert len(client.get("/api/searches").json["searches"]) == 100


def test_an_unknown_search_or_photo_is_not_found(client):
    for method, path in (
        (client.delete, "/api/searches/7"),
        (client.post, "/api/searches/7/opened"),
        (client.post, "/api/photos/7/opened"),
    ):
        detail(method(path), 404)


def test_a_search_over_http_takes_operators(client, library):
    old = library.add("The harbour", app_name="Google Maps")
    new = library.add("The harbour", app_name="Mail")

    def found(**query):
        return [item["id"] for item in client.get("/api/search", query_string=query).json["items"]]

    assert found(q='app:"google maps"') == found(q="harbour -app:mail") == [old]
    assert found(q="is:unread") == [new, old]
    client.post(f"/api/photos/{old}/opened")
    assert found(q="is:unread") == [new]
    assert found(q="harbour -is:unread") == [old]


def test_what_a_photo_holds_follows_the_text_that_a_person_corrects(client, library):
    photo_id = library.add("A harbour at https://a.example.org")

    def found():
        return [item["id"] for item in client.get("/api/search?q=has:link").json["items"]]

    assert found() == [photo_id]
    assert (
        client.patch(f"/api/photos/{photo_id}", json={"text": "No address", "tags": ["Trip"]}).status_code
        == 200
    )
    assert found() == []
    assert client.get("/api/search?q=tag:TRIP").json["total"] == 1
    assert client.patch(f"/api/photos/{photo_id}", json={"text": ""}).status_code == 200
    assert found() == [photo_id]


def test_everything_deleted_includes_the_saved_searches(client):
    client.post("/api/searches", json={"name": "Mine", "query": "x"})
    client.post("/api/data/clear", json={"confirm": "delete everything"})
    assert new_of(client) == {}


def test_a_photo_in_the_trash_cannot_be_opened(client, library):
    photo_id = library.add("A harbour")
    with database.scope(), db.atomic():
        Analysis.delete().where(Analysis.photo == photo_id).execute()
        with pytest.raises(Exception, match="not found"):
            opened.open_photo(photo_id)


def test_a_folder_of_the_version_before_gets_marks_for_its_photos(tmp_path, monkeypatch):
    """They count as opened, and hold what their analyses say."""
    before = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, before)
    for step in before.glob("00*.*"):
        if step.name >= "0012":
            step.unlink()
    settings = Settings(data_dir=tmp_path / "data", language="en")
    with monkeypatch.context() as earlier:
        earlier.setattr(database, "MIGRATIONS", before)
        database.open_store(settings)
        now = iso(utc_now())
        with database.scope(), db.atomic():
            for number, entities in enumerate(
                ('[{"type":"link","value":"a.example"},{"type":"date","value":"May 1"}]',
                 '[{"type":"person","value":"\\"type\\":\\"code\\""}]', "[]"), 1,
            ):  # fmt: skip
                db.execute_sql(
                    "INSERT INTO photos (id, device_id, device_name, local_media_store_id, filename,"
                    " original_path, thumbnail_path, file_size, width, height, mime_type, source_type,"
                    " original_timestamp, created_at, sha256, key_generation)"
                    " VALUES (?, 'd', '', '', 'a', ?, ?, 1, 1, 1, 'image/png', '', ?, ?, x'', 1)",
                    (number, f"o{number}", f"t{number}", now, now),
                )
                db.execute_sql(
                    "INSERT INTO analyses (photo_id, device_id, status, entities, created_at, due_at)"
                    " VALUES (?, 'd', 'done', ?, ?, ?)",
                    (number, entities, now, now),
                )
        database.close_store()

    client = Client(create_app(settings))
    with database.scope():
        for query, expected in (
            ("has:link", [1]), ("has:date", [1]), ("has:code", []), ("is:unread", []), ("-has:link", [3, 2]),
        ):  # fmt: skip
            assert [hit.photo_id for hit in search.find(query, now=utc_now()).items] == expected, query
    assert client.get("/api/searches").json == {"searches": []}
    database.close_store()
