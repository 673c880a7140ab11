"""Restoring a backup: everything is verified before anything is replaced, and the previous data is kept
aside.

The backup is unpacked, or fetched from a bucket, into `restore-<hex>`, a folder in the data folder. Nothing
in it is trusted: each member must have a known name and the checksum of the archive's list; the key ring must
open, the database must be intact, and every file that a row names must be present and authentic. A database
of an older Snaplore is migrated there as well.

The switch is committed by one step, as is every change of the data folder: replacing the key ring. Before it,
the present data is linked into `before-restore-<UTC>`, and the new files and the new database are put beside
the old ones; names are random and never reused for other bytes, so they cannot collide. Then the key ring is
replaced: it names the new database, whose rows name the new files. Afterwards the files that only the old
state named are deleted. A run that is killed before that step leaves the old state, with some files that no
row names; one that is killed after it leaves the new state. Both are complete, clean-up removes the rest, and
another restore takes the same steps.

No service may run meanwhile; cron jobs wait during the switch. The data folder need not open, or exist.

More than 550 lines, because a restore that is interrupted anywhere is ended or undone by the steps beside it.
"""

import contextlib
import math
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TypeVar, cast

import msgspec
import peewee
from playhouse.migrations import Runner
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
import photos
from buckets import away
from buckets.s3 import Bucket
from errors import BadInput, NotFound, StartRefused, StorageFull, Unreadable
from locks import FolderLock, ServiceLock
from models import Photo
from settings import Settings, variable
from upkeep import archive, offsite, rollback
from upkeep.progress import Progress

PICTURES = ("photos", "attachments")
FILES = ("database", *PICTURES)
STATE = ("keys", *FILES)  # the folders that make up a state of the data folder
DAMAGED = "The backup is damaged"


class Snapshot(NamedTuple):
    """A backup in a bucket."""

    bucket: Bucket
    name: str


class Restored(NamedTuple):
    photos: int
    made_at: datetime | None  # of the backup, UTC
    aside: Path | None  # where the previous data is kept
    unreadable: list[str]  # paths of files that were already lost or damaged when the backup was made


