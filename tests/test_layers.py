"""The rules of the layout (`ARCHITECTURE.md`), held by the syntax trees: what may import what, and who writes
which table.

The rooms are the modules at the root and the packages as wholes. They are on nine storeys, and a storey is a
few rows. A room may import rooms of the rows below its own, never one of its own row. Inside a package, the
modules keep the same rule. So a file can be read, tested and changed by knowing only what it rests on, and no
import cycle has to be broken by an import inside a function.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import models

ROOT = Path(__file__).resolve().parent.parent

# From the ground up: a name for the storey, and its rows.
STOREYS = (
    ("ground", ("errors text writings", "clock colours disk locks settings terms", "crypto heif")),
    (
        "data folder, network, pictures",
        ("database net pictures terminal", "buckets loops models spool"),
    ),
    ("models and rules", ("engines", "rules")),
    ("HTTP, access, the gate", ("gate vocabulary web", "access lexicon tallies tls")),
    (
        "stored data",
        ("claims llm memory readings threads", "devices push records", "agenda dynamics photos"),
    ),
    ("queue and search", ("queries uploads", "meaning search")),
    ("assistant and outlets", ("assistant", "outlets")),
    ("work on all data", ("curation reasoner", "analysis upkeep")),
    ("entry points", ("jobs", "commands", "app")),
)
# The rows of each package, from the ground up.
INSIDE = {
    "analysis": (
        "listing text_reader wordmarks",
        "results",
        "backlog",
        "pool",
    ),
    "assistant": (
        "arguments confirmation context mcp_messages mcp_servers skills turns web_search",
        "conversations mcp",
        "offers openings transcript",
        "citations library recollection",
        "tools",
        "rounds",
        "chat",
    ),
    "buckets": (
        "s3",
        "away",
    ),
    "commands": (
        "keys pace serving tls",
        "past",
        "data",
        "table",
    ),
    "curation": (
        "news opened searches stacks words",
        "proposals retention trash",
        "batch",
        "originals",
    ),
    "engines": (
        "child configuration lines records vectors",
        "codes embedding findings packing twopass",
        "circuit ledger ocr reading",
        "articles completions",
        "prompts",
        "remote",
    ),
    "outlets": (
        "atom ics linked mcp_shapes shares webhooks",
        "feeds mcp_tools tabular",
        "mcp",
    ),
    "queries": (
        "operators wording",
        "matches scope",
        "candidates",
    ),
    "rules": (
        "ranges wordlists",
        "checks entities screen searched",
        "cues labels prices statements",
        "identity onetime passwords phrases",
        "accounts keys totals",
        "sensitive",
        "days disguises holdings joins layout likeness questions redaction templates",
        "wished",
        "apps facts kinds moments noted pairs quotes",
        "answers names view vote",
        "ahead",
        "replies",
        "headings subjects wordmarks",
        "rows signed",
        "lists travel writings",
        "bookings cards contents money naming parcels",
        "balances",
        "captions digest lessons planned recorder valued",
        "timetables",
        "occasions",
        "judge",
        "embedded",
    ),
    "terminal": (
        "bundle pictures texts",
        "failures",
        "service",
        "logins showing",
        "options",
        "adding managing",
        "commands",
    ),
    "tls": (
        "addresses certificates",
        "authority network trust",
    ),
    "upkeep": (
        "archive clocks demo export importing progress rollback schedule",
        "backup dates exported findings moving orphans takeout watching",
        "archives cleanup derived offsite resealing rotation stored",
        "check libraries",
        "amounts verifying",
        "restore",
    ),
    "web": (
        "examples inputs page_texts shapes sockets",
        "connections dashboard recipes",
        "installable openapi worker",
    ),
    "writings": ("figures han taken",),
}

PACKAGES = tuple(INSIDE)


def _ranks() -> dict[str, tuple[int, int]]:
    """The rank of each module: that of its room, then that of its row in the package."""
    rooms = [row.split() for _, rows in STOREYS for row in rows]
    return {
        f"{room}.{module}" if room in INSIDE else module: (number, row)
        for number, names in enumerate(rooms)
        for room in names
        for row, modules in enumerate(INSIDE.get(room, (room,)))
        for module in modules.split()
    }


RANKS = _ranks()
TOP = (len(RANKS), 0)

# gunicorn reads it, and nothing can import it: it may use every module and has no rank. Its hooks run in the
# worker and import there.
SERVER = "gunicorn.conf"

# The models: everybody else reaches them through `llm`. The other engines are plain types, value lists,
# prompts and readers of texts, and two tables; these may be imported from above.
MODELS = {
    *("engines.codes", "engines.embedding", "engines.ocr", "engines.remote", "engines.twopass"),
    *(
        "rules.captions",
        "rules.digest",
        "rules.embedded",
        "rules.entities",
        "rules.judge",
        "rules.kinds",
    ),
}
ENGINES_WITH_TABLES = {"engines.configuration", "engines.ledger"}

# Flask is for what speaks HTTP (`web`, the application, files that end in routes) and for the `flask`
# command.
FLASK_USERS = {
    *("app", "jobs", SERVER),
    *("web.dashboard", "web.inputs", "web.installable", "web.openapi", "tls.trust"),
}

# What keeps rows or reads them. Engines know no row, but for the two with tables of their own; `rules` and
# `web` know none.
DATABASE_USERS = {
    *("database", "models", "spool", "loops", *ENGINES_WITH_TABLES),
    *(module for module, rank in RANKS.items() if rank >= RANKS["gate"] and not module.startswith("web.")),
} - {"app", "outlets.atom", "outlets.ics", "outlets.linked", "tls.addresses", "tls.certificates", "tls.trust"}

# Package -> the modules that may import it. It includes the standard library's access to the network and to
# SQLite, which would bypass the address guard and the encryption.
OWNERS = {
    "requests": {"net"},
    "urllib3": {"net"},
    "urllib.request": {"net"},
    # The client is a process of the person's own, often on another machine: no guard stands around it.
    "http.client": {"net", "terminal.service"},
    # The server looks whether its own address is free; the worker receives requests.
    # The addresses of the machine are asked of the kernel.
    "socket": {
        *("net", "terminal.service", "tls.addresses"),
        *("web.connections", "web.sockets", "web.worker", SERVER),
    },
    # The client makes a PNG of a thumbnail for some terminals.
    "PIL": {
        "pictures",
        "colours",
        "engines.codes",
        "heif",
        "engines.ocr",
        "engines.twopass",
        "terminal.pictures",
        "upkeep.demo",
    },
    # Only in the child process of `heif`.
    "pi_heif": {"heif"},
    "zxingcpp": {"engines.codes"},
    "peewee": DATABASE_USERS,
    "playhouse": DATABASE_USERS,
    "sqlcipher3": DATABASE_USERS,
    "sqlite3": set(),
}

# Table -> the modules that write it, its owner first. Where there is a second one, the comment says why.
WRITERS = {
    "AgendaItem": {"agenda"},
    "Analysis": {
        "analysis.results",
        "claims",  # whether it is pending, who holds it, and how it failed
        "curation.trash",  # the row moves to the trash and back
        "curation.words",  # whether the photo is kept
        "gate",  # what is sensitive on it
        "photos",  # an analysis goes with its photo
        "readings",  # whether its text is due to be read
        "reasoner",  # whether it has read the result
    },
    "Conversation": {"assistant.turns", "assistant.conversations"},  # begun there; read and deleted here
    "AppMark": {"analysis.wordmarks"},
    "AskedCall": {"assistant.confirmation"},
    "CalendarEntry": {"outlets.feeds"},
    "Delivery": {"outlets.webhooks"},
    "Discarded": {"upkeep.orphans"},  # and triggers
    "Dynamic": {"dynamics"},
    "ForgottenOriginal": {"photos"},  # and triggers
    "PausedTurn": {"assistant.confirmation"},
    "Feed": {"outlets.feeds"},
    "Share": {"outlets.shares"},
    "Trait": {"curation.opened", "lexicon"},  # what a person has opened, and what follows from the text
    "McpServer": {"assistant.mcp_servers"},
    "Meaning": {"meaning"},
    "MeaningDue": {"meaning"},  # and triggers
    "MeaningSigns": {"meaning"},
    "Memory": {"memory"},
    "Message": {"assistant.turns"},
    "OwnWords": {"curation.words"},
    "Photo": {"photos", "uploads"},  # what is there; what comes in
    "PhotoTag": {
        "curation.words",
        "curation.trash",  # tags move to the trash and back
    },
    "Pairing": {"access"},
    "PushDevice": {"push"},
    "Reading": {"readings"},
    "Record": {"records"},
    "Redaction": {"lexicon"},
    "SavedSearch": {"curation.searches"},
    "Skill": {"assistant.skills"},
    "Shown": set(),  # a view
    "SpendLedger": {"engines.ledger"},
    "Stacked": {"curation.stacks"},
    "StoredSetting": {"models"},
    "SyncState": {"devices"},
    "Tally": {"tallies"},  # and triggers
    "Thread": {"threads"},
    "ThreadApart": {"threads"},
    "ThreadKey": {"threads"},
    "ThreadTrace": {"threads"},
    "Token": {"access"},
    "Trash": {"curation.trash"},
    "Uncompared": {"curation.stacks"},
    "Vocabulary": {"lexicon"},
    "WatchedFile": {"upkeep.watching"},
    "Webhook": {"outlets.webhooks"},
}
# Table -> the modules that read its rows, besides its writers. The others ask the writer.
READERS = {
    "Analysis": {
        "agenda",
        "analysis.backlog",
        "analysis.listing",
        "curation.opened",
        "curation.stacks",
        "meaning",
        "upkeep.derived",
        "upkeep.export",
        "upkeep.moving",
    },
    "ForgottenOriginal": {"upkeep.moving", "upkeep.stored"},
    "AskedCall": {"assistant.chat", "assistant.rounds"},  # the one that it runs
    "Conversation": {"reasoner", "upkeep.cleanup", "upkeep.export"},
    "Dynamic": {"reasoner", "upkeep.cleanup", "upkeep.export", "outlets.feeds"},
    "McpServer": {"assistant.offers", "assistant.tools"},
    "Memory": {"upkeep.cleanup", "upkeep.export"},
    "Message": {
        "assistant.citations",
        "assistant.confirmation",
        "assistant.conversations",
        "assistant.openings",
        "assistant.rounds",
        "assistant.transcript",
        "reasoner",
        "upkeep.amounts",
        "upkeep.archive",
        "upkeep.stored",
        "upkeep.cleanup",
        "upkeep.export",
        "upkeep.orphans",
        "upkeep.resealing",
    },
    "OwnWords": {"photos"},  # of those in the trash
    "Photo": {
        "outlets.shares",  # whether one is in the trash
        "upkeep.libraries",  # which pictures are here already
        "access",  # whether others have used a device
        "agenda",
        "analysis.backlog",
        "analysis.pool",
        "analysis.results",
        "analysis.text_reader",
        "assistant.library",
        "claims",
        "curation.originals",
        "curation.retention",
        "meaning",
        "curation.stacks",
        "models",
        "readings",
        "reasoner",
    }
    | {
        f"upkeep.{name}"
        for name in (
            "archive",
            "backup",
            "derived",
            "stored",
            "cleanup",
            "clocks",
            "dates",
            "export",
            "moving",
            "orphans",
            "verifying",
            "resealing",
        )
    },
    "PushDevice": {"devices"},
    "Reading": {"upkeep.derived"},
    "SavedSearch": {"upkeep.export"},
    "Shown": {
        *("assistant.library", "meaning", "photos", "reasoner", "threads", "upkeep.archives"),
        "upkeep.export",
    },
    "Stacked": {"models"},
    "SyncState": {"access"},  # the name of a device
    "Trash": {"agenda", "gate", "models", "photos", "tallies", "upkeep.cleanup", "upkeep.export"},
    "Vocabulary": {"upkeep.derived"},
}
WRITING = {
    "create",
    "delete",
    "delete_by_id",
    "get_or_create",
    "insert",
    "insert_from",
    "insert_many",
    "replace",
}
WRITING |= {"replace_many", "set_by_id", "update", "bulk_create", "bulk_update", "truncate_table"}
TABLE_NAMES = {model.__name__: model._meta.table_name for model in models.Model.__subclasses__()}
STATEMENT = re.compile(r"\b(?:INSERT INTO|REPLACE INTO|UPDATE|DELETE FROM)\s+([a-z_]+)")

ENVIRONMENT_READERS = {"app", SERVER}
# The client's commands: their settings are those of the person's shell and terminal.
ENVIRONMENT_USERS = {"terminal.commands", "terminal.options", "terminal.showing"} | {
    "commands.serving",  # passes it on to gunicorn
    "outlets.ics",  # the name of the time zone, by the variable that the C library reads
}
# What the client may use beside its own modules: it is copied with these to other machines.
CLIENT_GROUND = {"errors", "settings", "text"}
ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
REQUEST_INPUT = {
    f"flask.request.{part}"
    for part in ("json", "get_json", "args", "form", "files", "values", "data", "get_data")
}

SOURCES = sorted(
    path for folder in (ROOT, *(ROOT / package for package in PACKAGES)) for path in folder.glob("*.py")
)
SOURCES = [path for path in SOURCES if path.name != "__init__.py"]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts).removesuffix(".py")


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_keeps_the_rules(path: Path) -> None:
    found = list(violations(name_of(path), path.read_text()))
    assert not found, "\n".join(found)


def test_the_walk_finds_the_modules_and_every_row_is_a_file() -> None:
    assert {name_of(path) for path in SOURCES} == RANKS.keys() | {SERVER}


def test_packages_are_nothing_but_folders() -> None:
    assert all((ROOT / package / "__init__.py").read_text() == "" for package in PACKAGES)


def test_the_root_fits_one_screen() -> None:
    assert len(list(ROOT.glob("*.py"))) <= 39


def test_every_table_has_its_writers() -> None:
    tree = ast.parse((ROOT / "models.py").read_text())
    tables = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and ast.unparse(node.bases[0]) == "Model"
    }
    assert tables == WRITERS.keys()


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("helpers", "", "helpers has no row"),
        ("photos", "from analysis import pool", "1: photos imports analysis.pool, which is not below it"),
        ("photos", "from reasoner import run", "1: photos imports reasoner, which is not below it"),
        ("errors", "import errors", "1: errors imports errors, which is not below it"),
        (
            "models",
            "if TYPE_CHECKING:\n    from app import create_app",
            "2: models imports app, which is not below it",
        ),
        (
            "rules.judge",
            "from web import shapes",
            "1: rules.judge imports web.shapes, which is not below it",
        ),
        (
            "assistant.chat",
            "def send():\n    import models",
            "2: assistant.chat imports models inside a function",
        ),
        (
            "assistant.chat",
            "class Turn:\n    async def send(self):\n        from database import db",
            "3: assistant.chat imports database inside a function",
        ),
        (
            "assistant.chat",
            "from . import tools",
            "1: assistant.chat imports relatively: write the whole name",
        ),
        ("app", "import gunicorn.conf", "1: app imports gunicorn.conf, which is not below it"),
        (
            "analysis.pool",
            "from engines.remote import RemoteModel",
            "1: analysis.pool imports engines.remote, which llm is for",
        ),
        (
            "assistant.chat",
            "from analysis import pool",
            "1: assistant.chat imports analysis.pool, which is not below it",
        ),
        (
            "upkeep.check",
            "import dynamics\nfrom assistant import chat\nfrom commands import data",
            "3: upkeep.check imports commands.data, which is not below it",
        ),
        (
            "terminal.commands",
            "from clock import utc_now",
            "1: terminal.commands imports clock, which the client does not bring to other machines",
        ),
        ("net", "import os\nos.environ['HOME']", "2: net reads the environment"),
        ("net", "import os\nimport os.path\nos.getenv('HOME')", "3: net reads the environment"),
        (
            "jobs",
            "from os import environ as e\nhome = e.get('HOME')",
            "2: jobs reads the environment",
        ),
        (
            "app",
            "import os\nkey = os.environ['SNAPLORE_API_KEY']",
            "2: app uses the environment for more than Settings.from_environ",
        ),
        (
            "app",
            "from os import getenv\ngetenv('HOME')",
            "2: app uses the environment for more than Settings.from_environ",
        ),
        (
            "photos",
            "from flask import Blueprint, request\nroutes = Blueprint()\nrequest.files['file']",
            "3: photos reads flask.request.files, which is for web.inputs",
        ),
        (
            "push",
            "from flask import Blueprint, request as r\nroutes = Blueprint()\nr.get_json()",
            "3: push reads flask.request.get_json, which is for web.inputs",
        ),
        (
            "app",
            "import flask\nflask.request.args",
            "2: app reads flask.request.args, which is for web.inputs",
        ),
        (
            "app",
            "import flask as f\nf.request.args.get('q')",
            "2: app reads flask.request.args, which is for web.inputs",
        ),
        ("push", "import requests", "1: push imports requests, which is not for it"),
        (
            "push",
            "def send():\n    from urllib3.util import Retry",
            "2: push imports urllib3, which is not for it",
        ),
        (
            "assistant.tools",
            "from urllib import request",
            "1: assistant.tools imports urllib.request, which is not for it",
        ),
        (
            "engines.remote",
            "import http.client",
            "1: engines.remote imports http.client, which is not for it",
        ),
        ("rules.embedded", "import socket", "1: rules.embedded imports socket, which is not for it"),
        ("photos", "from PIL import Image", "1: photos imports PIL, which is not for it"),
        (
            "web.inputs",
            "from playhouse.shortcuts import model_to_dict",
            "1: web.inputs imports playhouse, which is not for it",
        ),
        ("engines.prompts", "import peewee", "1: engines.prompts imports peewee, which is not for it"),
        ("app", "import peewee", "1: app imports peewee, which is not for it"),
        ("database", "import sqlite3", "1: database imports sqlite3, which is not for it"),
        ("photos", "from flask import g", "1: photos imports flask, but has no routes"),
        (
            "lexicon",
            "from models import Photo\nPhoto.select()",
            "2: lexicon reads Photo, which is not for it",
        ),
        (
            "search",
            "import models\nmodels.Memory.get_by_id(1)",
            "2: search reads Memory, which is not for it",
        ),
        (
            "agenda",
            "from models import Analysis\nAnalysis.update(noted=True)",
            "2: agenda writes Analysis, which is not for it",
        ),
        (
            "upkeep.check",
            "import models as m\nm.Photo.delete()",
            "2: upkeep.check writes Photo, which is not for it",
        ),
        (
            "search",
            "db.execute_sql('DELETE FROM vocabulary')",
            "1: search writes Vocabulary, which is not for it",
        ),
    ],
)
def test_a_violation_is_found(module: str, source: str, expected: str) -> None:
    assert list(violations(module, source)) == [expected]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "analysis.pool",
            "import models\nfrom photos import store\nimport urllib.parse\nfrom http import HTTPStatus",
        ),
        ("rules.embedded", "def load():\n    import faster_paddle"),
        ("llm", "from engines.remote import RemoteModel\nfrom rules import embedded"),
        ("dynamics", "from engines.articles import Article\nfrom engines import configuration"),
        ("app", "import os\nfrom settings import Settings\nsettings = Settings.from_environ(os.environ)"),
        (
            "gunicorn.conf",
            "import os\nimport app\nfrom settings import Settings\n"
            "bind = Settings.from_environ(os.environ).bind",
        ),
        ("gunicorn.conf", "def post_worker_init(worker):\n    import analysis"),
        ("web.inputs", "from flask import request\nrequest.get_json()"),
        ("push", "def send(request):\n    return request.data"),
        ("photos", "from flask import Blueprint, request\nroutes = Blueprint()\nrequest.headers['Range']"),
        ("net", "import socket\nimport requests\nfrom urllib3.util import connection"),
        ("photos", "from models import Analysis, Photo\nPhoto.insert()\nAnalysis.delete()"),
        ("reasoner", "from models import Message\nMessage.select()"),
        ("assistant.mcp", "from assistant.mcp_messages import Message\nMessage.update()"),
    ],
)
def test_what_keeps_the_rules_passes(module: str, source: str) -> None:
    assert list(violations(module, source)) == []


def violations(module: str, source: str) -> Iterator[str]:
    """A sentence for each breach of the rules in `source`, the text of `module`, starting with its line."""
    if module not in RANKS and module != SERVER:
        yield f"{module} has no row"
        return
    tree = ast.parse(source)
    yield from _imports(module, tree)
    yield from _environment(module, tree)
    yield from _request_input(module, tree)
    yield from _tables(module, tree)


def _imports(module: str, tree: ast.Module) -> Iterator[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside_functions = {node for function in functions for node in ast.walk(function)}
    has_routes = any(isinstance(node, ast.Name) and node.id.endswith("routes") for node in ast.walk(tree))
    rank = RANKS.get(module, TOP)
    package = module.partition(".")[0]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        where = f"{node.lineno}: {module}"
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"{where} imports relatively: write the whole name"
            continue
        imported = _imported(node)
        for target in sorted(name for name in imported if name in RANKS or name == SERVER):
            if RANKS.get(target, TOP) >= rank:
                yield f"{where} imports {target}, which is not below it"
            elif node in inside_functions and module != SERVER:
                yield f"{where} imports {target} inside a function"
            if package == "terminal" and not target.startswith("terminal.") and target not in CLIENT_GROUND:
                yield f"{where} imports {target}, which the client does not bring to other machines"
            if target in MODELS and package not in ("engines", "rules") and module != "llm":
                yield f"{where} imports {target}, which llm is for"
            if (
                target.startswith("upkeep.")
                and package not in ("upkeep", "jobs", "commands", "app")
                and module != SERVER
            ):
                yield f"{where} imports {target}, which only jobs, commands, app and the server's hooks use"
        for other in sorted(imported & OWNERS.keys()):
            if module not in OWNERS[other]:
                yield f"{where} imports {other}, which is not for it"
        if "flask" in imported and module not in FLASK_USERS and not has_routes:
            yield f"{where} imports flask, but has no routes"


def _tables(module: str, tree: ast.Module) -> Iterator[str]:
    """Tables are written by their writers, and read by those who are listed."""
    found = set()
    for node, meant in _uses(tree):
        source, _, rest = meant.partition(".")
        table, _, attribute = rest.partition(".")
        if source == "models" and table in WRITERS and module != "models":
            found.add((node.lineno, "writes" if attribute.partition(".")[0] in WRITING else "reads", table))
    for text in ast.walk(tree):
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            for statement in STATEMENT.finditer(text.value):
                found |= {
                    (text.lineno, "writes", table) for table in WRITERS if TABLE_NAMES[table] == statement[1]
                }
    written = {(line, table) for line, use, table in found if use == "writes"}
    for line, use, table in sorted(found):
        allowed = WRITERS[table] if use == "writes" else WRITERS[table] | READERS.get(table, set())
        if module not in allowed and not (use == "reads" and (line, table) in written):
            yield f"{line}: {module} {use} {table}, which is not for it"


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Everything that `node` names, with the packages around it: `from a.b import c` names `a`, `a.b` and
    `a.b.c`.
    """
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    return {
        ".".join(parts[:length])
        for name in names
        for parts in [name.split(".")]
        for length in range(1, len(parts) + 1)
    }


def _environment(module: str, tree: ast.Module) -> Iterator[str]:
    """The environment is named in an entry point, as the argument of `Settings.from_environ`, and nowhere
    else.
    """
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("from_environ")
    ]
    handed_on = [argument for call in calls for argument in call.args]
    for node, meant in _uses(tree):
        if meant not in ENVIRONMENT or module in ENVIRONMENT_USERS:
            continue
        if module not in ENVIRONMENT_READERS:
            yield f"{node.lineno}: {module} reads the environment"
        elif node not in handed_on:
            yield f"{node.lineno}: {module} uses the environment for more than Settings.from_environ"


def _request_input(module: str, tree: ast.Module) -> Iterator[str]:
    for node, meant in _uses(tree):
        if meant in REQUEST_INPUT and module != "web.inputs":
            yield f"{node.lineno}: {module} reads {meant}, which is for web.inputs"


def _uses(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Each name and attribute that comes from an import, with what it means: `f.request` is `flask.request`
    after `import flask as f`.
    """
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
