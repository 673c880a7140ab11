"""Verifying a backup before it is restored: it is unpacked, or fetched from a bucket, into a folder, and
nothing in it is trusted.

Each member must have a known name and the checksum of the archive's list; the key ring must open, the
database must be intact, and every file that a row names must be present and authentic. A database of an older
Snaplore is migrated there as well.
"""

import contextlib
import math
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self, TypeVar, cast

import msgspec
import peewee
from playhouse.sqlcipher_ext import SqlCipherDatabase

import crypto
import database
import disk
import photos
from buckets import away
from buckets.s3 import Bucket
from errors import BadInput, StartRefused, StorageFull, Unreadable
from models import Photo
from settings import Settings, variable
from upkeep import archive, offsite
from upkeep.progress import Progress

PICTURES = ("photos", "attachments")
DAMAGED = "The backup is damaged"


class Snapshot(NamedTuple):
    """A backup in a bucket."""

    bucket: Bucket
    name: str


def unpack(source: Path, stage: Path, settings: Settings, progress: Progress) -> archive.Head:
    """Unpack every member into `stage` and check its sum. Raises `BadInput`, `StartRefused`, `Unreadable`."""
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


def fetch(
    source: Snapshot, stage: Path, settings: Settings, elsewhere: dict[str, int], progress: Progress
) -> archive.Head:
    """As `unpack`, from a bucket, without the originals that are in the bucket of `SNAPLORE_ORIGINALS`: they
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
        check_room(settings.data_dir, max(0, accepted[0].bytes - sum(present.values())))
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
    """Write a member below `stage`; returns its checksum. Raises `Unreadable` when it is there already."""
    path = stage / member.name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    content = archive.Hashing(cast(BinaryIO, tar.extractfile(member)))
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            shutil.copyfileobj(content, file, archive.BLOCK)
    except FileExistsError:
        raise Unreadable(f"{DAMAGED}: it contains {member.name} twice.") from None
    return content.digest.hexdigest()


def _accepted_head(name: str, stage: Path, settings: Settings) -> archive.Head:
    """Check the first member at once, so that a wrong file is refused now and not after an hour."""
    if name != archive.HEAD:
        raise BadInput("The file is not a backup of Snaplore.")
    content = (stage / archive.HEAD).read_bytes()
    if decoded(content, _Format).format > archive.FORMAT:
        raise StartRefused("The backup was made by a newer Snaplore. Install that version or a later one.")
    head = decoded(content, archive.Head)
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


def decoded(content: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Unreadable(f"{DAMAGED}: its description cannot be read.") from None


def _compare(computed: Path, listed: Path) -> None:
    """Compare the checksums with the list, in its order. Raises `Unreadable` at the first difference."""
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


def open_ring(
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
def verified_database(stage: Path, ring: crypto.KeyRing) -> Iterator[SqlCipherDatabase]:
    """A connection to the checked and migrated database in `stage`. Raises `Unreadable`, `StartRefused`."""
    if not (stage / archive.DATABASE).exists():
        raise Unreadable("The database is missing.")
    with archive.opened(stage / archive.DATABASE, ring, database.PRAGMAS) as copy:
        checks = ("integrity_check", "cipher_integrity_check") if ring.database_key else ("integrity_check",)
        answers = [row[0] for check in checks for row in copy.execute_sql(f"PRAGMA {check}").fetchall()]
        if answers != ["ok"]:
            raise Unreadable(f"The database is damaged: {answers[0]}.")
        migrations = database.migrations_of(copy)
        if unknown := [row.name for row in migrations.status() if row.path is None]:
            raise StartRefused(
                f"The data was made by a newer Snaplore (migration {unknown[-1]}). Install that version or a "
                "later one."
            )
        migrations.up()
        yield copy


def verify_files(
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
    if present != sum(1 for name in PICTURES for _ in files_in(stage / name)):
        raise Unreadable(f"{DAMAGED}: it contains files that no row names.")


def leave_in_bucket(elsewhere: dict[str, int], copy: SqlCipherDatabase) -> None:
    """Note which originals are in the bucket. Raises `Unreadable` if one there has another size."""
    with copy.atomic():
        for path, size in elsewhere.items():
            row = Photo.select().where(Photo.original_path == path).get_or_none(copy)
            if row is None or disk.sealed_size(row.file_size) != size:
                raise Unreadable(
                    f"{_shown(path)} in the bucket of {variable('originals')} is not the one of this backup. "
                    "Unset that to restore every original from the backup."
                )
            photos.set_away(row, size, copy)


def bring_home(stage: Path, copy: SqlCipherDatabase) -> None:
    """Note that the originals that were in a bucket and are in the backup are here."""
    there = Photo.select(Photo.id, Photo.original_path).where(Photo.away > away.HERE)
    with copy.atomic():
        for photo_id, path in list(there.tuples().iterator(copy)):
            if (stage / path).exists():
                photos.set_here(photo_id, copy)


def number_of_photos(copy: SqlCipherDatabase) -> int:
    number: int = Photo.select(peewee.fn.COUNT(Photo.id)).scalar(copy)
    return number


def check_room(folder: Path, size: int) -> None:
    """Raise `StorageFull` if the unpacked backup and a copy of the present database do not fit."""
    size += sum(path.stat().st_size for path in files_in(folder / "database"))
    if shutil.disk_usage(folder).free < size:
        raise StorageFull(f"Restoring needs {math.ceil(size / 1_048_576)} MB in {folder}, and less is free.")


def files_in(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)
