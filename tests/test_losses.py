"""Nothing finishes a loss: with the database, the key ring and the clock emptied, halved, swapped and put
back in every combination, starts and clean-ups lose no picture.
"""

import contextlib
import dataclasses
import itertools
import os
import shutil
from datetime import timedelta

import pytest

import database
from app import create_app
from clock import utc_now
from errors import SnaploreError
from settings import Settings
from tests.support.client import Client
from tests.support.drawing import draw
from tests.test_rollback import start
from upkeep import check, findings

DAY = timedelta(days=1)
DATABASES = ("right", "empty", "half", "old", "other")
RINGS = ("right", "old", "other", "one of two")
CLOCKS = (timedelta(0), 3_650 * DAY)
ALL = list(itertools.product(DATABASES, RINGS, CLOCKS))
QUICK = [("empty", "right", CLOCKS[0]), ("old", "right", CLOCKS[1]), ("right", "old", CLOCKS[1])]


def files_of(folder, name):
    return {path.name: path.read_bytes() for path in (folder / name).iterdir() if path.is_file()}


def uploaded(settings, *names):
    client = Client(create_app(settings))
    pictures = {client.upload(draw(name)).json["id"]: draw(name) for name in names}
    database.close_store()
    return pictures


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """A folder after some starts; its database and key ring as they were before; and another folder's."""
    root = tmp_path_factory.mktemp("losses")
    settings = Settings(data_dir=root / "mine", language="en", encryption=False)
    other = dataclasses.replace(settings, data_dir=root / "other")
    start(settings)
    pictures = uploaded(settings, "first", "second")
    start(settings)
    old = {name: files_of(settings.data_dir, name) for name in ("database", "keys")}
    pictures |= uploaded(settings, "third", "fourth", "fifth")
    start(settings)
    start(settings)
    start(other)
    uploaded(other, "foreign")
    foreign = {name: files_of(other.data_dir, name) for name in ("database", "keys")}
    for path in (settings.data_dir / "photos").rglob("*"):
        os.utime(path, ((utc_now() - 3 * DAY).timestamp(),) * 2)
    return settings, pictures, old, foreign


@pytest.mark.parametrize(
    ("content", "ring", "ahead"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in ALL],
)
def test_no_picture_is_lost(losses, tmp_path, monkeypatch, content, ring, ahead):
    template, pictures, old, foreign = losses
    settings = dataclasses.replace(template, data_dir=tmp_path / "data")
    shutil.copytree(template.data_dir, settings.data_dir)
    right = {name: files_of(settings.data_dir, name) for name in ("database", "keys")}
    [path] = (settings.data_dir / "database").glob("*.db")
    path.write_bytes({
        "right": path.read_bytes(),
        "empty": b"",
        "half": path.read_bytes()[: path.stat().st_size // 2],
        "old": old["database"][path.name],
        "other": max(foreign["database"].values(), key=len),
    }[content])  # fmt: skip
    rings = {"old": old["keys"], "other": foreign["keys"], "right": {}}
    rings["one of two"] = {"ring.1": old["keys"]["ring.1"]}
    for name, changed in rings[ring].items():
        (settings.data_dir / "keys" / name).write_bytes(changed)

    for turn in range(3):
        now = utc_now() + ahead + turn * timedelta(hours=7)
        monkeypatch.setattr("jobs.utc_now", lambda now=now: now)
        with contextlib.suppress(SnaploreError):
            start(settings)
            database.close_store()
        with contextlib.suppress(SnaploreError):
            create_app(settings).test_cli_runner().invoke(args=["jobs", "cleanup"])
        database.close_store()

    for name, files in right.items():  # the right ones are put back
        for there in (settings.data_dir / name).iterdir():
            if there.is_file():
                there.unlink()
        for file, bytes_of in files.items():
            (settings.data_dir / name / file).write_bytes(bytes_of)
    monkeypatch.undo()
    list(check.check(settings, findings.Orders(utc_now(), repair=True)))
    database.close_store()
    client = Client(create_app(settings))
    assert {number: client.get(f"/api/photos/{number}/image").data for number in pictures} == pictures
    database.close_store()
