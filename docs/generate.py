"""Writes `docs/api.md`, the reference for people, from the contract that the service publishes: `make docs`.

Nothing is written in it by hand, so it is never older than the code: a test fails when it is not what this makes.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app import create_app
from settings import Settings

PAGE = Path(__file__).with_name("api.md")
METHODS = ("get", "post", "put", "delete")
LARGEST_TOLD = 1_000_000_000  # a limit beyond it is only what fits into the database

# By the names of fields and parameters, where a schema gives no example and its type alone would make a dull one.
EXAMPLES = {
    "base_url": "https://api.openai.com/v1",
    "conversation_id": "4f2ab8",
    "device_id": "pixel_8",
    "description": "Tests",
    "file": "@screenshot.png",
    "files": "@screenshot.png",
    "id": "my_own",
    "message": "When is my train?",
    "model": "gpt-6.1-terra",
    "name": "openai",
    "q": "invoice",
    "server_id": "my_own",
    "skill_id": "summarize",
    "system_prompt": "You sum up.",
    "token": "pixel_8",
    "url": "https://mcp.example/mcp",
}


def contract() -> dict[str, Any]:
    """The published document, of a service over an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(data_dir=Path(folder) / "data", api_key="reference"))
        return app.test_client().get("/api/openapi.json", headers={"Authorization": "Bearer reference"}).json


def reference(document: dict[str, Any]) -> str:
    """The page, as Markdown."""
    schemas = document["components"]["schemas"]
    lines = [
        f"# The API of {document['info']['title']} {document['info']['version']}",
        "Made by `make docs` from `GET /api/openapi.json`, which programs read.",
        document["info"]["description"],
        "Every path but `GET /` and `GET /api/health` needs the API key: `Authorization: Bearer <key>`. The examples have it in `$KEY`, "
        "and the address, like `http://127.0.0.1:8000`, in `$URL`.",
        _statuses(document),
    ]
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method in METHODS
        if (operation := methods.get(method))
    ]
    for tag in document["tags"]:
        lines.append(f"## {tag['name']}")
        for method, path, operation in operations:
            if operation["tags"] == [tag["name"]]:
                lines += _operation(method, path, operation, schemas)
    lines.append("## Shapes of answers")
    sent = {_name(content["schema"]) for *_, operation in operations for content in _body(operation).values()}
    for name, schema in schemas.items():
        if name not in sent:
            rows = [(field, _kind(kind) + _unless_always(field, schema)) for field, kind in schema["properties"].items()]
            lines += [f"### {name}", *([schema["description"]] if "description" in schema else []), _table(("field", "value"), rows)]
    return "\n\n".join(lines) + "\n"


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    yield f"### {method} {path}"
    yield " ".join([f"{operation['summary']}.", *([operation["description"]] if "description" in operation else [])])
    if parameters := operation.get("parameters"):
        rows = [
            (one["name"], one["in"], _kind({**one["schema"], **_told(one)}), _presence(one["schema"], one["required"]))
            for one in parameters
        ]
        yield _table(("parameter", "in", "value", ""), rows)
    for media_type, content in _body(operation).items():
        schema = _resolved(content["schema"], schemas)
        rows = [(name, _kind(kind), _presence(kind, name in schema["required"])) for name, kind in schema["properties"].items()]
        yield f"Body, `{media_type}`:"
        yield _table(("field", "value", ""), rows)
    yield f"```sh\n{_curl(method, path, operation, schemas)}\n```"
    answers = operation["responses"]["200"]["content"]
    shown = ", ".join(_kind(answer["schema"]) if name == "application/json" else f"`{name}`" for name, answer in answers.items())
    others = ", ".join(status for status in operation["responses"] if status != "200")
    yield f"Answers {shown}" + (f"; or {others}." if others else ".")


def _curl(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    """A call with what it needs; of a body that needs nothing, the first field."""
    required = [parameter for parameter in operation.get("parameters", []) if parameter["required"] or parameter["name"] == "q"]
    for parameter in required:
        path = path.replace(f"{{{parameter['name']}}}", str(_example(parameter["name"], parameter["schema"])))
    query = "&".join(f"{one['name']}={_example(one['name'], one['schema'])}" for one in required if one["in"] == "query")
    parts = ["curl"]
    if operation.get("security") != []:
        parts.append('-H "Authorization: Bearer $KEY"')
    if method != "GET" and not (method == "POST" and _body(operation)):
        parts.append(f"-X {method}")
    for media_type, content in _body(operation).items():
        schema = _resolved(content["schema"], schemas)
        fields = schema["required"] or list(schema["properties"])[:1]
        given = {name: _example(name, schema["properties"][name]) for name in fields}
        if media_type == "application/json":
            parts.append(f"-H 'Content-Type: application/json' -d '{json.dumps(given, ensure_ascii=False)}'")
        else:
            parts += [f"-F '{name}={value}'" for name, value in given.items()]
    if "application/json" not in operation["responses"]["200"]["content"]:
        parts.append("-o FILE")
    return " ".join([*parts, f'"$URL{path}{"?" if query else ""}{query}"'])


def _example(name: str, schema: dict[str, Any]) -> Any:
    if "examples" in schema:
        return schema["examples"][0]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _example(name, schema["anyOf"][0])
    return EXAMPLES.get(name, {"integer": 1, "number": 0.5, "boolean": True}.get(schema.get("type"), "text"))


def _body(operation: dict[str, Any]) -> dict[str, Any]:
    return operation.get("requestBody", {}).get("content", {})


def _name(schema: dict[str, Any]) -> str:
    return schema.get("$ref", "").rpartition("/")[2]


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    return schemas.get(_name(schema), schema)


def _told(described: dict[str, Any]) -> dict[str, str]:
    return {"description": described["description"]} if "description" in described else {}


def _statuses(document: dict[str, Any]) -> str:
    components = document["components"]["responses"]
    meanings = {
        status: components.get(_name(response), response)["description"]
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
    }
    return _table(("status", "meaning"), sorted(meanings.items()))


def _unless_always(field: str, schema: dict[str, Any]) -> str:
    return "" if field in schema["required"] else " (not always there)"


def _presence(schema: dict[str, Any], required: bool) -> str:
    if required:
        return "required"
    return f"default `{schema['default']}`" if schema.get("default") not in (None, "") else "optional"


def _kind(schema: dict[str, Any]) -> str:
    """A type with its limits, in words."""
    if name := _name(schema):
        return f"[{name}](#{name.lower()})"
    kind, told = _kind_alone(schema), schema.get("description")
    if told is None or "enum" in schema:
        return kind
    return told if kind == "text" else f"{kind}, {told}"


def _kind_alone(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" if value != "" else "empty" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            most = f"at most {schema['maxItems']} of " if "maxItems" in schema else ""
            return f"list of {most}{_kind(schema['items'])}"
        case "object":
            return f"map to {_kind(schema['additionalProperties'])}" if schema.get("additionalProperties") else "object"
        case "integer" | "number" as kind:
            return f"{kind}{_range(schema.get('minimum'), schema.get('maximum'))}"
        case "string":
            if schema.get("format") == "binary":
                return "file"
            return "text" + (f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else "")
        case kind:
            return str(kind)


def _range(low: float | None, high: float | None) -> str:
    if high is not None and high < LARGEST_TOLD:
        return f", {low} to {high}"
    return f", from {low}" if low is not None else ""


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(reference(contract()))
