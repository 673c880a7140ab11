"""Watched folders: screenshots that another program puts into a folder (Syncthing, FolderSync, the desktop's
screenshot tool) are stored by themselves; `/api/watch`.

A folder is read every 30 seconds. A file is taken when its size and time are the same in two readings, so
that none is taken while it is still being written. The folder itself is never changed.

Each file is taken once, by its place and by its content: one that is renamed, or whose photo was deleted
here, does not come back. For this, the digest of each is kept, and nothing else; a file that cannot be stored
is listed by its name with the reason, and tried again when it changes.

`Watcher.look` is one reading of all folders. Only one process reads at a time.
"""

import hashlib
import logging
import os
from pathlib import Path
from typing import NamedTuple

from flask import Blueprint

import database
import loops
from clock import utc_now
from errors import SnaploreError, StorageFull, Unavailable
from locks import named_lock
from models import WatchedFile
from settings import Settings
from upkeep import importing
from web import inputs, shapes

log = logging.getLogger(__name__)

EVERY = 30.0  # seconds between two readings
MOST_SHOWN = 100  # failures in an answer
UNREADABLE = "unreadable"  # the outcome of a file that the system does not let the service read
UNLISTED = "unlisted"  # the outcome of a sub-folder that the system does not let the service list
FAILURES = ("failed", UNREADABLE, UNLISTED)
PASSING = (UNREADABLE, UNLISTED)  # these may end without any change of the file or folder
# Names that sync programs and browsers give to files that are not complete.
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".download", "~")
UNFINISHED_BEGINNINGS = ("~", ".")


class Watched(NamedTuple):
    """A folder with the name of the device whose screenshots are in it."""

    folder: Path
    device_name: str

    @property
    def device_id(self) -> str:
        """An id of letters, digits and underscores, made of the name."""
        plain = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in self.device_name)
        if plain.strip("_"):
            return plain[:64]
        return f"watched_{hashlib.sha256(self.device_name.encode()).hexdigest()[:8]}"


def folders(settings: Settings) -> list[Watched]:
    """The folders of the setting, each with its device."""
    return [Watched(folder, name or folder.name) for name, folder in settings.watch]


