"""Hostile input: Schemathesis sends a real service what the contract allows and what it does not, bounded in
time, beside slow clients, malformed bodies and a hostile model; and properties for what Schemathesis does not
make: chunks, animations, frames, archives, folders, Markdown.

No answer may be a failure of the server, have a status or a header that is not declared, or a body outside
its schema; nothing is answered without the key, and nothing found that was deleted. `make fuzz` gives all of
it minutes instead of seconds.
"""

import contextlib
import io
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

import pictures
from engines import prompts
from errors import UnsupportedImage
from settings import ROOT
from tests.support import heif
from tests.support.crowd import crowd, descriptors
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import PATIENCE, Service
from web import dashboard

KEY = "fuzz"
CONTRACT_CHECKS = ROOT / "tests" / "support" / "schemathesis.toml"
SOON = 5.0  # seconds; the figures that are printed are compared by people
ROUNDS = 10

# The service's own configuration; but no name leads out of the machine, since what is sent may be a preset's
# address, and then a message. Requests seem to come from many addresses, or the limit of 10 a minute would
# end all chats. Slow clients are not given up.
CONFIGURATION = f"""
import random
import socket

import web.worker

exec(open({str(ROOT / "gunicorn.conf.py")!r}).read())
web.worker.HEADER_SECONDS = 3600.0
resolve = socket.getaddrinfo


def getaddrinfo(host, *args, **options):
    if host not in ("localhost", "127.0.0.1", "::1", None):
        raise socket.gaierror(socket.EAI_AGAIN, "there is no network in this test")
    return resolve(host, *args, **options)


socket.getaddrinfo = getaddrinfo


def pre_request(worker, request):
    request.headers.append(("X-FORWARDED-FOR", f"198.51.100.{{random.randrange(250)}}"))
"""


# -------------------------------------------------------------------------------------------- a hostile model


def _said(content, **message):
    """The bytes of an answer with this text."""
    message = {"role": "assistant", "content": content, **message}
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


CALLS = [
    {"id": str(number), "type": "function", "function": {"name": name, "arguments": "{1" * 2_000}}
    for number, name in enumerate(["search_knowledge_base", "web_search", "none"] * 20)
]
ANSWERS = {
    "10 MB of {}": (200, b'{"choices": [' + b"{}," * 3_400_000 + b"{}]}"),
    '10 MB of {"a":[]}': (200, b'{"choices": [' + b'{"a":[]},' * 1_100_000 + b"{}]}"),
    "10 MB of text": (200, _said("a " * 5_000_000)),
    "2 MB of text": (200, _said("# a" + " " * 1_900_000 + "b")),
    "nearly JSON": (200, _said("{1" * 4_000)),
    "nested JSON": (200, b"[" * 100_000),
    "tool calls in each round": (200, _said(None, tool_calls=CALLS)),
    "a long word in an error": (400, json.dumps({"error": {"message": "support" * 30_000}}).encode()),
    "10 MB of error": (500, b'{"error": {"message": "' + b"\\u0000" * 1_700_000 + b'"}}'),
    "no JSON": (200, bytes(range(256)) * 1_000),
    "nothing": (200, b""),
}  # fmt: skip


class HostileLLM(FakeLLM):
    """Answers each request with `answer`, or with one of ANSWERS at random."""

    answer_with: str | None = None

    def _take(self, request):
        self.requests.clear()
        name = self.answer_with or random.choice(list(ANSWERS))
        status, body = ANSWERS[name]
        return lambda handler: self._send(handler, status, body)

    @staticmethod
    def _send(handler, status, body):
        with contextlib.suppress(OSError):  # the service hangs up when it has read enough
            handler.reply(status, body)


@contextlib.contextmanager
def attacked(folder):
    """A service with a hostile model, and the model."""
    configuration = folder / "gunicorn.conf.py"
    configuration.write_text(CONFIGURATION)
    settings = {"api_key": KEY, "language": "en", "trusted_proxies": 1, "dev_mode": "true"}
    with (
        descriptors(),
        HostileLLM() as model,
        Service(
            folder,
            *("-c", str(configuration)),
            llm_base_url=model.url, llm_model="hostile", llm_api_key="sk-hostile", **settings,
        ) as service,
    ):  # fmt: skip
        yield service, model


