"""MCP servers: both eras of the protocol, dead and malicious servers, and registering servers."""

import dataclasses
import json
import threading

import pytest

import net
from app import create_app
from assistant import mcp, mcp_messages, mcp_servers
from tests.support.client import Client, detail
from tests.support.fake_mcp import TOOLS, FakeMCP

GUARD = net.Guard(dev_mode=True)
PUBLIC = "https://93.184.216.34/mcp"  # an address, so that no name is looked up


@pytest.fixture
def connect():
    """`connect(server)`: a client of the server, closed after the test."""
    clients = []

    def open_client(server, deadline=10.0):
        clients.append(
            mcp.Client(server if isinstance(server, str) else server.url, GUARD, deadline=deadline)
        )
        return clients[-1]

    yield open_client
    for client in clients:
        client.close()


@pytest.fixture(params=["handshake", "handshake-stream", "stateless", "stateless-stream"])
def server(request):
    """A server that follows the protocol, in each era and with each kind of answer."""
    with FakeMCP(stateless="stateless" in request.param, stream="stream" in request.param) as fake:
        yield fake


@pytest.fixture
def stateless():
    with FakeMCP(stateless=True) as fake:
        yield fake


@pytest.fixture
def handshake():
    with FakeMCP() as fake:
        yield fake


def result_of(*blocks, **fields):
    return {"content": list(blocks), **fields}


def text(words):
    return {"type": "text", "text": words}


def answer_to(request, **fields):
    return {"jsonrpc": "2.0", "id": request.body["id"], **fields}


# --------------------------------------------------------------------------------------------- lists of tools


def test_tools_are_listed_and_called_in_both_eras_and_both_kinds_of_answer(server, connect):
    client = connect(server)

    assert [(tool.name, tool.description) for tool in client.list_tools()] == [
        ("weather", "The weather of a place, 天气."),
        ("now.utc", ""),
    ]
    assert client.list_tools()[0].input_schema == TOOLS[0]["inputSchema"]
    assert client.call("weather", {"place": "Łódź"}) == ("Sunny, 晴", False)
    assert server.requests[-1].body["params"]["arguments"] == {"place": "Łódź"}


def test_the_handshake_is_made_once_and_in_order_and_the_session_is_ended(handshake, connect):
    client = connect(handshake)
    client.list_tools()
    client.call("weather", {})
    client.close()

    assert handshake.methods == [
        *("server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"),
    ]
    assert not handshake.sessions
    assert handshake.requests[1].body["params"]["protocolVersion"] == "2025-11-25"
    for request in handshake.requests[2:]:
        assert (request.headers["mcp-session-id"], request.headers["mcp-protocol-version"]) == (
            "session-1",
            "2025-11-25",
        )
    assert all(
        request.headers["accept"] == "application/json, text/event-stream" for request in handshake.requests
    )


def test_an_earlier_version_in_the_servers_answer_is_used(handshake, connect):
    handshake.version = "2025-03-26"
    assert not connect(handshake).call("weather", {}).is_error
    assert handshake.requests[-1].headers["mcp-protocol-version"] == "2025-03-26"


def test_a_stateless_server_is_asked_for_its_versions_once_and_never_for_a_session(stateless, connect):
    client = connect(stateless)
    client.list_tools()
    client.call("weather", {})
    client.close()

    assert stateless.methods == ["server/discover", "tools/list", "tools/call"]
    assert not any("mcp-session-id" in request.headers for request in stateless.requests)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}),
        (200, {"jsonrpc": "2.0", "id": 1, "result": {"supportedVersions": ["2025-11-25"]}}),
        (
            400,
            {
                "jsonrpc": "2.0",
                "id": 1,
                "error": {"code": -32022, "message": "No.", "data": {"supported": ["2025-06-18"]}},
            },
        ),
        (400, b""),
        (404, b"<h1>Not found</h1>"),
        (405, b"Method Not Allowed"),
        (500, b"Internal Server Error"),
        (200, b"hello"),
    ],
)
def test_an_answer_without_a_sign_of_the_later_era_leads_to_the_handshake(handshake, connect, status, body):
    handshake.reply("server/discover", body, status=status)
    assert connect(handshake).call("weather", {}).text == "Sunny, 晴"


