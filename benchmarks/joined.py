"""Whether screenshots of one thing become one thread: `python -m benchmarks.joined`.

40 threads of 2 to 5 drawn sheets (`sheets.py`) in five languages are among 1,000 others: an order with
its parcel, a parcel, journeys, a stay, a concert, and bills with and without their payment. The sheets are
judged and filed as an analysis does it, and pairs of screenshots are counted. Half of the layouts is for
tuning, and `--errors` lists its errors; the threads in the others are only counted.
"""

import argparse
import itertools
import random
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

import database
import records
import threads
from benchmarks import seed
from benchmarks.figures import Figure
from benchmarks.sheet_layouts import JUDGING, TUNING
from benchmarks.sheets import LANGUAGES, TAKEN, Fact, Sheet, facts, sheet, sheets
from benchmarks.timing import in_turns, p50, p95
from clock import utc_now
from database import db
from engines.records import Field, Record
from models import Analysis, Photo
from rules import joins
from rules.judge import judge
from tests.support.library import Library

OTHERS = 1_000
MOST = 5  # sheets of a thread
WEEKS = timedelta(weeks=3)  # in which they are taken
SHARED_CODE = "K7QPLM"  # of many sheets, because it looks like one; no two bookings have the same

# The type of the first sheet, that of the further ones, and of the last one; and what each must show.
STORIES = {
    "order": ("Receipt:orderNumber", "ParcelDelivery:trackingNumber", ""),
    "parcel": ("ParcelDelivery:trackingNumber", "ParcelDelivery:trackingNumber", ""),
    "flight": ("FlightReservation:", "FlightReservation:", ""),
    "train": ("TrainReservation:seat", "TrainReservation:seat", ""),
    "stay": ("LodgingReservation:", "LodgingReservation:", ""),
    "concert": ("EventReservation:", "EventReservation:", ""),
    "bill": ("Invoice:", "Invoice:", ""),
    "payment": ("Invoice:confirmationNumber", "Invoice:", "MoneyTransfer:reference date"),
}


class Counted(NamedTuple):
    """Pairs of screenshots: those of one thing, those that were joined, and what both have."""

    wanted: int
    joined: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / max(1, self.joined)

    @property
    def recall(self) -> float:
        return self.right / max(1, self.wanted)


def story(name: str, language: str, layouts: tuple[str, ...], seed: int) -> list[Sheet]:
    """The sheets of one thing, the oldest first."""
    chance = random.Random(f"{seed} {name} {language} {layouts[0]}")
    first, further, last = (part.partition(":") for part in STORIES[name])
    count = chance.randint(2, MOST)
    steps = [first, *[further] * (count - 1 - bool(last[0])), *([last] if last[0] else [])]
    if name == "order":  # the parcel of an order names it once
        steps[1] = (further[0], "", "trackingNumber orderNumber")
    shared = _shared(chance, name, language, [kind for kind, _, _ in steps])
    drawn: list[Sheet] = []
    while len(drawn) < len(steps):
        kind, _, shown = steps[len(drawn)]
        made = sheet(
            f"{name}-{language}-{chance.random()}",
            kind,
            language,
            chance.choice(layouts),
            shared,
            shown.split(),
        )
        drawn += [made] if made else []
    return drawn


