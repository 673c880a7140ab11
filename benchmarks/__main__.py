"""`python -m benchmarks`: measure, and print every figure beside its floor and its budget.

A missed budget is printed as such and is no failure of the run: a figure of a busy machine must be looked at
by a person.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import floors
from benchmarks.figures import MISS, Figure, table
from benchmarks.measure import GROUPS
from benchmarks.seed import Folders
from clock import utc_now


def main() -> None:
    chosen = _arguments()
    begun = time.perf_counter()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="snaplore-bench-", dir=chosen.folder) as root:
        folders = Folders(Path(root), chosen.size, chosen.rounds, now=utc_now())
        facts = _facts(chosen.size, floors.flush(Path(root)))
        print(facts, flush=True)
        for name, group in GROUPS.items():
            if name in chosen.only:
                print(f"measuring: {name} ...", file=sys.stderr, flush=True)
                figures.extend(group(folders))
    seconds = time.perf_counter() - begun
    print(table(figures))
    missed = sum(figure.verdict == MISS for figure in figures)
    print(
        f"{len(figures)} figures, {missed} missed, in {seconds:.0f} s, {folders.seconds:.0f} s of them to make the data"
    )
    if chosen.json:
        content = {
            "machine": facts,
            "size": chosen.size,
            "seconds": seconds,
            "figures": [figure.as_dict() for figure in figures],
        }
        chosen.json.write_text(json.dumps(content, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure Snaplore against its budgets."
    )
    parser.add_argument(
        "--size", type=_positive, default=10_000, help="photos in the data folder (default: %(default)s)"
    )
    parser.add_argument(
        "--only",
        type=_groups,
        default=tuple(GROUPS),
        metavar="NAME,NAME",
        help=f"some of: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--rounds", type=_positive, default=7, help="repetitions; 1 is a quick look (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument(
        "--folder", type=Path, help="where the data folders are made for the while, on the disk that is meant"
    )
    return parser.parse_args()


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _groups(value: str) -> tuple[str, ...]:
    names = tuple(value.split(","))
    for name in names:
        if name not in GROUPS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(GROUPS)}")
    return names


def _facts(size: int, flush: float) -> str:
    """The machine in one line."""
    machine = f"{len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f}"
    return f"{machine}, Python {platform.python_version()}, 4 KB to the disk in {flush * 1000:.2f} ms, {size:,} photos"


if __name__ == "__main__":
    main()
