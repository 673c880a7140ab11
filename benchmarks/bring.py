"""`python -m benchmarks.bring folder`: brings the pictures of `pictures.csv` from their repositories.

The file has their sources and labels only: the pictures belong to their authors, under the licences that it
names. Each is brought from the commit at which it was labelled and kept if its SHA-256 is the same, as
`folder/<first 16 digits>.<ending>`. One that is there already is not brought again.
"""

import argparse
import csv
import hashlib
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import requests

from benchmarks.labelled import PICTURES

ADDRESS = "https://raw.githubusercontent.com/{repo}/{source_commit}/{source_path}"
TIMEOUT = 60  # seconds
MOST = 20_000_000  # bytes; none is larger

Get = Callable[[str], bytes]


def main() -> None:
    """Bring what is missing, and print how much could be had."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bring", description="Bring labelled pictures."
    )
    parser.add_argument("folder", type=Path, help="where they are kept")
    folder: Path = parser.parse_args().folder
    with PICTURES.open(encoding="utf-8") as file:
        there, missing = bring(csv.DictReader(file), folder, _get)
    print(f"{there} pictures are in {folder}, {missing} could not be had.")


def bring(rows: Iterable[Mapping[str, str]], folder: Path, get: Get) -> tuple[int, int]:
    """How many of the pictures are in the folder now, and how many could not be had. `get` fetches an
    address, and raises `OSError` where it cannot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    there = missing = 0
    for row in rows:
        start = row["sha256"][:16]
        if not any(folder.glob(f"{start}.*")):
            path = urllib.parse.quote(row["source_path"])
            try:
                content = get(
                    ADDRESS.format(repo=row["repo"], source_commit=row["source_commit"], source_path=path)
                )
            except OSError:  # those of requests are among them
                content = b""
            if hashlib.sha256(content).hexdigest() != row["sha256"]:
                missing += 1
                continue
            (folder / (start + Path(row["source_path"]).suffix.lower())).write_bytes(content)
        there += 1
    return there, missing


def _get(address: str) -> bytes:
    with requests.get(address, timeout=TIMEOUT, stream=True) as answer:
        answer.raise_for_status()
        return bytes(answer.raw.read(MOST, decode_content=True))


if __name__ == "__main__":
    main()
