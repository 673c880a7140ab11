"""What an answer says, and the lines of the screenshots that say it: its citations.

The embedded model names the screenshot and the words that it quotes. In the answer of a remote model, the
quoted words and values (amounts, days, times, codes, the fields of records) are looked for on the lines of
the screenshots that the tools of its turn have returned; where a paragraph names screenshots, only on theirs.
What is on no line has no citation: it is the model's own.

A screenshot that the gate withholds from the model has no citation either. For use in a database scope.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

import gate
import readings
import records
import terms
from assistant.transcript import SCREENSHOTS
from engines.findings import Source
from engines.records import Field, Record
from models import Message
from queries.matches import Box
from readings import Lines
from rules import templates
from text import cut
from writings import figures

MOST = 6  # citations of an answer
MOST_PHOTOS = 24  # whose lines are looked at
MOST_LINES = 6  # of a citation
MAX_TEXT = 300  # characters of a citation
MAX_ANSWER = 8_000  # characters of an answer that are looked through
MOST_SPANS = 80
FEWEST = 3  # characters of words, and of a value with digits

_NAMED = re.compile(r"#(\d{1,15})(?!\d)")
_QUOTED = re.compile(
    r"\*\*([^*\n]{1,300})\*\*|`([^`\n]{1,300})`|[“\"]([^“”\"\n]{1,300})[”\"]|「([^」\n]{1,300})」"
)
_LINE_QUOTED = re.compile(r"^> ?(.{1,300})$", re.MULTILINE)
# Amounts and other numbers with signs inside, times, and codes of letters and digits.
_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.,:/@+_-]{0,60}[A-Za-z0-9])?")


class Citation(msgspec.Struct, frozen=True):
    """What an answer says, and where: the indices of the lines in a photo's reading, and their boxes."""

    photo_id: int
    text: str
    lines: list[int]
    boxes: list[Box]


class _Answer(msgspec.Struct):
    """What matters of a tool's answer."""

    results: list[dict[str, Any]] = []
    closest_in_meaning: list[dict[str, Any]] = []


class _Page(NamedTuple):
    """What is known about a photo: its lines, and the same folded and without spaces; its records."""

    lines: Lines
    squeezed: list[str]
    days: list[set[str]]  # the terms of the days and numbers on each line
    records: list[Record]


def of(answer: str, sources: Sequence[Source], turn: Iterable[Message], *, gated: bool) -> list[Citation]:
    """The citations of an answer, at most `MOST`. `sources` are those that the model itself has named, and
    `turn` the messages before the answer, of which the tools' results count. With `gated`, the model is one
    that must not learn about sensitive screenshots.
    """
    known = _returned(turn)
    if gated:
        marks = gate.marks(known)
        known = [one for one in known if one in marks and (marks[one].cleared or not marks[one].sensitive)]
    if sources:
        pages = _pages(source.photo_id for source in sources if source.photo_id in known)
        found = [_of_source(source, pages[source.photo_id]) for source in sources if source.photo_id in pages]
        return [one for one in found if one is not None][:MOST]
    return list(_quoted(answer[:MAX_ANSWER], _pages(known[:MOST_PHOTOS])))[:MOST]


def encoded(citations: Sequence[Citation]) -> str | None:
    """Citations as they are stored with a message."""
    return msgspec.json.encode(citations).decode() if citations else None


def _returned(turn: Iterable[Message]) -> list[int]:
    """The photos that the tools of a turn have returned: first those that were read, then those found."""
    read: dict[int, None] = {}
    found: dict[int, None] = {}
    for message in turn:
        if message.role == "tool" and message.tool_name in SCREENSHOTS:
            ids = dict.fromkeys(_results_of(message.content or ""))
            (read if message.tool_name == "get_screenshot" else found).update(ids)
    return list(read | found)


def _results_of(content: str) -> Iterator[int]:
    """The photos in the answer of a tool, without those that the gate has withheld."""
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except msgspec.DecodeError:
        return
    for one in (*answer.results, *answer.closest_in_meaning):
        if isinstance(one.get("id"), int) and one.get("title") != gate.TITLE:
            yield one["id"]


def _pages(photo_ids: Iterable[int]) -> dict[int, _Page]:
    """What is on these photos, in their order, without those that were not read."""
    ids = list(dict.fromkeys(photo_ids))
    said, read = records.of_photos(ids), readings.of(ids)
    return {one: _page(read[one], said[one]) for one in ids if one in read and one in said}


def _page(lines: Lines, found: list[Record]) -> _Page:
    folded = [terms.fold(line.text).casefold() for line in lines.lines]
    return _Page(lines, [_squeezed(line) for line in folded], [_days(line) for line in folded], found)


def _of_source(source: Source, page: _Page) -> Citation | None:
    """The lines of the field that the model has named, else those with its words."""
    lines = next(
        (
            field.lines
            for record in page.records
            if record.type == source.type
            for field in record.fields
            if field.name == source.field
        ),
        [],
    )
    lines = lines or sorted({at for words in source.words for at in _lines_named(words, page)[:1]})
    return _citation(source.photo_id, source.text, lines, page)


