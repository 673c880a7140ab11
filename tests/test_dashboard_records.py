"""The tables of the dashboard: the links to them above the library, their rows, sums, periods and files."""

import csv
import io
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from clock import local_time, utc_now
from tests.support.browser import DESKTOP, PHONE, Dashboard, barriers
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM

pytestmark = pytest.mark.slow

TODAY = local_time(utc_now()).date()
LAST_YEAR = f"{TODAY.year - 1}-03-02"


def euros(value, currency="EUR"):
    return {"value": value, "currency": currency}


def record(kind, **fields):
    """A record with the words of its fields beside their values."""
    shown = [{"name": name, "value": value, "text": text} for name, (value, text) in fields.items()]
    return {"type": kind, "fields": shown}


PICTURES = {
    "market": (
        "North Market\nTea 3.00\nTotal EUR 3.00",
        record(
            "Receipt",
            seller=("North Market", "North Market"),
            total=(euros("3.00"), "Total EUR 3.00"),
            date=(f"{TODAY}", ""),
            items=([{"name": "Tea", "price": "€3.00"}], ""),
        ),
    ),
    "cafe": (
        "Harbour Cafe\nCake 4.00\nTotal EUR 9.50",
        record(
            "Receipt",
            seller=("Harbour Cafe", "Harbour Cafe"),
            total=(euros("9.50"), "Total EUR 9.50"),
            date=(f"{TODAY - timedelta(1)}", ""),
            items=([{"name": "Cake", "price": "€4.00"}], ""),
        ),
    ),
    "books": (
        "Amber Books\nTotal CHF 20.00",
        record(
            "Receipt",
            seller=("Amber Books", "Amber Books"),
            total=(euros("20.00", "CHF"), "Total CHF 20.00"),
            date=(LAST_YEAR, ""),
        ),
    ),
    "card": (
        "Harbor Bank\nCard number 4532 0151 1283 0366\nTotal EUR 24.00",
        record(
            "Receipt",
            seller=("Starlight Cinema", ""),
            total=(euros("24.00"), "Total EUR 24.00"),
            date=(LAST_YEAR, ""),
        ),
    ),
    "flight": (
        "NW 482\nHamburg to Lisbon",
        record(
            "FlightReservation",
            number=("NW482", "NW 482"),
            departureTime=(f"{TODAY + timedelta(9)}T07:10", ""),
            **{"from": ("Hamburg", ""), "to": ("Lisbon", "")},
        ),
    ),
}


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("records"), None) as dashboard:
        dashboard.ids = {
            name: dashboard.service.upload(draw(text), f"{name}.png")["id"]
            for name, (text, _) in PICTURES.items()
        }
        dashboard.service.wait_until_analysed()
        for name, (_, said) in PICTURES.items():
            path = f"/api/photos/{dashboard.ids[name]}"
            assert dashboard.service.call("PATCH", path, json={"records": [said]}).status_code == 200
        yield dashboard


@pytest.fixture
def dashboard(running):
    yield running
    running.begin_anew()


def sellers(page):
    return page.locator(".records-open").all_text_contents()


def opened(page, photo):
    slide = page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")
    expect(slide).not_to_have_attribute("inert", "")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_library_leads_to_the_tables_that_have_something_in_them(dashboard, axe, size):
    page = dashboard.open("#/library", size=size)
    shelves = page.get_by_role("navigation", name="Tables").get_by_role("link")
    expect(shelves).to_have_count(2)
    expect(shelves.first).to_have_text(re.compile("Receipts.*4"))
    shelves.first.click()
    expect(page.get_by_role("heading", name="Receipts")).to_be_visible()
    expect(page.locator(".records-open")).to_have_count(4)
    assert barriers(page, axe) == []
    page.get_by_role("link", name="Trips").click()
    expect(page.locator(".view-records")).to_contain_text("Hamburg → Lisbon")
    expect(page.locator(".view-records")).to_contain_text("NW482")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_table_has_sums_by_currency_for_its_period_and_covers_what_is_sensitive(dashboard, size):
    page = dashboard.open("#/records/receipts", size=size)
    sums = page.get_by_role("list", name="Sums").get_by_role("listitem")
    expect(sums).to_have_count(2)
    expect(sums.first).to_have_text(re.compile(r"€36\.50.*3 entries"))
    expect(sums.last).to_have_text(re.compile(r"CHF.20\.00.*1 entry"))
    expect(page.locator(".view-records")).to_contain_text("Private screenshot")
    assert "Starlight" not in page.content()
    doubtful = page.locator("[data-record]").filter(has_text="check")
    expect(doubtful).to_have_count(1)
    expect(doubtful).to_contain_text("Harbour Cafe")

    page.get_by_label("Period").select_option("Last year")
    expect(page.locator(".records-open")).to_have_count(2)
    expect(sums.first).to_have_text(re.compile(r"20\.00|24\.00"))
    page.reload()
    expect(page.locator(".records-open")).to_have_count(2)
    page.get_by_label("Period").select_option("Between dates…")
    page.get_by_label("From").fill(f"{TODAY - timedelta(1)}")
    page.get_by_label("Until").fill(f"{TODAY}")
    expect(page.locator(".records-open")).to_have_count(2)


