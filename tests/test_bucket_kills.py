"""Backups into a bucket, moving of originals and key rotation, each killed by SIGKILL at points chosen by
chance: nothing is lost, and the next run goes on. `make kills` does it a thousand times.

A run is a process of its own, forked from this one. It is killed when it makes a certain call of the store,
before or after the store has acted, or after a certain time.
"""

import contextlib
import dataclasses
import os
import random
import signal
import threading
import time
import traceback
import warnings
from datetime import timedelta

import pytest

import database
import photos
from app import create_app
from buckets import away, s3
from clock import utc_now
from models import Analysis, Photo
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.fake_s3 import FakeS3
from tests.support.kills import killed
from tests.test_backup import contents
from upkeep import check, findings, moving, offsite, resealing, restore, rotation, verifying
from upkeep.progress import silent

KILLS = int(os.environ.get("KILLS", "24"))  # of all kinds together
SEED = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(10_000))
PICTURES = 5
LONGEST = 300.0  # seconds, after which a run that hangs is killed

pytestmark = pytest.mark.slow


class Killer:
    """Runs verbs in processes that it kills. `kills` counts those that were still running."""

    def __init__(self, store, chance):
        self.store, self.chance = store, chance
        self.kills = 0
        self.calls, self.seconds = 0, 0.0  # of the longest whole run

    def run(self, verb) -> bool:
        """Run `verb` in a process, and kill it somewhere; whether that came before its end. The first run
        goes to its end, to be measured.
        """
        child = None
        is_measured = self.seconds > 0
        left = self.chance.randrange(self.calls + 1) if is_measured and self.chance.random() < 0.6 else None
        acts = self.chance.random() < 0.5
        begun, seen, fatal = time.monotonic(), [0], threading.Event()

        def before(_handler, _key) -> bool:
            seen[0] += 1
            if left is not None and seen[0] == left + 1:
                fatal.wait(LONGEST)  # the process is known
                os.kill(child, signal.SIGKILL)
                return not acts
            return False

        self.store.before = before
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            child = os.fork()
        if child == 0:
            status = 1
            try:
                verb()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        fatal.set()
        is_timed = is_measured and left is None
        delay = self.chance.uniform(0, self.seconds) if is_timed else LONGEST
        timer = threading.Timer(delay, killed, (child,))
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        timer.join()
        self.store.before = None
        if os.WIFSIGNALED(status):
            self.kills += 1
            if self.kills % 50 == 0:
                print(self.kills, "kills", flush=True)
            return True
        assert os.WEXITSTATUS(status) == 0, "the run failed by itself"
        self.calls = max(self.calls, seen[0])
        self.seconds = max(self.seconds, time.monotonic() - begun)
        return False


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A data folder with pictures of half a year ago, its store, and the bytes of each picture."""
    monkeypatch.setattr(s3, "PAUSES", (0.0,))
    monkeypatch.setattr(away, "PATIENCE", 30.0)
    with FakeS3() as store:
        settings = store.settings(data_dir=tmp_path / "data", originals="s3://snaps/originals")
        client = Client(create_app(settings))
        for number in range(PICTURES):
            client.upload(draw(str(number), size=(90, 160)), f"{number}.png", device_id="phone")
        with database.scope():
            Photo.update(created_at=utc_now() - timedelta(days=180)).execute()
            Analysis.update(status="done", reads_left=0).execute()
        held = originals(settings)
        print(f"KILLS_SEED={SEED}")  # pytest shows it with a failure
        yield settings, store, held, Killer(store, random.Random(SEED))
    database.close_store()


def originals(settings):
    """The bytes of each picture, wherever it is."""
    found = {}
    database.open_store(settings)
    for photo_id in range(1, PICTURES + 1):
        with photos.bringing(lambda number=photo_id: photos.open_original(photos.get(number))) as file:
            found[photo_id] = file.read()
    database.close_store()
    return found


def problems(settings):
    kinds = list(check.check(settings, findings.Orders(utc_now())))
    database.close_store()
    return [str(kind) for kind in kinds if kind.wrong]


def alone(settings, verb):
    """`verb` on the data folder, opened for it."""

    def run():
        database.open_store(settings)
        verb()

    return run


def test_a_backup_into_a_bucket_killed_anywhere_loses_nothing(house, tmp_path):
    settings, store, held, killer = house
    bucket = s3.Bucket("s3://snaps/backups", settings)
    keep = offsite.Keep(2, 1)

    def back_up():
        own = s3.Bucket("s3://snaps/backups", settings)  # without the connections of this process
        offsite.make(own, silent, now=utc_now(), keep=keep)

    verb = alone(settings, back_up)
    before = contents(settings)
    database.close_store()
    number = 0
    while killer.kills < KILLS // 3:
        if number % 5 == 0:  # nothing is there yet
            for key in store.named("backups/"):
                del store.objects[key]
        store.modified = {key: time.time() - 200_000 * (number % 3 == 1) for key in store.objects}
        killer.run(verb)
        number += 1
        assert originals(settings) == held
        for name in offsite.snapshots(bucket)[-1:]:
            copy = dataclasses.replace(settings, data_dir=tmp_path / "copy")
            key = settings.data_dir / "keys" / "master.key"
            snapshot = verifying.Snapshot(bucket, name)
            restore.restore(copy, snapshot, silent, now=utc_now(), master_key_file=key)
            assert contents(copy) == before
            database.close_store()
            with contextlib.suppress(restore.NotFound):
                restore.discard_previous(copy)
    verb()
    database.close_store()
    assert offsite.snapshots(bucket)
    assert problems(settings) == []
    print(f"{killer.kills} kills of {number} backups")


def test_moving_originals_killed_anywhere_loses_nothing(house):
    settings, store, held, killer = house
    there = alone(settings, lambda: moving.move(settings, silent, now=utc_now()))
    back = alone(settings, lambda: moving.bring_back(settings, silent))
    number = 0
    while killer.kills < KILLS // 3:
        verb = there if number % 6 < 3 else back  # a killed run is followed by one of the same direction
        killer.run(verb)
        number += 1
        assert originals(settings) == held, number
        if number % 3 == 0:
            verb()
            database.close_store()
            assert originals(settings) == held
            assert problems(settings) == []
            assert len(store.named("originals/photos")) == (PICTURES if verb is there else 0)
    print(f"{killer.kills} kills of {number} moves")


def test_rotation_killed_anywhere_loses_no_original_in_the_bucket(house):
    settings, store, held, killer = house
    alone(settings, lambda: moving.move(settings, silent, now=utc_now()))()
    database.close_store()

    def rotate():
        rotation.rotate(silent, now=utc_now())
        resealing.seal_anew(silent)

    number = 0
    while killer.kills < KILLS // 3:
        killer.run(alone(settings, rotate))
        number += 1
        assert originals(settings) == held, number
        if number % 5 == 0:
            alone(settings, rotate)()
            assert moving.move(settings, silent, now=utc_now()) is not None
            database.close_store()
            # A run that is killed between writing an object and its row leaves that object.
            list(check.check(settings, findings.Orders(utc_now(), repair=True)))
            database.close_store()
            assert originals(settings) == held
            assert problems(settings) == []
            assert len(store.named("originals/photos")) == PICTURES
    print(f"{killer.kills} kills of {number} rotations")
