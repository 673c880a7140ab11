"""Bringing the past: exports of Google Photos, Apple and Snaplore, and the libraries Immich and Karakeep."""

import contextlib
import http.server
import io
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

import database
from models import Photo, Shown
from settings import PREFIX, ROOT
from tests.support import exports
from tests.support.exports import picture, sidecar, sidecar_name, zipped
from tests.support.loopback import Loopback
from tests.support.service import eventually
from upkeep import takeout

TAKEN = datetime(2022, 5, 6, 7, 8, 9)


@pytest.fixture
def imported(cli, tmp_path):
    """`imported({place: content}, …)`: import these files as a zip; returns the run."""

    def run(*contents, arguments=(), code=0):
        zips = []
        for number, files in enumerate(contents):
            zips.append(tmp_path / f"part-{number}.zip")
            zips[-1].write_bytes(files if isinstance(files, bytes) else zipped(files))
        done = cli.invoke(args=["import", *map(str, zips), *arguments])
        assert done.exit_code == code, done.output
        return done

    return run


def stored(app):
    """The photos by their file names, each with its time, star, note and tags."""
    with database.scope():
        rows = Shown.select(Shown, Photo).join(Photo)
        return {row.photo.filename: (row.taken_at, row.kept, row.note, json.loads(row.tags)) for row in rows}


# ---------------------------------------------------------------------------------------------------- Takeout


@pytest.mark.parametrize(
    ("name", "json_name"),
    [
        ("Screenshot_1.png", "Screenshot_1.png.supplemental-metadata.json"),
        ("Screenshot_1.png", "Screenshot_1.png.json"),
        ("Screenshot_1.png", "Screenshot_1.png.supplemental-me.json"),
        ("Screenshot_20240102-030405_WhatsApp.png", "Screenshot_20240102-030405_WhatsApp.png.supple.json"),
        (
            "Screenshot_2024-01-02-03-04-05-678_com.app.png",
            "Screenshot_2024-01-02-03-04-05-678_com.app.png.json",
        ),
        (
            "Screenshot_2024-01-02-03-04-05-678_com.an.app.png",
            "Screenshot_2024-01-02-03-04-05-678_com.an.app.json",
        ),
        ("Screenshot(1).png", "Screenshot.png.supplemental-metadata(1).json"),
        ("Screenshot(12).png", "Screenshot.png(12).json"),
        ("Screenshot-edited.png", "Screenshot.png.supplemental-metadata.json"),
        ("Screenshot-bearbeitet(1).png", "Screenshot.png.supplemental-metadata(1).json"),
        ("Screenshot(1)-edited.png", "Screenshot.png.supplemental-metadata(1).json"),
        ("截图 2024年.png", "截图 2024年.png.supplemental-metadata.json"),
        ("Renamed.png", "Something else.json"),  # by its title
    ],
)
def test_a_picture_of_takeout_finds_its_json_whatever_its_name_was_cut_to(name, json_name):
    sidecars = takeout.Sidecars()
    said = takeout.facts(sidecar("Renamed.png" if name == "Renamed.png" else name, TAKEN))
    sidecars.add("a", json_name, said)

    assert sidecars.of("a", name) == said
    assert sidecars.of("b", name) is None


def test_pictures_whose_names_begin_alike_do_not_take_each_others_json():
    sidecars = takeout.Sidecars()
    names = [f"Screenshot_2024-01-02-03-04-05-678_com.app{letter}.png" for letter in "abc"]
    for number, name in enumerate(names[:2]):
        sidecars.add("a", sidecar_name(name), takeout.facts(sidecar(name, TAKEN.replace(day=number + 1))))

    assert [sidecars.of("a", name).taken.day for name in names[:2]] == [1, 2]
    assert sidecars.of("a", names[2]) is None
    sidecars.add("a", "Screenshot.png.json", takeout.facts(sidecar("Screenshot.png", TAKEN)))
    assert sidecars.of("a", "Screenshot(1).png") is None
    assert sidecars.of("a", "Screenshots.png") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b"[" * 100_000, b'{"photoTakenTime": 1}', b"\xff\xfe", b'{"title": "a.png"}'],
)
def test_a_json_file_of_another_kind_says_nothing(content):
    assert takeout.facts(content) is None


