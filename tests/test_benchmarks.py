"""The benchmarks run, on very little: what they print is for people to judge, so no time is compared here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Every figure that has a budget in the issue, by the start of its line.
FIGURES = (
    "upload of phone screenshots, 3 clients",
    "upload, encrypted against not",
    "list of 20, p50",
    "list of 20, against",
    "list of 20, encrypted against not",
    "detail, p50",
    "detail, against",
    "stats, p50",
    "search, mixed, p95",
    *(f"search, {kind}, p95" for kind in ("rare", "common", "phrase", "typo", "prefix", "Chinese")),
    "search, encrypted against not",
    "analysis of a screenshot, over the model's time",
    "embedded analyser, a phone screenshot",
    "start to first answer",
    "memory, just started",
    "memory, after requests",
    "memory, 3 clients upload 48 MB each",
)


@pytest.fixture
def bench(tmp_path):
    """`bench("--size", "60")`: the finished process."""

    def run(*arguments):
        command = [sys.executable, "-m", "benchmarks", "--folder", str(tmp_path), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)

    return run


def test_a_small_run_prints_every_figure_beside_its_budget(bench, tmp_path):
    run = bench("--size", "60", "--rounds", "1", "--json", str(tmp_path / "figures.json"))
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    for figure in FIGURES:
        line = next((line for line in lines if line.startswith(figure)), None)
        assert line, f"{figure} is not in\n{run.stdout}"
        assert re.search(r"(under|at (most|least)) [0-9.]+ (\S+ +)(ok|MISS)$", line), line
    assert "60 photos" in lines[0]
    written = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert len(written) == int(re.match(r"([0-9]+) figures", lines[-1])[1])
    assert all(figure["measured"] > 0 for figure in written)
    assert {"rotation of the database key, for 100,000 photos", "rotation, the longest pause of a request (0 refused)"} <= {
        figure["what"] for figure in written
    }
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_an_unknown_group_is_refused(bench):
    run = bench("--only", "uploads")
    assert run.returncode == 2
    assert "'uploads' is none of" in run.stderr
