"""`python -m benchmarks.load`: everybody at once for minutes, and nothing may go wrong.

A real gunicorn over a seeded data folder, a slow made-up model, the clients of `clients.py` in a process of
Locust's, and cron's jobs again and again. It fails when an answer is one that should not be, when a picture
whose upload was answered is not there afterwards, byte for byte and analysed, when memory grows, when a job
fails, when the log holds a trace, or when the service does not end cleanly.
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

import msgspec

from benchmarks import material, seed, verdicts
from benchmarks.service import API_KEY, MemoryWatch, Service
from clock import utc_now
from settings import ROOT, Settings
from tests.support.fake_llm import FakeLLM, Request

MEGABYTE = 1_048_576
JOBS = (("reason",), ("decay",), ("cleanup",), ("rotate-keys", "--force"))
JOBS_EVERY = 1 / 12  # of the load; an hour or a day in service
RETENTION = 25  # days; the seeded photos are spread over 30, so that clean-up has something to remove
LOOKS, THINKS = 0.3, 3.0  # seconds that the model takes for a picture, and for a chat
REMEMBERED = 20  # of so many pictures and chats one tells something about the person
DRAIN = 300.0  # seconds in which what is left in the queue must be analysed
USERS = "20"  # as many as the classes of clients.py fix
STOP = 60  # seconds in which Locust lets its clients finish
SAMPLE = 0.5  # seconds between two looks at the memory
# So much may the last third of the load have above the first, by their medians, when the service is warm.
GROWTH = 1.10
MOST_SHOWN = 20


class SlowModel(FakeLLM):
    """Takes its time, and answers every kind of question with something that can be used."""

    def __init__(self):
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
    chosen = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="snaplore-load-", dir=chosen.folder) as root,
        SlowModel() as model,
    ):
        settings = Settings(
            data_dir=Path(root) / "data", language="en", retention_days=RETENTION, trusted_proxies=1
        )
        settings = dataclasses.replace(settings, dev_mode=True, llm_base_url=model.url, llm_model="slow")
        print(f"storing and analysing {chosen.size:,} photos ...", file=sys.stderr, flush=True)
        seed.fill(settings, chosen.size, now=utc_now())
        with Service(settings, "--workers", str(chosen.workers)) as service:
            seen = _run(service, Path(root), 60 * chosen.minutes, judge_memory=not chosen.short)
    if chosen.json:
        chosen.json.write_text(json.dumps(seen, indent=2) + "\n")
    problems = seen["problems"]
    for problem in problems[:MOST_SHOWN]:
        print(f"FAILED: {problem}")
    if len(problems) > MOST_SHOWN:
        print(f"and {len(problems) - MOST_SHOWN} more")
    print("nothing went wrong" if not problems else f"{len(problems)} problems")
    sys.exit(bool(problems))


def _run(service: Service, folder: Path, seconds: float, *, judge_memory: bool) -> dict:
    """Load the service for so long, and print what it was like; the figures, and the problems."""
    print(f"{seconds:.0f} s of load ...", file=sys.stderr, flush=True)
    problems: list[str] = []
    with MemoryWatch(service, SAMPLE) as watch, _cron(service, seconds * JOBS_EVERY, problems):
        seen = _clients(service, folder / "result.json", seconds)
    problems += seen["failures"]
    problems += _lost(service, seen["uploads"])
    settled = service.memory()
    code = service.stop()
    if code:
        problems.append(f"the service ended with {code}")
    problems += [
        f"in the log: {line}" for line in service.log().splitlines() if "Traceback" in line or "ERROR" in line
    ]
    growth = verdicts.growth(watch.samples)
    if judge_memory and growth > GROWTH:
        problems.append(f"memory has grown: the last third has {growth:.2f} x the first")
    print(_table(seen["kinds"]))
    refused = (
        sum(kind["count"] for kind in seen["kinds"] if kind["name"].endswith(f": {status}"))
        for status in (429, 503)
    )
    print("{:,} answers were 429, {:,} were 503".format(*refused))
    print(
        f"{len(seen['uploads']):,} uploads answered, each there byte for byte and analysed, unless it is listed below"
    )
    begin, peak, end = (
        f"{size / MEGABYTE:.0f} MB" for size in (watch.samples[0], max(watch.samples), settled)
    )
    told = (
        f"the last third has {growth:.2f} x the first (at most {GROWTH:g} x)"
        if judge_memory
        else "too short to tell growth"
    )
    print(f"memory of all processes: {begin} at the start, {peak} at most, {end} at the end; {told}")
    return {
        "kinds": seen["kinds"],
        "uploads": len(seen["uploads"]),
        "memory": [*watch.samples, settled],
        "problems": problems,
    }


def _clients(service: Service, result: Path, seconds: float) -> dict:
    """What `clients.py` has seen."""
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
    # Joined: a random key may begin with a dash.
    told = [f"--host=http://127.0.0.1:{service.port}", f"--key={API_KEY}", f"--result={result}"]
    ended = subprocess.run(
        [*locust, *users, *told], cwd=ROOT, capture_output=True, text=True, timeout=seconds + 2 * STOP
    )
    if not result.exists():
        raise RuntimeError(f"locust ended with {ended.returncode}: {ended.stderr[-5_000:]}")
    seen = json.loads(result.read_text())
    if "Traceback" in ended.stderr:
        seen["failures"].append(f"a client failed: {ended.stderr[-1_000:]}")
    return seen


@contextlib.contextmanager
def _cron(service: Service, pause: float, problems: list[str]) -> Iterator[None]:
    """Cron's jobs, all at once, again and again while this context lasts."""
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


def _lost(service: Service, uploads: list[dict]) -> list[str]:
    """What is wrong with those pictures whose upload was answered; waits until all are analysed."""
    client = service.client()
    deadline = time.monotonic() + DRAIN
    while (stats := json.loads(client.get("/api/stats")))["pending"] + stats["processing"]:
        if time.monotonic() > deadline:
            return [f"{stats['pending']} photos still wait for their analysis after {DRAIN:.0f} s"]
        time.sleep(0.2)
    problems = [f"{stats['errors']} analyses failed"] if stats["errors"] else []
    for upload in uploads:
        try:
            picture = client.get(f"/api/photos/{upload['id']}/image")
        except RuntimeError as failure:
            problems.append(f"an answered upload is lost: {failure}")
        else:
            if hashlib.sha256(picture).hexdigest() != upload["sha256"]:
                problems.append(f"photo {upload['id']} is not what was uploaded")
    if len({upload["id"] for upload in uploads}) != len(uploads):
        problems.append("two uploads were answered with one photo")
    return problems


def _table(kinds: list[dict]) -> str:
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
        prog="python -m benchmarks.load", description="Load Snaplore from all sides at once."
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="for how long (default: %(default)s)")
    parser.add_argument(
        "--size",
        type=int,
        default=2_000,
        help="photos in the data folder at the start (default: %(default)s)",
    )
    parser.add_argument("--workers", type=int, default=1, help="of gunicorn (default: %(default)s)")
    parser.add_argument(
        "--short", action="store_true", help="a quick look, too short to tell whether memory grows"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write the figures there, with every sample of the memory in bytes",
    )
    parser.add_argument("--folder", type=Path, help="where the data folder is made for the while")
    return parser.parse_args()


if __name__ == "__main__":
    main()
