"""Locust users that use a Snaplore all at once: phones that upload, browsers, people who chat.

`python -m benchmarks.load` runs them against its own service and judges their results. To run them against
another service: `python -m locust -f benchmarks/clients.py --host http://address --key KEY`.

They behave as the API's contract describes. A phone registers, reads its sync state, and uploads at most
three files at once; it retries a failed upload three times, doubling the pause. `verdicts.py` decides which
answers are allowed. Answers of 429 and 503 are counted separately, as `chat: 429`, because a refusal is fast
and would improve the figures. Each client does everything once when it starts, which Locust lets it finish,
so that even a short run on a busy machine covers everything.
"""

import argparse
import hashlib
import itertools
import json
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
from gevent.pool import Pool
from locust import HttpUser, between, constant, events, task
from locust.env import Environment
from requests import Response

from benchmarks import material, verdicts

AT_ONCE = 3  # uploads of a phone, by the contract
RETRIES = 3  # by the contract
FIRST_PAUSE = 1.0  # seconds before the first retry
BURST = 9  # the most new screenshots that a phone uploads at a time
SEEN_TWICE = 9  # one of so many uploads is repeated, as by a phone that missed the answer
THUMBNAILS_AT_ONCE = 6  # as browsers do
PICTURES = 12  # pictures that are drawn; each upload appends different bytes after the picture's end
PATIENCE = 120.0  # seconds

writer = material.Writer()
words = [word for word in writer.words[:2_000] if len(word) > 3]
uploads: list[dict[str, Any]] = []  # the successful ones
numbers, addresses = itertools.count(1), itertools.count(1)
screenshots: list[bytes] = []


@events.init_command_line_parser.add_listener
def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", default="", help="the service's API key")
    parser.add_argument("--result", type=Path, help="file for the results, as JSON")


@events.test_start.add_listener
def _draw(environment: Environment, **_: Any) -> None:
    screenshots[:] = [material.screenshot(writer, number) for number in range(PICTURES)]


class Client(HttpUser):
    abstract = True

    def on_start(self) -> None:
        self.client.trust_env = False  # ignore this machine's proxy settings
        self.client.headers["Authorization"] = f"Bearer {self.environment.parsed_options.key}"

    def call(self, name: str, method: str, path: str, **options: Any) -> Response | None:
        """The answer if it is a success, otherwise None. `name` is the request's name in the table."""
        with self.client.request(
            method, path, name=name, timeout=PATIENCE, catch_response=True, **options
        ) as answer:
            problem = verdicts.problem(
                path,
                answer.status_code,
                answer.headers,
                answer.text if answer.status_code else str(answer.error),
            )
            if problem:
                answer.failure(problem)
            else:
                answer.success()
            if answer.status_code in (429, 503):
                answer.request_meta["name"] = f"{name}: {answer.status_code}"
        return answer if answer.status_code in (200, 304) else None


class Phone(Client):
    """Uploads new screenshots every few seconds."""

    fixed_count = 3
    wait_time = between(2, 6)

    def on_start(self) -> None:
        super().on_start()
        self.device_id = f"phone_{secrets.token_hex(4)}"
        self.call("health", "GET", "/api/health")
        self.call(
            "register",
            "POST",
            "/api/push/register",
            json={"device_id": self.device_id, "token": self.device_id},
        )
        self.call(
            "sync state, set",
            "POST",
            "/api/photos/sync-state",
            files={},
            data={"device_id": self.device_id, "since_ms": "0"},
        )
        self.sync()

    @task
    def sync(self) -> None:
        self.call("sync state", "GET", "/api/photos/sync-state", params={"device_id": self.device_id})
        pool = Pool(AT_ONCE)
        for number in itertools.islice(numbers, random.randint(1, BURST)):
            pool.spawn(self.upload, number)
        pool.join()

    def upload(self, number: int) -> None:
        picture = screenshots[number % PICTURES] + number.to_bytes(8, "big")
        stored = self.send(number, picture)
        if stored is None:
            return
        uploads.append({"id": stored["id"], "sha256": hashlib.sha256(picture).hexdigest()})
        if number % SEEN_TWICE == 0:
            again = self.send(number, picture)
            if again is not None and (again["id"], again["dedup"]) != (stored["id"], True):
                self.fail("upload", f"photo {stored['id']} was stored twice: {again}")

    def send(self, number: int, picture: bytes) -> dict[str, Any] | None:
        """The answer to an upload, after as many tries as a phone makes; None if all of them fail."""
        form = {"device_id": self.device_id, "local_media_store_id": str(number)}
        for pause in _pauses():
            file = {"file": (f"Screenshot_{number}.png", picture, "image/png")}
            answer = self.call("upload", "POST", "/api/photos/upload", data=form, files=file)
            if answer is not None:
                return answer.json()
            gevent.sleep(pause)
        self.fail("upload", "all retries failed")
        return None

    def fail(self, name: str, reason: str) -> None:
        self.environment.stats.log_error("POST", name, reason)


