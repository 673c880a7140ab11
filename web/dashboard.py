"""The dashboard: one HTML document with its style and script inside, for browsers that open the service's
address, and a later part with what the first view does not need, such as the settings.

It is assembled once for each language, at the first request, and is the same for everybody, because its
script fetches the data with the key. Each script of it has only the texts that it uses, in one language
(`page_texts.py`). The document is compressed once, and browsers cache it until it changes. It loads nothing
from other servers, and no other site can frame it. Its addresses are relative, because a proxy may put the
service below a path. The files in `templates/` are written for readers; comments and white space are not
sent.

Its Content-Security-Policy names the hashes of its styles and scripts instead of a nonce for each answer. The
later part is one script, with its style as a string. The page fetches it as text and runs it as an inline
script (`parts.js`). So the policy names its hash too, in a way that every browser knows, and no address may
serve scripts. The part's address has its hash: browsers keep it for ever, and a document of an earlier
version gets 404 and never a part that does not fit. The font is served in the same way.

The scripts are ES modules, so that editors and checkers understand them. They are linked into these two
scripts here: served one by one, each would need a path that is open without the key, and a request of its own
before the page can start.
"""

import base64
import functools
import gzip
import hashlib
import json
import posixpath
import re
from pathlib import Path
from typing import NamedTuple

import flask
import jinja2
import markupsafe

from settings import NAME, VERSION
from web import page_texts
from web.page_texts import DEFAULT, LANGUAGES

TEMPLATES = Path(__file__).with_name("templates")

# Pictures are fetched with the key and shown from memory (blob:); the icon is part of the page (data:).
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src {script}",
        "style-src {style}",
        "img-src 'self' blob: data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",  # Home Assistant shows it in a frame, below a path of its own address
        "manifest-src 'self'",
        "worker-src 'self'",
        "require-trusted-types-for 'script'",  # text can never become markup, not even by mistake
        "trusted-types snaplore",  # for the service worker and the later part, and nothing else (parts.js)
    )
)

# In the order in which they are laid down.
FIRST_STYLES = ("base.css", "library.css", "viewer.css", "uploads.css")
LATER_STYLES = ("agenda.css", "chat.css", "pages.css", "records.css", "search.css", "selection.css")

_COMMENT = re.compile(r"^[ \t]*(//[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)$", re.MULTILINE)
_IMPORT = re.compile(
    r'^import \{\s*([\w$]+(?:,\s*[\w$]+)*),?\s*\} from "(\.\.?/[\w/-]+\.js)";$', re.MULTILINE
)
_DECLARATION = re.compile(r"^(export )?((?:async )?(?:function|class|const|(let)) )([\w$]+)", re.MULTILINE)
# Placeholders in the styles and scripts, replaced when the page is assembled.
_FONT = "FONT"
_STYLE = "LATER_STYLE"
_TEXTS = "PAGE_TEXTS"
_LANGUAGES = "PAGE_LANGUAGES"
_FOR_EVER = "public, max-age=31536000, immutable"  # for what has its hash in its name
_UNLINKED = re.compile(r"^\s*(?:import|export)\b(?!\s*:)|\bimport\s*[(.]", re.MULTILINE)


class _Module(NamedTuple):
    imports: list[tuple[str, str, list[str]]]  # where ("base/dom.js:4"), from which file, which names
    declared: dict[str, str]  # each name of the module's own scope, with where it is declared
    exported: set[str]
    variables: set[str]  # declared by `let`
    body: str


class Font(NamedTuple):
    """Inter, for Latin letters. Until it is there, and for other scripts, the system's fonts are shown."""

    name: str  # with the hash of its content
    content: bytes


class Part(NamedTuple):
    name: str  # with the hash of its script
    script: bytes
    compressed: bytes


class Page(NamedTuple):
    document: bytes
    compressed: bytes
    policy: str
    etag: str
    later: Part


COOKIE = "snaplore_language"  # the person's choice; without it, the browser's languages decide


def language_of(request: flask.Request, otherwise: str = DEFAULT) -> str:
    """The code of the page's language that this request prefers, `otherwise` where it prefers none."""
    chosen = request.cookies.get(COOKIE)
    if chosen is not None and chosen in LANGUAGES:
        return chosen
    # In the browser's order: `best_match` would prefer "zh" to "en-GB", because it is exact.
    spoken = [tag.partition("-")[0].lower() for tag, quality in request.accept_languages if quality > 0]
    return next((language for language in spoken if language in LANGUAGES), otherwise)


