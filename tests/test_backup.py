"""Backup and restore: a snapshot of a busy service is restored completely, and nothing else ever replaces the
data.
"""

import contextlib
import dataclasses
import errno
import hashlib
import io
import os
import random
import shutil
import sys
import tarfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import crypto
import database
import disk
import models
import photos
from app import create_app
from assistant import turns
from clock import utc_now
from database import db
from errors import (
    BadInput,
    Conflict,
    NotFound,
    SnaploreError,
    StartRefused,
    StorageFull,
    Unavailable,
    Unreadable,
)
from locks import ServiceLock, named_lock
from models import Photo
from settings import Settings
from tests.support import kills
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import Clients, Service, eventually
from upkeep import archive, backup, check, findings, resealing, restore, rotation, verifying
from upkeep.progress import silent

SECRETS = ("quicksilver smuggler", "divorce-papers", "Zanzibar departure", "sk-of-the-model")


def live(settings, *names):
    """Use the data folder of `settings`: a photo of each name, and a conversation with a picture."""
    app = create_app(settings)
    client = Client(app)
    for name in names:
        assert (
            client.upload(
                draw(name, size=(90, 160)), f"{SECRETS[1]}-{name}.png", device_id="phone"
            ).status_code
            == 200
        )
    client.put(
        "/api/config/llm",
        json={
            "provider": "openai",
            "base_url": "https://example.com/v1",
            "model": "m",
            "api_key": SECRETS[3],
        },
    )
    with database.scope():
        attached = draw("attached", size=(60, 60), format="JPEG")
        turns.begin_turn(None, SECRETS[2], attached, device_id="phone", now=utc_now())
        models.Analysis.update(visible_text=SECRETS[0]).execute()
    database.close_store()


def contents(settings):
    """The decrypted content of the data folder: rows by table, pictures by path. Opens the folder as a start
    does.
    """
    database.open_store(settings)
    held = {}
    with database.scope():
        tables = db.execute_sql(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (table,) in tables:
            held[table] = sorted(db.execute_sql(f'SELECT * FROM "{table}"').fetchall(), key=repr)
        for file in archive.stored_files(db):
            with disk.open_sealed(settings.data_dir / file.path, file.key) as content:
                held[file.path] = content.read()
    database.close_connections()
    return held


def listing(folder):
    """Every file of a data folder with its bytes, except lock files."""
    locks = {"lock", "turnstile", "service"}
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in locks
    }


def pictures(settings):
    return [
        path
        for name in verifying.PICTURES
        for path in (settings.data_dir / name).rglob("*")
        if path.is_file()
    ]


class Kept(NamedTuple):
    """A data folder, its backup, and the content of both."""

    settings: Settings
    file: Path
    contents: dict


def kept_in(folder, *names, **settings):
    kept = Settings(data_dir=folder / "data", language="en", **settings)
    live(kept, *names)
    backup.make(folder / "backup.tar", silent, now=utc_now())
    database.close_connections()
    return Kept(kept, folder / "backup.tar", contents(kept))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return kept_in(tmp_path_factory.mktemp("kept"), "first", "second")


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return kept_in(tmp_path_factory.mktemp("other"), "third")


@pytest.fixture
def here(other, tmp_path):
    """The settings of a data folder with other data, under a master key of its own."""
    shutil.copytree(other.settings.data_dir, tmp_path / "data")
    return dataclasses.replace(other.settings, data_dir=tmp_path / "data")


def key_of(kept):
    return kept.settings.data_dir / "keys" / "master.key"


def restored(settings, kept, file=None, **options):
    return restore.restore(
        settings, file or kept.file, silent, now=utc_now(), **{"master_key_file": key_of(kept), **options}
    )


@pytest.fixture(autouse=True)
def closed():
    yield
    database.close_connections()


# --------------------------------------------------------------------------------------- there and back again


def test_a_new_machine_gets_everything_back_with_the_key_of_the_old_one(kept, tmp_path):
    fresh = dataclasses.replace(kept.settings, data_dir=tmp_path / "new" / "data")
    outcome = restored(fresh, kept)

    assert outcome == restore.Restored(2, outcome.made_at, None, [])
    assert contents(fresh) == kept.contents
    assert crypto.read_master_key(key_of(kept)) == crypto.read_master_key(
        fresh.data_dir / "keys" / "master.key"
    )
    assert {oct(path.stat().st_mode & 0o077) for path in fresh.data_dir.rglob("*")} == {"0o0"}, (
        "nobody else may read it"
    )
    assert {path.name for path in fresh.data_dir.iterdir() if path.is_dir()} >= set(restore.STATE)
    assert not list(fresh.data_dir.glob("restore-*"))


