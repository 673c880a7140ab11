"""Examples of the published contract: the value that each field is shown with.

An example of a shape is made from those of its fields, so that nothing is written twice and every example is
valid. A field has its example from its own declaration (`Meta(examples=[…])`), from its values where they are
listed, or from the table `examples.json`, by its name. `tests/test_openapi.py` names each text that has none,
and holds every example against its schema.
"""

from pathlib import Path
from typing import Any

import msgspec

from settings import NAME, VERSION

LEFT_OUT = object()  # of a field that an example is clearer without

# Field -> its example; `Shape.field` or `operationId.field` where the name alone means something else there.
FIELDS: dict[str, Any] = {
    **msgspec.json.decode(Path(__file__).with_name("examples.json").read_bytes()),
    **dict.fromkeys(("BatchResult.error", "FeedRequest.query", "pending_calls"), LEFT_OUT),
    "Identity.name": NAME,
    "version": VERSION,
}

# Status -> the sentence of an error, where its meaning in the contract is not one.
ERRORS = {
    400: "page_size: must be between 1 and 100",
    401: "The API key is missing or wrong: send it as `Authorization: Bearer <key>`",
    403: "A token of the scope `upload` may not do this.",
    404: "Photo not found",
    409: "A skill with this id exists already",
    413: "The request is larger than the 1 MB that this path accepts.",
    503: "The service is busy. Please come again in a moment.",
}


class Examples:
    """Makes examples of the components `schemas`. `missing` collects the texts without one."""

    def __init__(self, schemas: dict[str, Any]):
        self._schemas = schemas
        self.missing: set[str] = set()

    def of(self, schema: dict[str, Any], owner: str, field: str = "") -> Any:
        """The example of `schema`, which belongs to a field of the shape or operation `owner`."""
        if "$ref" in schema:
            owner = schema["$ref"].rpartition("/")[2]
            return self.of(self._schemas[owner], owner)
        if "examples" in schema:
            return schema["examples"][0]
        names = (f"{owner}.{field}", f"{field}:{schema.get('type')}", field) if field else (owner,)
        found = [FIELDS[name] for name in names if name in FIELDS]
        if schema.get("type") == "array":
            whole = next((value for value in found if isinstance(value, list) or value is LEFT_OUT), None)
            return [self.of(schema["items"], owner, field)] if whole is None else whole
        if "anyOf" in schema:
            if found and (found[0] is None or names[0] in FIELDS):
                return found[0]
            kinds = [kind for kind in schema["anyOf"] if kind.get("type") != "null"]
            return self.of(kinds[0], owner, field)
        if "const" in schema or "enum" in schema:
            values = schema.get("enum") or [schema["const"]]
            return next((value for value in found if value in values), values[-1])
        if "properties" in schema:
            made = {name: self.of(kind, owner, name) for name, kind in schema["properties"].items()}
            return {name: value for name, value in made.items() if value is not LEFT_OUT}
        if found:
            return found[0]
        return self._plain(schema, f"{owner}.{field}")

    def _plain(self, schema: dict[str, Any], name: str) -> Any:
        """The example of a value whose name has none. Numbers and truth values need none."""
        low, high = schema.get("minimum", 1), schema.get("maximum", 1)
        plain = {"integer": max(low, min(1, high)), "number": max(low, min(0.5, high)), "boolean": False}
        if schema.get("type") in plain:
            return plain[schema["type"]]
        self.missing.add(name)
        return {} if schema.get("type") == "object" else "text"
