"""The container of Containerfile, where podman has its image localhost/snaplore: a person's way
through it with a read-only root and without privileges, with its jobs beside it and a kill in the middle.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time

import pytest
import requests

from tests.support.drawing import draw
from tests.support.service import eventually

IMAGE = "localhost/snaplore"
BEFORE = "localhost/snaplore-before"  # of an earlier commit: release/try-image builds it
OTHER = "localhost/snaplore-arm64"  # the same, from a base for arm64, which qemu runs
PORT = 8917
URL = f"http://127.0.0.1:{PORT}"
OPTIONS = (
    "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host",
    "--tmpfs=/tmp:mode=1777,size=256m", "--env=SNAPLORE_LANGUAGE=en", f"--env=SNAPLORE_BIND=127.0.0.1:{PORT}",
)  # fmt: skip


def built(image):
    """The mark of a test that needs this image."""
    there = (
        shutil.which("podman") is not None
        and subprocess.run(["podman", "image", "exists", image], check=False).returncode == 0
    )
    return pytest.mark.skipif(not there, reason=f"podman has no image {image}: release/try-image builds it")


pytestmark = pytest.mark.slow


def podman(*arguments):
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def container(name, volume, *command, image=IMAGE, options=()):
    podman(
        "run", "--detach", f"--name={name}", f"--volume={volume}:/data", *OPTIONS, *options, image, *command
    )  # fmt: skip
    try:
        yield name
    finally:
        podman("rm", "--force", "--time=40", name)


@pytest.fixture
def volume():
    name = f"snaplore-test-{os.getpid()}"
    podman("volume", "create", name)
    yield name
    podman("volume", "rm", "--force", name)


def wait_until_healthy(name, patience=90):
    def healthy():
        done = subprocess.run(
            ["podman", "exec", name, "python3", "deploy/healthy"], capture_output=True, check=False
        )
        return done.returncode == 0

    eventually(healthy, "the container is healthy", every=0.5, patience=patience)


def upload(session, name):
    """Store a picture with the key of the container; returns it and its id."""
    shown = podman("exec", name, "snaplore", "keys", "show-api-key")
    session.headers["Authorization"] = f"Bearer {shown.split()[-1]}"
    picture = draw("Dentist appointment\nFriday 14:30\nBring the insurance card", size=(720, 1280))
    stored = session.post(f"{URL}/api/photos/upload", files={"file": ("a.png", picture)}, timeout=120)
    assert stored.ok, stored.text
    return picture, stored.json()["id"]


def wait_until_found(session, photo, patience=90):
    def found():
        answer = session.get(f"{URL}/api/search", params={"q": "dentsit insurance"}, timeout=120).json()
        return [hit["id"] for hit in answer["items"]] == [photo]

    eventually(found, "the screenshot is read and found by a word with a typo", every=0.5, patience=patience)


@built(IMAGE)
def test_a_person_uploads_finds_and_deletes_and_a_kill_loses_nothing(volume):
    with container(f"{volume}-service", volume) as name, requests.Session() as session:
        wait_until_healthy(name)
        assert podman("exec", name, "id", "-u").strip() == "10001"
        picture, photo = upload(session, name)

        podman("kill", "--signal=KILL", name)
        podman("start", name)
        wait_until_healthy(name)
        wait_until_found(session, photo)
        assert session.get(f"{URL}/api/photos/{photo}/image", timeout=120).content == picture
        answer = session.post(f"{URL}/api/chat/send", json={"message": "When is the dentist?"}, timeout=120)
        assert "14:30" in answer.text

        with container(f"{volume}-jobs", volume, "snaplore", "jobs", "schedule") as jobs:
            eventually(
                lambda: re.search(r"rotate-keys: .*\(", podman("logs", jobs)), "the jobs have run", every=0.5
            )
            began = time.monotonic()
            podman("stop", "--time=30", jobs)
            assert time.monotonic() - began < 25  # ended by itself, not by force
            assert json.loads(podman("inspect", jobs))[0]["State"]["ExitCode"] == 0

        assert session.delete(f"{URL}/api/photos/{photo}", timeout=120).ok
        assert session.get(f"{URL}/api/photos/{photo}", timeout=120).status_code == 404
        written = podman("diff", name).split("\n")
        assert not [line for line in written if re.match(r"[ACD] /opt", line)]


@built(IMAGE)
@built(BEFORE)
def test_an_update_from_an_earlier_image_keeps_what_is_in_the_volume(volume):
    with requests.Session() as session:
        with container(f"{volume}-before", volume, image=BEFORE) as name:
            wait_until_healthy(name)
            picture, photo = upload(session, name)
            wait_until_found(session, photo)
        with container(f"{volume}-after", volume) as name:
            wait_until_healthy(name)
            wait_until_found(session, photo)
            assert session.get(f"{URL}/api/photos/{photo}/image", timeout=120).content == picture
            podman("exec", name, "snaplore", "check")


@built(OTHER)
def test_the_image_for_another_machine_starts_stores_and_finds(volume):
    # The OCR engine looks at the processors in /sys, which are those of the machine below, and crashes.
    options = ["--env=SNAPLORE_OCR_MODEL=tiny", "--security-opt=mask=/sys/devices/system/cpu"]
    started = container(f"{volume}-other", volume, image=OTHER, options=options)
    with started as name, requests.Session() as session:
        wait_until_healthy(name, patience=300)
        assert podman("exec", name, "uname", "-m").strip() == "aarch64"
        picture, photo = upload(session, name)
        wait_until_found(session, photo, patience=600)
        assert session.get(f"{URL}/api/photos/{photo}/image", timeout=120).content == picture