class Watcher:
    """Reads the watched folders, and remembers what it has seen."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._folders = folders(settings)
        self._settled: set[bytes] = set()  # keys of files that need no second look
        self._moving: dict[Path, dict[bytes, bytes]] = {}  # folder -> place -> key in the reading before
        self._missing: set[Path] = set()
        self._unlisted: dict[Path, dict[bytes, str]] = {}  # folder -> place of a sub-folder -> the problem
        self._began = False

    def look(self) -> int:
        """Read every folder once, and store what has held still; returns how many were stored."""
        if not self._began:
            with database.scope():
                settled = WatchedFile.select(WatchedFile.key).where(WatchedFile.outcome.not_in(PASSING))
                self._settled.update(bytes(row.key) for row in settled)
            self._began = True
        return sum(self._look_into(watched) for watched in self._folders)

    def _look_into(self, watched: Watched) -> int:
        if not watched.folder.is_dir():
            if watched.folder not in self._missing:
                log.warning("the watched folder %s is not there", watched.folder)
                self._missing.add(watched.folder)
            return 0
        if watched.folder in self._missing:
            log.info("the watched folder %s is there again", watched.folder)
            self._missing.discard(watched.folder)
        before, seen, stored = self._moving.get(watched.folder, {}), {}, 0
        unlisted: dict[bytes, tuple[importing.Entry, str]] = {}

        def failed(entry: importing.Entry, problem: Exception) -> None:
            unlisted[_place(watched, entry)] = entry, importing.reason(problem)

        for file in importing.files(watched.folder, leave_out=self._settings.data_dir, failed=failed):
            if file.name.startswith(UNFINISHED_BEGINNINGS) or file.name.lower().endswith(UNFINISHED):
                continue
            place, key = _identify(watched, file)
            if not key or key in self._settled:
                continue
            if before.get(place) != key:
                seen[place] = key
            elif self._take(watched, file, key):
                stored += 1
        self._moving[watched.folder] = seen
        self._note_unlisted(watched, unlisted)
        return stored

    def _note_unlisted(self, watched: Watched, found: dict[bytes, tuple[importing.Entry, str]]) -> None:
        """List the sub-folders that could not be listed in this reading. Only a change is written."""
        problems = {key: problem for key, (_, problem) in found.items()}
        if problems == self._unlisted.get(watched.folder):
            return
        with database.scope():
            of_folder = (WatchedFile.folder == str(watched.folder)) & (WatchedFile.outcome == UNLISTED)
            WatchedFile.delete().where(of_folder).execute()
        for key, (entry, problem) in found.items():
            _note(watched, key, None, UNLISTED, entry, problem)
        self._unlisted[watched.folder] = problems

    def _take(self, watched: Watched, file: importing.File, key: bytes) -> bool:
        """Store a file that holds still; returns whether it was new. Raises when the disk is full."""
        outcome, content, problem = "stored", None, ""
        try:
            with database.scope():
                known = WatchedFile.get_or_none(WatchedFile.key == key)
            if known is not None and known.outcome not in PASSING:
                self._settled.add(key)  # another process has taken it
                return False
            received = importing.receive(file)
            if received is None:
                outcome = "ignored"
            else:
                with received:
                    content = received.sha256
                    if not _is_known(watched, content):
                        described = importing.described(received, watched.device_id, watched.device_name)
                        importing.store(received, described)
                    else:
                        outcome = "known"
        except (StorageFull, Unavailable):
            raise
        except OSError as failure:
            # Permissions may change without the file, so it is tried again, but written down only once.
            if known is None or known.problem != importing.reason(failure):
                _note(watched, key, None, UNREADABLE, file, importing.reason(failure))
            return False
        except SnaploreError as failure:
            outcome, problem = "failed", importing.reason(failure)
            log.warning("a file in %s was not stored: %s", watched.folder, problem)
        _note(watched, key, content, outcome, file, problem)
        self._settled.add(key)
        return outcome == "stored"


def loop(settings: Settings) -> loops.Loop:
    """The thread that reads the folders."""
    watcher = Watcher(settings)

    def step() -> float:
        try:
            with named_lock(database.store().folder / "jobs", "watch", 0, busy="Another process reads."):
                if stored := watcher.look():
                    log.info("%d screenshots stored from watched folders", stored)
        except Unavailable:
            pass
        return EVERY

    return loops.Loop("watch", step)


def overview(settings: Settings) -> list[shapes.WatchedFolder]:
    """Each folder with its device, the number of its screenshots and the files that failed."""
    found: list[shapes.WatchedFolder] = []
    for watched in folders(settings):
        of_folder = WatchedFile.folder == str(watched.folder)
        failed = (
            WatchedFile.select()
            .where(of_folder, WatchedFile.outcome.in_(FAILURES))
            .order_by(WatchedFile.seen_at.desc())
            .limit(MOST_SHOWN)
        )
        found.append(
            {
                "folder": str(watched.folder),
                "device_name": watched.device_name,
                "device_id": watched.device_id,
                "present": watched.folder.is_dir(),
                "stored": WatchedFile.select().where(of_folder, WatchedFile.outcome == "stored").count(),
                "failures": [shapes.of(row, shapes.WatchedFailure) for row in failed],
            }
        )
    return found


def forget_names() -> None:
    """Delete the names of files that failed. The digests of the others stay, or all would be stored again."""
    WatchedFile.delete().where(WatchedFile.outcome.in_(FAILURES)).execute()


def _identify(watched: Watched, file: importing.File) -> tuple[bytes, bytes]:
    """The digests of a file's place, and of its place, size and time; the second is empty if it is gone."""
    try:
        found = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
    except OSError:
        return b"", b""
    place = _place(watched, file)
    state = b"%b\0%d\0%d" % (_path(watched, file), found.st_size, found.st_mtime_ns)
    return place, hashlib.blake2b(state, digest_size=16).digest()


def _place(watched: Watched, entry: importing.Entry) -> bytes:
    return hashlib.blake2b(_path(watched, entry), digest_size=16).digest()


def _path(watched: Watched, entry: importing.Entry) -> bytes:
    return "\0".join((str(watched.folder), *entry.places)).encode("utf-8", "surrogateescape")


def _is_known(watched: Watched, content: bytes) -> bool:
    with database.scope():
        of_folder = (WatchedFile.folder == str(watched.folder)) & (WatchedFile.content == content)
        return WatchedFile.select().where(of_folder).exists()


def _note(
    watched: Watched, key: bytes, content: bytes | None, outcome: str, entry: importing.Entry, problem: str
) -> None:
    row = {
        "key": key,
        "folder": str(watched.folder),
        "content": content,
        "outcome": outcome,
        "name": entry.shown if problem else "",
        "problem": problem,
        "seen_at": utc_now(),
    }
    with database.scope():
        WatchedFile.insert(**row).on_conflict_replace().execute()


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("watching", __name__, url_prefix="/api")


@routes.get("/watch")
@inputs.operation()
def show() -> shapes.WatchedFolders:
    """Show the watched folders, and the files in them that could not be stored. A folder is watched where
    `SNAPLORE_WATCH` names it. A failed file is tried again when it changes.
    """
    return {"folders": overview(inputs.settings())}
