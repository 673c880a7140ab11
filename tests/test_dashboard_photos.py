"""Screenshots in the dashboard: sending, finding, looking at and deleting them, by the thousand, and with
hostile words in them.
"""

import json
import os
import re
import threading

import pytest
from playwright.sync_api import expect

import database
from database import db
from settings import Settings
from tests.support.browser import Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import PATIENCE, eventually

MANY = 5_000
FEW_NODES = 2_500  # in the whole document, however long the grid is


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("photos"), llm) as dashboard:
        yield dashboard


@pytest.fixture
def dashboard(shared):
    """One service for all tests here, which begin with no photo in it."""
    yield shared
    shared.begin_anew()
    shared.findings.clear()
    for photo in list(shared.service.photos()):
        shared.service.call("DELETE", f"/api/photos/{photo['id']}")


def stored(dashboard, *texts, **fields):
    """Upload a drawn screenshot for each text, analysed one after the other with the queued answers."""
    photos = [
        dashboard.service.upload(draw(text), f"shot-{number}.png", **fields)
        for number, text in enumerate(texts)
    ]
    dashboard.service.wait_until_analysed()
    return [photo["id"] for photo in photos]


def cards(page):
    return page.locator(".photo-grid .photo-card")


def files(*names):
    return [{"name": name, "mimeType": "image/png", "buffer": draw(name)} for name in names]


def pick(page, chosen):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files(chosen)


def upload_states(page):
    return page.locator(".upload-state")


# ----------------------------------------------------------------------------------------------------- upload