class Browser(Client):
    """Opens a page every second or two."""

    fixed_count = 4
    wait_time = between(0.5, 2)

    def on_start(self) -> None:
        super().on_start()
        self.known: dict[str, str] = {}  # ETags
        self.look_at_a_page()
        self.search()
        self.look_at_the_figures()
        self.read_notes()
        self.read_memories()
        self.read_conversations()

    @task(6)
    def look_at_a_page(self) -> None:
        """A list of the newer half: older photos may be deleted by the clean-up meanwhile."""
        answer = self.call(
            "list", "GET", "/api/photos", params={"page": random.randint(1, 3), "page_size": 20}
        )
        items = answer.json()["items"] if answer is not None else []
        pool = Pool(THUMBNAILS_AT_ONCE)
        for item in items[:THUMBNAILS_AT_ONCE]:
            pool.spawn(self.picture, "thumbnail", item["id"])
        pool.join()
        if items:
            chosen = random.choice(items)["id"]
            self.call("detail", "GET", f"/api/photos/{chosen}")
            self.picture("image", chosen)

    @task(4)
    def search(self) -> None:
        word = random.choice(words)
        self.call(
            "search",
            "GET",
            "/api/search",
            params={"q": random.choice((word, word[:-1], f"{word} {random.choice(words)}"))},
        )

    @task(2)
    def look_at_the_figures(self) -> None:
        for name, path in (
            ("statistics", "/api/stats"),
            ("analyses", "/api/analysis"),
            ("devices", "/api/photos/devices"),
        ):
            self.call(name, "GET", path)

    @task(2)
    def read_notes(self) -> None:
        answer = self.call("notes", "GET", "/api/dynamics")
        self.call("notes, figures", "GET", "/api/dynamics/stats")
        if answer is not None and (items := answer.json()["items"]):
            self.call("note", "GET", f"/api/dynamics/{random.choice(items)['id']}")

    @task(2)
    def read_memories(self) -> None:
        self.call("memories", "GET", "/api/memories")
        self.call("memories, figures", "GET", "/api/memories/stats")

    @task(1)
    def read_conversations(self) -> None:
        answer = self.call("conversations", "GET", "/api/chat/conversations")
        if answer is not None and (items := answer.json()["conversations"]):
            self.call("conversation", "GET", f"/api/chat/conversations/{random.choice(items)['id']}")

    def picture(self, kind: str, photo_id: int) -> None:
        path = f"/api/photos/{photo_id}/{kind}"
        answer = self.call(
            kind, "GET", path, headers={"If-None-Match": self.known[path]} if path in self.known else {}
        )
        if answer is not None:
            self.known[path] = answer.headers["ETag"]


class Talker(Client):
    """Chats from its own address, with a pause between an answer and the next message."""

    fixed_count = 10
    wait_time = between(3, 9)
    conversation_id: str | None = None

    def on_start(self) -> None:
        super().on_start()
        self.client.headers["X-Forwarded-For"] = self.address()  # used because the service trusts one proxy

    @task
    def talk(self) -> None:
        """Send a message in a conversation of a few turns; sometimes start a new conversation."""
        if random.random() < 0.2:
            self.conversation_id = None
        message = {"message": writer.sentence(random.randint(3, 20)), "conversation_id": self.conversation_id}
        answer = self.call(
            "chat", "POST", "/api/chat/send", json={name: value for name, value in message.items() if value}
        )
        if answer is not None:
            self.conversation_id = answer.json()["conversation_id"]

    def address(self) -> str:
        return f"192.0.2.{next(addresses) % 255}"


class HastyTalker(Talker):
    """Exceeds the rate limit of one address, together with the others of its kind."""

    fixed_count = 3
    wait_time = constant(0.5)

    def address(self) -> str:
        return "198.51.100.1"


def _pauses() -> Iterator[float]:
    """The pause after each try, in seconds."""
    yield from (FIRST_PAUSE * 2**retry for retry in range(RETRIES))
    yield 0.0


@events.quitting.add_listener
def _write(environment: Environment, **_: Any) -> None:
    """Write the results, with times in milliseconds."""
    if (path := environment.parsed_options.result) is None:
        return
    kinds = [
        {
            "name": entry.name,
            "count": entry.num_requests,
            "p50": entry.get_response_time_percentile(0.5),
            "p95": entry.get_response_time_percentile(0.95),
            "max": entry.max_response_time,
        }
        for entry in environment.stats.entries.values()
    ]
    failures = [
        f"{error.name}: {error.error} ({error.occurrences} times)"
        for error in environment.stats.errors.values()
    ]
    path.write_text(json.dumps({"kinds": kinds, "failures": failures, "uploads": uploads}))
