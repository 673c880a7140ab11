"""The library of the dashboard: search, what is new, filters, the timeline with its scrubber, results, and
screenshots on their way in; by mouse, finger and keyboard, by the thousand, and with hostile words in them.
"""

import itertools
import re
import threading
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import PATIENCE, eventually
from tests.support.thousands import in_database, multiply

MANY = 5_000
FEW_NODES = 800  # in the whole document, however many screenshots there are
FINGERS = {"has_touch": True, "is_mobile": True}
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("library"), llm) as dashboard:
        yield dashboard


@pytest.fixture
def dashboard(shared):
    """One service for the tests that begin with no photo in it."""
    yield shared
    shared.begin_anew()
    shared.findings.clear()
    for photo in list(shared.service.photos()):
        assert shared.service.call("DELETE", f"/api/photos/{photo['id']}").ok


@pytest.fixture(scope="module")
def thousands(chromium, tmp_path_factory):
    """A service with `MANY` screenshots, taken over three years, some in each month."""
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("thousands"), llm) as dashboard:
        [photo] = stored(dashboard, "one", device_id="many")
        step = timedelta(days=1095) / MANY
        # By id the oldest is in the middle: the order of the list is not the order of the ids.
        moments = [NOON - ((2 * number) % MANY + number // (MANY // 2)) * step for number in range(MANY)]
        multiply(dashboard.service.data, photo, moments)
        yield dashboard


@pytest.fixture
def many(thousands):
    yield thousands
    thousands.begin_anew()


def stored(dashboard, *texts, **fields):
    """Upload a drawn screenshot for each text, analysed one after the other with the queued answers."""
    photos = [
        dashboard.service.upload(draw(text), f"shot-{number}.png", **fields)
        for number, text in enumerate(texts)
    ]
    dashboard.service.wait_until_analysed()
    return [photo["id"] for photo in photos]


def taken(moment):
    return str(int(moment.timestamp() * 1000))


def cards(page):
    return page.locator(".timeline .photo-card")


def hits(page):
    return page.locator(".result")


def at(place):
    return f".photo-place[aria-posinset='{place}'] .photo-card"


def days(page):
    return page.locator(".timeline-day").all_inner_texts()


# --------------------------------------------------------------------------------------------------- timeline


@pytest.mark.slow
def test_pictures_are_headed_by_month_and_day_in_the_order_in_which_they_were_taken(dashboard):
    last_year = NOON.replace(year=NOON.year - 1, month=3, day=4)
    # Not uploaded in this order.
    for moment, text in (
        (last_year, "old"),
        (NOON, "noon"),
        (NOON - timedelta(days=1), "yesterday"),
        (NOON - timedelta(hours=1), "before noon"),
    ):
        dashboard.findings.append({**FINDINGS, "summary": text, "title": text})
        stored(dashboard, text, original_timestamp=taken(moment))
    page = dashboard.open("#/library", timezone_id="UTC")
    expect(cards(page)).to_have_count(4)
    titles = cards(page).evaluate_all("(cards) => cards.map((card) => card.dataset.caption.split('\\n')[0])")
    assert titles == ["noon", "before noon", "yesterday", "old"]
    assert page.locator(f"{at(1)} img").get_attribute("alt") == "noon"
    assert days(page)[:2] == ["Today", "Yesterday"]
    assert f"4 Mar {last_year.year}" in days(page)[2]
    expect(page.get_by_text("4 screenshots", exact=True)).to_be_visible()
    page = dashboard.open("#/library", language="zh", timezone_id="UTC")
    expect(cards(page)).to_have_count(4)
    assert days(page)[:2] == ["今天", "昨天"]


@pytest.mark.slow
def test_a_picture_belongs_to_the_month_and_day_of_the_persons_own_clock(dashboard):
    """The service counts months in UTC: in Shanghai, the first hours of a month are in the one before."""
    [photo] = stored(dashboard, "one")
    early = datetime(2024, 10, 31, 20, tzinfo=UTC)
    moments = [datetime(2024, 11, 20, tzinfo=UTC)] * 20 + [early] + [early - timedelta(days=9)] * 20
    multiply(dashboard.service.data, photo, moments)
    counted = dashboard.service.get("/api/photos/timeline")["months"]
    assert [month["photos"] for month in counted] == [20, 21]
    for language, zone, months, day, place in (
        ("en", "Asia/Shanghai", ["November 2024", "October 2024"], r"\b1 Nov(ember)? 2024", 21),
        ("zh", "Asia/Shanghai", ["2024年11月", "2024年10月"], "2024年11月1日", 21),
        ("en", "Europe/London", ["November 2024", "October 2024"], r"\b31 Oct(ober)? 2024", 21),
    ):
        page = dashboard.open("#/library", language=language, timezone_id=zone)
        expect(page.locator(at(place))).to_be_visible()
        assert page.locator(".timeline-month").all_inner_texts() == months
        heading = page.locator(".timeline-day", has_text=re.compile(day))
        drawn = (heading, page.locator(at(place)), page.locator(".timeline-month").nth(1))

        def boxes(drawn=drawn):  # None while the timeline is drawn anew
            try:
                found = [element.bounding_box(timeout=1_000) for element in drawn]
            except PlaywrightTimeoutError:
                return None
            return found if all(found) else None

        of_day, of_tile, of_second = eventually(boxes, "the timeline is drawn")
        assert of_day["x"] == pytest.approx(of_tile["x"], abs=2)
        assert (of_tile["y"] < of_second["y"]) == (zone == "Asia/Shanghai")


@pytest.mark.slow
def test_thousands_scroll_with_few_elements_and_only_the_pictures_in_view(many):
    page = many.open("#/library")
    pictures = []
    page.on("request", lambda request: pictures.append(1) if request.url.endswith("/thumbnail") else None)
    expect(page.get_by_text("5,000 screenshots")).to_be_visible()
    expect(cards(page).first).to_be_visible()
    longest = page.evaluate(
        """async () => {
            const frame = () => new Promise(requestAnimationFrame);
            let most = 0;
            for (let step = 0; step <= 40; step += 1) {
                window.scrollTo(0, (document.documentElement.scrollHeight * step) / 40);
                await frame();
                most = Math.max(most, document.getElementsByTagName('*').length);
            }
            return most;
        }"""
    )
    assert longest < FEW_NODES
    expect(page.locator(at(MANY))).to_be_attached()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.locator(at(MANY))).to_be_in_viewport()
    settled(page, f'document.querySelector("{at(MANY)} img").naturalWidth > 0')
    assert len(pictures) < MANY / 3


@pytest.mark.slow
def test_what_is_on_the_screen_stays_where_it_is_while_rows_above_become_known(many):
    page = many.open("#/library")
    expect(cards(page).first).to_be_visible()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    page.wait_for_timeout(200)
    settled(page, "document.querySelector('.photo-card') && !document.querySelector('.photo-waiting')")
    worst = page.evaluate(
        """async () => {
            const pause = () => new Promise((done) => setTimeout(done, 30));
            let worst = 0;
            for (let step = 0; step < 60; step += 1) {
                const tile = [...document.querySelectorAll('.photo-card')].find((card) => card.getBoundingClientRect().top > 250);
                const before = tile.getBoundingClientRect().top;
                scrollBy(0, -90);
                await pause();
                if (tile.isConnected) worst = Math.max(worst, Math.abs(tile.getBoundingClientRect().top - before - 90));
            }
            return worst;
        }"""  # noqa: E501
    )
    assert worst <= 6  # of 215: a row that is known in part has an estimated height


@pytest.mark.slow
def test_the_keyboard_walks_through_thousands_and_they_close_up_after_a_deletion(many):
    page = many.open("#/library")
    expect(cards(page).first).to_be_visible()
    above, below = rows_of(page)[:2]
    centre = above[1]["x"] + above[1]["width"] / 2
    nearest = max(place for place, box in enumerate(below, len(above) + 1) if box["x"] <= centre)
    cards(page).first.focus()
    for key, place in (
        ("ArrowRight", 2),
        ("ArrowDown", nearest),
        ("End", MANY),
        ("Home", 1),
        ("ArrowLeft", 1),
    ):
        page.keyboard.press(key)
        expect(page.locator(at(place))).to_be_focused()
        expect(page.locator(at(place))).to_be_in_viewport()
    page.keyboard.press("PageDown")
    expect(page.locator(at(1))).not_to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Delete")
    expect(page.locator(".photo-place[aria-setsize='4999']").first).to_be_attached()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".photo-place[aria-setsize='5000']").first).to_be_attached()
    settled(page, "!document.querySelector('.photo-waiting')")


