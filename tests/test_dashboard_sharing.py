"""Sharing on the page: what is covered is painted over, places are covered by hand, links end."""

import io
import re

import pytest
import requests
from PIL import Image
from playwright.sync_api import expect

from tests.support.browser import PHONE, Dashboard, barriers
from tests.support.drawing import draw

pytestmark = pytest.mark.slow

CARD = draw("My cards\nCard number: 4242 4242 4242 4242\nLunch on Friday", size=(960, 540))


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("sharing"), None) as dashboard:
        dashboard.photo = dashboard.service.upload(CARD)["id"]
        dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def shared(service):
    yield service
    service.begin_anew()
    for row in service.service.get("/api/shares")["shares"]:
        service.service.call("DELETE", f"/api/shares/{row['id']}")


def open_sharing(shared, **options):
    page = shared.open(f"#/photo/{shared.photo}", **options)
    page.get_by_role("button", name=re.compile("Show for 5 minutes|显示 5 分钟")).first.click()
    page.get_by_role("button", name=re.compile("^(Share|分享)$")).click()
    expect(page.locator(".share-stage img")).to_be_visible()
    return page


def picture_at(url, shared):
    answer = requests.get(re.sub(r"^http://[^/]+", shared.service.url, url), timeout=60)
    return answer.status_code, answer.status_code == 200 and Image.open(io.BytesIO(answer.content)).convert(
        "L"
    )


def link_of(page):
    page.get_by_role("button", name=re.compile("Make a link|生成链接")).click()
    return page.get_by_role("dialog").locator("code").inner_text()


def test_a_card_number_is_covered_and_the_link_shows_it_painted_over(shared, axe):
    page = open_sharing(shared)
    cover = page.get_by_role("button", name="Uncover a payment card")
    expect(cover).to_be_visible()
    expect(page.get_by_text("Covered: 1, with a payment card.")).to_be_visible()
    status, picture = picture_at(link_of(page), shared)
    assert status == 200
    box, stage = cover.bounding_box(), page.locator(".share-stage img").bounding_box()
    at = (
        int((box["x"] + box["width"] / 2 - stage["x"]) / stage["width"] * picture.width),
        int((box["y"] + box["height"] / 2 - stage["y"]) / stage["height"] * picture.height),
    )
    assert picture.getpixel(at) < 40
    assert barriers(page, axe) == []


def test_places_are_covered_by_dragging_and_uncovered_by_a_press(shared):
    page = open_sharing(shared)
    page.get_by_role("button", name="Uncover a payment card").click()
    expect(page.get_by_text("Nothing is covered.")).to_be_visible()
    stage = page.locator(".share-stage img").bounding_box()
    page.mouse.move(stage["x"] + 5, stage["y"] + 5)
    page.mouse.down()
    page.mouse.move(stage["x"] + stage["width"] / 2, stage["y"] + stage["height"] / 2, steps=4)
    page.mouse.up()
    expect(page.get_by_text("Covered places: 1")).to_be_visible()
    _, picture = picture_at(link_of(page), shared)
    assert picture.getpixel((picture.width // 4, picture.height // 4)) < 40
    assert picture.getpixel((picture.width * 3 // 4, picture.height * 3 // 4)) > 200


def test_a_place_is_moved_and_removed_by_the_keyboard(shared):
    page = open_sharing(shared)
    page.get_by_role("button", name="Cover another place").click()
    added = page.get_by_role("button", name="Uncover this place")
    expect(added).to_be_focused()
    before = added.bounding_box()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    after = added.bounding_box()
    assert after["y"] > before["y"]
    assert after["width"] > before["width"]
    page.keyboard.press("Delete")
    expect(added).to_have_count(0)


def test_links_are_listed_counted_and_ended(shared):
    page = open_sharing(shared)
    url = link_of(page)
    assert picture_at(url, shared)[0] == 200
    page = shared.open("#/settings/programs")
    row = page.locator("li", has_text=f"Screenshot {shared.photo}")
    expect(row).to_contain_text("Opened: 1")
    row.get_by_role("button", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(row).to_have_count(0)
    assert picture_at(url, shared)[0] == 404


def test_a_finger_shares_in_chinese(shared):
    page = open_sharing(shared, language="zh", size=PHONE, has_touch=True, is_mobile=True)
    expect(page.get_by_text("已遮住 1 处")).to_be_visible()
    assert picture_at(link_of(page), shared)[0] == 200
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]


def test_the_file_that_is_saved_has_no_name_and_no_secret(shared):
    page = open_sharing(shared)
    with page.expect_download() as saving:
        page.get_by_role("dialog").last.get_by_role("button", name="Download").click()
    assert saving.value.suggested_filename == "screenshot.jpg"


def test_a_covered_screenshot_on_which_nothing_can_be_covered_is_shown_first(shared):
    page = shared.open("#/library")
    page.route("**/redaction", lambda route: route.fulfill(json={"boxes": []}))
    page.goto(page.url.split("#")[0] + f"#/photo/{shared.photo}")
    expect(page.get_by_role("button", name="Show for 5 minutes").first).to_be_visible()
    share = page.get_by_role("button", name="Share", exact=True)
    share.click()
    expect(page.get_by_text("Show the picture first:")).to_be_visible()
    expect(page.locator(".share")).to_have_count(0)
    page.get_by_role("button", name="Show for 5 minutes").first.click()
    share.click()
    expect(page.get_by_text("Nothing is covered.")).to_be_visible()
