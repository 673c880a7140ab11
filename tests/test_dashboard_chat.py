"""The dashboard's chat in a browser: turns with tools, slow and failing answers, attachments, skills, and
what hostile answers can do.
"""

import functools
import itertools
import json
import re
import threading
from datetime import timedelta

import pytest
from playwright.sync_api import expect

import database
from app import create_app
from assistant import turns
from clock import utc_now
from models import Message
from settings import Settings
from tests.support.browser import DESKTOP, KEY, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw
from tests.support.fake_llm import FakeLLM

HOSTILE = (
    "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
    "[click](javascript:window.hacked=1)"
)
FAILED = "Failed to load resource: the server responded with a status of "


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    """A service for all tests of this file, each of which is another client of it. It holds a hostile
    conversation.
    """
    with FakeLLM(lambda request: {"articles": []}) as llm:
        dashboard = Dashboard(chromium, tmp_path_factory.mktemp("chat"), llm, trusted_proxies="1")
        # The assistant's alone: after each turn the service asks what to remember of it, whenever it likes.
        llm.queue_is_for = lambda request: "response_format" not in request.body
        create_app(Settings(data_dir=dashboard.service.data, api_key=KEY))
        with database.scope():
            keep_hostile()
            turns.begin_turn(
                "01d", "Is anybody there?", None, device_id="", now=utc_now() - timedelta(hours=1)
            )
        database.close_connections()
        with dashboard:
            yield dashboard


CLIENTS = itertools.count(1)


@pytest.fixture
def dashboard(service):
    """Every test has an address of its own, and with it its own share of the rate."""
    headers = {"X-Forwarded-For": f"10.0.0.{next(CLIENTS)}"}
    service.client = headers
    service.open_as_client = functools.partial(service.open, extra_http_headers=headers)
    yield service
    service.begin_anew()


def keep_hostile():
    """A conversation in which everything that can be text is dashboard."""
    results = [
        {"id": 4711, "title": HOSTILE, "snippet": HOSTILE},
        {"title": HOSTILE, "url": "javascript:window.hacked=1", "summary": HOSTILE},
    ]
    asked = turns.begin_turn("bad", HOSTILE, None, device_id="", now=utc_now())
    calls = [
        call("search_knowledge_base", query=HOSTILE),
        call(HOSTILE, 2, text=HOSTILE),
        call("web_search", 3),
    ]
    said = [{"tool": "x", "count": 2, "results": results}, {"error": HOSTILE, "results": "none"}, ["odd"]]
    following = [Message(role="assistant", tool_calls=json.dumps(calls), created_at=utc_now())]
    for asked_for, result in zip(calls, said, strict=True):
        name = asked_for["function"]["name"]
        following.append(
            Message(role="tool", tool_name=name, content=json.dumps(result), created_at=utc_now())
        )
    following.append(
        Message(
            role="assistant", content=f"# {HOSTILE}\n\n{HOSTILE} #4711\n\n- {HOSTILE}", created_at=utc_now()
        )
    )
    turns.end_turn(asked, following, recalled=None, now=utc_now())


def call(name, number=1, **arguments):
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def box(page):
    return page.get_by_role("textbox", name="Message")


def ask(page, text):
    box(page).fill(text)
    box(page).press("Enter")


def answer(page, text):
    expect(page.locator(".chat-answer").last).to_contain_text(text)


def said(page):
    return page.locator(".chat-said p")


def stored(dashboard, page):
    """The messages of the conversation that is open."""
    return dashboard.service.get(f"/api/chat/conversations/{page.url.rpartition('/')[2]}")["messages"]


