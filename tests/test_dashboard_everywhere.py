"""Every view of the dashboard, in both themes, in both languages, on a desktop and on a phone: it hinders
nobody (axe-core), is not wider than the screen, and has the five sizes of text, three weights, three radii
and six spaces of the page's scale. And the font that it brings along.
"""

import json
import re
import tomllib
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from clock import local_time, to_epoch_ms, utc_now
from tests.support.browser import DESKTOP, KEY, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw
from web import page_texts

SIZES = {12, 14, 16, 20, 28}
WEIGHTS = {400, 600, 700}
RADII = {6, 10, 16}  # beside what is square, and what is round: circles and pills
SPACES = {4, 8, 12, 16, 24, 40}

# What the elements on the screen have: sizes and weights of those with a text of their own, and the radii,
# paddings and gaps of all.
USED = """() => {
  const used = { sizes: {}, weights: {}, radii: {}, spaces: {} };
  const note = (kind, value, element) => (used[kind][value] ??= `${element.tagName}.${element.className}`);
  for (const element of document.querySelectorAll("body, body *")) {
    const { width, height } = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    if (!width || !height || style.visibility === "hidden") continue;
    if (element.closest("svg, .visually-hidden, .viewer-line, .viewer-mark")) continue;
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const isBox = element.matches("[type=radio], [type=checkbox], [type=file]");
    if (hasText || (element.matches("input, select, textarea") && !isBox)) {
      note("sizes", parseFloat(style.fontSize), element);
      note("weights", Number(style.fontWeight), element);
    }
    for (const corner of ["TopLeft", "BottomRight"]) {
      const radius = style[`border${corner}Radius`];
      const isRound = radius.includes("%") || parseFloat(radius) > 100;
      if (parseFloat(radius) && !isRound) note("radii", parseFloat(radius), element);
    }
    if (element.matches(".view, .nav, .composer")) continue; // they leave room for the bar of a phone
    const sides = ["paddingTop", "paddingRight", "paddingBottom", "paddingLeft", "rowGap", "columnGap"];
    for (const side of sides) if (parseFloat(style[side])) note("spaces", parseFloat(style[side]), element);
  }
  return used;
}"""


def strangers(page):
    """What the page has that is not on the scale, with the first element that has it."""
    used = page.evaluate(USED)
    scale = {"sizes": SIZES, "weights": WEIGHTS, "radii": RADII, "spaces": SPACES}
    return {
        f"{kind} {value}": element
        for kind, found in used.items()
        for value, element in found.items()
        if float(value) not in scale[kind]
    }


TODAY = local_time(utc_now()).date()


def record(kind, **values):
    fields = [{"name": name.rstrip("_"), "value": value} for name, value in values.items()]
    return {"type": kind, "fields": fields}


def euros(value):
    return {"value": value, "currency": "EUR"}


FLIGHT = {
    "number": "NW482", "from_": "Hamburg", "to": "Lisbon",
    "departureTime": f"{TODAY + timedelta(days=1)}T07:10", "seat": "14A",
}  # fmt: skip
# Name, text, and what the screenshot says as data
SCREENS = (
    ("receipt", "Harbor Books\nTea 3.00\nTotal EUR 23.80", record(
        "Receipt", seller="Harbor Books", total=euros("23.80"), date=f"{TODAY}",
        items=[{"name": "Tea", "price": "€3.00"}], orderNumber="HB-20481-77")),
    ("sent", "Harbor Books\nHas been shipped", record(
        "ParcelDelivery", trackingNumber="00340434161094042557", orderNumber="HB-20481-77",
        seller="Harbor Books")),
    ("pass", f"Boarding pass NW 482\nDeparture {TODAY + timedelta(days=1)} at 07:10", record(
        "FlightReservation", **FLIGHT)),
    ("bill", "City Water\nAmount due", record(
        "Invoice", provider="City Water", totalPaymentDue=euros("48.10"))),
    ("one", "Dinner on Friday at the harbor", None),
    ("card", "Harbor Bank\nCard number 4532 0151 1283 0366", None),
    ("old", "A shelf from old crates", None),
    ("gone", "Meter reading of the year", None),
)  # fmt: skip


