"""The selection of screenshots in the dashboard, by mouse, finger and keyboard, and what is done with all of
them: kept, tagged, thrown away, restored, analysed again, downloaded; with thousands of them too.
"""

import io
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.support.browser import PHONE, Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import eventually
from tests.support.thousands import multiply

FEW, MANY = 12, 1_200
FINGERS = {"has_touch": True, "is_mobile": True}
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("selection"), llm) as dashboard:
        for number in range(FEW):
            taken = str(int((NOON - timedelta(hours=number)).timestamp() * 1000))
            picture = draw(f"Number {number}")
            dashboard.service.upload(picture, f"number-{number}.png", original_timestamp=taken)
        dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def few(running):
    """Twelve screenshots, the latest with the lowest id; not kept, and none in the trash."""
    yield running
    running.begin_anew()
    changed = [{"action": "restore"}, {"action": "unkeep"}, {"action": "untag", "tag": "trip"}]
    for change in changed:
        running.service.call("POST", "/api/photos/batch", json={"ids": list(range(1, FEW + 1)), **change})
    running.service.wait_until_analysed()


@pytest.fixture(scope="module")
def many(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("many"), llm) as dashboard:
        stored = dashboard.service.upload(draw("one"), "one.png")
        dashboard.service.wait_until_analysed()
        moments = [NOON - timedelta(hours=7) * number for number in range(MANY)]
        multiply(dashboard.service.data, stored["id"], moments)
        yield dashboard


def library(dashboard, **options):
    page = dashboard.open("#/library", **options)
    expect(tile(page, 1)).to_be_visible()
    settled(page, "document.querySelectorAll('head style').length === 2")
    return page


def tile(page, number):
    return page.locator(f".photo-place[aria-posinset='{number}'] .photo-card")


def picked(page):
    return [
        int(place)
        for place in page.locator(".photo-place.picked").evaluate_all(
            "(places) => places.map((place) => place.getAttribute('aria-posinset'))"
        )
    ]


def selected(page, words):
    expect(page.locator(".selection-count")).to_have_text(words)


def action(page, name):
    return page.locator(".selection-actions").get_by_role("button", name=name, exact=True)


def kept(dashboard):
    return dashboard.service.get("/api/photos", kept="true")["total"]


def total(dashboard, **filters):
    return dashboard.service.get("/api/photos", **filters)["total"]


# --------------------------------------------------------------------------------------------------- by mouse


@pytest.mark.slow
def test_the_mark_on_a_tile_and_clicks_with_ctrl_and_shift_select(few):
    page = library(few)
    tile(page, 2).hover()
    page.locator(".photo-place[aria-posinset='2'] .tile-tool.select").click()
    selected(page, "1 selected")
    tile(page, 5).click(modifiers=["Shift"])
    assert picked(page) == [2, 3, 4, 5]
    tile(page, 3).click(modifiers=["Control"])
    tile(page, 9).click()
    assert picked(page) == [2, 4, 5, 9]
    assert tile(page, 9).get_attribute("aria-pressed") == "true"
    assert tile(page, 3).get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="End the selection").click()
    assert picked(page) == []
    assert tile(page, 9).get_attribute("aria-pressed") is None
    tile(page, 9).click()
    expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.slow
def test_a_drag_selects_what_is_between_and_a_click_still_opens(few):
    page = library(few)
    boxes = [tile(page, number).bounding_box() for number in (2, 5, 3)]
    points = [(box["x"] + 40, box["y"] + 60) for box in boxes]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=6)
    assert picked(page) == [2, 3, 4, 5]
    page.mouse.move(*points[2], steps=6)  # back: what is left is deselected
    assert picked(page) == [2, 3]
    page.mouse.up()
    selected(page, "2 selected")
    expect(page.get_by_role("dialog")).to_have_count(0)
    # A drag that begins on a selected tile deselects.
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[2], steps=6)
    page.mouse.up()
    assert picked(page) == []


@pytest.mark.slow
def test_a_star_keeps_a_picture_and_takes_it_back(few):
    page = library(few)
    tile(page, 3).hover()
    star = page.locator(".photo-place[aria-posinset='3'] .tile-tool.keep")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    eventually(lambda: kept(few) == 1, "it is kept")
    expect(tile(page, 3).get_by_text("Starred")).to_be_attached()
    star.click()
    eventually(lambda: kept(few) == 0, "it is no longer kept")


