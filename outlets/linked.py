"""Records as JSON-LD in schema.org's vocabulary.

`PLACES` says for each type which of schema.org's it is, and where each field is in it. What schema.org has no
place for keeps its own name below `urn:snaplore:`. The context is part of the document, so a reader needs no
network.
"""

import re
from collections.abc import Mapping
from typing import Any

from engines.records import TYPES, Record

MEDIA_TYPE = "application/ld+json"
OURS = "urn:snaplore:"
CONTEXT = {"@vocab": "https://schema.org/", "snaplore": OURS, "additionalType": {"@type": "@id"}}

Node = dict[str, Any]

# A path: "property", or "property@Type" with the path inside the object. What begins alike shares its object.
_BY, _FOR = "provider@Organization.name", "reservationFor@"
_BOOKED = {"reservationId": "reservationId", "underName": "underName@Person.name", "provider": _BY}
_SEAT = "reservedTicket@Ticket.ticketedSeat@Seat.seatNumber"
_TEXTS = {"author": "author@Person.name", "publisher": "publisher@Organization.name"} | {
    name: name for name in ("headline", "text", "datePublished", "url")
}


def _journey(trip: str, number: str, stops: str, stop: str, **more: str) -> dict[str, str]:
    inside = f"{_FOR}{trip}."
    named = {"departureTime": "departureTime", "arrivalTime": "arrivalTime", "number": number} | more
    between = {"from": f"departure{stops}@{stop}.name", "to": f"arrival{stops}@{stop}.name"}
    return {name: inside + path for name, path in (named | between).items()} | _BOOKED | {"seat": _SEAT}


PLACES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "Receipt": (
        "Order",
        {
            "seller": "seller@Organization.name",
            "total": "acceptedOffer@Offer",
            "date": "orderDate",
            "paymentMethod": "paymentMethod",
            "orderNumber": "orderNumber",
            "items": "orderedItem@OrderItem",
            "items.name": "orderedItem@Product.name",
            "items.quantity": "orderQuantity",
            "items.price": "orderedItem@Product.offers@Offer.price",
        },
    ),
    "Invoice": (
        "Invoice",
        {
            "provider": _BY,
            **{
                name: name
                for name in ("totalPaymentDue", "paymentDueDate", "accountId", "confirmationNumber")
            },
        },
    ),
    "MoneyTransfer": (
        "MoneyTransfer",
        {
            "amount": "amount",
            "beneficiary": "participant@Person.name",
            "sender": "agent@Person.name",
            "date": "endTime",
        },
    ),
    "Subscription": ("Service", {"provider": _BY, "price": "offers@Offer"}),
    "ParcelDelivery": (
        "ParcelDelivery",
        {
            "carrier": _BY,
            "trackingNumber": "trackingNumber",
            "trackingUrl": "trackingUrl",
            "expectedArrival": "expectedArrivalFrom",
            "expectedArrivalUntil": "expectedArrivalUntil",
            "orderNumber": "partOfOrder@Order.orderNumber",
            "seller": "partOfOrder@Order.seller@Organization.name",
            "deliveryAddress": "deliveryAddress@PostalAddress.streetAddress",
            "status": "deliveryStatus@DeliveryEvent.name",
            "pickupCode": "deliveryStatus@DeliveryEvent.accessCode",
        },
    ),
    "FlightReservation": (
        "FlightReservation",
        _journey("Flight", "flightNumber", "Airport", "Airport", gate="departureGate"),
    ),
    "TrainReservation": (
        "TrainReservation",
        _journey("TrainTrip", "trainNumber", "Station", "TrainStation", platform="departurePlatform"),
    ),
    "BusReservation": ("BusReservation", _journey("BusTrip", "busNumber", "BusStop", "BusStop")),
    "LodgingReservation": (
        "LodgingReservation",
        {
            "name": f"{_FOR}LodgingBusiness.name",
            "address": f"{_FOR}LodgingBusiness.address",
            "checkinTime": "checkinTime",
            "checkoutTime": "checkoutTime",
            "reservationId": "reservationId",
        },
    ),
    "EventReservation": (
        "EventReservation",
        {
            **{name: f"{_FOR}Event.{name}" for name in ("name", "startDate", "endDate", "doorTime")},
            "location": f"{_FOR}Event.location@Place.name",
            "seat": _SEAT,
            "ticketNumber": "reservedTicket@Ticket.ticketNumber",
        },
    ),
    "FoodEstablishmentReservation": (
        "FoodEstablishmentReservation",
        {
            "name": f"{_FOR}FoodEstablishment.name",
            "startTime": "startTime",
            "partySize": "partySize",
        },
    ),
    "Appointment": (
        "Event",
        {
            "startTime": "startDate",
            "with": "attendee@Person.name",
            "location": "location@Place.name",
            "preparation": "description",
        },
    ),
    "WifiNetwork": ("Thing", {"ssid": "name"}),
    "Contact": ("Person", {name: name for name in ("name", "telephone", "email", "address")}),
    "Recipe": (
        "Recipe",
        {name: name for name in ("name", "totalTime", "recipeYield", "recipeIngredient")},
    ),
    "Product": (
        "Product",
        {"name": "name", "price": "offers@Offer", "seller": "offers@Offer.seller@Organization.name"},
    ),
    "Article": ("Article", _TEXTS),
    "SocialMediaPosting": ("SocialMediaPosting", _TEXTS),
    "VideoObject": ("VideoObject", _TEXTS),
    "Conversation": ("Conversation", {"lastMessage": "text"}),
    "Balance": ("Thing", {"name": "name"}),
    "ErrorMessage": ("Thing", {"text": "description"}),
    "Map": ("Place", {"place": "name"}),
    **{
        name: ("ItemList", {"name": "name", "entries": "itemListElement@ListItem", "entries.name": "name"})
        for name in ("MessageList", "MailList", "TaskList", "CalendarView", "SettingsPage")
    },
}


