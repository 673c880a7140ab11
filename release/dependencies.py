"""Tells the wheel's builder (hatchling) what the service needs: the versions of requirements.txt, with which
it was tested.
"""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

INSTALLERS = ("pip",)  # in the lock for `make install`; nothing imports them


def pinned(lock: str) -> list[str]:
    """The requirements of a lock file, without their hashes."""
    lines = [line.removesuffix("\\").strip() for line in lock.splitlines() if line[:1].isalnum()]
    return [line for line in lines if line.partition("==")[0] not in INSTALLERS]


class Dependencies(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        lock = Path(self.root, "requirements.txt")
        metadata["dependencies"] = pinned(lock.read_text(encoding="utf-8"))
