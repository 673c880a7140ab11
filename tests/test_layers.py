"""The house's order, held by the syntax trees: imports go downwards only, and what has one owner is used nowhere else.

A module may import the modules of the rows below its own, never one of its own row. So a file can be read, tested and
changed by knowing only what stands under it, and there are no import cycles to hold open with imports inside functions.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# From the ground up. A new module is added to a row, or gets a row of its own.
LAYERS = (
    ("errors", "lines", "text"),
    ("settings", "findings", "clock", "progress"),
    ("answers", "context", "crypto", "images", "locks", "mcp_messages", "net", "page", "params", "replies", "rules", "terms"),
    ("articles", "circuit", "models", "ocr"),
    ("digest", "prompts", "query", "shapes"),
    ("background", "configuration", "local", "mcp", "spend"),
    ("remote",),
    ("search", "listing", "llm", "spool"),
    ("connection", "conversations", "photos", "mcp_servers", "memory", "push", "skills", "web_search"),
    ("tools", "dynamics"),
    ("analysis", "chat"),
    ("archive", "cleanup"),
    ("export", "backup", "check", "rotation"),
    ("data", "restore"),
    ("jobs", "openapi"),
    ("app",),
)
RANKS = {module: rank for rank, row in enumerate(LAYERS) for module in row}

# gunicorn reads it, and nothing can import it: it may use every module and has no rank. Its hooks run in the worker and import there.
SERVER = "gunicorn.conf"

# Verbs know nothing of HTTP; the search and the model have a Blueprint for their few routes, and nothing more of Flask.
FLASK_USERS = {"page", "params", "configuration", "spend", SERVER} | {module for row in LAYERS[RANKS["photos"] :] for module in row}
BLUEPRINT_ONLY = {"search", "llm"}
NO_DATABASE = {"articles", "circuit", "digest", "local", "ocr", "prompts", "remote"}
DATABASE_USERS = {module for row in LAYERS[RANKS["models"] : RANKS["app"]] for module in row} - NO_DATABASE

# Package -> the modules that may import it. The standard library's own doors to the network and to SQLite count as well:
# through them the address guard and the encryption would be walked around.
OWNERS = {
    "requests": {"net"},
    "urllib3": {"net"},
    "urllib.request": {"net"},
    "http.client": {"net"},
    "socket": {"net", SERVER},  # the server looks whether its own address is free
    "peewee": DATABASE_USERS,
    "playhouse": DATABASE_USERS,
    "sqlcipher3": DATABASE_USERS,
    "sqlite3": set(),
    "flask": FLASK_USERS | BLUEPRINT_ONLY,
}

ENVIRONMENT_READERS = {"app", SERVER}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
REQUEST_INPUT = {f"flask.request.{part}" for part in ("json", "get_json", "args", "form", "files", "values", "data", "get_data")}

SOURCES = sorted(ROOT.glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_module_keeps_the_order(path):
    found = list(violations(path.name.removesuffix(".py"), path.read_text()))
    assert not found, "\n".join(found)


def test_the_walk_finds_the_modules():
    assert {"errors.py", "settings.py"} <= {path.name for path in SOURCES}


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("helpers", "", "helpers has no row in LAYERS"),
        ("photos", "import analysis", "1: photos imports analysis, which does not stand below it"),
        ("photos", "from push import send", "1: photos imports push, which does not stand below it"),
        ("errors", "import errors", "1: errors imports errors, which does not stand below it"),
        ("models", "if TYPE_CHECKING:\n    from app import create_app", "2: models imports app, which does not stand below it"),
        ("chat", "def send():\n    import models", "2: chat imports models inside a function"),
        ("chat", "class Turn:\n    async def send(self):\n        from models import db", "3: chat imports models inside a function"),
        ("chat", "from .models import db", "1: chat imports relatively, but the modules are no package"),
        ("app", "import gunicorn.conf", "1: app imports gunicorn.conf, which does not stand below it"),
        ("net", "import os\nos.environ['HOME']", "2: net reads the environment"),
        ("net", "import os\nimport os.path\nos.getenv('HOME')", "3: net reads the environment"),
        ("jobs", "from os import environ as e\nhome = e.get('HOME')", "2: jobs reads the environment"),
        ("app", "import os\nkey = os.environ['SNAPLORE_API_KEY']", "2: app uses the environment for more than Settings.from_environ"),
        ("app", "from os import getenv\ngetenv('HOME')", "2: app uses the environment for more than Settings.from_environ"),
        ("photos", "from flask import request\nrequest.files['file']", "2: photos reads flask.request.files, which is for params"),
        ("photos", "from flask import request as r\nr.get_json()", "2: photos reads flask.request.get_json, which is for params"),
        ("app", "import flask\nflask.request.args", "2: app reads flask.request.args, which is for params"),
        ("app", "import flask as f\nf.request.args.get('q')", "2: app reads flask.request.args, which is for params"),
        ("push", "import requests", "1: push imports requests, which is not for it"),
        ("push", "def send():\n    from urllib3.util import Retry", "2: push imports urllib3, which is not for it"),
        ("tools", "from urllib import request", "1: tools imports urllib.request, which is not for it"),
        ("llm", "import http.client", "1: llm imports http.client, which is not for it"),
        ("local", "import socket", "1: local imports socket, which is not for it"),
        ("params", "from playhouse.shortcuts import model_to_dict", "1: params imports playhouse, which is not for it"),
        ("app", "import peewee", "1: app imports peewee, which is not for it"),
        ("models", "import sqlite3", "1: models imports sqlite3, which is not for it"),
        ("models", "from flask import g", "1: models imports flask, which is not for it"),
        ("search", "from flask import Blueprint, request", "1: search takes more of flask than Blueprint"),
        ("llm", "import flask", "1: llm takes more of flask than Blueprint"),
    ],
)
def test_a_violation_is_found(module, source, expected):
    assert list(violations(module, source)) == [expected]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("analysis", "import models\nfrom photos import store\nimport urllib.parse\nfrom http import HTTPStatus"),
        ("local", "def load():\n    import faster_paddle"),
        ("app", "import os\nfrom settings import Settings\nsettings = Settings.from_environ(os.environ)"),
        ("gunicorn.conf", "import os\nimport app\nfrom settings import Settings\nbind = Settings.from_environ(os.environ).bind"),
        ("gunicorn.conf", "def post_worker_init(worker):\n    import analysis"),
        ("params", "from flask import request\nrequest.get_json()"),
        ("push", "def send(request):\n    return request.data"),
        ("photos", "from flask import request\nrequest.headers['Range']"),
        ("search", "import peewee\nfrom flask import Blueprint"),
        ("net", "import socket\nimport requests\nfrom urllib3.util import connection"),
    ],
)
def test_what_keeps_the_order_passes(module, source):
    assert list(violations(module, source)) == []


def violations(module: str, source: str) -> Iterator[str]:
    """A sentence for each breach of the order in `source`, the text of `module`, starting with its line."""
    if module not in RANKS and module != SERVER:
        yield f"{module} has no row in LAYERS"
        return
    tree = ast.parse(source)
    yield from _imports(module, tree)
    yield from _environment(module, tree)
    yield from _request_input(module, tree)


def _imports(module: str, tree: ast.Module) -> Iterator[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside_functions = {node for function in functions for node in ast.walk(function)}
    rank = RANKS.get(module, len(LAYERS))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        where = f"{node.lineno}: {module}"
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"{where} imports relatively, but the modules are no package"
            continue
        imported = _imported(node)
        for target in sorted(name for name in imported if name in RANKS or name == SERVER):
            if RANKS.get(target, len(LAYERS)) >= rank:
                yield f"{where} imports {target}, which does not stand below it"
            elif node in inside_functions and module != SERVER:
                yield f"{where} imports {target} inside a function"
        for package in sorted(imported & OWNERS.keys()):
            if module not in OWNERS[package]:
                yield f"{where} imports {package}, which is not for it"
        if "flask" in imported and module in BLUEPRINT_ONLY and imported != {"flask", "flask.Blueprint"}:
            yield f"{where} takes more of flask than Blueprint"


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Everything that `node` names, with the packages around it: `from a.b import c` names `a`, `a.b` and `a.b.c`."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    return {".".join(parts[:length]) for name in names for parts in [name.split(".")] for length in range(1, len(parts) + 1)}


def _environment(module: str, tree: ast.Module) -> Iterator[str]:
    """The environment is named in an entry point, as the argument of `Settings.from_environ`, and nowhere else."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("from_environ")]
    handed_on = [argument for call in calls for argument in call.args]
    for node, meant in _uses(tree):
        if meant not in ENVIRONMENT:
            continue
        if module not in ENVIRONMENT_READERS:
            yield f"{node.lineno}: {module} reads the environment"
        elif node not in handed_on:
            yield f"{node.lineno}: {module} uses the environment for more than Settings.from_environ"


def _request_input(module: str, tree: ast.Module) -> Iterator[str]:
    for node, meant in _uses(tree):
        if meant in REQUEST_INPUT and module != "params":
            yield f"{node.lineno}: {module} reads {meant}, which is for params"


def _uses(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Each name and attribute that comes from an import, with what it means: `f.request` is `flask.request` after `import flask as f`."""
    meanings = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package = alias.name.partition(".")[0]  # all that `import a.b` binds is `a`
                meanings[alias.asname or package] = alias.name if alias.asname else package
        elif isinstance(node, ast.ImportFrom):
            meanings |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name, dot, rest = ast.unparse(node).partition(".")
            if name in meanings:
                yield node, meanings[name] + dot + rest
