"""Commands of `./snaplore`, each killed by SIGKILL at the entry of one system call that changes the disk.

strace traces a whole run once, and so finds the calls; then it runs the command again and kills it at the
chosen one. The command does the same calls in the same order each time.
"""

import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from settings import PREFIX, ROOT, Settings

CHANGES = ("write", "pwrite64", "fsync", "fdatasync", "sync", "ftruncate", "truncate")
CHANGES += ("link", "linkat", "rename", "renameat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat")


class Point(NamedTuple):
    """A system call: the `count`th one of this name in the run."""

    name: str
    count: int


def need_strace() -> None:
    """Skip the test where strace is not installed, or may not trace."""
    tried = shutil.which("strace") and subprocess.run(
        ["strace", "-f", "-o", os.devnull, "true"], capture_output=True, check=False
    )
    if not tried or tried.returncode:
        pytest.skip("strace is not installed, or may not trace here")


def points(settings: Settings, *arguments: str) -> list[Point]:
    """Run the command to its end; returns its calls that change the data folder, in their order."""
    log = settings.data_dir.parent / "trace"
    ended = _run(settings, arguments, "-y", "-s", "0", "-e", f"trace={_known(CHANGES)}", "-o", str(log))
    assert ended.returncode == 0, ended.stderr
    counted: Counter[str] = Counter()
    found = []
    for name, rest in re.findall(r"^\d+ +(\w+)\((.*)$", log.read_text(), re.MULTILINE):
        counted[name] += 1
        if name == "sync" or str(settings.data_dir) in rest:
            found.append(Point(name, counted[name]))
    return found


def spread(points: list[Point], number: int, chance: random.Random) -> list[Point]:
    """One point by chance out of each of `number` parts of the run."""
    assert len(points) >= number
    edges = [len(points) * part // number for part in range(number + 1)]
    return [points[chance.randrange(*part)] for part in itertools.pairwise(edges)]


def kill(settings: Settings, point: Point, *arguments: str) -> None:
    """Run the command and kill it at `point`."""
    ended = _run(
        settings,
        arguments,
        *("-e", f"trace={point.name}", "-o", os.devnull),
        *("-e", f"inject={point.name}:signal=SIGKILL:when={point.count}"),
    )
    assert ended.returncode == -signal.SIGKILL, (point, ended.returncode, ended.stderr)


def killed(process: int) -> None:
    """Kill a child process, which may have ended just now."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _run(settings: Settings, arguments: tuple[str, ...], *options: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith((PREFIX, "PYTEST_"))
    }
    environment |= {
        f"{PREFIX}DATA_DIR": str(settings.data_dir),
        f"{PREFIX}ENCRYPTION": str(settings.encryption).lower(),
        "PYTHONDONTWRITEBYTECODE": "1",  # these writes would not be the same each time
    }
    command = [
        "strace",
        "-f",
        "-qq",
        *options,
        sys.executable,
        str(ROOT / "snaplore"),
        *arguments,
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def _known(names: tuple[str, ...]) -> str:
    """The names for strace, which of some kinds of processors knows only a few."""
    return ",".join(f"?{name}" for name in names)


def copied(template: Path, folder: Path) -> Path:
    """A copy of the data folder `template` in `folder`."""
    return Path(shutil.copytree(template, folder / "data"))
