"""Restoring a backup: everything is verified before anything is replaced, and the previous data is kept
aside.

The backup comes into `restore-<hex>`, a folder in the data folder, where `upkeep/verifying.py` verifies it.

The switch is committed by one step, as is every change of the data folder: replacing the key ring. Before it,
the present data is linked into `before-restore-<UTC>`, and the new files and the new database are put beside
the old ones; names are random and never reused for other bytes, so they cannot collide. Then the key ring is
replaced: it names the new database, whose rows name the new files. Afterwards the files that only the old
state named are deleted. A run that is killed before that step leaves the old state, with some files that no
row names; one that is killed after it leaves the new state. Both are complete, clean-up removes the rest, and
another restore takes the same steps.

No service may run meanwhile; cron jobs wait during the switch. The data folder need not open, or exist.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

import crypto
import disk
from errors import NotFound, StartRefused
from locks import FolderLock, ServiceLock
from settings import Settings
from upkeep import archive, rollback, verifying
from upkeep.progress import Progress

FILES = ("database", *verifying.PICTURES)
STATE = ("keys", *FILES)  # the folders that make up a state of the data folder


class Restored(NamedTuple):
    photos: int
    made_at: datetime | None  # of the backup, UTC
    aside: Path | None  # where the previous data is kept
    unreadable: list[str]  # paths of files that were already lost or damaged when the backup was made


def restore(
    settings: Settings,
    source: Path | verifying.Snapshot,
    progress: Progress,
    *,
    now: datetime,
    master_key_file: Path | None = None,
) -> Restored:
    """Replace everything in the data folder with the backup `source`, a file or a snapshot in a bucket. The
    data folder need not open, or exist.

    Raises `StartRefused` when a service runs, when no key opens the backup, or when the encryption setting
    differs from the backup; `BadInput` when `source` is not a backup; `Unreadable` when it is damaged;
    `StorageFull`; `BucketAway`. After any failure the data is unchanged.
    """
    with (
        archive.explain_failures("The backup cannot be restored"),
        _alone(settings.data_dir) as (folder, stage),
    ):
        _machine_key(settings, folder)  # raises now, not after an hour, if its file is set but missing
        elsewhere: dict[str, int] = {}
        if isinstance(source, verifying.Snapshot):
            head = verifying.fetch(source, stage, settings, elsewhere, progress)
        else:
            verifying.check_room(folder, source.stat().st_size)
            head = verifying.unpack(source, stage, settings, progress)
        ring, key = verifying.open_ring(settings, stage, master_key_file)
        unreadable = verifying.decoded((stage / archive.UNREADABLE).read_bytes(), list[str])
        with verifying.verified_database(stage, ring) as copy:
            verifying.leave_in_bucket(elsewhere, copy)
            verifying.verify_files(stage, copy, {*unreadable, *elsewhere}, head.files, progress)
            verifying.bring_home(stage, copy)
            ring = rollback.of_one_time(copy, ring)
            number = verifying.number_of_photos(copy)
        aside = _switch(settings, stage, ring, key, now=now)
    return Restored(number, head.created_at, aside, unreadable)


def undo(settings: Settings, *, now: datetime, master_key_file: Path | None = None) -> Restored:
    """Bring back the data that the last restore set aside, and set aside the present data instead.

    Raises `NotFound` when nothing was set aside, and the errors of `restore`.
    """
    with (
        archive.explain_failures("The data cannot be brought back"),
        _alone(settings.data_dir) as (folder, stage),
    ):
        present = _present_ring(folder, _machine_key(settings, folder))
        # A run that was killed before its commit has set aside the data that is still in use.
        earlier = [
            path for path in _asides(folder) if present is None or not (path / present.database_file).exists()
        ]
        if not earlier:
            raise NotFound(f"No previous data is kept in {folder}.")
        aside = max(earlier)
        shutil.copytree(aside / "keys", stage / "keys")
        ring, key = verifying.open_ring(settings, stage, master_key_file)
        for part in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(aside / f"{ring.database_file}{part}", stage / f"{archive.DATABASE}{part}")
        with verifying.verified_database(stage, ring) as copy:
            number = verifying.number_of_photos(copy)
        for name in verifying.PICTURES:
            _link_all(aside / name, stage / name)
        replaced = _switch(settings, stage, ring, key, now=now)
        shutil.rmtree(aside)
    return Restored(number, None, replaced, [])


def discard_previous(settings: Settings) -> int:
    """Delete the data that restores have set aside; returns the bytes freed. Raises `NotFound`."""
    asides = _asides(settings.data_dir)
    if not asides:
        raise NotFound(f"No previous data is kept in {settings.data_dir}.")
    freed = 0
    with archive.explain_failures("The previous data cannot be deleted"):
        for aside in asides:
            statuses = [path.stat() for path in verifying.files_in(aside)]
            # Files with further links are still in use.
            freed += sum(status.st_size for status in statuses if status.st_nlink == 1)
            shutil.rmtree(aside)
    return freed


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[tuple[Path, Path]]:
    """The data folder, locked against a service, and a temporary folder for its new state."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.closing(ServiceLock(folder)), archive.private_folder(folder, "restore") as stage:
        yield folder, stage


