"""What the page makes of the models' Markdown: its elements, and nothing that a text could bring in by
itself.
"""

import json
import time

import pytest

from web import dashboard

BLANK = ' rel="noopener noreferrer" target="_blank"'


@pytest.fixture(scope="module")
def render(chromium):
    """`render(text)`: the markup of the renderer's elements."""
    blank = chromium.new_page()
    blank.add_script_tag(content=dashboard.linked(dashboard.TEMPLATES / "script" / "base" / "markdown.js"))
    yield lambda text: blank.evaluate(f"h('div', markdown({json.dumps(text)})).innerHTML")
    blank.close()


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("Plain words", "<p>Plain words</p>"),
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        ("# Title #\n### Third\n####### none", "<h2>Title</h2><h4>Third</h4><p>####### none</p>"),
        ("#hashtag", "<p>#hashtag</p>"),
        (
            "**bold** and *em* and _em_ and ~~no~~",
            "<p><strong>bold</strong> and <em>em</em> and <em>em</em> and <s>no</s></p>",
        ),
        ("***both***", "<p><strong><em>both</em></strong></p>"),
        ("**bold with *em* inside**", "<p><strong>bold with <em>em</em> inside</strong></p>"),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        (r"\*not em\* and \`no code\`", "<p>*not em* and `no code`</p>"),
        ("`a < b` and ``a ` b``", "<p><code>a &lt; b</code> and <code>a ` b</code></p>"),
        (
            "```py\nif a < b:\n    **no**\n```\nafter",
            '<pre tabindex="0"><code>if a &lt; b:\n    **no**</code></pre><p>after</p>',
        ),
        ("~~~\nnever closed", '<pre tabindex="0"><code>never closed</code></pre>'),
        (
            "- one\n- two\n  - deep\n- three",
            "<ul><li>one</li><li>two<ul><li>deep</li></ul></li><li>three</li></ul>",
        ),
        ("Before:\n* one\n* two", "<p>Before:</p><ul><li>one</li><li>two</li></ul>"),
        ("3. three\n4. four", '<ol start="3"><li>three</li><li>four</li></ol>'),
        ("1. one\n   - deep\n2. two", "<ol><li>one<ul><li>deep</li></ul></li><li>two</li></ol>"),
        ("- one\n\n- two", "<ul><li>one</li><li>two</li></ul>"),
        ("- one\n  goes on\n\n  second part", "<ul><li>one<br>goes on<p>second part</p></li></ul>"),
        ("> said\n> again\n\nafter", "<blockquote><p>said<br>again</p></blockquote><p>after</p>"),
        ("above\n\n---\n\nbelow", "<p>above</p><hr><p>below</p>"),
        (
            "[text](https://example.org/a_b_(c)?d=1)",
            f'<p><a href="https://example.org/a_b_(c)?d=1"{BLANK} data-host="example.org">text</a></p>',
        ),
        (
            '[mail](mailto:ann@example.org "Ann")',
            f'<p><a href="mailto:ann@example.org"{BLANK} data-host="ann@example.org">mail</a></p>',
        ),
        (
            "See https://example.org/a_b. And",
            f'<p>See <a href="https://example.org/a_b"{BLANK}>https://example.org/a_b</a>. And</p>',
        ),
        (
            "看 https://example.org/路。好",
            f'<p>看 <a href="https://example.org/路"{BLANK}>https://example.org/路</a>。好</p>',
        ),
        ("<https://example.org>", f'<p><a href="https://example.org"{BLANK}>https://example.org</a></p>'),
        ("中文**加粗**文字", "<p>中文<strong>加粗</strong>文字</p>"),
        ("unfinished **bold and `code", "<p>unfinished **bold and `code</p>"),
        ("", ""),
        ("   \n\n", ""),
    ],
)
def test_markdown_becomes_elements(render, text, markup):
    assert render(text) == markup


def test_tasks_are_boxes_that_say_what_they_are_about(render):
    made = render("- [ ] buy *bread*\n- [x] done")
    assert made.count('<input type="checkbox"') == 2
    assert 'aria-label="buy bread"' in made
    assert "buy <em>bread</em></li>" in made


def test_a_table_keeps_its_columns(render):
    made = render("| What | When |\n|:--|--:|\n| Dentist | **Tuesday** |\n| a \\| b |\n\nafter")
    assert made == (
        '<table tabindex="0"><thead><tr><th scope="col">What</th><th scope="col">When</th></tr></thead>'
        "<tbody><tr><td>Dentist</td><td><strong>Tuesday</strong></td></tr>"
        "<tr><td>a | b</td><td></td></tr></tbody></table><p>after</p>"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "[click](JaVaScRiPt:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "[click](//evil.example)",
        "![picture](https://evil.example/tracker.png)",
        "<a href='javascript:alert(1)'>x</a>",
        '[x](https://example.org/"onmouseover="alert(1))',
        "| <svg onload=alert(1)> |\n|---|\n| <iframe src=//evil.example> |",
        "```<script>\n</code></pre><script>alert(1)</script>\n```",
    ],
)
def test_a_text_brings_in_no_markup_of_its_own(render, text):
    made = render(text)
    for tag in ("<script", "<img", "<svg", "<iframe", "<a href='"):
        assert tag not in made
    assert 'href="javascript' not in made.lower()
    assert 'href="data' not in made
    assert 'href="//' not in made
    assert '" onmouseover' not in made


@pytest.mark.parametrize(
    "piece",
    [
        ">",
        "> ",
        "- ",
        "  - x\n",
        "*",
        "**a",
        "`",
        "[",
        "[](",
        "|",
        "|\n|-",
        "_a",
        "~~",
        "\\",
        "1. ",
        "#",
        "<https://",
    ],
)
def test_a_hostile_text_ends(render, piece):
    assert render(piece * (20_000 // len(piece))) is not None


WIDE = 64_000  # characters


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 4_000 + "b",
        "# a" + " " * WIDE + "b",
        "# " + " " * WIDE + "b\u2028c",
        "a | b\n" + " " * WIDE + "x",
        "a | b\n-" + " " * WIDE + "x",
        "a | b\n" + "|-" * (WIDE // 2) + "x",
        "- " + " " * WIDE + "b\u2028c",
        "---" + " " * WIDE + "x",
        "- " * (WIDE // 2) + "x",
        "[a](b" + " " * WIDE + "x",
        "[a](" + "(b)" * (WIDE // 3),
        "https://a" + "." * WIDE + "a",
        "`" * 3 + " " * WIDE + "x",
        "|" * (WIDE // 3) + "\n-|-\n" + "|\n" * (WIDE // 3),
        "- a\n" + "b\n" * WIDE,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_long_text_takes_little_time(render, text):
    started = time.monotonic()
    assert "<" in render(text)
    assert time.monotonic() - started < 3