def test_a_table_is_sorted_by_its_headings(dashboard):
    page = dashboard.open("#/records/receipts")
    expect(page.get_by_role("columnheader", name="Date")).to_have_attribute("aria-sort", "descending")
    assert sellers(page)[:2] == ["North Market", "Harbour Cafe"]
    total = page.get_by_role("button", name="Total")
    total.click()
    expect(page.get_by_role("columnheader", name="Total")).to_have_attribute("aria-sort", "descending")
    assert sellers(page) == ["Private screenshot", "Amber Books", "Harbour Cafe", "North Market"]
    expect(total).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="Total")).to_have_attribute("aria-sort", "ascending")
    assert sellers(page)[0] == "North Market"


def test_a_table_of_more_than_are_listed_is_sorted_by_the_service(dashboard):
    page = dashboard.open("#/settings")
    asked = []

    def answer(route):
        query = parse_qs(urlsplit(route.request.url).query)
        asked.append(query["sort"][0])
        found = route.fetch().json()
        route.fulfill(json=found | {"total": 5_000})

    page.route("**/api/records?*", answer)
    page.evaluate("location.hash = '#/records/receipts'")
    expect(page.get_by_text("The latest 4 are listed here.")).to_be_visible()
    page.get_by_role("button", name="Total").click()
    expect(page.get_by_text("The first 4 in this order are listed here.")).to_be_visible()
    assert set(asked) == {"latest", "highest"}
    expect(page.get_by_role("button", name="Total")).to_be_focused()
    page.get_by_role("button", name="Paid with").click()
    expect(page.get_by_text("The latest 4 are listed here.")).to_be_visible()


def test_cards_are_sorted_by_a_choice(dashboard):
    page = dashboard.open("#/records/receipts", size=PHONE, has_touch=True)
    expect(page.get_by_role("table")).to_have_count(0)
    page.get_by_label("Sort by").select_option("Seller")
    assert sellers(page)[0] == "Amber Books"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_row_opens_its_screenshot_with_its_lines_marked_and_gets_the_focus_back(dashboard, size):
    page = dashboard.open("#/records/receipts", size=size)
    page.get_by_role("link", name="North Market").focus()
    if size is DESKTOP:
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("link", name="Harbour Cafe")).to_be_focused()
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    opened(page, dashboard.ids["market"])
    marks = page.locator(".viewer-slide:not([inert]) .viewer-marks:not(.dates) .viewer-mark")
    expect(marks).to_have_count(2)
    page.keyboard.press("ArrowRight")
    opened(page, dashboard.ids["cafe"])
    expect(marks).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Harbour Cafe")).to_be_focused()


def test_a_table_is_copied_and_saved_as_files(dashboard):
    page = dashboard.open(
        "#/records/receipts?time=lastYear", permissions=["clipboard-read", "clipboard-write"]
    )
    expect(page.locator(".records-open")).to_have_count(2)
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Copy the table").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0] == "Date\tSeller\tItems\tPaid with\tTotal"
    assert len(copied) == 2  # what is covered is left out
    assert "Amber Books" in copied[1]

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="CSV").click()
    assert saved.value.suggested_filename == "receipts.csv"
    rows = list(csv.DictReader(io.StringIO(saved.value.path().read_text("utf-8-sig"))))
    assert {row["seller"] for row in rows} == {"Amber Books", "Starlight Cinema"}
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="JSON-LD").click()
    assert "schema.org" in saved.value.path().read_text()


def test_an_empty_table_says_so_and_a_chinese_page_is_chinese(dashboard):
    page = dashboard.open("#/records/receipts?time=range&from=2001-01-01&to=2001-01-02")
    expect(page.get_by_text("There is nothing in this period.")).to_be_visible()
    page.get_by_role("button", name="Show all time").click()
    expect(page.locator(".records-open")).to_have_count(4)
    page = dashboard.open("#/records", language="zh")
    expect(page.get_by_role("heading", name="收据")).to_be_visible()
    expect(page.get_by_role("columnheader", name="商家")).to_be_visible()


