"""The stored data as a whole: counted to the byte, exported as readable files, and deleted completely."""

import contextlib
import dataclasses
import io
import json
import re
import tracemalloc
import zipfile
from datetime import timedelta

import pytest
import requests
from PIL import Image

import database
import photos
import reasoner
from app import create_app
from assistant import tools, turns
from clock import utc_now
from curation import originals
from database import db
from engines.findings import MemoryCandidate
from memory import remember
from models import (
    Analysis,
    Conversation,
    Dynamic,
    Memory,
    Message,
    Photo,
    SyncState,
    Tally,
    Vocabulary,
)
from settings import MEGABYTE
from tests.support.client import Client, detail
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import Service, eventually, together
from tests.support.undone import undo_shown
from upkeep import amounts, cleanup, export

CLEAR = {"confirm": "delete everything"}


def count(model):
    with database.scope():
        return model.select().count()


def on_disk(settings, *folders):
    return sum(
        path.stat().st_size
        for folder in folders
        for path in (settings.data_dir / folder).rglob("*")
        if path.is_file()
    )


def pictures(settings):
    """The files of pictures, thumbnails and attachments."""
    return [
        path
        for folder in ("photos", "attachments")
        for path in (settings.data_dir / folder).rglob("*")
        if path.is_file()
    ]


def say(content, picture=None, conversation_id=None):
    now = utc_now()
    with database.scope():
        return turns.begin_turn(conversation_id, content, picture, device_id="phone", now=now)


def note(title, **fields):
    with database.scope():
        return Dynamic.create(**{"title": title, "category": "note", "created_at": utc_now(), **fields}).id


def told(content):
    with database.scope():
        return remember(
            MemoryCandidate(content=content, memory_type="long_term"), source_type="chat", now=utc_now()
        ).id


# ------------------------------------------------------------------------------------------------- statistics


def test_the_statistics_match_the_disk_to_the_byte(client, settings, make_photo):
    for number in range(3):
        client.upload(make_photo(str(number), size=(300 + number, 500)))
    say("What is on this?", make_photo(format="JPEG"))
    told("Is allergic to nuts.")
    shown = client.get("/api/data/stats").json

    assert set(shown) == {
        *("total_photos", "kept_photos", "trashed_photos", "total_memories"),
        *("storage_used_bytes", "storage_free_bytes", "away_photos", "storage_away_bytes"),
    }
    assert (shown["total_photos"], shown["total_memories"]) == (3, 1)
    assert shown["storage_used_bytes"] == on_disk(settings, "photos", "attachments", "database")
    assert shown["storage_free_bytes"] > 0

    before = on_disk(settings, "photos", "attachments")
    client.delete("/api/photos/2")
    client.delete(
        f"/api/chat/conversations/{client.get('/api/chat/conversations').json['conversations'][0]['id']}"
    )
    shown = client.get("/api/data/stats").json
    assert on_disk(settings, "photos", "attachments") < before
    assert shown["storage_used_bytes"] == on_disk(settings, "photos", "attachments", "database")


