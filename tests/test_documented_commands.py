"""The commands of README and the documents run, in a fresh clone and with a home folder of its own. README's
way starts the service, and the others use it. `NOT_RUN` says why a block is left out.
"""

import os
import re
import signal
import subprocess
import zipfile

import pytest

from settings import ROOT
from tests.support.drawing import draw

DOCUMENTS = [*sorted(path.name for path in ROOT.glob("docs/*.md") if path.name != "api.md"), "api.md"]
URL = "http://127.0.0.1:8927"

# A block that one of these matches is not run, for the reason beside it.
NOT_RUN = {
    r"(^|\n|\| )sudo ": "needs root and a machine of its own: release/try-deb has one",
    r"^podman compose": "needs podman: release/try-image builds the image and uses it",
    r"^pipx install": "needs the network: tests/test_release.py installs the wheel so",
    r"^(nice -n 19 )?make (bench|compare|load|judge|train)": "measures for minutes",
    r"-m benchmarks\.|make test-all": "measures for minutes",
    r"tests/test_(past|site)\.py": "minutes, and the network: `make release-test` runs them",
    r"tls init": "the others would have to use https from then on: tests/test_certificates.py",
    r"openapi-python-client": "makes clients by other programs: tests/test_client_makers.py",
}
# Of a block that is run, a line that one of these matches is left out.
LINES_NOT_RUN = {r"--from immich": "asks a server of others: tests/test_past.py has one"}
# The API's examples are run in order against little data, and some delete it. So what they name may be
# missing (404), in another state (409), or need a model or a network that is not there (502, 503).
ANSWERS = {200, 201, 202, 204, 404, 409, 502, 503}


def blocks(path):
    return re.findall(r"(?ms)^```sh\n(.*?)^```$", path.read_text())


def is_run(block):
    return not any(re.search(pattern, block) for pattern in NOT_RUN)


def commands(block):
    """The lines of a block; one that ends in a backslash, or inside quotes, goes on."""
    command = ""
    for line in block.splitlines():
        command += line + "\n"
        if not line.endswith("\\") and command.count("'") % 2 == 0:
            if not any(re.search(pattern, command) for pattern in LINES_NOT_RUN):
                yield command.strip()
            command = ""


def shell(command, place, environment):
    """Run a command; returns its exit code and what it printed."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(
        ["bash", "-uc", command], cwd=place, env=environment, text=True, timeout=600, check=False, **options
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """README's block, until the service answers: the folder of the clone and its environment."""
    place, home = tmp_path_factory.mktemp("documents"), tmp_path_factory.mktemp("home")
    (home / "Pictures/Screenshots").mkdir(parents=True)
    for number in range(13):
        (home / f"Pictures/Screenshots/{number}.png").write_bytes(draw(f"Hotel {number}", size=(320, 640)))
    (home / ".curlrc").write_text('silent\nshow-error\nwrite-out = "\\n%{http_code}\\n"\n')
    environment = {"HOME": str(home), "PATH": os.defpath, "LANG": "en_GB.UTF-8", "URL": URL}
    environment["SNAPLORE_BIND"] = URL.removeprefix("http://")
    wheels = ROOT / "release/.wheels/amd64"  # as `make deb` leaves them; else from the network
    if wheels.is_dir():
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    (block,) = blocks(ROOT / "README.md")
    block = ["bash", "-euc", block.replace("<this repository>", str(ROOT))]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            block, cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    folder = place / "snaplore"
    try:
        waits = f"while kill -0 {process.pid} && ! curl --fail $URL/api/health; do sleep 1; done"
        shell(waits, place, environment)
        assert process.poll() is None, (place / "log").read_text()
        code, printed = shell(
            "./snaplore add ~/Pictures", folder, environment
        )  # documents name them by number
        assert code == 0, printed
        environment["KEY"] = shell("./snaplore keys show-api-key", folder, environment)[1].split()[-1]
        environment["TOKEN"] = environment["KEY"]
        with zipfile.ZipFile(folder / "takeout-1.zip", "w") as archive:
            archive.writestr("Takeout/Google Photos/Photos from 2026/Screenshot_1.png", draw("Takeout"))
        (folder / "screenshot.png").write_bytes(draw("Invoice 42"))
        yield folder, environment
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)


@pytest.mark.slow
def test_each_command_of_the_documents_that_can_be_run_here_works(started):
    wrong = []
    every = [block for name in DOCUMENTS for block in blocks(ROOT / "docs" / name)]
    for command in [line for block in every if is_run(block) for line in commands(block)]:
        if "snaplore.pyz login" in command:
            shell("make client", *started)
        if "7KQ2MPXW" in command:
            code = re.search(r"\b[0-9A-Z]{8}\b", shell("./snaplore pair", *started)[1]).group()
            command = command.replace("7KQ2MPXW", code)
        command = re.sub(r"http://(127\.0\.0\.1|192\.168\.1\.20):8000", URL, command)
        code, printed = shell(command, *started)
        if code or (command.startswith("curl") and int(printed.split()[-1]) not in ANSWERS):
            wrong.append(f"{command}\n{code}: {printed}")
    assert not wrong, "\n\n".join(wrong)


def test_no_reason_is_left_over():
    every = [block for name in DOCUMENTS for block in blocks(ROOT / "docs" / name)]
    for pattern in {**NOT_RUN, **LINES_NOT_RUN}:
        assert any(re.search(pattern, block) for block in every), pattern
