"""All regular expressions of the project, and for each the texts that would make it slow.

The syntax trees name each place that uses `re`. Expressions that are compiled while a module is imported are
recorded there, complete; those inside functions are read from the tree, with a letter for a part that is
known only when the function runs. So a new expression is found without anyone listing it.

The hostile texts come from an expression's own structure: for each repetition thousands of what it repeats,
with and without what comes before it, and then an end at which the whole fails.

As a program, it measures the expressions of Python and prints those whose time grows faster than their text,
one a line: `python -m tests.support.expressions`.
"""

import ast
import dataclasses
import gc
import importlib
import json
import re
import resource
import sys
import time
from collections.abc import Iterator
from re import _constants as op
from re import _parser as parser
from typing import Any

from settings import ROOT
from tests.support.properties import REPEATED

FUNCTIONS = {"compile": 1, "match": 2, "fullmatch": 2, "search": 2, "findall": 2, "finditer": 2, "split": 3,
             "sub": 4, "subn": 4}  # fmt: skip  # each with the position of its flags
PACKAGES = ("assistant", "curation", "engines", "outlets", "rules", "tls", "upkeep", "web", "migrations")

SIZES = (8_192, 32_768, 131_072)  # characters
NOTHING, ENOUGH = 0.002, 0.05  # seconds of CPU; a quadratic expression takes longer than the first at once
PARTS = 4
MOST_GROWTH = 2.2  # a linear expression takes 1 of the time of four quarters, a quadratic one 4
CPU_SECONDS = 360  # for all expressions, which take half of it


@dataclasses.dataclass(frozen=True)
class Expression:
    place: str  # "rules/judge.py:76"
    pattern: str | bytes
    flags: int = 0
    functions: tuple[str, ...] = ("search",)  # what it is used with


# ---------------------------------------------------------------------------------------------------- finding


def of_the_project() -> tuple[list[Expression], list[str]]:
    """The expressions, and the places whose expression is not known without running them: `file: code`."""
    recorded = _recorded()
    found: dict[Expression, None] = {}
    unknown = []
    for path in sorted(_sources()):
        name = str(path.relative_to(ROOT))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = sys.modules.get(name.removesuffix(".py").replace("/", "."))
        names = vars(module) if module is not None else {}
        for node, pattern, flags, function in _uses(tree):
            place = f"{name}:{node.lineno}"
            known = [one for line in range(node.lineno, (node.end_lineno or 0) + 1)
                     for one in recorded.get((str(path), line), ())]  # fmt: skip
            if not known and (text := _text(pattern, names)) is not None:
                known = [(text, _value(flags, names) or 0)]
            if not known:
                unknown.append(f"{name}: {ast.unparse(node)}")
            functions = _functions_of(tree, node) if function == "compile" else (function,)
            for text, options in known:
                found[Expression(place, text, int(options), functions)] = None
    return list(found), unknown


def _sources() -> Iterator[Any]:
    yield from ROOT.glob("*.py")
    yield ROOT / "snaplore"
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def _recorded() -> dict[tuple[str, int], list[tuple[str | bytes, int]]]:
    """What each line compiled while the modules were imported, which must not have been before."""
    recorded: dict[tuple[str, int], list[tuple[str | bytes, int]]] = {}
    compile_ = re._compile

    def record(pattern: Any, flags: int) -> re.Pattern:
        frame = sys._getframe(2)
        if isinstance(pattern, str | bytes):
            recorded.setdefault((frame.f_code.co_filename, frame.f_lineno), []).append((pattern, int(flags)))
        return compile_(pattern, flags)

    re._compile = record
    try:
        for path in _sources():
            if path.suffix == ".py" and path.name != "gunicorn.conf.py" and path.parent.name != "migrations":
                importlib.import_module(
                    str(path.relative_to(ROOT))
                    .removesuffix(".py")
                    .replace("/", ".")
                    .removesuffix(".__init__")
                )
        labels = importlib.import_module("rules.labels")
        for value in gc.get_objects():
            if isinstance(value, labels.Labels):
                _ = value.expression  # made when it is first needed
        importlib.import_module("rules.joins")._words()  # likewise
    finally:
        re._compile = compile_
    return recorded


