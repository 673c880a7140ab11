"""The command line: importing a folder repeatedly, the jobs of cron, and showing the key."""

import contextlib
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image

import database
import models
from app import create_app
from clock import utc_now
from database import db
from locks import named_lock
from models import Memory, Photo
from settings import ROOT, Settings
from tests.support.client import Client
from tests.support.drawing import draw
from tests.support.service import PATIENCE, Service, eventually


@pytest.fixture
def folder(tmp_path):
    """A realistic folder: screenshots at several depths, among other files."""
    root = tmp_path / "Pictures"
    (root / "2024" / "May").mkdir(parents=True)
    (root / ".thumbnails").mkdir()
    (root / "a.png").write_bytes(draw("a"))
    (root / "2024" / "b.jpg").write_bytes(draw("b", format="JPEG"))
    (root / "2024" / "May" / "c.webp").write_bytes(draw("c", format="WEBP"))
    (root / "no-extension").write_bytes(draw("d", format="GIF"))
    (root / "notes.txt").write_text("no picture")
    (root / "named-like-one.png").write_text("no picture either")
    (root / "cut.png").write_bytes(draw("cut off")[:-500])
    (root / ".thumbnails" / "hidden.png").write_bytes(draw("hidden"))
    (root / "link.png").symlink_to(root / "a.png")
    return root


def test_importing_stores_every_picture_once_and_sums_up(client, cli, folder):
    result = cli.invoke(args=["import", str(folder)])

    assert result.output.splitlines()[-1] == "4 imported, 0 already there, 2 left out, 1 failed"
    assert "cut.png: file: the picture is damaged or cut off" in result.output
    assert result.exit_code == 1
    names = {item["filename"] for item in client.get("/api/photos").json["items"]}
    assert names == {"a.png", "b.jpg", "c.webp", "no-extension"}
    assert client.get("/api/photos?device_id=import&status=pending").json["total"] == 4


def test_importing_again_skips_stored_pictures_even_if_they_were_moved(client, cli, folder):
    cli.invoke(args=["import", str(folder)])
    (folder / "cut.png").unlink()
    (folder / "a.png").rename(folder / "2024" / "renamed.png")
    (folder / "2024" / "new.png").write_bytes(draw("new"))
    result = cli.invoke(args=["import", str(folder)])

    assert result.output.splitlines()[-1] == "1 imported, 4 already there, 2 left out"
    assert result.exit_code == 0
    assert client.get("/api/photos").json["total"] == 5


