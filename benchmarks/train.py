"""`make train`: learns the weights of the votes for the category and for the type of the record
(`rules/vote.py`) from labelled screenshots.

A multinomial logistic regression with an L2 penalty, in numpy, fitted by accelerated gradient descent. Cross-
validation is by app: no app is on both sides. The strength of the penalty is chosen inside of each fold by
another cross-validation, so that the figures are of weights that knew nothing of the pictures they judge.
Rare categories count more than their share, because a person who has few chats wants to find them too.

The figures also tell what weights do that have learned from the tuning half only, on the judging half.

Screenshots without a record of a whole screen are those of a category, one choice each: a bank's and a page's
have little in common.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from benchmarks import labelled
from engines.findings import CATEGORIES
from rules import kinds, vote
from rules.layout import Layout
from rules.recorder import SCREENS

SEED = 20261123
FOLDS, INNER_FOLDS = 10, 4
PENALTIES = (0.001, 0.003, 0.01)
STEPS = 150
EVENNESS = 0.75  # 0: every picture counts the same; 1: every category does
# By what each group of numbers is multiplied: a penalty weighs less on larger numbers.
PLACES, RULES, VECTOR = 1.0, 0.5, 2.0
LEAST_SPREAD = 0.05  # of a measure: one that is nearly the same everywhere would be blown up

Array = numpy.ndarray[Any, Any]


class Table(NamedTuple):
    """A row for each screenshot: measures, vector, the right one of the choices, and all right ones."""

    choices: list[str]
    names: list[str]
    measures: Array
    vectors: Array
    right: Array
    also: list[list[int]]
    apps: list[str]


class Scaling(NamedTuple):
    """How measures become what is learned from."""

    mean: Array
    factor: Array


def main() -> None:
    """Train, print the figures and write `rules/vote.json` and `rules/types.json`."""
    options = _arguments()
    cases, senses = labelled.cases(options.corpus, options.cache), labelled.Senses(options.cache)
    categories = _categories(cases, senses)
    sets = {"with_vector": True, "without": False}
    _write(vote.WEIGHTS, categories, options.all, sets)
    _write(vote.TYPES, _types(cases, categories, senses), options.all, {"with_vector": True})


def _write(path: Path, table: Table, everything: bool, sets: dict[str, bool]) -> None:
    """Learn sets of weights, each with the vector or without it, and write them."""
    judging = numpy.array([labelled.is_judging(app) for app in table.apps])
    chosen = numpy.ones(len(judging), bool) if everything else ~judging
    found: dict[str, Any] = {"choices": table.choices, "seed": SEED}
    for name, senses in sets.items():
        figures = {
            "pictures": int(chosen.sum()),
            "apps": len({app for app, one in zip(table.apps, chosen, strict=True) if one}),
            "cross-validated by app": _cross_validated(table, senses),
            "learned from the tuning half, on the judging half": _score(
                table, _predicted(table, ~judging, judging, senses), judging
            ),
        }
        print(name, json.dumps(figures, indent=1))
        penalty = _penalty(table, numpy.flatnonzero(chosen), senses)
        weights, start, scaling = _fitted(table, chosen, penalty, senses)
        count = len(table.names)
        scaled = weights[:count] * scaling.factor[:, None]
        found[name] = {
            "start": vote.columns([start - scaling.mean @ scaled])[0],
            "measures": dict(zip(table.names, vote.columns(scaled), strict=True)),
            "vector": vote.columns(weights[count:] * VECTOR) if senses else [],
            "figures": {**figures, "penalty": penalty},
        }
    path.write_text(json.dumps(found, separators=(",", ":"), ensure_ascii=False) + "\n", encoding="utf-8")


def _categories(cases: list[labelled.Case], senses: labelled.Senses) -> Table:
    found = []
    for case in cases:
        layout = Layout(case.page)
        found.append(vote.measures(layout, kinds.evidence(layout)))
    names = sorted({name for one in found for name in one})
    right = [[CATEGORIES.index(category) for category in case.categories] for case in cases]
    return Table(
        list(CATEGORIES),
        names,
        numpy.array([[one.get(name, 0.0) for name in names] for one in found], numpy.float32),
        numpy.array([vote.unit(senses.of(case.page)) for case in cases], numpy.float32),
        numpy.array([each[0] for each in right]),
        right,
        [case.app for case in cases],
    )


def _types(cases: list[labelled.Case], categories: Table, senses: labelled.Senses) -> Table:
    """The same with the type of each record, the category where it is none of a whole screen."""
    choices = [*SCREENS, *CATEGORIES]
    kind_of = [case.record.get("type") for case in cases]
    right = [
        choices.index(kind if kind in SCREENS else case.categories[0])
        for kind, case in zip(kind_of, cases, strict=True)
    ]
    none = list(range(len(SCREENS), len(choices)))
    heads = [vote.unit(senses(vote.head(Layout(case.page)))) for case in cases]
    return categories._replace(
        choices=choices,
        vectors=numpy.hstack((categories.vectors, numpy.array(heads, numpy.float32))),
        right=numpy.array(right),
        also=[none if one in none else [one] for one in right],
    )


def _cross_validated(table: Table, senses: bool) -> dict[str, Any]:
    everything = numpy.ones(len(table.right), bool)
    fold = _folds(table, numpy.arange(len(table.right)), FOLDS)
    predicted = numpy.zeros(len(table.right), int)
    for number in range(FOLDS):
        held = fold == number
        predicted[held] = _predicted(table, ~held, held, senses)[held]
    return _score(table, predicted, everything)


def _folds(table: Table, rows: Array, count: int) -> Array:
    """A fold for each of the rows; those of one app have the same."""
    apps = sorted({table.apps[row] for row in rows})
    numpy.random.default_rng(SEED).shuffle(apps)
    of = {app: number % count for number, app in enumerate(apps)}
    return numpy.array([of[table.apps[row]] for row in rows])


def _predicted(table: Table, learned: Array, judged: Array, senses: bool) -> Array:
    """The choices for all screenshots, by weights from the `learned` ones."""
    weights, start, scaling = _fitted(
        table, learned, _penalty(table, numpy.flatnonzero(learned), senses), senses
    )
    return (_scaled(table, scaling, senses) @ weights + start).argmax(axis=1)


def _penalty(table: Table, rows: Array, senses: bool) -> float:
    """The penalty that does best in a cross-validation of these rows."""
    fold = _folds(table, rows, INNER_FOLDS)

    def quality(penalty: float) -> float:
        right = []
        for number in range(INNER_FOLDS):
            learned = numpy.zeros(len(table.right), bool)
            learned[rows[fold != number]] = True
            weights, start, scaling = _fitted(table, learned, penalty, senses)
            judged = rows[fold == number]
            predicted = (_scaled(table, scaling, senses)[judged] @ weights + start).argmax(axis=1)
            right += [one in table.also[row] for one, row in zip(predicted, judged, strict=True)]
        return sum(right) / len(right)

    return max(PENALTIES, key=quality)


def _fitted(table: Table, learned: Array, penalty: float, senses: bool) -> tuple[Array, Array, Scaling]:
    """The weights, the start of each choice, and the scaling of the measures."""
    of_rules = numpy.array([name.startswith(("kind ", "category ", "rules ")) for name in table.names])
    known = table.measures[learned]
    spread = numpy.maximum(known.std(axis=0), LEAST_SPREAD)
    places = PLACES / (spread * numpy.sqrt((~of_rules).sum()))
    scaling = Scaling(known.mean(axis=0), numpy.where(of_rules, RULES, places))
    inputs, right = _scaled(table, scaling, senses)[learned], table.right[learned]
    counts = numpy.bincount(right, minlength=len(table.choices))
    worth = (1 / numpy.maximum(counts, 1))[right] ** EVENNESS
    return (*_regression(inputs, numpy.eye(len(table.choices))[right], worth / worth.sum(), penalty), scaling)


def _regression(inputs: Array, right: Array, worth: Array, penalty: float) -> tuple[Array, Array]:
    """Nesterov's accelerated gradient descent, with steps as long as the curvature allows."""
    curvature = 0.5 * numpy.linalg.norm(inputs * numpy.sqrt(worth)[:, None], 2) ** 2 + penalty + 0.5
    weights = ahead = numpy.zeros((inputs.shape[1], right.shape[1]))
    start = start_ahead = numpy.zeros(right.shape[1])
    speed = 1.0
    for _ in range(STEPS):
        powers = inputs @ ahead + start_ahead
        powers = numpy.exp(powers - powers.max(axis=1, keepdims=True))
        wrong = (powers / powers.sum(axis=1, keepdims=True) - right) * worth[:, None]
        stepped = ahead - (inputs.T @ wrong + penalty * ahead) / curvature
        started = start_ahead - wrong.sum(axis=0) / curvature
        faster = (1 + (1 + 4 * speed * speed) ** 0.5) / 2
        drift = (speed - 1) / faster
        ahead, start_ahead = stepped + drift * (stepped - weights), started + drift * (started - start)
        weights, start, speed = stepped, started, faster
    return weights, start


def _scaled(table: Table, scaling: Scaling, senses: bool) -> Array:
    scaled = (table.measures - scaling.mean) * scaling.factor
    return numpy.hstack((scaled, VECTOR * table.vectors)) if senses else scaled


def _score(table: Table, predicted: Array, judged: Array) -> dict[str, Any]:
    """The share that is right, the mean of each choice's, and these."""
    right = numpy.array([one in also for one, also in zip(predicted, table.also, strict=True)])
    of = {
        choice: right[judged & (table.right == number)]
        for number, choice in enumerate(table.choices)
        if (judged & (table.right == number)).any()
    }
    return {
        "pictures": int(judged.sum()),
        "right": round(float(right[judged].mean()), 3),
        "macro recall": round(float(numpy.mean([each.mean() for each in of.values()])), 3),
        **{choice: f"{each.sum()} of {len(each)}" for choice, each in of.items()},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description="Train the votes.")
    parser.add_argument("--corpus", type=Path, nargs="+", default=labelled.folders(), help="folders")
    parser.add_argument(
        "--cache", type=Path, default=labelled.CACHE, help="for what was read (default: %(default)s)"
    )
    parser.add_argument("--all", action="store_true", help="learn from the judging half, too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
