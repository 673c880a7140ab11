"""The dashboard as it is served: to whom, how large, and with what it may not do."""

import base64
import dataclasses
import gzip
import hashlib
import re
import typing

import pytest

from app import create_app
from tests.support.client import detail
from web import dashboard, shapes

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
MOST = 62_000  # bytes, compressed: it should be usable within a second on a slow line
MOST_FONT = 110_000
MOST_LATER = 76_000  # fetched when the page has nothing else to do
SCRIPTS = sorted((dashboard.TEMPLATES / "script").rglob("*.js"))
FOLDERS = ("base", "viewer", "library", "chat", "settings")  # each imports from those before it


@pytest.fixture
def served(app):
    return app.test_client().get("/", headers={"Accept": BROWSER})


@pytest.fixture
def later(app, served):
    [path] = re.findall(r"data-later=\"?(parts/[\w.-]+)", served.text)
    return app.test_client().get(f"/{path}")


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


@pytest.mark.slow
def test_the_page_knows_whether_a_key_is_needed(app, settings, tmp_path):
    assert "<html data-key=needed" in app.test_client().get("/", headers={"Accept": BROWSER}).text
    open_app = create_app(dataclasses.replace(settings, dev_mode=True, data_dir=tmp_path / "open"))
    assert "<html data-key=open" in open_app.test_client().get("/", headers={"Accept": BROWSER}).text


def test_the_page_is_light_and_lighter_compressed(app, served):
    small = app.test_client().get("/", headers={"Accept": BROWSER, "Accept-Encoding": "br, gzip"})
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert gzip.decompress(small.data) == served.data
    assert len(small.data) < MOST
    assert small.headers["ETag"] != served.headers["ETag"]


