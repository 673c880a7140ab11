"""Every regular expression takes time in proportion to its text, whatever the text: those of the service, and
those of the dashboard's scripts.
"""

import json
import re
import subprocess
import sys
import warnings

import pytest

from settings import ROOT
from tests.support.expressions import Expression, hostile, slow
from web import dashboard

OWN_TEXT = ("web/dashboard.py",)  # they read the scripts of the dashboard, at a start
PARAMETERS = [  # names of files in the data folder, which the callers know
    "upkeep/archive.py: re.fullmatch(name, path.name)",
    "upkeep/orphans.py: re.fullmatch(name, entry.name)",
]
SCRIPTS = sorted((dashboard.TEMPLATES / "script").rglob("*.js"))


@pytest.mark.slow
def test_every_expression_of_the_service_takes_linear_time():
    run = subprocess.run(
        [sys.executable, "-m", "tests.support.expressions"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, (run.stderr[-2_000:], lines[-1:])
    *results, total = lines
    print(total)

    assert not [line for line in results if not line.get("slow", OWN_TEXT[0]).startswith(OWN_TEXT)]
    assert total["unknown"] == PARAMETERS
    assert total["expressions"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [r"\s+$", r"<.*>x", r"[0-9]+(?=x)"])
def test_an_expression_that_takes_quadratic_time_is_found(pattern):
    expression = Expression("here", pattern)
    assert any(slow(expression, text) for text in hostile(pattern))


# ------------------------------------------------------------------------------------------------ the scripts

# Where a slash begins an expression: behind one of these characters or words, elsewhere it divides.
BEFORE = (*"(,=:[!&|?{};>+-*", "return", "typeof", "case", "")
TOKEN = re.compile(
    r"""(?P<skip>\s++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)|(?P<text>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')"""
    r"""|(?P<expression>/(?![*/])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*+\])++/[a-z]*+)"""
    r"""|(?P<word>[\w$]++)|(?P<sign>.)""",
    re.DOTALL,
)
MEASURE = """([pattern, flags, texts]) => {
  const spent = (text) => {
    const expression = new RegExp(pattern, flags.replace("g", "") + "g");
    const started = performance.now();
    for (const _ of text.matchAll(expression));
    return performance.now() - started;
  };
  for (const [before, piece, end] of texts) {
    const text = (length) => before + piece.repeat(Math.max(1, Math.floor(length / piece.length))) + end;
    const grows = (large) => {
      for (let time = 0; time < 3; time += 1) spent(text(large / 4)); // until it is compiled
      let parts = 0;
      for (let part = 0; part < 4; part += 1) parts += spent(text(large / 4));
      return spent(text(large)) > 2.2 * parts;
    };
    if (spent(text(24)) > 200) return [before, piece, end];
    for (const size of [8192, 32768]) {
      const took = spent(text(size));
      if (took < 5) break;
      if (took > 20) {
        // A repetition with a bound of thousands grows up to there.
        if (grows(size) && grows(2 * size)) return [before, piece, end];
        break;
      }
    }
  }
  return null;
}"""


# The text of a template, up to its end or to an inserted expression.
TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*+(`|\$\{)", re.DOTALL)


def literals(source):
    """The expressions that are written between slashes: pattern, flags."""
    previous, at = "", 0
    open_braces = [0]  # for each template around this place: how many braces are open in its insertion
    while at < len(source):
        token = TOKEN.match(source, at)
        kind, text = token.lastgroup, token[0]
        if kind == "expression" and previous not in BEFORE:
            kind, text = "sign", "/"
        if kind == "expression":
            pattern, _, flags = text[1:].rpartition("/")
            yield pattern, flags
        at += len(text)
        if text == "`" or (text == "}" and open_braces[-1] == 0 and len(open_braces) > 1):
            if text == "}":
                open_braces.pop()
            part = TEMPLATE.match(source, at)
            at = part.end()
            if part[1] == "${":
                open_braces.append(0)
            previous = "(" if part[1] == "${" else "a template"
            continue
        if text in "{}":
            open_braces[-1] += 1 if text == "{" else -1
        if kind != "skip":
            previous = text


def as_python(pattern, flags):
    """An expression of JavaScript as one that Python parses, to make its hostile texts."""
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    pattern = re.sub(r"\\k<(\w+)>", r"(?P=\1)", pattern).replace("[^]", r"[\s\S]")
    pattern = pattern.replace(r"\p{L}\p{N}", r"\w")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # "[[", which both read alike
        return hostile(pattern, re.IGNORECASE if "i" in flags else 0)


@pytest.fixture(scope="module")
def made(chromium):
    """The expressions that the scripts make with `new RegExp` when they are loaded."""
    page = chromium.new_page()
    page.evaluate(
        """() => {
          window.made = [];
          window.RegExp = new Proxy(RegExp, { construct(target, given) {
            window.made.push([String(given[0]), given[1] ?? ""]);
            return new target(...given);
          } });
        }"""
    )
    page.add_script_tag(content=dashboard.linked(dashboard.TEMPLATES / "script" / "base" / "markdown.js"))
    # Playwright makes an expression of its own for the codes of terminals.
    yield [one for one in page.evaluate("window.made") if "\\u001" not in one[0].lower()]
    page.close()


@pytest.mark.slow
def test_every_expression_of_the_dashboard_s_scripts_takes_linear_time(chromium, made):
    found = {one: path.name for path in SCRIPTS for one in literals(path.read_text(encoding="utf-8"))}
    found |= {tuple(one): "markdown.js" for one in made}
    page = chromium.new_page()
    texts = 0
    for (pattern, flags), name in found.items():
        given = [(text.before, text.piece, text.end) for text in as_python(pattern, flags)]
        texts += len(given)
        assert page.evaluate(MEASURE, [pattern, flags, given]) is None, (name, pattern)
    page.close()
    print(len(found), "expressions", texts, "texts")
    assert len(found) > 20


def test_scripts_make_no_other_expressions_at_run_time(made):
    # tile.js: the words of a search, escaped, as alternatives.
    places = [path.name for path in SCRIPTS for _ in re.findall("RegExp", path.read_text(encoding="utf-8"))]
    assert places == ["markdown.js", "tile.js"]
    assert len(made) == 1


@pytest.mark.slow
def test_a_script_s_expression_that_takes_quadratic_time_is_found(chromium):
    page = chromium.new_page()
    for pattern in (r"^#\s+(.*?)\s*#*$", r"<.*>x", r"[0-9]+(?=x)"):
        given = [(text.before, text.piece, text.end) for text in as_python(pattern, "")]
        assert page.evaluate(MEASURE, [pattern, "", given]) is not None, pattern
    page.close()


def test_expressions_are_told_from_divisions():
    assert list(literals("`${a({b: 1})}/c/d ${`/e/f`} /g/` / h; i = /j/;")) == [("j", "")]
    assert list(literals("a = b / c; d = /[/]x/gi.test(e) ? 1 / 2 : /y/u;")) == [("[/]x", "gi"), ("y", "u")]