def test_statistics_and_keys_read_no_row_of_a_photo(client, make_photo):
    """Nor do they list folders: the amount that they read does not grow."""
    client.upload(make_photo())
    seen = []
    database.db.query_hooks.append(seen.append)
    try:
        client.get("/api/data/stats")
        client.get("/api/data/keys")
    finally:
        database.db.query_hooks.clear()

    assert 2 < len(seen) < 8
    sums = [event.sql for event in seen if "FROM photos" in event.sql]
    with database.scope():
        plans = [database.db.execute_sql(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in sums]
    assert len(plans) == 2
    assert all("COVERING INDEX photos_sizes" in str(plan) for plan in plans)
    assert not [event.sql for event in seen if re.search(r'"(photos|analyses)" AS', event.sql)]


def test_the_migration_measures_files_that_were_stored_before_it(client, settings, make_photo):
    for number in range(2):
        client.upload(make_photo(str(number)), original_timestamp=str(1_700_000_000_000 + number))
    say("What is on this?", make_photo(format="JPEG"))
    expected = client.get("/api/data/stats").json["storage_used_bytes"] - on_disk(settings, "database")
    with database.scope():
        undo_filters()
    database.close_connections()
    later = Client(create_app(settings))

    assert (
        later.get("/api/data/stats").json["storage_used_bytes"] - on_disk(settings, "database")
        == expected
        > 10_000
    )
    assert later.get("/api/data/keys").json["files"] == [{"generation": 1, "count": 2}]
    assert [
        photo["id"] for photo in later.get("/api/photos?since=2023-11-14T22:13:20.001").json["items"]
    ] == [2]
    later.delete("/api/photos/1")
    assert later.get("/api/data/keys").json["files"] == [{"generation": 1, "count": 1}]


def undo_filters():
    """The schema as it was before 0005_filters."""
    undo_shown()
    named = db.execute_sql(
        "SELECT type, name FROM sqlite_master WHERE name = 'photos_sizes' OR sql LIKE '%taken_at%'"
    ).fetchall()
    for kind, name in named:
        if kind in ("trigger", "index"):
            db.execute_sql(f"DROP {kind} {name}")
    for index in ("analyses_category", "analyses_category_intent", "analyses_device_intent"):
        db.execute_sql(f"DROP INDEX {index}")
    for table, column in (
        ("analyses", "taken_at"),
        ("photos", "disk_bytes"),
        ("messages", "attachment_bytes"),
    ):
        db.execute_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
    for step in ("0005_filters", "0026_tallies", "0057_counts"):
        db.execute_sql("DELETE FROM schema_migration WHERE name = ?", (step,))


# -------------------------------------------------------------------------------------------- retention, keys


def test_the_retention_can_be_set_overrides_the_environment_and_applies_to_clean_up(
    client, settings, make_photo
):
    client.upload(make_photo())
    assert client.get("/api/data/retention").json["retention_days"] == 30
    assert client.put("/api/data/retention", json={"retention_days": 90}).json["retention_days"] == 90
    assert client.get("/api/data/retention").json["retention_days"] == 90
    assert Client(create_app(settings)).get("/api/data/retention").json["retention_days"] == 90

    then = utc_now() + timedelta(days=60)
    assert cleanup.clean(settings, now=then).photos == 0
    client.put("/api/data/retention", json={"retention_days": 0})
    assert cleanup.clean(settings, now=utc_now() + timedelta(days=9_999)).photos == 0
    client.put("/api/data/retention", json={"retention_days": 59})
    assert cleanup.clean(settings, now=then).photos == 1


@pytest.mark.parametrize("value", [-1, 36_501, "30", 1.5, None, True])
def test_an_invalid_retention_is_400_and_changes_nothing(client, value):
    assert (
        detail(client.put("/api/data/retention", json={"retention_days": value}), 400)
        == "retention_days: must be between 0 and 36500"
    )
    assert client.get("/api/data/retention").json == {"retention_days": 30, "chosen": False}


def test_the_retention_counts_as_chosen_once_somebody_has_set_it(client, settings):
    assert client.get("/api/data/retention").json["chosen"] is False
    by_environment = Client(create_app(dataclasses.replace(settings, retention_days=365)))
    assert by_environment.get("/api/data/retention").json == {"retention_days": 365, "chosen": True}
    # The default, too, can be a choice.
    assert client.put("/api/data/retention", json={"retention_days": 30}).json["chosen"] is True
    assert client.get("/api/data/retention").json["chosen"] is True


def test_what_another_retention_would_delete_is_counted_and_stays(client, settings, make_photo, monkeypatch):
    client.upload(make_photo())
    client.post("/api/chat/send", json={"message": "Hello", "conversation_id": "cafe"})
    with database.scope():
        Dynamic.create(title="Old", category="note", created_at=utc_now())
        Dynamic.create(title="Pinned", category="note", created_at=utc_now(), is_pinned=True)
    path = "/api/data/retention/preview"
    nothing = {"photos": 0, "conversations": 0, "dynamics": 0}
    assert client.get(f"{path}?retention_days=1").json == {"retention_days": 1, **nothing}

    monkeypatch.setattr(amounts, "utc_now", lambda: utc_now() + timedelta(days=40))
    one = {"photos": 1, "conversations": 1, "dynamics": 1}
    assert client.get(f"{path}?retention_days=30").json == {"retention_days": 30, **one}
    assert client.get(f"{path}?retention_days=41").json == {"retention_days": 41, **nothing}
    assert client.get(f"{path}?retention_days=0").json == {"retention_days": 0, **nothing}

    assert (count(Photo), count(Conversation), count(Dynamic)) == (1, 1, 2)
    assert client.get("/api/data/retention").json == {"retention_days": 30, "chosen": False}
    detail(client.get(f"{path}?retention_days=36501"), 400)


def test_the_retention_is_required(client):
    assert detail(client.put("/api/data/retention", json={}), 400) == "retention_days: is missing"


def test_the_keys_show_their_age_and_the_files_of_each_generation(client, settings, make_photo):
    for number in range(3):
        client.upload(make_photo(str(number)))
    with database.scope():
        Photo.update(key_generation=7).where(Photo.id == 2).execute()
    shown = client.get("/api/data/keys").json
    made = database.store().ring.created_at

    assert shown == {
        "encrypted": True,
        "generation": 1,
        "created_at": made.isoformat(timespec="milliseconds"),
        "rotation_days": 90,
        "rotation_due_at": (made + timedelta(days=90)).isoformat(timespec="milliseconds"),
        "files": [{"generation": 1, "count": 2}, {"generation": 7, "count": 1}],
    }
    client.delete("/api/photos/2")
    assert client.get("/api/data/keys").json["files"] == [{"generation": 1, "count": 2}]


def test_without_encryption_no_key_is_due(settings):
    client = Client(create_app(dataclasses.replace(settings, encryption=False)))
    shown = client.get("/api/data/keys").json

    assert (shown["encrypted"], shown["rotation_due_at"], shown["files"]) == (False, None, [])


# ----------------------------------------------------------------------------------------------------- export


def exported(client):
    answer = client.get("/api/data/export")
    assert answer.status_code == 200
    return opened(answer.data)


def opened(content):
    zipped = zipfile.ZipFile(io.BytesIO(content))
    assert zipped.testzip() is None
    assert len(zipped.namelist()) == len({name.casefold() for name in zipped.namelist()})
    return zipped


def read(zipped, name):
    return json.loads(zipped.read(f"{name}.json"))


def test_the_export_holds_everything_in_readable_files(client, remote, fake_llm, work_queue, clock, settings):
    first, second = draw("one", format="JPEG"), draw("two")
    client.upload(first, "截图 1.png", device_id="pixel", original_timestamp="1700000000000")
    client.upload(second, "b.png", device_id="tablet", original_timestamp="1800000000000")
    fake_llm.answer({**FINDINGS, "summary": "借书到期"})
    work_queue(remote, clock=clock)
    asked = say("What is on this?", draw("attached", format="JPEG"))
    with database.scope():
        turns.end_turn(
            asked,
            [Message(role="assistant", content="A book.", created_at=utc_now())],
            recalled=None,
            now=utc_now(),
        )
    note("A book is due", content="## Friday", source_photo_ids="[1]")
    told("Is allergic to nuts.")
    client.get("/api/skills")
    client.put("/api/skills/stock", json={"enabled": False})
    answer = client.get("/api/data/export")
    zipped = opened(answer.data)

    assert answer.headers["Content-Type"] == "application/zip"
    assert re.fullmatch(
        r"attachment; filename=snaplore-\d{4}-\d\d-\d\d\.zip", answer.headers["Content-Disposition"]
    )
    listed = {photo["id"]: photo for photo in read(zipped, "photos")}
    assert listed[1]["file"] == "photos/pixel/2023-11-14/截图 1-1.jpg"
    assert listed[2]["file"] == "photos/tablet/2027-01-15/b-2.png"
    assert zipped.read(listed[1]["file"]) == first
    assert zipped.read(listed[2]["file"]) == second
    assert zipped.getinfo(listed[1]["file"]).date_time == (2023, 11, 14, 22, 13, 20)
    assert zipped.getinfo(listed[1]["file"]).compress_type == zipfile.ZIP_STORED
    shown = client.get("/api/photos/1").json
    del shown["original_path"], shown["thumbnail_path"]
    told_more = {"entities": FINDINGS["entities"], "visible_text": FINDINGS["visible_text"]}
    analysed = {**shown["analysis"], **told_more}
    assert listed[1] == {**shown, "file": listed[1]["file"], "lines": [], "agenda": [], "analysis": analysed}

    [conversation] = read(zipped, "conversations")
    assert [(message["role"], message["content"]) for message in conversation["messages"]] == [
        ("user", "What is on this?"), ("assistant", "A book.")
    ]  # fmt: skip
    with database.scope():
        attached = turns.picture_of(asked)
    assert [message["file"] and zipped.read(message["file"]) for message in conversation["messages"]] == [
        attached,
        None,
    ]
    assert [(item["title"], item["content"], item["source_photo_ids"]) for item in read(zipped, "notes")] == [
        ("A book is due", "## Friday", [1])
    ]  # fmt: skip
    assert {item["content"] for item in read(zipped, "memories")} == {
        "Is allergic to nuts.",
        FINDINGS["memories"][0]["content"],
    }
    assert [(skill["id"], skill["enabled"]) for skill in read(zipped, "skills")][-1] == ("stock", False)
    assert read(zipped, "left-out") == []
    assert all(info.external_attr >> 16 == 0o600 for info in zipped.infolist())


def test_an_export_of_nothing_is_complete(client):
    zipped = exported(client)

    assert (
        read(zipped, "photos")
        == read(zipped, "conversations")
        == read(zipped, "notes")
        == read(zipped, "memories")
        == []
    )
    assert read(zipped, "settings")["retention_days"] == 30


def test_no_secret_leaves_with_the_export(settings):
    client = Client(create_app(dataclasses.replace(settings, api_key="sk-service", dev_mode=True)))
    client.put(
        "/api/config/llm",
        json={"base_url": "https://93.184.216.34/v1?code=sk-query", "api_key": "sk-model", "model": "eyes"},
    )
    client.post(
        "/api/mcp-servers",
        json={"id": "shop", "name": "Shop", "url": "https://93.184.216.34/mcp?token=sk-mcp"},
    )
    client.post("/api/push/register", json={"device_id": "phone", "token": "sk-push"})
    client.upload(draw())
    zipped = exported(client)
    everything = b"".join(zipped.read(name) for name in zipped.namelist())
    with database.scope():
        keys = [
            database.store().ring.database_key,
            *Photo.select(Photo.file_key, Photo.thumbnail_key).tuples().get(),
        ]

    assert read(zipped, "settings")["llm"] == {
        "provider": "custom", "base_url": "https://93.184.216.34/v1", "model": "eyes",
        "max_context_tokens": 32_768, "temperature": 0.2, "api_key_set": True,
    }  # fmt: skip
    assert [server["url"] for server in read(zipped, "settings")["mcp_servers"]] == [
        "https://93.184.216.34/mcp"
    ]
    assert b"sk-" not in everything
    assert not [key for key in keys if bytes(key) in everything or bytes(key).hex().encode() in everything]


@pytest.mark.parametrize(
    ("device_id", "filename", "taken", "path"),
    [
        ("pixel", "../../etc/passwd", "0", "photos/pixel/1970-01-01/passwd-1.png"),
        ("pixel", "a<b>:|?*.png", "0", "photos/pixel/1970-01-01/a_b_____-1.png"),
        ("pixel", ".png", "0", "photos/pixel/1970-01-01/png-1.png"),
        ("pixel", "...", "0", "photos/pixel/1970-01-01/screenshot-1.png"),
        ("pixel", "trailing . .gif", "0", "photos/pixel/1970-01-01/trailing-1.png"),
        ("CON", "nul.png", "253402300799999", "photos/CON_/9999-12-31/nul-1.png"),
        ("d" * 256, "图" * 200 + ".png", "0", f"photos/{'d' * 100}/1970-01-01/{'图' * 50}-1.png"),
    ],
)
def test_a_file_name_in_the_export_is_safe_on_every_system(client, device_id, filename, taken, path):
    client.upload(draw(), filename, device_id=device_id, original_timestamp=taken)
    zipped = exported(client)

    assert [name for name in zipped.namelist() if name.startswith("photos/")] == [path]
    assert all(len(part.encode()) <= 255 for part in path.split("/"))


def test_photos_of_the_same_name_get_different_names(client):
    for number in range(3):
        client.upload(draw(str(number)), "a.png", device_id="pixel", original_timestamp="0")

    assert sorted(name for name in exported(client).namelist() if name.startswith("photos/")) == [
        f"photos/pixel/1970-01-01/a-{number}.png" for number in (1, 2, 3)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("encryption", [True, False])
@pytest.mark.parametrize("harm", ["lost", "damaged", "cut off", "emptied"])
def test_a_lost_or_damaged_picture_is_left_out_and_listed(settings, encryption, harm):
    client = Client(create_app(dataclasses.replace(settings, encryption=encryption)))
    content = [draw(str(number)) for number in range(3)]
    for picture in content:
        client.upload(picture, "a.png", original_timestamp="0")
    path = settings.data_dir / client.get("/api/photos/2").json["original_path"]
    stored = path.read_bytes()
    match harm:
        case "lost":
            path.unlink()
        case "damaged":
            path.write_bytes(stored[:500] + bytes([stored[500] ^ 1]) + stored[501:])
        case "cut off":
            path.write_bytes(stored[:-10])
        case "emptied":
            path.write_bytes(b"")
    zipped = exported(client)

    assert [name for name in zipped.namelist() if name.startswith("photos/")] == [
        f"photos/unknown/1970-01-01/a-{n}.png" for n in (1, 3)
    ]
    assert read(zipped, "left-out") == [{"photo_id": 2, "file": "photos/unknown/1970-01-01/a-2.png"}]
    assert [photo["file"] for photo in read(zipped, "photos")] == [
        "photos/unknown/1970-01-01/a-1.png", None, "photos/unknown/1970-01-01/a-3.png"
    ]  # fmt: skip
    assert zipped.read("photos/unknown/1970-01-01/a-3.png") == content[2]


def noise(side=700):
    out = io.BytesIO()
    Image.effect_noise((side, side), 100).save(out, "PNG")
    return out.getvalue()


@pytest.mark.slow
def test_between_two_parts_the_database_is_free_and_a_deletion_does_no_harm(client, settings):
    content = [noise() for _ in range(25)]
    for picture in content:
        client.upload(picture, "a.png", original_timestamp="0")
    say("What is on this?", draw(format="JPEG"))
    parts, alone = [], 0
    for part in export.stream(settings, now=utc_now()):
        parts.append(part)
        with database.store().lock.exclusive(patience=0):
            alone += 1
        if len(parts) == 2:
            for number in range(1, 26):
                client.delete(f"/api/photos/{number}")
            client.delete(
                f"/api/chat/conversations/{client.get('/api/chat/conversations').json['conversations'][0]['id']}"
            )
            client.upload(draw("came meanwhile"), "b.png")
    zipped = opened(b"".join(parts))
    names = [name for name in zipped.namelist() if name.startswith("photos/")]

    assert alone == len(parts) > 10
    assert 1 <= len(names) < 25, "what was open already goes on"
    assert [zipped.read(name) for name in names] == content[: len(names)]
    assert read(zipped, "photos") == read(zipped, "conversations") == [], (
        "what came or went meanwhile is in no list"
    )


@pytest.mark.slow
def test_parts_are_small_and_memory_stays_flat(client, settings):
    for _ in range(4):
        client.upload(noise(1500))
    tracemalloc.start()
    try:
        sizes = [len(part) for part in export.stream(settings, now=utc_now())]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert max(sizes) < 2 * originals.BLOCK
    assert sum(sizes) > 7 * MEGABYTE
    assert most < 3 * MEGABYTE


def test_the_number_of_exports_is_limited_and_an_aborted_one_frees_its_place(app, client):
    def begin():
        return app.test_client().get("/api/data/export", headers=client.headers, buffered=False)

    for _ in range(10):
        client.upload(noise(300))
    running = [begin() for _ in range(amounts.MOST_EXPORTS)]
    refused = begin()
    assert detail(refused, 503).startswith("Too many exports are running.")
    assert refused.headers["Retry-After"] == "60"
    for answer in running:
        answer.close()
    with contextlib.closing(app.test_client().head("/api/data/export", headers=client.headers)) as head:
        assert head.status_code == 200

    again = [begin() for _ in range(amounts.MOST_EXPORTS)]
    assert [opened(answer.data) and answer.status_code for answer in again] == [200] * amounts.MOST_EXPORTS
    for answer in again:
        answer.close()


@pytest.mark.slow
def test_a_client_that_reads_slowly_or_disconnects_blocks_nobody(tmp_path):
    with Service(tmp_path, api_key="key", retention_days=0) as service:
        for _ in range(12):
            service.upload(noise(1200))
        with requests.Session() as session:
            session.trust_env = False
            slow = session.get(
                f"{service.url}/api/data/export", headers=service.bearer, stream=True, timeout=120
            )
            begun = slow.raw.read(1000)
            gone = session.get(
                f"{service.url}/api/data/export", headers=service.bearer, stream=True, timeout=120
            )
            gone.close()
            service.upload(draw("meanwhile"))
            assert service.call("DELETE", "/api/photos/12").status_code == 200
            assert service.run("flask", "--app", "app", "jobs", "cleanup").returncode == 0
            eventually(lambda: other_export(service), "the place of who went away is free")
            rest = slow.raw.read()
            slow.close()
        zipped = opened(begun + rest)
        assert len([name for name in zipped.namelist() if name.startswith("photos/")]) >= 10
        assert "Traceback" not in service.output


def other_export(service):
    answer = service.call("GET", "/api/data/export")
    return answer.status_code == 200 and opened(answer.content)


# ------------------------------------------------------------------------------------------------------ clear


@pytest.mark.parametrize(
    "body", [{}, {"confirm": ""}, {"confirm": True}, {"confirm": "Delete everything"}, {"confirm": None}]
)
def test_without_the_exact_confirmation_nothing_is_deleted(client, make_photo, body):
    client.upload(make_photo())
    sentence = "confirm: must be 'delete everything'" if body else "confirm: is missing"

    assert detail(client.post("/api/data/clear", json=body), 400) == sentence
    assert client.get("/api/photos").json["total"] == 1


@pytest.mark.slow
def test_all_data_is_deleted_and_the_configuration_stays(client, settings, remote, work_queue, clock):
    for number in range(3):
        client.upload(draw(str(number)), device_id="pixel", local_media_store_id=str(number))
    work_queue(remote, clock=clock)
    say("What is on this?", draw(format="JPEG"))
    say("How are you?")
    note("Pinned", is_pinned=True)
    told("Is allergic to nuts.")
    client.post("/api/skills", json={"id": "cook", "name": "Cook", "system_prompt": "You cook."})
    client.post("/api/mcp-servers", json={"id": "shop", "name": "Shop", "url": "https://93.184.216.34/mcp"})
    client.post("/api/push/register", json={"device_id": "phone", "token": "t"})
    client.put(
        "/api/config/llm", json={"base_url": "https://93.184.216.34/v1", "api_key": "sk-1", "model": "eyes"}
    )
    client.put("/api/data/retention", json={"retention_days": 77})
    kept = (
        "/api/skills",
        "/api/mcp-servers",
        "/api/push/devices",
        "/api/config/llm",
        "/api/data/retention",
        "/api/usage",
    )
    before = [client.get(path).json for path in kept]
    answer = client.post("/api/data/clear", json=CLEAR)

    assert answer.json == {
        "message": "Deleted",
        "photos": 3,
        "conversations": 2,
        "dynamics": 1,
        "memories": 2,
    }
    for model in (
        Photo,
        Analysis,
        Tally,
        Vocabulary,
        Conversation,
        Message,
        Dynamic,
        Memory,
        SyncState,
    ):
        assert count(model) == 0, model.__name__
    assert pictures(settings) == []
    assert client.get("/api/search?q=library").json["total"] == 0
    assert client.get("/api/photos/sync-state?device_id=pixel").json["total_synced"] == 0
    assert [client.get(path).json for path in kept] == before
    assert client.post("/api/data/clear", json=CLEAR).json["photos"] == 0

    again = client.upload(draw("0"), device_id="pixel", local_media_store_id="0").json
    assert (again["dedup"], again["id"]) == (False, 4), "an id is never used twice"
    client.put("/api/config/llm", json={"base_url": "", "api_key": "", "model": ""})
    work_queue(remote, clock=clock)
    assert client.get("/api/search?q=library").json["total"] == 1


@pytest.mark.slow
def test_deleted_data_is_in_no_byte_of_the_data_folder(settings, remote, fake_llm, work_queue, clock):
    """Without encryption, so that the test can read the bytes."""
    bare = {"encryption": False, "data_dir": settings.data_dir.with_name("bare")}
    plain = dataclasses.replace(settings, **bare)
    client = Client(create_app(plain))
    for number in range(30):
        fake_llm.answer(
            {**FINDINGS, "summary": f"contraband{number}x", "visible_text": f"quicksilver{number}x " * 2000}
        )
        client.upload(draw(str(number)), f"divorce{number}x.png")
    work_queue(dataclasses.replace(remote, **bare), clock=clock)
    say("Zanzibar departure")
    note("Regretted rendezvous")
    told("Owes Ermintrude money.")
    words = {f"{word}{number}x" for word in ("contraband", "quicksilver", "divorce") for number in range(30)}
    words |= {"Zanzibar", "Regretted", "Ermintrude"}
    assert present(plain, words) == words

    assert client.post("/api/data/clear", json=CLEAR).json["photos"] == 30
    assert present(plain, words) == set()
    assert present(plain, {"analyses_category"}) == {"analyses_category"}, (
        "the proof that they would have been found"
    )


def present(settings, words):
    content = b"".join(path.read_bytes().lower() for path in settings.data_dir.rglob("*") if path.is_file())
    return {word for word in words if word.lower().encode() in content}


def test_an_analysis_in_progress_brings_nothing_back(client, remote, fake_llm, work_queue, clock):
    def clear_first(request):
        cleared.append(cleanup.clear(now=utc_now()).photos)
        return FINDINGS

    cleared = []
    client.upload(draw())
    fake_llm.default = clear_first
    assert work_queue(remote, clock=clock) == 1

    assert cleared == [1]
    assert count(Photo) == count(Analysis) == count(Vocabulary) == count(Memory) == count(Tally) == 0
    assert client.get("/api/stats").json["processing"] == 0


def test_a_chat_in_progress_brings_nothing_back(remote, fake_llm, monkeypatch):
    """The data is deleted after the model has called a tool that writes, and before the tool runs."""
    client = Client(create_app(dataclasses.replace(remote, api_key="mine")))
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "save_memory", "arguments": json.dumps({"content": "Is allergic to nuts."})},
    }
    run = tools.Toolbox.run

    def clear_first(toolbox, name, arguments):
        cleared.append(cleanup.clear(now=utc_now()).conversations)
        return run(toolbox, name, arguments)

    cleared = []
    monkeypatch.setattr(tools.Toolbox, "run", clear_first)
    fake_llm.answer(None, tool_calls=[call])
    fake_llm.answer("Noted.")
    answer = client.post("/api/chat/send", json={"message": "Remember that I am allergic to nuts."})

    assert "deleted" in detail(answer, 404)
    assert cleared == [1]
    assert "not saved: the conversation was deleted." in fake_llm.requests[-1].text
    assert count(Memory) == count(Conversation) == count(Message) == 0