@pytest.mark.slow
def test_the_scrubber_jumps_to_a_month_by_mouse_and_keyboard(many):
    page = many.open("#/library")
    slider = page.get_by_role("slider", name="Month")
    expect(slider).to_be_visible()
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] / 2, steps=4)
    bubble = page.locator(".scrubber-bubble")
    expect(bubble).to_have_css("opacity", "1")
    halfway = NOON - timedelta(days=547)
    near = {f"{halfway + timedelta(days=31 * step):%B %Y}" for step in (-2, -1, 0, 1, 2)}
    assert bubble.inner_text() in near
    page.mouse.up()
    settled(page, "(near) => near.includes(document.querySelector('.scrubber').ariaValueText)", sorted(near))
    settled(page, "!document.querySelector('.photo-waiting')")
    slider.focus()
    page.keyboard.press("End")
    # The month at the top of the window, where the last one may be a few days at the bottom.
    last = "({ariaValueNow, ariaValueMax}) => Number(ariaValueNow) >= Number(ariaValueMax) - 1"
    settled(page, f"({last})(document.querySelector('.scrubber'))")
    before = slider.get_attribute("aria-valuenow")
    page.keyboard.press("PageUp")
    settled(
        page, "(before) => Number(document.querySelector('.scrubber').ariaValueNow) < before", int(before)
    )
    page.keyboard.press("Home")
    settled(page, "document.querySelector('.scrubber').ariaValueNow === '0'")
    page.keyboard.press("ArrowDown")
    settled(page, "document.querySelector('.scrubber').ariaValueNow === '1'")


