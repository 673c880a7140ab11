"""`python -m benchmarks.load`: all kinds of clients at once for some minutes, during which nothing may fail.

It runs a real gunicorn over a seeded data folder, a slow fake model, the clients of `clients.py` in a Locust
process, and the scheduled jobs repeatedly. It fails when an answer is not allowed, when a picture whose
upload was answered is missing, changed or not analysed afterwards, when memory grows, when a job fails, when
the log contains a traceback, or when the service does not end cleanly.

Memory is judged by its median in the last third against the first third, and, from half an hour on, also by
its slope: of gunicorn's processes, and of the embedded analyser's process if there is one.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import itertools
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import material, seed, verdicts
from benchmarks.service import API_KEY, MemoryWatch, Service
from clock import utc_now
from settings import ROOT, Settings
from tests.support.fake_llm import FakeLLM, Request

MEGABYTE = 1_048_576
JOBS = (("reason",), ("decay",), ("cleanup",), ("rotate-keys", "--force"))
JOBS_EVERY = 1 / 12  # of the load's time; in service an hour or a day
RETENTION = 25  # days; the seeded photos are spread over 30, so that clean-up has something to delete
LOOKS, THINKS = 0.3, 3.0  # seconds that the model takes for a picture, and for a chat
REMEMBERED = 20  # one of so many pictures and chats yields a memory
DRAIN = 300.0  # seconds for analysing the rest of the queue
DRAIN_EMBEDDED = (
    3.0  # the same for the embedded analyser, which is slower than the phones: seconds per upload
)
USERS = "20"  # the sum of `fixed_count` in clients.py
STOP = 60  # seconds that Locust gives its clients to finish
SAMPLE = 0.5  # seconds between two samples of the memory
# Limit of the median memory in the last third of the load, relative to the first third, after the warm-up.
GROWTH = 1.10
MOST_SHOWN = 20


class SlowModel(FakeLLM):
    """Answers every kind of request with a usable answer, after a realistic time."""

    def __init__(self) -> None:
        self._writer = material.Writer()
        self._numbers = itertools.count(1)
        super().__init__(self._answer)

    def _answer(self, request: Request) -> object:
        self.requests.clear()  # each holds a picture
        if "response_format" not in request.body:
            time.sleep(THINKS)
            return self._writer.sentence(30)
        time.sleep(LOOKS)
        findings = msgspec.to_builtins(self._writer.findings())
        memories = (
            [{"content": self._writer.sentence(6), "category": "fact"}]
            if next(self._numbers) % REMEMBERED == 0
            else []
        )
        cited = re.findall(r'"id":(\d+)', request.text)[:3]
        note = {
            "title": self._writer.sentence(4),
            "content": self._writer.sentence(40),
            "category": "insight",
            "photo_ids": cited,
        }
        return {**findings, "memories": memories, "articles": [note]}


def main() -> None:
    options = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="snaplore-load-", dir=options.folder) as root,
        SlowModel() as model,
    ):
        settings = Settings(
            data_dir=Path(root) / "data", language="en", retention_days=RETENTION, trusted_proxies=1
        )
        if not options.embedded:
            # Reading on this machine would take the processors from the service that is judged.
            settings = dataclasses.replace(
                settings, dev_mode=True, llm_base_url=model.url, llm_model="slow", read_locally=False
            )
        print(f"storing and analysing {options.size:,} photos ...", file=sys.stderr, flush=True)
        seed.fill(settings, options.size, now=utc_now())
        with Service(settings, "--workers", str(options.workers)) as service:
            results = _run(
                service,
                Path(root),
                60 * options.minutes,
                embedded=options.embedded,
                judge_memory=not options.short,
            )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    problems = results["problems"]
    for problem in problems[:MOST_SHOWN]:
        print(f"FAILED: {problem}")
    if len(problems) > MOST_SHOWN:
        print(f"and {len(problems) - MOST_SHOWN} more")
    print("nothing went wrong" if not problems else f"{len(problems)} problems")
    sys.exit(bool(problems))


def _run(
    service: Service, folder: Path, seconds: float, *, embedded: bool, judge_memory: bool
) -> dict[str, Any]:
    """Load the service for `seconds` and print the results. Returns the figures and the problems."""
    print(f"{seconds:.0f} s of load ...", file=sys.stderr, flush=True)
    problems: list[str] = []
    with MemoryWatch(service, SAMPLE) as watch, _cron(service, seconds * JOBS_EVERY, problems):
        results = _clients(service, folder / "result.json", seconds)
    problems += results["failures"]
    problems += _lost(service, results["uploads"], embedded=embedded)
    settled = service.memory()
    code = service.stop()
    if code:
        problems.append(f"the service ended with {code}")
    problems += [
        f"in the log: {line}" for line in service.log().splitlines() if "Traceback" in line or "ERROR" in line
    ]
    growth = verdicts.growth(watch.samples)
    if judge_memory and growth > GROWTH:
        problems.append(f"memory has grown: the last third is {growth:.2f} x the first")
    slopes = _slopes(watch)
    gains, too_much = verdicts.gains(slopes, seconds)
    problems += too_much
    print(_table(results["kinds"]))
    refused = (
        sum(kind["count"] for kind in results["kinds"] if kind["name"].endswith(f": {status}"))
        for status in (429, 503)
    )
    print("{:,} answers were 429, {:,} were 503".format(*refused))
    print(
        f"{len(results['uploads']):,} uploads answered; each is stored unchanged and analysed, "
        "except those listed below"
    )
    begin, peak, end = (
        f"{size / MEGABYTE:.0f} MB" for size in (watch.samples[0], max(watch.samples), settled)
    )
    growth_result = (
        f"the last third is {growth:.2f} x the first (at most {GROWTH:g} x)"
        if judge_memory
        else "the run was too short to measure growth"
    )
    print(f"memory of all processes: {begin} at the start, {peak} at most, {end} at the end; {growth_result}")
    print(gains)
    return {
        "kinds": results["kinds"],
        "uploads": len(results["uploads"]),
        "memory": [*watch.samples, settled],
        "times": watch.times,
        "gunicorn": [sample.gunicorn for sample in watch.each],
        "reader": [sample.reader for sample in watch.each],
        "slopes": slopes,
        "problems": problems,
    }


def _slopes(watch: MemoryWatch) -> dict[str, float]:
    """What each kind of process gains, in bytes per hour, after the warm-up."""
    slopes = {"gunicorn": verdicts.slope(watch.times, [sample.gunicorn for sample in watch.each])}
    ran = [
        (time, sample.reader) for time, sample in zip(watch.times, watch.each, strict=True) if sample.reader
    ]
    if len(ran) > 1:
        slopes["text recognition"] = verdicts.slope(*zip(*ran, strict=True))
    return slopes


def _clients(service: Service, result: Path, seconds: float) -> dict[str, Any]:
    """The results of `clients.py`."""
    locust = [
        sys.executable,
        "-m",
        "locust",
        "-f",
        "benchmarks/clients.py",
        "--headless",
        "--only-summary",
        "--loglevel",
        "WARNING",
    ]
    users = [
        "--users",
        USERS,
        "--spawn-rate",
        USERS,
        "--run-time",
        f"{seconds:.0f}s",
        "--stop-timeout",
        str(STOP),
    ]
    # Name and value in one argument, because a random key may begin with a dash.
    target = [f"--host=http://127.0.0.1:{service.port}", f"--key={API_KEY}", f"--result={result}"]
    ended = subprocess.run(
        [*locust, *users, *target], cwd=ROOT, capture_output=True, text=True, timeout=seconds + 2 * STOP
    )
    if not result.exists():
        raise RuntimeError(f"locust ended with {ended.returncode}: {ended.stderr[-5_000:]}")
    results = json.loads(result.read_text())
    if "Traceback" in ended.stderr:
        results["failures"].append(f"a client failed: {ended.stderr[-1_000:]}")
    return results


@contextlib.contextmanager
def _cron(service: Service, pause: float, problems: list[str]) -> Iterator[None]:
    """Run all scheduled jobs at once, repeatedly, while this context lasts."""
    ended = threading.Event()

    def run(job: tuple[str, ...]) -> None:
        try:
            service.run("jobs", *job)
        except subprocess.CalledProcessError as failure:
            problems.append(f"flask jobs {' '.join(job)}: {failure.stderr.strip()}")

    def repeat() -> None:
        with concurrent.futures.ThreadPoolExecutor(len(JOBS)) as threads:
            while True:
                list(threads.map(run, JOBS))
                if ended.wait(pause):
                    return

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _lost(service: Service, uploads: list[dict[str, Any]], *, embedded: bool) -> list[str]:
    """The problems of pictures whose upload was answered, after waiting until all are analysed."""
    client = service.client()
    patience = DRAIN + DRAIN_EMBEDDED * len(uploads) * embedded
    deadline = time.monotonic() + patience
    problems = []
    while (stats := json.loads(client.get("/api/stats")))["pending"] + stats["processing"]:
        if time.monotonic() > deadline:
            problems.append(f"{stats['pending']} photos are not analysed after {patience:.0f} s")
            break
        time.sleep(0.2)
    if stats["errors"]:
        problems.append(f"{stats['errors']} analyses failed")
    for upload in uploads:
        try:
            picture = client.get(f"/api/photos/{upload['id']}/image")
        except RuntimeError as failure:
            problems.append(f"an answered upload is lost: {failure}")
        else:
            if hashlib.sha256(picture).hexdigest() != upload["sha256"]:
                problems.append(f"photo {upload['id']} differs from its upload")
    if len({upload["id"] for upload in uploads}) != len(uploads):
        problems.append("two uploads were answered with the same photo")
    return problems


def _table(kinds: list[dict[str, Any]]) -> str:
    rows = [("request", "count", "p50", "p95", "max")]
    rows += [
        (kind["name"], f"{kind['count']:,}", *(f"{kind[figure]:.0f} ms" for figure in ("p50", "p95", "max")))
        for kind in sorted(kinds, key=lambda kind: kind["name"])
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join((name.ljust(widths[0]), *map(str.rjust, figures, widths[1:]))) for name, *figures in rows
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load", description="Load Snaplore with all kinds of clients at once."
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="duration (default: %(default)s)")
    parser.add_argument(
        "--size",
        type=int,
        default=2_000,
        help="photos in the data folder at the start (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=1, help="gunicorn workers (default: %(default)s)")
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="use the embedded analyser instead of a slow fake model",
    )
    parser.add_argument(
        "--short", action="store_true", help="a quick run, too short to measure memory growth"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the figures to FILE, with every sample of the memory in bytes",
    )
    parser.add_argument("--folder", type=Path, help="folder for the temporary data")
    return parser.parse_args()


if __name__ == "__main__":
    main()
