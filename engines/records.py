"""Records: what a screenshot says, as data. A record is a type with named fields; each field has its value in
normal form, the words as they are on the screen, and the lines that they are on.

Rules (`rules/records/`) and the remote model make the same records, and both pass the same checks
(`checked`). Titles, summaries, agenda entries, search operators and tables are made from them. Names are
schema.org's where it has the type; those that it lacks are Snaplore's own.

Normal forms: an amount is `{"value": "23.80", "currency": "EUR"}` with an ISO 4217 code; a day is
`2026-12-04`; a time is `2026-12-04T07:10`, local and without a zone, or a day where no time is known; a list
has one object of strings for each entry. Everything else is one line of text.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NamedTuple

import msgspec

from text import fraction, one_line, storable

Source = Literal["local", "model", "person"]
Value = str | dict[str, str] | list[dict[str, str]]

# More than any screen shows: characters of a value, its words and an entry, entries of a list, records.
MAX_VALUE = 500
MAX_TEXT = 500
MAX_ENTRIES = 60
MAX_RECORDS = 3
MIN_PLACED = 3  # characters of words that are looked for inside a line
MOST_LINES = 6  # over which the words of a field may go
UNPLACED = 0.5  # the highest confidence of a record with a value that is on no line

_CURRENCY = re.compile(r"[A-Z]{3}")


class Form(NamedTuple):
    """What a field's value is; code is without spaces. `keys` are those of a list's entries, one required."""

    kind: Literal["text", "amount", "day", "time", "code", "link", "list"]
    keys: tuple[str, ...] = ()


TEXT, AMOUNT, DAY, TIME = Form("text"), Form("amount"), Form("day"), Form("time")
CODE, LINK = Form("code"), Form("link")


class Type(NamedTuple):
    """The fields in the order in which they are shown, and the sets of fields of which one must be complete.
    `ours` is a type that schema.org does not have.
    """

    fields: dict[str, Form]
    needs: tuple[tuple[str, ...], ...]
    ours: bool = False


def _journey(stop: str) -> Type:
    return Type(
        {
            "number": CODE, "from": TEXT, "to": TEXT, "provider": TEXT, "departureTime": TIME,
            "arrivalTime": TIME, "boardingTime": TIME, stop: TEXT, "seat": TEXT, "reservationId": CODE,
            "underName": TEXT,
        },
        (("number", "departureTime"), ("number", "from", "to"), ("from", "to", "departureTime")),
    )  # fmt: skip


_LISTED = (("entries",),)
_WRITTEN = {
    "headline": TEXT, "text": TEXT, "author": TEXT, "publisher": TEXT, "datePublished": TIME, "url": LINK,
}  # fmt: skip

TYPES: dict[str, Type] = {
    "Receipt": Type(
        {
            "seller": TEXT,
            "total": AMOUNT,
            "date": TIME,
            "paymentMethod": TEXT,
            "orderNumber": CODE,
            "items": Form("list", ("name", "quantity", "price")),
        },
        (("seller", "total"),),
        ours=True,
    ),
    "Invoice": Type(
        {
            "provider": TEXT,
            "totalPaymentDue": AMOUNT,
            "paymentDueDate": DAY,
            "accountId": CODE,
            "confirmationNumber": CODE,
        },
        (("provider", "totalPaymentDue"),),
    ),
    "MoneyTransfer": Type(
        {
            "amount": AMOUNT,
            "beneficiary": TEXT,
            "sender": TEXT,
            "iban": CODE,
            "reference": TEXT,
            "date": TIME,
        },
        (("amount", "beneficiary"), ("amount", "sender")),
    ),
    "Subscription": Type(
        {"provider": TEXT, "price": AMOUNT, "billingPeriod": TEXT, "renewalDate": DAY},
        (("provider", "price"), ("provider", "renewalDate")),
        ours=True,
    ),
    "ParcelDelivery": Type(
        {
            "carrier": TEXT,
            "trackingNumber": CODE,
            "expectedArrival": TIME,
            "expectedArrivalUntil": TIME,
            "trackingUrl": LINK,
            "orderNumber": CODE,
            "seller": TEXT,
            "deliveryAddress": TEXT,
            "status": TEXT,
            "pickupCode": CODE,
        },
        (("trackingNumber",), ("expectedArrival",), ("pickupCode",)),
    ),
    "FlightReservation": _journey("gate"),
    "TrainReservation": _journey("platform"),
    "BusReservation": _journey("platform"),
    "LodgingReservation": Type(
        {"name": TEXT, "checkinTime": TIME, "checkoutTime": TIME, "address": TEXT, "reservationId": CODE},
        (("name", "checkinTime"),),
    ),
    "EventReservation": Type(
        {
            "name": TEXT,
            "startDate": TIME,
            "endDate": TIME,
            "doorTime": TIME,
            "location": TEXT,
            "seat": TEXT,
            "ticketNumber": CODE,
        },
        (("name", "startDate"),),
    ),
    "FoodEstablishmentReservation": Type(
        {"name": TEXT, "startTime": TIME, "partySize": TEXT}, (("name", "startTime"),)
    ),
    "Appointment": Type(
        {"startTime": TIME, "with": TEXT, "location": TEXT, "preparation": TEXT}, (("startTime",),), ours=True
    ),
    "OneTimeCode": Type({"code": CODE, "service": TEXT, "validFor": TEXT}, (("code",),), ours=True),
    "WifiNetwork": Type({"ssid": TEXT, "password": TEXT}, (("ssid",),), ours=True),
    "Contact": Type(
        {
            "name": TEXT,
            "telephone": CODE,
            "email": TEXT,
            "address": TEXT,
            "entries": Form("list", ("name", "telephone")),
        },
        (("name", "telephone"), ("name", "email"), ("name", "address"), ("entries",)),
        ours=True,
    ),
    "Recipe": Type(
        {
            "name": TEXT,
            "totalTime": TEXT,
            "recipeYield": TEXT,
            "recipeIngredient": Form("list", ("name",)),
        },
        (("name", "recipeIngredient"), ("name", "totalTime"), ("name", "recipeYield")),
    ),
    "Product": Type({"name": TEXT, "price": AMOUNT, "seller": TEXT}, (("name", "price"),)),
    "Article": Type(_WRITTEN, (("headline",),)),
    "SocialMediaPosting": Type(_WRITTEN, (("headline",), ("text",))),
    "VideoObject": Type(_WRITTEN, (("headline",),)),
    "Conversation": Type(
        {"participant": Form("list", ("name",)), "lastMessage": TEXT, "app": TEXT},
        (("participant",), ("lastMessage",)),
    ),
    "MessageList": Type({"name": TEXT, "entries": Form("list", ("who", "what"))}, _LISTED, ours=True),
    "MailList": Type({"name": TEXT, "entries": Form("list", ("who", "what"))}, _LISTED, ours=True),
    "Balance": Type(
        {"name": TEXT, "amount": AMOUNT, "entries": Form("list", ("name", "amount"))},
        (("name", "amount"), ("name", "entries")),
        ours=True,
    ),
    "WeatherForecast": Type(
        {"place": TEXT, "temperature": TEXT, "condition": TEXT},
        (("place", "temperature"), ("place", "condition")),
        ours=True,
    ),
    "TaskList": Type({"name": TEXT, "entries": Form("list", ("name", "date"))}, _LISTED, ours=True),
    "CalendarView": Type(
        {"name": TEXT, "entries": Form("list", ("name", "date"))}, (("name",), ("entries",)), ours=True
    ),
    "SettingsPage": Type(
        {"name": TEXT, "app": TEXT, "entries": Form("list", ("name", "value"))},
        (("name",), ("entries",)),
        ours=True,
    ),
    "ErrorMessage": Type({"text": TEXT, "code": CODE, "app": TEXT}, (("text",),), ours=True),
    "Map": Type(
        {"place": TEXT, "from": TEXT, "to": TEXT, "duration": TEXT}, (("place",), ("from", "to")), ours=True
    ),
}


class Field(msgspec.Struct, frozen=True):
    """A field of a record, with its words on the screen and the indices of their lines in the page."""

    name: str
    value: Value
    text: str = ""
    lines: list[int] = []


class Record(msgspec.Struct, frozen=True):
    """What a screenshot says. `type` is one of `TYPES`; `confidence` is 0 to 1."""

    type: str
    fields: list[Field]
    source: Source = "local"
    confidence: float = 0.5

    def get(self, name: str) -> Value | None:
        """The value of a field, None where the record has none."""
        return next((field.value for field in self.fields if field.name == name), None)

    def text(self, name: str) -> str:
        """The value of a field of one line, "" where the record has none."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def amount(self, name: str) -> tuple[Decimal, str] | None:
        """The value of an amount and its currency."""
        value = self.get(name)
        return (Decimal(value["value"]), value["currency"]) if isinstance(value, dict) else None

    def entries(self, name: str) -> list[dict[str, str]]:
        """The entries of a list."""
        value = self.get(name)
        return value if isinstance(value, list) else []