@pytest.fixture(scope="module")
def filled(chromium, tmp_path_factory):
    """Something in every view, made by the embedded model."""
    with Dashboard(chromium, tmp_path_factory.mktemp("everywhere"), None) as dashboard:
        call = dashboard.service.call
        dashboard.ids = {}
        for number, (name, text, _) in enumerate(SCREENS):
            taken = to_epoch_ms(utc_now() - timedelta(days=number % 5, minutes=number))
            stored = dashboard.service.upload(draw(text), f"{name}.png", original_timestamp=str(taken))
            dashboard.ids[name] = stored["id"]
        dashboard.service.upload(draw("Dinner on Friday at the harbor"), "twin.png", device_id="other")
        dashboard.service.wait_until_analysed()
        for name, _, found in SCREENS:
            if found:
                path = f"/api/photos/{dashboard.ids[name]}"
                assert call("PATCH", path, json={"records": [found]}).ok
        call(
            "PATCH",
            f"/api/photos/{dashboard.ids['old']}",
            json={"kept": True, "tags": ["Home"], "note": "Oil it"},
        )
        assert call("POST", f"/api/photos/{dashboard.ids['gone']}/trash").ok
        call("POST", "/api/dynamics/trigger")
        call("POST", "/api/memories", json={"content": "Sits at the window", "category": "preference"})
        call("POST", "/api/searches", json={"name": "Harbor", "query": "harbor"})
        for feed in ({"kind": "agenda"}, {"kind": "search", "query": "a long search " * 9}):
            assert call("POST", "/api/feeds", json=feed).ok
        hook = {"url": f"https://example.org/{'x' * 200}", "events": ["photo.analysed", "reminder.due"]}
        assert call("POST", "/api/webhooks", json=hook).ok
        asked = call("POST", "/api/chat/send", json={"message": "How much was Harbor Books?"})
        dashboard.chat = asked.json()["conversation_id"]
        yield dashboard


def press(page, selector):
    page.locator(selector).first.click()


def walk(filled, size):
    """The states of the page: what each is called, its address, what is there when it is, and what is done
    before it is judged.
    """
    ids = filled.ids
    sections = (
        "model",
        "usage",
        "skills",
        "tools",
        "devices",
        "programs",
        "data",
        "statistics",
        "access",
        "general",
    )
    tables = ("receipts", "bills", "parcels", "trips")
    yield "library", "#/library", ".photo-card", None
    yield "menu", "#/library", ".photo-card", lambda page: press(page, ".library-more")
    yield "filtered", "#/library?time=week", ".photo-card", None
    yield (
        "selection",
        "#/library?time=month",
        ".photo-card",
        lambda page: (page.locator(".photo-card").first.focus(), page.keyboard.press("x")),
    )
    yield "results", "#/library?q=harbor", ".result", None
    yield "nothing found", "#/library?q=zeppelin", ".empty", None
    for table in tables:
        yield table, f"#/records/{table}", ".records-open", None
    opened = (lambda page: press(page, ".sheet-handle")) if size is PHONE else None
    for name in ("receipt", "pass", "old"):
        yield f"viewer of {name}", f"#/photo/{ids[name]}", ".viewer .details-title", opened
    yield "private", f"#/photo/{ids['card']}", ".viewer .veil, .viewer-veil", None
    yield (
        "share",
        f"#/photo/{ids['receipt']}",
        ".viewer .details-title",
        lambda page: (
            page.get_by_role("button", name=re.compile("^(Share|分享)$")).click(),
            expect(page.locator(".share-stage img")).to_be_visible(),
        ),
    )
    yield "threads", "#/threads", ".thread-card", None
    yield "agenda", "#/agenda", ".agenda-row", None
    yield "past", "#/agenda?past=1", "main h1", None
    yield "notes", "#/notes", ".notes-card", None
    yield "memories", "#/notes/memories", "main h1", None
    yield "new chat", "#/chat", ".composer", None
    yield "chat", f"#/chat/{filled.chat}", ".chat-answer", None
    yield "settings", "#/settings", "main h1", None
    for section in sections:
        yield section, f"#/settings/{section}", "main h1, main h2", None
    yield (
        "own words",
        f"#/photo/{ids['old']}",
        ".viewer .details-title",
        lambda page: (opened and opened(page), press(page, "[data-own=note]")),
    )
    yield "stack", f"#/photo/{ids['one']}", ".viewer-stack", None
    yield "trash", "#/trash", ".photo-card", None
    yield "in the trash", f"#/trashed/{ids['gone']}", ".viewer .details-title", None
    yield "duplicates", "#/duplicates", ".duplicate", None
    yield "deleted soon", "#/expiring", "main h1", None
    yield "commands", "#/notes", "main h1", lambda page: page.keyboard.press("Control+k")
    yield "keys", "#/library?status=done", ".photo-card", lambda page: page.keyboard.press("?")


