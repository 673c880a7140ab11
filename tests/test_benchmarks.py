"""The benchmarks run, on very little: what they print is for people to judge, so no time is compared here."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.measure import GROUPS

ROOT = Path(__file__).resolve().parent.parent

# Every figure that has a budget in the issue, by the start of its line.
FIGURES = (
    "upload of phone screenshots, 3 clients",
    "upload, encrypted against not",
    "receipts of a month, p95",
    "open threads, p95",
    "What is my next trip?, p50",
    "list of 20, p50",
    "list of 20, against",
    "list of 20, encrypted against not",
    "list of 20, by category and intent, p50",
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
    "memory, 3 clients upload 48 MB each",
)
WITHOUT_BUDGET = {
    "memory, after requests by 6 clients",
    "rotation of the database key, for 100,000 photos",
    "rotation, the longest pause of a reader (0 refused)",
    "rotation, the longest pause of a writer (0 refused)",
    "clean-up, a photo of the oldest 30",
    "clean-up, looking for files without a row",
    "clean-up, index, free pages and log",
    "clean-up, the longest pause of a writer (0 refused)",
}


@pytest.fixture
def bench(tmp_path):
    """`bench("--size", "60")`: the finished process."""

    def run(*arguments):
        command = [sys.executable, "-m", "benchmarks", "--folder", str(tmp_path), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)

    return run


@pytest.mark.slow
def test_a_small_run_prints_every_figure_beside_its_budget(bench, tmp_path):
    """In two runs side by side, each with half of the groups, since each waits for its servers much of the
    time.
    """
    names = list(GROUPS)

    def half(number):
        only = ",".join(names[number::2])
        return bench(
            "--size", "60", "--rounds", "1", "--only", only, "--json", str(tmp_path / f"{number}.json")
        )

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(half, range(2)))
    lines, measured = [], {}
    for number, run in enumerate(runs):
        assert run.returncode == 0, run.stderr
        assert "60 photos" in run.stdout.splitlines()[0]
        lines += run.stdout.splitlines()
        written = json.loads((tmp_path / f"{number}.json").read_text())["figures"]
        assert len(written) == int(re.match(r"([0-9]+) figures", lines[-1])[1])
        measured |= {figure["what"]: figure["measured"] for figure in written}
    for figure in FIGURES:
        line = next((line for line in lines if line.startswith(figure)), None)
        assert line, f"{figure} is not in\n{lines}"
        assert re.search(r"(under|at (most|least)) [0-9.]+ (\S+ +)(ok|MISS)$", line), line
    assert measured.keys() >= WITHOUT_BUDGET
    measured.pop(
        "search, memory that the first one takes and keeps"
    )  # of so few words it is lost among what else comes and goes
    assert all(value > 0 for value in measured.values())
    assert {path.name for path in tmp_path.iterdir()} == {"0.json", "1.json"}


@pytest.mark.slow
def test_the_table_for_a_machine_elsewhere_has_a_row_for_each_figure():
    command = [sys.executable, "-m", "benchmarks.pi", "--screens", "1"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    rows = dict(line.strip("| ").split(" | ") for line in run.stdout.splitlines() if "---" not in line)
    assert re.search(r"\d+ cores, \d+ MB, Linux ", rows["machine"])
    found, of = map(int, rows["words found"].split(" of "))
    assert 0 < found <= of
    assert len(rows) == 9


@pytest.mark.slow
def test_an_unknown_group_is_refused(bench):
    run = bench("--only", "uploads")
    assert run.returncode == 2
    assert "'uploads' is not one of" in run.stderr
