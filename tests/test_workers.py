"""Two gunicorn workers over one data folder: what one does the other knows, nothing is done twice, and
nothing is lost with one of them.
"""

import contextlib
import dataclasses
import functools
import http.client
import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from limits.storage import Storage

from app import create_app
from errors import StartRefused
from settings import ROOT
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import PATIENCE, Service, eventually, together


def environment(fake: FakeLLM, **more) -> dict[str, str]:
    model = {"dev_mode": "true", "llm_base_url": fake.url, "llm_model": "first", "llm_api_key": "sk-scripted"}
    return {"api_key": "key", "trusted_proxies": "1", "analysis_workers": "1", **model, **more}


@pytest.fixture(scope="module")
def fake():
    with FakeLLM() as fake:
        yield fake


# What takes a minute or some seconds in service, so that a test need not wait for it.
HASTY = """
import claims, reasoner
from engines import configuration
configuration.CACHE_SECONDS = claims.IDLE_WAIT = reasoner.LOOK_AGAIN = 0.3
"""


@contextlib.contextmanager
def running(folder: Path, fake: FakeLLM, **more: str) -> Iterator[Service]:
    """A service of two workers with one analysing thread each."""
    hasty = folder / "hasty.py"
    hasty.write_text((ROOT / "gunicorn.conf.py").read_text() + HASTY)
    with Service(folder, "-c", str(hasty), "-w", "2", **environment(fake, **more)) as service:
        eventually(lambda: len(service.workers) == 2, "both workers are there")
        yield service


@pytest.fixture(scope="module")
def service(tmp_path_factory, fake):
    with running(tmp_path_factory.mktemp("workers"), fake) as service:
        yield service
        assert service.stop() == 0


@pytest.fixture
def two(tmp_path, fake_llm):
    """One that a test may break."""
    with running(tmp_path, fake_llm) as service:
        yield service


def by(
    service: Service, worker: psutil.Process, method: str, path: str, body=None, *, address: str = "192.0.2.1"
):
    """The status and the content, JSON decoded, of a request that this very worker answers: it has accepted
    the connection.
    """
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
        try:
            connection.connect()
            port = connection.sock.getsockname()[1]
            if (
                eventually(lambda port=port: holder(service, port), "a worker accepts the connection")
                == worker
            ):
                headers = {**service.bearer, "X-Forwarded-For": address, "Content-Type": "application/json"}
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                content = answer.read()
                return answer.status, json.loads(
                    content
                ) if "json" in answer.headers.get_content_type() else content
        finally:
            connection.close()
    raise AssertionError(f"worker {worker.pid} accepts no connection")


def holder(service: Service, port: int) -> psutil.Process | None:
    for worker in service.workers:
        if any(
            connection.raddr and connection.raddr.port == port for connection in worker.net_connections("tcp")
        ):
            return worker
    return None


def found(service: Service, worker: psutil.Process, words: str) -> list[int]:
    status, answer = by(service, worker, "GET", f"/api/search?q={words}")
    assert status == 200, answer
    return [item["id"] for item in answer["items"]]


# ------------------------------------------------------------------------------------- what the other one did


def test_what_one_worker_has_analysed_is_found_with_a_typo_through_both(service, fake, monkeypatch):
    one, other = service.workers
    assert (
        found(service, one, "zanzibra") == found(service, other, "zanzibra") == []
    )  # both hold the vocabulary in memory now
    monkeypatch.setattr(
        fake, "default", lambda request: {**FINDINGS, "visible_text": "Ferry to Zanzibar at nine"}
    )
    photo = service.upload(draw("Ferry"))["id"]
    service.wait_until_analysed()
    assert found(service, one, "zanzibra") == found(service, other, "zanzibra") == [photo]
    assert by(service, one, "DELETE", f"/api/photos/{photo}")[0] == 200
    assert found(service, other, "zanzibra") == found(service, other, "zanzibar") == []


