"""Records as CSV for spreadsheets and as JSON-LD, and totals that their items do not add up to."""

import csv
import io
import json
import shutil
import subprocess
from decimal import Decimal
from xml.etree import ElementTree

import pytest

import database
import records
from database import db
from engines.records import TYPES, Field, Record
from models import Analysis
from outlets import linked, tabular
from rules import totals
from tests.support.library import Library

# schema.org 30: the types and properties of it that these records use.
TYPES_OF_SCHEMA_ORG = """
Airport Article BusReservation BusStop BusTrip Conversation DeliveryEvent Event EventReservation Flight
FlightReservation FoodEstablishment FoodEstablishmentReservation ImageObject Invoice ItemList ListItem
LodgingBusiness LodgingReservation MonetaryAmount MoneyTransfer Offer Order OrderItem Organization
ParcelDelivery Person Place PostalAddress Product Recipe Seat Service SocialMediaPosting Thing Ticket
TrainReservation TrainStation TrainTrip VideoObject
"""
PROPERTIES_OF_SCHEMA_ORG = """
acceptedOffer accessCode accountId additionalType address agent amount arrivalAirport arrivalBusStop
arrivalStation arrivalTime attendee author busNumber checkinTime checkoutTime confirmationNumber currency
datePublished deliveryAddress deliveryStatus departureAirport departureBusStop departureGate
departurePlatform departureStation departureTime description doorTime email endDate endTime
expectedArrivalFrom expectedArrivalUntil flightNumber headline itemListElement knows location name offers
orderDate orderNumber orderQuantity orderedItem partOfOrder participant partySize paymentDueDate
paymentMethod price priceCurrency provider publisher recipeIngredient recipeYield reservationFor
reservationId reservedTicket seatNumber seller startDate startTime streetAddress subjectOf telephone text
ticketNumber ticketedSeat totalPaymentDue totalTime trackingNumber trackingUrl trainNumber underName url
value
"""
VALUES = {
    "text": "Words",
    "code": "AB12",
    "day": "2026-11-20",
    "time": "2026-11-20T18:02",
    "link": "https://example.org/x",
    "amount": {"value": "23.80", "currency": "EUR"},
}


SOFFICE = shutil.which("soffice") or ""
MOST_CELLS = 40  # of a row; behind the last one, the sheet goes on
OPEN_DOCUMENT = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"


@pytest.fixture
def library(app, settings):
    return Library(settings.data_dir)


def put(library, *found):
    """A photo with records."""
    photo_id = library.add("Some text")
    with database.scope(), db.atomic():
        Analysis.update(records=records.encoded(found)).where(Analysis.photo == photo_id).execute()
        records.file([photo_id])
    return photo_id


def receipt(seller="REWE", value="23.80", day="2026-11-20", currency="EUR", items=()):
    fields = [
        Field("seller", seller),
        Field("total", {"value": value, "currency": currency}),
        Field("date", day),
    ]
    return Record("Receipt", fields + ([Field("items", list(items))] if items else []))


def full(name):
    """A record of a type with all of its fields."""
    return Record(
        name,
        [
            Field(field, [dict.fromkeys(form.keys, "Words")] if form.kind == "list" else VALUES[form.kind])
            for field, form in TYPES[name].fields.items()
        ],
    )


def table(client, query=""):
    answer = client.get(f"/api/records.csv?{query}")
    assert answer.status_code == 200
    text = answer.data.decode("utf-8")
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def test_a_table_has_a_column_for_each_field_and_the_screenshots_last(client, library):
    first = put(
        library, receipt(items=[{"name": "Tea", "quantity": "2", "price": "€3.00"}, {"name": "Milk"}])
    )
    second = put(library, receipt("Coop", "-7.5", "2026-11-21", "CHF"))
    put(library, Record("ErrorMessage", [Field("text", "No space left")]))
    found = table(client, "type=Receipt")
    assert list(found[0]) == [
        *("type", "day", "seller", "total", "totalCurrency", "date", "paymentMethod", "orderNumber", "items"),
        *("doubtful", "record_id", "photo_id"),
    ]
    assert [row["photo_id"] for row in found] == [str(second), str(first)]
    assert [(row["total"], row["totalCurrency"]) for row in found] == [("-7.5", "CHF"), ("23.80", "EUR")]
    assert found[1]["items"] == "Tea 2 €3.00; Milk"


