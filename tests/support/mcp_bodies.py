"""Bodies for `/mcp`: requests of every kind, and what becomes of them when their values, their form or their
bytes are damaged; and a check of the answers.
"""

import json
import random
from collections import Counter

from assistant.mcp import HANDSHAKE_VERSIONS, STATELESS
from outlets import mcp_tools

META = "io.modelcontextprotocol/"
STATUSES = (200, 202, 400, 404, 413, 415)
CODES = (-32700, -32600, -32601, -32602, -32020, -32022)

METHODS = (
    *("initialize", "ping", "server/discover", "tools/list", "tools/call", "subscriptions/listen"),
    *("notifications/initialized", "resources/read", "prompts/get", "", "rpc.x", "__class__"),
)
NASTY = (
    *(None, True, False, 0, -1, 1.5, 2**53, 2**63, 10**30, "", " ", "0", "x", "\0", "\ud7ff", "é", "工作"),
    *("#1", "null", "%", '"', "'", "a" * 5_000, "-" * 3_000, '"' * 999, "app:" * 500, "(" * 900, "9" * 50),
    *("is:kept", "before:", 'tag:"', "NEAR(a b)", "a* OR b*", "</data>", "=?base64?x?=", "T"),
    *("2026-11-21", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59+00:00", "library", "meeting due"),
    *([], {}, [[]], {"": {}}, [None] * 50, {"a": [{"b": [1]}]}, ["x"] * 300, {str(n): n for n in range(200)}),
)  # fmt: skip
ARGUMENTS = ("query", "id", "limit", "since", "until", "category", "intent", "device_id", "thumbnail", "x")
VERSIONS = (STATELESS, *HANDSHAKE_VERSIONS, "1900-01-01", "2031-01-01", "", "x", "é")
BYTES = (
    b"\0",
    b"\xff",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\\u",
    b"\\ud800",
    b"e9",
    b"-",
    b",",
    b":",
    b"",
)


def envelope(version=STATELESS):
    """What a stateless request says about itself in its body."""
    return {
        f"{META}protocolVersion": version,
        f"{META}clientInfo": {"name": "test", "version": "1"},
        f"{META}clientCapabilities": {},
    }


def made(chance: random.Random) -> tuple[bytes, dict[str, str]]:
    """A body and its headers."""
    message = _message(chance)
    headers = {}
    if chance.random() < 0.8:
        method, params = message["method"], message.get("params") or {}
        headers = {
            "MCP-Protocol-Version": params.get("_meta", {}).get(f"{META}protocolVersion", "2025-11-25")
        }
        headers |= {"Mcp-Method": method, "Mcp-Name": str(params.get("name", ""))}
    elif chance.random() < 0.5:
        headers = {"MCP-Protocol-Version": chance.choice(VERSIONS)}
    body = message
    if chance.random() < 0.1:
        body = [_message(chance) for _ in range(chance.randrange(13))]
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        body = _damaged(body, chance)
    raw = json.dumps(body, ensure_ascii=chance.random() < 0.5).encode("utf-8", "replace")
    if chance.random() < 0.2:
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(raw) + 1)
            raw = raw[:place] + chance.choice(BYTES) + raw[place + chance.randrange(3) :]
    if chance.random() < 0.02:
        raw = chance.choice(
            (b"[" * 9_999, b'{"a":' * 9_999, b"", bytes(chance.randbytes(300)), raw * 900, b" " * 300_000)
        )
    return raw, {
        name: value.encode("latin-1", "replace").decode("latin-1") for name, value in headers.items()
    }


def hold(answer) -> None:
    """Check that an answer is one of the protocol."""
    assert answer.status_code in STATUSES, (answer.status_code, answer.get_data(as_text=True)[:500])
    if answer.status_code == 202:
        assert answer.data == b""
        return
    if answer.mimetype == "text/event-stream":
        messages = [json.loads(event[6:]) for event in answer.text.split("\n\n") if event]
    else:
        found = json.loads(answer.data)
        if answer.status_code == 413 and set(found) == {"detail"}:
            return  # more than any path accepts
        messages = found if isinstance(found, list) else [found]
    for message in messages:
        assert message["jsonrpc"] == "2.0"
        assert ("error" in message) != ("result" in message or "method" in message)
        assert "error" not in message or message["error"]["code"] in CODES


def attack(agent, *, count: int, seed: int) -> Counter:
    """Post so many bodies; returns how often each status came."""
    chance = random.Random(seed)
    statuses: Counter = Counter()
    for _ in range(count):
        body, headers = made(chance)
        answer = agent.post(body, **headers)
        try:
            hold(answer)
        except Exception as problem:
            raise AssertionError(f"{problem}: {body[:2_000]!r} with {headers}") from problem
        statuses[answer.status_code] += 1
    return statuses


def _message(chance):
    method = chance.choice((*METHODS, *["tools/call"] * 20))
    message = {"jsonrpc": "2.0", "id": chance.choice((1, "a", 2**40)), "method": method, "params": {}}
    if method == "tools/call":
        chosen = chance.sample(ARGUMENTS, chance.randrange(4))
        arguments = {name: chance.choice(NASTY) for name in chosen}
        message["params"] = {"name": chance.choice((*mcp_tools.OFFERED, "none")), "arguments": arguments}
    elif method == "initialize":
        message["params"] = {"protocolVersion": chance.choice(VERSIONS), "capabilities": {}}
    elif method == "subscriptions/listen":
        message["params"] = {"notifications": {}}
    if chance.random() < 0.6:
        message["params"]["_meta"] = envelope(STATELESS if chance.random() < 0.9 else chance.choice(VERSIONS))
    return message


def _damaged(value, chance):
    """`value` with one of its parts lost or replaced."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        name = chance.choice(list(value))
        rest = {key: part for key, part in value.items() if key != name}
        return rest if chance.random() < 0.2 else {**rest, name: _damaged(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], _damaged(value[place], chance), *value[place + 1 :]]
    return chance.choice(NASTY)