def test_existing_data_is_replaced_kept_aside_and_brought_back(kept, here, other):
    before = contents(here)
    ring = database.store().ring
    outcome = restored(here, kept)

    assert contents(here) == kept.contents
    assert database.store().ring.generation > ring.generation
    assert len(pictures(here)) == 5, "nothing of the earlier state is left beside the new one"
    assert [path.name for path in (here.data_dir / "database").glob("*.db")] == [
        Path(database.store().ring.database_file).name
    ]
    assert {path.relative_to(outcome.aside) for path in outcome.aside.rglob("*.db")} == {
        Path(ring.database_file)
    }

    again = restore.undo(here, now=utc_now())
    assert contents(here) == before
    assert not outcome.aside.exists()
    assert again.aside.exists()
    restore.undo(here, now=utc_now())
    assert contents(here) == kept.contents


def test_previous_data_is_deleted_on_request(kept, here):
    outcome = restored(here, kept)
    assert restore.discard_previous(here) > 3_000
    assert not outcome.aside.exists()
    assert contents(here) == kept.contents
    for verb in (restore.discard_previous, lambda settings: restore.undo(settings, now=utc_now())):
        with pytest.raises(NotFound, match="No previous data"):
            verb(here)


def test_restoring_the_same_backup_again_repairs_later_damage(kept, tmp_path):
    fresh = dataclasses.replace(kept.settings, data_dir=tmp_path / "data")
    restored(fresh, kept)
    damaged, lost, *_ = pictures(fresh)
    damaged.write_bytes(b"damaged")
    lost.unlink()
    restored(fresh, kept, master_key_file=None)
    assert contents(fresh) == kept.contents


@pytest.mark.parametrize("lost", ["keys", "database", "photos", "keys/ring.1", "keys/master.key"])
def test_a_folder_that_no_longer_opens_is_restored_and_its_remains_are_kept(kept, here, lost):
    path = here.data_dir / lost
    shutil.rmtree(path) if path.is_dir() else path.write_bytes(b"damaged")
    left = listing(here.data_dir)
    outcome = restored(here, kept)
    assert contents(here) == kept.contents
    assert listing(outcome.aside) == left


def test_restoring_works_without_encryption(tmp_path):
    plain = kept_in(tmp_path, "first", "second", encryption=False)
    fresh = dataclasses.replace(plain.settings, data_dir=tmp_path / "new")
    restored(fresh, plain, master_key_file=None)
    assert contents(fresh) == plain.contents
    for path in pictures(fresh)[:1]:
        path.write_bytes(b"changed")
    restored(fresh, plain, master_key_file=None)
    assert contents(fresh) == plain.contents


def test_an_older_schema_is_migrated_and_a_newer_one_is_refused(kept, here, tmp_path, monkeypatch):
    newer = tmp_path / "migrations"
    shutil.copytree(database.MIGRATIONS, newer)
    (newer / "9999_more.py").write_text(
        'def up(migrator, db):\n    db.execute_sql("CREATE TABLE more (id INTEGER)")\n'
    )
    monkeypatch.setattr(database, "MIGRATIONS", newer)
    restored(here, kept)
    assert contents(here)["more"] == []
    database.open_store(here)
    backup.make(tmp_path / "newer.tar", silent, now=utc_now())
    database.close_connections()

    monkeypatch.undo()
    fresh = dataclasses.replace(here, data_dir=tmp_path / "fresh")
    with pytest.raises(StartRefused, match="made by a newer Snaplore"):
        restore.restore(
            fresh,
            tmp_path / "newer.tar",
            silent,
            now=utc_now(),
            master_key_file=here.data_dir / "keys" / "master.key",
        )


# ------------------------------------------------------------------------------------------------------- keys


def test_a_missing_or_wrong_key_is_refused_and_nothing_is_changed(kept, here, other):
    before = listing(here.data_dir)
    with pytest.raises(StartRefused, match="No master key opens this data: give"):
        restored(here, kept, master_key_file=None)
    with pytest.raises(StartRefused, match="does not open this data"):
        restored(here, kept, master_key_file=key_of(other))
    assert listing(here.data_dir) == before


def test_the_key_in_the_backup_opens_it_and_is_installed_only_if_there_is_none(kept, here, tmp_path):
    database.open_store(kept.settings)
    backup.make(tmp_path / "with-key.tar", silent, now=utc_now(), with_master_key=True)
    database.close_connections()
    fresh = dataclasses.replace(kept.settings, data_dir=tmp_path / "fresh")
    own = (here.data_dir / "keys" / "master.key").read_bytes()
    for settings in (fresh, here):
        restored(settings, kept, tmp_path / "with-key.tar", master_key_file=None)
        assert contents(settings) == kept.contents
    assert (here.data_dir / "keys" / "master.key").read_bytes() == own
    assert (fresh.data_dir / "keys" / "master.key").read_bytes() == key_of(kept).read_bytes()


def test_the_ring_is_sealed_under_the_key_file_of_the_machine_which_must_exist(kept, tmp_path):
    elsewhere = tmp_path / "credential"
    fresh = dataclasses.replace(kept.settings, data_dir=tmp_path / "data", master_key_file=elsewhere)
    with pytest.raises(StartRefused, match="is not there"):
        restored(fresh, kept)
    elsewhere.write_text("ab" * 32)
    restored(fresh, kept)
    assert contents(fresh) == kept.contents
    assert not (fresh.data_dir / "keys" / "master.key").exists()


