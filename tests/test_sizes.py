"""No function and no file of the program outgrows a reader: 60 lines a function, and 550 a file, unless its
docstring gives the reason. Tests and benchmarks, which are read from top to bottom, are left out.
"""

import ast
import re

import pytest

from settings import ROOT

MOST_IN_FUNCTION, MOST_IN_FILE = 60, 550
LEFT_OUT = ("tests", "benchmarks", "node_modules")
REASON = re.compile(r"More than \d+ lines, because \w")

SOURCES = sorted(
    path
    for path in ROOT.rglob("*.py")
    if not path.is_symlink()
    and not any(part.startswith(".") or part in LEFT_OUT for part in path.relative_to(ROOT).parts)
)


def long_functions(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if (lines := node.end_lineno - node.lineno + 1) > MOST_IN_FUNCTION:
                yield f"{node.name} has {lines} lines"


def is_too_long(source):
    """Whether a file has too many lines and no reason."""
    docstring = " ".join((ast.get_docstring(ast.parse(source)) or "").split())
    return len(source.splitlines()) > MOST_IN_FILE and not REASON.search(docstring)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_and_no_function_is_too_long(path):
    source = path.read_text()
    assert not list(long_functions(source))
    assert not is_too_long(source), "split it, or give the reason: “More than 550 lines, because …”"


def test_what_is_too_long_is_noticed():
    body = "    pass\n" * 60
    assert list(long_functions(f"def short():\n{body[9:]}")) == []
    assert list(long_functions(f"def long():\n{body}")) == ["long has 61 lines"]
    lines = "a = 1\n" * 600
    assert is_too_long(f'"""A file."""\n{lines}')
    assert not is_too_long(f'"""A file.\n\nMore than 550 lines, because\nit is a table."""\n{lines}')
