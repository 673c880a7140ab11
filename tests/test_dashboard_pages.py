"""The dashboard's notes, memories and settings in a browser: what they show, what they change, what they say
when it fails.
"""

import io
import re
import zipfile
from datetime import timedelta

import pytest
from playwright.sync_api import expect

import database
from app import create_app
from assistant import turns
from clock import utc_now
from engines import ledger
from engines.findings import Usage
from models import Dynamic, Memory, Message
from settings import Settings
from tests.support.browser import KEY, Dashboard, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM

HOSTILE = (
    "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
    "[click](javascript:window.hacked=1)"
)
FAILED = "Failed to load resource: the server responded with a status of "
SECTIONS = ("general", "model", "usage", "skills", "tools", "devices", "data", "statistics", "access")


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    """A service for the tests that do not get in each other's way, with a note, memories and a ledger."""
    with (
        FakeLLM() as llm,
        stocked(Dashboard(chromium, tmp_path_factory.mktemp("pages"), llm), keep_some) as dashboard,
    ):
        yield dashboard


@pytest.fixture
def shared(service):
    yield service
    service.begin_anew()


@pytest.fixture(scope="module")
def larger_service(chromium, tmp_path_factory):
    with (
        FakeLLM() as llm,
        stocked(Dashboard(chromium, tmp_path_factory.mktemp("many"), llm), keep_many) as dashboard,
    ):
        yield dashboard


@pytest.fixture
def many(larger_service):
    """More notes and memories than a page of them has; the one test changes the notes, the other the
    memories.
    """
    yield larger_service
    larger_service.begin_anew()


@pytest.fixture
def full(chromium, tmp_path, fake_llm):
    """The same in a service of the test's own."""
    with stocked(Dashboard(chromium, tmp_path, fake_llm), keep_many) as dashboard:
        yield dashboard


def stocked(dashboard, keep):
    """The dashboard, not yet entered, with what `keep` stores."""
    create_app(Settings(data_dir=dashboard.service.data, api_key=KEY))
    with database.scope():
        keep(utc_now())
    database.close_connections()
    return dashboard


def keep_some(now):
    asked = turns.begin_turn("c0ffee", "Where is the library?", None, device_id="", now=now)
    turns.end_turn(
        asked, [Message(role="assistant", content="In town.", created_at=now)], recalled=None, now=now
    )
    text = (
        "# What is due\n\n- **Friday**: the book\n- [the library](https://library.example/)\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |"
    )
    content = f"{text}\n\n{HOSTILE}"
    fields = {
        "source_photo_ids": "[4711]",
        "source_conversation_ids": '["c0ffee", "decade"]',
        "confidence": 0.8,
        "created_at": now,
    }
    Dynamic.create(id=5, title=HOSTILE, summary=HOSTILE, content=content, category="reminder", **fields)
    Memory.create(
        content=HOSTILE,
        memory_type="long_term",
        source_type="chat",
        category="habit",
        importance=0.9,
        created_at=now,
    )
    for number, day in enumerate((0, 1, 9)):
        ledger.record(
            Usage(2, 1_000 * (number + 1), 50),
            purpose="chat",
            model="scripted",
            now=now - timedelta(days=day),
        )


def keep_many(now):
    for number in range(1, 36):
        category = "insight" if number % 7 == 0 else "note"
        Dynamic.create(
            title=f"Note {number}",
            summary=f"Summary {number}",
            category=category,
            is_read=number <= 30,
            created_at=now,
        )
    for number in range(1, 61):
        kind = "short_term" if number % 6 == 0 else "long_term"
        ends = now + timedelta(hours=40) if kind == "short_term" else None
        fields = {
            "importance": number / 100,
            "access_count": number,
            "created_at": now + timedelta(seconds=number),
            "expires_at": ends,
        }
        category = "people" if number <= 3 else "fact"
        Memory.create(
            content=f"Memory {number}", memory_type=kind, source_type="chat", category=category, **fields
        )


def titles(page):
    return page.locator(".notes-card h2")


def dialog(page):
    return page.get_by_role("dialog")


# -------------------------------------------------------------------------------------------------- the notes