def shared(service: Service, name: str) -> tuple[int, dict, str]:
    """A photo, a link to it that lasts a minute, and the path of that."""
    photo = service.upload(draw(name))["id"]
    body = {"redact": "none", "expires_in": 60}
    new = service.call("POST", f"/api/photos/{photo}/shares", json=body).json()
    return photo, new, "/s/" + new["url"].rpartition("/s/")[2]


@pytest.mark.parametrize("ending", ["revoked", "trashed", "deleted"])
def test_a_link_to_a_picture_ends_at_once_in_both_workers(service, ending):
    one, other = service.workers
    photo, new, path = shared(service, f"Shared until it is {ending}")
    assert [by(service, worker, "GET", path)[0] for worker in (one, other)] == [200, 200]
    match ending:
        case "revoked":
            ended = by(service, one, "DELETE", f"/api/shares/{new['id']}")
        case "trashed":
            ended = by(service, one, "POST", "/api/photos/batch", {"ids": [photo], "action": "trash"})
        case _:
            ended = by(service, one, "DELETE", f"/api/photos/{photo}")
    assert ended[0] == 200
    assert [by(service, worker, "GET", path)[0] for worker in (other, one)] == [404, 404]


@pytest.mark.slow
def test_a_link_to_a_picture_is_dead_at_its_second_in_both_workers(service):
    _, new, path = shared(service, "Shared for a minute")
    ends = datetime.fromisoformat(new["expires_at"]).replace(tzinfo=UTC).timestamp()
    while (left := ends - time.time()) > 0:
        for worker in service.workers:
            asked = time.time()
            status = by(service, worker, "GET", path, address="192.0.2.7")[0]
            assert status == 200 or time.time() >= ends, f"dead {ends - asked:.2f} s early"
        time.sleep(min(4.0, max(0.0, left / 2)))
    assert [by(service, worker, "GET", path, address="192.0.2.8")[0] for worker in service.workers] == [
        404,
        404,
    ]


def test_a_configuration_set_in_one_worker_is_shown_by_the_other_at_once_and_used_when_its_cache_ends(
    service, fake
):
    one, other = service.workers

    def asked():
        """Which model the other worker asks."""
        status, answer = by(
            service, other, "POST", "/api/chat/send", {"message": "Hello"}, address=next(addresses)
        )
        assert status == 200, answer
        return next(
            request.body["model"]
            for request in reversed(fake.requests)
            if request.body["messages"][-1]["content"] == "Hello"
        )

    addresses = iter(f"198.51.100.{number}" for number in range(1, 255))
    before = asked()
    assert by(service, one, "PUT", "/api/config/llm", {"model": "second"})[0] == 200
    assert by(service, other, "GET", "/api/config/llm")[1]["model"] == "second"
    eventually(lambda: asked() == "second", "the other worker uses it", every=0.1)
    assert before == "first"


def test_turns_of_one_conversation_come_one_after_the_other_over_workers(service, fake, monkeypatch):
    one, other = service.workers
    asked, release = threading.Event(), threading.Event()
    first, second = ({"message": message, "conversation_id": "c0ffee"} for message in ("First", "Second"))

    def answer(request):
        if request.body["messages"][-1]["content"] != "First":
            return FINDINGS
        asked.set()
        release.wait(PATIENCE)
        return "The first answer."

    def ask_first():
        return by(service, one, "POST", "/api/chat/send", first, address="203.0.113.1")

    def ask_second():
        asked.wait(PATIENCE)
        return by(service, other, "POST", "/api/chat/send", second, address="203.0.113.2")

    def ask_elsewhere():
        """Another conversation does not wait for these two."""
        asked.wait(PATIENCE)
        elsewhere = by(
            service, other, "POST", "/api/chat/send", {"message": "Elsewhere"}, address="203.0.113.3"
        )
        release.set()
        return elsewhere

    monkeypatch.setattr(fake, "default", answer)
    assert [status for status, _ in together(ask_first, ask_second, ask_elsewhere)] == [200, 200, 200]
    [request] = [request for request in fake.requests if request.body["messages"][-1]["content"] == "Second"]
    assert "The first answer." in request.text
    messages = service.get("/api/chat/conversations/c0ffee")["messages"]
    assert [(message["role"], message["content"]) for message in messages[:2]] == [
        ("user", "First"),
        ("assistant", "The first answer."),
    ]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2


