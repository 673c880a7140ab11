"""Own words in the dashboard's viewer: title, summary, note, tags and corrected text, edited in place."""

import pytest
from playwright.sync_api import expect

from tests.support.browser import Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FINDINGS, FakeLLM
from tests.support.service import eventually

READ = {"title": "", "summary": "", "note": "", "text": "", "tags": []}


@pytest.fixture(scope="module")
def running(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    with FakeLLM() as llm, Dashboard(chromium, folder, llm, read_locally="true") as dashboard:
        for title in ("Train to Hamburg", "Dentist"):
            dashboard.findings.append({**FINDINGS, "title": title, "summary": f"About the {title.lower()}."})
            dashboard.id = dashboard.service.upload(draw(f"Platform seven\n{title}"), "a.png")["id"]
            dashboard.service.wait_until_analysed()
        yield dashboard


@pytest.fixture
def dashboard(running):
    yield running
    running.begin_anew()
    assert running.service.call("PATCH", f"/api/photos/{running.id}", json=READ).ok


def opened(dashboard, **options):
    page = dashboard.open(f"#/photo/{dashboard.id}", **options)
    expect(page.locator(f".viewer-slide[data-slide='{dashboard.id}'][data-state=ready]")).to_be_attached()
    expect(page.locator(".own-tags")).to_be_attached()
    return page


def details(page):
    return page.get_by_role("region", name="Details")


def stored(dashboard):
    return dashboard.service.get(f"/api/photos/{dashboard.id}")


def edit(page, name):
    details(page).get_by_role("button", name=f"Edit: {name}").click()
    field = details(page).get_by_role("textbox", name=name, exact=True)
    expect(field).to_be_focused()
    return field


@pytest.mark.slow
def test_a_title_is_edited_in_place_and_what_was_read_can_be_had_back(dashboard):
    page = opened(dashboard)
    field = edit(page, "Title")
    expect(field).to_have_value("Dentist")
    field.fill("Appointment of Anna")
    field.press("Enter")
    expect(page.locator(".viewer-title")).to_have_text("Appointment of Anna")
    expect(details(page)).to_contain_text("Written by you")
    expect(details(page).get_by_role("button", name="Edit: Title")).to_be_focused()
    assert (stored(dashboard)["title"], stored(dashboard)["own"]) == ("Appointment of Anna", ["title"])
    tile = page.locator(f".photo-card[data-photo='{dashboard.id}']")
    settled(page, "document.querySelector('.photo-card').dataset.caption.startsWith('Appointment of Anna')")

    details(page).get_by_role("button", name="Back to what was read").click()
    expect(page.locator(".viewer-title")).to_have_text("Dentist")
    expect(details(page)).not_to_contain_text("Written by you")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".viewer-title")).to_have_text("Appointment of Anna")
    page.keyboard.press("Escape")
    expect(tile).to_be_visible()


@pytest.mark.slow
def test_escape_takes_back_and_keeps_the_picture_open(dashboard):
    page = opened(dashboard)
    field = edit(page, "Title")
    field.fill("Not this")
    field.press("Escape")
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(details(page).get_by_role("button", name="Edit: Title")).to_be_focused()
    expect(page.locator(".details-title")).to_have_text("Dentist")
    field = edit(page, "Summary")
    field.fill("Not this either")
    field.press("Escape")
    assert stored(dashboard)["own"] == []


@pytest.mark.slow
def test_keys_of_the_viewer_are_text_in_a_field(dashboard):
    page = opened(dashboard)
    field = edit(page, "Title")
    field.fill("")
    page.keyboard.type("is +1 s")
    field.press("Delete")
    field.press("ArrowLeft")
    field.press("Control+a")
    expect(field).to_have_value("is +1 s")
    field.press("Enter")
    expect(page.locator(".viewer-title")).to_have_text("is +1 s")
    assert not stored(dashboard)["kept"]


