"""What a newcomer meets in the dashboard: the first steps, connecting a phone, how long things are kept, and
the uploads; on a desktop and on a phone.
"""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

import database
from app import create_app
from clock import utc_now
from models import Dynamic
from settings import Settings
from tests.support.browser import DESKTOP, KEY, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw
from tests.support.service import eventually

FAILED = "Failed to load resource: the server responded with a status of "


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    """A service without a model that listens on every address, with a note."""
    made = Dashboard(chromium, tmp_path_factory.mktemp("first"), None, bind="0.0.0.0:0", dev_mode="false")
    create_app(Settings(data_dir=made.service.data, api_key=KEY))
    with database.scope():
        Dynamic.create(title="Old", category="note", summary="**Bold** and `code`", created_at=utc_now())
    database.close_connections()
    with made as dashboard:
        yield dashboard


@pytest.fixture
def dashboard(service):
    """Each test begins with no photo and no answered question."""
    yield service
    service.begin_anew()
    for photo in list(service.service.photos()):
        service.service.call("DELETE", f"/api/photos/{photo['id']}")


def pick(page, *names):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files([{"name": name, "mimeType": "image/png", "buffer": draw(name)} for name in names])


def uploads(page):
    return page.get_by_role("region", name="Uploads")


def overlap(page, one, other):
    """Whether two elements, by their selectors, cover each other."""
    boxes = [page.locator(selector).first.bounding_box() for selector in (one, other)]
    (left, right), (top, bottom) = [
        (max(box[start] for box in boxes), min(box[start] + box[size] for box in boxes))
        for start, size in (("x", "width"), ("y", "height"))
    ]
    return left < right and top < bottom


def copied(page):
    """Let the page copy to a place that the test can read."""
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copiedText = text }")
    return lambda: page.evaluate("window.copiedText")


# -------------------------------------------------------------------------------------------------- the start


@pytest.mark.parametrize(
    ("language", "theme", "size"), [("en", "light", DESKTOP), ("zh", "dark", PHONE)], ids=["desktop", "phone"]
)
def test_an_empty_library_leads_on_and_hinders_nobody(dashboard, axe, language, theme, size):
    page = dashboard.open("#/", language=language, theme=theme, size=size)
    expect(page.locator(".first-drop button")).to_have_count(2)
    page.locator(".first-phone summary").first.click()
    expect(page.locator(".first-phone code").first).to_be_visible()
    more = page.locator(".first-more details")
    more.first.locator("summary").click()
    expect(more.first.locator("code")).to_have_text("./snaplore import FOLDER")
    expect(page.locator(".keeping button")).to_have_count(3)
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    more.nth(1).locator("summary").click()
    more.nth(1).get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/settings/model$"))


@pytest.mark.slow
def test_the_question_how_long_to_keep_things_is_asked_once(chromium, tmp_path):
    with Dashboard(chromium, tmp_path, None, dev_mode="false") as dashboard:
        page = dashboard.open("#/")
        expect(page.get_by_role("heading", name="How long to keep screenshots?")).to_be_visible()
        expect(page.get_by_text("Now: 30 days")).to_be_visible()
        pick(page, "one.png")
        expect(page.locator(".first-steps")).to_have_count(0)
        expect(page.locator(".keeping")).to_have_count(1)
        page.get_by_role("button", name="1 year").click()
        expect(page.get_by_text("Kept: 1 year")).to_be_visible()
        expect(page.locator(".keeping")).to_have_count(0)
        assert dashboard.service.get("/api/data/retention") == {"retention_days": 365, "chosen": True}

        again = dashboard.open("#/")
        expect(again.locator(".photo-card, .tile").first).to_be_visible()
        again.wait_for_load_state("networkidle")
        expect(again.locator(".keeping")).to_have_count(0)


@pytest.mark.slow
def test_a_question_that_is_not_stored_stays_and_says_why(dashboard):
    dashboard.tolerate(FAILED + "507")
    page = dashboard.open("#/")
    refusal = {"detail": "The disk is full."}

    def refuse(route):
        return route.fulfill(status=507, json=refusal) if route.request.method == "PUT" else route.continue_()

    page.route("**/api/data/retention", refuse)
    page.get_by_role("button", name="Forever").click()
    expect(page.get_by_role("alert")).to_contain_text("The disk is full.")
    expect(page.get_by_role("button", name="Forever")).to_be_enabled()


# --------------------------------------------------------------------------------------------- another device


