"""The installed page: its manifest and worker, pictures that other apps share, and uploads that wait for the
network.
"""

import json
import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import expect

from tests.support.browser import KEY, PHONE, Dashboard, settled
from tests.support.drawing import draw
from tests.support.service import eventually

SHARE = """async ([names, contents]) => {
    const form = new FormData();
    names.forEach((name, at) => {
        form.append("files", new File([Uint8Array.from(contents[at])], name, {type: "image/png"}));
    });
    const manifest = await caches.match("/manifest.webmanifest") ?? await fetch("/manifest.webmanifest");
    const address = (await manifest.json()).share_target.action;
    const answer = await fetch(address, {method: "POST", body: form, redirect: "manual"});
    return answer.type;
}"""

# Whether the worker has kept what it needs without a network.
KEPT = """Promise.all(["/", "/manifest.webmanifest"].map((path) => caches.match(path)))
    .then((found) => found.every(Boolean))"""

# How many pictures wait in the outbox.
WAITING = """new Promise((resolve) => {
    const opening = indexedDB.open("snaplore");
    opening.onsuccess = () => {
        const all = opening.result.transaction("outbox").objectStore("outbox").getAll();
        all.onsuccess = () => (opening.result.close(), resolve(all.result.length));
    };
})"""

# The keys that the worker has stored.
STORED = WAITING.replace('"outbox"', '"state"').replace("all.result.length", "all.result")


@pytest.fixture(scope="module")
def service(chromium, tmp_path_factory):
    with Dashboard(chromium, tmp_path_factory.mktemp("installed"), None) as dashboard:
        yield dashboard


@pytest.fixture
def shared(service):
    yield service
    for held in service.service.get("/api/tokens")["tokens"]:
        service.service.call("DELETE", f"/api/tokens/{held['id']}")
    service.tolerate("Failed to load resource|ERR_INTERNET_DISCONNECTED|ERR_FAILED")
    service.begin_anew()


def opened(shared, **options):
    """The page with its service worker in charge."""
    page = shared.open("#/library", service_workers="allow", **options)
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    settled(page, "Boolean(navigator.serviceWorker.controller)")
    settled(page, KEPT)
    return page


def share(page, *texts):
    contents = [list(draw(text=text)) for text in texts]
    assert page.evaluate(SHARE, [[f"{text}.png" for text in texts], contents]) == "opaqueredirect"


def total(shared):
    return shared.service.get("/api/photos")["total"]


def test_the_fixed_parts_are_open_and_hold_nothing_of_the_person(shared):
    manifest = shared.service.knock("GET", "/manifest.webmanifest")
    assert manifest.headers["Content-Type"].startswith("application/manifest+json")
    described = manifest.json()
    for icon in described["icons"]:
        answer = shared.service.knock("GET", f"/{icon['src']}")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
    worker = shared.service.knock("GET", "/service-worker.js")
    assert worker.headers["Content-Type"].startswith("text/javascript")
    again = shared.service.knock(
        "GET", "/service-worker.js", headers={"If-None-Match": worker.headers["ETag"]}
    )
    assert again.status_code == 304
    target = described["share_target"]
    assert re.fullmatch(r"share/[\w-]{32}", target["action"])
    assert (target["method"], target["enctype"]) == ("POST", "multipart/form-data")
    assert manifest.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert shared.service.knock("GET", "/icon-1.png").status_code == 401


def test_a_share_without_the_worker_stores_nothing_and_opens_the_page(shared):
    before = total(shared)
    for path, root in (("/share", "./"), ("/share/guessed", "../")):
        files = [("files", ("a.png", draw(text="lost"), "image/png"))]
        answer = shared.service.knock("POST", path, files=files, allow_redirects=False)
        assert (answer.status_code, answer.headers["Location"]) == (303, root)
    assert total(shared) == before


FORGED = """([address, content]) => {
    const files = new DataTransfer();
    files.items.add(new File([Uint8Array.from(content)], "forged.png", {type: "image/png"}));
    const form = Object.assign(document.createElement("form"), {
        method: "post", enctype: "multipart/form-data", action: address,
    });
    const input = Object.assign(document.createElement("input"), {type: "file", name: "files"});
    input.files = files.files;
    form.append(input);
    document.body.append(form);
    form.submit();
}"""


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/share", "/share/", "/share/guessed"])
def test_a_foreign_page_cannot_put_a_picture_into_the_library(shared, path):
    page = opened(shared)
    before = total(shared)
    foreign = page.context.new_page()
    foreign.goto("data:text/html,<body></body>")
    foreign.evaluate(FORGED, [f"{shared.service.url}{path}", list(draw(text="forged"))])
    expect(foreign.get_by_role("link", name="Library")).to_be_visible()

    assert page.evaluate(WAITING) == 0
    share(page, f"the person's own, after {path}")
    eventually(lambda: total(shared) == before + 1, "the person's own is stored")
    names = {photo["filename"] for photo in shared.service.get("/api/photos")["items"]}
    assert "forged.png" not in names