def test_a_cycle_of_the_reasoner_in_progress_brings_nothing_back(client, remote, fake_llm, work_queue, clock):
    def clear_first(request):
        cleared.append(cleanup.clear(now=utc_now()).photos)
        return {
            "articles": [
                {"title": "A book is due", "content": "On Friday.", "category": "reminder", "photo_ids": [1]}
            ]
        }

    cleared = []
    client.upload(draw())
    work_queue(remote, clock=clock)
    fake_llm.default = clear_first

    assert reasoner.cycle(remote, clock=clock) == []
    assert cleared == [1]
    assert count(Dynamic) == 0


def test_photos_that_are_uploaded_during_the_deletion_stay(client, settings, monkeypatch):
    def upload():
        client.upload(draw("late"), "late.png", device_id="pixel")

    def upload_first(*arguments, **options):
        monkeypatch.undo()
        together(upload)
        return purge(*arguments, **options)

    purge = photos.purge_all
    client.upload(draw("early"))
    monkeypatch.setattr(photos, "purge_all", upload_first)

    assert client.post("/api/data/clear", json=CLEAR).json["photos"] == 1
    assert [photo["filename"] for photo in client.get("/api/photos").json["items"]] == ["late.png"]
    assert client.get("/api/photos/sync-state?device_id=pixel").json["total_synced"] == 1
    assert client.get("/api/photos/2/image").data == draw("late")


