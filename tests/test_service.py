"""Starting, refusing to start, ending, and speaking HTTP: the real server, whatever analyses the pictures."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import psutil
import pytest

from settings import NAME, ROOT, VERSION
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import HeldUpload, Service, alive, eventually

ALLOWED = "https://dashboard.example"


# ------------------------------------------------------------------------------------------------------ start


@pytest.mark.slow
def test_gunicorn_alone_starts_a_closed_service_whose_key_the_command_line_tells(tmp_path):
    with Service(tmp_path) as service:
        assert service.knock("GET", "/").json() == {"name": NAME, "version": VERSION, "status": "running"}
        assert service.knock("GET", "/api/health").json() == {"status": "ok"}
        assert service.knock("GET", "/api/photos").status_code == 401
        shown = service.run("flask", "--app", "app", "keys", "show-api-key")
        assert (shown.returncode, shown.stderr) == (0, "")
        assert (
            service.call(
                "GET", "/api/photos", headers={"Authorization": f"Bearer {shown.stdout.strip()}"}
            ).json()["total"]
            == 0
        )
        assert shown.stdout.strip() not in service.output
        assert stat.S_IMODE(service.data.stat().st_mode) == 0o700
        assert stat.S_IMODE((service.data / "keys" / "master.key").stat().st_mode) == 0o600
        assert len(service.workers) == 1


@pytest.mark.slow
@pytest.mark.parametrize("program", ["service", "command"])
def test_under_any_umask_only_the_owner_may_read_the_data(tmp_path, program):
    data, pictures = tmp_path / "data", tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "one.png").write_bytes(draw("Private"))
    command = {
        "service": (Path(sys.executable).with_name("gunicorn"), "--check-config"),
        "command": (ROOT / "snaplore", "import", pictures, "--device-id", "desk"),
    }[program]
    environment = {**os.environ, "SNAPLORE_DATA_DIR": str(data)}
    subprocess.run(command, cwd=ROOT, env=environment, umask=0, check=True, capture_output=True, timeout=120)
    open_to_others = [path for path in (data, *data.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert open_to_others == []
    assert list((data / "database").iterdir())


def test_the_address_on_the_command_line_wins_over_the_setting(tmp_path):
    with socket.socket() as taken, socket.socket() as kept_free:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        # Bound and not listening, with this option: nobody gets the port by chance, and who asks for it does.
        kept_free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept_free.bind(("127.0.0.1", 0))
        port = kept_free.getsockname()[1]
        with Service(
            tmp_path, "-b", f"127.0.0.1:{port}", bind=f"127.0.0.1:{taken.getsockname()[1]}"
        ) as service:
            assert service.port == port


def test_the_log_has_a_line_for_an_upload_and_one_for_its_analysis_and_no_content(tmp_path):
    with (
        FakeLLM() as model,
        Service(tmp_path, dev_mode="true", api_key="key", llm_base_url=model.url, llm_model="m") as service,
    ):
        for _ in range(2):
            service.upload(
                draw("quicksilver"),
                "divorce-papers.png",
                device_id="pixel_8",
                device_name="Annas",
                local_media_store_id="secret-77",
            )
        eventually(lambda: "analysed" in service.output, "the photo is analysed")
        about = sorted(re.findall(r"(?m)^.* INFO (?:uploads|analysis[.a-z]*): (photo .*)$", service.output))
        told = ("quicksilver", "divorce", "pixel", "Annas", "secret-77")
        contents = (*told, FINDINGS["app_name"], FINDINGS["summary"], *FINDINGS["visible_text"].splitlines())
        assert not [content for content in contents if content in service.output]
    assert len(about) == 3
    assert re.fullmatch(r"photo 1 analysed: done, \d+\.\d\d s", about[0])
    assert about[1] == "photo 1 uploaded again: nothing is stored"
    assert re.fullmatch(r"photo 1 uploaded: \d+ bytes, \d+\.\d\d s", about[2])


@pytest.mark.slow
@pytest.mark.parametrize("named", ["by the setting", "on the command line"])
def test_an_address_that_is_taken_is_one_line_that_names_it_and_the_setting(tmp_path, named):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        service = Service(tmp_path, bind=address if named == "by the setting" else "127.0.0.1:0")
        ended = service.run("gunicorn", *(() if named == "by the setting" else ("-b", address)))

    assert ended.returncode == 1
    said = [
        line
        for line in (ended.stdout + ended.stderr).splitlines()
        if " INFO" not in line and "[INFO]" not in line
    ]
    assert said == [
        f"{NAME} cannot start: cannot listen on {address}: Address already in use. "
        "Stop the program that listens there, or set SNAPLORE_BIND to another address, like 127.0.0.1:8001."
    ]


def test_an_address_that_is_not_this_machines_is_one_line_too(tmp_path):
    ended = Service(tmp_path, bind="192.0.2.1:8000").run("gunicorn")

    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"{NAME} cannot start: cannot listen on 192.0.2.1:8000: ")
    assert "SNAPLORE_BIND" in ended.stderr.splitlines()[-1]


def test_make_run_prints_the_key_once_the_service_listens(tmp_path):
    make = ["make", "--dry-run", "--no-print-directory", "run"]
    recipe = subprocess.run(
        make, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    ).stdout.splitlines()[-1]
    assert shlex.split(recipe) == ["exec", "./snaplore", "serve"]  # which starts the server like this:
    with Service(tmp_path, "--env", "SHOW_API_KEY=1") as service:
        assert service.output.index("Listening at: ") < service.output.index(
            f"{NAME} {VERSION} at {service.url}\n"
        )
        assert f"API key: {service.key}\n" in service.output


@pytest.mark.parametrize(
    "program", [("gunicorn",), ("flask", "--app", "app", "keys", "show-api-key")], ids=["gunicorn", "flask"]
)
def test_a_setting_that_cannot_be_read_stops_the_start_with_one_line_that_names_it(program, tmp_path):
    ended = Service(tmp_path).run(*program, retention_days="soon")
    assert ended.returncode != 0
    assert (
        ended.stdout + ended.stderr
        == f"{NAME} cannot start: SNAPLORE_RETENTION_DAYS: must be a whole number from 0 to 36500\n"
    )
    assert not (tmp_path / "data").exists()


@pytest.fixture(scope="module")
def kept_data(tmp_path_factory):
    """A data folder with a photo in it, and the photo's bytes."""
    folder = tmp_path_factory.mktemp("kept")
    with Service(folder, api_key="kept") as service:
        picture = draw("Kept")
        service.upload(picture)
        assert service.stop() == 0
        return service.data, picture