# --------------------------------------------------------------------------------------- a service under fire


@pytest.mark.slow
def test_whatever_is_sent_the_service_keeps_to_its_contract(tmp_path, request):
    seconds = request.config.getoption("fuzz_seconds")
    enough = threading.Event()
    with attacked(tmp_path) as (service, _), crowd(service), ThreadPoolExecutor() as threads:
        malformed = threads.submit(_malformed_until, enough, service)
        command = ["run", f"{service.url}/api/openapi.json", "--max-time", str(seconds), "--no-color"]
        try:
            found = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONTRACT_CHECKS), *command],
                cwd=tmp_path, env={**os.environ, "FUZZ_KEY": KEY}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=seconds + 3 * PATIENCE, check=False,
            )  # fmt: skip
        finally:
            enough.set()
        print(found.stdout, found.stderr)
        print(f"{malformed.result()} malformed bodies beside them")
        assert found.returncode == 0
        assert " generated, " in found.stdout


@pytest.mark.slow
def test_beside_slow_clients_and_each_hostile_answer_everything_is_answered_soon(tmp_path):
    with attacked(tmp_path) as (service, model):
        slowest = {"nothing hostile": _slowest(service)}
        with crowd(service):
            slowest["864 slow clients"] = _slowest(service)
        for name in ANSWERS:
            model.answer_with = name
            with _chats(service) as chats:
                slowest[name] = _slowest(service)
            print(f"{name}: {len(chats)} chats, answered with {sorted(set(chats))}")
            assert chats
            assert set(chats) <= {200, 502, 503}
    print(f"Seconds, the slowest of {ROUNDS} each: health, list, upload")
    for name, seconds in slowest.items():
        print(f"{name:26}", *(f"{each:6.2f}" for each in seconds))
        assert max(seconds) < SOON


def _slowest(service):
    """The longest times of ROUNDS requests each: health, list, upload."""
    calls = (
        lambda: service.call("GET", "/api/health"),
        lambda: service.call("GET", "/api/photos"),
        lambda: service.upload(draw(f"Beside {random.random()}")),
    )
    spent = [[], [], []]
    for _ in range(ROUNDS):
        for call, seconds in zip(calls, spent, strict=True):
            begun = time.monotonic()
            call()
            seconds.append(time.monotonic() - begun)
    return [max(seconds) for seconds in spent]


@contextlib.contextmanager
def _chats(service):
    """Four clients that chat with the model again and again; the statuses of the answers."""
    enough = threading.Event()
    statuses = []

    def talk():
        while not enough.is_set():
            answer = service.knock(
                "POST", "/api/chat/send", json={"message": "Hello"}, headers=service.bearer
            )
            statuses.append(answer.status_code)

    with ThreadPoolExecutor(4) as threads:
        talking = [threads.submit(talk) for _ in range(4)]
        try:
            yield statuses
        finally:
            enough.set()
        for each in talking:
            each.result()


# ----------------------------------------------------------------------------------------------------- bodies

SIZES = st.sampled_from(
    [b"0", b"1", b"2", b"a", b"-1", b"zz", b"0x2", b"ffffffffffffffff", b" 2", b"2;x=y", b""]
)
ENDS = st.sampled_from([b"\r\n", b"\n", b"", b"\r", b"\r\n\r\n"])
CHUNKS = st.lists(
    st.tuples(
        SIZES, ENDS, st.sampled_from([b"", b"{", b"{}", b"[]", b" " * 10, b"\xff\0", b"a" * 70_000]), ENDS
    ),
    max_size=4,
).map(lambda parts: b"".join(b"".join(part) for part in parts))
LARGE = b"".join(b"%x\r\n%b\r\n" % (65_536, b" " * 65_536) for _ in range(20)) + b"0\r\n\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Service(tmp_path_factory.mktemp("fuzz"), api_key=KEY) as service:
        yield service


