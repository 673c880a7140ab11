"""Title and summary of a screen, as a person would write them: one short line, and one sentence.

They are made of its record (`rules/templates.py`). A screen without one is named by its heading
(`rules/headings.py`), with what it begins with where the heading alone names nothing; its summary is the kind
of screen and its heading, with the first paragraph, the labelled values or the first entries. What is quoted
is quoted as it was read, whole paragraphs instead of single lines, and never the status bar.
"""

import re
from collections.abc import Sequence

from engines.findings import MAX_TITLE, Entity
from engines.records import Record
from rules import contents, sensitive, templates, wordlists, writings
from rules.headings import Heading, first_sentence, heading, is_day, is_title
from rules.layout import Layout, plain, wide
from rules.lists import Entry, entries, is_headed, notices_of
from rules.templates import SUMMARY_LENGTH, enumerated
from rules.view import View
from text import one_line, shortened

SAID, QUOTED, LONGEST = 150, 72, 70  # characters of a text, of an entry, of a title without a heading
# Parts behind a heading, and behind one that names something of its own; with Chinese characters counted
# double, the room of a title with its parts, and the length of a heading that needs none.
PARTS, OF_OWN, ROOM, ENOUGH = 3, 1, 60, 30
SHORT = 4  # words of parts with "and" between them
MORE, ALSO = 6, 10  # texts behind a summary, and characters of the words before them
LISTED = 3  # entries of a list, with fewer of which it has none
VALUES = 3  # entries or values in a summary
MOST_SAID = 3  # entries with what is below each
MESSAGES, MESSAGE = 3, 58  # of a conversation, the newest, in a summary; characters of each

_NOTIFIED = ("lock_screen", "notices")
# The field with what is below a bar like "Messages" or "Comments".
_BELOW_BAR = {"MessageList": "entries", "SocialMediaPosting": "text"}
# Records whose titles have the app, and those of them that have more of the screen, too.
_OF_APP = frozenset(["CalendarView", "MessageList", "SettingsPage", "SocialMediaPosting", "TaskList"])
_OPEN = frozenset(["Article", "Balance"])
_LISTS = frozenset(["Balance", "SettingsPage"])  # records that have a part of what their screens have
_WORD = re.compile(r"[^\W\d_\u2e80-\u9fff]+|[\u2e80-\u9fff]|\d+")
_KEY = re.compile(r"[\w+/=-]{22}", re.ASCII)  # of a wallet or a device: nobody reads it
_COUNTED = re.compile(r"[^\w€$£¥₹]{0,9}\d")  # a count or a time before other words
_SENTENCES = wordlists.table("sentences")


def title(view: View, records: Sequence[Record], language: str) -> str:
    """The line that a person would give the screenshot, at most `MAX_TITLE` characters; "" when it has no
    words.
    """
    said = _of_record(view, records[0], language) if records else ""
    if view.kind in _NOTIFIED and (notices := notices_of(view.layout)):
        said = _of_notices(notices, language)
    elif not said or records[0].type in _OPEN:
        found = _heading(view)
        said = _fuller(
            view, found, _of_app(view.app, said or _named(view, found, language), language), language
        )
    elif records[0].type in _OF_APP:
        said = _of_app(view.app, said, language)
    return shortened(one_line(said), MAX_TITLE)


def summary(view: View, records: Sequence[Record], named: str, category: str, language: str) -> str:
    """One or two sentences about the screen whose title is `named`, at most `SUMMARY_LENGTH` characters."""
    if not view.layout.all_lines:
        return _texts(language)["no_text"]
    found, is_notice = _heading(view), view.kind in ("lock_screen", "notices", "code")
    sentence = _notified(view, language) if is_notice else ""
    if not sentence and records:
        sentence = _spoken(view, records[0], language) or templates.summary(records[0], language)
        if not is_notice and records[0].type != "Conversation" and _repeats(sentence, named):
            sentence = _told(view, found, language) or sentence
    said = templates.finished(sentence or _facts(view, found, category, language), view.app, language)
    if is_notice or (records and records[0].type not in _LISTS):
        return said
    more = _parts(view, found, said, MORE, SUMMARY_LENGTH - ALSO)
    also = _texts(language)["also"].format(said=said, entries=enumerated(more, language, MORE))
    return also if more else said


