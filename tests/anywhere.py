"""The suite on other days, in other zones, in another language and with other fonts: `make test-anywhere`.

A test that leans on the day or the machine of its author fails here before it fails for somebody else. The
clock is libfaketime's, which every process that a test starts inherits. Left out are the slow tests and those
of the dashboard, because Chromium keeps to the real time.

    .venv/bin/python -m tests.anywhere [--only PLACE …] [arguments of pytest]
"""

import argparse
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import libfaketime
import pymupdf

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
FONTS = "/usr/share/fonts"
NONE_LEFT = 5  # of a file, all tests are slow; pytest counts that as a failure
BROWSERS = ("test_dashboard*.py",)
# The kernel stamps new files with the real time, so on another day these take what they have written for old.
STAMPED = (
    "tests/test_check.py::test_rows_that_refer_to_missing_rows_are_reported",
    "tests/test_check.py::test_files_without_a_row_are_wrong_when_they_are_older_than_a_day",
    "tests/test_check.py::test_data_that_changes_during_a_check_is_not_reported",
    "tests/test_cleanup.py::test_lock_files_of_dead_processes_are_deleted_and_others_stay",
)


class Place(NamedTuple):
    """How a run differs: `moment` says which time it is when it really is `now`."""

    moment: str | timedelta | None = None
    zone: str = "UTC"
    language: str = "C.UTF-8"
    fonts: bytes | None = None  # the only font of the machine; empty for none


def places() -> dict[str, Place]:
    """Every place, by its name."""
    return {
        "40-days": Place(timedelta(days=40)),
        "400-days": Place(timedelta(days=400)),
        "29-february": Place("2028-02-29 12:00:00"),
        "midnight": Place("23:59:00"),
        "auckland": Place(zone="Pacific/Auckland"),
        "honolulu": Place(zone="Pacific/Honolulu"),
        "chinese": Place(language="zh_CN.UTF-8"),
        "no-fonts": Place(fonts=b""),
        "chinese-fonts": Place(fonts=pymupdf.Font("china-s").buffer),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=list(places()), help="a place; repeatable")
    chosen, options = parser.parse_known_args()
    failed = []
    for name, place in places().items():
        if chosen.only is None or name in chosen.only:
            print(f"\n== {name}", flush=True)
            if not _passes(place, options):
                failed.append(name)
    print("\nEvery place passes." if not failed else f"\nFailed: {', '.join(failed)}")
    return 1 if failed else 0


def _passes(place: Place, options: list[str]) -> bool:
    if place.moment == "23:59:00" and not any(option.startswith("tests/") for option in options):
        # One file at a time, else only the first would begin before midnight.
        files = sorted(path for path in Path("tests").glob("test_*.py") if not path.match(BROWSERS[0]))
        return sum(not _run(place, [*options, str(path)]) for path in files) == 0
    return _run(place, options)


def _run(place: Place, options: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    for pattern in BROWSERS:
        command += ["--ignore-glob", f"*/{pattern}"]
    for test in STAMPED if place.moment else ():
        command += ["--deselect", test]
    environment = {**os.environ, "TZ": place.zone, "LC_ALL": place.language, "LANG": place.language}
    if place.moment:
        environment |= {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME": f"+{_ahead(place.moment):.0f}s",
            "DONT_FAKE_MONOTONIC": "1",
        }
    if place.fonts is not None:
        command = [*_with_fonts(place.fonts), *command]
    done = subprocess.run([*command, *options], cwd=ROOT, env=environment, check=False)
    return done.returncode in (0, NONE_LEFT)


def _ahead(moment: str | timedelta) -> float:
    """How many seconds the clock is ahead; whole days are of the zone of this run, which is UTC."""
    if isinstance(moment, timedelta):
        return moment.total_seconds()
    now = datetime.now().astimezone()
    day, _, hour = moment.rpartition(" ")
    wanted = datetime.fromisoformat(f"{day or f'{now + timedelta(days=1):%Y-%m-%d}'} {hour}+00:00")
    return (wanted - now).total_seconds()


def _with_fonts(font: bytes) -> list[str]:
    """The beginning of a command that has only this font, in a mount namespace of its own."""
    file = Path(f"{os.environ.get('TMPDIR', '/tmp')}/snaplore-font-{os.getpid()}.ttf")
    file.write_bytes(font)
    put = (
        f"cp {file} {FONTS}/NotoSansCJK-Regular.ttc && cp {file} {FONTS}/wqy-microhei.ttc" if font else "true"
    )
    script = f'mkdir -p {FONTS} && mount -t tmpfs none {FONTS} && {put} && rm -f {file} && exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]


if __name__ == "__main__":
    sys.exit(main())
