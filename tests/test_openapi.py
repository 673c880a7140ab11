"""The contract: whole, valid, true to `spec.md`, and what the service keeps to.

Every answer that any test gets through the `client` fixture is held against it as well
(`tests/support/contract.py`).
"""

import copy
import re
from collections.abc import Iterator
from typing import Any, TypedDict

import jsonschema_rs
import openapi_spec_validator
import pytest

from tests.support import contract
from tests.support.client import detail
from tests.support.drawing import draw
from tls import trust
from web import examples, openapi

# `spec.md` and, after the empty line, what the service has beyond it.
ENDPOINTS = """
GET    /
GET    /api/health
GET    /api/addresses
PUT    /api/network
POST   /api/photos/upload
POST   /api/photos/upload-batch
GET    /api/photos
GET    /api/photos/apps
GET    /api/photos/timeline
GET    /api/photos/{photo_id}
GET    /api/photos/{photo_id}/image
GET    /api/photos/{photo_id}/thumbnail
GET    /api/photos/{photo_id}/lines
DELETE /api/photos/{photo_id}
GET    /api/photos/devices
GET    /api/photos/sync-state
POST   /api/photos/sync-state
GET    /api/analysis
POST   /api/analysis/{photo_id}/reprocess
GET    /api/stats
POST   /api/chat/send
POST   /api/chat/send-with-file
POST   /api/chat/conversations/{conversation_id}/calls/{call_id}
GET    /api/chat/conversations
GET    /api/chat/conversations/{conversation_id}
GET    /api/chat/conversations/{conversation_id}/messages
GET    /api/chat/conversations/{conversation_id}/messages/{message_id}/attachment
DELETE /api/chat/conversations/{conversation_id}
GET    /api/dynamics
GET    /api/dynamics/stats
GET    /api/dynamics/{dynamic_id}
PUT    /api/dynamics/{dynamic_id}/read
PUT    /api/dynamics/read-all
PUT    /api/dynamics/{dynamic_id}/pin
DELETE /api/dynamics/{dynamic_id}
POST   /api/dynamics/trigger
GET    /api/memories
GET    /api/memories/stats
DELETE /api/memories/{memory_id}
GET    /api/config/llm
PUT    /api/config/llm
GET    /api/config/llm/presets
POST   /api/config/llm/presets/{name}/apply
POST   /api/push/register
GET    /api/push/devices
DELETE /api/push/devices/{device_id}
POST   /api/push/test
POST   /api/push/broadcast
GET    /api/feeds
POST   /api/feeds
DELETE /api/feeds/{feed_id}
GET    /api/webhooks
POST   /api/webhooks
PATCH  /api/webhooks/{webhook_id}
DELETE /api/webhooks/{webhook_id}
POST   /api/webhooks/{webhook_id}/test
GET    /api/webhooks/{webhook_id}/deliveries
POST   /api/webhooks/{webhook_id}/deliveries/{delivery_id}/send
GET    /api/photos/{photo_id}/redaction
POST   /api/photos/{photo_id}/redacted
POST   /api/photos/{photo_id}/shares
GET    /api/shares
DELETE /api/shares/{share_id}
GET    /s/{secret}
GET    /feed/{token}/agenda.ics
GET    /feed/{token}/notes.atom
GET    /feed/{token}/search.atom
GET    /api/skills
GET    /api/skills/{skill_id}
POST   /api/skills
PUT    /api/skills/{skill_id}
DELETE /api/skills/{skill_id}
GET    /api/mcp-servers
POST   /api/mcp-servers
DELETE /api/mcp-servers/{server_id}

PATCH  /api/photos/{photo_id}
POST   /api/photos/{photo_id}/trash
POST   /api/photos/{photo_id}/restore
POST   /api/photos/trash/empty
POST   /api/photos/batch
POST   /api/photos/export
GET    /api/photos/tags
GET    /api/photos/sensitive
GET    /api/photos/duplicates
GET    /api/photos/expiring
POST   /api/photos/expiring/keep
GET    /api/openapi.json
GET    /api/search
GET    /api/searches
POST   /api/searches
POST   /api/searches/{search_id}/opened
DELETE /api/searches/{search_id}
POST   /api/photos/{photo_id}/opened
GET    /api/search/related
GET    /api/records
GET    /api/records/types
GET    /api/photos/{photo_id}/proposals
POST   /api/photos/{photo_id}/proposals
GET    /api/records.csv
GET    /api/records.jsonld
GET    /api/threads
GET    /api/threads/{thread_id}
DELETE /api/threads/{thread_id}/photos/{photo_id}
DELETE /api/threads/apart/{photo_id}
GET    /api/agenda
POST   /api/agenda/{item_id}/dismiss
DELETE /api/agenda/{item_id}/dismiss
GET    /api/usage
POST   /api/config/llm/test
GET    /api/data/stats
GET    /api/data/retention
GET    /api/data/retention/preview
PUT    /api/data/retention
GET    /api/data/codes
PUT    /api/data/codes
GET    /api/data/keys
GET    /api/data/export
POST   /api/data/clear
PUT    /api/mcp-servers/{server_id}
GET    /api/photos/{photo_id}/state
GET    /api/tokens
POST   /api/tokens
PATCH  /api/tokens/{token_id}
DELETE /api/tokens/{token_id}
POST   /api/pairing
POST   /api/pairing/redeem
GET    /api/watch
POST   /api/recipes/{kind}
"""