@pytest.mark.slow
def test_a_finger_drags_the_scrubber_and_still_taps_the_pictures(many):
    page = many.open("#/library", size=PHONE, **FINGERS)
    expect(cards(page).first).to_be_visible()
    assert len(rows_of(page)[0]) == 2
    touch = page.context.new_cdp_session(page)

    def move(kind, *points):
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    box = {}

    def grips():
        """It appears while the page scrolls, and stays for a moment, which may be over on a busy machine."""
        box.update(
            page.evaluate(
                """async () => {
                    scrollTo(0, scrollY === 3000 ? 3010 : 3000);
                    for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
                    return document.querySelector('.scrubber-thumb').getBoundingClientRect().toJSON();
                }"""
            )
        )
        move("touchStart", {"x": box["x"] + 20, "y": box["y"] + box["height"] / 2})
        if page.locator(".scrubber.dragged").count():
            return True
        move("touchCancel")
        return False

    eventually(grips, "the finger has the scrubber's thumb")
    x, y = box["x"] + 20, box["y"] + box["height"] / 2
    assert box["height"] >= 44
    for step in range(1, 6):
        move("touchMove", {"x": x, "y": y + 60 * step})
    expect(page.locator(".scrubber-bubble")).to_have_css("opacity", "1")
    assert page.evaluate("scrollY") > 50_000
    move("touchEnd")
    settled(page, "document.querySelector('.photo-card') && !document.querySelector('.photo-waiting')")
    expect(page.locator(".scrubber")).to_have_css("opacity", "0")

    def opens():
        """Tap a picture where the scrubber was. While rows become known, it may move away from the finger."""
        tiles = page.locator(".photo-card").evaluate_all(
            "(tiles) => tiles.map((tile) => tile.getBoundingClientRect().toJSON())"
        )
        boxes = [box for box in tiles if box["x"] > 150 and 150 < box["y"] < 700]
        page.touchscreen.tap(375, boxes[0]["y"] + 40)
        page.wait_for_timeout(500)
        return page.get_by_role("dialog").is_visible()

    eventually(opens, "a tap opens the picture")


@pytest.mark.slow
def test_a_picture_opened_by_its_address_has_its_place_in_the_whole_list(many):
    photo = many.service.get("/api/photos", order="taken", page=42, page_size=60)["items"][30]["id"]
    page = many.open(f"#/photo/{photo}")
    expect(page.get_by_role("dialog")).to_contain_text("2,491 of 5,000")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog")).to_contain_text("2,492 of 5,000")
    page.keyboard.press("Escape")
    expect(page.locator(at(2492))).to_be_focused()
    expect(page.locator(at(2492))).to_be_in_viewport()
    assert page.url.endswith("#/library")


