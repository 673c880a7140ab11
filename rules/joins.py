"""Which records are about one thing: one order, parcel, trip, booking, bill or page, seen on several
screenshots, and how far it is.

A `Trace` has what a record is recognised by again. Records are one thing if they share a key: a number that
names it (of the parcel, the order with its seller, the booking, the invoice with its provider), a journey
and its day, or an address. A record without any key joins by its party and amount within `NEAR` days, if
only one thing has these, and no other such record wants to join it. Numbers that anybody may have (short
ones) count only together with the party.

Nothing here depends on the order in which screenshots arrive.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import terms
from engines.records import Record
from rules import wordlists

NEAR = timedelta(days=14)  # between a record without a key and the thing that it joins
SAME_BOOKING = timedelta(days=330)  # booking codes are given again; nobody sells further ahead
SAME_EVENING = timedelta(hours=3)
DISTINCT = 9  # characters of a number that is nobody else's; with fewer, the party must be the same
DIGITS = 6  # beside letters, with which a shorter number is nobody else's, too
SHORTEST = 3
LONGEST_STATE = 40  # characters of a line that is a state, where one word alone says it

JOURNEYS = ("FlightReservation", "TrainReservation", "BusReservation")
PAGES = ("Article", "SocialMediaPosting", "VideoObject")
# What a thing is, by the first of these types among its records.
THINGS = {
    "Receipt": "order",
    "ParcelDelivery": "parcel",
    **dict.fromkeys(JOURNEYS, "trip"),
    **dict.fromkeys(("LodgingReservation", "EventReservation", "FoodEstablishmentReservation"), "booking"),
    "Invoice": "bill",
    **dict.fromkeys(PAGES, "page"),
}
PAYMENTS = ("Receipt", "Invoice", "MoneyTransfer", "Subscription")
SENT = ("ordered", "shipped", "out_for_delivery", "ready_for_pickup", "delivered")
STATES = {
    "order": (*SENT, "refunded", "cancelled"),
    "parcel": (*SENT, "refunded", "cancelled"),
    "trip": ("checked_in", "refunded", "cancelled"),
    "booking": ("checked_in", "refunded", "cancelled"),
    "bill": ("due", "paid", "refunded", "cancelled"),
    "page": (),
}
# Fields of times, in the order of a day, and of amounts and parties.
TIMES = (
    *("expectedArrival", "expectedArrivalUntil", "paymentDueDate", "checkinTime", "doorTime", "boardingTime"),
    *("departureTime", "startTime", "startDate", "arrivalTime", "endDate", "checkoutTime"),
)
LASTING = tuple(name for name in TIMES if not name.startswith(("expected", "payment")))
AMOUNTS = ("total", "totalPaymentDue", "amount", "price")
PARTIES = ("seller", "provider", "beneficiary", "sender")
DAYS = ("date", "departureTime", "checkinTime", "startDate", "startTime", "paymentDueDate")

_FLIGHT = re.compile(r"([A-Z]{2,3}|[A-Z]\d|\d[A-Z])0*(\d{1,4}[A-Z]?)")
_UNSPACED = re.compile(f"[{terms.UNSPACED}]")
_LETTER = re.compile(r"\w")


class Trace(NamedTuple):
    """What a record is recognised by again. `keys` are "kind|value"; `ends_at` is when what it announces is
    over, local; `state` is what its screenshot says, "" where it says none, on the line `line`, None where no
    line says it.
    """

    type: str
    keys: tuple[str, ...]
    party: str
    amount: str
    currency: str
    day: str
    ends_at: str
    state: str
    line: int | None
    starts_at: str = ""


class Member(NamedTuple):
    """A record among others: its photo, when that was taken, and its trace."""

    photo_id: int
    place: int
    taken: str
    trace: Trace


def trace(record: Record, lines: Sequence[str], day: str) -> Trace | None:
    """The trace of a record on a screenshot with these lines. `day` is the one on which that was taken. None
    for types that are nothing that goes on.
    """
    if record.type not in THINGS and record.type not in PAYMENTS:
        return None
    amount = next(filter(None, map(record.amount, AMOUNTS)), None)
    party = next(filter(None, map(record.text, PARTIES)), "") or (
        record.text("name") if record.type.endswith("Reservation") else ""
    )
    times = [found for name in LASTING if (found := record.text(name))]
    last = max(times, default="")
    state, line = _state(record, lines)
    return Trace(
        record.type,
        tuple(dict.fromkeys(_keys(record))),
        named(party),
        f"{abs(amount[0]).normalize():f}" if amount else "",
        amount[1] if amount else "",
        (next(filter(None, map(record.text, DAYS)), "") or day)[:10],
        f"{last}T24" if len(last) == len("2026-12-04") else last,
        "refunded" if amount and amount[0] < 0 and not state else state,
        line,
        _start(record),
    )


def named(party: str) -> str:
    """A party's name as it is compared: folded, without the form of the company."""
    words = re.findall(r"\w+", terms.fold(party).casefold())
    while len(words) > 1 and words[-1] in _words().endings:
        words.pop()
    while len(words) > 1 and words[0] in _words().endings:
        words.pop(0)
    return " ".join(words)