def test_another_encryption_setting_is_refused_with_the_next_step(kept, here, tmp_path):
    before = listing(here.data_dir)
    with pytest.raises(StartRefused, match="is encrypted: set SNAPLORE_ENCRYPTION to true"):
        restored(dataclasses.replace(here, encryption=False), kept)
    assert listing(here.data_dir) == before


def test_data_that_was_set_aside_before_its_keys_changed_is_brought_back(kept, here, other, tmp_path):
    settings = dataclasses.replace(here, master_key_file=tmp_path / "credential")
    (here.data_dir / "keys" / "master.key").rename(settings.master_key_file)
    restored(settings, kept)
    settings.master_key_file.rename(tmp_path / "old")
    settings.master_key_file.write_text("cd" * 32)
    with pytest.raises(StartRefused, match="No master key opens this data"):
        restore.undo(settings, now=utc_now())
    with pytest.raises(StartRefused, match="is encrypted: set SNAPLORE_ENCRYPTION to true"):
        restore.undo(dataclasses.replace(settings, encryption=False), now=utc_now())
    restore.undo(settings, now=utc_now(), master_key_file=tmp_path / "old")
    assert contents(settings) == other.contents


# --------------------------------------------------------------------------------------------------- the file


def test_the_file_can_be_unpacked_and_checked_without_snaplore(kept, tmp_path):
    assert kept.file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(kept.file) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    assert names[:4] == ["backup.json", "keys/ring.1", "keys/ring.2", "database.db"]
    assert names[-2:] == ["unreadable.json", "SHA256SUMS"]
    assert len(names) == 6 + 5
    for line in (tmp_path / "SHA256SUMS").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest
        names.remove(name)
    assert names == ["SHA256SUMS"]
    head = msgspec.json.decode((tmp_path / "backup.json").read_bytes())
    assert (head["format"], head["encrypted"], head["photos"], head["files"]) == (1, True, 2, 5)


def test_with_encryption_no_content_is_readable_in_the_file(kept, tmp_path):
    needles = [
        *(secret.encode() for secret in SECRETS),
        b"\x89PNG\r\n",
        b"JFIF",
        b"SQLite format 3",
        crypto.read_master_key(key_of(kept)),
    ]
    needles += [needles[-1].hex().encode()]
    content = kept.file.read_bytes()
    assert not [needle for needle in needles if needle in content]

    plain = kept_in(tmp_path, "first", encryption=False).file.read_bytes()
    assert all(needle in plain for needle in needles[:-2]), "the proof that they would have been found"


def test_lost_and_damaged_files_are_left_out_and_listed_and_the_rest_is_restored(here, other, tmp_path):
    damaged, lost, *_ = sorted(pictures(here))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    lost.unlink()
    names = {str(path.relative_to(here.data_dir)) for path in (damaged, lost)}
    database.open_store(here)
    made = backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    database.close_connections()
    assert set(made.unreadable) == names

    fresh = dataclasses.replace(here, data_dir=tmp_path / "fresh")
    outcome = restored(fresh, other, tmp_path / "backup.tar")
    assert set(outcome.unreadable) == names
    assert len(pictures(fresh)) == 1


# ---------------------------------------------------------------------------------------------------- damages


def taken_apart(file):
    with tarfile.open(file) as archive:
        return [(member, archive.extractfile(member).read()) for member in archive]


