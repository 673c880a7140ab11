"""`make train`: learns the weights of the votes for the category and for the type of the record
(`rules/vote.py`), for the app's name (`marks.py`), for the entries of lists (`rows.py`), and for what belongs
in a title (`rules/naming.py`), from labelled screenshots.

A multinomial logistic regression with an L2 penalty, in numpy, fitted by accelerated gradient descent. Cross-
validation is by app: no app is on both sides. The strength of the penalty is chosen inside of each fold by
another cross-validation, so that the figures are of weights that knew nothing of the pictures they judge.
Rare categories count more than their share, because a person who has few chats wants to find them too.

What the service has learned is from all of them. `benchmarks/weights/` has what is learned from the tuning
half only, with which `make judge` counts the judging half; the figures say how well that does.

Screenshots without a record of a whole screen are those of a category, one choice each: a bank's and a page's
have little in common.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy

from benchmarks import labelled, marks, recorded, rows
from engines.findings import CATEGORIES
from rules import kinds, naming, vote, wordmarks
from rules.layout import Layout
from rules.recorder import SCREENS

SEED = 20261123
FOLDS, INNER_FOLDS = 10, 4
PENALTIES = (0.001, 0.003, 0.01)
STEPS = 150
EVENNESS = 0.75  # 0: every picture counts the same; 1: every category does
# By what each group of numbers is multiplied: a penalty weighs less on larger numbers.
PLACES, RULES, VECTOR = 1.0, 0.5, 2.0
RIDGE = 30.0  # the penalty of the texts for titles
MOST_OF_TEXT, MOST_WORDS = 120, 8  # of such a text, that are looked at
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
    """Train, print the figures and write the weights in `rules/`."""
    options = _arguments()
    cases, senses = labelled.cases(options.corpus, options.cache), labelled.Senses(options.cache)
    categories = _categories(cases, senses)
    sets = {"with_vector": True, "without": False}
    _write(vote.WEIGHTS, categories, sets)
    _write(vote.TYPES, _types(cases, categories, senses), {"with_vector": True})
    folds = _folds([case.app for case in cases], FOLDS)
    marks.write(cases, [vote.recognise(Layout(case.page), senses).kind for case in cases], folds, SEED)
    rows.write(cases, folds, SEED)
    _write_naming([case for case in cases if case.title], senses)


def _write(path: Path, table: Table, sets: dict[str, bool]) -> None:
    """Learn sets of weights, each with the vector or without it, and write them: from all screenshots, and
    from the tuning half.
    """
    judging = numpy.array([labelled.is_judging(app) for app in table.apps])
    figures = {}
    for name, senses in sets.items():
        figures[name] = {
            "pictures": len(table.apps),
            "apps": len(set(table.apps)),
            "cross-validated by app": _cross_validated(table, senses),
            "learned from the tuning half, on the judging half": _score(
                table, _predicted(table, ~judging, judging, senses), judging
            ),
        }
        print(name, json.dumps(figures[name], indent=1))
    _write_learned(path, table, numpy.ones(len(judging), bool), sets, figures)
    _write_learned(labelled.HELD_OUT / path.name, table, ~judging, sets, {})


def _write_learned(
    path: Path, table: Table, chosen: Array, sets: dict[str, bool], figures: dict[str, dict[str, Any]]
) -> None:
    """Write sets of weights that are learned from the chosen rows."""
    found: dict[str, Any] = {"choices": table.choices, "seed": SEED}
    for name, senses in sets.items():
        penalty = _penalty(table, numpy.flatnonzero(chosen), senses)
        weights, start, scaling = _fitted(table, chosen, penalty, senses)
        count = len(table.names)
        scaled = weights[:count] * scaling.factor[:, None]
        found[name] = {
            "start": vote.columns([start - scaling.mean @ scaled])[0],
            "measures": dict(zip(table.names, vote.columns(scaled), strict=True)),
            "vector": vote.columns(weights[count:] * VECTOR) if senses else [],
            "figures": {**figures.get(name, {}), "penalty": penalty},
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
    """The same with the type of each record, the category where it is none of a whole screen; of the
    screenshots of which a person has said what their record is, or that there is none.
    """
    choices = [*SCREENS, *CATEGORIES]
    rows = [row for row, case in enumerate(cases) if case.recorded]
    cases = [cases[row] for row in rows]
    kind_of = [case.record.get("type") for case in cases]
    right = [
        choices.index(kind if kind in SCREENS else case.categories[0])
        for kind, case in zip(kind_of, cases, strict=True)
    ]
    none = list(range(len(SCREENS), len(choices)))
    heads = [vote.unit(senses(vote.head(Layout(case.page)))) for case in cases]
    return categories._replace(
        choices=choices,
        measures=categories.measures[rows],
        vectors=numpy.hstack((categories.vectors[rows], numpy.array(heads, numpy.float32))),
        right=numpy.array(right),
        also=[none if one in none else [one] for one in right],
        apps=[case.app for case in cases],
    )


def _cross_validated(table: Table, senses: bool) -> dict[str, Any]:
    everything = numpy.ones(len(table.right), bool)
    fold = _folds(table.apps, FOLDS)
    predicted = numpy.zeros(len(table.right), int)
    for number in range(FOLDS):
        held = fold == number
        predicted[held] = _predicted(table, ~held, held, senses)[held]
    return _score(table, predicted, everything)


def _folds(of: Sequence[str], count: int) -> Array:
    """A fold for each row, given the app that it is of; those of one app have the same."""
    apps = sorted(set(of))
    numpy.random.default_rng(SEED).shuffle(apps)
    folds = {app: number % count for number, app in enumerate(apps)}
    return numpy.array([folds[app] for app in of])


def _predicted(table: Table, learned: Array, judged: Array, senses: bool) -> Array:
    """The choices for all screenshots, by weights from the `learned` ones."""
    weights, start, scaling = _fitted(
        table, learned, _penalty(table, numpy.flatnonzero(learned), senses), senses
    )
    return (_scaled(table, scaling, senses) @ weights + start).argmax(axis=1)


def _penalty(table: Table, rows: Array, senses: bool) -> float:
    """The penalty that does best in a cross-validation of these rows."""
    fold = _folds([table.apps[row] for row in rows], INNER_FOLDS)

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


class Texts(NamedTuple):
    """A row for each text of all screenshots: its measures, the share of its words that the person's title
    has, how many words it has, and which screenshot it is of.
    """

    names: list[str]
    measures: Array
    shares: Array
    words: Array
    case: Array


def _write_naming(cases: list[labelled.Case], senses: labelled.Senses) -> None:
    """Learn what belongs in a title, by a ridge regression over ranges of the measures, and write it."""
    texts = _texts(cases, senses)
    fold = _folds([case.app for case in cases], FOLDS)[texts.case]
    judging = numpy.array([case.judges for case in cases])[texts.case]
    expected = numpy.zeros(len(texts.shares))
    for number in range(FOLDS):
        ends, counts, start = _ridge(texts, fold != number)
        expected[fold == number] = rows.ranged(texts.measures[fold == number], ends) @ counts + start
    ends, counts, start = _ridge(texts, ~judging)
    on_judging = rows.ranged(texts.measures[judging], ends) @ counts + start
    figures = {
        "pictures": len(cases),
        "texts": len(texts.shares),
        "correlation, cross-validated by app": _correlation(expected, texts.shares),
        "correlation, learned from the tuning half, on the judging half": _correlation(
            on_judging, texts.shares[judging]
        ),
    }
    print(json.dumps(figures, indent=1))
    _write_ranges(naming.WEIGHTS, texts, numpy.ones(len(judging), bool), figures)
    _write_ranges(labelled.HELD_OUT / naming.WEIGHTS.name, texts, ~judging, {})


def _write_ranges(path: Path, texts: Texts, chosen: Array, figures: dict[str, Any]) -> None:
    ends, counts, start = _ridge(texts, chosen)
    found, place = {}, 0
    for name, inner in zip(texts.names, ends, strict=True):
        found[name] = (inner, vote.columns([counts[place : place + len(inner) + 1]])[0])
        place += len(inner) + 1
    path.write_bytes(msgspec.json.encode(naming.Weights(round(start, 4), found, SEED, figures)) + b"\n")


def _texts(cases: list[labelled.Case], senses: labelled.Senses) -> Texts:
    found: list[dict[str, float]] = []
    shares, words, of = [], [], []
    for number, case in enumerate(cases):
        wanted, layout = recorded.words(case.title), Layout(case.page)
        kind = vote.recognise(layout, senses).kind
        app = wordmarks.app_name(layout, kind, "", wordmarks.marks(layout, kind), case.language)
        for _, text, measured in naming.measures(layout.main, kind, app):
            if said := recorded.words(text[:MOST_OF_TEXT]):
                found.append(measured)
                shares.append(len(said & wanted) / len(said))
                words.append(min(MOST_WORDS, len(said)))
                of.append(number)
    columns = sorted(found[0])
    table = numpy.array([[row[name] for name in columns] for row in found])
    return Texts(columns, table, numpy.array(shares), numpy.array(words, float), numpy.array(of))


def _ridge(texts: Texts, learned: Array) -> tuple[list[list[float]], Array, float]:
    """Where the ranges of each measure end, what each range counts, and the start."""
    known, shares, worth = texts.measures[learned], texts.shares[learned], texts.words[learned]
    ends = [rows.ends(column) for column in known.T]
    inputs = rows.ranged(known, ends)
    mean, middle = numpy.average(inputs, axis=0, weights=worth), float(numpy.average(shares, weights=worth))
    scaled = (inputs - mean) * worth[:, None]
    products = scaled.T @ (inputs - mean) + RIDGE * numpy.eye(inputs.shape[1])
    counts = numpy.linalg.solve(products, scaled.T @ (shares - middle))
    return ends, counts, middle - float(mean @ counts)


def _correlation(expected: Array, shares: Array) -> float:
    return round(float(numpy.corrcoef(expected, shares)[0, 1]), 3)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.train", description="Train the votes.")
    parser.add_argument("--corpus", type=Path, nargs="+", default=labelled.folders(), help="folders")
    parser.add_argument(
        "--cache", type=Path, default=labelled.CACHE, help="for what was read (default: %(default)s)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
