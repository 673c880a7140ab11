"""Threads: which records are about one thing, how far it is, and what a person takes out of one."""

import itertools
import json
import random
from datetime import datetime, timedelta

import pytest

import database
import gate
import records
import threads
from app import create_app
from curation import news
from database import db
from engines.records import TYPES, Field, Record, checked
from models import Analysis
from models import Thread as Row
from rules import joins
from tests.support.client import Client
from tests.support.library import NOW, Library

DAY = timedelta(days=1)


def euros(value, currency="EUR"):
    return {"value": str(value), "currency": currency}


def record(kind, **fields):
    """A record from its fields; a name that is a word of Python has an underscore behind it."""
    found = checked(Record(kind, [Field(name.rstrip("_"), value) for name, value in fields.items()]))
    assert found is not None
    assert len(found.fields) == len(fields), TYPES[kind]
    return found


def order(seller="Harbor Books", number="HB-20481", total="23.80", **fields):
    return record("Receipt", seller=seller, total=euros(total), orderNumber=number, **fields)


def parcel(tracking="00340434161094042557", **fields):
    return record("ParcelDelivery", trackingNumber=tracking, **fields)


def flight(number="NW482", departs="2026-12-04T07:10", **fields):
    return record("FlightReservation", number=number, departureTime=departs, **fields)


def bill(provider="City Water", total="48.10", due="2026-12-01", **fields):
    return record("Invoice", provider=provider, totalPaymentDue=euros(total), paymentDueDate=due, **fields)


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


def put(library, found, text="Some text", *, taken=NOW):
    photo_id = library.add(text, taken=taken)
    with database.scope(), db.atomic():
        columns = {"records": records.encoded([found])}
        Analysis.update(columns).where(Analysis.photo == photo_id).execute()
        records.file([photo_id])
    return photo_id


def again(photo_id, found=None):
    """What an analysis does that finds this record, or the same as before."""
    with database.scope(), db.atomic():
        if found is not None:
            columns = {"records": records.encoded([found])}
            Analysis.update(columns).where(Analysis.photo == photo_id).execute()
        records.file([photo_id])


def listed(client, query=""):
    return client.get(f"/api/threads?{query}").json["threads"]


# --------------------------------------------------------------------------------------------- 60 histories