def test_a_device_gets_an_address_that_it_can_reach_and_the_key_only_on_demand(dashboard):
    addresses = dashboard.service.get("/api/addresses")["addresses"]
    if not addresses:
        pytest.skip("this machine has no address but loopback")
    page = dashboard.open("#/settings/devices")
    card = page.locator(".connect")
    card.get_by_text("Without a code").click()
    expect(card.locator("code").first).to_have_text(addresses[0])
    assert KEY not in page.content()
    assert "127.0.0.1" not in card.inner_text()
    card.get_by_text("From a terminal").click()
    expect(card).to_contain_text(
        f"curl -H 'Authorization: Bearer …' -F file=@screenshot.png {addresses[0]}/api"
    )

    clipboard = copied(page)
    card.get_by_role("button", name="Show: Key").click()
    expect(card.locator("dd").nth(1)).to_contain_text(KEY)
    expect(card).to_contain_text(f"Authorization: Bearer {KEY}'")
    card.get_by_role("button", name="Copy: Upload command").click()
    assert KEY in clipboard()
    card.get_by_role("button", name="Show: Key").click()
    assert KEY not in card.inner_text()
    card.get_by_role("button", name="Copy: Key").click()
    assert clipboard() == KEY


@pytest.mark.slow
def test_the_address_that_the_page_was_opened_with_comes_first(dashboard):
    page = dashboard.open("#/settings/devices")
    found = {"addresses": ["http://192.168.1.20:8000", "http://[fd12::20]:8000"], "loopback_only": False}
    page.route("**/api/addresses", lambda route: route.fulfill(json=found))
    page.reload()
    card = page.locator(".connect")
    expect(card.locator("code").first).to_have_text("http://192.168.1.20:8000")
    card.get_by_text("Other addresses").click()
    expect(card.get_by_text("http://[fd12::20]:8000", exact=True)).to_be_visible()


@pytest.mark.slow
def test_where_the_operator_lets_only_this_computer_connect_the_page_says_how_to_change_it(
    chromium, tmp_path
):
    with Dashboard(chromium, tmp_path, None, dev_mode="false") as dashboard:
        page = dashboard.open("#/settings/devices")
        expect(page.get_by_text("because SNAPLORE_BIND says so")).to_be_visible()
        command = f"SNAPLORE_BIND=0.0.0.0:{dashboard.service.port} make run"
        expect(page.locator(".connect code")).to_have_text(command)
        assert KEY not in page.content()


@pytest.mark.slow
def test_devices_are_those_that_upload_and_those_that_are_notified(dashboard):
    dashboard.service.upload(draw("a"), device_id="pixel", device_name="Pixel <b>8</b>")
    dashboard.service.upload(draw("b"), device_id="import")
    for device, name in (("pixel", "Pixel <b>8</b>"), ("tablet", "Tablet")):
        told = {"device_id": device, "token": "t", "device_name": name, "platform": "android"}
        dashboard.service.call("POST", "/api/push/register", json=told)
    page = dashboard.open("#/settings/devices")
    rows = page.locator(".settings-row")
    pixel, tablet = rows.filter(has_text="Pixel <b>8</b>"), rows.filter(has_text="Tablet")
    expect(pixel).to_contain_text("1 added · last")
    expect(pixel).to_contain_text("Notifications on")
    expect(rows.filter(has_text="Imported folder").get_by_role("button")).to_have_count(0)
    expect(tablet).to_contain_text("Nothing added yet")
    tablet.get_by_role("button", name="Stop notifications: Tablet").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop notifications").click()
    expect(tablet).to_have_count(0)
    expect(pixel).to_be_visible()
    dashboard.service.call("DELETE", "/api/push/devices/pixel")


@pytest.mark.slow
def test_the_owner_lets_phones_in_after_a_yes_and_ends_it(dashboard, axe):
    states = {"listen": "off", "until": None}
    until = (utc_now() + timedelta(minutes=10)).isoformat(timespec="milliseconds")

    def answer(route):
        if route.request.method == "PUT":
            listen = route.request.post_data_json["listen"]
            states.update(listen=listen, until=until if listen == "minutes" else None)
            route.fulfill(json=states)
            return
        is_open = states["listen"] != "off"
        found = {"addresses": ["http://192.168.1.20:8000"] if is_open else [], "loopback_only": not is_open}
        route.fulfill(json={**found, "certificate": None, "network": states})

    page = dashboard.open("#/settings/general")
    page.route("**/api/addresses", answer)
    page.route("**/api/network", answer)
    page.goto(f"{dashboard.service.url}/#/settings/devices")
    card = page.locator(".connect")
    card.get_by_role("button", name="For 10 minutes").click()
    dialog = page.get_by_role("dialog", name="Let your network in?")
    expect(dialog).to_contain_text("They still need the key or a code.")
    expect(dialog).to_contain_text("Without https")
    assert barriers(page, axe) == []
    dialog.get_by_role("button", name="Cancel").click()
    assert states["listen"] == "off"
    card.get_by_role("button", name="For 10 minutes").click()
    dialog.get_by_role("button", name="For 10 minutes").click()
    expect(card).to_contain_text("Your network can reach Snaplore until")
    expect(card.get_by_role("button", name="Show a code")).to_be_visible()
    card.get_by_role("button", name="Always").click()
    expect(card).to_contain_text("Devices on your network can reach Snaplore.")
    card.get_by_role("button", name="Only this computer again").click()
    expect(card).to_contain_text("Only this computer can reach Snaplore now.")