@pytest.mark.slow
def test_leaving_a_field_saves_a_summary_a_note_and_the_text(dashboard):
    page = opened(dashboard)
    edit(page, "Summary").fill("With two lines,\nas I would say it")
    page.locator(".viewer-title").click()
    expect(page.locator(".details-summary")).to_have_text("With two lines,\nas I would say it")
    details(page).get_by_role("button", name="Add a note").click()
    page.keyboard.type("Ask Anna")
    page.keyboard.press("Enter")
    page.keyboard.type("on Monday")
    page.locator(".viewer-title").click()
    expect(page.locator(".details-note")).to_have_text("Ask Anna\non Monday")
    edit(page, "Text").fill("Platform 7")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".details-text")).to_have_text("Platform 7")
    found = stored(dashboard)
    assert (found["note"], found["text"]) == ("Ask Anna\non Monday", "Platform 7")
    assert sorted(found["own"]) == ["summary", "text"]
    for word in ("monday", "lines"):
        hits = dashboard.service.get("/api/search", q=word)["items"]
        assert [hit["id"] for hit in hits] == [dashboard.id]


@pytest.mark.slow
def test_what_is_typed_is_saved_when_the_next_picture_is_shown(dashboard):
    page = dashboard.open("#/library")
    page.locator(f"[data-photo='{dashboard.id}']").click()
    edit(page, "Title").fill("Saved on the way")
    page.get_by_role("button", name="Next screenshot").click()
    expect(page.locator(".viewer-title")).to_have_text("Train to Hamburg")
    eventually(lambda: stored(dashboard)["title"] == "Saved on the way", "it is saved")
    expect(page.locator(".viewer-title")).to_have_text("Train to Hamburg")


@pytest.mark.slow
def test_a_failure_keeps_what_was_typed(dashboard):
    dashboard.tolerate("507")
    page = opened(dashboard)
    refusal = {"detail": "The disk is full."}
    page.route(
        "**/api/photos/*",
        lambda route: (
            route.fulfill(status=507, json=refusal) if route.request.method == "PATCH" else route.continue_()
        ),
    )
    field = edit(page, "Title")
    field.fill("Kept in the field")
    field.press("Enter")
    expect(details(page).get_by_role("alert")).to_contain_text("The disk is full.")
    expect(field).to_have_value("Kept in the field")
    page.unroute("**/api/photos/*")
    field.press("Enter")
    expect(page.locator(".viewer-title")).to_have_text("Kept in the field")


@pytest.mark.slow
def test_tags_are_added_completed_and_removed(dashboard):
    other = dashboard.id - 1
    dashboard.service.call("PATCH", f"/api/photos/{other}", json={"tags": ["Travel 2026"]})
    page = opened(dashboard)
    tags = details(page).get_by_role("group", name="Tags", exact=True)
    field = tags.get_by_role("textbox", name="Tag")
    field.fill("health")
    field.press("Enter")
    expect(tags.get_by_role("link", name="health")).to_be_visible()
    field = tags.get_by_role("textbox", name="Tag")
    expect(field).to_be_focused()
    field.press_sequentially("trav")
    tags.get_by_role("button", name="Travel 2026").click()
    expect(tags.get_by_role("link", name="Travel 2026")).to_be_visible()
    assert stored(dashboard)["tags"] == ["health", "Travel 2026"]
    tags.get_by_role("button", name="Remove the tag health").click()
    expect(tags.get_by_role("link", name="health")).to_have_count(0)
    tags.get_by_role("link", name="Travel 2026").click()
    expect(page.locator(".photo-card")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove the filter Tag: Travel 2026")).to_be_visible()
    page.locator(f"[data-photo='{dashboard.id}']").click()
    field.press("Backspace")
    expect(tags.get_by_role("link")).to_have_count(0)
    assert stored(dashboard)["tags"] == []
    dashboard.service.call("PATCH", f"/api/photos/{other}", json=READ)


@pytest.mark.slow
def test_own_words_are_text_whatever_they_contain(dashboard):
    hostile = '<img src=x onerror="document.title=1">'
    page = opened(dashboard)
    field = edit(page, "Title")
    field.fill(hostile)
    field.press("Enter")
    expect(page.locator(".viewer-title")).to_have_text(hostile)
    tag = details(page).get_by_role("textbox", name="Tag")
    tag.fill("<b>bold")
    tag.press("Enter")
    expect(details(page).get_by_role("link", name="<b>bold")).to_be_visible()
    assert page.locator("img[src=x], .own-tags b").count() == 0
