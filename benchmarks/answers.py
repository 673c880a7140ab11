"""Whether the embedded model answers questions about screenshots: `python -m benchmarks.answers`.

The screens and questions of `answers.txt` were written before the rules that answer them. The screens are
drawn, read by the real reader, analysed and asked about through the chat. An answer is right when the value
is in it, its citation when a box of it is over the line that has the value, and a question without an answer
is right when nothing is cited. Every second question is only counted; `--errors` lists those of the others.
With `--questions`, they are about real screenshots, which are not part of the project (`labelled.py`).
"""

import argparse
import contextlib
import dataclasses
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import database
import readings
import terms
from app import Application
from assistant import chat
from assistant.openings import UserMessage
from benchmarks import described, drawn, labelled
from engines.lines import Page
from rules.embedded import LocalModel

SCREENS = Path(__file__).with_name("answers.txt")
NOW = datetime(2026, 11, 24, 12)
OVERLAP = 0.7  # of two boxes: what they share, as a part of what they cover together


class Question(NamedTuple):
    """What is asked, the values of which one is right (none: there is no answer), the words on the line that
    has it, the screen, and whether it goes on from the question before.
    """

    text: str
    values: tuple[str, ...] = ()
    line: str = ""
    screen: str = ""
    follows: bool = False


class Screen(NamedTuple):
    """A screenshot, when it was taken, what was read on it, and which text is where, in parts of it."""

    name: str
    content: bytes
    taken: datetime
    page: Page
    places: list[tuple[str, tuple[float, ...]]]


def questions_in(path: Path) -> list[Question]:
    """The questions of a file."""
    name, questions = "", []
    for row in path.read_text(encoding="utf-8").splitlines():
        if row.startswith("@ "):
            name = row.split()[1]
        elif found := re.match(r"(ask|then|none) = (.*)", row):
            parts = [part.strip() for part in found[2].split(" => ")]
            values = tuple(value.strip() for value in parts[1].split(" | ")) if parts[1:] else ()
            questions.append(Question(parts[0], values, "".join(parts[2:3]), name, found[1] == "then"))
    return questions


def drawn_screens(model: LocalModel, cache: Path) -> Iterator[Screen]:
    """The screens of the project's own file."""
    for block in SCREENS.read_text(encoding="utf-8").split("\n\n"):
        rows = [
            row for row in block.strip().splitlines() if not re.match(r"# Drawn|(?:ask|then|none) = ", row)
        ]
        if rows and rows[0].startswith("@ "):
            name, taken = rows[0][2:].split()
            content, places = drawn.placed(drawn.Screen(name, (), (), "", (), tuple(rows[1:])))
            width, height = drawn.SIZE
            boxes = [(place.text, _parts(place.box, width, height)) for place in places]
            yield Screen(
                name, content, datetime.fromisoformat(taken), labelled.read(model, content, cache), boxes
            )


def real_screens(places: Sequence[Path], cache: Path) -> Iterator[Screen]:
    """The labelled screenshots of the tuning half. A text is where it was read."""
    for case in labelled.cases(places, cache):
        if not case.judges:
            page = case.page
            boxes = [
                (line.text, _parts((line.left, line.top, line.right, line.bottom), page.width, page.height))
                for line in page.lines
            ]
            yield Screen(case.name, case.path.read_bytes(), NOW - timedelta(days=4), page, boxes)


