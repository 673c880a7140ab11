"""The veil over sensitive screenshots in the dashboard: in lists, in the viewer and beside notes; how it is
lifted, by mouse, finger and keys, and comes back; "not sensitive"; and what is told about it.
"""

import json
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Dashboard, barriers
from tests.support.drawing import draw
from tests.support.service import eventually

CARD = "Harbor Bank debit card\n4111 1111 1111 1111\nValid thru 09/29\nMIRA SOLBERG"
PASSWORD = "Guest network\nPassword: Tulip2041!"
PLAIN = "Ferry to the island\nLeaves at the pier"
SECRETS = ("1111 1111", "Harbor", "SOLBERG", "card.png")
REASON = {"en": "Looks like a payment card", "zh": "看起来是银行卡"}
FINGERS = {"has_touch": True, "is_mobile": True}
UNCOVERED = "05:01"  # longer than five minutes


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    """A service with a harmless screenshot and two sensitive ones, the card between them."""
    with Dashboard(chromium, tmp_path_factory.mktemp("veil"), None) as dashboard:
        dashboard.ids = {}
        for number, (name, text) in enumerate([("plain", PLAIN), ("card", CARD), ("password", PASSWORD)]):
            taken = str(1_763_000_000_000 + number * 3_600_000)
            stored = dashboard.service.upload(draw(text), f"{name}.png", original_timestamp=taken)
            dashboard.ids[name] = stored["id"]
        dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def dashboard(shared):
    yield shared
    shared.begin_anew()
    for photo in shared.ids.values():
        shared.service.call("POST", f"/api/photos/{photo}/restore")
        shared.service.call("PATCH", f"/api/photos/{photo}", json={"sensitive": None})


class Fetched:
    """The pictures that a page has fetched."""

    def __init__(self, page):
        self.paths = []
        page.on("request", lambda request: self.paths.append(request.url.split("/api/photos/")[-1]))

    def of(self, photo):
        return [path for path in self.paths if path in (f"{photo}/image", f"{photo}/thumbnail")]


def tile(page, photo):
    return page.locator(f".photo-card[data-photo='{photo}']")


def slide(page, photo, state):
    found = page.locator(f".viewer-slide[data-slide='{photo}'][data-state={state}]")
    expect(found).not_to_have_attribute("inert", "")
    return found


def leaks(page):
    """What of the card is anywhere on the page: text, attributes, title."""
    whole = page.evaluate("document.title + document.documentElement.outerHTML")
    return [secret for secret in SECRETS if secret in whole]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_tile_is_veiled_with_its_reason_and_its_picture_is_not_fetched(dashboard, axe, language):
    card, plain = dashboard.ids["card"], dashboard.ids["plain"]
    page = dashboard.open("#/", language=language)
    fetched = Fetched(page)
    page.reload()

    expect(tile(page, card)).to_contain_text(REASON[language])
    expect(tile(page, plain).locator("img[data-state=ready]")).to_be_visible()
    assert fetched.of(card) == []
    assert leaks(page) == []
    assert barriers(page, axe) == []


@pytest.mark.slow
def test_a_tap_uncovers_a_tile_for_five_minutes(dashboard):
    page = dashboard.open("#/", size=PHONE, **FINGERS)
    page.clock.install()
    page.reload()
    card = tile(page, dashboard.ids["card"])
    card.tap()
    expect(card.locator("img[data-state=ready]")).to_be_visible()
    expect(card).not_to_contain_text(REASON["en"])
    expect(tile(page, dashboard.ids["password"])).to_contain_text("Looks like a password")

    page.clock.fast_forward(UNCOVERED)
    expect(card).to_contain_text(REASON["en"])
    expect(card.locator("img")).to_have_count(0)
    assert leaks(page) == []


@pytest.mark.slow
def test_enter_uncovers_and_opens_and_a_reload_veils_again(dashboard):
    photo = dashboard.ids["card"]
    page = dashboard.open("#/")
    tile(page, photo).focus()
    page.keyboard.press("Enter")
    expect(tile(page, photo).locator("img[data-state=ready]")).to_be_visible()
    expect(tile(page, photo)).to_be_focused()
    page.keyboard.press("Enter")
    slide(page, photo, "ready")
    expect(page.locator(".viewer-details")).to_contain_text("4111")

    page.reload()
    slide(page, photo, "veiled")
    expect(page.locator(".viewer-details .details-veil")).to_have_text(REASON["en"])
    assert leaks(page) == []