def checked(record: Record) -> Record | None:
    """The record with only the valid fields of its type, in their order; None without any."""
    shape = TYPES.get(record.type)
    if shape is None:
        return None
    given = {field.name: field for field in reversed(record.fields)}
    kept = []
    for name, form in shape.fields.items():
        if name in given and (value := normal(given[name].value, form)):
            field = given[name]
            kept.append(Field(name, value, one_line(storable(field.text))[:MAX_TEXT], list(field.lines)))
    found = {field.name for field in kept}
    if not any(found.issuperset(needed) for needed in shape.needs):
        return None
    placed = all(field.lines for field in kept)
    confidence = fraction(record.confidence)
    if record.source != "person" and not placed:
        confidence = min(UNPLACED, confidence)
    return Record(record.type, kept, record.source, round(confidence, 3))


def placed(record: Record, lines: Sequence[str]) -> Record | None:
    """The record with the indices of those of `lines` on which the words of each field are. A remote model
    sees no lines, and a page that is read anew has others. None where nothing of the record's type remains.
    """
    squeezed = [_squeezed(line) for line in lines]
    fields = [
        Field(field.name, field.value, field.text, _lines_of(field, squeezed)) for field in record.fields
    ]
    return checked(Record(record.type, fields, record.source, record.confidence))