def histories():
    """60 things on 2 to 4 screenshots each, and beside them look-alikes that are things of their own."""
    things = []
    for n in range(10):  # an order with its parcel; the same seller has others of the same amount
        seller, number, tracking = f"Shop {n % 3}", f"A{n}-{7000 + n}", f"JD01460{n:07}"
        things.append(
            [
                order(seller, number, "19.99", date=f"2026-11-{n + 1:02}"),
                parcel(tracking, orderNumber=number, seller=f"Shop {n % 3} GmbH"),
                parcel(tracking, carrier="DHL", status="Delivered"),
            ]
        )
    for n in range(5):  # short order numbers that several sellers give
        things.append(
            [
                order(f"Bakery number {n}", "1042", "8.50"),
                order(f"Bakery number {n}", "#1042", "8.50"),
            ]
        )
    for n in range(10):  # parcels whose numbers differ in one digit
        things.append([parcel(f"1Z999AA1012345678{n}", carrier="UPS"), parcel(f"1Z 999 AA1 012345678{n}")])
    for n in range(10):  # the same flight on other days, and codes that differ in a letter
        code, day = f"K{n}QW{n}X", f"2026-12-{n + 1:02}"
        things.append(
            [
                flight("NW 482", f"{day}T07:10", reservationId=code, from_="Hamburg", to="Lisbon"),
                flight("NW0482", f"{day}T07:10", seat="14A", boardingTime=f"{day}T06:30"),
                record("FlightReservation", number="NW482", from_="Hamburg", to="Lisbon", reservationId=code),
            ]
        )
    for n in range(10):  # monthly bills of one provider with the same account and, twice, the same amount
        month = f"2026-{n + 1:02}"
        number = f"R-{n + 301}"
        things.append(
            [
                bill("City Water AG", "48.10", f"{month}-15", confirmationNumber=number, accountId="77120"),
                bill("City Water", "48.10", f"{month}-15", confirmationNumber=number),
                record(
                    "MoneyTransfer",
                    amount=euros("48.10"),
                    beneficiary="City Water AG",
                    reference=f"Invoice {number}",
                ),
            ]
        )
    for n in range(8):  # stays in one house
        start, code = f"2026-11-{n * 3 + 1:02}", f"90{n}17733"
        things.append(
            [
                record(
                    "LodgingReservation", name="Hotel Sol", checkinTime=start, reservationId=f"90{n}17733"
                ),
                record("LodgingReservation", name="Hotel Sol", checkinTime=f"{start}T15:00"),
            ]
        )
    for n in range(4):  # pages of one site
        link = f"https://www.news.example/2026/11/story-{n}-of-the-day"
        things.append(
            [
                record("Article", headline=f"Story {n}", url=f"{link}?utm_source=mail#top"),
                record("Article", headline="News", url=f"{link}/"),
            ]
        )
    for n in range(3):  # a payment without a number, and another of the same shop that is too late
        things.append(
            [
                order(f"Garden Centre {n}", f"G-{n}99120", "61.40", date="2026-11-02"),
                record(
                    "MoneyTransfer",
                    amount=euros("61.40"),
                    beneficiary=f"Garden Centre {n}",
                    date="2026-11-05",
                ),
            ]
        )
    alike = [
        order("Coffee Corner", "12", "3.50"),
        order("Coffee Corner", "13", "3.50"),
        *(record("Receipt", seller="Kiosk", total=euros("2.50"), date="2026-11-03") for _ in range(3)),
        record("MoneyTransfer", amount=euros("61.40"), beneficiary="Garden Centre 1", date="2026-11-29"),
        # Which of the orders of this shop is paid cannot be told.
        record("MoneyTransfer", amount=euros("19.99"), beneficiary="Shop 1", date="2026-11-05"),
        flight("NW483", "2026-12-01T07:10"),
        record("BusReservation", number="12", departureTime="2026-12-01T07:10"),
        record("BusReservation", number="12", departureTime="2026-12-01T08:10"),
        record("Article", headline="All", url="https://www.news.example/world"),
        record("Article", headline="Today", url="https://www.news.example/world"),
        parcel("JD01460", carrier="DHL", trackingUrl="https://track.example/parcels"),
        parcel("JD01461", carrier="DHL", trackingUrl="https://track.example/parcels"),
    ]
    return things, alike


def together(shuffled):
    """The pairs that are put together, of members whose `photo_id` is unique."""
    return {
        pair
        for group in joins.things(shuffled)
        for pair in itertools.combinations(sorted(one.photo_id for one in group), 2)
    }


def test_histories_are_put_together_and_look_alikes_are_not():
    things, alike = histories()
    assert len(things) == 60
    members, right = [], set()
    for thing in things:
        first = len(members)
        for found in thing:
            taken = (NOW + len(members) * DAY / 24).isoformat()
            members.append(joins.Member(len(members), 0, taken, joins.trace(found, (), "2026-11-02")))
        right |= set(itertools.combinations(range(first, len(members)), 2))
    for found in alike:
        members.append(joins.Member(len(members), 0, "2026-11-21", joins.trace(found, (), "2026-11-02")))
    found = together(members)
    assert found <= right
    assert len(found) >= 0.95 * len(right)
    for seed in range(3):  # whatever comes first
        shuffled = random.Random(seed).sample(members, len(members))
        assert together(shuffled) == found


def stay(**fields):
    return record("LodgingReservation", name="Hotel Sol", checkinTime="2026-12-04", **fields)