def test_a_server_with_unknown_versions_only_is_a_failure(stateless, connect):
    error = {"code": -32022, "message": "No.", "data": {"supported": ["2031-01-01"]}}
    stateless.reply("server/discover", {"jsonrpc": "2.0", "id": 1, "error": error}, status=400)
    with pytest.raises(mcp.McpFailure, match=r"^localhost: .* no known version"):
        connect(stateless).list_tools()
    assert stateless.methods == ["server/discover"]


def test_a_list_of_several_pages_is_read_to_its_end(server, connect):
    schema = {"type": "object"}
    server.pages = [[{"name": f"tool_{page}", "inputSchema": schema}] for page in range(5)]
    assert [tool.name for tool in connect(server).list_tools()] == [f"tool_{page}" for page in range(5)]


def test_an_endless_list_is_read_up_to_the_limit_of_pages(handshake, connect):
    page = [{"name": "same", "inputSchema": {"type": "object"}}]
    for _ in range(mcp.MAX_PAGES + 5):
        handshake.act(
            "tools/list",
            lambda h, r: h.respond(200, answer_to(r, result={"tools": page, "nextCursor": "again"})),
        )
    assert [tool.name for tool in connect(handshake).list_tools()] == ["same"]
    assert handshake.methods.count("tools/list") == mcp.MAX_PAGES


def test_no_more_tools_are_read_than_the_limits_allow(handshake, connect):
    handshake.pages = [
        [{"name": f"tool_{number}", "inputSchema": {"type": "object"}} for number in range(500)]
    ]
    assert len(connect(handshake).list_tools()) == mcp.MAX_TOOLS
    handshake.pages = [
        [
            {"name": f"t{number}", "description": "x" * 1900, "inputSchema": {"type": "object"}}
            for number in range(90)
        ]
    ]
    assert 1900 * len(connect(handshake).list_tools()) <= mcp.MAX_LIST_CHARACTERS


def deep(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": "two words", "inputSchema": {"type": "object"}},
        {"name": "x" * 129, "inputSchema": {"type": "object"}},
        {"name": "line\r\nbreak", "inputSchema": {"type": "object"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "none"},
        {"name": "null", "inputSchema": None},
        {"name": "list", "inputSchema": []},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": "large", "inputSchema": {"type": "object", "description": "x" * 20_000}},
        {"name": "larger", "inputSchema": {"type": "object"}, "icons": ["x" * 50_000]},
        {"name": "deep", "inputSchema": deep(100)},
        {
            "name": "header",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        },
        {
            "name": "header",
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "string", "x-mcp-header": "A\r\nB"}},
            },
        },
        {
            "name": "header",
            "inputSchema": {
                "type": "object",
                "properties": {name: {"type": "string", "x-mcp-header": name} for name in ("a", "A")},
            },
        },
        {
            "name": "header",
            "inputSchema": {
                "type": "object",
                "oneOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}],
            },
        },
        "weather",
        None,
    ],
)
def test_an_unusable_tool_is_left_out_and_the_others_are_listed(handshake, connect, bad):
    handshake.pages = [[bad, *TOOLS]]
    assert [tool.name for tool in connect(handshake).list_tools()] == ["weather", "now.utc"]


def test_of_two_tools_of_one_name_the_first_is_taken(handshake, connect):
    handshake.pages = [[TOOLS[0], {**TOOLS[1], "name": "weather"}]]
    assert [tool.description for tool in connect(handshake).list_tools()] == [TOOLS[0]["description"]]


# ------------------------------------------------------------------------------------------- results of calls


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (result_of(text("one"), text("two")), ("one\ntwo", False)),
        (result_of(text("No such place."), isError=True), ("No such place.", True)),
        (result_of({"type": "image", "data": "aGk=", "mimeType": "image/png"}), ("[image image/png]", False)),
        (
            result_of({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}, text("a song")),
            ("[audio audio/wav]\na song", False),
        ),
        (
            result_of({"type": "resource_link", "uri": "file:///a.rs", "name": "a.rs"}),
            ("[link a.rs file:///a.rs]", False),
        ),
        (
            result_of({"type": "resource", "resource": {"uri": "file:///a", "text": "fn"}}),
            ("[resource file:///a]\nfn", False),
        ),
        (
            result_of({"type": "resource", "resource": {"uri": "file:///a", "blob": "aGk="}}),
            ("[resource file:///a]", False),
        ),
        (result_of({"type": "hologram"}), ("[hologram]", False)),
        (result_of(structuredContent={"degrees": 7}), ('{"degrees": 7}', False)),
        (result_of(text("7"), structuredContent={"degrees": 7}), ("7", False)),
        ({"structuredContent": ["天"]}, ('["天"]', False)),
        (result_of(text("a\0b")), ("ab", False)),
        (result_of(), ("", False)),
        (result_of(text("done"), resultType="complete", ttlMs=5, unknown=[[[]]]), ("done", False)),
    ],
)
def test_a_result_becomes_text(handshake, connect, result, expected):
    handshake.result = result
    assert connect(handshake).call("weather", {}) == expected