def _uses(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr | None, str]]:
    """Each use of an expression: the node, its pattern, its flags, the function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            raise AssertionError("import re, not from re: expressions are found by `re.`")
        if isinstance(node, ast.Call):
            function = node.func
            named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
            if named and function.value.id == "re" and function.attr in FUNCTIONS:
                flags = [argument.value for argument in node.keywords if argument.arg == "flags"]
                flags += node.args[FUNCTIONS[function.attr] :]
                yield node, node.args[0], flags[0] if flags else None, function.attr
            for argument in node.keywords:
                if argument.arg == "pattern":  # msgspec's `Meta`
                    yield argument.value, argument.value, None, "search"
        is_regex = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if is_regex and node.targets[0].id == "regex":  # a converter of Werkzeug
            yield node, node.value, None, "match"


def _text(node: ast.expr, names: dict[str, Any]) -> str | bytes | None:
    """The pattern, with "x" for the parts that are known only at run time. None: there is no other part."""
    value = _value(node, names)
    if isinstance(value, str | bytes):
        return value
    parts = []
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
    if isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    known = [_text(part, names) for part in parts]
    if not any(isinstance(text, str) for text in known):
        return None
    return "".join("x" if text is None else str(text) for text in known)


def _value(node: ast.expr | None, names: dict[str, Any]) -> Any:
    if node is None:
        return None
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), dict(names))
    except Exception:
        return None


def _functions_of(tree: ast.AST, call: ast.AST) -> tuple[str, ...]:
    """The functions that the module uses a compiled expression with, if its name tells."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if not name.startswith("_"):
                break  # other modules may use it too
            used = {
                use.attr
                for use in ast.walk(tree)
                if isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name) and use.value.id == name
            }
            if used and used <= {"match", "fullmatch"}:
                return tuple(sorted(used))
    return ("search",)


# ---------------------------------------------------------------------------------------------------- hostile

