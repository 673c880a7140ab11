"""Backups in a bucket: the members of a backup file (`upkeep/archive.py`), each as an object, so that a night
sends only what is new.

A bucket holds a prefix for every snapshot, `backups/<time>-<random>/`, with its database in parts, its key
ring and its list of checksums, and the stored files of all snapshots under the names that they have in the
data folder. Those names are random and never reused for other bytes, so what is there is not sent again, and
not even read again: its checksum stands in the list of the snapshot before. A run that is killed continues
with the files that it has sent.

The list of checksums is written last. Without it a snapshot does not exist, as without it a backup file is
never valid. Deleting a snapshot begins with its list. A stored file goes when no list names it any more, and
not before it is a day old.

Lists, names and objects are read in ascending order, beside each other, so that a large library needs no more
memory than a small one.
"""

import hashlib
import heapq
import itertools
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import msgspec

import disk
from buckets.s3 import Bucket, Listed
from errors import NotFound, StartRefused, Unreadable
from upkeep import archive, backup
from upkeep.progress import Progress

BACKUPS = "backups/"
NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")
PART = 16 * 1_048_576  # bytes of a part of the database, which are held in memory
CALLS = 4  # objects that are sent, fetched or deleted at once: each call waits for the line, not for us
ROUND = 64  # files that are looked at before their checksums are written down
LATEST = timedelta(days=1)  # age up to which an object that no list names may belong to a run in progress
LONGEST_LINE = archive.MEMBER
LARGEST_SUMS = 4 * 1024 * 1_048_576  # bytes of a list of checksums, for forty million files

NEEDS_KEYS = "Encryption is off, and only sealed data goes into a bucket. Set SNAPLORE_ENCRYPTION to true."


class Made(NamedTuple):
    name: str  # of the snapshot
    head: archive.Head
    sent: int  # files that were not in the bucket
    unreadable: list[str]  # paths below the data folder
    pruned: int  # earlier snapshots that were deleted


class Keep(NamedTuple):
    """How many snapshots stay: the last one of each of so many days and months that have one; 0: all."""

    daily: int = 0
    monthly: int = 0


class Sum(NamedTuple):
    """A line of a list of checksums."""

    name: str
    digest: str


def make(bucket: Bucket, progress: Progress, *, now: datetime, keep: Keep) -> Made:
    """Write a snapshot of the open data folder into the bucket, then delete those that `keep` does not name.
    Needs that no scope is open.

    Raises `StartRefused` without encryption, `BucketAway`, and `Unavailable` while another backup is made.
    Killed or failed, it leaves no snapshot, and files that the next run uses.
    """
    failure = "The backup cannot be written to the bucket"
    with archive.explain_failures(failure), backup.snapshot(progress, now=now) as taken:
        if not taken.head.encrypted:
            raise StartRefused(NEEDS_KEYS)
        present = snapshots(bucket)
        earlier = taken.private / "earlier"
        if present:
            _fetch_sums(bucket, present[-1], earlier)
        name = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        with (taken.private / archive.SUMS).open("w+b") as sums:
            unreadable, sent = _send(bucket, f"{BACKUPS}{name}/", taken, earlier, sums, progress)
        bucket.put_file(f"{BACKUPS}{name}/{archive.SUMS}", taken.private / archive.SUMS)
        pruned = _prune(bucket, keep, taken.private, progress, now=now) if any(keep) else 0
    return Made(name, taken.head, sent, unreadable, pruned)


def snapshots(bucket: Bucket) -> list[str]:
    """The names of the complete snapshots, the oldest first."""
    ending = f"/{archive.SUMS}"
    found = (
        listed.name.removeprefix(BACKUPS).removesuffix(ending)
        for listed in bucket.listed(BACKUPS)
        if listed.name.endswith(ending)
    )
    return sorted(name for name in found if NAME.fullmatch(name))


def chosen(bucket: Bucket, name: str | None) -> str:
    """The snapshot of this name, the newest one without a name. Raises `NotFound`."""
    present = snapshots(bucket)
    if not present:
        raise NotFound(f"There is no backup in {bucket}.")
    if name is not None and name not in present:
        raise NotFound(f"There is no backup {name} in {bucket}. The newest is {present[-1]}.")
    return name or present[-1]