def test_a_long_result_is_cut(handshake, connect):
    handshake.result = result_of(text("天" * 50_000))
    assert connect(handshake).call("weather", {}).text == "天" * mcp.MAX_RESULT + " […]"


@pytest.mark.parametrize("status", [200, 400, 404, 422])
def test_an_error_of_the_server_is_a_result_that_a_model_can_read(stateless, connect, status):
    error = {"code": -32602, "message": "Unknown tool: wether"}
    stateless.act("tools/call", lambda h, r: h.respond(status, answer_to(r, error=error)))
    assert connect(stateless).call("wether", {}) == ("Unknown tool: wether", True)


def test_a_tool_that_requires_further_input_is_a_failure(stateless, connect):
    stateless.result = {"resultType": "input_required", "inputRequests": {}}
    with pytest.raises(mcp.McpFailure, match="requires further input"):
        connect(stateless).call("weather", {})


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(
            ("string", value)
            for value in (
                "us-west1",
                "Hello, 世界",
                " padded ",
                "line1\nline2",
                "=?base64?literal?=",
                "",
                None,
            )
        ),
        *(("integer", -7), ("boolean", True)),
    ],
)
def test_arguments_that_a_server_requires_in_headers_are_sent_there_as_well(
    stateless, connect, listed, kind, value
):
    region = {"type": kind, "x-mcp-header": "Region"}
    stateless.pages = [
        [{"name": "query", "inputSchema": {"type": "object", "properties": {"region": region}}}]
    ]
    client = connect(stateless)
    if listed:
        client.list_tools()

    assert client.call("query", {"region": value}).text == "Sunny, 晴"
    assert ("mcp-param-region" in stateless.requests[-1].headers) == (value is not None)


# --------------------------------------------------------------------------------------------------- sessions


@pytest.mark.parametrize("status", [400, 404])
def test_a_lost_session_is_opened_again_once(handshake, connect, status):
    client = connect(handshake)
    client.list_tools()
    handshake.forget_sessions()
    handshake.reply("tools/call", b"", status=status)

    assert client.call("weather", {}).text == "Sunny, 晴"
    assert handshake.requests[-1].headers["mcp-session-id"] == "session-2"
    assert handshake.methods.count("initialize") == 2


def test_a_server_that_loses_every_session_is_a_failure_after_two(handshake, connect):
    for _ in range(5):
        handshake.reply("tools/call", b"", status=404)
    with pytest.raises(mcp.McpFailure, match="404"):
        connect(handshake).call("weather", {})
    assert handshake.methods.count("tools/call") == 2


def test_an_error_with_the_status_of_a_lost_session_reaches_the_model(handshake, connect):
    error = {"code": -32602, "message": "place: is missing"}
    for _ in range(2):
        handshake.act("tools/call", lambda h, r: h.respond(400, answer_to(r, error=error)))
    assert connect(handshake).call("weather", {}) == ("place: is missing", True)


@pytest.mark.parametrize("session", ["two words", "x" * 2000])
def test_a_session_without_a_usable_id_is_a_failure(handshake, connect, session):
    result = {"protocolVersion": "2025-11-25"}
    handshake.act(
        "initialize",
        lambda h, r: h.respond(200, answer_to(r, result=result), headers={"Mcp-Session-Id": session}),
    )
    with pytest.raises(mcp.McpFailure, match="usable id"):
        connect(handshake).list_tools()


def test_a_server_that_refuses_to_end_a_session_is_ignored(handshake, connect):
    client = connect(handshake)
    client.list_tools()
    handshake.reply("DELETE", b"", status=405)
    client.close()
    assert handshake.methods[-1] == "DELETE"


