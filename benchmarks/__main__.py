"""`python -m benchmarks`: measure, and print every figure beside its floor and its budget.

A missed budget is printed but does not fail the run: on a busy machine, a person has to judge the figures.
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
    options = _arguments()
    begun = time.perf_counter()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="snaplore-bench-", dir=options.folder) as root:
        folders = Folders(Path(root), options.size, options.rounds, now=utc_now(), pictures=options.pictures)
        facts = _facts(options.size, floors.flush(Path(root)))
        print(facts, flush=True)
        for name, group in GROUPS.items():
            if name in options.only:
                print(f"measuring: {name} ...", file=sys.stderr, flush=True)
                figures.extend(group(folders))
    seconds = time.perf_counter() - begun
    print(table(figures))
    missed = sum(figure.verdict == MISS for figure in figures)
    print(
        f"{len(figures)} figures, {missed} missed, in {seconds:.0f} s, "
        f"of which {folders.seconds:.0f} s to make the data"
    )
    if options.json:
        content = {
            "machine": facts,
            "size": options.size,
            "seconds": seconds,
            "figures": [figure.as_dict() for figure in figures],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n")


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
        "--rounds", type=_positive, default=7, help="repetitions; 1 for a quick run (default: %(default)s)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="upload the pictures in FOLDER, not made-up ones"
    )
    parser.add_argument(
        "--folder", type=Path, help="folder for the temporary data, on the disk to be measured"
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
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(GROUPS)}")
    return names


def _facts(size: int, flush: float) -> str:
    """The machine in one line. `flush` is in seconds."""
    return ", ".join(
        (
            f"{len(os.sched_getaffinity(0))} cores",
            f"{platform.system()} {platform.machine()}",
            f"load {os.getloadavg()[0]:.1f}",
            f"Python {platform.python_version()}",
            f"4 KB flushed to the disk in {flush * 1000:.2f} ms",
            f"{size:,} photos",
        )
    )


if __name__ == "__main__":
    main()
