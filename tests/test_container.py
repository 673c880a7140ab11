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
PORT = 8917
OPTIONS = (
    "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host",
    "--tmpfs=/tmp:mode=1777,size=256m", "--env=SNAPLORE_LANGUAGE=en", f"--env=SNAPLORE_BIND=127.0.0.1:{PORT}",
)  # fmt: skip

built = (
    shutil.which("podman") is not None
    and subprocess.run(["podman", "image", "exists", IMAGE], check=False).returncode == 0
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not built, reason=f"podman has no image {IMAGE}: docs/operations.md builds it"),
]


def podman(*arguments):
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def container(name, volume, *command):
    podman("run", "--detach", f"--name={name}", f"--volume={volume}:/data", *OPTIONS, IMAGE, *command)
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


def test_a_person_uploads_finds_and_deletes_and_a_kill_loses_nothing(volume):
    url = f"http://127.0.0.1:{PORT}"
    with container(f"{volume}-service", volume) as name, requests.Session() as session:

        def healthy():
            done = subprocess.run(
                ["podman", "exec", name, "python3", "deploy/healthy"], capture_output=True, check=False
            )
            return done.returncode == 0

        eventually(healthy, "the container is healthy", every=0.5)
        assert podman("exec", name, "id", "-u").strip() == "10001"
        hint = podman("exec", name, "snaplore", "keys", "show-api-key")
        session.headers["Authorization"] = f"Bearer {hint.split()[-1]}"
        picture = draw("Dentist appointment\nFriday 14:30\nBring the insurance card", size=(720, 1280))
        stored = session.post(f"{url}/api/photos/upload", files={"file": ("a.png", picture)}, timeout=120)
        assert stored.ok, stored.text
        photo = stored.json()["id"]

        podman("kill", "--signal=KILL", name)
        podman("start", name)
        eventually(healthy, "the container is healthy again", every=0.5)

        def found():
            answer = session.get(f"{url}/api/search", params={"q": "dentsit insurance"}, timeout=120).json()
            return [hit["id"] for hit in answer["items"]] == [photo]

        eventually(found, "the screenshot is read and found by a word with a typo", every=0.5, patience=90)
        assert session.get(f"{url}/api/photos/{photo}/image", timeout=120).content == picture
        answer = session.post(f"{url}/api/chat/send", json={"message": "When is the dentist?"}, timeout=120)
        assert "14:30" in answer.text

        with container(f"{volume}-jobs", volume, "snaplore", "jobs", "schedule") as jobs:
            eventually(
                lambda: re.search(r"rotate-keys: .*\(", podman("logs", jobs)), "the jobs have run", every=0.5
            )
            began = time.monotonic()
            podman("stop", "--time=30", jobs)
            assert time.monotonic() - began < 25  # ended by itself, not by force
            assert json.loads(podman("inspect", jobs))[0]["State"]["ExitCode"] == 0

        assert session.delete(f"{url}/api/photos/{photo}", timeout=120).ok
        assert session.get(f"{url}/api/photos/{photo}", timeout=120).status_code == 404
        written = podman("diff", name).split("\n")
        assert not [line for line in written if re.match(r"[ACD] /opt", line)]