def send(service, body, key):
    """The status of the answer to a JSON body in these chunks, after which no more comes; 0: no answer."""
    head = (
        f"POST /api/skills HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as client:
        with contextlib.suppress(OSError):  # it may be refused before it is sent
            client.sendall(head.encode() + body)
            client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            first = client.makefile("rb").readline().split()
            return int(first[1]) if first else 0
        return 0


def _malformed_until(enough, service):
    """Send malformed and too large bodies, with and without the key; returns how many."""
    count = 0
    while not enough.is_set():
        count += 1
        body = random.choice([LARGE, b"zz\r\n", b"2\r\n{}zz0\r\n\r\n", b"-1\r\n\r\n", os.urandom(100)])
        assert send(service, body, random.choice([KEY, "wrong"])) in (0, 400, 401, 413)
    return count


@given(CHUNKS | st.just(LARGE), st.sampled_from([KEY, "wrong"]))
def test_no_chunks_are_a_failure_of_the_server(service, body, key):
    before = len(service.output)
    status = send(service, body, key)

    assert status in ((0, 401) if key == "wrong" else (0, 400, 413))
    assert service.output[before:].count("\n") <= 1


# ------------------------------------------------------------------------------------------------- animations

SIDES = st.sampled_from([0, 1, 2, 100, 5_000, 7_070, 10_000, 65_535])


def gif(width, height, frames, side):
    frame = b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x02\x02\x44\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + frame * frames + b";"


def apng(width, height, frames, side):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    data = zlib.compress(b"\0" * 100)
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    parts.append(chunk(b"acTL", struct.pack(">II", frames, 0)))
    parts += [chunk(b"IDAT", data)]
    for number in range(min(frames, 20)):
        control = struct.pack(">IIIIIHHBB", 2 * number, side, side, 0, 0, 1, 10, 0, 0)
        parts += [chunk(b"fcTL", control), chunk(b"fdAT", struct.pack(">I", 2 * number + 1) + data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore:Invalid APNG")
@given(st.sampled_from([gif, apng]), SIDES, SIDES, st.sampled_from([0, 1, 2, 60, 1_000, 1_001]), SIDES)
def test_an_animation_is_within_the_limits_or_refused(make, width, height, frames, side):
    try:
        found = pictures.examine(io.BytesIO(make(width, height, frames, side)))
    except UnsupportedImage:
        return
    assert found.width * found.height * max(1, frames) <= pictures.MAX_ANIMATION_PIXELS


# -------------------------------------------------------------------------------------------- HEIC and AVIF

HEIFS = [heif.WORDS, heif.TRANSPARENT, heif.heic([heif.turned(1)], columns=3, rows=2), draw(format="AVIF")]
CHANGES = st.lists(
    st.tuples(st.integers(0, 700), st.integers(0, 8), st.binary(max_size=8)), min_size=1, max_size=4
)


@pytest.mark.slow
@given(st.sampled_from(HEIFS), CHANGES)
def test_a_damaged_heic_or_avif_is_small_enough_or_refused(whole, changes):
    content = whole
    for place, dropped, put in changes:
        content = content[:place] + put + content[place + dropped :]
    try:
        found = pictures.examine(io.BytesIO(content))
    except UnsupportedImage:  # also when the decoder has crashed, which only ends its own process
        return
    assert found.width * found.height <= pictures.MAX_PIXELS


# ---------------------------------------------------------------------------------------- frames and archives


@given(
    st.lists(st.tuples(st.integers(0, 16), st.integers(0, 16), st.sampled_from(["", " ", "\n", "<", "data"])))
)
def test_no_pieces_of_a_marker_close_its_frame(pieces):
    frame = prompts.Frame()
    text = "".join(frame.marker[one:] + between + frame.marker[:other] for one, other, between in pieces)

    assert frame.around(text).count(frame.marker) == 2


MEMBERS = st.lists(
    st.tuples(
        st.sampled_from(
            ["backup.json", "keys/ring.1", "../up", "/etc/passwd", "photos/aa/" + "a" * 32, "SHA256SUMS"]
        ),
        st.sampled_from([b"0", b"1", b"2", b"3", b"5", b"6", b"7", b"L", b"K", b"x", b"g", b"S"]),
        st.sampled_from([0, 1, 512, 2**33 - 1]),
        st.binary(max_size=40),
    ),
    max_size=5,
)


@given(MEMBERS, st.integers(0, 2_000))
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_archive_is_restored_that_is_not_a_backup(cli, tmp_path, members, cut):
    archive = b""
    for name, kind, size, content in members:
        header = tarfile.TarInfo(name)
        header.type, header.size, header.linkname = kind, size, "/etc/passwd"
        archive += header.tobuf(tarfile.GNU_FORMAT) + content.ljust(512, b"\0")
    (tmp_path / "archive.tar").write_bytes(archive[: len(archive) - cut] if cut % 2 else archive)
    run = cli.invoke(args=["restore", str(tmp_path / "archive.tar")])

    assert run.exit_code == 1
    assert isinstance(run.exception, SystemExit)
    assert len(run.output.splitlines()) == 1


# ---------------------------------------------------------------------------------------------------- folders

NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: b"/" not in name and b"\0" not in name and name[0] != 46
)
KINDS = st.sampled_from(
    ["picture", "cut", "empty", "text", "link", "loop", "dangling", "fifo", "huge", "unreadable"]
)
PICTURE = draw("fuzz")


@given(st.dictionaries(NAMES, KINDS | st.dictionaries(NAMES, KINDS, max_size=3), max_size=5))
@examples(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=min(200, examples.default.max_examples),
)
def test_no_folder_ends_an_import(cli, tmp_path_factory, tree):
    folder = tmp_path_factory.mktemp("import")
    wanted = _plant(folder, tree)
    run = cli.invoke(args=["import", str(folder)])

    assert run.exception is None or isinstance(run.exception, SystemExit)
    imported, already, *_ = (int(part.split()[0]) for part in run.output.splitlines()[-1].split(", "))
    assert imported + already == wanted


def _plant(folder, tree):
    """Make these files; returns how many pictures there are."""
    pictures = 0
    for name, kind in tree.items():
        path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        if isinstance(kind, dict):
            path.mkdir()
            pictures += _plant(path, kind)
            continue
        match kind:
            case "picture":
                path.write_bytes(PICTURE)
                pictures += 1
            case "cut":
                path.write_bytes(PICTURE[:-20])
            case "empty":
                path.touch()
            case "text":
                path.write_text("no picture")
            case "link":
                path.symlink_to("/etc/hostname")
            case "loop":
                path.symlink_to(folder)
            case "dangling":
                path.symlink_to("nothing")
            case "fifo":
                os.mkfifo(path)
            case "huge":
                with path.open("wb") as file:
                    file.truncate(10**11)
            case "unreadable":
                path.write_text("no picture")
                path.chmod(0)
    return pictures


# --------------------------------------------------------------------------------------------------- Markdown

SIGNS = tuple(" \t\n#`*[!\\.a\0中\u2028")
MARKS = (
    "# ",
    "- ",
    "> ",
    "| ",
    "|-",
    "```",
    "**",
    "_",
    "~~",
    "](",
    ")",
    "(b)",
    "1. ",
    "<https://a",
    "- [ ] ",
    "---",
)
PIECES = st.sampled_from(SIGNS + MARKS)


@pytest.fixture(scope="module")
def render(chromium):
    blank = chromium.new_page()
    blank.add_script_tag(content=dashboard.linked(dashboard.TEMPLATES / "script" / "base" / "markdown.js"))
    yield lambda text: blank.evaluate(f"h('div', markdown({json.dumps(text)})).textContent.length")
    blank.close()


@given(st.lists(st.tuples(PIECES, st.sampled_from([1, 2, 50, 4_000, 20_000])), max_size=5))
def test_no_markdown_stops_the_page(render, parts):
    text = "".join(piece * (count // len(piece) or 1) for piece, count in parts)

    assert render(text) <= 2 * len(text) + 100
