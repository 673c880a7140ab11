"""Rotation of the database key beside other processes that write: it is killed by SIGKILL at points chosen by
chance, and what it leaves is compared with what it had, row by row. `make kills` does it a
thousand times.

A rotation is a process of its own, forked from this one, and killed before or after a certain call of the
system, or after a certain time.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings

import pytest

import database
from app import create_app
from clock import utc_now
from models import Message, Photo
from settings import ROOT
from tests.support.client import Client
from tests.support.kills import killed
from tests.support.service import eventually
from tests.test_rotation import compared, filled  # noqa: F401 - a fixture
from upkeep import archive, check, findings, rotation
from upkeep.progress import silent

KILLS = int(os.environ.get("KILLS", "12"))
SEED = int(os.environ.get("KILLS_SEED") or random.SystemRandom().randrange(10_000))
WRITERS = 3
# What a rotation calls to write or flush a file, to name it, or to delete it. SQLite's own calls are met by
# the kills after a certain time.
CALLS = ("fsync", "replace", "unlink", "truncate")
LAST = 40  # calls at the end of a rotation, at which it is killed more often
LONGEST = 300.0  # seconds, after which a rotation that hangs is killed

pytestmark = pytest.mark.slow


class Writers:
    """Processes that write beside the rotation, and what each was answered."""

    def __init__(self, settings, folder, seed):
        foreign = ("SNAPLORE_", "PYTEST_")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        environment |= {
            "SNAPLORE_DATA_DIR": str(settings.data_dir),
            "SNAPLORE_ENCRYPTION": str(settings.encryption).lower(),
            "SNAPLORE_API_KEY": "key",
        }
        program = str(ROOT / "tests" / "support" / "beside.py")
        self._outputs = [folder / f"writer-{number}" for number in range(WRITERS)]
        self._processes = []
        for number, output in enumerate(self._outputs):
            with output.open("wb") as file:
                self._processes.append(
                    subprocess.Popen(
                        [sys.executable, program, f"{seed}-{number}"],
                        cwd=ROOT,
                        env=environment,
                        stdout=file,
                        stderr=file,
                    )
                )
        eventually(lambda: all(self._answers(output) for output in self._outputs), "all of them write")

    def promised(self):
        """Paths of the rows that were answered and are not deleted."""
        paths = set()
        for output, process in zip(self._outputs, self._processes, strict=True):
            assert process.poll() is None, output.read_text()[-3_000:]
            paths |= self._answers(output)
        return paths

    def end(self):
        """End them all; returns what they were promised last."""
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)
        try:
            return self.promised()
        finally:
            for process in self._processes:
                process.kill()
                process.wait()

    @staticmethod
    def _answers(output):
        answered = set()
        for line in output.read_text().splitlines():
            what, _, path = line.partition(" ")
            if what == "answered":
                answered.add(path)
            elif what == "deleting":
                answered.discard(path)
        return answered


@pytest.fixture
def beside(client, settings, tmp_path):
    """A data folder with a few pictures, and processes that write to it."""
    filled(client)
    database.close_store()
    print(f"KILLS_SEED={SEED}")  # pytest shows it with a failure
    writers = Writers(settings, tmp_path, SEED)
    try:
        yield writers
    finally:
        with contextlib.suppress(AssertionError):
            writers.end()


def stored(settings):
    """Paths of the rows."""
    database.open_store(settings)
    with database.scope():
        photos = {f"/api/photos/{row[0]}" for row in Photo.select(Photo.id).tuples()}
        messages = Message.select(Message.conversation).where(Message.content != "").tuples()
        return photos | {f"/api/chat/conversations/{row[0]}" for row in messages}


def is_whole(settings):
    """Compare each page with its authentication, and each index with its table."""
    store = database.store()
    with store.lock.exclusive():
        store.follow()
        with archive.opened(store.database, store.ring, database.PRAGMAS) as base:
            ask = base.execute_sql
            # The check of the authentication reads the file, and knows nothing of the log.
            assert ask("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            assert ask("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert not settings.encryption or ask("PRAGMA cipher_integrity_check").fetchall() == []
            assert ask("PRAGMA foreign_key_check").fetchall() == []


class Killer:
    """Runs rotations in processes that it kills. `kills` counts those that were still running."""

    def __init__(self, settings, chance):
        self.settings, self.chance = settings, chance
        self.kills = self.refused = 0
        self.calls, self.seconds = 0, 0.0  # of the last whole run

    def run(self):
        """Rotate, and kill that somewhere; whether that came before its end."""
        is_measured = self.seconds > 0
        last = None
        if is_measured and self.chance.random() < 0.6:
            first = max(0, self.calls - LAST) if self.chance.random() < 0.5 else 0
            last = self.chance.randrange(first, self.calls + 3)
        begun, (reader, writer) = time.monotonic(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads
            child = os.fork()
        if child == 0:
            self._rotate(writer, last, acts=self.chance.random() < 0.5)
        os.close(writer)
        delay = self.chance.uniform(0, 1.2 * self.seconds) if is_measured and last is None else LONGEST
        timer = threading.Timer(delay, killed, (child,))
        timer.start()
        _, status = os.waitpid(child, 0)
        timer.cancel()
        timer.join()
        with open(reader) as file:
            calls = file.read()
        if os.WIFSIGNALED(status):
            self.kills += 1
            return True
        assert os.WEXITSTATUS(status) == 0, "the rotation failed by itself"
        if calls:
            self.calls, self.seconds = int(calls), time.monotonic() - begun
        else:
            self.refused += 1
        return False

    def _rotate(self, writer, last, *, acts):
        status, seen = 1, 0

        def counting(call):
            def counted(*arguments, **named):
                nonlocal seen
                seen += 1
                if acts and seen == last:
                    call(*arguments, **named)
                if seen == last:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **named)

            return counted

        try:
            database.open_store(self.settings)
            for name in CALLS:
                setattr(os, name, counting(getattr(os, name)))
            rotation.rotate(silent, now=utc_now())
            os.write(writer, str(seen).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)


def test_a_rotation_killed_anywhere_beside_writing_processes_loses_nothing(settings, beside):
    killer = Killer(settings, random.Random(SEED))
    number, files = 0, set()
    while killer.kills < KILLS:
        promised = beside.promised()
        killer.run()
        number += 1
        missing = promised - stored(settings) - (promised - beside.promised())
        assert not missing, (number, missing)
        is_whole(settings)
        files.add(database.store().ring.database_file)
        assert len(list(settings.data_dir.glob("database/*.db"))) == 1, number
        database.close_store()
        if killer.kills % 50 == 0:
            print(killer.kills, "kills", flush=True)
    promised = beside.end()
    assert promised <= stored(settings)
    is_whole(settings)
    database.close_store()
    client = Client(create_app(settings))
    for path in sorted(promised):
        assert client.get(f"{path}/image" if "photos" in path else f"{path}/messages").status_code == 200
    assert client.get("/api/search?q=number").status_code == 200
    database.close_store()
    assert [str(kind) for kind in check.check(settings, findings.Orders(utc_now())) if kind.wrong] == []
    print(f"{killer.kills} kills of {number} rotations, {len(files)} keys, {len(promised)} rows")


@pytest.mark.parametrize("settings", [{}, {"encryption": False}], indirect=True)
def test_rotations_beside_writing_processes_leave_the_same_rows(settings, beside, compared):  # noqa: F811
    """The writers vacuum, write large transactions, begin the log anew and leave the folder around it."""
    rounds = max(6, KILLS // 4)
    for _ in range(rounds):
        database.open_store(settings)
        rotation.rotate(silent, now=utc_now())
        database.close_store()
    promised = beside.end()
    assert promised <= stored(settings)
    is_whole(settings)
    assert compared["rotations"] == rounds
    database.close_store()
    assert [str(kind) for kind in check.check(settings, findings.Orders(utc_now())) if kind.wrong] == []