# ---------------------------------------------------------------------------------------------------- streams


def test_a_ping_inside_a_stream_is_answered_before_the_stream_goes_on(handshake, connect):
    def ping_first(handler, request):
        handler.begin_stream()
        handler.message({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})
        handler.message({"jsonrpc": "2.0", "id": "p-1", "method": "ping"})
        pong = handshake.wait_for("response")
        handler.message(answer_to(request, result=result_of(text(json.dumps(pong.body)))))
        handler.end_stream()

    handshake.act("tools/call", ping_first)
    assert json.loads(connect(handshake).call("weather", {}).text) == {
        "jsonrpc": "2.0",
        "id": "p-1",
        "result": {},
    }
    assert handshake.wait_for("response").headers["mcp-session-id"] == "session-1"


def test_every_other_request_of_a_server_is_declined(handshake, connect):
    def ask_first(handler, request):
        handler.begin_stream()
        handler.message({"jsonrpc": "2.0", "id": 0, "method": "sampling/createMessage", "params": {}})
        handshake.wait_for("response")
        handler.message(answer_to(request, result=result_of(text("then without"))))
        handler.end_stream()

    handshake.act("tools/call", ask_first)
    assert connect(handshake).call("weather", {}).text == "then without"
    assert handshake.wait_for("response").body["error"]["code"] == -32601


def test_a_server_that_makes_endless_requests_is_cut_off(handshake, connect):
    def ask(handler, request):
        handler.begin_stream()
        for number in range(1000):
            handler.message({"jsonrpc": "2.0", "id": number, "method": "ping"})

    handshake.act("tools/call", ask)
    with pytest.raises(mcp.McpFailure, match="too many requests"):
        connect(handshake).call("weather", {})
    assert handshake.methods.count("response") == mcp.MAX_SERVER_REQUESTS


def test_a_stream_that_stays_open_after_the_answer_is_not_waited_for(stateless, connect):
    left = threading.Event()

    def stay(handler, request):
        handler.begin_stream()
        handler.message(answer_to(request, result=result_of(text("early"))))
        handler.wait_for_client(10)
        left.set()

    stateless.act("tools/call", stay)
    assert connect(stateless).call("weather", {}).text == "early"
    assert left.wait(90)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_is_read_the_same_however_its_bytes_are_split(size, end):
    lines = [
        b"\xef\xbb\xbf: a comment",
        b"id: 1",
        b"data:",
        b"",
        b"data: {",
        b'data:"a": "\xe5\xa4\xa9"}',
        b"",
        b"event: endpoint",
    ]
    lines += [b"data: /other", b"", b"retry: 5", b"", b"event: message", b"data: last", b"", b"data: no end"]
    stream = end.join(lines)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert list(mcp_messages.events(pieces)) == ['{\n"a": "天"}'.encode(), b"last"]


# --------------------------------------------------------------------------------- dead and malicious servers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"[]",
        b"null",
        b'{"jsonrpc": "2.0", "id": 99, "result": {"tools": []}}',
        b'{"jsonrpc": "2.0", "id": "2", "result": {"tools": []}}',
        b'{"jsonrpc": "2.0", "result": {"tools": []}}',
        b'{"jsonrpc": "2.0", "id": 2}',
        b'{"jsonrpc": "2.0", "id": 2, "result": null}',
        b'{"jsonrpc": "2.0", "id": 2, "result": []}',
        b'{"jsonrpc": "2.0", "id": 2, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 2, "result": {"tools": 7}}',
        b'{"jsonrpc": "2.0", "id": 2, "result": {"tools": [], "nextCursor": 7}}',
        b'{"jsonrpc": "2.0", "id": 2, "error": "no"}',
        b'{"jsonrpc": "2.0", "id": 2, "error": {"code": "x"}}',
        b'{"jsonrpc": "2.0", "id": 2, "result": {"tools": [], "nextCursor": "\xff"}}',
        b'{"jsonrpc": "2.0", "id": 2, "result": ' + b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 2, "result": {"tools": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
def test_garbage_is_a_failure_with_a_sentence_that_quotes_nothing(stateless, connect, body, kind):
    stateless.reply(
        "tools/list", b"data: " + body + b"\n\n" if kind == "text/event-stream" else body, kind=kind
    )
    with pytest.raises(mcp.McpFailure, match=r"^localhost: ") as caught:
        connect(f"{stateless.url}?token=secret").list_tools()
    assert "secret" not in caught.value.detail
    assert caught.value.status == 502


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"content": None},
        {"content": "words"},
        {"content": ["words"]},
        {"content": [{"text": "no type"}]},
        result_of(resultType="task"),
        7,
    ],
)
def test_a_result_of_a_wrong_form_is_a_failure(stateless, connect, result):
    stateless.result = result
    with pytest.raises(mcp.McpFailure):
        connect(stateless).call("weather", {})


