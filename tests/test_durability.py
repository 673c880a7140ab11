"""What was answered stays: through `kill -9` in the middle of everything, and through uploads that race each
other.
"""

import contextlib
import hashlib
import io
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from PIL import Image

from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import Service, eventually, together

CLIENTS = 3
ROUNDS = 6
SIDES = (
    40,
    200,
    640,
    800,
)  # of a noise picture: 5 kB to 1.9 MB, of which the largest two do not stay in memory


def remote(fake):
    return {"api_key": "key", "dev_mode": "true", "llm_base_url": fake.url, "llm_model": "scripted"}


def noise(chance: random.Random) -> bytes:
    """A picture that does not compress and is like no other."""
    side = chance.choice(SIDES)
    out = io.BytesIO()
    Image.frombytes("RGB", (side, side), chance.randbytes(side * side * 3)).save(out, "PNG", compress_level=0)
    return out.getvalue()


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_nothing_that_was_answered(tmp_path):
    chance = random.Random(4711)
    answered: dict[int, bytes] = {}
    models_turn = threading.Event()

    def slow_model(request):
        models_turn.wait()
        return FINDINGS

    with FakeLLM(slow_model) as fake, Service(tmp_path, **remote(fake)) as service:
        try:
            for number in range(ROUNDS):
                # In every other round the model holds its answers, so that the end comes in the middle of
                # analyses.
                models_turn.set() if number % 2 else models_turn.clear()
                before = len(answered)
                stop_clients = upload_without_end(
                    service, answered, [random.Random(chance.random()) for _ in range(CLIENTS)]
                )
                eventually(lambda before=before: len(answered) >= before + CLIENTS, "uploads are answered")
                threading.Event().wait(chance.uniform(0, 0.4))  # no condition: any moment will do
                service.kill()
                stop_clients()
                service.start()
                for photo_id, digest in answered.items():
                    assert digest_of(service, photo_id) == digest
            models_turn.set()
            stats = service.wait_until_analysed()
            assert (stats["processing"], stats["pending"], stats["errors"]) == (0, 0, 0)
            assert stats["done"] == stats["total_photos"] >= len(answered)
            assert (
                sum(device["total_synced"] for device in service.get("/api/photos/devices")["devices"])
                == stats["total_photos"]
            )
            # Also what was stored and never answered is whole.
            for photo in service.photos():
                assert (
                    len(service.call("GET", f"/api/photos/{photo['id']}/image").content) == photo["file_size"]
                )
                assert service.call("GET", f"/api/photos/{photo['id']}/thumbnail").content.startswith(
                    b"\xff\xd8\xff"
                )
        finally:
            models_turn.set()


def upload_without_end(service, answered, chances):
    """Clients that upload picture after picture until the connection breaks; what is answered goes into
    `answered`.
    """

    def client(chance):
        with contextlib.suppress(requests.RequestException):
            while True:
                picture = noise(chance)
                answered[service.upload(picture)["id"]] = hashlib.sha256(picture).digest()

    threads = ThreadPoolExecutor(len(chances))
    clients = [threads.submit(client, chance) for chance in chances]

    def stop():
        threads.shutdown()
        for ended in clients:
            ended.result()

    return stop


def digest_of(service, photo_id):
    return hashlib.sha256(service.call("GET", f"/api/photos/{photo_id}/image").content).digest()


@pytest.mark.parametrize("moment", ["keys/master.key", "keys/ring.2", "database/*.db"])
def test_a_first_start_that_is_killed_can_be_made_again(moment, tmp_path):
    service = Service(tmp_path)
    try:
        service.launch()
        eventually(lambda: any(service.data.glob(moment)), f"{moment} is made", every=0)
        service.kill()
        service.start()
        photo = service.upload(draw())
        service.kill()
        service.start()
        assert service.get(f"/api/photos/{photo['id']}")["filename"] == "screenshot.png"
    finally:
        service.kill()


def test_parallel_uploads_of_one_local_id_store_one_photo_also_over_two_workers(tmp_path, fake_llm):
    with Service(tmp_path, "-w", "2", **remote(fake_llm)) as service:
        for local_id in ("first", "second", "third"):
            answers = together(
                *[
                    lambda local_id=local_id: service.upload(
                        noise(random.Random()), local_media_store_id=local_id
                    )
                ]
                * 8
            )
            assert sorted(answer["dedup"] for answer in answers) == [False] + [True] * 7
            assert len({answer["id"] for answer in answers}) == 1
        assert service.wait_until_analysed()["total_photos"] == 3
        assert service.get("/api/photos/sync-state", device_id="unknown")["total_synced"] == 3
        assert (
            len([path for path in service.data.glob("photos/*/*") if not path.name.endswith(".thumbnail")])
            == 3
        )
