"""The integrity check finds and reports each kind of damage, repairs derived data, and reports no data that
merely changes while it runs.
"""

import contextlib
import dataclasses
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import threading
from datetime import timedelta

import pytest

import claims
import database
import lexicon
import photos
import search
import uploads
from assistant import turns
from clock import utc_now
from database import db
from models import Analysis, Message, Photo, Tally, Vocabulary
from settings import ROOT
from spool import Spool
from tests.support.drawing import draw
from upkeep import check, derived, findings

KINDS = (
    "keys",
    "database",
    "age",
    "certificate",
    "originals",
    "thumbnails",
    "attachments",
    "files",
    "analyses",
    "readings",
    "index",
    "vocabulary",
    "tallies",
)
ALL_WELL = [f"{kind}: OK" for kind in KINDS]
DAY = timedelta(days=1)


@pytest.fixture
def library(app, settings):
    """A data folder with three photos, of which two are analysed, and a conversation with an attachment; no
    connection is open.
    """
    fill(3)
    with database.scope():
        Analysis.update(status="pending", visible_text="", summary="").where(Analysis.photo == 3).execute()
        lexicon.remove(3)
        lexicon.rebuild()
        turns.begin_turn("ab", "What is this?", draw(format="JPEG"), device_id="phone", now=utc_now())
    database.close_connections()
    return settings.data_dir


def fill(number, text="tangerine {0} dusk"):
    for this in range(number):
        with database.scope(), db.atomic():
            spool = Spool(uploads.MAX_FILE)
            spool.write(draw(str(this), size=(300, 300), compress_level=0))
            kept = uploads.store(spool, uploads.Upload("unknown", f"{this}.png", utc_now()), now=utc_now())
            result = {
                "status": "done",
                "visible_text": text.format(f"word{this}"),
                "summary": "horizon",
                "intent": "note",
            }
            Analysis.update(**result).where(Analysis.photo == kept.id).execute()
            lexicon.index(kept.id)


def run(cli, *options):
    """The exit code and the lines."""
    database.close_connections()
    done = cli.invoke(args=["check", *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.exit_code, done.output.splitlines()


def wrong(cli, *options):
    """The lines that are not OK; the exit code must match."""
    code, lines = run(cli, *options)
    lines = [line for line in lines if not line.endswith(": OK")]
    assert code == (1 if any("repaired" not in line for line in lines) or (lines and not options) else 0), (
        lines
    )
    return lines


def file_of(library, photo_id, column=Photo.original_path):
    with database.scope():
        return library / Photo.select(column).where(Photo.id == photo_id).scalar()


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def found(word):
    with database.scope():
        return [hit.photo_id for hit in search.find(word, now=utc_now()).items]


def test_intact_data_is_reported_as_ok_kind_by_kind(library, cli):
    assert run(cli) == (0, ALL_WELL)
    assert run(cli, "--repair") == (0, ALL_WELL)


def test_without_encryption_the_same_is_checked(settings):
    plain = dataclasses.replace(settings, encryption=False)
    database.open_store(plain)
    fill(2)
    thumbnail, original = file_of(settings.data_dir, 1, Photo.thumbnail_path), file_of(settings.data_dir, 2)
    database.close_connections()
    assert lines_of(plain) == ALL_WELL

    thumbnail.write_bytes(b"")
    flip(original)
    assert [line for line in lines_of(plain) if not line.endswith("OK")] == [
        "originals: 1 wrong: photo 2 (1.png) is damaged",
        "thumbnails: 1 wrong: the thumbnail of photo 1 is damaged",
    ]


def lines_of(settings, **orders):
    try:
        return [str(kind) for kind in check.check(settings, findings.Orders(utc_now(), **orders))]
    finally:
        database.close_connections()


def test_a_folder_without_data_is_reported_and_stays_empty(cli, settings):
    shutil.rmtree(settings.data_dir)
    assert run(cli) == (1, [f"keys: 1 wrong: there is no data in {settings.data_dir}"])
    assert not settings.data_dir.exists()


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (
            lambda data: (data / "keys" / "master.key").unlink(),
            "keys: 1 wrong: The master key .* is not there",
        ),
        (
            lambda data: (data / "keys" / "master.key").write_text("ab" * 32),
            "keys: 1 wrong: .* cannot be opened",
        ),
        (
            lambda data: [flip(data / "keys" / f"ring.{number}") for number in (1, 2)],
            "keys: 1 wrong: .* cannot be opened",
        ),
        (
            lambda data: [(data / "keys" / f"ring.{number}").unlink() for number in (1, 2)],
            "keys: 1 wrong: .* holds data, but its keys are not in",
        ),
        (
            lambda data: [path.unlink() for path in (data / "database").glob("*.db")],
            "database: 1 wrong: .* is not there. Restore it",
        ),
        (
            lambda data: [flip(path, 0) for path in (data / "database").glob("*.db")],
            "database: 1 wrong: .* does not open with its key",
        ),
    ],
)
def test_data_that_does_not_open_is_reported_and_nothing_is_changed(library, cli, harm, sentence):
    harm(library)
    before = {path: path.read_bytes() for path in library.rglob("*") if path.is_file()}
    code, lines = run(cli, "--repair")
    assert code == 1
    assert re.match(sentence, lines[-1])
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("copy", ["ring.1", "ring.2"])
def test_a_lost_or_damaged_copy_of_the_key_ring_is_restored_and_reported(library, cli, copy):
    path = library / "keys" / copy
    path.unlink()
    problem = f"the copy {copy} of the key ring was missing, damaged or out of date (repaired)"
    expected = f"keys: 1 wrong, 1 repaired: {problem}"
    assert run(cli) == (1, [expected, *ALL_WELL[1:]])
    flip(path)
    assert run(cli, "--repair") == (0, [expected, *ALL_WELL[1:]])
    assert run(cli) == (0, ALL_WELL)