# ------------------------------------------------------------------------------------------ the first sign-in


def test_the_printed_address_signs_in_leaves_the_address_bar_and_stays_signed_in(dashboard):
    sent = []
    page = dashboard.open("", signed_in=False)
    page.on("request", lambda request: sent.append(request.url))
    page.goto("about:blank")
    page.goto(f"{dashboard.service.url}/#key={KEY}")
    expect(page.locator(".first-drop")).to_be_visible()
    assert page.url == f"{dashboard.service.url}/#/library"
    assert not any(KEY in url for url in sent)
    assert KEY not in dashboard.service.output
    page.reload()
    expect(page.locator(".first-drop")).to_be_visible()


@pytest.mark.slow
def test_a_wrong_key_in_the_address_leads_to_the_sign_in_and_replaces_no_other(dashboard):
    dashboard.tolerate(FAILED + "401")
    page = dashboard.open("#key=wrong", signed_in=False)
    expect(page.get_by_role("alert")).to_have_text("Wrong key.")
    expect(page.get_by_label("Keep me signed in")).to_be_checked()
    assert "wrong" not in page.url
    signed_in = dashboard.open("#key=wrong")
    signed_in.get_by_role("dialog").get_by_role("button", name="Sign in").click()
    expect(signed_in.get_by_text("Wrong key.")).to_be_visible()
    expect(signed_in.locator(".first-drop")).to_be_visible()


# -------------------------------------------------------------------------------------------------- folders


def test_a_picked_folder_is_uploaded_with_the_folders_in_it_and_what_is_no_picture_is_left_out(
    dashboard, tmp_path
):
    folder = tmp_path / "Screens"
    for path in ("a.png", "2025/b.png", "2025/deep/c.png", ".thumbnails/d.png"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(draw(path))
    (folder / "notes.txt").write_text("no picture")
    page = dashboard.open("#/")

    def pick_folder():
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Add a folder").click()
        chooser.value.set_files(folder)

    pick_folder()
    expect(uploads(page).get_by_role("status")).to_contain_text("3 saved.")
    assert len(list(dashboard.service.photos())) == 3
    assert page.evaluate("localStorage.getItem('snaplore.folder')") is None


@pytest.mark.slow
def test_a_dropped_folder_that_a_reload_interrupts_is_continued(dashboard):
    page = dashboard.open("#/")
    expect(page.locator(".first-drop")).to_be_visible()
    page.wait_for_load_state("networkidle")
    page.route("**/api/photos/upload", lambda route: None)  # none is answered
    page.evaluate(
        """() => {
          const file = (name) => ({ isFile: true, name, file: (given) =>
            given(new File([name], name, { type: "image/png" })) });
          const folder = (name, entries) => ({ isDirectory: true, name, createReader: () => {
            const parts = [entries, []];
            return { readEntries: (given) => given(parts.shift()) };
          } });
          const entry = folder("Phone", [file("a.png"), file("b.png"), folder("old", [file("c.png")])]);
          const event = new DragEvent("drop", { bubbles: true, cancelable: true });
          Object.defineProperty(event, "dataTransfer", { value: {
            types: ["Files"], items: [{ webkitGetAsEntry: () => entry }], files: [] } });
          document.dispatchEvent(event);
        }"""
    )
    expect(uploads(page).get_by_role("status")).to_have_text("0 of 3 done")
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_text("“Phone” was not finished: 0 of 3.")).to_be_visible()
    with page.expect_file_chooser():
        page.locator(".toast").get_by_role("button", name="Add a folder").click()


# ------------------------------------------------------------------------------------------ how long to keep


