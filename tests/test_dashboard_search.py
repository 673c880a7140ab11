"""Operators and saved searches in the dashboard: completion in the search field, and the chips below it; by
keyboard, mouse and finger.
"""

import pytest
from playwright.sync_api import expect

from tests.support.browser import PHONE, Dashboard, barriers
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM

FINGERS = {"has_touch": True, "is_mobile": True}
APPS = ("Google Maps", "Mail", "微信")


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    """A service with a screenshot of each app, which no test changes."""
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("search"), llm) as dashboard:
        for number, app in enumerate(APPS):
            found = {"app_name": app, "summary": f"From {app}.", "visible_text": f"harbour {app}"}
            dashboard.findings.append(FINDINGS | found)
            dashboard.service.upload(draw(app), f"{number}.png", device_id="pixel", device_name="Pixel 9")
            dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def dashboard(shared):
    yield shared
    shared.begin_anew()
    for search in searches(shared):
        assert shared.service.call("DELETE", f"/api/searches/{search['id']}").ok


def searches(dashboard):
    return dashboard.service.call("GET", "/api/searches").json()["searches"]


def saved(dashboard, name, query):
    assert dashboard.service.call("POST", "/api/searches", json={"name": name, "query": query}).ok


def field(page):
    return page.get_by_role("combobox", name="Search")


def options(page):
    return page.get_by_role("listbox").get_by_role("option")


def labels(page):
    return page.locator(".completion-label").all_inner_texts()


def shown(page):
    return page.locator(".result .result-facts").all_inner_texts()


@pytest.mark.slow
def test_an_operator_and_its_value_are_completed_by_keyboard(dashboard):
    page = dashboard.open()
    page.keyboard.press("/")
    page.keyboard.type("ap")
    expect(options(page)).to_have_text(["From an appapp:"])
    page.keyboard.press("ArrowDown")
    expect(options(page).first).to_have_attribute("aria-selected", "true")
    assert field(page).get_attribute("aria-activedescendant") == options(page).first.get_attribute("id")
    page.keyboard.press("Enter")

    expect(field(page)).to_have_value("app:")
    expect(options(page)).to_have_count(3)
    page.keyboard.type("goo")
    expect(options(page)).to_have_text(["Google Maps1"])
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value('app:"Google Maps" ')
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(page.locator(".result")).to_have_count(1)
    assert shown(page)[0].startswith("Google Maps · ")

    page.keyboard.type("-app:m")
    expect(options(page).filter(has_text="Mail")).to_be_visible()
    page.keyboard.press("Escape")  # closes the list, and leaves the text
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value('app:"Google Maps" -app:m')
    page.keyboard.press("Escape")
    expect(field(page)).to_have_value("")
    expect(page.locator(".timeline .photo-card")).to_have_count(3)


@pytest.mark.slow
def test_a_click_into_the_field_offers_all_operators_and_a_click_takes_one(dashboard):
    page = dashboard.open()
    page.locator(".photo-card").first.wait_for()
    page.locator("#search").click()
    expect(options(page)).to_have_count(13)
    options(page).filter(has_text="device:").click()
    expect(options(page)).to_have_text(["Pixel 9"])
    expect(page.locator(".timeline .photo-card")).to_have_count(3)  # nothing is searched for without a value
    options(page).first.click()
    expect(field(page)).to_have_value('device:"Pixel 9" ')
    expect(field(page)).to_be_focused()
    expect(page.locator(".result")).to_have_count(3)
    expect(page.locator(".results-head")).to_contain_text("3 found")
    expect(page.get_by_role("group", name="Order")).to_have_count(0)  # by time already


@pytest.mark.slow
def test_enter_searches_for_the_text_where_no_completion_is_chosen(dashboard):
    page = dashboard.open()
    page.locator("#search").click()
    page.keyboard.type("harbour i")
    expect(options(page)).to_have_count(2)  # intent: and is:
    page.keyboard.press("Enter")
    expect(page.get_by_role("listbox")).to_be_hidden()
    expect(field(page)).to_have_value("harbour i")
    page.keyboard.press("Backspace")
    page.keyboard.type("has:date -app:mail")
    page.keyboard.press("Enter")
    expect(page.locator(".result")).to_have_count(2)


