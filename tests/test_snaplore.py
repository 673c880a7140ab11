"""The project's command line, `./snaplore`, in processes of its own: from any folder, with any Python, and
without Flask's commands.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import psutil
import pytest

from commands import table
from settings import NAME, ROOT, VERSION
from terminal.commands import COMMANDS

SCRIPT = ROOT / "snaplore"
OTHER_PYTHON = Path(sys.base_prefix) / "bin" / "python3"  # of the system, without the packages


def run(*arguments, script=SCRIPT, cwd=ROOT, **environment):
    """Run the script as a shell does, without the environment of this process."""
    environment = {"PATH": f"{OTHER_PYTHON.parent}:{os.defpath}", **environment}
    return subprocess.run(
        [script, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copy(tmp_path):
    """A checkout with the script alone, whose `app` needs a package."""
    (tmp_path / "app.py").write_text("import flask")
    return Path(shutil.copy(SCRIPT, tmp_path))


@pytest.mark.slow
def test_the_help_lists_the_projects_commands_and_nothing_of_flask():
    shown = run("--help")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("Usage: snaplore [OPTIONS] COMMAND [ARGS]...")
    commands = shown.stdout.partition("Commands:\n")[2]
    # A sentence goes on below itself, further to the right.
    assert re.findall(r"(?m)^  ([a-z-]+)", commands) == sorted(
        command.name for command in (*table.COMMANDS, *COMMANDS)
    )
    assert "..." not in commands
    assert "flask" not in shown.stdout.lower()
    assert run("run").returncode == 2


@pytest.mark.slow
def test_the_version_is_the_projects():
    assert run("--version").stdout == f"{NAME} {VERSION}\n"


@pytest.mark.slow
def test_it_is_run_by_another_python_from_another_folder_through_a_link_as_flask_is(tmp_path):
    link, settings = tmp_path / "link", {"SNAPLORE_DATA_DIR": str(tmp_path / "data")}
    link.symlink_to(SCRIPT)
    shown = run("keys", "show-api-key", script=link, cwd=tmp_path, **settings)

    assert (shown.returncode, shown.stderr) == (0, "")
    flask = [sys.executable, "-m", "flask", "--app", "app", "keys", "show-api-key"]
    by_flask = subprocess.run(
        flask,
        cwd=ROOT,
        env={"PATH": os.defpath, **settings},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert shown.stdout == by_flask.stdout


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["SNAPLORE_RETENTION_DAYS", "SNAPLORE_RATELIMIT_STORAGE"])
def test_a_bad_setting_is_one_line_and_nothing_is_made(tmp_path, variable):
    ended = run("check", SNAPLORE_DATA_DIR=str(tmp_path / "data"), **{variable: "soon"})

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{NAME} cannot start: {variable}: ")
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_a_failure_is_one_line_also_where_the_data_does_not_open(tmp_path):
    (tmp_path / "data" / "keys").mkdir(parents=True)
    (tmp_path / "data" / "keys" / "ring.1").write_bytes(b"damaged")
    ended = run("keys", "status", SNAPLORE_DATA_DIR=str(tmp_path / "data"))

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: ")
    assert len(ended.stderr.splitlines()) == 1


def test_without_an_installation_one_line_names_the_next_step(copy):
    ended = run("--help", script=copy)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"snaplore: there is no {copy.parent / '.venv'}: run `make install` first\n"


@pytest.mark.parametrize("lost", [None, "pyvenv.cfg"])
def test_in_an_incomplete_installation_one_line_names_the_next_step(copy, lost):
    venv.create(copy.parent / ".venv", symlinks=True)
    if lost:
        (copy.parent / ".venv" / lost).unlink()
    ended = run("--help", script=copy)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("snaplore: ")
    assert ended.stderr.endswith(": run `make install` first\n")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "language"), [("", "en"), ("C.UTF-8", "en"), ("zh_CN.UTF-8", None)])
def test_make_run_speaks_english_where_no_locale_names_a_language(tmp_path, locale, language):
    environment = {
        "PATH": os.environ["PATH"],
        "LANG": locale,
        "SNAPLORE_DATA_DIR": str(tmp_path / "data"),
        "SNAPLORE_BIND": "127.0.0.1:0",
    }
    with subprocess.Popen(
        ["make", "--no-print-directory", "run"], cwd=ROOT, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True, text=True,
    ) as started:  # fmt: skip
        try:
            assert any(line.startswith("Open:") for line in started.stdout)
            (service,) = psutil.Process(started.pid).children()
            assert service.environ().get("SNAPLORE_LANGUAGE") == language
        finally:
            os.killpg(started.pid, signal.SIGTERM)