# --------------------------------------------------------------------------------------- search and its hits


@pytest.mark.slow
def test_the_search_is_focused_by_slash_from_anywhere_and_cleared_by_escape(dashboard):
    stored(dashboard, "one")
    page = dashboard.open("#/library")
    search = page.locator("#search")
    expect(cards(page)).to_have_count(1)
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("a/b")
    expect(search).to_have_value("a/b")
    page.keyboard.press("Escape")
    expect(search).to_have_value("")
    expect(cards(page)).to_have_count(1)
    assert page.url.endswith("#/library")
    page.evaluate("location.hash = '#/chat'")
    expect(page.get_by_role("textbox").first).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    cards(page).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.slow
def test_search_answers_as_one_types_marks_the_words_and_survives_a_reload(dashboard):
    for app, text in (
        ("Clinic", "Dentist appointment on Friday"),
        ("Rail", "Train to Hamburg, platform 7"),
        ("银行", "账单已出,请查看"),
    ):
        dashboard.findings.append(
            {
                **FINDINGS,
                "app_name": app,
                "summary": text,
                "visible_text": text,
                "entities": [],
                "memories": [],
            }
        )
    stored(dashboard, "one", "two", "three")
    page = dashboard.open("#/library")
    expect(cards(page)).to_have_count(3)
    search = page.locator("#search")
    search.press_sequentially("hamburg train", delay=15)
    expect(hits(page)).to_have_count(1)
    expect(page.get_by_text("1 found")).to_be_visible()
    assert set(hits(page).locator("mark").all_inner_texts()) == {"Train", "Hamburg"}
    search.fill("账单")
    expect(hits(page).locator("mark").first).to_have_text("账单")
    page.reload()
    expect(search).to_have_value("账单")
    expect(hits(page)).to_have_count(1)
    search.fill("zeppelin")
    expect(page.get_by_role("heading", name="Nothing found for “zeppelin”")).to_be_visible()
    expect(page.get_by_role("button", name="Clear filters")).to_have_count(0)
    search.fill("")
    expect(cards(page)).to_have_count(3)


@pytest.mark.slow
def test_the_part_of_a_hit_is_cut_from_the_original(dashboard):
    stored(dashboard, "Your book is due on Friday")
    page = dashboard.open("#/library?q=book")
    expect(hits(page)).to_have_count(1)
    sharp = page.locator(".result .sharp[data-state=ready]")
    expect(sharp).to_have_count(1)
    assert sharp.evaluate("(image) => image.naturalWidth") == 540  # its thumbnail has 288


