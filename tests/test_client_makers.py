"""The contract in the hands of those who make clients: linters find nothing in it, and the clients that are
generated from it work with a running service.

The linters and the TypeScript tools come from npm, in the versions of `package-lock.json` in
`tests/client-makers`.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from settings import ROOT
from tests.support.drawing import draw
from tests.support.service import Service

HERE = ROOT / "tests/client-makers"
PATIENCE = 300  # seconds; the installation is 127 MB

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def tools():
    """The folder of the programs. Skips the test when npm is missing or cannot install them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("the makers of clients come from npm, which is not installed")
    lock, ready = HERE / "package-lock.json", HERE / "node_modules/.ready"
    with lock.open() as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # processes of one test run share the folder
        if not ready.exists() or ready.stat().st_mtime < lock.stat().st_mtime:
            command = [npm, "ci", "--prefix", HERE, "--ignore-scripts", "--no-audit", "--no-fund"]
            installed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            if installed.returncode:
                pytest.skip(f"npm cannot install the makers of clients: {installed.stderr[-200:]}")
            ready.touch()
    return HERE / "node_modules/.bin"


@pytest.fixture
def service(tmp_path, fake_llm):
    with Service(
        tmp_path, dev_mode="true", api_key="chat", llm_base_url=fake_llm.url, llm_model="m", language="en"
    ) as service:
        yield service


@pytest.fixture
def contract(service, tmp_path):
    file = tmp_path / "snaplore.json"
    file.write_bytes(service.call("GET", "/api/openapi.json").content)
    return file


@pytest.fixture
def arguments(service, tmp_path):
    """The arguments of a driver: address, token and picture."""
    picture = tmp_path / "screenshot.png"
    picture.write_bytes(draw())
    token = service.call("POST", "/api/tokens", json={"name": "maker", "scope": "full"}).json()["token"]
    return [service.url, token, picture]


def run(*command, folder, **environment):
    """The output of a program. Fails the test with its messages when it fails."""
    ended = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


def hold(driven: str, fake_llm) -> None:
    """What a driver prints is what the service has done."""
    told = json.loads(driven)
    assert told["listed"] == told["found"] == [told["uploaded"]]
    assert told["answers"] == ["The book, on Friday.", "A library's screen."]
    assert told["same"]
    assert (told["thumbnail"], told["refused"]) == ("image/jpeg", "Photo not found")
    assert fake_llm.requests[-1].images or fake_llm.requests[-2].images


@pytest.fixture
def model(fake_llm):
    """Answers an analysis as always, and each chat with its own sentence."""
    usual = fake_llm.default
    sentences = {"And this?": "A library's screen.", "What is due?": "The book, on Friday."}

    def answer(request):
        asked = (sentence for message, sentence in sentences.items() if message in request.text)
        return next(asked, None) or usual(request)

    fake_llm.default = answer
    return fake_llm


def test_redocly_finds_neither_errors_nor_warnings(tools, contract):
    command = (tools / "redocly", "lint", "--config", HERE / "redocly.yaml", "--format", "json", contract)
    found = json.loads(run(*command, folder=contract.parent))

    assert [(problem["ruleId"], problem["message"]) for problem in found["problems"]] == []


def test_spectral_finds_nothing(tools, contract):
    options = ("--quiet", "--format", "json", "--ruleset", HERE / "spectral.yaml")
    found = json.loads(run(tools / "spectral", "lint", *options, contract, folder=contract.parent))

    assert [(problem["code"], problem["message"], problem["path"]) for problem in found] == []


def test_a_generated_python_client_uploads_finds_chats_and_gets_pictures(
    contract, arguments, model, tmp_path
):
    maker = Path(sys.executable).parent / "openapi-python-client"
    options = ("--meta", "none", "--config", HERE / "python.yaml", "--fail-on-warning")
    run(maker, "generate", "--path", contract, "--output-path", tmp_path / "made", *options, folder=tmp_path)

    hold(run(sys.executable, HERE / "drive.py", *arguments, folder=tmp_path, PYTHONPATH=str(tmp_path)), model)


def test_a_generated_typescript_client_uploads_finds_chats_and_gets_pictures(
    tools, contract, arguments, model, tmp_path
):
    for name in ("drive.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(tools.parent)
    # Without this option, a field of a body that has a default is required.
    options = ("--default-non-nullable", "false", "--output", tmp_path / "schema.d.ts")
    run(tools / "openapi-typescript", contract, *options, folder=tmp_path)
    run(tools / "tsc", "--project", tmp_path, folder=tmp_path)  # also checks the types

    hold(run("node", "drive.js", *arguments, folder=tmp_path), model)