@pytest.mark.slow
def test_each_choice_says_what_it_deletes_and_a_shorter_one_asks_first(chromium, tmp_path):
    with Dashboard(chromium, tmp_path, None, dev_mode="false", encryption="false") as dashboard:
        dashboard.service.upload(draw("old"))
        page = dashboard.open("#/settings/data")
        kept = page.get_by_role("radiogroup", name="How long to keep things")
        expect(kept.get_by_label("30 days")).to_be_checked()
        expect(kept).to_contain_text("deletes nothing now")
        due = {"retention_days": 7, "photos": 12, "conversations": 1, "dynamics": 0}
        page.route("**/api/data/retention/preview*", lambda route: route.fulfill(json=due))
        kept.get_by_label("Days", exact=True).fill("7")
        expect(kept).to_contain_text("deletes now: 12 screenshots, 1 chat")
        page.get_by_role("button", name="Save").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("12 screenshots, 1 chat")
        dialog.get_by_role("button", name="Cancel").click()
        assert dashboard.service.get("/api/data/retention")["retention_days"] == 30
        kept.get_by_label("Forever").check()
        page.get_by_role("button", name="Save").first.click()
        expect(page.get_by_text("Saved", exact=True)).to_be_visible()
        assert dashboard.service.get("/api/data/retention") == {"retention_days": 0, "chosen": True}
        page.reload()
        expect(page.get_by_label("Forever")).to_be_checked()


@pytest.mark.slow
def test_a_model_at_home_is_refused_with_the_setting_that_allows_it(dashboard):
    dashboard.tolerate(FAILED + "400")
    page = dashboard.open("#/settings/model")
    page.get_by_label("Provider").select_option("ollama")
    page.get_by_role("button", name="Save", exact=True).click()
    advice = page.get_by_role("alert").filter(has_text="SNAPLORE_LLM_ALLOWED_HOSTS=localhost")
    expect(advice.locator("code")).to_have_text("SNAPLORE_LLM_ALLOWED_HOSTS=localhost")
    page.get_by_label("Base URL").fill("http://192.168.1.20:11434/v1")
    expect(advice).to_have_count(0)
    page.get_by_role("button", name="Save and test").click()
    code = page.get_by_role("alert").locator("code")
    expect(code).to_have_text("SNAPLORE_LLM_ALLOWED_HOSTS=192.168.1.20")
    clipboard = copied(page)
    page.get_by_role("button", name="Copy: Setting").click()
    assert clipboard() == "SNAPLORE_LLM_ALLOWED_HOSTS=192.168.1.20"


