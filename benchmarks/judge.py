"""`make judge`: how well the embedded analyser understands screenshots that it was not made for.

It judges the labelled screenshots of CORPUS (`labelled.py`) and made-up screens (`drawn.py`): category and
mean recall of the categories, the app's name, intent, how many titles and summaries share half of their words
with a person's, and the records of the labelled pictures; then drawn records, agenda entries and dates
(`recorded.py`, `dates.py`), and descriptions (`described.py`).

The judging half of the apps is counted and never opened: its totals are printed, its texts and errors never.
`--errors` lists those of the tuning half.
"""

import argparse
import contextlib
import hashlib
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import msgspec
from rapidfuzz import fuzz

from benchmarks import dates, described, drawn, labelled, recorded, sheet_counts
from benchmarks.labelled import Case, Label
from benchmarks.sheet_layouts import JUDGING
from engines.findings import CATEGORIES, Findings, kind_in
from engines.records import TYPES, Field, Record
from rules import wordmarks
from rules.embedded import LocalModel
from rules.judge import judge
from rules.prices import Money
from rules.wordmarks import folded

BEGINNING = 20  # letters of a long text, of which a record has the first sentence
CUT = ("..", "…")  # how a text ends that had no room
LEAST_CUT = 6  # letters from which on a text may be cut or misread
MISREAD = 90  # of 100: how alike texts are of which a letter in ten was misread
MOST_MORE = 3  # times as many entries as a label, which names those that a person sees first

_DAY = re.compile(r"\d{4}-\d\d-\d\d")  # with which days and times begin

Judged = Sequence[tuple[Case, Findings]]


def main() -> None:
    """Judge and print."""
    options = _arguments()
    labelled.use_held_out()
    senses = labelled.Senses(options.cache)
    with contextlib.closing(LocalModel(ocr_model=labelled.READER, language="en")) as model:
        cases = labelled.cases(options.corpus, options.cache)
        made_up = [_drawn(screen, model, options.cache) for screen in drawn.screens()]
        for case in [*cases, *made_up]:
            senses.of(case.page)  # made before anything is timed
        began = time.perf_counter()
        found = [
            (case, judge(case.page, analyser="judged", language=case.language, sense=senses))
            for case in [*cases, *made_up]
        ]
        each = (time.perf_counter() - began) / len(found)
        report(
            "tuning half", [one for one in found[: len(cases)] if not one[0].judges], errors=options.errors
        )
        report("judging half", [one for one in found[: len(cases)] if one[0].judges], errors=False)
        report("made up", found[len(cases) :], errors=options.errors)
        print(f"\nrules: {each * 1000:.1f} ms a screenshot")
        if any(case.label for case in cases):
            _describe([case for case in cases if case.label], senses)
        recorded.report(lambda content: labelled.read(model, content, options.cache))
        dates.report(lambda content: labelled.read(model, content, options.cache))
        print("\n== records on drawn sheets (judging layouts: counts only)")
        sheet_counts.report(JUDGING)


def report(name: str, judged: Judged, *, errors: bool) -> None:
    """Print the counts of a group, with `errors` also what is wrong."""
    if not judged:
        return
    right = [found.content_category in case.categories for case, found in judged]
    of = {
        category: [
            one for (case, _), one in zip(judged, right, strict=True) if case.categories[0] == category
        ]
        for category in CATEGORIES
    }
    recalls = {category: sum(each) / len(each) for category, each in of.items() if each}
    apps = Counter(_app(case, found) for case, found in judged)
    intents = [found.intent in case.label.intents for case, found in judged if case.label]
    print(f"\n== {name}: {len(judged)} screens of {len({case.app for case, _ in judged})} apps")
    print(f"category {_share(right)}, mean recall {statistics.fmean(recalls.values()):.2f}")
    print(", ".join(f"{category} {_share(of[category])}" for category in recalls))
    print(
        f"app: right {apps['right']}, wrong {apps['wrong']}, missing {apps['missing']} of those that show it"
    )
    apps = Counter(_app(case, found) for case, found in _together(judged))
    print(f"app, all in one library: right {apps['right']}, wrong {apps['wrong']}, missing {apps['missing']}")
    print(f"intent {_share(intents)}, title {_share(_titles(judged))}, summary {_share(_summaries(judged))}")
    print(f"records: {_records(judged)}")
    for (case, found), is_right in zip(judged, right, strict=True) if errors else ():
        if not is_right:
            print(f"  {case.name}: {'/'.join(case.categories)} -> {found.content_category} {found.raw}")
        if _app(case, found) in ("wrong", "missing"):
            print(f"  {case.name}: app {case.app!r} -> {found.app_name!r}")
        if _titles([(case, found)]) == [False]:
            print(f"  {case.name}: title {(case.title or case.label)!r} -> {found.title!r}")


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right)} of {len(right)} ({sum(right) / max(1, len(right)):.2f})"