# The statuses of a picture and its thumbnail for whoever has no key, with what this browser has cached.
WITHOUT_KEY = """(id) => Promise.all(["image", "thumbnail"].map(async (kind) =>
    (await fetch(`/api/photos/${id}/${kind}`)).status))"""
WITH_KEY = WITHOUT_KEY.replace("${kind}`", "${kind}`, {headers: {Authorization: 'Bearer ' + key}}").replace(
    "(id) =>", "([id, key]) =>"
)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["revoked", "signed out"])
def test_pictures_in_the_browsers_cache_are_not_readable_without_a_key(shared, end):
    shared.tolerate("401|missing or wrong")
    photo = shared.service.upload(draw(text="private"))["id"]
    made = shared.service.call("POST", "/api/tokens", json={"name": "tablet", "scope": "full"}).json()
    page = shared.open(signed_in=False, service_workers="allow")
    page.evaluate("(token) => localStorage.setItem('snaplore.key', JSON.stringify(token))", made["token"])
    page.reload()
    settled(page, "Boolean(navigator.serviceWorker.controller)")
    settled(page, KEPT)
    assert page.evaluate(WITH_KEY, [photo, made["token"]]) == [200, 200]
    assert page.evaluate(WITHOUT_KEY, photo) == [401, 401]
    page.evaluate("caches.open('frame').then((frame) => frame.put('/mark', new Response('')))")

    with page.expect_response("**/sign-out") as emptied:
        if end == "revoked":
            shared.service.call("DELETE", f"/api/tokens/{made['id']}")
            page.evaluate("location.hash = '#/chat'")
        else:
            page.evaluate("location.hash = '#/settings/access'")
            page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    assert emptied.value.all_headers()["clear-site-data"] == '"cache"'
    settled(page, "caches.match('/mark').then((kept) => !kept)")
    assert page.evaluate(WITHOUT_KEY, photo) == [401, 401]


@pytest.mark.slow
def test_chromium_finds_the_page_installable(shared):
    page = opened(shared)
    session = page.context.new_cdp_session(page)
    manifest = session.send("Page.getAppManifest")

    assert manifest["errors"] == []
    assert json.loads(manifest["data"])["name"] == "Snaplore"
    assert session.send("Page.getInstallabilityErrors")["installabilityErrors"] in (
        [],
        [{"errorId": "in-incognito", "errorArguments": []}],
    )


@pytest.mark.slow
def test_shared_pictures_are_saved_now_or_when_the_network_is_back(shared):
    before = total(shared)
    page = opened(shared)
    share(page, "first", "second")
    eventually(lambda: total(shared) == before + 2, "both are stored")

    page.context.set_offline(True)
    share(page, "offline")
    page.reload()
    expect(page.get_by_role("link", name="Library")).to_be_visible()  # the frame is kept
    assert total(shared) == before + 2
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    eventually(lambda: total(shared) == before + 3, "the picture that waited is stored")
    # The answer of the service is there before the worker has removed the picture.
    eventually(lambda: page.evaluate(WAITING) == 0, "nothing waits any more")