@pytest.mark.slow
def test_notes_are_read_pinned_paged_filtered_and_deleted(many):
    page = many.open("#/notes")
    expect(titles(page)).to_have_count(30)
    expect(titles(page).first).to_have_text("Note 35")
    expect(page.locator("h1")).to_contain_text("5 unread")
    page.get_by_role("button", name="Show more").click()
    expect(titles(page)).to_have_count(35)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()

    page.get_by_role("button", name="Pin to the top: Note 2", exact=True).click()
    expect(titles(page).first).to_have_text("Note 2")
    expect(page.get_by_role("button", name="Unpin: Note 2")).to_have_attribute("aria-pressed", "true")

    page.get_by_role("link", name="Note 35").click()
    expect(page.get_by_role("heading", name="Note 35", level=1)).to_be_visible()
    expect(page.locator(".nav-link[data-view=notes] .nav-badge")).to_contain_text("4")
    page.get_by_role("button", name="Delete this note: Note 35").click()
    dialog(page).get_by_role("button", name="Delete").click()
    expect(titles(page).nth(1)).to_have_text("Note 34")
    expect(page.locator("h1")).to_contain_text("4 unread")

    page.get_by_role("button", name="Delete this note: Note 34").click()
    dialog(page).get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Delete this note: Note 34").click()
    dialog(page).get_by_role("button", name="Delete").click()
    expect(titles(page).nth(1)).to_have_text("Note 33")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_text("Marked as read: 3")).to_be_visible()
    expect(page.locator(".notes-card.unread")).to_have_count(0)

    page.get_by_role("link", name="Insight 4").click()
    expect(titles(page)).to_have_text(["Note 28", "Note 21", "Note 14", "Note 7"])
    expect(page.locator(".chip", has_text="Report")).to_have_count(0)  # it would show nothing
    page.evaluate("location.hash = '#/notes?category=report'")
    expect(page.get_by_text("No notes in this category.")).to_be_visible()
    assert many.service.get("/api/dynamics/stats")["total_unread"] == 0


