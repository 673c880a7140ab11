"""What an update makes of the data folder that an earlier version left: everything is found again as it was.

`tests/support/earlier.py` has the folders, and what their own version answered about them. A newer version
may add fields, so its answers must contain what was answered before.
"""

import contextlib
import dataclasses
import json
import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

import database
import memory
import search
from analysis.pool import Worker
from app import create_app
from engines.records import Field, Record
from rules import embedded
from settings import ROOT
from tests.support.client import Client
from tests.support.earlier import NEWEST, go_back
from tests.support.service import Service

# These depend on the day or on the disk, and what they say is not stored.
PASSING = ("/api/data/stats", "/api/agenda", "/api/photos?trash=true")


@pytest.fixture(params=(True, False), ids=("encrypted", "plain"))
def updated(request, settings, monkeypatch):
    settings = dataclasses.replace(settings, encryption=request.param)
    answers = go_back(settings, "0023")
    # Scores fall with the age of a photo, and memories expire, so it is the minute in which all was answered.
    newest = max(photo["created_at"] for photo in answers["/api/photos?"]["items"])
    for module in (search, memory):
        monkeypatch.setattr(module, "utc_now", lambda: datetime.fromisoformat(newest) + timedelta(minutes=1))
    yield Client(create_app(settings)), answers
    database.close_store()


def differences(before, now, place=""):
    """Where an answer lacks what was answered before. Lists keep their length and order."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, value in before.items():
            yield from differences(value, now.get(name, "(absent)"), f"{place}.{name}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{place}[{index}]")
    elif before != now:
        yield f"{place}: {json.dumps(before)} became {json.dumps(now)}"


def test_everything_is_as_it_was(updated):
    client, answers = updated
    found = []
    for path, before in answers.items():
        if "related" in path or path.startswith(PASSING):
            continue
        answer = client.get(path)
        assert answer.status_code == 200, path
        found += [f"{path} {difference}" for difference in differences(before, answer.json)]
    assert found == []


def test_pictures_open_as_before(updated):
    client, answers = updated
    for photo in answers["/api/photos?"]["items"]:
        assert client.get(f"/api/photos/{photo['id']}/image").status_code == 200
        assert client.get(f"/api/photos/{photo['id']}/thumbnail").status_code == 200


def test_what_is_in_the_trash_comes_back_with_its_analysis(updated):
    client, answers = updated
    (trashed,) = answers["/api/photos?trash=true"]["items"]
    assert client.post(f"/api/photos/{trashed['id']}/restore").status_code == 200
    shown = client.get(f"/api/photos/{trashed['id']}").json
    assert (shown["title"], shown["analysis"]["status"]) == (trashed["title"], "done")
    assert trashed["id"] in [hit["id"] for hit in client.get("/api/search?q=app:Settings").json["items"]]


def test_records_are_made_of_what_was_read_while_nothing_else_is_to_be_done(updated, monkeypatch, caplog):
    client, answers = updated
    judge = embedded.judge

    def judged(page, **named):
        found = judge(page, **named)
        found.records = [
            Record("ErrorMessage", [Field("text", line.text, lines=[0])]) for line in page.lines[:1]
        ]
        return found

    monkeypatch.setattr(embedded, "judge", judged)
    monkeypatch.setattr("analysis.backlog.PROGRESS_EVERY", 2)
    caplog.set_level("INFO")
    before = client.get("/api/records").json
    worker = Worker(client.app.settings)
    while worker.backlog.judge_older():
        pass
    worker.close()

    photos = [photo["id"] for photo in answers["/api/photos?"]["items"]]
    read = [photo for photo in photos if answers[f"/api/photos/{photo}/lines"]["lines"]]
    after = client.get("/api/records").json
    assert (before["total"], after["total"]) == (0, len(read))
    assert {record["photo_id"] for record in after["records"]} == set(read)
    assert "photos judged again by the present rules" in caplog.text
    for photo in photos:  # nothing else of it has changed
        was, now = answers[f"/api/photos/{photo}"], client.get(f"/api/photos/{photo}").json
        assert (now["text"], now["own"]) == (was["text"], was["own"])
        assert now["title"].startswith(was["title"])


def test_the_check_finds_no_fault(updated):
    client, _ = updated
    ran = client.app.test_cli_runner().invoke(args=["check"])
    assert ran.exit_code == 0, ran.output


@pytest.mark.slow
def test_descriptions_find_the_same_screens_and_a_real_start_says_what_it_does(settings, tmp_path):
    plain = dataclasses.replace(settings, encryption=False)
    answers = go_back(plain, "0023")
    with Service(tmp_path, language="en", encryption="false") as service:
        assert NEWEST == "0023" or "database migrated: " in service.output
        for path, before in answers.items():
            if "related" in path:
                now = service.get(path)
                assert [one["id"] for one in now["items"]] == [one["id"] for one in before["items"]]


HOLDER = "import sys; from pathlib import Path; from locks import ServiceLock; " + (
    "lock = ServiceLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


def applied(data):
    """The migrations of a folder without encryption."""
    (file,) = (data / "database").glob("*.db")
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM schema_migration ORDER BY 1")]


@pytest.fixture
def older_service(settings):
    """The process of an older version, as far as this version sees it: it holds the folder's lock."""
    go_back(dataclasses.replace(settings, encryption=False), "0023")
    command = [sys.executable, "-c", HOLDER, str(settings.data_dir)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


@pytest.mark.slow
def test_nothing_migrates_the_data_under_a_running_older_service(older_service, settings, tmp_path):
    assert settings.data_dir == tmp_path / "data"
    service = Service(tmp_path, language="en", encryption="false", api_key="key")
    before = applied(service.data)

    second = service.run("gunicorn")
    assert second.returncode not in (0, None)
    assert (
        f"Snaplore cannot start: A Snaplore service is running on {service.data}. Stop it first."
        in second.stdout + second.stderr
    )
    sentence = (
        f"The data in {service.data} must be migrated for this version, but a Snaplore service of an earlier "
        "version is running on it. Stop that service first."
    )
    for command in (("jobs", "decay"), ("keys", "show-api-key"), ("import", str(tmp_path))):
        refused = service.run("flask", "--app", "app", *command)
        assert refused.returncode == 1, command
        assert sentence in refused.stderr
        assert "migrated:" not in refused.stdout + refused.stderr
    assert sentence in service.run("flask", "--app", "app", "check").stdout
    assert applied(service.data) == before

    older_service.stdin.close()
    older_service.wait()
    assert service.run("flask", "--app", "app", "jobs", "decay").returncode == 0
    assert applied(service.data)[-1].startswith(NEWEST)
    with service:
        assert service.get("/api/photos")["total"] > 0
