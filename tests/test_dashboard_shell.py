"""The frame of the dashboard in a browser: signing in, finding one's way, languages, themes, sizes, and what people cannot see or click."""

from playwright.sync_api import expect

from tests.browser import KEY


def test_the_key_opens_the_page_and_is_forgotten_unless_it_shall_be_kept(dashboard):
    page = dashboard.open(signed_in=False)
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    assert page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])").count(KEY) == 0
    page.reload()
    page.get_by_label("Key").fill(KEY)
    page.get_by_label("Keep me signed in").check()
    page.get_by_label("Key").press("Enter")
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