@pytest.mark.slow
def test_an_article_is_shown_with_its_sources_and_runs_nothing(shared):
    shared.tolerate(FAILED + "404")  # the screenshot was never there
    page = shared.open("#/notes")
    expect(titles(page)).to_have_text([HOSTILE])
    titles(page).get_by_role("link").click()
    article = page.locator("article")
    expect(article.get_by_role("heading", name="What is due")).to_be_visible()
    expect(article.locator(".prose li strong")).to_have_text("Friday")
    expect(article.locator(".prose td")).to_have_text(["1", "2"])
    expect(article.get_by_role("link", name="the library (library.example)", exact=True)).to_have_attribute(
        "rel", "noopener noreferrer"
    )
    expect(article.get_by_role("button", name="Open screenshot #4711")).to_be_visible()
    settled(page, "document.querySelector('.cited img')?.dataset.state === 'broken'")
    expect(article.get_by_role("link", name="Chat decade")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("#main script, #main [onerror], #main a[href^=javascript]").count() == 0
    article.get_by_role("link", name="Where is the library?").click()
    expect(page.locator(".chat-answer")).to_contain_text("In town.")


@pytest.mark.slow
def test_notes_are_written_when_they_are_asked_for(dashboard):
    dashboard.findings.append(
        {"app_name": "Mail", "summary": "The book is due on Friday.", "confidence": 0.9}
    )
    photo = dashboard.service.upload(draw("Library"))["id"]
    dashboard.service.wait_until_analysed()
    page = dashboard.open("#/notes")
    expect(page.get_by_text("No notes yet")).to_be_visible()
    now = page.get_by_role("button", name="Write notes now")
    dashboard.tolerate(FAILED + "502")
    dashboard.llm.fail(401, "no such key")
    now.click()
    expect(page.get_by_role("alert")).to_contain_text("The model's server refuses this configuration (401)")
    article = {
        "title": "Return the book",
        "summary": "On Friday.",
        "content": "On Friday.",
        "category": "reminder",
        "photo_ids": [photo],
    }
    dashboard.llm.answer({"articles": [article]})
    now.click()
    expect(page.get_by_text("New notes: 1")).to_be_visible()
    expect(titles(page)).to_have_text(["Return the book"])
    now.click()
    expect(page.get_by_text("Nothing new to write about yet.")).to_be_visible()
    titles(page).get_by_role("link").click()
    settled(page, "document.querySelector('.cited img')?.naturalWidth > 0")
    page.get_by_role("button", name=f"Open screenshot #{photo}").click()
    expect(dialog(page)).to_contain_text("The book is due on Friday.")


# ----------------------------------------------------------------------------------------------- the memories


@pytest.mark.slow
def test_memories_are_filtered_paged_and_forgotten(many):
    page = many.open("#/memories")
    items = page.locator(".memories-item")
    expect(items).to_have_count(50)
    expect(page.get_by_text("50 of 60")).to_be_visible()
    expect(page.get_by_label("Kept for").locator("option")).to_have_text(
        ["All (60)", "Long term (50)", "Two days (10)"]
    )
    page.get_by_role("button", name="Forget this memory: Memory 60").click()
    dialog(page).get_by_role("button", name="Forget this memory").click()
    expect(page.get_by_text("49 of 59")).to_be_visible()
    page.get_by_role("button", name="Show more").click()
    expect(items).to_have_count(59)
    assert len(set(items.evaluate_all("(items) => items.map((item) => item.dataset.id)"))) == 59
    page.get_by_label("Kept for").select_option("short_term")
    expect(items).to_have_count(9)
    expect(items.first).to_contain_text("expires")
    page.get_by_label("Topic").select_option("people")
    expect(page.get_by_text("No memories match these filters.")).to_be_visible()
    page.get_by_label("Kept for").select_option("")
    expect(items).to_have_count(3)
    assert many.service.get("/api/memories/stats")["total"] == 59


@pytest.mark.slow
def test_a_hostile_memory_is_text(shared):
    page = shared.open("#/memories")
    expect(page.locator(".memories-item p")).to_have_text(HOSTILE)
    page.get_by_role("button", name=f"Forget this memory: {HOSTILE}").click()
    expect(dialog(page)).to_contain_text("onerror")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#main script, #main [onerror]").count() == 0


# ----------------------------------------------------------------------------------------------- the settings


@pytest.mark.slow
def test_language_and_appearance_are_chosen_and_kept(shared):
    page = shared.open("#/settings")
    page.get_by_label("Language").select_option("zh")
    expect(page.get_by_role("heading", name="设置", level=1)).to_be_visible()
    expect(page.get_by_label("语言")).to_be_focused()
    page.get_by_label("外观").select_option("dark")
    page.reload()
    expect(page.get_by_label("外观")).to_have_value("dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_label("外观").select_option("auto")
    assert page.evaluate("document.documentElement.dataset.theme") is None


@pytest.mark.slow
def test_the_model_is_configured_and_tested_and_its_key_never_shown(dashboard):
    page = dashboard.open("#/settings/model")
    key = page.get_by_label("Key")
    expect(page.get_by_text("A key is stored.")).to_be_visible()
    assert "sk-scripted-secret" not in page.content()
    dashboard.llm.answer("lantern")  # the word on the picture that the test sends
    page.get_by_role("button", name="Test the connection").click()
    expect(page.get_by_text("Connected: scripted answered in")).to_be_visible()
    dashboard.llm.fail(401, "no such key")
    page.get_by_label("Model").fill("another")
    page.get_by_role("button", name="Save and test").click()
    expect(page.get_by_text("Connection failed: The model's server refuses")).to_be_visible()
    assert dashboard.service.get("/api/config/llm")["model"] == "another"

    page.get_by_label("Provider").select_option("deepseek")
    expect(page.get_by_label("Base URL")).to_have_value("https://api.deepseek.com/v1")
    expect(page.get_by_label("Model")).to_have_value("deepseek-flash")
    expect(page.get_by_text("Enter the key for this address")).to_be_visible()
    key.fill("sk-new-secret")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    expect(key).to_have_value("")
    now = dashboard.service.get("/api/config/llm")
    assert (now["provider"], now["model"], now["api_key_set"]) == ("deepseek", "deepseek-flash", True)

    dashboard.tolerate(FAILED + "400")
    page.get_by_label("Provider").select_option("custom")
    page.get_by_label("Base URL").fill("https://192.168.1.7/v1")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert").last).to_contain_text("SNAPLORE_LLM_ALLOWED_HOSTS=192.168.1.7")
    page.get_by_label("Provider").select_option("local")
    expect(page.get_by_label("Base URL")).to_be_hidden()
    with page.expect_response("**/api/config/llm"):
        page.get_by_role("button", name="Save", exact=True).click()
    page.reload()
    expect(page.get_by_label("Provider")).to_have_value("local")


@pytest.mark.slow
def test_usage_is_shown_by_day(shared):
    page = shared.open("#/settings/usage")
    expect(page.get_by_text("1,050 tokens")).to_be_visible()
    expect(page.get_by_text("6 calls, 6,150 tokens")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(3)
    bars = page.get_by_role("img", name=re.compile("highest day: 3,050")).locator("i")
    expect(bars).to_have_count(30)
    page.get_by_label("Period").select_option("7")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(bars).to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("highest day: 2,050")).locator("i")).to_have_count(7)


@pytest.mark.slow
def test_skills_are_made_changed_switched_and_deleted(shared):
    shared.tolerate(FAILED + "409")
    page = shared.open("#/settings/skills")
    expect(page.locator(".settings-row")).to_have_count(4)
    page.get_by_role("button", name="New skill").click()
    for label, text in (
        ("ID", "summarize"),
        ("Name", "Chef"),
        ("Icon", "🍲"),
        ("Description", "Cooks"),
        ("Instructions", "Cook."),
    ):
        dialog(page).get_by_label(label, exact=True).fill(text)
    dialog(page).get_by_role("button", name="Add").click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("exists already")
    dialog(page).get_by_label("ID", exact=True).fill("chef")
    dialog(page).get_by_role("button", name="Add").click()
    expect(page.locator(".settings-row").last).to_contain_text("🍲 Chef")
    page.get_by_role("button", name="Edit: Chef").click()
    expect(dialog(page).get_by_label("Instructions")).to_have_value("Cook.")
    dialog(page).get_by_label("Instructions").fill("Bake.")
    dialog(page).get_by_role("button", name="Save").click()
    expect(dialog(page)).to_have_count(0)
    switch = page.get_by_role("switch", name="Chef: enabled")
    with page.expect_response("**/api/skills/chef"):
        switch.uncheck()
    assert shared.service.get("/api/skills/chef")["system_prompt"] == "Bake."
    assert "chef" not in [skill["id"] for skill in shared.service.get("/api/skills")["skills"]]
    page.reload()
    expect(switch).not_to_be_checked()
    page.get_by_role("button", name="Delete: Chef").click()
    dialog(page).get_by_role("button", name="Delete").click()
    expect(page.locator(".settings-row")).to_have_count(4)


@pytest.mark.slow
def test_mcp_servers_are_added_switched_and_deleted(shared):
    shared.tolerate(FAILED + "400")
    page = shared.open("#/settings/tools")
    expect(page.get_by_text("No MCP servers yet.")).to_be_visible()
    page.get_by_role("button", name="Add a server").click()
    for label, text in (
        ("ID", "nas"),
        ("Name", "My notes"),
        ("Address", "https://10.0.0.1/mcp"),
        ("Description", HOSTILE),
    ):
        dialog(page).get_by_label(label, exact=True).fill(text)
    dialog(page).get_by_role("button", name="Add").click()
    expect(dialog(page).get_by_role("alert")).to_contain_text("url:")
    dialog(page).get_by_label("Address").fill("https://mcp.example.com/mcp")
    dialog(page).get_by_role("button", name="Add").click()
    expect(page.locator(".settings-row")).to_contain_text("https://mcp.example.com/mcp")
    with page.expect_response("**/api/mcp-servers/nas"):
        page.get_by_role("switch", name="My notes: enabled").uncheck()
    assert shared.service.get("/api/mcp-servers")["servers"][0]["enabled"] is False
    page.route("**/api/mcp-servers/nas", lambda route: route.fulfill(status=400, json={"detail": "Not now."}))
    page.get_by_role("switch", name="My notes: enabled").click()
    expect(page.get_by_role("alert")).to_contain_text("Not now.")
    expect(page.get_by_role("switch", name="My notes: enabled")).not_to_be_checked()
    page.unroute("**/api/mcp-servers/nas")
    page.get_by_role("button", name="Delete: My notes").click()
    dialog(page).get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No MCP servers yet.")).to_be_visible()


@pytest.mark.slow
def test_devices_are_tested_told_and_removed(shared):
    device = {
        "device_id": "a/b c",
        "token": "secret-token",
        "device_name": "Pixel <b>",
        "device_model": "Pixel 10",
        "app_version": "1.2",
    }
    shared.service.call("POST", "/api/push/register", json=device)
    page = shared.open("#/settings/devices")
    expect(page.locator(".settings-row")).to_contain_text("Pixel 10 · android · 1.2")
    assert "secret-token" not in page.content()
    page.get_by_role("button", name="Test: Pixel <b>").click()
    expect(page.get_by_text("Sent to Pixel <b>.")).to_be_visible()
    page.get_by_label("Text").fill("Dinner is ready")
    page.get_by_role("button", name="Send to all").click()
    expect(page.get_by_text("Sent to devices: 1")).to_be_visible()
    page.get_by_role("button", name="Stop notifications: Pixel <b>").click()
    dialog(page).get_by_role("button", name="Stop notifications").click()
    expect(page.get_by_text("No device has added anything yet.")).to_be_visible()
    expect(page.get_by_label("Text")).to_be_hidden()  # nobody would get the message


@pytest.mark.slow
def test_storage_is_counted_limited_exported_and_cleared(full):
    page = full.open("#/settings/data")
    expect(page.locator(".settings-facts dd").nth(1)).to_have_text("60")
    expect(page.get_by_label("30 days")).to_be_checked()
    page.get_by_label("Days", exact=True).fill("7")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    assert full.service.get("/api/data/retention") == {"retention_days": 7, "chosen": True}

    with page.expect_download() as download:
        page.get_by_role("button", name="Export everything").click()
    assert re.fullmatch(r"snaplore-\d{4}-\d\d-\d\d\.zip", download.value.suggested_filename)
    with open(download.value.path(), "rb") as file:
        archive = zipfile.ZipFile(io.BytesIO(file.read()))
    assert archive.testzip() is None
    assert any(
        "Memory 7" in archive.read(name).decode() for name in archive.namelist() if name.endswith(".json")
    )

    page.get_by_role("button", name="Delete everything").click()
    clear = dialog(page).get_by_role("button", name="Delete everything")
    expect(clear).to_be_disabled()
    dialog(page).get_by_role("textbox").fill("delete everything")
    clear.click()
    expect(page.get_by_text("Deleted 0 screenshots, 0 chats, 35 notes and 60 memories.")).to_be_visible()
    expect(page.locator(".settings-facts dd").nth(1)).to_have_text("0")
    assert full.service.get("/api/memories/stats")["total"] == 0


@pytest.mark.slow
def test_keys_are_told_of_and_signing_out_forgets_the_key(shared):
    page = shared.open("#/settings/access", signed_in=False)
    page.get_by_label("Key").fill(KEY)
    page.get_by_label("Keep me signed in").check()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("number 1").first).to_be_visible()
    expect(page.get_by_text("by itself (every 90 days)")).to_be_visible()
    with page.expect_navigation():
        page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key")).to_be_visible()
    assert KEY not in page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")


@pytest.mark.slow
def test_a_section_that_cannot_be_loaded_says_why_and_tries_again(shared):
    shared.tolerate(FAILED + "500")
    page = shared.open("#/settings")
    for section in SECTIONS[1:]:
        page.route(
            "**/api/**", lambda route: route.fulfill(status=500, json={"detail": "The disk has gone."})
        )
        page.evaluate("(section) => (location.hash = `#/settings/${section}`)", section)
        expect(page.get_by_role("alert").first).to_contain_text("The disk has gone.")
        page.unroute("**/api/**")
        for retry in page.get_by_role("button", name="Try again").all()[::-1]:
            retry.click()
        expect(page.get_by_role("alert")).to_have_count(0)