def test_a_browser_keeps_the_page_and_asks_whether_it_has_changed(app, served):
    assert served.headers["Cache-Control"] == "no-cache"
    again = app.test_client().get("/", headers={"Accept": BROWSER, "If-None-Match": served.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["Content-Security-Policy"] == served.headers["Content-Security-Policy"]


def test_the_later_part_is_open_kept_for_ever_and_the_same_compressed(app, later):
    assert (later.status_code, later.mimetype) == (200, "text/javascript")
    assert later.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert later.headers["Content-Security-Policy"] == "default-src 'none'"
    assert later.headers["X-Content-Type-Options"] == "nosniff"
    small = app.test_client().get(later.request.path, headers={"Accept-Encoding": "gzip"})
    assert small.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in small.headers["Vary"]
    assert gzip.decompress(small.data) == later.data
    assert len(small.data) < MOST_LATER


def test_a_later_part_of_another_version_is_not_found(app, later):
    path = later.request.path
    assert hashlib.sha256(later.data).hexdigest()[:32] in path
    for other in (
        path.replace("en-", "en-0"),
        path.replace("en-", "zh-"),
        "/parts/en-.js",
        "/parts/start.js",
    ):
        assert "load the page again" in detail(app.test_client().get(other), 404)
    chinese = app.test_client().get("/", headers={"Accept": BROWSER, "Accept-Language": "zh"})
    [named] = re.findall(r"data-later=\"?(parts/[\w.-]+)", chinese.text)
    assert "设置分区" in app.test_client().get(f"/{named}").text
    assert "设置分区" not in later.text


def test_the_font_is_open_small_kept_for_ever_and_never_waited_for(app, served):
    [path] = re.findall(r"url\((parts/[\w.-]+)\)", served.text)
    assert "font-display:swap" in served.text
    answer = app.test_client().get(f"/{path}")
    assert (answer.status_code, answer.mimetype, answer.data[:4]) == (200, "font/woff2", b"wOF2")
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert hashlib.sha256(answer.data).hexdigest()[:32] in path
    assert len(answer.data) < MOST_FONT
    assert "SIL OPEN FONT LICENSE" in (dashboard.TEMPLATES / "font" / "OFL.txt").read_text(encoding="utf-8")
    detail(app.test_client().get("/parts/inter-0.woff2"), 404)


def test_only_the_pages_own_scripts_and_styles_may_run(served, later):
    policy = dict(part.strip().split(" ", 1) for part in served.headers["Content-Security-Policy"].split(";"))
    [style] = re.findall(r"style:`([^`]*)`", later.text)
    for kind, second in (("script", later.text), ("style", style)):
        [source] = re.findall(rf"<{kind}\b[^>]*>(.*?)</{kind}>", served.text, re.DOTALL)
        digests = [
            base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (source, second)
        ]
        assert policy.pop(f"{kind}-src") == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert policy == {
        "default-src": "'none'",
        "img-src": "'self' blob: data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
        "require-trusted-types-for": "'script'",
        "manifest-src": "'self'",
        "worker-src": "'self'",
        "trusted-types": "snaplore",
    }


def test_the_page_loads_nothing_and_has_no_handlers_or_styles_in_its_markup(served, later):
    markup = re.sub(r"<(script|style)\b[^>]*>.*?</\1>", "", served.text, flags=re.DOTALL)
    assert not re.findall(r"\son\w+=|\sstyle=|\ssrc=|javascript:", markup)
    assert re.findall(r"href=\"?([^\s\">]{5})", markup) == ["manif", "apple", "data:"]
    assert re.findall(r"url\(([^)]*)\)", served.text) == [f"parts/{dashboard.font().name}"]
    assert "url(" not in later.text
    for text in (served.text, later.text):
        assert "@import" not in text
        assert not re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|import\(", text
        )


@pytest.mark.parametrize(
    ("accepted", "cookie", "language"),
    [
        ("de, zh-CN;q=0.9, en;q=0.8", "", "zh-Hans"),
        ("en-GB, zh;q=0.5", "", "en"),
        ("fr", "", "en"),
        ("", "", "en"),
        ("en", "snaplore_language=zh", "zh-Hans"),
        ("zh", "snaplore_language=en", "en"),
        ("zh", "snaplore_language=xx", "zh-Hans"),
    ],
)
def test_the_page_has_the_texts_of_one_language(app, accepted, cookie, language):
    headers = {"Accept": BROWSER, "Accept-Language": accepted, "Cookie": cookie}
    page = app.test_client(use_cookies=False).get("/", headers=headers)

    assert re.search(rf"<html [^>]*lang={language}>", page.text)
    texts = re.findall(r"[`\"]([^`\"]*[\u4e00-\u9fff][^`\"]*)[`\"]", page.text)
    assert (len(texts) > 100) == (language == "zh-Hans")
    assert not [text for text in texts if "|" in text]
    assert {"Accept-Language", "Cookie"} <= set(page.headers["Vary"].split(", "))


def imports():
    """Which files each script imports, by their paths in the folder of scripts."""
    folder = dashboard.TEMPLATES / "script"
    return {
        path.relative_to(folder).as_posix(): {
            (path.parent / target).resolve().relative_to(folder).as_posix()
            for target in re.findall(
                r'^(?:import|\}) .*from "([\w./-]+)";$', path.read_text(encoding="utf-8"), re.MULTILINE
            )
        }
        for path in SCRIPTS
    }


def test_the_files_of_the_page_are_all_in_it_and_say_what_they_own():
    named = [f"style/{name}" for name in (*dashboard.FIRST_STYLES, *dashboard.LATER_STYLES)]
    named += [f"script/{name}" for name in {"start.js", "later.js"}.union(*imports().values())]
    files = [
        path
        for path in dashboard.TEMPLATES.rglob("*")
        if path.suffix in (".js", ".css") and path.parent.name != "installed"
    ]
    assert sorted(named) == sorted(str(path.relative_to(dashboard.TEMPLATES)) for path in files)
    for path in files:
        assert path.read_text(encoding="utf-8").startswith("// " if path.suffix == ".js" else "/* "), (
            path.name
        )


def test_the_folders_of_the_scripts_import_downwards_only():
    upwards = [
        (file, target)
        for file, targets in imports().items()
        for target in targets
        if "/" in file and FOLDERS.index(file.split("/")[0]) < FOLDERS.index(target.split("/")[0])
    ]
    assert not upwards


def test_the_types_of_the_scripts_have_the_names_of_the_api():
    text = (
        (dashboard.TEMPLATES / "script" / "types.d.ts")
        .read_text(encoding="utf-8")
        .partition("// The API's answers")[2]
    )
    interfaces = re.findall(r"^interface (\w+)(?: extends \w+)? \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    assert len(interfaces) == text.count("interface ") > 15
    for name, fields in interfaces:
        assert (
            set(re.findall(r"^  (\w+):", fields, re.MULTILINE))
            <= typing.get_type_hints(getattr(shapes, name)).keys()
        ), name


def write(folder, modules):
    for name, text in modules.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "start.js"


def test_modules_are_linked_each_once_after_those_that_it_imports(tmp_path):
    entry = write(
        tmp_path,
        {
            "start.js": '// Start.\nimport { late } from "./late.js";\n'
            'import {\n  one,\n  two,\n} from "./early.js";\n\nlate(one, two);\n',
            "late.js": 'import { Three } from "./early.js";\n\n'
            '/**\n * Late: import("./early.js") in a comment.\n */\n'
            "export async function late(a) {\n  /** @type {string} */\n"
            "  return new Three({ import: a });\n}\n",
            "early.js": "export const one = 1;\nexport let two = 2;\nexport class Three {}\nconst own = 3;\n",
        },
    )
    assert [line for line in dashboard.linked(entry).splitlines() if line] == [
        "const one = 1;",
        "let two = 2;",
        "class Three {}",
        "const own = 3;",
        "async function late(a) {",
        "  return new Three({ import: a });",
        "}",
        "late(one, two);",
    ]


def test_a_module_is_one_from_whatever_folder_it_is_imported(tmp_path):
    for folder in ("base", "viewer"):
        (tmp_path / folder).mkdir()
    entry = write(
        tmp_path,
        {
            "start.js": 'import { one } from "./base/one.js";\n'
            'import { two } from "./viewer/two.js";\n\none(two);\n',
            "viewer/two.js": 'import { one } from "../base/one.js";\n\nexport const two = one(2);\n',
            "base/one.js": 'import { zero } from "./zero.js";\n\nexport const one = (a) => a + zero;\n',
            "base/zero.js": "export const zero = 0;\n",
        },
    )
    assert [line for line in dashboard.linked(entry).splitlines() if line] == [
        "const zero = 0;",
        "const one = (a) => a + zero;",
        "const two = one(2);",
        "one(two);",
    ]
    (tmp_path / "base" / "zero.js").write_text('import { two } from "../viewer/two.js";\n')
    cycle = "start.js → base/one.js → base/zero.js → viewer/two.js → base/one.js"
    with pytest.raises(ValueError, match=f"^viewer/two.js:1: a cycle of imports: {cycle}$"):
        dashboard.linked(entry)


def test_what_only_the_later_part_needs_is_in_a_script_of_its_own(tmp_path):
    entry = write(
        tmp_path,
        {
            "start.js": 'import { lent } from "./parts.js";\n'
            'import { one } from "./both.js";\n\none(lent);\n',
            "parts.js": "export const lent = {};\n",
            "both.js": "export const one = 1;\nexport function two() {}\nexport let three = 3;\n",
            "later.js": 'import { own } from "./own.js";\n\nexport const provided = { own };\n',
            "own.js": 'import { two, one } from "./both.js";\n\nexport const own = () => two(one);\n',
        },
    )
    first, second = (
        [line for line in script.splitlines() if line]
        for script in dashboard.linked_in_two(entry, tmp_path / "later.js")
    )
    assert first[-2:] == ["one(lent);", "Object.assign(lent, { one, two });"]
    assert first.count("const one = 1;") == 1
    assert second == [
        'document.currentScript.dispatchEvent(new CustomEvent("part", '
        "{ detail: { style: LATER_STYLE, texts: PAGE_TEXTS, run: ({ one, two }) => {",
        "const own = () => two(one);",
        "const provided = { own };",
        "return provided;",
        "} } }));",
    ]


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ('import { three } from "./both.js";\n', "own.js:1: three can change, and the later part would not"),
        (
            "const one = 1;\n",
            "own.js:1: one is declared at both.js:1 too, and linked modules share",
        ),
        ('import { four } from "./both.js";\n', "own.js:1: both.js does not export four"),
    ],
)
def test_what_the_later_part_cannot_share_is_not_linked(tmp_path, own, sentence):
    entry = write(
        tmp_path,
        {
            "start.js": 'import { one } from "./both.js";\n',
            "both.js": "export const one = 1;\nexport let three = 3;\n",
            "later.js": 'import { own } from "./own.js";\n',
            "own.js": f"{own}export const own = 1;\n",
        },
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        dashboard.linked_in_two(entry, tmp_path / "later.js")


REFUSED = "only imports by name and exported declarations can be linked"


@pytest.mark.parametrize(
    ("modules", "sentence"),
    [
        ({"start.js": "// Start.\n\nimport other from './other.js';\n"}, f"start.js:3: {REFUSED}"),
        ({"start.js": 'import * as other from "./other.js";\n'}, f"start.js:1: {REFUSED}"),
        ({"start.js": 'import { a as b } from "./other.js";\n'}, f"start.js:1: {REFUSED}"),
        ({"start.js": 'import "./other.js";\n'}, f"start.js:1: {REFUSED}"),
        ({"start.js": 'import { a } from "https://elsewhere.example/other.js";\n'}, f"start.js:1: {REFUSED}"),
        ({"start.js": 'import { a } from "../other.js";\n'}, "start.js:1: there is no ../other.js"),
        (
            {"start.js": '/**\n * Two\n * lines.\n */\nconst a = await import("./other.js");\n'},
            f"start.js:5: {REFUSED}",
        ),
        ({"start.js": "const a = import.meta.url;\n"}, f"start.js:1: {REFUSED}"),
        ({"start.js": "const a = 1;\n\nexport default a;\n"}, f"start.js:3: {REFUSED}"),
        ({"start.js": "const a = 1;\nexport { a };\n"}, f"start.js:2: {REFUSED}"),
        ({"start.js": 'export * from "./other.js";\n'}, f"start.js:1: {REFUSED}"),
        ({"start.js": "export const { a } = b;\n"}, f"start.js:1: {REFUSED}"),
        ({"start.js": 'import { a } from "./other.js";\n'}, "start.js:1: there is no other.js"),
        (
            {
                "start.js": 'import { a, b, c } from "./other.js";\n',
                "other.js": "const a = 1;\nexport const b = 2;\n",
            },
            "start.js:1: other.js does not export a, c",
        ),
        (
            {
                "start.js": 'import { a } from "./one.js";\n',
                "one.js": 'import { b } from "./two.js";\nexport const a = 1;\n',
                "two.js": '// Two.\nimport { a } from "./one.js";\nexport const b = 1;\n',
            },
            "two.js:2: a cycle of imports: start.js → one.js → two.js → one.js",
        ),
        (
            {"start.js": 'import { a } from "./start.js";\n'},
            "start.js:1: a cycle of imports: start.js → start.js",
        ),
        (
            {
                "start.js": 'import { a } from "./other.js";\n\nasync function hidden() {}\n',
                "other.js": "export const a = 1;\nclass hidden {}\n",
            },
            "start.js:3: hidden is declared at other.js:2 too, and linked modules share one scope",
        ),
    ],
)
def test_what_one_shared_scope_would_change_is_not_linked(tmp_path, modules, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        dashboard.linked(write(tmp_path, modules))