@pytest.fixture
def bakery(chromium, tmp_path):
    """Three receipts of one seller, whose name was misread alike."""
    said = record("Receipt", seller=("Harbor Bakrey", "Harbor Bakrey"), total=(euros("3.00"), "EUR 3.00"))
    said["fields"] = [{**field, "lines": []} for field in said["fields"]]
    with FakeLLM() as llm, Dashboard(chromium, tmp_path, llm, read_locally="true") as dashboard:
        dashboard.ids = []
        for number in range(3):
            dashboard.findings.append({**FINDINGS, "title": f"Bread {number}", "records": [said]})
            picture = draw(f"Harbor Bakrey\nBread {number}\nTotal EUR 3.00")
            dashboard.ids.append(dashboard.service.upload(picture, f"{number}.png")["id"])
            dashboard.service.wait_until_analysed()
        yield dashboard


def sellers_of(dashboard):
    found = {one["photo_id"]: one for one in dashboard.service.get("/api/records")["records"]}
    return [found[photo]["fields"][0]["value"] for photo in dashboard.ids]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_value_is_corrected_in_place_and_the_same_mistake_of_others_is_offered(bakery, axe, size):
    first = bakery.ids[0]
    page = bakery.open(f"#/photo/{first}", size=size)
    opened(page, first)
    if size == PHONE:
        page.get_by_role("button", name="Details", exact=True).click()
    details = page.get_by_role("region", name="Details")
    pencil = details.get_by_role("button", name="Edit: Seller")
    pencil.click()
    field = details.get_by_role("textbox", name="Seller")
    expect(field).to_be_focused()
    field.press("Escape")
    expect(pencil).to_be_focused()

    pencil.click()
    field.fill("Harbor Bakery")
    field.press("Enter")
    offer = details.locator(".record-proposal")
    expect(offer).to_contain_text("2 other screenshots of Harbor Bakery have the same mistake (Seller)")
    assert sellers_of(bakery) == ["Harbor Bakery", "Harbor Bakrey", "Harbor Bakrey"]
    assert barriers(page, axe) == []
    offer.get_by_role("button", name="Correct").click()
    expect(offer).to_have_count(0)
    assert sellers_of(bakery) == ["Harbor Bakery"] * 3

    details.get_by_role("button", name="Edit: Total").click()
    total = details.get_by_role("textbox", name="Total")
    total.fill("about three")
    total.press("Enter")
    expect(details.get_by_role("alert")).to_contain_text("23.80")
    total.fill("4,50")
    total.press("Enter")
    expect(details).to_contain_text("€4.50")

    details.get_by_role("button", name="Back to what was read").click()
    expect(details.locator(".record-own")).to_have_count(0)
    assert sellers_of(bakery) == ["Harbor Bakrey", "Harbor Bakery", "Harbor Bakery"]


@pytest.mark.parametrize(
    ("size", "language", "edit", "seller", "total", "back"),
    [
        (DESKTOP, "en", "Edit: ", "Seller", "Total", "Correct"),
        (PHONE, "zh", "编辑：", "商家", "合计", "更正"),
    ],
    ids=["desktop by keyboard", "phone by touch"],
)
def test_a_value_is_corrected_in_the_table(bakery, axe, size, language, edit, seller, total, back):
    """At a desk by keys alone, on a phone by taps, each in one of the languages."""
    page = bakery.open("#/records/receipts", size=size, language=language, has_touch=size is PHONE)
    row = page.locator(f"[data-record='{record_of(bakery, bakery.ids[2])}']")

    def use(target):
        if size is PHONE:
            target.tap()
        else:
            target.focus()
            page.keyboard.press("Enter")

    pencil = row.get_by_role("button", name=f"{edit}Harbor Bakrey")
    use(pencil)
    panel = page.locator(".records-panel")
    expect(panel.locator(".own-pencil").first).to_be_focused()
    use(panel.get_by_role("button", name=f"{edit}{seller}"))
    field = panel.get_by_role("textbox", name=seller)
    expect(field).to_be_focused()
    field.fill("Harbor Bakery")
    page.keyboard.press("Enter")
    expect(row.locator(".records-open")).to_have_text("Harbor Bakery")
    expect(panel.get_by_role("button", name=f"{edit}{seller}")).to_be_focused()
    assert sellers_of(bakery) == ["Harbor Bakrey", "Harbor Bakrey", "Harbor Bakery"]
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    use(panel.get_by_role("button", name=f"{edit}{total}"))
    panel.get_by_role("textbox", name=total).fill("4,50")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("4.50")
    use(panel.locator(".record-proposal").get_by_role("button", name=back))
    expect(page.locator(".records-open", has_text="Harbor Bakery")).to_have_count(3)
    assert sellers_of(bakery) == ["Harbor Bakery"] * 3

    if size is PHONE:
        use(row.get_by_role("button", name=f"{edit}Harbor Bakery"))
    else:
        panel.locator(".own-pencil").first.focus()
        page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(row.get_by_role("button", name=f"{edit}Harbor Bakery")).to_be_focused()


def record_of(dashboard, photo):
    found = {one["photo_id"]: one["id"] for one in dashboard.service.get("/api/records")["records"]}
    return found[photo]