@pytest.mark.slow
def test_an_answer_to_an_older_search_is_ignored(dashboard):
    for text in ("Dentist on Friday", "Train to Hamburg"):
        dashboard.findings.append({**FINDINGS, "summary": text, "visible_text": text})
    stored(dashboard, "one", "two")
    page = dashboard.open("#/library")
    expect(cards(page)).to_have_count(2)
    held = []
    page.route("**/api/search?*q=dentist*", lambda route: held.append(route))
    page.locator("#search").fill("dentist")
    eventually(lambda: page.wait_for_timeout(10) or held, "the first search is under way")
    page.locator("#search").fill("hamburg")
    expect(hits(page)).to_contain_text(["Train to Hamburg"])
    held[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(hits(page)).to_contain_text(["Train to Hamburg"])


@pytest.mark.slow
def test_results_are_ordered_by_match_or_date_and_the_viewer_turns_in_that_order(dashboard):
    ids = []
    for text, days_ago in (("Book", 5), ("Book and more words around the book of books", 1), ("A book", 9)):
        dashboard.findings.append({**FINDINGS, "summary": text, "visible_text": text, "title": text})
        ids += stored(dashboard, text, original_timestamp=taken(NOON - timedelta(days=days_ago)))
    page = dashboard.open("#/library?q=book")
    expect(hits(page)).to_have_count(3)
    page.get_by_role("button", name="By date").click()
    expect(page.get_by_role("button", name="By date")).to_have_attribute("aria-pressed", "true")
    expect(hits(page)).to_have_count(3)
    order = hits(page).evaluate_all("(hits) => hits.map((hit) => Number(hit.dataset.photo))")
    assert order == [ids[1], ids[0], ids[2]]
    assert "order=taken" in page.url
    hits(page).first.focus()
    page.keyboard.press("ArrowRight")
    expect(hits(page).nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("2 of 3")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("dialog")).to_contain_text("3 of 3")
    page.keyboard.press("Escape")
    expect(hits(page).nth(2)).to_be_focused()


# ---------------------------------------------------------------------------------- filters and what is new


@pytest.mark.slow
def test_filters_are_chips_only_those_that_can_narrow_and_are_kept_in_the_address(dashboard):
    page = dashboard.open("#/library")
    expect(page.locator(".first-steps")).to_be_visible()
    expect(page.locator(".filter")).to_have_count(0)
    stored(dashboard, "phone one", "phone two", device_id="phone", device_name="Pixel")
    page.reload()
    expect(cards(page)).to_have_count(2)
    expect(page.get_by_label("Time")).to_be_visible()
    for name in ("App", "Type", "Purpose", "Status"):  # the same for both
        expect(page.get_by_label(name, exact=True)).to_have_count(0)
    dashboard.findings.append({**FINDINGS, "app_name": "Bank", "content_category": "finance"})
    stored(dashboard, "tablet", device_id="tablet")
    in_database(
        dashboard.service.data,
        lambda execute: execute("UPDATE analyses SET status = 'error' WHERE device_id = 'tablet'"),
    )
    page.reload()
    expect(cards(page)).to_have_count(3)
    expect(page.locator(".photo-sign.error")).to_have_count(1)
    page.get_by_label("Device").select_option("Pixel")
    expect(cards(page)).to_have_count(2)
    assert "device=phone" in page.url
    page.get_by_label("Status").select_option("Failed (1)")
    expect(page.get_by_text("No screenshots match")).to_be_visible()
    page.get_by_role("button", name="Remove the filter Device: Pixel").click()
    expect(cards(page)).to_have_count(1)
    page.reload()
    expect(cards(page)).to_have_count(1)
    page.get_by_role("button", name="Remove the filter Status: Failed").click()
    expect(cards(page)).to_have_count(3)
    page.get_by_role("button", name="Show only Bank (1)").click()
    expect(cards(page)).to_have_count(1)
    assert "app=Bank" in page.url
    expect(page.get_by_role("button", name="Remove the filter App: Bank")).to_be_visible()


@pytest.mark.slow
def test_what_is_searched_can_be_narrowed_by_time_and_type(dashboard):
    dashboard.findings.append({**FINDINGS, "content_category": "finance", "intent": "note"})
    stored(dashboard, "old", original_timestamp="1700000000000")
    stored(dashboard, "new")
    page = dashboard.open("#/library?q=book")
    expect(hits(page)).to_have_count(2)
    page.get_by_label("Time").select_option("Last 7 days")
    expect(hits(page)).to_have_count(1)
    page.get_by_role("button", name="Remove the filter Time").click()
    page.get_by_label("Time").select_option("Between dates…")
    page.get_by_label("Until").fill("2023-12-31")
    expect(hits(page)).to_have_count(1)
    page.get_by_label("From").fill("2023-12-01")
    expect(page.get_by_text("that fits the filters")).to_be_visible()
    page.locator("main").get_by_role("button", name="Clear filters").click()
    expect(hits(page)).to_have_count(2)
    page.get_by_label("Type").select_option("Finance (1)")
    expect(hits(page)).to_have_count(1)
    page.locator("#search").fill("")
    expect(cards(page)).to_have_count(1)


NOTE = (
    "INSERT INTO dynamics (title, summary, content, category, confidence, is_read, is_pinned,"
    " device_id, source_photo_ids, source_conversation_ids, created_at, changed_at)"
    " VALUES ('Dentist on Friday', 'Bring the card', '', 'reminder', 1, 0, 0, '', '[]', '[]', ?1, ?1)"
)


@pytest.mark.slow
def test_what_is_being_read_is_above_the_pictures_and_unread_notes_are_counted_in_the_navigation(dashboard):
    stored(dashboard, "Number 1")
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.000}"
    in_database(dashboard.service.data, lambda execute: execute(NOTE, (now,)))
    page = dashboard.open("#/library")
    notes = page.get_by_role("link", name="1 unread Notes")
    expect(notes).to_be_visible()
    seen = threading.Event()
    dashboard.findings.append(lambda: seen.wait(PATIENCE) and FINDINGS)
    dashboard.service.upload(draw("Number 2"), "shot-2.png")
    page.reload()  # by itself it looks for uploads of other devices every 15 s
    queue = page.get_by_role("progressbar", name="Reading")
    expect(queue).to_be_visible()
    expect(page.locator(".news")).to_contain_text("Searchable: 1 of 2")
    expect(page.locator(".photo-sign.processing, .photo-sign.pending")).to_have_count(1)
    page.locator("#search").fill("book")
    expect(hits(page)).to_have_count(1)
    expect(queue).to_be_hidden()
    page.keyboard.press("Escape")
    seen.set()
    expect(queue).to_have_count(0)
    expect(page.locator(".photo-sign")).to_have_count(0)
    notes.click()
    expect(page.get_by_role("heading", name="Dentist on Friday")).to_be_visible()
    in_database(dashboard.service.data, lambda execute: execute("DELETE FROM dynamics"))


