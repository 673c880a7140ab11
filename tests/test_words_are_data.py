"""The words that the rules go by are data with a source (`rules/words/`), no literals in code: a word is
added there, and whoever adds a language finds all of it in one place.
"""

import ast
import re

import pytest

from rules import wordlists
from settings import ROOT
from tests.test_layers import PACKAGES

FEWEST = 4  # alternatives of an expression, from which on they are a list
# What is between two "|" of an expression is a word of a list if the expression begins or goes on with one: a
# group opens before it, or one ends behind it.
WORD = re.compile(
    r"(?:^|[(:>\])]|\\b)(?:[^\W\d_\u2e80-\uffff][\w' ?-]{2,}|[\u4e00-\u9fff]{2,})\??(?=$|[()\[])"
)
ALLOWED = {
    "curation/originals.py": "names that Windows keeps for devices",
    "rules/entities.py": "top-level domains",
    "rules/kinds.py": "words of programming languages, top-level domains",
    "rules/screen.py": "top-level domains",
    "rules/vote.py": "top-level domains",
    "tls/addresses.py": "names of network interfaces",
    "web/dashboard.py": "words of JavaScript",
}  # fmt: skip


def lists(source):
    """The lines of the texts in a program that have a list of words; what is inserted into a text is none."""
    tree = ast.parse(source)
    formatted = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
        if isinstance(part, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in formatted:
            text = node.value
        else:
            continue
        if sum(WORD.search(part) is not None for part in text.split("|")) >= FEWEST and "|" in text:
            yield node.lineno


def test_no_list_of_words_is_in_code():
    paths = [*ROOT.glob("*.py"), *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))]
    found = {
        str(path.relative_to(ROOT)): lines
        for path in paths
        if (lines := list(lists(path.read_text(encoding="utf-8"))))
    }
    assert {path: lines for path, lines in found.items() if path not in ALLOWED} == {}
    assert found.keys() >= ALLOWED.keys(), "a row of ALLOWED that is not needed any more"


@pytest.mark.parametrize(
    "source",
    [
        r'X = re.compile(r"(?<![a-z])(?:due|check-?in|expires?|no later than)(?![a-z])")',
        'X = re.compile("截止|到期|预约|会议")',
        r'X = re.compile(rf"\b{Y}|\d ?(?:day|week|month|year)s?")',
    ],
)
def test_a_list_of_words_is_found(source):
    assert list(lists(source)) == [1]


@pytest.mark.parametrize(
    "source",
    [
        r'X = re.compile(r"[A-Z]{2}\d{9}[A-Z]{2}|JJD\d{15,20}|\d{1,2}月|TB[ABCM]\d{12}")',
        'X = re.compile(any_in("days", "ranges"))',
        'X = "SELECT told || name || state || kind FROM threads"',
    ],
)
def test_an_expression_of_forms_is_no_list_of_words(source):
    assert list(lists(source)) == []


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        (["due", "due date", "截止"], "Due date: 截止", ["Due date", "截止"]),  # the longest counts
        (
            ["due", "截止"],
            "overdue, residues, 已截止",
            ["截止"],
        ),  # whole words, where there are blanks between them
        (["no."], "note, no. 3", ["no."]),  # signs mean themselves
        ("due 截止", "due 截止", ["due", "截止"]),  # a text of words
        ([], "due", []),
    ],
)
def test_an_expression_of_words(words, text, found):
    expression = wordlists.any_of(words, wordlists.START, wordlists.END)
    assert re.findall(expression, text, re.IGNORECASE) == found
