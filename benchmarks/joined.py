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
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import database
import records
import threads
from benchmarks.sheet_layouts import JUDGING, TUNING
from benchmarks.sheets import LANGUAGES, TAKEN, Fact, Sheet, facts, sheet, sheets
from database import db
from engines.records import Record
from models import Analysis
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