def table(at, name="Saffron House"):
    return record("FoodEstablishmentReservation", name=name, startTime=f"2026-12-04T{at}")


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        (bill(confirmationNumber="R-301"), bill(), True),
        (bill(confirmationNumber="R-301"), bill(confirmationNumber="R-302"), False),
        (order(number="UD-510022"), parcel(orderNumber="UD 510022"), True),
        (order(number="UD-5100"), parcel(orderNumber="UD-5100"), False),
        (stay(reservationId="90417733"), stay(), True),
        (stay(reservationId="90417733"), stay(reservationId="90417734"), False),
        (table("19:00"), table("19:30", "Saffron House, Lisbon"), True),
        (table("12:00"), table("19:30"), False),
        (table("19:00"), table("19:00", "Blue Door"), False),
    ],
)
def test_two_are_one_by_what_both_say(one, other, is_one):
    traces = [joins.trace(found, (), "2026-11-22") for found in (one, other)]
    members = [joins.Member(number, 0, "2026-11-22", found) for number, found in enumerate(traces)]
    assert len(joins.things(members)) == (1 if is_one else 2)


# --------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (["Harbor Books", "Thank you for your order!"], "ordered"),
        (["Your parcel has been shipped"], "shipped"),
        (["Noch nicht versandt"], "ordered"),
        (["Ihre Sendung ist unterwegs"], "shipped"),
        (["Out for delivery", "Arrives by 8 pm"], "out_for_delivery"),
        (["Votre colis est disponible en point relais"], "ready_for_pickup"),
        (["您的快件已签收"], "delivered"),
        (["Entregado el 4 de noviembre"], "delivered"),
        (["Delivered to Main Street 4, third floor, and then some more words of a text"], ""),
        (["It will be delivered soon"], ""),
        (["Ordered", "Shipped", "Out for delivery", "Delivered"], ""),
        (["Your order has been cancelled"], "cancelled"),
        (["订单已退款"], "refunded"),
        (["Free cancellation until Friday", "Non-refundable"], ""),
    ],
)
def test_a_state_is_said_by_words_in_five_languages(lines, state):
    assert joins.said(lines, joins.STATES["order"])[0] == state


def test_the_newest_screenshot_with_words_says_the_state_and_its_line(client, library):
    ordered = put(library, order(), "Harbor Books\nThank you for your order")
    tracking = parcel(orderNumber="HB-20481", seller="Harbor Books")
    sent = put(library, tracking, "DHL\nOut for delivery", taken=NOW + DAY)
    (thread,) = listed(client)
    assert thread["title"] == "Harbor Books订单"  # in the language of the installation
    assert (thread["type"], thread["state"], thread["is_open"]) == ("order", "out_for_delivery", True)
    assert (thread["said_on"], thread["line"]) == (sent, 1)
    assert (thread["count"], thread["photo_ids"]) == (2, [sent, ordered])
    assert thread["first_at"] < thread["last_at"]
    # A receipt that comes later says nothing about the parcel.
    put(library, order(), "Harbor Books\nReceipt", taken=NOW + 2 * DAY)
    assert listed(client)[0]["state"] == "out_for_delivery"
    arrived = put(library, parcel(status="Zugestellt"), "DHL", taken=NOW + 3 * DAY)
    (thread,) = listed(client)
    assert (thread["state"], thread["said_on"], thread["is_open"]) == ("delivered", arrived, False)
    assert listed(client, "state=open") == []
    assert [one["id"] for one in listed(client, "state=delivered&type=order&type=parcel")] == [thread["id"]]


def test_a_trip_is_booked_then_checked_in_then_past(client, library, monkeypatch):
    put(library, flight(from_="Hamburg", to="Lisbon"), "Booking confirmed")
    monkeypatch.setattr(threads, "utc_now", lambda: datetime(2026, 12, 1))
    (thread,) = listed(client, "state=open")
    assert thread["title"] == "NW 482 Hamburg–Lisbon"
    assert (thread["type"], thread["state"]) == ("trip", "booked")
    assert thread["next"] == {"name": "departureTime", "at": "2026-12-04T07:10"}
    put(library, flight(seat="14A", boardingTime="2026-12-04T06:30"), taken=NOW + DAY)
    (thread,) = listed(client)
    assert (thread["state"], thread["next"]["name"]) == ("checked_in", "boardingTime")
    monkeypatch.setattr(threads, "utc_now", lambda: datetime(2026, 12, 6))
    (thread,) = listed(client)
    assert (thread["state"], thread["next"], thread["is_open"]) == ("past", None, False)
    assert [one["state"] for one in listed(client, "state=past")] == ["past"]
    assert listed(client, "state=checked_in") == listed(client, "state=open") == []


