"""What a screenshot shows, judged by the words on it and their places: category, intent, app, title, summary.

Every result rests on something visible: the category and the kind of screen on cues by their places
(`rules/kinds.py`) and a learned vote over them (`rules/vote.py`), the app on a name that is there
(`rules/wordmarks.py`), title and summary on the screen's own parts (`rules/captions.py`). An app that is not
named is "". The confidence, at most one half, reflects how the category was found.
"""

import re
import statistics
from collections.abc import Callable
from datetime import datetime

import msgspec

from engines.findings import Entity, Findings
from engines.lines import Page
from rules import captions, kinds, recorder, templates, valued, vote, wordmarks
from rules.entities import CODE_KINDS, WHEN, entities_of_codes
from rules.layout import Layout
from rules.view import View
from rules.wordlists import END, START, any_in

SUMMARY_LENGTH = templates.SUMMARY_LENGTH
# A new number for each change of what the rules find: results of an earlier version are not copied to equal
# pictures, and it is in what was analysed.
VERSION = 11
MAX_CONFIDENCE = 0.5
SURE = 0.85  # chance of a category from which on it is certain
# Parts of `MAX_CONFIDENCE`: for a category that is certain, for one that is likely, for a screen of which not
# even the kind is known, and for a picture without text.
CERTAIN, LIKELY, UNSUPPORTED, BLANK = 1.0, 0.8, 0.5, 0.2
LEAST_TEXT = 12  # letters and digits; with fewer, a screenshot is not worth keeping


def judge(
    page: Page,
    *,
    analyser: str,
    language: str,
    name: str = "",
    sense: Callable[[str], bytes] | None = None,
    taken: datetime | None = None,
) -> Findings:
    """The findings for a page. `analyser` is named in `raw`, `language` (`zh` or `en`) is the summary's, and
    `name` is the file's. `sense` makes the vector of a text for the vote (`rules/vote.py`), b"" where this
    machine cannot. `taken` is when the screenshot was taken, in local time without a zone.
    """
    layout = Layout(page)
    lines = layout.all_lines
    reading = statistics.fmean(line.confidence for line in page.lines) if page.lines else 0.0
    verdict = vote.recognise(layout, sense)
    marks = wordmarks.marks(layout, verdict.kind)
    app = wordmarks.app_name(layout, verdict.kind, name, marks, language)
    encoded = [line.text for line in page.encoded]
    view = View(page, layout, verdict.kind, app, taken, types=verdict.types)
    records = recorder.records(view)
    entities = entities_of_codes(encoded, page.codes) + valued.entities(view, records)
    title = captions.title(view, records, language)
    summary = captions.summary(view, records, title, verdict.category, language)
    if encoded and not title:
        title = summary = captions.of_code(entities[0], language)
    if not lines:
        support = BLANK
    elif not verdict.kind:
        support = UNSUPPORTED
    else:
        support = CERTAIN if verdict.chance >= SURE else LIKELY
    raw = {
        "analyser": analyser, "rules": VERSION, "lines": len(page.lines),
        "mean_confidence": round(reading, 3), "kind": verdict.kind,
        "category_chance": verdict.chance, "width": page.width, "height": page.height,
    }  # fmt: skip
    return Findings(
        app_name=app,
        content_category=verdict.category,
        intent="reference" if encoded else _intent(verdict.kind, layout, entities),
        title=title,
        summary=summary,
        entities=entities,
        confidence=round(MAX_CONFIDENCE * support * (reading if lines else 1), 3),
        visible_text=page.text,
        raw=msgspec.json.encode(raw).decode(),
        records=records,
        wordmarks=marks,
    )


_REMINDER, _RESEARCH = (
    re.compile(any_in("intents", name, START, END), re.IGNORECASE) for name in ("reminder", "research")
)


def _intent(kind: str, layout: Layout, entities: list[Entity]) -> str:
    """The probable reason for keeping the screenshot."""
    texts = [line.text for line in layout.all_lines]
    text = "\n".join(texts)
    if sum(character.isalnum() for character in text) < LEAST_TEXT:
        return "ignore"
    if kind in kinds.DATED:
        # A date alone is weak evidence, since chats are full of them; next to such a word it is the
        # appointment's.
        dated = any(
            _REMINDER.search(line) and WHEN.search("\n".join(texts[max(0, at - 1) : at + 2]))
            for at, line in enumerate(texts)
        )
        if dated or len({match[0].casefold() for match in _REMINDER.finditer(text)}) >= 2:
            return "reminder"
    if (
        kind in ("", "post", "video")
        and len({match[0].casefold() for match in _RESEARCH.finditer(text)}) >= 2
    ):
        return "research"
    intent = kinds.INTENT.get(kind, "note")
    worth = {entity.type for entity in entities} & CODE_KINDS
    return "reference" if intent == "note" and worth and kind not in ("post", "video") else intent
