"""The published contract: an OpenAPI 3.1 document of every route, at `GET /api/openapi.json`.

It is generated from the routes' signatures (`inputs.operation`), which also read the requests, and from what
else decides the status of an answer: whether a route is open, is rate limited, takes a body or uses the
database. So nothing is written twice, and a route lists only statuses that can occur. `docs/api.md` is
generated from this document, and the tests check every answer that they receive against it.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import flask
import msgspec
from werkzeug.datastructures import FileStorage
from werkzeug.routing import Rule

from settings import MEGABYTE, NAME, VERSION
from web import examples, inputs, shapes

# The tables that are data: sections with the blueprints whose operations they have, statuses and headers.
CONTRACT: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RESOURCES: dict[str, str] = {
    name: title for title, section in CONTRACT["sections"].items() for name in section["blueprints"]
}
STATUSES = {int(status): named for status, named in CONTRACT["statuses"].items()}
BODY_METHODS = ("POST", "PUT", "PATCH")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def document(
    app: flask.Flask,
    *,
    unlocked: Collection[str],
    limited: Collection[str],
    scopes_of: Callable[[str], list[str]],
) -> dict[str, Any]:
    """The contract of all routes of `app` that are marked as operations. `unlocked` endpoints need no key;
    `limited` endpoints accept a limited number of requests a minute; `scopes_of` gives the scopes of the
    tokens that may call an endpoint.
    """
    made = _Document()
    paths: dict[str, Any] = {}
    marked = [
        rule for rule in app.url_map.iter_rules() if hasattr(app.view_functions[rule.endpoint], "operation")
    ]
    for rule in sorted(marked, key=_order):
        view = app.view_functions[rule.endpoint]
        for method in METHODS:
            if method in (rule.methods or ()):
                statuses = _statuses(method, rule, view, unlocked=unlocked, limited=limited)
                operation = made.operation(rule, method, view, statuses, is_limited=rule.endpoint in limited)
                if rule.endpoint in unlocked:
                    operation["security"] = []
                else:
                    operation["x-token-scopes"] = scopes_of(rule.endpoint)
                paths.setdefault(_path(rule), {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": NAME,
            "version": VERSION,
            "description": CONTRACT["description"],
            "contact": {"name": f"{NAME} contributors"},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        # Relative to the address of this document, so it is right wherever the service is reached.
        "servers": [{"url": "/", "description": "The service that this document comes from"}],
        "security": [{"bearer": []}],
        "tags": [
            {"name": name, "description": section["description"]}
            for name, section in CONTRACT["sections"].items()
        ],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(made.schemas.items())),
            "responses": {
                name: _response(status, text)
                for status, (name, text) in STATUSES.items()
                if status not in _WITHOUT_JSON
            },
            "headers": CONTRACT["headers"],
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The API key, or a token"}
            },
        },
    }


class _Document:
    """Builds the operations and collects the shapes that they refer to."""

    def __init__(self) -> None:
        self.schemas: dict[str, Any] = {}
        self._examples = examples.Examples(self.schemas)
        self.schema(Problem)

    def operation(
        self, rule: Rule, method: str, view: Any, statuses: list[int], *, is_limited: bool
    ) -> dict[str, Any]:
        contract: inputs.Operation = view.operation
        name = rule.endpoint.replace(".", "_")
        summary, _, description = " ".join((inspect.getdoc(view) or "").split()).partition(". ")
        parameters = [self._in_path(field, kind) for field, kind in contract.path.items()]
        if "query" in contract.inputs:
            parameters += self._in_query(contract.inputs["query"])
        for parameter in parameters:
            parameter["example"] = self._examples.of(parameter["schema"], name, parameter["name"])
        made = {
            "operationId": name,
            "tags": [RESOURCES[_blueprint(rule)]],
            "summary": summary.removesuffix("."),
            "description": description,
            "parameters": parameters,
            "requestBody": self._body(contract, view, name) if method in BODY_METHODS else None,
            "responses": {
                "200": self._answer(contract.answer, name),
                **{str(status): self._failure(status, contract, name) for status in statuses},
            },
        }
        if is_limited:
            made["responses"]["200"]["headers"] = {
                name: {"$ref": f"#/components/headers/{name}"} for name in _LIMIT_HEADERS
            }
        return {name: value for name, value in made.items() if value}

    def schema(self, kind: Any) -> dict[str, Any]:
        """The schema of a type; named shapes become components. Raises `ValueError` for two of one name."""
        (schema,), named = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
        for name, shape in named.items():
            if self.schemas.setdefault(name, _ordered(name, _portable(shape))) != _portable(shape):
                raise ValueError(f"two shapes have the name {name}")
        portable: dict[str, Any] = _portable(schema)
        return portable

    def _in_path(self, name: str, kind: Any) -> dict[str, Any]:
        return {"name": name, "in": "path", "required": True, "schema": self.schema(kind)}

    def _in_query(self, shape: type) -> Iterator[dict[str, Any]]:
        fields, required = _fields(shape)
        for name, schema in fields.items():
            described = {"description": schema.pop("description")} if "description" in schema else {}
            yield {"name": name, "in": "query", "required": name in required, **described, "schema": schema}

    def _body(self, contract: inputs.Operation, view: Any, name: str) -> dict[str, Any] | None:
        if "body" in contract.inputs:
            shape = contract.inputs["body"]
            content = {"application/json": self._json(shape, name)}
            return {
                "required": any(field.required for field in msgspec.structs.fields(shape)),
                "content": content,
            }
        if "form" in contract.inputs:
            fields, required = _fields(contract.inputs["form"])
            for field, schema in fields.items():
                schema.setdefault("examples", [self._examples.of(schema, name, field)])
            largest, most = view.takes_files
            file = {"type": "string", "format": "binary", "description": f"at most {largest // MEGABYTE} MB"}
            if "file" in contract.inputs:
                fields["file"] = file
                required += ["file"] if contract.inputs["file"] is FileStorage else []
            if "files" in contract.inputs:
                fields["files"] = {"type": "array", "items": file, "minItems": 1, "maxItems": most}
                required.append("files")
            form = {"type": "object", "properties": fields, "required": required}
            return {"required": bool(required), "content": {"multipart/form-data": {"schema": form}}}
        return None

    def _json(self, kind: Any, name: str) -> dict[str, Any]:
        """The JSON of an operation, with an example."""
        schema = self.schema(kind)
        return {"schema": schema, "example": self._examples.of(schema, name)}

    def _answer(self, kind: Any, name: str) -> dict[str, Any]:
        kind, media = _media(kind)
        content = {} if kind is flask.Response else {"application/json": self._json(kind, name)}
        for media_type in media.media_types:
            # OpenAPI 3.1 needs no schema for bytes. Generators of clients do: without the format they make a
            # text of them, or nothing.
            content[media_type] = {"schema": _schema_of(media_type)}
        return {"description": "Done", "content": content}

    def _failure(self, status: int, contract: inputs.Operation, name: str) -> dict[str, Any]:
        component, text = STATUSES[status]
        if status == 206:
            return {**self._answer(contract.answer, name), "description": text}
        if status in _WITHOUT_JSON:
            return {"description": text}
        return {"$ref": f"#/components/responses/{component}"}


class Problem(msgspec.Struct):
    """The body of every error."""

    detail: str  # a sentence


_WITHOUT_JSON = (206, 304, 414)
_LIMIT_HEADERS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_HEADERS_OF = {401: ("WWW-Authenticate",), 429: ("Retry-After", *_LIMIT_HEADERS), 503: ("Retry-After",)}


def _statuses(
    method: str, rule: Rule, view: Any, *, unlocked: Collection[str], limited: Collection[str]
) -> list[int]:
    """The statuses that a route may answer besides 200, ascending."""
    contract: inputs.Operation = view.operation
    found = {failure.status for failure in contract.failures}
    if rule.endpoint not in unlocked:
        found |= {401, 403}
        if not getattr(view, "without_scope", False):
            found.add(503)
    if contract.inputs:
        found.add(400)
    if "query" in contract.inputs or rule.endpoint in unlocked:
        found.add(414)
    if method in BODY_METHODS:
        found.add(413)
    if method != "GET":
        found.add(507)
    if rule.endpoint in limited:
        found.add(429)
    media = _media(contract.answer)[1]
    if media.has_etag:
        found.add(304)
    if media.has_ranges:
        found |= {206, 416}
    return sorted(found)


def _response(status: int, text: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{Problem.__name__}"}
    content = {
        "application/json": {"schema": schema, "example": {"detail": examples.ERRORS.get(status, text)}}
    }
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS_OF.get(status, ())}
    return {"description": text, "content": content, **({"headers": headers} if headers else {})}


def _schema_of(media_type: str) -> dict[str, Any]:
    """What clients make of a file of this type: a text, an object, or bytes."""
    if media_type.startswith("text/"):
        return {"type": "string"}
    if media_type.endswith("+json"):
        return {"type": "object"}
    return {"type": "string", "format": "binary"}


def _media(kind: Any) -> tuple[Any, inputs.Media]:
    """The type that a route returns, and its media types besides JSON."""
    if get_origin(kind) is Annotated and isinstance(get_args(kind)[1], inputs.Media):
        return get_args(kind)
    return kind, inputs.Media(())


def _fields(shape: type) -> tuple[dict[str, Any], list[str]]:
    """The fields of a query or form with their schemas, and the names of those that are required.

    A query and a form have no null, so an optional field loses it.
    """
    schema = _portable(msgspec.json.schema_components([shape])[1][shape.__name__])
    fields = {}
    for name, field in schema["properties"].items():
        kind = next(kind for kind in field.get("anyOf", [field]) if kind != {"type": "null"})
        fields[name] = {
            key: value for key, value in kind.items() if key != "default" or value not in (None, "")
        }
    return fields, schema["required"]


def _ordered(name: str, shape: dict[str, Any]) -> dict[str, Any]:
    """`shape` with its fields in the order of `web/shapes.py`; msgspec sorts them by name."""
    fields = getattr(getattr(shapes, name, None), "__annotations__", shape["properties"])
    return {**shape, "properties": {field: shape["properties"][field] for field in fields}}


def _portable(schema: Any) -> Any:
    r"""A schema without `\Z`, which only Python's expressions have, and without titles that repeat names."""
    if isinstance(schema, list):
        return [_portable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: _portable(part) for name, part in schema.items() if name != "title" or not isinstance(part, str)
    }
    if isinstance(plain.get("pattern"), str):
        plain["pattern"] = plain["pattern"].replace(r"\Z", "$")
    return plain


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _blueprint(rule: Rule) -> str:
    return str(rule.endpoint).rpartition(".")[0]


def _order(rule: Rule) -> tuple[int, str]:
    return list(CONTRACT["sections"]).index(RESOURCES[_blueprint(rule)]), _path(rule)