def fetch(
    bucket: Bucket,
    name: str,
    stage: Path,
    accept: Callable[[str], archive.Head],
    leave: Callable[[Sum], bool] = lambda line: False,
) -> Iterator[str]:
    """Write every member of a snapshot below `stage`, but those that `leave` names, and yield its name. Each
    has the checksum of the list.

    `accept` is called with the name of the first member, once that is there, and returns what it says. Raises
    `Unreadable` for whatever the list names and the bucket does not have, or has changed, and when there is
    more than the first member says: a bucket must not fill the disk.
    """
    listed, base = stage / archive.SUMS, f"{BACKUPS}{name}/"
    _fetch_sums(bucket, name, listed)
    parts = sorted(
        part
        for part in bucket.listed(f"{base}{archive.DATABASE}.")
        if re.fullmatch(r"[0-9]{5}", part.name.removeprefix(f"{base}{archive.DATABASE}."))
    )

    left = [_SMALL]  # bytes that may still come

    def fetched(line: Sum) -> str:
        path = stage / line.name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            with path.open("xb") as file:
                if line.name == archive.DATABASE:
                    for part in parts:
                        bucket.get(part.name, file, most=min(PART, max(0, left[0] - file.tell())))
                    file.flush()
                    found = _digest_of(path)
                else:
                    most = archive.LARGEST.get(line.name, LARGEST_FILE)
                    place = line.name if archive.FILE.fullmatch(line.name) else base + line.name
                    found = bucket.get(place, file, most=min(most, max(0, left[0])))
        except FileExistsError:
            raise Unreadable(f"The backup is damaged: it contains {line.name} twice.") from None
        if found != line.digest:
            raise Unreadable(f"The backup is damaged: {line.name} does not match its checksum.")
        left[0] -= path.stat().st_size
        return line.name

    lines = sums_of(listed)
    first = next(lines, Sum("", ""))
    if first.name == archive.HEAD:
        fetched(first)
    head = accept(first.name)
    if head.bytes:  # an earlier version did not say
        left[0] = head.bytes + head.bytes // 100 + _SMALL
    else:
        left[0] = shutil.disk_usage(stage).free
    most = itertools.islice(lines, head.files + len(MEMBERS))
    for names in _at_once(fetched, (line for line in most if not leave(line))):
        yield from names
    if next(lines, None) is not None:
        raise Unreadable("The backup is damaged: it has more files than it says.")


def sums_of(path: Path) -> Iterator[Sum]:
    """The lines of a list of checksums, in their order. Raises `Unreadable` for what is none."""
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            match = _LINE.fullmatch(line)
            name = match[2].decode() if match else ""
            if match is None or (name not in MEMBERS and not archive.FILE.fullmatch(name)):
                raise Unreadable("The backup is damaged: its list of checksums cannot be read.")
            yield Sum(name, match[1].decode())


# -------------------------------------------------------------------------------------------------- sending

_LINE = re.compile(rb"([0-9a-f]{64})  ([0-9A-Za-z./]{1,200})\n")
MEMBERS = archive.MEMBERS - {archive.MASTER_KEY, archive.SUMS}
_SMALL = 80 * 1_048_576  # bytes, more than all members have that are no stored file and not the database
LARGEST_FILE = 256 * 1_048_576  # bytes of a stored file: an upload has at most 50 MB


def _send(
    bucket: Bucket,
    base: str,
    taken: backup.Snapshot,
    earlier: Path,
    sums: "_Written",
    progress: Progress,
) -> tuple[list[str], int]:
    """Send all members but the list of sums; returns the unreadable files, and how many were sent."""
    private, copy, head, _ = taken

    def small(name: str, content: bytes) -> None:
        bucket.put(base + name, content)
        sums.write(archive.sum_line(hashlib.sha256(content).hexdigest(), name))

    small(archive.HEAD, msgspec.json.format(msgspec.json.encode(head)) + b"\n")
    for name in archive.RINGS:
        small(name, (private / Path(name).name).read_bytes())
    sums.write(archive.sum_line(_send_database(bucket, base, private, progress), archive.DATABASE))
    originals = backup.Originals()
    unreadable: list[str] = []
    sent = done = 0

    def settled(file: archive.StoredFile) -> tuple[str, Sum | None, bool]:
        """The path of a file, its checksum if the bucket has it now, and whether it was sent for that."""
        place = private / Path(file.path).name
        size, there = disk.size_of(place), known[file.path][0]
        before = known[file.path][1]
        if there is not None and before is not None and size in (there.size, 0):
            return file.path, before, False
        with originals.at_hand(file, place):
            if not archive.FILE.fullmatch(file.path) or not file.is_intact(place):
                return file.path, None, False
            if there is not None and there.size == disk.size_of(place):
                return file.path, Sum(file.path, _digest_of(place)), False
            return file.path, Sum(file.path, bucket.put_file(file.path, place)), True

    objects, sums_before = archive.Ascending(stored_objects(bucket)), archive.Ascending(_earlier(earlier))
    known: dict[str, tuple[Listed | None, Sum | None]] = {}

    def looked_up() -> Iterator[archive.StoredFile]:
        for file in archive.stored_by_path(copy):
            known[file.path] = (objects.find(file.path), sums_before.find(file.path))
            yield file

    for results in _at_once(settled, looked_up()):
        for path, line, was_sent in results:
            if line is None:
                unreadable.append(path)
            else:
                sums.write(archive.sum_line(line.digest, path))
            sent += was_sent
            done += 1
            del known[path]
        progress("sending", done, max(done, head.files))
    small(archive.UNREADABLE, msgspec.json.encode(unreadable) + b"\n")
    return unreadable, sent