@pytest.mark.parametrize("seconds", ["", "soon", "9" * 30, "-9" + "9" * 30])
def test_a_time_outside_of_the_calendar_is_none(seconds):
    found = takeout.facts(json.dumps({"photoTakenTime": {"timestamp": seconds}}).encode())
    assert found.taken is None


def test_times_stars_and_notes_of_takeout_come_along_from_any_part_once(app, cli, tmp_path):
    zips, expected = exports.takeout(tmp_path, 24)
    tried = cli.invoke(args=["import", "--dry-run", *map(str, zips)])
    assert tried.stdout.splitlines()[-1] == "24 would be imported, 3 already there, 2 left out"
    assert stored(app) == {}
    done = cli.invoke(args=["import", *map(str, zips)])

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "24 imported, 3 already there, 2 left out")
    assert "a film.mp4: it is not a picture" in done.stderr
    assert "archive_browser.html: it is not a picture" in done.stderr
    assert {name: row[:3] for name, row in stored(app).items()} == expected
    again = cli.invoke(args=["import", *map(str, reversed(zips))])
    assert again.stdout.splitlines()[-1] == "0 imported, 27 already there, 2 left out"
    assert len(stored(app)) == 24
    tried = cli.invoke(args=["import", "--dry-run", *map(str, zips)])
    assert tried.stdout.splitlines()[-1] == "0 would be imported, 27 already there, 2 left out"


def test_what_a_person_wrote_since_is_not_written_over(app, client, imported):
    files = {"a/b.png": picture("b"), "a/b.png.json": sidecar("b.png", TAKEN, description="Google's")}
    imported(files)
    (photo,) = client.get("/api/photos").json["items"]
    client.patch(f"/api/photos/{photo['id']}", json={"note": "mine"})
    imported(files)

    assert stored(app)["b.png"][2] == "mine"