def main() -> None:
    """Ask and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "snaplore-answers")
    parser.add_argument("--errors", action="store_true", help="list the errors of the tuning half")
    parser.add_argument(
        "--questions", type=Path, help="a file like answers.txt about the labelled screenshots of CORPUS"
    )
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.questions:
        screens = list(real_screens(labelled.folders(), options.cache))
    else:
        with contextlib.closing(LocalModel(ocr_model=labelled.READER, language="en")) as model:
            screens = list(drawn_screens(model, options.cache))
    questions = questions_in(options.questions or SCREENS)
    with tempfile.TemporaryDirectory() as folder, described.service(Path(folder)) as app:
        pictures = {one.name: one.content for one in screens}
        pages = {one.name: one.page for one in screens}
        names = described.filled(app, pictures, pages, {one.name: one.taken for one in screens})
        counts: Counter[str] = Counter()
        for number, (question, content, citations) in enumerate(asked(app, questions)):
            counts.update(
                _judged(
                    question, content, citations, names, screens, tunes=number % 2 == 0, shown=options.errors
                )
            )
        wrong = counts["quoted elsewhere"]
    print(f"right value: {counts['right']} of {counts['answerable']}")
    print(f"box over the right line: {counts['placed']} of {counts['with a line']}")
    print(f"silent: {counts['silent']} of {counts['unanswerable']}")
    print(f"quoted from another screenshot than the cited one: {wrong}")
    for kind in ("right", "placed", "silent"):
        print(f"  {kind}, of the half that is only counted: {counts[kind + ' counted']}")


def asked(
    app: Application, questions: list[Question]
) -> Iterator[tuple[Question, str, list[dict[str, Any]]]]:
    """Each question with its answer and the citations of that."""
    settings = dataclasses.replace(app.settings, language="en")
    conversation = None
    for minute, question in enumerate(questions):
        conversation = conversation if question.follows else None
        reply = chat.send(
            settings,
            UserMessage(question.text, conversation),
            clock=lambda minute=minute: NOW + timedelta(minutes=minute),  # type: ignore[misc]
        )
        conversation = reply.conversation_id
        yield question, reply.content, msgspec.to_builtins(reply.citations)


def _judged(
    question: Question,
    content: str,
    citations: list[dict[str, Any]],
    names: dict[int, str],
    screens: list[Screen],
    *,
    tunes: bool,
    shown: bool,
) -> Counter[str]:
    counts: Counter[str] = Counter()
    counts["quoted elsewhere"] = sum(not _stands(citation) for citation in citations)
    if not question.values:
        silent = not citations and not re.search(r"#\d", content)
        counts.update({"unanswerable": 1, "silent": silent, "silent counted": silent and not tunes})
        if shown and tunes and not silent:
            print(f"not silent: {question.text} -> {content!r}")
        return counts
    answer = _squeezed(content)
    right = any(_squeezed(value) in answer for value in question.values)
    placed = bool(question.line) and any(
        names[citation["photo_id"]] == question.screen
        and any(
            _overlap(box, gold) >= OVERLAP for box in citation["boxes"] for gold in _gold(question, screens)
        )
        for citation in citations
    )
    counts.update({"answerable": 1, "right": right, "with a line": bool(question.line), "placed": placed})
    counts.update({"right counted": right and not tunes, "placed counted": placed and not tunes})
    if shown and tunes and not (right and (placed or not question.line)):
        cited = [(names[one["photo_id"]], one["text"]) for one in citations]
        verdict = f"{'' if right else 'wrong'} {'' if placed else 'not placed'}"
        print(f"{verdict}: {question.text}\n   {content!r} {cited}")
    return counts


def _stands(citation: dict[str, Any]) -> bool:
    """Whether each cited line is one of the screenshot's."""
    with database.scope():
        read = readings.of([citation["photo_id"]]).get(citation["photo_id"])
    return read is not None and all(0 <= line < len(read.lines) for line in citation["lines"])


def _gold(question: Question, screens: list[Screen]) -> list[tuple[float, ...]]:
    """The places of the lines with the value, in parts of the picture."""
    screen = next(one for one in screens if one.name == question.screen)
    return [box for text, box in screen.places if any(words in text for words in question.line.split(" | "))]


def _parts(box: Sequence[float], width: int, height: int) -> tuple[float, ...]:
    return (box[0] / width, box[1] / height, box[2] / width, box[3] / height)


def _overlap(box: dict[str, float], gold: tuple[float, ...]) -> float:
    """What two boxes share, as a part of what they cover together."""
    left, top = max(box["left"], gold[0]), max(box["top"], gold[1])
    right = min(box["left"] + box["width"], gold[2])
    bottom = min(box["top"] + box["height"], gold[3])
    shared = max(0.0, right - left) * max(0.0, bottom - top)
    both = box["width"] * box["height"] + (gold[2] - gold[0]) * (gold[3] - gold[1]) - shared
    return shared / both if both else 0.0


def _squeezed(text: str) -> str:
    return re.sub(r"[\s*>]+", "", terms.fold(text).casefold())


if __name__ == "__main__":
    main()
