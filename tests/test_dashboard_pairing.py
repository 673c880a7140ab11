"""Connecting a device from the page: a code, the browser that redeems it, recipes, and the end of access."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import DESKTOP, KEY, PHONE, Dashboard, barriers, settled
from tests.support.drawing import draw


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("pairing"), None) as dashboard:
        yield dashboard


@pytest.fixture
def shared(service):
    yield service
    service.begin_anew()
    for token in service.service.get("/api/tokens")["tokens"]:
        service.service.call("DELETE", f"/api/tokens/{token['id']}")


def open_devices(shared, **options):
    """The page's devices. The service says that it is reached where the test reaches it, because a test's
    machine may have no other address.
    """
    page = shared.open("#/", **options)
    reached = {"addresses": [shared.service.url], "loopback_only": False}
    page.route("**/api/addresses", lambda route: route.fulfill(json=reached))
    page.goto(f"{shared.service.url}/#/settings/devices")
    return page


@pytest.fixture
def owner(shared):
    return open_devices(shared)


def shown_code(page):
    page.get_by_role("button", name="Show a code").first.click()
    code = page.locator(".pairing-code")
    expect(code).to_have_text(re.compile(r"^[2-9A-Z]{4} [2-9A-Z]{4}$"))
    return code.inner_text().replace(" ", "")


def test_a_phone_opens_the_link_and_is_signed_in_until_its_access_ends(shared, owner):
    code = shown_code(owner)
    picture = owner.locator(".pairing img")
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 50
    shared.service.upload(draw(text="seen on the phone"))

    phone = shared.open(f"#/pair/{code}", signed_in=False, size=PHONE, has_touch=True, is_mobile=True)
    expect(phone.get_by_role("link", name="Library")).to_be_visible()
    assert code not in phone.url
    key = phone.evaluate("localStorage.getItem('snaplore.key')")
    assert key.startswith('"snp_')
    phone.reload()
    expect(phone.get_by_role("link", name="Library")).to_be_visible()

    shared.tolerate("401|missing or wrong")  # what the phone asks for after the end
    owner.reload()
    row = owner.locator("li", has_text="everything but settings")
    expect(row).to_contain_text("last used")
    row.get_by_role("button", name="End access").click()
    owner.get_by_role("dialog").get_by_role("button", name="End access").click()
    expect(row).to_have_count(0)
    phone.reload()
    expect(phone.get_by_label("Key", exact=True)).to_be_visible()
    assert phone.evaluate("localStorage.getItem('snaplore.key')") is None


def kept_key(page):
    return page.evaluate("localStorage.getItem('snaplore.key')")


def test_a_link_signs_no_browser_in_as_another_device_without_asking(shared, owner):
    link = f"#/pair/{shown_code(owner)}"
    page = shared.open(link)
    question = page.get_by_role("dialog", name="Sign in as another device?")
    question.get_by_role("button", name="Cancel").click()
    expect(question).to_have_count(0)
    expect(page.get_by_role("link", name="Library")).to_be_visible()
    assert "pair" not in page.url
    assert kept_key(page) == f'"{KEY}"'
    # The same link in the address bar of a page that is open. The code is not used yet.
    page.evaluate("(link) => location.assign(link)", link)
    question.get_by_role("button", name="Sign in", exact=True).click()
    expect(question).to_have_count(0)
    settled(page, "localStorage.getItem('snaplore.key').startsWith('\"snp_')")
    assert "pair" not in page.url
    assert len(shared.service.get("/api/tokens")["tokens"]) == 1


def test_a_browser_whose_access_has_ended_is_not_asked(shared, owner):
    code = shown_code(owner)
    shared.tolerate("401")  # what the old key gets
    phone = shared.open(signed_in=False)
    phone.evaluate("localStorage.setItem('snaplore.key', '\"snp_of-last-year\"')")
    phone.goto("about:blank")
    phone.goto(f"{shared.service.url}/#/pair/{code}")
    expect(phone.get_by_role("link", name="Library")).to_be_visible()
    assert kept_key(phone) not in (None, '"snp_of-last-year"')


@pytest.mark.slow
def test_a_code_can_be_typed_and_a_used_one_is_refused(shared, owner):
    code = shown_code(owner)
    phone = shared.open(signed_in=False)
    phone.get_by_text("I have a pairing code").click()
    phone.get_by_label("Pairing code").fill(f"{code[:4].lower()} {code[4:].lower()}")
    phone.get_by_label("Pairing code").press("Enter")
    expect(phone.get_by_role("link", name="Library")).to_be_visible()

    shared.tolerate("401")
    late = shared.open(f"#/pair/{code}", signed_in=False)
    expect(late.get_by_text("wrong, used or older")).to_be_visible()
    expect(late.get_by_label("Key", exact=True)).to_be_visible()


@pytest.mark.slow
def test_what_only_the_owner_may_do_is_not_offered_with_a_token(shared, owner):
    phone = shared.open(f"#/pair/{shown_code(owner)}", signed_in=False)
    expect(phone.get_by_role("link", name="Library")).to_be_visible()

    phone.goto(f"{shared.service.url}/#/settings/devices")
    expect(phone.get_by_role("heading", name="Your devices")).to_be_visible()
    expect(phone.get_by_role("button", name="Show a code")).to_have_count(0)
    expect(phone.get_by_role("button", name="End access")).to_have_count(0)


@pytest.mark.slow
def test_a_recipe_is_shown_with_its_steps(owner):
    owner.get_by_text("Other programs").click()
    owner.get_by_role("button", name="ShareX").click()
    link = owner.get_by_role("link", name="Save snaplore.sxcu")
    expect(link).to_be_visible()
    with owner.expect_download() as saved:
        link.click()
    assert '"Authorization": "Bearer snp_' in saved.value.path().read_text()
    owner.get_by_role("button", name="iOS Shortcuts", exact=True).click()
    request = owner.get_by_role("figure", name="Get Contents of URL")
    expect(request.get_by_text("Bearer snp_")).to_be_visible()
    request.get_by_role("button", name="Copy: Headers: Text").click()
    expect(owner.get_by_text("Copied")).to_be_visible()
    owner.get_by_role("button", name="Flameshot").click()
    expect(owner.locator(".connect code", has_text="flameshot gui --raw | curl")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("language", "theme", "size"), [("en", "light", DESKTOP), ("zh", "dark", PHONE)])
def test_nothing_hinders_people_who_connect_a_device(shared, axe, language, theme, size):
    page = open_devices(shared, language=language, theme=theme, size=size)
    page.locator(".connect button").first.click()
    expect(page.locator(".pairing-code")).to_be_visible()
    for part in page.locator(".connect summary").all():
        part.click()
    assert barriers(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_owner_renames_a_device(shared):
    shared.service.call("POST", "/api/tokens", json={"name": "Android", "scope": "full"})
    page = open_devices(shared)
    page.get_by_role("button", name="Rename: Android").click()
    field = page.get_by_role("dialog").get_by_label("Name")
    expect(field).to_have_value("Android")
    field.fill("Anna's phone")
    field.press("Enter")

    expect(page.get_by_role("button", name="End access: Anna's phone")).to_be_visible()
    assert shared.service.get("/api/tokens")["tokens"][0]["name"] == "Anna's phone"
