"""The agenda in the dashboard: what is near on the home view, all of it in a view, and its place on
the picture.
"""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from clock import local_time, to_epoch_ms, utc_now
from tests.support.browser import DESKTOP, PHONE, Dashboard
from tests.support.drawing import draw

pytestmark = pytest.mark.slow

TODAY = local_time(utc_now()).date()


def day(days):
    return (TODAY + timedelta(days=days)).isoformat()


FLIGHT = f"Flight CA1831 to Shanghai\ndeparts {day(1)} at 14:30"
BILL = f"Harbor Energy\nYour bill is due {day(0)}"
PARCEL = f"Corner shop\nPick up until {day(20)}"
OLD = f"Library\nAppointment {day(-40)} at 09:15"
CARD = f"Harbor Bank\nCard number 4532 0151 1283 0366\nYour bill is due {day(2)}"


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("agenda"), None) as dashboard:
        dashboard.ids = {}
        for name, text in (
            ("flight", FLIGHT),
            ("bill", BILL),
            ("parcel", PARCEL),
            ("old", OLD),
            ("card", CARD),
        ):
            taken = utc_now() - timedelta(days=45 if name == "old" else 0)
            stored = dashboard.service.upload(
                draw(text), f"{name}.png", original_timestamp=str(to_epoch_ms(taken))
            )
            dashboard.ids[name] = stored["id"]
        dashboard.service.wait_until_analysed()
        found = dashboard.service.get("/api/agenda")["items"]
        assert sorted(item["photo_id"] for item in found) == sorted(dashboard.ids.values())
        yield dashboard


@pytest.fixture
def dashboard(running):
    yield running
    running.begin_anew()
    for item in running.service.get("/api/agenda", dismissed="true")["items"]:
        running.service.call("DELETE", f"/api/agenda/{item['id']}/dismiss")


def rows(page):
    return page.locator(".agenda-row")


def row(page, dashboard, name):
    return page.locator(f".agenda-row[data-of='{dashboard.ids[name]}']")


def shown(page, photo):
    expect(page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")).not_to_have_attribute(
        "inert", ""
    )


def test_no_view_is_wider_than_its_phone(dashboard):
    page = dashboard.open("#/library", size=PHONE, is_mobile=True, has_touch=True)
    expect(page.locator(".library-strip .coming-card").first).to_be_visible()
    wide = {"library": page.evaluate("innerWidth")}
    for address in (
        "library?q=bill",
        "agenda",
        "records/bills",
        "notes",
        "chat",
        "duplicates",
        "trash",
        "settings",
        "settings/devices",
        "settings/storage",
    ):
        page.goto(f"{dashboard.service.url}/#/{address}")
        page.reload()
        expect(page.locator("main .view")).to_be_visible()
        page.wait_for_load_state("networkidle")
        wide[address] = page.evaluate("innerWidth")
    assert wide == dict.fromkeys(wide, PHONE["width"])


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_home_says_what_is_near_and_opens_its_picture(dashboard, size):
    page = dashboard.open("#/library", size=size)
    coming = page.get_by_role("region", name="Coming up")
    expect(coming.get_by_role("listitem")).to_have_count(4)
    expect(coming.get_by_role("listitem").first).to_contain_text("Today · Deadline")
    expect(coming).to_contain_text("Tomorrow, 14:30 · Departure")
    expect(coming).to_contain_text("Private screenshot")
    assert "Card number" not in page.content()
    coming.get_by_role("link", name=re.compile("Departure")).click()
    shown(page, dashboard.ids["flight"])
    page.keyboard.press("Escape")
    coming.get_by_role("link", name="Show all").click()
    expect(page.get_by_role("heading", name="Agenda")).to_be_visible()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_view_has_all_by_day_and_what_is_past_apart(dashboard, size):
    page = dashboard.open("#/agenda", size=size)
    expect(rows(page)).to_have_count(4)
    headings = page.locator(".agenda-section h2").evaluate_all("all => all.map((one) => one.textContent)")
    assert headings[:2] == ["Today", "Tomorrow"]
    assert headings[-1] == "Later"
    page.get_by_role("link", name="Past").click()
    expect(rows(page)).to_have_count(1)
    moment = datetime.fromisoformat(f"{day(-40)}T09:15")
    expect(page.locator(".agenda-section h2")).to_contain_text(f"{moment:%B}")
    expect(rows(page)).to_contain_text("09:15")


def test_what_is_dismissed_goes_by_mouse_or_key_and_comes_back_by_undo(dashboard):
    page = dashboard.open("#/agenda")
    row(page, dashboard, "flight").get_by_role("button", name=re.compile("^Dismiss")).click()
    expect(rows(page)).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(rows(page)).to_have_count(4)

    row(page, dashboard, "bill").locator("a").focus()
    page.keyboard.press("Delete")
    expect(rows(page)).to_have_count(3)
    expect(page.locator(".agenda-row a").first).to_be_focused()
    page.reload()
    expect(rows(page)).to_have_count(3)


def test_a_row_opens_its_picture_with_the_others_beside_it_and_gets_the_focus_back(dashboard):
    page = dashboard.open("#/agenda")
    row(page, dashboard, "bill").locator("a").focus()
    page.keyboard.press("Enter")
    shown(page, dashboard.ids["bill"])
    expect(page.locator(".viewer-under")).to_contain_text("1 of 4")
    page.keyboard.press("ArrowRight")
    shown(page, dashboard.ids["flight"])
    page.keyboard.press("Escape")
    expect(row(page, dashboard, "flight").locator("a")).to_be_focused()
    expect(page).to_have_url(re.compile("#/agenda$"))


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_picture_has_its_line_marked_and_the_panel_dismisses_and_brings_back(dashboard, size):
    page = dashboard.open(f"#/photo/{dashboard.ids['flight']}", size=size)
    shown(page, dashboard.ids["flight"])
    entry = page.locator(".details-agenda")
    expect(entry).to_contain_text("Tomorrow, 14:30")
    mark = page.locator(".viewer-slide:not([inert]) .dates .viewer-mark")
    expect(mark).to_have_count(1)
    if size is PHONE:
        page.get_by_role("button", name="Details", exact=True).click()
    entry.get_by_role("button", name=re.compile("^Dismiss")).click()
    expect(mark).to_have_count(0)
    expect(entry).to_contain_text("Dismissed")
    entry.get_by_role("button", name=re.compile("^Bring back")).click()
    expect(mark).to_have_count(1)


def test_it_speaks_chinese_and_says_when_there_is_nothing(dashboard):
    page = dashboard.open("#/agenda", language="zh")
    expect(page.get_by_role("heading", name="日程")).to_be_visible()
    expect(page.locator(".agenda-section h2").first).to_have_text("今天")
    for item in dashboard.service.get("/api/agenda")["items"]:
        dashboard.service.call("POST", f"/api/agenda/{item['id']}/dismiss")
    page.reload()
    expect(page.get_by_role("heading", name="近期没有安排")).to_be_visible()
    page.goto(f"{dashboard.service.url}/#/library")
    expect(page.locator(".photo-card")).to_have_count(5)
    expect(page.locator(".coming")).to_have_count(0)
