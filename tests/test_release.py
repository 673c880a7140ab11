"""What is released: the wheel and the Debian package, with all of the program and nothing else, installed and
used where the tools for it are.
"""

import email
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import requests

from release import pages, wheelhouse
from settings import ROOT, VERSION
from tests.support.drawing import draw
from tests.support.service import eventually

LEFT_OUT = {"benchmarks", "docs", "release", "tests"}
APP = "snaplore/_app/"


def program(*arguments, **options):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=True, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    made = tmp_path_factory.mktemp("wheel")
    program(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made, cwd=ROOT)
    (wheel,) = made.glob("*.whl")
    return wheel


def tracked():
    """The files of the project, without those that git does not keep."""
    if not (shutil.which("git") and (ROOT / ".git").exists()):
        pytest.skip("this is no checkout of git")
    listed = program("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).stdout
    return {Path(line) for line in listed.splitlines() if (ROOT / line).exists()}


def test_the_wheel_has_all_of_the_program_in_one_package(wheel):
    assert wheel.name == f"snaplore-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        modes = {member.filename: member.external_attr >> 16 & 0o777 for member in archive.infolist()}
    assert all(name.startswith(APP) for name in names)
    there = {Path(name.removeprefix(APP)) for name in names}
    wanted = {
        path
        for path in tracked()
        if path.parts[0] not in LEFT_OUT
        and path.parts[:2] != ("deploy", "catalogues")
        and not path.name.startswith(".")
        and not path.parts[0].startswith(".")
        and (
            len(path.parts) > 1 or path.suffix == ".py" or path.name in ("access.toml", "crontab", "snaplore")
        )
    }
    assert there == wanted
    assert modes[f"{APP}snaplore"] & 0o100


def test_the_wheel_names_each_requirement_once_in_the_version_that_was_tested(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (place,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(place))
    named = [line.partition("==")[0] for line in about.get_all("Requires-Dist")]
    wanted = {
        re.split(r"[=>]", line, maxsplit=1)[0]
        for line in (ROOT / "requirements.in").read_text().splitlines()
        if line and not line.startswith("#")
    }
    assert wanted - set(named) == {"pip"}  # the installer
    assert len(set(named)) == len(named)
    assert all("==" in line for line in about.get_all("Requires-Dist"))
    assert about["Version"] == VERSION


def test_a_lock_without_markers_names_what_any_python_needs():
    lock = "a==1 ; python_full_version < '3.11.3' \\\n    --hash=sha256:00\nb==2 \\\n    --hash=sha256:01\n"

    plain = "a==1 \\\n    --hash=sha256:00\nb==2 \\\n    --hash=sha256:01\n"
    assert wheelhouse.without_markers(lock) == plain
    assert " ; " not in wheelhouse.without_markers((ROOT / "requirements.txt").read_text())


# ------------------------------------------------------------------------------------------------- installed


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """All wheels of the service for this Python, from the folder of `make deb` or the network."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    kept = ROOT / "release" / ".wheels" / "amd64"
    folder = kept if kept.is_dir() else tmp_path_factory.mktemp("wheels")
    if os.uname().machine != "x86_64":
        folder = tmp_path_factory.mktemp("wheels")
    arch = next(name for name, machine in wheelhouse.MACHINES.items() if machine == os.uname().machine)
    try:
        wheelhouse.download(folder, arch, (version,))
    except subprocess.CalledProcessError:
        pytest.skip("the wheels of the service cannot be fetched: no network")
    return folder


def found_after_upload(snaplore, environment, home):
    """Start the service, add a picture and search until it is found. Returns what the search prints."""
    picture, log = home / "shot.png", home / "log.txt"
    picture.write_bytes(draw("Dentist appointment\nFriday 14:30\nBring the insurance card", size=(720, 1280)))
    with log.open("wb") as output:
        process = subprocess.Popen([snaplore, "serve"], env=environment, stdout=output, stderr=output)
    try:
        url = f"http://{environment['SNAPLORE_BIND']}"

        def answers():
            assert process.poll() is None, log.read_text()
            try:
                return requests.get(f"{url}/api/health", timeout=10).ok
            except requests.ConnectionError:
                return False

        eventually(answers, "the service answers", every=0.2)
        program(snaplore, "add", picture, env=environment)

        def found():
            done = program(snaplore, "search", "dentist", env=environment)
            return done.stdout

        shown = eventually(found, "the screenshot is found", every=1)
    finally:
        process.terminate()
        code = process.wait(60)
    assert code == 0, log.read_text()
    return shown


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_an_installed_wheel_serves_stores_reads_and_finds_without_network(wheel, wheels, tmp_path):
    place = tmp_path / "installed"
    venv.create(place, with_pip=True, symlinks=True)
    clean = {"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull}
    program(
        *(place / "bin/python", "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "-qq"),
        *("--no-index", "--no-compile", "--find-links", wheels, wheel),
        env=clean,
    )
    for folder in (*place.rglob("snaplore"), *place.rglob("snaplore/**/")):
        if folder.is_dir():
            folder.chmod(0o555)  # root may write all the same; the data must not be here
    home = tmp_path / "home"
    home.mkdir()
    environment = {**clean, "HOME": str(home), "SNAPLORE_BIND": "127.0.0.1:8919", "LANG": "en_GB.UTF-8"}
    assert "14:30" in found_after_upload(place / "bin/snaplore", environment, home)
    assert (home / ".local/share/snaplore/keys").is_dir()
    assert not list(place.rglob("_app/data"))
    version = program(place / "bin/snaplore", "--version", env=environment).stdout
    assert version == f"Snaplore {VERSION}\n"
    done = program(place / "bin/snaplore", "jobs", "decay", env=environment)
    assert done.stdout.startswith("decay: ")
    program(place / "bin/snaplore", "service", "install", "--no-start", env=environment)
    unit = (home / ".config/systemd/user/snaplore.service").read_text()
    assert f'ExecStart="{place}/bin/snaplore" serve --quiet' in unit


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize("installer", ["uv", "pipx"])
def test_uv_and_pipx_install_a_command_that_serves(installer, wheel, wheels, tmp_path):
    there = shutil.which(installer, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if there is None:
        pytest.skip(f"{installer} is not installed")
    environment = {
        "PATH": os.defpath, "HOME": str(tmp_path), "LANG": "en_GB.UTF-8", "PIP_CONFIG_FILE": os.devnull,
        "SNAPLORE_BIND": "127.0.0.1:8919",
    }  # fmt: skip
    if installer == "uv":
        options = ["tool", "install", "--offline", "--no-index", "--find-links", wheels]
    else:  # whose own pip is from the network
        options = ["install", f"--pip-args=--no-index --find-links={wheels}"]
    program(there, *options, "--python", sys.executable, wheel, env=environment)

    assert "14:30" in found_after_upload(tmp_path / ".local/bin/snaplore", environment, tmp_path)


# -------------------------------------------------------------------------------------------------- the site


def test_pages_of_the_site_link_to_each_other_and_to_nothing_that_is_not_there(tmp_path):
    pages.place(tmp_path)
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    for page in tmp_path.glob("*.md"):
        for target in re.findall(r"\]\(([^()\s]+)\)", page.read_text()):
            if not re.match(r"[a-z]+:|#", target):
                assert target.partition("#")[0] in there, f"{page.name}: {target}"
    navigation = (ROOT / "release/site/mkdocs.yml").read_text()
    named = set(re.findall(r"\b[\w]+\.md\b", navigation))
    assert named == {page.name for page in tmp_path.glob("*.md")}


def test_the_twenty_questions_lead_to_an_answer_by_one_click():
    questions = (ROOT / "docs/questions.md").read_text()
    asked = re.findall(r"(?m)^[0-9]+\. [^?]+\? (.*)$", questions)
    assert len(asked) == 20
    assert all("](" in answer for answer in asked)