@pytest.mark.slow
def test_a_phone_is_paired_shares_with_and_without_a_network_and_loses_its_access(shared):
    """The whole way of a phone, from the code on the owner's screen to the end of its access."""
    shared.tolerate("401|missing or wrong")
    before = total(shared)
    owner = shared.open("#/")
    reached = {"addresses": [shared.service.url], "loopback_only": False}
    owner.route("**/api/addresses", lambda route: route.fulfill(json=reached))
    owner.goto(f"{shared.service.url}/#/settings/devices")
    with owner.expect_response("**/api/pairing") as made:
        owner.get_by_role("button", name="Show a code").first.click()
    pairing = made.value.json()
    assert unquote(owner.locator(".pairing img").get_attribute("src")).endswith(pairing["qr"])

    # The phone's camera opens the address of the QR code.
    address = pairing["url"].removeprefix(f"{shared.service.url}/")
    phone = shared.open(
        address, signed_in=False, service_workers="allow", size=PHONE, is_mobile=True, has_touch=True
    )
    expect(phone.get_by_role("link", name="Library")).to_be_visible()
    secret = phone.evaluate("JSON.parse(localStorage.getItem('snaplore.key'))")
    settled(phone, "Boolean(navigator.serviceWorker.controller)")
    settled(phone, KEPT)
    settled(phone, f"({STORED}).then((keys) => keys.includes('{secret}'))")
    found = phone.context.new_cdp_session(phone).send("Page.getInstallabilityErrors")["installabilityErrors"]
    assert {problem["errorId"] for problem in found} <= {"in-incognito"}

    share(phone, "Boarding at gate 27")
    eventually(lambda: total(shared) == before + 1, "the first picture is stored")
    phone.context.set_offline(True)
    share(phone, "Dentist on Friday")
    phone.reload()
    expect(phone.get_by_role("link", name="Library")).to_be_visible()
    phone.context.set_offline(False)
    phone.evaluate("dispatchEvent(new Event('online'))")
    eventually(lambda: total(shared) == before + 2, "the second picture is stored")
    shared.service.wait_until_analysed()
    analysed = shared.service.get("/api/photos", page_size=2)["items"]
    assert {photo["analysis_status"] for photo in analysed} == {"done"}
    assert {photo["title"] for photo in analysed} == {"Boarding at gate 27", "Dentist on Friday"}

    owner.reload()
    (token,) = [held for held in shared.service.get("/api/tokens")["tokens"] if held["last_used_at"]]
    owner.get_by_role("button", name=f"End access: {token['name']}").click()
    owner.get_by_role("dialog").get_by_role("button", name="End access").click()
    expect(owner.get_by_role("button", name="End access")).to_have_count(0)
    headers = {"Authorization": f"Bearer {secret}"}
    assert shared.service.knock("GET", "/api/photos", headers=headers).status_code == 401
    phone.reload()
    expect(phone.get_by_label("Key", exact=True)).to_be_visible()


@pytest.mark.slow
def test_after_signing_out_nothing_waits_and_nothing_is_sent(shared):
    page = opened(shared)
    before = total(shared)
    page.context.set_offline(True)
    share(page, "never sent")
    page.evaluate("location.hash = '#/settings/access'")
    page.get_by_role("button", name="Sign out").click()
    settled(page, f"({WAITING}).then((count) => count === 0)")
    page.context.set_offline(False)
    order = "navigator.serviceWorker.ready.then((found) => found.active.postMessage({task: 'send'}))"
    assert page.evaluate(order) is None
    page.wait_for_timeout(500)
    assert total(shared) == before


@pytest.mark.slow
def test_the_worker_stores_the_key_only_of_a_person_who_stays_signed_in(shared):
    page = opened(shared)
    settled(page, f"({STORED}).then((keys) => keys.includes('{KEY}'))")
    passing = shared.open("#/library", signed_in=False, service_workers="allow")
    passing.get_by_label("Key", exact=True).fill(KEY)
    passing.get_by_label("Keep me signed in").uncheck()
    passing.get_by_role("button", name="Sign in").click()
    settled(passing, "Boolean(navigator.serviceWorker.controller)")
    before = total(shared)
    share(passing, "of a person who is only passing")
    passing.evaluate("dispatchEvent(new Event('online'))")
    eventually(lambda: total(shared) == before + 1, "the picture is sent while the person is there")
    assert passing.evaluate(STORED) == []


@pytest.mark.slow
def test_what_waits_goes_on_waiting_when_the_key_is_no_longer_accepted(shared):
    shared.tolerate("401|missing or wrong")
    made = shared.service.call("POST", "/api/tokens", json={"name": "phone", "scope": "full"}).json()
    page = shared.open(signed_in=False, service_workers="allow")
    page.evaluate("(token) => localStorage.setItem('snaplore.key', JSON.stringify(token))", made["token"])
    page.reload()
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    settled(page, "Boolean(navigator.serviceWorker.controller)")
    settled(page, f"({STORED}).then((keys) => keys.includes('{made['token']}'))")
    settled(page, KEPT)
    page.context.set_offline(True)
    share(page, "waits for the next key")
    shared.service.call("DELETE", f"/api/tokens/{made['id']}")
    page.context.set_offline(False)
    page.reload()
    expect(page.get_by_label("Key", exact=True)).to_be_visible()
    settled(page, f"({STORED}).then((keys) => keys.length === 0)")
    assert page.evaluate(WAITING) == 1


@pytest.mark.slow
def test_an_upload_waits_when_the_network_is_gone(shared, tmp_path, monkeypatch):
    page = opened(shared)
    before = total(shared)
    file = tmp_path / "later.png"
    file.write_bytes(draw(text="chosen while offline"))
    page.context.set_offline(True)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add screenshots").first.click()
    chooser.value.set_files(file)
    expect(page.get_by_text("Offline: sent later")).to_be_attached(timeout=90_000)
    page.context.set_offline(False)
    page.evaluate("dispatchEvent(new Event('online'))")
    eventually(lambda: total(shared) == before + 1, "the upload is stored")