def test_an_unpacked_export_is_read_as_its_zip_is(app, cli, tmp_path):
    for place, content in {
        "in/Photos/b.png": picture("b"),
        "in/Photos/b.png.supplemental-metadata.json": sidecar("b.png", TAKEN, favorited=True),
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(content)
    done = cli.invoke(args=["import", str(tmp_path / "in")])

    assert done.exit_code == 0, done.output
    assert stored(app) == {"b.png": (TAKEN, True, "", [])}


def test_what_was_in_googles_trash_is_left_out_and_said(app, imported):
    done = imported({"a/b.png": picture("b"), "a/b.png.json": sidecar("b.png", TAKEN, trashed=True)})

    assert "part-0.zip/a/b.png: it was in the trash of Google Photos" in done.stderr
    assert stored(app) == {}


def test_in_a_terminal_a_zip_shows_its_rate_and_what_is_searchable(app, imported, monkeypatch):
    monkeypatch.setattr("click._termui_impl.isatty", lambda _stream: True)
    monkeypatch.setattr("commands.pace.LOOKS_AGAIN", 0.0)

    shown = imported({"Screenshot_1.png": picture("1"), "Screenshot_2.png": picture("2")}).output

    assert re.search(r"[0-9]+ files/s; searchable: 0 of 2", shown)


def test_only_files_of_a_name_are_taken(app, imported):
    files = {"Screenshot_1.png": picture("a"), "IMG_1.png": picture("b")}
    done = imported(files, arguments=["--name", "*screenshot*"])

    assert done.stdout.splitlines()[-1] == "1 imported, 0 already there, 1 of another name"
    assert list(stored(app)) == ["Screenshot_1.png"]


# ------------------------------------------------------------------------------------------------------ Apple


def test_times_and_favourites_of_apples_tables_come_along_and_deleted_pictures_are_left_out(app, imported):
    table = (
        "imgName,fileChecksum,favorite,hidden,deleted,originalCreationDate,viewCount,importDate\n"
        'IMG_1.PNG,abc=,yes,no,no,"Friday May 6,2022 7:08 AM GMT",3,"Friday May 6,2022 7:08 AM GMT"\n'
        'IMG_2.PNG,abd=,no,no,yes,"Friday May 6,2022 7:08 AM GMT",3,"Friday May 6,2022 7:08 AM GMT"\n'
    )
    more = table.splitlines()[0] + '\nIMG_3.PNG,abe=,no,no,no,"Sunday May 8,2022 11:59 PM GMT",0,""\n'
    done = imported(
        {
            "iCloud Photos/Photos/IMG_1.PNG": picture("1"),
            "iCloud Photos/Photos/IMG_2.PNG": picture("2"),
            "iCloud Photos/Photos/IMG_3.PNG": picture("3"),
            "iCloud Photos/Photos/Photo Details.csv": table,
            "iCloud Photos/Photos/Photo Details-1.csv": "\ufeff" + more,
            "__MACOSX/iCloud Photos/._IMG_1.PNG": b"hidden",
        }
    )

    assert "IMG_2.PNG: it was recently deleted at Apple" in done.stderr
    assert stored(app) == {
        "IMG_1.PNG": (datetime(2022, 5, 6, 7, 8), True, "", []),
        "IMG_3.PNG": (datetime(2022, 5, 8, 23, 59), False, "", []),
    }


# -------------------------------------------------------------------------------------------- damaged sources


def test_a_damaged_or_encrypted_picture_fails_alone_and_its_line_says_why(app, imported):
    content = picture("a" * 50)
    good = zipped({"a.png": content, "b.png": picture("b"), "c.png": picture("c")})
    damaged = good.replace(content[-60:], bytes(60), 1)
    locked = bytearray(damaged)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = [found.start() for found in re.finditer(re.escape(signature), damaged)][1]
        locked[place + offset] |= 1  # the flag of an encrypted file
    done = imported(bytes(locked), code=1)

    assert "a.png: it is damaged in the zip" in done.stderr
    assert "b.png: it is encrypted" in done.stderr
    assert done.stdout.splitlines()[-1] == "1 imported, 0 already there, 2 failed"
    assert list(stored(app)) == ["c.png"]


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04" + bytes(60)])
def test_what_is_no_zip_is_one_line(imported, content):
    done = imported(content, code=1)
    assert "this is no zip that can be read" in done.stderr
    assert "Traceback" not in done.output


def test_a_picture_that_unpacks_to_more_than_an_upload_may_have_is_refused_without_filling_the_memory(
    imported,
):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.png", "w") as file:
        file.write(picture("a"))
        for _ in range(60):
            file.write(bytes(1_048_576))
    assert len(out.getvalue()) < 100_000
    done = imported(out.getvalue(), code=1)
    assert "50 MB" in done.stderr


# ---------------------------------------------------------------------------------------------------- our own


def test_our_own_export_comes_back_with_everything_that_a_person_said(app, client, cli, tmp_path, settings):
    first = client.upload(
        picture("one"), device_id="phone", device_name="My phone", local_media_store_id="7"
    ).json["id"]
    other = client.upload(picture("two"), device_id="tablet", original_timestamp="1651820889000").json["id"]
    gone = client.upload(picture("gone"), device_id="phone", local_media_store_id="8").json["id"]
    client.patch(
        f"/api/photos/{first}",
        json={
            "kept": True, "tags": ["Trip", "Paris"], "note": "a note", "title": "My title",
            "summary": "My summary", "text": "My text",
            "records": [{"type": "Receipt", "fields": [
                {"name": "seller", "value": "REWE"},
                {"name": "total", "value": {"value": "23.80", "currency": "EUR"}},
            ]}],
        },
    )  # fmt: skip
    client.post(f"/api/photos/{gone}/trash")
    names = ("filename", "original_timestamp", "device_id", "device_name", "local_media_store_id", "kept")
    names += ("tags", "note", "title", "summary", "text", "own", "file_size", "source_type")

    def details():
        ids = [photo["id"] for photo in client.get("/api/photos?page_size=50").json["items"]]
        found = [client.get(f"/api/photos/{photo_id}").json for photo_id in ids]
        kept = [{name: one.get(name) for name in names} for one in found]
        for one, whole in zip(kept, found, strict=True):
            one["records"] = [
                {**record, "id": 0} for record in whole["records"] if record["source"] == "person"
            ]
        return sorted(kept, key=lambda one: one["device_id"])

    before = details()
    assert len(before) == 2
    export = tmp_path / "export.zip"
    export.write_bytes(client.get("/api/data/export").data)
    again = cli.invoke(args=["import", str(export)])
    assert "0 imported, 2 already there" in again.stdout, again.output
    for photo in (first, other):
        client.delete(f"/api/photos/{photo}")
    done = cli.invoke(args=["import", str(export)])

    assert done.exit_code == 0, done.output
    assert "2 imported" in done.stdout, done.output
    assert "conversations.json: only screenshots are imported" in done.stderr
    assert details() == before


# -------------------------------------------------------------------------------------------------- libraries


class _Library(http.server.BaseHTTPRequestHandler):
    """Immich and Karakeep, as their OpenAPI documents describe these calls."""

    protocol_version = "HTTP/1.1"

    def __init__(self, owner, *args):
        self.owner = owner
        super().__init__(*args)

    def log_message(self, *_):
        pass

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.owner.calls.append(f"{self.command} {self.path}")
        key = self.headers.get("x-api-key") or self.headers.get("Authorization", "").removeprefix("Bearer ")
        status, content = 401, b"{}"
        if key == "the-key":
            found = self.owner.answer(self.path, json.loads(body) if body else None)
            status, content = (404, b"{}") if found is None else (200, found)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class FakeLibrary(Loopback):
    def __init__(self, answer):
        self.calls = []
        self.answer = answer
        super().__init__(_Library)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


def asset(number, **more):
    """An AssetResponseDto of Immich."""
    return {
        "id": f"00000000-0000-4000-8000-{number:012}", "type": "IMAGE", "originalFileName": f"{number}.png",
        "fileCreatedAt": "2022-05-06T09:08:09.000+02:00", "isFavorite": number == 1, "isTrashed": False,
        "checksum": "", "exifInfo": {"description": f"Note {number}" if number == 2 else None},
        "tags": [{"id": "t", "name": "child", "value": "parent/child"}] if number == 3 else [], **more,
    }  # fmt: skip


def immich(path, body):
    if path == "/api/search/metadata":
        assert (body["type"], body["size"] <= 1_000) == ("IMAGE", True)
        page = [[asset(1), asset(2)], [asset(3), asset(4, isTrashed=True)]][body["page"] - 1]
        following = "2" if body["page"] == 1 else None
        assets = {"total": 2, "count": 2, "facets": [], "items": page, "nextPage": following}
        return json.dumps({"assets": assets, "albums": {}}).encode()
    wanted = re.fullmatch(r"/api/assets/00000000-0000-4000-8000-0*([0-9]+)/original", path)
    return picture(f"immich {wanted[1]}") if wanted else None


def bookmark(number, content, **more):
    return {
        "id": f"b{number}", "createdAt": "2022-05-06T07:08:09.000Z", "title": None, "note": None,
        "archived": False, "favourited": False, "tags": [], "assets": [], "content": content, **more,
    }  # fmt: skip


def image(number):
    return {"type": "asset", "assetType": "image", "assetId": f"a{number}", "fileName": f"{number}.png"}


def karakeep(path, _body):
    if path.startswith("/api/v1/bookmarks?"):
        if "cursor=next%2F1" in path:
            found = [bookmark(3, {"type": "link", "url": "https://example.org"}), bookmark(4, image(4))]
            return json.dumps({"bookmarks": found, "nextCursor": None}).encode()
        tags = [{"id": "t", "name": "Food", "attachedBy": "human"}]
        one = bookmark(1, image(1), title="A title", note="A note", favourited=True, tags=tags)
        return json.dumps({"bookmarks": [one, bookmark(2, image(2))], "nextCursor": "next/1"}).encode()
    wanted = re.fullmatch(r"/api/v1/assets/a([0-9]+)", path)
    return picture(f"karakeep {wanted[1]}") if wanted else None


@pytest.fixture
def from_library(cli, tmp_path):
    def run(name, address, key="the-key"):
        file = tmp_path / "key"
        file.write_text(f"{key}\n")
        return cli.invoke(
            args=["import", "--from", name, "--address", address, "--key-file", str(file)]
        )  # fmt: skip

    return run


def test_pictures_of_immich_come_with_times_stars_notes_and_tags_and_are_fetched_once(app, from_library):
    with FakeLibrary(immich) as server:
        done = from_library("immich", server.url)
        assert done.stdout.splitlines()[-1] == "3 imported, 0 already there, 1 left out", done.output
        assert "Immich/4.png: it is in the trash of Immich" in done.stderr
        server.calls.clear()
        again = from_library("immich", f"{server.url}/api/")
        assert again.stdout.splitlines()[-1] == "0 imported, 3 already there, 1 left out", again.output
        assert server.calls == ["POST /api/search/metadata"] * 2
    assert stored(app) == {
        "1.png": (TAKEN, True, "", []),
        "2.png": (TAKEN, False, "Note 2", []),
        "3.png": (TAKEN, False, "", ["parent/child"]),
    }


def test_pictures_of_karakeep_come_with_their_words_and_other_bookmarks_are_left_out(
    app, from_library, client
):
    with FakeLibrary(karakeep) as server:
        done = from_library("karakeep", server.url)
        assert done.stdout.splitlines()[-1] == "3 imported, 0 already there, 1 left out", done.output
        assert "it is a link, not a picture" in done.stderr
        server.calls.clear()
        again = from_library("karakeep", server.url)
        assert again.stdout.splitlines()[-1] == "0 imported, 3 already there, 1 left out", again.output
        assert not [call for call in server.calls if "/assets/" in call]
    assert stored(app)["1.png"] == (TAKEN, True, "A note", ["Food"])
    assert "A title" in [photo["title"] for photo in client.get("/api/photos").json["items"]]


@pytest.mark.parametrize("name", ["immich", "karakeep"])
def test_a_refused_key_another_server_and_none_are_one_line_each(from_library, name):
    with FakeLibrary(lambda _path, _body: b"<html>") as server:
        refused = from_library(name, server.url, key="wrong")
        other = from_library(name, server.url)
        address = server.url
    nobody = from_library(name, address)
    assert [done.exit_code for done in (refused, other, nobody)] == [1, 1, 1]
    assert "refuses the key" in refused.stderr
    assert "does not answer like" in other.stderr
    assert [len(done.stderr.strip().splitlines()) for done in (refused, other, nobody)] == [1, 1, 1]


# ------------------------------------------------------------------------------------------- for programs


def test_json_has_the_counts_and_a_reason_for_each_file_that_was_not_imported(cli, tmp_path):
    zips, _ = exports.takeout(tmp_path, 3)
    for arguments, imported, known in (["--dry-run"], 3, 1), ([], 3, 1), ([], 0, 4):
        done = cli.invoke(args=["import", "--json", *arguments, *map(str, zips)])
        said = json.loads(done.stdout)
        assert [named.pop("file").rpartition("/")[2] for named in said["files"]] == [
            "a film.mp4", "archive_browser.html"
        ]  # fmt: skip
        assert said == {
            "imported": imported, "already_there": known, "of_another_name": 0, "left_out": 2, "failed": 0,
            "dry_run": bool(arguments), "stopped": False,
            "files": [{"result": "left out", "reason": "it is not a picture"}] * 2,
        }  # fmt: skip


def test_json_of_a_library_and_of_a_failure(cli, tmp_path, imported):
    failed = json.loads(imported({"a.png": picture("a" * 50)[:-20]}, arguments=["--json"], code=1).stdout)
    assert (failed["imported"], failed["failed"]) == (0, 1)
    assert "damaged" in failed["files"][0]["reason"]
    (tmp_path / "key").write_text("the-key")
    with FakeLibrary(immich) as server:
        options = ("--from", "immich", "--address", server.url, "--key-file", str(tmp_path / "key"))
        found = json.loads(cli.invoke(args=["import", "--json", *options]).stdout)
    assert (found["imported"], found["left_out"]) == (3, 1)


@pytest.mark.slow
def test_in_a_terminal_json_goes_to_a_pipe_alone_and_ctrl_c_is_said_in_it(tmp_path):
    zips, _ = exports.takeout(tmp_path, 300)
    inner, outer = pty.openpty()
    process = run_of_import(tmp_path / "data", zips, "--json", stdout=subprocess.PIPE, stderr=outer)
    os.close(outer)
    eventually(lambda: files_below(tmp_path / "data" / "photos") >= 10, "some are stored", every=0.02)
    process.send_signal(signal.SIGINT)
    seen = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(inner, 65_536):
            seen += part
    os.close(inner)
    said = json.loads(process.communicate(timeout=60)[0])

    assert process.returncode == 130
    assert said["stopped"]
    assert 4 <= said["imported"] + said["already_there"] < 300
    assert b"files/s" in seen
    assert b"run the same command again" in seen


# ------------------------------------------------------------------------------------------------------ kills


MOST_MORE = 60  # MB


def run_of_import(data, zips, *arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE):
    """An import as a process of its own."""
    environment = {"PATH": os.defpath, f"{PREFIX}DATA_DIR": str(data), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, str(ROOT / "snaplore"), "import", *map(str, zips), *arguments]
    return subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr)


