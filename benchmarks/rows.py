"""What `make train` learns of lists: which lines name their entries (`rules/rows.py`), from the lists that
labels name.

A logistic regression over ranges of the measures, with an L2 penalty, fitted by accelerated gradient descent.
Each range has a weight that all kinds of lists share, and a part of each kind, which counts `OWN` as much.
A label names the first entries; what is below the last one that it names may be entries too, and is left out.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy

from benchmarks import labelled
from benchmarks.judge import has_named, is_alike, is_named, parts_of
from engines.lines import Line
from rules import rows
from rules.layout import Layout
from rules.recorder import SCREENS
from rules.wordmarks import folded

RANGES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)  # where ranges of a measure end
PENALTY, OWN, STEPS = 0.003, 0.25, 200
LEAST_LINES = 5  # a screen of so many lines or fewer counts the most for each
LEAST_NAME = 2  # letters and digits of a text that is a name in a label

Array = numpy.ndarray[Any, Any]


class Lists(NamedTuple):
    """The lists, each with its lines; and a row for each line of all: its measures, whether a label names it,
    whether the label says so, its list, and how much it counts.
    """

    cases: list[labelled.Case]
    lines: list[list[Line]]
    names: list[str]
    measures: Array
    right: Array
    known: Array
    of: Array
    worth: Array


def write(cases: Sequence[labelled.Case], folds: Array, seed: int) -> None:
    """Learn, print the figures and write `rows.json`. `folds` has the fold of each case."""
    chosen = [(case, fold) for case, fold in zip(cases, folds, strict=True) if _label(case)]
    lists = _table([case for case, _ in chosen])
    fold = numpy.array([fold for _, fold in chosen])
    judging = numpy.array([case.judges for case in lists.cases])
    everything = numpy.ones(len(fold), bool)
    held = {
        number: answer
        for each in numpy.unique(fold)
        for number, answer in _right(lists, _learned(lists, fold != each), fold == each).items()
    }
    figures = {
        "lines": len(lists.right),
        "lists right, cross-validated by app": _counted(lists, held),
        "lists right, learned from the tuning half, on the judging half": _counted(
            lists, _right(lists, _learned(lists, ~judging), judging)
        ),
    }
    print(json.dumps(figures, indent=1))
    _write(rows.WEIGHTS, _learned(lists, everything), seed, figures)
    _write(labelled.HELD_OUT / rows.WEIGHTS.name, _learned(lists, ~judging), seed, {})


def _write(path: Path, weights: rows.Weights, seed: int, figures: dict[str, Any]) -> None:
    found = msgspec.structs.replace(weights, seed=seed, figures=figures)
    path.write_bytes(msgspec.json.encode(found) + b"\n")


def _label(case: labelled.Case) -> str:
    """The entries of a case's list as its label has them, "" where it has none."""
    found = case.record.get("fields", {}).get("entries", "")
    kinds = SCREENS.get(case.record.get("type", ""), ("",))
    return found if isinstance(found, str) and kinds[0] in rows.KINDS else ""


def _kind(case: labelled.Case) -> str:
    return SCREENS[case.record["type"]][0]


def _table(cases: list[labelled.Case]) -> Lists:
    measured, right, known, of, worth, lines = [], [], [], [], [], []
    for number, case in enumerate(cases):
        found = rows.measures(Layout(case.page))
        hits = _hits(_label(case), [rows.name_of(line) for line, _ in found])
        lowest = max((found[hit][0].bottom for hit in hits), default=0)
        lines.append([line for line, _ in found])
        for place, (line, one) in enumerate(found):
            measured.append(one)
            right.append(place in hits)
            known.append(place in hits or line.top <= lowest)
            of.append(number)
            worth.append(max(LEAST_LINES, len(found)) ** -0.5)
    names = sorted(measured[0])
    table = numpy.array([[one[name] for name in names] for one in measured])
    return Lists(cases, lines, names, table, *map(numpy.array, (numpy.array(right, float), known, of, worth)))


def _hits(label: str, names: Sequence[str]) -> set[int]:
    """Which of the names are those of a label's entries. A message or a value behind a name is none, unless
    the name cannot be found.
    """
    found: set[int] = set()
    for part in parts_of(label):
        head = part.split(": ")[0]
        like = [
            at for at, name in enumerate(names) if len(folded(name)) >= LEAST_NAME and is_named(part, name)
        ]
        like = [at for at in like if is_named(head, names[at])] or like
        wanted = folded(part)
        first = [
            at
            for at in like
            if wanted.startswith(folded(names[at]))
            or folded(names[at]).startswith(wanted)
            or is_alike(part, names[at])
        ]
        found.update(first or like)
    return found


