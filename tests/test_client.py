"""`snaplore` as a client, against servers that answer what no service would, and against running services:
which token goes where, what reaches the terminal, and how failures end.
"""

import base64
import contextlib
import datetime
import errno
import http.server
import io
import json
import os
import pty
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import PIL.Image
import pytest
from click.testing import CliRunner

from settings import ROOT
from terminal import bundle, pictures, texts
from terminal.commands import CommandLine
from tests.support.drawing import draw
from tests.support.loopback import Loopback
from tests.support.service import PATIENCE, Service
from tests.support.trust import SecureService

HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\u202ee\u2066f\x00g\rh\x7fi\ud800j"
CONTROL = re.compile(r"[^\n\x20-\x7e\xa0-\u200a\u2010-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\U0010ffff]")


class Server(Loopback):
    """A server that answers what the test puts into `answers`, by path: a status, a body and headers."""

    def __init__(self):
        self.answers: dict[str, list[tuple]] = {}
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        super().__init__(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: object, status: int = 200, **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers.setdefault(path, []).append((status, raw, headers))


class Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, server: Server, *args):
        self._server = server
        super().__init__(*args)

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._server.requests.append((self.command, self.path, headers, body))
        known = self._server.answers.get(self.path.partition("?")[0], [(404, b'{"detail": "Nothing."}', {})])
        status, raw, more = known.pop(0) if len(known) > 1 else known[0]
        self.send_response(status)
        for name, value in {"Content-Length": str(len(raw)), **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def run(server, tmp_path):
    """Runs a command in this process, with a token for `server`; keyword arguments change the environment."""

    def run(*arguments, stdin=b"", **environment):
        known = {"SNAPLORE_URL": server.url, "SNAPLORE_TOKEN": "snp_t", "HOME": str(tmp_path)}
        cleared = dict.fromkeys(("XDG_CONFIG_HOME", "SNAPLORE_CA_FILE"))
        return CliRunner().invoke(
            CommandLine(), list(map(str, arguments)), input=stdin, env={**cleared, **known, **environment}
        )

    return run


def hit(**fields):
    return {
        "id": 12,
        "title": "Invoice",
        "app_name": "Mail",
        "snippet": "Invoice 7",
        "matched": ["Invoice"],
        "original_timestamp": "2026-11-21T07:31:04.123",
        "tags": ["bills"],
        "sensitive": [],
        **fields,
    }


# --------------------------------------------------------------------------------------- what is printed


@pytest.mark.parametrize("command", ["search x", "show 12", "agenda", "records", "search --pictures x"])
def test_no_text_of_a_screenshot_controls_the_terminal(server, run, command):
    bad = hit(
        **dict.fromkeys(("title", "app_name", "snippet", "summary", "note", "text", "device_name"), HOSTILE)
    )
    bad |= {"matched": [HOSTILE], "tags": [HOSTILE], "kind": HOSTILE, "quote": HOSTILE}
    bad |= {"starts_at": HOSTILE, "ends_at": HOSTILE, "photo_id": HOSTILE, "analysis": {"app_name": HOSTILE}}
    found = {"total": 1, "items": [bad], "nearest": [{"word": HOSTILE}]}
    found["corrected"] = [{"word": HOSTILE, "matched": [HOSTILE]}]
    server.answer("/api/search", found)
    server.answer("/api/agenda", found)
    server.answer("/api/records", {"records": [{**bad, "type": HOSTILE, "line": HOSTILE}], "sums": [bad]})
    server.answer("/api/photos/12", bad)
    shown = run(*command.split())

    assert shown.exit_code == 0
    assert "owned" in shown.stdout
    assert not CONTROL.search(shown.output)


def test_a_search_says_which_words_were_taken_for_others(server, run):
    near = [{"word": "wifi", "matched": ["wiki", "wi-fi"]}]
    server.answer("/api/search", {"total": 1, "items": [hit()], "corrected": near})
    assert run("search", "wifi").stderr == "No screenshot has “wifi” itself. Near it: wiki, wi-fi\n"


def test_json_is_whole_for_programs_and_harmless_for_terminals(server, run):
    found = {"total": 1, "items": [{"title": HOSTILE.replace("\ud800", "") + " 发票 \U000e0041"}]}
    server.answer("/api/search", found)
    shown = run("search", "--json", "x")

    assert json.loads(shown.stdout) == found
    assert "发票" in shown.stdout
    assert not CONTROL.search(shown.stdout.replace("\n", ""))


@pytest.mark.parametrize("name", ["show", "add"])
def test_the_sentence_of_an_error_is_harmless_too(server, run, tmp_path, name):
    server.answer("/api/photos/12", {"detail": HOSTILE}, 404)
    server.answer("/api/photos/upload", {"detail": HOSTILE}, 400)
    (tmp_path / "a\x1b[2J.png").write_bytes(b"x")
    ended = run("show", "12") if name == "show" else run("add", tmp_path / "a\x1b[2J.png")

    assert ended.exit_code == 1
    assert "owned" in ended.stderr
    assert not CONTROL.search(ended.output)


def test_what_is_sensitive_is_covered_until_it_is_asked_for(server, run):
    secret = hit(title="4111 1111", snippet="4111 1111", text="4111 1111", summary="4111", sensitive=["card"])
    server.answer("/api/search", {"total": 1, "items": [secret]})
    server.answer("/api/photos/12", secret)
    server.answer("/api/agenda", {"items": [{**secret, "starts_at": "2026-12-04"}]})
    for command in (("search", "x"), ("show", "12"), ("agenda",)):
        assert "4111" not in run(*command).output
        assert "sensitive (card)" in run(*command).stdout
        assert "4111" in run(*command, "--reveal").stdout


def test_records_are_listed_with_their_sums_and_what_is_sensitive_stays_covered(server, run):
    receipt = {
        "type": "Receipt",
        "day": "2026-11-20",
        "line": "€23.80 · REWE",
        "photo_id": 7,
        "doubtful": True,
    }
    code = {"type": "OneTimeCode", "day": "2026-11-19", "line": "123 456", "photo_id": 8}
    sums = [{"currency": "EUR", "value": "23.80", "count": 1}]
    listed = [receipt, {**code, "sensitive": ["one_time_code"]}]
    server.answer("/api/records", {"records": listed, "sums": sums, "total": 9})
    done = run("records", "--type", "Receipt", "--type", "OneTimeCode", "--seller", "REWE & Co")
    asked = "/api/records?type=Receipt&type=OneTimeCode&seller=REWE+%26+Co&page_size=20"
    assert server.requests[0][1] == asked
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines == [
        "2026-11-20 Receipt €23.80 · REWE ? items do not add up #7",
        "2026-11-19 OneTimeCode sensitive (one time code): --reveal shows it #8",
        "23.80 EUR in 1",
    ]
    assert "2 of 9" in done.stderr
    assert "123 456" in run("records", "--reveal").stdout


def test_records_are_a_table_as_the_service_sends_it_and_harmless_in_a_terminal(server, run):
    sent = "\ufefftype,seller\r\nReceipt,Caf\u00e9\x1b]0;owned\x07\r\n".encode()
    server.answer("/api/records.csv", sent)
    assert run("records", "--csv", "--since", "2026-11-01", "--sort", "highest").stdout_bytes == sent
    assert server.requests[0][1] == "/api/records.csv?since=2026-11-01&sort=highest"
    assert texts.as_table(sent) == "type,seller\nReceipt,Café ]0;owned "


def test_the_agenda_is_listed_by_day(server, run):
    today = datetime.date.today()
    day = {"photo_id": 12, "kind": "departure", "sensitive": []}
    server.answer(
        "/api/agenda",
        {
            "items": [
                {**day, "title": "Rent", "starts_at": f"{today}", "ends_at": None, "all_day": True},
                {**day, "title": "ICE 708", "starts_at": f"{today}T09:42", "ends_at": f"{today}T11:05"},
                {**day, "title": "Dinner", "starts_at": f"{today + datetime.timedelta(1)}T19:30"},
            ]
        },
    )
    lines = [" ".join(line.split()) for line in run("agenda").stdout.splitlines()]

    assert lines[0].startswith("Today, ")
    assert lines[1:3] == ["all day Rent departure #12", "09:42–11:05 ICE 708 departure #12"]
    assert lines[3].startswith("Tomorrow, ")
    assert lines[4] == "19:30 Dinner departure #12"
    assert server.requests[0][1] == f"/api/agenda?since={today}"


# ------------------------------------------------------------------------------------------------ failures


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(run):
    ended = run("serch", "x")

    assert ended.exit_code == 2
    assert "Did you mean 'search'?" in ended.stderr


def test_a_token_that_is_not_accepted_says_what_to_do(server, run):
    server.answer("/api/search", {"detail": "The API key is missing or wrong"}, 401)
    ended = run("search", "x")

    assert (ended.exit_code, ended.stdout) == (1, "")
    assert f"snaplore login {server.url}" in ended.stderr
    assert "snp_t" not in ended.stderr


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b"\xff\xfe", b"[" * 100_000, b"", b'{"detail": 5}'], ids=range(6)
)
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_is_not_the_services_is_one_sentence(server, run, body, status):
    server.answer("/api/photos/12", body, status)
    ended = run("show", "12")

    if body == b'{"detail": 5}' and status == 200:  # an object: nothing in it is known
        assert ended.exit_code == 0
    else:
        assert (ended.exit_code, len(ended.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize("wrong", [None, 5, "text", [5], {"a": 1}, True, [[]]], ids=range(7))
def test_fields_of_the_wrong_kind_are_left_out(server, run, wrong):
    odd = dict.fromkeys([*hit(), "analysis", "text", "summary", "starts_at", "ends_at", "kept"], wrong)
    found = {"total": wrong, "items": [odd, wrong], "nearest": wrong}
    for path in ("search", "agenda"):
        server.answer(f"/api/{path}", found)
        assert run(path, *(["x"] if path == "search" else [])).exit_code == 0
    server.answer("/api/photos/12", odd)
    assert run("show", "12").exit_code == 0


def test_a_redirect_is_not_followed_and_the_token_stays(server, run):
    with Server() as other:
        server.answer("/api/photos/12", b"", 302, Location=f"{other.url}/api/photos/12")
        ended = run("show", "12")

        assert ended.exit_code == 1
        assert f"leads to {other.url}" in ended.stderr
        assert other.requests == []


def test_a_service_that_is_not_there_ends_with_3(run, server):
    url, _ = server.url, server.close()
    ended = run("search", "x")

    assert (ended.exit_code, ended.stderr) == (
        3,
        f"Error: Nothing listens at {url}: is the service running?\n",
    )


# ------------------------------------------------------------------------------------ tokens and addresses


def test_a_token_goes_only_to_the_address_that_it_was_given_for(server, run, tmp_path):
    server.answer("/api/openapi.json", {})
    server.answer("/api/search", {"items": []})
    nothing = {"SNAPLORE_URL": "", "SNAPLORE_TOKEN": ""}
    assert run("login", server.url, stdin="snp_kept\n", **nothing).exit_code == 0
    assert run("search", "x", **nothing).exit_code == 0
    assert server.requests[-1][2]["authorization"] == "Bearer snp_kept"
    asked = len(server.requests)
    other = "http://localhost:9"
    for options, environment in (
        (("--url", other), {}),  # the environment's token is for the environment's address
        ((), {"SNAPLORE_URL": other, "SNAPLORE_TOKEN": ""}),  # the stored token is for the stored address
        ((), {"SNAPLORE_URL": ""}),  # a token for an address that nobody named
    ):
        assert run("search", "x", *options, **environment).exit_code == 1
    assert len(server.requests) == asked


def test_the_login_is_for_its_owner_alone_and_can_be_forgotten(server, run, tmp_path):
    server.answer("/api/pairing/redeem", {"token": "snp_paired"})
    server.answer("/api/openapi.json", {})
    assert run("login", f"{server.url}/#/pair/7KQ2MPXW").exit_code == 0
    file = tmp_path / ".config/snaplore/login.json"

    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o077 == 0
    assert json.loads(file.read_text())["token"] == "snp_paired"
    assert json.loads(server.requests[0][3])["code"] == "7KQ2MPXW"
    file.chmod(0o644)
    refused = run("search", "x", SNAPLORE_URL="", SNAPLORE_TOKEN="")
    assert refused.exit_code == 1
    assert "can be read by others" in refused.stderr
    assert run("logout").exit_code == 0
    assert not file.exists()


def test_a_login_that_is_refused_or_damaged_is_not_kept(server, run, tmp_path):
    file = tmp_path / ".config/snaplore/login.json"
    server.answer("/api/openapi.json", {"detail": "No."}, 401)
    assert run("login", server.url, stdin="snp_wrong\n").exit_code == 1
    assert run("login", server.url, "snp_in_the_arguments").exit_code == 2
    assert not file.exists()
    file.parent.mkdir(parents=True)
    for damaged in ("", "[]", '{"url": 5}', '{"url": "http://a", "token": "a\\nb", "ca": ""}', "[" * 99_999):
        file.write_text(damaged)
        file.chmod(0o600)
        ended = run("search", "x", SNAPLORE_URL="", SNAPLORE_TOKEN="")
        assert (ended.exit_code, len(ended.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a",
        "http://",
        "http://a:99999",
        "http://u:p@a",
        "http://a/?q=1",
        "http://[",
        "http://a/\n\x1b",
    ],
)
def test_an_address_that_is_none_is_refused(run, url):
    ended = run("search", "--url", url or "http:", "x")

    assert (ended.exit_code, len(ended.stderr.splitlines())) == (1, 1)
    assert not CONTROL.search(ended.output)


# --------------------------------------------------------------------------------------------------- adding


def test_a_busy_service_is_tried_again_and_other_files_go_on(server, run, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    server.answer("/api/photos/upload", {"detail": "Busy."}, 503, Retry_After="2")
    server.answer("/api/photos/upload", {"id": 7, "dedup": False})
    (tmp_path / 'a".png').write_bytes(b"picture")
    os.mkfifo(tmp_path / "pipe.png")
    long = tmp_path / ("n" * 300)  # fails as a folder does that may not be read
    ended = run("add", "--json", tmp_path / 'a".png', tmp_path / "pipe.png", tmp_path / "missing.png", long)

    assert ended.exit_code == 1
    assert [(result.get("id"), result.get("error")) for result in json.loads(ended.stdout)] == [
        (7, None),
        (None, "it is not a file"),
        (None, os.strerror(errno.ENOENT)),
        (None, os.strerror(errno.ENAMETOOLONG)),
    ]
    assert waits == [2]
    assert len(server.requests) == 2
    assert b'filename="a%22.png"' in server.requests[1][3]


def test_adding_stops_at_what_every_file_would_meet(server, run, tmp_path):
    server.answer("/api/photos/upload", {"detail": "A token of the scope `read` may not do this."}, 403)
    ended = run("add", "-", "-", stdin=b"picture")

    assert (ended.exit_code, len(server.requests)) == (1, 1)
    assert "may not do this" in ended.stderr


# ------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "230401"}, "kitty"),
        ({"TERM": "xterm-256color", "KONSOLE_VERSION": "210800"}, None),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, None),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, None),
        ({"TERM": "xterm-256color"}, None),
        ({}, None),
    ],
)
def test_a_terminal_is_known_by_its_environment(environment, protocol):
    assert pictures.protocol(environment) == protocol


