"""The wheels that the service needs, in one folder, so that a machine without network can install them.

    python -m release.wheelhouse FOLDER [--arch arm64] [--python 3.11 --python 3.14]

pip compares every file with the hashes of requirements.txt, also those that are in the folder already.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Debian's name of an architecture, and Python's.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
GLIBC = range(17, 37)  # 2.17, which manylinux2014 means, to 2.36 of Debian 12
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # Debian 12, Ubuntu 24.04, Debian 13, Ubuntu 26.04


def without_markers(lock: str) -> str:
    """A lock file without its conditions, which pip would judge by the Python that it runs on."""
    lines = []
    for line in lock.splitlines():
        name, marker, _ = line.partition(" ; ")
        lines.append(f"{name} \\" if marker else line)
    return "\n".join(lines) + "\n"


def download(folder: Path, arch: str, pythons: tuple[str, ...]) -> None:
    """Put the wheels of each Python into `folder`. Raises `subprocess.CalledProcessError`."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = MACHINES[arch]
    tags = ["manylinux1", "manylinux2010", "manylinux2014", *(f"manylinux_2_{minor}" for minor in GLIBC)]
    with tempfile.TemporaryDirectory() as made:
        lock = Path(made, "requirements.txt")
        lock.write_text(without_markers((ROOT / "requirements.txt").read_text(encoding="utf-8")))
        for python in pythons:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-qq"]
            command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", str(lock)]
            command += ["--dest", str(folder), "--find-links", str(folder), "--python-version", python]
            command += ["--implementation", "cp"]
            command += [f"--abi={abi}" for abi in (f"cp{python.replace('.', '')}", "abi3", "none")]
            command += [f"--platform={tag}_{machine}" for tag in tags]
            subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", choices=MACHINES, default="amd64")
    parser.add_argument("--python", action="append", dest="pythons", help="may repeat")
    options = parser.parse_args()
    download(options.folder, options.arch, tuple(options.pythons or PYTHONS))


if __name__ == "__main__":
    main()