PASSWORD = {**FINDINGS, "visible_text": "Wi-Fi\nNetwork: Attic\nPassword: Kq7!mzR2pw"}


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_the_first_picture_begins_within_200_px_with_all_that_can_be_said_above_it(dashboard, size):
    """The question how long to keep things, the progress of reading, dates, tables, and a saved search."""
    dashboard.findings.append(PASSWORD)
    dashboard.findings.append({**FINDINGS, "app_name": "Bank", "content_category": "finance"})
    stored(dashboard, "one", "two", "three")
    seen = threading.Event()
    dashboard.findings.append(lambda: seen.wait(PATIENCE) and FINDINGS)
    dashboard.service.upload(draw("four"), "shot-4.png")
    search = dashboard.service.call("POST", "/api/searches", json={"name": "Books", "query": "book"}).json()
    try:
        page = dashboard.open("#/library", size=size)
        expect(cards(page)).to_have_count(4)
        expect(page.locator(".keeping")).to_be_visible()
        expect(page.locator(".reading")).to_be_visible()
        expect(page.locator(".saved-search")).to_be_attached()
        expect(page.locator(".library-browse .filter").first).to_be_attached()
        expect(page.locator(".held")).to_be_visible()
        tops = cards(page).evaluate_all("(all) => all.map((card) => card.getBoundingClientRect().top)")
        assert min(tops) <= 200
    finally:
        seen.set()
        assert dashboard.service.call("DELETE", f"/api/searches/{search['id']}").ok


# --------------------------------------------------------------------------------------------- justified rows


SHAPES = ((900, 1950), (1950, 900), (1200, 1200), (3000, 600))


def rows_of(page):
    """The tiles by row: of each its width and height."""
    settled(page, "!document.querySelector('.photo-waiting')")
    boxes = cards(page).evaluate_all("(all) => all.map((card) => card.getBoundingClientRect().toJSON())")
    rows = {}
    for box in sorted(boxes, key=lambda box: (box["y"], box["x"])):
        rows.setdefault(round(box["y"]), []).append(box)
    return [rows[y] for y in sorted(rows)]


@pytest.fixture
def shaped(dashboard):
    """Twelve screenshots of one day: tall, wide, square and very wide ones, three of each."""
    for number in range(12):
        picture = draw(f"shape {number}", size=SHAPES[number % 4])
        moment = NOON - timedelta(minutes=number)
        dashboard.service.upload(picture, f"{number}.png", original_timestamp=taken(moment))
    dashboard.service.wait_until_analysed()
    return dashboard


@pytest.mark.slow
def test_rows_are_filled_by_pictures_of_one_height_in_their_true_widths(shaped):
    for size, least, most in ((DESKTOP, 150, 330), ({"width": 2560, "height": 1440}, 150, 400)):
        page = shaped.open("#/library", size=size)
        expect(cards(page)).to_have_count(12)
        rows = rows_of(page)
        assert len(rows) > 1
        ratios = []
        for row in rows:
            assert least < row[0]["height"] < most
            assert {round(box["height"]) for box in row} == {round(row[0]["height"])}
            for one, other in itertools.pairwise(row):
                assert other["x"] - one["x"] - one["width"] == pytest.approx(4, abs=1.1)
            ratios += [box["width"] / box["height"] for box in row]
        wanted = [1 / 1.4, 2, 1, 2] * 3  # taller than 1:1.4 and wider than 2:1 is cropped
        assert ratios == pytest.approx(wanted, rel=0.02)
        ends = {round(row[-1]["x"] + row[-1]["width"]) for row in rows[:-1]}
        assert max(ends) - min(ends) <= 1


