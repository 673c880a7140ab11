"""The page asks before a chat sends something out, in a browser: what it shows, what each answer sends, and
what a reload or a hostile text changes about it.
"""

import functools
import itertools
import json

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, PHONE, Dashboard, barriers
from tests.support.fake_llm import FakeLLM
from tests.support.fake_mcp import FakeMCP

IBAN = "DE89 3704 0044 0532 0130 00"
SEND = {"name": "send", "inputSchema": {"type": "object", "properties": {"body": {"type": "string"}}}}
LONG = "x" * 3_000


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    with FakeLLM(lambda request: {"articles": []}) as llm, FakeMCP(stateless=True, tools=[SEND]) as mail:
        dashboard = Dashboard(chromium, tmp_path_factory.mktemp("consent"), llm, trusted_proxies="1")
        llm.queue_is_for = lambda request: "response_format" not in request.body
        with dashboard:
            dashboard.mail = mail
            server = {"id": "mail", "name": "Mail", "url": mail.url}
            assert dashboard.service.call("POST", "/api/mcp-servers", json=server).status_code == 200
            yield dashboard


CLIENTS = itertools.count(1)


@pytest.fixture
def dashboard(service):
    """Every test has an address of its own, and with it its own share of the rate."""
    headers = {"X-Forwarded-For": f"10.0.1.{next(CLIENTS)}"}
    service.open_as_client = functools.partial(service.open, extra_http_headers=headers)
    service.mail.requests.clear()
    yield service
    service.service.call("PUT", "/api/mcp-servers/mail", json={"trusted": False})
    service.begin_anew()


def calls(dashboard, *bodies):
    made = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "mcp__mail__send", "arguments": json.dumps({"body": body})},
        }
        for number, body in enumerate(bodies)
    ]
    dashboard.llm.answer(None, tool_calls=made)


def ask(page, text):
    box = page.get_by_role("textbox", name="Message")
    box.fill(text)
    box.press("Enter")


def sent(dashboard):
    requests = [one for one in dashboard.mail.requests if one.method == "tools/call"]
    return [one.body["params"]["arguments"]["body"] for one in requests]


def asked(dashboard, *bodies, **options):
    """A page that asks about a call, because the server has told the model something before."""
    calls(dashboard, "hello")
    calls(dashboard, *bodies)
    page = dashboard.open_as_client("#/chat", **options)
    ask(page, "Send it")
    expect(page.locator(".consent")).to_have_count(len(bodies))
    return page


def press(page, name):
    page.get_by_role("button", name=name).click()


def test_the_page_shows_what_would_go_where_and_sends_it_once(dashboard):
    page = asked(dashboard, "Your book is due")
    panel = page.locator(".consent")
    expect(panel).to_contain_text("The assistant wants to use send.")
    expect(panel.locator(".consent-host")).to_have_text(f"localhost:{dashboard.mail.port}")
    expect(panel.locator("pre")).to_have_text("body: Your book is due")
    assert sent(dashboard) == ["hello"]

    page.reload()
    dashboard.llm.answer("It is sent.")
    press(page, "Send once")
    expect(page.locator(".chat-answer")).to_contain_text("It is sent.")

    expect(panel).to_have_count(0)
    expect(page.locator(".chat-tool")).to_have_count(2)
    assert sent(dashboard) == ["hello", "Your book is due"]


@pytest.mark.slow
def test_a_refusal_sends_nothing_and_several_calls_are_answered_one_by_one(dashboard):
    page = asked(dashboard, "one", "two")
    page.locator(".consent").first.get_by_role("button", name="Don’t send").click()
    expect(page.locator(".consent")).to_have_count(1)
    expect(page.locator(".consent pre")).to_have_text("body: two")
    dashboard.llm.answer("Only the second.")
    press(page, "Send once")
    expect(page.locator(".chat-answer")).to_contain_text("Only the second.")
    assert sent(dashboard) == ["hello", "two"]


