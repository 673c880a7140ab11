"""`python -m benchmarks.pi`: a small table for a machine that the developers do not have (a Raspberry Pi).

It needs no pictures of anybody: made-up screens are drawn, whose words are known. Everything runs over HTTP
against a real service, as phones use it. It takes a minute on a desktop, and some on a Pi. The table names
nothing but the machine.
"""

import argparse
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import msgspec

from benchmarks import drawn
from benchmarks.service import Client, MemoryWatch, Service, upload_form
from benchmarks.timing import p50, p95
from settings import Settings
from terms import cut, fold

SCREENS = 12
SEARCHES = 60
SAMPLE = 0.2  # seconds between two samples of the memory
MB = 1_048_576
MS = 1_000
FEWEST_LETTERS = 4  # of a word that is looked for


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pi", description="Measure a few made-up screens on this machine."
    )
    parser.add_argument("--screens", type=int, default=SCREENS, help="how many (default: %(default)s)")
    print(table(measured(parser.parse_args().screens)))


def measured(screens: int) -> list[tuple[str, str]]:
    """The rows of the table, for so many screens."""
    chosen = drawn.screens()[:screens]
    forms = [upload_form(drawn.draw(screen)) for screen in chosen]
    wanted = [words_of(screen) for screen in chosen]
    with tempfile.TemporaryDirectory(prefix="snaplore-pi-") as root:
        settings = Settings(data_dir=Path(root) / "data", language="en")
        with Service(settings) as service:
            fresh = service.memory()
            client = service.client()
            with MemoryWatch(service, SAMPLE) as watch:
                begun, uploads = time.perf_counter(), []
                worked = service.processor()
                for form in forms:
                    uploads.append(_timed(lambda form=form: client.upload(form)))
                while (stats := msgspec.json.decode(client.get("/api/stats")))["done"] < len(forms):
                    if stats["errors"]:
                        raise RuntimeError("a screen could not be read")
                    time.sleep(SAMPLE)
                seconds, worked = time.perf_counter() - begun, service.processor() - worked
            found = sum(_found(client, number, words) for number, words in enumerate(wanted, 1))
            some = sorted(set().union(*wanted))
            paths = [f"/api/search?q={quote(some[number % len(some)])}" for number in range(SEARCHES)]
            searches = [_timed(lambda path=path: client.get(path)) for path in paths]
            started = service.started_in
    reader = max(sample.reader for sample in watch.each)
    return [
        ("machine", machine()),
        ("start to first answer", f"{started:.2f} s"),
        ("upload of a screen, p50", f"{p50(uploads) * MS:.0f} ms"),
        ("from the first upload to the last found, a screen", f"{seconds / len(forms):.2f} s"),
        ("processor time of all of it, a screen", f"{worked / len(forms):.2f} s"),
        ("words found", f"{found} of {sum(map(len, wanted))}"),
        ("search, p50; p95", f"{p50(searches) * MS:.0f}; {p95(searches) * MS:.0f} ms"),
        ("memory: at the start; at most, of service and vectors; of the reader", "; ".join(
            f"{size / MB:.0f} MB" for size in (fresh, max(each.gunicorn for each in watch.each), reader)
        )),
    ]  # fmt: skip


def words_of(screen: drawn.Screen) -> set[str]:
    """The words of a screen that a reader must find: long enough, and of letters only."""
    rows = (row[1:] for row in screen.rows)
    return {word for row in rows for word in cut(fold(row)) if len(word) >= FEWEST_LETTERS and word.isalpha()}


def machine() -> str:
    """The machine in a few words: its model or processor, cores, memory, system and Python."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return ", ".join(
        (
            _model(),
            f"{len(os.sched_getaffinity(0))} cores",
            f"{memory / MB:.0f} MB",
            f"{platform.system()} {platform.machine()}",
            f"Python {platform.python_version()}",
            f"load {os.getloadavg()[0]:.1f}",
        )
    )


def table(rows: list[tuple[str, str]]) -> str:
    """The rows as a table of Markdown, so that it can be sent as it is."""
    lines = (f"| {what} | {value} |" for what, value in rows)
    return "\n".join(("| what | measured |", "|---|---|", *lines))


def _model() -> str:
    """What the device tree calls this machine, as on a Pi, else its processor."""
    tree = Path("/proc/device-tree/model")
    if tree.exists():
        return tree.read_text(errors="replace").rstrip("\0")
    named = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return named[1] if named else platform.processor() or "unknown"


def _found(client: Client, photo_id: int, words: set[str]) -> int:
    page = msgspec.json.decode(client.get(f"/api/photos/{photo_id}/lines"))
    text = "\n".join(line["text"] for line in page["lines"])
    return len(words.intersection(cut(fold(text))))


def _timed(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
