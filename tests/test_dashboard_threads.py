"""Threads in the dashboard: what is open in a view, the other screenshots of it in the viewer, and one row of
the agenda for a trip and day.
"""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from clock import local_time, to_epoch_ms, utc_now
from tests.support.browser import DESKTOP, PHONE, Dashboard
from tests.support.drawing import draw

pytestmark = pytest.mark.slow

TOMORROW = (local_time(utc_now()).date() + timedelta(days=1)).isoformat()
TRACKING = "00340434161094042557"


def fields(**values):
    return [{"name": name.rstrip("_"), "value": value} for name, value in values.items()]


ORDER = fields(seller="Harbor Books", total={"value": "23.80", "currency": "EUR"}, orderNumber="HB-20481-77")
FLIGHT = {"number": "NW482", "from_": "Hamburg", "to": "Lisbon", "departureTime": f"{TOMORROW}T07:10"}
# Name, text, days ago, type and fields of its record
SCREENS = (
    ("order", "Harbor Books\nThank you for your order\nHB-20481-77", 6, "Receipt", ORDER),
    (
        "sent",
        "Harbor Books\nHas been shipped",
        4,
        "ParcelDelivery",
        fields(trackingNumber=TRACKING, orderNumber="HB-20481-77", seller="Harbor Books"),
    ),
    (
        "today",
        "Parcel tracking\nOut for delivery",
        1,
        "ParcelDelivery",
        fields(carrier="DHL", trackingNumber=TRACKING),
    ),
    ("booking", f"Flight NW 482\ndeparts {TOMORROW} at 07:10", 9, "FlightReservation", fields(**FLIGHT)),
    (
        "pass",
        f"Boarding pass NW 482\nBoarding {TOMORROW} at 06:30\nDeparture {TOMORROW} at 07:10",
        0,
        "FlightReservation",
        fields(
            **FLIGHT,
            boardingTime=f"{TOMORROW}T06:30",
            arrivalTime=f"{TOMORROW}T09:55",
            gate="B22",
            seat="14A",
        ),
    ),
    (
        "bill",
        "City Water\nAmount due",
        2,
        "Invoice",
        fields(provider="City Water", totalPaymentDue={"value": "48.10", "currency": "EUR"}),
    ),
)


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("threads"), None) as dashboard:
        dashboard.ids = {}
        for name, text, days, _, _ in SCREENS:
            taken = str(to_epoch_ms(utc_now() - timedelta(days=days)))
            stored = dashboard.service.upload(draw(text), f"{name}.png", original_timestamp=taken)
            dashboard.ids[name] = stored["id"]
        dashboard.service.wait_until_analysed()
        for name, _, _, kind, found in SCREENS:
            own = {"records": [{"type": kind, "fields": found}]}
            dashboard.service.call("PATCH", f"/api/photos/{dashboard.ids[name]}", json=own)
        yield dashboard


@pytest.fixture
def dashboard(running):
    yield running
    running.begin_anew()


def card(page, title):
    return page.locator(".thread-card", has_text=title)


def shown(page, photo):
    expect(page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")).not_to_have_attribute(
        "inert", ""
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_what_is_open_is_a_list_of_cards_with_states(dashboard, size):
    page = dashboard.open("#/library", size=size)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Orders and trips").click()
    expect(page.get_by_role("heading", name="Orders and trips")).to_be_visible()
    expect(page.locator(".thread-card")).to_have_count(3)
    expect(card(page, "Order from Harbor Books")).to_contain_text("Out for delivery")
    expect(card(page, "Order from Harbor Books")).to_contain_text("on 3 screenshots")
    expect(card(page, "NW 482 Hamburg–Lisbon")).to_contain_text("Checked in")
    expect(card(page, "NW 482 Hamburg–Lisbon")).to_contain_text("Boarding")
    expect(card(page, "City Water €48.10")).to_contain_text("Due")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_card_opens_what_says_the_state_and_the_keyboard_goes_through_the_thread(dashboard):
    page = dashboard.open("#/threads")
    card(page, "Order from Harbor Books").get_by_role("link").focus()
    page.keyboard.press("Enter")
    shown(page, dashboard.ids["today"])
    page.keyboard.press("ArrowLeft")
    shown(page, dashboard.ids["sent"])
    page.keyboard.press("Escape")
    expect(card(page, "Order from Harbor Books").get_by_role("link")).to_be_focused()


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_viewer_has_the_others_as_a_strip(dashboard, size):
    page = dashboard.open(f"#/photo/{dashboard.ids['order']}", size=size)
    strip = page.get_by_role("group", name="Screenshots of this order: 3")
    expect(strip).to_contain_text("Out for delivery")
    expect(strip.locator(".stack-member")).to_have_count(3)
    expect(strip.locator("[aria-current]")).to_have_attribute("title", "Picture 1 of 3")
    strip.get_by_role("button", name="Picture 3 of 3").click()
    shown(page, dashboard.ids["today"])
    expect(strip.locator("[aria-current]")).to_have_attribute("title", "Picture 3 of 3")


def test_a_screenshot_is_taken_out_and_put_back(dashboard):
    page = dashboard.open(f"#/photo/{dashboard.ids['today']}")
    page.get_by_role("button", name="Not part of this order").click()
    expect(page.get_by_text("Taken out. It stays out.")).to_be_visible()
    expect(page.locator(".viewer-thread")).to_have_count(0)
    found = dashboard.service.get("/api/threads")["threads"]
    assert sorted(thread["count"] for thread in found) == [1, 1, 2, 2]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("group", name="Screenshots of this order: 3")).to_be_visible()


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_trip_is_one_row_of_the_agenda_with_its_times(dashboard, size):
    page = dashboard.open("#/agenda", size=size)
    row = page.locator(".agenda-row", has_text="NW 482 Hamburg–Lisbon")
    expect(row).to_have_count(1)
    expect(row.locator(".agenda-times li")).to_have_text(["06:30 Boarding", "07:10 Departs", "09:55 Arrives"])
    row.get_by_role("button", name="Dismiss: NW 482 Hamburg–Lisbon").click()
    expect(row).to_have_count(0)
    assert not [one for one in dashboard.service.get("/api/agenda")["items"] if one["thread"]]
    page.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