@pytest.mark.slow
def test_on_a_terminal_an_import_ends_with_the_next_step_and_where_to_look(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(draw("a"))
    settings = {"SNAPLORE_DATA_DIR": str(tmp_path / "data"), "SNAPLORE_BIND": "192.0.2.7:8000"}
    shown, code = on_a_terminal("import", str(tmp_path / "in"), **settings)

    assert code == 0, shown
    counts, searchable, step, place, kept = shown.splitlines()[-5:]
    assert counts == "1 imported, 0 already there"
    assert searchable == "Searchable: 0 of 1."
    assert "start it" in step
    assert "http://192.0.2.7:8000" in place
    assert kept.startswith("Snaplore keeps everything for 30 days, then deletes it; ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [("notes.txt", "name a folder with JPEG"), (None, "has no files. Next: name the folder")],
)
def test_an_import_that_finds_no_picture_says_what_to_do(tmp_path, name, step):
    (tmp_path / "in").mkdir()
    if name:
        (tmp_path / "in" / name).write_text("no picture")
    settings = {"SNAPLORE_DATA_DIR": str(tmp_path / "data"), "SNAPLORE_BIND": "0.0.0.0:8000"}
    shown, code = on_a_terminal("import", str(tmp_path / "in"), **settings)

    assert code == 0, shown
    assert step in shown.splitlines()[-1]


def test_the_time_of_a_screenshot_is_that_of_its_metadata_else_of_its_file(client, cli, tmp_path):
    exif = Image.Exif()
    exif.get_ifd(0x8769).update({0x9003: "2024:03:01 12:00:00", 0x9011: "+01:00"})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "exif.jpg").write_bytes(draw("exif", format="JPEG", exif=exif))
    (tmp_path / "in" / "file.png").write_bytes(draw("file"))
    os.utime(tmp_path / "in" / "file.png", (0, datetime(2023, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()))
    cli.invoke(args=["import", str(tmp_path / "in")])

    times = {item["filename"]: item["original_timestamp"] for item in client.get("/api/photos").json["items"]}
    assert times == {"exif.jpg": "2024-03-01T11:00:00.000", "file.png": "2023-05-06T07:08:09.000"}


def test_imported_files_are_filed_under_the_named_device(client, cli, folder):
    cli.invoke(args=["import", str(folder), "--device-id", "old_phone", "--device-name", "My old phone"])

    device = client.get("/api/photos/devices").json["devices"][0]
    assert (device["device_id"], device["device_name"], device["total_synced"]) == (
        "old_phone",
        "My old phone",
        4,
    )
    bad = cli.invoke(args=["import", str(folder), "--device-id", "has space"])
    assert bad.exit_code != 0
    assert "device" in bad.output


def test_the_services_own_data_is_never_imported(client, cli, settings):
    client.upload(draw())
    result = cli.invoke(args=["import", str(settings.data_dir.parent)])

    assert result.output.splitlines()[-1].startswith("0 imported")
    for folder in (settings.data_dir, settings.data_dir / "photos"):
        refused = cli.invoke(args=["import", str(folder)])
        assert (refused.exit_code, refused.output) == (
            1,
            "Error: FOLDER: the service's own data is not imported\n",
        )


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGKILL, signal.SIGINT])
def test_an_import_that_was_stopped_continues_where_it_was(tmp_path, ended_by):
    source = tmp_path / "in"
    source.mkdir()
    for number in range(60):
        (source / f"{number}.png").write_bytes(draw(f"Number {number}"))
    environ = {**_clean_environment(), "SNAPLORE_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "flask", "--app", "app", "import", str(source)]
    first = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        photos = tmp_path / "data" / "photos"
        while first.poll() is None and (
            not photos.exists() or sum(path.is_file() for path in photos.rglob("*")) < 10
        ):
            pass
    finally:
        first.send_signal(ended_by)
        output, _ = first.communicate()
    if ended_by == signal.SIGINT:
        assert first.returncode == 130, output
        *_, counts, how_to_go_on = output.decode().splitlines()
        assert re.fullmatch("\\d+ imported, 0 already there", counts)
        assert how_to_go_on.startswith("Stopped. To go on, run the same command again")
    second = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )

    assert second.returncode == 0, second.stdout + second.stderr
    counts = dict(reversed(part.split(" ", 1)) for part in second.stdout.splitlines()[-1].split(", "))
    assert int(counts["imported"]) + int(counts["already there"]) == 60
    assert int(counts["already there"]) >= 4


# -------------------------------------------------------------------------------------------- hostile folders


