"""`python -m benchmarks.nearest`: what a description costs among many screenshots (SIZE, 100,000 by default).

It fills a service in a temporary folder with rows of photos, analyses and random vectors, and asks
`/api/search/related`. The first question starts the child process and gives it all signs. Printed are the
memory of that process, its processor time for a question, and the time of an answer.
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy
import psutil

import database
import llm
from app import Application, create_app
from benchmarks.described import FIRST
from database import db
from engines import vectors
from models import Analysis, Meaning, MeaningDue, MeaningSigns, Photo
from settings import Settings

SIZE = int(os.environ.get("SIZE", "100000"))
ROUNDS = 60
BATCH = 500
QUESTIONS = (
    "how warm will it be this week", "receipt for the washing machine", "dinner plans with a friend",
    "error message in a program", "present ideas for my sister", "上海到北京的火车票",
    "考试时间表", "家里的密码",
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="snaplore-nearest-") as folder:
        app = create_app(Settings(data_dir=Path(folder) / "data", language="en", dev_mode=True))
        try:
            _fill(SIZE)
            _measure(app)
        finally:
            database.close_store()


def _measure(app: Application) -> None:
    client = app.test_client()

    def ask(number: int) -> None:
        query = {"q": QUESTIONS[number % len(QUESTIONS)], "limit": FIRST}
        answer = client.get("/api/search/related", query_string=query)
        assert answer.status_code == 200, answer.text
        assert (answer.json or {})["available"], "this machine cannot make vectors"

    print(f"first question, with the start and {SIZE} signs: {_timed(ask, 0):.1f} s")
    (child,) = psutil.Process().children()
    spent, own = child.cpu_times(), time.process_time()
    times = sorted(_timed(ask, number) for number in range(ROUNDS))
    after, service = child.cpu_times(), (time.process_time() - own) / ROUNDS
    each = (after.user + after.system - spent.user - spent.system) / ROUNDS
    print(
        f"related: {_ms(times[0])} at least, p50 {_ms(times[ROUNDS // 2])},"
        f" p95 {_ms(times[ROUNDS * 95 // 100])}; processor time of the child {_ms(each)}, of the"
        f" service {_ms(service)}"
    )
    for _ in range(3):
        llm.embedder().embed("The text of a screenshot, which is long. " * 60)
    memory = child.memory_full_info()
    print(
        f"child: {memory.rss / 2**20:.0f} MB resident, {memory.pss / 2**20:.0f} MB of its own share;"
        f" load {os.getloadavg()[0]:.1f}"
    )


def _fill(size: int) -> None:
    random = numpy.random.default_rng(1)
    now = datetime(2026, 11, 21, 12)
    for start in range(0, size, BATCH):
        numbers = range(start + 1, min(start + BATCH, size) + 1)
        rows = random.integers(-127, 128, (len(numbers), vectors.SIZE), dtype=numpy.int8)
        signs = numpy.packbits(rows > 0, axis=1)
        with database.scope(), db.atomic():
            Photo.insert_many(_photo(number, now) for number in numbers).execute()
            Analysis.insert_many(_analysis(number, now) for number in numbers).execute()
            Meaning.insert_many(
                {"photo": number, "maker": "local", "vector": row.tobytes(), "model": "random"}
                for number, row in zip(numbers, rows, strict=True)
            ).execute()
            MeaningSigns.insert_many(
                {"photo": number, "maker": "local", "signs": row.tobytes(), "model": "random"}
                for number, row in zip(numbers, signs, strict=True)
            ).execute()
    with database.scope():
        MeaningDue.delete().execute()


def _photo(number: int, now: datetime) -> dict[str, object]:
    return {
        "id": number, "device_id": "pixel", "filename": "a.png", "original_path": f"o{number}",
        "thumbnail_path": f"t{number}", "mime_type": "image/png", "file_size": 1, "width": 1, "height": 1,
        "original_timestamp": now - timedelta(minutes=number), "created_at": now, "sha256": b"",
        "key_generation": 1,
    }  # fmt: skip


def _analysis(number: int, now: datetime) -> dict[str, object]:
    text = f"Screenshot {number}\n" + "words of a screenshot as they are read " * 12
    return {
        "photo": number, "device_id": "pixel", "status": "done", "app_name": "", "content_category": "other",
        "intent": "note", "title": f"Screenshot {number}", "summary": "", "entities": "[]",
        "visible_text": text, "created_at": now, "due_at": now,
    }  # fmt: skip


def _timed(verb: Callable[[int], object], number: int) -> float:
    began = time.perf_counter()
    verb(number)
    return time.perf_counter() - began


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.01 else f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    main()