def restore(
    settings: Settings,
    source: Path | Snapshot,
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
        if isinstance(source, Snapshot):
            head = _fetch(source, stage, settings, elsewhere, progress)
        else:
            _check_room(folder, source.stat().st_size)
            head = _unpack(source, stage, settings, progress)
        ring, key = _open_ring(settings, stage, master_key_file)
        unreadable = _decoded((stage / archive.UNREADABLE).read_bytes(), list[str])
        with _verified_database(stage, ring) as copy:
            _leave_in_bucket(elsewhere, copy)
            _verify_files(stage, copy, {*unreadable, *elsewhere}, head.files, progress)
            _bring_home(stage, copy)
            ring = rollback.of_one_time(copy, ring)
            number = _number_of_photos(copy)
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
        ring, key = _open_ring(settings, stage, master_key_file)
        for part in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(aside / f"{ring.database_file}{part}", stage / f"{archive.DATABASE}{part}")
        with _verified_database(stage, ring) as copy:
            number = _number_of_photos(copy)
        for name in PICTURES:
            _link_all(aside / name, stage / name)
        replaced = _switch(settings, stage, ring, key, now=now)
        shutil.rmtree(aside)
    return Restored(number, None, replaced, [])


def discard_previous(settings: Settings) -> int:
    """Delete the data that restores have set aside; returns the bytes freed. Raises `NotFound` when there is
    none.
    """
    asides = _asides(settings.data_dir)
    if not asides:
        raise NotFound(f"No previous data is kept in {settings.data_dir}.")
    freed = 0
    with archive.explain_failures("The previous data cannot be deleted"):
        for aside in asides:
            statuses = [path.stat() for path in _files_in(aside)]
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


def _check_room(folder: Path, size: int) -> None:
    """Raise `StorageFull` if the unpacked backup and a copy of the present database do not fit."""
    size += sum(path.stat().st_size for path in _files_in(folder / "database"))
    if shutil.disk_usage(folder).free < size:
        raise StorageFull(f"Restoring needs {math.ceil(size / 1_048_576)} MB in {folder}, and less is free.")


# -------------------------------------------------------------------------------------------------- verifying


def _unpack(source: Path, stage: Path, settings: Settings, progress: Progress) -> archive.Head:
    """Unpack every member into `stage` and compare the checksums with the list. Raises `BadInput`,
    `StartRefused`, `Unreadable`.
    """
    for name in ("keys", *PICTURES):
        (stage / name).mkdir(mode=0o700)
    head, size = None, source.stat().st_size
    with source.open("rb") as file, (stage / "computed").open("wb") as sums:
        try:
            with tarfile.open(fileobj=file, mode="r|", tarinfo=PlainMember) as tar:
                for member in _members(tar):
                    digest = _extract(tar, member, stage)
                    if head is None:
                        head = _accepted_head(member.name, stage, settings)
                    if member.name != archive.SUMS:
                        sums.write(archive.sum_line(digest, member.name))
                    progress("unpacking", file.tell(), size)
        # For bytes that are no header, tarfile also raises errors that are not its own.
        except (tarfile.TarError, ValueError, OverflowError, EOFError) as problem:
            if head is None:
                raise BadInput(f"{source} is not a backup of Snaplore.") from problem
            raise Unreadable(f"{DAMAGED}: the archive is truncated or unreadable.") from problem
    if head is None:
        raise BadInput(f"{source} is not a backup of Snaplore.")
    _compare(stage / "computed", stage / archive.SUMS)
    _check_complete(stage)
    return head


def _fetch(
    source: Snapshot, stage: Path, settings: Settings, elsewhere: dict[str, int], progress: Progress
) -> archive.Head:
    """As `_unpack`, from a bucket, without the originals that are in the bucket of `SNAPLORE_ORIGINALS`: they
    are added to `elsewhere`, path -> size. A disk that had no room for them has none now.
    """
    place = away.bucket(settings)
    present = dict(_objects_of(place)) if place is not None else {}

    def leave(line: offsite.Sum) -> bool:
        if line.name in present:
            elsewhere[line.name] = present[line.name]
        return line.name in elsewhere

    for name in ("keys", *PICTURES):
        (stage / name).mkdir(mode=0o700)
    accepted: list[archive.Head] = []

    def accept(name: str) -> archive.Head:
        accepted.append(_accepted_head(name, stage, settings))
        _check_room(settings.data_dir, max(0, accepted[0].bytes - sum(present.values())))
        return accepted[0]

    members = offsite.fetch(source.bucket, source.name, stage, accept, leave)
    for done, _ in enumerate(members, start=1):
        if done % archive.REPORT == 0 or done >= accepted[0].files:
            progress("fetching", done, max(done, accepted[0].files))
    _check_complete(stage)
    return accepted[0]


def _objects_of(place: Bucket) -> Iterator[tuple[str, int]]:
    with contextlib.closing(place):
        for listed in place.listed("photos/"):
            if archive.FILE.fullmatch(listed.name):
                yield listed.name, listed.size


def _check_complete(stage: Path) -> None:
    if absent := [name for name in archive.MEMBERS - {archive.MASTER_KEY} if not (stage / name).exists()]:
        raise Unreadable(f"{DAMAGED}: {absent[0]} is missing.")


class PlainMember(tarfile.TarInfo):
    """A tar header that must be that of a regular file.

    Any other type is refused before tarfile interprets it. Extended headers are read into memory whatever
    size they claim, and each one is followed by recursion into the next.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header of 512 bytes. Raises `Unreadable` for anything but a regular file."""
        member = super().frombuf(buf, encoding, errors)
        if member.type != tarfile.REGTYPE or member.size < 0:
            raise Unreadable(f"{DAMAGED}: {_shown(member.name)} is not a plain file.")
        return member


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members: regular files with known names, the list of checksums last. Raises `Unreadable`."""
    last = ""
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # an entry per file would stay in memory
        if member.name not in archive.MEMBERS and not archive.FILE.fullmatch(member.name):
            raise Unreadable(f"{DAMAGED}: {_shown(member.name)} does not belong in it.")
        if member.size > archive.LARGEST.get(member.name, member.size):
            raise Unreadable(f"{DAMAGED}: {_shown(member.name)} is too large.")
        if last == archive.SUMS:
            raise Unreadable(f"{DAMAGED}: {_shown(member.name)} comes after the list of checksums.")
        last = member.name
        yield member


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, stage: Path) -> str:
    """Write a member below `stage`; returns its checksum. Raises `Unreadable` for a second member of that
    name.
    """
    path = stage / member.name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    content = archive.Hashing(cast(BinaryIO, tar.extractfile(member)))
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while block := content.read(archive.BLOCK):
                file.write(block)
    except FileExistsError:
        raise Unreadable(f"{DAMAGED}: it contains {member.name} twice.") from None
    return content.digest.hexdigest()


def _accepted_head(name: str, stage: Path, settings: Settings) -> archive.Head:
    """Check the first member at once, so that a wrong file is refused now and not after an hour."""
    if name != archive.HEAD:
        raise BadInput("The file is not a backup of Snaplore.")
    content = (stage / archive.HEAD).read_bytes()
    if _decoded(content, _Format).format > archive.FORMAT:
        raise StartRefused("The backup was made by a newer Snaplore. Install that version or a later one.")
    head = _decoded(content, archive.Head)
    _check_encryption(settings, encrypted=head.encrypted)
    return head


def _check_encryption(settings: Settings, *, encrypted: bool) -> None:
    if encrypted != settings.encryption:
        state, value = ("encrypted", "true") if encrypted else ("not encrypted", "false")
        raise StartRefused(
            f"The data to restore is {state}: set SNAPLORE_ENCRYPTION to {value}. To change it later, run "
            "`./snaplore keys apply`."
        )


Decoded = TypeVar("Decoded")


class _Format(msgspec.Struct):
    format: int


def _decoded(content: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable(f"{DAMAGED}: its description cannot be read.") from None


def _compare(computed: Path, listed: Path) -> None:
    """Compare the computed checksums with the list, which names all members in their order. Raises
    `Unreadable` for the first difference.
    """
    if not listed.exists():
        raise Unreadable(f"{DAMAGED}: its list of checksums is missing.")
    with computed.open("rb") as found, listed.open("rb") as expected:
        while True:
            computed_line, listed_line = found.readline(archive.MEMBER), expected.readline(archive.MEMBER)
            if computed_line != listed_line:
                digest, _, name = computed_line.strip().partition(b"  ")
                listed_name = listed_line.strip().partition(b"  ")[2]
                if name == listed_name and digest:
                    raise Unreadable(f"{DAMAGED}: {_shown(name.decode())} does not match its checksum.")
                shown = _shown((listed_name or name).decode(errors="replace"))
                raise Unreadable(f"{DAMAGED}: {shown} is missing, or a file was added.")
            if not computed_line:
                return


def _shown(name: str) -> str:
    """An untrusted name, made safe to print."""
    return ascii(name[:100])


def _open_ring(
    settings: Settings, stage: Path, master_key_file: Path | None
) -> tuple[crypto.KeyRing, bytes | None]:
    """The key ring of the new state, and the master key that opens it. Raises `StartRefused` if none does."""
    _check_encryption(settings, encrypted=not crypto.KeyStore(stage / "keys", None).is_plain())
    keys = _keys(settings, stage, master_key_file) if settings.encryption else [None]
    for key in keys:
        store = crypto.KeyStore(stage / "keys", key)
        if store.opens():
            return store.read(), key
    raise StartRefused(
        "The master key does not open this data: the data was sealed under another one."
        if master_key_file
        else "No master key opens this data: give the one that it was sealed under with --master-key-file."
    )


def _keys(settings: Settings, stage: Path, master_key_file: Path | None) -> Iterator[bytes]:
    """The master keys to try: only the given one, or else the machine's and the backup's."""
    if master_key_file is not None:
        yield crypto.read_master_key(master_key_file)
        return
    for path in (
        settings.master_key_file or settings.data_dir / archive.MASTER_KEY,
        stage / archive.MASTER_KEY,
    ):
        with contextlib.suppress(StartRefused):
            yield crypto.read_master_key(path)


@contextlib.contextmanager
def _verified_database(stage: Path, ring: crypto.KeyRing) -> Iterator[SqlCipherDatabase]:
    """A connection to the new database in `stage`, which is checked and migrated to the present schema.
    Raises `Unreadable`, `StartRefused`.
    """
    if not (stage / archive.DATABASE).exists():
        raise Unreadable("The database is missing.")
    with archive.opened(stage / archive.DATABASE, ring, database.PRAGMAS) as copy:
        checks = ("integrity_check", "cipher_integrity_check") if ring.database_key else ("integrity_check",)
        answers = [row[0] for check in checks for row in copy.execute_sql(f"PRAGMA {check}").fetchall()]
        if answers != ["ok"]:
            raise Unreadable(f"The database is damaged: {answers[0]}.")
        migrations = Runner(copy, str(database.MIGRATIONS))
        if unknown := [row.name for row in migrations.status() if row.path is None]:
            raise StartRefused(
                f"The data was made by a newer Snaplore (migration {unknown[-1]}). Install that version or a "
                "later one."
            )
        migrations.up()
        yield copy


def _verify_files(
    stage: Path, copy: SqlCipherDatabase, unreadable: set[str], total: int, progress: Progress
) -> None:
    """Check that every file that a row names is present and authentic, except those that were unreadable when
    the backup was made, and that there is no other file. Raises `Unreadable`.
    """
    present = 0
    for number, stored in enumerate(archive.stored_files(copy), start=1):
        if stored.path not in unreadable:
            if not archive.FILE.fullmatch(stored.path) or not stored.is_intact(stage / stored.path):
                raise Unreadable(f"{DAMAGED}: {_shown(stored.path)} is missing or not authentic.")
            present += 1
        if number % archive.REPORT == 0 or number == total:
            progress("verifying", number, total)
    if present != sum(1 for name in PICTURES for _ in _files_in(stage / name)):
        raise Unreadable(f"{DAMAGED}: it contains files that no row names.")


def _leave_in_bucket(elsewhere: dict[str, int], copy: SqlCipherDatabase) -> None:
    """Note which originals are in the bucket. Raises `Unreadable` if one there has another size."""
    with copy.atomic():
        for path, size in elsewhere.items():
            row = Photo.select().where(Photo.original_path == path).get_or_none(copy)
            if row is None or crypto.sealed_size(row.file_size) != size:
                raise Unreadable(
                    f"{_shown(path)} in the bucket of {variable('originals')} is not the one of this backup. "
                    "Unset that to restore every original from the backup."
                )
            photos.set_away(row, size, copy)


def _bring_home(stage: Path, copy: SqlCipherDatabase) -> None:
    """Note that the originals that were in a bucket and are in the backup are here."""
    there = Photo.select(Photo.id, Photo.original_path).where(Photo.away > away.HERE)
    with copy.atomic():
        for photo_id, path in list(there.tuples().iterator(copy)):
            if (stage / path).exists():
                photos.set_here(photo_id, copy)


def _number_of_photos(copy: SqlCipherDatabase) -> int:
    number: int = Photo.select(peewee.fn.COUNT(Photo.id)).scalar(copy)
    return number


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
    """The master key under which this machine seals its key ring; None without encryption, or where there is
    none yet.
    """
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
    for name in PICTURES:
        _link_all(folder / name, before / name)
    # The service writes to these files, so after a run that is killed here a link would show the changes.
    for name in ("database", "keys"):
        shutil.copytree(folder / name, before / name)


def _name_aside(folder: Path, before: Path, now: datetime) -> Path | None:
    """Rename the state that was set aside to its final name; None when it is empty."""
    if not any(True for name in FILES for _ in _files_in(before / name)):
        return None
    aside = folder / f"{archive.ASIDE}{now:%Y%m%dT%H%M%S%f}"
    crypto.durable_rename(before, aside)
    return aside


def _keep_only(state: Path, folder: Path) -> None:
    """Delete the files of the data folder that the state in `state` does not have."""
    for path in (path for name in FILES for path in _files_in(folder / name)):
        if not (state / path.relative_to(folder)).exists():
            path.unlink()


def _link_all(source: Path, target: Path, *, replace: bool = False) -> None:
    """Link every file below `source` to the same name below `target`. With `replace`, replace existing files,
    which may be damaged.
    """
    target.mkdir(mode=0o700, exist_ok=True)
    for path in _files_in(source):
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


def _files_in(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)
