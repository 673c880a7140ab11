"""Importing a folder of screenshots: finding its files and storing each one.

A stored file is recognised by its content, not by its name or place. So an import can be stopped at any time
and run again: it skips files that are stored already, even if they were moved or renamed.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import database
import photos
import pictures
from clock import utc_now
from spool import Spool

BLOCK = 262_144  # bytes that are read at once


def regular_files(folder: Path, *, leave_out: Path) -> Iterator[Path]:
    """The files below `folder` in a stable order, without hidden files, links and `leave_out`."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and Path(parent, name).resolve() != leave_out.resolve()
        )
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def import_file(path: Path, device_id: str, device_name: str) -> str:
    """Store one file; returns its kind in the summary. Raises `SnaploreError`, `OSError`."""
    with path.open("rb") as file:
        if not pictures.recognised(file):
            return "ignored (not a picture)"
        taken = pictures.taken_at(file) or datetime.fromtimestamp(path.stat().st_mtime, UTC).replace(
            tzinfo=None
        )
        file.seek(0)
        spool = Spool(photos.MAX_FILE)
        try:
            while block := file.read(BLOCK):
                spool.write(block)
            # The checksum identifies the file, so that the next run recognises it wherever it is.
            upload = photos.Upload(
                device_id, path.name, taken, device_name, local_media_store_id=f"sha256:{spool.sha256.hex()}"
            )
            with database.scope():
                stored = photos.store(spool, upload, now=utc_now())
        finally:
            spool.close()
    return "already there" if stored.dedup else "imported"
