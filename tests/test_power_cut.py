"""Power cuts at each write of uploads, analyses, a deletion and a rotation; and whether what an answer
promises is on the disk before it.

strace ends the process at the entry of a system call. What the kernel had not yet written to the disk is not
lost by that, as it would be with the power; so the order of writes and flushes is looked at as well. `make
faults` cuts at every point, the ordinary run at some that are chosen by chance.
"""

import dataclasses
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import access
import database
from analysis.pool import Worker
from app import create_app
from clock import utc_now
from models import Analysis, Photo
from settings import ROOT
from tests.support.client import Client
from tests.support.drawing import draw
from upkeep import check, findings

WRITES = ("write", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "mkdir", "ftruncate", "truncate")
POINTS = os.environ.get("FAULTS", "3")  # of each kind of work, a second or two each; or all of them
USED = ["start", "upload 1", "analysis 1", "upload 2", "analysis 2", "deletion 1"]
TURNED = ["start", "upload 3", "rotation", "sealing"]
SEED = int(os.environ.get("FAULTS_SEED") or random.SystemRandom().randrange(10_000))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A small one, and one that does not stay in memory."""
    folder = tmp_path_factory.mktemp("pictures")
    for name, size in (("small.png", (60, 60)), ("large.png", (700, 700))):
        (folder / name).write_bytes(draw(name, size=size, compress_level=0))
    return [folder / "small.png", folder / "large.png"]


@pytest.fixture(scope="module")
def third(tmp_path_factory):
    """A picture that is uploaded while the database is copied."""
    picture = tmp_path_factory.mktemp("third") / "third.png"
    picture.write_bytes(draw("third", size=(60, 60)))
    return picture


@pytest.fixture(autouse=True)
def strace():
    tried = shutil.which("strace") and subprocess.run(
        ["strace", "-f", "-o", os.devnull, "true"], capture_output=True, check=False
    )
    if not tried or tried.returncode:
        pytest.skip("strace is not installed, or may not trace here")


@pytest.fixture
def start(remote, tmp_path):
    """A data folder as after its first start, in which no work was done."""
    database.open_store(remote)
    with database.scope():
        access.generated_api_key()
    database.close_connections()
    return dataclasses.replace(remote, data_dir=remote.data_dir)


@pytest.fixture
def stored(start, pictures):
    """The same folder, with the pictures in it."""
    client = Client(create_app(start))
    for picture in pictures:
        client.upload(
            picture.read_bytes(), picture.name, local_media_store_id=picture.name, device_id="phone"
        )
    worker = Worker(start)
    while worker.work():
        pass
    database.close_connections()
    return start


def run(settings, work, *options):
    """What the process has answered, traced with `options` of strace until it ended or was ended; and how it
    did.
    """
    foreign = ("SNAPLORE_", "PYTEST_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {
        "SNAPLORE_DATA_DIR": str(settings.data_dir),
        "SNAPLORE_DEV_MODE": "true",
        "SNAPLORE_LLM_BASE_URL": settings.llm_base_url,
        "SNAPLORE_LLM_MODEL": settings.llm_model,
        "SNAPLORE_READ_LOCALLY": "false",
        "SNAPLORE_LLM_API_KEY": settings.llm_api_key,
        "PYTHONDONTWRITEBYTECODE": "1",  # which writes by itself, and not in the same order each time
    }
    traced = [
        "strace",
        "-f",
        "-qq",
        *options,
        sys.executable,
        str(ROOT / "tests" / "support" / "power_cut.py"),
        *map(str, work),
    ]
    ended = subprocess.run(
        traced, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if "Traceback" in ended.stderr:
        pytest.fail(ended.stderr)
    return ended.stdout.split("\n")[:-1], ended.returncode


def trace(settings, work, log, expected):
    """The calls of a whole run on the data folder, from the first answer on: name, arguments with the paths
    of descriptors, result.
    """
    answers, code = run(
        settings, work, "-y", "-e", f"trace={','.join(WRITES)},openat", "-s", "100", "-o", str(log)
    )
    assert code == 0
    assert answers == [f"answered {what}" for what in expected]
    calls = [
        match.groups()
        for line in log.read_text().splitlines()
        if (match := re.match(r"\d+ +(\w+)\((.*)\) += +(\S+)", line))
    ]
    begin = next(number for number, (_, arguments, _) in enumerate(calls) if "answered start" in arguments)
    return calls, begin


def assert_flushed(calls, data, copy=None):
    """Every byte that was written is flushed, and every name, before the next answer; only then is it one.
    How often, by folder. `copy` is a database that is still being made: it is flushed before the key ring
    names it.
    """
    waiting: dict[str, str] = {}  # path of a file or folder -> what it waits with to be flushed
    flushed = Counter()
    for name, arguments, result in calls:
        paths = re.findall(rf'[<"]({re.escape(data)}[^>"]*)[>"]', arguments)
        if name == "write" and arguments.startswith("1<"):
            # A deletion's files go after its commit: that they are gone is not promised to outlast a power
            # cut.
            assert {path: why for path, why in waiting.items() if why != "unlink" and path != copy} == {}, (
                f"before {arguments}"
            )
            flushed["answers"] += 1
        elif not paths or paths[0].endswith("-shm") or result.startswith("-1"):
            continue
        elif name in ("fsync", "fdatasync"):
            waiting.pop(paths[0], None)
            flushed[Path(paths[0]).relative_to(data).parts[0]] += 1
        elif name == "rename":
            assert paths[0] not in waiting, f"{paths[0]} got its name before its content was safe"
            if "/keys/ring." in paths[1]:
                assert copy not in waiting, f"{copy} is the database before its content is safe"
                copy = None
            waiting[str(Path(paths[1]).parent)] = "rename"
        elif name == "mkdir" and not paths[0].endswith(
            ("/workers", "/jobs")
        ):  # whose files only say who lives and works
            waiting[str(Path(paths[0]).parent)] = "mkdir"
        elif name in ("write", "pwrite64", "ftruncate", "truncate"):
            waiting[paths[0]] = name
        elif name == "unlink":
            waiting.pop(paths[0], None)
            waiting[str(Path(paths[0]).parent)] = "unlink"
    return flushed


@pytest.mark.slow
def test_what_an_answer_promises_has_reached_the_disk_before_it(start, pictures, tmp_path):
    calls, begin = trace(start, ["use", *pictures], tmp_path / "log", USED)
    flushed = assert_flushed(calls[begin + 1 :], str(start.data_dir))
    assert flushed["answers"] == 5
    assert flushed["database"] >= 5
    assert flushed["photos"] >= 2
    assert flushed["spool"] >= 4


@pytest.mark.slow
def test_a_new_key_is_on_the_disk_before_the_old_one_goes(stored, third, tmp_path):
    calls, begin = trace(stored, ["turn", third], tmp_path / "log", TURNED)
    database.open_store(stored)
    new = str(database.store().database)
    database.close_store()
    flushed = assert_flushed(calls[begin + 1 :], str(stored.data_dir), new)
    assert flushed["answers"] == 3
    assert flushed["keys"] >= 4
    ring = next(
        n
        for n, (name, arguments, _) in enumerate(calls)
        if n > begin and name == "rename" and "keys/ring." in arguments
    )
    assert any(name == "fsync" and f"{new}>" in arguments for name, arguments, _ in calls[begin:ring])
    assert not [
        name
        for name, arguments, _ in calls[begin:ring]
        if name in ("unlink", "truncate") and re.search(r"\.db\"", arguments)
    ]


def cut(settings, work, tmp_path, expected):
    """Cut the power at some writes of `work`, each time from the same start; where that was and what was
    answered before it.
    """
    untouched = tmp_path / "untouched"
    shutil.copytree(settings.data_dir, untouched)
    calls, begin = trace(settings, work, tmp_path / "log", expected)
    counted, points = Counter(), []
    for number, (name, arguments, _) in enumerate(calls):
        counted[name] += 1
        if number > begin and name in WRITES and str(settings.data_dir) in arguments:
            points.append((name, counted[name]))
    assert len(points) > 60
    chosen = points if POINTS == "all" else random.Random(SEED).sample(points, int(POINTS))
    print(f"{len(chosen)} of {len(points)} points, FAULTS_SEED={SEED}")
    for name, count in chosen:
        shutil.rmtree(settings.data_dir)
        shutil.copytree(untouched, settings.data_dir)
        answers, code = run(
            settings,
            work,
            "-e",
            f"trace={name}",
            "-e",
            f"inject={name}:signal=SIGKILL:when={count}",
            "-o",
            os.devnull,
        )
        assert code == -signal.SIGKILL, f"{name} {count}"
        yield answers, f"{name} {count}"


@pytest.mark.slow
def test_wherever_the_power_is_cut_what_was_answered_is_there_and_nothing_is_there_by_half(
    start, pictures, tmp_path
):
    for answers, point in cut(start, ["use", *pictures], tmp_path, USED):
        assert_whole(start, pictures, answers, point)


@pytest.mark.slow
def test_wherever_the_power_is_cut_while_keys_turn_everything_is_there(stored, pictures, third, tmp_path):
    before = ["answered upload 1", "answered analysis 1", "answered upload 2"]
    for answers, point in cut(stored, ["turn", third], tmp_path, TURNED):
        assert_whole(stored, [*pictures, third], before + answers, point)
        assert len(list(stored.data_dir.glob("database/*.db"))) == 1, point


def assert_whole(settings, pictures, answers, point):
    """After a restart: everything answered, each upload whole or not there, and what was under way goes on to
    its end.
    """
    client = Client(create_app(settings))
    worker = Worker(settings)
    try:
        with database.scope():
            worker.recover(now=utc_now())
            kept = dict(Photo.select(Photo.id, Photo.local_media_store_id).tuples())
            done = {
                row[0] for row in Analysis.select(Analysis.photo).where(Analysis.status == "done").tuples()
            }
        promised = {int(answer.split()[-1]) for answer in answers if answer.startswith("answered upload")}
        analysed = {int(answer.split()[-1]) for answer in answers if answer.startswith("answered analysis")}
        deletable = {1} if "answered analysis 2" in answers else set()
        assert promised - deletable <= kept.keys(), point
        assert analysed - deletable <= done, point
        for photo_id, name in kept.items():
            original = next(picture for picture in pictures if picture.name == name).read_bytes()
            assert client.get(f"/api/photos/{photo_id}/image").data == original, point
        # What was not answered is sent once more, and nothing is there twice.
        for picture in pictures:
            again = client.upload(
                picture.read_bytes(), picture.name, local_media_store_id=picture.name, device_id="phone"
            )
            assert again.status_code == 200, point
        while worker.work():
            pass
        assert client.get("/api/stats").json["done"] == len(pictures), point
        assert client.get("/api/photos").json["total"] == len(pictures), point
        database.close_connections()
        assert [
            str(kind) for kind in check.check(settings, findings.Orders(utc_now())) if kind.wrong
        ] == [], point
    finally:
        database.close_connections()