def peak(process):
    """The most memory that a running process has had, in MB; 0 once it has ended. What the system reports at
    its end counts from the memory of the process that started it.
    """
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+([0-9]+) kB", status)
    return int(found[1]) // 1024 if found else 0


def peak_until_the_end(process):
    most = 0
    while process.poll() is None:
        most = max(most, peak(process))
        time.sleep(0.02)
    assert process.returncode == 0, process.stderr.read()
    process.stderr.close()
    return most


def files_below(folder):
    """The number of files in the folders of a folder."""
    if not folder.is_dir():
        return 0
    return sum(sum(1 for _ in os.scandir(below)) for below in os.scandir(folder))


@pytest.mark.slow
def test_an_import_that_is_killed_anywhere_and_run_again_loses_nothing_and_stores_nothing_twice(tmp_path):
    """PICTURES and PAST_KILLS choose other numbers; the figures in the documents are of 10,000 and 50."""
    count, kills = int(os.environ.get("PICTURES", "150")), int(os.environ.get("PAST_KILLS", "10"))
    few = tmp_path / "few"
    few.mkdir()
    little = peak_until_the_end(run_of_import(few / "data", exports.takeout(few, 2)[0]))
    zips, expected = exports.takeout(tmp_path, count, parts=3)
    data = tmp_path / "data"
    chance = random.Random(7)
    most = 0
    for target in sorted(chance.sample(range(1, count), kills)):
        process = run_of_import(data, zips)
        # Each picture is two files. To count them must not take the import's processor.
        eventually(
            lambda target=target: files_below(data / "photos") >= 2 * target,
            f"{target} pictures are stored", every=count / 100_000, patience=600,
        )  # fmt: skip
        time.sleep(chance.uniform(0, 0.05))
        most = max(most, peak(process))
        process.kill()
        process.wait(60)
        process.stderr.close()
    began = time.monotonic()
    most = max(most, peak_until_the_end(run_of_import(data, zips)))
    print(
        f"{kills} kills; the last run took {time.monotonic() - began:.0f} s; an import of 2 pictures took "
        f"{little} MB at most, these of {count} {most} MB"
    )
    assert most <= little + MOST_MORE
    environment = {"PATH": os.defpath, f"{PREFIX}DATA_DIR": str(data), "LC_ALL": "C.UTF-8"}
    checking = [sys.executable, str(ROOT / "snaplore"), "check"]
    checked = subprocess.run(
        checking, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert checked.returncode == 0, checked.stdout

    exporting = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from app import create_app
from settings import Settings
import database, json
from models import Photo, Shown
create_app(Settings.from_environ(os.environ))
with database.scope():
    for row in Shown.select(Shown, Photo).join(Photo):
        print(json.dumps([row.photo.filename, row.taken_at.isoformat(), row.kept, row.note]))
"""
    listed = subprocess.run(
        [sys.executable, "-c", exporting],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    found = {name: (datetime.fromisoformat(taken), kept, note) for name, taken, kept, note in rows}
    assert len(rows) == len(found)
    assert found == expected
