"""What `make train` learns of the names of apps: which text of a screen is one (`rules/wordmarks.py`), and
what it counts that other screens have it, too.

A logistic regression over ranges of the measures, with an L2 penalty, fitted by accelerated gradient descent;
and a second one over the chances of names that several screens have, which come from weights that did not
know the app.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy

from benchmarks import labelled
from benchmarks.rows import RANGES, ends, ranged
from rules import wordmarks
from rules.layout import Layout

NAME_RANGES = (0.02, *RANGES)  # where ranges of a measure end that has more values than kinds of screens
MOST_VALUES = 24
PENALTY, JOINT_PENALTY, STEPS = 0.001, 0.00001, 300
MOSTLY = 0.6  # of the letters of a name, which a text must have to be taken for it

Array = numpy.ndarray[Any, Any]


class Names(NamedTuple):
    """A row for each text that may be an app's name: its measures, the text, whether it is the name, and
    which screenshot it is of; and for each screenshot its kind and its fold.
    """

    columns: list[str]
    measures: Array
    texts: list[str]
    right: Array
    case: Array
    kinds: Sequence[str]
    fold: Array


def write(cases: Sequence[labelled.Case], kinds: Sequence[str], folds: Array, seed: int) -> None:
    """Learn, print the figures and write `wordmarks.json`. `kinds` and `folds` have those of each case."""
    names = _names(cases, kinds, folds)
    everything = numpy.ones(len(cases), bool)
    tuning = ~numpy.array([case.judges for case in cases])
    chances = _chances_elsewhere(names, everything)
    right, wrong = _named(names, chances)
    figures = {
        "pictures": len(cases),
        "texts": len(names.texts),
        "named right and wrong by itself, cross-validated by app": f"{right}, {wrong}",
    }
    print(json.dumps(figures, indent=1))
    _write(wordmarks.WEIGHTS, names, everything, chances, (seed, figures))
    elsewhere = _chances_elsewhere(names, tuning)
    _write(labelled.HELD_OUT / wordmarks.WEIGHTS.name, names, tuning, elsewhere, (seed, {}))


def _names(cases: Sequence[labelled.Case], kinds: Sequence[str], folds: Array) -> Names:
    measured: list[dict[str, float]] = []
    texts, right, of = [], [], []
    for number, (case, kind) in enumerate(zip(cases, kinds, strict=True)):
        for text, one in wordmarks.measures(Layout(case.page), kind):
            measured.append(one)
            texts.append(wordmarks.folded(text))
            right.append(case.is_named(text, MOSTLY))
            of.append(number)
    columns = list(measured[0])
    table = numpy.array([[one[name] for name in columns] for one in measured])
    return Names(columns, table, texts, numpy.array(right, float), numpy.array(of), kinds, folds)


def _chances_elsewhere(names: Names, learned: Array) -> Array:
    """The chance of each text of the `learned` screenshots, by weights that did not know the app."""
    chances = numpy.zeros(len(names.texts))
    for number in numpy.unique(names.fold):
        held = (learned & (names.fold == number))[names.case]
        bounds, counts, start = _learned(names, (learned & (names.fold != number))[names.case])
        chances[held] = _chance(ranged(names.measures[held], bounds) @ counts + start)
    return chances


def _learned(names: Names, rows: Array) -> tuple[list[list[float]], Array, float]:
    """Where the ranges of each measure end, what each range counts, and the start."""
    bounds = [ends(column, NAME_RANGES, MOST_VALUES) for column in names.measures[rows].T]
    counts, start = _fitted(ranged(names.measures[rows], bounds), names.right[rows], PENALTY)
    return bounds, counts, start


def _named(names: Names, chances: Array) -> tuple[int, int]:
    """How many screenshots are named right, and how many wrong, by the likeliest text of each."""
    best: dict[int, int] = {}
    for row in numpy.flatnonzero(chances >= wordmarks.SURE):
        case = int(names.case[row])
        if case not in best or chances[row] > chances[best[case]]:
            best[case] = int(row)
    right = sum(bool(names.right[row]) for row in best.values())
    return right, len(best) - right


def _joint(names: Names, learned: Array, chances: Array) -> wordmarks.Joint:
    """What it counts that other screenshots have a name, too, among the `learned` ones."""
    kept: dict[int, dict[str, float]] = {}
    for row in numpy.flatnonzero(learned[names.case] & (chances >= wordmarks.LEAST_CHANCE)):
        kept.setdefault(int(names.case[row]), {})[names.texts[row]] = float(chances[row])
    having: dict[str, dict[int, float]] = {}
    for case, found in kept.items():
        for text in sorted(found, key=lambda text: -found[text])[: wordmarks.KEPT]:
            having.setdefault(text, {})[case] = found[text]
    inputs, right = [], []
    for row in numpy.flatnonzero(learned[names.case]):
        case, of_text = int(names.case[row]), having.get(names.texts[row], {})
        others = [chance for other, chance in of_text.items() if other != case]
        if others and case in of_text:
            best = wordmarks.odds(max(others)) - wordmarks.FAINT
            is_headed = float(names.kinds[case] in wordmarks.OF_OTHERS)
            inputs.append([wordmarks.odds(float(chances[row])), best, float(len(others) > 1), is_headed])
            right.append(names.right[row])
    counts, start = _fitted(numpy.array(inputs), numpy.array(right), JOINT_PENALTY)
    own, best, several, headed = (_short(count) for count in counts)
    return wordmarks.Joint(_short(start), own, best, several, headed)


def _write(
    path: Path, names: Names, learned: Array, chances: Array, said: tuple[int, dict[str, Any]]
) -> None:
    bounds, counts, start = _learned(names, learned[names.case])
    places = numpy.cumsum([len(inner) + 1 for inner in bounds])[:-1]
    measures = {
        name: (inner, [_short(count) for count in part])
        for name, inner, part in zip(names.columns, bounds, numpy.split(counts, places), strict=True)
    }
    weights = wordmarks.Weights(_short(start), measures, _joint(names, learned, chances), *said)
    path.write_bytes(msgspec.json.encode(weights) + b"\n")


def _short(number: float) -> float:
    return round(float(number), 3)


def _chance(sums: Array) -> Array:
    found: Array = 1 / (1 + numpy.exp(-sums))
    return found


def _fitted(inputs: Array, right: Array, penalty: float) -> tuple[Array, float]:
    """Nesterov's accelerated gradient descent: what each input counts, and the start."""
    mean = inputs.mean(axis=0)
    inputs = (inputs - mean).astype(numpy.float32)
    curvature = 0.25 * numpy.linalg.norm(inputs, 2) ** 2 / len(right) + penalty + 0.25
    weights = ahead = numpy.zeros(inputs.shape[1], numpy.float32)
    start = start_ahead = 0.0
    speed = 1.0
    for _ in range(STEPS):
        wrong = (_chance(inputs @ ahead + start_ahead) - right).astype(numpy.float32) / len(right)
        stepped = ahead - (wrong @ inputs + penalty * ahead) / numpy.float32(curvature)
        started = start_ahead - float(wrong.sum()) / curvature
        faster = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        drift = (speed - 1) / faster
        ahead, start_ahead = stepped + drift * (stepped - weights), started + drift * (started - start)
        weights, start, speed = stepped, started, faster
    return weights, start - float(mean @ weights)
