"""Deployment: the systemd units, the crontab, and restarts that lose no request."""

import contextlib
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from commands import table
from settings import ROOT, Settings, variable
from tests.support import people
from tests.support.drawing import draw
from tests.support.service import PATIENCE, HeldUpload, Service, eventually

DEPLOY = ROOT / "deploy"
SERVICES = ("snaplore.service", "snaplore@.service", "snaplore-job@.service")
NIGHTLY = ("decay", "cleanup", "rotate-keys")
WORK = ("reason", "remind", *NIGHTLY)
TIMERS = tuple(f"snaplore-{name}.timer" for name in WORK)

needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze, of Debian's package systemd, is not here"
)


def directives(unit: str, section: str) -> list[tuple[str, str]]:
    """The names and values of a section in their order, with repetitions."""
    within, found = False, []
    for line in (DEPLOY / unit).read_text().splitlines():
        if line.startswith("["):
            within = line == f"[{section}]"
        elif within and line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.append((name, value))
    return found


def sandbox(unit: str) -> list[tuple[str, str]]:
    """The directives that restrict a unit: from UMask on."""
    block = directives(unit, "Service")
    return block[block.index(("UMask", "0077")) :]


# ---------------------------------------------------------------------------------------------------- systemd


@pytest.fixture
def units(tmp_path):
    """The units as they are installed, with the credential. Their programs and folders are replaced by
    existing ones.
    """
    folder = tmp_path / "units"
    folder.mkdir()
    for unit in (*SERVICES, *TIMERS, "snaplore.socket"):
        text = (
            (DEPLOY / unit)
            .read_text()
            .replace("/opt/snaplore/.venv/bin/", "/bin/")
            .replace("/opt/snaplore", "/")
        )
        (folder / unit).write_text(re.sub(r"(?m)^ExecStart=/bin/\w+", "ExecStart=/bin/sh", text))
    for unit in SERVICES:
        (folder / f"{unit}.d").mkdir()
        shutil.copy(DEPLOY / "master-key.conf", folder / f"{unit}.d")
        shutil.copy(DEPLOY / "bucket.conf", folder / f"{unit}.d")
    return folder


@needs_systemd
def test_systemd_accepts_the_units(units):
    named = (
        "snaplore.service", "snaplore.socket", "snaplore@anna.service", "snaplore-job@reason.service", *TIMERS
    )  # fmt: skip
    (units / "snaplore@anna.service").symlink_to("snaplore@.service")
    (units / "snaplore-job@reason.service").symlink_to("snaplore-job@.service")
    verdict = analyze("verify", "--man=no", "--recursive-errors=no", *(units / unit for unit in named))
    assert verdict.returncode == 0, verdict.stderr
    assert "snaplore" not in verdict.stderr


@needs_systemd
@pytest.mark.parametrize(("unit", "right", "wrong"), [
    ("snaplore.service", "ProtectHome=yes", "ProtectHomes=yes"),
    ("snaplore.service", "ProtectHome=yes", "ProtectHome=perhaps"),
    ("snaplore.service.d/master-key.conf", "LoadCredentialEncrypted=master-key:", "LoadCredentialEncrypted="),
    ("snaplore.socket", "ListenStream=0.0.0.0:8000", "ListenStream=0.0.0.0:80000"),
])  # fmt: skip
def test_systemd_would_report_a_mistake_in_the_units(unit, right, wrong, units):
    text = (units / unit).read_text()
    assert right in text
    (units / unit).write_text(text.replace(right, wrong))
    verdict = analyze(
        "verify", "--man=no", "--recursive-errors=no", units / "snaplore.service", units / "snaplore.socket"
    )
    assert "snaplore" in verdict.stderr