def test_a_bill_is_due_until_something_says_that_it_is_paid(client, library):
    put(library, bill(confirmationNumber="R-2201"), "City Water\nAmount due")
    assert [one["state"] for one in listed(client, "type=bill")] == ["due"]
    paid = record(
        "MoneyTransfer",
        amount=euros("48.10"),
        beneficiary="City Water",
        reference="R-2201",
        date="2026-11-23",
    )
    put(library, paid, "Payment successful", taken=NOW + DAY)
    (thread,) = listed(client)
    assert (thread["state"], thread["count"], thread["title"]) == ("paid", 2, "City Water €48.10")


def test_a_single_receipt_or_page_is_no_thread(client, library):
    photo_id = put(library, order(), "Till 4\nTotal 23.80")
    page = put(library, record("Article", headline="A", url="https://news.example/2026/story-of-the-day"))
    put(library, record("ErrorMessage", text="No space left"))
    assert listed(client) == []
    assert client.get(f"/api/photos/{photo_id}").json["thread_id"] is None
    again(page)
    put(library, order(), "Till 4\nTotal 23.80", taken=NOW + DAY)
    (thread,) = listed(client)
    assert client.get(f"/api/photos/{photo_id}").json["thread_id"] == thread["id"]
    assert client.get(f"/api/threads/{thread['id']}").json == thread


# ---------------------------------------------------------------------------------------------- what changes


def test_threads_follow_corrections_the_trash_and_deletion(client, library):
    one = put(library, parcel("JD014600001"))
    other = put(library, parcel("JD014600002"), taken=NOW + DAY)
    assert [thread["count"] for thread in listed(client)] == [1, 1]
    own = {"type": "ParcelDelivery", "fields": [{"name": "trackingNumber", "value": "JD014600001"}]}
    client.patch(f"/api/photos/{other}", json={"records": [own]})
    (thread,) = listed(client)
    assert thread["photo_ids"] == [other, one]
    client.post(f"/api/photos/{one}/trash")
    assert [found["photo_ids"] for found in listed(client)] == [[other]]
    client.post(f"/api/photos/{one}/restore")
    (thread,) = listed(client)
    assert thread["photo_ids"] == [other, one]
    client.delete(f"/api/photos/{other}")
    assert [found["photo_ids"] for found in listed(client)] == [[one]]
    client.delete(f"/api/photos/{one}")
    assert listed(client) == []
    with database.scope():
        assert not Row.select().exists()


def test_a_screenshot_between_two_joins_them_and_its_deletion_parts_them(client, library):
    bought = put(library, order(), "Thank you for your order")
    put(library, parcel(), taken=NOW + DAY)
    assert [thread["count"] for thread in listed(client)] == [1, 1]
    bridge = put(library, parcel(orderNumber="HB-20481", seller="Harbor Books"), taken=NOW + 2 * DAY)
    (thread,) = listed(client)
    assert thread["count"] == 3
    again(bought)
    assert listed(client)[0]["id"] == thread["id"]
    client.delete(f"/api/photos/{bridge}")
    assert [thread["count"] for thread in listed(client)] == [1, 1]


def test_what_is_taken_out_stays_out(client, library):
    first, second, third = (put(library, parcel(), taken=NOW + days * DAY) for days in range(3))
    (thread,) = listed(client)
    answer = client.delete(f"/api/threads/{thread['id']}/photos/{second}")
    assert answer.status_code == 200

    def groups():
        return sorted(found["photo_ids"] for found in listed(client))

    assert groups() == sorted([[third, first], [second]])
    again(second)
    again(first)
    assert groups() == sorted([[third, first], [second]])
    # A screenshot that comes later belongs to one of them and does not join both.
    fourth = put(library, parcel(), taken=NOW + 3 * DAY)
    assert sorted(map(len, groups())) == [1, 3]
    assert [second] in groups()
    client.delete(f"/api/photos/{first}")
    client.delete(f"/api/photos/{third}")
    assert groups() == sorted([[fourth], [second]])

    assert client.delete(f"/api/threads/{thread['id'] + 900}/photos/{second}").status_code == 404
    client.delete(f"/api/threads/apart/{second}")
    assert groups() == [[fourth, second]]