@pytest.mark.slow
def test_on_a_phone_a_tap_takes_a_completion_and_the_page_has_no_barriers(dashboard, axe):
    page = dashboard.open(size=PHONE, language="zh", theme="dark", **FINGERS)
    page.locator(".photo-card").first.wait_for()
    page.locator("#search").tap()
    expect(options(page)).to_have_count(13)
    assert barriers(page, axe) == []
    box = page.get_by_role("listbox").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    options(page).filter(has_text="app:").tap()
    options(page).filter(has_text="微信").tap()
    expect(page.locator("#search")).to_have_value("app:微信 ")
    expect(page.locator(".result")).to_have_count(1)


@pytest.mark.slow
def test_a_search_is_saved_opened_with_one_click_and_deleted_with_a_way_back(dashboard):
    page = dashboard.open()
    page.locator(".photo-card").first.wait_for()
    row = page.get_by_role("group", name="Saved searches")
    expect(row).to_be_hidden()
    page.locator("#search").fill("harbour -app:mail")
    page.keyboard.press("Enter")
    row.get_by_role("button", name="Save search").click()
    expect(page.get_by_label("Name")).to_have_value("harbour -app:mail")
    page.get_by_label("Name").fill("By the sea")
    page.keyboard.press("Enter")
    expect(row.get_by_role("button", name="By the sea", exact=True)).to_have_attribute("aria-pressed", "true")
    assert [(one["name"], one["query"]) for one in searches(dashboard)] == [
        ("By the sea", "harbour -app:mail")
    ]

    page.locator("#search").fill("")
    expect(page.locator(".timeline .photo-card")).to_have_count(3)
    row.get_by_role("button", name="By the sea").click()
    expect(field(page)).to_have_value("harbour -app:mail")
    expect(page.locator(".result")).to_have_count(2)

    row.get_by_role("button", name="Delete the saved search").click()
    expect(row.get_by_role("button", name="By the sea")).to_have_count(0)
    assert searches(dashboard) == []
    page.get_by_role("button", name="Undo").click()
    expect(row.get_by_role("button", name="By the sea", exact=True)).to_be_visible()
    assert len(searches(dashboard)) == 1


@pytest.mark.slow
def test_a_name_that_is_taken_is_refused_and_the_dialog_stays(dashboard):
    dashboard.tolerate("409")
    saved(dashboard, "Mine", "x")
    page = dashboard.open("#/library?q=harbour")
    page.get_by_role("button", name="Save search").click()
    page.get_by_label("Name").fill("mine")
    page.keyboard.press("Enter")
    expect(page.get_by_text("A search with this name is saved already")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_filters_are_saved_as_operators(dashboard):
    page = dashboard.open("#/library?app=Google+Maps&time=range&from=2020-01-01&to=2020-01-31")
    page.get_by_role("button", name="Save search").click()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert searches(dashboard)[0]["query"] == 'app:"Google Maps" -before:2020-01-01 -after:2020-01-31'


@pytest.mark.slow
def test_what_is_new_in_a_saved_search_is_counted_until_it_is_opened(dashboard, axe):
    saved(dashboard, "All mail", "app:mail")
    dashboard.findings.append(FINDINGS | {"visible_text": "A letter"})
    photo = dashboard.service.upload(draw("letter"), "letter.png", device_id="pixel")
    dashboard.service.wait_until_analysed()
    page = dashboard.open()
    chip = page.get_by_role("button", name="All mail, 1 new")
    expect(chip).to_be_visible()
    assert barriers(page, axe) == []
    chip.click()
    expect(page.locator(".result")).to_have_count(2)
    expect(page.get_by_role("button", name="All mail", exact=True)).to_be_visible()
    assert searches(dashboard)[0]["new"] == 0
    assert dashboard.service.call("DELETE", f"/api/photos/{photo['id']}").ok


@pytest.mark.slow
def test_a_screenshot_that_was_opened_is_not_unread_any_more(dashboard):
    page = dashboard.open("#/library?q=is:unread")
    expect(page.locator(".result")).to_have_count(3)
    with page.expect_response(lambda answer: answer.url.endswith("/opened") and answer.ok):
        page.locator(".result").first.click()
    page.reload()
    expect(page.get_by_role("dialog")).to_be_visible()
    found = dashboard.service.call("GET", "/api/search?q=is:unread").json()
    assert found["total"] == 2
