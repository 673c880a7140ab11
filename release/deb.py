"""Builds the Debian package for one architecture: `make deb`, or

    python -m release.deb dist --arch arm64

The package has the program, and the wheels of every package that it needs: an installation makes a virtual
environment of them, for the Python of the machine, without network. When the machine's Python changes, it is
made again (a trigger of dpkg).
"""

import argparse
import gzip
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from release import wheelhouse
from settings import ROOT, VERSION

SOURCES = Path(__file__).resolve().parent / "deb"
MAINTAINER_SCRIPTS = ("config", "postinst", "prerm", "postrm")
APP = "snaplore/_app/"  # the program in the wheel
LINKED = "/opt/snaplore/deploy/snaplore"


def build(folder: Path, arch: str, wheels: Path) -> Path:
    """Write the package into `folder`, with all wheels of `wheels`; returns the file. Raises `OSError`,
    `subprocess.CalledProcessError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made, "tree")
        _add_program(tree, Path(made))
        house = tree / "opt/snaplore/wheels"
        house.mkdir()
        for wheel in sorted(wheels.glob("*.whl")):
            shutil.copyfile(wheel, house / wheel.name)
        _add_system(tree)
        _add_control(tree, arch)
        _set_modes(tree)
        package = folder / f"snaplore_{VERSION}_{arch}.deb"
        # Wheels are compressed already.
        command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(tree), str(package)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return package


def _add_program(tree: Path, made: Path) -> None:
    """The files of the wheel, with what an installation needs beside them."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = made.glob("*.whl")
    program = tree / "opt/snaplore"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith(APP):
                file = program / member.filename.removeprefix(APP)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(archive.read(member))
                file.chmod(member.external_attr >> 16 & 0o777)
    for name in ("requirements.txt", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, program / name)
    (program / "docs").mkdir()
    for document in ROOT.glob("docs/*.md"):
        shutil.copyfile(document, program / "docs" / document.name)


def _add_system(tree: Path) -> None:
    """The units, the user and the command."""
    units, users = tree / "usr/lib/systemd/system", tree / "usr/lib/sysusers.d"
    for place in (units, users, tree / "usr/bin"):
        place.mkdir(parents=True)
    for kind in ("service", "socket", "timer"):
        for unit in ROOT.glob(f"deploy/*.{kind}"):
            shutil.copyfile(unit, units / unit.name)
    shutil.copyfile(ROOT / "deploy/snaplore.sysusers", users / "snaplore.conf")
    (tree / "usr/bin/snaplore").symlink_to(LINKED)
    documents = tree / "usr/share/doc/snaplore"
    documents.mkdir(parents=True)
    shutil.copyfile(SOURCES / "copyright", documents / "copyright")
    entry = (SOURCES / "changelog").read_text(encoding="utf-8").replace("@VERSION@", VERSION)
    with gzip.GzipFile(documents / "changelog.gz", "wb", mtime=0) as changelog:
        changelog.write(entry.encode())


def _add_control(tree: Path, arch: str) -> None:
    control = tree / "DEBIAN"
    control.mkdir()
    size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file()) // 1024
    fields = (SOURCES / "control").read_text(encoding="utf-8")
    for name, value in (("VERSION", VERSION), ("ARCH", arch), ("SIZE", str(size))):
        fields = fields.replace(f"@{name}@", value)
    (control / "control").write_text(fields, encoding="utf-8")
    for name in ("templates", "triggers", *MAINTAINER_SCRIPTS):
        shutil.copyfile(SOURCES / name, control / name)


def _set_modes(tree: Path) -> None:
    """Modes that do not depend on the umask of whoever builds the package."""
    tree.chmod(0o755)
    for file in tree.rglob("*"):
        if file.is_symlink():
            continue
        runs = file.is_dir() or file.stat().st_mode & 0o100 or file.name in MAINTAINER_SCRIPTS
        file.chmod(0o755 if runs else 0o644)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the package goes")
    parser.add_argument("--arch", choices=wheelhouse.MACHINES, default="amd64")
    parser.add_argument("--python", action="append", dest="pythons", help="of the wheels; may repeat")
    parser.add_argument("--wheels", type=Path, help="a folder with the wheels, instead of a download")
    options = parser.parse_args()
    wheels = options.wheels or ROOT / "release" / ".wheels" / options.arch
    if options.wheels is None:
        wheelhouse.download(wheels, options.arch, tuple(options.pythons or wheelhouse.PYTHONS))
    print(build(options.folder, options.arch, wheels))


if __name__ == "__main__":
    main()