def node(record: Record, record_id: int, photo_id: int) -> Node:
    """A record as an object of a document with `CONTEXT`. It says which screenshot it is from."""
    kind, places = PLACES.get(record.type, ("Thing", {}))
    made: Node = {"@id": f"{OURS}record:{record_id}", "@type": kind}
    if TYPES[record.type].ours:
        made["additionalType"] = f"{OURS}{record.type}"
    for field in record.fields:
        path, value = places.get(field.name, f"snaplore:{field.name}"), field.value
        if isinstance(value, str):
            _put(made, path, value)
        elif isinstance(value, dict):
            _put_amount(made, path, value)
        else:
            form = TYPES[record.type].fields[field.name]
            _put_list(made, path, value, places, field.name, plain=len(form.keys) == 1)
    made["subjectOf"] = {"@id": f"{OURS}photo:{photo_id}", "@type": "ImageObject"}
    return made


def _put(into: Node, path: str, value: Any) -> None:
    """Put a value at a path, into objects that are made where they are missing."""
    *steps, last = re.split(r"(?<=[A-Za-z])\.", path)
    for step in steps:
        name, _, kind = step.partition("@")
        into = into.setdefault(name, {"@type": kind})
    into[last] = value


def _put_amount(into: Node, path: str, amount: dict[str, str]) -> None:
    if path.endswith("@Offer"):
        _put(into, f"{path}.price", amount["value"])
        _put(into, f"{path}.priceCurrency", amount["currency"])
    else:
        _put(into, path, {"@type": "MonetaryAmount", **amount})


def _put_list(
    into: Node,
    path: str,
    entries: list[dict[str, str]],
    places: Mapping[str, str],
    field: str,
    *,
    plain: bool,
) -> None:
    if plain:
        into[path] = [next(iter(entry.values())) for entry in entries]
        return
    name, _, kind = path.partition("@")
    into[name] = []
    for entry in entries:
        made: Node = {"@type": kind} if kind else {}
        for key, value in entry.items():
            _put(made, places.get(f"{field}.{key}", f"snaplore:{key}"), value)
        into[name].append(made)