# ---------------------------------------------------------------------------------------------------- uploads


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_stored_uploads_are_one_line_that_goes_away_by_itself(dashboard, size):
    page = dashboard.open("#/", size=size)
    held = []
    page.route("**/api/photos/upload", lambda route: held.append(route))
    pick(page, "first.png", "second.png")
    expect(uploads(page).get_by_role("status")).to_have_text("0 of 2 done")
    expect(uploads(page).get_by_role("list")).to_be_hidden()
    assert not overlap(page, ".uploads", ".nav")
    uploads(page).get_by_role("button", name="Show the list").click()
    expect(uploads(page).get_by_role("listitem")).to_have_count(2)
    eventually(lambda: page.wait_for_timeout(10) or len(held) == 2, "both are sent")
    for route in held:
        route.continue_()
    expect(uploads(page).get_by_role("status")).to_contain_text("2 saved. Reading goes on by itself")
    page.mouse.move(5, 5)
    page.evaluate("document.activeElement.blur()")
    expect(uploads(page)).to_have_count(0)
    assert {photo["device_id"] for photo in dashboard.service.photos()} == {"dashboard"}
    page.unroute("**/api/photos/upload")
    pick(page, "first.png")
    expect(uploads(page).get_by_role("status")).to_have_text("1 already here")
    assert len(list(dashboard.service.photos())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_failed_uploads_stand_first_and_stay_until_they_are_tried_again_or_closed(dashboard, axe, size):
    dashboard.tolerate(FAILED + "507")
    page = dashboard.open("#/", size=size)

    def answer(route):
        if b"bad" in (route.request.post_data_buffer or b""):
            route.fulfill(status=507, json={"detail": "The disk is full."})
        else:
            route.continue_()

    page.route("**/api/photos/upload", answer)
    pick(page, "a.png", "bad1.png", "b.png", "bad2.png", "c.png")
    expect(uploads(page).get_by_role("status")).to_have_text("3 of 5 done, 2 failed")
    expect(uploads(page).get_by_role("listitem")).to_have_count(2)
    expect(uploads(page).get_by_role("listitem").first).to_contain_text("The disk is full.")
    assert barriers(page, axe) == []
    for view in ("chat", "notes", "settings"):
        page.get_by_role("navigation", name="Main navigation").get_by_role("link", name=view.title()).click()
        expect(page).to_have_url(re.compile(f"#/{view}"))
        expect(uploads(page)).to_be_visible()
        assert not overlap(page, ".uploads", ".nav")
        if view == "chat":
            assert not overlap(page, ".uploads", ".composer")
    page.unroute("**/api/photos/upload")
    uploads(page).get_by_role("button", name="Upload bad1.png again").click()
    expect(uploads(page).get_by_role("status")).to_have_text("4 of 5 done, 1 failed")
    uploads(page).get_by_role("button", name="Close the list").click()
    expect(uploads(page)).to_have_count(0)
    assert len(list(dashboard.service.photos())) == 4


@pytest.mark.slow
def test_all_that_failed_is_tried_again_at_once_and_what_is_no_picture_is_not(dashboard):
    dashboard.tolerate(FAILED + "507")
    page = dashboard.open("#/")
    full = {"detail": "The disk is full."}
    page.route("**/api/photos/upload", lambda route: route.fulfill(status=507, json=full))
    pick(page, "a.png", "b.png")
    expect(uploads(page).get_by_role("status")).to_have_text("0 of 2 done, 2 failed")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files([{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}])
    expect(uploads(page)).to_contain_text("Not a JPEG, PNG, WebP, GIF, HEIC or AVIF file")
    page.unroute("**/api/photos/upload")
    uploads(page).get_by_role("button", name="Try all again").click()
    expect(uploads(page).get_by_role("status")).to_have_text("2 of 3 done, 1 failed")
    expect(uploads(page).get_by_role("listitem")).to_have_count(1)


# -------------------------------------------------------------------------------------- chat, notes, settings


@pytest.mark.slow
def test_a_sent_picture_is_there_after_a_reload_and_lists_show_no_markdown(dashboard):
    with_picture = {"message": "What is this?", "conversation_id": "cafe"}
    answer = dashboard.service.call(
        "POST", "/api/chat/send-with-file", files={"file": draw("Invoice 2024")}, data=with_picture
    )
    assert answer.status_code == 200
    said = dashboard.service.get("/api/chat/conversations")["conversations"][0]["last_message"]
    page = dashboard.open("#/chat/cafe")
    settled(page, "document.querySelector('.chat-sent-picture')?.naturalWidth > 0")
    page.reload()
    settled(page, "document.querySelector('.chat-sent-picture')?.naturalWidth > 0")
    expect(page.get_by_label("Skill")).to_be_hidden()  # the built-in model follows no instructions
    shown = page.locator(".chat-item-last").inner_text()
    assert any(mark in said for mark in ("> ", "**", "- ")), said
    assert not re.search(r"(^|\s)(>|\*\*|#+|-)\s", shown), shown


@pytest.mark.slow
def test_notes_and_memories_are_two_tabs_of_one_place(dashboard):
    page = dashboard.open("#/memories")
    tabs = page.get_by_role("main").get_by_role("navigation", name="Notes")
    expect(tabs.get_by_role("link", name="Memories")).to_have_attribute("aria-current", "page")
    expect(page.get_by_text("No memories yet")).to_be_visible()
    tabs.get_by_role("link", name="Notes").click()
    expect(page.locator(".notes-card p")).to_have_text("Bold and code")
    page.go_back()
    expect(page.get_by_text("No memories yet")).to_be_visible()


@pytest.mark.slow
def test_on_a_phone_the_settings_begin_with_the_list_of_their_sections(dashboard, axe):
    page = dashboard.open("#/settings", size=PHONE)
    sections = page.get_by_role("navigation", name="Settings sections").get_by_role("link")
    expect(sections).to_have_count(10)
    expect(page.locator(".settings-body")).to_be_hidden()
    for link in sections.all():
        assert link.bounding_box()["height"] >= 44
    assert barriers(page, axe) == []
    sections.filter(has_text="Storage").click()
    expect(page.get_by_role("heading", name="How long to keep things")).to_be_visible()
    expect(sections.first).to_be_hidden()
    assert barriers(page, axe) == []
    page.get_by_role("link", name="All settings").click()
    expect(sections.first).to_be_visible()


@pytest.mark.slow
def test_views_of_text_stand_in_the_middle(dashboard):
    page = dashboard.open("#/", size={"width": 1900, "height": 1000})
    for address in ("#/notes", "#/notes/memories", "#/settings", "#/agenda"):
        page.evaluate("(address) => { location.hash = address }", address)
        page.locator("main h1").first.wait_for()
        [before, after] = page.evaluate(
            """() => {
              const [view, main] = ["main .view", "main"].map((one) =>
                document.querySelector(one).getBoundingClientRect());
              return [view.left - main.left, main.right - view.right];
            }"""
        )
        assert abs(before - after) < 2, address
        assert before > 80, address