def cited(photo, boxes):
    """A conversation about a photo whose answer is a value, as the service gives it."""
    when = utc_now().isoformat()
    called = call("get_screenshot", id=photo)
    found = {"tool": "get_screenshot", "count": 1, "results": [{"id": photo, "title": "Library book"}]}
    message = {
        "tool_calls": None, "tool_name": None, "has_attachment": False, "citations": [], "created_at": when,
    }  # fmt: skip
    said = f"**Friday**\n\n#{photo} **Library book** (2026-11-21) says:\n\n> Due on Friday"
    point = {"photo_id": photo, "text": "Friday", "lines": [1], "boxes": boxes}
    messages = [
        {**message, "id": 1, "role": "user", "content": "When is it due?"},
        {**message, "id": 2, "role": "assistant", "content": None, "tool_calls": json.dumps([called])},
        {**message, "id": 3, "role": "tool", "content": json.dumps(found), "tool_name": "get_screenshot"},
        {**message, "id": 4, "role": "assistant", "content": said, "citations": [point]},
    ]
    return {"id": "ace", "title": "When is it due?", "messages": messages}


def test_an_answer_points_to_the_line_that_says_it(dashboard):
    photo = dashboard.service.upload(draw("Ferry timetable\nLeaves on Friday"))["id"]
    dashboard.service.wait_until_analysed()
    box = {"left": 0.04, "top": 0.08, "width": 0.4, "height": 0.03}
    page = dashboard.open_as_client("#/chat", device_scale_factor=2)
    page.route("**/api/chat/conversations/ace", lambda route: route.fulfill(json=cited(photo, [box])))
    page.route("**/api/chat/conversations/ace/messages*", lambda route: route.fulfill(json={"messages": []}))
    page.goto(f"{dashboard.service.url}/#/chat/ace")
    expect(page.locator(".chat-answer .chat-value")).to_have_text("Friday")
    expect(page.locator(".chat-answer blockquote")).to_have_count(0)  # the cut-out shows it
    expect(page.locator(".chat-answer")).not_to_contain_text("#")
    cutout = page.locator(".cutout")
    expect(cutout.locator(".cutout-title")).to_have_text("Library book")
    expect(cutout.locator(".cutout-mark")).to_have_count(1)
    sharp = """canvas => [canvas.width / Math.min(540, canvas.clientWidth * devicePixelRatio),
        canvas.width / canvas.height - canvas.clientWidth / canvas.clientHeight]"""
    wide, skewed = cutout.locator("canvas").evaluate(sharp)
    assert wide == pytest.approx(1, abs=0.02)  # the pixels of the screen, or all that the picture has
    assert skewed == pytest.approx(0, abs=0.05)
    expect(page.locator(".chat-steps > summary")).to_have_text("Read 1")
    cutout.click()
    expect(page.get_by_role("dialog").locator(".viewer-mark")).to_have_count(1)
    page.close()
    assert dashboard.service.call("DELETE", f"/api/photos/{photo}").status_code == 200