@pytest.mark.slow
def test_a_star_that_the_service_refuses_is_taken_back(few):
    few.tolerate("507")
    page = library(few)
    refusal = {"detail": "The disk is full."}
    page.route("**/api/photos/*", lambda route: route.fulfill(status=507, json=refusal))
    tile(page, 3).hover()
    star = page.locator(".photo-place[aria-posinset='3'] .tile-tool.keep")
    star.click()
    expect(page.get_by_role("alert")).to_contain_text("The disk is full.")
    expect(star).to_have_attribute("aria-pressed", "false")


# ------------------------------------------------------------------------------------------------ by keyboard


@pytest.mark.slow
def test_keys_select_extend_take_everything_and_end(few):
    page = library(few)
    tile(page, 1).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    assert picked(page) == [2]
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert picked(page) == [2, 3, 4]
    page.keyboard.press("Control+a")
    selected(page, f"{FEW} selected")
    expect(page.get_by_role("button", name="Select all")).to_be_hidden()
    page.keyboard.press("Escape")
    assert picked(page) == []
    expect(tile(page, 4)).to_be_focused()
    page.keyboard.press("s")
    eventually(lambda: kept(few) == 1, "it is kept")
    page.keyboard.press("Delete")
    eventually(lambda: total(few) == FEW - 1, "it is in the trash")


@pytest.mark.slow
def test_keys_in_the_search_field_are_text(few):
    page = library(few)
    field = page.locator("#search")
    field.fill("sax")
    field.press("Control+a")
    field.press("Delete")
    expect(field).to_have_value("")
    expect(page.locator(".selection")).to_have_count(0)


@pytest.mark.slow
def test_hits_of_a_search_are_selected_too(few):
    page = library(few)
    page.locator("#search").fill("book")
    hits = page.locator(".result")
    expect(hits).to_have_count(FEW)
    hits.nth(1).click(modifiers=["Control"])
    hits.nth(3).click(modifiers=["Shift"])
    selected(page, "3 selected")
    action(page, "Star").click()
    eventually(lambda: kept(few) == 3, "they are kept")
    hits.first.focus()
    page.keyboard.press("x")
    page.keyboard.press("Delete")
    expect(hits).to_have_count(FEW - 1)
    page.get_by_role("button", name="Undo").last.click()
    expect(hits).to_have_count(FEW)


# -------------------------------------------------------------------------------------------------- by finger


@pytest.mark.slow
def test_a_long_press_begins_and_a_drag_from_there_selects(few):
    page = library(few, size=PHONE, **FINGERS)
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    def centre(number):
        box = tile(page, number).bounding_box()
        return {"x": box["x"] + 50, "y": box["y"] + 60}

    start, end = centre(2), centre(4)
    touch("touchStart", start)
    expect(page.locator(".selection-count")).to_have_text("1 selected")
    for step in range(1, 5):
        touch("touchMove", {axis: start[axis] + (end[axis] - start[axis]) * step / 4 for axis in start})
    assert picked(page) == [2, 3, 4]
    touch("touchEnd")
    assert page.evaluate("scrollY") == 0
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.wait_for_timeout(450)  # until then a click is taken for the end of the press
    tile(page, 8).tap()
    assert picked(page) == [2, 3, 4, 8]
    # A finger that moves at once scrolls.
    page.get_by_role("button", name="End the selection").tap()
    touch("touchStart", centre(5))
    for step in range(1, 8):
        touch("touchMove", {"x": end["x"], "y": end["y"] - 40 * step})
    touch("touchEnd")
    assert picked(page) == []


# ------------------------------------------------------------------------------------- what is done with them


def test_pictures_are_kept_tagged_and_thrown_away_together_and_each_is_undone_at_once(few):
    page = library(few)
    tile(page, 1).click(modifiers=["Control"])
    tile(page, 4).click(modifiers=["Shift"])
    action(page, "Star").click()
    expect(page.get_by_text("4 starred")).to_be_visible()
    assert kept(few) == 4
    page.get_by_role("button", name="Undo").click()
    eventually(lambda: kept(few) == 0, "none is kept")

    tile(page, 1).click(modifiers=["Control"])
    tile(page, 2).click()
    action(page, "Tag").click()
    page.get_by_role("dialog").get_by_label("Tag", exact=True).fill("trip")
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 tagged “trip”")).to_be_visible()
    assert total(few, tag="trip") == 2

    tile(page, 3).click(modifiers=["Control"])
    page.keyboard.press("Control+a")
    action(page, "Delete").click()
    expect(page.get_by_text(f"{FEW} moved to the trash")).to_be_visible()
    assert (total(few), total(few, trash="true")) == (0, FEW)
    page.get_by_role("button", name="Undo").last.click()
    expect(tile(page, FEW)).to_be_visible()
    assert (total(few), total(few, trash="true")) == (FEW, 0)
    assert total(few, tag="trip") == 2


