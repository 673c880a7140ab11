"""The program that tests of the key rotation run beside it, several at a time: it uploads pictures, stores
messages, deletes both, writes and deletes many rows in one transaction, shrinks the database and moves its
log, until it is ended. At times it closes its connections, as a process does at its end.

It prints `answered <path>` when the service would have answered that the row at this path of the API is
stored, and `deleting <path>` before it deletes one.
"""

import contextlib
import itertools
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import database
from app import create_app
from assistant import turns
from clock import utc_now
from errors import Unavailable
from settings import Settings
from tests.support.client import Client
from tests.support.drawing import draw

SHRINKING = (
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA wal_checkpoint(RESTART)",
    "PRAGMA wal_checkpoint(PASSIVE)",
    "PRAGMA incremental_vacuum(50)",
    "VACUUM",
)
KEPT = 60  # rows that a process leaves; older ones are deleted
LARGE = 400  # rows of a large transaction
PAUSE = 0.02  # seconds at most, between two of them


def main(seed: str) -> None:
    client, chance = Client(create_app(Settings.from_environ(os.environ))), random.Random(seed)
    stored: list[str] = []
    for number in itertools.count():
        match chance.randrange(16):
            case 0:
                with contextlib.suppress(Unavailable, *database.DATABASE_ERRORS), database.scope():
                    # A checkpoint that waits for readers keeps writers waiting, and the rotation reads long.
                    database.db.execute_sql("PRAGMA busy_timeout = 50")
                    database.db.execute_sql(chance.choice(SHRINKING)).fetchall()
                database.close_connections()
            case 1:
                database.close_connections()
            case 2:
                _grow_and_shrink(chance)
            case 3 | 4 | 5:
                name, content = chance.randbytes(16).hex(), chance.randbytes(1_000).hex()
                try:
                    with database.scope():
                        turns.begin_turn(name, content, None, device_id="phone", now=utc_now())
                except (Unavailable, *database.DATABASE_ERRORS) as problem:
                    if not isinstance(database.known_failure(problem), Unavailable):
                        raise
                    continue  # it has waited too long
                _note(stored, f"/api/chat/conversations/{name}")
            case _:
                answer = client.upload(draw(f"{seed} {number}", size=(40, 40)), f"{seed}-{number}.png")
                assert answer.status_code in (200, 503), answer.text
                if answer.status_code == 200:
                    _note(stored, f"/api/photos/{answer.json['id']}")
        if len(stored) > KEPT:
            path = stored.pop(0)
            _say(f"deleting {path}")
            client.delete(path)
        time.sleep(chance.uniform(0, PAUSE))


def _note(stored: list[str], path: str) -> None:
    stored.append(path)
    _say(f"answered {path}")


def _grow_and_shrink(chance: random.Random) -> None:
    """Write many rows in one transaction, and delete most of them again."""
    with contextlib.suppress(Unavailable, *database.DATABASE_ERRORS), database.scope():
        with database.db.atomic():
            database.db.execute_sql("CREATE TABLE IF NOT EXISTS large (id INTEGER PRIMARY KEY, bytes BLOB)")
            for _ in range(LARGE):
                size = chance.randrange(3_000)
                database.db.execute_sql("INSERT INTO large (bytes) VALUES (?)", (chance.randbytes(size),))
        if chance.random() < 0.7:
            database.db.execute_sql("DELETE FROM large WHERE id % 2 = ?", (chance.randrange(2),))
        if chance.random() < 0.3:
            database.db.execute_sql("DROP TABLE large")


def _say(what: str) -> None:
    os.write(1, f"{what}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
