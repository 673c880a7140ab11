"""A screenshot in the dashboard's viewer: its address, turning to others, zooming, the text on it, its
details, and what can be done with it; by mouse, finger and keyboard.
"""

import contextlib
import io
import re

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import eventually

BOOKING = (
    "Your booking is confirmed\nDetails https://trains.example.org/77\nMail help@example.org\nCode 448217"
)
ENTITIES = [
    {"type": "link", "value": "https://trains.example.org/77"},
    {"type": "email", "value": "help@example.org"},
    {"type": "code", "value": "448217"},
    {"type": "link", "value": "javascript:alert(1)"},
]
FINGERS = {"has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    """A service with three screenshots, the last of them a tall one, that every test here finds unchanged."""
    folder = tmp_path_factory.mktemp("viewer")
    with FakeLLM() as llm, Dashboard(chromium, folder, llm, read_locally="true") as dashboard:
        plain = {**FINDINGS, "entities": [], "memories": []}
        dashboard.findings.extend([
            {**plain, "title": "Train to Hamburg", "summary": "A booking.", "entities": ENTITIES},
            {**plain, "title": "", "summary": "A timetable."},
            {**plain, "title": "A long page"},
        ])  # fmt: skip
        pictures = [
            draw(BOOKING),
            draw("Platform seven\nCoach twelve"),
            draw("Top of it" + "\n" * 85 + "The lowest line", size=(400, 3600)),
        ]
        dashboard.ids = []
        for number, picture in enumerate(pictures):
            taken = str(1_763_000_000_000 + number * 86_400_000)
            stored = dashboard.service.upload(picture, f"shot-{number}.png", original_timestamp=taken)
            dashboard.ids.append(stored["id"])
            dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def dashboard(shared):
    yield shared
    shared.begin_anew()


def opened(dashboard, photo, address="#/photo/{}", **options):
    """A page with this photo in the viewer, loaded."""
    page = dashboard.open(address.format(photo), **options)
    shown(page, photo)
    return page


def shown(page, photo):
    expect(page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")).not_to_have_attribute(
        "inert", ""
    )
    expect(page.locator(".viewer-details:not(.stale) .facts").last).to_be_attached()


def from_list(dashboard, photo, **options):
    """The same, opened by a click in the list."""
    page = dashboard.open("#/library", **options)
    page.locator(f"[data-photo='{photo}']").click()
    shown(page, photo)
    return page


def place(page):
    """Where the picture is on the screen: left, top, width, height."""
    canvas = page.locator(".viewer-slide:not([inert]) .viewer-canvas")
    box = "(canvas) => { const r = canvas.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }"
    return canvas.evaluate(box)


def stage(page):
    box = page.locator(".viewer-stage").bounding_box()
    return box["x"], box["y"], box["width"], box["height"]


def middle(page):
    left, top, width, height = place(page)
    return left + width / 2, top + height / 2


def lines(dashboard, photo):
    return dashboard.service.get(f"/api/photos/{photo}/lines")["lines"]


def clipboard(page):
    return page.evaluate("navigator.clipboard.readText()")


CLIPBOARD = ["clipboard-read", "clipboard-write"]

# ---------------------------------------------------------------------------------------- address and turning


@pytest.mark.slow
def test_a_photo_opens_over_the_list_and_back_escape_and_the_button_close_it(dashboard):
    _, second, _ = dashboard.ids
    page = dashboard.open("#/library")
    tile = page.locator(f"[data-photo='{second}']")
    expect(tile).to_be_visible()
    page.evaluate("document.querySelector('main .view').dataset.drawn = 'once'")
    closers = [
        page.go_back,
        lambda: page.keyboard.press("Escape"),
        lambda: page.get_by_role("dialog").get_by_role("button", name="Close").click(),
    ]
    for close in closers:
        entries = page.evaluate("history.length")
        tile.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.url.endswith(f"#/photo/{second}")
        close()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(tile).to_be_focused()
        assert page.url.endswith("#/library")
        assert page.evaluate("history.length") in (entries, entries + 1)
    page.go_forward()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.locator("main .view").get_attribute("data-drawn") == "once"


def test_an_address_of_a_photo_opens_it_over_its_list(dashboard):
    first, _, _ = dashboard.ids
    page = opened(dashboard, first, "#/photo/{}?q=booking")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("#/library?q=booking")
    expect(page.locator("#search")).to_have_value("booking")


def test_an_address_of_no_photo_says_so(dashboard):
    dashboard.tolerate("404")
    page = dashboard.open("#/photo/999999")
    expect(page.locator(".viewer-problem")).to_have_text("This screenshot is not here any more.")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("#/library")


@pytest.mark.slow
def test_it_fills_the_screen_and_is_named_by_what_it_shows(dashboard):
    first, second, _ = dashboard.ids
    page = opened(dashboard, first)
    viewer = page.get_by_role("dialog", name="Train to Hamburg")
    assert viewer.bounding_box() == {"x": 0, "y": 0, **DESKTOP}
    assert page.title() == "Train to Hamburg · Snaplore"
    bar = page.locator(".viewer-bar").inner_text()
    assert not re.search(r"Done|Confidence|%|Screenshot \d", bar)
    expect(viewer.get_by_text("Confidence", exact=True)).to_be_visible()
    page = opened(dashboard, second)
    expect(page.get_by_role("dialog", name=lines(dashboard, second)[0]["text"])).to_be_visible()


def test_arrows_turn_through_the_list_and_one_back_closes(dashboard):
    first, second, third = dashboard.ids
    page = from_list(dashboard, third)
    viewer = page.get_by_role("dialog")
    expect(viewer.get_by_role("button", name="Previous screenshot")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    shown(page, second)
    viewer.get_by_role("button", name="Next screenshot").click()
    shown(page, first)
    assert f"#/photo/{first}" in page.url
    expect(viewer.get_by_role("button", name="Next screenshot")).to_be_disabled()
    page.keyboard.press("ArrowLeft")
    shown(page, second)
    page.go_back()
    expect(viewer).to_have_count(0)
    assert page.url.endswith("#/library")
    expect(page.locator(f"[data-photo='{second}']")).to_be_focused()


@pytest.mark.slow
def test_the_arrows_are_beside_the_picture(dashboard):
    page = from_list(dashboard, dashboard.ids[1])
    left, _, width, _ = place(page)
    back = page.get_by_role("button", name="Previous screenshot").bounding_box()
    next_ = page.get_by_role("button", name="Next screenshot").bounding_box()
    assert back["x"] + back["width"] <= left
    assert next_["x"] >= left + width


@pytest.mark.slow
def test_neighbours_are_loaded_ahead_and_old_pictures_give_their_memory_back(dashboard):
    first, second, third = dashboard.ids
    count = """() => {
        window.live = new Set();
        const [make, drop] = [URL.createObjectURL, URL.revokeObjectURL];
        URL.createObjectURL = (blob) => { const url = make.call(URL, blob); live.add(url); return url; };
        URL.revokeObjectURL = (url) => { live.delete(url); drop.call(URL, url); };
    }"""
    page = dashboard.open("#/library")
    page.locator(f"[data-photo='{third}'] img[data-state=ready]").wait_for()
    page.evaluate(count)
    page.locator(f"[data-photo='{third}']").click()
    shown(page, third)
    expect(page.locator(f".viewer-slide[data-slide='{second}'][data-state=ready]")).to_be_attached()
    page.keyboard.press("ArrowRight")
    shown(page, second)
    expect(page.locator(f".viewer-slide[data-slide='{first}'][data-state=ready]")).to_be_attached()
    page.keyboard.press("ArrowRight")
    shown(page, first)
    expect(page.locator(f".viewer-slide[data-slide='{third}']")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    settled(page, "live.size === 0")


# ---------------------------------------------------------------------------------------------------- zooming


def at(page, x, y):
    """The part of the picture, in fractions, that is at this point of the screen."""
    left, top, width, height = place(page)
    return (x - left) / width, (y - top) / height


@pytest.mark.slow
def test_the_wheel_zooms_to_the_point_under_the_mouse(dashboard):
    page = opened(dashboard, dashboard.ids[0])
    left, top, width, height = place(page)
    x, y = left + width / 2, top + height * 0.25
    page.mouse.move(x, y)
    for control in (False, True):
        before, size = at(page, x, y), place(page)[2]
        if control:
            page.keyboard.down("Control")
        for _ in range(4):
            page.mouse.wheel(0, -120)
        settled(
            page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().width > {size * 1.3}"
        )
        page.keyboard.up("Control")
        assert at(page, x, y) == pytest.approx(before, abs=0.01)


@pytest.mark.slow
def test_a_zoomed_picture_is_dragged_within_its_bounds(dashboard):
    page = opened(dashboard, dashboard.ids[0])
    page.keyboard.press("1")
    settled(page, "!document.querySelector('.gliding')")
    assert place(page)[2] == pytest.approx(540)
    for _ in range(2):
        page.keyboard.press("+")
    settled(page, "!document.querySelector('.gliding')")
    left, top, width, height = place(page)
    x0, y0, w0, h0 = stage(page)
    x, y = x0 + w0 - 100, y0 + h0 - 60  # no text is there
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 30, y - 25, steps=3)
    assert place(page) == pytest.approx([left - 30, top - 25, width, height], abs=0.1)
    page.mouse.move(x - 5000, y - 5000, steps=3)
    page.mouse.up()
    left, top, width, height = place(page)
    assert x0 + w0 - 100 < left + width <= x0 + w0  # its edge stays at the edge of the stage
    assert y0 + h0 - 40 < top + height <= y0 + h0


@pytest.mark.slow
def test_keys_buttons_and_a_double_click_zoom(dashboard):
    page = opened(dashboard, dashboard.ids[0])
    fitted = place(page)
    still = "!document.querySelector('.gliding')"

    def size():
        settled(page, still)
        return place(page)[2]

    viewer = page.get_by_role("dialog")
    page.keyboard.press("+")
    assert size() == pytest.approx(fitted[2] * 1.5)
    page.keyboard.press("-")
    assert size() == pytest.approx(fitted[2])
    viewer.get_by_role("button", name="Actual size").click()
    assert size() == pytest.approx(540)
    expect(page.locator(".viewer-percent")).to_have_text("100%")
    page.keyboard.press("0")
    assert size() == pytest.approx(fitted[2])
    x, y = fitted[0] + fitted[2] * 0.7, fitted[1] + fitted[3] * 0.8
    page.mouse.dblclick(x, y)
    assert size() > fitted[2] * 1.5
    page.mouse.dblclick(x, y)
    assert size() == pytest.approx(fitted[2])


@pytest.mark.slow
def test_a_tall_picture_opens_as_wide_as_it_is_and_scrolls(dashboard):
    third = dashboard.ids[2]
    page = opened(dashboard, third)
    _, top, width, height = place(page)
    assert (width, height) == (400, 3600)
    page.mouse.move(*[part / 2 for part in (stage(page)[2], stage(page)[3])])
    page.mouse.wheel(0, 300)
    settled(page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().top < {top - 250}")
    assert place(page)[2:] == [width, height]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("PageUp")
    settled(page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().top === {top}")


# ---------------------------------------------------------------------------------------------------- fingers


class Fingers:
    """Touches, as the screen of a phone reports them."""

    def __init__(self, page):
        self.session = page.context.new_cdp_session(page)

    def send(self, kind, *points):
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})

    def drag(self, start, end, *, lift=True):
        self.send("touchStart", start)
        for step in range(1, 6):
            part = step / 5
            self.send("touchMove", tuple(a + (b - a) * part for a, b in zip(start, end, strict=True)))
        if lift:
            self.send("touchEnd")

    def pinch(self, centre, before, after):
        x, y = centre
        spread = [before + (after - before) * step / 5 for step in range(6)]
        self.send("touchStart", (x - before, y), (x + before, y))
        for distance in spread:
            self.send("touchMove", (x - distance, y), (x + distance, y))
        self.send("touchEnd")


def on_phone(dashboard, photo, **options):
    return from_list(dashboard, photo, size=PHONE, **FINGERS, **options)


@pytest.mark.slow
def test_a_swipe_turns_and_the_picture_follows_the_finger(dashboard):
    _, second, third = dashboard.ids
    page = on_phone(dashboard, third)
    fingers = Fingers(page)
    expect(page.locator(f".viewer-slide[data-slide='{second}'][data-state=ready]")).to_be_attached()
    left = place(page)[0]
    fingers.drag((300, 400), (220, 404), lift=False)
    settled(page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().left < {left - 55}")
    assert place(page)[0] > left - 85
    fingers.send("touchEnd")
    page.wait_for_timeout(50)
    fingers.drag((350, 400), (60, 404))
    shown(page, second)
    fingers.drag((60, 400), (350, 404))
    shown(page, third)
    fingers.drag((60, 400), (350, 404))  # there is none before the first
    expect(page.locator(".viewer-slide:not([inert])")).to_have_attribute("data-slide", str(third))
    settled(page, "!document.querySelector('.viewer-track').style.transform")


@pytest.mark.slow
def test_two_fingers_zoom_to_the_point_between_them(dashboard):
    page = on_phone(dashboard, dashboard.ids[1])
    x, y = middle(page)
    x += 40
    before, width = at(page, x, y), place(page)[2]
    Fingers(page).pinch((x, y), 30, 90)
    assert place(page)[2] == pytest.approx(width * 3, rel=0.1)
    assert at(page, x, y) == pytest.approx(before, abs=0.05)
    left = place(page)[0]
    Fingers(page).drag((200, 500), (170, 500))  # a drag moves a zoomed picture and does not turn
    assert place(page)[0] == pytest.approx(left - 30, abs=1)


@pytest.mark.slow
def test_a_tap_hides_all_but_the_picture_and_a_double_tap_zooms(dashboard):
    page = on_phone(dashboard, dashboard.ids[1])
    x, y = middle(page)
    width = place(page)[2]
    page.touchscreen.tap(x, y)
    expect(page.locator(".viewer-bar")).to_be_hidden()
    assert place(page)[1] + place(page)[3] / 2 == pytest.approx(PHONE["height"] / 2)
    page.wait_for_timeout(350)  # so that the next tap is not the second of two
    page.touchscreen.tap(x, y)
    expect(page.locator(".viewer-bar")).to_be_visible()
    page.wait_for_timeout(350)  # so that the next tap is not the second of two
    page.touchscreen.tap(x, y)
    page.touchscreen.tap(x, y)
    settled(page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().width > {width * 2}")
    expect(page.locator(".viewer-bar")).to_be_visible()


@pytest.mark.slow
def test_a_picture_is_pulled_down_to_close_it_and_up_for_its_details(dashboard):
    page = on_phone(dashboard, dashboard.ids[1])
    fingers = Fingers(page)
    fingers.drag((195, 500), (195, 380))
    handle = page.get_by_role("button", name="Details: show more or less")
    expect(handle).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Details", exact=True).tap()
    expect(handle).to_have_attribute("aria-expanded", "false")
    fingers.drag((195, 300), (195, 520))
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("#/library")


# ------------------------------------------------------------------------------------------------------- text


@pytest.mark.slow
@pytest.mark.parametrize("zoomed", [False, True], ids=["fitted", "zoomed"])
def test_the_text_lies_on_its_lines(dashboard, zoomed):
    first = dashboard.ids[0]
    page = opened(dashboard, first)
    if zoomed:
        page.keyboard.press("1")
        settled(page, "!document.querySelector('.gliding')")
    left, top, width, height = place(page)
    stored = lines(dashboard, first)
    spans = page.locator(".viewer-line")
    expect(spans).to_have_text([line["text"] for line in stored])
    boxes = spans.evaluate_all(
        "(all) => all.map((one) => { const r = one.getBoundingClientRect(); "
        "return [r.x, r.y, r.width, r.height]; })"
    )
    for line, box in zip(stored, boxes, strict=True):
        wanted = [
            left + line["left"] * width, top + line["top"] * height,
            line["width"] * width, line["height"] * height,
        ]  # fmt: skip
        assert box == pytest.approx(wanted, abs=1.5), line["text"]


@pytest.mark.slow
def test_dragging_over_the_text_selects_it_and_a_copied_line_equals_the_stored_one(dashboard):
    first = dashboard.ids[0]
    page = opened(dashboard, first, permissions=CLIPBOARD)
    stored = lines(dashboard, first)
    rects = [page.locator(".viewer-line").nth(number).bounding_box() for number in range(len(stored))]

    def drag(start, end):
        one, other = rects[start], rects[end]
        page.mouse.move(one["x"] + 0.5, one["y"] + one["height"] / 2)
        page.mouse.down()
        # Beside and between the lines on the way, where nothing is.
        page.mouse.move(one["x"] + one["width"] + 40, one["y"] + one["height"] + 3, steps=4)
        page.mouse.move(other["x"] + other["width"] + 1, other["y"] + other["height"] / 2, steps=4)
        page.mouse.up()
        page.keyboard.press("Control+c")
        return clipboard(page)

    before = place(page)
    assert drag(0, 0) == stored[0]["text"]
    assert drag(1, 3) == "\n".join(line["text"] for line in stored[1:4])
    assert place(page) == before
    page.mouse.dblclick(rects[0]["x"] + 5, rects[0]["y"] + rects[0]["height"] / 2)
    page.keyboard.press("Control+c")
    assert clipboard(page) == stored[0]["text"].split()[0]
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    assert clipboard(page) == "\n".join(line["text"] for line in stored)


@pytest.mark.slow
def test_a_long_press_selects_a_word_and_a_drag_more_of_the_text(dashboard):
    """Chromium without a window makes no selection of its own from a long press, so the page does."""
    first = dashboard.ids[0]
    page = on_phone(dashboard, first, permissions=CLIPBOARD)
    stored = lines(dashboard, first)
    fingers = Fingers(page)
    before = place(page)

    def middle_of(number):
        box = page.locator(".viewer-slide:not([inert]) .viewer-line").nth(number).bounding_box()
        return box["x"] + 4, box["x"] + box["width"] - 1, box["y"] + box["height"] / 2

    left, _, y = middle_of(0)
    fingers.send("touchStart", (left, y))
    settled(page, "getSelection().toString() !== ''")
    _, right, below = middle_of(1)
    for step in range(1, 5):
        fingers.send("touchMove", (left + (right - left) * step / 4, y + (below - y) * step / 4))
    fingers.send("touchEnd")
    page.get_by_role("menuitem", name="Copy").tap()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert clipboard(page) == "\n".join(line["text"] for line in stored[:2])
    assert place(page) == before


@pytest.mark.slow
def test_all_of_the_text_is_in_the_panel_and_is_copied_by_a_button(dashboard):
    first = dashboard.ids[0]
    page = opened(dashboard, first, permissions=CLIPBOARD)
    text = dashboard.service.get(f"/api/photos/{first}")["text"]
    assert "Your booking is confirmed" in text
    panel = page.get_by_role("region", name="Details")
    expect(panel.locator(".details-text")).to_have_text(text)
    page.get_by_role("button", name="Copy text", exact=True).click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert clipboard(page) == "\n".join(
        line["text"] for line in lines(dashboard, first) if not line["status_bar"]
    )


@pytest.mark.slow
def test_what_can_be_opened_or_copied_is_a_spot_on_the_picture(dashboard):
    page = opened(dashboard, dashboard.ids[0], permissions=CLIPBOARD)
    spots = page.locator(".viewer-spot")
    expect(spots).to_have_count(3)  # never of a link that is no web address
    menu = page.get_by_role("menu")

    def press(kind):
        box = page.locator(f".viewer-spot[data-kind={kind}]").bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(menu).to_be_visible()

    press("link")
    link = menu.get_by_role("menuitem", name="Open trains.example.org")
    expect(link).to_be_focused()
    assert link.get_attribute("href") == "https://trains.example.org/77"
    assert "noopener" in link.get_attribute("rel")
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(page.get_by_role("dialog")).to_be_visible()
    press("email")
    assert menu.get_by_role("menuitem").first.get_attribute("href") == "mailto:help@example.org"
    page.keyboard.press("Escape")
    press("code")
    expect(menu.get_by_role("menuitem")).to_have_count(1)
    menu.get_by_role("menuitem", name="Copy").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert clipboard(page) == "448217"
    line = page.locator(".viewer-line", has_text="trains").bounding_box()
    spot = page.locator(".viewer-spot[data-kind=link]").bounding_box()
    assert spot["x"] > line["x"] + line["width"] * 0.1  # behind the word before it
    assert spot["y"] < line["y"] + line["height"] / 2 < spot["y"] + spot["height"]


@pytest.mark.slow
def test_a_spot_is_tapped_with_a_finger(dashboard):
    page = on_phone(dashboard, dashboard.ids[0])
    box = page.locator(".viewer-spot[data-kind=link]").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_role("menuitem", name="Open trains.example.org")).to_be_visible()
    page.touchscreen.tap(300, 600)
    expect(page.get_by_role("menu")).to_have_count(0)


@pytest.mark.slow
def test_the_spot_of_a_code_covers_the_whole_code(dashboard):
    """The line of a code is read at its lower edge: 270 px wide, and a fourteenth of that high."""
    first = dashboard.ids[0]
    code = {"text": ENTITIES[0]["value"], "left": 0.25, "top": 581 / 960, "width": 0.5, "height": 19 / 960}
    read = {"text": "Scan me", "left": 0.1, "top": 0.05, "width": 0.3, "height": 0.04}
    told = [{**line, "status_bar": False} for line in (read, code)]
    page = dashboard.open("#/library")
    page.route(
        f"**/api/photos/{first}/lines",
        lambda route: route.fulfill(json={"width": 540, "height": 960, "lines": told}),
    )
    page.locator(f"[data-photo='{first}']").click()
    shown(page, first)
    expect(page.locator(".viewer-spot")).to_have_count(1)
    spot = page.locator(".viewer-spot").bounding_box()
    left, top, width, height = place(page)
    assert spot["height"] == pytest.approx(spot["width"], rel=0.02)
    assert spot["y"] + spot["height"] == pytest.approx(top + 600 / 960 * height, abs=12)
    assert spot["x"] == pytest.approx(left + width / 4, abs=12)


FLIGHTS = """() => {
    window.flights = [];
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (frames, options) {
        if (this.matches(".viewer-canvas")) flights.push(frames.map(({ transform }) => transform));
        return animate.call(this, frames, options);
    };
}"""


@pytest.mark.slow
def test_a_tile_grows_into_the_picture_and_back_where_motion_is_wanted(dashboard):
    second = dashboard.ids[1]
    page = dashboard.open("#/library")
    tile = page.locator(f"[data-photo='{second}']")
    expect(tile.locator("img[data-state=ready]")).to_be_visible()
    page.evaluate(FLIGHTS)
    for motion, flights in (("reduce", 0), ("no-preference", 2)):
        page.emulate_media(reduced_motion=motion)
        tile.click()
        shown(page, second)
        settled(page, "!document.querySelector('.flying')")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(tile).to_be_focused()
        assert page.evaluate("flights.length") == flights
    there, back = page.evaluate("flights")
    assert there == back[::-1]
    scales = [float(re.search(r"scale\(([\d.]+)\)", state)[1]) for state in there]
    assert scales[0] < scales[1]


def boxes_of(page):
    boxes = page.locator(".viewer-slide:not([inert]) .viewer-mark")
    expect(boxes.first).to_be_visible()
    return [boxes.nth(number).bounding_box() for number in range(boxes.count())]


def searched(dashboard, words, **options):
    """The results of a search."""
    page = dashboard.open("#/library", **options)
    page.locator("#search").fill(words)
    expect(page.get_by_text("1 found")).to_be_visible()
    return page


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_matches_of_a_search_are_marked_on_the_picture_and_can_be_hidden(dashboard, theme):
    first = dashboard.ids[0]
    line = next(one for one in lines(dashboard, first) if "booking" in one["text"])
    page = searched(dashboard, "boking", theme=theme)  # typos are found too
    page.locator(f"[data-photo='{first}']").first.click()
    shown(page, first)
    left, top, width, height = place(page)
    [mark] = boxes_of(page)
    assert left + line["left"] * width < mark["x"]  # behind the first word of the line
    assert mark["x"] + mark["width"] < left + (line["left"] + line["width"]) * width
    assert mark["y"] == pytest.approx(top + line["top"] * height, abs=2)
    assert mark["height"] == pytest.approx(line["height"] * height, abs=2)
    toggle = page.get_by_role("button", name="Mark the matches")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    toggle.click()
    expect(page.locator(".viewer-mark")).to_have_count(0)
    toggle.click()
    expect(page.locator(".viewer-mark")).to_have_count(1)


@pytest.mark.slow
def test_a_match_far_down_a_tall_picture_is_scrolled_into_view(dashboard):
    third = dashboard.ids[2]
    page = searched(dashboard, "lowest")
    page.locator(f"[data-photo='{third}']").first.click()
    shown(page, third)
    [mark] = boxes_of(page)
    assert 60 < mark["y"] < DESKTOP["height"] - mark["height"]
    assert place(page)[3] == 3600


# ---------------------------------------------------------------------------------------------------- details


@pytest.mark.slow
def test_the_panel_is_toggled_by_a_key_and_remembered(dashboard):
    first = dashboard.ids[0]
    page = opened(dashboard, first)
    panel = page.get_by_role("region", name="Details")
    for name, value in (("Device", "device"), ("Size", "540 × 960"), ("File name", "shot-0.png")):
        assert value in panel.locator(f"dt:text-is('{name}') + dd").inner_text() or name == "Device"
    expect(panel.get_by_role("link", name="https://trains.example.org/77")).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    assert panel.locator(".viewer-details").get_by_role("link").count() == 2
    left = place(page)[0]
    page.keyboard.press("i")
    expect(panel).to_be_hidden()
    settled(page, f"document.querySelector('.viewer-canvas').getBoundingClientRect().left > {left + 50}")
    page.reload()
    expect(page.locator(".viewer-slide[data-state=ready]").first).to_be_attached()
    expect(panel).to_be_hidden()
    page.get_by_role("button", name="Details", exact=True).click()
    expect(panel).to_be_visible()


@pytest.mark.slow
def test_the_sheet_has_three_heights_for_the_finger_and_the_keyboard(dashboard):
    page = on_phone(dashboard, dashboard.ids[1])
    handle = page.get_by_role("button", name="Details: show more or less")
    panel = page.get_by_role("region", name="Details")

    def height():
        page.wait_for_timeout(30)
        return panel.bounding_box()["height"]

    peek = height()
    assert peek < 100
    handle.focus()
    page.keyboard.press("ArrowUp")
    half = height()
    assert 0.3 < half / PHONE["height"] < 0.6
    _, top, _, picture_height = place(page)
    assert top + picture_height <= PHONE["height"] - half  # the picture is above it
    page.keyboard.press("Enter")
    full = height()
    assert full > PHONE["height"] * 0.85
    page.keyboard.press("Enter")
    assert height() == peek
    expect(panel.get_by_role("heading").first).not_to_be_in_viewport()
    fingers = Fingers(page)
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 10
    fingers.drag((x, y), (x, y - 620))
    assert height() == full
    fingers.drag((x, PHONE["height"] - full + 10), (x, y))
    eventually(lambda: height() < full, "the sheet is down")


@pytest.mark.slow
def test_a_result_appears_when_the_analysis_is_done_and_a_failure_can_be_repeated(dashboard):
    first = dashboard.ids[0]
    answers = []
    path = f"**/api/photos/{first}"

    def answer(route):
        fetched = route.fetch()
        body = fetched.json()
        if answers:
            body["analysis"] |= answers[0]
        route.fulfill(response=fetched, json=body)

    answers.append(
        {"status": "error", "error_message": "The model did not answer.", "title": "", "summary": ""}
    )
    page = dashboard.open("#/library")
    page.route(path, answer)
    page.route(f"**/api/analysis/{first}/reprocess", lambda route: route.fulfill(json={"message": "Queued"}))
    page.locator(f"[data-photo='{first}']").click()
    alert = page.get_by_role("alert").filter(has_text="The model did not answer.")
    expect(alert).to_be_visible()
    alert.get_by_role("button", name="Read again").click()
    expect(page.get_by_text("Not read yet. What it says")).to_be_visible()
    answers.clear()
    expect(page.get_by_role("dialog", name="Train to Hamburg")).to_be_visible()
    expect(page.get_by_text("Not read yet. What it says")).to_have_count(0)


@pytest.mark.slow
def test_a_picture_that_cannot_be_read_says_so_and_is_tried_again(dashboard):
    first = dashboard.ids[0]
    dashboard.tolerate("503|ERR_|decode")
    page = dashboard.open("#/library")
    path = f"**/api/photos/{first}/image"
    page.route(path, lambda route: route.fulfill(status=503, json={"detail": "A stored file is damaged."}))
    page.locator(f"[data-photo='{first}']").click()
    problem = page.locator(".viewer-problem [role=alert]")
    expect(problem).to_contain_text("A stored file is damaged.")
    page.unroute(path)
    page.route(path, lambda route: route.fulfill(body=b"no picture", content_type="image/png"))
    problem.get_by_role("button", name="Try again").click()
    expect(problem).to_contain_text("This picture cannot be shown.")
    page.unroute(path)
    problem.get_by_role("button", name="Try again").click()
    shown(page, first)


# ---------------------------------------------------------------------------------------------------- actions


@pytest.mark.slow
def test_the_picture_is_downloaded_copied_and_shared_as_a_file(dashboard):
    first = dashboard.ids[0]
    stub = """() => {
        navigator.canShare = ({ files }) => files.length > 0;
        navigator.share = async ({ files: [one] }) => { window.shared = [one.name, one.type]; };
    }"""
    page = dashboard.open("#/library", permissions=CLIPBOARD)
    page.evaluate(stub)
    page.locator(f"[data-photo='{first}']").click()
    shown(page, first)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "shot-0.png"
    page.get_by_role("button", name="Share").click()
    sharing = page.get_by_role("dialog", name="Share")
    sharing.get_by_role("button", name="Share…").click()
    settled(page, "window.shared")
    assert page.evaluate("shared") == ["screenshot.jpg", "image/jpeg"]  # without its name and metadata
    sharing.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Copy picture").click()
    expect(page.get_by_text("Picture copied")).to_be_visible()
    copied = page.evaluate(
        """async () => {
            const [item] = await navigator.clipboard.read();
            return [...new Uint8Array(await (await item.getType("image/png")).arrayBuffer())];
        }"""
    )
    assert Image.open(io.BytesIO(bytes(copied))).size == (540, 960)


@pytest.mark.slow
def test_without_a_clipboard_for_pictures_a_sentence_says_what_to_do(dashboard):
    page = opened(dashboard, dashboard.ids[0])
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="Copy picture").click()
    expect(page.get_by_text("Download the picture instead.")).to_be_visible()
    page.get_by_role("button", name="Share").click()
    sharing = page.get_by_role("dialog", name="Share")
    expect(sharing.get_by_role("button", name="Download")).to_be_visible()
    expect(sharing.get_by_role("button", name="Share…")).to_have_count(0)  # this browser has no Web Share


@pytest.mark.slow
def test_a_deletion_shows_the_next_one_and_can_be_undone(dashboard):
    first, second, _ = dashboard.ids
    page = from_list(dashboard, second)
    page.get_by_role("button", name="Delete (Del)").click()
    shown(page, first)
    expect(page.locator(f"[data-photo='{second}']")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(f"[data-photo='{second}']")).to_be_attached()
    page.keyboard.press("Escape")
    expect(page.locator(f"[data-photo='{second}']")).to_be_visible()


@pytest.mark.slow
def test_the_menu_is_walked_through_by_keys(dashboard):
    page = from_list(dashboard, dashboard.ids[0])
    page.get_by_role("button", name="More actions").click()
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("menuitem", name="Read again")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="More actions")).to_be_focused()


# --------------------------------------------------------------------------------------- everybody can use it


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "dark")])
def test_axe_finds_nothing_and_both_languages_are_complete(dashboard, axe, size, language, theme):
    touch = FINGERS if size is PHONE else {}
    page = opened(dashboard, dashboard.ids[0], size=size, language=language, theme=theme, **touch)
    name = {"en": "Details", "zh": "详细信息"}[language]
    if size is PHONE:
        page.get_by_role("button", name=name, exact=True).tap()
    expect(page.get_by_role("region", name=name).get_by_role("heading").first).to_be_in_viewport()
    assert barriers(page, axe) == []
    words = page.get_by_role("dialog").inner_text()
    assert not re.search(r"\b(?:viewer|details|sheet|entity|status|category|intent)\.[a-z]\w+", words)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.slow
def test_the_focus_stays_in_the_viewer(dashboard):
    page = opened(dashboard, dashboard.ids[0])
    for _ in range(40):
        page.keyboard.press("Tab")
        with contextlib.suppress(AssertionError):
            assert page.evaluate("document.activeElement === document.body")
            continue
        assert page.evaluate("!!document.activeElement.closest('dialog')")


def test_what_a_screenshot_says_is_a_card_whose_fields_are_shown_on_the_picture(dashboard):
    photo = dashboard.ids[0]
    said = [
        {
            "type": "TrainReservation",
            "fields": [
                {"name": "number", "value": "ICE 708"},
                {"name": "departureTime", "value": "2026-12-04T07:10"},
                {"name": "reservationId", "value": "448217", "text": "Code 448217"},
            ],
        },
        {
            "type": "Receipt",
            "fields": [
                {"name": "seller", "value": "Trains"},
                {"name": "total", "value": {"value": "23.8", "currency": "EUR"}},
                {"name": "items", "value": [{"name": "Ticket", "price": "20"}, {"name": "Seat"}]},
            ],
        },
    ]
    path = f"/api/photos/{photo}"
    assert dashboard.service.call("PATCH", path, json={"records": said}).ok
    try:
        page = opened(dashboard, photo)
        expect(page.locator(".fact-card strong")).to_contain_text("ICE 708 · Fri 4 Dec")
        train, receipt = page.locator(".record").all()
        expect(train.locator("h4")).to_have_text("Train")
        expect(train.locator("dt")).to_have_text(["Number", "Departs", "Booking"])
        expect(train.locator("dd").nth(1)).to_have_text(re.compile(r"Dec.* 2026.*7:10"))
        expect(receipt.locator("dd")).to_have_text(["Trains", "€23.80", "Ticket · 20\nSeat"])
        train.get_by_role("button", name="448217", exact=True).click()
        expect(page.locator(".viewer-slide:not([inert]) .viewer-marks:not(.dates) > *")).to_have_count(1)

        page = opened(dashboard, photo, language="zh")
        expect(page.locator(".record h4")).to_have_text(["火车", "收据"])
    finally:
        dashboard.service.call("PATCH", path, json={"records": None})
