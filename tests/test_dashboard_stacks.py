"""Stacks in the dashboard: one tile for the same screen several times, its pictures in the viewer, and
keeping the best of them in two taps.
"""

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM
from tests.support.service import eventually

HOUR = 3_600_000  # ms
START = 1_763_000_000_000
PICTURES = [(text, "phone") for text in ("alone", "same", "newest")]
PICTURES[2:2] = [("same", "tablet"), ("same", "laptop")]


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    with FakeLLM() as llm, Dashboard(chromium, tmp_path_factory.mktemp("stacks"), llm) as dashboard:
        dashboard.ids = []
        for hour, (text, device) in enumerate(PICTURES):
            taken = str(START + hour * HOUR)
            stored = dashboard.service.upload(
                draw(text), f"{text}.png", device_id=device, original_timestamp=taken
            )
            dashboard.ids.append(stored["id"])
            dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def dashboard(running):
    """Three of five pictures are one stack."""
    count = lambda: running.service.get("/api/photos", stacks="true")["total"] == 3  # noqa: E731
    eventually(count, "the same pictures are a stack")
    yield running
    running.begin_anew()
    running.service.call("POST", "/api/photos/batch", json={"ids": running.ids, "action": "restore"})


def tile(page, photo):
    return page.locator(f".photo-card[data-photo='{photo}']")


def shown(page, photo):
    slide = page.locator(f".viewer-slide[data-slide='{photo}'][data-state=ready]")
    expect(slide).not_to_have_attribute("inert", "")
    expect(page.locator(".viewer-details:not(.stale) .facts")).to_be_attached()


def strip(page):
    return page.get_by_role("group", name="Same screen, 3 times")


def first_of(dashboard):
    return next(
        item for item in dashboard.service.get("/api/photos", stacks="true")["items"] if item["stack"]
    )


@pytest.mark.slow
def test_a_stack_is_one_tile_with_its_number_and_opens_to_its_pictures(dashboard):
    alone, *_, newest = dashboard.ids
    item = first_of(dashboard)
    page = dashboard.open("#/library")
    expect(page.locator(".photo-card")).to_have_count(3)
    expect(page.get_by_text("3 screenshots", exact=True)).to_be_visible()
    expect(tile(page, item["id"])).to_contain_text("The same screen 3 times")
    tile(page, item["id"]).click()
    shown(page, item["id"])
    expect(page.locator(".viewer-under")).to_contain_text("2 of 3")
    other = item["stack"]["photo_ids"][1]
    strip(page).get_by_role("button", name="Picture 2 of 3").click()
    shown(page, other)
    assert page.url.endswith(f"/photo/{other}")
    expect(strip(page).locator("[aria-current]")).to_be_focused()
    expect(page.locator(".viewer-under")).to_contain_text("2 of 3")
    page.keyboard.press("ArrowRight")
    shown(page, alone)
    expect(strip(page)).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    shown(page, item["id"])
    page.keyboard.press("ArrowLeft")
    shown(page, newest)


@pytest.mark.slow
def test_the_best_is_kept_and_the_rest_thrown_away_in_two_taps(dashboard):
    item = first_of(dashboard)
    best = item["stack"]["best"]
    page = dashboard.open(f"#/photo/{item['id']}")
    strip(page).get_by_role("button", name="Tidy up").click()
    page.get_by_role("menuitem", name="Keep the best, delete the others (2)").click()
    expect(page.get_by_text("2 moved to the trash")).to_be_visible()
    shown(page, best)
    expect(page.get_by_role("button", name="Tidy up")).to_have_count(0)
    trash = [photo["id"] for photo in dashboard.service.get("/api/photos", trash="true")["items"]]
    assert sorted([*trash, best]) == dashboard.ids[1:4]
    page.get_by_role("button", name="Undo").click()
    eventually(lambda: dashboard.service.get("/api/photos")["total"] == 5, "all are back")


@pytest.mark.slow
def test_another_than_the_best_can_be_kept(dashboard):
    item = first_of(dashboard)
    other = next(photo for photo in item["stack"]["photo_ids"] if photo != item["stack"]["best"])
    page = dashboard.open(f"#/photo/{other}")
    strip(page).get_by_role("button", name="Tidy up").click()
    page.get_by_role("menuitem", name="Keep this one, delete the others (2)").click()
    expect(page.get_by_text("2 moved to the trash")).to_be_visible()
    assert dashboard.service.get("/api/photos")["total"] == 3
    assert dashboard.service.get(f"/api/photos/{other}")["id"] == other


@pytest.mark.slow
def test_a_selected_stack_is_all_of_its_pictures(dashboard):
    item = first_of(dashboard)
    page = dashboard.open("#/library")
    tile(page, item["id"]).click(modifiers=["Control"])
    expect(page.locator(".selection-count")).to_have_text("3 selected")
    page.keyboard.press("Delete")
    expect(page.get_by_text("3 moved to the trash")).to_be_visible()
    expect(page.locator(".photo-card")).to_have_count(2)
    assert dashboard.service.get("/api/photos")["total"] == 2


@pytest.mark.slow
def test_a_deletion_of_one_shows_the_next_of_its_stack(dashboard):
    item = first_of(dashboard)
    page = dashboard.open("#/library")
    tile(page, item["id"]).click()
    shown(page, item["id"])
    page.keyboard.press("Delete")
    settled(page, "(ids) => ids.some((id) => location.hash.startsWith(`#/photo/${id}`))", dashboard.ids[1:4])
    expect(page.get_by_role("group", name="Same screen, 2 times")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".photo-card")).to_have_count(3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_all_duplicates_are_on_one_page_and_go_with_one_press_and_one_undo(dashboard, size):
    page = dashboard.open("#/duplicates", size=size)
    choices = page.get_by_role("radio")
    expect(choices).to_have_count(3)
    best = dashboard.service.get("/api/photos/duplicates")["stacks"][0]["best"]
    expect(page.get_by_role("radio", checked=True)).to_have_count(1)
    everything = page.get_by_role("button", name="Delete the others (2, ")
    expect(everything).to_contain_text("B)")  # with what it frees
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    other = next(number for number in range(3) if not choices.nth(number).is_checked())
    choices.nth(other).check(force=True)
    everything.click()
    expect(page.get_by_role("heading", name="No duplicates")).to_be_visible()
    left = {photo["id"] for photo in dashboard.service.photos()}
    assert best not in left
    assert len(left) == 3
    page.get_by_role("button", name="Undo").click()
    expect(choices).to_have_count(3)
