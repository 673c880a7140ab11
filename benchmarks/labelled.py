"""The labelled screenshots that `make train` learns from and `make judge` judges with.

They are not part of the project. CORPUS names their folders, with ":" between them: one with a `manifest.csv`
has its labels there (and in `labels.json`), any other has the pictures of `pictures.csv`, which
`python -m benchmarks.bring folder` brings from their repositories. Each is read once: text and vector are
cached outside of the project.

Half of the apps are the judging half, by a hash of the app's name. It is counted and never opened: whoever
writes rules looks at the other half only, and the weights that are measured on it (`weights/`) have not
learned from it. Those of the service have learned from all.
"""

import csv
import hashlib
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from engines import vectors
from engines.lines import Page
from rules import naming, rows, vote, wordmarks
from rules.embedded import LocalModel
from rules.layout import Layout

HERE = Path(__file__).parent
PICTURES = HERE / "pictures.csv"
LABELS = HERE / "labels.json"
HELD_OUT = HERE / "weights"  # of the votes, learned from the tuning half
CACHE = Path(tempfile.gettempdir()) / "snaplore-judge"
READER = "both"  # SNAPLORE_OCR_MODEL, as it is by default


class Label(msgspec.Struct):
    """What is right for a picture, as `labels.json` has it. `app` is visible on it; those of `also` are right
    too, but not expected. `title` are words of which one is in a good title.
    """

    category: str
    intents: list[str] = []
    app: str = ""
    also: list[str] = []
    title: list[str] = []
    queries: list[str] = []
    categories: list[str] = []


class Case(msgspec.Struct):
    """A labelled screenshot: the app that it is of, its right categories, of which the first is the best, and
    as far as it was labelled, a person's title, summary and record, and whether the app's name can be read.
    `visible` is the name as it is there. `recorded` is whether a person looked for a record, and `record` is
    empty where there is none then.
    """

    name: str
    path: Path
    app: str
    categories: list[str]
    locale: str
    shows_app: bool | None = None
    visible: str = ""
    title: str = ""
    summary: str = ""
    record: dict[str, Any] = {}
    recorded: bool = False
    label: Label | None = None
    page: Page = msgspec.field(default_factory=Page)

    @property
    def judges(self) -> bool:
        """Whether it belongs to the judging half."""
        return is_judging(self.app)

    def is_named(self, name: str, share: float = 0.0) -> bool:
        """Whether a text is the name of its app, or a part of it, or has it, in at least this share of the
        letters.
        """
        said = wordmarks.folded(name)
        names = [self.app, self.visible, *([self.label.app, *self.label.also] if self.label else ())]
        return any(
            (said in known or known in said)
            and min(len(said), len(known)) >= share * max(len(said), len(known))
            for known in map(wordmarks.folded, filter(None, names))
        )

    @property
    def language(self) -> str:
        """The language in which its title and summary are written."""
        return "zh" if self.locale.lower().startswith("zh") else "en"


def is_judging(app: str) -> bool:
    """Whether the pictures of an app judge, instead of being looked at."""
    return int(hashlib.sha256(app.casefold().encode()).hexdigest(), 16) % 2 == 1


def use_held_out() -> None:
    """Let the votes use the weights that know nothing of the judging half."""
    vote.WEIGHTS, vote.TYPES = HELD_OUT / vote.WEIGHTS.name, HELD_OUT / vote.TYPES.name
    naming.WEIGHTS = HELD_OUT / naming.WEIGHTS.name
    wordmarks.WEIGHTS = HELD_OUT / wordmarks.WEIGHTS.name
    rows.WEIGHTS = HELD_OUT / rows.WEIGHTS.name


def folders() -> list[Path]:
    """The folders that the variable CORPUS names."""
    return [Path(one) for one in os.environ.get("CORPUS", "").split(os.pathsep) if one]


def cases(places: Iterable[Path], cache: Path = CACHE) -> list[Case]:
    """All labelled screenshots of these folders, read; the same picture only once."""
    cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, Case] = {}
    model = LocalModel(ocr_model=READER, language="en")
    try:
        for place in places:
            for digest, case in _labelled(place):
                if digest not in found and case.path.exists():
                    case.page = read(model, case.path.read_bytes(), cache)
                    found[digest] = case
    finally:
        model.close()
    return list(found.values())


def read(model: LocalModel, content: bytes, cache: Path) -> Page:
    """The text of a picture as `READER` reads it, from the cache if it was read before."""
    stored = cache / f"{hashlib.sha256(content).hexdigest()}-{READER}.json"
    if stored.exists():
        return msgspec.json.decode(stored.read_bytes(), type=Page)
    page, _ = model.read(io.BytesIO(content))
    stored.write_bytes(msgspec.json.encode(page))
    return page


class Senses:
    """Makes the vectors of texts as the service's child process does, and caches them."""

    def __init__(self, cache: Path = CACHE):
        self._cache = cache
        self._model: vectors.Model | None = None

    def __call__(self, text: str) -> bytes:
        stored = self._cache / f"{hashlib.sha256(text.encode()).hexdigest()}.vector"
        if not stored.exists():
            self._model = self._model or vectors.load()
            stored.write_bytes(self._model.quick(text))
        return stored.read_bytes()

    def of(self, page: Page) -> bytes:
        """The vector of a page's text."""
        return self(Layout(page).content)


def _labelled(place: Path) -> Iterator[tuple[str, Case]]:
    manifest = place / "manifest.csv"
    own = msgspec.json.decode(LABELS.read_bytes(), type=dict[str, Label])
    with (manifest if manifest.exists() else PICTURES).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if manifest.exists():
                name, path = row["file"], place / "images" / row["file"]
            else:
                name = row["sha256"][:16]
                path = next(place.glob(f"{name}.*"), place / name)
            label = own.get(name)
            categories = [row["category"], *row.get("second_category", "").split()]
            visible = row.get("app_visible", "")
            yield (
                row["sha256"],
                Case(
                    name,
                    path,
                    row["app_name"],
                    [label.category, *label.categories] if label else categories,
                    row["locale"],
                    bool(label.app) if label else visible not in ("", "no"),
                    "" if visible in ("yes", "no") else visible,
                    row.get("title", ""),
                    row.get("summary", ""),
                    _record(row.get("record", "")),
                    bool(row.get("record")),
                    label,
                ),
            )


def _record(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    return found if found.get("type") not in (None, "None") else {}