@pytest.mark.slow
def test_the_first_row_is_not_smaller_on_a_larger_screen(many):
    heights = []
    for width in (1440, 2560):
        page = many.open("#/library", size={"width": width, "height": 1440})
        expect(cards(page).first).to_be_visible()
        heights += [rows_of(page)[0][0]["height"]]
    assert 190 <= heights[0] <= heights[1] <= 300


@pytest.mark.slow
def test_a_phone_has_two_columns_with_captions_or_three_without(many):
    page = many.open("#/library", size=PHONE, **FINGERS)
    caption = page.locator(".photo-caption").first
    expect(caption).to_be_visible()
    assert len(rows_of(page)[0]) == 2
    page.get_by_role("button", name="More").first.click()
    page.get_by_role("menuitem", name="Hide captions").click()
    expect(page.locator(".photo-caption")).to_have_count(0)
    assert len(rows_of(page)[0]) == 3
    page.reload()
    expect(cards(page).first).to_be_visible()
    expect(page.locator(".photo-caption")).to_have_count(0)
    page.get_by_role("button", name="More").first.click()
    page.get_by_role("menuitem", name="Show captions").click()
    expect(caption).to_contain_text("Mail")


# -------------------------------------------------------------------------------- screenshots on their way in


def files(*names):
    return [{"name": name, "mimeType": "image/png", "buffer": draw(name)} for name in names]


def pick(page, chosen):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files(chosen)


@pytest.mark.slow
def test_picked_screenshots_appear_once_and_refused_ones_are_named(dashboard):
    dashboard.tolerate("400")
    page = dashboard.open("#/library")
    expect(page.locator(".first-steps")).to_be_visible()
    words = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}
    pick(page, [*files("first.png", "second.png"), words])
    expect(page.get_by_text("Not a JPEG, PNG, WebP, GIF, HEIC or AVIF file")).to_be_visible()
    expect(cards(page)).to_have_count(2)
    damaged = {"name": "damaged.png", "mimeType": "image/png", "buffer": draw("damaged")[:60]}
    with page.expect_response("**/api/photos/upload"):
        pick(page, damaged)
    expect(page.locator(".upload[data-phase=failed]")).to_have_count(2)
    expect(page.get_by_role("button", name="again")).to_have_count(0)  # it would fail again
    settled(page, "[...document.querySelectorAll('.timeline img')].every((image) => image.naturalWidth > 0)")
    pick(page, files("first.png"))
    expect(page.get_by_role("region", name="Uploads").get_by_role("status")).to_contain_text("3 of 5 done")
    assert [photo["device_id"] for photo in dashboard.service.photos()] == ["dashboard"] * 2


@pytest.mark.slow
def test_screenshots_can_be_dropped_and_pasted(dashboard):
    page = dashboard.open("#/library")
    expect(page.locator(".first-steps")).to_be_visible()
    send = """([bytes, type, name]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
        const data = type === "paste" ? { clipboardData: transfer } : { dataTransfer: transfer };
        const kind = type === "paste" ? ClipboardEvent : DragEvent;
        const event = new kind(type, { ...data, bubbles: true, cancelable: true });
        document.querySelector("main").dispatchEvent(event);
    }"""
    page.evaluate(send, [list(draw("dropped")), "dragenter", "dropped.png"])
    expect(page.locator(".view.dropping")).to_be_visible()
    page.evaluate(send, [list(draw("dropped")), "drop", "dropped.png"])
    expect(page.locator(".view.dropping")).to_have_count(0)
    page.evaluate(send, [list(draw("pasted")), "paste", "image.png"])
    expect(cards(page)).to_have_count(2)
    assert {photo["filename"] for photo in dashboard.service.photos()} == {"dropped.png", "image.png"}


