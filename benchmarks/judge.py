"""`make judge`: how well the embedded analyser understands screenshots that it was not made for.

It reads the developers' pictures, which are not part of this project (a folder, given as CORPUS), against
`labels.json` (or one in that folder), and made-up screens (`drawn.py`). What was read is cached outside of
the project, so only the first run is slow. Half of the pictures are held out by a hash of their names: only
their totals are printed, so that nobody tunes to them by looking. `--held-out` lists their errors too, for
after the tuning.

With a folder, the screenshots are also searched by descriptions, over the API of a real service
(`described.py`).

`--against REVISION` also runs the rules of an earlier revision, prints its totals, and the titles and
summaries of both side by side.
"""

import argparse
import contextlib
import csv
import hashlib
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks import dates, described, drawn
from engines.findings import CATEGORIES, Findings
from engines.lines import Page
from rules import sensitive
from rules.embedded import LocalModel
from rules.judge import judge
from settings import ROOT

LABELS = Path(__file__).with_name("labels.json")
OLD_RULES = """
import sys, msgspec
try:
    from rules.judge import judge
except ImportError:  # a version whose rules stood among the engines
    from engines.rules import judge
from engines.lines import Page
pages = msgspec.json.decode(sys.stdin.buffer.read(), type=list[tuple[str, Page]])
found = [judge(page, analyser="judged", language=language) for language, page in pages]
sys.stdout.buffer.write(msgspec.json.encode(found))
"""


class Label(msgspec.Struct):
    """What is right for a picture. `app` is visible on it; those of `also` are right too, but not
    expected.
    """

    category: str
    intents: list[str]
    app: str = ""
    also: list[str] = []
    title: list[str] = []
    queries: list[str] = []
    categories: list[str] = []


class Case(NamedTuple):
    name: str
    group: str  # "tuning", "held out" or "drawn"
    label: Label
    page: Page

    @property
    def language(self) -> str:
        """The language of the summary: that of most lines."""
        return (
            "zh" if sum(_chinese(line.text) for line in self.page.lines) * 3 > len(self.page.lines) else "en"
        )


def main() -> None:
    options = _arguments()
    cases = _cases(options.corpus, options.cache)
    began = time.perf_counter()
    new = [judge(case.page, analyser="judged", language=case.language) for case in cases]
    each = (time.perf_counter() - began) / max(1, len(cases))
    old = _old(options.against, cases) if options.against else []
    for group in ("tuning", "held out", "drawn, tuning", "drawn, held out"):
        chosen = [number for number, case in enumerate(cases) if case.group == group]
        if not chosen:
            continue
        shown = options.held_out or "held out" not in group
        print(f"\n== {group}: {len(chosen)} screens")
        if old:
            _report([(cases[number], old[number]) for number in chosen], f"{options.against}: ", errors=False)
        _report([(cases[number], new[number]) for number in chosen], "", errors=shown)
    print(f"\nrules: {each * 1000:.1f} ms a screenshot")
    if options.read_again:
        _time(cases, options.corpus)
    if options.corpus is not None:
        _describe(cases, options.corpus, shown=options.held_out)
    if options.pairs:
        _pairs(cases, old or new, new, options.pairs, options.held_out)
    with contextlib.closing(LocalModel(ocr_model="small", language="en")) as model:
        dates.report(lambda content: _read(model, content, options.cache), held_out=options.held_out)