def importing(folder, tmp_path, *before):
    """A process that imports a folder."""
    environ = {**_clean_environment(), "SNAPLORE_DATA_DIR": str(tmp_path / "data")}
    command = [*before, sys.executable, "-m", "flask", "--app", "app", "import", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def imported(folder, tmp_path, *before, within=PATIENCE):
    """Import a folder: the exit code, the lines of failures, and the last line."""
    with importing(folder, tmp_path, *before) as process:
        try:
            return result(process, *process.communicate(timeout=within))
        finally:
            process.kill()


def result(process, output, errors):
    assert b"Traceback" not in errors, errors.decode()
    return process.returncode, errors.decode().splitlines(), output.decode().splitlines()[-1]


def stored_names(tmp_path):
    """The stored photos' names, as the service lists them."""
    try:
        items = (
            Client(create_app(Settings(data_dir=tmp_path / "data"))).get("/api/photos?size=100").json["items"]
        )
        return sorted(item["filename"] for item in items)
    finally:
        database.close_store()


@pytest.fixture
def source(tmp_path):
    """A folder with one picture in it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good.png").write_bytes(draw("good"))
    return tmp_path / "in"


@pytest.mark.slow
def test_links_and_what_is_no_file_are_neither_followed_nor_waited_for(source, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "foreign.png").write_bytes(draw("foreign"))
    for name, target in {
        "inside.png": source / "good.png", "outside.png": outside / "foreign.png", "folder": outside,
        "loop": source, "itself": source / "itself", "dangling.png": source / "none", "etc": Path("/etc"),
        "zero.png": Path("/dev/zero"),
    }.items():  # fmt: skip
        (source / name).symlink_to(target)
    os.mkfifo(source / "fifo.png")
    with contextlib.suppress(PermissionError):  # only root can make devices
        os.mknod(source / "device.png", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket.png"))
        assert imported(source, tmp_path) == (0, [], "1 imported, 0 already there")
    assert stored_names(tmp_path) == ["good.png"]


@pytest.mark.slow
def test_names_of_any_bytes_are_imported_and_shown_as_one_line_of_text(source, tmp_path):
    names = (
        b"line\nbreak.png",
        b"\x1b]0;title\x07.png",
        b"\xff\xfe.png",
        "\u202egnp.exe".encode(),
        b"x" * 251 + b".png",
    )
    for number, name in enumerate(names):
        Path(os.fsdecode(bytes(source) + b"/" + name)).write_bytes(draw(f"Number {number}"))
    (source / "cut\n\x1b[2J.png").write_bytes(draw("cut")[:-200])
    Path(os.fsdecode(bytes(source) + b"/cut\xff.png")).write_bytes(draw("cut")[:-200])
    code, failures, counts = imported(source, tmp_path)

    assert (code, counts) == (1, "6 imported, 0 already there, 2 failed")
    assert [line.partition(": file: ")[0] for line in failures] == [
        f"{source}/cut\\n\\x1b[2J.png", f"{source}/cut\\udcff.png",
    ]  # fmt: skip
    assert stored_names(tmp_path) == sorted(
        ["good.png", "linebreak.png", "]0;title.png", ".png", "gnp.exe", "x" * 251 + ".png"]
    )


@pytest.mark.slow
def test_a_picture_under_a_thousand_folders_is_imported(source, tmp_path):
    folder = os.open(source, os.O_DIRECTORY)
    for _ in range(1_000):
        os.mkdir("d" * 50, dir_fd=folder)
        inner = os.open("d" * 50, os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = inner
    with open(os.open("deep.png", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "wb") as file:
        file.write(draw("deep"))
    os.mkfifo("fifo", dir_fd=folder)
    os.close(folder)

    try:
        assert imported(source, tmp_path, within=4 * PATIENCE) == (0, [], "2 imported, 0 already there")
    finally:
        subprocess.run(["rm", "-rf", source], check=True)  # Python's own cannot go so deep
    assert stored_names(tmp_path) == ["deep.png", "good.png"]


@pytest.mark.slow
def test_of_many_files_that_are_no_pictures_the_first_are_named(source, tmp_path):
    for number in range(8):
        (source / f"{number}.txt").write_text("not a picture")
    code, failures, counts = imported(source, tmp_path)

    named = [f"{source}/{number}.txt: it is not a picture" for number in range(5)]
    assert failures == [*named, "... and 3 more not pictures"]
    assert (code, counts) == (0, "1 imported, 0 already there, 8 left out")


@pytest.mark.slow
def test_a_huge_or_an_empty_file_costs_no_memory(source, tmp_path):
    heads = {
        "huge.png": draw("head"),
        "huge.webp": draw("head", format="WEBP")[:64],
        "film.mp4": b"\0\0\0\x18ftyp",
    }
    for name, head in heads.items():
        with (source / name).open("wb") as file:
            file.write(head)
            file.truncate(100 * 1024**3)
    (source / "empty.png").touch()
    (source / "hard.png").hardlink_to(source / "good.png")
    code, failures, counts = imported(source, tmp_path, "prlimit", f"--as={3 * 1024**3}")

    too_large = [f"{source}/{name}: file: is larger than 50 MB" for name in ("huge.png", "huge.webp")]
    no_pictures = [f"{source}/{name}: it is not a picture" for name in ("empty.png", "film.mp4")]
    assert (code, failures) == (1, [*no_pictures, *too_large])
    assert counts == "1 imported, 1 already there, 2 left out, 2 failed"


@pytest.mark.slow
def test_a_file_with_an_impossible_date_is_imported_as_of_now(source, tmp_path):
    os.utime(source / "good.png", ns=(0, 2**62))
    for name, seconds in {"future.png": 10**12, "past.png": -(10**12)}.items():
        (source / name).write_bytes(draw(name))
        with contextlib.suppress(OSError):  # some file systems take no such date
            os.utime(source / name, (0, seconds))

    assert imported(source, tmp_path) == (0, [], "3 imported, 0 already there")


@pytest.mark.slow
def test_what_cannot_be_read_is_named_and_the_rest_is_imported(source, tmp_path):
    (source / "closed").mkdir()
    (source / "closed" / "picture.png").write_bytes(draw("closed"))
    (source / "closed").chmod(0)
    (source / "secret.png").write_bytes(draw("secret"))
    (source / "secret.png").chmod(0)
    without_override = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]  # root reads everything
    found = imported(source, tmp_path, *(without_override if os.geteuid() == 0 else ()))
    (source / "closed").chmod(0o700)

    failures = [f"{source}/{name}: Permission denied" for name in ("secret.png", "closed")]
    assert found == (1, failures, "1 imported, 0 already there, 2 failed")


@pytest.mark.slow
def test_what_changes_after_it_was_listed_is_named_and_neither_followed_nor_waited_for(source, tmp_path):
    (tmp_path / "outside").mkdir()
    for path in ("outside/foreign.png", *(f"in/{name}" for name in ("link.png", "gone.png", "pipe.png"))):
        (tmp_path / path).write_bytes(draw(path))
    (source / "zone").mkdir()
    (source / "zone" / "foreign.png").write_bytes(draw("zone"))
    for number in range(40):  # the import is stopped while it stores these
        (source / f"first-{number}.png").write_bytes(draw(f"Number {number}"))
    photos = tmp_path / "data" / "photos"
    with ThreadPoolExecutor() as threads, importing(source, tmp_path) as process:
        run = threads.submit(process.communicate, timeout=PATIENCE)
        eventually(lambda: any(path.is_file() for path in photos.rglob("*")), "the first picture is stored")
        process.send_signal(signal.SIGSTOP)
        try:
            for name in ("link.png", "gone.png", "pipe.png", "zone/foreign.png"):
                (source / name).unlink()
            (source / "zone").rmdir()
            (source / "link.png").symlink_to(tmp_path / "outside" / "foreign.png")
            os.mkfifo(source / "pipe.png")
            (source / "zone").symlink_to(tmp_path / "outside")
        finally:
            process.send_signal(signal.SIGCONT)
        code, failures, counts = result(process, *run.result())

    assert (code, counts) == (1, "41 imported, 0 already there, 4 failed")
    assert failures == [
        f"{source}/gone.png: No such file or directory",
        f"{source}/link.png: has become something other than a file",
        f"{source}/pipe.png: has become something other than a file",
        f"{source}/zone: Not a directory",
    ]
    assert not [name for name in stored_names(tmp_path) if not name.startswith(("first-", "good"))]


MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_maxrss // 1024} MB", file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.slow
def test_100_000_files_are_imported_in_little_memory(source, tmp_path):
    for number in range(100):
        (source / f"{number}").mkdir()
        for file in range(1_000):
            (source / f"{number}" / f"{file}.txt").write_bytes(b"no picture")
    code, (*_, most), counts = imported(source, tmp_path, sys.executable, "-c", MEASURED, within=8 * PATIENCE)
    print(most)

    assert (code, counts) == (0, "1 imported, 0 already there, 100000 left out")
    assert int(most.split()[0]) < 200


@pytest.mark.slow
def test_only_the_owner_can_read_the_files_that_a_command_creates(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.png").write_bytes(draw("a"))
    environ = {**_clean_environment(), "SNAPLORE_DATA_DIR": str(tmp_path / "data")}
    for arguments in (["import", str(tmp_path / "in")], ["jobs", "rotate-keys", "--force"]):
        command = [sys.executable, "-m", "flask", "--app", "app", *arguments]
        run = subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, timeout=120, check=False, umask=0o022
        )
        assert run.returncode == 0, run.stderr
    data = tmp_path / "data"
    modes = {path.relative_to(data): path.stat().st_mode & 0o077 for path in (data, *data.rglob("*"))}
    assert [str(path) for path, mode in modes.items() if mode] == []


def test_a_command_restores_the_umask_of_its_process(cli):
    before = os.umask(0o022)
    try:
        cli.invoke(args=["jobs", "decay"])
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_clean_up_reports_in_one_line_what_it_deleted_or_in_a_dry_run_would_delete(client, cli):
    picture = draw(size=(800, 800), compress_level=0)
    client.upload(picture)
    with database.scope():
        Photo.update(created_at=utc_now() - timedelta(days=31)).execute()
        Memory.create(content="Expired", memory_type="short_term", created_at=utc_now(), expires_at=utc_now())

    dry = cli.invoke(args=["jobs", "cleanup", "--dry-run"])
    assert (dry.exit_code, dry.stderr) == (0, "")
    assert (
        untimed(dry)
        == "cleanup: 1 photos, 0 from the trash, 0 conversations, 0 notes, 1 memories, 0 orphaned files, "
        "1.8 MB would be freed\n"
    )
    assert client.get("/api/photos").json["total"] == 1

    run = cli.invoke(args=["jobs", "cleanup"])
    assert run.exit_code == 0
    assert untimed(run) == untimed(dry).replace("would be ", "")
    assert client.get("/api/photos").json["total"] == 0
    assert cli.invoke(args=["jobs", "cleanup"]).stdout.startswith(
        "cleanup: 0 photos, 0 from the trash, 0 conversations, 0 notes, 0 memories, 0 orphaned"
    )


def test_decay_reports_in_one_line_and_a_second_run_does_nothing(app, cli):
    now = utc_now()
    with database.scope():
        Memory.create(content="Expired", memory_type="short_term", created_at=now, expires_at=now)
        Memory.create(
            content="Lasting", memory_type="long_term", importance=0.9, created_at=now - timedelta(days=3)
        )
        models.store_value("memory.decayed_at", (now - timedelta(days=2, hours=1)).isoformat())

    run = cli.invoke(args=["jobs", "decay"])
    assert (run.exit_code, untimed(run)) == (0, "decay: 1 expired memories deleted, 1 faded by 2 days\n")
    assert untimed(cli.invoke(args=["jobs", "decay"])) == "decay: 0 expired memories deleted, 0 faded\n"


def test_reason_writes_notes_about_new_data_of_the_named_device(
    remote, fake_llm, work_queue, clock, make_photo
):
    app = create_app(remote)
    cli = app.test_cli_runner()
    client = Client(app)
    client.upload(make_photo(), device_id="phone")
    work_queue(remote, clock=clock)
    asked = len(fake_llm.requests)

    other = cli.invoke(args=["jobs", "reason", "--device-id", "tablet"])
    assert (other.exit_code, untimed(other)) == (0, "reason: 0 new notes\n")
    assert len(fake_llm.requests) == asked
    fake_llm.answer({"articles": [{"title": "A book is due", "content": "On Friday.", "photo_ids": [1]}]})
    run = cli.invoke(args=["jobs", "reason", "--device-id", "phone"])
    assert (run.exit_code, untimed(run), run.stderr) == (0, "reason: 1 new notes\n", "")
    assert "A book is due" in client.get("/api/dynamics").get_data(as_text=True)


def test_a_model_that_fails_makes_reason_fail_in_one_line(remote, fake_llm, work_queue, clock, make_photo):
    app = create_app(remote)
    Client(app).upload(make_photo())
    work_queue(remote, clock=clock)
    fake_llm.default = lambda request: "no notes here"
    run = app.test_cli_runner().invoke(args=["jobs", "reason"])

    assert (run.exit_code, run.stdout) == (1, "")
    assert run.stderr.startswith("Error: reason: ")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["reason", "remind", "decay", "cleanup"])
def test_a_run_exits_with_success_while_another_one_is_in_progress(app, cli, settings, name):
    with named_lock(settings.data_dir / "jobs", name, 0, busy="busy"):
        run = cli.invoke(args=["jobs", name])
        assert (run.exit_code, run.stdout, run.stderr) == (0, f"{name}: another run is in progress\n", "")
    after = cli.invoke(args=["jobs", name])
    assert after.exit_code == 0
    assert "in progress" not in after.stdout


def test_a_database_that_stays_locked_makes_a_job_fail_in_one_line(app, cli):
    with _writer_that_does_not_end():
        with database.scope():
            db.execute_sql("PRAGMA busy_timeout = 1")
        run = cli.invoke(args=["jobs", "decay"])

    assert (run.exit_code, run.stdout) == (1, "")
    assert run.stderr == "Error: decay: The database is busy. Please come again in a moment.\n"


@pytest.mark.slow
def test_progress_bars_are_shown_on_a_terminal_only(client, cli, tmp_path):
    client.upload(draw())
    database.close_connections()
    shown, code = on_a_terminal("jobs", "cleanup", SNAPLORE_DATA_DIR=str(tmp_path / "data"))
    assert code == 0, shown
    assert "files  [" in shown
    assert "100%" in shown
    assert shown.splitlines()[-1].startswith("cleanup: 0 photos")

    environ = {**_clean_environment(), "SNAPLORE_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "flask", "--app", "app", "jobs", "cleanup"]
    mailed = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    line = (
        "cleanup: 0 photos, 0 from the trash, 0 conversations, 0 notes, 0 memories, 0 orphaned files, "
        "0.0 MB freed\n"
    )
    assert untimed(mailed) == line
    assert (mailed.returncode, mailed.stderr) == (0, "")


def test_the_key_is_shown_as_clients_send_it(app, cli):
    assert cli.invoke(args=["keys", "show-api-key"]).output.strip() == app.api_key
    hint = cli.invoke(args=["keys", "show-api-key", "--hint"]).output

    assert "http://127.0.0.1:8000" in hint
    assert f"Authorization: Bearer {app.api_key}" in hint


def test_the_version_is_printed(cli):
    assert cli.invoke(args=["version"]).output.startswith("Snaplore ")


@pytest.mark.slow
def test_a_refusal_to_start_is_one_line_on_the_command_line(tmp_path):
    environ = {
        **_clean_environment(),
        "SNAPLORE_DATA_DIR": str(tmp_path / "data"),
        "SNAPLORE_RETENTION_DAYS": "soon",
    }
    result = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", "keys", "show-api-key"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode != 0
    assert result.stderr.strip().splitlines() == [
        "Snaplore cannot start: SNAPLORE_RETENTION_DAYS: must be a whole number from 0 to 36500"
    ]
    assert not (tmp_path / "data").exists()


@contextlib.contextmanager
def _writer_that_does_not_end():
    writing, done = threading.Event(), threading.Event()

    def write():
        with database.scope(), db.atomic():
            writing.set()
            done.wait(90)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert writing.wait(90)
        yield
    finally:
        done.set()
        thread.join()


def untimed(run):
    """The line that a job printed, without its duration."""
    line, how_long = run.stdout.rsplit(" (", 1)
    assert re.fullmatch(r"\d+\.\d s\)\n", how_long)
    return line + "\n"


def on_a_terminal(*arguments, **environ):
    """The output of a command on a terminal, and its exit code."""
    command = [sys.executable, "-m", "flask", "--app", "app", *arguments]
    screen, terminal = pty.openpty()
    try:
        environ = {**_clean_environment(), "TERM": "xterm", **environ}
        run = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdin=terminal, stdout=terminal, stderr=terminal
        )
        os.close(terminal)
        shown = _read_to_the_end(screen)
        return shown, run.wait(90)
    finally:
        os.close(screen)


def _read_to_the_end(screen):
    shown = b""
    with contextlib.suppress(OSError):  # Linux raises this when the terminal is closed
        while part := os.read(screen, 4096):
            shown += part
    return shown.decode()


def _clean_environment():
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("SNAPLORE_", "PYTEST_"))
    }


def test_a_cycle_of_cron_waits_for_one_that_the_service_runs(tmp_path, fake_llm):
    with (
        Service(
            tmp_path, dev_mode="true", api_key="key", llm_base_url=fake_llm.url, llm_model="m"
        ) as service,
        ThreadPoolExecutor() as threads,
    ):
        service.upload(draw())
        service.wait_until_analysed()
        let_go = threading.Event()
        fake_llm.answer({"articles": []}, after=let_go)
        try:
            triggered = threads.submit(service.call, "POST", "/api/dynamics/trigger")
            fake_llm.wait_for_requests(2)
            job = threads.submit(service.run, "flask", "--app", "app", "jobs", "reason")
            eventually((service.data / "reasoner" / "waiting").exists, "the job waits")
            assert not triggered.done()
            assert len(fake_llm.requests) == 2
        finally:
            let_go.set()

        assert triggered.result().json() == {"generated": 0, "articles": []}
        assert (job.result().returncode, untimed(job.result())) == (0, "reason: 0 new notes\n")
    assert len(fake_llm.requests) == 2