@pytest.mark.slow
def test_a_search_shows_neither_title_nor_snippet_of_a_veiled_hit(dashboard):
    page = dashboard.open("#/library?q=solberg")
    hit = page.locator(".result")
    expect(hit).to_contain_text("Private screenshot")
    expect(hit).to_contain_text(REASON["en"])
    whole = page.locator(".library-body").inner_html()
    assert "4111" not in whole
    assert "Harbor" not in whole
    hit.click()
    expect(hit).to_contain_text("4111")
    expect(hit.locator("img[data-state=ready]").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_the_viewer_fetches_and_shows_nothing_before_it_is_uncovered(dashboard, axe, size):
    photo = dashboard.ids["card"]
    page = dashboard.open("#/", size=size)
    fetched = Fetched(page)
    page.goto(f"{dashboard.service.url}/#/photo/{photo}")
    veiled = slide(page, photo, "veiled")
    expect(veiled).to_contain_text(REASON["en"])
    expect(page.locator(".viewer-details .details-veil")).to_have_count(1)
    expect(page).to_have_title("Private screenshot · Snaplore")
    for name in ("Download", "Copy picture", "Copy text"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    assert fetched.of(photo) == []
    assert f"{photo}/lines" not in fetched.paths
    assert leaks(page) == []
    assert barriers(page, axe) == []

    veiled.get_by_role("button", name="Show for 5 minutes").click()
    slide(page, photo, "ready")
    expect(page.locator(".viewer-details .details-text")).to_contain_text("4111")
    expect(page.locator(".viewer-line").first).to_be_attached()
    expect(page.locator(".viewer-title")).to_be_focused()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "card.png"


@pytest.mark.slow
def test_the_viewer_veils_again_while_it_is_open(dashboard):
    photo = dashboard.ids["card"]
    page = dashboard.open("#/")
    page.clock.install()
    page.goto(f"{dashboard.service.url}/#/photo/{photo}")
    page.reload()
    slide(page, photo, "veiled")
    page.keyboard.press("Enter")
    slide(page, photo, "ready")
    expect(page.locator(".viewer-details .details-text")).to_contain_text("4111")
    page.clock.fast_forward(UNCOVERED)
    slide(page, photo, "veiled")
    expect(page.locator(".viewer-details .details-veil")).to_be_visible()
    assert leaks(page) == []


@pytest.mark.slow
def test_turning_to_a_sensitive_neighbour_shows_its_veil(dashboard):
    page = dashboard.open("#/")
    fetched = Fetched(page)
    tile(page, dashboard.ids["plain"]).click()
    slide(page, dashboard.ids["plain"], "ready")
    page.keyboard.press("ArrowLeft")
    slide(page, dashboard.ids["card"], "veiled")
    page.keyboard.press(" ")
    slide(page, dashboard.ids["card"], "ready")
    page.keyboard.press("ArrowLeft")
    slide(page, dashboard.ids["password"], "veiled")
    assert fetched.of(dashboard.ids["password"]) == []


@pytest.mark.slow
def test_what_is_said_not_to_be_sensitive_is_veiled_no_more_and_undo_veils_it_again(dashboard):
    photo = dashboard.ids["card"]
    kinds = lambda: dashboard.service.get(f"/api/photos/{photo}")["sensitive"]  # noqa: E731
    page = dashboard.open(f"#/photo/{photo}")
    slide(page, photo, "veiled").get_by_role("button", name="Not private").click()
    slide(page, photo, "ready")
    expect(page.locator(".viewer-details .details-text")).to_contain_text("4111")
    assert kinds() == []
    page.get_by_role("button", name="Undo").click()
    slide(page, photo, "veiled")
    assert kinds() == ["card"]

    page.keyboard.press("Enter")
    slide(page, photo, "ready")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Not private").click()
    eventually(lambda: kinds() == [], "the menu says it, too")
    page.reload()
    slide(page, photo, "ready")


def test_the_trash_veils_too(dashboard):
    photo = dashboard.ids["card"]
    dashboard.service.call("POST", f"/api/photos/{photo}/trash")
    page = dashboard.open("#/trash")
    fetched = Fetched(page)
    expect(tile(page, photo)).to_contain_text(REASON["en"])
    assert leaks(page) == []
    tile(page, photo).click()
    expect(tile(page, photo).locator("img[data-state=ready]")).to_be_visible()
    assert f"{photo}/image?trash=true" not in fetched.paths


def test_sources_of_a_note_are_veiled(dashboard):
    card, plain = dashboard.ids["card"], dashboard.ids["plain"]
    note = {
        "id": 7, "title": "Trips", "summary": "", "content": "Two of them.", "category": "note",
        "is_read": True, "is_pinned": False, "created_at": "2026-11-20T10:00:00.000", "confidence": 1.0,
        "sensitive": [],
        "source_photo_ids": json.dumps([card, plain]), "source_conversation_ids": "[]",
    }  # fmt: skip
    page = dashboard.open("#/")
    page.route("**/api/dynamics/7", lambda route: route.fulfill(json=note))
    fetched = Fetched(page)
    page.goto(f"{dashboard.service.url}/#/notes/7")
    cited = page.locator(".cited-photo")
    expect(cited.nth(1).locator("img[data-state=ready]")).to_be_visible()
    expect(cited.nth(0).locator(".veil")).to_be_visible()
    expect(cited.nth(0)).to_have_attribute("title", REASON["en"])
    assert fetched.of(card) == []


# Every place of the page that shows a picture or a text of a screenshot: its address, a part of it, and what
# that says before somebody taps. `about` makes what the service answers about the card.
CARD_TEXT = "Harbor Bank 4111 1111 1111 1111 MIRA SOLBERG"
# The texts in the service worker's caches.
CACHED = """async () => {
    const texts = [];
    for (const name of await caches.keys())
        for (const request of await (await caches.open(name)).keys()) {
            const kept = await (await caches.open(name)).match(request);
            texts.push(request.url, await kept.text());
        }
    return texts.join("\\n");
}"""
PLACES = {
    "library": ("#/", ".photo-card[data-photo='{card}']", REASON["en"]),
    "results of a search": ("#/library?q=debit", ".result", "Private screenshot"),
    "viewer": ("#/photo/{card}", ".viewer-details .details-veil", REASON["en"]),
    "what is coming up": ("#/", ".coming-card", "Private screenshot"),
    "agenda": ("#/agenda", ".agenda-row", REASON["en"]),
    "list of notes": ("#/notes", ".notes-card", "A private note"),
    "note": ("#/notes/7", ".notes-article", REASON["en"]),
    "memories": ("#/notes/memories", ".memories-item", REASON["en"]),
    "list of chats": ("#/chat", ".chat-item", "A private chat"),
    "results of a tool in a chat": ("#/chat/c0ffee", ".chat-results", REASON["en"]),
}


def about(card):
    when = "2026-11-20T10:00:00.000"
    note = {
        "id": 7, "title": CARD_TEXT, "summary": CARD_TEXT, "content": CARD_TEXT, "category": "note",
        "is_read": False, "is_pinned": False, "created_at": when, "confidence": 1.0, "device_id": "",
        "source_photo_ids": json.dumps([card]), "source_conversation_ids": '["c0ffee"]',
        "sensitive": ["card"],
    }  # fmt: skip
    memory = {
        "id": 1, "content": CARD_TEXT, "memory_type": "long_term", "source_type": "screenshot",
        "category": "finance", "importance": 0.5, "access_count": 0, "created_at": when, "expires_at": None,
        "sensitive": ["card"],
    }  # fmt: skip
    chat = {
        "id": "c0ffee",
        "title": CARD_TEXT,
        "last_message": CARD_TEXT,
        "updated_at": when,
        "sensitive": ["card"],
    }
    tomorrow = (datetime.now() + timedelta(days=1)).date()
    occasion = {
        "id": 3, "photo_id": card, "photo_ids": [card], "kind": "deadline", "title": CARD_TEXT,
        "starts_at": f"{tomorrow}T00:00:00", "ends_at": None, "all_day": True, "quote": CARD_TEXT, "line": 0,
        "dismissed": False, "sensitive": ["card"], "thread": None,
    }  # fmt: skip
    call = {"id": "1", "type": "function", "function": {"name": "get_screenshot", "arguments": "{}"}}
    found = {"results": [{"id": card, "title": CARD_TEXT, "snippet": CARD_TEXT}]}
    message = {"tool_calls": None, "tool_name": None, "has_attachment": False, "created_at": when}
    messages = [
        {**message, "id": 1, "role": "user", "content": "Which one?"},
        {**message, "id": 2, "role": "assistant", "content": None, "tool_calls": json.dumps([call])},
        {**message, "id": 3, "role": "tool", "content": json.dumps(found), "tool_name": "get_screenshot"},
        {**message, "id": 4, "role": "assistant", "content": f"This one: #{card}"},
    ]
    return {
        "/api/agenda": {"total": 1, "limit": 50, "items": [occasion]},
        "/api/dynamics": {"items": [note], "next_cursor": 0, "has_more": False},
        "/api/dynamics/stats": {"total_unread": 1, "by_category": {"note": 1}},
        "/api/dynamics/7": note,
        "/api/dynamics/7/read": {"message": "Marked as read", "is_read": True},
        "/api/memories": {"total": 1, "page": 1, "page_size": 50, "items": [memory]},
        "/api/chat/conversations": {"conversations": [chat]},
        "/api/chat/conversations/c0ffee": {"id": "c0ffee", "title": "Which one?", "messages": messages},
    }


@pytest.mark.slow
def test_no_place_shows_what_is_sensitive_before_a_tap(dashboard):
    card = dashboard.ids["card"]
    answers = about(card)
    page = dashboard.open("#/settings")
    page.route(
        lambda url: urlsplit(url).path in answers,
        lambda route: route.fulfill(json=answers[urlsplit(route.request.url).path]),
    )
    fetched = Fetched(page)
    shown = []
    for name, (address, part, says) in PLACES.items():
        page.goto("about:blank")
        page.goto(f"{dashboard.service.url}/{address.format(card=card)}")
        place = page.locator(part.format(card=card)).first
        expect(place, name).to_contain_text(says)
        page.wait_for_load_state("networkidle")
        if found := leaks(page):
            shown.append((name, found))
        if kept := [secret for secret in SECRETS if secret in page.url + str(page.evaluate(CACHED))]:
            shown.append((f"the history or the cache after {name}", kept))
    assert shown == []
    assert fetched.of(card) == []


@pytest.mark.slow
@pytest.mark.parametrize("address", ["#/notes/7", "#/notes/memories"])
def test_a_tap_shows_a_text_about_something_sensitive(dashboard, axe, address):
    answers = about(dashboard.ids["card"])
    page = dashboard.open("#/settings")
    page.route(
        lambda url: urlsplit(url).path in answers,
        lambda route: route.fulfill(json=answers[urlsplit(route.request.url).path]),
    )
    page.goto(f"{dashboard.service.url}/{address}")
    cover = page.locator(".text-veil")
    expect(cover).to_be_visible()
    assert barriers(page, axe) == []
    cover.click()
    expect(cover).to_have_count(0)
    expect(page.locator(".view")).to_contain_text("4111 1111")


@pytest.mark.slow
def test_the_library_counts_what_is_held_back_and_leads_there(dashboard, axe):
    page = dashboard.open("#/")
    sign = page.get_by_role("link", name="2 private screenshots stay on this server")
    expect(sign).to_be_visible()
    assert "(Payment cards 1, Passwords 1)" in sign.get_attribute("title")
    assert barriers(page, axe) == []
    sign.click()
    expect(page.locator(".result")).to_have_count(2)
    page.goto(f"{dashboard.service.url}/#/settings/statistics")
    expect(page.locator(".view")).to_contain_text("Payment cards")


@pytest.mark.slow
def test_codes_go_to_the_trash_after_a_day_when_the_switch_in_the_settings_is_on(dashboard):
    days = lambda: dashboard.service.get("/api/data/codes")["days"]  # noqa: E731
    page = dashboard.open("#/settings/data")
    switch = page.get_by_role("switch", name="Delete one-time codes")
    expect(switch).not_to_be_checked()
    switch.check()
    eventually(lambda: days() == 1, "the switch is saved")
    switch.uncheck()
    eventually(lambda: days() == 0, "it is off again")