def test_lost_and_damaged_originals_are_reported_and_kept_until_they_are_given_up(library, cli, client):
    flip(file_of(library, 1))
    file_of(library, 2).unlink()
    named = "photo 1 (0.png) is damaged; photo 2 (1.png) is lost"
    assert wrong(cli) == wrong(cli, "--repair") == [f"originals: 2 wrong: {named}"]
    assert client.get("/api/photos").json["total"] == 3

    assert wrong(cli, "--repair", "--forget-lost")[0].startswith("originals: 2 wrong, 2 repaired: photo 1")
    assert [item["id"] for item in client.get("/api/photos").json["items"]] == [3]
    assert run(cli) == (0, ALL_WELL)


def test_giving_up_needs_repair(cli):
    assert cli.invoke(args=["check", "--forget-lost"]).exit_code == 2


@pytest.mark.parametrize("place", [0, 0.5, 0.9999])
def test_a_damaged_thumbnail_is_recreated_from_the_original(library, cli, client, place):
    before = client.get("/api/photos/1/thumbnail").data
    flip(file_of(library, 1, Photo.thumbnail_path), place)
    file_of(library, 2, Photo.thumbnail_path).unlink()
    named = ["the thumbnail of photo 1 is damaged", "the thumbnail of photo 2 is lost"]
    assert wrong(cli) == [f"thumbnails: 2 wrong: {'; '.join(named)}"]
    assert wrong(cli, "--repair") == [
        f"thumbnails: 2 wrong, 2 repaired: {'; '.join(f'{name} (repaired)' for name in named)}"
    ]
    assert client.get("/api/photos/1/thumbnail").data == before
    assert run(cli) == (0, ALL_WELL)
    assert len(list(library.glob("photos/*/*.thumbnail"))) == 3


def test_a_thumbnail_whose_original_is_lost_as_well_stays_lost(library, cli):
    file_of(library, 1).unlink()
    file_of(library, 1, Photo.thumbnail_path).unlink()
    assert [line.partition(":")[0] for line in wrong(cli, "--repair")] == ["originals", "thumbnails"]
    assert wrong(cli, "--repair", "--forget-lost") == [
        "originals: 1 wrong, 1 repaired: photo 1 (0.png) is lost (repaired)"
    ]
    assert run(cli) == (0, ALL_WELL)


def test_a_lost_attachment_is_reported_and_its_message_stays_when_it_is_given_up(library, cli):
    path = next(library.glob("attachments/*/*"))
    path.unlink()
    expected = ["attachments: 1 wrong: the attachment of message 1 is lost"]
    assert wrong(cli) == wrong(cli, "--repair") == expected
    assert wrong(cli, "--repair", "--forget-lost") == [
        "attachments: 1 wrong, 1 repaired: the attachment of message 1 is lost (repaired)"
    ]
    with database.scope():
        assert not Message.select().where(Message.attachment_path.is_null(False)).exists()
    status = cli.invoke(args=["keys", "status"])
    assert (status.exit_code, "Files:        6 of generation 1" in status.output) == (0, True), status.output
    assert (
        "0 pictures and attachments resealed" in cli.invoke(args=["jobs", "rotate-keys", "--pictures"]).output
    )
    with database.scope():
        assert Message.get_by_id(1).content == "What is this?"
    assert run(cli) == (0, ALL_WELL)


