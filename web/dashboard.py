"""The dashboard: one HTML document with its style and script inside, for browsers that open the service's
address.

It is assembled once, at the first request, and is the same for everybody, because its script fetches the data
with the key. So its Content-Security-Policy names the hashes of its one style and one script instead of a
nonce for each answer. The document is compressed once, and browsers cache it until it changes. It runs no
other script, loads nothing from other servers, and cannot be framed. The files in `templates/` are written
for readers; comments and white space are not sent.

The scripts are ES modules, so that editors and checkers understand them. They are linked into one script
here: served one by one, each would need a path that is open without the key, and a request of its own before
the page can start.
"""

import base64
import gzip
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

import flask
import jinja2
import markupsafe

from settings import NAME, VERSION

TEMPLATES = Path(__file__).with_name("templates")

# Pictures are fetched with the key and shown from memory (blob:); the icon is part of the page (data:).
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src {script}",
        "style-src {style}",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # text can never become markup, not even by mistake
        "trusted-types 'none'",
    )
)

_COMMENT = re.compile(r"^[ \t]*(//[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)$", re.MULTILINE)
_IMPORT = re.compile(r'^import \{\s*([\w$]+(?:,\s*[\w$]+)*),?\s*\} from "\./([\w-]+\.js)";$', re.MULTILINE)
_DECLARATION = re.compile(r"^(export )?((?:async )?(?:function|class|const|let) )([\w$]+)", re.MULTILINE)
_UNLINKED = re.compile(r"^\s*(?:import|export)\b(?!\s*:)|\bimport\s*[(.]", re.MULTILINE)


class _Module(NamedTuple):
    imports: list[tuple[str, str, list[str]]]  # where ("grid.js:4"), from which file, which names
    declared: dict[str, str]  # each name of the module's own scope, with where it is declared
    exported: set[str]
    body: str


class Page(NamedTuple):
    document: bytes
    compressed: bytes
    policy: str
    etag: str


def assemble(*, key_needed: bool) -> Page:
    """The page. With `key_needed`, it asks for the key before its first request."""
    import minify_html  # takes 18 MB, which neither commands nor a service without browsers need

    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    environment.globals |= {
        "joined": _joined,
        "linked": lambda name: markupsafe.Markup(linked(TEMPLATES / name)),  # noqa: S704  # our own files
    }
    text = environment.get_template("dashboard.html").render(
        name=NAME, version=VERSION, key_needed=key_needed
    )
    text = minify_html.minify(text, minify_js=True, minify_css=True, keep_closing_tags=True)
    sources = {element: _hash(_content(text, element)) for element in ("script", "style")}
    document = text.encode()
    return Page(
        document,
        gzip.compress(document, mtime=0),
        POLICY.format(**sources),
        hashlib.sha256(document).hexdigest()[:32],
    )


def wanted(request: flask.Request) -> bool:
    """Whether the client prefers HTML to JSON. Programs that accept anything get JSON."""
    return request.accept_mimetypes.best_match(("application/json", "text/html")) == "text/html"


def response(page: Page, request: flask.Request) -> flask.Response:
    """The page as the answer to this request: compressed if the client accepts that, 304 if the browser has
    it already.
    """
    small = request.accept_encodings.find("gzip") >= 0
    answer = flask.Response(page.compressed if small else page.document, mimetype="text/html")
    if small:
        answer.content_encoding = "gzip"
    answer.vary.add("Accept-Encoding")
    answer.headers["Content-Security-Policy"] = page.policy
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    answer.headers["Cache-Control"] = "no-cache"  # cached, and revalidated each time it is opened
    answer.set_etag(f"{page.etag}-gzip" if small else page.etag)
    answer.make_conditional(request.environ)
    return answer


def linked(entry: Path) -> str:
    """The module `entry` and all modules that it imports, directly or indirectly, as one script. Each module
    follows those that it imports.

    The modules then share one scope, so only forms that mean the same there are allowed:
    `import { a, b } from "./file.js";` and `export` before a declaration. Raises `ValueError`, with file and
    line, for any other form, a name that is not exported, a cycle, or a name that two modules declare.
    """
    modules: dict[str, _Module] = {}
    _collect(entry, (), modules)
    owners: dict[str, str] = {}
    for module in modules.values():
        for name, where in module.declared.items():
            if name in owners:
                raise ValueError(
                    f"{where}: {name} is declared at {owners[name]} too, and linked modules share one scope"
                )
            owners[name] = where
    return "\n".join(module.body for module in modules.values())


def _collect(path: Path, importers: tuple[str, ...], modules: dict[str, _Module]) -> None:
    """Add the module at `path` to `modules`, after the missing ones of those that it imports."""
    module = _read_module(path)
    for where, target, names in module.imports:
        if target in (*importers, path.name):
            raise ValueError(f"{where}: a cycle of imports: {' → '.join((*importers, path.name, target))}")
        if target not in modules:
            if not path.with_name(target).is_file():
                raise ValueError(f"{where}: there is no {target}")
            _collect(path.with_name(target), (*importers, path.name), modules)
        if missing := [name for name in names if name not in modules[target].exported]:
            raise ValueError(f"{where}: {target} does not export {', '.join(missing)}")
    modules[path.name] = module


def _read_module(path: Path) -> _Module:
    # Comments are removed: the minifier keeps those before functions, and they must not be read as code.
    # Their line breaks stay, for the line numbers.
    text = _COMMENT.sub(
        lambda comment: "\n" * comment[0].count("\n"), path.read_text(encoding="utf-8").rstrip() + "\n"
    )

    def where(source: str, position: int) -> str:
        return f"{path.name}:{source.count(chr(10), 0, position) + 1}"

    imports = [
        (where(text, found.start()), found[2], re.split(r",\s*", found[1]))
        for found in _IMPORT.finditer(text)
    ]
    declarations = list(_DECLARATION.finditer(text))
    declared = {found[3]: where(text, found.start()) for found in declarations}
    body = _DECLARATION.sub(r"\2\3", _IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text))
    if left := _UNLINKED.search(body):
        raise ValueError(
            f"{where(body, left.end())}: only imports by name and exported declarations can be linked"
        )
    return _Module(imports, declared, {found[3] for found in declarations if found[1]}, body)


def _joined(*names: str) -> markupsafe.Markup:
    """The concatenated texts of these files, which are not rendered as templates."""
    texts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in names]
    return markupsafe.Markup("\n".join(texts))  # noqa: S704  # our own files


def _content(text: str, element: str) -> str:
    """The content of the first `element` of an HTML document. Raises `ValueError` when it has none."""
    found = re.search(rf"<{element}\b[^>]*>(.*?)</{element}>", text, re.DOTALL)
    if found is None:
        raise ValueError(f"the document has no <{element}>")
    return found[1]


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
