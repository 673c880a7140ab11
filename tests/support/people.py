"""Services of several people on one machine, each with a user and namespaces of its own, as the unit
`deploy/snaplore@.service` gives them: the machine read-only but for the person's own folder, other people's
processes out of sight, no capabilities. It needs root.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from settings import ROOT
from tests.support.service import PATIENCE, Service

PROGRAMS = ("unshare", "setpriv", "mount")
# The interpreter may be in a folder of root's, which gives way to an empty one with nothing else in it.
SCRIPT = r"""
set -e
home=$1 user=$2 python=$3; shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/python
mount --bind "$python" /mnt/python
case "$python" in /root/*)
    mount -t tmpfs -o mode=755 tmpfs /root
    mkdir -p "$python"
    mount --bind /mnt/python "$python" ;;
esac
mount -t proc -o hidepid=invisible proc /proc
mount --bind "$home" "$home"
mount -o remount,bind,ro /
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --inh-caps=-all \
    --bounding-set=-all "$@"
"""


def missing() -> str:
    """Why services of several people cannot be started here; empty when they can."""
    if os.geteuid() or not all(map(shutil.which, PROGRAMS)):
        return f"it needs root, and {', '.join(PROGRAMS)}"
    hidden = [str(folder) for folder in (ROOT, *ROOT.parents) if not folder.stat().st_mode & 0o001]
    return f"other users cannot read {hidden[0]}" if hidden else ""


class Person(Service):
    """The service of a person in `folder`, which becomes the person's."""

    def __init__(self, folder: Path, user: int, **settings: object):
        super().__init__(folder, **settings)
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)
        folder.chmod(0o700)  # as `StateDirectoryMode`
        self.inside = (
            "unshare",
            "--mount",
            "sh",
            "-c",
            SCRIPT,
            "sh",
            str(folder),
            str(user),
            sys.base_prefix,
        )

    def run_inside(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run Python with these arguments as this person, where the service runs."""
        command = [*self.inside, sys.executable, *arguments]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
