"""`python -m benchmarks.compare COMMIT`: this working tree against an earlier commit, by turns in one run.

Each of the two serves its own copy of the same data, which the earlier commit has made, because no program
opens what a later one has migrated. They run at the same time and are asked in turns, so that a slow moment
of the machine meets both. A line has the median of each, and the ratio of this one's time to the other's: the
median over the turns, and the range of the middle half of them.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import database
from benchmarks import material, measure
from benchmarks.service import Service, upload_form
from benchmarks.timing import in_turns
from settings import ROOT, Settings

# What is asked of both before the clock starts: lists with each combination of these, and some details.
ASKED = {
    "order": "taken",
    "stacks": "true",
    "kept": "true",
    "device_id": "phone_1",
    "category": "chat",
    "intent": "note",
    "since": "2000-01-01",
    "status": "done",
    "page": "2",
}
DETAILS = 200
MOST_SHOWN = 20

UPLOADS = 200  # different pictures at most; then none is new

# Run in the earlier commit's folder. Its arguments: the data folder, and the number of photos.
_FILL = """
import sys
from pathlib import Path
from benchmarks import seed
from clock import utc_now
from settings import Settings
settings = Settings(data_dir=Path(sys.argv[1]), language="en", read_locally=False)
seed.fill(settings, int(sys.argv[2]), now=utc_now())
"""


class Compared(NamedTuple):
    """One action: medians in seconds, and quartiles of the ratios of this one's time to the other's."""

    what: str
    this: float
    other: float
    quartiles: tuple[float, float, float]

    @classmethod
    def of(cls, what: str, this: list[float], other: list[float]) -> "Compared":
        """From the times of the same turns."""
        ratios = sorted(one / two for one, two in zip(this, other, strict=True))
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return cls(what, statistics.median(this), statistics.median(other), (low, middle, high))

    def row(self) -> str:
        low, middle, high = self.quartiles
        times = f"{self.this * 1000:9.2f} ms {self.other * 1000:9.2f} ms"
        return f"{self.what:28} {times} {middle:7.2f} x  ({low:.2f} to {high:.2f})"


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="snaplore-compare-", dir=options.folder) as folder:
        root = Path(folder)
        with _tree(options.commit, root / "tree") as tree:
            print(f"{options.size:,} photos, load {os.getloadavg()[0]:.1f}", flush=True)
            print(f"{'':28} {'this':>12} {options.commit[:12]:>12} {'ratio':>9}  (middle half)", flush=True)
            for compared in compare(tree, root, options.size, options.turns):
                print(compared, flush=True)


def compare(tree: Path, root: Path, size: int, turns: int) -> Iterator[str]:
    """Compare this tree with the one in `tree`, with `size` photos in data folders below `root`. Yields lines
    for a person: which answers differ, and the times.
    """
    command = [sys.executable, "-c", _FILL, str(root / "other"), str(size)]
    subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    # Links for the pictures; the copied database is written by its own service.
    shutil.copytree(root / "other", root / "this", copy_function=_copied)
    other = Settings(data_dir=root / "other", language="en", read_locally=False)
    this = dataclasses.replace(other, data_dir=root / "this")
    database.open_store(this)  # migrates it
    queries = measure.queries(this, 3)
    database.close_store()
    with Service(this) as one, Service(other, root=tree) as two:
        yield from _differences(one, two, size)
        actions: dict[str, Callable[[], bytes]] = {}
        for side, service in (("this", one), ("other", two)):
            for what, ask in _actions(service, size, queries).items():
                actions[f"{side} {what}"] = ask
        # Each action of both sides follows upon the other's.
        pairs = {what.partition(" ")[2]: None for what in actions}
        ordered = {
            f"{side} {what}": actions[f"{side} {what}"] for what in pairs for side in ("this", "other")
        }
        seconds = in_turns(ordered, turns, warm_up=3)
    for what in pairs:
        yield Compared.of(what, seconds[f"this {what}"], seconds[f"other {what}"]).row()


def _differences(one: Service, two: Service, size: int) -> Iterator[str]:
    """How many answers of lists, details and statistics are equal, byte for byte, and which are not."""
    this, other = one.client(), two.client()
    lists = [
        urlencode(chosen)
        for number in range(len(ASKED) + 1)
        for chosen in itertools.combinations(ASKED.items(), number)
    ]
    paths = [
        *(f"/api/photos?page_size=7&{query}" for query in lists),
        *(f"/api/photos?page={number}&page_size=100" for number in (2, 3, size // 200, size // 100)),
        *(f"/api/photos/{number}" for number in range(1, size + 1, max(1, size // DETAILS))),
        *("/api/stats", "/api/photos/apps", "/api/photos/timeline", "/api/photos/timeline?stacks=true"),
        *("/api/analysis?page_size=100", "/api/analysis?status=done&intent=note", "/api/chat/conversations"),
    ]
    different = [path for path in paths if this.get(path) != other.get(path)]
    yield f"{len(paths) - len(different):,} of {len(paths):,} answers are the same"
    yield from (f"  another answer: {path}" for path in different[:MOST_SHOWN])


def _actions(service: Service, size: int, queries: list[material.Query]) -> dict[str, Callable[[], bytes]]:
    """What is asked of a service, by name; both services get the same requests in the same order."""
    client, choice = service.client(), random.Random(material.SEED)
    picture = material.screenshot(material.Writer(), 0)
    forms = itertools.cycle([upload_form(material.unlike(picture, number)) for number in range(UPLOADS)])
    page = f"/api/photos?page_size={measure.PAGE}"
    actions = {
        "health": lambda: client.get("/api/health"),
        "list of 20": lambda: client.get(page),
        "list, one of each stack": lambda: client.get(f"{page}&stacks=true"),
        "detail": lambda: client.get(f"/api/photos/{choice.randint(1, size)}"),
        "stats": lambda: client.get("/api/stats"),
        "upload": lambda: client.upload(next(forms)),
    }
    for kind in dict.fromkeys(query.kind for query in queries):
        turns = itertools.cycle([query for query in queries if query.kind == kind])
        actions[f"search, {kind}"] = lambda turns=turns: client.get(measure.search_path(next(turns)))
    return actions


@contextlib.contextmanager
def _tree(commit: str, place: Path) -> Iterator[Path]:
    """The files of a commit in the folder `place`, outside of this repository's own."""
    place.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=place, input=archive, check=True)
    yield place


def _copied(source: str, target: str) -> str:
    if Path(source).parent.parent.name == "photos":
        os.link(source, target)
        return target
    return shutil.copy2(source, target)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description="Measure this working tree against a commit."
    )
    parser.add_argument("commit", help="an earlier commit, like main or HEAD~3")
    parser.add_argument("--size", type=int, default=10_000, help="photos (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=60, help="(default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="folder for the temporary data")
    return parser.parse_args()


if __name__ == "__main__":
    main()
