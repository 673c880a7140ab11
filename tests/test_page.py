"""The dashboard as it is served: to whom, how large, and with what it may not do."""

import base64
import dataclasses
import gzip
import hashlib
import re

import pytest

import page
from app import create_app
from tests.support.client import detail

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
# What one may weigh: it should be usable within a second on a slow line.
MOST = 150_000
SCRIPTS = sorted((page.TEMPLATES / "script").glob("*.js"))


@pytest.fixture
def served(app):
    return app.test_client().get("/", headers={"Accept": BROWSER})


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("text/*", True),
        ("text/html;q=0.8, application/json;q=0.5", True),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/html", False),
        ("text/html;q=0.5, application/json", False),
        ("image/png", False),
        ("", False),
        (None, False),
    ],
)
def test_browsers_get_the_page_and_programs_get_json(app, accept, html):
    answer = app.test_client().get("/", headers={} if accept is None else {"Accept": accept})
    assert answer.status_code == 200
    assert answer.mimetype == ("text/html" if html else "application/json")
    assert "Accept" in answer.headers["Vary"]
    assert html == answer.get_data().startswith(b"<!doctype html>")


def test_the_page_needs_no_key_and_every_other_path_does(app):
    client = app.test_client()
    for path in ("/dashboard", "/index.html", "/templates/dashboard.html", "/api/photos"):
        detail(client.get(path, headers={"Accept": BROWSER}), 401)


def test_the_page_knows_whether_a_key_is_needed(app, settings, tmp_path):
    assert "<html data-key=needed" in app.test_client().get("/", headers={"Accept": BROWSER}).text
    open_app = create_app(dataclasses.replace(settings, dev_mode=True, data_dir=tmp_path / "open"))
    assert "<html data-key=open" in open_app.test_client().get("/", headers={"Accept": BROWSER}).text


def test_the_page_is_light_and_lighter_compressed(app, served):
    assert len(served.data) < MOST
    small = app.test_client().get("/", headers={"Accept": BROWSER, "Accept-Encoding": "br, gzip"})
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert gzip.decompress(small.data) == served.data
    assert len(small.data) < MOST / 2
    assert small.headers["ETag"] != served.headers["ETag"]


def test_a_browser_keeps_the_page_and_asks_whether_it_has_changed(app, served):
    assert served.headers["Cache-Control"] == "no-cache"
    again = app.test_client().get("/", headers={"Accept": BROWSER, "If-None-Match": served.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["Content-Security-Policy"] == served.headers["Content-Security-Policy"]


def test_only_the_pages_own_script_and_style_may_run(served):
    policy = dict(part.strip().split(" ", 1) for part in served.headers["Content-Security-Policy"].split(";"))
    for kind in ("script", "style"):
        [source] = re.findall(rf"<{kind}\b[^>]*>(.*?)</{kind}>", served.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert policy.pop(f"{kind}-src") == f"'sha256-{digest}'"
    assert policy == {
        "default-src": "'none'",
        "img-src": "'self' blob: data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_page_loads_nothing_and_has_no_handlers_or_styles_in_its_markup(served):
    markup = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", served.text, flags=re.DOTALL)
    assert not re.findall(r"\son\w+=|\sstyle=|\ssrc=|javascript:", markup)
    assert re.findall(r"href=\"?([^\s\">]{5})", markup) == ["data:"]
    assert not re.findall(r"@import|url\(", served.text)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|import\(", served.text)


def test_every_word_of_the_page_is_there_in_both_languages():
    registered, used = set(), set()
    for path in SCRIPTS:
        text, view = path.read_text(encoding="utf-8"), ""
        for line in text.splitlines():
            if found := re.match(r"  (\w+): \{$", line):
                view = found[1]
            elif found := re.match(r'    "?(\w+)"?: "([^"|]+)\|([^"|]+)",$', line):
                registered.add(f"{view}.{found[1]}")
                # What is filled in is the same in both.
                assert set(re.findall(r"\{\w+\}", found[2])) == set(re.findall(r"\{\w+\}", found[3])), line
        used |= set(re.findall(r'\bt\("(\w+\.\w+)"', text))
        used |= set(re.findall(r'(?:title|label): "(\w+\.\w+)"', text))
    assert len(registered) > 200
    assert used <= registered, used - registered


def test_the_files_of_the_page_are_all_in_it_and_say_what_they_own():
    template = (page.TEMPLATES / "dashboard.html").read_text(encoding="utf-8")
    named = re.findall(r'"((?:script|style)/[\w.]+)"', template)
    files = [path for path in page.TEMPLATES.rglob("*") if path.is_file() and path.suffix in (".js", ".css")]
    assert sorted(named) == sorted(str(path.relative_to(page.TEMPLATES)) for path in files)
    for path in files:
        assert path.read_text(encoding="utf-8").startswith("// " if path.suffix == ".js" else "/* "), path.name
