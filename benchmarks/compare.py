"""`python -m benchmarks.compare COMMIT`: this working tree against an earlier commit, by turns in one run.

Each of the two serves its own copy of the same data, which the earlier commit has made, because no program
opens what a later one has migrated. They run at the same time and are asked in turns, so that a slow moment
of the machine meets both. A line has the median of each, and the ratio of this one's time to the other's: the
median over the turns, and the range of the middle half of them.

Before that, both are asked hundreds of searches, and those with different answers are named. A version that
is only faster has none.

With `--rotations`, the key of the database is rotated instead, so many times in each of the two, by turns,
beside clients that read and upload. A line has the longest wait of a request.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import database
from benchmarks import material, measure
from benchmarks.service import Client, PauseWatch, Service, upload_form
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
MOST_SHOWN = 20  # answers that differ

UPLOADS = 200  # different pictures at most; then none is new
READERS = 2  # clients that list photos during a rotation, beside one that uploads
QUIET = 5  # seconds of the same requests without a rotation

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
        with (
            _tree(options.commit, root / "tree") as tree,
            _both(tree, root, options.size, options.searches) as (this, other, queries),
        ):
            if options.rotations:
                for row in compare_rotations(this, other, options.rotations):
                    print(row, flush=True)
                return
            # Before anything is uploaded, which both analyse at moments of their own.
            paths = [*_lists(options.size), *_searches(queries)]
            different = differences(this, other, paths)
            print(f"{len(paths):,} answers, {len(different)} of them different", flush=True)
            for path in different[:MOST_SHOWN]:
                print(f"  {path}", flush=True)
            print(f"{options.size:,} photos, load {os.getloadavg()[0]:.1f}", flush=True)
            print(f"{'':28} {'this':>12} {options.commit[:12]:>12} {'ratio':>9}  (middle half)", flush=True)
            pictures = sorted(options.pictures.iterdir()) if options.pictures else []
            sent = [path.read_bytes() for path in pictures] or [material.screenshot(material.Writer(), 0)]
            for compared in compare(this, other, options, queries, sent):
                print(compared.row(), flush=True)


def compare(
    this: Service,
    other: Service,
    options: argparse.Namespace,
    queries: list[material.Query],
    pictures: list[bytes],
) -> Iterator[Compared]:
    """Compare the two services, each with the same photos, by uploading `pictures` among other things."""
    actions: dict[str, Callable[[], bytes]] = {}
    for side, service in (("this", this), ("other", other)):
        for what, ask in _actions(service, options.size, queries, pictures).items():
            actions[f"{side} {what}"] = ask
    # Each action of both sides follows upon the other's.
    pairs = {what.partition(" ")[2]: None for what in actions}
    ordered = {f"{side} {what}": actions[f"{side} {what}"] for what in pairs for side in ("this", "other")}
    seconds = in_turns(ordered, options.turns, warm_up=3)
    for what in pairs:
        yield Compared.of(what, seconds[f"this {what}"], seconds[f"other {what}"])


def differences(this: Service, other: Service, paths: list[str]) -> list[str]:
    """The paths whose answers differ, byte for byte."""
    one, two = this.client(), other.client()
    # Scores fall with a photo's age, so once in a while one is rounded in another way a moment later.
    return [path for path in paths if all(one.get(path) != two.get(path) for _ in range(3))]


def _lists(size: int) -> list[str]:
    """Lists with each combination of filters, details, statistics."""
    chosen = [
        urlencode(chosen)
        for number in range(len(ASKED) + 1)
        for chosen in itertools.combinations(ASKED.items(), number)
    ]
    return [
        *(f"/api/photos?page_size=7&{query}" for query in chosen),
        *(f"/api/photos?page={number}&page_size=100" for number in (2, 3, size // 200, size // 100)),
        *(f"/api/photos/{number}" for number in range(1, size + 1, max(1, size // DETAILS))),
        *("/api/stats", "/api/photos/apps", "/api/photos/timeline", "/api/photos/timeline?stacks=true"),
        *("/api/analysis?page_size=100", "/api/analysis?status=done&intent=note", "/api/chat/conversations"),
    ]


def _searches(queries: list[material.Query]) -> list[str]:
    """Searches for the queries, for two of them at once, and for each with an operator."""
    texts = [query.text for query in queries]
    texts += [f"{one} {two}" for one, two in itertools.pairwise(texts)]
    operators = itertools.cycle(measure.OPERATORS)
    texts += [f"{text} {next(operators)}" for text in texts]
    return [measure.search_path(material.Query("", text, "")) for text in texts]


@contextlib.contextmanager
def _both(
    tree: Path, root: Path, size: int, each: int
) -> Iterator[tuple[Service, Service, list[material.Query]]]:
    """A service of this tree and one of the tree in `tree`, with `size` photos in data folders below `root`,
    and `each` queries of every kind for these photos.
    """
    command = [sys.executable, "-c", _FILL, str(root / "other"), str(size)]
    subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    # Links for the pictures; the copied database is written by its own service.
    shutil.copytree(root / "other", root / "this", copy_function=_copied)
    other = Settings(data_dir=root / "other", language="en", read_locally=False)
    this = dataclasses.replace(other, data_dir=root / "this")
    database.open_store(this)  # migrates it
    queries = measure.queries(this, each)
    database.close_store()
    with Service(this) as one, Service(other, root=tree) as two:
        yield one, two, queries


def compare_rotations(this: Service, other: Service, turns: int) -> Iterator[str]:
    """Rotate the database key of both, `turns` times each, and yield a line for each turn."""
    picture = material.screenshot(material.Writer(), 0)
    forms = itertools.cycle([upload_form(material.unlike(picture, number)) for number in range(UPLOADS)])
    yield f"{'':16} {'rotation':>10} {'a reader waits':>16} {'an upload waits':>16} {'refused':>8}"
    for name, service in (("this", this), ("other", other)) * turns:
        for act in (_pause, _rotate):
            with (
                PauseWatch(service, _list, READERS) as reading,
                PauseWatch(service, lambda client: client.upload(next(forms)), 1) as uploading,
            ):
                spent = act(service)
            waits = f"{reading.longest:14.2f} s {uploading.longest:14.2f} s"
            yield f"{name:16} {spent} {waits} {reading.refused + uploading.refused:8}"


def _pause(_service: Service) -> str:
    time.sleep(QUIET)
    return f"{'none':>10}"


def _rotate(service: Service) -> str:
    output = service.run("jobs", "rotate-keys", "--force")
    return f"{float(re.search(r'after ([0-9.]+) s', output)[1]):8.1f} s"


def _list(client: Client) -> bytes:
    return client.get(f"/api/photos?page_size={measure.PAGE}")


def _actions(
    service: Service, size: int, queries: list[material.Query], pictures: list[bytes]
) -> dict[str, Callable[[], bytes]]:
    """What is asked of a service, by name; both services get the same requests in the same order."""
    client, choice = service.client(), random.Random(material.SEED)
    files = zip(itertools.cycle(pictures), range(UPLOADS), strict=False)
    forms = itertools.cycle([upload_form(material.unlike(*file)) for file in files])
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
    parser.add_argument(
        "--searches", type=int, default=26, help="queries of each of the six kinds (default: %(default)s)"
    )
    parser.add_argument(
        "--rotations", type=int, default=0, help="rotate the key of the database so many times instead"
    )
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="upload the pictures in FOLDER, not a made-up one"
    )
    parser.add_argument("--folder", type=Path, help="folder for the temporary data")
    return parser.parse_args()


if __name__ == "__main__":
    main()