def is_same_party(one: str, other: str) -> bool:
    """Whether two names, as `named` makes them, are of one party: one begins with the words of the other."""
    if not one or not other:
        return False
    fewer, more = sorted((one, other), key=len)
    if _UNSPACED.match(fewer):
        return len(fewer) > 1 and more.startswith(fewer)
    return f"{more} ".startswith(f"{fewer} ") or fewer.replace(" ", "") == more.replace(" ", "")


def shares(one: Trace, other: Trace) -> bool:
    """Whether two records are about one thing by a key."""
    return any(_agree(key, one, other) for key in one.keys if key in other.keys)


def is_near(one: Trace, other: Trace) -> bool:
    """Whether two payments may be one by party, amount and days."""
    return (
        bool(one.amount)
        and (one.amount, one.currency) == (other.amount, other.currency)
        and one.type in PAYMENTS
        and other.type in PAYMENTS
        and is_same_party(one.party, other.party)
        and _apart(one.day, other.day) <= NEAR
    )


def things(members: Iterable[Member], apart: Iterable[tuple[int, int]] = ()) -> list[list[Member]]:
    """The members by the thing that they are about, each thing with the oldest screenshot first. `apart` are
    pairs of photos that a person has taken apart.
    """
    ordered = sorted(members, key=lambda member: (member.taken, member.photo_id, member.place))
    kept_apart = {frozenset(pair) for pair in apart}
    found: list[list[Member]] = []
    for member in ordered:
        if not member.trace.keys:
            continue
        joined = [group for group in found if any(shares(member.trace, other.trace) for other in group)]
        whole = [member]
        for group in sorted(joined, key=lambda group: (-len(group), group[0])):
            if not _are_apart(group, whole, kept_apart):
                whole = group + whole
                found.remove(group)
        found.append(whole)
    wanted: dict[int, list[Member]] = {}
    alone = []
    for member in (member for member in ordered if not member.trace.keys):
        fitting = [
            at
            for at, group in enumerate(found)
            if any(is_near(member.trace, other.trace) for other in group)
            and not _are_apart(group, [member], kept_apart)
        ]
        if len(fitting) == 1:
            wanted.setdefault(fitting[0], []).append(member)
        else:
            alone.append(member)
    for at, claimants in wanted.items():
        types = [member.trace.type for member in claimants]
        for member in claimants:
            if types.count(member.trace.type) == 1:
                found[at].append(member)
            else:
                alone.append(member)
    return [sorted(group, key=lambda one: (one.taken, one.photo_id, one.place)) for group in found] + [
        [member] for member in alone
    ]


def thing_of(group: Sequence[Member]) -> str:
    """What a group of members is: one of the values of `THINGS`; "" where it is nothing that goes on, like a
    single receipt.
    """
    types = {member.trace.type for member in group}
    thing = next((thing for name, thing in THINGS.items() if name in types), "")
    several = len({member.photo_id for member in group}) > 1
    if not several and (
        thing == "page" or (thing == "order" and group[0].trace.state not in STATES["order"])
    ):
        return ""
    return thing


def state_of(group: Sequence[Member], thing: str) -> tuple[str, Member]:
    """How far a thing is, and the member that says so: the newest one with words for it, else the newest."""
    for member in reversed(group):
        if member.trace.state in STATES[thing]:
            return member.trace.state, member
        if thing == "bill" and member.trace.type in ("MoneyTransfer", "Receipt"):
            return "paid", member
    newest = group[-1]
    if thing == "bill":
        return "due", newest
    if thing in ("order", "parcel"):
        parcel = next((one for one in reversed(group) if one.trace.type == "ParcelDelivery"), None)
        return ("shipped", parcel) if parcel else ("ordered", newest)
    return ("" if thing == "page" else "booked"), newest


