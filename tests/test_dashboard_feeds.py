"""Feeds and webhooks on the page: making, copying, testing, the log, and the end."""

import re

import pytest
import requests
from playwright.sync_api import expect

from tests.support.browser import PHONE, Dashboard
from tests.support.drawing import draw
from tests.support.service import eventually
from tests.test_webhooks import Receiver

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("feeds"), None, read_locally="false") as dashboard:
        yield dashboard


@pytest.fixture
def shared(service):
    yield service
    service.begin_anew()
    for kind in ("feeds", "webhooks"):
        for row in service.service.get(f"/api/{kind}")[kind]:
            service.service.call("DELETE", f"/api/{kind}/{row['id']}")


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


def test_a_feed_is_made_read_and_revoked(shared):
    page = shared.open("#/settings/programs")
    expect(page.get_by_text("Nothing is subscribed to yet.")).to_be_visible()
    page.get_by_role("button", name="Subscribe").click()
    expect(page.get_by_label("Search for")).to_be_hidden()
    page.get_by_label("Content").select_option("search")
    page.get_by_label("Search for").fill("app:Mail invoice")
    page.get_by_role("button", name="Make the address").click()
    address = page.get_by_role("dialog").locator("code")
    expect(address).to_have_text(re.compile(r"^http://\S+/feed/[\w-]{43}/search\.atom$"))
    path = re.sub(r"^http://[^/]+", shared.service.url, address.inner_text())
    assert requests.get(path, timeout=120).headers["Content-Type"].startswith("application/atom+xml")

    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.reload()
    row = page.locator("li", has_text="Search: app:Mail invoice")
    expect(row).to_contain_text("Last read")
    row.get_by_role("button", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(row).to_have_count(0)
    assert requests.get(path, timeout=120).status_code == 404


def test_a_calendar_can_be_opened_in_its_app(shared):
    page = shared.open("#/settings/programs", language="zh", size=PHONE, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="新建订阅").tap()
    page.get_by_role("button", name="生成地址").tap()
    link = page.get_by_role("link", name="在日历应用中打开")
    expect(link).to_have_attribute("href", re.compile(r"^webcal://\S+/agenda\.ics$"))


def test_a_webhook_is_registered_tested_and_its_log_sends_again(shared, receiver):
    shared.tolerate("400")  # of the address that is refused
    page = shared.open("#/settings/programs")
    page.get_by_role("button", name="New webhook").click()
    page.get_by_label("Address").fill("http://192.168.1.5/hook")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("SNAPLORE_WEBHOOK_ALLOWED_HOSTS")
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_label("Name").fill("Home")
    page.get_by_label("Reminder due").uncheck()
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("dialog").locator("code")).to_have_text(re.compile(r"^whsec_\S{44}$"))
    page.get_by_role("dialog").get_by_role("button", name="Close").click()

    row = page.locator("li", has_text="Home")
    expect(row).to_contain_text("Screenshot read · Note written")
    row.get_by_role("button", name="Test: Home").click()
    expect(page.get_by_text("Home has accepted the test.")).to_be_visible()
    receiver.answers = [(500, {})] * 2
    row.get_by_role("button", name="Test: Home").click()
    expect(page.get_by_text("Home did not accept the test: HTTP status 500")).to_be_visible()

    shared.service.upload(draw(text="hello"))
    eventually(lambda: len(receiver.calls) >= 3, "the event")
    # The page shows what is stored, and that is later than the call.
    hook = shared.service.get("/api/webhooks")["webhooks"][0]["id"]
    eventually(
        lambda: shared.service.get(f"/api/webhooks/{hook}/deliveries")["deliveries"][0]["answer"] == 500,
        "the answer in the log",
    )
    row.get_by_role("button", name="Log: Home").click()
    log = page.get_by_role("dialog")
    first = log.locator("li").first
    expect(first).to_contain_text("Screenshot read")
    expect(first).to_contain_text("HTTP status 500")
    first.get_by_role("button", name="Send again").click()
    eventually(lambda: len(receiver.calls) >= 4, "the event again")
    assert receiver.ids[-1] == receiver.ids[-2]
    log.get_by_role("button", name="Close").click()

    row.get_by_role("switch").uncheck()
    expect(row.get_by_role("switch")).not_to_be_checked()
    eventually(lambda: not shared.service.get("/api/webhooks")["webhooks"][0]["enabled"], "the switch")
    row.get_by_role("button", name="Delete: Home").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No webhooks yet.")).to_be_visible()


def test_a_phone_makes_feeds_but_sees_no_webhooks(shared):
    token = shared.service.call("POST", "/api/tokens", json={"name": "phone", "scope": "full"}).json()
    page = shared.open("#/settings/programs", signed_in=False)
    page.get_by_label("Key", exact=True).fill(token["token"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Subscribe")).to_be_visible()
    expect(page.get_by_role("button", name="New webhook")).to_have_count(0)
    page.close()  # before its token ends: a call in progress would be refused
    shared.service.call("DELETE", f"/api/tokens/{token['id']}")