def _send_database(bucket: Bucket, base: str, private: Path, progress: Progress) -> str:
    """Send the copy of the database in parts. Returns its checksum."""
    digest, path = hashlib.sha256(), private / archive.DATABASE
    with path.open("rb") as file:
        for number in itertools.count():
            part = file.read(PART)
            if not part and number:
                break
            digest.update(part)
            bucket.put(f"{base}{archive.DATABASE}.{number:05}", part)
            progress("database", file.tell(), path.stat().st_size)
    return digest.hexdigest()


def stored_objects(bucket: Bucket) -> Iterator[Listed]:
    """The stored files in a bucket, ascending by name."""
    for folder in ("attachments/", "photos/"):
        yield from (listed for listed in bucket.listed(folder) if archive.FILE.fullmatch(listed.name))


def _earlier(path: Path) -> Iterator[Sum]:
    """The stored files of a list of checksums, if there is one."""
    if path.exists():
        yield from (line for line in sums_of(path) if archive.FILE.fullmatch(line.name))


def _fetch_sums(bucket: Bucket, name: str, path: Path) -> None:
    with path.open("wb") as file:
        bucket.get(f"{BACKUPS}{name}/{archive.SUMS}", file, most=LARGEST_SUMS)


def _digest_of(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -------------------------------------------------------------------------------------------------- deleting


def _prune(bucket: Bucket, keep: Keep, private: Path, progress: Progress, *, now: datetime) -> int:
    """Delete the snapshots that `keep` does not name, and what none names; returns how many snapshots."""
    present = snapshots(bucket)
    staying = _kept(present, keep)
    for name in present:
        if name not in staying:
            bucket.delete(f"{BACKUPS}{name}/{archive.SUMS}")  # first: what is left is no snapshot
    ended = [
        listed.name
        for listed in bucket.listed(BACKUPS)
        if (name := listed.name.split("/")[1]) not in staying
        and NAME.fullmatch(name)
        and (name in present or listed.modified < now - LATEST)
    ]
    lists = []
    for number, name in enumerate(sorted(staying)):
        path = private / f"staying-{number}"
        _fetch_sums(bucket, name, path)
        lists.append(_earlier(path))
    once = (next(same) for _, same in itertools.groupby(heapq.merge(*lists), key=lambda line: line.name))
    named = archive.Ascending(once)
    unnamed = (
        listed.name
        for listed in stored_objects(bucket)
        if named.find(listed.name) is None and listed.modified < now - LATEST
    )
    for done, _ in enumerate(_at_once(bucket.delete, itertools.chain(ended, unnamed)), start=1):
        progress("pruning", done, done)
    return len(present) - len(staying)


def _kept(present: list[str], keep: Keep) -> set[str]:
    """The names that stay: the last of each day and month, for so many days and months. The newest stays."""
    staying = set(present[-1:])
    for number, digits in ((keep.daily, 8), (keep.monthly, 6)):
        last = {name[:digits]: name for name in sorted(present)}  # a later one of the day replaces it
        staying |= {last[part] for part in sorted(last, reverse=True)[:number]}
    return staying


# ---------------------------------------------------------------------------------------------------- streams

Given = TypeVar("Given")
Result = TypeVar("Result")


class _Written(Protocol):
    def write(self, data: bytes, /) -> int: ...


def _at_once(work: Callable[[Given], Result], items: Iterable[Given]) -> Iterator[list[Result]]:
    """The results of `work`, in the order of `items`, round by round, a few at once."""
    remaining = iter(items)
    with ThreadPoolExecutor(CALLS) as pool:
        while some := list(itertools.islice(remaining, ROUND)):
            yield list(pool.map(work, some))