@pytest.mark.slow
def test_undo_leaves_kept_what_was_kept_before(few):
    few.service.call("PATCH", "/api/photos/1", json={"kept": True})
    page = library(few)
    tile(page, 1).click(modifiers=["Control"])
    tile(page, 2).click()
    action(page, "Star").click()
    eventually(lambda: kept(few) == 2, "both are kept")
    page.get_by_role("button", name="Undo").click()
    eventually(lambda: kept(few) == 1, "one is kept")
    assert few.service.get("/api/photos/1")["kept"]


@pytest.mark.slow
def test_a_tag_that_exists_is_one_tap_away(few):
    few.service.call("PATCH", "/api/photos/3", json={"tags": ["trip"]})
    page = library(few)
    tile(page, 1).click(modifiers=["Control"])
    action(page, "Tag").click()
    page.get_by_role("dialog").get_by_role("button", name="trip").click()
    eventually(lambda: total(few, tag="trip") == 2, "it is tagged")


@pytest.mark.slow
def test_originals_are_downloaded_as_a_zip(few):
    page = library(few)
    tile(page, 1).click(modifiers=["Control"])
    tile(page, 3).click(modifiers=["Shift"])
    with page.expect_download() as saved:
        action(page, "Download").click()
    assert saved.value.suggested_filename.endswith(".zip")
    with open(saved.value.path(), "rb") as file, zipfile.ZipFile(io.BytesIO(file.read())) as archive:
        assert archive.namelist() == ["number-0.png", "number-1.png", "number-2.png"]
        assert archive.testzip() is None


@pytest.mark.slow
def test_pictures_are_analysed_again_together(few):
    page = library(few)
    tile(page, 1).click(modifiers=["Control"])
    tile(page, 2).click()
    action(page, "Read again").click()
    expect(page.get_by_text("2 will be read again")).to_be_visible()


@pytest.mark.slow
def test_a_failure_is_said_and_the_selection_stays(few):
    few.tolerate("503")
    page = library(few)
    busy = {"detail": "The database is busy."}
    page.route("**/api/photos/batch", lambda route: route.fulfill(status=503, json=busy))
    tile(page, 1).click(modifiers=["Control"])
    action(page, "Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("0 of 1 done. The database is busy.")
    assert picked(page) == [1]
    page.unroute("**/api/photos/batch")
    action(page, "Delete").click()
    eventually(lambda: total(few) == FEW - 1, "it is in the trash")


@pytest.mark.slow
def test_more_than_one_call_takes_are_done_with_progress_and_undone_as_one(many):
    sizes = []
    page = library(many)
    page.on(
        "request", lambda sent: sizes.append(len(sent.post_data_json["ids"])) if "batch" in sent.url else 0
    )
    tile(page, 1).focus()
    page.keyboard.press("Control+a")
    selected(page, "1,200 selected")
    action(page, "Delete").click()
    expect(page.get_by_text("1,200 moved to the trash")).to_be_visible()
    assert (sizes, total(many)) == ([500, 500, 200], 0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone")).to_be_visible()
    assert total(many) == MANY
    assert page.locator("body *").count() < 900
    many.begin_anew()


@pytest.mark.slow
def test_what_the_first_calls_have_done_can_be_undone_when_the_next_fails(many):
    many.tolerate("503")
    page = library(many)
    calls = []

    def fail_second(route):
        calls.append(1)
        refused = {"detail": "The database is busy."}
        return route.fulfill(status=503, json=refused) if len(calls) == 2 else route.continue_()

    page.route("**/api/photos/batch", fail_second)
    tile(page, 1).focus()
    page.keyboard.press("Control+a")
    selected(page, "1,200 selected")
    action(page, "Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("500 of 1,200 done. The database is busy.")
    page.get_by_role("alert").get_by_role("button", name="Undo").click()
    eventually(lambda: total(many) == MANY, "all are back")
    many.begin_anew()