def _right(lists: Lists, weights: rows.Weights, judged: Array) -> dict[int, bool]:
    """Of the judged lists, by number, whether each has what its label names."""
    found = {}
    for number in numpy.flatnonzero(judged):
        kind, own = _kind(lists.cases[number]), numpy.flatnonzero(lists.of == number)
        counts = numpy.concatenate([weights.counts[kind][name] for name in lists.names])
        sums = ranged(lists.measures[own], [weights.ends[name] for name in lists.names]) @ counts
        chances = (1 / (1 + numpy.exp(-sums - weights.start[kind]))).tolist()
        chosen = rows.chosen(list(zip(chances, lists.lines[number], strict=True))).lines
        names = [rows.name_of(line) for line in chosen]
        found[int(number)] = bool(names) and has_named(_label(lists.cases[number]), names)
    return found


def _counted(lists: Lists, right: dict[int, bool]) -> dict[str, str]:
    """How many lists are right of all, by kind."""
    all_, good = Counter(["all"] * len(right)), Counter(all=sum(right.values()))
    all_.update(_kind(lists.cases[number]) for number in right)
    good.update(_kind(lists.cases[number]) for number, is_right in right.items() if is_right)
    return {kind: f"{good[kind]} of {count}" for kind, count in all_.items()}


def _learned(lists: Lists, chosen: Array) -> rows.Weights:
    """Weights from the chosen lists."""
    learned = chosen[lists.of] & lists.known
    found = [ends(column) for column in lists.measures[learned].T]
    kinds = numpy.array([rows.KINDS.index(_kind(case)) for case in lists.cases])[lists.of][learned]
    weights, starts = _fitted(
        ranged(lists.measures[learned], found), kinds, lists.right[learned], lists.worth[learned]
    )
    places = numpy.cumsum([len(inner) + 1 for inner in found])[:-1]
    return rows.Weights(
        dict(zip(lists.names, found, strict=True)),
        {kind: _short(start) for kind, start in zip(("", *rows.KINDS), starts, strict=True)},
        {
            kind: {
                name: [_short(one) for one in part]
                for name, part in zip(lists.names, numpy.split(counts, places), strict=True)
            }
            for kind, counts in zip(("", *rows.KINDS), weights, strict=True)
        },
        0,
        {},
    )


def _short(number: float) -> float:
    return round(float(number), 3)


def ends(column: Array, quantiles: Sequence[float] = RANGES, most: int = len(RANGES)) -> list[float]:
    """Where the ranges of a measure end, given its values: between them, or at quantiles where there are more
    than `most`.
    """
    values = numpy.unique(column)
    if len(values) <= most:
        middles: list[float] = ((values[1:] + values[:-1]) / 2).tolist()
        return middles
    return [float(f"{end:.4g}") for end in numpy.unique(numpy.quantile(column, quantiles))]


def ranged(table: Array, bounds: Sequence[Sequence[float]]) -> Array:
    """A column for each range of each measure: 1 where a value is in it."""
    return numpy.hstack(
        [
            numpy.eye(len(inner) + 1)[numpy.searchsorted(inner, column, side="right")]
            for column, inner in zip(table.T, bounds, strict=True)
        ]
    )


def _fitted(inputs: Array, kinds: Array, right: Array, worth: Array) -> tuple[Array, Array]:
    """Nesterov's accelerated gradient descent: weights and starts, first those that all kinds share, then
    the whole ones of each kind.
    """
    worth = worth / worth.sum()
    mean = worth @ inputs
    inputs = inputs - mean
    groups = [numpy.flatnonzero(kinds == number) for number in range(len(rows.KINDS))]
    parts = [inputs[group] for group in groups]
    curvature = 0.25 * (1 + OWN**2) * numpy.linalg.norm(inputs * numpy.sqrt(worth)[:, None], 2) ** 2
    curvature += PENALTY + 0.25
    weights = ahead = numpy.zeros((len(groups) + 1, inputs.shape[1]))
    starts = starts_ahead = numpy.zeros(len(groups) + 1)
    speed = 1.0
    for _ in range(STEPS):
        steps, starting = PENALTY * ahead, PENALTY * starts_ahead
        starting[0] = 0
        for number, (group, part) in enumerate(zip(groups, parts, strict=True), 1):
            sums = part @ (ahead[0] + OWN * ahead[number]) + starts_ahead[0] + OWN * starts_ahead[number]
            wrong = (1 / (1 + numpy.exp(-sums)) - right[group]) * worth[group]
            for place, share in ((0, 1.0), (number, OWN)):
                steps[place] += share * (wrong @ part)
                starting[place] += share * wrong.sum()
        stepped, started = ahead - steps / curvature, starts_ahead - starting / curvature
        faster = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        drift = (speed - 1) / faster
        ahead, starts_ahead = stepped + drift * (stepped - weights), started + drift * (started - starts)
        weights, starts, speed = stepped, started, faster
    whole = numpy.vstack((weights[:1], weights[0] + OWN * weights[1:]))
    return whole, numpy.concatenate((starts[:1], starts[0] + OWN * starts[1:])) - whole @ mean
