"""Records as JSON-LD in schema.org's vocabulary.

`linked.toml` says for each type which of schema.org's it is, and where each field is in it. What schema.org
has no place for keeps its own name below `urn:snaplore:`. The context is part of the document, so a reader
needs no network.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.records import TYPES, Record

MEDIA_TYPE = "application/ld+json"
OURS = "urn:snaplore:"
CONTEXT = {"@vocab": "https://schema.org/", "snaplore": OURS, "additionalType": {"@type": "@id"}}

Node = dict[str, Any]

PLACES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def node(record: Record, record_id: int, photo_id: int) -> Node:
    """A record as an object of a document with `CONTEXT`. It says which screenshot it is from."""
    known = PLACES.get(record.type, {"type": "Thing", "fields": {}})
    places = known["fields"]
    made: Node = {"@id": f"{OURS}record:{record_id}", "@type": known["type"]}
    if TYPES[record.type].ours:
        made["additionalType"] = f"{OURS}{record.type}"
    for field in record.fields:
        path, value = places.get(field.name, f"snaplore:{field.name}"), field.value
        if isinstance(value, str):
            _put(made, path, value)
        elif isinstance(value, dict):
            _put_amount(made, path, value)
        else:
            form = TYPES[record.type].fields[field.name]
            _put_list(made, path, value, places, field.name, plain=len(form.keys) == 1)
    made["subjectOf"] = {"@id": f"{OURS}photo:{photo_id}", "@type": "ImageObject"}
    return made


def _put(into: Node, path: str, value: Any) -> None:
    """Put a value at a path, into objects that are made where they are missing."""
    *steps, last = re.split(r"(?<=[A-Za-z])\.", path)
    for step in steps:
        name, _, kind = step.partition("@")
        into = into.setdefault(name, {"@type": kind})
    into[last] = value


def _put_amount(into: Node, path: str, amount: dict[str, str]) -> None:
    if path.endswith("@Offer"):
        _put(into, f"{path}.price", amount["value"])
        _put(into, f"{path}.priceCurrency", amount["currency"])
    else:
        _put(into, path, {"@type": "MonetaryAmount", **amount})


def _put_list(
    into: Node,
    path: str,
    entries: list[dict[str, str]],
    places: Mapping[str, str],
    field: str,
    *,
    plain: bool,
) -> None:
    if plain:
        into[path] = [next(iter(entry.values())) for entry in entries]
        return
    name, _, kind = path.partition("@")
    into[name] = []
    for entry in entries:
        made: Node = {"@type": kind} if kind else {}
        for key, value in entry.items():
            _put(made, places.get(f"{field}.{key}", f"snaplore:{key}"), value)
        into[name].append(made)