def test_one_day_of_a_trip_is_one_row_of_the_agenda(client, library):
    fields = {"from_": "Hamburg", "to": "Lisbon", "arrivalTime": "2026-12-04T09:55"}
    photo_id = put(library, flight(**fields))
    put(library, flight(boardingTime="2026-12-04T06:30", seat="14A"), taken=NOW + DAY)
    with database.scope():
        day = threads.days([photo_id])[photo_id]["2026-12-04"]
    assert day.title == "NW 482 Hamburg–Lisbon"
    assert [(moment.name, moment.at[-5:]) for moment in day.times] == [
        ("boardingTime", "06:30"),
        ("departureTime", "07:10"),
        ("arrivalTime", "09:55"),
    ]


def test_pages_of_the_list(client, library):
    for n in range(3):
        put(library, parcel(f"JD01460000{n}"), taken=NOW + n * DAY)
    page = client.get("/api/threads?page=2&page_size=2").json
    assert (page["total"], page["page"], len(page["threads"])) == (3, 2, 1)
    assert client.get("/api/threads?state=lost").status_code == 400
    assert client.get("/api/threads/4711").status_code == 404


# --------------------------------------------------------------------------------------------------- notes


def parcels(client, library, *texts):
    """The ids of screenshots of one parcel, taken an hour apart, each with a text that says its state."""
    return [
        put(library, parcel(carrier="DHL", status=text), text, taken=NOW + n * timedelta(hours=1))
        for n, text in enumerate(texts)
    ]


def test_a_note_tells_each_change_of_state_once(client, settings, library):
    at = NOW + timedelta(hours=9)
    first, second = parcels(client, library, "In transit", "Delivered")
    (title,) = news.write(settings, now=at)
    (shown,) = client.get("/api/dynamics").json["items"]
    assert (shown["title"], shown["category"]) == (title, "note")
    assert title.endswith(("delivered", "已送达"))
    detail = client.get(f"/api/dynamics/{shown['id']}").json
    assert json.loads(detail["source_photo_ids"]) == [second, first]

    again(first)
    again(second)
    client.post(f"/api/photos/{second}/trash")
    client.post(f"/api/photos/{second}/restore")
    assert news.write(settings, now=at) == []


def test_what_a_folder_of_the_version_before_has_is_no_news(client, settings, library):
    parcels(client, library, "In transit", "Out for delivery")
    with database.scope():
        db.execute_sql("ALTER TABLE threads DROP COLUMN told")
        db.execute_sql("DELETE FROM schema_migration WHERE name = '0044_told'")
    database.close_store()

    migrated = Client(create_app(settings))
    (thread,) = listed(migrated)
    assert (thread["state"], thread["count"]) == ("out_for_delivery", 2)
    assert news.write(settings, now=NOW + DAY) == []
    put(library, parcel(carrier="DHL", status="Delivered"), "Delivered", taken=NOW + DAY)
    assert len(news.write(settings, now=NOW + DAY)) == 1


def test_no_note_tells_what_is_old_the_same_or_sensitive(client, settings, library):
    parcels(client, library, "In transit", "In transit")
    assert news.write(settings, now=NOW) == []
    put(library, parcel(status="Delivered"), "Delivered", taken=NOW + timedelta(hours=5))
    assert news.write(settings, now=NOW + 10 * DAY) == []

    card = "Card number 4532 0151 1283 0366"
    for text in ("In transit", "Delivered"):
        put(library, parcel("1Z999AA10123456784", status=text), f"{card}\n{text}", taken=NOW + DAY)
    with database.scope(), db.atomic():
        gate.mark_older()
    assert not [note for note in news.write(settings, now=NOW + DAY) if "1Z999" in note]