def put_together(members, target, *, summed=False):
    """A backup of these members; with `summed`, the list of checksums matches them, as an attacker would make
    it.
    """
    if summed:
        lines = [
            f"{hashlib.sha256(content).hexdigest()}  {member.name}\n"
            for member, content in members
            if member.name != "SHA256SUMS"
        ]
        members = [
            *((m, c) for m, c in members if m.name != "SHA256SUMS"),
            (tarfile.TarInfo("SHA256SUMS"), "".join(lines).encode()),
        ]
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return target


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def named(name, type=tarfile.REGTYPE, linkname=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = type, linkname
    return member


KINDS = {
    "head": lambda name: name == "backup.json",
    "ring": lambda name: name == "keys/ring.1",
    "other ring": lambda name: name == "keys/ring.2",
    "database": lambda name: name == "database.db",
    "picture": lambda name: name.startswith("photos/") and not name.endswith("thumbnail"),
    "thumbnail": lambda name: name.endswith("thumbnail"),
    "attachment": lambda name: name.startswith("attachments/"),
    "unreadable": lambda name: name == "unreadable.json",
    "list": lambda name: name == "SHA256SUMS",
}


def refuses(here, kept, file, sentence, problem=Unreadable):
    before = listing(here.data_dir)
    with pytest.raises(problem, match=sentence):
        restored(here, kept, file)
    assert listing(here.data_dir) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("harm", ["flipped", "removed", "repeated", "emptied"])
def test_a_changed_member_is_refused(kept, here, tmp_path, kind, harm):
    members = taken_apart(kept.file)
    place = next(number for number, (member, _) in enumerate(members) if KINDS[kind](member.name))
    member, content = members[place]
    members[place : place + 1] = {
        "flipped": [(member, flipped(content))], "removed": [],
        "repeated": [(member, content)] * 2, "emptied": [(member, b"")],
    }[harm]  # fmt: skip
    refuses(
        here,
        kept,
        put_together(members, tmp_path / "harmed.tar"),
        "damaged|not a backup of Snaplore",
        (Unreadable, BadInput),
    )


@pytest.mark.parametrize("kind", ["database", "picture", "thumbnail", "attachment"])
@pytest.mark.parametrize("harm", ["flipped", "removed", "emptied", "exchanged"])
def test_a_member_that_is_not_authentic_is_refused_although_its_checksum_matches(
    kept, here, tmp_path, kind, harm
):
    members = taken_apart(kept.file)
    place = next(number for number, (member, _) in enumerate(members) if KINDS[kind](member.name))
    member, content = members[place]
    exchanged = next(c for m, c in members if (m.name.startswith("photos/")) and c != content)
    changed = {
        "flipped": [(member, flipped(content))],
        "removed": [],
        "emptied": [(member, b"")],
        "exchanged": [(member, exchanged)],
    }
    members[place : place + 1] = changed[harm]
    sentence = "database is damaged|missing or not authentic|database.db is missing|no row names"
    refuses(here, kept, put_together(members, tmp_path / "harmed.tar", summed=True), sentence)


def test_both_rings_of_another_backup_are_refused(kept, other, here, tmp_path):
    rings = {member.name: content for member, content in taken_apart(other.file) if "ring" in member.name}
    members = [(member, rings.get(member.name, content)) for member, content in taken_apart(kept.file)]
    file = put_together(members, tmp_path / "harmed.tar", summed=True)
    refuses(here, kept, file, "does not open this data", StartRefused)
    refuses(here, other, file, "database is damaged, or encrypted with another key")


@pytest.mark.parametrize("name", [
    "../evil", "/evil", "photos/../../evil", "photos/aa/evil", f"photos/aa/{'b' * 32}",
    f"photos/aa/{'a' * 32}/evil", "keys/ring.3",
    f"photos/AA/{'a' * 32}", f"photos/aa/{'a' * 32}\n", f"./photos/aa/{'a' * 32}", "lock",
])  # fmt: skip
def test_a_member_with_an_odd_name_is_refused(kept, here, tmp_path, name):
    members = taken_apart(kept.file)
    members.insert(-2, (named(name), b"evil"))
    refuses(here, kept, put_together(members, tmp_path / "harmed.tar", summed=True), "does not belong in it")
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize(
    "type",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CONTTYPE],
)
def test_a_member_that_is_not_a_plain_file_is_refused(kept, here, tmp_path, type):
    members = taken_apart(kept.file)
    members.insert(-2, (named(f"photos/aa/{'a' * 32}", type, "../../keys/master.key"), b""))
    refuses(here, kept, put_together(members, tmp_path / "harmed.tar", summed=True), "is not a plain file")


@pytest.mark.parametrize("type", [b"x", b"g", b"X", b"L", b"K", b"S"])
@pytest.mark.parametrize("place", [0, 4])
def test_a_header_that_extends_the_next_one_is_refused(kept, here, tmp_path, type, place):
    members = taken_apart(kept.file)
    target = put_together(members, tmp_path / "harmed.tar", summed=True)
    content = target.read_bytes()
    with tarfile.open(target) as tar:
        offset = tar.getmembers()[place].offset
    header = named("extended", type)
    header.size = 12
    extension = header.tobuf(tarfile.USTAR_FORMAT) + b"12 path=abc\n".ljust(512, b"\0")
    target.write_bytes(content[:offset] + extension + content[offset:])
    refuses(here, kept, target, "'extended' is not a plain file")


def test_chained_extensions_are_refused_at_the_first(kept, here, tmp_path):
    header = named("extended", b"L")
    header.size = 4
    extension = header.tobuf(tarfile.USTAR_FORMAT) + b"name".ljust(512, b"\0")
    (tmp_path / "harmed.tar").write_bytes(extension * 3_000 + kept.file.read_bytes())
    refuses(here, kept, tmp_path / "harmed.tar", "'extended' is not a plain file")