def test_an_answer_shows_its_tools_and_cites_screenshots(dashboard):
    found = {
        "app_name": "Mail",
        "summary": "The book is due on Friday.",
        "visible_text": "Library\nbook due",
        "confidence": 0.9,
    }
    dashboard.findings.append(found)
    photo = dashboard.service.upload(draw("Library"))["id"]
    dashboard.service.wait_until_analysed()
    dashboard.llm.answer(
        None, tool_calls=[call("search_knowledge_base", query="book due"), call("get_screenshot", 2, id=4711)]
    )
    dashboard.llm.answer(f"It is due on **Friday** (#{photo}), whatever #99 and `#{photo}` say.")
    page = dashboard.open_as_client("#/chat")
    ask(page, "When is my book due?")

    answer(page, "It is due on Friday")
    assert page.locator(".chat-answer strong").inner_text() == "Friday"
    steps = page.locator("details.chat-steps > summary")
    expect(steps).to_have_text("Searched, read 1, 1 failed")
    expect(page.locator("details.chat-tool").first).to_be_hidden()
    steps.click()
    first, second = page.locator("details.chat-tool").all()
    expect(first.locator("summary")).to_contain_text("Searched your screenshots")
    expect(first.locator("summary")).to_contain_text("1 found")
    expect(second.locator("summary")).to_contain_text("failed")
    expect(first.locator("pre")).to_be_hidden()
    first.locator("summary").click()
    expect(first.locator("code")).to_have_text("search_knowledge_base")
    expect(first.locator("pre")).to_contain_text('"query": "book due"')
    expect(first.locator("li")).to_contain_text("The book is due on Friday.")
    second.locator("summary").click()
    expect(second).to_contain_text("Photo not found")
    # One citation is a button; a number that no tool has told of, and code, are text.
    expect(page.locator(".chat-answer .chat-citation")).to_have_count(1)
    settled(page, "document.querySelector('.cited img')?.naturalWidth > 0")
    page.get_by_role("button", name=f"Open screenshot #{photo}").last.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".chat-side").get_by_role("link", name="When is my book due?")).to_have_attribute(
        "aria-current", "page"
    )
    page.reload()
    answer(page, "It is due on Friday")
    expect(page.locator("details.chat-tool")).to_have_count(2)
    assert [message["role"] for message in stored(dashboard, page)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


@pytest.mark.slow
def test_a_slow_answer_is_waited_for_wherever_one_is(dashboard):
    let_go = threading.Event()
    dashboard.llm.answer("At last.", after=let_go)
    page = dashboard.open_as_client("#/chat")
    try:
        ask(page, "What did I save?")
        expect(said(page)).to_have_text("What did I save?")
        expect(page.get_by_role("status").get_by_text("Thinking")).to_be_visible()
        dashboard.llm.wait_for_requests(1)
        # Nothing more can be sent, but written.
        ask(page, "And what else?")
        expect(said(page)).to_have_count(1)
        second = dashboard.open_as_client(page.url.partition("/#")[2].join(("#", "")))
        expect(said(second)).to_have_text("What did I save?")
        expect(second.get_by_text("Thinking")).to_be_visible()
        page.evaluate("location.hash = '#/memories'")
        expect(page.get_by_role("link", name="Memories")).to_have_attribute("aria-current", "page")
        page.go_back()
        expect(page.get_by_text("Thinking")).to_be_visible()
        expect(page.locator(".chat-seconds")).to_contain_text(re.compile(r"\d s"))
        page.evaluate("location.hash = '#/memories'")
        expect(page.get_by_role("link", name="Memories")).to_have_attribute("aria-current", "page")
    finally:
        let_go.set()
    expect(page.get_by_text("The assistant has answered.")).to_be_visible()
    page.get_by_role("button", name="Open", exact=True).click()
    answer(page, "At last.")
    answer(second, "At last.")
    expect(page.get_by_text("Thinking")).to_have_count(0)
    expect(box(page)).to_have_value("And what else?")
    assert len(stored(dashboard, page)) == 2


@pytest.mark.slow
def test_a_message_that_a_failing_model_does_not_answer_is_kept_and_sent_again(dashboard):
    dashboard.tolerate(FAILED + "502")
    page = dashboard.open_as_client("#/chat")
    dashboard.llm.fail(401, "no such key")
    ask(page, "Which bills are due?")
    expect(page.get_by_role("alert")).to_contain_text(
        "The assistant did not answer. The model's server refuses this configuration (401)"
    )
    expect(said(page)).to_have_text("Which bills are due?")
    dashboard.llm.answer("None.")
    page.get_by_role("button", name="Try again").click()
    answer(page, "None.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [message["role"] for message in stored(dashboard, page)] == ["user", "assistant"]


def test_a_message_that_was_left_unanswered_is_sent_again_as_the_same(dashboard):
    page = dashboard.open_as_client("#/chat/01d")
    expect(page.get_by_role("alert")).to_contain_text("This message has no answer yet.")
    dashboard.llm.answer("Now there is.")
    page.get_by_role("button", name="Try again").click()
    answer(page, "Now there is.")
    assert [message["role"] for message in stored(dashboard, page)] == ["user", "assistant"]


def test_a_message_too_many_waits_and_can_be_taken_back(dashboard):
    dashboard.tolerate(FAILED + "429")
    page = dashboard.open_as_client("#/chat")
    for _ in range(10):
        dashboard.service.call("POST", "/api/dynamics/trigger", headers=dashboard.client)
    ask(page, "Am I too fast?")
    expect(page.get_by_role("alert")).to_contain_text("Too many requests")
    expect(page.get_by_role("button", name=re.compile(r"Try again in \d+ s"))).to_be_disabled()
    page.get_by_role("button", name="Edit").click()
    expect(box(page)).to_have_value("Am I too fast?")
    expect(said(page)).to_have_count(0)


def test_an_unreachable_server_is_told_and_the_answer_found_when_it_is_back(dashboard):
    dashboard.tolerate("ERR_FAILED")
    dashboard.tolerate(FAILED + "404")  # the page asks whether the message has arrived after all
    page = dashboard.open_as_client("#/chat")
    page.route("**/api/chat/send", lambda route: route.abort())
    ask(page, "Are you there?")
    expect(page.get_by_role("alert")).to_contain_text("Can’t reach your server")
    page.unroute("**/api/chat/send")
    dashboard.llm.answer("I am.")
    page.get_by_role("button", name="Try again").click()
    answer(page, "I am.")


@pytest.mark.slow
def test_enter_sends_except_while_an_input_method_composes(dashboard):
    dashboard.llm.answer("好的。")
    page = dashboard.open_as_client("#/chat", language="zh")
    message = page.get_by_role("textbox", name="消息")
    message.focus()
    chromium = page.context.new_cdp_session(page)
    chromium.send("Input.imeSetComposition", {"text": "tu", "selectionStart": 2, "selectionEnd": 2})
    composing = {"key": "Enter", "bubbles": True, "cancelable": True, "isComposing": True}
    assert message.evaluate(
        "(box, given) => box.dispatchEvent(new KeyboardEvent('keydown', given))", composing
    )
    # Safari ends the composition before it tells of the key, which then has the code 229.
    assert message.evaluate(
        "(box, given) => box.dispatchEvent(new KeyboardEvent('keydown', given))",
        {**composing, "isComposing": False, "keyCode": 229},
    )
    expect(page.locator(".chat-said")).to_have_count(0)
    chromium.send("Input.insertText", {"text": "图书"})
    message.press("Shift+Enter")
    message.press_sequentially("?")
    expect(message).to_have_value("图书\n?")
    message.press("Enter")
    expect(said(page)).to_have_text("图书\n?", use_inner_text=True)
    answer(page, "好的。")


@pytest.mark.slow
def test_a_picture_is_picked_pasted_or_dropped_and_goes_with_the_message(dashboard, tmp_path):
    files = {"picture": tmp_path / "menu <b>.png", "table": tmp_path / "table.csv"}
    files["picture"].write_bytes(draw("Soup of the day"))
    files["table"].write_text("a,b")
    page = dashboard.open_as_client("#/chat")
    page.locator("input[type=file]").set_input_files(files["table"])
    expect(page.get_by_role("alert")).to_contain_text("cannot be attached")
    preview = page.locator(".composer-preview")
    for event, transfer in (("paste", "clipboardData"), ("drop", "dataTransfer")):
        page.evaluate(
            """([event, transfer]) => {
                const data = new DataTransfer();
                data.items.add(new File(['x'], event + '.png', {type: 'image/png'}));
                const made = event === 'paste'
                    ? new ClipboardEvent(event, {clipboardData: data, bubbles: true, cancelable: true})
                    : new DragEvent(event, {dataTransfer: data, bubbles: true, cancelable: true});
                document.querySelector('.composer-text').dispatchEvent(made);
            }""",
            [event, transfer],
        )
        expect(preview).to_contain_text(f"{event}.png")
        preview.get_by_role("button", name="Remove the picture").click()
        expect(preview).to_be_hidden()
    page.locator("input[type=file]").set_input_files(files["picture"])
    expect(preview).to_contain_text("menu <b>.png")
    dashboard.llm.answer("Soup.")
    ask(page, "What is on the menu?")
    answer(page, "Soup.")
    settled(page, "document.querySelector('.chat-sent-picture')?.naturalWidth > 0")
    expect(preview).to_be_hidden()
    assert len(dashboard.llm.requests[-1].images) == 1
    assert "What is on the menu?" in dashboard.llm.requests[-1].text


@pytest.mark.slow
def test_conversations_are_chosen_begun_with_a_skill_and_deleted(dashboard):
    dashboard.service.call(
        "POST", "/api/skills", json={"id": "pirate", "name": "Pirate", "system_prompt": "Talk like a pirate."}
    )
    for text in ("First question?", "Second question?"):
        dashboard.llm.answer(f"Answer to {text}")
        dashboard.service.call("POST", "/api/chat/send", json={"message": text}, headers=dashboard.client)
    page = dashboard.open_as_client("#/chat")
    listed = page.locator(".chat-side .chat-item-title")
    expect(listed.first).to_have_text("Second question?")
    page.get_by_role("link", name="First question?").click()
    answer(page, "Answer to First question?")
    page.get_by_role("link", name="New chat").click()
    expect(page.get_by_text("What would you like to find?")).to_be_visible()
    page.get_by_role("button", name="What did I save this week?").click()
    page.get_by_label("Skill").select_option("pirate")
    dashboard.llm.answer("Arr.")
    box(page).press("Enter")
    answer(page, "Arr.")
    assert "Talk like a pirate." in dashboard.llm.requests[-1].text
    expect(listed.first).to_have_text("What did I save this week?")
    gone = page.url
    page.get_by_role("button", name="Delete this chat").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("What would you like to find?")).to_be_visible()
    expect(listed.first).to_have_text("Second question?")
    dashboard.tolerate(FAILED + "404")
    page.goto(gone)
    expect(page.get_by_text("This chat no longer exists.")).to_be_visible()


def test_nothing_that_a_conversation_holds_is_run(dashboard):
    dashboard.tolerate(FAILED + "404")  # the screenshot that it cites was never there
    page = dashboard.open_as_client("#/chat/bad")
    answer(page, "onerror='window.hacked = 1'")
    for details in page.locator("details.chat-steps, details.chat-tool").all():
        details.locator("> summary").click()
    expect(page.locator("details li").first).to_contain_text("<script>")
    page.locator(
        ".cited"
    ).first.scroll_into_view_if_needed()  # what was opened above it may have moved it out of sight
    settled(page, "document.querySelector('.cited img')?.dataset.state === 'broken'")
    assert page.evaluate("window.hacked") is None
    assert (
        page.evaluate(
            "[...document.querySelectorAll('#main a')]"
            ".filter((link) => !/^(http|#)/.test(link.getAttribute('href'))).length"
        )
        == 0
    )
    assert page.locator("#main script, #main [onerror], #main img[src=x]").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "theme", "size"),
    [("en", "light", DESKTOP), ("zh", "dark", PHONE)],
    ids=["light, desktop", "Chinese, dark, phone"],
)
def test_nothing_hinders_people_who_chat(dashboard, axe, language, theme, size):
    dashboard.tolerate(FAILED + "404")
    page = dashboard.open_as_client("#/chat", language=language, theme=theme, size=size)
    expect(page.locator(".chat-welcome")).to_be_visible()
    assert barriers(page, axe) == []
    page.evaluate("location.hash = '#/chat/bad'")
    expect(page.locator("details.chat-tool")).to_have_count(3)
    page.locator("summary").first.click()
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    composer = page.locator("form.composer").bounding_box()
    assert composer["y"] + composer["height"] <= size["height"]
    if size is PHONE:
        page.get_by_role("button", name="全部对话").click()
        expect(page.get_by_role("dialog").locator(".chat-item").first).to_be_visible()
        assert barriers(page, axe) == []
