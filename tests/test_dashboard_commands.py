"""Finding everything from the keyboard: the command field, the list of keys, and what a search says of near
misses; and the agenda's place in the navigation.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import PHONE
from tests.support.drawing import draw


def commands(page):
    page.keyboard.press("Control+k")
    return page.get_by_role("dialog", name="Search, go to, do")


def test_one_field_searches_goes_to_views_and_does(dashboard):
    page = dashboard.open("#/notes")
    expect(page.get_by_role("heading", name="Notes", exact=True)).to_be_visible()
    field = commands(page)
    expect(field.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("age")
    expect(field.get_by_role("option").first).to_have_text("AgendaGo to")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/agenda$"))

    commands(page)
    page.keyboard.type("boarding pass")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/library\?q=boarding\+pass$"))
    expect(page.locator("#search")).to_have_value("boarding pass")

    field = commands(page)
    page.keyboard.type("settings dev")
    expect(field.get_by_role("option").first).to_have_text("DevicesSettings")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/settings/devices$"))
    # A view that begins to show closes what is open over the page.
    expect(page.get_by_role("heading", name="Devices").first).to_be_visible()

    commands(page)
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    commands(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_question_mark_lists_the_keys_and_is_a_sign_in_a_field(dashboard):
    page = dashboard.open("#/library")
    page.locator("#search").fill("")
    page.locator("#search").press("?")
    expect(page.locator("#search")).to_have_value("?")
    page.locator("#search").fill("")
    page.locator("#search").blur()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("Search, go to, do")
    expect(keys).to_contain_text("Fit to the screen")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_agenda_is_in_the_navigation(dashboard, language):
    page = dashboard.open("#/library", language=language, size=PHONE)
    name = {"en": "Agenda", "zh": "日程"}[language]
    page.locator("nav.nav").get_by_role("link", name=name).click()
    expect(page).to_have_url(re.compile("#/agenda$"))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_the_search_field_offers_either_of_two_words(dashboard):
    dashboard.service.upload(draw("one"))
    page = dashboard.open("#/library")
    page.locator("#search").fill("or")
    option = page.get_by_role("option", name="OR")
    expect(option).to_contain_text("One word or another")
    option.click()
    expect(page.locator("#search")).to_have_value("OR ")
