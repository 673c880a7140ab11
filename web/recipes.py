"""Recipes: files and lines by which other programs send screenshots here, filled with the service's address
and a token that may only upload.

The texts are data (`recipes.toml`), so that a test can run or check what is made of them. The formats are
those of the programs: HTTP Shortcuts 3.x (Android; its import accepts the JSON of its export, and the same
ids replace its earlier version), ShareX (`.sxcu`), and shells. Apple signs shortcuts, so for iOS there are
steps, and the actions with their values, which the page draws as the app shows them.

A service with a certificate of its own is trusted by nobody yet. HTTP Shortcuts gets the certificate's
fingerprint, and connects to no other; for the rest, the first step is to install the CA.
"""

import json
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from web import shapes

Kind = Literal[
    "http-shortcuts", "sharex", "ios", "macos", "flameshot", "spectacle", "grim", "powershell", "curl"
]
KINDS: tuple[str, ...] = get_args(Kind)

UPLOAD = "/api/photos/upload"
TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


class Target(NamedTuple):
    """Where a program sends to: the address without a trailing slash, and a token of the scope `upload`."""

    address: str
    token: str
    fingerprint: str = ""  # SHA-256 of the service's own certificate, in hexadecimal digits
    renewed: str = ""  # the day on which that certificate ends

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"


def made(kind: Kind, target: Target) -> shapes.RecipeFields:
    """The recipe for a program."""
    text = TEXTS[kind]
    recipe: shapes.RecipeFields = {
        "name": text["name"],
        "filename": text.get("filename", ""),
        "content": _filled(text.get("content", ""), target, _QUOTES[text.get("quotes", "")]),
        "steps": text.get("steps", []),
        "actions": [
            {
                "title": action["title"],
                "values": [
                    {
                        "name": value["name"],
                        "value": _filled(value["value"], target, str),
                        "typed": value.get("typed", False),
                    }
                    for value in action["values"]
                ],
            }
            for action in text.get("actions", ())
        ],
    }
    if not target.fingerprint:
        return recipe
    if kind == "http-shortcuts":
        return _pinned(recipe, target)
    trust = f"This device must trust the service first: open {target.address}/ca on it, and follow the steps."
    return {**recipe, "steps": [trust, *recipe["steps"]]}


def _pinned(recipe: shapes.RecipeFields, target: Target) -> shapes.RecipeFields:
    """The file of HTTP Shortcuts with a fingerprint: it compares the server's certificate alone."""
    exported = json.loads(recipe["content"])
    exported["categories"][0]["shortcuts"][0]["certificateFingerprint"] = target.fingerprint
    step = (
        "The shortcut connects to this service’s certificate and to no other. The service renews it "
        f"before {target.renewed}: when the shortcut then stops working, import a new file."
    )
    content = json.dumps(exported, indent=2, ensure_ascii=False) + "\n"
    return {**recipe, "content": content, "steps": [*recipe["steps"], step]}


def _filled(text: str, target: Target, quoted: Callable[[str], str]) -> str:
    values = {
        "address": target.address,
        "token": target.token,
        "header": f"Authorization: {target.authorization}",
        "upload": f"{target.address}{UPLOAD}",
    }
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", quoted(value))
    return text


_QUOTES: dict[str, Callable[[str], str]] = {
    "": str,
    "json": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],  # within a string
    "shell": shlex.quote,
    "powershell": lambda text: "'" + text.replace("'", "''") + "'",
}