def remove(*names):
    return lambda data: [path.unlink() for name in names for path in data.glob(name)]


def overwrite(name, content):
    def act(data):
        for path in data.glob(name):
            path.write_bytes(content(path.read_bytes()))

    return act


REFUSALS = {
    "the master key is gone": (remove("keys/master.key"), {}, "master.key is not there"),
    "the master key is another one": (
        overwrite("keys/master.key", lambda _: b"ab" * 32),
        {},
        "not the one it was made with",
    ),
    "the master key is damaged": (overwrite("keys/master.key", lambda key: key[:20]), {}, "is damaged"),
    "the master key is empty": (overwrite("keys/master.key", lambda key: b""), {}, "is damaged"),
    "the master key file is not there": (
        remove(),
        {"master_key_file": "/nowhere/key"},
        "/nowhere/key is not there",
    ),
    "the key ring is gone": (remove("keys/ring.*"), {}, "Put the keys back"),
    "both copies of the key ring are damaged": (
        overwrite("keys/ring.*", lambda ring: ring[:-1]),
        {},
        "the ring is damaged",
    ),
    "all keys are gone": (remove("keys/*"), {}, "Put the keys back"),
    "the database is gone": (remove("database/*"), {}, "Restore it from a backup"),
    "the database is another file": (
        overwrite("database/*.db", lambda file: bytes(len(file))),
        {},
        "does not open with its key",
    ),
    "encryption is switched off over encrypted data": (
        remove(),
        {"encryption": "false"},
        "SNAPLORE_ENCRYPTION is false",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_without_its_keys_the_start_is_refused_with_one_line_and_nothing_is_touched(
    case, kept_data, tmp_path
):
    damage, settings, sentence = REFUSALS[case]
    data = tmp_path / "data"
    shutil.copytree(kept_data[0], data)
    damage(data)
    before = fingerprint(data)
    ended = Service(tmp_path).run("gunicorn", **settings)
    assert ended.returncode not in (0, None)
    assert len((ended.stdout + ended.stderr).splitlines()) == 1, ended.stderr
    assert ended.stderr.startswith(f"{NAME} cannot start: ")
    assert sentence in ended.stderr
    assert fingerprint(data) == before


def test_with_the_key_put_back_everything_is_there_again(kept_data, tmp_path):
    shutil.copytree(kept_data[0], tmp_path / "data")
    key = tmp_path / "data" / "keys" / "master.key"
    key.rename(tmp_path / "somewhere else")
    assert Service(tmp_path).run("gunicorn").returncode != 0
    with Service(tmp_path, master_key_file=tmp_path / "somewhere else", api_key="kept") as service:
        assert [photo["filename"] for photo in service.photos()] == ["screenshot.png"]
        assert service.call("GET", "/api/photos/1/image").content == kept_data[1]


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of the folder, with a hash of its bytes."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_two_services_on_one_machine_keep_apart(tmp_path):
    with Service(tmp_path / "one", api_key="one") as one, Service(tmp_path / "two", api_key="two") as two:
        one.upload(draw("Of the first"), "first.png")
        assert [photo["filename"] for photo in one.photos()] == ["first.png"]
        assert list(two.photos()) == []
        assert two.call("GET", "/api/photos", headers=one.bearer).status_code == 401
        one.kill()
        assert two.get("/api/photos")["total"] == 0


# -------------------------------------------------------------------------------------------------------- end


@pytest.mark.slow
def test_an_upload_that_is_under_way_is_answered_before_the_service_ends(tmp_path):
    picture = draw(size=(1100, 1100), compress_level=0)
    with Service(tmp_path, api_key="key") as service:
        with contextlib.closing(HeldUpload(service, picture)) as upload:
            upload.send(2_000_000)
            eventually(lambda: any(service.data.glob("spool/*")), "the upload has begun to arrive")
            service.begin_to_stop()
            answer = upload.finish()
            assert answer.status == 200, answer.read()
            assert json.loads(answer.read())["dedup"] is False
        assert service.wait() == 0
        assert not any(service.data.glob("spool/*"))
        service.start()
        assert service.call("GET", "/api/photos/1/image").content == picture


def has_ended(process):
    return not alive(process)


@pytest.mark.slow
def test_a_worker_ends_at_once_however_often_it_is_told_to(tmp_path):
    """Ctrl+C tells it twice: the terminal all processes, and then the arbiter its workers."""
    with Service(tmp_path) as service:
        for _ in range(8):  # the arbiter starts another each time
            (worker,) = eventually(lambda: [one for one in service.workers if alive(one)], "it starts")
            service.knock("GET", "/api/health")
            with contextlib.suppress(psutil.NoSuchProcess):
                for _ in range(2_000):
                    worker.send_signal(signal.SIGINT)
                    worker.send_signal(signal.SIGQUIT)
            eventually(partial(has_ended, worker), "it ends", patience=10)


@pytest.mark.slow
def test_an_analysis_that_is_under_way_is_finished_before_the_service_ends(tmp_path):
    answer = threading.Event()
    with FakeLLM() as fake, Service(tmp_path, **remote(fake)) as service:
        fake.answer(after=answer)
        service.upload(draw())
        fake.wait_for_requests(1)
        service.begin_to_stop()
        answer.set()
        assert service.wait() == 0
        fake.close()
        service.start()
        assert service.get("/api/stats")["done"] == 1


@pytest.mark.slow
def test_a_client_that_falls_silent_in_the_middle_of_an_upload_is_given_up(tmp_path):
    """A phone that leaves the network says nothing. Its thread is wanted back, and it is no fault of the
    service.
    """
    impatient = tmp_path / "impatient.py"
    impatient.write_text(
        (ROOT / "gunicorn.conf.py").read_text()
        + "\nimport web.connections\n\nweb.connections.SOCKET_PATIENCE = 0.3\n"
    )
    with Service(tmp_path, "-c", str(impatient), api_key="key") as service:
        with contextlib.closing(HeldUpload(service, draw(size=(1100, 1100), compress_level=0))) as upload:
            upload.send(2_000_000)
            answer = upload.answer()
            assert answer.status in (400, 408), answer.read()
            assert set(json.loads(answer.read())) == {"detail"}
        assert not any(service.data.glob("spool/*"))
        assert "ERROR" not in service.output


def remote(fake: FakeLLM) -> dict[str, str]:
    return {
        "api_key": "key",
        "dev_mode": "true",
        "llm_base_url": fake.url,
        "llm_model": "scripted",
        "llm_api_key": "sk-scripted-secret",
    }


# ------------------------------------------------------------------------------------------------------- HTTP


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with (
        FakeLLM() as fake,
        Service(tmp_path_factory.mktemp("http"), cors_origins=ALLOWED, **remote(fake)) as service,
    ):
        yield service


@pytest.fixture
def stored(service):
    """A stored photo: its id and its bytes."""
    picture = draw("Stored", size=(700, 700), compress_level=0)
    return service.upload(picture, local_media_store_id="stored")["id"], picture


def test_a_preflight_from_an_allowed_origin_needs_no_key(service):
    asks = {
        "Origin": ALLOWED,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    answer = service.knock("OPTIONS", "/api/photos/upload", headers=asks)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == ALLOWED
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert "authorization" in answer.headers["Access-Control-Allow-Headers"].lower()
    assert (
        service.call("GET", "/api/photos", headers={"Origin": ALLOWED}).headers["Access-Control-Allow-Origin"]
        == ALLOWED
    )


@pytest.mark.parametrize(
    "origin",
    ["https://elsewhere.example", f"{ALLOWED}.elsewhere.example", "http://dashboard.example", "null"],
)
def test_other_origins_get_nothing(service, origin):
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    refused = service.knock("OPTIONS", "/api/photos/upload", headers=asks)
    assert refused.status_code == 401
    assert "Access-Control-Allow-Origin" not in refused.headers
    assert (
        "Access-Control-Allow-Origin"
        not in service.call("GET", "/api/photos", headers={"Origin": origin}).headers
    )


def test_a_refused_request_can_be_read_by_a_page_of_an_allowed_origin(service):
    answer = service.knock("GET", "/api/photos", headers={"Origin": ALLOWED})
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (401, ALLOWED)


def test_head_says_what_get_says_without_a_body(service, stored):
    service.wait_until_analysed()  # or the list changes between the two
    for path in (
        "/",
        "/api/health",
        "/api/photos",
        f"/api/photos/{stored[0]}/image",
        f"/api/photos/{stored[0]}/thumbnail",
    ):
        told, got = service.call("HEAD", path), service.call("GET", path)
        assert (told.status_code, told.content) == (200, b"")
        assert told.headers["Content-Length"] == str(len(got.content)), path
        assert told.headers["Content-Type"] == got.headers["Content-Type"]


@pytest.mark.parametrize(
    ("method", "path", "with_key", "status"),
    [
        ("GET", "/api/photos", False, 401),
        ("GET", "/no/such/path", False, 401),
        ("DELETE", "/api/stats", False, 401),
        ("GET", "/no/such/path", True, 404),
        ("GET", "/api/photos/999999", True, 404),
        ("GET", "/api/photos/twelve", True, 404),
        ("GET", "/api/photos/", True, 404),
        ("DELETE", "/api/stats", True, 405),
        ("POST", "/", True, 405),
        ("POST", "/api/photos/upload", True, 400),
    ],
)
def test_every_error_has_the_one_body(service, method, path, with_key, status):
    answer = (service.call if with_key else service.knock)(method, path)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/json"
    assert set(answer.json()) == {"detail"}
    assert answer.headers["X-Request-ID"]
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert ("Allow" in answer.headers) == (status == 405)


def test_a_refused_upload_gets_its_answer_and_no_reset_connection(service):
    """Nobody wants the body; were it left unread, the kernel would reset the connection and the answer be
    lost.
    """
    answer = service.knock("POST", "/api/photos/upload", files={"file": ("large.png", bytes(8_000_000))})
    assert answer.status_code == 401


def test_a_client_that_waits_for_continue_is_told_to(service):
    """As curl does with a body of more than a megabyte."""
    picture = draw("Waiting", size=(700, 700), compress_level=0)
    with contextlib.closing(HeldUpload(service, picture, headers={"Expect": "100-continue"})) as upload:
        assert upload.is_told_to_continue()
        answer = upload.finish()
        assert (answer.status, json.loads(answer.read())["dedup"]) == (200, False)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_uploads_and_downloads(service, tmp_path):
    picture = draw("By curl", size=(800, 800), compress_level=0)
    (tmp_path / "curl.png").write_bytes(picture)
    curl = [
        "curl",
        "--silent",
        "--show-error",
        "--fail",
        "--noproxy",
        "*",
        "-H",
        f"Authorization: Bearer {service.key}",
    ]
    form = ["-H", "Expect: 100-continue", "-F", f"file=@{tmp_path / 'curl.png'}"]
    answer = json.loads(output_of([*curl, *form, f"{service.url}/api/photos/upload"]))
    assert (answer["filename"], answer["file_size"]) == ("curl.png", len(picture))
    assert output_of([*curl, f"{service.url}/api/photos/{answer['id']}/image"]) == picture


def output_of(command: list[str]) -> bytes:
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout


def test_a_proxy_that_speaks_http_1_0_is_served(service, stored):
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as proxy:
        proxy.sendall(
            f"GET /api/photos/{stored[0]}/image HTTP/1.0\r\n"
            f"Authorization: Bearer {service.key}\r\n\r\n".encode()
        )
        answer = http.client.HTTPResponse(proxy)
        answer.begin()
        with answer:
            assert (answer.status, answer.read()) == (200, stored[1])


def test_an_upload_of_unknown_length_is_taken(service):
    """Proxies pass a body on in chunks as it arrives."""
    picture = draw("In chunks", size=(700, 700), compress_level=0)
    with contextlib.closing(HeldUpload(service, picture, chunked=True)) as upload:
        answer = upload.finish()
        assert answer.status == 200
        stored = json.loads(answer.read())
    assert service.call("GET", f"/api/photos/{stored['id']}/image").content == picture


def test_one_connection_serves_many_requests_also_after_refusals(service, stored):
    requests = [
        ("/api/photos/upload", b"x" * 100_000, 400),
        (f"/api/photos/{stored[0]}/image", None, 200),
        ("/none", None, 404),
    ]
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)) as connection:
        for path, body, status in requests * 3:
            connection.request("POST" if body else "GET", path, body, service.bearer)
            answer = connection.getresponse()
            assert answer.status == status, answer.read()
            content = answer.read()
            assert status != 200 or content == stored[1]


def test_an_idle_connection_is_for_the_client_to_close(tmp_path):
    """Proxies and browsers do so after a minute. When the server closes first, a request that is on its way
    then is lost.
    """
    shown = Service(tmp_path).run("gunicorn", "--print-config").stdout
    assert int(re.search(r"^keepalive += ([0-9]+)$", shown, re.MULTILINE)[1]) > 60