@pytest.mark.parametrize(("name", "type"), [
    ("extended", b"x"), ("extended", b"L"), ("backup.json", b"0"), ("keys/ring.1", b"0"),
    ("unreadable.json", b"0"), ("SHA256SUMS", b"0"),
])  # fmt: skip
def test_a_huge_header_or_small_member_is_refused_in_little_memory(kept, here, tmp_path, name, type):
    members = taken_apart(kept.file)
    place = next((number for number, (member, _) in enumerate(members) if member.name == name), 4)
    target = put_together(members, tmp_path / "harmed.tar", summed=True)
    with tarfile.open(target) as tar:
        offset = tar.getmembers()[place].offset
    header = named(name, type)
    header.size = 40_000_000 if name == "SHA256SUMS" else 200_000_000
    with target.open("r+b") as file:  # the content is a hole, which takes no space
        file.truncate(offset)
        file.seek(offset)
        file.write(header.tobuf(tarfile.USTAR_FORMAT))
        file.truncate(offset + 512 + header.size // 512 * 512 + 1024)
    tracemalloc.start()
    try:
        refuses(here, kept, target, "damaged")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_a_database_of_more_than_eight_gigabytes_needs_no_extended_header():
    member = named("database.db")
    member.size = 9 * 2**30
    header = member.tobuf(archive.TAR_FORMAT)
    assert len(header) == 512
    assert verifying.PlainMember.frombuf(header, "utf-8", "strict").size == member.size


def test_a_file_that_no_row_names_and_one_after_the_end_are_refused(kept, here, tmp_path):
    members = taken_apart(kept.file)
    more = (named(f"photos/aa/{'a' * 32}"), b"more")
    refuses(
        here,
        kept,
        put_together([*members[:-2], more, *members[-2:]], tmp_path / "a.tar", summed=True),
        "no row names",
    )
    refuses(here, kept, put_together([*members, more], tmp_path / "b.tar"), "comes after the list")


def test_two_swapped_members_are_refused(kept, here, tmp_path):
    members = taken_apart(kept.file)
    members[4], members[5] = members[5], members[4]
    refuses(here, kept, put_together(members, tmp_path / "harmed.tar"), "is missing, or a file was added")


def test_a_file_that_was_truncated_anywhere_is_refused(kept, here, tmp_path):
    content = kept.file.read_bytes()
    end = content.rindex(b"  unreadable.json\n") + 1
    chance = random.Random(5)
    for length in {
        0,
        1,
        512,
        513,
        end,
        end - 512,
        *(chance.randrange(end) // 512 * 512 for _ in range(6)),
        chance.randrange(end),
    }:
        (tmp_path / "cut.tar").write_bytes(content[:length])
        refuses(
            here, kept, tmp_path / "cut.tar", "is damaged|not a backup of Snaplore", (Unreadable, BadInput)
        )


def test_other_files_and_backups_of_a_newer_version_get_different_errors(kept, here, tmp_path):
    (tmp_path / "picture.png").write_bytes(draw())
    refuses(here, kept, tmp_path / "picture.png", "is not a backup of Snaplore", BadInput)
    refuses(
        here,
        kept,
        put_together([(named("notes.txt"), b"notes")], tmp_path / "notes.tar"),
        "does not belong in it|not a backup",
    )
    members = taken_apart(kept.file)
    members[0] = (members[0][0], members[0][1].replace(b'"format": 1', b'"format": 2'))
    refuses(
        here,
        kept,
        put_together(members, tmp_path / "later.tar", summed=True),
        "made by a newer Snaplore",
        StartRefused,
    )


# --------------------------------------------------------------------------------------------------- the disk


def test_an_existing_file_is_replaced_only_by_force_and_stays_if_that_fails(kept, tmp_path, monkeypatch):
    target = tmp_path / "backup.tar"
    target.write_text("precious")
    database.open_store(kept.settings)
    with pytest.raises(Conflict, match="--force"):
        backup.make(target, silent, now=utc_now())

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StorageFull, match="the disk is full"):
            backup.make(target, silent, now=utc_now(), force=True)
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["backup.tar"]
    assert not list(kept.settings.data_dir.glob("backup-*"))

    backup.make(target, silent, now=utc_now(), force=True)
    assert len(taken_apart(target)) == 11


def test_too_little_space_is_reported_before_anything_is_written(kept, here, tmp_path, monkeypatch):
    before = listing(here.data_dir)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1_000))
    database.open_store(kept.settings)
    with pytest.raises(StorageFull, match="The backup needs"):
        backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    assert not (tmp_path / "backup.tar").exists()
    with pytest.raises(StorageFull, match="Restoring needs"):
        restored(here, kept)
    assert listing(here.data_dir) == before


def test_a_disk_that_is_full_in_the_middle_of_a_restore_leaves_everything_as_it_was(kept, here, monkeypatch):
    before, links = listing(here.data_dir), iter([True] * 6)

    def link(source, target, real=os.link):
        if not next(links, False):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(StorageFull, match="The backup cannot be restored: the disk is full"):
        restored(here, kept)
    assert listing(here.data_dir) == before


def test_a_file_system_without_links_gets_copies(kept, here, other, tmp_path, monkeypatch):
    def link(source, target):
        if os.path.exists(target):
            raise FileExistsError(target)
        if not os.path.exists(source):
            raise FileNotFoundError(source)
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    database.open_store(here)
    backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    database.close_connections()
    restored(here, kept)
    assert contents(here) == kept.contents
    restored(here, other, tmp_path / "backup.tar")
    assert contents(here) == other.contents