def _report(pairs: list[tuple[Case, Findings]], prefix: str, *, errors: bool) -> None:
    right = [found.content_category in _categories(case.label) for case, found in pairs]
    recalls = []
    for category in CATEGORIES:
        of = [
            is_right
            for (case, _), is_right in zip(pairs, right, strict=True)
            if case.label.category == category
        ]
        if of:
            recalls.append(sum(of) / len(of))
    apps: Counter[str] = Counter(_app(case.label, found) for case, found in pairs)
    titled = [_titled(case.label, found) for case, found in pairs if case.label.title]
    intents = [found.intent in case.label.intents for case, found in pairs]
    print(
        f"{prefix}category {sum(right)}/{len(right)} = {sum(right) / len(right):.2f}, "
        f"macro recall {statistics.fmean(recalls):.2f}, "
        f"app right {apps['right']} wrong {apps['wrong']} empty {apps['empty']} none {apps['none']}, "
        f"intent {sum(intents) / len(intents):.2f}, title {sum(titled)}/{len(titled)}"
    )
    counted = Counter(found.intent for _, found in pairs)
    print(f"{prefix}intents: {', '.join(f'{name} {number}' for name, number in counted.most_common())}")
    kinds = Counter(entity.type for _, found in pairs for entity in found.entities)
    print(f"{prefix}entities: {', '.join(f'{name} {number}' for name, number in kinds.most_common())}")
    if not errors:
        return
    for case, found in pairs:
        notes = []
        if found.content_category not in _categories(case.label):
            notes.append(f"{'/'.join(_categories(case.label))} -> {found.content_category} {found.raw}")
        if _app(case.label, found) in ("wrong", "empty"):
            notes.append(f"app {case.label.app!r} -> {found.app_name!r}")
        if found.intent not in case.label.intents:
            notes.append(f"intent {found.intent}")
        if case.label.title and not _titled(case.label, found):
            notes.append(f"title {found.title!r}")
        if notes:
            print(f"  {case.name}: {'; '.join(notes)}")


def _pairs(cases: list[Case], old: list[Findings], new: list[Findings], count: int, held_out: bool) -> None:
    """Titles and summaries side by side; `count` of them, the same in every run."""
    chosen = sorted(range(len(cases)), key=lambda number: _digest(cases[number].name + "pair"))
    listed = [number for number in chosen if held_out or "held out" not in cases[number].group]
    for number in listed[:count]:
        print(f"\n-- {cases[number].name} ({cases[number].group})")
        for name, found in (("old", old[number]), ("new", new[number])):
            entities = " · ".join(f"{entity.type} {entity.value}" for entity in found.entities[:8])
            print(f" {name}: [{found.content_category}, {found.intent}, {found.app_name}] {found.title}")
            print(f"      {found.summary}")
            print(f"      {entities}")


def _time(cases: list[Case], corpus: Path | None) -> None:
    """The time of a whole analysis on one thread: reading text and codes, what is sensitive, the rules."""
    pictures = [
        (corpus / "images" / case.name).read_bytes() for case in cases if corpus and "drawn" not in case.group
    ]
    walls = []
    model = LocalModel(ocr_model="small", language="en")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = time.process_time()
    try:
        for content in pictures:
            began = time.perf_counter()
            page, engine = model.read(io.BytesIO(content))
            sensitive.kinds("\n".join(line.text for line in page.lines))
            model.judge(page, engine)
            walls.append(time.perf_counter() - began)
    finally:
        model.close()  # the child's time is known when it has ended
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + time.process_time() - own
    print(
        f"a whole analysis: {spent / max(1, len(pictures)):.2f} s of processor time a screenshot, with the"
        f" start of the reader; {statistics.median(walls):.2f} s at the median, {max(walls):.2f} s at most;"
        f" reader {after.ru_maxrss / 1024:.0f} MB at most; load {os.getloadavg()[0]:.1f}"
    )


def _describe(cases: list[Case], corpus: Path, *, shown: bool) -> None:
    """What is found by descriptions. The phrases that are quoted are a line of each screenshot."""
    cases = [case for case in cases if "drawn" not in case.group]
    phrases = []
    for case in cases:
        lines = [line.text for line in case.page.lines if 8 <= len(line.text) <= 40 and '"' not in line.text]
        phrases += sorted(lines, key=_digest)[:1]
    with tempfile.TemporaryDirectory(prefix="snaplore-judge-") as folder:
        described.report(
            {case.name: (corpus / "images" / case.name).read_bytes() for case in cases},
            {case.name: case.page for case in cases},
            {query: [case.name] for case in cases for query in case.label.queries},
            phrases,
            Path(folder),
            shown=shown,
        )


