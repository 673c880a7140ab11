"""What a stolen disk gives away: the bytes of every file under the data folder, while the service runs and
after it was killed.
"""

import contextlib
import os
import random

import pytest

from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import HeldUpload, Service, eventually

SECRET = "sk-of-the-model-in-the-environment"
SEEN = "Meet the quicksilver smuggler at midnight"
SUMMARY = "A rendezvous about contraband marzipan"
WORDS = {
    "visible text": SEEN,
    "a word of it, as the index has it": "quicksilver",
    "summary": SUMMARY,
    "entity": "Captain Ambrosius",
    "file name": "divorce-papers",
    "device id": "phone_of_ermintrude",
    "device name": "Ermintrude's secret phone",
    "local id": "local-id-of-the-affair",
    "source type": "from-the-hidden-album",
    "name of a deleted file": "regretted-selfie",
}
# By their beginnings that no chance brings forth: three bytes of a JPEG are in every few megabytes of noise.
SIGNATURES = {
    "PNG": b"\x89PNG\r\n\x1a\n",
    "JPEG": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "GIF": b"GIF87a",
    "WebP": b"WEBPVP8",
    "SQLite": b"SQLite format 3",
}


def found_in(service: Service, needles: dict[str, bytes]) -> set[str]:
    """The needles that some file of the data folder contains, in upper or lower case. The file of the master
    key is not searched.
    """
    present = set()
    for path in service.data.rglob("*"):
        if path.is_file() and path != service.data / "keys" / "master.key":
            content = path.read_bytes().lower()
            present |= {name for name, needle in needles.items() if needle.lower() in content}
            present |= {
                f"{name} (as a file's name)"
                for name, needle in needles.items()
                if needle.decode("latin-1") in path.name
            }
    return present


def files_outside(service: Service) -> list[str]:
    """Files that its processes have open elsewhere than under the data folder, the deleted ones too."""
    places = []
    for process in (service.master, *service.workers):
        for number in os.listdir(f"/proc/{process.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                places.append(os.readlink(f"/proc/{process.pid}/fd/{number}"))
    allowed = (
        str(service.data),
        str(service.log),
        "/dev/",
    )  # the heartbeat of gunicorn is in /dev/shm, and is empty
    return [place for place in places if place.startswith("/") and not place.startswith(allowed)]


def lived_in(service: Service) -> dict[str, bytes]:
    """Use the service as a person does for a day; what of it must not be readable."""
    about = {
        "device_id": WORDS["device id"], "device_name": WORDS["device name"],
        "source_type": WORDS["source type"],
    }  # fmt: skip
    pictures = {
        "png": draw(SEEN, size=(700, 700), compress_level=0), "jpg": draw(SEEN, format="JPEG"),
        "gif": draw(SEEN, format="GIF"), "webp": draw(SEEN, format="WEBP", lossless=True),
    }  # fmt: skip
    for ending, picture in pictures.items():
        service.upload(
            picture,
            f"{WORDS['file name']}.{ending}",
            local_media_store_id=f"{WORDS['local id']} {ending}",
            **about,
        )
    regretted = service.upload(draw("Regret"), WORDS["name of a deleted file"], **about)
    service.wait_until_analysed()
    assert service.get("/api/search", q="quicksilver smugler")["total"] >= 4
    assert service.call("DELETE", f"/api/photos/{regretted['id']}").status_code == 200
    assert service.call("POST", "/api/analysis/1/reprocess").status_code == 200
    service.call(
        "POST",
        "/api/photos/sync-state",
        files={"device_id": (None, WORDS["device id"]), "since_ms": (None, "1")},
    )
    service.wait_until_analysed()
    parts = {
        f"bytes of the {ending}": picture[len(picture) // 2 :][:24] for ending, picture in pictures.items()
    }
    words = {name: word.encode() for name, word in WORDS.items()}
    return {
        **words,
        **parts,
        **SIGNATURES,
        "the service's key": service.key.encode(),
        "the model's key": SECRET.encode(),
    }


@pytest.fixture
def model():
    findings = {
        **FINDINGS,
        "summary": SUMMARY,
        "visible_text": SEEN,
        "entities": [{"type": "person", "value": WORDS["entity"]}],
    }
    with FakeLLM(lambda request: findings) as fake:
        yield {
            "llm_base_url": fake.url,
            "llm_model": "scripted",
            "llm_api_key": SECRET,
            "llm_allowed_hosts": "localhost",
        }


def test_nothing_that_is_stored_can_be_read_on_the_disk(tmp_path, model):
    with Service(tmp_path, **model) as service:
        needles = lived_in(service)
        assert found_in(service, needles) == set()
        assert files_outside(service) == []
        service.kill()
        assert any(service.data.glob("database/*-wal")), "a killed service leaves its write-ahead log"
        assert found_in(service, needles) == set()
        service.start()
        assert service.get("/api/search", q="smuggler")["total"] == 4
        assert service.stop() == 0
        assert found_in(service, needles) == set()
        assert list(service.temporary.iterdir()) == []


def test_without_encryption_the_same_search_finds_everything_but_the_keys_of_others(tmp_path, model):
    """The proof that the search would have found it."""
    with Service(tmp_path, encryption="false", **model) as service:
        needles = lived_in(service)
        found = found_in(service, needles)
        assert found >= needles.keys() - {"the model's key", "name of a deleted file"}
        assert "the model's key" not in found


def test_an_upload_that_is_still_arriving_cannot_be_read_either(tmp_path):
    chance = random.Random(5)
    picture = draw(size=(1300, 1300), compress_level=0)[:-1_000_000] + chance.randbytes(1_000_000)
    with (
        Service(tmp_path, api_key="key") as service,
        contextlib.closing(HeldUpload(service, picture)) as upload,
    ):
        upload.send(len(picture) // 2)
        arriving = eventually(lambda: large_files(service.data / "spool"), "half of it has arrived")
        needles = {**SIGNATURES, "its pixels": bytes([255]) * 64, "its form": b"held.png"}
        assert found_in(service, needles) == set()
        assert files_outside(service) == []
        assert list(service.temporary.iterdir()) == []
        # And what is cut off leaves nothing.
        upload.close()
        eventually(lambda: not any(path.exists() for path in arriving), "what has arrived is thrown away")


def large_files(folder):
    return [path for path in folder.iterdir() if path.stat().st_size > 2_000_000]