@pytest.mark.parametrize("target", ["missing/backup.tar", "a-file/backup.tar"])
def test_a_target_that_cannot_be_written_is_one_sentence(kept, tmp_path, target):
    (tmp_path / "a-file").touch()
    database.open_store(kept.settings)
    with pytest.raises(SnaploreError, match="The backup cannot be written to"):
        backup.make(tmp_path / target, silent, now=utc_now())
    assert not list(kept.settings.data_dir.glob("backup-*"))


# ------------------------------------------------------------------------------------------ beside the others


def test_the_snapshot_is_repeated_if_a_file_is_deleted_before_its_link(here, other, tmp_path, monkeypatch):
    database.open_store(here)
    real, rounds = archive.stored_files, []

    def meanwhile(database):
        files = list(real(database))
        if not rounds:
            photos.delete(1)
        rounds.append(len(files))
        return iter(files)

    monkeypatch.setattr(archive, "stored_files", meanwhile)
    made = backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    monkeypatch.undo()
    database.close_connections()
    assert (made.head.photos, made.unreadable, rounds[:2]) == (0, [], [3, 1])
    assert restored(here, other, tmp_path / "backup.tar").photos == 0


def test_if_every_snapshot_loses_a_file_writers_wait_for_the_last_one(here, other, tmp_path, monkeypatch):
    live(here, *"abcdef")
    database.open_store(here)
    real, outcomes = archive.stored_files, []

    def delete_the_newest():
        with database.scope():
            db.execute_sql("PRAGMA busy_timeout = 100")
            try:
                photos.delete(Photo.select(models.peewee.fn.MAX(Photo.id)).scalar())
                outcomes.append("deleted")
            except models.peewee.OperationalError as problem:
                outcomes.append(str(problem))

    def meanwhile(database):
        files = list(real(database))
        if len(outcomes) < backup.ROUNDS:
            client.submit(delete_the_newest).result()
        return iter(files)

    monkeypatch.setattr(archive, "stored_files", meanwhile)
    with ThreadPoolExecutor(1) as client:
        made = backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    assert outcomes == ["deleted"] * (backup.ROUNDS - 1) + ["database is locked"]
    assert (made.unreadable, made.head.photos) == ([], 7 - (backup.ROUNDS - 1))


def test_keys_that_are_rotated_during_a_backup_leave_it_complete(here, other, tmp_path):
    """The files and the master key, before and after the snapshot. The database key waits for the backup."""
    turned = []

    def turning(stage, done, total):
        if stage != "database" and stage not in turned:
            turned.append(stage)
            with pytest.raises(Unavailable, match="A backup is being made"):
                rotation.rotate(silent, now=utc_now())
            rotation.change_master_key(crypto.new_key())  # this also increases the generation
            assert resealing.seal_anew(silent).done == 2

    database.open_store(here)
    made = backup.make(tmp_path / "backup.tar", turning, now=utc_now(), with_master_key=True)
    database.close_connections()
    assert (turned, made.unreadable) == (["writing"], [])

    fresh = dataclasses.replace(here, data_dir=tmp_path / "fresh")
    restored(fresh, other, tmp_path / "backup.tar", master_key_file=None)
    there, was = contents(fresh), other.contents
    assert sorted(content for path, content in there.items() if "/" in path) == sorted(
        c for path, c in was.items() if "/" in path
    )
    assert there["conversations"] == was["conversations"]


def test_the_next_run_removes_what_killed_runs_left_and_two_never_run_at_once(kept, here, tmp_path):
    for name in ("backup-0123456789abcdef", "restore-0123456789abcdef"):
        (here.data_dir / name).mkdir()
        (here.data_dir / name / "left").touch()
    (tmp_path / "backup.tar.01234567.part").touch()
    database.open_store(here)
    with (
        named_lock(here.data_dir / "jobs", "backup", 0, busy=""),
        pytest.raises(Unavailable, match="Another backup is being made"),
    ):
        backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    backup.make(tmp_path / "backup.tar", silent, now=utc_now())
    database.close_connections()
    restored(here, kept)
    assert not [path for path in tmp_path.rglob("*") if path.name in ("left", "backup.tar.01234567.part")]


def test_a_restore_is_refused_while_a_service_runs(kept, here):
    with contextlib.closing(ServiceLock(here.data_dir)):
        refuses(here, kept, kept.file, "A Snaplore service is running", StartRefused)


# --------------------------------------------------------------------------------------------- killed runs

KILLS = 50  # of the whole command
CALLS = ("link", "replace", "rename", "unlink", "rmdir", "mkdir", "fsync", "sync")


