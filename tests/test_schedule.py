"""The jobs of a container: the crontab's lines, their times, and the process that keeps them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from settings import ROOT
from tests.support.beginning import first_start
from tests.support.service import PATIENCE, eventually
from upkeep import schedule

NIGHT = datetime(2026, 3, 1, 3, 0)


def test_the_schedule_is_the_crontabs():
    found = schedule.entries(schedule.CRONTAB.read_text())
    lines = [line for line in schedule.CRONTAB.read_text().splitlines() if re.match("[0-9*]", line)]
    assert len(found) == len(lines) >= 4
    assert schedule.Entry(7, frozenset(range(24)), "reason") in found
    assert schedule.Entry(47, frozenset({3}), "cleanup") in found
    assert schedule.Entry(0, frozenset({*range(8, 12), *range(18, 24)}), "remind") in found


@pytest.mark.parametrize("line", ["*/5 * * * * x jobs reason", "7 3 * * 1 x jobs reason", "7 3 * * * date"])
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(ValueError, match="cannot be read"):
        schedule.entries(line)


@pytest.mark.parametrize(
    ("after", "until", "jobs"),
    [
        (NIGHT, NIGHT + timedelta(minutes=6, seconds=59), []),
        (NIGHT, NIGHT + timedelta(minutes=7), ["hourly"]),
        (NIGHT + timedelta(minutes=7), NIGHT + timedelta(minutes=7, seconds=30), []),
        (NIGHT, NIGHT + timedelta(hours=1), ["hourly", "nightly"]),
        (NIGHT, NIGHT + timedelta(days=400), ["hourly", "nightly"]),
        (NIGHT + timedelta(minutes=20), NIGHT, []),
    ],
)
def test_each_job_is_due_at_its_time_and_once_after_a_gap(after, until, jobs):
    scheduled = schedule.entries("47 3 * * * run jobs nightly\n7 * * * * run jobs hourly")
    assert sorted(schedule.due(scheduled, after, until)) == jobs


@pytest.mark.slow
def test_the_process_runs_every_job_at_its_start_and_ends_when_asked(tmp_path):
    output = tmp_path / "output"
    data = shutil.copytree(first_start(), tmp_path / "data")
    environment = {**os.environ, "SNAPLORE_DATA_DIR": str(data), "SNAPLORE_LANGUAGE": "en"}
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, ROOT / "snaplore", "jobs", "schedule"], env=environment, stdout=out, stderr=out
        )
    try:
        jobs = [entry.job for entry in schedule.entries(schedule.CRONTAB.read_text())]
        eventually(
            lambda: re.findall(r"(?m)^([a-z-]+): ", output.read_text()) == jobs,
            "each job has printed its line",
        )
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    assert "failed" not in output.read_text()