def opened(folder, text, name):
    """The rows of a CSV file as LibreOffice opens it, asked to compute what it takes for a formula: a cell is
    a number or a text. And how many cells are formulas.
    """
    file = folder / f"{name}.csv"
    file.write_text(text, encoding="utf-8", newline="")
    # Comma, quotation mark, UTF-8, from line 1; the last value is "evaluate formulas".
    given = "--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,-1,true"
    command = [SOFFICE, f"-env:UserInstallation=file://{folder}/profile", "--headless", given]
    subprocess.run(
        [*command, "--convert-to", "fods", "--outdir", str(folder), str(file)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    of_table, of_text, of_office = (OPEN_DOCUMENT % part for part in ("table", "text", "office"))
    tree = ElementTree.parse(folder / f"{name}.fods")
    rows = []
    for row in tree.iter(f"{of_table}table-row"):
        cells = []
        for cell in row.iter(f"{of_table}table-cell"):
            shown = "\n".join("".join(part.itertext()) for part in cell.iter(f"{of_text}p"))
            value = cell.get(f"{of_office}value")
            is_number = cell.get(f"{of_office}value-type") == "float"
            times = int(cell.get(f"{of_table}number-columns-repeated", 1))
            cells += [Decimal(value) if is_number else shown] * min(times, MOST_CELLS)
        rows += [cells] if any(cells) else []
    return rows, sum(1 for cell in tree.iter() if cell.get(f"{of_table}formula"))


@pytest.mark.slow
@pytest.mark.skipif(not SOFFICE, reason="soffice, of Debian's package libreoffice-calc-nogui, is not here")
def test_libreoffice_opens_the_table_with_its_columns_and_sums_and_without_formulas(
    client, library, tmp_path
):
    begins = ["=1+1", "+1+1", "-1+1", "@SUM(1)", "\t=1+1", " =1+1", '=HYPERLINK("http://example.org";"x")']
    values = ["23.80", "-7.5", "1204.05", "0.99", "12", "3.10", "40"]
    for seller, value in zip(begins, values, strict=True):
        put(library, receipt(seller, value, items=[{"name": "Käse, jung", "price": "€3.00"}]))
    put(library, receipt('小满咖啡 "A", B\nC', "0.01"))
    sent = client.get("/api/records.csv?type=Receipt").data.decode()
    (heading, *rows), formulas = opened(tmp_path, sent, "receipts")
    assert formulas == 0
    assert heading == list(table(client, "type=Receipt")[0])
    columns = dict(zip(heading, zip(*[row[: len(heading)] for row in rows], strict=True), strict=True))
    (wanted,) = client.get("/api/records").json["sums"]
    assert sum(columns["total"]) == Decimal(wanted["value"]) == sum(map(Decimal, values)) + Decimal("0.01")
    assert set(columns["totalCurrency"]) == {"EUR"}
    assert columns["seller"][0] == '小满咖啡 "A", B\nC'
    assert set(columns["items"][1:]) == {"Käse, jung €3.00"}
    assert all(isinstance(value, Decimal) for value in columns["photo_id"])
    # Without the apostrophes, it would compute them.
    assert opened(tmp_path, sent.replace("'", ""), "live")[1] > 0


def test_the_columns_are_those_of_the_types_that_are_found(client, library):
    put(library, receipt())
    put(library, Record("ErrorMessage", [Field("text", "No space left")]))
    assert {"text", "code", "app", "seller"} <= table(client)[0].keys()
    assert "iban" not in table(client)[0]
    assert table(client, "since=2027-01-01") == []


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", " =", "＝", "＋"])
def test_no_cell_is_a_formula(client, library, begin):
    formula = f'{begin}HYPERLINK("http://example.org";"x")'
    put(library, receipt(formula, items=[{"name": formula}]))
    (row,) = table(client)
    assert row["seller"] == f"'{formula}"
    assert row["items"] == f"'{formula}"


def test_what_is_no_formula_stays_as_it_is(client, library):
    put(library, receipt('Smith, "Sons" & Co\nLtd; a=b'))
    (row,) = table(client)
    assert row["seller"] == 'Smith, "Sons" & Co\nLtd; a=b'


@pytest.mark.parametrize("ending", ["csv", "jsonld"])
@pytest.mark.parametrize("query", ["type=Bill", "since=2026-13-01"])
def test_a_wrong_filter_is_named_before_anything_is_sent(client, library, ending, query):
    answer = client.get(f"/api/records.{ending}?{query}")
    assert answer.status_code == 400
    assert answer.json["detail"].startswith(query.partition("=")[0])


def test_linked_data_is_of_the_vocabulary_of_schema_org(client, library):
    for name in TYPES:
        put(library, full(name))
    answer = client.get("/api/records.jsonld")
    assert answer.mimetype == "application/ld+json"
    document = json.loads(answer.data)
    context = document["@context"]
    assert context["@vocab"] == "https://schema.org/"
    assert len(document["@graph"]) == len(TYPES)

    def check(node):
        for name, value in node.items():
            if name == "@type":
                assert value in TYPES_OF_SCHEMA_ORG.split()
            elif not name.startswith("@"):
                prefix, _, own = name.partition(":")
                assert (prefix in context and own) or name in PROPERTIES_OF_SCHEMA_ORG.split()
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, dict):
                    check(inner)

    for node in document["@graph"]:
        check(node)


def test_linked_data_has_the_values_where_other_programs_look(client, library):
    items = [{"name": "Tea", "quantity": "2", "price": "€3.00"}]
    photo_id = put(library, receipt(items=items), full("FlightReservation"))
    by_type = {node["@type"]: node for node in client.get("/api/records.jsonld").json["@graph"]}
    order, flight = by_type["Order"], by_type["FlightReservation"]
    assert order["additionalType"] == "urn:snaplore:Receipt"
    assert order["seller"] == {"@type": "Organization", "name": "REWE"}
    assert order["acceptedOffer"] == {"@type": "Offer", "price": "23.80", "priceCurrency": "EUR"}
    assert order["orderedItem"] == [
        {
            "@type": "OrderItem",
            "orderQuantity": "2",
            "orderedItem": {
                "@type": "Product",
                "name": "Tea",
                "offers": {"@type": "Offer", "price": "€3.00"},
            },
        }
    ]
    assert order["subjectOf"]["@id"] == f"urn:snaplore:photo:{photo_id}"
    assert flight["reservationFor"]["flightNumber"] == "AB12"
    assert flight["reservationFor"]["departureAirport"] == {"@type": "Airport", "name": "Words"}
    assert flight["snaplore:boardingTime"] == "2026-11-20T18:02"


def test_every_field_has_a_place_of_its_own():
    for name in TYPES:
        written = json.dumps(linked.node(full(name), 1, 1))
        assert written.count("Words") >= sum(
            form.kind in ("text", "list") for form in TYPES[name].fields.values()
        ), name


def test_a_large_table_is_sent_in_parts_and_begins_at_once(client, library, monkeypatch):
    monkeypatch.setattr(tabular, "FIRST_BATCH", 2)
    monkeypatch.setattr(tabular, "BATCH", 3)
    days = [f"2026-11-{1 + number // 3:02}" for number in range(12)]
    for number, day in enumerate(days):
        put(library, receipt(f"Shop {number}", day=day))
    batches = []
    of = records.of

    def counted(ids):
        batches.append(len(ids))
        return of(ids)

    monkeypatch.setattr(records, "of", counted)
    with database.scope():
        sent = tabular.as_csv(records.ids(records.Wanted()), ["Receipt"])
    assert [next(sent) for _ in range(3)][2].startswith("Receipt,2026-11-04,Shop 11")
    assert batches == [2]
    assert len(list(sent)) == 11
    assert batches == [2, 3, 3, 3, 1]
    assert [row["seller"] for row in table(client)] == [f"Shop {number}" for number in range(11, -1, -1)]
    linked_data = client.get("/api/records.jsonld").json["@graph"]
    assert len({node["@id"] for node in linked_data}) == 12


@pytest.mark.parametrize(
    ("sort", "sellers"),
    [
        ("latest", ["Dune", "Cove", "Bay", "Acre", "Elm"]),
        ("earliest", ["Elm", "Acre", "Bay", "Cove", "Dune"]),
        ("highest", ["Bay", "Dune", "Cove", "Acre", "Elm"]),
        ("lowest", ["Acre", "Cove", "Dune", "Bay", "Elm"]),
        ("a_to_z", ["Acre", "Bay", "Cove", "Dune", "Elm"]),
        ("z_to_a", ["Elm", "Dune", "Cove", "Bay", "Acre"]),
    ],
)
def test_records_are_listed_and_exported_in_an_order_whose_pages_fit_together(client, library, sort, sellers):
    put(library, Record("Subscription", [Field("provider", "Elm"), Field("renewalDate", "2026-10-01")]))
    for seller, value in (("Acre", "-7.5"), ("Bay", "100"), ("Cove", "20.00"), ("Dune", "20")):
        put(library, receipt(seller, value))

    def page(number, size):
        found = client.get(f"/api/records?sort={sort}&page={number}&page_size={size}").json["records"]
        return [one["fields"][0]["value"] for one in found]

    assert page(1, 20) == sellers
    assert [*page(1, 2), *page(2, 2), *page(3, 2)] == sellers
    assert [row["seller"] or row["provider"] for row in table(client, f"sort={sort}")] == sellers


def test_an_unknown_order_is_refused(client):
    assert client.get("/api/records?sort=day").status_code == 400
    assert client.get("/api/records.csv?sort=day").status_code == 400


@pytest.mark.parametrize(
    ("total", "items", "doubtful"),
    [
        ("6.00", [("Tea", "", "€3.00"), ("Milk", "", "3,00")], False),
        ("9.00", [("Tea", "2", "€3.00"), ("Milk", "", "3,00")], False),  # of one piece
        ("6.50", [("Tea", "", "€3.00"), ("Milk", "", "3,00")], True),
        ("6.50", [("Tea", "", "€3.00"), ("Milk", "", "")], False),  # one price was not read
        ("6.50", [], False),
    ],
)
def test_a_total_that_its_items_do_not_add_up_to_is_doubtful(client, library, total, items, doubtful):
    listed = [
        {name: value for name, value in zip(("name", "quantity", "price"), item, strict=True) if value}
        for item in items
    ]
    found = receipt(value=total, items=listed)
    assert totals.is_doubtful(found) is doubtful
    put(library, found)
    assert client.get("/api/records").json["records"][0]["doubtful"] is doubtful
    assert table(client)[0]["doubtful"] == ("true" if doubtful else "")


@pytest.mark.parametrize(
    ("text", "doubtful"),
    [
        ("Subtotal\n€6.00\nTax\n€0.50\nTotal\n€6.50", False),
        ("Subtotal €6.00\nShipping €2.00\nDiscount -€1.50\nTotal €6.50", False),
        ("Tea €3.00\nMilk €3.00\nSubtotal €6.00\nTotal €6.50", True),
        ("Tea €3.00\nMilk €3.00\nPaid €20.00\nTotal €6.50", True),
    ],
)
def test_a_tax_a_fee_or_a_discount_on_the_screenshot_explains_a_total(text, doubtful):
    items = [{"name": "Tea", "price": "€3.00"}, {"name": "Milk", "price": "3,00"}]
    assert totals.is_doubtful(receipt(value="6.50", items=items), text) is doubtful


def test_types_are_counted_and_what_is_sensitive_is_named(client, library):
    put(library, receipt(), full("FlightReservation"))
    photo_id = put(library, receipt("Aldi"))
    with database.scope():
        Analysis.update(sensitive="card").where(Analysis.photo == photo_id).execute()
    counts = {"Receipt": 2, "FlightReservation": 1}
    assert client.get("/api/records/types").json["types"] == [
        {"type": name, "count": count} for name, count in counts.items()
    ]
    assert client.get("/api/records/types?seller=aldi").json["types"] == [{"type": "Receipt", "count": 1}]
    found = {one["photo_id"]: one["sensitive"] for one in client.get("/api/records").json["records"]}
    assert found[photo_id] == ["card"]
    assert set(map(tuple, found.values())) == {("card",), ()}