def _shared(chance: random.Random, name: str, language: str, kinds: list[str]) -> dict[str, Fact]:
    shared: dict[str, Fact] = {}
    for kind in dict.fromkeys(kinds):
        shared = facts(f"{name} {chance.random()}", kind, language) | shared
    for varies in ("status", "expectedArrival", "seat", "gate", "platform", "paymentMethod", "date"):
        shared.pop(varies, None)
    if "reservationId" in shared:
        code = "".join(chance.choice("ABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(6))
        shared["reservationId"] = Fact(code, code)
    if "beneficiary" in shared:  # a bill and its payment
        shared |= {"beneficiary": shared["provider"], "amount": shared["totalPaymentDue"]}
        shared["reference"] = shared["confirmationNumber"]
    return shared


def others(seed: int, count: int) -> list[Sheet]:
    """Sheets of which no two are about one thing."""
    drawn = [
        one
        for number in (1, 2)
        for one in sheets((*TUNING, *JUDGING), seed=1_000 * seed + number)
        if one.fields.get("reservationId") != SHARED_CODE
    ]
    return random.Random(seed).sample(drawn, count)


def count(
    folder: Path, layouts: tuple[str, ...], seed: int, *, beside: int = OTHERS, with_wrong: bool = False
) -> Counted:
    """Draw the threads and so many sheets beside them, file, and count the pairs. `with_wrong` prints what is
    wrong.
    """
    chance = random.Random(seed)
    things = [story(name, language, layouts, seed) for name in STORIES for language in LANGUAGES]
    stored = [(number, one) for number, thing in enumerate(things) for one in thing]
    stored += [(len(things) + number, one) for number, one in enumerate(others(seed, beside))]
    chance.shuffle(stored)
    library = Library(folder)
    thing_of, found_on = {}, {}
    for number, one in stored:
        taken = TAKEN - WEEKS * chance.random()
        found = judge(one.page, analyser="judged", language="en", taken=taken)
        photo_id = library.add(found.visible_text, taken=taken)
        with database.scope(), db.atomic():
            columns = {"records": records.encoded(found.records or [])}
            Analysis.update(columns).where(Analysis.photo == photo_id).execute()
            records.file([photo_id])
        thing_of[photo_id], found_on[photo_id] = number, (one, found.records or [])
    with database.scope():
        joined = threads.of(thing_of)
    database.close_store()
    wanted, together = _pairs(thing_of), _pairs(joined)
    if with_wrong:
        for kind, pairs in (("apart", wanted - together), ("joined", together - wanted)):
            for pair in sorted(pairs):
                print(f"{kind}:", *(_said(*found_on[photo_id]) for photo_id in pair), sep="\n    ")
    return Counted(len(wanted), len(together), len(wanted & together))


def _pairs(groups: dict[int, int]) -> set[tuple[int, int]]:
    members: dict[int, list[int]] = {}
    for photo_id, group in sorted(groups.items()):
        members.setdefault(group, []).append(photo_id)
    return {pair for ids in members.values() for pair in itertools.combinations(ids, 2)}


def _said(one: Sheet, found: list[Record]) -> str:
    read = [{field.name: field.value for field in record.fields} for record in found]
    return f"{one.name} {one.fields} -> {[record.type for record in found]} {read}"


# ------------------------------------------------------------------------------------------------------ speed

EACH = 3  # screenshots of a thread
BETWEEN = timedelta(minutes=10)  # two screenshots: 100,000 are of two years
MS = 1_000


def joining(folders: seed.Folders) -> Iterator[Figure]:
    """Joining one more screenshot to its thread, where each of the others has a record of its own, and the
    list of open threads. Rows are written directly, without texts and files.
    """
    count = 10 * folders.rounds
    database.open_store(folders.empty("threads"))
    with database.scope():
        with db.atomic():
            _write(folders.size, folders.size - count)
        new = iter(range(folders.size - count + 1, folders.size + 1))
        spent: list[float] = []
        seconds = in_turns({"join": lambda: _join(next(new), spent), "list": _list}, count)
        (wrong,) = db.execute_sql(
            "SELECT COUNT(*) FROM thread_traces WHERE photo_id > ? AND thread_id IS NULL",
            (folders.size - count,),
        ).fetchone()
        if wrong:
            raise RuntimeError(f"{wrong} of {count} screenshots joined no thread")
    database.close_store()
    what = "joining one more screenshot to its thread"
    yield Figure(what=f"{what}, p50", measured=p50(seconds["join"]) * MS, unit="ms", at_most=50)
    yield Figure(what=f"{what}, p95", measured=p95(seconds["join"]) * MS, unit="ms")
    yield Figure(what=f"{what}, its processor time, p95", measured=p95(spent) * MS, unit="ms", at_most=50)
    yield Figure(what="list of 20 open threads, p50", measured=p50(seconds["list"]) * MS, unit="ms")


def _write(photos: int, count: int) -> None:
    """So many photos; for the first `count` a record each, their traces, and their threads."""
    last = utc_now()
    for photo_id in range(1, photos + 1):
        moment = last - (photos - photo_id) * BETWEEN
        Photo.insert(
            id=photo_id, device_id="pixel", filename="a.png", original_path=f"o{photo_id}",
            thumbnail_path=f"t{photo_id}", mime_type="image/png", file_size=1, width=1, height=1,
            original_timestamp=moment, created_at=moment, sha256=b"", key_generation=1,
        ).execute()  # fmt: skip
        Analysis.insert(
            photo=photo_id, device_id="pixel", status="done", created_at=moment, due_at=moment
        ).execute()
    for photo_id in range(1, count + 1):
        moment = last - (photos - photo_id) * BETWEEN
        records_json = records.encoded([_record(photo_id)])
        db.execute_sql("UPDATE analyses SET records = ? WHERE photo_id = ?", (records_json, photo_id))
        trace(photo_id, _record(photo_id), moment)


def trace(photo_id: int, record: Record, taken: datetime) -> None:
    """Write the trace of a record directly, and its thread with the last of `EACH` that are of it."""
    found, moment = joins.trace(record, (), f"{taken:%Y-%m-%d}"), f"{taken:%Y-%m-%d %H:%M:%S}"
    assert found is not None
    thread_id = photo_id // EACH + 1
    if found.keys and photo_id % EACH == 0:
        db.execute_sql(
            "INSERT INTO threads (id, type, state, photos, first_at, last_at, ends_at, said_photo_id)"
            " VALUES (?, ?, '', ?, ?, ?, ?, ?)",
            (thread_id, joins.THINGS[record.type], EACH, moment, moment, found.ends_at, photo_id),
        )
    db.execute_sql(
        "INSERT INTO thread_traces VALUES (?, 0, ?, ?, ?, ?, ?)",
        (
            photo_id,
            thread_id if found.keys and photo_id >= EACH else None,
            moment,
            msgspec.json.encode(found).decode(),
            found.amount if found.type in joins.PAYMENTS else "",
            found.day,
        ),
    )
    for key in found.keys:
        db.execute_sql("INSERT INTO thread_keys VALUES (?, ?, 0)", (key, photo_id))


def _record(photo_id: int) -> Record:
    """What a photo says; every `EACH` in a row say the same. Receipts, which have no number, have one of a
    thousand amounts; the tables are of a year's evenings.
    """
    number = photo_id // EACH
    amount, day = {"value": f"{number % 1000}.90", "currency": "EUR"}, f"2026-12-{number % 28 + 1:02}"
    fields: dict[str, object]
    kind, fields = (
        ("ParcelDelivery", {"carrier": "DHL", "trackingNumber": f"JD01{number:09}"}),
        ("FlightReservation", {"number": f"NW{number % 9000}", "departureTime": f"{day}T07:10"}),
        ("Invoice", {"provider": f"City Water {number}", "totalPaymentDue": amount, "paymentDueDate": day}),
        ("Receipt", {"seller": f"Shop {number % 50}", "total": amount, "date": day}),
        (
            "FoodEstablishmentReservation",
            {"name": f"Table {number}", "startTime": f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}T19:00"},
        ),
    )[number % 5]
    return Record(kind, [Field(name, value) for name, value in fields.items()])


def _join(photo_id: int, spent: list[float]) -> None:
    """File a further screenshot of a thing that others are of."""
    begun = time.thread_time()
    other = photo_id // 2
    while other // EACH % 5 == 3:  # a receipt without a number is no thread
        other += EACH
    columns = {"records": records.encoded([_record(other)])}
    with db.atomic():
        Analysis.update(columns).where(Analysis.photo == photo_id).execute()
        records.file([photo_id])
    spent.append(time.thread_time() - begun)


def _list() -> None:
    threads.listed((), "open", 1, 20, now=utc_now())


def main() -> None:
    """Count and print, for each half of the layouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--errors", action="store_true", help="list the errors of the tuning half")
    options = parser.parse_args()
    for name, layouts in (("tuning", TUNING), ("judging", JUDGING)):
        with tempfile.TemporaryDirectory() as folder:
            found = count(
                Path(folder) / "data",
                layouts,
                options.seed,
                with_wrong=options.errors and name == "tuning",
            )
        print(
            f"{name}, seed {options.seed}: {found.wanted} pairs, {found.joined} joined, {found.right} right; "
            f"precision {found.precision:.3f}, recall {found.recall:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