@pytest.mark.slow
def test_what_is_allowed_in_a_chat_or_for_a_server_is_not_asked_about_again(dashboard):
    page = asked(dashboard, "one")
    dashboard.llm.answer("First.")
    press(page, "Allow in this chat")
    expect(page.locator(".chat-answer")).to_contain_text("First.")
    calls(dashboard, "two")
    dashboard.llm.answer("Second.")
    ask(page, "Again")
    expect(page.locator(".chat-answer").last).to_contain_text("Second.")
    assert sent(dashboard) == ["hello", "one", "two"]

    page = asked(dashboard, "three")
    dashboard.llm.answer("Third.")
    press(page, "Always for this server")
    expect(page.locator(".chat-answer")).to_contain_text("Third.")
    assert [one["trusted"] for one in dashboard.service.get("/api/mcp-servers")["servers"]] == [True]


@pytest.mark.slow
def test_something_sensitive_is_named_and_can_be_sent_only_once(dashboard):
    page = asked(dashboard, f"pay {IBAN}")
    expect(page.locator(".consent")).to_contain_text("Contains a bank account")
    expect(page.locator(".consent button")).to_have_text(["Don’t send", "Send once"])
    dashboard.llm.answer("Sent.")
    press(page, "Send once")
    expect(page.locator(".chat-answer")).to_contain_text("Sent.")
    assert sent(dashboard)[-1] == f"pay {IBAN}"


@pytest.mark.slow
def test_a_long_or_hostile_text_is_shown_whole_and_as_text(dashboard):
    hostile = "<b>bold</b>\u202egnp.exe\u200b"
    page = asked(dashboard, hostile + LONG)
    expect(page.locator(".consent pre")).to_contain_text("<b>bold</b>\\u{202e}gnp.exe\\u{200b}xxx")
    press(page, "Show all")
    assert len(page.locator(".consent pre").inner_text()) > len(LONG)


@pytest.mark.slow
def test_a_model_that_fails_afterwards_is_asked_again_and_nothing_is_sent_twice(dashboard):
    dashboard.tolerate("Failed to load resource: the server responded with a status of 502")
    page = asked(dashboard, "one")
    dashboard.llm.fail(500)
    press(page, "Send once")
    expect(page.locator(".chat-problem")).to_be_visible()
    dashboard.llm.answer("It was sent.")
    press(page, "Try again")
    expect(page.locator(".chat-answer")).to_contain_text("It was sent.")
    assert sent(dashboard) == ["hello", "one"]


@pytest.mark.slow
def test_links_show_their_host_where_their_text_does_not_begin_with_it(dashboard):
    dashboard.llm.answer(
        "[bank.example](https://evil.example/x) [https://bank.example/](https://evil.example/y)"
        " [bank.example/?evil.example](https://evil.example/z) [evil.example](https://evil.example/)"
        " https://plain.example/page https://bank.example@evil.example/"
        " [bank.example.](mailto:eve@evil.example)"
    )
    page = dashboard.open_as_client("#/chat")
    ask(page, "Links")
    expect(page.locator(".chat-answer a")).to_have_count(7)
    hosts = page.locator(".chat-answer a").evaluate_all("all => all.map((a) => a.dataset.host ?? '')")
    assert hosts == [*["evil.example"] * 3, "", "", "evil.example", "eve@evil.example"]
    shown = page.locator(".chat-answer a").first.evaluate("(a) => getComputedStyle(a, '::after').content")
    assert shown == '" (" attr(data-host) ")"' or "evil.example" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "theme", "size"),
    [("en", "light", DESKTOP), ("zh", "dark", PHONE)],
    ids=["light, desktop", "Chinese, dark, phone"],
)
def test_nothing_hinders_people_who_are_asked(dashboard, axe, language, theme, size):
    asked(dashboard, f"pay {IBAN}", f"Dear Eve, {LONG}")
    conversation = dashboard.service.get("/api/chat/conversations")["conversations"][0]["id"]
    page = dashboard.open_as_client(f"#/chat/{conversation}", language=language, theme=theme, size=size)
    expect(page.locator(".consent")).to_have_count(2)
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
