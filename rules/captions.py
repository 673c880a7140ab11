"""Title and summary of a screen, as a person would write them: one short line, and one sentence.

They are made of its record (`rules/templates.py`). A screen without one is named by its heading
(`rules/headings.py`), with what it begins with where the heading alone names nothing; its summary is the
heading with the first paragraph, the labelled values or the first entries. What is quoted is quoted as it was
read, whole paragraphs instead of single lines, and never the status bar.
"""

import re
from collections.abc import Sequence

from engines.findings import MAX_TITLE, Entity
from engines.records import Record
from rules import templates, wordlists
from rules.entities import NUMBER, SIGN
from rules.headings import Heading, first_sentence, heading, is_title
from rules.kinds import WHEN_RIGHT
from rules.layout import Layout, plain, weight
from rules.lists import Entry, entries, notices_of
from rules.templates import enumerated
from rules.view import View
from text import one_line, shortened

SUMMARY_LENGTH = 200
QUOTED = 110  # characters of a quotation
RUNNING = 400  # letters of the paragraphs of a text to read, Chinese ones counted double
NAME = 28  # letters of a heading that says too little alone, and of an entry behind it

_AMOUNT = re.compile(rf"[-+−]? ?{SIGN} ?{NUMBER}|{NUMBER} ?(?:元|€|£|USD|EUR)")
_SENTENCES = wordlists.table("sentences")


def title(view: View, records: Sequence[Record], language: str) -> str:
    """The line that a person would give the screenshot, at most `MAX_TITLE` characters; "" when it has no
    words.
    """
    is_notice = view.kind in ("lock_screen", "notices")
    said = templates.title(records[0], language) if records and not is_notice else ""
    if is_notice and (found := notices_of(view.layout)):
        said = _texts(language)["named"].format(title=found[0].name, entries=found[0].said).strip(":： ")
    return shortened(one_line(said or _named(view, language)), MAX_TITLE)


def summary(view: View, records: Sequence[Record], category: str, language: str) -> str:
    """One sentence about the screen, at most `SUMMARY_LENGTH` characters."""
    texts, app = _texts(language), view.app
    if not view.layout.all_lines:
        return texts["no_text"]
    is_notice = view.kind in ("lock_screen", "notices", "code")
    sentence = _notified(view, language) if is_notice else ""
    if not sentence and records:
        sentence = templates.summary(records[0], language)
    if not sentence or sentence == title(view, records, language):
        sentence = _listed(view, language)
    sentence = one_line(sentence or _SENTENCES[language]["category"][category])
    if app and app.casefold() not in sentence.casefold():
        sentence = texts["named"].format(title=app, entries=sentence)
    end = "" if sentence.endswith((".", "。", "!", "?", "！", "？", "…", "”")) else texts["end"]
    if len(sentence) >= SUMMARY_LENGTH:
        return shortened(sentence, SUMMARY_LENGTH)
    return shortened(sentence, SUMMARY_LENGTH - 1) + end


def of_code(entity: Entity, language: str) -> str:
    """Title and summary of a picture that shows a code and no text."""
    return shortened(one_line(_texts(language)["code"].format(said=entity.value)), MAX_TITLE)


def _texts(language: str) -> dict[str, str]:
    found: dict[str, str] = _SENTENCES[language]["caption"]
    return found


def _named(view: View, language: str) -> str:
    """The heading, with what the screen begins with where it says too little alone."""
    layout, texts = view.layout, _texts(language)
    found = heading(layout, view.kind, view.app)
    if found is None:
        return _first_text(layout)
    if not found.generic and weight(found.text) > NAME:
        return found.text
    if view.kind in ("payment", "accounts", "shop") and (amount := _amount(layout)):
        return found.text if amount in found.text else f"{found.text}{texts['behind']}{amount}"
    if layout.dialog or not found.generic or len(_besides(layout, found)) >= 2:
        return found.text
    behind = _said(layout, found, 60)
    return texts["named"].format(title=found.text, entries=behind) if behind else found.text


def _shown(name: str) -> str:
    return shortened(name, NAME)