def _app(case: Case, found: Findings) -> str:
    if not found.app_name:
        return "missing" if case.shows_app else "none"
    return "right" if case.is_named(found.app_name) else "wrong"


def _together(judged: Judged) -> Judged:
    """The findings with the names that other screenshots have made sure."""
    having: dict[str, list[tuple[float, str]]] = {}
    for case, found in judged:
        for mark in found.wordmarks:
            having.setdefault(folded(mark.name), []).append((mark.chance, case.name))

    def named_by_others(case: Case, found: Findings) -> str:
        def others(name: str) -> list[float]:
            return sorted((chance for chance, of in having[name] if of != case.name), reverse=True)

        return wordmarks.together(found.wordmarks, others, kind_in(found.raw))

    return [
        (case, msgspec.structs.replace(found, app_name=found.app_name or named_by_others(case, found)))
        for case, found in judged
    ]


def _titles(judged: Judged) -> list[bool]:
    """Whether a title shares half of the words with a person's, or has one of the words that a label asks
    for.
    """
    return [
        any(word.casefold() in found.title.casefold() for word in case.label.title)
        if case.label
        else _alike(case.title, found.title)
        for case, found in judged
        if case.title or (case.label and case.label.title)
    ]


def _summaries(judged: Judged) -> list[bool]:
    return [_alike(case.summary, found.summary) for case, found in judged if case.summary]


def _alike(wanted: str, found: str) -> bool:
    words = recorded.words(wanted)
    return 2 * len(words & recorded.words(found)) >= len(words)


def _records(judged: Judged) -> str:
    """How many types are right, how many screens on which a person sees no record get none, and of the fields
    of the right types how many were found and are right; labels have the main fields only, so that others are
    not counted.
    """
    types, fields = Counter[str](), Counter[str]()
    without = [not found.records for case, found in judged if case.recorded and not case.record]
    for case, found in judged:
        if kind := str(case.record.get("type", "")):
            record = next((one for one in found.records if one.type == kind), None)
            types["labelled"] += 1
            types["found"] += bool(found.records)
            types["right"] += record is not None
            fields.update(_fields(case, record))
    return (
        f"types {recorded.Score(types['labelled'], types['found'], types['right'])};"
        f" none where a person has none {_share(without)};"
        f" their fields {recorded.Score(fields['labelled'], fields['found'], fields['right'])}"
    )


def _fields(case: Case, record: Record | None) -> Counter[str]:
    if record is None:
        return Counter()
    known = TYPES[record.type].fields
    labels = {name: label for name, label in case.record.get("fields", {}).items() if name in known}
    mine = {field.name: field for field in record.fields}
    # What a post says is its headline for one person and its text for the next.
    other = {name: _SAID.get(name, "") for name in labels if _SAID.get(name) not in labels}
    found = {name: field for name in labels if (field := mine.get(name) or mine.get(other.get(name, "")))}
    return Counter(
        labelled=len(labels),
        found=len(found),
        right=sum(_is_right(str(labels[name]), field) for name, field in found.items()),
    )