def _asides(folder: Path) -> list[Path]:
    return [path for path in folder.glob(f"{archive.ASIDE}*") if path.is_dir()]


# ------------------------------------------------------------------------------------------------- the switch


def _switch(
    settings: Settings, stage: Path, ring: crypto.KeyRing, key: bytes | None, *, now: datetime
) -> Path | None:
    """Make the state in `stage` the state of the data folder, sealed under the machine's master key, or under
    `key` where the machine has none.

    Returns where the previous state is kept; None when there was none.
    """
    folder = settings.data_dir
    for name in STATE:
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    with FolderLock(folder).exclusive():
        master_key = _machine_key(settings, folder)
        present = _present_ring(folder, master_key)
        generation = max(ring.generation, present.generation if present else 0) + 1
        ring = msgspec.structs.replace(
            ring, generation=generation, database_file=f"database/{secrets.token_hex(8)}.db"
        )
        (stage / "database").mkdir(mode=0o700)
        (stage / archive.DATABASE).rename(stage / ring.database_file)
        before = stage / "before"
        _set_aside(folder, before)
        try:
            for name in FILES:
                _link_all(stage / name, folder / name, replace=True)
            if key is not None and master_key is None:
                master_key = key
                # What exists here is a damaged key, of which `before` holds a copy.
                (folder / archive.MASTER_KEY).unlink(missing_ok=True)
                crypto.write_master_key(folder / archive.MASTER_KEY, key)
            os.sync()  # flushing 100,000 files one by one takes an hour on a memory card
            aside = _name_aside(folder, before, now)
        except BaseException:
            if before.exists():
                _keep_only(before, folder)
            raise
        crypto.KeyStore(folder / "keys", master_key).write(ring)
        _keep_only(stage, folder)
    return aside


def _machine_key(settings: Settings, folder: Path) -> bytes | None:
    """The master key under which this machine seals its key ring; None where there is none."""
    if not settings.encryption:
        return None
    if settings.master_key_file is not None:
        return crypto.read_master_key(settings.master_key_file)
    with contextlib.suppress(StartRefused):  # a damaged one is replaced by the key that opened the backup
        return crypto.read_master_key(folder / archive.MASTER_KEY)
    return None


def _present_ring(folder: Path, master_key: bytes | None) -> crypto.KeyRing | None:
    """The key ring of the present state; None when none opens."""
    with contextlib.suppress(StartRefused):
        return crypto.KeyStore(folder / "keys", master_key).read()
    return None


def _set_aside(folder: Path, before: Path) -> None:
    """Keep the present state in `before`."""
    before.mkdir(mode=0o700)
    for name in verifying.PICTURES:
        _link_all(folder / name, before / name)
    # The service writes to these files, so after a run that is killed here a link would show the changes.
    for name in ("database", "keys"):
        shutil.copytree(folder / name, before / name)


def _name_aside(folder: Path, before: Path, now: datetime) -> Path | None:
    """Rename the state that was set aside to its final name; None when it is empty."""
    if not any(True for name in FILES for _ in verifying.files_in(before / name)):
        return None
    aside = folder / f"{archive.ASIDE}{now:%Y%m%dT%H%M%S%f}"
    disk.durable_rename(before, aside)
    return aside


def _keep_only(state: Path, folder: Path) -> None:
    """Delete the files of the data folder that the state in `state` does not have."""
    for path in (path for name in FILES for path in verifying.files_in(folder / name)):
        if not (state / path.relative_to(folder)).exists():
            path.unlink()


def _link_all(source: Path, target: Path, *, replace: bool = False) -> None:
    """Link every file below `source` to its name below `target`, with `replace` also existing ones."""
    target.mkdir(mode=0o700, exist_ok=True)
    for path in verifying.files_in(source):
        name = target / path.relative_to(source)
        name.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            archive.link(path, name)
        except FileExistsError:
            if replace:
                # Named like a stored file, so that clean-up finds it if this run is killed.
                fresh = name.with_name(secrets.token_hex(16))
                archive.link(path, fresh)
                os.replace(fresh, name)