def test_a_new_key_of_the_database_is_taken_over_by_both(service):
    photo = service.upload(draw("Kept over the rotation"))["id"]
    service.wait_until_analysed()
    before = {path.name for path in (service.data / "database").glob("*.db")}
    for _ in range(2):
        turned = service.run("flask", "--app", "app", "jobs", "rotate-keys", "--force")
        assert (turned.returncode, turned.stderr) == (0, "")
        for worker in service.workers:
            assert by(service, worker, "GET", f"/api/photos/{photo}")[0] == 200
    after = {path.name for path in (service.data / "database").glob("*.db")}
    assert len(after) == 1
    assert not after & before
    service.upload(draw("Uploaded after the rotation"))
    assert service.wait_until_analysed()["errors"] == 0


# ---------------------------------------------------------------------------------------------- nothing twice


@pytest.mark.slow
def test_every_third_analysis_asks_for_one_cycle_whichever_worker_completes_it(two, fake_llm):
    def answer(request):
        if "articles" not in request.text:
            return {**FINDINGS, "memories": []}
        title = f"Note number {sum('articles' in earlier.text for earlier in fake_llm.requests)}"
        cited = [photo["id"] for photo in two.photos()]
        return {"articles": [{"title": title, "content": title, "category": "insight", "photo_ids": cited}]}

    fake_llm.default = answer
    for notes in (1, 2):
        together(*(functools.partial(two.upload, draw(f"Picture {notes} {number}")) for number in range(3)))
        eventually(
            lambda notes=notes: len(two.get("/api/dynamics")["items"]) >= notes, "the reasoner has written"
        )
    assert len(two.get("/api/dynamics")["items"]) == 2
    assert sum("articles" in request.text for request in fake_llm.requests) == 2


def test_what_a_killed_worker_was_analysing_is_done_by_another_and_what_the_other_has_is_not_done_twice(
    two, fake_llm
):
    answer = threading.Event()
    for _ in range(2):
        fake_llm.answer(after=answer)
    photos = [two.upload(draw(f"Picture {number}"))["id"] for number in range(2)]
    fake_llm.wait_for_requests(2)  # each worker has one thread, and so one of them
    two.workers[0].kill()
    fake_llm.wait_for_requests(3, seconds=PATIENCE)
    answer.set()
    assert two.wait_until_analysed()["done"] == len(photos)
    assert len(fake_llm.requests) == 3
    assert len({request.images[0] for request in fake_llm.requests}) == 2
    eventually(lambda: len(two.workers) == 2, "there is a second worker again")


@pytest.mark.slow
def test_after_a_crash_of_the_whole_service_only_what_was_under_way_is_done_again(two, fake_llm):
    answer = threading.Event()
    two.upload(draw("Done before"))
    two.wait_until_analysed()
    for _ in range(2):
        fake_llm.answer(after=answer)
    for number in range(2):
        two.upload(draw(f"Picture {number}"))
    fake_llm.wait_for_requests(3)
    two.kill()
    answer.set()
    two.start()
    assert two.wait_until_analysed()["done"] == 3
    pictures = [
        request.images[0] for request in fake_llm.requests if request.images
    ]  # the third analysis asks for a note as well
    assert (len(pictures), len(set(pictures))) == (5, 3)


@pytest.mark.slow
def test_what_both_workers_are_analysing_is_finished_before_the_service_ends(two, fake_llm):
    answer = threading.Event()
    for _ in range(2):
        fake_llm.answer(after=answer)
    for number in range(2):
        two.upload(draw(f"Picture {number}"))
    fake_llm.wait_for_requests(2)
    two.begin_to_stop()
    answer.set()
    assert two.wait() == 0
    fake_llm.close()
    two.start()
    assert two.get("/api/stats")["done"] == 2