def _categories(label: Label) -> list[str]:
    return [label.category, *label.categories]


def _app(label: Label, found: Findings) -> str:
    name = found.app_name.casefold()
    if not name:
        return "empty" if label.app else "none"
    return "right" if name in {app.casefold() for app in (label.app, *label.also)} else "wrong"


def _titled(label: Label, found: Findings) -> bool:
    return any(word.casefold() in found.title.casefold() for word in label.title)


# ------------------------------------------------------------------------------------------- the screenshots


def _cases(corpus: Path | None, cache: Path) -> list[Case]:
    cases = []
    cache.mkdir(parents=True, exist_ok=True)
    model = LocalModel(ocr_model="small", language="en")
    try:
        if corpus is not None:
            own = corpus / "labels.json"
            stored = (own if own.exists() else LABELS).read_bytes()
            labels = msgspec.json.decode(stored, type=dict[str, Label])
            names = [row["file"] for row in csv.DictReader((corpus / "manifest.csv").open())]
            for name in names:
                if name in labels:
                    content = (corpus / "images" / name).read_bytes()
                    group = "held out" if _held_out(name) else "tuning"
                    cases.append(Case(name, group, labels[name], _read(model, content, cache)))
        for screen in drawn.screens():
            label = Label(
                screen.categories[0], list(screen.intents), screen.app,
                title=list(screen.title), categories=list(screen.categories[1:]),
            )  # fmt: skip
            group = "drawn, held out" if _held_out(screen.name) else "drawn, tuning"
            cases.append(Case(screen.name, group, label, _read(model, drawn.draw(screen), cache)))
    finally:
        model.close()
    return cases


def _read(model: LocalModel, content: bytes, cache: Path) -> Page:
    stored = cache / f"{hashlib.sha256(content).hexdigest()}.json"
    if stored.exists():
        return msgspec.json.decode(stored.read_bytes(), type=Page)
    page, _ = model.read(io.BytesIO(content))
    stored.write_bytes(msgspec.json.encode(page))
    return page


def _old(revision: str, cases: Iterable[Case]) -> list[Findings]:
    """What the rules of an earlier revision find."""
    with tempfile.TemporaryDirectory(prefix="snaplore-judge-") as folder:
        archive = subprocess.run(
            ["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        pages = msgspec.json.encode([(case.language, case.page) for case in cases])
        answer = subprocess.run(
            [sys.executable, "-c", OLD_RULES], cwd=folder, input=pages, stdout=subprocess.PIPE, check=True
        ).stdout
    return msgspec.json.decode(answer, type=list[Findings])


def _held_out(name: str) -> bool:
    return _digest(name)[0] % 2 == 1


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _chinese(text: str) -> bool:
    return any("\u2e80" < letter < "\ufff0" for letter in text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judge", description="Judge what the embedded analyser understands."
    )
    folder = os.environ.get("CORPUS")
    parser.add_argument(
        "--corpus",
        type=Path,
        default=Path(folder) if folder else None,
        help="folder with manifest.csv and images (default: the variable CORPUS), if any",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "snaplore-judge",
        help="folder for the texts that were read (default: %(default)s)",
    )
    parser.add_argument("--against", metavar="REVISION", help="also judge the rules of this git revision")
    parser.add_argument(
        "--pairs", type=int, default=0, metavar="COUNT", help="print titles and summaries of COUNT screens"
    )
    parser.add_argument(
        "--read-again", action="store_true", help="also read the folder's screenshots again, and time it"
    )
    parser.add_argument("--held-out", action="store_true", help="list the errors of the held-out half too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
