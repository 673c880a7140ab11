"""The dashboard: one HTML document that holds its style and script, for browsers that open the service's address.

It is put together once, when a browser first asks for it, and is the same for everybody: what it shows is fetched by its script, with the
key. So its Content-Security-Policy names the hashes of the one style and the one script instead of a nonce for each answer,
and the document can be compressed once and kept by the browser until it changes. Nothing else may run in it, be loaded from
elsewhere, or frame it. The files in `templates/` are written for readers; comments and spaces do not travel.
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

# Pictures are fetched with the key and shown from memory, hence blob:; the icon of the page is in the page, hence data:.
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
        "require-trusted-types-for 'script'",  # a text can become markup nowhere, not even by mistake
        "trusted-types 'none'",
    )
)

_COMMENT = re.compile(r"^\s*(//[^\n]*|/\*\*.*?\*/)\n", re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    document: bytes
    compressed: bytes
    policy: str
    etag: str


def assemble(*, key_needed: bool) -> Page:
    """The document with its policy. `key_needed` tells it whether to ask for a key before it asks the service for anything."""
    import minify_html  # 18 MB, which a service that only phones use, and each command, can do without

    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True)
    environment.globals["joined"] = _joined
    text = environment.get_template("dashboard.html").render(name=NAME, version=VERSION, key_needed=key_needed)
    text = minify_html.minify(text, minify_js=True, minify_css=True, keep_closing_tags=True)
    sources = {kind: _hash(re.search(rf"<{kind}\b[^>]*>(.*?)</{kind}>", text, re.DOTALL)[1]) for kind in ("script", "style")}
    document = text.encode()
    return Page(document, gzip.compress(document, mtime=0), POLICY.format(**sources), hashlib.sha256(document).hexdigest()[:32])


def wanted(request: flask.Request) -> bool:
    """Whether the client prefers HTML to JSON. Programs that take anything get JSON, as ever."""
    return request.accept_mimetypes.best_match(("application/json", "text/html")) == "text/html"


def response(page: Page, request: flask.Request) -> flask.Response:
    """The page for this request: compressed where that is taken, 304 where the browser has it already."""
    small = "gzip" in request.accept_encodings
    answer = flask.Response(page.compressed if small else page.document, mimetype="text/html")
    if small:
        answer.content_encoding = "gzip"
    answer.vary.add("Accept-Encoding")
    answer.headers["Content-Security-Policy"] = page.policy
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    answer.headers["Cache-Control"] = "no-cache"  # kept, and asked about each time it is opened
    answer.set_etag(f"{page.etag}-gzip" if small else page.etag)
    return answer.make_conditional(request.environ)


def _joined(*names: str) -> markupsafe.Markup:
    """The texts of these files, one after the other: nothing in them is read as a template.

    Comments on lines of their own are left out here, because the minifier keeps those that stand before a function.
    """
    text = "\n".join((TEMPLATES / name).read_text(encoding="utf-8").rstrip() for name in names) + "\n"
    return markupsafe.Markup(_COMMENT.sub("", text))  # noqa: S704


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
