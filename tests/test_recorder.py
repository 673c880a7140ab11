"""Made-up screens of ordinary life, in many layouts and languages, become records with the right fields.

`support/records.txt` has them: a head with the type (- is none) and what its fields are, and the screen in
the language of `benchmarks/drawn.py`, where || and | are rows of small and of larger texts in columns.
"""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from benchmarks import drawn
from engines.lines import Line, Page
from engines.records import TYPES
from rules import recorder
from rules.judge import judge
from rules.layout import Layout
from rules.occasions import occasions
from rules.view import View
from tests.support import fonts

TAKEN = datetime(2026, 11, 22, 12, 0)  # a Sunday
OF_VALUES = {
    type_
    for type_, shape in TYPES.items()
    if {"amount", "day", "time"} & {form.kind for form in shape.fields.values()}
} - {"Article", "SocialMediaPosting", "VideoObject"}
SCREENS = (Path(__file__).parent / "support" / "records.txt").read_text().strip().split("\n\n")


class _Setter(drawn._Pen):
    """Notes where the lines of a drawn screen would be read."""

    def __init__(self):
        super().__init__(ImageDraw.Draw(Image.new("RGB", (8, 8))))
        self.lines = []

    def text(self, x, y, text, size, *, anchor="la", fill="black"):
        left, _, right, _ = fonts.font(fonts.CHINESE, size).getbbox(text, anchor=anchor)
        place = (int(x + left), int(y + 0.1 * size), int(x + right), int(y + 1.1 * size))
        self.lines.append(Line(text, 0.98, *place))

    def columns(self, parts, size):
        for number, part in enumerate(parts):
            if part:
                self.text(60 + number * (960 // len(parts)), self._y, part, size)
        self._y += size + 22


def page(rows):
    """A page with these elements from the top."""
    setter = _Setter()
    setter.text(60, 34, "9:41", 40)
    for row in rows:
        if row[0] == "|":
            small = row.startswith("||")
            setter.columns([part.strip() for part in row.lstrip("|").split("|")], 34 if small else 46)
        else:
            setter.element(row[0], [part.strip() for part in row[1:].split("::")])
    return Page(1080, 2340, sorted(setter.lines, key=lambda line: (line.top // 20, line.left)))


def records(rows, taken=TAKEN):
    return judge(page(rows), analyser="local", language="en", taken=taken).records


@pytest.mark.parametrize("screen", SCREENS, ids=[screen.split("|")[0][2:] for screen in SCREENS])
def test_a_screen_becomes_its_record(screen):
    head, *rows = screen.splitlines()
    kind, _, fields = head[2:].partition(" ")
    found = records(rows)
    if kind == "-":
        assert not {record.type for record in found} & OF_VALUES
        return
    assert found[0].type == kind
    expected = dict(field.split("=", 1) for field in fields.split("|"))
    assert {name: _shown(found[0], name) for name in expected} == expected
    assert all(field.lines for field in found[0].fields)


def _shown(record, name):
    value = record.get(name)
    if isinstance(value, dict):
        return f"{value['value']} {value['currency']}"
    return record.text(name)


def test_what_was_bought_is_listed_with_its_prices():
    (record,) = records(SCREENS[0].splitlines()[1:])
    assert record.entries("items")[0] == {"name": "Oat milk", "quantity": "2", "price": "7.98"}


def test_without_a_time_of_the_screenshot_a_day_without_a_year_is_no_value():
    rows = [
        "# Booking confirmed",
        "! Hotel Marina",
        "k Check-in :: 27 Dec",
        "k Check-out :: 30 Dec",
        "k Nights :: 3",
    ]
    assert not any(record.type == "LodgingReservation" for record in records(rows, None))


def test_a_question_is_nobody_one_talks_with():
    rows = ["# Messages", "< :: Are we still on for tomorrow?", "> :: Could we make it Friday?", "[ Message"]
    assert not any(record.get("participant") for record in records(rows) if record.type == "Conversation")


def test_what_is_below_the_name_of_a_screen_is_no_place():
    rows = ["# Clinic", "| Your appointment", "k Tuesday :: 08:15", "k Dr. Lindqvist :: Room 3"]
    (found,) = records(rows)
    assert (found.type, found.get("location")) == ("Appointment", None)


def test_a_transfer_for_tickets_is_no_event():
    rows = [
        "# Nordbank",
        "! -45.00 EUR",
        ". Transfer sent",
        "k To :: Jonas Weber",
        "k Concert tickets :: 12 Oct",
        "k Balance :: 1,431.20 EUR",
    ]
    assert "EventReservation" not in {record.type for record in records(rows)}


def test_a_chat_is_no_list_of_chats_and_no_table_and_keeps_the_time_that_a_word_leads_to():
    rows = ["# Messages", ". Jonas", ". Dinner on Friday at 19:30?", ". The new place at the canal"]
    rows += [". Yes! I will book a table", ". For four, Ida comes too"]
    found = judge(page(rows), analyser="local/small", language="en", taken=TAKEN)
    assert not {"MessageList", "FoodEstablishmentReservation"} & {record.type for record in found.records}
    assert "Dinner on Friday at 19:30?" in found.summary


def test_the_weather_has_a_place_and_no_day_to_remember():
    rows = ["# Weather", "k Leipzig :: 14°", ". Light rain until 11:00", "k Friday :: 17° sunny"]
    rows += ["k Saturday :: 19° sunny", "k Wind :: 12 km/h"]
    (found,) = records(rows)
    assert (found.type, found.text("place")) == ("WeatherForecast", "Leipzig")
    assert occasions(page(rows), TAKEN) == []
    (found,) = records(["# 天气", "k 杭州 :: 16°", ". 小雨转多云", "k 周五 :: 晴 19°", "k 周六 :: 晴 21°"])
    assert found.text("place") == "杭州"


def test_a_product_is_not_sold_by_itself():
    rows = [
        "# Running shoes Trail 3",
        "k Price :: €89.95",
        "k Size :: 42",
        "k Sold by :: Running shoes Trail 3",
    ]
    rows += [". In stock", "! Add to cart"]
    (found,) = records(rows)
    assert (found.type, found.text("name"), found.text("seller")) == ("Product", "Running shoes Trail 3", "")


def test_days_of_several_loans_are_not_that_of_a_bill():
    rows = [
        "# Library account",
        "k Slow Rivers :: Due on 27 November 2026",
        "k Atlas of Islands :: Due on 3 December 2026",
        ". Charges",
        "k Balance :: 2.40 EUR",
        ". Pay now",
    ]
    assert not {"Invoice", "EventReservation"} & {record.type for record in records(rows)}


def test_the_spending_of_accounts_is_a_balance_and_none_of_its_days_is_to_come():
    rows = ["# Accounts", "k Total :: €2,589.30", "! Transactions"]
    rows += ["- Groceries :: -€68.00", ". Corner bank · 23 Mon 07:30", "- Toll :: -€40.00"]
    (found,) = records(rows)
    assert (found.type, found.amount("amount")) == ("Balance", (Decimal("2589.30"), "EUR"))
    assert occasions(page(rows), TAKEN) == []


def test_items_are_below_a_heading_or_below_the_sums():
    first, *rows = ["k Total :: €6.00", "k Date :: 20 Nov 2026", "k Card :: PayPal"]
    items = ["k 2 x Bread :: €4.00", "k Milk :: €2.00"]
    for screen in (["# Order details", "! Tallow Bakery", *items, first, *rows],
                   ["# Receipt", "! Tallow Bakery", first, *rows, *items]):  # fmt: skip
        (record,) = records(screen)
        assert [one["name"] for one in record.entries("items")] == ["Bread", "Milk"]


def test_a_value_behind_dots_or_below_its_label_at_the_right_is_read():
    rows = ["# Receipt", "! Tallow Bakery", ". Total ........ €6.00", ". Order number .... TB-4411"]
    (record,) = records(rows)
    assert (record.amount("total"), record.text("orderNumber")) == ((Decimal("6.00"), "EUR"), "TB-4411")

    texts = [("Receipt", 60, 150), ("Tallow Bakery", 60, 240), ("Date of purchase", 240, 420)]
    texts += [("Total", 240, 350), ("Order number", 240, 540)]
    values = [("€6.00", 840, 350), ("20 November 2026", 840, 466), ("TB-4411", 840, 540)]
    lines = [Line(text, 0.98, left, top, left + 18 * len(text), top + 36) for text, left, top in texts]
    lines += [Line(text, 0.98, right - 18 * len(text), top, right, top + 36) for text, right, top in values]
    found = judge(Page(1080, 2340, lines), analyser="judged", language="en", taken=TAKEN).records
    assert found[0].text("date") == "2026-11-20"


def test_a_transfer_in_a_message_has_its_amount_and_what_usually_happens_is_no_event():
    rows = ["# Nordbank", ". You sent €243.66 to Priya Raman on 13 November 2026.", ". Reference: Choir trip"]
    rows.append(". The bank transfer usually arrives in one day.")
    (found,) = records(rows)
    assert (found.type, found.amount("amount")) == ("MoneyTransfer", (Decimal("243.66"), "EUR"))
    assert found.text("beneficiary") == "Priya Raman"
    assert occasions(page(rows), TAKEN) == []


def test_a_value_ends_where_the_next_line_would_have_fitted():
    texts = [
        "Your appointment with Dr. Stone is confirmed and paid.",
        "When: Dec 8, 2026 at 13:15",
        "Where: Riverside Dental",
        "Please arrive ten minutes early.",
    ]
    lines = [
        Line(text, 0.98, 60, 200 + 52 * n, 60 + 18 * len(text), 236 + 52 * n) for n, text in enumerate(texts)
    ]
    found = judge(Page(1080, 2340, lines), analyser="judged", language="en", taken=TAKEN).records
    assert (found[0].type, found[0].text("location")) == ("Appointment", "Riverside Dental")


def test_the_day_of_a_purchase_goes_on_in_the_line_below():
    said = (
        "Thanks for your order at Harbour Deli! We charged",
        "$20.97 to your Visa on Thursday, 12",
        "Nov 2026, 19:55. Your order number is 1112388.",
    )
    lines = [
        Line(text, 0.98, 60, 300 + 44 * at, 60 + 18 * len(text), 334 + 44 * at)
        for at, text in enumerate(said)
    ]
    found = judge(Page(1080, 2340, lines), analyser="judged", language="en", taken=TAKEN)
    (record,) = found.records
    assert record.type == "Receipt"
    assert record.text("date") == "2026-11-12T19:55"


ROWS = ("# Xylo", "- Loop :: Never", "- Quality :: High", "- Captions :: Off")
WALLET = (
    "# Xylo",
    ". Total of all coins",
    "! 65,429.10 XYL",
    "- Umbra :: Open",
    "- Depot :: Open",
    "- Harbour :: Open",
)
# Who speaks is beyond doubt only for the vote: there are no times, and no field to type in.
SPOKEN = ("# Anna Meier", "- Shall we meet at the harbour", "- I would rather stay at home")


@pytest.mark.parametrize(
    ("rows", "types", "expected"),
    [
        (ROWS, {"SettingsPage": 0.3, "TaskList": 0.2, "other": 0.3, "webpage": 0.2}, ["SettingsPage"]),
        (ROWS, {"SettingsPage": 0.25, "TaskList": 0.05, "other": 0.45, "webpage": 0.25}, []),
        (ROWS, {"SettingsPage": 0.15, "TaskList": 0.1, "other": 0.2}, ["SettingsPage"]),
        (ROWS, {}, []),
        (WALLET, {"Balance": 0.6}, ["Balance"]),
        (WALLET, {"Conversation": 0.05, "Balance": 0.05, "finance": 0.9}, []),
        (SPOKEN, {"Conversation": 0.3, "other": 0.3}, ["Conversation"]),
        (SPOKEN[:2], {"Conversation": 0.9}, []),
    ],
)
def test_the_vote_chooses_which_record_of_a_whole_screen_is_made(rows, types, expected):
    whole = page(rows)
    seen = View(
        whole, Layout(whole), "", "", TAKEN, types=types and dict.fromkeys(recorder.SCREENS, 0.0) | types
    )

    assert [record.type for record in recorder.records(seen)] == expected


def test_an_amount_in_a_unit_that_is_no_currency_is_the_only_entry_of_what_is_above_it():
    whole = page(WALLET)
    (record,) = recorder.records(View(whole, Layout(whole), "", "", TAKEN, types={"Balance": 0.6}))

    assert record.text("name") == "Total of all coins"
    assert record.entries("entries") == [{"name": "Total of all coins", "amount": "65,429.10 XYL"}]


def test_a_map_is_known_by_who_drew_it_or_by_streets_in_any_direction():
    def found(*extra):
        places = [
            Line("Harbour Quay", 0.99, 300, 900, 700, 960),
            Line("Old Mill", 0.99, 500, 1500, 640, 1536),
        ]
        whole = Page(1080, 2340, [*places, *extra])
        view = View(whole, Layout(whole), "", "", TAKEN)
        return [(record.type, record.text("place")) for record in recorder.records(view)]

    streets = [Line(f"{name} Street", 0.98, 100 + 90 * at, 400 * at, 150 + 90 * at, 400 * at + 260)
               for at, name in enumerate(("Canal", "Grove", "Orchard"), 1)]  # fmt: skip
    drawn_by = Line("© OpenStreetMap contributors", 0.99, 600, 2280, 1060, 2310)
    assert found(*streets) == found(drawn_by) == [("Map", "Harbour Quay")]
    assert found(*streets[:2]) == []


def test_what_was_spent_in_a_month_is_no_receipt_where_the_vote_expects_a_balance():
    rows = ["# Spending in November", "k Groceries :: $212.40", "k Rent :: $900.00", "k Total :: $1,112.40"]
    whole = page(rows)
    view = View(whole, Layout(whole), "accounts", "", TAKEN, types={"Balance": 0.6})
    assert [record.type for record in recorder.records(view)] == ["Balance"]