def test_picked_screenshots_are_sent_analysed_and_stored_once(dashboard):
    page = dashboard.open("#/photos")
    expect(page.get_by_text("No screenshots yet")).to_be_visible()
    pick(
        page,
        [
            *files("first.png", "second.png"),
            {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"},
        ],
    )
    expect(upload_states(page)).to_have_text(["Saved", "Saved", "Not a JPEG, PNG, WebP or GIF file"])
    expect(cards(page)).to_have_count(2)
    expect(cards(page).first).to_contain_text("library book")
    settled(
        page, "[...document.querySelectorAll('.photo-grid img')].every((image) => image.naturalWidth > 0)"
    )
    pick(page, files("first.png"))
    expect(upload_states(page).last).to_have_text("Already saved")
    expect(page.get_by_role("status").filter(has_text="of 4 done")).to_have_text("3 of 4 done")
    assert [photo["device_id"] for photo in dashboard.service.photos()] == ["dashboard"] * 2
    page.get_by_role("button", name="Close the list").click()
    expect(page.get_by_role("region", name="Uploads")).to_have_count(0)


def test_screenshots_can_be_dropped_and_pasted(dashboard):
    page = dashboard.open("#/photos")
    expect(page.get_by_text("No screenshots yet")).to_be_visible()
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
    expect(upload_states(page)).to_have_text(["Saved", "Saved"])
    assert {photo["filename"] for photo in dashboard.service.photos()} == {"dropped.png", "image.png"}


def test_at_most_three_are_sent_at_once_and_what_breaks_is_tried_again(dashboard):
    dashboard.tolerate("ERR_FAILED")
    page = dashboard.open("#/photos")
    under_way, most, broken = set(), 0, []

    def hold(route):
        nonlocal most
        under_way.add(route)
        most = max(most, len(under_way))

    page.route("**/api/photos/upload", hold)
    pick(page, files(*(f"{number}.png" for number in range(5))))
    eventually(lambda: page.wait_for_timeout(10) or len(under_way) == 3, "three uploads begin")
    expect(page.locator(".upload[data-phase=waiting]")).to_have_count(2)
    broken.append(under_way.pop())
    broken[0].abort()
    expect(page.get_by_text("Retrying in 1 s")).to_be_visible()
    finished = 0
    while finished < 5:
        eventually(lambda: page.wait_for_timeout(10) or under_way, "another upload begins")
        under_way.pop().continue_()
        finished += 1
        expect(page.locator(".upload[data-phase=done]")).to_have_count(finished)
    assert most == 3
    assert len(list(dashboard.service.photos())) == 5


def test_an_upload_that_the_service_refuses_says_why_and_can_be_sent_again(dashboard):
    dashboard.tolerate("507")
    page = dashboard.open("#/photos")
    page.route(
        "**/api/photos/upload", lambda route: route.fulfill(status=507, json={"detail": "The disk is full."})
    )
    pick(page, files("shot.png"))
    expect(upload_states(page)).to_contain_text("The disk is full.")
    page.unroute("**/api/photos/upload")
    page.get_by_role("button", name="Upload shot.png again").click()
    expect(upload_states(page)).to_have_text("Saved")


# ----------------------------------------------------------------------------------------- search and filters


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
    page = dashboard.open("#/photos")
    expect(cards(page)).to_have_count(3)
    search = page.get_by_role("searchbox")
    search.press_sequentially("hamburg train", delay=15)
    expect(cards(page)).to_have_count(1)
    expect(page.get_by_text("1 found")).to_be_visible()
    expect(cards(page).locator("mark")).to_have_text(["Train", "Hamburg"])
    search.fill("账单")
    expect(cards(page).locator("mark")).to_have_text(["账单"])
    page.reload()
    expect(search).to_have_value("账单")
    expect(cards(page)).to_have_count(1)
    search.fill("zeppelin")
    expect(page.get_by_text("No matches")).to_be_visible()
    search.fill("")
    expect(cards(page)).to_have_count(3)


def test_an_answer_to_an_older_search_is_ignored(dashboard):
    for text in ("Dentist on Friday", "Train to Hamburg"):
        dashboard.findings.append({**FINDINGS, "summary": text, "visible_text": text})
    stored(dashboard, "one", "two")
    page = dashboard.open("#/photos")
    expect(cards(page)).to_have_count(2)
    held = []
    page.route("**/api/search?*q=dentist*", lambda route: held.append(route))
    page.get_by_role("searchbox").fill("dentist")
    eventually(lambda: page.wait_for_timeout(10) or held, "the first search is under way")
    page.get_by_role("searchbox").fill("hamburg")
    expect(cards(page)).to_contain_text(["Train to Hamburg"])
    held[0].continue_()
    page.wait_for_load_state("networkidle")
    expect(cards(page)).to_contain_text(["Train to Hamburg"])


def test_filters_narrow_the_grid_and_are_kept_in_the_address(dashboard):
    stored(dashboard, "phone one", "phone two", device_id="phone", device_name="Pixel")
    stored(dashboard, "tablet", device_id="tablet")
    in_database(
        dashboard.service.data,
        lambda execute: execute("UPDATE analyses SET status = 'error' WHERE device_id = 'tablet'"),
    )
    page = dashboard.open("#/photos")
    expect(cards(page)).to_have_count(3)
    page.get_by_label("Device").select_option("Pixel")
    expect(cards(page)).to_have_count(2)
    assert "device=phone" in page.url
    page.get_by_label("Status").select_option("Failed")
    expect(page.get_by_text("No matches")).to_be_visible()
    page.get_by_role("button", name="Clear filters").first.click()
    page.get_by_label("Status").select_option("Failed")
    expect(cards(page)).to_have_count(1)
    expect(cards(page)).to_contain_text("Failed")
    page.reload()
    expect(page.get_by_label("Status")).to_have_value("error")
    expect(cards(page)).to_have_count(1)


def test_what_is_searched_can_be_narrowed_by_time_category_and_intent(dashboard):
    dashboard.findings.append({**FINDINGS, "content_category": "finance", "intent": "note"})
    stored(dashboard, "old", original_timestamp="1700000000000")
    stored(dashboard, "new")
    page = dashboard.open("#/photos?q=book")
    expect(cards(page)).to_have_count(2)
    page.get_by_label("Time").select_option("Last 7 days")
    expect(cards(page)).to_have_count(1)
    page.get_by_label("Time").select_option("Between dates…")
    page.get_by_label("Until").fill("2023-12-31")
    expect(cards(page)).to_have_count(1)
    page.get_by_label("From").fill("2023-12-01")
    expect(page.get_by_text("No matches")).to_be_visible()
    page.get_by_label("Time").select_option("Any time")
    page.get_by_label("Type").select_option("Finance")
    expect(cards(page)).to_have_count(1)
    page.get_by_label("Purpose").select_option("Reminder")
    expect(page.get_by_text("No matches")).to_be_visible()


def test_the_whole_list_is_narrowed_by_time_category_and_intent_too(dashboard):
    dashboard.findings.append({**FINDINGS, "content_category": "finance", "intent": "note"})
    stored(dashboard, "old", original_timestamp="1700000000000")
    stored(dashboard, "new")
    page = dashboard.open("#/home")
    page.get_by_role("link", name="Finance 1").click()
    expect(page.get_by_label("Type")).to_have_value("finance")
    expect(cards(page)).to_have_count(1)
    page.get_by_label("Purpose").select_option("Reminder")
    expect(page.get_by_text("No matches")).to_be_visible()
    page.get_by_role("button", name="Clear filters").first.click()
    expect(cards(page)).to_have_count(2)
    page.get_by_label("Time").select_option("Last 7 days")
    expect(cards(page)).to_have_count(1)


# ----------------------------------------------------------------------------------------------------- detail


def test_the_detail_shows_the_picture_and_all_that_was_found(dashboard):
    entities = [
        {"type": "link", "value": "https://example.org/a?b=c"}, {"type": "email", "value": "ann@example.org"},
        {"type": "phone", "value": "+49 40 1234567"}, {"type": "amount", "value": "12.50 EUR"},
    ]  # fmt: skip
    dashboard.findings.append(
        {**FINDINGS, "entities": entities, "visible_text": "Pay 12.50 EUR\nuntil Friday"}
    )
    [first] = stored(dashboard, "one")
    [second] = stored(dashboard, "two")
    page = dashboard.open(f"#/photos/{first}", permissions=["clipboard-read", "clipboard-write"])
    detail = page.get_by_role("dialog")
    expect(detail.get_by_role("link", name="https://example.org/a?b=c")).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    expect(detail.get_by_role("link", name="ann@example.org")).to_have_attribute(
        "href", "mailto:ann@example.org"
    )
    expect(detail.get_by_role("link", name="+49 40 1234567")).to_have_attribute("href", "tel:+49401234567")
    detail.get_by_role("button", name="Copy 12.50 EUR").click()
    expect(page.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "12.50 EUR"
    detail.get_by_text("Text in the screenshot").click()
    expect(detail.locator("pre")).to_have_text("Pay 12.50 EUR\nuntil Friday")
    settled(page, "document.querySelector('.detail-image').naturalWidth === 540")
    width = "document.querySelector('.detail-image').getBoundingClientRect().width"
    fitted = page.evaluate(width)
    detail.get_by_role("button", name="Zoom").click()
    assert page.evaluate(width) > fitted
    with page.expect_download() as download:
        detail.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "shot-0.png"
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("dialog", name=f"Screenshot {second}")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(f"[data-photo='{second}']")).to_be_focused()
    assert page.url.endswith("#/photos")


def test_a_failed_analysis_says_why_and_can_be_repeated(dashboard):
    [photo] = stored(dashboard, "one")
    failed = (
        "UPDATE analyses SET status = 'error', error_message = 'The answer could not be read.', summary = ''"
    )
    in_database(dashboard.service.data, lambda execute: execute(failed))
    page = dashboard.open(f"#/photos/{photo}")
    expect(page.get_by_role("alert")).to_contain_text("The answer could not be read.")
    asked = threading.Event()
    dashboard.findings.append(lambda: asked.wait(PATIENCE) and FINDINGS)
    page.get_by_role("button", name="Analyse again").click()
    expect(page.get_by_text("Queued for analysis.")).to_be_visible()
    expect(page.get_by_text("The analysis is not finished yet")).to_be_visible()
    asked.set()
    expect(page.get_by_role("dialog").get_by_text("library book")).to_be_visible()


# --------------------------------------------------------------------------------------------------- deletion


def test_a_deletion_can_be_taken_back_and_is_sent_when_its_time_has_passed(dashboard):
    first, second = stored(dashboard, "one", "two")
    page = dashboard.open("#/photos")
    page.clock.install()
    kept = page.locator(f"[data-photo='{first}']")
    gone = page.locator(f"[data-photo='{second}']")
    for photo in (kept, gone):
        photo.click()
        page.get_by_role("button", name="Delete").click()
        expect(photo).to_have_count(0)
        expect(page.get_by_text("1 screenshot", exact=True)).to_be_visible()
        if photo is kept:
            page.get_by_role("button", name="Undo").click()
            expect(photo).to_be_visible()
    expect(kept).to_be_focused()  # what has taken the place of the deleted one
    assert len(list(dashboard.service.photos())) == 2
    page.clock.run_for(7_000)
    eventually(
        lambda: [photo["id"] for photo in dashboard.service.photos()] == [first], "the deletion is sent"
    )
    expect(page.get_by_text("1 screenshot", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    "leave", [lambda page: page.goto("about:blank"), lambda page: page.reload()], ids=["elsewhere", "reload"]
)
def test_a_deletion_is_sent_when_the_page_is_left(dashboard, leave):
    [photo] = stored(dashboard, "one")
    page = dashboard.open(f"#/photos/{photo}")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Screenshot deleted")).to_be_visible()
    assert len(list(dashboard.service.photos())) == 1
    leave(page)
    eventually(lambda: not list(dashboard.service.photos()), "the deletion is sent")


# ------------------------------------------------------------------------------------------- hostile and many


def test_script_in_a_screenshot_runs_nothing(dashboard):
    attack = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    entities = [
        {"type": "link", "value": "javascript:document.title='run'"},
        {"type": attack, "value": attack},
    ]
    hostile = {
        "app_name": attack,
        "summary": f"{attack} in the summary",
        "visible_text": f"{attack} in the text",
        "entities": entities,
    }
    dashboard.findings.append({**FINDINGS, **hostile})
    dashboard.service.upload(draw(attack), f"{attack}.png", device_id="phone", device_name=attack)
    dashboard.service.wait_until_analysed()
    page = dashboard.open("#/")
    expect(page.locator(".photo-card")).to_contain_text("in the summary")
    page.evaluate("location.hash = '#/photos'")
    expect(page.get_by_label("Device")).to_contain_text("onerror")
    page.get_by_role("searchbox").fill("<script> onerror")
    expect(cards(page)).to_contain_text(attack)
    cards(page).click()
    detail = page.get_by_role("dialog")
    expect(detail.locator("section").first).to_contain_text(f"{attack} in the summary")
    detail.get_by_text("Text in the screenshot").click()
    expect(detail.locator("pre")).to_have_text(f"{attack} in the text")
    assert detail.locator("a").count() == 0
    assert page.locator("main img[src=x], dialog img[src=x], body script:not([type=module])").count() == 0
    assert "run" not in page.title()


def test_thousands_scroll_with_few_elements_and_only_the_pictures_in_view(chromium, tmp_path, fake_llm):
    with Dashboard(chromium, tmp_path, fake_llm) as dashboard:
        scroll_through_thousands(dashboard)


def scroll_through_thousands(dashboard):
    stored(dashboard, "one", device_id="many")
    multiply(dashboard.service.data, MANY)
    page = dashboard.open("#/photos")
    pictures, pages, given_up = [], set(), []
    page.on(
        "request",
        lambda request: pictures.append(request.url) if request.url.endswith("/thumbnail") else None,
    )
    page.on("request", lambda request: pages.update(re.findall(r"[?&]page=(\d+)", request.url)))
    page.on("requestfailed", lambda request: given_up.append(request.url))
    expect(page.get_by_text("5,000 screenshots")).to_be_visible()
    expect(cards(page).first).to_be_visible()
    count = "document.getElementsByTagName('*').length"
    assert page.evaluate(count) < FEW_NODES
    longest = page.evaluate(
        """async () => {
            const frame = () => new Promise(requestAnimationFrame);
            const end = document.documentElement.scrollHeight;
            let most = 0;
            for (let step = 0; step <= 120; step += 1) {
                window.scrollTo(0, (end * step) / 120);
                await frame();
                most = Math.max(most, document.getElementsByTagName('*').length);
            }
            return most;
        }"""
    )
    assert longest < FEW_NODES
    oldest = page.locator(".photo-place[aria-posinset='5000'] .photo-card")
    expect(oldest).to_be_in_viewport()
    settled(page, "document.querySelector(\"[aria-posinset='5000'] img\").naturalWidth > 0")
    assert len(pictures) < 300
    assert len(pages) < 40
    # With the keyboard: from anywhere to the first, and on by rows.
    oldest.focus()
    page.keyboard.press("Home")
    expect(page.locator(".photo-place[aria-posinset='1'] .photo-card")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    columns = page.evaluate(
        "new Set([...document.querySelectorAll('.photo-place')]"
        ".map((e) => e.getBoundingClientRect().left)).size"
    )
    expect(page.locator(f".photo-place[aria-posinset='{columns + 2}'] .photo-card")).to_be_focused()
    # A photo is deleted in the middle: the others close up, and nothing is missing.
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete").click()
    expect(page.locator(".photo-place[aria-setsize='4999']").first).to_be_visible()
    settled(page, "!document.querySelector('.photo-waiting')")


def multiply(data, count):
    """Make the one photo of the data folder `count` photos, each with an analysis of its own, and its files
    under names of their own.
    """

    def change(execute):
        [files] = execute("SELECT original_path, thumbnail_path FROM photos")
        for number in range(2, count + 1):
            for file in files:
                os.link(data / file, data / f"{file}-{number}")
        own = {
            "id": "value",
            "photo_id": "value",
            "original_path": "original_path || '-' || value",
            "thumbnail_path": "thumbnail_path || '-' || value",
        }
        for table in ("photos", "analyses"):
            columns = [column.name for column in db.get_columns(table)]
            chosen = ", ".join(own.get(column, f"{table}.{column}") for column in columns)
            numbers = json.dumps(list(range(2, count + 1)))
            execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {chosen} FROM {table}, json_each(?)",
                (numbers,),
            )

    in_database(data, change)


def in_database(data, change):
    """Call `change(execute)` within a transaction on the database of a running service."""
    database.open_store(Settings(data_dir=data))
    try:
        with database.scope(), db.atomic():
            change(db.execute_sql)
    finally:
        database.close_connections()
