"""How sharp the tests are: `make mutants` plants small mistakes in modules, one at a time, and counts those
that the modules' tests notice.

A mistake is a changed comparison, `and` for `or`, a number one larger, a `not` added or removed, `+` for `-`.
A sample is drawn by a seed. Each mistake is made in a copy of the tree, where the module's own tests run:
`tests/test_<module>.py` and what ALSO names, else every test file that imports the module. Nine of ten
noticed is the aim. Mistakes that nobody could see are left out where that is plain from the code: in the
arguments of log calls, in type-checking blocks, and in the constants of SPEED.
"""

import argparse
import ast
import copy
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# The tests that hold what a module promises, where its own name does not find them all.
ALSO = {
    "lexicon": ["test_search.py"],
    "vocabulary": ["test_search.py"],
    "terms": ["test_search.py"],
    "context": ["test_chat.py"],
}
# Constants that decide only how much is done at once: results are the same with any value.
SPEED = {"lexicon": ["TOGETHER", "MERGED"], "vocabulary": ["SLICE"], "push": ["THREADS"]}
PATIENCE = 4  # times the duration without a mistake; a longer run hangs, and counts as noticed


@dataclass(frozen=True)
class Mistake:
    path: Path
    line: int
    before: str
    after: str
    source: str


def mistakes(path: Path, count: int, seed: int) -> list[Mistake]:
    """A sample of the mistakes that can be planted in the file `path`, which is relative to the project's
    folder, in the order of the file.
    """
    text = (ROOT / path).read_text()
    tree = ast.parse(text)
    invisible = set(_invisible(tree, SPEED.get(path.stem, [])))
    possible = [
        place
        for place, node in enumerate(ast.walk(tree))
        if node not in invisible and _may_change(node) and _changed(copy.copy(node)) is not None
    ]
    chosen = random.Random(seed).sample(possible, min(count, len(possible)))
    return sorted((_mistake(path, text, place) for place in chosen), key=lambda mistake: mistake.line)


def _mistake(path: Path, text: str, place: int) -> Mistake:
    tree = ast.parse(text)
    node = list(ast.walk(tree))[place]
    before = ast.unparse(node)
    changed = _changed(node)
    return Mistake(
        path, node.lineno, before, ast.unparse(changed), ast.unparse(_Replace(node, changed).visit(tree))
    )


def _invisible(tree: ast.AST, constants: list[str]) -> Iterator[ast.AST]:
    """Nodes in which a mistake changes nothing that anybody could see."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
                yield from ast.walk(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield from ast.walk(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if name in constants:
                yield from ast.walk(node)


def _may_change(node: ast.AST) -> bool:
    return isinstance(
        node,
        ast.Compare | ast.BoolOp | ast.BinOp | ast.UnaryOp | ast.Constant | ast.If | ast.IfExp | ast.While,
    )


def _changed(node: ast.AST) -> ast.AST | None:
    """The node that replaces `node` to make the mistake. Where it is simpler, `node` itself is changed."""
    match node:
        case ast.Compare(ops=[op, *rest]):
            node.ops = [TURNED[type(op)](), *rest]
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BinOp(op=ast.Add() | ast.Sub() as op, left=left, right=right) if not (
            _text(left) or _text(right)
        ):
            node.op = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant() if _number(node):
            node.value += 1
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(
            test, ast.Name | ast.Call | ast.Attribute
        ):
            node.test = ast.UnaryOp(ast.Not(), test)
        case _:
            return None
    return node


def _number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    )


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, by: ast.AST):
        self._node, self._by = node, by

    def visit(self, node: ast.AST) -> ast.AST:
        return self._by if node is self._node else super().visit(node)


def path_of(module: str) -> Path:
    """The file of this module, in the project's folder or in one of its packages."""
    found = [
        path
        for path in (*ROOT.glob(f"{module}.py"), *ROOT.glob(f"*/{module}.py"))
        if path.parent != ROOT / "tests"
    ]
    return found[0].relative_to(ROOT) if found else sys.exit(f"there is no module {module}")


def tests_of(path: Path) -> list[str]:
    """The test files that run against mistakes in `path`, relative to the project's folder."""
    module = ".".join(path.with_suffix("").parts)
    files = sorted((ROOT / "tests").glob("test_*.py"))
    own = [file for file in files if file.stem == f"test_{path.stem}"]
    also = ALSO.get(path.stem, [])
    own = own or [file for file in files if _imports(file, module) and not also]
    return [f"tests/{name}" for name in dict.fromkeys([*(file.name for file in own), *also])]


def _imports(file: Path, module: str) -> bool:
    package, _, name = module.rpartition(".")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if (
                module in names
                if isinstance(node, ast.Import)
                else node.module == module or (node.module == package and name in names)
            ):
                return True
    return False


class Copy:
    """A copy of the tree, in which one mistake after the other is made."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(
            ROOT, folder, ignore=shutil.ignore_patterns(".*", "data", "node_modules", "__pycache__")
        )
        self._moment = int(time.time())

    def passes(self, tests: list[str], seconds: float | None = None) -> bool:
        options = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:randomly", "--hypothesis-seed=1"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = {**os.environ, "PYTHONPATH": ""}
        try:
            ended = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return ended.returncode == 0

    def notices(self, mistake: Mistake, tests: list[str], seconds: float) -> bool:
        path = self.folder / mistake.path
        text = path.read_text()
        try:
            self._write(path, mistake.source)
            return not self.passes(tests, seconds)
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        self._moment += 2  # Python takes a compiled file for current by its source's time in seconds
        os.utime(path, (self._moment, self._moment))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="by its name, like search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20, help="mistakes for each module")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder, str(number))))
        results = [_module(path_of(name), options, copies) for name in options.modules]
    noticed, made = (sum(column) for column in zip(*results, strict=True))
    print(f"{noticed} of {made} noticed ({noticed / made:.0%})")


def _module(path: Path, options: argparse.Namespace, copies: "queue.SimpleQueue[Copy]") -> tuple[int, int]:
    """How many mistakes in this module were noticed, and how many were made."""
    tests = tests_of(path)
    tree, began = copies.get(), time.monotonic()
    if not tree.passes(tests):
        sys.exit(f"the tests of {path} fail without a mistake: {' '.join(tests)}")
    seconds = PATIENCE * (time.monotonic() - began) + 10
    copies.put(tree)
    chosen = mistakes(path, options.count, options.seed)

    def notices(mistake: Mistake) -> bool:
        tree = copies.get()
        try:
            noticed = tree.notices(mistake, tests, seconds)
        finally:
            copies.put(tree)
        if not noticed:
            place = f"{mistake.path}:{mistake.line}"
            print(f"lived: {place}  {_short(mistake.before)}  ->  {_short(mistake.after)}", flush=True)
        return noticed

    with ThreadPoolExecutor(options.jobs) as threads:
        noticed = sum(threads.map(notices, chosen))
    print(f"{path}: {noticed} of {len(chosen)} noticed by {' '.join(tests)}", flush=True)
    return noticed, len(chosen)


def _short(code: str) -> str:
    return " ".join(code.partition("\n")[0].split())[:90]


if __name__ == "__main__":
    main()