@pytest.mark.slow
def test_at_most_three_are_sent_at_once_and_what_breaks_is_tried_again(dashboard):
    dashboard.tolerate("ERR_FAILED")
    page = dashboard.open("#/library")
    under_way, most, broken = set(), 0, []

    def hold(route):
        nonlocal most
        under_way.add(route)
        most = max(most, len(under_way))

    page.route("**/api/photos/upload", hold)
    pick(page, files(*(f"{number}.png" for number in range(5))))
    eventually(lambda: page.wait_for_timeout(10) or len(under_way) == 3, "three uploads begin")
    page.get_by_role("button", name="Show the list").click()
    expect(page.locator(".upload")).to_have_count(5)
    broken.append(under_way.pop())
    broken[0].abort()
    expect(page.get_by_text("Retrying in 1 s")).to_be_visible()
    finished = 0
    while finished < 5:
        eventually(lambda: page.wait_for_timeout(10) or under_way, "another upload begins")
        under_way.pop().continue_()
        finished += 1
    expect(cards(page)).to_have_count(5)
    assert most == 3


@pytest.mark.slow
def test_an_upload_that_the_service_refuses_says_why_and_can_be_sent_again(dashboard):
    dashboard.tolerate("507")
    page = dashboard.open("#/library")
    page.route(
        "**/api/photos/upload", lambda route: route.fulfill(status=507, json={"detail": "The disk is full."})
    )
    pick(page, files("shot.png"))
    expect(page.locator(".upload-state")).to_contain_text("The disk is full.")
    page.unroute("**/api/photos/upload")
    page.get_by_role("button", name="Upload shot.png again").click()
    expect(cards(page)).to_have_count(1)


# ---------------------------------------------------------------------------- the whole, failures, hostility


@pytest.mark.slow
def test_a_phone_keeps_its_screen_for_the_pictures(dashboard):
    stored(dashboard, "one", original_timestamp="1700000000000")
    dashboard.findings.append({**FINDINGS, "app_name": "Bank", "content_category": "finance"})
    stored(dashboard, "two")
    page = dashboard.open("#/library", size=PHONE, **FINGERS)
    expect(page.locator(".library-filters .filter").first).to_be_visible()
    assert page.locator(".library-head").bounding_box()["height"] <= 120
    page.evaluate("document.querySelector('.library-body').style.minHeight = '3000px'; scrollTo(0, 900)")
    assert page.locator(".library-head").bounding_box()["y"] == 0
    expect(page.locator("#search")).to_be_in_viewport()
    controls = page.locator(".library-head :is(button:not(.search-clear), select, input)")
    heights = controls.evaluate_all("(all) => all.map((control) => control.getBoundingClientRect().height)")
    assert min(heights) >= 40


@pytest.mark.slow
def test_a_list_that_cannot_be_loaded_says_why_and_tries_again(dashboard):
    dashboard.tolerate("503")
    stored(dashboard, "one")
    page = dashboard.open("#/settings")
    page.route(
        "**/api/photos/timeline*",
        lambda route: route.fulfill(
            status=503, json={"detail": "The database is busy."}, headers={"Retry-After": "5"}
        ),
    )
    page.evaluate("location.hash = '#/library'")
    expect(page.get_by_role("alert")).to_contain_text("The database is busy. Try again in 5 s.")
    page.unroute("**/api/photos/timeline*")
    page.get_by_role("button", name="Try again").click()
    expect(cards(page)).to_have_count(1)


@pytest.mark.slow
def test_script_in_a_screenshot_runs_nothing(dashboard):
    attack = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    hostile = {
        "app_name": attack,
        "summary": f"{attack} in the summary",
        "visible_text": f"{attack} in the text",
        "entities": [
            {"type": "link", "value": "javascript:document.title='run'"},
            {"type": attack, "value": attack},
        ],
    }
    stored(dashboard, "plain")
    dashboard.findings.append({**FINDINGS, **hostile})
    dashboard.service.upload(draw(attack), f"{attack}.png", device_id="phone", device_name=attack)
    dashboard.service.wait_until_analysed()
    page = dashboard.open("#/library")
    expect(page.get_by_label("App", exact=True)).to_contain_text("onerror")
    page.locator("#search").fill("<script> onerror")
    expect(hits(page)).to_contain_text("onerror")
    hits(page).click()
    expect(page.get_by_role("dialog")).to_contain_text("in the summary")
    assert page.get_by_role("dialog").locator("a[href^=javascript]").count() == 0
    assert page.locator("img[src=x], body script:not([type=module])").count() == 0
    assert page.title() != "run"