def normal(value: Any, form: Form) -> Value | None:
    """A value in the normal form of its field; None where it is none."""
    if form.kind == "amount":
        return _amount(value)
    if form.kind == "list":
        return _entries(value, form.keys)
    if not isinstance(value, str) or not (said := one_line(storable(value))[:MAX_VALUE]):
        return None
    if form.kind == "code":
        return said.replace(" ", "")
    if form.kind in ("day", "time"):
        return _time(said, with_clock=form.kind == "time")
    if form.kind == "link" and not said.lower().startswith(("http://", "https://")):
        return None
    return said


def _lines_of(field: Field, squeezed: Sequence[str]) -> list[int]:
    """The lines of a field's words: of each entry of a list, else the first place, of one or more lines."""
    if isinstance(field.value, list):
        wanted = [_squeezed(next(iter(entry.values()))) for entry in field.value]
    elif field.text:
        wanted = [_squeezed(field.text)]
    else:
        wanted = [_squeezed(field.value if isinstance(field.value, str) else field.value["value"])]
    found = {line for words in wanted if words for line in _where(words, squeezed)}
    return sorted(found)


def _where(words: str, squeezed: Sequence[str]) -> Sequence[int]:
    whole = next((at for at, line in enumerate(squeezed) if line == words), None)
    if whole is not None:
        return [whole]
    if len(words) < MIN_PLACED:
        return []
    inside = next((at for at, line in enumerate(squeezed) if words in line), None)
    if inside is not None:
        return [inside]
    for first in range(len(squeezed)):
        together = ""
        for last in range(first, min(len(squeezed), first + MOST_LINES)):
            together += squeezed[last]
            # What begins later is found from there.
            if words in together and words not in together[len(squeezed[first]) :]:
                return range(first, last + 1)
    return []


def _squeezed(text: str) -> str:
    """A text as it is compared: letters and digits alone."""
    return "".join(filter(str.isalnum, text.casefold()))


def _amount(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    number, currency = value.get("value"), value.get("currency")
    if not isinstance(number, str) or not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        return None
    try:
        amount = Decimal(number[:30])
    except InvalidOperation:
        return None
    if not amount.is_finite() or abs(amount) >= 10**15:
        return None
    return {"value": f"{amount:f}", "currency": currency}


def _entries(value: Any, keys: tuple[str, ...]) -> list[dict[str, str]] | None:
    if not isinstance(value, list):
        return None
    found = []
    for entry in value[:MAX_ENTRIES]:
        if isinstance(entry, str):
            entry = {keys[0]: entry}
        if not isinstance(entry, dict):
            continue
        kept = {
            key: one_line(storable(text))[:MAX_VALUE]
            for key in keys
            if isinstance(text := entry.get(key), str) and text.strip()
        }
        if keys[0] in kept:
            found.append(kept)
    return found or None


def _time(said: str, *, with_clock: bool) -> str | None:
    try:
        if len(said) == 10:
            return date.fromisoformat(said).isoformat()
        if len(said) < 16:
            return None
        moment = datetime.fromisoformat(said).replace(tzinfo=None, second=0, microsecond=0)
    except ValueError:
        return None
    return moment.isoformat(timespec="minutes") if with_clock else moment.date().isoformat()