def test_photos_from_a_clock_that_was_ahead_are_deleted_as_well(client):
    client.upload(draw())
    with database.scope():
        Photo.update(created_at=utc_now() + timedelta(days=400)).execute()

    assert client.post("/api/data/clear", json=CLEAR).json["photos"] == 1


@pytest.mark.slow
def test_two_deletions_at_once_beside_a_busy_service_are_safe(tmp_path):
    with FakeLLM() as fake:
        remote = {"api_key": "key", "dev_mode": "true", "llm_base_url": fake.url, "llm_model": "scripted"}
        with Service(tmp_path, language="en", **remote) as service:
            for number in range(20):
                service.upload(draw(str(number), size=(60, 60)))
            answers = together(
                lambda: service.call("POST", "/api/data/clear", json=CLEAR),
                lambda: service.call("POST", "/api/data/clear", json=CLEAR),
                lambda: service.upload(draw("late", size=(60, 60))),
                lambda: service.get("/api/search", q="library"),
                lambda: service.get("/api/photos"),
            )
            cleared = [answer for answer in answers if isinstance(answer, requests.Response)]
            assert {answer.status_code for answer in cleared} <= {200, 503}
            assert sum(answer.json()["photos"] for answer in cleared if answer.status_code == 200) in (20, 21)
            service.wait_until_analysed()
            assert service.get("/api/data/stats")["total_photos"] <= 1
            assert service.call("POST", "/api/data/clear", json=CLEAR).status_code == 200
            assert (
                service.get("/api/data/stats")["total_photos"]
                == service.get("/api/memories/stats")["total"]
                == 0
            )
        assert "rror" not in service.output.replace("error_log", "")