# What `spec.md` shows of each input, by its names.
INPUTS = {
    "POST /api/photos/upload": (
        "device_id device_name source_type local_media_store_id original_timestamp file_timestamp mime_type"
        " file!"
    ),
    "POST /api/photos/upload-batch": (
        "device_id! device_name timestamps file_timestamps local_ids mime_types files!"
    ),
    "GET /api/photos": (
        "page page_size status device_id category intent since until app order kept tag trash stacks"
    ),
    "GET /api/photos/sync-state": "device_id!",
    "POST /api/photos/sync-state": "device_id! since_ms device_name",
    "GET /api/analysis": "page page_size status intent",
    "POST /api/chat/send": "message! conversation_id device_id skill_id confirm",
    "POST /api/chat/send-with-file": "message conversation_id device_id skill_id confirm file",
    "GET /api/chat/conversations": "device_id page page_size",
    "GET /api/chat/conversations/{conversation_id}/messages": "conversation_id! after_id",
    "GET /api/dynamics": "cursor limit category device_id",
    "GET /api/memories": "page page_size memory_type category device_id",
    "PUT /api/config/llm": "provider base_url api_key model temperature",
    "POST /api/config/llm/presets/{name}/apply": "name! api_key",
    "POST /api/push/register": "device_id! token! platform device_name device_model app_version",
    "POST /api/push/test": "device_id!",
    "POST /api/skills": "id! name! description system_prompt! icon",
    "POST /api/mcp-servers": "id! name! url! description trusted",
    "PUT /api/data/retention": "retention_days!",
    "PUT /api/data/codes": "days!",
    "POST /api/data/clear": "confirm!",
    "GET /api/search/related": "q limit",
    "GET /api/search": "q limit category intent device_id since until app",
}


PAGE_PARTS = ("manifest", "service_worker", "icon", "share", "sign_out", "page_part", *trust.PATHS)


@pytest.fixture
def document(app):
    return contract.document(app)


def operations(document):
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def listed(text):
    return {" ".join(line.split()) for line in text.splitlines() if line}