@pytest.mark.parametrize("status", [202, 301, 307, 401, 403, 429, 500, 503])
def test_a_status_without_an_answer_is_a_failure(stateless, connect, status):
    stateless.reply("tools/call", b"", status=status)
    with pytest.raises(mcp.McpFailure, match=str(status)):
        connect(stateless).call("weather", {})


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["server/discover", "initialize", "notifications/initialized", "tools/call"]
)
def test_a_call_of_a_silent_server_ends_at_the_deadline(handshake, connect, method):
    handshake.act(method, lambda handler, request: handler.wait_for_client(10))
    with pytest.raises(net.TimedOut):
        connect(handshake, deadline=0.4).call("weather", {})


@pytest.mark.slow
@pytest.mark.parametrize("drop", [b": alive\n\n", b"x", b"\n", b"data: {}\n\n"])
def test_a_stream_that_drips_is_cut_off_at_the_deadline(stateless, connect, drop):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    stateless.act("tools/call", lambda handler, request: handler.drip(head, drop, 0.02))
    with pytest.raises(net.TimedOut):
        connect(stateless, deadline=0.4).call("weather", {})


def test_the_deadline_holds_for_all_pages_together(stateless, connect):
    def slowly(handler, request):
        if handler.wait_for_client(0.1):
            handler.close_connection = False
        handler.respond(200, answer_to(request, result={"tools": [], "nextCursor": "more"}))

    for _ in range(mcp.MAX_PAGES):
        stateless.act("tools/list", slowly)
    with pytest.raises(net.TimedOut):
        connect(stateless, deadline=0.5).list_tools()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_over_the_size_limit_is_cut_off(stateless, connect, kind):
    stateless.reply("tools/list", b"x" * (mcp.MAX_LIST_BYTES + 1), kind=kind)
    stateless.reply("tools/call", b"x" * (mcp.MAX_RESULT_BYTES + 1), kind=kind)
    client = connect(stateless)
    with pytest.raises(net.AnswerTooLarge, match="over 1 MB"):
        client.list_tools()
    with pytest.raises(net.AnswerTooLarge, match="over 4 MB"):
        client.call("weather", {})