def test_kitty_gets_a_png_in_chunks_and_iterm_the_file_itself():
    jpeg = draw(size=(512, 300), format="JPEG", quality=95)
    parts = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty := pictures.drawn(jpeg, "kitty", 20))

    assert "".join(f"\x1b_G{head};{chunk}\x1b\\" for head, chunk in parts) == kitty
    assert len(parts) > 1
    assert all(len(chunk) <= 4096 for _, chunk in parts)
    assert [head[-3:] for head, _ in parts] == ["m=1"] * (len(parts) - 1) + ["m=0"]
    png = base64.b64decode("".join(chunk for _, chunk in parts))
    assert PIL.Image.open(io.BytesIO(png), formats=["PNG"]).size == (512, 300)
    iterm = pictures.drawn(jpeg, "iterm", 20)
    assert base64.b64decode(iterm.partition(":")[2].rstrip("\a")) == jpeg
    assert pictures.drawn(b"no picture", "kitty", 20) is None


# ------------------------------------------------------------------------------------------ running services


def process(*arguments, home, program=(str(ROOT / "snaplore"),), stdin=b"", **environment):
    """Run the client as a shell does."""
    return subprocess.run(
        [*program, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )


def in_terminal(*arguments, home, typed=b"", **environment):
    """Run the client in a terminal in which `typed` is typed. Returns the exit code and all that it shows."""
    inner, outer = pty.openpty()
    shown = subprocess.Popen(
        [ROOT / "snaplore", *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        stdin=outer,
        stdout=outer,
        stderr=outer,
        start_new_session=True,
    )
    os.close(outer)
    os.write(inner, typed)
    seen = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while part := os.read(inner, 65_536):
            seen += part
    os.close(inner)
    return shown.wait(PATIENCE), seen


@pytest.fixture
def service(tmp_path, fake_llm):
    with Service(
        tmp_path, dev_mode="true", api_key="owner", llm_base_url=fake_llm.url, llm_model="m"
    ) as service:
        yield service


@pytest.mark.slow
def test_a_paired_client_adds_finds_shows_and_is_forgotten(service, tmp_path):
    picture, home = tmp_path / "图.png", tmp_path / "home"
    picture.write_bytes(draw())
    os.utime(picture, (1_795_246_264, 1_795_246_264))
    code = service.call("POST", "/api/pairing", json={"name": "shell"}).json()["code"]
    assert process("login", service.url, code, home=home).returncode == 0
    added = process("add", picture, "-", home=home, stdin=picture.read_bytes())
    assert (added.returncode, added.stderr) == (0, b"1 added, 1 already there\n")
    service.wait_until_analysed()
    photo = service.get("/api/photos")["items"][0]
    assert (photo["filename"], photo["original_timestamp"]) == ("图.png", "2026-11-21T07:31:04.000")

    found = process("search", "library", home=home)
    assert f"{photo['id']}  " in found.stdout.decode()
    assert json.loads(process("search", "--json", "library", home=home).stdout)["total"] == 1
    assert (
        process("show", photo["id"], home=home)
        .stdout.decode()
        .splitlines()[1]
        .startswith(f"{photo['id']} · Mail")
    )
    assert process("show", photo["id"], "--save", "-", home=home).stdout == picture.read_bytes()
    assert process("show", photo["id"], "--save", tmp_path / "new.png", home=home).returncode == 0
    assert (tmp_path / "new.png").read_bytes() == picture.read_bytes()
    assert process("show", photo["id"], "--save", tmp_path / "new.png", home=home).returncode == 1
    assert process("agenda", home=home).returncode == 0
    token = service.get("/api/tokens")["tokens"][0]["id"]
    service.call("DELETE", f"/api/tokens/{token}")
    assert process("search", "library", home=home).returncode == 1
    assert process("logout", home=home).returncode == 0


@pytest.mark.slow
def test_beside_the_service_no_login_is_needed(service, tmp_path):
    service.upload(draw())
    service.wait_until_analysed()
    settings = {name: value for name, value in service.environment().items() if name.startswith("SNAPLORE_")}
    settings["SNAPLORE_BIND"] = f"127.0.0.1:{service.port}"
    found = process("search", "library", home=tmp_path, **settings)

    assert (found.returncode, found.stderr) == (0, b"")
    assert b"Mail" in found.stdout


@pytest.mark.slow
def test_the_file_for_other_machines_needs_only_python(service, tmp_path):
    file, home = tmp_path / "snaplore.pyz", tmp_path / "home"
    bundle.pack(file)
    program = (str(Path(sys.base_prefix) / "bin/python3"), "-I", str(file))
    code = service.call("POST", "/api/pairing", json={"name": "other"}).json()["code"]

    assert process("login", service.url, code, home=home, program=program).returncode == 0
    added = process("add", "-", home=home, program=program, stdin=draw())
    assert (added.returncode, added.stderr) == (0, b"")
    assert "backup" not in process("--help", home=home, program=program).stdout.decode()


@pytest.mark.slow
def test_the_houses_authority_is_trusted_by_its_fingerprint_or_file_and_no_other(tmp_path):
    with SecureService(tmp_path, dev_mode="true", api_key="owner") as service:
        token, right = b"owner\n", service.get("/api/addresses")["certificate"]["ca_fingerprint"]
        untrusted = process("login", service.url, home=tmp_path / "a", stdin=token)
        assert untrusted.returncode == 3
        assert b"is not trusted" in untrusted.stderr
        wrong = ("--fingerprint", right.replace(right[:2], "00" if right[:2] != "00" else "11"))
        assert process("login", service.url, *wrong, home=tmp_path / "a", stdin=token).returncode == 1
        for home, options in (
            (tmp_path / "a", ("--fingerprint", right.lower().replace(":", ""))),
            (tmp_path / "b", ("--ca", service.authority)),
        ):
            assert process("login", service.url, *options, home=home, stdin=token).returncode == 0
            assert process("search", "x", home=home).returncode == 0
        for answer, expected in ((b"n\n", 1), (b"y\n", 0)):
            code = service.call("POST", "/api/pairing", json={"name": "asked"}).json()["code"]
            ended, seen = in_terminal("login", service.url, code, home=tmp_path / "c", typed=answer)
            assert ended == expected
            assert right.encode() in seen
        assert process("search", "x", home=tmp_path / "c").returncode == 0
        plain = service.url.replace("https", "http")
        refused = process("search", "x", home=home, SNAPLORE_URL=plain, SNAPLORE_TOKEN="owner")
        assert refused.returncode == 1
        assert b"reached over https" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "drawn"),
    [
        ({"TERM": "xterm-kitty"}, b"\x1b_Ga=T,f=100"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, b"\x1b]1337;File=inline=1"),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_a_picture_is_drawn_in_a_terminal_that_can_and_never_in_a_pipe(service, tmp_path, environment, drawn):
    photo = service.upload(draw())["id"]
    known = {"SNAPLORE_URL": service.url, "SNAPLORE_TOKEN": "owner", **environment}
    code, seen = in_terminal("show", photo, home=tmp_path, **known)

    assert code == 0
    assert (drawn in seen) if drawn else (b"\x1b_G" not in seen and b"1337" not in seen)
    assert b"\x1b" not in process("show", photo, home=tmp_path, **known).stdout


# ------------------------------------------------------------------------------------------------- managing


@pytest.fixture
def ours(tmp_path):
    """`ours(*arguments)`: runs the client as a process of its own against a real service."""
    with Service(tmp_path, language="en", api_key="key") as service:
        home = {"HOME": str(tmp_path), "SNAPLORE_URL": service.url, "SNAPLORE_TOKEN": "key"}

        def run(*arguments, code=0):
            command = [sys.executable, "-c", "from terminal.commands import run; run()", *map(str, arguments)]
            done = subprocess.run(
                command, cwd=ROOT, env={"PATH": os.environ["PATH"], **home}, capture_output=True, check=False
            )
            assert done.returncode == code, done.stderr.decode()
            return done.stdout.decode()

        yield service, run


@pytest.mark.slow
def test_screenshots_are_tagged_kept_thrown_away_and_exported(ours, tmp_path):
    service, run = ours
    ids = [service.upload(draw(text), f"{text}.png")["id"] for text in ("one", "two")]

    assert run("tag", "trip", *ids, "--dry-run") == "2 of 2 screenshots would get the tag trip.\n"
    assert service.get(f"/api/photos/{ids[0]}")["tags"] == []
    assert run("tag", "trip", *ids) == "2 of 2 screenshots got the tag trip.\n"
    assert run("tag", "trip", ids[1], "--remove") == "1 of 1 screenshots lost the tag trip.\n"
    assert [service.get(f"/api/photos/{photo_id}")["tags"] for photo_id in ids] == [["trip"], []]
    assert json.loads(run("keep", *ids, "--json"))["changed"] == 2
    assert service.get("/api/photos", kept="true")["total"] == 2
    assert run("keep", ids[0], 99) == "1 of 2 screenshots are kept.\n"
    assert run("delete", ids[1]) == "1 of 1 screenshots went to the trash.\n"
    assert service.get("/api/photos")["total"] == 1
    assert run("delete", ids[1], "--undo") == "1 of 1 screenshots came back.\n"
    assert run("delete", ids[1], "--for-good", "--yes") == "1 of 1 screenshots are deleted.\n"
    assert "Screenshots: 1, " in run("status")
    assert json.loads(run("status", "--json"))["total_photos"] == 1

    made = tmp_path / "all.zip"
    run("export", made)
    with zipfile.ZipFile(made) as packed:
        assert packed.testzip() is None
        assert any(name.startswith("photos/") for name in packed.namelist())
    run("export", made, code=1)

    token = service.call("POST", "/api/tokens", json={"name": "Laptop", "scope": "read"}).json()
    assert f"{token['id']:>4}  read  Laptop  (used never)" in run("tokens")
    run("tokens", "--revoke", token["id"])
    assert run("tokens") == ""


@pytest.mark.slow
def test_a_folder_is_added_with_its_pictures_and_a_second_run_stores_nothing(ours, tmp_path):
    service, run = ours
    folder = tmp_path / "in" / "2024"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"Screenshot_20240102-10111{number}.png").write_bytes(draw(str(number)))
    (folder / "notes.txt").write_text("no picture")
    (folder / ".hidden.png").write_bytes(draw("hidden"))
    (folder / "link.png").symlink_to(folder / "Screenshot_20240102-101110.png")

    assert run("add", tmp_path / "in", "--dry-run") == "3 pictures would be sent.\n"
    for known in (False, True):
        done = json.loads(run("add", tmp_path / "in", "--json"))
        assert [result["dedup"] for result in done] == [known] * 3
    assert {photo["original_timestamp"][:7] for photo in service.photos()} == {"2024-01"}


@pytest.mark.slow
def test_an_import_to_an_address_sends_a_folder_there_and_keeps_nothing_here(ours, tmp_path):
    service, _ = ours
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "below" / "Screenshot_20240102-101112.png").write_bytes(draw("one"))
    own = {"SNAPLORE_TOKEN": "key", "SNAPLORE_DATA_DIR": str(tmp_path / "none")}
    command = ("import", tmp_path / "in", "--url", service.url, "--device-id", "laptop", "--json")
    for known in (False, True):
        done = process(*command, home=tmp_path, **own)
        assert done.returncode == 0, done.stderr.decode()
        assert [result["dedup"] for result in json.loads(done.stdout)] == [known]
    (photo,) = service.photos()

    assert (photo["device_id"], photo["original_timestamp"][:10]) == ("laptop", "2024-01-02")
    assert not (tmp_path / "none").exists()
    refused = process(*command, "--name", "*shot*", home=tmp_path, **own)
    assert (refused.returncode, b"--url goes with" in refused.stderr) == (2, True)


def test_ctrl_c_says_what_was_done_and_how_to_go_on(server, run, tmp_path, monkeypatch):
    server.answer("/api/photos/upload", {"id": 1, "dedup": False})
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file in files:
        file.write_bytes(b"picture")
    sent = []

    def interrupted(self, name, *_, **__):
        if sent:
            raise KeyboardInterrupt
        sent.append(name)
        return {"id": 1, "dedup": False}

    monkeypatch.setattr("terminal.service.Service.upload", interrupted)
    stopped = run("add", *files)
    assert stopped.exit_code == 130
    assert "Stopped after 1 of 3. Run it again to go on." in stopped.stderr

    monkeypatch.setattr("terminal.service.Service.get", interrupted)
    stopped = run("search", "invoice")
    assert (stopped.exit_code, stopped.stderr) == (130, "Stopped.\n")


def test_help_is_not_cut_and_a_bad_number_is_named_plainly(run):
    assert "..." not in run("--help").output.replace("FILE...", "").replace("[ARGS]...", "")
    assert "'abc' is not a valid whole number" in run("show", "abc").stderr