def cut_off(verb, number, *, module, entering):
    """Run `verb` in a process that is killed at one of its calls that change the disk; False if it ends
    before.

    It is killed at call `number` after the function `entering` of `module` was called.
    """
    # Looked up before the fork: a failure in the child outside of `try` would continue the test suite there.
    entered = getattr(module, entering)
    child = os.fork()
    if not child:
        made = 0

        def counted(real):
            def call(*arguments, **options):
                nonlocal made
                if made == number:
                    os._exit(9)
                made += 1
                return real(*arguments, **options)

            return call

        def begin(*arguments, **options):
            for name in CALLS:
                setattr(os, name, counted(getattr(os, name)))
            return entered(*arguments, **options)

        setattr(module, entering, begin)
        try:
            verb()
        except BaseException as problem:
            print(repr(problem), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


@pytest.fixture
def quick(monkeypatch):
    """Skip flushes: a killed process, unlike a power cut, loses nothing without them."""
    for name in ("fsync", "sync"):
        monkeypatch.setattr(os, name, lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize("undo", [False, True], ids=["restore", "undo"])
def test_killed_at_any_point_the_old_or_the_new_state_is_complete_and_another_run_finishes(
    kept, here, other, tmp_path, quick, undo
):
    before, after = other.contents, kept.contents
    if undo:
        restored(here, kept)
        before, after = after, before
    verb = (lambda: restore.undo(here, now=utc_now())) if undo else (lambda: restored(here, kept))
    shutil.copytree(here.data_dir, tmp_path / "template")
    is_new, number, cut = [], 0, True
    while cut:
        shutil.rmtree(here.data_dir)
        shutil.copytree(tmp_path / "template", here.data_dir)
        cut = cut_off(verb, number, module=restore, entering="_switch")
        state = contents(here)
        assert state in (before, after), number
        is_new.append(state == after)
        if number % 4 == 0 and not (undo and is_new[-1]):  # a second undo would bring back the other data
            verb()
            assert contents(here) == after, number
            assert not list(here.data_dir.glob("restore-*"))
        number += 2 if undo else 1  # the switch is the same as in a restore
    assert is_new == sorted(is_new), "one call commits the switch"
    assert 8 < is_new.index(True) < len(is_new) - 8, "calls before it and after it"


@pytest.mark.slow
def test_a_restore_killed_at_fifty_points_leaves_the_old_or_the_new_data_and_can_be_repeated(
    kept, here, other, tmp_path
):
    kills.need_strace()
    seed = random.SystemRandom().randrange(10_000)
    shutil.copytree(here.data_dir, tmp_path / "template")
    command = ("restore", str(kept.file), "--master-key-file", str(key_of(kept)))
    every = kills.points(here, *command)
    print(f"{KILLS} of {len(every)} points, seed {seed}")  # pytest shows it with a failure
    points = kills.spread(every, KILLS, random.Random(seed))
    assert contents(here) == kept.contents

    def killed(number):
        (tmp_path / str(number)).mkdir()
        folder = kills.copied(tmp_path / "template", tmp_path / str(number))
        settings = dataclasses.replace(here, data_dir=folder)
        kills.kill(settings, points[number], *command)
        return settings

    is_new = []
    with ThreadPoolExecutor(2) as runs:
        for point, settings in zip(points, runs.map(killed, range(KILLS)), strict=True):
            state = contents(settings)
            assert state in (other.contents, kept.contents), point
            is_new.append(state == kept.contents)
            restored(settings, kept)
            assert contents(settings) == kept.contents, point
            assert not list(settings.data_dir.glob("restore-*")), point
            assert problems(settings) == [], point
            shutil.rmtree(settings.data_dir)
    assert is_new == sorted(is_new), "one call commits the restore"
    assert {*is_new} == {False, True}, "killed before it and after it"


def problems(settings):
    """What the integrity check finds, except in the index: it has no words of the photos of `live`."""
    try:
        kinds = list(check.check(settings, findings.Orders(utc_now())))
    finally:
        database.close_connections()
    return [str(kind) for kind in kinds if kind.wrong and kind.name != "index"]


@pytest.mark.slow
def test_a_killed_backup_leaves_the_data_intact_and_no_incomplete_file(here, other, tmp_path, quick):
    def verb():
        database.open_store(here)
        backup.make(tmp_path / "backup.tar", silent, now=utc_now())

    cut, number = True, 0
    while cut:
        cut = cut_off(verb, number, module=archive, entering="private_folder")
        with contextlib.suppress(FileNotFoundError):
            assert len(taken_apart(tmp_path / "backup.tar")) == 9
            (tmp_path / "backup.tar").unlink()
        number += 1
    assert number > 10
    assert contents(here) == other.contents


# ----------------------------------------------------------------------------------------------- the commands


# --------------------------------------------------------------------------------------------- real processes


@pytest.mark.slow
def test_a_backup_of_a_busy_service_is_a_snapshot_that_another_machine_can_restore(tmp_path):
    def model(request):
        return "It is a library book." if "What is this?" in request.text else FINDINGS

    with FakeLLM(model) as fake:
        remote = {"dev_mode": "true", "language": "en"}
        with Service(tmp_path / "old", **remote) as old:
            key = old.key
            configured = {"base_url": fake.url, "model": "scripted", "api_key": SECRETS[3]}
            assert old.call("PUT", "/api/config/llm", json=configured).status_code == 200
            with Life(old) as life:
                eventually(lambda: len(life.deleted) >= 5 and life.said, "the service is busy")
                uploaded, deleted, said = set(life.uploaded), set(life.deleted), list(life.said)
                run = old.run("flask", "--app", "app", "backup", str(tmp_path / "backup.tar"))
                assert (run.returncode, run.stderr) == (0, ""), run.stderr
                later = set(life.deleting)
                before = len(life.deleted)
                eventually(lambda: len(life.deleted) > before, "the service is busy still")
            assert life.failures == []
            running = old.run("flask", "--app", "app", "restore", str(tmp_path / "backup.tar"))
            assert (running.returncode, running.stderr.count("A Snaplore service is running")) == (1, 1)

        (tmp_path / "key").write_bytes((old.data / "keys" / "master.key").read_bytes())
        with_key = ("--master-key-file", str(tmp_path / "key"))
        new = Service(tmp_path / "new", **remote)
        run = new.run("flask", "--app", "app", "restore", str(tmp_path / "backup.tar"), *with_key)
        assert (run.returncode, run.stderr) == (0, ""), run.stderr
        with new:
            assert new.key == key
            assert new.get("/api/config/llm")["model"] == "scripted"
            there = {photo["id"] for photo in new.photos()}
            assert uploaded - later <= there, (
                "what was stored before it began, and not deleted before it ended"
            )
            assert there <= set(life.uploaded) - deleted
            for photo_id in there:
                assert new.call("GET", f"/api/photos/{photo_id}/image").content == life.uploaded[photo_id]
                assert new.call("GET", f"/api/photos/{photo_id}/thumbnail").content.startswith(
                    b"\xff\xd8\xff"
                )
            new.wait_until_analysed()
            assert {item["id"] for item in new.get("/api/search", q="library", limit=100)["items"]} <= there
            conversations_there = {item["id"] for item in new.get("/api/chat/conversations")["conversations"]}
            assert set(said) <= conversations_there
            again = new.call(
                "POST", "/api/chat/send", json={"message": "And that one?", "conversation_id": said[0]}
            )
            assert again.status_code == 200, again.text
            asked = [request for request in fake.requests if "And that one?" in request.text]
            assert asked[0].images, "the picture of the first message is read again"


class Life(Clients):
    """Clients that upload, delete and chat until they are stopped."""

    def __init__(self, service):
        super().__init__(service, self._upload, self._upload, self._delete)
        self.uploaded = {}
        self.deleting = []  # recorded before the request
        self.deleted = []
        self.said = []

    def __enter__(self):
        self._say()
        return super().__enter__()

    def _upload(self):
        picture = draw(os.urandom(4).hex(), size=(60, 60))
        self.uploaded[self._service.upload(picture)["id"]] = picture

    def _delete(self):
        """Delete the newest photo: its file may be written and deleted during the backup."""
        left = sorted(set(self.uploaded) - set(self.deleting))
        if len(left) > 10:
            self.deleting.append(left[-1])
            assert self._service.call("DELETE", f"/api/photos/{left[-1]}").status_code == 200
            self.deleted.append(left[-1])

    def _say(self):
        picture = draw("attached", size=(60, 60), format="JPEG")
        answer = self._service.call(
            "POST",
            "/api/chat/send-with-file",
            files={"file": ("a.jpg", picture)},
            data={"message": "What is this?"},
        )
        assert answer.status_code == 200, answer.text
        self.said.append(answer.json()["conversation_id"])


def test_the_commands_report_the_outcome_and_how_to_undo_it(kept, tmp_path):
    shutil.copytree(kept.settings.data_dir, tmp_path / "data")
    service = Service(tmp_path)

    def run(*arguments, code=0, **settings):
        ended = service.run("flask", "--app", "app", *arguments, **settings)
        assert ended.returncode == code, ended.stderr
        return ended.stdout if code == 0 else ended.stderr

    file = str(tmp_path / "backup.tar")
    assert run("backup", file).startswith("backup: 2 photos, 5 files, 0.")
    said = run("restore", file)
    assert "restore: 2 photos, as they were at " in said
    assert "before-restore-" in said
    assert "./snaplore restore --undo" in said
    assert run("restore", "--undo").startswith("restore: 2 photos brought back")
    assert run("restore", "--discard-previous").startswith("restore: 0.")
    assert "set SNAPLORE_ENCRYPTION to true" in run("restore", file, code=1, encryption="false")


def test_a_file_that_everybody_can_read_is_reported_as_such(kept, tmp_path):
    shutil.copytree(kept.settings.data_dir, tmp_path / "data")
    service = Service(tmp_path)
    run = service.run("flask", "--app", "app", "backup", "--with-master-key", str(tmp_path / "with-key.tar"))
    assert "The file includes the master key: whoever has it can read everything" in run.stderr
    run = service.run(
        "flask",
        "--app",
        "app",
        "backup",
        str(tmp_path / "plain.tar"),
        data_dir=tmp_path / "plain",
        encryption="false",
    )
    assert "Encryption is off: whoever has the file can read everything" in run.stderr