def said(lines: Iterable[str], states: Iterable[str]) -> tuple[str, int | None]:
    """Which of `states` the lines say, and the line. A row of all steps ("Ordered", "Shipped", "Delivered")
    says none.
    """
    wanted = set(states)
    found: dict[str, int] = {}
    for at, line in enumerate(lines):
        state = _said_on(line)
        if state in wanted:
            found.setdefault(state, at)
    if not found or len(found) > 2:
        return "", None
    state = max(found, key=lambda name: list(_words().phrases).index(name))
    return state, found[state]


# ----------------------------------------------------------------------------------------------------- keys


def _keys(record: Record) -> Iterable[str]:
    if len(number := _number(record.text("trackingNumber"))) >= SHORTEST * 2:
        yield f"parcel|{number}"
    if number := _number(record.text("orderNumber")):
        yield f"order|{number}"
    if record.type == "Invoice" and (number := _number(record.text("confirmationNumber"))):
        yield f"invoice|{number}"
    if record.type == "MoneyTransfer":
        words = re.findall(r"[\w-]+", record.text("reference"))
        yield from (f"invoice|{number}" for word in words if (number := _number(word)))
    if record.type == "Invoice":
        total, due = record.amount("totalPaymentDue"), record.text("paymentDueDate")
        if total and due:
            yield f"due|{named(record.text('provider'))}|{total[0].normalize():f}{total[1]}|{due}"
    if record.type in JOURNEYS:
        yield from _ride(record)
    for name in ("reservationId", "ticketNumber"):
        code = _number(record.text(name), letters=record.type in JOURNEYS)
        if code:
            yield f"{THINGS[record.type]}|{code}"
    start = _start(record)
    if record.type.endswith("Reservation") and record.type not in JOURNEYS and start:
        yield f"{record.type}|{start[:10]}"
    yield from _links(record)


def _start(record: Record) -> str:
    return next(filter(None, map(record.text, ("checkinTime", "startDate", "startTime"))), "")


def _ride(record: Record) -> Iterable[str]:
    """The journey on its day. Lines of a town's buses and trains run all day, so they need the minute."""
    start = record.text("departureTime")
    day = (start or record.text("boardingTime"))[:10]
    number = "".join(filter(str.isalnum, record.text("number"))).upper()
    flight = _FLIGHT.fullmatch(number)
    if flight:
        number = "".join(flight.groups())
    is_train = record.type == "TrainReservation" and sum(map(str.isdigit, number)) > 1
    if number and day and (record.type == "FlightReservation" or is_train):
        yield f"ride|{number}|{day}"
    if "T" in start:
        stops = [named(record.text(name)) for name in ("from", "to")]
        if number:
            yield f"ride|{number}|{start}"
        elif all(stops):
            yield f"ride|{'|'.join(stops)}|{start}"


def _links(record: Record) -> Iterable[str]:
    given = record.text("url") if record.type in PAGES else record.text("trackingUrl")
    try:
        parts = urlsplit(given)
    except ValueError:
        return
    host = parts.netloc.casefold().removeprefix("www.").removeprefix("m.").removeprefix("mobile.")
    kept = sorted(
        (name, value)
        for name, value in parse_qsl(parts.query)
        if not name.casefold().startswith("utm_") and name.casefold() not in _words().tracking
    )
    rest = parts.path.rstrip("/") + (f"?{urlencode(kept)}" if kept else "")
    # A page for all parcels, or a site's sections, name nothing.
    if host and (re.search(r"\d{6}", rest) if record.type not in PAGES else len(rest) > LONGEST_SECTION):
        yield f"link|{host}{rest}"


LONGEST_SECTION = 12  # characters of a path that may be a section of a site


def _number(said: str, *, letters: bool = False) -> str:
    """A number of an order, a parcel or a booking as it is compared; "" where it is none. With `letters`, it
    may have no digit, as airlines' codes do.
    """
    number = "".join(filter(str.isalnum, said)).upper()
    has_digits = any(map(str.isdigit, number)) or (letters and len(number) == 6 and said.isupper())
    return number if len(number) >= SHORTEST and has_digits else ""


