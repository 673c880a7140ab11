"""`snaplore serve` and `snaplore service`: the service in the foreground, and by a person's own systemd."""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from datetime import datetime

import pytest
import requests

from app import create_app
from settings import ROOT, Settings
from tests.support.service import eventually
from upkeep import demo

ENVIRONMENT = {"PATH": os.defpath, "SNAPLORE_READ_LOCALLY": "false", "SNAPLORE_MEANING": "off"}


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, ROOT / "snaplore", *arguments],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("quiet", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_it_serves_from_any_folder_and_prints_its_address_and_key_unless_it_shall_be_quiet(tmp_path, quiet):
    # Modules of the person's folder are not the service's.
    (tmp_path / "app.py").write_text("raise SystemExit('the wrong app')")
    log = tmp_path / "log.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [ROOT / "snaplore", "serve", *(["--quiet"] if quiet else [])],
            cwd=tmp_path,
            env={**ENVIRONMENT, "SNAPLORE_DATA_DIR": "kept here", "SNAPLORE_BIND": "127.0.0.1:0"},
            stdout=output,
            stderr=output,
        )
    try:
        (url,) = eventually(
            lambda: re.findall(r"Listening at: (http://\S+) ", log.read_text()), "the service listens"
        )
        key = (tmp_path / "kept here" / "keys").exists() and run(
            "keys", "show-api-key", SNAPLORE_DATA_DIR=str(tmp_path / "kept here")
        ).stdout.strip()
        header = {"Authorization": f"Bearer {key}"}
        # No locale names a language, so a person gets English.
        skill = requests.get(f"{url}/api/skills", headers=header, timeout=60).json()
        assert "助手" not in str(skill)
        assert (key in log.read_text()) is not quiet
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["kept here"]


@pytest.fixture
def home(tmp_path):
    """A home folder with a systemctl that writes down its calls."""
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n')
    program.chmod(0o755)
    return tmp_path


def installed(home, *arguments, **environment):
    return run(
        *("service", *arguments),
        HOME=str(home),
        **{"PATH": f"{home / 'tools'}:{os.defpath}", "SNAPLORE_DATA_DIR": str(home / "data"), **environment},
    )


@pytest.mark.slow
def test_units_of_a_person_are_written_started_and_removed_while_the_data_stays(home):
    (home / "data").mkdir()
    done = installed(
        *(home, "install"),
        SNAPLORE_WATCH='My phone=/srv/100%/a "b"',
        SNAPLORE_LLM_API_KEY="sk-secret-of-a-person",
    )
    assert done.returncode == 0, done.stderr
    assert "SNAPLORE_LLM_API_KEY is secret" in done.stderr
    folder = home / ".config/systemd/user"
    units = {unit.name: unit.read_text() for unit in folder.iterdir()}
    assert set(units) == {"snaplore.service", "snaplore-jobs.service"}
    for unit in units.values():
        assert "@" not in re.sub(r"(?m)^#.*$", "", unit)
        assert "sk-secret" not in unit
        assert f'Environment="SNAPLORE_DATA_DIR={home / "data"}"' in unit
        assert 'Environment="SNAPLORE_WATCH=My phone=/srv/100%%/a \\"b\\""' in unit
        assert 'Environment="SNAPLORE_LANGUAGE=en"' in unit
    both = "snaplore.service snaplore-jobs.service"
    assert (home / "calls").read_text().splitlines() == [
        "--user daemon-reload",
        f"--user enable {both}",
        f"--user restart {both}",
    ]

    if analyze := shutil.which("systemd-analyze"):
        checked = subprocess.run(
            [analyze, "--user", "verify", "--man=no", *map(str, folder.iterdir())],
            env={"PATH": os.defpath, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "snaplore" not in checked.stderr, checked.stderr

    assert installed(home, "uninstall").returncode == 0
    assert list(folder.iterdir()) == []
    assert stat.S_ISDIR((home / "data").stat().st_mode)
    assert "No unit is installed." in installed(home, "uninstall").stderr


@pytest.mark.slow
def test_without_systemd_one_line_says_what_to_do(home):
    (home / "tools" / "systemctl").unlink()
    done = installed(home, "install", PATH=str(home / "tools"))

    assert done.returncode == 1
    assert "This machine has no systemd." in done.stderr


# ------------------------------------------------------------------------------------------------------- demo


def test_a_service_that_is_read_only_shows_everything_and_changes_nothing(tmp_path):
    settings = Settings(data_dir=tmp_path / "data", api_key="k", language="en", read_only=True)
    with create_app(settings).test_client() as client:
        header = {"Authorization": "Bearer k"}
        assert client.get("/api/photos", headers=header).status_code == 200
        assert client.get("/").status_code == 200
        for call in (client.post, client.patch, client.put, client.delete):
            assert call("/api/photos/1", headers=header).status_code in (403, 405)
        refused = client.post("/api/photos/upload", headers=header)
        assert refused.status_code == 403
        assert refused.json == {"detail": "Nothing can be changed here: this service is read-only."}
        assert client.post("/api/photos/upload").status_code == 401


@pytest.mark.slow
def test_the_demos_screens_are_fifty_and_all_different_where_there_is_a_chinese_font(tmp_path, monkeypatch):
    now = datetime(2026, 3, 4, 12, 0)
    assert demo.draw(tmp_path, now=now) in (28, 50)
    drawn = list(tmp_path.iterdir())
    assert len({file.read_bytes() for file in drawn}) == len(drawn)
    assert all(file.stat().st_mtime <= now.timestamp() for file in drawn)
    monkeypatch.setenv("PATH", "/nowhere")
    assert demo.chinese_font() is None


@pytest.mark.slow
def test_the_demo_is_searched_cannot_be_changed_and_leaves_nothing(tmp_path):
    temporary, log = tmp_path / "temporary", tmp_path / "log.txt"
    temporary.mkdir()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, ROOT / "snaplore", "serve", "--demo"],
            env={
                **ENVIRONMENT, "SNAPLORE_READ_LOCALLY": "true", "TMPDIR": str(temporary),
                "SNAPLORE_BIND": "127.0.0.1:0", "SNAPLORE_DATA_DIR": str(tmp_path / "mine"),
            },
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        key = eventually(lambda: re.search(r"API key: (\S+)", log.read_text()), "the key is printed")[1]
        url = re.findall(r"Listening at: (http://\S+) ", log.read_text())[0]
        header = {"Authorization": f"Bearer {key}"}
        total = eventually(
            lambda: requests.get(f"{url}/api/photos", headers=header, timeout=60).json()["total"], ""
        )
        assert total in (28, 50)
        assert requests.delete(f"{url}/api/photos/1", headers=header, timeout=60).status_code == 403

        def found():
            answer = requests.get(f"{url}/api/search?q=parcelwise", headers=header, timeout=60)
            return answer.json()["items"]

        eventually(found, "a screen is found by its words", every=1, patience=300)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / "mine").exists()
