"""Checks answers against the published contract: the status must be declared, and a JSON body must match its
schema without additional fields.

The contract is read with jsonschema-rs, independently of the code that generates it.
"""

import functools
from typing import Any

import jsonschema_rs
from werkzeug.exceptions import HTTPException
from werkzeug.test import TestResponse

# Statuses that tests cause in routes where they cannot occur in service: a full disk, a defect.
BROUGHT_ABOUT = {500, 507}

_documents: dict[str, dict[str, Any]] = {}


def document(app) -> dict[str, Any]:
    """The contract that the service publishes. It does not depend on settings, so it is read only once."""
    if not _documents:
        bearer = {"Authorization": f"Bearer {app.api_key}"} if app.api_key else {}
        with app.test_client().get("/api/openapi.json", headers=bearer) as answer:
            assert answer.status_code == 200
            _documents["published"] = answer.json
    return _documents["published"]


def hold(app, answer: TestResponse) -> None:
    """Raises `AssertionError` for an answer that does not match the contract."""
    request, status = answer.request, answer.status_code
    operation = _operation(app, request.method, request.path)
    if (
        operation is None
        or operation[0] not in document(app)["paths"]
        or request.method in ("HEAD", "OPTIONS")
    ):
        assert status in (200, 401, 404, 405), f"{request.method} {request.path} answers {status}"
        return
    path, method = operation
    responses = document(app)["paths"][path][method]["responses"]
    declared = f"{method.upper()} {path} answers {status}"
    assert str(status) in responses or status in BROUGHT_ABOUT, (
        f"{declared}, which is not declared: {answer.get_data(as_text=True)[:500]}"
    )
    if status >= 400:
        assert set(answer.json) == {"detail"}, declared
        return
    content = responses[str(status)].get("content", {})
    assert status == 304 or answer.mimetype in content, f"{declared} with {answer.mimetype}"
    if answer.mimetype == "application/json" and answer.get_data():
        _validator(path, method).validate(answer.json)


def _operation(app, method: str, path: str) -> tuple[str, str] | None:
    try:
        rule, _ = app.url_map.bind("").match(path, method, return_rule=True)
    except HTTPException:
        return None
    documented = rule.rule.replace("<id:", "{").replace("<path:", "{").replace("<", "{").replace(">", "}")
    return documented, method.lower()


@functools.cache
def _validator(path: str, method: str) -> jsonschema_rs.Validator:
    published = _documents["published"]
    schema = published["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": {"schemas": _closed(published["components"]["schemas"])}}
    )


def _closed(schema: Any) -> Any:
    """Forbid additional fields. The contract allows them, for later versions; the tests do not."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items()}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