def assemble(*, key_needed: bool, language: str = DEFAULT) -> Page:
    """The page in a language. With `key_needed`, it asks for the key before its first request."""
    import minify_html

    first, later = linked_in_two(TEMPLATES / "script" / "start.js", TEMPLATES / "script" / "later.js")
    _, tag, texts = page_texts.language(language)
    at_first = page_texts.used(first, texts)
    languages = {code: page_texts.language(code).name for code in LANGUAGES}
    first = first.replace(_TEXTS, _literal(at_first)).replace(_LANGUAGES, _literal(languages))
    style = _minified("style", _styles(LATER_STYLES))
    later = later.replace(_TEXTS, _literal(page_texts.without(page_texts.used(later, texts), at_first)))
    script = _minified("script", later.replace(_STYLE, _literal(style)))
    part = Part(
        f"{language}-{hashlib.sha256(script.encode()).hexdigest()[:32]}.js",
        script.encode(),
        gzip.compress(script.encode(), mtime=0),
    )
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    text = environment.get_template("dashboard.html").render(
        name=NAME,
        version=VERSION,
        key_needed=key_needed,
        language=tag,
        later=f"parts/{part.name}",
        style=markupsafe.Markup(_styles(FIRST_STYLES).replace(_FONT, f"parts/{font().name}")),  # noqa: S704  # our own files
        script=markupsafe.Markup(first),  # noqa: S704
    )
    text = minify_html.minify(text, minify_js=True, minify_css=True, keep_closing_tags=True)
    own = {"style": style, "script": script}
    sources = {kind: f"{_hash(_content(text, kind))} {_hash(own[kind])}" for kind in own}
    document = text.encode()
    return Page(
        document,
        gzip.compress(document, mtime=0),
        POLICY.format(**sources),
        hashlib.sha256(document).hexdigest()[:32],
        part,
    )


def wanted(request: flask.Request) -> bool:
    """Whether the client prefers HTML to JSON. Programs that accept anything get JSON."""
    return request.accept_mimetypes.best_match(("application/json", "text/html")) == "text/html"


def response(page: Page, request: flask.Request) -> flask.Response:
    """The page as an answer: compressed if the client accepts that, 304 if the browser has it already."""
    small = request.accept_encodings.find("gzip") >= 0
    answer = flask.Response(page.compressed if small else page.document, mimetype="text/html")
    if small:
        answer.content_encoding = "gzip"
    answer.vary.update(("Accept-Encoding", "Accept-Language", "Cookie"))
    answer.headers["Content-Security-Policy"] = page.policy
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    answer.headers["Cache-Control"] = "no-cache"  # cached, and revalidated each time it is opened
    answer.set_etag(f"{page.etag}-gzip" if small else page.etag)
    answer.make_conditional(request.environ)
    return answer


def part_response(page: Page, request: flask.Request) -> flask.Response:
    """The later part of the page as the answer to this request."""
    small = request.accept_encodings.find("gzip") >= 0
    answer = flask.Response(page.later.compressed if small else page.later.script, mimetype="text/javascript")
    if small:
        answer.content_encoding = "gzip"
    answer.vary.add("Accept-Encoding")
    answer.headers["Content-Security-Policy"] = "default-src 'none'"
    answer.headers["Cache-Control"] = _FOR_EVER
    return answer


@functools.cache
def font() -> Font:
    """The font of the page."""
    content = (TEMPLATES / "font" / "inter.woff2").read_bytes()
    return Font(f"inter-{hashlib.sha256(content).hexdigest()[:32]}.woff2", content)


def font_response() -> flask.Response:
    answer = flask.Response(font().content, mimetype="font/woff2")
    answer.headers["Cache-Control"] = _FOR_EVER
    return answer


def linked(entry: Path) -> str:
    """The module `entry` and all modules that it imports, directly or indirectly, as one script. Each module
    follows those that it imports.

    The modules then share one scope, so only forms that mean the same there are allowed:
    `import { a, b } from "./file.js";` and `export` before a declaration. A file is found from the folder of
    the one that imports it. Raises `ValueError`, with file and line, for any other form, a name that is not
    exported, a cycle, or a name that two modules declare.
    """
    return "\n".join(module.body for module in _modules(entry).values())


