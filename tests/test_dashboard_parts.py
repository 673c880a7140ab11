"""The later part of the dashboard in a browser: fetched when it is first needed or the page is idle, run
under the page's policy, kept for offline, and never half there.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import KEY, Dashboard, settled

PARTS = re.compile(r"/parts/.*\.js$")


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("parts"), None) as dashboard:
        yield dashboard


@pytest.fixture
def shared(running):
    yield running
    running.begin_anew()


def opened(shared, route, address="#/settings", *, keep=True):
    """A page on which requests for the later part are answered by `route`."""
    page = shared.open("api/health", signed_in=keep)
    page.route(PARTS, route)
    page.goto(f"{shared.service.url}/{address}")
    return page


def general(page):
    return page.get_by_role("heading", name="General")


def test_it_is_fetched_once_when_it_is_needed_and_stays(shared):
    asked = []
    page = shared.open("#/chat")
    page.on("request", lambda request: asked.append(request.url) if PARTS.search(request.url) else None)
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    page.evaluate("location.hash = '#/settings'")
    expect(general(page)).to_be_visible()
    page.reload()
    expect(general(page)).to_be_visible()
    assert len({url for url in asked if not url.endswith(".woff2")}) == 1
    assert page.evaluate("document.querySelectorAll('head style').length") == 2


@pytest.mark.slow
def test_it_is_fetched_when_the_page_is_idle_and_works_when_the_service_is_gone(shared):
    shared.tolerate("ERR_INTERNET_DISCONNECTED")
    page = shared.open("#/library")
    settled(page, "document.querySelectorAll('head style').length === 2")
    page.context.set_offline(True)
    page.evaluate("location.hash = '#/settings'")
    expect(general(page)).to_be_visible()


@pytest.mark.slow
def test_it_needs_no_key(shared):
    page = shared.open(signed_in=False)
    settled(page, "document.querySelectorAll('head style').length === 2")


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["no answer", "an error", "another text"])
def test_a_failure_is_said_in_place_and_can_be_tried_again(shared, failure):
    shared.tolerate("ERR_FAILED|503|Content Security Policy|CSP: script-src")
    shared.tolerate("incomplete or changed")
    answers = {
        "no answer": lambda route: route.abort(),
        "an error": lambda route: route.fulfill(status=503, body="<h1>A proxy is busy</h1>"),
        "another text": lambda route: route.fulfill(body="document.title = 'taken'"),
    }
    sentences = {
        "no answer": "Can’t reach your server",
        "an error": "The server answered with status 503",
        "another text": "arrived incomplete or changed",
    }
    page = opened(shared, answers[failure])
    expect(page.get_by_role("alert")).to_contain_text(sentences[failure])
    assert "taken" not in page.title()
    page.evaluate("location.hash = '#/notes'")
    expect(page.get_by_role("alert")).to_contain_text(sentences[failure])
    page.unroute(PARTS)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="No notes yet")).to_be_visible()


@pytest.mark.slow
def test_after_an_update_the_page_offers_to_reload_and_stays_signed_in(shared):
    shared.tolerate("404")
    gone = '{"detail": "This part belongs to another version of the page"}'
    page = opened(shared, lambda route: route.fulfill(status=404, body=gone), keep=False)
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Snaplore was updated")).to_be_visible()
    page.unroute(PARTS)
    page.get_by_role("button", name="Reload").click()
    expect(general(page)).to_be_visible()


@pytest.mark.slow
def test_the_view_that_was_left_meanwhile_does_not_appear(shared):
    waiting = []
    page = opened(shared, lambda route: waiting.append(route))
    settled(page, "document.querySelector('.view-settings .skeleton') !== null")
    page.evaluate("location.hash = '#/library'")
    settled(page, "document.querySelector('.view-library') !== null")
    for route in waiting:
        route.continue_()
    expect(page.get_by_role("heading", name="Drop your screenshots here")).to_be_visible()
    expect(general(page)).to_have_count(0)


@pytest.mark.slow
def test_the_worker_keeps_it_with_the_page_and_drops_that_of_an_earlier_version(shared):
    page = shared.open("#/library", service_workers="allow")
    kept = (
        "caches.open('frame').then((cache) => cache.keys())"
        ".then((all) => all.map(({ url }) => new URL(url).pathname))"
    )
    has_both = "paths.includes('/') && paths.some((path) => path.startsWith('/parts/'))"
    settled(page, f"({kept}).then((paths) => {has_both})")  # the manifest may be there, too
    page.evaluate("caches.open('frame').then((cache) => cache.put('/parts/en-old.js', new Response('old')))")
    page.reload()
    settled(page, f"({kept}).then((paths) => !paths.includes('/parts/en-old.js'))")
    page.context.set_offline(True)
    shared.tolerate("ERR_INTERNET_DISCONNECTED|ERR_FAILED|Failed to load resource")
    page.goto(f"{shared.service.url}/#/settings")
    page.reload()
    expect(general(page)).to_be_visible()