def test_a_broken_connection_and_a_missing_server_are_failures(stateless, connect):
    stateless.act(
        "tools/call", lambda handler, request: handler.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{")
    )
    client = connect(stateless)
    with pytest.raises(net.Unreachable):
        client.call("weather", {})
    stateless.close()
    with pytest.raises(net.Unreachable):
        client.call("weather", {})


def test_a_server_that_comes_back_is_negotiated_with_again(stateless, connect):
    stateless.act("server/discover", lambda handler, request: handler.send(b""))
    client = connect(stateless)
    with pytest.raises(net.Unreachable):
        client.list_tools()
    assert len(client.list_tools()) == 2


def test_an_address_that_the_guard_refuses_is_a_failure_like_any_other():
    with pytest.raises(net.CallFailed, match="must use https"):
        mcp.Client("http://localhost/mcp", net.Guard(), deadline=1)


# ----------------------------------------------------------------------------------------------- the register


def post(client, **fields):
    return client.post("/api/mcp-servers", json={"id": "weather", "name": "Weather", "url": PUBLIC, **fields})


SHOWN = {
    "id": "weather",
    "name": "Weather",
    "url": PUBLIC,
    "description": "",
    "enabled": True,
    "trusted": False,
}


def test_a_server_is_registered_listed_changed_and_deleted(client):
    assert post(client).json == SHOWN
    assert client.get("/api/mcp-servers").json == {"servers": [SHOWN]}
    changed = client.put("/api/mcp-servers/weather", json={"enabled": False, "description": "Forecasts"})
    assert changed.json == {**SHOWN, "enabled": False, "description": "Forecasts"}
    assert client.put("/api/mcp-servers/weather", json={}).json == changed.json
    assert (
        client.put("/api/mcp-servers/weather", json={"name": "Sky", "url": f"{PUBLIC}/2"}).json["url"]
        == f"{PUBLIC}/2"
    )
    assert client.delete("/api/mcp-servers/weather").json == {"message": "Deleted"}
    assert client.get("/api/mcp-servers").json == {"servers": []}


def test_servers_are_listed_in_the_order_of_registering(client):
    for server_id in ("b", "a", "c"):
        post(client, id=server_id)
    assert [server["id"] for server in client.get("/api/mcp-servers").json["servers"]] == ["b", "a", "c"]


def test_an_id_is_registered_once(client):
    post(client)
    assert "weather exists" in detail(post(client, name="Other"), 409)
    assert client.get("/api/mcp-servers").json == {"servers": [SHOWN]}


@pytest.mark.parametrize("method", ["put", "delete"])
def test_a_server_that_is_not_registered_is_404(client, method):
    options = {"json": {"enabled": True}} if method == "put" else {}
    assert detail(getattr(client, method)("/api/mcp-servers/none", **options), 404) == "MCP server not found"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("id", value) for value in ("", "a b", "a/b", "ä", "x" * 65, "a\n", 7, None)),
        *(("name", value) for value in ("", "x" * 201, 7, "a\0b")),
        *(
            ("url", value)
            for value in (
                "",
                "http://93.184.216.34/",
                "https://127.0.0.1/",
                "https://10.0.0.1/",
                "http://localhost/",
                7,
            )
        ),
        ("description", "x" * 2001),
    ],
)
def test_the_error_about_an_invalid_field_names_it(client, field, value):
    assert detail(post(client, **{field: value}), 400).startswith(f"{field}: ")
    assert client.get("/api/mcp-servers").json == {"servers": []}


@pytest.mark.parametrize("fields", [{"url": "https://127.0.0.1/"}, {"enabled": "yes"}, {"name": ""}])
def test_an_invalid_change_changes_nothing(client, fields):
    post(client)
    assert detail(
        client.put("/api/mcp-servers/weather", json={"description": "new", **fields}), 400
    ).startswith(next(iter(fields)))
    assert client.get("/api/mcp-servers").json == {"servers": [SHOWN]}


@pytest.mark.parametrize("field", ["id", "name", "url"])
def test_required_fields_are_required(client, field):
    fields = {"id": "weather", "name": "Weather", "url": PUBLIC}
    del fields[field]
    assert detail(client.post("/api/mcp-servers", json=fields), 400) == f"{field}: is missing"


def test_dev_mode_and_the_allowed_hosts_allow_the_same_as_for_models(settings):
    client = Client(
        create_app(
            dataclasses.replace(settings, dev_mode=True, api_key="mine", llm_allowed_hosts=("10.1.2.3",))
        )
    )
    assert post(client, url="http://localhost:3001/mcp").status_code == 200
    assert post(client, id="lan", url="http://10.1.2.3/mcp").status_code == 200
    assert detail(post(client, id="other", url="http://10.1.2.4/mcp"), 400).startswith("url: ")


def test_the_name_of_a_tool_names_its_server_where_possible():
    assert mcp_servers.tool_name("weather", "get_now") == "mcp__weather__get_now"


def test_no_two_tools_have_one_name_and_every_name_is_valid():
    tools = [
        ("a", "b__c"),
        ("a__b", "c"),
        ("a", "_b"),
        ("a_", "b"),
        ("a", "x.y"),
        ("a", "x_y"),
        ("s" * 64, "t" * 128),
        ("s" * 64, "t" * 127),
    ]
    names = [mcp_servers.tool_name(*tool) for tool in tools]
    assert len(set(names)) == len(tools)
    assert all(mcp_servers._TOOL_NAME.fullmatch(name) for name in names)


# --------------------------------------------------------------------------------------- the reference server


@pytest.mark.slow
def test_the_reference_server_is_understood(connect, reference_server):
    client = connect(reference_server)
    assert "echo" in [tool.name for tool in client.list_tools()]
    assert client.call("echo", {"message": "Grüße, 天"}) == ("Echo: Grüße, 天", False)
    assert client.call("echo", {}).is_error
    assert "[image image/png]" in client.call("get-tiny-image", {}).text