def _agree(key: str, one: Trace, other: Trace) -> bool:
    """Whether two records that share a key are about one thing."""
    kind, _, value = key.partition("|")
    if kind in ("order", "invoice"):
        if one.party and other.party:
            return is_same_party(one.party, other.party)
        digits = sum(map(str.isdigit, value))
        return len(value) >= DISTINCT or (digits >= DIGITS and digits < len(value))
    if kind in ("trip", "booking"):
        if _apart(one.day, other.day) > SAME_BOOKING:
            return False
        mixed = len(value) >= 6 and not value.isdigit()
        return mixed or len(value) >= DISTINCT or is_same_party(one.party, other.party)
    if kind == "due":
        return not _has_other("invoice", one, other)
    if kind.endswith("Reservation"):  # the same place on the same day
        if kind == "LodgingReservation" and _has_other("booking", one, other):
            return False
        is_near = not _are_hours_apart(one.starts_at, other.starts_at)
        return is_near and is_same_party(one.party, other.party)
    return True


def _has_other(kind: str, one: Trace, other: Trace) -> bool:
    """Whether both have numbers of this kind, and none is the same."""
    mine, theirs = ({key for key in trace.keys if key.startswith(f"{kind}|")} for trace in (one, other))
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _are_hours_apart(one: str, other: str) -> bool:
    """Whether both are times, of another show or meal: the doors open before it begins, and a table may be
    moved a little.
    """
    if "T" not in one or "T" not in other:
        return False
    return abs(datetime.fromisoformat(one) - datetime.fromisoformat(other)) > SAME_EVENING


def _apart(one: str, other: str) -> timedelta:
    return abs(date.fromisoformat(one) - date.fromisoformat(other))


def _are_apart(one: Sequence[Member], other: Sequence[Member], apart: set[frozenset[int]]) -> bool:
    return bool(apart) and any(
        frozenset((first.photo_id, second.photo_id)) in apart for first in one for second in other
    )


# --------------------------------------------------------------------------------------------------- states


class _Words(NamedTuple):
    phrases: Mapping[str, re.Pattern[str]]  # by state, in the order of a thing's life; on any line
    single: Mapping[str, re.Pattern[str]]  # one word, with which a short line begins
    endings: frozenset[str]
    tracking: frozenset[str]


@functools.cache
def _words() -> _Words:
    table = wordlists.table("states")
    order = ("due", *SENT, "checked_in", "paid", "refunded", "cancelled")
    phrases = {
        state: [
            terms.fold(line).casefold() for said in table[state].values() for line in wordlists.lines(said)
        ]
        for state in order
    }
    return _Words(
        {state: _pattern(filter(_is_phrase, some)) for state, some in phrases.items()},
        {state: _pattern(itertools.filterfalse(_is_phrase, some)) for state, some in phrases.items()},
        wordlists.words(table["endings"]["names"]),
        wordlists.words(table["links"]["tracking"]),
    )  # fmt: skip


def _is_phrase(text: str) -> bool:
    return " " in text or _UNSPACED.match(text) is not None


def _pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """An empty list matches nothing."""
    return re.compile(wordlists.any_of(phrases, r"\b", r"\b"))


def _said_on(line: str) -> str:
    """The state that a line says, by its longest phrase; "" for none."""
    folded = " ".join(terms.fold(line).casefold().split())
    matches = [
        (len(match[0]), state) for state, one in _words().phrases.items() if (match := one.search(folded))
    ]
    if len(folded) <= LONGEST_STATE:
        start = _LETTER.search(folded)
        at = start.start() if start else 0
        matches += [
            (len(match[0]), state)
            for state, one in _words().single.items()
            if (match := one.match(folded, at))
        ]
    return max(matches, default=(0, ""))[1]


def _state(record: Record, lines: Sequence[str]) -> tuple[str, int | None]:
    """The state that a screenshot says, and its line: in the record's status, else on its lines."""
    thing = THINGS.get(record.type, "bill")
    status = next((field for field in record.fields if field.name == "status"), None)
    if status is not None and (state := _said_on(record.text("status"))) in STATES[thing]:
        return state, status.lines[0] if status.lines else None
    state, line = said(lines, STATES[thing])
    if state:
        return state, line
    for name, without_words in (("pickupCode", "ready_for_pickup"), ("boardingTime", "checked_in")):
        field = next((one for one in record.fields if one.name == name), None)
        # A pass to board with names a seat or a gate; a booking may have the time alone.
        if field and (name == "pickupCode" or record.text("seat")):
            return without_words, field.lines[0] if field.lines else None
    return "", None