# ------------------------------------------------------------------------------------------------ rate limits


class Redis:
    """A real Redis behind a socket in the test's folder."""

    def __init__(self, program: str, folder: Path):
        self._command = [
            program,
            "--port",
            "0",
            "--unixsocket",
            folder / "redis.sock",
            "--save",
            "",
            "--dir",
            folder,
        ]
        self._path = folder / "redis.sock"
        self.address = f"redis+unix://{self._path}"
        self.start()

    def start(self) -> None:
        self._path.unlink(missing_ok=True)  # a killed one leaves it behind
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        eventually(self._path.exists, "Redis listens")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)


@pytest.fixture
def redis(tmp_path):
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    redis = Redis(program, tmp_path)
    yield redis
    redis.kill()


def triggered(service: Service, count: int, address: str) -> list[int]:
    """The statuses of so many requests that are limited, to one worker after the other."""
    workers = service.workers
    turns = (workers[turn % 2] for turn in range(count))
    return [by(service, worker, "POST", "/api/dynamics/trigger", address=address)[0] for worker in turns]


@pytest.mark.slow
def test_with_a_shared_storage_an_address_has_one_budget_over_both_workers(tmp_path, fake_llm, redis):
    with running(tmp_path, fake_llm, ratelimit_storage=redis.address) as service:
        assert "a rate limit of its own" not in service.output
        assert triggered(service, 12, "192.0.2.1") == [200] * 10 + [429] * 2
        assert triggered(service, 2, "192.0.2.2") == [200] * 2
        # A storage that goes away is no reason to refuse anybody: each worker counts by itself.
        redis.kill()
        assert triggered(service, 24, "192.0.2.3") == [200] * 20 + [429] * 4
        # One that is back is used again, after half a minute at most.
        redis.start()
        others = (f"192.0.2.{number}" for number in range(4, 255))
        eventually(
            lambda: triggered(service, 12, next(others)) == [200] * 10 + [429] * 2,
            "both workers count together again",
            every=1,
            patience=4 * PATIENCE,
        )
        assert service.stop() == 0


@pytest.mark.slow
def test_a_shared_storage_that_hangs_delays_a_request_and_refuses_nobody(tmp_path, fake_llm, redis):
    with running(tmp_path, fake_llm, ratelimit_storage=redis.address) as service:
        assert triggered(service, 2, "192.0.2.1") == [200] * 2
        redis.process.send_signal(signal.SIGSTOP)
        assert triggered(service, 4, "192.0.2.1") == [200] * 4
        # What is not limited does not ask the storage.
        assert service.get("/api/stats")["total_photos"] == 0
        redis.process.send_signal(signal.SIGCONT)
        assert service.stop() == 0


def test_without_a_shared_storage_the_start_says_that_each_worker_counts_by_itself(service):
    assert (
        "2 workers, each with a rate limit of its own: SNAPLORE_RATELIMIT_STORAGE is not shared"
        in service.output
    )


class Fixed(Storage):
    """One that knows no moving window, as memcached."""

    STORAGE_SCHEME = ("fixed",)
    base_exceptions = Exception
    incr = get = get_expiry = check = reset = clear = None


@pytest.mark.parametrize("storage", ["nonsense", "nowhere://host", "redis://host:port", "fixed://"])
def test_a_storage_that_cannot_be_used_stops_the_start_with_a_sentence_that_does_not_repeat_it(
    settings, storage
):
    expected = r"^SNAPLORE_RATELIMIT_STORAGE: must be a supported storage address"
    with pytest.raises(StartRefused, match=expected) as refusal:
        create_app(dataclasses.replace(settings, ratelimit_storage=storage))
    assert storage not in str(refusal.value)