@needs_systemd
@pytest.mark.parametrize("unit", SERVICES)
def test_systemd_rates_the_exposure_at_most_two_and_a_half(unit):
    rating = analyze("security", "--offline=true", "--threshold=25", "--no-pager", DEPLOY / unit)
    assert rating.returncode == 0, rating.stdout
    assert "Overall exposure level" in rating.stdout


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["systemd-analyze", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_every_directive_of_the_service_has_a_reason_above_it():
    lines = (DEPLOY / "snaplore.service").read_text().splitlines()
    block = lines[lines.index("[Service]") + 1 : lines.index("[Install]")]
    bare = [
        line
        for above, line in zip(["", *block], block, strict=False)
        if re.match(r"\w+=", line) and not above.startswith("# ")
    ]
    assert bare == []


def test_jobs_have_the_sandbox_and_the_data_of_the_service():
    assert len(sandbox("snaplore.service")) > 25
    assert sandbox("snaplore-job@.service") == sandbox("snaplore.service")
    assert sandbox("snaplore@.service") == sandbox("snaplore.service")
    shared = (
        "User",
        "Group",
        "WorkingDirectory",
        "Environment",
        "EnvironmentFile",
        "StateDirectory",
        "StateDirectoryMode",
    )
    service, job, person = (
        [item for item in directives(unit, "Service") if item[0] in shared]
        for unit in ("snaplore.service", "snaplore-job@.service", "snaplore@.service")
    )
    assert [name for name, _ in service] == list(shared)
    assert job == service
    own = {
        "Environment": "SNAPLORE_DATA_DIR=%S/snaplore-%i",
        "EnvironmentFile": "/etc/snaplore/%i.environment",
    }
    own |= dict.fromkeys(("User", "Group", "StateDirectory"), "snaplore-%i")
    assert person == [(name, own.get(name, value)) for name, value in service]


@pytest.mark.parametrize("unit", SERVICES)
def test_keys_and_pictures_in_memory_never_get_to_the_disk(unit):
    limits = dict(directives(unit, "Service"))
    assert (limits["MemorySwapMax"], limits["LimitCORE"]) == ("0", "0")


def test_systemd_waits_longer_for_a_stop_than_gunicorn_waits_for_requests():
    timeout = re.search(r"(?m)^graceful_timeout = (\d+)$", (ROOT / "gunicorn.conf.py").read_text())
    assert int(dict(directives("snaplore.service", "Service"))["TimeoutStopSec"]) > int(timeout[1])


def test_each_timer_starts_an_existing_job_and_catches_up_on_missed_runs():
    for timer in TIMERS:
        timing = dict(directives(timer, "Timer"))
        name = re.fullmatch(r"snaplore-job@([\w-]+)\.service", timing["Unit"])[1]
        assert timer == f"snaplore-{name}.timer"
        assert name in job_names()
        assert timing["Persistent"] == "true"
    assert ("ExecStart", "/opt/snaplore/.venv/bin/flask --app app jobs %i") in directives(
        "snaplore-job@.service", "Service"
    )


# ------------------------------------------------------------------------------------------- environment file


def test_the_environment_file_names_existing_settings_and_is_valid_also_with_all_of_them_active():
    text = (DEPLOY / "environment").read_text()
    named = re.findall(r"(?m)^#?(SNAPLORE_\w+)=", text)
    known = {variable(field) for field in Settings.__dataclass_fields__}
    assert set(named) <= known
    assert set(re.findall(r"SNAPLORE_\w+", text)) <= known
    for active in (text, re.sub(r"(?m)^#(SNAPLORE_)", r"\1", text)):
        settings = Settings.from_environ(dict(re.findall(r"(?m)^(SNAPLORE_\w+)=(.*)$", active)))
        assert settings.data_dir == Path("/var/lib/snaplore")


def test_the_address_that_people_see_is_the_one_that_systemd_listens_on():
    (listens,) = [value for name, value in directives("snaplore.socket", "Socket") if name == "ListenStream"]
    assert f"\nSNAPLORE_BIND={listens}\n" in (DEPLOY / "environment").read_text()


# ------------------------------------------------------------------------------------------------------- cron


def job_names() -> set[str]:
    """The commands of `./snaplore jobs`."""
    return set({command.name: command for command in table.COMMANDS}["jobs"].commands)


def cron_lines() -> dict[str, list[str]]:
    """The active lines: the name of the job -> the five fields and the command."""
    lines = [line for line in (ROOT / "crontab").read_text().splitlines() if re.match(r"[0-9*]", line)]
    found = {re.search(r"snaplore jobs (\S+)", line)[1]: line.split(maxsplit=5) for line in lines}
    assert len(found) == len(lines)
    return found


def cron_variables() -> dict[str, str]:
    return dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", (ROOT / "crontab").read_text()))


def test_cron_runs_the_jobs_that_exist_hourly_and_nightly_at_different_minutes():
    lines = cron_lines()
    assert set(lines) == set(WORK)
    assert set(lines) <= job_names()
    assert lines["reason"][1:5] == ["*", "*", "*", "*"]
    assert " ".join(lines["remind"][:5]) == "0 8-11,18-23 * * *"
    for name in NIGHTLY:
        assert re.fullmatch(r"[0-5] \* \* \*", " ".join(lines[name][1:5]))
    assert len({fields[0] for fields in lines.values()}) == len(lines)
    # cron would take a percent sign for the end of the line.
    assert all("%" not in fields[5] for fields in lines.values())


@pytest.fixture
def cron(tmp_path):
    """`cron(command)` runs a command of the crontab as cron does, on a data folder of the test, and returns
    its output to the journal.
    """
    programs, journal, settings = tmp_path / "bin", tmp_path / "journal", tmp_path / "environment"
    programs.mkdir()
    (programs / "logger").write_text(f"#!/bin/sh\ncat >>'{journal}'\n")
    (programs / "logger").chmod(0o755)
    settings.write_text(f"SNAPLORE_DATA_DIR='{tmp_path}/data of the service'\nSNAPLORE_LANGUAGE=en\n")

    def run(command: str) -> str:
        environment = {
            **cron_variables(), "HOME": str(tmp_path), "PATH": f"{programs}:{os.defpath}",
            "SNAPLORE_HOME": str(ROOT), "SNAPLORE_ENVIRONMENT": str(settings),
        }  # fmt: skip
        ended = subprocess.run(
            [cron_variables()["SHELL"], "-c", command],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert (ended.stdout, ended.stderr) == ("", "")  # cron would mail it
        written = journal.read_text() if journal.exists() else ""
        journal.unlink(missing_ok=True)
        return written

    run.settings = settings
    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_a_line_of_the_crontab_runs_its_job_on_the_data_of_the_service_and_logs_one_line(
    name, cron, tmp_path
):
    written = cron(cron_lines()[name][5])
    assert len(written.splitlines()) == 1, written
    assert "Error" not in written
    assert (tmp_path / "data of the service" / "database").is_dir()


@pytest.mark.slow
def test_a_job_that_fails_logs_the_reason(cron, tmp_path):
    command = cron_lines()["cleanup"][5]
    cron.settings.write_text(f"SNAPLORE_DATA_DIR='{tmp_path}/data'\nSNAPLORE_RETENTION_DAYS=soon\n")
    assert "SNAPLORE_RETENTION_DAYS: must be" in cron(command)
    cron.settings.write_text(f"SNAPLORE_DATA_DIR='{tmp_path}/data'\nnot a setting\n")
    assert "not" in cron(command)
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_the_command_of_an_installed_service_passes_on_arguments_and_exit_code(tmp_path):
    environment = {
        "PATH": os.defpath,
        "SNAPLORE_HOME": str(ROOT),
        "SNAPLORE_DATA_DIR": str(tmp_path / "data"),
        "SNAPLORE_ENVIRONMENT": str(tmp_path / "none"),
    }

    def run(*arguments):
        program = [DEPLOY / "snaplore", *arguments]
        return subprocess.run(
            program,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    shown = run("keys", "show-api-key")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert run("keys", "show-api-key").stdout == shown.stdout
    assert run("import", "a folder that is not there").returncode == 2


# ---------------------------------------------------------------------------------------------------- restart


class ActivatedService(Service):
    """The service with a listening socket of this process, passed on at each start as systemd does."""

    # As systemd does between fork and exec: the socket is descriptor 3, and LISTEN_PID is this process.
    HAND_OVER = (
        "import os, sys; os.dup2(int(sys.argv[1]), 3);"
        "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()));"
        "os.execv(sys.executable, [sys.executable, '-m', 'gunicorn'])"
    )

    def __enter__(self):
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        return super().__enter__()

    def __exit__(self, *raised):
        self.listening.close()
        super().__exit__(*raised)

    def launch(self):
        self._began = len(self.output)
        number = self.listening.fileno()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", self.HAND_OVER, str(number)], pass_fds=(number,),
                cwd=ROOT, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip


@pytest.fixture
def activated(tmp_path):
    """A service whose model is a closed port, so that nothing is analysed."""
    with ActivatedService(
        tmp_path, api_key="key", dev_mode="true", llm_base_url="http://localhost:9/v1", llm_model="none"
    ) as service:
        assert service.port == service.listening.getsockname()[1]
        yield service


@pytest.mark.slow
def test_requests_sent_while_the_service_is_down_wait_and_are_answered(activated):
    large = draw(size=(1100, 1100), compress_level=0)
    with contextlib.closing(HeldUpload(activated, large)) as before:
        before.send(2_000_000)
        eventually(lambda: any(activated.data.glob("spool/*")), "the upload has begun to arrive")
        activated.begin_to_stop()
        assert before.finish().status == 200
    assert activated.wait() == 0

    with contextlib.closing(HeldUpload(activated, draw("between"))) as between:
        between.send(500)
        activated.start()
        assert between.finish().status == 200
    assert activated.get("/api/photos")["total"] == 2


@pytest.mark.slow
def test_no_upload_is_lost_or_refused_over_restarts(activated):
    over = threading.Event()
    answered, failures = [], []

    def upload(phone: int) -> None:
        for number in itertools.count():
            if over.is_set():
                return
            picture = draw(f"{phone} {number}")  # equal bytes of a phone are one photo
            try:
                answered.append(activated.upload(picture, device_id=f"phone_{phone}")["id"])
            except Exception as failure:
                failures.append(repr(failure))

    phones = [threading.Thread(target=upload, args=(phone,)) for phone in range(3)]
    for phone in phones:
        phone.start()
    try:
        for _ in range(3):
            seen = len(answered)
            eventually(lambda seen=seen: len(answered) >= seen + 5, "uploads are answered")
            assert activated.stop() == 0
            activated.start()
    finally:
        over.set()
        for phone in phones:
            phone.join(PATIENCE)
    assert failures == []
    assert sorted(answered) == sorted(photo["id"] for photo in activated.photos())


# --------------------------------------------------------------------------------------------- several people

# What a person's service, taken over, tries of another's: each line of the output is something that it got.
TAKEN_OVER = """
import glob, os, pathlib, sys
folder, pid = pathlib.Path(sys.argv[1]), int(sys.argv[2])
attempts = {
    "the folder": lambda: os.listdir(folder),
    "the database": lambda: glob.glob(f"{folder}/data/database/*.db")[0],
    "the key": lambda: (folder / "data/keys/master.key").read_bytes(),
    "the environment": lambda: pathlib.Path(f"/proc/{pid}/environ").read_bytes(),
    "the memory": lambda: open(f"/proc/{pid}/mem", "rb"),
    "the list of processes": lambda: [one for one in os.listdir("/proc") if one == str(pid)][0],
    "a signal": lambda: os.kill(pid, 0),
    "the program": lambda: open("app.py", "ab"),
    "the machine": lambda: open("/usr/own", "w"),
    "root": lambda: os.setuid(0),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except (OSError, IndexError):
        continue
    print(name)
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(people.missing()), reason=people.missing())
def test_the_services_of_two_people_are_closed_to_each_other():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, contextlib.ExitStack() as running:
        Path(folder).chmod(0o755)
        anna, bert = (
            running.enter_context(people.Person(Path(folder) / name, user))
            for name, user in (("anna", 64_201), ("bert", 64_202))
        )
        own = {person: person.upload(draw(text))["id"] for person, text in ((anna, "Anna"), (bert, "Bert"))}
        assert [person.get("/api/photos")["total"] for person in own] == [1, 1]
        for person, other in ((anna, bert), (bert, anna)):
            got = person.run_inside("-c", TAKEN_OVER, str(person.data.parent), str(person.master.pid)).stdout
            assert {"the folder", "the database", "the key", "the list of processes"} <= {*got.splitlines()}
            tried = person.run_inside("-c", TAKEN_OVER, str(other.data.parent), str(other.master.pid))
            assert (tried.returncode, tried.stdout, tried.stderr) == (0, "", "")
            key = {"Authorization": f"Bearer {person.key}"}
            assert other.knock("GET", "/api/photos", headers=key).status_code == 401
            assert person.knock("GET", "/api/photos", headers=key).status_code == 200
        assert {path.stat().st_uid for path in anna.data.rglob("*")} == {64_201}
