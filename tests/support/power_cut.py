"""The program that `test_power_cut.py` runs in its own process and kills: `use` makes a small and a large
upload, each with its analysis, and a deletion; `turn` uploads a picture, rotates the key of the
database, and then those of the pictures.

It prints `answered <what>` after each step, at which the service would answer. Everything happens in one
thread, in the same order each time.
"""

import io
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from analysis.pool import Worker
from app import create_app
from clock import utc_now
from settings import Settings
from upkeep import resealing, rotation
from upkeep.progress import silent


def main(what: str, *pictures: str) -> None:
    settings = Settings.from_environ(os.environ)
    app = create_app(settings)
    answered("start")
    client, worker = app.test_client(), Worker(settings)
    bearer = {"Authorization": f"Bearer {app.api_key}"}
    waiting = [Path(picture) for picture in pictures]

    def upload() -> None:
        picture = waiting.pop(0)
        form = {
            "file": (io.BytesIO(picture.read_bytes()), picture.name),
            "local_media_store_id": picture.name,
            "device_id": "phone",
        }
        answer = client.post("/api/photos/upload", data=form, headers=bearer)
        assert answer.status_code == 200, answer.text
        answered(f"upload {answer.json['id']}")

    if what == "turn":
        upload()
        rotation.rotate(silent, now=utc_now())
        answered("rotation")
        resealing.seal_anew(silent)
        answered("sealing")
        return
    for number in range(1, len(pictures) + 1):
        upload()
        assert worker.work()
        answered(f"analysis {number}")
    assert client.delete("/api/photos/1", headers=bearer).status_code == 200
    answered("deletion 1")


def answered(what: str) -> None:
    os.write(1, f"answered {what}\n".encode())


main(*sys.argv[1:])
