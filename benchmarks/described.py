"""Whether screenshots are found by descriptions in other words than theirs, as `make judge` measures it.

The screenshots are uploaded to a service in a temporary folder, analysed by its embedded analyser and
searched over its API. The descriptions in `labels.json` were written while the search was made; those in
`described.json` afterwards, and nothing was chosen by them: half of the screenshots have those of the first
set, the others those of the second. Each names the screenshots that answer it.

The other half of the promise is that the search by words stays what it is: quoted phrases and queries for
what is on no screenshot are asked before there are vectors, and again afterwards.
"""

import contextlib
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import database
import meaning
from analysis.pool import Worker
from app import Application, create_app
from engines.lines import Page
from rules.embedded import LocalModel
from settings import Settings

DESCRIPTIONS = Path(__file__).with_name("described.json")
FIRST = 5  # results that a person looks at
# Of what no ordinary app shows.
ABSENT = (
    "chlorophyll", "Ottoman cavalry", "Reykjavik glacier", "xylophone lessons", "mortgage refinance",
    "beekeeping licence", "violin strings", "tide tables", "passport renewal", "vaccination card",
    "琥珀项链", "潜水执照", "护照续签", "修自行车轮胎", "养蜂",
)  # fmt: skip


class Result(NamedTuple):
    """How many queries found a right screenshot among the first five, and the others."""

    found: int
    first: int  # in first place
    by_words: int  # by `/api/search`
    missed: list[str]

    def line(self) -> str:
        """As it is printed."""
        count = self.found + len(self.missed)
        return (
            f"{self.found}/{count} = {self.found / count:.2f} in the first {FIRST}, {self.first} in first"
            f" place, {self.by_words} by their words"
        )


def report(pictures: Mapping[str, bytes], pages: Mapping[str, Page], queries: Mapping[str, Sequence[str]],
           phrases: Sequence[str], folder: Path, *, shown: bool) -> None:  # fmt: skip
    """Print what is found of `queries` (each with the names of its answers) and of `described.json`.
    `pictures` and `pages` (what was read on them) are by name, `phrases` stand on screenshots. The misses of
    `described.json` are listed if `shown`.
    """
    held_out: dict[str, dict[str, list[str]]] = json.loads(DESCRIPTIONS.read_bytes())
    with service(folder) as app:
        names = filled(app, pictures, pages)
        quoted = [f'"{phrase}"' for phrase in phrases]
        before = _answers(app, [*quoted, *ABSENT])
        began, count = time.perf_counter(), 0
        while meaning.make_one():
            count += 1
        each = (time.perf_counter() - began) / max(1, count)
        print(f"\n== described: {count} screenshots")
        for group, asked in (("while tuning", queries), *held_out.items()):
            if not asked:
                continue
            result = _result(app, names, asked)
            print(f"{group}: {result.line()}")
            if shown or group not in held_out:
                for query in result.missed:
                    print(f"  missed: {query} ({', '.join(asked[query])})")
        changed = sum(
            now != then for now, then in zip(_answers(app, [*quoted, *ABSENT]), before, strict=True)
        )
        relatives = [_related(app, query) for query in quoted]
        print(
            f"/api/search for {len(quoted)} quoted phrases and {len(ABSENT)} absent things: {changed} changed"
            f" answers; {sum(map(bool, relatives))} of the phrases have relatives;"
            f" {sum(bool(answer['items']) for answer in before[len(quoted) :])} of the absent have hits,"
            f" {sum(any(one['grade'] == 'probable' for one in _related(app, query)) for query in ABSENT)}"
            f" a probable relative\na vector takes {each * 1000:.0f} ms"
        )


def _result(app: Application, names: dict[int, str], asked: Mapping[str, Sequence[str]]) -> Result:
    found = first = by_words = 0
    missed = []
    for query, right in asked.items():
        near = [names[item["id"]] for item in _related(app, query)]
        hit = any(name in right for name in near)
        found += hit
        first += near[:1] != [] and near[0] in right
        by_words += any(names[item["id"]] in right for item in _answers(app, [query])[0]["items"])
        if not hit:
            missed.append(query)
    return Result(found, first, by_words, missed)


def _related(app: Application, query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = _get(app, "/api/search/related", q=query, limit=FIRST)["items"]
    return items


def _answers(app: Application, queries: Sequence[str]) -> list[dict[str, Any]]:
    return [_get(app, "/api/search", q=query, limit=FIRST) for query in queries]


def _get(app: Application, path: str, **query: Any) -> dict[str, Any]:
    answer = app.test_client().get(path, query_string=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json or {}
    return found


@contextlib.contextmanager
def service(folder: Path) -> Iterator[Application]:
    """A service with an empty data folder, whose threads do not run."""
    try:
        yield create_app(Settings(data_dir=folder / "data", language="en", dev_mode=True))
    finally:
        database.close_store()


def filled(
    app: Application,
    pictures: Mapping[str, bytes],
    pages: Mapping[str, Page],
    taken: Mapping[str, datetime] | None = None,
) -> dict[int, str]:
    """Upload and analyse the pictures; returns their names by id. They are not read again."""
    names = {}
    by_content = {content: pages[name] for name, content in pictures.items()}

    def read(self: LocalModel, picture: Any, *, patience: float | None = None) -> tuple[Page, str]:
        picture.seek(0)
        return by_content[picture.read()], "judged"

    client = app.test_client()
    for name, content in pictures.items():
        data: dict[str, Any] = {"file": (io.BytesIO(content), f"{len(names)}.png")}
        if taken is not None:
            data["original_timestamp"] = str(int(taken[name].replace(tzinfo=UTC).timestamp() * 1000))
        answer = client.post("/api/photos/upload", data=data)
        assert answer.status_code == 200, answer.text
        names[int((answer.json or {})["id"])] = name
    worker = Worker(app.settings)
    try:
        with mock.patch.object(LocalModel, "read", read):
            while worker.work():
                pass
    finally:
        worker.close()
    return names
