"""Tables, threads, the agenda, links and answers in a large library, where each screenshot has a record.

Texts are those of the other figures (`seed.py`); records, threads, events and links are written directly. A
hundredth of the records have a day that is still to come.
"""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from unittest import mock

import database
import models
import records
import threads
from assistant import chat
from assistant.openings import UserMessage
from benchmarks import joined, material, seed
from benchmarks.figures import Figure
from benchmarks.service import Service
from benchmarks.timing import in_turns, p50, p95
from clock import local_day, utc_now
from database import db
from engines.records import Field, Record
from models import AgendaItem, Share
from rules import templates
from settings import Settings

DAYS, AHEAD = 1_000, 10  # over which the days of records are spread, and how many of them are to come
LINKS = 500
AT_ONCE = 1_000  # photos whose rows are made together
MS = 1_000
SHOPS, AIRLINES = 200, 9_000  # different ones

ROUTES = {
    "records, 50": "/api/records?page_size=50",
    "records, the last page": "/api/records?page_size=50&page={last}",
    "receipts": "/api/records?type=Receipt&page_size=50",
    "receipts of a month": "/api/records?type=Receipt&since={month}&until={today}&page_size=50",
    "receipts of a seller": "/api/records?type=Receipt&seller=Shop%207&page_size=50",
    "records with a word": "/api/records?q=Shop%207&page_size=50",
    "types of records": "/api/records/types",
    "receipts of a month as CSV": "/api/records.csv?type=Receipt&since={month}&until={today}",
    "open threads": "/api/threads?state=open",
    "flights": "/api/threads?type=trip",
    "agenda from now on": "/api/agenda?since={today}",
    "links": "/api/shares",
    "what is sensitive on a photo": "/api/photos/{photo}/redaction",
}
QUESTIONS = (
    "What is my next flight?",
    "How much did I spend in total at Shop 7?",
    "When does flight NW77 leave?",
    "Where is my parcel?",
    "What do I have tomorrow?",
    "What is my next trip?",
    "How many receipts do I have?",
    "我下一个航班是什么时候？",
)


def listing(folders: seed.Folders) -> Iterator[Figure]:
    """Each list over HTTP against an empty request, all of the receipts as CSV, and answers in a chat by the
    embedded model, in this process.
    """
    settings = filled(folders)
    choice, today = random.Random(material.SEED), local_day(folders.now)
    with Service(settings) as service:
        client = service.client()

        def asking(path: str) -> bytes:
            return client.get(
                path.format(
                    last=folders.size // 50,
                    today=today,
                    month=today - timedelta(days=30),
                    photo=choice.randint(1, folders.size),
                )
            )

        actions = {name: lambda path=path: asking(path) for name, path in ROUTES.items()}
        actions["health"] = lambda: asking("/api/health")
        seconds = in_turns(actions, 5 * folders.rounds, warm_up=2)
        whole = in_turns({"csv": lambda: asking("/api/records.csv")}, 2)
        receipts = json.loads(asking("/api/records?type=Receipt"))["total"]
    floor = {"floor": p50(seconds.pop("health")) * MS, "floor_is": "health", "unit": "ms"}
    for name, each in seconds.items():
        yield Figure(what=f"{name}, p50", measured=p50(each) * MS, **floor)
        yield Figure(what=f"{name}, p95", measured=p95(each) * MS, unit="ms", at_most=150)
    yield Figure(
        what=f"all records as CSV, of which {receipts:,} are receipts", measured=p50(whole["csv"]), unit="s"
    )
    database.open_store(settings)
    asked = in_turns(
        {text: lambda text=text: chat.send(settings, UserMessage(text, None)) for text in QUESTIONS},
        folders.rounds,
        warm_up=1,
    )
    database.close_store()
    for name, each in asked.items():
        yield Figure(what=f"{name}, p50", measured=p50(each) * MS, unit="ms", at_most=150)


def filled(folders: seed.Folders) -> Settings:
    """A folder whose photos say something."""
    settings = folders.empty("tables")
    seed.fill(settings, folders.size, now=folders.now)
    with database.scope(), db.atomic():
        _say(folders.size, folders.now)
    database.close_store()
    return settings


def _say(size: int, now: datetime) -> None:
    """Give each photo a record, with its rows."""
    photos = list(models.Photo.select(models.Photo.id, models.Photo.original_timestamp).tuples())
    for photo_id, taken in photos:
        day = local_day(now) + timedelta(days=AHEAD - photo_id // joined.EACH % DAYS)
        record = _record(photo_id, day.isoformat())
        stored = records.encoded([record])
        db.execute_sql("UPDATE analyses SET records = ? WHERE photo_id = ?", (stored, photo_id))
        joined.trace(photo_id, record, taken)
        starts_at = records.day_of(record)
        if record.type != "Receipt" and photo_id % joined.EACH == 0:
            item = AgendaItem.insert(
                photo=photo_id, event_id=photo_id, kind="event", title=templates.line(record, "en"),
                starts_at=starts_at, last_at=starts_at if "T" in starts_at else f"{starts_at}T24",
                all_day="T" not in starts_at, quote="", line=0, created_at=taken, changed_at=taken,
            )  # fmt: skip
            item.execute()
    with mock.patch.object(threads, "file"):  # it joins them one by one
        for first in range(0, size, AT_ONCE):
            records.file(photo_id for photo_id, _ in photos[first : first + AT_ONCE])
    for number in range(min(LINKS, size)):
        Share.create(
            photo=number + 1, digest=number.to_bytes(32), boxes="[]", created_at=utc_now(),
            expires_at=now + timedelta(days=7),
        )  # fmt: skip


def _record(photo_id: int, day: str) -> Record:
    """What a photo says; every `EACH` in a row say the same. Two of five are receipts."""
    number = photo_id // joined.EACH
    amount = {"value": f"{number % 1000}.90", "currency": ("EUR", "USD", "CNY")[number % 3]}
    fields: dict[str, object]
    kind, fields = (
        ("ParcelDelivery", {"carrier": "DHL", "trackingNumber": f"JD01{number:09}", "expectedArrival": day}),
        ("FlightReservation", {"number": f"NW{number % AIRLINES}", "departureTime": f"{day}T07:10"}),
        ("Invoice", {"provider": f"City Water {number}", "totalPaymentDue": amount, "paymentDueDate": day}),
        ("Receipt", {"seller": f"Shop {number % SHOPS}", "total": amount, "date": day}),
        ("Receipt", {"seller": f"Shop {number % SHOPS}", "total": amount, "date": day}),
    )[number % 5]
    return Record(kind, [Field(name, value) for name, value in fields.items()])
