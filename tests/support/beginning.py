"""The data folder that a first start leaves. A copy takes a twentieth of the time of another first start."""

import functools
import shutil
import tempfile
from pathlib import Path

import database
from app import create_app
from settings import Settings


@functools.cache
def _kept() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="first-start-")


@functools.cache
def first_start() -> Path:
    """The folder itself, for copying only."""
    folder = Path(_kept().name) / "data"
    create_app(Settings(data_dir=folder))
    database.close_store()
    return folder


def begin(settings: Settings) -> None:
    """Make the data folder of these settings, unless it is there, or a first start would make another one."""
    if settings.encryption and settings.master_key_file is None and not settings.data_dir.exists():
        shutil.copytree(first_start(), settings.data_dir)