_SAID = {"headline": "text", "text": "headline"}


def _is_right(label: str, field: Field) -> bool:
    """Whether a person would call a field right. Labels name a list's first entries, end long texts where
    they like, and write days and amounts as the screen does; a misread letter is no mistake of the record.
    """
    value, said, written = field.value, folded(label), folded(field.text)
    if isinstance(value, list):
        return has_named(label, [next(iter(entry.values())) for entry in value])
    if isinstance(value, dict):
        price = Money(label).amount(label)
        return said == written or (price is not None and Decimal(price.value) == Decimal(value["value"]))
    is_same = bool(said) and (said == written or (said in written and _DAY.match(value) is not None))
    return is_same or recorded.is_equal(value, label) or is_alike(label, value)


def has_named(label: str, names: list[str]) -> bool:
    """Whether a list has what its label names, and at most some more."""
    parts = parts_of(label)
    found = sum(any(is_named(part, name) for name in names) for part in parts)
    return found >= recorded.ALIKE * len(parts) and len(names) <= MOST_MORE * len(parts)


def parts_of(label: str) -> list[str]:
    """The entries that a label names."""
    return label.split("; " if "; " in label else ", ")


def is_named(part: str, name: str) -> bool:
    """Whether an entry of a label, which may have its value or message too, is of this name."""
    wanted, said = folded(part), folded(name)
    if not said:
        return False
    is_cut = name.endswith(CUT) and len(said) >= LEAST_CUT
    return (
        wanted.startswith(said)
        or wanted.endswith(said)
        or (said in wanted and len(wanted) < 2 * len(said))
        or (wanted in said and len(said) < 2 * len(wanted))
        or (is_cut and wanted.startswith(said))
        or is_alike(part, name)
    )


def is_alike(label: str, value: str) -> bool:
    """Whether a text is the beginning of its label or the other way round, or has hardly a letter misread."""
    wanted, said = sorted((folded(label), folded(value)), key=len)
    if len(wanted) >= BEGINNING and said.startswith(wanted):
        return True
    return len(wanted) >= LEAST_CUT and fuzz.ratio(wanted, said) >= MISREAD


def _describe(cases: list[Case], senses: labelled.Senses) -> None:
    """What is found by descriptions. The phrases that are quoted are a line of each screenshot."""
    phrases = []
    for case in cases:
        lines = [line.text for line in case.page.lines if 8 <= len(line.text) <= 40 and '"' not in line.text]
        phrases += sorted(lines, key=lambda text: hashlib.sha256(text.encode()).digest())[:1]
    with tempfile.TemporaryDirectory(prefix="snaplore-judge-") as folder:
        described.report(
            {case.name: case.path.read_bytes() for case in cases},
            {case.name: case.page for case in cases},
            {query: [case.name] for case in cases if case.label for query in case.label.queries},
            phrases,
            Path(folder),
            shown=False,
        )


def _drawn(screen: drawn.Screen, model: LocalModel, cache: Path) -> Case:
    label = Label(
        screen.categories[0], list(screen.intents), screen.app, title=list(screen.title)
    )  # fmt: skip
    page = labelled.read(model, drawn.draw(screen), cache)
    chinese = sum(any("\u2e80" < letter < "\ufff0" for letter in line.text) for line in page.lines)
    locale = "zh" if chinese * 3 > len(page.lines) else "en"
    return Case(
        screen.name,
        Path(),
        screen.app,
        list(screen.categories),
        locale,
        bool(screen.app),
        label=label,
        page=page,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judge", description="Judge what the embedded analyser understands."
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        default=labelled.folders(),
        help="folders (default: those in CORPUS)",
    )
    parser.add_argument(
        "--cache", type=Path, default=labelled.CACHE, help="for what was read (default: %(default)s)"
    )
    parser.add_argument("--errors", action="store_true", help="list the errors of the tuning half")
    return parser.parse_args()


if __name__ == "__main__":
    main()