def test_files_without_a_row_are_wrong_when_they_are_older_than_a_day(library, cli):
    orphan = library / "photos" / "ab" / ("ab" * 16)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"cut off")
    assert run(cli) == (0, ALL_WELL)

    old = (utc_now() - 2 * DAY).timestamp()
    os.utime(orphan, (old, old))
    name = f"photos/ab/{'ab' * 16} belongs to no row"
    assert wrong(cli) == [f"files: 1 wrong: {name}"]
    assert orphan.exists()
    assert wrong(cli, "--repair") == [f"files: 1 wrong, 1 repaired: {name} (repaired)"]
    assert not orphan.exists()


def test_a_photo_without_an_analysis_gets_one(library, cli, client):
    with database.scope():
        Analysis.delete().where(Analysis.photo == 3).execute()
    assert wrong(cli) == ["analyses: 1 wrong: photo 3 has no analysis"]
    assert wrong(cli, "--repair") == ["analyses: 1 wrong, 1 repaired: photo 3 has no analysis (repaired)"]
    assert client.get("/api/stats").json["pending"] == 1
    assert run(cli) == (0, ALL_WELL)


def test_an_index_that_differs_from_the_analyses_is_corrected(library, cli):
    with database.scope():
        db.execute_sql("DELETE FROM photo_index WHERE rowid = 1")  # without updating the vocabulary
        db.execute_sql("INSERT INTO photo_index(rowid, tokens) VALUES (99, 'ghost')")
        Analysis.update(visible_text="tangerine and some more new words").where(Analysis.photo == 2).execute()
    lines = wrong(cli)
    assert (
        lines[0] == "index: 3 wrong: photo 1 is not indexed; photo 2 is indexed with other words; "
        "photo 99 is indexed with other words"
    )
    assert lines[1].startswith("vocabulary: ")
    assert "the count of “ghost” is wrong" in lines[1]
    assert wrong(cli, "--repair")[0].startswith("index: 3 wrong, 3 repaired: ")
    assert run(cli) == (0, ALL_WELL)
    assert (sorted(found("tangerine")), found("word0"), found("new")) == ([1, 2], [1], [2])


def test_a_vocabulary_with_wrong_counts_is_corrected(library, cli):
    with database.scope():
        Vocabulary.update(documents=7).where(Vocabulary.term == "tangerine").execute()
        Vocabulary.delete().where(Vocabulary.term == "word1").execute()
        Vocabulary.create(term="zebra", documents=1)
    named = ("tangerine", "word1", "zebra")
    assert wrong(cli) == [
        f"vocabulary: 3 wrong: {'; '.join(f'the count of “{term}” is wrong' for term in named)}"
    ]
    wrong(cli, "--repair")
    assert run(cli) == (0, ALL_WELL)
    with database.scope():
        counts = dict(
            Vocabulary.select(Vocabulary.term, Vocabulary.documents)
            .where(Vocabulary.term.in_(named))
            .tuples()
        )
    assert counts == {"tangerine": 2, "word1": 1}


@pytest.mark.slow
def test_the_index_of_any_script_agrees_with_its_vocabulary(library, cli):
    """FTS5 and Python disagree about the case and category of some characters."""
    chance = random.Random(1)
    ranges = [(0x20, 0x2FFF), (0x3000, 0xD7FF), (0xA500, 0xAC00), (0x10400, 0x10600), (0x1C80, 0x2200)]
    for _ in range(40):
        fill(1, text="{0} " + "".join(chr(chance.randrange(*chance.choice(ranges))) for _ in range(300)))
    assert run(cli) == (0, ALL_WELL)


def test_a_damaged_full_text_index_is_rebuilt(library, cli):
    with database.scope():
        db.execute_sql(
            "UPDATE photo_index_data SET block = zeroblob(20) "
            "WHERE id = (SELECT max(id) FROM photo_index_data WHERE id < 1 << 52)"
        )
    assert wrong(cli)[0] == "index: 1 wrong: the index is damaged"
    assert wrong(cli, "--repair") == ["index: 1 wrong, 1 repaired: the index is damaged (repaired)"]
    assert run(cli) == (0, ALL_WELL)
    assert sorted(found("tangerine")) == [1, 2]


def test_wrong_tallies_are_corrected(library, cli, client):
    before = client.get("/api/stats").json
    with database.scope():
        Tally.update(photos=9).where(Tally.status == "done").execute()
        Tally.create(
            **dict.fromkeys(("app_name", "intent", "content_category"), ""),
            month="2026-11", device_id="ghost", status="error", kept=0, covered=0, photos=1,
        )  # fmt: skip
    [line] = wrong(cli)
    assert line.startswith(
        "tallies: 2 wrong: photos of no app, 2026-11, ghost, error, no intent, no category; photos of no app"
    )
    assert line.endswith(", unknown, done, note, no category")
    wrong(cli, "--repair")
    assert client.get("/api/stats").json == before


