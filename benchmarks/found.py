"""From the first upload to the last screenshot that is found: a burst of uploads as a phone sends them, read
and analysed on this machine, while a browser asks for lists and searches.

The pictures are those of `--pictures`, else real screenshots from the folders that CORPUS names, else made-up
ones. Seconds depend on what else the machine does, so processor time is printed too, by process: it says what
a change is worth on a busy machine.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import msgspec
import psutil

from benchmarks import labelled, seed
from benchmarks.figures import Figure
from benchmarks.service import READER, Service, upload_form
from benchmarks.timing import p95, side_by_side

MOST = 170  # screenshots of a holiday
CLIENTS = 3  # uploads that a phone has under way at once
MS = 1_000
THINKS = 0.1  # seconds between two requests of the browser
ASKED = ("/api/health", "/api/photos?page_size=20", "/api/search?q=settings", "/api/stats", "/api/photos/1")
EMBEDDER = "engines.vectors"  # what the command line of the process contains that makes vectors


def finding(folders: seed.Folders) -> Iterator[Figure]:
    """The time from the first upload to the last that is found, its processor time by process, and the
    requests beside it against an empty one.
    """
    forms = [upload_form(picture) for picture in _pictures(folders)]
    settings = folders.empty("found", read_locally=True)
    with Service(settings) as service, _Asking(service) as asking:
        before, begun = _spent(service), time.perf_counter()
        uploaded = side_by_side(CLIENTS, lambda: service.client().upload, forms)
        _wait(service)
        seconds = time.perf_counter() - begun
        spent = {name: (value - before.get(name, 0.0)) for name, value in _spent(service).items()}
    of = f"{len(forms)} screenshots"
    yield Figure(what=f"from the first upload to the last found, {of}", measured=seconds, unit="s")
    yield Figure(what="the last of these uploads is answered", measured=uploaded, unit="s")
    for name, value in filter(lambda each: each[1], spent.items()):
        yield Figure(what=f"processor time of {name}, a screenshot", measured=value / len(forms), unit="s")
    health = p95(asking.seconds["/api/health"]) * MS
    for path, times in asking.seconds.items():
        if path != "/api/health":
            yield Figure(
                what=f"meanwhile {path.partition('?')[0]}, p95", measured=p95(times) * MS, unit="ms",
                floor=health, floor_is="health, p95", ratio_at_most=5,
            )  # fmt: skip


def _pictures(folders: seed.Folders) -> list[bytes]:
    if folders.has_pictures or not labelled.folders():
        return folders.screenshots[:MOST]
    paths = [path for place in labelled.folders() for path in sorted((place / "images").iterdir())]
    return [Path(path).read_bytes() for path in paths[:MOST]]


def _wait(service: Service) -> None:
    """Wait until nothing is left to analyse."""
    client = service.client()
    while (stats := msgspec.json.decode(client.get("/api/stats")))["pending"] + stats["processing"]:
        time.sleep(0.2)
    if stats["errors"]:
        raise RuntimeError("a screenshot could not be read")


def _spent(service: Service) -> dict[str, float]:
    """The processor time of the service's processes so far, in seconds. Of those that run now."""
    found = {"the service": 0.0, "the reader": 0.0, "the vectors": 0.0}
    parent = psutil.Process(service.process.pid)
    for process in (parent, *parent.children(recursive=True)):
        command = process.cmdline()
        name = "the reader" if READER in command else "the vectors" if EMBEDDER in command else "the service"
        times = process.cpu_times()
        found[name] += times.user + times.system
    return found


class _Asking:
    """A browser that asks for one thing after the other while this context lasts, with the times of each."""

    def __init__(self, service: Service):
        self.seconds: dict[str, list[float]] = {path: [] for path in ASKED}
        self._service = service
        self._ended = Event()
        self._thread = Thread(target=self._ask)

    def __enter__(self) -> "_Asking":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ask(self) -> None:
        client = self._service.client()
        while not self._ended.wait(THINKS):
            for path in ASKED:
                begun = time.perf_counter()
                try:
                    client.get(path)
                except RuntimeError:
                    continue  # the first photo is not there yet
                self.seconds[path].append(time.perf_counter() - begun)
