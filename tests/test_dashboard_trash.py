"""The trash in the dashboard, what will soon be deleted, and stars and deletions in the viewer."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from clock import utc_now
from tests.support.browser import Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import eventually
from tests.support.thousands import in_database

TITLES = ("first", "second", "third")


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("trash"), llm) as dashboard:
        yield dashboard


@pytest.fixture
def dashboard(running):
    """Three screenshots, the latest first in the list; each test has its own."""
    running.findings.extend(
        {**FINDINGS, "title": title, "summary": f"What the {title} says"} for title in TITLES
    )
    now = utc_now()
    running.ids = []
    for number, title in enumerate(TITLES):
        taken = str(int((now - timedelta(hours=number + 1)).timestamp() * 1000))
        stored = running.service.upload(draw(title), f"{title}.png", original_timestamp=taken)
        running.ids.append(stored["id"])
        running.service.wait_until_analysed()
    # The viewer asks once more for a picture whose stack may have changed, also when it is the one that went.
    running.tolerate("status of 404")
    yield running
    try:
        running.begin_anew()
    finally:
        for photo in (*listed(running), *listed(running, trash="true")):
            assert running.service.call("DELETE", f"/api/photos/{photo}").ok


def listed(dashboard, **filters):
    return [photo["id"] for photo in dashboard.service.get("/api/photos", order="taken", **filters)["items"]]


def trashed(dashboard, *ids):
    for photo in ids:
        assert dashboard.service.call("POST", f"/api/photos/{photo}/trash").ok


def tile(page, photo):
    return page.locator(f".photo-card[data-photo='{photo}']")


def shown(page, photo):
    slide = page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")
    expect(slide).not_to_have_attribute("inert", "")


def trash(dashboard, **options):
    page = dashboard.open("#/trash", **options)
    expect(page.get_by_role("heading", name="Trash", level=1)).to_be_visible()
    return page


@pytest.mark.slow
def test_the_trash_is_reached_from_the_library_and_shows_the_days_that_are_left(dashboard):
    first, second, third = dashboard.ids
    trashed(dashboard, first, third)
    page = dashboard.open("#/library")
    expect(tile(page, second)).to_be_visible()
    assert tile(page, first).count() == tile(page, third).count() == 0
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Trash").click()
    expect(tile(page, third)).to_be_visible()
    shown_ids = page.locator(".photo-card").evaluate_all(
        "(all) => all.map((one) => Number(one.dataset.photo))"
    )
    assert shown_ids == [third, first]  # the one that was thrown away last is first
    expect(tile(page, first)).to_contain_text("30 days left")
    settled(page, "document.querySelectorAll('.photo-card .picture[data-state=ready]').length === 2")
    expect(page.get_by_role("link", name="Library")).to_have_attribute("aria-current", "page")


@pytest.mark.slow
def test_a_picture_of_the_trash_opens_is_restored_and_the_next_one_follows(dashboard):
    first, second, third = dashboard.ids
    trashed(dashboard, first, second, third)
    page = trash(dashboard)
    tile(page, third).click()
    shown(page, third)
    assert page.url.endswith(f"#/trashed/{third}")
    details = page.get_by_role("region", name="Details")
    expect(details).to_contain_text("What the third says")
    page.keyboard.press("ArrowRight")
    shown(page, second)
    details.get_by_role("button", name="Restore").click()
    shown(page, first)
    assert listed(dashboard) == [second]
    details.get_by_role("button", name="Delete for good").click()
    confirm = page.get_by_role("dialog", name="Delete for good")
    expect(confirm).to_contain_text("“first” will be deleted now and cannot be brought back.")
    confirm.get_by_role("button", name="Delete for good").click()
    shown(page, third)
    assert listed(dashboard, trash="true") == [third]
    page.keyboard.press("Escape")
    expect(tile(page, third)).to_be_focused()
    assert page.url.endswith("#/trash")


@pytest.mark.slow
def test_an_address_of_a_picture_in_the_trash_opens_it(dashboard):
    first, *_ = dashboard.ids
    trashed(dashboard, first)
    page = dashboard.open(f"#/trashed/{first}")
    shown(page, first)
    page.keyboard.press("Escape")
    expect(tile(page, first)).to_be_visible()


@pytest.mark.slow
def test_an_address_of_a_picture_that_was_restored_shows_it_where_it_is(dashboard):
    first, second, _ = dashboard.ids
    trashed(dashboard, second)
    page = dashboard.open("#/notes")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "trash=true" in request.url else None)
    page.goto(page.url.split("#")[0] + f"#/trashed/{first}")
    shown(page, first)
    expect(page.get_by_role("button", name="Delete (Del)", exact=True)).to_be_visible()
    assert page.url.endswith(f"#/photo/{first}")
    assert not [url for url in asked if f"/photos/{first}/" in url]
    page.keyboard.press("Escape")
    expect(tile(page, second)).to_be_visible()


@pytest.mark.slow
def test_selected_pictures_are_restored_or_deleted_for_good(dashboard):
    first, second, third = dashboard.ids
    trashed(dashboard, first, second, third)
    page = trash(dashboard)
    tile(page, first).click(modifiers=["Control"])
    page.locator(".selection").get_by_role("button", name="Restore").click()
    expect(page.get_by_text("1 restored")).to_be_visible()
    assert listed(dashboard) == [first]
    tile(page, second).focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    confirm = page.get_by_role("dialog", name="Delete for good")
    expect(confirm).to_contain_text("2 screenshots will be deleted now")
    page.keyboard.press("Escape")
    assert len(listed(dashboard, trash="true")) == 2
    page.keyboard.press("Delete")
    confirm.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("heading", name="The trash is empty")).to_be_visible()
    assert listed(dashboard, trash="true") == []


@pytest.mark.slow
def test_the_trash_is_emptied_after_a_question(dashboard):
    trashed(dashboard, *dashboard.ids[:2])
    page = trash(dashboard)
    page.get_by_role("button", name="Empty the trash").click()
    confirm = page.get_by_role("dialog")
    expect(confirm).to_contain_text("2 screenshots will be deleted now and cannot be brought back.")
    confirm.get_by_role("button", name="Empty the trash").click()
    expect(page.get_by_text("2 screenshots deleted")).to_be_visible()
    expect(page.get_by_role("heading", name="The trash is empty")).to_be_visible()
    assert len(listed(dashboard)) == 1


@pytest.mark.slow
def test_a_deletion_that_fails_shows_the_picture_again(dashboard):
    dashboard.tolerate("507")
    first, *_ = dashboard.ids
    page = dashboard.open("#/library")
    refusal = {"detail": "The disk is full."}
    page.route("**/trash", lambda route: route.fulfill(status=507, json=refusal))
    tile(page, first).focus()
    page.keyboard.press("Delete")
    expect(page.get_by_role("alert")).to_contain_text("The disk is full.")
    expect(tile(page, first)).to_be_visible()
    assert len(listed(dashboard)) == 3


@pytest.mark.slow
def test_several_pictures_are_thrown_away_one_after_the_other_in_the_viewer(dashboard):
    first, second, third = dashboard.ids
    page = dashboard.open("#/library")
    tile(page, second).click()
    shown(page, second)
    page.keyboard.press("Delete")
    shown(page, third)
    page.keyboard.press("Delete")  # nothing follows: the one before it
    shown(page, first)
    page.keyboard.press("Delete")
    expect(page.get_by_role("dialog")).to_have_count(0)
    eventually(lambda: listed(dashboard) == [], "all are in the trash")
    for _ in dashboard.ids:
        page.get_by_role("button", name="Undo").last.click()
    eventually(lambda: listed(dashboard) == [first, second, third], "all are back")
    expect(page.locator(".photo-card")).to_have_count(3)


@pytest.mark.slow
def test_a_picture_is_kept_in_the_viewer_and_shown_among_the_kept_ones(dashboard):
    first, *_ = dashboard.ids
    page = dashboard.open(f"#/photo/{first}")
    shown(page, first)
    star = page.get_by_role("group", name="Actions").get_by_role("button", name="Star (S)")
    page.keyboard.press("s")
    expect(star).to_have_attribute("aria-pressed", "true")
    eventually(lambda: listed(dashboard, kept="true") == [first], "it is kept")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Starred").click()
    expect(page.locator(".photo-card")).to_have_count(1)
    tile(page, first).click()
    expect(star).to_have_attribute("aria-pressed", "true")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "false")


# --------------------------------------------------------------------------------------- what is deleted soon


@pytest.fixture
def aged(dashboard):
    """The first two screenshots are 29 days old, of the 30 that they are kept."""
    old = (utc_now() - timedelta(days=29)).isoformat(timespec="milliseconds").removesuffix("+00:00")
    first, second, _ = dashboard.ids
    in_database(
        dashboard.service.data,
        lambda execute: execute("UPDATE photos SET created_at = ? WHERE id IN (?, ?)", (old, first, second)),
    )
    return dashboard


@pytest.mark.slow
def test_what_is_deleted_within_a_week_is_said_once_and_all_of_it_is_kept_by_one_tap(aged):
    first, second, _ = aged.ids
    page = aged.open("#/library")
    notice = page.get_by_role("region", name="2 screenshots will be deleted by")
    expect(notice).to_contain_text("They are older than you keep things.")
    notice.get_by_role("button", name="Star all").click()
    expect(page.get_by_text("2 starred")).to_be_visible()
    expect(notice).to_have_count(0)
    assert listed(aged, kept="true") == [first, second]


@pytest.mark.slow
def test_the_notice_stays_away_after_not_now(aged):
    page = aged.open("#/library")
    notice = page.get_by_role("region", name="2 screenshots will be deleted by")
    notice.get_by_role("button", name="Not now").click()
    page.reload()
    settled(page, "document.querySelectorAll('head style').length === 2")
    expect(tile(page, aged.ids[0])).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(notice).to_have_count(0)


@pytest.mark.slow
def test_what_is_deleted_soon_is_shown_and_one_of_it_is_kept(aged):
    first, second, _ = aged.ids
    page = aged.open("#/library")
    page.get_by_role("link", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="Deleted soon")).to_be_visible()
    expect(page.locator(".photo-card")).to_have_count(2)
    tile(page, first).click(modifiers=["Control"])
    page.locator(".selection").get_by_role("button", name="Star", exact=True).click()
    expect(page.locator(".photo-card")).to_have_count(1)
    tile(page, second).click()
    shown(page, second)