def linked_in_two(entry: Path, later: Path) -> tuple[str, str]:
    """The module `entry` with what it imports, as `linked` does, and a second script with those modules that
    only `later` needs.

    The first script lends what the second imports from it, as properties of `lent`, which it declares. The
    second is run as an inline script. It dispatches the event "part" on itself, with its `style`, its `texts`
    and a function `run` that takes `lent` and returns `provided`, which the module `later` declares. Raises
    `ValueError` also for a variable, because the second script would keep its first value.
    """
    modules = _modules(entry, later)
    first = _modules(entry).keys()
    lent: set[str] = set()
    for file in modules.keys() - first:
        for where, target, names in modules[file].imports:
            if target not in first:
                continue
            if changing := modules[target].variables.intersection(names):
                raise ValueError(f"{where}: {min(changing)} can change, and the later part would not see it")
            lent.update(names)
    borrowed = f"{{ {', '.join(sorted(lent))} }}"
    event = f'new CustomEvent("part", {{ detail: {{ style: {_STYLE}, texts: {_TEXTS}, run: ({borrowed}) => {{'
    return (
        "\n".join([*(modules[file].body for file in first), f"Object.assign(lent, {borrowed});"]),
        "\n".join(
            [
                f"document.currentScript.dispatchEvent({event}",
                *(module.body for file, module in modules.items() if file not in first),
                "return provided;\n} } }));",
            ]
        ),
    )


def _modules(*entries: Path) -> dict[str, _Module]:
    """These modules and those that they import, each after its own imports, by their paths."""
    modules: dict[str, _Module] = {}
    for entry in entries:
        _collect(entry.parent, entry.name, (), modules)
    owners: dict[str, str] = {}
    for module in modules.values():
        for name, where in module.declared.items():
            if name in owners:
                raise ValueError(
                    f"{where}: {name} is declared at {owners[name]} too, and linked modules share one scope"
                )
            owners[name] = where
    return modules


def _collect(folder: Path, file: str, importers: tuple[str, ...], modules: dict[str, _Module]) -> None:
    """Add the module `file` to `modules`, after the missing ones of those that it imports."""
    module = _read_module(folder, file)
    for where, target, names in module.imports:
        if target in (*importers, file):
            raise ValueError(f"{where}: a cycle of imports: {' → '.join((*importers, file, target))}")
        if target not in modules:
            if not (folder / target).is_file():
                raise ValueError(f"{where}: there is no {target}")
            _collect(folder, target, (*importers, file), modules)
        if missing := [name for name in names if name not in modules[target].exported]:
            raise ValueError(f"{where}: {target} does not export {', '.join(missing)}")
    modules[file] = module


def _read_module(folder: Path, file: str) -> _Module:
    # Comments are removed: the minifier keeps those before functions, and they must not be read as code.
    # Their line breaks stay, for the line numbers.
    text = _COMMENT.sub(
        lambda comment: "\n" * comment[0].count("\n"),
        (folder / file).read_text(encoding="utf-8").rstrip() + "\n",
    )

    def where(source: str, position: int) -> str:
        return f"{file}:{source.count(chr(10), 0, position) + 1}"

    imports = [
        (
            where(text, found.start()),
            posixpath.normpath(posixpath.join(posixpath.dirname(file), found[2])),
            re.split(r",\s*", found[1]),
        )
        for found in _IMPORT.finditer(text)
    ]
    declarations = list(_DECLARATION.finditer(text))
    declared = {found[4]: where(text, found.start()) for found in declarations}
    body = _DECLARATION.sub(r"\2\4", _IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text))
    if left := _UNLINKED.search(body):
        raise ValueError(
            f"{where(body, left.end())}: only imports by name and exported declarations can be linked"
        )
    exported = {found[4] for found in declarations if found[1]}
    return _Module(imports, declared, exported, {found[4] for found in declarations if found[3]}, body)


def _styles(names: tuple[str, ...]) -> str:
    return "\n".join((TEMPLATES / "style" / name).read_text(encoding="utf-8") for name in names)


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _minified(element: str, text: str) -> str:
    import minify_html  # takes 18 MB, which neither commands nor a service without browsers need

    small = minify_html.minify(
        f"<{element}>{text}</{element}>", minify_js=True, minify_css=True, keep_closing_tags=True
    )
    return _content(small, element)


def _content(text: str, element: str) -> str:
    """The content of the first `element` of an HTML document. Raises `ValueError` when it has none."""
    found = re.search(rf"<{element}\b[^>]*>(.*?)</{element}>", text, re.DOTALL)
    if found is None:
        raise ValueError(f"the document has no <{element}>")
    return found[1]


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