def test_every_endpoint_is_published_and_nothing_else(app, document):
    rules = {
        f"{method} {rule.rule}"
        for rule in app.url_map.iter_rules()
        if rule.endpoint not in PAGE_PARTS
        and rule.endpoint != "mcp.call"  # the contract of `/mcp` is its protocol
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    rules = {re.sub("<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", rule) for rule in rules}

    assert set(operations(document)) == rules
    assert rules == listed(ENDPOINTS)


@pytest.mark.slow
def test_it_is_valid_openapi_3_1(document):
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["license"]["identifier"] == "MIT"
    openapi_spec_validator.validate(document)


def test_no_schema_has_a_name_that_client_makers_keep_for_themselves(document):
    assert "Problem" in document["components"]["schemas"]
    assert not {"Error", "Object", "Promise", "Date"} & set(document["components"]["schemas"])


def test_it_is_open_to_everybody_but_a_wrong_key_is_refused(app, document):
    anybody = app.test_client()
    assert anybody.get("/api/openapi.json").json == document
    detail(anybody.get("/api/openapi.json", headers={"Authorization": "Bearer wrong"}), 401)


def test_it_says_what_needs_the_key(document):
    for named, operation in operations(document).items():
        is_open = (
            named in ("GET /", "GET /api/health", "GET /api/openapi.json", "POST /api/pairing/redeem")
            or "/feed/" in named
            or "/s/" in named
        )
        assert (operation.get("security", document["security"]) == []) == is_open
        assert ("403" in operation["responses"]) != is_open
        assert "401" in operation["responses"] or is_open


def test_every_operation_has_a_name_of_its_own(document):
    made = operations(document).values()

    assert len({operation["operationId"] for operation in made}) == len(made)


def test_every_operation_says_what_client_makers_ask_for(document):
    found = list(shortcomings(document))
    assert not found, "\n".join(found)


def test_what_an_operation_does_not_say_is_named(document):
    poor = copy.deepcopy(document)
    poor["tags"][0]["description"] = ""
    poor["components"]["schemas"]["Health"]["properties"]["mood"] = {"type": "string"}
    health, photo = poor["paths"]["/api/health"]["get"], poor["paths"]["/api/photos/{photo_id}"]["get"]
    del health["description"], health["responses"]["414"]
    del photo["responses"]["200"]["content"]["application/json"]["example"]
    photo["parameters"][0]["example"] = "twelve"

    assert set(shortcomings(poor)) == {
        "The section Service has no description: add one in web/openapi.toml.",
        "GET /api/health has no description: its docstring needs a second sentence.",
        "GET /api/health has no 4xx answer: name its failures in @inputs.operation(…).",
        "Health.mood has no example: add one to web/examples.json, or Meta(examples=[…]).",
        "GET /api/photos/{photo_id}: its answer has no example.",
        'GET /api/photos/{photo_id}: its parameter photo_id: the example "twelve" is not of type "integer".',
    }


def shortcomings(document) -> Iterator[str]:
    """What linters and makers of clients would miss in the contract, a sentence each."""
    schemas = document["components"]["schemas"]
    made = examples.Examples(schemas)
    known: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for section in document["tags"]:
        if not section["description"]:
            yield (f"The section {section['name']} has no description: add one in web/openapi.toml.")
    for named, operation in operations(document).items():
        if [tag for tag in document["tags"] if [tag["name"]] == operation["tags"]] == []:
            yield f"{named} has no tag: name its blueprint in web/openapi.toml."
        if not operation["summary"]:
            yield f"{named} has no summary: its function needs a docstring."
        if "description" not in operation:
            yield f"{named} has no description: its docstring needs a second sentence."
        if not any(status.startswith("4") for status in operation["responses"]):
            yield f"{named} has no 4xx answer: name its failures in @inputs.operation(…)."
        for part, schema, field, value in exemplified(operation):
            made.of(schema, operation["operationId"], field)
            if value is None:
                yield f"{named}: {part} has no example."
            else:
                known[f"{named}: {part}"], values[f"{named}: {part}"] = schema, value
    # One validator for all of them: to make one takes longer than to use it.
    validator = jsonschema_rs.Draft202012Validator({"properties": known, "components": {"schemas": schemas}})
    for problem in validator.iter_errors(values):
        yield f"{problem.instance_path[0]}: the example {problem.message}."
    for name in sorted(made.missing):
        yield f"{name} has no example: add one to web/examples.json, or Meta(examples=[…])."


def exemplified(operation) -> Iterator[tuple[str, dict[str, Any], str, Any]]:
    """What needs an example: its name, its schema, its field, and its example or None."""
    for parameter in operation.get("parameters", []):
        name = parameter["name"]
        yield f"its parameter {name}", parameter["schema"], name, parameter.get("example")
    contents = {
        "body": operation.get("requestBody", {}).get("content", {}),
        "answer": operation["responses"]["200"]["content"],
    }
    for part, content in contents.items():
        if "application/json" in content:
            described = content["application/json"]
            yield f"its {part}", described["schema"], "", described.get("example")
    fields = contents["body"].get("multipart/form-data", {}).get("schema", {}).get("properties", {})
    for name, schema in fields.items():
        if "binary" not in (schema.get("format"), schema.get("items", {}).get("format")):
            plain = {key: value for key, value in schema.items() if key != "examples"}
            yield f"its field {name}", plain, name, schema.get("examples", [None])[0]


@pytest.mark.parametrize(("named", "inputs"), INPUTS.items())
def test_the_inputs_are_those_of_the_specification(document, named, inputs):
    operation = operations(document)[named]
    found = {parameter["name"]: parameter["required"] for parameter in operation.get("parameters", [])}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        shape = document["components"]["schemas"].get(
            content["schema"].get("$ref", "").rpartition("/")[2], content["schema"]
        )
        found |= {name: name in shape["required"] for name in shape["properties"]}

    assert found == {name.removesuffix("!"): name.endswith("!") for name in inputs.split()}


def test_a_published_limit_is_the_one_that_holds(client, document):
    tried = 0
    for named, operation in operations(document).items():
        method, path = named.split()
        for parameter in operation.get("parameters", []):
            schema = parameter["schema"]
            if method == "GET" and parameter["in"] == "query" and "maximum" in schema:
                url = path.replace("{conversation_id}", "0")
                low, high = schema["minimum"], schema["maximum"]
                for allowed, value in ((True, low), (True, high), (False, low - 1), (False, high + 1)):
                    answer = client.get(f"{url}?{parameter['name']}={value}")
                    assert (answer.status_code != 400) == allowed, f"{url} {parameter['name']}={value}"
                    tried += 1
    assert tried > 40


def test_the_limited_calls_publish_429_and_its_headers(document):
    limited = {
        named
        for named, operation in operations(document).items()
        if "X-RateLimit-Limit" in operation["responses"]["200"].get("headers", {})
    }

    assert limited == {
        *("POST /api/chat/send", "POST /api/chat/send-with-file", "POST /api/dynamics/trigger"),
        *(f"GET /feed/{{token}}/{file}" for file in ("agenda.ics", "notes.atom", "search.atom")),
        "GET /s/{secret}",
    }
    assert all("429" in operations(document)[named]["responses"] for named in limited)
    assert "Retry-After" in document["components"]["responses"]["TooManyRequests"]["headers"]


def test_a_limited_answer_carries_the_published_headers(client, document):
    headers = document["paths"]["/api/dynamics/trigger"]["post"]["responses"]["200"]["headers"]
    answer = client.post("/api/dynamics/trigger")

    assert answer.status_code == 200
    assert all(answer.headers[name].isdigit() for name in headers)


def test_two_shapes_of_one_name_are_refused():
    made = openapi._Document()
    made.schema(TypedDict("Twin", {"a": int}))

    with pytest.raises(ValueError, match="two shapes have the name Twin"):
        made.schema(TypedDict("Twin", {"b": str}))


def test_an_answer_that_the_contract_does_not_know_fails_the_test_that_gets_it(app, client, monkeypatch):
    monkeypatch.setitem(app.view_functions, "memory.stats", lambda: {"total": -1})
    with pytest.raises(Exception, match=r"required|minimum|-1"):
        client.get("/api/memories/stats")
    monkeypatch.setitem(app.view_functions, "memory.stats", lambda: ({"detail": "Teapot."}, 418))
    with pytest.raises(AssertionError, match="418, which is not declared"):
        client.get("/api/memories/stats")


def test_pictures_are_answered_as_published(client):
    photo = client.upload(draw()).json["id"]
    whole = client.get(f"/api/photos/{photo}/image")

    assert client.get(f"/api/photos/{photo}/image", headers={"Range": "bytes=0-3"}).status_code == 206
    assert (
        client.get(f"/api/photos/{photo}/image", headers={"If-None-Match": whole.headers["ETag"]}).status_code
        == 304
    )
    detail(client.get(f"/api/photos/{photo}/image", headers={"Range": "bytes=99999999-"}), 416)


@pytest.mark.parametrize(
    ("path", "field", "sent", "said"),
    [
        (
            "/api/photos/batch",
            "tag",
            {"ids": [1], "action": "untag", "tag": ""},
            "needed for `tag` and `untag`",
        ),
        ("/api/feeds", "query", {"kind": "search", "query": ""}, "needed for its feed"),
        ("/api/webhooks", "url", {"url": f"https://{'1' * 999}", "events": ["reminder.due"]}, "at most 253"),
        ("/api/config/llm", "base_url", {"base_url": f"https://{'1' * 999}"}, "at most 253"),
        ("/api/photos?trash=true&tag=a", "trash", None, "no filter is allowed"),
    ],
)
def test_what_a_schema_cannot_say_of_a_refused_value_is_in_its_description(
    client, document, path, field, sent, said
):
    method = "get" if sent is None else "put" if "config" in path else "post"
    problem = detail(getattr(client, method)(path, **({} if sent is None else {"json": sent})), 400)
    assert problem.startswith(f"{field}: ")
    operation = document["paths"][path.partition("?")[0]][method]
    if sent is None:
        (described,) = (one for one in operation["parameters"] if one["name"] == field)
    else:
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        described = document["components"]["schemas"][reference.rpartition("/")[2]]["properties"][field]
    assert said in str(described)
