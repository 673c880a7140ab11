"""Importing a folder of screenshots: which files are taken, and how each is stored.

A file is recognised by its bytes, not by its name or place, so an import can be stopped at any time and run
again: what is stored already is skipped, also when it was moved or renamed.
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
    """In a stable order, without hidden ones, links, and the service's own data."""
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
    """Store one file; returns the word that the summary counts it under."""
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
            # The bytes name the file, so that the next run knows it again wherever it lies.
            upload = photos.Upload(
                device_id, path.name, taken, device_name, local_media_store_id=f"sha256:{spool.sha256.hex()}"
            )
            with database.scope():
                kept = photos.store(spool, upload, now=utc_now())
        finally:
            spool.close()
    return "already there" if kept.dedup else "imported"
