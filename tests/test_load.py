"""The load, for a few seconds: everybody at once, and nothing goes wrong; and what it takes for wrong."""

import re
import subprocess
import sys

import pytest

from benchmarks import verdicts
from settings import ROOT

CHAT = "/api/chat/send"
AGAIN = {"Retry-After": "5"}
ROTATION = "The data folder is being worked on. Please come again in a moment."


@pytest.mark.slow
def test_everybody_at_once_for_a_few_seconds_and_nothing_goes_wrong(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks.load",
        "--minutes",
        "0.1",
        "--size",
        "60",
        "--short",
        "--folder",
        str(tmp_path),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "nothing went wrong"
    for kind in ("upload", "list", "search", "image", "statistics", "chat", "notes", "memories"):
        assert re.search(
            rf"^{kind} +[1-9][0-9]* +[0-9,]+ ms +[0-9,]+ ms +[0-9,]+ ms$", run.stdout, re.MULTILINE
        ), f"no {kind} in\n{run.stdout}"
    assert re.search(r"^[0-9]+ answers were 429, [0-9]+ were 503$", run.stdout, re.MULTILINE), run.stdout
    assert re.search(r"^[1-9][0-9]* uploads answered", run.stdout, re.MULTILINE), run.stdout
    assert re.search(
        r"^memory of all processes: [0-9]+ MB at the start, [0-9]+ MB at most, [0-9]+ MB at the end",
        run.stdout,
        re.MULTILINE,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "status", "headers", "text"),
    [
        ("/api/photos", 200, {}, ""),
        ("/api/photos/1/image", 304, {}, ""),
        (CHAT, 429, AGAIN, ""),
        ("/api/photos", 503, AGAIN, ROTATION),
    ],
)
def test_answers_that_may_be(path, status, headers, text):
    assert verdicts.problem(path, status, headers, text) is None


@pytest.mark.parametrize(
    ("path", "status", "headers", "text"),
    [
        ("/api/photos", 0, {}, "connection reset"),
        ("/api/photos", 404, {}, "Photo not found"),
        ("/api/photos", 500, AGAIN, "An internal error occurred"),
        ("/api/photos", 429, AGAIN, "Too many requests"),
        (CHAT, 429, {}, "Too many requests"),
        ("/api/photos", 503, {}, ROTATION),
        ("/api/photos", 503, AGAIN, "The database is busy. Please come again in a moment."),
    ],
)
def test_answers_that_may_not_be(path, status, headers, text):
    assert verdicts.problem(path, status, headers, text).startswith(str(status))


def test_the_slope_is_what_an_hour_adds_without_the_warm_up():
    times = [10.0 * number for number in range(400)]
    assert verdicts.slope(times, [7.0] * 400) == pytest.approx(0)
    grown = [1_000.0 * (number < 100) + 5 * number for number in range(400)]
    assert verdicts.slope(times, grown) == pytest.approx(1_800)


def test_a_slope_over_the_limit_is_a_problem_once_the_load_was_long_enough():
    slopes = {"gunicorn": 41.0 * verdicts.MEGABYTE, "text recognition": -2.5 * verdicts.MEGABYTE}
    sentence, problems = verdicts.gains(slopes, 3_600)
    assert sentence == (
        "its slope after the warm-up, by least squares: gunicorn +41.0 MB per hour, "
        "text recognition -2.5 MB per hour (at most +40 MB per hour for each)"
    )
    assert problems == ["memory has grown: gunicorn +41.0 MB per hour"]
    assert verdicts.gains(slopes, 180) == ("its slope is measured from 30 minutes on", [])


def test_growth_is_what_the_end_has_above_the_beginning_without_the_warm_up():
    assert verdicts.growth([10] * 5 + [100] * 15) == 1.0
    assert verdicts.growth([10] * 5 + [100] * 5 + [110] * 5 + [120] * 5) == pytest.approx(1.2)