def _besides(layout: Layout, found: Heading | None) -> list[Entry]:
    return entries(layout, found.text if found else "")


def _first_text(layout: Layout) -> str:
    """The first text that says something."""
    worded = [text for block in layout.blocks if is_title(text := plain(block.text))]
    return first_sentence(worded[0], 70) if worded else ""


def _said(layout: Layout, found: Heading | None, limit: int) -> str:
    """The beginning of the first paragraph, or of the first sentence."""
    title = found.text if found else ""
    lines = {id(line) for line in found.lines} if found else set()
    for block in [*layout.paragraphs, *layout.body]:
        text = plain(block.text)
        is_sentence = text[-1:] in ".!?。！？" and not text.endswith("..")
        long_enough = 12 if is_sentence else 40
        if (
            weight(text) >= long_enough
            and (is_sentence or len(block.lines) >= 2 or block in layout.paragraphs)
            and text != title
            and not any(id(line) in lines for line in block.lines)
            and is_title(text)
        ):
            return first_sentence(text, limit)
    return ""


def _listed(view: View, language: str) -> str:
    """The name of the screen and what it begins with: its first paragraph, its labelled values, or its first
    entries.
    """
    layout, texts = view.layout, _texts(language)
    found = heading(layout, view.kind, view.app)
    rows = _besides(layout, found)
    running = sum(weight(block.text) for block in layout.paragraphs) >= RUNNING
    about = _said(layout, found, QUOTED) if running or len(rows) < 3 else ""
    if not about and len(pairs := _pairs(layout, rows)) >= 2:
        about = texts["comma"].join(pairs[:5])
    if not about and len(rows) >= 2:
        about = enumerated([shortened(row.name, 40) for row in rows], language, 5)
    if not about:
        about = _said(layout, found, QUOTED) or _worded(layout, found, language)
    subject = found.text if found else ""
    if subject and about:
        return texts["named"].format(title=subject, entries=about)
    return subject or about or " ".join(plain(line.text) for line in layout.all_lines[:12])


def _worded(layout: Layout, found: Heading | None, language: str) -> str:
    """The first texts of the screen."""
    title = found.text if found else ""
    worded = [plain(block.text) for block in layout.blocks]
    named = [shortened(text, 60) for text in dict.fromkeys(worded) if is_title(text) and text not in title]
    return shortened(_texts(language)["comma"].join(named[:6]), QUOTED + 40)


def _pairs(layout: Layout, rows: Sequence[Entry]) -> list[str]:
    """Labels with their values beside them."""
    valued = [f"{shortened(entry.name, 30)} {entry.value}" for entry in rows if entry.value]
    if len(valued) >= 2:
        return valued
    return [
        f"{plain(row.first.text)} {plain(row.last.text)}"
        for row in layout.rows
        if len(row.lines) == 2
        and row.first is not layout.header
        and not (row.first.text.isupper() and row.last.text.isupper())  # buttons
        and weight(row.first.text) >= 2
        and not WHEN_RIGHT.fullmatch(row.last.text.strip())
        and len(row.first.text) <= 30
        and len(row.last.text) <= 60
        and row.last.text.strip("0oO.·• ") != ""  # three dots of a menu
        and row.last.right > 0.6 * layout.width
    ]


def _amount(layout: Layout) -> str:
    """The amount that is larger than the other text, "" where there is none."""
    found = [
        (line.height, match[0].strip()) for line in layout.lines if (match := _AMOUNT.search(line.text[:120]))
    ]
    tallest = max((height for height, _ in found), default=0)
    large = [amount for height, amount in found if height >= 0.85 * tallest]
    return large[0] if tallest >= 1.4 * layout.median else ""


def _notified(view: View, language: str) -> str:
    texts = _texts(language)
    found = notices_of(view.layout) or [entry for entry in entries(view.layout) if entry.said]
    if len(found) == 1:
        return texts["notice"].format(app=found[0].name, said=found[0].said or found[0].name)
    named = [f"{one.name} – {shortened(one.said, 60)}" if one.said else one.name for one in found[:3]]
    return texts["notices"].format(entries=("; " if language == "en" else "；").join(named)) if named else ""