def of_code(entity: Entity, language: str) -> str:
    """Title and summary of a picture that shows a code and no text."""
    return shortened(one_line(_texts(language)["code"].format(said=entity.value)), MAX_TITLE)


def _repeats(sentence: str, title: str) -> bool:
    """Whether a sentence has hardly a word that the title lacks."""
    words = set(_WORD.findall(sentence.casefold()))
    return len(words - set(_WORD.findall(title.casefold()))) <= min(2, len(words) // 4)


def _heading(view: View) -> Heading | None:
    return heading(view.layout.main, view.kind, view.app)


def _texts(language: str) -> dict[str, str]:
    found: dict[str, str] = _SENTENCES[language]["caption"]
    return found


def _of_record(view: View, record: Record, language: str) -> str:
    """The title by the template of the record's type, unless the screen's bar says what is listed."""
    said = "" if view.kind in _NOTIFIED else templates.title(record, language)
    if record.type == "SettingsPage" and is_headed(name := str(record.get("name") or "")):
        listed = templates.worded(record, "entries", "", language)
        return _texts(language)["named"].format(title=name, entries=listed) if listed else name
    field = _BELOW_BAR.get(record.type, "")
    head = heading(view.layout, view.kind, view.app) if field else None
    if head is None or not head.lines or head.lines[0] not in view.layout.headers[:2]:
        return said
    if head.text.casefold() == view.app.casefold() or (record.type == "MessageList" and not head.generic):
        return said
    listed = templates.worded(record, "headline" if record.get("headline") else field, "head", language)
    if listed.startswith(head.text):
        return listed
    return _texts(language)["named"].format(title=head.text, entries=listed) if listed else head.text


def _of_notices(found: Sequence[Entry], language: str) -> str:
    """The app of a notification and what it says, or what each of several is headed."""
    texts = _texts(language)
    if len(found) == 1:
        return texts["notification"].format(app=found[0].name, said=found[0].said).strip(":： ")
    heads = [one.said.partition(": ")[0] or one.name for one in found]
    return texts["notices"].format(entries=enumerated(heads, language, PARTS))


def _named(view: View, found: Heading | None, language: str) -> str:
    """The heading, and what the screen has."""
    layout, texts = view.layout.main, _texts(language)
    if found is None:
        return contents.sentence(layout, None, LONGEST) or _first_text(layout)
    subject = found.text
    if view.kind == "profile" and not found.generic:
        return texts["profile"].format(name=subject)
    if view.kind == "post" and subject.casefold() == view.app.casefold():
        return texts["feed"].format(app=subject)
    if view.kind in ("payment", "accounts", "shop") and (amount := contents.amount(layout)):
        subject = subject if amount in subject else f"{subject}{texts['behind']}{amount}"
    return subject


def _fuller(view: View, found: Heading | None, named: str, language: str) -> str:
    """A title with the values of its screen behind it, or else its largest texts, as far as there is room."""
    layout, texts = view.layout.main, _texts(language)
    if layout.dialog or view.kind == "profile" or wide(named) >= ENOUGH:
        return named
    is_own = found is not None and (not found.generic or found.text.casefold() == view.app.casefold())
    parts = _parts(view, found, named, OF_OWN if is_own else PARTS, ROOM, counts=False)
    if re.search(r": |：", named):
        return texts["comma"].join([named, *parts])
    is_short = all(len(part.split()) <= SHORT for part in parts)
    said = enumerated(parts, language) if is_short else texts["comma"].join(parts)
    return texts["named"].format(title=named, entries=said) if parts else named


def _parts(
    view: View, found: Heading | None, known: str, most: int, room: int, *, counts: bool = True
) -> list[str]:
    """The values of a screen, or else its first entry and its largest texts, as far as `known` lacks them and
    has room behind it, Chinese characters counted double; with `counts` also those that begin with a number.
    A secret is none of them.
    """
    layout = view.layout.main
    listed = contents.values(layout, view.kind)
    if len(listed) < 2:
        names = [entry.name for entry in contents.named(layout, found)]
        listed = names[: len(names) >= LISTED] + contents.worded(layout, found)
    parts: list[str] = []
    for part in listed:
        said = "  ".join([known, *parts])
        if len(parts) == most or wide(f"{said}  {part}") > room or (not counts and _COUNTED.match(part)):
            continue
        if (
            not is_day(part)
            and not _KEY.search(part)
            and not _repeats(part, said)
            and not sensitive.kinds(f"{said} {part}")
        ):
            parts.append(part)
    return parts


def _of_app(app: str, title: str, language: str) -> str:
    """A title with the app before it where a person would not know it from the title."""
    if not title or app.casefold() in title.casefold():
        return title
    return _texts(language)["of_app"].format(app=app, title=title)


def _first_text(layout: Layout) -> str:
    """The first text that says something."""
    worded = [text for block in layout.blocks if is_title(text := plain(block.text))]
    return first_sentence(worded[0], LONGEST) if worded else ""


def _spoken(view: View, record: Record, language: str) -> str:
    """The newest messages of a conversation, after with whom it is; "" of anything else."""
    said = writings.messages(view)[-MESSAGES:] if record.type == "Conversation" else []
    if len(said) < 2:
        return ""
    texts = _texts(language)
    quoted = texts["comma"].join(texts["quote"].format(shortened(text, MESSAGE)) for text in said)
    whom = templates.worded(record, "participant", "", language)
    return texts["chat" if whom else "chat_alone"].format(whom=whom, said=quoted)


def _told(view: View, found: Heading | None, language: str) -> str:
    """The text of a screen to read, or its labelled values where there are some."""
    layout = view.layout.main
    if contents.is_running(layout):
        return contents.sentence(layout, found, SAID)
    values = contents.values(layout, view.kind)
    return enumerated(values, language, VALUES) if len(values) >= 2 else ""


def _facts(view: View, found: Heading | None, category: str, language: str) -> str:
    """A sentence about a screen without a record: its kind and its heading, with what it says beside that."""
    texts, screens = _texts(language), _SENTENCES[language]["screen"]
    layout = view.layout.main
    name, screen = found.text if found else "", str(screens.get(view.kind) or screens[category])
    entered = _entered(view, found, language)
    is_text = contents.is_running(layout) or len(entered) < 2
    if is_text and (about := contents.sentence(layout, found, SAID)) and about not in name:
        return texts["named"].format(title=name, entries=about) if name else about
    named = texts["screen"].format(screen=screen, name=name) if name else screen
    return (
        texts["has"].format(screen=named, entries=enumerated(entered, language, VALUES)) if entered else named
    )


def _entered(view: View, found: Heading | None, language: str) -> list[str]:
    """What a screen has: its labelled values, its entries, or its other texts."""
    layout, texts = view.layout.main, _texts(language)
    values = contents.values(layout, view.kind)
    if len(values) >= 2:
        return values
    named = contents.named(layout, found)
    said = [
        texts["named"].format(title=one.name, entries=shortened(one.said, QUOTED))
        for one in named
        if one.said
    ]
    if len(named) >= 2 and 2 * len(said) >= len(named):
        return said[:MOST_SAID]
    entries = [shortened(one.name, QUOTED) for one in named]
    return entries if len(entries) >= 2 else values or contents.worded(layout, found)


def _notified(view: View, language: str) -> str:
    texts = _texts(language)
    found = notices_of(view.layout) or [entry for entry in entries(view.layout) if entry.said]
    if len(found) == 1:
        return texts["notice"].format(app=found[0].name, said=found[0].said or found[0].name)
    named = [f"{one.name} – {shortened(one.said, 60)}" if one.said else one.name for one in found[:3]]
    return texts["notices"].format(entries=("; " if language == "en" else "；").join(named)) if named else ""
