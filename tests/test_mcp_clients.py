"""The official clients of the Model Context Protocol, of both eras and in both languages, and the Inspector
call every tool of a real service. `make mcp-clients` installs them; without them, these tests are skipped.
"""

import json
import shutil
import subprocess
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from assistant.mcp import HANDSHAKE, STATELESS
from clock import local_day, utc_now
from settings import ROOT
from tests.support.drawing import draw
from tests.support.service import PATIENCE, Service

pytestmark = pytest.mark.slow

CLIENTS = ROOT / "tests" / "mcp-clients"
NODE = shutil.which("node") or "node"
OLDEST_NODE = 20
INSPECTOR = CLIENTS / "node_modules" / "@modelcontextprotocol" / "inspector" / "package.json"
TOOLS = [
    *("search", "fetch", "search_screenshots", "get_screenshot", "recent_notes", "agenda"),
    *("list_records", "list_threads", "overview"),
]
DUE = local_day(utc_now() + timedelta(days=2)).isoformat()
WORDS = f"Library account\nYour loan is due {DUE}"

PYTHON_SDK = {
    "handshake": [CLIENTS / ".venv-handshake" / "bin" / "python", CLIENTS / "handshake.py"],
    "stateless": [CLIENTS / ".venv-stateless" / "bin" / "python", CLIENTS / "stateless.py"],
}
TYPESCRIPT_SDK = {
    "handshake": [NODE, CLIENTS / "handshake.js"],
    "stateless": [NODE, CLIENTS / "stateless.js"],
}
# The command, the era that a client of both eras is told to speak, and the version that it then speaks.
SDKS = {
    "Python, handshake": (PYTHON_SDK["handshake"], "", HANDSHAKE),
    "Python, stateless": (PYTHON_SDK["stateless"], "auto", STATELESS),
    "Python, stateless, told to shake hands": (PYTHON_SDK["stateless"], "legacy", HANDSHAKE),
    "TypeScript, handshake": (TYPESCRIPT_SDK["handshake"], "", HANDSHAKE),
    "TypeScript, stateless": (TYPESCRIPT_SDK["stateless"], "auto", STATELESS),
    "TypeScript, stateless, told to shake hands": (TYPESCRIPT_SDK["stateless"], "legacy", HANDSHAKE),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service with two workers and one screenshot, which it has read."""
    with Service(tmp_path_factory.mktemp("mcp"), "-w", "2", language="en", read_locally="true") as service:
        assert service.upload(draw(WORDS, size=(900, 400)))["id"] == 1
        service.wait_until_analysed()
        yield service


@pytest.fixture
def token(service):
    return service.call("POST", "/api/tokens", json={"name": "Agent", "scope": "read"}).json()


def need(folder):
    """Skip the test where this folder of packages is not installed completely, or cannot be used."""
    if not list((CLIENTS / folder).glob(".ready*")):
        pytest.skip(f"make mcp-clients has not installed {folder}")
    if folder == "node_modules":
        version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.strip("v").partition(".")[0]) < OLDEST_NODE:
            pytest.skip(f"the clients need Node {OLDEST_NODE}, and this is {version.strip()}")


def run(command, given):
    """What a client of `command` writes; None when it fails."""
    need("node_modules" if command[0] == NODE else command[0].parent.parent.name)
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    print(done.stderr[-3_000:])
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.parametrize("name", SDKS)
def test_an_official_client_lists_and_calls_every_tool_until_its_token_is_revoked(service, token, name):
    command, era, version = SDKS[name]
    calls = [
        ["search", {"query": "library"}],
        ["fetch", {"id": "1"}],
        ["search_screenshots", {"query": "library", "limit": 3}],
        ["get_screenshot", {"id": 1, "thumbnail": True}],
        ["recent_notes", {}],
        ["agenda", {}],
        ["list_records", {}],
        ["get_screenshot", {"id": 999}],
    ]
    given = {"url": f"{service.url}/mcp", "token": token["token"], "calls": calls, "era": era}

    said = run(command, given)
    assert (said["version"], said["tools"]) == (version, TOOLS)
    *results, failed = said["results"]
    found = [result["structuredContent"] for result in results]
    assert found[0]["results"][0]["url"] == f"{service.url}/#/photo/1"
    assert "Library account" in found[1]["text"]
    assert [one["id"] for one in found[2]["results"]] == [1]
    assert "Library account" in found[3]["screenshot"]["text"]
    assert [block["type"] for block in results[3]["content"]] == ["text", "image"]
    assert found[4]["results"] == []
    assert [event["starts_at"] for event in found[5]["results"]] == [DUE]
    assert failed["isError"] is True
    assert failed["content"][0]["text"] == "Photo not found"

    service.call("DELETE", f"/api/tokens/{token['id']}")
    assert run(command, given) is None


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_no_fault_with_the_tools_and_calls_them(service, token, era):
    need("node_modules")
    program = INSPECTOR.parent / json.loads(INSPECTOR.read_text())["bin"]["mcp-inspector"]

    def inspect(*arguments):
        command = [NODE, program, "--cli", f"{service.url}/mcp", "--transport", "http", "--quiet"]
        command += ["--header", f"Authorization: Bearer {token['token']}", "--protocol-era", era, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE, check=False)
        assert done.returncode == 0, done.stderr[-3_000:]
        return json.loads(done.stdout)

    listed = inspect("--method", "tools/list", "--strict")
    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    for name, arguments in (
        ("search", {"query": "library"}),
        ("fetch", {"id": "1"}),
        ("search_screenshots", {"query": "library"}),
        ("get_screenshot", {"id": 1}),
        ("recent_notes", {"limit": 1}),
        ("agenda", {}),
        ("list_records", {}),
    ):
        given = ("--tool-name", name, "--tool-args-json", json.dumps(arguments))
        result = inspect("--method", "tools/call", *given)
        assert not result.get("isError"), name
        assert result["structuredContent"], name


# ------------------------------------------------------------------------------------------------- questions

ZONE = "Europe/Berlin"
YESTERDAY = local_day(utc_now()) - timedelta(days=1)
SOUP = "Tomato soup\n1 kg tomatoes, 2 onions\nSimmer for 30 minutes\nServe with bread"
SCREENS = {
    "loan": WORDS,
    "bread": "Green Market\nReceipt\n21.11.2026 14:05\nBread 3.20\nMilk 1.10\nTotal EUR 4.30",
    "cheese": "Green Market\nReceipt\n22.11.2026 09:12\nCheese 12.00\nWine 7.50\nTotal EUR 19.50",
    "sent": "DHL\nTracking number 00340434161094042557\nYour parcel has been shipped",
    "arrived": "DHL\nTracking number 00340434161094042557\nEntregado el 4 de noviembre",
    "power": f"City Power\nInvoice number 2026-118\nAmount due $61.80\nDue date {DUE}",
    "soup": SOUP,
    "card": "Harbor Bank\nCard number 4532 0151 1283 0366\nValid until 08/33",
    "article": "The history of lighthouses\nChapter one",
}
LONG = "\n".join(f"Lighthouse {number} stands on rock." for number in range(700))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A service with the screens, and their ids. The soup was photographed yesterday at 19:30 local time."""
    folder = tmp_path_factory.mktemp("questions")
    with (
        pytest.MonkeyPatch.context() as patch,
        Service(folder, language="en", read_locally="true") as service,
    ):
        service.stop()
        patch.setenv("TZ", ZONE)
        service.start()
        evening = datetime.combine(YESTERDAY, time(19, 30), ZoneInfo(ZONE))
        ids = {}
        for name, text in SCREENS.items():
            moment = evening if name == "soup" else datetime.now(UTC) - timedelta(days=3)
            fields = {"original_timestamp": str(int(moment.timestamp() * 1000)), "device_id": "pixel"}
            picture = draw(text, size=(900, 120 + 90 * len(text.split("\n"))))
            ids[name] = service.upload(picture, f"{name}.png", device_name="My Pixel", **fields)["id"]
        service.wait_until_analysed()
        for name, own in {"article": {"text": LONG}, "soup": {"tags": ["Kitchen"]}}.items():
            assert service.call("PATCH", f"/api/photos/{ids[name]}", json=own).ok
        yield service, ids


@pytest.fixture
def ask(library):
    """`ask(tool, **arguments)`: the structured result that an official client gets."""
    service, _ = library
    made = service.call("POST", "/api/tokens", json={"name": "Agent", "scope": "read"}).json()

    def call(*calls):
        given = {"url": f"{service.url}/mcp", "token": made["token"], "calls": calls, "era": "auto"}
        return run(PYTHON_SDK["stateless"], given)["results"]

    yield lambda tool, **arguments: call([tool, arguments])[0]
    service.call("DELETE", f"/api/tokens/{made['id']}")


def test_questions_are_answered_over_an_official_client(library, ask):
    """The questions were written before the answers; each takes the tool that its description names."""
    _, ids = library

    def found(tool, **arguments):
        result = ask(tool, **arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def shown(result):
        return {one["id"] for one in result["results"]}

    # 1. Which time is it for me, and which tags and devices are there?
    about = found("overview")
    assert (about["time_zone"], about["total"]) == (ZONE, len(SCREENS))
    assert about["now"][:10] == datetime.now(ZoneInfo(ZONE)).date().isoformat()
    assert about["tags"] == [{"name": "Kitchen", "count": 1}]
    assert about["devices"] == [{"device_id": "pixel", "name": "My Pixel"}]
    # 2. How much did I spend at Green Market?
    spent = found("list_records", type="Receipt", text="Green Market")
    assert spent["sums"] == [{"currency": "EUR", "value": "23.80", "count": 2}]
    # 3. Which receipt was the larger one?
    assert any("19.50" in one["text"] for one in spent["results"] if one["id"] == ids["cheese"])
    # 4. Where is my parcel?
    (parcel,) = found("list_threads", type="parcel")["results"]
    assert (parcel["state"], parcel["said_on"]) == ("delivered", ids["arrived"])
    assert set(parcel["screenshots"]) == {ids["sent"], ids["arrived"]}
    # 5. Which bills are to be paid?
    bills = found("list_records", type="Invoice")
    assert bills["sums"] == [{"currency": "USD", "value": "61.80", "count": 1}]
    # 6. What is due in the next days?
    assert {one["starts_at"] for one in found("agenda")["results"]} == {DUE}
    # 7. What did I capture yesterday evening?
    evening = found("search_screenshots", since=f"{YESTERDAY}T18:00", until=f"{YESTERDAY}T23:00")
    assert shown(evening) == {ids["soup"]}
    # 8. When was that?
    assert evening["results"][0]["taken"].startswith(f"{YESTERDAY}T19:30:00+0")
    # 9. How long does the soup simmer?
    assert shown(found("search_screenshots", query="tag:kitchen")) == {ids["soup"]}
    assert "30 minutes" in found("get_screenshot", id=ids["soup"])["screenshot"]["text"]
    # 10. What is the last lighthouse of the article?
    text, offset = "", 0
    while offset is not None:
        part = found("get_screenshot", id=ids["article"], offset=offset)["screenshot"]
        text, offset = text + part["text"], part.get("next_offset")
    assert "Lighthouse 699 stands" in text
    # 11. What is the number of my card?
    card = found("get_screenshot", id=ids["card"])["screenshot"]
    assert (card["withheld"], "text" in card) == (["all"], False)
    # 12. Have I anything about the "harbour volcano"?
    nothing = found("search_screenshots", query='"tomato lighthouse"')
    assert nothing["total"] == 0
    assert {near["word"] for near in nothing["nearest"]} & {"tomato", "lighthouse"}
    # 13. Where are my tomatos? (misspelt)
    assert ids["soup"] in shown(found("search_screenshots", query="simmmer"))
    # 14. Which screenshots are there, a few at a time?
    seen, cursor = set(), ""
    while cursor is not None:
        page = found("search_screenshots", limit=4, cursor=cursor)
        seen |= shown(page)
        cursor = page.get("next_cursor")
    assert seen == set(ids.values())
    # 15. Show me the recipe so that I can read it.
    picture = ask("get_screenshot", id=ids["soup"], thumbnail=True, size="large")["content"][1]
    assert (picture["type"], picture["mimeType"]) == ("image", "image/jpeg")
    # 16. What have I filed under is:weird?
    assert found("search_screenshots", query="soup is:weird")["unknown_operators"] == ["is:weird"]


@pytest.mark.parametrize("name", ["Python, stateless", "TypeScript, handshake", "TypeScript, stateless"])
def test_a_client_with_a_wrong_token_shows_the_sentence(service, name):
    # The Python SDK of the era of handshakes shows the status and no body, whatever the body is.
    command, era, _ = SDKS[name]
    need("node_modules" if command[0] == NODE else command[0].parent.parent.name)
    given = {"url": f"{service.url}/mcp", "token": "snp_wrong", "calls": [], "era": era}
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
    assert done.returncode != 0
    assert "The API key is missing or wrong" in done.stdout + done.stderr