def test_wrong_tallies_of_months_and_apps_are_corrected(library, cli, client):
    paths = ("/api/photos/timeline", "/api/photos/apps", "/api/photos/timeline?app=Mail")
    with database.scope(), db.atomic():
        lexicon.empty()
        Analysis.update(app_name="Mail", visible_text="tangerine").execute()
        lexicon.rebuild()
    before = [client.get(path).json for path in paths]
    month = before[0]["months"][0]["month"]
    with database.scope():
        Tally.delete().execute()
    assert wrong(cli) == [
        f"tallies: 2 wrong: photos of Mail, {month}, unknown, done, note, no category; "
        f"photos of Mail, {month}, unknown, pending, note, no category"
    ]
    wrong(cli, "--repair")
    assert [client.get(path).json for path in paths] == before


def test_damaged_pages_of_the_database_are_reported_and_the_rest_is_checked(library, cli, client):
    with database.scope():
        page = db.execute_sql("SELECT rootpage FROM sqlite_master WHERE name = 'spend_ledger'").fetchone()[0]
        db.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        path = database.store().database
    database.close_connections()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 + 100] ^= 1
    path.write_bytes(content)
    code, lines = run(cli, "--repair")
    assert code == 1
    assert f"HMAC verification failed for page {page}" in lines[1]
    assert lines[1].endswith("restore a backup (./snaplore restore)")
    assert [line for number, line in enumerate(lines) if number != 1] == [
        line for number, line in enumerate(ALL_WELL) if number != 1
    ]
    assert path.read_bytes()[(page - 1) * 4096 : page * 4096] == content[(page - 1) * 4096 : page * 4096]


def test_rows_that_refer_to_missing_rows_are_reported(library, cli):
    with database.scope():
        db.execute_sql("PRAGMA foreign_keys = 0")
        db.execute_sql("DELETE FROM photos WHERE id = 3")
    database.close_connections()
    [line] = wrong(cli, "--repair")
    assert line.startswith("database: ")
    assert "row 3 of analyses refers to a missing row of photos; " in line
    assert line.endswith("restore a backup (./snaplore restore)")


def test_at_most_twenty_problems_of_a_kind_are_listed(library, cli):
    with database.scope():
        for number in range(30):
            Vocabulary.create(term=f"zebra{number:02}", documents=1)
    [line] = wrong(cli)
    assert line.startswith("vocabulary: 30 wrong: the count of “zebra00” is wrong; ")
    assert line.count("the count of ") == 20
    assert line.endswith("the count of “zebra19” is wrong; and 10 more")


@pytest.mark.slow
def test_data_that_changes_during_a_check_is_not_reported(library, settings, monkeypatch):
    """Photos are uploaded, deleted, analysed and resealed between the steps of a check."""
    for module, name, few in ((findings, "BATCH", 2), (derived, "BATCH", 2), (derived, "TERMS", 3)):
        monkeypatch.setattr(module, name, few)
    fill(10)
    database.close_connections()
    stop, failures = threading.Event(), []

    def traffic():
        number = 0
        try:
            while not stop.is_set():
                number += 1
                fill(1, text=f"{{0}} fleeting{number}")
                with database.scope():
                    ids = [row[0] for row in Photo.select(Photo.id).order_by(Photo.id).tuples()]
                    photos.make_thumbnail_anew(photos.get(ids[-1]))
                    claims.reprocess(ids[1], now=utc_now())
                    photos.delete(ids[0])
        except Exception as problem:
            failures.append(problem)

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        for _ in range(4):
            assert lines_of(settings) == ALL_WELL
    finally:
        stop.set()
        thread.join()
    assert failures == []


@pytest.mark.slow
def test_on_a_terminal_each_kind_has_a_line_and_long_steps_have_a_bar(library, settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SNAPLORE_")}
    environment |= {"SNAPLORE_DATA_DIR": str(library), "TERM": "xterm"}
    screen, terminal = pty.openpty()
    try:
        command = [sys.executable, "-m", "flask", "--app", "app", "check"]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
        )
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # Linux raises this when the terminal is closed
            while part := os.read(screen, 4096):
                shown += part
        assert process.wait(90) == 0, shown
    finally:
        os.close(screen)
    lines = shown.decode().splitlines()
    assert [line for line in lines if line in ALL_WELL] == ALL_WELL
    assert "pictures  [" in shown.decode()
    assert "100%" in shown.decode()
