"""The frame of the dashboard in a browser: signing in, finding one's way, languages, themes, sizes, and who
uses no mouse.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, KEY, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM

REFUSED = r"Failed to load resource: the server responded with a status of 401"
VIEWS = ("#/library", "#/chat", "#/notes", "#/notes/memories", "#/settings")
MOVED = {
    "#/home": "#/library",
    "#/photos?q=dentist&device=phone": "#/library?q=dentist&device=phone",
    "#/memories": "#/notes/memories",
    "#/photos/1?category=chat": "#/photo/1?category=chat",
}


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("shell"), llm) as dashboard:
        dashboard.service.upload(
            draw("Dentist on Friday"), "a-very-long-file-name-that-goes-on-and-on-without-any-space-in-it.png"
        )
        dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def furnished(shared):
    """One service with one screenshot in it, for the tests that change nothing there."""
    yield shared
    shared.begin_anew()


def sign_in(page, key):
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Sign in").click()


def library(page):
    return page.get_by_role("heading", name="Library", level=1)


def test_the_key_opens_the_page_and_is_kept_unless_it_shall_be_forgotten(furnished):
    page = furnished.open(signed_in=False)
    page.get_by_label("Keep me signed in").uncheck()
    sign_in(page, KEY)
    expect(library(page)).to_be_visible()
    assert KEY not in page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    page.reload()
    sign_in(page, KEY)
    expect(library(page)).to_be_visible()
    page.reload()
    expect(library(page)).to_be_visible()


def test_a_wrong_key_and_an_absent_server_are_told_apart(dashboard):
    dashboard.tolerate(REFUSED)
    dashboard.tolerate("ERR_CONNECTION_REFUSED")
    page = dashboard.open(signed_in=False)
    sign_in(page, "not the key, ключ")
    expect(page.get_by_role("alert")).to_contain_text("Wrong key")
    dashboard.service.kill()
    sign_in(page, KEY)
    expect(page.get_by_role("alert")).to_contain_text("Can’t reach your server")


@pytest.mark.slow
def test_a_stopped_service_is_told_of_once_and_tried_again_until_it_is_there(furnished):
    furnished.tolerate("ERR_FAILED")
    page = furnished.open("#/notes")
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    page.route("**/api/**", lambda route: route.abort())
    page.evaluate("location.hash = '#/chat'")
    away = page.get_by_role("heading", name="Can’t reach your server. Trying again…")
    expect(away).to_have_count(1)
    expect(page.get_by_text("Something went wrong")).to_have_count(0)
    page.unroute("**/api/**")
    expect(away).to_have_count(0)
    expect(page.locator(".unreachable")).to_have_count(0)


@pytest.mark.slow
def test_the_library_keeps_what_it_shows_while_the_server_is_away(furnished):
    furnished.tolerate("ERR_FAILED")
    page = furnished.open("#/library")
    expect(page.locator(".photo-card").first).to_be_visible()
    page.route("**/api/**", lambda route: route.abort())
    page.locator("#search").fill("dinner")
    away = page.get_by_role("heading", name="Can’t reach your server. Trying again…")
    expect(away).to_have_count(1)
    expect(page.locator(".photo-card").first).to_be_visible()
    page.unroute("**/api/**")
    expect(away).to_have_count(0)
    expect(page.locator(".view-library .unreachable, .photo-card")).to_have_count(0)


def test_a_key_that_is_no_longer_accepted_leads_to_the_sign_in_and_is_forgotten(furnished):
    furnished.tolerate(REFUSED)
    page = furnished.open()
    expect(library(page)).to_be_visible()
    page.route("**/api/**", lambda route: route.fulfill(status=401, json={"detail": "no"}))
    page.evaluate("location.hash = '#/notes'")
    expect(page.get_by_role("alert")).to_contain_text("no longer valid")
    assert page.evaluate("localStorage.getItem('snaplore.key')") is None


@pytest.mark.slow
def test_in_dev_mode_without_a_key_nobody_is_asked_for_one(chromium, tmp_path):
    with Dashboard(chromium, tmp_path, None, api_key="") as dashboard:
        expect(library(dashboard.open(signed_in=False))).to_be_visible()


@pytest.mark.slow
def test_the_language_follows_the_browser(furnished):
    for language, name, title in (("zh", "zh-Hans", "图库"), ("en", "en", "Library")):
        page = furnished.open(language=language)
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.lang") == name
        for address in VIEWS:
            page.evaluate("(address) => (location.hash = address)", address)
            expect(page.locator("main h1").first).to_be_visible()
            settled(page, "!document.querySelector('[aria-busy=true]')")
            words = page.locator("body").inner_text()
            # A text that is missing shows its key.
            assert not re.findall(
                r"\b(?:shell|library|filter|news|tile|upload|chat|notes|memories|settings|first)\.[a-z]\w+",
                words,
            )
            assert (len(re.findall(r"[\u4e00-\u9fff]", words)) > 20) == (language == "zh"), words


@pytest.mark.slow
def test_light_and_dark_follow_the_system(furnished):
    def brightness(page):
        expect(library(page)).to_be_visible()
        red, green, blue = page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
        )
        return (red + green + blue) / 3

    assert brightness(furnished.open(theme="light")) > 200
    assert brightness(furnished.open(theme="dark")) < 60


@pytest.mark.slow
def test_on_a_phone_the_navigation_is_at_the_bottom_and_nothing_is_cut_off(furnished):
    page = furnished.open(size={"width": 360, "height": 740})
    for address in VIEWS:
        page.evaluate("(address) => (location.hash = address)", address)
        expect(page.locator("main h1").first).to_be_visible()
        settled(page, "!document.querySelector('[aria-busy=true]')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
    bar = page.get_by_role("navigation", name="Main navigation").bounding_box()
    assert bar["y"] + bar["height"] == pytest.approx(740, abs=2)
    assert bar["width"] == 360
    entries = page.locator(".nav > .nav-link")
    assert entries.count() == 5
    assert all(link.bounding_box()["height"] >= 44 for link in entries.all())
    size = "parseFloat(getComputedStyle(document.querySelector('.nav-text')).fontSize)"
    assert page.evaluate(size) >= 12


@pytest.mark.slow
def test_the_keyboard_reaches_everything_in_order(furnished):
    page = furnished.open("#/library")
    expect(page.locator(".photo-card")).to_have_count(1)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Add screenshots")).to_be_focused()
    page.locator(".photo-card").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".photo-card")).to_be_focused()
    page.evaluate("location.hash = '#/notes'")
    expect(page.locator("main")).to_be_focused()
    assert page.locator(".nav-link[aria-current=page]").inner_text() == "Notes"


def test_an_unknown_address_says_so(furnished):
    page = furnished.open("#/nowhere/at%all")
    expect(page.get_by_text("Page not found")).to_be_visible()
    page.get_by_role("link", name="Go to the library").click()
    expect(library(page)).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_addresses_of_earlier_versions_lead_to_where_their_contents_are(furnished, old, new):
    page = furnished.open(old)
    settled(page, "(wanted) => location.hash === wanted", new)
    expect(page.locator("main .view")).not_to_be_empty()
    expect(page.get_by_text("Page not found")).to_have_count(0)


def test_statistics_are_in_the_settings(furnished):
    page = furnished.open("#/settings/statistics")
    expect(page.get_by_role("heading", name="By type")).to_be_visible()
    page.get_by_role("link", name="Notification").click()
    expect(page.get_by_role("button", name="Remove the filter Type: Notification")).to_be_visible()
    expect(page.locator(".photo-card")).to_have_count(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["light, desktop", "dark, phone"]
)
def test_nothing_hinders_people_seriously(dashboard, axe, theme, size):
    dashboard.service.upload(draw("Dentist on Friday"), "dentist.png")
    dashboard.service.wait_until_analysed()
    dashboard.llm.queue_is_for = lambda request: bool(request.images)
    dashboard.llm.fail(404, "There is no such model.")
    dashboard.service.upload(draw("Refused"), "refused.png")
    dashboard.service.wait_until_analysed()
    signin = dashboard.open(signed_in=False, theme=theme, size=size)
    expect(signin.get_by_role("button", name="Sign in")).to_be_visible()
    assert barriers(signin, axe) == []
    page = dashboard.open(theme=theme, size=size)
    shown = {
        "#/library": ".photo-card",
        "#/settings/statistics": ".bar",
    }
    for address, element in shown.items():
        page.evaluate("(address) => (location.hash = address)", address)
        expect(page.locator(element).first).to_be_visible()
        assert barriers(page, axe) == [], address
