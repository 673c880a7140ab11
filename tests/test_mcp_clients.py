"""The official clients of the Model Context Protocol, of both eras and in both languages, and the Inspector
call every tool of a real service. `make mcp-clients` installs them; without them, these tests are skipped.
"""

import json
import shutil
import subprocess
from datetime import timedelta

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
TOOLS = ["search", "fetch", "search_screenshots", "get_screenshot", "recent_notes", "agenda", "list_records"]
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