def _quoted(answer: str, pages: Mapping[int, _Page]) -> Iterator[Citation]:
    """What is quoted in the answer, each at the photo that has the most of it."""
    there: dict[tuple[int, str], list[int]] = {}
    for paragraph in answer.split("\n\n"):
        named = {int(one) for one in _NAMED.findall(paragraph)} & pages.keys()
        spans = list(_spans(paragraph))[:MOST_SPANS]
        for photo_id, page in pages.items():
            if not named or photo_id in named:
                for span in spans:
                    if lines := _lines_with(span, page):
                        there.setdefault((photo_id, span), lines)
                for field in _fields_in(paragraph, page):
                    said = field.text or (field.value if isinstance(field.value, str) else field.name)
                    there.setdefault((photo_id, said), field.lines)
    weights = {one: sum(len(span) for photo, span in there if photo == one) for one in pages}
    cited: set[tuple[int, tuple[int, ...]]] = set()
    quoted: set[str] = set()
    for photo_id, span in sorted(there, key=lambda one: (-weights[one[0]], -len(one[1]))):
        lines = there[photo_id, span][:1] if span not in quoted else []
        if span in quoted or (photo_id, tuple(lines)) in cited:
            continue
        quoted.add(span)
        cited.add((photo_id, tuple(lines)))
        if citation := _citation(photo_id, span, there[photo_id, span], pages[photo_id]):
            yield citation


def _spans(paragraph: str) -> Iterator[str]:
    """The words of a paragraph that may be quoted, the longest kinds first."""
    for found in _LINE_QUOTED.finditer(paragraph):
        yield found[1].strip()
    for found in _QUOTED.finditer(paragraph):
        yield next(filter(None, found.groups())).strip()
    plain = _NAMED.sub(" ", paragraph)
    for found in _VALUE.finditer(plain):
        if any(map(str.isdigit, found[0])) and len(found[0]) >= FEWEST:
            yield found[0]
    folded = terms.fold(plain).casefold()
    for figure in figures.find(folded):
        yield folded[figure.start : figure.end]


def _lines_with(span: str, page: _Page) -> list[int]:
    """The lines on which a span is, as it is written or as the same day or number; [] where none has it."""
    folded = terms.fold(span).casefold()
    squeezed = _squeezed(folded)
    if len(squeezed) < (FEWEST if squeezed.isascii() else 2):
        return []
    lines = [at for at, line in enumerate(page.squeezed) if _has(line, squeezed) and _counts(page, at)]
    if not lines and (days := _days(folded)):
        lines = [at for at, known in enumerate(page.days) if days <= known and _counts(page, at)]
    return lines[:MOST_LINES]


def _lines_named(span: str, page: _Page) -> list[int]:
    """The lines that the embedded model names: also those that are nothing but a word of two letters."""
    squeezed = _squeezed(terms.fold(span).casefold())
    return _lines_with(span, page) or [
        at for at, line in enumerate(page.squeezed) if line == squeezed and _counts(page, at)
    ]


def _has(line: str, squeezed: str) -> bool:
    """Whether a line has a text, and no longer number of which that is a part."""
    place = line.find(squeezed)
    while place >= 0:
        end = place + len(squeezed)
        before, behind = line[max(0, place - 1) : place], line[end : end + 1]
        cuts = (before.isdigit() and squeezed[0].isdigit()) or (behind.isdigit() and squeezed[-1].isdigit())
        if not cuts:
            return True
        place = line.find(squeezed, place + 1)
    return False


def _counts(page: _Page, at: int) -> bool:
    return not page.lines.lines[at].status_bar


def _fields_in(paragraph: str, page: _Page) -> Iterator[Field]:
    """The fields of records whose value a paragraph says, in any of its forms."""
    said = _squeezed(terms.fold(paragraph).casefold())
    for record in page.records:
        for field in record.fields:
            if field.lines and any(
                len(form) >= FEWEST and _has(said, form) for form in map(_squeezed, _forms(record, field))
            ):
                yield field


def _forms(record: Record, field: Field) -> Iterator[str]:
    if isinstance(field.value, str):
        yield terms.fold(field.value).casefold()
    for language in ("en", "zh"):
        yield terms.fold(templates.worded(record, field.name, "", language)).casefold()
        yield terms.fold(templates.worded(record, field.name, "day", language)).casefold()


def _days(folded: str) -> set[str]:
    return {term for figure in figures.find(folded) for term in figure.terms}


def _squeezed(folded: str) -> str:
    return re.sub(r"\s+", "", folded)


def _citation(photo_id: int, text: str, lines: Iterable[int], page: _Page) -> Citation | None:
    there = [at for at in dict.fromkeys(lines) if 0 <= at < len(page.lines.lines)][:MOST_LINES]
    if not there:
        return None
    boxes = [
        Box(round(line.left, 5), round(line.top, 5), round(line.width, 5), round(line.height, 5))
        for line in (page.lines.lines[at] for at in there)
    ]
    return Citation(photo_id, cut(text, MAX_TEXT), there, boxes)