# The catalogue's own keys, which are shown where a text is missing.
SECTIONS = "|".join(tomllib.loads((page_texts.FOLDER / "en.toml").read_text(encoding="utf-8")))
QUIET = (
    "!document.querySelector('[aria-busy=true], .skeleton, .stale, .opening, .picture:not([data-state])') &&"
    " document.getAnimations().every((one) => one.playState !== 'running' ||"
    " one.effect.getTiming().iterations > 9)"
)


def judged(page, axe, size):
    """What is wrong with the page as it is now, in both themes."""
    wrong = [*barriers(page, axe), *strangers(page).items()]
    page.emulate_media(color_scheme="dark")
    wrong += [f"dark: {one}" for one in barriers(page, axe, only=["color-contrast"])]
    page.emulate_media(color_scheme="light")
    words = page.locator("body").inner_text()
    wrong += [f"no text: {key}" for key in re.findall(rf"\b(?:{SECTIONS})\.[a-z]\w+", words)]
    if (width := page.evaluate("document.documentElement.scrollWidth")) > size["width"]:
        wrong.append(f"wider than the screen: {width}")
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_view_hinders_nobody_fits_and_keeps_to_the_scale(filled, axe, size, language):
    page = filled.open("#/chat", language=language, size=size, has_touch=size is PHONE)
    found = {}
    for name, address, there, act in walk(filled, size):
        page.evaluate("(address) => (location.hash = address)", address)
        expect(page.locator(there).first).to_be_visible()
        settled(page, QUIET)
        if act:
            act(page)
            settled(page, QUIET)
        if wrong := judged(page, axe, size):
            found[name] = wrong
        if act:
            page.keyboard.press("Escape")
    filled.begin_anew()
    assert found == {}, json.dumps(found, indent=1, ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_sign_in_and_the_first_run_hinder_nobody(chromium, axe, tmp_path, size, language):
    with Dashboard(chromium, tmp_path, None, dev_mode="false") as dashboard:
        page = dashboard.open("#/", signed_in=False, language=language, size=size)
        expect(page.locator("input[type=password]")).to_be_visible()
        assert judged(page, axe, size) == []
        page.locator("input[type=password]").fill(KEY)
        page.keyboard.press("Enter")
        expect(page.locator(".keeping button")).to_have_count(3)
        for closed in page.locator("main summary").all():
            closed.click()
        settled(page, QUIET)
        assert judged(page, axe, size) == []


def test_the_page_is_set_in_its_own_font(filled):
    page = filled.open("#/library")
    expect(page.locator(".photo-card").first).to_be_visible()
    settled(page, "[...document.fonts].some((font) => font.family === 'Inter' && font.status === 'loaded')")
    filled.begin_anew()