ALPHABET = "aA1 .\t\n-_,;:@/'\"<>[](){}#*+=$€!?&%\\|~`中年月é\0"
ENDS = ("", "\0", "\n!")
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
MANY = 16  # a repetition with a smaller bound is a constant factor
CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Text:
    """`before`, as many of `piece` as make the length, and `end`."""

    piece: str
    before: str = ""
    end: str = ""

    def of(self, length: int) -> str:
        return self.before + self.piece * max(1, length // len(self.piece)) + self.end


def hostile(pattern: str | bytes, flags: int = 0) -> list[Text]:
    """Texts that take this expression superlinear time if any do."""
    tree = parser.parse(pattern, flags)
    texts = {Text(piece): None for piece in REPEATED}
    pumps = list(_pumps(list(tree), ""))
    pieces: dict[str, None] = {}
    for before, piece in pumps:
        pieces[piece] = None
        for end in ENDS:
            texts[Text(piece, "", end)] = texts[Text(piece, before, end)] = None
            texts[Text(before + piece, "", end)] = None
        if before:
            texts[Text(before)] = None
            texts[Text(before + 10 * piece)] = None
    for one, other in zip(pieces, list(pieces)[1:], strict=False):
        texts[Text(one + other)] = texts[Text(one + other, "", "\0")] = None
    for whole in _samples(list(tree), 12):
        if whole:
            texts[Text(whole)] = None
            if whole[:-1]:
                texts[Text(whole[:-1])] = None
    return [text for text in texts if text.piece]


def _pumps(sequence: list, before: str) -> Iterator[tuple[str, str]]:
    """What comes before each repetition, and what it repeats."""
    for operation, value in sequence:
        for inner in _inside(operation, value):
            if operation in REPEATS and value[1] > MANY:
                for piece in _samples(inner, 4):
                    if piece:
                        yield before, piece
            yield from _pumps(inner, before)
        before += _samples([(operation, value)], 1)[0]


def _inside(operation: Any, value: Any) -> list[list]:
    if operation in REPEATS:
        return [list(value[2])]
    if operation is op.BRANCH:
        return [list(branch) for branch in value[1]]
    if operation is op.SUBPATTERN:
        return [list(value[3])]
    if operation is op.ATOMIC_GROUP:
        return [list(value)]
    if operation in (op.ASSERT, op.ASSERT_NOT):
        return [list(value[1])]
    return []


def _samples(sequence: list, most: int) -> list[str]:
    """Up to `most` texts that the sequence matches (but for references and lookarounds), at least one."""
    each = [_samples_of(operation, value, most) for operation, value in sequence]
    plain = "".join(samples[0] for samples in each)
    found = {plain: None}
    for position, samples in enumerate(each):
        for sample in samples[1:]:
            changed = [other[0] for other in each]
            changed[position] = sample
            found["".join(changed)] = None
    return list(found)[:most]


def _samples_of(operation: Any, value: Any, most: int) -> list[str]:
    if operation is op.LITERAL:
        return [chr(value)]
    if operation in (op.NOT_LITERAL, op.ANY, op.IN):
        return _members(operation, value)[:most]
    if operation in REPEATS:
        inner = _samples(list(value[2]), most)
        least = [sample * value[0] for sample in inner]
        return least if value[0] else ["", *inner]
    if operation in (op.BRANCH, op.SUBPATTERN, op.ATOMIC_GROUP):
        samples = [_samples(inner, most) for inner in _inside(operation, value)]
        if operation is op.BRANCH:
            samples = [[branch[0] for branch in samples]]
        return samples[0][:most]
    return [""]


def _members(operation: Any, value: Any) -> list[str]:
    """Characters of a set: those that it names, then others."""
    if operation is op.ANY:
        return ["a", " ", "1"]
    if operation is op.NOT_LITERAL:
        return [sign for sign in ALPHABET if ord(sign) != value]
    negated = value[0][0] is op.NEGATE
    named = [] if negated else [chr(item) for kind, item in value if kind is op.LITERAL]
    named += [] if negated else [chr(item[0]) for kind, item in value if kind is op.RANGE]
    others = [sign for sign in ALPHABET if negated != any(_is_in(sign, *item) for item in value)]
    return list(dict.fromkeys(named[:2] + others + named)) or ["a"]


def _is_in(sign: str, kind: Any, item: Any) -> bool:
    if kind is op.LITERAL:
        return ord(sign) == item
    if kind is op.RANGE:
        return item[0] <= ord(sign) <= item[1]
    return kind is op.CATEGORY and re.match(CATEGORIES[item], sign) is not None


# -------------------------------------------------------------------------------------------------- measuring


def slow(expression: Expression, text: Text) -> str:
    """How the time grows, if that is faster than the text; else an empty sentence.

    Four times the text is compared with four times the time: equal is linear. The clock of some machines
    ticks in milliseconds, so less than that decides nothing.
    """
    for function in expression.functions:
        _seconds(expression, function, text.of(SIZES[0] // PARTS))  # an exponential one takes all time here
        for size in SIZES:
            long = _seconds(expression, function, text.of(size))
            if long < NOTHING:
                break
            if long > ENOUGH and (growth := _growth(expression, function, text, size)):
                return growth
            if long > ENOUGH:
                break
    return ""


def _growth(expression: Expression, function: str, text: Text, size: int) -> str:
    for _ in range(2):
        long = _seconds(expression, function, text.of(size))
        parts = sum(_seconds(expression, function, text.of(size // PARTS)) for _ in range(PARTS))
        if long < MOST_GROWTH * parts:
            return ""
    return f"{long * 1000:.0f} ms for {size} characters, {parts * 1000:.0f} ms for {PARTS} times a {PARTS}th"


def _seconds(expression: Expression, function: str, text: str) -> float:
    compiled = re.compile(expression.pattern, expression.flags)
    subject: Any = text.encode("utf-8", "replace") if isinstance(expression.pattern, bytes) else text
    started = time.process_time()
    if function in ("match", "fullmatch"):
        getattr(compiled, function)(subject)
    else:
        for _ in compiled.finditer(subject):
            pass
    return time.process_time() - started


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    expressions, unknown = of_the_project()
    texts = 0
    for expression in expressions:
        # The last line names an expression that takes all the time there is.
        print(
            json.dumps({"reading": expression.place, "pattern": str(expression.pattern)}),
            flush=True,
        )
        for text in hostile(expression.pattern, expression.flags):
            texts += 1
            if growth := slow(expression, text):
                found = {"slow": expression.place, "text": str(text), "growth": growth}
                print(json.dumps(found), flush=True)
                break
    print(json.dumps({"expressions": len(expressions), "texts": texts, "unknown": unknown}))


if __name__ == "__main__":
    main()
