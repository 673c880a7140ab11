"""The scale of the dashboard: in all its views there are five sizes of text, three weights, three radii, and
six spaces; and the font that it brings along.
"""

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, settled
from tests.support.drawing import draw

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
    if (element.closest("svg, .visually-hidden")) continue;
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


@pytest.fixture
def filled(dashboard):
    """Three screenshots with words, one of them with a title of its own."""
    for number, text in enumerate(("Dinner on Friday", "Boarding pass", "Receipt")):
        dashboard.service.upload(draw(text), f"shot-{number}.png")
    dashboard.service.wait_until_analysed()
    dashboard.service.call("PUT", "/api/data/retention", json={"retention_days": 365})
    return dashboard


def test_the_pictures_have_five_sizes_three_weights_three_radii_and_six_spaces(filled):
    [first, *_] = filled.service.photos()
    for size in (DESKTOP, PHONE):
        page = filled.open("#/library", size=size)
        expect(page.locator(".photo-card")).to_have_count(3)
        settled(page, "document.querySelectorAll('.filter').length > 0")
        assert strangers(page) == {}
        page.locator("#search").fill("library")
        expect(page.locator(".result")).not_to_have_count(0)
        assert strangers(page) == {}
        page.goto(f"{filled.service.url}/#/photos/{first['id']}")
        expect(page.locator(".details-title")).to_be_visible()
        if size is PHONE:
            page.locator(".sheet-handle").click()
        assert strangers(page) == {}
        page.context.close()


VIEWS = (
    "agenda", "chat", "notes", "notes/memories", "records", "threads", "trash", "settings", "settings/model",
    "settings/devices", "settings/programs", "settings/data", "settings/statistics", "settings/usage",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_all_other_views_have_no_other_sizes(filled, size):
    page = filled.open("#/library", size=size)
    found = {}
    for view in VIEWS:
        page.goto(f"{filled.service.url}/#/{view}")
        expect(page.locator("#main h1, #main h2").first).to_be_attached()
        page.wait_for_load_state("networkidle")
        if strange := strangers(page):
            found[view] = strange
    assert found == {}


def test_the_page_is_set_in_its_own_font(filled):
    page = filled.open("#/library")
    expect(page.locator(".photo-card")).to_have_count(3)
    settled(page, "[...document.fonts].some((font) => font.family === 'Inter' && font.status === 'loaded')")
