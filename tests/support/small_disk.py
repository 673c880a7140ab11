"""A small real file system for a test: a tmpfs of a given size, mounted in its own user and mount namespace.

An idle process holds the namespace. Programs join it with `nsenter`, and the test reads the files through
`/proc`. Everything disappears with that process, whatever the test does.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096  # bytes, the unit of a tmpfs


class SmallDisk:
    """`folder` is its path for programs inside, `here` its path for the test."""

    def __init__(self, folder: Path, holder: int):
        self.folder = folder
        self.here = Path(f"/proc/{holder}/root{folder}")
        self.inside = (
            "nsenter",
            "--preserve-credentials",
            "--user",
            "--mount",
            f"--target={holder}",
            f"--wd={Path.cwd()}",
        )

    def fill(self, *, leave: int = 0) -> None:
        """Fill it except for `leave` pages."""
        self.empty()
        with open(self._filling, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(PAGE)):
                pass
        os.truncate(self._filling, max(0, self._filling.stat().st_size - leave * PAGE))

    def empty(self) -> None:
        """Delete what `fill` has written."""
        self._filling.unlink(missing_ok=True)

    def mount_read_only(self) -> None:
        """Make it read-only for files that are opened from now on. Starts over when a file is opened for
        writing between the two steps.
        """
        for attempt in range(20):
            self._run("mount", "--bind", str(self.folder), str(self.folder))
            try:
                self._run("mount", "-o", "remount,ro,bind", str(self.folder))
                return
            except subprocess.CalledProcessError:
                self.unmount()
                if attempt == 19:
                    raise

    def unmount(self) -> None:
        """Undo `mount_read_only`."""
        self._run("umount", "--lazy", str(self.folder))

    @property
    def _filling(self) -> Path:
        return self.here / "filling"

    def _run(self, *command: str) -> None:
        subprocess.run([*self.inside, *command], check=True, capture_output=True)


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[SmallDisk | None]:
    """A file system of `size` bytes at `folder`; None when the machine does not allow it."""
    folder.mkdir()
    script = f"mount -t tmpfs -o size={size} tmpfs '{folder}' && echo mounted && exec sleep infinity"
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        yield None
        return
    holder = subprocess.Popen(
        ["unshare", "-rm", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield SmallDisk(folder, holder.pid) if holder.stdout.readline() == b"mounted\n" else None
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
