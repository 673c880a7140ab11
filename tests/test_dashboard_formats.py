"""Pictures that not every browser shows: chosen, uploaded and looked at in the dashboard."""

import pytest
from playwright.sync_api import expect

from tests.support import heif
from tests.support.browser import Dashboard


@pytest.fixture(scope="module")
def shared(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("formats"), None) as dashboard:
        yield dashboard


@pytest.mark.slow
def test_a_heic_is_uploaded_as_it_is_and_shown_as_a_jpeg(shared, tmp_path):
    file = tmp_path / "IMG_0001.HEIC"
    file.write_bytes(heif.WORDS)
    page = shared.open("#/library")
    asked = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/photos/")[2]))
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files(file)
    tile = page.get_by_role("main").get_by_role("listitem").get_by_role("button").first
    expect(tile).to_be_visible()
    photo_id = shared.service.get("/api/photos")["items"][0]["id"]
    assert shared.service.knock("GET", f"/api/photos/{photo_id}/image").status_code == 401
    tile.click()

    expect(page.locator(".viewer-slide[data-state=ready]")).to_have_count(1)
    shown = page.locator(".viewer-slide[data-state=ready] img.viewer-image")
    assert shown.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [640, 360]
    assert f"{photo_id}/image?format=jpeg" in asked
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").click()
    assert saved.value.path().read_bytes() == heif.WORDS
